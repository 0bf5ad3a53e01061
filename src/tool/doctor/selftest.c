// SPDX-License-Identifier: Apache-2.0
/*
 * The bitmap's promise tried on this host: two contexts of the library over loopback, one
 * with a receiving thread, and each chunk's bytes compared the moment its bit is seen. Loss
 * on the way does no harm: only what has a bit is looked at. See checklist.h.
 */
#include "tool/doctor/checklist.h"

#include "base/units.h"

#include <sdr/sdr.h>

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MESSAGE (UINT64_C(1) << 20)
#define MESSAGES 16u
#define RATE_BPS UINT64_C(4000000000)
#define CONNECT_NS (2 * NS_PER_S)
#define MESSAGE_NS (300 * NS_PER_MS)
#define WORKERS 1u

struct test {
	struct selftest_facts *t;
	struct sdr_ctx *a, *b; /* sends; receives */
	struct sdr_qp *qa, *qb;
	uint8_t *src, *dst, *seen;
	uint64_t *words;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static int step(struct test *x, const char *what, int rc)
{
	if (rc < 0 && !x->t->error) {
		x->t->error = rc;
		snprintf(x->t->step, sizeof x->t->step, "%s", what);
	}
	return rc;
}

static int open_both(struct test *x)
{
	struct sdr_ctx_attr attr = {.size = sizeof attr,
				    .device = "udp",
				    .bind_addr = "127.0.0.1",
				    .listen = 1,
				    .workers = WORKERS,
				    .max_payload_bytes = 1408};
	struct sdr_qp_attr qp = {.size = sizeof qp, .rate_bps = RATE_BPS};

	if (step(x, "opening the receiver", sdr_ctx_create(&attr, &x->b)) < 0)
		return -1;
	attr.listen = 0;
	attr.workers = 0;
	if (step(x, "opening the sender", sdr_ctx_create(&attr, &x->a)) < 0 ||
	    step(x, "a queue pair", sdr_qp_create(x->a, &qp, &x->qa)) < 0 ||
	    step(x, "a queue pair", sdr_qp_create(x->b, &qp, &x->qb)) < 0)
		return -1;
	return 0;
}

static int connect_one(struct test *x, struct sdr_qp *qp, const struct sdr_qp *peer, int active)
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sdr_connect_attr attr = {.size = sizeof attr,
					.role = active ? SDR_ROLE_ACTIVE : SDR_ROLE_PASSIVE,
					.peer_addr = (const struct sockaddr *)&addr,
					.peer_addr_len = sizeof addr};
	uint8_t info[SDR_MAX_INFO_BYTES];
	int len = sdr_qp_info_get(peer, info, sizeof info);

	if (len >= 0)
		len = sdr_qp_connect(qp, info, (size_t)len, &attr);
	return step(x, "connecting", len);
}

static void progress(struct test *x)
{
	sdr_progress(x->a);
	sdr_progress(x->b);
}

static int connect_both(struct test *x)
{
	uint64_t until = now_ns() + CONNECT_NS;

	if (connect_one(x, x->qb, x->qa, 0) < 0 || connect_one(x, x->qa, x->qb, 1) < 0)
		return -1;
	while (sdr_qp_state_get(x->qa) != SDR_QP_CONNECTED ||
	       sdr_qp_state_get(x->qb) != SDR_QP_CONNECTED) {
		if (now_ns() > until)
			return step(x, "UDP over loopback", -ETIMEDOUT);
		progress(x);
	}
	return 0;
}

/* ---- a message ------------------------------------------------------------------ */

/* The bytes of chunks whose bit is new; returns how many bits are set. */
static uint64_t look(struct test *x, const struct sdr_recv *recv, const struct sdr_recv_info *info)
{
	uint64_t chunk = (uint64_t)info->payload_bytes * info->chunk_pkts, set = 0;

	if (sdr_recv_bitmap_get(recv, 0, info->chunks, x->words) < 0)
		return 0;
	for (uint64_t i = 0; i < info->chunks; i++) {
		uint64_t at = i * chunk, len = MESSAGE - at < chunk ? MESSAGE - at : chunk;

		if (!(x->words[i / 64] >> (i % 64) & 1))
			continue;
		set++;
		if (x->seen[i])
			continue;
		x->seen[i] = 1;
		x->t->chunks++;
		x->t->early += memcmp(x->dst + at, x->src + at, (size_t)len) != 0;
	}
	return set;
}

/* Nothing may be written once the receive is completed, whatever is still on its way. */
static void complete(struct test *x, struct sdr_recv *recv)
{
	uint8_t *copy = malloc(MESSAGE);

	sdr_recv_complete(recv);
	if (copy)
		memcpy(copy, x->dst, MESSAGE);
	for (int i = 0; i < 50; i++)
		progress(x);
	x->t->changed += copy && memcmp(copy, x->dst, MESSAGE) != 0;
	free(copy);
}

static int message(struct test *x, unsigned int number)
{
	struct sdr_recv_wr rwr = {.size = sizeof rwr, .addr = x->dst, .length = MESSAGE};
	struct sdr_send_wr swr = {.size = sizeof swr, .addr = x->src, .length = MESSAGE};
	struct sdr_recv_info info = {.size = sizeof info};
	uint64_t until = now_ns() + MESSAGE_NS;
	struct sdr_recv *recv;
	struct sdr_send *send;
	uint64_t set;

	for (uint64_t i = 0; i < MESSAGE; i++)
		x->src[i] = (uint8_t)(i * 31 + (i >> 8) * 7 + number * 13 + 1);
	memset(x->dst, 0, MESSAGE);
	memset(x->seen, 0, MESSAGE / 64);
	if (step(x, "posting a receive", sdr_recv_post(x->qb, &rwr, &recv)) < 0)
		return -1;
	if (step(x, "posting a send", sdr_send_post(x->qa, &swr, &send)) < 0) {
		sdr_recv_complete(recv);
		return -1;
	}
	do {
		progress(x);
		sdr_recv_query(recv, &info);
		set = look(x, recv, &info);
	} while (set < info.chunks && now_ns() < until);
	x->t->bytes += MESSAGE;
	complete(x, recv);
	sdr_send_release(send);
	return 0;
}

void selftest_run(struct selftest_facts *t)
{
	struct test x = {.t = t};

	*t = (struct selftest_facts){.workers = WORKERS};
	x.src = malloc(MESSAGE);
	x.dst = malloc(MESSAGE);
	x.seen = malloc(MESSAGE / 64);
	x.words = calloc(MESSAGE / 64 / 64 + 1, sizeof *x.words);
	if (!x.src || !x.dst || !x.seen || !x.words)
		step(&x, "memory", -ENOMEM);
	else if (open_both(&x) == 0 && connect_both(&x) == 0) {
		for (unsigned int i = 0; i < MESSAGES && message(&x, i) == 0; i++)
			;
		if (!t->error && !t->chunks)
			step(&x, "no chunk arrived over loopback", -ETIMEDOUT);
	}
	sdr_ctx_destroy(x.a);
	sdr_ctx_destroy(x.b);
	free(x.src);
	free(x.dst);
	free(x.seen);
	free(x.words);
}

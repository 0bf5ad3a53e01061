/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wall clock is set while connections work: over sockets of this host, in real time, as
 * the simulator has no wall clock. The linker puts __wrap_clock_gettime() in the place of the C
 * library's: what it says of CLOCK_REALTIME jumps; the kernel's own stamps of packets do not.
 *
 * Nothing is timed. What must hold: all writes end well, nobody is taken for dead.
 */
#include "catalogue.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);

static int64_t step_s;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	int err = __real_clock_gettime(clock, ts);

	if (!err && clock == CLOCK_REALTIME)
		ts->tv_sec += step_s;
	return err;
}

#define WRITES 400u
#define BYTES 100000u

struct real {
	struct sdr_net *net[2];
	struct sdr_conn *conn[2];
	unsigned int ended[2];
	uint8_t *src, *dst;
};

static void take(struct real *r, int end)
{
	struct sdr_completion done[16];
	struct sdr_event ev = {.size = sizeof(ev)};
	int n;

	done[0].size = sizeof(done[0]);
	assert_true(sdr_net_progress(r->net[end]) >= 0);
	while ((n = sdr_net_poll(r->net[end], done, 16)) > 0) {
		for (int i = 0; i < n; i++) {
			assert_int_equal(done[i].status, 0);
			r->ended[end]++;
		}
	}
	while (sdr_net_event(r->net[end], &ev) == 1) {
		if (ev.type == SDR_EV_DEAD || ev.type == SDR_EV_FAILED || ev.type == SDR_EV_STALLED)
			fail_msg("%s", ev.text);
		if (ev.type == SDR_EV_ACCEPTED)
			r->conn[1] = ev.conn;
	}
}

static void real_open(struct real *r)
{
	struct sdr_conn_attr attr = {.size = sizeof(attr)};

	for (int end = 1; end >= 0; end--) {
		struct sdr_net_attr na = {.size = sizeof(na)};
		struct sdr_ctx *ctx;
		struct sdr_ctx_attr ca = {
			.size = sizeof(ca), .bind_addr = "127.0.0.1", .listen = end == 1};

		assert_int_equal(sdr_ctx_create(&ca, &ctx), 0);
		na.use_ctx = ctx;
		assert_int_equal(sdr_net_create(&na, &r->net[end]), 0);
		assert_int_equal(sdr_conn_open(r->net[end], &attr, &r->conn[end]), 0);
	}
	for (int end = 0; end < 2; end++) {
		uint8_t blob[SDR_MAX_INFO_BYTES];
		struct sockaddr_in to = {.sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		struct sdr_connect_attr ca = {.size = sizeof(ca)};
		int len = sdr_conn_blob_get(r->conn[1 - end], blob, sizeof(blob));

		if (end == 0) {
			struct sdr_ctx_info info = {.size = sizeof(info)};

			(void)sdr_ctx_query(sdr_net_ctx(r->net[1]), &info);
			to.sin_port = htons(info.udp_port);
			ca.peer_addr = (struct sockaddr *)&to;
			ca.peer_addr_len = sizeof(to);
		}
		assert_int_equal(sdr_conn_blob_set(r->conn[end], blob, (size_t)len, &ca), 0);
	}
}

static void real_post(struct real *r, unsigned int n)
{
	struct sdr_op_wr wr = {.size = sizeof(wr), .length = BYTES};
	int err[2];

	for (unsigned int i = 0; i < n; i++) {
		wr.addr = r->dst;
		while ((err[1] = sdr_conn_recv_post(r->conn[1], &wr, NULL)) == -ENOTCONN ||
		       err[1] == -EAGAIN)
			for (int end = 0; end < 2; end++)
				take(r, end);
		wr.addr = r->src;
		while ((err[0] = sdr_write_post(r->conn[0], &wr, NULL)) == -ENOTCONN ||
		       err[0] == -EAGAIN)
			for (int end = 0; end < 2; end++)
				take(r, end);
		assert_int_equal(err[0] | err[1], 0);
	}
}

/* arg: by how many s the clock is set, forth and back, amid the writes */
void clock_step(struct lab *l)
{
	struct real r = {.src = malloc(BYTES), .dst = calloc(1, BYTES)};
	struct sdr_ctx *ctx[2];

	assert_true(r.src && r.dst);
	rng_init(&l->rng, l->seed);
	for (unsigned int i = 0; i < BYTES; i++)
		r.src[i] = (uint8_t)rng_next(&l->rng);
	real_open(&r);
	for (unsigned int i = 0; i < WRITES; i += 20) {
		real_post(&r, 20);
		step_s = i / 20 % 2 ? 0 : (int64_t)l->arg[0];
		while (r.ended[0] < i + 10 || r.ended[1] < i + 10)
			for (int end = 0; end < 2; end++)
				take(&r, end);
	}
	while (r.ended[0] < WRITES || r.ended[1] < WRITES)
		for (int end = 0; end < 2; end++)
			take(&r, end);
	assert_memory_equal(r.src, r.dst, BYTES);
	step_s = 0;
	for (int end = 0; end < 2; end++) {
		ctx[end] = sdr_net_ctx(r.net[end]);
		sdr_net_destroy(r.net[end]);
		sdr_ctx_destroy(ctx[end]);
	}
	free(r.src);
	free(r.dst);
}

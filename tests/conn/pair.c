/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver of pair.h.
 */
#include "pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct sdr_sim_device *pair_device;
bool pair_payload_off;
void (*pair_offered)(struct sdr_conn *conn, int end);
const struct sdr_sim_device pair_roce = {.size = sizeof(pair_roce), .like = "roce"};
const struct sdr_sim_device pair_nic = {.size = sizeof(pair_nic), .like = "nic"};

#define PAIR_STEPS_MAX UINT64_C(200000000)

static void take_events(struct pair *p, int end)
{
	struct sdr_completion done[32];
	struct sdr_event ev = {.size = sizeof(ev)};
	int n;

	done[0].size = sizeof(done[0]);
	while ((n = sdr_net_poll(p->net[end], done, 32)) > 0) {
		for (int i = 0; p->on_completion && i < n; i++)
			p->on_completion(p->arg, end, &done[i]);
	}
	while (sdr_net_event(p->net[end], &ev) == 1) {
		assert_true(ev.type < 16);
		p->events[end][ev.type]++;
		if (getenv("SDR_VERBOSE"))
			fprintf(stderr, "%.3f ms: end %d: %s\n", (double)pair_now(p) / 1e6, end,
				ev.text);
		if (ev.type == SDR_EV_FAILED || ev.type == SDR_EV_DEAD) {
			p->status[end] = ev.status;
			memcpy(p->text[end], ev.text, sizeof(ev.text));
		}
	}
}

uint64_t pair_now(const struct pair *p)
{
	return sdr_sim_now_ns(p->sim);
}

void pair_step(struct pair *p, uint64_t limit_ns)
{
	uint64_t next = limit_ns;

	for (int end = 0; end < 2; end++) {
		uint64_t at;

		if (!p->net[end])
			continue;
		assert_true(sdr_net_progress(p->net[end]) >= 0);
		take_events(p, end);
		if (!p->net[end])
			continue;
		at = sdr_net_next_deadline_ns(p->net[end]);
		next = at < next ? at : next;
	}
	assert_true(++p->steps < PAIR_STEPS_MAX);
	if (next > pair_now(p))
		(void)sdr_sim_step(p->sim, next);
}

void pair_run(struct pair *p, uint64_t until_ns)
{
	while (pair_now(p) < until_ns)
		pair_step(p, until_ns);
}

void pair_link(struct pair *p, const struct sdr_sim_link *link)
{
	assert_int_equal(sdr_sim_link_set(p->sim, p->host[0], p->host[1], SDR_CHANNEL_ANY, link),
			 0);
	assert_int_equal(sdr_sim_link_set(p->sim, p->host[1], p->host[0], SDR_CHANNEL_ANY, link),
			 0);
}

void pair_connect(struct pair *p, const struct sdr_conn_attr *attr0,
		  const struct sdr_conn_attr *attr1)
{
	const struct sdr_conn_attr *attr[2] = {attr0, attr1};
	uint8_t blob[2][SDR_MAX_INFO_BYTES];
	int len[2];

	for (int end = 0; end < 2; end++) {
		assert_int_equal(sdr_conn_open(p->net[end], attr[end], &p->conn[end]), 0);
		len[end] = sdr_conn_blob_get(p->conn[end], blob[end], sizeof(blob[end]));
		assert_true(len[end] > 0);
		if (pair_offered)
			pair_offered(p->conn[end], end);
	}
	for (int end = 0; end < 2; end++)
		assert_int_equal(
			sdr_conn_blob_set(p->conn[end], blob[1 - end], (size_t)len[1 - end], NULL),
			0);
}

void pair_open(struct pair *p, uint64_t seed, const struct sdr_sim_link *link,
	       const struct sdr_conn_attr *attr0, const struct sdr_conn_attr *attr1)
{
	memset(p, 0, sizeof(*p));
	assert_int_equal(sdr_sim_create(seed, &p->sim), 0);
	if (pair_payload_off)
		assert_int_equal(sdr_sim_payload_off(p->sim), 0);
	for (int end = 0; end < 2; end++)
		p->host[end] = sdr_sim_host(p->sim);
	pair_link(p, link);
	for (int end = 0; end < 2; end++) {
		struct sdr_ctx_attr ca = {.size = sizeof(ca), .listen = end == 1};
		struct sdr_net_attr na = {.size = sizeof(na)};
		assert_int_equal(sdr_sim_device_set(p->sim, p->host[end], pair_device), 0);
		ca.max_payload_bytes = pair_device ? 4096 : 0;
		assert_int_equal(sdr_sim_ctx_create(p->sim, p->host[end], &ca, &p->ctx[end]), 0);
		assert_int_equal(sdr_mr_reg(p->ctx[end], NULL, SIZE_MAX, 0, &p->mr[end]), 0);
		na.use_ctx = p->ctx[end];
		assert_int_equal(sdr_net_create(&na, &p->net[end]), 0);
	}
	pair_connect(p, attr0, attr1);
	while (!p->events[0][SDR_EV_CONNECTED] || !p->events[1][SDR_EV_CONNECTED]) {
		pair_step(p, pair_now(p) + SEC);
		if (p->events[0][SDR_EV_FAILED] || p->events[1][SDR_EV_FAILED])
			fail_msg("connecting failed: %s%s", p->text[0], p->text[1]);
	}
}

void pair_close(struct pair *p)
{
	for (int end = 0; end < 2; end++) {
		sdr_net_destroy(p->net[end]);
		sdr_mr_dereg(p->mr[end]);
		sdr_ctx_destroy(p->ctx[end]);
	}
	sdr_sim_destroy(p->sim);
	memset(p, 0, sizeof(*p));
}

uint64_t seed_first(uint64_t fallback)
{
	const char *text = getenv("SDR_SEED");

	return text ? strtoull(text, NULL, 0) : fallback;
}

unsigned int seed_count(unsigned int fallback)
{
	const char *text = getenv("SDR_SEEDS");

	if (getenv("SDR_SEED"))
		return 1;
	return text ? (unsigned int)strtoul(text, NULL, 0) : fallback;
}

void seed_replay(const char *program, uint64_t seed)
{
	fprintf(stderr, "replay: SDR_SEED=%llu %s\n", (unsigned long long)seed, program);
}

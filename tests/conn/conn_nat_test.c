/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections through what long paths do, in virtual time: a NAT that forgets, one of several
 * paths that is cut, a route that flaps. Whatever happens, the writes end with their bytes, and
 * within a time that a person would still call a hiccup. Bounds are a few times what was
 * measured.
 */
#include "pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sdr/counters.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH 100000u
#define WRITES 60u
#define RATE 100000000u
#define PATHS 4u

struct world {
	struct pair p;
	uint8_t *tx, *rx;
	unsigned int done[2]; /* writes, receives */
};

static const struct sdr_sim_link wire = {
	.size = sizeof(wire), .rate_bps = 10 * (uint64_t)RATE, .delay_ns = 10 * MS};

static void on_completion(void *arg, int end, const struct sdr_completion *c)
{
	struct world *w = arg;

	(void)end;
	assert_int_equal(c->status, 0);
	w->done[c->is_recv]++;
}

static void memory_open(struct world *w)
{
	w->tx = malloc(LENGTH);
	w->rx = calloc(WRITES, LENGTH);
	assert_true(w->tx && w->rx);
	for (size_t i = 0; i < LENGTH; i++)
		w->tx[i] = (uint8_t)(i * 7 + (i >> 9));
}

/* Both ends are there, joined by `wire` and not connected yet. */
static void world_open(struct world *w, uint64_t seed)
{
	struct pair *p = &w->p;

	memset(w, 0, sizeof(*w));
	memory_open(w);
	assert_int_equal(sdr_sim_create(seed, &p->sim), 0);
	for (int end = 0; end < 2; end++)
		p->host[end] = sdr_sim_host(p->sim);
	pair_link(p, &wire);
	for (int end = 0; end < 2; end++) {
		struct sdr_ctx_attr ca = {.size = sizeof(ca), .listen = end == 1};
		struct sdr_net_attr na = {.size = sizeof(na)};

		assert_int_equal(sdr_sim_ctx_create(p->sim, p->host[end], &ca, &p->ctx[end]), 0);
		na.use_ctx = p->ctx[end];
		assert_int_equal(sdr_net_create(&na, &p->net[end]), 0);
	}
	p->on_completion = on_completion;
	p->arg = w;
}

/* End 0 is the active one. */
static void world_connect(struct world *w, uint32_t channels)
{
	const struct sdr_conn_attr attr = {
		.size = sizeof(attr), .channels = channels, .rate_bps = RATE};
	struct pair *p = &w->p;

	pair_connect(p, &attr, &attr);
	while (!p->events[0][SDR_EV_CONNECTED] || !p->events[1][SDR_EV_CONNECTED]) {
		pair_step(p, pair_now(p) + SEC);
		assert_true(pair_now(p) < 10 * SEC);
	}
}

static void world_close(struct world *w)
{
	for (int end = 0; end < 2; end++)
		assert_int_equal(w->p.events[end][SDR_EV_DEAD], 0);
	pair_close(&w->p);
	free(w->tx);
	free(w->rx);
}

static void post_all(struct world *w, int from)
{
	struct sdr_op_wr wr = {.size = sizeof(wr), .length = LENGTH};

	w->done[0] = w->done[1] = 0;
	memset(w->rx, 0, (size_t)WRITES * LENGTH);
	for (unsigned int i = 0; i < WRITES; i++) {
		wr.addr = w->rx + (size_t)i * LENGTH;
		assert_int_equal(sdr_conn_recv_post(w->p.conn[1 - from], &wr, NULL), 0);
		wr.addr = w->tx;
		assert_int_equal(sdr_write_post(w->p.conn[from], &wr, NULL), 0);
	}
}

/* Until that many have been received. */
static void run_to(struct world *w, unsigned int received, uint64_t limit_ns)
{
	while (w->done[1] < received) {
		assert_true(pair_now(&w->p) < limit_ns);
		pair_step(&w->p, limit_ns);
	}
}

/* To the end of all; how long it took from start_ns on. */
static uint64_t finish(struct world *w, uint64_t start_ns, uint64_t limit_ns)
{
	while (w->done[0] < WRITES || w->done[1] < WRITES) {
		if (pair_now(&w->p) >= start_ns + limit_ns)
			fail_msg("after %llu ms %u writes and %u receives have ended",
				 (unsigned long long)(limit_ns / MS), w->done[0], w->done[1]);
		pair_step(&w->p, start_ns + limit_ns);
	}
	for (unsigned int i = 0; i < WRITES; i++)
		assert_memory_equal(w->rx + (size_t)i * LENGTH, w->tx, LENGTH);
	return pair_now(&w->p) - start_ns;
}

static struct sdr_sim_nat_info nat_info(const struct world *w)
{
	struct sdr_sim_nat_info info = {.size = sizeof(info)};

	assert_int_equal(sdr_sim_nat_query(w->p.sim, w->p.host[0], &info), 0);
	return info;
}

static uint64_t path_changes(const struct world *w)
{
	uint64_t sum[SDR_CTR_COUNT];

	(void)sdr_counters_get(w->p.ctx[1], sum, SDR_CTR_COUNT);
	return sum[SDR_CTR_path_changes];
}

static void rebind_under_load(int from, uint32_t channels, uint64_t seed)
{
	struct world w;
	uint64_t start, took;

	world_open(&w, seed);
	assert_int_equal(sdr_sim_nat_set(w.p.sim, w.p.host[0], 0, 0), 0);
	world_connect(&w, channels);
	start = pair_now(&w.p);
	post_all(&w, from);
	run_to(&w, WRITES / 3, start + 5 * SEC);
	assert_int_equal(nat_info(&w).lost_pkts, 0);
	assert_int_equal(sdr_sim_nat_rebind(w.p.sim, w.p.host[0]), 0);
	took = finish(&w, start, 10 * SEC);
	printf("%u channels, %s end writes: %llu ms\n", channels, from ? "passive" : "active",
	       (unsigned long long)(took / MS));
	assert_int_equal(nat_info(&w).rebinds, 1);
	assert_true(nat_info(&w).lost_pkts > 0); /* writes or ACKs: to the old port */
	/* Every channel moves, the last with the next PING. */
	while (path_changes(&w) < channels) {
		assert_true(pair_now(&w.p) < start + 60 * SEC);
		pair_step(&w.p, start + 60 * SEC);
	}
	/* And all is as before. */
	start = pair_now(&w.p);
	post_all(&w, 1 - from);
	(void)finish(&w, start, 5 * SEC);
	world_close(&w);
}

static void nat_forgets_under_load(void **state)
{
	static const uint32_t channels[] = {1, 4};

	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++)
		for (int i = 0; i < 4; i++)
			rebind_under_load(i & 1, channels[i >> 1], seed);
}

/* Nobody has sent for long: the passive end cannot know; the active end's idle PING tells it. */
static void nat_forgets_when_idle(void **state)
{
	struct world w;
	uint64_t start, took;

	(void)state;
	for (int from = 0; from < 2; from++) {
		world_open(&w, 5);
		assert_int_equal(sdr_sim_nat_set(w.p.sim, w.p.host[0], 0, 0), 0);
		world_connect(&w, 1);
		pair_run(&w.p, 20 * SEC);
		assert_int_equal(sdr_sim_nat_rebind(w.p.sim, w.p.host[0]), 0);
		start = pair_now(&w.p);
		post_all(&w, from);
		took = finish(&w, start, from ? 28 * SEC : 10 * SEC);
		printf("idle, then the %s end writes: %llu ms\n", from ? "passive" : "active",
		       (unsigned long long)(took / MS));
		world_close(&w);
	}
}

/* It forgets by itself, again and again, while data flows both ways. */
static void nat_forgets_often(void **state)
{
	struct world w;
	uint64_t start;

	(void)state;
	world_open(&w, 6);
	assert_int_equal(sdr_sim_nat_set(w.p.sim, w.p.host[0], 0, 3 * SEC), 0);
	world_connect(&w, 2);
	for (int round = 0; round < 10; round++) {
		start = pair_now(&w.p);
		post_all(&w, round & 1);
		(void)finish(&w, start, 20 * SEC);
		pair_run(&w.p, start + 2 * SEC);
	}
	assert_true(nat_info(&w).rebinds >= 6);
	world_close(&w);
}

static void set_paths(struct world *w, const struct sdr_sim_link *links)
{
	for (int end = 0; end < 2; end++)
		assert_int_equal(sdr_sim_paths_set(w->p.sim, w->p.host[end], w->p.host[1 - end],
						   PATHS, links),
				 0);
}

static struct sdr_sim_link_info path_info(const struct world *w, int from, uint32_t path)
{
	struct sdr_sim_link_info info = {.size = sizeof(info)};

	assert_int_equal(
		sdr_sim_path_query(w->p.sim, w->p.host[from], w->p.host[1 - from], path, &info), 0);
	return info;
}

static struct sdr_sim_link_info link_info(const struct world *w, int from)
{
	struct sdr_sim_link_info info = {.size = sizeof(info)};

	assert_int_equal(sdr_sim_link_query(w->p.sim, w->p.host[from], w->p.host[1 - from],
					    SDR_CHANNEL_ANY, &info),
			 0);
	return info;
}

/* The path that carries most of what `from` sends. */
static uint32_t busiest(const struct world *w, int from)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < PATHS; i++)
		if (path_info(w, from, i).offered_pkts > path_info(w, from, best).offered_pkts)
			best = i;
	return best;
}

static unsigned int in_use(const struct world *w, int from)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < PATHS; i++)
		n += path_info(w, from, i).offered_pkts > 0;
	return n;
}

static void cut_one(int from, uint64_t seed)
{
	struct sdr_sim_link links[PATHS] = {wire, wire, wire, wire};
	uint64_t start, took;
	struct world w;
	uint32_t gone;

	world_open(&w, seed);
	set_paths(&w, links);
	world_connect(&w, 8);
	start = pair_now(&w.p);
	post_all(&w, from);
	run_to(&w, WRITES / 3, start + 5 * SEC);
	assert_true(in_use(&w, from) > 1);
	gone = busiest(&w, from);
	assert_int_equal(path_info(&w, from, gone).lost_pkts, 0);
	links[gone].cut = 1;
	assert_int_equal(
		sdr_sim_paths_set(w.p.sim, w.p.host[from], w.p.host[1 - from], PATHS, links), 0);
	took = finish(&w, start, 10 * SEC);
	printf("path %u of %u cut, %s end writes: %llu ms, %llu packets lost\n", gone, PATHS,
	       from ? "passive" : "active", (unsigned long long)(took / MS),
	       (unsigned long long)path_info(&w, from, gone).lost_pkts);
	assert_true(path_info(&w, from, gone).lost_pkts > 0);
	for (uint32_t i = 0; i < PATHS; i++)
		assert_true(i == gone || path_info(&w, from, i).lost_pkts == 0);
	assert_int_equal(link_info(&w, from).offered_pkts, 0); /* the pair's own */
	/* Mended. */
	links[gone].cut = 0;
	set_paths(&w, links);
	start = pair_now(&w.p);
	post_all(&w, from);
	(void)finish(&w, start, 10 * SEC);
	world_close(&w);
}

static void one_path_of_four_is_cut(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++)
		for (int from = 0; from < 2; from++)
			cut_one(from, seed);
}

/* The route is longer for a while, and shorter again: nothing is lost, so little is resent. */
static void a_route_flaps(void **state)
{
	(void)state;
	for (int from = 0; from < 2; from++) {
		struct sdr_sim_link flapping = wire;
		struct sdr_conn_info info = {.size = sizeof(info)};
		uint64_t start, took, calm;
		struct world w;

		world_open(&w, 9);
		world_connect(&w, 2);
		start = pair_now(&w.p);
		post_all(&w, from);
		calm = finish(&w, start, 5 * SEC);
		flapping.flap_first_ns = pair_now(&w.p) + 50 * MS;
		flapping.flap_every_ns = 100 * MS;
		flapping.flap_for_ns = 40 * MS;
		flapping.flap_delay_ns = 30 * MS;
		pair_link(&w.p, &flapping);
		start = pair_now(&w.p);
		post_all(&w, from);
		took = finish(&w, start, 10 * SEC);
		sdr_conn_query(w.p.conn[from], &info);
		printf("flaps, %s end writes: %llu ms (calm: %llu), %llu of %llu resent\n",
		       from ? "passive" : "active", (unsigned long long)(took / MS),
		       (unsigned long long)(calm / MS), (unsigned long long)info.tx_resent_pkts,
		       (unsigned long long)info.tx_pkts);
		assert_int_equal(link_info(&w, from).lost_pkts, 0);
		assert_true(took >= calm);
		assert_true(took < 4 * calm);
		world_close(&w);
	}
}

/*
 * The NAT forgets, and the other end closes before it can know the new address: its CLOSE goes to
 * nowhere and it gives up. Once the end behind the NAT speaks, it is told after all.
 */
static void nat_forgets_before_the_close(void **state)
{
	struct world w;
	uint64_t at;

	(void)state;
	world_open(&w, 6);
	assert_int_equal(sdr_sim_nat_set(w.p.sim, w.p.host[0], 0, 0), 0);
	world_connect(&w, 1);
	pair_run(&w.p, pair_now(&w.p) + 20 * SEC);
	assert_int_equal(sdr_sim_nat_rebind(w.p.sim, w.p.host[0]), 0);
	at = pair_now(&w.p);
	assert_int_equal(sdr_conn_close(w.p.conn[1]), 0);
	pair_run(&w.p, at + 16 * SEC); /* an idle end asks every 15 s */
	assert_int_equal(w.p.events[1][SDR_EV_CLOSED], 1);
	assert_int_equal(w.p.events[0][SDR_EV_CLOSED], 1);
	world_close(&w);
}

/*
 * The NAT forgets before every PING: none of them comes from the address that the other end has.
 * The answer to its own question proves that address, and connects it.
 */
static void nat_forgets_before_every_ping(void **state)
{
	const struct sdr_conn_attr attr = {.size = sizeof(attr), .rate_bps = RATE};
	struct sdr_connect_attr ca = {.size = sizeof(ca), .rtt_ns = 20 * MS};
	uint8_t blob[2][SDR_MAX_INFO_BYTES];
	struct world w;
	int len[2];

	(void)state;
	world_open(&w, 7);
	assert_int_equal(sdr_sim_nat_set(w.p.sim, w.p.host[0], 0, 0), 0);
	for (int end = 0; end < 2; end++) {
		assert_int_equal(sdr_conn_open(w.p.net[end], &attr, &w.p.conn[end]), 0);
		len[end] = sdr_conn_blob_get(w.p.conn[end], blob[end], sizeof(blob[end]));
	}
	/* The active end's trains come before the passive one's blob: they bring an address ... */
	assert_int_equal(sdr_conn_blob_set(w.p.conn[0], blob[1], (size_t)len[1], &ca), 0);
	pair_run(&w.p, 15 * MS);
	assert_int_equal(sdr_conn_blob_set(w.p.conn[1], blob[0], (size_t)len[0], &ca), 0);
	/* ... which is another one each time that there is a PING. */
	while (!w.p.events[1][SDR_EV_CONNECTED] && pair_now(&w.p) < 5 * SEC) {
		assert_int_equal(sdr_sim_nat_rebind(w.p.sim, w.p.host[0]), 0);
		pair_run(&w.p, pair_now(&w.p) + 45 * MS);
	}
	assert_int_equal(w.p.events[1][SDR_EV_CONNECTED], 1);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nat_forgets_under_load),
		cmocka_unit_test(nat_forgets_when_idle),
		cmocka_unit_test(nat_forgets_often),
		cmocka_unit_test(one_path_of_four_is_cut),
		cmocka_unit_test(a_route_flaps),
		cmocka_unit_test(nat_forgets_before_the_close),
		cmocka_unit_test(nat_forgets_before_every_ping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

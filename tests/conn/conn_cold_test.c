/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long, lossy links, in virtual time, as scenarios that are data: how long a cold
 * transfer may take from the first SYN on, and how two flows share. Time is virtual, so these are
 * facts about the protocol, not about this machine; a protocol that becomes slower fails.
 */
#include "pair.h"
#include "wan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB UINT64_C(1048576)
#define GBIT UINT64_C(1000000000)
#define MBIT UINT64_C(1000000)

#define FOR_SEEDS(seed, n) \
	for (uint64_t first_ = seed_first(1), seed = first_; seed < first_ + seed_count(n); seed++)

static void run(const struct wan_config *c, struct wan_result *r)
{
	seed_replay("conn_cold_test", c->seed);
	assert_int_equal(wan_run(c, r), 0);
	assert_false(r->gave_up);
}

/* ---- cold transfers ---- */

/*
 * From the first SYN to the acknowledgement of the last byte, in RTTs beyond T* = bytes / (what
 * arrives of the link) + RTT. Three of them are the handshake: TCP, HELLO, PING. Repairs of
 * the last packets, and of their repairs, take one each.
 */
struct cold {
	uint64_t rate_bps, rtt_ns;
	double loss, burst_pkts, queue_bdp;
	uint64_t bytes;
	bool old_peer; /* measures no trains: the rate is found by doubling */
	double max_rtts;
};

static const struct cold colds[] = {
	{GBIT, 100 * MS, 0, 1, 1, MIB, false, 3.2},
	{GBIT, 100 * MS, 0.01, 1, 1, MIB, false, 5.4},
	{GBIT, 100 * MS, 0.01, 1, 1, 16 * MIB, false, 6.2},
	{GBIT, 100 * MS, 0.01, 1, 1, 128 * MIB, false, 6.5},
	{GBIT, 100 * MS, 0.01, 8, 0.25, 128 * MIB, false, 7},
	{GBIT, 25 * MS, 0.01, 1, 1, 128 * MIB, false, 7},
	{100 * MBIT, 100 * MS, 0.01, 1, 1, 16 * MIB, false, 7},
	{10 * MBIT, 25 * MS, 0.01, 1, 1, MIB, false, 8},
	{GBIT, 100 * MS, 0.01, 1, 1, 128 * MIB, true, 16},
};

static void cold_check(const struct cold *s, uint64_t seed)
{
	struct wan_config c = {.seed = seed,
			       .rate_bps = s->rate_bps,
			       .rtt_ns = s->rtt_ns,
			       .loss = s->loss,
			       .burst_pkts = s->burst_pkts,
			       .queue_bdp = s->queue_bdp,
			       .size = MIB,
			       .depth = 128,
			       .bytes = s->bytes,
			       .old_peer = s->old_peer};
	struct wan_result r;
	double took, rtts;

	run(&c, &r);
	took = (double)(r.flow[0].done_ns - r.flow[0].start_ns);
	rtts = (took - wan_ideal_ns(&c, c.bytes)) / (double)c.rtt_ns;
	printf("%5.0f Mbit %5.0f ms loss %-6g burst %g %4llu MiB%s: %8.1f ms, %5.2f RTT beyond "
	       "T*\n",
	       (double)c.rate_bps / 1e6, (double)c.rtt_ns / 1e6, c.loss, c.burst_pkts,
	       (unsigned long long)(c.bytes / MIB), c.old_peer ? " to an old peer" : "", took / 1e6,
	       rtts);
	assert_true(rtts <= s->max_rtts);
}

static void cold_transfers(void **state)
{
	(void)state;
	FOR_SEEDS(seed, 2)
	{
		for (size_t i = 0; i < sizeof(colds) / sizeof(colds[0]); i++)
			cold_check(&colds[i], seed);
	}
}

/* The aim: 1 GiB within a tenth of the time that the link takes for it at best. */
static void a_gibibyte(void **state)
{
	(void)state;
	FOR_SEEDS(seed, 2)
	{
		struct wan_config c = {.seed = seed,
				       .rate_bps = GBIT,
				       .rtt_ns = 100 * MS,
				       .loss = 0.01,
				       .queue_bdp = 1,
				       .size = MIB,
				       .depth = 128,
				       .bytes = 1024 * MIB};
		struct wan_result r;
		double took;

		run(&c, &r);
		took = (double)(r.flow[0].done_ns - r.flow[0].start_ns);
		printf("1 GiB: %.1f ms, %.3f T*\n", took / 1e6, took / wan_ideal_ns(&c, c.bytes));
		assert_true(took <= 1.08 * wan_ideal_ns(&c, c.bytes));
		assert_true(r.max_queue_all_ns <= 0.5 * (double)c.rtt_ns);
	}
}

/* ---- sharing ---- */

static void two_flows(void **state)
{
	static const double queues[] = {0.25, 1, 2};

	(void)state;
	FOR_SEEDS(seed, 2)
	{
		for (size_t i = 0; i < 6; i++) {
			struct wan_config c = {.seed = seed,
					       .rate_bps = 200 * MBIT,
					       .rtt_ns = 50 * MS,
					       .loss = i % 2 ? 0.01 : 0,
					       .queue_bdp = queues[i / 2],
					       .size = MIB / 4,
					       .depth = 128,
					       .flows = 2,
					       .stagger_ns = 30 * 50 * MS,
					       .duration_ns = 30 * 50 * MS};
			double share[2][2];
			struct wan_result r;

			/* While the second one comes in cold, and 30 round trips later. */
			for (int later = 0; later < 2; later++) {
				c.skip_ns = (uint64_t)(30 + 3 + 30 * later) * c.rtt_ns;
				run(&c, &r);
				for (int k = 0; k < 2; k++)
					share[later][k] = (double)r.flow[k].bytes * 8e9 /
							  (double)c.duration_ns / wan_share_bps(&c);
			}
			printf("queue %-4g loss %-4g: at first %.2f %.2f, then %.2f %.2f\n",
			       c.queue_bdp, c.loss, share[0][0], share[0][1], share[1][0],
			       share[1][1]);
			assert_true(share[0][0] >= 0.3); /* is not pushed aside ... */
			assert_true(share[1][0] >= 0.2 && share[1][1] >= 0.2);
			assert_true(share[1][0] + share[1][1] >= 0.9);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cold_transfers),
		cmocka_unit_test(a_gibibyte),
		cmocka_unit_test(two_flows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

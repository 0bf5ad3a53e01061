/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long, lossy links, in virtual time, as scenarios that are data: what part of the link a
 * stream must use, and what it may send in vain. Time is virtual, so these are facts about the
 * protocol, not about this machine; a protocol that becomes slower fails.
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
	seed_replay("conn_wan_test", c->seed);
	assert_int_equal(wan_run(c, r), 0);
	assert_false(r->gave_up);
}

static double part(uint64_t some, uint64_t all)
{
	return all ? (double)some / (double)all : 0;
}

/* ---- streams ---- */

struct stream {
	uint64_t rate_bps, rtt_ns;
	double loss, burst_pkts, ack_loss, queue_bdp;
	uint64_t size;
	unsigned int depth;
};

static const struct stream streams[] = {
	{GBIT, 100 * MS, 0, 1, 0, 1, MIB, 128},
	{GBIT, 100 * MS, 0.0001, 1, 0, 0.25, MIB, 128},
	{GBIT, 100 * MS, 0.001, 8, 0, 1, MIB, 128},
	{GBIT, 100 * MS, 0.01, 1, 0, 1, MIB, 128},
	{GBIT, 100 * MS, 0.01, 8, 0.01, 0.25, MIB, 128},
	{GBIT, 100 * MS, 0.05, 1, 0.05, 1, MIB, 128},
	{GBIT, 100 * MS, 0.05, 8, 0, 1, MIB, 128},
	{GBIT, 100 * MS, 0.1, 1, 0, 1, MIB, 128},
	{GBIT, 100 * MS, 0.1, 8, 0.1, 1, MIB, 128},
	{GBIT, 100 * MS, 0, 1, 0, 1, MIB / 16, 512}, /* grants and endings in step */
	{GBIT, 10 * MS, 0.01, 1, 0, 1, MIB / 16, 128},
	{GBIT, 10 * MS, 0.05, 8, 0, 1, MIB, 128},
	{GBIT, 25 * MS, 0.05, 8, 0.05, 1, MIB, 128},
	{GBIT, 200 * MS, 0.01, 1, 0, 1, MIB, 128},
	{GBIT, 200 * MS, 0.1, 1, 0, 1, MIB, 128},
	{100 * MBIT, 100 * MS, 0.01, 8, 0, 1, MIB, 128},
	{100 * MBIT, 100 * MS, 0.1, 1, 0, 1, MIB / 16, 128},
	{10 * GBIT, 10 * MS, 0.01, 1, 0.01, 1, MIB, 128},
};

static void stream_check(const struct stream *s, uint64_t seed)
{
	struct wan_config c = {.seed = seed,
			       .rate_bps = s->rate_bps,
			       .rtt_ns = s->rtt_ns,
			       .loss = s->loss,
			       .burst_pkts = s->burst_pkts,
			       .ack_loss = s->ack_loss,
			       .queue_bdp = s->queue_bdp,
			       .size = s->size,
			       .depth = s->depth,
			       .skip_ns = 15 * s->rtt_ns,
			       .duration_ns = 20 * s->rtt_ns};
	const struct wan_flow_result *f;
	struct wan_result r;
	double share, resent, needless;

	/* Long enough for the mean of bursts to be near what they are set to. */
	if (c.burst_pkts > 1)
		c.duration_ns = (s->loss > 0.05 ? 4 : 2) * SEC;
	run(&c, &r);
	f = &r.flow[0];
	share = r.goodput_bps / wan_share_bps(&c);
	resent = part(f->resent_pkts, f->tx_pkts);
	needless = part(f->duplicate_pkts, f->tx_pkts);
	printf("%5.0f Mbit %5.0f ms loss %-6g burst %g acks %-5g queue %-4g: %6.2f %%, resent "
	       "%5.2f %%, needless %.3f %%, queue %6.2f ms\n",
	       (double)c.rate_bps / 1e6, (double)c.rtt_ns / 1e6, c.loss, c.burst_pkts, c.ack_loss,
	       c.queue_bdp, 100 * share, 100 * resent, 100 * needless, r.mean_queue_ns / 1e6);
	/* What a run loses varies around the mean, most where losses come in bursts. */
	assert_true(share >= 0.97);
	assert_true(resent <= 1.15 * c.loss + 0.005);
	assert_true(needless <= 0.001);
	assert_true(r.mean_queue_ns <= 0.25 * (double)c.rtt_ns);
}

static void streams_fill_the_link(void **state)
{
	(void)state;
	FOR_SEEDS(seed, 1)
	{
		for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++)
			stream_check(&streams[i], seed);
	}
}

/* ---- a link that becomes another one ---- */

static const struct {
	uint64_t rate_bps, rtt_ns, turn_rate_bps, turn_rtt_ns;
	double queue_bdp;
} turns[] = {
	{GBIT, 100 * MS, 100 * MBIT, 0, 0.1},  {100 * MBIT, 100 * MS, GBIT, 0, 1},
	{100 * MBIT, 20 * MS, 0, 400 * MS, 1}, {100 * MBIT, 60 * MS, 0, 400 * MS, 1},
	{100 * MBIT, 200 * MS, 0, 20 * MS, 1},
};

/* A stream uses at least half of it from 20 round trips on. */
static void turns_are_followed(void **state)
{
	(void)state;
	FOR_SEEDS(seed, 1)
	{
		for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
			uint64_t rtt =
				turns[i].turn_rtt_ns ? turns[i].turn_rtt_ns : turns[i].rtt_ns;
			struct wan_config c = {.seed = seed,
					       .rate_bps = turns[i].rate_bps,
					       .rtt_ns = turns[i].rtt_ns,
					       .loss = 0.001,
					       .queue_bdp = turns[i].queue_bdp,
					       .size = MIB,
					       .depth = 128,
					       .turn_ns = 4 * SEC,
					       .turn_rate_bps = turns[i].turn_rate_bps,
					       .turn_rtt_ns = turns[i].turn_rtt_ns,
					       .skip_ns = 4 * SEC + 20 * rtt,
					       .duration_ns = 5 * rtt};
			struct wan_result r;
			double share;

			run(&c, &r);
			share = r.goodput_bps / wan_share_bps(&c);
			printf("%.0f Mbit %.0f ms, then %.0f Mbit %.0f ms: %.1f %%\n",
			       (double)c.rate_bps / 1e6, (double)c.rtt_ns / 1e6,
			       (double)c.turn_rate_bps / 1e6, (double)c.turn_rtt_ns / 1e6,
			       100 * share);
			assert_true(share >= 0.5);
		}
	}
}

/* A write now and then, on a link with a queue of 64 packets: no lateness to catch up with. */
static void writes_now_and_then(void **state)
{
	(void)state;
	FOR_SEEDS(seed, 1)
	{
		for (uint64_t every = 12 * MS; every <= 48 * MS; every *= 2) {
			struct wan_config c = {.seed = seed,
					       .rate_bps = GBIT,
					       .rtt_ns = 100 * MS,
					       .queue_bdp = 0.0077,
					       .size = MIB,
					       .depth = 128,
					       .every_ns = every,
					       .skip_ns = 2 * SEC,
					       .duration_ns = 2 * SEC};
			const double offered = (double)MIB * 8e9 / (double)every;
			struct wan_result r;
			double resent;

			run(&c, &r);
			resent = part(r.flow[0].resent_pkts, r.flow[0].tx_pkts);
			printf("1 MiB every %.0f ms: %.1f %% of it arrives, resent %.2f %%\n",
			       (double)every / 1e6, 100 * r.goodput_bps / offered, 100 * resent);
			assert_true(r.goodput_bps >= 0.97 * offered);
			assert_true(resent <= 0.02);
		}
	}
}

/*
 * Hosts that run late (a hypervisor, an emulator, a busy machine): the pacer makes up for it, and
 * what it could not send is not taken for what the path carries.
 */
static void hosts_that_run_late(void **state)
{
	static const struct {
		uint64_t grain_ns, jitter_ns;
		double least;
	} late[] = {
		{MS, 0, 0.85},
		{MS, 5 * MS, 0.8},
		{5 * MS, 0, 0.5},
		{5 * MS, 5 * MS, 0.45},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(late) / sizeof(late[0]); i++) {
		struct wan_config c = {.seed = 1,
				       .rate_bps = 200 * MBIT,
				       .rtt_ns = 2 * MS,
				       .queue_bdp = 4,
				       .size = MIB / 4,
				       .depth = 128,
				       .skip_ns = 1000 * MS,
				       .duration_ns = 2000 * MS,
				       .grain_ns = late[i].grain_ns,
				       .jitter_ns = late[i].jitter_ns};
		struct wan_result r;
		double share;

		run(&c, &r);
		share = r.goodput_bps / wan_share_bps(&c);
		printf("hosts that look each %.0f ms, jitter %.0f ms: %.3f of the link\n",
		       (double)c.grain_ns / 1e6, (double)c.jitter_ns / 1e6, share);
		assert_true(share >= late[i].least);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_fill_the_link),
		cmocka_unit_test(turns_are_followed),
		cmocka_unit_test(writes_now_and_then),
		cmocka_unit_test(hosts_that_run_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a message is said again, unasked, where a round trip is long: the news that is lost
 * costs its sender a part of one.
 */
#include "pair.h"
#include "send_facts.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define BYTES 1000u

static uint8_t src[BYTES], dst[BYTES];

/* Both ways; what comes back may be lost. */
static void links(struct pair *p, uint64_t rtt_ns, bool back_cut)
{
	const struct sdr_sim_link forth = {
		.size = sizeof(forth), .rate_bps = 10000000000, .delay_ns = rtt_ns / 2};
	struct sdr_sim_link back = forth;

	back.cut = back_cut;
	pair_link(p, &forth, &back);
}

static bool has_arrived(void *recv)
{
	struct sdr_recv_info info = {.size = sizeof(info)};

	return sdr_recv_query(recv, &info) == 0 && info.end_known;
}

static uint64_t said(const struct pair *p)
{
	struct sdr_sim_link_info info = {.size = sizeof(info)};

	assert_int_equal(sdr_sim_link_query(p->sim, 1, 0, SDR_CHANNEL_ANY, &info), 0);
	return info.offered_pkts;
}

/* From the receive's completion until the sender knows; what comes back is lost for lost_ns. */
static uint64_t news_ns(struct pair *p, uint64_t rtt_ns, uint64_t lost_ns)
{
	const struct sdr_recv_wr rwr = {.size = sizeof(rwr), .addr = dst, .length = BYTES};
	const struct sdr_send_wr swr = {.size = sizeof(swr),
					.opcode = SDR_OP_WRITE,
					.length = BYTES,
					.addr = src,
					.mr = p->mr[0]};
	struct sdr_recv *recv;
	struct sdr_send *send;
	uint64_t from;

	assert_int_equal(sdr_recv_post(p->qp[1], &rwr, &recv), 0);
	assert_int_equal(sdr_send_post(p->qp[0], &swr, &send), 0);
	assert_true(pair_run(p, has_arrived, recv, SEC));
	from = sdr_sim_now_ns(p->sim);
	links(p, rtt_ns, lost_ns > 0);
	assert_int_equal(sdr_recv_complete(recv), 1);
	(void)pair_run(p, pair_never, NULL, lost_ns);
	links(p, rtt_ns, false);
	assert_true(pair_run(p, is_done, send, SEC));
	return sdr_sim_now_ns(p->sim) - from;
}

static void open_pair(struct pair *p, uint64_t rtt_ns)
{
	pair_open(p, 1, NULL);
	links(p, rtt_ns, false);
	pair_connect(p);
	(void)news_ns(p, rtt_ns, 0); /* both ends know the round trip */
	(void)pair_run(p, pair_never, NULL, 10 * rtt_ns);
}

/* The first is lost, or the first two or three: said a 128th of a round trip later, then a 64th ...
 */
static void test_lost_news_costs_a_part_of_a_round_trip(void **state)
{
	const uint64_t rtt = 20 * MS, turn = rtt / 128;
	struct pair p;

	(void)state;
	open_pair(&p, rtt);
	assert_in_range(news_ns(&p, rtt, 0), rtt / 2, rtt / 2 + turn);
	assert_in_range(news_ns(&p, rtt, turn / 2), rtt / 2 + turn, rtt / 2 + turn + turn / 2);
	assert_in_range(news_ns(&p, rtt, 2 * turn), rtt / 2 + 3 * turn,
			rtt / 2 + 3 * turn + turn / 2);
	assert_in_range(news_ns(&p, rtt, 6 * turn), rtt / 2 + 7 * turn,
			rtt / 2 + 7 * turn + turn / 2);
	pair_close(&p);
}

/* Five times in all. */
static void test_it_ends(void **state)
{
	const uint64_t rtt = 20 * MS;
	struct pair p;
	uint64_t before;

	(void)state;
	open_pair(&p, rtt);
	before = said(&p);
	(void)news_ns(&p, rtt, 0);
	(void)pair_run(&p, pair_never, NULL, rtt);
	/* The grant (which repeats until its echo, a round trip), and the end five times. */
	assert_in_range(said(&p) - before, 6, 8);
	pair_close(&p);
}

/* Where asking is quick, and packets count, it is said once. */
static void test_short_paths_say_it_once(void **state)
{
	const uint64_t rtt = MS / 2;
	struct pair p;
	uint64_t before;

	(void)state;
	open_pair(&p, rtt);
	assert_true(news_ns(&p, rtt, rtt / 4) > rtt);
	before = said(&p);
	(void)news_ns(&p, rtt, 0);
	(void)pair_run(&p, pair_never, NULL, rtt);
	assert_in_range(said(&p) - before, 2, 3);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost_news_costs_a_part_of_a_round_trip),
		cmocka_unit_test(test_it_ends),
		cmocka_unit_test(test_short_paths_say_it_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

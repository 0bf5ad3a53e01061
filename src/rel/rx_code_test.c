/* SPDX-License-Identifier: Apache-2.0 */
/* The receiver's blocks: the edges one by one, beside the twin. Random ones: rx_code_random_test.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <errno.h>

#include "base/alloc_failing.h"
#include "rel/rx_code_twin.h"

static void bad_codings(void **state)
{
	static const struct rel_coding bad[] = {
		{REL_CODE_NONE, 8, 2, 1, 0, 100, 50, 0, 0, 0, {0}},
		{(enum rel_code)3, 8, 2, 1, 0, 100, 50, 0, 0, 0, {0}},
		{REL_CODE_RS, 0, 2, 1, 0, 100, 50, 0, 0, 0, {0}},
		{REL_CODE_RS, 8, 0, 1, 0, 100, 50, 0, 0, 0, {0}},
		{REL_CODE_RS, 200, 56, 1, 0, 100, 50, 0, 0, 0, {0}},
		{REL_CODE_RS, UINT32_MAX, 2, 1, 0, 100, 50, 0, 0, 0, {0}},
		{REL_CODE_RS, 8, UINT32_MAX, 1, 0, 100, 50, 0, 0, 0, {0}},
		{REL_CODE_XOR, 4, 5, 1, 0, 100, 50, 0, 0, 0, {0}},
		{REL_CODE_RS, 8, 2, 0, 0, 100, 50, 0, 0, 0, {0}},
		{REL_CODE_RS, 8, 2, REL_DEPTH_MAX + 1, 0, 100, 50, 0, 0, 0, {0}},
		{REL_CODE_RS, 8, 2, 1, 0, 0, 50, 0, 0, 0, {0}},
		{REL_CODE_RS, 8, 2, 1, 0, 101, 50, 0, 0, 0, {0}},
		{REL_CODE_RS, 8, 2, 1, 100, 1, 50, 0, 0, 0, {0}},
		{REL_CODE_RS, 8, 2, 1, UINT32_MAX, 2, 50, 0, 0, 0, {0}},
	};
	const struct rel_coding good = {
		.code = REL_CODE_RS, .k = 8, .m = 2, .depth = 1, .span_pkts = 100};
	struct rel_coding other = good;
	struct rel_rx_params params = {0};
	struct rel_rx rx;
	uint64_t word = 1;
	(void)state;
	assert_int_equal(rel_rx_init(&rx, &params, &sdr_alloc_system), 0);
	assert_int_equal(rel_rx_code(&rx, 0, &good), -EINVAL); /* no such message */
	assert_int_equal(rel_rx_open(&rx, 0, 100), 0);
	assert_int_equal(rel_rx_code(&rx, 0, &good), -EINVAL); /* its end is not known */
	assert_int_equal(rel_rx_end(&rx, 0, 100), 0);
	for (size_t i = 0; i < SDR_ARRAY_LEN(bad); i++)
		assert_int_equal(rel_rx_code(&rx, 0, &bad[i]), -EINVAL);
	/* Without a code nothing of all this does anything. */
	rel_rx_feed_parity(&rx, 0, 0, &word, 1);
	assert_false(rel_rx_want_parity(&rx, 0, &(uint32_t){0}, &(struct rel_rx_want){0}));
	rel_rx_block_done(&rx, 0, 0);
	assert_int_equal(rel_rx_code(&rx, 0, &good), 0);
	rel_rx_block_done(&rx, 0, UINT32_MAX);
	rel_rx_feed_parity(&rx, 0, 0, &word, 1); /* room for none */
	other.m = 3;
	assert_int_equal(rel_rx_code(&rx, 0, &other), -EINVAL);
	other = good;
	other.parity_room = 1;
	assert_int_equal(rel_rx_code(&rx, 0, &other), -EINVAL);
	assert_int_equal(rel_rx_code(&rx, 0, &good), 0);
	rel_rx_check(&rx);
	rel_rx_fini(&rx);
}

/* A coded message of `blocks` whole blocks with rs. */
static struct rel_coding plain(uint32_t blocks, uint32_t k, uint32_t m, uint32_t depth)
{
	return (struct rel_coding){.code = REL_CODE_RS,
				   .k = k,
				   .m = m,
				   .depth = depth,
				   .span_pkts = blocks * k,
				   .parity_room = blocks * (REL_CODE_SYMBOLS_MAX - k)};
}

/* All data of blocks [first, end) but symbol `not` (of none: UINT32_MAX). */
static void blocks_arrive(struct side *s, uint32_t first, uint32_t end, uint32_t not )
{
	for (uint32_t b = first; b < end; b++) {
		for (uint32_t i = 0; i < s->coding.k; i++) {
			if (i != not )
				side_data_arrives(s, code_layout_packet(&s->layout, b, i));
		}
	}
	side_feed(s, 0, (uint32_t)bits_words(s->npkts));
}

static void row_arrives(struct side *s, uint32_t row, uint32_t first, uint32_t end)
{
	for (uint32_t b = first; b < end; b++)
		side_parity_arrives(s, code_layout_parity_packet(&s->layout, b, row));
	(void)side_look(s);
}

/* A block is told once something later was seen, not before; what comes next takes it back. */
static void what_is_reportable(void **state)
{
	struct rel_coding coding = plain(128, 8, 2, 32);
	struct side *s = side_new(&coding, 0);
	(void)state;
	side_code(s);
	blocks_arrive(s, 0, 32, 3); /* a group, one packet short in each block */
	side_ack(s, 1150);
	assert_int_equal(s->told, 0);
	row_arrives(s, 0, 0, 10); /* the first row: ten are whole, the others may be still */
	side_ack(s, 1150);
	assert_int_equal(s->told, 0);
	row_arrives(s, 1, 0, 20); /* the last one, of twenty blocks: those and no others */
	side_ack(s, 1150);
	assert_int_equal(s->told, 0);
	assert_int_equal(side_report_to(s), 20);
	side_data_arrives(s, code_layout_packet(&s->layout, 32, 0)); /* the next group */
	side_feed(s, 4, 8);
	side_ack(s, 1150);
	assert_int_equal(s->told, 12);
	row_arrives(s, 7, 20, 22); /* parity that was asked for */
	side_ack(s, 1150);
	assert_int_equal(s->told, 10);
	s->now += TURN; /* quiet: the next group, and 64 blocks more, as far as they lack */
	side_ack(s, 1150);
	assert_int_equal(s->told, 10 + 96);
	side_arrived(s);
	side_ack(s, 1150);
	assert_int_equal(s->told, 10);
	rel_rx_check(&s->rx);
	side_free(s);
}

/* Groups of few blocks share a batch: the next one's data say nothing yet. */
static void batches(void **state)
{
	struct rel_coding coding = plain(40, 4, 1, 1);
	struct side *s = side_new(&coding, 0);
	(void)state;
	side_code(s);
	blocks_arrive(s, 0, 16, 0);
	side_ack(s, 1150);
	assert_int_equal(s->told, 0);
	blocks_arrive(s, 16, 18, UINT32_MAX);
	side_ack(s, 1150);
	assert_int_equal(s->told, 2);
	side_free(s);
}

/* A later message was seen: all of the earlier should be here, whenever its WRITE came. */
static void later_message(void **state)
{
	struct rel_coding coding = plain(3, 8, 2, 64);
	(void)state;
	for (int late = 0; late < 2; late++) {
		struct side *s = side_new(&coding, 0);
		uint64_t word = 1;
		assert_int_equal(rel_rx_open(&s->rx, MESSAGE + 2, 64), 0);
		if (!late)
			side_code(s);
		blocks_arrive(s, 0, 3, 5);
		side_ack(s, 1150);
		assert_int_equal(s->told, 0);
		assert_false(rel_rx_feed(&s->rx, MESSAGE + 2, 0, &word, 1));
		s->later = true;
		if (late)
			side_code(s);
		side_ack(s, 1150);
		assert_int_equal(s->told, 3);
		row_arrives(s, 0, 0, 1);
		side_ack(s, 1150);
		assert_int_equal(s->told, 2);
		side_free(s);
	}
}

/* All blocks fail, and an ACK has room for few: each is told, in turn, windows or not. */
static void deficits_rotate(void **state)
{
	struct rel_coding coding = plain(1500, 16, 1, 50);
	struct side *s = side_new(&coding, 0);
	uint64_t *told = side_words(1500);
	uint32_t left = 1500, acks = 0;
	struct rng rng;
	(void)state;
	rng_init(&rng, 3);
	side_code(s);
	for (uint32_t b = 0; b < 1500; b++)
		for (uint32_t i = 0; i < 16; i++)
			if (rng_below(&rng, 2) || i == 0)
				side_data_arrives(s, code_layout_packet(&s->layout, b, i));
	side_feed(s, 0, (uint32_t)bits_words(s->npkts));
	row_arrives(s, 0, 1499, 1500);
	for (uint32_t b = 0; b < 1500; b++)
		left -= side_deficit(s, b) == 0;
	while (left) {
		assert_true(++acks < 20);
		assert_true(side_ack(s, 1150) <= 1150);
		assert_true(s->told > 80); /* the windows leave them room */
		for (uint32_t b = 0; b < 1500; b++) {
			left -= side_has(s->told_set, b) && !side_has(told, b);
			if (side_has(s->told_set, b))
				side_add(told, b);
		}
	}
	assert_true(s->cut > 5);
	free(told);
	side_free(s);
}

/* Once, until more of it comes; what came before its owner was done with it does not count. */
static void named_once(void **state)
{
	struct rel_coding coding = plain(4, 8, 4, 4);
	struct side *s = side_new(&coding, 0);
	struct rel_rx_block got;
	(void)state;
	side_code(s);
	for (uint32_t i = 0; i < 5; i++)
		side_data_arrives(s, code_layout_packet(&s->layout, 2, i));
	side_feed(s, 0, 1);
	for (uint32_t row = 0; row < 3; row++) {
		assert_false(rel_rx_next_block(&s->rx, &got));
		row_arrives(s, row, 2, 3);
	}
	assert_true(rel_rx_next_block(&s->rx, &got));
	assert_int_equal(got.block, 2);
	assert_false(rel_rx_next_block(&s->rx, &got));
	side_data_arrives(s, code_layout_packet(&s->layout, 2, 5));
	side_feed(s, 0, 1);
	rel_rx_block_done(&s->rx, MESSAGE, 2);
	assert_false(rel_rx_next_block(&s->rx, &got));
	side_data_arrives(s, code_layout_packet(&s->layout, 2, 6));
	side_feed(s, 0, 1);
	assert_true(rel_rx_next_block(&s->rx, &got));
	side_data_arrives(s, code_layout_packet(&s->layout, 2, 7));
	side_feed(s, 0, 1);
	assert_false(rel_rx_next_block(&s->rx, &got)); /* it lacks nothing */
	side_free(s);
}

/* Only the bitmap of the parity message knows where parity is: all that matters is found. */
static void parity_is_found(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct rng rng;
		rng_init(&rng, seed);
		struct rel_coding coding = plain(1 + (uint32_t)rng_below(&rng, 3000), 3, 4,
						 1 + (uint32_t)rng_below(&rng, 100));
		struct side *s = side_new(&coding, 0);
		uint64_t looked = 0;
		side_code(s);
		for (uint32_t b = 0; b < s->layout.nblocks; b++) {
			bool first = b == 0 || rng_below(&rng, 2);
			for (uint32_t i = first; i < 3; i++)
				side_data_arrives(s, code_layout_packet(&s->layout, b, i));
		}
		side_feed(s, 0, (uint32_t)bits_words(s->npkts));
		row_arrives(s, 3, 0, 1);
		for (uint32_t b = 0; b < s->layout.nblocks; b++)
			side_parity_arrives(
				s, code_layout_parity_packet(&s->layout, b,
							     (uint32_t)rng_below(&rng, 4)));
		looked = side_look(s);
		assert_true(looked <= 4 * (bits_words(s->layout.nblocks) + 1));
		(void)side_drain(s, &rng, 1);
		for (uint32_t b = 0; b < s->layout.nblocks; b++)
			assert_false(side_lacks(s, b));
		assert_int_equal(side_look(s), 0); /* nobody lacks anything */
		side_free(s);
	}
}

/* What was lost whole is far from what was seen: looked for further each time. */
static void parity_far_away(void **state)
{
	struct rel_coding coding = plain(5000, 1, 2, 1);
	struct side *s = side_new(&coding, 0);
	struct rel_rx_block got;
	int looks = 0;
	(void)state;
	side_code(s);
	blocks_arrive(s, 0, 1, UINT32_MAX);
	/* Nobody was told anything yet: nothing beyond the usual two rows, near what was seen. */
	assert_in_range(side_look(s), 1, 10);
	side_parity_arrives(s, code_layout_parity_packet(&s->layout, 4999, 1));
	while (!side_has(s->pfed, code_layout_parity_packet(&s->layout, 4999, 1))) {
		assert_true(looks++ < 10);
		(void)side_look(s);
	}
	assert_true(rel_rx_next_block(&s->rx, &got));
	assert_int_equal(got.block, 4999);
	side_free(s);
}

/* At once when a block fails, and again when the channels' facts prove it. */
static void when_due(void **state)
{
	struct rel_coding coding = plain(64, 8, 1, 16);
	struct side *s = side_new(&coding, 0);
	struct rel_rx *rx = &s->rx;
	(void)state;
	side_code(s);
	blocks_arrive(s, 0, 16, UINT32_MAX);
	side_ack(s, 1150);
	blocks_arrive(s, 16, 32, 2);
	side_ack(s, 1150);
	s->now += REL_RX_ACK_GAP_NS;
	assert_true(rel_rx_ack_deadline(rx, s->now) > s->now);
	row_arrives(s, 0, 17, 18); /* 16 fails, 17 does not */
	uint64_t failed = s->now, due = rel_rx_ack_deadline(rx, s->now);
	assert_in_range(due, s->now, s->now + TURN / 4);
	s->now = due;
	side_ack(s, 1150);
	assert_int_equal(s->told, 1);
	/* Not again before its turn for what is known, but once it is proven. */
	s->now += TURN / 4;
	side_arrived(s);
	assert_int_equal(rel_rx_ack_deadline(rx, s->now), failed + PROOF);
	row_arrives(s, 0, 19, 20); /* 18 fails */
	uint64_t again = s->now;
	s->now = rel_rx_ack_deadline(rx, s->now);
	assert_true(s->now < failed + PROOF);
	side_ack(s, 1150);
	assert_int_equal(s->told, 2);
	s->now = rel_rx_ack_deadline(rx, s->now);
	assert_in_range(s->now, failed + PROOF, failed + PROOF + TURN / 4);
	side_ack(s, 1150);
	s->now += TURN / 4;
	side_arrived(s);
	assert_in_range(rel_rx_ack_deadline(rx, s->now), again + PROOF, again + PROOF + TURN / 4);
	side_free(s);
}

/* After the last arrival: just after the sender's reorder window, and it says what failed. */
static void quiet_proves(void **state)
{
	struct rel_coding coding = plain(2, 8, 2, 2);
	struct side *s = side_new(&coding, 0);
	(void)state;
	side_code(s);
	blocks_arrive(s, 0, 2, 7);
	side_ack(s, 1150);
	s->now += 10000;
	side_data_arrives(s, 15);
	side_feed(s, 0, 1);
	s->now += TURN;
	assert_true(rel_rx_ack_due(&s->rx, s->now));
	side_ack(s, 1150);
	assert_int_equal(rel_rx_ack_deadline(&s->rx, s->now), s->arrived_ns + PROOF);
	s->now = s->arrived_ns + PROOF;
	side_ack(s, 1150);
	assert_int_equal(s->told, 1);
	/* On a short path the window is not a part of the round trip. */
	rel_rx_set_rtt(&s->rx, MS);
	side_arrived(s);
	side_ack(s, 1150);
	assert_int_equal(rel_rx_ack_deadline(&s->rx, s->now),
			 s->now + REL_REORDER_MIN_NS + REL_RX_PROOF_SLACK_NS);
	side_free(s);
}

/* A few bytes a block, and all of it is given back. */
static void memory(void **state)
{
	struct rel_coding coding = plain(16384, 128, 8, 64);
	struct side *s = side_new(&coding, 0);
	size_t before = rel_rx_memory_bytes(&s->rx);
	(void)state;
	coding.parity_room = 16384 * 16;
	s->coding = coding;
	side_code(s);
	assert_in_range(rel_rx_memory_bytes(&s->rx) - before, 2 * 16384, 3 * 16384);
	for (uint64_t pkt = 0; pkt < 8 * 16384; pkt++)
		side_add(s->parity, pkt);
	rel_rx_feed_parity(&s->rx, MESSAGE, 0, s->parity, 8 * 16384 / 64);
	assert_in_range(rel_rx_memory_bytes(&s->rx) - before, 3 * 16384, 4 * 16384);
	side_free(s);
}

/* Without memory blocks seem to lack more than they do; with memory again all is found. */
static void allocation_failures(void **state)
{
	(void)state;
	for (int fail = 0; fail < 12; fail++) {
		struct alloc_failing failing = {.left = 3};
		struct sdr_alloc alloc = alloc_failing(&failing);
		struct rel_coding coding = {.code = fail % 2 ? REL_CODE_XOR : REL_CODE_RS,
					    .k = 5,
					    .m = 2,
					    .depth = 7,
					    .span_start = 10,
					    .span_pkts = 20000,
					    .parity_room = 8000};
		struct side *s = side_on(&coding, 0, &alloc);
		struct rel_rx_block got;
		assert_int_equal(rel_rx_open(&s->rx, MESSAGE, s->npkts), 0);
		assert_int_equal(rel_rx_end(&s->rx, MESSAGE, s->npkts), 0);
		failing.left = fail;
		while (rel_rx_code(&s->rx, MESSAGE, &coding) == -ENOMEM)
			failing.left = ++fail; /* nothing half done: it can be asked again */
		s->coded = true;
		for (uint64_t pkt = 0; pkt < s->npkts; pkt++)
			if (pkt % 35 != 12 || pkt < 9000)
				side_data_arrives(s, pkt);
		for (uint64_t pkt = 0; pkt < 8000; pkt++)
			side_parity_arrives(s, pkt);
		/* The front is whole: its pages pass by unknown. */
		side_feed(s, 0, (uint32_t)bits_words(s->npkts));
		side_feed_parity(s, 0, 8000 / 64);
		rel_rx_check(&s->rx);
		while (rel_rx_next_block(&s->rx, &got)) {
			struct code_set have = side_have(s, got.block);
			for (uint32_t w = 0; w < 4; w++)
				assert_int_equal(got.have.word[w] & ~have.word[w], 0);
		}
		failing.left = 1000;
		memset(s->pending, true, s->layout.nblocks);
		side_feed(s, 0, (uint32_t)bits_words(s->npkts));
		side_feed_parity(s, 0, 8000 / 64);
		rel_rx_check(&s->rx);
		assert_true(rel_rx_cum(&s->rx, MESSAGE) >= 9000);
		s->now += 2 * TURN;
		side_ack(s, 1150);
		rel_rx_fini(&s->rx);
		assert_int_equal(failing.out, 0);
		assert_int_equal(rel_rx_init(&s->rx, &(struct rel_rx_params){0}, &sdr_alloc_system),
				 0);
		side_free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_codings),	   cmocka_unit_test(what_is_reportable),
		cmocka_unit_test(batches),	   cmocka_unit_test(later_message),
		cmocka_unit_test(deficits_rotate), cmocka_unit_test(parity_is_found),
		cmocka_unit_test(parity_far_away), cmocka_unit_test(named_once),
		cmocka_unit_test(when_due),	   cmocka_unit_test(quiet_proves),
		cmocka_unit_test(memory),	   cmocka_unit_test(allocation_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the line in virtual time: fates by segment, exact times, what is kept in balance. */
#include "tool/wan/line_rig.h"
#include "tool/wan/packet.h"

#include "base/bits.h"
#include "base/units.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void test_a_wire(void **state)
{
	struct twin_spec spec = rig_tcp(40, 1);
	struct wan_line *line;
	static uint8_t frame[WAN_FRAME_MAX];
	size_t len = twin_build(&spec, frame);
	struct wan_frame f;
	const void *buffer;

	(void)state;
	rig_fresh(1);
	line = rig_make();
	assert_int_equal(wan_line_next_ns(line), UINT64_MAX);
	assert_false(wan_line_take(line, 100, &f));
	buffer = wan_line_buffer(line);
	assert_int_equal(rig_offer(line, WAN_A, 7, &spec), len);
	assert_int_equal(wan_line_next_ns(line), 7);
	assert_true(wan_line_take(line, 7, &f));
	assert_int_equal(f.to, WAN_B);
	assert_int_equal(f.due_ns, 7);
	assert_int_equal(f.len, len);
	assert_memory_equal(f.bytes, frame, len);
	assert_ptr_equal(f.bytes, buffer); /* not copied */
	assert_false(wan_line_take(line, 7, &f));
	assert_int_equal(rig_stat(line, WAN_A, 0).link.delivered_pkts, 40);
	assert_int_equal(rig_stat(line, WAN_A, 0).link.offered_bytes, 40 * MTU);
	assert_int_equal(rig_stat(line, WAN_A, 0).delivered_bytes, 40 * MTU);
	rig_balance(line, 40);
	wan_line_destroy(line);
}

/* 1500 bytes at 1 Gbit/s take 12 us; a frame arrives with its last bit. */
static void test_exact_times(void **state)
{
	const struct twin_spec small = rig_tcp(1, 1), large = rig_tcp(8, 2);
	struct wan_line *line;
	struct wan_frame f;

	(void)state;
	rig_fresh(1);
	rig_both(0, GBIT, 30 * NS_PER_MS);
	line = rig_make();
	rig_offer(line, WAN_A, 1000, &small);
	rig_offer(line, WAN_A, 1000, &large);
	rig_offer(line, WAN_B, 1500, &small);
	assert_int_equal(rig_stat(line, WAN_A, 0).in_flight_pkts, 9);
	assert_int_equal(rig_stat(line, WAN_A, 0).queued_bytes, 9 * MTU);
	assert_int_equal(wan_line_next_ns(line), 1000 + 12000 + 30 * NS_PER_MS);
	assert_true(wan_line_take(line, SECOND, &f));
	assert_int_equal(f.to, WAN_B);
	assert_true(wan_line_take(line, SECOND, &f));
	assert_int_equal(f.to, WAN_A);
	assert_int_equal(f.due_ns, 1500 + 12000 + 30 * NS_PER_MS);
	assert_true(wan_line_take(line, SECOND, &f));
	assert_int_equal(f.due_ns, 1000 + 9 * 12000 + 30 * NS_PER_MS);
	assert_int_equal(rig_parsed(&f).n_segments, 8);
	rig_balance(line, 10);
	wan_line_destroy(line);
}

static void test_pieces_of_100_us(void **state)
{
	const struct twin_spec spec = rig_tcp(44, 1);
	struct twin_list got = {0}, want = {0};
	static uint8_t frame[WAN_FRAME_MAX];
	struct wan_line *line;
	uint64_t last = 30 * NS_PER_MS;
	struct wan_frame f;
	uint32_t n = 0;

	(void)state;
	rig_fresh(1);
	rig_both(0, GBIT, 30 * NS_PER_MS);
	line = rig_make();
	twin_segments(frame, twin_build(&spec, frame), &want);
	rig_offer(line, WAN_A, 0, &spec);
	while (wan_line_take(line, SECOND, &f)) {
		assert_true(f.due_ns - last <= WAN_PIECE_NS);
		assert_int_equal(f.due_ns - last, 12000 * (uint64_t)rig_parsed(&f).n_segments);
		last = f.due_ns;
		twin_segments(f.bytes, f.len, &got);
		n++;
	}
	assert_int_equal(n, 6); /* 8 segments take 96 us: 5 of them, and 4 */
	assert_int_equal(last, 30 * NS_PER_MS + 44 * 12000);
	assert_int_equal(got.len, want.len);
	assert_memory_equal(got.bytes, want.bytes, want.len);
	twin_list_fini(&got);
	twin_list_fini(&want);
	wan_line_destroy(line);
}

/* Exactly those segments are missing, whatever super-packets they were in. */
static void test_drop_list(void **state)
{
	static const uint64_t drop[] = {0, 5, 6, 7, 19, 43, 44, 80, 199};
	struct twin_list got = {0}, want = {0};
	static uint8_t frame[WAN_FRAME_MAX];
	struct wan_line *line;
	uint32_t frames = 0, kept = 0;

	(void)state;
	rig_fresh(1);
	rig_both(0, 100 * GBIT, NS_PER_MS);
	memcpy(rig_config->path[0][0].drop, drop, sizeof(drop));
	rig_config->path[0][0].n_drop = SDR_ARRAY_LEN(drop);
	line = rig_make();
	for (uint32_t i = 0; i < 10; i++) {
		struct twin_spec spec = rig_tcp(20, i);

		twin_segments(frame, twin_build(&spec, frame), &want);
		rig_offer(line, WAN_A, i * NS_PER_MS, &spec);
	}
	rig_drain(line, &got, &frames);
	assert_int_equal(got.n, 200 - SDR_ARRAY_LEN(drop));
	for (uint32_t i = 0, next = 0; i < 200; i++) {
		if (next < SDR_ARRAY_LEN(drop) && drop[next] == i) {
			next++;
			continue;
		}
		assert_int_equal(got.at[kept + 1] - got.at[kept], want.at[i + 1] - want.at[i]);
		assert_memory_equal(got.bytes + got.at[kept], want.bytes + want.at[i], MTU);
		kept++;
	}
	/* Cut three times, once (two: at the border), at 80 and 199 at the end. */
	assert_int_equal(frames, 2 + 1 + 2 + 1 + 1 + 1 + 1 + 1 + 1 + 1);
	assert_int_equal(rig_stat(line, WAN_A, 0).link.lost_pkts[LINK_LOST_LIST],
			 SDR_ARRAY_LEN(drop));
	rig_balance(line, got.n);
	twin_list_fini(&got);
	twin_list_fini(&want);
	wan_line_destroy(line);
}

static void test_two_paths(void **state)
{
	uint64_t seen[2] = {0};
	struct wan_line *line;
	struct wan_frame f;

	(void)state;
	rig_fresh(2);
	rig_both(0, 0, 10 * NS_PER_MS);
	rig_both(1, 0, 50 * NS_PER_MS);
	line = rig_make();
	for (uint16_t port = 1; port <= 100; port++) {
		struct twin_spec spec = rig_udp(100, port, 7);

		rig_offer(line, WAN_A, port, &spec);
	}
	assert_int_equal(wan_line_next_ns(line) / NS_PER_MS, 10);
	while (wan_line_take(line, SECOND, &f)) {
		struct wan_packet p = rig_parsed(&f);
		uint32_t path = f.due_ns > 40 * NS_PER_MS;

		assert_int_equal(f.due_ns, p.flow.sport + (path ? 50 : 10) * NS_PER_MS);
		seen[path]++;
	}
	assert_int_equal(seen[0] + seen[1], 100);
	assert_in_range(seen[0], 25, 75);
	for (uint32_t path = 0; path < 2; path++)
		assert_int_equal(rig_stat(line, WAN_A, path).link.delivered_pkts, seen[path]);
	rig_balance(line, 100);
	wan_line_destroy(line);
}

/* One path is cut; what is in flight on it still arrives, the other one goes on. */
static void test_cut_path(void **state)
{
	struct wan_line *line;
	uint64_t before, after;
	struct wan_frame f;
	uint32_t frames = 0;

	(void)state;
	rig_fresh(2);
	rig_both(0, 0, 10 * NS_PER_MS);
	rig_both(1, 0, 10 * NS_PER_MS);
	line = rig_make();
	for (uint16_t port = 1; port <= 50; port++)
		rig_offer(line, WAN_A, 0, &(struct twin_spec){.udp = true, .sport = port});
	before = rig_stat(line, WAN_A, 0).link.delivered_pkts;
	rig_config->path[WAN_A][0].attr.cut = true;
	assert_int_equal(wan_line_set(line, 1, rig_config), 0);
	for (uint16_t port = 1; port <= 50; port++)
		rig_offer(line, WAN_A, 1, &(struct twin_spec){.udp = true, .sport = port});
	after = rig_stat(line, WAN_A, 0).link.delivered_pkts;
	assert_int_equal(before, after);
	assert_int_equal(rig_stat(line, WAN_A, 0).link.lost_pkts[LINK_LOST_CUT], before);
	while (wan_line_take(line, SECOND, &f))
		frames++;
	assert_int_equal(frames, 100 - before);
	rig_balance(line, frames);
	wan_line_destroy(line);
}

/* Fewer paths: those that went deliver what they have. */
static void test_paths_come_and_go(void **state)
{
	struct wan_line *line;
	uint32_t frames = 0;

	(void)state;
	rig_fresh(1);
	rig_both(0, 0, 10 * NS_PER_MS);
	line = rig_make();
	for (uint32_t p = 1; p < 4; p++)
		rig_both(p, GBIT, (10 + p) * NS_PER_MS);
	rig_config->n_paths = 4;
	assert_int_equal(wan_line_set(line, 0, rig_config), 0);
	for (uint16_t port = 1; port <= 50; port++)
		rig_offer(line, WAN_B, 0, &(struct twin_spec){.udp = true, .sport = port});
	rig_config->n_paths = 1;
	assert_int_equal(wan_line_set(line, 0, rig_config), 0);
	assert_true(rig_stat(line, WAN_B, 3).in_flight_pkts > 0);
	rig_offer(line, WAN_B, 0, &(struct twin_spec){.udp = true, .sport = 9});
	rig_drain(line, NULL, &frames);
	assert_int_equal(frames, 51);
	rig_balance(line, 51);
	wan_line_destroy(line);
}

static void test_new_values_do_not_change_fates(void **state)
{
	const struct twin_spec spec = rig_tcp(2, 1);
	struct wan_config *now;
	struct wan_line *line;
	struct wan_frame f;

	(void)state;
	rig_fresh(1);
	rig_both(0, GBIT, 100 * NS_PER_MS);
	line = rig_make();
	rig_offer(line, WAN_A, 0, &spec);
	rig_both(0, 10 * GBIT, 10 * NS_PER_MS);
	rig_config->seed = 77; /* ignored */
	assert_int_equal(wan_line_set(line, 0, rig_config), 0);
	rig_offer(line, WAN_A, 1000, &spec);
	/* Its own config, changed, comes back the same. */
	now = malloc(sizeof(*now));
	assert_non_null(now);
	*now = *wan_line_config(line);
	assert_int_equal(now->seed, 42);
	assert_int_equal(now->path[0][0].attr.rate_bps, 10 * GBIT);
	now->path[0][0].attr.rate_bps = GBIT;
	assert_int_equal(wan_line_set(line, 2000, now), 0);
	now->path[0][0].attr.loss.loss_good = 2;
	assert_int_equal(wan_line_set(line, 2000, now), -EINVAL);
	now->path[0][0].attr.loss.loss_good = 0;
	now->n_paths = LINK_MAX_PATHS + 1;
	assert_int_equal(wan_line_set(line, 2000, now), -EINVAL);
	now->n_paths = 1;
	now->path[1][0].n_drop = WAN_MAX_DROPS + 1;
	assert_int_equal(wan_line_set(line, 2000, now), -ERANGE);
	free(now);
	assert_int_equal(wan_line_config(line)->path[0][0].attr.rate_bps, GBIT);
	/* The second frame waited for the first one, then took a tenth of the time. */
	assert_true(wan_line_take(line, SECOND, &f));
	assert_int_equal(f.due_ns, 24000 + 2400 + 10 * NS_PER_MS);
	assert_true(wan_line_take(line, SECOND, &f));
	assert_int_equal(f.due_ns, 24000 + 100 * NS_PER_MS);
	rig_balance(line, 4);
	wan_line_destroy(line);
}

static void test_duplicates(void **state)
{
	const struct twin_spec spec = rig_tcp(10, 1);
	struct twin_list got = {0};
	struct wan_line *line;
	uint32_t frames = 0;

	(void)state;
	rig_fresh(1);
	rig_both(0, 0, NS_PER_MS);
	rig_config->path[0][0].attr.duplicate_p = 1;
	rig_config->path[0][0].attr.duplicate_ns = 5 * NS_PER_US;
	line = rig_make();
	rig_offer(line, WAN_A, 0, &spec);
	assert_int_equal(rig_stat(line, WAN_A, 0).in_flight_pkts, 20);
	rig_drain(line, &got, &frames);
	assert_int_equal(frames, 20);
	for (uint32_t i = 0; i < 10; i++) {
		assert_int_equal(got.at[i + 1] - got.at[i], MTU);
		assert_memory_equal(got.bytes + got.at[i], got.bytes + got.at[i + 10], MTU);
	}
	rig_balance(line, 20);
	twin_list_fini(&got);
	wan_line_destroy(line);
}

/* What is held back does not hold back its neighbours. */
static void test_held_back(void **state)
{
	const struct twin_spec spec = rig_udp(1000, 1, 2);
	struct wan_line *line;
	struct wan_frame f;
	uint32_t late = 0, in_time = 0;

	(void)state;
	rig_fresh(1);
	rig_both(0, 0, NS_PER_MS);
	rig_config->path[0][0].attr.reorder_p = 0.2;
	rig_config->path[0][0].attr.reorder_ns = 10 * NS_PER_MS;
	line = rig_make();
	for (uint64_t now = 0; now < 1000; now++)
		rig_offer(line, WAN_A, now, &spec);
	while (wan_line_take(line, SECOND, &f)) {
		if (f.due_ns >= 11 * NS_PER_MS)
			late++;
		else
			in_time++;
		assert_true(f.due_ns % NS_PER_MS < 1000);
	}
	assert_in_range(late, 150, 250);
	assert_int_equal(in_time, 1000 - late);
	rig_balance(line, 1000);
	wan_line_destroy(line);
}

static void test_jitter_reorders(void **state)
{
	struct wan_line *line;
	struct wan_frame f;
	uint32_t n = 0, overtaken = 0;
	uint16_t latest = 0;

	(void)state;
	rig_fresh(1);
	rig_both(0, 0, NS_PER_MS);
	rig_config->path[0][0].attr.jitter_ns = NS_PER_MS;
	rig_config->path[0][0].attr.jitter_reorders = true;
	line = rig_make();
	for (uint16_t i = 1; i <= 1000; i++)
		rig_offer(line, WAN_A, i * NS_PER_US, &(struct twin_spec){.udp = true, .sport = i});
	wan_line_check(line);
	for (uint64_t last = 0; wan_line_take(line, SECOND, &f); last = f.due_ns) {
		struct wan_packet p = rig_parsed(&f);
		uint64_t sent = p.flow.sport * NS_PER_US;

		assert_in_range(f.due_ns, sent + NS_PER_MS, sent + 2 * NS_PER_MS);
		assert_true(f.due_ns >= last);
		overtaken += p.flow.sport < latest;
		latest = (uint16_t)u64_max(latest, p.flow.sport);
		n++;
		wan_line_check(line);
	}
	assert_int_equal(n, 1000);
	assert_in_range(overtaken, 300, 999);
	rig_balance(line, 1000);
	wan_line_destroy(line);
}

static void test_ecn_marks_only_what_may_be(void **state)
{
	struct twin_spec spec = rig_tcp(40, 1);
	struct wan_line *line;
	struct wan_frame f;
	uint32_t marked = 0, pieces = 0, pkts = 0;

	(void)state;
	rig_fresh(1);
	rig_both(0, 100 * GBIT, NS_PER_MS);
	rig_config->path[0][0].attr.ecn_bytes = 30 * MTU;
	line = rig_make();
	spec.tos = 2; /* ECT(0) */
	rig_offer(line, WAN_A, 0, &spec);
	spec.tos = 0;
	rig_offer(line, WAN_A, 0, &spec);
	while (wan_line_take(line, SECOND, &f)) {
		struct wan_packet p = rig_parsed(&f);
		const uint8_t *ip = (const uint8_t *)f.bytes + WAN_VNET_BYTES;

		assert_true(twin_frame_ok(f.bytes, f.len));
		if ((ip[1] & 3) == 3)
			marked += p.n_segments;
		pkts += p.n_segments;
		pieces++;
	}
	assert_int_equal(pkts, 80);
	assert_int_equal(pieces, 3); /* the second frame is not cut */
	assert_int_equal(marked, 10);
	assert_int_equal(rig_stat(line, WAN_A, 0).link.marked_pkts, 10);
	wan_line_destroy(line);
}

static void test_malformed_is_not_carried(void **state)
{
	struct wan_line *line;
	uint8_t *buffer;

	(void)state;
	rig_fresh(1);
	line = rig_make();
	buffer = wan_line_buffer(line);
	assert_non_null(buffer);
	memset(buffer, 0, 100);
	buffer[1] = 3; /* UDP fragmentation offload: not asked for */
	wan_line_offer(line, WAN_A, 0, 100);
	buffer = wan_line_buffer(line);
	wan_line_offer(line, WAN_A, 0, 0);
	assert_int_equal(rig_counters(line).malformed_frames, 2);
	assert_int_equal(rig_counters(line).frames, 0);
	assert_int_equal(wan_line_next_ns(line), UINT64_MAX);
	wan_line_destroy(line);
}

/* Frames to one end that are due at the same time keep their order, over all paths. */
static void test_equal_times_keep_order(void **state)
{
	struct wan_line *line;
	struct wan_frame f;

	(void)state;
	rig_fresh(8);
	for (uint32_t p = 0; p < 8; p++)
		rig_both(p, 0, NS_PER_MS);
	line = rig_make();
	for (uint16_t i = 1; i <= 500; i++)
		rig_offer(line, WAN_A, 0, &(struct twin_spec){.udp = true, .sport = i});
	for (uint16_t i = 1; i <= 500; i++) {
		assert_true(wan_line_take(line, NS_PER_MS, &f));
		assert_int_equal(rig_parsed(&f).flow.sport, i);
	}
	rig_balance(line, 500);
	wan_line_destroy(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_wire),
		cmocka_unit_test(test_exact_times),
		cmocka_unit_test(test_pieces_of_100_us),
		cmocka_unit_test(test_drop_list),
		cmocka_unit_test(test_two_paths),
		cmocka_unit_test(test_cut_path),
		cmocka_unit_test(test_paths_come_and_go),
		cmocka_unit_test(test_new_values_do_not_change_fates),
		cmocka_unit_test(test_duplicates),
		cmocka_unit_test(test_held_back),
		cmocka_unit_test(test_jitter_reorders),
		cmocka_unit_test(test_ecn_marks_only_what_may_be),
		cmocka_unit_test(test_malformed_is_not_carried),
		cmocka_unit_test(test_equal_times_keep_order),
	};

	return cmocka_run_group_tests(tests, rig_open, rig_close);
}

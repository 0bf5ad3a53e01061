/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the line in virtual time: fates by segment, exact times, what is kept in balance. */
#include "tool/wan/line.h"
#include "tool/wan/packet_twin.h"

#include "base/bits.h"
#include "base/units.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define GBIT UINT64_C(1000000000)
#define SECOND UINT64_C(1000000000)
#define MTU 1500u
#define MSS 1460u

static struct wan_config *config; /* large: one for all */

static struct wan_config *fresh(uint32_t n_paths)
{
	memset(config, 0, sizeof(*config));
	config->n_paths = n_paths;
	config->seed = 42;
	return config;
}

static void set_both(uint32_t path, uint64_t rate_bps, uint64_t delay_ns)
{
	for (int from = 0; from < 2; from++) {
		config->path[from][path].attr.rate_bps = rate_bps;
		config->path[from][path].attr.delay_ns = delay_ns;
	}
}

static struct wan_line *make(void)
{
	struct wan_line *line;

	assert_int_equal(wan_line_create(config, 0, &sdr_alloc_system, &line), 0);
	return line;
}

static size_t offer(struct wan_line *line, enum wan_end from, uint64_t now_ns,
		    const struct twin_spec *spec)
{
	uint8_t *buffer = wan_line_buffer(line);
	size_t len;

	assert_non_null(buffer);
	assert_ptr_equal(wan_line_buffer(line), buffer);
	len = twin_build(spec, buffer);
	wan_line_offer(line, from, now_ns, len);
	return len;
}

/* A TCP super-packet of n full segments, and its like. */
static struct twin_spec tcp(uint32_t n, uint64_t fill)
{
	return (struct twin_spec){.segment_bytes = MSS,
				  .payload_bytes = n * MSS,
				  .tcp_flags = TWIN_ACK,
				  .sport = 1000,
				  .dport = 2000,
				  .fill = fill};
}

static struct twin_spec udp(uint32_t bytes, uint16_t sport, uint16_t dport)
{
	return (struct twin_spec){
		.udp = true, .payload_bytes = bytes, .sport = sport, .dport = dport, .fill = 1};
}

static struct wan_packet parsed(const struct wan_frame *f)
{
	struct wan_packet p;

	assert_int_equal(wan_packet_parse(f->bytes, f->len, &p), 0);
	return p;
}

static struct wan_dir_stat stat_of(const struct wan_line *line, enum wan_end from, uint32_t path)
{
	struct wan_dir_stat stat;

	wan_line_stat(line, from, path, 0, &stat);
	return stat;
}

static struct wan_line_counters counters_of(const struct wan_line *line)
{
	struct wan_line_counters counters;

	wan_line_counters(line, &counters);
	return counters;
}

/* Takes what comes until the line is empty, as a list of plain packets; frames in *frames. */
static void drain(struct wan_line *line, struct twin_list *list, uint32_t *frames)
{
	uint64_t at, last = 0;
	struct wan_frame f;

	while ((at = wan_line_next_ns(line)) != UINT64_MAX) {
		assert_true(at >= last);
		assert_true(at == 0 || !wan_line_take(line, at - 1, &f));
		assert_true(wan_line_take(line, at, &f));
		assert_int_equal(f.due_ns, at);
		if (list)
			twin_segments(f.bytes, f.len, list);
		if (frames)
			(*frames)++;
		last = at;
		wan_line_check(line);
	}
	assert_false(wan_line_take(line, UINT64_MAX, &f));
}

/* Everything offered was delivered or lost, nothing is left over. */
static void balance(const struct wan_line *line, uint64_t taken_pkts)
{
	uint64_t delivered = 0;

	for (uint32_t c = 0; c < 2 * LINK_MAX_PATHS; c++) {
		struct wan_dir_stat s = stat_of(line, (enum wan_end)(c % 2), c / 2);
		uint64_t sum = s.link.delivered_pkts;

		for (int why = 0; why < LINK_LOST_REASONS; why++)
			sum += s.link.lost_pkts[why];
		assert_int_equal(sum, s.link.offered_pkts);
		assert_int_equal(s.in_flight_pkts, 0);
		assert_int_equal(s.in_flight_bytes, 0);
		delivered += s.link.delivered_pkts + s.link.duplicated_pkts;
	}
	assert_int_equal(delivered, taken_pkts + counters_of(line).nat_lost_pkts);
	wan_line_check(line);
}

static void test_a_wire(void **state)
{
	struct twin_spec spec = tcp(40, 1);
	struct wan_line *line;
	static uint8_t frame[WAN_FRAME_MAX];
	size_t len = twin_build(&spec, frame);
	struct wan_frame f;
	const void *buffer;

	(void)state;
	fresh(1);
	line = make();
	assert_int_equal(wan_line_next_ns(line), UINT64_MAX);
	assert_false(wan_line_take(line, 100, &f));
	buffer = wan_line_buffer(line);
	assert_int_equal(offer(line, WAN_A, 7, &spec), len);
	assert_int_equal(wan_line_next_ns(line), 7);
	assert_true(wan_line_take(line, 7, &f));
	assert_int_equal(f.to, WAN_B);
	assert_int_equal(f.due_ns, 7);
	assert_int_equal(f.len, len);
	assert_memory_equal(f.bytes, frame, len);
	assert_ptr_equal(f.bytes, buffer); /* not copied */
	assert_false(wan_line_take(line, 7, &f));
	assert_int_equal(stat_of(line, WAN_A, 0).link.delivered_pkts, 40);
	assert_int_equal(stat_of(line, WAN_A, 0).link.offered_bytes, 40 * MTU);
	assert_int_equal(stat_of(line, WAN_A, 0).delivered_bytes, 40 * MTU);
	balance(line, 40);
	wan_line_destroy(line);
}

/* 1500 bytes at 1 Gbit/s take 12 us; a frame arrives with its last bit. */
static void test_exact_times(void **state)
{
	const struct twin_spec small = tcp(1, 1), large = tcp(8, 2);
	struct wan_line *line;
	struct wan_frame f;

	(void)state;
	fresh(1);
	set_both(0, GBIT, 30 * NS_PER_MS);
	line = make();
	offer(line, WAN_A, 1000, &small);
	offer(line, WAN_A, 1000, &large);
	offer(line, WAN_B, 1500, &small);
	assert_int_equal(stat_of(line, WAN_A, 0).in_flight_pkts, 9);
	assert_int_equal(stat_of(line, WAN_A, 0).queued_bytes, 9 * MTU);
	assert_int_equal(wan_line_next_ns(line), 1000 + 12000 + 30 * NS_PER_MS);
	assert_true(wan_line_take(line, SECOND, &f));
	assert_int_equal(f.to, WAN_B);
	assert_true(wan_line_take(line, SECOND, &f));
	assert_int_equal(f.to, WAN_A);
	assert_int_equal(f.due_ns, 1500 + 12000 + 30 * NS_PER_MS);
	assert_true(wan_line_take(line, SECOND, &f));
	assert_int_equal(f.due_ns, 1000 + 9 * 12000 + 30 * NS_PER_MS);
	assert_int_equal(parsed(&f).n_segments, 8);
	balance(line, 10);
	wan_line_destroy(line);
}

static void test_pieces_of_100_us(void **state)
{
	const struct twin_spec spec = tcp(44, 1);
	struct twin_list got = {0}, want = {0};
	static uint8_t frame[WAN_FRAME_MAX];
	struct wan_line *line;
	uint64_t last = 30 * NS_PER_MS;
	struct wan_frame f;
	uint32_t n = 0;

	(void)state;
	fresh(1);
	set_both(0, GBIT, 30 * NS_PER_MS);
	line = make();
	twin_segments(frame, twin_build(&spec, frame), &want);
	offer(line, WAN_A, 0, &spec);
	while (wan_line_take(line, SECOND, &f)) {
		assert_true(f.due_ns - last <= WAN_PIECE_NS);
		assert_int_equal(f.due_ns - last, 12000 * (uint64_t)parsed(&f).n_segments);
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
	fresh(1);
	set_both(0, 100 * GBIT, NS_PER_MS);
	memcpy(config->path[0][0].drop, drop, sizeof(drop));
	config->path[0][0].n_drop = SDR_ARRAY_LEN(drop);
	line = make();
	for (uint32_t i = 0; i < 10; i++) {
		struct twin_spec spec = tcp(20, i);

		twin_segments(frame, twin_build(&spec, frame), &want);
		offer(line, WAN_A, i * NS_PER_MS, &spec);
	}
	drain(line, &got, &frames);
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
	assert_int_equal(stat_of(line, WAN_A, 0).link.lost_pkts[LINK_LOST_LIST],
			 SDR_ARRAY_LEN(drop));
	balance(line, got.n);
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
	fresh(2);
	set_both(0, 0, 10 * NS_PER_MS);
	set_both(1, 0, 50 * NS_PER_MS);
	line = make();
	for (uint16_t port = 1; port <= 100; port++) {
		struct twin_spec spec = udp(100, port, 7);

		offer(line, WAN_A, port, &spec);
	}
	assert_int_equal(wan_line_next_ns(line) / NS_PER_MS, 10);
	while (wan_line_take(line, SECOND, &f)) {
		struct wan_packet p = parsed(&f);
		uint32_t path = f.due_ns > 40 * NS_PER_MS;

		assert_int_equal(f.due_ns, p.flow.sport + (path ? 50 : 10) * NS_PER_MS);
		seen[path]++;
	}
	assert_int_equal(seen[0] + seen[1], 100);
	assert_in_range(seen[0], 25, 75);
	for (uint32_t path = 0; path < 2; path++)
		assert_int_equal(stat_of(line, WAN_A, path).link.delivered_pkts, seen[path]);
	balance(line, 100);
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
	fresh(2);
	set_both(0, 0, 10 * NS_PER_MS);
	set_both(1, 0, 10 * NS_PER_MS);
	line = make();
	for (uint16_t port = 1; port <= 50; port++)
		offer(line, WAN_A, 0, &(struct twin_spec){.udp = true, .sport = port});
	before = stat_of(line, WAN_A, 0).link.delivered_pkts;
	config->path[WAN_A][0].attr.cut = true;
	assert_int_equal(wan_line_set(line, 1, config), 0);
	for (uint16_t port = 1; port <= 50; port++)
		offer(line, WAN_A, 1, &(struct twin_spec){.udp = true, .sport = port});
	after = stat_of(line, WAN_A, 0).link.delivered_pkts;
	assert_int_equal(before, after);
	assert_int_equal(stat_of(line, WAN_A, 0).link.lost_pkts[LINK_LOST_CUT], before);
	while (wan_line_take(line, SECOND, &f))
		frames++;
	assert_int_equal(frames, 100 - before);
	balance(line, frames);
	wan_line_destroy(line);
}

/* Fewer paths: those that went deliver what they have. */
static void test_paths_come_and_go(void **state)
{
	struct wan_line *line;
	uint32_t frames = 0;

	(void)state;
	fresh(1);
	set_both(0, 0, 10 * NS_PER_MS);
	line = make();
	for (uint32_t p = 1; p < 4; p++)
		set_both(p, GBIT, (10 + p) * NS_PER_MS);
	config->n_paths = 4;
	assert_int_equal(wan_line_set(line, 0, config), 0);
	for (uint16_t port = 1; port <= 50; port++)
		offer(line, WAN_B, 0, &(struct twin_spec){.udp = true, .sport = port});
	config->n_paths = 1;
	assert_int_equal(wan_line_set(line, 0, config), 0);
	assert_true(stat_of(line, WAN_B, 3).in_flight_pkts > 0);
	offer(line, WAN_B, 0, &(struct twin_spec){.udp = true, .sport = 9});
	drain(line, NULL, &frames);
	assert_int_equal(frames, 51);
	balance(line, 51);
	wan_line_destroy(line);
}

static void test_new_values_do_not_change_fates(void **state)
{
	const struct twin_spec spec = tcp(2, 1);
	struct wan_config *now;
	struct wan_line *line;
	struct wan_frame f;

	(void)state;
	fresh(1);
	set_both(0, GBIT, 100 * NS_PER_MS);
	line = make();
	offer(line, WAN_A, 0, &spec);
	set_both(0, 10 * GBIT, 10 * NS_PER_MS);
	config->seed = 77; /* ignored */
	assert_int_equal(wan_line_set(line, 0, config), 0);
	offer(line, WAN_A, 1000, &spec);
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
	balance(line, 4);
	wan_line_destroy(line);
}

static void test_duplicates(void **state)
{
	const struct twin_spec spec = tcp(10, 1);
	struct twin_list got = {0};
	struct wan_line *line;
	uint32_t frames = 0;

	(void)state;
	fresh(1);
	set_both(0, 0, NS_PER_MS);
	config->path[0][0].attr.duplicate_p = 1;
	config->path[0][0].attr.duplicate_ns = 5 * NS_PER_US;
	line = make();
	offer(line, WAN_A, 0, &spec);
	assert_int_equal(stat_of(line, WAN_A, 0).in_flight_pkts, 20);
	drain(line, &got, &frames);
	assert_int_equal(frames, 20);
	for (uint32_t i = 0; i < 10; i++) {
		assert_int_equal(got.at[i + 1] - got.at[i], MTU);
		assert_memory_equal(got.bytes + got.at[i], got.bytes + got.at[i + 10], MTU);
	}
	balance(line, 20);
	twin_list_fini(&got);
	wan_line_destroy(line);
}

/* What is held back does not hold back its neighbours. */
static void test_held_back(void **state)
{
	const struct twin_spec spec = udp(1000, 1, 2);
	struct wan_line *line;
	struct wan_frame f;
	uint32_t late = 0, in_time = 0;

	(void)state;
	fresh(1);
	set_both(0, 0, NS_PER_MS);
	config->path[0][0].attr.reorder_p = 0.2;
	config->path[0][0].attr.reorder_ns = 10 * NS_PER_MS;
	line = make();
	for (uint64_t now = 0; now < 1000; now++)
		offer(line, WAN_A, now, &spec);
	while (wan_line_take(line, SECOND, &f)) {
		if (f.due_ns >= 11 * NS_PER_MS)
			late++;
		else
			in_time++;
		assert_true(f.due_ns % NS_PER_MS < 1000);
	}
	assert_in_range(late, 150, 250);
	assert_int_equal(in_time, 1000 - late);
	balance(line, 1000);
	wan_line_destroy(line);
}

static void test_jitter_reorders(void **state)
{
	struct wan_line *line;
	struct wan_frame f;
	uint32_t n = 0, overtaken = 0;
	uint16_t latest = 0;

	(void)state;
	fresh(1);
	set_both(0, 0, NS_PER_MS);
	config->path[0][0].attr.jitter_ns = NS_PER_MS;
	config->path[0][0].attr.jitter_reorders = true;
	line = make();
	for (uint16_t i = 1; i <= 1000; i++)
		offer(line, WAN_A, i * NS_PER_US, &(struct twin_spec){.udp = true, .sport = i});
	wan_line_check(line);
	for (uint64_t last = 0; wan_line_take(line, SECOND, &f); last = f.due_ns) {
		struct wan_packet p = parsed(&f);
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
	balance(line, 1000);
	wan_line_destroy(line);
}

static void test_ecn_marks_only_what_may_be(void **state)
{
	struct twin_spec spec = tcp(40, 1);
	struct wan_line *line;
	struct wan_frame f;
	uint32_t marked = 0, pieces = 0, pkts = 0;

	(void)state;
	fresh(1);
	set_both(0, 100 * GBIT, NS_PER_MS);
	config->path[0][0].attr.ecn_bytes = 30 * MTU;
	line = make();
	spec.tos = 2; /* ECT(0) */
	offer(line, WAN_A, 0, &spec);
	spec.tos = 0;
	offer(line, WAN_A, 0, &spec);
	while (wan_line_take(line, SECOND, &f)) {
		struct wan_packet p = parsed(&f);
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
	assert_int_equal(stat_of(line, WAN_A, 0).link.marked_pkts, 10);
	wan_line_destroy(line);
}

static void test_too_large_is_told(void **state)
{
	static const uint64_t sizes[] = {1500, 1400};
	struct twin_spec spec = tcp(10, 1);
	struct wan_line *line;
	struct wan_frame f;

	(void)state;
	for (int silent = 0; silent < 2; silent++) {
		for (size_t i = 0; i < SDR_ARRAY_LEN(sizes); i++) {
			bool fits = sizes[i] == MTU;
			uint32_t told = !silent && !fits;

			fresh(1);
			set_both(0, 0, NS_PER_MS);
			config->path[0][0].attr.mtu_bytes = (uint32_t)sizes[i];
			config->path[0][0].mtu_silent = silent;
			line = make();
			offer(line, WAN_A, 5, &spec);
			if (told) {
				assert_true(wan_line_take(line, 5, &f)); /* at once */
				assert_int_equal(f.to, WAN_A);
				assert_int_equal(parsed(&f).flow.proto, 1);
			}
			assert_int_equal(wan_line_take(line, SECOND, &f), fits);
			assert_int_equal(counters_of(line).too_big_told, told);
			assert_int_equal(stat_of(line, WAN_A, 0).link.lost_pkts[LINK_LOST_MTU],
					 fits ? 0 : 10);
			balance(line, fits ? 10 : 0);
			wan_line_destroy(line);
		}
	}
}

/* The last segment is short and fits; the others are answered. */
static void test_too_large_but_the_last(void **state)
{
	struct twin_spec spec = tcp(3, 1);
	struct wan_line *line;
	struct wan_frame f;

	(void)state;
	fresh(1);
	config->path[0][0].attr.mtu_bytes = 1400;
	line = make();
	spec.payload_bytes -= 1000;
	spec.tcp_flags |= TWIN_PSH;
	offer(line, WAN_A, 5, &spec);
	assert_true(wan_line_take(line, 5, &f));
	assert_int_equal(f.to, WAN_A);
	assert_true(wan_line_take(line, 5, &f));
	assert_int_equal(f.to, WAN_B);
	assert_int_equal(parsed(&f).payload_bytes, MSS - 1000);
	balance(line, 1);
	wan_line_destroy(line);
}

/* Sends through the NAT and answers to where it came from; the port outside. */
static uint16_t nat_out(struct wan_line *line, uint64_t now_ns, const struct twin_spec *spec)
{
	struct wan_frame f;
	struct wan_packet p;

	offer(line, WAN_A, now_ns, spec);
	assert_true(wan_line_take(line, now_ns + NS_PER_MS, &f));
	assert_int_equal(f.to, WAN_B);
	assert_true(twin_frame_ok(f.bytes, f.len));
	p = parsed(&f);
	assert_int_equal(p.flow.dport, spec->dport);
	return p.flow.sport;
}

/* The port that an answer has when it is inside; 0: it was lost. */
static uint16_t nat_in(struct wan_line *line, uint64_t now_ns, const struct twin_spec *spec,
		       uint16_t outside)
{
	struct twin_spec answer = *spec;
	struct wan_frame f;

	answer.sport = spec->dport;
	answer.dport = outside;
	offer(line, WAN_B, now_ns, &answer);
	if (!wan_line_take(line, now_ns + NS_PER_MS, &f))
		return 0;
	assert_int_equal(f.to, WAN_A);
	assert_true(twin_frame_ok(f.bytes, f.len));
	return parsed(&f).flow.dport;
}

static void test_nat(void **state)
{
	struct twin_spec specs[] = {tcp(5, 1), udp(500, 3000, 4000), tcp(1, 1), udp(0, 5000, 6000)};
	struct wan_line *line;
	uint16_t first, second;
	uint64_t now = 0;

	(void)state;
	specs[2].csum = TWIN_FULL;
	specs[2].segment_bytes = 0;
	specs[3].csum = TWIN_FULL;
	specs[3].v6 = true;
	for (size_t i = 0; i < SDR_ARRAY_LEN(specs); i++) {
		fresh(1);
		set_both(0, 0, NS_PER_MS);
		config->nat = true;
		line = make();
		assert_int_equal(nat_in(line, now++, &specs[i], 1234), 0);
		first = nat_out(line, now++, &specs[i]);
		assert_int_not_equal(first, specs[i].sport);
		assert_int_equal(nat_out(line, now++, &specs[i]), first);
		assert_int_equal(nat_in(line, now++, &specs[i], first), specs[i].sport);
		wan_line_rebind(line);
		assert_int_equal(nat_in(line, now++, &specs[i], first), 0);
		second = nat_out(line, now++, &specs[i]);
		assert_int_not_equal(second, first);
		assert_int_equal(nat_in(line, now++, &specs[i], second), specs[i].sport);
		assert_int_equal(nat_in(line, now++, &specs[i], first), 0);
		assert_int_equal(counters_of(line).nat_rebinds, 1);
		/* One frame each; super-packets count their segments. */
		assert_int_equal(counters_of(line).nat_lost_pkts,
				 3 * (specs[i].segment_bytes ? 5 : 1));
		wan_line_check(line);
		wan_line_destroy(line);
	}
}

/* It forgets while the answer is under way: that one is lost. */
static void test_nat_looks_at_arrival(void **state)
{
	const struct twin_spec spec = udp(10, 1000, 2000);
	struct twin_spec answer = udp(10, 2000, 0);
	struct wan_line *line;
	struct wan_frame f;

	(void)state;
	fresh(1);
	set_both(0, 0, NS_PER_MS);
	config->nat = true;
	line = make();
	answer.dport = nat_out(line, 0, &spec);
	offer(line, WAN_B, 10, &answer);
	wan_line_rebind(line);
	assert_false(wan_line_take(line, SECOND, &f));
	assert_int_equal(counters_of(line).nat_lost_pkts, 1);
	balance(line, 1);
	/* By timeout, switched on while it runs. */
	config->nat_timeout_ns = 10 * NS_PER_MS;
	assert_int_equal(wan_line_set(line, SECOND, config), 0);
	answer.dport = nat_out(line, SECOND, &spec);
	assert_int_equal(nat_in(line, SECOND + NS_PER_MS, &spec, answer.dport), 1000);
	assert_int_equal(nat_in(line, SECOND + 20 * NS_PER_MS, &spec, answer.dport), 0);
	/* By the clock. */
	config->nat_timeout_ns = 0;
	config->nat_every_ns = 100 * NS_PER_MS;
	assert_int_equal(wan_line_set(line, 2 * SECOND, config), 0);
	answer.dport = nat_out(line, 2 * SECOND, &spec);
	assert_int_equal(nat_in(line, 2 * SECOND + 90 * NS_PER_MS, &spec, answer.dport), 1000);
	assert_int_equal(nat_in(line, 2 * SECOND + 110 * NS_PER_MS, &spec, answer.dport), 0);
	wan_line_destroy(line);
}

/* The sender behind the NAT knows the packet that the error quotes. */
static void test_nat_and_icmp_errors(void **state)
{
	const struct twin_spec spec = tcp(3, 1);
	struct wan_line *line;
	struct wan_frame f;
	struct wan_packet p;
	struct wan_port port;

	(void)state;
	fresh(1);
	config->nat = true;
	config->path[0][0].attr.mtu_bytes = 1000;
	line = make();
	offer(line, WAN_A, 0, &spec);
	assert_true(wan_line_take(line, 0, &f));
	assert_int_equal(f.to, WAN_A);
	assert_true(twin_checksums_ok((const uint8_t *)f.bytes + WAN_VNET_BYTES,
				      f.len - WAN_VNET_BYTES));
	p = parsed(&f);
	assert_true(wan_packet_port(f.bytes, f.len, &p, false, &port));
	assert_int_equal(port.value, spec.sport);
	assert_int_equal(counters_of(line).nat_lost_pkts, 0);
	wan_line_destroy(line);
}

/* Memory in use is close to what is in flight, never above the limit, and goes again. */
static void test_memory_limit(void **state)
{
	const struct twin_spec spec = tcp(44, 1);
	const uint64_t limit = 32 * 1024 * 1024;
	struct wan_line_counters c;
	struct wan_line *line;
	struct wan_frame f;
	uint64_t offered = 0, taken = 0, bytes;
	int cut_up;

	(void)state;
	for (cut_up = 0; cut_up < 2; cut_up++) {
		fresh(1);
		set_both(0, cut_up ? GBIT : 0, SECOND);
		config->memory_bytes = limit;
		line = make();
		offered = taken = 0;
		do {
			offer(line, WAN_A, 0, &spec);
			offered++;
			c = counters_of(line);
			assert_true(c.memory_bytes <= limit);
			bytes = stat_of(line, WAN_A, 0).in_flight_bytes;
			if (!c.no_memory_frames)
				assert_true(c.memory_bytes < bytes + bytes / 10 + (3 << 20));
		} while (wan_line_buffer(line) && !c.no_memory_frames);
		if (!c.no_memory_frames)
			wan_line_lost(line, WAN_A);
		assert_int_equal(counters_of(line).no_memory_frames, 1);
		assert_true(offered * spec.payload_bytes > limit - limit / 8);
		wan_line_check(line);
		while (wan_line_take(line, 10 * SECOND, &f))
			taken += f.len;
		assert_true(taken > limit - limit / 8);
		c = counters_of(line);
		assert_true(c.memory_bytes < 8 << 20);
		assert_in_range(c.memory_peak_bytes, limit - (2 << 20), limit);
		/* It goes on where there is room again. */
		offer(line, WAN_A, 10 * SECOND, &spec);
		assert_int_equal(counters_of(line).no_memory_frames, 1);
		wan_line_destroy(line);
	}
	config->memory_bytes = WAN_MEMORY_MIN(1) - 1;
	assert_int_equal(wan_line_create(config, 0, &sdr_alloc_system, &line), -ERANGE);
}

static uint64_t payload_sum(const void *bytes, size_t len)
{
	const uint8_t *at = (const uint8_t *)bytes + WAN_VNET_BYTES + 40;
	uint64_t sum = 0;

	for (size_t i = 0; i < len - WAN_VNET_BYTES - 40; i += 4)
		sum += get_be32(at + i);
	return sum;
}

/* Memory is used again and again, by paths whose pieces stay for different times: nothing is
 * written over before it was taken. */
static void test_contents_survive(void **state)
{
	enum { N = 1200 };
	static uint64_t sum[N];
	struct wan_line *line;
	struct wan_frame f;

	(void)state;
	memset(sum, 0, sizeof(sum));
	fresh(3);
	for (uint32_t path = 0; path < 3; path++)
		set_both(path, path == 1 ? GBIT : 0, (1 + 9 * path) * NS_PER_MS);
	config->path[WAN_A][2].attr.reorder_p = 0.01;
	config->path[WAN_A][2].attr.reorder_ns = 20 * NS_PER_MS;
	line = make();
	for (uint32_t i = 0; i < N + 100; i++) {
		struct twin_spec spec = tcp(44, i);
		void *buffer = wan_line_buffer(line);
		size_t len;

		assert_non_null(buffer);
		if (i < N) {
			spec.sport = (uint16_t)i;
			len = twin_build(&spec, buffer);
			sum[i] = payload_sum(buffer, len);
			wan_line_offer(line, WAN_A, i * 100 * NS_PER_US, len);
		}
		while (wan_line_take(line, i * 100 * NS_PER_US + (i < N ? 0 : SECOND), &f))
			sum[parsed(&f).flow.sport] -= payload_sum(f.bytes, f.len);
	}
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(sum[i], 0);
	balance(line, N * 44);
	assert_in_range(counters_of(line).memory_peak_bytes, 6 << 20, 40 << 20);
	wan_line_destroy(line);
}

struct failing {
	uint64_t left; /* allocations that still succeed */
	uint64_t live;
};

static void *failing_zalloc(void *arg, size_t bytes)
{
	struct failing *f = arg;

	if (f->left == 0)
		return NULL;
	f->left--;
	f->live++;
	return sdr_alloc_system.zalloc(NULL, bytes);
}

static void failing_free(void *arg, void *p)
{
	struct failing *f = arg;

	f->live--;
	sdr_alloc_system.free(NULL, p);
}

/* Whichever allocation fails: frames are lost and counted, and everything is given back. */
static void test_failing_allocations(void **state)
{
	const struct twin_spec spec = tcp(44, 1);

	(void)state;
	fresh(1);
	set_both(0, 10 * GBIT, 10 * NS_PER_MS);
	config->path[0][0].attr.loss = link_ge_iid(0.1);
	config->path[0][0].attr.jitter_ns = NS_PER_MS;
	config->path[0][0].attr.jitter_reorders = true;
	for (uint64_t left = 0; left < 12; left++) {
		struct failing failing = {.left = left};
		const struct sdr_alloc alloc = {failing_zalloc, failing_free, &failing};
		struct wan_line *line = NULL;
		struct wan_frame f;
		uint64_t lost = 0;

		if (wan_line_create(config, 0, &alloc, &line)) {
			assert_int_equal(left, 0);
			assert_int_equal(failing.live, 0);
			continue;
		}
		for (int i = 0; i < 60; i++) {
			if (wan_line_buffer(line)) {
				offer(line, WAN_A, 0, &spec);
				continue;
			}
			wan_line_lost(line, WAN_A);
			lost++;
		}
		wan_line_check(line);
		assert_true(counters_of(line).no_memory_frames >= lost);
		assert_true(left > 6 || counters_of(line).no_memory_frames > 0);
		while (left % 2 && wan_line_take(line, SECOND, &f))
			wan_line_check(line);
		wan_line_destroy(line);
		assert_int_equal(failing.live, 0);
	}
}

static void test_malformed_is_not_carried(void **state)
{
	struct wan_line *line;
	uint8_t *buffer;

	(void)state;
	fresh(1);
	line = make();
	buffer = wan_line_buffer(line);
	assert_non_null(buffer);
	memset(buffer, 0, 100);
	buffer[1] = 3; /* UDP fragmentation offload: not asked for */
	wan_line_offer(line, WAN_A, 0, 100);
	buffer = wan_line_buffer(line);
	wan_line_offer(line, WAN_A, 0, 0);
	assert_int_equal(counters_of(line).malformed_frames, 2);
	assert_int_equal(counters_of(line).frames, 0);
	assert_int_equal(wan_line_next_ns(line), UINT64_MAX);
	wan_line_destroy(line);
}

/* Frames to one end that are due at the same time keep their order, over all paths. */
static void test_equal_times_keep_order(void **state)
{
	struct wan_line *line;
	struct wan_frame f;

	(void)state;
	fresh(8);
	for (uint32_t p = 0; p < 8; p++)
		set_both(p, 0, NS_PER_MS);
	line = make();
	for (uint16_t i = 1; i <= 500; i++)
		offer(line, WAN_A, 0, &(struct twin_spec){.udp = true, .sport = i});
	for (uint16_t i = 1; i <= 500; i++) {
		assert_true(wan_line_take(line, NS_PER_MS, &f));
		assert_int_equal(parsed(&f).flow.sport, i);
	}
	balance(line, 500);
	wan_line_destroy(line);
}

static int set_up(void **state)
{
	(void)state;
	config = calloc(1, sizeof(*config));
	return config ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	free(config);
	return 0;
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
		cmocka_unit_test(test_too_large_is_told),
		cmocka_unit_test(test_too_large_but_the_last),
		cmocka_unit_test(test_nat),
		cmocka_unit_test(test_nat_looks_at_arrival),
		cmocka_unit_test(test_nat_and_icmp_errors),
		cmocka_unit_test(test_memory_limit),
		cmocka_unit_test(test_contents_survive),
		cmocka_unit_test(test_failing_allocations),
		cmocka_unit_test(test_malformed_is_not_carried),
		cmocka_unit_test(test_equal_times_keep_order),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the memory of what is in flight: limits, contents, allocations that fail. */
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

/* Memory in use is close to what is in flight, never above the limit, and goes again. */
static void test_memory_limit(void **state)
{
	const struct twin_spec spec = rig_tcp(44, 1);
	const uint64_t limit = 32 * 1024 * 1024;
	struct wan_line_counters c;
	struct wan_line *line;
	struct wan_frame f;
	uint64_t offered = 0, taken = 0, bytes;
	int cut_up;

	(void)state;
	for (cut_up = 0; cut_up < 2; cut_up++) {
		rig_fresh(1);
		rig_both(0, cut_up ? GBIT : 0, SECOND);
		rig_config->memory_bytes = limit;
		line = rig_make();
		offered = taken = 0;
		do {
			rig_offer(line, WAN_A, 0, &spec);
			offered++;
			c = rig_counters(line);
			assert_true(c.memory_bytes <= limit);
			bytes = rig_stat(line, WAN_A, 0).in_flight_bytes;
			if (!c.no_memory_frames)
				assert_true(c.memory_bytes < bytes + bytes / 10 + (3 << 20));
		} while (wan_line_buffer(line) && !c.no_memory_frames);
		if (!c.no_memory_frames)
			wan_line_lost(line, WAN_A);
		assert_int_equal(rig_counters(line).no_memory_frames, 1);
		assert_true(offered * spec.payload_bytes > limit - limit / 8);
		wan_line_check(line);
		while (wan_line_take(line, 10 * SECOND, &f))
			taken += f.len;
		assert_true(taken > limit - limit / 8);
		c = rig_counters(line);
		assert_true(c.memory_bytes < 8 << 20);
		assert_in_range(c.memory_peak_bytes, limit - (2 << 20), limit);
		/* It goes on where there is room again. */
		rig_offer(line, WAN_A, 10 * SECOND, &spec);
		assert_int_equal(rig_counters(line).no_memory_frames, 1);
		wan_line_destroy(line);
	}
	rig_config->memory_bytes = WAN_MEMORY_MIN(1) - 1;
	assert_int_equal(wan_line_create(rig_config, 0, &sdr_alloc_system, &line), -ERANGE);
}

/* Both directions, small and large, until nothing is in flight. */
static void use_all_paths(struct wan_line *line, uint64_t *now_ns, uint32_t frames)
{
	struct wan_frame f;

	for (uint32_t i = 0; i < frames; i++) {
		struct twin_spec spec = rig_tcp(44, i);

		spec.sport = (uint16_t)(1 + i % 200);
		for (int from = 0; from < 2; from++)
			rig_offer(line, (enum wan_end)from, *now_ns, &spec);
		*now_ns += 10 * NS_PER_MS;
		while (wan_line_take(line, *now_ns, &f))
			;
	}
	wan_line_check(line);
}

/* Paths that have gone keep no memory: with little of it, the others go on. */
static void test_gone_paths_give_memory_back(void **state)
{
	const uint64_t limit = 8 << 20;
	struct wan_line *line;
	uint64_t now = 0;

	(void)state;
	rig_fresh(LINK_MAX_PATHS);
	for (uint32_t path = 0; path < LINK_MAX_PATHS; path++) {
		rig_both(path, 0, 20 * NS_PER_MS);
		for (int from = 0; from < 2; from++)
			rig_config->path[from][path].attr.loss = link_ge_iid(0.02);
	}
	rig_config->memory_bytes = WAN_MEMORY_MIN(LINK_MAX_PATHS);
	line = rig_make();
	for (int round = 0; round < 3; round++) {
		rig_config->n_paths = LINK_MAX_PATHS;
		rig_config->memory_bytes = WAN_MEMORY_MIN(LINK_MAX_PATHS);
		assert_int_equal(wan_line_set(line, now, rig_config), 0);
		use_all_paths(line, &now, 200);
		/* A buffer that is handed out stays good. */
		if (round == 1)
			assert_non_null(wan_line_buffer(line));
		rig_config->n_paths = 1;
		rig_config->memory_bytes = limit;
		assert_int_equal(wan_line_set(line, now, rig_config), 0);
		use_all_paths(line, &now, 50);
		assert_int_equal(rig_counters(line).no_memory_frames, 0);
		assert_true(rig_counters(line).memory_bytes <= limit);
	}
	wan_line_destroy(line);
}

/* A limit that is lowered holds as soon as what was in flight has arrived. */
static void test_limit_is_lowered(void **state)
{
	const struct twin_spec spec = rig_tcp(44, 1);
	struct wan_line *line;
	struct wan_frame f;

	(void)state;
	rig_fresh(1);
	rig_both(0, 0, SECOND);
	line = rig_make();
	for (int i = 0; i < 1000; i++)
		rig_offer(line, WAN_A, 0, &spec);
	assert_true(rig_counters(line).memory_bytes > 60 << 20);
	rig_config->memory_bytes = WAN_MEMORY_MIN(1);
	assert_int_equal(wan_line_set(line, 1, rig_config), 0);
	if (wan_line_buffer(line))
		rig_offer(line, WAN_A, 1, &spec); /* what is left of the slab in use */
	while (wan_line_take(line, 3 * SECOND, &f))
		wan_line_check(line);
	assert_true(rig_counters(line).memory_bytes <= WAN_MEMORY_MIN(1));
	assert_int_equal(rig_stat(line, WAN_A, 0).in_flight_pkts, 0);
	rig_offer(line, WAN_A, 3 * SECOND, &spec);
	assert_int_equal(rig_stat(line, WAN_A, 0).in_flight_pkts, 44);
	wan_line_destroy(line);
}

/* What keeps pieces that overtake in order is memory too. */
static void test_limit_counts_all(void **state)
{
	const uint64_t limit = 16 << 20;
	const struct twin_spec spec = rig_udp(1, 1, 2);
	struct wan_line_counters c;
	struct wan_line *line;
	struct wan_frame f;
	uint64_t now = 0;

	(void)state;
	rig_fresh(1);
	rig_both(0, 0, SECOND);
	rig_config->path[0][0].attr.jitter_ns = SECOND;
	rig_config->path[0][0].attr.jitter_reorders = true;
	rig_config->memory_bytes = limit;
	line = rig_make();
	do {
		rig_offer(line, WAN_A, now++, &spec);
		c = rig_counters(line);
		assert_true(c.memory_bytes <= limit);
	} while (!c.no_memory_frames && wan_line_buffer(line));
	assert_true(rig_stat(line, WAN_A, 0).in_flight_pkts > 100000);
	assert_true(c.memory_bytes > limit - limit / 4);
	assert_true(c.memory_peak_bytes >= c.memory_bytes && c.memory_peak_bytes <= limit);
	wan_line_check(line);
	while (wan_line_take(line, 3 * SECOND, &f))
		;
	assert_int_equal(rig_stat(line, WAN_A, 0).in_flight_pkts, 0);
	rig_offer(line, WAN_A, 3 * SECOND, &spec);
	assert_int_equal(rig_stat(line, WAN_A, 0).in_flight_pkts, 1);
	wan_line_destroy(line);
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
	rig_fresh(3);
	for (uint32_t path = 0; path < 3; path++)
		rig_both(path, path == 1 ? GBIT : 0, (1 + 9 * path) * NS_PER_MS);
	rig_config->path[WAN_A][2].attr.reorder_p = 0.01;
	rig_config->path[WAN_A][2].attr.reorder_ns = 20 * NS_PER_MS;
	line = rig_make();
	for (uint32_t i = 0; i < N + 100; i++) {
		struct twin_spec spec = rig_tcp(44, i);
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
			sum[rig_parsed(&f).flow.sport] -= payload_sum(f.bytes, f.len);
	}
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(sum[i], 0);
	rig_balance(line, N * 44);
	assert_in_range(rig_counters(line).memory_peak_bytes, 6 << 20, 40 << 20);
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
	const struct twin_spec spec = rig_tcp(44, 1);

	(void)state;
	rig_fresh(1);
	rig_both(0, 10 * GBIT, 10 * NS_PER_MS);
	rig_config->path[0][0].attr.loss = link_ge_iid(0.1);
	rig_config->path[0][0].attr.jitter_ns = NS_PER_MS;
	rig_config->path[0][0].attr.jitter_reorders = true;
	for (uint64_t left = 0; left < 12; left++) {
		struct failing failing = {.left = left};
		const struct sdr_alloc alloc = {failing_zalloc, failing_free, &failing};
		struct wan_line *line = NULL;
		struct wan_frame f;
		uint64_t lost = 0;

		if (wan_line_create(rig_config, 0, &alloc, &line)) {
			assert_int_equal(left, 0);
			assert_int_equal(failing.live, 0);
			continue;
		}
		for (int i = 0; i < 60; i++) {
			if (wan_line_buffer(line)) {
				rig_offer(line, WAN_A, 0, &spec);
				continue;
			}
			wan_line_lost(line, WAN_A);
			lost++;
		}
		wan_line_check(line);
		assert_true(rig_counters(line).no_memory_frames >= lost);
		assert_true(left > 6 || rig_counters(line).no_memory_frames > 0);
		while (left % 2 && wan_line_take(line, SECOND, &f))
			wan_line_check(line);
		wan_line_destroy(line);
		assert_int_equal(failing.live, 0);
	}
}

/* What was reserved is there at once, stays when the line is empty, and is within the limit. */
static void test_reserve(void **state)
{
	const struct twin_spec spec = rig_tcp(44, 1);
	const uint64_t reserved = 8 << 20;
	struct wan_line *line;
	struct wan_frame f;

	(void)state;
	rig_fresh(1);
	rig_both(0, 0, SECOND);
	line = rig_make();
	wan_line_reserve(line, reserved);
	assert_in_range(rig_counters(line).memory_bytes, reserved, reserved + (2 << 20));
	for (unsigned int i = 0; i < 320; i++) /* 20 MiB */
		rig_offer(line, WAN_A, 0, &spec);
	assert_true(rig_counters(line).memory_bytes > 2 * reserved);
	while (wan_line_take(line, 10 * SECOND, &f))
		;
	assert_in_range(rig_counters(line).memory_bytes, reserved, reserved + (2 << 20));
	wan_line_check(line);
	wan_line_destroy(line);

	rig_config->memory_bytes = 2 * reserved;
	line = rig_make();
	wan_line_reserve(line, 4 * reserved);
	assert_in_range(rig_counters(line).memory_bytes, reserved - (3 << 20), reserved);
	wan_line_destroy(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_limit),
		cmocka_unit_test(test_gone_paths_give_memory_back),
		cmocka_unit_test(test_limit_is_lowered),
		cmocka_unit_test(test_reserve),
		cmocka_unit_test(test_limit_counts_all),
		cmocka_unit_test(test_contents_survive),
		cmocka_unit_test(test_failing_allocations),
	};

	return cmocka_run_group_tests(tests, rig_open, rig_close);
}

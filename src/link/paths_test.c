/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the path hash: even, stable, another one with another seed. */
#include "link/paths.h"

#include "base/bits.h"
#include "base/rng.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define FLOWS 200000u

/* Two hosts, one port fixed: what a pair of ours looks like. Only the source port changes. */
static struct link_flow port_flow(uint16_t sport)
{
	struct link_flow flow = {.sport = sport, .dport = 4791, .proto = 17};

	put_be32(flow.src + 8, 0xffff);
	put_be32(flow.src + 12, 0x0a000001);
	memcpy(flow.dst, flow.src, sizeof(flow.dst));
	flow.dst[15] = 2;
	return flow;
}

static struct link_flow random_flow(struct rng *rng)
{
	struct link_flow flow = {.sport = (uint16_t)rng_next(rng),
				 .dport = (uint16_t)rng_next(rng),
				 .proto = rng_below(rng, 2) ? 17 : 6};

	for (int i = 0; i < 16; i += 8) {
		put_be64(flow.src + i, rng_next(rng));
		put_be64(flow.dst + i, rng_next(rng));
	}
	return flow;
}

/* Chi-squared of counts over `cells` cells: mean cells - 1, variance twice that. */
static void assert_even(const uint32_t *count, uint32_t cells, uint32_t total)
{
	double expected = (double)total / cells, chi2 = 0, degrees = cells - 1;

	for (uint32_t i = 0; i < cells; i++)
		chi2 += (count[i] - expected) * (count[i] - expected) / expected;
	if ((chi2 - degrees) * (chi2 - degrees) > 36 * 2 * degrees)
		fail_msg("chi-squared %g of %g degrees of freedom", chi2, degrees);
}

static void test_flows_spread_evenly(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 1);
	for (uint32_t n = 2; n <= LINK_MAX_PATHS; n++) {
		uint32_t count[LINK_MAX_PATHS] = {0};

		for (uint32_t i = 0; i < FLOWS; i++) {
			struct link_flow flow = random_flow(&rng);
			uint32_t path = link_path_of(&flow, n, 5);

			assert_true(path < n);
			assert_int_equal(path, link_path_of(&flow, n, 5));
			count[path]++;
		}
		assert_even(count, n, FLOWS);
	}
}

/* Neighbouring ports, under many seeds: nothing of their pattern comes through. */
static void test_neighbouring_ports_spread_evenly(void **state)
{
	(void)state;
	for (uint32_t n = 2; n <= LINK_MAX_PATHS; n++) {
		uint32_t count[LINK_MAX_PATHS] = {0}, pair[LINK_MAX_PATHS * LINK_MAX_PATHS] = {0};

		for (uint64_t seed = 0; seed < 20000; seed++) {
			struct link_flow a = port_flow(49152), b = port_flow(49153);

			count[link_path_of(&a, n, seed)]++;
			pair[link_path_of(&a, n, seed) * n + link_path_of(&b, n, seed)]++;
		}
		assert_even(count, n, 20000);
		assert_even(pair, n * n, 20000);
		memset(count, 0, sizeof(count));
		for (uint32_t port = 1024; port < 65536; port++) {
			struct link_flow flow = port_flow((uint16_t)port);

			count[link_path_of(&flow, n, 3)]++;
		}
		assert_even(count, n, 65536 - 1024);
	}
}

/* Two routers in a row choose independently of each other: no polarisation. */
static void test_seeds_are_independent(void **state)
{
	uint32_t pair[64] = {0};

	(void)state;
	for (uint32_t port = 1024; port < 65536; port++) {
		struct link_flow flow = port_flow((uint16_t)port);

		pair[link_path_of(&flow, 8, 1) * 8 + link_path_of(&flow, 8, 2)]++;
	}
	assert_even(pair, 64, 65536 - 1024);
}

/* Each bit of the tuple moves about 7 flows of 8. */
static void test_all_of_the_tuple_counts(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 2);
	for (unsigned int bit = 0; bit < 8 * (16 + 16 + 2 + 2 + 1); bit++) {
		unsigned int moved = 0;

		for (int i = 0; i < 2000; i++) {
			struct link_flow a = random_flow(&rng), b = a;

			if (bit < 128)
				b.src[bit / 8] ^= (uint8_t)(1u << bit % 8);
			else if (bit < 256)
				b.dst[bit / 8 - 16] ^= (uint8_t)(1u << bit % 8);
			else if (bit < 272)
				b.sport ^= (uint16_t)(1u << (bit - 256));
			else if (bit < 288)
				b.dport ^= (uint16_t)(1u << (bit - 272));
			else
				b.proto ^= (uint8_t)(1u << (bit - 288));
			moved += link_path_of(&a, 8, 9) != link_path_of(&b, 8, 9);
		}
		assert_in_range(moved, 1750 - 90, 1750 + 90);
	}
}

static void test_one_path_takes_all(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 3);
	for (int i = 0; i < 1000; i++) {
		struct link_flow flow = random_flow(&rng);

		assert_int_equal(link_path_of(&flow, 1, rng_next(&rng)), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flows_spread_evenly),
		cmocka_unit_test(test_neighbouring_ports_spread_evenly),
		cmocka_unit_test(test_seeds_are_independent),
		cmocka_unit_test(test_all_of_the_tuple_counts),
		cmocka_unit_test(test_one_path_takes_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Random layouts of blocks: packets that come in any order, are told, asked for and decoded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rel/rx_code_twin.h"

static uint32_t pick(struct rng *rng, const uint32_t *from, uint32_t n, uint32_t below)
{
	return rng_below(rng, 2) ? from[rng_below(rng, n)] : 1 + (uint32_t)rng_below(rng, below);
}

static struct rel_coding random_coding(struct rng *rng)
{
	static const uint32_t ks[] = {1, 2, 32, 64, 127, 254}, ds[] = {1, 2, 16, 64, 1000};
	struct rel_coding c = {.code = rng_below(rng, 2) ? REL_CODE_RS : REL_CODE_XOR};
	c.k = pick(rng, ks, SDR_ARRAY_LEN(ks), 40);
	uint32_t most = REL_CODE_SYMBOLS_MAX - c.k;
	if (c.code == REL_CODE_XOR && most > c.k)
		most = c.k;
	c.m = rng_below(rng, 4) ? 1 + (uint32_t)rng_below(rng, u64_min(most, 8)) : most;
	c.depth = pick(rng, ds, SDR_ARRAY_LEN(ds), 30);
	c.span_pkts = 1 + (uint32_t)rng_below(rng, rng_below(rng, 4) ? 600 : 6000);
	c.span_start = rng_below(rng, 2) ? (uint32_t)rng_below(rng, 300) : 0;
	uint64_t nblocks = u64_div_up(c.span_pkts, c.k), usual = nblocks * c.m;
	static const uint32_t quarters[] = {0, 1, 3, 4, 5, 8};
	c.parity_room = (uint32_t)(usual * quarters[rng_below(rng, 6)] / 4);
	return c;
}

/* What arrives next: mostly what is next in the order of sending, or anything. */
struct source {
	uint64_t next, total;
	double keep;
	bool random;
};

static void some_arrive(struct side *s, struct rng *rng, struct source *src)
{
	for (uint64_t n = 1 + rng_below(rng, 150); n && src->next < src->total; n--) {
		uint64_t at = src->random ? rng_below(rng, src->total) : src->next;
		src->next++;
		if (rng_unit(rng) >= src->keep)
			continue;
		/* In order of sending parity is near its data: interleave the two by place. */
		uint64_t packet = at * s->npkts / src->total;
		uint64_t parity = at * (s->nparity + 1) / src->total;
		if (!side_has(s->data, packet) && rng_unit(rng) < src->keep)
			side_data_arrives(s, packet);
		if (parity < s->nparity && !side_has(s->parity, parity))
			side_parity_arrives(s, parity);
	}
}

static void some_is_fed(struct side *s, struct rng *rng)
{
	struct rel_rx_want want;
	uint64_t nwords = bits_words(s->npkts), pwords = bits_words(s->nparity);
	uint32_t first = (uint32_t)rng_below(rng, nwords);
	if (rng_below(rng, 2))
		side_feed(s, first, 1 + (uint32_t)rng_below(rng, nwords - first));
	else if (rel_rx_want_cum(&s->rx, MESSAGE, &want))
		side_feed(s, want.first_word, want.nwords);
	if (s->coded && pwords && rng_below(rng, 2))
		side_feed_parity(s, (uint32_t)rng_below(rng, pwords),
				 1 + (uint32_t)rng_below(rng, 20));
	else if (s->coded)
		(void)side_look(s);
}

static void run_layout(uint64_t seed)
{
	struct rng rng;
	rng_init(&rng, seed);
	struct rel_coding coding = random_coding(&rng);
	struct side *s = side_new(&coding, rng_below(&rng, 2) ? (uint32_t)rng_below(&rng, 100) : 0);
	struct source src = {.keep = 0.3 + 0.7 * rng_unit(&rng), .random = rng_below(&rng, 3) == 0};
	double decode = rng_unit(&rng);
	src.total = 2 * (uint64_t)s->npkts;
	if (rng_below(&rng, 2))
		side_code(s);
	while (src.next < src.total) {
		some_arrive(s, &rng, &src);
		some_is_fed(s, &rng);
		if (!s->coded && rng_below(&rng, 5) == 0) {
			side_code(s);
			(void)side_look(s);
		}
		(void)side_drain(s, &rng, decode);
		if (rng_below(&rng, 4) == 0) {
			side_check_drained(s);
			s->now += rng_below(&rng, 2 * TURN);
			(void)side_ack(s, 320 + rng_below(&rng, 900));
			(void)side_drain(s, &rng, decode);
		}
	}
	if (!s->coded)
		side_code(s);
	side_feed(s, 0, (uint32_t)bits_words(s->npkts));
	side_feed_parity(s, 0, (uint32_t)bits_words(s->coding.parity_room));
	(void)side_drain(s, &rng, 1);
	side_check_drained(s);
	s->now += 2 * TURN;
	(void)side_ack(s, 1150);
	rel_rx_close(&s->rx, MESSAGE);
	assert_false(rel_rx_next_block(&s->rx, &(struct rel_rx_block){0}));
	rel_rx_check(&s->rx);
	side_free(s);
}

static void random_layouts(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 250; seed++)
		run_layout(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_layouts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

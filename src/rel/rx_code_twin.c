/* SPDX-License-Identifier: Apache-2.0 */
/* See rx_code_twin.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rel/rx_code_twin.h"

void *side_words(uint64_t n)
{
	void *p = calloc(bits_words(n) + 1, 8);
	assert_non_null(p);
	return p;
}

void side_code(struct side *s)
{
	assert_int_equal(rel_rx_code(&s->rx, MESSAGE, &s->coding), 0);
	assert_int_equal(rel_rx_code(&s->rx, MESSAGE, &s->coding), 0);
	s->coded = true;
}

struct side *side_on(const struct rel_coding *coding, uint32_t tail, const struct sdr_alloc *alloc)
{
	struct side *s = calloc(1, sizeof(*s));
	struct rel_rx_params params = {.rtt_ns = RTT};
	struct code_params code = {.k = coding->k, .m = coding->m};
	assert_non_null(s);
	s->coding = *coding;
	s->npkts = coding->span_start + coding->span_pkts + tail;
	s->now = 1000 * MS;
	assert_int_equal(code_layout_init(&s->layout, coding->span_pkts, coding->k, coding->depth),
			 0);
	assert_int_equal(code_create(&sdr_alloc_system, coding->code == REL_CODE_XOR ? "xor" : "rs",
				     &code, &s->code),
			 0);
	s->nparity = (uint32_t)u64_min(coding->parity_room,
				       (uint64_t)code_parity_max(s->code) * s->layout.nblocks);
	s->data = side_words(s->npkts);
	s->fed = side_words(s->npkts);
	s->parity = side_words(coding->parity_room);
	s->pfed = side_words(coding->parity_room);
	s->told_set = side_words(s->layout.nblocks);
	s->pending = calloc(s->layout.nblocks, sizeof(bool));
	assert_non_null(s->pending);
	assert_int_equal(rel_rx_init(&s->rx, &params, alloc), 0);
	return s;
}

struct side *side_new(const struct rel_coding *coding, uint32_t tail)
{
	struct side *s = side_on(coding, tail, &sdr_alloc_system);
	assert_int_equal(rel_rx_open(&s->rx, MESSAGE, s->npkts), 0);
	assert_int_equal(rel_rx_end(&s->rx, MESSAGE, s->npkts), 0);
	return s;
}

void side_free(struct side *s)
{
	rel_rx_fini(&s->rx);
	code_destroy(s->code);
	free(s->data);
	free(s->fed);
	free(s->parity);
	free(s->pfed);
	free(s->told_set);
	free(s->pending);
	free(s);
}

/* ---- the twin ---- */

struct code_set side_have(const struct side *s, uint32_t block)
{
	struct code_set out = {0};
	for (uint32_t i = 0; i < s->coding.k; i++) {
		uint32_t pkt = code_layout_packet(&s->layout, block, i);
		if (pkt == CODE_LAYOUT_NONE ||
		    side_has(s->fed, (uint64_t)s->coding.span_start + pkt))
			code_set_add(&out, i);
	}
	return out;
}

static struct code_set parity_of(const struct side *s, uint32_t block)
{
	struct code_set out = {0};
	for (uint32_t i = 0; i < code_parity_max(s->code); i++) {
		uint64_t pkt = code_layout_parity_packet(&s->layout, block, i);
		if (pkt < s->nparity && side_has(s->pfed, pkt))
			code_set_add(&out, i);
	}
	return out;
}

bool side_lacks(const struct side *s, uint32_t block)
{
	struct code_set have = side_have(s, block);
	return code_set_count(&have) < s->coding.k;
}

uint32_t side_deficit(const struct side *s, uint32_t block)
{
	struct code_block b = {
		.count = code_layout_block_count(&s->layout, block), .len = 1, .last_len = 1};
	struct code_set have = side_have(s, block), parity = parity_of(s, block);
	return code_deficit(s->code, &b, &have, &parity);
}

/* The group of the highest packet that is known, or -1. */
static int64_t group_seen(const struct side *s)
{
	for (uint64_t pkt = s->npkts; pkt-- > s->coding.span_start;) {
		if (!side_has(s->fed, pkt))
			continue;
		uint64_t at = u64_min(pkt - s->coding.span_start, s->coding.span_pkts - 1);
		return (int64_t)(code_layout_place(&s->layout, (uint32_t)at).block /
				 s->layout.depth);
	}
	return -1;
}

uint32_t side_report_to(const struct side *s)
{
	const struct code_layout *l = &s->layout;
	int64_t batch = (int64_t)u64_div_up(BATCH_BLOCKS, l->depth), group = group_seen(s);
	uint64_t to = s->later ? l->nblocks : 0;
	if (group >= batch)
		to = u64_max(to, (uint64_t)(group - batch + 1) * l->depth);
	for (uint64_t pkt = 0; pkt < s->nparity; pkt++) {
		struct code_place at = code_layout_parity_place(l, pkt);
		bool last = at.symbol + 1 >= s->coding.m || pkt + l->nblocks >= s->nparity;
		if (last && side_has(s->pfed, pkt))
			to = u64_max(to, (uint64_t)at.block + 1);
	}
	return (uint32_t)to;
}

static uint32_t quiet_to(const struct side *s)
{
	uint64_t to = side_report_to(s);
	int64_t group = group_seen(s);
	if (group >= 0)
		to = u64_max(to, (uint64_t)(group + 1) * s->layout.depth);
	for (uint64_t pkt = 0; pkt < s->nparity; pkt++) {
		if (side_has(s->pfed, pkt))
			to = u64_max(to, code_layout_parity_place(&s->layout, pkt).block + 1);
	}
	return (uint32_t)u64_min(to ? to + REL_RX_QUIET_BLOCKS : 0, s->layout.nblocks);
}

/* ---- events ---- */

void side_arrived(struct side *s)
{
	s->arrived_ns = s->now;
	rel_rx_arrived(&s->rx, ++s->arrived, s->now);
}

void side_data_arrives(struct side *s, uint64_t pkt)
{
	side_add(s->data, pkt);
	side_arrived(s);
	rel_rx_dirty(&s->rx, MESSAGE);
}

void side_parity_arrives(struct side *s, uint64_t pkt)
{
	side_add(s->parity, pkt);
	side_arrived(s);
}

/* Words of our message are handed over; the twin sees what is new in them. */
void side_feed(struct side *s, uint32_t first, uint32_t n)
{
	uint64_t words = bits_words(s->npkts), start = s->coding.span_start;
	for (uint64_t w = first; w < first + (uint64_t)n && w < words; w++) {
		uint64_t fresh = s->data[w] & ~s->fed[w];
		s->fed[w] |= fresh;
		for (; fresh; fresh &= fresh - 1) {
			uint64_t pkt = w * 64 + (uint64_t)__builtin_ctzll(fresh);
			if (pkt < start || pkt - start >= s->coding.span_pkts)
				continue;
			s->pending[code_layout_place(&s->layout, (uint32_t)(pkt - start)).block] =
				true;
		}
	}
	(void)rel_rx_feed(&s->rx, MESSAGE, first, s->data + first, n);
}

void side_feed_parity(struct side *s, uint32_t first, uint32_t n)
{
	uint64_t words = bits_words(s->coding.parity_room);
	if (!s->coded || first >= words)
		return;
	n = (uint32_t)u64_min(n, words - first);
	for (uint64_t w = first; w < first + (uint64_t)n; w++) {
		uint64_t fresh = s->parity[w] & ~s->pfed[w];
		for (; fresh; fresh &= fresh - 1) {
			uint64_t pkt = w * 64 + (uint64_t)__builtin_ctzll(fresh);
			if (pkt >= s->nparity)
				break;
			side_add(s->pfed, pkt);
			s->pending[code_layout_parity_place(&s->layout, pkt).block] = true;
		}
	}
	rel_rx_feed_parity(&s->rx, MESSAGE, first, s->parity + first, n);
}

/* As a connection does when parity came; how many words it had to look at. */
uint64_t side_look(struct side *s)
{
	struct rel_rx_want want;
	uint64_t looked = 0, at_least = 0;
	uint32_t at = 0;
	while (rel_rx_want_parity(&s->rx, MESSAGE, &at, &want)) {
		assert_int_equal(want.message, MESSAGE);
		assert_in_range(want.nwords, 1, REL_RX_WANT_WORDS);
		assert_true(want.first_word >= at_least);
		at_least = (uint64_t)want.first_word + want.nwords;
		assert_true(at_least <= bits_words(s->nparity));
		side_feed_parity(s, want.first_word, want.nwords);
		looked += want.nwords;
	}
	return looked;
}

/* Each block that can be decoded and had news is named once, with the right symbols. */
uint32_t side_drain(struct side *s, struct rng *rng, double decode)
{
	struct rel_rx_block got;
	uint32_t named = 0;
	while (rel_rx_next_block(&s->rx, &got)) {
		struct code_set have = side_have(s, got.block), parity = parity_of(s, got.block);
		assert_int_equal(got.message, MESSAGE);
		assert_true(got.block < s->layout.nblocks && s->pending[got.block]);
		assert_true(side_lacks(s, got.block) && side_deficit(s, got.block) == 0);
		assert_memory_equal(&got.have, &have, sizeof(have));
		assert_memory_equal(&got.parity, &parity, sizeof(parity));
		s->pending[got.block] = false;
		named++;
		if (rng_unit(rng) < decode) {
			for (uint32_t i = 0; i < s->coding.k; i++) {
				uint32_t pkt = code_layout_packet(&s->layout, got.block, i);
				if (pkt == CODE_LAYOUT_NONE)
					continue;
				side_add(s->data, (uint64_t)s->coding.span_start + pkt);
				side_feed(s, (s->coding.span_start + pkt) / 64, 1);
			}
			s->pending[got.block] = false;
		}
		if (rng_below(rng, 2) || !side_lacks(s, got.block))
			rel_rx_block_done(&s->rx, MESSAGE, got.block);
	}
	return named;
}

void side_check_drained(const struct side *s)
{
	for (uint32_t b = 0; s->coded && b < s->layout.nblocks; b++)
		assert_false(s->pending[b] && side_lacks(s, b) && side_deficit(s, b) == 0);
	rel_rx_check(&s->rx);
}

/* An ACK's deficits are the truth, and all of it if there was room. Its length. */
int side_ack(struct side *s, size_t cap)
{
	uint8_t buf[1400];
	struct rel_channel_fact fact = {.psn_valid = true, .received = s->arrived};
	struct wire_ack_deficit d;
	struct rel_rx_want want;
	struct wire_ack a;
	uint64_t sum = 0;
	bool quiet = s->now - s->arrived_ns >= TURN;
	bool goes_on = s->rx.deficits_cut; /* then it begins where the last one ended */
	assert_int_equal(rel_rx_ack_begin(&s->rx, s->now, 1, &fact, 1, buf, cap), 0);
	while (rel_rx_scan(&s->rx, &want)) {
		if (want.message == MESSAGE)
			side_feed(s, want.first_word, want.nwords);
		else
			(void)rel_rx_feed(&s->rx, want.message, want.first_word,
					  (const uint64_t[REL_RX_WANT_WORDS]){1}, want.nwords);
	}
	/* What was fed for it is not news to what it says after quiet. */
	uint32_t to = quiet ? quiet_to(s) : side_report_to(s);
	int len = rel_rx_ack_end(&s->rx);
	assert_int_equal(wire_ack_open(buf, (size_t)len, &a), 0);
	memset(s->told_set, 0, bits_words(s->layout.nblocks) * 8);
	for (s->told = 0; wire_ack_next_deficit(&a, &d) > 0; s->told++) {
		assert_int_equal(d.message, MESSAGE);
		assert_true(d.block < to);
		assert_int_equal(d.deficit, side_deficit(s, d.block));
		side_add(s->told_set, d.block);
		sum += d.deficit;
	}
	assert_int_equal(rel_rx_lacking(&s->rx), sum);
	s->cut += s->rx.deficits_cut;
	for (uint32_t b = 0; s->coded && !s->rx.deficits_cut && !goes_on && b < to; b++)
		assert_true(side_has(s->told_set, b) == (side_deficit(s, b) > 0));
	return len;
}

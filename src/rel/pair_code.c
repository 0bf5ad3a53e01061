/* SPDX-License-Identifier: Apache-2.0 */
/* The harness's coded messages: their parity, what can be decoded in truth, needless repairs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "rel/pair_priv.h"

static void random_coding(struct rng *rng, uint32_t npkts, struct rel_coding *c)
{
	*c = (struct rel_coding){
		.code = (enum rel_code)rng_below(rng, 4) ? REL_CODE_RS : REL_CODE_XOR,
		.k = 1 + (uint32_t)rng_below(rng, rng_below(rng, 2) ? 40 : 200),
		.depth = 1 + (uint32_t)rng_below(rng, rng_below(rng, 2) ? 3 : 80),
		.fresh = rng_below(rng, 2),
		.copies = (uint32_t)rng_below(rng, 5),
		.gap_ns = rng_below(rng, 2) ? rng_below(rng, 2000000) : 0,
	};
	if (rng_below(rng, 8) == 0)
		c->code = REL_CODE_NONE;
	c->m = 1 + (uint32_t)rng_below(rng, u64_min(255 - c->k, rng_below(rng, 4) ? 8 : 60));
	if (c->code == REL_CODE_XOR)
		c->m = (uint32_t)u64_min(c->m, c->k);
	c->span_start = rng_below(rng, 2) ? 0 : (uint32_t)rng_below(rng, npkts);
	c->span_pkts = npkts - c->span_start;
	if (rng_below(rng, 2))
		c->span_pkts = 1 + (uint32_t)rng_below(rng, c->span_pkts);
	for (uint32_t i = 0; i < REL_MARGINS; i++)
		c->margin[i] = (uint8_t)rng_below(rng, 3);
	uint32_t nblocks = (uint32_t)u64_div_up(c->span_pkts, c->k);
	uint32_t rows = (uint32_t)u64_min(255 - c->k, c->m + 10);
	switch (rng_below(rng, 4)) {
	case 0:
		break; /* none */
	case 1:
		c->parity_room = (uint32_t)rng_below(rng, (uint64_t)rows * nblocks);
		break;
	default:
		c->parity_room = rows * nblocks;
	}
}

const struct rel_coding *pair_code_open(struct pair *p, struct pair_msg *m)
{
	struct rel_coding *c = &m->coding;
	if (p->c->random_coding)
		random_coding(&p->rng, m->npkts, c);
	else
		*c = p->c->coding;
	if (p->c->whole_span)
		c->span_pkts = m->npkts;
	if (c->code == REL_CODE_NONE)
		return c->copies > 1 ? c : NULL;
	assert_int_equal(code_layout_init(&m->layout, c->span_pkts, c->k, c->depth), 0);
	if (p->c->full_room)
		c->parity_room = (255 - c->k) * m->layout.nblocks;
	p->out->parity_due += u64_min(c->parity_room, (uint64_t)c->m * m->layout.nblocks);
	m->parity = calloc(bits_words(c->parity_room) + 1, 8);
	m->parity_sent = calloc((size_t)c->parity_room + 1, 1);
	return c;
}

void pair_code_fini(struct pair_msg *m)
{
	free(m->parity);
	free(m->parity_sent);
}

static bool word_has(const uint64_t *words, uint64_t packet)
{
	return words[packet / 64] >> (packet % 64) & 1;
}

/* With what has arrived or is under way, the block will be whole. */
static bool suffices(const struct pair_msg *m, uint32_t block)
{
	const struct rel_coding *c = &m->coding;
	uint32_t count = code_layout_block_count(&m->layout, block), have = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t k = c->span_start + code_layout_packet(&m->layout, block, i);
		have += word_has(m->words, k) || (m->times[k] && !m->lost[k]);
	}
	for (uint64_t k = block; k < c->parity_room; k += m->layout.nblocks)
		have += m->parity_sent[k] == 1;
	return have >= count;
}

void pair_judge_resend(struct pair *p, const struct pair_msg *m, uint32_t packet)
{
	const struct rel_coding *c = &m->coding;
	if (c->code != REL_CODE_RS || packet < c->span_start ||
	    packet - c->span_start >= c->span_pkts)
		return;
	uint32_t block = code_layout_place(&m->layout, packet - c->span_start).block;
	p->out->needless += suffices(m, block);
}

uint64_t pair_launch_parity(struct pair *p, const struct rel_range *r, uint32_t channel)
{
	struct pair_msg *m = &p->msg[pair_index(p, r->message)];
	const struct rel_coding *c = &m->coding;
	uint64_t bits = 0;
	FAIL_IF(p, c->code == REL_CODE_NONE || r->resend || r->probe);
	FAIL_IF(p, (uint64_t)r->first + r->count > c->parity_room);
	FAIL_IF(p, r->first / 64 != (r->first + r->count - 1) / 64);
	for (uint32_t k = r->first; k < r->first + r->count; k++) {
		struct code_place place = code_layout_parity_place(&m->layout, k);
		uint32_t count = code_layout_block_count(&m->layout, place.block);
		bool repair = place.symbol >= c->m;
		FAIL_IF(p, m->parity_sent[k] != 0); /* once each */
		FAIL_IF(p, repair && (!c->fresh || c->code != REL_CODE_RS));
		FAIL_IF(p, repair && place.symbol >= 255 - c->k);
		/* Its data went before it. */
		for (uint32_t i = 0; i < count; i++)
			FAIL_IF(p, !m->times[c->span_start +
					     code_layout_packet(&m->layout, place.block, i)]);
		if (repair)
			p->out->needless += suffices(m, place.block);
		bool lost = pair_lost_now(p, channel) || (p->c->lose_parity && !repair);
		m->parity_sent[k] = lost ? 2 : 1;
		m->parity_pkts++;
		if (!lost)
			bits |= UINT64_C(1) << (k % 64);
	}
	return bits;
}

uint64_t pair_parity_arrives(struct pair *p, const struct pair_event *e)
{
	struct pair_msg *m = &p->msg[pair_index(p, e->message)];
	uint64_t *word = &m->parity[e->first / 64];
	uint64_t fresh = m->complete ? 0 : e->bits & ~*word;
	*word |= fresh;
	return fresh;
}

/* New parity is looked for where the receiver says so; all of it must be found in time. */
static void take_parity(struct pair *p, const struct pair_msg *m, uint32_t message)
{
	struct rel_rx_want want;
	uint32_t at = 0;
	while (rel_rx_want_parity(&p->rx, message, &at, &want)) {
		FAIL_IF(p, want.first_word + want.nwords > bits_words(m->coding.parity_room));
		rel_rx_feed_parity(&p->rx, message, want.first_word, m->parity + want.first_word,
				   want.nwords);
	}
}

void pair_write_arrives(struct pair *p, uint32_t message)
{
	struct pair_msg *m = &p->msg[pair_index(p, message)];
	assert_int_equal(rel_rx_code(&p->rx, message, &m->coding), 0);
	for (uint32_t word = 0; word < bits_words(m->npkts); word++)
		if (m->words[word])
			pair_feed(p, m, message, word);
}

/* What the receiver says that it has is there, and is enough. */
static void check_block(struct pair *p, const struct pair_msg *m, const struct rel_rx_block *b)
{
	const struct rel_coding *c = &m->coding;
	uint32_t count = code_layout_block_count(&m->layout, b->block), missing = 0;
	uint8_t of_sum[256] = {0};
	for (uint32_t i = 0; i < count; i++) {
		uint32_t k = c->span_start + code_layout_packet(&m->layout, b->block, i);
		FAIL_IF(p, code_set_has(&b->have, i) != word_has(m->words, k));
		missing += !word_has(m->words, k);
		of_sum[i % c->m] = (uint8_t)(of_sum[i % c->m] + !word_has(m->words, k));
	}
	uint32_t n = 0;
	for (uint32_t j = code_set_next(&b->parity, 0); j < CODE_SET_BITS;
	     j = code_set_next(&b->parity, j + 1), n++)
		FAIL_IF(p,
			!word_has(m->parity, code_layout_parity_packet(&m->layout, b->block, j)));
	FAIL_IF(p, missing == 0 || n < missing);
	for (uint32_t i = 0; c->code == REL_CODE_XOR && i < c->m; i++)
		FAIL_IF(p, of_sum[i] > 1 || (of_sum[i] && !code_set_has(&b->parity, i)));
}

static void decode(struct pair *p, const struct rel_rx_block *b)
{
	struct pair_msg *m = &p->msg[pair_index(p, b->message)];
	uint32_t count = code_layout_block_count(&m->layout, b->block);
	check_block(p, m, b);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t k = m->coding.span_start + code_layout_packet(&m->layout, b->block, i);
		if (word_has(m->words, k))
			continue;
		m->words[k / 64] |= UINT64_C(1) << (k % 64);
		p->out->decoded_pkts++;
		pair_feed(p, m, b->message, k / 64);
	}
	rel_rx_block_done(&p->rx, b->message, b->block);
}

void pair_decode(struct pair *p)
{
	for (uint32_t i = p->whole; i < p->opened; i++) {
		struct pair_msg *m = &p->msg[i];
		if (m->coding.code && !m->complete)
			take_parity(p, m, pair_number(p, i));
	}
	struct rel_rx_block b;
	while (rel_rx_next_block(&p->rx, &b))
		decode(p, &b);
}

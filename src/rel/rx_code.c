/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiver's blocks: which have what, and which can be decoded. Symbols are counted as their
 * packets become known, so that nobody has to search bitmaps for them. Which blocks are told to
 * the sender is rx_deficit.c's. See rx.h.
 */
#include "rel/rx_priv.h"

#include <errno.h>
#include <string.h>

static bool bit_has(const uint64_t *set, uint32_t i)
{
	return set[i / 64] >> (i % 64) & 1;
}

/* ---- what a block has ---- */

static void ready_set(struct rel_rx *rx, struct rel_rx_msg *msg, uint32_t block)
{
	struct rel_rx_code *c = msg->code;
	if (bit_has(c->ready, block))
		return;
	c->ready[block / 64] |= UINT64_C(1) << (block % 64);
	c->nready++;
	c->ready_low = (uint32_t)u64_min(c->ready_low, block / 64);
	if (c->queued)
		return;
	c->queued = true;
	c->next_ready = NULL;
	*rx->ready_end = msg;
	rx->ready_end = &c->next_ready;
}

static void ready_clear(struct rel_rx_code *c, uint32_t block)
{
	if (!bit_has(c->ready, block))
		return;
	c->ready[block / 64] &= ~(UINT64_C(1) << (block % 64));
	c->nready--;
}

void rel_rx_code_unfail(struct rel_rx *rx, struct rel_rx_code *c, uint32_t block)
{
	if (!bit_has(c->fail, block))
		return;
	c->fail[block / 64] &= ~(UINT64_C(1) << (block % 64));
	c->nfail--;
	rx->nfail--;
}

/* A symbol of it came. With xor, enough parity may still be the wrong one. */
static void settle(struct rel_rx *rx, struct rel_rx_msg *msg, uint32_t block)
{
	struct rel_rx_code *c = msg->code;
	uint8_t lack = c->lack[block];
	bool enough = lack <= c->parity[block];
	if (lack == 0 || (enough && !c->xor_code))
		rel_rx_code_unfail(rx, c, block);
	if (lack && enough)
		ready_set(rx, msg, block);
	else
		ready_clear(c, block);
}

/* n data symbols of one block. */
static inline void take_data(struct rel_rx *rx, struct rel_rx_msg *msg, uint32_t block, uint32_t n)
{
	struct rel_rx_code *c = msg->code;
	SDR_ASSERT(c->lack[block] >= n);
	c->lack[block] = (uint8_t)(c->lack[block] - n);
	c->nlack -= c->lack[block] == 0;
	if (c->parity[block] || c->nfail)
		settle(rx, msg, block);
}

/* ---- data ---- */

static void stand_at(const struct code_layout *l, struct rel_rx_stand *s, uint32_t pkt)
{
	struct code_group g = code_layout_group(l, (uint32_t)(pkt / ((uint64_t)l->depth * l->k)));
	uint32_t r = pkt - g.first_pkt;
	*s = (struct rel_rx_stand){.pkt = pkt,
				   .first_block = g.first_block,
				   .nblocks = g.nblocks,
				   .col = r % g.nblocks,
				   .left = g.npkts - r};
}

/* n packets on, no further than the row that it stands in (the group, of a single block). */
static void stand_step(struct rel_rx_stand *s, uint32_t n)
{
	s->pkt += n;
	s->left -= n;
	if (s->nblocks > 1 && (s->col += n) == s->nblocks)
		s->col = 0;
}

/* Packets from where it stands, to the end of the row. */
static uint32_t stand_run(const struct rel_rx_stand *s)
{
	return s->nblocks == 1 ? s->left : (uint32_t)u64_min(s->nblocks - s->col, s->left);
}

/* Bits of `bits` are packets of the span from pkt on, of one row. */
static void take_run(struct rel_rx *rx, struct rel_rx_msg *msg, uint64_t bits)
{
	const struct rel_rx_stand *s = &msg->code->stand;
	if (s->nblocks == 1) {
		if (bits)
			take_data(rx, msg, s->first_block, (uint32_t)__builtin_popcountll(bits));
		return;
	}
	for (; bits; bits &= bits - 1)
		take_data(rx, msg, s->first_block + s->col + (uint32_t)__builtin_ctzll(bits), 1);
}

/* Bits, of `n` packets from where it stands; it then stands behind the last one that is set. */
static void take_runs(struct rel_rx *rx, struct rel_rx_msg *msg, uint64_t bits, uint32_t n)
{
	struct rel_rx_stand *s = &msg->code->stand;
	while (bits) {
		if (s->left == 0)
			stand_at(&msg->code->layout, s, s->pkt);
		uint32_t run = (uint32_t)u64_min(stand_run(s), n);
		take_run(rx, msg, bits & bits_low(run));
		stand_step(s, run);
		bits = run < REL_UNIT ? bits >> run : 0;
		n -= run;
	}
}

void rel_rx_code_learn(struct rel_rx *rx, struct rel_rx_msg *msg, uint32_t word, uint64_t fresh)
{
	struct rel_rx_code *c = msg->code;
	struct rel_rx_stand *s = &c->stand;
	uint64_t at = (uint64_t)word * REL_UNIT, start = c->coding.span_start;
	uint64_t end = start + c->coding.span_pkts;
	if (at < start)
		fresh &= ~bits_low((unsigned int)u64_min(start - at, REL_UNIT));
	fresh &= bits_low((unsigned int)u64_min(u64_sub_floor(end, at), REL_UNIT));
	if (!fresh)
		return;
	uint32_t skip = at < start ? (uint32_t)(start - at) : 0;
	uint32_t pkt = (uint32_t)(at + skip - start);
	if (s->left == 0 || s->pkt != pkt) {
		uint32_t zeros = (uint32_t)__builtin_ctzll(fresh) - skip;
		skip += zeros;
		stand_at(&c->layout, s, pkt + zeros);
	}
	take_runs(rx, msg, fresh >> skip, REL_UNIT - skip);
}

/* What is known already, when the code becomes known. */
static void count_known(struct rel_rx *rx, struct rel_rx_msg *msg)
{
	uint64_t end =
		bits_words((uint64_t)msg->code->coding.span_start + msg->code->coding.span_pkts);
	for (uint64_t word = msg->code->coding.span_start / REL_UNIT; word < end; word++) {
		const struct rel_known *page = msg->known[word / REL_KNOWN_WORDS];
		uint64_t bits = 0;
		if (word / REL_KNOWN_WORDS < msg->known_from)
			bits = rel_rx_valid_bits(msg, word);
		else if (page)
			bits = page->word[word % REL_KNOWN_WORDS];
		if (bits)
			rel_rx_code_learn(rx, msg, (uint32_t)word, bits);
	}
}

/* ---- parity ---- */

/* The last symbol of its block that is sent unasked. */
static bool last_row(const struct rel_rx_code *c, uint64_t row, uint32_t block)
{
	return row + 1 >= c->coding.m || (row + 1) * c->layout.nblocks + block >= c->nparity;
}

/* Bits: new parity symbols `row` of blocks from `block` on. */
static void take_parity(struct rel_rx *rx, struct rel_rx_msg *msg, uint64_t row, uint32_t block,
			uint64_t bits)
{
	struct rel_rx_code *c = msg->code;
	uint32_t last = block + 63 - (uint32_t)__builtin_clzll(bits);
	c->news = true;
	c->rows_seen = (uint32_t)u64_max(c->rows_seen, row + 1);
	c->seen_to = (uint32_t)u64_max(c->seen_to, (uint64_t)last + 1);
	for (; bits; bits &= bits - 1) {
		uint32_t b = block + (uint32_t)__builtin_ctzll(bits);
		c->parity[b]++;
		if (c->lack[b])
			settle(rx, msg, b);
	}
	if (last_row(c, row, last))
		rel_rx_code_report(rx, msg, last + 1);
}

/* Rows of a word: a message of few blocks has several in it. */
static void learn_parity(struct rel_rx *rx, struct rel_rx_msg *msg, uint32_t word, uint64_t fresh)
{
	const uint32_t nblocks = msg->code->layout.nblocks;
	uint64_t at = (uint64_t)word * REL_UNIT;
	uint64_t row = at / nblocks;
	uint32_t block = (uint32_t)(at % nblocks);
	while (fresh) {
		uint32_t n = (uint32_t)u64_min(nblocks - block, REL_UNIT);
		uint64_t bits = fresh & bits_low(n);
		if (bits)
			take_parity(rx, msg, row, block, bits);
		fresh = n < REL_UNIT ? fresh >> n : 0;
		row++;
		block = 0;
	}
}

void rel_rx_feed_parity(struct rel_rx *rx, uint32_t message, uint32_t first_word,
			const uint64_t *words, uint32_t nwords)
{
	struct rel_rx_msg *msg = rel_rx_find(rx, message);
	if (!msg || !msg->code)
		return;
	struct rel_rx_code *c = msg->code;
	uint64_t end = u64_min((uint64_t)first_word + nwords, bits_words(c->nparity));
	for (uint64_t word = first_word; word < end; word++) {
		uint64_t bits = words[word - first_word];
		bits &= bits_low((unsigned int)u64_min(c->nparity - word * REL_UNIT, REL_UNIT));
		if (!bits)
			continue;
		struct rel_known **page = &c->known[word / REL_KNOWN_WORDS];
		if (!*page)
			*page = alloc_zeroed(&rx->alloc, sizeof(**page));
		if (!*page)
			continue; /* no memory: it has not come yet, for us */
		uint64_t *known = &(*page)->word[word % REL_KNOWN_WORDS];
		uint64_t fresh = bits & ~*known;
		*known |= bits;
		if (fresh)
			learn_parity(rx, msg, (uint32_t)word, fresh);
	}
}

static bool parity_has(const struct rel_rx_code *c, uint64_t packet)
{
	uint64_t word = packet / REL_UNIT;
	const struct rel_known *page = c->known[word / REL_KNOWN_WORDS];
	return page && page->word[word % REL_KNOWN_WORDS] >> (packet % REL_UNIT) & 1;
}

/* ---- a code begins and ends ---- */

static bool coding_ok(const struct rel_rx_msg *msg, const struct rel_coding *p)
{
	return (p->code == REL_CODE_RS || (p->code == REL_CODE_XOR && p->m <= p->k)) && p->k >= 1 &&
	       p->m >= 1 && p->k < REL_CODE_SYMBOLS_MAX && p->m <= REL_CODE_SYMBOLS_MAX - p->k &&
	       p->depth >= 1 && p->depth <= REL_DEPTH_MAX && p->span_pkts >= 1 &&
	       p->span_start < msg->npkts && p->span_pkts <= msg->npkts - p->span_start;
}

static bool coding_same(const struct rel_coding *a, const struct rel_coding *b)
{
	return a->code == b->code && a->k == b->k && a->m == b->m && a->depth == b->depth &&
	       a->span_start == b->span_start && a->span_pkts == b->span_pkts &&
	       a->parity_room == b->parity_room;
}

/* All blocks lack all of their data. */
static void lack_all(struct rel_rx_code *c)
{
	const struct code_layout *l = &c->layout;
	struct code_group g = code_layout_group(l, code_layout_ngroups(l) - 1);
	memset(c->lack, (int)l->k, g.first_block);
	for (uint32_t b = g.first_block; b < l->nblocks; b++)
		c->lack[b] = (uint8_t)code_layout_block_count(l, b);
	c->nlack = l->nblocks;
}

/* One piece of memory: the struct, sets, counts, pages. */
static struct rel_rx_code *code_new(struct rel_rx *rx, const struct rel_coding *p,
				    const struct code_layout *l)
{
	uint64_t rows = p->code == REL_CODE_XOR ? p->m : REL_CODE_SYMBOLS_MAX - p->k;
	uint64_t nparity = u64_min(p->parity_room, rows * l->nblocks);
	size_t nset = bits_words(l->nblocks);
	size_t nknown = (size_t)u64_div_up(nparity, (uint64_t)REL_KNOWN_WORDS * REL_UNIT);
	struct rel_rx_code *c =
		alloc_zeroed(&rx->alloc, sizeof(*c) + (nknown + 2 * nset) * sizeof(uint64_t) +
						 2 * (size_t)l->nblocks);
	if (!c)
		return NULL;
	c->layout = *l;
	c->coding = *p;
	c->nparity = (uint32_t)nparity;
	c->nknown = (uint32_t)nknown;
	c->known = (struct rel_known **)(c + 1);
	c->ready = (uint64_t *)(c->known + nknown);
	c->fail = c->ready + nset;
	c->lack = (uint8_t *)(c->fail + nset);
	c->parity = c->lack + l->nblocks;
	c->look = REL_RX_QUIET_BLOCKS;
	lack_all(c);
	return c;
}

static int xor_new(struct rel_rx *rx, struct rel_rx_code *c)
{
	struct code_params params = {.k = c->coding.k, .m = c->coding.m};
	if (c->coding.code != REL_CODE_XOR)
		return 0;
	return code_create(&rx->alloc, "xor", &params, &c->xor_code);
}

int rel_rx_code(struct rel_rx *rx, uint32_t message, const struct rel_coding *coding)
{
	struct rel_rx_msg *msg = rel_rx_find(rx, message);
	struct code_layout layout;
	if (!msg || !msg->end_known || !coding_ok(msg, coding) ||
	    code_layout_init(&layout, coding->span_pkts, coding->k, coding->depth) < 0)
		return -EINVAL;
	if (msg->code)
		return coding_same(&msg->code->coding, coding) ? 0 : -EINVAL;
	struct rel_rx_code *c = code_new(rx, coding, &layout);
	if (!c)
		return -ENOMEM;
	if (xor_new(rx, c) < 0) {
		alloc_free(&rx->alloc, c);
		return -ENOMEM;
	}
	msg->code = c;
	rx->ncoded++;
	count_known(rx, msg);
	if (rx->any_seen && seq32_before(message, rx->top_message))
		rel_rx_code_report(rx, msg, layout.nblocks);
	else
		rel_rx_code_seen(rx, msg);
	return 0;
}

static void unqueue(struct rel_rx *rx, struct rel_rx_msg *msg)
{
	struct rel_rx_msg **at = &rx->ready;
	if (!msg->code->queued)
		return;
	while (*at != msg)
		at = &(*at)->code->next_ready;
	*at = msg->code->next_ready;
	if (!*at)
		rx->ready_end = at;
	msg->code->queued = false;
}

void rel_rx_code_free(struct rel_rx *rx, struct rel_rx_msg *msg)
{
	struct rel_rx_code *c = msg->code;
	if (!c)
		return;
	unqueue(rx, msg);
	rx->nfail -= c->nfail;
	rx->ncoded--;
	for (uint32_t i = 0; i < c->nknown; i++)
		alloc_free(&rx->alloc, c->known[i]);
	code_destroy(c->xor_code);
	alloc_free(&rx->alloc, c);
	msg->code = NULL;
}

/* ---- decoding ---- */

/* Symbols beyond the block's count are zeros: as good as here. */
static struct code_set have_set(const struct rel_rx_msg *msg, uint32_t block)
{
	const struct rel_rx_code *c = msg->code;
	struct code_group g = code_layout_group(&c->layout, block / c->layout.depth);
	struct code_set have = {0};
	uint64_t pkt = block - g.first_block;
	for (uint32_t i = 0; i < c->layout.k; i++, pkt += g.nblocks) {
		if (pkt >= g.npkts ||
		    rel_rx_known_has(msg, c->coding.span_start + g.first_pkt + (uint32_t)pkt))
			code_set_add(&have, i);
	}
	return have;
}

static struct code_set parity_set(const struct rel_rx_code *c, uint32_t block)
{
	struct code_set out = {0};
	uint64_t pkt = block;
	for (uint32_t i = 0; i < c->rows_seen && pkt < c->nparity; i++) {
		if (parity_has(c, pkt))
			code_set_add(&out, i);
		pkt += c->layout.nblocks;
	}
	return out;
}

uint32_t rel_rx_code_deficit(const struct rel_rx_msg *msg, uint32_t block)
{
	const struct rel_rx_code *c = msg->code;
	if (!c->xor_code || c->lack[block] == 0)
		return (uint32_t)u64_sub_floor(c->lack[block], c->parity[block]);
	struct code_block b = {
		.count = code_layout_block_count(&c->layout, block), .len = 1, .last_len = 1};
	struct code_set have = have_set(msg, block), parity = parity_set(c, block);
	return code_deficit(c->xor_code, &b, &have, &parity);
}

/* The next ready block of a message, no longer ready then; false: it has none. */
static bool pop_ready(struct rel_rx_code *c, uint32_t *block)
{
	while (c->nready && !c->ready[c->ready_low])
		c->ready_low++;
	if (c->nready == 0)
		return false;
	*block = c->ready_low * 64 + (uint32_t)__builtin_ctzll(c->ready[c->ready_low]);
	ready_clear(c, *block);
	return true;
}

bool rel_rx_next_block(struct rel_rx *rx, struct rel_rx_block *out)
{
	struct rel_rx_msg *msg;
	uint32_t block;
	while ((msg = rx->ready)) {
		if (!pop_ready(msg->code, &block)) {
			unqueue(rx, msg);
			continue;
		}
		if (rel_rx_code_deficit(msg, block))
			continue; /* xor: of the wrong groups */
		rel_rx_code_unfail(rx, msg->code, block);
		*out = (struct rel_rx_block){.message = msg->message,
					     .block = block,
					     .have = have_set(msg, block),
					     .parity = parity_set(msg->code, block)};
		return true;
	}
	return false;
}

void rel_rx_block_done(struct rel_rx *rx, uint32_t message, uint32_t block)
{
	struct rel_rx_msg *msg = rel_rx_find(rx, message);
	if (msg && msg->code && block < msg->code->layout.nblocks)
		ready_clear(msg->code, block);
}

/* ---- for tests ---- */

size_t rel_rx_code_bytes(const struct rel_rx_msg *msg)
{
	const struct rel_rx_code *c = msg->code;
	if (!c)
		return 0;
	size_t sum = sizeof(*c) + c->nknown * sizeof(uint64_t) +
		     2 * bits_words(c->layout.nblocks) * sizeof(uint64_t) +
		     2 * (size_t)c->layout.nblocks;
	for (uint32_t i = 0; i < c->nknown; i++)
		sum += c->known[i] ? sizeof(struct rel_known) : 0;
	return sum;
}

static void check_block(const struct rel_rx_msg *msg, uint32_t block)
{
	const struct rel_rx_code *c = msg->code;
	struct code_set have = have_set(msg, block), parity = parity_set(c, block);
	bool failed = bit_has(c->fail, block);
	SDR_ASSERT(c->lack[block] == c->layout.k - code_set_count(&have));
	SDR_ASSERT(c->parity[block] == code_set_count(&parity));
	SDR_ASSERT(!bit_has(c->ready, block) ||
		   (c->lack[block] && c->lack[block] <= c->parity[block]));
	SDR_ASSERT(!failed || (block < c->report_to && c->lack[block] &&
			       (c->xor_code || c->lack[block] > c->parity[block])));
	SDR_ASSERT(failed || block >= c->report_to || c->lack[block] <= c->parity[block]);
	SDR_ASSERT(block >= c->low || c->lack[block] == 0);
	(void)have;
	(void)parity;
	(void)failed;
}

void rel_rx_code_check(const struct rel_rx *rx, const struct rel_rx_msg *msg)
{
	const struct rel_rx_code *c = msg->code;
	uint32_t nlack = 0, nready = 0, nfail = 0;
	for (uint32_t b = 0; b < c->layout.nblocks; b++) {
		check_block(msg, b);
		nlack += c->lack[b] != 0;
		nready += bit_has(c->ready, b);
		nfail += bit_has(c->fail, b);
		SDR_ASSERT(!bit_has(c->ready, b) || b / 64 >= c->ready_low);
		SDR_ASSERT(!bit_has(c->fail, b) || b / 64 >= c->fail_low);
	}
	SDR_ASSERT(nlack == c->nlack && nready == c->nready && nfail == c->nfail);
	SDR_ASSERT(nready == 0 || c->queued);
	SDR_ASSERT(c->report_to <= c->layout.nblocks && c->seen_to <= c->layout.nblocks);
	(void)rx;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiver's blocks against a twin that works all out anew from the bitmaps: which can be
 * decoded, what an ACK says of them, where parity is looked for.
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
#include "base/bits.h"
#include "base/rng.h"
#include "code/code.h"
#include "code/layout.h"
#include "rel/rx.h"

#define MS UINT64_C(1000000)
#define RTT (16 * MS)
#define TURN (RTT / 16)
#define PROOF (TURN + REL_RX_PROOF_SLACK_NS) /* at this RTT */
#define MESSAGE 40u
#define BATCH_BLOCKS 16u

/* The owner's bitmaps, what of them the receiver was told, and what follows from that. */
struct side {
	struct rel_rx rx;
	struct rel_coding coding;
	struct code_layout layout;
	struct code *code;
	uint32_t npkts, nparity;
	uint64_t *data, *parity, *fed, *pfed;
	bool *pending; /* by block: a symbol came since it was last named */
	bool coded, later;
	uint64_t arrived, now, arrived_ns;
	uint32_t told, cut;
	uint64_t *told_set; /* blocks in the last ACK */
};

static bool has(const uint64_t *set, uint64_t i)
{
	return set[i / 64] >> (i % 64) & 1;
}

static void add(uint64_t *set, uint64_t i)
{
	set[i / 64] |= UINT64_C(1) << (i % 64);
}

static void *words_for(uint64_t n)
{
	void *p = calloc(bits_words(n) + 1, 8);
	assert_non_null(p);
	return p;
}

static void code_it(struct side *s)
{
	assert_int_equal(rel_rx_code(&s->rx, MESSAGE, &s->coding), 0);
	assert_int_equal(rel_rx_code(&s->rx, MESSAGE, &s->coding), 0);
	s->coded = true;
}

static struct side *side_on(const struct rel_coding *coding, uint32_t tail,
			    const struct sdr_alloc *alloc)
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
	s->data = words_for(s->npkts);
	s->fed = words_for(s->npkts);
	s->parity = words_for(coding->parity_room);
	s->pfed = words_for(coding->parity_room);
	s->told_set = words_for(s->layout.nblocks);
	s->pending = calloc(s->layout.nblocks, sizeof(bool));
	assert_non_null(s->pending);
	assert_int_equal(rel_rx_init(&s->rx, &params, alloc), 0);
	return s;
}

static struct side *side_new(const struct rel_coding *coding, uint32_t tail)
{
	struct side *s = side_on(coding, tail, &sdr_alloc_system);
	assert_int_equal(rel_rx_open(&s->rx, MESSAGE, s->npkts), 0);
	assert_int_equal(rel_rx_end(&s->rx, MESSAGE, s->npkts), 0);
	return s;
}

static void side_free(struct side *s)
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

static struct code_set have_of(const struct side *s, uint32_t block)
{
	struct code_set out = {0};
	for (uint32_t i = 0; i < s->coding.k; i++) {
		uint32_t pkt = code_layout_packet(&s->layout, block, i);
		if (pkt == CODE_LAYOUT_NONE || has(s->fed, (uint64_t)s->coding.span_start + pkt))
			code_set_add(&out, i);
	}
	return out;
}

static struct code_set parity_of(const struct side *s, uint32_t block)
{
	struct code_set out = {0};
	for (uint32_t i = 0; i < code_parity_max(s->code); i++) {
		uint64_t pkt = code_layout_parity_packet(&s->layout, block, i);
		if (pkt < s->nparity && has(s->pfed, pkt))
			code_set_add(&out, i);
	}
	return out;
}

static bool lacks(const struct side *s, uint32_t block)
{
	struct code_set have = have_of(s, block);
	return code_set_count(&have) < s->coding.k;
}

static uint32_t deficit_of(const struct side *s, uint32_t block)
{
	struct code_block b = {
		.count = code_layout_block_count(&s->layout, block), .len = 1, .last_len = 1};
	struct code_set have = have_of(s, block), parity = parity_of(s, block);
	return code_deficit(s->code, &b, &have, &parity);
}

/* The group of the highest packet that is known, or -1. */
static int64_t group_seen(const struct side *s)
{
	for (uint64_t pkt = s->npkts; pkt-- > s->coding.span_start;) {
		if (!has(s->fed, pkt))
			continue;
		uint64_t at = u64_min(pkt - s->coding.span_start, s->coding.span_pkts - 1);
		return (int64_t)(code_layout_place(&s->layout, (uint32_t)at).block /
				 s->layout.depth);
	}
	return -1;
}

static uint32_t report_to(const struct side *s)
{
	const struct code_layout *l = &s->layout;
	int64_t batch = (int64_t)u64_div_up(BATCH_BLOCKS, l->depth), group = group_seen(s);
	uint64_t to = s->later ? l->nblocks : 0;
	if (group >= batch)
		to = u64_max(to, (uint64_t)(group - batch + 1) * l->depth);
	for (uint64_t pkt = 0; pkt < s->nparity; pkt++) {
		struct code_place at = code_layout_parity_place(l, pkt);
		bool last = at.symbol + 1 >= s->coding.m || pkt + l->nblocks >= s->nparity;
		if (last && has(s->pfed, pkt))
			to = u64_max(to, (uint64_t)at.block + 1);
	}
	return (uint32_t)to;
}

static uint32_t quiet_to(const struct side *s)
{
	uint64_t to = report_to(s);
	int64_t group = group_seen(s);
	if (group >= 0)
		to = u64_max(to, (uint64_t)(group + 1) * s->layout.depth);
	for (uint64_t pkt = 0; pkt < s->nparity; pkt++) {
		if (has(s->pfed, pkt))
			to = u64_max(to, code_layout_parity_place(&s->layout, pkt).block + 1);
	}
	return (uint32_t)u64_min(to ? to + REL_RX_QUIET_BLOCKS : 0, s->layout.nblocks);
}

/* ---- events ---- */

static void arrived(struct side *s)
{
	s->arrived_ns = s->now;
	rel_rx_arrived(&s->rx, ++s->arrived, s->now);
}

static void data_arrives(struct side *s, uint64_t pkt)
{
	add(s->data, pkt);
	arrived(s);
	rel_rx_dirty(&s->rx, MESSAGE);
}

static void parity_arrives(struct side *s, uint64_t pkt)
{
	add(s->parity, pkt);
	arrived(s);
}

/* Words of our message are handed over; the twin sees what is new in them. */
static void feed(struct side *s, uint32_t first, uint32_t n)
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

static void feed_parity(struct side *s, uint32_t first, uint32_t n)
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
			add(s->pfed, pkt);
			s->pending[code_layout_parity_place(&s->layout, pkt).block] = true;
		}
	}
	rel_rx_feed_parity(&s->rx, MESSAGE, first, s->parity + first, n);
}

/* As a connection does when parity came; how many words it had to look at. */
static uint64_t look_for_parity(struct side *s)
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
		feed_parity(s, want.first_word, want.nwords);
		looked += want.nwords;
	}
	return looked;
}

/* Each block that can be decoded and had news is named once, with the right symbols. */
static uint32_t drain(struct side *s, struct rng *rng, double decode)
{
	struct rel_rx_block got;
	uint32_t named = 0;
	while (rel_rx_next_block(&s->rx, &got)) {
		struct code_set have = have_of(s, got.block), parity = parity_of(s, got.block);
		assert_int_equal(got.message, MESSAGE);
		assert_true(got.block < s->layout.nblocks && s->pending[got.block]);
		assert_true(lacks(s, got.block) && deficit_of(s, got.block) == 0);
		assert_memory_equal(&got.have, &have, sizeof(have));
		assert_memory_equal(&got.parity, &parity, sizeof(parity));
		s->pending[got.block] = false;
		named++;
		if (rng_unit(rng) < decode) {
			for (uint32_t i = 0; i < s->coding.k; i++) {
				uint32_t pkt = code_layout_packet(&s->layout, got.block, i);
				if (pkt == CODE_LAYOUT_NONE)
					continue;
				add(s->data, (uint64_t)s->coding.span_start + pkt);
				feed(s, (s->coding.span_start + pkt) / 64, 1);
			}
			s->pending[got.block] = false;
		}
		if (rng_below(rng, 2) || !lacks(s, got.block))
			rel_rx_block_done(&s->rx, MESSAGE, got.block);
	}
	return named;
}

static void check_drained(const struct side *s)
{
	for (uint32_t b = 0; s->coded && b < s->layout.nblocks; b++)
		assert_false(s->pending[b] && lacks(s, b) && deficit_of(s, b) == 0);
	rel_rx_check(&s->rx);
}

/* An ACK's deficits are the truth, and all of it if there was room. Its length. */
static int ack(struct side *s, size_t cap)
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
			feed(s, want.first_word, want.nwords);
		else
			(void)rel_rx_feed(&s->rx, want.message, want.first_word,
					  (const uint64_t[REL_RX_WANT_WORDS]){1}, want.nwords);
	}
	/* What was fed for it is not news to what it says after quiet. */
	uint32_t to = quiet ? quiet_to(s) : report_to(s);
	int len = rel_rx_ack_end(&s->rx);
	assert_int_equal(wire_ack_open(buf, (size_t)len, &a), 0);
	memset(s->told_set, 0, bits_words(s->layout.nblocks) * 8);
	for (s->told = 0; wire_ack_next_deficit(&a, &d) > 0; s->told++) {
		assert_int_equal(d.message, MESSAGE);
		assert_true(d.block < to);
		assert_int_equal(d.deficit, deficit_of(s, d.block));
		add(s->told_set, d.block);
		sum += d.deficit;
	}
	assert_int_equal(rel_rx_lacking(&s->rx), sum);
	s->cut += s->rx.deficits_cut;
	for (uint32_t b = 0; s->coded && !s->rx.deficits_cut && !goes_on && b < to; b++)
		assert_true(has(s->told_set, b) == (deficit_of(s, b) > 0));
	return len;
}

/* ---- random layouts ---- */

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
		if (!has(s->data, packet) && rng_unit(rng) < src->keep)
			data_arrives(s, packet);
		if (parity < s->nparity && !has(s->parity, parity))
			parity_arrives(s, parity);
	}
}

static void some_is_fed(struct side *s, struct rng *rng)
{
	struct rel_rx_want want;
	uint64_t nwords = bits_words(s->npkts), pwords = bits_words(s->nparity);
	uint32_t first = (uint32_t)rng_below(rng, nwords);
	if (rng_below(rng, 2))
		feed(s, first, 1 + (uint32_t)rng_below(rng, nwords - first));
	else if (rel_rx_want_cum(&s->rx, MESSAGE, &want))
		feed(s, want.first_word, want.nwords);
	if (s->coded && pwords && rng_below(rng, 2))
		feed_parity(s, (uint32_t)rng_below(rng, pwords), 1 + (uint32_t)rng_below(rng, 20));
	else if (s->coded)
		(void)look_for_parity(s);
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
		code_it(s);
	while (src.next < src.total) {
		some_arrive(s, &rng, &src);
		some_is_fed(s, &rng);
		if (!s->coded && rng_below(&rng, 5) == 0) {
			code_it(s);
			(void)look_for_parity(s);
		}
		(void)drain(s, &rng, decode);
		if (rng_below(&rng, 4) == 0) {
			check_drained(s);
			s->now += rng_below(&rng, 2 * TURN);
			(void)ack(s, 320 + rng_below(&rng, 900));
			(void)drain(s, &rng, decode);
		}
	}
	if (!s->coded)
		code_it(s);
	feed(s, 0, (uint32_t)bits_words(s->npkts));
	feed_parity(s, 0, (uint32_t)bits_words(s->coding.parity_room));
	(void)drain(s, &rng, 1);
	check_drained(s);
	s->now += 2 * TURN;
	(void)ack(s, 1150);
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

/* ---- the edges, one by one ---- */

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
				data_arrives(s, code_layout_packet(&s->layout, b, i));
		}
	}
	feed(s, 0, (uint32_t)bits_words(s->npkts));
}

static void row_arrives(struct side *s, uint32_t row, uint32_t first, uint32_t end)
{
	for (uint32_t b = first; b < end; b++)
		parity_arrives(s, code_layout_parity_packet(&s->layout, b, row));
	(void)look_for_parity(s);
}

/* A block is told once something later was seen, not before; what comes next takes it back. */
static void what_is_reportable(void **state)
{
	struct rel_coding coding = plain(128, 8, 2, 32);
	struct side *s = side_new(&coding, 0);
	(void)state;
	code_it(s);
	blocks_arrive(s, 0, 32, 3); /* a group, one packet short in each block */
	ack(s, 1150);
	assert_int_equal(s->told, 0);
	row_arrives(s, 0, 0, 10); /* the first row: ten are whole, the others may be still */
	ack(s, 1150);
	assert_int_equal(s->told, 0);
	row_arrives(s, 1, 0, 20); /* the last one, of twenty blocks: those and no others */
	ack(s, 1150);
	assert_int_equal(s->told, 0);
	assert_int_equal(report_to(s), 20);
	data_arrives(s, code_layout_packet(&s->layout, 32, 0)); /* the next group */
	feed(s, 4, 8);
	ack(s, 1150);
	assert_int_equal(s->told, 12);
	row_arrives(s, 7, 20, 22); /* parity that was asked for */
	ack(s, 1150);
	assert_int_equal(s->told, 10);
	s->now += TURN; /* quiet: the next group, and 64 blocks more, as far as they lack */
	ack(s, 1150);
	assert_int_equal(s->told, 10 + 96);
	arrived(s);
	ack(s, 1150);
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
	code_it(s);
	blocks_arrive(s, 0, 16, 0);
	ack(s, 1150);
	assert_int_equal(s->told, 0);
	blocks_arrive(s, 16, 18, UINT32_MAX);
	ack(s, 1150);
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
			code_it(s);
		blocks_arrive(s, 0, 3, 5);
		ack(s, 1150);
		assert_int_equal(s->told, 0);
		assert_false(rel_rx_feed(&s->rx, MESSAGE + 2, 0, &word, 1));
		s->later = true;
		if (late)
			code_it(s);
		ack(s, 1150);
		assert_int_equal(s->told, 3);
		row_arrives(s, 0, 0, 1);
		ack(s, 1150);
		assert_int_equal(s->told, 2);
		side_free(s);
	}
}

/* All blocks fail, and an ACK has room for few: each is told, in turn, windows or not. */
static void deficits_rotate(void **state)
{
	struct rel_coding coding = plain(1500, 16, 1, 50);
	struct side *s = side_new(&coding, 0);
	uint64_t *told = words_for(1500);
	uint32_t left = 1500, acks = 0;
	struct rng rng;
	(void)state;
	rng_init(&rng, 3);
	code_it(s);
	for (uint32_t b = 0; b < 1500; b++)
		for (uint32_t i = 0; i < 16; i++)
			if (rng_below(&rng, 2) || i == 0)
				data_arrives(s, code_layout_packet(&s->layout, b, i));
	feed(s, 0, (uint32_t)bits_words(s->npkts));
	row_arrives(s, 0, 1499, 1500);
	for (uint32_t b = 0; b < 1500; b++)
		left -= deficit_of(s, b) == 0;
	while (left) {
		assert_true(++acks < 20);
		assert_true(ack(s, 1150) <= 1150);
		assert_true(s->told > 80); /* the windows leave them room */
		for (uint32_t b = 0; b < 1500; b++) {
			left -= has(s->told_set, b) && !has(told, b);
			if (has(s->told_set, b))
				add(told, b);
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
	code_it(s);
	for (uint32_t i = 0; i < 5; i++)
		data_arrives(s, code_layout_packet(&s->layout, 2, i));
	feed(s, 0, 1);
	for (uint32_t row = 0; row < 3; row++) {
		assert_false(rel_rx_next_block(&s->rx, &got));
		row_arrives(s, row, 2, 3);
	}
	assert_true(rel_rx_next_block(&s->rx, &got));
	assert_int_equal(got.block, 2);
	assert_false(rel_rx_next_block(&s->rx, &got));
	data_arrives(s, code_layout_packet(&s->layout, 2, 5));
	feed(s, 0, 1);
	rel_rx_block_done(&s->rx, MESSAGE, 2);
	assert_false(rel_rx_next_block(&s->rx, &got));
	data_arrives(s, code_layout_packet(&s->layout, 2, 6));
	feed(s, 0, 1);
	assert_true(rel_rx_next_block(&s->rx, &got));
	data_arrives(s, code_layout_packet(&s->layout, 2, 7));
	feed(s, 0, 1);
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
		code_it(s);
		for (uint32_t b = 0; b < s->layout.nblocks; b++) {
			bool first = b == 0 || rng_below(&rng, 2);
			for (uint32_t i = first; i < 3; i++)
				data_arrives(s, code_layout_packet(&s->layout, b, i));
		}
		feed(s, 0, (uint32_t)bits_words(s->npkts));
		row_arrives(s, 3, 0, 1);
		for (uint32_t b = 0; b < s->layout.nblocks; b++)
			parity_arrives(s, code_layout_parity_packet(&s->layout, b,
								    (uint32_t)rng_below(&rng, 4)));
		looked = look_for_parity(s);
		assert_true(looked <= 4 * (bits_words(s->layout.nblocks) + 1));
		(void)drain(s, &rng, 1);
		for (uint32_t b = 0; b < s->layout.nblocks; b++)
			assert_false(lacks(s, b));
		assert_int_equal(look_for_parity(s), 0); /* nobody lacks anything */
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
	code_it(s);
	blocks_arrive(s, 0, 1, UINT32_MAX);
	/* Nobody was told anything yet: nothing beyond the usual two rows, near what was seen. */
	assert_in_range(look_for_parity(s), 1, 10);
	parity_arrives(s, code_layout_parity_packet(&s->layout, 4999, 1));
	while (!has(s->pfed, code_layout_parity_packet(&s->layout, 4999, 1))) {
		assert_true(looks++ < 10);
		(void)look_for_parity(s);
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
	code_it(s);
	blocks_arrive(s, 0, 16, UINT32_MAX);
	ack(s, 1150);
	blocks_arrive(s, 16, 32, 2);
	ack(s, 1150);
	s->now += REL_RX_ACK_GAP_NS;
	assert_true(rel_rx_ack_deadline(rx, s->now) > s->now);
	row_arrives(s, 0, 17, 18); /* 16 fails, 17 does not */
	uint64_t failed = s->now, due = rel_rx_ack_deadline(rx, s->now);
	assert_in_range(due, s->now, s->now + TURN / 4);
	s->now = due;
	ack(s, 1150);
	assert_int_equal(s->told, 1);
	/* Not again before its turn for what is known, but once it is proven. */
	s->now += TURN / 4;
	arrived(s);
	assert_int_equal(rel_rx_ack_deadline(rx, s->now), failed + PROOF);
	row_arrives(s, 0, 19, 20); /* 18 fails */
	uint64_t again = s->now;
	s->now = rel_rx_ack_deadline(rx, s->now);
	assert_true(s->now < failed + PROOF);
	ack(s, 1150);
	assert_int_equal(s->told, 2);
	s->now = rel_rx_ack_deadline(rx, s->now);
	assert_in_range(s->now, failed + PROOF, failed + PROOF + TURN / 4);
	ack(s, 1150);
	s->now += TURN / 4;
	arrived(s);
	assert_in_range(rel_rx_ack_deadline(rx, s->now), again + PROOF, again + PROOF + TURN / 4);
	side_free(s);
}

/* After the last arrival: just after the sender's reorder window, and it says what failed. */
static void quiet_proves(void **state)
{
	struct rel_coding coding = plain(2, 8, 2, 2);
	struct side *s = side_new(&coding, 0);
	(void)state;
	code_it(s);
	blocks_arrive(s, 0, 2, 7);
	ack(s, 1150);
	s->now += 10000;
	data_arrives(s, 15);
	feed(s, 0, 1);
	s->now += TURN;
	assert_true(rel_rx_ack_due(&s->rx, s->now));
	ack(s, 1150);
	assert_int_equal(rel_rx_ack_deadline(&s->rx, s->now), s->arrived_ns + PROOF);
	s->now = s->arrived_ns + PROOF;
	ack(s, 1150);
	assert_int_equal(s->told, 1);
	/* On a short path the window is not a part of the round trip. */
	rel_rx_set_rtt(&s->rx, MS);
	arrived(s);
	ack(s, 1150);
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
	code_it(s);
	assert_in_range(rel_rx_memory_bytes(&s->rx) - before, 2 * 16384, 3 * 16384);
	for (uint64_t pkt = 0; pkt < 8 * 16384; pkt++)
		add(s->parity, pkt);
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
				data_arrives(s, pkt);
		for (uint64_t pkt = 0; pkt < 8000; pkt++)
			parity_arrives(s, pkt);
		/* The front is whole: its pages pass by unknown. */
		feed(s, 0, (uint32_t)bits_words(s->npkts));
		feed_parity(s, 0, 8000 / 64);
		rel_rx_check(&s->rx);
		while (rel_rx_next_block(&s->rx, &got)) {
			struct code_set have = have_of(s, got.block);
			for (uint32_t w = 0; w < 4; w++)
				assert_int_equal(got.have.word[w] & ~have.word[w], 0);
		}
		failing.left = 1000;
		memset(s->pending, true, s->layout.nblocks);
		feed(s, 0, (uint32_t)bits_words(s->npkts));
		feed_parity(s, 0, 8000 / 64);
		rel_rx_check(&s->rx);
		assert_true(rel_rx_cum(&s->rx, MESSAGE) >= 9000);
		s->now += 2 * TURN;
		ack(s, 1150);
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
		cmocka_unit_test(random_layouts),      cmocka_unit_test(bad_codings),
		cmocka_unit_test(what_is_reportable),  cmocka_unit_test(batches),
		cmocka_unit_test(later_message),       cmocka_unit_test(deficits_rotate),
		cmocka_unit_test(parity_is_found),     cmocka_unit_test(parity_far_away),
		cmocka_unit_test(named_once),	       cmocka_unit_test(when_due),
		cmocka_unit_test(quiet_proves),	       cmocka_unit_test(memory),
		cmocka_unit_test(allocation_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

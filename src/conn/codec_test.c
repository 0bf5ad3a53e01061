/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages through the codec: parity that is the slow twin's, in one go and in pieces; losses that
 * come back, and no byte beside them; what is refused; codes that take turns.
 *
 * Packets are dealt to blocks here once more, one by one, as code/layout.h's picture has it.
 * CODEC_SEED=n replays one seed.
 */
#include "conn/codec.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc_failing.h"
#include "base/bits.h"
#include "base/rng.h"
#include "code/code_twin.h"

#define GUARD 64u
#define CANARY 0xa5
#define LOST 0x5a
#define SEEDS 400u

/* Bytes between canaries. */
struct bytes {
	uint8_t *mem, *at;
	uint64_t n;
};

static struct bytes bytes_new(uint64_t n, uint32_t misalign)
{
	struct bytes b = {malloc(n + 2 * GUARD + misalign), NULL, n};

	assert_non_null(b.mem);
	memset(b.mem, CANARY, n + 2 * GUARD + misalign);
	b.at = b.mem + GUARD + misalign;
	return b;
}

static void bytes_check(const struct bytes *b)
{
	for (uint32_t i = 1; i <= GUARD; i++) {
		assert_int_equal(b->at[-(int)i], CANARY);
		assert_int_equal(b->at[b->n + i - 1], CANARY);
	}
}

static void bytes_free(struct bytes *b)
{
	bytes_check(b);
	free(b->mem);
}

/* One message with its code. */
struct world {
	struct rng rng;
	struct codec codec;
	struct codec_write w;
	struct twin twin;
	struct bytes data, parity;
	uint8_t *whole;	  /* the data as it was */
	uint32_t *packet; /* [block * k + symbol]: packet of the message; UINT32_MAX: zeros */
	uint32_t nblocks, rows;
};

static uint32_t pkt_len(const struct world *o, uint32_t pkt)
{
	return (uint32_t)u64_min(o->w.payload, o->w.length - (uint64_t)pkt * o->w.payload);
}

/* A group at a time: its packets go to its blocks in turn. */
static void deal(struct world *o, uint32_t span_start, uint32_t npkts, uint32_t k, uint32_t depth)
{
	uint32_t first = 0, block = 0;

	o->nblocks = (npkts + k - 1) / k;
	o->packet = malloc((size_t)o->nblocks * k * sizeof(*o->packet));
	assert_non_null(o->packet);
	memset(o->packet, 0xff, (size_t)o->nblocks * k * sizeof(*o->packet));
	while (first < npkts) {
		uint64_t room = (uint64_t)depth * k;
		uint32_t n = (uint32_t)u64_min(room, npkts - first);
		uint32_t blocks = (n + k - 1) / k;

		for (uint32_t r = 0; r < n; r++)
			o->packet[(block + r % blocks) * k + r / blocks] = span_start + first + r;
		first += n;
		block += blocks;
	}
	assert_int_equal(block, o->nblocks);
}

static uint32_t symbols_of(const struct world *o, uint32_t block)
{
	uint32_t n = 0;

	while (n < o->w.k && o->packet[block * o->w.k + n] != UINT32_MAX)
		n++;
	return n;
}

struct shape {
	enum rel_code code;
	uint32_t k, m, depth, span_start, span_pkts, payload, rows;
	uint64_t length;
};

static void open_world(struct world *o, const struct shape *s, uint64_t seed)
{
	memset(o, 0, sizeof(*o));
	rng_init(&o->rng, seed);
	codec_init(&o->codec, &sdr_alloc_system);
	assert_int_equal(codec_write_init(&o->w, s->code, s->k, s->m, s->depth, s->span_start,
					  s->span_pkts, s->payload, s->length),
			 0);
	o->twin = (struct twin){.rs = s->code == REL_CODE_RS, .k = s->k, .m = s->m};
	deal(o, s->span_start, s->span_pkts, s->k, s->depth);
	assert_int_equal(o->w.layout.nblocks, o->nblocks);
	o->rows = s->rows;
	o->data = bytes_new(s->length, (uint32_t)rng_below(&o->rng, 64));
	o->parity = bytes_new((uint64_t)s->rows * o->nblocks * s->payload,
			      (uint32_t)rng_below(&o->rng, 64));
	for (uint64_t i = 0; i < s->length; i++)
		o->data.at[i] = (uint8_t)rng_next(&o->rng);
	o->whole = malloc(s->length);
	assert_non_null(o->whole);
	memcpy(o->whole, o->data.at, s->length);
	o->w.data = o->data.at;
	o->w.parity = o->parity.at;
	o->w.room = s->rows * o->nblocks;
}

static void close_world(struct world *o)
{
	bytes_free(&o->data);
	bytes_free(&o->parity);
	codec_fini(&o->codec);
	free(o->whole);
	free(o->packet);
}

static uint8_t *parity_at(const struct world *o, uint32_t block, uint32_t number)
{
	return o->parity.at + ((uint64_t)number * o->nblocks + block) * o->w.payload;
}

/* The twin's parity of one block is what is there. */
static void assert_parity(const struct world *o, uint32_t block)
{
	uint32_t n = symbols_of(o, block), len = o->w.payload;
	uint8_t *symbol[CODE_SYMBOLS_MAX], *sum = malloc(len);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t pkt = o->packet[block * o->w.k + i];

		symbol[i] = calloc(1, len);
		memcpy(symbol[i], o->whole + (uint64_t)pkt * len, pkt_len(o, pkt));
	}
	for (uint32_t j = 0; j < o->rows; j++) {
		twin_parity(&o->twin, j, symbol, n, len, sum);
		assert_memory_equal(parity_at(o, block, j), sum, len);
	}
	for (uint32_t i = 0; i < n; i++)
		free(symbol[i]);
	free(sum);
}

static void encode_all(struct world *o)
{
	assert_int_equal(codec_encode(&o->codec, &o->w, 0, o->nblocks, 0, o->rows), 0);
	bytes_check(&o->parity);
	assert_memory_equal(o->data.at, o->whole, o->data.n);
}

/* Pieces of blocks and rows, in any order, some twice: nothing but the piece is written. */
static void encode_in_pieces(struct world *o)
{
	uint32_t cells = o->nblocks * o->rows, left = cells;
	bool *there = calloc(cells + 1, sizeof(*there));
	uint8_t *made = malloc(o->parity.n + 1);

	memcpy(made, o->parity.at, o->parity.n);
	memset(o->parity.at, CANARY, o->parity.n);
	while (left) {
		uint32_t block = (uint32_t)rng_below(&o->rng, o->nblocks);
		uint32_t n = 1 + (uint32_t)rng_below(&o->rng, o->nblocks - block);
		uint32_t first = (uint32_t)rng_below(&o->rng, o->rows);
		uint32_t rows = 1 + (uint32_t)rng_below(&o->rng, o->rows - first);

		assert_int_equal(codec_encode(&o->codec, &o->w, block, n, first, rows), 0);
		for (uint32_t j = first; j < first + rows; j++)
			for (uint32_t b = block; b < block + n; b++) {
				left -= !there[j * o->nblocks + b];
				there[j * o->nblocks + b] = true;
			}
		for (uint32_t i = 0; i < cells; i++) {
			const uint8_t *at = o->parity.at + (uint64_t)i * o->w.payload;

			if (there[i])
				assert_memory_equal(at, made + (uint64_t)i * o->w.payload,
						    o->w.payload);
			else
				assert_int_equal(at[0], CANARY);
		}
	}
	bytes_check(&o->parity);
	free(there);
	free(made);
}

/* What of `lost` can be made good by `parity`? rs: all or nothing; xor: a loss a group. */
static bool enough(const struct world *o, const struct code_set *lost,
		   const struct code_set *parity)
{
	if (o->twin.rs)
		return code_set_count(lost) <= code_set_count(parity);
	for (uint32_t g = 0; g < o->w.m; g++) {
		uint32_t n = 0;

		for (uint32_t i = g; i < o->w.k; i += o->w.m)
			n += code_set_has(lost, i);
		if (n > 1 || (n == 1 && !code_set_has(parity, g)))
			return false;
	}
	return true;
}

static struct code_set random_set(struct world *o, uint32_t n, uint32_t below)
{
	struct code_set s = {0};

	for (uint32_t tries = 0; tries < n; tries++)
		code_set_add(&s, (uint32_t)rng_below(&o->rng, below));
	return s;
}

static void lose(struct world *o, uint32_t block, const struct code_set *lost)
{
	for (uint32_t i = code_set_next(lost, 0); i < CODE_SET_BITS;
	     i = code_set_next(lost, i + 1)) {
		uint32_t pkt = o->packet[block * o->w.k + i];

		memset(o->data.at + (uint64_t)pkt * o->w.payload, LOST, pkt_len(o, pkt));
	}
}

/* Loses packets of the block and, beside it, of its neighbour, which must stay lost. */
static void decode_block(struct world *o, uint32_t block)
{
	uint32_t n = symbols_of(o, block), other = (block + 1) % o->nblocks;
	struct code_set lost = random_set(o, (uint32_t)rng_below(&o->rng, o->w.m + 2), n);
	struct code_set parity = {0}, have = code_set_missing(&lost, n), beside = {0};
	uint8_t *before = malloc(o->data.n);
	int verdict;

	if (o->rows)
		parity = random_set(o, (uint32_t)rng_below(&o->rng, 2 * o->rows + 1), o->rows);
	for (uint32_t i = n; i < o->w.k; i++) /* zeros may be said to be there, or not */
		if (rng_below(&o->rng, 2))
			code_set_add(&have, i);
	code_set_add(&beside, 0);
	if (other != block)
		lose(o, other, &beside);
	lose(o, block, &lost);
	memcpy(before, o->data.at, o->data.n);
	verdict = codec_decode(&o->codec, &o->w, block, &have, &parity);
	if (enough(o, &lost, &parity)) {
		assert_int_equal(verdict, code_set_count(&lost));
		memcpy(before, o->whole, o->data.n);
		if (other != block) {
			uint32_t pkt = o->packet[other * o->w.k];

			memset(before + (uint64_t)pkt * o->w.payload, LOST, pkt_len(o, pkt));
		}
	} else {
		assert_int_equal(verdict, -EAGAIN);
	}
	assert_memory_equal(o->data.at, before, o->data.n);
	bytes_check(&o->data);
	memcpy(o->data.at, o->whole, o->data.n);
	free(before);
}

static void whole_message(const struct shape *s, uint64_t seed)
{
	struct world o;

	open_world(&o, s, seed);
	encode_all(&o);
	for (uint32_t block = 0; block < o.nblocks; block++)
		assert_parity(&o, block);
	if (o.rows)
		encode_in_pieces(&o);
	for (uint32_t block = 0; block < o.nblocks; block++)
		for (int i = 0; i < 3; i++)
			decode_block(&o, block);
	close_world(&o);
}

/* ---- random messages ---- */

static struct shape random_shape(struct rng *rng)
{
	static const uint32_t payloads[] = {1, 2, 63, 64, 100, 1000, 1436, 4096};
	struct shape s = {.code = rng_below(rng, 3) ? REL_CODE_RS : REL_CODE_XOR};
	uint32_t pkts, left;

	s.k = 1 + (uint32_t)rng_below(rng, rng_below(rng, 4) ? 12 : 254);
	s.m = (uint32_t)rng_below(rng, u64_min(256 - s.k, rng_below(rng, 2) ? 5 : 30));
	if (s.code == REL_CODE_XOR)
		s.m = 1 + s.m % s.k;
	if (s.k + s.m > CODE_SYMBOLS_MAX)
		s.m = CODE_SYMBOLS_MAX - s.k;
	s.depth = 1 + (uint32_t)rng_below(rng, rng_below(rng, 3) ? 6 : REL_DEPTH_MAX);
	s.payload = payloads[rng_below(rng, s.k > 30 ? 5 : SDR_ARRAY_LEN(payloads))];
	s.span_start = rng_below(rng, 2) ? 0 : (uint32_t)rng_below(rng, 20);
	pkts = 1 + (uint32_t)rng_below(rng, (s.k > 30 ? 3 : 9) * s.k);
	left = rng_below(rng, 4) ? 0 : (uint32_t)rng_below(rng, 5); /* behind the span */
	s.span_pkts = pkts;
	s.length = ((uint64_t)s.span_start + pkts + left) * s.payload;
	s.length -= rng_below(rng, 3) ? rng_below(rng, s.payload) : 0;
	s.rows = s.m;
	if (s.code == REL_CODE_RS && rng_below(rng, 3) == 0) /* fresh parity */
		s.rows = (uint32_t)u64_min(s.m + rng_below(rng, 10), CODE_SYMBOLS_MAX - s.k);
	return s;
}

static void random_messages(void **state)
{
	const char *replay = getenv("CODEC_SEED");
	uint64_t first = replay ? strtoull(replay, NULL, 0) : 1;
	uint64_t last = replay ? first : SEEDS;

	(void)state;
	for (uint64_t seed = first; seed <= last; seed++) {
		struct shape s;
		struct rng rng;

		rng_init(&rng, seed);
		s = random_shape(&rng);
		if (replay)
			print_message("%s k %u m %u depth %u span %u + %u payload %u length %llu\n",
				      s.code == REL_CODE_RS ? "rs" : "xor", s.k, s.m, s.depth,
				      s.span_start, s.span_pkts, s.payload,
				      (unsigned long long)s.length);
		whole_message(&s, seed);
	}
}

/* Every small code, depth, length and span. */
static void all_small_ones(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (uint32_t which = 0; which < 4 * 4 * 3; which++) {
		struct shape s = {.k = 1 + which % 4,
				  .m = which / 4 % 4,
				  .depth = 1 + which / 16,
				  .payload = 3};

		for (uint32_t pkts = 1; pkts <= 9; pkts++)
			for (uint32_t start = 0; start < pkts; start += 1 + pkts / 4)
				for (uint32_t cut = 0; cut < 3; cut++) {
					s.code = s.m && s.m <= s.k && seed % 2 ? REL_CODE_XOR
									       : REL_CODE_RS;
					s.span_start = start;
					s.span_pkts = pkts - start;
					s.length = (uint64_t)pkts * s.payload - cut;
					s.rows = s.m;
					whole_message(&s, seed++);
				}
	}
}

static void one_byte(void **state)
{
	static const uint32_t payloads[] = {1, 64, 1436, 4096};

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(payloads); i++)
		for (uint32_t m = 1; m <= 4; m++) {
			struct shape s = {.code = REL_CODE_RS,
					  .k = 32,
					  .m = m,
					  .depth = 64,
					  .span_pkts = 1,
					  .payload = payloads[i],
					  .rows = m,
					  .length = 1};

			whole_message(&s, m);
			s.code = REL_CODE_XOR;
			whole_message(&s, m);
			s.span_start = 3;
			s.length += 3ull * payloads[i];
			whole_message(&s, m);
		}
}

/* The most symbols that a block can have, and every one of them used. */
static void the_largest(void **state)
{
	static const uint32_t ks[] = {1, 2, 127, 128, 200, 254, 255};

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(ks); i++) {
		struct shape s = {.code = REL_CODE_RS,
				  .k = ks[i],
				  .m = CODE_SYMBOLS_MAX - ks[i],
				  .depth = 2,
				  .span_pkts = 2 * ks[i] + 1,
				  .payload = 5,
				  .rows = CODE_SYMBOLS_MAX - ks[i],
				  .length = 5ull * (2 * ks[i] + 1) - 2};

		whole_message(&s, i);
	}
}

/* ---- refusals ---- */

static void writes_that_cannot_be(void **state)
{
	static const struct {
		enum rel_code code;
		uint32_t k, m, depth, start, pkts, payload;
		uint64_t length;
		int verdict;
	} table[] = {
		{REL_CODE_RS, 32, 8, 4, 0, 10, 100, 1000, 0},
		{REL_CODE_RS, 32, 8, 4, 0, 10, 100, 901, 0},
		{REL_CODE_RS, 32, 8, 4, 0, 10, 100, 900, -EINVAL},
		{REL_CODE_RS, 32, 8, 4, 1, 10, 100, 1000, -EINVAL},
		{REL_CODE_RS, 32, 8, 4, 1, 9, 100, 1000, 0},
		{REL_CODE_RS, 32, 8, 4, 1, 8, 100, 1000, 0},
		{REL_CODE_RS, 32, 8, 4, UINT32_MAX, 10, 100, 1000, -EINVAL},
		{REL_CODE_RS, 32, 8, 4, 10, UINT32_MAX, 100, 1000, -EINVAL},
		{REL_CODE_RS, 32, 8, 4, 0, 0, 100, 1000, -EINVAL},
		{REL_CODE_RS, 32, 8, 4, 0, 10, 0, 1000, -EINVAL},
		{REL_CODE_RS, 32, 8, 4, 0, 1, 100, 0, -EINVAL},
		{REL_CODE_RS, 32, 8, 0, 0, 10, 100, 1000, -EINVAL},
		{REL_CODE_RS, 32, 8, 65536, 0, 10, 100, 1000, 0},
		{REL_CODE_RS, 32, 8, 65537, 0, 10, 100, 1000, -EINVAL},
		{REL_CODE_RS, 0, 8, 4, 0, 10, 100, 1000, -EINVAL},
		{REL_CODE_RS, 247, 8, 4, 0, 10, 100, 1000, 0},
		{REL_CODE_RS, 248, 8, 4, 0, 10, 100, 1000, -EINVAL},
		{REL_CODE_RS, 8, UINT32_MAX, 4, 0, 10, 100, 1000, -EINVAL},
		{REL_CODE_RS, UINT32_MAX, 8, 4, 0, 10, 100, 1000, -EINVAL},
		{REL_CODE_RS, 32, 0, 4, 0, 10, 100, 1000, 0},
		{REL_CODE_XOR, 32, 0, 4, 0, 10, 100, 1000, -EINVAL},
		{REL_CODE_XOR, 8, 8, 4, 0, 10, 100, 1000, 0},
		{REL_CODE_XOR, 8, 9, 4, 0, 10, 100, 1000, -EINVAL},
		{REL_CODE_NONE, 32, 8, 4, 0, 10, 100, 1000, -EINVAL},
		{(enum rel_code)3, 32, 8, 4, 0, 10, 100, 1000, -EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(table); i++) {
		struct codec_write w = {.k = 77};
		int err = codec_write_init(&w, table[i].code, table[i].k, table[i].m,
					   table[i].depth, table[i].start, table[i].pkts,
					   table[i].payload, table[i].length);

		if (err != table[i].verdict)
			fail_msg("row %zu: %d", i, err);
		assert_int_equal(w.k, err ? 77 : table[i].k);
	}
}

/* What is refused writes nothing. */
static void calls_that_cannot_be(void **state)
{
	const struct shape s = {.code = REL_CODE_XOR,
				.k = 4,
				.m = 2,
				.depth = 2,
				.span_pkts = 12,
				.payload = 64,
				.rows = 2,
				.length = 12 * 64};
	struct code_set have = {.word = {0xe}}, parity = {.word = {1}}, all;
	struct world o;

	(void)state;
	open_world(&o, &s, 1);
	memset(&all, 0xff, sizeof(all));
	memset(o.parity.at, CANARY, o.parity.n);
	assert_int_equal(codec_encode(&o.codec, &o.w, 0, 4, 0, 1), -EINVAL); /* 3 blocks */
	assert_int_equal(codec_encode(&o.codec, &o.w, 4, 0, 0, 1), -EINVAL);
	assert_int_equal(codec_encode(&o.codec, &o.w, 1, UINT32_MAX, 0, 1), -EINVAL);
	assert_int_equal(codec_encode(&o.codec, &o.w, 0, 1, 1, UINT32_MAX), -EINVAL);
	assert_int_equal(codec_encode(&o.codec, &o.w, 0, 1, UINT32_MAX, 1), -EINVAL);
	assert_int_equal(codec_encode(&o.codec, &o.w, 0, 3, 0, 3), -EINVAL); /* no room */
	o.w.room = 5;
	assert_int_equal(codec_encode(&o.codec, &o.w, 0, 3, 0, 2), -EINVAL);
	o.w.room = 100; /* of 2 parity symbols, which is all that this code has */
	assert_int_equal(codec_encode(&o.codec, &o.w, 0, 1, 0, 3), -EINVAL);
	assert_int_equal(codec_encode(&o.codec, &o.w, 0, 1, 2, 1), -EINVAL);
	assert_int_equal(codec_encode(&o.codec, &o.w, 0, 0, 0, 2), 0);
	assert_int_equal(codec_encode(&o.codec, &o.w, 3, 0, 0, 2), 0);
	assert_int_equal(codec_encode(&o.codec, &o.w, 0, 3, 1, 0), 0);
	for (uint64_t i = 0; i < o.parity.n; i++)
		assert_int_equal(o.parity.at[i], CANARY);
	o.w.room = 6;
	encode_all(&o);
	memset(o.data.at, LOST, 64);
	assert_int_equal(codec_decode(&o.codec, &o.w, 3, &have, &parity), -EINVAL);
	code_set_add(&parity, 2); /* not of this code; and beyond the room */
	assert_int_equal(codec_decode(&o.codec, &o.w, 0, &have, &parity), -EINVAL);
	o.w.room = 100;
	assert_int_equal(codec_decode(&o.codec, &o.w, 0, &have, &parity), -EINVAL);
	code_set_remove(&parity, 2);
	code_set_add(&parity, 255);
	assert_int_equal(codec_decode(&o.codec, &o.w, 0, &have, &parity), -EINVAL);
	o.w.room = UINT32_MAX;
	assert_int_equal(codec_decode(&o.codec, &o.w, 0, &have, &all), -EINVAL);
	code_set_remove(&parity, 255);
	o.w.room = 0;
	assert_int_equal(codec_decode(&o.codec, &o.w, 0, &have, &parity), -EINVAL);
	o.w.room = 6;
	assert_int_equal(o.data.at[0], LOST);
	assert_int_equal(codec_decode(&o.codec, &o.w, 0, &have, &parity), 1);
	assert_memory_equal(o.data.at, o.whole, o.data.n);
	code_set_add(&have, 0); /* nothing is lost */
	assert_int_equal(codec_decode(&o.codec, &o.w, 0, &have, &parity), 0);
	close_world(&o);
}

/* ---- codes that take turns ---- */

static struct shape nth_shape(uint32_t i)
{
	/* The same k with another m, the same k and m with another code. */
	return (struct shape){.code = i % 3 ? REL_CODE_RS : REL_CODE_XOR,
			      .k = 6 + i / 3,
			      .m = 2 + i % 2,
			      .depth = 2,
			      .span_pkts = 25,
			      .payload = 96,
			      .rows = 2 + i % 2,
			      .length = 25 * 96 - 5};
}

/* Encodes and decodes with a codec that others use too. */
static void use(struct codec *shared, struct world *o)
{
	struct codec own = o->codec;

	o->codec = *shared;
	memset(o->parity.at, 0, o->parity.n);
	encode_all(o);
	for (uint32_t block = 0; block < o->nblocks; block++) {
		assert_parity(o, block);
		decode_block(o, block);
	}
	*shared = o->codec;
	o->codec = own;
}

static void more_codes_than_are_kept(void **state)
{
	struct alloc_failing f = {.left = INT32_MAX};
	const struct sdr_alloc alloc = alloc_failing(&f);
	struct world o[3 * CODEC_CODES];
	struct codec shared;
	int before;

	(void)state;
	codec_init(&shared, &alloc);
	for (uint32_t i = 0; i < SDR_ARRAY_LEN(o); i++) {
		struct shape s = nth_shape(i);

		open_world(&o[i], &s, i);
	}
	for (uint32_t turn = 0; turn < 60; turn++)
		use(&shared, &o[turn * 7 % SDR_ARRAY_LEN(o)]);
	/* Those that were used last are there: no memory is asked for. */
	for (uint32_t i = 0; i < CODEC_CODES; i++)
		use(&shared, &o[i]);
	before = f.left;
	for (uint32_t turn = 0; turn < 3; turn++)
		for (uint32_t i = 0; i < CODEC_CODES; i++)
			use(&shared, &o[turn % 2 ? i : CODEC_CODES - 1 - i]);
	assert_int_equal(f.left, before);
	/* Another one takes the place of the one that was unused for longest, the last of them. */
	use(&shared, &o[CODEC_CODES]);
	assert_true(f.left < before);
	before = f.left;
	for (uint32_t i = 0; i + 1 < CODEC_CODES; i++)
		use(&shared, &o[i]);
	use(&shared, &o[CODEC_CODES]);
	assert_int_equal(f.left, before);
	use(&shared, &o[CODEC_CODES - 1]);
	assert_true(f.left < before);
	for (uint32_t i = 0; i < SDR_ARRAY_LEN(o); i++)
		close_world(&o[i]);
	codec_fini(&shared);
	assert_int_equal(f.out, 0);
}

/* Whichever allocation fails, it says so, writes nothing, and goes on once there is memory. */
static void no_memory(void **state)
{
	struct alloc_failing f = {.left = INT32_MAX};
	const struct sdr_alloc alloc = alloc_failing(&f);
	struct code_set have = {.word = {0x3e}}, parity = {.word = {1}};
	struct shape s = nth_shape(1);
	struct codec shared;
	struct world o;
	int most;

	(void)state;
	open_world(&o, &s, 1);
	codec_init(&shared, &alloc);
	use(&shared, &o);
	most = INT32_MAX - f.left;
	codec_fini(&shared);
	for (int left = 0; left < most; left++) {
		codec_init(&shared, &alloc);
		f.left = left;
		memset(o.parity.at, CANARY, o.parity.n);
		assert_int_equal(codec_encode(&shared, &o.w, 0, o.nblocks, 0, 2), -ENOMEM);
		assert_int_equal(o.parity.at[0], CANARY);
		f.left = left;
		assert_int_equal(codec_decode(&shared, &o.w, 0, &have, &parity), -ENOMEM);
		f.left = INT32_MAX;
		use(&shared, &o);
		codec_fini(&shared);
		assert_int_equal(f.out, 0);
	}
	close_world(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_messages),
		cmocka_unit_test(all_small_ones),
		cmocka_unit_test(one_byte),
		cmocka_unit_test(the_largest),
		cmocka_unit_test(writes_that_cannot_be),
		cmocka_unit_test(calls_that_cannot_be),
		cmocka_unit_test(more_codes_than_are_kept),
		cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * How fast one core encodes and decodes with the library's codes (src/code/), beside what ISA-L
 * does alone with the same matrix, in the same run.
 *
 *	code_bench [--seconds S] [--unit BYTES] [--memory MIB] [--rounds N]
 *
 *	rs k,m	Reed-Solomon; ISA-L: one ec_encode_data() for the block
 *	xor k,m	modulo groups; ISA-L: one xor_gen() a group
 *
 * encode makes all m units of parity of a block; decode makes good m lost units of data, with
 * tables that are kept. GB/s of data (k units) in both. warm: one block again and again; cold:
 * block after block through more memory than the caches hold. "of it" is our rate over ISA-L's.
 * CPU time of this thread; the two take turns, and the best round of each counts, since a machine
 * may be shared.
 *
 * tables: what a pattern of m losses costs that is not kept. Every block is compared with what
 * was lost, before any is timed.
 */
#include <isa-l/erasure_code.h>
#include <isa-l/raid.h>

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "code/code.h"
#include "rate_util.h"

struct row {
	const char *name;
	uint32_t k, m;
};

static const struct row rows[] = {
	{"rs", 4, 1},	{"rs", 8, 2},	{"rs", 16, 4},	 {"rs", 32, 4},	  {"rs", 32, 8},
	{"rs", 64, 12}, {"rs", 128, 5}, {"rs", 128, 10}, {"rs", 128, 24}, {"xor", 4, 1},
	{"xor", 8, 2},	{"xor", 16, 4}, {"xor", 32, 4},	 {"xor", 32, 8},
};

struct bench {
	struct rate_options o;
	uint8_t *data, *parity, *made; /* `made`: m lost units of a block, again */
	const struct row *row;
	struct code *code;
	struct code_block block;
	struct code_set have;
	/* ISA-L alone: tables for parity, and for the first m units of data from the others. */
	uint8_t matrix[RATE_UNITS * RATE_UNITS], inverse[RATE_UNITS * RATE_UNITS];
	uint8_t encode_tables[RATE_UNITS * RATE_UNITS * 32],
		decode_tables[RATE_UNITS * RATE_UNITS * 32];
};

/* One block of which the parity, or the first m units, are made. */
typedef void work(struct bench *b, uint8_t *data, uint8_t *parity);

static void split(const struct bench *b, uint8_t *base, uint32_t n, uint8_t **out)
{
	for (uint32_t i = 0; i < n; i++)
		out[i] = base + i * b->o.unit;
}

static void our_encode(struct bench *b, uint8_t *data, uint8_t *parity)
{
	uint8_t *from[RATE_UNITS], *to[RATE_UNITS];

	split(b, data, b->row->k, from);
	split(b, parity, b->row->m, to);
	if (code_encode(b->code, &b->block, (const uint8_t *const *)from, 0, b->row->m, to))
		rate_die("code_encode() refused");
}

static void our_decode(struct bench *b, uint8_t *data, uint8_t *parity)
{
	struct code_parity list[RATE_UNITS];
	uint8_t *from[RATE_UNITS];

	split(b, data, b->row->k, from);
	split(b, b->made, b->row->m, from); /* the lost ones go there */
	for (uint32_t j = 0; j < b->row->m; j++)
		list[j] = (struct code_parity){j, parity + j * b->o.unit};
	if (code_decode(b->code, &b->block, from, &b->have, list, b->row->m) != (int)b->row->m)
		rate_die("code_decode() refused");
}

static void xor_raw(struct bench *b, uint8_t *data, uint8_t *parity, bool decode)
{
	const uint32_t k = b->row->k, m = b->row->m;

	for (uint32_t j = 0; j < m; j++) {
		void *vectors[RATE_UNITS + 1];
		int n = 0;

		for (uint32_t i = decode ? j + m : j; i < k; i += m)
			vectors[n++] = data + i * b->o.unit;
		if (decode)
			vectors[n++] = parity + j * b->o.unit;
		vectors[n++] = (decode ? b->made : parity) + j * b->o.unit;
		if (xor_gen(n, (int)b->o.unit, vectors) != 0)
			rate_die("xor_gen() refuses this unit: choose a multiple of 64");
	}
}

static void raw_encode(struct bench *b, uint8_t *data, uint8_t *parity)
{
	uint8_t *from[RATE_UNITS], *to[RATE_UNITS];

	if (b->row->name[0] == 'x') {
		xor_raw(b, data, parity, false);
		return;
	}
	split(b, data, b->row->k, from);
	split(b, parity, b->row->m, to);
	ec_encode_data((int)b->o.unit, (int)b->row->k, (int)b->row->m, b->encode_tables, from, to);
}

static void raw_decode(struct bench *b, uint8_t *data, uint8_t *parity)
{
	const uint32_t k = b->row->k, m = b->row->m;
	uint8_t *from[RATE_UNITS], *to[RATE_UNITS];

	if (b->row->name[0] == 'x') {
		xor_raw(b, data, parity, true);
		return;
	}
	split(b, data + m * b->o.unit, k - m, from);
	split(b, parity, m, from + k - m);
	split(b, b->made, m, to);
	ec_encode_data((int)b->o.unit, (int)k, (int)m, b->decode_tables, from, to);
}

static void raw_prepare(struct bench *b)
{
	const uint32_t k = b->row->k, m = b->row->m;
	static uint8_t left[RATE_UNITS * RATE_UNITS];

	gf_gen_cauchy1_matrix(b->matrix, (int)(k + m), (int)k);
	ec_init_tables((int)k, (int)m, b->matrix + k * k, b->encode_tables);
	memcpy(left, b->matrix + m * k, k * k);
	if (gf_invert_matrix(left, b->inverse, (int)k))
		rate_die("the matrix has no inverse");
	ec_init_tables((int)k, (int)m, b->inverse, b->decode_tables);
}

static void prepare(struct bench *b)
{
	const struct row *r = b->row;
	const struct code_params params = {.k = r->k, .m = r->m};
	struct code_set lost = {0};

	if (code_create(&sdr_alloc_system, r->name, &params, &b->code))
		rate_die("no memory for a code");
	b->block = (struct code_block){r->k, (uint32_t)b->o.unit, (uint32_t)b->o.unit};
	for (uint32_t i = 0; i < r->m; i++)
		code_set_add(&lost, i);
	b->have = code_set_missing(&lost, r->k);
	raw_prepare(b);
}

/* Ours and ISA-L's parity are the same, and each brings back what was lost. */
static void check(struct bench *b)
{
	const size_t bytes = b->row->m * b->o.unit;
	uint8_t *again = b->parity + bytes;

	our_encode(b, b->data, b->parity);
	raw_encode(b, b->data, again);
	if (memcmp(b->parity, again, bytes) != 0)
		rate_die("parity is not ISA-L's");
	memset(b->made, 0, bytes);
	our_decode(b, b->data, b->parity);
	if (memcmp(b->made, b->data, bytes) != 0)
		rate_die("what was lost came back wrong");
	memset(b->made, 0, bytes);
	raw_decode(b, b->data, b->parity);
	if (memcmp(b->made, b->data, bytes) != 0)
		rate_die("what was lost came back wrong from ISA-L alone");
}

/* GB/s of data; `blocks` of them take turns. */
static double rate(struct bench *b, work *what, size_t blocks)
{
	const size_t block = b->row->k * b->o.unit, parity = b->row->m * b->o.unit;
	double begin = rate_cpu_s(), took;
	size_t at = 0, done = 0;

	do {
		for (int i = 0; i < 16; i++, done++) {
			what(b, b->data + at * block, b->parity + at * parity);
			at = at + 1 < blocks ? at + 1 : 0;
		}
		took = rate_cpu_s() - begin;
	} while (took < b->o.seconds);
	return (double)done * (double)block / took * 1e-9;
}

static void pair(struct bench *b, work *ours, work *raw, size_t blocks)
{
	double best[2] = {0};

	for (uint32_t round = 0; round <= b->o.rounds; round++) {
		double a = rate(b, ours, blocks), c = rate(b, raw, blocks);

		if (round == 0)
			continue; /* memory was touched, caches are filled */
		best[0] = fmax(best[0], a);
		best[1] = fmax(best[1], c);
	}
	printf(" %9.2f %6.2f", best[0], best[0] / best[1]);
	fflush(stdout);
}

/* Microseconds for the tables of m losses, ever others: short units, so that they count little. */
static double tables_us(struct bench *b)
{
	struct code_block whole = b->block;
	struct code_set have = b->have;
	double best = INFINITY;

	b->block.len = b->block.last_len = 64;
	for (uint32_t round = 0; round < b->o.rounds * 20; round++) {
		uint64_t misses = code_stats(b->code).misses;
		struct code_set lost = {0};
		double begin;

		for (uint32_t i = 0; i < b->row->m; i++)
			code_set_add(&lost, (i * 5 + round) % b->row->k);
		b->have = code_set_missing(&lost, b->row->k);
		begin = rate_cpu_s();
		our_decode(b, b->data, b->parity);
		if (code_stats(b->code).misses > misses)
			best = fmin(best, rate_cpu_s() - begin);
	}
	b->block = whole;
	b->have = have;
	return best * 1e6;
}

static void measure(struct bench *b, const struct row *r)
{
	size_t blocks = b->o.memory / (r->k * b->o.unit);
	char name[32];

	b->row = r;
	blocks = blocks ? blocks : 1;
	prepare(b);
	check(b);
	snprintf(name, sizeof name, "%s %u,%u", r->name, r->k, r->m);
	printf("%-11s", name);
	pair(b, our_encode, raw_encode, 1);
	pair(b, our_encode, raw_encode, blocks);
	pair(b, our_decode, raw_decode, 1);
	pair(b, our_decode, raw_decode, blocks);
	if (r->name[0] == 'r' && r->k > 4) /* (4,1) has no more patterns than are kept */
		printf(" %10.1f", tables_us(b));
	puts("");
	fflush(stdout);
	code_destroy(b->code);
}

int main(int argc, char **argv)
{
	static struct bench b = {
		.o = {.seconds = 0.05, .unit = 4096, .memory = (size_t)256 << 20, .rounds = 7}};
	struct rng rng;

	rate_options(&b.o, argc, argv);
	b.data = aligned_alloc(64, b.o.memory);
	b.parity = aligned_alloc(64, b.o.memory);
	b.made = aligned_alloc(64, RATE_UNITS * b.o.unit);
	if (!b.data || !b.parity || !b.made)
		rate_die("out of memory: --memory sets how much, in MiB, and as much again for "
			 "parity");
	rng_init(&rng, 1);
	for (size_t at = 0; at + 8 <= b.o.memory; at += 8) {
		uint64_t word = rng_next(&rng);

		memcpy(b.data + at, &word, 8);
	}
	memset(b.parity, 0, b.o.memory);
	printf("units of %zu bytes, cold through %zu MiB; GB/s of data a core, and of ISA-L's\n",
	       b.o.unit, b.o.memory >> 20);
	printf("%-11s %16s %16s %16s %16s %10s\n", "", "encode warm", "encode cold", "decode warm",
	       "decode cold", "tables");
	printf("%-11s %9s %6s %9s %6s %9s %6s %9s %6s %10s\n", "code", "GB/s", "of it", "GB/s",
	       "of it", "GB/s", "of it", "GB/s", "of it", "us");
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		measure(&b, &rows[i]);
	free(b.data);
	free(b.parity);
	free(b.made);
	return 0;
}

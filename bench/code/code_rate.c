// SPDX-License-Identifier: Apache-2.0
/*
 * How fast one core makes parity with ISA-L, by code: the numbers behind the CPU that
 * `sdr plan` predicts (src/plan/cpu.h).
 *
 *	code_rate [--seconds S] [--unit BYTES] [--memory MIB]
 *
 *	mds k,m	ec_encode_data() with a Cauchy matrix: k units become m of parity
 *	xor k,m	xor_gen(): parity j is the sum of the units i with i mod m = j
 *
 * warm: one block again and again, from the caches; cold: block after block through more
 * memory than they hold, as a message is. "x m" is what the model uses: a core multiplies
 * and adds so many bytes a second, once for each unit of parity. CPU time of this thread,
 * the best of five rounds, since a machine may be shared.
 *
 * Making good e lost units costs what making e of parity does, by the same call, and a
 * matrix to invert, which is the last column: k x k, once for each pattern of losses.
 *
 * Each code is first checked: m units are taken away and made good.
 */
#include <isa-l/erasure_code.h>
#include <isa-l/raid.h>

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rate_util.h"

#define ROUNDS 5

struct code {
	int k, m;
	bool xor_groups;
};

static const struct code codes[] = {
	{4, 1, false},	 {8, 2, false},	  {16, 4, false},   {32, 4, false},   {32, 8, false},
	{32, 16, false}, {128, 5, false}, {128, 12, false}, {128, 24, false}, {128, 32, false},
	{4, 1, true},	 {8, 2, true},	  {16, 4, true},    {32, 8, true},
};

struct bench {
	struct rate_options o;
	uint8_t *data, *parity; /* `memory` bytes, and as many as its parity needs at most */
	uint8_t matrix[RATE_UNITS * RATE_UNITS], tables[RATE_UNITS * RATE_UNITS * 32];
};

static void fill(uint8_t *to, size_t count)
{
	uint64_t state = 88172645463325252u;

	for (size_t i = 0; i < count; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		to[i] = (uint8_t)(state >> 32);
	}
}

static void encode_mds(struct bench *b, const struct code *c, uint8_t *data, uint8_t *parity)
{
	uint8_t *from[RATE_UNITS], *to[RATE_UNITS];

	for (int i = 0; i < c->k; i++)
		from[i] = data + (size_t)i * b->o.unit;
	for (int j = 0; j < c->m; j++)
		to[j] = parity + (size_t)j * b->o.unit;
	ec_encode_data((int)b->o.unit, c->k, c->m, b->tables, from, to);
}

static void encode_xor(struct bench *b, const struct code *c, uint8_t *data, uint8_t *parity)
{
	for (int j = 0; j < c->m; j++) {
		void *vectors[RATE_UNITS];
		int n = 0;

		for (int i = j; i < c->k; i += c->m)
			vectors[n++] = data + (size_t)i * b->o.unit;
		vectors[n++] = parity + (size_t)j * b->o.unit;
		if (xor_gen(n, (int)b->o.unit, vectors) != 0)
			rate_die("xor_gen() refuses this unit: choose a multiple of 32");
	}
}

static void encode(struct bench *b, const struct code *c, uint8_t *data, uint8_t *parity)
{
	if (c->xor_groups)
		encode_xor(b, c, data, parity);
	else
		encode_mds(b, c, data, parity);
}

static void prepare(struct bench *b, const struct code *c)
{
	gf_gen_cauchy1_matrix(b->matrix, c->k + c->m, c->k);
	ec_init_tables(c->k, c->m, b->matrix + c->k * c->k, b->tables);
}

/* The rows of what is left when the first m units are lost, inverted. */
static bool invert(const struct bench *b, const struct code *c, uint8_t *inverse)
{
	static uint8_t left[RATE_UNITS * RATE_UNITS];

	memcpy(left, b->matrix + c->m * c->k, (size_t)(c->k * c->k));
	return gf_invert_matrix(left, inverse, c->k) == 0;
}

/* Loses the first m units of a block and makes them from the others and the parity. */
static bool repairs(struct bench *b, const struct code *c)
{
	static uint8_t inverse[RATE_UNITS * RATE_UNITS], tables[RATE_UNITS * RATE_UNITS * 32];
	uint8_t *from[RATE_UNITS], *to[RATE_UNITS], *made = malloc((size_t)c->m * b->o.unit);
	bool same;

	if (!made || !invert(b, c, inverse))
		rate_die("a code cannot be inverted, or no memory");
	for (int i = 0; i < c->k; i++)
		from[i] = i < c->k - c->m ? b->data + (size_t)(i + c->m) * b->o.unit
					  : b->parity + (size_t)(i - c->k + c->m) * b->o.unit;
	for (int j = 0; j < c->m; j++)
		to[j] = made + (size_t)j * b->o.unit;
	ec_init_tables(c->k, c->m, inverse, tables);
	ec_encode_data((int)b->o.unit, c->k, c->m, tables, from, to);
	same = memcmp(made, b->data, (size_t)c->m * b->o.unit) == 0;
	free(made);
	return same;
}

/* Parity and its units sum to nothing. */
static bool sums(struct bench *b, const struct code *c)
{
	for (size_t at = 0; at < b->o.unit * (size_t)c->m; at++) {
		size_t group = at / b->o.unit, byte = at % b->o.unit;
		uint8_t sum = b->parity[at];

		for (size_t i = group; i < (size_t)c->k; i += (size_t)c->m)
			sum ^= b->data[i * b->o.unit + byte];
		if (sum != 0)
			return false;
	}
	return true;
}

static void check(struct bench *b, const struct code *c)
{
	encode(b, c, b->data, b->parity);
	if (!(c->xor_groups ? sums(b, c) : repairs(b, c)))
		rate_die("a code does not repair what it should");
}

/* Bytes of data a second that get their parity; `blocks` of them take turns. */
static double rate(struct bench *b, const struct code *c, size_t blocks)
{
	size_t block = (size_t)c->k * b->o.unit, parity = (size_t)c->m * b->o.unit, at = 0;
	double best = 0;

	encode(b, c, b->data, b->parity);
	for (int round = 0; round < ROUNDS; round++) {
		double begin = rate_cpu_s(), took;
		size_t done = 0;

		do {
			for (int i = 0; i < 16; i++, done++) {
				encode(b, c, b->data + at * block, b->parity + at * parity);
				at = at + 1 < blocks ? at + 1 : 0;
			}
			took = rate_cpu_s() - begin;
		} while (took < b->o.seconds);
		best = fmax(best, (double)done * (double)block / took);
	}
	return best;
}

static double invert_us(struct bench *b, const struct code *c)
{
	static uint8_t inverse[RATE_UNITS * RATE_UNITS];
	double best = INFINITY;

	for (int round = 0; round < ROUNDS; round++) {
		double begin = rate_cpu_s();

		if (!invert(b, c, inverse))
			rate_die("a code cannot be inverted");
		best = fmin(best, rate_cpu_s() - begin);
	}
	return best * 1e6;
}

static void row(struct bench *b, const struct code *c)
{
	size_t blocks = b->o.memory / ((size_t)c->k * b->o.unit);
	double warm, cold, times = c->xor_groups ? 1 : c->m;
	char name[32];

	prepare(b, c);
	check(b, c);
	warm = rate(b, c, 1) * 1e-9;
	cold = rate(b, c, blocks ? blocks : 1) * 1e-9;
	snprintf(name, sizeof name, "%s %d,%d", c->xor_groups ? "xor" : "mds", c->k, c->m);
	printf("%-12s %10.2f %10.2f %12.1f %12.1f", name, warm, cold, warm * times, cold * times);
	if (!c->xor_groups)
		printf(" %12.1f", invert_us(b, c));
	puts("");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static struct bench b = {.o = {.seconds = 0.1, .unit = 4096, .memory = (size_t)512 << 20}};

	rate_options(&b.o, argc, argv);
	b.data = aligned_alloc(64, b.o.memory);
	b.parity = aligned_alloc(64, b.o.memory);
	if (!b.data || !b.parity)
		rate_die("out of memory: --memory sets how much, in MiB, and as much again for "
			 "parity");
	fill(b.data, b.o.memory);
	memset(b.parity, 0, b.o.memory);
	printf("units of %zu bytes, cold through %zu MiB; GB/s of data a core\n", b.o.unit,
	       b.o.memory >> 20);
	printf("%-12s %10s %10s %12s %12s %12s\n", "code", "warm", "cold", "warm x m", "cold x m",
	       "invert us");
	for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
		row(&b, &codes[i]);
	free(b.data);
	free(b.parity);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: a code, a block and what arrives of it, as the input says. Parity must be the
 * twin's; decoding must give back every byte, or refuse just where the twin can't solve it either.
 *
 * Input: rs or xor; k; m; parity made; count; length (2, little-endian); last length (2);
 * alignment; seed of the bytes; then bits: what arrived, data first. A missing byte is 0.
 */
#include <string.h>

#include "code/test_block.h"
#include "wire/fuzz.h"

#define FIXED 11u
#define LEN_MAX 700u
#define WORK_MAX 60000u /* bytes times symbols, so that the twin keeps up */

struct input {
	const uint8_t *at;
	size_t left;
};

static uint32_t take(struct input *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->at++;
}

static uint32_t take16(struct input *in)
{
	uint32_t low = take(in);

	return low | take(in) << 8;
}

static struct code_set take_set(const struct input *in, uint32_t first, uint32_t n)
{
	struct code_set s = {0};

	for (uint32_t i = 0; i < n; i++) {
		uint32_t bit = first + i;

		if (bit / 8 < in->left && in->at[bit / 8] >> bit % 8 & 1)
			code_set_add(&s, i);
	}
	return s;
}

static void lose(struct test_block *t, const struct input *in, struct rng *rng)
{
	struct code_set have = take_set(in, 0, t->b.count);
	struct code_set parity = take_set(in, t->b.count, t->nparity);
	struct code_set erased = code_set_missing(&have, t->b.count);
	uint8_t *copy[TEST_SYMBOLS];
	uint32_t lacking;
	const char *wrong;

	for (int again = 0; again < 2; again++) { /* the second time from tables that are kept */
		wrong = test_block_lose(t, &have, &parity, rng, &lacking);
		if (wrong)
			fprintf(stderr, "%s\n", wrong);
		FUZZ_REQUIRE(!wrong);
	}
	for (uint32_t i = 0; i < t->b.count; i++) {
		copy[i] = calloc(1, t->b.len);
		FUZZ_REQUIRE(copy[i]);
		if (!code_set_has(&erased, i))
			memcpy(copy[i], t->whole[i], t->b.len);
	}
	FUZZ_REQUIRE(twin_decode(&t->twin, copy, t->b.count, t->b.len, &erased, t->parity,
				 &parity) == lacking);
	for (uint32_t i = 0; i < t->b.count; i++) {
		FUZZ_REQUIRE(lacking || memcmp(copy[i], t->whole[i], t->b.len) == 0);
		free(copy[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct twin twin = {.rs = take(&in) & 1};
	struct code_block b;
	struct test_block t;
	uint32_t nparity, misalign;
	const char *wrong;
	struct rng rng;

	twin.k = 1 + take(&in) % 254;
	twin.m = 1 + take(&in) % (255 - twin.k);
	nparity = take(&in) % (1 + (twin.rs ? 255 - twin.k : twin.m));
	b.count = 1 + take(&in) % twin.k;
	b.len = 1 + take16(&in) % LEN_MAX;
	if (b.len * (b.count + nparity) * (1 + nparity) > WORK_MAX)
		b.len = 1 + WORK_MAX / ((b.count + nparity) * (1 + nparity)) % LEN_MAX;
	b.last_len = 1 + take16(&in) % b.len;
	misalign = take(&in) % 64;
	rng_init(&rng, take(&in));
	wrong = test_block_open(&t, &twin, &b, nparity, misalign, true, &rng);
	if (wrong)
		fprintf(stderr, "%s\n", wrong);
	FUZZ_REQUIRE(!wrong);
	lose(&t, &in, &rng);
	test_block_close(&t);
	return 0;
}

size_t fuzz_seed(unsigned int i, uint8_t *buf)
{
	static const uint8_t seeds[][FIXED] = {
		{1, 3, 1, 2, 3, 99, 0, 50, 0, 1, 1},	 {0, 7, 1, 2, 7, 200, 1, 100, 1, 7, 2},
		{1, 31, 7, 8, 31, 65, 0, 64, 0, 0, 3},	 {1, 127, 23, 24, 127, 20, 0, 3, 0, 33, 4},
		{1, 31, 1, 40, 20, 17, 0, 16, 0, 63, 5}, {0, 31, 7, 8, 30, 150, 2, 1, 0, 5, 6},
		{1, 0, 0, 5, 0, 0, 2, 0, 1, 9, 7},
	};

	if (i >= sizeof(seeds) / sizeof(seeds[0]))
		return 0;
	memcpy(buf, seeds[i], FIXED);
	for (unsigned int b = 0; b < 32; b++) /* every second, third ... symbol is lost */
		buf[FIXED + b] = (uint8_t)(b % (i + 2) ? 0xff : 0xa5u << i % 3);
	return FIXED + 32;
}

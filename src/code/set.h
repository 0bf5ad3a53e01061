/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of small numbers, 0 .. 255: which symbols of a block. Knows nothing of codes. */
#ifndef SDR_CODE_SET_H
#define SDR_CODE_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"

#define CODE_SET_BITS 256u

/* All zero: empty. */
struct code_set {
	uint64_t word[CODE_SET_BITS / 64];
};

static inline void code_set_add(struct code_set *s, uint32_t i)
{
	s->word[i / 64] |= UINT64_C(1) << i % 64;
}

static inline void code_set_remove(struct code_set *s, uint32_t i)
{
	s->word[i / 64] &= ~(UINT64_C(1) << i % 64);
}

static inline bool code_set_has(const struct code_set *s, uint32_t i)
{
	return s->word[i / 64] >> i % 64 & 1;
}

static inline uint32_t code_set_count(const struct code_set *s)
{
	uint32_t n = 0;

	for (uint32_t w = 0; w < SDR_ARRAY_LEN(s->word); w++)
		n += (uint32_t)__builtin_popcountll(s->word[w]);
	return n;
}

/* The first member from i on; CODE_SET_BITS: none. */
static inline uint32_t code_set_next(const struct code_set *s, uint32_t i)
{
	for (; i < CODE_SET_BITS; i = (i / 64 + 1) * 64) {
		uint64_t rest = s->word[i / 64] & ~bits_low(i % 64);

		if (rest)
			return i / 64 * 64 + (uint32_t)__builtin_ctzll(rest);
	}
	return CODE_SET_BITS;
}

/* 0 .. n-1 without the members of s; n <= 256. */
static inline struct code_set code_set_missing(const struct code_set *s, uint32_t n)
{
	struct code_set out;

	for (uint32_t w = 0; w < SDR_ARRAY_LEN(s->word); w++) {
		uint32_t bits = n > w * 64 ? n - w * 64 : 0;

		out.word[w] = ~s->word[w] & bits_low(bits);
	}
	return out;
}

#endif

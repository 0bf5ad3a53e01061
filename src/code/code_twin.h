/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow, obviously right twin of code/: GF(2^8) from the polynomial up, byte by byte, and
 * losses made good by Gauss's elimination of all that arrived. For tests. Knows nothing of ISA-L,
 * of tables for patterns, or of strips.
 */
#ifndef SDR_CODE_CODE_TWIN_H
#define SDR_CODE_CODE_TWIN_H

#include <stdbool.h>
#include <stdint.h>

#include "code/set.h"

/* A linear code: parity j is the sum of twin_coefficient(j, i) times data symbol i. */
struct twin {
	bool rs; /* otherwise xor */
	uint32_t k, m;
};

uint8_t twin_multiply(uint8_t a, uint8_t b);
uint8_t twin_inverse(uint8_t a); /* a > 0 */
uint8_t twin_coefficient(const struct twin *t, uint32_t parity, uint32_t data);

/* All symbols are `len` bytes here. */
void twin_parity(const struct twin *t, uint32_t number, uint8_t *const data[], uint32_t count,
		 uint32_t len, uint8_t *out);
/* Writes the erased of data[0 .. count-1], from the others and `parity`. Returns how many more
 * equations it would take: 0, or what was not solved was left alone. */
uint32_t twin_decode(const struct twin *t, uint8_t *const data[], uint32_t count, uint32_t len,
		     const struct code_set *erased, uint8_t *const parity[],
		     const struct code_set *arrived);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols through a matrix of GF(2^8), strip by strip: so many bytes of all inputs that they stay
 * in the nearest cache while every output is made of them. Knows nothing of blocks.
 */
#ifndef SDR_CODE_STRIP_H
#define SDR_CODE_STRIP_H

#include <stddef.h>
#include <stdint.h>

#define CODE_STRIP_NONE UINT32_MAX

struct code_strips {
	const uint8_t *tables;	  /* of ec_init_tables(), nin to a row */
	const uint8_t *const *in; /* nin pointers, 1 .. 255; any alignment */
	uint8_t *const *out;	  /* nout pointers, 1 .. 255 */
	uint32_t nin, nout;
	uint32_t len;
	/*
	 * One input or one output may have less memory, short_len bytes: an input's other bytes
	 * are zeros, an output's are dropped. CODE_STRIP_NONE: none.
	 */
	uint32_t short_in, short_out;
	uint32_t short_len;
};

void code_strips_run(const struct code_strips *job);

#endif

// SPDX-License-Identifier: Apache-2.0
/* The twin. See code_twin.h. */
#include "code/code_twin.h"

#include <stdlib.h>
#include <string.h>

#define POLYNOMIAL 0x11du /* x^8 + x^4 + x^3 + x^2 + 1; 2 generates the field */
#define SYMBOLS 256u

static uint8_t power[255], logarithm[256];

static void fill_logs(void)
{
	uint32_t x = 1;

	for (uint32_t e = 0; e < 255; e++) {
		power[e] = (uint8_t)x;
		logarithm[x] = (uint8_t)e;
		x <<= 1;
		if (x > 255)
			x ^= POLYNOMIAL;
	}
}

uint8_t twin_multiply(uint8_t a, uint8_t b)
{
	if (power[0] == 0)
		fill_logs();
	if (a == 0 || b == 0)
		return 0;
	return power[(logarithm[a] + logarithm[b]) % 255];
}

uint8_t twin_inverse(uint8_t a)
{
	if (power[0] == 0)
		fill_logs();
	return power[(255 - logarithm[a]) % 255];
}

uint8_t twin_coefficient(const struct twin *t, uint32_t parity, uint32_t data)
{
	if (!t->rs)
		return data % t->m == parity;
	return twin_inverse((uint8_t)((t->k + parity) ^ data));
}

/* to += by * from */
static void add_times(uint8_t *to, const uint8_t *from, uint8_t by, uint32_t len)
{
	for (uint32_t at = 0; at < len; at++)
		to[at] ^= twin_multiply(from[at], by);
}

static void times(uint8_t *to, uint8_t by, uint32_t len)
{
	for (uint32_t at = 0; at < len; at++)
		to[at] = twin_multiply(to[at], by);
}

void twin_parity(const struct twin *t, uint32_t number, uint8_t *const data[], uint32_t count,
		 uint32_t len, uint8_t *out)
{
	memset(out, 0, len);
	for (uint32_t i = 0; i < count; i++)
		add_times(out, data[i], twin_coefficient(t, number, i), len);
}

/* Each row: coefficients of the erased symbols, then the bytes that they sum to. */
struct system {
	uint32_t nunknown, nrows, len;
	uint32_t unknown[SYMBOLS];
	uint8_t coefficient[SYMBOLS][SYMBOLS];
	uint8_t *sum[SYMBOLS];
};

static void state(struct system *s, const struct twin *t, uint8_t *const data[], uint32_t count,
		  const struct code_set *erased, uint8_t *const parity[],
		  const struct code_set *arrived)
{
	for (uint32_t i = 0; i < count; i++) {
		if (code_set_has(erased, i))
			s->unknown[s->nunknown++] = i;
	}
	for (uint32_t j = 0; j < SYMBOLS; j++) {
		uint8_t *sum;

		if (!code_set_has(arrived, j))
			continue;
		sum = s->sum[s->nrows] = malloc(s->len);
		memcpy(sum, parity[j], s->len);
		for (uint32_t i = 0; i < count; i++) {
			if (!code_set_has(erased, i))
				add_times(sum, data[i], twin_coefficient(t, j, i), s->len);
		}
		for (uint32_t u = 0; u < s->nunknown; u++)
			s->coefficient[s->nrows][u] = twin_coefficient(t, j, s->unknown[u]);
		s->nrows++;
	}
}

static void swap_rows(struct system *s, uint32_t a, uint32_t b)
{
	uint8_t *sum = s->sum[a], row[SYMBOLS];

	s->sum[a] = s->sum[b];
	s->sum[b] = sum;
	memcpy(row, s->coefficient[a], SYMBOLS);
	memcpy(s->coefficient[a], s->coefficient[b], SYMBOLS);
	memcpy(s->coefficient[b], row, SYMBOLS);
}

/* Gauss and Jordan; returns the rank. */
static uint32_t eliminate(struct system *s)
{
	uint32_t rank = 0;

	for (uint32_t u = 0; u < s->nunknown; u++) {
		uint32_t row = rank;
		uint8_t inverse;

		while (row < s->nrows && s->coefficient[row][u] == 0)
			row++;
		if (row == s->nrows)
			continue;
		swap_rows(s, row, rank);
		inverse = twin_inverse(s->coefficient[rank][u]);
		times(s->coefficient[rank], inverse, SYMBOLS);
		times(s->sum[rank], inverse, s->len);
		for (row = 0; row < s->nrows; row++) {
			uint8_t by = s->coefficient[row][u];

			if (row == rank || by == 0)
				continue;
			add_times(s->coefficient[row], s->coefficient[rank], by, SYMBOLS);
			add_times(s->sum[row], s->sum[rank], by, s->len);
		}
		rank++;
	}
	return rank;
}

uint32_t twin_decode(const struct twin *t, uint8_t *const data[], uint32_t count, uint32_t len,
		     const struct code_set *erased, uint8_t *const parity[],
		     const struct code_set *arrived)
{
	struct system *s = calloc(1, sizeof(*s));
	uint32_t lacking;

	s->len = len;
	state(s, t, data, count, erased, parity, arrived);
	lacking = s->nunknown - eliminate(s);
	for (uint32_t u = 0; u < s->nunknown && lacking == 0; u++)
		memcpy(data[s->unknown[u]], s->sum[u], len);
	for (uint32_t row = 0; row < s->nrows; row++)
		free(s->sum[row]);
	free(s);
	return lacking;
}

// SPDX-License-Identifier: Apache-2.0
/* See test_block.h. */
#include "code/test_block.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
static const uint32_t guard = 0; /* it sees reads too */
#else
static const uint32_t guard = 16;
#endif
#define GUARD_BYTE 0x5a
#define LOST_BYTE 0xa5

static uint32_t length_of(const struct test_block *t, uint32_t i)
{
	return i == t->b.count - 1 ? t->b.last_len : t->b.len;
}

static uint8_t *symbol_alloc(struct test_block *t, uint32_t slot, uint32_t len, uint32_t misalign)
{
	uint8_t *p = aligned_alloc(64, (size_t)64 * ((misalign + len + guard + 63) / 64));

	/* aligned_alloc() wants a multiple; under AddressSanitizer the end must be exact. */
	if (guard == 0) {
		free(p);
		p = malloc(misalign + len);
	}
	t->memory[slot] = p;
	memset(p + misalign, LOST_BYTE, len);
	memset(p + misalign + len, GUARD_BYTE, guard);
	return p + misalign;
}

static bool guard_ok(const uint8_t *symbol, uint32_t len)
{
	for (uint32_t i = 0; i < guard; i++) {
		if (symbol[len + i] != GUARD_BYTE)
			return false;
	}
	return true;
}

static const char *encode(struct test_block *t, bool in_parts, struct rng *rng)
{
	uint32_t at = 0;

	while (at < t->nparity) {
		uint32_t rows =
			in_parts ? 1 + (uint32_t)rng_below(rng, t->nparity - at) : t->nparity;

		if (code_encode(t->code, &t->b, (const uint8_t *const *)t->data, at, rows,
				t->parity + at))
			return "code_encode() refused";
		at += rows;
	}
	for (uint32_t j = 0; j < t->nparity; j++) {
		if (!guard_ok(t->parity[j], t->b.len))
			return "encoding wrote behind parity";
	}
	return NULL;
}

static const char *compare_parity(const struct test_block *t)
{
	uint8_t *want = malloc(t->b.len);
	const char *wrong = NULL;

	for (uint32_t j = 0; j < t->nparity && !wrong; j++) {
		twin_parity(&t->twin, j, t->whole, t->b.count, t->b.len, want);
		if (memcmp(want, t->parity[j], t->b.len) != 0)
			wrong = "parity differs from the twin's";
	}
	free(want);
	return wrong;
}

const char *test_block_open(struct test_block *t, const struct twin *twin,
			    const struct code_block *b, uint32_t nparity, uint32_t misalign,
			    bool compare, struct rng *rng)
{
	const struct code_params params = {.k = twin->k, .m = twin->m, .tables = 3};
	const char *wrong;

	*t = (struct test_block){.twin = *twin, .b = *b, .nparity = nparity};
	if (code_create(&sdr_alloc_system, twin->rs ? "rs" : "xor", &params, &t->code))
		return "code_create() refused";
	for (uint32_t i = 0; i < b->count; i++) {
		uint32_t len = length_of(t, i);

		t->data[i] = symbol_alloc(t, i, len, misalign);
		t->whole[i] = calloc(1, b->len);
		for (uint32_t at = 0; at < len; at++)
			t->whole[i][at] = t->data[i][at] = (uint8_t)rng_next(rng);
	}
	for (uint32_t j = 0; j < nparity; j++)
		t->parity[j] = symbol_alloc(t, TEST_SYMBOLS + j, b->len, misalign * 3 % 64);
	wrong = encode(t, compare, rng); /* parts: as parity is asked for later */
	return wrong || !compare ? wrong : compare_parity(t);
}

void test_block_close(struct test_block *t)
{
	code_destroy(t->code);
	for (uint32_t i = 0; i < TEST_SYMBOLS * 2; i++)
		free(t->memory[i]);
	for (uint32_t i = 0; i < TEST_SYMBOLS; i++)
		free(t->whole[i]);
}

/* Data is what it was; what could not be made good holds what was there. */
static const char *compare_data(const struct test_block *t, const struct code_set *have, bool made)
{
	for (uint32_t i = 0; i < t->b.count; i++) {
		uint32_t len = length_of(t, i);
		bool lost = !code_set_has(have, i);

		if (!guard_ok(t->data[i], len))
			return "decoding wrote behind a symbol";
		if ((!lost || made) && memcmp(t->data[i], t->whole[i], len) != 0)
			return lost ? "a lost symbol came back wrong" : "a symbol was changed";
		for (uint32_t at = 0; at < len && lost && !made; at++) {
			if (t->data[i][at] != LOST_BYTE)
				return "refused, but wrote";
		}
	}
	return NULL;
}

/* The parity symbols of a set, in any order. */
static uint32_t shuffled(const struct test_block *t, const struct code_set *parity, struct rng *rng,
			 struct code_parity *out)
{
	uint32_t n = 0;

	for (uint32_t j = 0; j < t->nparity; j++) {
		uint32_t at;

		if (!code_set_has(parity, j))
			continue;
		at = (uint32_t)rng_below(rng, n + 1);
		out[n++] = out[at];
		out[at] = (struct code_parity){.number = j, .bytes = t->parity[j]};
	}
	return n;
}

const char *test_block_lose(struct test_block *t, const struct code_set *have,
			    const struct code_set *parity, struct rng *rng, uint32_t *lacking)
{
	struct code_set erased = code_set_missing(have, t->b.count);
	struct code_parity list[TEST_SYMBOLS];
	uint32_t n = shuffled(t, parity, rng, list);
	const char *wrong;
	int got;

	for (uint32_t i = 0; i < t->b.count; i++) {
		if (code_set_has(&erased, i))
			memset(t->data[i], LOST_BYTE, length_of(t, i));
	}
	*lacking = code_deficit(t->code, &t->b, have, parity);
	got = code_decode(t->code, &t->b, t->data, have, list, n);
	code_check(t->code);
	wrong = compare_data(t, have, got >= 0);
	for (uint32_t i = 0; i < t->b.count; i++)
		memcpy(t->data[i], t->whole[i], length_of(t, i));
	if (wrong)
		return wrong;
	if (got != (*lacking ? -EAGAIN : (int)code_set_count(&erased)))
		return "code_decode() and code_deficit() disagree";
	return NULL;
}

struct code_set test_set(struct rng *rng, uint32_t n, uint32_t below)
{
	struct code_set s = {0};

	/* Floyd's: each set is as likely as any other. */
	for (uint32_t i = below - n; i < below; i++) {
		uint32_t pick = (uint32_t)rng_below(rng, i + 1);

		code_set_add(&s, code_set_has(&s, pick) ? i : pick);
	}
	return s;
}

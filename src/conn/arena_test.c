/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena: pieces that never overlap, against a slow twin with a byte for each granule; what
 * does not fit; and that memory is taken by writing, kept while it is little, and given back.
 */
#include "conn/arena.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bits.h"
#include "base/rng.h"

#define G ARENA_GRANULE
#define MIB (UINT64_C(1) << 20)
#define PIECES 64u

/* ---- against a twin ---- */

struct piece {
	uint8_t *at;
	uint64_t bytes;
	uint8_t stamp;
};

struct world {
	struct arena a;
	bool *taken; /* by granule */
	struct piece piece[PIECES];
	uint32_t n;
	uint64_t refused, peak;
};

static uint64_t granules(uint64_t bytes)
{
	return bytes / G + (bytes % G != 0);
}

/* The lowest place for n granules; ngranules: none. */
static uint64_t twin_find(const struct world *w, uint64_t n)
{
	for (uint64_t first = 0; first + n <= w->a.ngranules; first++) {
		uint64_t run = 0;

		while (run < n && !w->taken[first + run])
			run++;
		if (run == n)
			return first;
	}
	return w->a.ngranules;
}

static void stamp(const struct world *w, const struct piece *p)
{
	if (!w->a.no_bytes && p->bytes) {
		memset(p->at, p->stamp, 64 < p->bytes ? 64 : p->bytes);
		p->at[p->bytes - 1] = p->stamp;
	}
}

static void assert_stamp(const struct world *w, const struct piece *p)
{
	if (w->a.no_bytes || !p->bytes)
		return;
	assert_int_equal(p->at[0], p->stamp);
	assert_int_equal(p->at[p->bytes - 1], p->stamp);
}

static void get(struct world *w, uint64_t bytes, uint8_t number)
{
	struct piece *p = &w->piece[w->n];
	uint64_t n = granules(bytes), first = n ? twin_find(w, n) : 0, used = 0;
	int err = arena_get(&w->a, bytes, &p->at);

	if (n && first == w->a.ngranules) {
		assert_int_equal(err, -EAGAIN);
		assert_null(p->at);
		w->refused++;
		return;
	}
	assert_int_equal(err, 0);
	if (!n)
		assert_null(p->at);
	else
		assert_ptr_equal(p->at, w->a.base + first * G);
	for (uint64_t i = 0; i < n; i++)
		w->taken[first + i] = true;
	for (uint64_t i = 0; i < w->a.ngranules; i++)
		used += w->taken[i];
	w->peak = u64_max(w->peak, used);
	assert_int_equal(w->a.used_bytes, used * G);
	p->bytes = bytes;
	p->stamp = number;
	stamp(w, p);
	w->n++;
}

static void put(struct world *w, uint32_t which)
{
	struct piece p = w->piece[which];

	assert_stamp(w, &p);
	arena_put(&w->a, p.at, p.bytes);
	for (uint64_t i = 0; i < granules(p.bytes); i++)
		w->taken[(uint64_t)(p.at - w->a.base) / G + i] = false;
	w->piece[which] = w->piece[--w->n];
}

static void random_world(uint64_t seed, uint64_t bytes, bool no_bytes)
{
	struct world w = {0};
	struct rng rng;

	rng_init(&rng, seed);
	arena_init(&w.a, bytes, no_bytes);
	w.taken = calloc(w.a.ngranules + 1, sizeof(*w.taken));
	assert_non_null(w.taken);
	for (uint32_t step = 0; step < 400; step++) {
		uint64_t most = rng_below(&rng, 8) ? bytes / 16 : bytes + bytes / 4;
		uint64_t want = rng_below(&rng, most + 1);

		if (rng_below(&rng, 3) == 0)
			want = want / G * G; /* whole granules */
		if (w.n < PIECES && rng_below(&rng, 2))
			get(&w, want, (uint8_t)step);
		else if (w.n)
			put(&w, (uint32_t)rng_below(&rng, w.n));
		arena_check(&w.a);
		assert_int_equal(w.a.refused, w.refused);
		assert_int_equal(w.a.peak_bytes, w.peak * G);
	}
	while (w.n)
		put(&w, 0);
	arena_check(&w.a);
	assert_int_equal(w.a.used_bytes, 0);
	arena_fini(&w.a);
	free(w.taken);
}

static void against_a_twin(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		random_world(seed, (1 + seed % 7 * 31) * G + seed % 3 * 100, false);
		random_world(seed, (1 + seed % 7 * 31) * G + seed % 3 * 100, true);
	}
	for (uint64_t seed = 1; seed <= 5; seed++)
		random_world(seed, 100 * MIB, false);
}

/* ---- what does not fit ---- */

static void exhaustion(void **state)
{
	uint8_t *at[4], *more;
	struct arena a;

	(void)state;
	arena_init(&a, 4 * G + G / 2, false); /* half a granule is none */
	for (int i = 0; i < 4; i++)
		assert_int_equal(arena_get(&a, G - (unsigned int)i, &at[i]), 0);
	assert_int_equal(arena_get(&a, 1, &more), -EAGAIN);
	assert_null(more);
	assert_int_equal(arena_get(&a, 0, &more), 0); /* nothing always fits */
	assert_null(more);
	assert_int_equal(a.refused, 1);
	/* Two free granules that are no neighbours are not a piece of two. */
	arena_put(&a, at[0], G);
	arena_put(&a, at[2], G - 2);
	assert_int_equal(arena_get(&a, G + 1, &more), -EAGAIN);
	arena_put(&a, at[1], G - 1);
	assert_int_equal(arena_get(&a, 3 * G, &more), 0);
	assert_ptr_equal(more, at[0]);
	assert_int_equal(a.peak_bytes, 4 * G);
	arena_put(&a, more, 3 * G);
	arena_put(&a, NULL, 5 * G);
	arena_check(&a);
	assert_int_equal(a.used_bytes, G);
	arena_put(&a, at[3], G - 3);
	arena_fini(&a);
}

static void too_large(void **state)
{
	const uint64_t bytes[] = {MIB + 1, 1024 * MIB, UINT64_MAX / 2, UINT64_MAX - 1, UINT64_MAX};
	struct arena a;
	uint8_t *at;

	(void)state;
	arena_init(&a, MIB, false);
	for (size_t i = 0; i < SDR_ARRAY_LEN(bytes); i++)
		assert_int_equal(arena_get(&a, bytes[i], &at), -EAGAIN);
	assert_int_equal(a.refused, SDR_ARRAY_LEN(bytes));
	assert_int_equal(a.used_bytes, 0);
	assert_null(a.base); /* nothing was mapped for that */
	assert_int_equal(arena_get(&a, MIB, &at), 0);
	arena_put(&a, at, MIB);
	arena_fini(&a);
#ifndef __SANITIZE_ADDRESS__ /* which takes the attempt for a fault */
	/* More than there are addresses. */
	arena_init(&a, UINT64_C(1) << 60, true);
	assert_int_equal(arena_get(&a, G, &at), -ENOMEM);
	assert_null(at);
	arena_check(&a);
	arena_fini(&a);
#endif
	/* An arena without room, and one that nobody used. */
	arena_init(&a, 0, false);
	assert_int_equal(arena_get(&a, 1, &at), -EAGAIN);
	arena_check(&a);
	arena_fini(&a);
}

/* ---- memory ---- */

/* Bytes of the arena that are in memory. */
static uint64_t resident(const struct arena *a)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), n = a->ngranules * G / page, sum = 0;
	unsigned char *there = malloc(n + 1);

	assert_non_null(there);
	assert_int_equal(mincore(a->base, n * page, there), 0);
	for (uint64_t i = 0; i < n; i++)
		sum += there[i] & 1 ? page : 0;
	free(there);
	return sum;
}

/* Writing takes memory, a piece does not; the system may give a whole huge page for a byte. */
static void memory_is_taken_by_writing(void **state)
{
	const uint64_t bytes = 4096 * MIB, huge = 2 * MIB;
	uint8_t *small, *large;
	struct arena a;

	(void)state;
	arena_init(&a, bytes, false);
	assert_int_equal(arena_get(&a, 100, &small), 0);
	assert_int_equal(arena_get(&a, 1024 * MIB, &large), 0);
	assert_int_equal(resident(&a), 0);
	memset(small, 1, 100);
	assert_in_range(resident(&a), 100, G); /* no huge page for the first pieces */
	memset(large + 512 * MIB, 1, 3 * MIB);
	assert_in_range(resident(&a), 3 * MIB, G + 3 * MIB + 2 * huge);
	/* Too much to keep. */
	arena_put(&a, large, 1024 * MIB);
	assert_in_range(resident(&a), 100, G);
	assert_int_equal(a.warm_bytes, 0);
	assert_int_equal(small[99], 1);
	arena_put(&a, small, 100);
	arena_check(&a);
	arena_fini(&a);
}

/* What is given back keeps its pages up to a limit, and is what the next piece gets. */
static void some_pages_are_kept(void **state)
{
	const uint64_t part = ARENA_WARM_BYTES / 4;
	uint8_t *at[8], *again;
	struct arena a;

	(void)state;
	arena_init(&a, 256 * MIB, false);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(arena_get(&a, part, &at[i]), 0);
		memset(at[i], 7, part);
	}
	assert_int_equal(resident(&a), 8 * part);
	for (uint64_t i = 0; i < 8; i++) {
		arena_put(&a, at[i], part);
		assert_int_equal(a.warm_bytes, u64_min(i + 1, 4) * part);
		assert_int_equal(resident(&a), (i < 4 ? 8 : 11 - i) * part);
		arena_check(&a);
	}
	assert_int_equal(arena_get(&a, part, &again), 0);
	assert_ptr_equal(again, at[0]);
	assert_int_equal(again[part - 1], 7);
	assert_int_equal(a.warm_bytes, 3 * part);
	/* One that lies half in what was kept. */
	arena_put(&a, again, part);
	assert_int_equal(arena_get(&a, 5 * part, &again), 0);
	assert_int_equal(a.warm_bytes, 0);
	arena_check(&a);
	arena_put(&a, again, 5 * part);
	assert_int_equal(a.warm_bytes, 0);
	assert_int_equal(resident(&a), 0);
	arena_fini(&a);
}

/* A neighbour's bytes stay when pages are given back. */
static void neighbours_stay(void **state)
{
	const uint64_t large = ARENA_WARM_BYTES + G;
	uint8_t *before, *at, *after;
	struct arena a;

	(void)state;
	arena_init(&a, 256 * MIB, false);
	assert_int_equal(arena_get(&a, G, &before), 0);
	assert_int_equal(arena_get(&a, large - 1, &at), 0);
	assert_int_equal(arena_get(&a, G, &after), 0);
	memset(before, 1, G);
	memset(at, 2, large - 1);
	memset(after, 3, G);
	arena_put(&a, at, large - 1);
	for (uint32_t i = 0; i < G; i++)
		assert_true(before[i] == 1 && after[i] == 3);
	assert_in_range(resident(&a), 2 * G, 2 * G + 2 * 2 * MIB);
	arena_put(&a, before, G);
	arena_put(&a, after, G);
	arena_fini(&a);
}

/* Addresses alone: any number of them, and whoever touches one is caught. */
static void addresses_only(void **state)
{
	const uint64_t bytes = UINT64_C(1) << 40;
	uint8_t *at, *more;
	struct arena a;
	int fd[2];

	(void)state;
	arena_init(&a, bytes, true);
	assert_int_equal(arena_get(&a, bytes / 2, &at), 0);
	assert_int_equal(arena_get(&a, bytes / 2, &more), 0);
	assert_ptr_equal(more, at + bytes / 2);
	assert_int_equal(arena_get(&a, 1, &more), -EAGAIN);
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(write(fd[1], at, 1), -1);
	assert_int_equal(errno, EFAULT);
	(void)close(fd[0]);
	(void)close(fd[1]);
	arena_put(&a, at, bytes / 2);
	arena_check(&a);
	assert_int_equal(a.used_bytes, bytes / 2);
	arena_fini(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(against_a_twin),      cmocka_unit_test(exhaustion),
		cmocka_unit_test(too_large),	       cmocka_unit_test(memory_is_taken_by_writing),
		cmocka_unit_test(some_pages_are_kept), cmocka_unit_test(neighbours_stay),
		cmocka_unit_test(addresses_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

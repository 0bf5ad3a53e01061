/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First fit over a bitmap of granules, lowest address first, so that pages that are there already
 * are used again. Contract: arena.h.
 */
#include "conn/arena.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/check.h"

#define HUGE_PAGE (UINT64_C(2) << 20) /* alignment that lets the system use them */

void arena_init(struct arena *a, uint64_t bytes, bool no_bytes)
{
	*a = (struct arena){
		.bytes = bytes, .ngranules = bytes / ARENA_GRANULE, .no_bytes = no_bytes};
}

static uint64_t page_up(uint64_t at)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return u64_div_up(at, page) * page;
}

static uint64_t map_bytes(const struct arena *a)
{
	return page_up(a->ngranules * ARENA_GRANULE);
}

void arena_fini(struct arena *a)
{
	if (a->base)
		(void)munmap(a->base, map_bytes(a));
	alloc_free(&sdr_alloc_system, a->used);
	a->base = NULL;
	a->used = a->warm = NULL;
}

/* Address space alone, aligned to huge pages; NULL: there is none. */
static uint8_t *map(uint64_t bytes, bool no_bytes)
{
	uint64_t all = bytes + HUGE_PAGE, head;
	uint8_t *at;

	if (all > SIZE_MAX || all < bytes)
		return NULL;
	at = mmap(NULL, all, no_bytes ? PROT_NONE : PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return NULL;
	head = -(uintptr_t)at % HUGE_PAGE;
	if (head)
		(void)munmap(at, head);
	if (HUGE_PAGE - head)
		(void)munmap(at + head + bytes, HUGE_PAGE - head);
	/* A wish. Not where the first pieces are: many connections never need more than that. */
	if (!no_bytes && bytes > HUGE_PAGE)
		(void)madvise(at + head + HUGE_PAGE, bytes - HUGE_PAGE, MADV_HUGEPAGE);
	return at + head;
}

/* At the first piece: most connections never have one. */
static int open_up(struct arena *a)
{
	size_t words = bits_words(a->ngranules);

	a->used = alloc_zeroed(&sdr_alloc_system, 2 * words * sizeof(*a->used));
	if (!a->used)
		return -ENOMEM;
	a->warm = a->used + words;
	a->base = map(map_bytes(a), a->no_bytes);
	if (a->base)
		return 0;
	alloc_free(&sdr_alloc_system, a->used);
	a->used = a->warm = NULL;
	return -ENOMEM;
}

/* Calls of this go over [first, first + n), word by word: the bits of each. */
static uint64_t word_mask(uint64_t *first, uint64_t *n, size_t *word)
{
	unsigned int shift = (unsigned int)(*first % 64);
	unsigned int some = (unsigned int)u64_min(*n, 64 - shift);

	*word = (size_t)(*first / 64);
	*first += some;
	*n -= some;
	return bits_range(shift, some);
}

/* From `at` on, the first granule that is `taken` or not; ngranules: none. */
static uint64_t next_one(const struct arena *a, uint64_t at, bool taken)
{
	while (at < a->ngranules) {
		uint64_t word = a->used[at / 64];
		uint64_t rest = (taken ? word : ~word) & ~bits_low((unsigned int)(at % 64));

		if (rest)
			return u64_min(at / 64 * 64 + (uint64_t)__builtin_ctzll(rest),
				       a->ngranules);
		at = (at / 64 + 1) * 64;
	}
	return a->ngranules;
}

/* Where n granules are free; ngranules: nowhere. */
static uint64_t find(struct arena *a, uint64_t n)
{
	uint64_t first = next_one(a, a->next, false);

	a->next = first;
	while (n <= a->ngranules - first) {
		uint64_t end = next_one(a, first, true);

		if (end - first >= n)
			return first;
		first = next_one(a, end, false);
	}
	return a->ngranules;
}

static void take(struct arena *a, uint64_t first, uint64_t n)
{
	a->used_bytes += n * ARENA_GRANULE;
	a->peak_bytes = u64_max(a->peak_bytes, a->used_bytes);
	while (n) {
		size_t word;
		uint64_t mask = word_mask(&first, &n, &word);

		a->used[word] |= mask;
		a->warm_bytes -=
			ARENA_GRANULE * (uint64_t)__builtin_popcountll(a->warm[word] & mask);
		a->warm[word] &= ~mask;
	}
}

int arena_get(struct arena *a, uint64_t bytes, uint8_t **out)
{
	uint64_t n = u64_div_up(bytes, ARENA_GRANULE), first;

	*out = NULL;
	if (!n)
		return 0;
	if (n > a->ngranules) {
		a->refused++;
		return -EAGAIN;
	}
	if (!a->base && open_up(a))
		return -ENOMEM;
	first = find(a, n);
	if (first == a->ngranules) {
		a->refused++;
		return -EAGAIN;
	}
	take(a, first, n);
	*out = a->base + first * ARENA_GRANULE;
	return 0;
}

/* Gives whole pages back to the system; a page may be larger than a granule. */
static void cool(const struct arena *a, uint64_t first, uint64_t n)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t from = page_up(first * ARENA_GRANULE);
	uint64_t to = (first + n) * ARENA_GRANULE / page * page;

	if (from < to)
		(void)madvise(a->base + from, to - from, MADV_DONTNEED);
}

void arena_put(struct arena *a, uint8_t *piece, uint64_t bytes)
{
	uint64_t n = u64_div_up(bytes, ARENA_GRANULE), first;
	bool warm = !a->no_bytes && a->warm_bytes + n * ARENA_GRANULE <= ARENA_WARM_BYTES;

	if (!piece)
		return;
	first = (uint64_t)(piece - a->base) / ARENA_GRANULE;
	SDR_ASSERT(n && first < a->ngranules && n <= a->ngranules - first);
	a->next = u64_min(a->next, first);
	a->used_bytes -= n * ARENA_GRANULE;
	if (warm)
		a->warm_bytes += n * ARENA_GRANULE;
	else if (!a->no_bytes)
		cool(a, first, n);
	while (n) {
		size_t word;
		uint64_t mask = word_mask(&first, &n, &word);

		SDR_ASSERT((a->used[word] & mask) == mask);
		a->used[word] &= ~mask;
		if (warm)
			a->warm[word] |= mask;
	}
}

void arena_check(const struct arena *a)
{
	uint64_t used = 0, warm = 0;

	SDR_ASSERT(!a->base == !a->used && a->used_bytes <= a->peak_bytes);
	for (size_t i = 0; a->used && i < bits_words(a->ngranules); i++) {
		used += (uint64_t)__builtin_popcountll(a->used[i]);
		warm += (uint64_t)__builtin_popcountll(a->warm[i]);
		SDR_ASSERT(!(a->used[i] & a->warm[i]));
	}
	SDR_ASSERT(used * ARENA_GRANULE == a->used_bytes && used <= a->ngranules);
	SDR_ASSERT(warm * ARENA_GRANULE == a->warm_bytes && a->warm_bytes <= ARENA_WARM_BYTES);
	SDR_ASSERT(!a->used || next_one(a, 0, false) >= a->next);
	(void)used;
	(void)warm;
}

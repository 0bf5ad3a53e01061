/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocator seam: pure layers get memory through this and nothing else, so that
 * tests can fail the n-th allocation and count what is left over.
 */
#ifndef SDR_BASE_ALLOC_H
#define SDR_BASE_ALLOC_H

#include <stddef.h>

struct sdr_alloc {
	/* Zeroed memory aligned to 64 bytes, or NULL. */
	void *(*zalloc)(void *arg, size_t bytes);
	void (*free)(void *arg, void *p);
	void *arg;
};

/* The C library's. */
extern const struct sdr_alloc sdr_alloc_system;

static inline void *alloc_zeroed(const struct sdr_alloc *a, size_t bytes)
{
	return a->zalloc(a->arg, bytes);
}

static inline void alloc_free(const struct sdr_alloc *a, void *p)
{
	if (p)
		a->free(a->arg, p);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: the system's allocator, which fails after so many, and knows what is out.
 */
#ifndef SDR_BASE_ALLOC_FAILING_H
#define SDR_BASE_ALLOC_FAILING_H

#include "base/alloc.h"

struct alloc_failing {
	int left; /* allocations before all fail */
	int out;
};

static inline void *alloc_failing_zalloc(void *arg, size_t bytes)
{
	struct alloc_failing *f = arg;

	if (f->left-- <= 0)
		return NULL;
	f->out++;
	return sdr_alloc_system.zalloc(sdr_alloc_system.arg, bytes);
}

static inline void alloc_failing_free(void *arg, void *p)
{
	struct alloc_failing *f = arg;

	f->out--;
	sdr_alloc_system.free(sdr_alloc_system.arg, p);
}

/* f outlives it. */
static inline struct sdr_alloc alloc_failing(struct alloc_failing *f)
{
	return (struct sdr_alloc){alloc_failing_zalloc, alloc_failing_free, f};
}

#endif

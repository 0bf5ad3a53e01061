// SPDX-License-Identifier: Apache-2.0
/*
 * The allocator seam over the C library. Knows nothing of who asks; see alloc.h.
 */
#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ALLOC_ALIGN 64

static void *system_zalloc(void *arg, size_t bytes)
{
	size_t rounded;
	void *p;

	(void)arg;
	if (bytes > SIZE_MAX - ALLOC_ALIGN)
		return NULL;
	/* aligned_alloc wants a multiple; nobody gets NULL for having asked for nothing. */
	rounded = (bytes + ALLOC_ALIGN - 1) / ALLOC_ALIGN * ALLOC_ALIGN;
	if (rounded == 0)
		rounded = ALLOC_ALIGN;
	p = aligned_alloc(ALLOC_ALIGN, rounded);
	if (p)
		memset(p, 0, rounded);
	return p;
}

static void system_free(void *arg, void *p)
{
	(void)arg;
	free(p);
}

const struct sdr_alloc sdr_alloc_system = {
	.zalloc = system_zalloc,
	.free = system_free,
};

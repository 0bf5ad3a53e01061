/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers of one size from memory that is there from the start: what parity waits in. Huge pages
 * are the owner's business, through the allocator. One thread at a time. Knows nothing of what
 * is in the buffers.
 */
#ifndef SDR_CODE_POOL_H
#define SDR_CODE_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

/*
 * Invariants: (1) nfree + nused == count; (2) idle[0 .. nfree-1] are different buffers, none of
 * them handed out; (3) nused <= peak <= count.
 */
struct code_pool {
	const struct sdr_alloc *alloc;
	uint8_t *bytes;
	size_t stride; /* a buffer's size, rounded up to cache lines */
	uint32_t count;
	uint32_t *idle; /* a stack: what was used last is still in cache */
	uint64_t *out;	/* a bit for each buffer that is handed out */
	uint32_t nfree, peak;
	uint64_t exhausted; /* how often there was none */
};

/* `count` buffers of `bytes`, aligned to 64. 0; -EINVAL: none, or more than memory has
 * addresses for; -ENOMEM. */
int code_pool_init(struct code_pool *p, const struct sdr_alloc *alloc, uint32_t count,
		   size_t bytes);
void code_pool_fini(struct code_pool *p);
/* 0, or -EAGAIN: all are in use; counted. What is in the buffer is not zeroed. */
int code_pool_get(struct code_pool *p, void **out);
/* A buffer of code_pool_get(), given back once. */
void code_pool_put(struct code_pool *p, void *buffer);
static inline uint32_t code_pool_used(const struct code_pool *p)
{
	return p->count - p->nfree;
}
void code_pool_check(const struct code_pool *p);

#endif

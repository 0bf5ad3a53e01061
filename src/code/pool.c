// SPDX-License-Identifier: Apache-2.0
/* A stack of idle buffers. See pool.h. */
#include "code/pool.h"

#include <errno.h>

#include "base/bits.h"
#include "base/check.h"

#define ALIGN 64u

int code_pool_init(struct code_pool *p, const struct sdr_alloc *alloc, uint32_t count, size_t bytes)
{
	*p = (struct code_pool){.alloc = alloc, .count = count};
	if (count == 0 || bytes == 0 || bytes > SIZE_MAX / count - ALIGN)
		return -EINVAL;
	p->stride = (bytes + ALIGN - 1) / ALIGN * ALIGN;
	p->bytes = alloc_zeroed(alloc, p->stride * count);
	p->idle = alloc_zeroed(alloc, count * sizeof(p->idle[0]));
	p->out = alloc_zeroed(alloc, bits_words(count) * sizeof(p->out[0]));
	if (!p->bytes || !p->idle || !p->out) {
		code_pool_fini(p);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++)
		p->idle[i] = count - 1 - i;
	p->nfree = count;
	return 0;
}

void code_pool_fini(struct code_pool *p)
{
	alloc_free(p->alloc, p->bytes);
	alloc_free(p->alloc, p->idle);
	alloc_free(p->alloc, p->out);
	p->bytes = NULL;
	p->idle = NULL;
	p->out = NULL;
	p->nfree = p->count = 0;
}

int code_pool_get(struct code_pool *p, void **out)
{
	uint32_t i;

	if (p->nfree == 0) {
		p->exhausted++;
		return -EAGAIN;
	}
	i = p->idle[--p->nfree];
	p->out[i / 64] |= UINT64_C(1) << i % 64;
	p->peak = (uint32_t)u64_max(p->peak, code_pool_used(p));
	*out = p->bytes + i * p->stride;
	return 0;
}

void code_pool_put(struct code_pool *p, void *buffer)
{
	size_t offset = (size_t)((uint8_t *)buffer - p->bytes);
	uint32_t i = (uint32_t)(offset / p->stride);

	SDR_ASSERT(offset % p->stride == 0 && i < p->count);
	SDR_ASSERT(p->out[i / 64] >> i % 64 & 1);
	p->out[i / 64] &= ~(UINT64_C(1) << i % 64);
	p->idle[p->nfree++] = i;
}

void code_pool_check(const struct code_pool *p)
{
	uint32_t nout = 0;

	for (size_t w = 0; w < bits_words(p->count); w++)
		nout += (uint32_t)__builtin_popcountll(p->out[w]);
	SDR_ASSERT(nout == code_pool_used(p) && nout <= p->peak && p->peak <= p->count);
	for (uint32_t i = 0; i < p->nfree; i++) {
		SDR_ASSERT(p->idle[i] < p->count);
		SDR_ASSERT(!(p->out[p->idle[i] / 64] >> p->idle[i] % 64 & 1));
		for (uint32_t j = 0; j < i; j++)
			SDR_ASSERT(p->idle[i] != p->idle[j]);
	}
	(void)nout;
}

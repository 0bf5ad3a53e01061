/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of packets in flight: freelists by size, four sizes an octave, fed by slabs that
 * live as long as the world. In a steady state nothing is allocated.
 */
#include "fabric/sim/sim_int.h"

#include "base/bits.h"

#define SLAB_BYTES (256u * 1024u)
#define SLAB_HEAD_BYTES 64u /* keeps packets on cache lines */
#define PACKET_ALIGN 64u

void sim_pool_init(struct sim_pool *pool, const struct sdr_alloc *alloc)
{
	*pool = (struct sim_pool){.alloc = alloc};
}

void sim_pool_fini(struct sim_pool *pool)
{
	while (pool->slabs) {
		struct sim_slab *next = pool->slabs->next;

		alloc_free(pool->alloc, pool->slabs);
		pool->slabs = next;
	}
}

/* Rounds up to 2^e + q * 2^(e-2), q in 1 .. 4, and numbers that size. */
static uint32_t size_class(uint32_t need, uint32_t *bytes)
{
	uint32_t octave = 31u - (uint32_t)__builtin_clz(need - 1);
	uint32_t step = (UINT32_C(1) << octave) / 4;
	uint32_t quarter = (need - 1 - (UINT32_C(1) << octave)) / step + 1;

	*bytes = (UINT32_C(1) << octave) + quarter * step;
	return octave * 4 + quarter - 1;
}

static int refill(struct sim_pool *pool, uint32_t class, uint32_t bytes)
{
	uint32_t n = (uint32_t)u64_max(1, (SLAB_BYTES - SLAB_HEAD_BYTES) / bytes);
	struct sim_slab *slab = alloc_zeroed(pool->alloc, SLAB_HEAD_BYTES + (size_t)n * bytes);
	uint8_t *at;

	if (!slab)
		return -1;
	slab->next = pool->slabs;
	pool->slabs = slab;
	/* From the end, so that the list hands them out in order of address. */
	at = (uint8_t *)slab + SLAB_HEAD_BYTES + (size_t)n * bytes;
	for (uint32_t i = 0; i < n; i++) {
		struct sim_packet *p;

		at -= bytes;
		p = (struct sim_packet *)(void *)at;
		p->pool_class = class;
		p->next = pool->free[class];
		pool->free[class] = p;
	}
	return 0;
}

struct sim_packet *sim_packet_new(struct sim_pool *pool, uint32_t len)
{
	uint32_t bytes, class;
	struct sim_packet *p;

	/* At least 256, so that every step is a multiple of the alignment. */
	class = size_class((uint32_t)u64_max(sizeof(*p) + len, 4 * PACKET_ALIGN + 1), &bytes);
	if (!pool->free[class] && refill(pool, class, bytes))
		return NULL;
	p = pool->free[class];
	pool->free[class] = p->next;
	p->len = len;
	p->absent = 0;
	return p;
}

void sim_packet_free(struct sim_pool *pool, struct sim_packet *p)
{
	p->next = pool->free[p->pool_class];
	pool->free[p->pool_class] = p;
}

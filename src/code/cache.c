// SPDX-License-Identifier: Apache-2.0
/*
 * Tables by pattern. Slots are searched one after the other, by a hash first: there are few, and
 * making a table costs thousands of times more. See cache.h.
 */
#include "code/cache.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"

static struct code_cache_key hashed(const struct code_cache_key *key)
{
	struct code_cache_key out = *key;
	const uint64_t *word[] = {out.erased.word, out.parity.word};
	uint64_t h = (uint64_t)out.count << 32 | (uint64_t)out.first << 16 | out.rows;

	for (uint32_t i = 0; i < 2; i++) {
		for (uint32_t w = 0; w < SDR_ARRAY_LEN(out.erased.word); w++)
			h = (h ^ word[i][w]) * UINT64_C(0x9e3779b97f4a7c15) ^ h >> 29;
	}
	out.hash = (uint32_t)(h >> 32);
	return out;
}

int code_cache_init(struct code_cache *c, const struct sdr_alloc *alloc, uint32_t nslots,
		    size_t slot_bytes)
{
	*c = (struct code_cache){.alloc = alloc, .nslots = nslots, .slot_bytes = slot_bytes};
	c->slot = alloc_zeroed(alloc, nslots * sizeof(c->slot[0]));
	c->bytes = alloc_zeroed(alloc, nslots * slot_bytes);
	if (!c->slot || !c->bytes) {
		code_cache_fini(c);
		return -ENOMEM;
	}
	return 0;
}

void code_cache_fini(struct code_cache *c)
{
	alloc_free(c->alloc, c->slot);
	alloc_free(c->alloc, c->bytes);
	c->slot = NULL;
	c->bytes = NULL;
}

static bool same(const struct code_cache_slot *s, const struct code_cache_key *key)
{
	return s->used && s->key.hash == key->hash && memcmp(&s->key, key, sizeof(*key)) == 0;
}

uint8_t *code_cache_find(struct code_cache *c, const struct code_cache_key *key)
{
	struct code_cache_key wanted = hashed(key);

	for (uint32_t i = 0; i < c->nslots; i++) {
		if (!same(&c->slot[i], &wanted))
			continue;
		c->slot[i].used = ++c->clock;
		c->stats.hits++;
		return c->bytes + i * c->slot_bytes;
	}
	c->stats.misses++;
	return NULL;
}

uint8_t *code_cache_take(struct code_cache *c, const struct code_cache_key *key)
{
	uint32_t oldest = 0;

	for (uint32_t i = 1; i < c->nslots; i++) {
		if (c->slot[i].used < c->slot[oldest].used)
			oldest = i;
	}
	c->stats.evictions += c->slot[oldest].used > 0;
	c->slot[oldest] = (struct code_cache_slot){.key = hashed(key), .used = ++c->clock};
	return c->bytes + oldest * c->slot_bytes;
}

void code_cache_check(const struct code_cache *c)
{
	for (uint32_t i = 0; i < c->nslots; i++) {
		const struct code_cache_slot *s = &c->slot[i];

		SDR_ASSERT(s->used <= c->clock);
		for (uint32_t j = 0; j < i && s->used; j++) {
			SDR_ASSERT(s->used != c->slot[j].used);
			SDR_ASSERT(!same(&c->slot[j], &s->key));
		}
		(void)s;
	}
}

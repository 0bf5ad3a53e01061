/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables by what they are for: a fixed number of slots of one size, the one unused for longest
 * goes first. Knows nothing of what the tables hold.
 */
#ifndef SDR_CODE_CACHE_H
#define SDR_CODE_CACHE_H

#include <stddef.h>

#include "code/code.h"

/* Compared as bytes: no padding in it. `hash` is the cache's. */
struct code_cache_key {
	struct code_set erased, parity;
	uint32_t count, first, rows, hash;
};

struct code_cache_slot {
	struct code_cache_key key;
	uint64_t used; /* the larger, the later; 0: empty */
};

/*
 * Invariants: (1) no two slots in use have one key; (2) no two have one `used`, and none is
 * above `clock`; (3) hits + misses are the calls of code_cache_find().
 */
struct code_cache {
	const struct sdr_alloc *alloc;
	struct code_cache_slot *slot;
	uint8_t *bytes;
	size_t slot_bytes;
	uint32_t nslots;
	uint64_t clock;
	struct code_stats stats;
};

/* nslots > 0. 0 or -ENOMEM. */
int code_cache_init(struct code_cache *c, const struct sdr_alloc *alloc, uint32_t nslots,
		    size_t slot_bytes);
void code_cache_fini(struct code_cache *c);
/* NULL: not there, counted as a miss. Stands until the next code_cache_take(). */
uint8_t *code_cache_find(struct code_cache *c, const struct code_cache_key *key);
/* A slot for a key that is not there; what it held is gone, and the caller fills it. */
uint8_t *code_cache_take(struct code_cache *c, const struct code_cache_key *key);
void code_cache_check(const struct code_cache *c);

#endif

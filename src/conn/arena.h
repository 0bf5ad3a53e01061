/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address space for parity: contiguous pieces of one mapping, of which only what is written takes
 * memory; what is given back keeps its pages while they are few. Huge pages where the system gives
 * them. Used by one thread at a time. Knows nothing of what is in them.
 */
#ifndef SDR_CONN_ARENA_H
#define SDR_CONN_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARENA_GRANULE (16u << 10)
#define ARENA_WARM_BYTES (32u << 20) /* of free pieces that keep their pages */

/*
 * Invariants: (1) used_bytes and warm_bytes are what the bits say, and no granule is both; (2)
 * used_bytes <= peak_bytes, and warm_bytes <= ARENA_WARM_BYTES; (3) there is a mapping exactly
 * where there are bitmaps.
 */
struct arena {
	uint8_t *base; /* NULL until the first piece */
	uint64_t bytes;
	uint64_t *used;				     /* a bit for each granule */
	uint64_t *warm;				     /* and one: it is free, and keeps its pages */
	uint64_t ngranules, next;		     /* below `next` none is free */
	uint64_t used_bytes, peak_bytes, warm_bytes; /* in whole granules */
	uint64_t refused;			     /* pieces that there was no room for */
	bool no_bytes;				     /* addresses only, never to be touched */
};

void arena_init(struct arena *a, uint64_t bytes, bool no_bytes);
void arena_fini(struct arena *a);
/* 0; -EAGAIN: no room (counted); -ENOMEM: no mapping. bytes 0: 0 and *out NULL. Not zeroed. */
int arena_get(struct arena *a, uint64_t bytes, uint8_t **out);
void arena_put(struct arena *a, uint8_t *piece, uint64_t bytes); /* as it was got; NULL: nothing */
void arena_check(const struct arena *a);

#endif

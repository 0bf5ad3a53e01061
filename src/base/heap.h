/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A binary heap of deadlines: intrusive nodes, earliest first, each node at most once.
 * The owner keeps the array; heap_add grows it through the allocator seam.
 *
 * Invariants: (1) slot[i]->pos == i for i < n; (2) no node is later than its children;
 * (3) a node that is in no heap has pos == HEAP_NONE.
 */
#ifndef SDR_BASE_HEAP_H
#define SDR_BASE_HEAP_H

#include "base/alloc.h"
#include <stddef.h>
#include <stdint.h>

#define HEAP_NONE UINT32_MAX

struct heap_node {
	uint64_t key; /* a deadline in ns, or any order */
	uint64_t tie; /* breaks equal keys: lower first (insertion order in simulations) */
	uint32_t pos;
};

struct heap {
	struct heap_node **slot;
	uint32_t n, cap;
	const struct sdr_alloc *alloc;
};

void heap_init(struct heap *h, const struct sdr_alloc *alloc);
void heap_fini(struct heap *h);
static inline void heap_node_init(struct heap_node *node)
{
	node->pos = HEAP_NONE;
}
/* Adds the node or moves it to a new key. 0, or -ENOMEM (the heap is unchanged). */
int heap_set(struct heap *h, struct heap_node *node, uint64_t key, uint64_t tie);
void heap_remove(struct heap *h, struct heap_node *node);	 /* no-op if it is not in */
static inline struct heap_node *heap_first(const struct heap *h) /* NULL when empty */
{
	return h->n ? h->slot[0] : NULL;
}
/* What would be first without the first; NULL: nothing. */
struct heap_node *heap_second(const struct heap *h);
void heap_check(const struct heap *h);

#endif

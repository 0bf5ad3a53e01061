// SPDX-License-Identifier: Apache-2.0
/*
 * The binary heap of deadlines declared in heap.h. Knows no clock: keys are numbers.
 */
#include "base/heap.h"

#include "base/check.h"

#include <errno.h>
#include <string.h>

#define HEAP_FIRST_CAP 16

static int node_before(const struct heap_node *a, const struct heap_node *b)
{
	return a->key < b->key || (a->key == b->key && a->tie < b->tie);
}

static void place(struct heap *h, struct heap_node *node, uint32_t pos)
{
	h->slot[pos] = node;
	node->pos = pos;
}

static void sift_up(struct heap *h, struct heap_node *node)
{
	uint32_t pos = node->pos;

	while (pos > 0) {
		uint32_t parent = (pos - 1) / 2;

		if (!node_before(node, h->slot[parent]))
			break;
		place(h, h->slot[parent], pos);
		pos = parent;
	}
	place(h, node, pos);
}

static void sift_down(struct heap *h, struct heap_node *node)
{
	uint64_t pos = node->pos;

	for (;;) {
		uint64_t child = 2 * pos + 1;

		if (child >= h->n)
			break;
		if (child + 1 < h->n && node_before(h->slot[child + 1], h->slot[child]))
			child++;
		if (!node_before(h->slot[child], node))
			break;
		place(h, h->slot[child], (uint32_t)pos);
		pos = child;
	}
	place(h, node, (uint32_t)pos);
}

static int grow(struct heap *h)
{
	uint32_t cap = h->cap ? h->cap * 2 : HEAP_FIRST_CAP;
	struct heap_node **slot;

	if (h->cap > UINT32_MAX / 2)
		return -ENOMEM;
	slot = alloc_zeroed(h->alloc, cap * sizeof(struct heap_node *));
	if (!slot)
		return -ENOMEM;
	if (h->n)
		memcpy(slot, h->slot, h->n * sizeof(struct heap_node *));
	alloc_free(h->alloc, h->slot);
	h->slot = slot;
	h->cap = cap;
	return 0;
}

void heap_init(struct heap *h, const struct sdr_alloc *alloc)
{
	*h = (struct heap){.alloc = alloc};
}

void heap_fini(struct heap *h)
{
	for (uint32_t i = 0; i < h->n; i++)
		h->slot[i]->pos = HEAP_NONE;
	alloc_free(h->alloc, h->slot);
	*h = (struct heap){.alloc = h->alloc};
}

int heap_set(struct heap *h, struct heap_node *node, uint64_t key, uint64_t tie)
{
	if (node->pos == HEAP_NONE) {
		if (h->n == h->cap) {
			int err = grow(h);

			if (err)
				return err;
		}
		place(h, node, h->n++);
	}
	node->key = key;
	node->tie = tie;
	sift_up(h, node);
	sift_down(h, node);
	return 0;
}

void heap_remove(struct heap *h, struct heap_node *node)
{
	struct heap_node *last;
	uint32_t pos = node->pos;

	if (pos == HEAP_NONE)
		return;
	SDR_ASSERT(pos < h->n && h->slot[pos] == node);
	node->pos = HEAP_NONE;
	last = h->slot[--h->n];
	if (last == node)
		return;
	place(h, last, pos);
	sift_up(h, last);
	sift_down(h, last);
}

struct heap_node *heap_second(const struct heap *h)
{
	if (h->n < 3)
		return h->n < 2 ? NULL : h->slot[1];
	return node_before(h->slot[2], h->slot[1]) ? h->slot[2] : h->slot[1];
}

void heap_check(const struct heap *h)
{
	SDR_ASSERT(h->n <= h->cap);
	for (uint32_t i = 0; i < h->n; i++) {
		SDR_ASSERT(h->slot[i]->pos == i);				      /* (1) */
		SDR_ASSERT(i == 0 || !node_before(h->slot[i], h->slot[(i - 1) / 2])); /* (2) */
	}
}

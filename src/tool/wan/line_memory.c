/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slabs of pieces. Knows nothing of what a piece is for.
 */
#include "tool/wan/line_int.h"

#include "base/bits.h"
#include "base/check.h"

#include <string.h>

/* Empty slabs that are kept for the next: a share of those in use, and these. */
#define SPARE_SHARE 16
#define SPARE_MIN 4

uint64_t line_memory_bytes(const struct line_memory *m)
{
	return (m->n_used + m->n_free) * SLAB_BYTES + m->heap_bytes;
}

bool line_memory_room(struct line_memory *m, uint64_t bytes)
{
	while (m->limit_bytes && line_memory_bytes(m) + bytes > m->limit_bytes) {
		struct slab *spare = m->free;

		if (!spare)
			return false;
		m->free = spare->next;
		m->n_free--;
		alloc_free(m->alloc, spare);
	}
	return true;
}

void line_memory_heap(struct line_memory *m, uint64_t bytes)
{
	m->heap_bytes = bytes;
	m->peak_bytes = u64_max(m->peak_bytes, line_memory_bytes(m));
}

static uint8_t *slab_room(struct slab *slab)
{
	return (uint8_t *)slab + SLAB_HEAD;
}

static struct slab *slab_new(struct line_memory *m)
{
	struct slab *slab = m->free;

	if (slab) {
		m->free = slab->next;
		m->n_free--;
	} else {
		if (!line_memory_room(m, SLAB_BYTES))
			return NULL;
		slab = alloc_zeroed(m->alloc, SLAB_BYTES);
		if (!slab)
			return NULL;
	}
	*slab = (struct slab){.open = true};
	m->n_used++;
	m->peak_bytes = u64_max(m->peak_bytes, line_memory_bytes(m));
	return slab;
}

void line_memory_reserve(struct line_memory *m, uint64_t bytes)
{
	uint64_t most = m->limit_bytes ? m->limit_bytes / 2 : UINT64_MAX;

	m->n_keep = u64_min(bytes / SLAB_BYTES + (bytes % SLAB_BYTES > 0), most / SLAB_BYTES);
	while (m->n_used + m->n_free < m->n_keep) {
		struct slab *slab = alloc_zeroed(m->alloc, SLAB_BYTES);

		if (!slab)
			return; /* it will be missed, if at all, when it is needed */
		/* A first touch costs a page fault, which is long where a frame waits for it. */
		memset(slab, 1, SLAB_BYTES);
		slab->next = m->free;
		m->free = slab;
		m->n_free++;
	}
	m->peak_bytes = u64_max(m->peak_bytes, line_memory_bytes(m));
}

static void slab_done(struct line_memory *m, struct slab *slab)
{
	m->n_used--;
	if ((m->n_free >= m->n_used / SPARE_SHARE + SPARE_MIN &&
	     m->n_used + m->n_free >= m->n_keep) ||
	    (m->limit_bytes && line_memory_bytes(m) + SLAB_BYTES > m->limit_bytes)) {
		alloc_free(m->alloc, slab);
		return;
	}
	slab->next = m->free;
	m->free = slab;
	m->n_free++;
}

void slab_close(struct line_memory *m, struct slab **slab)
{
	struct slab *old = *slab;

	*slab = NULL;
	if (!old)
		return;
	old->open = false;
	if (!old->live)
		slab_done(m, old);
}

void line_memory_fini(struct line_memory *m)
{
	SDR_ASSERT(m->n_used == 0);
	while (m->free) {
		struct slab *next = m->free->next;

		alloc_free(m->alloc, m->free);
		m->free = next;
	}
	m->n_free = 0;
}

struct piece *piece_room(struct line_memory *m, struct slab **slab, uint32_t len)
{
	if (*slab && !(*slab)->live)
		(*slab)->used = 0;
	if (!*slab || SLAB_ROOM - (*slab)->used < PIECE_BYTES(len)) {
		slab_close(m, slab);
		*slab = slab_new(m);
		if (!*slab)
			return NULL;
	}
	return (struct piece *)(void *)(slab_room(*slab) + (*slab)->used);
}

void piece_take(struct piece *piece, struct slab *slab, uint32_t len)
{
	*piece = (struct piece){.slab = slab, .len = len};
	heap_node_init(&piece->due);
	slab->used += (uint32_t)PIECE_BYTES(len);
	slab->live++;
}

void piece_free(struct line_memory *m, struct piece *piece)
{
	struct slab *slab = piece->slab;

	SDR_ASSERT(slab->live > 0);
	if (--slab->live == 0 && !slab->open)
		slab_done(m, slab);
}

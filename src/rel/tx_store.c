/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sender's storage: rings, the hash of exceptional records, pages, look-ups. Knows
 * nothing of time or of what the records mean. See tx_priv.h.
 */
#include "rel/tx_priv.h"

#include <errno.h>
#include <string.h>

#define ALL ~UINT64_C(0)
#define ALL4 ALL, ALL, ALL, ALL
#define ALL16 ALL4, ALL4, ALL4, ALL4

struct rel_page rel_page_full = {.acked = {ALL16, ALL16, ALL16, ALL16}};

int rel_ring_reserve(struct rel_tx *tx, struct rel_ring *ring, uint32_t more)
{
	uint64_t need = ring->tail - ring->head + more;
	if (need <= ring->cap)
		return 0;
	uint32_t cap = ring->cap ? ring->cap : 16;
	while (cap < need)
		cap *= 2;
	struct rel_ring bigger = *ring;
	bigger.cap = cap;
	bigger.slot = alloc_zeroed(&tx->alloc, (size_t)cap * ring->elem_bytes);
	if (!bigger.slot)
		return -ENOMEM;
	for (uint64_t pos = ring->head; pos != ring->tail; pos++)
		memcpy(rel_ring_at(&bigger, pos), rel_ring_at(ring, pos), ring->elem_bytes);
	alloc_free(&tx->alloc, ring->slot);
	*ring = bigger;
	return 0;
}

void *rel_ring_push(struct rel_ring *ring)
{
	SDR_ASSERT(ring->tail - ring->head < ring->cap);
	return rel_ring_at(ring, ring->tail++);
}

static uint32_t exc_home(const struct rel_tx *tx, uint32_t message, uint32_t packet)
{
	uint64_t x = (uint64_t)message << 32 | packet;
	x ^= x >> 31;
	x *= UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(x >> 32) & (tx->exc_cap - 1);
}

struct rel_exc *rel_exc_find(const struct rel_tx *tx, uint32_t message, uint32_t packet)
{
	uint32_t i = exc_home(tx, message, packet);
	while (tx->exc[i].used) {
		if (tx->exc[i].packet == packet && tx->exc[i].message == message)
			return &tx->exc[i];
		i = (i + 1) & (tx->exc_cap - 1);
	}
	return NULL;
}

struct rel_exc *rel_exc_put(struct rel_tx *tx, uint32_t message, uint32_t packet)
{
	uint32_t i = exc_home(tx, message, packet);
	while (tx->exc[i].used) {
		if (tx->exc[i].packet == packet && tx->exc[i].message == message)
			return &tx->exc[i];
		i = (i + 1) & (tx->exc_cap - 1);
	}
	SDR_ASSERT(tx->nexc < tx->exc_cap - 1);
	tx->nexc++;
	tx->exc[i] = (struct rel_exc){.message = message, .packet = packet, .used = 1};
	return &tx->exc[i];
}

/* Linear probing without tombstones: later entries of the chain move up. */
void rel_exc_remove(struct rel_tx *tx, struct rel_exc *entry)
{
	uint32_t mask = tx->exc_cap - 1;
	uint32_t hole = (uint32_t)(entry - tx->exc);
	for (uint32_t i = (hole + 1) & mask; tx->exc[i].used; i = (i + 1) & mask) {
		uint32_t home = exc_home(tx, tx->exc[i].message, tx->exc[i].packet);
		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		tx->exc[hole] = tx->exc[i];
		hole = i;
	}
	tx->exc[hole].used = 0;
	tx->nexc--;
}

static int exc_reserve(struct rel_tx *tx, uint32_t more)
{
	uint64_t need = (uint64_t)tx->nexc + more;
	need += need / 3; /* at most three quarters full */
	if (need <= tx->exc_cap)
		return 0;
	uint32_t cap = tx->exc_cap ? tx->exc_cap : 256;
	while (cap < need)
		cap *= 2;
	struct rel_exc *old = tx->exc;
	uint32_t old_cap = tx->exc_cap;
	struct rel_exc *table = alloc_zeroed(&tx->alloc, (size_t)cap * sizeof(*table));
	if (!table)
		return -ENOMEM;
	tx->exc = table;
	tx->exc_cap = cap;
	tx->nexc = 0;
	for (uint32_t i = 0; i < old_cap; i++) {
		if (old[i].used)
			*rel_exc_put(tx, old[i].message, old[i].packet) = old[i];
	}
	alloc_free(&tx->alloc, old);
	return 0;
}

static int page_reserve(struct rel_tx *tx, struct rel_msg *msg, uint32_t packet)
{
	struct rel_page **slot = &msg->page[packet / REL_PAGE_PKTS];
	if (*slot)
		return 0;
	struct rel_page *page = tx->free_pages;
	if (page) {
		tx->free_pages = page->next_free;
		tx->nfree_pages--;
		memset(page, 0, sizeof(*page));
	} else {
		page = alloc_zeroed(&tx->alloc, sizeof(*page));
		if (!page)
			return -ENOMEM;
	}
	*slot = page;
	return 0;
}

void rel_page_release(struct rel_tx *tx, struct rel_page *page)
{
	if (!page || page == &rel_page_full)
		return;
	if (tx->nfree_pages >= REL_PAGES_CACHED) {
		alloc_free(&tx->alloc, page);
		return;
	}
	page->next_free = tx->free_pages;
	tx->free_pages = page;
	tx->nfree_pages++;
}

int rel_reserve_logs(struct rel_tx *tx)
{
	for (uint32_t i = 0; i < tx->params.channels; i++) {
		if (rel_ring_reserve(tx, &tx->ch[i].log, 1) < 0)
			return -ENOMEM;
	}
	return 0;
}

int rel_reserve(struct rel_tx *tx, struct rel_msg *msg, uint32_t first)
{
	if (rel_reserve_logs(tx) < 0)
		return -ENOMEM;
	if (exc_reserve(tx, REL_UNIT) < 0)
		return -ENOMEM;
	return page_reserve(tx, msg, first);
}

struct rel_msg *rel_msg_find(const struct rel_tx *tx, uint32_t message)
{
	struct rel_msg *msg = tx->slot[message & (REL_OPEN_SPAN - 1)];
	return msg && msg->message == message ? msg : NULL;
}

bool rel_word_get(struct rel_msg *msg, uint32_t unit, struct rel_word *out)
{
	struct rel_page *page = msg->page[unit / REL_PAGE_UNITS];
	*out = (struct rel_word){
		.msg = msg, .page = page, .unit = unit, .at = unit % REL_PAGE_UNITS};
	return page != NULL;
}

uint64_t rel_mask_below(uint32_t unit, uint32_t packet)
{
	uint64_t start = (uint64_t)unit * REL_UNIT;
	return packet <= start ? 0 : bits_low((unsigned int)u64_min(packet - start, REL_UNIT));
}

uint64_t rel_outstanding(const struct rel_word *w)
{
	return rel_mask_below(w->unit, w->msg->next) & ~w->page->acked[w->at] &
	       ~w->page->lost[w->at];
}

struct rel_last rel_last_of(const struct rel_tx *tx, const struct rel_word *w, unsigned int bit)
{
	if (w->page->exc[w->at] >> bit & 1) {
		const struct rel_exc *e =
			rel_exc_find(tx, w->msg->message, w->unit * REL_UNIT + bit);
		SDR_ASSERT(e);
		return (struct rel_last){e->sent_ns, e->lost_sent_ns, e->channel, e->lost_on};
	}
	const struct rel_unit *u = &w->page->unit[w->at];
	SDR_ASSERT(bit < u->n);
	return (struct rel_last){u->sent_ns, 0, u->channel, REL_NO_CHANNEL};
}

void rel_detach(struct rel_tx *tx, const struct rel_word *w, uint64_t bits)
{
	uint64_t out = rel_outstanding(w) & bits;
	uint64_t exc = w->page->exc[w->at] & bits;
	uint64_t plain = out & ~exc;
	if (plain) {
		struct rel_channel *ch = &tx->ch[w->page->unit[w->at].channel];
		ch->inflight -= (uint64_t)__builtin_popcountll(plain);
	}
	for (uint64_t rest = exc; rest; rest &= rest - 1) {
		unsigned int bit = (unsigned int)__builtin_ctzll(rest);
		struct rel_exc *e = rel_exc_find(tx, w->msg->message, w->unit * REL_UNIT + bit);
		SDR_ASSERT(e);
		if (out >> bit & 1)
			tx->ch[e->channel].inflight--;
		rel_exc_remove(tx, e);
	}
	if (exc)
		w->page->exc[w->at] &= ~exc;
}

void rel_attach(struct rel_tx *tx, const struct rel_word *w, uint64_t span, uint32_t channel,
		uint64_t now_ns, const struct rel_last was[REL_UNIT])
{
	struct rel_unit *u = &w->page->unit[w->at];
	uint64_t live = span & ~w->page->acked[w->at];
	unsigned int n = (unsigned int)__builtin_popcountll(span);
	tx->ch[channel].inflight += (uint64_t)__builtin_popcountll(live);
	/* A first transmission from the unit's start: the unit's own record covers it. */
	if (!was && span == bits_low(n) && n >= u->n) {
		*u = (struct rel_unit){now_ns, (uint8_t)channel, (uint8_t)n};
		return;
	}
	for (uint64_t rest = live; rest; rest &= rest - 1) {
		unsigned int bit = (unsigned int)__builtin_ctzll(rest);
		struct rel_exc *e = rel_exc_put(tx, w->msg->message, w->unit * REL_UNIT + bit);
		e->sent_ns = now_ns;
		e->channel = (uint8_t)channel;
		e->lost_on = was ? was[bit].channel : REL_NO_CHANNEL;
		e->lost_sent_ns = was ? was[bit].sent_ns : 0;
	}
	w->page->exc[w->at] |= live;
}

size_t rel_tx_memory_bytes(const struct rel_tx *tx)
{
	size_t sum = tx->lost.cap * sizeof(struct rel_lost) + tx->exc_cap * sizeof(struct rel_exc) +
		     tx->copies.cap * sizeof(struct rel_copy) +
		     tx->repairs.cap * sizeof(struct rel_refill) +
		     tx->nfree_pages * sizeof(struct rel_page);
	for (uint32_t i = 0; i < tx->params.channels; i++)
		sum += tx->ch[i].log.cap * sizeof(struct rel_train);
	for (const struct rel_msg *msg = tx->oldest; msg; msg = msg->after) {
		sum += sizeof(*msg) + msg->npages * sizeof(*msg->page) + rel_coded_bytes(msg);
		for (uint32_t p = 0; p < msg->npages; p++) {
			if (msg->page[p] && msg->page[p] != &rel_page_full)
				sum += sizeof(struct rel_page);
		}
	}
	return sum;
}

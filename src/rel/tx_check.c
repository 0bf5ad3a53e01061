/* SPDX-License-Identifier: Apache-2.0 */
/* The sender's invariants, recomputed from scratch; see struct rel_tx in tx.h. */
#include "rel/tx_priv.h"

struct tally {
	uint64_t inflight[REL_MAX_CHANNELS];
	uint64_t exc, lost, covered, left;
};

static void tally_word(const struct rel_tx *tx, struct rel_word *w, struct tally *t)
{
	struct rel_page *page = w->page;
	uint64_t out = rel_outstanding(w);
	uint64_t high = rel_mask_below(w->unit, w->msg->high);
	SDR_ASSERT((page->acked[w->at] & ~high) == 0);
	SDR_ASSERT((page->lost[w->at] & ~rel_mask_below(w->unit, w->msg->next)) == 0);
	SDR_ASSERT((page->exc[w->at] & page->acked[w->at]) == 0);
	t->exc += (uint64_t)__builtin_popcountll(page->exc[w->at]);
	uint64_t covered = page->covered[w->at];
	SDR_ASSERT((covered & ~(page->lost[w->at] & rel_span_bits(w->msg, w->unit))) == 0);
	t->lost += (uint64_t)__builtin_popcountll(page->lost[w->at] & ~covered);
	t->covered += (uint64_t)__builtin_popcountll(covered);
	for (; out; out &= out - 1)
		t->inflight[rel_last_of(tx, w, (unsigned int)__builtin_ctzll(out)).channel]++;
	for (uint64_t e = page->exc[w->at]; e; e &= e - 1)
		SDR_ASSERT(rel_exc_find(tx, w->msg->message,
					w->unit * REL_UNIT + (uint32_t)__builtin_ctzll(e)));
	(void)high;
}

/* The batch under way, and what the blocks know of repairs. */
static void check_coded(const struct rel_tx *tx, const struct rel_msg *msg, struct tally *t)
{
	const struct rel_coded *c = msg->coded;
	const struct code_layout *l = &c->layout;
	if (!rel_has_code(msg)) {
		SDR_ASSERT(!c->covered && c->coding.copies > 1);
		return;
	}
	SDR_ASSERT(c->batch <= c->ngroups);
	SDR_ASSERT(c->batch < c->batch_end || c->batch == c->ngroups);
	SDR_ASSERT(msg->next <= rel_batch_end_pkt(msg));
	SDR_ASSERT((tx->parity == msg) ==
		   (c->batch < c->ngroups && msg->next == rel_batch_end_pkt(msg)));
	for (uint32_t g = 0; g < c->ngroups; g++)
		SDR_ASSERT((c->group[g].last_ns != 0) == (g < c->batch));
	for (uint32_t b = 0; b < l->nblocks; b++) {
		const struct rel_block *block = &c->block[b];
		uint64_t last = (uint64_t)c->coding.m + block->fresh + block->left;
		SDR_ASSERT(!block->left || c->group[b / l->depth].last_ns);
		SDR_ASSERT(last + c->coding.k <= 255);
		if (block->fresh || block->left)
			SDR_ASSERT((last - 1) * l->nblocks + b < c->coding.parity_room);
		t->left += block->left > 0;
	}
}

static void check_repairs(const struct rel_tx *tx, uint64_t left)
{
	uint64_t found = 0;
	for (uint64_t pos = tx->repairs.head; pos < tx->repairs.tail; pos++) {
		const struct rel_refill *item = rel_ring_at(&tx->repairs, pos);
		const struct rel_msg *msg = rel_msg_find(tx, item->message);
		if (!msg)
			continue;
		SDR_ASSERT(rel_has_code(msg) && item->block < msg->coded->layout.nblocks);
		SDR_ASSERT(msg->coded->block[item->block].left > 0);
		for (uint64_t other = tx->repairs.head; other < pos; other++) {
			const struct rel_refill *o = rel_ring_at(&tx->repairs, other);
			SDR_ASSERT(o->message != item->message || o->block != item->block);
		}
		found++;
	}
	SDR_ASSERT(found == left);
}

static void check_copies(const struct rel_tx *tx)
{
	for (uint64_t pos = tx->copies.head; pos < tx->copies.tail; pos++) {
		const struct rel_copy *item = rel_ring_at(&tx->copies, pos);
		const struct rel_msg *msg = rel_msg_find(tx, item->message);
		SDR_ASSERT(!msg || (msg->coded && item->left > 0 &&
				    item->left < msg->coded->coding.copies));
	}
}

static void check_msg(const struct rel_tx *tx, struct rel_msg *msg, struct tally *t)
{
	uint64_t acked = 0, covered = t->covered;
	SDR_ASSERT(msg->next <= msg->high && msg->high <= msg->npkts);
	for (uint32_t p = 0; p < msg->npages; p++) {
		struct rel_page *page = msg->page[p];
		if (!page)
			continue;
		uint32_t size =
			(uint32_t)u64_min(REL_PAGE_PKTS, msg->npkts - (uint64_t)p * REL_PAGE_PKTS);
		if (page == &rel_page_full) {
			acked += size;
			continue;
		}
		uint32_t in_page = 0;
		for (uint32_t i = 0; i < REL_PAGE_UNITS; i++) {
			struct rel_word w = {msg, page, p * REL_PAGE_UNITS + i, i};
			tally_word(tx, &w, t);
			in_page += (uint32_t)__builtin_popcountll(page->acked[i]);
		}
		SDR_ASSERT(in_page == page->nacked && in_page < size);
		acked += in_page;
	}
	SDR_ASSERT(acked == msg->nacked);
	SDR_ASSERT(t->covered - covered == (msg->coded ? msg->coded->covered : 0));
	if (msg->coded)
		check_coded(tx, msg, t);
}

static void check_channel(const struct rel_tx *tx, const struct rel_channel *ch,
			  const struct tally *t)
{
	uint64_t extra = 0, live = 0, psn = 0, time = 0;
	const struct rel_train *before = NULL;
	for (uint64_t pos = ch->log.head; pos < ch->log.tail; pos++) {
		const struct rel_train *train = rel_train_at(ch, pos);
		struct rel_word w;
		SDR_ASSERT(train->psn >= psn && train->sent_ns >= time);
		psn = train->psn + train->n;
		time = train->sent_ns;
		extra += train->extra;
		if (before && before->top)
			SDR_ASSERT(!seq32_before(train->top_message, before->top_message) &&
				   (train->top_message != before->top_message ||
				    train->top >= before->top));
		if (!train->resend && !train->untracked)
			SDR_ASSERT(train->top_message == train->message &&
				   train->top == train->first + train->n);
		before = train;
		SDR_ASSERT(!ch->newest_valid ||
			   (pos < ch->newest_pos) == (train->psn <= ch->newest_psn));
		live += (uint64_t)__builtin_popcountll(rel_train_live(tx, ch, train, &w));
	}
	SDR_ASSERT(extra == ch->extra);
	SDR_ASSERT(ch->inflight == t->inflight[ch - tx->ch]);
	SDR_ASSERT(live == ch->inflight);
	SDR_ASSERT(ch->newest_pos >= ch->log.head && ch->newest_pos <= ch->log.tail);
	rel_rtt_check(&ch->rtt);
	(void)t;
}

static void check_lost_queue(const struct rel_tx *tx)
{
	/* Each lost bit is in the queue: clear them one by one and see that none is left. */
	uint64_t found = 0;
	for (uint64_t pos = tx->lost.head; pos < tx->lost.tail; pos++) {
		const struct rel_lost *item = rel_ring_at(&tx->lost, pos);
		struct rel_msg *msg = rel_msg_find(tx, item->message);
		struct rel_word w;
		if (!msg || !rel_word_get(msg, item->unit, &w))
			continue;
		uint64_t bits = item->mask & w.page->lost[w.at] & ~w.page->covered[w.at];
		for (uint64_t other = tx->lost.head; other < pos; other++) {
			const struct rel_lost *o = rel_ring_at(&tx->lost, other);
			if (o->message == item->message && o->unit == item->unit)
				bits &= ~o->mask;
		}
		found += (uint64_t)__builtin_popcountll(bits);
	}
	SDR_ASSERT(found == tx->lost_now);
}

void rel_tx_check(const struct rel_tx *tx)
{
	struct tally t = {0};
	uint32_t n = 0;
	const struct rel_msg *before = NULL;
	for (struct rel_msg *msg = tx->oldest; msg; msg = msg->after) {
		SDR_ASSERT(msg->before == before);
		SDR_ASSERT(!before || seq32_before(before->message, msg->message));
		SDR_ASSERT(rel_msg_find(tx, msg->message) == msg);
		check_msg(tx, msg, &t);
		before = msg;
		n++;
	}
	SDR_ASSERT(n == tx->nopen && tx->newest == before);
	SDR_ASSERT(t.exc == tx->nexc && t.lost == tx->lost_now);
	for (uint32_t i = 0; i < tx->params.channels; i++)
		check_channel(tx, &tx->ch[i], &t);
	check_lost_queue(tx);
	SDR_ASSERT(t.covered == tx->covered_now);
	SDR_ASSERT(!tx->parity || rel_msg_find(tx, tx->parity->message) == tx->parity);
	check_repairs(tx, t.left);
	check_copies(tx);
	rel_rtt_check(&tx->rtt);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The sender's invariants, recomputed from scratch; see struct rel_tx in tx.h. */
#include "rel/tx_priv.h"

struct tally {
	uint64_t inflight[REL_MAX_CHANNELS];
	uint64_t exc, lost;
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
	t->lost += (uint64_t)__builtin_popcountll(page->lost[w->at]);
	for (; out; out &= out - 1)
		t->inflight[rel_last_of(tx, w, (unsigned int)__builtin_ctzll(out)).channel]++;
	for (uint64_t e = page->exc[w->at]; e; e &= e - 1)
		SDR_ASSERT(rel_exc_find(tx, w->msg->message,
					w->unit * REL_UNIT + (uint32_t)__builtin_ctzll(e)));
	(void)high;
}

static void check_msg(const struct rel_tx *tx, struct rel_msg *msg, struct tally *t)
{
	uint64_t acked = 0;
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
		uint64_t bits = item->mask & w.page->lost[w.at];
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
	rel_rtt_check(&tx->rtt);
}

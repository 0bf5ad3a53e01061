/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of late resends. A resend that is lost, too, costs a round trip, and where little is
 * left to send there is nothing to fill it with: so it goes out several times, a gap apart. The
 * last copy is the packet's last transmission: it counts as lost when that one is.
 *
 * The queue is in order of sending, so a copy may wait for one of a message with a longer gap.
 */
#include "rel/tx_priv.h"

/* Less than a round trip's packets of its message are unsent. */
static bool is_late(const struct rel_tx *tx, const struct rel_msg *msg)
{
	return !tx->bdp_pkts || msg->npkts - msg->next < tx->bdp_pkts;
}

int rel_copy_reserve(struct rel_tx *tx, const struct rel_msg *msg)
{
	return msg->coded->coding.copies > 1 ? rel_ring_reserve(tx, &tx->copies, 1) : 0;
}

bool rel_next_copy(struct rel_tx *tx, struct rel_range *out)
{
	for (; tx->copies.head != tx->copies.tail; tx->copies.head++) {
		struct rel_copy *item = rel_ring_at(&tx->copies, tx->copies.head);
		struct rel_msg *msg = rel_msg_find(tx, item->message);
		struct rel_word w;
		if (!msg || !rel_word_get(msg, item->unit, &w))
			continue;
		item->mask &= rel_outstanding(&w);
		if (!item->mask)
			continue;
		if (item->due_ns > tx->now_ns)
			return false;
		unsigned int first = (unsigned int)__builtin_ctzll(item->mask);
		uint64_t run = ~(item->mask >> first);
		*out = (struct rel_range){
			.message = item->message,
			.first = item->unit * REL_UNIT + first,
			.count = run ? (uint32_t)__builtin_ctzll(run) : REL_UNIT,
			.resend = true,
		};
		return true;
	}
	return false;
}

void rel_copy_sent(struct rel_tx *tx, const struct rel_word *w, const struct rel_range *sent,
		   uint32_t channel, uint64_t now_ns)
{
	const struct rel_coding *coding = &w->msg->coded->coding;
	uint64_t bits = bits_range(sent->first % REL_UNIT, sent->count);
	uint32_t left = coding->copies - 1;
	if (sent->probe || coding->copies < 2)
		return;
	if (!(bits & w->page->lost[w->at])) {
		struct rel_copy *item = rel_ring_at(&tx->copies, tx->copies.head);
		SDR_ASSERT(tx->copies.head != tx->copies.tail && item->message == sent->message &&
			   item->unit == w->unit);
		item->mask &= ~bits;
		left = item->left - 1;
		tx->stats.copies_pkts += sent->count;
		tx->ch[channel].copied_pkts += sent->count;
	} else if (!is_late(tx, w->msg)) {
		return;
	}
	if (!left)
		return;
	struct rel_copy *more = rel_ring_push(&tx->copies);
	*more = (struct rel_copy){sent->message, w->unit, bits, now_ns + coding->gap_ns, left};
}

/* The queues' heads; UINT64_MAX: empty. */
static uint64_t copy_ns(const struct rel_tx *tx)
{
	if (tx->copies.head == tx->copies.tail)
		return UINT64_MAX;
	return ((struct rel_copy *)rel_ring_at(&tx->copies, tx->copies.head))->due_ns;
}

static uint64_t repair_ns(const struct rel_tx *tx)
{
	if (tx->repairs.head == tx->repairs.tail)
		return UINT64_MAX;
	return ((struct rel_refill *)rel_ring_at(&tx->repairs, tx->repairs.head))->due_ns;
}

uint64_t rel_wait_ns(const struct rel_tx *tx)
{
	uint64_t copy = copy_ns(tx), unit = repair_ns(tx);
	return u64_min(copy > tx->now_ns ? copy : UINT64_MAX,
		       unit > tx->now_ns ? unit : UINT64_MAX);
}

bool rel_waited(const struct rel_tx *tx)
{
	return u64_min(copy_ns(tx), repair_ns(tx)) <= tx->now_ns;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of the packets that a code was to make good: covered, repaired, given up.
 *
 *	outstanding -> covered   declared lost, within the coded span
 *	covered -> acked         it was decoded, or arrived after all
 *	covered -> lost          its block failed, and has no fresh parity; or nothing was heard
 *				 for an RTO and a round trip after the message's last symbol
 *
 * A block failed if the receiver lacks symbols of it when all that were sent have arrived or are
 * lost: the deficit that an ACK names is then what must be sent, plus a margin. Until that has
 * been sent and is proven too, its deficits are old news.
 *
 * The silence counts by message, from its last symbol: deficits and decoded packets are signs of
 * its code's life, acknowledged packets are not. What is given up makes the message *alone*: its
 * losses are resent like anybody's until a deficit of it comes.
 */
#include "rel/tx_priv.h"

/* ---- covered packets ---- */

/* What nothing was heard of for so long, not even the timers' losses, will not be heard of. */
static uint64_t silence_ns(const struct rel_tx *tx)
{
	uint64_t most = 0;
	for (uint32_t i = 0; i < tx->params.channels; i++) {
		const struct rel_channel *ch = &tx->ch[i];
		if (ch->rtt.smoothed_ns)
			most = u64_max(most, rel_channel_rto_ns(tx, ch) + ch->rtt.smoothed_ns +
						     rel_reorder_window_ns(tx, ch));
	}
	return most ? most : rel_tx_rto_ns(tx);
}

static uint64_t due_ns(const struct rel_tx *tx, const struct rel_coded *coded)
{
	uint64_t start = u64_max(coded->heard_ns, tx->timer_floor_ns);
	return u64_max(start + silence_ns(tx), tx->timer_hold_ns);
}

void rel_cover(struct rel_tx *tx, const struct rel_word *w, uint64_t bits)
{
	uint64_t n = (uint64_t)__builtin_popcountll(bits);
	uint64_t due = due_ns(tx, w->msg->coded);
	tx->fallback_ns = tx->covered_now ? u64_min(tx->fallback_ns, due) : due;
	w->page->covered[w->at] |= bits;
	w->msg->coded->covered += n;
	tx->covered_now += n;
	tx->stats.covered_pkts += n;
}

void rel_uncover(struct rel_tx *tx, const struct rel_word *w, uint64_t bits)
{
	uint64_t n = (uint64_t)__builtin_popcountll(bits);
	w->page->covered[w->at] &= ~bits;
	w->msg->coded->covered -= n;
	tx->covered_now -= n;
}

void rel_recovered(struct rel_tx *tx, const struct rel_word *w, uint64_t bits, uint64_t now_ns)
{
	uint64_t covered = w->page->covered[w->at] & bits;
	tx->lost_now -= (uint64_t)__builtin_popcountll(bits & ~covered);
	if (!covered)
		return;
	rel_uncover(tx, w, covered);
	tx->stats.recovered_pkts += (uint64_t)__builtin_popcountll(covered);
	w->msg->coded->heard_ns = u64_max(w->msg->coded->heard_ns, now_ns);
}

/* Covered packets are to be sent again after all. False: no memory. */
static bool queue_again(struct rel_tx *tx, const struct rel_word *w, uint64_t bits)
{
	if (rel_ring_reserve(tx, &tx->lost, 1) < 0)
		return false;
	struct rel_lost *item = rel_ring_push(&tx->lost);
	*item = (struct rel_lost){w->msg->message, w->unit, bits};
	uint64_t n = (uint64_t)__builtin_popcountll(bits);
	rel_uncover(tx, w, bits);
	tx->lost_now += n;
	tx->stats.uncovered_pkts += n;
	return true;
}

/* The next unit of the message, from one on, that has covered packets. */
static bool next_covered(struct rel_msg *msg, uint32_t *unit, struct rel_word *w)
{
	uint32_t units = msg->npages * REL_PAGE_UNITS;
	for (; *unit < units; ++*unit) {
		if (!rel_word_get(msg, *unit, w) || w->page == &rel_page_full)
			*unit |= REL_PAGE_UNITS - 1; /* the rest of the page too */
		else if (w->page->covered[w->at])
			return true;
	}
	return false;
}

bool rel_any_covered(const struct rel_tx *tx, struct rel_range *out)
{
	for (struct rel_msg *msg = tx->oldest; msg && tx->covered_now; msg = msg->after) {
		uint32_t unit = msg->coded ? msg->coded->coding.span_start / REL_UNIT : 0;
		struct rel_word w;
		if (!msg->coded || !msg->coded->covered || !next_covered(msg, &unit, &w))
			continue;
		out->message = msg->message;
		out->first = unit * REL_UNIT + (uint32_t)__builtin_ctzll(w.page->covered[w.at]);
		return true;
	}
	return false;
}

uint64_t rel_fallback_ns(const struct rel_tx *tx)
{
	return tx->covered_now ? tx->fallback_ns : UINT64_MAX;
}

/* False: no memory. */
static bool give_up(struct rel_tx *tx, struct rel_msg *msg)
{
	uint32_t unit = msg->coded->coding.span_start / REL_UNIT;
	struct rel_word w;
	msg->coded->alone = true;
	for (; next_covered(msg, &unit, &w); unit++) {
		if (!queue_again(tx, &w, w.page->covered[w.at]))
			return false;
	}
	return true;
}

void rel_fallback(struct rel_tx *tx, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;
	if (!tx->covered_now || now_ns < tx->fallback_ns)
		return;
	for (struct rel_msg *msg = tx->oldest; msg; msg = msg->after) {
		if (!msg->coded || !msg->coded->covered)
			continue;
		uint64_t due = due_ns(tx, msg->coded);
		if (due > now_ns)
			next_ns = u64_min(next_ns, due);
		else if (!give_up(tx, msg))
			next_ns = u64_min(next_ns, now_ns + tx->rtt.smoothed_ns + 1);
	}
	tx->fallback_ns = next_ns;
}

/* ---- failed blocks ---- */

static uint32_t margin(const struct rel_coding *coding, uint32_t deficit)
{
	uint32_t at = deficit > 1 ? 32 - (uint32_t)__builtin_clz(deficit - 1) : 0;
	return coding->margin[at < REL_MARGINS ? at : REL_MARGINS - 1];
}

/* How much parity the block may yet get. */
static uint32_t fresh_left(const struct rel_coded *coded, uint32_t block)
{
	const struct rel_coding *coding = &coded->coding;
	uint32_t next = coding->m + coded->block[block].fresh, most = 255 - coding->k;
	if (!coding->fresh || coding->code != REL_CODE_RS || block >= coding->parity_room)
		return 0;
	uint64_t room = (uint64_t)(coding->parity_room - 1 - block) / coded->layout.nblocks + 1;
	return (uint32_t)u64_sub_floor(u64_min(room, most), next);
}

/* At most so many of the block's covered packets are queued: how many. */
static uint32_t uncover_block(struct rel_tx *tx, struct rel_msg *msg, uint32_t block, uint32_t most)
{
	const struct rel_coded *coded = msg->coded;
	uint32_t n = 0, count = code_layout_block_count(&coded->layout, block);
	for (uint32_t i = 0; i < count && n < most; i++) {
		uint32_t pkt =
			coded->coding.span_start + code_layout_packet(&coded->layout, block, i);
		struct rel_word w;
		if (!rel_word_get(msg, pkt / REL_UNIT, &w))
			continue;
		uint64_t bit = w.page->covered[w.at] & UINT64_C(1) << pkt % REL_UNIT;
		if (bit)
			n += queue_again(tx, &w, bit);
	}
	return n;
}

static void repair(struct rel_tx *tx, struct rel_msg *msg, uint32_t block, uint32_t deficit,
		   uint64_t now_ns)
{
	struct rel_coded *coded = msg->coded;
	struct rel_block *b = &coded->block[block];
	uint32_t units = deficit + margin(&coded->coding, deficit), missing = 0;
	uint32_t fresh = (uint32_t)u64_min(units, fresh_left(coded, block));
	if (fresh && rel_ring_reserve(tx, &tx->repairs, 1) < 0)
		return;
	if (fresh) {
		struct rel_refill *item = rel_ring_push(&tx->repairs);
		*item = (struct rel_refill){msg->message, block, now_ns};
		b->left = (uint8_t)fresh;
	}
	/* Which of its packets a block of sums needs, we don't know. */
	if (fresh < deficit)
		missing = uncover_block(tx, msg, block,
					coded->coding.code == REL_CODE_RS ? units - fresh
									  : UINT32_MAX);
	if (!fresh && !missing)
		return;
	tx->stats.failed_blocks++;
	b->last_ns = u64_max(b->last_ns, now_ns);
	coded->heard_ns = u64_max(coded->heard_ns, now_ns);
}

/* All that was sent of the block has arrived or is lost, and nothing of it waits. */
static bool settled(const struct rel_coded *coded, uint32_t block, uint64_t horizon_ns)
{
	const struct rel_block *b = &coded->block[block];
	uint64_t last_ns = coded->group[block / coded->layout.depth].last_ns;
	return last_ns && !b->left && u64_max(last_ns, b->last_ns) <= horizon_ns;
}

void rel_read_deficits(struct rel_tx *tx, struct wire_ack *ack, const struct rel_view *view)
{
	struct wire_ack_deficit d;
	uint64_t horizon_ns = 0;
	bool known = false;
	/* More may have come since, and have been told. */
	if (view->stale)
		return;
	while (wire_ack_next_deficit(ack, &d) > 0) {
		struct rel_msg *msg = rel_msg_find(tx, d.message);
		if (!msg || msg->nacked == msg->npkts)
			continue;
		if (!rel_has_code(msg) || d.block >= msg->coded->layout.nblocks) {
			tx->stats.lies++;
			continue;
		}
		if (!known)
			horizon_ns = rel_horizon_ns(tx);
		known = true;
		msg->coded->alone = false;
		uint32_t most = code_layout_block_count(&msg->coded->layout, d.block);
		if (settled(msg->coded, d.block, horizon_ns))
			repair(tx, msg, d.block, (uint32_t)u64_min(d.deficit, most), view->now_ns);
	}
}

/* ---- repair units ---- */

static struct rel_msg *repair_msg(const struct rel_tx *tx, const struct rel_refill *item)
{
	struct rel_msg *msg = rel_msg_find(tx, item->message);
	return msg && rel_has_code(msg) ? msg : NULL;
}

static uint64_t unit_pkt(const struct rel_coded *coded, uint32_t block)
{
	return code_layout_parity_packet(&coded->layout, block,
					 coded->coding.m + coded->block[block].fresh);
}

/* Units that are due, as long as they are neighbours. */
static uint32_t unit_run(const struct rel_tx *tx, const struct rel_coded *coded, uint32_t message,
			 uint64_t first)
{
	uint32_t count = 1;
	for (uint64_t pos = tx->repairs.head + 1; pos < tx->repairs.tail; pos++, count++) {
		const struct rel_refill *item = rel_ring_at(&tx->repairs, pos);
		if (item->message != message || item->due_ns > tx->now_ns ||
		    (first + count) % REL_UNIT == 0 ||
		    unit_pkt(coded, item->block) != first + count)
			break;
	}
	return count;
}

bool rel_next_repair(struct rel_tx *tx, struct rel_range *out)
{
	for (; tx->repairs.head != tx->repairs.tail; tx->repairs.head++) {
		const struct rel_refill *item = rel_ring_at(&tx->repairs, tx->repairs.head);
		const struct rel_msg *msg = repair_msg(tx, item);
		if (!msg)
			continue;
		if (item->due_ns > tx->now_ns)
			return false;
		uint64_t first = unit_pkt(msg->coded, item->block);
		*out = (struct rel_range){.message = item->message,
					  .first = (uint32_t)first,
					  .count = unit_run(tx, msg->coded, item->message, first),
					  .parity = true};
		return true;
	}
	return false;
}

void rel_repair_sent(struct rel_tx *tx, struct rel_msg *msg, uint32_t count, uint64_t sent_ns,
		     uint64_t now_ns)
{
	struct rel_coded *coded = msg->coded;
	tx->stats.repair_pkts += count;
	while (count-- > 0) {
		struct rel_refill item =
			*(struct rel_refill *)rel_ring_at(&tx->repairs, tx->repairs.head++);
		struct rel_block *b = &coded->block[item.block];
		SDR_ASSERT(item.message == msg->message && b->left > 0);
		b->last_ns = u64_max(b->last_ns, sent_ns);
		b->fresh++;
		if (--b->left == 0)
			continue;
		item.due_ns = now_ns + coded->coding.gap_ns;
		*(struct rel_refill *)rel_ring_push(&tx->repairs) = item;
	}
}

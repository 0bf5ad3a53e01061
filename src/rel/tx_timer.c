/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time passing at the sender: retransmission timers by the send logs' heads, the stalled
 * state with its probes, the tail probe. See tx.h.
 *
 *	state     event                                     next      action
 *	running   in flight, no ACK for an RTO              stalled   probe the oldest
 *	stalled   probe gap passed                          stalled   probe, gap x 2 to 1 s
 *	stalled   the peer answers by other means           stalled   probe now, gap from an RTO on
 *	stalled   an ACK (tx_ack.c)                         running   hold timers RTT / 2
 *	stalled   nothing outstanding                       running   -
 *	running   all sent, quiet for a probe timeout       running   probe the newest, once
 *	running   a train's RTO passed                      running   declare it lost
 *	running   covered packets, and nothing heard        running   they are lost ones
 *	any       called an RTT late                        running   restart the timers
 */
#include "rel/tx_priv.h"

#include <string.h>

#define LATE_MIN_NS (10 * UINT64_C(1000000)) /* less is the host's scheduling */

uint64_t rel_train_live(const struct rel_tx *tx, const struct rel_channel *ch,
			const struct rel_train *train, struct rel_word *w)
{
	struct rel_msg *msg = rel_msg_find(tx, train->message);
	if (train->untracked || !msg || !rel_word_get(msg, train->first / REL_UNIT, w))
		return 0;
	uint64_t bits = bits_range(train->first % REL_UNIT, train->n) & rel_outstanding(w);
	uint64_t live = 0;
	uint32_t channel = (uint32_t)(ch - tx->ch);
	uint64_t exc = w->page->exc[w->at] & bits;
	const struct rel_unit *u = &w->page->unit[w->at];
	if (u->sent_ns == train->sent_ns && u->channel == channel)
		live = bits & ~exc;
	for (; exc; exc &= exc - 1) {
		unsigned int bit = (unsigned int)__builtin_ctzll(exc);
		struct rel_last last = rel_last_of(tx, w, bit);
		if (last.sent_ns == train->sent_ns && last.channel == channel)
			live |= UINT64_C(1) << bit;
	}
	return live;
}

void rel_train_pop(struct rel_channel *ch)
{
	ch->extra -= rel_train_at(ch, ch->log.head)->extra;
	ch->log.head++;
	ch->newest_pos = u64_max(ch->newest_pos, ch->log.head);
	ch->expired_pos = u64_max(ch->expired_pos, ch->log.head);
}

void rel_log_trim(struct rel_tx *tx, struct rel_channel *ch)
{
	struct rel_word w;
	while (ch->log.head < ch->newest_pos) {
		const struct rel_train *train = rel_train_at(ch, ch->log.head);
		/* Its last packets may yet give a round-trip sample. */
		if (train->psn + train->n > ch->newest_psn + 1 || rel_train_live(tx, ch, train, &w))
			return;
		/* The horizon must not pass parity that may still be under way. */
		if (train->parity && train->sent_ns > ch->proven_ns)
			return;
		rel_train_pop(ch);
	}
}

uint64_t rel_channel_rto_ns(const struct rel_tx *tx, const struct rel_channel *ch)
{
	uint64_t rto = rel_rtt_rto_ns(&ch->rtt, &tx->params.scheme) << ch->backoff;
	return u64_min(rto, REL_RTO_MAX_NS) + tx->params.max_ack_ns;
}

/* The slowest of the channels that are in use. */
uint64_t rel_tx_rto_ns(const struct rel_tx *tx)
{
	uint64_t rto = 0;
	for (uint32_t i = 0; i < tx->params.channels; i++) {
		if (tx->ch[i].inflight + tx->ch[i].extra)
			rto = u64_max(rto, rel_channel_rto_ns(tx, &tx->ch[i]));
	}
	return rto ? rto : rel_rtt_rto_ns(&tx->rtt, &tx->params.scheme) + tx->params.max_ack_ns;
}

/*
 * When the oldest train whose timer runs counts as lost; UINT64_MAX: there is none, or not
 * before an ACK.
 */
static uint64_t expiry_ns(const struct rel_tx *tx, const struct rel_channel *ch)
{
	if (ch->expired_pos == ch->log.tail)
		return UINT64_MAX;
	const struct rel_train *train = rel_train_at(ch, ch->expired_pos);
	uint64_t start = u64_max(train->sent_ns, tx->timer_floor_ns);
	uint64_t wait = rel_channel_rto_ns(tx, ch);
	/* Silence says nothing about a packet: an ACK must have come that could name it. */
	if (tx->last_ack_ns < train->sent_ns + ch->rtt.smoothed_ns)
		return UINT64_MAX;
	/* Where holes prove loss, the timer only backs that up. */
	if (tx->params.scheme.nack)
		wait += ch->rtt.smoothed_ns + rel_reorder_window_ns(tx, ch);
	return u64_max(start + wait, tx->timer_hold_ns);
}

static uint64_t stall_ns(const struct rel_tx *tx)
{
	if (rel_tx_inflight_all(tx) == 0)
		return UINT64_MAX;
	uint64_t start = u64_max(tx->last_ack_ns, tx->busy_since_ns);
	return u64_max(start, tx->timer_floor_ns) + rel_tx_rto_ns(tx);
}

/* When an unanswered tail is probed; UINT64_MAX: not now. */
static uint64_t tail_ns(const struct rel_tx *tx)
{
	if (!tx->params.scheme.nack || tx->tail_probed || rel_tx_pending(tx))
		return UINT64_MAX;
	uint64_t wait = 0;
	for (uint32_t i = 0; i < tx->params.channels; i++) {
		const struct rel_channel *ch = &tx->ch[i];
		const struct rel_rtt *rtt = rel_channel_rtt(tx, ch);
		if ((!ch->inflight && !tx->covered_now) || !rtt->smoothed_ns)
			continue;
		uint64_t slack = u64_max(4 * rtt->variance_ns, rel_reorder_window_ns(tx, ch));
		uint64_t ack = u64_max(rel_rtt_ack_allowance_ns(rtt), tx->params.max_ack_ns);
		wait = u64_max(wait, rtt->smoothed_ns + slack + ack);
	}
	return wait ? u64_max(tx->last_sent_ns, tx->timer_floor_ns) + wait : UINT64_MAX;
}

/* When a timer runs out. */
static uint64_t timers_ns(const struct rel_tx *tx)
{
	if (rel_tx_inflight_all(tx) == 0 && !tx->covered_now)
		return UINT64_MAX;
	if (tx->stalled)
		return tx->next_probe_ns;
	uint64_t first = u64_min(stall_ns(tx), u64_min(tail_ns(tx), rel_fallback_ns(tx)));
	for (uint32_t i = 0; i < tx->params.channels; i++)
		first = u64_min(first, expiry_ns(tx, &tx->ch[i]));
	return first;
}

uint64_t rel_tx_deadline(const struct rel_tx *tx)
{
	return tx->stalled ? timers_ns(tx) : u64_min(timers_ns(tx), rel_wait_ns(tx));
}

bool rel_tx_stalled(const struct rel_tx *tx)
{
	return tx->stalled;
}

void rel_tx_answered(struct rel_tx *tx, uint64_t answers, uint64_t now_ns)
{
	if (answers == tx->answers)
		return;
	tx->answers = answers;
	if (!tx->stalled)
		return;
	tx->probe_gap_ns = rel_tx_rto_ns(tx);
	tx->next_probe_ns = u64_min(tx->next_probe_ns, now_ns);
}

/* The outstanding packet that was sent longest ago; *due_ns: when its RTO is over. */
static bool oldest_outstanding(const struct rel_tx *tx, struct rel_range *out, uint64_t *due_ns)
{
	uint64_t best = UINT64_MAX;
	for (uint32_t i = 0; i < tx->params.channels; i++) {
		const struct rel_channel *ch = &tx->ch[i];
		for (uint64_t pos = ch->log.head; pos < ch->log.tail; pos++) {
			const struct rel_train *train = rel_train_at(ch, pos);
			struct rel_word w;
			uint64_t live = rel_train_live(tx, ch, train, &w);
			if (!live)
				continue;
			if (train->sent_ns < best) {
				best = train->sent_ns;
				*due_ns = best + rel_channel_rto_ns(tx, ch);
				out->message = train->message;
				out->first = w.unit * REL_UNIT + (uint32_t)__builtin_ctzll(live);
			}
			break;
		}
	}
	return best != UINT64_MAX;
}

/* The outstanding packet that is last in order. */
static bool last_outstanding(struct rel_tx *tx, struct rel_range *out)
{
	for (struct rel_msg *msg = tx->newest; msg; msg = msg->before) {
		if (msg->next == 0 || msg->nacked == msg->npkts)
			continue;
		for (uint32_t unit = (msg->next - 1) / REL_UNIT + 1; unit-- > 0;) {
			struct rel_word w;
			if (!rel_word_get(msg, unit, &w) || w.page == &rel_page_full) {
				unit &= ~(REL_PAGE_UNITS - 1); /* to the page's first */
				continue;
			}
			uint64_t live = rel_outstanding(&w);
			if (!live)
				continue;
			out->message = msg->message;
			out->first = unit * REL_UNIT + 63 - (uint32_t)__builtin_clzll(live);
			return true;
		}
	}
	return false;
}

static int give_probe(struct rel_tx *tx, struct rel_range *probe)
{
	probe->count = 1;
	probe->resend = true;
	probe->probe = true;
	return rel_reserve(tx, rel_msg_find(tx, probe->message), probe->first) == 0;
}

static int stalled_probe(struct rel_tx *tx, uint64_t now_ns, struct rel_range *probe)
{
	uint64_t rto = rel_tx_rto_ns(tx), due_ns = 0;
	if (!tx->stalled) {
		tx->stalled = true;
		tx->stats.stalls++;
		tx->probe_gap_ns = rto;
		tx->next_probe_ns = now_ns;
	}
	if (now_ns < tx->next_probe_ns)
		return 0;
	if (!oldest_outstanding(tx, probe, &due_ns) && !rel_any_covered(tx, probe)) {
		/* Only what nobody waits for is in flight: nothing to probe with. */
		rel_drop_extra(tx);
		tx->stalled = false;
		return 0;
	}
	if (now_ns < due_ns) { /* it was resent only just now */
		tx->next_probe_ns = due_ns;
		return 0;
	}
	tx->next_probe_ns = now_ns + tx->probe_gap_ns;
	tx->probe_gap_ns = u64_min(2 * tx->probe_gap_ns, u64_max(rto, REL_PROBE_MAX_NS));
	return give_probe(tx, probe);
}

/*
 * Trains whose time is over. They stay in the log: a queue that grew faster than the RTO
 * delivers them yet, and only then is its true round trip known.
 */
static void expire(struct rel_tx *tx, struct rel_channel *ch, uint64_t now_ns,
		   struct rel_ack_result *out, struct rel_range *hole)
{
	uint32_t channel = (uint32_t)(ch - tx->ch);
	while (expiry_ns(tx, ch) <= now_ns) {
		struct rel_train *train = rel_train_at(ch, ch->expired_pos);
		struct rel_word w;
		uint64_t live = rel_train_live(tx, ch, train, &w);
		uint64_t n = (uint64_t)__builtin_popcountll(live);
		if (live && tx->params.scheme.repair == REL_REPAIR_GBN) {
			uint32_t first = w.unit * REL_UNIT + (uint32_t)__builtin_ctzll(live);
			if (!hole->count || seq32_before(train->message, hole->message) ||
			    (train->message == hole->message && first < hole->first))
				*hole = (struct rel_range){
					.message = train->message, .first = first, .count = 1};
			out->lost_pkts += n;
			out->ch[channel].lost_pkts += n;
			tx->stats.lost_pkts += n;
		} else if (live && rel_declare_lost(tx, &w, live, channel, out) < 0) {
			return;
		}
		tx->stats.timeout_pkts += n;
		ch->timed_out |= live != 0;
		ch->extra -= train->extra;
		train->extra = 0;
		ch->expired_pos++;
	}
	while (ch->log.head < ch->expired_pos &&
	       rel_train_at(ch, ch->log.head)->sent_ns + REL_RTO_MAX_NS < now_ns)
		rel_train_pop(ch);
}

static bool came_late(struct rel_tx *tx, uint64_t now_ns)
{
	uint64_t due = timers_ns(tx);
	uint64_t slack = u64_max(tx->rtt.smoothed_ns, LATE_MIN_NS);
	if (due == UINT64_MAX || now_ns < due || now_ns - due < slack || tx->late_restarted)
		return false;
	tx->late_restarted = true;
	tx->timer_floor_ns = now_ns;
	tx->stats.late_ticks++;
	return true;
}

int rel_tx_timer(struct rel_tx *tx, uint64_t now_ns, struct rel_range *probe,
		 struct rel_ack_result *lost)
{
	struct rel_ack_result unwanted;
	struct rel_ack_result *out = lost ? lost : &unwanted;
	struct rel_range hole = {0};
	tx->now_ns = u64_max(tx->now_ns, now_ns);
	memset(out, 0, sizeof(*out));
	*probe = (struct rel_range){0};
	if (rel_tx_inflight_all(tx) == 0 && !tx->covered_now) {
		tx->stalled = false;
		return 0;
	}
	if (came_late(tx, now_ns))
		return 0;
	if (tx->stalled || now_ns >= stall_ns(tx))
		return stalled_probe(tx, now_ns, probe);
	for (uint32_t i = 0; i < tx->params.channels; i++)
		expire(tx, &tx->ch[i], now_ns, out, &hole);
	if (hole.count)
		rel_rewind(tx, rel_msg_find(tx, hole.message), hole.first);
	rel_fallback(tx, now_ns);
	if (now_ns < tail_ns(tx) || (!last_outstanding(tx, probe) && !rel_any_covered(tx, probe)))
		return 0;
	tx->tail_probed = true;
	return give_probe(tx, probe);
}

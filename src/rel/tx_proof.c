/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What proves a loss, and what proves that nothing is under way any more. See tx.h: RACK by
 * channel, its newest delivered packet being the witness, and how long ago that arrived.
 *
 *	hole	sent before the witness, or after it by less than what the witness is older than
 *		the reorder window; the ACK shows that it is missing
 *	quiet	the same of what was sent after the witness, whatever the ACK shows: had it
 *		arrived, it would be the witness. A message's lost tail shows no holes
 *	horizon	what was sent up to there, on all channels, has arrived or is lost: what a
 *		receiver lacks then, it will not get unless it is sent
 *
 * Knows nothing of what is done about a loss.
 */
#include "rel/tx_priv.h"

/*
 * A packet sent before the newest one is late by the time between their sends, and by the
 * newest one's age on top: it was still missing so long after. One that was sent after it is
 * late by what is left of that age.
 */
void rel_make_proof(struct rel_tx *tx, struct rel_view *view)
{
	for (uint32_t i = 0; i < tx->params.channels; i++) {
		struct rel_channel *ch = &tx->ch[i];
		if (!tx->params.scheme.nack || !view->newest_sent_ns[i])
			continue;
		uint64_t min_rtt = u64_max(rel_rtt_min_ns(rel_channel_rtt(tx, ch)), 1);
		uint64_t by_time =
			u64_sub_floor(view->overdue_ns[i], rel_reorder_window_ns(tx, ch));
		uint64_t by_age = u64_sub_floor(view->now_ns, min_rtt);
		uint64_t before_ns = u64_min(by_time, by_age);
		view->lost_before_ns[i] = before_ns;
		ch->proven_ns = u64_max(ch->proven_ns, before_ns);
	}
}

/* A hole that was last sent on that channel at that time is lost. */
static bool proven(const struct rel_view *view, uint32_t channel, uint64_t sent_ns)
{
	return sent_ns <= view->lost_before_ns[channel];
}

/* Of bits last sent on one channel at one time, or bit by bit: those proven lost. */
void rel_judge_word(struct rel_tx *tx, struct rel_word *w, uint64_t bits, struct rel_view *view)
{
	bits &= rel_outstanding(w);
	uint64_t lost[REL_MAX_CHANNELS] = {0};
	uint64_t exc = w->page->exc[w->at] & bits;
	uint64_t plain = bits & ~exc;
	uint64_t any = 0;
	if (plain) {
		const struct rel_unit *u = &w->page->unit[w->at];
		if (proven(view, u->channel, u->sent_ns))
			any = lost[u->channel] = plain;
	}
	for (; exc; exc &= exc - 1) {
		unsigned int bit = (unsigned int)__builtin_ctzll(exc);
		struct rel_last last = rel_last_of(tx, w, bit);
		if (!proven(view, last.channel, last.sent_ns))
			continue;
		lost[last.channel] |= UINT64_C(1) << bit;
		any |= UINT64_C(1) << bit;
	}
	if (!any)
		return;
	if (tx->params.scheme.repair == REL_REPAIR_GBN) {
		uint32_t packet = w->unit * REL_UNIT + (uint32_t)__builtin_ctzll(any);
		for (uint32_t i = 0; i < tx->params.channels; i++) {
			uint64_t n = (uint64_t)__builtin_popcountll(lost[i]);
			view->out->ch[i].lost_pkts += n;
			view->out->lost_pkts += n;
			tx->stats.lost_pkts += n;
		}
		if (!view->hole_msg || seq32_before(w->msg->message, view->hole_msg->message) ||
		    (w->msg == view->hole_msg && packet < view->hole)) {
			view->hole_msg = w->msg;
			view->hole = packet;
		}
		return;
	}
	for (uint32_t i = 0; i < tx->params.channels; i++) {
		if (lost[i])
			rel_declare_lost(tx, w, lost[i], i, view->out);
	}
}

void rel_judge_quiet(struct rel_tx *tx, struct rel_view *view)
{
	for (uint32_t i = 0; i < tx->params.channels; i++) {
		struct rel_channel *ch = &tx->ch[i];
		uint64_t before_ns = view->lost_before_ns[i];
		/* Of an ACK whose witness is not our newest, only the holes are good. */
		if (!before_ns || view->newest_sent_ns[i] != ch->newest_sent_ns)
			continue;
		uint64_t rest = ch->newest_pos > ch->log.head ? ch->newest_pos - 1 : ch->log.head;
		uint64_t pos = u64_max(rest, ch->quiet_pos);
		for (; pos < ch->log.tail; pos++) {
			struct rel_train *train = rel_train_at(ch, pos);
			struct rel_word w;
			if (train->sent_ns > before_ns)
				break;
			uint64_t live = rel_train_live(tx, ch, train, &w);
			if (pos < ch->newest_pos && live)
				live &= ~rel_mask_below(
					w.unit,
					(uint32_t)(train->first + ch->newest_psn - train->psn + 1));
			ch->extra -= train->extra;
			train->extra = 0;
			if (live)
				rel_judge_word(tx, &w, live, view);
		}
		ch->quiet_pos = pos;
	}
}

uint64_t rel_horizon_ns(const struct rel_tx *tx)
{
	uint64_t horizon = UINT64_MAX;
	for (uint32_t i = 0; i < tx->params.channels; i++) {
		const struct rel_channel *ch = &tx->ch[i];
		uint64_t low = u64_max(ch->log.head, ch->expired_pos), high = ch->log.tail;
		while (low < high) {
			uint64_t mid = low + (high - low) / 2;
			if (rel_train_at(ch, mid)->sent_ns <= ch->proven_ns)
				low = mid + 1;
			else
				high = mid;
		}
		if (low < ch->log.tail)
			horizon = u64_min(horizon, rel_train_at(ch, low)->sent_ns - 1);
	}
	return horizon;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an ACK says to the sender. Channel facts first: they date the ACK; then windows:
 * received runs mark, holes are judged against those dates (tx_proof.c); then deficits
 * (tx_repair.c). See tx.h.
 */
#include "rel/tx_priv.h"

#include <errno.h>
#include <string.h>

/* The log position after the last train that starts at or before psn. */
static uint64_t log_after(const struct rel_channel *ch, uint64_t psn)
{
	uint64_t low = ch->log.head, high = ch->log.tail;
	while (low < high) {
		uint64_t mid = low + (high - low) / 2;
		if (rel_train_at(ch, mid)->psn <= psn)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The delivery rate since the train was sent, as in draft-cardwell-iccrg-bbr. */
static void rate_sample(struct rel_channel *ch, const struct rel_train *train,
			struct rel_channel_result *out)
{
	uint64_t send_ns = train->sent_ns - train->first_sent_ns;
	uint64_t ack_ns = u64_sub_floor(ch->delivered_ns, train->delivered_ns);
	ch->first_sent_ns = train->sent_ns;
	out->rate_pkts = ch->delivered - train->delivered;
	out->rate_interval_ns = u64_max(send_ns, ack_ns);
	out->prior_delivered_pkts = train->delivered;
	out->app_limited = train->app_limited;
}

static uint64_t arrival_ns(const struct wire_ack_channel *fact, const struct rel_view *view)
{
	return fact->age_ns == UINT32_MAX ? 0 : u64_sub_floor(view->now_ns, fact->age_ns);
}

/* The channel delivered a newer packet than ever before; once: surely this transmission. */
static void newest_advance(struct rel_tx *tx, struct rel_channel *ch, uint64_t psn,
			   uint64_t arrived_ns, bool once, uint64_t now_ns,
			   struct rel_channel_result *out)
{
	uint64_t pos = ch->newest_pos > ch->log.head ? ch->newest_pos : ch->log.head;
	const struct rel_train *train = NULL;
	for (; pos < ch->log.tail && rel_train_at(ch, pos)->psn <= psn; pos++) {
		struct rel_train *passed = rel_train_at(ch, pos);
		ch->extra -= passed->extra;
		passed->extra = 0;
		train = passed;
	}
	if (train)
		ch->passed_pkts = train->sent_pkts + u64_min(psn - train->psn + 1, train->n);
	ch->newest_valid = true;
	ch->newest_psn = psn;
	ch->newest_pos = pos;
	out->fresh = true;
	if (!train)
		return;
	ch->newest_sent_ns = train->sent_ns;
	ch->delivered_ns = u64_max(ch->delivered_ns, arrived_ns);
	if (!once)
		return;
	rate_sample(ch, train, out);
	if (psn >= train->psn + train->n || arrived_ns <= train->sent_ns)
		return;
	out->rtt_sample_ns = arrived_ns - train->sent_ns;
	rel_rtt_sample(&ch->rtt, out->rtt_sample_ns, now_ns);
	rel_rtt_sample(&tx->rtt, out->rtt_sample_ns, now_ns);
}

static uint64_t merge(uint64_t *known, uint64_t told)
{
	uint64_t more = u64_sub_floor(told, *known);
	*known += more;
	return more;
}

static void widen(struct rel_tx *tx, struct rel_channel *ch, uint64_t overtaken_ns, uint64_t now_ns)
{
	uint64_t smoothed = rel_channel_rtt(tx, ch)->smoothed_ns;
	uint64_t most = u64_max(smoothed, REL_REORDER_MIN_NS);
	ch->reorder_ns = u64_max(ch->reorder_ns, u64_min(overtaken_ns, most));
	ch->reorder_since_ns = now_ns;
}

static void narrow(struct rel_tx *tx, struct rel_channel *ch, uint64_t now_ns)
{
	uint64_t smoothed = rel_channel_rtt(tx, ch)->smoothed_ns;
	if (ch->reorder_ns && now_ns - ch->reorder_since_ns > 16 * smoothed) {
		ch->reorder_ns -= ch->reorder_ns / 8;
		ch->reorder_since_ns = now_ns;
		ch->doubt = 0;
		if (ch->reorder_ns <= u64_max(REL_REORDER_MIN_NS, smoothed / 16))
			ch->reorder_ns = 0;
	}
}

static void overtaken(const struct rel_tx *tx, struct rel_view *view, uint32_t channel,
		      uint64_t sent_ns)
{
	uint64_t by = u64_sub_floor(view->newest_sent_ns[channel], sent_ns);
	/* Nothing overtook it: the channel was quiet for longer than we thought that it can be. */
	if (!by && view->newest_sent_ns[channel])
		by = 2 * rel_reorder_window_ns(tx, &tx->ch[channel]);
	view->overtaken_ns[channel] = u64_max(view->overtaken_ns[channel], u64_max(by, 1));
	view->out->spurious_pkts++;
	view->out->ch[channel].spurious_pkts++;
}

/* Duplicates where resends are about: so many losses may have been declared wrongly. */
static void note_duplicates(const struct rel_tx *tx, struct rel_channel *ch, uint64_t duplicates,
			    struct rel_view *view)
{
	uint64_t copies = u64_min(duplicates, ch->copied_pkts);
	ch->copied_pkts -= copies;
	duplicates -= copies;
	uint64_t wrong = u64_min(duplicates, ch->doubt);
	view->duplicated[ch - tx->ch] = duplicates > 0;
	ch->doubt -= wrong;
	if (wrong)
		view->overtaken_ns[ch - tx->ch] = 2 * rel_reorder_window_ns(tx, ch);
}

/* When the packet of that PSN was sent; 0: we don't know. */
static uint64_t date_by_psn(struct rel_tx *tx, struct rel_channel *ch,
			    const struct wire_ack_channel *fact, struct rel_view *view)
{
	struct rel_channel_result *out = &view->out->ch[fact->id];
	uint64_t back = (ch->end_psn - 1 - fact->newest_psn) & 0xffffff;
	if (!ch->sent_any || back >= ch->end_psn - ch->start_psn) {
		tx->stats.lies++;
		return 0;
	}
	uint64_t psn = ch->end_psn - 1 - back;
	if (!ch->newest_valid || psn > ch->newest_psn)
		newest_advance(tx, ch, psn, arrival_ns(fact, view), true, view->now_ns, out);
	out->newest_sent_ns = ch->newest_sent_ns;
	uint64_t pos = log_after(ch, psn);
	const struct rel_train *train = pos > ch->log.head ? rel_train_at(ch, pos - 1) : NULL;
	if (psn == ch->newest_psn)
		return ch->newest_sent_ns;
	return train ? train->sent_ns : 0;
}

/*
 * The same where the packet is named by {message, index}; it is the one that arrived last.
 * current: no ACK that we had is newer than this one, so that the newest packet known had
 * been delivered by then too, before the one that arrived last.
 */
static uint64_t date_by_packet(struct rel_tx *tx, struct rel_channel *ch,
			       const struct wire_ack_channel *fact, bool current,
			       struct rel_view *view)
{
	struct rel_channel_result *out = &view->out->ch[fact->id];
	uint32_t message = fact->newest_message, packet = fact->newest_packet;
	uint64_t arrived_ns = arrival_ns(fact, view), sent_ns = 0;
	if (rel_name_is_lie(tx, message, packet)) {
		tx->stats.lies++;
		return 0;
	}
	const struct rel_train *train = rel_named_once(ch, message, packet);
	if (!train)
		train = rel_named_parity(tx, ch, message, packet);
	bool once = train != NULL;
	if (!once)
		train = rel_named_last(tx, ch, message, packet, arrived_ns);
	if (out->delivered_pkts) {
		out->fresh = true;
		ch->delivered_ns = u64_max(ch->delivered_ns, arrived_ns);
	}
	if (train) {
		uint64_t psn = train->psn + (packet - train->first);
		sent_ns = train->sent_ns;
		if (!ch->newest_valid || psn > ch->newest_psn)
			newest_advance(tx, ch, psn, arrived_ns, once, view->now_ns, out);
		view->none_after_ns[fact->id] =
			u64_max(sent_ns, ch->newest_sent_ns) + rel_reorder_window_ns(tx, ch);
	}
	out->newest_sent_ns = ch->newest_sent_ns;
	return current ? u64_max(sent_ns, ch->newest_sent_ns) : sent_ns;
}

static void channel_fact(struct rel_tx *tx, const struct wire_ack_channel *fact,
			 struct rel_view *view)
{
	struct rel_channel *ch = &tx->ch[fact->id];
	struct rel_channel_result *out = &view->out->ch[fact->id];
	if (fact->received > ch->sent_pkts) {
		tx->stats.lies++;
		return;
	}
	bool current = fact->received >= ch->received && fact->duplicates >= ch->duplicates;
	view->stale |= !current;
	uint64_t fresh = merge(&ch->received, fact->received);
	uint64_t duplicates = merge(&ch->duplicates, fact->duplicates);
	out->delivered_pkts += fresh + duplicates;
	out->ce_pkts += merge(&ch->ce, fact->ce);
	out->host_drops += merge(&ch->host_drops, fact->host_drops);
	ch->delivered += fresh + duplicates;
	out->total_delivered_pkts = ch->delivered;
	note_duplicates(tx, ch, duplicates, view);
	uint64_t sent_ns = 0;
	tx->named |= (fact->flags & WIRE_ACK_PACKET_VALID) != 0;
	if (fact->flags & WIRE_ACK_PSN_VALID)
		sent_ns = date_by_psn(tx, ch, fact, view);
	else if (fact->flags & WIRE_ACK_PACKET_VALID)
		sent_ns = date_by_packet(tx, ch, fact, current, view);
	if (sent_ns > view->newest_sent_ns[fact->id]) {
		view->newest_sent_ns[fact->id] = sent_ns;
		/* The clocks of two hosts drift apart. */
		view->overdue_ns[fact->id] = sent_ns + fact->age_ns - fact->age_ns / 8192;
	}
	if (fact->flags & WIRE_ACK_PSN_VALID)
		view->none_after_ns[fact->id] = view->newest_sent_ns[fact->id];
}

/* A resent packet is acknowledged: had its resend arrived at all by then? */
static void judge_resend(const struct rel_tx *tx, const struct rel_last *last,
			 struct rel_view *view)
{
	if (last->lost_on == REL_NO_CHANNEL)
		return;
	uint64_t newest = view->none_after_ns[last->channel];
	uint64_t smoothed = rel_channel_rtt(tx, &tx->ch[last->channel])->smoothed_ns;
	/* The margin: words are read a little after the channel's facts. */
	uint64_t margin = u64_max(REL_REORDER_MIN_NS, smoothed / 16);
	if (!newest || last->sent_ns <= newest + margin)
		return;
	overtaken(tx, view, last->lost_on, last->lost_sent_ns);
}

static void attribute_acked(struct rel_tx *tx, const struct rel_word *w, uint64_t live,
			    struct rel_view *view)
{
	uint64_t exc = w->page->exc[w->at] & live;
	uint64_t plain = live & ~exc;
	if (plain)
		view->out->ch[w->page->unit[w->at].channel].acked_pkts +=
			(uint64_t)__builtin_popcountll(plain);
	for (; exc; exc &= exc - 1) {
		struct rel_last last = rel_last_of(tx, w, (unsigned int)__builtin_ctzll(exc));
		view->out->ch[last.channel].acked_pkts++;
		if (!rel_has_code(w->msg))
			judge_resend(tx, &last, view);
	}
}

static void attribute_spurious(struct rel_tx *tx, const struct rel_word *w, uint64_t lost,
			       struct rel_view *view)
{
	for (uint64_t rest = lost; rest; rest &= rest - 1) {
		struct rel_last last = rel_last_of(tx, w, (unsigned int)__builtin_ctzll(rest));
		overtaken(tx, view, last.channel, last.sent_ns);
	}
}

/* Received bits of one word. */
static void mark_word(struct rel_tx *tx, struct rel_word *w, uint64_t bits, struct rel_view *view)
{
	struct rel_msg *msg = w->msg;
	uint64_t fresh = bits & ~w->page->acked[w->at];
	if (!fresh)
		return;
	uint64_t lost = fresh & w->page->lost[w->at], coded = 0;
	uint64_t live = fresh & rel_outstanding(w);
	uint32_t n = (uint32_t)__builtin_popcountll(fresh);
	if (lost && msg->coded)
		coded = lost & rel_span_bits(msg, w->unit);
	if (coded)
		rel_recovered(tx, w, coded, view->now_ns);
	if (lost & ~coded) {
		attribute_spurious(tx, w, lost & ~coded, view);
		tx->lost_now -= (uint64_t)__builtin_popcountll(lost & ~coded);
	}
	attribute_acked(tx, w, live, view);
	rel_detach(tx, w, fresh);
	w->page->lost[w->at] &= ~lost;
	w->page->acked[w->at] |= fresh;
	w->page->nacked += n;
	msg->nacked += n;
	view->out->acked_pkts += n;
	uint32_t index = w->unit / REL_PAGE_UNITS;
	uint32_t in_page = msg->npkts - index * REL_PAGE_PKTS;
	if (w->page->nacked == (in_page < REL_PAGE_PKTS ? in_page : REL_PAGE_PKTS)) {
		rel_page_release(tx, w->page);
		msg->page[index] = &rel_page_full;
	}
}

static void window_run(struct rel_tx *tx, struct rel_msg *msg, uint32_t first, uint32_t n,
		       bool received, struct rel_view *view)
{
	uint64_t end = (uint64_t)first + n;
	if (end > msg->high) {
		if (received)
			tx->stats.lies++;
		end = msg->high;
	}
	if (first >= end)
		return;
	uint32_t last_unit = (uint32_t)((end - 1) / REL_UNIT);
	for (uint32_t unit = first / REL_UNIT; unit <= last_unit; unit++) {
		struct rel_word w;
		if (!rel_word_get(msg, unit, &w) || w.page == &rel_page_full) {
			unit |= REL_PAGE_UNITS - 1; /* the rest of the page too */
			continue;
		}
		uint64_t bits = rel_mask_below(unit, (uint32_t)end) & ~rel_mask_below(unit, first);
		if (received)
			mark_word(tx, &w, bits, view);
		else
			rel_judge_word(tx, &w, bits, view);
	}
}

static void read_windows(struct rel_tx *tx, struct wire_ack *ack, struct rel_view *view)
{
	struct wire_window win;
	while (wire_ack_next_window(ack, &win) > 0) {
		struct rel_msg *msg = rel_msg_find(tx, win.message);
		if (!msg || msg->nacked == msg->npkts)
			continue;
		uint32_t first, n;
		bool received;
		while (wire_ack_next_run(&win, &first, &n, &received) > 0)
			window_run(tx, msg, first, n, received, view);
	}
}

/* Karn: a timer that was wrong waits longer until something was sent once and arrived. */
static void back_off(const struct rel_tx *tx, struct rel_channel *ch, bool wrong, uint64_t sample,
		     uint64_t now_ns)
{
	if (sample) {
		ch->timed_out = false;
		if (ch->backoff)
			ch->backoff--;
	} else if (wrong && ch->timed_out && ch->backoff < REL_BACKOFF_MAX &&
		   now_ns - ch->backoff_ns >= rel_channel_rto_ns(tx, ch)) {
		ch->backoff++;
		ch->backoff_ns = now_ns;
	}
}

/* The connection is heard from: timers and windows move on. */
static void heard(struct rel_tx *tx, const struct rel_view *view)
{
	struct rel_ack_result *out = view->out;
	tx->stats.acks++;
	tx->stats.acked_pkts += out->acked_pkts;
	tx->stats.spurious_pkts += out->spurious_pkts;
	tx->last_ack_ns = view->now_ns;
	tx->late_restarted = false;
	if (out->acked_pkts)
		tx->tail_probed = false;
	if (tx->stalled) {
		/* What came back may have room for little: wait for the ACKs that follow. */
		tx->stalled = false;
		tx->timer_hold_ns = view->now_ns + tx->rtt.smoothed_ns / 2;
	}
	for (uint32_t i = 0; i < tx->params.channels; i++) {
		struct rel_channel *ch = &tx->ch[i];
		if (view->overtaken_ns[i])
			widen(tx, ch, view->overtaken_ns[i], view->now_ns);
		else
			narrow(tx, ch, view->now_ns);
		uint64_t rtt = out->ch[i].rtt_sample_ns;
		back_off(tx, ch, view->duplicated[i] || view->overtaken_ns[i], rtt, view->now_ns);
		if (rtt && (!out->rtt_sample_ns || rtt < out->rtt_sample_ns))
			out->rtt_sample_ns = rtt;
		rel_log_trim(tx, ch);
	}
}

int rel_tx_ack(struct rel_tx *tx, const uint8_t *body, size_t len, uint64_t now_ns,
	       struct rel_ack_result *out)
{
	struct wire_ack ack;
	memset(out, 0, sizeof(*out));
	int err = wire_ack_open(body, len, &ack);
	if (err < 0) {
		tx->stats.bad_acks++;
		return err;
	}
	tx->now_ns = u64_max(tx->now_ns, now_ns);
	out->write_below = ack.write_below;
	rel_note_made_good(tx, ack.made_good);
	struct rel_view view = {.now_ns = now_ns, .out = out};
	struct wire_ack_channel fact;
	while (wire_ack_next_channel(&ack, &fact) > 0) {
		if (fact.id < tx->params.channels)
			channel_fact(tx, &fact, &view);
		else
			tx->stats.lies++;
	}
	rel_make_proof(tx, &view);
	read_windows(tx, &ack, &view);
	rel_judge_quiet(tx, &view);
	if (view.hole_msg)
		rel_rewind(tx, view.hole_msg, view.hole);
	heard(tx, &view);
	if (tx->any_coded)
		rel_read_deficits(tx, &ack, &view);
	return 0;
}

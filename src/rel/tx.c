/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sender: messages, what to send next, and the record of what was sent. ACKs are in
 * tx_ack.c, time in tx_timer.c, storage in tx_store.c. See tx.h.
 */
#include "rel/tx_priv.h"

#include <errno.h>
#include <string.h>

int rel_tx_init(struct rel_tx *tx, const struct rel_tx_params *params,
		const struct sdr_alloc *alloc)
{
	if (params->channels == 0 || params->channels > REL_MAX_CHANNELS)
		return -EINVAL;
	*tx = (struct rel_tx){.alloc = *alloc, .params = *params};
	rel_rtt_init(&tx->rtt);
	for (uint32_t i = 0; i < REL_MAX_CHANNELS; i++) {
		tx->ch[i].log.elem_bytes = sizeof(struct rel_train);
		rel_rtt_init(&tx->ch[i].rtt);
	}
	tx->lost.elem_bytes = sizeof(struct rel_lost);
	tx->copies.elem_bytes = sizeof(struct rel_copy);
	tx->repairs.elem_bytes = sizeof(struct rel_refill);
	return 0;
}

void rel_tx_fini(struct rel_tx *tx)
{
	while (tx->oldest)
		rel_tx_close(tx, tx->oldest->message);
	while (tx->free_pages) {
		struct rel_page *page = tx->free_pages;
		tx->free_pages = page->next_free;
		alloc_free(&tx->alloc, page);
	}
	tx->nfree_pages = 0;
	for (uint32_t i = 0; i < REL_MAX_CHANNELS; i++)
		alloc_free(&tx->alloc, tx->ch[i].log.slot);
	alloc_free(&tx->alloc, tx->lost.slot);
	alloc_free(&tx->alloc, tx->copies.slot);
	alloc_free(&tx->alloc, tx->repairs.slot);
	alloc_free(&tx->alloc, tx->exc);
	memset(tx, 0, sizeof(*tx));
}

/* 0, or -ENOMEM or -EINVAL and nothing is left. */
static int msg_new(struct rel_tx *tx, uint32_t message, uint32_t npkts,
		   const struct rel_coding *coding, struct rel_msg **out)
{
	struct rel_msg *msg = alloc_zeroed(&tx->alloc, sizeof(*msg));
	if (!msg)
		return -ENOMEM;
	msg->message = message;
	msg->npkts = npkts;
	msg->npages = (uint32_t)u64_div_up(npkts, REL_PAGE_PKTS);
	msg->page = alloc_zeroed(&tx->alloc, msg->npages * sizeof(*msg->page));
	int err = msg->page ? 0 : -ENOMEM;
	if (!err && coding)
		err = rel_coded_open(tx, msg, coding);
	if (err < 0) {
		alloc_free(&tx->alloc, msg->page);
		alloc_free(&tx->alloc, msg);
		return err;
	}
	*out = msg;
	return 0;
}

int rel_tx_open(struct rel_tx *tx, uint32_t message, uint32_t npkts)
{
	return rel_tx_open_coded(tx, message, npkts, NULL);
}

int rel_tx_open_coded(struct rel_tx *tx, uint32_t message, uint32_t npkts,
		      const struct rel_coding *coding)
{
	struct rel_msg *msg;
	if (npkts == 0 || (tx->any_opened && !seq32_before(tx->last_opened, message)))
		return -EINVAL;
	if (tx->nopen >= REL_MAX_OPEN ||
	    (tx->oldest && message - tx->oldest->message >= REL_OPEN_SPAN))
		return -EAGAIN;
	int err = msg_new(tx, message, npkts, coding, &msg);
	if (err < 0)
		return err;
	msg->before = tx->newest;
	if (tx->newest)
		tx->newest->after = msg;
	else
		tx->oldest = msg;
	tx->newest = msg;
	if (!tx->sending)
		tx->sending = msg;
	SDR_ASSERT(!tx->slot[message & (REL_OPEN_SPAN - 1)]);
	tx->slot[message & (REL_OPEN_SPAN - 1)] = msg;
	tx->nopen++;
	tx->any_opened = true;
	tx->last_opened = message;
	return 0;
}

/* Takes all of the message's packets out of flight, queue and hash. */
static void settle(struct rel_tx *tx, struct rel_msg *msg)
{
	for (uint32_t p = 0; p < msg->npages; p++) {
		if (msg->page[p] == &rel_page_full)
			continue;
		if (!msg->page[p])
			continue;
		for (uint32_t i = 0; i < REL_PAGE_UNITS; i++) {
			struct rel_word w = {msg, msg->page[p], p * REL_PAGE_UNITS + i, i};
			rel_detach(tx, &w, ~UINT64_C(0));
			tx->lost_now -= (uint64_t)__builtin_popcountll(w.page->lost[i] &
								       ~w.page->covered[i]);
		}
		rel_page_release(tx, msg->page[p]);
	}
}

void rel_drop_extra(struct rel_tx *tx)
{
	for (uint32_t i = 0; i < tx->params.channels; i++) {
		struct rel_channel *ch = &tx->ch[i];
		ch->extra = 0;
		for (uint64_t pos = ch->newest_pos; pos < ch->log.tail; pos++)
			rel_train_at(ch, pos)->extra = 0;
	}
}

void rel_tx_close(struct rel_tx *tx, uint32_t message)
{
	struct rel_msg *msg = rel_msg_find(tx, message);
	if (!msg)
		return;
	settle(tx, msg);
	rel_coded_close(tx, msg);
	if (tx->sending == msg)
		tx->sending = msg->after;
	if (msg->before)
		msg->before->after = msg->after;
	else
		tx->oldest = msg->after;
	if (msg->after)
		msg->after->before = msg->before;
	else
		tx->newest = msg->before;
	tx->slot[message & (REL_OPEN_SPAN - 1)] = NULL;
	tx->nopen--;
	alloc_free(&tx->alloc, msg->page);
	alloc_free(&tx->alloc, msg);
	for (uint32_t i = 0; i < tx->params.channels; i++) {
		if (tx->ch[i].inflight)
			return;
	}
	/*
	 * Nothing is left that could be lost: repeats in flight no longer matter, and there is
	 * nothing to probe a stalled path with but what is to be sent next.
	 */
	if (!tx->covered_now)
		rel_drop_extra(tx);
	tx->stalled = false;
}

void rel_tx_close_below(struct rel_tx *tx, uint32_t message)
{
	while (tx->oldest && seq32_before(tx->oldest->message, message))
		rel_tx_close(tx, tx->oldest->message);
}

bool rel_tx_is_open(const struct rel_tx *tx, uint32_t message)
{
	return rel_msg_find(tx, message) != NULL;
}

bool rel_tx_is_acked(const struct rel_tx *tx, uint32_t message)
{
	const struct rel_msg *msg = rel_msg_find(tx, message);
	return msg && msg->nacked == msg->npkts;
}

/* The oldest lost run; drops queue entries whose packets are lost no more. */
static bool next_lost(struct rel_tx *tx, struct rel_range *out)
{
	while (tx->lost.head != tx->lost.tail) {
		const struct rel_lost *item = rel_ring_at(&tx->lost, tx->lost.head);
		struct rel_msg *msg = rel_msg_find(tx, item->message);
		struct rel_word w;
		uint64_t bits = 0;
		if (msg && item->unit < msg->npages * REL_PAGE_UNITS &&
		    rel_word_get(msg, item->unit, &w))
			bits = item->mask & w.page->lost[w.at] & ~w.page->covered[w.at];
		if (!bits) {
			tx->lost.head++;
			continue;
		}
		/* What is lost next to it is in the queue as well. */
		unsigned int first = (unsigned int)__builtin_ctzll(bits);
		uint64_t run = ~((w.page->lost[w.at] & ~w.page->covered[w.at]) >> first);
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

static struct rel_msg *unsent_msg(const struct rel_tx *tx)
{
	struct rel_msg *msg = tx->sending;
	while (msg && msg->next >= msg->npkts)
		msg = msg->after;
	return msg;
}

static bool next_new(struct rel_tx *tx, struct rel_range *out)
{
	struct rel_msg *msg = unsent_msg(tx);
	tx->sending = msg ? msg : tx->newest;
	if (!msg)
		return false;
	bool resend = msg->next < msg->high;
	uint32_t end = resend ? msg->high : msg->coded ? rel_batch_end_pkt(msg) : msg->npkts;
	uint32_t room = REL_UNIT - msg->next % REL_UNIT;
	*out = (struct rel_range){
		.message = msg->message,
		.first = msg->next,
		.count = end - msg->next < room ? end - msg->next : room,
		.resend = resend,
	};
	return true;
}

static int reserve(struct rel_tx *tx, const struct rel_range *range)
{
	struct rel_msg *msg = rel_msg_find(tx, range->message);
	if (range->parity)
		return rel_reserve_logs(tx);
	if (msg->coded && rel_copy_reserve(tx, msg) < 0)
		return -ENOMEM;
	return rel_reserve(tx, msg, range->first);
}

int rel_tx_next(struct rel_tx *tx, uint64_t now_ns, uint32_t max_pkts, struct rel_range *out)
{
	tx->now_ns = u64_max(tx->now_ns, now_ns);
	if (tx->stalled || max_pkts == 0)
		return 0;
	if (!next_lost(tx, out) && !rel_next_copy(tx, out) && !rel_next_repair(tx, out) &&
	    !rel_next_parity(tx, out) && !next_new(tx, out)) {
		for (uint32_t i = 0; i < tx->params.channels; i++)
			rel_tx_limited(tx, i);
		return 0;
	}
	if (reserve(tx, out) < 0)
		return -ENOMEM;
	if (out->count > max_pkts)
		out->count = max_pkts;
	return 1;
}

void rel_tx_limited(struct rel_tx *tx, uint32_t channel)
{
	struct rel_channel *ch = &tx->ch[channel];

	ch->app_limited_until = u64_max(ch->delivered + ch->inflight, 1);
}

bool rel_tx_pending(const struct rel_tx *tx)
{
	return !tx->stalled &&
	       (tx->lost_now > 0 || tx->parity || rel_waited(tx) || unsent_msg(tx) != NULL);
}

/*
 * Trains of one channel differ in their time, though many may go out in what a clock calls one
 * instant: so time tells their order, as holes are judged by it.
 */
static uint64_t stamp_ns(const struct rel_channel *ch, uint64_t now_ns)
{
	if (ch->log.tail == ch->log.head)
		return now_ns;
	return u64_max(now_ns, rel_train_at(ch, ch->log.tail - 1)->sent_ns + 1);
}

struct rel_train *rel_log_train(struct rel_tx *tx, struct rel_channel *ch, uint32_t psn24,
				uint64_t now_ns)
{
	psn24 &= 0xffffff;
	uint64_t psn = ch->sent_any ? ch->end_psn + ((psn24 - ch->end_psn) & 0xffffff)
				    : UINT64_C(0x1000000) + psn24;
	if (!ch->sent_any)
		ch->start_psn = psn;
	if (ch->inflight + ch->extra == 0)
		ch->first_sent_ns = ch->delivered_ns = now_ns;
	if (rel_tx_inflight_all(tx) == 0)
		tx->busy_since_ns = now_ns;
	uint64_t sent_ns = stamp_ns(ch, now_ns);
	struct rel_train *train = rel_ring_push(&ch->log);
	*train = (struct rel_train){
		.psn = psn,
		.sent_ns = sent_ns,
		.delivered = ch->delivered,
		.delivered_ns = ch->delivered_ns,
		.first_sent_ns = ch->first_sent_ns,
		.sent_pkts = ch->sent_pkts,
		.app_limited = ch->app_limited_until > ch->delivered,
	};
	ch->sent_any = true;
	return train;
}

/* Which of the word's bits were lost, and how; clears them. NULL if none. */
static const struct rel_last *take_lost(struct rel_tx *tx, const struct rel_word *w, uint64_t bits,
					struct rel_last was[REL_UNIT])
{
	uint64_t lost = w->page->lost[w->at] & bits;
	uint64_t covered = w->page->covered[w->at] & bits;
	if (!lost)
		return NULL;
	for (unsigned int bit = 0; bit < REL_UNIT; bit++)
		was[bit] = (struct rel_last){.channel = REL_NO_CHANNEL};
	for (uint64_t rest = lost; rest; rest &= rest - 1) {
		unsigned int bit = (unsigned int)__builtin_ctzll(rest);
		was[bit] = rel_last_of(tx, w, bit);
		/* A code or copies bring packets twice without anybody being wrong. */
		if (!w->msg->coded)
			tx->ch[was[bit].channel].doubt++;
	}
	if (covered)
		rel_uncover(tx, w, covered);
	/* Lost packets are in no flight: their records may go before the bits are cleared. */
	rel_detach(tx, w, lost);
	w->page->lost[w->at] &= ~lost;
	tx->lost_now -= (uint64_t)__builtin_popcountll(lost & ~covered);
	return was;
}

void rel_count_sent(struct rel_tx *tx, struct rel_channel *ch, struct rel_train *train,
		    uint32_t count)
{
	train->n = (uint8_t)count;
	ch->end_psn = train->psn + count;
	ch->sent_pkts += count;
	tx->stats.sent_pkts += count;
}

int rel_tx_sent_untracked(struct rel_tx *tx, uint32_t count, uint32_t channel, uint32_t first_psn24,
			  uint64_t now_ns)
{
	struct rel_channel *ch = &tx->ch[channel];
	SDR_ASSERT(channel < tx->params.channels && count > 0 && count <= REL_UNIT);
	if (rel_ring_reserve(tx, &ch->log, 1) < 0)
		return -ENOMEM;
	struct rel_train *train = rel_log_train(tx, ch, first_psn24, now_ns);
	train->untracked = true;
	train->extra = (uint8_t)count;
	ch->extra += count;
	rel_count_sent(tx, ch, train, count);
	rel_train_top(ch, train, false);
	return 0;
}

void rel_tx_sent(struct rel_tx *tx, const struct rel_range *sent, uint32_t channel,
		 uint32_t first_psn24, uint64_t now_ns)
{
	struct rel_channel *ch = &tx->ch[channel];
	struct rel_msg *msg = rel_msg_find(tx, sent->message);
	SDR_ASSERT(channel < tx->params.channels && sent->count > 0);
	if (sent->parity) {
		rel_parity_sent(tx, sent, channel, first_psn24, now_ns);
		return;
	}
	struct rel_train *train = rel_log_train(tx, ch, first_psn24, now_ns);
	train->message = sent->message;
	train->first = sent->first;
	rel_count_sent(tx, ch, train, sent->count);
	rel_train_top(ch, train, sent->resend);
	if (sent->resend) {
		tx->stats.resent_pkts += sent->count;
		rel_note_again(tx, sent);
	}
	if (sent->probe)
		tx->stats.probes++;
	else
		tx->tail_probed = false;
	tx->last_sent_ns = now_ns;
	struct rel_word w;
	if (!msg || !rel_word_get(msg, sent->first / REL_UNIT, &w))
		return;

	uint64_t bits = bits_range(sent->first % REL_UNIT, sent->count);
	uint32_t repeats = (uint32_t)__builtin_popcountll(bits & w.page->acked[w.at]);
	train->extra = (uint8_t)repeats;
	ch->extra += repeats;
	if (w.page != &rel_page_full) {
		struct rel_last was[REL_UNIT];
		if (msg->coded && sent->resend)
			rel_copy_sent(tx, &w, sent, channel, now_ns);
		/* A probe's packet is outstanding already. */
		rel_detach(tx, &w, bits & ~w.page->lost[w.at]);
		const struct rel_last *lost = take_lost(tx, &w, bits, was);
		rel_attach(tx, &w, bits, channel, train->sent_ns, lost);
	}
	if (sent->first == msg->next)
		msg->next += sent->count;
	if (msg->high < msg->next)
		msg->high = msg->next;
	if (msg->coded)
		rel_coded_sent(tx, msg, sent, train->sent_ns);
}

uint64_t rel_tx_inflight(const struct rel_tx *tx, uint32_t channel)
{
	return channel < tx->params.channels ? tx->ch[channel].inflight + tx->ch[channel].extra : 0;
}

uint64_t rel_tx_inflight_all(const struct rel_tx *tx)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < tx->params.channels; i++)
		sum += tx->ch[i].inflight + tx->ch[i].extra;
	return sum;
}

int rel_declare_lost(struct rel_tx *tx, const struct rel_word *w, uint64_t bits, uint32_t channel,
		     struct rel_ack_result *out)
{
	uint64_t n = (uint64_t)__builtin_popcountll(bits);
	uint64_t covered = 0;
	if (w->msg->coded && !w->msg->coded->alone)
		covered = bits & rel_span_bits(w->msg, w->unit);
	if (bits & ~covered) {
		if (rel_ring_reserve(tx, &tx->lost, 1) < 0)
			return -ENOMEM;
		struct rel_lost *item = rel_ring_push(&tx->lost);
		*item = (struct rel_lost){w->msg->message, w->unit, bits & ~covered};
		tx->lost_now += (uint64_t)__builtin_popcountll(bits & ~covered);
	}
	rel_count_runs(tx, w, bits);
	w->page->lost[w->at] |= bits;
	if (covered)
		rel_cover(tx, w, covered);
	tx->ch[channel].inflight -= n;
	tx->stats.lost_pkts += n;
	out->lost_pkts += n;
	out->ch[channel].lost_pkts += n;
	return 0;
}

void rel_rewind(struct rel_tx *tx, struct rel_msg *msg, uint32_t packet)
{
	tx->stats.rewinds++;
	tx->sending = msg;
	for (; msg; msg = msg->after, packet = 0) {
		if (msg->next <= packet)
			continue;
		uint32_t last_unit = (msg->next - 1) / REL_UNIT;
		for (uint32_t unit = packet / REL_UNIT; unit <= last_unit; unit++) {
			struct rel_word w;
			if (!rel_word_get(msg, unit, &w) || w.page == &rel_page_full)
				continue;
			uint64_t kept = rel_mask_below(unit, packet);
			rel_detach(tx, &w, ~kept);
			unsigned int n = (unsigned int)__builtin_popcountll(kept);
			if (w.page->unit[w.at].n > n)
				w.page->unit[w.at].n = (uint8_t)n;
		}
		msg->next = packet;
	}
}

const struct rel_rtt *rel_channel_rtt(const struct rel_tx *tx, const struct rel_channel *ch)
{
	return ch->rtt.smoothed_ns ? &ch->rtt : &tx->rtt;
}

uint64_t rel_reorder_window_ns(const struct rel_tx *tx, const struct rel_channel *ch)
{
	uint64_t smoothed = rel_channel_rtt(tx, ch)->smoothed_ns;
	uint64_t base = u64_max(REL_REORDER_MIN_NS, smoothed / 16);
	return u64_max(base, u64_min(ch->reorder_ns, u64_max(smoothed, REL_REORDER_MIN_NS)));
}

uint64_t rel_tx_reorder_ns(const struct rel_tx *tx, uint32_t channel)
{
	return rel_reorder_window_ns(tx, &tx->ch[channel]);
}

void rel_tx_rtt_sample(struct rel_tx *tx, uint32_t channel, uint64_t sample_ns, uint64_t now_ns)
{
	rel_rtt_sample(&tx->rtt, sample_ns, now_ns);
	if (channel < tx->params.channels)
		rel_rtt_sample(&tx->ch[channel].rtt, sample_ns, now_ns);
}

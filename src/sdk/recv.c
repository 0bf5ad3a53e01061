/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receives: posting binds a number to memory and grants it; bitmaps are read straight
 * from what rx/ keeps; completing fences, so that no byte is written afterwards.
 * Knows nothing of what is done about holes.
 */
#include "sdk/internal.h"
#include <sched.h>

/*
 * Can a late packet be taken for one of its slot's and generation's next message? Where keys
 * outlive their receives, any; an RDMA NIC looks at the key of none that is empty.
 */
static bool late_passes(const struct sdr_qp *qp)
{
	return qp->ctx->caps.late_ns ||
	       (sdk_is_rocev2(qp->ctx) && qp->ctx->caps.flags & FABRIC_CAP_SILENT_LATE);
}

static int table_create(struct sdr_qp *qp)
{
	struct sdk_rx *rx = &qp->live->rx;
	const struct sdr_alloc *alloc = qp->ctx->alloc;
	uint32_t n = qp->attr.messages;

	rx->recv = alloc_zeroed(alloc, n * sizeof(*rx->recv));
	rx->ready = alloc_zeroed(alloc, bits_words(n) * 8);
	rx->table = alloc_zeroed(alloc, sizeof(*rx->table));
	rx->table_mem = alloc_zeroed(alloc, n * sizeof(struct rx_slot));
	if (!rx->recv || !rx->ready || !rx->table || !rx->table_mem)
		return -ENOMEM;
	if (rx_table_init(rx->table, rx->table_mem, n,
			  sdk_is_rocev2(qp->ctx) ? n * qp->generations - 1 : UINT32_MAX,
			  qp->ctx->rx_workers, qp->ctx->rx_nworkers, qp->ctx->rx_flags) != RX_OK)
		return -EINVAL;
	if (!late_passes(qp))
		return 0;
	rx->ended_ns = alloc_zeroed(alloc, n * qp->generations * sizeof(*rx->ended_ns));
	return rx->ended_ns ? 0 : -ENOMEM;
}

static void table_free(struct sdr_qp *qp)
{
	struct sdk_rx *rx = &qp->live->rx;
	const struct sdr_alloc *alloc = qp->ctx->alloc;

	alloc_free(alloc, rx->recv);
	alloc_free(alloc, rx->ready);
	alloc_free(alloc, rx->table);
	alloc_free(alloc, rx->table_mem);
	alloc_free(alloc, rx->ended_ns);
	rx->ended_ns = NULL;
	rx->recv = NULL;
	rx->ready = NULL;
	rx->table = NULL;
	rx->table_mem = NULL;
}

int sdk_rx_ready(struct sdr_qp *qp)
{
	int err;

	if (qp->live->rx.table)
		return 0;
	err = table_create(qp);
	if (err) {
		table_free(qp);
		return err;
	}
	qp->ctx->fabric->ops->table_set(qp->fqp, qp->live->rx.table);
	return 0;
}

void sdk_rx_fini(struct sdr_qp *qp)
{
	struct sdk_rx *rx = &qp->live->rx;

	for (uint32_t n = rx->base; n != rx->next; n++) {
		struct sdr_recv *recv = rx_recv(qp, n);

		if (recv->state == RECV_POSTED)
			sdk_words_put(qp->ctx, recv->words, recv->nwords);
	}
	table_free(qp);
}

static const struct rx_slot *slot_of(const struct sdr_recv *recv)
{
	return rx_slot_of(recv->qp->live->rx.table, recv->message);
}

static uint8_t chunk_shift(const struct sdr_qp *qp)
{
	return (uint8_t)__builtin_ctz(qp->attr.chunk_pkts);
}

int sdk_rx_bind(struct sdr_qp *qp, struct sdr_recv *recv)
{
	struct fabric_bind b = {0};
	int err;

	recv->nwords = rx_bind_words(recv->length, recv->payload, chunk_shift(qp));
	recv->words = NULL;
	if (recv->nwords && !(recv->words = sdk_words_get(qp->ctx, recv->nwords)))
		return -ENOMEM;
	b.rx.base = recv->addr;
	b.rx.len = recv->length;
	b.rx.payload = recv->payload;
	b.rx.chunk_shift = chunk_shift(qp);
	b.rx.imm_frags = (uint8_t)qp->imm_pkts;
	b.mr = recv->mr ? recv->mr->fabric_mr : NULL;
	b.rx.words = recv->words;
	err = qp->ctx->fabric->ops->bind(qp->fqp, recv->message, &b, &recv->key);
	if (err) {
		sdk_words_put(qp->ctx, recv->words, recv->nwords);
		recv->words = NULL;
	}
	return err;
}

/* From the return on no byte or bit of the receive changes any more. */
static void fence(struct sdr_qp *qp, uint32_t message)
{
	const struct fabric_ops *ops = qp->ctx->fabric->ops;

	ops->fence_begin(qp->fqp, message);
	while (ops->fence_done(qp->fqp, message) == 0)
		(void)sched_yield(); /* a worker is inside, for at most a batch */
}

static int64_t count_bits(const uint64_t *words, uint64_t n)
{
	int64_t sum = 0;

	for (size_t i = 0; i < bits_words(n); i++)
		if (words[i])
			sum += rx_popcount(words[i]);
	return sum;
}

/* Are packets [0, n) all there (`want`), or all missing? */
static bool all_are(const struct rx_slot *slot, uint32_t n, bool want)
{
	uint64_t words[64];

	for (uint32_t at = 0; at < n;) {
		uint32_t some = (uint32_t)u64_min(n - at, 64 * SDR_ARRAY_LEN(words));

		rx_bits_get(slot, at, some, words);
		if (count_bits(words, some) != (want ? some : 0))
			return false;
		at += some;
	}
	return true;
}

/* Has a packet of it come? One that only ends it may not have: see sdr_recv_length_set(). */
static bool has_begun(const struct rx_slot *slot)
{
	uint32_t npkts = slot->npkts;
	uint64_t bytes;

	if (rx_end_is_set(slot)) {
		(void)rx_end(slot, &npkts, &bytes);
		npkts = (uint32_t)u64_div_up(bytes, slot->payload);
	}
	return !all_are(slot, npkts, false);
}

void sdk_rx_rebind(struct sdr_qp *qp, struct sdr_recv *recv, uint32_t payload)
{
	struct sdr_recv was = *recv;
	uint64_t bytes;
	uint32_t npkts;
	bool told = rx_end_is_set(slot_of(recv));
	int err;

	(void)rx_end(slot_of(recv), &npkts, &bytes);
	fence(qp, recv->message);
	if (has_begun(slot_of(recv))) {
		err = -SDR_E_ABORTED; /* no change may concern a message that has begun */
	} else if (u64_div_up(recv->length, payload) > qp->max_pkts) {
		err = -EMSGSIZE;
	} else {
		recv->payload = payload;
		err = sdk_rx_bind(qp, recv);
	}
	if (!err) {
		if (told)
			(void)rx_end_set(rx_slot_of(qp->live->rx.table, recv->message), bytes);
		sdk_words_put(qp->ctx, was.words, was.nwords);
		return;
	}
	/* It stays fenced, and readable as it was, until it is completed. */
	*recv = was;
	recv->error = err;
	sdk_rx_ready_mark(qp, recv->message);
}

/* Where late packets may pass: when this slot and generation was last used; 0: no matter. */
static uint64_t *late_since(const struct sdr_qp *qp, uint32_t message)
{
	return &qp->live->rx.ended_ns[message & (qp->attr.messages * qp->generations - 1)];
}

/* May an empty packet of it have been sent, and be on its way still? */
static bool had_empties(const struct sdr_recv *recv, bool all)
{
	uint32_t pkts;
	uint64_t length;

	if (!all || !rx_end(slot_of(recv), &pkts, &length))
		return true;
	/* One ends a message of full packets; others carry the rest of an immediate. */
	return pkts < recv->qp->imm_pkts || (length % recv->payload == 0 && length < recv->length);
}

static void late_begins(struct sdr_recv *recv, bool all)
{
	const struct sdr_qp *qp = recv->qp;

	if (!qp->live->rx.ended_ns)
		return;
	*late_since(qp, recv->message) =
		qp->ctx->caps.late_ns || had_empties(recv, all) ? sdk_now(qp->ctx) : 0;
}

void sdk_rx_sender_past(struct sdr_qp *qp, uint32_t base)
{
	struct sdk_rx *rx = &qp->live->rx;
	uint64_t now = sdk_now(qp->ctx);

	for (; rx->ended_ns && seq32_before(rx->sender_base, base); rx->sender_base++)
		if (*late_since(qp, rx->sender_base))
			*late_since(qp, rx->sender_base) = now;
}

/*
 * The number that had the next one's slot and generation is history: its sender, which knows
 * of its end, sends no more of it, and what it sent is no longer on its way. If that is a
 * matter of time, a deadline says when: nothing else may happen until then.
 */
static bool late_over(struct sdr_qp *qp)
{
	struct sdk_rx *rx = &qp->live->rx;
	uint32_t had = rx->next - qp->attr.messages * qp->generations;
	uint64_t since = *late_since(qp, had);
	uint64_t least = qp->ctx->caps.late_ns ? SDK_LATE_MIN_NS : SDK_LATE_EMPTY_NS;
	uint64_t hold = u64_max(qp->ctx->caps.late_ns, u64_max(2 * qp->live->rtt_ns, least));

	if (!since)
		return true;
	/* Of one generation, the next number's grant is what tells the sender. */
	if (qp->generations > 1 && !seq32_before(had, rx->sender_base)) {
		grant_echo_ask(qp);
		return false;
	}
	if (sdk_now(qp->ctx) - since >= hold)
		return true;
	if (rx->hold_ns != since + hold) {
		rx->hold_ns = since + hold;
		sdk_qp_dirty(qp);
	}
	return false;
}

int sdr_recv_post(struct sdr_qp *qp, const struct sdr_recv_wr *wr, struct sdr_recv **out)
{
	struct sdk_rx *rx;
	struct sdr_recv *recv;
	int err;

	if (wr->length && !wr->addr)
		return -EINVAL;
	if (qp->state == SDR_QP_ERROR)
		return qp->error;
	if (!qp->live)
		return -ENOTCONN;
	rx = &qp->live->rx;
	if (rx->next - rx->base >= qp->attr.messages)
		return -EAGAIN;
	if (u64_div_up(wr->length, rx->payload) > qp->max_pkts)
		return -EMSGSIZE;
	err = sdk_rx_ready(qp);
	if (err)
		return err;
	if (rx->ended_ns && !late_over(qp))
		return -EAGAIN;
	recv = rx_recv(qp, rx->next);
	memset(recv, 0, sizeof(*recv));
	recv->qp = qp;
	recv->addr = wr->addr;
	recv->mr = wr->mr;
	recv->cookie = wr->cookie;
	recv->length = wr->length;
	recv->message = rx->next;
	recv->payload = rx->payload;
	err = sdk_rx_bind(qp, recv);
	if (err) {
		memset(recv, 0, sizeof(*recv));
		return err;
	}
	recv->state = RECV_POSTED;
	rx->next++;
	grant_cts_due(qp);
	*out = recv;
	return 0;
}

/* ---- reading ---- */

int64_t sdr_recv_bitmap_get(const struct sdr_recv *recv, uint64_t first, uint64_t n,
			    uint64_t *words)
{
	const struct rx_slot *slot = slot_of(recv);
	uint64_t chunks = rx_chunk_count(slot);

	if (first > chunks || n > chunks - first)
		return -ERANGE;
	rx_chunks_get(slot, (uint32_t)first, (uint32_t)n, words);
	return count_bits(words, n);
}

int64_t sdr_recv_pkts_get(const struct sdr_recv *recv, uint64_t first, uint64_t n, uint64_t *words)
{
	const struct rx_slot *slot = slot_of(recv);

	if (first > slot->npkts || n > slot->npkts - first)
		return -ERANGE;
	rx_bits_get(slot, (uint32_t)first, (uint32_t)n, words);
	return count_bits(words, n);
}

int sdr_recv_chunk_pkts_get(const struct sdr_recv *recv, uint64_t chunk, uint64_t *mask)
{
	const struct rx_slot *slot = slot_of(recv);
	uint64_t first = chunk << chunk_shift(recv->qp);

	if (chunk >= rx_chunk_count(slot))
		return -ERANGE;
	rx_bits_get(slot, (uint32_t)first,
		    (uint32_t)u64_min(recv->qp->attr.chunk_pkts, slot->npkts - first), mask);
	return 0;
}

int sdr_recv_imm_get(const struct sdr_recv *recv, uint32_t *imm)
{
	return rx_imm_get(slot_of(recv), imm) ? 0 : -EAGAIN;
}

/* Takes 64 slots' news from the fabric's side to ours. */
static void ready_take(struct sdk_rx *rx, uint32_t w)
{
	uint64_t taken = rx_dirty_take(rx->table, w);

	rx->ready[w] |= taken;
	rx->ready_words |= (uint32_t)(taken != 0) << w;
	for (; taken; taken &= taken - 1) {
		uint32_t past = rx->recv[64 * w + (uint32_t)__builtin_ctzll(taken)].message + 1;

		if (seq32_before(rx->touched, past))
			rx->touched = past;
	}
}

static void ready_collect(const struct sdr_qp *qp)
{
	struct sdk_rx *rx = &qp->live->rx;

	rx->ready_hint = false;
	for (uint32_t w = 0; w < bits_words(qp->attr.messages); w++)
		if (rx_dirty_any(rx->table, w))
			ready_take(rx, w);
}

int sdr_recv_query(const struct sdr_recv *recv, struct sdr_recv_info *info)
{
	const struct sdr_qp *qp = recv->qp;
	struct sdr_recv_info out = {
		.size = info->size,
		.message = recv->message,
		.error = recv->error,
		.payload_bytes = recv->payload,
		.chunk_pkts = qp->attr.chunk_pkts,
		.cookie = recv->cookie,
	};

	if (qp->live->rx.ready_hint)
		ready_collect(qp);
	out.touched = seq32_before(recv->message, qp->live->rx.touched) != 0;
	out.end_known = rx_end(slot_of(recv), &out.pkts, &out.length);
	out.chunks = u64_div_up(out.pkts, qp->attr.chunk_pkts);
	memcpy(info, &out, u64_min(info->size, sizeof(out)));
	return 0;
}

/* ---- filling by software ---- */

int sdr_recv_fill_begin(struct sdr_recv *recv, uint32_t first, uint32_t n, uint64_t *mask)
{
	struct rx_slot *slot = rx_slot_of(recv->qp->live->rx.table, recv->message);
	uint64_t end = (uint64_t)first + n;
	uint32_t last_len, npkts;
	uint64_t bytes;
	int verdict;

	*mask = 0;
	if (recv->state != RECV_POSTED || !n || n > RX_WORD_PKTS || rx_run_fit(first, n) != n)
		return -EINVAL;
	(void)rx_end(slot, &npkts, &bytes);
	if (end > npkts)
		return -ERANGE;
	last_len = end == npkts ? (uint32_t)(bytes - (uint64_t)(npkts - 1) * recv->payload)
				: recv->payload;
	verdict = rx_fill_begin(slot, first, n, last_len, mask);
	if (verdict < 0)
		return -ERANGE;
	*mask >>= first % RX_WORD_PKTS;
	return 0;
}

int sdr_recv_fill_end(struct sdr_recv *recv, uint32_t first, uint64_t mask)
{
	struct rx_slot *slot = rx_slot_of(recv->qp->live->rx.table, recv->message);

	uint64_t room = slot->npkts > first ? slot->npkts - first : 0;

	room = u64_min(room, RX_WORD_PKTS - first % RX_WORD_PKTS);
	if (recv->state != RECV_POSTED || mask & ~bits_low((unsigned int)room))
		return -EINVAL;
	rx_fill_end(slot, first, mask << first % RX_WORD_PKTS);
	recv->qp->live->rx.ready_hint = true;
	return 0;
}

int sdr_recv_length_set(struct sdr_recv *recv, uint64_t length)
{
	struct sdk_rx *rx = &recv->qp->live->rx;

	if (recv->state != RECV_POSTED ||
	    rx_end_set(rx_slot_of(rx->table, recv->message), length) != RX_OK)
		return -EINVAL;
	rx->ready_hint = true; /* an end packet may count as arrived */
	return 0;
}

/* ---- completing ---- */

static bool all_arrived(const struct rx_slot *slot)
{
	uint32_t npkts;
	uint64_t bytes;

	return rx_end(slot, &npkts, &bytes) && all_are(slot, npkts, true);
}

static void base_advance(struct sdr_qp *qp)
{
	struct sdk_rx *rx = &qp->live->rx;

	while (rx->base != rx->next) {
		struct sdr_recv *recv = rx_recv(qp, rx->base);

		if (recv->state == RECV_POSTED)
			break;
		rx->recent_early = rx->recent_early << 1 | (recv->state == RECV_DONE_EARLY);
		recv->state = RECV_FREE;
		rx->base++;
	}
	if (seq32_before(rx->touched, rx->base))
		rx->touched = rx->base; /* says the same of what is left, and never falls behind */
	if (seq32_before(rx->echoed, rx->base)) {
		/* What has ended needs no echo. */
		rx->echoed = rx->base;
		if (rx->echoed == rx->next)
			repeat_stop(&rx->cts);
	}
}

int sdr_recv_complete(struct sdr_recv *recv)
{
	struct sdr_qp *qp = recv->qp;
	struct sdk_rx *rx = &qp->live->rx;
	uint32_t slot = recv->message & (qp->attr.messages - 1);
	bool all;

	if (recv->state != RECV_POSTED)
		return -EINVAL;
	fence(qp, recv->message);
	ready_take(rx, slot / 64); /* or the slot's next message would get this one's news */
	all = all_arrived(slot_of(recv));
	sdk_words_put(qp->ctx, recv->words, recv->nwords);
	recv->words = NULL;
	recv->state = all && !recv->error ? RECV_DONE : RECV_DONE_EARLY;
	late_begins(recv, all);
	rx->ready[slot / 64] &= ~(UINT64_C(1) << slot % 64);
	base_advance(qp);
	rx->ended_news = true;
	if (qp->state != SDR_QP_ERROR)
		grant_cts_due(qp);
	return recv->error ? recv->error : all;
}

int sdr_recv_give_up(struct sdr_recv *recv)
{
	if (recv->state == RECV_POSTED && !recv->error)
		recv->error = -ECANCELED;
	return sdr_recv_complete(recv);
}

void sdk_rx_ready_mark(struct sdr_qp *qp, uint32_t message)
{
	uint32_t slot = message & (qp->attr.messages - 1);

	qp->live->rx.ready[slot / 64] |= UINT64_C(1) << slot % 64;
	qp->live->rx.ready_words |= UINT32_C(1) << slot / 64;
}

struct sdr_recv *sdr_recv_next_ready(struct sdr_qp *qp)
{
	struct sdk_rx *rx;

	if (!qp->live || !qp->live->rx.table)
		return NULL;
	rx = &qp->live->rx;
	if (rx->ready_hint)
		ready_collect(qp);
	_Static_assert(SDR_MAX_MESSAGES / 64 <= 32, "a bit for each word");
	for (; rx->ready_words; rx->ready_words &= rx->ready_words - 1) {
		uint32_t w = (uint32_t)__builtin_ctz(rx->ready_words);

		while (rx->ready[w]) {
			uint32_t slot = 64 * w + (uint32_t)__builtin_ctzll(rx->ready[w]);
			struct sdr_recv *recv = &rx->recv[slot];

			rx->ready[w] &= rx->ready[w] - 1;
			if (recv->state != RECV_POSTED)
				continue; /* finished since */
			return recv;
		}
	}
	return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grants and endings. The receiver's CTS says which numbers have a receive and how long
 * it is, and which have ended; it repeats until the sender has echoed all grants. The
 * sender asks with WANT while it waits for a grant, and repeats ABORT until the number
 * has ended. All of it is state, merged on arrival: maxima, and OR for bits, so lost,
 * duplicated and reordered messages do no harm.
 */
#include "sdk/internal.h"

#define ABORT_BATCH 256u
#define GRANT_KEY_BYTES 12u /* rocev2: R_Key 4, virtual address 8 */

/* What has ended is said so often again on a path where asking takes that long, unasked: the
 * sender has nothing else that could bring the news, and would ask after a round trip. */
#define CTS_GAP_MOST_NS (250 * NS_PER_US)
#define AGAINS 4u
#define AGAIN_RTT_NS NS_PER_MS
#define AGAIN_PART 128u /* of a round trip, the first time; twice as much each time after */

/* ---- the receiver's side ---- */

static void again_start(struct sdr_qp *qp, uint64_t now)
{
	struct sdk_rx *rx = &qp->live->rx;

	rx->ended_news = false;
	if (sdk_rtt(qp) < AGAIN_RTT_NS)
		return;
	rx->agains = AGAINS;
	rx->again_ns = now + sdk_rtt(qp) / AGAIN_PART;
}

static void again_service(struct sdr_qp *qp, uint64_t now)
{
	struct sdk_rx *rx = &qp->live->rx;

	if (!rx->agains || rx->again_ns > now)
		return;
	rx->agains--;
	rx->again_ns = now + (sdk_rtt(qp) << (AGAINS - rx->agains)) / AGAIN_PART;
	if (!rx->cts_due) {
		rx->cts_due = true;
		rx->cts_since_ns = rx->cts_at_ns = now;
	}
}

void grant_cts_due(struct sdr_qp *qp)
{
	struct sdk_rx *rx = &qp->live->rx;
	uint64_t now;

	if (rx->cts_due)
		return;
	/* What comes up within a sixteenth of a round trip shares one, if that is not long. */
	now = sdk_now(qp->ctx);
	rx->cts_due = true;
	rx->cts_since_ns = now;
	rx->cts_at_ns =
		u64_max(now, rx->cts_sent_ns + u64_min(qp->live->rtt_ns / 16, CTS_GAP_MOST_NS));
	sdk_qp_dirty(qp);
}

void grant_on_late(struct sdr_qp *qp, uint64_t now)
{
	struct sdk_rx *rx = &qp->live->rx;

	/* A packet of a finished message: its sender has not heard. Once a round trip. */
	if (rx->late_ns && now - rx->late_ns < sdk_rtt(qp))
		return;
	rx->late_ns = now;
	grant_cts_due(qp);
}

/*
 * Request and response on a short path: the peer that has our answer does not wait for the
 * done bit too. It waits for grants if it has few left.
 */
static uint64_t cts_due_ns(const struct sdr_qp *qp)
{
	const struct sdk_rx *rx = &qp->live->rx;

	if (qp->live->posted_ns < rx->cts_since_ns ||
	    rx->echoed - rx->touched < (rx->next - rx->base + 1) / 2)
		return rx->cts_at_ns;
	return u64_max(rx->cts_at_ns, rx->cts_sent_ns + SDK_CTS_HOLD_NS);
}

static void cts_done_bits(const struct sdr_qp *qp, struct wire_cts *cts)
{
	const struct sdk_rx *rx = &qp->live->rx;
	uint32_t n = rx->next - rx->base;

	for (uint32_t i = 0; i < n; i++) {
		const struct sdr_recv *recv = rx_recv(qp, rx->base + i);

		if (recv->state == RECV_POSTED)
			continue;
		cts->done[i / 64] |= UINT64_C(1) << (i % 64);
		if (recv->state == RECV_DONE_EARLY)
			cts->early[i / 64] |= UINT64_C(1) << (i % 64);
		cts->nwords = (uint8_t)(i / 64 + 1);
	}
}

static void cts_entries(const struct sdr_qp *qp, uint32_t first, struct wire_cts *cts)
{
	const struct sdk_rx *rx = &qp->live->rx;

	cts->first = first;
	cts->n = 0;
	while (cts->n < WIRE_CTS_MAX_ENTRIES && first + cts->n != rx->next) {
		const struct sdr_recv *recv = rx_recv(qp, first + cts->n);
		struct wire_cts_entry *entry = &cts->entries[cts->n++];

		*entry = (struct wire_cts_entry){
			.receive = recv->message, .kind = WIRE_CTS_DATA, .length = recv->length};
		if (sdk_is_rocev2(qp->ctx)) {
			entry->key_len = GRANT_KEY_BYTES;
			put_be32(entry->key, recv->key.rkey);
			put_be64(entry->key + 4, recv->key.va);
		}
	}
}

static int cts_queue(struct sdr_qp *qp, const struct wire_cts *cts, uint64_t now)
{
	uint8_t body[SDR_MAX_CTRL_BYTES];
	int len = wire_cts_put(body, sizeof(body), cts);
	int err;

	SDR_ASSERT(len > 0);
	if (len <= 0)
		return -EINVAL;
	err = ctrl_queue(qp, WIRE_MSG_CTS, body, (size_t)len, SDR_CHANNEL_ANY, 0);
	if (err != -EAGAIN)
		return err;
	ctrl_flush(qp, now); /* a thousand grants do not fit the queue at once */
	return ctrl_queue(qp, WIRE_MSG_CTS, body, (size_t)len, SDR_CHANNEL_ANY, 0);
}

/* The state, and all grants that are not on their way: in as many messages as it takes. */
static void cts_send(struct sdr_qp *qp, uint64_t now)
{
	struct sdk_rx *rx = &qp->live->rx;
	struct wire_cts cts;

	if (seq32_before(rx->cts_upto, rx->echoed))
		rx->cts_upto = rx->echoed;
	/* Entries are set one by one; the rest of the array stays unset. */
	memset(&cts, 0, offsetof(struct wire_cts, entries));
	cts.granted_upto = rx->next;
	cts.done_below = rx->base;
	cts.recent_early = rx->recent_early;
	cts_done_bits(qp, &cts);
	do {
		cts_entries(qp, rx->cts_upto, &cts);
		cts.n = (uint8_t)wire_cts_fit(&cts, sdk_ctrl_max(qp->ctx));
		if (cts_queue(qp, &cts, now)) {
			rx->cts_at_ns = now + SDK_RETRY_NS; /* goes on from cts_upto */
			return;
		}
		rx->cts_upto += cts.n;
	} while (rx->cts_upto != rx->next && cts.n);
	rx->cts_due = false;
	rx->cts_sent_ns = now;
	if (rx->ended_news)
		again_start(qp, now);
	if (!repeat_running(&rx->cts) && rx->echoed != rx->next)
		sdk_repeat_start(&rx->cts, qp, now);
}

void grant_on_echo(struct sdr_qp *qp, uint32_t upto)
{
	struct sdk_rx *rx = &qp->live->rx;

	if (seq32_before(rx->next, upto))
		return;
	sdk_rx_sender_past(qp, upto - qp->attr.messages); /* it takes no grant further ahead */
	if (!seq32_before(rx->echoed, upto))
		return;
	rx->echoed = upto;
	if (rx->echoed == rx->next)
		repeat_stop(&rx->cts);
	else
		sdk_repeat_start(&rx->cts, qp, sdk_now(qp->ctx));
}

void grant_echo_ask(struct sdr_qp *qp)
{
	struct sdk_rx *rx = &qp->live->rx;

	if (rx->echoed != rx->next)
		return; /* a CTS is due or repeats already */
	/* It says the last grant again, to which the sender says how far it is. */
	rx->echoed = rx->cts_upto = rx->next - 1;
	grant_cts_due(qp);
}

void grant_on_want(struct sdr_qp *qp, uint32_t message)
{
	struct sdk_rx *rx = &qp->live->rx;

	/* What it wants is the first of which it has no grant, or the first that has not ended. */
	if (!seq32_before(rx->next, message))
		sdk_rx_sender_past(qp, message - qp->attr.messages);
	if (!qp->live->proven)
		return; /* no loudspeaker: the answer is longer, and who waits asks again */
	/* Whoever asks for a number has no echo of it outstanding. */
	if (seq32_before(message, rx->next)) {
		if (seq32_before(message, rx->cts_upto) && !seq32_before(message, rx->base))
			rx->cts_upto = message;
		if (seq32_before(message, rx->echoed) && !seq32_before(message, rx->base))
			rx->echoed = message;
		grant_cts_due(qp);
	}
}

void grant_on_abort(struct sdr_qp *qp, uint32_t message)
{
	struct sdk_rx *rx = &qp->live->rx;
	struct sdr_recv *recv;

	/* Never granted: nothing that a peer of ours would abort. Unproven: as in WANT. */
	if (!seq32_before(message, rx->next) || !qp->live->proven)
		return;
	grant_cts_due(qp); /* done wins: the answer says so */
	if (seq32_before(message, rx->base))
		return;
	recv = rx_recv(qp, message);
	if (recv->state != RECV_POSTED || recv->error)
		return;
	recv->error = -SDR_E_ABORTED;
	sdk_rx_ready_mark(qp, message);
}

/* ---- the sender's side ---- */

static void send_done(struct sdr_qp *qp, uint32_t message, bool early)
{
	struct sdk_tx *tx = &qp->live->tx;
	struct send_slot *slot = tx_slot(qp, message);

	if (slot->flags & SEND_DONE)
		return;
	/* Whoever hears of the end takes the memory back: not while the device reads it. */
	if (slot->flags & SEND_DEVICE && sdk_tx_busy(qp, message)) {
		tx->held += !(slot->flags & SEND_HELD);
		slot->flags |= SEND_HELD | (early ? SEND_EARLY : 0);
		return;
	}
	if (slot->flags & SEND_HELD) {
		slot->flags &= ~(uint32_t)SEND_HELD;
		tx->held--;
	}
	if (slot->flags & SEND_ABORT && --tx->aborts == 0)
		repeat_stop(&tx->abort);
	slot->flags |= SEND_DONE | (early ? SEND_EARLY : 0);
	if (slot->send)
		slot->send->flags |= slot->flags;
}

static void send_grant(struct sdr_qp *qp, uint32_t message, const struct wire_cts_entry *entry)
{
	struct send_slot *slot = tx_slot(qp, message);

	if (slot->flags & SEND_GRANTED)
		return;
	if (sdk_is_rocev2(qp->ctx)) {
		if (entry->key_len != GRANT_KEY_BYTES) {
			sdk_count(qp->ctx, SDR_CTR_ctrl_malformed);
			return;
		}
		slot->key.rkey = get_be32(entry->key);
		slot->key.va = get_be64(entry->key + 4);
	}
	slot->flags |= SEND_GRANTED;
	slot->recv_length = entry->length;
}

/* A number that gets both a grant and a send: the two may come in either order. */
static void tx_advance_granted(struct sdr_qp *qp)
{
	struct sdk_tx *tx = &qp->live->tx;
	uint32_t before = tx->granted;

	while (tx->granted - tx->base < qp->attr.messages &&
	       tx_slot(qp, tx->granted)->flags & SEND_GRANTED)
		tx->granted++;
	if (tx->granted != before) {
		tx->echo_due = true;
		repeat_stop(&tx->want);
		if (tx->aborts)
			tx->abort.at_ns = 0; /* held ones may go now */
	}
}

static void tx_advance_base(struct sdr_qp *qp)
{
	struct sdk_tx *tx = &qp->live->tx;
	uint32_t before = tx->base;

	while (tx->base != tx->next && tx_slot(qp, tx->base)->flags & SEND_DONE) {
		struct send_slot *slot = tx_slot(qp, tx->base);

		slot->send = NULL;
		slot->flags = 0;
		tx->base++;
	}
	/* What has ended was granted, whether its CTS came or not. */
	if (seq32_before(tx->granted, tx->base))
		tx->granted = tx->base;
	if (seq32_before(tx->abort_turn, tx->base))
		tx->abort_turn = tx->base;
	/* What is out now is another matter. */
	if (tx->base != before)
		repeat_stop(&tx->ask);
}

/* What has ended while the device was still reading. */
static void held_service(struct sdr_qp *qp)
{
	struct sdk_tx *tx = &qp->live->tx;

	for (uint32_t n = tx->base; tx->held && n != tx->next; n++) {
		uint32_t flags = tx_slot(qp, n)->flags;

		if (flags & SEND_HELD)
			send_done(qp, n, flags & SEND_EARLY);
	}
	tx_advance_base(qp);
	tx_advance_granted(qp);
}

static void merge_done(struct sdr_qp *qp, const struct wire_cts *cts)
{
	struct sdk_tx *tx = &qp->live->tx;
	uint32_t below = cts->done_below;

	/* Nothing ends that was not sent; a peer that says so is not believed. */
	for (uint32_t n = tx->base; seq32_before(n, below) && seq32_before(n, tx->next); n++) {
		uint32_t back = below - 1 - n;

		send_done(qp, n, back < 64 && cts->recent_early >> back & 1);
	}
	for (uint32_t i = 0; i < 64u * cts->nwords; i++) {
		uint32_t n = below + i;

		if (!(cts->done[i / 64] >> (i % 64) & 1))
			continue;
		if (!seq32_before(n, tx->base) && seq32_before(n, tx->next))
			send_done(qp, n, cts->early[i / 64] >> (i % 64) & 1);
	}
}

void grant_on_cts(struct sdr_qp *qp, const uint8_t *body, size_t len, uint64_t now)
{
	struct sdk_tx *tx = &qp->live->tx;
	struct wire_cts cts;

	if (wire_cts_get(body, len, &cts) || sdk_tx_ready(qp)) {
		sdk_count(qp->ctx, SDR_CTR_ctrl_malformed);
		return;
	}
	merge_done(qp, &cts);
	tx_advance_base(qp); /* grants of the same message take the places of what has ended */
	for (uint32_t i = 0; i < cts.n; i++) {
		uint32_t n = cts.first + i;

		if (cts.entries[i].kind == WIRE_CTS_DATA && n - tx->base < qp->attr.messages)
			send_grant(qp, n, &cts.entries[i]);
	}
	tx_advance_granted(qp);
	tx_advance_base(qp);
	tx_advance_granted(qp);
	/* The receiver still repeats what we have: our echo was lost. */
	if (cts.n && seq32_before(cts.first, tx->granted))
		tx->echo_due = true;
	/* An answer, or as good: what has not ended now is asked for a whole wait later. */
	if (repeat_running(&tx->ask))
		tx->ask.at_ns = now + tx->ask.wait_ns;
	sdk_tx_pump(qp, now);
	sdk_qp_dirty(qp);
}

static void number_send(struct sdr_qp *qp, uint8_t type, uint32_t number)
{
	struct wire_number msg = {.number = number};
	uint8_t body[4];

	if (wire_number_put(body, sizeof(body), &msg) > 0)
		(void)ctrl_queue(qp, type, body, sizeof(body), SDR_CHANNEL_ANY, 0);
}

/* In batches that take turns: a receiver that is slow to complete holds up no other. */
static void aborts_send(struct sdr_qp *qp)
{
	struct sdk_tx *tx = &qp->live->tx;
	uint32_t span = tx->granted - tx->base;
	unsigned int sent = 0;

	if (tx->abort_turn - tx->base >= span)
		tx->abort_turn = tx->base;
	for (uint32_t i = 0; i < span && sent < ABORT_BATCH; i++) {
		uint32_t n = tx->abort_turn++;

		if (tx->abort_turn == tx->granted)
			tx->abort_turn = tx->base;
		if ((tx_slot(qp, n)->flags & (SEND_ABORT | SEND_DONE)) != SEND_ABORT)
			continue;
		number_send(qp, WIRE_MSG_ABORT, n);
		sent++;
	}
}

/*
 * A done bit is said once, on long paths AGAINS more times, and again to whoever asks: while
 * granted messages have not ended, WANT of the oldest asks. Soon after packets have left, because
 * then the end is near; with backoff while nothing is sent, because the receiver's user may take
 * hours.
 */
static void ask_start(struct sdr_qp *qp, uint64_t now)
{
	struct sdk_tx *tx = &qp->live->tx;

	sdk_repeat_start(&tx->ask, qp, now);
	tx->ask.at_ns += tx->ask.wait_ns; /* twice: an answer takes a round trip */
}

static void ask_service(struct sdr_qp *qp, uint64_t now)
{
	struct sdk_tx *tx = &qp->live->tx;

	if (tx->base == tx->next || !seq32_before(tx->base, tx->granted)) {
		repeat_stop(&tx->ask);
	} else if (!repeat_running(&tx->ask)) {
		ask_start(qp, now);
	} else if (tx->ask.at_ns <= now) {
		number_send(qp, WIRE_MSG_WANT, tx->base);
		if (tx->posted)
			ask_start(qp, now);
		else
			sdk_repeat_again(&tx->ask, now);
	} else if (tx->posted && tx->ask.at_ns > now + 2 * sdk_patience(qp)) {
		ask_start(qp, now);
	}
	if (tx->posted)
		qp->live->used_ns = now;
	tx->posted = false;
}

void grant_service(struct sdr_qp *qp, uint64_t now)
{
	struct sdk_tx *tx = &qp->live->tx;
	struct sdk_rx *rx = &qp->live->rx;

	if (rx->cts.at_ns <= now && !qp->live->proven) {
		rx->cts.at_ns = now + rx->cts.wait_ns; /* said once to an unproven address */
	} else if (rx->cts.at_ns <= now) {
		rx->cts_upto = rx->echoed;
		rx->cts_due = true;
		rx->cts_at_ns = now;
		sdk_repeat_again(&rx->cts, now);
	}
	again_service(qp, now);
	if (rx->cts_due && cts_due_ns(qp) <= now)
		cts_send(qp, now);
	if (tx->echo_due) {
		number_send(qp, WIRE_MSG_CTS_ECHO, tx->granted);
		tx->echo_due = false;
	}
	if (tx->granted == tx->next || seq32_before(tx->next, tx->granted))
		repeat_stop(&tx->want);
	else if (!repeat_running(&tx->want))
		sdk_repeat_start(&tx->want, qp, now);
	if (tx->want.at_ns <= now) {
		number_send(qp, WIRE_MSG_WANT, tx->granted);
		sdk_repeat_again(&tx->want, now);
	}
	if (tx->held)
		held_service(qp);
	if (rx->hold_ns <= now)
		rx->hold_ns = 0; /* the caller may post again */
	ask_service(qp, now);
	if (tx->aborts && tx->abort.at_ns <= now) {
		aborts_send(qp);
		sdk_repeat_again(&tx->abort, now);
	}
}

void grant_last_words(struct sdr_qp *qp, uint64_t now)
{
	if (qp->state == SDR_QP_CONNECTED && qp->live->rx.cts_due)
		cts_send(qp, now);
}

uint64_t grant_deadline(const struct sdr_qp *qp)
{
	const struct sdk_tx *tx = &qp->live->tx;
	const struct sdk_rx *rx = &qp->live->rx;
	uint64_t at = u64_min(u64_min(tx->want.at_ns, tx->abort.at_ns), rx->cts.at_ns);

	at = u64_min(at, u64_min(tx->payload_ask.at_ns, tx->ask.at_ns));
	if (tx->held)
		at = u64_min(at, sdk_now(qp->ctx) + SDK_HELD_NS);
	if (rx->hold_ns)
		at = u64_min(at, rx->hold_ns);
	if (rx->agains)
		at = u64_min(at, rx->again_ns);
	return rx->cts_due ? u64_min(at, cts_due_ns(qp)) : at;
}

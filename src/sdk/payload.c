/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PAYLOAD: the size of a full packet, never guessed, fixed within a message. The sender
 * announces {from message n, size} until it is echoed and only then sends message n;
 * the receiver binds receives from n on with the new size, if nothing of them has arrived.
 *
 * One change is under way at a time; the next one waits for its echo. Both messages look
 * the same each time a size comes back, so what is newer is told by the numbers of their
 * datagrams: the receiver heeds no PAYLOAD that is older than the newest it has seen, the
 * sender no echo that may have been sent before it asked.
 *
 * In rocev2 mode it is the transport QPs' path MTU and does not change.
 */
#include "sdk/internal.h"

bool payload_settled(const struct sdr_qp *qp, uint32_t message)
{
	const struct sdk_tx *tx = &qp->live->tx;

	return !repeat_running(&tx->payload_ask) || seq32_before(message, tx->payload_from);
}

/*
 * The first message of the window from which on none has sent a packet. All below it have
 * ended or have their receives posted, or will never be sent: the receiver's receives to
 * come are all of the new size.
 */
static uint32_t first_unstarted(const struct sdr_qp *qp)
{
	const struct sdk_tx *tx = &qp->live->tx;
	uint32_t message = tx->next;

	while (message != tx->base) {
		const struct send_slot *slot = tx_slot(qp, message - 1);

		if (!slot->send || slot->send->payload)
			break;
		message--;
	}
	return message;
}

static void announce(struct sdr_qp *qp, uint64_t now)
{
	struct sdk_tx *tx = &qp->live->tx;

	tx->payload_from = first_unstarted(qp);
	/* A message that has not begun, below one that has: its receive keeps the old size. */
	for (uint32_t n = tx->base; n != tx->payload_from; n++) {
		struct sdr_send *send = tx_slot(qp, n)->send;

		if (send && !send->planned)
			send->planned = tx->payload;
	}
	tx->payload = tx->payload_wish;
	tx->payload_seen = qp->live->ctrl_highest;
	sdk_repeat_start(&tx->payload_ask, qp, now);
	tx->payload_ask.at_ns = now; /* the first at once */
	sdk_qp_dirty(qp);
}

void payload_change(struct sdr_qp *qp, uint32_t payload, uint64_t now)
{
	struct sdk_tx *tx = &qp->live->tx;

	if (sdk_is_rocev2(qp->ctx))
		return;
	tx->payload_wish = payload;
	if (payload != tx->payload && !repeat_running(&tx->payload_ask))
		announce(qp, now);
}

static int payload_queue(struct sdr_qp *qp, uint8_t type, uint32_t from, uint32_t size)
{
	struct wire_payload msg = {.from = from, .size = size};
	uint8_t body[8];
	int len = wire_payload_put(body, sizeof(body), &msg);

	SDR_ASSERT(len > 0);
	return ctrl_queue(qp, type, body, (size_t)len, SDR_CHANNEL_ANY, 0);
}

void payload_service(struct sdr_qp *qp, uint64_t now)
{
	struct sdk_tx *tx = &qp->live->tx;
	struct sdk_rx *rx = &qp->live->rx;

	if (tx->payload_ask.at_ns <= now) {
		(void)payload_queue(qp, WIRE_MSG_PAYLOAD, tx->payload_from, tx->payload);
		sdk_repeat_again(&tx->payload_ask, now);
	}
	/* An echo that finds no room is asked for again. */
	if (rx->payload_echo_due)
		(void)payload_queue(qp, WIRE_MSG_PAYLOAD_ECHO, rx->payload_from, rx->payload);
	rx->payload_echo_due = false;
}

void payload_on_payload(struct sdr_qp *qp, const struct wire_payload *msg, uint64_t number)
{
	struct sdk_rx *rx = &qp->live->rx;
	int32_t ahead = (int32_t)(msg->from - rx->base);

	/* It may be behind: a receive was completed before its message began. */
	if (sdk_is_rocev2(qp->ctx) || msg->size < SDK_PAYLOAD_MIN ||
	    msg->size > qp->ctx->caps.max_payload_bytes || ahead > (int32_t)SDR_MAX_MESSAGES) {
		sdk_count(qp->ctx, SDR_CTR_ctrl_malformed);
		return;
	}
	if (number < rx->payload_number)
		return;
	rx->payload_number = number;
	rx->payload_from = msg->from;
	rx->payload = msg->size;
	rx->payload_echo_due = true;
	for (uint32_t n = ahead < 0 ? rx->base : msg->from; seq32_before(n, rx->next); n++) {
		struct sdr_recv *recv = rx_recv(qp, n);

		if (recv->state == RECV_POSTED && !recv->error && recv->payload != msg->size)
			sdk_rx_rebind(qp, recv, msg->size);
	}
}

void payload_on_echo(struct sdr_qp *qp, const struct wire_payload *msg, uint64_t number,
		     uint64_t now)
{
	struct sdk_tx *tx = &qp->live->tx;

	if (!repeat_running(&tx->payload_ask) || msg->from != tx->payload_from ||
	    msg->size != tx->payload || number <= tx->payload_seen)
		return;
	repeat_stop(&tx->payload_ask);
	if (tx->payload_wish != tx->payload)
		announce(qp, now);
}

int sdr_qp_payload_set(struct sdr_qp *qp, uint32_t payload_bytes)
{
	uint32_t most = qp->live ? qp->payload_max : qp->ctx->caps.max_payload_bytes;

	if (payload_bytes < SDK_PAYLOAD_MIN || payload_bytes > most)
		return -EINVAL;
	payload_bytes = sdk_payload_floor(qp->ctx, payload_bytes);
	if (!payload_bytes ||
	    (qp->live && sdk_is_rocev2(qp->ctx) && payload_bytes != qp->live->tx.payload))
		return -EINVAL;
	if (qp->state == SDR_QP_ERROR)
		return qp->error;
	if (qp->live)
		payload_change(qp, payload_bytes, sdk_now(qp->ctx));
	else
		qp->attr.max_payload_bytes = payload_bytes; /* goes into the connection info */
	return 0;
}

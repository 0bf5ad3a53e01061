/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PAYLOAD: the size of a full packet, never guessed, fixed within a message. The sender
 * announces {from message n, size} until it is echoed and only then sends message n;
 * the receiver binds receives from n on with the new size. One change is under way at a
 * time; a newer one replaces it for messages that have not started.
 */
#include "sdk/internal.h"

uint32_t payload_of_send(const struct sdr_qp *qp, uint32_t message)
{
	const struct sdk_tx *tx = &qp->live->tx;

	return seq32_before(message, tx->payload_from) ? tx->payload_before : tx->payload;
}

bool payload_settled(const struct sdr_qp *qp, uint32_t message)
{
	const struct sdk_tx *tx = &qp->live->tx;

	return !repeat_running(&tx->payload_ask) || seq32_before(message, tx->payload_from);
}

uint32_t payload_of_recv(const struct sdr_qp *qp, uint32_t message)
{
	const struct sdk_rx *rx = &qp->live->rx;

	return seq32_before(message, rx->payload_from) ? rx->payload_before : rx->payload;
}

/* The first message of the window that has sent no packet: changes may start there. */
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

int payload_change(struct sdr_qp *qp, uint32_t payload, uint64_t now)
{
	struct sdk_tx *tx = &qp->live->tx;
	uint32_t from = first_unstarted(qp);

	if (payload == tx->payload)
		return 0;
	if (!seq32_before(from, tx->payload_from) && !repeat_running(&tx->payload_ask))
		tx->payload_before = tx->payload;
	tx->payload_from = from;
	tx->payload = payload;
	sdk_repeat_start(&tx->payload_ask, qp, now);
	tx->payload_ask.at_ns = now; /* the first at once */
	sdk_qp_dirty(qp);
	return 0;
}

void payload_service(struct sdr_qp *qp, uint64_t now)
{
	struct sdk_tx *tx = &qp->live->tx;
	struct sdk_rx *rx = &qp->live->rx;
	uint8_t body[8];

	if (tx->payload_ask.at_ns <= now) {
		struct wire_payload msg = {.from = tx->payload_from, .size = tx->payload};

		if (wire_payload_put(body, sizeof(body), &msg) > 0)
			(void)ctrl_queue(qp, WIRE_MSG_PAYLOAD, body, sizeof(body), SDR_CHANNEL_ANY,
					 0);
		sdk_repeat_again(&tx->payload_ask, now);
	}
	if (rx->payload_echo_due) {
		struct wire_payload msg = {.from = rx->payload_from, .size = rx->payload};

		if (wire_payload_put(body, sizeof(body), &msg) > 0 &&
		    !ctrl_queue(qp, WIRE_MSG_PAYLOAD_ECHO, body, sizeof(body), SDR_CHANNEL_ANY, 0))
			rx->payload_echo_due = false;
	}
}

void payload_on_payload(struct sdr_qp *qp, const struct wire_payload *msg)
{
	struct sdk_rx *rx = &qp->live->rx;

	if (msg->size < SDK_PAYLOAD_MIN || msg->size > qp->ctx->caps.max_payload_bytes ||
	    msg->from - rx->base > 2 * qp->attr.messages) {
		sdk_count(qp->ctx, SDR_CTR_ctrl_malformed);
		return;
	}
	rx->payload_echo_due = true;
	sdk_qp_dirty(qp);
	if (msg->from == rx->payload_from && msg->size == rx->payload)
		return;
	if (seq32_before(msg->from, rx->payload_from)) {
		/* An older announcement than the one in force, or one that it replaced. */
		if (msg->size != rx->payload)
			rx->payload_echo_due = false;
		return;
	}
	if (msg->from != rx->payload_from)
		rx->payload_before = rx->payload;
	rx->payload_from = msg->from;
	rx->payload = msg->size;
	for (uint32_t n = msg->from; seq32_before(n, rx->next); n++) {
		struct sdr_recv *recv = rx_recv(qp, n);

		if (recv->state != RECV_POSTED || recv->payload == msg->size)
			continue;
		sdk_rx_unbind(qp, recv);
		recv->payload = msg->size;
		if (sdk_rx_bind(qp, recv))
			recv->error = -ENOMEM;
	}
}

void payload_on_echo(struct sdr_qp *qp, const struct wire_payload *msg)
{
	struct sdk_tx *tx = &qp->live->tx;

	if (msg->from != tx->payload_from || msg->size != tx->payload)
		return;
	repeat_stop(&tx->payload_ask);
	sdk_qp_dirty(qp);
}

int sdr_qp_payload_set(struct sdr_qp *qp, uint32_t payload_bytes)
{
	if (payload_bytes < SDK_PAYLOAD_MIN || payload_bytes > qp->ctx->caps.max_payload_bytes)
		return -EINVAL;
	if (!qp->live) {
		/* Not connected yet: it goes into the connection info. */
		qp->attr.max_payload_bytes = payload_bytes;
		return 0;
	}
	return payload_change(qp, payload_bytes, sdk_now(qp->ctx));
}

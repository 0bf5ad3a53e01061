/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends. A send takes the next number; once its receive is granted its payload and its
 * packets are fixed, and runs of packets go to the fabric: a one-shot's all by itself,
 * paced and dealt to the channels in trains; a stream's as the caller says.
 * Knows nothing of what arrived, but that the receiver finished.
 */
#include "sdk/internal.h"
#include <sched.h>

#define SEND_BLOCK 32u /* handles allocated together */

struct send_block {
	struct send_block *next;
	struct sdr_send send[SEND_BLOCK];
};

int sdk_tx_ready(struct sdr_qp *qp)
{
	struct sdk_tx *tx = &qp->live->tx;

	if (tx->slot)
		return 0;
	tx->slot = alloc_zeroed(qp->ctx->alloc, qp->attr.messages * sizeof(*tx->slot));
	return tx->slot ? 0 : -ENOMEM;
}

static struct sdr_send *handle_get(struct sdr_qp *qp)
{
	struct sdk_tx *tx = &qp->live->tx;
	struct sdr_send *send;

	if (!tx->free) {
		struct send_block *block = alloc_zeroed(qp->ctx->alloc, sizeof(*block));

		if (!block)
			return NULL;
		block->next = tx->blocks;
		tx->blocks = block;
		for (unsigned int i = 0; i < SEND_BLOCK; i++) {
			block->send[i].next = tx->free;
			tx->free = &block->send[i];
		}
	}
	send = tx->free;
	tx->free = send->next;
	memset(send, 0, sizeof(*send));
	send->qp = qp;
	return send;
}

void sdk_tx_fini(struct sdr_qp *qp)
{
	struct send_block *block = qp->live->tx.blocks;

	while (block) {
		struct send_block *next = block->next;

		alloc_free(qp->ctx->alloc, block);
		block = next;
	}
	alloc_free(qp->ctx->alloc, qp->live->tx.slot);
}

/* Older callers' structs end before it. */
static bool wr_sparse(const struct sdr_send_wr *wr)
{
	return wr->size >= offsetof(struct sdr_send_wr, sparse) + sizeof(wr->sparse) && wr->sparse;
}

static int send_new(struct sdr_qp *qp, const struct sdr_send_wr *wr, bool oneshot,
		    struct sdr_send **out)
{
	struct sdk_tx *tx;
	struct sdr_send *send;

	if (wr->remote_offset || (wr->length && !wr->addr) ||
	    (wr->opcode != SDR_OP_WRITE && wr->opcode != SDR_OP_WRITE_IMM) ||
	    (oneshot && wr_sparse(wr)))
		return -EINVAL;
	if (qp->state == SDR_QP_ERROR)
		return qp->error;
	if (!qp->live)
		return -ENOTCONN;
	tx = &qp->live->tx;
	if (tx->slot && tx->next - tx->base >= qp->attr.messages)
		return -EAGAIN;
	if (u64_div_up(wr->length, tx->payload_wish) > qp->max_pkts && !wr_sparse(wr))
		return -EMSGSIZE; /* a sparse one is cut to what its receive has room for */
	if (sdk_tx_ready(qp) || !(send = handle_get(qp)))
		return -ENOMEM;
	send->addr = wr->addr;
	send->mr = wr->mr;
	send->length = wr->length;
	send->imm = wr->opcode == SDR_OP_WRITE_IMM ? wr->imm : 0;
	send->cookie = wr->cookie;
	send->oneshot = oneshot;
	send->sparse = wr_sparse(wr);
	if (oneshot && wr->opcode == SDR_OP_WRITE_IMM && qp->imm_pkts > 1)
		send->imm_pkts = qp->imm_pkts;
	send->message = tx->next++;
	tx_slot(qp, send->message)->send = send;
	ping_used(qp, sdk_now(qp->ctx));
	sdk_qp_dirty(qp);
	*out = send;
	return 0;
}

static uint64_t pkts_of(uint64_t length, uint64_t recv_length, uint32_t payload)
{
	uint64_t pkts = u64_div_up(length, payload);

	/* Full packets only, and shorter than the receive: an empty one ends it. */
	if (length % payload == 0 && (length < recv_length || length == 0))
		pkts++;
	return pkts;
}

/* Fixes the packets of a granted send. 0; -SDR_E_TOO_LONG; -EMSGSIZE. */
static int pkts_fix(struct sdr_send *send, uint32_t payload)
{
	uint64_t most = send->qp->max_pkts, pkts;

	if (send->sparse) {
		/* All full: none that is shorter would end the message. */
		pkts = u64_min(u64_min(send->length, send->recv_length) / payload, most);
		send->length = pkts * payload;
	} else if (send->length > send->recv_length) {
		return -SDR_E_TOO_LONG;
	} else {
		pkts = pkts_of(send->length, send->recv_length, payload);
	}
	if (pkts > most)
		return -EMSGSIZE; /* the payload has become smaller since it was posted */
	send->payload = payload;
	send->pkts = (uint32_t)pkts;
	return 0;
}

static void cancel(struct sdr_send *send, int error)
{
	struct sdk_tx *tx = &send->qp->live->tx;
	struct send_slot *slot;

	if (send->error)
		return;
	send->error = error;
	send->ended = true;
	if (send->flags & SEND_DONE)
		return;
	slot = tx_slot(send->qp, send->message);
	slot->flags |= SEND_ABORT;
	if (tx->aborts++ == 0)
		sdk_repeat_start(&tx->abort, send->qp, sdk_now(send->qp->ctx));
	tx->abort.at_ns = 0; /* the first at once */
	sdk_qp_dirty(send->qp);
}

static bool is_granted(const struct sdr_send *send)
{
	return send->flags & SEND_DONE || seq32_before(send->message, send->qp->live->tx.granted);
}

/* 0 when packets may go; fixes payload and packet count the first time. */
static int send_prepare(struct sdr_send *send)
{
	struct sdr_qp *qp = send->qp;
	int err;

	if (send->error)
		return send->error;
	if (qp->state == SDR_QP_ERROR)
		return qp->error;
	if (send->flags & SEND_DONE)
		return -SDR_E_EARLY;
	if (tx_slot(qp, send->message)->flags & SEND_HELD)
		return -EAGAIN; /* it has ended: no more for the device to read */
	if (send->payload)
		return 0;
	if (qp->state != SDR_QP_CONNECTED || !qp->live->proven || !is_granted(send) ||
	    !payload_settled(qp, send->message))
		return -EAGAIN;
	send->recv_length = tx_slot(qp, send->message)->recv_length;
	err = pkts_fix(send, send->planned ? send->planned : qp->live->tx.payload);
	if (err)
		cancel(send, err);
	return err;
}

static uint32_t run_max(const struct sdr_qp *qp, uint32_t payload)
{
	uint32_t fit = qp->ctx->caps.max_train_bytes /
		       (payload + WIRE_DATA_HDR_BYTES + WIRE_TRAILER_BYTES + 3);

	return (uint32_t)u64_max(1, u64_min(fit, FABRIC_RUN_MAX));
}

/* The next channel in turn that has an address. */
static uint32_t channel_next(struct sdr_qp *qp)
{
	struct sdk_live *live = qp->live;

	for (uint32_t i = 0; i < qp->channels; i++) {
		uint32_t c = live->tx.channel_turn++ % qp->channels;

		if (live->channel[c].answered)
			return c;
	}
	return live->ctrl_channel;
}

/* Hands packets [first, first + count) to the fabric: count, -EAGAIN or an error. */
static int run_post(struct sdr_send *send, uint32_t first, uint32_t count, uint32_t channel,
		    uint32_t *first_psn)
{
	struct sdr_qp *qp = send->qp;
	struct send_slot *slot = tx_slot(qp, send->message);
	uint64_t offset = (uint64_t)first * send->payload;
	struct fabric_write w = {
		.qp = qp->fqp,
		.channel = channel,
		.message = send->message,
		.imm = send->imm,
		.addr = send->length ? send->addr + u64_min(offset, send->length) : NULL,
		.offset = offset,
		.payload_bytes = send->payload,
		.count = count,
	};
	uint64_t last = offset + (uint64_t)(count - 1) * send->payload;
	int taken;

	w.last_bytes = (uint32_t)u64_min(send->payload, u64_sub_floor(send->length, last));
	w.key = slot->key;
	if (send->mr && qp->ctx->caps.flags & FABRIC_CAP_ZERO_COPY) {
		w.mr = send->mr->fabric_mr;
		slot->flags |= SEND_DEVICE;
	}
	taken = qp->ctx->fabric->ops->post(qp->ctx->fabric, &w, 1);
	if (taken <= 0) {
		if (taken == 0)
			sdk_list_add(qp, SDK_BLOCKED);
		return taken ? taken : -EAGAIN;
	}
	*first_psn = w.first_psn;
	qp->live->tx.posted = true;
	if (qp->live->tx.ask.wait_ns > sdk_patience(qp))
		sdk_qp_dirty(qp); /* it had backed off: see ask_service() */
	qp->live->posted_ns = sdk_now(qp->ctx);
	return (int)count;
}

bool sdk_tx_busy(const struct sdr_qp *qp, uint32_t message)
{
	return qp->ctx->caps.flags & FABRIC_CAP_ZERO_COPY &&
	       qp->ctx->fabric->ops->tx_busy(qp->fqp, message);
}

/* No byte of the buffer is read any more when it returns; a device takes microseconds. */
static void tx_settle(const struct sdr_send *send)
{
	if (send->mr && !(send->flags & SEND_DONE))
		while (sdk_tx_busy(send->qp, send->message))
			(void)sched_yield();
}

/* ---- one-shots ---- */

static void pace_refill(struct sdr_qp *qp, const struct sdr_send *send, uint64_t now)
{
	struct sdk_tx *tx = &qp->live->tx;
	/* At most 100 us of the rate or one packet at once, so that queues stay short. */
	double rate = (double)qp->attr.rate_bps / 8e9;
	double most = rate * 100e3;

	tx->tokens_bytes += rate * (double)u64_sub_floor(now, tx->tokens_ns);
	tx->tokens_ns = now;
	if (most < send->payload)
		most = send->payload;
	if (tx->tokens_bytes > most)
		tx->tokens_bytes = most;
}

/* Packets of the head that may go now. */
static uint32_t pace_allows(const struct sdr_qp *qp, const struct sdr_send *send)
{
	const struct sdk_tx *tx = &qp->live->tx;

	if (!qp->attr.rate_bps)
		return UINT32_MAX;
	if (tx->tokens_bytes < send->payload)
		return 0;
	if (tx->tokens_bytes >= (double)FABRIC_RUN_MAX * send->payload)
		return FABRIC_RUN_MAX;
	return (uint32_t)(tx->tokens_bytes / send->payload);
}

static void line_pop(struct sdk_tx *tx)
{
	struct sdr_send *send = tx->line;

	tx->line = send->next;
	if (!tx->line)
		tx->line_tail = NULL;
	send->next = NULL;
	send->in_line = false;
	send->ended = true;
}

/* Frees a released handle. Its number stays taken until the receiver has finished it. */
static void handle_put(struct sdr_send *send)
{
	struct sdk_tx *tx = &send->qp->live->tx;
	struct send_slot *slot = tx_slot(send->qp, send->message);

	SDR_ASSERT(slot->send == send || send->flags & SEND_DONE);
	if (slot->send == send)
		slot->send = NULL;
	send->next = tx->free;
	tx->free = send;
}

static void line_done(struct sdk_tx *tx)
{
	struct sdr_send *send = tx->line;

	line_pop(tx);
	if (send->released)
		handle_put(send);
}

/* A train of the line's head. -EAGAIN: later; another error: never. */
static int line_send(struct sdr_qp *qp, uint64_t now)
{
	struct sdk_tx *tx = &qp->live->tx;
	struct sdr_send *send = tx->line;
	uint32_t count, psn;
	int err;

	if (qp->attr.rate_bps)
		pace_refill(qp, send, now);
	if (send->next_pkt < send->pkts)
		count = (uint32_t)u64_min(send->pkts - send->next_pkt, run_max(qp, send->payload));
	else
		count = 1; /* empty: a part of the immediate */
	count = (uint32_t)u64_min(count, pace_allows(qp, send));
	if (!count)
		return -EAGAIN;
	err = run_post(send, send->next_pkt, count, channel_next(qp), &psn);
	if (err == -EAGAIN || err == -ENOTCONN) {
		tx->blocked = true;
		return -EAGAIN;
	}
	if (err < 0) {
		cancel(send, err);
		return err;
	}
	tx->tokens_bytes -= (double)count * send->payload;
	send->next_pkt += count;
	if (send->next_pkt >= u64_max(send->pkts, send->imm_pkts))
		line_done(tx);
	return 0;
}

void sdk_tx_pump(struct sdr_qp *qp, uint64_t now)
{
	struct sdk_tx *tx = &qp->live->tx;

	tx->blocked = tx->more = false;
	for (unsigned int runs = 0; tx->line && runs < SDK_PUMP_RUNS;) {
		struct sdr_send *send = tx->line;
		int err = send_prepare(send);

		if (err == -EAGAIN)
			return;
		if (!err) {
			err = line_send(qp, now);
			runs++;
		}
		if (err == -EAGAIN)
			return;
		if (err)
			line_done(tx); /* cancelled, refused, or finished by the receiver */
	}
	tx->more = tx->line != NULL;
}

uint64_t sdk_tx_deadline(const struct sdr_qp *qp, uint64_t now)
{
	const struct sdk_tx *tx = &qp->live->tx;
	const struct sdr_send *send = tx->line;
	double lack;

	if (tx->more)
		return now;
	if (tx->blocked)
		return now + SDK_RETRY_NS;
	if (!send || !send->payload || !qp->attr.rate_bps)
		return UINT64_MAX;
	lack = send->payload - tx->tokens_bytes;
	if (lack <= 0)
		return now;
	return now + 1 + (uint64_t)(lack * 8e9 / (double)qp->attr.rate_bps);
}

int sdr_send_post(struct sdr_qp *qp, const struct sdr_send_wr *wr, struct sdr_send **out)
{
	struct sdk_tx *tx;
	int err = send_new(qp, wr, true, out);

	if (err)
		return err;
	tx = &qp->live->tx;
	if (tx->line_tail)
		tx->line_tail->next = *out;
	else
		tx->line = *out;
	tx->line_tail = *out;
	(*out)->in_line = true;
	if (tx->line == *out)
		sdk_tx_pump(qp, qp->live->used_ns);
	return 0;
}

/* ---- streams ---- */

int sdr_send_stream_start(struct sdr_qp *qp, const struct sdr_send_wr *wr, struct sdr_send **out)
{
	return send_new(qp, wr, false, out);
}

/* Packets that [offset, offset + length) stands for, or 0 if it does not fit the grid. */
static uint32_t continue_pkts(const struct sdr_send *send, uint64_t offset, uint64_t length)
{
	uint64_t end = offset + length;

	if (offset % send->payload || end < length || end > send->length)
		return 0;
	if (length == 0)
		return offset == send->length && offset / send->payload + 1 == send->pkts;
	if (end % send->payload && end != send->length)
		return 0;
	return (uint32_t)u64_min(u64_div_up(length, send->payload),
				 run_max(send->qp, send->payload));
}

int64_t sdr_send_stream_continue(struct sdr_send *send, uint64_t offset, uint64_t length,
				 struct sdr_continue_attr *attr)
{
	struct sdr_qp *qp = send->qp;
	uint32_t channel = attr ? attr->channel : SDR_CHANNEL_ANY;
	uint32_t count, psn = 0;
	int err;

	if (send->oneshot)
		return -EINVAL;
	err = send_prepare(send);
	if (err)
		return err;
	if (send->ended)
		return -EINVAL;
	count = continue_pkts(send, offset, length);
	if (!count || (channel != SDR_CHANNEL_ANY && channel >= qp->channels))
		return -EINVAL;
	if (channel == SDR_CHANNEL_ANY)
		channel = channel_next(qp);
	err = run_post(send, (uint32_t)(offset / send->payload), count, channel, &psn);
	if (err < 0)
		return err;
	if (attr) {
		attr->first_psn = psn;
		attr->pkts = count;
		attr->sent_channel = channel;
	}
	return (int64_t)u64_min(length, (uint64_t)count * send->payload);
}

int sdr_send_stream_end(struct sdr_send *send)
{
	if (send->oneshot)
		return -EINVAL;
	send->ended = true;
	return send->error;
}

/* ---- both ---- */

static int send_verdict(const struct sdr_send *send)
{
	if (send->error)
		return send->error;
	if (!send->ended && send->qp->state == SDR_QP_ERROR)
		return send->qp->error;
	return send->ended || send->flags & SEND_DONE;
}

int sdr_send_poll(const struct sdr_send *send)
{
	int verdict = send_verdict(send);

	/* Whatever it is, the buffer is the caller's with it. */
	if (verdict && send->mr && !(send->flags & SEND_DONE) &&
	    sdk_tx_busy(send->qp, send->message))
		return 0;
	return verdict;
}

int sdr_send_query(struct sdr_send *send, struct sdr_send_info *info)
{
	bool granted = is_granted(send);
	/* Fixes what the caller is about to read. A refusal shows in the poll. */
	bool fixed = granted && send_prepare(send) == 0;

	struct sdr_send_info out = {
		.size = info->size,
		.message = send->message,
		.granted = granted,
		.remote_done = !!(send->flags & SEND_DONE),
		.remote_early = !!(send->flags & SEND_EARLY),
		.cancelled = send->error == -ECANCELED,
		.payload_bytes = send->payload,
		.pkts = send->pkts,
		.length = send->length,
		.cookie = send->cookie,
	};

	out.recv_length = send->recv_length;
	if (!fixed && granted && !out.remote_done)
		out.recv_length = tx_slot(send->qp, send->message)->recv_length;
	memcpy(info, &out, u64_min(info->size, sizeof(out)));
	return 0;
}

int sdr_send_cancel(struct sdr_send *send)
{
	if (send->flags & SEND_DONE)
		return -EALREADY;
	cancel(send, -ECANCELED);
	tx_settle(send);
	if (send->oneshot)
		sdk_tx_pump(send->qp, sdk_now(send->qp->ctx)); /* it may have been first in line */
	return 0;
}

void sdr_send_release(struct sdr_send *send)
{
	if (!send)
		return;
	send->released = true;
	if (!send->in_line) {
		tx_settle(send);
		handle_put(send);
	}
	/* Else it is still to be sent, stays in its slot to hear of its end, and the line frees it.
	 */
}

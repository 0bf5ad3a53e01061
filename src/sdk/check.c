/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A context's invariants, recomputed from scratch: those that the structs of internal.h number,
 * and what its lists and heap have to agree on. For tests, which call it between two calls of
 * the library; without workers, so nobody is inside a slot. Empty in release builds.
 */
#include "sdk/internal.h"

static bool in_window(uint32_t number, uint32_t from, uint32_t to)
{
	return !seq32_before(number, from) && seq32_before(number, to);
}

static void check_send(const struct sdr_qp *qp, uint32_t number)
{
	const struct sdk_tx *tx = &qp->live->tx;
	const struct send_slot *slot = tx_slot(qp, number);
	const struct sdr_send *send = slot->send;

	if (in_window(number, tx->base, tx->granted))
		SDR_ASSERT(slot->flags & (SEND_GRANTED | SEND_DONE));
	if (!send || !in_window(number, tx->base, tx->next))
		return;
	SDR_ASSERT(send->qp == qp && send->message == number);
	SDR_ASSERT(!send->pkts || send->payload);
	SDR_ASSERT(send->next_pkt <= u64_max(send->pkts, send->imm_pkts));
}

static void check_tx(const struct sdr_qp *qp)
{
	const struct sdk_tx *tx = &qp->live->tx;
	uint32_t n = qp->attr.messages, aborts = 0, held = 0;

	if (!tx->slot)
		return;
	SDR_ASSERT(tx->next - tx->base <= n && tx->granted - tx->base <= n);
	for (uint32_t i = 0; i < n; i++)
		check_send(qp, tx->base + i);
	for (uint32_t at = tx->base; at != tx->next; at++) {
		uint32_t flags = tx_slot(qp, at)->flags;

		aborts += (flags & SEND_ABORT) && !(flags & SEND_DONE);
		held += !!(flags & SEND_HELD);
	}
	SDR_ASSERT(aborts == tx->aborts && held == tx->held);
	SDR_ASSERT(tx->base == tx->next || !(tx_slot(qp, tx->base)->flags & SEND_DONE));
	for (const struct sdr_send *send = tx->line; send; send = send->next) {
		SDR_ASSERT(send->in_line && send->oneshot);
		SDR_ASSERT(send->next || send == tx->line_tail);
	}
	(void)aborts;
	(void)held;
}

static void check_rx(const struct sdr_qp *qp)
{
	const struct sdk_rx *rx = &qp->live->rx;

	if (!rx->table)
		return;
	SDR_ASSERT(rx->next - rx->base <= qp->attr.messages);
	SDR_ASSERT(rx->base == rx->next || rx_recv(qp, rx->base)->state == RECV_POSTED);
	SDR_ASSERT(!seq32_before(rx->next, rx->echoed));
	for (uint32_t at = rx->base; at != rx->next; at++) {
		const struct sdr_recv *recv = rx_recv(qp, at);

		SDR_ASSERT(recv->state != RECV_FREE);
		if (recv->state != RECV_POSTED)
			continue;
		SDR_ASSERT(recv->qp == qp && recv->message == at);
		SDR_ASSERT(rx_slot_check(rx_slot_of(rx->table, at), true) == 0);
	}
}

static void check_qp(const struct sdr_qp *qp)
{
	uint32_t n = 0;

	if (!qp->live) {
		SDR_ASSERT(qp->state == SDR_QP_INIT || qp->state == SDR_QP_ERROR);
		return;
	}
	check_tx(qp);
	check_rx(qp);
	SDR_ASSERT(qp->live->queue_len <= SDK_CTRL_QUEUE_BYTES);
	for (const struct ctrl_in *in = qp->live->in; in; in = in->next)
		n++;
	SDR_ASSERT(n == qp->live->in_count && n <= SDK_CTRL_IN_MAX);
	(void)n;
}

static void check_list(const struct sdr_ctx *ctx, enum qp_list_id which)
{
	const struct sdr_qp *before = NULL;

	for (const struct sdr_qp *qp = ctx->list[which].head; qp; qp = qp->link[which].next) {
		SDR_ASSERT(qp->ctx == ctx && qp->link[which].in);
		SDR_ASSERT(qp->link[which].prev == before);
		before = qp;
	}
	SDR_ASSERT(ctx->list[which].tail == before);
}

void sdk_ctx_check(const struct sdr_ctx *ctx)
{
	heap_check(&ctx->timers);
	for (int which = 0; which < SDK_LISTS; which++)
		check_list(ctx, (enum qp_list_id)which);
	for (const struct sdr_qp *qp = ctx->qps; qp; qp = qp->next) {
		SDR_ASSERT(qp->ctx == ctx && (!qp->next || qp->next->prev == qp));
		SDR_ASSERT(!qp->serving);
		check_qp(qp);
	}
}

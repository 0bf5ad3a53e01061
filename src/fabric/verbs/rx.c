/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receiving: completions become bits. A NIC tells {queue pair, immediate, length} of a packet
 * whose bytes it has placed already; consecutive completions of one message go in as one run.
 *
 * The length is the device's word, slot and index are the sender's: a lie about them sets the
 * wrong bits of its own message, but cannot reach another's memory, which has another key.
 */
#include "fabric/verbs/verbs_int.h"
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

/* Packets that follow each other in one message, on one data queue pair. */
struct run {
	struct verbs_dqp *dq;
	uint32_t key, first, count, last_len;
	uint32_t fragment[RX_WORD_PKTS];
};

struct pass {
	struct verbs_fabric *f;
	uint64_t now_ns;
	struct run run; /* count 0: none */
};

static void pend(struct verbs_fabric *f, struct verbs_qp *qp, uint32_t what)
{
	qp->pend |= what;
	verbs_todo(f, qp);
}

static void newest(struct pass *p, struct verbs_chan *ch, uint32_t key, uint32_t packet)
{
	ch->facts.packet_valid = true;
	ch->facts.newest_message = key;
	ch->facts.newest_packet = packet;
	ch->newest_ns = p->now_ns;
}

/* An admitted run: its bytes have landed. */
static void commit(struct pass *p, struct rx_slot *slot, struct rx_worker *w, uint32_t first,
		   uint32_t count, uint32_t last_len, const uint32_t *fragment)
{
	struct verbs_qp *qp = p->run.dq->owner;
	struct verbs_chan *ch = &qp->chan[p->run.dq->channel];
	uint32_t fresh;
	uint64_t mask, bytes;

	for (uint32_t i = 0; i < count; i++)
		(void)rx_imm_add(slot, first + i, fragment[i]);
	mask = rx_commit_hw(slot, w, first, count, last_len);
	fresh = rx_popcount(mask);
	bytes = (uint64_t)fresh * slot->payload;
	if (mask >> (first + count - 1) % RX_WORD_PKTS & 1)
		bytes -= slot->payload - last_len;
	ch->facts.received_pkts += fresh;
	ch->facts.duplicate_pkts += count - fresh;
	p->f->counter[SDR_CTR_rx_pkts] += fresh;
	p->f->counter[SDR_CTR_rx_bytes] += bytes;
	p->f->counter[SDR_CTR_rx_duplicate] += count - fresh;
	newest(p, ch, p->run.key, first + count - 1);
	if (fresh > 0)
		pend(p->f, qp, VERBS_PEND_READY);
}

/* A zero-length packet past the end: it has no bit, but was sent, and has come once. */
static void imm_only(struct pass *p, struct rx_slot *slot, uint32_t first, uint32_t fragment)
{
	struct verbs_qp *qp = p->run.dq->owner;
	struct fabric_channel_facts *facts = &qp->chan[p->run.dq->channel].facts;

	if (!rx_imm_add(slot, first, fragment)) {
		facts->duplicate_pkts++;
		p->f->counter[SDR_CTR_rx_duplicate]++;
		return;
	}
	facts->received_pkts++;
	p->f->counter[SDR_CTR_rx_pkts]++;
	pend(p->f, qp, VERBS_PEND_READY);
}

static void admit(struct pass *p, struct rx_slot *slot, struct rx_worker *w, uint32_t first,
		  uint32_t count, uint32_t last_len, const uint32_t *fragment)
{
	int verdict = rx_admit(slot, w, first, count, last_len);

	if (verdict == RX_OK) {
		commit(p, slot, w, first, count, last_len, fragment);
	} else if (count > 1) {
		/* One bad packet does not take its neighbours along. */
		for (uint32_t i = 0; i < count; i++)
			admit(p, slot, w, first + i, 1, i + 1 == count ? last_len : slot->payload,
			      &fragment[i]);
	} else if (verdict == RX_IMM_ONLY) {
		imm_only(p, slot, first, fragment[0]);
	} else {
		p->run.dq->owner->chan[p->run.dq->channel].facts.bad_pkts++;
		p->f->counter[SDR_CTR_rx_range]++;
	}
}

static void run_flush(struct pass *p)
{
	struct run *run = &p->run;
	struct verbs_qp *qp;
	struct rx_worker *w;
	struct rx_slot *slot;

	if (run->count == 0)
		return;
	qp = run->dq->owner;
	w = qp->table ? &qp->table->workers[0] : NULL;
	if (w == NULL || rx_enter(qp->table, w, run->key, &slot) != RX_OK) {
		/* It was on its way through the completion queue when the fence came. */
		qp->chan[run->dq->channel].facts.late_pkts += run->count;
		p->f->counter[SDR_CTR_rx_late] += run->count;
		qp->late_channel = run->dq->channel;
		qp->late_message = run->key;
		pend(p->f, qp, VERBS_PEND_LATE);
	} else {
		admit(p, slot, w, run->first, run->count, run->last_len, run->fragment);
		rx_leave(w);
	}
	run->count = 0;
}

static void data_packet(struct pass *p, struct verbs_dqp *dq, const struct ibv_wc *wc)
{
	struct verbs_qp *qp = dq->owner;
	struct run *run = &p->run;
	uint32_t slot, packet, fragment, key;

	if (wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM || !qp->connected) {
		p->f->counter[SDR_CTR_rx_malformed]++;
		return;
	}
	wire_imm_unpack(qp->split, ntohl(wc->imm_data), &slot, &packet, &fragment);
	key = dq->generation * qp->peer.messages + slot;
	if (slot >= qp->peer.messages) {
		qp->chan[dq->channel].facts.bad_pkts++;
		p->f->counter[SDR_CTR_rx_range]++;
		return;
	}
	if (run->count > 0 &&
	    (run->dq != dq || run->key != key || packet != run->first + run->count ||
	     packet % RX_WORD_PKTS == 0 || run->last_len != qp->peer.payload_bytes))
		run_flush(p);
	if (run->count == 0) {
		run->dq = dq;
		run->key = key;
		run->first = packet;
	}
	run->fragment[run->count++] = fragment;
	run->last_len = wc->byte_len;
}

/* Control. */

int verbs_ctrl_repost(struct verbs_qp *qp, uint32_t buf)
{
	struct ibv_sge sge = {.addr = (uintptr_t)qp->ctrl_mem + (size_t)buf * VERBS_CTRL_BUF_BYTES,
			      .length = VERBS_GRH_BYTES + VERBS_CTRL_MSG_BYTES,
			      .lkey = qp->ctrl_mr->lkey};
	struct ibv_recv_wr *bad,
		wr = {.wr_id = verbs_wr_id(VERBS_WR_CTRL_RECV, qp->serial, 0, qp->index, buf),
		      .sg_list = &sge,
		      .num_sge = 1};

	int rc = verbs_err(ibv_post_recv(qp->ud, &wr, &bad));

	if (rc == 0)
		qp->ctrl_posted |= UINT64_C(1) << buf;
	return rc;
}

/* Its buffer waits in ctrl_in[] until the event is taken. */
static void ctrl_packet(struct pass *p, struct verbs_qp *qp, uint32_t buf, const struct ibv_wc *wc)
{
	const uint32_t head = VERBS_GRH_BYTES + WIRE_ROCEV2_CTRL_PREFIX_BYTES;
	const uint8_t *bytes = qp->ctrl_mem + (size_t)buf * VERBS_CTRL_BUF_BYTES;
	uint32_t prefix = wc->byte_len >= head ? get_be32(bytes + VERBS_GRH_BYTES) : UINT32_MAX;
	uint32_t channel = prefix >> 24;

	if ((prefix & 0xffffff) != 0 ||
	    channel >= (qp->connected ? qp->peer.channels : qp->channels) ||
	    wc->byte_len > head + FABRIC_ROCEV2_CTRL_MAX ||
	    (qp->connected && wc->src_qp != qp->peer.qpn)) {
		p->f->counter[SDR_CTR_rx_malformed]++;
		if (verbs_ctrl_repost(qp, buf) != 0)
			qp->ud_dead = p->f->dead_any = true;
		return;
	}
	qp->ctrl_in[qp->ctrl_in_head++ % VERBS_CTRL_RX] = (struct verbs_ctrl_in){
		.buf = buf, .channel = channel, .len = wc->byte_len - head, .at_ns = p->now_ns};
	p->f->counter[SDR_CTR_rx_ctrl]++;
	verbs_todo(p->f, qp);
}

/* Completions. */

static void failed(struct verbs_fabric *f, const struct ibv_wc *wc, bool *dead)
{
	*dead = f->dead_any = true;
	if (wc->status != IBV_WC_WR_FLUSH_ERR)
		f->counter[SDR_CTR_tx_errors]++;
}

static void ctrl_completion(struct pass *p, struct verbs_qp *qp, const struct verbs_wr *wr,
			    const struct ibv_wc *wc)
{
	if (wr->serial != qp->serial)
		return;
	if (wr->kind == VERBS_WR_CTRL_RECV)
		qp->ctrl_posted &= ~(UINT64_C(1) << wr->run % VERBS_CTRL_RX);
	if (wc->status != IBV_WC_SUCCESS)
		failed(p->f, wc, &qp->ud_dead);
	if (wr->kind == VERBS_WR_CTRL_SEND) {
		qp->ctrl_done++;
		verbs_room(p->f);
	} else if (wc->status == IBV_WC_SUCCESS) {
		ctrl_packet(p, qp, wr->run % VERBS_CTRL_RX, wc);
	}
}

static void data_completion(struct pass *p, struct verbs_dqp *dq, const struct verbs_wr *wr,
			    const struct ibv_wc *wc)
{
	if (wr->serial != dq->serial)
		return;
	if (wc->status != IBV_WC_SUCCESS)
		failed(p->f, wc, &dq->dead);
	if (wr->kind == VERBS_WR_SEND) {
		verbs_tx_retire(dq, wr->run);
		return;
	}
	dq->rq_posted--;
	if (wc->status == IBV_WC_SUCCESS)
		data_packet(p, dq, wc);
	if (!dq->dead && verbs_refill_dqp(dq) < 0)
		dq->dead = p->f->dead_any = true;
}

static void completion(struct pass *p, const struct ibv_wc *wc)
{
	struct verbs_wr wr = verbs_wr_parse(wc->wr_id);
	struct verbs_qp *qp = wr.index < p->f->attr.max_qps ? p->f->qps[wr.index] : NULL;

	if (qp == NULL)
		return; /* destroyed */
	if (wr.kind == VERBS_WR_CTRL_RECV || wr.kind == VERBS_WR_CTRL_SEND)
		ctrl_completion(p, qp, &wr, wc);
	else if (wr.dq < qp->channels * qp->generations)
		data_completion(p, &qp->dqp[wr.dq], &wr, wc);
}

uint32_t verbs_poll_cq(struct verbs_fabric *f, struct verbs_cq *cq, uint32_t budget)
{
	struct pass p = {.f = f};
	uint32_t total = 0;
	int n;

	do {
		n = ibv_poll_cq(cq->cq, VERBS_POLL_BATCH, f->wc);
		if (n > 0)
			p.now_ns = verbs_now_ns();
		for (int i = 0; i < n; i++)
			completion(&p, &f->wc[i]);
		run_flush(&p);
		total += n > 0 ? (uint32_t)n : 0;
	} while (n == VERBS_POLL_BATCH && total < budget);
	return total;
}

/* Refilling. */

static uint32_t target(const struct verbs_dqp *dq)
{
	return dq->owner->bound[dq->generation] > 0
		       ? dq->owner->rq_depth
		       : (uint32_t)u64_min(VERBS_SHALLOW, dq->owner->rq_depth);
}

int verbs_refill_dqp(struct verbs_dqp *dq)
{
	struct verbs_fabric *f = verbs_owner(dq->owner);
	uint32_t left = verbs_refill(dq->rq_posted, target(dq));
	uint64_t id = verbs_wr_id(VERBS_WR_RECV, dq->serial, dq->number, dq->owner->index, 0);

	while (left > 0) {
		uint32_t n = (uint32_t)u64_min(left, VERBS_REFILL_MAX);
		struct ibv_recv_wr *bad;
		int rc;

		for (uint32_t i = 0; i < n; i++)
			f->recv_wr[i] = (struct ibv_recv_wr){
				.wr_id = id, .next = i + 1 < n ? &f->recv_wr[i + 1] : NULL};
		rc = ibv_post_recv(dq->qp, f->recv_wr, &bad);
		if (rc != 0)
			return verbs_err(rc);
		dq->rq_posted += n;
		left -= n;
	}
	return 0;
}

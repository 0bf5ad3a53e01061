/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending: a run becomes linked work requests, one packet each, of which only the last is
 * signalled. Memory without an mr is copied into the bounce ring first.
 */
#include "fabric/verbs/verbs_int.h"
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

/* The bounce ring. */

/* Bytes in one piece, or NULL: not enough room now. *entry is for verbs_run. */
static uint8_t *bounce_take(struct verbs_bounce *b, uint64_t len, uint32_t *entry)
{
	uint64_t at, skip;

	/* Empty: from the beginning, or a run as long as the ring might never fit. */
	if (b->run_head == b->run_tail)
		b->head = b->tail = 0;
	at = b->head % b->bytes;
	skip = at + len > b->bytes ? b->bytes - at : 0;
	if (b->head + skip + len - b->tail > b->bytes ||
	    b->run_head - b->run_tail == VERBS_BOUNCE_RUNS)
		return NULL;
	b->head += skip + len;
	b->run[b->run_head % VERBS_BOUNCE_RUNS] = (struct verbs_bounce_run){.end = b->head};
	*entry = b->run_head % VERBS_BOUNCE_RUNS + 1;
	b->run_head++;
	return b->mem + (b->head - len) % b->bytes;
}

static void bounce_done(struct verbs_bounce *b, uint32_t entry)
{
	b->run[entry - 1].done = true;
	while (b->run_tail != b->run_head && b->run[b->run_tail % VERBS_BOUNCE_RUNS].done) {
		b->tail = b->run[b->run_tail % VERBS_BOUNCE_RUNS].end;
		b->run_tail++;
	}
}

/* The end of runs. */

static void run_over(struct verbs_dqp *dq)
{
	struct verbs_fabric *f = verbs_owner(dq->owner);
	struct verbs_run *run = &dq->run[dq->run_tail % f->attr.sq_depth];

	dq->run_tail++;
	dq->sq_used -= run->wrs;
	if (run->key != VERBS_NO_KEY)
		dq->owner->tx_runs[run->key]--;
	if (run->bounce)
		bounce_done(&f->bounce, run->bounce);
	verbs_room(f);
}

void verbs_tx_retire(struct verbs_dqp *dq, uint32_t run)
{
	uint32_t upto = (run - dq->run_tail) & VERBS_RUN_MASK;

	if (upto >= dq->run_head - dq->run_tail)
		return; /* it is over already: one of the flushed requests of a run */
	for (uint32_t i = 0; i <= upto; i++)
		run_over(dq);
}

void verbs_tx_retire_all(struct verbs_dqp *dq)
{
	while (dq->run_tail != dq->run_head)
		run_over(dq);
}

bool verbs_tx_busy(struct fabric_qp *base, uint32_t message)
{
	struct verbs_qp *qp = verbs_qp_of(base);

	if (!qp->connected || qp->tx_runs[message & qp->key_mask] == 0)
		return false;
	(void)verbs_poll_cq(verbs_owner(qp), qp->cq, VERBS_POLL_BUDGET);
	verbs_revive(verbs_owner(qp)); /* ends what a dead queue pair will never complete */
	return qp->tx_runs[message & qp->key_mask] != 0;
}

/* Posting. */

static int check(const struct verbs_fabric *f, const struct fabric_write *w)
{
	const struct verbs_qp *qp = verbs_qp_of(w->qp);
	uint64_t first;

	if (w->count == 0 || w->count > FABRIC_RUN_MAX || w->channel >= qp->channels ||
	    w->last_bytes > w->payload_bytes)
		return -EINVAL;
	if (w->payload_bytes > f->payload)
		return -EMSGSIZE;
	if (!qp->connected || w->channel >= qp->peer.channels)
		return -ENOTCONN;
	if (w->payload_bytes != qp->peer.payload_bytes || w->offset % w->payload_bytes != 0)
		return -EINVAL;
	first = w->offset >> qp->payload_shift;
	return first + w->count > wire_imm_max_packets(qp->split) ? -EINVAL : 0;
}

static uint64_t run_bytes(const struct fabric_write *w)
{
	return (uint64_t)(w->count - 1) * w->payload_bytes + w->last_bytes;
}

/* Where the device reads a run from; false: no room to copy it to. */
static bool source(struct verbs_fabric *f, const struct fabric_write *w, struct verbs_run *run,
		   uint64_t *addr, uint32_t *lkey)
{
	uint64_t bytes = run_bytes(w);
	uint8_t *copy;

	*addr = (uintptr_t)w->addr;
	*lkey = 0;
	run->key = VERBS_NO_KEY;
	run->bounce = 0;
	if (bytes == 0)
		return true;
	if (w->mr) {
		run->key = w->message & verbs_qp_of(w->qp)->key_mask;
		*lkey = ((const struct verbs_mr *)w->mr)->mr->lkey;
		return true;
	}
	copy = bounce_take(&f->bounce, bytes, &run->bounce);
	if (copy == NULL)
		return false;
	memcpy(copy, w->addr, bytes);
	*addr = (uintptr_t)copy;
	*lkey = f->bounce.mr->lkey;
	return true;
}

static void fill(struct verbs_fabric *f, const struct verbs_dqp *dq, const struct fabric_write *w,
		 uint64_t addr, uint32_t lkey)
{
	const struct verbs_qp *qp = dq->owner;
	uint32_t slot = w->message & (qp->peer.messages - 1);
	uint32_t first = (uint32_t)(w->offset >> qp->payload_shift);
	uint64_t id = verbs_wr_id(VERBS_WR_SEND, dq->serial, dq->number, qp->index, dq->run_head);

	for (uint32_t i = 0; i < w->count; i++) {
		uint32_t len = i + 1 == w->count ? w->last_bytes : w->payload_bytes;
		uint64_t at = (uint64_t)i * w->payload_bytes;
		struct ibv_send_wr *wr = &f->send_wr[i];

		f->send_sge[i] = (struct ibv_sge){.addr = addr + at, .length = len, .lkey = lkey};
		wr->wr_id = id;
		wr->next = wr + 1;
		wr->sg_list = &f->send_sge[i];
		wr->num_sge = len > 0;
		wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr->send_flags = 0;
		wr->imm_data = htonl(wire_imm_pack(qp->split, slot, first + i, w->imm));
		wr->wr.rdma.remote_addr = w->key.va + w->offset + at;
		wr->wr.rdma.rkey = w->key.rkey;
	}
	f->send_wr[w->count - 1].next = NULL;
	f->send_wr[w->count - 1].send_flags = IBV_SEND_SIGNALED;
}

static void run_sent(struct verbs_fabric *f, struct fabric_write *w)
{
	struct verbs_chan *ch = &verbs_qp_of(w->qp)->chan[w->channel];

	w->first_psn = ch->psn;
	ch->psn = (ch->psn + w->count) & WIRE_PSN_MASK;
	ch->facts.sent_pkts += w->count;
	f->counter[SDR_CTR_tx_pkts] += w->count;
	f->counter[SDR_CTR_tx_bytes] += run_bytes(w);
}

/* 1: taken; 0: no room; or -errno. */
static int post_run(struct verbs_fabric *f, struct fabric_write *w)
{
	struct verbs_qp *qp = verbs_qp_of(w->qp);
	struct ibv_send_wr *bad = NULL;
	struct verbs_dqp *dq;
	struct verbs_run *run;
	uint64_t addr;
	uint32_t lkey;
	int rc = check(f, w);

	if (rc < 0)
		return rc;
	dq = verbs_dqp_at(qp, w->message / qp->peer.messages & (qp->peer.generations - 1),
			  w->channel);
	if (!dq->up)
		return -ENOTCONN;
	if (dq->dead || dq->sq_used + w->count > f->attr.sq_depth)
		return 0;
	run = &dq->run[dq->run_head % f->attr.sq_depth];
	if (!source(f, w, run, &addr, &lkey))
		return 0;
	fill(f, dq, w, addr, lkey);
	run->wrs = w->count;
	dq->sq_used += w->count;
	if (run->key != VERBS_NO_KEY)
		qp->tx_runs[run->key]++;
	dq->run_head++;
	rc = ibv_post_send(dq->qp, f->send_wr, &bad);
	run_sent(f, w);
	if (rc != 0) {
		/* We count its queue's room, so this is no lack of it. What was posted, and that
		 * its end will not be told, is undone by the reset; the packets are as lost. */
		f->counter[SDR_CTR_tx_errors]++;
		dq->dead = f->dead_any = true;
	}
	return 1;
}

int verbs_post(struct fabric *base, struct fabric_write *w, unsigned int n)
{
	struct verbs_fabric *f = verbs_fabric_of(base);

	for (unsigned int i = 0; i < n; i++) {
		int rc = post_run(f, &w[i]);

		if (rc > 0)
			continue;
		if (rc < 0)
			return i > 0 ? (int)i : rc;
		f->blocked = true;
		f->counter[SDR_CTR_tx_again]++;
		return (int)i;
	}
	return (int)n;
}

int verbs_ctrl(struct fabric_qp *base, uint32_t channel, uint32_t path, const void *data,
	       size_t len)
{
	struct verbs_qp *qp = verbs_qp_of(base);
	struct verbs_fabric *f = verbs_owner(qp);
	uint32_t slot = qp->ctrl_sent % VERBS_CTRL_TX;
	uint8_t *buf = qp->ctrl_mem + (size_t)(VERBS_CTRL_RX + slot) * VERBS_CTRL_BUF_BYTES;
	struct ibv_sge sge = {.addr = (uintptr_t)buf,
			      .length = WIRE_ROCEV2_CTRL_PREFIX_BYTES + (uint32_t)len,
			      .lkey = qp->ctrl_mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED};

	if (channel >= qp->channels || path != 0)
		return -EINVAL;
	if (len > FABRIC_ROCEV2_CTRL_MAX)
		return -EMSGSIZE;
	if (!qp->connected || channel >= qp->peer.channels)
		return -ENOTCONN;
	if (qp->ctrl_sent - qp->ctrl_done == VERBS_CTRL_TX)
		(void)verbs_poll_cq(f, qp->cq, VERBS_POLL_BUDGET);
	if (qp->ctrl_sent - qp->ctrl_done == VERBS_CTRL_TX || qp->ud_dead) {
		f->blocked = true;
		return -EAGAIN;
	}
	memset(buf, 0, WIRE_ROCEV2_CTRL_PREFIX_BYTES);
	buf[0] = (uint8_t)channel;
	if (len > 0)
		memcpy(buf + WIRE_ROCEV2_CTRL_PREFIX_BYTES, data, len);
	wr.wr_id = verbs_wr_id(VERBS_WR_CTRL_SEND, qp->serial, 0, qp->index, qp->ctrl_sent);
	wr.wr.ud.ah = qp->ah;
	wr.wr.ud.remote_qpn = qp->peer.qpn;
	wr.wr.ud.remote_qkey = WIRE_ROCEV2_QKEY;
	if (ibv_post_send(qp->ud, &wr, &bad) != 0) {
		f->counter[SDR_CTR_tx_errors]++;
		qp->ud_dead = f->dead_any = true;
		return 0; /* may be lost like any other */
	}
	qp->ctrl_sent++;
	qp->chan[channel].facts.sent_pkts++;
	f->counter[SDR_CTR_tx_ctrl]++;
	return 0;
}

int verbs_tx_init(struct verbs_fabric *f)
{
	struct verbs_bounce *b = &f->bounce;

	b->bytes = f->attr.bounce_bytes;
	b->mem = verbs_pages(b->bytes);
	if (b->mem == NULL)
		return -ENOMEM;
	b->mr = ibv_reg_mr(f->pd, b->mem, b->bytes, IBV_ACCESS_LOCAL_WRITE);
	return b->mr ? 0 : verbs_err(errno);
}

void verbs_tx_fini(struct verbs_fabric *f)
{
	if (f->bounce.mr)
		ibv_dereg_mr(f->bounce.mr);
	verbs_pages_free(f->bounce.mem, f->bounce.bytes);
}

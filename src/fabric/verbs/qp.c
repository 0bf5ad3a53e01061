/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QPs: making their queue pairs, connecting, bringing back those that died; message slots.
 *
 * A data queue pair dies of a local error, or of an operation that the peer should not have
 * sent. Then it is told to flush (ERR), and when all that it had has come back, reset and
 * connected again with the numbers it had; what was under way is lost, as packets may be.
 */
#include "fabric/verbs/verbs_int.h"
#include "base/rng.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Completion queues. */

static int cq_get(struct verbs_fabric *f, struct verbs_qp *qp)
{
	struct verbs_cq *cq = f->cqs;
	uint32_t room = (uint32_t)u64_min(f->max_cqe, u64_max(qp->cq_share, 16384));

	while (cq && cq->room - cq->used < qp->cq_share)
		cq = cq->next;
	if (cq == NULL) {
		cq = calloc(1, sizeof(*cq));
		if (cq == NULL)
			return -ENOMEM;
		cq->cq = ibv_create_cq(f->ctx, (int)room, cq, f->comp, 0);
		if (cq->cq == NULL) {
			free(cq);
			return verbs_err(errno);
		}
		cq->room = (uint32_t)cq->cq->cqe;
		cq->next = f->cqs;
		f->cqs = cq;
	}
	cq->used += qp->cq_share;
	qp->cq = cq;
	return 0;
}

void verbs_cqs_free(struct verbs_fabric *f)
{
	while (f->cqs) {
		struct verbs_cq *cq = f->cqs;

		f->cqs = cq->next;
		ibv_destroy_cq(cq->cq);
		free(cq);
	}
}

/* States of queue pairs. */

static int to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	return verbs_err(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
}

static int data_init(const struct verbs_fabric *f, const struct verbs_dqp *dq)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = (uint8_t)f->port,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

	return verbs_err(ibv_modify_qp(dq->qp, &attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS));
}

static struct ibv_ah_attr path_of(const struct verbs_fabric *f, const struct verbs_qp *qp,
				  uint32_t channel)
{
	struct ibv_ah_attr ah = {
		.grh = {.sgid_index = (uint8_t)f->gid.index,
			.hop_limit = 64,
			/* Devices make the UDP source port of it, and so the path: one for
			 * all generations of a channel. 0 would mean: of the QP numbers. */
			.flow_label = 1 + (f->flow_label + channel) % 0xfffffu},
		.is_global = 1,
		.port_num = (uint8_t)f->port,
	};

	memcpy(ah.grh.dgid.raw, qp->peer_gid, 16);
	return ah;
}

static enum ibv_mtu mtu_of(uint32_t bytes)
{
	return bytes == 4096 ? IBV_MTU_4096 : bytes == 2048 ? IBV_MTU_2048 : IBV_MTU_1024;
}

/* From INIT on. */
static int data_connect(const struct verbs_fabric *f, struct verbs_dqp *dq)
{
	const struct verbs_qp *qp = dq->owner;
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_of(qp->peer.payload_bytes),
		.dest_qp_num = qp->peer.data_qpn[fabric_data_qp(dq->generation, dq->channel)],
		.rq_psn = qp->peer.start_psn,
		.ah_attr = path_of(f, qp, dq->channel),
	};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .sq_psn = qp->start_psn};
	int err = verbs_refill_dqp(dq);

	if (err == 0)
		err = verbs_err(ibv_modify_qp(dq->qp, &rtr,
					      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN));
	if (err == 0)
		err = verbs_err(ibv_modify_qp(dq->qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN));
	dq->up |= err == 0;
	return err;
}

static int ud_start(const struct verbs_fabric *f, struct verbs_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = (uint8_t)f->port, .qkey = WIRE_ROCEV2_QKEY};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .sq_psn = qp->start_psn};
	uint64_t waiting = 0;
	int err = verbs_err(ibv_modify_qp(
		qp->ud, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));

	for (uint32_t i = qp->ctrl_in_tail; i != qp->ctrl_in_head; i++)
		waiting |= UINT64_C(1) << qp->ctrl_in[i % VERBS_CTRL_RX].buf;
	for (uint32_t buf = 0; buf < VERBS_CTRL_RX && err == 0; buf++)
		if (!((waiting | qp->ctrl_posted) >> buf & 1))
			err = verbs_ctrl_repost(qp, buf);
	if (err == 0)
		err = to_state(qp->ud, IBV_QPS_RTR);
	if (err == 0)
		err = verbs_err(ibv_modify_qp(qp->ud, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN));
	return err;
}

/* Dying and coming back. */

/* True once all came back, or that took too long; the first call says when it began. */
static bool flushed(struct ibv_qp *qp, bool *flushing, uint64_t *since_ns, bool empty)
{
	if (!*flushing) {
		*flushing = true;
		*since_ns = verbs_now_ns();
		(void)to_state(qp, IBV_QPS_ERR);
		return false;
	}
	return empty || verbs_now_ns() - *since_ns > VERBS_FLUSH_NS;
}

/* Where the device does not let it connect again, it tries again later. */
static bool stays_dead(struct verbs_fabric *f, bool dead)
{
	if (dead)
		f->again_ns = verbs_now_ns() + VERBS_AGAIN_NS;
	return dead;
}

/*
 * False while it flushes. Connecting may take a second where the peer's host is not there:
 * after *refused nobody else of the QP tries in this round.
 */
static bool dqp_revive(struct verbs_fabric *f, struct verbs_dqp *dq, bool *refused)
{
	if (!flushed(dq->qp, &dq->flushing, &dq->flush_ns,
		     dq->rq_posted == 0 && dq->run_head == dq->run_tail))
		return false;
	dq->serial = verbs_serial(f);
	dq->flushing = false;
	dq->fencing &= to_state(dq->qp, IBV_QPS_RESET) != 0;
	verbs_tx_retire_all(dq);
	dq->rq_posted = 0;
	dq->dead = stays_dead(f, data_init(f, dq) != 0 ||
					 (dq->up && (*refused || data_connect(f, dq) != 0)));
	*refused |= dq->dead;
	verbs_room(f);
	return true;
}

static bool ud_revive(struct verbs_fabric *f, struct verbs_qp *qp)
{
	if (!flushed(qp->ud, &qp->ud_flushing, &qp->ud_flush_ns,
		     qp->ctrl_posted == 0 && qp->ctrl_sent == qp->ctrl_done))
		return false;
	qp->serial = verbs_serial(f);
	qp->ud_flushing = false;
	(void)to_state(qp->ud, IBV_QPS_RESET);
	qp->ctrl_posted = 0;
	qp->ctrl_done = qp->ctrl_sent;
	qp->ud_dead = stays_dead(f, ud_start(f, qp) != 0);
	verbs_room(f);
	return true;
}

void verbs_revive(struct verbs_fabric *f)
{
	bool all = true;

	if (f->again_ns != 0 && verbs_now_ns() >= f->again_ns)
		f->dead_any = true;
	if (!f->dead_any)
		return;
	f->again_ns = 0;
	for (uint32_t i = 0; i < f->attr.max_qps; i++) {
		struct verbs_qp *qp = f->qps[i];
		bool refused = false;

		if (qp == NULL)
			continue;
		for (uint32_t d = 0; d < qp->channels * qp->generations; d++)
			if (qp->dqp[d].dead)
				all &= dqp_revive(f, &qp->dqp[d], &refused);
		if (qp->ud_dead)
			all &= ud_revive(f, qp);
	}
	f->dead_any = !all;
}

/* Making and ending. */

static int dqp_make(struct verbs_fabric *f, struct verbs_qp *qp, uint32_t number)
{
	struct verbs_dqp *dq = &qp->dqp[number];
	struct ibv_qp_init_attr attr = {
		.qp_context = dq,
		.send_cq = qp->cq->cq,
		.recv_cq = qp->cq->cq,
		.cap = {.max_send_wr = f->attr.sq_depth,
			.max_recv_wr = qp->rq_depth,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_UC,
	};

	dq->owner = qp;
	dq->number = number;
	dq->serial = verbs_serial(f);
	dq->generation = number / qp->channels;
	dq->channel = number % qp->channels;
	dq->run = calloc(f->attr.sq_depth, sizeof(*dq->run));
	if (dq->run == NULL)
		return -ENOMEM;
	dq->qp = ibv_create_qp(f->pd, &attr);
	if (dq->qp == NULL)
		return verbs_err(errno);
	return data_init(f, dq);
}

static int ud_make(struct verbs_fabric *f, struct verbs_qp *qp)
{
	size_t bytes = (size_t)(VERBS_CTRL_RX + VERBS_CTRL_TX) * VERBS_CTRL_BUF_BYTES;
	struct ibv_qp_init_attr attr = {
		.qp_context = NULL,
		.send_cq = qp->cq->cq,
		.recv_cq = qp->cq->cq,
		.cap = {.max_send_wr = VERBS_CTRL_TX,
			.max_recv_wr = VERBS_CTRL_RX,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
	};

	qp->ctrl_mem = verbs_pages(bytes);
	if (qp->ctrl_mem == NULL)
		return -ENOMEM;
	qp->ctrl_mr = ibv_reg_mr(f->pd, qp->ctrl_mem, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (qp->ctrl_mr == NULL)
		return verbs_err(errno);
	qp->ud = ibv_create_qp(f->pd, &attr);
	if (qp->ud == NULL)
		return verbs_err(errno);
	return ud_start(f, qp);
}

static int qp_build(struct verbs_fabric *f, struct verbs_qp *qp)
{
	uint32_t pairs = qp->channels * qp->generations;
	int err;

	qp->rq_depth = verbs_rq_fit(f->attr.rq_depth, f->attr.sq_depth, pairs, f->max_cqe);
	if (qp->rq_depth == 0)
		return -ENOSPC;
	qp->cq_share = pairs * (qp->rq_depth + f->attr.sq_depth) + VERBS_CTRL_RX + VERBS_CTRL_TX;
	err = rng_secret(&qp->token, sizeof(qp->token));
	if (err == 0)
		err = rng_secret(&qp->start_psn, sizeof(qp->start_psn));
	qp->start_psn &= WIRE_PSN_MASK;
	for (uint32_t c = 0; c < qp->channels; c++)
		qp->chan[c].psn = qp->start_psn;
	if (err == 0)
		err = cq_get(f, qp);
	for (uint32_t i = 0; i < pairs && err == 0; i++)
		err = dqp_make(f, qp, i);
	return err < 0 ? err : ud_make(f, qp);
}

/* The queue pairs' end: from here on the device neither reads nor writes for this QP. */
static void queue_pairs_destroy(struct verbs_qp *qp)
{
	for (uint32_t i = 0; i < qp->channels * qp->generations; i++) {
		struct verbs_dqp *dq = &qp->dqp[i];

		if (dq->qp)
			ibv_destroy_qp(dq->qp);
		dq->qp = NULL;
		verbs_tx_retire_all(dq);
		free(dq->run);
	}
	if (qp->ud)
		ibv_destroy_qp(qp->ud);
}

static void qp_free(struct verbs_fabric *f, struct verbs_qp *qp)
{
	f->qps[qp->index] = NULL; /* what is left of it in a completion queue finds nobody */
	queue_pairs_destroy(qp);
	if (qp->connected)
		f->keys->qp_destroy(qp);
	if (qp->cq) {
		/* Its entries make room for another's only once they are out. */
		(void)verbs_poll_cq(f, qp->cq, qp->cq->room);
		qp->cq->used -= qp->cq_share;
	}
	if (qp->ah)
		ibv_destroy_ah(qp->ah);
	if (qp->ctrl_mr)
		ibv_dereg_mr(qp->ctrl_mr);
	verbs_pages_free(qp->ctrl_mem,
			 (size_t)(VERBS_CTRL_RX + VERBS_CTRL_TX) * VERBS_CTRL_BUF_BYTES);
	f->free_index[(f->free_head + f->free_count++) % f->attr.max_qps] = qp->index;
	free(qp->slot);
	free(qp->tx_runs);
	free(qp);
}

int verbs_qp_make(struct verbs_fabric *f, const struct fabric_qp_attr *attr, uint32_t generations,
		  struct fabric_qp **out)
{
	struct verbs_qp *qp;
	int err;

	if (attr->channels == 0 || attr->channels > FABRIC_MAX_CHANNELS)
		return -EINVAL;
	if (f->free_count == 0)
		return -ENOSPC;
	qp = calloc(1, sizeof(*qp));
	if (qp == NULL)
		return -ENOMEM;
	qp->base.fabric = &f->base;
	qp->cookie = attr->cookie;
	qp->table = attr->table;
	qp->channels = attr->channels;
	qp->generations = generations;
	qp->serial = verbs_serial(f);
	qp->index = f->free_index[f->free_head];
	f->free_head = (f->free_head + 1) % f->attr.max_qps;
	f->free_count--;
	f->qps[qp->index] = qp;
	err = qp_build(f, qp);
	if (err < 0) {
		f->lock_failed |= err == -ENOMEM;
		qp_free(f, qp);
		return err;
	}
	*out = &qp->base;
	return 0;
}

int verbs_qp_create(struct fabric *f, const struct fabric_qp_attr *attr, struct fabric_qp **out)
{
	return verbs_qp_make(verbs_fabric_of(f), attr, FABRIC_MAX_GENERATIONS, out);
}

void verbs_qp_destroy(struct fabric_qp *base)
{
	struct verbs_qp *qp = verbs_qp_of(base);
	struct verbs_fabric *f = verbs_owner(qp);

	/* What has completed until now is in the bits, as it is after a fence. */
	(void)verbs_poll_cq(f, qp->cq, qp->cq->room);
	verbs_forget(f, qp);
	for (uint32_t s = 0; qp->connected && s < qp->peer.messages; s++)
		if (qp->slot[s].bound)
			(void)rx_fence_begin(qp->table, qp->slot[s].key);
	qp_free(f, qp);
}

void verbs_qp_local(const struct fabric_qp *base, struct fabric_local *out)
{
	const struct verbs_qp *qp = verbs_qp_of(base);

	*out = (struct fabric_local){
		.qpn = qp->ud->qp_num, .token = qp->token, .start_psn = qp->start_psn};
	for (uint32_t i = 0; i < qp->channels * qp->generations; i++)
		out->data_qpn[fabric_data_qp(qp->dqp[i].generation, qp->dqp[i].channel)] =
			qp->dqp[i].qp->qp_num;
	verbs_gid_to_addr(&verbs_owner(qp)->gid, &out->addr);
}

/* Connecting. */

static bool is_v4(const uint8_t gid[16])
{
	struct verbs_gid g = {.index = 0};
	struct sockaddr_storage ss;

	memcpy(g.raw, gid, 16);
	verbs_gid_to_addr(&g, &ss);
	return ss.ss_family == AF_INET;
}

static bool power_of_two(uint32_t x)
{
	return x != 0 && (x & (x - 1)) == 0;
}

static int peer_check(const struct verbs_fabric *f, struct verbs_qp *qp,
		      const struct fabric_peer *peer)
{
	if (peer->channels == 0 || peer->channels > qp->channels ||
	    !power_of_two(peer->generations) || peer->generations > qp->generations ||
	    !power_of_two(peer->messages) || peer->messages > 1024 ||
	    !power_of_two(peer->payload_bytes) || peer->payload_bytes < FABRIC_ROCEV2_PAYLOAD_MIN ||
	    peer->payload_bytes > f->payload)
		return -EINVAL;
	if (!verbs_gid_from_addr((const struct sockaddr *)&peer->addr, qp->peer_gid) ||
	    is_v4(qp->peer_gid) != is_v4(f->gid.raw))
		return -EAFNOSUPPORT;
	return 0;
}

static int connect_all(struct verbs_fabric *f, struct verbs_qp *qp)
{
	struct ibv_ah_attr ah = path_of(f, qp, 0);

	qp->ah = ibv_create_ah(f->pd, &ah);
	if (qp->ah == NULL)
		return verbs_err(errno);
	for (uint32_t g = 0; g < qp->peer.generations; g++)
		for (uint32_t c = 0; c < qp->peer.channels; c++) {
			int err = data_connect(f, verbs_dqp_at(qp, g, c));

			if (err < 0)
				return err;
		}
	return f->keys->qp_connect(qp);
}

/*
 * The kernel finds the peer's hardware address meanwhile: this may take as long as that takes.
 * What failed half-way stays so: destroy the QP.
 */
int verbs_qp_connect(struct fabric_qp *base, const struct fabric_peer *peer)
{
	struct verbs_qp *qp = verbs_qp_of(base);
	struct verbs_fabric *f = verbs_owner(qp);
	int err;

	if (qp->connected || qp->slot)
		return -EISCONN;
	err = peer_check(f, qp, peer);
	if (err < 0)
		return err;
	qp->peer = *peer;
	qp->split = fabric_imm_split(peer->messages);
	qp->payload_shift = (uint32_t)__builtin_ctz(peer->payload_bytes);
	qp->key_mask = peer->messages * peer->generations - 1;
	qp->slot = calloc(peer->messages, sizeof(*qp->slot));
	qp->tx_runs = calloc((size_t)qp->key_mask + 1, sizeof(*qp->tx_runs));
	if (qp->slot == NULL || qp->tx_runs == NULL)
		return -ENOMEM;
	err = connect_all(f, qp);
	qp->connected = err == 0;
	return err;
}

/* Slots. */

/* Completions name slots and generations: a table of another shape would take them for others'. */
static bool table_fits(const struct verbs_qp *qp, const struct fabric_bind *b)
{
	return qp->table && qp->table->slot_mask == qp->peer.messages - 1 &&
	       qp->table->key_mask == qp->key_mask && b->rx.payload == qp->peer.payload_bytes &&
	       b->rx.imm_frags == wire_imm_fragments(qp->split);
}

int verbs_bind(struct fabric_qp *base, uint32_t message, const struct fabric_bind *b,
	       struct fabric_key *key)
{
	struct verbs_qp *qp = verbs_qp_of(base);
	struct verbs_fabric *f = verbs_owner(qp);
	uint32_t low = message & qp->key_mask, generation;
	struct verbs_slot *slot;
	int err;

	if (!qp->connected)
		return -EINVAL;
	slot = &qp->slot[message & (qp->peer.messages - 1)];
	if (slot->bound)
		return -EBUSY;
	if (!table_fits(qp, b))
		return -EINVAL;
	switch (rx_bind(qp->table, message, &b->rx)) {
	case RX_OK:
		break;
	case RX_BUSY:
		return -EBUSY;
	default:
		return -EINVAL;
	}
	slot->key = low;
	err = f->keys->bind(qp, slot, b, key);
	if (err < 0) {
		f->lock_failed |= err == -ENOMEM;
		(void)rx_fence_begin(qp->table, message);
		return err;
	}
	slot->bound = true;
	generation = low / qp->peer.messages;
	qp->bound[generation]++;
	for (uint32_t c = 0; c < qp->peer.channels; c++) {
		struct verbs_dqp *dq = verbs_dqp_at(qp, generation, c);

		if (!dq->dead && verbs_refill_dqp(dq) < 0)
			dq->dead = f->dead_any = true;
	}
	return 0;
}

/*
 * First the device loses the key; then what it had completed is taken into the bits; then the
 * rx table closes.
 */
void verbs_fence_begin(struct fabric_qp *base, uint32_t message)
{
	struct verbs_qp *qp = verbs_qp_of(base);
	struct verbs_fabric *f = verbs_owner(qp);
	struct verbs_slot *slot;

	if (!qp->connected)
		return;
	slot = &qp->slot[message & (qp->peer.messages - 1)];
	if (!slot->bound || slot->key != (message & qp->key_mask) || slot->stuck)
		return;
	if (f->keys->unbind(qp, slot) < 0) {
		/* Not by the key, then by the queue pairs: once they were reset, nothing is
		 * under way in them. Costs what is in flight. */
		slot->stuck = true;
		f->dead_any = true;
		for (uint32_t d = 0; d < qp->channels * qp->generations; d++) {
			qp->dqp[d].fencing |= qp->dqp[d].up;
			qp->dqp[d].dead |= qp->dqp[d].up;
		}
	}
	/* All that was in the queue when the key died: it holds no more than `room`. */
	(void)verbs_poll_cq(f, qp->cq, qp->cq->room);
	(void)rx_fence_begin(qp->table, message);
	qp->bound[slot->key / qp->peer.messages]--;
	slot->bound = slot->stuck;
}

int verbs_fence_done(struct fabric_qp *base, uint32_t message)
{
	struct verbs_qp *qp = verbs_qp_of(base);
	struct verbs_slot *slot;

	if (!qp->connected)
		return 1;
	slot = &qp->slot[message & (qp->peer.messages - 1)];
	if (!slot->bound || slot->key != (message & qp->key_mask))
		return 1;
	if (!slot->stuck)
		return 0;
	verbs_revive(verbs_owner(qp));
	for (uint32_t d = 0; d < qp->channels * qp->generations; d++)
		if (qp->dqp[d].fencing)
			return 0;
	slot->stuck = slot->bound = false;
	return 1;
}

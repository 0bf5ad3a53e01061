/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of mlx5 devices that outlive their fence: each slot and generation has an indirect key
 * (mkey), made once and pointed at a receive's memory by a work request, and at a NULL region by
 * the fence. Cheaper than registering, and what the SDR paper describes (arXiv 2505.05366).
 *
 * Written by the manual pages mlx5dv_create_mkey(3), mlx5dv_wr_post(3) and ibv_alloc_null_mr(3);
 * no hardware has run it. So it is opt-in (SDR_VERBS_KEYS=mlx5), and the self-test at open
 * decides whether the device is used with it.
 *
 * Late packets are written to the NULL region, which discards them, and complete: what tells
 * them from a later message's is the generation, which must not come round too soon: late_ns.
 * A key is of one generation, as is the queue pair that its packets come on.
 */
#include "fabric/verbs/verbs_int.h"
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>

#define LATE_NS UINT64_C(100000000)
#define PATIENCE_NS UINT64_C(1000000000) /* for a work request of the device's own */
#define PIECES 4u			 /* of one key: what fits a small work request */
#define PIECE_BYTES (UINT64_C(1) << 31)	 /* a piece's length has 32 bits */

struct verbs_mlx5 {
	struct ibv_cq *cq;
	struct ibv_qp *qp; /* RC, connected to itself: it only configures keys */
	struct ibv_qp_ex *qpx;
	struct mlx5dv_qp_ex *mqp;
	struct ibv_mr *null;
	uint64_t asked; /* work requests, also their ids: an earlier one's end is not this one's */
};

struct verbs_mlx5_slot {
	struct mlx5dv_mkey *mkey;
	bool pointed;	    /* or maybe: at memory or at nothing: has to be invalidated first */
	struct ibv_mr *own; /* where the receive's memory was not registered */
	uint64_t len;
};

static struct ibv_context *mlx5_device_open(struct ibv_device *device)
{
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};

	if (mlx5dv_is_supported(device))
		return mlx5dv_open_device(device, &attr);
	errno = EOPNOTSUPP;
	return NULL;
}

static int connect_to_itself(struct verbs_fabric *f, struct ibv_qp *qp)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = (uint8_t)f->port};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			    .port_num = (uint8_t)f->port,
			    .grh = {.sgid_index = (uint8_t)f->gid.index, .hop_limit = 1}},
	};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
				  .timeout = 14,
				  .retry_cnt = 7,
				  .rnr_retry = 7,
				  .max_rd_atomic = 1};
	int rc;

	memcpy(rtr.ah_attr.grh.dgid.raw, f->gid.raw, 16);
	rc = ibv_modify_qp(qp, &init,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (rc == 0)
		rc = ibv_modify_qp(qp, &rtr,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					   IBV_QP_MIN_RNR_TIMER);
	if (rc == 0)
		rc = ibv_modify_qp(qp, &rts,
				   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					   IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					   IBV_QP_MAX_QP_RD_ATOMIC);
	return verbs_err(rc);
}

static void mlx5_close(struct verbs_fabric *f)
{
	struct verbs_mlx5 *m = f->mlx5;

	if (m == NULL)
		return;
	if (m->qp)
		ibv_destroy_qp(m->qp);
	if (m->cq)
		ibv_destroy_cq(m->cq);
	if (m->null)
		ibv_dereg_mr(m->null);
	free(m);
	f->mlx5 = NULL;
}

static int mlx5_open(struct verbs_fabric *f)
{
	struct verbs_mlx5 *m = calloc(1, sizeof(*m));
	struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
					 .send_ops_flags = MLX5DV_QP_EX_WITH_MR_LIST};
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = PIECES * 16},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = f->pd,
		.send_ops_flags = IBV_QP_EX_WITH_LOCAL_INV,
	};

	if (m == NULL)
		return -ENOMEM;
	f->mlx5 = m;
	m->null = ibv_alloc_null_mr(f->pd);
	m->cq = m->null ? ibv_create_cq(f->ctx, 8, NULL, NULL, 0) : NULL;
	if (m->cq == NULL)
		return verbs_err(errno);
	attr.send_cq = attr.recv_cq = m->cq;
	m->qp = mlx5dv_create_qp(f->ctx, &attr, &dv);
	if (m->qp == NULL)
		return verbs_err(errno);
	m->qpx = ibv_qp_to_qp_ex(m->qp);
	m->mqp = mlx5dv_qp_ex_from_ibv_qp_ex(m->qpx);
	return connect_to_itself(f, m->qp);
}

static void ask(struct verbs_mlx5 *m, unsigned int flags)
{
	ibv_wr_start(m->qpx);
	m->qpx->wr_id = ++m->asked;
	m->qpx->wr_flags = IBV_SEND_SIGNALED | flags;
}

/* Until the work request asked for last is done. */
static int done(struct verbs_mlx5 *m)
{
	uint64_t start_ns = verbs_now_ns();
	struct ibv_wc wc;
	int n = verbs_err(ibv_wr_complete(m->qpx));

	if (n < 0)
		return n;
	do {
		n = ibv_poll_cq(m->cq, 1, &wc);
		if (n > 0 && wc.wr_id == m->asked)
			return wc.status == IBV_WC_SUCCESS ? 0 : -EIO;
	} while (n >= 0 && verbs_now_ns() - start_ns < PATIENCE_NS);
	return n < 0 ? -EIO : -ETIMEDOUT;
}

/* Where it cannot be pointed elsewhere, a key is ended for good; the slot's next use makes one. */
static int end_key(struct verbs_mlx5_slot *s)
{
	int rc = s->mkey ? verbs_err(mlx5dv_destroy_mkey(s->mkey)) : 0;

	if (rc < 0)
		return rc;
	s->mkey = NULL;
	s->pointed = false;
	return 0;
}

/* After this nothing is written through the key. */
static int invalidate(struct verbs_mlx5 *m, struct verbs_mlx5_slot *s)
{
	int rc;

	if (!s->pointed)
		return 0;
	ask(m, 0);
	ibv_wr_local_inv(m->qpx, s->mkey->rkey);
	rc = done(m);
	s->pointed = rc != 0;
	return rc;
}

/* Points an invalid key at a range of a region, in pieces. */
static int point(struct verbs_mlx5 *m, struct verbs_mlx5_slot *s, uint64_t addr, uint64_t len,
		 uint32_t lkey)
{
	struct ibv_sge piece[PIECES];
	uint16_t n = 0;

	for (uint64_t at = 0; at < len; at += PIECE_BYTES) {
		if (n == PIECES)
			return -EMSGSIZE;
		piece[n++] = (struct ibv_sge){.addr = lkey == m->null->lkey ? 0 : addr + at,
					      .length = (uint32_t)u64_min(len - at, PIECE_BYTES),
					      .lkey = lkey};
	}
	ask(m, IBV_SEND_INLINE);
	s->pointed = true; /* whatever is said: it may be done later */
	mlx5dv_wr_mr_list(m->mqp, s->mkey, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, n,
			  piece);
	return done(m);
}

static int mlx5_qp_connect(struct verbs_qp *qp)
{
	qp->mlx5_slot = calloc((size_t)qp->key_mask + 1, sizeof(*qp->mlx5_slot));
	return qp->mlx5_slot ? 0 : -ENOMEM;
}

static void mlx5_qp_destroy(struct verbs_qp *qp)
{
	for (uint32_t i = 0; qp->mlx5_slot && i <= qp->key_mask; i++) {
		if (qp->mlx5_slot[i].mkey)
			mlx5dv_destroy_mkey(qp->mlx5_slot[i].mkey);
		if (qp->mlx5_slot[i].own)
			ibv_dereg_mr(qp->mlx5_slot[i].own);
	}
	free(qp->mlx5_slot);
	qp->mlx5_slot = NULL;
}

/* The memory's local key: the registered region's, or of a region of its own. */
static int memory(struct verbs_fabric *f, struct verbs_mlx5_slot *s, const struct fabric_bind *b,
		  uint32_t *lkey)
{
	if (b->mr) {
		*lkey = ((const struct verbs_mr *)b->mr)->mr->lkey;
		return 0;
	}
	s->own = ibv_reg_mr(f->pd, b->rx.base, b->rx.len, IBV_ACCESS_LOCAL_WRITE);
	if (s->own == NULL)
		return verbs_err(errno);
	*lkey = s->own->lkey;
	return 0;
}

static void let_go(struct verbs_mlx5_slot *s)
{
	if (s->own)
		ibv_dereg_mr(s->own);
	s->own = NULL;
}

static int mlx5_bind(struct verbs_qp *qp, struct verbs_slot *slot, const struct fabric_bind *b,
		     struct fabric_key *key)
{
	struct verbs_fabric *f = verbs_owner(qp);
	struct verbs_mlx5_slot *s = &qp->mlx5_slot[slot->key];
	struct mlx5dv_mkey_init_attr attr = {.pd = f->pd,
					     .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
					     .max_entries = PIECES};
	uint32_t lkey = 0;
	int err;

	*key = (struct fabric_key){0};
	s->len = b->rx.len;
	if (b->rx.len == 0)
		return 0; /* see keys.c */
	if (b->rx.base == NULL)
		return -EINVAL;
	if (s->mkey == NULL)
		s->mkey = mlx5dv_create_mkey(&attr);
	if (s->mkey == NULL)
		return verbs_err(errno);
	err = memory(f, s, b, &lkey);
	if (err == 0)
		err = invalidate(f->mlx5, s);
	if (err == 0)
		err = point(f->mlx5, s, (uintptr_t)b->rx.base, b->rx.len, lkey);
	if (err < 0) {
		if (end_key(s) == 0) /* else its memory stays registered until the QP's end */
			let_go(s);
		return err;
	}
	*key = (struct fabric_key){.rkey = s->mkey->rkey}; /* zero based */
	return 0;
}

/* Between the two, late packets meet an invalid key and are dropped. */
static int mlx5_unbind(struct verbs_qp *qp, struct verbs_slot *slot)
{
	struct verbs_mlx5 *m = verbs_owner(qp)->mlx5;
	struct verbs_mlx5_slot *s = &qp->mlx5_slot[slot->key];
	int err;

	if (s->len == 0)
		return 0;
	err = invalidate(m, s);
	if (err < 0)
		err = end_key(s);
	if (err < 0)
		return err;
	let_go(s);
	/* Where this fails, late packets go on being dropped: as good. */
	if (s->mkey)
		(void)point(m, s, 0, s->len, m->null->lkey);
	return 0;
}

const struct verbs_keys_ops verbs_keys_mlx5 = {
	.name = "mlx5",
	.late_ns = LATE_NS,
	.device_open = mlx5_device_open,
	.open = mlx5_open,
	.close = mlx5_close,
	.qp_connect = mlx5_qp_connect,
	.qp_destroy = mlx5_qp_destroy,
	.bind = mlx5_bind,
	.unbind = mlx5_unbind,
};

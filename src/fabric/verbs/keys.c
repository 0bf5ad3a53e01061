/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys that die with their fence: each receive is registered by itself, exactly its range, and
 * deregistered by the fence. Any device can do that.
 *
 * Why deregistering is a fence. ibv_dereg_mr() returns once the device cannot use the region:
 * mlx5 destroys or revokes the mkey with a command that the device completes after what was
 * under way in it; rxe (rxe_pool.c, __rxe_cleanup; read and tested with Linux 6.1, before 6.0
 * it did not wait) takes the region out of its table, then waits until nobody holds a reference,
 * and its responder holds one from the key's check (rxe_resp.c, check_rkey) until after the copy
 * and the completion. It waits a while at most, 200 jiffies in 6.1, and then fails: see
 * verbs_fence_begin(). A late packet then meets a dead key; a UC responder drops it silently and
 * takes no receive for it.
 *
 * Why not memory windows, which would be cheaper. A type-2 window works with the one queue pair
 * that it was bound on, and a message has as many as it has channels. And with both types an
 * invalidation is no fence in rxe: check_rkey() looks the window up, goes over to its region's
 * reference and puts the window back before it copies, so that a packet already past that
 * writes on when the invalidation has completed.
 *
 * A zero-length write names no memory: no device checks its key (IBA C9-88; rxe_resp.c, same
 * place), so a zero-length receive needs no registration. But neither does its fence stop a late
 * one: only its generation and slot tell it from a later message's.
 */
#include "fabric/verbs/verbs_int.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int none_open(struct verbs_fabric *f)
{
	(void)f;
	return 0;
}

static void none_close(struct verbs_fabric *f)
{
	(void)f;
}

static int none_connect(struct verbs_qp *qp)
{
	(void)qp;
	return 0;
}

static struct ibv_mr *reg(struct ibv_pd *pd, const struct verbs_mr *of, void *addr, size_t len,
			  int access)
{
	if (of && of->attr.dmabuf)
		return ibv_reg_dmabuf_mr(
			pd, of->attr.dmabuf_offset + ((uintptr_t)addr - (uintptr_t)of->attr.addr),
			len, (uintptr_t)addr, of->attr.dmabuf_fd, access);
	return ibv_reg_mr(pd, addr, len, (unsigned int)access);
}

static int rereg_bind(struct verbs_qp *qp, struct verbs_slot *slot, const struct fabric_bind *b,
		      struct fabric_key *key)
{
	*key = (struct fabric_key){0};
	slot->mr = NULL;
	if (b->rx.len == 0)
		return 0;
	if (b->rx.base == NULL)
		return -EINVAL; /* a NIC cannot discard */
	slot->mr = reg(verbs_owner(qp)->pd, b->mr, b->rx.base, b->rx.len,
		       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (slot->mr == NULL)
		return verbs_err(errno);
	*key = (struct fabric_key){.rkey = slot->mr->rkey, .va = (uintptr_t)b->rx.base};
	return 0;
}

/* Never twice: a region that could not be deregistered is left to the process's end. */
static int rereg_unbind(struct verbs_qp *qp, struct verbs_slot *slot)
{
	struct ibv_mr *mr = slot->mr;

	(void)qp;
	slot->mr = NULL;
	return mr ? verbs_err(ibv_dereg_mr(mr)) : 0;
}

static void rereg_qp_destroy(struct verbs_qp *qp)
{
	for (uint32_t s = 0; s < qp->peer.messages; s++)
		(void)rereg_unbind(qp, &qp->slot[s]);
}

const struct verbs_keys_ops verbs_keys_rereg = {
	.name = "rereg",
	.late_ns = 0,
	.device_open = ibv_open_device,
	.open = none_open,
	.close = none_close,
	.qp_connect = none_connect,
	.qp_destroy = rereg_qp_destroy,
	.bind = rereg_bind,
	.unbind = rereg_unbind,
};

/* The owner's memory: to send from, and the origin of receives. */
int verbs_mr_reg(struct fabric *base, const struct fabric_mr_attr *attr, void **out)
{
	struct verbs_fabric *f = verbs_fabric_of(base);
	struct verbs_mr *mr = calloc(1, sizeof(*mr));
	int err;

	if (mr == NULL)
		return -ENOMEM;
	mr->attr = *attr;
	mr->mr =
		reg(f->pd, attr->dmabuf ? mr : NULL, attr->addr, attr->len, IBV_ACCESS_LOCAL_WRITE);
	if (mr->mr == NULL) /* it may be memory to read only, and then to send from only */
		mr->mr = reg(f->pd, attr->dmabuf ? mr : NULL, attr->addr, attr->len, 0);
	if (mr->mr == NULL) {
		err = verbs_err(errno);
		f->lock_failed |= err == -ENOMEM;
		free(mr);
		return err;
	}
	*out = mr;
	return 0;
}

void verbs_mr_dereg(struct fabric *f, void *mr)
{
	struct verbs_mr *old = mr;

	(void)f;
	if (old == NULL)
		return;
	ibv_dereg_mr(old->mr);
	free(old);
}

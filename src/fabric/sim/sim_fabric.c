/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract's table in virtual time: QPs, connecting, events. Contract: fabric.h.
 */
#include "fabric/sim/sim_int.h"

#include "base/bits.h"
#include "base/check.h"
#include <errno.h>
#include <string.h>

static void sim_caps(const struct fabric *fabric, struct fabric_caps *out)
{
	const struct sim_fabric *f = sim_fabric_of(fabric);

	const struct sim_device *d = &f->attr.device;

	*out = (struct fabric_caps){
		.flags = FABRIC_CAP_VIRTUAL_TIME |
			 (d->nic ? FABRIC_CAP_SILENT_LATE : FABRIC_CAP_NO_REWRITE) |
			 (d->zero_copy_ns ? FABRIC_CAP_ZERO_COPY : 0) |
			 (f->sim->payload_off ? FABRIC_CAP_NO_PAYLOAD : 0),
		.max_payload_bytes = f->attr.max_payload,
		.max_train_bytes = UINT32_MAX,
		.max_channels = FABRIC_MAX_CHANNELS,
		.udp_port = f->port,
		.mode = d->rocev2 ? WIRE_ROCEV2 : WIRE_SDR,
		.max_ctrl_bytes = d->rocev2 ? FABRIC_ROCEV2_CTRL_MAX : FABRIC_CTRL_MAX,
		.generations = d->rocev2 ? d->generations : 1,
		.late_ns = d->late_ns,
	};
}

static uint64_t sim_now_ns(const struct fabric *f)
{
	return sim_fabric_of(f)->sim->now_ns;
}

/* QPs. */

static int sim_qp_create(struct fabric *fabric, const struct fabric_qp_attr *attr,
			 struct fabric_qp **out)
{
	struct sim_fabric *f = sim_fabric_of(fabric);
	struct sim_qp *qp;

	if (attr->channels == 0 || attr->channels > FABRIC_MAX_CHANNELS)
		return -EINVAL;
	qp = alloc_zeroed(f->sim->alloc, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp->base.fabric = fabric;
	qp->cookie = attr->cookie;
	qp->channels = attr->channels;
	sim_qpn_add(f->sim, &qp->number, qp);
	qp->token = rng_next(&f->sim->rng);
	qp->start_psn = (uint32_t)rng_next(&f->sim->rng) & WIRE_PSN_MASK;
	for (uint32_t i = 0; i < qp->channels; i++)
		qp->chan[i].psn = qp->start_psn;
	deliver_qp_init(&qp->rx, qp->number.qpn, qp->token, attr->table);
	if (f->attr.device.rocev2 && sim_rdma_create(qp)) {
		sim_qpn_remove(f->sim, &qp->number);
		alloc_free(f->sim->alloc, qp);
		return -ENOMEM;
	}
	qp->at = &f->qps;
	qp->fabric_next = f->qps;
	if (qp->fabric_next)
		qp->fabric_next->at = &qp->fabric_next;
	f->qps = qp;
	*out = &qp->base;
	return 0;
}

static void forget_ctrl(struct sim_fabric *f, uint32_t qpn)
{
	struct sim_fifo keep;

	sim_fifo_init(&keep);
	while (f->ctrl.head) {
		struct sim_packet *p = sim_fifo_take(&f->ctrl);

		if (p->to_qpn != qpn) {
			sim_fifo_put(&keep, p);
			continue;
		}
		f->sim->in_flight--;
		sim_packet_free(&f->sim->pool, p);
	}
	sim_fifo_init(&f->ctrl);
	while (keep.head)
		sim_fifo_put(&f->ctrl, sim_fifo_take(&keep));
}

static void forget_pend(struct sim_fabric *f, const struct sim_qp *qp)
{
	struct sim_qp **at = &f->pend;

	if (!qp->pend)
		return;
	while (*at != qp)
		at = &(*at)->pend_next;
	*at = qp->pend_next;
	if (!*at)
		f->pend_tail = at;
}

static void sim_qp_destroy(struct fabric_qp *fqp)
{
	struct sim_qp *qp = sim_qp_of(fqp);
	struct sim_fabric *f = sim_fabric_of(fqp->fabric);

	/* Nothing of this world runs while we are here, and nobody finds it afterwards. */
	sim_qpn_remove(f->sim, &qp->number);
	*qp->at = qp->fabric_next;
	if (qp->fabric_next)
		qp->fabric_next->at = qp->at;
	forget_ctrl(f, qp->rx.qpn);
	forget_pend(f, qp);
	sim_runs_forget(f, qp);
	if (qp->drop_seen)
		sim_drops_forget(f->sim, qp);
	if (qp->rdma)
		sim_rdma_destroy(qp);
	alloc_free(f->sim->alloc, qp->tx_runs);
	alloc_free(f->sim->alloc, qp);
}

static void sim_close(struct fabric *fabric)
{
	struct sim_fabric *f = sim_fabric_of(fabric);

	while (f->qps)
		sim_qp_destroy(&f->qps->base);
	SDR_ASSERT(!f->ctrl.head && !f->pend);
	heap_remove(&f->sim->heap, &f->event.node);
	sim_due_clear(f);
	alloc_free(f->sim->alloc, f->cq);
	f->sim->fabric[f->index] = NULL;
	alloc_free(f->sim->alloc, f);
}

static void sim_qp_local(const struct fabric_qp *fqp, struct fabric_local *out)
{
	const struct sim_qp *qp = sim_qp_of(fqp);

	*out = (struct fabric_local){
		.qpn = qp->rx.qpn, .token = qp->token, .start_psn = qp->start_psn};
	if (!qp->rdma)
		return;
	memcpy(out->data_qpn, qp->rx.data_qpn, sizeof(out->data_qpn));
	sim_fabric_addr(fqp->fabric, &out->addr);
}

static void sim_table_set(struct fabric_qp *qp, struct rx_table *table)
{
	deliver_table_set(&sim_qp_of(qp)->rx, table);
}

/* Connecting. */

/* The passive end learns the active one's addresses as soon as both have connected; through a
 * NAT it has to wait for packets. */
static void meet(struct sim_qp *passive, const struct sim_qp *active)
{
	const struct sim_fabric *f = sim_fabric_of(active->base.fabric);
	const struct sim_fabric *other = sim_fabric_of(passive->base.fabric);

	if (!passive->connected || passive->peer.active || !active->connected ||
	    !active->peer.active || passive->peer.qpn != active->rx.qpn ||
	    active->peer.qpn != passive->rx.qpn || active->chan[0].addr[0].fabric != other->index ||
	    f->sim->host[f->host].nat || f->sim->host[other->host].nat)
		return;
	for (uint32_t c = 0; c < passive->channels && c < active->channels; c++) {
		const struct sim_addr addr = {
			.host = f->host,
			.fabric = f->index,
			.port = active->chan[c].port,
			.socket = active->chan[c].port,
			.set = true,
		};

		sim_addr_set(passive, c, &addr);
	}
}

static int sim_qp_connect(struct fabric_qp *fqp, const struct fabric_peer *peer)
{
	struct sim_qp *qp = sim_qp_of(fqp), *other;
	const struct sim_fabric *f = sim_fabric_of(fqp->fabric);
	struct sim *sim = f->sim;
	struct sim_addr addr;
	bool reaches = peer->active || qp->rdma;
	int err;

	if (qp->connected)
		return -EISCONN;
	if (reaches && sim_addr_find(sim, &peer->addr, &addr))
		return -EINVAL;
	if (f->attr.device.zero_copy_ns && !qp->tx_runs)
		qp->tx_runs = alloc_zeroed(sim->alloc, SIM_TX_KEYS * sizeof(*qp->tx_runs));
	if (f->attr.device.zero_copy_ns && !qp->tx_runs)
		return -ENOMEM;
	err = qp->rdma ? sim_rdma_connect(qp, peer) : 0;
	if (err)
		return err;
	qp->peer = *peer;
	qp->connected = true;
	protect_checksum_key(&qp->tx_key, peer->token);
	for (uint32_t c = 0; reaches && c < qp->channels; c++)
		sim_addr_set(qp, c, &addr);
	other = sim_qp_find(sim, peer->qpn);
	if (other && !qp->rdma) {
		meet(qp, other);
		meet(other, qp);
	}
	return 0;
}

static uint32_t sim_path_payload(const struct fabric_qp *fqp)
{
	const struct sim_qp *qp = sim_qp_of(fqp);

	return qp->path_payload ? qp->path_payload : sim_fabric_of(fqp->fabric)->attr.max_payload;
}

/* Events. */

static unsigned int poll_qp(struct sim_qp *qp, struct fabric_event *ev, unsigned int max)
{
	unsigned int n = 0;

	if ((qp->pend & SIM_PEND_READY) && n < max) {
		ev[n].type = FABRIC_EV_READY;
		ev[n++].cookie = qp->cookie;
		qp->pend &= ~(uint32_t)SIM_PEND_READY;
	}
	if ((qp->pend & SIM_PEND_LATE) && n < max) {
		ev[n].type = FABRIC_EV_LATE;
		ev[n].channel = qp->late_channel;
		ev[n].message = qp->late_message;
		ev[n++].cookie = qp->cookie;
		qp->pend &= ~(uint32_t)SIM_PEND_LATE;
	}
	for (uint32_t i = 0; i < FABRIC_MAX_CHANNELS && (qp->pend & SIM_PEND_REFUSED); i++) {
		if (!qp->chan[i].refused)
			continue;
		if (n == max)
			return n;
		qp->chan[i].refused = false;
		ev[n].type = FABRIC_EV_REFUSED;
		ev[n].channel = i;
		ev[n++].cookie = qp->cookie;
	}
	qp->pend &= ~(uint32_t)SIM_PEND_REFUSED;
	return n;
}

/* False where there is nothing to tell: an old one from an address that is not known. */
static bool take_ctrl(struct sim_fabric *f, struct fabric_event *ev)
{
	struct sim_packet *p = sim_fifo_take(&f->ctrl);
	struct sim_qp *qp = sim_qp_find(f->sim, p->to_qpn);
	int path = sim_addr_of_ctrl(f, qp, p);

	if (path >= 0) {
		ev->type = FABRIC_EV_CTRL;
		ev->cookie = qp->cookie;
		ev->channel = p->head.channel;
		ev->path = (uint32_t)path;
		ev->psn = p->psn;
		ev->age_ns = f->sim->now_ns - p->deliver_ns;
		ev->len = p->len;
		memcpy(ev->data, p->bytes, p->len);
	}
	f->sim->in_flight--;
	sim_packet_free(&f->sim->pool, p);
	return path >= 0;
}

static int sim_poll(struct fabric *fabric, struct fabric_event *ev, unsigned int max)
{
	struct sim_fabric *f = sim_fabric_of(fabric);
	unsigned int n = 0;

	if (f->cq_n)
		sim_rdma_poll(f);
	sim_due_clear(f);
	if (f->writable && n < max) {
		f->writable = false;
		ev[n].type = FABRIC_EV_WRITABLE;
		ev[n++].cookie = NULL;
	}
	while (f->pend && n < max) {
		struct sim_qp *qp = f->pend;

		n += poll_qp(qp, &ev[n], max - n);
		if (qp->pend)
			break; /* ev is full */
		f->pend = qp->pend_next;
		if (!f->pend)
			f->pend_tail = &f->pend;
	}
	while (f->ctrl.head && n < max)
		n += take_ctrl(f, &ev[n]);
	if (f->writable || f->pend || f->ctrl.head)
		sim_due_set(f);
	return (int)n;
}

/* The rest. */

static int sim_bind(struct fabric_qp *qp, uint32_t message, const struct fabric_bind *b,
		    struct fabric_key *key)
{
	*key = (struct fabric_key){0};
	if (sim_qp_of(qp)->rdma)
		return sim_rdma_bind(sim_qp_of(qp), message, b, key);
	return deliver_bind(&sim_qp_of(qp)->rx, message, b, NULL);
}

static void sim_fence_begin(struct fabric_qp *qp, uint32_t message)
{
	if (sim_qp_of(qp)->rdma)
		sim_rdma_fence_begin(sim_qp_of(qp), message);
	deliver_fence_begin(&sim_qp_of(qp)->rx, message);
}

static int sim_fence_done(struct fabric_qp *qp, uint32_t message)
{
	return deliver_fence_done(&sim_qp_of(qp)->rx, message);
}

/* There is nothing to keep; but it is not NULL, which says that memory is not registered. */
static int sim_mr_reg(struct fabric *f, const struct fabric_mr_attr *attr, void **mr)
{
	*mr = f;
	return attr->dmabuf ? -EOPNOTSUPP : 0;
}

static void sim_mr_dereg(struct fabric *f, void *mr)
{
	(void)f;
	(void)mr;
}

static int sim_wait(struct fabric *f, uint64_t deadline_ns)
{
	(void)f;
	(void)deadline_ns;
	return 0; /* time passes in sim_advance() only */
}

static int sim_fd(struct fabric *f)
{
	(void)f;
	return -ENOTSUP;
}

static void sim_wake(struct fabric *f)
{
	(void)f;
}

static void sim_channel_facts(const struct fabric_qp *fqp, uint32_t channel,
			      struct fabric_channel_facts *out)
{
	const struct sim_qp *qp = sim_qp_of(fqp);

	*out = (struct fabric_channel_facts){0};
	if (channel >= qp->channels)
		return;
	out->sent_pkts = qp->chan[channel].sent_pkts;
	out->up = qp->chan[channel].addr[0].set;
	deliver_channel_facts(&qp->rx, channel, sim_now_ns(fqp->fabric), out);
}

static void sim_advice(const struct fabric *f, char *buf, size_t len)
{
	(void)f;
	if (len)
		buf[0] = '\0';
}

static void sim_counters(const struct fabric *f, uint64_t *sum)
{
	deliver_counters_add(&sim_fabric_of(f)->worker, sum);
}

const struct fabric_ops sim_fabric_ops = {
	.name = "sim",
	.close = sim_close,
	.caps = sim_caps,
	.now_ns = sim_now_ns,
	.qp_create = sim_qp_create,
	.qp_destroy = sim_qp_destroy,
	.qp_local = sim_qp_local,
	.table_set = sim_table_set,
	.qp_connect = sim_qp_connect,
	.path_use = sim_path_use,
	.path_name = sim_path_name,
	.path_payload = sim_path_payload,
	.post = sim_post,
	.ctrl = sim_ctrl,
	.poll = sim_poll,
	.tx_busy = sim_tx_busy,
	.bind = sim_bind,
	.fence_begin = sim_fence_begin,
	.fence_done = sim_fence_done,
	.mr_reg = sim_mr_reg,
	.mr_dereg = sim_mr_dereg,
	.wait = sim_wait,
	.fd = sim_fd,
	.wake = sim_wake,
	.channel_facts = sim_channel_facts,
	.advice = sim_advice,
	.counters = sim_counters,
};

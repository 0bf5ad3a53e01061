/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rocev2 in virtual time: transport QPs, keys, and the receiving half of a NIC, which is told
 * by hardware's rules and not by deliver.c's: bytes first, then a completion, then a bit.
 *
 * Keys. R_Key: 20 random bits, and 12 that say which message of the QP it is for, so that a
 * packet's memory is found by its key alone, as a NIC does. A key that does not last is drawn
 * anew for each binding and is dead from its fence on.
 */
#include "fabric/sim/sim_int.h"

#include "base/bits.h"
#include <errno.h>
#include <string.h>

#define KEY_INDEX_MASK 0xfffu /* 1024 messages of 4 generations */

int sim_device_check(const struct sim_device *d)
{
	uint32_t g = d->generations;

	if (!d->rocev2)
		return d->nic || d->lasting_keys || g || d->recv_depth || d->late_ns ? -EINVAL : 0;
	if (g > FABRIC_MAX_GENERATIONS || (g & (g - 1)) != 0)
		return -EINVAL;
	return d->recv_depth && !d->nic ? -EINVAL : 0;
}

uint32_t sim_rdma_mtu(uint32_t bytes)
{
	uint32_t mtu = FABRIC_ROCEV2_PAYLOAD_MAX;

	while (mtu > bytes)
		mtu /= 2;
	return mtu < FABRIC_ROCEV2_PAYLOAD_MIN ? 0 : mtu;
}

void sim_icrc_seal(const struct sim *sim, uint8_t *bytes, size_t unsealed)
{
	struct wire_icrc_packet packet = {.hdr = bytes,
					  .hdr_len = WIRE_BTH_BYTES,
					  .payload = bytes + WIRE_BTH_BYTES,
					  .payload_len = unsealed - WIRE_BTH_BYTES};

	wire_icrc_seal(&sim->flow.icrc, 0, &packet, bytes + unsealed);
}

/* QPs. */

int sim_rdma_create(struct sim_qp *qp)
{
	struct sim_fabric *f = sim_fabric_of(qp->base.fabric);
	struct fabric_local local = {.qpn = qp->number.qpn};

	qp->rdma = alloc_zeroed(f->sim->alloc, sizeof(*qp->rdma));
	if (!qp->rdma)
		return -ENOMEM;
	for (uint32_t g = 0; g < f->attr.device.generations; g++)
		for (uint32_t c = 0; c < qp->channels; c++) {
			struct sim_qpn *number = &qp->rdma->data[fabric_data_qp(g, c)];

			sim_qpn_add(f->sim, number, qp);
			local.data_qpn[fabric_data_qp(g, c)] = number->qpn;
		}
	deliver_qp_init_rocev2(&qp->rx, &local, qp->rx.table);
	return 0;
}

void sim_rdma_destroy(struct sim_qp *qp)
{
	struct sim_fabric *f = sim_fabric_of(qp->base.fabric);

	for (uint32_t i = 0; i < FABRIC_DATA_QPS; i++)
		if (qp->rdma->data[i].qp)
			sim_qpn_remove(f->sim, &qp->rdma->data[i]);
	for (uint32_t i = 0; i < f->cq_n; i++)
		if (f->cq[i].qp == qp)
			f->cq[i].qp = NULL;
	alloc_free(f->sim->alloc, qp->rdma->keys);
	alloc_free(f->sim->alloc, qp->rdma->region);
	alloc_free(f->sim->alloc, qp->rdma);
}

static uint32_t numbers(const struct sim_qp *qp)
{
	return qp->rx.rocev2.messages * qp->rx.rocev2.generations;
}

static struct fabric_key draw(struct sim *sim, uint32_t index)
{
	struct fabric_key key = deliver_key_draw(&sim->rng);

	key.rkey = (key.rkey & ~KEY_INDEX_MASK) | index;
	return key;
}

int sim_rdma_connect(struct sim_qp *qp, const struct fabric_peer *peer)
{
	struct sim_fabric *f = sim_fabric_of(qp->base.fabric);
	struct deliver_rocev2 agreed = {.channels = peer->channels,
					.generations = peer->generations,
					.messages = peer->messages,
					.payload_bytes = peer->payload_bytes};
	int err;

	if (peer->channels > qp->channels || peer->generations > f->attr.device.generations ||
	    peer->payload_bytes > f->attr.max_payload ||
	    sim_rdma_mtu(peer->payload_bytes) != peer->payload_bytes ||
	    peer->messages > (KEY_INDEX_MASK + 1) / FABRIC_MAX_GENERATIONS)
		return -EINVAL;
	agreed.keys = alloc_zeroed(f->sim->alloc, agreed.messages * sizeof(*agreed.keys));
	qp->rdma->keys = agreed.keys;
	qp->rdma->region =
		alloc_zeroed(f->sim->alloc, (size_t)agreed.messages * agreed.generations *
						    sizeof(*qp->rdma->region));
	err = agreed.keys && qp->rdma->region ? deliver_agree(&qp->rx, &agreed) : -ENOMEM;
	if (err) {
		alloc_free(f->sim->alloc, qp->rdma->keys);
		alloc_free(f->sim->alloc, qp->rdma->region);
		qp->rdma->keys = NULL;
		qp->rdma->region = NULL;
		return err;
	}
	for (uint32_t i = 0; f->attr.device.lasting_keys && i < numbers(qp); i++)
		qp->rdma->region[i] = (struct sim_region){
			.key = draw(f->sim, i), .len = UINT64_MAX, .live = true};
	return 0;
}

static struct sim_region *region_of(const struct sim_qp *qp, uint32_t message)
{
	return &qp->rdma->region[message & (numbers(qp) - 1)];
}

static uint32_t generation_of(const struct sim_qp *qp, uint32_t message)
{
	return (message & (numbers(qp) - 1)) / qp->rx.rocev2.messages;
}

int sim_rdma_bind(struct sim_qp *qp, uint32_t message, const struct fabric_bind *b,
		  struct fabric_key *key)
{
	struct sim_fabric *f = sim_fabric_of(qp->base.fabric);
	struct sim_region *region;
	int err;

	if (!qp->connected)
		return -EINVAL;
	region = region_of(qp, message);
	*key = f->attr.device.lasting_keys ? region->key
					   : draw(f->sim, message & (numbers(qp) - 1));
	err = deliver_bind(&qp->rx, message, b, key);
	if (err)
		return err;
	*region = (struct sim_region){
		.key = *key, .base = b->rx.base, .len = b->rx.len, .live = true};
	qp->rdma->bound[generation_of(qp, message)]++;
	return 0;
}

void sim_rdma_fence_begin(struct sim_qp *qp, uint32_t message)
{
	struct sim_fabric *f = sim_fabric_of(qp->base.fabric);
	struct rx_table *table = atomic_load_explicit(&qp->rx.table, memory_order_relaxed);
	struct sim_region *region;

	/* Of two numbers with one region only the bound one is told apart here: by its slot. */
	if (!qp->connected || !table || !rx_is_bound(table, message) ||
	    !rx_enter_check(table, rx_slot_of(table, message), message))
		return;
	region = region_of(qp, message);
	region->base = NULL;
	region->len = UINT64_MAX;
	region->live = f->attr.device.lasting_keys;
	qp->rdma->bound[generation_of(qp, message)]--;
	sim_rdma_poll(f); /* what has completed is in the bits */
}

/* A NIC's receiver. */

/* False: no such key, or not for these bytes. *to NULL: they go nowhere. */
static bool reach(const struct sim_qp *qp, const struct wire_data *data, uint8_t **to)
{
	uint32_t index = data->rkey & KEY_INDEX_MASK;
	const struct sim_region *region;
	uint64_t at;

	*to = NULL;
	if (data->length == 0)
		return true;
	if (index >= numbers(qp))
		return false;
	region = &qp->rdma->region[index];
	at = data->va - region->key.va;
	if (!region->live || region->key.rkey != data->rkey || at > region->len ||
	    data->length > region->len - at)
		return false;
	if (region->base)
		*to = region->base + at;
	return true;
}

/* Takes a receive of the transport QP: false where none is left. */
static bool recv_take(struct sim_fabric *f, struct sim_qp *qp, uint32_t which)
{
	uint64_t depth = f->attr.device.recv_depth;

	if (depth && !qp->rdma->bound[which / FABRIC_MAX_CHANNELS])
		depth = u64_min(depth, SIM_RECV_SHALLOW);
	if (depth && qp->rdma->recv_used[which] >= depth) {
		f->starved_pkts++;
		return false;
	}
	qp->rdma->recv_used[which]++;
	return true;
}

static struct sim_completion *completion_new(struct sim_fabric *f)
{
	uint32_t cap = f->cq_cap ? 2 * f->cq_cap : 256;
	struct sim_completion *cq;

	if (f->cq_n == f->cq_cap) {
		cq = alloc_zeroed(f->sim->alloc, cap * sizeof(*cq));
		if (!cq)
			return NULL;
		if (f->cq_n)
			memcpy(cq, f->cq, f->cq_n * sizeof(*cq));
		alloc_free(f->sim->alloc, f->cq);
		f->cq = cq;
		f->cq_cap = cap;
	}
	return &f->cq[f->cq_n++];
}

void sim_rdma_arrive(struct sim_fabric *f, struct sim_qp *qp, uint32_t which,
		     const struct deliver_pkt *pkt)
{
	struct sim_completion *done;
	const uint8_t *payload;
	struct wire_data data;
	uint8_t *to;

	/* Software does not hear of what goes no further than here. */
	if (!qp->connected ||
	    wire_icrc_check(&f->sim->flow.icrc, 0, pkt->bytes, pkt->len - pkt->absent) ||
	    wire_data_get(pkt->bytes, pkt->len, WIRE_ROCEV2,
			  fabric_imm_split(qp->rx.rocev2.messages), &data, &payload) ||
	    data.length > qp->rx.rocev2.payload_bytes || !reach(qp, &data, &to) ||
	    !recv_take(f, qp, which))
		return;
	done = completion_new(f);
	if (!done)
		return; /* no memory: as if it had been lost */
	sim_news(f);
	if (to && !pkt->absent)
		memcpy(to, payload, data.length);
	*done = (struct sim_completion){.qp = qp,
					.which = which,
					.slot = data.message,
					.packet = data.packet,
					.fragment = data.imm,
					.len = data.length};
}

/* Completions. */

static void count_up(_Atomic uint64_t *counter, uint64_t n)
{
	uint64_t old = atomic_load_explicit(counter, memory_order_relaxed);

	atomic_store_explicit(counter, old + n, memory_order_relaxed);
}

static void newest_set(struct sim_fabric *f, struct deliver_channel *ch, uint32_t message,
		       uint32_t packet)
{
	/* When it was looked at: hardware says no more. */
	atomic_store_explicit(&ch->newest_ns, f->sim->now_ns, memory_order_relaxed);
	atomic_store_explicit(&ch->newest, DELIVER_PACKET_VALID | (uint64_t)message << 32 | packet,
			      memory_order_relaxed);
}

/* A packet of a message that is bound: has it news? */
static bool commit(struct sim_fabric *f, struct rx_slot *slot, struct rx_worker *w,
		   const struct sim_completion *c, struct deliver_channel *ch)
{
	int verdict = rx_admit(slot, w, c->packet, 1, c->len);
	bool fresh;

	if (verdict != RX_OK && verdict != RX_IMM_ONLY) {
		deliver_count(&f->worker, SDR_CTR_rx_range, 1);
		count_up(&ch->bad_pkts, 1);
		return false;
	}
	fresh = rx_imm_add(slot, c->packet, c->fragment);
	if (verdict == RX_OK) {
		fresh = rx_commit_hw(slot, w, c->packet, 1, c->len) != 0;
		newest_set(f, ch,
			   c->which / FABRIC_MAX_CHANNELS * c->qp->rx.rocev2.messages + c->slot,
			   c->packet);
	}
	count_up(fresh ? &ch->received_pkts : &ch->duplicate_pkts, 1);
	deliver_count(&f->worker, fresh ? SDR_CTR_rx_pkts : SDR_CTR_rx_duplicate, 1);
	deliver_count(&f->worker, SDR_CTR_rx_bytes, fresh ? c->len : 0);
	return fresh;
}

static void complete(struct sim_fabric *f, const struct sim_completion *c)
{
	struct rx_table *table = atomic_load_explicit(&c->qp->rx.table, memory_order_relaxed);
	uint32_t message = c->which / FABRIC_MAX_CHANNELS * c->qp->rx.rocev2.messages + c->slot;
	struct deliver_channel *ch = &c->qp->rx.channel[c->which % FABRIC_MAX_CHANNELS];
	struct rx_slot *slot;

	c->qp->rdma->recv_used[c->which]--;
	if (c->slot >= c->qp->rx.rocev2.messages) {
		deliver_count(&f->worker, SDR_CTR_rx_range, 1);
		count_up(&ch->bad_pkts, 1);
		return;
	}
	if (!table || rx_enter(table, &table->workers[0], message, &slot) != RX_OK) {
		/* Its key lasts, or it has none, or it was on its way here when the fence came. */
		deliver_count(&f->worker, SDR_CTR_rx_late, 1);
		count_up(&ch->late_pkts, 1);
		c->qp->late_channel = c->which % FABRIC_MAX_CHANNELS;
		c->qp->late_message = message;
		sim_pend(f, c->qp, SIM_PEND_LATE);
		return;
	}
	if (commit(f, slot, &table->workers[0], c, ch))
		sim_pend(f, c->qp, SIM_PEND_READY);
	rx_leave(&table->workers[0]);
}

void sim_rdma_poll(struct sim_fabric *f)
{
	for (uint32_t i = 0; i < f->cq_n; i++)
		if (f->cq[i].qp)
			complete(f, &f->cq[i]);
	f->cq_n = 0;
}

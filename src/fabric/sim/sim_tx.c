/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending in virtual time: ask the filter and the link what becomes of a packet, and only
 * then encode it, as often as it will arrive.
 */
#include "fabric/sim/sim_int.h"

#include "base/bits.h"
#include "base/units.h"
#include <errno.h>
#include <string.h>

/* ICMP carries the head of the packet that it complains of. */
#define REFUSED_BYTES 64u

/* What becomes of one packet. */
struct plan {
	unsigned int copies;
	uint64_t at_ns[3];
	bool ce, corrupt;
	uint64_t corrupt_bit; /* of IP header to trailer */
};

static struct sim_link *channel_link(struct sim *sim, struct sim_channel *c,
				     const struct sim_head *head)
{
	if (!c->link || c->link_epoch != sim->link_epoch || c->link_port != head->src_port) {
		c->link = sim_link_use(sim, head, SIM_PROTO_UDP);
		c->link_epoch = sim->link_epoch;
		c->link_port = head->src_port;
	}
	return c->link;
}

/* True where the queue is too long; then WRITABLE comes when it has drained to half. */
static bool queue_full(struct sim_fabric *f, const struct sim_link *l)
{
	uint64_t limit = f->attr.tx_queue_bytes;
	uint64_t queued, rate = l->link.attr.rate_bps;
	unsigned __int128 drain;

	if (!limit || !rate)
		return false;
	queued = link_queued_bytes(&l->link, f->sim->now_ns);
	if (queued <= limit)
		return false;
	drain = (unsigned __int128)(queued - limit / 2) * 8 * NS_PER_S;
	if (f->event.node.pos == HEAP_NONE &&
	    heap_set(&f->sim->heap, &f->event.node,
		     f->sim->now_ns + (uint64_t)((drain + rate - 1) / rate), f->sim->seq++))
		f->writable = true; /* no memory for the event: tell at once */
	deliver_count(&f->worker, SDR_CTR_tx_again, 1);
	return true;
}

static void plan_packet(struct sim *sim, struct sim_link *l, const struct sim_packet_info *info,
			uint32_t bytes, struct plan *plan)
{
	struct sim_verdict v = {SIM_PASS, 0};
	struct link_fate fate;

	*plan = (struct plan){0};
	if (sim->filter)
		v = sim->filter(sim->filter_arg, info);
	if (v.action == SIM_DROP || !link_offer(&l->link, sim->now_ns, bytes, &fate))
		return;
	plan->copies = fate.copies;
	for (unsigned int i = 0; i < fate.copies; i++)
		plan->at_ns[i] = fate.deliver_ns[i] + (v.action == SIM_DELAY ? v.delay_ns : 0);
	if (v.action == SIM_DUP)
		plan->at_ns[plan->copies++] = plan->at_ns[0] + v.delay_ns;
	plan->ce = fate.ce;
	plan->corrupt = fate.corrupt;
	plan->corrupt_bit = fate.corrupt_bit;
}

static void fill_info(struct sim_packet_info *info, const struct sim *sim,
		      const struct sim_head *head, uint32_t psn)
{
	*info = (struct sim_packet_info){
		.from = (int)head->from_host,
		.to = (int)head->to_host,
		.channel = head->channel,
		.psn = psn,
		.now_ns = sim->now_ns,
	};
}

static struct sim_packet *packet_new(struct sim_fabric *f, const struct sim_head *head,
				     size_t bytes)
{
	struct sim_packet *p = sim_packet_new(&f->sim->pool, (uint32_t)bytes);

	if (!p) {
		deliver_count(&f->worker, SDR_CTR_tx_errors, 1);
		return NULL;
	}
	p->head = *head;
	p->kind = SIM_PKT_WIRE;
	return p;
}

/* Sends an encoded packet to its fate. */
static void fly(struct sim *sim, struct sim_link *l, struct sim_packet *p, const struct plan *plan)
{
	p->ce = plan->ce;
	for (unsigned int i = 1; i < plan->copies; i++) {
		struct sim_packet *copy = sim_packet_new(&sim->pool, p->len);

		if (!copy)
			break;
		memcpy(copy, p, sizeof(*p) + p->len); /* of the same size, so of its class */
		sim_launch(sim, l, copy, plan->at_ns[i]);
	}
	/* A hit on the IP or UDP header is mapped into the packet, which dies of it as well. */
	if (plan->corrupt) {
		uint64_t bit = plan->corrupt_bit % ((uint64_t)p->len * 8);

		p->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	sim_launch(sim, l, p, plan->at_ns[0]);
}

static void encode(struct sim_packet *p, const struct sim_qp *qp, size_t hdr_len, size_t len)
{
	unsigned int pad = wire_pad_bytes(len);
	struct protect_packet whole = {
		.hdr = p->bytes, .hdr_len = hdr_len + len + pad, /* it lies in one piece */
	};

	memset(p->bytes + hdr_len + len, 0, pad);
	protect_seal(&qp->tx_key, &whole, p->bytes + hdr_len + len + pad);
}

static int check_write(const struct sim_fabric *f, const struct fabric_write *w)
{
	const struct sim_qp *qp = sim_qp_of(w->qp);

	if (!w->qp || w->qp->fabric != &f->base || w->channel >= qp->channels || w->count == 0 ||
	    w->count > FABRIC_RUN_MAX || w->last_bytes > w->payload_bytes ||
	    (w->payload_bytes == 0 && w->count > 1) ||
	    (!w->addr && (w->last_bytes || w->count > 1)))
		return -EINVAL;
	if (!qp->connected || !qp->chan[w->channel].addr[0].set)
		return -ENOTCONN;
	return w->payload_bytes > qp->path_payload ? -EMSGSIZE : 0;
}

static void send_run(struct sim_fabric *f, struct sim_link *l, const struct sim_head *head,
		     struct fabric_write *w)
{
	struct sim_qp *qp = sim_qp_of(w->qp);
	struct sim_channel *c = &qp->chan[w->channel];
	struct wire_data_template tmpl;
	struct sim_packet_info info;

	w->first_psn = c->psn;
	wire_data_template_sdr(&tmpl, qp->peer.qpn, w->message, w->imm);
	fill_info(&info, f->sim, head, c->psn);
	info.message = w->message;
	for (uint32_t i = 0; i < w->count; i++) {
		uint32_t len = i + 1 < w->count ? w->payload_bytes : w->last_bytes;
		uint64_t at = (uint64_t)i * w->payload_bytes;
		size_t bytes = wire_data_packet_bytes(len);
		struct sim_packet *p;
		struct plan plan;

		info.psn = c->psn;
		info.offset = w->offset + at;
		info.len = len;
		plan_packet(f->sim, l, &info, (uint32_t)bytes + SIM_IP_OVERHEAD_BYTES, &plan);
		c->psn = (c->psn + 1) & WIRE_PSN_MASK;
		if (!plan.copies || !(p = packet_new(f, head, bytes)))
			continue;
		wire_data_put(p->bytes, &tmpl, info.psn, info.offset, len);
		if (len)
			memcpy(p->bytes + WIRE_DATA_HDR_BYTES, (const uint8_t *)w->addr + at, len);
		encode(p, qp, WIRE_DATA_HDR_BYTES, len);
		fly(f->sim, l, p, &plan);
	}
	c->sent_pkts += w->count;
	deliver_count(&f->worker, SDR_CTR_tx_pkts, w->count);
	deliver_count(&f->worker, SDR_CTR_tx_bytes,
		      (uint64_t)(w->count - 1) * w->payload_bytes + w->last_bytes);
}

int sim_post(struct fabric *fabric, struct fabric_write *w, unsigned int n)
{
	struct sim_fabric *f = sim_fabric_of(fabric);

	for (unsigned int i = 0; i < n; i++) {
		int err = check_write(f, &w[i]);
		struct sim_channel *c;
		struct sim_head head;
		struct sim_link *l;

		if (err)
			return i ? (int)i : err;
		c = &sim_qp_of(w[i].qp)->chan[w[i].channel];
		sim_addr_head(sim_qp_of(w[i].qp), w[i].channel, &c->addr[0], &head);
		l = channel_link(f->sim, c, &head);
		if (!l || queue_full(f, l))
			return (int)i;
		send_run(f, l, &head, &w[i]);
	}
	return (int)n;
}

int sim_ctrl(struct fabric_qp *fqp, uint32_t channel, uint32_t path, const void *data, size_t len)
{
	struct sim_qp *qp = sim_qp_of(fqp);
	struct sim_fabric *f = sim_fabric_of(fqp->fabric);
	size_t bytes = wire_ctrl_packet_bytes(len);
	struct sim_packet_info info;
	struct sim_channel *c;
	struct sim_head head;
	struct sim_packet *p;
	struct sim_link *l;
	struct plan plan;

	if (channel >= qp->channels || path >= SIM_ADDRS || len > FABRIC_CTRL_MAX)
		return -EINVAL;
	c = &qp->chan[channel];
	if (!qp->connected || !c->addr[0].set || !c->addr[path].set)
		return -ENOTCONN;
	sim_addr_head(qp, channel, &c->addr[path], &head);
	l = path ? sim_link_use(f->sim, &head, SIM_PROTO_UDP) : channel_link(f->sim, c, &head);
	if (!l || queue_full(f, l))
		return -EAGAIN;
	fill_info(&info, f->sim, &head, c->psn);
	info.is_ctrl = true;
	info.ctrl_body = data;
	info.len = (uint32_t)len;
	plan_packet(f->sim, l, &info, (uint32_t)bytes + SIM_IP_OVERHEAD_BYTES, &plan);
	c->psn = (info.psn + 1) & WIRE_PSN_MASK;
	c->sent_pkts++;
	deliver_count(&f->worker, SDR_CTR_tx_ctrl, 1);
	if (!plan.copies || !(p = packet_new(f, &head, bytes)))
		return 0;
	wire_ctrl_put_header(p->bytes,
			     &(struct wire_ctrl_header){.dest_qpn = qp->peer.qpn,
							.src_qpn = qp->rx.qpn,
							.psn = info.psn},
			     len);
	if (len)
		memcpy(p->bytes + WIRE_CTRL_HDR_BYTES, data, len);
	encode(p, qp, WIRE_CTRL_HDR_BYTES, len);
	fly(f->sim, l, p, &plan);
	return 0;
}

void sim_refuse(struct sim *sim, const struct sim_packet *p)
{
	const struct sim_head head = {
		.from_host = p->head.to_host,
		.to_host = p->head.from_host,
		.from_fabric = SIM_NONE,
		.to_fabric = p->head.from_fabric,
		.channel = p->head.channel,
		.src_port = p->head.dst_port,
		.dst_port = p->head.src_port,
		.from_port = p->head.to_port,
		.to_port = p->head.from_port,
	};
	struct sim_packet *answer;
	struct link_fate fate;
	struct sim_link *l;

	if (head.from_host >= sim->nhosts)
		return; /* no such host: nobody answers */
	l = sim_link_use(sim, &head, SIM_PROTO_ICMP);
	if (!l || !link_offer(&l->link, sim->now_ns, REFUSED_BYTES, &fate))
		return;
	answer = sim_packet_new(&sim->pool, 0);
	if (!answer)
		return;
	answer->head = head;
	answer->to_qpn = p->head.from_qpn;
	answer->kind = SIM_PKT_REFUSED;
	answer->ce = false;
	sim_launch(sim, l, answer, fate.deliver_ns[0]);
}

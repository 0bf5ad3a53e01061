/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending in virtual time: ask the filter and the link what becomes of a packet, and only
 * then encode it, as often as it will arrive. A device with zero_copy_ns does so later, when it
 * reads the run's memory.
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
		c->drops = sim_drops_find(sim, head->from_host, head->to_host);
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
		     f->sim->now_ns + (uint64_t)((drain + rate - 1) / rate), f->sim->seq++)) {
		f->writable = true; /* no memory for the event: tell at once */
		sim_due_set(f);
	}
	deliver_count(&f->worker, SDR_CTR_tx_again, 1);
	return true;
}

/* `drop`: the link is to lose it. */
static void plan_packet(struct sim *sim, struct sim_link *l, const struct sim_packet_info *info,
			uint32_t bytes, bool drop, struct plan *plan)
{
	struct sim_verdict v = {SIM_PASS, 0};
	struct link_fate fate;

	*plan = (struct plan){0};
	if (sim->filter)
		v = sim->filter(sim->filter_arg, info);
	if (v.action == SIM_DROP || !link_offer_drop(&l->link, sim->now_ns, bytes, drop, &fate))
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

/*
 * A hit on the IP or UDP header is mapped into the packet, which dies of it as well, and one on
 * bytes that are not there into the trailer, which would have told.
 */
static void flip(struct sim_packet *p, uint64_t bit)
{
	uint64_t at = bit % ((uint64_t)p->len * 8) / 8;

	if (at >= WIRE_DATA_HDR_BYTES && p->absent)
		at = at < WIRE_DATA_HDR_BYTES + p->absent ? WIRE_DATA_HDR_BYTES : at - p->absent;
	p->bytes[at] ^= (uint8_t)(1u << bit % 8);
}

/* Sends an encoded packet to its fate. */
static void fly(struct sim *sim, struct sim_link *l, struct sim_packet *p, const struct plan *plan)
{
	p->ce = plan->ce;
	for (unsigned int i = 1; i < plan->copies; i++) {
		uint32_t there = p->len - p->absent;
		struct sim_packet *copy = sim_packet_new(&sim->pool, there);

		if (!copy)
			break;
		memcpy(copy, p, sizeof(*p) + there); /* of the same size, so of its class */
		sim_launch(sim, l, copy, plan->at_ns[i]);
	}
	if (plan->corrupt)
		flip(p, plan->corrupt_bit);
	sim_launch(sim, l, p, plan->at_ns[0]);
}

/* `key` NULL: rocev2. */
static void seal(const struct sim *sim, struct sim_packet *p, const struct protect_key *key,
		 size_t hdr_len, size_t len)
{
	unsigned int pad = wire_pad_bytes(len);
	struct protect_packet whole = {
		.hdr = p->bytes, .hdr_len = hdr_len + len + pad, /* it lies in one piece */
	};

	memset(p->bytes + hdr_len + len, 0, pad);
	if (key)
		protect_seal(key, &whole, p->bytes + whole.hdr_len);
	else
		sim_icrc_seal(sim, p->bytes, whole.hdr_len);
}

/* Each packet's index has to follow from its offset, and fit the immediate. */
static int check_rdma(const struct sim_qp *qp, const struct fabric_write *w)
{
	if (w->channel >= qp->peer.channels)
		return -ENOTCONN;
	if (w->payload_bytes != qp->peer.payload_bytes || w->offset % w->payload_bytes ||
	    w->offset / w->payload_bytes + w->count >
		    wire_imm_max_packets(fabric_imm_split(qp->peer.messages)))
		return -EINVAL;
	return 0;
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
	if (w->payload_bytes > qp->path_payload)
		return -EMSGSIZE;
	return qp->rdma ? check_rdma(qp, w) : 0;
}

static void template_fill(const struct sim_qp *qp, const struct fabric_write *w,
			  struct wire_data_template *tmpl)
{
	const struct fabric_peer *peer = &qp->peer;
	uint32_t generation;

	if (!qp->rdma) {
		wire_data_template_sdr(tmpl, peer->qpn, w->message, w->imm);
		return;
	}
	generation = w->message / peer->messages & (peer->generations - 1);
	(void)wire_data_template_rocev2(
		tmpl, peer->data_qpn[fabric_data_qp(generation, w->channel)],
		&(struct wire_rocev2_message){.split = fabric_imm_split(peer->messages),
					      .slot = w->message & (peer->messages - 1),
					      .rkey = w->key.rkey,
					      .user_imm = w->imm,
					      .payload_bytes = w->payload_bytes});
	tmpl->va_base = w->key.va;
}

static uint32_t data_bytes(const struct sim_data *data, uint32_t index)
{
	return index + 1 < data->count ? data->payload_bytes : data->last_bytes;
}

struct sim_packet *sim_data_packet(struct sim *sim, const struct sim_data *data, uint32_t index,
				   const uint8_t *payload)
{
	uint32_t len = data_bytes(data, index);
	size_t bytes = wire_data_packet_bytes(len);
	uint32_t absent = payload ? 0 : len + wire_pad_bytes(len);
	struct sim_packet *p = sim_packet_new(&sim->pool, (uint32_t)bytes - absent);

	if (!p)
		return NULL;
	wire_data_put(p->bytes, &data->tmpl, data->first_psn + index,
		      data->offset + (uint64_t)index * data->payload_bytes, len);
	if (len && payload)
		memcpy(p->bytes + WIRE_DATA_HDR_BYTES, payload, len);
	seal(sim, p, data->rocev2 ? NULL : &data->key, WIRE_DATA_HDR_BYTES, absent ? 0 : len);
	p->len = (uint32_t)bytes;
	p->absent = absent;
	return p;
}

static void data_fill(const struct sim_qp *qp, const struct fabric_write *w, struct sim_data *data)
{
	*data = (struct sim_data){.key = qp->tx_key,
				  .rocev2 = qp->rdma != NULL,
				  .offset = w->offset,
				  .first_psn = w->first_psn,
				  .payload_bytes = w->payload_bytes,
				  .last_bytes = w->last_bytes,
				  .count = w->count};
	template_fill(qp, w, &data->tmpl);
}

/* One whose fate is known; *flight as in sim_flight_add(). False: no memory. */
static bool send_packet(struct sim *sim, struct sim_link *l, const struct sim_head *head,
			const struct sim_data *data, uint32_t index, const uint8_t *payload,
			const struct plan *plan, struct sim_packet **flight)
{
	struct sim_packet *p;

	if (!payload && plan->copies == 1 && !plan->corrupt && sim_in_order(l, plan->at_ns[0]))
		return sim_flight_add(sim, l, head, data, index, plan->at_ns[0], plan->ce, flight);
	*flight = NULL;
	p = sim_data_packet(sim, data, index, payload);
	if (!p)
		return false;
	p->head = *head;
	p->kind = SIM_PKT_WIRE;
	fly(sim, l, p, plan);
	return true;
}

/* Its PSNs are its own already: it may have waited. */
static void send_run(struct sim_fabric *f, struct sim_link *l, const struct sim_head *head,
		     const struct fabric_write *w)
{
	struct sim_qp *qp = sim_qp_of(w->qp);
	struct sim_drops *drops = qp->chan[w->channel].drops;
	uint32_t first = w->payload_bytes ? (uint32_t)(w->offset / w->payload_bytes) : 0;
	const uint8_t *payload = f->sim->payload_off ? NULL : w->addr;
	struct sim_packet *flight = NULL;
	struct sim_packet_info info;
	struct sim_data data;

	data_fill(qp, w, &data);
	fill_info(&info, f->sim, head, w->first_psn);
	info.message = w->message;
	for (uint32_t i = 0; i < w->count; i++) {
		uint64_t at = (uint64_t)i * w->payload_bytes;
		bool drop = drops && sim_drops_take(drops, qp, w->message, first + i);
		struct plan plan;

		info.psn = (w->first_psn + i) & WIRE_PSN_MASK;
		info.offset = w->offset + at;
		info.len = data_bytes(&data, i);
		plan_packet(f->sim, l, &info,
			    (uint32_t)wire_data_packet_bytes(info.len) + SIM_IP_OVERHEAD_BYTES,
			    drop, &plan);
		if (plan.copies && !send_packet(f->sim, l, head, &data, i,
						payload ? payload + at : NULL, &plan, &flight))
			deliver_count(&f->worker, SDR_CTR_tx_errors, 1);
	}
}

static uint64_t run_bytes(const struct fabric_write *w)
{
	return (uint64_t)(w->count - 1) * w->payload_bytes + w->last_bytes;
}

static void run_taken(struct sim_fabric *f, struct sim_channel *c, struct fabric_write *w)
{
	w->first_psn = c->psn;
	c->psn = (c->psn + w->count) & WIRE_PSN_MASK;
	c->sent_pkts += w->count;
	deliver_count(&f->worker, SDR_CTR_tx_pkts, w->count);
	deliver_count(&f->worker, SDR_CTR_tx_bytes, run_bytes(w));
}

/* Runs that wait to be read. */

static uint16_t *runs_of(const struct sim_qp *qp, uint32_t message)
{
	return &qp->tx_runs[message % SIM_TX_KEYS];
}

/* True where it was kept; without an mr the bytes are copied now. */
static bool run_keep(struct sim_fabric *f, const struct fabric_write *w)
{
	struct sim_run run = {.w = *w, .reads = w->mr != NULL && run_bytes(w) > 0};
	size_t copied = run.reads || f->sim->payload_off ? 0 : run_bytes(w);
	struct sim_packet *p = NULL;

	if (f->runs.n < SIM_SEND_RUNS)
		p = sim_packet_new(&f->sim->pool, (uint32_t)(sizeof(run) + copied));
	if (p && !f->runs.head &&
	    heap_set(&f->sim->heap, &f->send_event.node,
		     f->sim->now_ns + f->attr.device.zero_copy_ns, f->sim->seq++)) {
		sim_packet_free(&f->sim->pool, p);
		p = NULL;
	}
	if (!p)
		return false;
	p->deliver_ns = f->sim->now_ns + f->attr.device.zero_copy_ns;
	memcpy(p->bytes, &run, sizeof(run));
	if (copied)
		memcpy(p->bytes + sizeof(run), w->addr, copied);
	if (run.reads)
		++*runs_of(sim_qp_of(w->qp), w->message);
	sim_fifo_put(&f->runs, p);
	return true;
}

/* Ends the wait of the first one. */
static void run_take(struct sim_fabric *f, struct sim_run *run, struct sim_packet **p)
{
	*p = sim_fifo_take(&f->runs);
	memcpy(run, (*p)->bytes, sizeof(*run));
	if (run->reads)
		--*runs_of(sim_qp_of(run->w.qp), run->w.message);
	else
		run->w.addr = (*p)->bytes + sizeof(*run);
}

static void runs_timer(struct sim_fabric *f)
{
	heap_remove(&f->sim->heap, &f->send_event.node);
	/* It was in the heap: there is room. */
	if (f->runs.head)
		(void)heap_set(&f->sim->heap, &f->send_event.node, f->runs.head->deliver_ns,
			       f->sim->seq++);
	if (f->runs_full && f->runs.n <= SIM_SEND_RUNS / 2) {
		f->runs_full = false;
		f->writable = true;
		sim_due_set(f);
	}
}

void sim_runs_send(struct sim_fabric *f, uint64_t until_ns)
{
	while (f->runs.head && f->runs.head->deliver_ns <= until_ns) {
		struct sim_channel *c;
		struct sim_packet *p;
		struct sim_head head;
		struct sim_run run;
		struct sim_link *l;

		run_take(f, &run, &p);
		c = &sim_qp_of(run.w.qp)->chan[run.w.channel];
		sim_addr_head(sim_qp_of(run.w.qp), run.w.channel, &c->addr[0], &head);
		l = channel_link(f->sim, c, &head);
		if (l)
			send_run(f, l, &head, &run.w);
		sim_packet_free(&f->sim->pool, p);
	}
	runs_timer(f);
}

void sim_runs_forget(struct sim_fabric *f, const struct sim_qp *qp)
{
	struct sim_fifo keep;

	sim_fifo_init(&keep);
	while (f->runs.head) {
		struct sim_packet *p = sim_fifo_take(&f->runs);
		struct sim_run run;

		memcpy(&run, p->bytes, sizeof(run));
		if (run.w.qp == &qp->base)
			sim_packet_free(&f->sim->pool, p);
		else
			sim_fifo_put(&keep, p);
	}
	sim_fifo_init(&f->runs);
	while (keep.head)
		sim_fifo_put(&f->runs, sim_fifo_take(&keep));
	runs_timer(f);
}

/* In one instant somebody asks so often for the same only to wait for it. */
#define ASKED_ENOUGH 64u

bool sim_tx_busy(struct fabric_qp *fqp, uint32_t message)
{
	struct sim_qp *qp = sim_qp_of(fqp);
	struct sim_fabric *f = sim_fabric_of(fqp->fabric);

	if (!qp->tx_runs || !*runs_of(qp, message))
		return false;
	if (qp->asked_ns != f->sim->now_ns || qp->asked_message != message)
		qp->asked = 0;
	qp->asked_ns = f->sim->now_ns;
	qp->asked_message = message;
	if (++qp->asked < ASKED_ENOUGH)
		return true;
	sim_runs_send(f, UINT64_MAX);
	return false;
}

/* Posting. */

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
		if (f->attr.device.zero_copy_ns) {
			w[i].first_psn = c->psn;
			if (!run_keep(f, &w[i])) {
				f->runs_full = true;
				deliver_count(&f->worker, SDR_CTR_tx_again, 1);
				return (int)i;
			}
			run_taken(f, c, &w[i]);
		} else {
			run_taken(f, c, &w[i]);
			send_run(f, l, &head, &w[i]);
		}
	}
	return (int)n;
}

int sim_ctrl(struct fabric_qp *fqp, uint32_t channel, uint32_t path, const void *data, size_t len)
{
	struct sim_qp *qp = sim_qp_of(fqp);
	struct sim_fabric *f = sim_fabric_of(fqp->fabric);
	size_t prefix = qp->rdma ? WIRE_ROCEV2_CTRL_PREFIX_BYTES : 0;
	size_t bytes = wire_ctrl_packet_bytes(prefix + len);
	struct sim_packet_info info;
	struct sim_channel *c;
	struct sim_head head;
	struct sim_packet *p;
	struct sim_link *l;
	struct plan plan;
	int place;

	if (channel >= qp->channels || len > (qp->rdma ? FABRIC_ROCEV2_CTRL_MAX : FABRIC_CTRL_MAX))
		return -EINVAL;
	c = &qp->chan[channel];
	place = sim_addr_place(c, path);
	if (!qp->connected || !c->addr[0].set || place < 0)
		return -ENOTCONN;
	sim_addr_head(qp, channel, &c->addr[place], &head);
	l = path ? sim_link_use(f->sim, &head, SIM_PROTO_UDP) : channel_link(f->sim, c, &head);
	if (!l || queue_full(f, l))
		return -EAGAIN;
	fill_info(&info, f->sim, &head, c->psn);
	info.is_ctrl = true;
	info.ctrl_body = data;
	info.len = (uint32_t)len;
	plan_packet(f->sim, l, &info, (uint32_t)bytes + SIM_IP_OVERHEAD_BYTES, false, &plan);
	c->psn = (info.psn + 1) & WIRE_PSN_MASK;
	c->sent_pkts++;
	deliver_count(&f->worker, SDR_CTR_tx_ctrl, 1);
	if (!plan.copies || !(p = packet_new(f, &head, bytes)))
		return 0;
	wire_ctrl_put_header(p->bytes,
			     &(struct wire_ctrl_header){.dest_qpn = qp->peer.qpn,
							.src_qpn = qp->rx.qpn,
							.psn = info.psn,
							.qkey = qp->rdma ? WIRE_ROCEV2_QKEY : 0},
			     prefix + len);
	if (prefix)
		put_be32(p->bytes + WIRE_CTRL_HDR_BYTES, channel << 24);
	if (len)
		memcpy(p->bytes + WIRE_CTRL_HDR_BYTES + prefix, data, len);
	seal(f->sim, p, qp->rdma ? NULL : &qp->tx_key, WIRE_CTRL_HDR_BYTES, prefix + len);
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

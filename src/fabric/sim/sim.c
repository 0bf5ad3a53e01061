/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The world: hosts, links, the heap of what happens next, and arrivals. Contract: sim.h.
 */
#include "fabric/sim/sim_int.h"

#include "base/bits.h"
#include "base/check.h"
#include <errno.h>
#include <string.h>

int sim_create(uint64_t seed, const struct sdr_alloc *alloc, struct sim **out)
{
	struct sim *sim = alloc_zeroed(alloc, sizeof(*sim));

	if (!sim)
		return -ENOMEM;
	sim->alloc = alloc;
	sim->seed = seed;
	rng_init(&sim->rng, seed);
	heap_init(&sim->heap, alloc);
	sim_pool_init(&sim->pool, alloc);
	wire_icrc_flow_v6(&sim->flow.icrc, (const uint8_t[16]){0xfd, 1},
			  (const uint8_t[16]){0xfd, 2}, FABRIC_ROCEV2_PORT, FABRIC_ROCEV2_PORT);
	*out = sim;
	return 0;
}

int sim_payload_off(struct sim *sim)
{
	if (sim->nfabrics)
		return -EBUSY;
	sim->payload_off = true;
	return 0;
}

static void link_free(struct sim *sim, struct sim_link *l)
{
	alloc_free(sim->alloc, l->drop);
	alloc_free(sim->alloc, l->blackout);
	alloc_free(sim->alloc, l);
}

void sim_destroy(struct sim *sim)
{
	if (!sim)
		return;
	for (uint32_t i = 0; i < sim->nfabrics; i++)
		SDR_ASSERT(!sim->fabric[i]);
	sim_drops_fini(sim);
	heap_fini(&sim->heap); /* it looks at its nodes: before links and packets go */
	for (uint32_t i = 0; i < SIM_LINK_BUCKETS; i++) {
		while (sim->link[i]) {
			struct sim_link *next = sim->link[i]->bucket_next;

			link_free(sim, sim->link[i]);
			sim->link[i] = next;
		}
	}
	sim_pool_fini(&sim->pool); /* packets in flight with it */
	for (uint32_t i = 0; i < sim->nhosts; i++)
		alloc_free(sim->alloc, sim->host[i].nat);
	alloc_free(sim->alloc, sim->host);
	alloc_free(sim->alloc, sim->fabric);
	alloc_free(sim->alloc, sim);
}

/* Room for one more of `size` bytes; the array may move. */
static int grow(const struct sdr_alloc *alloc, void **array, uint32_t *cap, uint32_t n, size_t size)
{
	uint32_t want = *cap ? *cap * 2 : 4;
	void *bigger;

	if (n < *cap)
		return 0;
	bigger = alloc_zeroed(alloc, want * size);
	if (!bigger)
		return -ENOMEM;
	if (n)
		memcpy(bigger, *array, n * size);
	alloc_free(alloc, *array);
	*array = bigger;
	*cap = want;
	return 0;
}

int sim_host_add(struct sim *sim)
{
	void *array = sim->host;
	int err;

	if (sim->nhosts == SIM_MAX_HOSTS)
		return -ENOSPC;
	err = grow(sim->alloc, &array, &sim->cap_hosts, sim->nhosts, sizeof(*sim->host));
	sim->host = array;
	return err ? err : (int)sim->nhosts++;
}

/* All RDMA devices have the same port, so each has its host for itself. */
static bool rdma_taken(const struct sim *sim, uint32_t host)
{
	for (uint32_t i = 0; i < sim->nfabrics; i++)
		if (sim->fabric[i] && sim->fabric[i]->host == host &&
		    sim->fabric[i]->attr.device.rocev2)
			return true;
	return false;
}

/* A place in the world's list of fabrics. */
static int fabric_slot(struct sim *sim, struct sim_fabric *f)
{
	void *array = sim->fabric;
	int err;

	if (sim->nfabrics == SIM_MAX_FABRICS ||
	    sim->host[f->host].fabrics == UINT16_MAX - SIM_PORT_BASE)
		return -ENOSPC;
	if (f->attr.device.rocev2 && rdma_taken(sim, f->host))
		return -EADDRINUSE;
	err = grow(sim->alloc, &array, &sim->cap_fabrics, sim->nfabrics, sizeof(*sim->fabric));
	sim->fabric = array;
	if (err)
		return err;
	f->index = sim->nfabrics;
	f->port = f->attr.device.rocev2 ? (uint16_t)FABRIC_ROCEV2_PORT
					: (uint16_t)(SIM_PORT_BASE + sim->host[f->host].fabrics++);
	sim->fabric[sim->nfabrics++] = f;
	return 0;
}

int sim_fabric_open(struct sim *sim, int host, const struct sim_fabric_attr *attr,
		    struct fabric **out)
{
	struct sim_fabric *f;
	int err;

	if (host < 0 || (uint32_t)host >= sim->nhosts || attr->max_payload > SIM_MAX_PAYLOAD ||
	    sim_device_check(&attr->device))
		return -EINVAL;
	f = alloc_zeroed(sim->alloc, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->base.ops = &sim_fabric_ops;
	f->sim = sim;
	f->host = (uint32_t)host;
	f->attr = *attr;
	if (!f->attr.max_payload)
		f->attr.max_payload = SIM_DEFAULT_PAYLOAD;
	if (f->attr.device.rocev2)
		f->attr.max_payload = sim_rdma_mtu(f->attr.max_payload);
	if (f->attr.device.rocev2 && !f->attr.device.generations)
		f->attr.device.generations = FABRIC_MAX_GENERATIONS;
	if (!f->attr.max_ctrl)
		f->attr.max_ctrl = SIM_DEFAULT_CTRL_EVENTS;
	f->event.kind = SIM_EVENT_WRITABLE;
	heap_node_init(&f->event.node);
	f->news_event.kind = SIM_EVENT_NEWS;
	heap_node_init(&f->news_event.node);
	f->send_event.kind = SIM_EVENT_SEND;
	heap_node_init(&f->send_event.node);
	sim_fifo_init(&f->runs);
	deliver_worker_init(&f->worker, 0);
	f->pend_tail = &f->pend;
	sim_fifo_init(&f->ctrl);
	err = f->attr.max_payload ? fabric_slot(sim, f) : -EINVAL;
	if (err) {
		alloc_free(sim->alloc, f);
		return err;
	}
	*out = &f->base;
	return 0;
}

struct sim_qp *sim_qp_find(const struct sim *sim, uint32_t qpn)
{
	const struct sim_qpn *number = sim->qpn[qpn % SIM_QPN_BUCKETS];

	while (number && number->qpn != qpn)
		number = number->bucket_next;
	return number ? number->qp : NULL;
}

void sim_qpn_add(struct sim *sim, struct sim_qpn *number, struct sim_qp *qp)
{
	struct sim_qpn **bucket;

	do {
		number->qpn = (uint32_t)rng_next(&sim->rng) & WIRE_QPN_MASK;
	} while (number->qpn < SIM_QPN_FIRST || sim_qp_find(sim, number->qpn));
	number->qp = qp;
	bucket = &sim->qpn[number->qpn % SIM_QPN_BUCKETS];
	number->bucket_next = *bucket;
	*bucket = number;
}

void sim_qpn_remove(struct sim *sim, struct sim_qpn *number)
{
	struct sim_qpn **at = &sim->qpn[number->qpn % SIM_QPN_BUCKETS];

	while (*at != number)
		at = &(*at)->bucket_next;
	*at = number->bucket_next;
}

bool sim_is_host(const struct sim *sim, int host)
{
	return host >= 0 && (uint32_t)host < sim->nhosts;
}

/* Packets on their way. */

static void packet_drop(struct sim *sim, struct sim_packet *p)
{
	sim->in_flight--;
	sim_packet_free(&sim->pool, p);
}

/* In the link's order, so that a link has one entry in the heap, not one a packet. */
bool sim_in_order(const struct sim_link *l, uint64_t deliver_ns)
{
	return deliver_ns <= l->link.in_order_ns && (!l->fifo.head || deliver_ns >= l->last_ns);
}

bool sim_launch(struct sim *sim, struct sim_link *l, struct sim_packet *p, uint64_t deliver_ns)
{
	p->deliver_ns = deliver_ns;
	p->seq = sim->seq++;
	sim->in_flight++;
	if (!sim_in_order(l, deliver_ns)) {
		p->event.kind = SIM_EVENT_PACKET;
		heap_node_init(&p->event.node);
		if (heap_set(&sim->heap, &p->event.node, deliver_ns, p->seq)) {
			packet_drop(sim, p);
			return false;
		}
		return true;
	}
	if (!l->fifo.head && heap_set(&sim->heap, &l->event.node, deliver_ns, p->seq)) {
		packet_drop(sim, p);
		return false;
	}
	sim_fifo_put(&l->fifo, p);
	l->last_ns = deliver_ns;
	return true;
}

/* News. */

void sim_due_set(struct sim_fabric *f)
{
	struct sim *sim = f->sim;

	heap_remove(&sim->heap, &f->news_event.node);
	if (f->due)
		return;
	f->due = f->listed = true;
	f->due_next = NULL;
	f->due_prev = sim->due_tail;
	if (sim->due_tail)
		sim->due_tail->due_next = f;
	else
		sim->due = f;
	sim->due_tail = f;
	sim->news = true;
}

void sim_news(struct sim_fabric *f)
{
	uint64_t wait_ns = f->attr.device.coalesce_ns;

	if (f->due || f->news_event.node.pos != HEAP_NONE)
		return;
	if (!wait_ns ||
	    heap_set(&f->sim->heap, &f->news_event.node, f->sim->now_ns + wait_ns, f->sim->seq++))
		sim_due_set(f);
}

static void due_unlist(struct sim_fabric *f)
{
	struct sim *sim = f->sim;

	if (!f->listed)
		return;
	f->listed = false;
	if (f->due_prev)
		f->due_prev->due_next = f->due_next;
	else
		sim->due = f->due_next;
	if (f->due_next)
		f->due_next->due_prev = f->due_prev;
	else
		sim->due_tail = f->due_prev;
}

void sim_due_clear(struct sim_fabric *f)
{
	heap_remove(&f->sim->heap, &f->news_event.node);
	due_unlist(f);
	f->due = false;
}

struct fabric *sim_due_take(struct sim *sim)
{
	struct sim_fabric *f = sim->due;

	if (!f)
		return NULL;
	due_unlist(f);
	return &f->base;
}

void sim_owner_set(struct fabric *f, void *owner)
{
	sim_fabric_of(f)->owner = owner;
}

void *sim_owner(const struct fabric *f)
{
	return sim_fabric_of(f)->owner;
}

void sim_pend(struct sim_fabric *f, struct sim_qp *qp, uint32_t what)
{
	sim_news(f);
	if (!qp->pend) {
		qp->pend_next = NULL;
		*f->pend_tail = qp;
		f->pend_tail = &qp->pend_next;
	}
	qp->pend |= what;
}

/* Arrivals. */

static void arrive_refused(struct sim *sim, const struct sim_packet *p)
{
	struct sim_qp *qp = sim_qp_find(sim, p->to_qpn);

	if (!qp || sim_fabric_of(qp->base.fabric)->index != p->head.to_fabric || qp->rdma)
		return; /* an RDMA device tells nobody of ICMP */
	qp->chan[p->head.channel].refused = true;
	sim_pend(sim_fabric_of(qp->base.fabric), qp, SIM_PEND_REFUSED);
}

/* Keeps the packet for poll: true where it did. */
static bool arrive_ctrl(struct sim_fabric *f, struct sim_qp *qp, uint32_t channel,
			struct sim_packet *p, const struct deliver_pkt *pkt)
{
	struct deliver_ctrl ctrl;

	if (deliver_ctrl(&f->worker, &qp->rx, channel, &f->sim->flow, pkt, &ctrl))
		return false;
	if (f->ctrl.n >= f->attr.max_ctrl) {
		deliver_count(&f->worker, SDR_CTR_rx_ctrl_dropped, 1);
		return false;
	}
	if (qp->rdma) {
		p->head.channel = ctrl.channel;
		p->head.from_qpn = ctrl.src_qpn;
	}
	p->to_qpn = qp->rx.qpn;
	p->psn = ctrl.psn;
	p->len = ctrl.len;
	memmove(p->bytes, ctrl.body, ctrl.len);
	sim_fifo_put(&f->ctrl, p);
	sim_news(f);
	return true;
}

static unsigned int arrive_data(struct sim_fabric *f, struct sim_qp *qp, uint32_t channel,
				const struct deliver_pkt *pkt, unsigned int n)
{
	struct deliver_facts facts = {0};
	unsigned int used =
		deliver_data(&f->worker, &qp->rx, channel, &f->sim->flow, pkt, n, &facts);

	if (facts.committed)
		sim_pend(f, qp, SIM_PEND_READY);
	if (facts.late) {
		qp->late_channel = channel;
		qp->late_message = facts.late_message;
		sim_pend(f, qp, SIM_PEND_LATE);
	}
	return used;
}

/* A packet for one of an RDMA device's numbers: true, and the channel, where it goes on. */
static bool arrive_rdma(struct sim_fabric *f, struct sim_qp *qp, uint32_t qpn, uint8_t opcode,
			const struct deliver_pkt *pkt, uint32_t *channel)
{
	int which = deliver_data_qp(&qp->rx, qpn);

	if ((opcode == WIRE_OP_DATA) != (which >= 0)) {
		deliver_unknown(&f->worker); /* another transport's */
		return false;
	}
	*channel = which < 0 ? 0 : (uint32_t)which % FABRIC_MAX_CHANNELS;
	if (which < 0 || !f->attr.device.nic)
		return true;
	sim_rdma_arrive(f, qp, (uint32_t)which, pkt);
	return false;
}

/* n packets that came to one fabric on one channel; takes them. */
static void arrive(struct sim *sim, struct sim_fabric *f, struct sim_packet **p, unsigned int n)
{
	struct deliver_pkt pkt[DELIVER_MAX_TRAIN];
	unsigned int used;

	for (unsigned int i = 0; i < n; i++)
		pkt[i] = (struct deliver_pkt){.bytes = p[i]->bytes,
					      .len = p[i]->len,
					      .absent = p[i]->absent,
					      .ce = p[i]->ce,
					      .at_ns = p[i]->deliver_ns};
	for (unsigned int i = 0; i < n; i += used) {
		struct sim_qp *qp;
		uint32_t channel;
		uint8_t opcode;
		uint32_t qpn;

		used = 1;
		if (deliver_peek(&f->worker, &pkt[i], &opcode, &qpn))
			continue;
		qp = sim_qp_find(sim, qpn);
		if (!qp || qp->base.fabric != &f->base) {
			deliver_unknown(&f->worker);
			continue;
		}
		if (qp->rdma && !arrive_rdma(f, qp, qpn, opcode, &pkt[i], &channel))
			continue;
		if (!qp->rdma)
			channel = sim_addr_channel(f, qp, &p[i]->head);
		if (channel == SIM_NONE)
			continue;
		if (opcode == WIRE_OP_DATA)
			used = arrive_data(f, qp, channel, &pkt[i], n - i);
		else if (arrive_ctrl(f, qp, channel, p[i], &pkt[i]))
			p[i] = NULL;
	}
	for (unsigned int i = 0; i < n; i++)
		if (p[i])
			packet_drop(sim, p[i]);
}

static struct sim_fabric *fabric_at(const struct sim *sim, uint32_t index)
{
	return index < sim->nfabrics ? sim->fabric[index] : NULL;
}

/* Takes those that the NAT lets through to the front; the others are lost. */
static unsigned int pass_nat(struct sim *sim, struct sim_packet **p, unsigned int n)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (sim_addr_pass(sim, p[i]))
			p[kept++] = p[i];
		else
			packet_drop(sim, p[i]);
	}
	return kept;
}

/* n packets of one kind, with the same ports, for one fabric and channel; takes them. */
static void arrive_any(struct sim *sim, struct sim_packet **p, unsigned int n)
{
	struct sim_fabric *f;

	if (!n)
		return;
	f = fabric_at(sim, p[0]->head.to_fabric);
	sim->now_ns = u64_max(sim->now_ns, p[n - 1]->deliver_ns);
	if (p[0]->head.to_host < sim->nhosts && sim->host[p[0]->head.to_host].nat)
		n = pass_nat(sim, p, n);
	if (!n)
		return;
	if (p[0]->kind == SIM_PKT_WIRE && f) {
		arrive(sim, f, p, n);
		return;
	}
	for (unsigned int i = 0; i < n; i++) {
		if (p[i]->kind == SIM_PKT_REFUSED)
			arrive_refused(sim, p[i]);
		else
			sim_refuse(sim, p[i]);
		packet_drop(sim, p[i]);
	}
}

static bool before(const struct sim_packet *p, const struct heap_node *other)
{
	return !other || p->deliver_ns < other->key ||
	       (p->deliver_ns == other->key && p->seq < other->tie);
}

/* In sim_run() a packet that may be news ends it, or begins the wait of a fabric that coalesces. */
static uint64_t train_end(const struct sim *sim, const struct sim_packet *p, uint64_t until_ns)
{
	const struct sim_fabric *f = fabric_at(sim, p->head.to_fabric);

	if (!sim->running || !f || f->due || f->news_event.node.pos != HEAP_NONE)
		return until_ns;
	return u64_min(until_ns, p->deliver_ns + f->attr.device.coalesce_ns);
}

static struct sim_packet *link_take(struct sim *sim, struct sim_link *l)
{
	return l->fifo.head->kind == SIM_PKT_FLIGHT ? sim_flight_take(sim, l)
						    : sim_fifo_take(&l->fifo);
}

static bool continues(const struct sim_packet *p, const struct sim_packet *first)
{
	return p->head.to_fabric == first->head.to_fabric &&
	       p->head.channel == first->head.channel &&
	       (p->kind == SIM_PKT_REFUSED) == (first->kind == SIM_PKT_REFUSED) &&
	       p->head.src_port == first->head.src_port && p->head.dst_port == first->head.dst_port;
}

/* The head of a link's fifo and those after it that nothing else comes between. */
static unsigned int take_train(struct sim *sim, struct sim_link *l, uint64_t until_ns,
			       struct sim_packet *train[DELIVER_MAX_TRAIN])
{
	const struct heap_node *other;
	struct sim_packet *p;
	unsigned int n = 0;

	other = heap_second(&sim->heap);
	until_ns = train_end(sim, l->fifo.head, until_ns);
	do {
		p = link_take(sim, l);
		if (p)
			train[n++] = p;
		p = l->fifo.head;
	} while (p && n && n < DELIVER_MAX_TRAIN && p->deliver_ns <= until_ns && before(p, other) &&
		 continues(p, train[0]));
	if (p) /* it is in the heap already */
		(void)heap_set(&sim->heap, &l->event.node, p->deliver_ns, p->seq);
	else
		heap_remove(&sim->heap, &l->event.node);
	return n;
}

static struct sim_fabric *fabric_of_event(struct sim_event *event, size_t offset)
{
	return (struct sim_fabric *)(uintptr_t)((uint8_t *)event - offset);
}

static void happen(struct sim *sim, struct sim_event *event, uint64_t until_ns)
{
	struct sim_packet *train[DELIVER_MAX_TRAIN];
	struct sim_fabric *f;

	switch (event->kind) {
	case SIM_EVENT_LINK:
		arrive_any(sim, train,
			   take_train(sim, (struct sim_link *)(void *)event, until_ns, train));
		break;
	case SIM_EVENT_PACKET:
		heap_remove(&sim->heap, &event->node);
		train[0] = (struct sim_packet *)(void *)event;
		arrive_any(sim, train, 1);
		break;
	case SIM_EVENT_WRITABLE:
		heap_remove(&sim->heap, &event->node);
		f = fabric_of_event(event, offsetof(struct sim_fabric, event));
		f->writable = true;
		sim_due_set(f);
		break;
	case SIM_EVENT_SEND:
		heap_remove(&sim->heap, &event->node);
		f = fabric_of_event(event, offsetof(struct sim_fabric, send_event));
		sim_runs_send(f, sim->now_ns);
		sim_due_set(f); /* tx_busy() may say something else now */
		break;
	case SIM_EVENT_NEWS:
		sim_due_set(fabric_of_event(event, offsetof(struct sim_fabric, news_event)));
		break;
	}
}

void sim_advance(struct sim *sim, uint64_t until_ns)
{
	struct heap_node *node;

	while ((node = heap_first(&sim->heap)) && node->key <= until_ns) {
		sim->now_ns = u64_max(sim->now_ns, node->key);
		happen(sim, (struct sim_event *)(void *)node, until_ns);
	}
	sim->now_ns = u64_max(sim->now_ns, until_ns);
}

bool sim_run(struct sim *sim, uint64_t until_ns)
{
	struct heap_node *node;
	bool news;

	sim->running = true;
	for (;;) {
		if (sim->news)
			until_ns = u64_min(until_ns, sim->now_ns);
		node = heap_first(&sim->heap);
		if (!node || node->key > until_ns)
			break;
		sim->now_ns = u64_max(sim->now_ns, node->key);
		happen(sim, (struct sim_event *)(void *)node, until_ns);
	}
	sim->running = false;
	sim->now_ns = u64_max(sim->now_ns, until_ns);
	news = sim->news;
	sim->news = false;
	return news;
}

uint64_t sim_now(const struct sim *sim)
{
	return sim->now_ns;
}

uint64_t sim_next_event_ns(const struct sim *sim)
{
	const struct heap_node *node = heap_first(&sim->heap);

	return node ? u64_max(node->key, sim->now_ns) : UINT64_MAX;
}

void sim_filter_set(struct sim *sim, sim_filter_fn *fn, void *arg)
{
	sim->filter = fn;
	sim->filter_arg = arg;
}

void sim_inject(struct sim *sim, struct fabric *to, const void *bytes, size_t len, uint32_t channel)
{
	struct sim_packet *p;

	SDR_ASSERT(!sim->payload_off);
	if (channel >= FABRIC_MAX_CHANNELS || len > SIM_MAX_PAYLOAD)
		return;
	p = sim_packet_new(&sim->pool, (uint32_t)len);
	if (!p)
		return;
	if (len)
		memcpy(p->bytes, bytes, len);
	p->head.from_host = SIM_NONE;
	p->kind = SIM_PKT_WIRE;
	p->head.channel = channel;
	p->ce = false;
	p->deliver_ns = sim->now_ns;
	sim->in_flight++;
	arrive(sim, sim_fabric_of(to), &p, 1);
}

uint64_t sim_starved(const struct fabric *f)
{
	return sim_fabric_of(f)->starved_pkts;
}

uint64_t sim_in_flight(const struct sim *sim)
{
	return sim->in_flight;
}

static uint64_t check_fifo(const struct sim_link *l)
{
	uint64_t n = 0;

	SDR_ASSERT((l->fifo.head != NULL) == (l->event.node.pos != HEAP_NONE));
	SDR_ASSERT(!l->fifo.head || (l->event.node.key == l->fifo.head->deliver_ns &&
				     l->event.node.tie == l->fifo.head->seq));
	for (const struct sim_packet *p = l->fifo.head; p; p = p->next) {
		n += p->kind == SIM_PKT_FLIGHT ? sim_flight_left(p) : 1;
		SDR_ASSERT(!p->next || p->deliver_ns < p->next->deliver_ns ||
			   (p->deliver_ns == p->next->deliver_ns && p->seq < p->next->seq));
	}
	SDR_ASSERT(n == l->fifo.n);
	return n;
}

static uint64_t check_fabric(const struct sim_fabric *f)
{
	SDR_ASSERT((f->runs.head != NULL) == (f->send_event.node.pos != HEAP_NONE));
	SDR_ASSERT(!f->listed || f->due);
	SDR_ASSERT(f->due || f->news_event.node.pos != HEAP_NONE ||
		   !(f->writable || f->pend || f->ctrl.head || f->cq_n));
	return f->ctrl.n;
}

void sim_check(const struct sim *sim)
{
	uint64_t n = 0;

	heap_check(&sim->heap);
	for (uint32_t i = 0; i < SIM_LINK_BUCKETS; i++) {
		for (const struct sim_link *l = sim->link[i]; l; l = l->bucket_next) {
			link_check(&l->link);
			n += check_fifo(l);
		}
	}
	for (uint32_t i = 0; i < sim->nfabrics; i++)
		n += sim->fabric[i] ? check_fabric(sim->fabric[i]) : 0;
	for (uint32_t i = 0; i < sim->heap.n; i++) {
		const struct sim_event *event = (const struct sim_event *)(void *)sim->heap.slot[i];

		n += event->kind == SIM_EVENT_PACKET;
	}
	SDR_ASSERT(n == sim->in_flight);
	(void)n;
}

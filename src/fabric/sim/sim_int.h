/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of fabric/sim share. Start at sim.h.
 */
#ifndef SDR_FABRIC_SIM_SIM_INT_H
#define SDR_FABRIC_SIM_SIM_INT_H

#include "base/heap.h"
#include "base/rng.h"
#include "fabric/deliver.h"
#include "fabric/sim/sim.h"
#include "wire/wire.h"

#define SIM_QPN_BUCKETS 4096u
#define SIM_LINK_BUCKETS 1024u
#define SIM_POOL_CLASSES 128u
#define SIM_NONE UINT32_MAX
#define SIM_QPN_FIRST 2u /* 0 and 1 are special in RoCE */

enum sim_event_kind { SIM_EVENT_LINK, SIM_EVENT_PACKET, SIM_EVENT_WRITABLE };

/* An entry of the world's one heap, embedded first in what it is about. */
struct sim_event {
	struct heap_node node;
	enum sim_event_kind kind;
};

enum sim_packet_kind { SIM_PKT_WIRE, SIM_PKT_REFUSED };

/* In flight, or (control) waiting for poll. */
struct sim_packet {
	struct sim_event event; /* only of a packet that is out of its link's order */
	struct sim_packet *next;
	uint64_t deliver_ns;
	uint64_t seq; /* orders packets of the same time */
	uint32_t from_host, to_host;
	uint32_t from_fabric, to_fabric; /* may be SIM_NONE or closed meanwhile */
	uint32_t from_qpn;
	uint32_t channel;
	uint32_t to_qpn, psn; /* of control that waits for poll; its body is in bytes[len] */
	enum sim_packet_kind kind;
	uint32_t pool_class;
	bool ce;
	uint32_t len;
	uint8_t bytes[]; /* BTH to trailer */
};

struct sim_fifo {
	struct sim_packet *head, **tail;
	uint64_t n;
};

/*
 * One direction between two hosts. Invariants: (1) packets of the fifo are in order of
 * (deliver_ns, seq); (2) event is in the heap, with the head's order, if and only if the
 * fifo is not empty.
 */
struct sim_link {
	struct sim_event event;
	struct sim_link *bucket_next;
	uint32_t from, to, channel;
	struct link link;
	struct sim_fifo fifo;
	uint64_t last_ns; /* of the fifo's last packet */
	uint64_t *drop;
	struct link_blackout *blackout;
};

struct sim_channel {
	uint32_t psn;
	uint64_t sent_pkts;
	struct sim_link *link; /* cached while link_epoch is the world's */
	uint64_t link_epoch;
	bool refused;
};

enum sim_pend { SIM_PEND_READY = 1, SIM_PEND_LATE = 2, SIM_PEND_REFUSED = 4 };

struct sim_qp {
	struct fabric_qp base;
	struct deliver_qp rx;
	struct sim_qp *bucket_next;	  /* by QPN, world-wide */
	struct sim_qp *fabric_next, **at; /* of the fabric */
	struct sim_qp *pend_next;	  /* with something to tell */
	void *cookie;
	uint32_t channels;
	uint64_t token;
	uint32_t start_psn;
	bool connected;
	bool up; /* knows where the peer is */
	uint32_t peer_host, peer_fabric;
	uint32_t path_payload;
	struct fabric_peer peer;
	struct protect_key tx_key;
	uint32_t pend; /* enum sim_pend; not 0: in the fabric's list */
	uint32_t late_channel, late_message;
	struct sim_channel chan[FABRIC_MAX_CHANNELS];
};

struct sim_fabric {
	struct fabric base;
	struct sim_event event; /* WRITABLE is due then */
	struct sim *sim;
	uint32_t index; /* in the world */
	uint32_t host;
	uint16_t port;
	struct sim_fabric_attr attr;
	struct deliver_worker worker;
	struct sim_qp *qps;
	struct sim_qp *pend, **pend_tail;
	struct sim_fifo ctrl; /* received, not yet taken */
	bool writable;
};

struct sim_host {
	uint32_t fabrics; /* opened so far: numbers the ports */
};

struct sim_slab {
	struct sim_slab *next;
};

struct sim_pool {
	const struct sdr_alloc *alloc;
	struct sim_packet *free[SIM_POOL_CLASSES];
	struct sim_slab *slabs;
};

struct sim {
	const struct sdr_alloc *alloc;
	uint64_t seed;
	struct rng rng; /* QP numbers, tokens, PSNs */
	uint64_t now_ns;
	uint64_t seq;
	struct heap heap;
	struct sim_pool pool;
	uint64_t in_flight;
	uint64_t link_epoch; /* changes with the set of links */
	struct sim_link *link[SIM_LINK_BUCKETS];
	struct sim_qp *qp[SIM_QPN_BUCKETS];
	struct sim_host *host;
	uint32_t nhosts, cap_hosts;
	struct sim_fabric **fabric; /* NULL: closed */
	uint32_t nfabrics, cap_fabrics;
	sim_filter_fn *filter;
	void *filter_arg;
};

static inline struct sim_fabric *sim_fabric_of(const struct fabric *f)
{
	return (struct sim_fabric *)(uintptr_t)f; /* base is the first member */
}

static inline struct sim_qp *sim_qp_of(const struct fabric_qp *qp)
{
	return (struct sim_qp *)(uintptr_t)qp;
}

static inline void sim_fifo_init(struct sim_fifo *q)
{
	q->head = NULL;
	q->tail = &q->head;
	q->n = 0;
}

static inline void sim_fifo_put(struct sim_fifo *q, struct sim_packet *p)
{
	p->next = NULL;
	*q->tail = p;
	q->tail = &p->next;
	q->n++;
}

static inline struct sim_packet *sim_fifo_take(struct sim_fifo *q)
{
	struct sim_packet *p = q->head;

	q->head = p->next;
	if (!q->head)
		q->tail = &q->head;
	q->n--;
	return p;
}

/* sim_pool.c: a packet with room for len bytes, its len set, or NULL. */
void sim_pool_init(struct sim_pool *pool, const struct sdr_alloc *alloc);
void sim_pool_fini(struct sim_pool *pool);
struct sim_packet *sim_packet_new(struct sim_pool *pool, uint32_t len);
void sim_packet_free(struct sim_pool *pool, struct sim_packet *p);

/* sim.c */
struct sim_qp *sim_qp_find(const struct sim *sim, uint32_t qpn);
/* The link that a channel uses, made where there is none yet; NULL: no memory. */
struct sim_link *sim_link_use(struct sim *sim, uint32_t from, uint32_t to, uint32_t channel);
/* On its way; takes the packet, which arrives at deliver_ns. */
void sim_launch(struct sim *sim, struct sim_link *l, struct sim_packet *p, uint64_t deliver_ns);
/* Tells the owner at the next poll. */
void sim_pend(struct sim_fabric *f, struct sim_qp *qp, uint32_t what);

/* sim_tx.c */
int sim_post(struct fabric *f, struct fabric_write *w, unsigned int n);
int sim_ctrl(struct fabric_qp *qp, uint32_t channel, uint32_t path, const void *data, size_t len);
/* "Port unreachable" from the host that p came to, back to its sender. */
void sim_refuse(struct sim *sim, const struct sim_packet *p);

/* sim_fabric.c */
extern const struct fabric_ops sim_fabric_ops;

#endif

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
#include "link/nat.h"
#include "link/paths.h"
#include "wire/wire.h"

#define SIM_QPN_BUCKETS 4096u
#define SIM_LINK_BUCKETS 1024u
#define SIM_POOL_CLASSES 128u
#define SIM_NONE UINT32_MAX
#define SIM_PATH_KEY 0x80000000u /* + i: key of path i's link in place of a channel */
#define SIM_ADDRS 3u		 /* a channel's current address and two candidates */
#define SIM_PROTO_ICMP 1u
#define SIM_PROTO_UDP 17u
#define SIM_QPN_FIRST 2u  /* 0 and 1 are special in RoCE */
#define SIM_TX_KEYS 4096u /* more messages than can be under way, so none are confused */

enum sim_event_kind {
	SIM_EVENT_LINK,
	SIM_EVENT_PACKET,
	SIM_EVENT_WRITABLE,
	SIM_EVENT_SEND,
	SIM_EVENT_NEWS
};

/* An entry of the world's one heap, embedded first in what it is about. */
struct sim_event {
	struct heap_node node;
	enum sim_event_kind kind;
};

enum sim_packet_kind { SIM_PKT_WIRE, SIM_PKT_REFUSED, SIM_PKT_FLIGHT /* sim_flight.c */ };

/* Who sends from where to where. */
struct sim_head {
	uint32_t from_host, to_host;	 /* from SIM_NONE: injected */
	uint32_t from_fabric, to_fabric; /* may be SIM_NONE or closed meanwhile */
	uint32_t from_qpn;
	uint32_t channel;
	uint16_t src_port, dst_port; /* as the network sees them */
	uint16_t from_port, to_port; /* of the sockets: differ where a NAT is between */
};

/* In flight, or (control) waiting for poll. */
struct sim_packet {
	struct sim_event event; /* only of a packet that is out of its link's order */
	struct sim_packet *next;
	uint64_t deliver_ns;
	uint64_t seq; /* orders packets of the same time */
	struct sim_head head;
	uint32_t to_qpn, psn; /* of control that waits for poll; its body is in bytes[len] */
	enum sim_packet_kind kind;
	uint32_t pool_class;
	bool ce;
	uint32_t len;		     /* on the wire */
	uint32_t absent;	     /* as in deliver_pkt: bytes has len - absent */
	_Alignas(8) uint8_t bytes[]; /* BTH to trailer */
};

/* What the bytes of a run's packets follow from. */
struct sim_data {
	struct wire_data_template tmpl;
	struct protect_key key; /* sdr mode */
	bool rocev2;
	uint64_t offset; /* of the first, in the message */
	uint32_t first_psn, payload_bytes, last_bytes, count;
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
	uint32_t n_paths; /* of path 0: how many the pair has; 0: none */
};

/* Where a channel's packets go. `socket` is what the peer's NAT hides. */
struct sim_addr {
	uint32_t host, fabric;
	uint16_t port, socket;
	bool set;
};

struct sim_channel {
	uint32_t psn;
	uint64_t sent_pkts;
	struct sim_addr addr[SIM_ADDRS]; /* [0]: current; the others: not proved */
	struct sim_link *link;		 /* cached while link_epoch is the world's; as are drops */
	struct sim_drops *drops;
	uint64_t link_epoch;
	uint16_t link_port;  /* source port that it was chosen for */
	uint16_t port;	     /* of the socket that it sends from */
	uint32_t candidates; /* so far: the youngest one's number */
	uint32_t newest_psn; /* of a control datagram; valid once ctrl_seen */
	bool ctrl_seen;
	bool refused;
};

enum sim_pend { SIM_PEND_READY = 1, SIM_PEND_LATE = 2, SIM_PEND_REFUSED = 4 };

struct sim_qp;

/* One of a QP's numbers. */
struct sim_qpn {
	struct sim_qpn *bucket_next; /* by QPN, world-wide */
	struct sim_qp *qp;
	uint32_t qpn;
};

/* nic: memory behind a key. */
struct sim_region {
	struct fabric_key key;
	uint8_t *base; /* NULL: what is written is discarded */
	uint64_t len;
	bool live;
};

/* rocev2: what a QP has besides. */
struct sim_rdma {
	struct sim_qpn data[FABRIC_DATA_QPS]; /* qpn 0: none */
	struct fabric_key *keys;	      /* deliver's; from the connect on */
	struct sim_region *region; /* by message modulo messages * generations; as keys */
	uint32_t recv_used[FABRIC_DATA_QPS];
	uint32_t bound[FABRIC_MAX_GENERATIONS]; /* receives */
};

struct sim_qp {
	struct fabric_qp base;
	struct deliver_qp rx;
	struct sim_qpn number;
	struct sim_rdma *rdma;		  /* NULL: sdr mode */
	struct sim_qp *fabric_next, **at; /* of the fabric */
	struct sim_qp *pend_next;	  /* with something to tell */
	void *cookie;
	uint32_t channels;
	uint64_t token;
	uint32_t start_psn;
	bool connected;
	uint32_t path_payload;
	struct fabric_peer peer;
	struct protect_key tx_key;
	uint32_t pend; /* enum sim_pend; not 0: in the fabric's list */
	uint32_t late_channel, late_message;
	uint16_t *tx_runs; /* zero_copy_ns: by message modulo SIM_TX_KEYS; from the connect on */
	uint64_t asked_ns; /* tx_busy(): who asks again and again in one instant waits there */
	uint32_t asked_message, asked;
	struct sim_drop_seen *drop_seen; /* the one used last */
	struct sim_channel chan[FABRIC_MAX_CHANNELS];
};

/* A run that waits to be read (zero_copy_ns): the bytes of a sim_packet. */
struct sim_run {
	struct fabric_write w;
	bool reads; /* the caller's memory; else its bytes follow */
};

/* nic: what poll finds. */
struct sim_completion {
	struct sim_qp *qp; /* NULL: destroyed meanwhile */
	uint32_t which;	   /* transport QP, as fabric_data_qp() */
	uint32_t slot, packet, fragment, len;
};

/*
 * Invariant: while there is something for poll, it is due, or news_event is in the heap, or poll is
 * running.
 */
struct sim_fabric {
	struct fabric base;
	struct sim_event event; /* WRITABLE is due then */
	struct sim_event news_event;
	struct sim_fabric *due_next, *due_prev;
	bool due;    /* there is something for poll, */
	bool listed; /* ... and it is in the world's list: nobody took it */
	void *owner;
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
	/* zero_copy_ns: runs not yet read. send_event is in the heap if there are any. */
	struct sim_event send_event;
	struct sim_fifo runs;
	bool runs_full; /* somebody was not taken */
	struct sim_completion *cq;
	uint32_t cq_n, cq_cap;
	uint64_t starved_pkts;
};

struct sim_host {
	uint32_t fabrics;     /* opened so far: numbers the ports */
	struct link_nat *nat; /* NULL: none */
};

/* How often one QP has sent what a list names. */
struct sim_drop_seen {
	struct sim_drop_seen *next; /* of the list */
	struct sim_drops *of;
	struct sim_qp *qp;
	uint32_t sent[]; /* by entry; the first of a packet's counts */
};

struct sim_drop_entry {
	struct sim_drop drop;
	bool hit;
};

/* Packets to lose between two hosts. Entries ascend by (message, packet, attempt). */
struct sim_drops {
	struct sim_drops *next; /* of the world */
	uint32_t from, to;
	struct sim_drop_seen *seen;
	uint64_t lost_pkts;
	size_t n;
	struct sim_drop_entry entry[];
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
	uint64_t link_epoch; /* changes with the set of links, and of lists of drops */
	struct sim_drops *drops;
	bool payload_off;
	struct sim_fabric *due, *due_tail; /* longest due first */
	bool news;			   /* one has become due since sim_run() said so */
	bool running;			   /* in sim_run() */
	struct sim_link *link[SIM_LINK_BUCKETS];
	struct sim_qpn *qpn[SIM_QPN_BUCKETS];
	struct deliver_flow flow; /* rocev2: what every ICRC covers */
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

/* sim_pool.c: a packet with room for len bytes, its len set and none absent, or NULL. */
void sim_pool_init(struct sim_pool *pool, const struct sdr_alloc *alloc);
void sim_pool_fini(struct sim_pool *pool);
struct sim_packet *sim_packet_new(struct sim_pool *pool, uint32_t len);
void sim_packet_free(struct sim_pool *pool, struct sim_packet *p);

/* sim.c */
/* Draws a QP number for this QP and enters it. */
void sim_qpn_add(struct sim *sim, struct sim_qpn *number, struct sim_qp *qp);
void sim_qpn_remove(struct sim *sim, struct sim_qpn *number);
struct sim_qp *sim_qp_find(const struct sim *sim, uint32_t qpn);
struct sim_link *sim_link_find(const struct sim *sim, uint32_t from, uint32_t to, uint32_t channel);
/* Finds or makes; NULL: no memory. */
struct sim_link *sim_link_get(struct sim *sim, uint32_t from, uint32_t to, uint32_t channel);
/* Gives it new attributes, with copies of their lists. */
int sim_link_change(struct sim *sim, struct sim_link *l, const struct link_attr *attr);
/* On its way; takes the packet, which arrives at deliver_ns. False: no memory, it is gone. */
bool sim_launch(struct sim *sim, struct sim_link *l, struct sim_packet *p, uint64_t deliver_ns);
/* Would it keep the link's order? */
bool sim_in_order(const struct sim_link *l, uint64_t deliver_ns);
/* Tells the owner at the next poll. */
void sim_pend(struct sim_fabric *f, struct sim_qp *qp, uint32_t what);
/* There is something for poll: of what arrives, or for another reason, which does not wait. */
void sim_news(struct sim_fabric *f);
void sim_due_set(struct sim_fabric *f);
/* Poll begins: what it leaves is to be told anew. */
void sim_due_clear(struct sim_fabric *f);

/* sim_paths.c: the link that a packet takes, made where there is none yet; NULL: no memory. */
struct sim_link *sim_link_use(struct sim *sim, const struct sim_head *head, uint8_t proto);

/* sim_addr.c: -EINVAL: no address of this world. Its fabric may be SIM_NONE. */
int sim_addr_find(const struct sim *sim, const struct sockaddr_storage *addr, struct sim_addr *out);
uint32_t sim_addr_ip(uint32_t host);
/* Where the channel sends from now on, and from which socket. */
void sim_addr_set(struct sim_qp *qp, uint32_t channel, const struct sim_addr *addr);
/* Of a packet to one of the channel's addresses; the NAT of the sender's host takes note. */
void sim_addr_head(struct sim_qp *qp, uint32_t channel, const struct sim_addr *to,
		   struct sim_head *head);
/* False: the NAT of the receiver's host, which has one, knows no use for it. */
bool sim_addr_pass(struct sim *sim, const struct sim_packet *p);
/* The channel that a packet counts on, by where it came from; SIM_NONE: not for this socket. */
uint32_t sim_addr_channel(const struct sim_fabric *f, const struct sim_qp *qp,
			  const struct sim_head *head);
/* Of a verified control datagram: its path, 0 and up, or -errno where it is dropped. */
int sim_addr_of_ctrl(struct sim_fabric *f, struct sim_qp *qp, const struct sim_packet *p);
/* Which of the channel's addresses a path is now, or -1. */
int sim_addr_place(const struct sim_channel *ch, uint32_t path);
int sim_path_use(struct fabric_qp *qp, uint32_t channel, uint32_t path);
void sim_path_name(const struct fabric_qp *qp, uint32_t channel, char *buf, size_t len);

/* sim_tx.c */
int sim_post(struct fabric *f, struct fabric_write *w, unsigned int n);
int sim_ctrl(struct fabric_qp *qp, uint32_t channel, uint32_t path, const void *data, size_t len);
/* Reads and sends the runs that are due until then. */
void sim_runs_send(struct sim_fabric *f, uint64_t until_ns);
void sim_runs_forget(struct sim_fabric *f, const struct sim_qp *qp);
bool sim_tx_busy(struct fabric_qp *qp, uint32_t message);
/* "Port unreachable" from the host that p came to, back to its sender. */
void sim_refuse(struct sim *sim, const struct sim_packet *p);

/* A run's packet, sealed. Its payload, or NULL where that is absent. NULL: no memory. */
struct sim_packet *sim_data_packet(struct sim *sim, const struct sim_data *data, uint32_t index,
				   const uint8_t *payload);

/* sim_flight.c */
/*
 * Launches packet `index` of a run, one that is in order; *flight, NULL at first, is where the
 * run's packet before it went, if nothing else was launched since. False: no memory.
 */
bool sim_flight_add(struct sim *sim, struct sim_link *l, const struct sim_head *head,
		    const struct sim_data *data, uint32_t index, uint64_t deliver_ns, bool ce,
		    struct sim_packet **flight);
/* The next packet of the flight that is first in its link; NULL: no memory, it is gone. */
struct sim_packet *sim_flight_take(struct sim *sim, struct sim_link *l);
uint32_t sim_flight_left(const struct sim_packet *flight);

/* sim_drops.c */
struct sim_drops *sim_drops_find(const struct sim *sim, uint32_t from, uint32_t to);
/* This QP sends the packet once more: is it to be lost? */
bool sim_drops_take(struct sim_drops *drops, struct sim_qp *qp, uint32_t message, uint32_t packet);
/* The QP goes. */
void sim_drops_forget(struct sim *sim, const struct sim_qp *qp);
void sim_drops_fini(struct sim *sim);

/* sim_rdma.c */
int sim_device_check(const struct sim_device *d);
/* rocev2: the largest path MTU that fits so many bytes; 0: none. */
uint32_t sim_rdma_mtu(uint32_t bytes);
int sim_rdma_create(struct sim_qp *qp);
void sim_rdma_destroy(struct sim_qp *qp);
int sim_rdma_connect(struct sim_qp *qp, const struct fabric_peer *peer);
int sim_rdma_bind(struct sim_qp *qp, uint32_t message, const struct fabric_bind *b,
		  struct fabric_key *key);
void sim_rdma_fence_begin(struct sim_qp *qp, uint32_t message);
/* nic: n packets arrive for one transport QP. */
void sim_rdma_arrive(struct sim_fabric *f, struct sim_qp *qp, uint32_t which,
		     const struct deliver_pkt *pkt);
/* nic: completions become bits. */
void sim_rdma_poll(struct sim_fabric *f);

/* sim_fabric.c */
extern const struct fabric_ops sim_fabric_ops;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structs that the files of fabric/udp share, and who may touch what.
 *
 * Threads. Everything belongs to the caller, except: a worker's own struct (its thread's);
 * members marked W, which workers write or read at any time and are atomics, or do not
 * change while a worker can see the struct. Where a device has no workers, the caller's
 * thread is worker 0.
 *
 * Lifetime. Workers reach a QP through the table (qps[]), a socket through their epoll
 * set. The caller removes it there first and then waits until each worker has passed a
 * quiescent point (worker.c), after which none holds a pointer to it.
 */
#ifndef SDR_FABRIC_UDP_UDP_INT_H
#define SDR_FABRIC_UDP_UDP_INT_H

#include "fabric/deliver.h"
#include "fabric/udp/stamp.h"
#include "fabric/udp/udp.h"
#include "wire/wire.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define UDP_PATHS 3u		/* a channel's current address and two candidates */
#define UDP_RX_BATCH 4u		/* super-packets of one recvmmsg: they stay in cache */
#define UDP_RX_BUF_BYTES 65536u /* the largest super-packet */
#define UDP_RX_BUDGET 64u	/* super-packets of one poll() */
#define UDP_RX_CMSG_BYTES 256u	/* room for all that we ask the kernel to tell */
#define UDP_RING_SLOTS 512u	/* control datagrams waiting for the caller, a worker */
#define UDP_MAX_DATAGRAM 65507u /* IPv4's limit; a super-packet's too */
#define UDP_SOCK_BUCKETS 1024u
#define UDP_LINGER_NS (UINT64_C(1) << 30) /* an unused socket still hears late packets */
#define UDP_DROP_CHECK_NS (UINT64_C(100000000))
#define UDP_REFUSED_NS (UINT64_C(10000000)) /* at most one REFUSED in this time, a socket */
#define UDP_EPOLL_BATCH 16
#define UDP_HDR_BYTES 8u
#define UDP_QKEY 0x53445200u /* | channel, in a control datagram's DETH */
#define UDP_META_BYTES 40u   /* [pad 0..3, right-aligned in 4][trailer 4][next header 32] */

/* An address in one form: IPv4 is mapped into IPv6. Compared by udp_addr_equal. */
struct udp_addr {
	uint8_t ip[16];
	uint32_t scope; /* link-local only */
	uint16_t port;	/* host order */
	bool set;
};

/* Packets that the host took back in the middle of a batch. */
struct udp_pending {
	uint32_t count, next; /* next: the first not yet sent */
	uint32_t packet_bytes, last_bytes;
	uint8_t bytes[];
};

struct udp_sock {
	int fd;		      /* W: constant */
	bool connected;	      /* W: constant */
	uint32_t channel;     /* W: constant; of all that comes from peer */
	struct udp_addr peer; /* W: constant */
	/* rocev2's for sending: not connected, so each send names the peer. */
	bool sends;		    /* W: constant */
	struct udp_addr local;	    /* what it is bound to */
	struct sockaddr_storage to; /* the peer again, as the kernel wants it */
	socklen_t to_len;	    /* 0: connected */
	struct wire_icrc_flow flow; /* what its packets' ICRC covers */
	bool active;
	int family;
	unsigned int worker; /* who receives from it */
	uint32_t refs;	     /* QP channels that send on it */
	uint64_t linger_until_ns;
	struct udp_sock *bucket_next, *all_next;

	bool gso;	  /* runs go as one super-packet */
	bool fragmenting; /* the route got narrower than what is sent: DF is cleared. In rocev2
			   * a NIC drops those, a peer like us takes them */
	bool armed;	  /* waits for EPOLLOUT */
	uint32_t payload; /* what the route carries */
	uint32_t rcvbuf;  /* bytes, as granted */
	struct udp_pending *pending;

	_Atomic uint32_t drops; /* W: the kernel's count */
	_Atomic bool refused;	/* W: an ICMP error came */
	uint64_t drops_read_ns; /* the worker's */
	uint64_t refused_ns;	/* when the QPs were last told */
};

/* One channel of a QP. */
struct udp_path {
	struct udp_addr peer, local;
};

struct udp_chan {
	struct udp_sock *sock; /* NULL: no address yet */
	uint32_t psn;	       /* of the next packet */
	uint64_t sent_pkts;
	uint64_t drops_moved;		 /* host drops on sockets that it used before */
	struct udp_path path[UDP_PATHS]; /* [0]: current. Passive end only */
	uint32_t candidates;		 /* so far: the youngest one's number */
	uint32_t newest_psn;		 /* of a control datagram; valid once ctrl_seen */
	bool ctrl_seen;
	_Atomic uint64_t path_hash[UDP_PATHS]; /* W: of path[].peer; 0: none */
};

/* rocev2: what QPs to one host share. */
struct udp_host {
	struct udp_addr addr;  /* W: constant; port 0 */
	_Atomic uint64_t ipid; /* W: see fabric/ipid.h */
	uint32_t refs;
	struct udp_host *next;
};

enum udp_pend { UDP_PEND_READY = 1, UDP_PEND_LATE = 2 };

struct udp_qp {
	struct fabric_qp base;
	struct deliver_qp rx; /* W */
	void *cookie;
	uint64_t token;
	uint32_t start_psn;
	bool connected;
	struct fabric_peer peer;
	struct protect_key tx_key;

	/* rocev2. */
	_Atomic(struct udp_host *) host;    /* W: NULL until connected: nobody is heard */
	struct fabric_key *keys;	    /* deliver's; one for each slot */
	uint32_t wire_psn[FABRIC_DATA_QPS]; /* of each transport QP's next packet */
	uint32_t ctrl_psn;

	_Atomic uint32_t pend;	  /* W: enum udp_pend; not 0 means: on the stack */
	_Atomic uint64_t late;	  /* W: channel << 32 | message */
	struct udp_qp *pend_next; /* written by whoever made pend non-zero */

	/* The caller's list of QPs with something to tell. */
	struct udp_qp *todo_next;
	bool in_todo;
	uint32_t todo_pend;
	uint32_t todo_refused, todo_mtu; /* masks of channels */

	uint32_t channels; /* W: constant */
	struct udp_chan chan[];
};

/* A control datagram on its way from a worker to the caller. */
struct udp_ctrl {
	struct udp_qp *qp; /* NULL: destroyed meanwhile */
	struct udp_addr from, local;
	uint32_t channel;
	uint32_t psn;
	uint32_t src_qpn;
	uint32_t len;
	uint64_t at_ns;
	uint8_t data[FABRIC_CTRL_MAX];
};

/* Single producer, single consumer. head - tail slots are full. */
struct udp_ring {
	struct udp_ctrl *slot;
	_Alignas(64) _Atomic uint32_t head; /* the worker's */
	_Alignas(64) _Atomic uint32_t tail; /* the caller's */
};

struct udp_worker {
	struct deliver_worker dw;
	struct udp_fabric *f;
	int epfd;
	int kickfd; /* eventfd: go round once */
	pthread_t thread;
	bool started;
	struct udp_ring ring;
	struct stamp_clock clock;	     /* as of the last read */
	_Alignas(64) _Atomic uint64_t epoch; /* odd: at work; even: holds no pointer */

	uint8_t *buf[UDP_RX_BATCH];
	struct mmsghdr mm[UDP_RX_BATCH];
	struct iovec iov[UDP_RX_BATCH];
	struct sockaddr_storage name[UDP_RX_BATCH];
	_Alignas(8) uint8_t cmsg[UDP_RX_BATCH][UDP_RX_CMSG_BYTES];
};

/* What tx.c needs for one run; the caller's. */
struct udp_tx {
	uint8_t meta[FABRIC_RUN_MAX + 1][UDP_META_BYTES];
	struct iovec iov[3 * FABRIC_RUN_MAX];
	struct mmsghdr mm[FABRIC_RUN_MAX];
	uint8_t ctrl[WIRE_CTRL_HDR_BYTES + FABRIC_CTRL_MAX + 8];
	_Alignas(8) uint8_t cmsg[64];
};

struct udp_fabric {
	struct fabric base;
	struct udp_fabric_attr attr;
	struct udp_addr bind_addr; /* set: of all our sockets */
	uint32_t max_payload;
	uint16_t port;
	int epfd;   /* the caller's: what fd() gives */
	int wakefd; /* eventfd */
	_Atomic bool stop;

	struct udp_sock *listener;
	struct udp_host *hosts; /* rocev2 */
	struct rng rng;		/* rocev2: keys */
	struct udp_sock *all;
	struct udp_sock *bucket[UDP_SOCK_BUCKETS];
	unsigned int lingering, armed, next_worker;
	bool writable; /* FABRIC_EV_WRITABLE is due */
	bool gso_said;

	unsigned int nworkers; /* threads */
	unsigned int nrx;      /* worker structs: nworkers, or 1 */
	struct udp_worker *worker[FABRIC_MAX_WORKERS];

	unsigned int index_bits;
	_Atomic(struct udp_qp *) *qps; /* W */
	uint32_t *free_index;	       /* a queue, so that an index rests as long as it can */
	uint32_t free_head, free_count, nindex;

	_Atomic(struct udp_qp *) pend_stack; /* W */
	_Atomic bool waiting;		     /* W: the caller sleeps, wake it */
	_Atomic bool signalled;		     /* W: wakefd was written */
	_Atomic bool refused_any;	     /* W: some socket's `refused` is set */
	bool fd_used;
	struct udp_qp *todo, **todo_end;

	struct deliver_worker caller; /* its counters */
	struct udp_tx tx;
};

static inline struct udp_fabric *udp_fabric_of(const struct fabric *f)
{
	return (struct udp_fabric *)(uintptr_t)f; /* base is the first member */
}

static inline struct udp_qp *udp_qp_of(const struct fabric_qp *qp)
{
	return (struct udp_qp *)(uintptr_t)qp;
}

uint64_t udp_now_ns(void);

/* addr.c */
void udp_addr_from(struct udp_addr *out, const struct sockaddr *sa);
/* 0, or -EINVAL where text is no numeric address. */
int udp_addr_parse(struct udp_addr *out, const char *text);
/* For a socket of this family; returns the length. */
socklen_t udp_addr_to(const struct udp_addr *addr, int family, struct sockaddr_storage *out);
bool udp_addr_equal(const struct udp_addr *a, const struct udp_addr *b);
bool udp_addr_is_v4(const struct udp_addr *addr);
bool udp_addr_is_any(const struct udp_addr *addr);   /* of either family, or not set */
uint64_t udp_addr_hash(const struct udp_addr *addr); /* never 0 */
bool udp_addr_same_ip(const struct udp_addr *a, const struct udp_addr *b);
void udp_addr_text(const struct udp_addr *addr, char *buf, size_t len);

/* sock.c */
int udp_sock_listen(struct udp_fabric *f);
/* The socket to that peer, opened where there is none yet; adds a reference. */
int udp_sock_get(struct udp_fabric *f, const struct udp_path *path, uint32_t channel, bool active,
		 struct udp_sock **out);
void udp_sock_put(struct udp_fabric *f, struct udp_sock *s); /* closes after a while */
void udp_sock_reap(struct udp_fabric *f, uint64_t now_ns);   /* those whose while is over */
void udp_sock_close_all(struct udp_fabric *f);
void udp_sock_arm(struct udp_fabric *f, struct udp_sock *s);
void udp_sock_disarm(struct udp_fabric *f, struct udp_sock *s);
/* Asks the route; true where it changed. */
bool udp_sock_route_mtu(struct udp_fabric *f, struct udp_sock *s);
void udp_sock_set_fragmenting(struct udp_sock *s, bool on);

/* tx.c */
int udp_post(struct fabric *f, struct fabric_write *w, unsigned int n);
int udp_ctrl(struct fabric_qp *qp, uint32_t channel, uint32_t path, const void *data, size_t len);
/* Sends what is pending. True when nothing is left. */
bool udp_tx_flush(struct udp_fabric *f, struct udp_sock *s);

/* rxloop.c: receives until dry or `budget` super-packets; returns how many. */
unsigned int udp_rx_socket(struct udp_worker *w, struct udp_sock *s, unsigned int budget);
int udp_rx_init(struct udp_worker *w);
void udp_rx_fini(struct udp_worker *w);

/* worker.c */
int udp_workers_start(struct udp_fabric *f);
void udp_workers_stop(struct udp_fabric *f);
/* Wait until no worker holds a QP, or a socket, that was taken away before. */
void udp_quiesce_qps(struct udp_fabric *f);
void udp_quiesce_socks(struct udp_fabric *f);

/* events.c */
void udp_pend(struct udp_fabric *f, struct udp_qp *qp, uint32_t what); /* any worker */
void udp_notify(struct udp_fabric *f);				       /* any worker */
void udp_todo_sock(struct udp_fabric *f, struct udp_sock *s, bool refused, bool mtu);
void udp_forget(struct udp_fabric *f, struct udp_qp *qp); /* after it was unlinked */
int udp_poll(struct fabric *f, struct fabric_event *ev, unsigned int max);
int udp_wait(struct fabric *f, uint64_t deadline_ns);
int udp_fd(struct fabric *f);
void udp_wake(struct fabric *f);

/* rocev2.c */
int udp_rocev2_open(struct udp_fabric *f);
/* Numbers of a QP that got this index, and its receiving half. */
int udp_rocev2_qp_init(struct udp_fabric *f, struct udp_qp *qp, uint32_t index,
		       struct rx_table *table);
int udp_rocev2_connect(struct udp_fabric *f, struct udp_qp *qp);
void udp_rocev2_qp_fini(struct udp_fabric *f, struct udp_qp *qp); /* no worker sees it */
/* W: of packets that came from and went to these addresses. */
void udp_rocev2_flow(struct wire_icrc_flow *flow, const struct udp_addr *from,
		     const struct udp_addr *to, uint16_t to_port);
/* W: the peer's, where that is who sent; else NULL. */
struct udp_host *udp_rocev2_host(const struct udp_qp *qp, const struct udp_addr *from);
/* The largest path MTU of InfiniBand that is no more than this. */
uint32_t udp_rocev2_payload(uint32_t bytes);
/* A random number above the index; never one that InfiniBand keeps for itself. */
int udp_qpn_draw(const struct udp_fabric *f, uint32_t index, uint32_t *out);

/* paths.c */
/* W: the channel of a QP that this address is known as; 0 where it is not. */
uint32_t udp_channel_of(const struct udp_sock *s, const struct udp_qp *qp,
			const struct udp_addr *from);
/* Opens channels [0, channels) to the peer. */
int udp_paths_connect(struct udp_fabric *f, struct udp_qp *qp, const struct udp_addr *peer,
		      uint32_t channels);
void udp_paths_drop(struct udp_fabric *f, struct udp_qp *qp);
/* The path by which a verified control datagram came, or -errno: it is dropped. */
int udp_path_of_ctrl(struct udp_fabric *f, const struct udp_ctrl *c);
/* Which of the channel's addresses a path is now, or -1. */
int udp_path_place(const struct udp_chan *ch, uint32_t path);
int udp_path_use(struct fabric_qp *qp, uint32_t channel, uint32_t path);
void udp_path_name(const struct fabric_qp *qp, uint32_t channel, char *buf, size_t len);
uint32_t udp_path_payload(const struct fabric_qp *qp);

#endif

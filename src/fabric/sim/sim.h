/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/sim: hosts, links and packets in virtual time. Real headers are encoded, sealed,
 * maybe corrupted, verified and decoded by the very code that fabric/udp runs; only the
 * sockets are missing. Single-threaded, seeded: a seed replays a run to the packet.
 *
 * A world is driven by its owner: poll the fabrics that sim_due_take() names, then sim_run() to
 * the owner's own timers. Nothing calls back but the filter.
 *
 * It deliberately knows nothing of sockets and of real time. Addresses look like IPv4
 * ones (10.x.y.z from the host's number, UDP port from the fabric's), so that what is
 * above cannot tell. As on the wire the active end sends from a port of its own for each
 * channel and is answered where it came from.
 *
 * Files: sim.c (world, events), sim_link.c (links), sim_paths.c (several paths between two hosts),
 * sim_addr.c (addresses, NAT), sim_fabric.c (the contract's table), sim_tx.c (post and control
 * datagrams), sim_flight.c (runs in flight), sim_drops.c (packets to lose, by name), sim_rdma.c
 * (rocev2, and a NIC's receiver), sim_pool.c (memory of packets in flight).
 */
#ifndef SDR_FABRIC_SIM_SIM_H
#define SDR_FABRIC_SIM_SIM_H

#include "base/alloc.h"
#include "fabric/fabric.h"
#include "link/link.h"
#include "link/nat.h"
#include "link/paths.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_MAX_HOSTS 65536u
#define SIM_MAX_FABRICS 65536u
#define SIM_CHANNEL_ALL UINT32_MAX
#define SIM_PORT_BASE 4792u	  /* UDP port of a host's first fabric */
#define SIM_IP_OVERHEAD_BYTES 28u /* IPv4 and UDP headers: links count them */
#define SIM_DEFAULT_PAYLOAD 1436u /* of a 1500-byte MTU */
#define SIM_MAX_PAYLOAD 65000u
#define SIM_DEFAULT_CTRL_EVENTS 65536u

struct sim;

/* 0 or -ENOMEM. `alloc` outlives the world. */
int sim_create(uint64_t seed, const struct sdr_alloc *alloc, struct sim **out);
/* After its fabrics were closed. Packets in flight vanish. */
void sim_destroy(struct sim *sim);

/*
 * From now on data packets have lengths but carry no payload, and the memory that they name is
 * neither read nor written. Trailers are real, and cover the header; a flipped bit that would have
 * hit the payload hits the trailer. All else happens as with payload, to the packet and the
 * nanosecond. -EBUSY: a fabric was opened already.
 */
int sim_payload_off(struct sim *sim);

/* Its number, 0 and up; -ENOSPC or -ENOMEM. */
int sim_host_add(struct sim *sim);
bool sim_is_host(const struct sim *sim, int host);

/*
 * The link from one host to another (the same one for loopback), one direction: of one
 * channel, or with SIM_CHANNEL_ALL one that all channels without a link of their own share.
 * A pair that was given none is joined by a perfect wire without delay. Lists in attr are
 * copied. A second call changes the link from now on (see link_attr_set); packets in flight
 * keep their fate. 0, -EINVAL, -ERANGE, -ENOMEM.
 */
int sim_link_set(struct sim *sim, int from, int to, uint32_t channel, const struct link_attr *attr);
/* What the link has done so far; -ENOENT where nothing was set or sent. */
int sim_link_counters(const struct sim *sim, int from, int to, uint32_t channel,
		      struct link_counters *out);

/* Bytes in its queue now; 0 where nothing was set or sent. */
uint64_t sim_link_queued_bytes(const struct sim *sim, int from, int to, uint32_t channel);

/*
 * n paths from one host to another, one direction, each a link of its own: by a hash over the
 * 5-tuple, source port and address as the network sees them, a channel keeps to one of them until
 * its address changes. Channels with a link of their own (sim_link_set) use that. 1 ..
 * LINK_MAX_PATHS; 0: none any more. A second call changes the links from now on; one that
 * is cut stays in the hash. 0, -EINVAL, -ERANGE; -ENOMEM, where some may have changed.
 */
int sim_paths_set(struct sim *sim, int from, int to, uint32_t n, const struct link_attr *attrs);
/* What one path has done so far; -ENOENT where there was none. */
int sim_path_counters(const struct sim *sim, int from, int to, uint32_t path,
		      struct link_counters *out);
/* Bytes in its queue now; 0 where there was none. */
uint64_t sim_path_queued_bytes(const struct sim *sim, int from, int to, uint32_t path);
/* The path that a channel's packets take now; -ENOENT: no address, or its pair has no paths. */
int sim_path_of(const struct fabric_qp *qp, uint32_t channel);

/* A packet to lose: as the (attempt + 1)th time that a QP sends this packet of this message. */
struct sim_drop {
	uint32_t message, packet, attempt;
};

struct sim_drops_info {
	size_t n;	/* different entries of the list */
	size_t hit;	/* of them, those that hit at least once */
	uint64_t drops; /* packets that were lost so: each QP is counted by itself */
};

/*
 * Packets to lose from one host to another, on whatever link or path they take, where they would
 * not be lost otherwise. Copied. A second call replaces the list, and counts attempts anew; n 0:
 * none. 0, -EINVAL (no such host), -ENOMEM: nothing has changed.
 */
int sim_drops_set(struct sim *sim, int from, int to, const struct sim_drop *drops, size_t n);
/* -ENOENT: no list there. */
int sim_drops_info(const struct sim *sim, int from, int to, struct sim_drops_info *out);

/*
 * Puts a NAT in front of a host, a new one where there is one (times as in link/nat.h). What it
 * sends comes from outside ports; what is sent to a port without a mapping is lost, so only an
 * active end can be behind one. The passive end learns its addresses from control datagrams, as
 * over UDP. 0, -EINVAL, -ENOMEM.
 */
int sim_nat_set(struct sim *sim, int host, uint64_t timeout_ns, uint64_t every_ns);
/* Its mappings are forgotten now. -ENOENT: no NAT there. */
int sim_nat_rebind(struct sim *sim, int host);
/* Its state and counters; NULL: no NAT there. */
const struct link_nat *sim_nat(const struct sim *sim, int host);

/*
 * What an RDMA device does and a socket does not; zeros: nothing of it. All but zero_copy_ns
 * ask for rocev2.
 *
 * rocev2: packets are to the letter, with an ICRC over a constant flow (there is no IP header
 * here that could be looked at); both ends know each other's addresses from the start, nothing
 * is learnt from packets, no NAT is crossed; facts name the newest packet. Receiving is
 * deliver.c's, unless `nic` says more.
 *
 * nic: receives as hardware does. A packet with a live key and a receive to take has its bytes
 * written, whether its bit is set or not (no FABRIC_CAP_NO_REWRITE); poll and fence take its
 * completion, which names {transport QP, immediate, length}, and set the bit. Damaged packets
 * and those with another key vanish (FABRIC_CAP_SILENT_LATE). An empty packet touches no
 * memory, so nobody looks at its key: it completes whenever it comes.
 */
struct sim_device {
	bool rocev2;
	bool nic;
	/*
	 * Keys belong to slot and generation, and outlive the fence: until the next binding what
	 * they let in is written nowhere, but completes.
	 */
	bool lasting_keys;
	uint32_t generations;  /* 1, 2 or 4; 0: 4 */
	uint32_t recv_depth;   /* nic: receives of a transport QP; 0: no end of them */
	uint64_t late_ns;      /* as in fabric_caps */
	uint64_t coalesce_ns;  /* its owner is told of what arrives so long after the first of it,
				* and then of all of it; see sim_run(). 0: at once */
	uint64_t zero_copy_ns; /* FABRIC_CAP_ZERO_COPY: so long after post memory with an mr is
				* read, and the run sent. 0: at once */
};

/* Receives on a transport QP of whose generation nothing is bound (recv_depth). */
#define SIM_RECV_SHALLOW 16u
/* Runs that a device with zero_copy_ns takes before it says -EAGAIN. */
#define SIM_SEND_RUNS 256u

struct sim_fabric_attr {
	uint32_t max_payload;	 /* largest payload; a path takes the smaller end's. 0: 1436.
				  * rocev2: the path MTU, a power of two, at most as large */
	uint32_t max_ctrl;	 /* control datagrams waiting for poll; beyond, they are dropped
				  * and counted. 0: SIM_DEFAULT_CTRL_EVENTS */
	uint64_t tx_queue_bytes; /* post and ctrl say -EAGAIN while the link's queue is longer;
				  * FABRIC_EV_WRITABLE comes at half of it. 0: never */
	struct sim_device device;
};

/*
 * Opens a device on a host; a host may have several, but one of rocev2. -EINVAL, -EADDRINUSE,
 * -ENOSPC, -ENOMEM.
 */
int sim_fabric_open(struct sim *sim, int host, const struct sim_fabric_attr *attr,
		    struct fabric **out);
/* Where it listens: goes into fabric_peer.addr. */
void sim_fabric_addr(const struct fabric *f, struct sockaddr_storage *out);

uint64_t sim_now(const struct sim *sim);
/* When the next packet arrives or a full queue has room; UINT64_MAX: nothing will happen. */
uint64_t sim_next_event_ns(const struct sim *sim);
/*
 * All that happens up to and including until_ns; then that is the time. Going back: no-op.
 * Packets arrive here and nowhere else; poll only takes events. Advancing by more than to the
 * next event is allowed: arrivals keep their times, and trains are handled together.
 */
void sim_advance(struct sim *sim, uint64_t until_ns);
/*
 * The same, but ends as soon as a fabric has something for poll that it was not due for: true, and
 * the time is that of the news; all that happens in that instant has happened. One that poll left
 * something in is due anew.
 */
bool sim_run(struct sim *sim, uint64_t until_ns);
/* The fabric that has been due longest, each once until it is polled; NULL: none. */
struct fabric *sim_due_take(struct sim *sim);
/* A word of the owner's for it; NULL before. */
void sim_owner_set(struct fabric *f, void *owner);
void *sim_owner(const struct fabric *f);

/*
 * Seams for tests.
 */

/* A packet about to go onto its link. Pointers are good during the call. */
struct sim_packet_info {
	int from, to; /* hosts */
	uint32_t channel;
	uint32_t psn;
	bool is_ctrl;
	const void *ctrl_body; /* control */
	uint32_t len;	       /* payload or body */
	uint32_t message;      /* data */
	uint64_t offset;       /* data */
	uint64_t now_ns;
};

enum sim_action {
	SIM_PASS,
	SIM_DROP,  /* before the link: takes none of its time */
	SIM_DUP,   /* a second copy comes delay_ns after the (first) one */
	SIM_DELAY, /* comes delay_ns later than it would, out of order */
};

struct sim_verdict {
	enum sim_action action;
	uint64_t delay_ns;
};

typedef struct sim_verdict sim_filter_fn(void *arg, const struct sim_packet_info *info);

/* Asked for each packet that is sent; NULL: none. It may call nothing of this world. */
void sim_filter_set(struct sim *sim, sim_filter_fn *fn, void *arg);

/* These bytes, from BTH to trailer, arrive at a fabric now, on a channel. Not where the payload is
 * off: data would be placed. */
void sim_inject(struct sim *sim, struct fabric *to, const void *bytes, size_t len,
		uint32_t channel);

/* Writes the ICRC that is right here behind so many bytes, BTH to pad: at least a BTH. */
void sim_icrc_seal(const struct sim *sim, uint8_t *bytes, size_t unsealed);

/* Packets that found no receive to take (recv_depth), so far. */
uint64_t sim_starved(const struct fabric *f);

/* Packets on links and control datagrams not yet taken. */
uint64_t sim_in_flight(const struct sim *sim);
/* Asserts the world's invariants (debug builds). */
void sim_check(const struct sim *sim);

#endif

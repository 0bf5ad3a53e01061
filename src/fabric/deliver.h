/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From received bytes to set bits: the part of receiving that is the same for every
 * fabric made of packets (udp, sim), in both wire modes. The owner has the sockets or the event
 *heap, the demultiplexer's table of QPs and the event ring; it hands packets in and gets facts
 * back. Order of work (PROTOCOL.md, Receiving a packet): decode and verify *every* packet
 * of a train; then, run by run: enter, admit, claim, copy, commit, leave.
 *
 * It deliberately knows nothing of sockets, addresses, clocks and events.
 *
 * Use, for a datagram or a GRO super-packet on a channel:
 *
 *	n = deliver_split(buf, len, segment_bytes, pkt);
 *	for (i = 0; i < n; i += used) {
 *		if (deliver_peek(w, &pkt[i], &opcode, &qpn))   // counted: malformed
 *			{ used = 1; continue; }
 *		qp = ... by qpn, or deliver_unknown(w), used = 1;
 *		if (opcode == WIRE_OP_CTRL)
 *			deliver_ctrl(w, qp, channel, flow, &pkt[i], &ctrl), used = 1;
 *		else
 *			used = deliver_data(w, qp, channel, flow, &pkt[i], n - i, &facts);
 *	}
 *
 * In rocev2 a QP has several numbers: one for control, and one for each generation and
 * channel. The owner finds the QP by any of them; deliver_data_qp() then says which it is,
 * and the channel follows from it. `flow` is what the packets' ICRC covers besides them; NULL
 * in sdr mode, whose trailer needs only the QP's token.
 *
 * Threads. One worker (struct deliver_worker) belongs to one thread at a time; any number
 * of workers deliver to the same QP at once. Counters and facts are atomics with relaxed
 * order: statistics that synchronise nothing.
 */
#ifndef SDR_FABRIC_DELIVER_H
#define SDR_FABRIC_DELIVER_H

#include "base/rng.h"
#include "fabric/fabric.h"
#include "fabric/ipid.h"
#include "protect/protect.h"
#include "rx/rx.h"
#include "sdr/counters.h"
#include "wire/icrc.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DELIVER_MAX_TRAIN 64u /* packets handled together; also UDP_GRO's maximum */

/* One received packet: BTH to trailer. Bytes must stay until the call returns. */
struct deliver_pkt {
	const uint8_t *bytes;
	uint32_t len;	 /* on the wire */
	uint32_t absent; /* so many of them, payload and pad, are not in bytes: the trailer follows
			  * the header and covers only that, and nothing is placed. Data only; 0
			  * but in a simulation */
	bool ce;	 /* its IP header said ECN-CE */
	uint64_t at_ns;	 /* when it arrived, by the owner's clock */
};

/* What one channel of a QP has seen. Written by any worker; see fabric_channel_facts. */
struct deliver_channel {
	_Atomic uint64_t received_pkts;
	_Atomic uint64_t duplicate_pkts;
	_Atomic uint64_t late_pkts;
	_Atomic uint64_t bad_pkts;
	_Atomic uint64_t ce_pkts;
	_Atomic uint64_t newest;	 /* sdr: PSN | DELIVER_PSN_VALID; advances only (24-bit
					  * serial order) and, by release, only after the commit.
					  * rocev2: DELIVER_PACKET_VALID | message << 32 | packet
					  * of the one that arrived last, by release as well */
	_Atomic uint64_t newest_ns;	 /* when that one arrived */
	_Atomic uint64_t newest_ctrl;	 /* as newest, of control datagrams */
	_Atomic uint64_t reordered_pkts; /* sdr: arrived after one that was sent later */
	_Atomic uint64_t ipid;		 /* rocev2, IPv4: state of ipid.h for its data */
};

#define DELIVER_PSN_VALID (UINT64_C(1) << 32)
#define DELIVER_PACKET_VALID (UINT64_C(1) << 63)

/* What an ICRC covers besides the packet. The owner makes one for each super-packet. */
struct deliver_flow {
	struct wire_icrc_flow icrc; /* IPv4: with DF, as most senders set it */
	_Atomic uint64_t *host;	    /* IPv4: state of ipid.h for the sender's host; may be NULL */
};

/* rocev2: what an agreed connection adds to the receiving half of a QP. */
struct deliver_rocev2 {
	uint32_t channels, generations; /* as in fabric_peer */
	uint32_t messages;		/* slots, and the table's slots */
	uint32_t payload_bytes;
	struct fabric_key *keys; /* room for `messages`; the owner's, lives as long as the QP */
};

/* The receiving half of a QP. The owner finds it by qpn and keeps it alive meanwhile. */
struct deliver_qp {
	uint32_t qpn;			  /* rocev2: for control */
	struct protect_key key;		  /* of the local token; read only after init */
	_Atomic(struct rx_table *) table; /* NULL until table_set: all data is late then */
	enum wire_mode mode;		  /* constant after init */
	/* rocev2. */
	uint32_t data_qpn[FABRIC_DATA_QPS]; /* constant after init; 0: none */
	_Atomic bool agreed;		    /* what follows is valid, and constant */
	struct deliver_rocev2 rocev2;
	_Atomic uint64_t ctrl_ipid;
	struct deliver_channel channel[FABRIC_MAX_CHANNELS];
};

/* A worker: its place in the rx tables and its counters (only it writes them). */
struct deliver_worker {
	unsigned int index; /* rx_enter's worker number, 0 .. */
	_Atomic uint64_t counter[SDR_CTR_COUNT];
};

/* What a call did, for the owner to turn into events. */
struct deliver_facts {
	uint32_t committed;    /* packets whose bits this call set: FABRIC_EV_READY if > 0 */
	uint32_t late;	       /* verified, for a finished or unknown message: FABRIC_EV_LATE */
	uint32_t late_message; /* the last of those */
};

/* A control datagram that passed; body points into the packet. */
struct deliver_ctrl {
	const uint8_t *body;
	uint32_t len; /* 0 .. FABRIC_CTRL_MAX */
	uint32_t psn;
	uint32_t src_qpn; /* as the packet says it */
	uint32_t channel; /* rocev2: as its prefix says */
};

/* sdr mode. */
void deliver_qp_init(struct deliver_qp *qp, uint32_t qpn, uint64_t token, struct rx_table *table);
/*
 * rocev2 mode, as fabric_local has it: the data QPs' numbers differ from each other and from
 * qpn; 0 where there is none.
 */
void deliver_qp_init_rocev2(struct deliver_qp *qp, const struct fabric_local *local,
			    struct rx_table *table);
/*
 * The owner's qp_connect in rocev2, before the first bind; workers may be running. Data that
 * comes earlier is late. 0, or -EINVAL: out of the ranges that fabric_peer has.
 */
int deliver_agree(struct deliver_qp *qp, const struct deliver_rocev2 *agreed);
/* rocev2: which transport QP this number is, by fabric_data_qp(); -1: none of this QP's. */
int deliver_data_qp(const struct deliver_qp *qp, uint32_t qpn);
/* The owner's table_set. Any time before the first bind; workers may be running. */
void deliver_table_set(struct deliver_qp *qp, struct rx_table *table);
/*
 * A fabric's bind, fence_begin and fence_done, where all placement is software's: 0, -EBUSY
 * (the slot is still bound) or -EINVAL (no table yet, rocev2: nothing agreed yet, or an
 * attribute out of range).
 *
 * rocev2: *key, which the owner drew by deliver_key_draw(), is what packets of this message
 * must carry from now on. It is read by who is inside the slot, so a fence ends it: a packet
 * of the slot's and generation's use before, however late, has another one. NULL in sdr mode.
 */
int deliver_bind(struct deliver_qp *qp, uint32_t message, const struct fabric_bind *b,
		 const struct fabric_key *key);
/*
 * A key for a binding: 32 random bits of R_Key; a virtual address that is random too, so that
 * two keys are the same once in 2^64, and a sender that takes every address for 0 is found
 * out here and not only by a NIC. Multiples of 4096 below 2^44, so no offset can wrap it.
 */
struct fabric_key deliver_key_draw(struct rng *rng);
void deliver_fence_begin(struct deliver_qp *qp, uint32_t message);
int deliver_fence_done(struct deliver_qp *qp, uint32_t message);
void deliver_worker_init(struct deliver_worker *w, unsigned int index);

/*
 * Cuts a buffer into packets of segment_bytes (the last may be shorter; 0: one packet).
 * Returns how many, at most DELIVER_MAX_TRAIN; what is beyond is left out. ce and at_ns
 * are set alike in all.
 */
unsigned int deliver_split(const uint8_t *buf, size_t len, size_t segment_bytes, bool ce,
			   uint64_t at_ns, struct deliver_pkt pkt[DELIVER_MAX_TRAIN]);

/* Opcode and QP number, for the demultiplexer. 0, or -errno: counted as malformed. */
int deliver_peek(struct deliver_worker *w, const struct deliver_pkt *pkt, uint8_t *opcode,
		 uint32_t *qpn);
/* Counts a packet for a QP number that does not exist. */
void deliver_unknown(struct deliver_worker *w);

/*
 * Delivers the leading data packets of pkt[0 .. n) that are for this QP: all up to the
 * first that is a control datagram, for another QPN or malformed in its first bytes. The
 * first packet must be one that deliver_peek gave as data for this QP (rocev2: for one of its
 * data QPs, and channel is that one's). Returns how many
 * were consumed, 1 .. min(n, DELIVER_MAX_TRAIN). channel < FABRIC_MAX_CHANNELS. *facts is
 * added to.
 */
unsigned int deliver_data(struct deliver_worker *w, struct deliver_qp *qp, uint32_t channel,
			  const struct deliver_flow *flow, const struct deliver_pkt *pkt,
			  unsigned int n, struct deliver_facts *facts);

/* Verifies and decodes a control datagram for this QP. 0, or -errno: counted. */
int deliver_ctrl(struct deliver_worker *w, struct deliver_qp *qp, uint32_t channel,
		 const struct deliver_flow *flow, const struct deliver_pkt *pkt,
		 struct deliver_ctrl *out);

/* Fills in what the receiving side knows of a channel; the rest stays as it is. */
void deliver_channel_facts(const struct deliver_qp *qp, uint32_t channel, uint64_t now_ns,
			   struct fabric_channel_facts *out);

/* A worker's counter: by its own thread only. */
static inline void deliver_count(struct deliver_worker *w, enum sdr_counter which, uint64_t n)
{
	uint64_t old = atomic_load_explicit(&w->counter[which], memory_order_relaxed);

	atomic_store_explicit(&w->counter[which], old + n, memory_order_relaxed);
}

/* Adds a worker's counters to sum[]. Any thread. */
void deliver_counters_add(const struct deliver_worker *w, uint64_t sum[SDR_CTR_COUNT]);

#endif

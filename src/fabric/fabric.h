/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fabric contract: what carries unreliable Writes. A fabric is to the SDK what a
 * NIC is: it places bytes and reports completions, and promises nothing about
 * delivery. Three implementations: udp (RoCEv2 endpoint in user space), sim (virtual
 * time) and verbs (an RDMA device). Each passes the one conformance suite (conformance.h).
 *
 * It deliberately knows nothing of grants, acknowledgements or reliability, and reads
 * control messages no further than to hand them on.
 *
 * Threads. One *caller* thread at a time makes all the calls below (its owner
 * serialises them). A fabric may run *workers* of its own that receive packets; what
 * they share with the caller is the rx table, the event ring and the counters.
 *
 * Safety. After fence of a message no byte of its memory is written again, by any
 * thread or NIC, however late the packet. Bits are set by the fabric itself through
 * rx/. Order is not promised, duplicates are possible, contents are untrusted: a
 * foreign, late, malformed or out-of-range packet changes a counter and nothing else.
 *
 * Time. Only ages leave a fabric, never stamps of another clock; a negative age is 0.
 *
 * Two wire modes (wire/packet.h); a device speaks one of them. What *rocev2* adds, because a
 * NIC's receiver sees no more than {QP number, immediate, length} of a packet:
 *
 *	slot		message mod messages: with the packet's index, it travels in the
 *			immediate; messages of one slot follow each other `messages` apart
 *	generation	(message / messages) mod generations: which of a channel's transport
 *			QPs carries it, so that a late packet is told from its slot's next use
 *	key		what bind() gives for a message: {rkey, va}. It goes to the sender (in
 *			CTS), comes back in fabric_write and dies with the message's fence
 *	newest packet	a NIC tells no PSN: facts name the newest packet by message and index
 *
 * A zero-length packet names no memory, so a NIC checks no key for it: only slot and generation
 * tell a late one from those of the slot's next use.
 *
 * rx tables are looked up by `message`, of which rocev2 keeps the low bits: a table's key_mask
 * is messages * generations - 1 there, and ~0 in sdr mode.
 */
#ifndef SDR_FABRIC_FABRIC_H
#define SDR_FABRIC_FABRIC_H

#include "rx/rx.h"
#include "wire/packet.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#define FABRIC_MAX_CHANNELS 16u
#define FABRIC_MAX_GENERATIONS 4u
#define FABRIC_ROCEV2_PORT 4791u
#define FABRIC_ROCEV2_CTRL_MAX \
	1016u /* a UD message fits the smallest path MTU that we take: 1024 */
#define FABRIC_ROCEV2_PAYLOAD_MIN 1024u
#define FABRIC_ROCEV2_PAYLOAD_MAX 4096u
#define FABRIC_MAX_WORKERS 16u
#define FABRIC_CTRL_MAX 1200u /* bytes of a control datagram's body: fits any path's MTU */
#define FABRIC_RUN_MAX 64u    /* packets in one fabric_write: a train */

enum fabric_cap {
	FABRIC_CAP_NO_REWRITE = 1u << 0, /* a set packet's bytes are not written a second time */
	FABRIC_CAP_ZERO_COPY = 1u << 1,	 /* memory with an mr is read until tx_busy() says no */
	FABRIC_CAP_VIRTUAL_TIME = 1u << 2,
	FABRIC_CAP_WORKERS = 1u << 3,
	/* A late packet leaves no trace: the NIC drops it, no counter, no FABRIC_EV_LATE. Whoever
	 * missed the end of a message has to ask. */
	FABRIC_CAP_SILENT_LATE = 1u << 4,
	FABRIC_CAP_NO_PAYLOAD = 1u << 5, /* simulated without bytes */
};

struct fabric_caps {
	uint32_t flags;
	uint32_t max_payload_bytes; /* largest payload of a packet on any path of the device */
	uint32_t max_train_bytes;   /* packets of one fabric_write together, headers included */
	uint32_t max_channels;
	uint32_t workers;  /* threads; rx tables need max(1, workers) of rx_worker, and are
			    * RX_SINGLE_THREAD where there are none */
	uint16_t udp_port; /* listener's port in host order; 0 where there is none */
	enum wire_mode mode;
	uint32_t max_ctrl_bytes; /* of a control datagram's body: at most FABRIC_CTRL_MAX */
	uint32_t generations;	 /* rocev2: transport QPs of a channel, a power of two; sdr: 1 */
	/*
	 * rocev2 with keys that outlive a fence (a slot's key, pointed at a NULL region): late
	 * packets still complete, so a message number may come round to the same slot and
	 * generation only this long after the last one ended. 0: keys die, no need to wait but for
	 * zero-length packets.
	 */
	uint64_t late_ns;
};

struct fabric;
struct fabric_qp;

/* A receive bound to a message. */
struct fabric_bind {
	struct rx_bind rx; /* see rx/rx.h; bitmap words belong to the caller until after fence */
	const void *mr;	   /* from mr_reg(), covers the memory; NULL: host memory, not registered */
};

/* rocev2: where the packets of a message go at the receiver. sdr mode: zeros. */
struct fabric_key {
	uint32_t rkey;
	uint64_t va; /* of the message's first byte */
};

/* Memory to register. */
struct fabric_mr_attr {
	void *addr; /* dma-buf: what work requests will call its first byte (an IOVA) */
	size_t len;
	bool dmabuf;
	int dmabuf_fd;
	uint64_t dmabuf_offset;
};

struct fabric_qp_attr {
	uint32_t channels;	/* 1 .. FABRIC_MAX_CHANNELS */
	struct rx_table *table; /* the QP's slots; outlives the fabric_qp. NULL until the first
				 * receive: see ops->table_set */
	void *cookie;		/* comes back in events */
};

/* The transport QPs of rocev2, by generation and channel. */
#define FABRIC_DATA_QPS (FABRIC_MAX_GENERATIONS * FABRIC_MAX_CHANNELS)
static inline uint32_t fabric_data_qp(uint32_t generation, uint32_t channel)
{
	return generation * FABRIC_MAX_CHANNELS + channel;
}

/* What this end tells the other one through the handshake blob. */
struct fabric_local {
	uint32_t qpn;	    /* 24 bits, random where it is ours to choose; rocev2: for control */
	uint64_t token;	    /* random; packets to this QP are protected with it (rocev2: control) */
	uint32_t start_psn; /* 24 bits, random; packets *sent* start here on every channel */
	uint32_t data_qpn[FABRIC_DATA_QPS]; /* rocev2, see fabric_data_qp(); else 0 */
	struct sockaddr_storage addr;	    /* rocev2: where this end is; family 0: any address */
};

/* What the other end told us. */
struct fabric_peer {
	uint32_t qpn;
	uint64_t token;
	uint32_t start_psn;
	uint32_t payload_bytes;	      /* agreed payload of a full packet; rocev2: a path MTU */
	bool active;		      /* this end opens the channels (knows addr) */
	struct sockaddr_storage addr; /* active, and rocev2: the peer's; passive: ignored */
	/* rocev2, agreed: */
	uint32_t channels;    /* at most as many as the QP was created with */
	uint32_t generations; /* at most the device's; a power of two */
	uint32_t messages;    /* slots; a power of two, at most 1024 */
	uint32_t data_qpn[FABRIC_DATA_QPS];
};

/* How rocev2 splits the immediate for so many slots: fewer slots leave more packets. */
static inline const struct wire_imm_split *fabric_imm_split(uint32_t messages)
{
	return messages <= 256 ? &wire_imm_8_22_2 : &wire_imm_10_18_4;
}

/*
 * One run of single-packet Writes on one channel: `count` packets of one message that
 * follow each other in memory and in offset; all carry payload_bytes but the last,
 * which carries last_bytes (0 .. payload_bytes).
 */
struct fabric_write {
	struct fabric_qp *qp;
	uint32_t channel;
	uint32_t message;
	uint32_t imm;
	const void *addr; /* of the first packet's payload; may be NULL where count*bytes is 0 */
	uint64_t offset;  /* of the first packet in the message, bytes */
	uint32_t payload_bytes;
	uint32_t last_bytes;
	uint32_t count;	       /* 1 .. FABRIC_RUN_MAX */
	uint32_t first_psn;    /* out: PSN of the first packet; the others follow it. The channel's
				* count from start_psn on, whatever transport QP takes them;
				* whether control datagrams count too is the fabric's choice */
	struct fabric_key key; /* rocev2: as the peer's bind gave it */
	const void *mr; /* from mr_reg(), covers addr: sent from there; NULL: copied first where
			 * the device cannot send from any memory */
};

enum fabric_event_type {
	FABRIC_EV_CTRL,	    /* a control datagram: body in data[len], on channel and path */
	FABRIC_EV_READY,    /* bits were set: look at the rx table's dirty words */
	FABRIC_EV_WRITABLE, /* a post or ctrl that got -EAGAIN may be tried again */
	FABRIC_EV_LATE,	    /* a verified packet came for a finished or unknown message */
	FABRIC_EV_MTU,	    /* a path of the QP carries no more than `value` payload bytes now */
	FABRIC_EV_REFUSED,  /* the peer's host answers "port unreachable" on this channel */
};

struct fabric_event {
	enum fabric_event_type type;
	void *cookie;	  /* the QP's; NULL for FABRIC_EV_WRITABLE */
	uint32_t channel; /* CTRL, REFUSED, MTU, LATE */
	uint32_t path;	  /* CTRL: 0 = the channel's current address; else a candidate's number,
			   * which no other address gets, but the old one by path_use() */
	uint32_t psn;	  /* CTRL: its PSN */
	uint32_t message; /* LATE: which; rocev2: its low bits, as an rx key has them */
	uint32_t value;	  /* MTU */
	uint64_t age_ns;  /* CTRL: time since it arrived here */
	uint32_t len;
	uint8_t data[FABRIC_CTRL_MAX];
};

/* All but the data, which is large and which `len` bounds. */
static inline void fabric_event_init(struct fabric_event *ev, enum fabric_event_type type,
				     void *cookie)
{
	memset(ev, 0, offsetof(struct fabric_event, data));
	ev->type = type;
	ev->cookie = cookie;
}

/* Facts of one channel of a QP; all counts only rise. */
struct fabric_channel_facts {
	uint64_t sent_pkts;	 /* data and control packets handed to the path */
	uint64_t received_pkts;	 /* distinct data packets committed; rocev2: and zero-length ones
				  * past the end that bring a piece of the immediate */
	uint64_t duplicate_pkts; /* verified, but their bit (or piece) was there already */
	uint64_t late_pkts;	 /* verified, but for a finished or unknown message */
	uint64_t bad_pkts;	 /* failed protection, malformed or out of range */
	uint64_t ce_pkts;	 /* marked ECN-CE */
	uint64_t reordered_pkts; /* arrived after one that was sent later, by trains */
	uint64_t host_drops; /* events of socket buffer overflow at this host; rocev2: all of the
			      * device's, on channel 0, as nobody knows whose they were */
	uint32_t newest_psn; /* newest data PSN committed, or seen as duplicate or late */
	bool psn_valid;
	/* Where no PSN is seen (rocev2): the data packet that arrived last, by the low bits of
	 * its message that an rx key has, and its index. */
	bool packet_valid;
	uint32_t newest_message, newest_packet;
	uint64_t newest_age_ns; /* time since that one arrived */
	bool up;		/* has an address to send to */
};

/*
 * A small const table, every slot filled. All calls by the caller thread except where
 * noted. Functions that can fail return 0 or more, or -errno.
 */
struct fabric_ops {
	const char *name;
	void (*close)(struct fabric *f);
	void (*caps)(const struct fabric *f, struct fabric_caps *out);
	uint64_t (*now_ns)(const struct fabric *f); /* monotonic, or virtual */

	int (*qp_create)(struct fabric *f, const struct fabric_qp_attr *attr,
			 struct fabric_qp **out);
	void (*qp_destroy)(struct fabric_qp *qp); /* fences everything first */
	void (*qp_local)(const struct fabric_qp *qp, struct fabric_local *out);
	/* Gives the QP its slots, once, before the first bind. */
	void (*table_set)(struct fabric_qp *qp, struct rx_table *table);
	int (*qp_connect)(struct fabric_qp *qp, const struct fabric_peer *peer);
	/* Moves a channel to a candidate path that was proved (PING/PONG); the old one gets its
	 * number. -ENOENT: others have taken its place meanwhile. */
	int (*path_use)(struct fabric_qp *qp, uint32_t channel, uint32_t path);
	/* The peer's address on a channel, for messages; len 0 where there is none. */
	void (*path_name)(const struct fabric_qp *qp, uint32_t channel, char *buf, size_t len);
	/* Largest payload that the paths of all channels in use carry now. */
	uint32_t (*path_payload)(const struct fabric_qp *qp);

	/*
	 * True while memory of the message's runs is still to be read: a buffer may be given back
	 * when it is false. Looks for completions itself. Always false without ZERO_COPY.
	 */
	bool (*tx_busy)(struct fabric_qp *qp, uint32_t message);
	/*
	 * Sends runs in order; each is taken whole or not. Returns how many were taken
	 * (0 .. n); fewer than n means try again after FABRIC_EV_WRITABLE. Negative:
	 * -ENOTCONN (channel has no address), -EMSGSIZE, -EINVAL for w[0].
	 * Without FABRIC_CAP_ZERO_COPY the bytes may be reused when the call returns.
	 */
	int (*post)(struct fabric *f, struct fabric_write *w, unsigned int n);
	/* One control datagram; 0, -EAGAIN, -ENOTCONN. May be lost like any other. */
	int (*ctrl)(struct fabric_qp *qp, uint32_t channel, uint32_t path, const void *data,
		    size_t len);
	/* Receives (where there are no workers) and takes events; returns how many. */
	int (*poll)(struct fabric *f, struct fabric_event *ev, unsigned int max);

	/*
	 * After qp_connect() in rocev2. *key: for the sender; goes with the fence. 0, -EBUSY (the
	 * slot is still bound), -EINVAL (also, in rocev2: the table's slots and key_mask or
	 * rx.imm_frags are not as was agreed), or the device's error (-ENOMEM: memlock, advice()
	 * says).
	 */
	int (*bind)(struct fabric_qp *qp, uint32_t message, const struct fabric_bind *b,
		    struct fabric_key *key);
	/*
	 * Starts a fence; fence_done returns 1 once no byte will be written any more and no bit
	 * will be set. What the device completed before is in the bits by then.
	 */
	void (*fence_begin)(struct fabric_qp *qp, uint32_t message);
	int (*fence_done)(struct fabric_qp *qp, uint32_t message);

	int (*mr_reg)(struct fabric *f, const struct fabric_mr_attr *attr, void **mr);
	void (*mr_dereg)(struct fabric *f, void *mr);

	/* Sleeps until something happened or deadline_ns (its clock; 0 = just look). */
	int (*wait)(struct fabric *f, uint64_t deadline_ns);
	/* Becomes readable when something happened; -ENOTSUP in virtual time. */
	int (*fd)(struct fabric *f);
	/* Wakes a wait() of this fabric. Any thread. */
	void (*wake)(struct fabric *f);
	void (*channel_facts)(const struct fabric_qp *qp, uint32_t channel,
			      struct fabric_channel_facts *out);
	/* A sentence on what a person should change on this host (socket buffers ...), or "". */
	void (*advice)(const struct fabric *f, char *buf, size_t len);
	/* Device-wide counter by its index in <sdr/counters.h>; adds to sum[]. */
	void (*counters)(const struct fabric *f, uint64_t *sum);
};

struct fabric {
	const struct fabric_ops *ops;
};

struct fabric_qp {
	struct fabric *fabric;
};

#endif

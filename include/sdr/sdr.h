/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <sdr/sdr.h>: unreliable RDMA Writes with a receive bitmap.
 *
 * The SDR SDK of arXiv 2505.05366 (its Table 1) with an sdr_ prefix, and what a
 * reliability layer needs besides: control datagrams, facts of each channel, the
 * expansion of a chunk into its packets, filling packets by software, a pacer.
 * Reliable connections (<sdr/conn.h>) are built on this header alone.
 *
 *   context   an opened device: memory registrations, channels, workers
 *   QP        a table of messages in flight with one peer, both directions
 *   message   a send that lands in the matching receive: the n-th send of a QP lands
 *             in the n-th receive that its peer posted; no key or address travels
 *   packet    one unreliable Write with immediate of `payload_bytes`
 *   chunk     a power of two of packets (1 .. 64); one bit of a receive's bitmap
 *   channel   one path to the peer (a UDP source port)
 *
 * What a send may rely on: nothing. Packets are lost, duplicated and reordered. What a
 * receive may rely on: a chunk's bit is set only after every byte of it has landed; a
 * message's bytes do not change after its bits are set (SDR_CAP_NO_REWRITE); after
 * sdr_recv_complete() returned, no byte of the buffer is written again, however late a
 * packet. A duplicate, late, foreign, malformed or out-of-range packet changes a
 * counter and nothing else.
 *
 * Threads. A context and all that hangs on it is used by one thread at a time; the
 * caller serialises. Workers (attribute `workers`) take packet reception off that
 * thread. Different contexts are independent. sdr_wake() may be called by any thread.
 * Nothing happens on its own: sdr_progress() or sdr_wait() must be called for grants,
 * paced sends and control messages to move.
 *
 * Structures begin with `size`, set to sizeof the structure by the caller; a zero in
 * any other field means the default. They only grow at the end.
 *
 * Errors: negative return values, <sdr/err.h>.
 */
#ifndef SDR_SDR_H
#define SDR_SDR_H

#include <stddef.h>
#include <stdint.h>
#include <sdr/api.h>
#include <sdr/counters.h>
#include <sdr/err.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SDR_VERSION_MAJOR 0
#define SDR_VERSION_MINOR 1
#define SDR_VERSION_PATCH 0

#define SDR_DEFAULT_PORT 4792 /* UDP and TCP */
#define SDR_MAX_CHANNELS 16u
#define SDR_MAX_MESSAGES 1024u /* messages in flight in each direction of a QP */
#define SDR_MAX_CHUNK_PKTS 64u
#define SDR_MAX_INFO_BYTES 1024u	/* connection info of a QP */
#define SDR_MAX_CTRL_BYTES 1180u	/* body of one control message */
#define SDR_MAX_MESSAGE_PKTS UINT32_MAX /* packets in a message */

struct sdr_ctx;
struct sdr_qp;
struct sdr_mr;
struct sdr_send;
struct sdr_recv;
struct sockaddr;

/* "0.1.0"; static. Any thread. */
SDR_API const char *sdr_version(void);

/* ---- devices ---------------------------------------------------------------- */

enum sdr_cap {
	SDR_CAP_NO_REWRITE = 1u << 0, /* a set chunk's bytes are not written again: it may be
				       * changed before the receive is completed */
	SDR_CAP_ZERO_COPY = 1u << 1,  /* a send's buffer must stay until sdr_send_poll() says so */
	SDR_CAP_VIRTUAL_TIME = 1u << 2, /* a simulated device */
	SDR_CAP_WORKERS = 1u << 3,
	SDR_CAP_ROCEV2 = 1u << 4, /* speaks RoCEv2 to the letter: its peers are RDMA devices, or
				   * others that do. Limits follow: see struct sdr_qp_info */
	SDR_CAP_SILENT_LATE = 1u << 5, /* packets of finished messages are dropped uncounted */
	SDR_CAP_NO_PAYLOAD = 1u << 6,  /* simulated without bytes: buffers are never touched */
};

struct sdr_device_info {
	size_t size;
	char name[72];	      /* for sdr_ctx_attr.device; RDMA device names have up to 63 bytes */
	char description[96]; /* for a person */
	uint32_t caps;	      /* enum sdr_cap */
	uint32_t max_channels;
	uint32_t max_payload_bytes;
};

/*
 * Fills up to `max` entries, each of the `size` that the caller has set in it; returns how
 * many devices there are (which may be more). Any thread.
 */
SDR_API int sdr_device_list(struct sdr_device_info *list, size_t max);

/* ---- contexts --------------------------------------------------------------- */

/*
 * Devices:
 *   "udp"          UDP sockets, any host; packets only look like RoCEv2 (NAT harmless)
 *   "roce"         UDP sockets that speak RoCEv2 to the letter, so that RDMA devices are peers;
 *                  one process an address, port 4791, no NAT
 *   "verbs"        the first RDMA device with UC queue pairs; "verbs:mlx5_0" names one
 * "roce" and "verbs" understand each other, "udp" only "udp".
 */
struct sdr_ctx_attr {
	size_t size;
	const char *device;	    /* NULL: "udp" */
	const char *bind_addr;	    /* local IP address; NULL: any; 0.0.0.0, ::, RDMA devices: any
				     * of that family */
	uint16_t port;		    /* listener's UDP port; 0 with `listen`: any free one */
	uint8_t listen;		    /* 1: peers can open channels to this context */
	uint8_t no_gso;		    /* 1: no segmentation offload on sends */
	uint8_t no_gro;		    /* 1: no coalescing on receives */
	uint32_t workers;	    /* threads that receive; 0: the caller's progress does it */
	uint32_t max_qps;	    /* 1 .. 65536; default 1024 */
	uint32_t sockbuf_bytes;	    /* wish for socket buffers; default 32 MiB */
	uint32_t max_payload_bytes; /* upper bound; default: what the route carries. "roce" and
				     * "verbs" round it down to 1024, 2048 or 4096; "verbs" does not
				     * open where the port's MTU is below that */
	char *why; /* where a sentence goes that says why opening failed and what to
		    * do; or NULL */
	size_t why_len;
};

/*
 * Opens a device. `attr` NULL: all defaults. *out is the caller's, until
 * sdr_ctx_destroy(). Errors: -ENODEV (no such device), -EADDRINUSE (port taken),
 * -EADDRNOTAVAIL, -EINVAL, -ENOMEM; of RDMA devices also -EOPNOTSUPP (no UC queue pairs),
 * -ENETDOWN, -EMSGSIZE (its MTU), -EACCES and others of the driver: attr->why says which.
 */
SDR_API int sdr_ctx_create(const struct sdr_ctx_attr *attr, struct sdr_ctx **out);
/*
 * Destroys its QPs too; registrations must be gone by then. Buffers of posted receives and
 * of sends are the caller's again. NULL is allowed.
 */
SDR_API void sdr_ctx_destroy(struct sdr_ctx *ctx);

struct sdr_ctx_info {
	size_t size;
	uint32_t caps;
	uint32_t max_channels;
	uint32_t max_payload_bytes;
	uint32_t workers;
	uint16_t udp_port; /* listener's, host order; 0 without one */
};
/* What the opened device can do. Always 0. */
SDR_API int sdr_ctx_query(const struct sdr_ctx *ctx, struct sdr_ctx_info *info);

/* The context's monotonic clock, ns. Virtual on a simulated device. */
SDR_API uint64_t sdr_now_ns(const struct sdr_ctx *ctx);
/*
 * Receives, moves grants and paced sends, runs timers. Never blocks. Returns the number
 * of things that happened (0: nothing to do now) or a negative error of the device.
 */
SDR_API int sdr_progress(struct sdr_ctx *ctx);
/* When sdr_progress() must be called next even if no packet comes, ns; UINT64_MAX: never. */
SDR_API uint64_t sdr_next_deadline_ns(const struct sdr_ctx *ctx);
/*
 * A deadline of the owner's own, which sdr_next_deadline_ns() and what goes by it heed like the
 * context's: sdr_wait(), sdr_sim_step(), sdr_sim_due(). It stays, though it has passed, until
 * another one is set. UINT64_MAX: none, as at first.
 */
SDR_API void sdr_ctx_deadline_set(struct sdr_ctx *ctx, uint64_t at_ns);
/*
 * A QP with attribute tell_active that had an event or a deadline in sdr_progress() since this
 * function named it last, or NULL: what an owner of many QPs needs to look at.
 */
SDR_API struct sdr_qp *sdr_next_active(struct sdr_ctx *ctx);
/*
 * Sleeps until something arrives, a timer is due, sdr_wake() is called or deadline_ns
 * passes; then makes progress. On a simulated device it does not sleep. Returns as
 * sdr_progress().
 */
SDR_API int sdr_wait(struct sdr_ctx *ctx, uint64_t deadline_ns);
/* A descriptor that polls readable when sdr_progress() has work; -ENOTSUP if simulated.
 * Owned by the context. Timers are not in it: poll with sdr_next_deadline_ns(). */
SDR_API int sdr_fd(struct sdr_ctx *ctx);
/* Ends a sdr_wait() in another thread. Any thread. */
SDR_API void sdr_wake(struct sdr_ctx *ctx);
/*
 * The first n counters by enum sdr_counter (<sdr/counters.h>); sums over all QPs, those
 * destroyed included. Returns how many counters there are.
 */
SDR_API int sdr_counters_get(const struct sdr_ctx *ctx, uint64_t *out, size_t n);
SDR_API const char *sdr_counter_name(unsigned int counter); /* NULL beyond the last */
SDR_API const char *sdr_counter_text(unsigned int counter);
/* A sentence on what to change on this host (socket buffers ...), or "". */
SDR_API int sdr_ctx_advice(const struct sdr_ctx *ctx, char *buf, size_t len);

/*
 * The payload of a packet on a path with this IP MTU, bytes (a multiple of 4; 0 where the
 * MTU is too small), over IPv4 or IPv6. What an application that knows the route may give
 * as max_payload_bytes of a QP, so that no PAYLOAD exchange is needed later. Any thread.
 */
SDR_API uint32_t sdr_payload_for_mtu(uint32_t mtu_bytes, int is_ipv6);

/* ---- memory ----------------------------------------------------------------- */

/*
 * Registers memory for sends and receives; the caller keeps it mapped until
 * sdr_mr_dereg(). It may always be left out (mr = NULL in work requests): software devices
 * need none, an RDMA device then copies what it sends and registers receives one by one.
 * `flags` must be 0. The device's errors, or -ENOMEM.
 */
SDR_API int sdr_mr_reg(struct sdr_ctx *ctx, void *addr, size_t len, uint32_t flags,
		       struct sdr_mr **out);
/*
 * The same for memory of another device (a GPU), by its dma-buf: `len` bytes from `offset`
 * on. Work requests give its bytes addresses from `addr` on, which is a name only (the
 * GPU's pointer, say): nothing on this host reads or writes through it. The descriptor is
 * duplicated. -EOPNOTSUPP: the device has no DMA engine ("udp", "roce"), or its driver takes
 * no dma-buf.
 */
SDR_API int sdr_mr_reg_dmabuf(struct sdr_ctx *ctx, int fd, uint64_t offset, size_t len, void *addr,
			      struct sdr_mr **out);
/* 1: memory of this host; 0: another device's, which no software here can read or write. */
SDR_API int sdr_mr_is_host(const struct sdr_mr *mr);
/* Before the context is destroyed, and after the last use in a message. NULL is allowed. */
SDR_API void sdr_mr_dereg(struct sdr_mr *mr);

/* ---- queue pairs ------------------------------------------------------------ */

struct sdr_qp_attr {
	size_t size;
	uint32_t channels;	    /* 1 .. SDR_MAX_CHANNELS; default 1; the smaller end's holds */
	uint32_t chunk_pkts;	    /* of receives here; power of two, 1 .. 64; default 4 (paper) */
	uint32_t messages;	    /* in flight in each direction; power of two, 1 .. 1024;
				     * default 1024; the smaller end's holds */
	uint32_t max_payload_bytes; /* upper bound; default: the device's */
	uint64_t rate_bps;	    /* pacer of one-shot sends, payload bit/s; 0: none */
	void *cookie;		    /* the caller's */
	uint8_t tell_active;	    /* 1: sdr_next_active() names it; not for QPs of a context
				     * that a net uses, which asks for its own */
	uint16_t user_offers; /* bits of the application's own, which the peer sees as peer_offers
			       * of sdr_qp_query(); they mean nothing here */
};

enum sdr_qp_state {
	SDR_QP_INIT,	   /* created; nothing is sent */
	SDR_QP_CONNECTING, /* PINGs go out or are waited for */
	SDR_QP_CONNECTED,  /* a channel answered */
	SDR_QP_ERROR,	   /* reset, here or by the peer; nothing leads out of it */
};

/*
 * Creates a queue pair, not connected; `attr` NULL: all defaults. *out is the caller's until
 * sdr_qp_destroy() or sdr_ctx_destroy(). Errors: -EINVAL (an attribute outside its range),
 * -ENOSPC (max_qps reached), -ENOMEM.
 */
SDR_API int sdr_qp_create(struct sdr_ctx *ctx, const struct sdr_qp_attr *attr, struct sdr_qp **out);
/*
 * Fences all receives; handles of the QP are gone, and all buffers are the caller's. The
 * peer is told which receives have ended, but not that the QP is gone: sdr_qp_reset()
 * does that. NULL is allowed.
 */
SDR_API void sdr_qp_destroy(struct sdr_qp *qp);
/* The cookie of its attributes. */
SDR_API void *sdr_qp_cookie(const struct sdr_qp *qp);
/* Bytes that sdr_qp_info_get() will write; at most SDR_MAX_INFO_BYTES. */
SDR_API size_t sdr_qp_info_size(const struct sdr_qp *qp);
/*
 * This end's connection info: what the peer's sdr_qp_connect() needs. How it travels is
 * the application's business. It contains the QP's secret token: send it over a channel
 * that you trust. Returns the length, or -ENOSPC.
 */
SDR_API int sdr_qp_info_get(const struct sdr_qp *qp, void *buf, size_t cap);

/* Which end opens the channels, that is, sends first and from source ports of its own. */
enum sdr_role {
	SDR_ROLE_AUTO,	  /* the end that can reach a listener; of two listeners, one */
	SDR_ROLE_ACTIVE,  /* this one: the peer must listen */
	SDR_ROLE_PASSIVE, /* the peer: this end must listen */
};

struct sdr_connect_attr {
	size_t size;
	const struct sockaddr *peer_addr; /* overrides the address in the info (NULL: that) */
	uint32_t peer_addr_len;
	enum sdr_role role; /* both ends must agree: both AUTO, or one ACTIVE, one PASSIVE */
	uint64_t rtt_ns;    /* the path's round trip as far as known, 0: not. Where it is long,
			     * a reliable connection measures the path's rate meanwhile */
};
/*
 * Starts connecting to the QP that `info` describes; never blocks. One end must
 * listen. It is connected once UDP answered: sdr_qp_state_get(). Errors: -SDR_E_BLOB,
 * -SDR_E_VERSION, -SDR_E_FEATURE, -EISCONN, -EDESTADDRREQ (nobody listens, or no port is
 * known), -EINVAL and -EAFNOSUPPORT (peer_addr), -ENETUNREACH, -ENOMEM. After an error
 * the QP is as it was.
 */
SDR_API int sdr_qp_connect(struct sdr_qp *qp, const void *info, size_t len,
			   const struct sdr_connect_attr *attr);
/* Its state now; sdr_progress() changes it. */
SDR_API enum sdr_qp_state sdr_qp_state_get(const struct sdr_qp *qp);
/*
 * Sends RESET, three times and no more (once to an address that has proved nothing), and refuses
 * everything from now on: posts, sends, control messages and changes return -SDR_E_RESET. What was
 * received may still be read, receives completed, sends cancelled, handles released. -ENOTCONN
 * before sdr_qp_connect(); 0 if it is in SDR_QP_ERROR already.
 */
SDR_API int sdr_qp_reset(struct sdr_qp *qp, uint32_t reason);

struct sdr_qp_info {
	size_t size;
	enum sdr_qp_state state;
	int error;				 /* why SDR_QP_ERROR: -SDR_E_RESET ..., else 0 */
	uint32_t channels;			 /* agreed with the peer */
	uint32_t chunk_pkts;			 /* of receives here */
	uint32_t payload_bytes;			 /* of messages that start now (sends) */
	uint32_t recv_payload_bytes;		 /* of receives that are posted now */
	uint32_t messages;			 /* in flight; agreed with the peer */
	uint64_t rtt_min_ns, rtt_ns, rtt_var_ns; /* measured by PING; 0 before the first */
	uint64_t pings_sent, pongs_received;
	uint64_t heard_age_ns;	 /* since anything verified came from the peer; UINT64_MAX: never */
	uint64_t unanswered_ns;	 /* age of the oldest unanswered PING; 0: none */
	uint32_t send_next;	 /* number of the next send */
	uint32_t recv_next;	 /* number of the next receive */
	uint32_t granted;	 /* sends below this number have a matching receive */
	uint8_t refused;	 /* the peer's host said "port unreachable", unanswered since */
	uint32_t max_ctrl_bytes; /* body of one control message; at most SDR_MAX_CTRL_BYTES */
	uint32_t max_pkts;	 /* in one message, its end packet not counted: UINT32_MAX - 1, or
				  * what an RDMA packet's immediate has room to number */
	uint32_t imm_packets;	 /* packets that it takes to carry the user's immediate: 1, and 8 or
				  * 16 on RDMA devices. A shorter message has it in part only (a
				  * one-shot adds empty packets) */
	uint64_t path_changes;	 /* times that a channel went on at another address of the peer */
	uint16_t peer_offers; /* user_offers of the other end's attributes; 0 before connecting */
};
/* What a QP knows now. Always 0. */
SDR_API int sdr_qp_query(const struct sdr_qp *qp, struct sdr_qp_info *info);
/* Asks for a PING on every channel now (they also go out when idle for 15 s). */
SDR_API int sdr_qp_ping(struct sdr_qp *qp);
/* Changes the pacer of one-shot sends. 0: none. */
SDR_API int sdr_qp_rate_set(struct sdr_qp *qp, uint64_t rate_bps);
/*
 * Before sdr_qp_connect() and sdr_qp_info_get(): this end's largest payload, bytes, as the
 * attribute. Afterwards: announces a smaller or larger payload for messages that start
 * from now on (PAYLOAD); sends of such messages wait until the peer has echoed it, and a
 * second change until the first is settled. -EINVAL outside 64 .. the device's maximum, or
 * what both ends can take once connected. It is not compared with the route's MTU. On RDMA
 * devices it is rounded down to a path MTU (1024, 2048, 4096), and fixed once connected.
 */
SDR_API int sdr_qp_payload_set(struct sdr_qp *qp, uint32_t payload_bytes);

/* ---- sending ---------------------------------------------------------------- */

enum sdr_opcode {
	SDR_OP_WRITE,	  /* immediate 0 */
	SDR_OP_WRITE_IMM, /* with the 32-bit immediate */
};

struct sdr_send_wr {
	size_t size;
	enum sdr_opcode opcode;
	uint32_t imm;
	uint64_t length;  /* of the whole message, bytes; 0 is a message too */
	const void *addr; /* of its first byte; may be NULL if length is 0 */
	struct sdr_mr *mr;
	uint64_t remote_offset; /* must be 0: reserved for one-sided writes */
	void *cookie;
	/* Streaming sends, 1: a message without an end, of which any packets are sent or none.
	 * `length` is the most that will be sent, and is cut to whole packets of the matching
	 * receive once granted (sdr_send_info.pkts; 0 where not one fits). It ends when its
	 * receiver finishes it. */
	uint8_t sparse;
};

/*
 * One-shot send: the next message of the QP, sent once when granted, paced by the QP's
 * rate, its packets dealt to the channels in trains. The buffer must stay until
 * sdr_send_poll() says so, or where the handle is released before, as long as the QP. *out
 * is the caller's until sdr_send_release(). Errors: -EAGAIN (all `messages` are in flight),
 * -EINVAL, -EMSGSIZE (more packets than max_pkts of sdr_qp_query()), -ENOTCONN (before
 * sdr_qp_connect()), -ENOMEM, the QP's error.
 */
SDR_API int sdr_send_post(struct sdr_qp *qp, const struct sdr_send_wr *wr, struct sdr_send **out);
/*
 * Streaming send: the next message of the QP; what is sent when is up to the caller, who
 * keeps the buffer for as long as it continues. Errors as sdr_send_post().
 */
SDR_API int sdr_send_stream_start(struct sdr_qp *qp, const struct sdr_send_wr *wr,
				  struct sdr_send **out);

struct sdr_continue_attr {
	size_t size;
	uint32_t channel;      /* which path; SDR_CHANNEL_ANY: the next in turn */
	uint32_t first_psn;    /* out: PSN of the first packet sent; the others follow */
	uint32_t pkts;	       /* out: packets sent */
	uint32_t sent_channel; /* out */
};
#define SDR_CHANNEL_ANY UINT32_MAX

/*
 * Sends bytes [offset, offset + length) of a started message, again if they were sent
 * before. offset is a multiple of the payload; length too, unless it reaches the
 * message's end. length 0 at the end of a message sends its end packet where it has
 * one. At most one train goes out. Returns the bytes sent (0 for an end packet: look at
 * attr->pkts), which may be fewer than asked; -EAGAIN: not granted yet, the payload is
 * not settled or the device is full (see sdr_send_query); -SDR_E_TOO_LONG: the matching
 * receive is shorter; -SDR_E_EARLY: the receiver finished the message; -ECANCELED;
 * -ENOTCONN: the channel has no address; -EMSGSIZE: the path refuses packets of this size;
 * -EINVAL (also after sdr_send_stream_end() and for a one-shot); the QP's error. attr may
 * be NULL: any channel.
 */
SDR_API int64_t sdr_send_stream_continue(struct sdr_send *send, uint64_t offset, uint64_t length,
					 struct sdr_continue_attr *attr);
/* No more continues. The handle lives until sdr_send_release(). */
SDR_API int sdr_send_stream_end(struct sdr_send *send);
/*
 * 1: all that was to be sent has left, or the receiver has finished the message, and the
 * buffer may be reused; 0: not yet; -SDR_E_TOO_LONG, -ECANCELED, -EMSGSIZE (the path
 * refuses packets of its size, or it has too many of them), the QP's error: it never will,
 * and the buffer is free too. It says nothing on arrival.
 */
SDR_API int sdr_send_poll(const struct sdr_send *send);

struct sdr_send_info {
	size_t size;
	uint32_t message;     /* its number */
	uint8_t granted;      /* the matching receive is posted */
	uint8_t remote_done;  /* the receiver has finished it (completed, early or aborted) */
	uint8_t remote_early; /* ... before all had arrived */
	uint8_t cancelled;
	uint32_t payload_bytes; /* 0 until it is fixed, by the first packet or query that finds
				 * the message granted and the payload settled */
	uint32_t pkts;		/* packets that the message has, its end packet included; 0
				 * before that */
	uint64_t recv_length;	/* of the matching receive; 0 before the grant */
	uint64_t length; /* a sparse one's: what it was cut to, once payload_bytes is fixed */
	void *cookie;
};
/* What is known of a send; fixes payload and packet count once it is granted. Always 0. */
SDR_API int sdr_send_query(struct sdr_send *send, struct sdr_send_info *info);
/*
 * Gives the message up: the receiver's handle says -SDR_E_ABORTED. Works before the
 * grant too: the number is held and aborted once granted, so that order never slips. No
 * byte of the buffer is read after it returns. -EALREADY: the receiver has finished the
 * message.
 */
SDR_API int sdr_send_cancel(struct sdr_send *send);
/*
 * Frees the handle. If the message was not finished by the receiver, its number stays
 * taken until it is (an unfinished message is not cancelled by this, and a one-shot is
 * still sent). NULL is allowed.
 */
SDR_API void sdr_send_release(struct sdr_send *send);

/* ---- receiving -------------------------------------------------------------- */

struct sdr_recv_wr {
	size_t size;
	void *addr;
	uint64_t length; /* largest message it takes, bytes; 0 is allowed */
	struct sdr_mr *mr;
	void *cookie;
};

/*
 * Posts the next receive and grants it to the peer. The buffer belongs to the library
 * until sdr_recv_complete(), in SDR_QP_ERROR too; the handle, *out, is good as long.
 * Errors: -EAGAIN (all `messages` are in flight; on RDMA devices also while a late packet could
 * be taken for one of this receive: sdr_next_deadline_ns() says when to try again), -ENOMEM,
 * -EINVAL, -EMSGSIZE (more packets than max_pkts of sdr_qp_query()), -ENOTCONN (before
 * sdr_qp_connect()), the QP's error.
 */
SDR_API int sdr_recv_post(struct sdr_qp *qp, const struct sdr_recv_wr *wr, struct sdr_recv **out);
/*
 * Copies the bits of chunks [first, first + n) into words, bit 0 of words[0] first; there
 * are (n + 63) / 64 of them. Bits at or beyond the message's end (sdr_recv_query()) mean
 * nothing. Returns the number of set bits among them; -ERANGE beyond the receive's chunks.
 */
SDR_API int64_t sdr_recv_bitmap_get(const struct sdr_recv *recv, uint64_t first, uint64_t n,
				    uint64_t *words);
/* The packets of one chunk: bit i is packet chunk * chunk_pkts + i. */
SDR_API int sdr_recv_chunk_pkts_get(const struct sdr_recv *recv, uint64_t chunk, uint64_t *mask);
/* The bits of packets [first, first + n), as sdr_recv_bitmap_get(). */
SDR_API int64_t sdr_recv_pkts_get(const struct sdr_recv *recv, uint64_t first, uint64_t n,
				  uint64_t *words);
/*
 * 0 and the user's immediate; -EAGAIN while no packet (or not all of it) came: then *imm has
 * the parts that came, and 0 elsewhere.
 */
SDR_API int sdr_recv_imm_get(const struct sdr_recv *recv, uint32_t *imm);

struct sdr_recv_info {
	size_t size;
	uint32_t message;
	int error; /* 0, -SDR_E_ABORTED (the sender gave it up or broke the protocol), or what
		    * a change of payload met: -ENOMEM, -EMSGSIZE. Only completing is left. */
	uint32_t payload_bytes;
	uint32_t chunk_pkts;
	uint32_t pkts; /* packets that the message has as far as is known: an upper bound
			* until end_known */
	uint64_t chunks;
	uint8_t end_known; /* pkts and length are final */
	uint8_t touched;   /* a packet of it or of a later message has arrived */
	uint64_t length;   /* bytes of the message; the receive's until end_known */
	void *cookie;
};
/* What is known of a receive. Always 0. */
SDR_API int sdr_recv_query(const struct sdr_recv *recv, struct sdr_recv_info *info);
/*
 * Claims packets [first, first + n), n <= 64 within one aligned group of 64, that
 * software will fill (decoded data): returns the claimed ones as a mask in *mask (bit 0
 * = first); they are then the caller's to write, and nobody else writes them. fill_end
 * commits them, all that were claimed. -EINVAL, -ERANGE (beyond the message).
 */
SDR_API int sdr_recv_fill_begin(struct sdr_recv *recv, uint32_t first, uint32_t n, uint64_t *mask);
SDR_API int sdr_recv_fill_end(struct sdr_recv *recv, uint32_t first, uint64_t mask);
/*
 * The message's length is known from elsewhere (its packets need not have told it): what
 * sdr_recv_query() says from now on. An end packet counts as arrived; packets that come later and
 * contradict it are refused and counted. 0, the second time too; -EINVAL: longer than the receive,
 * or packets that arrived, or an earlier call, say otherwise.
 */
SDR_API int sdr_recv_length_set(struct sdr_recv *recv, uint64_t length);
/*
 * Finishes the receive, early or not, and tells the sender. When it returns no byte of
 * the buffer will be written any more; the handle is gone. Returns 1 if all packets had
 * arrived, 0 if not, or the receive's error. In every state of the QP. It may wait for a
 * worker that is inside the message, at most for one batch of packets.
 */
SDR_API int sdr_recv_complete(struct sdr_recv *recv);
/*
 * The same, but the sender hears that the receive ended early even if all packets had arrived:
 * for who waits for more than packets. Returns -ECANCELED or the receive's error.
 */
SDR_API int sdr_recv_give_up(struct sdr_recv *recv);
/*
 * A receive of the QP that had packets committed since it was last returned here, or
 * whose error changed; NULL: none. Cheaper than polling every bitmap.
 */
SDR_API struct sdr_recv *sdr_recv_next_ready(struct sdr_qp *qp);

/* ---- control datagrams ------------------------------------------------------ */

/*
 * Types 9 to 13 belong to reliable connections, 128 to 255 to applications; others are
 * refused with -EINVAL. A message may be lost, duplicated (never replayed exactly) and
 * reordered: carry state, not events. Queued and sent with the next progress, several in
 * one datagram where they fit. `channel` SDR_CHANNEL_ANY: the one that last delivered.
 * -EAGAIN: the queue (16 KiB) is full; -EMSGSIZE beyond max_ctrl_bytes of sdr_qp_query();
 * -ENOMEM; -ENOTCONN before sdr_qp_connect(); the QP's error.
 */
#define SDR_CTRL_USER 128u
SDR_API int sdr_ctrl_send(struct sdr_qp *qp, uint8_t type, const void *body, size_t len,
			  uint32_t channel);

struct sdr_ctrl {
	size_t size;
	uint8_t type;
	uint32_t channel;
	uint32_t len;
	uint64_t age_ns; /* since it arrived at this host, when it is taken */
	uint8_t body[SDR_MAX_CTRL_BYTES];
};
/*
 * Takes the oldest control message; 1, or 0 if there is none. 64 wait at most; what comes
 * then is dropped and counted. In SDR_QP_ERROR too.
 */
SDR_API int sdr_ctrl_recv(struct sdr_qp *qp, struct sdr_ctrl *out);

/* ---- facts of a channel ----------------------------------------------------- */

struct sdr_channel_facts {
	size_t size;
	uint64_t sent_pkts;	/* data and control packets */
	uint64_t received_pkts; /* distinct data packets */
	uint64_t duplicate_pkts;
	uint64_t late_pkts;
	uint64_t bad_pkts;
	uint64_t ce_pkts;
	uint64_t host_drops;	/* overflow events of this host's socket buffer */
	uint64_t newest_age_ns; /* since the newest data packet arrived */
	uint32_t newest_psn;	/* 24 bits */
	uint8_t psn_valid;
	uint8_t up;		     /* has an address and answered */
	uint64_t rtt_ns, rtt_min_ns; /* of its own PINGs; 0: none yet */
	uint64_t pings_sent, pongs_received;
	uint64_t reordered_pkts; /* data and control that came after what was sent later */
	/* Instead of a PSN on RDMA devices, which show none: what arrived last. */
	uint8_t packet_valid;
	uint32_t newest_message;
	uint32_t newest_packet;
	char peer[64]; /* the peer's address as text */
};
/* What is known of a channel; counts only rise. 0, or -EINVAL (no such channel). */
SDR_API int sdr_channel_facts_get(const struct sdr_qp *qp, uint32_t channel,
				  struct sdr_channel_facts *out);

/*
 * Packet trains: `pkts` (2 .. 256) control datagrams of some 1,200 bytes, back to back. How
 * far apart they arrive says what the narrowest link of the path carries, before any data
 * was sent. Nothing is repeated, and nothing waits for the answer, which comes a round trip
 * later. 0; -ENOTSUP: the peer measures none; -EAGAIN: the device was full, part of the
 * train has left at most; -ENOTCONN (also: the peer's address has proved nothing yet);
 * -EINVAL; -ENOMEM; or why the QP failed.
 */
#define SDR_TRAINS 8u
SDR_API int sdr_qp_train_send(struct sdr_qp *qp, uint32_t channel, uint32_t pkts);

struct sdr_train_info {
	size_t size;
	uint32_t sent; /* trains so far */
	uint32_t seen; /* answers so far, to any of them */
	/*
	 * Of the last SDR_TRAINS, the newest first: bit/s of IP packets; 0: no answer (yet), or
	 * one that says nothing (few packets arrived, or all were read at once).
	 */
	uint64_t rate_bps[SDR_TRAINS];
	/* Bit i: rate_bps[i] is what the train was sent at; the path may carry more. */
	uint32_t bounds;
};
/* What is known of the trains of a channel. 0, or -EINVAL (no such channel). */
SDR_API int sdr_qp_train_query(const struct sdr_qp *qp, uint32_t channel,
			       struct sdr_train_info *out);

#ifdef __cplusplus
}
#endif
#endif

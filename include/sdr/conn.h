/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <sdr/conn.h>: reliable connections over <sdr/sdr.h>: writes of any length that land
 * in receives posted in order, repaired by a scheme that is chosen for each connection.
 *
 *   sdr_net    a context with its listener, connections, completion queue
 *   sdr_conn   a reliable connection: both directions
 *   sdr_op     a posted write or receive, until its completion was taken
 *
 * Threads. A net and all that hangs on it is used by one thread at a time. With
 * attribute `thread` a thread of its own makes progress and calls are serialised inside:
 * then any thread may call. Without it nothing moves unless sdr_net_progress() or
 * sdr_net_wait() is called.
 *
 * Completion. Each operation ends exactly once, and is told in one of two ways: by the
 * net's completion queue (sdr_net_poll()), or, if it was posted with SDR_OP_TEST, by
 * sdr_op_test(). Nothing waits for ever: operations end with an error when the
 * connection dies, closes, or their deadline passes. They end in no particular order:
 * tell them apart by cookie.
 *
 * Schemes. One engine with one set of parameters, struct sdr_scheme; as text "gbn", "sr",
 * "sr-nack", "ec-xor:32,8", "ec:32,8", "hybrid:k=128,m=10", "auto" and more, see
 * sdr_scheme_parse(). Each end chooses for what it sends, and may change its mind from write to
 * write; the other end follows by what it is told with each write.
 */
#ifndef SDR_CONN_H
#define SDR_CONN_H

#include <sdr/sdr.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sdr_net;
struct sdr_conn;
struct sdr_op;

/* ---- nets ------------------------------------------------------------------- */

struct sdr_net_attr {
	size_t size;
	struct sdr_ctx_attr ctx;  /* the device (its `size` may be 0 for all defaults) */
	struct sdr_ctx *use_ctx;  /* instead of `ctx`: an open context, e.g. simulated; stays the
				   * caller's, but has no other net, and its deadline
				   * (sdr_ctx_deadline_set) and QPs with tell_active are the net's */
	uint8_t thread;		  /* 1: progress by a thread of its own */
	uint32_t max_completions; /* queue; default 65536 */
};

/* Errors as sdr_ctx_create(); with ctx.listen also opens the TCP port of that number for
 * the handshake (ctx.port 0: SDR_DEFAULT_PORT). */
SDR_API int sdr_net_create(const struct sdr_net_attr *attr, struct sdr_net **out);
/* Destroys a net and its connections without a goodbye: close them first. */
SDR_API void sdr_net_destroy(struct sdr_net *net);
/* The net's context, for its clock, counters and registrations. Owned by the net. */
SDR_API struct sdr_ctx *sdr_net_ctx(struct sdr_net *net);
/* The listener's port, UDP and TCP, host order; 0 without one. */
SDR_API uint16_t sdr_net_port(const struct sdr_net *net);
/*
 * Makes progress: receives, acknowledges, sends, runs timers. Never blocks. Returns the
 * number of things that happened, or a negative error of the device.
 */
SDR_API int sdr_net_progress(struct sdr_net *net);
/*
 * Makes progress until a completion or event is there, or deadline_ns of sdr_now_ns()
 * passed. On a simulated device it does not sleep. Returns as sdr_net_progress().
 */
SDR_API int sdr_net_wait(struct sdr_net *net, uint64_t deadline_ns);
/* When sdr_net_progress() must be called next even if no packet comes, ns; UINT64_MAX: never. */
SDR_API uint64_t sdr_net_next_deadline_ns(const struct sdr_net *net);
/* A descriptor that polls readable when sdr_net_progress() has work (timers apart). */
SDR_API int sdr_net_fd(struct sdr_net *net);

/* ---- connecting ------------------------------------------------------------- */

struct sdr_conn_attr {
	size_t size;
	const char *scheme;	    /* of what this end sends; default "sr-nack". What is wrong with
				     * one that is refused (-EINVAL), sdr_scheme_parse() says. One
				     * with a code needs a peer that can decode; else sr-nack it
				     * is, and sdr_conn_info says so */
	uint32_t channels;	    /* default 1 (client decides) */
	uint32_t chunk_pkts;	    /* default 4 */
	uint32_t messages;	    /* in flight; default 512 */
	uint32_t max_payload_bytes; /* default: what the route carries */
	uint64_t rate_bps;	    /* provisioned payload rate of what this end sends: fixed
				     * congestion control; 0: found by growing */
	uint64_t connect_timeout_ns; /* default 10 s */
	uint64_t dead_after_ns;	     /* of unanswered PINGs; default 30 s */
	void *cookie;
	/*
	 * Erasure codes. A write with a code takes two messages of the QP, so which connections
	 * pair them is settled with the handshake: where the scheme is a code or auto, or here is
	 * a 1 (to change to such a scheme later). Half as many writes are in flight then, where
	 * `messages` is above 512.
	 */
	uint8_t pair;
	uint8_t no_decode;     /* 1: take no writes with a code */
	uint64_t parity_bytes; /* address space for parity, each direction: what arrives or leaves
				* takes memory; default 256 MiB, at least 1 MiB. Writes that find
				* no room go without parity */
	/* What is known of the path from elsewhere, for auto; it learns from then on. 0: nothing
	 * is. A path known to lose nothing: a ratio below 1e-9. */
	double path_loss;	/* of packets, 0 .. 1 */
	double path_burst_pkts; /* with that: mean length of a run of lost packets; 0: 1 */
};

/*
 * Starts connecting; never blocks, name resolution of numeric addresses apart (host
 * names are looked up in a thread). An SDR_EV_CONNECTED or SDR_EV_FAILED event follows;
 * FAILED says: -ENXIO (no such host), -ECONNREFUSED, -ETIMEDOUT, another -errno of TCP,
 * -SDR_E_MALFORMED (something else answered), -SDR_E_VERSION, -SDR_E_FEATURE,
 * -SDR_E_NO_UDP (TCP works, UDP does not). All addresses of a host are tried in order.
 * `host` is a name or address, port 0: SDR_DEFAULT_PORT. -ENOTSUP on a simulated device.
 */
SDR_API int sdr_conn_connect(struct sdr_net *net, const char *host, uint16_t port,
			     const struct sdr_conn_attr *attr, struct sdr_conn **out);
/*
 * The attributes of connections that come in (also: starts accepting them). An
 * SDR_EV_ACCEPTED event brings each. -EDESTADDRREQ: the context does not listen.
 */
SDR_API int sdr_conn_listen(struct sdr_net *net, const struct sdr_conn_attr *attr);
/*
 * The same without TCP, for applications that carry the handshake themselves: make an
 * unconnected connection, exchange the blobs, hand the peer's in.
 */
SDR_API int sdr_conn_open(struct sdr_net *net, const struct sdr_conn_attr *attr,
			  struct sdr_conn **out);
SDR_API int sdr_conn_blob_get(const struct sdr_conn *conn, void *buf, size_t cap);
SDR_API int sdr_conn_blob_set(struct sdr_conn *conn, const void *blob, size_t len,
			      const struct sdr_connect_attr *attr);
/*
 * Ends the connection in order: no more posts; what was posted is finished first (writes
 * acknowledged), then CLOSE, its echo, and an SDR_EV_CLOSED event. Receives that are
 * still posted end with -SDR_E_CLOSED. Never blocks.
 */
SDR_API int sdr_conn_close(struct sdr_conn *conn);
/*
 * Frees it; unfinished operations end with -ECANCELED, the peer gets a RESET (not after
 * SDR_EV_CLOSED). Completions of it that are still queued say conn = NULL; operations
 * posted with SDR_OP_TEST may still be tested.
 */
SDR_API void sdr_conn_destroy(struct sdr_conn *conn);
/* The application's cookie of a connection: from its attributes, or as set since. */
SDR_API void *sdr_conn_cookie(const struct sdr_conn *conn);
SDR_API void sdr_conn_cookie_set(struct sdr_conn *conn, void *cookie);

/* ---- operations ------------------------------------------------------------- */

enum sdr_op_flags {
	SDR_OP_HAS_IMM = 1u << 0, /* write: carry `imm` */
	SDR_OP_TEST = 1u << 1,	  /* completion by sdr_op_test(), not by the queue */
};

struct sdr_op_wr {
	size_t size;
	void *addr;	 /* a write's is only read */
	uint64_t length; /* write: its length; receive: the largest it takes */
	uint32_t imm;
	uint32_t flags;	      /* enum sdr_op_flags */
	uint64_t deadline_ns; /* absolute, sdr_now_ns(); 0: none */
	struct sdr_mr *mr;    /* of another device's memory: goes without a code */
	void *cookie;
};

/*
 * Both: the buffer is the library's until the completion. -EAGAIN: too many in flight (those
 * count whose completion was not taken), take completions first; for a receive on RDMA devices also
 * too soon, see sdr_recv_post(). -ENOTCONN, -EINVAL, -ESHUTDOWN (closing, at either end), or why
 * the connection died. A write and a receive that match end together: one that is cancelled or
 * whose deadline passes ends the other with -SDR_E_ABORTED (receive) or -SDR_E_EARLY (write), and a
 * write longer than its receive ends with -SDR_E_TOO_LONG. *out is valid until the completion was
 * taken; out may be NULL.
 */
SDR_API int sdr_write_post(struct sdr_conn *conn, const struct sdr_op_wr *wr, struct sdr_op **out);
SDR_API int sdr_conn_recv_post(struct sdr_conn *conn, const struct sdr_op_wr *wr,
			       struct sdr_op **out);
/* Ends an operation early: its completion says -ECANCELED unless it was done already. */
SDR_API int sdr_op_cancel(struct sdr_op *op);

struct sdr_completion {
	size_t size;
	struct sdr_conn *conn;
	void *conn_cookie, *cookie;
	uint8_t is_recv;
	int status;	 /* 0, or -SDR_E_..., -ECANCELED */
	uint64_t length; /* bytes of the message */
	uint32_t imm;
	uint8_t has_imm; /* a receive's, other than 0: a write without one carries 0 */
	uint64_t posted_ns, done_ns;
};

/* 1 and the completion: the op is freed; 0: not yet; -EINVAL: not posted with SDR_OP_TEST. */
SDR_API int sdr_op_test(struct sdr_op *op, struct sdr_completion *out);
/* sdr_op_test() until it says 1; -SDR_E_DEADLINE (the op lives on) after deadline_ns.
 * -ENOTSUP on a simulated device: its owner moves the time. */
SDR_API int sdr_op_wait(struct sdr_op *op, uint64_t deadline_ns, struct sdr_completion *out);
/* Takes up to max completions; returns how many. out[0].size is the size of each. */
SDR_API int sdr_net_poll(struct sdr_net *net, struct sdr_completion *out, int max);

/* ---- events ----------------------------------------------------------------- */

enum sdr_event_type {
	SDR_EV_CONNECTED, /* sdr_conn_connect() succeeded: UDP answered */
	SDR_EV_ACCEPTED,  /* a peer connected */
	SDR_EV_FAILED,	/* connecting failed: status and text; the connection is to be destroyed */
	SDR_EV_STALLED, /* nothing heard for max(3 RTT, 100 ms) in spite of PINGs */
	SDR_EV_RECOVERED, /* ... and heard again */
	SDR_EV_DEAD,	  /* given up; all its operations have ended */
	SDR_EV_CLOSED,	  /* closed in order by either end */
};

struct sdr_event {
	size_t size;
	enum sdr_event_type type;
	struct sdr_conn *conn;
	void *conn_cookie;
	int status;
	char text[256]; /* for a person: names the thing, the value and what to do */
};
/* 1 and the oldest event, or 0. */
SDR_API int sdr_net_event(struct sdr_net *net, struct sdr_event *out);

/* ---- what a connection knows ------------------------------------------------ */

struct sdr_conn_info {
	size_t size;
	char scheme[112]; /* canonical, see sdr_scheme_name() */
	char peer[64];
	int state; /* enum sdr_qp_state of its QP; closing and dead count as SDR_QP_ERROR */
	int error;
	uint32_t channels, chunk_pkts, payload_bytes;
	uint64_t rtt_ns, rtt_min_ns, rtt_var_ns, rto_ns;
	uint64_t cwnd_bytes, pacing_bps, inflight_bytes, delivered_bps;
	uint8_t rate_found;	/* growing has ended, or the rate is fixed */
	uint64_t tx_data_bytes; /* payload of first transmissions */
	uint64_t tx_resent_bytes, tx_resent_pkts;
	uint64_t tx_pkts, tx_lost_pkts, tx_spurious_pkts, tx_probes;
	uint64_t tx_parity_bytes;
	uint64_t rx_data_bytes; /* payload of distinct packets */
	uint64_t rx_pkts, rx_duplicate_pkts, rx_late_pkts, rx_reordered_pkts;
	uint64_t host_drops, peer_host_drops;
	uint64_t acks_sent, acks_received;
	uint64_t writes_done, recvs_done;
	uint64_t heard_age_ns;
	uint8_t paired;	      /* what this end sends can have a code */
	uint8_t recvs_paired; /* what the peer sends can */
	uint64_t tx_parity_pkts, tx_repair_pkts, tx_copy_pkts;
	uint64_t tx_covered_pkts, tx_recovered_pkts, tx_uncovered_pkts;
	uint64_t tx_failed_blocks;
	uint64_t writes_coded;	  /* begun with a code */
	uint64_t writes_no_room;  /* without one, for want of parity memory at either end */
	uint64_t rx_decoded_pkts; /* packets that were made good here */
	uint64_t rx_decoded_blocks;
	uint64_t parity_bytes;		   /* in use now, sending and receiving */
	double path_loss, path_burst_pkts; /* as estimated from what was sent: rather high */
	/* The last write's: the scheme that it got, and in a sentence why (auto). */
	char write_scheme[112];
	char why[256];
	uint64_t decisions; /* times that auto chose anew what a write of some size gets */
	/* Sent up to the newest that each channel delivered, and what arrived of that by the peer's
	 * counts (repeats by the network too): what the path loses. tx_lost_pkts is another thing:
	 * what was taken for lost. That leaves out what a code made good before, and with a code
	 * has in it what came late after all. */
	uint64_t tx_passed_pkts, tx_arrived_pkts;
};
/* Fills in what a connection knows of itself and its path; counts only rise. Always 0. */
SDR_API int sdr_conn_query(const struct sdr_conn *conn, struct sdr_conn_info *info);
/* Changes the provisioned rate while running; 0: back to growing. */
SDR_API int sdr_conn_rate_set(struct sdr_conn *conn, uint64_t rate_bps);
/*
 * The connection's QP, to ask it for facts; posting on it breaks the connection. Calls on
 * it are not serialised with a net's thread: ask sdr_conn_query() there.
 */
SDR_API struct sdr_qp *sdr_conn_qp(struct sdr_conn *conn);

/* ---- schemes ---------------------------------------------------------------- */

enum sdr_scheme_code { SDR_CODE_NONE, SDR_CODE_XOR, SDR_CODE_RS };
enum sdr_scheme_policy {
	SDR_POLICY_NONE,  /* the scheme is what it says */
	SDR_POLICY_MODEL, /* auto: by the completion-time model */
	SDR_POLICY_TABLE, /* auto: by rules of thumb */
};
#define SDR_SPAN_ALL 0u
#define SDR_SPAN_RTT UINT32_MAX

/* A point in the engine's parameters. Zeros: selective repeat by timer. */
struct sdr_scheme {
	size_t size;
	uint8_t nack;	     /* holes in ACKs prove loss, the timer only backs that up */
	uint8_t go_back_n;   /* a loss sends all after it again; without a code */
	uint8_t fresh;	     /* failed blocks get fresh parity, else the packets that they lack */
	uint8_t hybrid;	     /* called so */
	double rto_multiple; /* the timer in round trips, 1 .. 100; 0: by variance and queue */
	enum sdr_scheme_code code;
	uint32_t k, m;	 /* data and parity packets of a block, k + m <= 255 */
	uint32_t depth;	 /* blocks that take turns, 1 .. 65536; 0: 1 */
	uint32_t span;	 /* coded packets at a write's end; SDR_SPAN_ALL, SDR_SPAN_RTT */
	uint32_t copies; /* of late resends, 1 .. 16; 0: 1 */
	enum sdr_scheme_policy policy;
};

/*
 * From text, as the manual page sdr(1) has it. 0; -EINVAL, and why (if not NULL) gets a sentence
 * that names what is wrong and what is allowed. out->size is the caller's.
 */
SDR_API int sdr_scheme_parse(const char *text, struct sdr_scheme *out, char *why, size_t len);
/* To text that parses to the same, into buf (112 bytes suffice); -EINVAL: out of range, -ENOSPC. */
SDR_API int sdr_scheme_name(const struct sdr_scheme *scheme, char *buf, size_t len);
/*
 * Of the writes that are granted from now on; those under way go on as they began. -EINVAL: out of
 * range; -ENOTSUP: a code, and the connection does not pair messages (sdr_conn_attr.pair, or a
 * peer that takes none).
 */
SDR_API int sdr_conn_scheme_set(struct sdr_conn *conn, const struct sdr_scheme *scheme);
/* The schemes that this build knows by their first words, NULL-terminated; static. */
SDR_API const char *const *sdr_scheme_names(void);

#ifdef __cplusplus
}
#endif
#endif

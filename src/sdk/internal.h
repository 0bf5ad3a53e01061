/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sdk/: the bitmap API of <sdr/sdr.h> on any fabric. This header holds what its files
 * share; which file does what:
 *
 *   ctx.c     contexts: progress, deadlines, counters
 *   check.c   what must hold, for tests
 *   device.c  devices by name
 *   qp.c      queue pairs: creation, connection info, connecting, state, queries
 *   send.c    one-shot and streaming sends
 *   recv.c    receives: posting, bitmaps, completing
 *   grant.c   CTS, echo, WANT, ABORT: who may send what, what has ended
 *   ctrl.c    control datagrams: queueing, packing, unpacking, replay filter
 *   ping.c    PING/PONG: path validation, round-trip time, liveness
 *   payload.c PAYLOAD: agreeing on another packet size
 *   train.c   packet trains: how fast a path is, measured at its other end
 *   simctx.c  <sdr/sim.h>
 *
 * It deliberately knows nothing of reliability: it never sends a data packet twice on
 * its own account. Time is read once a call and handed down as `now`.
 */
#ifndef SDR_SDK_INTERNAL_H
#define SDR_SDK_INTERNAL_H

#include "base/bits.h"
#include "base/check.h"
#include "base/heap.h"
#include "base/units.h"
#include "fabric/fabric.h"
#include "wire/wire.h"
#include <errno.h>
#include <sdr/sdr.h>
#include <stdbool.h>
#include <string.h>

#define SDK_EVENTS 32u			     /* fabric events taken at a time */
#define SDK_CTRL_QUEUE_BYTES 16384u	     /* queued control messages of a QP */
#define SDK_CTRL_IN_MAX 64u		     /* control messages waiting for sdr_ctrl_recv() */
#define SDK_RTT_INITIAL_NS (100 * NS_PER_MS) /* before the first sample */
#define SDK_BACKOFF_MAX_NS NS_PER_S
#define SDK_IDLE_PING_NS (15 * NS_PER_S) /* keeps NAT bindings open (RFC 8085) */
#define SDK_BUSY_PING_NS NS_PER_S
#define SDK_CTS_HOLD_NS (100 * NS_PER_US) /* between CTS to a peer that has our answer */
#define SDK_REPLAY_WINDOW 1024u
#define SDK_POOL_CLASSES 29u /* bitmap memory by power of two of words: 3 * 2^26 at most */
#define SDK_SPARE_QUEUES 64u
#define SDK_PUMP_RUNS 64u      /* trains of one-shots at a time; then others get their turn */
#define SDK_RETRY_NS NS_PER_MS /* where a device was full, should its "writable" be missed */
#define SDK_PAYLOAD_MIN 64u
#define SDK_HELD_NS (100 * NS_PER_US) /* is the device done with a finished send's memory? */
#define SDK_LATE_MIN_NS (100 * NS_PER_MS)
#define SDK_LATE_EMPTY_NS (10 * NS_PER_MS) /* where keys die: of packets without bytes */
#define SDK_UNPROVEN_BYTES 64u	 /* of a message from above, to an address that proved nothing */
#define SDK_TRAIN_BODY_LEAST 64u /* more than TRAIN_SEEN takes */
#define SDK_QUESTIONS 1u	 /* PINGs for each datagram from an address that proved nothing, */
#define SDK_QUESTIONS_MAX 16u	 /* ... saved up */
#define SDK_PINGS 5u		 /* that wait for their PONG at a time, on a channel */
#define SDK_PING_KEEP_NS (8 * NS_PER_S) /* see ping_slot() */

/* A repeated question: asked again with backoff up to 1 s until it is answered. */
struct sdk_repeat {
	uint64_t at_ns; /* UINT64_MAX: not running */
	uint64_t wait_ns;
};

static inline void repeat_stop(struct sdk_repeat *r)
{
	r->at_ns = UINT64_MAX;
	r->wait_ns = 0;
}

static inline bool repeat_running(const struct sdk_repeat *r)
{
	return r->at_ns != UINT64_MAX;
}

/* Free bitmap memory by size class, so that steady state allocates nothing. */
struct sdk_pool {
	void *free[SDK_POOL_CLASSES];
};

/* A QP's place in one of its context's lists. */
struct qp_link {
	struct sdr_qp *next, *prev;
	bool in;
};

struct qp_list {
	struct sdr_qp *head, *tail;
};

enum qp_list_id {
	SDK_DIRTY,   /* something to do at the next progress */
	SDK_BLOCKED, /* the device was full: looked at when it is writable */
	SDK_ACTIVE,  /* something happened that sdr_next_active() has not told yet */
	SDK_LISTS
};

struct sdr_ctx {
	struct fabric *fabric;
	struct fabric_caps caps;
	const struct sdr_alloc *alloc;
	struct sdr_sim *sim; /* NULL on real devices */
	struct sockaddr_storage local_addr;
	bool listen;
	struct heap timers; /* QPs by next deadline */
	struct qp_list list[SDK_LISTS];
	struct sdr_qp *qps; /* all */
	struct sdk_pool pool;
	void *queues; /* spare control queues, linked through their first bytes */
	uint32_t nqueues;
	struct fabric_event *events;
	struct rx_worker *rx_workers; /* all tables of the context share them */
	uint32_t rx_nworkers;
	uint32_t rx_flags;
	uint64_t counter[SDR_CTR_COUNT]; /* the SDK's own */
	uint64_t incarnation;
	uint64_t owner_ns; /* sdr_ctx_deadline_set() */
	/* Simulated. */
	struct sdr_ctx *sim_next, *sim_prev; /* the world's list of contexts */
	struct heap_node sim_timer;	     /* in the world's heap: when it is due */
	uint64_t sim_number;
	/* Since its last progress: sdr_sim_due() named it; sdr_sim_step() stopped for its deadline.
	 */
	bool sim_told, sim_stopped;
};

struct sdr_mr {
	struct sdr_ctx *ctx;
	void *fabric_mr;
	bool host;
};

/* ---- sends ---- */

enum send_flag {
	SEND_GRANTED = 1u << 0, /* its receive's entry is known */
	SEND_DONE = 1u << 1,	/* the receiver finished it */
	SEND_EARLY = 1u << 2,
	SEND_ABORT = 1u << 3,  /* cancelled: ABORT repeats until SEND_DONE */
	SEND_DEVICE = 1u << 4, /* the device reads its memory: see tx_busy() */
	SEND_HELD = 1u << 5,   /* finished by the receiver, but the device still reads */
};

/* One number of the send window: index is message mod `messages`. */
struct send_slot {
	struct sdr_send *send; /* NULL once released and out of the line */
	uint64_t recv_length;
	struct fabric_key key; /* rocev2: with the grant */
	uint32_t flags;
};

struct sdr_send {
	struct sdr_qp *qp;
	struct sdr_send *next; /* one-shots in line, or the free list */
	const uint8_t *addr;
	const struct sdr_mr *mr;
	void *cookie;
	uint64_t length;
	uint64_t recv_length;
	uint32_t message;
	uint32_t imm;
	uint32_t imm_pkts; /* one-shot: so many packets go in all, for the immediate; or 0 */
	uint32_t payload;  /* fixed at the first packet or query; 0 before */
	uint32_t planned;  /* what it will be, though newer messages take another; or 0 */
	uint32_t pkts;	   /* 0 before the grant */
	uint32_t next_pkt; /* one-shot: first packet that has not left */
	uint32_t flags;	   /* copy of the slot's, kept when the slot moves on */
	bool oneshot;
	bool sparse; /* any packets of it, never an end */
	bool in_line;
	bool ended; /* no more continues, or all of a one-shot has left */
	bool released;
	int error;
};

/*
 * Invariants (serial order): (1) base <= next <= base + messages and base <= granted <=
 * base + messages; grants may be ahead of sends; (2) every number in [base, granted) has
 * SEND_GRANTED or SEND_DONE; (3) base's slot is not SEND_DONE unless base == next; (4) a
 * number in [base, next) without SEND_DONE whose handle is not released or is in the line
 * has it in its slot; a handle with SEND_DONE is found through no slot once base passed it.
 */
struct sdk_tx {
	struct send_slot *slot; /* `messages` of them; allocated at the first send or grant */
	uint32_t base;		/* lowest number that the receiver has not finished */
	uint32_t granted;	/* exclusive, contiguous */
	uint32_t next;
	struct sdr_send *line, *line_tail; /* one-shots with packets to send */
	struct sdr_send *free;
	void *blocks; /* handle memory */
	struct sdk_repeat want;
	struct sdk_repeat abort;
	struct sdk_repeat ask; /* what has ended? while granted messages are out */
	uint32_t aborts;       /* numbers with SEND_ABORT and not SEND_DONE */
	uint32_t held;	       /* numbers with SEND_HELD */
	uint32_t abort_turn;   /* where the next batch of ABORT goes on */
	bool echo_due;
	bool posted;  /* packets have left since the last ask */
	bool blocked; /* the device took no packet of the line */
	bool more;    /* the line had its share of this turn and goes on in the next */
	uint32_t channel_turn;
	double tokens_bytes; /* pacer of one-shots */
	uint64_t tokens_ns;
	uint32_t payload;      /* of messages that start from now on */
	uint32_t payload_from; /* while payload_ask runs: these wait for the echo */
	uint32_t payload_wish; /* the next change, once this one is settled; or payload */
	uint64_t payload_seen; /* no datagram up to this number can hold the echo */
	struct sdk_repeat payload_ask;
};

/* ---- receives ---- */

enum recv_state { RECV_FREE, RECV_POSTED, RECV_DONE, RECV_DONE_EARLY };

struct sdr_recv {
	struct sdr_qp *qp;
	uint8_t *addr;
	const struct sdr_mr *mr;
	void *cookie;
	uint64_t length;
	uint64_t *words; /* bitmaps; NULL where the slot's own suffice */
	size_t nwords;
	struct fabric_key key; /* rocev2: for the sender */
	uint32_t message;
	uint32_t payload;
	int error;
	enum recv_state state;
};

/*
 * Invariants: (1) base <= next and next - base <= messages; (2) numbers in [base, next)
 * are POSTED, DONE or DONE_EARLY, and base is POSTED unless base == next; (3) echoed is
 * in [.., next].
 */
struct sdk_rx {
	struct sdr_recv *recv; /* `messages` of them, by number */
	struct rx_table *table;
	void *table_mem;
	uint64_t *ready;      /* slots to return from sdr_recv_next_ready(); bit a slot */
	uint32_t ready_words; /* bit w: something may be in ready[w] */
	uint32_t base;
	uint32_t next;
	uint32_t echoed;       /* the sender has all grants below this */
	uint32_t cts_upto;     /* grants below this are on their way since the last repeat */
	uint32_t touched;      /* numbers below this: a packet of them or a later one came */
	uint64_t recent_early; /* bit i: message base - 1 - i ended early */
	uint64_t *ended_ns;    /* where late packets pass: see late_since() */
	uint32_t sender_base;  /* the sender knows that all below have ended; with ended_ns */
	uint64_t hold_ns;      /* until then no receive is posted, and somebody wants to; or 0 */
	bool cts_due;
	bool ready_hint; /* the fabric said that bits were set */
	uint64_t cts_sent_ns, cts_at_ns;
	uint64_t cts_since_ns; /* when it became due */
	bool ended_news;       /* something has ended since the last CTS; */
	uint32_t agains;       /* ... which is said again so often, */
	uint64_t again_ns;     /* ... next then; UINT64_MAX: no more */
	struct sdk_repeat cts;
	uint64_t late_ns;	 /* last answer to a late packet */
	uint32_t payload;	 /* of receives that are posted from now on */
	uint32_t payload_from;	 /* as the newest PAYLOAD said it, for its echo */
	uint64_t payload_number; /* of that PAYLOAD's datagram: older ones are stale */
	bool payload_echo_due;
};

/* ---- channels, pings ---- */

struct sdk_trains;

struct sdk_channel {
	struct {
		uint64_t nonce;
		uint64_t sent_ns; /* 0: answered, or none yet */
	} ping[SDK_PINGS];	  /* a PONG may take longer than the next PING: see ping_slot() */
	uint32_t ping_turn;
	uint64_t first_ns; /* oldest PING since the last PONG; 0: none unanswered */
	bool ping_owed;	   /* there was no question left for it: see ping_heard() */
	uint64_t rtt_ns, rtt_min_ns;
	uint64_t pings, pongs;
	uint64_t ping_at_ns; /* next PING; UINT64_MAX: none */
	uint64_t ping_wait_ns;
	uint64_t probe_nonce; /* PING on a candidate path */
	uint32_t probe_path;
	uint64_t probe_ns;
	bool answered;
	struct sdk_trains *trains; /* NULL: never sent nor seen any */
	/* rocev2: the newest packet as the device tells it, and its message when that was news. */
	uint32_t newest_low, newest_packet, newest_message;
	uint64_t newest_ns;
	bool newest_known;
};

struct ctrl_in {
	struct ctrl_in *next;
	uint64_t at_ns; /* when it arrived */
	struct sdr_ctrl msg;
};

/* What a QP has only from sdr_qp_connect() on, so that an idle one stays small. */
struct sdk_live {
	struct sdk_tx tx;
	struct sdk_rx rx;
	uint64_t ctrl_next;    /* number of the next datagram sent */
	uint64_t ctrl_highest; /* of those received */
	uint64_t ctrl_seen[SDK_REPLAY_WINDOW / 64];
	uint32_t ctrl_channel; /* the one that last delivered */
	uint32_t queue_len;
	uint8_t *queue; /* queued messages: see ctrl.c */
	struct ctrl_in *in, *in_tail;
	uint32_t in_count;
	uint64_t heard_ns;  /* 0: never */
	uint64_t posted_ns; /* last packet handed to the fabric */
	uint64_t used_ns;   /* last post or data: is the QP busy? */
	uint64_t rtt_ns, rtt_min_ns, rtt_var_ns;
	uint64_t path_changes;
	uint32_t questions; /* PINGs that an address that proved nothing may have yet */
	bool refused;
	bool proven; /* what we send arrives: an address that did not prove it gets no data */
	bool trains; /* the peer takes them */
	struct sdk_channel channel[]; /* as many as were agreed */
};

struct sdr_qp {
	struct sdr_ctx *ctx;
	struct sdr_qp *next, *prev; /* of the context's list */
	struct qp_link link[SDK_LISTS];
	struct heap_node timer;
	struct fabric_qp *fqp;
	uint64_t token, peer_token; /* of control datagrams: to here, and to the peer */
	bool peer_v6;
	struct sdr_qp_attr attr;
	struct sdk_live *live; /* NULL before connect */
	enum sdr_qp_state state;
	int error;
	uint32_t channels;
	uint32_t payload_max; /* that both ends can take */
	uint32_t generations; /* agreed; 1 but in rocev2 */
	uint32_t max_pkts;    /* of a message */
	uint32_t imm_pkts;    /* that carry the user's immediate */
	uint16_t peer_offers; /* user_offers of the other end */
	bool serving;	      /* in qp_service(), which leaves nothing undone */
	bool active;
};

/* ctx.c */
void sdk_list_add(struct sdr_qp *qp, enum qp_list_id which);
void sdk_list_remove(struct sdr_qp *qp, enum qp_list_id which);
void sdk_qp_dirty(struct sdr_qp *qp);
uint64_t sdk_now(const struct sdr_ctx *ctx);
uint64_t *sdk_words_get(struct sdr_ctx *ctx, size_t nwords);
void sdk_words_put(struct sdr_ctx *ctx, uint64_t *words, size_t nwords);
/* Memory comes from `alloc` alone, so that a test can fail the n-th allocation. */
int sdk_ctx_open(struct fabric *f, const struct sdr_ctx_attr *attr, const struct sdr_alloc *alloc,
		 struct sdr_ctx **out);
static inline void sdk_count(struct sdr_ctx *ctx, enum sdr_counter which)
{
	ctx->counter[which]++;
}

static inline bool sdk_is_rocev2(const struct sdr_ctx *ctx)
{
	return ctx->caps.mode == WIRE_ROCEV2;
}

/* The body of one message in an otherwise empty datagram. */
static inline uint32_t sdk_ctrl_max(const struct sdr_ctx *ctx)
{
	return ctx->caps.max_ctrl_bytes - WIRE_CTRL_BODY_HDR_BYTES - WIRE_MSG_HDR_BYTES;
}

/* qp.c */
void sdk_qp_fail(struct sdr_qp *qp, int error);
void sdk_qp_connected(struct sdr_qp *qp, uint64_t now);
/* The round trip to plan with: measured, or the initial guess. */
uint64_t sdk_rtt(const struct sdr_qp *qp);
/* How long to wait for an answer before asking again. */
uint64_t sdk_patience(const struct sdr_qp *qp);
void sdk_repeat_start(struct sdk_repeat *r, const struct sdr_qp *qp, uint64_t now);
void sdk_repeat_again(struct sdk_repeat *r, uint64_t now);
/* Message numbers of both directions begin here: right after connecting, on both ends. */
void sdk_qp_numbers_from(struct sdr_qp *qp, uint32_t number);

/* RDMA devices send packets of a path MTU, which is a power of two; 0: too small for them. */
uint32_t sdk_payload_floor(const struct sdr_ctx *ctx, uint32_t payload);

/* send.c */
int sdk_tx_ready(struct sdr_qp *qp);
void sdk_tx_pump(struct sdr_qp *qp, uint64_t now);
/* The device still reads memory of the message. */
bool sdk_tx_busy(const struct sdr_qp *qp, uint32_t message);
uint64_t sdk_tx_deadline(const struct sdr_qp *qp, uint64_t now);
void sdk_tx_fini(struct sdr_qp *qp);
static inline struct send_slot *tx_slot(const struct sdr_qp *qp, uint32_t message)
{
	return &qp->live->tx.slot[message & (qp->attr.messages - 1)];
}

/* recv.c */
int sdk_rx_ready(struct sdr_qp *qp);
int sdk_rx_bind(struct sdr_qp *qp, struct sdr_recv *recv);
/* To another payload, if nothing has arrived; else the receive gets an error. */
void sdk_rx_rebind(struct sdr_qp *qp, struct sdr_recv *recv, uint32_t payload);
/* The sender has told that all messages below `base` have ended for it too. */
void sdk_rx_sender_past(struct sdr_qp *qp, uint32_t base);
void sdk_rx_ready_mark(struct sdr_qp *qp, uint32_t message);
void sdk_rx_fini(struct sdr_qp *qp);
static inline struct sdr_recv *rx_recv(const struct sdr_qp *qp, uint32_t message)
{
	return &qp->live->rx.recv[message & (qp->attr.messages - 1)];
}

/* grant.c */
void grant_cts_due(struct sdr_qp *qp);
/* Has the sender's echo come again, for what it proves: see sdk_rx_sender_past(). */
void grant_echo_ask(struct sdr_qp *qp);
void grant_on_late(struct sdr_qp *qp, uint64_t now);
void grant_on_cts(struct sdr_qp *qp, const uint8_t *body, size_t len, uint64_t now);
void grant_on_echo(struct sdr_qp *qp, uint32_t upto);
void grant_on_want(struct sdr_qp *qp, uint32_t message);
void grant_on_abort(struct sdr_qp *qp, uint32_t message);
void grant_service(struct sdr_qp *qp, uint64_t now);
/* What has ended, said before the QP is destroyed. */
void grant_last_words(struct sdr_qp *qp, uint64_t now);
uint64_t grant_deadline(const struct sdr_qp *qp);

/* ctrl.c */
int ctrl_queue(struct sdr_qp *qp, uint8_t type, const void *body, size_t len, uint32_t channel,
	       uint32_t path);
void ctrl_flush(struct sdr_qp *qp, uint64_t now);
void ctrl_on_datagram(struct sdr_qp *qp, const struct fabric_event *ev, uint64_t now);
void ctrl_fini(struct sdr_qp *qp);

/* ping.c */
void ping_start(struct sdr_qp *qp, uint64_t now);
void ping_service(struct sdr_qp *qp, uint64_t now);
uint64_t ping_deadline(const struct sdr_qp *qp);
void ping_on_ping(struct sdr_qp *qp, const struct wire_ping *ping, const struct fabric_event *ev,
		  uint64_t now);
void ping_heard(struct sdr_qp *qp, uint32_t channel, uint64_t now);
void ping_path(struct sdr_qp *qp, const struct fabric_event *ev, uint64_t now);
void ping_on_pong(struct sdr_qp *qp, const struct wire_pong *pong, const struct fabric_event *ev,
		  uint64_t now);
/* The application uses the QP: from idle to busy. */
void ping_used(struct sdr_qp *qp, uint64_t now);
void ping_ask(struct sdr_qp *qp, uint64_t now);
uint64_t ping_unanswered_ns(const struct sdr_qp *qp, uint64_t now);

/* payload.c */
void payload_change(struct sdr_qp *qp, uint32_t payload, uint64_t now);
/* False while the peer has not echoed the payload that the message needs. */
bool payload_settled(const struct sdr_qp *qp, uint32_t message);
/* `number` is the datagram's: it says which of two messages is the newer. */
void payload_on_payload(struct sdr_qp *qp, const struct wire_payload *msg, uint64_t number);
void payload_on_echo(struct sdr_qp *qp, const struct wire_payload *msg, uint64_t number,
		     uint64_t now);
void payload_service(struct sdr_qp *qp, uint64_t now);

/* train.c */
void train_on_train(struct sdr_qp *qp, const struct wire_train *msg, const struct fabric_event *ev,
		    uint64_t now);
void train_on_seen(struct sdr_qp *qp, const struct wire_train_seen *msg, uint32_t channel);
void train_service(struct sdr_qp *qp, uint64_t now);
uint64_t train_deadline(const struct sdr_qp *qp);
void train_fini(struct sdr_qp *qp);

/* check.c: asserts the invariants (debug builds); between two calls, without workers. */
void sdk_ctx_check(const struct sdr_ctx *ctx);

/* simctx.c */
void sdk_sim_ctx_gone(struct sdr_ctx *ctx);
/* Its next deadline may be another one; `progressed`: by sdr_progress(). */
void sdk_sim_ctx_touched(struct sdr_ctx *ctx, bool progressed);

#endif

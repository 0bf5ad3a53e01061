/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn/: reliable connections, <sdr/conn.h>. Joins rel/ (what to send, what arrived) and
 * cc/ (how much, how fast) to the SDK through <sdr/sdr.h> alone. This header holds what
 * its files share; which file does what:
 *
 *   net.c        nets: progress, waiting, the thread, timers
 *   queue.c      the completion queue and the event queue
 *   conn.c       connections: life cycle and the one function that changes state
 *   op.c         operations: posting, testing, cancelling, deadlines
 *   hint.c       packet trains, and the rate that they hint at
 *   scheme_api.c schemes as text and as struct
 *   send.c       writes: grants, what rel/ says to send, window and pacing, endings
 *   recv.c       receives: bits to rel/, completion
 *   ack.c        ACKs out and in, samples to cc/
 *   pair.c       the second message of a write, for parity: posting, room, ending
 *   parity.c     codes, sending: the scheme that a write gets, parity as it is asked for
 *   decode.c     codes, receiving: WRITE with a code, parity to rel/, lost packets made good
 *   announce.c   WRITE: length, code and immediate of a write
 *   alive.c      stalled, recovered, dead
 *   close.c      CLOSE and its echo
 *   handshake.c  TCP: frames; hs_client.c and hs_server.c its two ends
 *   resolve.c    host names, in a thread of their own
 *   info.c       what a connection knows
 *   check.c      what must hold, for tests
 *
 * It deliberately knows nothing of packets' bytes, sockets of the data path and workers.
 * Write w is message w of the SDK's QP and receive r is its receive r; in a paired direction
 * they are messages 2w (data) and 2w + 1 (parity). rel/ and ACKs know messages, WRITE and the
 * tables here writes. Grants, ends of messages, aborts and the done state are the SDK's.
 *
 * The order within a progress (net.c): sockets are read dry, then for each connection
 * control messages, receives, ACKs, endings and grants of writes, timers, new packets.
 */
#ifndef SDR_CONN_INTERNAL_H
#define SDR_CONN_INTERNAL_H

#include "base/bits.h"
#include "base/check.h"
#include "base/heap.h"
#include "base/units.h"
#include "cc/cc.h"
#include "conn/arena.h"
#include "conn/auto.h"
#include "conn/codec.h"
#include "rel/rel.h"
#include "wire/msg.h"
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sdr/conn.h>
#include <stdbool.h>
#include <string.h>

#define CONN_MESSAGES_DEFAULT 512u
#define CONN_TIMEOUT_DEFAULT_NS (10 * NS_PER_S)
#define CONN_DEAD_DEFAULT_NS (30 * NS_PER_S)
#define CONN_COMPLETIONS_DEFAULT 65536u
#define CONN_STALL_MIN_NS (100 * NS_PER_MS)
#define CONN_TRAINS_MAX 32u    /* sent by one service; then received packets get a turn */
#define CONN_RECVS_MAX 512u    /* ready receives looked at by one service */
#define CONN_REAP_MAX 32u      /* writes behind the head whose end is looked for */
#define CONN_HALF_OPEN_MAX 64u /* accepted TCP connections that said nothing yet */
#define CONN_PENDING_MAX 256u  /* accepted ones that wait for UDP */
#define CONN_HELLO_TIMEOUT_NS (5 * NS_PER_S)
#define CONN_HELLO_GRACE_NS (200 * NS_PER_MS) /* nobody is pushed out before */
#define CONN_ACCEPT_PAUSE_NS (100 * NS_PER_MS)
#define CONN_PARITY_BYTES_DEFAULT (UINT64_C(256) << 20)
#define CONN_PARITY_BYTES_LEAST (UINT64_C(1) << 20)
#define CONN_HALF_NS NS_PER_MS	       /* the second message of a pair was refused: post it again */
#define CONN_AGAIN_NS (50 * NS_PER_US) /* the device was full: look again */
#define CONN_QUANTUM_NS (200 * NS_PER_US)   /* of the rate: a train's length */
#define CONN_ACK_HOLD_NS (100 * NS_PER_US)  /* between ACKs to a peer that has our answer */
#define CONN_BURST_NS (500 * NS_PER_US)	    /* of the rate: what a pacer saves up at least ... */
#define CONN_BURST_MOST_NS (10 * NS_PER_MS) /* ... and at most, on a long path */
#define CONN_PKT_MIN_BYTES 64u		    /* a packet costs no less */
#define CONN_ADDRS_MAX 16u
#define CONN_TARGET_LEN 96u
#define CONN_IMM_SAID UINT32_MAX /* in packets: WRITE says the immediate */

/* user_offers of the QP: what this end does with codes. */
#define CONN_OFFER_CAN 1u  /* decodes */
#define CONN_OFFER_WANT 2u /* may send writes with a code */

/* Types of control messages that are ours (PROTOCOL: Control). */
#define CONN_CTRL_WRITE 9u
#define CONN_CTRL_ACK 10u
#define CONN_CTRL_CLOSE 12u
#define CONN_CTRL_CLOSE_ECHO 13u

/* ---- operations ---- */

enum op_state {
	OP_FREE,
	OP_POSTED, /* write: not granted; receive: posted */
	OP_OPEN,   /* write: rel/ sends it */
	OP_DONE,   /* ended; waits for sdr_op_test() or sdr_net_poll() */
};

struct sdr_op {
	struct op_pool *pool;
	struct sdr_conn *conn; /* NULL once the connection is gone */
	struct sdr_op *next;   /* free list */
	struct heap_node timer;
	struct sdr_send *send;
	struct sdr_recv *recv;
	uint64_t length;
	uint32_t number;
	uint32_t message; /* the SDK's number of its data; parity has the next one */
	uint32_t payload; /* write: once open */
	uint32_t pkts;
	uint32_t flags; /* enum sdr_op_flags */
	enum op_state state;
	bool is_recv;
	uint64_t scan_ns; /* receive: next look at all of its bits */
	bool announce;	  /* write: WRITE is sent, next at say_ns */
	uint8_t says;	  /* ... so often so far, as far as that matters */
	uint64_t say_ns, say_gap_ns;
	bool whole; /* receive: only WRITE is missing */
	bool said;  /* receive: WRITE came, and said this: */
	uint32_t said_imm;
	uint64_t said_length;
	/* Paired; NULL while the second post is owed. */
	struct sdr_send *parity_send;
	struct sdr_recv *parity_recv;
	uint8_t *addr;
	bool foreign;	 /* another device's memory: nothing of it is coded or decoded here */
	uint8_t *parity; /* a piece of the arena; NULL: none */
	uint64_t parity_bytes;
	struct codec_write code;	   /* NONE: uncoded, as far as is known */
	uint32_t encoded;		   /* write: blocks below have the rows of the scheme */
	uint32_t fresh_first, fresh_count; /* write: further parity packets that were made last */
	struct sdr_completion done;	   /* cookie and posted_ns from the start */
};

/* Outlives its connection while ended operations wait to be taken. */
struct op_pool {
	struct op_pool *next; /* the net's list of orphans */
	struct sdr_net *net;
	struct sdr_op *free_tx, *free_rx;
	uint32_t n;
	uint32_t used;
	bool orphan;
	struct sdr_op op[];
};

/* ---- events ---- */

enum event_slot { EVENT_OPENED, EVENT_PATH, EVENT_ENDED, EVENT_SLOTS };

/* Each connection has one of a kind, so that telling never allocates and never fails. */
struct event_node {
	struct event_node *next;
	bool queued;
	struct sdr_event event;
};

/* ---- connections ---- */

/* See the table in conn.c. */
enum conn_state {
	CONN_NEW,
	CONN_CONNECTING,
	CONN_UP,
	CONN_DRAIN,
	CONN_CLOSING,
	CONN_CLOSED,
	CONN_FAILED,
	CONN_DEAD,
	CONN_STATES
};

/* One path: its congestion control, pacer and how it fares. */
struct conn_channel {
	struct cc cc;
	double tokens_bytes;
	uint64_t tokens_ns;
	double pkt_bytes; /* running mean of what a packet costs */
	bool up;
	bool dry;			 /* nothing was there to send since the pacer was asked */
	uint32_t trains_seen;		 /* answers that were looked at */
	bool rtt_given;			 /* rel/ knows the round trip of its PING */
	bool suspect;			 /* sent to for RTOs without an answer, others had some */
	uint64_t waiting_since_ns;	 /* oldest send after which nothing was heard; 0: none */
	uint64_t retry_ns, retry_gap_ns; /* suspect: when it gets a train again */
};

struct conn_stats {
	uint64_t tx_data_bytes, tx_resent_bytes;
	uint64_t rx_done_bytes;
	uint64_t acks_sent;
	uint64_t writes_done, recvs_done;
	uint64_t tx_parity_bytes;
	uint64_t writes_coded, writes_no_room;
	uint64_t bad_writes; /* WRITEs that cannot be */
	uint64_t rx_decoded_pkts, rx_decoded_blocks;
};

/*
 * Invariants: (1) tx_base <= tx_open <= tx_next in serial order, receives alike; (2) the
 * op of number n, if it has not ended, is at op[n mod messages]; (3) tx_used counts the
 * writes that have not ended, rx_used the receives; (4) rel is there from UP on; (5) in a paired
 * direction all numbers below tx_next have both their messages posted, but that the last one may
 * lack its second (tx_half), and then nothing is posted before that is; receives alike.
 */
struct sdr_conn {
	struct sdr_net *net;
	struct sdr_conn *next, *prev;
	struct heap_node timer;
	enum conn_state state;
	bool incoming; /* accepted: unknown to the application until it is up */
	bool by_app;   /* opened with sdr_conn_open() */
	bool peer_closed;
	bool peer_closed_done; /* our receives have ended for it */
	bool rel_ready;
	bool service_again; /* has more to do than one service may */
	bool look_all;	    /* at all receives, whatever the SDK says */
	int error;
	void *cookie;
	struct sdr_qp *qp;
	struct sdr_qp_info qi; /* as of this service */
	struct sdr_conn_attr attr;
	char scheme[REL_SCHEME_NAME];
	struct rel_params params;
	struct hs *hs;		      /* the handshake's TCP connection, NULL: none or gone */
	char target[CONN_TARGET_LEN]; /* host:port as the application named it, or the peer's */
	uint64_t connect_deadline_ns;
	bool trains_wanted, trains_begun, trains_done; /* hint.c */
	uint32_t trains_left;
	uint64_t train_at_ns, train_rtt_ns;
	uint64_t next_ns; /* when a service was asked for */

	struct op_pool *pool;
	struct heap deadlines; /* of operations */
	struct sdr_op **tx_op, **rx_op;
	uint32_t mask;
	uint32_t tx_base, tx_open, tx_next, tx_used;
	uint32_t rx_base, rx_open, rx_next, rx_used;
	uint32_t reap_at;

	bool tx_paired, rx_paired; /* from UP on */
	uint16_t offers;	   /* what the peer is told of us, whatever scheme is set later */
	bool tx_half, rx_half;
	uint64_t half_at_ns; /* when it is tried again */

	/* Codes. */
	struct arena tx_arena, rx_arena;
	struct codec codec;
	struct auto_state choice;
	struct rel_params last_scheme; /* that a write got */
	uint64_t look_ns;	       /* next look at the path */
	bool choose;		       /* writes get their scheme one by one */
	bool no_bytes;		       /* a simulated device without payload */
	bool scheme_due;	       /* params are new, and not in use yet */
	bool look_parity;	       /* some receive has a code */

	struct rel_tx tx;
	struct rel_rx rx;
	struct conn_channel ch[SDR_MAX_CHANNELS];
	struct rel_channel_fact fact[SDR_MAX_CHANNELS];
	uint64_t arrived; /* data packets, duplicates and late ones too */
	uint64_t own_host_drops;
	uint32_t channels;
	uint32_t turn;
	uint32_t ack_turn;
	uint64_t announce_at_ns; /* when to look for writes to announce; UINT64_MAX: not */
	uint64_t pace_ns;	 /* when the pacer or the device wants to be asked again */
	uint64_t last_ack_ns;
	uint64_t arrived_ns, sent_ns, acked_ns; /* newest packet in, train out, ACK out */
	struct rel_ack_result result;

	bool stalled;
	uint64_t alive_floor_ns; /* silence counts from here: a pause of ours is no silence */
	uint64_t suspect_ns;	 /* TCP ended or ICMP refused: confirm by silence; 0: no */
	const char *suspect_text;
	bool suspect_asked; /* again, when what was under way has arrived */
	uint64_t ask_ns;    /* last PING asked for */

	uint64_t close_ns;		    /* peer_closed or CLOSING began */
	uint64_t close_at_ns, close_gap_ns; /* next CLOSE; once closed: the last one */
	bool close_unheard;		    /* closed without an answer */
	uint64_t drain_ns, drain_done; /* since when draining ended no write, and how many then */

	struct conn_stats stats;
	struct event_node event[EVENT_SLOTS];
};

/* ---- nets ---- */

struct sdr_net {
	struct sdr_ctx *ctx;
	bool own_ctx;
	bool simulated;
	bool threaded;
	uint16_t port;
	char bind_addr[64];
	struct sdr_conn *conns;
	struct heap timers; /* connections by next_ns */
	struct op_pool *orphans;

	struct sdr_op **cq;
	uint32_t cq_cap, cq_head, cq_len, cq_reserved;
	struct event_node *ev_head, *ev_tail;

	int epfd, wakefd, listen_fd;
	struct hs *half_open, *half_open_tail; /* handshakes under way, oldest first */
	struct hs *dead_hs;
	uint32_t nhalf_open;
	uint32_t npending;
	uint64_t tcp_look_ns;
	bool listening;
	uint64_t accept_ns; /* out of descriptors: when to listen again; UINT64_MAX: no */
	struct sdr_conn_attr listen_attr;
	char listen_scheme[REL_SCHEME_NAME];

	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	_Atomic uint32_t waiters; /* threads that want the lock: the thread lets them */
	bool stop;
	bool sleeping; /* under lock: the thread waits until sleep_until_ns */
	uint64_t sleep_until_ns;
};

/* net.c */
void net_lock(struct sdr_net *net);
void net_unlock(struct sdr_net *net); /* wakes the thread if it has become due */
void net_deadline_tell(struct sdr_net *net);
uint64_t net_next_ns(const struct sdr_net *net);
int net_progress(struct sdr_net *net);
/* Progress, then asleep until something is due, then progress; no thread, not simulated. */
int net_sleep(struct sdr_net *net, uint64_t deadline_ns);
/* Under lock, with a thread: until it signals, at most a second. */
void net_cond_wait(struct sdr_net *net, uint64_t deadline_ns);

/* queue.c */
int queue_init(struct sdr_net *net, uint32_t cap);
bool queue_reserve(struct sdr_net *net);
void queue_put(struct sdr_net *net, struct sdr_op *op);
/* For operations that are told by sdr_op_test(): the place is free again. */
void queue_unreserve(struct sdr_net *net);
void queue_conn_gone(struct sdr_net *net, const struct sdr_conn *conn);
void event_put(struct sdr_conn *conn, enum event_slot slot, enum sdr_event_type type, int status,
	       const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* check.c: asserts the invariants (debug builds); between two calls. */
void conn_net_check(const struct sdr_net *net);

/* conn.c */
int conn_create(struct sdr_net *net, const struct sdr_conn_attr *attr, bool incoming,
		struct sdr_conn **out);
void conn_destroy(struct sdr_conn *conn);
void conn_state_set(struct sdr_conn *conn, enum conn_state to);
int conn_connect_qp(struct sdr_conn *conn, const void *blob, size_t len,
		    const struct sdr_connect_attr *attr);
void conn_fail(struct sdr_conn *conn, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void conn_die(struct sdr_conn *conn, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void conn_service(struct sdr_conn *conn, uint64_t now);
/* Puts the connection's next deadline into the net's heap. */
void conn_schedule(struct sdr_conn *conn, uint64_t now);
bool conn_is_open(const struct sdr_conn *conn); /* UP, DRAIN or CLOSING: data moves */
/* The message of a write or receive: its data. */
static inline uint32_t conn_tx_message(const struct sdr_conn *conn, uint32_t number)
{
	return number << conn->tx_paired;
}

static inline uint32_t conn_rx_message(const struct sdr_conn *conn, uint32_t number)
{
	return number << conn->rx_paired;
}

/* What is in the place of a message's write or receive: its own, another one's or NULL. */
static inline struct sdr_op *conn_tx_op(const struct sdr_conn *conn, uint32_t message)
{
	return conn->tx_op[message >> conn->tx_paired & conn->mask];
}

static inline struct sdr_op *conn_rx_op(const struct sdr_conn *conn, uint32_t message)
{
	return conn->rx_op[message >> conn->rx_paired & conn->mask];
}
int conn_attr_fill(const struct sdr_conn_attr *in, struct sdr_conn_attr *out, char *scheme,
		   struct rel_params *params);
uint64_t conn_rtt_ns(const struct sdr_conn *conn);

/* op.c */
int ops_create(struct sdr_conn *conn);
void ops_destroy(struct sdr_conn *conn);
/* Ends it: exactly once. */
void op_complete(struct sdr_op *op, int status, uint64_t length, uint32_t imm, bool has_imm);
void ops_end_all(struct sdr_conn *conn, bool recvs, int status);
void op_put(struct sdr_op *op); /* it was taken */
void op_give_up(struct sdr_op *op, int status);
void ops_deadlines(struct sdr_conn *conn, uint64_t now);

/* send.c */
int send_setup(struct sdr_conn *conn);
void send_cc_setup(struct sdr_conn *conn);
/* The channel's first round trip is known, and nothing was sent on it. */
void send_cc_fresh(struct sdr_conn *conn, uint32_t c);
void send_service(struct sdr_conn *conn, uint64_t now);
void send_pump(struct sdr_conn *conn, uint64_t now);
void send_open_granted(struct sdr_conn *conn);
uint64_t send_deadline(const struct sdr_conn *conn);
void send_give_up(struct sdr_op *op, int status);

/* pair.c */
uint32_t pair_messages(const struct sdr_conn *conn); /* that the QP is made with */
uint16_t pair_offers(const struct sdr_conn *conn);
void pair_setup(struct sdr_conn *conn);
/* 0; else the second message of the last post is still owed, and why. */
int pair_tx_settle(struct sdr_conn *conn);
int pair_rx_settle(struct sdr_conn *conn);
/* The data message is posted: the other one now, or later by itself. */
void pair_tx_posted(struct sdr_op *op);
void pair_rx_posted(struct sdr_op *op);
/* Every message of the pair is granted and posted. */
bool pair_tx_granted(const struct sdr_conn *conn, uint32_t number);
/* It ends: lets go of its parity message. */
void pair_tx_end(struct sdr_op *op);
void pair_rx_end(struct sdr_op *op);
/* A write that gets no code needs no room. */
void pair_tx_room_free(struct sdr_op *op);
void pair_service(struct sdr_conn *conn, uint64_t now);
uint64_t pair_deadline(const struct sdr_conn *conn);

/* parity.c */
void parity_setup(struct sdr_conn *conn);
void parity_fini(struct sdr_conn *conn);
/* At the path, if it is time: what schemes are chosen by. */
void parity_look(struct sdr_conn *conn, uint64_t now);
/* Of the writes that are granted from now on. 0 or -ENOTSUP. */
int parity_scheme_set(struct sdr_conn *conn, const struct rel_params *params);
/* False: not before the writes under way have ended. */
bool parity_scheme_apply(struct sdr_conn *conn);
/* Opens a granted write in rel/ with the scheme that it gets: 0, or an error of rel_tx_open(). */
int parity_open(struct sdr_op *op);
/* Makes the bytes of parity packets: 0 or -ENOMEM. */
int parity_make(struct sdr_op *op, uint32_t first, uint32_t count);

/* decode.c */
/* WRITE with a code: 0; -EINVAL: it cannot be; -ENOMEM: it may come again. */
int decode_begin(struct sdr_op *op, const struct wire_write *write);
/* The same as it said before. */
bool decode_is(const struct sdr_op *op, const struct wire_write *write);
/* Parity came, or may have. */
void decode_parity(struct sdr_op *op);
void decode_parity_all(struct sdr_conn *conn);
/* What can be decoded. */
void decode_service(struct sdr_conn *conn);

/* hint.c */
/* The path is known to be long: trains go out as soon as the QP lets them. */
void hint_start(struct sdr_conn *conn, uint64_t rtt_ns, uint64_t now);
void hint_on_write(struct sdr_conn *conn, uint64_t length);
void hint_service(struct sdr_conn *conn, uint64_t now);
uint64_t hint_deadline(const struct sdr_conn *conn);

/* recv.c */
int recv_setup(struct sdr_conn *conn);
void recv_facts(struct sdr_conn *conn, uint64_t now);
void recv_service(struct sdr_conn *conn, uint64_t now);
void recv_give_up(struct sdr_op *op, int status);
/* All of its packets are in: ends it, unless WRITE is missing. */
void recv_whole(struct sdr_op *op);
/* Looks at receives that had packets. */
void recv_ready(struct sdr_conn *conn, uint64_t now);
/* Something of it is known that is not known in rel/. May end it. */
void recv_news(struct sdr_op *op);
/* rel/ knows it: false for want of memory. */
bool recv_open(struct sdr_op *op);
/* One word of its bits to rel/. */
void recv_feed_word(struct sdr_op *op, uint32_t word);
/* Ends it if all of its packets are in. */
void recv_maybe_whole(struct sdr_op *op);
void recv_end_early(struct sdr_op *op, int status);

/* announce.c */
/* The immediate that the packets of a write carry; notes whether WRITE goes with them. */
uint32_t announce_imm(struct sdr_op *op, const struct sdr_op_wr *wr);
void announce_open(struct sdr_op *op); /* it is granted */
void announce_service(struct sdr_conn *conn, uint64_t now);
/* Of a receive whose packets are all in: WRITE has yet to come; else *imm is its immediate. */
bool announce_missing(struct sdr_op *op, uint64_t length, uint32_t *imm);
void announce_on(struct sdr_conn *conn, const uint8_t *body, size_t len);

/* ack.c */
void ack_service(struct sdr_conn *conn, uint64_t now);
void ack_on(struct sdr_conn *conn, const uint8_t *body, size_t len, uint64_t now);
void ack_feed_cc(struct sdr_conn *conn, const struct rel_ack_result *result, uint64_t now);
uint64_t ack_deadline(const struct sdr_conn *conn, uint64_t now);

/* alive.c */
void alive_service(struct sdr_conn *conn, uint64_t now);
uint64_t alive_deadline(const struct sdr_conn *conn, uint64_t now);
/* Something says that the peer is gone: dead after a silent round trip. */
void alive_suspect(struct sdr_conn *conn, const char *text);

/* close.c */
void close_service(struct sdr_conn *conn, uint64_t now);
uint64_t close_deadline(const struct sdr_conn *conn);
void close_on_close(struct sdr_conn *conn);
void close_on_echo(struct sdr_conn *conn);
/* Closed, and no answer came: a peer that speaks after all is told again. */
void close_again(struct sdr_conn *conn, uint64_t now);
void close_last_words(struct sdr_conn *conn);

/* handshake.c */
int hs_client_start(struct sdr_conn *conn, const char *host, uint16_t port);
int hs_listen_open(struct sdr_net *net, const char *bind_addr);
int hs_listen_start(struct sdr_net *net);
void hs_on_ready(struct sdr_net *net, struct hs *hs, uint32_t events);
void hs_accept(struct sdr_net *net);
void hs_tick(struct sdr_net *net, uint64_t now);
uint64_t hs_deadline(const struct sdr_net *net);
/* TCP is connected, but the other end has not answered. */
bool hs_reached(const struct sdr_conn *conn);
void hs_detach(struct sdr_conn *conn); /* closes the connection's TCP */
void hs_say_close(struct sdr_conn *conn, bool echo);
void hs_reap(struct sdr_net *net);
void hs_net_fini(struct sdr_net *net);

/* resolve.c */
struct resolve;
struct resolve_addrs {
	uint32_t n;
	struct sockaddr_storage addr[CONN_ADDRS_MAX];
	int error; /* 0, or what getaddrinfo() said */
};
/* Numeric addresses: at once and *out is NULL. */
int resolve_start(const char *host, uint16_t port, struct resolve_addrs *addrs,
		  struct resolve **out);
int resolve_fd(const struct resolve *r);
/* Once the descriptor is readable. */
void resolve_take(struct resolve *r, struct resolve_addrs *addrs);
void resolve_drop(struct resolve *r); /* any time */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cc/: congestion control of one path (host pair and channel). A window and a pacing rate
 * out of samples; pure, in place, no memory of its own. The seam is struct cc_ops.
 *
 *	fixed   a provisioned line: the rate that a person gave, with a circuit breaker
 *	        (RFC 8084) for when they were wrong
 *	grow    finds the rate: grows until delivery stops growing or delay grows. Loss that
 *	        does not grow with the rate is no reason to slow down.
 *
 * Feed each ACK's facts of the path to cc_ack() (rel's struct rel_channel_result, in
 * bytes). Keep at most cc_window_bytes() in flight, send at cc_pacing_bps(). Probes of
 * rel/ go past both. Knows nothing of packets' order, of which were lost, or of clocks.
 */
#ifndef SDR_CC_CC_H
#define SDR_CC_CC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CC_ALLOWED "fixed (needs a rate) or grow"
#define CC_DEFAULT "grow"

struct cc_params {
	uint64_t rate_bps;	/* fixed: the provisioned rate; grow: ignored */
	uint64_t max_rate_bps;	/* never pace faster; 0 = no limit */
	uint32_t payload_bytes; /* of a full packet, with headers or without: the owner's bytes */
	uint64_t rtt_ns;	/* first guess (PING); 0 = 10 ms */
	double breaker_loss;	/* opens above this loss; 0 = 0.5 */
};

/* What an ACK (or a loss timer) told of this path. All bytes are as the owner counts. */
struct cc_sample {
	uint64_t now_ns;
	uint64_t rtt_ns;	  /* newest sample, without the ACK's delay; 0 = none */
	uint64_t delivered_bytes; /* newly arrived at the receiver */
	uint64_t lost_bytes;	  /* newly declared lost ... */
	uint64_t spurious_bytes;  /* ... and declared earlier, but arrived */
	uint64_t ce_bytes;	  /* newly marked ECN-CE */
	uint64_t host_drops;	  /* newly dropped at the receiving host, packets */
	uint64_t inflight_bytes;  /* on this path, after this sample */
	/* Delivery rate sample; interval 0 = none. */
	uint64_t rate_bytes;
	uint64_t rate_interval_ns;
	uint64_t prior_delivered_bytes; /* total delivered when the newest packet was sent */
	uint64_t total_delivered_bytes; /* total delivered now */
	bool app_limited;		/* nothing to send when that packet was sent */
};

enum cc_breaker_state {
	CC_BREAKER_CLOSED = 0,
	CC_BREAKER_OPEN = 1, /* stop: the path can't carry this; stays so until cc_init */
};

/*
 * Loss over intervals of max(1 s, 4 RTT); opens after 10 in a row above the limit.
 * Invariant: bad <= CC_BREAKER_INTERVALS.
 */
#define CC_BREAKER_INTERVALS 10u
struct cc_breaker {
	double limit;
	uint64_t srtt_ns;
	uint64_t start_ns;
	uint64_t delivered_bytes, lost_bytes;
	uint32_t bad;
	enum cc_breaker_state state;
};

struct cc_fixed {
	uint64_t rate_bps;
	uint64_t srtt_ns, min_rtt_ns;
};

/* Windowed maximum by rounds (Kathleen Nichols' filter, as in BBR). */
struct cc_max {
	struct {
		uint64_t value;
		uint64_t round;
	} best[3];
};

/* Bytes of which the fate is known, by what was sent at the time; fades. */
struct cc_fate {
	double sent, lost;
};

enum cc_grow_state {
	CC_GROW_SEARCH, /* for the rate: not settled yet */
	CC_GROW_HOLD,
};

enum cc_grow_phase {
	CC_GROW_STARTUP,
	CC_GROW_JUMP, /* to a part of what packet trains said ... */
	CC_GROW_LAND, /* ... and, confirmed by what arrives, to all of it */
	CC_GROW_DRAIN,
	CC_GROW_UP,	/* hold: a little more ... */
	CC_GROW_LOOK,	/* ... did it arrive? */
	CC_GROW_DOWN,	/* hold: a little less, to drain what UP queued */
	CC_GROW_CRUISE, /* hold */
	CC_GROW_PHASES,
};

/* Told since the round began. */
struct cc_round {
	uint64_t start_ns;
	uint64_t end_bytes; /* total delivered at which what was sent in it is back */
	uint64_t delivered_bytes, lost_bytes, ce_bytes, host_drops;
	uint64_t fate_delivered_bytes, fate_lost_bytes; /* without the round before's last losses */
	uint64_t min_rtt_ns;				/* 0: no sample */
	uint64_t best_bps;				/* best rate sample */
	bool app_limited;
};

/* What arrived lately, between two pieces of news: exact however lumpy they are. */
struct cc_recent {
	uint64_t start_ns, delivered_bytes;
	uint64_t bps; /* of the last whole stretch; 0: none yet */
};

/*
 * Invariants: (1) phases follow the table in grow.c; (2) min_rtt_ns, once known, is not
 * above any sample since min_rtt_ns was last replaced; (3) base_loss is in [0, 0.5].
 */
struct cc_grow {
	enum cc_grow_state state;
	enum cc_grow_phase phase, last_phase; /* of this round and of the one before */
	uint64_t nround;
	struct cc_round round;
	struct cc_max bw; /* bit/s that arrived */
	uint64_t srtt_ns;
	uint64_t min_rtt_ns, min_seen_ns; /* and when it was last seen */
	uint64_t reprobe_start_ns;
	uint64_t reprobe_end_ns; /* a small window until then; 0: not now */
	uint64_t reprobe_min_ns;
	uint64_t news_ns, gap_ns; /* the last news, and how long we were without */
	uint64_t last_rtt_ns[3];  /* samples, round robin */
	uint32_t last_rtt_turn;
	uint64_t queue_ns; /* in the round before: its least RTT above the path's */
	struct cc_recent recent;
	uint64_t hint_bps;	/* what packet trains said; 0: nothing */
	uint64_t phase_ns;	/* when the phase began */
	uint64_t phase_news_ns; /* JUMP, LAND: the first news of what was sent in it */
	double up_gain, down_gain;
	uint32_t cruise_rounds; /* that CRUISE lasts: few while probes find more */
	uint64_t phase_bps;	/* the estimate when the phase began */
	uint32_t phase_rounds;	/* so far */
	uint32_t full_rounds;	/* startup: rounds in a row without growth */
	uint64_t full_bps;
	uint32_t queue_rounds, last_queue_rounds; /* in a row with a standing queue */
	uint32_t slow_rounds;			  /* in a row well below the estimate */
	uint32_t stuck_rounds;			  /* drained, yet the delay stays */
	struct cc_fate fate[CC_GROW_PHASES];
	double base_loss; /* that does not come from our rate */
	uint64_t cap_bps; /* what the receiving host takes; 0: no limit seen */
	uint64_t cap_round;
};

struct cc;

/* Every slot is filled. */
struct cc_ops {
	const char *name;
	void (*init)(struct cc *cc);
	void (*ack)(struct cc *cc, const struct cc_sample *s);
	void (*hint)(struct cc *cc, uint64_t bps, uint64_t now_ns);
	uint64_t (*window_bytes)(const struct cc *cc);
	uint64_t (*pacing_bps)(const struct cc *cc);
	uint64_t (*bottleneck_bps)(const struct cc *cc); /* what it believes; 0 = nothing yet */
	void (*check)(const struct cc *cc);
};

struct cc {
	const struct cc_ops *ops;
	struct cc_params params;
	uint64_t now_ns; /* of the newest news; never goes back */
	struct cc_breaker breaker;
	union {
		struct cc_fixed fixed;
		struct cc_grow grow;
	} u;
};

/* 0; -EINVAL: unknown name (tell the person CC_ALLOWED), fixed without a rate, payload 0. */
int cc_init(struct cc *cc, const char *name, const struct cc_params *params);
/* News that is older than what was told before (an ACK that waited to be read) counts as new. */
void cc_ack(struct cc *cc, const struct cc_sample *s);
/*
 * Packet trains say that the path carries bps, in the owner's bytes. Only heeded before a
 * rate was found: a start near it saves the doublings, and is checked by what arrives.
 */
void cc_hint(struct cc *cc, uint64_t bps, uint64_t now_ns);
/* At least two packets. */
uint64_t cc_window_bytes(const struct cc *cc);
uint64_t cc_pacing_bps(const struct cc *cc);
uint64_t cc_bottleneck_bps(const struct cc *cc);
enum cc_breaker_state cc_breaker(const struct cc *cc);
const char *cc_name(const struct cc *cc);
void cc_check(const struct cc *cc);

#endif

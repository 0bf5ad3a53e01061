/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sender of one connection.
 *
 *	rel_tx_open        a message is granted and ready
 *	rel_tx_next        what should be sent now: lost packets first, then new ones
 *	rel_tx_sent        ... what of it the fabric took, on which channel
 *	rel_tx_ack         an ACK's body: marks, declares losses, reports facts for cc/
 *	rel_tx_deadline    when rel_tx_timer() wants to be called
 *	rel_tx_timer       time passed: may declare losses, may ask for one probe packet
 *	rel_tx_close       a message is done or cancelled: forgets it
 *
 * Messages may have a code (rel_tx_open_coded). Their packets from the span's start on are dealt
 * to blocks (code/layout.h), and after each batch of groups the sender offers its parity,
 * ranges with `parity` set. Which parity arrived, no ACK says: the receiver counts, and an ACK
 * names blocks that lack symbols (deficits). A deficit is believed once the same ACK, or an earlier
 * one, proves that all symbols of the block that were sent have arrived or are lost; then its
 * repair goes out, and the deficits are not looked at again before that has passed too. A batch is
 * a group, or several where groups have fewer than 16 blocks.
 *
 * A packet of the span that is declared lost is *covered*: out of flight, told to cc/, but not to
 * be sent again. What ends that: it is acknowledged (decoded, or late after all: no sign of
 * reordering); its block failed and there is no further parity (repair by missing packets: with
 * Reed-Solomon as many as lack, with sums all of the block's); or for an RTO and a round trip after
 * the message's last symbol no deficit of it was believed and nothing of it decoded. Then all its
 * covered packets are lost ones, and so are further losses, until a deficit names it: a code that
 * fails altogether is selective repeat.
 *
 * Late resends, those of a message of which less than a round trip's packets are unsent, go out
 * `copies` times, gap_ns apart: a second loss would cost a round trip.
 *
 * A packet is in one of four states; the edges name what moves it:
 *
 *	unsent -> outstanding   rel_tx_sent
 *	outstanding -> acked    rel_tx_ack, a received run
 *	outstanding -> lost     rel_tx_ack, a hole with proof (sr-nack, gbn); rel_tx_timer
 *	lost -> outstanding     rel_tx_sent of a resend
 *	lost -> acked           rel_tx_ack: the loss was declared wrongly (spurious)
 *
 * Proof that a packet is lost, RACK style, per channel: an ACK shows it as a hole, and
 * the same ACK says that its channel delivered a later packet, sent the reorder window
 * later or delivered that long before the ACK was made; and at least a minimum RTT
 * passed since it was last sent, so no packet is sent twice within an RTT. What was sent some time
 * after the newest packet that was delivered is lost if that was delivered so much and the reorder
 * window before the ACK was made, whether it shows as a hole or not (*quiet*). The timer, too,
 * needs an ACK that is newer than the packet's round trip: it never fires into silence.
 * Reordering, and paths of unequal delay, are therefore not loss. The reorder window grows
 * (up to the RTT) to what a wrongly declared loss shows, and decays by an eighth each 16
 * RTTs.
 *
 * A receiver that sees no PSN names the packet that arrived last, by message and index. It
 * dates its channel like a PSN if it was sent once; if it was sent again, and its last
 * transmission can be the one that arrived, it still proves losses but gives no sample. Else
 * it dates nothing; then an ACK that is not older than those before it proves by the newest
 * date known, for what had been delivered then has been delivered now. Losses of what was
 * sent after that are found by the timer and by probes, as everywhere. Where a round trip
 * outgrows the RTO, all is sent again before it is acknowledged, nothing gives a sample and
 * the RTO could never learn: so, as Karn's algorithm wants, it doubles when duplicates show
 * that the timer was wrong, and samples take that back.
 *
 * No ACK for an RTO: *stalled*. Nothing is declared lost and nothing is offered; one
 * probe at a time goes out with backoff to 1 s, which ends where the peer answers by other means
 * (rel_tx_answered); the first ACK ends it. A timer call that
 * comes an RTT late restarts the loss timers: a paused process does not blame the path.
 *
 * In flight is the number of outstanding packets by the channel of their last
 * transmission, plus Go-Back-N's repeats of packets that are already acknowledged until
 * the channel delivered a later one. It is 0 when no message is open.
 *
 * Cost: O(1) words per packet sent or acknowledged, and a search in each channel's log per
 * run of packets sent again. Memory: pages of REL_PAGE_PKTS
 * packets, allocated at first transmission and freed once all are acknowledged; a hash
 * entry for each resent packet; a log entry for each train in flight.
 */
#ifndef SDR_REL_TX_H
#define SDR_REL_TX_H

#include "base/alloc.h"
#include "rel/rtt.h"
#include "rel/scheme.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REL_UNIT 64u	    /* packets in an aligned unit: a bitmap word */
#define REL_PAGE_PKTS 4096u /* packets in a page of state */
#define REL_MAX_OPEN 1024u  /* messages open at a time ... */
#define REL_OPEN_SPAN 2048u /* ... within this span of numbers (a write uses two) */
#define REL_MAX_CHANNELS 16u
#define REL_REORDER_MIN_NS UINT64_C(200000)
#define REL_PROBE_MAX_NS UINT64_C(1000000000)

struct rel_range {
	uint32_t message;
	uint32_t first; /* packet index */
	uint32_t count; /* 1 .. REL_UNIT, within one unit */
	bool resend;	/* these packets were offered and sent before */
	bool probe;	/* goes out whatever the congestion window says; not cut */
	/* Not the message's packets, but its parity message's: packet j * blocks + b is parity
	 * symbol j of block b. Sent once each. */
	bool parity;
};

#define REL_MARGINS 8u
/* How a message is coded and repaired. All zero: uncoded, no copies. */
struct rel_coding {
	enum rel_code code;
	uint32_t k, m, depth;
	/* The coded packets; what is before and behind them is not (an end packet, for one). */
	uint32_t span_start, span_pkts;
	uint32_t parity_room; /* packets that its parity message has room for */
	bool fresh;	      /* repair by fresh parity, where the code and the room have some */
	uint32_t copies;      /* of late resends; 0 = 1 */
	uint64_t gap_ns;      /* between copies, and between repair units of a block */
	/* Units beyond a deficit of 1, 2, 3-4, 5-8, 9-16, 17-32, 33-64, more. */
	uint8_t margin[REL_MARGINS];
};

/* What an ACK (or a timer) brought, for one channel. Counts are since the last report. */
struct rel_channel_result {
	bool fresh;		 /* this ACK tells of newer packets on this channel */
	uint64_t delivered_pkts; /* arrived at the receiver, duplicates too */
	uint64_t acked_pkts;	 /* newly acknowledged, last sent on this channel */
	uint64_t lost_pkts;	 /* newly declared lost */
	uint64_t spurious_pkts;	 /* declared lost earlier, but they had arrived */
	uint64_t ce_pkts;
	uint64_t host_drops;
	uint64_t rtt_sample_ns;	 /* 0: none */
	uint64_t newest_sent_ns; /* when the newest packet that it delivered was sent */
	/* Delivery rate sample as BBR's, 0 interval: none. From the send of the newest
	 * delivered train: what was delivered since, over the longer of the two intervals
	 * (between sends, between arrivals). */
	uint64_t rate_pkts;
	uint64_t rate_interval_ns;
	uint64_t prior_delivered_pkts; /* delivered when that train was sent */
	uint64_t total_delivered_pkts; /* delivered now */
	bool app_limited;	       /* there was nothing to send when that train was sent */
};

struct rel_ack_result {
	uint64_t acked_pkts;
	uint64_t lost_pkts;
	uint64_t spurious_pkts;
	uint64_t rtt_sample_ns; /* smallest of the channels', 0: none */
	uint32_t write_below;	/* the ACK's own, for the owner */
	struct rel_channel_result ch[REL_MAX_CHANNELS];
};

struct rel_tx_params {
	struct rel_params scheme;
	uint32_t channels;   /* 1 .. REL_MAX_CHANNELS */
	uint64_t max_ack_ns; /* longest the receiver holds an ACK; 0 = 1/16 of the RTT */
};

/* Since init; they only rise. */
struct rel_tx_stats {
	uint64_t sent_pkts;   /* all transmissions */
	uint64_t resent_pkts; /* of them, not the first of their packet; probes too */
	uint64_t probes;
	uint64_t acked_pkts;	/* distinct */
	uint64_t lost_pkts;	/* declared */
	uint64_t timeout_pkts;	/* of them, by timer */
	uint64_t spurious_pkts; /* of them, wrongly */
	uint64_t rewinds;	/* gbn */
	uint64_t stalls;
	uint64_t late_ticks; /* timer restarts after a pause */
	uint64_t acks;	     /* valid */
	uint64_t bad_acks;
	uint64_t lies;		 /* facts about packets that were never sent: ignored */
	uint64_t parity_pkts;	 /* of sent_pkts */
	uint64_t copies_pkts;	 /* of resent_pkts: not the first of their resend */
	uint64_t covered_pkts;	 /* of lost_pkts: a code's business */
	uint64_t recovered_pkts; /* of those, acknowledged without a resend */
	uint64_t failed_blocks;	 /* deficits that were believed */
	uint64_t repair_pkts;	 /* fresh parity for them, of parity_pkts */
	uint64_t uncovered_pkts; /* covered ones that had to be sent again after all */
};

/*
 * What the path does to packets, all channels, since init; they only rise, but for late
 * arrivals. Parity and resends count as any packet does.
 */
struct rel_tx_loss {
	uint64_t passed_pkts; /* sent up to the newest that each channel delivered */
	/* Of them, by the receiver's counts; may exceed passed_pkts. Where the receiver sees no PSN
	 * it does not see late parity either: there both are of data packets only, what was sent
	 * and what was neither lost nor made good. */
	uint64_t arrived_pkts;
	/* Data packets that were declared lost for the first time, and the runs that they came in
	 * (neighbours by index): mean burst = run_pkts / runs. What a code makes good before it
	 * could be declared lost is in none (so with codes, bursts look shorter); gbn counts none.
	 */
	uint64_t run_pkts, runs;
};

struct rel_msg;
struct rel_page;
struct rel_train;
struct rel_exc;
struct rel_lost;
struct rel_coded;

/* A growing ring of fixed-size elements; positions only rise. */
struct rel_ring {
	void *slot;
	uint64_t head, tail; /* elements [head, tail) are in; slot = position mod cap */
	uint32_t cap;	     /* power of two or 0 */
	uint32_t elem_bytes;
};

/*
 * One channel's send log. Invariants: (1) trains lie in PSN and time order; (2) those at
 * or below newest_psn are at positions below newest_pos; (3) inflight counts outstanding
 * packets last sent here, extra the repeats of acknowledged ones; (4) trains below
 * expired_pos have no extra and nothing outstanding; (5) the trains' tops never fall.
 */
struct rel_channel {
	struct rel_ring log; /* of struct rel_train */
	struct rel_rtt rtt;
	uint64_t start_psn, end_psn; /* unwrapped: first packet sent, one past the last */
	bool sent_any;
	uint64_t sent_pkts;
	bool newest_valid;
	uint64_t newest_psn;  /* unwrapped: newest delivered */
	uint64_t newest_pos;  /* log position after the train that holds it */
	uint64_t expired_pos; /* the timer of trains below it has run: they stay for the samples
			       * that they give if they arrive after all */
	uint64_t newest_sent_ns;
	uint64_t proven_ns;   /* what was sent at or before it has arrived or is lost */
	uint64_t quiet_pos;   /* trains below it that nothing later proved are judged already */
	uint64_t passed_pkts; /* sent up to the newest delivered */
	uint64_t copied_pkts; /* sent though they may arrive anyway: as many duplicates mean nothing
			       */
	uint64_t inflight, extra;
	uint64_t received, duplicates, ce, host_drops; /* the receiver's, merged by maxima */
	uint64_t delivered, delivered_ns;	       /* received + duplicates, and when */
	uint64_t first_sent_ns; /* BBR: start of the interval that a rate sample covers */
	uint64_t app_limited_until;
	uint32_t top_message, top; /* first transmissions end below this packet; 0: none yet */
	/* The timer was wrong, and all samples are ambiguous: its RTO is doubled so often. */
	uint32_t backoff;
	bool timed_out; /* the timer declared losses since the last sample */
	uint64_t backoff_ns;
	uint64_t doubt;	     /* losses declared here that a duplicate may prove wrong */
	uint64_t reorder_ns; /* widened reorder window; 0: the base value */
	uint64_t reorder_since_ns;
};

/*
 * Invariants (rel_tx_check): (1) for each channel, inflight is the number of sent,
 * unacknowledged, not lost packets whose last record names it; (2) the hash holds exactly
 * the packets whose exception bit is set; (3) a page has its acked count right and is
 * absent once full; (4) nothing is acked or lost at or above a message's send position
 * (gbn: acked may be); (5) lost bits are in the lost queue or covered; (6) messages are in
 * order; (7) each outstanding packet is in a train of the log; (8) covered packets are of a
 * coded span, and counted by their message and here; (9) a block has repair units left iff it
 * is in the repair queue, once; (10) copies that are due are of messages that want them.
 */
struct rel_tx {
	struct sdr_alloc alloc;
	struct rel_tx_params params;
	struct rel_rtt rtt; /* all channels' samples */
	struct rel_tx_stats stats;
	struct rel_channel ch[REL_MAX_CHANNELS];
	struct rel_msg *slot[REL_OPEN_SPAN]; /* by message mod REL_OPEN_SPAN */
	struct rel_msg *oldest, *newest;     /* list of open messages, in order */
	struct rel_msg *sending;	     /* first that may have something unsent */
	uint32_t nopen;
	bool any_opened;
	uint32_t last_opened;
	struct rel_page *free_pages;
	uint32_t nfree_pages;
	struct rel_exc *exc; /* hash of last transmissions that no unit record describes */
	uint32_t exc_cap, nexc;
	struct rel_ring lost; /* of struct rel_lost, oldest first */
	uint64_t lost_now;    /* packets declared lost and not yet resent; not those covered */
	/* Codes and copies; see tx_code.c, tx_repair.c, tx_copy.c. */
	uint64_t now_ns;      /* the latest that we were told */
	uint64_t bdp_pkts;    /* 0: not known */
	uint64_t covered_now; /* packets */
	uint64_t fallback_ns; /* no message's covered packets are given up before this */
	struct rel_ring copies,
		repairs;	/* of struct rel_copy, struct rel_refill: first due first */
	struct rel_msg *parity; /* a batch of its data is sent, the parity of it not yet */
	uint32_t last_coded;
	bool any_coded;
	uint64_t run_pkts, runs; /* see rel_tx_loss() */
	uint64_t made_good;	 /* by the receiver's codes, as it says */
	bool named;		 /* the receiver names packets, and sees no PSN */
	/* Clock of the loss timers. */
	uint64_t last_ack_ns;	/* 0: none yet */
	uint64_t busy_since_ns; /* when in flight last left 0 */
	uint64_t last_sent_ns;
	uint64_t timer_floor_ns; /* loss timers run from max(send time, this) ... */
	uint64_t timer_hold_ns;	 /* ... and none expires before this */
	uint64_t next_probe_ns;	 /* while stalled */
	uint64_t probe_gap_ns;
	uint64_t answers;
	bool stalled;
	bool tail_probed;    /* since the last send or progress */
	bool late_restarted; /* since the last ACK */
};

/* 0, -EINVAL (channels out of range) or -ENOMEM. The struct stays in place. */
int rel_tx_init(struct rel_tx *tx, const struct rel_tx_params *params,
		const struct sdr_alloc *alloc);
void rel_tx_fini(struct rel_tx *tx);

/*
 * Opens a message of npkts packets, after those opened before it (serial order). 0;
 * -EINVAL: npkts is 0 or the number does not come after the last one; -EAGAIN: too many
 * are open, or it is REL_OPEN_SPAN or more ahead of one; -ENOMEM.
 */
int rel_tx_open(struct rel_tx *tx, uint32_t message, uint32_t npkts);
/* Forgets it, and settles what of it is in flight. Unknown numbers are ignored. */
void rel_tx_close(struct rel_tx *tx, uint32_t message);
/* Closes all open messages before `message` (cumulative done). */
void rel_tx_close_below(struct rel_tx *tx, uint32_t message);
bool rel_tx_is_open(const struct rel_tx *tx, uint32_t message);
/*
 * The same with a code, copies or both (coding is copied; NULL: neither). -EINVAL also: a coding
 * out of its ranges: 1 <= k, 1 <= m (xor: m <= k), k + m <= 255, depth 1 .. REL_DEPTH_MAX, a span
 * of packets that there are, copies up to REL_COPIES_MAX, gbn, or a code with a scheme without
 * nack.
 */
int rel_tx_open_coded(struct rel_tx *tx, uint32_t message, uint32_t npkts,
		      const struct rel_coding *coding);
/* Packets that fit into a round trip, for what is late; 0: not known, all resends are. */
void rel_tx_set_bdp(struct rel_tx *tx, uint64_t pkts);
void rel_tx_loss(const struct rel_tx *tx, struct rel_tx_loss *out);
/* All of the message's packets are acknowledged. */
bool rel_tx_is_acked(const struct rel_tx *tx, uint32_t message);

/*
 * What to send now, at most max_pkts packets: 1 and *out; 0: nothing (all is sent, or
 * stalled); -ENOMEM: nothing could be reserved, try later. Changes no record: follow it
 * with one rel_tx_sent(), or with nothing if the fabric took nothing.
 */
int rel_tx_next(struct rel_tx *tx, uint64_t now_ns, uint32_t max_pkts, struct rel_range *out);
/*
 * The fabric took sent->count packets (as offered or fewer, from the front), as PSNs
 * first_psn24 and following on channel. Also after a probe. Cannot fail.
 */
void rel_tx_sent(struct rel_tx *tx, const struct rel_range *sent, uint32_t channel,
		 uint32_t first_psn24, uint64_t now_ns);
/*
 * Packets that no message of ours tracks (parity): in flight until the channel delivers a
 * later one. count is 1 .. REL_UNIT. 0 or -ENOMEM (they are then in no account).
 */
int rel_tx_sent_untracked(struct rel_tx *tx, uint32_t count, uint32_t channel, uint32_t first_psn24,
			  uint64_t now_ns);
/*
 * The sender itself held packets of this channel back (its host let it run too late), not the
 * path: what is delivered of what is in flight now says what the path carries at least.
 */
void rel_tx_limited(struct rel_tx *tx, uint32_t channel);
/* Something could be sent now if the congestion window lets it. */
bool rel_tx_pending(const struct rel_tx *tx);

/*
 * An ACK's body (without the control message's header). 0 and *out filled; -EMSGSIZE or
 * -EBADMSG and nothing changed. Old, repeated and reordered ACKs do no harm.
 */
int rel_tx_ack(struct rel_tx *tx, const uint8_t *body, size_t len, uint64_t now_ns,
	       struct rel_ack_result *out);

/* When rel_tx_timer() should be called, or rel_tx_next() has something that waits for its time (a
 * copy, a repair unit; not once a call was told a time at or after that: then it is only pending);
 * UINT64_MAX: no need. */
uint64_t rel_tx_deadline(const struct rel_tx *tx);
/*
 * Call at the deadline or whenever (after sockets were read dry). *lost, if not NULL, is
 * filled as by rel_tx_ack (losses that the timer declared; all else 0). 1 and *probe: send
 * this packet now, past any window, then rel_tx_sent(); 0: nothing to send for it.
 */
int rel_tx_timer(struct rel_tx *tx, uint64_t now_ns, struct rel_range *probe,
		 struct rel_ack_result *lost);
/*
 * So many times has the peer answered by other means (a PONG, another path that was proved): a
 * number that was not told before lets a stalled sender probe at once, whatever its backoff.
 */
void rel_tx_answered(struct rel_tx *tx, uint64_t answers, uint64_t now_ns);
/* No ACK for an RTO. */
bool rel_tx_stalled(const struct rel_tx *tx);

/* Packets in flight on a channel, and on all. */
uint64_t rel_tx_inflight(const struct rel_tx *tx, uint32_t channel);
uint64_t rel_tx_inflight_all(const struct rel_tx *tx);
uint64_t rel_tx_rto_ns(const struct rel_tx *tx);
uint64_t rel_tx_reorder_ns(const struct rel_tx *tx, uint32_t channel);
/*
 * A round-trip sample of a channel from elsewhere (PING/PONG, less the other end's hold).
 * Give one for each channel before its first packet: until it has a sample of any kind, a
 * channel's RTO is 1 s (RFC 8961), whatever the others' are.
 */
void rel_tx_rtt_sample(struct rel_tx *tx, uint32_t channel, uint64_t sample_ns, uint64_t now_ns);
/* Bytes of memory held now, for limits and tests. */
size_t rel_tx_memory_bytes(const struct rel_tx *tx);
/* Asserts the invariants; O(everything), for tests. */
void rel_tx_check(const struct rel_tx *tx);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiver of one connection: when an ACK is due, and what is in it. The packet
 * bitmaps are the owner's (fabrics set bits in them at any time); the owner hands copies of
 * words over when asked, and windows are encoded from those.
 *
 * Data arrived (any time):
 *	rel_rx_arrived(total packets so far)
 *	for each message with new bits: rel_rx_dirty(), then, to learn of completion,
 *		while (rel_rx_want_cum(rx, message, &want) && rel_rx_feed(..., words of want))
 *			;
 *
 * An ACK (rel_rx_ack_due): channel facts first, then words, so that a hole in a window is
 * one that was still there after the channel's newest PSN: what the sender's proof stands on.
 *	rel_rx_ack_begin(rx, now, write_below, facts, n, buf, cap)
 *	while (rel_rx_scan(rx, &want))
 *		rel_rx_feed(rx, want.message, want.first_word, words, want.nwords)
 *	len = rel_rx_ack_end(rx)
 *
 * A coded message (its WRITE came):
 *	rel_rx_code(), then the words of its parity message as they come, by rel_rx_feed_parity()
 *	while (rel_rx_next_block(rx, &message, &block))
 *		decode it, set the bits of what was made good, feed them; rel_rx_block_done()
 * An ACK names the blocks that lack symbols though all of their first parity should be here:
 * something sent later was seen (their last row of parity or a later block's, a group of a later
 * batch, a later message), or nothing came for REL_ACKS_PER_RTT'th of a round trip. The first of
 * them make an ACK due at once (a quarter of a turn after the last one), and again when the
 * sender's reorder window is over, so that the channels' facts prove it; they are named in each ACK
 * that has room, in turn.
 *
 * What the scan asks for:
 *	look    what lies beyond the highest packet of dirty messages, and a slice that rotates
 *	        over everything with holes within RTT / 64: compared with what was known, so
 *	        that changes are found without searching all of a long message for each ACK
 *	tell    each change three times: in the first ACK after it was found, in a later one,
 *	        and RTT / 8 on, when the sender's reorder window is over and a hole proves loss
 *	holes   a few places with holes, rotating: where they are few, each ACK has them all
 *	cursor  a smaller slice that rotates over everything from the first hole on
 * Then what is whole is repeated by a few windows, in case ACKs were lost for long.
 *
 * Messages below the highest one seen are reported up to their end or capacity, so that a
 * wholly lost message shows as a hole; the highest one up to its highest packet seen.
 *
 * Rate: an ACK at once after a pause, then at most REL_ACKS_PER_RTT an RTT or one for
 * REL_RX_ACK_PKTS packets, whichever is more (up to four times and twice as many while ACKs
 * have no room for all that is to be told), never above ack_bps; after the last arrival
 * it is repeated twice, first just after the sender's reorder window, when the age of what
 * arrived last proves the holes, and on until each change was told three times; then the sender
 * has to ask (probe).
 */
#ifndef SDR_REL_RX_H
#define SDR_REL_RX_H

#include "base/alloc.h"
#include "code/set.h"
#include "rel/tx.h"
#include "wire/ack.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REL_RX_ACK_PKTS 256u
#define REL_RX_ACK_SPANS 64u		  /* ... or so many changes apart (small messages) */
#define REL_RX_ACK_BYTES 1150u		  /* a body that fits any path; cap may be smaller */
#define REL_RX_ACK_MIN_BYTES 256u	  /* and what the channels take */
#define REL_RX_ACK_GAP_NS UINT64_C(20000) /* least, but for REL_RX_ACK_PKTS packets */
#define REL_RX_WANT_WORDS 256u		  /* at most, by one rel_rx_scan() or rel_rx_want_cum() */
#define REL_RX_TELL_WORDS 1024u		  /* bitmap words that an ACK encodes, at most */
#define REL_RX_LOOK_WORDS 16384u	  /* ... and that it looks at */
#define REL_RX_SPANS 4096u		  /* changes remembered; beyond it the cursor finds them */
#define REL_RX_TELLS 3u			  /* ACKs that tell a change */
#define REL_RX_QUIET_BLOCKS 64u /* told after quiet beyond what was seen: lost whole at the end */
#define REL_RX_PROOF_SLACK_NS UINT64_C(20000) /* an ACK for proof, after the reorder window */

/* A channel as the owner saw it just before the words; counts since the start. */
struct rel_channel_fact {
	uint8_t id;
	bool psn_valid;
	uint32_t newest_psn; /* 24 bits: newest data packet, duplicates too */
	/* Where no PSN is seen: the data packet that arrived last, duplicates too. */
	bool packet_valid;
	uint32_t newest_message;
	uint32_t newest_packet;
	uint64_t age_ns;     /* since it arrived */
	uint64_t received;   /* distinct data packets */
	uint64_t duplicates; /* verified, but not new; those of finished messages too */
	uint64_t ce;
	uint64_t host_drops;
};

struct rel_rx_want {
	uint32_t message;
	uint32_t first_word; /* packet first_word * 64 is bit 0 of words[0] */
	uint32_t nwords;
};

struct rel_rx_params {
	uint64_t rtt_ns;  /* first guess; 0 = 4 ms */
	uint64_t ack_bps; /* what ACKs may use: 1 % of the line; 0 = no limit */
};

struct rel_rx_stats {
	uint64_t acks;
	uint64_t ack_bytes;
	uint64_t full_acks; /* that had no room for all that was to be told */
	uint64_t looked_words;
	uint64_t told_words;
	uint64_t lost_spans; /* changes that were too many to remember */
};

struct rel_rx_msg;

/* Words that changed. */
struct rel_rx_span {
	uint32_t message, first_word, nwords;
	uint64_t at_ns;
};

/* Who asked for words. */
enum rel_rx_pass {
	REL_RX_TELL_1, /* the spans' stages, in this order */
	REL_RX_TELL_2,
	REL_RX_TELL_3,
	REL_RX_HOLES,
	REL_RX_CURSOR,
	REL_RX_LOOK_DIRTY,
	REL_RX_LOOK_ROUND,
};

/* A place in the rotation over messages with holes. */
struct rel_rx_place {
	struct rel_rx_msg *msg; /* NULL: a new round begins */
	uint32_t word;
};

/*
 * Invariants (rel_rx_check): (1) messages lie in serial order; (2) cum <= hi <= npkts;
 * (3) no message after top_message has a packet seen, and top is the last open one that is
 * not after it; (4) places name an open message or none; (5) spans at positions below
 * stage[i] were told more than i times: stage[2] <= stage[1] <= stage[0] <= span_tail, and
 * at most REL_RX_SPANS are kept; (6) known bits are a subset of the owner's.
 */
struct rel_rx {
	struct sdr_alloc alloc;
	struct rel_rx_params params;
	struct rel_rx_stats stats;
	struct rel_rx_msg *slot[REL_OPEN_SPAN];
	struct rel_rx_msg *oldest, *newest;
	struct rel_rx_msg *top;
	struct rel_rx_msg *dirty, **dirty_end; /* first in, first looked at */
	uint32_t ndirty;
	uint32_t top_message; /* highest of which a packet was seen */
	bool any_seen, any_opened;
	uint32_t last_opened;
	uint32_t nopen;
	uint64_t now_ns; /* the latest that we were told */
	/* When. */
	uint64_t arrived, acked_arrived; /* packets so far; at the last ACK */
	uint64_t arrived_ns;		 /* when the last one was heard of */
	uint64_t last_ack_ns;
	uint64_t made_good;
	uint64_t gap_ns; /* that ack_bps asks for after the last ACK */
	uint32_t repeats_left;
	bool any_acked, kicked;
	/* Changes to tell: a ring of REL_RX_SPANS. */
	struct rel_rx_span *span;
	uint64_t span_tail, stage[REL_RX_TELLS];
	/* The rotations. */
	struct rel_rx_place round, holes, cursor;
	uint32_t round_words, last_round_words; /* of this round so far; of the whole last one */
	struct rel_rx_msg *prefix;		/* of what is whole; NULL: start at top */
	uint32_t prefix_at;			/* its next window ends here */
	/* Codes. */
	struct rel_rx_msg *ready, **ready_end; /* with blocks to decode: first in, first out */
	uint32_t ncoded;
	uint64_t nfail;	    /* failed blocks of all messages */
	bool failed;	    /* some since the last ACK */
	uint64_t failed_ns; /* the last time that some failed */
	uint64_t proof_ns;  /* an ACK is due then, for proof; 0: none is */
	bool deficits_cut;  /* the last ACK had no room for all; the next begins there: */
	uint32_t deficit_message, deficit_block;
	bool quiet;	  /* nothing has come for long: of the ACK being built */
	uint64_t lacking; /* told in the last ACK */
	/* The ACK being built. */
	struct wire_ack_enc enc;
	const struct rel_channel_fact *facts; /* the caller's, from begin to end */
	unsigned int nfacts;
	bool building, full, after_pause;
	unsigned int passes_done;
	bool pass_begun;
	uint32_t holes_left; /* windows */
	bool blind; /* no memory for what was fed: it must not be told from what is known */
	uint32_t cursor_to, cursor_end, regions_left; /* of the cursor's region: asked so far */
	bool cursor_first, cursor_moved;
	uint32_t dirty_left, look_left, tell_left, cursor_left, skip_left; /* words */
	uint32_t dirty_word;		  /* how far the look at a dirty message is */
	uint64_t stage_end;		  /* of the telling pass under way */
	uint64_t stage_was[REL_RX_TELLS]; /* when the ACK began */
	enum rel_rx_pass asked_by;
	struct rel_rx_want asked; /* nwords 0: answered */
};

/* 0 or -ENOMEM. */
int rel_rx_init(struct rel_rx *rx, const struct rel_rx_params *params,
		const struct sdr_alloc *alloc);
void rel_rx_fini(struct rel_rx *rx);

/*
 * A receive was granted as `message` with room for npkts packets, after those opened
 * before it. 0, -EINVAL, -EAGAIN, -ENOMEM as rel_tx_open.
 */
int rel_rx_open(struct rel_rx *rx, uint32_t message, uint32_t npkts);
/* The end became known: the message has npkts packets (1 .. capacity; else -EINVAL). */
int rel_rx_end(struct rel_rx *rx, uint32_t message, uint32_t npkts);
/* The end is known and all packets below it are in (found by rel_rx_feed). */
bool rel_rx_complete(const struct rel_rx *rx, uint32_t message);
/* Packets in from the start without a hole, as far as fed. */
uint32_t rel_rx_cum(const struct rel_rx *rx, uint32_t message);
/* Highest packet seen plus one, as far as fed. */
uint32_t rel_rx_high(const struct rel_rx *rx, uint32_t message);
/* Done (the owner's write_below or done bits cover it) or cancelled. */
void rel_rx_close(struct rel_rx *rx, uint32_t message);

/* Data packets (duplicates and late ones too) that came on all channels since the start. */
void rel_rx_arrived(struct rel_rx *rx, uint64_t total_pkts, uint64_t now_ns);
/* Bits of this message were set since the last time. */
void rel_rx_dirty(struct rel_rx *rx, uint32_t message);
/*
 * Words of a message's packet bitmap: bit 0 of words[0] is packet first_word * 64. Bits at
 * or beyond the end are ignored, words too. Any words may be fed at any time; inside an
 * ACK, those last asked for are encoded. True: the packets from the start reach the end of
 * what was fed, so feeding what follows may move rel_rx_cum() further.
 */
bool rel_rx_feed(struct rel_rx *rx, uint32_t message, uint32_t first_word, const uint64_t *words,
		 uint32_t nwords);
/* The words from rel_rx_cum() on; false: unknown, complete, or all below capacity is in. */
bool rel_rx_want_cum(const struct rel_rx *rx, uint32_t message, struct rel_rx_want *want);

/*
 * The message has a code; only code, k, m, depth, span_start, span_pkts and parity_room of it
 * matter. Packets that came before are counted then. 0, also if it is the same as before; -EINVAL:
 * unknown message, its end is not known, a coding out of its ranges (a span of 0 too), or another
 * one than before; -ENOMEM.
 */
int rel_rx_code(struct rel_rx *rx, uint32_t message, const struct rel_coding *coding);
/* Words of the parity message's bitmap, as rel_rx_feed(); any, at any time after rel_rx_code(). */
void rel_rx_feed_parity(struct rel_rx *rx, uint32_t message, uint32_t first_word,
			const uint64_t *words, uint32_t nwords);
/*
 * Which words of the parity message may have news that matter: those of blocks that lack
 * something, up to the newest group seen, and each time that nothing new is found, further (so ask
 * when something came). Starts anew where *at is 0, else goes on; false: that's all. want->message
 * is the coded message's number, but the words are its parity message's.
 */
bool rel_rx_want_parity(struct rel_rx *rx, uint32_t message, uint32_t *at,
			struct rel_rx_want *want);
/*
 * A block of any message that lacks data, and can be decoded by what is known: once each until
 * rel_rx_block_done() or more of it comes. `have`: its data symbols that are here or zeros,
 * `parity`: its parity symbols that are here.
 */
struct rel_rx_block {
	uint32_t message, block;
	struct code_set have, parity;
};
bool rel_rx_next_block(struct rel_rx *rx, struct rel_rx_block *out);
/* It was decoded, or that failed: it comes again when a further symbol of it has come. */
void rel_rx_block_done(struct rel_rx *rx, uint32_t message, uint32_t block);
/* Symbols that blocks of coded messages lack, as told in the last ACK, for counters. */
uint64_t rel_rx_lacking(const struct rel_rx *rx);

/* So many packets were made good by codes, ever: where NICs drop late parity unseen, the sender
 * tells by this how many were lost. */
void rel_rx_made_good(struct rel_rx *rx, uint64_t pkts);

void rel_rx_set_rtt(struct rel_rx *rx, uint64_t rtt_ns);
/* An ACK is wanted soon whatever arrived (asked for by the peer, message finished ...). */
void rel_rx_kick(struct rel_rx *rx);
/* When an ACK is due; UINT64_MAX: none is. Due if this is not after now. */
uint64_t rel_rx_ack_deadline(const struct rel_rx *rx, uint64_t now_ns);
static inline bool rel_rx_ack_due(const struct rel_rx *rx, uint64_t now_ns)
{
	return rel_rx_ack_deadline(rx, now_ns) <= now_ns;
}

/*
 * Begins an ACK of at most min(cap, REL_RX_ACK_BYTES) bytes in buf, which must stay till
 * the end, as must facts. 0, or -ENOSPC: less than REL_RX_ACK_MIN_BYTES and the channels.
 */
int rel_rx_ack_begin(struct rel_rx *rx, uint64_t now_ns, uint32_t write_below,
		     const struct rel_channel_fact *facts, unsigned int nfacts, uint8_t *buf,
		     size_t cap);
/* Which words to feed next; false: that's all. */
bool rel_rx_scan(struct rel_rx *rx, struct rel_rx_want *want);
/* The body's length. */
int rel_rx_ack_end(struct rel_rx *rx);
/* Bytes of memory held now, for limits and tests. */
size_t rel_rx_memory_bytes(const struct rel_rx *rx);
void rel_rx_check(const struct rel_rx *rx);

#endif

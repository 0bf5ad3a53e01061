/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sender's files share: messages, pages of packet state, last-transmission
 * records, the send log. Not for anyone outside rel/.
 *
 *	rel_tx -> rel_msg (one an open message) -> rel_page (4096 packets) -> units (64)
 *
 * The last transmission of a packet is told by its unit's record, which covers the first
 * n packets of the unit as one train, or, where the exception bit is set, by an entry in
 * the hash. So a packet costs a hash entry only if it was resent, or if its unit went out
 * in pieces.
 */
#ifndef SDR_REL_TX_PRIV_H
#define SDR_REL_TX_PRIV_H

#include "base/bits.h"
#include "base/check.h"
#include "code/layout.h"
#include "rel/tx.h"
#include "wire/ack.h"

#define REL_PAGE_UNITS (REL_PAGE_PKTS / REL_UNIT)
#define REL_PAGES_CACHED 64u
#define REL_NO_CHANNEL 255u
#define REL_BACKOFF_MAX 8u

/* The train that sent packets [0, n) of the unit last. */
struct rel_unit {
	uint64_t sent_ns;
	uint8_t channel;
	uint8_t n;
};

struct rel_page {
	uint64_t acked[REL_PAGE_UNITS];
	uint64_t lost[REL_PAGE_UNITS];
	uint64_t exc[REL_PAGE_UNITS];
	uint64_t covered[REL_PAGE_UNITS]; /* of those lost: a code's business, not queued */
	struct rel_unit unit[REL_PAGE_UNITS];
	uint32_t nacked;
	struct rel_page *next_free;
};

struct rel_msg {
	uint32_t message, npkts;
	uint32_t next; /* send position: packets below it were sent since the last rewind */
	uint32_t high; /* packets below it were sent ever; == next unless gbn */
	uint32_t nacked;
	struct rel_msg *before, *after;
	struct rel_page **page; /* NULL: unsent; &rel_page_full: all acked */
	uint32_t npages;
	struct rel_coded *coded; /* NULL: neither a code nor copies */
};

/* Of one group's batch: 0: not all of it has been sent. */
struct rel_group {
	uint64_t parity_ns; /* its first parity train */
	uint64_t last_ns;   /* its last symbol, but for repairs and resends */
};

struct rel_block {
	uint64_t
		last_ns; /* its last repair unit or resend, or when its last deficit was believed */
	uint8_t fresh;	 /* repair units that were sent: parity numbers from m on */
	uint8_t left;	 /* ... that are still to be sent */
};

/*
 * What a message with a code, copies or both has on top. Groups below `batch` were sent with
 * their parity; those up to batch_end are the batch under way.
 */
struct rel_coded {
	struct rel_coding coding;
	struct code_layout layout; /* of the span; npkts 0: no code, and nothing below it holds */
	uint32_t ngroups, batch, batch_end;
	uint32_t number, at; /* the batch's next parity: its number, and which of the blocks */
	uint64_t covered;
	uint64_t heard_ns; /* the last symbol that was sent, or sign of its code's life */
	bool alone;	   /* its code has failed: losses are resent like anybody's */
	struct rel_group *group;
	struct rel_block *block;
};

/* One train in the log. */
struct rel_train {
	uint64_t psn; /* unwrapped, of its first packet */
	uint64_t sent_ns;
	uint64_t delivered, delivered_ns; /* the channel's when it was sent */
	uint64_t first_sent_ns;
	uint64_t sent_pkts; /* the channel's before it */
	uint32_t message, first;
	uint8_t n;
	uint8_t extra; /* of them, untracked or acknowledged before they were sent (gbn) */
	bool app_limited;
	bool untracked; /* message and first mean nothing */
	bool resend;	/* not the first transmission of these packets */
	bool parity;	/* untracked, but message and first say which of its parity */
	uint64_t again; /* bit i: packet first + i was sent again since */
	/* The channel's first transmissions, this train's too, end below this packet; top 0: it
	 * had none. See tx_name.c. */
	uint32_t top_message, top;
};

/* A last transmission that no unit record describes. */
struct rel_exc {
	uint32_t message, packet;
	uint64_t sent_ns;
	uint64_t lost_sent_ns; /* when the transmission before, declared lost, was sent ... */
	uint8_t lost_on;       /* ... and on which channel, or REL_NO_CHANNEL */
	uint8_t used;
	uint8_t channel;
};

struct rel_lost {
	uint32_t message, unit;
	uint64_t mask; /* those of them whose lost bit is still set are to be resent */
};

/* Resends that go out again unless they are acknowledged before. */
struct rel_copy {
	uint32_t message, unit;
	uint64_t mask, due_ns;
	uint32_t left;
};

/* A block with repair units left; the next one is due at due_ns. */
struct rel_refill {
	uint32_t message, block;
	uint64_t due_ns;
};

/* One word of a message: where almost all work happens. */
struct rel_word {
	struct rel_msg *msg;
	struct rel_page *page; /* never NULL */
	uint32_t unit;	       /* of the message */
	uint32_t at;	       /* of the page */
};

/* Everything acknowledged, nothing lost: shared, never written. */
extern struct rel_page rel_page_full;

/* What one ACK proves, per channel. */
struct rel_view {
	uint64_t now_ns;
	/* When the newest packet was sent that the channel had delivered; 0: not told. By
	 * packets, not PSNs: a packet that it had delivered, not always the newest ... */
	uint64_t newest_sent_ns[REL_MAX_CHANNELS];
	/* ... and nothing sent after this by more than the reorder window; 0: not known. */
	uint64_t none_after_ns[REL_MAX_CHANNELS];
	/* A hole last sent at or before this is lost; 0: no proof. */
	uint64_t lost_before_ns[REL_MAX_CHANNELS];
	uint64_t overdue_ns[REL_MAX_CHANNELS]; /* the same, but for the reorder window */
	/* Losses that were none: how far later packets had overtaken them; 0: none. */
	uint64_t overtaken_ns[REL_MAX_CHANNELS];
	bool duplicated[REL_MAX_CHANNELS];
	bool stale; /* an ACK that came before was made later */
	/* gbn: the earliest proven hole. */
	struct rel_msg *hole_msg;
	uint32_t hole;
	struct rel_ack_result *out;
};

/* tx_store.c */
struct rel_msg *rel_msg_find(const struct rel_tx *tx, uint32_t message);
/* False: no page, so nothing of this unit was sent. */
bool rel_word_get(struct rel_msg *msg, uint32_t unit, struct rel_word *out);
/* Bits of the unit below a packet index. */
uint64_t rel_mask_below(uint32_t unit, uint32_t packet);
/* Sent since the last rewind, neither acked nor lost. */
uint64_t rel_outstanding(const struct rel_word *w);
/* Room for one train on any channel, its records and its page. 0 or -ENOMEM. */
int rel_reserve(struct rel_tx *tx, struct rel_msg *msg, uint32_t first);
/* Room for one train of parity on any channel. 0 or -ENOMEM. */
int rel_reserve_logs(struct rel_tx *tx);
void rel_page_release(struct rel_tx *tx, struct rel_page *page);

int rel_ring_reserve(struct rel_tx *tx, struct rel_ring *ring, uint32_t more);
void *rel_ring_push(struct rel_ring *ring); /* reserved before */
static inline void *rel_ring_at(const struct rel_ring *ring, uint64_t pos)
{
	return (char *)ring->slot + (size_t)(pos & (ring->cap - 1)) * ring->elem_bytes;
}
static inline struct rel_train *rel_train_at(const struct rel_channel *ch, uint64_t pos)
{
	return rel_ring_at(&ch->log, pos);
}

struct rel_exc *rel_exc_find(const struct rel_tx *tx, uint32_t message, uint32_t packet);
struct rel_exc *rel_exc_put(struct rel_tx *tx, uint32_t message, uint32_t packet);
void rel_exc_remove(struct rel_tx *tx, struct rel_exc *entry);

/* The last transmission of an outstanding or lost packet (bit of the word). */
struct rel_last {
	uint64_t sent_ns;
	uint64_t lost_sent_ns;
	uint8_t channel;
	uint8_t lost_on;
};
struct rel_last rel_last_of(const struct rel_tx *tx, const struct rel_word *w, unsigned int bit);
/* Forgets the records of these packets; outstanding ones leave their channel's flight. */
void rel_detach(struct rel_tx *tx, const struct rel_word *w, uint64_t bits);
/*
 * Records that `span` (a run of bits) was just sent as one train; those of it that are not
 * acked join the channel's flight. was: NULL, or for each bit what was lost before (channel
 * REL_NO_CHANNEL: nothing).
 */
void rel_attach(struct rel_tx *tx, const struct rel_word *w, uint64_t span, uint32_t channel,
		uint64_t now_ns, const struct rel_last was[REL_UNIT]);

/* tx_name.c */
/* Keeps the channel's top in a train that was just sent. */
void rel_train_top(struct rel_channel *ch, struct rel_train *train, bool resend);
/* These packets are being sent again: their names are ambiguous from now on. */
void rel_note_again(struct rel_tx *tx, const struct rel_range *sent);
/* The train that sent this packet on this channel, if it was sent once only; else NULL. */
const struct rel_train *rel_named_once(const struct rel_channel *ch, uint32_t message,
				       uint32_t packet);
/*
 * The train of its last transmission, if that was on this channel and at least the smallest
 * round trip before an arrival that we heard of: an earlier one would have taken even longer
 * (as RFC 8985 argues). Good for proofs of loss, not for samples.
 */
const struct rel_train *rel_named_last(const struct rel_tx *tx, const struct rel_channel *ch,
				       uint32_t message, uint32_t packet, uint64_t arrived_ns);
/* The train that sent this packet of a parity message, if its time is known; else NULL. */
const struct rel_train *rel_named_parity(const struct rel_tx *tx, const struct rel_channel *ch,
					 uint32_t message, uint32_t packet);
/* We never sent such a packet. */
bool rel_name_is_lie(const struct rel_tx *tx, uint32_t message, uint32_t packet);

/* tx_proof.c */
/* What the channel facts prove: holes are judged by it. */
void rel_make_proof(struct rel_tx *tx, struct rel_view *view);
/* Holes of one word: those proven lost are declared so. */
void rel_judge_word(struct rel_tx *tx, struct rel_word *w, uint64_t bits, struct rel_view *view);
/* The same without holes: what was sent after the newest packet, and should have come since. */
void rel_judge_quiet(struct rel_tx *tx, struct rel_view *view);
/* All that was sent at or before this, on any channel, has arrived or is lost. */
uint64_t rel_horizon_ns(const struct rel_tx *tx);

/* tx_code.c */
int rel_coded_open(struct rel_tx *tx, struct rel_msg *msg, const struct rel_coding *coding);
void rel_coded_close(struct rel_tx *tx, struct rel_msg *msg);
size_t rel_coded_bytes(const struct rel_msg *msg);
/* Packet after the data of the batch under way; the message's end where there is none. */
uint32_t rel_batch_end_pkt(const struct rel_msg *msg);
bool rel_next_parity(struct rel_tx *tx, struct rel_range *out);
void rel_parity_sent(struct rel_tx *tx, const struct rel_range *sent, uint32_t channel,
		     uint32_t first_psn24, uint64_t now_ns);
/* Packets of a coded message were sent, at sent_ns by the channel's clock. */
void rel_coded_sent(struct rel_tx *tx, struct rel_msg *msg, const struct rel_range *sent,
		    uint64_t sent_ns);
/* Bits of the unit that a code covers. */
uint64_t rel_span_bits(const struct rel_msg *msg, uint32_t unit);
static inline bool rel_has_code(const struct rel_msg *msg)
{
	return msg->coded && msg->coded->layout.npkts;
}

/* tx_repair.c */
/* These packets are lost, and for the code to make good. */
void rel_cover(struct rel_tx *tx, const struct rel_word *w, uint64_t bits);
/* They are covered no more: acknowledged or sent again. */
void rel_uncover(struct rel_tx *tx, const struct rel_word *w, uint64_t bits);
void rel_recovered(struct rel_tx *tx, const struct rel_word *w, uint64_t bits, uint64_t now_ns);
void rel_read_deficits(struct rel_tx *tx, struct wire_ack *ack, const struct rel_view *view);
bool rel_next_repair(struct rel_tx *tx, struct rel_range *out);
/* The units at the queue's head were sent, as `count` packets of its message. */
void rel_repair_sent(struct rel_tx *tx, struct rel_msg *msg, uint32_t count, uint64_t sent_ns,
		     uint64_t now_ns);
/* When covered packets will be given up; UINT64_MAX: there are none. */
uint64_t rel_fallback_ns(const struct rel_tx *tx);
void rel_fallback(struct rel_tx *tx, uint64_t now_ns);
/* Some covered packet, to ask with. */
bool rel_any_covered(const struct rel_tx *tx, struct rel_range *out);

/* tx_copy.c */
bool rel_next_copy(struct rel_tx *tx, struct rel_range *out);
int rel_copy_reserve(struct rel_tx *tx, const struct rel_msg *msg);
/* A resend is about to be recorded: it is a copy, or has some to come. */
void rel_copy_sent(struct rel_tx *tx, const struct rel_word *w, const struct rel_range *sent,
		   uint32_t channel, uint64_t now_ns);
/* When the next copy or repair unit is due that was not yet at the latest time that we know. */
uint64_t rel_wait_ns(const struct rel_tx *tx);
/* One is due. */
bool rel_waited(const struct rel_tx *tx);

/* tx_loss.c */
/* Mod 2^32, as an ACK has it. */
void rel_note_made_good(struct rel_tx *tx, uint32_t pkts);
/* These outstanding packets are about to be declared lost. */
void rel_count_runs(struct rel_tx *tx, const struct rel_word *w, uint64_t bits);

/* tx.c */
/* Appends to the channel's log, unwrapping the PSN. */
struct rel_train *rel_log_train(struct rel_tx *tx, struct rel_channel *ch, uint32_t psn24,
				uint64_t now_ns);
void rel_count_sent(struct rel_tx *tx, struct rel_channel *ch, struct rel_train *train,
		    uint32_t count);
uint64_t rel_reorder_window_ns(const struct rel_tx *tx, const struct rel_channel *ch);
const struct rel_rtt *rel_channel_rtt(const struct rel_tx *tx, const struct rel_channel *ch);
void rel_rewind(struct rel_tx *tx, struct rel_msg *msg, uint32_t packet);
/* Marks as lost, and queues or covers: bits of one word, last sent on channel. 0 or -ENOMEM. */
int rel_declare_lost(struct rel_tx *tx, const struct rel_word *w, uint64_t bits, uint32_t channel,
		     struct rel_ack_result *out);
/* Drops trains at the head of the log that nothing needs any more. */
void rel_log_trim(struct rel_tx *tx, struct rel_channel *ch);
/* Packets of the train that are outstanding and were last sent by it. */
uint64_t rel_train_live(const struct rel_tx *tx, const struct rel_channel *ch,
			const struct rel_train *train, struct rel_word *w);
void rel_train_pop(struct rel_channel *ch);
uint64_t rel_channel_rto_ns(const struct rel_tx *tx, const struct rel_channel *ch);
/* Untracked packets and repeats count as gone. */
void rel_drop_extra(struct rel_tx *tx);

#endif

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
#include "rel/tx.h"

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
};

/* One train in the log. */
struct rel_train {
	uint64_t psn; /* unwrapped, of its first packet */
	uint64_t sent_ns;
	uint64_t delivered, delivered_ns; /* the channel's when it was sent */
	uint64_t first_sent_ns;
	uint32_t message, first;
	uint8_t n;
	uint8_t extra; /* of them, untracked or acknowledged before they were sent (gbn) */
	bool app_limited;
	bool untracked; /* message and first mean nothing */
	bool resend;	/* not the first transmission of these packets */
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

/* One word of a message: where almost all work happens. */
struct rel_word {
	struct rel_msg *msg;
	struct rel_page *page; /* never NULL */
	uint32_t unit;	       /* of the message */
	uint32_t at;	       /* of the page */
};

/* Everything acknowledged, nothing lost: shared, never written. */
extern struct rel_page rel_page_full;

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
/* We never sent such a packet. */
bool rel_name_is_lie(const struct rel_tx *tx, uint32_t message, uint32_t packet);

/* tx.c */
uint64_t rel_reorder_window_ns(const struct rel_tx *tx, const struct rel_channel *ch);
const struct rel_rtt *rel_channel_rtt(const struct rel_tx *tx, const struct rel_channel *ch);
void rel_rewind(struct rel_tx *tx, struct rel_msg *msg, uint32_t packet);
/* Marks as lost and queues: bits of one word, last sent on channel. 0 or -ENOMEM. */
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ACK.
 *
 *	ACK:  | write_below 4 | made_good 4 | nwindows 1 | windows (runs.h) | nchannels 1 | channels
 *| | ndeficits 1 | deficits | channel: | id 1 | flags 1 | newest_psn 3 | newest_message v |
 *newest_packet v | | age_ns 4 | received v | duplicates v | ce v | host_drops v | newest_message
 *and newest_packet are there only with WIRE_ACK_PACKET_VALID; flags have that, WIRE_ACK_PSN_VALID,
 *or none of the two
 *
 *	deficit: | message 4 | nblocks 1 | first block v | deficit v | then for each further
 *	         block: blocks passed over v | deficit v |
 *	         message is a coded one's (its data), nblocks not 0, a deficit 1 .. 255. Two in a
 *	         row are of one message only where the first has 255 blocks, and the second goes
 *	         on above them
 *
 * An ACK is filled until a byte budget is reached and read without allocation.
 * Knows nothing of which windows matter or how often.
 */
#ifndef SDR_WIRE_ACK_H
#define SDR_WIRE_ACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/runs.h"

#define WIRE_ACK_FIXED_BYTES 11
#define WIRE_ACK_CHANNEL_MAX_BYTES 59
#define WIRE_ACK_MAX_WINDOWS 255
#define WIRE_ACK_MAX_CHANNELS 255
#define WIRE_ACK_MAX_DEFICIT 255
#define WIRE_ACK_DEFICIT_MAX_BYTES 12 /* the first of its message; a further one takes 7 */

/* How the newest packet is named: by its PSN, or where a NIC tells none, by what it carried. */
enum wire_ack_channel_flags { WIRE_ACK_PSN_VALID = 1, WIRE_ACK_PACKET_VALID = 2 };

struct wire_ack_channel {
	uint8_t id;
	uint8_t flags;
	uint32_t newest_psn;	 /* 24 bits; means something with WIRE_ACK_PSN_VALID */
	uint32_t newest_message; /* with WIRE_ACK_PACKET_VALID: whole number; else 0 */
	uint32_t newest_packet;	 /* ... its index */
	uint32_t age_ns;	 /* since it arrived; UINT32_MAX where longer */
	uint64_t received;	 /* distinct packets since the connection's start; so below */
	uint64_t duplicates;
	uint64_t ce;
	uint64_t host_drops;
};

/* An ACK being written. Opaque. */
struct wire_ack_enc {
	uint8_t *buf;
	size_t cap;
	size_t at;
	size_t nwindows_at;
	size_t nchannels_at;	  /* 0: still among the windows */
	size_t ndeficits_at;	  /* 0: not yet among the deficits */
	size_t nblocks_at;	  /* 0: no deficit yet */
	uint32_t message, block;  /* of the last deficit */
	size_t reserved;	  /* for the channels to come, and */
	size_t reserved_deficits; /* for the deficits, their count included */
};

/* Begins a body of at most cap bytes, room for nchannels set aside. 0 or -ENOSPC. */
int wire_ack_begin(struct wire_ack_enc *enc, uint8_t *buf, size_t cap, uint32_t write_below,
		   unsigned int nchannels);

/*
 * Adds a window: as much of [first, first + length) as fits, bit 0 of bits being
 * packet `first`. Returns how many packets it covers; 0: the ACK is full (or length
 * is 0, or first + length beyond 2^32, or a channel was added already).
 */
uint32_t wire_ack_window_from_bits(struct wire_ack_enc *enc, uint32_t message, uint32_t first,
				   uint32_t length, const uint64_t *bits);

/*
 * After the windows and before the deficits. 0, -EINVAL (both flags; a deficit was put already)
 * or -ENOSPC; the first nchannels always fit.
 */
int wire_ack_channel_put(struct wire_ack_enc *enc, const struct wire_ack_channel *channel);

/*
 * After the channels: block `block` of a coded message lacks `deficit` symbols. Those of one
 * message come one after another, their blocks rising. 0; -ENOSPC: the ACK is full, and stays as
 * it was; -EINVAL: deficit 0, above 255, or a block that does not rise. What wire_ack_reserve()
 * set aside is there.
 */
int wire_ack_deficit_put(struct wire_ack_enc *enc, uint32_t message, uint32_t block,
			 uint32_t deficit);
/* Sets room aside for deficits, before the windows fill it: bytes, or what is left. */
void wire_ack_reserve(struct wire_ack_enc *enc, size_t bytes);

/* So many packets were made good by codes at the receiver, ever (mod 2^32); else 0. Any time. */
void wire_ack_made_good(struct wire_ack_enc *enc, uint32_t pkts);

/* The body's length. */
int wire_ack_end(struct wire_ack_enc *enc);

/* An ACK that was checked as a whole; below the counts, the iterators' own. */
struct wire_ack {
	uint32_t write_below;
	uint32_t made_good;
	uint8_t nwindows;
	uint8_t nchannels;
	const uint8_t *window_at_;
	const uint8_t *channel_at_;
	const uint8_t *deficit_at_;
	const uint8_t *end_;
	unsigned int windows_left_;
	unsigned int channels_left_;
	unsigned int deficits_left_; /* messages */
	unsigned int nblocks_, blocks_left_;
	uint32_t message_, block_;
};

/* 0, -EMSGSIZE, -EBADMSG. Points into body. */
int wire_ack_open(const uint8_t *body, size_t len, struct wire_ack *out);

/* 1 and the next, or 0. Windows, channels and deficits may be read in any order of the three. */
int wire_ack_next_window(struct wire_ack *ack, struct wire_window *win);
int wire_ack_next_channel(struct wire_ack *ack, struct wire_ack_channel *out);

struct wire_ack_deficit {
	uint32_t message, block;
	uint32_t deficit; /* 1 .. 255 */
};
/* 1 and the next, or 0. */
int wire_ack_next_deficit(struct wire_ack *ack, struct wire_ack_deficit *out);

/* The same as wire_window_next_run. */
static inline int wire_ack_next_run(struct wire_window *win, uint32_t *first, uint32_t *n,
				    bool *received)
{
	return wire_window_next_run(win, first, n, received);
}

#endif

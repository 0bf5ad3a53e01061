/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Test harness: one rel_tx and one rel_rx joined by random channels in virtual time, with
 * the truth about every packet on the side. Asserts, at each event, what must hold of any
 * scheme on any path; scenarios then assert counts and completion times.
 */
#ifndef SDR_REL_PAIR_H
#define SDR_REL_PAIR_H

#include "base/heap.h"
#include "base/rng.h"
#include "rel/rel.h"

#define PAIR_STEP 2u /* message numbers, as a connection's writes use them */

struct pair_path {
	uint64_t delay_ns;  /* one way */
	uint64_t jitter_ns; /* uniform, per train: reorders */
	double loss, duplicate;
	double burst; /* mean run of losses; 0: each for itself */
};

struct pair_config {
	const char *scheme;
	uint64_t seed;
	uint32_t channels;
	struct pair_path path[REL_MAX_CHANNELS];
	uint64_t ack_delay_ns, ack_jitter_ns;
	double ack_loss, ack_duplicate, ack_garbage;
	uint64_t gap_ns; /* of the line: between packets */
	uint64_t window_pkts;
	uint32_t max_train; /* pieces: 1 .. 64 at random up to this */
	uint32_t messages, first_message;
	uint32_t min_pkts, max_pkts; /* of a message */
	uint32_t granted;	     /* messages open ahead */
	bool unknown_end;	     /* the receive is larger than the message */
	bool by_packet;		     /* a NIC receives: facts name packets, not PSNs */
	/* Faults in time: ACKs lost, data lost, sender's process stopped. */
	uint64_t ack_out_from_ns, ack_out_until_ns;
	uint64_t data_out_from_ns, data_out_until_ns;
	uint64_t pause_from_ns, pause_until_ns;
	uint64_t longer_from_ns, longer_ns; /* from then on each path is longer */
	/* Lose the first `times` sends of this packet, or of `count` ones `step` apart. */
	bool lose_one;
	uint32_t lose_message, lose_packet, lose_times, lose_count, lose_step;
	/* Codes. */
	struct rel_coding coding; /* of each message; code none and no copies: none */
	bool whole_span;	  /* ... from packet 0 to the last */
	bool full_room;		  /* ... as much parity as there can be */
	bool random_coding;
	bool lose_parity;  /* all that nobody asked for */
	uint64_t write_ns; /* from opening until the receiver knows the code; UINT64_MAX: never */
	uint64_t bdp_pkts;
	uint32_t check_every; /* events between rel_tx_check() */
	uint64_t limit_ns;    /* fails if not done by then */
};

struct pair_result {
	uint64_t done_ns;   /* all acknowledged at the sender, since the first send */
	uint64_t true_lost; /* data packets that the path lost */
	uint64_t spurious;  /* resends (not probes, not gbn) whose last one was not lost */
	uint64_t too_soon;  /* resends within the fastest RTT of the last one (not gbn) */
	uint64_t max_inflight;
	size_t max_memory;
	uint64_t blackout_sent; /* packets sent while the sender was stalled */
	uint64_t needless;	/* repairs, though what had arrived or was under way sufficed */
	uint64_t parity_due;	/* what is to be sent unasked: the codings' and the rooms' */
	uint64_t decoded_pkts;
	struct rel_tx_loss loss;
	struct rel_tx_stats tx;
	struct rel_rx_stats rx;
	uint64_t reorder_ns;
	uint64_t samples;     /* round trips */
	uint64_t wrong_dates; /* of them, not those of the newest packet's one transmission */
};

void pair_run(const struct pair_config *config, struct pair_result *out);

/* The seed of the run under way, for messages. */
extern uint64_t pair_seed;

#endif

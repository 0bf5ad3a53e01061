/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a path does to packets, estimated: loss ratio and mean burst, from a sender's counts
 * (rel_tx_loss). Rather high than low: a code that is too weak costs round trips, one that is too
 * strong per cents.
 *
 *	settle	sent less arrived is too high while packets overtake each other, never for long
 *		too low: its least value within a quarter of a round trip is what was lost before
 *		that. What arrives late after all is taken back
 *	slow	what was seen of about the last REL_EST_SLOW_PKTS packets, or bursts' worth of
 *		losses
 *	fast	what was seen since the path last did what the slow one says, or better (CUSUM):
 *		where that is beyond chance, the path became worse, and the fast one is believed.
 *		Halved each REL_EST_FAST_RTTS round trips where it has seen enough, so that it is of
 *		the last few of them; when it has seen much, it takes the slow one's place. A path
 *		that became better is believed when the slow one has forgotten
 *
 * Chance is counted in bursts, not in packets: what is lost together is one event. What is told is
 * the estimate and a standard deviation more; n packets without loss are a loss of about 1 / n.
 *
 * A prior (what the path is known to do) counts as packets seen. Before anything was seen the
 * loss is REL_EST_UNKNOWN. Times are as rel.h's. No memory, no I/O.
 */
#ifndef SDR_REL_EST_H
#define SDR_REL_EST_H

#include "rel/tx.h"

#define REL_EST_UNKNOWN 1e-3	   /* of a path that nothing is known of ... */
#define REL_EST_UNKNOWN_BURST 8.0  /* ... and its bursts */
#define REL_EST_SLOW_PKTS 4000000u /* forgotten by halves beyond so many ... */
#define REL_EST_SLOW_LOSSES 1000u  /* ... or so many bursts of losses, whichever comes first */
#define REL_EST_FAST_RTTS 8u

/* What was seen of some packets. */
struct rel_est_seen {
	double pkts, lost;
	double runs, run_pkts; /* of those that were declared lost, for the burst */
};

/* Invariants: no field of `slow` and `fast` is negative; excess is in 0 .. its bound. */
struct rel_est {
	struct rel_tx_loss last; /* the counts when they last moved */
	struct rel_est_seen slow, fast;
	struct rel_est_seen recent; /* runs of the last round trips, whoever they are counted to */
	double excess;		    /* how far the fast one is beyond chance: in bursts, by CUSUM */
	double credit;		    /* arrived beyond what had passed: of losses to come */
	double prior;		    /* packets' worth of not knowing; 0: a prior was told */
	double burst;		    /* before any was seen */
	double slow_most;	    /* packets: twice a prior's, where that is worth more */
	double low_lost;	    /* the least of sent less arrived since epoch_ns */
	double settled_pkts, settled_lost;
	uint64_t epoch_pkts;
	uint64_t epoch_ns, moved_ns, fast_since_ns, recent_since_ns;
	uint64_t changed_ns; /* since when it is another path; 0: it is not */
	bool open;	     /* an epoch is */
};

/* loss 0: nothing is known; burst 0: 1. What is not a number counts as 0. */
void rel_est_init(struct rel_est *e, double loss, double burst_pkts);
/* The counts now; look as often as you like, at least once a round trip. */
void rel_est_update(struct rel_est *e, const struct rel_tx_loss *now, uint64_t rtt_ns,
		    uint64_t now_ns);
/* 0 < loss < 1, burst >= 1. */
void rel_est_get(const struct rel_est *e, double *loss, double *burst_pkts);
/* The fast one says that it is another path now than the slow one knows. */
bool rel_est_changed(const struct rel_est *e);

#endif

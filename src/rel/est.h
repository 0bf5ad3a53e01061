/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a path does to packets, estimated: loss ratio and mean burst, from a sender's counts
 * (rel_tx_loss). Rather high than low: a code that is too weak costs round trips, one that is too
 * strong per cents.
 *
 *	slow	what was seen of about the last REL_EST_SLOW_PKTS packets or losses' worth of them
 *	fast	the last few round trips: a path that became worse is believed as soon as that is
 *		beyond chance; one that became better, when the slow one has forgotten
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
#define REL_EST_SLOW_LOSSES 1000u  /* ... or so many losses, whichever comes first */

struct rel_est {
	struct rel_tx_loss last; /* the counts when they were last looked at */
	double slow_pkts, slow_lost, slow_runs, slow_run_pkts;
	double fast_pkts, fast_lost, fast_runs, fast_run_pkts;
	uint64_t fast_since_ns, last_ns;
	bool any; /* something was seen, or told */
};

/* loss 0: nothing is known; burst 0: 1. */
void rel_est_init(struct rel_est *e, double loss, double burst_pkts);
/* The counts now; look as often as you like, at least once a round trip. */
void rel_est_update(struct rel_est *e, const struct rel_tx_loss *now, uint64_t rtt_ns,
		    uint64_t now_ns);
/* 0 < loss < 1, burst >= 1. */
void rel_est_get(const struct rel_est *e, double *loss, double *burst_pkts);
/* The fast one says that it is another path now than the slow one knows. */
bool rel_est_changed(const struct rel_est *e);

#endif

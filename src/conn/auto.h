/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which scheme a write gets. Fixed schemes are what they say; auto keeps an estimate of the path
 * (rel/est.h) and a table by size (plan/table.h), which is remade every AUTO_TABLE_NS, at once when
 * the path became worse, and when it has been better for AUTO_CALM_NS: a path that changes every
 * second keeps the table of its worse half. Every choice can be explained. Knows nothing of
 * packets and of how parity travels.
 */
#ifndef SDR_CONN_AUTO_H
#define SDR_CONN_AUTO_H

#include "plan/table.h"
#include "rel/est.h"
#include "rel/rel.h"

#define AUTO_TABLE_NS (5 * UINT64_C(1000000000))
#define AUTO_CALM_NS (2 * UINT64_C(1000000000))
#define AUTO_AGAIN_NS (20 * UINT64_C(1000000)) /* at the soonest: a table costs a millisecond */
/* Too little parity costs more than too much: of what was measured, but where much is lost each
 * per cent is measured well, and costs. */
#define AUTO_LOSS_FACTOR 2.0
#define AUTO_LOSS_ABOVE 0.02
/* Bursts, where they were not told of: at least so long, until so many were seen. */
#define AUTO_BURST_MIN 16.0
#define AUTO_BURSTS_SEEN 200.0
#define AUTO_BURST_SEEN_MIN 4.0
/* What was told is believed until the path loses so many times as much, or bursts are so many times
 * as long, or it loses so little of that. */
#define AUTO_TOLD_MORE 2.0
#define AUTO_TOLD_LESS 0.1
/* A path that nothing is known of yet. */
#define AUTO_RTT_GUESS_NS UINT64_C(10000000)
#define AUTO_RATE_GUESS_BPS UINT64_C(10000000000)

/* What is known of the path besides losses. */
struct auto_path {
	uint64_t rtt_ns;   /* smallest; 0: not known */
	uint64_t rate_bps; /* payload; 0: not known */
	uint32_t payload;
};

struct auto_state {
	struct rel_params scheme;
	struct rel_est est;
	bool told; /* loss and burst came from the application: used as they are ... */
	double told_loss, told_burst;
	struct plan_table table;     /* of a fixed scheme: only what it was made for ... */
	struct plan_table_row fixed; /* ... and the margins and gap that go with that */
	bool table_made;
	uint64_t table_ns, better_since_ns;
	struct auto_path path;	  /* that the table was made for */
	uint64_t decisions;	  /* tables that differed from the one before */
	char why[PLAN_TABLE_SAY]; /* of the last write */
};

void auto_init(struct auto_state *a, const struct rel_params *scheme, double loss,
	       double burst_pkts);
void auto_scheme_set(struct auto_state *a, const struct rel_params *scheme);
/* Looks at the counts and remakes the table where it is due. Cheap; as often as you like. */
void auto_update(struct auto_state *a, const struct rel_tx_loss *loss, const struct auto_path *path,
		 uint64_t now_ns);
/*
 * What a write of `pkts` data packets gets, with at most `room` parity packets: fills *coding
 * (code none where it goes without) and *as, the fixed scheme that this amounts to. Also for fixed
 * schemes: spans, margins and gaps depend on the path.
 */
void auto_choose(struct auto_state *a, uint32_t pkts, uint32_t room, struct rel_coding *coding,
		 struct rel_params *as);
/* Whether a write of that size will want parity, and how many packets of it: what to reserve. */
uint32_t auto_parity_pkts(const struct auto_state *a, uint64_t pkts);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which scheme a write gets. Fixed schemes are what they say; auto keeps an estimate of the path
 * (rel/est.h) and a table by size (plan/table.h), which is remade every AUTO_TABLE_NS, at once when
 * the path became worse, and after AUTO_CALM_NS when it became better. Every choice can be
 * explained. Knows nothing of packets and of how parity travels.
 */
#ifndef SDR_CONN_AUTO_H
#define SDR_CONN_AUTO_H

#include "plan/table.h"
#include "rel/est.h"
#include "rel/rel.h"

#define AUTO_TABLE_NS (5 * UINT64_C(1000000000))
#define AUTO_CALM_NS (2 * UINT64_C(1000000000))
#define AUTO_LOSS_FACTOR 2.0 /* of what was measured: too little parity costs more */
#define AUTO_BURST_MIN 16.0  /* packets; where bursts were not told of */

/* What is known of the path besides losses. */
struct auto_path {
	uint64_t rtt_ns;   /* smallest; 0: not known */
	uint64_t rate_bps; /* payload; 0: not known */
	uint32_t payload;
};

struct auto_state {
	struct rel_params scheme;
	struct rel_est est;
	bool told; /* loss and burst came from the application: used as they are */
	struct plan_table table;
	bool table_made;
	uint64_t table_ns, better_since_ns;
	struct auto_path path; /* that the table was made for */
	uint64_t decisions;
	char why[160]; /* of the last write */
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

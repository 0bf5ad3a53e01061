/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auto: which scheme each write gets on a link, by its size. A table of rows, one for each power
 * of two of packets, made from what is known of the link (hybrid.h's rule, held to a budget of
 * parity); made in well under a millisecond, so it can be remade whenever the link changes.
 *
 * What is fed in should be high rather than low: the owner doubles the loss that it measures and
 * takes bursts of at least 16 packets, unless it was told what the link does.
 */
#ifndef SDR_PLAN_TABLE_H
#define SDR_PLAN_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "plan/plan.h"

#define PLAN_TABLE_ROWS 33u /* of 1, 2, 4 .. 2^32 packets */
#define PLAN_TABLE_MARGINS 8u
/* Parity may take so much of a message, but for messages of so few packets. */
#define PLAN_TABLE_OVERHEAD_MAX 0.30
#define PLAN_TABLE_FEW_PKTS 16u
#define PLAN_TABLE_FEW_PARITY 4u /* these may have as much as they are, or so many */
/* A link that loses so little is clean: parity may take a hundredth, less what repairs take. */
#define PLAN_TABLE_CLEAN_LOSS 2e-6
#define PLAN_TABLE_CLEAN_OVERHEAD 0.0095
/* Where fewer messages than this lose anything, none has parity: no quantile sees it. */
#define PLAN_TABLE_RARE 5e-4

/* Why a row is what it is. */
enum plan_table_why {
	PLAN_WHY_RARE,	   /* loss is so rare that parity would cost more than it saves */
	PLAN_WHY_SHORT,	   /* the path is so short that a resend costs no more than parity */
	PLAN_WHY_MODEL,	   /* m as the model weighs parity against an exposed round trip */
	PLAN_WHY_BUDGET,   /* the model wants more parity than the budget allows */
	PLAN_WHY_POLICY,   /* a rule of thumb */
	PLAN_WHY_HOPELESS, /* loss beyond what a block survives: resends, with copies */
};

struct plan_table_row {
	bool coded;
	uint32_t k, m, depth;
	uint64_t span; /* coded packets at the end; the whole message where it is shorter */
	uint32_t copies;
	bool xor_code, fresh;
	uint64_t gap_pkts; /* between copies, and between repair units of a block */
	uint8_t margin[PLAN_TABLE_MARGINS]; /* as rel_coding's */
	enum plan_table_why why;
	uint32_t rule; /* with PLAN_WHY_POLICY: enum plan_rule */
};

struct plan_table {
	struct plan_link link; /* what it was made for */
	bool sure;
	uint32_t packet_bytes;
	bool by_policy;
	struct plan_table_row row[PLAN_TABLE_ROWS];
};

/*
 * 0, or -EINVAL: a value out of plan.h's ranges. No memory, no simulation. sure: the link does
 * what *link says; else it is an estimate, high rather than low: losses may come one by one where
 * it says bursts, and bursts may be longer than it says, so blocks are interleaved
 * PLAN_TABLE_DEPTH deep at least.
 */
#define PLAN_TABLE_DEPTH 64u
/* Less is never taken: parity goes out in trains, and that of fewer groups waits for no losses. */
#define PLAN_TABLE_DEPTH_LEAST 16u
int plan_table_make(const struct plan_link *link, bool sure, uint32_t packet_bytes, bool by_policy,
		    struct plan_table *out);
/* The row for a message of that many packets (1 or more). */
const struct plan_table_row *plan_table_find(const struct plan_table *t, uint64_t pkts);
/*
 * The same fitted to that message: blocks of one size, no more of them than it fills, parity of
 * all that it sends within the budget.
 */
void plan_table_fit(const struct plan_table *t, uint64_t pkts, struct plan_table_row *out);
/* A fixed scheme's margins and gap, from what is known of the link: fills those of *row. */
void plan_table_margins(const struct plan_link *link, uint32_t packet_bytes,
			struct plan_table_row *row);
/*
 * Whether what a link does now is so far from what the table was made for that it should be remade
 * at once: loss, burst, round trip or rate moved by more than a factor (1.5; loss 2), up or, held
 * for longer by the caller, down.
 */
enum plan_drift { PLAN_DRIFT_NONE, PLAN_DRIFT_DOWN, PLAN_DRIFT_UP };
enum plan_drift plan_table_drift(const struct plan_table *t, const struct plan_link *now);
/* Why, in a few words: "an exposed round trip costs more". */
const char *plan_table_reason(const struct plan_table_row *row);
/*
 * The same with all that it was made from, for a person: "loss 1.0e-03 in bursts of 8, 25.0 ms,
 * 400 Gbit/s, 32768 packets: (128,5) on all, depth 32, late resends 3 times: an exposed ...".
 * Returns its length, as snprintf() does.
 */
#define PLAN_TABLE_SAY 256
int plan_table_say(const struct plan_table *t, uint64_t pkts, char *buf, size_t len);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheme names as `sdr sim` and `sdr plan` take them, and what they are in the engine and in the
 * model. All that sdr_scheme_parse() takes, under the name that sdr_scheme_name() gives it; and
 * the paper's receiver of erasure codes, which the engine does not have:
 *
 *	ec-paper:K,M  ec-xor-paper:K,M   with ,depth=N ,rto=N ,beta=N
 *
 * L submessages of K data and M parity units, 2L one-shot sends; the receiver waits until all
 * could be there and beta more round trips (its fallback timeout), then has failed submessages
 * sent again by selective repeat with a timer of rto round trips. Resends delay no first sends
 * (plan/plan.h, PLAN_PAPER). The paper's: rto=3, beta=1.
 */
#ifndef SDR_TOOL_SIM_SCHEME_H
#define SDR_TOOL_SIM_SCHEME_H

#include "plan/plan.h"

#include <sdr/conn.h>

#include <stdbool.h>
#include <stddef.h>

#define SIM_SCHEME_NAME 112u

struct sim_scheme {
	char name[SIM_SCHEME_NAME]; /* canonical */
	bool in_engine, in_model;
	bool paper;		   /* drawn as the paper reads its model */
	struct sdr_scheme engine;  /* where in_engine */
	struct plan_params params; /* paper: what was given; else its scheme only (not of auto) */
};

/* 0, or -1 with why[len]. */
int scheme_parse(const char *text, struct sim_scheme *out, char *why, size_t len);
/* The model's parameters on this link; only where in_model. */
void scheme_params(const struct sim_scheme *s, const struct plan_link *link,
		   const struct plan_job *job, struct plan_params *out);
/* Whether it chooses anew for each link and size, by what it is told or learns: auto. */
bool scheme_chooses(const struct sim_scheme *s);
/* What auto takes there if it is told what the link does, and why, for a person; returns buf. */
#define SCHEME_WHY 256
char *scheme_why(const struct sim_scheme *s, const struct plan_link *link,
		 const struct plan_job *job, char buf[SCHEME_WHY]);
/*
 * Whether the model's answer stands for what the engine does: not where the engine's timer
 * follows the variance that it measures, which the model has no parameter for.
 */
bool scheme_predictable(const struct sim_scheme *s);
/*
 * The other way: what the model's parameters are called, in schemes of the engine: sdr sim takes
 * it, and connections. What the engine has no room for (more than 16 copies) is cut.
 */
void scheme_of_params(const struct plan_params *p, const struct plan_link *link,
		      const struct plan_job *job, char name[SIM_SCHEME_NAME]);
/*
 * Where the item ends that begins here: a comma inside a scheme's parameters is followed by
 * a digit or NAME=.
 */
size_t scheme_item_len(const char *text);

#endif

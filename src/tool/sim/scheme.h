/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheme names with their parameters, as `sdr sim` takes them, and what they are in the
 * engine and in the model. The engine's names are those that it gives itself.
 *
 *	gbn, sr, sr-nack, each with :rto=N or :rto=dyn        (the engine's)
 *	ec:K,M  ec-xor:K,M  with ,depth=N ,rto=N ,beta=N      (the model's)
 *	hybrid  hybrid:K,M  with ,depth=N ,span=N ,copies=N
 */
#ifndef SDR_TOOL_SIM_SCHEME_H
#define SDR_TOOL_SIM_SCHEME_H

#include "plan/plan.h"

#include <stdbool.h>
#include <stddef.h>

#define SIM_SCHEME_NAME 64u

/* Model parameters that were given; the others are the model's defaults for the link. */
enum {
	SCHEME_HAS_CODE = 1u << 0,
	SCHEME_HAS_DEPTH = 1u << 1,
	SCHEME_HAS_RTO = 1u << 2,
	SCHEME_HAS_BETA = 1u << 3,
	SCHEME_HAS_SPAN = 1u << 4,
	SCHEME_HAS_COPIES = 1u << 5,
};

struct sim_scheme {
	char name[SIM_SCHEME_NAME];
	bool in_engine, in_model;
	unsigned int given;
	struct plan_params params; /* what was given */
};

/*
 * 0, or -1 with why[len]. Whether the engine takes the parameters of its own schemes, only
 * it can say: ask engine_check().
 */
int scheme_parse(const char *text, struct sim_scheme *out, char *why, size_t len);
/* The model's parameters on this link; only where in_model. */
void scheme_params(const struct sim_scheme *s, const struct plan_link *link,
		   const struct plan_job *job, struct plan_params *out);
/*
 * Whether the model's answer stands for what the engine does: not where the engine's timer
 * follows the variance that it measures, which the model has no parameter for.
 */
bool scheme_predictable(const struct sim_scheme *s);
/*
 * Where the item ends that begins here: a comma inside a scheme's parameters is followed by
 * a digit or NAME=.
 */
size_t scheme_item_len(const char *text);

#endif

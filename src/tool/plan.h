/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sdr plan: between what was asked (plan.c) and how the answer looks (plan_print.c).
 */
#ifndef SDR_TOOL_PLAN_H
#define SDR_TOOL_PLAN_H

#include "plan/choose.h"

#include <stdbool.h>

/* One size's answer: best first; `policy` is what the rules of thumb would take. */
struct plan_answer {
	struct plan_link link;
	struct plan_job job;
	enum plan_goal goal;
	struct plan_facts facts;
	struct plan_choice choice[PLAN_CHOICES];
	uint32_t count;
	bool policy;	     /* the rules of thumb were asked for: choice[0] is theirs ... */
	enum plan_rule rule; /* ... by this rule, and what the model chose follows */
};

#define PLAN_NAME 48
/* "ec:32,8", "hybrid:128,5,depth=4": with the parameters; returns buf. */
char *plan_name(char buf[PLAN_NAME], const struct plan_params *p);
/* Whether connections of this build can use it. */
bool plan_in_engine(enum plan_scheme scheme);
/* Lines for a person. */
void plan_print(const struct plan_answer *a);
/* Objects of the array that is open in j. */
struct json;
void plan_print_json(struct json *j, const struct plan_answer *a);

#endif

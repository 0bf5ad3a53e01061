/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sdr plan: between what was asked (plan.c) and how the answer looks (plan_print.c, and
 * plan_plot.c for a chart).
 */
#ifndef SDR_TOOL_PLAN_H
#define SDR_TOOL_PLAN_H

#include "plan/choose.h"
#include "plan/cpu.h"
#include "tool/opts.h"
#include "tool/sim/scheme.h"

#include <stdbool.h>

/* One size's answer: best first; `policy` is what the rules of thumb would take. */
struct plan_answer {
	struct plan_link link;
	struct plan_job job;
	enum plan_goal goal;
	double code_rate; /* bytes a second of (32,8) a core; 0: as measured */
	struct plan_facts facts;
	struct plan_choice choice[PLAN_CHOICES];
	uint32_t count;
	bool policy;		  /* the rules of thumb were asked for: choice[0] is theirs ... */
	enum plan_rule rule;	  /* ... by this rule, and what the model chose follows */
	bool fixed;		  /* one scheme was given with its parameters ... */
	struct sim_scheme scheme; /* ... this */
};

struct plan_request {
	struct plan_answer answer; /* link, job and goal are filled; one size at a time */
	struct size_list sizes;
	int only; /* a scheme whose best parameters are wanted, or -1 */
};

/* Fills the answer for this link, and this size and the rest of its job. 0, or -1 having said why.
 */
int plan_ask(struct plan_request *q, uint64_t bytes);

#define PLAN_NAME SIM_SCHEME_NAME
/* "ec:32,8", "hybrid:k=128,m=5,depth=4": as sdr sim and connections take it; returns buf. */
char *plan_name(char buf[PLAN_NAME], const struct plan_answer *a, const struct plan_choice *c);
/* "mean", "99 %", "99.9 %" */
const char *plan_goal_name(enum plan_goal goal);
/* Too few samples have no p99.9. */
bool plan_has_p999(const struct plan_result *r);
/* Lines for a person. */
void plan_print(const struct plan_answer *a);
/* Of many sizes, those at which the rules of thumb differ: head, a line of each, foot. */
void plan_print_rules_head(const struct plan_answer *a);
bool plan_print_rules_line(const struct plan_answer *a);
void plan_print_rules_foot(size_t differ, size_t sizes);
/*
 * Completion over the sizes that were asked for, or over loss if there is one size. 0, or -1
 * having said why. Changes q->answer.
 */
int plan_plot(struct plan_request *q, const char *path);
/*
 * --table, of plan_rows.c: what auto takes for each size, told the link; and a heat map over the
 * sizes and loss: how many times as long the rules of thumb take. 0, or -1 having said why.
 */
int plan_rows(struct plan_request *q, bool as_json);
int plan_rows_plot(struct plan_request *q, const char *path);
/* Objects of the array that is open in j. */
struct json;
void plan_print_json(struct json *j, const struct plan_answer *a);

#endif

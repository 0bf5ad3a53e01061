// SPDX-License-Identifier: Apache-2.0
/*
 * sdr plan's answer as a table with a sentence of reasons, and as JSON. Computes nothing but
 * words; see plan.h.
 */
#include "tool/plan.h"

#include "tool/json.h"
#include "tool/say.h"

#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const goal_names[] = {
	[PLAN_FOR_MEAN] = "mean",
	[PLAN_FOR_P99] = "99 %",
	[PLAN_FOR_P999] = "99.9 %",
};

static bool has_code(const struct plan_params *p)
{
	return p->scheme == PLAN_EC || p->scheme == PLAN_EC_XOR || p->scheme == PLAN_HYBRID;
}

char *plan_name(char buf[PLAN_NAME], const struct plan_answer *a, const struct plan_choice *c)
{
	if (a->fixed)
		strcpy(buf, a->scheme.name);
	else
		scheme_of_params(&c->params, &a->link, &a->job, buf);
	return buf;
}

#define RUNS_FOR_P999 2000u
#define CONFIDENCE 1.96 /* standard errors to 95 % */

bool plan_has_p999(const struct plan_result *r)
{
	return r->samples == 0 || r->samples >= RUNS_FOR_P999;
}

const char *plan_goal_name(enum plan_goal goal)
{
	return goal_names[goal];
}

static struct plan_cpu cpu_of(const struct plan_answer *a, const struct plan_choice *c)
{
	struct plan_cpu cpu;

	plan_cpu(&a->link, &a->job, &c->params, c->result.unit_loss, a->code_rate, &cpu);
	return cpu;
}

static char *seconds(char buf[UNITS_TEXT], double s)
{
	return units_time_text(buf, (uint64_t)llround(s * 1e9));
}

static void print_row(const struct plan_answer *a, const struct plan_choice *c)
{
	const struct plan_result *r = &c->result;
	struct plan_cpu cpu = cpu_of(a, c);
	char name[PLAN_NAME], mean[UNITS_TEXT], p99[UNITS_TEXT], p999[UNITS_TEXT],
		memory[UNITS_TEXT], cores[16] = "-";

	if (cpu.cores > 0)
		snprintf(cores, sizeof cores, "%.2g", cpu.cores);
	out("%-38s %9s %9s %9s %8.2f %9.2f %% %10s %6s", plan_name(name, a, c),
	    seconds(mean, r->mean_s), seconds(p99, r->p99_s),
	    plan_has_p999(r) ? seconds(p999, r->p999_s) : "-", c->goal_s / r->lossless_s,
	    r->overhead * 100, units_size_text(memory, c->memory_bytes), cores);
}

/* "One in 250 such messages loses" */
static const char *who_loses(char *buf, size_t cap, double p)
{
	if (p > 0.995)
		snprintf(buf, cap, "Practically all such messages lose");
	else if (p >= 0.01)
		snprintf(buf, cap,
			 p < 0.1 ? "%.2g %% of such messages lose"
				 : "%.0f %% of such messages lose",
			 p * 100);
	else if (p > 1e-9)
		snprintf(buf, cap, "One in %.0f such messages loses", 1 / p);
	else
		snprintf(buf, cap, "Hardly any such message loses");
	return buf;
}

static void say_losses(const struct plan_answer *a)
{
	char who[64], rtt[UNITS_TEXT];

	if (a->link.loss <= 0) {
		out("Nothing is lost on this link, so whatever is sent beyond the message is "
		    "waste.");
		return;
	}
	out("%s something of the last round trip, and each time that costs a resend at least "
	    "another %s.",
	    who_loses(who, sizeof who, a->facts.tail_loss), seconds(rtt, a->link.rtt_s));
}

#define PERCENT 32
/* Of a part: "3.9 %", "less than 0.01 %"; returns buf. */
static char *percent(char buf[PERCENT], double part)
{
	if (part < 1e-4)
		snprintf(buf, PERCENT, "less than 0.01 %%");
	else
		snprintf(buf, PERCENT, part < 0.1 ? "%.2g %%" : "%.0f %%", part * 100);
	return buf;
}

static void say_winner(const struct plan_answer *a)
{
	const struct plan_choice *best = &a->choice[0];
	bool coded = has_code(&best->params);
	double slower = best->goal_s / best->result.lossless_s - 1;
	char name[PLAN_NAME], more[PERCENT], above[PERCENT];

	plan_name(name, a, best);
	percent(more, best->result.overhead);
	percent(above, slower);
	if (a->link.loss <= 0)
		return;
	if (coded && best->params.m == 0)
		out("At so much loss no parity pays; %s sends late resends %u times: %s above "
		    "lossless.",
		    name, best->params.copies, above);
	else if (coded && best->params.scheme == PLAN_HYBRID)
		out("%s repairs those from parity over the last round trip (%s more bytes in all) "
		    "and resends the others while it still sends: %s above lossless.",
		    name, more, above);
	else if (coded)
		out("%s repairs them where they arrive, for %s more bytes: %s above lossless.",
		    name, more, above);
	else
		out("That is too seldom, or too little beside the %.3g s of sending, to pay for "
		    "parity: %s is %s above lossless.",
		    a->facts.inject_s, name, above);
	if (a->facts.burst_units > 1.5 && coded && best->params.depth > 1)
		out("Losses come %.3g at a time; %u blocks are interleaved so that no burst takes "
		    "one block's share.",
		    a->facts.burst_units, best->params.depth);
}

/* Codes that need more than a core are worth a word. */
static void say_cores(const struct plan_answer *a)
{
	struct plan_cpu cpu = cpu_of(a, &a->choice[0]);
	char rate[UNITS_TEXT], busy[UNITS_TEXT];

	if (cpu.cores < 1)
		return;
	out("Its code keeps about %.2g cores busy at the sender while what it codes goes out at "
	    "%s: %s of one core a message.",
	    cpu.cores, units_rate_text(rate, a->link.bw_bps), seconds(busy, cpu.send_s));
}

static void say_rule(const struct plan_answer *a)
{
	static const char *const rules[] = {
		[PLAN_RULE_HEAVY_LOSS] = "above 5 % loss: selective repeat, in smaller batches",
		[PLAN_RULE_LOSSY] = "above 10 ms and 1e-4 loss: a code, by distance",
		[PLAN_RULE_SMALL] = "below 32 MiB: selective repeat",
		[PLAN_RULE_LARGE] = "from 1 GiB: a code between (16,4) and (32,8)",
		[PLAN_RULE_MIDDLE] = "from 32 MiB to 1 GiB: a code, by distance and loss",
	};
	char name[PLAN_NAME];

	out("Rule of thumb: %s.", rules[a->rule]);
	out("The model would take %s: the rule's choice takes %.3g times as long (%s).",
	    plan_name(name, a, &a->choice[1]), a->choice[0].goal_s / a->choice[1].goal_s,
	    goal_names[a->goal]);
}

static void print_few_samples(const struct plan_answer *a)
{
	for (uint32_t i = 0; i < a->count; i++) {
		if (plan_has_p999(&a->choice[i].result))
			continue;
		out("-: %u simulated messages are too few for 99.9 %% (--for p999 takes more).",
		    a->choice[i].result.samples);
		return;
	}
}

/* What auto takes, and why. */
static void say_auto(const struct plan_answer *a)
{
	char name[SIM_SCHEME_NAME], why[SCHEME_WHY];

	scheme_of_params(&a->choice[0].params, &a->link, &a->job, name);
	out("It takes %s: %s.", name, scheme_why(&a->scheme, &a->link, &a->job, why));
}

void plan_print(const struct plan_answer *a)
{
	const struct plan_result *r = &a->choice[0].result;
	char size[UNITS_TEXT], rtt[UNITS_TEXT], rate[UNITS_TEXT], lossless[UNITS_TEXT],
		limit[UNITS_TEXT];

	out("%s, %s at %s, loss %g: lossless %s, at best %s; ranked by %s",
	    units_size_text(size, a->job.bytes), seconds(rtt, a->link.rtt_s),
	    units_rate_text(rate, a->link.bw_bps), a->link.loss, seconds(lossless, r->lossless_s),
	    seconds(limit, r->limit_s), goal_names[a->goal]);
	out("%-38s %9s %9s %9s %8s %11s %10s %6s", "SCHEME", "MEAN", "99 %", "99.9 %", "LOSSLESS",
	    "EXTRA", "MEMORY", "CORES");
	for (uint32_t i = 0; i < a->count; i++)
		print_row(a, &a->choice[i]);
	if (a->fixed && scheme_chooses(&a->scheme)) {
		say_auto(a);
	} else if (a->policy) {
		say_rule(a);
	} else {
		say_losses(a);
		say_winner(a);
	}
	say_cores(a);
	print_few_samples(a);
}

/* ---- where the rules of thumb part from the model ---------------------------------- */

void plan_print_rules_head(const struct plan_answer *a)
{
	char rtt[UNITS_TEXT], rate[UNITS_TEXT];

	out("%s at %s, loss %g: rules of thumb against the model, by %s",
	    seconds(rtt, a->link.rtt_s), units_rate_text(rate, a->link.bw_bps), a->link.loss,
	    goal_names[a->goal]);
	out("%-10s %-14s %9s   %-38s %9s %7s", "SIZE", "RULE", "TIME", "MODEL", "TIME", "SLOWER");
}

bool plan_print_rules_line(const struct plan_answer *a)
{
	const struct plan_choice *rule = &a->choice[0], *model = &a->choice[1];
	char size[UNITS_TEXT], rules[PLAN_NAME], models[PLAN_NAME], slow[UNITS_TEXT],
		fast[UNITS_TEXT];

	plan_name(rules, a, rule);
	plan_name(models, a, model);
	if (strcmp(rules, models) == 0)
		return false;
	out("%-10s %-14s %9s   %-38s %9s %7.2f", units_size_text(size, a->job.bytes), rules,
	    seconds(slow, rule->goal_s), models, seconds(fast, model->goal_s),
	    rule->goal_s / model->goal_s);
	return true;
}

void plan_print_rules_foot(size_t differ, size_t sizes)
{
	out("They differ at %zu of %zu sizes; SLOWER is how many times as long the rule's choice "
	    "takes.",
	    differ, sizes);
}

/* ---- JSON ------------------------------------------------------------------------------ */

static void json_cost(struct json *j, const struct plan_answer *a, const struct plan_choice *c)
{
	struct plan_cpu cpu = cpu_of(a, c);

	json_uint(j, "memory_bytes", c->memory_bytes);
	json_real(j, "cpu_s", cpu.send_s);
	json_real(j, "cpu_receive_s", cpu.receive_s);
	json_real(j, "cores", cpu.cores);
}

static void json_choice(struct json *j, const struct plan_answer *a, const struct plan_choice *c)
{
	const struct plan_params *p = &c->params;
	const struct plan_result *r = &c->result;
	char name[PLAN_NAME], why[SCHEME_WHY];

	json_object_begin(j, NULL);
	json_text(j, "scheme", plan_name(name, a, c));
	json_text(j, "kind", plan_scheme_name(p->scheme));
	json_uint(j, "bytes", a->job.bytes);
	json_real(j, "mean_s", r->mean_s);
	json_real(j, "mean_lo_s", r->mean_s - CONFIDENCE * r->stderr_s);
	json_real(j, "mean_hi_s", r->mean_s + CONFIDENCE * r->stderr_s);
	json_real(j, "p50_s", r->p50_s);
	json_real(j, "p99_s", r->p99_s);
	json_real(j, "p999_s", plan_has_p999(r) ? r->p999_s : NAN);
	json_real(j, "lossless_s", r->lossless_s);
	json_real(j, "limit_s", r->limit_s);
	json_real(j, "overhead", r->overhead);
	json_uint(j, "runs", r->samples);
	json_text(j, "engine", "model");
	json_text(j, "policy", a->policy && c == &a->choice[0] ? "table" : "model");
	json_cost(j, a, c);
	if (a->fixed && scheme_chooses(&a->scheme)) {
		scheme_of_params(p, &a->link, &a->job, name);
		json_text(j, "takes", name);
		json_text(j, "why", scheme_why(&a->scheme, &a->link, &a->job, why));
	}
	json_bool(j, "available", !a->fixed || a->scheme.in_engine);
	if (has_code(p)) {
		json_uint(j, "k", p->k);
		json_uint(j, "m", p->m);
		json_uint(j, "depth", p->depth);
		json_real(j, "p_fallback", r->p_fallback);
	}
	if (p->scheme == PLAN_HYBRID) {
		json_uint(j, "span", p->span);
		json_uint(j, "copies", p->copies);
	} else {
		json_real(j, "rto_rtts", p->rto_rtts);
	}
	json_object_end(j);
}

void plan_print_json(struct json *j, const struct plan_answer *a)
{
	for (uint32_t i = 0; i < a->count; i++)
		json_choice(j, a, &a->choice[i]);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * sdr plan's answer as a table with a sentence of reasons, and as JSON. Computes nothing but
 * words; see plan.h.
 */
#include "tool/plan.h"

#include "tool/json.h"
#include "tool/say.h"

#include "base/units.h"

#include <sdr/conn.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const goal_names[] = {
	[PLAN_FOR_MEAN] = "mean",
	[PLAN_FOR_P99] = "99 %",
	[PLAN_FOR_P999] = "99.9 %",
};

char *plan_name(char buf[PLAN_NAME], const struct plan_params *p)
{
	const char *name = plan_scheme_name(p->scheme);

	if (p->scheme == PLAN_SR || p->scheme == PLAN_SR_NACK)
		snprintf(buf, PLAN_NAME, "%s", name);
	else if (p->depth > 1)
		snprintf(buf, PLAN_NAME, "%s:%u,%u,depth=%u", name, p->k, p->m, p->depth);
	else
		snprintf(buf, PLAN_NAME, "%s:%u,%u", name, p->k, p->m);
	return buf;
}

bool plan_in_engine(enum plan_scheme scheme)
{
	for (const char *const *name = sdr_scheme_names(); *name; name++) {
		if (strcmp(*name, plan_scheme_name(scheme)) == 0)
			return true;
	}
	return false;
}

static char *seconds(char buf[UNITS_TEXT], double s)
{
	return units_time_text(buf, (uint64_t)llround(s * 1e9));
}

static void print_row(const struct plan_choice *c)
{
	const struct plan_result *r = &c->result;
	char name[PLAN_NAME], mean[UNITS_TEXT], p99[UNITS_TEXT], p999[UNITS_TEXT],
		memory[UNITS_TEXT];

	out("%-24s %9s %9s %9s %8.2f %9.2f %% %10s%s", plan_name(name, &c->params),
	    seconds(mean, r->mean_s), seconds(p99, r->p99_s), seconds(p999, r->p999_s),
	    c->goal_s / r->lossless_s, r->overhead * 100, units_size_text(memory, c->memory_bytes),
	    plan_in_engine(c->params.scheme) ? "" : "  (planned)");
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
	bool coded = best->params.scheme != PLAN_SR && best->params.scheme != PLAN_SR_NACK;
	double slower = best->goal_s / best->result.lossless_s - 1;
	char name[PLAN_NAME], more[PERCENT], above[PERCENT];

	plan_name(name, &best->params);
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

/* The first that a connection of this release can use, if that is not the first. */
static void say_today(const struct plan_answer *a)
{
	char name[PLAN_NAME];
	double slower;

	if (plan_in_engine(a->choice[0].params.scheme))
		return;
	for (uint32_t i = 1; i < a->count; i++) {
		const struct plan_choice *c = &a->choice[i];

		if (!plan_in_engine(c->params.scheme))
			continue;
		slower = c->goal_s / a->choice[0].goal_s;
		plan_name(name, &c->params);
		if (slower < 1.005)
			out("(planned): not in this release's engine; %s takes as long.", name);
		else
			out("(planned): not in this release's engine. Of those that are, take %s: "
			    "%.3g times as long (%s).",
			    name, slower, goal_names[a->goal]);
		return;
	}
	out("(planned): not in this release's engine.");
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
	    plan_name(name, &a->choice[1].params), a->choice[0].goal_s / a->choice[1].goal_s,
	    goal_names[a->goal]);
}

static void print_few_samples(const struct plan_answer *a)
{
	for (uint32_t i = 0; i < a->count; i++) {
		uint32_t samples = a->choice[i].result.samples;

		if (samples == 0 || samples >= 2000)
			continue;
		out("Simulated with few samples (%u at least): read 99.9 %% as the worst of them.",
		    samples);
		return;
	}
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
	out("%-24s %9s %9s %9s %8s %11s %10s", "SCHEME", "MEAN", "99 %", "99.9 %", "LOSSLESS",
	    "EXTRA", "MEMORY");
	for (uint32_t i = 0; i < a->count; i++)
		print_row(&a->choice[i]);
	if (a->policy) {
		say_rule(a);
	} else {
		say_losses(a);
		say_winner(a);
	}
	say_today(a);
	print_few_samples(a);
}

static void json_choice(struct json *j, const struct plan_answer *a, const struct plan_choice *c)
{
	const struct plan_params *p = &c->params;
	const struct plan_result *r = &c->result;
	bool coded = p->scheme != PLAN_SR && p->scheme != PLAN_SR_NACK;

	json_object_begin(j, NULL);
	json_text(j, "scheme", plan_scheme_name(p->scheme));
	json_uint(j, "bytes", a->job.bytes);
	json_real(j, "mean_s", r->mean_s);
	json_real(j, "p50_s", r->p50_s);
	json_real(j, "p99_s", r->p99_s);
	json_real(j, "p999_s", r->p999_s);
	json_real(j, "lossless_s", r->lossless_s);
	json_real(j, "limit_s", r->limit_s);
	json_real(j, "overhead", r->overhead);
	json_uint(j, "memory_bytes", c->memory_bytes);
	json_uint(j, "samples", r->samples);
	json_bool(j, "available", plan_in_engine(p->scheme));
	if (coded) {
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

// SPDX-License-Identifier: Apache-2.0
/*
 * sdr plan: which scheme for this distance, bandwidth, loss and size, and what it will cost.
 * Asks the model (plan/), touches no network.
 */
#include "tool/plan.h"

#include "tool/cli.h"
#include "tool/json.h"
#include "tool/opts.h"
#include "tool/say.h"

#include "base/units.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_SIZES "4KiB..64GiB"

struct plan_opts {
	uint64_t rtt_ns, km, bw_bps, packet_bytes, chunk_bytes, code_rate_bps, json, table;
	const char *loss, *burst, *sizes, *goal, *policy, *scheme, *plot;
};

#define FIELD(field) offsetof(struct plan_opts, field)
static const struct opt plan_opts_table[] = {
	{"rtt", 'r', OPT_TIME, FIELD(rtt_ns), NS_PER_US, 1000 * NS_PER_S, "TIME",
	 "round-trip time"},
	{"km", 0, OPT_UINT, FIELD(km), 1, 100000000, "N",
	 "instead: distance one way, 150 km a millisecond of round trip"},
	{"bw", 'b', OPT_RATE, FIELD(bw_bps), 1000, UINT64_C(100000000000000), "RATE", "bandwidth"},
	{"loss", 'l', OPT_TEXT, FIELD(loss), 0, 0, "RATIO", "loss per packet: 1e-4 or 0.01%"},
	{"burst", 0, OPT_TEXT, FIELD(burst), 0, 0, "N", "mean run of lost packets (1)"},
	{"size", 's', OPT_TEXT, FIELD(sizes), 0, 0, "SIZES",
	 "message sizes: 128MiB, or 1MiB,1GiB, or 1MiB..1GiB"},
	{"for", 0, OPT_TEXT, FIELD(goal), 0, 0, "GOAL", "rank for mean, p99 or p999 (mean)"},
	{"scheme", 0, OPT_TEXT, FIELD(scheme), 0, 0, "NAME",
	 "only this one, its best (sr, sr-nack, ec, ec-xor, hybrid, gbn) or just it (ec:16,4)"},
	{"packet", 0, OPT_SIZE, FIELD(packet_bytes), 64, 65536, "SIZE", "of a packet (4KiB)"},
	{"chunk", 0, OPT_SIZE, FIELD(chunk_bytes), 64, 65536 * PLAN_CHUNK_PKTS_MAX, "SIZE",
	 "what is resent or coded as one, a power of two of packets (a packet)"},
	{"policy", 0, OPT_TEXT, FIELD(policy), 0, 0, "NAME",
	 "model, or table: what the rules of thumb would take (model)"},
	{"table", 0, OPT_FLAG, FIELD(table), 0, 0, NULL,
	 "what auto takes for each size (4KiB..64GiB), and why; --plot: against the rules of "
	 "thumb"},
	{"code-rate", 0, OPT_RATE, FIELD(code_rate_bps), 8000000, UINT64_C(80000000000000), "RATE",
	 "of (32,8) a core encodes, as bench/code/code_rate prints it (5.85GB/s)"},
	{"plot", 0, OPT_TEXT, FIELD(plot), 0, 0, "FILE",
	 "draw completion over the sizes, or over loss for one size, as SVG"},
	{"json", 0, OPT_FLAG, FIELD(json), 0, 0, NULL, "print a JSON list, best first"},
	{0},
};

static int run_plan(int argc, char **argv);

const struct command cmd_plan = {
	.name = "plan",
	.synopsis = "--rtt TIME --bw RATE --loss RATIO --size SIZES [OPTION]...",
	.summary = "say which scheme suits a link and a size, and what it costs",
	.opts = plan_opts_table,
	.run = run_plan,
};

static int parse_loss(const char *text, double *to)
{
	int err = units_parse_ratio(text, to);

	if (err == -EINVAL) {
		say("--loss %s: not a ratio: write it like 1e-4, 0.001 or 0.1%%", text);
		return -1;
	}
	if (err < 0 || *to >= 1) {
		say("--loss %s: out of range: choose from 0 to below 1", text);
		return -1;
	}
	return 0;
}

static int parse_burst(const char *text, double *to)
{
	char *end;

	*to = text ? strtod(text, &end) : 1;
	if (text && (end == text || *end != '\0')) {
		say("--burst %s: not a number of packets: write it like 8", text);
		return -1;
	}
	if (!(*to >= 1 && *to <= PLAN_BURST_MAX)) {
		say("--burst %s: out of range: choose from 1 to %.0f", text, PLAN_BURST_MAX);
		return -1;
	}
	return 0;
}

static int parse_goal(const char *text, enum plan_goal *to)
{
	static const char *const names[] = {"mean", "p99", "p999"};

	for (int i = 0; i < 3; i++) {
		if (!text || strcmp(text, names[i]) == 0) {
			*to = (enum plan_goal)i;
			return 0;
		}
	}
	say("--for %s: unknown: choose mean, p99 or p999", text);
	return -1;
}

/* -1: no scheme of that name. */
static int scheme_of(const char *text)
{
	for (int s = 0; s < PLAN_SCHEMES; s++) {
		if (strcmp(text, plan_scheme_name((enum plan_scheme)s)) == 0)
			return s;
	}
	return -1;
}

/* A bare word is a scheme with its best parameters; any other is what it says. */
static int parse_scheme(const char *text, struct plan_request *q)
{
	struct plan_answer *a = &q->answer;
	char why[256];

	q->only = scheme_of(text);
	if (q->only >= 0)
		return 0;
	if (scheme_parse(text, &a->scheme, why, sizeof why)) {
		say("--scheme %s: %s", text, why);
		return -1;
	}
	if (!a->scheme.in_model) {
		say("--scheme %s: the model does not know it: ask 'sdr sim', which runs it", text);
		return -1;
	}
	a->fixed = true;
	return 0;
}

static int parse_size(const char *text, size_t len, uint64_t *to)
{
	char word[64];
	int err = -EINVAL;

	if (len > 0 && len < sizeof word) {
		memcpy(word, text, len);
		word[len] = '\0';
		err = units_parse_size_bytes(word, to);
	}
	if (err == 0 && *to == 0)
		err = -ERANGE;
	if (err == -ERANGE)
		say("--size %.*s: out of range: choose from 1 B to what 2^32 chunks hold", (int)len,
		    text);
	else if (err < 0)
		say("--size %.*s: not a size: write it like 128MiB, 1MiB,1GiB or 1MiB..1GiB",
		    (int)len, text);
	return err < 0 ? -1 : 0;
}

static int add_size(struct size_list *list, uint64_t bytes, const char *text)
{
	if (list->n == SIZE_LIST_MAX) {
		say("--size %s: more than %d sizes", text, SIZE_LIST_MAX);
		return -1;
	}
	list->bytes[list->n++] = bytes;
	return 0;
}

/* One size, or FROM..TO in doublings and TO. */
static int parse_range(const char *text, size_t len, struct size_list *list)
{
	const char *dots = memmem(text, len, "..", 2);
	uint64_t from, to;

	if (!dots)
		return parse_size(text, len, &from) || add_size(list, from, text);
	if (parse_size(text, (size_t)(dots - text), &from) ||
	    parse_size(dots + 2, len - (size_t)(dots + 2 - text), &to))
		return -1;
	if (from > to) {
		say("--size %.*s: a range begins with the smaller size", (int)len, text);
		return -1;
	}
	for (; from<to; from = from> to / 2 ? to : 2 * from) {
		if (add_size(list, from, text))
			return -1;
	}
	return add_size(list, to, text);
}

static int parse_sizes(const char *text, struct size_list *list)
{
	for (;;) {
		size_t len = strcspn(text, ",");

		if (parse_range(text, len, list))
			return -1;
		if (text[len] == '\0')
			return 0;
		text += len + 1;
	}
}

#define NUMBER 40
/* Counts and sizes in full, shares with four digits; returns buf. */
static char *number(char buf[NUMBER], double v)
{
	snprintf(buf, NUMBER, v >= 1 && v == floor(v) && v < 1e18 ? "%.0f" : "%.4g", v);
	return buf;
}

static void say_fault(const struct plan_fault *f, const char *scheme)
{
	static const struct {
		const char *what, *flag;
	} flags[] = {
		{"bandwidth", "bw"},	 {"packet size", "packet"}, {"chunk size", "chunk"},
		{"chunk loss", "chunk"}, {"size", "size"},	    {"rtt", "rtt"},
		{"loss", "loss"},	 {"burst", "burst"},
	};
	char value[NUMBER], min[NUMBER], max[NUMBER];
	const char *flag = "scheme ", *name = scheme;

	for (size_t k = 0; k < sizeof flags / sizeof flags[0]; k++) {
		if (strcmp(f->what, flags[k].what) == 0) {
			flag = flags[k].flag;
			name = "";
		}
	}
	say("--%s%s: %s of %s is out of range: choose from %s to %s%s%s", flag, name, f->what,
	    number(value, f->value), number(min, f->min), number(max, f->max), f->why ? ": " : "",
	    f->why ? f->why : "");
}

/* What the model itself finds out of range, by the flag that it came from. */
static int check_ranges(const struct plan_request *q)
{
	const struct plan_answer *a = &q->answer;
	struct plan_job job = a->job;
	struct plan_params params;
	struct plan_fault f;

	for (size_t i = 0; i < q->sizes.n; i++) {
		job.bytes = q->sizes.bytes[i];
		if (plan_check(&a->link, &job, NULL, &f) == 0) {
			if (!a->fixed)
				continue;
			scheme_params(&a->scheme, &a->link, &job, &params);
			if (plan_check(&a->link, &job, &params, &f) == 0)
				continue;
		}
		say_fault(&f, a->scheme.name);
		return -1;
	}
	return 0;
}

static int missing(const struct plan_opts *o)
{
	if (o->rtt_ns && o->km)
		return opts_usage(&cmd_plan, "--rtt and --km exclude each other");
	if (!o->rtt_ns && !o->km)
		return opts_usage(&cmd_plan, "needs --rtt or --km");
	if (!o->bw_bps)
		return opts_usage(&cmd_plan, "needs --bw");
	if (!o->loss)
		return opts_usage(&cmd_plan, "needs --loss ('sdr ping' measures it)");
	if (!o->sizes && !o->table)
		return opts_usage(&cmd_plan, "needs --size");
	if (o->table && (o->scheme || o->chunk_bytes))
		return opts_usage(&cmd_plan, "--table excludes --scheme and --chunk: it is of "
					     "packets, and chooses");
	return 0;
}

static int read_request(const struct plan_opts *o, struct plan_request *q)
{
	struct plan_answer *a = &q->answer;

	a->link.rtt_s = o->km ? (double)o->km / PLAN_KM_PER_S : (double)o->rtt_ns / 1e9;
	a->link.bw_bps = (double)o->bw_bps;
	a->job.packet_bytes = (uint32_t)o->packet_bytes;
	a->job.chunk_bytes = (uint32_t)(o->chunk_bytes ? o->chunk_bytes : o->packet_bytes);
	a->code_rate = (double)o->code_rate_bps / 8;
	q->only = -1;
	if (parse_loss(o->loss, &a->link.loss) || parse_burst(o->burst, &a->link.burst_pkts) ||
	    parse_goal(o->goal, &a->goal) ||
	    parse_sizes(o->sizes ? o->sizes : TABLE_SIZES, &q->sizes))
		return -1;
	if (o->scheme && parse_scheme(o->scheme, q))
		return -1;
	if (o->policy && strcmp(o->policy, "table") == 0)
		a->policy = true;
	else if (o->policy && strcmp(o->policy, "model") != 0) {
		say("--policy %s: unknown: choose model or table", o->policy);
		return -1;
	}
	if (a->policy && o->scheme) {
		say("--policy table and --scheme exclude each other: the table chooses");
		return -1;
	}
	return check_ranges(q);
}

/* The rules' choice first, the model's after it. */
static int ask_table(struct plan_answer *a, const struct plan_options *options)
{
	struct plan_choice *c = &a->choice[0], model = a->choice[0];
	int err;

	a->rule = plan_policy_table(&a->link, &a->job, &c->params);
	err = plan_cost(&a->link, &a->job, a->goal, options, &sdr_alloc_system, c);
	a->choice[1] = model;
	a->count = 2;
	return err;
}

static double goal_of(const struct plan_result *r, enum plan_goal goal)
{
	return goal == PLAN_FOR_MEAN ? r->mean_s : goal == PLAN_FOR_P99 ? r->p99_s : r->p999_s;
}

/* What was given, and nothing beside it. */
static int ask_fixed(struct plan_answer *a, const struct plan_options *options)
{
	struct plan_options paper = *options;
	struct plan_choice *c = &a->choice[0];
	int err;

	scheme_params(&a->scheme, &a->link, &a->job, &c->params);
	err = plan_cost(&a->link, &a->job, a->goal, options, &sdr_alloc_system, c);
	a->count = 1;
	if (err || !a->scheme.paper)
		return err;
	paper.reading = PLAN_PAPER;
	err = plan_estimate(&a->link, &a->job, &c->params, &paper, &sdr_alloc_system, &c->result);
	c->goal_s = goal_of(&c->result, a->goal);
	return err;
}

int plan_ask(struct plan_request *q, uint64_t bytes)
{
	struct plan_answer *a = &q->answer;
	struct plan_options options = {.seed = 1};
	int err;

	a->job.bytes = bytes;
	a->count = PLAN_CHOICES;
	plan_facts(&a->link, &a->job, &a->facts);
	if (a->fixed)
		err = ask_fixed(a, &options);
	else
		err = plan_choose(&a->link, &a->job, a->goal, &options, &sdr_alloc_system,
				  a->choice);
	for (uint32_t i = 0; !err && q->only >= 0 && i < PLAN_CHOICES; i++) {
		if ((int)a->choice[i].params.scheme != q->only)
			continue;
		a->choice[0] = a->choice[i];
		a->count = 1;
	}
	if (!err && a->policy)
		err = ask_table(a, &options);
	if (err)
		say("out of memory");
	return err ? -1 : 0;
}

static int answer_json(struct plan_request *q)
{
	struct json j;

	json_init(&j, stdout);
	json_array_begin(&j, NULL);
	for (size_t i = 0; i < q->sizes.n && !cli_stop; i++) {
		if (plan_ask(q, q->sizes.bytes[i]))
			return -1;
		plan_print_json(&j, &q->answer);
	}
	json_array_end(&j);
	json_finish(&j);
	return 0;
}

/* Several sizes by the rules of thumb: where they and the model part is what matters. */
static int answer_rules(struct plan_request *q)
{
	size_t differ = 0;

	plan_print_rules_head(&q->answer);
	for (size_t i = 0; i < q->sizes.n && !cli_stop; i++) {
		if (plan_ask(q, q->sizes.bytes[i]))
			return -1;
		differ += plan_print_rules_line(&q->answer);
	}
	plan_print_rules_foot(differ, q->sizes.n);
	return 0;
}

static int answer_text(struct plan_request *q)
{
	if (q->answer.policy && q->sizes.n > 1)
		return answer_rules(q);
	for (size_t i = 0; i < q->sizes.n && !cli_stop; i++) {
		if (plan_ask(q, q->sizes.bytes[i]))
			return -1;
		if (i > 0)
			out("%s", "");
		plan_print(&q->answer);
	}
	return 0;
}

static int run_plan(int argc, char **argv)
{
	struct plan_opts o = {.packet_bytes = 4096};
	struct plan_request q = {.only = -1};
	int code, first = opts_parse(&cmd_plan, argc, argv, &o, &code);

	if (first < 0)
		return code;
	if (first != argc)
		return opts_usage(&cmd_plan, "takes no arguments");
	code = missing(&o);
	if (code)
		return code;
	if (read_request(&o, &q))
		return CLI_USAGE;
	if (o.table) {
		if (plan_rows(&q, o.json) || (o.plot && plan_rows_plot(&q, o.plot)))
			return CLI_FAILED;
		return cli_stop ? CLI_FAILED : CLI_OK;
	}
	if (o.json ? answer_json(&q) : answer_text(&q))
		return CLI_FAILED;
	if (o.plot && !cli_stop && plan_plot(&q, o.plot))
		return CLI_FAILED;
	return cli_stop ? CLI_FAILED : CLI_OK;
}

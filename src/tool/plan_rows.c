// SPDX-License-Identifier: Apache-2.0
/*
 * sdr plan --table: what auto takes for each size of message on a link, and why; as a chart, where
 * that and the rules of thumb are each the better one. See plan.h.
 */
#include "tool/plan.h"

#include "tool/cli.h"
#include "tool/json.h"
#include "tool/plot.h"
#include "tool/say.h"

#include "base/units.h"
#include "plan/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIND 24

static uint64_t packets(const struct plan_answer *a, uint64_t bytes)
{
	return bytes / a->job.packet_bytes + (bytes % a->job.packet_bytes != 0);
}

static int make(const struct plan_answer *a, bool by_policy, struct plan_table *t)
{
	if (plan_table_make(&a->link, true, a->job.packet_bytes, by_policy, t) == 0)
		return 0;
	say("no table for that link"); /* cannot be: its ranges were checked */
	return -1;
}

/* Parity, as a part of the message. */
static double extra(const struct plan_table_row *row, uint64_t pkts)
{
	uint64_t blocks;

	if (!row->coded)
		return 0;
	blocks = row->span / row->k + (row->span % row->k != 0);
	return (double)(row->m * blocks) / (double)pkts;
}

/* ---- rows ------------------------------------------------------------------------------ */

static const char *kind(const struct plan_table_row *row, char buf[KIND])
{
	if (!row->coded)
		return "-";
	snprintf(buf, KIND, "%s(%u,%u)", row->xor_code ? "xor " : "", row->k, row->m);
	return buf;
}

static const char *span(const struct plan_table_row *row, uint64_t pkts, char buf[KIND])
{
	if (!row->coded)
		return "-";
	if (row->span >= pkts)
		return "all";
	snprintf(buf, KIND, "%llu", (unsigned long long)row->span);
	return buf;
}

static void print_row(const struct plan_answer *a, const struct plan_table *t, uint64_t bytes)
{
	char size[UNITS_TEXT], code[KIND], last[KIND];
	uint64_t pkts = packets(a, bytes);
	struct plan_table_row row;

	plan_table_fit(t, pkts, &row);
	out("%-10s %-9s %8s %6u %7u %7.2f %%  %s", units_size_text(size, bytes), kind(&row, code),
	    span(&row, pkts, last), row.depth, row.copies, extra(&row, pkts) * 100,
	    plan_table_reason(&row));
}

static void print_head(const struct plan_answer *a)
{
	char rtt[UNITS_TEXT], rate[UNITS_TEXT], burst[48] = "";

	if (a->link.burst_pkts > 1)
		snprintf(burst, sizeof burst, " in bursts of %g", a->link.burst_pkts);
	out("%s at %s, loss %g%s: what %s takes, told so",
	    units_time_text(rtt, (uint64_t)llround(a->link.rtt_s * 1e9)),
	    units_rate_text(rate, a->link.bw_bps), a->link.loss, burst,
	    a->policy ? "auto:policy=table" : "auto");
	out("%-10s %-9s %8s %6s %7s %9s  %s", "SIZE", "CODE", "LAST", "DEPTH", "COPIES", "PARITY",
	    "WHY");
}

static void json_row(struct json *j, const struct plan_answer *a, const struct plan_table *t,
		     uint64_t bytes)
{
	uint64_t pkts = packets(a, bytes);
	struct plan_table_row row;
	char text[PLAN_TABLE_SAY];

	plan_table_fit(t, pkts, &row);
	(void)plan_table_say(t, pkts, text, sizeof text);
	json_object_begin(j, NULL);
	json_uint(j, "bytes", bytes);
	json_uint(j, "packets", pkts);
	json_text(j, "policy", a->policy ? "table" : "model");
	json_bool(j, "coded", row.coded);
	json_uint(j, "k", row.k);
	json_uint(j, "m", row.m);
	json_uint(j, "depth", row.depth);
	json_uint(j, "span", row.coded ? row.span : 0);
	json_uint(j, "copies", row.copies);
	json_uint(j, "gap_packets", row.gap_pkts);
	json_real(j, "overhead", extra(&row, pkts));
	json_text(j, "reason", plan_table_reason(&row));
	json_text(j, "why", text);
	json_object_end(j);
}

int plan_rows(struct plan_request *q, bool as_json)
{
	const struct plan_answer *a = &q->answer;
	struct plan_table t;
	struct json j;

	if (make(a, a->policy, &t))
		return -1;
	if (!as_json) {
		print_head(a);
		for (size_t i = 0; i < q->sizes.n; i++)
			print_row(a, &t, q->sizes.bytes[i]);
		return 0;
	}
	json_init(&j, stdout);
	json_array_begin(&j, NULL);
	for (size_t i = 0; i < q->sizes.n; i++)
		json_row(&j, a, &t, q->sizes.bytes[i]);
	json_array_end(&j);
	json_finish(&j);
	return 0;
}

/* ---- where which is better --------------------------------------------------------------- */

static const double losses[] = {1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 5e-2, 1e-1, 2e-1};
static const char *const loss_names[] = {"1e-7", "1e-6", "1e-5", "1e-4", "1e-3",
					 "1e-2", "5e-2", "0.1",	 "0.2"};
#define LOSSES (sizeof losses / sizeof losses[0])

/* A row in the model: without a code it is one whose only block is the last packet. */
static void params_of(const struct plan_answer *a, const struct plan_table_row *row,
		      struct plan_params *p)
{
	plan_defaults(&a->link, &a->job, PLAN_SR_NACK, p);
	p->scheme = PLAN_HYBRID;
	p->k = row->coded ? row->k : 1;
	p->m = row->m;
	p->depth = row->coded ? row->depth : 1;
	p->span = row->coded ? row->span : 1;
	p->copies = row->copies;
}

/* How many times as long as auto the rules of thumb take; NAN: cannot be asked. */
static int ratio(struct plan_answer *a, double *to)
{
	struct plan_options options = {.seed = 1};
	struct plan_choice rule = {0}, model = {0};
	struct plan_table_row row;
	struct plan_fault fault;
	struct plan_table t;
	int err;

	*to = NAN;
	if (plan_check(&a->link, &a->job, NULL, &fault) || make(a, false, &t))
		return 0;
	plan_table_fit(&t, packets(a, a->job.bytes), &row);
	params_of(a, &row, &model.params);
	(void)plan_policy_table(&a->link, &a->job, &rule.params);
	err = plan_cost(&a->link, &a->job, a->goal, &options, &sdr_alloc_system, &model);
	if (!err)
		err = plan_cost(&a->link, &a->job, a->goal, &options, &sdr_alloc_system, &rule);
	if (!err)
		*to = rule.goal_s / model.goal_s;
	return err;
}

struct map {
	double value[LOSSES * SIZE_LIST_MAX];
	char size[SIZE_LIST_MAX][UNITS_TEXT];
	const char *name[SIZE_LIST_MAX];
};

static int measure(struct plan_request *q, struct map *m)
{
	struct plan_answer *a = &q->answer;
	double said = a->link.loss;

	for (size_t l = 0; l < LOSSES && !cli_stop; l++) {
		a->link.loss = losses[l];
		for (size_t s = 0; s < q->sizes.n && !cli_stop; s++) {
			a->job.bytes = q->sizes.bytes[s];
			if (ratio(a, &m->value[l * q->sizes.n + s]))
				return -1;
		}
	}
	a->link.loss = said;
	return 0;
}

/* "64K": columns are narrow. */
static const char *column(char buf[UNITS_TEXT], uint64_t bytes)
{
	const char *unit = "BKMGTP";
	uint64_t n = bytes;

	for (; *unit != 'P' && n >= 1024 && n % 1024 == 0; unit++)
		n /= 1024;
	if (n >= 10000)
		return units_size_text(buf, bytes);
	snprintf(buf, UNITS_TEXT, "%u%c", (unsigned int)n, *unit);
	return buf;
}

static int draw(const struct plan_request *q, struct map *m, const char *path)
{
	const struct plan_answer *a = &q->answer;
	char rtt[UNITS_TEXT], rate[UNITS_TEXT], title[160], value[64];
	struct plot_grid grid = {
		.title = title,
		.note = "above 1: the model's choice is faster; below 1: the rules of thumb are",
		.x_label = "message size (bytes)",
		.y_label = "loss per packet",
		.value_label = value,
		.x_names = m->name,
		.y_names = loss_names,
		.values = m->value,
		.rows = LOSSES,
		.cols = q->sizes.n,
		.neutral = 1,
	};

	for (size_t s = 0; s < q->sizes.n; s++)
		m->name[s] = column(m->size[s], q->sizes.bytes[s]);
	snprintf(value, sizeof value, "time of the rules / of auto (%s)", plan_goal_name(a->goal));
	snprintf(title, sizeof title, "rules of thumb against auto: %s at %s",
		 units_time_text(rtt, (uint64_t)llround(a->link.rtt_s * 1e9)),
		 units_rate_text(rate, a->link.bw_bps));
	if (a->link.burst_pkts > 1)
		snprintf(title + strlen(title), sizeof title - strlen(title), ", bursts of %g",
			 a->link.burst_pkts);
	return plot_heat(path, &grid);
}

int plan_rows_plot(struct plan_request *q, const char *path)
{
	struct map *m = calloc(1, sizeof *m);
	int rc = -1;

	if (m && plot_try(path) == 0) {
		rc = measure(q, m);
		if (!rc && !cli_stop)
			rc = draw(q, m, path);
	}
	if (!m)
		say("out of memory");
	free(m);
	return rc;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Results for people: a table for each link and size, the model's prediction beside the
 * simulated mean, and sentences where something needs one. See result.h.
 */
#include "tool/sim/result.h"

#include "tool/say.h"

#include "base/units.h"

#include <sdr/err.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define CELL (UNITS_TEXT + 8)
#define NAME_COLUMN 24 /* at least */

static char *seconds(char buf[CELL], double ns)
{
	if (!isfinite(ns) || ns < 0)
		snprintf(buf, CELL, "-");
	else
		units_time_text(buf, (uint64_t)llround(ns));
	return buf;
}

static char *number(char buf[CELL], const char *format, double v)
{
	if (isfinite(v))
		snprintf(buf, CELL, format, v);
	else
		snprintf(buf, CELL, "-");
	return buf;
}

static void print_head(const struct sweep *s, const struct result *r, int width)
{
	const struct sim_point *p = &r->point;
	char size[UNITS_TEXT], rtt[UNITS_TEXT], rate[UNITS_TEXT], lossless[CELL], limit[CELL];
	char more[64] = "";

	if (p->burst_pkts > 1)
		snprintf(more, sizeof(more), " in bursts of %g", p->burst_pkts);
	out("%s, %s at %s, loss %g%s%s: lossless %s, at best %s; %" PRIu64 " runs, seed %" PRIu64,
	    units_size_text(size, p->bytes), units_time_text(rtt, p->rtt_ns),
	    units_rate_text(rate, (double)p->bw_bps), p->loss, more, s->cold ? ", cold start" : "",
	    seconds(lossless, point_lossless_s(p) * 1e9), seconds(limit, point_limit_s(p) * 1e9),
	    r->runs, s->seed);
	out("%-*s %-6s %9s %8s %9s %9s %9s %8s %9s %9s %7s", width, "SCHEME", "ENGINE", "MEAN",
	    "95 %", "50 %", "99 %", "99.9 %", "LOSSLESS", "EXTRA", "MODEL", "RATIO");
}

static void print_row(const struct result *r, int column)
{
	char mean[CELL], half[CELL], p50[CELL], p99[CELL], p999[CELL], times[CELL], extra[CELL],
		model[CELL], ratio[CELL], width[CELL + 4];
	double lossless = point_lossless_s(&r->point) * 1e9;
	double expected = r->predicted ? r->model.mean_s * 1e9 : NAN;
	bool known;

	seconds(half, (r->mean.hi - r->mean.lo) / 2);
	known = half[0] != '-';
	snprintf(width, sizeof(width), "%s%s", known ? "±" : "", half);
	/* The sign is two bytes and one column. */
	out("%-*s %-6s %9s %*s %9s %9s %9s %8s %9s %9s %7s", column, r->point.scheme->name,
	    r->engine ? "real" : "model", seconds(mean, r->mean.v), known ? 9 : 8, width,
	    seconds(p50, r->p50.v), seconds(p99, r->p99.v), seconds(p999, r->p999.v),
	    number(times, "%.3f", r->mean.v / lossless),
	    number(extra, "%.3f %%", r->overhead * 100), seconds(model, expected),
	    number(ratio, "%.3f", r->mean.v / expected));
}

static void say_ended(const struct sweep *s, const struct result *r)
{
	char limit[UNITS_TEXT];

	if (!r->unfinished)
		return;
	if (r->err == -ETIME)
		out("%s: %" PRIu64 " of %" PRIu64 " runs had not ended after %s of virtual time "
		    "(--limit): no mean, quantiles below them only.",
		    r->point.scheme->name, r->unfinished, r->runs,
		    units_time_text(limit, sweep_limit_ns(s, &r->point)));
	else
		out("%s: %" PRIu64 " of %" PRIu64 " runs failed (%s): no mean, quantiles below "
		    "them only.",
		    r->point.scheme->name, r->unfinished, r->runs, sdr_strerror(r->err));
}

static void say_parted(const struct result *r)
{
	char model[CELL], mean[CELL];

	if (r->parted)
		out("%s: the model says %s, the simulation %s, which is more than %g %% and %d "
		    "standard errors apart (docs/simulation.md, Where simulator and model part).",
		    r->point.scheme->name, seconds(model, r->model.mean_s * 1e9),
		    seconds(mean, r->mean.v), RESULT_TOLERANCE * 100, RESULT_ERRORS);
}

static bool same_link(const struct sim_point *a, const struct sim_point *b)
{
	return a->rtt_ns == b->rtt_ns && a->bw_bps == b->bw_bps && a->bytes == b->bytes &&
	       a->loss == b->loss && a->burst_pkts == b->burst_pkts;
}

static void print_group(const struct sweep *s, const struct result *r, uint64_t n)
{
	int column = NAME_COLUMN;

	for (uint64_t i = 0; i < n; i++) {
		int len = (int)strlen(r[i].point.scheme->name);

		column = len > column ? len : column;
	}
	print_head(s, r, column);
	for (uint64_t i = 0; i < n; i++)
		print_row(&r[i], column);
	for (uint64_t i = 0; i < n; i++) {
		say_ended(s, &r[i]);
		say_parted(&r[i]);
	}
}

void table_print(const struct sweep *s, const struct result *r, uint64_t n)
{
	for (uint64_t from = 0, to; from < n; from = to) {
		for (to = from + 1; to < n && same_link(&r[from].point, &r[to].point);)
			to++;
		if (from > 0)
			out("%s", "");
		print_group(s, r + from, to - from);
	}
	if (n && r[0].runs < STATS_P999_MIN)
		out("99.9 %% needs %u runs or more: --runs %u.", STATS_P999_MIN, STATS_P999_MIN);
}

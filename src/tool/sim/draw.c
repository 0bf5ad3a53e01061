// SPDX-License-Identifier: Apache-2.0
/*
 * A sweep as a chart: mean completion over the value with the most steps, a whisker up to
 * 99 %; a line for each scheme and each combination of what else is swept. See draw.h;
 * tool/plot.h draws.
 */
#include "tool/sim/draw.h"

#include "tool/plot.h"
#include "tool/say.h"

#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MAX (2 * PLOT_COLOURS)
#define LABEL_MAX 128

struct line {
	char label[LABEL_MAX];
	double mean[AXIS_MAX], hi[AXIS_MAX];
};

struct chart {
	const struct sweep *s;
	enum sweep_axis x_axis;
	double x[AXIS_MAX], lossless[AXIS_MAX];
	size_t steps, lines;
	struct line *line;
	double per_s; /* the unit of y */
	const char *y_label;
};

static const struct {
	const char *key, *label;
	enum plot_scale scale;
	double unit;
} axes[AXES] = {
	[AXIS_RTT] = {"rtt", "round-trip time (ms)", PLOT_LOG, 1e6},
	[AXIS_BW] = {"bw", "bandwidth (Gbit/s)", PLOT_LOG, 1e9},
	[AXIS_LOSS] = {"loss", "loss per packet", PLOT_LOG, 1},
	[AXIS_BURST] = {"burst", "mean run of lost packets", PLOT_LOG, 1},
	[AXIS_SIZE] = {"size", "message", PLOT_BYTES, 1},
};

/* The one with the most values; of equals the one that readers look for first. */
static enum sweep_axis longest(const struct sweep *s)
{
	static const enum sweep_axis order[AXES] = {AXIS_SIZE, AXIS_LOSS, AXIS_RTT, AXIS_BW,
						    AXIS_BURST};
	enum sweep_axis best = order[0];

	for (int i = 1; i < AXES; i++) {
		if (s->axis[order[i]].n > s->axis[best].n)
			best = order[i];
	}
	return best;
}

static uint64_t lines_of(const struct sweep *s)
{
	return sweep_points(s) / s->axis[longest(s)].n;
}

int draw_check(const struct sweep *s, const char *path)
{
	if (s->axis[longest(s)].n < 2) {
		say("--plot %s: nothing is swept: give --size, --loss, --rtt, --bw or --burst "
		    "several values",
		    path);
		return -1;
	}
	if (lines_of(s) > LINES_MAX) {
		say("--plot %s: %llu lines: at most %u can be told apart: sweep less", path,
		    (unsigned long long)lines_of(s), LINES_MAX);
		return -1;
	}
	return 0;
}

static double value_of(const struct sim_point *p, enum sweep_axis axis)
{
	const double of[AXES] = {
		[AXIS_RTT] = (double)p->rtt_ns, [AXIS_BW] = (double)p->bw_bps,
		[AXIS_LOSS] = p->loss,		[AXIS_BURST] = p->burst_pkts,
		[AXIS_SIZE] = (double)p->bytes,
	};

	return of[axis];
}

static char *value_text(const struct sim_point *p, enum sweep_axis axis, char *buf, size_t len)
{
	char text[UNITS_TEXT];

	if (axis == AXIS_RTT)
		units_time_text(text, p->rtt_ns);
	else if (axis == AXIS_BW)
		units_rate_text(text, (double)p->bw_bps);
	else if (axis == AXIS_SIZE)
		units_size_text(text, p->bytes);
	else
		snprintf(text, sizeof(text), "%s %g", axes[axis].key, value_of(p, axis));
	snprintf(buf, len, ", %s", text);
	return buf;
}

static void make_label(const struct chart *c, const struct result *r, char label[LABEL_MAX])
{
	const char *name = r->point.scheme->name;
	size_t used = (size_t)snprintf(label, LABEL_MAX, "%s%s", name, r->engine ? "" : " (model)");

	for (int a = 0; a < AXES && used < LABEL_MAX; a++) {
		if (a == (int)c->x_axis || c->s->axis[a].n < 2)
			continue;
		value_text(&r->point, (enum sweep_axis)a, label + used, LABEL_MAX - used);
		used += strlen(label + used);
	}
}

static size_t step_of(const struct chart *c, const struct sim_point *p)
{
	size_t i = 0;

	while (c->s->axis[c->x_axis].v[i] != value_of(p, c->x_axis))
		i++;
	return i;
}

static void add(struct chart *c, const struct result *r)
{
	char label[LABEL_MAX];
	size_t at = step_of(c, &r->point), i = 0;

	make_label(c, r, label);
	while (i < c->lines && strcmp(c->line[i].label, label) != 0)
		i++;
	if (i == c->lines)
		strcpy(c->line[c->lines++].label, label);
	c->line[i].mean[at] = r->mean.v * 1e-9 * c->per_s;
	c->line[i].hi[at] = r->p99.v * 1e-9 * c->per_s;
	c->lossless[at] = point_lossless_s(&r->point) * c->per_s;
}

static void choose_unit(struct chart *c, const struct result *r, uint64_t n)
{
	double most = 0;

	for (uint64_t i = 0; i < n; i++)
		most = fmax(most, point_lossless_s(&r[i].point));
	c->per_s = most >= 3 ? 1 : most >= 3e-3 ? 1e3 : 1e6;
	c->y_label = most >= 3	    ? "completion time (s)"
		     : most >= 3e-3 ? "completion time (ms)"
				    : "completion time (us)";
}

/* Lossless time depends on nothing that only tells lines apart. */
static bool one_lossless(const struct chart *c)
{
	for (int a = 0; a < AXES; a++) {
		if (a != (int)c->x_axis && a != AXIS_LOSS && a != AXIS_BURST && c->s->axis[a].n > 1)
			return false;
	}
	return true;
}

static enum plot_scale y_scale(const struct chart *c)
{
	double least = INFINITY, most = 0;

	for (size_t i = 0; i < c->lines; i++) {
		for (size_t k = 0; k < c->steps; k++) {
			least = fmin(least, c->line[i].mean[k]);
			most = fmax(most, c->line[i].mean[k]);
		}
	}
	return most > 5 * least ? PLOT_LOG : PLOT_LINEAR;
}

static int draw_lines(const struct chart *c, const char *path, const char *title, const char *note)
{
	struct plot_series series[LINES_MAX + 1] = {0};
	struct plot plot = {
		.title = title,
		.note = note,
		.x = {.label = axes[c->x_axis].label, .scale = axes[c->x_axis].scale},
		.y = {.label = c->y_label, .scale = y_scale(c)},
		.series = series,
	};

	for (size_t i = 0; i < c->lines; i++)
		series[plot.count++] = (struct plot_series){
			.label = c->line[i].label,
			.x = c->x,
			.y = c->line[i].mean,
			.lo = c->line[i].mean,
			.hi = c->line[i].hi,
			.n = c->steps,
			.style = i < PLOT_COLOURS ? PLOT_LINE_POINTS : PLOT_DASHED,
			.colour = (unsigned int)(i % PLOT_COLOURS) + 1,
		};
	if (one_lossless(c))
		series[plot.count++] = (struct plot_series){.label = "lossless",
							    .x = c->x,
							    .y = c->lossless,
							    .n = c->steps,
							    .style = PLOT_DASHED};
	return plot_lines(path, &plot);
}

/* What all points have in common. */
static void make_title(const struct chart *c, const struct result *r, char *title, size_t len)
{
	char parts[224] = "";
	size_t used = 0;

	for (int a = 0; a < AXES && used < sizeof(parts); a++) {
		if (c->s->axis[a].n != 1 || (a == AXIS_BURST && r->point.burst_pkts <= 1))
			continue;
		value_text(&r->point, (enum sweep_axis)a, parts + used, sizeof(parts) - used);
		used += strlen(parts + used);
	}
	snprintf(title, len, "sdr sim%s%s", used ? ": " : "", used ? parts + 2 : "");
}

int draw(const struct sweep *s, const struct result *r, uint64_t n, const char *path)
{
	struct chart c = {.s = s, .x_axis = longest(s)};
	char title[256], note[128];
	int rc;

	c.steps = s->axis[c.x_axis].n;
	c.line = calloc(LINES_MAX, sizeof(*c.line));
	if (!c.line) {
		say("out of memory");
		return -1;
	}
	choose_unit(&c, r, n);
	for (size_t i = 0; i < c.steps; i++)
		c.x[i] = s->axis[c.x_axis].v[i] / axes[c.x_axis].unit;
	for (uint64_t i = 0; i < n; i++)
		add(&c, &r[i]);
	make_title(&c, r, title, sizeof(title));
	snprintf(note, sizeof(note), "mean of %llu runs, whiskers to 99 %%, seed %llu%s",
		 (unsigned long long)s->runs, (unsigned long long)s->seed,
		 s->cold ? ", cold start" : "");
	rc = draw_lines(&c, path, title, note);
	free(c.line);
	return rc;
}

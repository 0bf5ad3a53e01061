// SPDX-License-Identifier: Apache-2.0
/*
 * sdr plan as a chart: completion by scheme over the sizes that were asked for, or over loss
 * where there is one size. See plan.h; tool/plot.h draws.
 */
#include "tool/plan.h"

#include "tool/cli.h"
#include "tool/plot.h"
#include "tool/say.h"

#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POINTS_MAX SIZE_LIST_MAX
/* One size: loss from a hundredth of what was said to a hundred times, in so many steps. */
#define AROUND 100.0
#define STEPS 16
#define LOSS_HIGHEST 0.3
#define LOSS_WITHOUT 1e-5 /* the middle, if nothing is lost */

/* A line of the chart: a scheme, or what the rules of thumb take. */
struct line {
	const char *label;
	unsigned int colour;
	double mean_s[POINTS_MAX], tail_s[POINTS_MAX];
};

struct points {
	size_t n;
	double x[POINTS_MAX], limit_s[POINTS_MAX];
	struct line line[PLAN_SCHEMES + 2];
};

/* With the rules of thumb there are two lines, theirs and the model's; else one a scheme. */
static struct line *line_of(struct points *p, const struct plan_answer *a, uint32_t choice)
{
	return a->policy ? &p->line[PLAN_SCHEMES + choice]
			 : &p->line[a->choice[choice].params.scheme];
}

static void name_lines(struct points *p)
{
	for (int i = 0; i < PLAN_SCHEMES + 2; i++) {
		struct line *line = &p->line[i];

		line->label = i < PLAN_SCHEMES	  ? plan_scheme_name((enum plan_scheme)i)
			      : i == PLAN_SCHEMES ? "rules of thumb"
						  : "model's choice";
		line->colour = (unsigned int)(i < PLAN_SCHEMES ? i : i - PLAN_SCHEMES) + 1;
		for (size_t k = 0; k < POINTS_MAX; k++)
			line->mean_s[k] = line->tail_s[k] = NAN;
	}
}

static int add_point(struct points *p, struct plan_request *q, double x, uint64_t bytes)
{
	const struct plan_answer *a = &q->answer;

	if (plan_ask(q, bytes))
		return -1;
	p->x[p->n] = x;
	p->limit_s[p->n] = a->choice[0].result.limit_s;
	for (uint32_t i = 0; i < a->count; i++) {
		const struct plan_result *r = &a->choice[i].result;
		struct line *line = line_of(p, a, i);

		line->mean_s[p->n] = r->mean_s;
		line->tail_s[p->n] = a->goal != PLAN_FOR_P999 ? r->p99_s : r->p999_s;
	}
	p->n++;
	return 0;
}

static int over_sizes(struct points *p, struct plan_request *q)
{
	for (size_t i = 0; i < q->sizes.n && !cli_stop; i++) {
		if (add_point(p, q, (double)q->sizes.bytes[i], q->sizes.bytes[i]))
			return -1;
	}
	return 0;
}

static int over_loss(struct points *p, struct plan_request *q)
{
	struct plan_answer *a = &q->answer;
	double said = a->link.loss, middle = said > 0 ? said : LOSS_WITHOUT;
	double from = middle / AROUND, to = fmin(middle * AROUND, fmax(LOSS_HIGHEST, middle));
	struct plan_fault fault;
	int rc = 0;

	for (int i = 0; i <= STEPS && !rc && !cli_stop; i++) {
		a->link.loss = from * pow(to / from, (double)i / STEPS);
		a->job.bytes = q->sizes.bytes[0];
		/* So much loss may be too much for a chunk, or for the bursts. */
		if (plan_check(&a->link, &a->job, NULL, &fault) == 0)
			rc = add_point(p, q, a->link.loss, a->job.bytes);
	}
	a->link.loss = said;
	return rc;
}

struct unit {
	const char *label;
	double per_s;
};

static struct unit unit_for(const struct points *p)
{
	double most = 0;

	for (size_t i = 0; i < p->n; i++)
		most = fmax(most, p->limit_s[i]);
	if (most >= 3)
		return (struct unit){"completion time (s)", 1};
	if (most >= 3e-3)
		return (struct unit){"completion time (ms)", 1e3};
	return (struct unit){"completion time (\302\265s)", 1e6};
}

static void scale(double *v, size_t n, double by)
{
	for (size_t i = 0; i < n; i++)
		v[i] *= by;
}

/* T* in black below all; the mean in full, the tail dashed in the same colour. */
static size_t series(struct points *p, struct plot_series *out)
{
	double per_s = unit_for(p).per_s;
	size_t n = 0;

	scale(p->limit_s, p->n, per_s);
	out[n++] = (struct plot_series){.label = "T*: nobody is faster",
					.x = p->x,
					.y = p->limit_s,
					.n = p->n,
					.style = PLOT_LINE};
	for (size_t i = 0; i < PLAN_SCHEMES + 2; i++) {
		struct line *line = &p->line[i];
		bool used = false;

		for (size_t k = 0; k < p->n; k++)
			used = used || !isnan(line->mean_s[k]);
		if (!used)
			continue;
		scale(line->mean_s, p->n, per_s);
		scale(line->tail_s, p->n, per_s);
		out[n++] = (struct plot_series){.label = line->label,
						.x = p->x,
						.y = line->mean_s,
						.n = p->n,
						.colour = line->colour};
		out[n++] = (struct plot_series){.x = p->x,
						.y = line->tail_s,
						.n = p->n,
						.style = PLOT_DASHED,
						.colour = line->colour};
	}
	return n;
}

static int draw(struct points *p, const struct plan_request *q, const char *path)
{
	const struct plan_answer *a = &q->answer;
	struct plot_series all[2 * (PLAN_SCHEMES + 2) + 1];
	bool sizes = q->sizes.n > 1;
	char rtt[UNITS_TEXT], rate[UNITS_TEXT], size[UNITS_TEXT], what[48], title[160], note[80];
	struct plot plot = {
		.title = title,
		.note = note,
		.x = {sizes ? "message size" : "loss per packet", sizes ? PLOT_BYTES : PLOT_LOG, 0,
		      0},
		.y = {unit_for(p).label, PLOT_LOG, 0, 0},
		.series = all,
		.count = series(p, all),
	};

	if (sizes)
		snprintf(what, sizeof what, "loss %g", a->link.loss);
	else
		snprintf(what, sizeof what, "%s", units_size_text(size, q->sizes.bytes[0]));
	snprintf(title, sizeof title, "sdr plan: %s at %s, %s",
		 units_time_text(rtt, (uint64_t)llround(a->link.rtt_s * 1e9)),
		 units_rate_text(rate, a->link.bw_bps), what);
	if (a->link.burst_pkts > 1)
		snprintf(title + strlen(title), sizeof title - strlen(title), " in bursts of %g",
			 a->link.burst_pkts);
	snprintf(note, sizeof note, "full: mean; dashed: %s of messages take no longer",
		 plan_goal_name(a->goal != PLAN_FOR_P999 ? PLAN_FOR_P99 : PLAN_FOR_P999));
	return plot_lines(path, &plot);
}

int plan_plot(struct plan_request *q, const char *path)
{
	struct points *p = calloc(1, sizeof *p);
	int rc = -1;

	if (!p) {
		say("out of memory");
		return -1;
	}
	name_lines(p);
	rc = q->sizes.n > 1 ? over_sizes(p, q) : over_loss(p, q);
	if (!rc && !cli_stop)
		rc = draw(p, q, path);
	free(p);
	return rc;
}

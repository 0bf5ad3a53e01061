// SPDX-License-Identifier: Apache-2.0
/*
 * See show.h.
 */
#include "tool/sim/show.h"

#include "tool/cli.h"
#include "tool/json.h"
#include "tool/say.h"
#include "tool/sim/draw.h"

#include <inttypes.h>
#include <stdlib.h>

static struct result *make_all(const struct sweep *s, struct tallies *t)
{
	struct result *r = calloc(t->points, sizeof(*r));

	if (!r) {
		say("out of memory");
		return NULL;
	}
	for (uint64_t i = 0; i < t->points; i++) {
		struct sim_point p;

		sweep_point(s, i, &p);
		if (result_make(s, &p, &t->of[i], &r[i])) {
			free(r);
			return NULL;
		}
	}
	return r;
}

static void print_json(const struct sweep *s, const struct result *r, uint64_t n)
{
	struct json j;

	json_init(&j, stdout);
	json_array_begin(&j, NULL);
	for (uint64_t i = 0; i < n; i++)
		result_json(&j, s, &r[i]);
	json_array_end(&j);
	json_finish(&j);
}

static void print_csv(const struct sweep *s, const struct result *r, uint64_t n)
{
	result_csv_header();
	for (uint64_t i = 0; i < n; i++)
		result_csv(s, &r[i]);
}

/* What a table says in its sentences; 1: there was something. */
static int unfinished(const struct result *r, uint64_t n, enum show_form form)
{
	uint64_t runs = 0, points = 0;

	for (uint64_t i = 0; i < n; i++) {
		runs += r[i].unfinished;
		points += r[i].unfinished > 0;
	}
	if (runs && form != SHOW_TABLE)
		say("%" PRIu64 " runs of %" PRIu64 " points did not end: see 'unfinished'", runs,
		    points);
	return runs > 0;
}

int show_all(const struct sweep *s, struct tallies *t, enum show_form form, const char *plot)
{
	struct result *r = make_all(s, t);
	int code;

	if (!r)
		return CLI_FAILED;
	if (form == SHOW_JSON)
		print_json(s, r, t->points);
	else if (form == SHOW_CSV)
		print_csv(s, r, t->points);
	else
		table_print(s, r, t->points);
	code = unfinished(r, t->points, form) ? CLI_FAILED : CLI_OK;
	if (plot && draw(s, r, t->points, plot))
		code = CLI_FAILED;
	free(r);
	return code;
}

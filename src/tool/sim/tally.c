// SPDX-License-Identifier: Apache-2.0
/*
 * See tally.h.
 */
#include "tool/sim/tally.h"

#include <errno.h>
#include <stdlib.h>

uint64_t tally_first_run(const struct sweep *s, uint64_t point, uint64_t first, uint64_t stride)
{
	uint64_t from = point * s->runs;

	if (first >= from)
		return first - from;
	return (stride - (from - first) % stride) % stride;
}

uint64_t tally_runs(const struct sweep *s, uint64_t point, uint64_t first, uint64_t stride)
{
	uint64_t run = tally_first_run(s, point, first, stride);

	return run < s->runs ? (s->runs - run - 1) / stride + 1 : 0;
}

int tallies_init(struct tallies *t, const struct sweep *s, uint64_t first, uint64_t stride)
{
	uint64_t all = 0;

	*t = (struct tallies){.points = sweep_points(s)};
	t->of = calloc(t->points, sizeof(*t->of));
	if (!t->of)
		return -ENOMEM;
	for (uint64_t p = 0; p < t->points; p++) {
		t->of[p].runs = tally_runs(s, p, first, stride);
		all += t->of[p].runs;
	}
	t->time_ns = calloc(all ? all : 1, sizeof(*t->time_ns));
	if (!t->time_ns) {
		tallies_fini(t);
		return -ENOMEM;
	}
	all = 0;
	for (uint64_t p = 0; p < t->points; p++) {
		t->of[p].time_ns = t->time_ns + all;
		all += t->of[p].runs;
	}
	return 0;
}

void tallies_fini(struct tallies *t)
{
	free(t->of);
	free(t->time_ns);
	*t = (struct tallies){0};
}

void tallies_fill(struct tallies *t, const struct run_result *results)
{
	for (uint64_t p = 0; p < t->points; p++) {
		struct tally *to = &t->of[p];

		for (uint64_t i = 0; i < to->runs; i++, results++) {
			to->time_ns[i] = results->err ? STATS_NEVER : results->time_ns;
			to->unfinished += results->err != 0;
			if (results->err && !to->err)
				to->err = results->err;
			if (!results->err)
				to->sent_bytes += results->sent_bytes;
		}
	}
}

void tallies_merge(struct tallies *whole, const struct sweep *s, const struct tallies *part,
		   uint64_t first, uint64_t stride)
{
	for (uint64_t p = 0; p < part->points; p++) {
		const struct tally *from = &part->of[p];
		struct tally *to = &whole->of[p];
		uint64_t run = tally_first_run(s, p, first, stride);

		for (uint64_t i = 0; i < from->runs; i++)
			to->time_ns[run + i * stride] = from->time_ns[i];
		to->unfinished += from->unfinished;
		to->sent_bytes += from->sent_bytes;
		if (!to->err)
			to->err = from->err;
	}
}

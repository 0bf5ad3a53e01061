/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the runs of a sweep, or of one shard of it, left: samples by point. Task i of a sweep is
 * run i mod runs of point i / runs; shard `first` of `stride` (from 0) has tasks first,
 * first + stride ...
 */
#ifndef SDR_TOOL_SIM_TALLY_H
#define SDR_TOOL_SIM_TALLY_H

#include "tool/sim/result.h"
#include "tool/sim/run.h"

struct tallies {
	struct tally *of; /* a point's; time_ns in the order of runs */
	uint64_t points;
	uint64_t *time_ns; /* of all: what of[].time_ns point into */
};

/* Room for a shard's samples, runs of each point set, all else zero. 0 or -ENOMEM. */
int tallies_init(struct tallies *t, const struct sweep *s, uint64_t first, uint64_t stride);
void tallies_fini(struct tallies *t);
/* Fills them from the results of the same shard. */
void tallies_fill(struct tallies *t, const struct run_result *results);
/* Adds a shard's to those of the whole sweep (made with first 0, stride 1). */
void tallies_merge(struct tallies *whole, const struct sweep *s, const struct tallies *part,
		   uint64_t first, uint64_t stride);
/* The first run of the point that falls to the shard, and how many do. */
uint64_t tally_first_run(const struct sweep *s, uint64_t point, uint64_t first, uint64_t stride);
uint64_t tally_runs(const struct sweep *s, uint64_t point, uint64_t first, uint64_t stride);

#endif

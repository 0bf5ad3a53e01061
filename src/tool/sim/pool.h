/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs on all cores: processes that take runs from a counter in shared memory. What comes out
 * depends on the sweep only, not on how many there are or in which order they come to a run.
 */
#ifndef SDR_TOOL_SIM_POOL_H
#define SDR_TOOL_SIM_POOL_H

#include "tool/sim/run.h"

#define POOL_JOBS_MAX 1024u

/* Tasks first, first + stride ... of points x runs, the runs of a point following each other. */
struct pool_plan {
	const struct sweep *sweep;
	uint64_t first, stride;
	uint64_t tasks;
	uint64_t jobs; /* processes */
	bool progress; /* a line on the terminal */
};

/* So many of all the tasks of the sweep fall to part `first` of `stride`. */
uint64_t pool_tasks(const struct sweep *s, uint64_t first, uint64_t stride);
/* Cores that this process may use. */
uint64_t pool_cores(void);
/*
 * *out is of plan->tasks results, in order, until pool_free(). 0, or -1: what went wrong was
 * said; also when Ctrl-C came.
 */
int pool_run(const struct pool_plan *plan, struct run_result **out);
void pool_free(const struct pool_plan *plan, struct run_result *results);

#endif

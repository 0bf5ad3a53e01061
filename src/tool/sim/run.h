/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of one point: a message from post to completion. By the engine (engine.c: the
 * library's own code over a simulated link) or by the model (model.c: a draw from plan/).
 * Both count the same: from the post at the sender until the sender knows that all of it has
 * arrived; without losses that is bytes / bandwidth + RTT.
 */
#ifndef SDR_TOOL_SIM_RUN_H
#define SDR_TOOL_SIM_RUN_H

#include "tool/sim/sweep.h"

#include <signal.h>

struct run_result {
	uint64_t time_ns;
	uint64_t sent_bytes; /* payload, with resends and parity */
	int32_t err;	     /* 0, or why it did not end: -ETIME, of the connection, -ENOMEM */
	uint32_t done;	     /* 0: not run */
};

/* What a process that runs many points keeps from one to the next. */
struct runner;

struct runner *runner_create(void);
void runner_destroy(struct runner *r);
/*
 * The result depends on the arguments only, not on what the runner did before. *stop set: ends
 * soon, out->done stays 0.
 */
void runner_run(struct runner *r, const struct sweep *s, const struct sim_point *p, uint64_t run,
		const volatile sig_atomic_t *stop, struct run_result *out);

/* model.c: for runner_run() only. */
struct model;
struct model *model_create(void);
void model_destroy(struct model *m);
void model_run(struct model *m, const struct sweep *s, const struct sim_point *p, uint64_t seed,
	       struct run_result *out);

#endif

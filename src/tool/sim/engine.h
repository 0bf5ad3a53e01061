/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run by the library's own code: two hosts, a link each way, a connection, one write. Uses
 * the public API only, so it is what an application would see.
 */
#ifndef SDR_TOOL_SIM_ENGINE_H
#define SDR_TOOL_SIM_ENGINE_H

#include "tool/sim/run.h"

/* What the engine cannot do of a point: -1 with `why`; cheap. */
int engine_limits(const struct sweep *s, const struct sim_point *p, char *why);
/* Opens a world as a run would, and a connection in it: -1 with `why` if that fails. */
int engine_check(const struct sweep *s, const struct sim_point *p, char *why);
void engine_run(const struct sweep *s, const struct sim_point *p, uint64_t seed,
		const volatile sig_atomic_t *stop, struct run_result *out);

#endif

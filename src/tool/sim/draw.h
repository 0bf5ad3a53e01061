/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sweep's results as a chart.
 */
#ifndef SDR_TOOL_SIM_DRAW_H
#define SDR_TOOL_SIM_DRAW_H

#include "tool/sim/result.h"

/* Whether the sweep can be drawn: 0, or -1: why not was said. */
int draw_check(const struct sweep *s, const char *path);
/* All points' results, in their order. 0, or -1: what went wrong was said. */
int draw(const struct sweep *s, const struct result *r, uint64_t n, const char *path);

#endif

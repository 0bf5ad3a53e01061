/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a sweep's samples to what is printed and drawn.
 */
#ifndef SDR_TOOL_SIM_SHOW_H
#define SDR_TOOL_SIM_SHOW_H

#include "tool/sim/tally.h"

enum show_form { SHOW_TABLE, SHOW_JSON, SHOW_CSV };

/*
 * Prints all points in this form and draws them into the file `plot`, or NULL. An exit code:
 * CLI_FAILED where a run did not end, too.
 */
int show_all(const struct sweep *s, struct tallies *t, enum show_form form, const char *plot);

#endif

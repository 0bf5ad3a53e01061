/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scenario's file: lines KEY = VALUE, the keys those of sweep_keys, # begins a comment, a
 * key once only.
 */
#ifndef SDR_TOOL_SIM_FILE_H
#define SDR_TOOL_SIM_FILE_H

#include "tool/sim/sweep.h"

/*
 * What stands there goes into *s, except keys with skip[key] set, whose values flags give; they
 * are looked at too. "-" is stdin. 0, or -1: what is wrong was said, with file and line.
 */
int file_read(struct sweep *s, const char *path, const bool skip[SWEEP_KEYS]);

#endif

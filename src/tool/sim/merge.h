/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shards' files into the sweep that they are parts of.
 */
#ifndef SDR_TOOL_SIM_MERGE_H
#define SDR_TOOL_SIM_MERGE_H

#include "tool/sim/shard.h"

/*
 * 0: *s is the sweep and *t has all its samples, as if it had been run in one; -1: what is
 * wrong was said: a file that is none, of another scenario or release, a shard twice or
 * missing. tallies_fini(t) is right after both.
 */
int merge_files(char **paths, uint32_t n, struct sweep *s, struct tallies *t);

#endif

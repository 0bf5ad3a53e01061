/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shard's file: JSON with everything that merging needs, so that it is exact: the whole
 * scenario as text, and every sample. About 10 bytes a run. Written and read here; read are
 * files as they are written, members in this order, white space as one likes:
 *
 *	{"sdr_sim_shard": 1, "version": "0.1.0", "shard": 2, "shards": 4,
 *	 "scenario": {"rtt": "25000000ns", ...},
 *	 "points": [{"runs": 2, "sent_bytes": 8192, "error": 0, "times_ns": [25000081, null]}]}
 */
#ifndef SDR_TOOL_SIM_SHARD_H
#define SDR_TOOL_SIM_SHARD_H

#include "tool/sim/tally.h"

#define SHARDS_MAX 100000u

struct shard_id {
	uint32_t index, count; /* from 1 */
};

/* "2/4"; -1: what is wrong was said. */
int shard_parse(const char *text, struct shard_id *out);
/* To stdout; an exit code. */
int shard_print(const struct sweep *s, const struct shard_id *id, const struct tallies *t);

/* A shard's file, read in two steps: what it is, then its samples. */
#define SHARD_VERSION_TEXT 64
struct shard_file {
	const char *path;
	char version[SHARD_VERSION_TEXT];
	struct shard_id id;
	char *scenario[SWEEP_KEYS]; /* texts, by key; NULL: not there */
	struct tallies tallies;
	struct sweep sweep;
};

/* 0, or -1: what is wrong was said. After either, shard_file_fini() is right. */
int shard_file_read(struct shard_file *f, const char *path);
void shard_file_fini(struct shard_file *f);

#endif

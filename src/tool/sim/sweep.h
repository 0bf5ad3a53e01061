/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sdr sim`: what is to be simulated, as data. A *sweep* is a link and a job whose values are
 * lists; its cross product is *points*: one link, one size, one scheme. Each point is *run*
 * many times, each run by its own seed. Flags, files and shards all become a sweep here, by
 * the same keys, so that they take the same words and give the same errors.
 *
 *	sim.c      the subcommand              run.c, engine.c, model.c   one run
 *	file.c     KEY = VALUE                 pool.c     runs on all cores
 *	sweep.c, values.c, scheme.c, points.c  stats.c    what many runs say
 *	tally.c    samples by point            result.c   statistics, and the prediction beside
 *	show.c     all points: table.c for people, print.c for programs, draw.c as a chart
 *	shard.c, shard_read.c, json_read.c, merge.c       parts of a sweep
 *
 * Knows nothing of how a run is done or what its result looks like.
 */
#ifndef SDR_TOOL_SIM_SWEEP_H
#define SDR_TOOL_SIM_SWEEP_H

#include "tool/sim/scheme.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The values that may be lists. RTT in ns, bandwidth in bit/s, sizes in bytes. */
enum sweep_axis { AXIS_RTT, AXIS_BW, AXIS_LOSS, AXIS_BURST, AXIS_SIZE, AXES };

#define AXIS_MAX 64u
#define SWEEP_SCHEMES_MAX 64u
#define SWEEP_POINTS_MAX 65536u
#define SWEEP_RUNS_MAX UINT64_C(1000000)
#define SWEEP_RUNS_DEFAULT 500u
#define SWEEP_TASKS_MAX UINT64_C(20000000) /* points times runs; 24 bytes of memory each */
#define SWEEP_VALUE_MAX 4096u		   /* characters of a value */
#define SWEEP_WHY 512u

enum sweep_engine { ENGINE_AUTO, ENGINE_REAL, ENGINE_MODEL };

struct axis {
	double v[AXIS_MAX];
	uint32_t n;
};

struct sweep {
	struct axis axis[AXES];
	struct sim_scheme scheme[SWEEP_SCHEMES_MAX];
	uint32_t schemes;
	double ack_loss; /* below 0: as the data's */
	uint64_t jitter_ns, queue_bytes;
	uint64_t coalesce_ns;		    /* interrupts of both hosts are held back so long */
	uint64_t packet_bytes, chunk_bytes; /* chunk 0: a packet */
	uint64_t runs, seed, limit_ns;	    /* limit 0: by sweep_limit_ns() */
	uint64_t cold, learn;
	enum sweep_engine engine;
	const char *device; /* "udp", "roce", "nic"; static */
};

/* One cell of the cross product. */
struct sim_point {
	uint64_t rtt_ns, bw_bps, bytes;
	double loss, burst_pkts, ack_loss;
	const struct sim_scheme *scheme;
};

enum sweep_kind {
	KEY_TIMES, /* lists, into axis[] */
	KEY_KMS,
	KEY_RATES,
	KEY_RATIOS,
	KEY_NUMBERS,
	KEY_SIZES,
	KEY_SCHEMES,
	KEY_RATIO, /* one double ... */
	KEY_TIME,  /* ... or one uint64_t, at `field` */
	KEY_SIZE,
	KEY_UINT,
	KEY_YES,
	KEY_ENGINE,
	KEY_DEVICE,
};

/* One key: as a flag without dashes, in a file, in a shard. */
struct sweep_key {
	const char *name;
	enum sweep_kind kind;
	enum sweep_axis axis;
	size_t field; /* in struct sweep */
	double min, max;
};

/* Ends with a NULL name. */
extern const struct sweep_key sweep_keys[];
#define SWEEP_KEYS 20u
/* Its place in sweep_keys, or -1. */
int sweep_key_find(const char *name);

void sweep_init(struct sweep *s);
/*
 * Sets what the key stands for. 0, or -1 with why[SWEEP_WHY]: what is wrong with the value
 * and which are right.
 */
int sweep_set(struct sweep *s, int key, const char *value, char *why);
/*
 * After all keys: what is missing, and values that contradict each other; every point is
 * looked at. 0, or -1 with `why`, which begins with the key's name and value.
 */
int sweep_check(const struct sweep *s, char *why);

uint64_t sweep_points(const struct sweep *s);
/* Point number i; the scheme turns fastest, then size, burst, loss, bandwidth, RTT. */
void sweep_point(const struct sweep *s, uint64_t i, struct sim_point *out);
/* What the point is called: everything that decides its samples but seed and run. */
#define POINT_TEXT 512u
char *point_text(const struct sweep *s, const struct sim_point *p, char *buf);
/* The seed of one run of it. */
uint64_t point_seed(const struct sweep *s, const struct sim_point *p, uint64_t run);
uint64_t sweep_chunk_bytes(const struct sweep *s);
/* Virtual time after which a run is given up. */
uint64_t sweep_limit_ns(const struct sweep *s, const struct sim_point *p);
bool sweep_uses_engine(const struct sweep *s, const struct sim_scheme *scheme);
double point_lossless_s(const struct sim_point *p); /* bytes / bandwidth + RTT */
double point_limit_s(const struct sim_point *p);    /* bytes / bandwidth / (1 - loss) + RTT */

/*
 * The key's value as sweep_set() takes it, of a sweep that passed: the same sweep gives the
 * same texts. NULL: the key is not set.
 */
const char *sweep_text(const struct sweep *s, int key, char buf[SWEEP_VALUE_MAX]);

#endif

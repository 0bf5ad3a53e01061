/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A point's runs as statistics, beside what the model says of the point. Knows nothing of how
 * it is shown.
 */
#ifndef SDR_TOOL_SIM_RESULT_H
#define SDR_TOOL_SIM_RESULT_H

#include "tool/sim/stats.h"
#include "tool/sim/sweep.h"

/* What a point's runs left: enough to make statistics of, and to merge with others. */
struct tally {
	uint64_t *time_ns; /* runs of them; STATS_NEVER: did not end */
	uint64_t runs, unfinished;
	uint64_t sent_bytes; /* of all that ended */
	int32_t err;	     /* of the first that did not end */
};

struct result {
	struct sim_point point;
	bool engine; /* by the real engine; else by the model */
	uint64_t runs, unfinished;
	int32_t err;
	struct bound mean, p50, p99, p999; /* ns; NaN: not known */
	double stderr_ns;		   /* of the mean; NaN: not known */
	double overhead;		   /* bytes sent beyond the message, of it */
	bool predicted;			   /* engine only, where the model knows the scheme: */
	struct plan_result model;	   /* what sdr plan would say, in s */
	double wait_s;			   /* what a resend costs in it, s */
	bool parted; /* the means differ by more than RESULT_TOLERANCE and 4 standard errors */
};

#define RESULT_TOLERANCE 0.02
#define RESULT_ERRORS 4

/* Sorts t->time_ns. 0, or -1: out of memory, which was said. */
int result_make(const struct sweep *s, const struct sim_point *p, struct tally *t,
		struct result *out);

/* Where results go: a table, JSON, CSV, a plot; one after the other, in points' order. */
struct json;
void table_print(const struct sweep *s, const struct result *r, uint64_t n);
void result_json(struct json *j, const struct sweep *s, const struct result *r);
void result_csv_header(void);
void result_csv(const struct sweep *s, const struct result *r);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a transfer is: a bar with rate, loss, resends and remaining time on a
 * terminal, a plain line every few seconds in a pipe (not with --json), nothing with
 * --quiet.
 * Times are the caller's.
 */
#ifndef SDR_TOOL_PROGRESS_H
#define SDR_TOOL_PROGRESS_H

#include "tool/opts.h"

#include <stdint.h>

struct sdr_conn;

enum progress_mode { PROGRESS_NONE, PROGRESS_LINES, PROGRESS_BAR };

#define PROGRESS_SAMPLES 16

struct progress {
	enum progress_mode mode;
	uint64_t total_bytes;
	uint64_t start_ns, shown_ns;
	/* the last few samples, for a rate that follows but does not jump */
	struct {
		uint64_t ns, bytes;
	} sample[PROGRESS_SAMPLES];
	unsigned int nsamples;
};

void progress_init(struct progress *p, const struct net_opts *o, uint64_t total_bytes,
		   uint64_t now_ns);
/* Cheap when it is not yet time to show anything. conn gives loss and resends; may be NULL. */
void progress_update(struct progress *p, uint64_t bytes, const struct sdr_conn *conn,
		     uint64_t now_ns);
void progress_fini(struct progress *p);
/* Recent rate, bit/s. */
double progress_rate_bps(const struct progress *p);

#endif

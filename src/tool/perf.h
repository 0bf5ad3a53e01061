/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sdr perf: what its parts share.
 *
 *	perf.c         options; which side this is
 *	perf_server.c  receives, and writes back for latency
 *	perf_client.c  one connection for each size: cold, until the rate is found, warm
 *	perf_report.c  the tables of ib_write_bw and ib_write_lat, and JSON
 *
 * The hello's arguments: message bytes, receives wanted, latency or not, whether more
 * connections of the same client follow. Then come messages of just that size, each
 * answered by one of the same size if latency is measured.
 */
#ifndef SDR_TOOL_PERF_H
#define SDR_TOOL_PERF_H

#include "tool/hist.h"
#include "tool/opts.h"

#include <sdr/conn.h>

#define PERF_SIZE_MAX (UINT64_C(1) << 30)
#define PERF_MEMORY_MAX (UINT64_C(256) << 20) /* of receives at the server */
#define PERF_DEPTH_MAX 256u
#define PERF_EACH_MAX 65536u /* messages whose times are kept for --each */

enum perf_hello_arg { PERF_ARG_SIZE, PERF_ARG_DEPTH, PERF_ARG_LAT, PERF_ARG_MORE };

struct perf_opts {
	struct net_opts net;
	uint64_t size, iters, duration_ns, depth;
	uint64_t settle_depth; /* 0: depth */
	uint64_t lat, all, once, busy, gbits, cold, each, verbose;
	struct size_list sizes;
};

/* Since the start of the phase. */
struct perf_times {
	uint64_t posted_ns, done_ns;
};

struct perf_result {
	const char *phase; /* "cold" or "warm" */
	uint64_t size, messages, ns;
	double peak_bps;
	struct hist hist;	 /* completion times; latency: half of a round trip */
	struct perf_times *each; /* --each: of the first n_each messages that completed */
	size_t n_each;
	/* what the connection says, from the phase's start to its end */
	char scheme[112];
	char write_scheme[112], why[256]; /* the last write's, and why that */
	uint64_t decisions, writes_coded, writes_no_room;
	uint64_t repair_pkts, copy_pkts, recovered_pkts;
	uint32_t channels, payload_bytes;
	uint64_t resent_bytes, parity_bytes, tx_pkts, lost_pkts, rtt_ns;
	int rate_found;
	struct perf_result *next;
};

extern const struct command cmd_perf;

/* All return an exit code. */
int perf_serve(const struct perf_opts *o);
int perf_measure(const struct perf_opts *o, const struct target *to);

/* A line as soon as there is a result; JSON at the end. */
void perf_print_head(const struct perf_opts *o);
void perf_print_line(const struct perf_opts *o, const struct perf_result *r);
void perf_print_json(const struct perf_opts *o, const struct perf_result *first);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path to HOST: what a connection to a listener of the `sdr` command there shows.
 * PINGs work with any of them; full packets, a stream and its echo need `sdr perf` there.
 * path_measure.c measures, path_judge.c judges.
 */
#ifndef SDR_TOOL_DOCTOR_PATH_H
#define SDR_TOOL_DOCTOR_PATH_H

#include "tool/doctor/finding.h"
#include "tool/doctor/net.h"
#include "tool/opts.h"

#include <sdr/conn.h>

#define PATH_PINGS 20u
#define PATH_MTUS 8u

enum path_server {
	PATH_SERVER_NONE,    /* not asked, or no answer */
	PATH_SERVER_REFUSES, /* another command than perf */
	PATH_SERVER_PERF,
};

/* One stream of equal messages. */
struct stream_facts {
	int done; /* something of it arrived */
	uint64_t bytes, ns;
	struct sdr_conn_info conn; /* what the stream changed */
	int rate_found;
	double cpu;			 /* share of one CPU that this process used */
	double second_half_bps;		 /* goodput, once the stream is under way; 0: unknown */
	uint64_t counter[SDR_CTR_COUNT]; /* of this end, since the connection began */
};

struct path_facts {
	char target[288], local[64], peer[64]; /* addresses as text, without ports */
	int status;			       /* 0: connected; else why not */
	char text[512];			       /* the library's sentence */
	uint64_t connect_ns;
	int is_v6;
	uint32_t route_mtu; /* what this host knows; 0: unknown */
	char dev[16];
	/* small packets */
	uint64_t pings_sent, pings_answered, rtt_min_ns, rtt_median_ns, reordered_pkts;
	/* packets of 1,200 bytes */
	uint32_t trains_sent, trains_seen;
	uint64_t train_bps; /* 0: says nothing */
	/* full packets */
	enum path_server server;
	char refusal[256];
	uint32_t payload_bytes; /* agreed */
	int full_tried, full_arrived;
	uint32_t passes_mtu, passes_payload; /* the largest tried size that arrived; 0: none */
	struct stream_facts out, echo;
	uint64_t echo_bad;     /* complete messages of which a packet was never written */
	struct udp_counts udp; /* what was added on this host meanwhile */
	uint32_t caps;	       /* enum sdr_cap of the device that was used */
	double load;	       /* runnable processes a CPU of this host, before it began */
};

struct path_opts {
	const struct net_opts *net;
	struct target to;
	uint64_t stream_bytes; /* 0: none */
};

void path_measure(const struct path_opts *o, struct path_facts *p);
/* Where the goal was not given, the measured round trip and rate are it. */
void path_goal(const struct path_facts *p, struct goal *goal);
/* `link_bps`: of the device that leads there; 0: unknown. p NULL: no HOST was given. */
void path_judge(const struct path_facts *p, const struct goal *goal, const struct net_facts *n,
		uint64_t link_bps, int rdma, struct findings *f);

/* RFC 1918, RFC 6598, link-local, ULA; as text. */
int address_is_private(const char *addr);

#endif

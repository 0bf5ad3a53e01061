/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of writes over one simulated long link, the same code as on real ones, in
 * virtual time: how much of the link they use, how long a cold transfer takes, what queue
 * they build. What bench/conn/wan_grid and the tests of tests/conn share. Knows nothing of
 * what is asserted.
 *
 * A flow is a connection of its own between the same two hosts, so flows share the link.
 * The handshake is played in time: TCP's round trip, HELLO there and HELLO back.
 */
#ifndef TESTS_CONN_WAN_H
#define TESTS_CONN_WAN_H

#include <stdbool.h>
#include <stdint.h>

#define WAN_FLOWS_MAX 8u
#define WAN_IP_BYTES 1500u
#define WAN_PAYLOAD_BYTES 1436u

struct wan_config {
	uint64_t seed;
	uint64_t rate_bps, rtt_ns;
	double loss, burst_pkts; /* of data; burst below 1: independent */
	double ack_loss;	 /* of what comes back; bursts as above */
	double queue_bdp;	 /* the bottleneck's, in rate x RTT */
	uint64_t size;		 /* of a write */
	unsigned int depth;	 /* writes in flight, receives posted */
	uint64_t bytes;		 /* of each flow, then it ends; 0: for duration_ns */
	uint64_t skip_ns;	 /* measure from here on (from the first flow's start) ... */
	uint64_t duration_ns;	 /* ... for so long; 0: to the end of all bytes */
	unsigned int flows;	 /* 0: 1 */
	uint64_t stagger_ns;	 /* between the flows' starts */
	uint64_t limit_ns;	 /* give up; 0: 10 min of virtual time */
	bool old_peer;		 /* the other end knows no packet trains */
	uint64_t fixed_bps;	 /* --rate; 0: found */
	uint64_t grain_ns;	 /* the hosts look no oftener than this; 0: at each packet */
	uint64_t trace_ns;	 /* a line of state each so often; 0: none */
	uint64_t every_ns;	 /* the application has a write each so often; 0: always one */
	/* From turn_ns on (0: never) the link is another one; what is 0 stays, and the queue's
	 * bytes. */
	uint64_t turn_ns, turn_rate_bps, turn_rtt_ns;
	const char *scheme;
	const char *device; /* what both ends have, as in struct sdr_sim_device; NULL: sockets */
	uint64_t jitter_ns; /* on top of the delay, each way; order is kept */
};

struct wan_flow_result {
	uint64_t start_ns, up_ns, done_ns; /* done: the last byte was acknowledged; 0: not */
	uint64_t bytes;			   /* of writes that ended within the measured time */
	uint64_t tx_pkts, resent_pkts, lost_pkts, spurious_pkts, duplicate_pkts; /* all of it */
};

struct wan_result {
	struct wan_flow_result flow[WAN_FLOWS_MAX];
	double goodput_bps; /* of all flows, in the measured time: payload that arrived */
	double mean_queue_ns, max_queue_ns; /* of the data's bottleneck, measured time */
	double max_queue_all_ns;	    /* since the start */
	uint64_t lost_queue_pkts;	    /* since the start */
	uint64_t steps;
	bool gave_up;
};

/* 0, or a negative error of what failed. */
int wan_run(const struct wan_config *config, struct wan_result *out);
/* Payload that the link can carry (at the end), bit/s, and that arrives of it after loss. */
double wan_share_bps(const struct wan_config *config);
/* The least time of a transfer without any handshake: bytes / share + RTT. */
double wan_ideal_ns(const struct wan_config *config, uint64_t bytes);

#endif

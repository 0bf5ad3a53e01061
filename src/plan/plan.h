/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/: how long a write takes over a long, lossy link, and which scheme to use there.
 *
 * The completion-time model of arXiv 2505.05366 (section 4.2, appendices A-C), extended to
 * bursts, to resends that share the link with first sends, and to a hybrid of code and
 * resends. A message is n *units* (chunks) of t seconds on the link; unit i is sent at
 * i * t, a lost unit costs O = RTO + t, and the sender knows one RTT after the last arrival.
 *
 *	PLAN_PAPER	resends are free of charge: they do not delay first sends
 *	PLAN_SERIALISED	one link carries first sends, resends and parity, one unit per slot
 *
 * gbn is serialised in both. Where there is a closed form (paper's reading, independent losses)
 *results are exact but for rounding: 1e-9 relative; with codes, above 512 likely numbers of failed
 *blocks, those between are interpolated (below 1e-4). Everything else is a seeded simulation of the
 * model, whose standard error is in the result. Serialised samples of messages much longer
 * than a round trip simulate the last round trips only (see sim.h).
 *
 * Pure: no clock, no I/O, memory through base/alloc.h. Knows nothing of packets on a wire,
 * of congestion, or of what the engine really does; it takes loss, burst and RTT as given.
 */
#ifndef SDR_PLAN_PLAN_H
#define SDR_PLAN_PLAN_H

#include "base/alloc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_BW_MIN_BPS 1e3
#define PLAN_BW_MAX_BPS 1e14
#define PLAN_RTT_MIN_S 1e-6
#define PLAN_RTT_MAX_S 1e3
#define PLAN_RTT_UNITS_MAX (1u << 24) /* 64 GiB in flight with 4 KiB packets */
#define PLAN_BURST_MAX 1e6
#define PLAN_UNITS_MAX (UINT64_C(1) << 32) /* 2 TiB is 2^29 packets of 4 KiB */
#define PLAN_CHUNK_PKTS_MAX 1024u
#define PLAN_UNIT_LOSS_MAX 0.95 /* of a chunk; above, no scheme is worth a plan */
#define PLAN_CODE_MAX 256u	/* k + m */
#define PLAN_NODES_MAX 1024u
#define PLAN_SAMPLES_MAX 10000000u

enum plan_scheme {
	PLAN_SR,      /* selective repeat, a timer of rto_rtts round trips */
	PLAN_SR_NACK, /* the same with the receiver naming holes: 1 round trip */
	PLAN_EC,      /* MDS code over the whole message; failed blocks go again by SR */
	PLAN_EC_XOR,  /* parity i covers the data units j with j mod m = i */
	PLAN_HYBRID,  /* code over the last round trip, resends before it (hybrid.h) */
	PLAN_GBN,     /* Go-Back-N: the first hole sends everything after it again */
	PLAN_SCHEMES
};

enum plan_reading { PLAN_PAPER, PLAN_SERIALISED };

struct plan_link {
	double bw_bps;
	double rtt_s;
	double loss;	   /* per packet, [0, 1) */
	double burst_pkts; /* mean length of a run of lost packets; 1 (or 0) = independent */
};

struct plan_job {
	uint64_t bytes;
	uint32_t packet_bytes;
	uint32_t chunk_bytes; /* a power of two of packets */
};

/* Units are chunks. What a scheme does not use is ignored. */
struct plan_params {
	enum plan_scheme scheme;
	double rto_rtts;  /* of SR, and of the SR that repairs failed blocks */
	double beta_rtts; /* EC: slack before the receiver names failed blocks */
	uint32_t k, m;	  /* data and parity units of a block */
	uint32_t depth;	  /* interleaving: blocks of a group; 0 = 1 */
	uint64_t span;	  /* hybrid: coded units at the message's end */
	uint32_t copies;  /* hybrid: times that a late resend goes out */
	double lambda;	  /* hybrid: price of an exposed round trip, times its mean */
};

struct plan_options {
	enum plan_reading reading;
	uint64_t seed;
	uint32_t samples; /* of a simulation; 0 = 10000 */
};

/* What is out of range, as a person calls it, and the limits; NULL: nothing. */
struct plan_fault {
	const char *what;
	double value, min, max;
	const char *why; /* what the limit comes from, or NULL */
};

struct plan_result {
	double mean_s;
	double stderr_s; /* of the mean; 0 where there is a closed form */
	double p50_s, p99_s, p999_s;
	double lossless_s; /* n * t + RTT */
	double limit_s;	   /* T*: nobody is faster: n * t / (1 - p) + RTT */
	double overhead;   /* units sent beyond n, as a part of n */
	double unit_loss;
	double p_fallback; /* EC: that at least one block has to be sent again */
	uint32_t samples;  /* 0: closed form */
};

/* Chunk loss from packet loss (paper, figure 15); exact also with bursts. */
double plan_chunk_loss(double loss, double burst_pkts, uint32_t packets);

/* 0, or -EINVAL with what is out of range. */
int plan_check(const struct plan_link *link, const struct plan_job *job,
	       const struct plan_params *params, struct plan_fault *fault);

/* The scheme's defaults: RTO 3, or 1 for sr-nack and gbn, beta 1, (32,8), depth 1; hybrid by its
 * rule. */
void plan_defaults(const struct plan_link *link, const struct plan_job *job,
		   enum plan_scheme scheme, struct plan_params *out);

/* 0, -EINVAL (ask plan_check), -ENOMEM. */
int plan_estimate(const struct plan_link *link, const struct plan_job *job,
		  const struct plan_params *params, const struct plan_options *options,
		  const struct sdr_alloc *alloc, struct plan_result *out);

/*
 * Ring Allreduce (appendix C) of job->bytes among `nodes`: 2N - 2 rounds of bytes / N, a
 * node starts a round when it and its left neighbour have ended the one before. Simulated;
 * lossless_s is 2N - 2 lossless rounds.
 */
int plan_allreduce(const struct plan_link *link, const struct plan_job *job,
		   const struct plan_params *params, uint32_t nodes,
		   const struct plan_options *options, const struct sdr_alloc *alloc,
		   struct plan_result *out);

/* "sr", "sr-nack", "ec", "ec-xor", "hybrid", "gbn". */
const char *plan_scheme_name(enum plan_scheme scheme);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Round-trip estimator. Samples are unambiguous (each transmission has its own PSN) and
 * exclude the time that the receiver held its ACK, so there is no Karn problem and no
 * ACK delay in them.
 *
 *	smoothed, variance   RFC 6298 (1/8, 1/4)
 *	min                  of the last 10 s, in two halves
 *	queue                smoothed - min
 *	rto (dynamic)        base + 0.8 variance + 1.2 queue + ACK allowance + 1 ms,
 *	                     base being min: base + queue is the smoothed RTT
 *	rto (multiple)       N x smoothed, not below the smoothed RTT plus the same allowance
 */
#ifndef SDR_REL_RTT_H
#define SDR_REL_RTT_H

#include "rel/scheme.h"
#include <stdint.h>

#define REL_RTT_MIN_WINDOW_NS UINT64_C(10000000000)
#define REL_RTO_INITIAL_NS UINT64_C(1000000000) /* RFC 8961: no knowledge, at least 1 s */
#define REL_RTO_GRANULARITY_NS UINT64_C(1000000)
#define REL_RTO_MAX_NS UINT64_C(60000000000)
#define REL_ACKS_PER_RTT 16u /* an ACK that is due comes within 1/16 RTT */

/*
 * Invariants: (1) smoothed_ns == 0 iff there was no sample; (2) min_ns() <= smoothed_ns
 * after the first sample unless older minima expired; (3) min_half_ns[] hold the minima
 * of the current and the previous 5 s, UINT64_MAX where there was no sample.
 */
struct rel_rtt {
	uint64_t smoothed_ns;
	uint64_t variance_ns;
	uint64_t latest_ns;
	uint64_t min_half_ns[2];
	uint64_t half_start_ns;
	uint64_t samples;
};

void rel_rtt_init(struct rel_rtt *rtt);
void rel_rtt_sample(struct rel_rtt *rtt, uint64_t sample_ns, uint64_t now_ns);
uint64_t rel_rtt_min_ns(const struct rel_rtt *rtt);   /* 0: no sample yet */
uint64_t rel_rtt_queue_ns(const struct rel_rtt *rtt); /* smoothed - min, 0 .. */
/* How much longer than a round trip an ACK may take when all is well. */
uint64_t rel_rtt_ack_allowance_ns(const struct rel_rtt *rtt);
uint64_t rel_rtt_rto_ns(const struct rel_rtt *rtt, const struct rel_params *params);
void rel_rtt_check(const struct rel_rtt *rtt);

#endif

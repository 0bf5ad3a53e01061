/* SPDX-License-Identifier: Apache-2.0 */
/* Round-trip estimator; see rtt.h. Knows nothing of packets. */
#include "rel/rtt.h"

#include "base/bits.h"
#include "base/check.h"

void rel_rtt_init(struct rel_rtt *rtt)
{
	*rtt = (struct rel_rtt){.min_half_ns = {UINT64_MAX, UINT64_MAX}};
}

static void roll_min(struct rel_rtt *rtt, uint64_t now_ns)
{
	uint64_t half = REL_RTT_MIN_WINDOW_NS / 2;
	/* An ACK is told with the time at which it came: PINGs may have been told since. */
	if (u64_sub_floor(now_ns, rtt->half_start_ns) < half)
		return;
	bool long_ago = now_ns - rtt->half_start_ns >= 2 * half;
	rtt->min_half_ns[1] = long_ago ? UINT64_MAX : rtt->min_half_ns[0];
	rtt->min_half_ns[0] = UINT64_MAX;
	rtt->half_start_ns = now_ns;
}

void rel_rtt_sample(struct rel_rtt *rtt, uint64_t sample_ns, uint64_t now_ns)
{
	sample_ns = u64_min(u64_max(sample_ns, 1), REL_RTO_MAX_NS);
	rtt->latest_ns = sample_ns;
	rtt->samples++;
	if (rtt->smoothed_ns == 0) {
		rtt->smoothed_ns = sample_ns;
		rtt->variance_ns = sample_ns / 2;
		rtt->min_half_ns[0] = sample_ns;
		rtt->half_start_ns = now_ns;
		return;
	}
	uint64_t diff = sample_ns > rtt->smoothed_ns ? sample_ns - rtt->smoothed_ns
						     : rtt->smoothed_ns - sample_ns;
	rtt->variance_ns = (3 * rtt->variance_ns + diff) / 4;
	rtt->smoothed_ns = u64_max((7 * rtt->smoothed_ns + sample_ns) / 8, 1);
	roll_min(rtt, now_ns);
	rtt->min_half_ns[0] = u64_min(rtt->min_half_ns[0], sample_ns);
}

uint64_t rel_rtt_min_ns(const struct rel_rtt *rtt)
{
	if (rtt->smoothed_ns == 0)
		return 0;
	return u64_min(rtt->min_half_ns[0], rtt->min_half_ns[1]);
}

uint64_t rel_rtt_queue_ns(const struct rel_rtt *rtt)
{
	return u64_sub_floor(rtt->smoothed_ns, rel_rtt_min_ns(rtt));
}

uint64_t rel_rtt_ack_allowance_ns(const struct rel_rtt *rtt)
{
	/* Three turns: two ACKs in a row may be lost. */
	return 3 * (rtt->smoothed_ns / REL_ACKS_PER_RTT);
}

static uint64_t scaled(uint64_t value_ns, double factor)
{
	return (uint64_t)((double)value_ns * factor);
}

uint64_t rel_rtt_rto_ns(const struct rel_rtt *rtt, const struct rel_params *params)
{
	if (rtt->smoothed_ns == 0)
		return REL_RTO_INITIAL_NS;
	uint64_t slack = rel_rtt_ack_allowance_ns(rtt) + REL_RTO_GRANULARITY_NS;
	uint64_t rto;
	if (params->rto_multiple > 0)
		rto = u64_max(scaled(rtt->smoothed_ns, params->rto_multiple),
			      rtt->smoothed_ns + slack);
	else
		rto = rel_rtt_min_ns(rtt) + scaled(rtt->variance_ns, 0.8) +
		      scaled(rel_rtt_queue_ns(rtt), 1.2) + slack;
	return u64_min(rto, REL_RTO_MAX_NS);
}

void rel_rtt_check(const struct rel_rtt *rtt)
{
	SDR_ASSERT((rtt->smoothed_ns == 0) == (rtt->samples == 0));
	SDR_ASSERT(rtt->samples == 0 || rel_rtt_min_ns(rtt) <= REL_RTO_MAX_NS);
	SDR_ASSERT(rtt->smoothed_ns <= REL_RTO_MAX_NS);
	(void)rtt;
}

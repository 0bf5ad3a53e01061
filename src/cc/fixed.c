/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixed: a provisioned line. Sends at the rate that a person gave; the window follows the
 * round trip, so that it is no limit as long as the line is what they said.
 */
#include "cc/cc_priv.h"

#define SLACK_NS UINT64_C(2000000)  /* ACKs come in turns of an RTT / 16, and late */
#define QUEUE_NS UINT64_C(50000000) /* more of a queue than this does not widen the window */
#define LEAST_PKTS 64u

static void fixed_init(struct cc *cc)
{
	cc->u.fixed = (struct cc_fixed){.rate_bps = cc->params.rate_bps};
}

static void fixed_ack(struct cc *cc, const struct cc_sample *s)
{
	struct cc_fixed *f = &cc->u.fixed;
	if (!s->rtt_ns)
		return;
	cc_smooth(&f->srtt_ns, s->rtt_ns);
	f->min_rtt_ns = f->min_rtt_ns ? u64_min(f->min_rtt_ns, s->rtt_ns) : s->rtt_ns;
}

static void fixed_hint(struct cc *cc, uint64_t bps, uint64_t now_ns)
{
	(void)cc; /* a person knows better */
	(void)bps;
	(void)now_ns;
}

static uint64_t fixed_window(const struct cc *cc)
{
	const struct cc_fixed *f = &cc->u.fixed;
	uint64_t rtt = f->srtt_ns ? f->srtt_ns : cc->params.rtt_ns;
	if (f->min_rtt_ns)
		rtt = u64_min(rtt, 2 * f->min_rtt_ns + QUEUE_NS);
	uint64_t bytes = cc_bytes_in(f->rate_bps, rtt + rtt / 4 + SLACK_NS);
	return u64_max(bytes, (uint64_t)LEAST_PKTS * cc->params.payload_bytes);
}

static uint64_t fixed_pacing(const struct cc *cc)
{
	return cc->u.fixed.rate_bps;
}

static void fixed_check(const struct cc *cc)
{
	SDR_ASSERT(cc->u.fixed.rate_bps == cc->params.rate_bps);
	(void)cc;
}

const struct cc_ops cc_fixed_ops = {
	.name = "fixed",
	.init = fixed_init,
	.ack = fixed_ack,
	.hint = fixed_hint,
	.window_bytes = fixed_window,
	.pacing_bps = fixed_pacing,
	.bottleneck_bps = fixed_pacing,
	.check = fixed_check,
};

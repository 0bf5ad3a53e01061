/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixed: a provisioned line. Paces at the given rate whatever happens; the window only
 * stops it when feedback stops. The breaker in cc.c is its safety.
 */
#include "base/bits.h"
#include "base/check.h"
#include "cc/cc_priv.h"

#define SLACK_NS UINT64_C(20000000) /* ACK spacing, jitter, a sleeping receiver */
#define FLOOR_BYTES (UINT64_C(1) << 20)

static void fixed_init(struct cc *cc)
{
	cc->u.fixed.rate_bps = cc->params.rate_bps;
	cc->u.fixed.srtt_ns = cc->params.rtt_ns;
}

static void fixed_ack(struct cc *cc, const struct cc_sample *s)
{
	if (s->rtt_ns)
		cc->u.fixed.srtt_ns = (7 * cc->u.fixed.srtt_ns + s->rtt_ns) / 8;
}

static uint64_t fixed_window(const struct cc *cc)
{
	const struct cc_fixed *f = &cc->u.fixed;
	/* A quarter more than a round trip holds, so that lost ACKs do not stop it. */
	double bytes = (double)f->rate_bps / 8e9 * ((double)f->srtt_ns * 1.25 + (double)SLACK_NS);

	return u64_max((uint64_t)bytes, FLOOR_BYTES);
}

static uint64_t fixed_pacing(const struct cc *cc)
{
	return cc->u.fixed.rate_bps;
}

static void fixed_check(const struct cc *cc)
{
	SDR_ASSERT(cc->u.fixed.rate_bps > 0);
	(void)cc;
}

const struct cc_ops cc_fixed_ops = {
	.name = "fixed",
	.init = fixed_init,
	.ack = fixed_ack,
	.window_bytes = fixed_window,
	.pacing_bps = fixed_pacing,
	.bottleneck_bps = fixed_pacing,
	.check = fixed_check,
};

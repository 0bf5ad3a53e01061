/* SPDX-License-Identifier: Apache-2.0 */
/* The seam of cc/ and the circuit breaker that all implementations share. See cc.h. */
#include "cc/cc_priv.h"

#include <errno.h>
#include <string.h>

#define RTT_GUESS_NS UINT64_C(10000000)
#define BREAKER_MIN_NS UINT64_C(1000000000)
#define BREAKER_MIN_PKTS 20u /* fewer in an interval say nothing */
#define BREAKER_LOSS 0.5
#define HINT_MOST_BPS (UINT64_C(1) << 50) /* the peer's word: no sum may overflow */

static const struct cc_ops *const all[] = {&cc_fixed_ops, &cc_grow_ops};

int cc_init(struct cc *cc, const char *name, const struct cc_params *params)
{
	const struct cc_ops *ops = NULL;
	for (size_t i = 0; i < SDR_ARRAY_LEN(all); i++) {
		if (name && strcmp(name, all[i]->name) == 0)
			ops = all[i];
	}
	if (!ops || params->payload_bytes == 0 || !(params->breaker_loss >= 0) ||
	    params->breaker_loss > 1 || (ops == &cc_fixed_ops && params->rate_bps == 0))
		return -EINVAL;
	*cc = (struct cc){.ops = ops, .params = *params};
	if (!cc->params.rtt_ns)
		cc->params.rtt_ns = RTT_GUESS_NS;
	cc->breaker.limit = params->breaker_loss > 0 ? params->breaker_loss : BREAKER_LOSS;
	ops->init(cc);
	return 0;
}

static void breaker_sample(struct cc *cc, const struct cc_sample *s)
{
	struct cc_breaker *b = &cc->breaker;
	b->srtt_ns = b->srtt_ns ? b->srtt_ns : cc->params.rtt_ns;
	if (s->rtt_ns)
		cc_smooth(&b->srtt_ns, s->rtt_ns);
	if (!b->start_ns)
		b->start_ns = s->now_ns;
	b->delivered_bytes += s->delivered_bytes;
	b->lost_bytes = u64_sub_floor(b->lost_bytes + s->lost_bytes, s->spurious_bytes);
	if (s->now_ns - b->start_ns < u64_max(BREAKER_MIN_NS, 4 * b->srtt_ns))
		return;
	uint64_t all_bytes = b->delivered_bytes + b->lost_bytes;
	if (all_bytes >= (uint64_t)BREAKER_MIN_PKTS * cc->params.payload_bytes) {
		bool bad = (double)b->lost_bytes > b->limit * (double)all_bytes;
		b->bad = bad ? b->bad + 1 : 0;
		if (b->bad >= CC_BREAKER_INTERVALS) {
			b->bad = CC_BREAKER_INTERVALS;
			b->state = CC_BREAKER_OPEN;
		}
	}
	b->start_ns = s->now_ns;
	b->delivered_bytes = b->lost_bytes = 0;
}

void cc_ack(struct cc *cc, const struct cc_sample *s)
{
	struct cc_sample in_order = *s;

	cc->now_ns = in_order.now_ns = u64_max(cc->now_ns, s->now_ns);
	breaker_sample(cc, &in_order);
	cc->ops->ack(cc, &in_order);
}

void cc_hint(struct cc *cc, uint64_t bps, uint64_t now_ns)
{
	bps = u64_min(bps, HINT_MOST_BPS);
	if (cc->params.max_rate_bps)
		bps = u64_min(bps, cc->params.max_rate_bps);
	cc->now_ns = u64_max(cc->now_ns, now_ns);
	if (bps)
		cc->ops->hint(cc, bps, cc->now_ns);
}

uint64_t cc_window_bytes(const struct cc *cc)
{
	return u64_max(cc->ops->window_bytes(cc),
		       (uint64_t)CC_MIN_WINDOW_PKTS * cc->params.payload_bytes);
}

uint64_t cc_pacing_bps(const struct cc *cc)
{
	uint64_t bps = u64_max(cc->ops->pacing_bps(cc), 1);
	return cc->params.max_rate_bps ? u64_min(bps, cc->params.max_rate_bps) : bps;
}

uint64_t cc_bottleneck_bps(const struct cc *cc)
{
	return cc->ops->bottleneck_bps(cc);
}

enum cc_breaker_state cc_breaker(const struct cc *cc)
{
	return cc->breaker.state;
}

const char *cc_name(const struct cc *cc)
{
	return cc->ops->name;
}

void cc_check(const struct cc *cc)
{
	SDR_ASSERT(cc->breaker.bad <= CC_BREAKER_INTERVALS);
	cc->ops->check(cc);
}

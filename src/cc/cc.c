/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seam: names to tables, and what all of them share, the circuit breaker (RFC 8084).
 * Knows nothing of how a rate is found.
 */
#include "cc/cc_priv.h"
#include "base/bits.h"
#include "base/check.h"
#include <errno.h>
#include <string.h>

#define BREAKER_LOSS_DEFAULT 0.5
#define BREAKER_INTERVAL_NS UINT64_C(1000000000)
#define BREAKER_MIN_PKTS 64u /* fewer say nothing of a ratio */

static const struct cc_ops *const known[] = {&cc_fixed_ops, &cc_grow_ops};

int cc_init(struct cc *cc, const char *name, const struct cc_params *params)
{
	const struct cc_ops *ops = NULL;

	for (size_t i = 0; i < SDR_ARRAY_LEN(known); i++)
		if (!strcmp(known[i]->name, name))
			ops = known[i];
	if (!ops || !params->payload_bytes || (ops == &cc_fixed_ops && !params->rate_bps))
		return -EINVAL;
	memset(cc, 0, sizeof(*cc));
	cc->ops = ops;
	cc->params = *params;
	if (!cc->params.rtt_ns)
		cc->params.rtt_ns = 10000000;
	cc->breaker.limit = params->breaker_loss > 0 ? params->breaker_loss : BREAKER_LOSS_DEFAULT;
	ops->init(cc);
	return 0;
}

static void breaker_ack(struct cc *cc, const struct cc_sample *s)
{
	struct cc_breaker *b = &cc->breaker;
	uint64_t length = u64_max(BREAKER_INTERVAL_NS, 4 * s->rtt_ns);
	uint64_t sum;

	if (!b->start_ns)
		b->start_ns = s->now_ns;
	b->delivered_bytes += s->delivered_bytes;
	b->lost_bytes += s->lost_bytes;
	if (s->now_ns - b->start_ns < length)
		return;
	sum = b->delivered_bytes + b->lost_bytes;
	if (sum >= (uint64_t)BREAKER_MIN_PKTS * cc->params.payload_bytes) {
		bool bad = (double)b->lost_bytes > b->limit * (double)sum;

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
	breaker_ack(cc, s);
	cc->ops->ack(cc, s);
	cc_check(cc);
}

uint64_t cc_window_bytes(const struct cc *cc)
{
	return u64_max(cc->ops->window_bytes(cc), 2 * (uint64_t)cc->params.payload_bytes);
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

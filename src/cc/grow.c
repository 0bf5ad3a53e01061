/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grow: finds the rate of an unknown path. Delivery is measured by rounds (a round trip's
 * worth, at least 2 ms); the bottleneck is the largest of the last ten. Loss alone is no
 * signal: random loss on a long path says nothing of its rate. Delivery that stops growing
 * and delay that grows are.
 *
 *	STARTUP  the window grows by what is delivered: twice a round trip
 *	         three rounds without 25 % more delivered, or two
 *	         rounds with a standing queue                          -> DRAIN
 *	DRAIN    sends less than is delivered
 *	         what is in flight fits one BDP, or three rounds       -> HOLD
 *	HOLD     sends what is delivered; every eighth round 25 % more,
 *	         then 25 % less; a standing queue: 10 % less
 *	         delivery grew by half since it began                  -> STARTUP
 */
#include "base/bits.h"
#include "base/check.h"
#include "cc/cc_priv.h"
#include <string.h>

#define INITIAL_PKTS 32u
#define FULL_GROWTH 1.25
#define FULL_ROUNDS 3u
#define BW_ROUNDS 10u
#define CYCLE_ROUNDS 8u
#define LOCAL_RTT_NS UINT64_C(2000000) /* shorter: hosts' scheduling is the delay */
#define LOCAL_SLACK_NS UINT64_C(4000000)
#define SLACK_NS UINT64_C(1000000)
#define LOCAL_GAIN 2.0
#define STARTUP_ROOM 3u			 /* of what the last round shows */
#define QUEUE_MIN_NS UINT64_C(5000000)	 /* what scheduling alone may add */
#define MIN_RTT_NS UINT64_C(10000000000) /* how long a minimum is believed */
#define REPROBE_NS UINT64_C(200000000)

/* ---- windowed maximum ---- */

static void max_update(struct cc_max *m, uint64_t round, uint64_t value)
{
	if (value >= m->best[0].value || round - m->best[2].round > BW_ROUNDS) {
		for (int i = 0; i < 3; i++) {
			m->best[i].value = value;
			m->best[i].round = round;
		}
		return;
	}
	for (int i = 1; i < 3; i++) {
		if (value < m->best[i].value)
			continue;
		for (int j = i; j < 3; j++) {
			m->best[j].value = value;
			m->best[j].round = round;
		}
		break;
	}
	if (round - m->best[0].round > BW_ROUNDS) {
		m->best[0] = m->best[1];
		m->best[1] = m->best[2];
		m->best[2].value = value;
		m->best[2].round = round;
	} else if (m->best[1].round == m->best[0].round &&
		   round - m->best[1].round > BW_ROUNDS / 4) {
		m->best[1].value = m->best[2].value = value;
		m->best[1].round = m->best[2].round = round;
	} else if (m->best[2].round == m->best[1].round &&
		   round - m->best[2].round > BW_ROUNDS / 2) {
		m->best[2].value = value;
		m->best[2].round = round;
	}
}

/* ---- helpers ---- */

static uint64_t initial_bytes(const struct cc *cc)
{
	return (uint64_t)INITIAL_PKTS * cc->params.payload_bytes;
}

static uint64_t rtt_now(const struct cc *cc)
{
	return cc->u.grow.srtt_ns ? cc->u.grow.srtt_ns : cc->params.rtt_ns;
}

static uint64_t rtt_least(const struct cc *cc)
{
	return cc->u.grow.min_rtt_ns ? cc->u.grow.min_rtt_ns : cc->params.rtt_ns;
}

static uint64_t bottleneck(const struct cc *cc)
{
	const struct cc_grow *g = &cc->u.grow;

	return g->cap_bps ? u64_min(g->cap_bps, g->bw.best[0].value) : g->bw.best[0].value;
}

static uint64_t bdp_bytes(const struct cc *cc)
{
	return (uint64_t)((double)bottleneck(cc) / 8e9 * (double)rtt_least(cc));
}

static bool is_local(const struct cc *cc)
{
	return rtt_least(cc) < LOCAL_RTT_NS;
}

/* A round trip's worth and what a host that sleeps a little takes at once. */
static uint64_t span_bytes(const struct cc *cc)
{
	uint64_t slack = is_local(cc) ? LOCAL_SLACK_NS : SLACK_NS;

	return bdp_bytes(cc) + (uint64_t)((double)bottleneck(cc) / 8e9 * (double)slack);
}

static bool queue_stands(const struct cc *cc)
{
	const struct cc_grow *g = &cc->u.grow;
	uint64_t allowed = rtt_least(cc) + u64_max(rtt_least(cc) / 4, QUEUE_MIN_NS);

	return g->round_min_rtt_ns && g->round_min_rtt_ns > allowed;
}

static void state_set(struct cc_grow *g, enum cc_grow_state to)
{
	static const bool edge[3][3] = {
		[CC_GROW_STARTUP] = {[CC_GROW_DRAIN] = true},
		[CC_GROW_DRAIN] = {[CC_GROW_HOLD] = true},
		[CC_GROW_HOLD] = {[CC_GROW_STARTUP] = true},
	};

	SDR_ASSERT(edge[g->state][to]);
	if (!edge[g->state][to])
		return;
	g->state = to;
	g->state_rounds = 0;
	g->full_rounds = 0;
	g->cycle = 0;
	g->delay_rounds = 0;
}

/* ---- rounds ---- */

static void startup_round(struct cc *cc)
{
	struct cc_grow *g = &cc->u.grow;

	if (g->round_app_limited)
		return;
	if ((double)g->bw.best[0].value >= FULL_GROWTH * (double)g->full_bps) {
		g->full_bps = g->bw.best[0].value;
		g->full_rounds = 0;
	} else {
		g->full_rounds++;
	}
	if (g->full_rounds >= FULL_ROUNDS || g->delay_rounds >= 2)
		state_set(g, CC_GROW_DRAIN);
}

static void hold_round(struct cc *cc)
{
	struct cc_grow *g = &cc->u.grow;

	g->cycle = (g->cycle + 1) % CYCLE_ROUNDS;
	if (g->state_rounds == 1)
		g->full_bps = g->bw.best[0].value;
	if (!g->round_app_limited &&
	    (double)g->bw.best[0].value > 1.5 * (double)u64_max(g->full_bps, 1)) {
		/* The path has become faster: look how much. */
		g->full_bps = g->bw.best[0].value;
		g->cwnd_bytes = u64_max(2 * bdp_bytes(cc), initial_bytes(cc));
		state_set(g, CC_GROW_STARTUP);
	}
}

static void round_begin(struct cc_grow *g, const struct cc_sample *s)
{
	g->round_started = true;
	g->round_start_ns = s->now_ns;
	g->round_start_bytes = s->total_delivered_bytes;
	g->round_end_bytes = s->total_delivered_bytes;
	g->round_min_rtt_ns = 0;
	g->round_app_limited = false;
	g->round_drops = 0;
}

static void round_end(struct cc *cc, const struct cc_sample *s)
{
	struct cc_grow *g = &cc->u.grow;
	uint64_t bytes = s->total_delivered_bytes - g->round_start_bytes;
	uint64_t bps = (uint64_t)((double)bytes * 8e9 / (double)(s->now_ns - g->round_start_ns));

	g->round++;
	g->state_rounds++;
	/* A round with nothing to send may raise the estimate, not lower it. */
	if (!g->round_app_limited || bps > g->bw.best[0].value)
		max_update(&g->bw, g->round, bps);
	else
		for (int i = 0; i < 3; i++)
			g->bw.best[i].round++;
	g->delay_rounds = queue_stands(cc) ? g->delay_rounds + 1 : 0;
	if (g->round_drops) {
		/* The receiving host is the limit: what it took is all that it takes. */
		g->cap_bps = u64_max(bps, 1);
		g->cap_until_round = g->round + BW_ROUNDS;
	} else if (g->cap_bps && g->round >= g->cap_until_round) {
		g->cap_bps = 0;
	}
	if (g->state == CC_GROW_STARTUP)
		startup_round(cc);
	else if (g->state == CC_GROW_HOLD)
		hold_round(cc);
	round_begin(g, s);
}

/* ---- the seam ---- */

static void grow_init(struct cc *cc)
{
	cc->u.grow.cwnd_bytes = initial_bytes(cc);
}

static void rtt_take(struct cc *cc, const struct cc_sample *s)
{
	struct cc_grow *g = &cc->u.grow;

	g->srtt_ns = g->srtt_ns ? (7 * g->srtt_ns + s->rtt_ns) / 8 : s->rtt_ns;
	if (!g->round_min_rtt_ns || s->rtt_ns < g->round_min_rtt_ns)
		g->round_min_rtt_ns = s->rtt_ns;
	if (!g->min_rtt_ns || s->rtt_ns <= g->min_rtt_ns + g->min_rtt_ns / 64) {
		g->min_rtt_ns = g->min_rtt_ns ? u64_min(g->min_rtt_ns, s->rtt_ns) : s->rtt_ns;
		g->min_rtt_seen_ns = s->now_ns;
		g->aged_min_ns = 0;
		return;
	}
	if (!g->aged_min_ns || s->rtt_ns < g->aged_min_ns)
		g->aged_min_ns = s->rtt_ns;
	if (s->now_ns - g->min_rtt_seen_ns < MIN_RTT_NS)
		return;
	if (!g->reprobe_end_ns) {
		/* Not seen for long: is it our own queue? A small window shows. */
		g->reprobe_end_ns = s->now_ns + u64_max(REPROBE_NS, 2 * g->srtt_ns);
		g->aged_min_ns = 0;
	} else if (s->now_ns >= g->reprobe_end_ns) {
		g->min_rtt_ns = g->aged_min_ns ? g->aged_min_ns : s->rtt_ns;
		g->min_rtt_seen_ns = s->now_ns;
		g->reprobe_end_ns = 0;
	}
}

static void grow_ack(struct cc *cc, const struct cc_sample *s)
{
	struct cc_grow *g = &cc->u.grow;

	if (s->rtt_ns)
		rtt_take(cc, s);
	if (g->reprobe_end_ns && s->now_ns >= g->reprobe_end_ns + g->srtt_ns)
		g->reprobe_end_ns = 0;
	if (s->app_limited)
		g->round_app_limited = true;
	g->round_drops += s->host_drops;
	if (g->state == CC_GROW_STARTUP && !s->app_limited)
		/* Rounds are longer than round trips on local paths: no faster than known. */
		g->cwnd_bytes =
			u64_min(g->cwnd_bytes + s->delivered_bytes,
				u64_max(STARTUP_ROOM * span_bytes(cc), 8 * initial_bytes(cc)));
	if (!g->round_started)
		round_begin(g, s);
	else if (s->prior_delivered_bytes >= g->round_end_bytes &&
		 s->now_ns - g->round_start_ns >= CC_ROUND_MIN_NS)
		round_end(cc, s);
	if (g->state == CC_GROW_DRAIN &&
	    (s->inflight_bytes <= span_bytes(cc) || g->state_rounds >= 3))
		state_set(g, CC_GROW_HOLD);
}

static uint64_t grow_window(const struct cc *cc)
{
	const struct cc_grow *g = &cc->u.grow;
	uint64_t bdp = bdp_bytes(cc);

	if (g->state == CC_GROW_STARTUP)
		return g->cwnd_bytes;
	if (g->reprobe_end_ns)
		return u64_max(bdp / 2, initial_bytes(cc));
	return u64_max(bdp + span_bytes(cc), initial_bytes(cc));
}

static uint64_t grow_pacing(const struct cc *cc)
{
	const struct cc_grow *g = &cc->u.grow;
	uint64_t bw = bottleneck(cc);
	double gain = 1.0;

	if (g->state == CC_GROW_STARTUP || !bw)
		return (uint64_t)(2.0 * (double)g->cwnd_bytes * 8e9 / (double)rtt_now(cc));
	if (g->state == CC_GROW_DRAIN)
		gain = 0.5;
	else if (g->delay_rounds >= 2)
		gain = 0.9;
	else if (is_local(cc))
		gain = LOCAL_GAIN; /* the window is the limit; its delay is milliseconds */
	else if (g->cycle == 0 && g->state_rounds)
		gain = 1.25;
	else if (g->cycle == 1)
		gain = 0.75;
	return (uint64_t)(gain * (double)bw);
}

static void grow_check(const struct cc *cc)
{
	SDR_ASSERT(cc->u.grow.cwnd_bytes >= initial_bytes(cc));
	SDR_ASSERT(cc->u.grow.cycle < CYCLE_ROUNDS);
	(void)cc;
}

const struct cc_ops cc_grow_ops = {
	.name = "grow",
	.init = grow_init,
	.ack = grow_ack,
	.window_bytes = grow_window,
	.pacing_bps = grow_pacing,
	.bottleneck_bps = bottleneck,
	.check = grow_check,
};

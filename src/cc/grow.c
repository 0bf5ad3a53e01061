/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grow: finds the path's rate and stays there. A relative of BBR (delivery rate, windowed
 * maximum, gains), with four differences: a hint (packet trains) lets it start near the
 * rate; loss that comes from elsewhere is measured and made up for; a standing queue ends
 * any phase; what a receiving host drops is a limit of its own.
 *
 *	phase     pace             ends when                                       next
 *	STARTUP   2.885            delivery grew < 25 % in 3 rounds, or a          DRAIN
 *	                           standing queue
 *	                           a hint far above the estimate                   JUMP
 *	JUMP      3/4 of the hint  what arrived in some quarter of a round trip
 *	                             confirms it                                   LAND
 *	                             does not, and much was lost; or a queue grows DRAIN
 *	                             does not in a whole round trip                STARTUP
 *	LAND      the hint         its first half round trip has arrived: all      UP
 *	                             less, or a queue grows                        DRAIN
 *	DRAIN     1 / 2.885        in flight is down to what the path holds        CRUISE
 *	CRUISE    1, a little less a round, then 2, 4, 6 of them                   UP
 *	          with a queue     a standing queue for 2 rounds                   DOWN
 *	UP        1.15 (1.45, 2)   a round                                         LOOK
 *	LOOK      1                a round: more arrived                           UP
 *	                             no more, or a queue                           DOWN
 *	DOWN      0.85 .. 0.5      a round, and in flight is down                  CRUISE
 *
 * One round of UP, then a round that only waits for its outcome: so a probe queues 15 % of
 * a round trip at most, which DOWN drains in a round, and the link is never idle.
 *
 * Losses. What was lost at DOWN's low rate does not come from our rate, unless CRUISE
 * loses clearly more: then the rate is too high, and nothing is made up for. Otherwise
 * the pace is raised so that the estimated rate arrives: bw / (1 - loss).
 *
 * Standing queue: the least RTT of a round is above the path's least by a quarter and 3 ms.
 * If it stays although in flight is down, the path is longer than it was; where the window
 * keeps in flight from getting there, two round trips with a small one tell. A phase that may
 * build a queue does not wait for its round to end: the least of three samples tells.
 *
 * Rounds. A round is over when something sent after its start was delivered, and not before
 * ROUND_MIN_NS: below that, single trains and the host's scheduling are all that one sees. A
 * phase begins with a round of its own.
 */
#include "cc/cc_priv.h"

#define ROUND_MIN_NS UINT64_C(2000000)
#define RATE_MIN_NS UINT64_C(1000000)
#define QUEUE_MIN_NS UINT64_C(3000000)
#define MIN_RTT_AGE_NS UINT64_C(10000000000)
#define REPROBE_NS UINT64_C(20000000)
#define BW_ROUNDS 10u
#define CRUISE_ROUNDS_MOST 6u
#define DRAIN_ROUNDS_MAX 8u
#define DOWN_ROUNDS 3u
#define STUCK_ROUNDS 5u
#define STAND_ROUNDS 6u
#define SLOW_ROUNDS 2u
#define FULL_ROUNDS 3u
#define CAP_ROUNDS 10u
#define INITIAL_PKTS 32u
#define EXTRA_PKTS 32u /* of window beyond the path, for trains and turns of ACKs */
#define EXTRA_BYTES UINT64_C(524288)
#define EXTRA_NS UINT64_C(5000000)
#define EXTRA_FAST_NS UINT64_C(1000000) /* what a host's scheduling takes, at any rate */
#define GAP_MAX_NS UINT64_C(5000000)
#define LOSS_MAX 0.5
#define FATE_PKTS 50.0
#define FATE_FADE_PKTS 1000.0
#define FATE_FADE_PATHS 2.0
#define UNCLEAN_KEEPS 0.9
#define STARTUP_GAIN 2.885
#define UP_GAIN_FIRST 1.15 /* then the step is three times as high, up to ... */
#define UP_GAIN_MOST 2.0
#define LOOK_QUEUE_PART 11u /* of the round trip: six tenths of what UP may have queued */
#define DOWN_GAIN_MOST 0.85
#define DOWN_GAIN_LEAST 0.5
#define CRUISE_GIVE 0.10		/* of the pace, at the longest queue that passes */
#define JUMP_SHARE 0.75			/* of the hint */
#define JUMP_BYTES (UINT64_C(16) << 20) /* in flight, before anything has come back */
#define JUMP_LOSS_MOST 0.15
#define JUMP_CONFIRMS 0.8
#define LAND_CONFIRMS 0.85

static void max_reset(struct cc_max *m, uint64_t value, uint64_t round)
{
	for (int i = 0; i < 3; i++) {
		m->best[i].value = value;
		m->best[i].round = round;
	}
}

static void max_add(struct cc_max *m, uint64_t value, uint64_t round)
{
	if (value >= m->best[0].value || round - m->best[2].round > BW_ROUNDS) {
		max_reset(m, value, round);
		return;
	}
	for (int i = 1; i < 3; i++) {
		if (value < m->best[i].value)
			continue;
		for (int k = i; k < 3; k++) {
			m->best[k].value = value;
			m->best[k].round = round;
		}
		break;
	}
	/* The best is too old: the next ones move up. */
	while (round - m->best[0].round > BW_ROUNDS) {
		m->best[0] = m->best[1];
		m->best[1] = m->best[2];
		m->best[2].value = value;
		m->best[2].round = round;
	}
	uint64_t age = round - m->best[0].round;
	if (m->best[1].round == m->best[0].round && age > BW_ROUNDS / 4) {
		m->best[1].value = m->best[2].value = value;
		m->best[1].round = m->best[2].round = round;
	} else if (m->best[2].round == m->best[1].round && age > BW_ROUNDS / 2) {
		m->best[2].value = value;
		m->best[2].round = round;
	}
}

static uint64_t bw_bps(const struct cc_grow *g)
{
	return g->bw.best[0].value;
}

/* What must be sent for the estimate to arrive. */
static uint64_t send_bps(const struct cc_grow *g)
{
	return (uint64_t)((double)bw_bps(g) / (1 - g->base_loss));
}

static uint64_t path_bytes(const struct cc_grow *g)
{
	return cc_bytes_in(send_bps(g), g->min_rtt_ns);
}

static uint64_t queue_limit_ns(const struct cc_grow *g)
{
	return u64_max(g->min_rtt_ns / 4, QUEUE_MIN_NS);
}

/* The queue now, as the least of the last samples has it. */
static uint64_t queue_now_ns(const struct cc_grow *g)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < SDR_ARRAY_LEN(g->last_rtt_ns); i++)
		least = u64_min(least, g->last_rtt_ns[i]);
	return u64_sub_floor(least, g->min_rtt_ns);
}

static void round_begin(struct cc_grow *g, const struct cc_sample *s)
{
	g->round = (struct cc_round){
		.start_ns = s->now_ns,
		.end_bytes = s->total_delivered_bytes,
	};
}

static void phase_set(struct cc_grow *g, enum cc_grow_phase phase, uint64_t now_ns)
{
	uint64_t queue = queue_now_ns(g);
	double down = 1 - (double)queue / (double)u64_max(g->min_rtt_ns, 1);

	if (phase == CC_GROW_UP)
		g->up_gain = g->phase == CC_GROW_LOOK ? 1 + 3 * (g->up_gain - 1) : UP_GAIN_FIRST;
	if (g->up_gain > UP_GAIN_MOST)
		g->up_gain = UP_GAIN_MOST;
	g->down_gain = down > DOWN_GAIN_MOST	? DOWN_GAIN_MOST
		       : down < DOWN_GAIN_LEAST ? DOWN_GAIN_LEAST
						: down;
	/* LOOK judges by what UP started from. */
	if (phase != CC_GROW_LOOK)
		g->phase_bps = bw_bps(g);
	g->phase = phase;
	g->phase_rounds = 0;
	g->phase_ns = now_ns;
	g->phase_news_ns = 0;
	if (phase == CC_GROW_CRUISE || phase == CC_GROW_UP)
		g->state = CC_GROW_HOLD;
}

static void grow_init(struct cc *cc)
{
	cc->u.grow = (struct cc_grow){.phase = CC_GROW_STARTUP,
				      .last_phase = CC_GROW_STARTUP,
				      .cruise_rounds = 1,
				      .up_gain = UP_GAIN_FIRST};
}

static void take_rtt(struct cc_grow *g, const struct cc_sample *s)
{
	uint64_t rtt = s->rtt_ns;
	if (!rtt)
		return;
	cc_smooth(&g->srtt_ns, rtt);
	for (size_t i = 0; i < SDR_ARRAY_LEN(g->last_rtt_ns); i++) {
		if (!g->last_rtt_ns[i])
			g->last_rtt_ns[i] = rtt;
	}
	g->last_rtt_ns[g->last_rtt_turn++ % SDR_ARRAY_LEN(g->last_rtt_ns)] = rtt;
	if (!g->round.min_rtt_ns || rtt < g->round.min_rtt_ns)
		g->round.min_rtt_ns = rtt;
	if (!g->min_rtt_ns || rtt < g->min_rtt_ns)
		g->min_rtt_ns = rtt;
	if (rtt <= g->min_rtt_ns + g->min_rtt_ns / 32)
		g->min_seen_ns = s->now_ns;
	if (!g->reprobe_end_ns)
		return;
	/* What was in flight when the window closed says nothing: the second half does. */
	if (s->now_ns + (g->reprobe_end_ns - g->reprobe_start_ns) / 2 >= g->reprobe_end_ns &&
	    (!g->reprobe_min_ns || rtt < g->reprobe_min_ns))
		g->reprobe_min_ns = rtt;
}

/*
 * The least RTT was not seen for long, or a queue stands whatever we do: look with next to
 * nothing in flight. Is it still there, then the path is longer than it was.
 */
static void reprobe(struct cc_grow *g, uint64_t now_ns)
{
	bool holds = g->phase == CC_GROW_CRUISE || g->phase == CC_GROW_DOWN;
	bool stands = holds && g->queue_rounds >= STAND_ROUNDS;
	bool old = g->phase == CC_GROW_CRUISE && now_ns - g->min_seen_ns > MIN_RTT_AGE_NS;

	if (g->reprobe_end_ns && now_ns >= g->reprobe_end_ns) {
		if (g->reprobe_min_ns) {
			if (g->reprobe_min_ns > g->min_rtt_ns + queue_limit_ns(g))
				g->cruise_rounds = 1; /* another path: what it carries is open */
			g->min_rtt_ns = g->reprobe_min_ns;
			g->min_seen_ns = now_ns;
		}
		g->reprobe_end_ns = 0;
		g->queue_rounds = 0;
	} else if (!g->reprobe_end_ns && (old || stands)) {
		g->reprobe_start_ns = now_ns;
		g->reprobe_end_ns = now_ns + 2 * g->srtt_ns + REPROBE_NS;
		g->reprobe_min_ns = 0;
	}
}

static void take_rate(struct cc_grow *g, uint64_t bps, bool app_limited)
{
	g->round.best_bps = u64_max(g->round.best_bps, bps);
	if (!app_limited || bps > bw_bps(g))
		max_add(&g->bw, bps, g->nround);
}

/* What was sent in a round is told of in the next one. */
static void take_fate(struct cc *cc, const struct cc_round *r)
{
	struct cc_grow *g = &cc->u.grow;
	struct cc_fate *f = &g->fate[g->last_phase];
	struct cc_fate *low = &g->fate[CC_GROW_DOWN], *hold = &g->fate[CC_GROW_CRUISE];
	double least = FATE_PKTS * cc->params.payload_bytes;
	/* What a full queue drops is no measure of anything, whoever filled it. */
	bool clean = !r->host_drops && !g->queue_rounds && !g->last_queue_rounds &&
		     g->queue_ns <= queue_limit_ns(g) / 2;
	double fade = FATE_FADE_PKTS * cc->params.payload_bytes;
	double paths = FATE_FADE_PATHS * (double)path_bytes(g);

	/* What is made up for may be what made the queue. */
	if (!clean)
		g->base_loss *= UNCLEAN_KEEPS;
	if (clean) {
		f->sent += (double)(r->fate_delivered_bytes + r->fate_lost_bytes);
		f->lost += (double)r->fate_lost_bytes;
	}
	for (int i = 0; i < CC_GROW_PHASES; i++) {
		if (g->fate[i].sent > fade && g->fate[i].sent > paths) {
			g->fate[i].sent /= 2;
			g->fate[i].lost /= 2;
		}
	}
	if (g->phase != CC_GROW_CRUISE || low->sent < least || hold->sent < least)
		return;
	double low_loss = low->lost / low->sent, hold_loss = hold->lost / hold->sent;
	/* Clearly more, and by more than two standard deviations. */
	double more = hold_loss - 1.2 * low_loss - 0.02;
	double variance = hold_loss * (1 - hold_loss) * cc->params.payload_bytes *
			  (1 / low->sent + 1 / hold->sent);
	if (more > 0 && more * more > 4 * variance)
		g->base_loss = 0.5 * (g->base_loss < low_loss ? g->base_loss : low_loss);
	else
		g->base_loss = low_loss < LOSS_MAX ? low_loss : LOSS_MAX;
}

/* The receiving host drops: it takes what it took, for a while. */
static void take_host_drops(struct cc_grow *g, const struct cc_round *r, uint64_t round_bps)
{
	if (r->host_drops) {
		g->cap_bps = u64_max(round_bps - round_bps / 16, 1);
		g->cap_round = g->nround;
	} else if (g->cap_bps && g->nround - g->cap_round >= CAP_ROUNDS) {
		g->cap_bps += g->cap_bps / 4;
		g->cap_round = g->nround;
		if (g->cap_bps > 2 * bw_bps(g))
			g->cap_bps = 0;
	}
}

/* Less arrives than the estimate, and not by chance: the path became slower. */
static void take_slowness(struct cc *cc, const struct cc_round *r, uint64_t round_bps)
{
	struct cc_grow *g = &cc->u.grow;
	double fated = (double)(r->delivered_bytes + r->lost_bytes);
	bool lossy = fated > FATE_PKTS * cc->params.payload_bytes &&
		     (double)r->lost_bytes > (g->base_loss + 0.1) * fated;
	bool steady = g->phase != CC_GROW_STARTUP && g->phase != CC_GROW_DRAIN &&
		      g->last_phase != CC_GROW_DOWN && !g->reprobe_end_ns;
	bool slow = steady && !r->app_limited && (double)round_bps < 0.8 * (double)bw_bps(g) &&
		    (g->queue_rounds || lossy);
	g->slow_rounds = slow ? g->slow_rounds + 1 : 0;
	if (g->slow_rounds >= SLOW_ROUNDS) {
		max_reset(&g->bw, round_bps, g->nround);
		g->slow_rounds = 0;
	}
}

static void take_queue(struct cc_grow *g, const struct cc_round *r, bool drained)
{
	bool delayed = r->min_rtt_ns > g->min_rtt_ns + queue_limit_ns(g);
	g->queue_ns = u64_sub_floor(r->min_rtt_ns, g->min_rtt_ns);
	bool marked = 2 * r->ce_bytes > r->delivered_bytes;
	g->last_queue_rounds = g->queue_rounds;
	g->queue_rounds = delayed || marked ? g->queue_rounds + 1 : 0;
	/* Held, and yet a queue grows: perhaps we make up for too much. */
	if (g->queue_rounds == 2 && g->phase == CC_GROW_CRUISE)
		g->base_loss *= 0.75;
	/* In flight is down, and still: it is no queue of ours. */
	g->stuck_rounds = delayed && drained ? g->stuck_rounds + 1 : 0;
	if (g->stuck_rounds >= STUCK_ROUNDS) {
		g->min_rtt_ns = r->min_rtt_ns;
		g->stuck_rounds = g->queue_rounds = 0;
	}
}

static void startup_round(struct cc_grow *g, bool app_limited, uint64_t now_ns)
{
	if (app_limited)
		return;
	if ((double)bw_bps(g) >= 1.25 * (double)g->full_bps) {
		g->full_bps = bw_bps(g);
		g->full_rounds = 0;
	} else if (++g->full_rounds >= FULL_ROUNDS) {
		phase_set(g, CC_GROW_DRAIN, now_ns);
	}
}

/* Did as much more arrive as UP sent, by half at least? */
static bool up_found(const struct cc_grow *g)
{
	return (double)bw_bps(g) >= (1 + 0.5 * (g->up_gain - 1)) * (double)g->phase_bps;
}

/* Nothing more is there: the next probe can wait, the longer the more often that was so. */
static void up_failed(struct cc_grow *g)
{
	g->cruise_rounds = up_found(g) ? 1 : 2 * g->cruise_rounds;
	if (g->cruise_rounds > CRUISE_ROUNDS_MOST)
		g->cruise_rounds = CRUISE_ROUNDS_MOST;
}

/* What a round's end decides. */
static void next_phase(struct cc_grow *g, const struct cc_round *r, bool drained, uint64_t now_ns)
{
	switch (g->phase) {
	case CC_GROW_STARTUP:
		startup_round(g, r->app_limited, now_ns);
		break;
	case CC_GROW_DRAIN:
		if (g->phase_rounds >= DRAIN_ROUNDS_MAX)
			phase_set(g, CC_GROW_CRUISE, now_ns);
		break;
	case CC_GROW_UP:
		phase_set(g, CC_GROW_LOOK, now_ns);
		break;
	case CC_GROW_LOOK:
		if (up_found(g) && !g->queue_rounds) {
			phase_set(g, CC_GROW_UP, now_ns);
		} else {
			up_failed(g);
			phase_set(g, CC_GROW_DOWN, now_ns);
		}
		break;
	case CC_GROW_DOWN:
		/* In flight is down, and yet a queue: others', or a path too short to tell. */
		if ((drained && (!g->queue_rounds || g->phase_rounds >= DOWN_ROUNDS)) ||
		    g->phase_rounds >= DRAIN_ROUNDS_MAX)
			phase_set(g, CC_GROW_CRUISE, now_ns);
		break;
	case CC_GROW_CRUISE:
		if (g->queue_rounds >= 2)
			phase_set(g, CC_GROW_DOWN, now_ns);
		else if (g->phase_rounds >= g->cruise_rounds && !r->app_limited)
			phase_set(g, CC_GROW_UP, now_ns);
		break;
	default: /* JUMP and LAND go by time */
		break;
	}
}

/* In flight is down to what the path holds, but for what no news has come of yet. */
static bool is_drained(const struct cc *cc, const struct cc_sample *s)
{
	const struct cc_grow *g = &cc->u.grow;
	uint64_t lag = cc_bytes_in(send_bps(g), g->min_rtt_ns / 8 + ROUND_MIN_NS / 2);
	uint64_t trains = u64_min((uint64_t)EXTRA_PKTS * cc->params.payload_bytes,
				  cc_bytes_in(send_bps(g), queue_limit_ns(g) / 2));

	trains = u64_max(trains, 2 * (uint64_t)cc->params.payload_bytes);
	return s->inflight_bytes <= path_bytes(g) + lag + trains;
}

static void round_finish(struct cc *cc, const struct cc_sample *s)
{
	struct cc_grow *g = &cc->u.grow;
	struct cc_round r = g->round;
	enum cc_grow_phase phase = g->phase;
	uint64_t round_bps = cc_rate_bps(r.delivered_bytes, s->now_ns - r.start_ns);
	/* No sample was long enough to be believed: the round's own rate. */
	if (!r.best_bps)
		take_rate(g, round_bps, r.app_limited);
	round_bps = u64_max(round_bps, g->round.best_bps);
	g->nround++;
	g->phase_rounds++;
	bool drained = is_drained(cc, s);
	take_queue(g, &r, drained);
	take_host_drops(g, &r, round_bps);
	take_slowness(cc, &r, round_bps);
	take_fate(cc, &r);
	next_phase(g, &r, drained, s->now_ns);
	g->last_phase = phase;
	round_begin(g, s);
}

/* A phase that ends within its round: the next one gets a round of its own. */
static void phase_cut(struct cc_grow *g, enum cc_grow_phase phase, const struct cc_sample *s)
{
	g->last_phase = g->phase;
	phase_set(g, phase, s->now_ns);
	round_begin(g, s);
}

/* What JUMP has in flight at most: what it sends in a round trip, up to a limit. */
static uint64_t jump_bytes(const struct cc_grow *g, uint64_t rtt_ns)
{
	return u64_min(cc_bytes_in((uint64_t)(JUMP_SHARE * (double)g->hint_bps), rtt_ns),
		       JUMP_BYTES);
}

static uint64_t recent_least_ns(const struct cc_grow *g)
{
	uint64_t least = g->min_rtt_ns / 4;

	/* A flight that fills but a part of the round trip comes back as a burst. */
	if (g->phase == CC_GROW_JUMP)
		least = u64_min(least, (uint64_t)((double)jump_bytes(g, g->min_rtt_ns) * 4e9 /
						  (JUMP_SHARE * (double)g->hint_bps)));
	return u64_max(least, ROUND_MIN_NS);
}

static void take_recent(struct cc_grow *g, const struct cc_sample *s)
{
	struct cc_recent *recent = &g->recent;
	uint64_t least = recent_least_ns(g);

	if (!s->delivered_bytes)
		return;
	if (!recent->start_ns || !s->inflight_bytes) {
		*recent = (struct cc_recent){.start_ns = s->now_ns, .bps = recent->bps};
		return;
	}
	recent->delivered_bytes += s->delivered_bytes;
	if (s->now_ns - recent->start_ns < least)
		return;
	recent->bps = cc_rate_bps(recent->delivered_bytes, s->now_ns - recent->start_ns);
	recent->start_ns = s->now_ns;
	recent->delivered_bytes = 0;
}

/* The jump is over: what arrives lately is the estimate, unless a later sample has more. */
static void jump_end(struct cc_grow *g, enum cc_grow_phase next, const struct cc_sample *s)
{
	if (g->recent.bps > bw_bps(g))
		max_reset(&g->bw, g->recent.bps, g->nround);
	phase_cut(g, next, s);
}

static void jump_step(struct cc *cc, const struct cc_sample *s)
{
	struct cc_grow *g = &cc->u.grow;
	struct cc_fate *f = &g->fate[CC_GROW_JUMP];
	double hint = (double)g->hint_bps, share;
	uint64_t was_inflight = s->inflight_bytes + s->delivered_bytes + s->lost_bytes;

	if (was_inflight < jump_bytes(g, g->min_rtt_ns) / 2) {
		/* Less was sent than might have been: nothing is confirmed, nothing refuted. */
		g->phase_ns = s->now_ns;
		g->phase_news_ns = 0;
		return;
	}
	f->sent += (double)(s->delivered_bytes + s->lost_bytes);
	f->lost += (double)s->lost_bytes;
	if (!g->phase_news_ns) {
		/* What was sent before comes first. */
		if (s->now_ns - g->phase_ns < g->min_rtt_ns)
			return;
		g->phase_news_ns = s->now_ns;
		g->recent = (struct cc_recent){.start_ns = s->now_ns};
		return;
	}
	/* More than that is overload until it is proved otherwise. */
	share = f->lost < JUMP_LOSS_MOST * f->sent ? f->lost / f->sent : JUMP_LOSS_MOST;
	if (!g->recent.bps) {
		/* It left as one burst, and most of it was lost: that tells of no rate at all. */
		if (share >= JUMP_LOSS_MOST)
			jump_end(g, CC_GROW_STARTUP, s);
		return;
	}
	if (g->phase == CC_GROW_JUMP) {
		if ((double)g->recent.bps >= JUMP_CONFIRMS * JUMP_SHARE * hint * (1 - share))
			phase_cut(g, CC_GROW_LAND, s);
		else if (share >= JUMP_LOSS_MOST)
			jump_end(g, CC_GROW_DRAIN, s);
		/* No loss, no queue: the hosts were slow. That is no fault of the path. */
		else if (s->now_ns - g->phase_news_ns > g->min_rtt_ns)
			jump_end(g, CC_GROW_STARTUP, s);
		return;
	}
	if (s->now_ns - g->phase_news_ns < g->min_rtt_ns / 2)
		return;
	bool landed = (double)g->recent.bps >= LAND_CONFIRMS * hint * (1 - share);
	/* No queue grew, and no less arrived than it should: the loss is the path's. */
	if (landed && share < JUMP_LOSS_MOST) {
		g->base_loss = share;
		/* For a first judgement; what DOWN sees will outweigh it. */
		g->fate[CC_GROW_DOWN].sent = FATE_PKTS * cc->params.payload_bytes;
		g->fate[CC_GROW_DOWN].lost = share * g->fate[CC_GROW_DOWN].sent;
	}
	jump_end(g, landed ? CC_GROW_UP : CC_GROW_DRAIN, s);
}

/* What need not wait for the round's end. */
static void phase_watch(struct cc *cc, const struct cc_sample *s)
{
	struct cc_grow *g = &cc->u.grow;
	uint64_t queue = queue_now_ns(g), limit = queue_limit_ns(g);

	switch (g->phase) {
	case CC_GROW_STARTUP:
		if (queue <= limit || s->app_limited)
			return;
		/* The bottleneck is busy: what comes through is its rate. */
		take_rate(g, g->recent.bps, s->app_limited);
		phase_cut(g, CC_GROW_DRAIN, s);
		break;
	case CC_GROW_JUMP:
	case CC_GROW_LAND:
		/* Half of it: what a short queue dropped must not count as the path's loss. */
		if (queue > limit / 2)
			jump_end(g, CC_GROW_DRAIN, s);
		else
			jump_step(cc, s);
		break;
	case CC_GROW_DRAIN:
		if (is_drained(cc, s) && s->now_ns - g->phase_ns >= ROUND_MIN_NS)
			phase_cut(g, CC_GROW_CRUISE, s);
		break;
	case CC_GROW_LOOK:
		if (queue > u64_max(g->min_rtt_ns / LOOK_QUEUE_PART, QUEUE_MIN_NS)) {
			up_failed(g);
			phase_cut(g, CC_GROW_DOWN, s);
		}
		break;
	default:
		break;
	}
}

/* The longest time without news while something was in flight; fades. */
static void take_gap(struct cc_grow *g, const struct cc_sample *s)
{
	if (!s->delivered_bytes)
		return;
	if (g->news_ns && !s->app_limited) {
		uint64_t gap = u64_min(s->now_ns - g->news_ns, GAP_MAX_NS);
		g->gap_ns = u64_max(gap, g->gap_ns - g->gap_ns / 64);
	}
	g->news_ns = s->inflight_bytes ? s->now_ns : 0;
}

static void grow_ack(struct cc *cc, const struct cc_sample *s)
{
	struct cc_grow *g = &cc->u.grow;
	struct cc_round *r = &g->round;
	if (!r->start_ns)
		round_begin(g, s);
	take_rtt(g, s);
	take_gap(g, s);
	reprobe(g, s->now_ns);
	take_recent(g, s);
	if (s->now_ns - r->start_ns >= g->min_rtt_ns / 8) {
		r->fate_delivered_bytes += s->delivered_bytes;
		r->fate_lost_bytes =
			u64_sub_floor(r->fate_lost_bytes + s->lost_bytes, s->spurious_bytes);
	}
	r->delivered_bytes += s->delivered_bytes;
	r->lost_bytes = u64_sub_floor(r->lost_bytes + s->lost_bytes, s->spurious_bytes);
	r->ce_bytes += s->ce_bytes;
	r->host_drops += s->host_drops;
	if (s->rate_interval_ns) {
		r->app_limited |= s->app_limited;
		if (s->rate_interval_ns >= u64_max(g->min_rtt_ns / 2, RATE_MIN_NS))
			take_rate(g, cc_rate_bps(s->rate_bytes, s->rate_interval_ns),
				  s->app_limited);
		if (s->prior_delivered_bytes >= r->end_bytes &&
		    s->now_ns - r->start_ns >= ROUND_MIN_NS)
			round_finish(cc, s);
	}
	phase_watch(cc, s);
}

static void grow_hint(struct cc *cc, uint64_t bps, uint64_t now_ns)
{
	struct cc_grow *g = &cc->u.grow;

	/* Once: what a jump has refuted is not believed again. */
	if (g->phase == CC_GROW_STARTUP && !g->hint_bps && bw_bps(g) < bps / 4) {
		g->hint_bps = bps;
		phase_set(g, CC_GROW_JUMP, now_ns);
	} else if (g->phase == CC_GROW_JUMP) {
		g->hint_bps = bps; /* the next train's word */
	}
}

static uint64_t grow_window(const struct cc *cc)
{
	const struct cc_grow *g = &cc->u.grow;
	uint64_t initial = (uint64_t)INITIAL_PKTS * cc->params.payload_bytes;
	if (g->phase == CC_GROW_JUMP) {
		uint64_t rtt = g->srtt_ns ? g->srtt_ns : cc->params.rtt_ns;
		return jump_bytes(g, 2 * rtt + EXTRA_FAST_NS) + initial;
	}
	if (g->phase == CC_GROW_LAND)
		return 2 * cc_bytes_in(g->hint_bps, g->min_rtt_ns + EXTRA_FAST_NS) + initial;
	if (!bw_bps(g))
		return initial;
	uint64_t path = path_bytes(g);
	uint64_t extra = u64_min(EXTRA_BYTES, cc_bytes_in(send_bps(g), EXTRA_NS));
	/* News comes in lumps: what is sent between two of them, and between two more. */
	extra = u64_max(extra, cc_bytes_in(send_bps(g), EXTRA_FAST_NS + 2 * g->gap_ns)) +
		(uint64_t)EXTRA_PKTS * cc->params.payload_bytes;
	if (g->reprobe_end_ns)
		return path / 2;
	if (g->phase == CC_GROW_STARTUP)
		return u64_max((uint64_t)(STARTUP_GAIN * (double)path) + extra, initial);
	/*
	 * Draining what should not be there: no more than what keeps the path busy. After a
	 * mere probe the pace does it; and news may be late without anybody's fault.
	 */
	if (g->phase == CC_GROW_DRAIN ||
	    (g->phase == CC_GROW_DOWN && g->down_gain < DOWN_GAIN_MOST))
		return path + path / 4 + extra;
	return 2 * path + extra;
}

static double phase_gain(const struct cc_grow *g)
{
	double queue = (double)g->queue_ns / (double)u64_max(queue_limit_ns(g), 1);

	switch (g->phase) {
	case CC_GROW_STARTUP:
		return STARTUP_GAIN;
	case CC_GROW_DRAIN:
		return 1 / STARTUP_GAIN;
	case CC_GROW_UP:
		return g->up_gain;
	case CC_GROW_DOWN:
		return g->down_gain;
	default:
		return 1 - CRUISE_GIVE * (queue < 1 ? queue : 1);
	}
}

static uint64_t grow_pacing(const struct cc *cc)
{
	const struct cc_grow *g = &cc->u.grow;
	uint64_t rtt = g->srtt_ns ? g->srtt_ns : cc->params.rtt_ns;
	double first = (double)cc_rate_bps((uint64_t)INITIAL_PKTS * cc->params.payload_bytes, rtt);
	double bps = phase_gain(g) * (double)send_bps(g);

	if (g->phase == CC_GROW_JUMP)
		bps = JUMP_SHARE * (double)g->hint_bps;
	else if (g->phase == CC_GROW_LAND)
		bps = (double)g->hint_bps;
	else if (g->phase == CC_GROW_STARTUP && bps < STARTUP_GAIN * first && g->nround < 2)
		bps = STARTUP_GAIN * first; /* the first samples span the wait for them */
	/* A jump that the application did not fill was not refuted: no need to go beyond it yet. */
	if (g->phase == CC_GROW_STARTUP && bw_bps(g) < g->hint_bps && bps > (double)g->hint_bps)
		bps = (double)g->hint_bps;
	/* Two packets a round trip always may. */
	double least = (double)cc_rate_bps(2 * (uint64_t)cc->params.payload_bytes, rtt);
	if (g->cap_bps && bps > (double)g->cap_bps)
		bps = (double)g->cap_bps;
	return (uint64_t)(bps > least ? bps : least);
}

static uint64_t grow_bottleneck(const struct cc *cc)
{
	return bw_bps(&cc->u.grow);
}

static void grow_check(const struct cc *cc)
{
	const struct cc_grow *g = &cc->u.grow;
	SDR_ASSERT(g->phase < CC_GROW_PHASES && g->last_phase < CC_GROW_PHASES);
	SDR_ASSERT(g->base_loss >= 0 && g->base_loss <= LOSS_MAX);
	SDR_ASSERT(g->bw.best[0].value >= g->bw.best[1].value);
	SDR_ASSERT(g->bw.best[1].value >= g->bw.best[2].value);
	SDR_ASSERT(g->state != CC_GROW_HOLD || g->phase == CC_GROW_UP || g->phase == CC_GROW_LOOK ||
		   g->phase == CC_GROW_DOWN || g->phase == CC_GROW_CRUISE);
	(void)g;
}

const struct cc_ops cc_grow_ops = {
	.name = "grow",
	.init = grow_init,
	.ack = grow_ack,
	.hint = grow_hint,
	.window_bytes = grow_window,
	.pacing_bps = grow_pacing,
	.bottleneck_bps = grow_bottleneck,
	.check = grow_check,
};

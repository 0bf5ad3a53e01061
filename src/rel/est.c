/* SPDX-License-Identifier: Apache-2.0 */
/* The path estimator. See est.h. */
#include "rel/est.h"

#include <math.h>

#include "base/bits.h"

#define LOSS_MOST 0.99
#define PRIOR_LOSSES 16.0 /* a prior is worth so many bursts */
#define UNKNOWN_RUNS 2.0  /* ... and not knowing the bursts so many of them */
/*
 * CUSUM's two numbers: made to find a loss of four times as much, and how much evidence (a
 * logarithm of how unlikely it is) is beyond chance: once in a million windows.
 */
#define WORSE 4.0
#define BEYOND_CHANCE 12.0
#define ENOUGH_BURSTS 16.0 /* to say how much is lost */
/* The fast one becomes the slow one when it has seen so much, or said the same for so long. */
#define ADOPT_BURSTS 200.0
#define ADOPT_RTTS 32u
#define EPOCHS_PER_RTT 4u
#define CREDIT_KEPT (15.0 / 16.0) /* each epoch */
#define RTT_GUESS_NS UINT64_C(1000000)

/* Mean length of a run, and of those seen a standard deviation (about as long) more. */
static double burst_of(const struct rel_est_seen *seen, double before)
{
	double runs = seen->runs + UNKNOWN_RUNS;
	double mean = (seen->run_pkts + UNKNOWN_RUNS * before) / runs;
	return fmax(1, mean + (mean - 1) / sqrt(runs) * seen->runs / runs);
}

static double slow_burst(const struct rel_est *e)
{
	return burst_of(&e->slow, e->burst);
}

static double fast_burst(const struct rel_est *e)
{
	double slow = slow_burst(e);
	return fmax(burst_of(&e->fast, slow), burst_of(&e->recent, slow));
}

/*
 * Losses come by bursts, so that is what they spread by: their number (Poisson) and their lengths
 * (geometric, of second moment b (2 b - 1)).
 */
static double upper(const struct rel_est_seen *seen, double burst, double pkts)
{
	double b = fmin(burst, fmax(seen->lost, 1));
	double lost = seen->lost + b * (1 + sqrt(seen->lost / b * (2 - 1 / b)));
	return fmin(LOSS_MOST, lost / fmax(pkts, 1));
}

/* Not knowing weighs less the more losses were seen. */
static double slow_loss(const struct rel_est *e)
{
	double pkts = e->slow.pkts + e->prior / (1 + 10 * e->slow.lost);
	return upper(&e->slow, slow_burst(e), pkts);
}

static double fast_loss(const struct rel_est *e)
{
	return upper(&e->fast, fast_burst(e), e->fast.pkts);
}

static void halve(struct rel_est_seen *seen)
{
	seen->pkts /= 2;
	seen->lost /= 2;
	seen->runs /= 2;
	seen->run_pkts /= 2;
}

static void add(struct rel_est_seen *seen, const struct rel_est_seen *more)
{
	seen->pkts += more->pkts;
	seen->lost = fmax(0, seen->lost + more->lost);
	seen->runs += more->runs;
	seen->run_pkts += more->run_pkts;
}

void rel_est_init(struct rel_est *e, double loss, double burst_pkts)
{
	double burst = burst_pkts >= 1 && burst_pkts < (double)UINT32_MAX ? burst_pkts : 1;
	*e = (struct rel_est){.prior = 1 / REL_EST_UNKNOWN,
			      .burst = REL_EST_UNKNOWN_BURST,
			      .slow_most = REL_EST_SLOW_PKTS};
	if (!(loss > 0))
		return;
	loss = fmin(loss, LOSS_MOST);
	e->prior = 0;
	e->burst = burst;
	e->slow_most = fmax(REL_EST_SLOW_PKTS, 2 * PRIOR_LOSSES * burst / loss);
	e->slow = (struct rel_est_seen){.pkts = PRIOR_LOSSES * burst / loss,
					.lost = PRIOR_LOSSES * burst,
					.runs = PRIOR_LOSSES,
					.run_pkts = PRIOR_LOSSES * burst};
}

static void fast_begin(struct rel_est *e, uint64_t now_ns)
{
	e->fast = (struct rel_est_seen){0};
	e->fast_since_ns = now_ns;
	e->changed_ns = 0;
	e->excess = 0;
}

/* Whether what the fast one saw is another path for good. */
static bool settled_change(struct rel_est *e, double bursts, uint64_t rtt_ns, uint64_t now_ns)
{
	if (!rel_est_changed(e)) {
		e->changed_ns = 0;
		return false;
	}
	if (!e->changed_ns)
		e->changed_ns = now_ns;
	return bursts >= ADOPT_BURSTS ||
	       (bursts >= ENOUGH_BURSTS && now_ns - e->changed_ns > ADOPT_RTTS * rtt_ns);
}

/*
 * What is more than the slow one expects raises the excess, what is less lowers it. Then both have
 * seen it.
 */
static void judge(struct rel_est *e, const struct rel_est_seen *more, uint64_t rtt_ns,
		  uint64_t now_ns)
{
	double expected = slow_loss(e) * more->pkts;
	double burst = fmax(slow_burst(e), fast_burst(e));
	e->excess += (more->lost * log(WORSE) - expected * (WORSE - 1)) / burst;
	e->excess = fmin(e->excess, 2 * BEYOND_CHANCE);
	add(&e->slow, more);
	add(&e->fast, more);
	double bursts = e->fast.lost / burst;
	if (e->excess <= 0) {
		fast_begin(e, now_ns);
	} else if (settled_change(e, bursts, rtt_ns, now_ns)) {
		e->slow = e->fast;
		e->slow_most = REL_EST_SLOW_PKTS;
		e->prior = 0;
		fast_begin(e, now_ns);
	} else if (bursts >= ENOUGH_BURSTS &&
		   now_ns - e->fast_since_ns > REL_EST_FAST_RTTS * rtt_ns) {
		halve(&e->fast);
		e->fast_since_ns = now_ns;
	}
}

/* Arrivals of what had been taken as lost take it back; those that are too early, in advance. */
static double settle_credit(struct rel_est *e, double lost)
{
	if (lost < 0) {
		e->credit += fmax(0, -lost - e->slow.lost);
	} else {
		double use = fmin(e->credit, lost);
		e->credit -= use;
		lost -= use;
	}
	e->credit *= CREDIT_KEPT;
	return lost;
}

/* Up to `pkts` passed, of which `lost` did not arrive. */
static void settle(struct rel_est *e, double pkts, double lost, uint64_t rtt_ns, uint64_t now_ns)
{
	struct rel_est_seen more = {.pkts = fmax(0, pkts - e->settled_pkts)};
	if (more.pkts <= 0)
		return;
	more.lost = settle_credit(e, fmin(lost - e->settled_lost, more.pkts));
	e->settled_pkts = pkts;
	e->settled_lost = lost;
	judge(e, &more, rtt_ns, now_ns);
	double burst = slow_burst(e);
	while (e->slow.pkts > e->slow_most || e->slow.lost > REL_EST_SLOW_LOSSES * burst)
		halve(&e->slow);
}

/* They may be declared a little before or after they are settled. */
static void look_at_runs(struct rel_est *e, const struct rel_tx_loss *now, uint64_t rtt_ns,
			 uint64_t now_ns)
{
	struct rel_est_seen more = {
		.runs = (double)u64_sub_floor(now->runs, e->last.runs),
		.run_pkts = (double)u64_sub_floor(now->run_pkts, e->last.run_pkts),
	};
	e->last.runs = now->runs;
	e->last.run_pkts = now->run_pkts;
	add(&e->slow, &more);
	add(&e->fast, &more);
	add(&e->recent, &more);
	if (now_ns - e->recent_since_ns > rtt_ns) {
		halve(&e->recent);
		e->recent_since_ns = now_ns;
	}
}

void rel_est_update(struct rel_est *e, const struct rel_tx_loss *now, uint64_t rtt_ns,
		    uint64_t now_ns)
{
	double lost = (double)now->passed_pkts - (double)now->arrived_pkts;
	rtt_ns = rtt_ns ? rtt_ns : RTT_GUESS_NS;
	look_at_runs(e, now, rtt_ns, now_ns);
	if (now->passed_pkts <= e->last.passed_pkts) {
		/* Where nothing was dated for long, what had passed is all that can be known of. */
		if (e->open && now_ns - e->moved_ns > 2 * rtt_ns) {
			settle(e, (double)e->last.passed_pkts, lost, rtt_ns, now_ns);
			e->open = false;
		}
		return;
	}
	e->last.passed_pkts = now->passed_pkts;
	e->last.arrived_pkts = now->arrived_pkts;
	e->moved_ns = now_ns;
	e->low_lost = e->open ? fmin(e->low_lost, lost) : lost;
	if (e->open && now_ns - e->epoch_ns < rtt_ns / EPOCHS_PER_RTT)
		return;
	if (e->open)
		settle(e, (double)e->epoch_pkts, e->low_lost, rtt_ns, now_ns);
	e->open = true;
	e->epoch_ns = now_ns;
	e->epoch_pkts = now->passed_pkts;
	e->low_lost = lost;
}

void rel_est_get(const struct rel_est *e, double *loss, double *burst_pkts)
{
	*loss = slow_loss(e);
	*burst_pkts = slow_burst(e);
	if (!rel_est_changed(e))
		return;
	*loss = fast_loss(e);
	*burst_pkts = fmax(*burst_pkts, fast_burst(e));
}

bool rel_est_changed(const struct rel_est *e)
{
	return e->excess >= BEYOND_CHANCE && fast_loss(e) > 2 * slow_loss(e);
}

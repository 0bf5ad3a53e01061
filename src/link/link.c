/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link in virtual time. Serialisation is exact: the time at which the last bit
 * leaves is kept as whole nanoseconds plus a fraction over rate_bps, so a million
 * packets end exactly where one of a million times the size would.
 */
#include "link/link.h"

#include "base/bits.h"
#include "base/check.h"
#include "base/units.h"
#include <errno.h>

#define BIT_NS (8 * NS_PER_S) /* a byte takes this / rate_bps ns */

static bool ratio_ok(double p)
{
	return p >= 0.0 && p <= 1.0;
}

struct link_ge link_ge_iid(double p)
{
	return (struct link_ge){.loss_good = p, .loss_bad = p};
}

int link_ge_mean(double mean_loss, double mean_burst_pkts, struct link_ge *out)
{
	double p_bg, p_gb;

	if (!(mean_loss >= 0.0 && mean_loss < 1.0) || !(mean_burst_pkts >= 1.0))
		return -EINVAL;
	p_bg = 1.0 / mean_burst_pkts;
	p_gb = mean_loss * p_bg / (1.0 - mean_loss);
	if (p_gb > 1.0)
		return -ERANGE;
	*out = (struct link_ge){.p_gb = p_gb, .p_bg = p_bg, .loss_bad = 1.0};
	return 0;
}

static double ge_bad_share(const struct link_ge *ge)
{
	double sum = ge->p_gb + ge->p_bg;

	return sum > 0.0 ? ge->p_gb / sum : 0.0;
}

double link_ge_ratio(const struct link_ge *ge)
{
	double bad = ge_bad_share(ge);

	return bad * ge->loss_bad + (1.0 - bad) * ge->loss_good;
}

int link_attr_check(const struct link_attr *a)
{
	const uint64_t limit = UINT64_C(1) << 62;

	if (!ratio_ok(a->loss.p_gb) || !ratio_ok(a->loss.p_bg) || !ratio_ok(a->loss.loss_bad) ||
	    !ratio_ok(a->loss.loss_good) || !ratio_ok(a->reorder_p) || !ratio_ok(a->duplicate_p) ||
	    !ratio_ok(a->corrupt_p))
		return -EINVAL;
	for (size_t i = 1; i < a->n_drop; i++)
		if (a->drop[i - 1] >= a->drop[i])
			return -EINVAL;
	for (size_t i = 0; i < a->n_blackout; i++)
		if (a->blackout[i].from_ns > a->blackout[i].to_ns ||
		    (i && a->blackout[i - 1].to_ns > a->blackout[i].from_ns))
			return -EINVAL;
	if (a->rate_bps > limit || a->delay_ns > limit || a->jitter_ns > limit ||
	    a->reorder_ns > limit || a->duplicate_ns > limit)
		return -ERANGE;
	return 0;
}

int link_init(struct link *l, const struct link_attr *attr, uint64_t seed)
{
	int rc = link_attr_check(attr);

	if (rc)
		return rc;
	*l = (struct link){.attr = *attr};
	rng_init(&l->rng, seed);
	/* The process is stationary from its first packet on. */
	if (attr->loss.p_gb > 0.0)
		l->bad = rng_unit(&l->rng) < ge_bad_share(&attr->loss);
	return 0;
}

int link_attr_set(struct link *l, uint64_t now_ns, const struct link_attr *attr)
{
	int rc = link_attr_check(attr);

	if (rc)
		return rc;
	l->now_ns = u64_max(l->now_ns, now_ns);
	/* A whole nanosecond at most is lost by the change of the fraction's base. */
	if (attr->rate_bps != l->attr.rate_bps && l->busy_frac) {
		l->busy_ns++;
		l->busy_frac = 0;
	}
	l->attr = *attr;
	l->index = 0;
	l->drop_next = 0;
	l->blackout_next = 0;
	if (attr->loss.p_gb == 0.0)
		l->bad = false;
	return 0;
}

/* What is not serialised yet, in units of 1/BIT_NS byte. */
static unsigned __int128 backlog(const struct link *l, uint64_t now_ns)
{
	if (!l->attr.rate_bps || l->busy_ns < now_ns)
		return 0;
	return (unsigned __int128)(l->busy_ns - now_ns) * l->attr.rate_bps + l->busy_frac;
}

uint64_t link_queued_bytes(const struct link *l, uint64_t now_ns)
{
	return (uint64_t)((backlog(l, u64_max(now_ns, l->now_ns)) + BIT_NS - 1) / BIT_NS);
}

static bool chance(struct link *l, double p)
{
	return p > 0.0 && rng_unit(&l->rng) < p;
}

/* Passes the queue: false where it overflows. */
static bool enqueue(struct link *l, uint32_t bytes, struct link_fate *fate)
{
	const struct link_attr *a = &l->attr;
	uint64_t work;

	if (!a->rate_bps) {
		l->busy_ns = u64_max(l->busy_ns, l->now_ns);
		return true;
	}
	if (a->queue_bytes || a->ecn_bytes) {
		unsigned __int128 after = backlog(l, l->now_ns);

		after += (unsigned __int128)bytes * BIT_NS;
		if (a->queue_bytes && after > (unsigned __int128)a->queue_bytes * BIT_NS)
			return false;
		fate->ce = a->ecn_bytes && after > (unsigned __int128)a->ecn_bytes * BIT_NS;
	}
	if (l->busy_ns < l->now_ns) {
		l->busy_ns = l->now_ns;
		l->busy_frac = 0;
	}
	work = (uint64_t)bytes * BIT_NS; /* < 2^32 * 2^33 */
	l->busy_ns += work / a->rate_bps;
	l->busy_frac += work % a->rate_bps;
	if (l->busy_frac >= a->rate_bps) {
		l->busy_frac -= a->rate_bps;
		l->busy_ns++;
	}
	return true;
}

static bool random_loss(struct link *l)
{
	const struct link_ge *ge = &l->attr.loss;
	bool lost = chance(l, l->bad ? ge->loss_bad : ge->loss_good);

	if (chance(l, l->bad ? ge->p_bg : ge->p_gb))
		l->bad = !l->bad;
	return lost;
}

static enum link_loss medium_loss(struct link *l, uint64_t index, uint64_t depart_ns)
{
	const struct link_attr *a = &l->attr;
	bool listed, random = random_loss(l); /* steps whatever else happens */

	while (l->drop_next < a->n_drop && a->drop[l->drop_next] < index)
		l->drop_next++;
	listed = l->drop_next < a->n_drop && a->drop[l->drop_next] == index;
	while (l->blackout_next < a->n_blackout && a->blackout[l->blackout_next].to_ns <= depart_ns)
		l->blackout_next++;
	if (l->blackout_next < a->n_blackout && a->blackout[l->blackout_next].from_ns <= depart_ns)
		return LINK_LOST_BLACKOUT;
	if (listed)
		return LINK_LOST_LIST;
	return random ? LINK_LOST_RANDOM : LINK_LOST_NOT;
}

/* The time of one copy. */
static uint64_t arrival(struct link *l, uint64_t depart_ns)
{
	const struct link_attr *a = &l->attr;
	uint64_t at = depart_ns + a->delay_ns;

	if (a->jitter_ns)
		at += rng_below(&l->rng, a->jitter_ns + 1);
	if (chance(l, a->reorder_p))
		return at + a->reorder_ns;
	if (!a->jitter_reorders)
		at = u64_max(at, l->in_order_ns);
	l->in_order_ns = u64_max(at, l->in_order_ns);
	return at;
}

static void lose(struct link *l, struct link_fate *fate, enum link_loss why)
{
	fate->lost = why;
	l->counters.lost_pkts[why]++;
}

int link_offer(struct link *l, uint64_t now_ns, uint32_t bytes, struct link_fate *fate)
{
	uint64_t index = l->index++, depart_ns;
	enum link_loss lost;

	*fate = (struct link_fate){0};
	l->now_ns = u64_max(l->now_ns, now_ns);
	l->counters.offered_pkts++;
	l->counters.offered_bytes += bytes;
	if (!enqueue(l, bytes, fate)) {
		lose(l, fate, LINK_LOST_QUEUE);
		return 0;
	}
	depart_ns = l->busy_ns + (l->busy_frac > 0);
	lost = medium_loss(l, index, depart_ns);
	if (lost != LINK_LOST_NOT) {
		lose(l, fate, lost);
		return 0;
	}
	l->counters.delivered_pkts++;
	l->counters.marked_pkts += fate->ce;
	fate->copies = 1;
	fate->deliver_ns[0] = arrival(l, depart_ns);
	if (fate->deliver_ns[0] < l->latest_ns)
		l->counters.reordered_pkts++;
	l->latest_ns = u64_max(l->latest_ns, fate->deliver_ns[0]);
	if (chance(l, l->attr.duplicate_p)) {
		fate->copies = 2;
		fate->deliver_ns[1] = fate->deliver_ns[0] + l->attr.duplicate_ns;
		l->counters.duplicated_pkts++;
	}
	if (bytes && chance(l, l->attr.corrupt_p)) {
		fate->corrupt = true;
		fate->corrupt_bit = rng_below(&l->rng, (uint64_t)bytes * 8);
		l->counters.corrupted_pkts++;
	}
	return (int)fate->copies;
}

void link_check(const struct link *l)
{
	uint64_t sum = l->counters.delivered_pkts;

	SDR_ASSERT(l->attr.rate_bps ? l->busy_frac < l->attr.rate_bps : l->busy_frac == 0);
	SDR_ASSERT(l->counters.lost_pkts[LINK_LOST_NOT] == 0);
	for (int why = LINK_LOST_NOT; why < LINK_LOST_REASONS; why++)
		sum += l->counters.lost_pkts[why];
	SDR_ASSERT(sum == l->counters.offered_pkts);
	(void)sum;
}

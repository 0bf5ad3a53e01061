/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link in virtual time. Serialisation is exact: the time at which the last bit
 * leaves is kept as whole nanoseconds plus a fraction over rate_bps, so a million
 * packets end exactly where one of a million times the size would.
 *
 * Work, what is still to be sent or missing in a bucket, is counted in bit/s * ns: rate * time
 * without a division.
 */
#include "link/link.h"

#include "base/bits.h"
#include "base/check.h"
#include "base/units.h"
#include <errno.h>

#define BYTE_WORK (8 * NS_PER_S)
#define PIECE_BYTES 0x7fffffffu /* PIECE_BYTES * BYTE_WORK < 2^64 */
#define LIMIT (UINT64_C(1) << 62)
#define NO_LIMIT (~(work)0)

typedef unsigned __int128 work;

static uint64_t add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

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

static bool ratios_ok(const struct link_attr *a)
{
	return ratio_ok(a->loss.p_gb) && ratio_ok(a->loss.p_bg) && ratio_ok(a->loss.loss_bad) &&
	       ratio_ok(a->loss.loss_good) && ratio_ok(a->reorder_p) && ratio_ok(a->duplicate_p) &&
	       ratio_ok(a->corrupt_p);
}

static bool lists_ok(const struct link_attr *a)
{
	if ((a->n_drop && !a->drop) || (a->n_blackout && !a->blackout))
		return false;
	for (size_t i = 1; i < a->n_drop; i++)
		if (a->drop[i - 1] >= a->drop[i])
			return false;
	for (size_t i = 0; i < a->n_blackout; i++)
		if (a->blackout[i].from_ns > a->blackout[i].to_ns ||
		    (i && a->blackout[i - 1].to_ns > a->blackout[i].from_ns))
			return false;
	return true;
}

static bool periodic_ok(const struct link_periodic *p)
{
	return p->every_ns ? p->for_ns && p->for_ns < p->every_ns : !p->for_ns;
}

static bool sizes_ok(const struct link_attr *a)
{
	const uint64_t sizes[] = {
		a->policer.rate_bps, a->policer.burst_bytes, a->rate_bps,      a->delay_ns,
		a->jitter_ns,	     a->queue_bytes,	     a->queue_ns,      a->ecn_bytes,
		a->ecn_ns,	     a->reorder_ns,	     a->duplicate_ns,  a->outage.first_ns,
		a->outage.every_ns,  a->flap.first_ns,	     a->flap.every_ns, a->flap_delay_ns,
		a->burst_idle_ns,    a->burst_slot_ns,
	};

	for (size_t i = 0; i < SDR_ARRAY_LEN(sizes); i++)
		if (sizes[i] >= LIMIT)
			return false;
	return true;
}

int link_attr_check(const struct link_attr *a)
{
	if (!ratios_ok(a) || !lists_ok(a) || !periodic_ok(&a->outage) || !periodic_ok(&a->flap) ||
	    (a->policer.rate_bps && !a->policer.burst_bytes))
		return -EINVAL;
	return sizes_ok(a) ? 0 : -ERANGE;
}

/* The tighter of a limit in bytes and one in time; 0: none. */
static work tighter(uint64_t bytes, uint64_t ns, uint64_t rate_bps)
{
	work by_bytes = bytes ? (work)bytes * BYTE_WORK : NO_LIMIT;
	work by_time = ns ? (work)ns * rate_bps : NO_LIMIT;

	return by_bytes < by_time ? by_bytes : by_time;
}

/* Takes attr in, with what follows from it. */
static void set_attr(struct link *l, const struct link_attr *attr)
{
	l->attr = *attr;
	l->gated = attr->cut || attr->mtu_bytes || attr->policer.rate_bps;
	l->queue_bps_ns = tighter(attr->queue_bytes, attr->queue_ns, attr->rate_bps);
	l->ecn_bps_ns = tighter(attr->ecn_bytes, attr->ecn_ns, attr->rate_bps);
	l->limited = l->queue_bps_ns != NO_LIMIT || l->ecn_bps_ns != NO_LIMIT;
	l->scheduled = attr->n_drop || attr->n_blackout || attr->outage.every_ns;
	l->outage_at_ns = attr->outage.first_ns;
	l->flap_at_ns = attr->flap.first_ns;
	l->index = 0;
	l->drop_next = 0;
	l->blackout_next = 0;
}

/* The process is stationary from its first packet on. */
static void start_loss(struct link *l)
{
	const struct link_ge *ge = &l->attr.loss;

	l->bad = ge->p_gb > 0.0 && rng_unit(&l->rng) < ge_bad_share(ge);
}

int link_init(struct link *l, const struct link_attr *attr, uint64_t seed)
{
	int rc = link_attr_check(attr);

	if (rc)
		return rc;
	*l = (struct link){0};
	rng_init(&l->rng, seed);
	set_attr(l, attr);
	start_loss(l);
	return 0;
}

/* What is not serialised yet. */
static work backlog(const struct link *l, uint64_t now_ns)
{
	uint64_t from_ns = now_ns;
	work sum = 0;

	if (l->old_busy_ns > now_ns) {
		sum = (work)(l->old_busy_ns - now_ns) * l->old_rate_bps;
		from_ns = l->old_busy_ns;
	}
	if (!l->attr.rate_bps || l->busy_ns < from_ns)
		return sum;
	return sum + (work)(l->busy_ns - from_ns) * l->attr.rate_bps + l->busy_frac;
}

/* What is queued still leaves at the rate that it met (their mean, after several changes). */
static void change_rate(struct link *l, uint64_t rate_bps)
{
	work queued = backlog(l, l->now_ns);
	uint64_t rest_ns;

	if (rate_bps == l->attr.rate_bps)
		return;
	/* A whole nanosecond at most is lost by the change of the fraction's base. */
	l->busy_ns = add(l->busy_ns, l->busy_frac > 0);
	l->busy_frac = 0;
	rest_ns = u64_sub_floor(l->busy_ns, l->now_ns);
	l->old_busy_ns = rest_ns ? l->busy_ns : 0;
	l->old_rate_bps = rest_ns ? (uint64_t)(queued / rest_ns) : 0;
}

static bool policer_equal(const struct link_policer *a, const struct link_policer *b)
{
	return a->rate_bps == b->rate_bps && a->burst_bytes == b->burst_bytes;
}

static bool loss_equal(const struct link_ge *a, const struct link_ge *b)
{
	return a->p_gb == b->p_gb && a->p_bg == b->p_bg && a->loss_bad == b->loss_bad &&
	       a->loss_good == b->loss_good;
}

int link_attr_set(struct link *l, uint64_t now_ns, const struct link_attr *attr)
{
	int rc = link_attr_check(attr);
	bool new_loss;

	if (rc)
		return rc;
	l->now_ns = u64_max(l->now_ns, now_ns);
	change_rate(l, attr->rate_bps);
	if (!policer_equal(&attr->policer, &l->attr.policer)) {
		l->policer_ns = l->now_ns;
		l->missing_bps_ns = 0;
	}
	if (attr->delay_ns != l->attr.delay_ns || attr->flap_delay_ns != l->attr.flap_delay_ns) {
		l->in_order_ns = 0;
		l->other_order_ns = 0;
	}
	new_loss = !loss_equal(&attr->loss, &l->attr.loss);
	if (attr->burst_slot_ns != l->attr.burst_slot_ns)
		l->stepped_ns = l->depart_ns;
	set_attr(l, attr);
	if (new_loss)
		start_loss(l);
	return 0;
}

uint64_t link_queued_bytes(const struct link *l, uint64_t now_ns)
{
	work bytes = (backlog(l, u64_max(now_ns, l->now_ns)) + BYTE_WORK - 1) / BYTE_WORK;

	return bytes > UINT64_MAX ? UINT64_MAX : (uint64_t)bytes;
}

static bool chance(struct link *l, double p)
{
	return p > 0.0 && rng_unit(&l->rng) < p;
}

static void be_busy(struct link *l, uint64_t todo)
{
	uint64_t rate_bps = l->attr.rate_bps;
	uint64_t frac = l->busy_frac + todo % rate_bps; /* < 2^63 */
	bool carry = frac >= rate_bps;

	l->busy_frac = carry ? frac - rate_bps : frac;
	l->busy_ns = add(l->busy_ns, todo / rate_bps + carry); /* todo / rate_bps < 2^64 - 1 */
}

static void serialise(struct link *l, uint32_t bytes)
{
	if (l->busy_ns < l->now_ns) {
		l->busy_ns = l->now_ns;
		l->busy_frac = 0;
	}
	for (; bytes > PIECE_BYTES; bytes -= PIECE_BYTES)
		be_busy(l, PIECE_BYTES * BYTE_WORK);
	be_busy(l, bytes * BYTE_WORK);
}

/* Finds enough tokens and takes them, or finds too few. */
static bool police(struct link *l, uint32_t bytes)
{
	const struct link_policer *p = &l->attr.policer;
	work refill = (work)(l->now_ns - l->policer_ns) * p->rate_bps;
	work after;

	l->missing_bps_ns = l->missing_bps_ns > refill ? l->missing_bps_ns - refill : 0;
	l->policer_ns = l->now_ns;
	after = l->missing_bps_ns + (work)bytes * BYTE_WORK;
	if (after > (work)p->burst_bytes * BYTE_WORK)
		return false;
	l->missing_bps_ns = after;
	return true;
}

static enum link_loss pass_gates(struct link *l, uint32_t bytes)
{
	const struct link_attr *a = &l->attr;

	if (a->cut)
		return LINK_LOST_CUT;
	if (a->mtu_bytes && bytes > a->mtu_bytes)
		return LINK_LOST_MTU;
	return a->policer.rate_bps && !police(l, bytes) ? LINK_LOST_POLICER : LINK_LOST_NOT;
}

/* Passes the queue: false where it overflows. */
static bool enqueue(struct link *l, uint32_t bytes, struct link_fate *fate)
{
	if (!l->attr.rate_bps) {
		l->busy_ns = u64_max(l->busy_ns, l->now_ns);
		return true;
	}
	if (l->limited) {
		work after = backlog(l, l->now_ns) + (work)bytes * BYTE_WORK;

		if (after > l->queue_bps_ns)
			return false;
		fate->ce = after > l->ecn_bps_ns;
	}
	serialise(l, bytes);
	return true;
}

/* By squaring; n may be anything, so a loop over it would not do. */
static double power(double x, uint64_t n)
{
	double y = 1;

	for (; n; n >>= 1) {
		if (n & 1)
			y *= x;
		x *= x;
	}
	return y;
}

/*
 * Takes the slots that the loss process steps for between the last packet and this one, less the
 * step that it has made after the last one. What is left of a slot counts for the next packet.
 */
static uint64_t idle_steps(struct link *l, uint64_t depart_ns)
{
	uint64_t slot_ns = l->attr.burst_slot_ns, steps;

	if (!slot_ns)
		return 0;
	steps = u64_max((depart_ns - l->stepped_ns) / slot_ns, 1);
	l->stepped_ns = u64_min(add(l->stepped_ns, steps * slot_ns), depart_ns);
	return steps - 1;
}

/* n steps at once: what the process remembers of its state fades by the same factor in each. */
static void jump_loss(struct link *l, uint64_t n)
{
	const struct link_ge *ge = &l->attr.loss;
	double share = ge_bad_share(ge), kept;

	if (!n || !(ge->p_gb + ge->p_bg > 0.0))
		return;
	kept = power(1.0 - ge->p_gb - ge->p_bg, n);
	l->bad = chance(l, share + ((l->bad ? 1.0 : 0.0) - share) * kept);
}

static bool random_loss(struct link *l, uint64_t depart_ns)
{
	const struct link_ge *ge = &l->attr.loss;
	uint64_t idle = idle_steps(l, depart_ns);
	bool lost;

	if (l->attr.burst_idle_ns && depart_ns - l->depart_ns >= l->attr.burst_idle_ns)
		start_loss(l);
	else
		jump_loss(l, idle);
	l->depart_ns = depart_ns;
	lost = chance(l, l->bad ? ge->loss_bad : ge->loss_good);

	if (chance(l, l->bad ? ge->p_bg : ge->p_gb))
		l->bad = !l->bad;
	return lost;
}

/* Whether at_ns is within one of them. *begin_ns saves the division where it still holds. */
static bool within(const struct link_periodic *p, uint64_t *begin_ns, uint64_t at_ns)
{
	if (at_ns < p->first_ns)
		return false;
	if (at_ns - *begin_ns >= p->every_ns)
		*begin_ns = at_ns - (at_ns - p->first_ns) % p->every_ns;
	return at_ns - *begin_ns < p->for_ns;
}

static bool dark(struct link *l, uint64_t depart_ns)
{
	const struct link_attr *a = &l->attr;

	while (l->blackout_next < a->n_blackout && a->blackout[l->blackout_next].to_ns <= depart_ns)
		l->blackout_next++;
	if (l->blackout_next < a->n_blackout && a->blackout[l->blackout_next].from_ns <= depart_ns)
		return true;
	return a->outage.every_ns && within(&a->outage, &l->outage_at_ns, depart_ns);
}

static enum link_loss medium_loss(struct link *l, uint64_t index, uint64_t depart_ns, bool listed)
{
	const struct link_attr *a = &l->attr;
	bool random = random_loss(l, depart_ns); /* steps whatever else happens */

	if (!l->scheduled && !listed)
		return random ? LINK_LOST_RANDOM : LINK_LOST_NOT;
	while (l->drop_next < a->n_drop && a->drop[l->drop_next] < index)
		l->drop_next++;
	listed |= l->drop_next < a->n_drop && a->drop[l->drop_next] == index;
	if (dark(l, depart_ns))
		return LINK_LOST_BLACKOUT;
	if (listed)
		return LINK_LOST_LIST;
	return random ? LINK_LOST_RANDOM : LINK_LOST_NOT;
}

/* The propagation delay of the route that a packet takes now. */
static uint64_t take_route(struct link *l, uint64_t depart_ns)
{
	const struct link_attr *a = &l->attr;
	bool longer = a->flap.every_ns && within(&a->flap, &l->flap_at_ns, depart_ns);

	if (longer != l->flapped) {
		uint64_t order_ns = l->in_order_ns;

		l->in_order_ns = l->other_order_ns;
		l->other_order_ns = order_ns;
		l->flapped = longer;
	}
	return longer ? a->delay_ns + a->flap_delay_ns : a->delay_ns;
}

/* The time of one copy. */
static uint64_t arrival(struct link *l, uint64_t depart_ns)
{
	const struct link_attr *a = &l->attr;
	uint64_t at = add(depart_ns, take_route(l, depart_ns));

	if (a->jitter_ns)
		at = add(at, rng_below(&l->rng, a->jitter_ns + 1));
	if (chance(l, a->reorder_p)) {
		if (!a->reorder_ns) /* not held back: later ones follow it as ever */
			l->in_order_ns = u64_max(at, l->in_order_ns);
		return add(at, a->reorder_ns);
	}
	if (!a->jitter_reorders)
		at = u64_max(at, l->in_order_ns);
	l->in_order_ns = u64_max(at, l->in_order_ns);
	return at;
}

static int lose(struct link *l, struct link_fate *fate, enum link_loss why)
{
	fate->lost = why;
	l->counters.lost_pkts[why]++;
	return 0;
}

static void deliver(struct link *l, uint64_t depart_ns, uint32_t bytes, struct link_fate *fate)
{
	l->counters.delivered_pkts++;
	l->counters.marked_pkts += fate->ce;
	fate->copies = 1;
	fate->deliver_ns[0] = arrival(l, depart_ns);
	if (fate->deliver_ns[0] < l->latest_ns)
		l->counters.reordered_pkts++;
	l->latest_ns = u64_max(l->latest_ns, fate->deliver_ns[0]);
	if (chance(l, l->attr.duplicate_p)) {
		fate->copies = 2;
		fate->deliver_ns[1] = add(fate->deliver_ns[0], l->attr.duplicate_ns);
		l->counters.duplicated_pkts++;
	}
	if (bytes && chance(l, l->attr.corrupt_p)) {
		fate->corrupt = true;
		fate->corrupt_bit = rng_below(&l->rng, (uint64_t)bytes * 8);
		l->counters.corrupted_pkts++;
	}
}

int link_offer_drop(struct link *l, uint64_t now_ns, uint32_t bytes, bool drop,
		    struct link_fate *fate)
{
	uint64_t index = l->index++, depart_ns;
	enum link_loss lost = LINK_LOST_NOT;

	*fate = (struct link_fate){0};
	l->now_ns = u64_max(l->now_ns, now_ns);
	l->counters.offered_pkts++;
	l->counters.offered_bytes += bytes;
	if (l->gated)
		lost = pass_gates(l, bytes);
	if (lost == LINK_LOST_NOT && !enqueue(l, bytes, fate))
		lost = LINK_LOST_QUEUE;
	if (lost != LINK_LOST_NOT)
		return lose(l, fate, lost);
	depart_ns = add(l->busy_ns, l->busy_frac > 0);
	lost = medium_loss(l, index, depart_ns, drop);
	if (lost != LINK_LOST_NOT)
		return lose(l, fate, lost);
	deliver(l, depart_ns, bytes, fate);
	return (int)fate->copies;
}

int link_offer(struct link *l, uint64_t now_ns, uint32_t bytes, struct link_fate *fate)
{
	return link_offer_drop(l, now_ns, bytes, false, fate);
}

void link_check(const struct link *l)
{
	const struct link_attr *a = &l->attr;
	uint64_t sum = l->counters.delivered_pkts;

	SDR_ASSERT(a->rate_bps ? l->busy_frac < a->rate_bps : l->busy_frac == 0);
	SDR_ASSERT(l->missing_bps_ns <= (work)a->policer.burst_bytes * BYTE_WORK);
	SDR_ASSERT(l->policer_ns <= l->now_ns);
	SDR_ASSERT(l->counters.lost_pkts[LINK_LOST_NOT] == 0);
	for (int why = LINK_LOST_NOT; why < LINK_LOST_REASONS; why++)
		sum += l->counters.lost_pkts[why];
	SDR_ASSERT(sum == l->counters.offered_pkts);
	SDR_ASSERT(l->old_busy_ns <= l->busy_ns);
	SDR_ASSERT(l->stepped_ns <= l->depart_ns);
	SDR_ASSERT(l->queue_bps_ns == tighter(a->queue_bytes, a->queue_ns, a->rate_bps));
	SDR_ASSERT(l->ecn_bps_ns == tighter(a->ecn_bytes, a->ecn_ns, a->rate_bps));
	SDR_ASSERT(l->limited == (l->queue_bps_ns != NO_LIMIT || l->ecn_bps_ns != NO_LIMIT));
	SDR_ASSERT(l->scheduled == (a->n_drop || a->n_blackout || a->outage.every_ns));
	SDR_ASSERT(l->gated == (a->cut || a->mtu_bytes || a->policer.rate_bps));
	(void)sum;
}

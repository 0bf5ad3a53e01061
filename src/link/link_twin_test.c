/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link against slow twins.
 *
 * What is not random: a twin that keeps every packet with its exact time on the wire, tokens as
 * they are refilled nanosecond's work by nanosecond's work, schedules as their definitions say.
 * Random attributes, random offers, live changes; losses at random may come on top, nothing else.
 * Each fault that can be planted in the twin must be seen.
 *
 * What is random: shares and lengths of a Gilbert-Elliott process by summing over its states.
 */
#include "link/link.h"

#include "base/bits.h"
#include "base/units.h"
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define BYTE_WORK ((unsigned __int128)8000000000)
#define QUEUE_MAX 4096u

enum fault {
	FAULT_NONE,
	FAULT_BURST,
	FAULT_REFILL,
	FAULT_QUEUE,
	FAULT_ECN,
	FAULT_OUTAGE,
	FAULT_FLAP,
	FAULT_MTU,
	FAULT_LIST,
	FAULT_BLACKOUT,
	FAULT_ORDER_OF_GATES,
	FAULTS
};

/* A packet on the wire from begin to end, in units of 1 / rate ns. */
struct on_wire {
	unsigned __int128 begin, end;
};

struct twin {
	struct link_attr attr;
	enum fault fault;
	struct on_wire queue[QUEUE_MAX];
	unsigned int n;
	unsigned __int128 end; /* of the last packet */
	unsigned __int128 tokens;
	uint64_t tokens_ns;
	uint64_t index;
};

static void twin_refill(struct twin *t, uint64_t now)
{
	unsigned __int128 full = t->attr.policer.burst_bytes * BYTE_WORK;

	if (t->fault == FAULT_BURST)
		full += BYTE_WORK;
	t->tokens += (unsigned __int128)(now - t->tokens_ns + (t->fault == FAULT_REFILL)) *
		     t->attr.policer.rate_bps;
	if (t->tokens > full)
		t->tokens = full;
	t->tokens_ns = now;
}

/* The rate may change only where nothing is queued. */
static void twin_set(struct twin *t, uint64_t now, const struct link_attr *attr)
{
	if (attr->rate_bps != t->attr.rate_bps) {
		uint64_t end_ns =
			t->attr.rate_bps
				? (uint64_t)((t->end + t->attr.rate_bps - 1) / t->attr.rate_bps)
				: now;

		t->end = (unsigned __int128)u64_max(end_ns, now) * attr->rate_bps;
		t->n = 0;
	}
	if (memcmp(&attr->policer, &t->attr.policer, sizeof(attr->policer)) != 0) {
		t->tokens = attr->policer.burst_bytes * BYTE_WORK;
		t->tokens_ns = now;
	}
	t->attr = *attr;
	t->index = 0;
}

/* Sums what is left of each packet. */
static unsigned __int128 twin_backlog(struct twin *t, uint64_t now)
{
	unsigned __int128 at = (unsigned __int128)now * t->attr.rate_bps, sum = 0;
	unsigned int kept = 0;

	for (unsigned int i = 0; i < t->n; i++) {
		struct on_wire p = t->queue[i];

		if (p.end <= at)
			continue;
		sum += p.end - (p.begin > at ? p.begin : at);
		t->queue[kept++] = p;
	}
	t->n = kept;
	return sum;
}

static bool twin_over(const struct link_attr *a, unsigned __int128 after, uint64_t bytes,
		      uint64_t ns)
{
	return (bytes && after > bytes * BYTE_WORK) ||
	       (ns && after > (unsigned __int128)ns * a->rate_bps);
}

static bool twin_periodic(const struct link_periodic *p, uint64_t at, bool fault)
{
	return p->every_ns && at >= p->first_ns &&
	       (at - p->first_ns + fault) % p->every_ns < p->for_ns;
}

static enum link_loss twin_gates(struct twin *t, uint64_t now, uint32_t bytes)
{
	const struct link_attr *a = &t->attr;
	bool policed = false;

	if (a->cut)
		return LINK_LOST_CUT;
	if (a->mtu_bytes && bytes + (t->fault == FAULT_MTU) > a->mtu_bytes)
		return LINK_LOST_MTU;
	if (a->policer.rate_bps) {
		twin_refill(t, now);
		policed = bytes * BYTE_WORK > t->tokens;
		if (!policed)
			t->tokens -= bytes * BYTE_WORK;
	}
	return policed ? LINK_LOST_POLICER : LINK_LOST_NOT;
}

struct twin_fate {
	enum link_loss lost; /* NOT: may still be lost at random */
	bool ce;
	uint64_t depart_ns, earliest_ns;
};

static enum link_loss twin_medium(const struct twin *t, uint64_t index, uint64_t at)
{
	const struct link_attr *a = &t->attr;

	for (size_t i = 0; i < a->n_blackout; i++)
		if (at >= a->blackout[i].from_ns &&
		    at < a->blackout[i].to_ns + (t->fault == FAULT_BLACKOUT))
			return LINK_LOST_BLACKOUT;
	if (twin_periodic(&a->outage, at, t->fault == FAULT_OUTAGE))
		return LINK_LOST_BLACKOUT;
	for (size_t i = 0; i < a->n_drop; i++)
		if (a->drop[i] + (t->fault == FAULT_LIST) == index)
			return LINK_LOST_LIST;
	return LINK_LOST_NOT;
}

static struct twin_fate twin_offer(struct twin *t, uint64_t now, uint32_t bytes)
{
	const struct link_attr *a = &t->attr;
	uint64_t index = t->index++;
	struct twin_fate f = {.lost = LINK_LOST_NOT, .depart_ns = now};

	if (t->fault != FAULT_ORDER_OF_GATES)
		f.lost = twin_gates(t, now, bytes);
	if (f.lost != LINK_LOST_NOT)
		return f;
	if (a->rate_bps) {
		unsigned __int128 after = twin_backlog(t, now) + bytes * BYTE_WORK;
		unsigned __int128 at = (unsigned __int128)now * a->rate_bps;

		if (twin_over(a, after + (t->fault == FAULT_QUEUE), a->queue_bytes, a->queue_ns)) {
			f.lost = LINK_LOST_QUEUE;
			return f;
		}
		f.ce = twin_over(a, after + (t->fault == FAULT_ECN), a->ecn_bytes, a->ecn_ns);
		if (t->fault == FAULT_ORDER_OF_GATES)
			f.lost = twin_gates(t, now, bytes);
		if (f.lost != LINK_LOST_NOT)
			return f;
		assert_true(t->n < QUEUE_MAX);
		t->queue[t->n].begin = t->end > at ? t->end : at;
		t->end = t->queue[t->n].begin + bytes * BYTE_WORK;
		t->queue[t->n++].end = t->end;
		f.depart_ns = (uint64_t)((t->end + a->rate_bps - 1) / a->rate_bps);
	} else if (t->fault == FAULT_ORDER_OF_GATES) {
		f.lost = twin_gates(t, now, bytes);
	}
	if (f.lost == LINK_LOST_NOT)
		f.lost = twin_medium(t, index, f.depart_ns);
	f.earliest_ns = f.depart_ns + a->delay_ns;
	if (twin_periodic(&a->flap, f.depart_ns, t->fault == FAULT_FLAP))
		f.earliest_ns += a->flap_delay_ns;
	return f;
}

/* Random attributes. Small numbers, so that boundaries are met. */

static uint64_t drop_list[8];
static struct link_blackout dark_list[4];

static bool coin(struct rng *rng)
{
	return rng_below(rng, 2);
}

static struct link_periodic random_periodic(struct rng *rng)
{
	struct link_periodic p = {0};

	if (coin(rng))
		return p;
	p.every_ns = 2 + rng_below(rng, 5000);
	p.for_ns = 1 + rng_below(rng, p.every_ns - 1);
	p.first_ns = rng_below(rng, 100000);
	return p;
}

static void random_lists(struct rng *rng, uint64_t now, struct link_attr *a)
{
	uint64_t at = 0;

	for (a->n_drop = 0; a->n_drop < 8 && coin(rng); a->n_drop++) {
		at += rng_below(rng, 20) + (a->n_drop > 0);
		drop_list[a->n_drop] = at;
	}
	a->drop = drop_list;
	at = u64_sub_floor(now, 1000);
	for (a->n_blackout = 0; a->n_blackout < 4 && coin(rng); a->n_blackout++) {
		dark_list[a->n_blackout].from_ns = at += rng_below(rng, 500);
		dark_list[a->n_blackout].to_ns = at += rng_below(rng, 300);
	}
	a->blackout = dark_list;
}

static void random_attr(struct rng *rng, uint64_t now, bool keep_rate, struct link_attr *a)
{
	static const uint64_t rates[] = {0,	     1000000,	   7000000000,
					 8000000000, 999999999937, 400000000000};
	uint64_t rate = keep_rate ? a->rate_bps : rates[rng_below(rng, SDR_ARRAY_LEN(rates))];

	*a = (struct link_attr){.rate_bps = rate};
	a->cut = rng_below(rng, 16) == 0;
	if (coin(rng))
		a->mtu_bytes = 1 + (uint32_t)rng_below(rng, 2000);
	if (coin(rng))
		a->policer = (struct link_policer){.rate_bps = 1 + rng_below(rng, 20000000000),
						   .burst_bytes = 1 + rng_below(rng, 10000)};
	if (coin(rng))
		a->queue_bytes = 1 + rng_below(rng, 8000);
	if (coin(rng))
		a->queue_ns = 1 + rng_below(rng, 8000);
	if (!a->queue_bytes && !a->queue_ns)
		a->queue_bytes = 100000; /* the twin's memory ends somewhere */
	if (coin(rng))
		a->ecn_bytes = 1 + rng_below(rng, 5000);
	if (coin(rng))
		a->ecn_ns = 1 + rng_below(rng, 5000);
	a->delay_ns = rng_below(rng, 3000);
	a->jitter_ns = coin(rng) ? rng_below(rng, 1000) : 0;
	a->jitter_reorders = coin(rng);
	if (coin(rng))
		a->loss = (struct link_ge){rng_unit(rng), rng_unit(rng), rng_unit(rng) / 2,
					   rng_unit(rng) / 2};
	a->reorder_p = coin(rng) ? rng_unit(rng) : 0;
	a->reorder_ns = rng_below(rng, 1000);
	a->duplicate_p = coin(rng) ? rng_unit(rng) : 0;
	a->duplicate_ns = rng_below(rng, 1000);
	a->corrupt_p = coin(rng) ? rng_unit(rng) : 0;
	a->outage = random_periodic(rng);
	a->flap = random_periodic(rng);
	a->flap_delay_ns = rng_below(rng, 2000);
	random_lists(rng, now, a);
}

/* True where the fate is one that the twin allows. */
static bool fate_ok(const struct link_attr *a, const struct link_fate *f, const struct twin_fate *t,
		    uint32_t bytes, uint64_t latest_ns)
{
	uint64_t most = u64_max(t->earliest_ns + a->jitter_ns, latest_ns) + a->reorder_ns;

	if (f->lost == LINK_LOST_RANDOM && t->lost == LINK_LOST_NOT)
		return (a->loss.loss_good > 0 || a->loss.loss_bad > 0) && f->copies == 0;
	if (f->lost != t->lost || (f->copies == 0) != (f->lost != LINK_LOST_NOT))
		return false;
	if (f->copies == 0)
		return true;
	if (f->ce != t->ce || f->deliver_ns[0] < t->earliest_ns || f->deliver_ns[0] > most)
		return false;
	if (f->copies == 2 &&
	    (a->duplicate_p <= 0 || f->deliver_ns[1] != f->deliver_ns[0] + a->duplicate_ns))
		return false;
	return !f->corrupt || (a->corrupt_p > 0 && f->corrupt_bit < (uint64_t)bytes * 8);
}

/* The first offer at which they differ, or `offers`. */
static unsigned int compare(uint64_t seed, enum fault fault, unsigned int offers)
{
	static struct twin twin;
	struct link_attr attr = {0};
	uint64_t now = 0, latest = 0;
	struct rng rng;
	struct link l;

	rng_init(&rng, seed);
	memset(&twin, 0, sizeof(twin));
	twin.fault = fault;
	random_attr(&rng, now, false, &attr);
	assert_int_equal(link_init(&l, &attr, seed), 0);
	twin_set(&twin, now, &attr);
	for (unsigned int i = 0; i < offers; i++) {
		uint32_t bytes = (uint32_t)rng_below(&rng, 2200);
		struct twin_fate expected;
		struct link_fate fate;
		int copies;

		now += coin(&rng) ? rng_below(&rng, 1500) : 0;
		if (rng_below(&rng, 100) == 0) {
			bool keep = coin(&rng);

			if (!keep)
				now = u64_max(now, l.busy_ns + 1);
			random_attr(&rng, now, keep, &attr);
			assert_int_equal(link_attr_set(&l, now, &attr), 0);
			twin_set(&twin, now, &attr);
		}
		expected = twin_offer(&twin, now, bytes);
		copies = link_offer(&l, now, bytes, &fate);
		assert_int_equal(copies, fate.copies);
		link_check(&l);
		if (!fate_ok(&attr, &fate, &expected, bytes, latest))
			return i;
		if (fate.copies)
			latest = u64_max(latest, fate.deliver_ns[0]);
		if (attr.rate_bps &&
		    link_queued_bytes(&l, now) !=
			    (uint64_t)((twin_backlog(&twin, now) + BYTE_WORK - 1) / BYTE_WORK))
			return i;
	}
	return offers;
}

static void test_twin(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		unsigned int at = compare(seed, FAULT_NONE, 3000);

		if (at != 3000)
			fail_msg("seed %llu: offer %u", (unsigned long long)seed, at);
	}
}

static void test_planted_faults_are_seen(void **state)
{
	(void)state;
	for (int fault = FAULT_NONE + 1; fault < FAULTS; fault++) {
		bool seen = false;

		for (uint64_t seed = 1; seed <= 200 && !seen; seed++)
			seen = compare(seed, (enum fault)fault, 3000) != 3000;
		if (!seen)
			fail_msg("fault %d is not seen", fault);
	}
}

/* Gilbert-Elliott. */

#define BATCHES 200
#define BATCH 20000

struct ge_sums {
	double loss, bursts; /* a packet */
};

/* Over the states of two packets that follow each other. */
static struct ge_sums ge_expected(const struct link_ge *g)
{
	double bad = g->p_gb + g->p_bg > 0 ? g->p_gb / (g->p_gb + g->p_bg) : 0;
	double share[2] = {1 - bad, bad}, loss[2] = {g->loss_good, g->loss_bad};
	double to[2][2] = {{1 - g->p_gb, g->p_gb}, {g->p_bg, 1 - g->p_bg}};
	struct ge_sums s = {0, 0};

	for (int i = 0; i < 2; i++) {
		s.loss += share[i] * loss[i];
		for (int k = 0; k < 2; k++)
			s.bursts += share[i] * (1 - loss[i]) * to[i][k] * loss[k];
	}
	return s;
}

/* Means of the batches against what is expected; their own spread is the measure. */
static void assert_mean(const double *x, double expected)
{
	double sum = 0, squares = 0, mean, error;

	for (int i = 0; i < BATCHES; i++) {
		sum += x[i];
		squares += x[i] * x[i];
	}
	mean = sum / BATCHES;
	error = sqrt((squares / BATCHES - mean * mean) / BATCHES);
	if (fabs(mean - expected) > 5 * error)
		fail_msg("%g is not %g +- %g", mean, expected, 5 * error);
}

static void test_gilbert_elliott_in_general(void **state)
{
	static const struct link_ge cases[] = {
		{0.01, 0.1, 1, 0},     {0.01, 0.167, 0.9, 0.001}, {0.3, 0.5, 0.7, 0.1},
		{0.002, 0.01, 0.5, 0}, {0.9, 0.9, 0.8, 0.2},	  {1, 1, 1, 0},
	};

	(void)state;
	for (size_t c = 0; c < SDR_ARRAY_LEN(cases); c++) {
		struct link_attr attr = {.loss = cases[c]};
		struct ge_sums expected = ge_expected(&cases[c]);
		double loss[BATCHES], bursts[BATCHES];
		struct link_fate fate;
		bool before = false;
		struct link l;

		assert_true(fabs(link_ge_ratio(&cases[c]) - expected.loss) < 1e-12);
		assert_int_equal(link_init(&l, &attr, 31 + c), 0);
		for (int b = 0; b < BATCHES; b++) {
			unsigned int lost = 0, began = 0;

			for (int i = 0; i < BATCH; i++) {
				bool gone = !link_offer(&l, 0, 100, &fate);

				lost += gone;
				began += gone && !before;
				before = gone;
			}
			loss[b] = lost / (double)BATCH;
			bursts[b] = began / (double)BATCH;
		}
		if (cases[c].p_gb < 1) {
			assert_mean(loss, expected.loss);
			assert_mean(bursts, expected.bursts);
		} else { /* no chance in it: every other one */
			assert_true(l.counters.lost_pkts[LINK_LOST_RANDOM] ==
				    (uint64_t)BATCHES * BATCH / 2);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_twin),
		cmocka_unit_test(test_planted_faults_are_seen),
		cmocka_unit_test(test_gilbert_elliott_in_general),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

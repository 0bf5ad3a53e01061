/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulation in runs (sim.h) against one that looks at every slot and every packet, on
 * the same losses: times and numbers of sent units must be equal. Faults planted in the
 * twin must be seen.
 */
#include "plan/hybrid.h"
#include "plan/sim.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum fault {
	FAULT_NONE,
	FAULT_FIRST_SENDS_FIRST, /* resends wait until all has been sent once */
	FAULT_EARLY_RESEND,	 /* a loss is known a slot too early */
	FAULT_FREE_RESENDS,	 /* resends take no slot of the link */
	FAULT_NO_INTERLEAVING,
	FAULT_PARITY_SURVIVES,
	FAULT_ONLY_MISSING,    /* EC resends what is missing, not whole blocks */
	FAULT_LATE_DECODING,   /* a block is decoded at its group's end */
	FAULT_UNCODED_RESENDS, /* hybrid: resends in the span belong to no block */
	FAULT_BARE_DEFICIT,
	FAULT_ONE_COPY,
	FAULT_ONLY_HOLES, /* gbn: what is not lacking is passed over */
	FAULT_LOST_AGAIN, /* gbn: what has arrived is lacking if a repeat of it is lost */
	FAULTS
};

#define SLOTS 20000
#define UNITS 2000
#define BLOCKS 2000

/* One packet that has to go out at `due` or later. */
struct wanted {
	uint64_t due;
	int unit;
	bool done;
};

struct twin {
	const struct units *u;
	const struct plan_params *p;
	enum fault fault;
	uint8_t lost[SLOTS];
	uint64_t slot, end, sent;
	struct wanted wanted[UNITS * 8];
	int wanted_count;
};

/* The same draws in the same order: sim only ever asks forward. */
static void read_losses(struct twin *t, struct rng rng)
{
	struct chan c;

	chan_start(&c, &t->u->burst, &rng, 0);
	for (uint64_t s = 0; s < SLOTS; s++) {
		chan_seek(&c, s);
		t->lost[s] = c.from <= s;
	}
}

static bool arrives(struct twin *t, uint64_t slot)
{
	assert_true(slot < SLOTS);
	return !t->lost[slot];
}

static void want(struct twin *t, int unit, uint64_t due)
{
	assert_true(t->wanted_count < UNITS * 8);
	t->wanted[t->wanted_count] = (struct wanted){due, unit, false};
	t->wanted_count++;
}

static struct wanted *next_wanted(struct twin *t)
{
	struct wanted *best = NULL;

	for (int i = 0; i < t->wanted_count; i++) {
		struct wanted *w = &t->wanted[i];

		if (!w->done && (!best || w->due < best->due))
			best = w;
	}
	return best;
}

/* A unit in slot t->slot. */
static void send_unit(struct twin *t, int unit, uint64_t wait)
{
	uint64_t knows = t->slot + 1 + wait - (t->fault == FAULT_EARLY_RESEND);

	t->sent++;
	if (arrives(t, t->slot))
		t->end = t->end > t->slot + 1 ? t->end : t->slot + 1;
	else
		want(t, unit, knows);
	t->slot++;
}

static void twin_uncoded(struct twin *t, int count, uint64_t wait)
{
	int next = 0;

	while (next < count) {
		struct wanted *w = next_wanted(t);
		bool resend = w && w->due <= t->slot && t->fault != FAULT_FIRST_SENDS_FIRST;

		if (!resend) {
			send_unit(t, next++, wait);
			continue;
		}
		w->done = true;
		send_unit(t, w->unit, wait);
		if (t->fault == FAULT_FREE_RESENDS)
			t->slot--;
	}
}

static void twin_sr(struct twin *t, int count, uint64_t wait)
{
	struct wanted *w;

	twin_uncoded(t, count, wait);
	while ((w = next_wanted(t))) {
		t->slot = t->slot > w->due ? t->slot : w->due;
		w->done = true;
		send_unit(t, w->unit, wait);
		if (t->fault == FAULT_FREE_RESENDS)
			t->slot--;
	}
}

struct block {
	int units, got, got_parity, missing;
	int cell_missing[64], cell_parity[64]; /* XOR */
	uint64_t decoded, last;		       /* slot after; 0 = not */
};

static bool decodable(const struct twin *t, const struct block *b, bool all_sent)
{
	if (!all_sent)
		return false;
	if (t->p->scheme != PLAN_EC_XOR)
		return b->got + b->got_parity >= b->units;
	for (uint32_t c = 0; c < t->p->m; c++) {
		if (b->cell_missing[c] > b->cell_parity[c])
			return false;
	}
	return true;
}

static struct block blocks[BLOCKS];
static int block_count;

static int block_of(const struct twin *t, int i)
{
	int depth = t->p->depth ? (int)t->p->depth : 1;

	return t->fault == FAULT_NO_INTERLEAVING ? i / (int)t->p->k : i % depth;
}

static void note_unit(struct twin *t, struct block *group, int i)
{
	int depth = (int)t->p->depth;
	struct block *b = &group[block_of(t, i)];

	b->units++;
	b->last = t->slot + 1;
	if (arrives(t, t->slot)) {
		b->got++;
		b->decoded = t->slot + 1;
	} else {
		b->missing++;
		if (t->p->scheme == PLAN_EC_XOR)
			b->cell_missing[i / depth % (int)t->p->m]++;
	}
	t->sent++;
	t->slot++;
}

static void note_parity(struct twin *t, struct block *group, int q)
{
	int depth = (int)t->p->depth;
	struct block *b = &group[q % depth];
	bool before = decodable(t, b, true);

	b->last = t->slot + 1;
	if (b->units > 0 && (arrives(t, t->slot) || t->fault == FAULT_PARITY_SURVIVES)) {
		b->got_parity++;
		if (t->p->scheme == PLAN_EC_XOR)
			b->cell_parity[q / depth]++;
		if (!before && decodable(t, b, true))
			b->decoded = t->slot + 1;
	}
	t->sent++;
	t->slot++;
}

/* Blocks are made as they fill; hybrid also takes resends that fall due. */
static void twin_coded(struct twin *t, int count)
{
	int depth = (int)t->p->depth, full = depth * (int)t->p->k;

	block_count = 0;
	for (;;) {
		struct block *group = &blocks[block_count];
		int i = 0;

		assert_true(block_count + depth < BLOCKS);
		memset(group, 0, sizeof(*group) * (size_t)depth);
		while (i < full) {
			struct wanted *w = next_wanted(t);

			if (w && w->due <= t->slot) {
				w->done = true;
				if (t->fault == FAULT_UNCODED_RESENDS) {
					send_unit(t, w->unit, t->u->rtt_slots);
					continue;
				}
			} else if (count > 0) {
				count--;
			} else {
				break;
			}
			note_unit(t, group, i++);
		}
		if (i == 0)
			return;
		for (int q = 0; q < depth * (int)t->p->m; q++)
			note_parity(t, group, q);
		if (t->fault == FAULT_LATE_DECODING) {
			for (int b = 0; b < depth; b++)
				group[b].decoded = group[b].missing ? t->slot : group[b].decoded;
		}
		block_count += depth;
	}
}

/* Units of blocks that can't be decoded; the others' last decoding goes to t->end. */
static int twin_failed(struct twin *t)
{
	int units = 0;

	for (int b = 0; b < block_count; b++) {
		if (blocks[b].units == 0)
			continue;
		if (!decodable(t, &blocks[b], true))
			units += t->fault == FAULT_ONLY_MISSING ? blocks[b].missing
								: blocks[b].units;
		else if (blocks[b].decoded > t->end)
			t->end = blocks[b].decoded;
	}
	return units;
}

static void twin_ec(struct twin *t)
{
	int units;

	twin_coded(t, (int)t->u->n);
	units = twin_failed(t);
	if (units == 0)
		return;
	t->slot += (uint64_t)llround((t->p->beta_rtts + 1) * t->u->rtt);
	twin_sr(t, units, (uint64_t)llround(t->p->rto_rtts * t->u->rtt));
}

/* Failed blocks named by now, a unit of each in turn; 64 at most at a time. */
static void twin_repairs(struct twin *t, struct wanted *repair, int *count)
{
	uint64_t begin = t->slot, stride;
	int lack[64], units[64], now = 0, most = 0, left = 0;

	for (int i = 0; i < *count; i++) {
		if (now == 64 || repair[i].due > begin) {
			repair[left++] = repair[i];
			continue;
		}
		lack[now] = units[now] = repair[i].unit;
		if (t->fault != FAULT_BARE_DEFICIT)
			units[now] += (int)hybrid_margin(&t->u->burst, (uint32_t)lack[now],
							 (double)hybrid_gap(&t->u->burst,
									    (uint32_t)lack[now],
									    t->u->rtt_slots),
							 t->p->lambda, t->u->rtt_slots);
		most = most > units[now] ? most : units[now];
		now++;
	}
	*count = left;
	stride = hybrid_gap(&t->u->burst, (uint32_t)most, t->u->rtt_slots);
	stride = stride > (uint64_t)now ? stride : (uint64_t)now;
	for (int i = 0; i < most; i++) {
		for (int f = 0; f < now; f++) {
			uint64_t at = begin + (uint64_t)i * stride + (uint64_t)f;

			if (i >= units[f])
				continue;
			t->sent++;
			t->slot = at + 1;
			if (lack[f] > 0 && arrives(t, at) && --lack[f] == 0 && at + 1 > t->end)
				t->end = at + 1;
		}
	}
	for (int f = 0; f < now; f++) {
		if (lack[f] > 0)
			repair[(*count)++] =
				(struct wanted){t->slot + t->u->rtt_slots, lack[f], false};
	}
}

/* The late ones that were lost together go together. */
static void twin_late(struct twin *t, struct wanted *w)
{
	uint32_t copies = t->fault == FAULT_ONE_COPY ? 1 : t->p->copies;
	uint64_t begin = t->slot, stride, len = 0, due = w->due;
	bool got[UNITS] = {false};
	int first = (int)(w - t->wanted);

	while (first + (int)len < t->wanted_count && t->wanted[first + (int)len].due == due + len)
		t->wanted[first + (int)len++].done = true;
	stride = hybrid_gap(&t->u->burst, t->p->copies, t->u->rtt_slots);
	stride = stride > len ? stride : len;
	for (uint32_t c = 0; c < copies; c++) {
		for (uint64_t i = 0; i < len; i++) {
			uint64_t at = begin + c * stride + i;

			t->sent++;
			t->slot = at + 1;
			if (!got[i] && arrives(t, at)) {
				got[i] = true;
				t->end = t->end > at + 1 ? t->end : at + 1;
			}
		}
	}
	for (uint64_t i = 0; i < len; i++) {
		if (!got[i])
			want(t, -1, t->slot + t->u->rtt_slots);
	}
}

static void twin_hybrid(struct twin *t)
{
	static struct wanted repair[BLOCKS];
	uint64_t span = t->p->span < t->u->n ? t->p->span : t->u->n;
	int count = 0;

	twin_uncoded(t, (int)(t->u->n - span), t->u->rtt_slots);
	twin_coded(t, (int)span);
	twin_failed(t);
	for (int b = 0; b < block_count; b++) {
		struct block *k = &blocks[b];

		if (k->units > 0 && !decodable(t, k, true))
			repair[count++] = (struct wanted){k->last + t->u->rtt_slots,
							  k->units - k->got - k->got_parity, false};
	}
	for (;;) {
		struct wanted *w = next_wanted(t), *fix = NULL;

		for (int i = 0; i < count; i++) {
			if (!fix || repair[i].due < fix->due)
				fix = &repair[i];
		}
		if (!w && !fix)
			return;
		if (fix && (!w || fix->due <= w->due)) {
			t->slot = t->slot > fix->due ? t->slot : fix->due;
			twin_repairs(t, repair, &count);
		} else {
			t->slot = t->slot > w->due ? t->slot : w->due;
			twin_late(t, w);
		}
	}
}

/* The first unit before `next` that is lacking and known to be. */
static int first_hole(const struct twin *t, const bool *got, const uint64_t *known, int next)
{
	for (int i = 0; i < next; i++) {
		if (!got[i] && known[i] <= t->slot)
			return i;
	}
	return next;
}

static void twin_gbn(struct twin *t, uint64_t wait)
{
	bool got[UNITS] = {false};
	uint64_t known[UNITS] = {0};
	int n = (int)t->u->n, lacking = n, next = 0;

	for (; lacking > 0; t->slot++) {
		next = first_hole(t, got, known, next);
		while (t->fault == FAULT_ONLY_HOLES && next < n && got[next])
			next++;
		if (next == n)
			continue; /* waits */
		t->sent++;
		known[next] = t->slot + 1 + wait;
		if (arrives(t, t->slot) && !got[next]) {
			lacking--;
			got[next] = true;
			t->end = t->slot + 1;
		} else if (got[next] && t->fault == FAULT_LOST_AGAIN && !arrives(t, t->slot)) {
			lacking++;
			got[next] = false;
		}
		next++;
	}
	/* Who sends does not know yet, and goes on for a round trip. */
	for (; next < n && t->slot < t->end + t->u->rtt_slots; next++, t->slot++)
		t->sent++;
}

static void twin_run(struct twin *t)
{
	uint64_t wait = (uint64_t)llround(t->p->rto_rtts * t->u->rtt);

	t->slot = t->end = t->sent = 0;
	t->wanted_count = 0;
	if (t->p->scheme == PLAN_HYBRID)
		twin_hybrid(t);
	else if (t->p->scheme == PLAN_GBN)
		twin_gbn(t, wait);
	else if (units_coded(t->p->scheme))
		twin_ec(t);
	else
		twin_sr(t, (int)t->u->n, wait);
}

/* Small links of few round trips, so that sim.h skips nothing. */
static void random_case(struct rng *rng, struct units *u, struct plan_params *p)
{
	static const double losses[] = {0.003, 0.02, 0.1, 0.25};
	double loss = losses[rng_below(rng, 4)], burst = 1 + (double)rng_below(rng, 2) * 4;

	*p = (struct plan_params){.scheme = (enum plan_scheme)rng_below(rng, PLAN_SCHEMES)};
	u->rtt_slots = 20 + rng_below(rng, 60);
	u->rtt = (double)u->rtt_slots;
	u->t_s = 1;
	burst_init(&u->burst, loss, burst);
	p->rto_rtts = 1 + (double)rng_below(rng, 3);
	p->beta_rtts = (double)rng_below(rng, 2);
	p->k = 2 + (uint32_t)rng_below(rng, 8);
	p->m = 1 + (uint32_t)rng_below(rng, p->k < 3 ? p->k : 3);
	p->depth = 1 + (uint32_t)rng_below(rng, 5);
	p->copies = 1 + (uint32_t)rng_below(rng, 3);
	p->lambda = 20;
	u->n = 1 + rng_below(rng, SIM_WAITS * u->rtt_slots);
	p->span = 1 + rng_below(rng, u->n);
	if (u->n - p->span > SIM_UNCODED_WAITS * u->rtt_slots)
		p->span = u->n - SIM_UNCODED_WAITS * u->rtt_slots;
}

static bool differs(struct rng *rng, enum fault fault, bool say)
{
	static struct twin twin;
	struct plan_params p;
	struct units u;
	struct rng draws;
	struct sim sim;
	double slots;
	bool wrong;

	random_case(rng, &u, &p);
	rng_init(&draws, rng_next(rng));
	twin.u = &u;
	twin.p = &p;
	twin.fault = fault;
	read_losses(&twin, draws);
	twin_run(&twin);
	assert_int_equal(sim_init(&sim, &u, &p, &draws, &sdr_alloc_system), 0);
	assert_int_equal(sim_draw(&sim, PLAN_SERIALISED, &slots), 0);
	wrong = slots != (double)(twin.end + u.rtt_slots) || sim.sent != (double)twin.sent;
	if (wrong && say)
		print_error("%s n %lu rtt %lu rto %g k %u m %u depth %u span %lu copies %u loss %g "
			    "burst %g: %.0f slots, %.0f sent; twin %lu, %lu\n",
			    plan_scheme_name(p.scheme), u.n, u.rtt_slots, p.rto_rtts, p.k, p.m,
			    p.depth, p.span, p.copies, u.burst.loss,
			    u.burst.independent ? 1 : 1 / u.burst.to_ok, slots, sim.sent,
			    twin.end + u.rtt_slots, twin.sent);
	sim_fini(&sim);
	return wrong;
}

static void test_twin(void **state)
{
	struct rng rng;
	int wrong = 0;

	(void)state;
	rng_init(&rng, 21);
	for (int i = 0; i < 6000; i++)
		wrong += differs(&rng, FAULT_NONE, wrong < 5);
	assert_int_equal(wrong, 0);
}

static void test_planted(void **state)
{
	(void)state;
	for (int fault = FAULT_NONE + 1; fault < FAULTS; fault++) {
		struct rng rng;
		int seen = 0;

		rng_init(&rng, 22);
		for (int i = 0; i < 400 && seen == 0; i++)
			seen += differs(&rng, (enum fault)fault, false);
		if (!seen)
			print_error("fault %d was not seen\n", fault);
		assert_true(seen > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_twin),
		cmocka_unit_test(test_planted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * See table.h. What costs time is how likely a block fails: rows with blocks of one size and one
 * depth share it.
 */
#include "plan/table.h"

#include "base/bits.h"
#include "base/check.h"
#include "plan/choose.h"
#include "plan/hybrid.h"
#include "plan/num.h"
#include "plan/units.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define K_LONG 216u /* where so little parity is enough that blocks may be long: */
#define M_LONG 4u
#define M_MOST 64u /* that the budget ever allows, and some */
#define SYMBOLS_MAX 255u
#define GROUPS_FEW 8u
#define DEPTH_MAX 65536u
#define SPAN_ALL UINT64_MAX
#define USELESS 0.5    /* parity that leaves so much of the failures */
#define TAIL_TIME 0.08 /* of the lossless time that parity for the tail may take */
#define SHORT 0.05     /* a round trip's share of the lossless time: no tail is too long */
#define CHAIN_END 64u  /* a deficit beyond it is no longer a burst's share of a block */
#define DRIFT_LOSS 2.0
#define DRIFT 1.5
#define LOSS_FLOOR 1e-9 /* below it all links are alike */
#define FAILS 8u

/* fail[] of blocks of k, interleaved to depth (0: single losses); the last few that were asked
 * for. */
struct fails {
	uint32_t k, depth, m_max;
	double fail[M_MOST + 1];
};

#define PROOF_LEAST_S 200e-6 /* of rel/'s reorder window */

struct maker {
	struct burst burst;
	bool sure;
	uint64_t rtt;  /* in packets */
	uint64_t late; /* the same, of which a loss before the end is repaired too late */
	uint32_t copies;
	uint64_t gap;
	uint8_t margin[PLAN_TABLE_MARGINS];
	struct fails fails[FAILS];
	uint32_t next;
};

static const struct fails *fails_of(struct maker *mk, const struct burst *b, uint32_t k,
				    uint32_t depth)
{
	struct fails *f;

	if (b->independent)
		depth = 0;
	for (uint32_t i = 0; i < FAILS; i++) {
		if (mk->fails[i].k == k && mk->fails[i].depth == depth)
			return &mk->fails[i];
	}
	f = &mk->fails[mk->next++ % FAILS];
	f->k = k;
	f->depth = depth;
	f->m_max = (uint32_t)u64_min(M_MOST, SYMBOLS_MAX - k);
	burst_block_fail(b, k, f->m_max, depth, f->fail);
	return f;
}

/* Parity packets that a message of n may have. */
static uint64_t budget(double loss, uint64_t n)
{
	if (n <= PLAN_TABLE_FEW_PKTS)
		return u64_max(n, PLAN_TABLE_FEW_PARITY);
	return (uint64_t)((loss < PLAN_TABLE_CLEAN_LOSS ? PLAN_TABLE_CLEAN_OVERHEAD
							: PLAN_TABLE_OVERHEAD_MAX) *
			  (double)n);
}

/* P(any of the packets that no resend could bring in time is lost). */
static double tail_loss(const struct burst *b, uint64_t span)
{
	return 1 - (1 - b->loss) * (1 - num_any((double)(span - 1), b->to_lost));
}

static void uncoded(struct plan_table_row *row, enum plan_table_why why)
{
	row->coded = row->fresh = false;
	row->k = row->m = row->depth = 0;
	row->span = 0;
	row->why = why;
}

/* Few groups are of one size, none of them short: a bit deeper than need be. */
static uint32_t balanced(uint32_t blocks, uint32_t depth)
{
	uint32_t groups = blocks / depth;

	return groups < GROUPS_FEW ? (blocks + groups - 1) / groups : depth;
}

/* Blocks of one size, about k. */
static void deal(const struct maker *mk, struct hybrid_span *s, uint64_t span, uint32_t *k)
{
	uint64_t depth;
	uint32_t last;

	s->blocks = (uint32_t)u64_div_up(span, *k);
	depth = u64_max(hybrid_depth(&mk->burst, s->blocks),
			mk->sure ? PLAN_TABLE_DEPTH_LEAST : PLAN_TABLE_DEPTH);
	s->depth = (uint32_t)u64_min(u64_min(depth, s->blocks), DEPTH_MAX);
	s->depth = balanced(s->blocks, s->depth);
	*k = (uint32_t)u64_div_up(span, s->blocks);
	last = s->blocks % s->depth;
	s->early = s->blocks - (last ? last : s->depth);
}

/* Packets sent for the sake of m: parity, and the repair of a group that a burst defeats. */
static double spent(const struct maker *mk, const struct hybrid_span *s, const double *fail,
		    uint32_t m)
{
	double burst = mk->burst.independent ? 1 : 1 / mk->burst.to_ok;
	uint32_t deficit = (uint32_t)ceil(fmin(burst / s->depth / 2, CHAIN_END)), class = 0;

	while (1u << class < deficit)
		class ++;
	return (double)m * s->blocks + fmin(1, hybrid_any_fails(s, &mk->burst, fail, m)) *
					       s->depth * (deficit + mk->margin[class]);
}

/* The most parity that keeps to the budget; a third of that at most is set aside for repairs. */
static uint32_t affordable(const struct maker *mk, const struct hybrid_span *s,
			   const struct fails *f)
{
	double most = (double)budget(mk->burst.loss, s->n);
	uint32_t m = (uint32_t)fmin(most / s->blocks, f->m_max), cap = m;

	if (s->n <= PLAN_TABLE_FEW_PKTS)
		return m;
	while (m > cap - cap / 3 && spent(mk, s, f->fail, m) > most)
		m--;
	return m;
}

/* The rule's choice; more, where a little more takes failures out of sight. */
static uint32_t parity(const struct maker *mk, const struct hybrid_span *s, const double *fail,
		       uint32_t m_max)
{
	uint32_t by_rule = hybrid_parity(s, &mk->burst, fail, m_max), m = by_rule;
	double most = TAIL_TIME * (double)(s->n + s->rtt);

	while (m > 0 && hybrid_any_fails(s, &mk->burst, fail, m) > PLAN_TABLE_RARE) {
		if (++m > m_max || (double)m * s->blocks > most)
			return by_rule;
	}
	return m;
}

/* Not what leaves most failures; nor, where a round trip is short, what costs more than it saves.
 */
static bool pays(const struct maker *mk, const struct hybrid_span *s, const double *fail,
		 double exposed, uint32_t m, enum plan_table_why *why)
{
	double left = fmin(1, hybrid_any_fails(s, &mk->burst, fail, m));

	*why = PLAN_WHY_HOPELESS;
	if (left > USELESS * exposed)
		return false;
	*why = PLAN_WHY_SHORT;
	if ((double)s->rtt > SHORT * (double)(s->n + s->rtt))
		return true;
	return (double)m * s->blocks < HYBRID_LAMBDA * (exposed - left) * (double)s->rtt;
}

/* What a path takes that may lose packets one by one, at least; 0: more than there may be. */
static uint32_t against_singles(struct maker *mk, const struct hybrid_span *s, uint32_t k,
				uint32_t m_max)
{
	const struct fails *f;
	struct burst single;

	burst_init(&single, mk->burst.loss, 1);
	f = fails_of(mk, &single, k, 0);
	for (uint32_t m = 0; m <= m_max; m++) {
		if (s->blocks * f->fail[m] <= PLAN_TABLE_RARE)
			return m;
	}
	return 0;
}

/* Fills k, m, depth and why for blocks of at most k. */
static void code_by_rule(struct maker *mk, uint64_t n, uint64_t span, uint32_t k,
			 struct plan_table_row *row)
{
	struct hybrid_span s = {.n = n, .rtt = mk->rtt};
	enum plan_table_why why;
	const struct fails *f;
	uint32_t cap, wanted, least = 0;

	deal(mk, &s, span, &k);
	f = fails_of(mk, &mk->burst, k, s.depth);
	cap = affordable(mk, &s, f);
	wanted = parity(mk, &s, f->fail, f->m_max);
	row->coded = row->fresh = true;
	row->k = k;
	row->depth = s.depth;
	row->m = wanted <= cap ? wanted : parity(mk, &s, f->fail, cap);
	row->why = wanted <= cap ? PLAN_WHY_MODEL : PLAN_WHY_BUDGET;
	if (!pays(mk, &s, f->fail, tail_loss(&mk->burst, span), row->m, &why))
		row->m = 0;
	if (!mk->sure && why == PLAN_WHY_HOPELESS)
		least = against_singles(mk, &s, k, cap);
	row->m = (uint32_t)u64_max(row->m, least);
	if (row->m == 0)
		uncoded(row, why);
}

static void fill_by_model(struct maker *mk, uint64_t n, struct plan_table_row *row)
{
	uint64_t span = u64_min(n, mk->late);
	struct plan_table_row longer = *row;

	row->copies = longer.copies = mk->copies;
	row->gap_pkts = longer.gap_pkts = mk->gap;
	memcpy(row->margin, mk->margin, sizeof(row->margin));
	memcpy(longer.margin, mk->margin, sizeof(row->margin));
	/* A path that is not known may lose packets one by one. */
	if ((mk->sure ? tail_loss(&mk->burst, span) : num_any((double)span, mk->burst.loss)) <
	    PLAN_TABLE_RARE) {
		uncoded(row, PLAN_WHY_RARE);
		return;
	}
	row->span = longer.span = span;
	code_by_rule(mk, n, span, HYBRID_K, row);
	if (!row->coded || row->m > M_LONG || span <= HYBRID_K)
		return;
	code_by_rule(mk, n, span, K_LONG, &longer);
	if (!longer.coded || longer.m > M_LONG)
		return;
	/* Less parity; or, where that is bounded, more in each block. */
	if (row->why == PLAN_WHY_BUDGET
		    ? longer.m > row->m
		    : longer.m * u64_div_up(span, longer.k) < row->m * u64_div_up(span, row->k))
		*row = longer;
}

static void fill_by_policy(const struct plan_link *link, uint32_t packet_bytes, uint64_t n,
			   struct plan_table_row *row)
{
	struct plan_job job = {n * packet_bytes, packet_bytes, packet_bytes};
	struct plan_params p;

	row->rule = plan_policy_table(link, &job, &p);
	row->copies = 1;
	row->gap_pkts = 1;
	if (!units_coded(p.scheme)) {
		uncoded(row, PLAN_WHY_POLICY);
		return;
	}
	row->coded = true;
	row->k = p.k;
	row->m = p.m;
	row->depth = p.depth;
	row->span = SPAN_ALL;
	row->xor_code = p.scheme == PLAN_EC_XOR;
	row->why = PLAN_WHY_POLICY;
}

static void margins(const struct burst *b, uint64_t rtt, uint8_t margin[PLAN_TABLE_MARGINS])
{
	for (uint32_t i = 0; i < PLAN_TABLE_MARGINS; i++) {
		uint32_t deficit = 1u << i; /* the largest of its class */
		double gap = (double)hybrid_gap(b, deficit, rtt);

		margin[i] = (uint8_t)hybrid_margin(b, deficit, gap, HYBRID_LAMBDA, rtt);
	}
}

/*
 * A round trip; on a short path also the time that it takes to be sure of a loss, which is a part
 * of the round trip on a long one.
 */
static uint64_t late_pkts(const struct plan_link *link, uint64_t rtt_pkts)
{
	double more_s = fmin(fmax(PROOF_LEAST_S - link->rtt_s / 16, 0), link->rtt_s / 4);

	return rtt_pkts + (uint64_t)(more_s / link->rtt_s * (double)rtt_pkts);
}

static void maker_init(struct maker *mk, const struct plan_link *link, bool sure,
		       uint32_t packet_bytes)
{
	struct plan_job job = {packet_bytes, packet_bytes, packet_bytes};
	struct units u;

	*mk = (struct maker){.sure = sure};
	units_init(&u, link, &job);
	mk->burst = u.burst;
	mk->rtt = u64_max(u.rtt_slots, 1);
	mk->late = late_pkts(link, mk->rtt);
	mk->copies = hybrid_copies(&mk->burst, mk->rtt);
	mk->gap = hybrid_gap(&mk->burst, mk->copies, mk->rtt);
}

int plan_table_make(const struct plan_link *link, bool sure, uint32_t packet_bytes, bool by_policy,
		    struct plan_table *out)
{
	struct plan_job job = {packet_bytes, packet_bytes, packet_bytes};
	struct plan_fault fault;
	struct maker mk;

	if (plan_check(link, &job, NULL, &fault) < 0)
		return -EINVAL;
	*out = (struct plan_table){
		.link = *link, .sure = sure, .packet_bytes = packet_bytes, .by_policy = by_policy};
	maker_init(&mk, link, sure, packet_bytes);
	if (!by_policy)
		margins(&mk.burst, mk.rtt, mk.margin);
	for (uint32_t i = 0; i < PLAN_TABLE_ROWS; i++) {
		if (by_policy)
			fill_by_policy(link, packet_bytes, UINT64_C(1) << i, &out->row[i]);
		else
			fill_by_model(&mk, UINT64_C(1) << i, &out->row[i]);
	}
	return 0;
}

const struct plan_table_row *plan_table_find(const struct plan_table *t, uint64_t pkts)
{
	uint32_t i = 0;

	while (i + 1 < PLAN_TABLE_ROWS && UINT64_C(1) << i < pkts)
		i++;
	return &t->row[i];
}

void plan_table_fit(const struct plan_table *t, uint64_t pkts, struct plan_table_row *out)
{
	uint64_t blocks, most;

	*out = *plan_table_find(t, pkts);
	if (!out->coded)
		return;
	out->span = u64_min(out->span, pkts);
	blocks = u64_div_up(out->span, out->k);
	out->depth = (uint32_t)u64_min(out->depth, blocks);
	if (t->by_policy)
		return;
	out->k = (uint32_t)u64_div_up(out->span, blocks);
	most = budget(t->link.loss, pkts) / blocks;
	if (out->m <= most)
		return;
	out->m = (uint32_t)most;
	out->why = PLAN_WHY_BUDGET;
	if (most == 0)
		uncoded(out, PLAN_WHY_BUDGET);
}

void plan_table_margins(const struct plan_link *link, uint32_t packet_bytes,
			struct plan_table_row *row)
{
	struct plan_job job = {packet_bytes, packet_bytes, packet_bytes};
	struct plan_fault fault;
	struct maker mk;

	memset(row->margin, 0, sizeof(row->margin));
	row->gap_pkts = 1;
	if (plan_check(link, &job, NULL, &fault) < 0)
		return;
	maker_init(&mk, link, true, packet_bytes);
	margins(&mk.burst, mk.rtt, row->margin);
	row->gap_pkts = hybrid_gap(&mk.burst, row->copies, mk.rtt);
}

static bool above(double now, double then, double factor)
{
	return now > then * factor;
}

enum plan_drift plan_table_drift(const struct plan_table *t, const struct plan_link *now)
{
	double loss = fmax(now->loss, LOSS_FLOOR), was = fmax(t->link.loss, LOSS_FLOOR);
	double burst = fmax(now->burst_pkts, 1), ran = fmax(t->link.burst_pkts, 1);

	if (above(loss, was, DRIFT_LOSS) || above(burst, ran, DRIFT) ||
	    above(now->rtt_s, t->link.rtt_s, DRIFT) || above(now->bw_bps, t->link.bw_bps, DRIFT))
		return PLAN_DRIFT_UP;
	if (above(was, loss, DRIFT_LOSS) || above(ran, burst, DRIFT) ||
	    above(t->link.rtt_s, now->rtt_s, DRIFT) || above(t->link.bw_bps, now->bw_bps, DRIFT))
		return PLAN_DRIFT_DOWN;
	return PLAN_DRIFT_NONE;
}

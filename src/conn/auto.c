// SPDX-License-Identifier: Apache-2.0
/*
 * See auto.h.
 */
#include "conn/auto.h"

#include "base/bits.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What plan/ takes. */
#define LOSS_MOST 0.9
#define BURST_MOST 1e5
#define BDP_PKTS_MOST 16e6

void auto_init(struct auto_state *a, const struct rel_params *scheme, double loss,
	       double burst_pkts)
{
	*a = (struct auto_state){.scheme = *scheme, .told = loss > 0};
	a->told_loss = fmin(loss, LOSS_MOST);
	a->told_burst = fmin(fmax(burst_pkts, 1), BURST_MOST);
	rel_est_init(&a->est, loss, burst_pkts);
}

void auto_scheme_set(struct auto_state *a, const struct rel_params *scheme)
{
	a->scheme = *scheme;
	a->table_made = false;
}

/* ---- the path ---- */

static double bursts_seen(const struct rel_est *e)
{
	return rel_est_changed(e) ? e->fast.runs : e->slow.runs;
}

/* What was told, unless the path is clearly another; else what was seen, rather high. */
static void losses(struct auto_state *a, double *loss, double *burst)
{
	double least;

	rel_est_get(&a->est, loss, burst);
	if (*loss > AUTO_TOLD_MORE * a->told_loss || *loss < AUTO_TOLD_LESS * a->told_loss ||
	    *burst > AUTO_TOLD_MORE * a->told_burst)
		a->told = false;
	if (a->told) {
		*loss = a->told_loss;
		*burst = a->told_burst;
		return;
	}
	least = bursts_seen(&a->est) < AUTO_BURSTS_SEEN ? AUTO_BURST_MIN : AUTO_BURST_SEEN_MIN;
	*loss = fmin(AUTO_LOSS_FACTOR * *loss, *loss + AUTO_LOSS_ABOVE);
	*loss = fmin(*loss, LOSS_MOST);
	*burst = fmin(fmax(*burst, least), BURST_MOST);
}

static struct plan_link link_of(struct auto_state *a, const struct auto_path *path)
{
	struct plan_link link = {
		.bw_bps = (double)(path->rate_bps ? path->rate_bps : AUTO_RATE_GUESS_BPS),
		.rtt_s = (double)(path->rtt_ns ? path->rtt_ns : AUTO_RTT_GUESS_NS) / 1e9,
	};
	double pkt_s;

	losses(a, &link.loss, &link.burst_pkts);
	link.burst_pkts = fmax(link.burst_pkts, 1 + link.loss / (1 - link.loss));
	link.bw_bps = fmin(fmax(link.bw_bps, PLAN_BW_MIN_BPS), PLAN_BW_MAX_BPS);
	pkt_s = 8.0 * path->payload / link.bw_bps;
	link.rtt_s = fmin(link.rtt_s, fmin(PLAN_RTT_MAX_S, BDP_PKTS_MOST * pkt_s));
	link.rtt_s = fmax(link.rtt_s, PLAN_RTT_MIN_S);
	return link;
}

static bool same_rows(const struct plan_table *a, const struct plan_table *b)
{
	for (uint32_t i = 0; i < PLAN_TABLE_ROWS; i++) {
		const struct plan_table_row *r = &a->row[i], *s = &b->row[i];

		if (r->coded != s->coded || r->k != s->k || r->m != s->m || r->depth != s->depth ||
		    r->span != s->span || r->copies != s->copies)
			return false;
	}
	return true;
}

static void make(struct auto_state *a, const struct plan_link *link, const struct auto_path *path,
		 uint64_t now_ns)
{
	struct plan_table was = a->table;
	bool had = a->table_made && was.packet_bytes == path->payload;

	a->table_made = true;
	a->table_ns = now_ns;
	a->better_since_ns = 0;
	a->path = *path;
	if (a->scheme.policy == REL_POLICY_NONE) {
		a->table.link = *link;
		a->table.packet_bytes = path->payload;
		a->fixed = (struct plan_table_row){.copies = a->scheme.copies};
		plan_table_margins(link, path->payload, &a->fixed);
		return;
	}
	if (plan_table_make(link, a->told, path->payload, a->scheme.policy == REL_POLICY_TABLE,
			    &a->table))
		a->table_made = false;
	else if (!had || !same_rows(&was, &a->table))
		a->decisions++;
}

/* Whether the table is due to be made anew for that link. */
static bool due(struct auto_state *a, const struct plan_link *link, uint64_t now_ns)
{
	uint64_t age_ns = u64_sub_floor(now_ns, a->table_ns);
	enum plan_drift drift = plan_table_drift(&a->table, link);

	if (drift != PLAN_DRIFT_DOWN)
		a->better_since_ns = 0;
	else if (!a->better_since_ns)
		a->better_since_ns = now_ns;
	switch (drift) {
	case PLAN_DRIFT_UP:
		return age_ns >= AUTO_AGAIN_NS;
	case PLAN_DRIFT_DOWN:
		return now_ns - a->better_since_ns >= AUTO_CALM_NS;
	default:
		return age_ns >= AUTO_TABLE_NS;
	}
}

void auto_update(struct auto_state *a, const struct rel_tx_loss *loss, const struct auto_path *path,
		 uint64_t now_ns)
{
	struct plan_link link;

	rel_est_update(&a->est, loss, path->rtt_ns, now_ns);
	if (!path->payload)
		return;
	link = link_of(a, path);
	if (!a->table_made || a->table.packet_bytes != path->payload || due(a, &link, now_ns))
		make(a, &link, path, now_ns);
}

/* ---- choosing ---- */

static uint64_t bdp_pkts(const struct auto_state *a)
{
	double bits = a->table.link.bw_bps * a->table.link.rtt_s;

	return a->table_made ? (uint64_t)ceil(bits / 8 / a->table.packet_bytes) : UINT64_MAX;
}

/* A fixed scheme as a row for that message. */
static void fit_fixed(const struct auto_state *a, uint64_t pkts, struct plan_table_row *row)
{
	const struct rel_params *s = &a->scheme;

	*row = a->fixed;
	row->copies = s->copies ? s->copies : 1;
	row->coded = s->code != REL_CODE_NONE;
	if (!row->coded)
		return;
	row->xor_code = s->code == REL_CODE_XOR;
	row->fresh = s->fresh;
	row->k = s->k;
	row->m = s->m;
	row->span = s->span == REL_SPAN_ALL   ? pkts
		    : s->span == REL_SPAN_RTT ? bdp_pkts(a)
					      : s->span;
	row->span = u64_min(row->span, pkts);
	row->depth = (uint32_t)u64_min(u64_max(s->depth, 1), u64_div_up(row->span, row->k));
}

static void fit(const struct auto_state *a, uint64_t pkts, struct plan_table_row *row)
{
	if (a->scheme.policy == REL_POLICY_NONE)
		fit_fixed(a, pkts, row);
	else if (a->table_made)
		plan_table_fit(&a->table, pkts, row);
	else
		*row = (struct plan_table_row){.copies = 1, .why = PLAN_WHY_RARE};
}

static uint64_t parity_pkts(const struct plan_table_row *row)
{
	return row->coded ? row->m * u64_div_up(row->span, row->k) : 0;
}

uint32_t auto_parity_pkts(const struct auto_state *a, uint64_t pkts)
{
	struct plan_table_row row;

	if (!pkts)
		return 0;
	fit(a, pkts, &row);
	return (uint32_t)u64_min(parity_pkts(&row), UINT32_MAX);
}

/* No more parity of each block than there is room for; none: no code. True: it was cut. */
static bool cut(struct plan_table_row *row, uint32_t room)
{
	uint64_t blocks = row->coded ? u64_div_up(row->span, row->k) : 1;

	if (parity_pkts(row) <= room)
		return false;
	row->m = (uint32_t)(room / blocks);
	row->coded = row->m > 0;
	return true;
}

static void fill(const struct auto_state *a, const struct plan_table_row *row, uint32_t pkts,
		 struct rel_coding *coding)
{
	double pkt_ns = 8e9 * a->table.packet_bytes / a->table.link.bw_bps;

	coding->copies = (uint32_t)u64_min(u64_max(row->copies, 1), REL_COPIES_MAX);
	coding->gap_ns = a->table_made ? (uint64_t)llround((double)row->gap_pkts * pkt_ns) : 0;
	memcpy(coding->margin, row->margin, sizeof(coding->margin));
	if (!row->coded)
		return;
	coding->code = row->xor_code ? REL_CODE_XOR : REL_CODE_RS;
	coding->k = row->k;
	coding->m = row->m;
	coding->depth = row->depth;
	coding->span_pkts = (uint32_t)row->span;
	coding->span_start = pkts - coding->span_pkts;
	coding->fresh = row->fresh;
}

/* The fixed scheme that does the same for this message. */
static void amounts_to(const struct auto_state *a, const struct rel_coding *coding, uint32_t pkts,
		       struct rel_params *as)
{
	*as = (struct rel_params){
		.nack = true, .rto_multiple = a->scheme.rto_multiple, .copies = coding->copies};
	if (coding->code == REL_CODE_NONE)
		return;
	as->code = coding->code;
	as->k = coding->k;
	as->m = coding->m;
	as->depth = coding->depth;
	as->span = coding->span_pkts == pkts ? REL_SPAN_ALL : coding->span_pkts;
	as->fresh = coding->fresh;
	as->hybrid = coding->code == REL_CODE_RS;
}

/* Which of the numbers that were just said nobody has measured. */
static const char *guessed(const struct auto_state *a)
{
	if (!a->path.rate_bps)
		return a->path.rtt_ns ? "; the rate is a guess" : "; rate and time are guesses";
	return a->path.rtt_ns ? "" : "; the round trip is a guess";
}

static void add(struct auto_state *a, const char *text)
{
	size_t len = strlen(a->why);

	(void)snprintf(a->why + len, sizeof(a->why) - len, "%s", text);
}

static void explain(struct auto_state *a, uint32_t pkts, uint32_t room, bool was_cut)
{
	size_t len;

	if (a->scheme.policy == REL_POLICY_NONE)
		(void)snprintf(a->why, sizeof(a->why), "as it was set");
	else if (!a->table_made)
		(void)snprintf(a->why, sizeof(a->why), "nothing is known of the path yet");
	else
		(void)plan_table_say(&a->table, pkts, a->why, sizeof(a->why));
	if (a->scheme.policy != REL_POLICY_NONE && a->table_made)
		add(a, guessed(a));
	len = strlen(a->why);
	if (was_cut)
		(void)snprintf(a->why + len, sizeof(a->why) - len,
			       "; but there was room for %u of parity", room);
}

void auto_choose(struct auto_state *a, uint32_t pkts, uint32_t room, struct rel_coding *coding,
		 struct rel_params *as)
{
	struct plan_table_row row;
	bool was_cut;

	*coding = (struct rel_coding){0};
	*as = a->scheme;
	if (!pkts || a->scheme.repair == REL_REPAIR_GBN) {
		explain(a, pkts, room, false);
		return;
	}
	fit(a, pkts, &row);
	was_cut = cut(&row, room);
	fill(a, &row, pkts, coding);
	explain(a, pkts, room, was_cut);
	if (a->scheme.policy != REL_POLICY_NONE)
		amounts_to(a, coding, pkts, as);
	else if (was_cut)
		as->m = coding->m;
	if (was_cut && coding->code == REL_CODE_NONE)
		as->code = REL_CODE_NONE;
}

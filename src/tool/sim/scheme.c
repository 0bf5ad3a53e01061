// SPDX-License-Identifier: Apache-2.0
/*
 * See scheme.h.
 */
#include "tool/sim/scheme.h"

#include "base/bits.h"
#include "base/units.h"
#include "plan/hybrid.h"
#include "plan/table.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of codes, as sdr plan ranks them: failed blocks are named at once and go again by NACK. */
#define CODE_RTO 1
#define CODE_BETA 0
#define PAPER "-paper"
#define DEPTH_MAX (1u << 20)
/* sdr_scheme's own limits, where plan/'s are wider. */
#define ENGINE_SYMBOLS_MAX 255u
#define ENGINE_DEPTH_MAX 65536u
#define ENGINE_COPIES_MAX 16u
#define ENGINE_RTO_MIN 1.0
#define ENGINE_RTO_MAX 100.0

size_t scheme_item_len(const char *text)
{
	size_t at = strcspn(text, ",");

	while (text[at] == ',') {
		const char *next = text + at + 1;
		size_t word = strspn(next, "abcdefghijklmnopqrstuvwxyz");

		if (!isdigit((unsigned char)*next) && !(word && next[word] == '='))
			break;
		at += 1 + strcspn(next, ",");
	}
	return at;
}

/* ---- the paper's ---------------------------------------------------------------- */

static bool is_word(const char *text, size_t len, const char *word)
{
	return strlen(word) == len && strncmp(text, word, len) == 0;
}

static bool is_paper(const char *text, size_t len, enum plan_scheme *scheme)
{
	*scheme = is_word(text, len, "ec-xor" PAPER) ? PLAN_EC_XOR : PLAN_EC;
	return *scheme == PLAN_EC_XOR || is_word(text, len, "ec" PAPER);
}

/* NAME=NUMBER; -1: no such parameter or value. */
static int take_named(struct plan_params *p, const char *word)
{
	const char *value = strchr(word, '=') + 1;
	uint64_t n = 0;
	char *end;
	double real = strtod(value, &end);

	if (!isdigit((unsigned char)*value) || *end != '\0')
		return -1;
	if (strncmp(word, "depth=", 6) == 0 && units_parse_uint(value, 1, DEPTH_MAX, &n) == 0)
		p->depth = (uint32_t)n;
	else if (strncmp(word, "rto=", 4) == 0)
		p->rto_rtts = real;
	else if (strncmp(word, "beta=", 5) == 0)
		p->beta_rtts = real;
	else
		return -1;
	return 0;
}

/* K,M and named parameters; writes on `params`. */
static int take_paper(struct plan_params *p, const char *name, char *params, char *why, size_t len)
{
	uint64_t code[2] = {0, 0};
	uint32_t numbers = 0;
	char *save = NULL;

	for (char *word = strtok_r(params, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (strchr(word, '=') ? take_named(p, word) == 0
				      : numbers < 2 && units_parse_uint(word, 0, PLAN_CODE_MAX,
									&code[numbers++]) == 0)
			continue;
		snprintf(why, len,
			 "'%.40s' is no parameter of %s: choose K,M (together at most %u), "
			 "depth=1..%u, rto=N, beta=N",
			 word, name, PLAN_CODE_MAX, DEPTH_MAX);
		return -1;
	}
	if (numbers != 2) {
		snprintf(why, len,
			 "%s needs K and M, data and parity units of a submessage: write %s:32,8",
			 name, name);
		return -1;
	}
	p->k = (uint32_t)code[0];
	p->m = (uint32_t)code[1];
	return 0;
}

/* What the paper leaves as it is, is left out. */
static void name_paper(struct sim_scheme *s)
{
	const struct plan_params *p = &s->params;
	char depth[24] = "", rto[32] = "", beta[32] = "";

	if (p->depth > 1)
		snprintf(depth, sizeof(depth), ",depth=%u", p->depth);
	if (p->rto_rtts != 3)
		snprintf(rto, sizeof(rto), ",rto=%.15g", p->rto_rtts);
	if (p->beta_rtts != 1)
		snprintf(beta, sizeof(beta), ",beta=%.15g", p->beta_rtts);
	snprintf(s->name, sizeof(s->name), "%s" PAPER ":%u,%u%s%s%s", plan_scheme_name(p->scheme),
		 p->k, p->m, depth, rto, beta);
}

static int parse_paper(enum plan_scheme scheme, const char *text, struct sim_scheme *out, char *why,
		       size_t len)
{
	struct sim_scheme s = {.in_model = true,
			       .paper = true,
			       .params = {.scheme = scheme,
					  .rto_rtts = 3,
					  .beta_rtts = 1,
					  .depth = 1,
					  .span = 1,
					  .copies = 1}};
	char copy[SIM_SCHEME_NAME], *params;

	if (strlen(text) >= sizeof(copy)) {
		snprintf(why, len, "longer than %zu characters", sizeof(copy) - 1);
		return -1;
	}
	strcpy(copy, text);
	params = copy + strcspn(copy, ":");
	if (*params)
		*params++ = '\0';
	if (take_paper(&s.params, copy, params, why, len))
		return -1;
	name_paper(&s);
	*out = s;
	return 0;
}

/* ---- the engine's --------------------------------------------------------------- */

/* What of it the model knows: the scheme that says the same there. False: none does. */
static bool model_of(const struct sdr_scheme *e, enum plan_scheme *to)
{
	bool copies = e->copies > 1;

	if (e->policy != SDR_POLICY_NONE) {
		*to = PLAN_HYBRID; /* as far as anybody knows before there is a link */
		return true;
	}
	if (e->code == SDR_CODE_NONE) {
		*to = e->go_back_n ? PLAN_GBN : e->nack ? PLAN_SR_NACK : PLAN_SR;
		return !copies;
	}
	if (e->fresh) {
		*to = PLAN_HYBRID;
		return true;
	}
	*to = e->code == SDR_CODE_XOR ? PLAN_EC_XOR : PLAN_EC;
	return e->span == SDR_SPAN_ALL && !copies;
}

static bool is_known(const char *text, size_t len)
{
	for (const char *const *name = sdr_scheme_names(); *name; name++) {
		if (is_word(text, len, *name))
			return true;
	}
	return false;
}

static int say_unknown(char *why, size_t len)
{
	size_t used = (size_t)snprintf(why, len, "unknown scheme: choose ");

	for (const char *const *name = sdr_scheme_names(); *name && used < len; name++)
		used += (size_t)snprintf(why + used, len - used, "%s, ", *name);
	if (used < len)
		snprintf(why + used, len - used, "ec" PAPER " or ec-xor" PAPER);
	return -1;
}

int scheme_parse(const char *text, struct sim_scheme *out, char *why, size_t len)
{
	struct sim_scheme s = {.in_engine = true, .engine = {.size = sizeof(s.engine)}};
	size_t base = strcspn(text, ":");
	enum plan_scheme scheme;

	if (is_paper(text, base, &scheme))
		return parse_paper(scheme, text, out, why, len);
	if (!is_known(text, base))
		return say_unknown(why, len);
	if (sdr_scheme_parse(text, &s.engine, why, len) < 0)
		return -1;
	(void)sdr_scheme_name(&s.engine, s.name, sizeof(s.name));
	s.in_model = model_of(&s.engine, &s.params.scheme);
	*out = s;
	return 0;
}

bool scheme_chooses(const struct sim_scheme *s)
{
	return s->engine.policy != SDR_POLICY_NONE;
}

bool scheme_predictable(const struct sim_scheme *s)
{
	return s->in_model && !s->paper &&
	       !(s->params.scheme == PLAN_SR && s->engine.rto_multiple == 0);
}

/* ---- the model's parameters ----------------------------------------------------- */

static uint64_t units_of(uint64_t bytes, const struct plan_job *job)
{
	return u64_div_up(bytes, job->chunk_bytes);
}

/* In units: all of the message, as much as a round trip holds, or so many packets. */
static uint64_t span_of(uint32_t span, const struct plan_link *link, const struct plan_job *job)
{
	uint64_t all = units_of(job->bytes, job);
	double rtt = link->rtt_s * link->bw_bps / (8.0 * job->chunk_bytes);

	if (span == SDR_SPAN_ALL)
		return all;
	if (span == SDR_SPAN_RTT)
		return u64_max(u64_min(all, (uint64_t)llround(rtt)), 1);
	return u64_min(all, units_of((uint64_t)span * job->packet_bytes, job));
}

static void code_params(const struct sdr_scheme *e, const struct plan_link *link,
			const struct plan_job *job, struct plan_params *out)
{
	out->rto_rtts = CODE_RTO;
	out->beta_rtts = CODE_BETA;
	out->k = e->k;
	out->m = e->m;
	out->span = span_of(e->span, link, job);
	out->copies = e->copies;
	/* Parity of blocks that are not there is none. */
	out->depth = (uint32_t)u64_min(e->depth, u64_div_up(out->span, e->k));
}

static int make_table(const struct sim_scheme *s, const struct plan_link *link,
		      const struct plan_job *job, struct plan_table *out)
{
	return plan_table_make(link, true, job->packet_bytes, s->engine.policy == SDR_POLICY_TABLE,
			       out);
}

/* What auto takes of a link that it is told of: the scheme that says the same in the model. */
static void auto_params(const struct sim_scheme *s, const struct plan_link *link,
			const struct plan_job *job, struct plan_params *out)
{
	struct plan_table table;
	struct plan_table_row row;

	plan_defaults(link, job, PLAN_SR_NACK, out);
	out->lambda = HYBRID_LAMBDA;
	if (make_table(s, link, job, &table))
		return;
	plan_table_fit(&table, u64_div_up(job->bytes, job->packet_bytes), &row);
	if (!row.coded && row.copies < 2)
		return;
	out->scheme = row.xor_code ? PLAN_EC_XOR : row.coded && !row.fresh ? PLAN_EC : PLAN_HYBRID;
	out->rto_rtts = CODE_RTO;
	out->beta_rtts = CODE_BETA;
	out->copies = row.copies ? row.copies : 1;
	/* Without parity, and late resends with copies: a block that lost anything has failed. */
	out->k = row.coded ? row.k : HYBRID_K;
	out->m = row.coded ? row.m : 0;
	out->span = row.coded ? units_of(row.span * job->packet_bytes, job)
			      : span_of(SDR_SPAN_RTT, link, job);
	out->span = u64_min(out->span, units_of(job->bytes, job));
	out->depth = (uint32_t)u64_min(row.coded && row.depth ? row.depth : 1,
				       u64_div_up(out->span, out->k));
}

char *scheme_why(const struct sim_scheme *s, const struct plan_link *link,
		 const struct plan_job *job, char buf[SCHEME_WHY])
{
	struct plan_table table;

	*buf = '\0';
	if (scheme_chooses(s) && make_table(s, link, job, &table) == 0)
		(void)plan_table_say(&table, u64_div_up(job->bytes, job->packet_bytes), buf,
				     SCHEME_WHY);
	return buf;
}

void scheme_params(const struct sim_scheme *s, const struct plan_link *link,
		   const struct plan_job *job, struct plan_params *out)
{
	if (s->paper) {
		*out = s->params;
		return;
	}
	if (scheme_chooses(s)) {
		auto_params(s, link, job, out);
		return;
	}
	/* Not by the hybrid's rule: all that it chooses is given. */
	plan_defaults(link, job, s->params.scheme == PLAN_HYBRID ? PLAN_EC : s->params.scheme, out);
	out->scheme = s->params.scheme;
	out->lambda = HYBRID_LAMBDA;
	if (s->engine.code != SDR_CODE_NONE) {
		code_params(&s->engine, link, job, out);
	} else if (s->params.scheme == PLAN_SR && s->engine.rto_multiple > 0) {
		/* Of sr-nack and gbn it is a backup only. */
		out->rto_rtts = s->engine.rto_multiple;
	}
}

/* ---- and their names ------------------------------------------------------------ */

static double clamp(double v, double min, double max)
{
	return fmin(fmax(v, min), max);
}

static uint32_t copies_of(const struct plan_params *p)
{
	return (uint32_t)clamp(p->copies, 1, ENGINE_COPIES_MAX);
}

static void name_code(struct sdr_scheme *e, const struct plan_params *p,
		      const struct plan_link *link, const struct plan_job *job)
{
	uint64_t packets = p->span * (job->chunk_bytes / job->packet_bytes);

	e->code = p->scheme == PLAN_EC_XOR ? SDR_CODE_XOR : SDR_CODE_RS;
	e->k = p->k;
	e->m = (uint32_t)u64_min(p->m, u64_sub_floor(ENGINE_SYMBOLS_MAX, p->k));
	e->depth = (uint32_t)clamp(p->depth, 1, ENGINE_DEPTH_MAX);
	if (p->scheme != PLAN_HYBRID)
		return;
	e->hybrid = e->fresh = 1;
	e->copies = copies_of(p);
	if (p->span == span_of(SDR_SPAN_RTT, link, job))
		e->span = SDR_SPAN_RTT;
	else if (p->span < span_of(SDR_SPAN_ALL, link, job) && packets < SDR_SPAN_RTT)
		e->span = (uint32_t)packets;
}

void scheme_of_params(const struct plan_params *p, const struct plan_link *link,
		      const struct plan_job *job, char name[SIM_SCHEME_NAME])
{
	struct sdr_scheme e = {.size = sizeof(e), .nack = p->scheme != PLAN_SR};

	if (p->scheme == PLAN_SR)
		e.rto_multiple = clamp(p->rto_rtts, ENGINE_RTO_MIN, ENGINE_RTO_MAX);
	else if (p->scheme == PLAN_GBN)
		e.go_back_n = 1;
	else if (p->scheme != PLAN_SR_NACK && p->m > 0)
		name_code(&e, p, link, job);
	else if (p->scheme == PLAN_HYBRID)
		e.copies = copies_of(p); /* a hybrid without parity */
	if (sdr_scheme_name(&e, name, SIM_SCHEME_NAME) < 0)
		snprintf(name, SIM_SCHEME_NAME, "%s", plan_scheme_name(p->scheme));
}

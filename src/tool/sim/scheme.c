// SPDX-License-Identifier: Apache-2.0
/*
 * See scheme.h.
 */
#include "tool/sim/scheme.h"

#include "base/units.h"

#include <sdr/conn.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of codes, as sdr plan ranks them: failed blocks are named at once and go again by NACK. */
#define CODE_RTO 1
#define CODE_BETA 0

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

static int known_names(char *buf, size_t len)
{
	size_t used = 0;

	for (const char *const *name = sdr_scheme_names(); *name && used < len; name++)
		used += (size_t)snprintf(buf + used, len - used, "%s, ", *name);
	if (used < len)
		snprintf(buf + used, len - used, "ec:K,M, ec-xor:K,M, hybrid");
	return -1;
}

static bool is_engine(const char *name, size_t len)
{
	for (const char *const *known = sdr_scheme_names(); *known; known++) {
		if (strlen(*known) == len && strncmp(*known, name, len) == 0)
			return true;
	}
	return false;
}

static int model_scheme(const char *name, size_t len)
{
	for (int s = 0; s < PLAN_SCHEMES; s++) {
		const char *known = plan_scheme_name((enum plan_scheme)s);

		if (strlen(known) == len && strncmp(known, name, len) == 0)
			return s;
	}
	return -1;
}

static bool is_code(enum plan_scheme scheme)
{
	return scheme == PLAN_EC || scheme == PLAN_EC_XOR || scheme == PLAN_HYBRID;
}

/* NAME=NUMBER; -1: no such parameter or value. */
static int take_named(struct sim_scheme *s, const char *text)
{
	struct plan_params *p = &s->params;
	const char *value = strchr(text, '=') + 1;
	uint64_t n = 0;
	double real;
	char *end;
	bool whole = units_parse_uint(value, 0, UINT64_C(1) << 32, &n) == 0;

	real = strtod(value, &end);
	if (!isdigit((unsigned char)*value) || *end != '\0')
		return -1;
	if (strncmp(text, "depth=", 6) == 0 && whole && n >= 1 && n <= 1u << 20) {
		p->depth = (uint32_t)n;
		s->given |= SCHEME_HAS_DEPTH;
	} else if (strncmp(text, "rto=", 4) == 0 && p->scheme != PLAN_HYBRID) {
		p->rto_rtts = real;
		s->given |= SCHEME_HAS_RTO;
	} else if (strncmp(text, "beta=", 5) == 0 && p->scheme != PLAN_HYBRID) {
		p->beta_rtts = real;
		s->given |= SCHEME_HAS_BETA;
	} else if (strncmp(text, "span=", 5) == 0 && whole && n && p->scheme == PLAN_HYBRID) {
		p->span = n;
		s->given |= SCHEME_HAS_SPAN;
	} else if (strncmp(text, "copies=", 7) == 0 && whole && n >= 1 && n <= 64 &&
		   p->scheme == PLAN_HYBRID) {
		p->copies = (uint32_t)n;
		s->given |= SCHEME_HAS_COPIES;
	} else {
		return -1;
	}
	return 0;
}

/* K,M and named parameters. */
static int take_code(struct sim_scheme *s, char *params, char *why, size_t len)
{
	uint64_t code[2];
	uint32_t numbers = 0;
	char *save = NULL;

	for (char *word = strtok_r(params, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (strchr(word, '=') ? take_named(s, word) == 0
				      : numbers < 2 && units_parse_uint(word, 0, PLAN_CODE_MAX,
									&code[numbers++]) == 0)
			continue;
		snprintf(why, len,
			 "'%s' is no parameter of %s: write ec:32,8 or hybrid:128,5,depth=4 "
			 "(K + M at most %u)",
			 word, plan_scheme_name(s->params.scheme), PLAN_CODE_MAX);
		return -1;
	}
	if (numbers == 2) {
		s->params.k = (uint32_t)code[0];
		s->params.m = (uint32_t)code[1];
		s->given |= SCHEME_HAS_CODE;
	}
	if (numbers != 2 && (numbers == 1 || s->params.scheme != PLAN_HYBRID)) {
		snprintf(why, len,
			 "needs K and M, data and parity packets of a block: write %s:32,8",
			 plan_scheme_name(s->params.scheme));
		return -1;
	}
	return 0;
}

/*
 * The engine's own parameters, as far as the model knows what they mean: a timer of so many
 * round trips. Of sr-nack and gbn it is a backup only. False: there is more to them.
 */
static bool model_of_engine(struct sim_scheme *s, const char *params)
{
	char *end;
	double rto;

	if (*params == '\0' || strcmp(params, "rto=dyn") == 0)
		return true;
	if (strncmp(params, "rto=", 4) != 0 || !isdigit((unsigned char)params[4]))
		return false;
	rto = strtod(params + 4, &end);
	if (*end != '\0')
		return false;
	if (s->params.scheme == PLAN_SR) {
		s->given |= SCHEME_HAS_RTO;
		s->params.rto_rtts = rto;
	}
	return true;
}

int scheme_parse(const char *text, struct sim_scheme *out, char *why, size_t len)
{
	struct sim_scheme s = {.params.scheme = PLAN_SR};
	char params[SIM_SCHEME_NAME] = "", names[256];
	size_t base = strcspn(text, ":");
	int model = model_scheme(text, base);

	if (strlen(text) >= sizeof(s.name)) {
		snprintf(why, len, "longer than %zu characters", sizeof(s.name) - 1);
		return -1;
	}
	strcpy(s.name, text);
	if (text[base] == ':')
		strcpy(params, text + base + 1);
	s.in_engine = is_engine(text, base);
	s.in_model = model >= 0;
	if (!s.in_engine && !s.in_model) {
		known_names(names, sizeof(names));
		snprintf(why, len, "unknown scheme: choose %s", names);
		return -1;
	}
	if (s.in_model)
		s.params.scheme = (enum plan_scheme)model;
	if (s.in_model && is_code(s.params.scheme) && take_code(&s, params, why, len))
		return -1;
	if (s.in_model && !is_code(s.params.scheme))
		s.in_model = model_of_engine(&s, params);
	*out = s;
	return 0;
}

bool scheme_predictable(const struct sim_scheme *s)
{
	return s->in_model && !(s->params.scheme == PLAN_SR && !(s->given & SCHEME_HAS_RTO));
}

void scheme_params(const struct sim_scheme *s, const struct plan_link *link,
		   const struct plan_job *job, struct plan_params *out)
{
	const struct plan_params *p = &s->params;

	plan_defaults(link, job, p->scheme, out);
	if (p->scheme == PLAN_EC || p->scheme == PLAN_EC_XOR) {
		out->rto_rtts = CODE_RTO;
		out->beta_rtts = CODE_BETA;
	}
	if (s->given & SCHEME_HAS_CODE) {
		out->k = p->k;
		out->m = p->m;
	}
	if (s->given & SCHEME_HAS_DEPTH)
		out->depth = p->depth;
	if (s->given & SCHEME_HAS_RTO)
		out->rto_rtts = p->rto_rtts;
	if (s->given & SCHEME_HAS_BETA)
		out->beta_rtts = p->beta_rtts;
	if (s->given & SCHEME_HAS_SPAN)
		out->span = p->span;
	if (s->given & SCHEME_HAS_COPIES)
		out->copies = p->copies;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each kind of scheme takes, and parameters to names; see scheme.h. Nothing here knows what
 * the parameters do.
 */
#include "rel/scheme_priv.h"

#include <errno.h>
#include <string.h>

#define TAKES_PLAIN (SCHEME_BIT(KEY_COPIES) | SCHEME_BIT(KEY_RTO))
#define TAKES_CODE                                                                     \
	(TAKES_PLAIN | SCHEME_BIT(KEY_K) | SCHEME_BIT(KEY_M) | SCHEME_BIT(KEY_DEPTH) | \
	 SCHEME_BIT(KEY_SPAN) | SCHEME_BIT(KEY_REPAIR))

const struct scheme_key_facts scheme_keys[SCHEME_KEYS] = {
	[KEY_K] = {"k", 1, REL_CODE_SYMBOLS_MAX - 1, "k=1..254"},
	[KEY_M] = {"m", 1, REL_CODE_SYMBOLS_MAX - 1, "m=1..254"},
	[KEY_DEPTH] = {"depth", 1, REL_DEPTH_MAX, "depth=1..65536"},
	[KEY_SPAN] = {"span", 1, REL_SPAN_RTT - 1, "span=all|rtt|PACKETS"},
	[KEY_REPAIR] = {"repair", 0, 0, "repair=parity|missing"},
	[KEY_COPIES] = {"copies", 1, REL_COPIES_MAX, "copies=1..16"},
	[KEY_RTO] = {"rto", 0, 0, "rto=dyn|1..100"},
	[KEY_POLICY] = {"policy", 0, 0, "policy=model|table"},
};

const struct scheme_kind scheme_kinds[SCHEME_KINDS] = {
	[GBN] = {"gbn", TAKES_PLAIN, {.nack = true, .repair = REL_REPAIR_GBN, .copies = 1}},
	[SR] = {"sr", TAKES_PLAIN, {.copies = 1}},
	[SR_NACK] = {"sr-nack", TAKES_PLAIN, {.nack = true, .copies = 1}},
	[EC_XOR] = {"ec-xor",
		    TAKES_CODE,
		    {.nack = true, .code = REL_CODE_XOR, .depth = 1, .copies = 1}},
	[EC] = {"ec", TAKES_CODE, {.nack = true, .code = REL_CODE_RS, .depth = 1, .copies = 1}},
	[HYBRID] = {"hybrid",
		    TAKES_CODE,
		    {.nack = true,
		     .code = REL_CODE_RS,
		     .depth = 64,
		     .span = REL_SPAN_RTT,
		     .copies = 4,
		     .fresh = true,
		     .hybrid = true}},
	[AUTO] = {"auto",
		  SCHEME_BIT(KEY_RTO) | SCHEME_BIT(KEY_POLICY),
		  {.nack = true, .copies = 1, .policy = REL_POLICY_MODEL}},
};

const char *const rel_scheme_words[] = {"gbn", "sr",	 "sr-nack", "ec-xor",
					"ec",  "hybrid", "auto",    NULL};

static enum scheme_kind_number kind_of(const struct rel_params *p)
{
	if (p->policy != REL_POLICY_NONE)
		return AUTO;
	if (p->code == REL_CODE_NONE)
		return p->repair == REL_REPAIR_GBN ? GBN : p->nack ? SR_NACK : SR;
	return p->code == REL_CODE_XOR ? EC_XOR : p->hybrid ? HYBRID : EC;
}

uint32_t *scheme_number_of(struct rel_params *p, enum scheme_key key)
{
	switch (key) {
	case KEY_K:
		return &p->k;
	case KEY_M:
		return &p->m;
	case KEY_DEPTH:
		return &p->depth;
	case KEY_SPAN:
		return &p->span;
	case KEY_COPIES:
		return &p->copies;
	default:
		return NULL;
	}
}

/* ---- text that grows as far as it fits ---- */

void scheme_add_part(struct scheme_text *t, const char *part, size_t len)
{
	for (; t->buf && len && t->at + 1 < t->len; len--)
		t->buf[t->at++] = *part++;
	if (t->buf && t->len)
		t->buf[t->at] = '\0';
}

void scheme_add(struct scheme_text *t, const char *words)
{
	scheme_add_part(t, words, strlen(words));
}

void scheme_add_number(struct scheme_text *t, uint32_t n)
{
	char digits[12];
	size_t at = sizeof(digits);

	do
		digits[--at] = (char)('0' + n % 10);
	while (n /= 10);
	scheme_add_part(t, digits + at, sizeof(digits) - at);
}

/* As short as three decimals can have it. */
static void add_multiple(struct scheme_text *t, double multiple)
{
	uint32_t milli = (uint32_t)(multiple * SCHEME_MILLI + 0.5), part = milli % 1000;
	char decimals[3];
	size_t n = 0;

	scheme_add_number(t, milli / 1000);
	for (; part; part = part * 10 % 1000)
		decimals[n++] = (char)('0' + part / 100);
	if (n)
		scheme_add(t, ".");
	scheme_add_part(t, decimals, n);
}

/* ---- parameters that did not come from text ---- */

int rel_scheme_complete(struct rel_params *params)
{
	const struct scheme_kind *kind = &scheme_kinds[kind_of(params)];
	struct rel_params p = *params;

	p.copies = p.copies ? p.copies : 1;
	p.depth = p.depth ? p.depth : 1;
	if ((unsigned int)p.code > REL_CODE_RS || (unsigned int)p.policy > REL_POLICY_TABLE ||
	    (unsigned int)p.repair > REL_REPAIR_GBN || p.depth > REL_DEPTH_MAX ||
	    p.copies > REL_COPIES_MAX)
		return -EINVAL;
	if (p.rto_multiple != 0 &&
	    !(p.rto_multiple >= REL_RTO_MULTIPLE_MIN && p.rto_multiple <= REL_RTO_MULTIPLE_MAX))
		return -EINVAL;
	p.rto_multiple = (double)(uint32_t)(p.rto_multiple * SCHEME_MILLI + 0.5) / SCHEME_MILLI;
	if (!(kind->takes & SCHEME_BIT(KEY_K))) {
		if (p.hybrid && !p.policy)
			return -EINVAL;
		*params = kind->is;
		params->policy = p.policy;
		params->rto_multiple = p.rto_multiple;
		params->copies = p.policy ? 1 : p.copies;
		return 0;
	}
	if (p.repair == REL_REPAIR_GBN || !p.k || !p.m || p.k > REL_CODE_SYMBOLS_MAX ||
	    p.m > REL_CODE_SYMBOLS_MAX - p.k)
		return -EINVAL;
	if (p.code == REL_CODE_XOR && (p.fresh || p.hybrid || p.m > p.k))
		return -EINVAL;
	p.nack = true;
	*params = p;
	return 0;
}

/* ---- printing ---- */

/* Whether the name has to say it. */
static bool is_said(const struct rel_params *p, const struct scheme_kind *kind, enum scheme_key key)
{
	struct rel_params given = *p, is = kind->is;
	const uint32_t *number = scheme_number_of(&given, key);

	if (!(kind->takes & SCHEME_BIT(key)))
		return false;
	switch (key) {
	case KEY_REPAIR:
		return p->fresh != kind->is.fresh;
	case KEY_RTO:
		return p->rto_multiple > 0;
	case KEY_POLICY:
		return p->policy != kind->is.policy;
	case KEY_SPAN:
		return p->span != kind->is.span;
	default:
		/* A zero is a one: copies and depth. */
		return (*number ? *number : 1) != *scheme_number_of(&is, key);
	}
}

static void add_value(struct scheme_text *t, const struct rel_params *p, enum scheme_key key)
{
	struct rel_params given = *p;
	uint32_t *number = scheme_number_of(&given, key);

	if (key == KEY_RTO)
		add_multiple(t, p->rto_multiple);
	else if (key == KEY_REPAIR)
		scheme_add(t, p->fresh ? "parity" : "missing");
	else if (key == KEY_POLICY)
		scheme_add(t, "table");
	else if (key == KEY_SPAN && *number == REL_SPAN_ALL)
		scheme_add(t, "all");
	else if (key == KEY_SPAN && *number == REL_SPAN_RTT)
		scheme_add(t, "rtt");
	else
		scheme_add_number(t, *number ? *number : 1);
}

char *rel_scheme_name(const struct rel_params *params, char *buf, size_t len)
{
	const struct scheme_kind *kind = &scheme_kinds[kind_of(params)];
	struct scheme_text t = {buf, len, 0};
	const char *between = ":";

	scheme_add(&t, kind->name);
	for (uint32_t key = 0; key < SCHEME_KEYS; key++) {
		if (!is_said(params, kind, (enum scheme_key)key))
			continue;
		scheme_add(&t, between);
		/* K,M as the paper writes a code. */
		if (key > KEY_M || kind == &scheme_kinds[HYBRID]) {
			scheme_add(&t, scheme_keys[key].name);
			scheme_add(&t, "=");
		}
		add_value(&t, params, (enum scheme_key)key);
		between = ",";
	}
	return buf;
}

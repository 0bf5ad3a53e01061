/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheme names to parameters and back; see scheme.h. One table of what each kind takes serves
 * both ways. Nothing here knows what the parameters do.
 */
#include "rel/scheme.h"

#include <errno.h>
#include <string.h>

#define MILLI 1000.0

/* In the order in which a name has them. */
enum key { KEY_K, KEY_M, KEY_DEPTH, KEY_SPAN, KEY_REPAIR, KEY_COPIES, KEY_RTO, KEY_POLICY, KEYS };

#define BIT(key) (1u << (key))
#define TAKES_PLAIN (BIT(KEY_COPIES) | BIT(KEY_RTO))
#define TAKES_CODE \
	(TAKES_PLAIN | BIT(KEY_K) | BIT(KEY_M) | BIT(KEY_DEPTH) | BIT(KEY_SPAN) | BIT(KEY_REPAIR))

/* `min` to `max` where the value is a number; others say what they take. */
static const struct {
	const char *name;
	uint32_t min, max;
	const char *takes;
} keys[KEYS] = {
	[KEY_K] = {"k", 1, REL_CODE_SYMBOLS_MAX - 1, "k=1..254"},
	[KEY_M] = {"m", 1, REL_CODE_SYMBOLS_MAX - 1, "m=1..254"},
	[KEY_DEPTH] = {"depth", 1, REL_DEPTH_MAX, "depth=1..65536"},
	[KEY_SPAN] = {"span", 1, REL_SPAN_RTT - 1, "span=all|rtt|PACKETS"},
	[KEY_REPAIR] = {"repair", 0, 0, "repair=parity|missing"},
	[KEY_COPIES] = {"copies", 1, REL_COPIES_MAX, "copies=1..16"},
	[KEY_RTO] = {"rto", 0, 0, "rto=dyn|1..100"},
	[KEY_POLICY] = {"policy", 0, 0, "policy=model|table"},
};

enum kind_number { GBN, SR, SR_NACK, EC_XOR, EC, HYBRID, AUTO, KINDS };

static const struct kind {
	const char *name;
	uint32_t takes;
	struct rel_params is; /* with nothing said */
} kinds[KINDS] = {
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
		  BIT(KEY_RTO) | BIT(KEY_POLICY),
		  {.nack = true, .copies = 1, .policy = REL_POLICY_MODEL}},
};

const char *const rel_scheme_words[] = {"gbn", "sr",	 "sr-nack", "ec-xor",
					"ec",  "hybrid", "auto",    NULL};

static enum kind_number kind_of(const struct rel_params *p)
{
	if (p->policy != REL_POLICY_NONE)
		return AUTO;
	if (p->code == REL_CODE_NONE)
		return p->repair == REL_REPAIR_GBN ? GBN : p->nack ? SR_NACK : SR;
	return p->code == REL_CODE_XOR ? EC_XOR : p->hybrid ? HYBRID : EC;
}

/* NULL: not one number. */
static uint32_t *number_of(struct rel_params *p, enum key key)
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

struct text {
	char *buf; /* NULL: nobody wants it */
	size_t len, at;
};

static void add_part(struct text *t, const char *part, size_t len)
{
	for (; t->buf && len && t->at + 1 < t->len; len--)
		t->buf[t->at++] = *part++;
	if (t->buf && t->len)
		t->buf[t->at] = '\0';
}

static void add(struct text *t, const char *words)
{
	add_part(t, words, strlen(words));
}

static void add_number(struct text *t, uint32_t n)
{
	char digits[12];
	size_t at = sizeof(digits);

	do
		digits[--at] = (char)('0' + n % 10);
	while (n /= 10);
	add_part(t, digits + at, sizeof(digits) - at);
}

/* As short as three decimals can have it. */
static void add_multiple(struct text *t, double multiple)
{
	uint32_t milli = (uint32_t)(multiple * MILLI + 0.5), part = milli % 1000;
	char decimals[3];
	size_t n = 0;

	add_number(t, milli / 1000);
	for (; part; part = part * 10 % 1000)
		decimals[n++] = (char)('0' + part / 100);
	if (n)
		add(t, ".");
	add_part(t, decimals, n);
}

/* ---- parsing ---- */

struct part {
	const char *at;
	size_t len;
};

struct parser {
	const struct kind *kind;
	struct rel_params p;
	uint32_t given;	  /* bits of keys */
	uint32_t numbers; /* without names */
	struct text why;
};

static bool is_word(const struct part *part, const char *word)
{
	return strlen(word) == part->len && memcmp(part->at, word, part->len) == 0;
}

/* A person's line, even if what was given is not one. */
#define QUOTE_MAX 40u
static void add_quoted(struct text *t, const struct part *part)
{
	add(t, "'");
	for (size_t i = 0; i < part->len && i < QUOTE_MAX; i++)
		add_part(t, (unsigned char)part->at[i] < ' ' ? "?" : part->at + i, 1);
	add(t, part->len > QUOTE_MAX ? "...'" : "'");
}

static void add_takes(struct text *t, uint32_t takes)
{
	const char *between = "";

	for (uint32_t key = 0; key < KEYS; key++) {
		if (!(takes & BIT(key)))
			continue;
		add(t, between);
		add(t, keys[key].takes);
		between = ", ";
	}
}

static int wrong_value(struct parser *s, enum key key, const struct part *value)
{
	add(&s->why, keys[key].name);
	add(&s->why, "=");
	add_quoted(&s->why, value);
	add(&s->why, " of ");
	add(&s->why, s->kind->name);
	add(&s->why, ": choose ");
	add(&s->why, keys[key].takes);
	if (key == KEY_RTO)
		add(&s->why, " round trips");
	return -EINVAL;
}

/* Digits only. */
static bool read_number(const struct part *text, uint32_t *out)
{
	uint64_t v = 0;

	for (size_t i = 0; i < text->len; i++) {
		if (text->at[i] < '0' || text->at[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(text->at[i] - '0');
		if (v > UINT32_MAX)
			return false;
	}
	*out = (uint32_t)v;
	return text->len > 0;
}

/* Digits and one point between them only: no locale, hex or exponent. */
static bool read_multiple(const struct part *text, double *out)
{
	double value = 0, scale = 1;
	bool point = false;

	for (size_t i = 0; i < text->len; i++) {
		char c = text->at[i];

		if (c == '.' && !point && i > 0 && i + 1 < text->len) {
			point = true;
			continue;
		}
		if (c < '0' || c > '9')
			return false;
		value = value * 10 + (c - '0');
		if (point)
			scale *= 10;
	}
	value /= scale;
	if (!(value >= REL_RTO_MULTIPLE_MIN && value <= REL_RTO_MULTIPLE_MAX))
		return false;
	*out = (double)(uint32_t)(value * MILLI + 0.5) / MILLI;
	return true;
}

static int take_number(struct parser *s, enum key key, const struct part *value)
{
	uint32_t n;

	if (!read_number(value, &n) || n < keys[key].min || n > keys[key].max)
		return wrong_value(s, key, value);
	*number_of(&s->p, key) = n;
	return 0;
}

static int take_repair(struct parser *s, const struct part *value)
{
	if (is_word(value, "parity") && s->kind == &kinds[EC_XOR]) {
		add(&s->why, "repair=parity of ec-xor: its code has no further parity: choose "
			     "repair=missing, or ec:K,M");
		return -EINVAL;
	}
	if (!is_word(value, "parity") && !is_word(value, "missing"))
		return wrong_value(s, KEY_REPAIR, value);
	s->p.fresh = is_word(value, "parity");
	return 0;
}

static int take_value(struct parser *s, enum key key, const struct part *value)
{
	switch (key) {
	case KEY_SPAN:
		if (is_word(value, "all") || is_word(value, "rtt")) {
			s->p.span = is_word(value, "all") ? REL_SPAN_ALL : REL_SPAN_RTT;
			return 0;
		}
		return take_number(s, key, value);
	case KEY_REPAIR:
		return take_repair(s, value);
	case KEY_RTO:
		if (is_word(value, "dyn")) {
			s->p.rto_multiple = 0;
			return 0;
		}
		return read_multiple(value, &s->p.rto_multiple) ? 0 : wrong_value(s, key, value);
	case KEY_POLICY:
		if (!is_word(value, "model") && !is_word(value, "table"))
			return wrong_value(s, key, value);
		s->p.policy = is_word(value, "model") ? REL_POLICY_MODEL : REL_POLICY_TABLE;
		return 0;
	default:
		return take_number(s, key, value);
	}
}

static int no_parameter(struct parser *s, const struct part *part)
{
	add_quoted(&s->why, part);
	add(&s->why, part->len ? " is no parameter of " : " stands where a parameter should, of ");
	add(&s->why, s->kind->name);
	add(&s->why, ": choose ");
	add_takes(&s->why, s->kind->takes);
	return -EINVAL;
}

static int take_key(struct parser *s, enum key key, const struct part *value)
{
	if (s->given & BIT(key)) {
		add(&s->why, keys[key].name);
		add(&s->why, " is given twice, ");
		add_quoted(&s->why, value);
		add(&s->why, " the second time: leave one out");
		return -EINVAL;
	}
	s->given |= BIT(key);
	return take_value(s, key, value);
}

/* NAME=VALUE, or K and then M. */
static int take_part(struct parser *s, const struct part *part)
{
	const char *equals = part->len ? memchr(part->at, '=', part->len) : NULL;
	struct part name = {part->at, equals ? (size_t)(equals - part->at) : 0};
	struct part value = {name.at + name.len + 1, part->len - name.len - 1};
	uint32_t number;

	if (!equals && s->kind->takes & BIT(KEY_K) && s->numbers < 2 && part->len &&
	    part->at[0] >= '0' && part->at[0] <= '9')
		return take_key(s, s->numbers++ ? KEY_M : KEY_K, part);
	for (uint32_t key = 0; equals && key < KEYS; key++) {
		if (s->kind->takes & BIT(key) && is_word(&name, keys[key].name))
			return take_key(s, (enum key)key, &value);
	}
	if (!equals && s->numbers < 2 && read_number(part, &number)) {
		add(&s->why, s->kind->name);
		add(&s->why, " has no code, so it takes no K and M (");
		add_quoted(&s->why, part);
		add(&s->why, "): choose ec:K,M, ec-xor:K,M or hybrid:k=K,m=M");
		return -EINVAL;
	}
	return no_parameter(s, equals ? &name : part);
}

/* What the parts together must be. */
static int check_code(struct parser *s)
{
	bool hybrid = s->p.hybrid;

	if (!(s->kind->takes & BIT(KEY_K)))
		return 0;
	if ((s->given & (BIT(KEY_K) | BIT(KEY_M))) != (BIT(KEY_K) | BIT(KEY_M))) {
		add(&s->why, s->kind->name);
		add(&s->why, " needs K and M, data and parity packets of a block: write ");
		add(&s->why, hybrid ? "hybrid:k=128,m=10" : s->kind->name);
		add(&s->why, hybrid ? ", or auto to have them chosen" : ":32,8");
		return -EINVAL;
	}
	if (s->p.k + s->p.m > REL_CODE_SYMBOLS_MAX) {
		add(&s->why, "k + m = ");
		add_number(&s->why, s->p.k + s->p.m);
		add(&s->why, " of ");
		add(&s->why, s->kind->name);
		add(&s->why, ": a block has at most 255 packets: choose fewer");
		return -EINVAL;
	}
	if (s->p.code == REL_CODE_XOR && s->p.m > s->p.k) {
		add(&s->why, "m = ");
		add_number(&s->why, s->p.m);
		add(&s->why, " of ec-xor is more than k = ");
		add_number(&s->why, s->p.k);
		add(&s->why, ": each parity packet covers at least one of data: choose at most k");
		return -EINVAL;
	}
	return 0;
}

static const struct kind *find_kind(const struct part *name)
{
	for (size_t i = 0; i < KINDS; i++) {
		if (is_word(name, kinds[i].name))
			return &kinds[i];
	}
	return NULL;
}

static int parse_parts(struct parser *s, const char *text)
{
	for (;; text++) {
		struct part part = {text, strcspn(text, ",")};

		if (take_part(s, &part) < 0)
			return -EINVAL;
		text += part.len;
		if (!*text)
			return check_code(s);
	}
}

int rel_scheme_parse(const char *text, struct rel_params *out, char *why, size_t len)
{
	struct parser s = {.why = {why, len, 0}};
	struct part name = {text, text ? strcspn(text, ":") : 0};
	int err;

	add(&s.why, "");
	s.kind = text ? find_kind(&name) : NULL;
	if (!s.kind) {
		add_quoted(&s.why, &name);
		add(&s.why, " is no scheme: choose " REL_SCHEME_NAMES);
		return -EINVAL;
	}
	s.p = s.kind->is;
	err = text[name.len] ? parse_parts(&s, text + name.len + 1) : check_code(&s);
	if (!err)
		*out = s.p;
	return err;
}

/* ---- parameters that did not come from text ---- */

int rel_scheme_complete(struct rel_params *params)
{
	const struct kind *kind = &kinds[kind_of(params)];
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
	p.rto_multiple = (double)(uint32_t)(p.rto_multiple * MILLI + 0.5) / MILLI;
	if (!(kind->takes & BIT(KEY_K))) {
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
static bool is_said(const struct rel_params *p, const struct kind *kind, enum key key)
{
	struct rel_params given = *p, is = kind->is;
	const uint32_t *number = number_of(&given, key);

	if (!(kind->takes & BIT(key)))
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
		return (*number ? *number : 1) != *number_of(&is, key);
	}
}

static void add_value(struct text *t, const struct rel_params *p, enum key key)
{
	struct rel_params given = *p;
	uint32_t *number = number_of(&given, key);

	if (key == KEY_RTO)
		add_multiple(t, p->rto_multiple);
	else if (key == KEY_REPAIR)
		add(t, p->fresh ? "parity" : "missing");
	else if (key == KEY_POLICY)
		add(t, "table");
	else if (key == KEY_SPAN && *number == REL_SPAN_ALL)
		add(t, "all");
	else if (key == KEY_SPAN && *number == REL_SPAN_RTT)
		add(t, "rtt");
	else
		add_number(t, *number ? *number : 1);
}

char *rel_scheme_name(const struct rel_params *params, char *buf, size_t len)
{
	const struct kind *kind = &kinds[kind_of(params)];
	struct text t = {buf, len, 0};
	const char *between = ":";

	add(&t, kind->name);
	for (uint32_t key = 0; key < KEYS; key++) {
		if (!is_said(params, kind, (enum key)key))
			continue;
		add(&t, between);
		/* K,M as the paper writes a code. */
		if (key > KEY_M || kind == &kinds[HYBRID]) {
			add(&t, keys[key].name);
			add(&t, "=");
		}
		add_value(&t, params, (enum key)key);
		between = ",";
	}
	return buf;
}

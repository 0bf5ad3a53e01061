/* SPDX-License-Identifier: Apache-2.0 */
/* Scheme names to parameters; see scheme.h. Nothing here knows what the parameters do. */
#include "rel/scheme_priv.h"

#include <errno.h>
#include <string.h>

struct part {
	const char *at;
	size_t len;
};

struct parser {
	const struct scheme_kind *kind;
	struct rel_params p;
	uint32_t given;	  /* bits of keys */
	uint32_t numbers; /* without names */
	struct scheme_text why;
};

static bool is_word(const struct part *part, const char *word)
{
	return strlen(word) == part->len && memcmp(part->at, word, part->len) == 0;
}

/* A person's line, even if what was given is not one. */
#define QUOTE_MAX 40u
static void add_quoted(struct scheme_text *t, const struct part *part)
{
	scheme_add(t, "'");
	for (size_t i = 0; i < part->len && i < QUOTE_MAX; i++)
		scheme_add_part(t, (unsigned char)part->at[i] < ' ' ? "?" : part->at + i, 1);
	scheme_add(t, part->len > QUOTE_MAX ? "...'" : "'");
}

static void add_takes(struct scheme_text *t, uint32_t takes)
{
	const char *between = "";

	for (uint32_t key = 0; key < SCHEME_KEYS; key++) {
		if (!(takes & SCHEME_BIT(key)))
			continue;
		scheme_add(t, between);
		scheme_add(t, scheme_keys[key].takes);
		between = ", ";
	}
}

static int wrong_value(struct parser *s, enum scheme_key key, const struct part *value)
{
	scheme_add(&s->why, scheme_keys[key].name);
	scheme_add(&s->why, "=");
	add_quoted(&s->why, value);
	scheme_add(&s->why, " of ");
	scheme_add(&s->why, s->kind->name);
	scheme_add(&s->why, ": choose ");
	scheme_add(&s->why, scheme_keys[key].takes);
	if (key == KEY_RTO)
		scheme_add(&s->why, " round trips");
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
	*out = (double)(uint32_t)(value * SCHEME_MILLI + 0.5) / SCHEME_MILLI;
	return true;
}

static int take_number(struct parser *s, enum scheme_key key, const struct part *value)
{
	uint32_t n;

	if (!read_number(value, &n) || n < scheme_keys[key].min || n > scheme_keys[key].max)
		return wrong_value(s, key, value);
	*scheme_number_of(&s->p, key) = n;
	return 0;
}

static int take_repair(struct parser *s, const struct part *value)
{
	if (is_word(value, "parity") && s->kind == &scheme_kinds[EC_XOR]) {
		scheme_add(&s->why,
			   "repair=parity of ec-xor: its code has no further parity: choose "
			   "repair=missing, or ec:K,M");
		return -EINVAL;
	}
	if (!is_word(value, "parity") && !is_word(value, "missing"))
		return wrong_value(s, KEY_REPAIR, value);
	s->p.fresh = is_word(value, "parity");
	return 0;
}

static int take_value(struct parser *s, enum scheme_key key, const struct part *value)
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
	scheme_add(&s->why,
		   part->len ? " is no parameter of " : " stands where a parameter should, of ");
	scheme_add(&s->why, s->kind->name);
	scheme_add(&s->why, ": choose ");
	add_takes(&s->why, s->kind->takes);
	return -EINVAL;
}

static int take_key(struct parser *s, enum scheme_key key, const struct part *value)
{
	if (s->given & SCHEME_BIT(key)) {
		scheme_add(&s->why, scheme_keys[key].name);
		scheme_add(&s->why, " is given twice, ");
		add_quoted(&s->why, value);
		scheme_add(&s->why, " the second time: leave one out");
		return -EINVAL;
	}
	s->given |= SCHEME_BIT(key);
	return take_value(s, key, value);
}

/* NAME=VALUE, or K and then M. */
static int take_part(struct parser *s, const struct part *part)
{
	const char *equals = part->len ? memchr(part->at, '=', part->len) : NULL;
	struct part name = {part->at, equals ? (size_t)(equals - part->at) : 0};
	struct part value = {name.at + name.len + 1, part->len - name.len - 1};
	uint32_t number;

	if (!equals && s->kind->takes & SCHEME_BIT(KEY_K) && s->numbers < 2 && part->len &&
	    part->at[0] >= '0' && part->at[0] <= '9')
		return take_key(s, s->numbers++ ? KEY_M : KEY_K, part);
	for (uint32_t key = 0; equals && key < SCHEME_KEYS; key++) {
		if (s->kind->takes & SCHEME_BIT(key) && is_word(&name, scheme_keys[key].name))
			return take_key(s, (enum scheme_key)key, &value);
	}
	if (!equals && s->numbers < 2 && read_number(part, &number)) {
		scheme_add(&s->why, s->kind->name);
		scheme_add(&s->why, " has no code, so it takes no K and M (");
		add_quoted(&s->why, part);
		scheme_add(&s->why, "): choose ec:K,M, ec-xor:K,M or hybrid:k=K,m=M");
		return -EINVAL;
	}
	return no_parameter(s, equals ? &name : part);
}

/* What the parts together must be. */
static int check_code(struct parser *s)
{
	bool hybrid = s->p.hybrid;

	if (!(s->kind->takes & SCHEME_BIT(KEY_K)))
		return 0;
	if ((s->given & (SCHEME_BIT(KEY_K) | SCHEME_BIT(KEY_M))) !=
	    (SCHEME_BIT(KEY_K) | SCHEME_BIT(KEY_M))) {
		scheme_add(&s->why, s->kind->name);
		scheme_add(&s->why, " needs K and M, data and parity packets of a block: write ");
		scheme_add(&s->why, hybrid ? "hybrid:k=128,m=10" : s->kind->name);
		scheme_add(&s->why, hybrid ? ", or auto to have them chosen" : ":32,8");
		return -EINVAL;
	}
	if (s->p.k + s->p.m > REL_CODE_SYMBOLS_MAX) {
		scheme_add(&s->why, "k + m = ");
		scheme_add_number(&s->why, s->p.k + s->p.m);
		scheme_add(&s->why, " of ");
		scheme_add(&s->why, s->kind->name);
		scheme_add(&s->why, ": a block has at most 255 packets: choose fewer");
		return -EINVAL;
	}
	if (s->p.code == REL_CODE_XOR && s->p.m > s->p.k) {
		scheme_add(&s->why, "m = ");
		scheme_add_number(&s->why, s->p.m);
		scheme_add(&s->why, " of ec-xor is more than k = ");
		scheme_add_number(&s->why, s->p.k);
		scheme_add(&s->why,
			   ": each parity packet covers at least one of data: choose at most k");
		return -EINVAL;
	}
	return 0;
}

static const struct scheme_kind *find_kind(const struct part *name)
{
	for (size_t i = 0; i < SCHEME_KINDS; i++) {
		if (is_word(name, scheme_kinds[i].name))
			return &scheme_kinds[i];
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

	scheme_add(&s.why, "");
	s.kind = text ? find_kind(&name) : NULL;
	if (!s.kind) {
		add_quoted(&s.why, &name);
		scheme_add(&s.why, " is no scheme: choose " REL_SCHEME_NAMES);
		return -EINVAL;
	}
	s.p = s.kind->is;
	err = text[name.len] ? parse_parts(&s, text + name.len + 1) : check_code(&s);
	if (!err)
		*out = s.p;
	return err;
}

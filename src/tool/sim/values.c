// SPDX-License-Identifier: Apache-2.0
/*
 * The keys of a sweep and what their values are: lists, ranges, limits, and back to text.
 * See sweep.h.
 */
#include "tool/sim/sweep.h"

#include "base/units.h"
#include "plan/choose.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(name) offsetof(struct sweep, name)
#define SIZE_MAX_BYTES ((double)(UINT64_C(1) << 50))

const struct sweep_key sweep_keys[SWEEP_KEYS + 1] = {
	{"rtt", KEY_TIMES, AXIS_RTT, 0, 1e3, 1e12},
	{"km", KEY_KMS, AXIS_RTT, 0, 1, 1e8},
	{"bw", KEY_RATES, AXIS_BW, 0, PLAN_BW_MIN_BPS, PLAN_BW_MAX_BPS},
	{"loss", KEY_RATIOS, AXIS_LOSS, 0, 0, 1},
	{"burst", KEY_NUMBERS, AXIS_BURST, 0, 1, PLAN_BURST_MAX},
	{"ack-loss", KEY_RATIO, 0, FIELD(ack_loss), 0, 1},
	{"jitter", KEY_TIME, 0, FIELD(jitter_ns), 0, 1e12},
	{"queue", KEY_SIZE, 0, FIELD(queue_bytes), 0, SIZE_MAX_BYTES},
	{"size", KEY_SIZES, AXIS_SIZE, 0, 1, SIZE_MAX_BYTES},
	{"scheme", KEY_SCHEMES, 0, 0, 0, 0},
	{"packet", KEY_SIZE, 0, FIELD(packet_bytes), 64, 65536},
	{"chunk", KEY_SIZE, 0, FIELD(chunk_bytes), 64, 65536.0 * PLAN_CHUNK_PKTS_MAX},
	{"runs", KEY_UINT, 0, FIELD(runs), 1, SWEEP_RUNS_MAX},
	{"seed", KEY_UINT, 0, FIELD(seed), 0, 9007199254740992.0},
	{"cold", KEY_YES, 0, FIELD(cold), 0, 1},
	{"engine", KEY_ENGINE, 0, 0, 0, 0},
	{"device", KEY_DEVICE, 0, 0, 0, 0},
	{"limit", KEY_TIME, 0, FIELD(limit_ns), 1e3, 1e15},
	{"learn", KEY_YES, 0, FIELD(learn), 0, 1},
	{"coalesce", KEY_TIME, 0, FIELD(coalesce_ns), 0, 1e9},
	{0},
};

static const char *const devices[] = {"udp", "roce", "nic"};
static const char *const engines[] = {"auto", "real", "model"};

void sweep_init(struct sweep *s)
{
	*s = (struct sweep){
		.ack_loss = -1,
		.packet_bytes = 4096,
		.runs = SWEEP_RUNS_DEFAULT,
		.seed = 1,
		.device = devices[0],
	};
	s->axis[AXIS_BURST] = (struct axis){.v = {1}, .n = 1};
}

int sweep_key_find(const char *name)
{
	for (int i = 0; sweep_keys[i].name; i++) {
		if (strcmp(sweep_keys[i].name, name) == 0)
			return i;
	}
	return -1;
}

/* ---- one number ----------------------------------------------------------------- */

static int parse_uint(const char *text, double *to)
{
	uint64_t v = 0;
	int err = units_parse_uint(text, 0, UINT64_MAX, &v);

	*to = (double)v;
	return err;
}

static int parse_scaled(int parse(const char *, uint64_t *), const char *text, double *to)
{
	uint64_t v = 0;
	int err = parse(text, &v);

	*to = (double)v;
	return err;
}

static int parse_real(const char *text, double *to)
{
	char *end;

	*to = strtod(text, &end);
	return end == text || *end != '\0' || isnan(*to) ? -EINVAL : 0;
}

static int parse_number(enum sweep_kind kind, const char *text, double *to)
{
	switch (kind) {
	case KEY_TIMES:
	case KEY_TIME:
		return parse_scaled(units_parse_time_ns, text, to);
	case KEY_RATES:
		return parse_scaled(units_parse_rate_bps, text, to);
	case KEY_RATIOS:
	case KEY_RATIO:
		return units_parse_ratio(text, to);
	case KEY_SIZES:
	case KEY_SIZE:
		return parse_scaled(units_parse_size_bytes, text, to);
	case KEY_NUMBERS:
		return parse_real(text, to);
	default:
		return parse_uint(text, to);
	}
}

static const char *value_hint(enum sweep_kind kind)
{
	switch (kind) {
	case KEY_TIMES:
	case KEY_TIME:
		return "not a time: write it like 25ms or 100us";
	case KEY_RATES:
		return "not a rate: write it like 400Gbit or 1.2GB/s";
	case KEY_RATIOS:
	case KEY_RATIO:
		return "not a ratio: write it like 1e-4, 0.001 or 0.1%";
	case KEY_SIZES:
	case KEY_SIZE:
		return "not a size: write it like 4096, 64KiB or 128MiB";
	default:
		return "not a number: write it like 8";
	}
}

static void limit_text(enum sweep_kind kind, double v, char buf[UNITS_TEXT])
{
	if (kind == KEY_SIZES || kind == KEY_SIZE)
		units_size_text(buf, (uint64_t)v);
	else if (kind == KEY_TIMES || kind == KEY_TIME)
		units_time_text(buf, (uint64_t)v);
	else if (kind == KEY_RATES)
		units_rate_text(buf, v);
	else if (v == floor(v))
		snprintf(buf, UNITS_TEXT, "%.0f", v);
	else
		snprintf(buf, UNITS_TEXT, "%g", v);
}

/* "ITEM: " where the item is a part of the value only. */
static int wrong(char *why, const char *item, const char *value, const char *text)
{
	if (strcmp(item, value) == 0)
		snprintf(why, SWEEP_WHY, "%s", text);
	else
		snprintf(why, SWEEP_WHY, "'%.80s' of it: %s", item, text);
	return -1;
}

static int take_number(const struct sweep_key *key, const char *item, const char *value, double *to,
		       char *why)
{
	bool ratio = key->kind == KEY_RATIOS || key->kind == KEY_RATIO;
	char lo[UNITS_TEXT], hi[UNITS_TEXT], text[128];
	int err = parse_number(key->kind, item, to);

	if (err == -EINVAL)
		return wrong(why, item, value, value_hint(key->kind));
	if (err == 0 && *to >= key->min && *to <= key->max && !(ratio && *to >= 1))
		return 0;
	limit_text(key->kind, key->min, lo);
	limit_text(key->kind, key->max, hi);
	snprintf(text, sizeof(text), "out of range: choose from %s to %s%s", lo,
		 ratio ? "below " : "", hi);
	return wrong(why, item, value, text);
}

/* ---- lists ---------------------------------------------------------------------- */

static int axis_add(struct axis *a, const struct sweep_key *key, double v, char *why)
{
	if (key->kind == KEY_KMS)
		v = round(v / PLAN_KM_PER_S * 1e9);
	for (uint32_t i = 0; i < a->n; i++) {
		if (a->v[i] == v) {
			snprintf(why, SWEEP_WHY, "a value twice: leave one out");
			return -1;
		}
	}
	if (a->n == AXIS_MAX) {
		snprintf(why, SWEEP_WHY, "more than %u values: cut the sweep in parts", AXIS_MAX);
		return -1;
	}
	a->v[a->n++] = v;
	return 0;
}

/* The next of a range: ratios by decades, the others by doublings. */
static double range_next(const struct sweep_key *key, double v)
{
	char text[32];

	if (key->kind != KEY_RATIOS)
		return 2 * v;
	snprintf(text, sizeof(text), "%.12g", 10 * v); /* 1e-5, and not what 1e-6 * 10 is */
	return strtod(text, NULL);
}

static int axis_item(struct axis *a, const struct sweep_key *key, char *item, const char *value,
		     char *why)
{
	char *dots = strstr(item, "..");
	double from, to;

	if (!dots)
		return take_number(key, item, value, &from, why) || axis_add(a, key, from, why);
	*dots = '\0';
	if (take_number(key, item, value, &from, why) ||
	    take_number(key, dots + 2, value, &to, why))
		return -1;
	if (!(from < to) || from <= 0) {
		snprintf(why, SWEEP_WHY, "a range begins with the smaller value, above 0");
		return -1;
	}
	for (; from < to; from = range_next(key, from)) {
		if (axis_add(a, key, from, why))
			return -1;
	}
	return axis_add(a, key, to, why);
}

static int scheme_add(struct sweep *s, const char *item, const char *value, char *why)
{
	struct sim_scheme *to = &s->scheme[s->schemes];
	char text[SWEEP_WHY - 100];
	size_t used = 0;

	if (s->schemes == SWEEP_SCHEMES_MAX) {
		snprintf(why, SWEEP_WHY, "more than %u schemes: cut the sweep in parts",
			 SWEEP_SCHEMES_MAX);
		return -1;
	}
	if (scheme_parse(item, to, text, sizeof(text)))
		return wrong(why, item, value, text);
	for (uint32_t i = 0; i < s->schemes; i++) {
		if (strcmp(s->scheme[i].name, to->name) == 0)
			return wrong(why, item, value, "twice: leave one out");
		used += strlen(s->scheme[i].name) + 1;
	}
	if (used + strlen(to->name) >= SWEEP_VALUE_MAX) { /* sweep_text() has to hold them */
		snprintf(why, SWEEP_WHY, "longer than %u characters: cut the sweep in parts",
			 SWEEP_VALUE_MAX - 1);
		return -1;
	}
	s->schemes++;
	return 0;
}

/* Without the spaces around it. */
static void copy_item(char *item, const char *text, size_t len)
{
	for (; len && *text == ' '; len--)
		text++;
	while (len && text[len - 1] == ' ')
		len--;
	memcpy(item, text, len);
	item[len] = '\0';
}

/* Each item of a list with commas between. */
static int take_list(struct sweep *s, const struct sweep_key *key, const char *value, char *why)
{
	bool schemes = key->kind == KEY_SCHEMES;
	char item[256];

	if (schemes)
		s->schemes = 0;
	else
		s->axis[key->axis].n = 0;
	for (const char *at = value;; at++) {
		size_t len = schemes ? scheme_item_len(at) : strcspn(at, ",");

		if (len == 0 || len >= sizeof(item)) {
			snprintf(why, SWEEP_WHY,
				 len ? "an item longer than 255 characters"
				     : "an empty item: write lists like 1,2,4");
			return -1;
		}
		copy_item(item, at, len);
		if (schemes ? scheme_add(s, item, value, why)
			    : axis_item(&s->axis[key->axis], key, item, value, why))
			return -1;
		at += len;
		if (*at == '\0')
			return 0;
	}
}

/* ---- words ---------------------------------------------------------------------- */

static int take_word(const char *const *words, int n, const char *value, char *why)
{
	size_t used;

	for (int i = 0; i < n; i++) {
		if (strcmp(words[i], value) == 0)
			return i;
	}
	used = (size_t)snprintf(why, SWEEP_WHY, "unknown: choose ");
	for (int i = 0; i < n; i++)
		used += (size_t)snprintf(why + used, SWEEP_WHY - used, "%s%s", i ? ", " : "",
					 words[i]);
	return -1;
}

static int take_one(struct sweep *s, const struct sweep_key *key, const char *value, char *why)
{
	static const char *const yes[] = {"no", "yes"};
	void *field = (char *)s + key->field;
	double v;
	int word;

	switch (key->kind) {
	case KEY_YES:
		word = take_word(yes, 2, value, why);
		*(uint64_t *)field = word == 1;
		return word < 0 ? -1 : 0;
	case KEY_ENGINE:
		word = take_word(engines, 3, value, why);
		s->engine = (enum sweep_engine)word;
		return word < 0 ? -1 : 0;
	case KEY_DEVICE:
		word = take_word(devices, 3, value, why);
		s->device = devices[word < 0 ? 0 : word];
		return word < 0 ? -1 : 0;
	default:
		if (take_number(key, value, value, &v, why))
			return -1;
		if (key->kind == KEY_RATIO)
			*(double *)field = v;
		else
			*(uint64_t *)field = (uint64_t)v;
		return 0;
	}
}

int sweep_set(struct sweep *s, int key, const char *value, char *why)
{
	const struct sweep_key *k = &sweep_keys[key];

	if (strlen(value) >= SWEEP_VALUE_MAX) {
		snprintf(why, SWEEP_WHY, "longer than %u characters", SWEEP_VALUE_MAX - 1);
		return -1;
	}
	return k->kind <= KEY_SCHEMES ? take_list(s, k, value, why) : take_one(s, k, value, why);
}

/* ---- and back ------------------------------------------------------------------- */

/* As short as it can be and still be the same number. */
static int real_text(char *buf, size_t len, double v)
{
	int n = snprintf(buf, len, "%.15g", v);

	return strtod(buf, NULL) == v ? n : snprintf(buf, len, "%.17g", v);
}

static const char *axis_text(const struct axis *a, enum sweep_kind kind, char *buf)
{
	const char *unit = kind == KEY_TIMES ? "ns" : kind == KEY_RATES ? "bit" : "";
	size_t used = 0;

	for (uint32_t i = 0; i < a->n && used < SWEEP_VALUE_MAX; i++) {
		char number[40];

		real_text(number, sizeof(number), a->v[i]);
		if (kind == KEY_TIMES || kind == KEY_RATES || kind == KEY_SIZES)
			snprintf(number, sizeof(number), "%.0f", a->v[i]);
		used += (size_t)snprintf(buf + used, SWEEP_VALUE_MAX - used, "%s%s%s", i ? "," : "",
					 number, unit);
	}
	return buf;
}

static const char *schemes_text(const struct sweep *s, char *buf)
{
	size_t used = 0;

	for (uint32_t i = 0; i < s->schemes && used < SWEEP_VALUE_MAX; i++)
		used += (size_t)snprintf(buf + used, SWEEP_VALUE_MAX - used, "%s%s", i ? "," : "",
					 s->scheme[i].name);
	return buf;
}

const char *sweep_text(const struct sweep *s, int key, char buf[SWEEP_VALUE_MAX])
{
	const struct sweep_key *k = &sweep_keys[key];
	const void *field = (const char *)s + k->field;

	switch (k->kind) {
	case KEY_KMS:
		return NULL;
	case KEY_SCHEMES:
		return schemes_text(s, buf);
	case KEY_RATIO:
		if (s->ack_loss < 0)
			return NULL;
		real_text(buf, SWEEP_VALUE_MAX, s->ack_loss);
		return buf;
	case KEY_YES:
		return *(const uint64_t *)field ? "yes" : "no";
	case KEY_ENGINE:
		return engines[s->engine];
	case KEY_DEVICE:
		return s->device;
	case KEY_TIME:
	case KEY_SIZE:
	case KEY_UINT:
		/* Zero is what stands there if it was not given; not all take it. */
		if (*(const uint64_t *)field == 0 && k->min > 0)
			return NULL;
		snprintf(buf, SWEEP_VALUE_MAX, "%" PRIu64 "%s", *(const uint64_t *)field,
			 k->kind == KEY_TIME ? "ns" : "");
		return buf;
	default:
		return axis_text(&s->axis[k->axis], k->kind, buf);
	}
}

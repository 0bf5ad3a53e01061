// SPDX-License-Identifier: Apache-2.0
/*
 * Human units, parsed in whole numbers: "0.1ms" is exactly 100000 ns, whatever the
 * locale and however binary fractions round. See units.h for the words it takes.
 */
#include "base/units.h"

#include "base/bits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* mant * 10^exp10: what a decimal number says before a unit gives it meaning. */
struct decimal {
	unsigned __int128 mant; /* below 10^21: any uint64_t, and a digit to spare */
	int exp10;
};

struct unit {
	const char *name;
	uint64_t scale;
};

#define MANT_FULL ((unsigned __int128)1000 * 1000 * 100 * TERA) /* 10^20 */
#define EXP10_MAX 9999
#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)
#define TERA UINT64_C(1000000000000)

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits that no longer fit in mant only move the exponent. */
static void take_digit(struct decimal *d, char c, int after_point)
{
	if (d->mant < MANT_FULL) {
		d->mant = d->mant * 10 + (unsigned int)(c - '0');
		d->exp10 -= after_point;
	} else if (!after_point && d->exp10 < EXP10_MAX) {
		d->exp10++;
	}
}

static const char *take_exponent(const char *p, struct decimal *d)
{
	int sign = 1, e = 0;
	const char *q = p + 1;

	if (*p != 'e' && *p != 'E')
		return p;
	if (*q == '+' || *q == '-')
		sign = *q++ == '-' ? -1 : 1;
	if (!is_digit(*q))
		return p; /* an 'e' that opens a unit, if there were one */
	for (; is_digit(*q); q++) {
		if (e < EXP10_MAX)
			e = e * 10 + (*q - '0');
	}
	d->exp10 += sign * e;
	return q;
}

/* Reads "12", "1.5", ".5", "1e-5" and spaces after it; the rest of text, or NULL. */
static const char *take_number(const char *text, struct decimal *d)
{
	const char *p = text;
	int digits = 0;

	*d = (struct decimal){0};
	for (; is_digit(*p); p++, digits++)
		take_digit(d, *p, 0);
	if (*p == '.') {
		for (p++; is_digit(*p); p++, digits++)
			take_digit(d, *p, 1);
	}
	if (digits == 0)
		return NULL;
	p = take_exponent(p, d);
	while (*p == ' ')
		p++;
	return p;
}

/* Rounds to the nearest; a number above zero that would become zero does not fit. */
static int scale_decimal(struct decimal d, uint64_t scale, uint64_t *out)
{
	/* Below 2^70 * 2^43, so that ten times as much is still seen to be too much. */
	unsigned __int128 v = d.mant * scale;

	if (v == 0) {
		*out = 0;
		return 0;
	}
	for (; d.exp10 > 0; d.exp10--) {
		v *= 10;
		if (v > UINT64_MAX)
			return -ERANGE;
	}
	for (; d.exp10 < -1 && v; d.exp10++)
		v /= 10;
	if (d.exp10 < 0)
		v = (v + 5) / 10;
	if (v == 0 || v > UINT64_MAX)
		return -ERANGE;
	*out = (uint64_t)v;
	return 0;
}

static int parse_with(const char *text, const struct unit *units, size_t n,
		      int (*compare)(const char *, const char *), uint64_t *out)
{
	struct decimal d;
	const char *rest = text ? take_number(text, &d) : NULL;

	if (!rest)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (compare(rest, units[i].name) == 0)
			return scale_decimal(d, units[i].scale, out);
	}
	return -EINVAL;
}

int units_parse_time_ns(const char *text, uint64_t *out_ns)
{
	static const struct unit units[] = {
		{"", NS_PER_S},		{"ns", 1},
		{"us", NS_PER_US},	{"ms", NS_PER_MS},
		{"s", NS_PER_S},	{"m", 60 * NS_PER_S},
		{"min", 60 * NS_PER_S}, {"h", 3600 * NS_PER_S},
	};

	return parse_with(text, units, SDR_ARRAY_LEN(units), strcmp, out_ns);
}

int units_parse_size_bytes(const char *text, uint64_t *out_bytes)
{
	static const struct unit units[] = {
		{"", 1},      {"B", 1},	    {"KB", 1000}, {"MB", 1000000}, {"GB", 1000000000},
		{"TB", TERA}, {"KiB", KIB}, {"MiB", MIB}, {"GiB", GIB},	   {"TiB", TIB},
		{"K", KIB},   {"M", MIB},   {"G", GIB},	  {"T", TIB},
	};

	/* Nobody means bits by a size, so case says nothing: 128mb, 4k. */
	return parse_with(text, units, SDR_ARRAY_LEN(units), strcasecmp, out_bytes);
}

/* "Gbit/s" to its prefix's factor; *rest is what follows the prefix. */
static uint64_t rate_prefix(const char *text, const char **rest)
{
	static const struct unit prefixes[] = {
		{"Ki", KIB}, {"Mi", MIB},    {"Gi", GIB},	{"Ti", TIB}, {"K", 1000},
		{"k", 1000}, {"M", 1000000}, {"G", 1000000000}, {"T", TERA},
	};

	for (size_t i = 0; i < SDR_ARRAY_LEN(prefixes); i++) {
		size_t len = strlen(prefixes[i].name);

		if (strncmp(text, prefixes[i].name, len) == 0) {
			*rest = text + len;
			return prefixes[i].scale;
		}
	}
	*rest = text;
	return 1;
}

int units_parse_rate_bps(const char *text, uint64_t *out_bps)
{
	static const struct unit units[] = {
		{"bit", 1}, {"bit/s", 1}, {"bitps", 1}, {"bps", 1},
		{"b/s", 1}, {"B/s", 8},	  {"Bps", 8},
	};
	struct decimal d;
	const char *rest = text ? take_number(text, &d) : NULL;
	uint64_t factor;

	if (!rest)
		return -EINVAL;
	if (*rest == '\0')
		return scale_decimal(d, 1, out_bps);
	factor = rate_prefix(rest, &rest);
	/* Here case matters: b is a bit, B a byte. */
	for (size_t i = 0; i < SDR_ARRAY_LEN(units); i++) {
		if (strcmp(rest, units[i].name) == 0)
			return scale_decimal(d, factor * units[i].scale, out_bps);
	}
	return -EINVAL;
}

int units_parse_ratio(const char *text, double *out)
{
	struct decimal d;
	const char *rest = text ? take_number(text, &d) : NULL;
	double v, power = 1;

	if (!rest)
		return -EINVAL;
	if (strcmp(rest, "%") == 0)
		d.exp10 -= 2;
	else if (*rest != '\0')
		return -EINVAL;
	v = (double)d.mant;
	/* One division by a power of ten that is exact up to 10^22 rounds once only. */
	for (int e = 0; e < abs(d.exp10) && v > 0; e++)
		power *= 10;
	v = d.exp10 < 0 ? v / power : v * power;
	if (v > 1)
		return -ERANGE;
	*out = v;
	return 0;
}

int units_parse_uint(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;
	int overflow = 0;

	if (!text || *text == '\0')
		return -EINVAL;
	for (; is_digit(*text); text++) {
		overflow |= __builtin_mul_overflow(v, 10, &v);
		overflow |= __builtin_add_overflow(v, (uint64_t)(*text - '0'), &v);
	}
	if (*text != '\0')
		return -EINVAL;
	if (overflow || v < min || v > max)
		return -ERANGE;
	*out = v;
	return 0;
}

/* 9.99, 99.9, 999: decimals so that three digits are significant after rounding. */
static int decimals_of(double v)
{
	return v < 9.995 ? 2 : v < 99.95 ? 1 : 0;
}

char *units_time_text(char *buf, uint64_t ns)
{
	static const struct {
		double ns, below; /* a value that prints below this many units stays here */
		const char *name;
	} steps[] = {
		{1e3, 999.5, "us"}, {1e6, 999.5, "ms"},	  {1e9, 99.95, "s"},
		{60e9, 99.95, "m"}, {3600e9, 1e300, "h"},
	};

	if (ns < NS_PER_US) {
		snprintf(buf, UNITS_TEXT, "%u ns", (unsigned int)ns);
		return buf;
	}
	for (size_t i = 0; i < SDR_ARRAY_LEN(steps); i++) {
		double v = (double)ns / steps[i].ns;

		if (v < steps[i].below) {
			snprintf(buf, UNITS_TEXT, "%.*f %s", decimals_of(v), v, steps[i].name);
			break;
		}
	}
	return buf;
}

char *units_size_text(char *buf, uint64_t bytes)
{
	static const char *const names[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double v = (double)bytes / 1024;
	size_t i = 0;

	if (bytes < 1024) {
		snprintf(buf, UNITS_TEXT, "%u B", (unsigned int)bytes);
		return buf;
	}
	for (; v >= 1023.5 && i + 1 < SDR_ARRAY_LEN(names); i++)
		v /= 1024;
	snprintf(buf, UNITS_TEXT, "%.*f %s", decimals_of(v), v, names[i]);
	return buf;
}

char *units_rate_text(char *buf, double bps)
{
	static const char *const names[] = {"bit/s",  "Kbit/s", "Mbit/s", "Gbit/s",
					    "Tbit/s", "Pbit/s", "Ebit/s"};
	size_t i = 0;

	if (!(bps > 0)) /* and NaN */
		bps = 0;
	for (; bps >= 999.5 && i + 1 < SDR_ARRAY_LEN(names); i++)
		bps /= 1000;
	if (bps > 1e6) /* no rate that a caller means; keep within the buffer */
		snprintf(buf, UNITS_TEXT, "%.2e %s", bps, names[i]);
	else
		snprintf(buf, UNITS_TEXT, "%.*f %s", bps == 0 ? 0 : decimals_of(bps), bps,
			 names[i]);
	return buf;
}

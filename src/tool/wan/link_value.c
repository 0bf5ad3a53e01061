// SPDX-License-Identifier: Apache-2.0
/*
 * Values of link options. See link_value.h. Numbers and units are those of base/units.h;
 * lists are cut at commas here.
 */
#include "tool/wan/link_value.h"

#include "tool/wan/link_opts.h"

#include "base/bits.h"
#include "base/units.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 80    /* of a value in a message */
#define PART_MAX 64 /* longest part of a list */

int link_value_wrong(const struct link_value *v, const char *text, const char *fmt, ...)
{
	size_t used;
	va_list args;

	snprintf(v->error, LINK_OPTS_ERROR, "--%s%s%.*s%s: ", v->option, text ? " " : "", SHOWN,
		 text ? text : "", text && strlen(text) > SHOWN ? "..." : "");
	used = strlen(v->error);
	va_start(args, fmt);
	vsnprintf(v->error + used, LINK_OPTS_ERROR - used, fmt, args);
	va_end(args);
	return -EINVAL;
}

int link_value_time(const struct link_value *v, const char *text, uint64_t min, uint64_t max,
		    uint64_t *ns)
{
	char lo[UNITS_TEXT], hi[UNITS_TEXT];
	uint64_t t = 0;
	int rc = units_parse_time_ns(text, &t);

	if (rc == -EINVAL)
		return link_value_wrong(v, text, "not a time: write it like 25ms, 300us or 1.5s");
	if (rc < 0 || t < min || t > max)
		return link_value_wrong(v, text, "out of range: choose from %s to %s",
					min ? units_time_text(lo, min) : "0",
					units_time_text(hi, max));
	*ns = t;
	return 0;
}

int link_value_rate(const struct link_value *v, const char *text, uint64_t *bps)
{
	char hi[UNITS_TEXT];
	uint64_t r = 0;
	int rc = 0;

	if (strcmp(text, "unlimited") != 0)
		rc = units_parse_rate_bps(text, &r);
	if (rc == -EINVAL)
		return link_value_wrong(v, text,
					"not a rate: write it like 200Mbit, 10Gbit or 1.2GB/s");
	if (rc < 0 || r > LINK_RATE_MAX || (r && r < 1000))
		return link_value_wrong(v, text,
					"out of range: choose from 1 Kbit/s to %s, or 0: no limit",
					units_rate_text(hi, (double)LINK_RATE_MAX));
	*bps = r;
	return 0;
}

int link_value_ratio(const struct link_value *v, const char *text, double *ratio)
{
	int rc = units_parse_ratio(text, ratio);

	if (rc == -EINVAL)
		return link_value_wrong(v, text, "not a ratio: write it like 1%%, 0.01 or 1e-5");
	if (rc < 0)
		return link_value_wrong(v, text, "out of range: choose from 0 to 100%%");
	return 0;
}

int link_value_uint(const struct link_value *v, const char *text, uint64_t min, uint64_t max,
		    uint64_t *n)
{
	int rc = units_parse_uint(text, min, max, n);

	if (rc == -EINVAL)
		return link_value_wrong(v, text,
					"not a whole number: choose from %" PRIu64 " to %" PRIu64,
					min, max);
	if (rc < 0)
		return link_value_wrong(
			v, text, "out of range: choose from %" PRIu64 " to %" PRIu64, min, max);
	return 0;
}

int link_value_size_or_time(const struct link_value *v, const char *text, uint64_t *bytes,
			    uint64_t *ns)
{
	char hi[UNITS_TEXT];
	uint64_t value = 0;
	int rc = units_parse_size_bytes(text, &value);

	if (rc == 0 && value >= 1 && value <= LINK_SIZE_MAX) {
		*bytes = value;
		*ns = 0;
		return 0;
	}
	if (rc != -EINVAL)
		return link_value_wrong(v, text, "out of range: choose from 1 B to %s",
					units_size_text(hi, LINK_SIZE_MAX));
	rc = units_parse_time_ns(text, &value);
	if (rc == -EINVAL)
		return link_value_wrong(v, text,
					"neither a size nor a time: write it like "
					"256KiB, 2MB or 20ms");
	if (rc < 0 || value < 1 || value > LINK_TIME_MAX)
		return link_value_wrong(v, text, "out of range: choose from 1 ns to %s",
					units_time_text(hi, LINK_TIME_MAX));
	*bytes = 0;
	*ns = value;
	return 0;
}

int link_value_burst(const struct link_value *v, const char *text, double *pkts)
{
	char *end;
	double n;

	/* strtod also takes "nan", "inf" and hexadecimal: nothing that anybody means. */
	if (*text == '\0' || text[strspn(text, "0123456789.")] != '\0')
		return link_value_wrong(v, text, "not a number of packets: write it like 8 or 2.5");
	n = strtod(text, &end);
	if (*end != '\0' || end == text)
		return link_value_wrong(v, text, "not a number of packets: write it like 8 or 2.5");
	if (n != 0 && !(n >= 1 && n <= 1e6))
		return link_value_wrong(v, text,
					"out of range: choose from 1 to 1000000, or 0: "
					"losses are independent");
	*pkts = n;
	return 0;
}

/* ---- lists ---------------------------------------------------------------------- */

/* The next part of a list, up to a comma. 1: *rest is behind it; 0: no part is left;
 * negative: it is empty or too long. */
static int next_part(const struct link_value *v, const char *whole, const char **rest, char *part)
{
	const char *from = *rest;
	size_t len;

	if (!from)
		return 0;
	len = strcspn(from, ",");
	if (len == 0 || len >= PART_MAX)
		return link_value_wrong(v, whole, "%s: separate values with single commas",
					len ? "one of its values is too long"
					    : "one of its values is empty");
	memcpy(part, from, len);
	part[len] = '\0';
	*rest = from[len] ? from + len + 1 : NULL;
	return 1;
}

/* Cuts text into min .. max parts; returns how many. form says how it should look. */
static int split(const struct link_value *v, const char *text, char (*part)[PART_MAX], int min,
		 int max, const char *form)
{
	const char *rest = text;
	int n = 0, rc;

	while (rest && n < max) {
		rc = next_part(v, text, &rest, part[n]);
		if (rc < 0)
			return rc;
		n++;
	}
	if (n < min || rest)
		return link_value_wrong(v, text, "too %s values: write it as %s",
					rest ? "many" : "few", form);
	return n;
}

int link_value_ratio_time(const struct link_value *v, const char *text, double *ratio, uint64_t *ns)
{
	char part[2][PART_MAX];
	int n = split(v, text, part, 1, 2, "RATIO or RATIO,TIME, like 1%,20ms");

	if (n < 0 || link_value_ratio(v, part[0], ratio) < 0)
		return -EINVAL;
	return n > 1 ? link_value_time(v, part[1], 0, LINK_TIME_MAX, ns) : 0;
}

int link_value_ge(const struct link_value *v, const char *text, struct link_ge *ge)
{
	char part[4][PART_MAX];
	double value[4] = {0, 0, 1, 0};
	int n = split(v, text, part, 1, 4, "p,r,1-h,1-k, like 0.1%,20%,100%,0");

	if (n < 0)
		return n;
	for (int i = 0; i < n; i++) {
		if (link_value_ratio(v, part[i], &value[i]) < 0)
			return -EINVAL;
	}
	if (n < 2)
		value[1] = 1 - value[0];
	*ge = (struct link_ge){
		.p_gb = value[0], .p_bg = value[1], .loss_bad = value[2], .loss_good = value[3]};
	return 0;
}

int link_value_policer(const struct link_value *v, const char *text, struct link_policer *p)
{
	char part[2][PART_MAX], hi[UNITS_TEXT];
	struct link_policer to = {0};
	int rc;

	if (strcmp(text, "none") == 0) {
		*p = to;
		return 0;
	}
	if (split(v, text, part, 2, 2, "RATE,SIZE, like 100Mbit,1MB, or none") < 0 ||
	    link_value_rate(v, part[0], &to.rate_bps) < 0)
		return -EINVAL;
	if (to.rate_bps == 0)
		return link_value_wrong(v, text, "a policer needs a rate: write none to have none");
	rc = units_parse_size_bytes(part[1], &to.burst_bytes);
	if (rc == -EINVAL)
		return link_value_wrong(v, text, "'%s' is not a size: write it like 64KiB or 1MB",
					part[1]);
	if (rc < 0 || to.burst_bytes < 1 || to.burst_bytes > LINK_SIZE_MAX)
		return link_value_wrong(v, text,
					"'%s': the bucket is out of range: choose from "
					"1 B to %s",
					part[1], units_size_text(hi, LINK_SIZE_MAX));
	*p = to;
	return 0;
}

static int compare_uint(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* "7" or "10-12" */
static int parse_range(const struct link_value *v, char *part, uint64_t *first, uint64_t *last)
{
	char *dash = strchr(part, '-');
	uint64_t top = UINT64_C(1) << 62;

	if (dash)
		*dash = '\0';
	if (link_value_uint(v, part, 0, top, first) < 0)
		return -EINVAL;
	*last = *first;
	if (dash && link_value_uint(v, dash + 1, 0, top, last) < 0)
		return -EINVAL;
	if (*last < *first)
		return link_value_wrong(v, dash + 1,
					"a range goes up: write the smaller index "
					"first");
	return 0;
}

int link_value_drop(const struct link_value *v, const char *text, uint64_t *list, size_t *n)
{
	const char *rest = strcmp(text, "none") == 0 ? NULL : text;
	uint64_t found[WAN_MAX_DROPS], first, last;
	char part[PART_MAX];
	size_t count = 0, kept = 0;
	int rc;

	while ((rc = next_part(v, text, &rest, part)) > 0) {
		if (parse_range(v, part, &first, &last) < 0)
			return -EINVAL;
		if (last - first >= WAN_MAX_DROPS - count)
			return link_value_wrong(v, text,
						"more than %u packets: shorten the list, "
						"or use --blackout or --loss",
						WAN_MAX_DROPS);
		for (uint64_t i = first; i <= last; i++)
			found[count++] = i;
	}
	if (rc < 0)
		return rc;
	qsort(found, count, sizeof found[0], compare_uint);
	for (size_t i = 0; i < count; i++) {
		if (kept == 0 || list[kept - 1] != found[i])
			list[kept++] = found[i];
	}
	*n = kept;
	return 0;
}

/* FROM-TO. A time may have a dash of its own ("1e-3s"): the cut is where both parts are times. */
static int parse_span(const struct link_value *v, const char *part, struct link_blackout *to)
{
	char from[PART_MAX];

	for (const char *dash = strchr(part, '-'); dash; dash = strchr(dash + 1, '-')) {
		memcpy(from, part, (size_t)(dash - part));
		from[dash - part] = '\0';
		if (units_parse_time_ns(from, &to->from_ns) == 0 &&
		    units_parse_time_ns(dash + 1, &to->to_ns) == 0)
			break;
		if (!strchr(dash + 1, '-'))
			return link_value_wrong(v, part, "not two times: write it like 1s-2.5s");
	}
	if (!strchr(part, '-'))
		return link_value_wrong(v, part, "not two times: write it like 1s-2.5s");
	if (to->from_ns >= to->to_ns || to->to_ns > LINK_PERIOD_MAX)
		return link_value_wrong(v, part, "write the earlier time first, up to 24 h");
	return 0;
}

static int compare_span(const void *a, const void *b)
{
	return compare_uint(&((const struct link_blackout *)a)->from_ns,
			    &((const struct link_blackout *)b)->from_ns);
}

int link_value_blackout(const struct link_value *v, const char *text, uint64_t now_ns,
			struct link_blackout *list, size_t *n)
{
	const char *rest = strcmp(text, "none") == 0 ? NULL : text;
	struct link_blackout found[WAN_MAX_BLACKOUTS];
	char part[PART_MAX];
	size_t count = 0;
	int rc;

	while ((rc = next_part(v, text, &rest, part)) > 0) {
		if (count == WAN_MAX_BLACKOUTS)
			return link_value_wrong(v, text,
						"more than %u blackouts: shorten the "
						"list, or use --outage",
						WAN_MAX_BLACKOUTS);
		if (parse_span(v, part, &found[count]) < 0)
			return -EINVAL;
		count++;
	}
	if (rc < 0)
		return rc;
	qsort(found, count, sizeof found[0], compare_span);
	for (size_t i = 0; i < count; i++) {
		if (i && found[i - 1].to_ns > found[i].from_ns)
			return link_value_wrong(v, text, "two blackouts overlap: join them");
	}
	for (size_t i = 0; i < count; i++)
		list[i] =
			(struct link_blackout){now_ns + found[i].from_ns, now_ns + found[i].to_ns};
	*n = count;
	return 0;
}

int link_value_periodic(const struct link_value *v, const char *text, uint64_t now_ns,
			struct link_periodic *p, uint64_t *delta_ns)
{
	const char *form = delta_ns ? "EVERY,FOR,DELTA or EVERY,FOR,DELTA,FIRST, like "
				      "10s,2s,30ms, or none"
				    : "EVERY,FOR or EVERY,FOR,FIRST, like 60s,500ms, or none";
	struct link_periodic to = {0};
	uint64_t first = 0, delta = 0;
	char part[4][PART_MAX];
	int least = delta_ns ? 3 : 2, n;

	if (strcmp(text, "none") != 0) {
		n = split(v, text, part, least, least + 1, form);
		if (n < 0 || link_value_time(v, part[0], 2, LINK_PERIOD_MAX, &to.every_ns) < 0 ||
		    link_value_time(v, part[1], 1, LINK_PERIOD_MAX, &to.for_ns) < 0 ||
		    (delta_ns && link_value_time(v, part[2], 0, LINK_TIME_MAX, &delta) < 0))
			return -EINVAL;
		if (to.for_ns >= to.every_ns)
			return link_value_wrong(v, text,
						"it would never end: choose FOR below "
						"EVERY");
		first = to.every_ns;
		if (n > least && link_value_time(v, part[least], 0, LINK_PERIOD_MAX, &first) < 0)
			return -EINVAL;
		to.first_ns = now_ns + first;
	}
	*p = to;
	if (delta_ns)
		*delta_ns = delta;
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * What a row of the table is, and why, in a sentence. See table.h. Without stdio: plan/ does no
 * I/O, and this is called for each write.
 */
#include "plan/choose.h"
#include "plan/table.h"

#include "base/bits.h"
#include "base/units.h"

#include <math.h>
#include <stdlib.h>

/* Text that is cut where the buffer ends, and counts on. */
struct text {
	char *buf;
	size_t cap, len;
};

static void put(struct text *t, const char *s)
{
	for (; *s; s++, t->len++) {
		if (t->len + 1 < t->cap)
			t->buf[t->len] = *s;
	}
}

static void put_uint(struct text *t, uint64_t v)
{
	char digits[24], *p = digits + sizeof(digits);

	*--p = '\0';
	do {
		*--p = (char)('0' + v % 10);
		v /= 10;
	} while (v > 0);
	put(t, p);
}

/* "1.0e-03" */
static void put_ratio(struct text *t, double v)
{
	int exponent = v > 0 ? (int)floor(log10(v)) : 0;
	uint64_t tenths = v > 0 ? (uint64_t)llround(v * pow(10, 1 - exponent)) : 0;

	if (tenths == 0) {
		put(t, "0");
		return;
	}
	if (tenths >= 100) {
		tenths /= 10;
		exponent++;
	}
	put_uint(t, tenths / 10);
	put(t, ".");
	put_uint(t, tenths % 10);
	put(t, exponent < 0 ? "e-" : "e+");
	put(t, abs(exponent) < 10 ? "0" : "");
	put_uint(t, (uint64_t)abs(exponent));
}

static void put_link(struct text *t, const struct plan_link *link)
{
	char unit[UNITS_TEXT];

	put(t, "loss ");
	put_ratio(t, link->loss);
	if (link->burst_pkts > 1) {
		put(t, " in bursts of ");
		put_uint(t, (uint64_t)llround(link->burst_pkts));
	}
	put(t, ", ");
	put(t, units_time_text(unit, (uint64_t)llround(link->rtt_s * 1e9)));
	put(t, ", ");
	put(t, units_rate_text(unit, link->bw_bps));
	put(t, ", ");
}

static void put_code(struct text *t, const struct plan_table_row *row, uint64_t pkts)
{
	if (row->coded) {
		put(t, row->xor_code ? "xor (" : "(");
		put_uint(t, row->k);
		put(t, ",");
		put_uint(t, row->m);
		put(t, row->span < pkts ? ") on the last " : ") on all");
		if (row->span < pkts)
			put_uint(t, row->span);
	} else {
		put(t, "no parity");
	}
	if (row->coded && row->depth > 1) {
		put(t, ", depth ");
		put_uint(t, row->depth);
	}
	if (row->copies > 1) {
		put(t, ", late resends ");
		put_uint(t, row->copies);
		put(t, " times");
	}
}

const char *plan_table_reason(const struct plan_table_row *row)
{
	static const char *const whys[] = {
		[PLAN_WHY_RARE] = "hardly any loses a packet too late",
		[PLAN_WHY_SHORT] = "a round trip is cheaper than parity",
		[PLAN_WHY_MODEL] = "an exposed round trip costs more",
		[PLAN_WHY_BUDGET] = "as much as the budget allows",
		[PLAN_WHY_HOPELESS] = "no parity in the budget would do",
	};
	static const char *const rules[] = {
		[PLAN_RULE_HEAVY_LOSS] = "rule for more than 5 % of loss",
		[PLAN_RULE_LOSSY] = "rule for 10 ms and 1e-4",
		[PLAN_RULE_SMALL] = "rule for less than 32 MiB",
		[PLAN_RULE_LARGE] = "rule for 1 GiB and more",
		[PLAN_RULE_MIDDLE] = "rule by distance and loss",
	};

	if (row->why == PLAN_WHY_POLICY)
		return row->rule < SDR_ARRAY_LEN(rules) ? rules[row->rule] : "a rule of thumb";
	return whys[row->why];
}

int plan_table_say(const struct plan_table *t, uint64_t pkts, char *buf, size_t len)
{
	struct text text = {buf, len, 0};
	struct plan_table_row row;

	plan_table_fit(t, pkts, &row);
	put_link(&text, &t->link);
	put_uint(&text, pkts);
	put(&text, pkts == 1 ? " packet: " : " packets: ");
	put_code(&text, &row, pkts);
	put(&text, ": ");
	put(&text, plan_table_reason(&row));
	if (len > 0)
		buf[u64_min(text.len, len - 1)] = '\0';
	return (int)text.len;
}

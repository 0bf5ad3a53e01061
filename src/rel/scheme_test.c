/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "rel/scheme.h"

static struct rel_params parsed(const char *text)
{
	struct rel_params p;
	char why[256];

	if (rel_scheme_parse(text, &p, why, sizeof(why)) < 0)
		fail_msg("%s: %s", text, why);
	assert_string_equal(why, "");
	return p;
}

static const char *name_of(const struct rel_params *p)
{
	static char buf[REL_SCHEME_NAME];

	return rel_scheme_name(p, buf, sizeof(buf));
}

/* Field by field: padding is nobody's. */
static bool same(const struct rel_params *a, const struct rel_params *b)
{
	return a->nack == b->nack && a->rto_multiple == b->rto_multiple && a->repair == b->repair &&
	       a->code == b->code && a->k == b->k && a->m == b->m && a->depth == b->depth &&
	       a->span == b->span && a->copies == b->copies && a->fresh == b->fresh &&
	       a->hybrid == b->hybrid && a->policy == b->policy;
}

static void names_go_round(void **state)
{
	static const char *const names[] = {
		"gbn",
		"sr",
		"sr-nack",
		"gbn:rto=3",
		"sr:rto=1.5",
		"sr-nack:rto=100",
		"sr:rto=1.125",
		"gbn:rto=10",
		"sr:rto=1.001",
		"sr-nack:copies=3,rto=2",
		"ec:32,8",
		"ec:1,254",
		"ec:254,1,depth=65536,span=4294967294,repair=parity,copies=16,rto=99.999",
		"ec-xor:32,8",
		"ec-xor:32,8,span=rtt",
		"hybrid:k=128,m=10",
		"hybrid:k=128,m=127,depth=65536,span=4294967294,repair=missing,copies=16,rto=9",
		"hybrid:k=128,m=10,span=all,copies=1",
		"hybrid:k=128,m=10,depth=1",
		"auto",
		"auto:policy=table",
		"auto:rto=3,policy=table",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct rel_params p = parsed(names[i]);

		assert_string_equal(name_of(&p), names[i]);
	}
}

/* What people may write, and what it is called. */
static void other_words(void **state)
{
	static const char *const words[][2] = {
		{"sr:rto=dyn", "sr"},
		{"sr:rto=003.50", "sr:rto=3.5"},
		{"sr:rto=1.0004", "sr:rto=1"},
		{"sr:rto=99.9996", "sr:rto=100"},
		{"sr-nack:copies=1", "sr-nack"},
		{"sr-nack:rto=2,copies=3", "sr-nack:copies=3,rto=2"},
		{"ec:k=32,m=8", "ec:32,8"},
		{"ec:m=8,k=32", "ec:32,8"},
		{"ec:32,m=8", "ec:32,8"},
		{"ec:depth=4,32,8", "ec:32,8,depth=4"},
		{"ec:32,8,depth=1,span=all,repair=missing,copies=1,rto=dyn", "ec:32,8"},
		{"ec-xor:32,8,repair=missing", "ec-xor:32,8"},
		{"hybrid:128,10,depth=4", "hybrid:k=128,m=10,depth=4"},
		{"hybrid:k=128,m=10,depth=64,span=rtt,repair=parity,copies=4", "hybrid:k=128,m=10"},
		{"auto:policy=model", "auto"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct rel_params p = parsed(words[i][0]);

		assert_string_equal(name_of(&p), words[i][1]);
	}
}

static void fields(void **state)
{
	struct rel_params p = parsed("sr:rto=dyn");

	(void)state;
	assert_true(!p.nack && p.rto_multiple == 0 && p.repair == REL_REPAIR_SELECTIVE);
	assert_true(p.copies == 1 && p.code == REL_CODE_NONE && !rel_scheme_coded(&p));
	p = parsed("sr-nack:rto=3");
	assert_true(p.nack && p.rto_multiple == 3 && p.repair == REL_REPAIR_SELECTIVE);
	p = parsed("gbn");
	assert_true(p.nack && p.repair == REL_REPAIR_GBN);
	p = parsed("ec:32,8");
	assert_true(p.nack && p.code == REL_CODE_RS && p.k == 32 && p.m == 8 && p.depth == 1);
	assert_true(p.span == REL_SPAN_ALL && !p.fresh && !p.hybrid && p.copies == 1);
	assert_true(rel_scheme_coded(&p));
	p = parsed("ec-xor:32,8,span=12,depth=3,copies=2");
	assert_true(p.nack && p.code == REL_CODE_XOR && p.span == 12 && p.depth == 3);
	assert_true(p.copies == 2 && !p.fresh);
	p = parsed("hybrid:k=128,m=10");
	assert_true(p.nack && p.code == REL_CODE_RS && p.k == 128 && p.m == 10 && p.depth == 64);
	assert_true(p.span == REL_SPAN_RTT && p.fresh && p.hybrid && p.copies == 4);
	p = parsed("auto");
	assert_true(p.policy == REL_POLICY_MODEL && p.code == REL_CODE_NONE);
	assert_true(p.nack && p.repair == REL_REPAIR_SELECTIVE && rel_scheme_coded(&p));
	p = parsed("auto:policy=table,rto=2");
	assert_true(p.policy == REL_POLICY_TABLE && p.rto_multiple == 2);
}

/* The text, and what the sentence has to say. */
static const char *const bad[][4] = {
	{"", "'' is no scheme", "gbn, sr, sr-nack, ec-xor:K,M, ec:K,M, hybrid:k=K,m=M or auto"},
	{"s", "'s' is no scheme"},
	{"SR", "'SR' is no scheme"},
	{"sr-", "'sr-' is no scheme"},
	{"sr-nackk", "'sr-nackk' is no scheme"},
	{" sr", "' sr' is no scheme"},
	{"sr ", "'sr ' is no scheme"},
	{"ec,32,8", "'ec,32,8' is no scheme"},
	{"\x01\x02", "'?\?' is no scheme"},
	{"a-name-that-is-so-long-that-nobody-wants-to-read-it-again", "'a-name-that-is", "...' is"},
	{"sr:", "'' stands where a parameter should, of sr: choose copies=1..16, rto=dyn|1..100"},
	{"sr:rto=3,", "'' stands where"},
	{"sr:,rto=3", "'' stands where"},
	{"sr:rto", "'rto' is no parameter of sr: choose copies"},
	{"sr:rto=", "rto='' of sr: choose rto=dyn|1..100 round trips"},
	{"sr:rto=0", "rto='0' of sr: choose"},
	{"sr:rto=0.99", "rto='0.99'"},
	{"sr:rto=0.9996", "rto='0.9996'"},
	{"sr:rto=100.0001", "rto='100.0001'"},
	{"sr:rto=101", "rto='101'"},
	{"sr:rto=-3", "rto='-3'"},
	{"sr:rto=3x", "rto='3x'"},
	{"sr:rto= 3", "rto=' 3'"},
	{"sr:rto=1e1", "rto='1e1'"},
	{"sr:rto=inf", "rto='inf'"},
	{"sr:rto=nan", "rto='nan'"},
	{"sr:rto=0x3", "rto='0x3'"},
	{"sr:rto=3.", "rto='3.'"},
	{"sr:rto=.3", "rto='.3'"},
	{"sr:rto=3..1", "rto='3..1'"},
	{"sr:rto=3.1.2", "rto='3.1.2'"},
	{"sr:rto=3:x", "rto='3:x'"},
	{"sr:rto=99999999999999999999999999999999999999999999999999", "rto='9999", "...'"},
	{"sr:rto=3,rto=4", "rto is given twice, '4' the second time: leave one out"},
	{"sr:timer=3", "'timer' is no parameter of sr: choose copies=1..16, rto=dyn|1..100"},
	{"sr:=3", "'' stands where"},
	{"sr:copies=0", "copies='0' of sr: choose copies=1..16"},
	{"sr:copies=17", "copies='17' of sr: choose copies=1..16"},
	{"sr:copies=1.5", "copies='1.5' of sr"},
	{"sr:copies=99999999999999999999", "copies='99999999999999999999'"},
	{"sr:32,8", "sr has no code, so it takes no K and M ('32'): choose ec:K,M"},
	{"gbn:32,8", "gbn has no code, so it takes no K and M ('32')"},
	{"gbn:k=32,m=8", "'k' is no parameter of gbn"},
	{"sr-nack:depth=4", "'depth' is no parameter of sr-nack"},
	{"sr-nack:span=rtt", "'span' is no parameter of sr-nack"},
	{"auto:32,8", "auto has no code"},
	{"auto:copies=2", "'copies' is no parameter of auto: choose rto=dyn|1..100, policy="},
	{"auto:policy=", "policy='' of auto: choose policy=model|table"},
	{"auto:policy=none", "policy='none' of auto: choose policy=model|table"},
	{"ec:32,8,policy=table", "'policy' is no parameter of ec"},
	{"ec", "ec needs K and M", "write ec:32,8"},
	{"ec:32", "ec needs K and M, data and parity packets of a block: write ec:32,8"},
	{"ec:m=8", "ec needs K and M"},
	{"ec-xor:32", "ec-xor needs K and M", "write ec-xor:32,8"},
	{"hybrid", "hybrid needs K and M", "write hybrid:k=128,m=10, or auto to have them chosen"},
	{"hybrid:m=10", "hybrid needs K and M"},
	{"hybrid:depth=4", "hybrid needs K and M"},
	{"ec:0,8", "k='0' of ec: choose k=1..254"},
	{"ec:32,0", "m='0' of ec: choose m=1..254"},
	{"ec:255,1", "k='255' of ec: choose k=1..254"},
	{"ec:200,100", "k + m = 300 of ec: a block has at most 255 packets: choose fewer"},
	{"ec:128,128", "k + m = 256 of ec: a block has at most 255"},
	{"ec-xor:200,56", "k + m = 256 of ec-xor"},
	{"ec-xor:8,9", "m = 9 of ec-xor is more than k = 8", "choose at most k"},
	{"ec:32,8,9", "'9' is no parameter of ec: choose k=1..254, m=1..254, depth=1..65536"},
	{"ec:k=32,8", "k is given twice, '8' the second time"},
	{"ec:32,8,m=8", "m is given twice"},
	{"ec:32,8x", "m='8x' of ec: choose m=1..254"},
	{"ec:32,x", "'x' is no parameter of ec"},
	{"ec:32, 8", "' 8' is no parameter of ec"},
	{"ec:-32,8", "'-32' is no parameter of ec"},
	{"ec:32,8,depth=0", "depth='0' of ec: choose depth=1..65536"},
	{"ec:32,8,depth=65537", "depth='65537' of ec: choose depth=1..65536"},
	{"ec:32,8,span=0", "span='0' of ec: choose span=all|rtt|PACKETS"},
	{"ec:32,8,span=4294967295", "span='4294967295' of ec"},
	{"ec:32,8,span=most", "span='most' of ec"},
	{"ec:32,8,repair=some", "repair='some' of ec: choose repair=parity|missing"},
	{"ec-xor:32,8,repair=parity", "repair=parity of ec-xor",
	 "choose repair=missing, or ec:K,M"},
	{"ec:32,8,beta=1", "'beta' is no parameter of ec: choose k="},
	{"ec:32,8:depth=4", "'8:depth' is no parameter of ec"},
};

static void mistakes(void **state)
{
	struct rel_params p, untouched;
	char why[512];

	(void)state;
	memset(&p, 0x5a, sizeof(p));
	untouched = p;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(rel_scheme_parse(bad[i][0], &p, NULL, 0), -EINVAL);
		assert_int_equal(rel_scheme_parse(bad[i][0], &p, why, sizeof(why)), -EINVAL);
		assert_memory_equal(&p, &untouched, sizeof(p));
		for (size_t part = 1; part < 4 && bad[i][part]; part++) {
			if (!strstr(why, bad[i][part]))
				fail_msg("%s: '%s' does not say '%s'", bad[i][0], why,
					 bad[i][part]);
		}
	}
	assert_int_equal(rel_scheme_parse(NULL, &p, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "is no scheme: choose"));
}

/* As much of the sentence and of the name as fits, always ended, nothing beyond. */
static void short_buffers(void **state)
{
	struct rel_params p = parsed("hybrid:k=128,m=10,depth=4"), none;
	char full[512], buf[512];

	(void)state;
	assert_int_equal(rel_scheme_parse("sr:copies=17", &none, full, sizeof(full)), -EINVAL);
	for (size_t len = 0; len <= strlen(full) + 1; len++) {
		memset(buf, 'x', sizeof(buf));
		(void)rel_scheme_parse("sr:copies=17", &none, buf, len);
		if (len) {
			assert_int_equal(strlen(buf), len - 1);
			assert_memory_equal(buf, full, len - 1);
		}
		assert_int_equal(buf[len], 'x');
	}
	for (size_t len = 0; len <= 26; len++) {
		memset(buf, 'x', sizeof(buf));
		(void)rel_scheme_name(&p, buf, len);
		if (len)
			assert_memory_equal(buf, "hybrid:k=128,m=10,depth=4", len - 1);
		assert_int_equal(buf[len], 'x');
	}
}

static uint32_t below(struct rng *rng, uint32_t n)
{
	return (uint32_t)rng_below(rng, n);
}

/* A point of the whole space of what is allowed, as rel_scheme_complete() leaves it. */
static struct rel_params draw(struct rng *rng)
{
	struct rel_params p = {.nack = true, .depth = 0, .copies = 1 + below(rng, REL_COPIES_MAX)};

	if (below(rng, 2))
		p.rto_multiple = (1000 + below(rng, 99001)) / 1000.0;
	if (below(rng, 8) == 0) {
		p.policy = below(rng, 2) ? REL_POLICY_MODEL : REL_POLICY_TABLE;
		p.copies = 1;
		return p;
	}
	if (below(rng, 3) == 0) {
		p.nack = below(rng, 2);
		p.repair = p.nack && below(rng, 2) ? REL_REPAIR_GBN : REL_REPAIR_SELECTIVE;
		return p;
	}
	p.code = below(rng, 2) ? REL_CODE_RS : REL_CODE_XOR;
	p.k = 1 + below(rng, 254);
	p.m = 1 + below(rng, 255 - p.k);
	if (p.code == REL_CODE_XOR && p.m > p.k)
		p.m = p.k;
	p.depth = below(rng, 2) ? 1 + below(rng, REL_DEPTH_MAX) : below(rng, 2) ? 1 : 64;
	p.span = below(rng, 4) ? 1 + below(rng, UINT32_MAX - 1) : REL_SPAN_ALL;
	if (below(rng, 4) == 0)
		p.span = REL_SPAN_RTT;
	p.fresh = p.code == REL_CODE_RS && below(rng, 2);
	p.hybrid = p.code == REL_CODE_RS && below(rng, 2);
	return p;
}

static void random_points_go_round(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 6);
	for (int i = 0; i < 200000; i++) {
		struct rel_params p = draw(&rng), complete = p, again;
		const char *name = name_of(&p);
		char why[256];

		assert_true(strlen(name) < REL_SCHEME_NAME - 1);
		if (rel_scheme_parse(name, &again, why, sizeof(why)) < 0)
			fail_msg("%s: %s", name, why);
		if (!same(&p, &again))
			fail_msg("%s parses to %s", name, name_of(&again));
		assert_int_equal(rel_scheme_complete(&complete), 0);
		assert_true(same(&p, &complete));
	}
}

/* Of two different points no name is the same. */
static void names_tell_apart(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 7);
	for (int i = 0; i < 20000; i++) {
		struct rel_params p = draw(&rng), q = p;
		char name[REL_SCHEME_NAME];

		switch (below(&rng, 4)) {
		case 0:
			q.depth = q.depth > 1 ? q.depth - 1 : q.depth ? q.depth + 1 : 0;
			break;
		case 1:
			q.fresh = !q.fresh && q.code == REL_CODE_RS;
			break;
		case 2:
			q.hybrid = !q.hybrid && q.code == REL_CODE_RS;
			break;
		default:
			q.rto_multiple = q.rto_multiple > 0 ? 0 : 3;
		}
		strcpy(name, name_of(&p));
		assert_int_equal(strcmp(name, name_of(&q)) == 0, same(&p, &q));
	}
}

static int completed(struct rel_params p, struct rel_params *out)
{
	*out = p;
	return rel_scheme_complete(out);
}

static void structs_are_completed(void **state)
{
	struct rel_params p;

	(void)state;
	assert_int_equal(completed((struct rel_params){0}, &p), 0);
	assert_string_equal(name_of(&p), "sr");
	assert_int_equal(p.copies, 1);
	assert_int_equal(completed((struct rel_params){.code = REL_CODE_RS, .k = 4, .m = 2}, &p),
			 0);
	assert_true(p.nack && p.depth == 1 && p.copies == 1 && p.span == REL_SPAN_ALL);
	assert_int_equal(completed((struct rel_params){.repair = REL_REPAIR_GBN}, &p), 0);
	assert_true(p.nack);
	/* auto chooses what else there is. */
	assert_int_equal(completed((struct rel_params){.policy = REL_POLICY_MODEL,
						       .code = REL_CODE_RS,
						       .k = 4,
						       .m = 2,
						       .hybrid = true,
						       .copies = 3,
						       .rto_multiple = 2},
				   &p),
			 0);
	assert_true(p.code == REL_CODE_NONE && p.k == 0 && p.copies == 1 && !p.hybrid);
	assert_string_equal(name_of(&p), "auto:rto=2");
	assert_int_equal(completed((struct rel_params){.rto_multiple = 1.0004}, &p), 0);
	assert_true(p.rto_multiple == 1);
}

static void structs_are_refused(void **state)
{
	static const struct rel_params wrong[] = {
		{.repair = REL_REPAIR_GBN, .code = REL_CODE_RS, .k = 4, .m = 2},
		{.repair = (enum rel_repair)2},
		{.code = (enum rel_code)3, .k = 4, .m = 2},
		{.policy = (enum rel_policy)3},
		{.code = REL_CODE_RS, .k = 0, .m = 2},
		{.code = REL_CODE_RS, .k = 4, .m = 0},
		{.code = REL_CODE_RS, .k = 128, .m = 128},
		{.code = REL_CODE_RS, .k = UINT32_MAX, .m = 2},
		{.code = REL_CODE_RS, .k = 2, .m = UINT32_MAX},
		{.code = REL_CODE_XOR, .k = 4, .m = 5},
		{.code = REL_CODE_XOR, .k = 4, .m = 2, .fresh = true},
		{.code = REL_CODE_XOR, .k = 4, .m = 2, .hybrid = true},
		{.code = REL_CODE_RS, .k = 4, .m = 2, .depth = REL_DEPTH_MAX + 1},
		{.hybrid = true},
		{.copies = REL_COPIES_MAX + 1},
		{.rto_multiple = 0.5},
		{.rto_multiple = -1},
		{.rto_multiple = 100.5},
		{.rto_multiple = NAN},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct rel_params p;

		memcpy(&p, &wrong[i], sizeof(p)); /* padding too */
		if (rel_scheme_complete(&p) != -EINVAL)
			fail_msg("case %zu is taken as %s", i, name_of(&p));
		assert_memory_equal(&p, &wrong[i], sizeof(p));
	}
}

static void words_begin_names(void **state)
{
	size_t n = 0;

	(void)state;
	for (; rel_scheme_words[n]; n++) {
		struct rel_params p;
		char text[64];

		/* A code is missing, or nothing is. */
		if (rel_scheme_parse(rel_scheme_words[n], &p, NULL, 0) < 0) {
			snprintf(text, sizeof(text), "%s:4,2", rel_scheme_words[n]);
			p = parsed(text);
		}
		assert_memory_equal(name_of(&p), rel_scheme_words[n], strlen(rel_scheme_words[n]));
	}
	assert_int_equal(n, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_go_round),
		cmocka_unit_test(other_words),
		cmocka_unit_test(fields),
		cmocka_unit_test(mistakes),
		cmocka_unit_test(short_buffers),
		cmocka_unit_test(random_points_go_round),
		cmocka_unit_test(names_tell_apart),
		cmocka_unit_test(structs_are_completed),
		cmocka_unit_test(structs_are_refused),
		cmocka_unit_test(words_begin_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

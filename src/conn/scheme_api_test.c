/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schemes of <sdr/conn.h>: text, struct, and the engine's parameters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "conn/scheme_api.h"

static void text_to_struct_and_back(void **state)
{
	struct sdr_scheme s = {.size = sizeof(s)};
	char name[112], why[128];

	(void)state;
	assert_int_equal(sdr_scheme_parse("hybrid:128,10,depth=4,rto=2.5", &s, why, sizeof(why)),
			 0);
	assert_true(s.size == sizeof(s) && s.nack && s.fresh && s.hybrid && !s.go_back_n);
	assert_true(s.code == SDR_CODE_RS && s.k == 128 && s.m == 10 && s.depth == 4);
	assert_true(s.span == SDR_SPAN_RTT && s.copies == 4 && s.rto_multiple == 2.5);
	assert_int_equal(s.policy, SDR_POLICY_NONE);
	assert_int_equal(sdr_scheme_name(&s, name, sizeof(name)), 0);
	assert_string_equal(name, "hybrid:k=128,m=10,depth=4,rto=2.5");

	assert_int_equal(sdr_scheme_parse("ec-xor:32,8,span=12", &s, NULL, 0), 0);
	assert_true(s.code == SDR_CODE_XOR && s.span == 12 && !s.hybrid && !s.fresh);
	assert_int_equal(sdr_scheme_parse("gbn", &s, NULL, 0), 0);
	assert_true(s.go_back_n && s.code == SDR_CODE_NONE && s.k == 0);
	assert_int_equal(sdr_scheme_parse("auto:policy=table", &s, NULL, 0), 0);
	assert_int_equal(s.policy, SDR_POLICY_TABLE);
	assert_int_equal(sdr_scheme_name(&s, name, sizeof(name)), 0);
	assert_string_equal(name, "auto:policy=table");
}

static void mistakes(void **state)
{
	struct sdr_scheme s = {.size = sizeof(s)}, untouched = s;
	char why[128];

	(void)state;
	assert_int_equal(sdr_scheme_parse("ec:200,100", &s, why, sizeof(why)), -EINVAL);
	assert_string_equal(why,
			    "k + m = 300 of ec: a block has at most 255 packets: choose fewer");
	assert_memory_equal(&s, &untouched, sizeof(s));
	assert_int_equal(sdr_scheme_parse("tcp", &s, NULL, 0), -EINVAL);
}

/* What an application may leave out, and what it may not say. */
static void structs(void **state)
{
	static const struct {
		struct sdr_scheme s;
		const char *name; /* NULL: refused */
	} cases[] = {
		{{0}, "sr"},
		{{.nack = 1}, "sr-nack"},
		{{.go_back_n = 1}, "gbn"},
		{{.code = SDR_CODE_RS, .k = 32, .m = 8}, "ec:32,8"},
		{{.code = SDR_CODE_XOR, .k = 32, .m = 8, .depth = 3}, "ec-xor:32,8,depth=3"},
		{{.policy = SDR_POLICY_MODEL}, "auto"},
		{{.code = SDR_CODE_RS, .k = 32, .m = 8, .go_back_n = 1}, NULL},
		{{.code = SDR_CODE_RS, .k = 250, .m = 8}, NULL},
		{{.code = (enum sdr_scheme_code)7, .k = 2, .m = 1}, NULL},
		{{.policy = (enum sdr_scheme_policy)7}, NULL},
		{{.rto_multiple = 0.5}, NULL},
		{{.copies = 17}, NULL},
	};
	char name[112];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sdr_scheme s = cases[i].s;
		int err;

		s.size = sizeof(s);
		err = sdr_scheme_name(&s, name, sizeof(name));
		assert_int_equal(err, cases[i].name ? 0 : -EINVAL);
		if (cases[i].name)
			assert_string_equal(name, cases[i].name);
	}
}

/* A caller of another release has a struct of another size. */
static void sizes(void **state)
{
	struct sdr_scheme s, before;
	char name[112];

	(void)state;
	memset(&s, 0x5a, sizeof(s));
	s.size = offsetof(struct sdr_scheme, k);
	before = s;
	assert_int_equal(sdr_scheme_parse("ec:32,8", &s, NULL, 0), 0);
	assert_int_equal(s.code, SDR_CODE_RS);
	assert_int_equal(s.size, offsetof(struct sdr_scheme, k));
	assert_memory_equal(&s.k, &before.k, sizeof(s) - offsetof(struct sdr_scheme, k));
	/* What it does not know of is not there: a code without k and m is none. */
	assert_int_equal(sdr_scheme_name(&s, name, sizeof(name)), -EINVAL);
	s = (struct sdr_scheme){.size = sizeof(s), .nack = 1};
	assert_int_equal(sdr_scheme_name(&s, name, sizeof("sr-nack")), 0);
	assert_int_equal(sdr_scheme_name(&s, name, sizeof("sr-nack") - 1), -ENOSPC);
	assert_int_equal(sdr_scheme_name(&s, name, 0), -ENOSPC);
}

static void parameters_go_round(void **state)
{
	static const char *const texts[] = {"gbn",
					    "sr:rto=3",
					    "sr-nack:copies=2",
					    "ec:4,2,span=rtt,repair=parity",
					    "ec-xor:8,2,depth=9",
					    "hybrid:k=9,m=3,span=all",
					    "auto"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct sdr_scheme s = {.size = sizeof(s)};
		char name[REL_SCHEME_NAME];
		struct rel_params p, q;

		assert_int_equal(rel_scheme_parse(texts[i], &p, NULL, 0), 0);
		scheme_from_params(&p, &s);
		assert_int_equal(scheme_to_params(&s, &q), 0);
		assert_string_equal(rel_scheme_name(&q, name, sizeof(name)), texts[i]);
	}
	assert_string_equal(sdr_scheme_names()[0], "gbn");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_to_struct_and_back),
		cmocka_unit_test(mistakes),
		cmocka_unit_test(structs),
		cmocka_unit_test(sizes),
		cmocka_unit_test(parameters_go_round),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

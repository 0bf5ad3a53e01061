/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "rel/scheme.h"

static void names_go_round(void **state)
{
	(void)state;
	static const char *const names[] = {"gbn",	    "sr",	  "sr-nack",
					    "gbn:rto=3",    "sr:rto=1.5", "sr-nack:rto=100",
					    "sr:rto=1.125", "gbn:rto=10"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct rel_params params;
		char buf[REL_SCHEME_NAME];
		assert_int_equal(rel_scheme_parse(names[i], &params, NULL, 0), 0);
		assert_string_equal(rel_scheme_name(&params, buf, sizeof(buf)), names[i]);
	}
}

static void fields(void **state)
{
	(void)state;
	struct rel_params p;
	assert_int_equal(rel_scheme_parse("sr:rto=dyn", &p, NULL, 0), 0);
	assert_true(!p.nack && p.rto_multiple == 0 && p.repair == REL_REPAIR_SELECTIVE);
	assert_int_equal(rel_scheme_parse("sr-nack:rto=3", &p, NULL, 0), 0);
	assert_true(p.nack && p.rto_multiple == 3 && p.repair == REL_REPAIR_SELECTIVE);
	assert_int_equal(rel_scheme_parse("gbn", &p, NULL, 0), 0);
	assert_true(p.nack && p.repair == REL_REPAIR_GBN);
}

static void rejects(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		"s",
		"SR",
		"sr-",
		"sr-nackk",
		"sr:",
		"sr:rto",
		"sr:rto=",
		"sr:rto=0",
		"sr:rto=0.99",
		"sr:rto=101",
		"sr:rto=-3",
		"sr:rto=3x",
		"sr:rto= 3",
		"sr:rto=1e1",
		"sr:rto=inf",
		"sr:rto=nan",
		"sr:rto=0x3",
		"sr:rto=3.",
		"sr:rto=3..1",
		"sr:rto=3:x",
		"sr:timer=3",
		" sr",
		"sr ",
		"sr:rto=3.1.2",
		"sr:rto=99999999999999999999999999999999999999999999999999"};
	struct rel_params p, untouched;
	memset(&p, 0x5a, sizeof(p));
	untouched = p;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(rel_scheme_parse(bad[i], &p, NULL, 0), -EINVAL);
		assert_memory_equal(&p, &untouched, sizeof(p));
	}
	assert_int_equal(rel_scheme_parse(NULL, &p, NULL, 0), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_go_round),
		cmocka_unit_test(fields),
		cmocka_unit_test(rejects),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

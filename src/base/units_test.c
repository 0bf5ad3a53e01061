// SPDX-License-Identifier: Apache-2.0
/*
 * Tables around every edge of the unit parsers and printers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>

#include "base/bits.h"
#include "base/rng.h"
#include "base/units.h"

#define UNTOUCHED UINT64_C(0xdeadbeef)

struct parse_case {
	const char *text;
	int err;
	uint64_t value;
};

static void check_table(int (*parse)(const char *, uint64_t *), const struct parse_case *cases,
			size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t out = UNTOUCHED;
		int err = parse(cases[i].text, &out);

		if (err != cases[i].err || out != (err ? UNTOUCHED : cases[i].value))
			fail_msg("'%s': %d, %llu", cases[i].text, err, (unsigned long long)out);
	}
	assert_int_equal(parse(NULL, &(uint64_t){0}), -EINVAL);
}

static void test_time(void **state)
{
	static const struct parse_case cases[] = {
		{"0", 0, 0},
		{"1", 0, NS_PER_S},
		{"25ms", 0, 25 * NS_PER_MS},
		{"25 ms", 0, 25 * NS_PER_MS},
		{"0.1ms", 0, 100000},
		{".5us", 0, 500},
		{"1.s", 0, NS_PER_S},
		{"1e3us", 0, NS_PER_MS},
		{"1E-3s", 0, NS_PER_MS},
		{"1.5m", 0, 90 * NS_PER_S},
		{"2min", 0, 120 * NS_PER_S},
		{"1h", 0, 3600 * NS_PER_S},
		{"0.5ns", 0, 1},
		{"1.4999ns", 0, 1},
		{"1.5ns", 0, 2},
		{"0ns", 0, 0},
		{"0e99", 0, 0},
		{"0.4ns", -ERANGE, 0},
		{"1e-30s", -ERANGE, 0},
		{"1e-99999999999s", -ERANGE, 0},
		{"18446744073709551615ns", 0, UINT64_MAX},
		{"18446744073709551616ns", -ERANGE, 0},
		{"99999999999999999999999ns", -ERANGE, 0},
		{"18446744073s", 0, UINT64_C(18446744073000000000)},
		{"18446744074s", -ERANGE, 0},
		{"18446744073709551616.0ns", -ERANGE, 0},
		{"184467440737095516190ns", -ERANGE, 0},
		{"184467440737095516190e-1ns", -ERANGE, 0},
		{"1844674407370955161900e-3ns", 0, UINT64_C(1844674407370955162)},
		{"1e99999999999s", -ERANGE, 0},
		{"0000000000000000000000000000001s", 0, NS_PER_S},
		{"0.00000000000000000000000000000000001e35s", 0, NS_PER_S},
		{"", -EINVAL, 0},
		{" 1s", -EINVAL, 0},
		{"ms", -EINVAL, 0},
		{".", -EINVAL, 0},
		{".ms", -EINVAL, 0},
		{"-1s", -EINVAL, 0},
		{"+1s", -EINVAL, 0},
		{"1e", -EINVAL, 0},
		{"1e+", -EINVAL, 0},
		{"1.2.3s", -EINVAL, 0},
		{"1 s ", -EINVAL, 0},
		{"1sec", -EINVAL, 0},
		{"1MS", -EINVAL, 0},
		{"0x10", -EINVAL, 0},
		{"inf", -EINVAL, 0},
		{"nan", -EINVAL, 0},
		{"1,5s", -EINVAL, 0},
	};

	(void)state;
	check_table(units_parse_time_ns, cases, SDR_ARRAY_LEN(cases));
}

static void test_size(void **state)
{
	static const struct parse_case cases[] = {
		{"0", 0, 0},
		{"1", 0, 1},
		{"512B", 0, 512},
		{"1KB", 0, 1000},
		{"1kB", 0, 1000},
		{"1K", 0, 1024},
		{"4k", 0, 4096},
		{"1KiB", 0, 1024},
		{"128MiB", 0, UINT64_C(128) << 20},
		{"128mib", 0, UINT64_C(128) << 20},
		{"1.5GiB", 0, UINT64_C(3) << 29},
		{"1GB", 0, 1000000000},
		{"1e9", 0, 1000000000},
		{"2T", 0, UINT64_C(2) << 40},
		{"3TB", 0, UINT64_C(3000000000000)},
		{"16777215TiB", 0, UINT64_C(16777215) << 40},
		{"16777216TiB", -ERANGE, 0},
		{"1e20", -ERANGE, 0},
		{"1P", -EINVAL, 0},
		{"1KiBs", -EINVAL, 0},
		{"1Ki", -EINVAL, 0},
		{"K", -EINVAL, 0},
		{"-1", -EINVAL, 0},
	};

	(void)state;
	check_table(units_parse_size_bytes, cases, SDR_ARRAY_LEN(cases));
}

static void test_rate(void **state)
{
	static const struct parse_case cases[] = {
		{"0", 0, 0},
		{"1000", 0, 1000},
		{"1bit", 0, 1},
		{"400Gbit", 0, UINT64_C(400000000000)},
		{"400Gbit/s", 0, UINT64_C(400000000000)},
		{"400 Gbit/s", 0, UINT64_C(400000000000)},
		{"400Gbps", 0, UINT64_C(400000000000)},
		{"400Gb/s", 0, UINT64_C(400000000000)},
		{"1.6Tbit", 0, UINT64_C(1600000000000)},
		{"10kbit", 0, 10000},
		{"10Kbit", 0, 10000},
		{"10Mbitps", 0, 10000000},
		{"1Kibit", 0, 1024},
		{"1B/s", 0, 8},
		{"1KB/s", 0, 8000},
		{"1MiB/s", 0, UINT64_C(8) << 20},
		{"1.5MB/s", 0, 12000000},
		{"1GBps", 0, UINT64_C(8000000000)},
		{"18446745Tbit", -ERANGE, 0},
		{"18446744Tbit", 0, UINT64_C(18446744000000000000)},
		{"1.4Mbit/s", 0, 1400000},
		{"1G", -EINVAL, 0},
		{"1MiB", -EINVAL, 0},
		{"1gbit", -EINVAL, 0},
		{"1mbit", -EINVAL, 0},
		{"1bit/", -EINVAL, 0},
		{"/s", -EINVAL, 0},
		{"", -EINVAL, 0},
	};

	(void)state;
	check_table(units_parse_rate_bps, cases, SDR_ARRAY_LEN(cases));
}

static void test_ratio(void **state)
{
	static const struct {
		const char *text;
		int err;
		double value;
	} cases[] = {
		{"0", 0, 0},
		{"1", 0, 1},
		{"0.01", 0, 0.01},
		{"1%", 0, 0.01},
		{"1e-5", 0, 1e-5},
		{"0.1%", 0, 0.001},
		{"100%", 0, 1},
		{"1e-7 %", 0, 1e-9},
		{"1e-400", 0, 0},
		{".5", 0, 0.5},
		{"1.0000000000", 0, 1},
		{"0.333333333333333333333333", 0, 1.0 / 3},
		{"1.0001", -ERANGE, 0},
		{"100.1%", -ERANGE, 0},
		{"1e400", -ERANGE, 0},
		{"", -EINVAL, 0},
		{"%", -EINVAL, 0},
		{"-0.1", -EINVAL, 0},
		{"0.1x", -EINVAL, 0},
		{"nan", -EINVAL, 0},
		{"1%%", -EINVAL, 0},
	};

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(cases); i++) {
		double out = -7;
		int err = units_parse_ratio(cases[i].text, &out);
		double want = err ? -7 : cases[i].value;

		if (err != cases[i].err || fabs(out - want) > 1e-15 * fabs(want))
			fail_msg("'%s': %d, %.17g", cases[i].text, err, out);
	}
}

static void test_uint(void **state)
{
	static const struct {
		const char *text;
		uint64_t min, max;
		int err;
		uint64_t value;
	} cases[] = {
		{"0", 0, 0, 0, 0},
		{"7", 7, 7, 0, 7},
		{"007", 0, 9, 0, 7},
		{"6", 7, 9, -ERANGE, 0},
		{"10", 7, 9, -ERANGE, 0},
		{"18446744073709551615", 0, UINT64_MAX, 0, UINT64_MAX},
		{"18446744073709551616", 0, UINT64_MAX, -ERANGE, 0},
		{"99999999999999999999999", 0, UINT64_MAX, -ERANGE, 0},
		{"", 0, 9, -EINVAL, 0},
		{"-1", 0, 9, -EINVAL, 0},
		{"+1", 0, 9, -EINVAL, 0},
		{"1 ", 0, 9, -EINVAL, 0},
		{"1.0", 0, 9, -EINVAL, 0},
		{"0x1", 0, 9, -EINVAL, 0},
		{"99999999999999999999999x", 0, 9, -EINVAL, 0},
	};

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(cases); i++) {
		uint64_t out = UNTOUCHED;
		int err = units_parse_uint(cases[i].text, cases[i].min, cases[i].max, &out);

		if (err != cases[i].err || out != (err ? UNTOUCHED : cases[i].value))
			fail_msg("'%s': %d, %llu", cases[i].text, err, (unsigned long long)out);
	}
}

static void test_time_text(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
		{0, "0 ns"},
		{999, "999 ns"},
		{1000, "1.00 us"},
		{9994, "9.99 us"},
		{9996, "10.0 us"},
		{99960, "100 us"},
		{999499, "999 us"},
		{999501, "1.00 ms"},
		{25 * NS_PER_MS, "25.0 ms"},
		{NS_PER_S, "1.00 s"},
		{90 * NS_PER_S, "90.0 s"},
		{100 * NS_PER_S, "1.67 m"},
		{90 * 60 * NS_PER_S, "90.0 m"},
		{7200 * NS_PER_S, "2.00 h"},
		{UINT64_MAX, "5124096 h"},
	};
	char buf[UNITS_TEXT];

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(cases); i++)
		assert_string_equal(units_time_text(buf, cases[i].ns), cases[i].text);
}

static void test_size_text(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{0, "0 B"},
		{1023, "1023 B"},
		{1024, "1.00 KiB"},
		{1536, "1.50 KiB"},
		{UINT64_C(1023) << 10, "1023 KiB"},
		{(UINT64_C(1) << 20) - 1, "1.00 MiB"},
		{UINT64_C(128) << 20, "128 MiB"},
		{UINT64_C(1) << 30, "1.00 GiB"},
		{UINT64_MAX, "16.0 EiB"},
	};
	char buf[UNITS_TEXT];

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(cases); i++)
		assert_string_equal(units_size_text(buf, cases[i].bytes), cases[i].text);
}

static void test_rate_text(void **state)
{
	static const struct {
		double bps;
		const char *text;
	} cases[] = {
		{0, "0 bit/s"},		  {-1, "0 bit/s"},	 {NAN, "0 bit/s"},
		{1, "1.00 bit/s"},	  {999, "999 bit/s"},	 {999.6, "1.00 Kbit/s"},
		{9.41e9, "9.41 Gbit/s"},  {400e9, "400 Gbit/s"}, {1.6e12, "1.60 Tbit/s"},
		{INFINITY, "inf Ebit/s"},
	};
	char buf[UNITS_TEXT];

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(cases); i++)
		assert_string_equal(units_rate_text(buf, cases[i].bps), cases[i].text);
	(void)units_rate_text(buf, 1e308);
}

/* What is printed reads back within the half of its last digit. */
static void test_text_reads_back(void **state)
{
	char buf[UNITS_TEXT];
	struct rng r;

	(void)state;
	rng_init(&r, 3);
	for (int i = 0; i < 20000; i++) {
		uint64_t v = rng_next(&r) >> (4 + rng_below(&r, 60)), back = 0;

		assert_int_equal(units_parse_time_ns(units_time_text(buf, v), &back), 0);
		assert_true(fabs((double)back - (double)v) <= 0.0051 * (double)v);
		assert_int_equal(
			units_parse_rate_bps(units_rate_text(buf, (double)(v >> 10)), &back),
			v >> 10 >= UINT64_C(999500000000000) ? -EINVAL : 0);
		if (v >> 40 < 1023) {
			assert_int_equal(units_parse_size_bytes(units_size_text(buf, v), &back), 0);
			assert_true(fabs((double)back - (double)v) <= 0.0051 * (double)v);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_ratio),
		cmocka_unit_test(test_uint),
		cmocka_unit_test(test_time_text),
		cmocka_unit_test(test_size_text),
		cmocka_unit_test(test_rate_text),
		cmocka_unit_test(test_text_reads_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * sdr_strerror: every code of ours, the kernel's, numbers that nobody knows, threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

#include <sdr/err.h>

static void test_own_codes(void **state)
{
	(void)state;
#define CHECK_TEXT(name, number, text)                         \
	assert_true((number) > 4095);                          \
	assert_string_equal(sdr_strerror(SDR_E_##name), text); \
	assert_string_equal(sdr_strerror(-SDR_E_##name), text);
	SDR_ERRORS(CHECK_TEXT)
#undef CHECK_TEXT
}

static void test_kernel_codes(void **state)
{
	(void)state;
	assert_string_equal(sdr_strerror(0), "success");
	assert_string_equal(sdr_strerror(-ENOENT), strerror(ENOENT));
	assert_string_equal(sdr_strerror(EAGAIN), strerror(EAGAIN));
}

static void test_unknown(void **state)
{
	static const int numbers[] = {4000, 4095, 4096, 4100, 9999, INT_MAX, -INT_MAX, INT_MIN};

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		const char *text = sdr_strerror(numbers[i]);

		assert_non_null(text);
		assert_true(strlen(text) > strlen("unknown error"));
	}
	assert_string_equal(sdr_strerror(-9999), "unknown error 9999");
}

static void *ask_other(void *arg)
{
	(void)arg;
	return (void *)(uintptr_t)(strcmp(sdr_strerror(7777), "unknown error 7777") == 0);
}

static void test_thread_keeps_its_text(void **state)
{
	const char *mine = sdr_strerror(8888);
	pthread_t other;
	void *ok = NULL;

	(void)state;
	assert_int_equal(pthread_create(&other, NULL, ask_other, NULL), 0);
	assert_int_equal(pthread_join(other, &ok), 0);
	assert_non_null(ok);
	assert_string_equal(mine, "unknown error 8888");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_codes),
		cmocka_unit_test(test_kernel_codes),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_thread_keeps_its_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

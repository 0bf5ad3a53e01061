// SPDX-License-Identifier: Apache-2.0
/*
 * The system allocator: alignment, zeroing, and sizes at both ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/bits.h"

static void test_aligned_and_zeroed(void **state)
{
	static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 1000003};

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(sizes); i++) {
		unsigned char *p = alloc_zeroed(&sdr_alloc_system, sizes[i]);

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % 64, 0);
		for (size_t b = 0; b < sizes[i]; b++) {
			assert_int_equal(p[b], 0);
			p[b] = 0xa5; /* so that a recycled block shows a missing memset */
		}
		alloc_free(&sdr_alloc_system, p);
	}
	alloc_free(&sdr_alloc_system, NULL);
}

static void test_size_that_would_wrap(void **state)
{
	(void)state;
	assert_null(alloc_zeroed(&sdr_alloc_system, SIZE_MAX));
	assert_null(alloc_zeroed(&sdr_alloc_system, SIZE_MAX - 63));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_aligned_and_zeroed),
		cmocka_unit_test(test_size_that_would_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

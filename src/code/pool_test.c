// SPDX-License-Identifier: Apache-2.0
/* The pool: no buffer twice, none overlapping, exhaustion and memory counted. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc_failing.h"
#include "base/bits.h"
#include "base/rng.h"
#include "code/pool.h"

#define COUNT 70u

static void test_all_of_it(void **state)
{
	static const size_t sizes[] = {1, 64, 65, 1436, 4096};

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(sizes); i++) {
		uint8_t *held[COUNT];
		struct code_pool p;
		void *more = &p;

		assert_int_equal(code_pool_init(&p, &sdr_alloc_system, COUNT, sizes[i]), 0);
		for (uint32_t n = 0; n < COUNT; n++) {
			assert_int_equal(code_pool_get(&p, (void **)&held[n]), 0);
			assert_int_equal((uintptr_t)held[n] % 64, 0);
			memset(held[n], (int)n, sizes[i]);
			code_pool_check(&p);
		}
		assert_int_equal(code_pool_get(&p, &more), -EAGAIN);
		assert_ptr_equal(more, &p);
		assert_int_equal(p.exhausted, 1);
		assert_int_equal(p.peak, COUNT);
		for (uint32_t n = 0; n < COUNT; n++) {
			for (size_t b = 0; b < sizes[i]; b++)
				assert_int_equal(held[n][b], n);
			code_pool_put(&p, held[n]);
			code_pool_check(&p);
		}
		assert_int_equal(code_pool_used(&p), 0);
		code_pool_fini(&p);
	}
}

static void test_random(void **state)
{
	void *held[COUNT];
	uint32_t n = 0;
	uint64_t refused = 0;
	struct code_pool p;
	struct rng rng;

	(void)state;
	rng_init(&rng, 1);
	assert_int_equal(code_pool_init(&p, &sdr_alloc_system, COUNT, 100), 0);
	for (int i = 0; i < 20000; i++) {
		/* Phases of growth and of shrinking, so that both ends are reached. */
		if (rng_below(&rng, 10) < (i / 500 % 2 ? 3u : 7u)) {
			void *got;
			int err = code_pool_get(&p, &got);

			assert_int_equal(err, n == COUNT ? -EAGAIN : 0);
			refused += err != 0;
			for (uint32_t j = 0; j < n && !err; j++)
				assert_ptr_not_equal(held[j], got);
			if (!err)
				held[n++] = got;
		} else if (n > 0) {
			uint32_t at = (uint32_t)rng_below(&rng, n);

			code_pool_put(&p, held[at]);
			held[at] = held[--n];
		}
		assert_int_equal(code_pool_used(&p), n);
		code_pool_check(&p);
	}
	assert_true(refused > 0);
	assert_int_equal(p.exhausted, refused);
	code_pool_fini(&p);
}

static void test_no_memory(void **state)
{
	struct alloc_failing f = {0};
	const struct sdr_alloc alloc = alloc_failing(&f);
	struct code_pool p;

	(void)state;
	for (int n = 0; n < 3; n++) {
		f.left = n;
		assert_int_equal(code_pool_init(&p, &alloc, 4, 64), -ENOMEM);
		assert_int_equal(f.out, 0);
	}
	f.left = 3;
	assert_int_equal(code_pool_init(&p, &alloc, 4, 64), 0);
	code_pool_fini(&p);
	assert_int_equal(f.out, 0);
	assert_int_equal(code_pool_init(&p, &alloc, 0, 64), -EINVAL);
	assert_int_equal(code_pool_init(&p, &alloc, 4, 0), -EINVAL);
	assert_int_equal(code_pool_init(&p, &alloc, 4, SIZE_MAX / 4), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_of_it),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

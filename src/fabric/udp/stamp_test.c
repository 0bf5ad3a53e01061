/* SPDX-License-Identifier: Apache-2.0 */
/* Ages by the kernel's stamps, while the wall clock is set. */
#include "fabric/udp/stamp.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define SEC UINT64_C(1000000000)
#define WALL (1700000000 * SEC)

static void ages(void **state)
{
	struct stamp_clock c = {0};

	(void)state;
	stamp_clock_set(&c, 5 * SEC, WALL);
	assert_int_equal(stamp_age_ns(&c, WALL - 3 * MS), 3 * MS);
	assert_int_equal(stamp_age_ns(&c, WALL), 0);
	assert_int_equal(stamp_age_ns(&c, WALL + MS), 0); /* not come yet */
	assert_int_equal(stamp_age_ns(&c, 0), 0);	  /* none */
	assert_int_equal(stamp_age_ns(&c, WALL - SEC), 0);
	/* Slewed: both clocks are. Read a little apart. */
	stamp_clock_set(&c, 3605 * SEC, WALL + 3600 * SEC + 30 * US);
	assert_int_equal(stamp_age_ns(&c, WALL + 3600 * SEC), 30 * US);
}

/* For as long as a packet of before may still be waiting, on any socket. */
static void steps(void **state)
{
	static const int64_t by[] = {
		300 * 1000000, -300 * 1000000,	       200000,
		-200000,       INT64_C(3600000000000), INT64_C(-3600000000000)};

	(void)state;
	for (size_t i = 0; i < sizeof(by) / sizeof(by[0]); i++) {
		struct stamp_clock c = {0};
		uint64_t wall = WALL + (uint64_t)by[i];

		stamp_clock_set(&c, 5 * SEC, WALL);
		stamp_clock_set(&c, 5 * SEC + 10 * MS, wall + 10 * MS);
		assert_int_equal(stamp_age_ns(&c, WALL + 9 * MS), 0);
		assert_int_equal(stamp_age_ns(&c, wall + 9 * MS), 0);
		stamp_clock_set(&c, 6 * SEC, wall + SEC);
		assert_int_equal(stamp_age_ns(&c, WALL + 5 * MS), 0);
		assert_int_equal(stamp_age_ns(&c, wall + SEC - MS), 0);
		stamp_clock_set(&c, 6 * SEC + 10 * MS, wall + SEC + 10 * MS);
		assert_int_equal(stamp_age_ns(&c, wall + SEC), 10 * MS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ages),
		cmocka_unit_test(steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

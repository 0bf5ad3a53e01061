// SPDX-License-Identifier: Apache-2.0
/* The cache against a list in order of use. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc_failing.h"
#include "base/rng.h"
#include "code/cache.h"

#define SLOT_BYTES 24u
#define SLOTS_MAX 9u

/* The newest first. */
struct twin {
	uint32_t n, most;
	uint32_t key[SLOTS_MAX];
};

static bool twin_use(struct twin *t, uint32_t key)
{
	uint32_t at = 0;

	while (at < t->n && t->key[at] != key)
		at++;
	bool found = at < t->n;

	if (!found) {
		if (t->n < t->most)
			t->n++;
		at = t->n - 1;
	}
	memmove(t->key + 1, t->key, at * sizeof(t->key[0]));
	t->key[0] = key;
	return found;
}

/* Keys that differ in one field only. */
static struct code_cache_key key_of(uint32_t n)
{
	struct code_cache_key key = {.count = 5, .rows = 1};

	switch (n % 5) {
	case 0:
		code_set_add(&key.erased, n);
		break;
	case 1:
		code_set_add(&key.parity, n);
		break;
	case 2:
		key.count = n + 100;
		break;
	case 3:
		key.first = n + 100;
		break;
	default:
		key.rows = n + 100;
	}
	return key;
}

static void test_against_twin(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 1);
	for (uint32_t slots = 1; slots <= SLOTS_MAX; slots++) {
		struct twin twin = {.most = slots};
		struct code_cache c;
		uint64_t found = 0;

		assert_int_equal(code_cache_init(&c, &sdr_alloc_system, slots, SLOT_BYTES), 0);
		for (uint32_t i = 0; i < 5000; i++) {
			uint32_t n = (uint32_t)rng_below(&rng, 3 * slots);
			struct code_cache_key key = key_of(n);
			uint8_t *p = code_cache_find(&c, &key);

			found += p != NULL;
			assert_int_equal(p != NULL, twin_use(&twin, n));
			if (!p) {
				p = code_cache_take(&c, &key);
				memset(p, (int)n, SLOT_BYTES);
			}
			for (uint32_t b = 0; b < SLOT_BYTES; b++)
				assert_int_equal(p[b], n);
			code_cache_check(&c);
		}
		assert_int_equal(c.stats.hits + c.stats.misses, 5000);
		assert_int_equal(c.stats.hits, found);
		assert_int_equal(c.stats.evictions, c.stats.misses - slots);
		code_cache_fini(&c);
	}
}

static void test_no_memory(void **state)
{
	struct alloc_failing f = {0};
	const struct sdr_alloc alloc = alloc_failing(&f);
	struct code_cache c;

	(void)state;
	for (int n = 0; n < 2; n++) {
		f.left = n;
		assert_int_equal(code_cache_init(&c, &alloc, 4, SLOT_BYTES), -ENOMEM);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_twin),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

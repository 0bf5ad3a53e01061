// SPDX-License-Identifier: Apache-2.0
/*
 * The heap against a slow twin (an unsorted array, searched whole) under random
 * operations; a planted fault that the twin and heap_check() must both see; and
 * memory that runs out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/rng.h"

#define NODES 200

struct twin {
	bool in[NODES];
	uint64_t key[NODES], tie[NODES];
};

static int twin_first(const struct twin *t)
{
	int best = -1;

	for (int i = 0; i < NODES; i++) {
		if (!t->in[i])
			continue;
		if (best < 0 || t->key[i] < t->key[best] ||
		    (t->key[i] == t->key[best] && t->tie[i] < t->tie[best]))
			best = i;
	}
	return best;
}

/* Ties are the node's index, so that the first of two equal keys is known. */
static bool same_first(const struct heap *h, const struct twin *t, const struct heap_node *nodes)
{
	struct heap_node *first = heap_first(h);
	struct heap_node *second = heap_second(h);
	int want = twin_first(t);
	struct twin rest = *t;

	if (!(first ? first - nodes == want : want < 0))
		return false;
	if (want < 0)
		return !second;
	rest.in[want] = false;
	want = twin_first(&rest);
	return second ? second - nodes == want : want < 0;
}

/* What a forgotten sift would leave: the wrong node on top. */
static void plant_fault(struct heap *h)
{
	struct heap_node *first = h->slot[0], *last = h->slot[h->n - 1];

	assert_true(h->n > 1);
	h->slot[0] = last;
	last->pos = 0;
	h->slot[h->n - 1] = first;
	first->pos = h->n - 1;
}

/* Runs random operations; true if heap and twin agreed all the way. */
static bool differential(uint64_t seed, int plant_at)
{
	struct heap_node nodes[NODES];
	struct twin t = {0};
	struct heap h;
	struct rng r;
	bool same = true;

	rng_init(&r, seed);
	heap_init(&h, &sdr_alloc_system);
	for (int i = 0; i < NODES; i++)
		heap_node_init(&nodes[i]);
	for (int step = 0; step < 20000 && same; step++) {
		int i = (int)rng_below(&r, NODES);

		if (rng_below(&r, 3) > 0) {
			uint64_t key = rng_below(&r, 50);

			t.in[i] = true;
			t.key[i] = key;
			t.tie[i] = (uint64_t)i;
			assert_int_equal(heap_set(&h, &nodes[i], key, (uint64_t)i), 0);
		} else if (rng_below(&r, 2) > 0 && heap_first(&h)) {
			i = (int)(heap_first(&h) - nodes);
			t.in[i] = false;
			heap_remove(&h, &nodes[i]);
		} else {
			t.in[i] = false;
			heap_remove(&h, &nodes[i]);
		}
		assert_int_equal(t.in[i], nodes[i].pos != HEAP_NONE);
		if (step == plant_at)
			plant_fault(&h);
		else if (plant_at < 0)
			heap_check(&h);
		same = same_first(&h, &t, nodes);
	}
	heap_fini(&h);
	for (int i = 0; i < NODES; i++)
		assert_int_equal(nodes[i].pos, HEAP_NONE);
	return same;
}

static void test_against_twin(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++)
		assert_true(differential(seed, -1));
}

static void test_twin_sees_planted_fault(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++)
		assert_false(differential(seed, 1000));
}

static void test_equal_keys_in_insertion_order(void **state)
{
	struct heap_node nodes[NODES];
	struct heap h;

	(void)state;
	heap_init(&h, &sdr_alloc_system);
	for (int i = 0; i < NODES; i++) {
		heap_node_init(&nodes[i]);
		assert_int_equal(heap_set(&h, &nodes[i], 42, (uint64_t)i), 0);
	}
	for (int i = 0; i < NODES; i++) {
		assert_ptr_equal(heap_first(&h), &nodes[i]);
		heap_remove(&h, &nodes[i]);
		heap_remove(&h, &nodes[i]);
	}
	assert_null(heap_first(&h));
	heap_fini(&h);
}

#ifndef NDEBUG
static void test_check_sees_planted_faults(void **state)
{
	(void)state;
	for (int fault = 0; fault < 2; fault++) {
		pid_t child = fork();
		int status;

		assert_true(child >= 0);
		if (child == 0) {
			struct rlimit none = {0, 0};
			struct heap_node a, b;
			struct heap h;

			setrlimit(RLIMIT_CORE, &none);
			signal(SIGABRT, SIG_DFL);
			close(STDERR_FILENO); /* the assertion's text would look like a failure */
			heap_node_init(&a);
			heap_node_init(&b);
			heap_init(&h, &sdr_alloc_system);
			(void)heap_set(&h, &a, 1, 0);
			(void)heap_set(&h, &b, 2, 0);
			if (fault == 0)
				a.key = 3;
			else
				b.pos = 0;
			heap_check(&h);
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	}
}
#endif

static void *zalloc_n_times(void *arg, size_t bytes)
{
	int *left = arg;

	return (*left)-- > 0 ? calloc(1, bytes) : NULL;
}

static void free_counted(void *arg, void *p)
{
	(void)arg;
	free(p);
}

static void test_memory_runs_out(void **state)
{
	int left = 2;
	const struct sdr_alloc alloc = {zalloc_n_times, free_counted, &left};
	struct heap_node nodes[NODES];
	struct heap h;
	int added = 0;

	(void)state;
	heap_init(&h, &alloc);
	for (int i = 0; i < NODES; i++)
		heap_node_init(&nodes[i]);
	while (heap_set(&h, &nodes[added], (uint64_t)(NODES - added), 0) == 0)
		added++;
	assert_int_equal(h.n, added);
	assert_int_equal(nodes[added].pos, HEAP_NONE);
	assert_int_equal(heap_set(&h, &nodes[added], 0, 0), -ENOMEM);
	heap_check(&h);
	assert_ptr_equal(heap_first(&h), &nodes[added - 1]);
	assert_int_equal(heap_set(&h, &nodes[0], 0, 0), 0); /* moving needs no memory */
	assert_ptr_equal(heap_first(&h), &nodes[0]);
	heap_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_twin),
		cmocka_unit_test(test_twin_sees_planted_fault),
		cmocka_unit_test(test_equal_keys_in_insertion_order),
#ifndef NDEBUG
		cmocka_unit_test(test_check_sees_planted_faults),
#endif
		cmocka_unit_test(test_memory_runs_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

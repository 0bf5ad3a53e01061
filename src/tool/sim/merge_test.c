/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shards: a sweep's tasks cut in parts and put together are the same tasks, for every number
 * of parts; files that were written are read back the same; and damaged ones are refused,
 * wherever the damage is.
 */
#include "tool/sim/merge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static void make_sweep(struct sweep *s, const char *sizes, const char *runs)
{
	static const char *const keys[] = {"rtt", "bw", "loss", "scheme"};
	static const char *const of[] = {"25ms", "400Gbit", "1e-3", "sr-nack,ec:32,8"};
	char why[SWEEP_WHY] = "";

	sweep_init(s);
	for (int i = 0; i < 4; i++)
		assert_int_equal(sweep_set(s, sweep_key_find(keys[i]), of[i], why), 0);
	assert_int_equal(sweep_set(s, sweep_key_find("size"), sizes, why), 0);
	assert_int_equal(sweep_set(s, sweep_key_find("runs"), runs, why), 0);
	assert_int_equal(sweep_check(s, why), 0);
}

/* Task i takes i + 1 ns and sends 10 * i bytes; every 7th does not end. */
static void fill(const struct sweep *s, uint64_t first, uint64_t stride, struct tallies *t)
{
	uint64_t all = sweep_points(s) * s->runs;
	struct run_result *results = calloc(all + 1, sizeof(*results));
	uint64_t n = 0;

	for (uint64_t i = first; i < all; i += stride)
		results[n++] = (struct run_result){.time_ns = i + 1,
						   .sent_bytes = 10 * i,
						   .err = i % 7 == 6 ? -62 : 0,
						   .done = 1};
	assert_int_equal(tallies_init(t, s, first, stride), 0);
	tallies_fill(t, results);
	free(results);
}

static void compare(const struct tallies *a, const struct tallies *b)
{
	assert_int_equal(a->points, b->points);
	for (uint64_t p = 0; p < a->points; p++) {
		assert_int_equal(a->of[p].runs, b->of[p].runs);
		assert_int_equal(a->of[p].unfinished, b->of[p].unfinished);
		assert_int_equal(a->of[p].sent_bytes, b->of[p].sent_bytes);
		assert_int_equal(a->of[p].err, b->of[p].err);
		if (a->of[p].runs)
			assert_memory_equal(a->of[p].time_ns, b->of[p].time_ns,
					    a->of[p].runs * sizeof(uint64_t));
	}
}

static void parts(void **state)
{
	static const char *const runs[] = {"1", "2", "7", "13"};
	struct tallies whole, merged, part;
	struct sweep s;

	(void)state;
	for (int i = 0; i < 4; i++) {
		make_sweep(&s, "1..4,64KiB", runs[i]);
		fill(&s, 0, 1, &whole);
		for (uint64_t n = 1; n < 40; n++) {
			assert_int_equal(tallies_init(&merged, &s, 0, 1), 0);
			for (uint64_t k = n; k-- > 0;) {
				fill(&s, k, n, &part);
				tallies_merge(&merged, &s, &part, k, n);
				tallies_fini(&part);
			}
			compare(&whole, &merged);
			tallies_fini(&merged);
		}
		tallies_fini(&whole);
	}
}

/* shard_print() writes to stdout. */
static char *print_shard(const struct sweep *s, uint32_t index, uint32_t count, size_t *len)
{
	struct shard_id id = {index, count};
	struct tallies t;
	FILE *keep = stdout;
	char *text = NULL;

	fill(s, index - 1, count, &t);
	stdout = open_memstream(&text, len);
	assert_non_null(stdout);
	assert_int_equal(shard_print(s, &id, &t), 0);
	fclose(stdout);
	stdout = keep;
	tallies_fini(&t);
	return text;
}

static void put(char path[64], const char *text, size_t len)
{
	int fd;

	strcpy(path, "/tmp/merge-test-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	close(fd);
}

static int merge_texts(char **texts, uint32_t n, struct sweep *s, struct tallies *t)
{
	char path[8][64], *paths[8];
	int rc;

	for (uint32_t i = 0; i < n; i++) {
		put(path[i], texts[i], strlen(texts[i]));
		paths[i] = path[i];
	}
	*t = (struct tallies){0};
	rc = merge_files(paths, n, s, t);
	for (uint32_t i = 0; i < n; i++)
		unlink(path[i]);
	return rc;
}

static void files(void **state)
{
	struct tallies whole, merged;
	struct sweep s, read;
	char *text[4], *other, *list[4];
	size_t len;

	(void)state;
	make_sweep(&s, "64KiB,1MiB", "11");
	fill(&s, 0, 1, &whole);
	for (uint32_t i = 0; i < 4; i++)
		text[i] = print_shard(&s, i + 1, 4, &len);
	memcpy(list, (char *[]){text[2], text[0], text[3], text[1]}, sizeof(list));
	assert_int_equal(merge_texts(list, 4, &read, &merged), 0);
	compare(&whole, &merged);
	tallies_fini(&merged);
	/* One missing, one twice, one of another sweep, one of another cut. */
	assert_int_equal(merge_texts(list, 3, &read, &merged), -1);
	tallies_fini(&merged);
	list[3] = text[2];
	assert_int_equal(merge_texts(list, 4, &read, &merged), -1);
	tallies_fini(&merged);
	make_sweep(&s, "64KiB,2MiB", "11");
	other = list[3] = print_shard(&s, 2, 4, &len);
	assert_int_equal(merge_texts(list, 4, &read, &merged), -1);
	tallies_fini(&merged);
	free(other);
	make_sweep(&s, "64KiB,1MiB", "11");
	other = list[3] = print_shard(&s, 2, 5, &len);
	assert_int_equal(merge_texts(list, 4, &read, &merged), -1);
	tallies_fini(&merged);
	free(other);
	for (int i = 0; i < 4; i++)
		free(text[i]);
	tallies_fini(&whole);
}

static bool reads(const char *text, size_t len)
{
	struct shard_file f;
	char path[64];
	int rc;

	put(path, text, len);
	rc = shard_file_read(&f, path);
	shard_file_fini(&f);
	unlink(path);
	return rc == 0;
}

/* Cut anywhere it is refused; with any byte changed it is refused or read, never more. */
static void damage(void **state)
{
	struct sweep s;
	size_t len;
	char *text;

	(void)state;
	make_sweep(&s, "64KiB", "9");
	text = print_shard(&s, 1, 2, &len);
	assert_true(reads(text, len));
	for (size_t cut = 0; cut + 2 < len; cut++)
		assert_false(reads(text, cut));
	for (size_t i = 0; i < len; i++) {
		static const char with[] = "9\"{}[],:-nx \\";

		for (const char *c = with; *c; c++) {
			char was = text[i];

			text[i] = *c;
			(void)reads(text, len);
			text[i] = was;
		}
	}
	text[len - 1] = '}';
	assert_false(reads(text, len));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts),
		cmocka_unit_test(files),
		cmocka_unit_test(damage),
	};

	/* What is refused is said; nobody reads it here. */
	if (!freopen("/dev/null", "w", stderr))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

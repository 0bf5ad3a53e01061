// SPDX-License-Identifier: Apache-2.0
/*
 * Charts: what gnuplot is told, and the file that it leaves: complete or not at all,
 * whatever its name. Where there is no gnuplot the pictures are skipped.
 */
#include "tool/plot.h"

#include "tool/cli.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

volatile sig_atomic_t cli_stop;

#define N 5
static const double size[N] = {1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24};
static const double mean[N] = {25.1, 26, NAN, 31, 48}, low[N] = {25, 25.5, 25, 30, 45},
		    high[N] = {25.2, 27, 30, 32, 51}, limit[N] = {25, 25, 25, 25.1, 25.4};

static const struct plot_series two[] = {
	{.label = "it's sr", .x = size, .y = mean, .lo = low, .hi = high, .n = N, .colour = 1},
	{.label = "T*", .x = size, .y = limit, .n = N, .style = PLOT_DASHED},
};

static struct plot example(void)
{
	return (struct plot){
		.title = "A & B <c> `touch no`",
		.note = "one line\nno second",
		.x = {.label = "message size", .scale = PLOT_BYTES},
		.y = {.label = "time (ms)", .scale = PLOT_LOG},
		.series = two,
		.count = 2,
	};
}

static char *script_of(const struct plot *p, const struct plot_grid *g, bool *any)
{
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	assert_non_null(to);
	*any = p ? plot_lines_script(to, p) : plot_heat_script(to, g);
	fclose(to);
	return text;
}

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in:\n%s", part, text);
}

static void test_lines_script(void **state)
{
	struct plot p = example();
	bool any;
	char *text = script_of(&p, NULL, &any);

	(void)state;
	assert_true(any);
	has(text, "title 'it''s sr'");
	has(text, "'one line no second'");
	has(text, "'64 KiB' 65536");
	has(text, "'16 MiB' 16777216");
	has(text, "set logscale y 10");
	/* A value that is none is a gap, and its whisker no value either. */
	has(text, "262144 26 25.5 27\n\n4194304 31 30 32\n");
	has(text, "65536 25 25 25\n");
	free(text);
}

static void test_ticks(void **state)
{
	static const double x[2] = {1e-8, 0.1}, y[2] = {20, 90}, flat[2] = {3, 3};
	const struct plot_series one = {.x = x, .y = y, .n = 2},
				 even = {.x = flat, .y = flat, .n = 2};
	struct plot p = {.title = "t",
			 .x = {.label = "x", .scale = PLOT_LOG},
			 .y = {.label = "y", .scale = PLOT_LOG},
			 .series = &one,
			 .count = 1};
	bool any;
	char *text = script_of(&p, NULL, &any);

	(void)state;
	has(text, "set xtics ('1e-8' ");
	has(text, "'0.001' ");
	has(text, "set ytics ('20' 20, '25' 25, '30' 30, ");
	has(text, "'80' 80)");
	free(text);
	p.series = &even;
	text = script_of(&p, NULL, &any);
	assert_true(any);
	has(text, "set xtics 0.1");
	free(text);
	p.x = (struct plot_axis){.label = "x", .scale = PLOT_BYTES, .from = 5 << 20, .to = 7 << 20};
	text = script_of(&p, NULL, &any);
	has(text, "set xtics ('5 MiB' 5242880, '5.593 MiB' ");
	free(text);
	p.x = (struct plot_axis){.label = "x"};
	p.y.scale = PLOT_LINEAR;
	text = script_of(&p, NULL, &any);
	has(text, "set xrange [2.7");
	free(text);
}

static void test_nothing_to_draw(void **state)
{
	static const double zero[2] = {0, -1}, none[2] = {NAN, INFINITY};
	const struct plot_series s = {.x = zero, .y = zero, .n = 2};
	struct plot p = {.title = "t", .x = {.scale = PLOT_LOG}, .series = &s, .count = 1};
	struct plot_grid g = {.title = "t", .values = none, .rows = 1, .cols = 2};
	bool any;

	(void)state;
	free(script_of(&p, NULL, &any));
	assert_false(any);
	free(script_of(NULL, &g, &any));
	assert_false(any);
	p = example();
	p.x.from = NAN;
	p.x.to = 1;
	free(script_of(&p, NULL, &any));
	assert_false(any);
	p.x.from = 0; /* of a logarithm */
	free(script_of(&p, NULL, &any));
	assert_false(any);
	p.series = &s;
	p.count = 1;
	assert_int_equal(plot_lines("nothing.svg", &p), -1);
	assert_int_equal(access("nothing.svg", F_OK), -1);
}

static void test_heat_script(void **state)
{
	static const char *const cols[] = {"1e-3", "1e-2"}, *const rows[] = {"1 MiB", "it's 2"};
	static const double values[] = {0.5, 6.234, NAN, 1};
	struct plot_grid g = {.title = "t",
			      .x_label = "loss",
			      .y_label = "size",
			      .value_label = "speedup",
			      .x_names = cols,
			      .y_names = rows,
			      .values = values,
			      .rows = 2,
			      .cols = 2,
			      .neutral = 1};
	bool any;
	char *text = script_of(NULL, &g, &any);

	(void)state;
	assert_true(any);
	has(text, "set ytics scale 0 ('1 MiB' 0, 'it''s 2' 1)");
	has(text, "set cbrange [0.160410651267:6.234]");
	has(text, "0 0 0.5 0.50\n1 0 6.234 6.23\n1 1 1 1.00\nEOD");
	free(text);
}

/* ---- with gnuplot ------------------------------------------------------------------- */

static bool have_gnuplot(void)
{
	return system("command -v gnuplot >/dev/null 2>&1") == 0;
}

static void need_gnuplot(void)
{
	if (have_gnuplot())
		return;
	print_message("skipped: no gnuplot (Debian: gnuplot-nox)\n");
	skip();
}

static char *slurp(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 1 << 20);

	assert_non_null(f);
	assert_non_null(text);
	assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
	fclose(f);
	return text;
}

static void test_pictures(void **state)
{
	static const char *const paths[] = {"plain.svg", "$(touch no).svg", "a'b\"c;`touch no`.svg",
					    "-x", " with\nline.svg"};
	struct plot p = example();
	struct stat st;

	(void)state;
	need_gnuplot();
	umask(022);
	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
		char *text;

		assert_int_equal(plot_lines(paths[i], &p), 0);
		text = slurp(paths[i]);
		has(text, "<svg");
		has(text, "</svg>");
		has(text, "A &amp; B &lt;c> `touch no`");
		has(text, "it's sr");
		free(text);
		assert_int_equal(stat(paths[i], &st), 0);
		assert_int_equal(st.st_mode & 0777, 0644);
		assert_int_equal(unlink(paths[i]), 0);
	}
	assert_int_equal(access("no", F_OK), -1);
}

/* One that fails, as an old one might. */
static char real_path[4096];

static void fake_gnuplot(void)
{
	FILE *f;

	assert_int_equal(mkdir("fake", 0700), 0);
	f = fopen("fake/gnuplot", "w");
	assert_non_null(f);
	fputs("#!/bin/sh\necho '<svg> half'\necho no such terminal >&2\nexit 3\n", f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod("fake/gnuplot", 0700), 0);
	snprintf(real_path, sizeof real_path, "%s", getenv("PATH"));
	setenv("PATH", "fake", 1);
}

static void real_gnuplot(void)
{
	setenv("PATH", real_path, 1);
}

/* A link stays one; a picture that cannot be drawn leaves the old one. */
static void test_in_place(void **state)
{
	struct plot p = example();
	struct stat st;
	char *text;

	(void)state;
	need_gnuplot();
	assert_int_equal(symlink("target.svg", "link.svg"), 0);
	assert_int_equal(plot_lines("target.svg", &p), 0);
	assert_int_equal(plot_lines("link.svg", &p), 0);
	assert_int_equal(lstat("link.svg", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	fake_gnuplot();
	assert_int_equal(plot_lines("target.svg", &p), -1);
	real_gnuplot();
	text = slurp("target.svg");
	has(text, "</svg>");
	free(text);
	assert_int_equal(system("ls target.svg.* 2>/dev/null | grep -q ."), 256);
}

static void test_bad_paths(void **state)
{
	static const char *const paths[] = {"", ".", "none/x.svg", "/dev/null", "plot_dir"};
	struct plot p = example();

	(void)state;
	assert_int_equal(mkdir("plot_dir", 0700), 0);
	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
		assert_int_equal(plot_lines(paths[i], &p), -1);
	assert_int_equal(rmdir("plot_dir"), 0);
}

static void test_no_gnuplot(void **state)
{
	char *path = strdup(getenv("PATH"));
	struct plot p = example();

	(void)state;
	assert_non_null(path);
	setenv("PATH", "/nowhere", 1);
	assert_int_equal(plot_lines("none.svg", &p), -1);
	setenv("PATH", path, 1);
	free(path);
	assert_int_equal(access("none.svg", F_OK), -1);
	assert_int_equal(system("ls none.svg.* 2>/dev/null | grep -q ."), 256);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_script),	cmocka_unit_test(test_ticks),
		cmocka_unit_test(test_nothing_to_draw), cmocka_unit_test(test_heat_script),
		cmocka_unit_test(test_pictures),	cmocka_unit_test(test_in_place),
		cmocka_unit_test(test_bad_paths),	cmocka_unit_test(test_no_gnuplot),
	};
	char dir[] = "/tmp/sdr-plot-XXXXXX", command[64];
	int rc;

	if (!mkdtemp(dir) || chdir(dir) < 0)
		return 1;
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command) || rc;
}

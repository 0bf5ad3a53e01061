// SPDX-License-Identifier: Apache-2.0
/*
 * Names from the other end: the table of what is taken and what is refused, and a walk
 * that never follows a link.
 */
#include "tool/xfer_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static void test_names(void **state)
{
	static const char *const good[] = {"a",	  "a/b",     "a b", "..a", "a..",
					   "...", ".hidden", "ü/ß", "-x",  "a/.b/c..d"};
	static const char *const bad[] = {
		"",	"/",	"/a",  "a/",	 "a//b",  ".",	 "..",	   "./a",
		"../a", "a/..", "a/.", "a/../b", "a/./b", "//a", "a/b/..", "../../etc/passwd"};

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		assert_null(xfer_path_refused(good[i]));
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_non_null(xfer_path_refused(bad[i]));
}

static void test_long_names(void **state)
{
	char path[PATH_MAX + 8];

	(void)state;
	memset(path, 'x', sizeof path);
	path[NAME_MAX] = '\0';
	assert_null(xfer_path_refused(path));
	path[NAME_MAX] = 'x';
	path[NAME_MAX + 1] = '\0';
	assert_non_null(xfer_path_refused(path));
	for (size_t i = 0; i < sizeof path; i++)
		path[i] = i % 2 ? '/' : 'x';
	path[PATH_MAX - 1] = '\0';
	assert_null(xfer_path_refused(path));
	path[PATH_MAX - 1] = '/';
	path[PATH_MAX + 1] = '\0';
	assert_non_null(xfer_path_refused(path));
}

static void test_links(void **state)
{
	static const char *const good[][2] = {
		{"l", "x"},	   {"l", "x/y"}, {"a/l", "../x"}, {"a/b/l", "../../x/y"},
		{"a/l", "./../x"}, {"l", "./x"}, {"l", "..x"},
	};
	static const char *const bad[][2] = {
		{"l", ""},	    {"l", "/etc"},	  {"l", ".."},	     {"l", "../x"},
		{"a/l", "../../x"}, {"a/l", "x/../../y"}, {"a/l", "x/../y"}, {"l", "./../x"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		assert_null(xfer_link_refused(good[i][0], good[i][1]));
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_non_null(xfer_link_refused(bad[i][0], bad[i][1]));
}

static void test_walk(void **state)
{
	char top_name[] = "/tmp/sdr-path-XXXXXX";
	const char *name = NULL;
	int top, dir;

	(void)state;
	assert_non_null(mkdtemp(top_name));
	top = open(top_name, O_RDONLY | O_DIRECTORY);
	assert_true(top >= 0);
	assert_int_equal(mkdirat(top, "d", 0700), 0);
	assert_int_equal(symlinkat("/", top, "root"), 0);
	assert_int_equal(symlinkat("d", top, "alias"), 0);

	dir = xfer_path_parent(top, "d/file", &name);
	assert_true(dir >= 0);
	assert_string_equal(name, "file");
	close(dir);
	dir = xfer_path_parent(top, "file", &name);
	assert_true(dir >= 0);
	close(dir);
	/* A link is never followed, not even one that stays inside. */
	assert_true(xfer_path_parent(top, "root/etc/passwd", &name) < 0);
	assert_true(xfer_path_parent(top, "alias/file", &name) < 0);
	assert_int_equal(xfer_path_parent(top, "none/file", &name), -ENOENT);

	assert_int_equal(unlinkat(top, "alias", 0), 0);
	assert_int_equal(unlinkat(top, "root", 0), 0);
	assert_int_equal(unlinkat(top, "d", AT_REMOVEDIR), 0);
	close(top);
	assert_int_equal(rmdir(top_name), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_walk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

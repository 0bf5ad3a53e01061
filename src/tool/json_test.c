// SPDX-License-Identifier: Apache-2.0
/*
 * JSON that parses whatever a name contains, and messages that a terminal obeys in
 * nothing.
 */
#include "tool/json.h"
#include "tool/say.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void test_nesting(void **state)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	struct json j;

	(void)state;
	json_init(&j, f);
	json_array_begin(&j, NULL);
	json_object_begin(&j, NULL);
	json_uint(&j, "a", 18446744073709551615u);
	json_text(&j, "b", NULL);
	json_object_end(&j);
	json_object_begin(&j, NULL);
	json_object_end(&j);
	json_bool(&j, NULL, 1);
	json_real(&j, NULL, 0.5);
	json_array_end(&j);
	json_finish(&j);
	fclose(f);
	assert_string_equal(text, "[{\"a\": 18446744073709551615, \"b\": null}, {}, true, 0.5]\n");
	free(text);
}

static void test_quoting(void **state)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	struct json j;

	(void)state;
	json_init(&j, f);
	json_text(&j, NULL, "q\" b\\ n\n ü \xff\xc3 \xed\xa0\x80");
	json_finish(&j);
	fclose(f);
	assert_string_equal(text,
			    "\"q\\\" b\\\\ n\\u000a ü \\ufffd\\ufffd \\ufffd\\ufffd\\ufffd\"\n");
	free(text);
}

static void test_safe(void **state)
{
	char buf[64], small[8];

	(void)state;
	say_safe(buf, sizeof buf, "a\x1b[2J\n\x7f ü");
	assert_string_equal(buf, "a\\x1b[2J\\x0a\\x7f ü");
	say_safe(buf, sizeof buf, "\xc2\x9bx");
	assert_string_equal(buf, "\\xc2\\x9bx");
	say_safe(buf, sizeof buf, "\x9b\xff");
	assert_string_equal(buf, "\\x9b\\xff");
	say_safe(small, sizeof small, "0123456789");
	assert_true(strlen(small) < sizeof small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_quoting),
		cmocka_unit_test(test_safe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

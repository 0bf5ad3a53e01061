// SPDX-License-Identifier: Apache-2.0
/*
 * Frames and greetings: what goes in comes out, and no mutation of bytes makes a
 * decoder read or believe what is not there.
 */
#include "tool/hello.h"
#include "tool/xfer_proto.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct xfer_entry entry(void)
{
	struct xfer_entry e = {.mode = 0640, .size = 123456789012, .mtime_s = -5, .mtime_ns = 7};

	strcpy(e.path, "dir/a file");
	return e;
}

static void test_entry(void **state)
{
	static uint8_t buf[XFER_FRAME_MAX];
	static struct xfer_entry in, got;
	struct xfer_frame f;
	size_t at = 0, len;

	(void)state;
	in = entry();
	len = xfer_put_entry(buf, XFER_FILE, 42, &in);
	assert_int_equal(xfer_next(buf, len, &at, &f), 1);
	assert_int_equal(f.type, XFER_FILE);
	assert_int_equal(f.index, 42);
	assert_int_equal(xfer_get_entry(&f, &got), 0);
	assert_int_equal(got.mode, 0640);
	assert_int_equal(got.size, in.size);
	assert_int_equal(got.mtime_s, -5);
	assert_string_equal(got.path, in.path);
	assert_int_equal(xfer_next(buf, len, &at, &f), 0);

	strcpy(in.target, "../x");
	at = 0;
	len = xfer_put_entry(buf, XFER_LINK, 1, &in);
	assert_int_equal(xfer_next(buf, len, &at, &f), 1);
	assert_int_equal(xfer_get_entry(&f, &got), 0);
	assert_string_equal(got.target, "../x");
}

static void test_longest_entry_fits(void **state)
{
	static uint8_t buf[XFER_FRAME_MAX + 1];
	static struct xfer_entry in;

	(void)state;
	memset(in.path, 'p', XFER_PATH_MAX);
	memset(in.target, 't', XFER_PATH_MAX);
	buf[XFER_FRAME_MAX] = 0x5a;
	assert_int_equal(xfer_put_entry(buf, XFER_LINK, 0, &in), XFER_FRAME_MAX);
	assert_int_equal(buf[XFER_FRAME_MAX], 0x5a);
}

static void test_others(void **state)
{
	struct xfer_end end = {.status = XFER_FAILED, .text = "why"}, end2;
	struct xfer_sum sum = {.files = 3, .failed = 1, .bytes = 99, .digest = {7}}, sum2;
	char text[XFER_TEXT_MAX + 1];
	uint8_t buf[4096];
	struct xfer_frame f;
	size_t len = 0, at = 0;
	uint16_t status;

	(void)state;
	len += xfer_put_end(buf, 5, &end);
	len += xfer_put_result(buf + len, 6, XFER_FAILED, "disk");
	len += xfer_put_sum(buf + len, XFER_SUMMARY, &sum);
	assert_int_equal(xfer_next(buf, len, &at, &f), 1);
	assert_int_equal(xfer_get_end(&f, &end2), 0);
	assert_string_equal(end2.text, "why");
	assert_int_equal(xfer_next(buf, len, &at, &f), 1);
	assert_int_equal(xfer_get_result(&f, &status, text), 0);
	assert_string_equal(text, "disk");
	assert_int_equal(xfer_next(buf, len, &at, &f), 1);
	assert_int_equal(xfer_get_sum(&f, &sum2), 0);
	assert_memory_equal(&sum, &sum2, sizeof sum);
	assert_int_equal(xfer_next(buf, len, &at, &f), 0);
}

static void test_nul_in_path(void **state)
{
	static uint8_t buf[XFER_FRAME_MAX];
	static struct xfer_entry in, got;
	struct xfer_frame f;
	size_t at = 0, len;

	(void)state;
	in = entry();
	len = xfer_put_entry(buf, XFER_FILE, 0, &in);
	buf[len - 3] = 0;
	assert_int_equal(xfer_next(buf, len, &at, &f), 1);
	assert_int_equal(xfer_get_entry(&f, &got), -EBADMSG);
}

/* Exactly sized heap copies, so that a sanitizer sees every byte too far. */
static void decode_all(const uint8_t *bytes, size_t len)
{
	static struct xfer_entry e;
	uint8_t *copy = malloc(len ? len : 1);
	char text[XFER_TEXT_MAX + 1];
	struct xfer_frame f;
	struct xfer_end end;
	struct xfer_sum sum;
	uint16_t status;
	size_t at = 0;

	memcpy(copy, bytes, len);
	while (xfer_next(copy, len, &at, &f) == 1) {
		assert_true(at <= len);
		xfer_get_entry(&f, &e);
		xfer_get_end(&f, &end);
		xfer_get_sum(&f, &sum);
		xfer_get_result(&f, &status, text);
	}
	free(copy);
}

static void test_mutations(void **state)
{
	static uint8_t buf[4 * XFER_FRAME_MAX], mutant[4 * XFER_FRAME_MAX];
	static struct xfer_entry in;
	struct xfer_end end = {.text = "x"};
	struct xfer_sum sum = {.files = 1};
	size_t len = 0;
	uint64_t rng = 1;

	(void)state;
	in = entry();
	len += xfer_put_entry(buf, XFER_FILE, 0, &in);
	len += xfer_put_end(buf + len, 0, &end);
	len += xfer_put_sum(buf + len, XFER_DONE, &sum);
	for (size_t cut = 0; cut <= len; cut++)
		decode_all(buf, cut);
	for (int round = 0; round < 20000; round++) {
		memcpy(mutant, buf, len);
		for (int i = 0; i < 3; i++) {
			rng = rng * 6364136223846793005u + 1442695040888963407u;
			mutant[(rng >> 33) % len] = (uint8_t)(rng >> 24);
		}
		decode_all(mutant, len);
	}
}

static void test_hello(void **state)
{
	struct hello h = {.version = 9, .kind = HELLO_PERF, .arg = {1, 2, 3}}, got;
	struct greeting g;
	uint8_t buf[GREETING_MAX];
	char big[2 * GREETING_MAX];
	size_t len;

	(void)state;
	hello_put(&h, buf);
	assert_int_equal(hello_get(buf, HELLO_BYTES, &got), 0);
	assert_memory_equal(&h, &got, sizeof h);
	assert_int_equal(hello_get(buf, HELLO_BYTES - 1, &got), -EBADMSG);
	buf[0] = 'X';
	assert_int_equal(hello_get(buf, HELLO_BYTES, &got), -EBADMSG);

	len = greeting_put(NULL, buf);
	assert_int_equal(greeting_get(buf, len, &g), 0);
	assert_int_equal(g.refused, 0);
	memset(big, 'x', sizeof big);
	big[sizeof big - 1] = '\0';
	len = greeting_put(big, buf);
	assert_int_equal(len, GREETING_MAX);
	assert_int_equal(greeting_get(buf, len, &g), 0);
	assert_int_equal(g.refused, 1);
	assert_int_equal(greeting_get(buf, 7, &g), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entry),	  cmocka_unit_test(test_longest_entry_fits),
		cmocka_unit_test(test_others),	  cmocka_unit_test(test_nul_in_path),
		cmocka_unit_test(test_mutations), cmocka_unit_test(test_hello),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

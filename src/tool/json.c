// SPDX-License-Identifier: Apache-2.0
/*
 * A small JSON writer. See json.h. Bytes that are not UTF-8 (file names may be any
 * bytes) are replaced by U+FFFD, so that what comes out is always valid.
 */
#include "tool/json.h"

#include "tool/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#define JSON_DEPTH_MAX 16

void json_init(struct json *j, FILE *to)
{
	*j = (struct json){.to = to};
}

static void put_quoted(struct json *j, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	fputc('"', j->to);
	while (*p) {
		size_t n = utf8_len(p);

		if (n == 0)
			fputs("\\ufffd", j->to);
		else if (*p == '"' || *p == '\\')
			fprintf(j->to, "\\%c", *p);
		else if (*p < 0x20)
			fprintf(j->to, "\\u%04x", *p);
		else
			fwrite(p, 1, n, j->to);
		p += n ? n : 1;
	}
	fputc('"', j->to);
}

static void put_key(struct json *j, const char *key)
{
	if (j->filled & (UINT64_C(1) << j->depth))
		fputs(", ", j->to);
	j->filled |= UINT64_C(1) << j->depth;
	if (!key)
		return;
	put_quoted(j, key);
	fputs(": ", j->to);
}

static void open_level(struct json *j, const char *key, char bracket)
{
	put_key(j, key);
	fputc(bracket, j->to);
	j->depth++;
	assert(j->depth < JSON_DEPTH_MAX);
	j->filled &= ~(UINT64_C(1) << j->depth);
}

static void close_level(struct json *j, char bracket)
{
	assert(j->depth > 0);
	j->depth--;
	fputc(bracket, j->to);
}

void json_object_begin(struct json *j, const char *key)
{
	open_level(j, key, '{');
}

void json_object_end(struct json *j)
{
	close_level(j, '}');
}

void json_array_begin(struct json *j, const char *key)
{
	open_level(j, key, '[');
}

void json_array_end(struct json *j)
{
	close_level(j, ']');
}

void json_text(struct json *j, const char *key, const char *text)
{
	put_key(j, key);
	if (text)
		put_quoted(j, text);
	else
		fputs("null", j->to);
}

void json_uint(struct json *j, const char *key, uint64_t v)
{
	put_key(j, key);
	fprintf(j->to, "%" PRIu64, v);
}

void json_real(struct json *j, const char *key, double v)
{
	put_key(j, key);
	if (isfinite(v))
		fprintf(j->to, "%.9g", v);
	else
		fputs("null", j->to);
}

void json_bool(struct json *j, const char *key, int v)
{
	put_key(j, key);
	fputs(v ? "true" : "false", j->to);
}

void json_finish(struct json *j)
{
	assert(j->depth == 0);
	j->filled = 0;
	fputc('\n', j->to);
	fflush(j->to);
}

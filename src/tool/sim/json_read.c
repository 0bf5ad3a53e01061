// SPDX-License-Identifier: Apache-2.0
/*
 * See json_read.h.
 */
#include "tool/sim/json_read.h"

#include <inttypes.h>
#include <string.h>

void json_read_init(struct json_read *r, FILE *from)
{
	*r = (struct json_read){.from = from, .line = 1};
}

void json_read_wrong(struct json_read *r, const char *why)
{
	if (!r->wrong)
		snprintf(r->why, sizeof(r->why), "%s", why);
	r->wrong = true;
}

/* The next that is not white space, not taken. */
static int peek(struct json_read *r)
{
	int c;

	while ((c = getc(r->from)) == ' ' || c == '\t' || c == '\r' || c == '\n')
		r->line += c == '\n';
	if (c != EOF)
		ungetc(c, r->from);
	return c;
}

bool json_read_try(struct json_read *r, char mark)
{
	if (r->wrong || peek(r) != (unsigned char)mark)
		return false;
	(void)getc(r->from);
	return true;
}

void json_read_mark(struct json_read *r, char mark)
{
	char why[32];

	if (json_read_try(r, mark))
		return;
	snprintf(why, sizeof(why), "'%c' is missing", mark);
	json_read_wrong(r, why);
}

void json_read_text(struct json_read *r, char *buf, size_t len)
{
	size_t used = 0;
	int c;

	buf[0] = '\0';
	json_read_mark(r, '"');
	while (!r->wrong && (c = getc(r->from)) != '"') {
		if (c == '\\') {
			c = getc(r->from);
			if (c != '"' && c != '\\')
				json_read_wrong(r, "an escape that is not read here");
		}
		if (c == EOF || c < 0x20)
			json_read_wrong(r, "a text that does not end");
		else if (used + 1 >= len)
			json_read_wrong(r, "a text that is too long");
		else
			buf[used++] = (char)c;
	}
	buf[used] = '\0';
}

void json_read_name(struct json_read *r, const char *name)
{
	char text[32], why[80];

	json_read_text(r, text, sizeof(text));
	if (r->wrong || strcmp(text, name) != 0) {
		snprintf(why, sizeof(why), "\"%s\" is missing", name);
		json_read_wrong(r, why);
		return;
	}
	json_read_mark(r, ':');
}

uint64_t json_read_uint(struct json_read *r, uint64_t max)
{
	char why[64];
	uint64_t v = 0;
	int c, digits = 0;

	if (r->wrong)
		return 0;
	(void)peek(r);
	while ((c = getc(r->from)) >= '0' && c <= '9') {
		uint64_t digit = (uint64_t)(c - '0');

		if (v > (max - digit) / 10 || digit > max) {
			snprintf(why, sizeof(why), "a number above %" PRIu64, max);
			json_read_wrong(r, why);
			return 0;
		}
		v = v * 10 + digit;
		digits++;
	}
	if (c != EOF)
		ungetc(c, r->from);
	if (digits == 0 || c == '.' || c == 'e' || c == 'E' || c == '-')
		json_read_wrong(r, "a whole number is missing");
	return v;
}

uint64_t json_read_uint_or_null(struct json_read *r, uint64_t max)
{
	if (r->wrong || peek(r) != 'n')
		return json_read_uint(r, max);
	for (const char *c = "null"; *c; c++) {
		if (getc(r->from) != *c)
			json_read_wrong(r, "a number or null is missing");
	}
	return UINT64_MAX;
}

int json_read_end(struct json_read *r)
{
	if (!r->wrong && peek(r) != EOF)
		json_read_wrong(r, "something follows the end");
	if (ferror(r->from)) {
		r->wrong = false; /* that is the reason then */
		json_read_wrong(r, "cannot be read");
	}
	return r->wrong ? -1 : 0;
}

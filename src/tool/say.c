// SPDX-License-Identifier: Apache-2.0
/*
 * Messages and results, made safe for a terminal. See say.h.
 */
#include "tool/say.h"

#include "tool/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define SAY_MAX 8192 /* longest line: a path, its escapes and a sentence */

static int bar_drawn;

/* A C1 control in UTF-8 is two bytes, of which both have to go. */
static int is_plain(const unsigned char *p, size_t len)
{
	if (len == 1)
		return *p >= 0x20 && *p != 0x7f;
	return len > 1 && !(p[0] == 0xc2 && p[1] < 0xa0);
}

void say_safe(char *buf, size_t cap, const char *text)
{
	static const char hex[] = "0123456789abcdef";
	const unsigned char *p = (const unsigned char *)text;
	size_t used = 0;

	while (*p && used + 9 < cap) {
		size_t len = utf8_len(p), taken = len ? len : 1;

		for (const unsigned char *end = p + taken; p < end; p++) {
			if (is_plain(end - taken, len)) {
				buf[used++] = (char)*p;
				continue;
			}
			buf[used++] = '\\';
			buf[used++] = 'x';
			buf[used++] = hex[*p >> 4];
			buf[used++] = hex[*p & 15];
		}
	}
	if (cap)
		buf[used] = '\0';
}

static void bar_clear(void)
{
	if (bar_drawn)
		fputs("\r\033[K", stderr);
	bar_drawn = 0;
}

void say(const char *fmt, ...)
{
	char text[SAY_MAX], safe[SAY_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	say_safe(safe, sizeof safe, text);
	bar_clear();
	fprintf(stderr, "sdr: %s\n", safe);
	fflush(stderr);
}

void out(const char *fmt, ...)
{
	char text[SAY_MAX], safe[SAY_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	say_safe(safe, sizeof safe, text);
	bar_clear();
	printf("%s\n", safe);
	fflush(stdout);
}

void say_bar(const char *line)
{
	if (!line) {
		bar_clear();
		return;
	}
	fprintf(stderr, "\r%s\033[K", line);
	fflush(stderr);
	bar_drawn = 1;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Reading /proc and /sys. See source.h.
 */
#include "tool/doctor/source.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void path_of(const struct source *s, char path[SOURCE_PATH], const char *fmt, va_list args)
{
	size_t used;

	snprintf(path, SOURCE_PATH, "%s", s->root);
	used = strlen(path);
	vsnprintf(path + used, SOURCE_PATH - used, fmt, args);
}

static int read_path(const char *path, char *buf, size_t cap)
{
	FILE *f = fopen(path, "re");
	size_t n;

	if (!f)
		return -1;
	n = fread(buf, 1, cap - 1, f);
	if (n == 0 && ferror(f)) {
		fclose(f);
		return -1;
	}
	fclose(f);
	while (n && (buf[n - 1] == '\n' || buf[n - 1] == ' '))
		n--;
	buf[n] = '\0';
	return 0;
}

int source_text(const struct source *s, char *buf, size_t cap, const char *fmt, ...)
{
	char path[SOURCE_PATH];
	va_list args;

	va_start(args, fmt);
	path_of(s, path, fmt, args);
	va_end(args);
	return read_path(path, buf, cap);
}

char *source_file(const struct source *s, const char *fmt, ...)
{
	char path[SOURCE_PATH], *buf = malloc(SOURCE_FILE_MAX);
	va_list args;

	va_start(args, fmt);
	path_of(s, path, fmt, args);
	va_end(args);
	if (buf && read_path(path, buf, SOURCE_FILE_MAX) == 0)
		return buf;
	free(buf);
	return NULL;
}

int source_number(const struct source *s, uint64_t *out, const char *fmt, ...)
{
	char path[SOURCE_PATH], text[64];
	va_list args;

	va_start(args, fmt);
	path_of(s, path, fmt, args);
	va_end(args);
	if (read_path(path, text, sizeof text) < 0 || *text == '-')
		return -1;
	return sscanf(text, "%" SCNu64, out) == 1 ? 0 : -1;
}

int source_link(const struct source *s, char *buf, size_t cap, const char *fmt, ...)
{
	char path[SOURCE_PATH], to[SOURCE_PATH];
	const char *slash;
	va_list args;
	ssize_t n;

	va_start(args, fmt);
	path_of(s, path, fmt, args);
	va_end(args);
	n = readlink(path, to, sizeof to - 1);
	if (n < 0)
		return -1;
	to[n] = '\0';
	slash = strrchr(to, '/');
	snprintf(buf, cap, "%s", slash ? slash + 1 : to);
	return 0;
}

int source_exists(const struct source *s, const char *fmt, ...)
{
	char path[SOURCE_PATH];
	va_list args;

	va_start(args, fmt);
	path_of(s, path, fmt, args);
	va_end(args);
	return access(path, F_OK) == 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

size_t source_list(const struct source *s, char (*names)[SOURCE_NAME], size_t max, const char *fmt,
		   ...)
{
	char path[SOURCE_PATH];
	struct dirent *e;
	va_list args;
	size_t n = 0;
	DIR *d;

	va_start(args, fmt);
	path_of(s, path, fmt, args);
	va_end(args);
	d = opendir(path);
	if (!d)
		return 0;
	while (n < max && (e = readdir(d))) {
		if (*e->d_name != '.' && strlen(e->d_name) < SOURCE_NAME)
			strcpy(names[n++], e->d_name);
	}
	closedir(d);
	qsort(names, n, SOURCE_NAME, by_name);
	return n;
}

int text_field(const char *text, const char *name, uint64_t *out)
{
	size_t len = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, len) == 0 && strchr(": \t", line[len]) && line[len])
			return sscanf(line + len, "%*[: \t]%" SCNu64, out) == 1 ? 0 : -1;
	}
	return -1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small files of /proc and /sys, below a root that tests replace ("" is this host). Paths
 * are given with printf and begin with a slash. Knows nothing of what is in the files.
 */
#ifndef SDR_TOOL_DOCTOR_SOURCE_H
#define SDR_TOOL_DOCTOR_SOURCE_H

#include <stddef.h>
#include <stdint.h>

struct source {
	const char *root;
};

#define SOURCE_PATH 512
#define SOURCE_FILE_MAX 65536
#define SOURCE_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* The file's first cap - 1 bytes, without the newline at the end; -1: it cannot be read. */
int source_text(const struct source *s, char *buf, size_t cap, const char *fmt, ...)
	SOURCE_PRINTF(4, 5);
/* A whole file, of at most SOURCE_FILE_MAX bytes, the caller's to free; NULL. */
char *source_file(const struct source *s, const char *fmt, ...) SOURCE_PRINTF(2, 3);
/* A decimal number; -1: there is none, *out is untouched. */
int source_number(const struct source *s, uint64_t *out, const char *fmt, ...) SOURCE_PRINTF(3, 4);
/* The last component of where a link leads; -1. */
int source_link(const struct source *s, char *buf, size_t cap, const char *fmt, ...)
	SOURCE_PRINTF(4, 5);
int source_exists(const struct source *s, const char *fmt, ...) SOURCE_PRINTF(2, 3);
/* Entries of a directory, sorted, at most max; how many. */
#define SOURCE_NAME 64
size_t source_list(const struct source *s, char (*names)[SOURCE_NAME], size_t max, const char *fmt,
		   ...) SOURCE_PRINTF(4, 5);

/* "Name:   123 kB" of a text of lines: 123; -1: no such line. */
int text_field(const char *text, const char *name, uint64_t *out);

#endif

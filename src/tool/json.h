/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small JSON writer: commas, quoting, nesting. Writes only; the caller owns the
 * stream. `key` is NULL inside an array and for the outermost value.
 */
#ifndef SDR_TOOL_JSON_H
#define SDR_TOOL_JSON_H

#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *to;
	unsigned int depth;
	uint64_t filled; /* bit d: something was written at depth d, so a comma is due */
};

void json_init(struct json *j, FILE *to);
void json_object_begin(struct json *j, const char *key);
void json_object_end(struct json *j);
void json_array_begin(struct json *j, const char *key);
void json_array_end(struct json *j);
void json_text(struct json *j, const char *key, const char *text); /* NULL text: null */
void json_uint(struct json *j, const char *key, uint64_t v);
void json_real(struct json *j, const char *key, double v);
void json_bool(struct json *j, const char *key, int v);
/* The newline after the outermost value. */
void json_finish(struct json *j);

#endif

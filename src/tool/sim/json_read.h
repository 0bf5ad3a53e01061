/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON, read piece by piece from a stream, by who knows what has to come next. The first
 * mistake sticks: later calls do nothing, and json_read_end() tells it.
 */
#ifndef SDR_TOOL_SIM_JSON_READ_H
#define SDR_TOOL_SIM_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json_read {
	FILE *from;
	uint64_t line;
	bool wrong;
	char why[96];
};

void json_read_init(struct json_read *r, FILE *from);
/* One of {}[]:, has to come. */
void json_read_mark(struct json_read *r, char mark);
/* True: it comes next, and was taken. */
bool json_read_try(struct json_read *r, char mark);
/* A text; what does not fit is a mistake, as are escapes other than \" and \\. */
void json_read_text(struct json_read *r, char *buf, size_t len);
/* The next member's name, which has to be this one, and its colon. */
void json_read_name(struct json_read *r, const char *name);
/* A whole number up to `max`. */
uint64_t json_read_uint(struct json_read *r, uint64_t max);
/* The same, or null: UINT64_MAX. */
uint64_t json_read_uint_or_null(struct json_read *r, uint64_t max);
void json_read_wrong(struct json_read *r, const char *why);
/* Nothing but white space may follow. 0 or -1. */
int json_read_end(struct json_read *r);

#endif

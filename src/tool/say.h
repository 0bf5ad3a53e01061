/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a person reads: messages to stderr, results to stdout, and the one line of a
 * progress bar that both have to step around. Names that come from the other end pass
 * through here, so control characters are always made harmless. Knows nothing of what
 * is said.
 */
#ifndef SDR_TOOL_SAY_H
#define SDR_TOOL_SAY_H

#include <stddef.h>

#define SAY_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* "sdr: ..." and a newline to stderr. */
void say(const char *fmt, ...) SAY_PRINTF(1, 2);
/* A line to stdout. */
void out(const char *fmt, ...) SAY_PRINTF(1, 2);
/* Draws the bar's line on stderr again; NULL: takes it away. */
void say_bar(const char *line);

/*
 * Copies text so that a terminal shows it and obeys nothing in it: control characters,
 * also the C1 ones in UTF-8, become \xNN. Cuts what does not fit; always ends in NUL.
 */
void say_safe(char *buf, size_t cap, const char *text);

#endif

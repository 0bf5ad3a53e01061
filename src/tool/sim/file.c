// SPDX-License-Identifier: Apache-2.0
/*
 * See file.h.
 */
#include "tool/sim/file.h"

#include "tool/say.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_CHARS SWEEP_VALUE_MAX

struct reader {
	struct sweep *s;
	const bool *skip;
	const char *path;
	unsigned int line;
	unsigned int seen[SWEEP_KEYS]; /* the line where each key was */
};

static char *trim(char *text)
{
	size_t len;

	while (isspace((unsigned char)*text))
		text++;
	for (len = strlen(text); len && isspace((unsigned char)text[len - 1]); len--)
		text[len - 1] = '\0';
	return text;
}

static int wrong(const struct reader *r, const char *text)
{
	say("%s:%u: %s", r->path, r->line, text);
	return -1;
}

static int take_pair(struct reader *r, const char *name, const char *value)
{
	int key = sweep_key_find(name);
	struct sweep scratch = *r->s;
	char why[SWEEP_WHY];

	if (key < 0) {
		say("%s:%u: %s: unknown key: they are the names of the options, see 'sdr help sim'",
		    r->path, r->line, name);
		return -1;
	}
	if (r->seen[key]) {
		say("%s:%u: %s stands in line %u already: leave one of them out", r->path, r->line,
		    name, r->seen[key]);
		return -1;
	}
	r->seen[key] = r->line;
	if (*value == '\0') {
		say("%s:%u: %s: needs a value", r->path, r->line, name);
		return -1;
	}
	if (sweep_set(r->skip[key] ? &scratch : r->s, key, value, why)) {
		say("%s:%u: %s = %s: %s", r->path, r->line, name, value, why);
		return -1;
	}
	return 0;
}

static int take_line(struct reader *r, char *line)
{
	char *hash = strchr(line, '#'), *equals;

	if (hash)
		*hash = '\0';
	line = trim(line);
	if (*line == '\0')
		return 0;
	equals = strchr(line, '=');
	if (!equals)
		return wrong(r, "no '=': lines are KEY = VALUE, and # begins a comment");
	*equals = '\0';
	return take_pair(r, trim(line), trim(equals + 1));
}

static int read_lines(struct reader *r, FILE *from)
{
	char line[LINE_MAX_CHARS + 2];

	while (fgets(line, sizeof(line), from)) {
		size_t len = strlen(line);

		r->line++;
		if (len == sizeof(line) - 1 && line[len - 1] != '\n') {
			say("%s:%u: longer than %u characters", r->path, r->line, LINE_MAX_CHARS);
			return -1;
		}
		/* A NUL byte ends what fgets() shows of a line. */
		if (len && line[len - 1] != '\n' && !feof(from))
			return wrong(r, "a NUL byte: this is no text");
		if (take_line(r, line))
			return -1;
	}
	if (ferror(from)) {
		say("%s: cannot be read: %s", r->path, strerror(errno));
		return -1;
	}
	if (r->seen[sweep_key_find("rtt")] && r->seen[sweep_key_find("km")]) {
		say("%s:%u: rtt and km exclude each other", r->path, r->seen[sweep_key_find("km")]);
		return -1;
	}
	return 0;
}

int file_read(struct sweep *s, const char *path, const bool skip[SWEEP_KEYS])
{
	struct reader r = {.s = s, .skip = skip, .path = path};
	FILE *from = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	int rc;

	if (!from) {
		say("--file %s: cannot be opened: %s", path, strerror(errno));
		return -1;
	}
	rc = read_lines(&r, from);
	if (from != stdin)
		fclose(from);
	return rc;
}

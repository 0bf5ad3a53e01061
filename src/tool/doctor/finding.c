// SPDX-License-Identifier: Apache-2.0
/*
 * The list of findings. See finding.h.
 */
#include "tool/doctor/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *level_name(enum level level)
{
	static const char *const names[LEVELS] = {"ok", "note", "attention", "fault", "skipped"};

	return names[level];
}

struct finding *finding_add(struct findings *f, const char *area, enum level level, const char *id,
			    const char *fmt, ...)
{
	struct finding *x = f->n < FINDINGS_MAX ? &f->list[f->n++] : &f->spare;
	va_list args;

	*x = (struct finding){.area = area, .level = level};
	snprintf(x->id, sizeof x->id, "%s", id);
	va_start(args, fmt);
	vsnprintf(x->what, sizeof x->what, fmt, args);
	va_end(args);
	f->count[level]++;
	return x;
}

static void append(char *buf, size_t cap, const char *between, const char *fmt, va_list args)
{
	size_t used = strlen(buf);

	if (used) {
		snprintf(buf + used, cap - used, "%s", between);
		used = strlen(buf);
	}
	vsnprintf(buf + used, cap - used, fmt, args);
}

void finding_evidence(struct finding *x, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	append(x->evidence, sizeof x->evidence, "; ", fmt, args);
	va_end(args);
}

void finding_why(struct finding *x, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	append(x->why, sizeof x->why, " ", fmt, args);
	va_end(args);
}

void finding_fix(struct finding *x, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	append(x->fix, sizeof x->fix, "\n", fmt, args);
	va_end(args);
}

const struct finding *finding_find(const struct findings *f, const char *id)
{
	for (size_t i = 0; i < f->n; i++) {
		if (strcmp(f->list[i].id, id) == 0)
			return &f->list[i];
	}
	return NULL;
}

int findings_need_attention(const struct findings *f)
{
	return f->count[LEVEL_ATTENTION] + f->count[LEVEL_FAULT] > 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * See rate_util.h.
 */
#include "rate_util.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void rate_die(const char *text)
{
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, text);
	exit(2);
}

double rate_cpu_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static double number(const char *flag, const char *text, double min, double max)
{
	char *end, say[128];
	double v = text ? strtod(text, &end) : NAN;

	if (!text || end == text || *end != '\0' || !(v >= min && v <= max)) {
		snprintf(say, sizeof say, "%s %s: choose a number from %g to %g", flag,
			 text ? text : "(nothing)", min, max);
		rate_die(say);
	}
	return v;
}

static void usage(const struct rate_options *o)
{
	char say[128];

	snprintf(say, sizeof say, "usage: %s [--seconds S]%s [--memory MIB]%s",
		 program_invocation_short_name, o->unit ? " [--unit BYTES]" : "",
		 o->rounds ? " [--rounds N]" : "");
	rate_die(say);
}

void rate_options(struct rate_options *o, int argc, char **argv)
{
	for (int i = 1; i < argc; i += 2) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(argv[i], "--seconds") == 0)
			o->seconds = number(argv[i], value, 1e-4, 60);
		else if (o->unit && strcmp(argv[i], "--unit") == 0)
			o->unit = (size_t)number(argv[i], value, 64, 1 << 20) & ~(size_t)63;
		else if (strcmp(argv[i], "--memory") == 0)
			o->memory = (size_t)number(argv[i], value, 1, 4096) << 20;
		else if (o->rounds && strcmp(argv[i], "--rounds") == 0)
			o->rounds = (uint32_t)number(argv[i], value, 1, 1000);
		else
			usage(o);
	}
	if (o->memory < RATE_UNITS * o->unit)
		o->memory = RATE_UNITS * o->unit;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs beside it share: their options, and how they end and take the time. */
#ifndef BENCH_CODE_RATE_UTIL_H
#define BENCH_CODE_RATE_UTIL_H

#include <stddef.h>
#include <stdint.h>

struct rate_options {
	double seconds;	     /* that a rate is measured for, at least */
	size_t unit, memory; /* bytes; memory is at least a block of the longest code. unit 0:
			      * there is no such option */
	uint32_t rounds;     /* 0: there is no such option */
};

#define RATE_UNITS 256 /* of the longest code */

/* Names the program, and ends it: exit status 2. */
void rate_die(const char *text);
/* Reads flags over what *o says, which are the defaults. */
void rate_options(struct rate_options *o, int argc, char **argv);
/* CPU time of this thread, seconds. */
double rate_cpu_s(void);

#endif

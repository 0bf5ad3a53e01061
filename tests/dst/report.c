/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run tells: sites, the hash over its events, notes, and what a failure prints.
 */
#include "dst.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

static uint64_t own_sites[SITE_COUNT];
uint64_t *dst_sites = own_sites;
const char *dst_program = "dst";

void dst_site(enum dst_site site, uint64_t n)
{
	__atomic_fetch_add(&dst_sites[site], n, __ATOMIC_RELAXED);
}

const char *dst_site_name(unsigned int site)
{
	static const char *const names[] = {
#define NAME(name, text) #name,
		DST_SITES(NAME)
#undef NAME
	};

	return names[site];
}

const char *dst_site_text(unsigned int site)
{
	static const char *const texts[] = {
#define TEXT(name, text) text,
		DST_SITES(TEXT)
#undef TEXT
	};

	return texts[site];
}

void dst_trace(struct dst_world *w, uint64_t v)
{
	w->trace = (w->trace ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	w->trace ^= w->trace >> 29;
}

void dst_note(struct dst_world *w, const char *fmt, ...)
{
	va_list args;

	if (!w->verbose)
		return;
	fprintf(stderr, "%12.6f ms  ", (double)dst_now(w) / 1e6);
	va_start(args, fmt);
	(void)vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
}

static void features_list(const struct dst_world *w)
{
	fprintf(stderr, "%u hosts;", w->nhosts);
	for (unsigned int f = 0; f < F_COUNT; f++)
		if (w->on[f])
			fprintf(stderr, " %s", dst_feature_name(f));
	fputc('\n', stderr);
}

void dst_features_print(const struct dst_world *w)
{
	if (w->verbose)
		features_list(w);
}

void dst_fail(struct dst_world *w, const char *fmt, ...)
{
	va_list args;

	fprintf(stderr, "seed %llu, %.6f ms: ", (unsigned long long)w->seed,
		w->sim ? (double)dst_now(w) / 1e6 : 0.0);
	va_start(args, fmt);
	(void)vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	features_list(w);
	dst_conns_dump(w);
	dst_raw_dump(w);
	fprintf(stderr, "replay: %s --seed %llu --verbose\n", dst_program,
		(unsigned long long)w->seed);
	fflush(NULL);
	_exit(1);
}

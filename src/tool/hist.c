// SPDX-License-Identifier: Apache-2.0
/*
 * Log-linear histogram. See hist.h. Values below 2^SUB have a bucket each; above, every
 * power of two is cut into 2^SUB buckets.
 */
#include "tool/hist.h"

#include <math.h>
#include <string.h>

#define SUB (UINT64_C(1) << HIST_SUB_BITS)

static unsigned int bucket_of(uint64_t v)
{
	unsigned int shift;

	if (v < SUB)
		return (unsigned int)v;
	shift = 63u - (unsigned int)__builtin_clzll(v) - HIST_SUB_BITS;
	return (unsigned int)(((shift + 1) << HIST_SUB_BITS) + ((v >> shift) - SUB));
}

static uint64_t bucket_middle(unsigned int b)
{
	unsigned int shift;

	if (b < SUB)
		return b;
	shift = (b >> HIST_SUB_BITS) - 1;
	return ((SUB + (b & (SUB - 1))) << shift) + ((UINT64_C(1) << shift) >> 1);
}

void hist_init(struct hist *h)
{
	memset(h, 0, sizeof *h);
	h->min = UINT64_MAX;
}

void hist_add(struct hist *h, uint64_t v)
{
	double delta = (double)v - h->mean;

	h->n++;
	h->mean += delta / (double)h->n;
	h->m2 += delta * ((double)v - h->mean);
	if (v < h->min)
		h->min = v;
	if (v > h->max)
		h->max = v;
	h->count[bucket_of(v)]++;
}

uint64_t hist_quantile(const struct hist *h, double share)
{
	uint64_t want = (uint64_t)ceil(share * (double)h->n), seen = 0;

	if (h->n == 0)
		return 0;
	if (want == 0)
		want = 1;
	for (unsigned int b = 0; b < HIST_BUCKETS; b++) {
		uint64_t v;

		seen += h->count[b];
		if (seen < want)
			continue;
		v = bucket_middle(b);
		return v < h->min ? h->min : v > h->max ? h->max : v;
	}
	return h->max;
}

double hist_stdev(const struct hist *h)
{
	return h->n > 1 ? sqrt(h->m2 / (double)(h->n - 1)) : 0;
}

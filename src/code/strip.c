// SPDX-License-Identifier: Apache-2.0
/* Strips through ISA-L. Why: strip.h. */
#include "code/strip.h"

#include <isa-l/erasure_code.h>
#include <string.h>

#include "base/bits.h"
#include "base/check.h"

#define PTRS 256u
/* ISA-L's fast paths start at a vector of 64 bytes, so that less is never left for the last. */
#define LEAST 64u
#define STRIP_MAX 4096u
#define STRIP_MIN 512u
#define NEAR_BYTES (UINT32_C(64) << 10) /* of inputs, which every few outputs are read again */
#define LINE 64u
/* Outputs from which on there is time to fetch while computing; below it is in the way. */
#define PREFETCH_OUTPUTS 8u

struct strip {
	const struct code_strips *job;
	uint8_t *in[PTRS], *out[PTRS];
	uint8_t pad[STRIP_MAX + LEAST]; /* stands for the strip of the short symbol */
};

static uint32_t width_of(uint32_t nin)
{
	uint32_t width = NEAR_BYTES / nin / LEAST * LEAST;

	return width < STRIP_MIN ? STRIP_MIN : width > STRIP_MAX ? STRIP_MAX : width;
}

/* How much of a strip the short symbol has memory for. */
static uint32_t part_of(const struct code_strips *job, uint32_t at, uint32_t width)
{
	return job->short_len <= at ? 0 : (uint32_t)u64_min(job->short_len - at, width);
}

static void aim(struct strip *s, uint32_t at, uint32_t width)
{
	const struct code_strips *job = s->job;
	uint32_t part = part_of(job, at, width);

	for (uint32_t i = 0; i < job->nin; i++)
		s->in[i] = (uint8_t *)job->in[i] + at; /* ISA-L only reads it */
	for (uint32_t i = 0; i < job->nout; i++)
		s->out[i] = job->out[i] + at;
	if (part == width)
		return;
	if (job->short_in != CODE_STRIP_NONE) {
		if (part > 0)
			memcpy(s->pad, s->in[job->short_in], part);
		memset(s->pad + part, 0, width - part);
		s->in[job->short_in] = s->pad;
	}
	if (job->short_out != CODE_STRIP_NONE)
		s->out[job->short_out] = s->pad;
}

/* The next strip comes in while this one is worked on. */
static void prefetch(const struct strip *s, uint32_t at, uint32_t width)
{
	const struct code_strips *job = s->job;

	for (uint32_t i = 0; i < job->nin; i++) {
		if (i == job->short_in)
			continue;
		for (uint32_t line = 0; line < width; line += LINE)
			__builtin_prefetch(job->in[i] + at + line);
	}
}

void code_strips_run(const struct code_strips *job)
{
	const uint32_t usual = width_of(job->nin);
	struct strip s;

	SDR_ASSERT(job->nin >= 1 && job->nin < PTRS && job->nout >= 1 && job->nout < PTRS);
	s.job = job;
	for (uint32_t at = 0, width; at < job->len; at += width) {
		uint32_t rest = job->len - at;

		width = rest < usual + LEAST ? rest : usual;
		aim(&s, at, width);
		if (rest > width && job->nout >= PREFETCH_OUTPUTS)
			prefetch(&s, at + width, (uint32_t)u64_min(rest - width, usual));
		ec_encode_data((int)width, (int)job->nin, (int)job->nout, (uint8_t *)job->tables,
			       s.in, s.out);
		if (job->short_out != CODE_STRIP_NONE) {
			uint32_t part = part_of(job, at, width);

			if (part > 0 && part < width)
				memcpy(job->out[job->short_out] + at, s.pad, part);
		}
	}
}

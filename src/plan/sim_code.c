// SPDX-License-Identifier: Apache-2.0
/*
 * Groups of coded blocks, and the hybrid's repairs. See sim.h.
 */
#include "plan/sim.h"

#include "base/bits.h"
#include "base/check.h"
#include "plan/hybrid.h"
#include "plan/num.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define BATCH_MAX 64u
#define LATE_MAX 4096u

static uint64_t group_units(const struct sim *s)
{
	return (uint64_t)s->depth * s->p->k;
}

static uint64_t group_parity(const struct sim *s)
{
	return (uint64_t)s->depth * s->p->m;
}

/* Of the i-th unit (or parity unit) of a group: which block's, which cell of it. */
static size_t cell_of(const struct sim *s, uint64_t i)
{
	return (size_t)(i % s->depth) * s->cells + (size_t)(i / s->depth % s->cells);
}

/* Counts what is lost of `count` slots from s->slot on; the first is number `first`. */
static void count_lost(struct sim *s, uint64_t first, uint64_t count, uint32_t *lost, uint8_t *gone)
{
	uint64_t begin = s->slot, at = begin, to = begin + count;

	s->slot = to;
	s->sent += (double)count;
	while (at < to) {
		uint64_t until;

		chan_seek(&s->chan, at);
		at = u64_max(s->chan.from, at);
		until = u64_min(s->chan.to, to);
		for (; at < until; at++) {
			lost[cell_of(s, first + at - begin)]++;
			if (gone)
				gone[first + at - begin] = 1;
		}
		at = until;
	}
}

/* When the block's cell has what it lacks: the parity that makes up for `lost` units. */
static uint64_t decoded_after(const struct sim *s, uint32_t block, uint32_t cell, uint32_t lost)
{
	uint64_t last = 0;

	for (uint32_t j = cell; j < s->p->m && lost > 0; j += s->cells) {
		uint64_t i = (uint64_t)j * s->depth + block;

		if (s->parity_gone[i])
			continue;
		last = i + 1;
		lost--;
	}
	SDR_ASSERT(lost == 0);
	return last;
}

static int block_failed(struct sim *s, uint32_t block, uint64_t units, uint32_t lack,
			uint64_t parity_slot)
{
	uint64_t last = s->p->m ? (uint64_t)(s->p->m - 1) * s->depth + block + 1 : 0;

	s->failed_blocks++;
	s->failed_units += (double)units;
	if (s->p->scheme != PLAN_HYBRID)
		return 0;
	return sim_queue_push(s, &s->repair, parity_slot + last + s->u->rtt_slots, lack);
}

/* One block of a group of `units` whose parity began at parity_slot. */
static int close_block(struct sim *s, uint32_t block, uint64_t units, uint64_t parity_slot,
		       bool last)
{
	uint64_t mine = units / s->depth + (block < units % s->depth);
	uint64_t newest = parity_slot - units + (mine - 1) * s->depth + block + 1;

	if (mine == 0)
		return 0;
	for (uint32_t c = 0; c < s->cells; c++) {
		size_t at = (size_t)block * s->cells + c;
		uint32_t lost = s->lost_units[at], all = lost + s->lost_parity[at];

		if (lost > 0 && all > s->limit)
			return block_failed(s, block, mine, all - s->limit, parity_slot);
		if (last && lost > 0)
			newest = u64_max(newest, parity_slot + decoded_after(s, block, c, lost));
	}
	if (last)
		sim_arrived(s, newest);
	return 0;
}

static int close_group(struct sim *s, uint64_t units, bool last)
{
	uint64_t parity_slot = s->slot;
	int err = 0;

	if (last)
		memset(s->parity_gone, 0, group_parity(s));
	count_lost(s, 0, group_parity(s), s->lost_parity, last ? s->parity_gone : NULL);
	for (uint32_t b = 0; b < s->depth && !err; b++)
		err = close_block(s, b, units, parity_slot, last);
	return err;
}

/* Groups before the next loss need no look, but for the last, which says when all ends. */
static uint64_t leap(struct sim *s, uint64_t count)
{
	uint64_t slots = group_units(s) + group_parity(s), groups;

	if (sim_queue_head(&s->resend) || count <= group_units(s))
		return count;
	chan_seek(&s->chan, s->slot);
	groups = u64_sub_floor(s->chan.from, s->slot) / slots;
	groups = u64_min(groups, (count - 1) / group_units(s));
	s->slot += groups * slots;
	s->sent += (double)(groups * slots);
	return count - groups * group_units(s);
}

static double block_fail(const struct sim *s)
{
	const struct burst *b = &s->u->burst;
	struct ec_code code = {s->p->k, s->p->m, s->p->scheme == PLAN_EC_XOR};
	double fail[PLAN_CODE_MAX + 1], group[2];
	uint32_t size;

	if (b->independent)
		return ec_block_fail(&code, b->loss);
	if (!code.xor_groups) {
		burst_block_fail(b, code.k, code.m, s->depth, fail);
		return fail[code.m];
	}
	size = (code.k + code.m - 1) / code.m;
	burst_block_fail(b, size, 1, (double)s->depth * code.m, group);
	return num_any(code.m, group[1]);
}

/* How many of `trials` fail. */
static double draw_failed(struct sim *s, double trials, double fail)
{
	double mean = trials * fail, at = 0, failed = 0;

	if (mean > 1000)
		return fmax(0, round(mean + sqrt(mean * (1 - fail)) * num_normal(s->rng)));
	while (fail > 0 && (at += (double)num_geometric(s->rng, log1p(-fail))) <= trials)
		failed++;
	return failed;
}

static uint64_t skip_groups(struct sim *s, uint64_t count)
{
	uint64_t groups;
	double failed;

	if (!units_coded(s->p->scheme) || count <= SIM_EC_UNITS + group_units(s))
		return count;
	groups = (count - SIM_EC_UNITS) / group_units(s);
	failed = draw_failed(s, (double)groups * s->depth, block_fail(s));
	s->failed_blocks += failed;
	s->failed_units += failed * s->p->k;
	s->skipped_time += (double)(groups * (group_units(s) + group_parity(s)));
	s->sent += (double)(groups * (group_units(s) + group_parity(s)));
	return count - groups * group_units(s);
}

/* What is due goes first, then first sends up to the next that falls due. */
static uint64_t next_part(struct sim *s, uint64_t room, uint64_t *count)
{
	struct sim_run *due = sim_queue_head(&s->resend);
	uint64_t part;

	if (due && due->ready <= s->slot) {
		part = u64_min(due->len, room);
		due->ready += part;
		due->len -= part;
		if (due->len == 0)
			sim_queue_pop(&s->resend);
		return part;
	}
	part = u64_min(*count, room);
	if (due)
		part = u64_min(part, due->ready - s->slot);
	*count -= part;
	return part;
}

int sim_coded(struct sim *s, uint64_t count)
{
	size_t cells = (size_t)s->depth * s->cells;
	uint64_t units, part;
	int err = 0;

	count = skip_groups(s, count);
	do {
		count = leap(s, count);
		memset(s->lost_units, 0, cells * sizeof(*s->lost_units));
		memset(s->lost_parity, 0, cells * sizeof(*s->lost_parity));
		for (units = 0; units < group_units(s); units += part) {
			part = next_part(s, group_units(s) - units, &count);
			if (part == 0)
				break;
			count_lost(s, units, part, s->lost_units, NULL);
		}
		if (units > 0)
			err = close_group(s, units, count == 0);
	} while (units > 0 && !err);
	return err;
}

/* A late run goes out `copies` times; what no copy brought is due again. */
static int send_late(struct sim *s, uint64_t len)
{
	uint8_t lost[LATE_MAX];
	uint64_t stride = u64_max(len, hybrid_gap(&s->u->burst, s->p->copies, s->u->rtt_slots));
	uint64_t begin = s->slot, due;

	memset(lost, 1, len);
	for (uint32_t copy = 0; copy < s->p->copies; copy++) {
		uint64_t first = begin + copy * stride;

		s->sent += (double)len;
		s->slot = first + len;
		for (uint64_t i = 0; i < len; i++) {
			chan_seek(&s->chan, first + i);
			if (s->chan.from <= first + i || !lost[i])
				continue;
			lost[i] = 0;
			sim_arrived(s, first + i + 1);
		}
	}
	due = s->slot + s->u->rtt_slots;
	for (uint64_t i = 0; i < len; i++) {
		if (lost[i] && sim_resend(s, due, 1))
			return -ENOMEM;
	}
	return 0;
}

static uint32_t margin_of(struct sim *s, uint32_t deficit)
{
	double gap = (double)hybrid_gap(&s->u->burst, deficit, s->u->rtt_slots);

	SDR_ASSERT(deficit >= 1 && deficit <= PLAN_CODE_MAX);
	if (s->margin[deficit] == 0)
		s->margin[deficit] = 1 + hybrid_margin(&s->u->burst, deficit, gap, s->p->lambda,
						       s->u->rtt_slots);
	return s->margin[deficit] - 1;
}

struct fix {
	uint32_t lack, units;
};

/* All failed blocks that are named by now, a unit of each in turn. */
static int send_repairs(struct sim *s)
{
	struct fix fix[BATCH_MAX];
	uint32_t count = 0, most = 0;
	uint64_t begin = s->slot, stride;
	struct sim_run *due;

	while (count < BATCH_MAX && (due = sim_queue_head(&s->repair)) && due->ready <= begin) {
		fix[count].lack = (uint32_t)due->len;
		fix[count].units = fix[count].lack + margin_of(s, fix[count].lack);
		most = (uint32_t)u64_max(most, fix[count].units);
		count++;
		sim_queue_pop(&s->repair);
	}
	stride = u64_max(count, hybrid_gap(&s->u->burst, most, s->u->rtt_slots));
	for (uint32_t i = 0; i < most; i++) {
		for (uint32_t f = 0; f < count; f++) {
			uint64_t at = begin + i * stride + f;

			if (i >= fix[f].units)
				continue;
			s->sent++;
			s->slot = at + 1;
			chan_seek(&s->chan, at);
			if (s->chan.from <= at || fix[f].lack == 0)
				continue;
			if (--fix[f].lack == 0)
				sim_arrived(s, at + 1);
		}
	}
	for (uint32_t f = 0; f < count; f++) {
		if (fix[f].lack > 0 &&
		    sim_queue_push(s, &s->repair, s->slot + s->u->rtt_slots, fix[f].lack))
			return -ENOMEM;
	}
	return 0;
}

int sim_repair(struct sim *s)
{
	for (;;) {
		struct sim_run *late = sim_queue_head(&s->resend);
		struct sim_run *fix = sim_queue_head(&s->repair);
		uint64_t len;
		int err;

		if (!late && !fix)
			return 0;
		if (fix && (!late || fix->ready <= late->ready)) {
			s->slot = u64_max(s->slot, fix->ready);
			err = send_repairs(s);
		} else {
			s->slot = u64_max(s->slot, late->ready);
			len = u64_min(late->len, LATE_MAX);
			late->ready += len;
			late->len -= len;
			if (late->len == 0)
				sim_queue_pop(&s->resend);
			err = send_late(s, len);
		}
		if (err)
			return err;
	}
}

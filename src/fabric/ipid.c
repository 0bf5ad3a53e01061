/* SPDX-License-Identifier: Apache-2.0 */
/* The rule of ipid.h. Knows nothing of packets, sockets or clocks. */
#include "fabric/ipid.h"

#include "base/bits.h"

/*
 * The state's fields, lowest first. The time is in milliseconds modulo 2^26, more than 18
 * hours: a longer pause looks shorter, which costs a resynchronisation.
 */
#define LAST_SHIFT 0
#define CANDIDATE_SHIFT 16
#define RUN_SHIFT 32 /* how many candidates in a row, 0 .. IPID_RESYNC - 1 */
#define RUN_MASK 31u
#define VALID (UINT64_C(1) << 37)
#define MS_SHIFT 38
#define MS_MASK UINT64_C(0x3ffffff)

#define NS_IN_MS UINT64_C(1000000)

static uint64_t pack(uint16_t last, uint16_t candidate, uint32_t run, uint64_t ms)
{
	return VALID | (uint64_t)last << LAST_SHIFT | (uint64_t)candidate << CANDIDATE_SHIFT |
	       (uint64_t)run << RUN_SHIFT | (ms & MS_MASK) << MS_SHIFT;
}

static uint16_t candidate_of(uint64_t state)
{
	return (uint16_t)(state >> CANDIDATE_SHIFT);
}

static uint32_t run_of(uint64_t state)
{
	return (uint32_t)(state >> RUN_SHIFT) & RUN_MASK;
}

static uint64_t pause_ms(uint64_t state, uint64_t now_ns)
{
	return (now_ns / NS_IN_MS - (state >> MS_SHIFT)) & MS_MASK;
}

/* 16-bit serial order. */
static bool is_ahead(uint16_t last, uint16_t id, uint64_t pause)
{
	return (uint16_t)(id - last) <= u64_min(IPID_AHEAD + IPID_PER_MS * pause, IPID_AHEAD_MAX);
}

static bool is_behind(uint16_t last, uint16_t id)
{
	return (uint16_t)(last - id) <= IPID_BEHIND;
}

uint16_t ipid_last(uint64_t state)
{
	return (uint16_t)(state >> LAST_SHIFT);
}

/* Near the last one: then *state moves on. */
static bool near_last(uint64_t *state, uint16_t id, uint64_t now_ns)
{
	uint16_t last = ipid_last(*state);

	if (is_ahead(last, id, pause_ms(*state, now_ns)))
		*state = pack(id, 0, 0, now_ns / NS_IN_MS);
	else if (is_behind(last, id))
		*state = pack(last, 0, 0, now_ns / NS_IN_MS);
	else
		return false;
	return true;
}

bool ipid_judge(uint64_t *state, uint16_t id, uint64_t now_ns)
{
	uint32_t run = run_of(*state);

	if ((*state & VALID) && near_last(state, id, now_ns))
		return true;
	run = is_ahead(candidate_of(*state), id, 0) ? run + 1 : 1;
	if (!(*state & VALID) || run >= IPID_RESYNC) {
		*state = pack(id, 0, 0, now_ns / NS_IN_MS);
		return true;
	}
	/* The time stays that of the last one that was believed: a pause counts from there. */
	*state = pack(ipid_last(*state), id, run, *state >> MS_SHIFT);
	return false;
}

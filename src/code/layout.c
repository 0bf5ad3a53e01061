// SPDX-License-Identifier: Apache-2.0
/* Packets and symbols: arithmetic only. See layout.h. */
#include "code/layout.h"

#include <errno.h>

#include "base/bits.h"
#include "base/check.h"

#define K_MAX 255u

int code_layout_init(struct code_layout *l, uint32_t npkts, uint32_t k, uint32_t depth)
{
	if (npkts == 0 || npkts == CODE_LAYOUT_NONE || k == 0 || k > K_MAX || depth == 0)
		return -EINVAL;
	l->npkts = npkts;
	l->k = k;
	l->nblocks = (uint32_t)u64_div_up(npkts, k);
	l->depth = (uint32_t)u64_min(depth, l->nblocks);
	return 0;
}

uint32_t code_layout_ngroups(const struct code_layout *l)
{
	return (uint32_t)u64_div_up(l->nblocks, l->depth);
}

struct code_group code_layout_group(const struct code_layout *l, uint32_t g)
{
	const uint64_t whole = (uint64_t)l->depth * l->k;
	struct code_group out;

	SDR_ASSERT(g < code_layout_ngroups(l));
	out.first_pkt = (uint32_t)(g * whole);
	out.npkts = (uint32_t)u64_min(whole, l->npkts - out.first_pkt);
	out.first_block = g * l->depth;
	out.nblocks = (uint32_t)u64_min(l->depth, l->nblocks - out.first_block);
	return out;
}

static struct code_group group_of_block(const struct code_layout *l, uint32_t block)
{
	SDR_ASSERT(block < l->nblocks);
	return code_layout_group(l, block / l->depth);
}

struct code_place code_layout_place(const struct code_layout *l, uint32_t pkt)
{
	struct code_group g = code_layout_group(l, (uint32_t)(pkt / ((uint64_t)l->depth * l->k)));
	uint32_t r = pkt - g.first_pkt;

	SDR_ASSERT(pkt < l->npkts);
	return (struct code_place){.block = g.first_block + r % g.nblocks, .symbol = r / g.nblocks};
}

uint32_t code_layout_block_count(const struct code_layout *l, uint32_t block)
{
	struct code_group g = group_of_block(l, block);

	/* The first block of a group has one more where they don't come out even. */
	return (uint32_t)u64_div_up(g.npkts - (block - g.first_block), g.nblocks);
}

uint32_t code_layout_packet(const struct code_layout *l, uint32_t block, uint32_t symbol)
{
	struct code_group g = group_of_block(l, block);
	uint64_t r = (uint64_t)symbol * g.nblocks + (block - g.first_block);

	return r < g.npkts ? g.first_pkt + (uint32_t)r : CODE_LAYOUT_NONE;
}

uint64_t code_layout_parity_packet(const struct code_layout *l, uint32_t block, uint32_t number)
{
	SDR_ASSERT(block < l->nblocks);
	return (uint64_t)number * l->nblocks + block;
}

struct code_place code_layout_parity_place(const struct code_layout *l, uint64_t pkt)
{
	return (struct code_place){.block = (uint32_t)(pkt % l->nblocks),
				   .symbol = (uint32_t)(pkt / l->nblocks)};
}

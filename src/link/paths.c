/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which path a flow takes: five words of its tuple, mixed by multiplications, the top of the
 * result scaled to the number of paths. Contract: paths.h.
 */
#include "link/paths.h"

#include "base/bits.h"

/* A bijection in which each bit of x reaches all bits above the middle. */
static uint64_t mix(uint64_t x)
{
	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	return x ^ x >> 29;
}

uint32_t link_path_of(const struct link_flow *flow, uint32_t n_paths, uint64_t seed)
{
	uint64_t h = mix(seed + UINT64_C(0x9e3779b97f4a7c15));

	h = mix(h ^ get_be64(flow->src));
	h = mix(h ^ get_be64(flow->src + 8));
	h = mix(h ^ get_be64(flow->dst));
	h = mix(h ^ get_be64(flow->dst + 8));
	h = mix(h ^ ((uint64_t)flow->sport << 32 | (uint64_t)flow->dport << 16 | flow->proto));
	h = mix(mix(h));
	return (uint32_t)((h >> 32) * n_paths >> 32);
}

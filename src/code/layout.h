/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which packet of a message is which symbol of which block. Packets are dealt to `depth` blocks
 * in turn, so that a burst of losses hits each of them a little:
 *
 *	group 0				group 1 (the last, shorter)
 *	packet  0  1  2  3  4  5	6  7  8  9
 *	block   0  1  0  1  0  1	2  3  2  3	depth 2, k = 3
 *	symbol  0  0  1  1  2  2	0  0  1  1
 *
 * A group is depth * k packets; the last has what is left and only as many blocks as that needs.
 * Parity symbol j of block b is packet j * nblocks + b of the parity message. Pure functions of
 * four numbers; knows nothing of codes or memory.
 */
#ifndef SDR_CODE_LAYOUT_H
#define SDR_CODE_LAYOUT_H

#include <stdint.h>

#define CODE_LAYOUT_NONE UINT32_MAX

struct code_layout {
	uint32_t npkts;	  /* of the coded span, counted from its start */
	uint32_t k;	  /* data symbols of a whole block */
	uint32_t nblocks; /* the least that hold npkts */
	uint32_t depth;	  /* blocks of a group, <= nblocks */
};

struct code_place {
	uint32_t block, symbol;
};

/* Packets first_pkt .. of blocks first_block ..: packet first_pkt + r is symbol r / nblocks of
 * block first_block + r mod nblocks. */
struct code_group {
	uint32_t first_pkt, npkts;
	uint32_t first_block, nblocks;
};

/* A larger depth than there are blocks is as good as their number. 0; -EINVAL: a number is 0,
 * k is above 255, or npkts is CODE_LAYOUT_NONE. */
int code_layout_init(struct code_layout *l, uint32_t npkts, uint32_t k, uint32_t depth);

uint32_t code_layout_ngroups(const struct code_layout *l);
/* g < code_layout_ngroups(). */
struct code_group code_layout_group(const struct code_layout *l, uint32_t g);

/* pkt < npkts. */
struct code_place code_layout_place(const struct code_layout *l, uint32_t pkt);
/* block < nblocks: how many data symbols it has, 1 .. k; the others are zeros. */
uint32_t code_layout_block_count(const struct code_layout *l, uint32_t block);
/* block < nblocks. CODE_LAYOUT_NONE: that symbol is zeros. */
uint32_t code_layout_packet(const struct code_layout *l, uint32_t block, uint32_t symbol);

/* block < nblocks, number < 255. */
uint64_t code_layout_parity_packet(const struct code_layout *l, uint32_t block, uint32_t number);
/* Any packet of a parity message below 255 * nblocks; `symbol` is the parity number. */
struct code_place code_layout_parity_place(const struct code_layout *l, uint64_t pkt);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The immediate of a rocev2-mode packet.
 *
 * A NIC hands software 32 bits with each packet and nothing else, so they carry the
 * slot, the packet's index, and a sample of the user's own immediate:
 *
 *	 31              22 21                                    4 3     0
 *	+------------------+---------------------------------------+-------+
 *	|     slot (10)    |              packet (18)              | u (4) |   10 + 18 + 4
 *	+------------------+---------------------------------------+-------+
 *	|  slot (8)  |                packet (22)                   | u (2)|    8 + 22 + 2
 *	+------------+----------------------------------------------+------+
 *
 * Packet p carries fragment f = p mod (32 / u): bits [f*u, (f+1)*u) of the user's
 * immediate. So any eight (sixteen) packets in a row hold all of it.
 *
 * Knows nothing of packets' other headers. Used in rocev2 mode only; in sdr mode
 * ImmDt is the user's immediate, whole.
 */
#ifndef SDR_WIRE_IMM_H
#define SDR_WIRE_IMM_H

#include <stdbool.h>
#include <stdint.h>

/* slot_bits + packet_bits + user_bits == 32; user_bits is 2 or 4. */
struct wire_imm_split {
	uint8_t slot_bits;
	uint8_t packet_bits;
	uint8_t user_bits;
};

extern const struct wire_imm_split wire_imm_10_18_4;
extern const struct wire_imm_split wire_imm_8_22_2;

/* How many consecutive packets hold the whole user immediate: 8 or 16. */
static inline uint32_t wire_imm_fragments(const struct wire_imm_split *split)
{
	return 32u / split->user_bits;
}

static inline uint32_t wire_imm_max_slots(const struct wire_imm_split *split)
{
	return UINT32_C(1) << split->slot_bits;
}

static inline uint32_t wire_imm_max_packets(const struct wire_imm_split *split)
{
	return UINT32_C(1) << split->packet_bits;
}

/* The fragment of the user's immediate that belongs to a packet. */
static inline uint32_t wire_imm_fragment(const struct wire_imm_split *split, uint32_t packet,
					 uint32_t user_imm)
{
	uint32_t shift = (packet & (wire_imm_fragments(split) - 1)) * split->user_bits;

	return user_imm >> shift & ((UINT32_C(1) << split->user_bits) - 1);
}

/* ImmDt of a packet. slot and packet must be below the split's maxima. */
static inline uint32_t wire_imm_pack(const struct wire_imm_split *split, uint32_t slot,
				     uint32_t packet, uint32_t user_imm)
{
	return slot << (32 - split->slot_bits) | packet << split->user_bits |
	       wire_imm_fragment(split, packet, user_imm);
}

/* Every 32-bit value is a valid immediate; ranges are the caller's look-up's matter. */
static inline void wire_imm_unpack(const struct wire_imm_split *split, uint32_t imm, uint32_t *slot,
				   uint32_t *packet, uint32_t *fragment)
{
	*slot = imm >> (32 - split->slot_bits);
	*packet = imm >> split->user_bits & (wire_imm_max_packets(split) - 1);
	*fragment = imm & ((UINT32_C(1) << split->user_bits) - 1);
}

/* The user's immediate, being put together from fragments. All zero at the start. */
struct wire_imm_gather {
	uint32_t value;
	uint32_t have; /* bit f: fragment f is in value */
};

/* Adds a packet's fragment. The first of each kind wins; repeats are harmless. */
void wire_imm_gather_add(struct wire_imm_gather *gather, const struct wire_imm_split *split,
			 uint32_t packet, uint32_t fragment);

/* True once value is the whole immediate. */
bool wire_imm_gather_complete(const struct wire_imm_gather *gather,
			      const struct wire_imm_split *split);

#endif

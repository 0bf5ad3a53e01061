/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two splits of the immediate, and the user's immediate put together again.
 * Knows nothing of packets' other fields. Layout: imm.h.
 */
#include "wire/imm.h"

#include "base/bits.h"

const struct wire_imm_split wire_imm_10_18_4 = {.slot_bits = 10, .packet_bits = 18, .user_bits = 4};
const struct wire_imm_split wire_imm_8_22_2 = {.slot_bits = 8, .packet_bits = 22, .user_bits = 2};

void wire_imm_gather_add(struct wire_imm_gather *gather, const struct wire_imm_split *split,
			 uint32_t packet, uint32_t fragment)
{
	uint32_t index = packet & (wire_imm_fragments(split) - 1);
	uint32_t mask = (UINT32_C(1) << split->user_bits) - 1;

	if (gather->have >> index & 1)
		return;
	gather->have |= UINT32_C(1) << index;
	gather->value |= (fragment & mask) << (index * split->user_bits);
}

bool wire_imm_gather_complete(const struct wire_imm_gather *gather,
			      const struct wire_imm_split *split)
{
	return gather->have == (uint32_t)bits_low(wire_imm_fragments(split));
}

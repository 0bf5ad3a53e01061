/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Test only: one bound message, the slow and obviously right way. Bytes instead of bits,
 * division instead of tricks, and everything derived from the packets that were taken,
 * straight from the protocol's sentences. Knows nothing of rx.h but its verdicts.
 */
#ifndef SDR_RX_TWIN_H
#define SDR_RX_TWIN_H

#include <stdbool.h>
#include <stdint.h>

#define TWIN_PKTS 512

struct twin {
	uint64_t len;
	uint32_t payload;
	uint32_t chunk; /* packets in one */
	uint32_t imm_frags;
	bool sparse;
	bool told; /* how long it is: told_bytes */
	uint64_t told_bytes;
	uint32_t npkts;
	bool claimed[TWIN_PKTS];
	bool committed[TWIN_PKTS];
	uint32_t pkt_len[TWIN_PKTS]; /* of claimed ones */
	bool chunk_set[TWIN_PKTS];
	bool imm_seen[16];
	uint32_t imm_frag[16];
	uint64_t duplicate;
	uint64_t out_of_range;
	uint64_t beyond_end;
	uint64_t misaligned;
};

void twin_bind(struct twin *t, uint64_t len, uint32_t payload, uint32_t chunk, uint32_t imm_frags,
	       bool sparse);
bool twin_end(const struct twin *t, uint32_t *npkts, uint64_t *bytes);
/* `news`: a packet was committed. */
int twin_end_set(struct twin *t, uint64_t bytes, bool *news);
int twin_index(struct twin *t, uint64_t offset, uint32_t *index);
int twin_admit(struct twin *t, uint32_t first, uint32_t count, uint32_t last_len);
/* Takes what it can of an admitted run; took[i] says whether packet first + i was new. */
void twin_claim(struct twin *t, uint32_t first, uint32_t count, uint32_t last_len, bool *took);
void twin_commit(struct twin *t, uint32_t pkt);
/* After the last of the commits that happen at once. */
void twin_chunks_update(struct twin *t);
bool twin_imm_add(struct twin *t, uint32_t index, uint32_t fragment);
bool twin_imm_get(const struct twin *t, uint32_t *imm);

#endif

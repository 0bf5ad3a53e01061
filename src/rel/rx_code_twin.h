/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiver's blocks beside a twin that works all out anew from the bitmaps: which can be
 * decoded, what an ACK says of them, where parity is looked for. Every look asserts that the two
 * agree.
 */
#ifndef SDR_REL_RX_CODE_TWIN_H
#define SDR_REL_RX_CODE_TWIN_H

#include "base/bits.h"
#include "base/rng.h"
#include "code/code.h"
#include "code/layout.h"
#include "rel/rx.h"

#define MS UINT64_C(1000000)
#define RTT (16 * MS)
#define TURN (RTT / 16)
#define PROOF (TURN + REL_RX_PROOF_SLACK_NS) /* at this RTT */
#define MESSAGE 40u
#define BATCH_BLOCKS 16u

/* The owner's bitmaps, what of them the receiver was told, and what follows from that. */
struct side {
	struct rel_rx rx;
	struct rel_coding coding;
	struct code_layout layout;
	struct code *code;
	uint32_t npkts, nparity;
	uint64_t *data, *parity, *fed, *pfed;
	bool *pending; /* by block: a symbol came since it was last named */
	bool coded, later;
	uint64_t arrived, now, arrived_ns;
	uint32_t told, cut;
	uint64_t *told_set; /* blocks in the last ACK */
};

static inline bool side_has(const uint64_t *set, uint64_t i)
{
	return set[i / 64] >> (i % 64) & 1;
}

static inline void side_add(uint64_t *set, uint64_t i)
{
	set[i / 64] |= UINT64_C(1) << (i % 64);
}

/* Zeroed, for n bits and a word more. */
void *side_words(uint64_t n);
void side_code(struct side *s);
struct side *side_on(const struct rel_coding *coding, uint32_t tail, const struct sdr_alloc *alloc);
struct side *side_new(const struct rel_coding *coding, uint32_t tail);
void side_free(struct side *s);
struct code_set side_have(const struct side *s, uint32_t block);
bool side_lacks(const struct side *s, uint32_t block);
uint32_t side_deficit(const struct side *s, uint32_t block);
uint32_t side_report_to(const struct side *s);
void side_arrived(struct side *s);
void side_data_arrives(struct side *s, uint64_t pkt);
void side_parity_arrives(struct side *s, uint64_t pkt);
void side_feed(struct side *s, uint32_t first, uint32_t n);
void side_feed_parity(struct side *s, uint32_t first, uint32_t n);
uint64_t side_look(struct side *s);
uint32_t side_drain(struct side *s, struct rng *rng, double decode);
void side_check_drained(const struct side *s);
int side_ack(struct side *s, size_t cap);

#endif

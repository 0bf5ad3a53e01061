/* SPDX-License-Identifier: Apache-2.0 */
/* What the receiver's files share. Not for anyone outside rel/. */
#ifndef SDR_REL_RX_PRIV_H
#define SDR_REL_RX_PRIV_H

#include "base/bits.h"
#include "base/check.h"
#include "rel/rx.h"

#define REL_KNOWN_WORDS 64u

/* A page of the bits that we know of, between cum and hi. */
struct rel_known {
	uint64_t word[REL_KNOWN_WORDS];
};

struct rel_rx_msg {
	uint32_t message;
	uint32_t npkts; /* the end, or the room while it is unknown */
	bool end_known, is_dirty;
	uint32_t cum, hi;
	uint32_t look_words; /* how far beyond hi the next look goes */
	struct rel_known **known;
	uint32_t nknown, known_from; /* pages; those below known_from are freed: all set */
	struct rel_rx_msg *before, *after, *next_dirty;
};

struct rel_rx_msg *rel_rx_find(const struct rel_rx *rx, uint32_t message);
/* How far windows of this message reach: packets below it. */
uint32_t rel_rx_reach(const struct rel_rx *rx, const struct rel_rx_msg *msg);
/* Bits of word i (of the message) that are below its end. */
uint64_t rel_rx_valid_bits(const struct rel_rx_msg *msg, uint64_t word);
/* The words that the scan asked for have come. */
void rel_rx_encode(struct rel_rx *rx, struct rel_rx_msg *msg, const uint64_t *words);

void rel_rx_undirty(struct rel_rx *rx, struct rel_rx_msg *msg);

/* rx_span.c */
static inline struct rel_rx_span *rel_rx_span_at(const struct rel_rx *rx, uint64_t pos)
{
	return &rx->span[pos % REL_RX_SPANS];
}
/* Compares words with what was known, and remembers what is new as spans. False: no memory
 * for some of it. */
bool rel_rx_learn(struct rel_rx *rx, struct rel_rx_msg *msg, uint32_t first_word,
		  const uint64_t *words, uint32_t nwords);
/* Nothing of this word is missing, as far as we know. */
static inline bool rel_rx_known_full(const struct rel_rx_msg *msg, uint64_t word)
{
	const struct rel_known *page = msg->known[word / REL_KNOWN_WORDS];
	if (word / REL_KNOWN_WORDS < msg->known_from)
		return true;
	return page && page->word[word % REL_KNOWN_WORDS] == rel_rx_valid_bits(msg, word);
}
/* Words as we know them. */
void rel_rx_known_copy(const struct rel_rx_msg *msg, uint32_t first_word, uint32_t nwords,
		       uint64_t *words);
/* Frees pages below cum. */
void rel_rx_known_trim(struct rel_rx *rx, struct rel_rx_msg *msg);
void rel_rx_known_free(struct rel_rx *rx, struct rel_rx_msg *msg);

#endif

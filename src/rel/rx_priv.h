/* SPDX-License-Identifier: Apache-2.0 */
/* What the receiver's files share. Not for anyone outside rel/. */
#ifndef SDR_REL_RX_PRIV_H
#define SDR_REL_RX_PRIV_H

#include "base/bits.h"
#include "base/check.h"
#include "code/code.h"
#include "code/layout.h"
#include "rel/rx.h"

#define REL_KNOWN_WORDS 64u

/* A page of the bits that we know of, between cum and hi. */
struct rel_known {
	uint64_t word[REL_KNOWN_WORDS];
};

/*
 * Where a packet of the span stands among its blocks, to go on from without dividing: packet
 * `pkt` is of block first_block + col, and what is left of its group begins with it.
 */
struct rel_rx_stand {
	uint32_t pkt;
	uint32_t first_block, nblocks, col;
	uint32_t left; /* packets of the group from pkt on; 0: look it up */
};

/*
 * A message's code. Invariants (rel_rx_code_check): (1) lack[b] is how many data symbols of block b
 * we do not know of, parity[b] how many parity symbols we do; (2) nlack counts the blocks that
 * lack some, all at or above `low`; (3) a ready block lacks some, and has no fewer parity symbols
 * than that; (4) a failed block is below report_to, lacks some, and with rs more than it has parity
 * for; below report_to each such block is failed; (5) nready and nfail count bits, none in
 * words below ready_low and fail_low.
 */
struct rel_rx_code {
	struct code_layout layout;
	struct code *xor_code; /* NULL: Reed-Solomon */
	struct rel_coding coding;
	uint32_t nparity; /* packets of the parity message that can be of use */
	uint8_t *lack, *parity;
	uint64_t *ready, *fail; /* sets of blocks: can be decoded; lack symbols, and it is told */
	uint32_t nlack, nready, nfail;
	uint32_t low;		      /* block */
	uint32_t ready_low, fail_low; /* words */
	struct rel_known **known;     /* pages of the parity message's bits */
	uint32_t nknown;
	uint32_t report_to; /* blocks below it should be whole: something later was seen */
	uint32_t seen_to;   /* blocks below it are of groups that were seen */
	uint32_t quiet_to;  /* ... or may be told because nothing came for long */
	uint64_t hi_next;   /* seen_to holds until hi is beyond it */
	uint32_t rows_seen; /* parity symbols are numbered below it */
	uint32_t look;	    /* blocks beyond seen_to where parity is looked for */
	bool news;	    /* parity came since that began */
	struct rel_rx_stand stand;
	bool queued; /* among those with ready blocks */
	struct rel_rx_msg *next_ready;
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
	struct rel_rx_code *code; /* NULL: none, or not known yet */
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

/* rx_code.c: which blocks have what. */
/* Bits of word `word` are new. */
void rel_rx_code_learn(struct rel_rx *rx, struct rel_rx_msg *msg, uint32_t word, uint64_t fresh);
void rel_rx_code_free(struct rel_rx *rx, struct rel_rx_msg *msg);
/* Symbols that block lacks before it can be decoded. */
uint32_t rel_rx_code_deficit(const struct rel_rx_msg *msg, uint32_t block);
void rel_rx_code_unfail(struct rel_rx *rx, struct rel_rx_code *c, uint32_t block);
void rel_rx_code_check(const struct rel_rx *rx, const struct rel_rx_msg *msg);
size_t rel_rx_code_bytes(const struct rel_rx_msg *msg);

/* rx_deficit.c: which blocks should be whole, and are told if they are not. */
/* The next block from `block` on, below `end`, that lacks data; end: none. */
uint32_t rel_rx_code_lacking(const struct rel_rx_code *c, uint32_t block, uint32_t end);
/* hi has risen. */
void rel_rx_code_seen(struct rel_rx *rx, struct rel_rx_msg *msg);
/* Blocks below `to` should be whole. */
void rel_rx_code_report(struct rel_rx *rx, struct rel_rx_msg *msg, uint32_t to);
/* An ACK of cap bytes begins: sets room aside. */
void rel_rx_deficits_begin(struct rel_rx *rx, uint64_t now_ns, size_t cap);
void rel_rx_deficits_put(struct rel_rx *rx);
/* What the sender calls the reorder window, and a little: an ACK then proves what is lost. */
uint64_t rel_rx_proof_ns(const struct rel_rx *rx);

static inline bool rel_rx_known_has(const struct rel_rx_msg *msg, uint32_t packet)
{
	uint32_t word = packet / REL_UNIT;
	const struct rel_known *page = msg->known[word / REL_KNOWN_WORDS];
	if (word / REL_KNOWN_WORDS < msg->known_from)
		return true;
	return page && page->word[word % REL_KNOWN_WORDS] >> (packet % REL_UNIT) & 1;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the receiver knows of its packets, and which words changed: the source of what ACKs
 * tell first. Knows nothing of ACKs. See rx.h.
 */
#include "rel/rx_priv.h"

#define SPAN_GAP_WORDS 8u /* a few whole words more cost less than another window */
#define SPAN_OPEN 4u	  /* newest spans that still grow: frontier and resends alternate */
#define JUMP_WORDS (4 * REL_RX_WANT_WORDS)

static bool span_grow(struct rel_rx_span *span, uint32_t message, uint32_t first, uint32_t end)
{
	uint32_t old_end = span->first_word + span->nwords;
	if (span->message != message || first > old_end + SPAN_GAP_WORDS ||
	    end + SPAN_GAP_WORDS < span->first_word)
		return false;
	uint32_t low = first < span->first_word ? first : span->first_word;
	uint32_t high = end > old_end ? end : old_end;
	if (high - low > REL_RX_WANT_WORDS)
		return false;
	span->first_word = low;
	span->nwords = high - low;
	return true;
}

/* Words [first, end) of a message changed; at most REL_RX_WANT_WORDS. */
static void span_add(struct rel_rx *rx, uint32_t message, uint32_t first, uint32_t end)
{
	for (uint64_t back = 1; back <= SPAN_OPEN && rx->stage[0] + back <= rx->span_tail; back++) {
		if (span_grow(rel_rx_span_at(rx, rx->span_tail - back), message, first, end))
			return;
	}
	if (rx->span_tail - rx->stage[REL_RX_TELLS - 1] == REL_RX_SPANS) {
		uint64_t low = ++rx->stage[REL_RX_TELLS - 1];
		for (unsigned int i = 0; i < REL_RX_TELLS; i++)
			rx->stage[i] = u64_max(rx->stage[i], low);
		rx->stats.lost_spans++;
	}
	*rel_rx_span_at(rx, rx->span_tail++) = (struct rel_rx_span){
		.message = message,
		.first_word = first,
		.nwords = end - first,
		.at_ns = rx->now_ns,
	};
}

/* The same for any number of words. */
static void span_add_all(struct rel_rx *rx, uint32_t message, uint32_t first, uint32_t end)
{
	while (first < end) {
		uint32_t n = (uint32_t)u64_min(end - first, REL_RX_WANT_WORDS);
		span_add(rx, message, first, first + n);
		first += n;
	}
}

/* The known word, or NULL: no memory for it. */
static uint64_t *known_word(struct rel_rx *rx, struct rel_rx_msg *msg, uint32_t word)
{
	struct rel_known **page = &msg->known[word / REL_KNOWN_WORDS];
	if (!*page)
		*page = alloc_zeroed(&rx->alloc, sizeof(**page));
	return *page ? &(*page)->word[word % REL_KNOWN_WORDS] : NULL;
}

bool rel_rx_learn(struct rel_rx *rx, struct rel_rx_msg *msg, uint32_t first_word,
		  const uint64_t *words, uint32_t nwords)
{
	uint32_t hi_word = msg->hi / REL_UNIT; /* before these words */
	bool all = true;
	for (uint32_t i = 0; i < nwords; i++) {
		uint32_t word = first_word + i;
		if (word / REL_KNOWN_WORDS < msg->known_from)
			continue;
		uint64_t bits = words[i] & rel_rx_valid_bits(msg, word);
		if (!bits)
			continue;
		uint64_t *known = known_word(rx, msg, word);
		all = all && known;
		if (!known || (bits & ~*known) == 0)
			continue;
		if (msg->code)
			rel_rx_code_learn(rx, msg, word, bits & ~*known);
		*known |= bits;
		/* Beyond the highest packet: what was jumped over is a hole to tell. */
		bool jump = word > hi_word && word - hi_word <= JUMP_WORDS;
		span_add_all(rx, msg->message, jump ? hi_word : word, word + 1);
		hi_word = word > hi_word ? word : hi_word;
	}
	return all;
}

void rel_rx_known_copy(const struct rel_rx_msg *msg, uint32_t first_word, uint32_t nwords,
		       uint64_t *words)
{
	for (uint32_t i = 0; i < nwords; i++) {
		uint32_t word = first_word + i;
		const struct rel_known *page = msg->known[word / REL_KNOWN_WORDS];
		if (word / REL_KNOWN_WORDS < msg->known_from)
			words[i] = ~UINT64_C(0);
		else
			words[i] = page ? page->word[word % REL_KNOWN_WORDS] : 0;
	}
}

/* All of a page has come, though there was no memory to know of any of it. */
static void learn_page(struct rel_rx *rx, struct rel_rx_msg *msg, uint32_t page)
{
	for (uint32_t i = 0; i < REL_KNOWN_WORDS; i++)
		rel_rx_code_learn(rx, msg, page * REL_KNOWN_WORDS + i, ~UINT64_C(0));
}

void rel_rx_known_trim(struct rel_rx *rx, struct rel_rx_msg *msg)
{
	uint32_t whole = msg->cum / REL_UNIT / REL_KNOWN_WORDS;
	for (; msg->known_from < whole; msg->known_from++) {
		if (msg->code && !msg->known[msg->known_from])
			learn_page(rx, msg, msg->known_from);
		alloc_free(&rx->alloc, msg->known[msg->known_from]);
		msg->known[msg->known_from] = NULL;
	}
}

void rel_rx_known_free(struct rel_rx *rx, struct rel_rx_msg *msg)
{
	for (uint32_t i = msg->known_from; i < msg->nknown; i++)
		alloc_free(&rx->alloc, msg->known[i]);
	alloc_free(&rx->alloc, msg->known);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which blocks should be whole by now, and what an ACK says of those that are not; and where news
 * of their parity is to be looked for. What blocks have is rx_code.c's. See rx.h.
 */
#include "rel/rx_priv.h"

#include <string.h>

#include "rel/rtt.h"

/* The sender deals several groups to a batch, whose parity follows its data, where one has fewer
 * blocks than this. */
#define BATCH_BLOCKS 16u
#define LOOK_MOST_BLOCKS (1u << 20)
#define LOOK_ROWS_LEAST 16u
#define WANT_GAP_WORDS 2u      /* without need, that cost less than another call */
#define DEFICIT_HEAD_BYTES 8u  /* about, of a message */
#define DEFICIT_BLOCK_BYTES 3u /* ... and of a block */

uint64_t rel_rx_proof_ns(const struct rel_rx *rx)
{
	return u64_max(REL_REORDER_MIN_NS, rx->params.rtt_ns / REL_ACKS_PER_RTT) +
	       REL_RX_PROOF_SLACK_NS;
}

/* ---- what should be whole ---- */

uint32_t rel_rx_code_lacking(const struct rel_rx_code *c, uint32_t block, uint32_t end)
{
	while (block < end) {
		uint64_t eight;
		if (c->lack[block])
			return block;
		block++;
		if (end - block < sizeof(eight))
			continue;
		memcpy(&eight, c->lack + block, sizeof(eight));
		block += eight ? 0 : (uint32_t)sizeof(eight);
	}
	return end;
}

static void fail_set(struct rel_rx *rx, struct rel_rx_code *c, uint32_t block)
{
	c->fail[block / 64] |= UINT64_C(1) << (block % 64);
	c->fail_low = (uint32_t)u64_min(c->fail_low, block / 64);
	c->nfail++;
	rx->nfail++;
}

void rel_rx_code_report(struct rel_rx *rx, struct rel_rx_msg *msg, uint32_t to)
{
	struct rel_rx_code *c = msg->code;
	uint32_t before = c->nfail;
	if (to <= c->report_to)
		return;
	if (c->nfail == 0)
		c->fail_low = c->report_to / 64;
	for (uint32_t b = c->report_to; b < to; b++) {
		b = rel_rx_code_lacking(c, b, to);
		if (b < to && rel_rx_code_deficit(msg, b))
			fail_set(rx, c, b);
	}
	c->report_to = to;
	c->seen_to = (uint32_t)u64_max(c->seen_to, to);
	if (c->nfail == before)
		return;
	rx->failed = true;
	rx->failed_ns = rx->now_ns;
	if (!rx->proof_ns)
		rx->proof_ns = rx->now_ns + rel_rx_proof_ns(rx);
}

void rel_rx_code_seen(struct rel_rx *rx, struct rel_rx_msg *msg)
{
	struct rel_rx_code *c = msg->code;
	const struct code_layout *l = &c->layout;
	if (msg->hi <= c->coding.span_start || msg->hi <= c->hi_next)
		return;
	/* Packets behind the span say no more than its last one: they may precede its parity. */
	uint64_t pkt = u64_min(msg->hi - c->coding.span_start, l->npkts) - 1;
	uint64_t group = pkt / ((uint64_t)l->depth * l->k);
	uint64_t batch = u64_div_up(BATCH_BLOCKS, l->depth);
	c->hi_next = c->coding.span_start + (group + 1) * l->depth * l->k;
	c->seen_to = (uint32_t)u64_max(c->seen_to, u64_min((group + 1) * l->depth, l->nblocks));
	if (group >= batch)
		rel_rx_code_report(rx, msg, (uint32_t)((group - batch + 1) * l->depth));
}

/* ---- what an ACK says ---- */

/* The next block from `block` on that is to be told; UINT32_MAX: none. */
static uint32_t next_told(const struct rel_rx *rx, const struct rel_rx_code *c, uint32_t block)
{
	for (uint64_t word = u64_max(block / 64, c->fail_low); c->nfail && word * 64 < c->report_to;
	     word++) {
		uint64_t bits = c->fail[word];
		if (word == block / 64)
			bits &= ~bits_low(block % 64);
		if (bits)
			return (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(bits);
	}
	if (!rx->quiet)
		return UINT32_MAX;
	block = rel_rx_code_lacking(c, (uint32_t)u64_max(block, c->report_to), c->quiet_to);
	return block < c->quiet_to ? block : UINT32_MAX;
}

/*
 * Nothing comes: what was seen a part of should be whole, and a little more may have been lost
 * whole. (The sender knows what of it was not sent yet.) How many blocks that adds.
 */
static uint32_t quiet_blocks(struct rel_rx_code *c)
{
	uint32_t n = 0;
	if (c->seen_to == 0 || c->nlack == 0)
		return 0;
	c->quiet_to =
		(uint32_t)u64_min((uint64_t)c->seen_to + REL_RX_QUIET_BLOCKS, c->layout.nblocks);
	for (uint32_t b = c->report_to; b < c->quiet_to; b++) {
		b = rel_rx_code_lacking(c, b, c->quiet_to);
		n += b < c->quiet_to;
	}
	return n;
}

void rel_rx_deficits_begin(struct rel_rx *rx, uint64_t now_ns, size_t cap)
{
	uint64_t turn = rx->params.rtt_ns / REL_ACKS_PER_RTT;
	uint64_t blocks = rx->nfail, messages = 0;
	rx->failed = false;
	if (rx->proof_ns && now_ns >= rx->proof_ns) {
		uint64_t proven_ns = rx->failed_ns + rel_rx_proof_ns(rx);
		rx->proof_ns = now_ns < proven_ns ? proven_ns : 0;
	}
	rx->quiet = rx->ncoded && rx->arrived && now_ns - rx->arrived_ns >= turn;
	if (!rx->ncoded || (!rx->nfail && !rx->quiet))
		return;
	for (struct rel_rx_msg *msg = rx->oldest; msg; msg = msg->after) {
		if (!msg->code)
			continue;
		uint32_t more = rx->quiet ? quiet_blocks(msg->code) : 0;
		blocks += more;
		messages += more || msg->code->nfail;
	}
	wire_ack_reserve(
		&rx->enc,
		u64_min(DEFICIT_HEAD_BYTES * messages + DEFICIT_BLOCK_BYTES * blocks, cap / 3));
}

/* From block `from` on; false: the ACK is full. */
static bool put_message(struct rel_rx *rx, struct rel_rx_msg *msg, uint32_t from)
{
	struct rel_rx_code *c = msg->code;
	for (uint32_t b = next_told(rx, c, from); b != UINT32_MAX; b = next_told(rx, c, b + 1)) {
		uint32_t deficit = rel_rx_code_deficit(msg, b);
		if (deficit == 0) { /* xor: the right symbols have come */
			rel_rx_code_unfail(rx, c, b);
			continue;
		}
		if (wire_ack_deficit_put(&rx->enc, msg->message, b, deficit) < 0) {
			rx->deficits_cut = true;
			rx->deficit_message = msg->message;
			rx->deficit_block = b;
			return false;
		}
		rx->lacking += deficit;
	}
	return true;
}

/* Where the last ACK had no room for all: from there on, then what is before that message. */
void rel_rx_deficits_put(struct rel_rx *rx)
{
	uint32_t message = rx->deficit_message, block = rx->deficit_block;
	bool turn = rx->deficits_cut;
	rx->lacking = 0;
	rx->deficits_cut = false;
	if (!rx->nfail && !rx->quiet)
		return;
	for (unsigned int pass = turn ? 0 : 1; pass < 2 && !rx->deficits_cut; pass++) {
		for (struct rel_rx_msg *msg = rx->oldest; msg; msg = msg->after) {
			bool before = turn && seq32_before(msg->message, message);
			bool at = turn && msg->message == message;
			if (!msg->code || (pass == 0 ? before : turn && !before))
				continue;
			if (rx->quiet) /* what was fed for this ACK may have raised it */
				(void)quiet_blocks(msg->code);
			if (!put_message(rx, msg, at ? block : 0))
				break;
		}
	}
	rx->full |= rx->deficits_cut;
}

uint64_t rel_rx_lacking(const struct rel_rx *rx)
{
	return rx->lacking;
}

/* ---- where parity is looked for ---- */

static void look_begin(struct rel_rx_code *c)
{
	if (!c->news)
		c->look = (uint32_t)u64_min(2 * (uint64_t)c->look, LOOK_MOST_BLOCKS);
	else
		c->look = REL_RX_QUIET_BLOCKS;
	c->news = false;
	c->low = rel_rx_code_lacking(c, c->low, c->layout.nblocks);
}

/* The next block from `block` on, below `end`, that more parity may help; end: none. */
static uint32_t next_short(const struct rel_rx_code *c, uint32_t block, uint32_t end)
{
	block = rel_rx_code_lacking(c, block, end);
	while (block < end && !c->xor_code && c->lack[block] <= c->parity[block])
		block = rel_rx_code_lacking(c, block + 1, end);
	return block;
}

/*
 * The next packet from `packet` on that is parity of a block that lacks data, or UINT64_MAX: rows
 * one after another. Rows beyond the m-th are sent only for blocks that were told.
 */
static uint64_t next_wanted(const struct rel_rx_code *c, uint64_t packet)
{
	const uint32_t nblocks = c->layout.nblocks, m = c->coding.m;
	uint32_t end = (uint32_t)u64_min((uint64_t)c->seen_to + c->look, nblocks);
	uint32_t told = (uint32_t)u64_max(c->report_to, c->quiet_to);
	uint64_t rows = u64_max(c->rows_seen, m) + u64_max(c->look / 4, LOOK_ROWS_LEAST);
	uint64_t row = packet / nblocks;
	uint32_t block = (uint32_t)(packet % nblocks);
	for (; row < rows && row * nblocks < c->nparity; row++, block = 0) {
		uint32_t most = row < m ? end : told;
		uint32_t from = (uint32_t)u64_max(block, c->low);
		if (from >= most)
			continue;
		from = next_short(c, from, most);
		if (from < most)
			return row * nblocks + from;
	}
	return UINT64_MAX;
}

static bool parity_full(const struct rel_rx_code *c, uint64_t word)
{
	const struct rel_known *page = c->known[word / REL_KNOWN_WORDS];
	return page && page->word[word % REL_KNOWN_WORDS] == ~UINT64_C(0);
}

/* The next word from `word` on that is wanted, or UINT64_MAX. */
static uint64_t next_word(const struct rel_rx_code *c, uint64_t word)
{
	for (;;) {
		uint64_t packet = next_wanted(c, word * REL_UNIT);
		if (packet >= c->nparity)
			return UINT64_MAX;
		word = packet / REL_UNIT;
		if (!parity_full(c, word))
			return word;
		word++;
	}
}

bool rel_rx_want_parity(struct rel_rx *rx, uint32_t message, uint32_t *at, struct rel_rx_want *want)
{
	struct rel_rx_msg *msg = rel_rx_find(rx, message);
	if (!msg || !msg->code || msg->code->nlack == 0)
		return false;
	struct rel_rx_code *c = msg->code;
	if (*at == 0)
		look_begin(c);
	uint64_t first = next_word(c, *at ? *at - 1 : 0);
	if (first == UINT64_MAX)
		return false;
	/* Rows that were asked for come after the others are known: then few blocks need them. */
	uint64_t usual = bits_words((uint64_t)c->coding.m * c->layout.nblocks);
	uint64_t most = first + REL_RX_WANT_WORDS, end = first + 1, next;
	if (first < usual)
		most = u64_min(most, usual);
	while ((next = next_word(c, end)) < most && next - end <= WANT_GAP_WORDS)
		end = next + 1;
	*at = (uint32_t)end + 1;
	*want = (struct rel_rx_want){message, (uint32_t)first, (uint32_t)(end - first)};
	return true;
}

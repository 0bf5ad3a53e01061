/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an ACK holds: which words to ask the owner for, and windows made of them. The
 * passes, in order (see rx.h); the cursor's goes before the telling ones if it found no
 * room in the last ACK:
 *
 *	look dirty   beyond the highest packet of each dirty message (and all of what has
 *	             holes, if that is little)
 *	look round   a slice of everything with holes
 *	tell 1, 3, 2 spans that changed
 *	holes        a few places with holes
 *	cursor       a slice of everything from the first hole on
 */
#include "rel/rx_priv.h"

#include <errno.h>
#include <string.h>

#define LOOK_BACK_WORDS 128u   /* holes that a look at a dirty message takes in */
#define LOOK_DIRTY_WORDS 8192u /* for all dirty messages */
#define ROUND_LEAST_WORDS 256u
#define ROUNDS_PER_RTT 64u
#define CURSOR_WORDS 256u /* with holes, that the cursor's pass asks for */
#define HOLE_WORDS 32u
#define HOLES 4u /* windows of the holes' pass; where ACKs go by time: */
#define HOLES_SPARSE 24u
#define REGION_WORDS 1024u /* that one window of the cursor tells */
#define REGIONS 2u
#define REGIONS_PAUSED 16u
#define GAP_WORDS 8u	       /* whole words that cost less than another window */
#define SKIP_WORDS 65536u      /* ... and those that one ACK's rotations may pass */
#define SKIPS 256u	       /* messages without holes that one scan may pass */
#define PREFIX_PKTS 65536u     /* of one window of what is whole */
#define PREFIX_SPAN (4u << 20) /* how far below cum it is repeated */
#define PREFIX_WINDOWS 4u
#define PREFIX_WINDOWS_PAUSED 24u
#define DATAGRAM_BYTES 100u /* headers and channels around an ACK's body, about */

#define ALL ~UINT64_C(0)
#define ALL4 ALL, ALL, ALL, ALL
#define ALL16 ALL4, ALL4, ALL4, ALL4
#define ALL64 ALL16, ALL16, ALL16, ALL16
#define ALL256 ALL64, ALL64, ALL64, ALL64

static const uint64_t all_ones[PREFIX_PKTS / 64] = {ALL256, ALL256, ALL256, ALL256};

uint32_t rel_rx_reach(const struct rel_rx *rx, const struct rel_rx_msg *msg)
{
	return rx->any_seen && seq32_before(msg->message, rx->top_message) ? msg->npkts : msg->hi;
}

static struct wire_ack_channel channel_of(const struct rel_channel_fact *f)
{
	return (struct wire_ack_channel){
		.id = f->id,
		.flags = f->psn_valid	   ? WIRE_ACK_PSN_VALID
			 : f->packet_valid ? WIRE_ACK_PACKET_VALID
					   : 0,
		.newest_psn = f->newest_psn & 0xffffff,
		.newest_message = f->newest_message,
		.newest_packet = f->newest_packet,
		.age_ns = (uint32_t)u64_min(f->age_ns, UINT32_MAX),
		.received = f->received,
		.duplicates = f->duplicates,
		.ce = f->ce,
		.host_drops = f->host_drops,
	};
}

static void add_channels(struct wire_ack_enc *enc, const struct rel_channel_fact *facts,
			 unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct wire_ack_channel channel = channel_of(&facts[i]);
		int err = wire_ack_channel_put(enc, &channel);
		SDR_ASSERT(err == 0);
		(void)err;
	}
}

/*
 * How many channels' worst case holds all of them as they are: a reservation for each
 * would leave little for windows where there are many.
 */
static unsigned int channels_room(const struct rel_channel_fact *facts, unsigned int n)
{
	uint8_t scratch[WIRE_ACK_FIXED_BYTES + REL_MAX_CHANNELS * WIRE_ACK_CHANNEL_MAX_BYTES];
	struct wire_ack_enc enc;
	if (wire_ack_begin(&enc, scratch, sizeof(scratch), 0, n) < 0)
		return n;
	add_channels(&enc, facts, n);
	uint64_t bytes = (uint64_t)wire_ack_end(&enc) - WIRE_ACK_FIXED_BYTES;
	return (unsigned int)u64_div_up(bytes, WIRE_ACK_CHANNEL_MAX_BYTES);
}

/* When was the last one, and how often is this one to be repeated. */
static void mark_time(struct rel_rx *rx, uint64_t now_ns)
{
	uint64_t quiet_ns = rx->any_acked ? now_ns - rx->last_ack_ns : UINT64_MAX;
	bool news = rx->arrived != rx->acked_arrived;
	rx->now_ns = u64_max(rx->now_ns, now_ns);
	bool sparse = rx->arrived - rx->acked_arrived < REL_RX_ACK_PKTS;
	rx->holes_left = sparse ? HOLES_SPARSE : HOLES;
	rx->after_pause = !news || quiet_ns > rx->params.rtt_ns / 2 + REL_RX_ACK_GAP_NS;
	if (news)
		rx->repeats_left = REL_RX_TELLS - 1;
	else if (rx->repeats_left)
		rx->repeats_left--;
	/* As many words as bring the round about in its time. */
	uint64_t round_ns = rx->params.rtt_ns / ROUNDS_PER_RTT;
	uint64_t words = REL_RX_LOOK_WORDS;
	if (quiet_ns < round_ns)
		words = rx->last_round_words * quiet_ns / round_ns + ROUND_LEAST_WORDS;
	rx->look_left = (uint32_t)u64_min(words, REL_RX_LOOK_WORDS);
	rx->acked_arrived = rx->arrived;
	rx->last_ack_ns = now_ns;
	rx->any_acked = true;
	rx->kicked = false;
}

int rel_rx_ack_begin(struct rel_rx *rx, uint64_t now_ns, uint32_t write_below,
		     const struct rel_channel_fact *facts, unsigned int nfacts, uint8_t *buf,
		     size_t cap)
{
	if (nfacts > REL_MAX_CHANNELS)
		return -ENOSPC;
	unsigned int room = channels_room(facts, nfacts);
	if (cap < REL_RX_ACK_MIN_BYTES + (size_t)room * WIRE_ACK_CHANNEL_MAX_BYTES)
		return -ENOSPC;
	if (cap > REL_RX_ACK_BYTES)
		cap = REL_RX_ACK_BYTES;
	if (wire_ack_begin(&rx->enc, buf, cap, write_below, room) < 0)
		return -ENOSPC;
	wire_ack_made_good(&rx->enc, (uint32_t)rx->made_good);
	mark_time(rx, now_ns);
	rel_rx_deficits_begin(rx, now_ns, cap - (size_t)room * WIRE_ACK_CHANNEL_MAX_BYTES);
	rx->facts = facts;
	rx->nfacts = nfacts;
	rx->building = true;
	rx->full = false;
	rx->passes_done = 0;
	rx->pass_begun = false;
	rx->cursor_moved = false;
	rx->dirty_left = LOOK_DIRTY_WORDS;
	rx->skip_left = SKIP_WORDS;
	rx->tell_left = REL_RX_TELL_WORDS;
	rx->cursor_left = rx->after_pause ? REL_RX_TELL_WORDS : CURSOR_WORDS;
	rx->regions_left = rx->after_pause ? REGIONS_PAUSED : REGIONS;
	rx->asked.nwords = 0;
	memcpy(rx->stage_was, rx->stage, sizeof(rx->stage));
	return 0;
}

/* Asks for words [first, end) as far as the budget goes. */
static bool ask(struct rel_rx *rx, enum rel_rx_pass pass, const struct rel_rx_msg *msg,
		uint64_t first, uint64_t end, uint32_t *budget)
{
	uint64_t n = u64_min(u64_sub_floor(end, first), REL_RX_WANT_WORDS);
	n = u64_min(n, *budget);
	if (n == 0)
		return false;
	*budget -= (uint32_t)n;
	if (pass == REL_RX_LOOK_DIRTY || pass == REL_RX_LOOK_ROUND)
		rx->stats.looked_words += n;
	else
		rx->stats.told_words += n;
	rx->asked_by = pass;
	rx->asked = (struct rel_rx_want){msg->message, (uint32_t)first, (uint32_t)n};
	return true;
}

/*
 * A dirty message: from its highest packet on, further each time that nothing was found
 * there. dirty_word: how far this look has come.
 */
static bool scan_dirty(struct rel_rx *rx)
{
	while (rx->dirty) {
		struct rel_rx_msg *msg = rx->dirty;
		uint64_t last = u64_div_up(msg->npkts, REL_UNIT);
		uint64_t hi = msg->hi / REL_UNIT, cum = msg->cum / REL_UNIT;
		uint64_t first = hi - cum <= LOOK_BACK_WORDS ? cum : hi;
		uint64_t end = u64_min(hi + msg->look_words, last);
		if (rx->pass_begun)
			first = rx->dirty_word;
		rx->pass_begun = true;
		if (first < end && ask(rx, REL_RX_LOOK_DIRTY, msg, first, end, &rx->dirty_left)) {
			rx->dirty_word = rx->asked.first_word + rx->asked.nwords;
			return true;
		}
		if (first < end)
			return false; /* no budget: stays dirty */
		/* raise_high() sets it back when something is found. */
		msg->look_words =
			(uint32_t)u64_min(2 * (uint64_t)msg->look_words, LOOK_DIRTY_WORDS);
		rel_rx_undirty(rx, msg);
		rx->pass_begun = false;
	}
	return false;
}

/*
 * Words [*first, *end) narrowed to the next ones with holes that we know of. False: none
 * (*first is *end then), or that's enough for one ACK (all below *first was passed).
 */
static bool narrow(struct rel_rx *rx, const struct rel_rx_msg *msg, uint64_t *first, uint64_t *end)
{
	uint64_t at = *first, last;
	while (at < *end && rx->skip_left && rel_rx_known_full(msg, at)) {
		at++;
		rx->skip_left--;
	}
	*first = last = at;
	if (at == *end || rx->skip_left == 0)
		return false;
	for (; at < *end && at - *first < REL_RX_WANT_WORDS && at - last <= GAP_WORDS; at++) {
		if (!rel_rx_known_full(msg, at))
			last = at;
	}
	*end = last + 1;
	return true;
}

/*
 * Where a rotation goes on: words of place->msg. False: the round is over (place->msg is
 * NULL then), or that's enough for one ACK.
 */
static bool place_next(struct rel_rx *rx, struct rel_rx_place *place, uint64_t *first,
		       uint64_t *end)
{
	if (!place->msg)
		*place = (struct rel_rx_place){.msg = rx->oldest};
	for (uint32_t skips = 0; place->msg && skips < SKIPS; skips++) {
		struct rel_rx_msg *msg = place->msg;
		uint32_t reach = rel_rx_reach(rx, msg);
		if (!rx->any_seen || seq32_before(rx->top_message, msg->message)) {
			*place = (struct rel_rx_place){0};
			return false;
		}
		*first = u64_max(place->word, msg->cum / REL_UNIT);
		*end = u64_div_up(reach, REL_UNIT);
		if (msg->cum < reach && *first < *end)
			return true;
		*place = (struct rel_rx_place){.msg = msg->after};
	}
	return false;
}

static bool scan_round(struct rel_rx *rx)
{
	uint64_t first, end;
	while (rx->look_left && rx->skip_left && place_next(rx, &rx->round, &first, &end)) {
		bool holes = narrow(rx, rx->round.msg, &first, &end);
		rx->round.word = (uint32_t)first;
		if (!holes)
			continue;
		if (!ask(rx, REL_RX_LOOK_ROUND, rx->round.msg, first, end, &rx->look_left))
			return false;
		rx->round.word = rx->asked.first_word + rx->asked.nwords;
		rx->round_words += rx->asked.nwords;
		return true;
	}
	if (!rx->round.msg) {
		rx->last_round_words = rx->round_words;
		rx->round_words = 0;
	}
	return false;
}

/* Tells [rx->cursor.word, end) from what is known: its holes were fed in this ACK. */
static void cursor_encode(struct rel_rx *rx, uint64_t end_word)
{
	struct rel_rx_msg *msg = rx->cursor.msg;
	uint64_t words[REGION_WORDS];
	uint64_t first = (uint64_t)rx->cursor.word * REL_UNIT;
	uint64_t end = u64_min(end_word * REL_UNIT, rel_rx_reach(rx, msg));
	uint32_t length = (uint32_t)u64_sub_floor(end, first);
	if (length == 0 || rx->blind) {
		rx->cursor.word = (uint32_t)end_word;
		return;
	}
	rel_rx_known_copy(msg, rx->cursor.word, (uint32_t)bits_words(length), words);
	uint32_t covered =
		wire_ack_window_from_bits(&rx->enc, msg->message, (uint32_t)first, length, words);
	rx->full |= covered < length;
	rx->cursor_moved |= covered >= REL_UNIT || covered == length;
	/* The next region begins with the word that was not told to its end. */
	rx->cursor.word =
		covered < length ? rx->cursor.word + covered / REL_UNIT : (uint32_t)end_word;
}

/*
 * Region by region: asks for the words with holes in it, then tells all of it, so that what
 * was told in ACKs that were lost is told again too.
 */
static bool scan_cursor(struct rel_rx *rx)
{
	while (rx->regions_left && !rx->full) {
		uint64_t first, end;
		if (!rx->pass_begun) {
			if (!place_next(rx, &rx->cursor, &first, &end))
				break;
			rx->cursor_to = rx->cursor.word = (uint32_t)first;
			rx->cursor_end = (uint32_t)u64_min(end, first + REGION_WORDS);
			rx->pass_begun = true;
			rx->blind = false;
		}
		first = rx->cursor_to;
		end = rx->cursor_end;
		if (narrow(rx, rx->cursor.msg, &first, &end)) {
			rx->cursor_to = (uint32_t)first;
			if (ask(rx, REL_RX_CURSOR, rx->cursor.msg, first, end, &rx->cursor_left)) {
				rx->cursor_to = rx->asked.first_word + rx->asked.nwords;
				return true;
			}
			rx->regions_left = 1; /* what was asked for is told; no more */
		} else {
			rx->cursor_to = (uint32_t)first;
		}
		cursor_encode(rx, rx->cursor_to);
		rx->pass_begun = false;
		rx->regions_left--;
	}
	if (!rx->cursor.msg)
		rx->cursor_moved = true;
	return false;
}

/*
 * Spans to tell the n-th time. A span leaves its stage when the next one is asked for, so
 * that rel_rx_encode() can cut it where the ACK was full.
 */
static bool scan_spans(struct rel_rx *rx, enum rel_rx_pass pass)
{
	uint64_t *stage = &rx->stage[pass];
	if (rx->pass_begun)
		++*stage;
	else /* what this ACK tells for the (n - 1)th time stays there */
		rx->stage_end = pass == REL_RX_TELL_1 ? rx->span_tail : rx->stage_was[pass - 1];
	rx->pass_begun = true;
	for (; *stage < rx->stage_end; ++*stage) {
		const struct rel_rx_span *span = rel_rx_span_at(rx, *stage);
		const struct rel_rx_msg *msg = rel_rx_find(rx, span->message);
		if (pass == REL_RX_TELL_3 && rx->now_ns - span->at_ns < rx->params.rtt_ns / 8)
			break;
		if (!msg || span->nwords == 0)
			continue;
		if (rx->tell_left < span->nwords)
			break;
		return ask(rx, pass, msg, span->first_word,
			   (uint64_t)span->first_word + span->nwords, &rx->tell_left);
	}
	return false;
}

/* A few places with holes, one window each: where they are few, that's all of them. */
static bool scan_holes(struct rel_rx *rx)
{
	uint64_t first, end;
	while (rx->holes_left && rx->skip_left && place_next(rx, &rx->holes, &first, &end)) {
		bool holes = narrow(rx, rx->holes.msg, &first, &end);
		rx->holes.word = (uint32_t)first;
		if (!holes)
			continue;
		end = u64_min(end, first + HOLE_WORDS);
		if (!ask(rx, REL_RX_HOLES, rx->holes.msg, first, end, &rx->tell_left))
			return false;
		rx->holes.word = rx->asked.first_word + rx->asked.nwords;
		rx->holes_left--;
		return true;
	}
	return false;
}

static bool scan_pass(struct rel_rx *rx, enum rel_rx_pass pass)
{
	if (pass == REL_RX_LOOK_DIRTY)
		return scan_dirty(rx);
	if (pass == REL_RX_LOOK_ROUND)
		return scan_round(rx);
	if (rx->full)
		return false;
	if (pass == REL_RX_HOLES)
		return scan_holes(rx);
	return pass == REL_RX_CURSOR ? scan_cursor(rx) : scan_spans(rx, pass);
}

bool rel_rx_scan(struct rel_rx *rx, struct rel_rx_want *want)
{
	static const enum rel_rx_pass order[2][7] = {
		{REL_RX_LOOK_DIRTY, REL_RX_LOOK_ROUND, REL_RX_TELL_1, REL_RX_TELL_3, REL_RX_TELL_2,
		 REL_RX_HOLES, REL_RX_CURSOR},
		{REL_RX_LOOK_DIRTY, REL_RX_LOOK_ROUND, REL_RX_CURSOR, REL_RX_TELL_1, REL_RX_TELL_3,
		 REL_RX_TELL_2, REL_RX_HOLES},
	};
	if (!rx->building)
		return false;
	if (rx->asked.nwords) { /* not fed: ends the pass, so that this ends */
		rx->asked.nwords = 0;
		rx->passes_done++;
		rx->pass_begun = false;
	}
	while (rx->passes_done < SDR_ARRAY_LEN(order[0])) {
		if (scan_pass(rx, order[rx->cursor_first][rx->passes_done])) {
			*want = rx->asked;
			return true;
		}
		rx->passes_done++;
		rx->pass_begun = false;
	}
	return false;
}

/* The ACK is full in the middle of a span: the next one tells what is left of it. */
static void cut_span(struct rel_rx *rx, uint32_t covered)
{
	struct rel_rx_span *span = rel_rx_span_at(rx, rx->stage[rx->asked_by]);
	uint32_t words = covered / REL_UNIT;
	span->first_word += words;
	span->nwords -= words;
}

void rel_rx_encode(struct rel_rx *rx, struct rel_rx_msg *msg, const uint64_t *words)
{
	uint64_t first = (uint64_t)rx->asked.first_word * REL_UNIT;
	uint64_t end = first + (uint64_t)rx->asked.nwords * REL_UNIT;
	rx->asked.nwords = 0;
	if (rx->asked_by >= REL_RX_CURSOR)
		return; /* rel_rx_learn() has seen them */
	uint32_t length = (uint32_t)u64_sub_floor(u64_min(end, rel_rx_reach(rx, msg)), first);
	uint32_t covered = 0;
	if (length)
		covered = wire_ack_window_from_bits(&rx->enc, msg->message, (uint32_t)first, length,
						    words);
	if (covered < length) {
		rx->full = true;
		if (rx->asked_by < REL_RX_HOLES)
			cut_span(rx, covered);
	}
}

/* Windows of what is whole, from the newest down, a few an ACK. */
static void add_prefixes(struct rel_rx *rx)
{
	uint32_t windows = rx->after_pause ? PREFIX_WINDOWS_PAUSED : PREFIX_WINDOWS;
	if (!rx->prefix) {
		rx->prefix = rx->top;
		rx->prefix_at = UINT32_MAX;
	}
	for (uint32_t steps = 0; rx->prefix && windows && steps < SKIPS; steps++) {
		const struct rel_rx_msg *msg = rx->prefix;
		uint64_t low = u64_sub_floor(msg->cum, PREFIX_SPAN);
		uint64_t end = u64_min(msg->cum, rx->prefix_at);
		if (end <= low) {
			rx->prefix = msg->before;
			rx->prefix_at = UINT32_MAX;
			continue;
		}
		uint64_t first = u64_max(low, u64_sub_floor(end, PREFIX_PKTS));
		if (!wire_ack_window_from_bits(&rx->enc, msg->message, (uint32_t)first,
					       (uint32_t)(end - first), all_ones))
			return;
		rx->prefix_at = (uint32_t)first;
		windows--;
	}
}

int rel_rx_ack_end(struct rel_rx *rx)
{
	SDR_ASSERT(rx->building);
	add_prefixes(rx);
	add_channels(&rx->enc, rx->facts, rx->nfacts);
	rel_rx_deficits_put(rx);
	int len = wire_ack_end(&rx->enc);
	rx->cursor_first = !rx->cursor_moved;
	rx->building = false;
	rx->facts = NULL;
	rx->asked.nwords = 0;
	rx->stats.acks++;
	rx->stats.full_acks += rx->full;
	/* No silence before each change was told as often as it should be. */
	if (rx->repeats_left == 0 && rx->stage[REL_RX_TELLS - 1] < rx->span_tail)
		rx->repeats_left = 1;
	rx->stats.ack_bytes += (uint64_t)len;
	rx->gap_ns = 0;
	if (rx->params.ack_bps) {
		uint64_t bits = ((uint64_t)len + DATAGRAM_BYTES) * 8;
		/* One an RTT always may. */
		rx->gap_ns = u64_min(bits * UINT64_C(1000000000) / rx->params.ack_bps,
				     rx->params.rtt_ns);
	}
	return len;
}

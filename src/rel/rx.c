/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiver: messages, how far they are in, and when an ACK is due. What an ACK holds
 * is in rx_ack.c, what changed in rx_span.c. See rx.h.
 */
#include "rel/rx_priv.h"

#include <errno.h>
#include <string.h>

#define RTT_GUESS_NS (4 * UINT64_C(1000000))
#define LOOK_FIRST_WORDS 16u

int rel_rx_init(struct rel_rx *rx, const struct rel_rx_params *params,
		const struct sdr_alloc *alloc)
{
	*rx = (struct rel_rx){.alloc = *alloc, .params = *params};
	rx->dirty_end = &rx->dirty;
	rx->ready_end = &rx->ready;
	if (!rx->params.rtt_ns)
		rx->params.rtt_ns = RTT_GUESS_NS;
	rx->span = alloc_zeroed(&rx->alloc, REL_RX_SPANS * sizeof(*rx->span));
	return rx->span ? 0 : -ENOMEM;
}

void rel_rx_fini(struct rel_rx *rx)
{
	while (rx->oldest)
		rel_rx_close(rx, rx->oldest->message);
	alloc_free(&rx->alloc, rx->span);
	memset(rx, 0, sizeof(*rx));
}

struct rel_rx_msg *rel_rx_find(const struct rel_rx *rx, uint32_t message)
{
	struct rel_rx_msg *msg = rx->slot[message & (REL_OPEN_SPAN - 1)];
	return msg && msg->message == message ? msg : NULL;
}

static struct rel_rx_msg *msg_new(struct rel_rx *rx, uint32_t message, uint32_t npkts)
{
	struct rel_rx_msg *msg = alloc_zeroed(&rx->alloc, sizeof(*msg));
	if (!msg)
		return NULL;
	msg->message = message;
	msg->npkts = npkts;
	msg->look_words = LOOK_FIRST_WORDS;
	msg->nknown = (uint32_t)u64_div_up(npkts, (uint64_t)REL_KNOWN_WORDS * REL_UNIT);
	msg->known = alloc_zeroed(&rx->alloc, msg->nknown * sizeof(struct rel_known *));
	if (!msg->known) {
		alloc_free(&rx->alloc, msg);
		return NULL;
	}
	return msg;
}

int rel_rx_open(struct rel_rx *rx, uint32_t message, uint32_t npkts)
{
	if (npkts == 0 || (rx->any_opened && !seq32_before(rx->last_opened, message)))
		return -EINVAL;
	if (rx->nopen >= REL_MAX_OPEN ||
	    (rx->oldest && message - rx->oldest->message >= REL_OPEN_SPAN))
		return -EAGAIN;
	struct rel_rx_msg *msg = msg_new(rx, message, npkts);
	if (!msg)
		return -ENOMEM;
	msg->before = rx->newest;
	if (rx->newest)
		rx->newest->after = msg;
	else
		rx->oldest = msg;
	rx->newest = msg;
	SDR_ASSERT(!rx->slot[message & (REL_OPEN_SPAN - 1)]);
	rx->slot[message & (REL_OPEN_SPAN - 1)] = msg;
	rx->nopen++;
	rx->any_opened = true;
	rx->last_opened = message;
	/* A higher number was seen before this one was opened: it is below the top. */
	if (rx->any_seen && !seq32_before(rx->top_message, message))
		rx->top = msg;
	return 0;
}

void rel_rx_undirty(struct rel_rx *rx, struct rel_rx_msg *msg)
{
	struct rel_rx_msg **at = &rx->dirty;
	if (!msg->is_dirty)
		return;
	while (*at != msg)
		at = &(*at)->next_dirty;
	*at = msg->next_dirty;
	if (!*at)
		rx->dirty_end = at;
	msg->is_dirty = false;
	rx->ndirty--;
}

static void leave_place(struct rel_rx_place *place, const struct rel_rx_msg *msg)
{
	if (place->msg == msg)
		*place = (struct rel_rx_place){.msg = msg->after};
}

void rel_rx_close(struct rel_rx *rx, uint32_t message)
{
	struct rel_rx_msg *msg = rel_rx_find(rx, message);
	if (!msg)
		return;
	rel_rx_undirty(rx, msg);
	rel_rx_code_free(rx, msg);
	leave_place(&rx->round, msg);
	leave_place(&rx->holes, msg);
	leave_place(&rx->cursor, msg);
	if (rx->top == msg)
		rx->top = msg->before;
	if (rx->prefix == msg) {
		rx->prefix = msg->before;
		rx->prefix_at = UINT32_MAX;
	}
	if (msg->before)
		msg->before->after = msg->after;
	else
		rx->oldest = msg->after;
	if (msg->after)
		msg->after->before = msg->before;
	else
		rx->newest = msg->before;
	rx->slot[message & (REL_OPEN_SPAN - 1)] = NULL;
	rx->nopen--;
	rel_rx_known_free(rx, msg);
	alloc_free(&rx->alloc, msg);
}

int rel_rx_end(struct rel_rx *rx, uint32_t message, uint32_t npkts)
{
	struct rel_rx_msg *msg = rel_rx_find(rx, message);
	if (!msg || npkts == 0 || npkts > msg->npkts || npkts < msg->hi ||
	    (msg->end_known && npkts != msg->npkts))
		return -EINVAL;
	msg->npkts = npkts;
	msg->end_known = true;
	return 0;
}

bool rel_rx_complete(const struct rel_rx *rx, uint32_t message)
{
	const struct rel_rx_msg *msg = rel_rx_find(rx, message);
	return msg && msg->end_known && msg->cum == msg->npkts;
}

uint32_t rel_rx_cum(const struct rel_rx *rx, uint32_t message)
{
	const struct rel_rx_msg *msg = rel_rx_find(rx, message);
	return msg ? msg->cum : 0;
}

uint32_t rel_rx_high(const struct rel_rx *rx, uint32_t message)
{
	const struct rel_rx_msg *msg = rel_rx_find(rx, message);
	return msg ? msg->hi : 0;
}

uint64_t rel_rx_valid_bits(const struct rel_rx_msg *msg, uint64_t word)
{
	uint64_t left = u64_sub_floor(msg->npkts, word * REL_UNIT);
	return bits_low((unsigned int)u64_min(left, REL_UNIT));
}

static void seen(struct rel_rx *rx, struct rel_rx_msg *msg)
{
	if (rx->any_seen && !seq32_before(rx->top_message, msg->message))
		return;
	/* All of those before it was sent before it. */
	struct rel_rx_msg *below = rx->top ? rx->top : rx->oldest;
	for (; rx->ncoded && below != msg; below = below->after) {
		if (below->code)
			rel_rx_code_report(rx, below, below->code->layout.nblocks);
	}
	rx->any_seen = true;
	rx->top_message = msg->message;
	rx->top = msg;
}

static void raise_high(struct rel_rx *rx, struct rel_rx_msg *msg, uint32_t first_word,
		       const uint64_t *words, uint32_t nwords)
{
	for (uint32_t i = nwords; i-- > 0;) {
		uint64_t word = (uint64_t)first_word + i;
		if ((word + 1) * REL_UNIT <= msg->hi)
			return;
		uint64_t bits = words[i] & rel_rx_valid_bits(msg, word);
		if (!bits)
			continue;
		uint64_t hi = word * REL_UNIT + 64 - (uint64_t)__builtin_clzll(bits);
		if (hi > msg->hi) {
			msg->hi = (uint32_t)hi;
			msg->look_words = LOOK_FIRST_WORDS;
		}
		seen(rx, msg);
		return;
	}
}

static bool raise_cum(struct rel_rx_msg *msg, uint32_t first_word, const uint64_t *words,
		      uint32_t nwords)
{
	uint64_t start = (uint64_t)first_word * REL_UNIT;
	uint64_t end = start + (uint64_t)nwords * REL_UNIT;
	uint64_t cum = msg->cum;
	if (cum < start || cum >= end)
		return false;
	while (cum < end && cum < msg->npkts) {
		uint64_t missing = ~(words[cum / REL_UNIT - first_word] >> (cum % REL_UNIT));
		uint64_t room = REL_UNIT - cum % REL_UNIT;
		uint64_t run = missing ? (uint64_t)__builtin_ctzll(missing) : REL_UNIT;
		cum += u64_min(run, room);
		if (run < room)
			break;
	}
	msg->cum = (uint32_t)u64_min(cum, msg->npkts);
	return msg->cum == u64_min(end, msg->npkts) && msg->cum < msg->npkts;
}

bool rel_rx_feed(struct rel_rx *rx, uint32_t message, uint32_t first_word, const uint64_t *words,
		 uint32_t nwords)
{
	struct rel_rx_msg *msg = rel_rx_find(rx, message);
	if (!msg || (uint64_t)first_word * REL_UNIT >= msg->npkts)
		return false;
	uint64_t words_left = u64_div_up(msg->npkts, REL_UNIT) - first_word;
	nwords = (uint32_t)u64_min(nwords, words_left);
	if (nwords == 0)
		return false;
	if (!rel_rx_learn(rx, msg, first_word, words, nwords))
		rx->blind = true;
	raise_high(rx, msg, first_word, words, nwords);
	if (msg->code)
		rel_rx_code_seen(rx, msg);
	bool more = raise_cum(msg, first_word, words, nwords);
	rel_rx_known_trim(rx, msg);
	if (rx->building && rx->asked.nwords && rx->asked.message == message &&
	    rx->asked.first_word == first_word && nwords >= rx->asked.nwords)
		rel_rx_encode(rx, msg, words);
	return more;
}

bool rel_rx_want_cum(const struct rel_rx *rx, uint32_t message, struct rel_rx_want *want)
{
	const struct rel_rx_msg *msg = rel_rx_find(rx, message);
	if (!msg || msg->cum >= msg->npkts)
		return false;
	uint32_t first = msg->cum / REL_UNIT;
	uint64_t left = u64_div_up(msg->npkts, REL_UNIT) - first;
	*want = (struct rel_rx_want){message, first, (uint32_t)u64_min(left, REL_RX_WANT_WORDS)};
	return true;
}

void rel_rx_dirty(struct rel_rx *rx, uint32_t message)
{
	struct rel_rx_msg *msg = rel_rx_find(rx, message);
	if (!msg || msg->is_dirty)
		return;
	msg->is_dirty = true;
	msg->next_dirty = NULL;
	*rx->dirty_end = msg;
	rx->dirty_end = &msg->next_dirty;
	rx->ndirty++;
}

void rel_rx_arrived(struct rel_rx *rx, uint64_t total_pkts, uint64_t now_ns)
{
	rx->now_ns = u64_max(rx->now_ns, now_ns);
	if (total_pkts <= rx->arrived)
		return;
	rx->arrived = total_pkts;
	rx->arrived_ns = rx->now_ns;
}

void rel_rx_made_good(struct rel_rx *rx, uint64_t pkts)
{
	rx->made_good = u64_max(rx->made_good, pkts);
}

void rel_rx_set_rtt(struct rel_rx *rx, uint64_t rtt_ns)
{
	if (rtt_ns)
		rx->params.rtt_ns = rtt_ns;
}

void rel_rx_kick(struct rel_rx *rx)
{
	rx->kicked = true;
}

/*
 * The first repeat lets the sender's reorder window pass, no longer: the age of what arrived
 * last then proves the holes.
 */
static uint64_t repeat_ns(const struct rel_rx *rx, uint64_t turn)
{
	if (rx->full) /* one ACK does not hold what is to be repeated */
		return rx->last_ack_ns + turn;
	if (rx->repeats_left < REL_RX_TELLS - 1)
		return rx->last_ack_ns + 4 * turn;
	return u64_max(rx->arrived_ns + rel_rx_proof_ns(rx), rx->last_ack_ns + REL_RX_ACK_GAP_NS);
}

uint64_t rel_rx_ack_deadline(const struct rel_rx *rx, uint64_t now_ns)
{
	uint64_t turn = u64_max(rx->params.rtt_ns / REL_ACKS_PER_RTT, REL_RX_ACK_GAP_NS);
	uint64_t soon = u64_max(turn / 4, REL_RX_ACK_GAP_NS);
	uint64_t pending = rx->arrived - rx->acked_arrived;
	uint64_t enough = REL_RX_ACK_PKTS;
	uint64_t at = UINT64_MAX;
	if (rx->full) { /* more is to be told than the last one had room for */
		enough /= 2;
		turn = soon;
	}
	if (pending >= enough || rx->ndirty >= REL_RX_ACK_SPANS)
		at = rx->last_ack_ns;
	else if (rx->failed)
		at = rx->last_ack_ns + soon;
	else if (pending || rx->kicked)
		at = rx->last_ack_ns + turn;
	else if (rx->repeats_left)
		at = repeat_ns(rx, turn);
	if (rx->proof_ns)
		at = u64_min(at, u64_max(rx->proof_ns, rx->last_ack_ns + soon));
	if (at == UINT64_MAX)
		return at;
	return rx->any_acked ? u64_max(at, rx->last_ack_ns + rx->gap_ns) : now_ns;
}

size_t rel_rx_memory_bytes(const struct rel_rx *rx)
{
	size_t sum = REL_RX_SPANS * sizeof(struct rel_rx_span);
	for (const struct rel_rx_msg *msg = rx->oldest; msg; msg = msg->after) {
		sum += sizeof(*msg) + msg->nknown * sizeof(struct rel_known *);
		for (uint32_t i = 0; i < msg->nknown; i++)
			sum += msg->known[i] ? sizeof(struct rel_known) : 0;
		sum += rel_rx_code_bytes(msg);
	}
	return sum;
}

void rel_rx_check(const struct rel_rx *rx)
{
	const struct rel_rx_msg *before = NULL, *top = NULL;
	uint32_t n = 0, ndirty = 0, ncoded = 0;
	uint64_t nfail = 0;
	bool holes = !rx->holes.msg, round = !rx->round.msg, cursor = !rx->cursor.msg,
	     prefix = !rx->prefix;
	for (const struct rel_rx_msg *msg = rx->oldest; msg; msg = msg->after) {
		SDR_ASSERT(msg->before == before);
		SDR_ASSERT(!before || seq32_before(before->message, msg->message));
		SDR_ASSERT(rel_rx_find(rx, msg->message) == msg);
		SDR_ASSERT(msg->cum <= msg->hi && msg->hi <= msg->npkts);
		if (rx->any_seen && !seq32_before(rx->top_message, msg->message))
			top = msg;
		else
			SDR_ASSERT(msg->hi == 0);
		round |= msg == rx->round.msg;
		holes |= msg == rx->holes.msg;
		cursor |= msg == rx->cursor.msg;
		prefix |= msg == rx->prefix;
		ndirty += msg->is_dirty;
		ncoded += msg->code != NULL;
		nfail += msg->code ? msg->code->nfail : 0;
		if (msg->code)
			rel_rx_code_check(rx, msg);
		before = msg;
		n++;
	}
	SDR_ASSERT(n == rx->nopen && rx->newest == before && top == rx->top);
	SDR_ASSERT(ncoded == rx->ncoded && nfail == rx->nfail);
	SDR_ASSERT(round && holes && cursor && prefix && ndirty == rx->ndirty);
	for (const struct rel_rx_msg *msg = rx->dirty; msg; msg = msg->next_dirty)
		ndirty--;
	SDR_ASSERT(ndirty == 0);
	SDR_ASSERT(rx->stage[2] <= rx->stage[1] && rx->stage[1] <= rx->stage[0] &&
		   rx->stage[0] <= rx->span_tail);
	SDR_ASSERT(rx->span_tail - rx->stage[2] <= REL_RX_SPANS);
	(void)top;
}

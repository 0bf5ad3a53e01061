/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the name of a packet {message, index} to its transmission, for receivers that see no
 * PSN. Karn's ambiguity: a packet that was sent twice may be either one.
 *
 * First transmissions leave in order of {message, index}, so each train keeps how far the
 * channel's first transmissions had come with it (its *top*): tops never fall, and the first
 * train whose top lies beyond a packet is the one that sent it first, if this channel did.
 * That train also knows which of its packets were sent again. All this outlives the message,
 * whose records are gone once it is closed. Knows nothing of what a date is good for.
 */
#include "rel/tx_priv.h"

/* The position of the first train whose top is beyond the packet; the log's tail: none. */
static uint64_t top_search(const struct rel_channel *ch, uint32_t message, uint32_t packet)
{
	uint64_t low = ch->log.head, high = ch->log.tail;
	while (low < high) {
		uint64_t mid = low + (high - low) / 2;
		const struct rel_train *train = rel_train_at(ch, mid);
		bool beyond =
			train->top && (seq32_before(message, train->top_message) ||
				       (message == train->top_message && packet < train->top));
		if (beyond)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static bool holds(const struct rel_train *train, uint32_t message, uint32_t packet)
{
	return !train->untracked && train->message == message && packet >= train->first &&
	       packet - train->first < train->n;
}

void rel_train_top(struct rel_channel *ch, struct rel_train *train, bool resend)
{
	train->resend = resend;
	if (!resend && !train->untracked) {
		ch->top_message = train->message;
		ch->top = train->first + train->n;
	}
	train->top_message = ch->top_message;
	train->top = ch->top;
}

void rel_note_again(struct rel_tx *tx, const struct rel_range *sent)
{
	uint32_t end = sent->first + sent->count;
	for (uint32_t c = 0; c < tx->params.channels; c++) {
		struct rel_channel *ch = &tx->ch[c];
		for (uint32_t key = sent->first; key < end;) {
			uint64_t pos = top_search(ch, sent->message, key);
			if (pos == ch->log.tail)
				break;
			struct rel_train *train = rel_train_at(ch, pos);
			/* The head's top may stem from trains that are gone. */
			if (train->top_message != sent->message)
				break;
			uint32_t from = train->first > key ? train->first : key;
			uint32_t to = train->top < end ? train->top : end;
			if (holds(train, sent->message, train->top - 1) && from < to)
				train->again |= bits_range(from - train->first, to - from);
			key = train->top;
		}
	}
}

const struct rel_train *rel_named_once(const struct rel_channel *ch, uint32_t message,
				       uint32_t packet)
{
	uint64_t pos = top_search(ch, message, packet);
	if (pos == ch->log.tail)
		return NULL;
	const struct rel_train *train = rel_train_at(ch, pos);
	if (train->resend || !holds(train, message, packet) ||
	    train->again >> (packet - train->first) & 1)
		return NULL;
	return train;
}

/* The position of the first train that was sent at or after a time. */
static uint64_t first_from(const struct rel_channel *ch, uint64_t sent_ns)
{
	uint64_t low = ch->log.head, high = ch->log.tail;
	while (low < high) {
		uint64_t mid = low + (high - low) / 2;
		if (rel_train_at(ch, mid)->sent_ns < sent_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The train that sent this packet at this time. */
static const struct rel_train *train_at_time(const struct rel_channel *ch, uint64_t sent_ns,
					     uint32_t message, uint32_t packet)
{
	for (uint64_t pos = first_from(ch, sent_ns); pos < ch->log.tail; pos++) {
		const struct rel_train *train = rel_train_at(ch, pos);
		if (train->sent_ns != sent_ns)
			break;
		if (holds(train, message, packet))
			return train;
	}
	return NULL;
}

const struct rel_train *rel_named_last(const struct rel_tx *tx, const struct rel_channel *ch,
				       uint32_t message, uint32_t packet, uint64_t arrived_ns)
{
	struct rel_msg *msg = rel_msg_find(tx, message);
	uint64_t min_rtt = rel_rtt_min_ns(rel_channel_rtt(tx, ch));
	struct rel_word w;
	if (!min_rtt || !msg || packet >= msg->next || !rel_word_get(msg, packet / REL_UNIT, &w) ||
	    !(rel_outstanding(&w) >> (packet % REL_UNIT) & 1))
		return NULL;
	struct rel_last last = rel_last_of(tx, &w, packet % REL_UNIT);
	if (&tx->ch[last.channel] != ch || arrived_ns < last.sent_ns + min_rtt)
		return NULL;
	return train_at_time(ch, last.sent_ns, message, packet);
}

/* Parity goes out once each: a batch's between two known times, a repair unit last of its block. */
const struct rel_train *rel_named_parity(const struct rel_tx *tx, const struct rel_channel *ch,
					 uint32_t message, uint32_t packet)
{
	const struct rel_msg *msg = rel_msg_find(tx, message - 1);
	if (!msg || !rel_has_code(msg))
		return NULL;
	const struct rel_coded *coded = msg->coded;
	struct code_place place = code_layout_parity_place(&coded->layout, packet);
	const struct rel_group *group = &coded->group[place.block / coded->layout.depth];
	uint64_t from_ns = group->parity_ns, to_ns = group->last_ns ? group->last_ns : UINT64_MAX;
	if (place.symbol >= coded->coding.m)
		from_ns = to_ns = coded->block[place.block].last_ns;
	if (!from_ns)
		return NULL;
	for (uint64_t pos = first_from(ch, from_ns); pos < ch->log.tail; pos++) {
		const struct rel_train *train = rel_train_at(ch, pos);
		if (train->sent_ns > to_ns)
			break;
		if (train->parity && train->message == msg->message && packet >= train->first &&
		    packet - train->first < train->n)
			return train;
	}
	return NULL;
}

bool rel_name_is_lie(const struct rel_tx *tx, uint32_t message, uint32_t packet)
{
	const struct rel_msg *msg = rel_msg_find(tx, message);
	if (msg)
		return packet >= msg->high;
	if (tx->any_coded && message == tx->last_coded + 1)
		return false; /* parity */
	return !tx->any_opened || seq32_before(tx->last_opened, message);
}

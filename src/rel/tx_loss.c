/* SPDX-License-Identifier: Apache-2.0 */
/* What the path does to packets, counted: how many arrive, and in which runs they are lost. */
#include "rel/tx_priv.h"

/* Lost now, or when it was sent before. */
static bool was_lost(const struct rel_tx *tx, struct rel_msg *msg, uint32_t packet)
{
	unsigned int bit = packet % REL_UNIT;
	struct rel_word w;
	if (packet >= msg->npkts || !rel_word_get(msg, packet / REL_UNIT, &w))
		return false;
	if (w.page->lost[w.at] >> bit & 1)
		return true;
	return (w.page->exc[w.at] >> bit & 1) && rel_last_of(tx, &w, bit).lost_on != REL_NO_CHANNEL;
}

/* Those that are lost for the first time. */
static uint64_t first_losses(const struct rel_tx *tx, const struct rel_word *w, uint64_t bits)
{
	for (uint64_t exc = bits & w->page->exc[w->at]; exc; exc &= exc - 1) {
		unsigned int bit = (unsigned int)__builtin_ctzll(exc);
		if (rel_last_of(tx, w, bit).lost_on != REL_NO_CHANNEL)
			bits &= ~(UINT64_C(1) << bit);
	}
	return bits;
}

void rel_count_runs(struct rel_tx *tx, const struct rel_word *w, uint64_t bits)
{
	uint64_t rest = first_losses(tx, w, bits);
	tx->run_pkts += (uint64_t)__builtin_popcountll(rest);
	while (rest) {
		unsigned int first = (unsigned int)__builtin_ctzll(rest);
		uint64_t gap = ~(rest >> first);
		unsigned int n = gap ? (unsigned int)__builtin_ctzll(gap) : REL_UNIT;
		uint32_t packet = w->unit * REL_UNIT + first;
		rest &= ~bits_range(first, n);
		/* One that goes on where an earlier one ended, or ends where it began, is none. */
		tx->runs += !(packet && was_lost(tx, w->msg, packet - 1)) &&
			    !was_lost(tx, w->msg, packet + n);
	}
}

void rel_note_made_good(struct rel_tx *tx, uint32_t pkts)
{
	uint32_t more = pkts - (uint32_t)tx->made_good;
	if (more > INT32_MAX) /* an older ACK */
		return;
	if (tx->made_good + more > tx->stats.sent_pkts)
		tx->stats.lies++;
	else
		tx->made_good += more;
}

/* Of data: sent, and neither declared lost (but for those that a code might yet make good) nor made
 * good. Every loss is one or the other, in the end. */
static void data_loss(const struct rel_tx *tx, struct rel_tx_loss *out)
{
	const struct rel_tx_stats *s = &tx->stats;
	uint64_t declared = u64_sub_floor(s->lost_pkts, s->covered_pkts + s->spurious_pkts);
	uint64_t lost = declared + s->uncovered_pkts + tx->made_good;
	out->passed_pkts = s->sent_pkts - s->parity_pkts;
	out->arrived_pkts = u64_sub_floor(out->passed_pkts, lost);
}

void rel_tx_loss(const struct rel_tx *tx, struct rel_tx_loss *out)
{
	*out = (struct rel_tx_loss){.run_pkts = tx->run_pkts, .runs = tx->runs};
	if (tx->named) {
		data_loss(tx, out);
		return;
	}
	for (uint32_t i = 0; i < tx->params.channels; i++) {
		const struct rel_channel *ch = &tx->ch[i];
		out->passed_pkts += ch->passed_pkts;
		out->arrived_pkts += ch->received + ch->duplicates;
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages with a code: which packets it covers, and its parity.
 *
 *	data of a batch, data of a batch ... 		by tx.c, in order
 *	   parity 0 of the batch's blocks, parity 1 ... after the batch's last packet
 *
 * A batch is a group, or several where groups have so few blocks that parity would go out in
 * trains of a packet or two. What becomes of lost packets: tx_repair.c. Knows no arithmetic of
 * codes.
 */
#include "rel/tx_priv.h"

#include <errno.h>

#define BATCH_BLOCKS 16u

static bool in_range(const struct rel_tx *tx, const struct rel_msg *msg,
		     const struct rel_coding *coding)
{
	if (coding->copies > REL_COPIES_MAX || tx->params.scheme.repair == REL_REPAIR_GBN)
		return false;
	if (coding->code == REL_CODE_NONE)
		return true;
	if (coding->code == REL_CODE_XOR && coding->m > coding->k)
		return false;
	return coding->code <= REL_CODE_RS && tx->params.scheme.nack && coding->k > 0 &&
	       coding->m > 0 && coding->k + (uint64_t)coding->m <= 255 && coding->depth > 0 &&
	       coding->depth <= REL_DEPTH_MAX && coding->span_pkts > 0 &&
	       (uint64_t)coding->span_start + coding->span_pkts <= msg->npkts;
}

/* The next groups that go out before their parity does. */
static void batch_begin(const struct rel_tx *tx, struct rel_coded *coded)
{
	const struct code_layout *l = &coded->layout;
	uint64_t n = u64_div_up(BATCH_BLOCKS, l->depth);
	if (tx->bdp_pkts) {
		uint64_t most = tx->bdp_pkts / 16 / ((uint64_t)l->depth * l->k);
		n = u64_min(n, u64_max(most, 1));
	}
	coded->batch_end = (uint32_t)u64_min(coded->batch + n, coded->ngroups);
	coded->number = coded->at = 0;
}

static int blocks_new(struct rel_tx *tx, struct rel_coded *coded)
{
	const struct rel_coding *coding = &coded->coding;
	int err = code_layout_init(&coded->layout, coding->span_pkts, coding->k, coding->depth);
	if (err < 0)
		return err;
	coded->ngroups = code_layout_ngroups(&coded->layout);
	coded->group = alloc_zeroed(&tx->alloc, coded->ngroups * sizeof(*coded->group));
	coded->block = alloc_zeroed(&tx->alloc, coded->layout.nblocks * sizeof(*coded->block));
	if (!coded->group || !coded->block)
		return -ENOMEM;
	batch_begin(tx, coded);
	return 0;
}

static void coded_free(struct rel_tx *tx, struct rel_coded *coded)
{
	alloc_free(&tx->alloc, coded->group);
	alloc_free(&tx->alloc, coded->block);
	alloc_free(&tx->alloc, coded);
}

int rel_coded_open(struct rel_tx *tx, struct rel_msg *msg, const struct rel_coding *coding)
{
	if (!in_range(tx, msg, coding))
		return -EINVAL;
	if (coding->code == REL_CODE_NONE && coding->copies < 2)
		return 0;
	struct rel_coded *coded = alloc_zeroed(&tx->alloc, sizeof(*coded));
	if (!coded)
		return -ENOMEM;
	coded->coding = *coding;
	int err = coding->code == REL_CODE_NONE ? 0 : blocks_new(tx, coded);
	if (err < 0) {
		coded_free(tx, coded);
		return err;
	}
	msg->coded = coded;
	if (rel_has_code(msg)) {
		tx->any_coded = true;
		tx->last_coded = msg->message;
	}
	return 0;
}

void rel_coded_close(struct rel_tx *tx, struct rel_msg *msg)
{
	if (!msg->coded)
		return;
	tx->covered_now -= msg->coded->covered;
	if (tx->parity == msg)
		tx->parity = NULL;
	coded_free(tx, msg->coded);
	msg->coded = NULL;
}

size_t rel_coded_bytes(const struct rel_msg *msg)
{
	const struct rel_coded *coded = msg->coded;
	if (!coded)
		return 0;
	return sizeof(*coded) + coded->ngroups * sizeof(*coded->group) +
	       coded->layout.nblocks * sizeof(*coded->block);
}

uint64_t rel_span_bits(const struct rel_msg *msg, uint32_t unit)
{
	if (!rel_has_code(msg))
		return 0;
	uint32_t start = msg->coded->coding.span_start;
	return rel_mask_below(unit, start + msg->coded->layout.npkts) &
	       ~rel_mask_below(unit, start);
}

uint32_t rel_batch_end_pkt(const struct rel_msg *msg)
{
	const struct rel_coded *coded = msg->coded;
	if (!rel_has_code(msg) || coded->batch == coded->ngroups)
		return msg->npkts;
	struct code_group g = code_layout_group(&coded->layout, coded->batch_end - 1);
	return coded->coding.span_start + g.first_pkt + g.npkts;
}

/* The batch's blocks are neighbours: how many. */
static uint32_t batch_blocks(const struct rel_coded *coded)
{
	const struct code_layout *l = &coded->layout;
	uint64_t end = u64_min((uint64_t)coded->batch_end * l->depth, l->nblocks);
	return (uint32_t)(end - (uint64_t)coded->batch * l->depth);
}

/* What of the batch's parity comes next, in one train; 0: that was all, or there is no room. */
static uint32_t parity_run(const struct rel_coded *coded, uint32_t *first)
{
	const struct code_layout *l = &coded->layout;
	uint32_t block = coded->batch * l->depth + coded->at;
	if (coded->batch == coded->ngroups || coded->number >= coded->coding.m)
		return 0;
	uint64_t pkt = code_layout_parity_packet(l, block, coded->number);
	if (pkt >= coded->coding.parity_room)
		return 0;
	*first = (uint32_t)pkt;
	uint64_t count = u64_min(batch_blocks(coded) - coded->at, coded->coding.parity_room - pkt);
	return (uint32_t)u64_min(count, REL_UNIT - pkt % REL_UNIT);
}

bool rel_next_parity(struct rel_tx *tx, struct rel_range *out)
{
	if (!tx->parity)
		return false;
	*out = (struct rel_range){.message = tx->parity->message, .parity = true};
	out->count = parity_run(tx->parity->coded, &out->first);
	SDR_ASSERT(out->count > 0);
	return true;
}

/* Something of the batch was sent: the data's end, or parity. */
static void batch_sent(struct rel_tx *tx, struct rel_msg *msg, uint64_t sent_ns)
{
	struct rel_coded *coded = msg->coded;
	uint32_t first;
	if (parity_run(coded, &first)) {
		tx->parity = msg;
		return;
	}
	tx->parity = NULL;
	for (uint32_t g = coded->batch; g < coded->batch_end; g++)
		coded->group[g].last_ns = sent_ns;
	coded->batch = coded->batch_end;
	batch_begin(tx, coded);
}

static void batch_parity_sent(struct rel_tx *tx, struct rel_msg *msg, uint32_t count,
			      uint64_t sent_ns)
{
	struct rel_coded *coded = msg->coded;
	SDR_ASSERT(tx->parity == msg);
	for (uint32_t g = coded->batch; g < coded->batch_end && !coded->number && !coded->at; g++)
		coded->group[g].parity_ns = sent_ns;
	coded->at += count;
	if (coded->at == batch_blocks(coded)) {
		coded->at = 0;
		coded->number++;
	}
	batch_sent(tx, msg, sent_ns);
}

void rel_parity_sent(struct rel_tx *tx, const struct rel_range *sent, uint32_t channel,
		     uint32_t first_psn24, uint64_t now_ns)
{
	struct rel_channel *ch = &tx->ch[channel];
	struct rel_msg *msg = rel_msg_find(tx, sent->message);
	struct rel_train *train = rel_log_train(tx, ch, first_psn24, now_ns);
	train->message = sent->message;
	train->first = sent->first;
	train->untracked = train->parity = true;
	train->extra = (uint8_t)sent->count;
	ch->extra += sent->count;
	/* What comes after its message was done counts as a duplicate. */
	ch->copied_pkts += sent->count;
	rel_count_sent(tx, ch, train, sent->count);
	rel_train_top(ch, train, false);
	tx->stats.parity_pkts += sent->count;
	tx->last_sent_ns = now_ns;
	tx->tail_probed = false;
	if (!msg || !rel_has_code(msg))
		return;
	msg->coded->heard_ns = u64_max(msg->coded->heard_ns, train->sent_ns);
	if (sent->first / msg->coded->layout.nblocks >= msg->coded->coding.m)
		rel_repair_sent(tx, msg, sent->count, train->sent_ns, now_ns);
	else
		batch_parity_sent(tx, msg, sent->count, train->sent_ns);
}

void rel_coded_sent(struct rel_tx *tx, struct rel_msg *msg, const struct rel_range *sent,
		    uint64_t sent_ns)
{
	struct rel_coded *coded = msg->coded;
	uint32_t end = sent->first + sent->count, start = coded->coding.span_start;
	if (!rel_has_code(msg) || end <= start)
		return;
	if (!sent->probe)
		coded->heard_ns = u64_max(coded->heard_ns, sent_ns);
	if (!sent->resend) {
		if (coded->batch < coded->ngroups && msg->next == rel_batch_end_pkt(msg))
			batch_sent(tx, msg, sent_ns);
		return;
	}
	for (uint32_t pkt = sent->first > start ? sent->first : start;
	     pkt < end && pkt - start < coded->layout.npkts; pkt++) {
		uint32_t block = code_layout_place(&coded->layout, pkt - start).block;
		coded->block[block].last_ns = u64_max(coded->block[block].last_ns, sent_ns);
	}
}

void rel_tx_set_bdp(struct rel_tx *tx, uint64_t pkts)
{
	tx->bdp_pkts = pkts;
}

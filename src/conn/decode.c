/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codes, receiving. WRITE says which code a write has; from then on its parity packets, those
 * too that came before, are rel/'s business, which says when a block can be decoded. A block's lost
 * packets are claimed one by one, so that nobody else writes them, made good and committed; to
 * everybody else they have arrived.
 *
 * What a peer says of codes is checked (a WRITE that cannot be changes nothing and is counted), but
 * what its parity makes of the data is the peer's: it could have sent that as data too.
 */
#include "conn/internal.h"
#include <sched.h>

#define BLOCKS_MAX 64u /* decoded by one service; then others get a turn */

/* Packets that its parity message has room for. */
static uint32_t room_of(const struct sdr_op *op, uint32_t payload)
{
	struct sdr_recv_info info = {.size = sizeof(info)};

	if (!op->parity_recv)
		return 0;
	(void)sdr_recv_query(op->parity_recv, &info);
	if (info.error || info.payload_bytes != payload)
		return 0;
	return (uint32_t)(op->parity_bytes / payload);
}

/* ---- WRITE ---- */

/* 0 and *w; -EINVAL: it cannot be. */
static int write_check(const struct sdr_op *op, const struct wire_write *write, uint32_t payload,
		       struct codec_write *w)
{
	uint64_t pkts = u64_div_up(write->length, payload);

	if (write->code > REL_CODE_RS || !write->m || write->span_start >= pkts ||
	    pkts > UINT32_MAX)
		return -EINVAL;
	if (codec_write_init(w, (enum rel_code)write->code, write->k, write->m, write->depth,
			     (uint32_t)write->span_start, (uint32_t)(pkts - write->span_start),
			     payload, write->length))
		return -EINVAL;
	w->data = op->addr;
	w->parity = op->parity;
	w->room = room_of(op, payload);
	return 0;
}

static int rel_code(struct sdr_op *op, const struct codec_write *w, uint32_t depth)
{
	struct rel_coding coding = {.code = w->code,
				    .k = w->k,
				    .m = w->m,
				    .depth = depth,
				    .span_start = w->span_start,
				    .span_pkts = w->layout.npkts,
				    .parity_room = w->room};

	return rel_rx_code(&op->conn->rx, op->message, &coding);
}

int decode_begin(struct sdr_op *op, const struct wire_write *write)
{
	struct sdr_recv_info info = {.size = sizeof(info)};
	struct codec_write w;
	int err;

	(void)sdr_recv_query(op->recv, &info);
	if (info.error)
		return 0; /* it ends anyway */
	if (write_check(op, write, info.payload_bytes, &w) ||
	    sdr_recv_length_set(op->recv, write->length))
		return -EINVAL;
	if (!recv_open(op))
		return -ENOMEM;
	(void)sdr_recv_query(op->recv, &info);
	(void)rel_rx_end(&op->conn->rx, op->message, info.pkts);
	err = rel_code(op, &w, write->depth);
	if (err)
		return err;
	op->code = w;
	op->conn->look_parity = true;
	return 0;
}

bool decode_is(const struct sdr_op *op, const struct wire_write *write)
{
	const struct codec_write *w = &op->code;

	return w->code == write->code && w->k == write->k && w->m == write->m &&
	       w->length == write->length && w->span_start == write->span_start &&
	       w->layout.depth == u64_min(write->depth, w->layout.nblocks);
}

/* ---- parity that came ---- */

void decode_parity(struct sdr_op *op)
{
	struct sdr_conn *conn = op->conn;
	uint64_t words[REL_RX_WANT_WORDS];
	struct rel_rx_want want;
	uint32_t at = 0;

	if (op->code.code == REL_CODE_NONE || !op->code.room)
		return;
	while (rel_rx_want_parity(&conn->rx, op->message, &at, &want)) {
		uint64_t first = (uint64_t)want.first_word * REL_UNIT;
		uint64_t n = (uint64_t)want.nwords * REL_UNIT;

		SDR_ASSERT(want.nwords <= REL_RX_WANT_WORDS);
		if (first >= op->code.room)
			continue;
		n = u64_min(n, op->code.room - first);
		if (sdr_recv_pkts_get(op->parity_recv, first, n, words) > 0)
			rel_rx_feed_parity(&conn->rx, op->message, want.first_word, words,
					   (uint32_t)bits_words(n));
	}
}

void decode_parity_all(struct sdr_conn *conn)
{
	if (!conn->look_parity)
		return;
	conn->look_parity = false;
	for (uint32_t n = conn->rx_base; n != conn->rx_open; n++) {
		struct sdr_op *op = conn->rx_op[n & conn->mask];

		if (op && op->code.code != REL_CODE_NONE) {
			conn->look_parity = true;
			decode_parity(op);
		}
	}
}

/* ---- blocks ---- */

static uint32_t packet_of(const struct sdr_op *op, uint32_t block, uint32_t symbol)
{
	return op->code.span_start + code_layout_packet(&op->code.layout, block, symbol);
}

/* Somebody else holds this packet: a worker that is copying it, for at most a batch of packets. */
static void packet_wait(const struct sdr_op *op, uint32_t packet)
{
	uint64_t word;

	while (sdr_recv_pkts_get(op->recv, packet, 1, &word) == 0)
		(void)sched_yield();
}

/* Of the lost packets those that are ours to write; the others have come by now. */
static int block_claim(const struct sdr_op *op, struct rel_rx_block *b, const struct code_set *lost,
		       struct code_set *ours)
{
	for (uint32_t i = code_set_next(lost, 0); i < CODE_SET_BITS;
	     i = code_set_next(lost, i + 1)) {
		uint32_t packet = packet_of(op, b->block, i);
		uint64_t mask;
		int err = sdr_recv_fill_begin(op->recv, packet, 1, &mask);

		if (err)
			return err;
		if (mask) {
			code_set_add(ours, i);
			continue;
		}
		packet_wait(op, packet);
		code_set_add(&b->have, i);
	}
	return 0;
}

static void block_commit(struct sdr_op *op, uint32_t block, const struct code_set *ours)
{
	struct sdr_conn *conn = op->conn;

	for (uint32_t i = code_set_next(ours, 0); i < CODE_SET_BITS;
	     i = code_set_next(ours, i + 1)) {
		(void)sdr_recv_fill_end(op->recv, packet_of(op, block, i), 1);
		conn->stats.rx_decoded_pkts++;
	}
	conn->stats.rx_decoded_blocks++;
}

/* 0, or why the receive cannot go on: what was claimed nobody else will write. */
static int block_decode(struct sdr_op *op, struct rel_rx_block *b, const struct code_set *lost)
{
	struct sdr_conn *conn = op->conn;
	struct code_set ours = {0};
	int made = block_claim(op, b, lost, &ours);

	if (!made && code_set_count(&ours) && !conn->no_bytes)
		made = codec_decode(&conn->codec, &op->code, b->block, &b->have, &b->parity);
	if (made < 0)
		return made;
	block_commit(op, b->block, &ours);
	rel_rx_block_done(&conn->rx, b->message, b->block);
	return 0;
}

/* What was made good and what came meanwhile: of all packets that the block lacked. */
static void block_feed(struct sdr_op *op, uint32_t block, const struct code_set *lost)
{
	for (uint32_t i = code_set_next(lost, 0); i < CODE_SET_BITS; i = code_set_next(lost, i + 1))
		recv_feed_word(op, packet_of(op, block, i) / REL_UNIT);
}

void decode_service(struct sdr_conn *conn)
{
	struct rel_rx_block b;

	for (uint32_t n = 0; rel_rx_next_block(&conn->rx, &b); n++) {
		struct sdr_op *op = conn_rx_op(conn, b.message);
		struct code_set lost;
		int err;

		SDR_ASSERT(op && op->message == b.message && op->code.code != REL_CODE_NONE);
		lost = code_set_missing(&b.have,
					code_layout_block_count(&op->code.layout, b.block));
		err = block_decode(op, &b, &lost);
		if (err) {
			recv_end_early(op, err);
			continue;
		}
		block_feed(op, b.block, &lost);
		recv_maybe_whole(op);
		if (n == BLOCKS_MAX) {
			conn->service_again = true;
			break;
		}
	}
}

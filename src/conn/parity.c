/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codes, sending. When a write is granted it gets its scheme (auto.h), and rel/ the numbers of it;
 * rel/ then says which parity packets should go and when, and here their bytes are made: all rows
 * of a batch's blocks when the first of them is due, while the data is in cache, and the further
 * ones that a failed block gets when they are asked for. They are kept at their places in the
 * write's piece of the arena until the write ends.
 *
 * Knows nothing of when parity is sent, and of what arrived.
 */
#include "conn/internal.h"

#define LOOK_MIN_NS (100 * NS_PER_US) /* between looks at the path, for who chooses by it */
#define LOOK_IDLE_NS (10 * NS_PER_MS) /* ... and for who only wants to know */

void parity_setup(struct sdr_conn *conn)
{
	struct sdr_ctx_info info = {.size = sizeof(info)};

	(void)sdr_ctx_query(conn->net->ctx, &info);
	conn->no_bytes = info.caps & SDR_CAP_NO_PAYLOAD;
	conn->choose = conn->tx_paired || conn->params.copies > 1;
	conn->last_scheme = conn->params;
	arena_init(&conn->tx_arena, conn->attr.parity_bytes, conn->no_bytes);
	arena_init(&conn->rx_arena, conn->attr.parity_bytes, conn->no_bytes);
	codec_init(&conn->codec, &sdr_alloc_system);
	auto_init(&conn->choice, &conn->params, conn->attr.path_loss, conn->attr.path_burst_pkts);
}

void parity_fini(struct sdr_conn *conn)
{
	codec_fini(&conn->codec);
	arena_fini(&conn->tx_arena);
	arena_fini(&conn->rx_arena);
}

/* ---- the path ---- */

static uint64_t rate_bps(const struct sdr_conn *conn)
{
	uint64_t sum = 0;

	if (conn->attr.rate_bps)
		return conn->attr.rate_bps;
	for (uint32_t c = 0; c < conn->channels; c++)
		sum += cc_bottleneck_bps(&conn->ch[c].cc);
	return sum;
}

static uint64_t rtt_min_ns(const struct sdr_conn *conn)
{
	uint64_t rtt = rel_rtt_min_ns(&conn->tx.rtt);

	if (!rtt || (conn->qi.rtt_min_ns && conn->qi.rtt_min_ns < rtt))
		rtt = conn->qi.rtt_min_ns;
	return rtt;
}

void parity_look(struct sdr_conn *conn, uint64_t now)
{
	struct auto_path path = {.rtt_ns = rtt_min_ns(conn),
				 .rate_bps = rate_bps(conn),
				 .payload = conn->qi.payload_bytes};
	struct rel_tx_loss loss;
	double bdp;

	if (now < conn->look_ns)
		return;
	conn->look_ns = now + u64_max(path.rtt_ns / 2, conn->choose ? LOOK_MIN_NS : LOOK_IDLE_NS);
	rel_tx_loss(&conn->tx, &loss);
	auto_update(&conn->choice, &loss, &path, now);
	bdp = (double)path.rate_bps * (double)path.rtt_ns / 8e9 / (path.payload ? path.payload : 1);
	rel_tx_set_bdp(&conn->tx, (uint64_t)bdp);
}

/* ---- schemes ---- */

int parity_scheme_set(struct sdr_conn *conn, const struct rel_params *params)
{
	bool offered = conn->offers & CONN_OFFER_WANT;

	if (rel_scheme_coded(params) && !(conn->rel_ready ? conn->tx_paired : offered))
		return -ENOTSUP;
	conn->params = *params;
	(void)rel_scheme_name(params, conn->scheme, sizeof(conn->scheme));
	conn->scheme_due = conn->rel_ready;
	return 0;
}

/* Go-Back-N and the others do not mix: one ends before the other begins. */
bool parity_scheme_apply(struct sdr_conn *conn)
{
	struct rel_params *now = &conn->tx.params.scheme;

	if (!conn->scheme_due)
		return true;
	if (now->repair != conn->params.repair && conn->tx.nopen)
		return false;
	*now = conn->params;
	conn->scheme_due = false;
	conn->choose = conn->tx_paired || conn->params.copies > 1;
	auto_scheme_set(&conn->choice, &conn->params);
	conn->look_ns = 0;
	return true;
}

/* ---- opening ---- */

/* Packets that a write's parity message has room for, at both ends. */
static uint32_t room_of(const struct sdr_op *op)
{
	struct sdr_send_info info = {.size = sizeof(info)};

	if (!op->parity_send)
		return 0;
	(void)sdr_send_query(op->parity_send, &info);
	return info.payload_bytes == op->payload ? info.pkts : 0;
}

/* The code that rel/ is told, and *as; none where there is nothing to code. */
static void choose(struct sdr_op *op, uint32_t room, struct rel_coding *coding,
		   struct rel_params *as)
{
	struct sdr_conn *conn = op->conn;
	uint64_t pkts = u64_div_up(op->length, op->payload); /* less than rel's: no end packet */
	struct codec_write *w = &op->code;

	*coding = (struct rel_coding){0};
	*as = conn->params;
	if (!pkts)
		return;
	auto_choose(&conn->choice, (uint32_t)pkts, room, coding, as);
	coding->parity_room = room;
	if (coding->code == REL_CODE_NONE)
		return;
	if (codec_write_init(w, coding->code, coding->k, coding->m, coding->depth,
			     coding->span_start, coding->span_pkts, op->payload, op->length)) {
		SDR_ASSERT(false);
		coding->code = REL_CODE_NONE;
		return;
	}
	w->data = op->addr;
	w->parity = op->parity;
	w->room = room;
}

static int open_coded(struct sdr_op *op, struct rel_coding *coding)
{
	struct rel_tx *tx = &op->conn->tx;
	int err;

	if (coding->code == REL_CODE_NONE && coding->copies <= 1)
		return rel_tx_open(tx, op->message, op->pkts);
	err = rel_tx_open_coded(tx, op->message, op->pkts, coding);
	SDR_ASSERT(err != -EINVAL);
	if (err != -EINVAL)
		return err;
	coding->code = REL_CODE_NONE;
	return rel_tx_open(tx, op->message, op->pkts);
}

/* It is without a code. Was that for want of room? */
static void uncoded(struct sdr_op *op, uint32_t room)
{
	struct sdr_conn *conn = op->conn;
	uint64_t pkts = u64_div_up(op->length, op->payload);

	if (conn->tx_paired && pkts && auto_parity_pkts(&conn->choice, pkts) > room)
		conn->stats.writes_no_room++;
	pair_tx_room_free(op);
}

int parity_open(struct sdr_op *op)
{
	struct sdr_conn *conn = op->conn;
	struct rel_coding coding;
	struct rel_params as;
	uint32_t room;
	int err;

	op->code.code = REL_CODE_NONE;
	if (!conn->choose)
		return rel_tx_open(&conn->tx, op->message, op->pkts);
	parity_look(conn, sdr_now_ns(conn->net->ctx));
	room = room_of(op);
	choose(op, room, &coding, &as);
	err = open_coded(op, &coding);
	if (err)
		return err;
	conn->last_scheme = as;
	op->code.code = coding.code;
	op->encoded = op->fresh_first = op->fresh_count = 0;
	if (coding.code == REL_CODE_NONE)
		uncoded(op, room);
	else
		conn->stats.writes_coded++;
	return 0;
}

/* ---- parity packets ---- */

/* Rows of the first m that blocks up to `block` have room for. */
static uint32_t rows_of(const struct codec_write *w, uint32_t block)
{
	uint64_t rows = block < w->room ? (w->room - 1 - block) / w->layout.nblocks + 1 : 0;

	return (uint32_t)u64_min(rows, w->m);
}

/* All rows of blocks [from, to), which are `from` rows of the batch or what is new of it. */
static int encode_blocks(struct sdr_conn *conn, const struct codec_write *w, uint32_t from,
			 uint32_t to)
{
	uint32_t rows = rows_of(w, to - 1);
	int err = rows ? codec_encode(&conn->codec, w, from, to - from, 0, rows) : 0;

	/* The room ends within a row. */
	if (!err && rows < rows_of(w, from))
		err = codec_encode(&conn->codec, w, from, w->room % w->layout.nblocks - from, rows,
				   1);
	return err;
}

/* Symbols `row` of n blocks. */
static int make_row(struct sdr_op *op, uint32_t row, uint32_t block, uint32_t n)
{
	const struct codec_write *w = &op->code;
	uint32_t first = row * w->layout.nblocks + block;
	uint32_t from = (uint32_t)u64_max(block, op->encoded);
	int err;

	if (row < w->m) {
		if (block + n <= op->encoded)
			return 0;
		err = encode_blocks(op->conn, w, from, block + n);
		if (!err)
			op->encoded = block + n;
		return err;
	}
	if (first - op->fresh_first < op->fresh_count &&
	    first + n - op->fresh_first <= op->fresh_count)
		return 0; /* it was made, and could not be sent then */
	err = codec_encode(&op->conn->codec, w, block, n, row, 1);
	if (!err) {
		op->fresh_first = first;
		op->fresh_count = n;
	}
	return err;
}

int parity_make(struct sdr_op *op, uint32_t first, uint32_t count)
{
	uint32_t nblocks = op->code.layout.nblocks;
	int err = 0;

	SDR_ASSERT(count <= op->code.room && first <= op->code.room - count);
	if (op->conn->no_bytes)
		return 0;
	while (count && !err) {
		uint32_t block = first % nblocks;
		uint32_t n = (uint32_t)u64_min(count, nblocks - block);

		err = make_row(op, first / nblocks, block, n);
		first += n;
		count -= n;
	}
	return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Announcements of writes (WRITE): the code of those that have one, and with it length and
 * immediate, since the packets that carry them may be lost for good; and the immediate where
 * packets cannot carry it.
 *
 * On RDMA devices a packet has room for a few bits of the user's immediate, so that it takes
 * qi.imm_packets packets to carry it. Which writes are announced, and how the receiver knows:
 *
 *	immediate 0, or none		the packets carry 0; no announcement
 *	surely long enough		the packets carry it; no announcement
 *	may be too short, or it is	the packets carry CONN_IMM_SAID, of which every packet
 *	CONN_IMM_SAID itself		shows a part that is not 0; WRITE carries the immediate
 *
 * So a receiver whose packets are all in knows by any part whether WRITE is still to come. The
 * sender repeats WRITE until the write ends, which it does not before the receiver has it; the
 * receiver never asks. Several WRITEs share a control message. What a peer says of receives
 * that are not posted, or twice, or with a wrong length, changes nothing.
 *
 * A write with a code is announced ahead of its packets, and five times more within its first
 * round trip, the first of them after a hundredth: without WRITE no loss can be made good.
 *
 * Knows nothing of what the packets hold else, nor of what is done about codes.
 */
#include "conn/internal.h"
#include "wire/msg.h"

#define PAYLOAD_MOST 4096u /* the largest path MTU of InfiniBand: no packet carries more */
#define GAP_MIN_NS NS_PER_MS
#define GAP_EARLY_NS (20 * NS_PER_US)
#define EARLY_SAYS 5u /* of coded writes: RTT / 128, / 64 ... / 8 apart */
#define LOOK_NS (GAP_MIN_NS / 4)
#define GAP_MOST_NS NS_PER_S
#define BATCH (SDR_MAX_CTRL_BYTES / WIRE_WRITE_BYTES)

/* ---- sender ---- */

uint32_t announce_imm(struct sdr_op *op, const struct sdr_op_wr *wr)
{
	const struct sdr_conn *conn = op->conn;
	uint32_t spread = conn->qi.imm_packets;

	op->announce = false;
	if (!(wr->flags & SDR_OP_HAS_IMM) || !wr->imm)
		return 0;
	if (spread <= 1 ||
	    (wr->imm != CONN_IMM_SAID && wr->length > (uint64_t)(spread - 1) * PAYLOAD_MOST))
		return wr->imm;
	op->announce = true;
	return CONN_IMM_SAID;
}

static bool coded(const struct sdr_op *op)
{
	return op->code.code != REL_CODE_NONE;
}

void announce_open(struct sdr_op *op)
{
	op->announce |= coded(op);
	if (!op->announce)
		return;
	op->says = 0;
	op->say_ns = op->say_gap_ns = 0;
	op->conn->announce_at_ns = 0;
}

static uint64_t look_ns(const struct sdr_conn *conn)
{
	return u64_max(u64_min(LOOK_NS, conn_rtt_ns(conn) / 256), GAP_EARLY_NS / 2);
}

/* It was said; when again. */
static void said(struct sdr_op *op, uint64_t now)
{
	const struct sdr_conn *conn = op->conn;
	uint64_t rtt = conn_rtt_ns(conn), gap = rtt + 4 * conn->tx.rtt.variance_ns;

	if (coded(op) && op->says < EARLY_SAYS) {
		gap = u64_max(rtt >> (2 + EARLY_SAYS - op->says++), GAP_EARLY_NS);
	} else {
		gap = op->say_gap_ns ? 2 * op->say_gap_ns : u64_max(gap, GAP_MIN_NS);
		op->say_gap_ns = gap = u64_min(gap, GAP_MOST_NS);
	}
	op->say_ns = now + gap;
}

/* WRITEs that go in one control message. */
struct batch {
	uint8_t body[SDR_MAX_CTRL_BYTES];
	size_t len;
	struct sdr_op *op[BATCH];
	uint32_t n;
};

static void batch_send(struct sdr_conn *conn, struct batch *b, uint64_t now)
{
	int err = 0;

	if (b->n)
		err = sdr_ctrl_send(conn->qp, CONN_CTRL_WRITE, b->body, b->len, SDR_CHANNEL_ANY);
	for (uint32_t i = 0; i < b->n; i++) {
		struct sdr_op *op = b->op[i];

		if (!err)
			said(op, now);
		/* The queue was full: again at once, when it has left. */
		conn->announce_at_ns =
			u64_min(conn->announce_at_ns, err ? now + CONN_AGAIN_NS : op->say_ns);
	}
	b->n = 0;
	b->len = 0;
}

static void batch_add(struct sdr_conn *conn, struct batch *b, struct sdr_op *op, uint64_t now)
{
	struct wire_write write = {
		.write = op->number,
		.length = op->length,
		.imm = op->flags & SDR_OP_HAS_IMM ? op->done.imm : 0,
		.has_imm = op->flags & SDR_OP_HAS_IMM,
	};
	size_t most = u64_min(sizeof(b->body), conn->qi.max_ctrl_bytes);
	int len;

	if (coded(op)) {
		write.code = (uint8_t)op->code.code;
		write.k = (uint16_t)op->code.k;
		write.m = (uint16_t)op->code.m;
		write.depth = op->code.layout.depth;
		write.span_start = op->code.span_start;
	}
	if (b->len + WIRE_WRITE_BYTES > most)
		batch_send(conn, b, now);
	len = wire_write_put(b->body + b->len, sizeof(b->body) - b->len, &write);
	SDR_ASSERT(len == WIRE_WRITE_BYTES);
	b->len += (size_t)len;
	b->op[b->n++] = op;
}

void announce_service(struct sdr_conn *conn, uint64_t now)
{
	struct batch b;
	uint64_t later = UINT64_MAX;

	if (conn->announce_at_ns > now)
		return;
	b.len = b.n = 0; /* the rest of it is set as it is used */
	conn->announce_at_ns = UINT64_MAX;
	for (uint32_t n = conn->tx_base; n != conn->tx_open; n++) {
		struct sdr_op *op = conn->tx_op[n & conn->mask];

		if (!op || op->state != OP_OPEN || !op->announce)
			continue;
		if (op->say_ns <= now)
			batch_add(conn, &b, op, now);
		else
			later = u64_min(later, op->say_ns);
	}
	/* Those that were said lately will have ended when their time comes: no look for each. */
	if (later != UINT64_MAX)
		conn->announce_at_ns =
			u64_min(conn->announce_at_ns, u64_max(later, now + look_ns(conn)));
	batch_send(conn, &b, now);
}

/* ---- receiver ---- */

bool announce_missing(struct sdr_op *op, uint64_t length, uint32_t *imm)
{
	bool all = sdr_recv_imm_get(op->recv, imm) == 0;

	/* What a coded write's packets carried of it may be what was lost. */
	if (coded(op)) {
		*imm = op->said_imm;
		return false;
	}
	if (op->conn->qi.imm_packets <= 1 || (all ? *imm != CONN_IMM_SAID : *imm == 0)) {
		*imm = all ? *imm : 0;
		return false;
	}
	if (op->said && op->said_length != length)
		op->said = false; /* of another message than this one */
	*imm = op->said ? op->said_imm : 0;
	return !op->said;
}

/* With a code. What has arrived already may be enough. */
static void coded_on(struct sdr_op *op, const struct wire_write *write)
{
	struct sdr_conn *conn = op->conn;
	uint32_t number = op->number;
	int err;

	if (coded(op)) {
		conn->stats.bad_writes += !decode_is(op, write);
		return;
	}
	err = decode_begin(op, write);
	if (err) {
		conn->stats.bad_writes += err == -EINVAL;
		return;
	}
	op->said = true;
	op->said_imm = write->has_imm ? write->imm : 0;
	op->said_length = write->length;
	recv_news(op);
	if (conn->rx_op[number & conn->mask] == op)
		decode_parity(op);
}

static void write_on(struct sdr_conn *conn, const struct wire_write *write)
{
	struct sdr_op *op = conn->rx_op[write->write & conn->mask];

	if (!op || op->number != write->write)
		return;
	if (write->length > op->length || (write->code && !conn->rx_paired)) {
		conn->stats.bad_writes++;
		return;
	}
	if (write->code) {
		coded_on(op, write);
		return;
	}
	if (op->said || !write->has_imm)
		return;
	op->said = true;
	op->said_imm = write->imm;
	op->said_length = write->length;
	if (op->whole)
		recv_whole(op);
}

void announce_on(struct sdr_conn *conn, const uint8_t *body, size_t len)
{
	struct wire_write write;

	for (; len >= WIRE_WRITE_BYTES; body += WIRE_WRITE_BYTES, len -= WIRE_WRITE_BYTES) {
		if (wire_write_get(body, WIRE_WRITE_BYTES, &write))
			return;
		write_on(conn, &write);
	}
}

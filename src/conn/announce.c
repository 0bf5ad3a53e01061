/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Announcements of writes (WRITE): the immediate where packets cannot carry it.
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
 * Knows nothing of what the packets hold else, nor of codes: a WRITE with one is ignored.
 */
#include "conn/internal.h"
#include "wire/msg.h"

#define PAYLOAD_MOST 4096u /* the largest path MTU of InfiniBand: no packet carries more */
#define GAP_MIN_NS NS_PER_MS
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
	op->say_ns = op->say_gap_ns = 0;
	return CONN_IMM_SAID;
}

void announce_open(struct sdr_op *op)
{
	if (op->announce)
		op->conn->announce_at_ns = 0;
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
	uint64_t gap = conn_rtt_ns(conn) + 4 * conn->tx.rtt.variance_ns;
	int err = 0;

	if (b->n)
		err = sdr_ctrl_send(conn->qp, CONN_CTRL_WRITE, b->body, b->len, SDR_CHANNEL_ANY);
	for (uint32_t i = 0; i < b->n; i++) {
		struct sdr_op *op = b->op[i];

		if (!err) {
			op->say_gap_ns = op->say_gap_ns ? u64_min(2 * op->say_gap_ns, GAP_MOST_NS)
							: u64_max(gap, GAP_MIN_NS);
			op->say_ns = now + op->say_gap_ns;
		}
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
		.imm = op->done.imm,
		.has_imm = true,
	};
	size_t most = u64_min(sizeof(b->body), conn->qi.max_ctrl_bytes);
	int len;

	if (b->len + WIRE_WRITE_BYTES > most)
		batch_send(conn, b, now);
	len = wire_write_put(b->body + b->len, sizeof(b->body) - b->len, &write);
	SDR_ASSERT(len == WIRE_WRITE_BYTES);
	b->len += (size_t)len;
	b->op[b->n++] = op;
}

void announce_service(struct sdr_conn *conn, uint64_t now)
{
	struct batch b = {.len = 0};
	uint64_t later = UINT64_MAX;

	if (conn->announce_at_ns > now)
		return;
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
			u64_min(conn->announce_at_ns, u64_max(later, now + GAP_MIN_NS / 4));
	batch_send(conn, &b, now);
}

/* ---- receiver ---- */

bool announce_missing(struct sdr_op *op, uint64_t length, uint32_t *imm)
{
	bool all = sdr_recv_imm_get(op->recv, imm) == 0;

	if (op->conn->qi.imm_packets <= 1 || (all ? *imm != CONN_IMM_SAID : *imm == 0)) {
		*imm = all ? *imm : 0;
		return false;
	}
	if (op->said && op->said_length != length)
		op->said = false; /* of another message than this one */
	*imm = op->said ? op->said_imm : 0;
	return !op->said;
}

static void write_on(struct sdr_conn *conn, const struct wire_write *write)
{
	struct sdr_op *op = conn->rx_op[write->write & conn->mask];

	if (!op || op->number != write->write || op->said || write->code || !write->has_imm ||
	    write->length > op->length)
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

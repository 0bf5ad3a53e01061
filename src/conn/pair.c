/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs: in a direction whose sender may use codes and whose receiver can decode, a write is two
 * messages of the QP, 2w for its data and 2w + 1 for its parity.
 *
 *	post	the data message, then the parity message. What the SDK does not take of the
 *		second (-ENOMEM; -EAGAIN of RDMA devices) is *owed*: the user's post has succeeded,
 *		and the parity message follows as soon as it is taken, before any other post. A pair
 *		of which one message is missing is granted nowhere, so nothing of it moves.
 *	end	the receiver finishes both messages at once, the sender lets go of both. Only
 *		the data message is ever aborted. A write that ended while its parity message was
 *		owed leaves that number to be posted all the same, empty, or the two ends would
 *		count differently.
 *
 * Knows nothing of what is in a parity message.
 */
#include "conn/internal.h"

/* RDMA packets have room to number many packets, or many messages. */
#define RDMA_FEW_MESSAGES 256u

/* Parity packets for which a receive, and a write, reserves address space: of each packet ... */
#define ROOM_SHARE 0.50
#define ROOM_MORE 32u  /* ... and so many */
#define ROOM_LEAST 16u /* less than that is none */

static bool wants(const struct sdr_conn *conn)
{
	return conn->attr.pair || rel_scheme_coded(&conn->params);
}

uint16_t pair_offers(const struct sdr_conn *conn)
{
	return (uint16_t)((conn->attr.no_decode ? 0 : CONN_OFFER_CAN) |
			  (wants(conn) ? CONN_OFFER_WANT : 0));
}

/* As many writes in flight as without pairs, if the QP has so many messages. */
uint32_t pair_messages(const struct sdr_conn *conn)
{
	struct sdr_ctx_info info = {.size = sizeof(info)};
	uint32_t messages = conn->attr.messages;

	if (!pair_offers(conn))
		return messages;
	(void)sdr_ctx_query(conn->net->ctx, &info);
	if (info.caps & SDR_CAP_ROCEV2 && messages <= RDMA_FEW_MESSAGES)
		return (uint32_t)u64_min(2 * messages, RDMA_FEW_MESSAGES);
	return (uint32_t)u64_min(2 * messages, SDR_MAX_MESSAGES);
}

/* A scheme that the peer cannot take is not used. */
void pair_setup(struct sdr_conn *conn)
{
	conn->tx_paired = conn->offers & CONN_OFFER_WANT && conn->qi.peer_offers & CONN_OFFER_CAN;
	conn->rx_paired = conn->offers & CONN_OFFER_CAN && conn->qi.peer_offers & CONN_OFFER_WANT;
	conn->half_at_ns = UINT64_MAX;
	if (conn->tx_paired || !rel_scheme_coded(&conn->params))
		return;
	(void)rel_scheme_parse(REL_SCHEME_DEFAULT, &conn->params, NULL, 0);
	(void)rel_scheme_name(&conn->params, conn->scheme, sizeof(conn->scheme));
}

/* ---- posting ---- */

static int owed(struct sdr_conn *conn, int err)
{
	conn->half_at_ns = sdr_now_ns(conn->net->ctx) + CONN_HALF_NS;
	return err == -ENOMEM || conn->qi.state == SDR_QP_ERROR ? err : -EAGAIN;
}

/*
 * Reserves room, once: whole packets, and fewer where the arena is nearly full. Both ends do
 * alike, whatever the scheme: that may change before the write is granted.
 */
static void room_get(struct sdr_op *op, struct arena *arena, uint32_t payload)
{
	uint64_t pkts = payload ? u64_div_up(op->length, payload) : 0;
	uint64_t room = (uint64_t)((double)pkts * ROOM_SHARE) + ROOM_MORE;

	if (op->parity || !pkts || op->foreign)
		return;
	room = u64_min(room, op->conn->qi.max_pkts);
	for (; room >= ROOM_LEAST; room /= 2) {
		if (arena_get(arena, room * payload, &op->parity))
			continue;
		op->parity_bytes = room * payload;
		return;
	}
}

static void room_put(struct sdr_op *op, struct arena *arena)
{
	if (!op->parity)
		return;
	arena_put(arena, op->parity, op->parity_bytes);
	op->parity = NULL;
	op->parity_bytes = 0;
}

void pair_tx_room_free(struct sdr_op *op)
{
	room_put(op, &op->conn->tx_arena);
}

/* What costs memory can do without. */
static bool smaller(int err, uint64_t *length)
{
	bool again = (err == -ENOMEM || err == -EMSGSIZE) && *length;

	*length = 0;
	return again;
}

/* op NULL: it has ended. */
static int tx_post(struct sdr_conn *conn, struct sdr_op *op, struct sdr_send **out)
{
	struct sdr_send_wr wr = {
		.size = sizeof(wr), .opcode = SDR_OP_WRITE, .cookie = op, .sparse = 1};
	int err;

	if (op)
		room_get(op, &conn->tx_arena, conn->qi.payload_bytes);
	wr.addr = op ? op->parity : NULL;
	wr.length = op ? op->parity_bytes : 0;
	do {
		err = sdr_send_stream_start(conn->qp, &wr, out);
	} while (err && smaller(err, &wr.length));
	if (!err && op && !wr.length)
		room_put(op, &conn->tx_arena);
	return err;
}

int pair_tx_settle(struct sdr_conn *conn)
{
	struct sdr_send *send;
	struct sdr_op *op;
	int err;

	if (!conn->tx_half)
		return 0;
	op = conn->tx_op[(conn->tx_next - 1) & conn->mask]; /* NULL: it has ended */
	err = tx_post(conn, op, &send);
	if (err)
		return owed(conn, err);
	conn->tx_half = false;
	if (op)
		op->parity_send = send;
	else
		sdr_send_release(send);
	return 0;
}

void pair_tx_posted(struct sdr_op *op)
{
	struct sdr_conn *conn = op->conn;

	conn->tx_half = conn->tx_paired;
	(void)pair_tx_settle(conn);
}

static int rx_post(struct sdr_conn *conn, struct sdr_op *op, struct sdr_recv **out)
{
	struct sdr_recv_wr wr = {.size = sizeof(wr), .cookie = op};
	int err;

	if (op)
		room_get(op, &conn->rx_arena, conn->qi.recv_payload_bytes);
	wr.addr = op ? op->parity : NULL;
	wr.length = op ? op->parity_bytes : 0;
	do {
		err = sdr_recv_post(conn->qp, &wr, out);
	} while (err && smaller(err, &wr.length));
	if (!err && op && !wr.length)
		room_put(op, &conn->rx_arena);
	return err;
}

int pair_rx_settle(struct sdr_conn *conn)
{
	struct sdr_recv *recv;
	struct sdr_op *op;
	int err;

	if (!conn->rx_half)
		return 0;
	op = conn->rx_op[(conn->rx_next - 1) & conn->mask];
	err = rx_post(conn, op, &recv);
	if (err)
		return owed(conn, err);
	conn->rx_half = false;
	if (op)
		op->parity_recv = recv;
	else
		(void)sdr_recv_give_up(recv);
	return 0;
}

void pair_rx_posted(struct sdr_op *op)
{
	struct sdr_conn *conn = op->conn;

	conn->rx_half = conn->rx_paired;
	(void)pair_rx_settle(conn);
}

void pair_service(struct sdr_conn *conn, uint64_t now)
{
	if (conn->half_at_ns > now)
		return;
	conn->half_at_ns = UINT64_MAX;
	(void)pair_tx_settle(conn);
	(void)pair_rx_settle(conn);
}

uint64_t pair_deadline(const struct sdr_conn *conn)
{
	return conn->half_at_ns;
}

/* ---- until the end ---- */

bool pair_tx_granted(const struct sdr_conn *conn, uint32_t number)
{
	uint32_t last = conn_tx_message(conn, number) + conn->tx_paired;

	if (!seq32_before(last, conn->qi.granted))
		return false;
	/* Grants may be ahead of posts. */
	return !conn->tx_half || number + 1 != conn->tx_next;
}

void pair_tx_end(struct sdr_op *op)
{
	sdr_send_release(op->parity_send);
	op->parity_send = NULL;
	room_put(op, &op->conn->tx_arena);
}

void pair_rx_end(struct sdr_op *op)
{
	/* What of it is missing nobody waits for: ended early, or not, is all the same. */
	if (op->parity_recv)
		(void)sdr_recv_complete(op->parity_recv);
	op->parity_recv = NULL;
	room_put(op, &op->conn->rx_arena);
}

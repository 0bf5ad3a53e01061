/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations: posting, testing, cancelling, deadlines. An operation ends exactly once, in
 * op_complete(). Memory for as many as may be in flight is taken when the connection is
 * made; nothing is allocated between a post and its completion.
 */
#include "conn/internal.h"
#include <stdlib.h>

int ops_create(struct sdr_conn *conn)
{
	uint32_t n = conn->mask + 1;
	struct op_pool *pool = calloc(1, sizeof(*pool) + 2 * (size_t)n * sizeof(pool->op[0]));

	conn->tx_op = calloc(2 * (size_t)n, sizeof(*conn->tx_op));
	heap_init(&conn->deadlines, &sdr_alloc_system);
	conn->pool = pool;
	if (!pool || !conn->tx_op)
		return -ENOMEM;
	conn->rx_op = conn->tx_op + n;
	pool->net = conn->net;
	pool->n = 2 * n;
	for (uint32_t i = 2 * n; i-- > 0;) {
		struct sdr_op *op = &pool->op[i];
		struct sdr_op **list = i < n ? &pool->free_tx : &pool->free_rx;

		op->pool = pool;
		op->is_recv = i >= n;
		heap_node_init(&op->timer);
		op->next = *list;
		*list = op;
	}
	return 0;
}

static void pool_free(struct op_pool *pool)
{
	struct op_pool **at = &pool->net->orphans;

	for (; *at; at = &(*at)->next) {
		if (*at == pool) {
			*at = pool->next;
			break;
		}
	}
	free(pool);
}

void ops_destroy(struct sdr_conn *conn)
{
	struct op_pool *pool = conn->pool;

	heap_fini(&conn->deadlines);
	free(conn->tx_op);
	if (!pool)
		return;
	if (!pool->used) {
		free(pool);
		return;
	}
	/* Ended operations that nobody has taken yet stay. */
	for (uint32_t i = 0; i < pool->n; i++) {
		pool->op[i].conn = NULL;
		pool->op[i].done.conn = NULL;
	}
	pool->orphan = true;
	pool->next = pool->net->orphans;
	pool->net->orphans = pool;
}

static struct sdr_op *op_get(struct sdr_conn *conn, bool is_recv)
{
	struct op_pool *pool = conn->pool;
	struct sdr_op **list = is_recv ? &pool->free_rx : &pool->free_tx;
	struct sdr_op *op = *list;

	if (!op)
		return NULL;
	*list = op->next;
	pool->used++;
	op->conn = conn;
	return op;
}

void op_put(struct sdr_op *op)
{
	struct op_pool *pool = op->pool;
	struct sdr_op **list = op->is_recv ? &pool->free_rx : &pool->free_tx;

	op->state = OP_FREE;
	op->next = *list;
	*list = op;
	if (--pool->used == 0 && pool->orphan)
		pool_free(pool);
}

void op_complete(struct sdr_op *op, int status, uint64_t length, uint32_t imm, bool has_imm)
{
	struct sdr_conn *conn = op->conn;
	struct sdr_net *net = conn->net;

	SDR_ASSERT(op->state == OP_POSTED || op->state == OP_OPEN);
	heap_remove(&conn->deadlines, &op->timer);
	op->send = NULL;
	op->recv = NULL;
	op->state = OP_DONE;
	op->done.status = status;
	op->done.length = length;
	op->done.imm = imm;
	op->done.has_imm = has_imm;
	op->done.conn_cookie = conn->cookie;
	op->done.done_ns = sdr_now_ns(net->ctx);
	if (op->is_recv) {
		conn->rx_op[op->number & conn->mask] = NULL;
		conn->rx_used--;
		conn->stats.recvs_done += status == 0;
		while (conn->rx_base != conn->rx_next && !conn->rx_op[conn->rx_base & conn->mask])
			conn->rx_base++;
		if (seq32_before(conn->rx_open, conn->rx_base))
			conn->rx_open = conn->rx_base;
	} else {
		conn->tx_op[op->number & conn->mask] = NULL;
		conn->tx_used--;
		conn->stats.writes_done += status == 0;
		while (conn->tx_base != conn->tx_next && !conn->tx_op[conn->tx_base & conn->mask])
			conn->tx_base++;
		if (seq32_before(conn->tx_open, conn->tx_base))
			conn->tx_open = conn->tx_base;
	}
	if (op->flags & SDR_OP_TEST) {
		queue_unreserve(net);
		return;
	}
	queue_put(net, op);
}

void op_give_up(struct sdr_op *op, int status)
{
	if (op->is_recv)
		recv_give_up(op, status);
	else
		send_give_up(op, status);
}

void ops_end_all(struct sdr_conn *conn, bool recvs, int status)
{
	uint32_t base = recvs ? conn->rx_base : conn->tx_base;
	uint32_t n = recvs ? conn->rx_next - base : conn->tx_next - base;
	struct sdr_op **ops = recvs ? conn->rx_op : conn->tx_op;

	for (uint32_t i = 0; i < n; i++) {
		struct sdr_op *op = ops[(base + i) & conn->mask];

		if (op)
			op_give_up(op, status);
	}
}

static struct sdr_op *timer_op(struct heap_node *node)
{
	return (struct sdr_op *)(void *)((char *)node - offsetof(struct sdr_op, timer));
}

void ops_deadlines(struct sdr_conn *conn, uint64_t now)
{
	struct heap_node *node;

	while ((node = heap_first(&conn->deadlines)) && node->key <= now)
		op_give_up(timer_op(node), -SDR_E_DEADLINE);
}

/* ---- posting ---- */

static int post_check(const struct sdr_conn *conn, const struct sdr_op_wr *wr)
{
	switch (conn->state) {
	case CONN_NEW:
	case CONN_CONNECTING:
		return -ENOTCONN;
	case CONN_UP:
		break;
	case CONN_DEAD:
	case CONN_FAILED:
		return conn->error ? conn->error : -ESHUTDOWN;
	default:
		return -ESHUTDOWN;
	}
	if (conn->peer_closed)
		return -ESHUTDOWN;
	if ((wr->length && !wr->addr) || wr->flags & ~(uint32_t)(SDR_OP_HAS_IMM | SDR_OP_TEST))
		return -EINVAL;
	return 0;
}

static int post_send(struct sdr_conn *conn, struct sdr_op *op, const struct sdr_op_wr *wr)
{
	struct sdr_send_wr swr = {
		.size = sizeof(swr),
		.opcode = wr->flags & SDR_OP_HAS_IMM ? SDR_OP_WRITE_IMM : SDR_OP_WRITE,
		.imm = announce_imm(op, wr),
		.length = wr->length,
		.addr = wr->addr,
		.mr = wr->mr,
		.cookie = op,
	};
	int err;

	/* The SDK's number may be free again before we have looked at what its write came to. */
	if (conn->tx_op[conn->tx_next & conn->mask])
		return -EAGAIN;
	err = pair_tx_settle(conn);
	if (!err)
		err = sdr_send_stream_start(conn->qp, &swr, &op->send);
	if (err)
		return err;
	op->number = conn->tx_next++;
	op->message = conn_tx_message(conn, op->number);
	conn->tx_op[op->number & conn->mask] = op;
	conn->tx_used++;
	pair_tx_posted(op);
	return 0;
}

static int post_recv(struct sdr_conn *conn, struct sdr_op *op, const struct sdr_op_wr *wr)
{
	struct sdr_recv_wr rwr = {
		.size = sizeof(rwr),
		.addr = wr->addr,
		.length = wr->length,
		.mr = wr->mr,
		.cookie = op,
	};
	int err;

	/* The QP may have more messages than we have places. */
	if (conn->rx_op[conn->rx_next & conn->mask])
		return -EAGAIN;
	err = pair_rx_settle(conn);
	if (!err)
		err = sdr_recv_post(conn->qp, &rwr, &op->recv);
	if (err)
		return err;
	op->number = conn->rx_next++;
	op->message = conn_rx_message(conn, op->number);
	conn->rx_op[op->number & conn->mask] = op;
	conn->rx_used++;
	pair_rx_posted(op);
	return 0;
}

static void op_fill(struct sdr_op *op, const struct sdr_op_wr *wr, uint64_t now)
{
	op->length = wr->length;
	op->flags = wr->flags;
	op->payload = op->pkts = 0;
	op->scan_ns = 0;
	op->addr = wr->addr;
	op->foreign = wr->mr && !sdr_mr_is_host(wr->mr);
	op->parity = NULL;
	op->parity_bytes = 0;
	op->code.code = REL_CODE_NONE;
	op->announce = op->whole = op->said = false;
	op->parity_send = NULL;
	op->parity_recv = NULL;
	op->state = OP_POSTED;
	op->done = (struct sdr_completion){
		.size = sizeof(op->done),
		.conn = op->conn,
		.conn_cookie = op->conn->cookie,
		.cookie = wr->cookie,
		.is_recv = op->is_recv,
		.imm = wr->imm,
		.posted_ns = now,
	};
}

static int post(struct sdr_conn *conn, const struct sdr_op_wr *in, bool is_recv,
		struct sdr_op **out)
{
	uint64_t now = sdr_now_ns(conn->net->ctx);
	struct sdr_op_wr wr = {0};
	struct sdr_op *op;
	int err;

	memcpy(&wr, in, u64_min(in->size, sizeof(wr)));
	err = post_check(conn, &wr);
	if (err)
		return err;
	if (!queue_reserve(conn->net))
		return -EAGAIN;
	op = op_get(conn, is_recv);
	if (!op) {
		queue_unreserve(conn->net);
		return -EAGAIN;
	}
	op_fill(op, &wr, now);
	err = is_recv ? post_recv(conn, op, &wr) : post_send(conn, op, &wr);
	/* Room in the heap may fail to be had: then the deadline is missed, not the write. */
	if (!err && wr.deadline_ns)
		(void)heap_set(&conn->deadlines, &op->timer, wr.deadline_ns, op->number);
	if (err) {
		op_put(op);
		queue_unreserve(conn->net);
		return err;
	}
	if (out)
		*out = op;
	if (!is_recv) {
		/* Granted already? Then it leaves in this call. */
		hint_on_write(conn, wr.length);
		send_open_granted(conn);
		announce_service(conn, now);
		send_pump(conn, now);
	}
	conn_schedule(conn, now);
	return 0;
}

int sdr_write_post(struct sdr_conn *conn, const struct sdr_op_wr *wr, struct sdr_op **out)
{
	int err;

	net_lock(conn->net);
	err = post(conn, wr, false, out);
	net_unlock(conn->net);
	return err;
}

int sdr_conn_recv_post(struct sdr_conn *conn, const struct sdr_op_wr *wr, struct sdr_op **out)
{
	int err;

	net_lock(conn->net);
	err = post(conn, wr, true, out);
	net_unlock(conn->net);
	return err;
}

int sdr_op_cancel(struct sdr_op *op)
{
	struct sdr_net *net = op->pool->net;
	int err = -EALREADY;

	net_lock(net);
	if (op->state == OP_POSTED || op->state == OP_OPEN) {
		struct sdr_conn *conn = op->conn;

		op_give_up(op, -ECANCELED);
		conn_schedule(conn, sdr_now_ns(net->ctx));
		err = 0;
	}
	net_unlock(net);
	return err;
}

/* ---- testing ---- */

static int op_take(struct sdr_op *op, struct sdr_completion *out)
{
	size_t size = out->size ? out->size : sizeof(*out);

	if (op->state == OP_FREE || !(op->flags & SDR_OP_TEST))
		return -EINVAL;
	if (op->state != OP_DONE)
		return 0;
	memcpy(out, &op->done, u64_min(size, sizeof(*out)));
	out->size = size;
	op_put(op);
	return 1;
}

int sdr_op_test(struct sdr_op *op, struct sdr_completion *out)
{
	struct sdr_net *net = op->pool->net;
	int got;

	net_lock(net);
	got = op_take(op, out);
	net_unlock(net);
	return got;
}

int sdr_op_wait(struct sdr_op *op, uint64_t deadline_ns, struct sdr_completion *out)
{
	struct sdr_net *net = op->pool->net;

	for (;;) {
		int got = sdr_op_test(op, out);

		if (got)
			return got;
		if (sdr_now_ns(net->ctx) >= deadline_ns)
			return -SDR_E_DEADLINE;
		if (net->threaded) {
			net_lock(net);
			if (op->state != OP_DONE)
				net_cond_wait(net, deadline_ns);
			net_unlock(net);
			continue;
		}
		if (net->simulated)
			return -ENOTSUP; /* virtual time is moved by its owner */
		got = net_sleep(net, deadline_ns);
		if (got < 0)
			return got;
	}
}

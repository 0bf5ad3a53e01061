/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A net's invariants, recomputed from scratch: those that internal.h numbers, its two queues,
 * and of each connection what rel/ and cc/ check of themselves. For tests, which call it
 * between two calls of the library. Empty in release builds.
 */
#include "conn/internal.h"

/* Operations of one direction: invariants (1) to (3) of struct sdr_conn. */
static void check_ops(const struct sdr_conn *conn, bool recvs)
{
	struct sdr_op *const *ops = recvs ? conn->rx_op : conn->tx_op;
	uint32_t base = recvs ? conn->rx_base : conn->tx_base;
	uint32_t open = recvs ? conn->rx_open : conn->tx_open;
	uint32_t next = recvs ? conn->rx_next : conn->tx_next;
	bool paired = recvs ? conn->rx_paired : conn->tx_paired;
	bool half = recvs ? conn->rx_half : conn->tx_half;
	uint32_t used = 0;

	SDR_ASSERT(paired || !half);
	SDR_ASSERT(next - base <= conn->mask + 1 && open - base <= next - base);
	for (uint32_t i = 0; i <= conn->mask; i++) {
		const struct sdr_op *op = ops[(base + i) & conn->mask];

		if (!op)
			continue;
		used++;
		SDR_ASSERT(op->number == base + i && i < next - base);
		SDR_ASSERT(op->message == op->number << paired);
		SDR_ASSERT(paired == (recvs ? op->parity_recv != NULL : op->parity_send != NULL) ||
			   (half && op->number + 1 == next));
		SDR_ASSERT(op->conn == conn && op->is_recv == recvs);
		SDR_ASSERT(op->state == OP_POSTED || op->state == OP_OPEN);
		SDR_ASSERT(recvs ? op->recv != NULL : op->send != NULL);
	}
	SDR_ASSERT(used == (recvs ? conn->rx_used : conn->tx_used));
	SDR_ASSERT(base == next || ops[base & conn->mask]);
	(void)open;
	(void)used;
	(void)paired;
	(void)half;
}

/* How many operations of a pool are not free. */
static uint32_t pool_used(const struct op_pool *pool)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < pool->n; i++)
		n += pool->op[i].state != OP_FREE;
	return n;
}

/* What the operations of one direction have of their arena, in its granules. */
static uint64_t parity_sum(const struct sdr_conn *conn, bool recvs)
{
	struct sdr_op *const *ops = recvs ? conn->rx_op : conn->tx_op;
	uint64_t sum = 0;

	for (uint32_t i = 0; i <= conn->mask; i++) {
		if (ops[i])
			sum += u64_div_up(ops[i]->parity_bytes, ARENA_GRANULE) * ARENA_GRANULE;
	}
	return sum;
}

static void check_conn(const struct sdr_conn *conn)
{
	check_ops(conn, false);
	check_ops(conn, true);
	SDR_ASSERT(pool_used(conn->pool) == conn->pool->used && !conn->pool->orphan);
	SDR_ASSERT(!conn_is_open(conn) || conn->rel_ready);
	if (conn->state == CONN_CLOSED || conn->state == CONN_FAILED || conn->state == CONN_DEAD)
		SDR_ASSERT(conn->tx_used == 0 && conn->rx_used == 0);
	heap_check(&conn->deadlines);
	if (!conn->rel_ready)
		return;
	rel_tx_check(&conn->tx);
	rel_rx_check(&conn->rx);
	arena_check(&conn->tx_arena);
	arena_check(&conn->rx_arena);
	SDR_ASSERT(parity_sum(conn, false) == conn->tx_arena.used_bytes);
	SDR_ASSERT(parity_sum(conn, true) == conn->rx_arena.used_bytes);
	for (uint32_t c = 0; c < conn->channels; c++)
		cc_check(&conn->ch[c].cc);
}

static void check_queue(const struct sdr_net *net)
{
	const struct event_node *last = NULL;

	SDR_ASSERT(net->cq_len + net->cq_reserved <= net->cq_cap);
	for (uint32_t i = 0; i < net->cq_len; i++) {
		const struct sdr_op *op = net->cq[((uint64_t)net->cq_head + i) % net->cq_cap];

		SDR_ASSERT(op->state == OP_DONE && !(op->flags & SDR_OP_TEST));
		(void)op;
	}
	for (const struct event_node *node = net->ev_head; node; node = node->next) {
		SDR_ASSERT(node->queued);
		last = node;
	}
	SDR_ASSERT(net->ev_tail == last);
	(void)last;
}

void conn_net_check(const struct sdr_net *net)
{
	uint32_t open = 0;

	heap_check(&net->timers);
	check_queue(net);
	for (const struct sdr_conn *conn = net->conns; conn; conn = conn->next) {
		SDR_ASSERT(conn->net == net && (!conn->next || conn->next->prev == conn));
		check_conn(conn);
		open += conn->tx_used + conn->rx_used;
	}
	for (const struct op_pool *pool = net->orphans; pool; pool = pool->next)
		SDR_ASSERT(pool->orphan && pool->used && pool_used(pool) == pool->used);
	SDR_ASSERT(net->cq_reserved == open);
	(void)open;
}

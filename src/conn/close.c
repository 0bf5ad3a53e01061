/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ending in order.
 *
 *	| done_below 4 | reason 4 |   CLOSE and CLOSE_ECHO, big-endian
 *
 * CLOSE says: my writes have ended, I post nothing more. It is repeated with backoff until
 * its echo comes, and goes over the handshake's TCP too. Whoever gets it ends its receives
 * (nothing can come any more), finishes the writes that the peer's receives still wait
 * for, and echoes. A peer that is silent instead has gone: all it was owed was
 * acknowledged, so that is a clean end too. Should it speak after all (its NAT gave it another
 * address, which nobody knew), CLOSE is said again.
 */
#include "conn/internal.h"

#define CLOSE_SILENCE_NS NS_PER_S
#define CLOSE_BACKOFF_MAX_NS NS_PER_S

static uint64_t close_rto_ns(const struct sdr_conn *conn)
{
	return rel_tx_rto_ns(&conn->tx);
}

static void close_send(struct sdr_conn *conn, uint8_t type)
{
	uint8_t body[8];

	put_be32(body, conn_rx_message(conn, conn->rx_base));
	put_be32(body + 4, 0);
	(void)sdr_ctrl_send(conn->qp, type, body, sizeof(body), SDR_CHANNEL_ANY);
}

static void closed(struct sdr_conn *conn)
{
	conn_state_set(conn, CONN_CLOSED);
	ops_end_all(conn, false, -SDR_E_CLOSED);
	ops_end_all(conn, true, -SDR_E_CLOSED);
	event_put(conn, EVENT_ENDED, SDR_EV_CLOSED, 0,
		  conn->peer_closed ? "%s closed the connection" : "connection to %s closed",
		  conn->target);
}

static void echo(struct sdr_conn *conn)
{
	close_send(conn, CONN_CTRL_CLOSE_ECHO);
	hs_say_close(conn, true);
}

void close_on_close(struct sdr_conn *conn)
{
	if (conn->state == CONN_CLOSED) {
		conn->close_unheard = false;
		echo(conn); /* it missed the first */
		return;
	}
	if (conn->peer_closed || !conn_is_open(conn))
		return;
	conn->peer_closed = true;
	if (conn->state != CONN_CLOSING)
		conn->close_ns = sdr_now_ns(conn->net->ctx);
	conn->service_again = true;
}

void close_on_echo(struct sdr_conn *conn)
{
	conn->close_unheard = false;
	if (conn->state == CONN_CLOSING)
		closed(conn);
}

/* The peer posts no more receives: what it has not granted by now it never will. */
static void ungranted_end(struct sdr_conn *conn)
{
	for (uint32_t n = conn->tx_open; n != conn->tx_next; n++) {
		struct sdr_op *op = conn->tx_op[n & conn->mask];

		if (op && op->number == n)
			op_give_up(op, -SDR_E_CLOSED);
	}
	conn->tx_open = conn->tx_next; /* and nothing is posted any more */
}

static uint64_t grace_ns(const struct sdr_conn *conn)
{
	return conn->close_ns + u64_max(3 * conn_rtt_ns(conn), 10 * NS_PER_MS);
}

static void on_peer_closed(struct sdr_conn *conn, uint64_t now)
{
	if (!conn->peer_closed_done) {
		conn->peer_closed_done = true;
		ops_end_all(conn, true, -SDR_E_CLOSED);
	}
	if (conn->tx_used && now >= grace_ns(conn))
		ungranted_end(conn);
	if (conn->tx_used)
		return;
	echo(conn);
	closed(conn);
}

static bool only_ungranted(const struct sdr_conn *conn)
{
	return conn->tx_used && conn->tx_base == conn->tx_open;
}

/*
 * Writes wait for receives that the peer may never post (it may be draining too, and waits
 * for ours): given up after as long as a silent peer would be.
 */
static void draining(struct sdr_conn *conn, uint64_t now)
{
	if (!conn->drain_ns || conn->drain_done != conn->stats.writes_done ||
	    !only_ungranted(conn)) {
		conn->drain_ns = now;
		conn->drain_done = conn->stats.writes_done;
	} else if (now - conn->drain_ns >= conn->attr.dead_after_ns) {
		ungranted_end(conn);
	}
}

static void closing(struct sdr_conn *conn, uint64_t now)
{
	uint64_t silence = u64_min(conn->qi.heard_age_ns, now - conn->close_ns);

	if (silence >= u64_max(CLOSE_SILENCE_NS, 3 * close_rto_ns(conn))) {
		conn->close_unheard = true;
		conn->close_at_ns = now;
		closed(conn);
		return;
	}
	if (now < conn->close_at_ns)
		return;
	close_send(conn, CONN_CTRL_CLOSE);
	conn->close_at_ns = now + conn->close_gap_ns;
	conn->close_gap_ns = u64_min(2 * conn->close_gap_ns, CLOSE_BACKOFF_MAX_NS);
}

void close_service(struct sdr_conn *conn, uint64_t now)
{
	if (conn->peer_closed) {
		on_peer_closed(conn, now);
		return;
	}
	if (conn->state == CONN_DRAIN)
		draining(conn, now);
	if (conn->state == CONN_DRAIN && !conn->tx_used) {
		conn_state_set(conn, CONN_CLOSING);
		conn->close_ns = conn->close_at_ns = now;
		conn->close_gap_ns = u64_min(close_rto_ns(conn), CLOSE_BACKOFF_MAX_NS);
		hs_say_close(conn, false);
	}
	if (conn->state == CONN_CLOSING)
		closing(conn, now);
}

void close_again(struct sdr_conn *conn, uint64_t now)
{
	if (!conn->close_unheard || conn->qi.heard_age_ns >= now - conn->close_at_ns)
		return;
	conn->close_at_ns = now;
	close_send(conn, CONN_CTRL_CLOSE);
}

uint64_t close_deadline(const struct sdr_conn *conn)
{
	uint64_t limit;

	if (conn->peer_closed)
		return conn->tx_open != conn->tx_next ? grace_ns(conn) : UINT64_MAX;
	if (conn->state == CONN_DRAIN && only_ungranted(conn) && conn->drain_ns)
		return conn->drain_ns + conn->attr.dead_after_ns;
	if (conn->state != CONN_CLOSING)
		return UINT64_MAX;
	limit = conn->close_ns + u64_max(CLOSE_SILENCE_NS, 3 * close_rto_ns(conn));
	/* Past the limit it is the peer's voice that keeps us: asked again with each CLOSE. */
	return sdr_now_ns(conn->net->ctx) < limit ? u64_min(conn->close_at_ns, limit)
						  : conn->close_at_ns;
}

void close_last_words(struct sdr_conn *conn)
{
	/* Nobody will be here to echo again: say it once more. */
	if (conn->peer_closed)
		close_send(conn, CONN_CTRL_CLOSE_ECHO);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alive or dead (PROTOCOL: Accounting, loss, time). Silence counts only against a PING
 * that is not answered: *stalled* after max(3 RTT, 100 ms), dead after dead_after_ns. Dead
 * at once on RESET; and, confirmed by a silent round trip, on the end of the handshake's
 * TCP or "port unreachable".
 */
#include "conn/internal.h"

static uint64_t stall_ns(const struct sdr_conn *conn)
{
	return u64_max(3 * conn_rtt_ns(conn), CONN_STALL_MIN_NS);
}

/* Long enough for several PINGs on a path that loses some. */
static uint64_t confirm_ns(const struct sdr_conn *conn)
{
	return u64_max(4 * conn_rtt_ns(conn), 3 * CONN_STALL_MIN_NS);
}

/* What was under way when the suspicion came may still arrive, or wait in a socket. */
static uint64_t under_way_ns(const struct sdr_conn *conn)
{
	uint64_t rtt = conn->qi.rtt_min_ns ? conn->qi.rtt_min_ns : conn_rtt_ns(conn);

	return u64_max(rtt, CONN_STALL_MIN_NS) / 2;
}

/* How long the peer has owed us an answer. */
static uint64_t silence_ns(const struct sdr_conn *conn, uint64_t now)
{
	return u64_min(conn->qi.unanswered_ns, u64_sub_floor(now, conn->alive_floor_ns));
}

void alive_suspect(struct sdr_conn *conn, const char *text)
{
	if (!conn_is_open(conn) || conn->suspect_ns)
		return;
	conn->suspect_ns = sdr_now_ns(conn->net->ctx);
	conn->suspect_text = text;
	conn->suspect_asked = false;
	(void)sdr_qp_ping(conn->qp);
	conn_schedule(conn, conn->suspect_ns);
}

static void ask(struct sdr_conn *conn, uint64_t now)
{
	uint64_t rto = rel_tx_rto_ns(&conn->tx);

	/* Work is waiting and nothing was heard: silence must have a PING to count against. */
	if (!conn->tx_used && !conn->rx_used)
		return;
	if (conn->qi.unanswered_ns || conn->qi.heard_age_ns < rto || now - conn->ask_ns < rto)
		return;
	if (!conn->tx_used && !rel_rx_high(&conn->rx, conn_rx_message(conn, conn->rx_base)))
		return; /* waiting for the peer to begin is no work */
	conn->ask_ns = now;
	(void)sdr_qp_ping(conn->qp);
}

static void tell(struct sdr_conn *conn, uint64_t silence)
{
	char text[UNITS_TEXT], limit[UNITS_TEXT];

	if (!conn->stalled && silence >= stall_ns(conn)) {
		conn->stalled = true;
		event_put(conn, EVENT_PATH, SDR_EV_STALLED, 0,
			  "nothing heard from %s for %s; giving up after %s", conn->target,
			  units_time_text(text, silence),
			  units_time_text(limit, conn->attr.dead_after_ns));
	} else if (conn->stalled && silence < stall_ns(conn)) {
		conn->stalled = false;
		rel_rx_kick(&conn->rx); /* an ACK ends the other end's waiting too */
		event_put(conn, EVENT_PATH, SDR_EV_RECOVERED, 0, "%s answers again", conn->target);
	}
}

static bool confirm(struct sdr_conn *conn, uint64_t now)
{
	uint64_t since;

	if (conn->qi.refused && !conn->suspect_ns)
		alive_suspect(conn, "its host says that nobody listens on its UDP port any more");
	if (!conn->suspect_ns)
		return false;
	since = u64_max(conn->suspect_ns, conn->alive_floor_ns);
	/* Packets under way prove nothing: what is heard later does. */
	if (now - conn->suspect_ns > under_way_ns(conn)) {
		if (conn->qi.heard_age_ns < now - conn->suspect_ns - under_way_ns(conn)) {
			conn->suspect_ns = 0; /* it speaks: whatever ended, it was not the peer */
			return false;
		}
		if (!conn->suspect_asked)
			(void)sdr_qp_ping(conn->qp); /* the first may have been answered before */
		conn->suspect_asked = true;
	}
	if (now - since < confirm_ns(conn))
		return false;
	conn_die(conn, -SDR_E_DEAD, "%s is gone: %s", conn->target, conn->suspect_text);
	return true;
}

static bool breaker_open(struct sdr_conn *conn)
{
	bool open = false;

	for (uint32_t c = 0; c < conn->channels; c++) {
		if (conn->ch[c].suspect)
			continue;
		if (cc_breaker(&conn->ch[c].cc) != CC_BREAKER_OPEN)
			return false;
		open = true;
	}
	return open;
}

void alive_service(struct sdr_conn *conn, uint64_t now)
{
	uint64_t silence = silence_ns(conn, now);
	char text[UNITS_TEXT];

	if (conn->qi.state == SDR_QP_ERROR) {
		conn_die(conn, conn->qi.error, "%s reset the connection", conn->target);
		return;
	}
	ask(conn, now);
	tell(conn, silence);
	if (confirm(conn, now))
		return;
	if (silence >= conn->attr.dead_after_ns) {
		conn_die(conn, -SDR_E_DEAD,
			 "%s has not answered for %s: the host is down or the path is broken",
			 conn->target, units_time_text(text, silence));
	} else if (breaker_open(conn)) {
		conn_die(conn, -SDR_E_BREAKER,
			 "more than half of what is sent to %s is lost: the path does not carry "
			 "this rate; lower it",
			 conn->target);
	}
}

uint64_t alive_deadline(const struct sdr_conn *conn, uint64_t now)
{
	uint64_t at = UINT64_MAX, silence;

	if (conn->suspect_ns)
		at = u64_max(conn->suspect_ns, conn->alive_floor_ns) + confirm_ns(conn);
	if (conn->suspect_ns && !conn->suspect_asked)
		at = u64_min(at, conn->suspect_ns + under_way_ns(conn) + 1);
	if (conn->qi.unanswered_ns) {
		silence = silence_ns(conn, now);
		if (!conn->stalled)
			at = u64_min(at, now + u64_sub_floor(stall_ns(conn), silence));
		at = u64_min(at, now + u64_sub_floor(conn->attr.dead_after_ns, silence));
	} else if (conn->tx_used) {
		/* When ask() would. */
		silence = u64_sub_floor(now, u64_min(conn->qi.heard_age_ns, now));
		at = u64_min(at, u64_max(now + 1, u64_max(silence, conn->ask_ns) +
							  rel_tx_rto_ns(&conn->tx)));
	}
	return at;
}

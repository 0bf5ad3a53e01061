/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ACKs out (what rel/ puts into them, on the best channels in turn) and in (what they say
 * goes to rel/, and what rel/ makes of it to the congestion control of each channel).
 */
#include "conn/internal.h"

/* ---- out ---- */

static void ack_feed(struct sdr_conn *conn, const struct rel_rx_want *want)
{
	const struct sdr_op *op = conn_rx_op(conn, want->message);
	uint64_t words[REL_RX_WANT_WORDS];
	struct sdr_recv_info info = {.size = sizeof(info)};
	uint64_t first = (uint64_t)want->first_word * REL_UNIT;
	uint64_t n = (uint64_t)want->nwords * REL_UNIT;

	SDR_ASSERT(want->nwords <= REL_RX_WANT_WORDS);
	memset(words, 0, want->nwords * sizeof(words[0]));
	if (op && op->message == want->message) {
		(void)sdr_recv_query(op->recv, &info);
		if (first < info.pkts)
			(void)sdr_recv_pkts_get(op->recv, first, u64_min(n, info.pkts - first),
						words);
	}
	(void)rel_rx_feed(&conn->rx, want->message, want->first_word, words, want->nwords);
}

/* ACKs alternate over the two channels that heard something last. */
static uint32_t ack_channel(struct sdr_conn *conn)
{
	uint32_t best = SDR_CHANNEL_ANY, second = SDR_CHANNEL_ANY;

	if (conn->channels == 1)
		return SDR_CHANNEL_ANY;
	for (uint32_t c = 0; c < conn->channels; c++) {
		if (!(conn->fact[c].psn_valid || conn->fact[c].packet_valid) || !conn->ch[c].up)
			continue;
		if (best == SDR_CHANNEL_ANY || conn->fact[c].age_ns < conn->fact[best].age_ns) {
			second = best;
			best = c;
		} else if (second == SDR_CHANNEL_ANY ||
			   conn->fact[c].age_ns < conn->fact[second].age_ns) {
			second = c;
		}
	}
	return conn->ack_turn++ % 2 && second != SDR_CHANNEL_ANY ? second : best;
}

static void ack_send(struct sdr_conn *conn, uint64_t now)
{
	uint8_t body[SDR_MAX_CTRL_BYTES];
	struct rel_rx_want want;
	int len;

	recv_facts(conn, now);
	if (conn->look_parity) {
		/* What these facts count must not be told as lacking. */
		recv_ready(conn, now);
		decode_parity_all(conn);
		decode_service(conn);
	}
	conn->acked_ns = now;
	rel_rx_made_good(&conn->rx, conn->stats.rx_decoded_pkts);
	if (rel_rx_ack_begin(&conn->rx, now, conn_rx_message(conn, conn->rx_base), conn->fact,
			     conn->channels, body, u64_min(sizeof(body), conn->qi.max_ctrl_bytes)))
		return;
	while (rel_rx_scan(&conn->rx, &want))
		ack_feed(conn, &want);
	len = rel_rx_ack_end(&conn->rx);
	if (len > 0 &&
	    !sdr_ctrl_send(conn->qp, CONN_CTRL_ACK, body, (size_t)len, ack_channel(conn)))
		conn->stats.acks_sent++;
}

/*
 * Request and response on a short path: the peer that has our answer does not wait for the
 * ACK too, so that need not go with every answer.
 */
uint64_t ack_deadline(const struct sdr_conn *conn, uint64_t now)
{
	uint64_t at = rel_rx_ack_deadline(&conn->rx, now);

	if (at != UINT64_MAX && conn->sent_ns >= conn->arrived_ns)
		at = u64_max(at, conn->acked_ns + CONN_ACK_HOLD_NS);
	return at;
}

void ack_service(struct sdr_conn *conn, uint64_t now)
{
	if (rel_rx_ack_due(&conn->rx, now) && ack_deadline(conn, now) <= now)
		ack_send(conn, now);
}

/* ---- in ---- */

static uint64_t scaled(uint64_t pkts, double bytes)
{
	return (uint64_t)((double)pkts * bytes);
}

static void channel_feed(struct sdr_conn *conn, uint32_t c, const struct rel_channel_result *r,
			 uint64_t now)
{
	struct conn_channel *ch = &conn->ch[c];
	struct cc_sample s = {
		.now_ns = now,
		.rtt_ns = r->rtt_sample_ns,
		.delivered_bytes = scaled(r->delivered_pkts, ch->pkt_bytes),
		.lost_bytes = scaled(r->lost_pkts, ch->pkt_bytes),
		.spurious_bytes = scaled(r->spurious_pkts, ch->pkt_bytes),
		.ce_bytes = scaled(r->ce_pkts, ch->pkt_bytes),
		.host_drops = r->host_drops,
		.inflight_bytes = scaled(rel_tx_inflight(&conn->tx, c), ch->pkt_bytes),
		.rate_bytes = scaled(r->rate_pkts, ch->pkt_bytes),
		.rate_interval_ns = r->rate_interval_ns,
		/* These two only count rounds: any unit does, if it never changes. */
		.prior_delivered_bytes = r->prior_delivered_pkts * ch->cc.params.payload_bytes,
		.total_delivered_bytes = r->total_delivered_pkts * ch->cc.params.payload_bytes,
		.app_limited = r->app_limited,
	};

	if (r->fresh) {
		ch->waiting_since_ns = rel_tx_inflight(&conn->tx, c) ? now : 0;
		if (ch->suspect) {
			ch->suspect = false;
			if (conn->attr.rate_bps)
				send_cc_setup(conn);
		}
	}
	if (r->fresh || r->lost_pkts || r->spurious_pkts || r->delivered_pkts)
		cc_ack(&ch->cc, &s);
}

void ack_feed_cc(struct sdr_conn *conn, const struct rel_ack_result *result, uint64_t now)
{
	for (uint32_t c = 0; c < conn->channels; c++)
		channel_feed(conn, c, &result->ch[c], now);
}

/* `now` is when it came, so that what we were late to read makes no round trip longer. */
void ack_on(struct sdr_conn *conn, const uint8_t *body, size_t len, uint64_t now)
{
	now = u64_max(now, conn->last_ack_ns);
	if (rel_tx_ack(&conn->tx, body, len, now, &conn->result))
		return; /* counted there */
	conn->last_ack_ns = now;
	ack_feed_cc(conn, &conn->result, now);
	parity_look(conn, now);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a connection knows, and what of it can be changed while it runs.
 */
#include "conn/internal.h"
#include "conn/scheme_api.h"
#include <stdio.h>

static void info_paths(const struct sdr_conn *conn, struct sdr_conn_info *out)
{
	out->rate_found = 1;
	for (uint32_t c = 0; c < conn->channels; c++) {
		const struct conn_channel *ch = &conn->ch[c];

		out->cwnd_bytes += cc_window_bytes(&ch->cc);
		out->pacing_bps += cc_pacing_bps(&ch->cc);
		out->delivered_bps += cc_bottleneck_bps(&ch->cc);
		out->inflight_bytes +=
			(uint64_t)((double)rel_tx_inflight(&conn->tx, c) * ch->pkt_bytes);
		out->peer_host_drops += conn->tx.ch[c].host_drops;
		if (!conn->attr.rate_bps && !ch->suspect && ch->cc.u.grow.state != CC_GROW_HOLD)
			out->rate_found = 0;
	}
}

/* Bytes of the receives that are not complete yet, as far as they have no hole. */
static uint64_t open_bytes(const struct sdr_conn *conn)
{
	uint64_t sum = 0;

	for (uint32_t n = conn->rx_base; seq32_before(n, conn->rx_open); n++) {
		const struct sdr_op *op = conn->rx_op[n & conn->mask];

		if (op)
			sum += u64_min(op->length, (uint64_t)rel_rx_cum(&conn->rx, op->message) *
							   conn->qi.recv_payload_bytes);
	}
	return sum;
}

static void info_rel(const struct sdr_conn *conn, struct sdr_conn_info *out)
{
	const struct rel_tx_stats *tx = &conn->tx.stats;

	out->rtt_ns = conn_rtt_ns(conn);
	out->rtt_min_ns = rel_rtt_min_ns(&conn->tx.rtt);
	if (!out->rtt_min_ns)
		out->rtt_min_ns = conn->qi.rtt_min_ns;
	out->rtt_var_ns = conn->tx.rtt.variance_ns;
	out->rto_ns = rel_tx_rto_ns(&conn->tx);
	out->tx_data_bytes = conn->stats.tx_data_bytes;
	out->tx_resent_bytes = conn->stats.tx_resent_bytes;
	out->tx_resent_pkts = tx->resent_pkts;
	out->tx_pkts = tx->sent_pkts;
	out->tx_lost_pkts = tx->lost_pkts;
	out->tx_spurious_pkts = tx->spurious_pkts;
	out->tx_probes = tx->probes;
	out->acks_received = tx->acks;
	out->rx_data_bytes = conn->stats.rx_done_bytes + open_bytes(conn);
}

static void info_codes(const struct sdr_conn *conn, struct sdr_conn_info *out)
{
	const struct rel_tx_stats *tx = &conn->tx.stats;
	struct rel_tx_loss path;

	rel_tx_loss(&conn->tx, &path);
	out->tx_passed_pkts = path.passed_pkts;
	out->tx_arrived_pkts = path.arrived_pkts;
	out->paired = conn->tx_paired;
	out->recvs_paired = conn->rx_paired;
	out->tx_parity_bytes = conn->stats.tx_parity_bytes;
	out->tx_parity_pkts = tx->parity_pkts;
	out->tx_repair_pkts = tx->repair_pkts;
	out->tx_copy_pkts = tx->copies_pkts;
	out->tx_covered_pkts = tx->covered_pkts;
	out->tx_recovered_pkts = tx->recovered_pkts;
	out->tx_uncovered_pkts = tx->uncovered_pkts;
	out->tx_failed_blocks = tx->failed_blocks;
	out->writes_coded = conn->stats.writes_coded;
	out->writes_no_room = conn->stats.writes_no_room;
	out->rx_decoded_pkts = conn->stats.rx_decoded_pkts;
	out->rx_decoded_blocks = conn->stats.rx_decoded_blocks;
	out->parity_bytes = conn->tx_arena.used_bytes + conn->rx_arena.used_bytes;
}

static void info_choice(const struct sdr_conn *conn, struct sdr_conn_info *out)
{
	rel_est_get(&conn->choice.est, &out->path_loss, &out->path_burst_pkts);
	out->decisions = conn->choice.decisions;
	(void)rel_scheme_name(&conn->last_scheme, out->write_scheme, sizeof(out->write_scheme));
	_Static_assert(sizeof(out->why) >= sizeof(conn->choice.why), "said in full");
	(void)snprintf(out->why, sizeof(out->why), "%s", conn->choice.why);
}

static void info_channels(const struct sdr_conn *conn, struct sdr_conn_info *out)
{
	for (uint32_t c = 0; c < conn->channels; c++) {
		struct sdr_channel_facts facts = {.size = sizeof(facts)};

		if (sdr_channel_facts_get(conn->qp, c, &facts))
			continue;
		out->rx_pkts += facts.received_pkts;
		out->rx_duplicate_pkts += facts.duplicate_pkts;
		out->rx_late_pkts += facts.late_pkts;
		out->rx_reordered_pkts += facts.reordered_pkts;
		out->host_drops += facts.host_drops;
		if (!out->peer[0])
			(void)snprintf(out->peer, sizeof(out->peer), "%s", facts.peer);
	}
}

int sdr_conn_query(const struct sdr_conn *conn, struct sdr_conn_info *info)
{
	struct sdr_conn_info out = {.size = info->size, .error = conn->error};
	struct sdr_qp_info qi = {.size = sizeof(qi)};

	net_lock(conn->net);
	(void)sdr_qp_query(conn->qp, &qi);
	(void)snprintf(out.scheme, sizeof(out.scheme), "%s", conn->scheme);
	switch (conn->state) {
	case CONN_NEW:
		out.state = SDR_QP_INIT;
		break;
	case CONN_CONNECTING:
		out.state = SDR_QP_CONNECTING;
		break;
	case CONN_UP:
		out.state = SDR_QP_CONNECTED;
		break;
	default:
		out.state = SDR_QP_ERROR;
		break;
	}
	out.channels = qi.channels;
	out.chunk_pkts = qi.chunk_pkts;
	out.payload_bytes = qi.payload_bytes;
	out.heard_age_ns = qi.heard_age_ns;
	out.acks_sent = conn->stats.acks_sent;
	out.writes_done = conn->stats.writes_done;
	out.recvs_done = conn->stats.recvs_done;
	if (conn->rel_ready) {
		info_rel(conn, &out);
		info_paths(conn, &out);
		info_channels(conn, &out);
		info_codes(conn, &out);
		info_choice(conn, &out);
	}
	net_unlock(conn->net);
	memcpy(info, &out, u64_min(info->size, sizeof(out)));
	return 0;
}

int sdr_conn_scheme_set(struct sdr_conn *conn, const struct sdr_scheme *scheme)
{
	struct rel_params params;
	int err = scheme_to_params(scheme, &params);

	if (err)
		return err;
	net_lock(conn->net);
	err = parity_scheme_set(conn, &params);
	conn_schedule(conn, sdr_now_ns(conn->net->ctx));
	net_unlock(conn->net);
	return err;
}

int sdr_conn_rate_set(struct sdr_conn *conn, uint64_t rate_bps)
{
	net_lock(conn->net);
	conn->attr.rate_bps = rate_bps;
	if (conn->rel_ready) {
		send_cc_setup(conn);
		if (conn_is_open(conn))
			send_pump(conn, sdr_now_ns(conn->net->ctx));
	}
	conn_schedule(conn, sdr_now_ns(conn->net->ctx));
	net_unlock(conn->net);
	return 0;
}

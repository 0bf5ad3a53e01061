/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes. rel/ says which packets should go, cc/ how many and how fast on each channel,
 * the SDK sends them; a write ends when the SDK says that its receiver has finished it.
 *
 * Channels take turns by trains. Each has its window and pacer, so a channel gets what it
 * delivers; one that was silent for RTOs while others were not is a *suspect* and gets one
 * small train at growing intervals until it answers.
 */
#include "conn/internal.h"

#define SUSPECT_PKTS 2u
#define SUSPECT_RETRY_MAX_NS NS_PER_S

/* ---- setting up ---- */

static uint32_t channels_live(const struct sdr_conn *conn)
{
	uint32_t n = 0;

	for (uint32_t c = 0; c < conn->channels; c++)
		n += !conn->ch[c].suspect;
	return n ? n : conn->channels;
}

static void channel_cc_setup(struct sdr_conn *conn, uint32_t c)
{
	struct conn_channel *ch = &conn->ch[c];
	uint64_t rate = conn->attr.rate_bps;
	struct cc_params params = {
		.payload_bytes = conn->qi.payload_bytes ? conn->qi.payload_bytes : 1024,
		.rtt_ns = conn_rtt_ns(conn),
	};

	params.rate_bps = rate / (ch->suspect ? conn->channels : channels_live(conn));
	if (rate && !params.rate_bps)
		params.rate_bps = 1;
	(void)cc_init(&ch->cc, rate ? "fixed" : "grow", &params);
	if (ch->pkt_bytes <= 0)
		ch->pkt_bytes = params.payload_bytes;
}

/* The congestion control of each channel; a given rate is shared by those that work. */
void send_cc_setup(struct sdr_conn *conn)
{
	for (uint32_t c = 0; c < conn->channels; c++)
		channel_cc_setup(conn, c);
}

void send_cc_fresh(struct sdr_conn *conn, uint32_t c)
{
	if (!conn->ch[c].trains_seen)
		channel_cc_setup(conn, c);
}

int send_setup(struct sdr_conn *conn)
{
	struct rel_tx_params params = {.scheme = conn->params, .channels = conn->channels};
	int err = rel_tx_init(&conn->tx, &params, &sdr_alloc_system);
	uint64_t now = sdr_now_ns(conn->net->ctx);

	if (err)
		return err;
	for (uint32_t c = 0; c < conn->channels; c++)
		conn->ch[c].tokens_ns = now;
	conn->pace_ns = conn->announce_at_ns = UINT64_MAX;
	send_cc_setup(conn);
	return 0;
}

/* ---- endings ---- */

static void write_end(struct sdr_op *op, int status)
{
	struct sdr_conn *conn = op->conn;

	rel_tx_close(&conn->tx, op->message);
	sdr_send_release(op->send);
	pair_tx_end(op);
	op_complete(op, status, op->length, 0, false);
}

/* Unless the receiver has finished it, and nobody has looked yet. */
void send_give_up(struct sdr_op *op, int status)
{
	struct sdr_send_info info = {.size = sizeof(info)};

	(void)sdr_send_query(op->send, &info);
	if (info.remote_done)
		status = info.remote_early ? -SDR_E_EARLY : 0;
	else
		(void)sdr_send_cancel(op->send);
	write_end(op, status);
}

/* Has the receiver finished it, or the SDK refused it? True if it ended here. */
static bool write_reap(struct sdr_op *op)
{
	struct sdr_send_info info = {.size = sizeof(info)};
	int err = sdr_send_poll(op->send);

	if (!err)
		return false;
	if (err < 0) {
		if (op->conn->qi.state == SDR_QP_ERROR)
			return false; /* alive.c tells what happened to the connection */
		write_end(op, err);
		return true;
	}
	(void)sdr_send_query(op->send, &info);
	if (!info.remote_done)
		return false;
	write_end(op, info.remote_early ? -SDR_E_EARLY : 0);
	return true;
}

/* The head as far as it goes, and some of those behind it in turn. */
static void writes_reap(struct sdr_conn *conn)
{
	uint32_t n;

	while (conn->tx_base != conn->tx_next) {
		if (!write_reap(conn->tx_op[conn->tx_base & conn->mask]))
			break;
	}
	n = conn->tx_open - conn->tx_base;
	if (conn->reap_at - conn->tx_base >= n)
		conn->reap_at = conn->tx_base;
	for (uint32_t i = 0; i < CONN_REAP_MAX && i < n; i++) {
		struct sdr_op *op = conn->tx_op[conn->reap_at++ & conn->mask];

		if (op)
			(void)write_reap(op);
		if (conn->reap_at == conn->tx_open)
			conn->reap_at = conn->tx_base;
	}
}

/* ---- grants ---- */

/* 1: go on with the next; 0: this one must wait. */
static int write_open(struct sdr_op *op)
{
	struct sdr_send_info info = {.size = sizeof(info)};

	(void)sdr_send_query(op->send, &info);
	if (!info.pkts)
		return write_reap(op);
	op->payload = info.payload_bytes;
	op->pkts = info.pkts;
	if (parity_open(op))
		return 0;
	op->state = OP_OPEN;
	announce_open(op);
	return 1;
}

void send_open_granted(struct sdr_conn *conn)
{
	if (!parity_scheme_apply(conn))
		return;
	while (conn->tx_open != conn->tx_next && pair_tx_granted(conn, conn->tx_open)) {
		struct sdr_op *op = conn->tx_op[conn->tx_open & conn->mask];
		uint32_t number = conn->tx_open;

		if (op && !write_open(op))
			return;
		/* Ending it may have moved the frontier already. */
		if (conn->tx_open == number)
			conn->tx_open++;
	}
}

/* ---- window and pacer ---- */

static double rate_bytes_per_ns(const struct conn_channel *ch)
{
	return (double)cc_pacing_bps(&ch->cc) / 8e9;
}

/*
 * A host that wakes us up late does not make the path slower: what the pacer owes is sent
 * at once then, up to CONN_BURST_MOST_NS of the rate. Who had nothing to send is owed little:
 * that was no lateness. What the host's lateness kept back is no sign of a slow path either, or
 * a rate that fell once would fall for ever.
 */
static void tokens_refill(struct sdr_conn *conn, uint32_t c, double rate, double quantum, bool idle,
			  uint64_t now)
{
	struct conn_channel *ch = &conn->ch[c];
	uint64_t gap = u64_sub_floor(now, ch->tokens_ns);
	bool dry = ch->dry || !ch->tokens_ns;
	uint64_t late = u64_min(u64_max(gap, conn_rtt_ns(conn) / 8), CONN_BURST_MOST_NS);
	double most = rate * (double)(dry ? CONN_BURST_NS : u64_max(late, CONN_BURST_NS));

	if (most < 2 * quantum)
		most = 2 * quantum;
	ch->tokens_bytes += rate * (double)gap;
	ch->tokens_ns = now;
	ch->dry = false;
	/* More was owed than is sent at once, or all that was under way has arrived meanwhile. */
	if (!dry && (ch->tokens_bytes > most || idle))
		rel_tx_limited(&conn->tx, c);
	if (ch->tokens_bytes > most)
		ch->tokens_bytes = most;
}

/* What a packet of this write counts as. */
static double pkt_cost(const struct sdr_op *op, const struct rel_range *range)
{
	uint64_t bytes = op->pkts == 1 && !range->parity ? op->length : op->payload;

	return (double)u64_max(bytes, CONN_PKT_MIN_BYTES);
}

/*
 * How many of `want` packets may go on this channel now; 0: none, and *pace_ns is lowered
 * to when the pacer has enough. Small pieces wait until a train is worth sending.
 */
static uint32_t channel_room(struct sdr_conn *conn, uint32_t c, uint32_t want, double cost,
			     uint64_t now, uint64_t *pace_ns)
{
	struct conn_channel *ch = &conn->ch[c];
	double rate = rate_bytes_per_ns(ch);
	double cwnd = (double)cc_window_bytes(&ch->cc);
	double used = (double)rel_tx_inflight(&conn->tx, c) * ch->pkt_bytes;
	double train = rate * (double)CONN_QUANTUM_NS / cost;
	uint32_t quantum = train < 1 ? 1 : train > REL_UNIT ? REL_UNIT : (uint32_t)train;
	double need;

	/* A window smaller than a few trains is used up in smaller ones. */
	if (quantum > 1 && quantum * cost > cwnd / 4)
		quantum = (uint32_t)u64_max(1, (uint64_t)(cwnd / 4 / cost));
	tokens_refill(conn, c, rate, quantum * cost, used <= 0, now);
	need = (double)u64_min(want, quantum) * cost;
	if (used + need > cwnd && used > 0)
		return 0;
	if (ch->tokens_bytes < need) {
		if (rate > 0)
			*pace_ns = u64_min(*pace_ns,
					   now + 1 + (uint64_t)((need - ch->tokens_bytes) / rate));
		return 0;
	}
	need = ch->tokens_bytes < cwnd - used ? ch->tokens_bytes : cwnd - used;
	return (uint32_t)u64_max(1, u64_min(want, (uint64_t)(need > 0 ? need / cost : 0)));
}

static uint32_t suspect_room(struct conn_channel *ch, uint32_t want, uint64_t now,
			     uint64_t *pace_ns)
{
	if (now < ch->retry_ns) {
		*pace_ns = u64_min(*pace_ns, ch->retry_ns);
		return 0;
	}
	ch->retry_gap_ns = u64_min(2 * ch->retry_gap_ns, SUSPECT_RETRY_MAX_NS);
	ch->retry_ns = now + ch->retry_gap_ns;
	return (uint32_t)u64_min(want, SUSPECT_PKTS);
}

/* The next channel in turn that may send; lowers range->count to what it may. -1: none. */
static int channel_pick(struct sdr_conn *conn, struct rel_range *range, uint64_t now)
{
	const struct sdr_op *op = conn_tx_op(conn, range->message);
	double cost = pkt_cost(op, range);
	uint64_t pace_ns = UINT64_MAX;

	for (uint32_t i = 0; i < conn->channels; i++) {
		uint32_t c = (conn->turn + i) % conn->channels;
		struct conn_channel *ch = &conn->ch[c];
		uint32_t room;

		if (!ch->up && conn->channels > 1)
			continue;
		room = ch->suspect ? suspect_room(ch, range->count, now, &pace_ns)
				   : channel_room(conn, c, range->count, cost, now, &pace_ns);
		if (room) {
			range->count = (uint32_t)u64_min(range->count, room);
			conn->turn = c + 1;
			return (int)c;
		}
	}
	conn->pace_ns = pace_ns;
	return -1;
}

/* ---- sending ---- */

static void sent_account(struct sdr_conn *conn, const struct rel_range *sent, uint64_t bytes,
			 uint32_t c, uint64_t now)
{
	struct conn_channel *ch = &conn->ch[c];
	double cost = (double)u64_max(bytes, (uint64_t)sent->count * CONN_PKT_MIN_BYTES);
	double weight = sent->count >= 64 ? 1 : sent->count / 64.0;

	conn->sent_ns = now;
	ch->tokens_bytes -= cost;
	ch->pkt_bytes += (cost / sent->count - ch->pkt_bytes) * weight;
	if (!ch->waiting_since_ns)
		ch->waiting_since_ns = now;
	if (sent->parity)
		conn->stats.tx_parity_bytes += bytes;
	else if (sent->resend)
		conn->stats.tx_resent_bytes += bytes;
	else
		conn->stats.tx_data_bytes += bytes;
}

/* Hands the range's packets to the SDK: bytes that it took, or its error. */
static int64_t range_post(struct sdr_op *op, const struct rel_range *range,
			  struct sdr_continue_attr *attr)
{
	uint64_t offset = (uint64_t)range->first * op->payload;
	uint64_t length = (uint64_t)range->count * op->payload;

	if (range->parity) {
		if (parity_make(op, range->first, range->count))
			return -EAGAIN;
		return sdr_send_stream_continue(op->parity_send, offset, length, attr);
	}
	length = u64_min(length, u64_sub_floor(op->length, offset));
	return sdr_send_stream_continue(op->send, offset, length, attr);
}

/* Packets sent, 0: the write has ended meanwhile; -EAGAIN: the device is full. */
static int range_send(struct sdr_conn *conn, const struct rel_range *range, uint32_t channel,
		      uint64_t now)
{
	struct sdr_continue_attr attr = {.size = sizeof(attr), .channel = channel};
	struct sdr_op *op = conn_tx_op(conn, range->message);
	struct rel_range sent = *range;
	int64_t bytes;

	SDR_ASSERT(op && op->message == range->message && op->state == OP_OPEN);
	bytes = range_post(op, range, &attr);
	if (bytes == -EAGAIN)
		return -EAGAIN;
	if (bytes < 0)
		return write_reap(op) ? 0 : -EAGAIN;
	sent.count = attr.pkts;
	rel_tx_sent(&conn->tx, &sent, attr.sent_channel, attr.first_psn, now);
	sent_account(conn, &sent, (uint64_t)bytes, attr.sent_channel, now);
	return (int)attr.pkts;
}

static void channels_dry(struct sdr_conn *conn)
{
	for (uint32_t c = 0; c < conn->channels; c++)
		conn->ch[c].dry = true;
}

void send_pump(struct sdr_conn *conn, uint64_t now)
{
	conn->pace_ns = UINT64_MAX;
	for (uint32_t i = 0; i < CONN_TRAINS_MAX; i++) {
		struct rel_range range;
		int err = rel_tx_next(&conn->tx, now, REL_UNIT, &range);
		int c;

		if (err <= 0) {
			if (err < 0)
				conn->pace_ns = now + CONN_AGAIN_NS;
			else
				channels_dry(conn);
			return;
		}
		c = channel_pick(conn, &range, now);
		if (c < 0)
			return;
		if (range_send(conn, &range, (uint32_t)c, now) < 0) {
			conn->pace_ns = now + CONN_AGAIN_NS;
			return;
		}
	}
	conn->pace_ns = now;
}

/* ---- timers ---- */

static uint32_t probe_channel(struct sdr_conn *conn)
{
	for (uint32_t i = 0; i < conn->channels; i++) {
		uint32_t c = (conn->turn + i) % conn->channels;

		if (conn->ch[c].up) {
			conn->turn = c + 1;
			return c;
		}
	}
	return 0;
}

static void send_timer(struct sdr_conn *conn, uint64_t now)
{
	struct rel_range probe;

	rel_tx_answered(&conn->tx, conn->qi.pongs_received + conn->qi.path_changes, now);
	if (rel_tx_deadline(&conn->tx) > now)
		return;
	if (rel_tx_timer(&conn->tx, now, &probe, &conn->result) == 1)
		(void)range_send(conn, &probe, probe_channel(conn), now);
	ack_feed_cc(conn, &conn->result, now);
}

/* Silent for RTOs while others are not: the channel loses its share. */
static void suspects_look(struct sdr_conn *conn, uint64_t now)
{
	uint64_t rto = rel_tx_rto_ns(&conn->tx);
	bool changed = false;

	for (uint32_t c = 0; conn->channels > 1 && c < conn->channels; c++) {
		struct conn_channel *ch = &conn->ch[c];

		if (ch->suspect || !ch->waiting_since_ns || now - ch->waiting_since_ns < 2 * rto ||
		    conn->last_ack_ns < ch->waiting_since_ns + rto)
			continue;
		ch->suspect = changed = true;
		ch->retry_gap_ns = rto;
		ch->retry_ns = now + rto;
	}
	if (changed && conn->attr.rate_bps)
		send_cc_setup(conn);
}

void send_service(struct sdr_conn *conn, uint64_t now)
{
	if (!conn->tx_used) {
		conn->pace_ns = UINT64_MAX;
		return;
	}
	writes_reap(conn);
	send_open_granted(conn);
	announce_service(conn, now);
	send_timer(conn, now);
	suspects_look(conn, now);
	send_pump(conn, now);
}

uint64_t send_deadline(const struct sdr_conn *conn)
{
	return conn->tx_used ? u64_min(u64_min(conn->pace_ns, conn->announce_at_ns),
				       rel_tx_deadline(&conn->tx))
			     : UINT64_MAX;
}

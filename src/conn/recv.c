/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receives. The SDK says which had packets; their new bits go to rel/, which knows when
 * all are in. Facts of the channels are read before any bits, so that a packet that they
 * count is in the bits.
 */
#include "conn/internal.h"

#define FEED_WORDS 16u /* bitmap words looked at a time */
#define SCAN_MIN_NS (5 * NS_PER_MS)

int recv_setup(struct sdr_conn *conn)
{
	struct rel_rx_params params = {.rtt_ns = conn->qi.rtt_ns};

	return rel_rx_init(&conn->rx, &params, &sdr_alloc_system);
}

void recv_facts(struct sdr_conn *conn, uint64_t now)
{
	uint64_t arrived = 0, drops = 0;

	for (uint32_t c = 0; c < conn->channels; c++) {
		/* Without the address as text, which costs. */
		struct sdr_channel_facts facts = {.size = offsetof(struct sdr_channel_facts, peer)};
		struct rel_channel_fact *out = &conn->fact[c];

		if (sdr_channel_facts_get(conn->qp, c, &facts))
			continue;
		out->id = (uint8_t)c;
		out->psn_valid = facts.psn_valid;
		out->newest_psn = facts.newest_psn;
		out->packet_valid = facts.packet_valid;
		out->newest_message = facts.newest_message;
		out->newest_packet = facts.newest_packet;
		out->age_ns = facts.newest_age_ns;
		out->received = facts.received_pkts;
		out->duplicates = facts.duplicate_pkts + facts.late_pkts;
		out->ce = facts.ce_pkts;
		out->host_drops = facts.host_drops;
		conn->ch[c].up = facts.up;
		if (facts.pongs_received && !conn->ch[c].rtt_given) {
			conn->ch[c].rtt_given = true;
			rel_tx_rtt_sample(&conn->tx, c, facts.rtt_ns, now);
			if (!conn->tx.ch[c].sent_any)
				send_cc_fresh(conn, c);
		}
		arrived += out->received + out->duplicates;
		drops += facts.host_drops;
	}
	conn->own_host_drops = drops;
	if (arrived > conn->arrived) {
		conn->arrived = arrived;
		conn->arrived_ns = now;
		rel_rx_arrived(&conn->rx, arrived, now);
	}
}

/* All of it came: length and immediate are what was sent. */
static void receive_done(struct sdr_op *op, uint64_t length, uint32_t imm)
{
	struct sdr_conn *conn = op->conn;
	int whole;

	rel_rx_close(&conn->rx, op->message);
	pair_rx_end(op);
	whole = sdr_recv_complete(op->recv); /* or its error: the sender has given it up */
	if (whole >= 0)
		conn->stats.rx_done_bytes += length;
	op_complete(op, whole < 0 ? whole : 0, length, imm, imm != 0);
}

/*
 * The sender hears that it ended early, whatever arrives until the fence: of that nobody has
 * read length and immediate.
 */
static void receive_early(struct sdr_op *op, int status, uint64_t length)
{
	rel_rx_close(&op->conn->rx, op->message);
	pair_rx_end(op);
	(void)sdr_recv_give_up(op->recv);
	op_complete(op, status, length, 0, false);
}

void recv_whole(struct sdr_op *op)
{
	struct sdr_recv_info info = {.size = sizeof(info)};
	uint32_t imm;

	(void)sdr_recv_query(op->recv, &info);
	op->whole = announce_missing(op, info.length, &imm);
	if (!op->whole)
		receive_done(op, info.length, imm);
}

/* rel/ must know all receives up to one that has packets: lost ones show as holes. */
static bool receives_open(struct sdr_conn *conn, uint32_t upto)
{
	while (!seq32_before(upto, conn->rx_open)) {
		struct sdr_op *op = conn->rx_op[conn->rx_open & conn->mask];
		struct sdr_recv_info info = {.size = sizeof(info)};

		if (op) {
			(void)sdr_recv_query(op->recv, &info);
			if (rel_rx_open(&conn->rx, op->message, (uint32_t)u64_max(1, info.pkts)))
				return false;
		}
		conn->rx_open++;
	}
	return true;
}

/* Up to the last word that has a bit: those behind it say nothing. */
static bool feed_words(struct sdr_conn *conn, struct sdr_op *op, uint32_t first,
		       const uint64_t *words, uint32_t n)
{
	while (n && !words[n - 1])
		n--;
	return n && rel_rx_feed(&conn->rx, op->message, first, words, n);
}

/* Feeds words from `word` on until there is nothing more; all: to the very end. */
static void feed_from(struct sdr_conn *conn, struct sdr_op *op, uint32_t pkts, uint32_t word,
		      bool all)
{
	uint32_t nwords = (uint32_t)bits_words(pkts);
	uint64_t words[FEED_WORDS];

	while (word < nwords) {
		uint32_t n = (uint32_t)u64_min(FEED_WORDS, nwords - word);
		uint64_t first = (uint64_t)word * REL_UNIT;
		int64_t got = sdr_recv_pkts_get(
			op->recv, first, u64_min((uint64_t)n * REL_UNIT, pkts - first), words);

		if (got < 0 || (got == 0 && !all))
			return;
		(void)feed_words(conn, op, word, words, n);
		if (!words[n - 1] && !all)
			return;
		word += n;
	}
}

static bool feed_want(struct sdr_conn *conn, struct sdr_op *op, uint32_t pkts)
{
	struct rel_rx_want want;
	uint64_t words[FEED_WORDS];
	uint64_t first;
	uint32_t n;

	if (!rel_rx_want_cum(&conn->rx, op->message, &want))
		return false;
	first = (uint64_t)want.first_word * REL_UNIT;
	n = (uint32_t)u64_min(want.nwords, FEED_WORDS);
	if (first >= pkts ||
	    sdr_recv_pkts_get(op->recv, first, u64_min((uint64_t)n * REL_UNIT, pkts - first),
			      words) < 0)
		return false;
	return feed_words(conn, op, want.first_word, words, n);
}

/* `info`: what the SDK says of it now. */
static void receive_look(struct sdr_conn *conn, struct sdr_op *op, const struct sdr_recv_info *info,
			 uint64_t now)
{
	uint32_t word;

	if (info->error) {
		receive_early(op, info->error, 0);
		return;
	}
	if (!receives_open(conn, op->number)) {
		conn->look_all = conn->service_again = true; /* no memory: again, later */
		return;
	}
	if (info->end_known)
		(void)rel_rx_end(&conn->rx, op->message, info->pkts);
	word = rel_rx_high(&conn->rx, op->message) / REL_UNIT;
	if (now < op->scan_ns) {
		feed_from(conn, op, info->pkts, word, false);
	} else {
		/* Now and then past any gap, however long. */
		feed_from(conn, op, info->pkts, word, true);
		op->scan_ns = now + u64_max(SCAN_MIN_NS, conn_rtt_ns(conn) / 2);
	}
	/* Without holes below the highest packet the look from there on has seen it all. */
	if (rel_rx_cum(&conn->rx, op->message) != rel_rx_high(&conn->rx, op->message))
		while (feed_want(conn, op, info->pkts))
			;
	if (info->end_known && rel_rx_complete(&conn->rx, op->message))
		recv_whole(op);
}

bool recv_open(struct sdr_op *op)
{
	return receives_open(op->conn, op->number);
}

void recv_news(struct sdr_op *op)
{
	struct sdr_recv_info info = {.size = sizeof(info)};

	(void)sdr_recv_query(op->recv, &info);
	receive_look(op->conn, op, &info, sdr_now_ns(op->conn->net->ctx));
}

void recv_feed_word(struct sdr_op *op, uint32_t word)
{
	struct sdr_recv_info info = {.size = sizeof(info)};
	uint64_t first = (uint64_t)word * REL_UNIT, bits;

	(void)sdr_recv_query(op->recv, &info);
	if (first < info.pkts &&
	    sdr_recv_pkts_get(op->recv, first, u64_min(REL_UNIT, info.pkts - first), &bits) > 0)
		(void)rel_rx_feed(&op->conn->rx, op->message, word, &bits, 1);
}

void recv_maybe_whole(struct sdr_op *op)
{
	struct sdr_conn *conn = op->conn;
	struct sdr_recv_info info = {.size = sizeof(info)};

	(void)sdr_recv_query(op->recv, &info);
	while (feed_want(conn, op, info.pkts))
		;
	if (info.end_known && rel_rx_complete(&conn->rx, op->message))
		recv_whole(op);
}

void recv_end_early(struct sdr_op *op, int status)
{
	receive_early(op, status, 0);
}

/* What has arrived, though nobody has looked yet, may complete it all the same. */
void recv_give_up(struct sdr_op *op, int status)
{
	struct sdr_recv_info info = {.size = sizeof(info)};
	struct sdr_conn *conn = op->conn;
	uint32_t number = op->number;

	(void)sdr_recv_query(op->recv, &info);
	if (info.touched || info.error)
		receive_look(conn, op, &info, sdr_now_ns(conn->net->ctx));
	if (conn->rx_op[number & conn->mask] == op) {
		decode_parity(op);
		decode_service(conn);
	}
	if (conn->rx_op[number & conn->mask] != op)
		return;
	receive_early(op, status, info.end_known ? info.length : 0);
}

static void receives_look_all(struct sdr_conn *conn, uint64_t now)
{
	conn->look_all = false;
	for (uint32_t n = conn->rx_base; n != conn->rx_next; n++) {
		struct sdr_op *op = conn->rx_op[n & conn->mask];

		struct sdr_recv_info info = {.size = sizeof(info)};

		if (!op || op->number != n)
			continue;
		(void)sdr_recv_query(op->recv, &info);
		receive_look(conn, op, &info, now);
	}
}

void recv_ready(struct sdr_conn *conn, uint64_t now)
{
	struct sdr_recv *recv;

	for (uint32_t i = 0; (recv = sdr_recv_next_ready(conn->qp)); i++) {
		struct sdr_recv_info info = {.size = sizeof(info)};
		struct sdr_op *op;

		(void)sdr_recv_query(recv, &info);
		op = info.cookie;
		if (op && op->recv == recv)
			receive_look(conn, op, &info, now);
		else if (op && op->parity_recv == recv)
			decode_parity(op);
		if (i == CONN_RECVS_MAX) {
			conn->service_again = true;
			break;
		}
	}
}

void recv_service(struct sdr_conn *conn, uint64_t now)
{
	recv_facts(conn, now);
	rel_rx_set_rtt(&conn->rx, conn_rtt_ns(conn));
	if (!conn->rx_used)
		return;
	if (conn->look_all)
		receives_look_all(conn, now);
	recv_ready(conn, now);
	decode_service(conn);
}

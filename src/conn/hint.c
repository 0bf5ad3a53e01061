/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packet trains: when they are worth their bytes, and what they are worth. On a long path
 * the doublings of a slow start cost more than a transfer; three trains of growing length
 * tell the rate a round trip later. On a short one they would only be a burst.
 *
 * The client sends them behind its first PING, where it knows from TCP that the path is
 * long; whoever did not, with its first large write.
 */
#include "conn/internal.h"
#include <stdlib.h>

#define TRAINS 3u
#define TRAIN_PKTS_FIRST 16u /* then twice as many, and again */
#define TRAIN_GAP_NS (2 * NS_PER_MS)
#define TRAIN_RTT_LEAST_NS (4 * NS_PER_MS)
#define TRAIN_WRITE_LEAST (UINT64_C(64) << 10) /* a smaller one goes in a flight anyway */
#define HINT_SHARE 0.98			       /* of a link, less what control takes */

void hint_start(struct sdr_conn *conn, uint64_t rtt_ns, uint64_t now)
{
	if (conn->trains_begun || conn->attr.rate_bps || rtt_ns < TRAIN_RTT_LEAST_NS)
		return;
	conn->trains_begun = true;
	conn->trains_left = TRAINS;
	conn->train_at_ns = now;
	conn->train_rtt_ns = rtt_ns;
}

void hint_on_write(struct sdr_conn *conn, uint64_t length)
{
	if (length >= TRAIN_WRITE_LEAST)
		conn->trains_wanted = true;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * The median of what is a measure: the trains that the path has made longer, and of the
 * others, whose rate the path carries at least, those that say more than some measure does.
 * Without any measure, the most that is known to pass. 0: nothing is known.
 */
static uint64_t trains_rate(const struct sdr_train_info *info)
{
	uint64_t rate[SDR_TRAINS], most = 0, least = UINT64_MAX;
	uint32_t n = 0, all = (uint32_t)u64_min(info->sent, SDR_TRAINS);

	for (uint32_t i = 0; i < all; i++) {
		most = u64_max(most, info->rate_bps[i]);
		if (info->rate_bps[i] && !(info->bounds >> i & 1))
			least = u64_min(least, info->rate_bps[i]);
	}
	for (uint32_t i = 0; i < all; i++) {
		if (info->rate_bps[i] >= least)
			rate[n++] = info->rate_bps[i];
	}
	if (!n)
		return most;
	qsort(rate, n, sizeof(rate[0]), by_size);
	return rate[(n - 1) / 2];
}

/* Of one channel; several of them may be one path. */
static void hint_give(struct sdr_conn *conn, uint32_t c, const struct sdr_train_info *info,
		      uint64_t now)
{
	double payload = conn->qi.payload_bytes;
	double headers = 1500 - sdr_payload_for_mtu(1500, 0);
	double rate = (double)trains_rate(info);

	/* In payload of full packets, as everything that is counted here. */
	cc_hint(&conn->ch[c].cc,
		(uint64_t)(rate * HINT_SHARE * payload / (payload + headers) / conn->channels),
		now);
}

static void hint_look(struct sdr_conn *conn, uint64_t now)
{
	for (uint32_t c = 0; c < conn->channels; c++) {
		struct sdr_train_info info = {.size = sizeof(info)};

		if (sdr_qp_train_query(conn->qp, c, &info) || info.seen == conn->ch[c].trains_seen)
			continue;
		conn->ch[c].trains_seen = info.seen;
		hint_give(conn, c, &info, now);
	}
	/* An answer that is not there after so long was lost. */
	conn->trains_done =
		!conn->trains_left && now > conn->train_at_ns + 4 * conn->train_rtt_ns + NS_PER_S;
}

static void train_send(struct sdr_conn *conn, uint64_t now)
{
	uint32_t pkts = TRAIN_PKTS_FIRST << (TRAINS - conn->trains_left);

	conn->trains_left--;
	conn->train_at_ns = now + TRAIN_GAP_NS;
	for (uint32_t c = 0; c < conn->qi.channels; c++) {
		int err = sdr_qp_train_send(conn->qp, c, pkts);

		if (err == -ENOTSUP)
			conn->trains_left = 0; /* an older peer */
		if (err != -ENOTCONN)
			continue;
		/* Called, and nobody has proved the address yet: with the first write then. */
		conn->trains_left = 0;
		conn->trains_begun = false;
		return;
	}
}

void hint_service(struct sdr_conn *conn, uint64_t now)
{
	if (conn->trains_wanted && !conn->trains_begun && conn->qi.rtt_ns)
		hint_start(conn, conn->qi.rtt_ns, now);
	if (!conn->trains_begun || conn->trains_done)
		return;
	if (conn->trains_left && conn->train_at_ns <= now)
		train_send(conn, now);
	if (conn->rel_ready)
		hint_look(conn, now);
}

uint64_t hint_deadline(const struct sdr_conn *conn)
{
	return conn->trains_left ? conn->train_at_ns : UINT64_MAX;
}

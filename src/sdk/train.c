/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packet trains. The sender lets packets go back to back, the receiver says how far apart
 * they came in, and the narrowest link of the path made them so. Only what came after the
 * packets that were read first counts: those had waited for the reader to wake up.
 *
 * What a rate is good for is the owner's affair (conn/hint.c). Knows nothing of congestion.
 */
#include "sdk/internal.h"

#define TRAIN_RX 4u /* trains that are told about */
#define TRAIN_WAIT_NS (3 * NS_PER_MS)
#define TRAIN_SAME_NS (2 * NS_PER_US) /* read together, told one after the other */
#define TRAIN_PKTS_LEAST 8u	      /* after the first; fewer say nothing */
#define TRAIN_STAMPS_LEAST 3u
#define TRAIN_STRETCH 1.3 /* a path that is slower than the sender makes a train longer */

struct train_rx {
	uint64_t first_ns, last_ns; /* the packets that were read first, and last */
	uint64_t stamp_ns;	    /* the last time that counted as one of its own */
	uint32_t first_index, last_index;
	uint32_t packets, stamps; /* after the first */
	uint8_t train;
	bool used;
};

struct train_tx {
	uint32_t count;
	uint64_t span_ns; /* that handing it to the device took */
	uint64_t rate_bps;
	bool bound; /* it was hardly faster when it left: the path may carry more */
};

/* Of one channel, from the first train in either direction on. */
struct sdk_trains {
	struct train_rx rx[TRAIN_RX];
	uint32_t rx_turn;
	uint64_t due_ns; /* when to tell; UINT64_MAX: nothing to tell */
	struct train_tx tx[SDR_TRAINS];
	uint32_t sent, seen;
};

static struct sdk_trains *trains_get(struct sdr_qp *qp, uint32_t channel)
{
	struct sdk_channel *ch = &qp->live->channel[channel];

	if (!ch->trains) {
		ch->trains = alloc_zeroed(qp->ctx->alloc, sizeof(*ch->trains));
		if (ch->trains)
			ch->trains->due_ns = UINT64_MAX;
	}
	return ch->trains;
}

void train_fini(struct sdr_qp *qp)
{
	for (uint32_t c = 0; c < qp->channels; c++)
		alloc_free(qp->ctx->alloc, qp->live->channel[c].trains);
}

/* ---- the receiver's side ---- */

static struct train_rx *rx_find(struct sdk_trains *t, uint8_t train)
{
	struct train_rx *rx;

	for (uint32_t i = 0; i < TRAIN_RX; i++)
		if (t->rx[i].used && t->rx[i].train == train)
			return &t->rx[i];
	rx = &t->rx[t->rx_turn++ % TRAIN_RX];
	*rx = (struct train_rx){.train = train};
	return rx;
}

void train_on_train(struct sdr_qp *qp, const struct wire_train *msg, const struct fabric_event *ev,
		    uint64_t now)
{
	struct sdk_trains *t = trains_get(qp, ev->channel);
	/* The age is of when the events were taken: what we take to tell them is no distance. */
	uint64_t at_ns = u64_sub_floor(now, ev->age_ns);
	struct train_rx *rx;

	if (!t)
		return; /* no memory: the peer finds the rate without it */
	rx = rx_find(t, msg->train);
	if (!rx->used || at_ns <= rx->first_ns + TRAIN_SAME_NS) {
		rx->first_ns = rx->last_ns = rx->used ? rx->first_ns : at_ns;
		rx->stamp_ns = rx->first_ns;
		rx->first_index = rx->last_index = msg->index;
		rx->used = true;
	} else if (rx->packets < UINT8_MAX) {
		rx->packets++;
		if (at_ns > rx->stamp_ns + TRAIN_SAME_NS) {
			rx->stamps++;
			rx->stamp_ns = at_ns;
		}
		rx->last_ns = u64_max(rx->last_ns, at_ns);
		rx->last_index = (uint32_t)u64_max(rx->last_index, msg->index);
	}
	t->due_ns = msg->index + 1u == msg->count ? now : now + TRAIN_WAIT_NS;
}

static void trains_tell(struct sdr_qp *qp, uint32_t channel)
{
	struct sdk_trains *t = qp->live->channel[channel].trains;
	struct wire_train_seen msg = {0};
	uint8_t body[128];
	int len;

	for (uint32_t i = 0; i < TRAIN_RX; i++) {
		const struct train_rx *rx = &t->rx[i];

		if (!rx->packets)
			continue;
		msg.span[msg.n++] = (struct wire_train_span){
			.train = rx->train,
			.packets = (uint8_t)rx->packets,
			.steps = (uint8_t)u64_sub_floor(rx->last_index, rx->first_index),
			.stamps = (uint8_t)rx->stamps,
			.span_ns = (uint32_t)u64_min(rx->last_ns - rx->first_ns, UINT32_MAX),
		};
	}
	len = wire_train_seen_put(body, sizeof(body), &msg);
	if (len > 0)
		(void)ctrl_queue(qp, WIRE_MSG_TRAIN_SEEN, body, (size_t)len, channel, 0);
}

void train_service(struct sdr_qp *qp, uint64_t now)
{
	for (uint32_t c = 0; c < qp->channels; c++) {
		struct sdk_trains *t = qp->live->channel[c].trains;

		if (!t || t->due_ns > now)
			continue;
		t->due_ns = UINT64_MAX;
		trains_tell(qp, c);
	}
}

uint64_t train_deadline(const struct sdr_qp *qp)
{
	uint64_t at = UINT64_MAX;

	for (uint32_t c = 0; c < qp->channels; c++)
		if (qp->live->channel[c].trains)
			at = u64_min(at, qp->live->channel[c].trains->due_ns);
	return at;
}

/* ---- the sender's side ---- */

static uint64_t packet_bits(const struct sdr_qp *qp)
{
	uint64_t headers = qp->peer_v6 ? 48 : 28;

	return (wire_ctrl_packet_bytes(qp->ctx->caps.max_ctrl_bytes) + headers) * 8;
}

/* No faster than it was sent, however the other end came to read it; 0: says nothing. */
static uint64_t span_rate(const struct sdr_qp *qp, const struct train_tx *tx,
			  const struct wire_train_span *span)
{
	uint64_t bits = packet_bits(qp), rate, most;
	uint64_t n = 4u * span->packets >= 3u * span->steps ? span->steps : span->packets;

	if (span->packets < TRAIN_PKTS_LEAST || span->stamps < TRAIN_STAMPS_LEAST || !span->span_ns)
		return 0;
	rate = n * bits * NS_PER_S / span->span_ns;
	if (!tx->span_ns)
		return rate;
	most = (tx->count - 1) * bits * NS_PER_S / tx->span_ns;
	return u64_min(rate, most);
}

void train_on_seen(struct sdr_qp *qp, const struct wire_train_seen *msg, uint32_t channel)
{
	struct sdk_trains *t = qp->live->channel[channel].trains;

	for (uint32_t i = 0; t && i < msg->n; i++) {
		const struct wire_train_span *span = &msg->span[i];
		uint32_t back = (uint8_t)(t->sent - 1 - span->train);
		struct train_tx *tx = &t->tx[span->train % SDR_TRAINS];

		if (back >= u64_min(t->sent, SDR_TRAINS) || span->packets >= tx->count ||
		    span->steps >= tx->count) {
			sdk_count(qp->ctx, SDR_CTR_ctrl_malformed);
			continue;
		}
		tx->rate_bps = span_rate(qp, tx, span);
		tx->bound = (double)span->span_ns < TRAIN_STRETCH * (double)tx->span_ns;
		t->seen++;
	}
}

static int train_packet(struct sdr_qp *qp, uint32_t channel, const struct wire_train *train)
{
	struct sdk_live *live = qp->live;
	uint8_t body[SDR_MAX_CTRL_BYTES] = {0}, buf[FABRIC_CTRL_MAX];
	size_t at = WIRE_CTRL_BODY_HDR_BYTES;
	int err;

	(void)wire_ctrl_body_put(buf, sizeof(buf), qp->peer_token, live->ctrl_next);
	(void)wire_train_put(body, sizeof(body), train);
	(void)wire_msg_put(buf + at, sizeof(buf) - at, WIRE_MSG_TRAIN, body, sdk_ctrl_max(qp->ctx));
	err = qp->ctx->fabric->ops->ctrl(qp->fqp, channel, 0, buf, qp->ctx->caps.max_ctrl_bytes);
	if (!err)
		live->ctrl_next++;
	return err;
}

int sdr_qp_train_send(struct sdr_qp *qp, uint32_t channel, uint32_t pkts)
{
	struct wire_train train = {.count = (uint16_t)pkts};
	struct sdk_trains *t;
	struct train_tx *tx;
	uint64_t began;
	int err = 0;

	if (qp->state == SDR_QP_ERROR)
		return qp->error;
	if (!qp->live || !qp->live->proven)
		return -ENOTCONN;
	if (channel >= qp->channels || pkts < 2 || pkts > 256)
		return -EINVAL;
	if (!qp->live->trains)
		return -ENOTSUP;
	t = trains_get(qp, channel);
	if (!t)
		return -ENOMEM;
	train.train = (uint8_t)t->sent;
	tx = &t->tx[t->sent++ % SDR_TRAINS];
	*tx = (struct train_tx){0};
	/* What was said before goes first. */
	ctrl_flush(qp, sdk_now(qp->ctx));
	began = sdk_now(qp->ctx);
	for (uint32_t i = 0; !err && i < pkts; i++) {
		train.index = (uint8_t)i;
		err = train_packet(qp, channel, &train);
		tx->count = i + !err; /* that left: what comes back is judged by them */
	}
	tx->span_ns = sdk_now(qp->ctx) - began;
	return err;
}

int sdr_qp_train_query(const struct sdr_qp *qp, uint32_t channel, struct sdr_train_info *out)
{
	struct sdr_train_info info = {.size = out->size};
	const struct sdk_trains *t;

	if (channel >= qp->channels)
		return -EINVAL;
	t = qp->live ? qp->live->channel[channel].trains : NULL;
	for (uint32_t i = 0; t && i < u64_min(t->sent, SDR_TRAINS); i++) {
		const struct train_tx *tx = &t->tx[(t->sent - 1 - i) % SDR_TRAINS];

		info.rate_bps[i] = tx->rate_bps;
		info.bounds |= (uint32_t)tx->bound << i;
	}
	if (t) {
		info.sent = t->sent;
		info.seen = t->seen;
	}
	memcpy(out, &info, u64_min(out->size, sizeof(info)));
	return 0;
}

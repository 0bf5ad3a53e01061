/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control datagrams: messages are queued as they come up, packed several to a datagram
 * at the end of a progress, and unpacked on arrival behind the token and the replay
 * filter. Knows nothing of what grants or acknowledgements mean.
 */
#include "sdk/internal.h"

/* A queued message: this header, then the body. */
struct queued {
	uint32_t channel;
	uint32_t path;
	uint32_t len;
	uint8_t type;
};

/*
 * Queues are borrowed from the context while they hold something: thousands of idle QPs
 * need none, and steady state allocates nothing.
 */
static bool queue_get(struct sdr_qp *qp)
{
	struct sdr_ctx *ctx = qp->ctx;
	void *mem = ctx->queues;

	if (mem) {
		memcpy(&ctx->queues, mem, sizeof(void *));
		ctx->nqueues--;
	} else {
		mem = alloc_zeroed(ctx->alloc, SDK_CTRL_QUEUE_BYTES);
	}
	qp->live->queue = mem;
	return mem != NULL;
}

static void queue_put(struct sdr_qp *qp)
{
	struct sdr_ctx *ctx = qp->ctx;
	void *mem = qp->live->queue;

	qp->live->queue = NULL;
	if (!mem)
		return;
	if (ctx->nqueues >= SDK_SPARE_QUEUES) {
		alloc_free(ctx->alloc, mem); /* a full device made thousands wait at once */
		return;
	}
	memcpy(mem, &ctx->queues, sizeof(void *));
	ctx->queues = mem;
	ctx->nqueues++;
}

int ctrl_queue(struct sdr_qp *qp, uint8_t type, const void *body, size_t len, uint32_t channel,
	       uint32_t path)
{
	struct sdk_live *live = qp->live;
	struct queued q = {.channel = channel, .path = path, .len = (uint32_t)len, .type = type};

	if (live->queue_len + sizeof(q) + len > SDK_CTRL_QUEUE_BYTES)
		return -EAGAIN;
	if (!live->queue && !queue_get(qp))
		return -ENOMEM;
	memcpy(live->queue + live->queue_len, &q, sizeof(q));
	if (len)
		memcpy(live->queue + live->queue_len + sizeof(q), body, len);
	live->queue_len += (uint32_t)(sizeof(q) + len);
	sdk_qp_dirty(qp);
	return 0;
}

/*
 * The channel for messages that name none: the one that last delivered; when nothing
 * was heard for three round trips, the next that has an address, in turn.
 */
static uint32_t ctrl_pick_channel(struct sdr_qp *qp, uint64_t now)
{
	struct sdk_live *live = qp->live;

	if (live->heard_ns && now - live->heard_ns < 3 * sdk_rtt(qp))
		return live->ctrl_channel;
	for (uint32_t i = 1; i <= qp->channels; i++) {
		uint32_t c = (live->ctrl_channel + i) % qp->channels;

		if (live->channel[c].answered) {
			live->ctrl_channel = c;
			break;
		}
	}
	return live->ctrl_channel;
}

/*
 * Does its address hear more than answers? Until one has proved itself there is none better: what
 * may be said then is little.
 */
static bool is_trusted(const struct sdr_qp *qp, uint32_t channel)
{
	return qp->active || !qp->live->proven || qp->live->channel[channel].answered;
}

/* What names no channel goes along with anything, but not to an address that proved nothing. */
static bool same_target(const struct sdr_qp *qp, const struct queued *q, uint32_t channel,
			uint32_t path)
{
	if (q->channel == SDR_CHANNEL_ANY)
		return path == 0 && is_trusted(qp, channel);
	return q->channel == channel && q->path == path;
}

/* Packs queued messages from `at` on into one datagram; returns where it stopped. */
static uint32_t ctrl_pack(struct sdr_qp *qp, uint32_t at, uint32_t channel, uint32_t path,
			  uint8_t *buf, size_t *buf_len)
{
	const struct sdk_live *live = qp->live;
	size_t len = *buf_len;
	uint32_t first = at;

	while (at < live->queue_len) {
		struct queued q;
		int put;

		memcpy(&q, live->queue + at, sizeof(q));
		if (at != first && !same_target(qp, &q, channel, path))
			break;
		put = wire_msg_put(buf + len, qp->ctx->caps.max_ctrl_bytes - len, q.type,
				   live->queue + at + sizeof(q), q.len);
		if (put < 0)
			break;
		len += (size_t)put;
		at += (uint32_t)sizeof(q) + q.len;
	}
	*buf_len = len;
	return at;
}

void ctrl_flush(struct sdr_qp *qp, uint64_t now)
{
	struct sdk_live *live = qp->live;
	struct fabric *f = qp->ctx->fabric;
	uint32_t at = 0;

	while (at < live->queue_len) {
		uint8_t buf[FABRIC_CTRL_MAX];
		struct queued q;
		size_t len = WIRE_CTRL_BODY_HDR_BYTES;
		uint32_t channel, path = 0, upto;
		int err;

		memcpy(&q, live->queue + at, sizeof(q));
		channel = q.channel;
		if (channel == SDR_CHANNEL_ANY)
			channel = ctrl_pick_channel(qp, now);
		else
			path = q.path;
		upto = ctrl_pack(qp, at, channel, path, buf, &len);
		(void)wire_ctrl_body_put(buf, sizeof(buf), qp->peer_token, live->ctrl_next);
		err = f->ops->ctrl(qp->fqp, channel, path, buf, len);
		if (err == -EAGAIN) {
			/* Said again when the device is writable. */
			sdk_list_add(qp, SDK_BLOCKED);
			break;
		}
		/* Anything else is a loss like any other: who waits asks again. */
		live->ctrl_next++;
		at = upto;
	}
	live->queue_len -= at;
	if (!live->queue_len)
		queue_put(qp);
	else
		memmove(live->queue, live->queue + at, live->queue_len);
}

/* True once for each number within the window; older than the window counts as seen. */
static bool replay_fresh(struct sdk_live *live, uint64_t number)
{
	uint64_t *word = &live->ctrl_seen[number / 64 % SDR_ARRAY_LEN(live->ctrl_seen)];
	uint64_t bit = UINT64_C(1) << (number % 64);

	if (number > live->ctrl_highest) {
		uint64_t step = number / 64 - live->ctrl_highest / 64;

		for (uint64_t i = 1; i <= u64_min(step, SDR_ARRAY_LEN(live->ctrl_seen)); i++)
			live->ctrl_seen[(live->ctrl_highest / 64 + i) %
					SDR_ARRAY_LEN(live->ctrl_seen)] = 0;
		live->ctrl_highest = number;
	} else if (number / 64 + SDR_ARRAY_LEN(live->ctrl_seen) <= live->ctrl_highest / 64) {
		return false;
	}
	if (*word & bit)
		return false;
	*word |= bit;
	return true;
}

/* A message for sdr_ctrl_recv(). */
static void ctrl_deliver(struct sdr_qp *qp, const struct wire_msg *msg,
			 const struct fabric_event *ev, uint64_t now)
{
	struct sdk_live *live = qp->live;
	struct ctrl_in *in;

	if (msg->len > SDR_MAX_CTRL_BYTES || live->in_count >= SDK_CTRL_IN_MAX ||
	    !(in = alloc_zeroed(qp->ctx->alloc, sizeof(*in)))) {
		sdk_count(qp->ctx, SDR_CTR_rx_ctrl_dropped);
		return;
	}
	in->msg.size = sizeof(in->msg);
	in->msg.type = msg->type;
	in->msg.channel = ev->channel;
	in->msg.len = (uint32_t)msg->len;
	in->at_ns = u64_sub_floor(now, ev->age_ns);
	memcpy(in->msg.body, msg->body, msg->len);
	if (live->in_tail)
		live->in_tail->next = in;
	else
		live->in = in;
	live->in_tail = in;
	live->in_count++;
}

/* The SDK's own messages. Returns 0 or the decoder's error. */
static int ctrl_own(struct sdr_qp *qp, const struct wire_msg *msg, const struct fabric_event *ev,
		    uint64_t number, uint64_t now)
{
	union {
		struct wire_ping ping;
		struct wire_pong pong;
		struct wire_payload payload;
		struct wire_number number;
		struct wire_reset reset;
		struct wire_train train;
		struct wire_train_seen train_seen;
	} m;
	int err;

	switch (msg->type) {
	case WIRE_MSG_PING:
		if (!(err = wire_ping_get(msg->body, msg->len, &m.ping)))
			ping_on_ping(qp, &m.ping, ev, now);
		return err;
	case WIRE_MSG_PONG:
		if (!(err = wire_pong_get(msg->body, msg->len, &m.pong)))
			ping_on_pong(qp, &m.pong, ev, now);
		return err;
	case WIRE_MSG_PAYLOAD:
	case WIRE_MSG_PAYLOAD_ECHO:
		if ((err = wire_payload_get(msg->body, msg->len, &m.payload)))
			return err;
		if (msg->type == WIRE_MSG_PAYLOAD)
			payload_on_payload(qp, &m.payload, number);
		else
			payload_on_echo(qp, &m.payload, number, now);
		return 0;
	case WIRE_MSG_CTS:
		grant_on_cts(qp, msg->body, msg->len, now);
		return 0;
	case WIRE_MSG_CTS_ECHO:
	case WIRE_MSG_WANT:
	case WIRE_MSG_ABORT:
		if ((err = wire_number_get(msg->body, msg->len, &m.number)))
			return err;
		if (msg->type == WIRE_MSG_CTS_ECHO)
			grant_on_echo(qp, m.number.number);
		else if (msg->type == WIRE_MSG_WANT)
			grant_on_want(qp, m.number.number);
		else
			grant_on_abort(qp, m.number.number);
		return 0;
	case WIRE_MSG_RESET:
		if (!(err = wire_reset_get(msg->body, msg->len, &m.reset)))
			sdk_qp_fail(qp, -SDR_E_RESET);
		return err;
	case WIRE_MSG_TRAIN:
		/* It is padded, or its answer could be the larger one. */
		if (!qp->live->trains || msg->len < SDK_TRAIN_BODY_LEAST)
			return -EBADMSG;
		if (!(err = wire_train_get(msg->body, msg->len, &m.train)))
			train_on_train(qp, &m.train, ev, now);
		return err;
	case WIRE_MSG_TRAIN_SEEN:
		if (!(err = wire_train_seen_get(msg->body, msg->len, &m.train_seen)))
			train_on_seen(qp, &m.train_seen, ev->channel);
		return err;
	default:
		return -EBADMSG;
	}
}

static bool ctrl_is_upper(const struct wire_msg *msg)
{
	return msg->class == WIRE_CLASS_USER ||
	       (msg->type >= WIRE_MSG_WRITE && msg->type <= WIRE_MSG_CLOSE_ECHO);
}

void ctrl_on_datagram(struct sdr_qp *qp, const struct fabric_event *ev, uint64_t now)
{
	struct sdk_live *live = qp->live;
	struct wire_msgs it;
	struct wire_msg msg;
	uint64_t token, number;

	if (!live || qp->state == SDR_QP_ERROR)
		return;
	/* A channel that was not agreed is none of ours. */
	if (ev->channel >= qp->channels ||
	    wire_ctrl_begin(ev->data, ev->len, &it, &token, &number)) {
		sdk_count(qp->ctx, SDR_CTR_ctrl_malformed);
		return;
	}
	if (token != qp->token) {
		sdk_count(qp->ctx, SDR_CTR_ctrl_token);
		return;
	}
	if (!replay_fresh(live, number)) {
		sdk_count(qp->ctx, SDR_CTR_ctrl_replayed);
		return;
	}
	live->heard_ns = now;
	live->refused = false;
	ping_heard(qp, ev->channel, now);
	if (ev->path == 0 && is_trusted(qp, ev->channel))
		live->ctrl_channel = ev->channel;
	while (qp->state != SDR_QP_ERROR && wire_ctrl_next(&it, &msg) == 1) {
		if (ctrl_is_upper(&msg))
			ctrl_deliver(qp, &msg, ev, now);
		else if (msg.class != WIRE_CLASS_KNOWN)
			sdk_count(qp->ctx, SDR_CTR_ctrl_unknown);
		else if (ctrl_own(qp, &msg, ev, number, now))
			sdk_count(qp->ctx, SDR_CTR_ctrl_malformed);
	}
	if (ev->path && qp->state != SDR_QP_ERROR)
		ping_path(qp, ev, now);
	sdk_qp_dirty(qp);
}

int sdr_ctrl_send(struct sdr_qp *qp, uint8_t type, const void *body, size_t len, uint32_t channel)
{
	bool upper =
		type >= WIRE_MSG_USER || (type >= WIRE_MSG_WRITE && type <= WIRE_MSG_CLOSE_ECHO);

	if (!upper || (channel != SDR_CHANNEL_ANY && channel >= qp->channels) || (len && !body))
		return -EINVAL;
	if (len > sdk_ctrl_max(qp->ctx))
		return -EMSGSIZE;
	if (qp->state == SDR_QP_ERROR)
		return qp->error;
	if (!qp->live)
		return -ENOTCONN;
	if (!qp->live->proven && len > SDK_UNPROVEN_BYTES)
		return 0; /* as if lost: nobody is told much at an address that may not be theirs */
	return ctrl_queue(qp, type, body, len, channel, 0);
}

int sdr_ctrl_recv(struct sdr_qp *qp, struct sdr_ctrl *out)
{
	struct sdk_live *live = qp->live;
	struct ctrl_in *in = live ? live->in : NULL;
	size_t size = out->size;

	if (!in)
		return 0;
	in->msg.age_ns = u64_sub_floor(sdk_now(qp->ctx), in->at_ns);
	memcpy(out, &in->msg, u64_min(size, sizeof(in->msg)));
	out->size = size;
	live->in = in->next;
	if (!live->in)
		live->in_tail = NULL;
	live->in_count--;
	alloc_free(qp->ctx->alloc, in);
	return 1;
}

void ctrl_fini(struct sdr_qp *qp)
{
	struct ctrl_in *in = qp->live->in;

	while (in) {
		struct ctrl_in *next = in->next;

		alloc_free(qp->ctx->alloc, in);
		in = next;
	}
	queue_put(qp);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue pairs: creation, connection info, connecting, state. States and what moves them:
 *
 *	INIT        sdr_qp_connect()                     -> CONNECTING
 *	CONNECTING  a PONG came back on some channel     -> CONNECTED
 *	any         RESET from the peer, sdr_qp_reset()  -> ERROR
 *
 * sdk_qp_state() is the one place that changes it.
 */
#include "sdk/internal.h"
#include <arpa/inet.h>
#include <netinet/in.h>

static void sdk_qp_state(struct sdr_qp *qp, enum sdr_qp_state to)
{
	static const bool edge[4][4] = {
		[SDR_QP_INIT] = {[SDR_QP_CONNECTING] = true, [SDR_QP_ERROR] = true},
		[SDR_QP_CONNECTING] = {[SDR_QP_CONNECTED] = true, [SDR_QP_ERROR] = true},
		[SDR_QP_CONNECTED] = {[SDR_QP_ERROR] = true},
	};

	SDR_ASSERT(edge[qp->state][to]);
	if (edge[qp->state][to])
		qp->state = to;
}

void sdk_qp_fail(struct sdr_qp *qp, int error)
{
	if (qp->state == SDR_QP_ERROR)
		return;
	qp->error = error;
	sdk_qp_state(qp, SDR_QP_ERROR);
	sdk_qp_dirty(qp);
}

void sdk_qp_connected(struct sdr_qp *qp, uint64_t now)
{
	uint32_t payload;

	if (qp->state != SDR_QP_CONNECTING)
		return;
	sdk_qp_state(qp, SDR_QP_CONNECTED);
	/* Now that there is a route: it may carry less than both ends could take. */
	payload = qp->ctx->fabric->ops->path_payload(qp->fqp);
	if (payload && payload < qp->live->tx.payload_wish)
		payload_change(qp, payload, now);
	sdk_tx_pump(qp, now);
}

uint64_t sdk_rtt(const struct sdr_qp *qp)
{
	return qp->live->rtt_ns ? qp->live->rtt_ns : SDK_RTT_INITIAL_NS;
}

uint64_t sdk_patience(const struct sdr_qp *qp)
{
	return sdk_rtt(qp) + u64_max(4 * qp->live->rtt_var_ns, NS_PER_MS);
}

void sdk_repeat_start(struct sdk_repeat *r, const struct sdr_qp *qp, uint64_t now)
{
	r->wait_ns = u64_min(sdk_patience(qp), SDK_BACKOFF_MAX_NS);
	r->at_ns = now + r->wait_ns;
}

void sdk_repeat_again(struct sdk_repeat *r, uint64_t now)
{
	r->wait_ns = u64_min(2 * r->wait_ns, SDK_BACKOFF_MAX_NS);
	r->at_ns = now + r->wait_ns;
}

static bool power_of_two_to(uint32_t v, uint32_t max)
{
	return v && v <= max && (v & (v - 1)) == 0;
}

uint32_t sdk_payload_floor(const struct sdr_ctx *ctx, uint32_t payload)
{
	uint32_t mtu = FABRIC_ROCEV2_PAYLOAD_MIN;

	if (!sdk_is_rocev2(ctx))
		return payload;
	if (payload < mtu)
		return 0;
	while (2 * mtu <= payload)
		mtu *= 2;
	return mtu;
}

static int attr_fill(const struct sdr_ctx *ctx, const struct sdr_qp_attr *in,
		     struct sdr_qp_attr *out)
{
	memset(out, 0, sizeof(*out));
	if (in)
		memcpy(out, in, u64_min(in->size, sizeof(*out)));
	if (!out->channels)
		out->channels = 1;
	if (!out->chunk_pkts)
		out->chunk_pkts = 4;
	if (!out->messages)
		out->messages = SDR_MAX_MESSAGES;
	if (!out->max_payload_bytes || out->max_payload_bytes > ctx->caps.max_payload_bytes)
		out->max_payload_bytes = ctx->caps.max_payload_bytes;
	out->max_payload_bytes = sdk_payload_floor(ctx, out->max_payload_bytes);
	if (out->channels > ctx->caps.max_channels || out->channels > SDR_MAX_CHANNELS ||
	    !power_of_two_to(out->chunk_pkts, SDR_MAX_CHUNK_PKTS) ||
	    !power_of_two_to(out->messages, SDR_MAX_MESSAGES) ||
	    out->max_payload_bytes < SDK_PAYLOAD_MIN)
		return -EINVAL;
	return 0;
}

/* Asked for where it is needed: an idle QP stays small. */
static struct fabric_local local_of(const struct sdr_qp *qp)
{
	struct fabric_local local;

	memset(&local, 0, sizeof(local));
	qp->ctx->fabric->ops->qp_local(qp->fqp, &local);
	return local;
}

int sdr_qp_create(struct sdr_ctx *ctx, const struct sdr_qp_attr *attr, struct sdr_qp **out)
{
	struct fabric_qp_attr fattr = {0};
	struct sdr_qp *qp = alloc_zeroed(ctx->alloc, sizeof(*qp));
	int err;

	if (!qp)
		return -ENOMEM;
	qp->ctx = ctx;
	heap_node_init(&qp->timer);
	err = attr_fill(ctx, attr, &qp->attr);
	if (err)
		goto fail;
	qp->channels = qp->attr.channels;
	qp->generations = qp->imm_pkts = 1;
	qp->max_pkts = SDR_MAX_MESSAGE_PKTS - 1; /* an end packet may come on top */
	fattr.channels = qp->channels;
	fattr.cookie = qp;
	err = ctx->fabric->ops->qp_create(ctx->fabric, &fattr, &qp->fqp);
	if (err)
		goto fail;
	qp->token = local_of(qp).token;
	qp->next = ctx->qps;
	if (qp->next)
		qp->next->prev = qp;
	ctx->qps = qp;
	*out = qp;
	return 0;
fail:
	alloc_free(ctx->alloc, qp);
	return err;
}

void sdr_qp_destroy(struct sdr_qp *qp)
{
	struct sdr_ctx *ctx;

	if (!qp)
		return;
	ctx = qp->ctx;
	/* Last words (the final CTS, RESET) go out if the device takes them. */
	if (qp->live) {
		grant_last_words(qp, sdk_now(ctx));
		ctrl_flush(qp, sdk_now(ctx));
	}
	ctx->fabric->ops->qp_destroy(qp->fqp); /* from here on no byte is written */
	if (qp->live) {
		sdk_rx_fini(qp);
		sdk_tx_fini(qp);
		ctrl_fini(qp);
		train_fini(qp);
		alloc_free(ctx->alloc, qp->live);
	}
	heap_remove(&ctx->timers, &qp->timer);
	for (int i = 0; i < SDK_LISTS; i++)
		sdk_list_remove(qp, (enum qp_list_id)i);
	if (qp->prev)
		qp->prev->next = qp->next;
	else
		ctx->qps = qp->next;
	if (qp->next)
		qp->next->prev = qp->prev;
	alloc_free(ctx->alloc, qp);
}

void *sdr_qp_cookie(const struct sdr_qp *qp)
{
	return qp->attr.cookie;
}

/* ---- connection info ---- */

static void blob_addr(const struct sdr_ctx *ctx, const struct fabric_local *local,
		      struct wire_blob *blob)
{
	const struct sockaddr_storage *at = &ctx->local_addr;
	struct wire_blob_addr *a = &blob->addrs[0];
	uint16_t port = sdk_is_rocev2(ctx) ? FABRIC_ROCEV2_PORT : ctx->caps.udp_port;

	if (!port)
		return;
	if (local->addr.ss_family)
		at = &local->addr; /* an RDMA device has one of its own */
	blob->naddrs = 1;
	a->port = port;
	a->family = 4;
	if (at->ss_family == AF_INET6) {
		a->family = 6;
		memcpy(a->ip, &((const struct sockaddr_in6 *)at)->sin6_addr, 16);
	} else if (at->ss_family == AF_INET) {
		memcpy(a->ip, &((const struct sockaddr_in *)at)->sin_addr, 4);
	}
}

static void blob_rocev2(const struct sdr_qp *qp, const struct fabric_local *local,
			struct wire_blob *blob)
{
	blob->mode = WIRE_ROCEV2;
	blob->offered |= WIRE_FEATURE_ROCEV2_WIRE;
	blob->required |= WIRE_FEATURE_ROCEV2_WIRE;
	blob->generations = (uint8_t)qp->ctx->caps.generations;
	blob->data_channels = (uint8_t)qp->attr.channels;
	for (uint32_t g = 0; g < blob->generations; g++)
		for (uint32_t c = 0; c < blob->data_channels; c++)
			blob->data_qpn[g][c] = local->data_qpn[fabric_data_qp(g, c)];
}

static void blob_fill(const struct sdr_qp *qp, struct wire_blob *blob)
{
	const struct fabric_local local = local_of(qp);

	memset(blob, 0, sizeof(*blob));
	blob->version_min = WIRE_VERSION_MIN;
	blob->version_max = WIRE_VERSION_MAX;
	blob->mode = WIRE_SDR;
	blob->qpn = local.qpn;
	blob->token = local.token;
	blob->incarnation = qp->ctx->incarnation;
	blob->max_payload = qp->attr.max_payload_bytes;
	blob->chunk_log2 = (uint8_t)__builtin_ctz(qp->attr.chunk_pkts);
	blob->channels = (uint8_t)qp->attr.channels;
	blob->messages_log2 = (uint8_t)__builtin_ctz(qp->attr.messages);
	blob->psn = local.start_psn;
	blob->listen = qp->ctx->listen;
	blob->offered = WIRE_FEATURE_TRAINS | (uint64_t)qp->attr.user_offers
						      << WIRE_FEATURE_USER_SHIFT;
	blob_addr(qp->ctx, &local, blob);
	if (sdk_is_rocev2(qp->ctx))
		blob_rocev2(qp, &local, blob);
}

int sdr_qp_info_get(const struct sdr_qp *qp, void *buf, size_t cap)
{
	struct wire_blob blob;

	blob_fill(qp, &blob);
	return wire_blob_put(buf, cap, &blob);
}

size_t sdr_qp_info_size(const struct sdr_qp *qp)
{
	uint8_t buf[SDR_MAX_INFO_BYTES];
	int len = sdr_qp_info_get(qp, buf, sizeof(buf));

	return len > 0 ? (size_t)len : 0;
}

/* ---- connecting ---- */

static void addr_from_blob(const struct wire_blob_addr *a, struct sockaddr_storage *out)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	if (a->family == 4) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(a->port);
		memcpy(&v4->sin_addr, a->ip, 4);
		if (!v4->sin_addr.s_addr) /* an info without an address: this host */
			v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	} else {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(a->port);
		memcpy(&v6->sin6_addr, a->ip, 16);
		if (IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr))
			v6->sin6_addr = in6addr_loopback;
	}
}

static bool addr_unspecified(const struct wire_blob_addr *a)
{
	static const uint8_t none[16];

	return memcmp(a->ip, none, a->family == 4 ? 4 : 16) == 0;
}

/*
 * The peer's address: the caller's, its port from the blob if the caller has none. That of an
 * RDMA device goes first: it need not be where the handshake went.
 */
static int peer_addr(const struct wire_blob *blob, const struct sdr_connect_attr *attr,
		     struct sockaddr_storage *out)
{
	in_port_t *port;
	bool own = blob->mode == WIRE_ROCEV2 && blob->naddrs && !addr_unspecified(&blob->addrs[0]);

	if (!attr || !attr->peer_addr || own) {
		if (!blob->naddrs)
			return -EDESTADDRREQ;
		addr_from_blob(&blob->addrs[0], out);
		return 0;
	}
	if (attr->peer_addr_len > sizeof(*out) || attr->peer_addr_len < sizeof(struct sockaddr_in))
		return -EINVAL;
	memset(out, 0, sizeof(*out));
	memcpy(out, attr->peer_addr, attr->peer_addr_len);
	if (out->ss_family == AF_INET)
		port = &((struct sockaddr_in *)out)->sin_port;
	else if (out->ss_family == AF_INET6 && attr->peer_addr_len >= sizeof(struct sockaddr_in6))
		port = &((struct sockaddr_in6 *)out)->sin6_port;
	else
		return -EAFNOSUPPORT;
	if (!*port && blob->naddrs)
		*port = htons(blob->addrs[0].port);
	return *port ? 0 : -EDESTADDRREQ;
}

/* What rocev2 needs to know of the peer, and what follows from what was agreed. */
static void rocev2_agree(struct sdr_qp *qp, const struct wire_blob *peer,
			 const struct wire_agreed *agreed, struct fabric_peer *to)
{
	const struct wire_imm_split *split = fabric_imm_split(1u << agreed->messages_log2);

	to->generations = agreed->generations;
	for (uint32_t g = 0; g < agreed->generations; g++)
		for (uint32_t c = 0; c < agreed->channels; c++)
			to->data_qpn[fabric_data_qp(g, c)] = peer->data_qpn[g][c];
	qp->generations = agreed->generations;
	qp->max_pkts = wire_imm_max_packets(split);
	qp->imm_pkts = wire_imm_fragments(split);
}

static int live_create(struct sdr_qp *qp, const struct wire_agreed *agreed)
{
	size_t size = sizeof(struct sdk_live) + agreed->channels * sizeof(struct sdk_channel);
	struct sdk_live *live = alloc_zeroed(qp->ctx->alloc, size);

	if (!live)
		return -ENOMEM;
	live->ctrl_next = 1;
	live->proven = qp->active;
	live->trains = agreed->features & WIRE_FEATURE_TRAINS;
	live->tx.payload = live->tx.payload_wish = live->rx.payload = agreed->payload;
	repeat_stop(&live->tx.want);
	repeat_stop(&live->tx.abort);
	repeat_stop(&live->tx.ask);
	repeat_stop(&live->tx.payload_ask);
	repeat_stop(&live->rx.cts);
	qp->live = live;
	return 0;
}

void sdk_qp_numbers_from(struct sdr_qp *qp, uint32_t number)
{
	struct sdk_tx *tx = &qp->live->tx;
	struct sdk_rx *rx = &qp->live->rx;

	SDR_ASSERT(tx->base == tx->next && rx->base == rx->next);
	tx->base = tx->next = tx->granted = tx->payload_from = tx->abort_turn = number;
	rx->base = rx->next = rx->echoed = rx->cts_upto = rx->touched = rx->payload_from = number;
	rx->sender_base = number;
}

/* Which end opens the channels: the one that can reach a listener; of two, one. */
static int choose_active(const struct sdr_qp *qp, const struct wire_blob *peer, enum sdr_role role,
			 bool *active)
{
	*active = peer->listen && (!qp->ctx->listen || qp->token < peer->token);
	if (sdk_is_rocev2(qp->ctx) && !peer->listen && !qp->ctx->listen)
		*active = qp->token < peer->token; /* both can be reached all the same */
	if (role != SDR_ROLE_AUTO)
		*active = role == SDR_ROLE_ACTIVE;
	if (sdk_is_rocev2(qp->ctx))
		return 0;
	return (*active ? peer->listen : qp->ctx->listen) ? 0 : -EDESTADDRREQ;
}

static enum sdr_role connect_role(const struct sdr_connect_attr *attr)
{
	if (!attr || attr->size < offsetof(struct sdr_connect_attr, role) + sizeof(attr->role))
		return SDR_ROLE_AUTO;
	return attr->role;
}

int sdr_qp_connect(struct sdr_qp *qp, const void *info, size_t len,
		   const struct sdr_connect_attr *attr)
{
	struct wire_blob local, peer;
	struct wire_agreed agreed;
	struct fabric_peer to;
	int err;

	if (qp->state == SDR_QP_ERROR)
		return qp->error;
	if (qp->state != SDR_QP_INIT)
		return -EISCONN;
	blob_fill(qp, &local);
	err = wire_blob_get(info, len, &peer);
	if (err)
		return err == -SDR_E_VERSION || err == -SDR_E_FEATURE ? err : -SDR_E_BLOB;
	err = wire_blob_negotiate(&local, &peer, &agreed);
	if (err)
		return err;
	if (agreed.payload < SDK_PAYLOAD_MIN || agreed.messages_log2 > 10 ||
	    agreed.channels > qp->attr.channels ||
	    (sdk_is_rocev2(qp->ctx) &&
	     sdk_payload_floor(qp->ctx, agreed.payload) != agreed.payload))
		return -SDR_E_BLOB;
	err = choose_active(qp, &peer, connect_role(attr), &qp->active);
	if (err)
		return err;
	memset(&to, 0, sizeof(to));
	err = peer_addr(&peer, attr, &to.addr);
	if (err &&
	    (qp->active || sdk_is_rocev2(qp->ctx) || qp->ctx->caps.flags & FABRIC_CAP_VIRTUAL_TIME))
		return err;
	to.qpn = peer.qpn;
	to.token = qp->peer_token = peer.token;
	to.start_psn = peer.psn;
	to.payload_bytes = agreed.payload;
	to.active = qp->active;
	to.channels = agreed.channels;
	to.messages = 1u << agreed.messages_log2;
	qp->peer_v6 = to.addr.ss_family == AF_INET6;
	if (sdk_is_rocev2(qp->ctx))
		rocev2_agree(qp, &peer, &agreed, &to);
	err = live_create(qp, &agreed);
	if (err)
		return err;
	err = qp->ctx->fabric->ops->qp_connect(qp->fqp, &to);
	if (err) {
		alloc_free(qp->ctx->alloc, qp->live);
		qp->live = NULL;
		return err;
	}
	qp->channels = agreed.channels;
	qp->peer_offers = (uint16_t)(peer.offered >> WIRE_FEATURE_USER_SHIFT);
	qp->attr.messages = 1u << agreed.messages_log2;
	qp->payload_max = (uint32_t)u64_min(qp->ctx->caps.max_payload_bytes, peer.max_payload);
	sdk_qp_state(qp, SDR_QP_CONNECTING);
	ping_start(qp, sdk_now(qp->ctx));
	ctrl_flush(qp, sdk_now(qp->ctx));
	sdk_qp_dirty(qp);
	return 0;
}

/* ---- state ---- */

enum sdr_qp_state sdr_qp_state_get(const struct sdr_qp *qp)
{
	return qp->state;
}

int sdr_qp_reset(struct sdr_qp *qp, uint32_t reason)
{
	struct wire_reset msg = {.reason = reason};
	uint8_t body[8];
	int len = wire_reset_put(body, sizeof(body), &msg);
	bool told; /* all of it: the address is the peer's */

	if (!qp->live)
		return -ENOTCONN;
	if (qp->state == SDR_QP_ERROR)
		return 0;
	told = qp->active || qp->live->proven;
	/* What has ended, first: after RESET nobody listens. */
	grant_last_words(qp, sdk_now(qp->ctx));
	if (told) {
		ctrl_flush(qp, sdk_now(qp->ctx));
		qp->live->queue_len = 0;
	}
	/* Thrice: nobody repeats it, and the peer would find out by silence otherwise. */
	for (int i = told ? 0 : 2; i < 3; i++) {
		(void)ctrl_queue(qp, WIRE_MSG_RESET, body, (size_t)len, SDR_CHANNEL_ANY, 0);
		ctrl_flush(qp, sdk_now(qp->ctx));
	}
	sdk_qp_fail(qp, -SDR_E_RESET);
	return 0;
}

static void query_live(const struct sdr_qp *qp, uint64_t now, struct sdr_qp_info *out)
{
	const struct sdk_live *live = qp->live;

	out->payload_bytes = live->tx.payload_wish;
	out->recv_payload_bytes = live->rx.payload;
	out->rtt_ns = live->rtt_ns;
	out->rtt_min_ns = live->rtt_min_ns;
	out->rtt_var_ns = live->rtt_var_ns;
	for (uint32_t c = 0; c < qp->channels; c++) {
		out->pings_sent += live->channel[c].pings;
		out->pongs_received += live->channel[c].pongs;
	}
	if (live->heard_ns)
		out->heard_age_ns = u64_sub_floor(now, live->heard_ns);
	out->unanswered_ns = ping_unanswered_ns(qp, now);
	out->send_next = live->tx.next;
	out->recv_next = live->rx.next;
	out->granted = live->tx.granted;
	out->refused = live->refused;
	out->path_changes = live->path_changes;
	out->max_pkts = qp->max_pkts;
	out->imm_packets = qp->imm_pkts;
	out->max_ctrl_bytes = sdk_ctrl_max(qp->ctx);
}

int sdr_qp_query(const struct sdr_qp *qp, struct sdr_qp_info *info)
{
	struct sdr_qp_info out = {
		.size = info->size,
		.state = qp->state,
		.error = qp->error,
		.channels = qp->channels,
		.chunk_pkts = qp->attr.chunk_pkts,
		.messages = qp->attr.messages,
		.heard_age_ns = UINT64_MAX,
		.peer_offers = qp->peer_offers,
	};

	if (qp->live)
		query_live(qp, sdk_now(qp->ctx), &out);
	memcpy(info, &out, u64_min(info->size, sizeof(out)));
	return 0;
}

int sdr_qp_ping(struct sdr_qp *qp)
{
	if (qp->state == SDR_QP_ERROR)
		return qp->error;
	if (!qp->live)
		return -ENOTCONN;
	ping_ask(qp, sdk_now(qp->ctx));
	return 0;
}

int sdr_qp_rate_set(struct sdr_qp *qp, uint64_t rate_bps)
{
	qp->attr.rate_bps = rate_bps;
	if (qp->live)
		sdk_qp_dirty(qp);
	return 0;
}

/* A device tells the low bits of a number: that of the newest receive, or one before it. */
static uint32_t full_message(const struct sdr_qp *qp, uint32_t low)
{
	uint32_t all = qp->attr.messages * qp->generations;
	uint32_t last = qp->live->rx.next - 1;

	return last - ((last - low) & (all - 1));
}

/*
 * The message of the device's newest packet. It is worked out once and kept: a channel may stay
 * silent until its number's low bits mean another message.
 */
static uint32_t newest_message(const struct sdr_qp *qp, uint32_t channel,
			       const struct fabric_channel_facts *facts)
{
	struct sdk_channel *ch = &qp->live->channel[channel];
	uint64_t at_ns = u64_sub_floor(sdk_now(qp->ctx), facts->newest_age_ns);

	if (!ch->newest_known || ch->newest_low != facts->newest_message ||
	    ch->newest_packet != facts->newest_packet || at_ns > ch->newest_ns + NS_PER_MS) {
		ch->newest_message = full_message(qp, facts->newest_message);
		ch->newest_low = facts->newest_message;
		ch->newest_packet = facts->newest_packet;
		ch->newest_known = true;
		ch->newest_ns = at_ns;
	}
	return ch->newest_message;
}

int sdr_channel_facts_get(const struct sdr_qp *qp, uint32_t channel, struct sdr_channel_facts *out)
{
	bool named = out->size > offsetof(struct sdr_channel_facts, peer);
	struct fabric_channel_facts facts = {0};
	const struct fabric_ops *ops = qp->ctx->fabric->ops;
	struct sdr_channel_facts f;

	if (channel >= qp->channels)
		return -EINVAL;
	/* The address as text is most of it, and asked for by few. */
	memset(&f, 0, named ? sizeof(f) : offsetof(struct sdr_channel_facts, peer));
	f.size = out->size;
	ops->channel_facts(qp->fqp, channel, &facts);
	f.sent_pkts = facts.sent_pkts;
	f.received_pkts = facts.received_pkts;
	f.duplicate_pkts = facts.duplicate_pkts;
	f.late_pkts = facts.late_pkts;
	f.reordered_pkts = facts.reordered_pkts;
	f.bad_pkts = facts.bad_pkts;
	f.ce_pkts = facts.ce_pkts;
	f.host_drops = facts.host_drops;
	f.newest_age_ns = facts.newest_age_ns;
	f.newest_psn = facts.newest_psn;
	f.psn_valid = facts.psn_valid;
	if (facts.packet_valid && qp->live) {
		f.packet_valid = 1;
		f.newest_message = newest_message(qp, channel, &facts);
		f.newest_packet = facts.newest_packet;
	}
	if (qp->live) {
		const struct sdk_channel *ch = &qp->live->channel[channel];

		f.up = facts.up && ch->answered;
		f.rtt_ns = ch->rtt_ns;
		f.rtt_min_ns = ch->rtt_min_ns;
		f.pings_sent = ch->pings;
		f.pongs_received = ch->pongs;
	}
	if (named)
		ops->path_name(qp->fqp, channel, f.peer, sizeof(f.peer));
	memcpy(out, &f, u64_min(out->size, sizeof(f)));
	return 0;
}

uint32_t sdr_payload_for_mtu(uint32_t mtu_bytes, int is_ipv6)
{
	uint64_t overhead = (is_ipv6 ? 40 : 20) + 8 + WIRE_DATA_HDR_BYTES + WIRE_TRAILER_BYTES;
	uint64_t payload = u64_sub_floor(u64_min(mtu_bytes, 65535), overhead) & ~UINT64_C(3);

	return payload < SDK_PAYLOAD_MIN ? 0 : (uint32_t)payload;
}

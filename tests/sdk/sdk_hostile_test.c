/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer that lies, and a host without memory. The liar is a bare fabric QP: its packets
 * are sealed and pass the token, and say anything: done bits of messages that were never
 * sent, grants beyond the window, changes of payload amid messages, huge lengths, wild
 * numbers, old datagrams. It may spoil its own messages; it must not make the victim
 * write outside a posted buffer or after its completion, take bits back, read outside a
 * send's buffer, spin or fall over. Over RDMA devices the liar has the keys of what is posted,
 * and says anything in its immediates.
 */
#include "base/rng.h"
#include "fabric/sim/sim.h"
#include "sdk/internal.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define GUARD 32u
#define ROOM 20000u
#define SLOTS 24u
#define START 0x7ffffff0u /* of the message numbers: they wrap on the way */
#define TURNS 1500u

struct posted {
	struct sdr_recv *recv;
	uint8_t *mem;
	uint64_t room;
	int64_t bits;
};

struct finished {
	uint8_t *mem;
	uint64_t room;
};

struct victim {
	struct rng rng;
	struct sim *sim;
	struct fabric *f[2];
	struct sdr_ctx *ctx;
	struct sdr_qp *qp;
	struct fabric_qp *liar;
	struct fabric_local local;
	uint64_t token, number;
	struct sdr_mr *mr;
	struct posted recv[SLOTS];
	struct finished old[64];
	uint32_t nold;
	struct sdr_send *send[SLOTS];
	uint8_t *src[SLOTS];
};

static uint32_t below(struct victim *v, uint32_t n)
{
	return (uint32_t)rng_below(&v->rng, n);
}

static bool chance(struct victim *v, double p)
{
	return rng_unit(&v->rng) < p;
}

/* ---- the liar ---- */

static void liar_on(struct victim *v, uint32_t channel, uint64_t number, uint8_t type,
		    const void *body, size_t len)
{
	uint8_t buf[FABRIC_CTRL_MAX];
	int put = wire_msg_put(buf + WIRE_CTRL_BODY_HDR_BYTES,
			       sizeof(buf) - WIRE_CTRL_BODY_HDR_BYTES, type, body, len);

	assert_true(put > 0);
	(void)wire_ctrl_body_put(buf, sizeof(buf), v->token, number);
	(void)v->f[0]->ops->ctrl(v->liar, channel, 0, buf, WIRE_CTRL_BODY_HDR_BYTES + (size_t)put);
}

static void liar_numbered(struct victim *v, uint64_t number, uint8_t type, const void *body,
			  size_t len)
{
	liar_on(v, 0, number, type, body, len);
}

static void liar_datagram(struct victim *v, uint8_t type, const void *body, size_t len)
{
	uint64_t number = ++v->number;

	if (chance(v, 0.05))
		number -= u64_min(number - 1, below(v, 2000));
	liar_numbered(v, number, type, body, len);
}

static uint32_t some_message(struct victim *v)
{
	uint32_t at = chance(v, 0.5) ? v->qp->live->rx.base : v->qp->live->tx.base;

	return chance(v, 0.1) ? (uint32_t)rng_next(&v->rng) : at + below(v, 40) - 10;
}

static uint64_t some_length(struct victim *v)
{
	static const uint64_t wild[] = {0, 1, UINT64_MAX, UINT64_C(1) << 40, UINT32_MAX};

	return chance(v, 0.3) ? wild[below(v, 5)] : below(v, 2 * ROOM);
}

static bool rdma(const struct victim *v)
{
	return sdk_is_rocev2(v->ctx);
}

static uint8_t lie_key_len(struct victim *v)
{
	if (!rdma(v))
		return 0;
	return chance(v, 0.9) ? 12 : (uint8_t)below(v, 12);
}

static void lie_cts(struct victim *v)
{
	struct wire_cts cts = {.granted_upto = some_message(v), .done_below = some_message(v)};
	uint8_t body[SDR_MAX_CTRL_BYTES];
	int len;

	if (chance(v, 0.7)) /* or all would end at once, always */
		cts.done_below = v->qp->live->tx.base;
	cts.recent_early = rng_next(&v->rng);
	cts.nwords = (uint8_t)below(v, WIRE_CTS_MAX_WORDS + 1);
	for (uint32_t i = 0; i < cts.nwords; i++) {
		cts.done[i] = rng_next(&v->rng) & rng_next(&v->rng) & rng_next(&v->rng);
		cts.early[i] = cts.done[i] & rng_next(&v->rng);
	}
	cts.first = some_message(v);
	cts.n = (uint8_t)below(v, WIRE_CTS_MAX_ENTRIES + 1);
	for (uint32_t i = 0; i < cts.n; i++)
		cts.entries[i] = (struct wire_cts_entry){.receive = (uint32_t)rng_next(&v->rng),
							 .kind = chance(v, 0.1),
							 .length = some_length(v),
							 .key_len = lie_key_len(v)};
	cts.n = (uint8_t)wire_cts_fit(&cts, sizeof(body));
	len = wire_cts_put(body, sizeof(body), &cts);
	assert_true(len > 0);
	liar_datagram(v, WIRE_MSG_CTS, body, (size_t)len);
}

static void lie_short(struct victim *v)
{
	static const uint8_t types[] = {WIRE_MSG_CTS_ECHO, WIRE_MSG_WANT, WIRE_MSG_ABORT,
					WIRE_MSG_PAYLOAD, WIRE_MSG_PAYLOAD_ECHO};
	static const uint32_t sizes[] = {1, 63, 64, 65535, 1436, 1000, 65, 128};
	uint8_t type = types[below(v, 5)];
	uint8_t body[8];

	put_be32(body, some_message(v));
	put_be32(body + 4, chance(v, 0.7) ? sizes[below(v, 8)] : below(v, 70000));
	if (type == WIRE_MSG_PAYLOAD_ECHO && chance(v, 0.7)) {
		put_be32(body, v->qp->live->tx.payload_from);
		put_be32(body + 4, v->qp->live->tx.payload);
	}
	liar_datagram(v, type, body, type == WIRE_MSG_ABORT && chance(v, 0.2) ? 3 : 8);
}

static void lie_junk(struct victim *v)
{
	uint8_t body[200];

	for (size_t i = 0; i < sizeof(body); i++)
		body[i] = (uint8_t)rng_next(&v->rng);
	/* Anything but RESET, which would end the fun. */
	liar_datagram(v, (uint8_t)(15 + below(v, 240)), body, below(v, sizeof(body)));
	liar_datagram(v, (uint8_t)(1 + below(v, 8)), body, below(v, sizeof(body)));
}

static void lie_data(struct victim *v)
{
	static uint8_t bytes[8 * 1436];
	uint32_t payload = rdma(v) || chance(v, 0.8) ? v->qp->live->rx.payload : 1 + below(v, 1436);
	const struct sdr_recv *recv = v->recv[below(v, SLOTS)].recv;
	struct fabric_write w = {.qp = v->liar,
				 .message = some_message(v),
				 .imm = 5,
				 .addr = bytes,
				 .payload_bytes = payload,
				 .last_bytes = chance(v, 0.5) ? payload : below(v, payload + 1),
				 .count = 1 + below(v, 8)};

	w.offset = chance(v, 0.8) ? (uint64_t)payload * below(v, 30) : rng_next(&v->rng);
	if (rdma(v) && recv) { /* its key, with any place in any message */
		w.key = recv->key;
		w.message = chance(v, 0.7) ? recv->message : w.message;
		w.key.va += chance(v, 0.9) ? 0 : payload * (uint64_t)below(v, 30) - 5 * payload;
		w.offset = (uint64_t)payload * below(v, 30);
	}
	memset(bytes, 0x11, sizeof(bytes));
	(void)v->f[0]->ops->post(v->f[0], &w, 1);
}

/* It answers PINGs: nobody talks to the dead. */
static void liar_listen(struct victim *v)
{
	static struct fabric_event ev[32];
	int n = v->f[0]->ops->poll(v->f[0], ev, 32);

	for (int i = 0; i < n; i++) {
		struct wire_msgs it;
		struct wire_msg msg;
		uint64_t token, number;

		if (ev[i].type != FABRIC_EV_CTRL)
			continue;
		assert_int_equal(wire_ctrl_begin(ev[i].data, ev[i].len, &it, &token, &number), 0);
		assert_true(token == v->local.token);
		while (wire_ctrl_next(&it, &msg) == 1) {
			uint8_t pong[12] = {0};

			if (msg.type != WIRE_MSG_PING)
				continue;
			memcpy(pong, msg.body, 8);
			liar_datagram(v, WIRE_MSG_PONG, pong, sizeof(pong));
		}
	}
}

/* ---- the victim ---- */

/* What rocev2 adds: the liar as a peer of the victim, and in the info that it gives. */
static void liar_rocev2(struct victim *v, struct fabric_peer *peer, struct wire_blob *blob)
{
	struct sockaddr_storage addr;

	peer->payload_bytes = FABRIC_ROCEV2_PAYLOAD_MIN;
	peer->channels = 1;
	peer->generations = blob->generations;
	peer->messages = v->qp->attr.messages;
	for (uint32_t g = 0; g < blob->generations; g++) {
		peer->data_qpn[fabric_data_qp(g, 0)] = blob->data_qpn[g][0];
		blob->data_qpn[g][0] = v->local.data_qpn[fabric_data_qp(g, 0)];
	}
	sim_fabric_addr(v->f[0], &addr);
	memcpy(blob->addrs[0].ip, (const uint8_t *)&addr + 4, 4);
}

static uint32_t victim_channels = 1;

static void victim_open(struct victim *v, uint64_t seed, const struct sim_device *device)
{
	struct sdr_ctx_attr ca = {.size = sizeof(ca), .listen = 1};
	struct sdr_qp_attr qa = {.size = sizeof(qa), .messages = 16, .chunk_pkts = 8};
	struct fabric_qp_attr fa = {.channels = victim_channels};
	struct sim_fabric_attr sa = {.device = *device};
	struct fabric_peer peer = {.active = true};
	struct wire_blob blob;
	uint8_t info[SDR_MAX_INFO_BYTES];
	int len;

	memset(v, 0, sizeof(*v));
	rng_init(&v->rng, seed);
	assert_int_equal(sim_create(seed, &sdr_alloc_system, &v->sim), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(sim_host_add(v->sim), i);
		assert_int_equal(sim_fabric_open(v->sim, i, &sa, &v->f[i]), 0);
	}
	assert_int_equal(sdk_ctx_open(v->f[1], &ca, &sdr_alloc_system, &v->ctx), 0);
	sim_fabric_addr(v->f[1], &v->ctx->local_addr);
	assert_int_equal(sdr_mr_reg(v->ctx, NULL, SIZE_MAX, 0, &v->mr), 0);
	qa.rate_bps = chance(v, 0.5) ? 100000000 : 0;
	qa.channels = victim_channels;
	assert_int_equal(sdr_qp_create(v->ctx, &qa, &v->qp), 0);
	len = sdr_qp_info_get(v->qp, info, sizeof(info));
	assert_int_equal(wire_blob_get(info, (size_t)len, &blob), 0);
	assert_int_equal(v->f[0]->ops->qp_create(v->f[0], &fa, &v->liar), 0);
	v->f[0]->ops->qp_local(v->liar, &v->local);
	peer.qpn = blob.qpn;
	peer.token = v->token = blob.token;
	peer.start_psn = blob.psn;
	sim_fabric_addr(v->f[1], &peer.addr);
	if (device->rocev2)
		liar_rocev2(v, &peer, &blob);
	blob.qpn = v->local.qpn;
	blob.token = v->local.token;
	blob.psn = v->local.start_psn;
	blob.listen = 0;
	len = wire_blob_put(info, sizeof(info), &blob);
	assert_true(len > 0);
	assert_int_equal(sdr_qp_connect(v->qp, info, (size_t)len, NULL), 0);
	sdk_qp_numbers_from(v->qp, START);
	assert_int_equal(v->f[0]->ops->qp_connect(v->liar, &peer), 0);
	liar_datagram(v, WIRE_MSG_PING, "12345678", 8);
}

static void check_old(const struct finished *o)
{
	for (uint64_t i = 0; i < o->room + 2 * GUARD; i++)
		assert_int_equal(o->mem[i], 0x3c);
}

static void finish(struct victim *v, struct posted *p)
{
	struct finished *o = &v->old[v->nold++ % SDR_ARRAY_LEN(v->old)];
	int got = sdr_recv_complete(p->recv);

	assert_true(got == 0 || got == 1 || got == -SDR_E_ABORTED || got == -EMSGSIZE);
	for (uint64_t i = 0; i < GUARD; i++)
		assert_true(p->mem[i] == 0xa5 && p->mem[GUARD + p->room + i] == 0xa5);
	memset(p->mem, 0x3c, p->room + 2 * GUARD);
	if (o->mem)
		check_old(o);
	free(o->mem);
	*o = (struct finished){p->mem, p->room};
	p->recv = NULL;
}

static void receive(struct victim *v, struct posted *p)
{
	struct sdr_recv_info info = {.size = sizeof(info)};
	uint64_t words[(ROOM / 64 + 64) / 64];

	if (!p->recv) {
		struct sdr_recv_wr wr = {.size = sizeof(wr)};

		wr.length = p->room = chance(v, 0.2) ? 0 : below(v, ROOM);
		p->mem = malloc(p->room + 2 * GUARD);
		assert_non_null(p->mem);
		memset(p->mem, 0xa5, p->room + 2 * GUARD);
		p->bits = 0;
		wr.addr = p->mem + GUARD;
		if (sdr_recv_post(v->qp, &wr, &p->recv)) {
			free(p->mem);
			p->recv = NULL;
		}
		return;
	}
	sdr_recv_query(p->recv, &info);
	if (info.pkts) {
		struct rx_slot *slot = rx_slot_of(v->qp->live->rx.table, p->recv->message);
		int64_t bits = sdr_recv_pkts_get(p->recv, 0, slot->npkts, words);

		assert_true(bits >= p->bits);
		p->bits = bits;
		assert_int_equal(rx_slot_check(slot, true), 0);
	}
	if (chance(v, 0.03))
		finish(v, p);
}

static void send_one(struct victim *v, uint32_t i)
{
	struct sdr_send_wr wr = {.size = sizeof(wr), .length = below(v, ROOM)};
	struct sdr_send_info info = {.size = sizeof(info)};

	wr.mr = v->mr;
	if (!v->send[i]) {
		free(v->src[i]);
		v->src[i] = malloc(wr.length + 1);
		wr.addr = v->src[i];
		assert_non_null(wr.addr);
		memset(v->src[i], 1, wr.length + 1);
		if ((chance(v, 0.5) ? sdr_send_post : sdr_send_stream_start)(v->qp, &wr,
									     &v->send[i]))
			v->send[i] = NULL;
		return;
	}
	sdr_send_query(v->send[i], &info);
	if (info.pkts)
		(void)sdr_send_stream_continue(v->send[i],
					       (uint64_t)below(v, info.pkts) * info.payload_bytes,
					       info.payload_bytes, NULL);
	if (chance(v, 0.05))
		(void)sdr_send_cancel(v->send[i]);
	/* Its buffer is freed when the handle's place is used again, so it must be done. */
	if (sdr_send_poll(v->send[i]) && (info.remote_done || chance(v, 0.1))) {
		sdr_send_release(v->send[i]);
		v->send[i] = NULL;
	}
}

static void until(struct victim *v, uint64_t ns)
{
	uint64_t limit = sim_now(v->sim) + ns;
	uint32_t still = 0;

	for (;;) {
		uint64_t at, now = sim_now(v->sim);

		assert_true(sdr_progress(v->ctx) >= 0);
		liar_listen(v);
		if (now >= limit)
			return;
		at = u64_min(sim_next_event_ns(v->sim), sdr_next_deadline_ns(v->ctx));
		still = at <= now ? still + 1 : 0;
		assert_true(still < 1000);
		sim_advance(v->sim, u64_max(now, u64_min(at, limit)));
	}
}

static void check_numbers(const struct sdr_qp *qp)
{
	const struct sdk_tx *tx = &qp->live->tx;
	const struct sdk_rx *rx = &qp->live->rx;

	assert_true(tx->next - tx->base <= qp->attr.messages);
	assert_true(tx->granted - tx->base <= qp->attr.messages);
	assert_true(rx->next - rx->base <= qp->attr.messages);
	/* Or the last grant is said again, for the echo. */
	assert_true(rx->echoed - rx->base <= rx->next - rx->base || rx->echoed + 1 == rx->next);
	assert_true(tx->aborts <= tx->next - tx->base);
}

static void victim_close(struct victim *v)
{
	for (uint32_t i = 0; i < SLOTS; i++) {
		if (v->recv[i].recv)
			finish(v, &v->recv[i]);
		sdr_send_release(v->send[i]);
		v->send[i] = NULL;
	}
	until(v, 100 * NS_PER_MS);
	for (uint32_t i = 0; i < SDR_ARRAY_LEN(v->old); i++) {
		if (v->old[i].mem)
			check_old(&v->old[i]);
		free(v->old[i].mem);
	}
	sdr_mr_dereg(v->mr);
	v->f[0]->ops->close(v->f[0]);
	sdr_ctx_destroy(v->ctx);
	sim_destroy(v->sim);
	for (uint32_t i = 0; i < SLOTS; i++)
		free(v->src[i]);
}

static void lying_peer(const struct sim_device *device)
{
	static struct victim v;
	const char *one = getenv("SDR_SEED");
	uint64_t first = one ? strtoull(one, NULL, 0) : 1, n = one ? 1 : 12;
	uint64_t counters[SDR_CTR_COUNT], landed = 0, refused = 0;

	for (uint64_t seed = first; seed < first + n; seed++) {
		print_message("seed %llu\n", (unsigned long long)seed);
		victim_open(&v, seed, device);
		until(&v, 5 * NS_PER_S);
		assert_int_equal(sdr_qp_state_get(v.qp), SDR_QP_CONNECTED);
		for (uint32_t t = 0; t < TURNS; t++) {
			void (*const lies[])(struct victim *) = {lie_cts, lie_short, lie_junk,
								 lie_data, lie_data};

			lies[below(&v, 5)](&v);
			receive(&v, &v.recv[below(&v, SLOTS)]);
			send_one(&v, below(&v, SLOTS));
			if (chance(&v, 0.02))
				(void)sdr_qp_payload_set(v.qp, 64 + below(&v, 1400));
			if (chance(&v, 0.5))
				until(&v, below(&v, 3) * NS_PER_MS);
			check_numbers(v.qp);
		}
		sdr_counters_get(v.ctx, counters, SDR_CTR_COUNT);
		landed += counters[SDR_CTR_rx_pkts];
		refused += counters[SDR_CTR_rx_range];
		victim_close(&v);
	}
	/* Some of the lies were good enough to land, and some of them were not. */
	assert_true(landed > n && refused > n);
}

static void a_lying_peer(void **state)
{
	(void)state;
	lying_peer(&(const struct sim_device){0});
}

static void a_lying_peer_on_a_nic(void **state)
{
	(void)state;
	lying_peer(&(const struct sim_device){.rocev2 = true});
	lying_peer(&(const struct sim_device){
		.rocev2 = true, .nic = true, .recv_depth = 64, .zero_copy_ns = 300 * NS_PER_US});
	lying_peer(&(const struct sim_device){
		.rocev2 = true, .nic = true, .lasting_keys = true, .late_ns = 1});
}

static void payload_message(struct victim *v, uint64_t number, uint32_t from, uint32_t size)
{
	uint8_t body[8];

	put_be32(body, from);
	put_be32(body + 4, size);
	liar_numbered(v, number, WIRE_MSG_PAYLOAD, body, sizeof(body));
	until(v, NS_PER_MS);
}

/* An older PAYLOAD that comes late changes nothing, and no PAYLOAD a message that has begun. */
static void payloads_out_of_order(void **state)
{
	static struct victim v;
	static uint8_t mem[4000], bytes[600];
	struct sdr_recv_wr wr = {.size = sizeof(wr), .addr = mem, .length = sizeof(mem)};
	struct sdr_recv_info info = {.size = sizeof(info)};
	struct fabric_write w = {.message = START,
				 .addr = bytes,
				 .payload_bytes = 600,
				 .last_bytes = 600,
				 .count = 1};
	struct sdr_recv *recv[2];
	uint64_t word;

	(void)state;
	victim_open(&v, 1, &(const struct sim_device){0});
	until(&v, 5 * NS_PER_S);
	for (int i = 0; i < 2; i++)
		assert_int_equal(sdr_recv_post(v.qp, &wr, &recv[i]), 0);
	payload_message(&v, 1002, START, 600);
	payload_message(&v, 1001, START, 900);
	assert_int_equal(v.qp->live->rx.payload, 600);
	w.qp = v.liar;
	assert_int_equal(v.f[0]->ops->post(v.f[0], &w, 1), 1);
	until(&v, NS_PER_MS);
	payload_message(&v, 1003, START, 900);
	for (int i = 0; i < 2; i++) {
		sdr_recv_query(recv[i], &info);
		assert_int_equal(info.payload_bytes, i ? 900 : 600);
		assert_int_equal(info.error, i ? 0 : -SDR_E_ABORTED);
		assert_int_equal(sdr_recv_pkts_get(recv[i], 0, 4, &word), !i);
	}
	assert_int_equal(sdr_recv_complete(recv[0]), -SDR_E_ABORTED);
	/* Behind the base, after an early complete: heeded and echoed all the same. */
	assert_int_equal(sdr_recv_complete(recv[1]), 0);
	payload_message(&v, 1004, START, 64);
	assert_int_equal(v.qp->live->rx.payload, 64);
	victim_close(&v);
}

/* What came back in a while, to somebody who answers nothing. */
static uint64_t comes_back(struct victim *v, uint64_t ns)
{
	static struct fabric_event ev[32];
	uint64_t limit = sim_now(v->sim) + ns, bytes = 0;

	while (sim_now(v->sim) < limit) {
		int n;

		assert_true(sdr_progress(v->ctx) >= 0);
		while ((n = v->f[0]->ops->poll(v->f[0], ev, 32)) > 0) {
			for (int i = 0; i < n; i++)
				bytes += ev[i].type == FABRIC_EV_CTRL ? ev[i].len : 0;
		}
		sim_advance(v->sim, sim_now(v->sim) + NS_PER_MS / 4);
	}
	return bytes;
}

/*
 * Whoever has a token can name any address as theirs until a nonce proves it: questions get
 * answers there that are hardly larger than they are, but for the first grants.
 */
static void no_loudspeaker(void **state)
{
	static struct victim v;
	static uint8_t mem[16];
	struct sdr_recv_wr wr = {.size = sizeof(wr), .addr = mem, .length = sizeof(mem)};
	uint8_t want[4], train[4], data[SDR_MAX_CTRL_BYTES] = {0};
	struct wire_train t = {.count = 1};
	struct sdr_recv *recv[16];
	uint64_t back;

	(void)state;
	victim_open(&v, 1, &(const struct sim_device){0});
	v.qp->live->trains = true;
	for (int i = 0; i < 16; i++)
		assert_int_equal(sdr_recv_post(v.qp, &wr, &recv[i]), 0);
	assert_true(comes_back(&v, 5 * NS_PER_MS) > 16 * 4); /* the grants, once */
	assert_int_equal(sdr_qp_state_get(v.qp), SDR_QP_CONNECTED);
	(void)comes_back(&v, 200 * NS_PER_MS);
	put_be32(want, START);
	back = 0;
	for (uint32_t i = 0; i < 100; i++) {
		liar_datagram(&v, WIRE_MSG_WANT, want, sizeof(want));
		back += comes_back(&v, NS_PER_MS / 2);
	}
	assert_true(back <= 100 * (WIRE_CTRL_BODY_HDR_BYTES + WIRE_MSG_HDR_BYTES + sizeof(want)));
	back = 0;
	(void)wire_train_put(train, sizeof(train), &t);
	for (uint32_t i = 0; i < 100; i++) {
		liar_datagram(&v, WIRE_MSG_TRAIN, train, sizeof(train));
		back += comes_back(&v, NS_PER_MS / 2);
	}
	assert_true(back <= 100 * (WIRE_CTRL_BODY_HDR_BYTES + WIRE_MSG_HDR_BYTES + sizeof(train)));
	back = 0;
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(sdr_ctrl_send(v.qp, WIRE_MSG_ACK, data, sizeof(data), 0), 0);
		back += comes_back(&v, NS_PER_MS / 2);
	}
	assert_true(back <= 1000);
	/* Once it answers, all is told. */
	until(&v, 2 * NS_PER_S);
	assert_true(v.qp->live->proven);
	liar_datagram(&v, WIRE_MSG_WANT, want, sizeof(want));
	assert_true(comes_back(&v, NS_PER_MS) > 16 * 4);
	for (int i = 0; i < 16; i++)
		(void)sdr_recv_complete(recv[i]);
	victim_close(&v);
}

/* Does it hold such a message? head: the first bytes of it, or NULL. */
static bool says(const struct fabric_event *ev, uint8_t type, uint8_t head[8])
{
	struct wire_msgs it;
	struct wire_msg msg;
	uint64_t token, number;

	if (ev->type != FABRIC_EV_CTRL || wire_ctrl_begin(ev->data, ev->len, &it, &token, &number))
		return false;
	while (wire_ctrl_next(&it, &msg) == 1) {
		if (msg.type != type)
			continue;
		if (head)
			memcpy(head, msg.body, 8);
		return true;
	}
	return false;
}

/* One channel is proved, the other's address may be anybody's: the first hears what that asks. */
static void a_channel_of_somebody_else(void **state)
{
	static struct victim v;
	static struct fabric_event ev[32];
	static uint8_t mem[16];
	struct sdr_recv_wr wr = {.size = sizeof(wr), .addr = mem, .length = sizeof(mem)};
	struct sdr_recv *recv[16];
	unsigned int grants[2] = {0};
	uint8_t want[4];

	(void)state;
	victim_channels = 2;
	victim_open(&v, 1, &(const struct sim_device){0});
	victim_channels = 1;
	until(&v, 2 * NS_PER_S);
	assert_true(v.qp->live->channel[0].answered && !v.qp->live->channel[1].answered);
	for (int i = 0; i < 16; i++)
		assert_int_equal(sdr_recv_post(v.qp, &wr, &recv[i]), 0);
	put_be32(want, START);
	for (uint32_t i = 0; i < 20 * 32; i++) {
		int n;

		if (i % 32 == 0) /* each has its answer */
			liar_on(&v, 1, ++v.number, i / 32 % 2 ? WIRE_MSG_WANT : WIRE_MSG_PING,
				i / 32 % 2 ? want : (const uint8_t *)"12345678",
				i / 32 % 2 ? 4 : 8);
		assert_true(sdr_progress(v.ctx) >= 0);
		n = v.f[0]->ops->poll(v.f[0], ev, 32);
		for (int k = 0; k < n; k++)
			grants[ev[k].channel] += says(&ev[k], WIRE_MSG_CTS, NULL);
		sim_advance(v.sim, sim_now(v.sim) + NS_PER_MS / 4);
	}
	assert_true(grants[0] >= 10 && grants[1] == 0);
	for (int i = 0; i < 16; i++)
		(void)sdr_recv_complete(recv[i]);
	victim_close(&v);
}

/* The victim's question, if one came: its nonce. */
static bool was_asked(struct victim *v, uint8_t nonce[8])
{
	static struct fabric_event ev[32];
	bool asked = false;
	int n = v->f[0]->ops->poll(v->f[0], ev, 32);

	for (int i = 0; i < n; i++)
		asked |= says(&ev[i], WIRE_MSG_PING, nonce);
	return asked;
}

static void answer(struct victim *v, const uint8_t nonce[8])
{
	uint8_t pong[12] = {0};

	memcpy(pong, nonce, 8);
	liar_numbered(v, ++v->number, WIRE_MSG_PONG, pong, sizeof(pong));
}

/* From another address: of somebody who knows nothing of it. */
static void move_away(struct victim *v)
{
	assert_int_equal(sim_nat_rebind(v->sim, 0), 0);
}

static void takes_in(struct victim *v)
{
	sim_advance(v->sim, sim_now(v->sim) + NS_PER_MS);
	assert_true(sdr_progress(v->ctx) >= 0);
	sim_advance(v->sim, sim_now(v->sim) + NS_PER_MS);
}

/*
 * What an address of the liar's was asked is answered with somebody else's as the sender; in
 * its place, after datagrams that the victim throws away took that; and all of it at once.
 */
static void another_address_answers(void **state)
{
	static struct victim v;

	(void)state;
	for (int how = 0; how < 3; how++) {
		struct sdr_qp_info info = {.size = sizeof(info)};
		uint8_t nonce[8];

		victim_open(&v, 1, &(const struct sim_device){0});
		until(&v, 2 * NS_PER_S);
		assert_true(v.qp->live->proven);
		assert_int_equal(sim_nat_set(v.sim, 0, 0, 0), 0);
		liar_numbered(&v, ++v.number, WIRE_MSG_PING, "abcdefgh", 8);
		takes_in(&v);
		assert_true(was_asked(&v, nonce));
		if (how == 2)
			answer(&v, nonce);
		if (how) {
			move_away(&v);
			liar_numbered(&v, 1, WIRE_MSG_PING, "abcdefgh", 8); /* seen before */
		}
		move_away(&v);
		answer(&v, nonce);
		takes_in(&v);
		(void)sdr_qp_query(v.qp, &info);
		assert_true(info.path_changes == 0);
		/* Asked itself, it may. */
		assert_true(was_asked(&v, nonce));
		answer(&v, nonce);
		takes_in(&v);
		(void)sdr_qp_query(v.qp, &info);
		assert_true(info.path_changes == 1);
		victim_close(&v);
	}
}

/* ---- without memory ---- */

struct scarce {
	int64_t left; /* allocations until the one that fails */
	int64_t held;
	bool failed;
};

static void *scarce_zalloc(void *arg, size_t bytes)
{
	struct scarce *s = arg;

	if (s->left-- == 0) {
		s->failed = true;
		return NULL;
	}
	s->held++;
	return alloc_zeroed(&sdr_alloc_system, bytes);
}

static void scarce_free(void *arg, void *p)
{
	((struct scarce *)arg)->held--;
	alloc_free(&sdr_alloc_system, p);
}

/* Again after the one failure; no other error is known here. */
#define RETRIED(call)                                    \
	do {                                             \
		int once = (call);                       \
		if (once)                                \
			assert_int_equal(once, -ENOMEM); \
		if (once)                                \
			assert_int_equal((call), 0);     \
	} while (0)

static void two_progress(struct sim *sim, struct sdr_ctx *const ctx[2], uint64_t ns)
{
	uint64_t limit = sim_now(sim) + ns;

	while (sim_now(sim) < limit) {
		uint64_t at = u64_min(limit, sim_next_event_ns(sim));

		for (int i = 0; i < 2; i++)
			assert_true(sdr_progress(ctx[i]) >= 0);
		for (int i = 0; i < 2; i++)
			at = u64_min(at, sdr_next_deadline_ns(ctx[i]));
		sim_advance(sim, at);
	}
}

static void scarce_traffic(struct sim *sim, struct sdr_ctx *const ctx[2],
			   struct sdr_qp *const qp[2])
{
	static uint8_t src[200000], dst[200000];
	struct sdr_send_wr swr = {.size = sizeof(swr), .length = sizeof(src), .addr = src};
	struct sdr_recv_wr rwr = {.size = sizeof(rwr), .length = sizeof(dst), .addr = dst};
	struct sdr_ctrl ctrl = {.size = sizeof(ctrl)};
	struct sdr_send *send[2];
	struct sdr_recv *recv[2];
	int got;

	for (int i = 0; i < 2; i++)
		RETRIED(sdr_recv_post(qp[1], &rwr, &recv[i]));
	if (!sdk_is_rocev2(ctx[0]))
		assert_int_equal(sdr_qp_payload_set(qp[0], 700), 0);
	RETRIED(sdr_send_post(qp[0], &swr, &send[0]));
	RETRIED(sdr_ctrl_send(qp[0], 200, "hello", 5, SDR_CHANNEL_ANY));
	two_progress(sim, ctx, 5 * NS_PER_S);
	/* The receive may have lost its memory to the change of payload; then it says so. */
	got = sdr_recv_complete(recv[0]);
	assert_true(got == 1 || got == -ENOMEM);
	(void)sdr_ctrl_recv(qp[1], &ctrl); /* may have been dropped, like any other */
	RETRIED(sdr_send_post(qp[0], &swr, &send[1]));
	two_progress(sim, ctx, 5 * NS_PER_S);
	got = sdr_recv_complete(recv[1]);
	assert_true(got == 1 || got == -ENOMEM);
	two_progress(sim, ctx, NS_PER_S);
	for (int i = 0; i < 2; i++) {
		struct sdr_send_info info = {.size = sizeof(info)};

		sdr_send_query(send[i], &info);
		assert_true(info.remote_done);
		sdr_send_release(send[i]);
	}
}

/* Returns whether an allocation failed on the way. */
static bool scarce_run(int64_t nth, const struct sim_device *device)
{
	struct scarce s = {.left = nth};
	const struct sdr_alloc alloc = {scarce_zalloc, scarce_free, &s};
	struct fabric *f[2];
	struct sdr_ctx *ctx[2];
	struct sdr_qp *qp[2];
	uint8_t info[2][SDR_MAX_INFO_BYTES];
	int len[2];
	struct sim *sim;

	assert_int_equal(sim_create(1, &sdr_alloc_system, &sim), 0);
	for (int i = 0; i < 2; i++) {
		struct sdr_ctx_attr ca = {.size = sizeof(ca), .listen = i == 1};
		struct sim_fabric_attr sa = {.device = *device};

		assert_int_equal(sim_host_add(sim), i);
		assert_int_equal(sim_fabric_open(sim, i, &sa, &f[i]), 0);
		RETRIED(sdk_ctx_open(f[i], &ca, &alloc, &ctx[i]));
		sim_fabric_addr(f[i], &ctx[i]->local_addr);
		RETRIED(sdr_qp_create(ctx[i], NULL, &qp[i]));
		len[i] = sdr_qp_info_get(qp[i], info[i], sizeof(info[i]));
	}
	for (int i = 1; i >= 0; i--)
		RETRIED(sdr_qp_connect(qp[i], info[1 - i], (size_t)len[1 - i], NULL));
	two_progress(sim, ctx, 3 * NS_PER_S);
	scarce_traffic(sim, ctx, qp);
	for (int i = 0; i < 2; i++)
		sdr_ctx_destroy(ctx[i]);
	sim_destroy(sim);
	assert_int_equal(s.held, 0);
	return s.failed;
}

static void memory_fails_once(void **state)
{
	static const struct sim_device devices[] = {{0}, {.rocev2 = true, .nic = true}};

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(devices); i++) {
		int64_t n = 0;

		while (scarce_run(n, &devices[i]))
			n++;
		print_message("%lld allocations, each failed once\n", (long long)n);
		assert_true(n > 15);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lying_peer),
		cmocka_unit_test(a_lying_peer_on_a_nic),
		cmocka_unit_test(payloads_out_of_order),
		cmocka_unit_test(no_loudspeaker),
		cmocka_unit_test(a_channel_of_somebody_else),
		cmocka_unit_test(another_address_answers),
		cmocka_unit_test(memory_fails_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

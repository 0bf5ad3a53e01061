/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios of a peer that lies: a bare fabric QP that has the victim's token, so that its
 * packets are sealed well and say anything. It may spoil what is its own; nothing else.
 */
#include "liar.h"

#include "sdk/internal.h"
#include "wire/ack.h"

#include <stdio.h>
#include <string.h>

static struct fabric *fabric_of(const struct lab *l, int end)
{
	return l->p.ctx[end]->fabric;
}

static void line(struct lab *l)
{
	lab_line(l, 100 * MBIT, 40 * MS);
	l->attr.rate_bps = 90 * MBIT;
}

void liar_say(struct liar *v, uint8_t type, const void *body, size_t len)
{
	uint8_t buf[FABRIC_CTRL_MAX];
	int put = wire_msg_put(buf + WIRE_CTRL_BODY_HDR_BYTES,
			       sizeof(buf) - WIRE_CTRL_BODY_HDR_BYTES, type, body, len);

	assert_true(put > 0);
	(void)wire_ctrl_body_put(buf, sizeof(buf), v->token, ++v->number);
	(void)v->f->ops->ctrl(v->qp, 0, 0, buf, WIRE_CTRL_BODY_HDR_BYTES + (size_t)put);
	v->said_bytes += wire_ctrl_packet_bytes(WIRE_CTRL_BODY_HDR_BYTES + (size_t)put);
}

/* The victim is end 1, a connection; the liar stands for its peer, on host 0. */
void liar_open(struct lab *l, struct liar *v)
{
	struct fabric_qp_attr fa = {.channels = 1};
	struct sim_fabric_attr sa = {0};
	struct fabric_peer peer = {.active = true};
	struct wire_blob blob;
	uint8_t info[SDR_MAX_INFO_BYTES];
	int len;

	line(l);
	l->link[0].rate_bps = l->link[0].queue_bytes = 0; /* it has all the room to lie */
	lab_open(l);
	v->l = l;
	assert_int_equal(sdr_conn_open(l->p.net[1], &l->attr, &l->p.conn[1]), 0);
	len = sdr_conn_blob_get(l->p.conn[1], info, sizeof(info));
	assert_int_equal(wire_blob_get(info, (size_t)len, &blob), 0);
	assert_int_equal(sim_fabric_open(l->world, l->p.host[0], &sa, &v->f), 0);
	assert_int_equal(v->f->ops->qp_create(v->f, &fa, &v->qp), 0);
	v->f->ops->qp_local(v->qp, &v->local);
	peer.qpn = blob.qpn;
	peer.token = v->token = blob.token;
	peer.start_psn = v->start_psn = blob.psn;
	sim_fabric_addr(fabric_of(l, 1), &peer.addr);
	blob.qpn = v->local.qpn;
	blob.token = v->local.token;
	blob.psn = v->local.start_psn;
	blob.listen = 0;
	len = wire_blob_put(info, sizeof(info), &blob);
	assert_true(len > 0);
	assert_int_equal(sdr_conn_blob_set(l->p.conn[1], info, (size_t)len, NULL), 0);
	assert_int_equal(v->f->ops->qp_connect(v->qp, &peer), 0);
	l->start_ns = lab_now(l);
	liar_say(v, WIRE_MSG_PING, "12345678", 8);
}

static void liar_hear(struct liar *v)
{
	static struct fabric_event ev[64];
	int n;

	while ((n = v->f->ops->poll(v->f, ev, 64)) > 0) {
		for (int i = 0; i < n; i++) {
			struct wire_msgs it;
			struct wire_msg msg;
			uint64_t token, number;

			if (ev[i].type != FABRIC_EV_CTRL)
				continue;
			v->heard_bytes += wire_ctrl_packet_bytes(ev[i].len);
			assert_int_equal(
				wire_ctrl_begin(ev[i].data, ev[i].len, &it, &token, &number), 0);
			while (wire_ctrl_next(&it, &msg) == 1) {
				uint8_t pong[12] = {0};

				if (msg.type != WIRE_MSG_PING || v->mute)
					continue;
				memcpy(pong, msg.body, 8);
				liar_say(v, WIRE_MSG_PONG, pong, sizeof(pong));
			}
		}
	}
}

void liar_run(struct liar *v, uint64_t ns)
{
	uint64_t until = lab_now(v->l) + ns;

	while (lab_now(v->l) < until) {
		liar_hear(v);
		lab_step(v->l, until);
	}
	liar_hear(v);
}

void liar_up(struct liar *v)
{
	while (!v->l->p.events[1][SDR_EV_CONNECTED])
		liar_run(v, MS);
	liar_run(v, 100 * MS);
}

void liar_close(struct lab *l, struct liar *v)
{
	struct lab_flow *f = l->nflows ? &l->flow[0] : NULL;

	l->done_ns = lab_now(l);
	if (f)
		f->may_fail = true;
	sdr_conn_destroy(l->p.conn[1]);
	l->p.conn[1] = NULL;
	if (f)
		f->conn[0] = f->conn[1] = NULL;
	lab_run(l, lab_now(l) + MS);
	v->f->ops->close(v->f);
	lab_drop(l);
}

/* Grants the first n messages of the victim, of so many bytes each. */
void liar_grant(struct liar *v, uint32_t n, uint64_t length, uint64_t odd)
{
	struct wire_cts cts = {.granted_upto = n, .first = 0, .n = (uint8_t)n};
	uint8_t body[SDR_MAX_CTRL_BYTES];
	int len;

	for (uint32_t i = 0; i < n; i++)
		cts.entries[i] = (struct wire_cts_entry){.receive = i,
							 .length = odd && i % 2 ? odd : length};
	len = wire_cts_put(body, sizeof(body), &cts);
	assert_true(len > 0);
	liar_say(v, WIRE_MSG_CTS, body, (size_t)len);
}

static struct sdr_conn_info victim_info(const struct lab *l)
{
	return lab_info(l, 1);
}

uint64_t liar_lies(const struct lab *l)
{
	return l->p.conn[1]->tx.stats.lies;
}

/* An ACK of packets [first, first + n) of a message, the newest PSN that many after the first. */
static void acknowledge(struct liar *v, uint32_t message, uint32_t first, uint32_t n,
			uint32_t newest, uint64_t received)
{
	static uint64_t ones[1 << 12];
	struct wire_ack_channel fact = {.id = 0,
					.flags = WIRE_ACK_PSN_VALID,
					.newest_psn = (v->start_psn + newest) & 0xffffff,
					.received = received};
	struct wire_ack_enc enc;
	uint8_t body[SDR_MAX_CTRL_BYTES];

	memset(ones, 0xff, sizeof(ones));
	assert_int_equal(wire_ack_begin(&enc, body, sizeof(body), 0, 1), 0);
	(void)wire_ack_window_from_bits(&enc, message, first, n, ones);
	assert_int_equal(wire_ack_channel_put(&enc, &fact), 0);
	liar_say(v, CONN_CTRL_ACK, body, (size_t)wire_ack_end(&enc));
}

/* The writes of the victim to the liar: flow with nobody at the other end. */
struct lab_flow *liar_victim_writes(struct lab *l, uint32_t n, uint64_t size)
{
	struct lab_flow *f = lab_flow(l, 1, n, size, n);

	f->conn[1] = NULL;
	return f;
}

/*
 * The receiver acknowledges what was not sent yet, ever further ahead, as if all had arrived
 * at once: that must not make the sender faster than its rate, nor end a write.
 */
void optimistic_ack(struct lab *l)
{
	struct liar v = {0};
	struct lab_flow *f;
	uint64_t before, sent;

	l->attr.rate_bps = 0;
	liar_open(l, &v);
	l->attr.rate_bps = 0;
	liar_up(&v);
	f = liar_victim_writes(l, 4, 2 * MIB);
	liar_grant(&v, 4, 2 * MIB, 0);
	liar_run(&v, 60 * MS);
	before = liar_lies(l);
	for (uint32_t i = 1; i <= 400; i++) {
		uint32_t ahead = (uint32_t)victim_info(l).tx_pkts + 50 * i;

		acknowledge(&v, 0, 0, ahead < 1460 ? ahead : 1460, ahead, ahead);
		acknowledge(&v, 3, 0, 1460, ahead, ahead);
		liar_run(&v, 2 * MS);
	}
	sent = victim_info(l).tx_pkts;
	assert_true(liar_lies(l) > before);
	assert_int_equal(f->ended[0], 0);
	/* 0.8 s at the line's rate would be 6,600 packets. */
	snprintf(l->note, sizeof(l->note), "%llu packets sent, %llu lies seen",
		 (unsigned long long)sent, (unsigned long long)(liar_lies(l) - before));
	assert_true(sent < 6600);
	liar_close(l, &v);
}

/*
 * It acknowledges packets that are under way, all of which a hole in the path eats: the sender
 * cannot know. Writes do not end for it, and nothing of what was acknowledged is sent again.
 */
void optimistic_hole(struct lab *l)
{
	struct liar v = {0};
	struct lab_flow *f;

	liar_open(l, &v);
	liar_up(&v);
	f = liar_victim_writes(l, 4, 2 * MIB);
	liar_grant(&v, 4, 2 * MIB, 0);
	for (uint32_t i = 0; i < 400; i++) {
		uint32_t sent = (uint32_t)victim_info(l).tx_pkts;

		if (sent)
			acknowledge(&v, 0, 0, sent < 1460 ? sent : 1460, sent - 1, sent);
		liar_run(&v, 2 * MS);
	}
	assert_int_equal(f->ended[0], 0);
	assert_true(victim_info(l).tx_pkts <= 3 * 4 * 2 * MIB / LAB_PAYLOAD);
	liar_close(l, &v);
}

/* Windows of chunks that cannot be: past a message's end, of messages that never were. */
void bitmap_lie(struct lab *l)
{
	struct liar v = {0};
	struct lab_flow *f;

	liar_open(l, &v);
	liar_up(&v);
	f = liar_victim_writes(l, 4, 100000);
	liar_grant(&v, 4, 100000, 0);
	for (uint32_t i = 0; i < 2000; i++) {
		uint32_t message = rng_next(&l->rng) & 1 ? (uint32_t)rng_below(&l->rng, 6)
							 : (uint32_t)rng_next(&l->rng);
		uint32_t first = rng_next(&l->rng) & 1 ? (uint32_t)rng_below(&l->rng, 100)
						       : (uint32_t)rng_next(&l->rng) / 2;

		acknowledge(&v, message, first, 1 + (uint32_t)rng_below(&l->rng, 200000),
			    (uint32_t)rng_next(&l->rng), rng_next(&l->rng));
		if (i % 4 == 0)
			liar_run(&v, MS);
		rel_tx_check(&l->p.conn[1]->tx);
	}
	assert_int_equal(f->ended[0], 0);
	snprintf(l->note, sizeof(l->note), "%llu lies seen", (unsigned long long)liar_lies(l));
	assert_true(liar_lies(l) > 100);
	liar_close(l, &v);
}

void liar_throw(struct liar *v, uint32_t message, uint64_t offset, const uint8_t *bytes,
		uint32_t last, uint32_t count)
{
	struct fabric_write w = {.qp = v->qp,
				 .message = message,
				 .offset = offset,
				 .addr = bytes,
				 .payload_bytes = LAB_PAYLOAD,
				 .last_bytes = last,
				 .count = count};

	(void)v->f->ops->post(v->f, &w, 1);
}

/*
 * Packets whose place is outside the receive, beside a packet's boundary or past 2^63; then the
 * right ones: the receive has all of its bytes, and nothing beside it was touched.
 */
void oversize_offset(struct lab *l)
{
	const uint32_t size = 10 * LAB_PAYLOAD + 100;
	static uint8_t junk[4 * LAB_PAYLOAD];
	struct liar v = {0};
	struct lab_flow *f;
	uint64_t refused;

	liar_open(l, &v);
	liar_up(&v);
	f = lab_flow(l, 0, 1, size, 1);
	f->conn[0] = NULL;
	f->conn[1] = l->p.conn[1];
	memset(junk, 0x11, sizeof(junk));
	liar_run(&v, 10 * MS);
	for (uint32_t i = 0; i < 4000; i++) {
		uint64_t wild = rng_next(&l->rng) >> rng_below(&l->rng, 60);

		if (wild % LAB_PAYLOAD == 0 && wild < size)
			continue;
		liar_throw(&v, 0, wild, junk, LAB_PAYLOAD, 1 + (uint32_t)rng_below(&l->rng, 4));
		liar_throw(&v, 1 + (uint32_t)rng_next(&l->rng) / 2, 0, junk, LAB_PAYLOAD, 1);
		/* Too long for its place, or shorter where it is not the last. */
		liar_throw(&v, 0, 10 * LAB_PAYLOAD, junk, LAB_PAYLOAD, 1);
		if (i % 16 == 0)
			liar_run(&v, MS);
	}
	liar_run(&v, 100 * MS);
	refused = lab_counter(l, 1, SDR_CTR_rx_range);
	assert_true(refused > 4000);
	assert_int_equal(lab_counter(l, 1, SDR_CTR_rx_pkts), 0);
	liar_throw(&v, 0, 0, f->src, 100, 11);
	liar_run(&v, 100 * MS);
	assert_int_equal(f->good[1], 1);
	snprintf(l->note, sizeof(l->note), "%llu packets refused, %llu of no message",
		 (unsigned long long)refused,
		 (unsigned long long)lab_counter(l, 1, SDR_CTR_rx_late));
	liar_close(l, &v);
}

/*
 * One PING from an address that never answers: what comes back there in a minute, in bytes of UDP
 * payload for each byte. arg: the most; receives that are posted, which are granted at once.
 */
void amplification(struct lab *l)
{
	struct liar v = {.mute = true};
	struct lab_flow *f;

	liar_open(l, &v);
	f = lab_flow(l, 0, (uint32_t)l->arg[1], KIB, (uint32_t)l->arg[1]);
	f->conn[0] = NULL;
	f->conn[1] = l->p.conn[1];
	f->may_fail = true;
	liar_run(&v, 60 * SEC);
	assert_int_equal(l->p.events[1][SDR_EV_DEAD], 1);
	snprintf(l->note, sizeof(l->note), "%llu bytes for %llu", (unsigned long long)v.heard_bytes,
		 (unsigned long long)v.said_bytes);
	if ((double)v.heard_bytes > l->arg[0] * (double)v.said_bytes)
		fail_msg("%s came back", l->note);
	liar_close(l, &v);
}

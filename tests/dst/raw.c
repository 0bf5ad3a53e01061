/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The load on the SDK itself, between the same hosts: one-shots and streams, receives that
 * are completed early or given up, cancels, handles released at once, payloads that change,
 * resets, numbers that wrap, control messages. Bits only rise and what they stand for is
 * right, at any time.
 */
#include "dst.h"

#include "base/bits.h"
#include "sdk/internal.h"
#include <errno.h>
#include <string.h>

#define CTRL_TYPE 200u
#define TIRED_NS (400 * MS)
#define BIT_WORDS 64u
#define CTRL_MOST 4096u

struct msg {
	uint64_t len, room;
	uint32_t imm;
	bool oneshot, posted, cancelled, gone; /* gone: the sender is done with it */
	struct sdr_send *send;
	uint64_t next_ns;
	uint8_t *src, *buf;
	struct sdr_recv *recv;
	uint8_t *mem;
	uint64_t posted_ns, sum;
	uint32_t imm_pkts;
	uint64_t bits[BIT_WORDS];
	bool rposted, completed;
	bool consume; /* what has arrived is used at once: a byte that comes again is seen */
	int result;
};

struct flow {
	int from; /* end */
	struct msg m[DST_MSGS_MAX];
	uint32_t n, nsent, nrecv;
	uint32_t ctrl_sent;
	uint64_t ctrl_had[CTRL_MOST / 64];
};

struct dst_raw {
	struct dst_world *w;
	unsigned int id;
	uint32_t host[2];
	struct sdr_qp *qp[2];
	struct flow flow[2];
	uint32_t nflows;
	uint32_t base; /* both directions' numbers begin here */
	bool over, reset;
};

/* ---- making one ---- */

static uint32_t number_draw(struct dst_world *w)
{
	static const uint32_t around[] = {0, UINT32_MAX, 0x7fffffff};
	uint32_t i = (uint32_t)dst_below(w, 3);

	dst_site(SITE_raw_wrap, i == 1);
	return around[i] - (i ? (uint32_t)dst_below(w, 20) : 0);
}

static uint32_t payload_draw(struct dst_world *w, const struct dst_host *h)
{
	return h->rdma ? 1024u << dst_below(w, 3) : 64 + (uint32_t)dst_below(w, 1373);
}

static void flow_make(struct dst_raw *r, struct flow *f)
{
	struct dst_world *w = r->w;

	f->n = 1 + (uint32_t)dst_below(w, DST_MSGS_MAX);
	for (uint32_t i = 0; i < f->n; i++) {
		struct msg *m = &f->m[i];

		m->len = dst_size_draw(w, UINT64_C(256) << dst_below(w, 3), 8) % 50000;
		m->room = m->len + (dst_chance(w, 0.5) ? dst_below(w, 4000) : 0);
		if (m->len && w->on[F_TOO_LONG] && dst_chance(w, 0.1))
			m->room = m->len - 1;
		m->imm = 1000 * i + 7;
		m->oneshot = dst_chance(w, 0.4);
		m->src = dst_alloc(m->len);
		m->buf = dst_alloc(m->len);
		m->mem = dst_alloc(m->room + 2 * DST_CANARY);
		dst_fill(m->src, m->len, rng_next(&w->rng));
		if (m->len)
			memcpy(m->buf, m->src, m->len);
		memset(m->mem, DST_FILL, m->room + 2 * DST_CANARY);
	}
}

static bool qps_make(struct dst_raw *r)
{
	struct dst_world *w = r->w;
	uint8_t info[2][SDR_MAX_INFO_BYTES];
	int len[2], err;

	for (int i = 0; i < 2; i++) {
		const struct dst_host *h = &w->host[r->host[i]];
		struct sdr_qp_attr a = {.size = sizeof(a), .channels = 1};

		if (w->on[F_CHANNELS])
			a.channels += (uint32_t)dst_below(w, 4);
		a.chunk_pkts = 1u << dst_below(w, 7);
		a.messages = 1u << dst_below(w, 6);
		a.max_payload_bytes = payload_draw(w, h);
		if (dst_chance(w, 0.3))
			a.rate_bps = UINT64_C(1) << (17 + dst_below(w, 20));
		err = sdr_qp_create(h->raw, &a, &r->qp[i]);
		DST_CHECK(w, !err, "sdr_qp_create: %d", err);
		len[i] = sdr_qp_info_get(r->qp[i], info[i], sizeof(info[i]));
		DST_CHECK(w, len[i] > 0, "sdr_qp_info_get: %d", len[i]);
	}
	r->base = number_draw(w);
	for (int i = 1; i >= 0; i--) {
		err = sdr_qp_connect(r->qp[i], info[1 - i], (size_t)len[1 - i], NULL);
		DST_CHECK(w, !err, "sdr_qp_connect: %d", err);
		sdk_qp_numbers_from(r->qp[i], r->base);
	}
	return true;
}

void dst_raw_init(struct dst_world *w)
{
	uint32_t want = w->on[F_RAW] ? 1 + (uint32_t)dst_below(w, DST_RAW_MAX) : 0;

	for (uint32_t tries = 0; w->nraw < want && tries < 12; tries++) {
		uint32_t a = (uint32_t)dst_below(w, w->nhosts);
		uint32_t b = (uint32_t)dst_below(w, w->nhosts);
		const struct dst_host *ha = &w->host[a], *hb = &w->host[b];
		struct dst_raw *r;

		if (a == b || !ha->raw || !hb->raw || ha->rdma != hb->rdma ||
		    !(ha->listen || hb->listen))
			continue;
		r = dst_alloc(sizeof(*r));
		*r = (struct dst_raw){.w = w, .id = w->nraw, .host = {a, b}};
		qps_make(r);
		r->nflows = 1 + (uint32_t)dst_below(w, 2);
		for (uint32_t i = 0; i < r->nflows; i++) {
			r->flow[i].from = (int)i;
			flow_make(r, &r->flow[i]);
		}
		w->raw[w->nraw++] = r;
	}
}

/* ---- the sender ---- */

static void buf_free(struct msg *m)
{
	if (m->buf)
		memset(m->buf, 0xee, m->len);
	dst_free(m->buf);
	m->buf = NULL;
}

static void send_drop(struct msg *m)
{
	sdr_send_release(m->send);
	m->send = NULL;
	m->gone = true;
}

static void send_start(struct dst_raw *r, struct flow *f)
{
	struct dst_world *w = r->w;
	struct msg *m = &f->m[f->nsent];
	struct sdr_send_wr wr = {.size = sizeof(wr),
				 .opcode = SDR_OP_WRITE_IMM,
				 .imm = m->imm,
				 .length = m->len,
				 .addr = m->buf};
	int err;

	if (dst_chance(w, 0.6))
		wr.mr = w->host[r->host[f->from]].raw_mr;
	err = m->oneshot ? sdr_send_post(r->qp[f->from], &wr, &m->send)
			 : sdr_send_stream_start(r->qp[f->from], &wr, &m->send);
	if (err == -EAGAIN || (err == -ENOMEM && w->on[F_NOMEM]))
		return;
	DST_CHECK(w, !err, "sdr_send_post: %d", err);
	m->posted = true;
	f->nsent++;
	if (m->oneshot && dst_chance(w, 0.15)) {
		send_drop(m);
		dst_site(SITE_raw_released, 1);
	}
}

/* Once round the message in pieces, from anywhere. */
static void stream_round(struct dst_world *w, struct msg *m, const struct sdr_send_info *info)
{
	uint32_t at = (uint32_t)dst_below(w, info->pkts), left = info->pkts;

	while (left) {
		uint64_t offset = (uint64_t)at * info->payload_bytes;
		uint32_t most = left < info->pkts - at ? left : info->pkts - at;
		uint32_t n = 1 + (uint32_t)dst_below(w, most);
		uint64_t len = u64_min((uint64_t)n * info->payload_bytes, m->len - offset);
		struct sdr_continue_attr ca = {.size = sizeof(ca), .channel = SDR_CHANNEL_ANY};
		int64_t got = sdr_send_stream_continue(m->send, offset, len, &ca);

		if (got < 0) {
			DST_CHECK(w, got == -EAGAIN || got == -SDR_E_EARLY || got == -ENOTCONN,
				  "sdr_send_stream_continue: %lld", (long long)got);
			return;
		}
		DST_CHECK(w, ca.pkts >= 1 && (uint64_t)got <= len, "a train of %u packets",
			  ca.pkts);
		left -= left < ca.pkts ? left : ca.pkts;
		at = (at + ca.pkts) % info->pkts;
	}
}

static void send_turn(struct dst_raw *r, struct msg *m, uint64_t now)
{
	struct dst_world *w = r->w;
	struct sdr_send_info info = {.size = sizeof(info)};
	int done;

	(void)sdr_send_query(m->send, &info);
	DST_CHECK(w, info.length == m->len, "a send forgot its length");
	DST_CHECK(w, !info.granted || !info.recv_length || info.recv_length == m->room,
		  "a send knows a receive of %llu bytes, it has %llu",
		  (unsigned long long)info.recv_length, (unsigned long long)m->room);
	done = sdr_send_poll(m->send);
	if (info.remote_done) {
		DST_CHECK(w, !m->oneshot || done != 0, "a send is done, its buffer is not free");
		send_drop(m);
		buf_free(m);
		return;
	}
	DST_CHECK(w,
		  done == -SDR_E_TOO_LONG || m->len <= m->room || !info.granted || m->cancelled ||
			  !info.payload_bytes,
		  "a message too long goes out: %d", done);
	dst_site(SITE_raw_too_long, done == -SDR_E_TOO_LONG);
	if (w->on[F_CANCEL] && !w->calm && !m->cancelled && dst_chance(w, 0.01)) {
		int err = sdr_send_cancel(m->send);

		DST_CHECK(w, !err, "sdr_send_cancel: %d", err);
		dst_site(SITE_raw_cancel, 1);
		m->cancelled = true;
		buf_free(m);
		return;
	}
	if (m->oneshot && done != 0)
		buf_free(m);
	if (!m->oneshot && m->buf && info.pkts && now >= m->next_ns && done == 0) {
		stream_round(w, m, &info);
		m->next_ns = now + (20 + dst_below(w, 60)) * MS;
	}
}

/* ---- the receiver ---- */

static void recv_post(struct dst_raw *r, struct flow *f, uint64_t now)
{
	struct dst_world *w = r->w;
	struct sdr_qp *qp = r->qp[1 - f->from];
	struct msg *m = &f->m[f->nrecv];
	struct sdr_recv_wr wr = {
		.size = sizeof(wr), .addr = m->mem + DST_CANARY, .length = m->room, .cookie = m};
	struct sdr_qp_info info = {.size = sizeof(info)};
	int err = sdr_recv_post(qp, &wr, &m->recv);

	if (err == -EAGAIN || (err == -ENOMEM && w->on[F_NOMEM])) {
		m->recv = NULL;
		return;
	}
	DST_CHECK(w, !err, "sdr_recv_post: %d", err);
	(void)sdr_qp_query(qp, &info);
	m->imm_pkts = info.imm_packets;
	/* An RDMA NIC has written a duplicate before anybody can look. */
	m->consume =
		!w->host[r->host[1 - f->from]].nic && dst_chance(w, 0.5) && !w->on[F_NO_PAYLOAD];
	m->posted_ns = now;
	m->rposted = true;
	f->nrecv++;
}

static uint64_t packet_bytes(const struct msg *m, uint64_t at, uint32_t payload)
{
	return at < m->len ? u64_min(payload, m->len - at) : 0;
}

/* The application makes something else of a packet's bytes. */
static void consume(struct msg *m, uint32_t i, uint32_t payload)
{
	uint64_t at = (uint64_t)i * payload, n = packet_bytes(m, at, payload);

	for (uint64_t k = 0; m->consume && k < n; k++)
		m->mem[DST_CANARY + at + k] ^= 0xff;
}

static void bytes_check(struct dst_world *w, const struct msg *m, uint32_t i, uint32_t payload)
{
	uint64_t at = (uint64_t)i * payload;

	if (w->on[F_NO_PAYLOAD])
		return;
	/* An empty one that brings a part of the immediate, before the end has come. */
	if (at > m->len && m->oneshot && m->imm_pkts > 1 && i < m->imm_pkts)
		return;
	DST_CHECK(w,
		  at <= m->len && memcmp(m->mem + DST_CANARY + at, m->src + at,
					 packet_bytes(m, at, payload)) == 0,
		  "wrong bytes under a set bit (packet %u)", i);
}

/* What was used stays as it was left: nothing is written under a bit that is set. */
static void consumed_check(struct dst_world *w, struct msg *m, uint32_t payload)
{
	for (uint32_t i = 0; m->consume && i < 64 * BIT_WORDS; i++) {
		if (!(m->bits[i / 64] >> i % 64 & 1))
			continue;
		consume(m, i, payload);
		bytes_check(w, m, i, payload);
	}
}

/* What is set stays set and is right. Returns whether all is there. */
static bool look(struct dst_raw *r, struct msg *m, struct sdr_recv_info *info)
{
	struct dst_world *w = r->w;
	uint64_t words[BIT_WORDS] = {0};
	int64_t n;

	(void)sdr_recv_query(m->recv, info);
	DST_CHECK(w, info->pkts <= 64 * BIT_WORDS, "%u packets", info->pkts);
	n = sdr_recv_pkts_get(m->recv, 0, info->pkts, words);
	DST_CHECK(w, n >= 0, "sdr_recv_pkts_get: %lld", (long long)n);
	for (uint32_t k = 0; k < (info->pkts + 63) / 64; k++) {
		uint64_t fresh = words[k] & ~m->bits[k];

		DST_CHECK(w, info->error || !(m->bits[k] & ~words[k]) || info->end_known,
			  "bits fell");
		for (; fresh; fresh &= fresh - 1) {
			uint32_t i = k * 64 + (uint32_t)__builtin_ctzll(fresh);

			bytes_check(w, m, i, info->payload_bytes);
			consume(m, i, info->payload_bytes);
		}
		m->bits[k] |= words[k];
	}
	return info->end_known && n == (int64_t)info->pkts;
}

static void recv_finish(struct dst_raw *r, struct flow *f, struct msg *m, bool whole,
			const struct sdr_recv_info *info, bool give_up)
{
	struct dst_world *w = r->w;
	bool nic = w->host[r->host[1 - f->from]].nic;
	int expect = info->error ? info->error : give_up ? -ECANCELED : whole;

	consumed_check(w, m, info->payload_bytes);
	m->result = give_up ? sdr_recv_give_up(m->recv) : sdr_recv_complete(m->recv);
	/* What lies in a NIC is taken as the receive ends. */
	whole = whole || (nic && m->result == 1);
	DST_CHECK(w, m->result == expect || (nic && m->result == 1),
		  "sdr_recv_complete: %d, not %d", m->result, expect);
	if (whole && !w->on[F_NO_PAYLOAD])
		DST_CHECK(w, !m->len || !memcmp(m->mem + DST_CANARY, m->src, m->len),
			  "a whole message is wrong");
	for (uint64_t i = 0; i < DST_CANARY; i++)
		DST_CHECK(w, m->mem[i] == DST_FILL && m->mem[DST_CANARY + m->room + i] == DST_FILL,
			  "a byte outside a receive was written");
	for (uint64_t i = w->on[F_NO_PAYLOAD] ? 0 : whole ? m->len : m->room; i < m->room; i++)
		DST_CHECK(w, m->mem[DST_CANARY + i] == DST_FILL, "written behind the message");
	dst_site(whole ? SITE_raw_done : SITE_raw_early, 1);
	dst_site(SITE_raw_give_up, give_up);
	dst_site(SITE_raw_aborted, info->error == -SDR_E_ABORTED);
	dst_trace(w, (uint64_t)(int64_t)m->result ^ (uint64_t)m->imm << 32);
	m->recv = NULL;
	m->completed = true;
	m->sum = dst_checksum(m->mem, m->room + 2 * DST_CANARY);
	dst_poison(m->mem, m->room + 2 * DST_CANARY);
}

/* Software fills some packets itself: as a decoder would, with the right bytes. */
static void fill_some(struct dst_raw *r, struct msg *m, const struct sdr_recv_info *info)
{
	struct dst_world *w = r->w;
	uint64_t mask = 0;
	uint32_t first = (uint32_t)dst_below(w, info->pkts);
	uint32_t pkt = info->payload_bytes;

	if ((uint64_t)(first + 1) * pkt > m->len || info->error || m->len > m->room)
		return;
	if (sdr_recv_fill_begin(m->recv, first, 1, &mask) || !mask)
		return;
	if (!w->on[F_NO_PAYLOAD])
		memcpy(m->mem + DST_CANARY + (uint64_t)first * pkt, m->src + (uint64_t)first * pkt,
		       pkt);
	(void)sdr_recv_fill_end(m->recv, first, mask);
	dst_site(SITE_raw_fill, 1);
}

static void recv_turn(struct dst_raw *r, struct flow *f, struct msg *m, uint64_t now)
{
	struct dst_world *w = r->w;
	struct sdr_recv_info info = {.size = sizeof(info)};
	bool whole = look(r, m, &info);
	/* Nobody repeats a one-shot. */
	bool tired = w->calm && m->posted && m->oneshot && now > m->posted_ns + TIRED_NS;
	bool early = !w->calm && dst_chance(w, 0.005);
	uint32_t imm;

	DST_CHECK(w, !whole || info.length == m->len, "a whole message has another length");
	DST_CHECK(w, !info.error || info.error == -SDR_E_ABORTED || info.error == -ENOMEM,
		  "a receive has an error: %d", info.error);
	DST_CHECK(w, sdr_recv_imm_get(m->recv, &imm) || imm == m->imm, "a wrong immediate");
	if (info.error || early || (whole && dst_chance(w, 0.7)) || tired)
		recv_finish(r, f, m, whole, &info, early && dst_chance(w, 0.5));
	else if (!whole && dst_chance(w, 0.02))
		fill_some(r, m, &info);
}

/* ---- turns ---- */

/* The QP is in error: what is left is finished by each end for itself. */
static void settle(struct dst_raw *r)
{
	for (uint32_t k = 0; k < r->nflows; k++) {
		struct flow *f = &r->flow[k];

		for (uint32_t i = 0; i < f->n; i++) {
			struct msg *m = &f->m[i];
			struct sdr_recv_info info = {.size = sizeof(info)};

			if (m->recv && r->qp[1 - f->from]) {
				bool whole = look(r, m, &info);

				recv_finish(r, f, m, whole, &info, false);
			}
			for (int asked = 0; m->send && sdr_send_poll(m->send) == 0; asked++)
				DST_CHECK(r->w, asked < 1000, "a dead send holds its buffer");
			/* If its handle was released before: it stays as long as the QP. */
			if (m->send) {
				send_drop(m);
				buf_free(m);
			}
			m->recv = NULL;
		}
	}
	r->over = true;
}

static void reset_both(struct dst_raw *r)
{
	struct sdr_send_wr swr = {.size = sizeof(swr)};
	struct sdr_send *send;

	for (int i = 0; i < 2; i++) {
		if (!r->qp[i])
			continue;
		(void)sdr_qp_reset(r->qp[i], 3);
		DST_CHECK(r->w, sdr_qp_state_get(r->qp[i]) == SDR_QP_ERROR, "reset, no error");
		DST_CHECK(r->w, sdr_send_post(r->qp[i], &swr, &send) == -SDR_E_RESET,
			  "a QP that was reset takes sends");
	}
	settle(r);
}

/* A control message may be lost or overtaken; it comes once, and as it was sent. */
static void ctrl_check(struct dst_world *w, struct flow *f, const struct sdr_ctrl *in)
{
	uint32_t n = in->len >= 4 ? get_be32(in->body) : UINT32_MAX;

	DST_CHECK(w, in->type == CTRL_TYPE && n < f->ctrl_sent && in->len == 4 + n % 61,
		  "a control message of type %u, %u bytes, number %u", in->type, in->len, n);
	for (uint32_t i = 4; i < in->len; i++)
		DST_CHECK(w, in->body[i] == (n & 0xff), "control message %u is torn", n);
	DST_CHECK(w, !(f->ctrl_had[n / 64] >> n % 64 & 1), "control message %u came twice", n);
	f->ctrl_had[n / 64] |= UINT64_C(1) << n % 64;
	dst_site(SITE_raw_ctrl, 1);
}

static void ctrl_turn(struct dst_raw *r, struct flow *f)
{
	struct dst_world *w = r->w;
	uint8_t body[64];
	struct sdr_ctrl in = {.size = sizeof(in)};

	if (!w->calm && f->ctrl_sent < CTRL_MOST && dst_chance(w, 0.1)) {
		memset(body, (int)(f->ctrl_sent & 0xff), sizeof(body));
		put_be32(body, f->ctrl_sent);
		if (!sdr_ctrl_send(r->qp[f->from], CTRL_TYPE, body, 4 + f->ctrl_sent % 61,
				   SDR_CHANNEL_ANY))
			f->ctrl_sent++;
	}
	while (sdr_ctrl_recv(r->qp[1 - f->from], &in) == 1)
		ctrl_check(w, f, &in);
}

static void flow_turn(struct dst_raw *r, struct flow *f, uint64_t now)
{
	struct dst_world *w = r->w;
	bool from_awake = dst_host_awake(w, &w->host[r->host[f->from]]);
	bool to_awake = dst_host_awake(w, &w->host[r->host[1 - f->from]]);

	if (from_awake && f->nsent < f->n && (w->calm || dst_chance(w, 0.5)))
		send_start(r, f);
	if (to_awake && f->nrecv < f->n && dst_chance(w, w->host[r->host[1 - f->from]].recv_chance))
		recv_post(r, f, now);
	for (uint32_t i = 0; i < f->n; i++) {
		if (from_awake && f->m[i].send)
			send_turn(r, &f->m[i], now);
		if (to_awake && f->m[i].recv)
			recv_turn(r, f, &f->m[i], now);
	}
	if (from_awake && to_awake)
		ctrl_turn(r, f);
}

static void raw_turn(struct dst_raw *r)
{
	struct dst_world *w = r->w;
	uint64_t now = dst_now(w);

	if (r->over)
		return;
	for (int i = 0; i < 2; i++) {
		if (r->qp[i] && sdr_qp_state_get(r->qp[i]) != SDR_QP_ERROR)
			continue;
		reset_both(r);
		return;
	}
	for (uint32_t i = 0; i < r->nflows; i++)
		flow_turn(r, &r->flow[i], now);
	if (w->calm)
		return;
	if (w->on[F_RAW_PAYLOAD] && dst_chance(w, 0.05)) {
		int end = (int)dst_below(w, 2);

		if (!sdr_qp_payload_set(r->qp[end], payload_draw(w, &w->host[r->host[end]])))
			dst_site(SITE_raw_payload, 1);
	}
	if (w->on[F_RAW_RESET] && dst_chance(w, 0.003)) {
		(void)sdr_qp_reset(r->qp[dst_below(w, 2)], 1);
		r->reset = true;
		dst_site(SITE_raw_reset, 1);
	}
}

void dst_raw_turn(struct dst_world *w)
{
	for (uint32_t i = 0; i < w->nraw; i++)
		raw_turn(w->raw[i]);
}

static bool flow_left(const struct flow *f)
{
	if (f->nsent < f->n || f->nrecv < f->n)
		return true;
	for (uint32_t i = 0; i < f->n; i++)
		if (f->m[i].send || f->m[i].recv)
			return true;
	return false;
}

bool dst_raw_left(const struct dst_world *w)
{
	for (uint32_t i = 0; i < w->nraw; i++)
		for (uint32_t k = 0; !w->raw[i]->over && k < w->raw[i]->nflows; k++)
			if (flow_left(&w->raw[i]->flow[k]))
				return true;
	return false;
}

/* Its QPs go with its context; the other end is reset by hand, as an application would. */
void dst_raw_host_gone(struct dst_world *w, struct dst_host *h)
{
	for (uint32_t i = 0; i < w->nraw; i++) {
		struct dst_raw *r = w->raw[i];

		for (int end = 0; end < 2; end++) {
			if (r->host[end] != (uint32_t)h->id || !r->qp[end])
				continue;
			if (!r->over)
				reset_both(r);
			for (int k = 0; k < 2; k++) {
				sdr_qp_destroy(r->qp[k]);
				r->qp[k] = NULL;
			}
		}
	}
}

void dst_raw_check(struct dst_world *w)
{
	for (uint32_t i = 0; i < w->nraw; i++) {
		struct dst_raw *r = w->raw[i];

		for (uint32_t k = 0; k < r->nflows; k++) {
			struct flow *f = &r->flow[k];

			for (uint32_t n = 0; n < f->n; n++) {
				struct msg *m = &f->m[n];

				dst_unpoison(m->mem, m->room + 2 * DST_CANARY);
				DST_CHECK(w,
					  !m->completed ||
						  dst_checksum(m->mem, m->room + 2 * DST_CANARY) ==
							  m->sum,
					  "raw receive %u: written after its end", n);
			}
			if (r->over)
				continue;
			/* Both know that all is over: no number is taken on either end. */
			DST_CHECK(w,
				  r->qp[f->from]->live->tx.base == r->base + f->n &&
					  r->qp[1 - f->from]->live->rx.base == r->base + f->n &&
					  r->qp[f->from]->live->tx.aborts == 0,
				  "raw QP %u: numbers are still taken", r->id);
		}
	}
}

void dst_raw_fini(struct dst_world *w)
{
	for (uint32_t i = 0; i < w->nraw; i++) {
		struct dst_raw *r = w->raw[i];

		for (int end = 0; end < 2; end++)
			sdr_qp_destroy(r->qp[end]);
		for (uint32_t k = 0; k < r->nflows; k++) {
			for (uint32_t n = 0; n < r->flow[k].n; n++) {
				dst_free(r->flow[k].m[n].src);
				dst_free(r->flow[k].m[n].buf);
				dst_free(r->flow[k].m[n].mem);
			}
		}
		dst_free(r);
	}
}

static void dump_msg(const struct msg *m, uint32_t n)
{
	struct sdr_send_info s = {.size = sizeof(s)};
	struct sdr_recv_info r = {.size = sizeof(r)};

	if (!m->send && !m->recv)
		return;
	fprintf(stderr, "  %u: %llu bytes, room %llu%s%s\n", n, (unsigned long long)m->len,
		(unsigned long long)m->room, m->oneshot ? ", one-shot" : "",
		m->cancelled ? ", cancelled" : "");
	if (m->send) {
		(void)sdr_send_query(m->send, &s);
		fprintf(stderr, "    sending: granted %u done %u payload %u packets %u, poll %d\n",
			s.granted, s.remote_done, s.payload_bytes, s.pkts, sdr_send_poll(m->send));
	}
	if (m->recv) {
		(void)sdr_recv_query(m->recv, &r);
		fprintf(stderr, "    receiving: payload %u packets %u (end known: %u), error %d\n",
			r.payload_bytes, r.pkts, r.end_known, r.error);
	}
}

void dst_raw_dump(const struct dst_world *w)
{
	for (uint32_t i = 0; i < w->nraw; i++) {
		const struct dst_raw *r = w->raw[i];

		for (uint32_t k = 0; k < r->nflows && !r->over; k++) {
			const struct flow *f = &r->flow[k];

			if (!flow_left(f))
				continue;
			fprintf(stderr, "raw QP %u, hosts %u to %u: of %u, %u sent, %u received\n",
				r->id, r->host[f->from], r->host[1 - f->from], f->n, f->nsent,
				f->nrecv);
			for (uint32_t n = 0; n < f->n; n++)
				dump_msg(&f->m[n], n);
		}
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random runs over faulty links in virtual time: sizes, losses, bursts, duplicates,
 * reordering, corruption, full devices, changes of payload, cancels before and after the
 * grant, early completes, resets; several QPs and channels, both directions, numbers that
 * wrap. What must hold: a set bit's bytes are right, whole means equal, bits only rise,
 * order never slips, nothing outside a buffer or after its completion is written, a send's
 * buffer is not read once it is said to be free, and each message ends once the faults have
 * stopped.
 *
 * SDR_SEED=n runs one seed, SDR_SEEDS=n that many from 1 on: on "udp" devices, and each
 * RDMA_EVERY-th one again on "roce" and on some kind of "nic" in turn. SDR_DEVICE=name
 * runs all on these.
 */
#include "base/rng.h"
#include "pair.h"
#include "sdk/internal.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define GUARD 32u
#define MAX_QPS 3u
#define MAX_MESSAGES 40u
#define DEFAULT_SEEDS 400u
#define TURN_NS (2 * MS)
#define FAULTS_NS (600 * MS)
#define RDMA_EVERY 3u

struct message {
	uint64_t len, room;
	uint32_t imm;
	bool oneshot, posted, cancelled, released, sent_once, finished;
	struct sdr_send *send;
	uint64_t next_ns; /* when a stream goes round again */
	uint8_t *src;	  /* what it is */
	uint8_t *buf;	  /* where it is sent from; NULL once that is free again */
	/* The receiver's. */
	struct sdr_recv *recv;
	uint8_t *mem;
	uint32_t imm_pkts; /* so many carry the immediate */
	uint64_t posted_ns;
	int64_t bits;
	bool completed;
	int result;
};

/* One direction of one QP. */
struct flow {
	struct sdr_qp *from, *to;
	struct sdr_mr *mr; /* of the sender's device */
	struct message m[MAX_MESSAGES];
	uint32_t n, nsent, nrecv;
	bool reset;
};

struct world {
	struct rng rng;
	struct pair p;
	struct sdr_qp *qp[MAX_QPS][2];
	struct flow flow[2 * MAX_QPS];
	uint32_t nqps, nflows;
	uint64_t end_of_faults_ns, turn_ns;
	bool calm, payloads, rocev2;
	struct rng device_rng; /* so that other devices change nothing on "udp" */
};

static uint32_t below(struct world *w, uint32_t n)
{
	return (uint32_t)rng_below(&w->rng, n);
}

static bool chance(struct world *w, double p)
{
	return rng_unit(&w->rng) < p;
}

/* ---- making a world ---- */

static uint64_t some_length(struct world *w)
{
	switch (below(w, 6)) {
	case 0:
		return below(w, 3);
	case 1:
		return 64u * below(w, 100);
	case 2:
		return 1436u * below(w, 20);
	case 3:
		return below(w, 60000);
	default:
		return below(w, 3000);
	}
}

static void make_messages(struct world *w, struct flow *f)
{
	f->n = 1 + below(w, MAX_MESSAGES);
	for (uint32_t i = 0; i < f->n; i++) {
		struct message *m = &f->m[i];

		*m = (struct message){.len = some_length(w), .imm = 1000 * i + 7};
		m->room = chance(w, 0.5) ? m->len : m->len + below(w, 5000);
		if (m->len && chance(w, 0.05))
			m->room = m->len - 1; /* too short for it */
		m->oneshot = chance(w, 0.4);
		m->src = malloc(m->len + 1);
		m->mem = malloc(m->room + 2 * GUARD);
		assert_true(m->src && m->mem);
		for (uint64_t k = 0; k < m->len; k++)
			m->src[k] = (uint8_t)(rng_next(&w->rng) >> 13);
		m->buf = malloc(m->len + 1);
		assert_non_null(m->buf);
		memcpy(m->buf, m->src, m->len);
		memset(m->mem, 0xa5, m->room + 2 * GUARD);
	}
}

static bool lasting(const struct world *w)
{
	return w->p.ctx[0]->caps.late_ns != 0;
}

static void make_links(struct world *w)
{
	for (int to = 0; to < 2; to++) {
		struct sdr_sim_link l = {.size = sizeof(l)};

		l.rate_bps = chance(w, 0.5) ? 0 : 1000000u * (10 + below(w, 10000));
		l.delay_ns = below(w, 20) * MS;
		l.jitter_ns = chance(w, 0.5) ? 0 : below(w, 10) * MS;
		l.loss = chance(w, 0.3) ? 0 : 0.3 * rng_unit(&w->rng);
		l.burst_pkts = chance(w, 0.5) ? 0 : 1 + 8 * rng_unit(&w->rng);
		l.reorder = chance(w, 0.5) ? 0 : 0.3 * rng_unit(&w->rng);
		l.reorder_ns = below(w, 60) * MS;
		l.duplicate = chance(w, 0.5) ? 0 : 0.3 * rng_unit(&w->rng);
		l.corrupt = chance(w, 0.5) ? 0 : 0.05 * rng_unit(&w->rng);
		if (w->rocev2 && !lasting(w)) {
			/* How late an empty packet may be for a NIC: SDK_LATE_EMPTY_NS. */
			l.jitter_ns /= 3;
			l.reorder_ns /= 12;
		}
		assert_int_equal(sdr_sim_link_set(w->p.sim, 1 - to, to, SDR_CHANNEL_ANY, &l), 0);
	}
}

static uint32_t some_number(struct world *w)
{
	static const uint32_t around[] = {0, UINT32_MAX, 0x7fffffff};

	return around[below(w, 3)] - (chance(w, 0.5) ? below(w, 50) : 0);
}

static void connect_qp(struct world *w, struct sdr_qp *const qp[2])
{
	uint32_t number = some_number(w);
	uint8_t info[2][SDR_MAX_INFO_BYTES];
	int len[2];

	for (int i = 0; i < 2; i++)
		len[i] = sdr_qp_info_get(qp[i], info[i], sizeof(info[i]));
	for (int i = 1; i >= 0; i--) {
		assert_int_equal(sdr_qp_connect(qp[i], info[1 - i], (size_t)len[1 - i], NULL), 0);
		sdk_qp_numbers_from(qp[i], number);
	}
}

/* Some device like that. */
static struct sdr_sim_device make_device(struct world *w, const char *like)
{
	static const uint64_t reads[] = {0, 100000, MS, 3 * MS};
	static const uint32_t depths[] = {0, 4, 64};
	struct sdr_sim_device d = {.size = sizeof(d), .like = like};
	struct rng *rng = &w->device_rng;

	w->rocev2 = strcmp(like, "udp") != 0;
	if (w->rocev2)
		d.zero_copy_ns = reads[rng_below(rng, SDR_ARRAY_LEN(reads))];
	if (strcmp(like, "nic") == 0) {
		d.recv_depth = depths[rng_below(rng, SDR_ARRAY_LEN(depths))];
		d.late_ns = rng_below(rng, 3) ? 0 : 100 * MS;
	}
	return d;
}

static uint32_t some_payload(struct world *w)
{
	uint32_t payload = 64 + below(w, 1373);

	return w->rocev2 ? 1024u << rng_below(&w->device_rng, 3) : payload;
}

static void make_world(struct world *w, uint64_t seed, const char *like)
{
	struct sdr_sim_device device;
	uint32_t sockbuf;

	memset(w, 0, sizeof(*w));
	rng_init(&w->rng, seed);
	rng_init(&w->device_rng, seed);
	device = make_device(w, like);
	assert_int_equal(sdr_sim_create(seed, &w->p.sim), 0);
	sockbuf = chance(w, 0.3) ? 4000 + below(w, 50000) : 0;
	for (int i = 0; i < 2; i++) {
		struct sdr_ctx_attr ca = {
			.size = sizeof(ca), .listen = i == 1, .sockbuf_bytes = sockbuf};

		if (w->rocev2)
			ca.max_payload_bytes = 4096;
		assert_int_equal(sdr_sim_host(w->p.sim), i);
		assert_int_equal(sdr_sim_device_set(w->p.sim, i, &device), 0);
		assert_int_equal(sdr_sim_ctx_create(w->p.sim, i, &ca, &w->p.ctx[i]), 0);
		assert_int_equal(sdr_mr_reg(w->p.ctx[i], NULL, SIZE_MAX, 0, &w->p.mr[i]), 0);
	}
	w->nqps = 1 + below(w, MAX_QPS);
	w->payloads = chance(w, 0.5);
	make_links(w);
	for (uint32_t q = 0; q < w->nqps; q++) {
		for (int i = 0; i < 2; i++) {
			struct sdr_qp_attr a = {.size = sizeof(a),
						.channels = 1 + below(w, 4),
						.chunk_pkts = 1u << below(w, 7),
						.messages = 1u << below(w, 7)};

			a.max_payload_bytes = some_payload(w);

			if (chance(w, 0.3))
				a.rate_bps = UINT64_C(1) << (17 + below(w, 40));
			assert_int_equal(sdr_qp_create(w->p.ctx[i], &a, &w->qp[q][i]), 0);
		}
		connect_qp(w, w->qp[q]);
		for (int i = 0; i < 2; i++) {
			struct flow *f = &w->flow[w->nflows];

			if (i == 1 && chance(w, 0.5))
				continue;
			f->from = w->qp[q][i];
			f->to = w->qp[q][1 - i];
			f->mr = w->p.mr[i];
			make_messages(w, f);
			w->nflows++;
		}
	}
	w->end_of_faults_ns = FAULTS_NS;
}

/* ---- the sender ---- */

/* The buffer is ours again: whoever reads it now sends other bytes, or hears of it from ASan. */
static void buf_free(struct message *m)
{
	if (m->buf)
		memset(m->buf, 0xee, m->len);
	free(m->buf);
	m->buf = NULL;
}

static void send_start(struct world *w, struct flow *f)
{
	struct message *m = &f->m[f->nsent];
	struct sdr_send_wr wr = {.size = sizeof(wr),
				 .opcode = SDR_OP_WRITE_IMM,
				 .imm = m->imm,
				 .length = m->len,
				 .addr = m->buf};
	int err;

	if (w->rocev2 && rng_below(&w->device_rng, 4))
		wr.mr = f->mr;
	err = m->oneshot ? sdr_send_post(f->from, &wr, &m->send)
			 : sdr_send_stream_start(f->from, &wr, &m->send);

	if (err == -EAGAIN)
		return;
	assert_int_equal(err, 0);
	m->posted = true;
	f->nsent++;
	if (m->oneshot && chance(w, 0.2)) {
		sdr_send_release(m->send);
		m->send = NULL;
		m->released = true;
	}
}

/* Goes round the message in pieces, from anywhere. */
static void stream_round(struct world *w, struct message *m, const struct sdr_send_info *info)
{
	uint32_t at = below(w, info->pkts), left = info->pkts;

	while (left) {
		uint64_t offset = (uint64_t)at * info->payload_bytes;
		uint32_t n = 1 + below(w, left < info->pkts - at ? left : info->pkts - at);
		uint64_t len = u64_min((uint64_t)n * info->payload_bytes, m->len - offset);
		struct sdr_continue_attr ca = {.size = sizeof(ca), .channel = SDR_CHANNEL_ANY};
		int64_t got = sdr_send_stream_continue(m->send, offset, len, &ca);

		if (got == -EAGAIN)
			return;
		assert_true(got >= 0 && ca.pkts >= 1 && (uint64_t)got <= len);
		left -= left < ca.pkts ? left : ca.pkts;
		at = (at + ca.pkts) % info->pkts;
	}
	m->sent_once = true;
}

static void send_turn(struct world *w, struct message *m, uint64_t now)
{
	struct sdr_send_info info = {.size = sizeof(info)};

	sdr_send_query(m->send, &info);
	assert_int_equal(info.length, m->len);
	if (info.granted && info.recv_length)
		assert_int_equal(info.recv_length, m->room);
	if (info.remote_done) {
		m->finished = true;
		if (m->oneshot && sdr_send_poll(m->send) == 0)
			fail_msg("done, but the buffer is not free");
		sdr_send_release(m->send);
		m->send = NULL;
		m->released = true;
		buf_free(m);
		return;
	}
	if (m->len > m->room && info.granted && !m->cancelled &&
	    sdr_send_poll(m->send) != -SDR_E_TOO_LONG && info.payload_bytes)
		fail_msg("a message longer than its receive got packets");
	if (!w->calm && !m->cancelled && chance(w, 0.002)) {
		assert_int_equal(sdr_send_cancel(m->send), 0);
		m->cancelled = true;
		buf_free(m);
	}
	if (m->oneshot && sdr_send_poll(m->send) != 0)
		buf_free(m);
	if (!m->oneshot && info.pkts && now >= m->next_ns && sdr_send_poll(m->send) == 0) {
		stream_round(w, m, &info);
		m->next_ns = now + (20 + below(w, 60)) * MS;
	}
}

/* ---- the receiver ---- */

static void recv_post(struct flow *f, uint64_t now)
{
	struct message *m = &f->m[f->nrecv];
	struct sdr_recv_wr wr = {
		.size = sizeof(wr), .addr = m->mem + GUARD, .length = m->room, .cookie = m};
	int err = sdr_recv_post(f->to, &wr, &m->recv);

	if (err == -EAGAIN)
		return;
	assert_int_equal(err, 0);
	m->posted_ns = now;
	m->imm_pkts = f->to->imm_pkts;
	f->nrecv++;
}

/* What is set is right. Returns whether all is there. */
static bool look(struct message *m, struct sdr_recv_info *info)
{
	uint64_t words[64];
	int64_t bits;

	sdr_recv_query(m->recv, info);
	assert_true(info->pkts <= 64 * 64);
	bits = sdr_recv_pkts_get(m->recv, 0, info->pkts, words);
	if (bits < m->bits)
		fail_msg("bits fell");
	m->bits = bits;
	for (uint32_t i = 0; i < info->pkts; i++) {
		uint64_t at = (uint64_t)i * info->payload_bytes;

		if (!(words[i / 64] >> i % 64 & 1))
			continue;
		/* An empty one that brings a part of the immediate, before the end has come. */
		if (at > m->len && m->oneshot && m->imm_pkts > 1 && i < m->imm_pkts)
			continue;
		if (at > m->len || memcmp(m->mem + GUARD + at, m->src + at,
					  u64_min(info->payload_bytes, m->len - at)) != 0)
			fail_msg("wrong bytes under a set bit");
	}
	return info->end_known && bits == (int64_t)info->pkts;
}

static bool imm_there(const struct message *m)
{
	uint32_t imm;

	if (sdr_recv_imm_get(m->recv, &imm))
		return false;
	assert_int_equal(imm, m->imm);
	return true;
}

static void recv_finish(struct message *m, bool whole, const struct sdr_recv_info *info)
{
	if (whole) {
		assert_int_equal(info->length, m->len);
		assert_true(imm_there(m) || info->pkts < m->imm_pkts);
		assert_memory_equal(m->mem + GUARD, m->src, m->len);
	}
	m->result = sdr_recv_complete(m->recv);
	assert_int_equal(m->result, info->error ? info->error : whole);
	for (uint64_t i = whole ? m->len : m->room; i < m->room; i++)
		assert_int_equal(m->mem[GUARD + i], 0xa5);
	for (uint64_t i = 0; i < GUARD; i++)
		assert_true(m->mem[i] == 0xa5 && m->mem[GUARD + m->room + i] == 0xa5);
	memset(m->mem, 0x3c, m->room + 2 * GUARD);
	m->recv = NULL;
	m->completed = true;
}

static void recv_turn(struct world *w, struct message *m, uint64_t now)
{
	struct sdr_recv_info info = {.size = sizeof(info)};
	bool whole = look(m, &info);
	/* Nobody repeats a one-shot; and some receivers have had enough. */
	bool tired = m->oneshot && m->posted && now > m->posted_ns + 400 * MS && w->calm;
	bool early = !w->calm && chance(w, 0.003);
	bool enough = whole;

	/* What follows a short one-shot for its immediate may be lost; a stream sends no such. */
	if (whole && m->oneshot && !imm_there(m))
		enough = rng_below(&w->device_rng, 20) == 0;
	if (info.error)
		assert_true(info.error == -SDR_E_ABORTED);
	if (info.error || early || (enough && chance(w, 0.7)) || tired)
		recv_finish(m, whole, &info);
}

/* ---- turns ---- */

static void after_reset(struct flow *f)
{
	struct sdr_send_wr swr = {.size = sizeof(swr)};
	struct sdr_recv_wr rwr = {.size = sizeof(rwr)};
	struct sdr_send *send;
	struct sdr_recv *recv;

	for (int i = 0; i < 2; i++) {
		struct sdr_qp_info info = {.size = sizeof(info)};
		struct sdr_qp *qp = i ? f->to : f->from;

		(void)sdr_qp_reset(qp, 3);
		assert_int_equal(sdr_qp_state_get(qp), SDR_QP_ERROR);
		assert_int_equal(sdr_send_post(qp, &swr, &send), -SDR_E_RESET);
		assert_int_equal(sdr_send_stream_start(qp, &swr, &send), -SDR_E_RESET);
		assert_int_equal(sdr_recv_post(qp, &rwr, &recv), -SDR_E_RESET);
		assert_int_equal(sdr_ctrl_send(qp, 200, NULL, 0, 0), -SDR_E_RESET);
		sdr_qp_query(qp, &info);
		assert_int_equal(sdr_qp_payload_set(qp, info.payload_bytes), -SDR_E_RESET);
		assert_int_equal(sdr_qp_ping(qp), -SDR_E_RESET);
	}
	for (uint32_t i = 0; i < f->n; i++) {
		struct message *m = &f->m[i];
		struct sdr_recv_info info = {.size = sizeof(info)};

		if (m->recv) {
			bool whole = look(m, &info);

			recv_finish(m, whole, &info);
		}
		if (m->send && !m->oneshot)
			assert_true(sdr_send_stream_continue(m->send, 0, 0, NULL) < 0);
		/* Who asks again and again in one instant is answered: the device has read it. */
		for (int asked = 0; m->send && sdr_send_poll(m->send) == 0; asked++)
			assert_true(asked < 1000);
		if (m->send)
			buf_free(m);
		sdr_send_release(m->send);
		m->send = NULL;
	}
}

static bool flow_turn(struct world *w, struct flow *f, uint64_t now)
{
	bool left = f->nsent < f->n || f->nrecv < f->n;

	if (f->reset)
		return false;
	if (sdr_qp_state_get(f->from) == SDR_QP_ERROR || sdr_qp_state_get(f->to) == SDR_QP_ERROR) {
		f->reset = true;
		after_reset(f);
		return false;
	}
	if (f->nsent < f->n && (w->calm || chance(w, 0.4)))
		send_start(w, f);
	if (f->nrecv < f->n && (w->calm || chance(w, 0.4)))
		recv_post(f, now);
	for (uint32_t i = 0; i < f->n; i++) {
		struct message *m = &f->m[i];

		if (m->send)
			send_turn(w, m, now);
		if (m->recv)
			recv_turn(w, m, now);
		left = left || m->send || m->recv;
	}
	if (w->payloads && !w->calm && chance(w, 0.05))
		(void)sdr_qp_payload_set(f->from, 64 + below(w, 1400));
	if (!w->calm && chance(w, 0.0003))
		(void)sdr_qp_reset(chance(w, 0.5) ? f->from : f->to, 1);
	return left;
}

static bool turn(struct world *w)
{
	uint64_t now = sdr_sim_now_ns(w->p.sim);
	bool left = false;

	if (now < w->turn_ns)
		return true;
	w->turn_ns = now + TURN_NS;
	if (!w->calm && now >= w->end_of_faults_ns) {
		const struct sdr_sim_link clean = {.size = sizeof(clean), .delay_ns = 5 * MS};

		w->calm = true;
		pair_link(&w->p, &clean, &clean);
	}
	for (uint32_t i = 0; i < w->nflows; i++)
		left = flow_turn(w, &w->flow[i], now) || left;
	return left || !w->calm;
}

static void run(struct world *w, uint64_t ns, bool until_done)
{
	uint64_t limit = sdr_sim_now_ns(w->p.sim) + ns;
	uint64_t idle_turns = 0, last = 0;

	while (sdr_sim_now_ns(w->p.sim) < limit) {
		for (int i = 0; i < 2; i++)
			assert_true(sdr_progress(w->p.ctx[i]) >= 0);
		if (!turn(w) && until_done)
			return;
		sdr_sim_step(w->p.sim, u64_min(limit, w->turn_ns));
		idle_turns = sdr_sim_now_ns(w->p.sim) == last ? idle_turns + 1 : 0;
		last = sdr_sim_now_ns(w->p.sim);
		if (idle_turns > 1000)
			fail_msg("busy, and time stands still");
	}
	if (until_done)
		fail_msg("not all messages have ended");
}

static void check_end(struct world *w)
{
	for (uint32_t i = 0; i < w->nflows; i++) {
		struct flow *f = &w->flow[i];
		struct sdr_qp_info info = {.size = sizeof(info)};

		for (uint32_t k = 0; k < f->n; k++) {
			struct message *m = &f->m[k];

			for (uint64_t b = 0; m->completed && b < m->room + 2 * GUARD; b++)
				assert_int_equal(m->mem[b], 0x3c);
			if (!f->reset && m->cancelled && m->result != 1)
				assert_true(m->result == -SDR_E_ABORTED || m->result == 0);
			free(m->src);
			free(m->buf);
			free(m->mem);
		}
		if (f->reset)
			continue;
		/* Both know that all is over: no slot is taken on either end. */
		sdr_qp_query(f->from, &info);
		assert_int_equal(f->from->live->tx.base, info.send_next);
		assert_int_equal(f->to->live->rx.base, info.send_next);
		assert_int_equal(f->from->live->tx.aborts, 0);
	}
}

static uint64_t seed_now;
static const char *device_now;

static void one_seed(uint64_t seed, const char *like)
{
	static struct world w;

	seed_now = seed;
	device_now = like;
	make_world(&w, seed, like);
	run(&w, 60 * SEC, true);
	run(&w, SEC, false);
	check_end(&w);
	pair_close(&w.p);
}

static uint64_t env_number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

static void seeds(void **state)
{
	uint64_t first = env_number("SDR_SEED", 1);
	uint64_t n = getenv("SDR_SEED") ? 1 : env_number("SDR_SEEDS", DEFAULT_SEEDS);
	const char *device = getenv("SDR_DEVICE");

	(void)state;
	for (uint64_t s = first; s < first + n; s++) {
		one_seed(s, device ? device : "udp");
		if (!device && s % RDMA_EVERY == 0)
			one_seed(s, s / RDMA_EVERY % 2 ? "nic" : "roce");
	}
	seed_now = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(seeds)};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	if (failed)
		fprintf(stderr, "sdk_random_test: failed at SDR_DEVICE=%s SDR_SEED=%llu\n",
			device_now, (unsigned long long)seed_now);
	return failed;
}

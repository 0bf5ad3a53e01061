/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios of what the ends do: receivers that pause or are slow, applications that say
 * little, peers that crash and come back, many of them at once.
 */
#include "catalogue.h"

#include "sdk/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void line(struct lab *l)
{
	lab_line(l, 100 * MBIT, 40 * MS);
	l->attr.rate_bps = 90 * MBIT;
}

/* ---- slow receivers ---- */

/* Only one end makes progress: its peer is stopped, as by SIGSTOP. */
static void alone(struct lab *l, int end, uint64_t ns)
{
	uint64_t limit = lab_now(l) + ns;
	struct sdr_net *other = l->p.net[1 - end];

	l->p.net[1 - end] = NULL;
	while (lab_now(l) < limit) {
		uint64_t next = u64_min(limit, sdr_net_next_deadline_ns(l->p.net[end]));

		assert_true(sdr_net_progress(l->p.net[end]) >= 0);
		/* What is due at the stopped end stays due: only arrivals move the clock. */
		next = u64_min(next, sim_next_event_ns(l->world));
		sim_advance(l->world, u64_max(lab_now(l) + 1, u64_min(next, limit)));
	}
	l->p.net[1 - end] = other;
}

/* arg: how long the receiver stops, s. The sender must not take it for dead. */
void recv_paused(struct lab *l)
{
	line(l);
	lab_begin(l, 32, 512 * KIB, 8);
	lab_run(l, 300 * MS);
	alone(l, 0, (uint64_t)(l->arg[0] * 1e9));
	lab_finish(l, 60 * SEC);
	l->ideal_ns = lab_ideal_ns(l, 0, 16 * MIB, 0, 1) + l->arg[0] * 1e9;
	lab_close(l);
}

/* arg: so many times slower than the line receives are posted, writes in flight */
void recv_slow(struct lab *l)
{
	struct lab_flow *f;

	line(l);
	f = lab_begin(l, 40, 64 * KIB, (uint32_t)l->arg[1]);
	f->recv_gap_ns = (uint64_t)(64.0 * KIB * 8e9 / lab_rate_bps(l, 0) * l->arg[0]);
	lab_finish(l, 120 * SEC);
	l->ideal_ns = lab_ideal_ns(l, 0, 64 * KIB, 0, 1) + 39.0 * (double)f->recv_gap_ns;
	lab_close(l);
}

/* Writes wait for receives that are posted arg[0] s later. */
void recv_late(struct lab *l)
{
	struct lab_flow *f;

	line(l);
	f = lab_begin(l, 16, 512 * KIB, 16);
	f->recv_gap_ns = 1;
	f->recv_at_ns = (uint64_t)(l->arg[0] * 1e9);
	lab_finish(l, 60 * SEC);
	/* A grant takes half a round trip. */
	l->ideal_ns = l->arg[0] * 1e9 + lab_ideal_ns(l, 0, 8 * MIB, 0, 1) - lab_rtt_ns(l) / 2;
	lab_close(l);
}

/* ---- applications that say little ---- */

/* A write of a KiB every arg[0] ms, the rate unknown; then arg[1] MiB in one piece. */
void app_limited(struct lab *l)
{
	struct lab_flow *f;

	lab_line(l, 100 * MBIT, 40 * MS);
	l->tell_rtt = true;
	f = lab_begin(l, 100, KIB, 100);
	f->recv_gap_ns = (uint64_t)(l->arg[0] * 1e6);
	lab_finish(l, 60 * SEC);
	l->start_ns = lab_now(l);
	lab_flow(l, 0, 1, (uint64_t)l->arg[1] * MIB, 1);
	lab_finish(l, 60 * SEC);
	l->ideal_ns = lab_ideal_ns(l, 0, (uint64_t)l->arg[1] * MIB, 0, 1);
	lab_close(l);
}

/* arg: writes of a KiB, each after the end of the one before; percent lost each way */
void chained(struct lab *l)
{
	uint32_t n = (uint32_t)l->arg[0];
	double both;

	line(l);
	for (int dir = 0; dir < 2; dir++)
		l->link[dir].loss = link_ge_iid(l->arg[1] / 100);
	lab_begin(l, n, KIB, 1);
	lab_finish(l, 600 * SEC);
	/* There and back, each lost with p: 1/(1-p)^2 round trips each. */
	both = (1 - l->arg[1] / 100) * (1 - l->arg[1] / 100);
	l->ideal_ns = (1 + n) * lab_rtt_ns(l) / both;
	lab_close(l);
}

/* arg: s of silence. It stays connected, and costs next to nothing. */
void keep_alive(struct lab *l)
{
	uint64_t before, packets;

	line(l);
	lab_begin(l, 1, KIB, 1);
	lab_finish(l, SEC);
	before = lab_counter(l, 0, SDR_CTR_tx_ctrl) + lab_counter(l, 1, SDR_CTR_tx_ctrl);
	lab_run(l, lab_now(l) + (uint64_t)(l->arg[0] * 1e9));
	packets = lab_counter(l, 0, SDR_CTR_tx_ctrl) + lab_counter(l, 1, SDR_CTR_tx_ctrl) - before;
	/* A PING and a PONG each way every 15 s. */
	assert_true((double)packets <= 4 * (l->arg[0] / 15 + 2));
	l->start_ns = lab_now(l);
	lab_flow(l, 0, 1, KIB, 1);
	lab_finish(l, SEC);
	l->ideal_ns =
		1.5 * lab_rtt_ns(l); /* the receive is posted with the write: grant, data, end */
	snprintf(l->note, sizeof(l->note), "%llu control datagrams in %.0f s",
		 (unsigned long long)packets, l->arg[0]);
	lab_close(l);
}

/* ---- peers that go ---- */

/* Gone without a word, as a process that is killed. */
static void crash(struct lab *l, int end)
{
	struct link_attr was = l->link[end];

	l->link[end].cut = true;
	lab_relink(l);
	sdr_net_destroy(l->p.net[end]);
	sdr_mr_dereg(l->p.mr[end]);
	sdr_ctx_destroy(l->p.ctx[end]);
	l->p.net[end] = NULL;
	l->p.mr[end] = NULL;
	l->p.ctx[end] = NULL;
	l->p.conn[end] = NULL;
	for (uint32_t i = 0; i < l->nflows; i++)
		l->flow[i].conn[end != l->flow[i].from] = NULL;
	l->link[end] = was;
	lab_relink(l);
}

/* What a dead peer's operations look like from here. */
static void crashed_end_ops(struct lab_flow *f, bool is_recv)
{
	for (uint32_t i = 0; i < f->posted[is_recv]; i++) {
		struct lab_op *op = &f->op[is_recv][i];

		if (op->done)
			continue;
		op->done = true;
		op->status = -ECANCELED;
		memset(op->mem, 0x3c, f->size + 128);
	}
	f->ended[is_recv] = f->posted[is_recv] = f->n;
}

/*
 * arg: when, in ms from the connection's beginning; 0: a process is killed, and its host says
 * so; else its host is down, and silence has to tell in so many s. Each write ends once.
 */
void peer_crash(struct lab *l)
{
	struct lab_flow *f;
	bool host_down = l->arg[1] > 0;
	uint64_t limit;

	line(l);
	l->attr.dead_after_ns = (uint64_t)(l->arg[1] * 1e9);
	f = lab_begin(l, 8, 512 * KIB, 8);
	f->may_fail = true;
	lab_run(l, (uint64_t)(l->arg[0] * 1e6));
	l->start_ns = lab_now(l);
	for (int dir = 0; dir < 2; dir++)
		l->link[dir].cut = host_down;
	crash(l, 1);
	crashed_end_ops(f, true);
	limit = lab_now(l) + 100 * SEC;
	while (l->p.events[0][SDR_EV_DEAD] + l->p.events[0][SDR_EV_FAILED] == 0) {
		lab_step(l, limit);
		assert_true(lab_now(l) < limit);
	}
	l->done_ns = lab_now(l);
	lab_run(l, lab_now(l) + MS);
	assert_int_equal(f->ended[0], f->posted[0]);
	/* Of a process: what may still be under way has to come first. */
	l->ideal_ns = host_down ? l->arg[1] * 1e9 : 2 * lab_rtt_ns(l);
	snprintf(l->note, sizeof(l->note), "%u of %u writes had ended well", f->good[0], f->n);
	lab_drop(l);
}

static void reborn(struct lab *l, int end)
{
	struct sdr_ctx_attr ca = {.size = sizeof(ca), .listen = end == 1};
	struct sdr_net_attr na = {.size = sizeof(na)};

	assert_int_equal(sdr_sim_ctx_create(l->p.sim, l->p.host[end], &ca, &l->p.ctx[end]), 0);
	na.use_ctx = l->p.ctx[end];
	assert_int_equal(sdr_net_create(&na, &l->p.net[end]), 0);
}

/*
 * The listener crashes amid a transfer and is there again arg[0] ms later, on the same host. A
 * new connection has all of its bandwidth at once, and the old one dies without hurting it.
 * arg[1]: with RoCEv2's one port, or with sockets, where the simulator gives the next one.
 */
void peer_restart(struct lab *l)
{
	struct lab_flow *f, *again;
	struct sdr_conn *old, *conn[2];
	struct sockaddr_storage addr;

	pair_device = l->arg[1] > 0 ? &pair_roce : NULL;
	line(l);
	l->attr.dead_after_ns = 3 * SEC;
	f = lab_begin(l, 32, 512 * KIB, 8);
	addr = l->p.ctx[1]->local_addr;
	f->may_fail = true;
	lab_run(l, 400 * MS);
	crash(l, 1);
	crashed_end_ops(f, true);
	lab_run(l, lab_now(l) + (uint64_t)(l->arg[0] * 1e6));
	reborn(l, 1);
	if (l->arg[1] > 0)
		assert_memory_equal(&addr, &l->p.ctx[1]->local_addr, sizeof(addr));
	old = l->p.conn[0];
	lab_connect(l, conn);
	l->p.conn[1] = conn[1];
	memset(l->seen, 0, sizeof(l->seen));
	again = lab_flow_on(l, conn, 0, 16, 512 * KIB, 8);
	lab_finish(l, 60 * SEC);
	assert_int_equal(again->good[1], 16);
	assert_true(f->good[0] < f->n);
	assert_int_equal(l->p.events[0][SDR_EV_DEAD], 1);
	l->done_ns = 0;
	for (uint32_t i = 0; i < again->n; i++)
		l->done_ns = u64_max(l->done_ns, again->op[0][i].done_ns);
	l->ideal_ns = lab_ideal_ns(l, 0, 8 * MIB, 0, 1);
	sdr_conn_destroy(old);
	lab_drop(l);
}

/* picoquic's connection_drop: the client is destroyed; RESET tells the other end at once. */
void connection_drop(struct lab *l)
{
	struct lab_flow *f;

	line(l);
	f = lab_begin(l, 32, 512 * KIB, 8);
	f->may_fail = true;
	lab_run(l, 400 * MS);
	l->start_ns = lab_now(l);
	sdr_conn_destroy(l->p.conn[0]);
	l->p.conn[0] = f->conn[0] = NULL;
	while (!l->p.events[1][SDR_EV_DEAD]) {
		lab_step(l, lab_now(l) + SEC);
		assert_true(lab_now(l) < 60 * SEC);
	}
	l->done_ns = lab_now(l);
	assert_int_equal(l->p.status[1], -SDR_E_RESET);
	lab_run(l, lab_now(l) + 100 * MS);
	for (int is_recv = 0; is_recv < 2; is_recv++)
		assert_int_equal(f->ended[is_recv], f->posted[is_recv]);
	l->ideal_ns = lab_rtt_ns(l) / 2;
	lab_drop(l);
}

/* Closed before anything was said, by an end. The other one has to learn it. arg: the end */
void immediate_close(struct lab *l)
{
	int end = (int)l->arg[0];
	const unsigned int *there = l->p.events[1 - end];

	line(l);
	l->attr.connect_timeout_ns = SEC;
	lab_open(l);
	lab_connect(l, l->p.conn);
	assert_int_equal(sdr_conn_close(l->p.conn[end]), 0);
	while (there[SDR_EV_CLOSED] + there[SDR_EV_DEAD] + there[SDR_EV_FAILED] == 0) {
		lab_step(l, lab_now(l) + SEC);
		assert_true(lab_now(l) < 30 * SEC);
	}
	l->done_ns = lab_now(l);
	assert_int_equal(l->p.events[end][SDR_EV_CLOSED], 1);
	/* Half a round trip: RESET there, or the answer to the first PING. */
	l->ideal_ns = lab_rtt_ns(l) / 2;
	lab_drop(l);
}

/* ---- many ---- */

/* arg: connections, KiB on each, all at once between two hosts */
void many_connections(struct lab *l)
{
	uint32_t n = (uint32_t)l->arg[0];
	struct sdr_conn *conn[LAB_FLOWS][2];

	lab_line(l, 100 * MBIT, 40 * MS);
	l->attr.rate_bps = 90 * MBIT / n;
	l->attr.messages = 16;
	lab_open(l);
	for (uint32_t i = 0; i < n; i++) {
		lab_connect(l, conn[i]);
		lab_flow_on(l, conn[i], i % 2, 2, (uint64_t)l->arg[1] * KIB / 2, 2);
	}
	lab_finish(l, 60 * SEC);
	l->ideal_ns = l->arg[1] * KIB * 8e9 / (90e6 / n) + 2 * lab_rtt_ns(l);
	for (uint32_t i = 0; i < n; i++) {
		for (int end = 0; end < 2; end++)
			sdr_conn_destroy(conn[i][end]);
	}
	lab_drop(l);
}

/* Clients on hosts of their own, and one listener. */
struct client {
	struct sdr_ctx *ctx;
	struct sdr_net *net;
	struct sdr_conn *conn[2];
};

static void client_open(struct lab *l, struct client *c)
{
	struct sdr_ctx_attr ca = {.size = sizeof(ca)};
	struct sdr_net_attr na = {.size = sizeof(na)};
	uint8_t blob[SDR_MAX_INFO_BYTES];
	int host = sdr_sim_host(l->p.sim), len;

	for (int dir = 0; dir < 2; dir++)
		assert_int_equal(sim_link_set(l->world, dir ? l->p.host[1] : host,
					      dir ? host : l->p.host[1], SIM_CHANNEL_ALL,
					      &l->link[dir]),
				 0);
	assert_int_equal(sdr_sim_ctx_create(l->p.sim, host, &ca, &c->ctx), 0);
	na.use_ctx = c->ctx;
	assert_int_equal(sdr_net_create(&na, &c->net), 0);
	assert_int_equal(sdr_conn_open(c->net, &l->attr, &c->conn[0]), 0);
	assert_int_equal(sdr_conn_open(l->p.net[1], &l->attr, &c->conn[1]), 0);
	for (int end = 0; end < 2; end++) {
		len = sdr_conn_blob_get(c->conn[1 - end], blob, sizeof(blob));
		assert_int_equal(sdr_conn_blob_set(c->conn[end], blob, (size_t)len, NULL), 0);
	}
}

/* Progress of all of them; when one of them is due next. */
static uint64_t clients_progress(struct lab *l, struct client *c, uint32_t n)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; i < n; i++) {
		struct sdr_completion done[4];
		struct sdr_event ev = {.size = sizeof(ev)};
		int got;

		done[0].size = sizeof(done[0]);
		assert_true(sdr_net_progress(c[i].net) >= 0);
		while ((got = sdr_net_poll(c[i].net, done, 4)) > 0)
			for (int k = 0; k < got; k++)
				l->p.on_completion(l, 0, &done[k]);
		while (sdr_net_event(c[i].net, &ev) == 1)
			assert_true(ev.type != SDR_EV_DEAD && ev.type != SDR_EV_FAILED);
		next = u64_min(next, sdr_net_next_deadline_ns(c[i].net));
	}
	return next;
}

/* arg: clients, KiB from each. Each has a line of 10 Mbit/s to the listener. */
void many_clients(struct lab *l)
{
	uint32_t n = (uint32_t)l->arg[0];
	struct client c[LAB_FLOWS];
	uint64_t limit = 60 * SEC;

	lab_line(l, 10 * MBIT, 40 * MS);
	l->attr.rate_bps = 9 * MBIT;
	l->attr.messages = 16;
	lab_open(l);
	for (uint32_t i = 0; i < n; i++) {
		client_open(l, &c[i]);
		lab_flow_on(l, c[i].conn, 0, 4, (uint64_t)l->arg[1] * KIB / 4, 2);
	}
	while (!lab_is_done(l)) {
		uint64_t next = clients_progress(l, c, n);

		assert_true(lab_now(l) < limit);
		lab_step(l, u64_min(next, limit));
	}
	l->done_ns = lab_now(l);
	l->ideal_ns = l->arg[1] * KIB * 8e9 / 9e6 + 2 * lab_rtt_ns(l);
	for (uint32_t i = 0; i < n; i++) {
		sdr_net_destroy(c[i].net);
		sdr_ctx_destroy(c[i].ctx);
	}
	lab_drop(l);
}

/* ---- memory that goes ---- */

/*
 * A receive is cancelled amid its packets and its memory unmapped as soon as the completion was
 * taken: who still wrote there would die.
 */
void unmapped(struct lab *l)
{
	uint64_t size = 4 * MIB;
	struct sdr_op_wr wr = {.size = sizeof(wr), .length = size};
	uint8_t *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *src = calloc(1, size);
	struct sdr_op *op;

	assert_true(mem != MAP_FAILED && src);
	line(l);
	lab_open(l);
	lab_connect(l, l->p.conn);
	l->p.on_completion = NULL;
	while (!l->p.events[0][SDR_EV_CONNECTED] || !l->p.events[1][SDR_EV_CONNECTED])
		lab_step(l, lab_now(l) + SEC);
	wr.addr = mem;
	assert_int_equal(sdr_conn_recv_post(l->p.conn[1], &wr, &op), 0);
	wr.addr = src;
	assert_int_equal(sdr_write_post(l->p.conn[0], &wr, NULL), 0);
	lab_run(l, lab_now(l) + 200 * MS);
	assert_true(lab_counter(l, 1, SDR_CTR_rx_pkts) > 100);
	assert_int_equal(sdr_op_cancel(op), 0);
	assert_int_equal(munmap(mem, size), 0);
	l->start_ns = lab_now(l);
	while (lab_counter(l, 1, SDR_CTR_rx_late) == 0)
		lab_step(l, lab_now(l) + MS);
	l->done_ns = lab_now(l);
	l->ideal_ns = 0;
	lab_drop(l);
	free(src);
}

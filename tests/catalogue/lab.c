/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver of lab.h.
 */
#include "lab.h"
#include "sdk/internal.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 64u
#define GUARD_BYTE 0xa5
#define OVER_BYTE 0x3c /* what a receive's memory is filled with once it was compared */
#define LOOK_EVERY 64u /* steps between looks at bits and memory */
#define HEAP_BOUND (24 * MIB)

uint64_t lab_now(const struct lab *l)
{
	return pair_now(&l->p);
}

void lab_line(struct lab *l, uint64_t rate_bps, uint64_t rtt_ns)
{
	uint64_t bdp = (uint64_t)((double)rate_bps * (double)rtt_ns / 8e9);

	for (int dir = 0; dir < 2; dir++)
		l->link[dir] = (struct link_attr){.rate_bps = rate_bps,
						  .delay_ns = rtt_ns / 2,
						  .queue_bytes = u64_max(bdp, 64 * LAB_IP_BYTES)};
}

void lab_relink(struct lab *l)
{
	for (int dir = 0; dir < 2; dir++)
		assert_int_equal(sim_link_set(l->world, l->p.host[dir], l->p.host[1 - dir],
					      SIM_CHANNEL_ALL, &l->link[dir]),
				 0);
}

/* ---- operations ---- */

static bool all_are(const uint8_t *p, uint8_t value, uint64_t n)
{
	return n == 0 || (p[0] == value && memcmp(p, p + 1, n - 1) == 0);
}

static const uint8_t *source_of(const struct lab_flow *f, uint32_t number)
{
	return f->src + (size_t)number * 8;
}

static void compared(const struct lab_flow *f, struct lab_op *op)
{
	uint8_t *mem = op->mem;

	assert_true(all_are(mem, GUARD_BYTE, GUARD));
	assert_true(all_are(mem + GUARD + f->size, GUARD_BYTE, GUARD));
	if (op->status == 0)
		assert_memory_equal(mem + GUARD, source_of(f, op->number), f->size);
	memset(mem, OVER_BYTE, f->size + 2 * GUARD);
}

static void on_completion(void *arg, int end, const struct sdr_completion *c)
{
	struct lab_op *op = c->cookie;
	struct lab_flow *f;

	assert_non_null(op);
	f = op->flow;
	assert_ptr_equal(f->lab, arg);
	assert_false(op->done);
	assert_int_equal(op->is_recv, c->is_recv);
	assert_int_equal(end, op->is_recv ? 1 - f->from : f->from);
	op->done = true;
	op->status = c->status;
	op->done_ns = c->done_ns;
	if (c->status && !f->may_fail)
		fail_msg("operation %u ended with %d, %s", op->number, c->status,
			 sdr_strerror(c->status));
	if (c->status == 0)
		assert_int_equal(c->length, f->size);
	if (op->is_recv)
		compared(f, op);
	f->ended[op->is_recv]++;
	f->good[op->is_recv] += c->status == 0;
}

static int op_post(struct lab_flow *f, bool is_recv)
{
	uint32_t number = f->posted[is_recv];
	struct lab_op *op = &f->op[is_recv][number];
	struct sdr_op_wr wr = {.size = sizeof(wr), .length = f->size, .cookie = op};
	int err;

	wr.deadline_ns = f->deadline_ns ? lab_now(f->lab) + f->deadline_ns : 0;
	if (is_recv && !op->mem) {
		op->mem = malloc(f->size + 2 * GUARD);
		assert_non_null(op->mem);
		memset(op->mem, GUARD_BYTE, f->size + 2 * GUARD);
	}
	wr.addr = is_recv ? op->mem + GUARD : (uint8_t *)(uintptr_t)source_of(f, number);
	err = is_recv ? sdr_conn_recv_post(f->conn[1], &wr, NULL)
		      : sdr_write_post(f->conn[0], &wr, NULL);
	if (err == -EAGAIN || err == -ENOTCONN) /* no room, or not connected yet */
		return err;
	if (err && !f->may_fail)
		fail_msg("posting %s %u: %s", is_recv ? "receive" : "write", number,
			 sdr_strerror(err));
	f->posted[is_recv]++;
	if (err) {
		op->done = true;
		op->status = err;
		f->ended[is_recv]++;
		if (is_recv)
			memset(op->mem, OVER_BYTE, f->size + 2 * GUARD);
	}
	return err;
}

static bool may_post(const struct lab_flow *f, bool is_recv)
{
	if (f->posted[is_recv] >= f->n || f->posted[is_recv] - f->ended[is_recv] >= f->depth)
		return false;
	return !is_recv || !f->recv_gap_ns || lab_now(f->lab) >= f->recv_at_ns;
}

static void flow_post(struct lab_flow *f)
{
	for (int is_recv = 1; is_recv >= 0; is_recv--) {
		while (f->conn[is_recv] && may_post(f, is_recv)) {
			if (op_post(f, is_recv))
				break;
			if (is_recv)
				f->recv_at_ns = lab_now(f->lab) + f->recv_gap_ns;
		}
	}
}

struct lab_flow *lab_flow_on(struct lab *l, struct sdr_conn *const conn[2], int from, uint32_t n,
			     uint64_t size, uint32_t depth)
{
	struct lab_flow *f = &l->flow[l->nflows++];
	uint64_t bytes = size + 8 * (uint64_t)n;

	assert_true(l->nflows <= LAB_FLOWS);
	*f = (struct lab_flow){.lab = l,
			       .conn = {conn[from], conn[1 - from]},
			       .from = from,
			       .size = size,
			       .n = n,
			       .depth = depth};
	f->src = malloc(bytes);
	assert_non_null(f->src);
	for (uint64_t i = 0; i < bytes; i += 8) {
		uint64_t word = rng_next(&l->rng);

		memcpy(f->src + i, &word, u64_min(8, bytes - i));
	}
	for (int is_recv = 0; is_recv < 2; is_recv++) {
		f->op[is_recv] = calloc(n, sizeof(*f->op[is_recv]));
		assert_non_null(f->op[is_recv]);
		for (uint32_t i = 0; i < n; i++)
			f->op[is_recv][i] =
				(struct lab_op){.flow = f, .number = i, .is_recv = is_recv};
	}
	return f;
}

struct lab_flow *lab_flow(struct lab *l, int from, uint32_t n, uint64_t size, uint32_t depth)
{
	return lab_flow_on(l, l->p.conn, from, n, size, depth);
}

/* ---- the world ---- */

/* sdr_sim keeps the world first: sdk/simctx.c. */
static struct sim *world_of(const struct sdr_sim *sim)
{
	struct sim *world;

	memcpy(&world, sim, sizeof(world));
	return world;
}

static uint64_t heap_bytes(void)
{
	struct mallinfo2 mi = mallinfo2();

	return mi.uordblks + mi.hblkhd;
}

void lab_open(struct lab *l)
{
	struct pair *p = &l->p;

	rng_init(&l->rng, l->seed);
	assert_int_equal(sdr_sim_create(l->seed, &p->sim), 0);
	l->world = world_of(p->sim);
	for (int end = 0; end < 2; end++)
		p->host[end] = sdr_sim_host(p->sim);
	lab_relink(l);
	for (int end = 0; end < 2; end++) {
		struct sdr_ctx_attr ca = {.size = sizeof(ca), .listen = end == 1};
		struct sdr_net_attr na = {.size = sizeof(na)};

		assert_int_equal(sdr_sim_device_set(p->sim, p->host[end], pair_device), 0);
		assert_int_equal(sdr_sim_ctx_create(p->sim, p->host[end], &ca, &p->ctx[end]), 0);
		na.use_ctx = p->ctx[end];
		assert_int_equal(sdr_net_create(&na, &p->net[end]), 0);
	}
	p->on_completion = on_completion;
	p->arg = l;
	l->attr.size = sizeof(l->attr);
}

void lab_connect(struct lab *l, struct sdr_conn *conn[2])
{
	uint8_t blob[2][SDR_MAX_INFO_BYTES];
	int len[2];

	for (int end = 0; end < 2; end++) {
		struct sdr_conn_attr attr = l->attr;

		attr.no_decode = l->no_decode[end];
		attr.parity_bytes = l->parity_bytes[end];
		assert_int_equal(sdr_conn_open(l->p.net[end], &attr, &conn[end]), 0);
		len[end] = sdr_conn_blob_get(conn[end], blob[end], sizeof(blob[end]));
		assert_true(len[end] > 0);
	}
	for (int end = 0; end < 2; end++) {
		struct sdr_connect_attr attr = {.size = sizeof(attr)};

		attr.rtt_ns = l->tell_rtt ? (uint64_t)lab_rtt_ns(l) : 0;
		assert_int_equal(
			sdr_conn_blob_set(conn[end], blob[1 - end], (size_t)len[1 - end], &attr),
			0);
	}
	l->start_ns = lab_now(l);
}

struct lab_flow *lab_begin(struct lab *l, uint32_t n, uint64_t size, uint32_t depth)
{
	lab_open(l);
	lab_connect(l, l->p.conn);
	return lab_flow(l, 0, n, size, depth);
}

/* ---- looking ---- */

static void look_at_bits(struct lab *l, int end)
{
	static uint64_t words[1 << 14];
	const struct sdr_qp *qp = l->p.conn[end] ? sdr_conn_qp(l->p.conn[end]) : NULL;
	const struct sdk_rx *rx = qp && qp->live ? &qp->live->rx : NULL;

	if (!rx || !rx->table)
		return;
	for (uint32_t m = rx->base; m != rx->next; m++) {
		const struct sdr_recv *recv = rx_recv(qp, m);
		uint32_t at = m % SDR_MAX_MESSAGES, npkts = rx_slot_of(rx->table, m)->npkts;
		int64_t bits;

		if (recv->state != RECV_POSTED || npkts > sizeof(words) * 8)
			continue;
		bits = sdr_recv_pkts_get(recv, 0, npkts, words);
		assert_true(bits >= 0);
		if (l->seen[end][at].message == m)
			assert_true(bits >= l->seen[end][at].bits);
		l->seen[end][at].message = m;
		l->seen[end][at].bits = bits;
	}
}

static void look_at_memory(struct lab *l)
{
	uint64_t held = heap_bytes(), buffers = 0;

	for (uint32_t i = 0; i < l->nflows; i++) {
		const struct lab_flow *f = &l->flow[i];

		buffers += f->size + 8 * (uint64_t)f->n + f->posted[1] * (f->size + 2 * GUARD) +
			   2 * f->n * sizeof(*f->op[0]);
	}
	held = u64_sub_floor(held, l->heap_base + buffers);
	l->heap_peak = u64_max(l->heap_peak, held);
	if (held > (l->heap_bound ? l->heap_bound : HEAP_BOUND))
		fail_msg("%llu bytes of memory are held at %.3f s", (unsigned long long)held,
			 (double)lab_now(l) / 1e9);
}

void lab_step(struct lab *l, uint64_t limit_ns)
{
	uint64_t next = limit_ns;

	if (!l->steps && !l->heap_base)
		l->heap_base = heap_bytes();
	for (uint32_t i = 0; i < l->nflows; i++) {
		struct lab_flow *f = &l->flow[i];

		flow_post(f);
		if (f->recv_at_ns > lab_now(l) && f->posted[1] < f->n)
			next = u64_min(next, f->recv_at_ns);
	}
	pair_step(&l->p, next);
	if (l->steps++ % LOOK_EVERY)
		return;
	for (int end = 0; end < 2; end++)
		look_at_bits(l, end);
	look_at_memory(l);
	sim_check(l->world);
}

void lab_run(struct lab *l, uint64_t until_ns)
{
	while (lab_now(l) < until_ns)
		lab_step(l, until_ns);
}

/* ---- the end ---- */

bool lab_is_done(const struct lab *l)
{
	for (uint32_t i = 0; i < l->nflows; i++) {
		if (l->flow[i].ended[0] < l->flow[i].n || l->flow[i].ended[1] < l->flow[i].n)
			return false;
	}
	return true;
}

static void dump(const struct lab *l)
{
	for (uint32_t i = 0; i < l->nflows; i++) {
		const struct lab_flow *f = &l->flow[i];

		if (f->ended[0] < f->n || f->ended[1] < f->n)
			fprintf(stderr,
				"flow %u: of %u writes %u posted, %u ended; receives %u posted, "
				"%u ended\n",
				i, f->n, f->posted[0], f->ended[0], f->posted[1], f->ended[1]);
	}
	for (int end = 0; end < 2 && l->p.conn[end]; end++) {
		struct sdr_conn_info s = lab_info(l, end);

		fprintf(stderr,
			"end %d: state %d, rtt %.3f ms, rto %.3f ms, cwnd %llu, pacing %.3f "
			"Mbit/s, "
			"in flight %llu, sent %llu, resent %llu, lost %llu, spurious %llu, probes "
			"%llu, received %llu, duplicates %llu, acks %llu/%llu\n",
			end, s.state, (double)s.rtt_ns / 1e6, (double)s.rto_ns / 1e6,
			(unsigned long long)s.cwnd_bytes, (double)s.pacing_bps / 1e6,
			(unsigned long long)s.inflight_bytes, (unsigned long long)s.tx_pkts,
			(unsigned long long)s.tx_resent_pkts, (unsigned long long)s.tx_lost_pkts,
			(unsigned long long)s.tx_spurious_pkts, (unsigned long long)s.tx_probes,
			(unsigned long long)s.rx_pkts, (unsigned long long)s.rx_duplicate_pkts,
			(unsigned long long)s.acks_sent, (unsigned long long)s.acks_received);
	}
}

void lab_finish(struct lab *l, uint64_t limit_ns)
{
	uint64_t limit = lab_now(l) + limit_ns;

	while (!lab_is_done(l)) {
		if (lab_now(l) >= limit) {
			dump(l);
			fail_msg("not done after %.3f s%s%s", (double)lab_now(l) / 1e9,
				 l->p.text[0][0] ? ": " : "", l->p.text[0]);
		}
		lab_step(l, limit);
	}
	l->done_ns = lab_now(l);
	if (getenv("SDR_VERBOSE"))
		dump(l);
}

static void untouched(const struct lab_flow *f)
{
	for (uint32_t i = 0; i < f->posted[1]; i++) {
		if (f->op[1][i].done && f->op[1][i].mem)
			assert_true(all_are(f->op[1][i].mem, OVER_BYTE, f->size + 2 * GUARD));
	}
}

void lab_drop(struct lab *l)
{
	/* What is still under way comes, and finds nothing to write to. */
	for (uint64_t until = lab_now(l) + 2 * (uint64_t)lab_rtt_ns(l) + 100 * MS;
	     lab_now(l) < until;)
		lab_step(l, until);
	for (uint32_t i = 0; i < l->nflows; i++)
		untouched(&l->flow[i]);
	pair_close(&l->p);
	for (uint32_t i = 0; i < l->nflows; i++) {
		struct lab_flow *f = &l->flow[i];

		for (uint32_t n = 0; n < f->n; n++)
			free(f->op[1][n].mem);
		free(f->op[0]);
		free(f->op[1]);
		free(f->src);
	}
	l->nflows = 0;
}

void lab_close(struct lab *l)
{
	struct pair *p = &l->p;
	uint64_t limit = lab_now(l) + 40 * (uint64_t)lab_rtt_ns(l) + 60 * SEC;

	for (int end = 0; end < 2; end++)
		assert_int_equal(p->events[end][SDR_EV_DEAD] + p->events[end][SDR_EV_FAILED], 0);
	assert_int_equal(sdr_conn_close(p->conn[0]), 0);
	while (!p->events[0][SDR_EV_CLOSED] || !p->events[1][SDR_EV_CLOSED]) {
		lab_step(l, limit);
		assert_true(lab_now(l) < limit);
	}
	lab_drop(l);
}

/* ---- figures ---- */

double lab_rate_bps(const struct lab *l, int from)
{
	double share = (double)l->link[from].rate_bps * LAB_PAYLOAD / LAB_IP_BYTES;

	if (l->attr.rate_bps && (double)l->attr.rate_bps < share)
		return (double)l->attr.rate_bps;
	return share;
}

double lab_rtt_ns(const struct lab *l)
{
	double jitter = (double)l->link[0].jitter_ns + (double)l->link[1].jitter_ns;

	return (double)l->link[0].delay_ns + (double)l->link[1].delay_ns + jitter / 2;
}

double lab_ideal_ns(const struct lab *l, int from, uint64_t bytes, double loss, double burst)
{
	double rate = lab_rate_bps(l, from), rtt = lab_rtt_ns(l);
	/* Bursts of losses in the last round trip: with one or more, another one is needed. */
	double pkts = rate * rtt / 8e9 / LAB_PAYLOAD;
	double bursts = pkts * loss / (burst > 1 ? burst : 1);

	if (pkts * LAB_PAYLOAD > (double)bytes)
		bursts *= (double)bytes / LAB_PAYLOAD / pkts;
	return (double)bytes * 8e9 / rate / (1 - loss) + (2 + (bursts < 1 ? bursts : 1)) * rtt;
}

uint64_t lab_counter(const struct lab *l, int end, enum sdr_counter which)
{
	uint64_t sum[SDR_CTR_COUNT];

	(void)sdr_counters_get(l->p.ctx[end], sum, SDR_CTR_COUNT);
	return sum[which];
}

struct sdr_conn_info lab_info(const struct lab *l, int end)
{
	struct sdr_conn_info info = {.size = sizeof(info)};

	(void)sdr_conn_query(l->p.conn[end], &info);
	return info;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worlds whose packets carry no payload: the same seeds with payload and without give the same
 * completions at the same times, the same counters and the same links' counts, over random
 * faults, on sockets, RoCEv2 in software and RDMA NICs. Without payload every buffer lies in
 * memory that can be neither read nor written. And drops by name, as a connection's user sees them.
 */
#include "base/bits.h"
#include "base/rng.h"
#include "pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define OPS 24u
#define LENGTH_MAX UINT64_C(300000)
#define SEEDS 24u
#define LIMIT_NS (120 * SEC)

/* What happened to one operation. */
struct told {
	unsigned int end, is_recv, number, has_imm, imm;
	int status;
	uint64_t length, posted_ns, done_ns;
};

struct run {
	struct pair p;
	struct rng rng;
	unsigned int posted[2][2]; /* by end, and write or receive */
	uint64_t write_length[2][OPS], recv_length[2][OPS];
	bool use_mr[2];
	uint8_t *mem; /* LENGTH_MAX for each operation */
	struct told told[4 * OPS];
	unsigned int n;
	/* At the end. */
	uint64_t steps, now_ns;
	uint64_t counter[2][SDR_CTR_COUNT];
	struct sdr_conn_info conn[2];
	struct sdr_sim_link_info link[2];
};

static void on_completion(void *arg, int end, const struct sdr_completion *c)
{
	struct run *r = arg;

	assert_true(r->n < 4 * OPS);
	r->told[r->n++] = (struct told){.end = (unsigned int)end,
					.is_recv = c->is_recv,
					.number = (unsigned int)(uintptr_t)c->cookie,
					.has_imm = c->has_imm,
					.imm = c->imm,
					.status = c->status,
					.length = c->length,
					.posted_ns = c->posted_ns,
					.done_ns = c->done_ns};
}

static struct sdr_sim_link some_link(struct rng *rng)
{
	struct sdr_sim_link l = {.size = sizeof(l), .delay_ns = 1 + rng_below(rng, 15 * MS)};

	l.rate_bps = rng_below(rng, 4) ? 100000000 * (1 + rng_below(rng, 100)) : 0;
	l.jitter_ns = rng_below(rng, 2) ? rng_below(rng, 2 * MS) : 0;
	l.queue_bytes = rng_below(rng, 3) ? 0 : 100000 + rng_below(rng, 1000000);
	l.loss = rng_below(rng, 4) ? 0.05 * rng_unit(rng) : 0;
	l.burst_pkts = rng_below(rng, 2) ? 0 : 1 + 5 * rng_unit(rng);
	l.reorder = rng_below(rng, 2) ? 0 : 0.1 * rng_unit(rng);
	l.reorder_ns = rng_below(rng, 2 * MS);
	l.duplicate = rng_below(rng, 2) ? 0 : 0.1 * rng_unit(rng);
	l.corrupt = rng_below(rng, 3) ? 0.05 * rng_unit(rng) : 0;
	return l;
}

static uint64_t some_length(struct rng *rng)
{
	switch (rng_below(rng, 5)) {
	case 0:
		return rng_below(rng, 3);
	case 1:
		return rng_below(rng, 70) * 1436;
	case 2:
		return rng_below(rng, 70) * 4096;
	default:
		return rng_below(rng, LENGTH_MAX);
	}
}

static void post(struct run *r, int end, bool is_recv)
{
	unsigned int i = r->posted[end][is_recv];
	struct sdr_op_wr wr = {.size = sizeof(wr), .cookie = (void *)(uintptr_t)i};
	int err;

	wr.addr = r->mem + ((unsigned int)(end * 2 + is_recv) * OPS + i) * LENGTH_MAX;
	wr.length = is_recv ? r->recv_length[end][i] : r->write_length[end][i];
	wr.mr = is_recv || r->use_mr[end] ? r->p.mr[end] : NULL;
	wr.flags = !is_recv && i % 3 == 1 ? SDR_OP_HAS_IMM : 0;
	wr.imm = i + 1;
	err = (is_recv ? sdr_conn_recv_post : sdr_write_post)(r->p.conn[end], &wr, NULL);
	assert_true(err == 0 || err == -EAGAIN);
	r->posted[end][is_recv] += err == 0;
}

static void open_pair(struct run *r, uint64_t seed)
{
	struct sdr_conn_attr attr[2] = {{.size = sizeof(attr[0])}, {.size = sizeof(attr[0])}};
	struct sdr_sim_link forth = some_link(&r->rng), back = some_link(&r->rng);

	for (int end = 0; end < 2; end++) {
		attr[end].scheme = sdr_scheme_names()[rng_below(&r->rng, 3)];
		attr[end].channels = 1 + (uint32_t)(seed % 4);
		attr[end].messages = 64;
		attr[end].dead_after_ns = LIMIT_NS;
		r->use_mr[end] = rng_below(&r->rng, 2);
	}
	pair_open(&r->p, seed, &forth, &attr[0], &attr[1]);
	pair_link(&r->p, &forth);
	assert_int_equal(
		sdr_sim_link_set(r->p.sim, r->p.host[1], r->p.host[0], SDR_CHANNEL_ANY, &back), 0);
	r->p.on_completion = on_completion;
	r->p.arg = r;
}

static void close_pair(struct run *r)
{
	r->steps = r->p.steps;
	r->now_ns = pair_now(&r->p);
	for (int end = 0; end < 2; end++) {
		r->conn[end].size = sizeof(r->conn[end]);
		r->link[end].size = sizeof(r->link[end]);
		(void)sdr_counters_get(r->p.ctx[end], r->counter[end], SDR_CTR_COUNT);
		assert_int_equal(sdr_conn_query(r->p.conn[end], &r->conn[end]), 0);
		assert_int_equal(sdr_sim_link_query(r->p.sim, r->p.host[end], r->p.host[!end],
						    SDR_CHANNEL_ANY, &r->link[end]),
				 0);
	}
	pair_close(&r->p);
}

static void run(struct run *r, uint64_t seed, bool payload_off)
{
	size_t bytes = 4 * OPS * LENGTH_MAX;

	memset(r, 0, sizeof(*r));
	rng_init(&r->rng, seed);
	r->mem = mmap(NULL, bytes, payload_off ? PROT_NONE : PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(r->mem != MAP_FAILED);
	pair_payload_off = payload_off;
	open_pair(r, seed);
	for (unsigned int i = 0; i < OPS; i++) {
		for (int end = 0; end < 2; end++) {
			uint64_t length = some_length(&r->rng);
			uint64_t room = rng_below(&r->rng, 2) ? 0 : rng_below(&r->rng, 5000);

			r->write_length[end][i] = length;
			r->recv_length[!end][i] = u64_min(length + room, LENGTH_MAX);
			if (length && rng_below(&r->rng, 40) == 0)
				r->recv_length[!end][i] = length - 1; /* too short */
		}
	}
	while (r->n < 4 * OPS && pair_now(&r->p) < LIMIT_NS) {
		for (int what = 0; what < 4; what++)
			if (r->posted[what / 2][what % 2] < OPS && rng_below(&r->rng, 3) == 0)
				post(r, what / 2, what % 2);
		pair_step(&r->p, pair_now(&r->p) + 1 + rng_below(&r->rng, 20 * MS));
	}
	assert_int_equal(r->n, 4 * OPS);
	close_pair(r);
	pair_payload_off = false;
	assert_int_equal(munmap(r->mem, bytes), 0);
}

static void compare(const struct run *full, const struct run *bare)
{
	assert_int_equal(full->n, bare->n);
	for (unsigned int i = 0; i < full->n; i++)
		assert_memory_equal(&full->told[i], &bare->told[i], sizeof(full->told[i]));
	assert_int_equal(full->steps, bare->steps);
	assert_int_equal(full->now_ns, bare->now_ns);
	for (int end = 0; end < 2; end++) {
		for (int i = 0; i < SDR_CTR_COUNT; i++)
			assert_int_equal(full->counter[end][i], bare->counter[end][i]);
		assert_memory_equal(&full->conn[end], &bare->conn[end], sizeof(full->conn[end]));
		assert_memory_equal(&full->link[end], &bare->link[end], sizeof(full->link[end]));
	}
}

/* What the seeds reached on one kind of device; each must be there, or nothing was compared. */
struct reached {
	uint64_t resent, duplicate, protection, late, lost;
};

static struct reached differ(void **state, const struct sdr_sim_device *device)
{
	struct run *full = malloc(sizeof(*full)), *bare = malloc(sizeof(*bare));
	unsigned int n = seed_count(SEEDS);
	struct reached sum = {0};

	(void)state;
	assert_true(full && bare);
	pair_device = device;
	for (unsigned int i = 0; i < n; i++) {
		uint64_t seed = seed_first(1) + i;

		if (getenv("SDR_VERBOSE"))
			seed_replay("conn_payload_off_test", seed);
		run(full, seed, false);
		run(bare, seed, true);
		compare(full, bare);
		for (int end = 0; end < 2; end++) {
			sum.resent += full->conn[end].tx_resent_pkts;
			sum.lost += full->link[end].lost_pkts;
			sum.duplicate += full->counter[end][SDR_CTR_rx_duplicate];
			sum.protection += full->counter[end][SDR_CTR_rx_protection];
			sum.late += full->counter[end][SDR_CTR_rx_late];
		}
	}
	pair_device = NULL;
	free(full);
	free(bare);
	if (n >= SEEDS)
		assert_true(sum.resent && sum.lost && sum.duplicate && sum.late);
	return sum;
}

static void same_on_sockets(void **state)
{
	assert_true(differ(state, NULL).protection || seed_count(SEEDS) < SEEDS);
}

static void same_on_roce(void **state)
{
	assert_true(differ(state, &pair_roce).protection || seed_count(SEEDS) < SEEDS);
}

static void same_on_nics(void **state)
{
	(void)differ(state, &pair_nic);
}

/* Packets are taken in trains, some of them of a whole run. */
static void same_with_coalescing(void **state)
{
	static const struct sdr_sim_device sockets = {
		.size = sizeof(sockets), .like = "udp", .coalesce_ns = 20000};
	static const struct sdr_sim_device nic = {
		.size = sizeof(nic), .like = "nic", .coalesce_ns = 20000};

	(void)differ(state, &sockets);
	(void)differ(state, &nic);
}

/* ---- drops by name ---- */

struct write {
	struct pair p;
	uint64_t done_ns[4];
	unsigned int n;
};

static void write_done(void *arg, int end, const struct sdr_completion *c)
{
	struct write *w = arg;

	assert_int_equal(c->status, 0);
	if (end == 0)
		w->done_ns[(uintptr_t)c->cookie] = c->done_ns - c->posted_ns;
	w->n++;
}

static void write_open(struct write *w, const struct sdr_sim_drop *drops, size_t n)
{
	const struct sdr_sim_link link = {
		.size = sizeof(link), .rate_bps = 10000000000, .delay_ns = 10 * MS};
	const struct sdr_conn_attr attr = {.size = sizeof(attr), .rate_bps = 5000000000};

	memset(w, 0, sizeof(*w));
	pair_payload_off = true;
	pair_open(&w->p, 1, &link, &attr, &attr);
	pair_payload_off = false;
	assert_int_equal(sdr_sim_drops_set(w->p.sim, w->p.host[0], w->p.host[1], drops, n), 0);
	w->p.on_completion = write_done;
	w->p.arg = w;
}

/* Four writes of 100 packets, one after the other. */
static void write_four(struct write *w)
{
	for (uintptr_t i = 0; i < 4; i++) {
		struct sdr_op_wr wr = {.size = sizeof(wr), .addr = w, .cookie = (void *)i};

		wr.length = 100 * 1436;
		wr.mr = w->p.mr[1];
		assert_int_equal(sdr_conn_recv_post(w->p.conn[1], &wr, NULL), 0);
		wr.mr = w->p.mr[0];
		assert_int_equal(sdr_write_post(w->p.conn[0], &wr, NULL), 0);
		while (w->n < 2 * (i + 1))
			pair_step(&w->p, pair_now(&w->p) + SEC);
	}
}

static void drops_by_name(void **state)
{
	/* The second write loses a packet three times, the third its last one. */
	static const struct sdr_sim_drop drops[] = {{1, 7, 2},	 {1, 7, 0}, {2, 99, 0}, {1, 7, 1},
						    {3, 100, 0}, {1, 7, 1}, {4, 5, 0}};
	struct sdr_sim_drops_info info = {.size = sizeof(info)};
	struct sdr_conn_info conn = {.size = sizeof(conn)};
	struct write w;

	(void)state;
	write_open(&w, drops, sizeof(drops) / sizeof(drops[0]));
	write_four(&w);
	assert_int_equal(sdr_sim_drops_query(w.p.sim, w.p.host[0], w.p.host[1], &info), 0);
	assert_int_equal(info.entries, 6); /* one is there twice, */
	assert_int_equal(info.hit, 4);	   /* ... and two name nothing that is sent */
	assert_int_equal(info.lost_pkts, 4);
	assert_int_equal(sdr_conn_query(w.p.conn[0], &conn), 0);
	assert_true(conn.tx_resent_pkts >= 4);
	/* A loss costs a round trip at least, and the other writes nothing. */
	assert_true(w.done_ns[1] >= w.done_ns[0] + 3 * 20 * MS);
	assert_true(w.done_ns[2] >= w.done_ns[0] + 20 * MS);
	assert_true(w.done_ns[3] < w.done_ns[0] + MS);
	assert_int_equal(sdr_sim_drops_query(w.p.sim, w.p.host[1], w.p.host[0], &info), -ENOENT);
	pair_close(&w.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_on_sockets), cmocka_unit_test(same_on_roce),
		cmocka_unit_test(same_on_nics),	   cmocka_unit_test(same_with_coalescing),
		cmocka_unit_test(drops_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

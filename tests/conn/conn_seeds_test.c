/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many seeds of random traffic in both directions over random faults, in virtual time, over
 * sockets, RoCEv2 in software and RDMA NICs.
 * Each seed draws link, scheme (of those without a code, and of those with one), channels,
 * sizes, and whether operations are cancelled or have deadlines. Then the faults stop, and
 * everything must have ended within a minute.
 *
 * Checked: each operation ends once; a receive that says 0 has the matching write's bytes,
 * length and immediate; no byte outside a buffer changes, none inside after completion; a
 * write that says 0 was received; without cancels all say 0; both ends close.
 */
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

#define CANARY 64u
#define OPS_MAX 200u
#define LIVENESS_NS (60 * SEC)

/* Writes have erasure codes. */
static bool codes;

struct item {
	struct traffic *t;
	int end;
	bool is_recv;
	unsigned int number;
	uint64_t length;
	uint32_t imm;
	bool has_imm;
	uint8_t *mem; /* canary, length bytes, canary */
	uint8_t *buf; /* a write's copy, which it is sent from; NULL once that is free */
	bool posted, done, cancelled;
	int status;
	uint64_t got;
	uint64_t sum; /* of the buffer when it was completed */
	struct sdr_op *op;
};

struct direction {
	struct item write[OPS_MAX], recv[OPS_MAX];
	unsigned int n;
	unsigned int wposted, rposted;
};

struct traffic {
	struct pair p;
	struct rng rng;
	uint64_t seed;
	bool chaos;
	struct direction dir[2]; /* 0: from end 0 to end 1 */
	unsigned int left;
};

static uint64_t checksum(const uint8_t *p, uint64_t n)
{
	uint64_t h = 1469598103934665603u;

	for (uint64_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 1099511628211u;
	return h;
}

static void fill(uint8_t *p, uint64_t n, uint64_t seed)
{
	struct rng r;

	rng_init(&r, seed);
	for (uint64_t i = 0; i < n; i += 8) {
		uint64_t v = rng_next(&r);

		memcpy(p + i, &v, n - i < 8 ? n - i : 8);
	}
}

#define CHECK(t, cond)                                                                \
	do {                                                                          \
		if (!(cond)) {                                                        \
			seed_replay("conn_seeds_test", (t)->seed);                    \
			fail_msg("seed %llu: " #cond, (unsigned long long)(t)->seed); \
		}                                                                     \
	} while (0)

static void on_completion(void *arg, int end, const struct sdr_completion *c)
{
	struct traffic *t = arg;
	struct item *it = c->cookie;

	CHECK(t, it && it->posted && !it->done);
	CHECK(t, it->end == end && it->is_recv == c->is_recv && c->conn == t->p.conn[end]);
	it->done = true;
	it->op = NULL;
	it->status = c->status;
	it->got = c->length;
	if (it->is_recv) {
		it->sum = checksum(it->mem + CANARY, it->length);
		it->imm = c->imm;
	} else {
		/* Who still reads it sends other bytes. */
		memset(it->buf, 0xee, it->length);
		free(it->buf);
		it->buf = NULL;
	}
	t->left--;
}

static uint64_t size_draw(struct traffic *t, uint64_t payload, uint64_t chunk)
{
	switch (rng_below(&t->rng, 12)) {
	case 0:
		return 0;
	case 1:
		return 1;
	case 2:
		return payload - 1;
	case 3:
		return payload;
	case 4:
		return payload + 1;
	case 5:
		return payload * chunk - 1;
	case 6:
		return payload * chunk;
	case 7:
		return payload * chunk + 1;
	case 8:
		return payload * (1 + rng_below(&t->rng, 300));
	case 9:
		return rng_below(&t->rng, 1000000);
	default:
		return rng_below(&t->rng, 20000);
	}
}

static void items_make(struct traffic *t, int from, uint64_t payload, uint64_t chunk)
{
	struct direction *d = &t->dir[from];

	d->n = 20 + (unsigned int)rng_below(&t->rng, OPS_MAX - 20);
	for (unsigned int i = 0; i < d->n; i++) {
		struct item *w = &d->write[i], *r = &d->recv[i];

		w->t = r->t = t;
		w->end = from;
		r->end = 1 - from;
		r->is_recv = true;
		w->number = r->number = i;
		w->length = size_draw(t, payload, chunk);
		if (from == 0 && i == 3 && t->seed % 8 == 0)
			w->length = 10 << 20;
		r->length = w->length + (rng_below(&t->rng, 2) ? rng_below(&t->rng, 5000) : 0);
		if (t->chaos && rng_below(&t->rng, 20) == 0)
			r->length = w->length / 2;
		w->has_imm = rng_below(&t->rng, 2);
		w->imm = w->has_imm ? (uint32_t)rng_next(&t->rng) | 1 : 0;
		w->mem = malloc(w->length + 2 * CANARY);
		r->mem = malloc(r->length + 2 * CANARY);
		w->buf = malloc(w->length + 1);
		CHECK(t, w->mem && w->buf && r->mem);
		fill(w->mem, w->length + 2 * CANARY, t->seed * 1000 + i * 2 + (unsigned)from);
		memcpy(w->buf, w->mem + CANARY, w->length);
		memset(r->mem, 0xa5, r->length + 2 * CANARY);
		t->left += 2;
	}
}

static void item_post(struct traffic *t, struct item *it)
{
	struct sdr_op_wr wr = {
		.size = sizeof(wr),
		.addr = it->is_recv ? it->mem + CANARY : it->buf,
		.mr = it->number % 4 ? t->p.mr[it->end] : NULL,
		.length = it->length,
		.imm = it->imm,
		.flags = it->has_imm ? SDR_OP_HAS_IMM : 0,
		.cookie = it,
	};
	int err;

	if (t->chaos && rng_below(&t->rng, 10) == 0)
		wr.deadline_ns = pair_now(&t->p) + rng_below(&t->rng, 500 * MS);
	it->posted = true;
	err = it->is_recv ? sdr_conn_recv_post(t->p.conn[it->end], &wr, &it->op)
			  : sdr_write_post(t->p.conn[it->end], &wr, &it->op);
	if (err == -EAGAIN)
		it->posted = false;
	if (err && err != -EAGAIN)
		fprintf(stderr, "post: %d %s; %s%s\n", err, sdr_strerror(err), t->p.text[0],
			t->p.text[1]);
	CHECK(t, err == 0 || err == -EAGAIN);
}

/* Posts some of what is left, cancels some of what is posted. */
static void stir(struct traffic *t)
{
	for (int from = 0; from < 2; from++) {
		struct direction *d = &t->dir[from];

		while (d->wposted < d->n && rng_below(&t->rng, 3)) {
			item_post(t, &d->write[d->wposted]);
			if (!d->write[d->wposted].posted)
				break;
			d->wposted++;
		}
		while (d->rposted < d->n && rng_below(&t->rng, 3)) {
			item_post(t, &d->recv[d->rposted]);
			if (!d->recv[d->rposted].posted)
				break;
			d->rposted++;
		}
		if (t->chaos && rng_below(&t->rng, 4) == 0) {
			unsigned int i = (unsigned int)rng_below(&t->rng, d->n);
			struct item *it = rng_below(&t->rng, 2) ? &d->write[i] : &d->recv[i];

			if (it->posted && !it->done) {
				int err = sdr_op_cancel(it->op);

				/* It may have ended as it was posted: too long for its receive. */
				CHECK(t, err == 0 || err == -EALREADY);
				it->cancelled = err == 0;
			}
		}
	}
}

static void link_draw(struct traffic *t, struct sdr_sim_link *l)
{
	static const double losses[] = {0, 1e-3, 1e-2, 0.1, 0.3};
	static const uint64_t delays[] = {10000, 1 * MS, 10 * MS, 50 * MS};
	static const uint64_t rates[] = {0, 20000000, 1000000000, 10000000000};

	*l = (struct sdr_sim_link){.size = sizeof(*l)};
	l->rate_bps = rates[rng_below(&t->rng, 4)];
	l->delay_ns = delays[rng_below(&t->rng, 4)];
	l->loss = losses[rng_below(&t->rng, 5)];
	if (rng_below(&t->rng, 3) == 0)
		l->burst_pkts = 1.5 + rng_unit(&t->rng) * 20;
	if (rng_below(&t->rng, 2)) {
		l->reorder = 0.05;
		l->reorder_ns = l->delay_ns / 2 + 1000;
	}
	if (rng_below(&t->rng, 2))
		l->duplicate = 0.02;
	if (rng_below(&t->rng, 2))
		l->corrupt = 0.01;
	if (rng_below(&t->rng, 4) == 0)
		l->jitter_ns = l->delay_ns / 4;
	if (l->rate_bps && rng_below(&t->rng, 2))
		l->queue_bytes = 200000 + rng_below(&t->rng, 2000000);
}

static void attr_draw(struct traffic *t, struct sdr_conn_attr *a, const struct sdr_sim_link *l)
{
	static const char *const schemes[] = {"gbn", "sr", "sr-nack", "sr-nack", "sr:rto=3"};

	static const char *const coded[] = {"ec:32,8", "ec-xor:8,2,depth=3",
					    "hybrid:k=50,m=6,depth=8", "auto",
					    "ec:4,4,repair=parity,copies=3"};

	*a = (struct sdr_conn_attr){.size = sizeof(*a)};
	a->scheme = (codes ? coded : schemes)[rng_below(&t->rng, 5)];
	a->parity_bytes = codes ? UINT64_C(1) << (20 + t->seed % 5) : 0;
	a->pair = t->seed % 2;
	a->no_decode = t->seed % 8 == 7;
	a->channels = 1 + (uint32_t)rng_below(&t->rng, 4);
	a->chunk_pkts = 1u << rng_below(&t->rng, 7);
	a->messages = 1u << (2 + rng_below(&t->rng, 8));
	if (rng_below(&t->rng, 3) == 0)
		a->max_payload_bytes = 512 + (uint32_t)rng_below(&t->rng, 900);
	if (pair_device && a->max_payload_bytes)
		a->max_payload_bytes = 1024u << (a->max_payload_bytes % 3); /* a path MTU */
	if (rng_below(&t->rng, 2))
		a->rate_bps = l->rate_bps ? l->rate_bps : 1000000000;
}

static void check_item_pair(struct traffic *t, const struct item *w, const struct item *r)
{
	CHECK(t, w->done && r->done);
	for (unsigned int i = 0; i < CANARY; i++) {
		CHECK(t, r->mem[i] == 0xa5);
		CHECK(t, r->mem[CANARY + r->length + i] == 0xa5);
	}
	CHECK(t, checksum(r->mem + CANARY, r->length) == r->sum);
	if (r->status == 0) {
		CHECK(t, r->got == w->length);
		CHECK(t, memcmp(r->mem + CANARY, w->mem + CANARY, w->length) == 0);
		CHECK(t, r->imm == w->imm);
	}
	if (w->status == 0)
		CHECK(t, r->status == 0);
	if (!t->chaos) {
		CHECK(t, w->status == 0);
		CHECK(t, r->status == 0);
	}
}

static void finish(struct traffic *t)
{
	struct pair *p = &t->p;
	uint64_t limit;

	for (int from = 0; from < 2; from++) {
		for (unsigned int i = 0; i < t->dir[from].n; i++)
			check_item_pair(t, &t->dir[from].write[i], &t->dir[from].recv[i]);
	}
	CHECK(t, sdr_conn_close(p->conn[0]) == 0);
	if (rng_below(&t->rng, 2))
		CHECK(t, sdr_conn_close(p->conn[1]) == 0);
	limit = pair_now(p) + LIVENESS_NS;
	while (!p->events[0][SDR_EV_CLOSED] || !p->events[1][SDR_EV_CLOSED]) {
		pair_step(p, limit);
		CHECK(t, pair_now(p) < limit);
	}
	CHECK(t, p->events[0][SDR_EV_CLOSED] == 1 && p->events[1][SDR_EV_CLOSED] == 1);
	CHECK(t, !p->events[0][SDR_EV_DEAD] && !p->events[1][SDR_EV_DEAD]);
}

/* What hangs, for whoever replays the seed. */
static void dump(struct traffic *t)
{
	for (int from = 0; from < 2; from++) {
		struct direction *d = &t->dir[from];
		struct sdr_conn_info i = {.size = sizeof(i)};
		struct sdr_qp_info q = {.size = sizeof(q)};

		(void)sdr_conn_query(t->p.conn[from], &i);
		fprintf(stderr,
			"end %d %s: %u writes, %u posted, %u receives posted; inflight %llu cwnd "
			"%llu pacing %llu rto %llu ns resent %llu lost %llu acks %llu/%llu\n",
			from, i.scheme, d->n, d->wposted, d->rposted,
			(unsigned long long)i.inflight_bytes, (unsigned long long)i.cwnd_bytes,
			(unsigned long long)i.pacing_bps, (unsigned long long)i.rto_ns,
			(unsigned long long)i.tx_resent_pkts, (unsigned long long)i.tx_lost_pkts,
			(unsigned long long)i.acks_sent, (unsigned long long)i.acks_received);
		(void)sdr_qp_query(sdr_conn_qp(t->p.conn[from]), &q);
		fprintf(stderr,
			"  next send %u granted %u, next receive %u, heard %llu ns ago, unanswered "
			"%llu ns\n",
			q.send_next, q.granted, q.recv_next, (unsigned long long)q.heard_age_ns,
			(unsigned long long)q.unanswered_ns);
		for (unsigned int n = 0; n < d->wposted || n < d->rposted; n++) {
			const struct item *w = &d->write[n], *r = &d->recv[n];

			if (w->done && r->done)
				continue;
			fprintf(stderr, "  %u: write %llu %s %d, receive %llu %s %d\n", n,
				(unsigned long long)w->length, w->done ? "done" : "open", w->status,
				(unsigned long long)r->length, r->done ? "done" : "open",
				r->status);
		}
	}
}

static void describe(const struct traffic *t, const struct sdr_sim_link *l,
		     const struct sdr_conn_attr *a)
{
	if (!getenv("SDR_VERBOSE"))
		return;
	fprintf(stderr,
		"seed %llu%s: %llu bit/s, %llu+%llu ns, queue %llu, loss %g x %.1f, reorder %g, "
		"dup %g, corrupt %g\n",
		(unsigned long long)t->seed, t->chaos ? " chaos" : "",
		(unsigned long long)l->rate_bps, (unsigned long long)l->delay_ns,
		(unsigned long long)l->jitter_ns, (unsigned long long)l->queue_bytes, l->loss,
		l->burst_pkts, l->reorder, l->duplicate, l->corrupt);
	for (int end = 0; end < 2; end++)
		fprintf(stderr, "  %s channels %u chunk %u messages %u payload %u rate %llu\n",
			a[end].scheme, a[end].channels, a[end].chunk_pkts, a[end].messages,
			a[end].max_payload_bytes, (unsigned long long)a[end].rate_bps);
}

static void run_seed(uint64_t seed)
{
	struct traffic *t = calloc(1, sizeof(*t));
	struct sdr_sim_link link, clean = {.size = sizeof(clean), .delay_ns = MS};
	struct sdr_conn_attr attr[2];
	struct sdr_conn_info info = {.size = sizeof(info)};
	uint64_t faults_end, limit;

	assert_non_null(t);
	t->seed = seed;
	rng_init(&t->rng, seed);
	t->chaos = rng_below(&t->rng, 3) == 0;
	link_draw(t, &link);
	attr_draw(t, &attr[0], &link);
	attr_draw(t, &attr[1], &link);
	describe(t, &link, attr);
	pair_open(&t->p, seed, &link, &attr[0], &attr[1]);
	t->p.on_completion = on_completion;
	t->p.arg = t;
	(void)sdr_conn_query(t->p.conn[0], &info);
	for (int from = 0; from < 2; from++)
		items_make(t, from, info.payload_bytes, info.chunk_pkts);
	faults_end = pair_now(&t->p) + rng_below(&t->rng, 5 * SEC);
	while (t->left && pair_now(&t->p) < faults_end) {
		stir(t);
		pair_run(&t->p, pair_now(&t->p) + 1 + rng_below(&t->rng, 20 * MS));
	}
	pair_link(&t->p, &clean);
	limit = pair_now(&t->p) + LIVENESS_NS;
	while (t->left) {
		stir(t);
		pair_run(&t->p, pair_now(&t->p) + 5 * MS);
		if (pair_now(&t->p) >= limit)
			dump(t);
		CHECK(t, pair_now(&t->p) < limit);
	}
	finish(t);
	pair_close(&t->p);
	for (int from = 0; from < 2; from++) {
		for (unsigned int i = 0; i < t->dir[from].n; i++) {
			free(t->dir[from].write[i].mem);
			free(t->dir[from].recv[i].mem);
		}
	}
	free(t);
}

static void seeds(const struct sdr_sim_device *device, bool with_codes)
{
	uint64_t first = seed_first(1);
	unsigned int n = seed_count(device ? 10 : 20);

	pair_device = device;
	codes = with_codes;
	for (uint64_t seed = first; seed < first + n; seed++) {
		run_seed(seed);
	}
	printf("seeds %llu to %llu\n", (unsigned long long)first,
	       (unsigned long long)(first + n - 1));
}

static void over_sockets(void **state)
{
	(void)state;
	seeds(NULL, false);
}

static void over_roce(void **state)
{
	(void)state;
	seeds(&pair_roce, false);
}

static void over_nics(void **state)
{
	(void)state;
	seeds(&pair_nic, false);
}

/* They run out of receives, read memory late, and their keys outlive what they were for. */
static const struct sdr_sim_device hard = {.size = sizeof(hard),
					   .like = "nic",
					   .recv_depth = 48,
					   .zero_copy_ns = 2 * MS,
					   .late_ns = 30 * MS};

static void over_hard_nics(void **state)
{
	(void)state;
	seeds(&hard, false);
}

static void codes_over_sockets(void **state)
{
	(void)state;
	seeds(NULL, true);
}

static void codes_over_roce(void **state)
{
	(void)state;
	seeds(&pair_roce, true);
}

static void codes_over_nics(void **state)
{
	(void)state;
	seeds(&pair_nic, true);
}

static void codes_over_hard_nics(void **state)
{
	(void)state;
	seeds(&hard, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(over_sockets),	      cmocka_unit_test(over_roce),
		cmocka_unit_test(over_nics),	      cmocka_unit_test(over_hard_nics),
		cmocka_unit_test(codes_over_sockets), cmocka_unit_test(codes_over_roce),
		cmocka_unit_test(codes_over_nics),    cmocka_unit_test(codes_over_hard_nics)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

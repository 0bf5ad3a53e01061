/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections with erasure codes, in virtual time: every scheme with a code, writes of nothing to
 * megabytes, over losses and bursts and on every kind of device; peers that do not decode, no
 * memory for parity, all parity lost, schemes that change from write to write; and how long
 * it takes. conn_seeds_test has codes with cancels, deadlines and random faults.
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

#define MIB UINT64_C(1048576)
#define WRITES_MAX 64u
#define LIMIT_NS (300 * SEC)

struct config {
	const char *scheme;
	double loss, burst;
	uint64_t rtt_ns, rate_bps;
	uint64_t parity_bytes;
	uint32_t chunk_pkts;
	bool pair, no_decode;
};

struct run {
	struct pair p;
	uint64_t payload;
	unsigned int posted, writes, recvs;
	uint64_t length[WRITES_MAX];
	uint8_t *from[WRITES_MAX], *to[WRITES_MAX];
	uint64_t first_ns, last_ns; /* first post, last write's end */
	struct sdr_conn_info tx, rx;
};

static void on_completion(void *arg, int end, const struct sdr_completion *c)
{
	struct run *r = arg;
	unsigned int i = (unsigned int)(uintptr_t)c->cookie;

	assert_int_equal(end, c->is_recv);
	assert_int_equal(c->status, 0);
	assert_int_equal(c->length, r->length[i]);
	if (c->is_recv) {
		r->recvs++;
		assert_int_equal(c->imm, i);
		assert_int_equal(c->has_imm, i != 0);
		if (!pair_payload_off)
			assert_memory_equal(r->from[i], r->to[i], r->length[i]);
		return;
	}
	r->writes++;
	r->last_ns = c->done_ns;
}

static void run_open(struct run *r, uint64_t seed, const struct config *c)
{
	struct sdr_sim_link link = {.size = sizeof(link),
				    .rate_bps = 10000000000,
				    .delay_ns = c->rtt_ns ? c->rtt_ns / 2 : 5 * MS,
				    .loss = c->loss,
				    .burst_pkts = c->burst};
	struct sdr_conn_attr attr = {.size = sizeof(attr), .scheme = c->scheme};
	struct sdr_conn_attr peer = {.size = sizeof(peer), .no_decode = c->no_decode};

	attr.rate_bps = c->rate_bps ? c->rate_bps : 1000000000;
	attr.chunk_pkts = c->chunk_pkts;
	attr.parity_bytes = peer.parity_bytes = c->parity_bytes;
	attr.pair = c->pair;
	memset(r, 0, sizeof(*r));
	pair_open(&r->p, seed, &link, &attr, &peer);
	r->p.on_completion = on_completion;
	r->p.arg = r;
	r->tx.size = sizeof(r->tx);
	r->rx.size = sizeof(r->rx);
	(void)sdr_conn_query(r->p.conn[0], &r->tx);
	r->payload = r->tx.payload_bytes;
}

static void fill(uint8_t *p, uint64_t n, uint64_t seed)
{
	struct rng rng;

	rng_init(&rng, seed);
	for (uint64_t i = 0; i < n; i += 8) {
		uint64_t v = rng_next(&rng);

		memcpy(p + i, &v, n - i < 8 ? n - i : 8);
	}
}

/* A receive with `slack` more room, and its write, with the number as its immediate. */
static void post(struct run *r, uint64_t length, uint64_t slack)
{
	unsigned int i = r->posted++;
	struct sdr_op_wr wr = {.size = sizeof(wr), .cookie = (void *)(uintptr_t)i};

	assert_true(i < WRITES_MAX);
	r->length[i] = length;
	r->from[i] = malloc(length + 1);
	r->to[i] = calloc(1, length + slack + 1);
	assert_true(r->from[i] && r->to[i]);
	fill(r->from[i], length, i + 1);
	wr.addr = r->to[i];
	wr.length = length + slack;
	wr.mr = r->p.mr[1];
	assert_int_equal(sdr_conn_recv_post(r->p.conn[1], &wr, NULL), 0);
	wr.addr = r->from[i];
	wr.length = length;
	wr.mr = r->p.mr[0];
	wr.imm = i;
	wr.flags = SDR_OP_HAS_IMM;
	if (!r->first_ns)
		r->first_ns = pair_now(&r->p);
	assert_int_equal(sdr_write_post(r->p.conn[0], &wr, NULL), 0);
}

static void describe(const struct run *r)
{
	if (!getenv("SDR_VERBOSE"))
		return;
	printf("%s: %.1f ms, sent %llu parity %llu repair %llu covered %llu recovered %llu "
	       "uncovered %llu resent %llu failed %llu decoded %llu\n",
	       r->tx.write_scheme, (double)(r->last_ns - r->first_ns) / 1e6,
	       (unsigned long long)r->tx.tx_pkts, (unsigned long long)r->tx.tx_parity_pkts,
	       (unsigned long long)r->tx.tx_repair_pkts, (unsigned long long)r->tx.tx_covered_pkts,
	       (unsigned long long)r->tx.tx_recovered_pkts,
	       (unsigned long long)r->tx.tx_uncovered_pkts,
	       (unsigned long long)r->tx.tx_resent_pkts, (unsigned long long)r->tx.tx_failed_blocks,
	       (unsigned long long)r->rx.rx_decoded_pkts);
}

static void run_until_done(struct run *r)
{
	uint64_t limit = pair_now(&r->p) + LIMIT_NS;

	while (r->writes < r->posted || r->recvs < r->posted) {
		pair_step(&r->p, limit);
		assert_true(pair_now(&r->p) < limit);
	}
	(void)sdr_conn_query(r->p.conn[0], &r->tx);
	(void)sdr_conn_query(r->p.conn[1], &r->rx);
	describe(r);
}

static void run_close(struct run *r)
{
	assert_int_equal(r->tx.parity_bytes, 0);
	assert_int_equal(r->rx.parity_bytes, 0);
	pair_close(&r->p);
	for (unsigned int i = 0; i < r->posted; i++) {
		free(r->from[i]);
		free(r->to[i]);
	}
}

/* Writes around every edge of packets and blocks of at most 32, alternately into longer receives;
 * returns how many have a byte. */
static unsigned int post_sizes(struct run *r)
{
	const uint64_t p = r->payload;
	const uint64_t sizes[] = {0,	   1,	   p - 1,      p,      p + 1,  2 * p,	    31 * p,
				  32 * p,  33 * p, 64 * p - 1, 64 * p, 65 * p, 128 * p + 7, 300 * p,
				  1000000, 0,	   3 * MIB,    1,      5};
	unsigned int n = 0;

	for (size_t i = 0; i < SDR_ARRAY_LEN(sizes); i++) {
		post(r, sizes[i], i % 2 ? 3 * p + 1 : 0);
		n += sizes[i] != 0;
	}
	return n;
}

static void every_size(uint64_t seed, const struct config *c)
{
	static struct run r;
	unsigned int coded;

	run_open(&r, seed, c);
	assert_true(r.tx.paired);
	assert_false(r.tx.recvs_paired);
	coded = post_sizes(&r);
	run_until_done(&r);
	assert_int_equal(r.tx.writes_coded, coded);
	assert_int_equal(r.tx.writes_no_room, 0);
	assert_true(r.tx.tx_parity_pkts > 100);
	assert_true(r.tx.tx_parity_bytes == r.tx.tx_parity_pkts * r.payload);
	if (c->loss >= 0.02) /* below, the coded packets may all get through */
		assert_true(r.rx.rx_decoded_pkts > 0 && r.rx.rx_decoded_blocks > 0);
	run_close(&r);
}

static const char *const coded[] = {"ec:32,8",
				    "ec-xor:32,8",
				    "hybrid:k=100,m=10,depth=8",
				    "ec:8,4,depth=5",
				    "ec:16,4,repair=parity,copies=2",
				    "ec-xor:4,1,span=200"};

static void every_scheme(void **state)
{
	static const double losses[] = {0, 1e-3, 0.02, 0.2};

	(void)state;
	pair_device = NULL;
	for (size_t s = 0; s < SDR_ARRAY_LEN(coded); s++) {
		for (size_t l = 0; l < SDR_ARRAY_LEN(losses); l++) {
			struct config c = {.scheme = coded[s], .loss = losses[l]};

			every_size(s * 10 + l, &c);
			if (l < 2)
				continue;
			c.burst = 8;
			every_size(s * 10 + l + 100, &c);
		}
	}
}

/* They run out of receives, read memory late, and their keys outlive what they were for. */
static const struct sdr_sim_device hard = {.size = sizeof(hard),
					   .like = "nic",
					   .recv_depth = 64,
					   .zero_copy_ns = 2 * MS,
					   .late_ns = 30 * MS};

static void every_device(void **state)
{
	const struct sdr_sim_device *devices[] = {&pair_roce, &pair_nic, &hard};

	(void)state;
	for (size_t d = 0; d < SDR_ARRAY_LEN(devices); d++) {
		pair_device = devices[d];
		for (size_t s = 0; s < 4; s++) {
			struct config c = {.scheme = coded[s], .loss = 0.02, .chunk_pkts = 1};

			every_size(s + 10 * d, &c);
		}
	}
	pair_device = NULL;
}

/* The same decisions at the same times, though nobody touches a byte. */
static void without_payload(void **state)
{
	static struct run r;
	const struct config c = {.scheme = "ec:32,8", .loss = 0.02};
	uint64_t took[2], decoded[2];

	(void)state;
	for (int off = 0; off < 2; off++) {
		pair_payload_off = off;
		run_open(&r, 5, &c);
		for (unsigned int i = 0; i < 8; i++)
			post(&r, 500000, 0);
		run_until_done(&r);
		took[off] = r.last_ns - r.first_ns;
		decoded[off] = r.rx.rx_decoded_pkts;
		run_close(&r);
	}
	pair_payload_off = false;
	assert_true(decoded[0] > 20);
	assert_int_equal(took[0], took[1]);
	assert_int_equal(decoded[0], decoded[1]);
}

static void a_peer_that_does_not_decode(void **state)
{
	static struct run r;
	const struct config c = {.scheme = "ec:32,8", .loss = 0.01, .no_decode = true};
	struct sdr_scheme s = {.size = sizeof(s)};

	(void)state;
	run_open(&r, 7, &c);
	assert_false(r.tx.paired);
	assert_string_equal(r.tx.scheme, "sr-nack");
	assert_int_equal(sdr_scheme_parse("ec:4,1", &s, NULL, 0), 0);
	assert_int_equal(sdr_conn_scheme_set(r.p.conn[0], &s), -ENOTSUP);
	(void)post_sizes(&r);
	run_until_done(&r);
	assert_int_equal(r.tx.writes_coded, 0);
	assert_int_equal(r.tx.tx_parity_pkts, 0);
	run_close(&r);
}

/* Of many large writes at once only the first ones have room. */
static void no_room_for_parity(void **state)
{
	static struct run r;
	const struct config c = {.scheme = "ec:32,8", .loss = 0.01, .parity_bytes = MIB};

	(void)state;
	run_open(&r, 8, &c);
	for (unsigned int i = 0; i < 40; i++)
		post(&r, MIB, 0);
	run_until_done(&r);
	assert_true(r.tx.writes_coded > 0);
	assert_true(r.tx.writes_no_room > 0);
	assert_int_equal(r.tx.writes_coded + r.tx.writes_no_room, 40);
	assert_true(r.rx.rx_decoded_pkts > 0);
	run_close(&r);
}

static void all_parity_lost(void **state)
{
	static struct run r;
	static struct sdr_sim_drop drops[400 + 3];
	const struct config c = {.scheme = "ec:32,8"};
	size_t n = 0;

	(void)state;
	run_open(&r, 9, &c);
	for (uint32_t i = 0; i < 400; i++)
		drops[n++] = (struct sdr_sim_drop){.message = 1, .packet = i};
	drops[n++] = (struct sdr_sim_drop){.message = 0, .packet = 3};
	drops[n++] = (struct sdr_sim_drop){.message = 0, .packet = 400};
	drops[n++] = (struct sdr_sim_drop){.message = 0, .packet = 400, .attempt = 1};
	assert_int_equal(sdr_sim_drops_set(r.p.sim, r.p.host[0], r.p.host[1], drops, n), 0);
	post(&r, MIB, 0);
	run_until_done(&r);
	assert_int_equal(r.rx.rx_decoded_pkts, 0);
	assert_true(r.tx.tx_covered_pkts >= 2 && r.tx.tx_uncovered_pkts >= 2);
	run_close(&r);
}

/* One more of a block than its parity makes good; with a code that has further parity, and not. */
static void one_too_many(void **state)
{
	static const char *const schemes[] = {"ec:32,4", "ec:32,4,repair=parity", "ec-xor:32,4"};
	static struct run r;
	struct sdr_sim_drop drops[5];

	(void)state;
	for (size_t s = 0; s < SDR_ARRAY_LEN(schemes); s++) {
		const struct config c = {.scheme = schemes[s]};

		run_open(&r, 10, &c);
		for (uint32_t i = 0; i < 5; i++)
			drops[i] = (struct sdr_sim_drop){.message = 0, .packet = 64 + i};
		assert_int_equal(sdr_sim_drops_set(r.p.sim, r.p.host[0], r.p.host[1], drops, 5), 0);
		post(&r, MIB, 0);
		run_until_done(&r);
		assert_true(r.tx.tx_failed_blocks >= 1);
		if (s == 1) {
			assert_true(r.tx.tx_repair_pkts >= 1);
			assert_int_equal(r.tx.tx_resent_pkts, 0);
			assert_int_equal(r.rx.rx_decoded_pkts, 5);
		} else {
			assert_true(r.tx.tx_uncovered_pkts >= 1);
		}
		run_close(&r);
	}
}

/* From write to write, with all of them under way. */
static void schemes_change(void **state)
{
	static const char *const turn[] = {
		"ec:32,8", "sr-nack", "gbn", "hybrid:k=64,m=8,depth=4", "auto", "sr", "ec-xor:8,2"};
	static struct run r;
	const struct config c = {.scheme = "sr-nack", .loss = 0.01, .pair = true};
	struct sdr_scheme scheme = {.size = sizeof(scheme)};

	(void)state;
	run_open(&r, 11, &c);
	assert_true(r.tx.paired);
	for (unsigned int i = 0; i < 42; i++) {
		assert_int_equal(sdr_scheme_parse(turn[i % 7], &scheme, NULL, 0), 0);
		assert_int_equal(sdr_conn_scheme_set(r.p.conn[0], &scheme), 0);
		(void)sdr_conn_query(r.p.conn[0], &r.tx);
		post(&r, 200000 + i, 0);
		pair_run(&r.p, pair_now(&r.p) + (i % 5) * 3 * MS);
	}
	run_until_done(&r);
	assert_true(r.tx.writes_coded >= 10 && r.tx.writes_coded < 42);
	assert_string_equal(r.tx.scheme, "ec-xor:8,2");
	run_close(&r);
}

static void without_a_code(struct sdr_conn *conn, int end)
{
	struct sdr_scheme scheme = {.size = sizeof(scheme)};

	assert_int_equal(sdr_scheme_parse("sr-nack", &scheme, NULL, 0), 0);
	if (end == 0)
		assert_int_equal(sdr_conn_scheme_set(conn, &scheme), 0);
}

/* What was offered holds, though the scheme is another one once the peer knows of it. */
static void a_scheme_set_early(void **state)
{
	static struct run r;
	const struct config c = {.scheme = "ec:32,8", .loss = 0.01};
	struct sdr_scheme scheme = {.size = sizeof(scheme)};

	(void)state;
	pair_offered = without_a_code;
	run_open(&r, 13, &c);
	pair_offered = NULL;
	assert_true(r.tx.paired);
	assert_string_equal(r.tx.scheme, "sr-nack");
	(void)post_sizes(&r);
	run_until_done(&r);
	assert_int_equal(r.tx.writes_coded, 0);
	assert_int_equal(sdr_scheme_parse("ec:32,8", &scheme, NULL, 0), 0);
	assert_int_equal(sdr_conn_scheme_set(r.p.conn[0], &scheme), 0);
	post(&r, MIB, 0);
	run_until_done(&r);
	assert_int_equal(r.tx.writes_coded, 1);
	run_close(&r);
}

/* The time of a round of writes that are under way together, in ns. */
static uint64_t timed(const struct config *c, uint64_t seed, unsigned int rounds)
{
	static struct run r;
	uint64_t sum = 0;

	run_open(&r, seed, c);
	for (unsigned int i = 0; i < rounds; i++) {
		uint64_t at;

		pair_run(&r.p, pair_now(&r.p) + 4 * c->rtt_ns);
		at = pair_now(&r.p);
		post(&r, 8 * MIB, 0);
		run_until_done(&r);
		sum += r.last_ns - at;
	}
	run_close(&r);
	return sum;
}

/* (32,8) makes good what is lost at 1e-3: as fast as without losses, but for its parity. */
static void as_fast_as_lossless(void **state)
{
	struct config c = {.scheme = "ec:32,8", .rtt_ns = 50 * MS, .rate_bps = 1000000000};
	uint64_t clean, lossy;

	(void)state;
	clean = timed(&c, 12, 20);
	c.loss = 1e-3;
	lossy = timed(&c, 12, 20);
	printf("(32,8), 20 x 8 MiB at 1 Gbit/s, 50 ms: %.2f ms each clean, %.2f ms at 1e-3\n",
	       (double)clean / 20e6, (double)lossy / 20e6);
	assert_true(lossy <= clean + clean / 50);
}

/* What passed and what arrived of it are of the same packets, also where parity comes after its
 * write has ended: this path doubles nothing, so never more arrive, and what does not was lost. */
static void losses_are_told(void **state)
{
	static struct run r;
	const struct config c = {.scheme = "ec:32,16,depth=8", .loss = 0.02};
	uint64_t lost;

	(void)state;
	run_open(&r, 12, &c);
	while (r.writes < 40) {
		if (r.writes == r.posted)
			post(&r, 512 * r.payload, 0);
		pair_step(&r.p, UINT64_MAX);
		(void)sdr_conn_query(r.p.conn[0], &r.tx);
		assert_true(r.tx.tx_arrived_pkts <= r.tx.tx_passed_pkts);
	}
	run_until_done(&r);
	assert_true(r.rx.rx_late_pkts > 1000);
	lost = r.tx.tx_passed_pkts - r.tx.tx_arrived_pkts;
	assert_in_range(lost, r.tx.tx_passed_pkts / 66, r.tx.tx_passed_pkts / 40);
	assert_true(r.tx.path_loss > 0.015 && r.tx.path_loss < 0.03);
	run_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_scheme),
		cmocka_unit_test(every_device),
		cmocka_unit_test(without_payload),
		cmocka_unit_test(a_peer_that_does_not_decode),
		cmocka_unit_test(no_room_for_parity),
		cmocka_unit_test(all_parity_lost),
		cmocka_unit_test(one_too_many),
		cmocka_unit_test(schemes_change),
		cmocka_unit_test(losses_are_told),
		cmocka_unit_test(a_scheme_set_early),
		cmocka_unit_test(as_fast_as_lossless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receive path under real threads: workers that hammer the same words, the attack on
 * the fence, and a fence under fire. Payload bytes are written and read plainly, so that
 * ThreadSanitizer sees any order that the atomics fail to make.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "rx/rx.h"

#define MAX_WORKERS 4u
#define SLOTS 2u
#define PKTS 300u
#define PAYLOAD 8u
#define ROUNDS 400u

struct hammer {
	struct rx_table table;
	struct rx_slot slots[SLOTS];
	struct rx_worker workers[MAX_WORKERS];
	uint64_t words[SLOTS][32];
	uint8_t memory[SLOTS][PKTS * PAYLOAD];
	_Atomic uint32_t copies[SLOTS][PKTS];
	uint32_t nworkers;
	uint32_t pkts; /* that the message has */
	uint32_t last_len;
	bool write; /* copy bytes; else only count */
	bool told;  /* the owner says meanwhile how long the message is */
	uint64_t (*claim)(struct rx_slot *, struct rx_worker *, uint32_t, uint32_t, uint32_t);
	pthread_barrier_t start;
	_Atomic uint32_t running;
};

struct hammer_arg {
	struct hammer *h;
	uint32_t worker;
	uint64_t seed;
};

static struct hammer hammer;

static void hammer_copy(struct hammer *h, uint32_t slot, uint32_t pkt, uint32_t len)
{
	atomic_fetch_add(&h->copies[slot][pkt], 1);
	if (h->write)
		memset(rx_place(&h->slots[slot], pkt), (int)(pkt % 251 + 1), len);
}

static void hammer_run(struct hammer *h, struct rx_worker *w, uint32_t key, uint32_t first,
		       uint32_t count)
{
	struct rx_slot *s;
	uint32_t last_len = first + count == h->pkts ? h->last_len : PAYLOAD;
	uint64_t mask;

	if (rx_enter(&h->table, w, key, &s) != RX_OK ||
	    rx_admit(s, w, first, count, last_len) != RX_OK)
		abort();
	mask = h->claim(s, w, first, count, last_len);
	for (uint32_t pkt = first; pkt < first + count; pkt++)
		if (mask >> pkt % 64 & 1)
			hammer_copy(h, key % SLOTS, pkt,
				    pkt == first + count - 1 ? last_len : PAYLOAD);
	if (mask)
		(void)rx_commit(s, first / 64, mask);
}

static void *hammer_work(void *p)
{
	struct hammer_arg *arg = p;
	struct hammer *h = arg->h;
	struct rng rng;

	rng_init(&rng, arg->seed);
	pthread_barrier_wait(&h->start);
	/* Runs anywhere, then every packet once more, so that none is left out. */
	for (uint32_t i = 0; i < 40; i++) {
		uint32_t first = (uint32_t)rng_below(&rng, h->pkts);
		uint32_t count = rx_run_fit(first, 1 + (uint32_t)rng_below(&rng, 40));

		hammer_run(h, &h->workers[arg->worker], i % SLOTS, first,
			   (uint32_t)u64_min(count, h->pkts - first));
		if (i % 8 == 7)
			rx_leave(&h->workers[arg->worker]);
	}
	for (uint32_t i = 0; i < 2 * h->pkts; i++)
		hammer_run(h, &h->workers[arg->worker], i % SLOTS, h->pkts - 1 - i / 2, 1);
	rx_leave(&h->workers[arg->worker]);
	atomic_fetch_sub(&h->running, 1);
	return NULL;
}

/* What the owner sees of a slot: set chunks whose bytes must be there. */
static void owner_look(struct hammer *h, uint32_t slot)
{
	struct rx_slot *s = &h->slots[slot];
	uint64_t chunks[8];
	uint32_t npkts;
	uint64_t bytes;

	rx_chunks_get(s, 0, rx_chunk_count(s), chunks);
	rx_end(s, &npkts, &bytes);
	for (uint32_t pkt = 0; h->write && pkt < npkts; pkt++) {
		uint32_t chunk = pkt >> s->chunk_shift;

		if ((chunks[chunk / 64] >> chunk % 64 & 1) && (uint64_t)pkt * PAYLOAD < bytes)
			assert_int_equal(h->memory[slot][pkt * PAYLOAD], pkt % 251 + 1);
	}
	assert_int_equal(rx_slot_check(s, false), 0);
}

static void hammer_bind(struct hammer *h, uint64_t seed)
{
	struct rng rng;

	rng_init(&rng, seed);
	memset(h->memory, 0, sizeof(h->memory));
	memset(h->copies, 0, sizeof(h->copies));
	h->pkts = 1 + (uint32_t)rng_below(&rng, PKTS);
	h->last_len = h->pkts == PKTS ? PAYLOAD : (uint32_t)rng_below(&rng, PAYLOAD);
	for (uint32_t i = 0; i < MAX_WORKERS; i++)
		rx_worker_init(&h->workers[i]);
	assert_int_equal(rx_table_init(&h->table, h->slots, SLOTS, ~0u, h->workers, h->nworkers, 0),
			 RX_OK);
	for (uint32_t slot = 0; slot < SLOTS; slot++) {
		struct rx_bind bind = {
			.base = h->memory[slot],
			.len = PKTS * PAYLOAD,
			.payload = PAYLOAD,
			.chunk_shift = (uint8_t)rng_below(&rng, 7),
			.imm_frags = 1,
			.words = h->words[slot],
		};

		assert_true(rx_bind_words(bind.len, PAYLOAD, bind.chunk_shift) <= 32);
		assert_int_equal(rx_bind(&h->table, slot, &bind), RX_OK);
	}
}

static void owner_tells(struct hammer *h, uint32_t slot)
{
	uint64_t bytes = (uint64_t)(h->pkts - 1) * PAYLOAD + h->last_len;

	assert_int_equal(rx_end_set(&h->slots[slot], bytes), RX_OK);
	assert_int_equal(rx_end_set(&h->slots[slot], bytes + 1),
			 h->pkts == PKTS && h->last_len == PAYLOAD ? RX_OUT_OF_RANGE
								   : RX_BEYOND_END);
}

/* Most copies of one packet. */
static uint32_t hammer_round(struct hammer *h, uint64_t seed)
{
	struct hammer_arg args[MAX_WORKERS];
	pthread_t threads[MAX_WORKERS];
	uint64_t chunks_seen = 0, placed = 0, duplicates = 0;
	uint32_t most = 0;

	hammer_bind(h, seed);
	h->running = h->nworkers;
	pthread_barrier_init(&h->start, NULL, h->nworkers);
	for (uint32_t i = 0; i < h->nworkers; i++) {
		args[i] = (struct hammer_arg){h, i, seed * 100 + i};
		assert_int_equal(pthread_create(&threads[i], NULL, hammer_work, &args[i]), 0);
	}
	while (h->running) {
		chunks_seen |= rx_dirty_take(&h->table, 0);
		for (uint32_t slot = 0; slot < SLOTS; slot++) {
			if (h->told && (seed % 2 || chunks_seen >> slot & 1))
				owner_tells(h, slot);
			if (chunks_seen >> slot & 1)
				owner_look(h, slot);
		}
		sched_yield();
	}
	for (uint32_t i = 0; i < h->nworkers; i++) {
		pthread_join(threads[i], NULL);
		duplicates += h->workers[i].duplicate;
	}
	pthread_barrier_destroy(&h->start);
	chunks_seen |= rx_dirty_take(&h->table, 0);
	assert_int_equal(chunks_seen, (1 << SLOTS) - 1);
	for (uint32_t slot = 0; slot < SLOTS; slot++) {
		for (uint32_t pkt = 0; pkt < h->pkts; pkt++) {
			most = (uint32_t)u64_max(most, h->copies[slot][pkt]);
			placed += h->copies[slot][pkt];
		}
		assert_int_equal(rx_slot_check(&h->slots[slot], true), 0);
	}
	if (most == 1 && h->told && h->last_len == 0) /* nobody's but the owner's, maybe */
		assert_true(placed >= SLOTS * (h->pkts - 1));
	else if (most == 1)
		assert_true(placed == SLOTS * h->pkts && duplicates > 0);
	return most;
}

static void hammer_check_end(struct hammer *h)
{
	for (uint32_t slot = 0; slot < SLOTS; slot++) {
		struct rx_slot *s = &h->slots[slot];
		uint32_t nchunks = ((h->pkts - 1) >> s->chunk_shift) + 1;
		uint64_t bits[8], bytes;
		uint32_t npkts;

		assert_true(rx_end(s, &npkts, &bytes));
		assert_int_equal(npkts, h->pkts);
		assert_int_equal(bytes, (h->pkts - 1) * PAYLOAD + h->last_len);
		rx_bits_get(s, 0, npkts, bits);
		for (uint32_t pkt = 0; pkt < npkts; pkt++)
			assert_int_equal(bits[pkt / 64] >> pkt % 64 & 1, 1);
		rx_chunks_get(s, 0, nchunks, bits);
		for (uint32_t chunk = 0; chunk < nchunks; chunk++)
			assert_int_equal(bits[chunk / 64] >> chunk % 64 & 1, 1);
		for (uint64_t at = 0; at < sizeof(h->memory[slot]); at++)
			assert_int_equal(h->memory[slot][at],
					 at < bytes ? at / PAYLOAD % 251 + 1 : 0);
	}
}

static void workers_share_words(void **state)
{
	(void)state;
	hammer.claim = rx_claim;
	hammer.write = true;
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		hammer.nworkers = 2 + (uint32_t)(seed % 3);
		assert_int_equal(hammer_round(&hammer, seed), 1);
		hammer_check_end(&hammer);
	}
}

static void owner_sets_the_end(void **state)
{
	(void)state;
	hammer.claim = rx_claim;
	hammer.write = true;
	hammer.told = true;
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		hammer.nworkers = 1 + (uint32_t)(seed % 4);
		assert_true(hammer_round(&hammer, seed) <= 1);
		hammer_check_end(&hammer);
	}
	hammer.told = false;
}

/* Planted: a claim that looks and then sets. */
static uint64_t claim_in_two_steps(struct rx_slot *s, struct rx_worker *w, uint32_t first,
				   uint32_t count, uint32_t last_len)
{
	uint64_t had = atomic_load(&s->words[first / 64].claimed);

	sched_yield();
	return rx_claim(s, w, first, count, last_len) | (bits_range(first % 64, count) & ~had);
}

static void torn_claims_are_seen(void **state)
{
	uint64_t seed = 1;

	(void)state;
	hammer.claim = claim_in_two_steps;
	hammer.write = false;
	hammer.nworkers = 4;
	while (seed <= ROUNDS && hammer_round(&hammer, seed) == 1)
		seed++;
	assert_true(seed <= ROUNDS);
}

/*
 * The attack on the fence: a worker is stopped between its re-check and its copy by a copy
 * that blocks, and let go when it suits the attacker.
 */
struct attack {
	struct rx_table table;
	struct rx_slot slots[1];
	struct rx_worker worker;
	uint8_t memory[4 * PAYLOAD];
	sem_t inside, go, gone;
};

static void *attack_work(void *p)
{
	struct attack *a = p;
	struct rx_slot *s;
	uint64_t mask;

	if (rx_enter(&a->table, &a->worker, 7, &s) != RX_OK ||
	    rx_admit(s, &a->worker, 1, 2, PAYLOAD) != RX_OK)
		abort();
	mask = rx_claim(s, &a->worker, 1, 2, PAYLOAD);
	sem_post(&a->inside);
	sem_wait(&a->go);
	memset(rx_place(s, 1), 0x11, 2 * PAYLOAD);
	(void)rx_commit(s, 0, mask);
	/* The rest of its batch comes too late, also while it stays inside. */
	if (rx_enter(&a->table, &a->worker, 7, &s) != RX_LATE || a->worker.in == 0)
		abort();
	rx_leave(&a->worker);
	sem_wait(&a->gone);
	for (int i = 0; i < 1000; i++)
		if (rx_enter(&a->table, &a->worker, 7, &s) != RX_LATE || a->worker.in != 0)
			abort();
	return NULL;
}

static void fence_attack(void **state)
{
	static struct attack a;
	struct rx_bind bind = {a.memory, sizeof(a.memory), PAYLOAD, 0, 1, 0, NULL};
	uint8_t expected[sizeof(a.memory)];
	pthread_t thread;

	(void)state;
	rx_worker_init(&a.worker);
	assert_int_equal(rx_table_init(&a.table, a.slots, 1, ~0u, &a.worker, 1, 0), RX_OK);
	assert_int_equal(rx_bind(&a.table, 7, &bind), RX_OK);
	sem_init(&a.inside, 0, 0);
	sem_init(&a.go, 0, 0);
	sem_init(&a.gone, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, attack_work, &a), 0);
	sem_wait(&a.inside);
	assert_int_equal(rx_fence_begin(&a.table, 7), RX_OK);
	for (int i = 0; i < 1000; i++) {
		assert_false(rx_fence_done(&a.table, 7));
		if (i % 100 == 0)
			sched_yield();
	}
	sem_post(&a.go);
	while (!rx_fence_done(&a.table, 7))
		sched_yield();
	/* The late copy was finished before that; now the memory is ours. */
	assert_int_equal(a.memory[PAYLOAD], 0x11);
	assert_int_equal(a.memory[3 * PAYLOAD - 1], 0x11);
	memset(a.memory, 0x22, sizeof(a.memory));
	assert_int_equal(rx_bind(&a.table, 8, &bind), RX_OK);
	sem_post(&a.gone);
	pthread_join(thread, NULL);
	memset(expected, 0x22, sizeof(expected));
	assert_memory_equal(a.memory, expected, sizeof(expected));
	assert_int_equal(a.worker.late, 1001);
	sem_destroy(&a.inside);
	sem_destroy(&a.go);
	sem_destroy(&a.gone);
}

/* Workers that never stop, an owner that binds, fences and takes the memory back. */
struct fire {
	struct rx_table table;
	struct rx_slot slots[SLOTS];
	struct rx_worker workers[3];
	uint8_t memory[SLOTS][64 * PAYLOAD];
	_Atomic uint32_t newest;
	_Atomic bool stop;
	_Atomic uint64_t placed;
};

struct fire_arg {
	struct fire *f;
	uint32_t worker;
};

static void *fire_work(void *p)
{
	struct fire_arg *arg = p;
	struct fire *f = arg->f;
	struct rx_worker *w = &f->workers[arg->worker];
	struct rng rng;

	rng_init(&rng, arg->worker);
	while (!f->stop) {
		for (int i = 0; i < 8; i++) {
			uint32_t key = f->newest - (uint32_t)rng_below(&rng, 2 * SLOTS);
			uint32_t pkt = (uint32_t)rng_below(&rng, 64);
			struct rx_slot *s;
			uint64_t mask;

			if (rx_enter(&f->table, w, key, &s) != RX_OK ||
			    rx_admit(s, w, pkt, 1, PAYLOAD) != RX_OK)
				continue;
			mask = rx_claim(s, w, pkt, 1, PAYLOAD);
			if (!mask)
				continue;
			memset(rx_place(s, pkt), (int)(key % 255 + 1), PAYLOAD);
			(void)rx_commit(s, 0, mask);
			atomic_fetch_add(&f->placed, 1);
		}
		rx_leave(w);
		sched_yield();
	}
	return NULL;
}

static void fire_take_back(struct fire *f, uint32_t key)
{
	struct rx_slot *s = rx_slot_of(&f->table, key);
	uint8_t *memory = f->memory[key % SLOTS];
	uint64_t bits;

	assert_int_equal(rx_fence_begin(&f->table, key), RX_OK);
	while (!rx_fence_done(&f->table, key))
		sched_yield();
	assert_int_equal(rx_slot_check(s, true), 0);
	rx_bits_get(s, 0, 64, &bits);
	for (uint32_t pkt = 0; pkt < 64; pkt++)
		for (uint32_t i = 0; i < PAYLOAD; i++)
			assert_int_equal(memory[pkt * PAYLOAD + i],
					 bits >> pkt & 1 ? key % 255 + 1 : 0);
	memset(memory, 0xff, 64 * PAYLOAD);
	sched_yield();
	for (uint32_t i = 0; i < 64 * PAYLOAD; i++)
		assert_int_equal(memory[i], 0xff);
	memset(memory, 0, 64 * PAYLOAD);
}

static void fence_under_fire(void **state)
{
	static struct fire f;
	struct fire_arg args[3];
	pthread_t threads[3];
	uint32_t key;

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		rx_worker_init(&f.workers[i]);
	assert_int_equal(rx_table_init(&f.table, f.slots, SLOTS, ~0u, f.workers, 3, 0), RX_OK);
	for (uint32_t i = 0; i < 3; i++) {
		args[i] = (struct fire_arg){&f, i};
		assert_int_equal(pthread_create(&threads[i], NULL, fire_work, &args[i]), 0);
	}
	for (key = 0; key < 3000 || f.placed < 1000; key++) {
		struct rx_bind bind = {f.memory[key % SLOTS], 64 * PAYLOAD, PAYLOAD, 3, 1, 0, NULL};

		if (key >= SLOTS)
			fire_take_back(&f, key - SLOTS);
		assert_int_equal(rx_bind(&f.table, key, &bind), RX_OK);
		f.newest = key;
		if (key % 4 == 0)
			sched_yield();
	}
	f.stop = true;
	for (uint32_t i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	fire_take_back(&f, key - 1);
	fire_take_back(&f, key - 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_share_words),	cmocka_unit_test(owner_sets_the_end),
		cmocka_unit_test(torn_claims_are_seen), cmocka_unit_test(fence_attack),
		cmocka_unit_test(fence_under_fire),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

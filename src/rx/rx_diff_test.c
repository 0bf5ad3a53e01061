/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slot against its slow twin: random sequences over many seeds, small spaces in full,
 * and planted faults, each of which the comparison must see.
 *
 * Commits may come long after their claims, in any order, as they do with several workers.
 * RX_SEED=n replays one seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "rx/rx.h"
#include "rx/rx_twin.h"

#define SLOTS 4u
#define MAX_PAYLOAD 9u
#define MAX_BYTES (TWIN_PKTS * MAX_PAYLOAD)
#define GUARD 16u
#define PENDING 8u
#define SEEDS 3000u
#define STEPS 120u

/* The calls under test, so that a fault can be planted in one. */
struct ops {
	const char *name;
	int (*enter)(struct rx_table *, struct rx_worker *, uint32_t, struct rx_slot **);
	int (*index)(const struct rx_slot *, struct rx_worker *, uint64_t, uint32_t *);
	int (*admit)(const struct rx_slot *, struct rx_worker *, uint32_t, uint32_t, uint32_t);
	uint64_t (*claim)(struct rx_slot *, struct rx_worker *, uint32_t, uint32_t, uint32_t);
	uint64_t (*commit)(struct rx_slot *, uint32_t, uint64_t);
	int (*end_set)(struct rx_slot *, uint64_t);
};

static const struct ops right = {"right",  rx_enter,  rx_packet_index, rx_admit,
				 rx_claim, rx_commit, rx_end_set};

/* A claim that waits for its commit. */
struct pending {
	uint32_t word;
	uint64_t mask;
};

struct world {
	const struct ops *ops;
	struct rng rng;
	struct rx_table table;
	struct rx_slot slots[SLOTS];
	struct rx_worker worker;
	struct rx_slot *slot;
	uint32_t key;
	uint32_t key_mask;
	uint64_t words[2 * TWIN_PKTS / 64 + TWIN_PKTS / 64];
	struct twin twin;
	uint8_t memory[MAX_BYTES + 2 * GUARD];
	uint8_t expected[MAX_BYTES + 2 * GUARD];
	uint64_t past_counts[4]; /* of earlier bindings */
	uint64_t late;
	uint8_t stamp;
	bool discard;
	bool news; /* since the dirty bits were last taken */
	struct pending pending[PENDING];
	uint32_t npending;
	const char *wrong;
};

static void blame(struct world *w, const char *what)
{
	if (!w->wrong)
		w->wrong = what;
}

static void expect(struct world *w, bool ok, const char *what)
{
	if (!ok)
		blame(w, what);
}

static void world_init(struct world *w, const struct ops *ops, uint64_t seed)
{
	uint32_t flags;

	memset(w, 0, sizeof(*w));
	w->ops = ops;
	rng_init(&w->rng, seed);
	flags = rng_below(&w->rng, 2) ? RX_SINGLE_THREAD : 0;
	w->key_mask = rng_below(&w->rng, 2) ? ~0u : SLOTS * 4 - 1;
	w->key = (uint32_t)rng_below(&w->rng, 64);
	rx_worker_init(&w->worker);
	expect(w,
	       rx_table_init(&w->table, w->slots, SLOTS, w->key_mask, &w->worker, 1, flags) ==
		       RX_OK,
	       "init");
}

static void world_bind(struct world *w, const struct rx_bind *geometry)
{
	struct rx_bind bind = *geometry;

	w->discard = !bind.base;
	if (bind.base)
		bind.base = w->memory + GUARD;
	bind.words = rx_bind_words(bind.len, bind.payload, bind.chunk_shift) ? w->words : NULL;
	memset(w->words, 0xa5, sizeof(w->words));
	w->slot = &w->slots[w->key % SLOTS];
	expect(w, rx_bind(&w->table, w->key, &bind) == RX_OK, "bind");
	twin_bind(&w->twin, bind.len, bind.payload, 1u << bind.chunk_shift, bind.imm_frags,
		  bind.flags & RX_SPARSE);
}

static void compare_bits(struct world *w)
{
	struct twin *t = &w->twin;
	uint32_t nchunks = (t->npkts + t->chunk - 1) / t->chunk;
	uint32_t first = (uint32_t)rng_below(&w->rng, t->npkts + 3);
	uint32_t n = (uint32_t)rng_below(&w->rng, 150);
	uint64_t out[TWIN_PKTS / 64 + 1];

	rx_bits_get(w->slot, 0, t->npkts, out);
	for (uint32_t i = 0; i < bits_words(t->npkts) * 64; i++)
		expect(w, (out[i / 64] >> i % 64 & 1) == (i < t->npkts && t->committed[i]), "bits");
	rx_bits_get(w->slot, first, n, out);
	for (uint32_t i = 0; i < bits_words(n) * 64; i++)
		expect(w,
		       (out[i / 64] >> i % 64 & 1) ==
			       (i < n && first + i < t->npkts && t->committed[first + i]),
		       "a window of bits");
	expect(w, rx_chunk_count(w->slot) == nchunks, "chunk count");
	rx_chunks_get(w->slot, 0, nchunks, out);
	for (uint32_t i = 0; i < nchunks; i++)
		expect(w, (out[i / 64] >> i % 64 & 1) == t->chunk_set[i], "chunks");
}

static void compare(struct world *w)
{
	struct twin *t = &w->twin;
	uint32_t npkts, twin_npkts, imm, twin_imm;
	uint64_t bytes, twin_bytes;
	bool known = rx_end(w->slot, &npkts, &bytes);

	twin_chunks_update(t);
	expect(w, known == twin_end(t, &twin_npkts, &twin_bytes), "end known");
	expect(w, npkts == twin_npkts && bytes == twin_bytes, "end");
	expect(w, rx_imm_get(w->slot, &imm) == twin_imm_get(t, &twin_imm), "immediate seen");
	expect(w, imm == twin_imm, "immediate");
	compare_bits(w);
	expect(w, w->worker.duplicate == w->past_counts[0] + t->duplicate, "duplicates");
	expect(w, w->worker.out_of_range == w->past_counts[1] + t->out_of_range, "out of range");
	expect(w, w->worker.beyond_end == w->past_counts[2] + t->beyond_end, "beyond end");
	expect(w, w->worker.misaligned == w->past_counts[3] + t->misaligned, "misaligned");
	expect(w, w->worker.late == w->late, "late");
	expect(w, memcmp(w->memory, w->expected, sizeof(w->memory)) == 0, "memory");
	expect(w, rx_slot_check(w->slot, w->npending == 0) == 0, "an invariant");
}

static void do_commit(struct world *w, uint32_t which)
{
	struct pending p = w->pending[which];

	w->pending[which] = w->pending[--w->npending];
	expect(w, w->ops->commit(w->slot, p.word, p.mask) == 0, "committed before");
	for (uint32_t i = 0; i < 64; i++)
		if (p.mask >> i & 1)
			twin_commit(&w->twin, p.word * 64 + i);
	w->news = true;
}

/* The bytes of packet `pkt`, different for each placement, so that a second one shows. */
static void place(struct world *w, uint8_t *base, uint32_t pkt, uint8_t stamp)
{
	uint32_t n = w->twin.pkt_len[pkt];

	if (base)
		memset(base + (uint64_t)pkt * w->twin.payload, stamp, n);
}

/* A run that has been admitted: claimed, placed, and committed now or later. */
static void take_run(struct world *w, uint32_t first, uint32_t count, uint32_t last_len, bool later)
{
	bool took[64];
	uint64_t mask = w->ops->claim(w->slot, &w->worker, first, count, last_len);
	uint8_t *expected = w->discard ? NULL : w->expected + GUARD;
	uint8_t *at = rx_place(w->slot, first);

	twin_claim(&w->twin, first, count, last_len, took);
	expect(w, at == (w->discard ? NULL : w->memory + GUARD + first * w->twin.payload), "place");
	w->stamp++;
	for (uint32_t i = 0; i < count; i++) {
		bool mine = mask >> ((first + i) % 64) & 1;

		expect(w, mine == took[i], "claim");
		if (mine)
			place(w, w->discard ? NULL : w->memory + GUARD, first + i, w->stamp);
		if (took[i])
			place(w, expected, first + i, w->stamp);
	}
	if (w->wrong || !mask)
		return;
	w->pending[w->npending++] = (struct pending){first / 64, mask};
	if (!later || w->npending == PENDING)
		do_commit(w, (uint32_t)rng_below(&w->rng, w->npending));
}

static void deliver(struct world *w, uint32_t first, uint32_t count, uint32_t last_len, bool later)
{
	int verdict = w->ops->admit(w->slot, &w->worker, first, count, last_len);

	expect(w, verdict == twin_admit(&w->twin, first, count, last_len), "admit");
	if (verdict == RX_OK && !w->wrong)
		take_run(w, first, count, last_len, later);
}

static void random_offset(struct world *w)
{
	uint64_t offset = rng_below(&w->rng, w->twin.len + 2 * w->twin.payload + 1);
	uint32_t index = 0, twin_index_got = 0;

	if (rng_below(&w->rng, 2))
		offset -= offset % w->twin.payload;
	if (rng_below(&w->rng, 8) == 0)
		offset = rng_next(&w->rng);
	expect(w,
	       w->ops->index(w->slot, &w->worker, offset, &index) ==
		       twin_index(&w->twin, offset, &twin_index_got),
	       "index verdict");
	if (twin_index_got)
		expect(w, index == twin_index_got, "index");
}

static void random_key(struct world *w)
{
	uint32_t key = (uint32_t)rng_below(&w->rng, 64);
	bool bound = ((key ^ w->key) & w->key_mask) == 0;
	struct rx_slot *slot = NULL;
	int verdict = w->ops->enter(&w->table, &w->worker, key, &slot);

	if (rng_below(&w->rng, 4) == 0)
		rx_leave(&w->worker);
	w->late += !bound;
	expect(w, verdict == (bound ? RX_OK : RX_LATE), "enter");
	expect(w, !bound || slot == w->slot, "slot");
}

static void random_fill(struct world *w)
{
	uint32_t first = (uint32_t)rng_below(&w->rng, w->twin.npkts);
	uint32_t count = rx_run_fit(first, 1 + (uint32_t)rng_below(&w->rng, 70));
	struct twin before = w->twin;
	bool took[64];
	uint64_t mask;
	int verdict = rx_fill_begin(w->slot, first, count, w->twin.payload, &mask);

	expect(w, verdict == twin_admit(&w->twin, first, count, w->twin.payload), "fill");
	if (verdict == RX_OK) {
		twin_claim(&w->twin, first, count, w->twin.payload, took);
		for (uint32_t i = 0; i < count; i++)
			expect(w, (mask >> ((first + i) % 64) & 1) == took[i], "fill mask");
		rx_fill_end(w->slot, first, mask);
		for (uint32_t i = 0; i < count; i++)
			if (took[i])
				twin_commit(&w->twin, first + i);
		w->news = w->news || mask;
	}
	w->twin.duplicate = before.duplicate;
	w->twin.out_of_range = before.out_of_range;
	w->twin.beyond_end = before.beyond_end;
}

static void random_hw(struct world *w)
{
	uint32_t first = (uint32_t)rng_below(&w->rng, w->twin.npkts);
	uint32_t count = rx_run_fit(first, 1 + (uint32_t)rng_below(&w->rng, 20));
	int verdict = rx_admit(w->slot, &w->worker, first, count, w->twin.payload);
	bool took[64];
	uint64_t mask;

	expect(w, verdict == twin_admit(&w->twin, first, count, w->twin.payload), "admit");
	if (verdict != RX_OK)
		return;
	mask = rx_commit_hw(w->slot, &w->worker, first, count, w->twin.payload);
	twin_claim(&w->twin, first, count, w->twin.payload, took);
	for (uint32_t i = 0; i < count; i++) {
		expect(w, (mask >> ((first + i) % 64) & 1) == took[i], "hardware mask");
		if (took[i])
			twin_commit(&w->twin, first + i);
	}
	w->news = w->news || mask;
}

static void random_imm(struct world *w)
{
	uint32_t index = (uint32_t)rng_below(&w->rng, w->twin.npkts + 16);
	uint32_t fragment = (uint32_t)rng_next(&w->rng);
	bool added = rx_imm_add(w->slot, index, fragment);

	expect(w, added == twin_imm_add(&w->twin, index, fragment), "immediate new");
	w->news = w->news || added;
}

static void set_end(struct world *w, uint64_t bytes)
{
	bool news;
	int verdict = twin_end_set(&w->twin, bytes, &news);

	expect(w, w->ops->end_set(w->slot, bytes) == verdict, "set end");
	expect(w, rx_end_is_set(w->slot) == w->twin.told, "end is set");
	w->news = w->news || news;
}

/* Often what the packets say, or could say; else anything. */
static void random_end_set(struct world *w)
{
	struct twin *t = &w->twin;
	uint64_t bytes = rng_below(&w->rng, t->len + 3);
	uint32_t npkts;

	switch (rng_below(&w->rng, 4)) {
	case 0:
		(void)twin_end(t, &npkts, &bytes);
		break;
	case 1:
		bytes -= bytes % t->payload;
		break;
	case 2: /* behind the last that came */
		npkts = t->npkts;
		while (npkts > 0 && !t->claimed[npkts - 1])
			npkts--;
		bytes = (uint64_t)npkts * t->payload + rng_below(&w->rng, 2 * t->payload);
		break;
	default:
		break;
	}
	set_end(w, bytes);
}

static void take_dirty(struct world *w)
{
	uint64_t bit = UINT64_C(1) << w->key % SLOTS;

	expect(w, rx_dirty_take(&w->table, 0) == (w->news ? bit : 0), "dirty");
	expect(w, rx_dirty_take(&w->table, 0) == 0, "dirty twice");
	w->news = false;
}

static void rebind(struct world *w)
{
	static const uint8_t frags[] = {1, 8, 16};
	struct twin *t = &w->twin;
	struct rx_bind bind = {0};
	uint64_t pkts = rng_below(&w->rng, 3) ? rng_below(&w->rng, 12) : rng_below(&w->rng, 300);

	if (w->slot) {
		while (w->npending)
			do_commit(w, 0);
		compare(w);
		take_dirty(w);
		rx_leave(&w->worker);
		expect(w, rx_bind(&w->table, w->key, &bind) == RX_BUSY, "busy");
		expect(w, !rx_fence_done(&w->table, w->key), "fence done before it began");
		expect(w, rx_fence_begin(&w->table, w->key) == RX_OK, "fence");
		expect(w, rx_fence_begin(&w->table, w->key) == RX_LATE, "fence twice");
		expect(w, rx_fence_done(&w->table, w->key), "fence done");
		w->key += 1 + (uint32_t)rng_below(&w->rng, 9);
	}
	w->past_counts[0] += t->duplicate;
	w->past_counts[1] += t->out_of_range;
	w->past_counts[2] += t->beyond_end;
	w->past_counts[3] += t->misaligned;
	bind.payload = 1 + (uint32_t)rng_below(&w->rng, MAX_PAYLOAD);
	bind.len = pkts * bind.payload + rng_below(&w->rng, bind.payload);
	bind.chunk_shift = (uint8_t)rng_below(&w->rng, 7);
	bind.imm_frags = frags[rng_below(&w->rng, 3)];
	bind.flags = rng_below(&w->rng, 5) ? 0 : RX_SPARSE;
	bind.base = rng_below(&w->rng, 5) ? w->memory : NULL;
	world_bind(w, &bind);
}

/* Mostly full packets; short ones anywhere; sometimes nonsense. */
static void random_run(struct world *w)
{
	struct twin *t = &w->twin;
	uint32_t first = (uint32_t)rng_below(&w->rng, t->npkts);
	uint32_t count = 1 + (uint32_t)rng_below(&w->rng, rng_below(&w->rng, 2) ? 4 : 70);
	uint32_t last_len = t->payload;

	if (rng_below(&w->rng, 10) == 0)
		first = (uint32_t)rng_below(&w->rng, t->npkts + 70);
	if (rng_below(&w->rng, 20)) {
		count = rx_run_fit(first, count);
		if (first < t->npkts && count > t->npkts - first && rng_below(&w->rng, 8))
			count = t->npkts - first;
	}
	if (first + count == t->npkts && rng_below(&w->rng, 8))
		last_len = (uint32_t)(t->len - (uint64_t)(t->npkts - 1) * t->payload);
	if (t->told && rng_below(&w->rng, 4)) {
		uint64_t at = (uint64_t)(first + count - 1) * t->payload;

		if (at <= t->told_bytes && t->told_bytes < at + t->payload)
			last_len = (uint32_t)(t->told_bytes - at);
	}
	if (rng_below(&w->rng, 30) == 0)
		last_len = (uint32_t)rng_below(&w->rng, t->payload + 2);
	if (rng_below(&w->rng, 200) == 0)
		count = 0;
	deliver(w, first, count, last_len, rng_below(&w->rng, 3) == 0);
}

static void random_step(struct world *w)
{
	switch (rng_below(&w->rng, 21)) {
	case 0:
		random_offset(w);
		break;
	case 1:
		random_key(w);
		break;
	case 2:
		random_fill(w);
		break;
	case 3:
		random_hw(w);
		break;
	case 4:
		random_imm(w);
		break;
	case 5:
		take_dirty(w);
		break;
	case 6:
		if (rng_below(&w->rng, 3) == 0)
			rebind(w);
		break;
	case 7:
		if (w->npending)
			do_commit(w, (uint32_t)rng_below(&w->rng, w->npending));
		break;
	case 8:
		if (rng_below(&w->rng, 4) == 0)
			random_end_set(w);
		break;
	default:
		random_run(w);
	}
}

/* NULL, or what differed. */
static const char *diff_seed(const struct ops *ops, uint64_t seed)
{
	static struct world w;

	world_init(&w, ops, seed);
	rebind(&w);
	for (uint32_t i = 0; i < STEPS && !w.wrong; i++) {
		random_step(&w);
		if (!w.wrong)
			compare(&w);
	}
	if (!w.wrong)
		rebind(&w);
	return w.wrong;
}

static void random_differential(void **state)
{
	const char *replay = getenv("RX_SEED");
	uint64_t first = replay ? strtoull(replay, NULL, 0) : 1;
	uint64_t last = replay ? first : SEEDS;

	(void)state;
	for (uint64_t seed = first; seed <= last; seed++) {
		const char *wrong = diff_seed(&right, seed);

		if (wrong)
			fail_msg("RX_SEED=%llu: %s", (unsigned long long)seed, wrong);
	}
}

/* What a small exhaustive search delivers: packet `index` with `len` bytes, or SAY_END. */
struct arrival {
	uint32_t index;
	uint32_t len;
};

#define SAY_END UINT32_MAX /* no packet: the message's length is set to `len` */

static void run_arrivals(const struct rx_bind *bind, const struct arrival *a, uint32_t n,
			 uint32_t flags)
{
	static struct world w;

	world_init(&w, &right, 1);
	expect(&w,
	       rx_table_init(&w.table, w.slots, SLOTS, w.key_mask, &w.worker, 1, flags) == RX_OK,
	       "init");
	world_bind(&w, bind);
	for (uint32_t i = 0; i < n && !w.wrong; i++) {
		if (a[i].index == SAY_END)
			set_end(&w, a[i].len);
		else
			deliver(&w, a[i].index, 1, a[i].len, false);
		compare(&w);
	}
	if (w.wrong) {
		fprintf(stderr, "len %llu payload %u shift %u:", (unsigned long long)bind->len,
			bind->payload, bind->chunk_shift);
		for (uint32_t i = 0; i < n; i++)
			fprintf(stderr, " %u(%u)", a[i].index, a[i].len);
		fail_msg(" %s", w.wrong);
	}
}

/* Every sequence of n arrivals out of `kinds`. */
static void all_sequences(const struct rx_bind *bind, const struct arrival *kinds, uint32_t nkinds,
			  uint32_t n)
{
	uint32_t digit[8] = {0};
	struct arrival a[8];
	uint32_t turn = 0;

	for (;;) {
		uint32_t i = 0;

		for (uint32_t k = 0; k < n; k++)
			a[k] = kinds[digit[k]];
		run_arrivals(bind, a, n, turn++ % 2 ? RX_SINGLE_THREAD : 0);
		while (i < n && ++digit[i] == nkinds)
			digit[i++] = 0;
		if (i == n)
			return;
	}
}

/* Honest messages of every length in every receive of up to 5 packets, any order, duplicates. */
static void all_orders(void **state)
{
	const uint32_t payload = 2;

	(void)state;
	for (uint64_t room = 0; room <= 5 * payload; room++) {
		for (uint64_t len = 0; len <= room; len++) {
			struct arrival kinds[7];
			uint32_t nkinds = 0;

			for (; (nkinds + 1) * payload <= len; nkinds++)
				kinds[nkinds] = (struct arrival){nkinds, payload};
			if (len < room || len % payload || room == 0) {
				kinds[nkinds] = (struct arrival){nkinds, (uint32_t)(len % payload)};
				nkinds++;
			}
			for (uint8_t shift = 0; shift <= 2; shift++) {
				struct rx_bind bind = {(uint8_t *)1, room, payload, shift, 1, 0,
						       NULL};

				all_sequences(&bind, kinds, nkinds, nkinds < 5 ? nkinds + 1 : 5);
				kinds[nkinds] = (struct arrival){SAY_END, (uint32_t)len};
				all_sequences(&bind, kinds, nkinds + 1,
					      nkinds < 3 ? nkinds + 1 : 4);
			}
		}
	}
}

/* Anything that a broken or lying sender may send to a receive of 3 packets. */
static void all_short_packets(void **state)
{
	(void)state;
	for (uint64_t room = 5; room <= 6; room++) {
		struct rx_bind bind = {(uint8_t *)1, room, 2, 1, 8, 0, NULL};
		struct arrival kinds[12 + 8];
		uint32_t all = 12;

		for (uint32_t i = 0; i < 12; i++)
			kinds[i] = (struct arrival){i / 3, i % 3};
		for (uint32_t len = 0; len <= room + 1; len++)
			kinds[all++] = (struct arrival){SAY_END, len};
		all_sequences(&bind, kinds, 12, 4);
		all_sequences(&bind, kinds, all, 3);
		bind.flags = RX_SPARSE;
		all_sequences(&bind, kinds, all, 3);
	}
}

/* Receives around multiples of chunk and word, forwards and backwards. */
static void all_lengths(void **state)
{
	static struct world w;
	const uint32_t payload = 3;

	(void)state;
	for (uint32_t pkts = 0; pkts <= 200; pkts++) {
		for (uint32_t turn = 0; turn < 7 * 3 * 2; turn++) {
			struct rx_bind bind = {.base = w.memory,
					       .len = pkts * payload + turn / 7 % 3,
					       .payload = payload,
					       .chunk_shift = (uint8_t)(turn % 7),
					       .imm_frags = 1};
			uint32_t npkts, tail;

			world_init(&w, &right, turn + 1);
			world_bind(&w, &bind);
			npkts = w.twin.npkts;
			tail = (uint32_t)(bind.len - (uint64_t)(npkts - 1) * payload);
			for (uint32_t i = 0; i < npkts && !w.wrong; i++) {
				uint32_t pkt = turn >= 21 ? npkts - 1 - i : i;

				deliver(&w, pkt, 1, pkt == npkts - 1 ? tail : payload, false);
				if (i % 31 == 0 || i + 2 >= npkts)
					compare(&w);
			}
			for (uint32_t i = 0; i < rx_chunk_count(w.slot); i++)
				expect(&w, w.twin.chunk_set[i], "a chunk is not full at the end");
			if (w.wrong)
				fail_msg("%u packets, turn %u: %s", pkts, turn, w.wrong);
		}
	}
}

/*
 * Planted faults.
 */

static int enter_any_generation(struct rx_table *t, struct rx_worker *w, uint32_t key,
				struct rx_slot **slot)
{
	*slot = rx_slot_of(t, key);
	if (atomic_load(&(*slot)->state) & RX_BOUND)
		return RX_OK;
	rx_count(&w->late, 1);
	return RX_LATE;
}

static int index_rounds_down(const struct rx_slot *s, struct rx_worker *w, uint64_t offset,
			     uint32_t *index)
{
	return rx_packet_index(s, w, offset - offset % s->payload, index);
}

static int admit_ignores_end(const struct rx_slot *s, struct rx_worker *w, uint32_t first,
			     uint32_t count, uint32_t last_len)
{
	int verdict = rx_admit(s, w, first, count, last_len);

	return verdict == RX_BEYOND_END ? RX_OK : verdict;
}

static int admit_ignores_tail(const struct rx_slot *s, struct rx_worker *w, uint32_t first,
			      uint32_t count, uint32_t last_len)
{
	uint64_t past = (uint64_t)first + count;

	return rx_admit(s, w, first, count,
			past == s->npkts && last_len <= s->payload ? s->tail_len : last_len);
}

static uint64_t claim_grants_duplicates(struct rx_slot *s, struct rx_worker *w, uint32_t first,
					uint32_t count, uint32_t last_len)
{
	(void)rx_claim(s, w, first, count, last_len);
	return bits_range(first % 64, count);
}

static uint64_t claim_ignores_short(struct rx_slot *s, struct rx_worker *w, uint32_t first,
				    uint32_t count, uint32_t last_len)
{
	(void)last_len;
	return rx_claim(s, w, first, count, s->payload);
}

/* The end moves even for a short packet that is a duplicate of a full one. */
static uint64_t claim_believes_duplicates(struct rx_slot *s, struct rx_worker *w, uint32_t first,
					  uint32_t count, uint32_t last_len)
{
	if (rx_is_end(s, (uint64_t)first + count, last_len))
		rx_end_lower(s, (uint64_t)(first + count) << 32 | last_len);
	return rx_claim(s, w, first, count, last_len);
}

static uint64_t commit_with_end(struct rx_slot *s, uint32_t word, uint64_t mask, uint64_t end)
{
	uint64_t right_end = atomic_load(&s->end);
	uint64_t had;

	atomic_store(&s->end, end);
	had = rx_commit(s, word, mask);
	atomic_store(&s->end, right_end);
	return had;
}

static uint64_t commit_ignores_end(struct rx_slot *s, uint32_t word, uint64_t mask)
{
	return commit_with_end(s, word, mask, (uint64_t)(s->npkts + 64) << 32);
}

static uint64_t commit_ends_one_early(struct rx_slot *s, uint32_t word, uint64_t mask)
{
	uint64_t end = atomic_load(&s->end);

	return commit_with_end(s, word, mask, end - (UINT64_C(1) << 32));
}

static uint64_t commit_first_chunk_only(struct rx_slot *s, uint32_t word, uint64_t mask)
{
	uint64_t low = mask & bits_low(1u << s->chunk_shift);
	uint64_t had = low ? rx_commit(s, word, low) : 0;

	atomic_fetch_or(&s->words[word].committed, mask);
	return had;
}

static uint64_t commit_is_silent(struct rx_slot *s, uint32_t word, uint64_t mask)
{
	uint64_t dirty = atomic_load(s->dirty);
	uint64_t had = rx_commit(s, word, mask);

	atomic_store(s->dirty, dirty);
	return had;
}

static int end_set_trusts(struct rx_slot *s, uint64_t bytes)
{
	uint64_t end;

	if (rx_end_set(s, bytes) == RX_OK)
		return RX_OK;
	if (s->sparse || bytes > s->len || rx_end_is_set(s))
		return RX_BEYOND_END;
	end = (bytes / s->payload + 1) << 32 | bytes % s->payload;
	atomic_store(&s->end, end | RX_END_FIRM);
	return RX_OK;
}

static int end_set_is_soft(struct rx_slot *s, uint64_t bytes)
{
	int verdict = rx_end_set(s, bytes);

	atomic_fetch_and(&s->end, ~RX_END_FIRM);
	return verdict;
}

static int end_set_leaves_end_packet(struct rx_slot *s, uint64_t bytes)
{
	uint64_t chunk0 = atomic_load(s->chunks), was[2];
	uint64_t at = bytes / s->payload;
	int verdict;

	if (bytes > s->len || at >= s->npkts)
		return rx_end_set(s, bytes);
	was[0] = atomic_load(&s->words[at / 64].claimed);
	was[1] = atomic_load(&s->words[at / 64].committed);
	verdict = rx_end_set(s, bytes);
	atomic_store(&s->words[at / 64].claimed, was[0]);
	atomic_store(&s->words[at / 64].committed, was[1]);
	atomic_store(s->chunks, chunk0);
	return verdict;
}

/* The end packet's bits alone: nobody looks whether that made its chunk full. */
static int end_set_forgets_chunk(struct rx_slot *s, uint64_t bytes)
{
	uint64_t chunks = atomic_load(s->chunks);
	int verdict = rx_end_set(s, bytes);

	atomic_store(s->chunks, chunks);
	return verdict;
}

static void planted_faults_are_seen(void **state)
{
	struct ops faulty[16];
	uint32_t n = 0;

	(void)state;
	for (uint32_t i = 0; i < SDR_ARRAY_LEN(faulty); i++)
		faulty[i] = right;
#define PLANT(call, fault) (faulty[n].name = #fault, faulty[n++].call = fault)
	PLANT(enter, enter_any_generation);
	PLANT(index, index_rounds_down);
	PLANT(admit, admit_ignores_end);
	PLANT(admit, admit_ignores_tail);
	PLANT(claim, claim_grants_duplicates);
	PLANT(claim, claim_ignores_short);
	PLANT(claim, claim_believes_duplicates);
	PLANT(commit, commit_ignores_end);
	PLANT(commit, commit_ends_one_early);
	PLANT(commit, commit_first_chunk_only);
	PLANT(commit, commit_is_silent);
	PLANT(end_set, end_set_trusts);
	PLANT(end_set, end_set_is_soft);
	PLANT(end_set, end_set_leaves_end_packet);
	PLANT(end_set, end_set_forgets_chunk);
#undef PLANT
	for (uint32_t i = 0; i < n; i++) {
		uint64_t seed = 1;

		while (seed <= SEEDS && !diff_seed(&faulty[i], seed))
			seed++;
		if (seed > SEEDS)
			fail_msg("%s: not seen in %u seeds", faulty[i].name, SEEDS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_differential),	   cmocka_unit_test(all_orders),
		cmocka_unit_test(all_short_packets),	   cmocka_unit_test(all_lengths),
		cmocka_unit_test(planted_faults_are_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The receive path's table tests: every edge of words, chunks, ends, keys and fences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "rx/rx.h"

#define SLOTS 4u

struct fixture {
	struct rx_table table;
	struct rx_slot slots[SLOTS];
	struct rx_worker workers[2];
	uint64_t words[64];
	uint8_t memory[4096];
};

static struct fixture fx;

static void setup(uint32_t key_mask)
{
	memset(&fx, 0, sizeof(fx));
	rx_worker_init(&fx.workers[0]);
	rx_worker_init(&fx.workers[1]);
	assert_int_equal(rx_table_init(&fx.table, fx.slots, SLOTS, key_mask, fx.workers, 2, 0),
			 RX_OK);
}

static struct rx_slot *bind_key(uint32_t key, uint64_t len, uint32_t payload, uint8_t shift,
				uint8_t frags)
{
	struct rx_bind bind = {.base = fx.memory,
			       .len = len,
			       .payload = payload,
			       .chunk_shift = shift,
			       .imm_frags = frags,
			       .words = fx.words};

	assert_true(rx_bind_words(len, payload, shift) <= SDR_ARRAY_LEN(fx.words));
	assert_int_equal(rx_bind(&fx.table, key, &bind), RX_OK);
	return rx_slot_of(&fx.table, key);
}

static void unbind(uint32_t key)
{
	assert_int_equal(rx_fence_begin(&fx.table, key), RX_OK);
	assert_true(rx_fence_done(&fx.table, key));
}

/* One packet all the way; its verdict, or RX_BUSY for a duplicate. */
static int packet(struct rx_slot *s, uint32_t index, uint32_t len)
{
	struct rx_worker *w = &fx.workers[0];
	int verdict = rx_admit(s, w, index, 1, len);
	uint64_t mask;

	if (verdict != RX_OK)
		return verdict;
	mask = rx_claim(s, w, index, 1, len);
	if (!mask)
		return RX_BUSY;
	assert_int_equal(mask, UINT64_C(1) << index % 64);
	assert_int_equal(rx_commit(s, index / 64, mask), 0);
	assert_int_equal(rx_slot_check(s, true), 0);
	return RX_OK;
}

static uint64_t chunks_of(const struct rx_slot *s)
{
	uint64_t out = 0;

	rx_chunks_get(s, 0, 64, &out);
	return out;
}

static void init_checks_its_arguments(void **state)
{
	static const struct {
		uint32_t nslots, key_mask, nworkers, flags;
		int want;
	} rows[] = {
		{4, ~0u, 2, 0, RX_OK},
		{4, 0xf, 2, 0, RX_OK},
		{4, 0x3, 2, 0, RX_OK},
		{4, 0x1, 2, 0, RX_INVALID},
		{4, 0xd, 2, 0, RX_INVALID},
		{3, ~0u, 2, 0, RX_INVALID},
		{0, ~0u, 2, 0, RX_INVALID},
		{RX_MAX_SLOTS * 2, ~0u, 2, 0, RX_INVALID},
		{1, 0, 1, RX_SINGLE_THREAD, RX_OK},
		{4, ~0u, 2, RX_SINGLE_THREAD, RX_INVALID},
		{4, ~0u, 0, 0, RX_INVALID},
		{4, ~0u, 2, 2, RX_INVALID},
	};

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(rows); i++)
		assert_int_equal(rx_table_init(&fx.table, fx.slots, rows[i].nslots,
					       rows[i].key_mask, fx.workers, rows[i].nworkers,
					       rows[i].flags),
				 rows[i].want);
}

static void bind_checks_its_arguments(void **state)
{
	const struct rx_bind good = {fx.memory, 100, 10, 2, 1, 0, NULL};
	struct rx_bind bad;

	(void)state;
	setup(~0u);
#define REFUSED(field, value) \
	bad = good, bad.field = value, assert_int_equal(rx_bind(&fx.table, 1, &bad), RX_INVALID)
	REFUSED(payload, 0);
	REFUSED(payload, RX_MAX_PAYLOAD + 1);
	REFUSED(chunk_shift, 7);
	REFUSED(imm_frags, 0);
	REFUSED(imm_frags, 4);
	REFUSED(imm_frags, 32);
	REFUSED(flags, 2);
	REFUSED(len, 641); /* 65 packets want words */
	REFUSED(len, 10 * ((UINT64_C(1) << 32) - 1) + 1);
	REFUSED(len, UINT64_MAX);
#undef REFUSED
	assert_int_equal(rx_bind(&fx.table, 1, &good), RX_OK);
	assert_int_equal(rx_bind(&fx.table, 1, &good), RX_BUSY);
	assert_int_equal(rx_bind(&fx.table, 5, &good), RX_BUSY);
	assert_int_equal(rx_bind(&fx.table, 2, &good), RX_OK);
}

static void words_wanted(void **state)
{
	static const struct {
		uint64_t len;
		uint32_t payload;
		uint8_t shift;
		size_t want;
	} rows[] = {
		{0, 10, 0, 0},
		{640, 10, 0, 0},
		{641, 10, 0, 2 * 2 + 2},
		{641, 10, 1, 2 * 2 + 1},
		{641, 10, 6, 2 * 2 + 1},
		{1280, 10, 0, 2 * 2 + 2},
		{1281, 10, 0, 2 * 3 + 3},
		{1281, 10, 1, 2 * 3 + 2},
		{10 * UINT64_C(4294967295), 10, 6, 2 * 67108864 + 1048576},
		{10 * UINT64_C(4294967295) + 1, 10, 6, 0},
	};

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(rows); i++)
		assert_int_equal(rx_bind_words(rows[i].len, rows[i].payload, rows[i].shift),
				 rows[i].want);
}

static void check_index(const struct rx_slot *s, uint64_t offset)
{
	bool whole = offset % s->payload == 0;
	bool inside = offset / s->payload < s->npkts;
	uint32_t index = 0;
	int verdict = rx_packet_index(s, &fx.workers[0], offset, &index);

	assert_int_equal(verdict, !whole ? RX_MISALIGNED : (!inside ? RX_OUT_OF_RANGE : RX_OK));
	if (verdict == RX_OK)
		assert_int_equal(index, offset / s->payload);
}

/* Against plain division, for every payload, with the largest receive and a small one. */
static void index_is_exact(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 7);
	for (uint32_t payload = 1; payload <= RX_MAX_PAYLOAD; payload++) {
		uint64_t top = UINT64_C(0xffffffff) * payload;
		struct rx_slot *s;

		setup(~0u);
		s = bind_key(1, 64 * (uint64_t)payload, payload, 0, 1);
		for (int huge = 0; huge < 2; huge++) {
			for (uint64_t d = 0; d < 3; d++) {
				check_index(s, d);
				check_index(s, (s->npkts - 1 + d) * (uint64_t)payload);
				check_index(s, s->npkts * (uint64_t)payload - d);
				check_index(s, top - d);
				check_index(s, top + payload + d);
				check_index(s, UINT64_MAX - d);
				check_index(s, UINT64_MAX / payload * payload - d);
				check_index(s, (UINT64_C(1) << 32) * payload - d);
			}
			for (int i = 0; i < 8; i++) {
				check_index(s, rng_below(&rng, s->npkts) * payload);
				check_index(s, rng_below(&rng, top));
				check_index(s, rng_next(&rng));
				check_index(s, rng_next(&rng) >> rng_below(&rng, 64));
			}
			/* The largest receive there is; no bitmap is touched here. */
			s->npkts = UINT32_MAX;
		}
	}
}

static void runs_fit_in_words(void **state)
{
	static const uint32_t rows[][3] = {
		{0, 1, 1},  {0, 64, 64}, {0, 65, 64}, {1, 64, 63},	  {63, 1, 1},	{63, 2, 1},
		{64, 9, 9}, {127, 5, 1}, {5, 0, 0},   {UINT32_MAX, 7, 1}, {10, ~0u, 54}};

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(rows); i++)
		assert_int_equal(rx_run_fit(rows[i][0], rows[i][1]), rows[i][2]);
}

/* Receive of 130 packets of 10 bytes, the last of which has room for 4. */
static void admission(void **state)
{
	static const struct {
		uint32_t first, count, last_len;
		int want;
	} rows[] = {
		{0, 1, 10, RX_OK},
		{0, 1, 0, RX_OK},
		{0, 64, 10, RX_OK},
		{0, 65, 10, RX_INVALID},
		{0, 0, 10, RX_INVALID},
		{63, 1, 10, RX_OK},
		{63, 2, 10, RX_INVALID},
		{64, 64, 10, RX_OK},
		{128, 2, 4, RX_OK},
		{128, 2, 5, RX_OUT_OF_RANGE},
		{128, 2, 3, RX_OK},
		{128, 1, 10, RX_OK},
		{128, 1, 11, RX_OUT_OF_RANGE},
		{128, 3, 1, RX_OUT_OF_RANGE},
		{130, 1, 0, RX_OUT_OF_RANGE},
		{130, 1, 1, RX_OUT_OF_RANGE},
		{0, 1, UINT32_MAX, RX_OUT_OF_RANGE},
		{UINT32_MAX, 1, 10, RX_OUT_OF_RANGE},
		{UINT32_MAX, 2, 10, RX_INVALID},
		{UINT32_MAX - 63, 64, 10, RX_OUT_OF_RANGE},
		{0, UINT32_MAX, 10, RX_INVALID},
	};
	struct rx_slot *s;
	uint64_t refused = 0;

	(void)state;
	setup(~0u);
	s = bind_key(1, 1294, 10, 3, 1);
	for (size_t i = 0; i < SDR_ARRAY_LEN(rows); i++) {
		assert_int_equal(
			rx_admit(s, &fx.workers[0], rows[i].first, rows[i].count, rows[i].last_len),
			rows[i].want);
		refused += rows[i].want == RX_OUT_OF_RANGE ? rows[i].count : 0;
	}
	assert_int_equal(fx.workers[0].out_of_range, refused);
}

static void ends(void **state)
{
	uint32_t npkts;
	uint64_t bytes;
	struct rx_slot *s;

	(void)state;
	setup(~0u);
	/* A high short packet first, then a lower one: the lower wins; none after it. */
	s = bind_key(1, 1000, 10, 2, 1);
	assert_false(rx_end(s, &npkts, &bytes));
	assert_int_equal(npkts, 100);
	assert_int_equal(bytes, 1000);
	assert_int_equal(packet(s, 80, 3), RX_OK);
	assert_true(rx_end(s, &npkts, &bytes));
	assert_int_equal(bytes, 803);
	assert_int_equal(packet(s, 81, 10), RX_BEYOND_END);
	assert_int_equal(packet(s, 5, 0), RX_OK);
	assert_true(rx_end(s, &npkts, &bytes));
	assert_int_equal(npkts, 6);
	assert_int_equal(bytes, 50);
	assert_int_equal(packet(s, 79, 10), RX_BEYOND_END);
	assert_int_equal(packet(s, 6, 0), RX_BEYOND_END);
	assert_int_equal(fx.workers[0].beyond_end, 3);
	/* Its second chunk is packets 4 and 5 now. */
	assert_int_equal(chunks_of(s) & 3, 0);
	assert_int_equal(packet(s, 4, 10), RX_OK);
	assert_int_equal(chunks_of(s) & 3, 2);
	/* A duplicate of a full packet, but short: no end. */
	assert_int_equal(packet(s, 4, 2), RX_BUSY);
	assert_true(rx_end(s, &npkts, &bytes));
	assert_int_equal(npkts, 6);
	unbind(1);

	/* As long as its receive: a full last packet is the end. */
	s = bind_key(1, 20, 10, 0, 1);
	assert_int_equal(packet(s, 1, 10), RX_OK);
	assert_true(rx_end(s, &npkts, &bytes));
	assert_int_equal(bytes, 20);
	unbind(1);

	/* An empty receive has one packet, of no bytes. */
	s = bind_key(1, 0, 10, 0, 1);
	assert_int_equal(packet(s, 0, 1), RX_OUT_OF_RANGE);
	assert_int_equal(packet(s, 0, 0), RX_OK);
	assert_true(rx_end(s, &npkts, &bytes));
	assert_int_equal(npkts, 1);
	assert_int_equal(bytes, 0);
	assert_int_equal(chunks_of(s), 1);
}

/* For every chunk size and every end up to two words and a bit: the tail chunk fills last. */
static void tail_chunks(void **state)
{
	(void)state;
	for (uint8_t shift = 0; shift <= RX_MAX_CHUNK_SHIFT; shift++) {
		for (uint32_t end = 1; end <= 140; end++) {
			uint32_t chunk = (end - 1) >> shift;
			uint64_t out[4] = {0};
			struct rx_slot *s;

			setup(~0u);
			s = bind_key(1, 1500, 10, shift, 1);
			assert_int_equal(packet(s, end - 1, 9), RX_OK);
			for (uint32_t pkt = 0; pkt < end - 1; pkt++) {
				rx_chunks_get(s, 0, 150, out);
				assert_int_equal(out[chunk / 64] >> chunk % 64 & 1,
						 chunk << shift == end - 1);
				assert_int_equal(packet(s, pkt, 10), RX_OK);
			}
			rx_chunks_get(s, 0, 150, out);
			for (uint32_t i = 0; i < 192; i++)
				assert_int_equal(out[i / 64] >> i % 64 & 1, i <= chunk);
		}
	}
}

static void sparse_messages_do_not_end(void **state)
{
	struct rx_bind bind = {fx.memory, 100, 10, 1, 1, RX_SPARSE, NULL};
	struct rx_slot *s = &fx.slots[3];
	uint32_t npkts;
	uint64_t bytes;

	(void)state;
	setup(~0u);
	assert_int_equal(rx_bind(&fx.table, 3, &bind), RX_OK);
	assert_int_equal(packet(s, 9, 10), RX_OK);
	assert_int_equal(packet(s, 2, 4), RX_OK);
	assert_int_equal(packet(s, 3, 10), RX_OK);
	assert_false(rx_end(s, &npkts, &bytes));
	assert_int_equal(npkts, 10);
	assert_int_equal(chunks_of(s), 2);
}

static void discarded_messages_have_bits(void **state)
{
	struct rx_bind bind = {NULL, 100, 10, 0, 1, 0, NULL};
	struct rx_slot *s = &fx.slots[3];

	(void)state;
	setup(~0u);
	assert_int_equal(rx_bind(&fx.table, 3, &bind), RX_OK);
	assert_null(rx_place(s, 5));
	assert_int_equal(packet(s, 5, 10), RX_OK);
	assert_int_equal(chunks_of(s), 32);
}

static void commit_without_claim(void **state)
{
	struct rx_slot *s;
	uint64_t bits;

	(void)state;
	setup(~0u);
	s = bind_key(1, 2000, 10, 3, 1);
	assert_int_equal(rx_commit(s, 1, 0xff), 0);
	assert_int_equal(rx_commit(s, 1, 0x1f0), 0xf0);
	assert_int_equal(rx_commit(s, 1, 0x1f0), 0x1f0);
	rx_bits_get(s, 64, 64, &bits);
	assert_int_equal(bits, 0x1ff);
	assert_int_equal(chunks_of(s), 1 << 8);
	assert_int_equal(rx_claim(s, &fx.workers[0], 64, 16, 10), 0xfe00);
	assert_int_equal(fx.workers[0].duplicate, 9);
	assert_int_equal(rx_slot_check(s, true), 0);
	/* The whole of hardware's: claim, end and commit. */
	assert_int_equal(rx_commit_hw(s, &fx.workers[0], 128, 3, 7), 7);
	assert_int_equal(rx_commit_hw(s, &fx.workers[0], 128, 3, 7), 0);
	assert_int_equal(fx.workers[0].duplicate, 12);
	assert_int_equal(chunks_of(s), 1 << 8 | 1 << 16);
}

static void fills(void **state)
{
	struct rx_slot *s;
	uint64_t mask;

	(void)state;
	setup(~0u);
	s = bind_key(1, 100, 10, 2, 1);
	assert_int_equal(packet(s, 1, 10), RX_OK);
	assert_int_equal(rx_fill_begin(s, 0, 4, 10, &mask), RX_OK);
	assert_int_equal(mask, 0xd);
	/* What arrives meanwhile is a duplicate: the filler writes those bytes. */
	assert_int_equal(packet(s, 2, 10), RX_BUSY);
	assert_int_equal(chunks_of(s), 0);
	rx_fill_end(s, 0, mask);
	assert_int_equal(chunks_of(s), 1);
	assert_int_equal(rx_fill_begin(s, 4, 2, 7, &mask), RX_OK);
	rx_fill_end(s, 4, mask);
	assert_int_equal(chunks_of(s), 3);
	assert_int_equal(rx_fill_begin(s, 6, 1, 10, &mask), RX_BEYOND_END);
	assert_int_equal(mask, 0);
	rx_fill_end(s, 6, mask);
	assert_int_equal(rx_fill_begin(s, 60, 9, 10, &mask), RX_INVALID);
	assert_int_equal(fx.workers[0].beyond_end, 0);
}

static void immediates(void **state)
{
	static const uint8_t frags[] = {1, 8, 16};
	const uint32_t value = 0x9e3779b9;

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(frags); i++) {
		uint32_t n = frags[i], width = 32 / n, imm;
		struct rx_slot *s;

		setup(~0u);
		s = bind_key(1, 200, 10, 0, frags[i]);
		for (uint32_t f = n; f-- > 0;) {
			assert_false(rx_imm_get(s, &imm));
			assert_true(rx_imm_add(s, f + n, value >> f * width));
			assert_false(rx_imm_add(s, f, ~(value >> f * width)));
			assert_int_equal(rx_slot_check(s, true), 0);
		}
		assert_true(rx_imm_get(s, &imm));
		assert_int_equal(imm, value);
		assert_int_equal(rx_dirty_take(&fx.table, 0), 2);
	}
}

/* Fragments that no data packet carries: after the end, no data bits, in any order. */
static void immediate_only_packets(void **state)
{
	struct rx_slot *s;
	uint64_t bits;
	uint32_t npkts;
	uint64_t bytes;

	(void)state;
	setup(~0u);
	s = bind_key(1, 25, 10, 0, 8);			/* 3 packets */
	assert_int_equal(packet(s, 3, 0), RX_IMM_ONLY); /* outside the receive */
	assert_int_equal(packet(s, 7, 0), RX_IMM_ONLY);
	assert_int_equal(packet(s, 8, 0), RX_OUT_OF_RANGE);
	assert_int_equal(packet(s, 7, 1), RX_OUT_OF_RANGE);
	assert_int_equal(packet(s, 2, 0), RX_OK); /* taken for the end, for now */
	assert_int_equal(packet(s, 0, 7), RX_OK); /* the real one */
	assert_int_equal(packet(s, 1, 0), RX_IMM_ONLY);
	assert_int_equal(packet(s, 1, 2), RX_BEYOND_END);
	assert_true(rx_end(s, &npkts, &bytes));
	assert_int_equal(bytes, 7);
	rx_bits_get(s, 0, npkts, &bits);
	assert_int_equal(bits, 1);
	assert_int_equal(chunks_of(s) & 1, 1);
	unbind(1);
	/* With one fragment there is no such packet. */
	s = bind_key(1, 25, 10, 0, 1);
	assert_int_equal(packet(s, 3, 0), RX_OUT_OF_RANGE);
}

static void old_keys_are_late(void **state)
{
	struct rx_worker *w = &fx.workers[0];
	struct rx_slot *s;

	(void)state;
	setup(~0u);
	assert_int_equal(rx_enter(&fx.table, w, 1, &s), RX_LATE);
	assert_int_equal(w->in, 0);
	bind_key(1, 100, 10, 0, 1);
	assert_int_equal(rx_enter(&fx.table, w, 1, &s), RX_OK);
	assert_ptr_equal(s, &fx.slots[1]);
	assert_int_equal(w->in, (uintptr_t)s);
	/* A refusal in the middle of a batch does not end the stay. */
	assert_int_equal(rx_enter(&fx.table, w, 5, &s), RX_LATE);
	assert_int_equal(w->in, (uintptr_t)s);
	assert_int_equal(rx_enter(&fx.table, w, 1, &s), RX_OK);
	/* The next slot does. */
	bind_key(2, 100, 10, 0, 1);
	assert_int_equal(rx_enter(&fx.table, w, 2, &s), RX_OK);
	assert_int_equal(w->in, (uintptr_t)&fx.slots[2]);
	unbind(1);
	rx_leave(w);
	assert_int_equal(rx_enter(&fx.table, w, 1, &s), RX_LATE);
	bind_key(5, 100, 10, 0, 1);
	assert_int_equal(rx_enter(&fx.table, w, 1, &s), RX_LATE);
	assert_int_equal(rx_enter(&fx.table, w, 9, &s), RX_LATE);
	assert_int_equal(rx_enter(&fx.table, w, UINT32_C(1) << 31 | 5, &s), RX_LATE);
	assert_int_equal(rx_enter(&fx.table, w, 5, &s), RX_OK);
	assert_int_equal(w->late, 6);
	/* A fence for a key that is not bound leaves the one that is alone. */
	assert_int_equal(rx_fence_begin(&fx.table, 1), RX_LATE);
	assert_int_equal(rx_enter(&fx.table, w, 5, &s), RX_OK);
}

/* rocev2: 4 slots and 4 generations; message n + 16 has n's key again. */
static void generations_wrap(void **state)
{
	struct rx_worker *w = &fx.workers[0];
	struct rx_slot *s;

	(void)state;
	setup(0xf);
	for (uint32_t n = 2; n < 200; n += 4) {
		bind_key(n, 100, 10, 0, 1);
		for (uint32_t key = 0; key < 16; key++) {
			int want = key == n % 16 ? RX_OK : RX_LATE;

			assert_int_equal(rx_enter(&fx.table, w, key, &s), want);
			assert_int_equal(rx_enter(&fx.table, w, key + 16 * n, &s), want);
			rx_leave(w);
		}
		unbind(n);
	}
	/* Message numbers near the top of 32 bits, in sdr mode. */
	setup(~0u);
	for (uint32_t n = UINT32_MAX - 9; n != 10; n++) {
		bind_key(n, 100, 10, 0, 1);
		assert_int_equal(rx_enter(&fx.table, w, n - 4, &s), RX_LATE);
		assert_int_equal(rx_enter(&fx.table, w, n, &s), RX_OK);
		rx_leave(w);
		unbind(n);
	}
}

static void dirty_slots(void **state)
{
	static struct rx_slot slots[128];
	struct rx_bind bind = {fx.memory, 100, 10, 0, 1, 0, NULL};
	struct rx_table *t = &fx.table;

	(void)state;
	setup(~0u);
	assert_int_equal(rx_table_init(t, slots, 128, ~0u, fx.workers, 2, 0), RX_OK);
	for (uint32_t key = 0; key < 128; key += 9) {
		assert_int_equal(rx_bind(t, key, &bind), RX_OK);
		assert_int_equal(packet(rx_slot_of(t, key), 1, 10), RX_OK);
		assert_int_equal(packet(rx_slot_of(t, key), 1, 10), RX_BUSY);
		assert_int_equal(rx_dirty_take(t, key / 64), UINT64_C(1) << key % 64);
		assert_int_equal(rx_dirty_take(t, key / 64), 0);
		assert_int_equal(packet(rx_slot_of(t, key), 1, 10), RX_BUSY);
		assert_int_equal(rx_dirty_take(t, key / 64), 0);
	}
}

/*
 * Every interleaving of a worker's steps {show, check, copy, leave} with an owner's
 * {change the state, poll, poll, ...}: after a poll that says done, nothing is copied. And
 * the planted fault: a worker that checks before it shows is caught.
 */
enum step { SHOW, CHECK, COPY, LEAVE, STEPS };

static bool fence_holds(const enum step *order, uint32_t schedule, uint32_t nsteps)
{
	struct rx_worker *w = &fx.workers[0];
	struct rx_slot *s = &fx.slots[1];
	uint32_t at = 0;
	bool begun = false, done = false, inside = true, holds = true;

	setup(~0u);
	bind_key(1, 100, 10, 0, 1);
	for (uint32_t i = 0; i < nsteps; i++) {
		if (schedule >> i & 1) {
			if (!begun)
				begun = rx_fence_begin(&fx.table, 1) == RX_OK;
			else
				done = done || rx_fence_done(&fx.table, 1);
			continue;
		}
		if (at == STEPS)
			continue;
		switch (order[at++]) {
		case SHOW:
			rx_enter_show(&fx.table, w, s);
			break;
		case CHECK:
			inside = rx_enter_check(&fx.table, s, 1);
			break;
		case COPY:
			holds = holds && !(inside && done);
			break;
		default:
			rx_leave(w);
		}
	}
	return holds && rx_fence_done(&fx.table, 1) == (begun && w->in == 0);
}

static void fence_interleavings(void **state)
{
	static const enum step right[STEPS] = {SHOW, CHECK, COPY, LEAVE};
	static const enum step wrong[STEPS] = {CHECK, SHOW, COPY, LEAVE};
	uint32_t caught = 0;

	(void)state;
	for (uint32_t schedule = 0; schedule < 1u << 10; schedule++) {
		assert_true(fence_holds(right, schedule, 10));
		caught += !fence_holds(wrong, schedule, 10);
	}
	assert_true(caught > 0);
}

/* Each invariant, broken by hand, is named by its number. */
static void check_names_the_invariant(void **state)
{
	struct rx_slot *s;

	(void)state;
	for (int broken = 1; broken <= 7; broken++) {
		setup(~0u);
		s = bind_key(1, 395, 10, 2, 8); /* 40 packets, 10 chunks */
		assert_int_equal(rx_slot_check(s, true), 0);
		if (broken == 1)
			s->tail_len++;
		if (broken == 2)
			s->words[0].committed = 1;
		if (broken == 3)
			s->words[0].claimed = UINT64_C(1) << 40;
		if (broken == 4)
			s->chunks[0] = 1;
		if (broken == 5)
			s->words[0].claimed = s->words[0].committed = 0xf0;
		if (broken == 6)
			s->end = UINT64_C(5) << 32;
		if (broken == 7)
			s->imm = 0x30;
		assert_int_equal(rx_slot_check(s, true), broken);
		assert_int_equal(rx_slot_check(s, false), broken == 5 || broken == 6 ? 0 : broken);
	}
	setup(~0u);
	s = bind_key(1, 395, 10, 2, 8);
	s->chunks[0] = 1 << 10;
	assert_int_equal(rx_slot_check(s, true), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(init_checks_its_arguments),
		cmocka_unit_test(bind_checks_its_arguments),
		cmocka_unit_test(words_wanted),
		cmocka_unit_test(index_is_exact),
		cmocka_unit_test(runs_fit_in_words),
		cmocka_unit_test(admission),
		cmocka_unit_test(ends),
		cmocka_unit_test(tail_chunks),
		cmocka_unit_test(sparse_messages_do_not_end),
		cmocka_unit_test(discarded_messages_have_bits),
		cmocka_unit_test(commit_without_claim),
		cmocka_unit_test(fills),
		cmocka_unit_test(immediates),
		cmocka_unit_test(immediate_only_packets),
		cmocka_unit_test(old_keys_are_late),
		cmocka_unit_test(generations_wrap),
		cmocka_unit_test(dirty_slots),
		cmocka_unit_test(fence_interleavings),
		cmocka_unit_test(check_names_the_invariant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

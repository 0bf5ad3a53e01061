/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs, ACK and NACK: random bitmaps against a bit-by-bit twin, at every byte budget.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "wire/wire.h"

#define BITS 4096

static bool bit_at(const uint64_t *bits, uint32_t i)
{
	return bits[i / 64] >> (i % 64) & 1;
}

/* Runs of random lengths, so that words, edges and long runs all come up. */
static void random_bits(struct rng *rng, uint64_t *bits)
{
	uint64_t longest = UINT64_C(1) << rng_below(rng, 11);
	bool value = rng_below(rng, 2);
	uint32_t at = 0;

	memset(bits, 0, BITS / 8);
	while (at < BITS) {
		uint32_t run = 1 + (uint32_t)rng_below(rng, longest);

		for (; run > 0 && at < BITS; run--, at++)
			bits[at / 64] |= (uint64_t)value << (at % 64);
		value = !value;
	}
}

static void check_runs(struct wire_window *win, uint32_t first, uint32_t covered,
		       const uint64_t *bits)
{
	uint32_t at = 0, run_first, n, wrong = 0;
	bool received, last = false;

	assert_int_equal(win->first, first);
	assert_int_equal(win->length, covered);
	while (wire_window_next_run(win, &run_first, &n, &received)) {
		assert_int_equal(run_first, first + at);
		assert_true(n > 0 && (at == 0 || received != last));
		for (uint32_t i = 0; i < n; i++)
			wrong += bit_at(bits, at + i) != received;
		at += n;
		last = received;
	}
	assert_int_equal(at, covered);
	assert_int_equal(wrong, 0);
}

static void windows(void **state)
{
	uint64_t bits[BITS / 64];
	uint8_t buf[8192];
	struct rng rng;

	(void)state;
	rng_init(&rng, 6);
	for (int i = 0; i < 3000; i++) {
		uint32_t length = (uint32_t)rng_below(&rng, BITS + 1), covered;
		uint32_t first = (uint32_t)rng_next(&rng) & 0x7fffffff;
		size_t cap = rng_below(&rng, i % 3 ? 60 : sizeof(buf));
		struct wire_window win;
		size_t bytes;

		random_bits(&rng, bits);
		buf[cap] = 0xee;
		bytes = wire_window_put(buf, cap, 77, first, length, bits, &covered);
		assert_true(bytes <= cap && covered <= length && (bytes == 0) == (covered == 0));
		assert_int_equal(buf[cap], 0xee);
		if (cap > BITS + 11)
			assert_int_equal(covered, length);
		if (bytes == 0)
			continue;
		assert_int_equal(wire_window_get(buf, sizeof(buf), &win), bytes);
		assert_int_equal(win.message, 77);
		check_runs(&win, first, covered, bits);
		for (size_t len = 0; len < bytes; len += 1 + len / 16)
			assert_true(wire_window_get(buf, len, &win) < 0);
		assert_true(wire_window_get(buf, bytes - 1, &win) < 0);
	}
}

static void window_edges(void **state)
{
	static const struct {
		uint8_t bytes[16];
		size_t len;
		int want;
	} cases[] = {
		{{0, 0, 0, 1, 0, 0, 0, 0, 5, 5}, 10, 10},	      /* all received */
		{{0, 0, 0, 1, 0, 0, 0, 0, 5, 0, 5}, 11, 11},	      /* all missing */
		{{0, 0, 0, 1, 0, 0, 0, 0, 5, 2, 3, 9}, 12, 11},	      /* one byte too many */
		{{0, 0, 0, 1, 0, 0, 0, 0, 0}, 9, -EBADMSG},	      /* empty */
		{{0, 0, 0, 1, 0, 0, 0, 0, 5, 0, 0, 5}, 12, -EBADMSG}, /* 0 run later */
		{{0, 0, 0, 1, 0, 0, 0, 0, 5, 2, 4}, 11, -EBADMSG},    /* too long */
		{{0, 0, 0, 1, 0, 0, 0, 0, 5, 2}, 10, -EMSGSIZE},      /* too short */
		{{0, 0, 0, 1, 0, 0, 0, 0, 0x85, 0, 5}, 11, -EBADMSG}, /* overlong varint */
		{{0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 1, 1}, 10, 10}, /* the last packet */
		{{0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 2, 2}, 10, -EBADMSG},
		{{0, 0, 0, 1, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x1f}, 13, -EBADMSG},
	};
	uint64_t ones[2] = {~UINT64_C(0), ~UINT64_C(0)};
	struct wire_window win;
	uint32_t covered;
	uint8_t buf[32];

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(cases); i++)
		assert_int_equal(wire_window_get(cases[i].bytes, cases[i].len, &win),
				 cases[i].want);
	assert_int_equal(wire_window_put(buf, 32, 0, 0xffffffff, 2, ones, &covered), 0);
	assert_int_equal(wire_window_put(buf, 32, 0, 0xffffffff, 1, ones, &covered), 10);
	assert_int_equal(wire_window_put(buf, 32, 0, 0, 0, ones, &covered), 0);
	assert_int_equal(wire_window_put(buf, 9, 0, 0, 100, ones, &covered), 0);
	assert_int_equal(wire_window_put(buf, 10, 0, 0, 100, ones, &covered), 10);
}

/* A million packets with 1 % loss: how much of it an ACK of 1,400 bytes tells. */
static void density(void **state)
{
	static uint64_t bits[1 << 14];
	static uint8_t buf[1400];
	struct wire_ack_enc enc;
	struct rng rng;

	(void)state;
	rng_init(&rng, 7);
	for (size_t i = 0; i < SDR_ARRAY_LEN(bits) * 64; i++)
		bits[i / 64] |= (uint64_t)(rng_below(&rng, 100) != 0) << (i % 64);
	assert_int_equal(wire_ack_begin(&enc, buf, sizeof(buf), 0, 4), 0);
	/* About 2.2 bytes a hole: some 50,000 packets. */
	assert_true(wire_ack_window_from_bits(&enc, 0, 0, 1 << 20, bits) > 40000);
	assert_int_equal(wire_ack_window_from_bits(&enc, 0, 0, 1 << 20, bits), 0);
}

static struct wire_ack_channel random_channel(struct rng *rng)
{
	struct wire_ack_channel ch = {0};

	ch.id = (uint8_t)rng_next(rng);
	ch.flags = (uint8_t)rng_below(rng, 3);
	ch.newest_psn = (uint32_t)rng_next(rng) & WIRE_PSN_MASK;
	if (ch.flags & WIRE_ACK_PACKET_VALID) {
		ch.newest_message = (uint32_t)rng_next(rng) >> rng_below(rng, 32);
		ch.newest_packet = (uint32_t)rng_next(rng) >> rng_below(rng, 32);
	}
	ch.age_ns = (uint32_t)rng_next(rng);
	ch.received = rng_next(rng) >> rng_below(rng, 64);
	ch.duplicates = rng_next(rng) >> rng_below(rng, 64);
	ch.ce = rng_next(rng) >> rng_below(rng, 64);
	ch.host_drops = rng_next(rng) >> rng_below(rng, 64);
	return ch;
}

static void assert_same_channel(const struct wire_ack_channel *a, const struct wire_ack_channel *b)
{
	assert_int_equal(a->id, b->id);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->newest_psn, b->newest_psn);
	assert_int_equal(a->newest_message, b->newest_message);
	assert_int_equal(a->newest_packet, b->newest_packet);
	assert_int_equal(a->age_ns, b->age_ns);
	assert_true(a->received == b->received && a->duplicates == b->duplicates);
	assert_true(a->ce == b->ce && a->host_drops == b->host_drops);
}

static void acks(void **state)
{
	uint64_t bits[8][BITS / 64];
	uint8_t buf[1400];
	struct rng rng;

	(void)state;
	rng_init(&rng, 8);
	for (int round = 0; round < 300; round++) {
		unsigned int nchannels = (unsigned int)rng_below(&rng, 9), nwindows = 0;
		struct wire_ack_channel channels[8], channel;
		uint32_t covered[8];
		struct wire_ack_enc enc;
		struct wire_window win;
		struct wire_ack ack;
		int len;

		assert_int_equal(wire_ack_begin(&enc, buf,
						6 + WIRE_ACK_CHANNEL_MAX_BYTES * nchannels - 1, 5,
						nchannels),
				 -ENOSPC);
		assert_int_equal(
			wire_ack_begin(&enc, buf, 500 + rng_below(&rng, 901), 5, nchannels), 0);
		for (; nwindows < 8; nwindows++) {
			random_bits(&rng, bits[nwindows]);
			covered[nwindows] = wire_ack_window_from_bits(
				&enc, nwindows, 64 * nwindows, 1 + (uint32_t)rng_below(&rng, BITS),
				bits[nwindows]);
			if (covered[nwindows] == 0)
				break;
		}
		for (unsigned int i = 0; i < nchannels; i++) {
			channels[i] = random_channel(&rng);
			assert_int_equal(wire_ack_channel_put(&enc, &channels[i]), 0);
		}
		if (nchannels) /* windows come first */
			assert_int_equal(wire_ack_window_from_bits(&enc, 0, 0, 1, bits[0]), 0);
		len = wire_ack_end(&enc);
		assert_int_equal(wire_ack_open(buf, (size_t)len, &ack), 0);
		assert_int_equal(ack.write_below, 5);
		for (unsigned int i = 0; i < nchannels; i++) {
			assert_int_equal(wire_ack_next_channel(&ack, &channel), 1);
			assert_same_channel(&channel, &channels[i]);
		}
		assert_int_equal(wire_ack_next_channel(&ack, &channel), 0);
		for (unsigned int i = 0; i < nwindows; i++) {
			assert_int_equal(wire_ack_next_window(&ack, &win), 1);
			assert_int_equal(win.message, i);
			check_runs(&win, 64 * i, covered[i], bits[i]);
		}
		for (int cut = 0; cut < len; cut += 1 + cut / 32)
			assert_int_equal(wire_ack_open(buf, (size_t)cut, &ack),
					 cut < 6 ? -EMSGSIZE : -EBADMSG);
	}
}

static void ack_golden(void **state)
{
	static const uint64_t bits = 0xff;
	static const uint8_t want[] = {
		0, 0, 0, 9, 1,					    /* write_below, windows */
		0, 0, 0, 9, 0, 0,    0, 0, 10,	8,    2,	    /* 8 of 10 received */
		2,						    /* channels */
		1, 1, 0, 0, 7, 0,    0, 0, 100, 0x81, 1, 0,   0, 0, /* by PSN */
		2, 2, 0, 0, 0, 0x89, 2, 5, 0,	0,    0, 200, 3, 1,
		0, 0, /* by message and packet */
	};
	static const struct wire_ack_channel by_psn = {.id = 1,
						       .flags = WIRE_ACK_PSN_VALID,
						       .newest_psn = 7,
						       .age_ns = 100,
						       .received = 129};
	static const struct wire_ack_channel by_packet = {.id = 2,
							  .flags = WIRE_ACK_PACKET_VALID,
							  .newest_message = 265,
							  .newest_packet = 5,
							  .age_ns = 200,
							  .received = 3,
							  .duplicates = 1};
	struct wire_ack_channel both = by_packet, channel;
	struct wire_ack_enc enc;
	struct wire_ack ack;
	uint8_t buf[300];

	(void)state;
	assert_int_equal(wire_ack_begin(&enc, buf, sizeof(buf), 9, 2), 0);
	assert_int_equal(wire_ack_window_from_bits(&enc, 9, 0, 10, &bits), 10);
	both.flags |= WIRE_ACK_PSN_VALID;
	assert_int_equal(wire_ack_channel_put(&enc, &both), -EINVAL);
	assert_int_equal(wire_ack_channel_put(&enc, &by_psn), 0);
	assert_int_equal(wire_ack_channel_put(&enc, &by_packet), 0);
	assert_int_equal(wire_ack_end(&enc), sizeof(want));
	assert_memory_equal(buf, want, sizeof(want));
	assert_int_equal(wire_ack_open(want, sizeof(want), &ack), 0);
	assert_int_equal(wire_ack_next_channel(&ack, &channel), 1);
	assert_same_channel(&channel, &by_psn);
	assert_int_equal(wire_ack_next_channel(&ack, &channel), 1);
	assert_same_channel(&channel, &by_packet);
	/* Named in both ways: malformed, whatever follows. */
	buf[32] |= WIRE_ACK_PSN_VALID;
	assert_int_equal(wire_ack_open(buf, sizeof(want), &ack), -EBADMSG);
	buf[32] = WIRE_ACK_PACKET_VALID;
	assert_int_equal(wire_ack_open(buf, sizeof(want), &ack), 0);
	/* A number of more than 32 bits, and one in a longer form than needed. */
	memcpy(buf + 36, (const uint8_t[]){0xff, 0xff, 0xff, 0xff, 0x1f}, 5);
	assert_int_equal(wire_ack_open(buf, sizeof(want), &ack), -EBADMSG);
	memcpy(buf, want, sizeof(want));
	memcpy(buf + 36, (const uint8_t[]){0x89, 0x00}, 2);
	assert_int_equal(wire_ack_open(buf, sizeof(want), &ack), -EBADMSG);
}

static void nacks(void **state)
{
	struct wire_nack_block blocks[3] = {{1, 2}, {0xffffffff, 0xffff}, {7, 1}};
	uint64_t bits = UINT64_C(0xf0f0);
	struct wire_nack nack;
	uint8_t buf[64];

	(void)state;
	assert_int_equal(wire_nack_put_blocks(buf, 25, 9, blocks, 3), 25);
	assert_int_equal(wire_nack_put_blocks(buf, 24, 9, blocks, 3), -ENOSPC);
	assert_int_equal(wire_nack_put_blocks(buf, 64, 9, blocks, 0), -EINVAL);
	for (size_t len = 0; len < 25; len++)
		assert_true(wire_nack_get(buf, len, &nack) < 0);
	assert_int_equal(wire_nack_put_blocks(buf, 25, 9, blocks, 3), 25);
	assert_int_equal(wire_nack_get(buf, 25, &nack), 0);
	assert_int_equal(nack.kind, WIRE_NACK_BLOCKS);
	assert_int_equal(nack.write, 9);
	assert_int_equal(nack.nblocks, 3);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(wire_nack_block_at(&nack, i).block, blocks[i].block);
		assert_int_equal(wire_nack_block_at(&nack, i).deficit, blocks[i].deficit);
	}
	buf[0] = 2;
	assert_int_equal(wire_nack_get(buf, 25, &nack), -EBADMSG);
	assert_int_equal(wire_nack_put_runs(buf, 64, 4, 128, 16, &bits), 15);
	assert_int_equal(wire_nack_get(buf, 15, &nack), 0);
	assert_int_equal(nack.kind, WIRE_NACK_RUNS);
	check_runs(&nack.win, 128, 16, &bits);
	assert_int_equal(wire_nack_put_runs(buf, 11, 4, 128, 16, &bits), -ENOSPC);
	assert_int_equal(wire_nack_put_runs(buf, 0, 4, 128, 16, &bits), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows),    cmocka_unit_test(window_edges),
		cmocka_unit_test(density),    cmocka_unit_test(acks),
		cmocka_unit_test(ack_golden), cmocka_unit_test(nacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

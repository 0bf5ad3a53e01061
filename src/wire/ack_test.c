/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs and ACKs: random bitmaps against a bit-by-bit twin, at every byte budget.
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
						7 + WIRE_ACK_CHANNEL_MAX_BYTES * nchannels - 1, 5,
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
					 cut < 11 ? -EMSGSIZE : -EBADMSG);
	}
}

static void ack_golden(void **state)
{
	static const uint64_t bits = 0xff;
	static const uint8_t want[] = {
		0, 0, 0, 9, 0, 0,    0, 0, 1,		 /* write_below, made good, windows */
		0, 0, 0, 9, 0, 0,    0, 0, 10,	8,    2, /* 8 of 10 received */
		2,					 /* channels */
		1, 1, 0, 0, 7, 0,    0, 0, 100, 0x81, 1, 0,   0, 0, /* by PSN */
		2, 2, 0, 0, 0, 0x89, 2, 5, 0,	0,    0, 200, 3, 1,
		0, 0, /* by message and packet */
		0,    /* no deficits */
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
	buf[36] |= WIRE_ACK_PSN_VALID;
	assert_int_equal(wire_ack_open(buf, sizeof(want), &ack), -EBADMSG);
	buf[36] = WIRE_ACK_PACKET_VALID;
	assert_int_equal(wire_ack_open(buf, sizeof(want), &ack), 0);
	/* A number of more than 32 bits, and one in a longer form than needed. */
	memcpy(buf + 40, (const uint8_t[]){0xff, 0xff, 0xff, 0xff, 0x1f}, 5);
	assert_int_equal(wire_ack_open(buf, sizeof(want), &ack), -EBADMSG);
	memcpy(buf, want, sizeof(want));
	memcpy(buf + 40, (const uint8_t[]){0x89, 0x00}, 2);
	assert_int_equal(wire_ack_open(buf, sizeof(want), &ack), -EBADMSG);
}

/* Begins an ACK without windows in cap bytes. */
static struct wire_ack_enc begin(uint8_t *buf, size_t cap, unsigned int nchannels)
{
	struct wire_ack_enc enc;

	assert_int_equal(wire_ack_begin(&enc, buf, cap, 9, nchannels), 0);
	return enc;
}

static void deficit_golden(void **state)
{
	static const uint8_t want[] = {
		0,    0, 0,    9, 0, 0,	   0, 0,
		0,    0, /* write_below, made good, no windows, no channels */
		2,	 /* messages */
		0,    0, 1,    0, 3, 0x81, 2, 5, /* 256: block 257 lacks 5 */
		0,    1,			 /* the next one 1 */
		0x80, 1, 0xff, 1,		 /* and after 128 more one lacks 255 */
		0,    0, 0,    2, 1, 0,	   9,	 /* 2: block 0 lacks 9 */
	};
	static const struct wire_ack_deficit deficits[] = {
		{256, 257, 5}, {256, 258, 1}, {256, 387, 255}, {2, 0, 9}};
	struct wire_ack_deficit deficit;
	struct wire_ack_channel channel = {0};
	struct wire_ack_enc enc;
	struct wire_ack ack;
	uint8_t buf[300];

	(void)state;
	enc = begin(buf, sizeof(buf), 0);
	for (size_t i = 0; i < SDR_ARRAY_LEN(deficits); i++)
		assert_int_equal(wire_ack_deficit_put(&enc, deficits[i].message, deficits[i].block,
						      deficits[i].deficit),
				 0);
	assert_int_equal(wire_ack_channel_put(&enc, &channel), -EINVAL);
	assert_int_equal(wire_ack_deficit_put(&enc, 2, 0, 1), -EINVAL);
	assert_int_equal(wire_ack_deficit_put(&enc, 2, 1, 0), -EINVAL);
	assert_int_equal(wire_ack_deficit_put(&enc, 2, 1, 256), -EINVAL);
	assert_int_equal(wire_ack_end(&enc), sizeof(want));
	assert_memory_equal(buf, want, sizeof(want));
	assert_int_equal(wire_ack_open(want, sizeof(want), &ack), 0);
	for (size_t i = 0; i < SDR_ARRAY_LEN(deficits); i++) {
		assert_int_equal(wire_ack_next_deficit(&ack, &deficit), 1);
		assert_memory_equal(&deficit, &deficits[i], sizeof(deficit));
	}
	assert_int_equal(wire_ack_next_deficit(&ack, &deficit), 0);
	for (size_t cut = 0; cut < sizeof(want); cut++)
		assert_int_equal(wire_ack_open(want, cut, &ack), cut < 11 ? -EMSGSIZE : -EBADMSG);
}

static void deficit_edges(void **state)
{
	/* What follows the empty windows and channels. */
	static const struct {
		uint8_t bytes[16];
		size_t len;
		int want;
	} cases[] = {
		{{0}, 1, 0},
		{{1, 0, 0, 0, 2, 1, 7, 1}, 8, 0},
		{{1, 0, 0, 0, 2, 0}, 6, -EBADMSG},			       /* no block */
		{{1, 0, 0, 0, 2, 1, 7, 0}, 8, -EBADMSG},		       /* lacks 0 */
		{{1, 0, 0, 0, 2, 1, 7, 0x80, 2}, 9, -EBADMSG},		       /* lacks 256 */
		{{1, 0, 0, 0, 2, 1, 7, 0x81, 0}, 9, -EBADMSG},		       /* overlong */
		{{2, 0, 0, 0, 2, 1, 7, 1}, 8, -EBADMSG},		       /* one of two */
		{{2, 0, 0, 0, 2, 1, 7, 1, 0, 0, 0, 2, 1, 8, 1}, 15, -EBADMSG}, /* goes in one */
		{{2, 0, 0, 0, 2, 1, 7, 1, 0, 0, 0, 0, 1, 8, 1}, 15, 0},
		{{1, 0, 0, 0, 2, 1, 0xff, 0xff, 0xff, 0xff, 0xf, 1}, 12, 0}, /* the last block */
		{{1, 0, 0, 0, 2, 1, 0xff, 0xff, 0xff, 0xff, 0x1f, 1}, 12, -EBADMSG},
		{{1, 0, 0, 0, 2, 2, 0xff, 0xff, 0xff, 0xff, 0xf, 1, 0, 1}, 14, -EBADMSG},
		{{1, 0, 0, 0, 2, 2, 1, 1, 0xfd, 0xff, 0xff, 0xff, 0xf, 1}, 14, 0},
		{{1, 0, 0, 0, 2, 2, 1, 1, 0xfe, 0xff, 0xff, 0xff, 0xf, 1}, 14, -EBADMSG},
	};
	uint8_t body[10 + 16] = {0};
	struct wire_ack ack;

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(cases); i++) {
		memcpy(body + 10, cases[i].bytes, cases[i].len);
		assert_int_equal(wire_ack_open(body, 10 + cases[i].len, &ack), cases[i].want);
	}
}

/* Writes up to n random deficits; how many went in. Those beyond 255 of a message too. */
static unsigned int put_deficits(struct rng *rng, struct wire_ack_enc *enc, unsigned int n,
				 struct wire_ack_deficit *out)
{
	struct wire_ack_deficit d = {.message = (uint32_t)rng_next(rng)};
	unsigned int wide = (unsigned int)rng_below(rng, 23),
		     stay = 1 + (unsigned int)rng_below(rng, 600);

	for (unsigned int i = 0; i < n; i++) {
		if (rng_below(rng, stay) == 0)
			d = (struct wire_ack_deficit){.message = d.message + 1};
		d.block += 1 + (uint32_t)rng_below(rng, UINT64_C(1) << wide);
		d.deficit = 1 + (uint32_t)rng_below(rng, rng_below(rng, 2) ? 3 : 255);
		if (wire_ack_deficit_put(enc, d.message, d.block, d.deficit) != 0)
			return i;
		out[i] = d;
	}
	return n;
}

/* A count of its own, 0 where nobody sets it, at any time of the building. */
static void made_good(void **state)
{
	const struct wire_ack_channel channel = {.id = 1, .age_ns = 5};
	struct wire_ack_enc enc;
	struct wire_ack ack;
	uint8_t buf[200];

	(void)state;
	assert_int_equal(wire_ack_begin(&enc, buf, sizeof(buf), 7, 1), 0);
	assert_int_equal(wire_ack_open(buf, (size_t)wire_ack_end(&enc), &ack), 0);
	assert_int_equal(ack.made_good, 0);
	assert_int_equal(wire_ack_begin(&enc, buf, sizeof(buf), 7, 1), 0);
	assert_int_equal(wire_ack_channel_put(&enc, &channel), 0);
	wire_ack_made_good(&enc, 0xfedcba98);
	assert_int_equal(wire_ack_open(buf, (size_t)wire_ack_end(&enc), &ack), 0);
	assert_int_equal(ack.made_good, 0xfedcba98);
	assert_int_equal(ack.write_below, 7);
	assert_int_equal(ack.nchannels, 1);
}

/* How many of the groups that a count tells: a message's, 255 blocks in each at most. */
static unsigned int groups(const struct wire_ack_deficit *d, unsigned int n)
{
	unsigned int sum = 0, in_group = 0;

	for (unsigned int i = 0; i < n; i++, in_group++) {
		if (i && d[i].message == d[i - 1].message && in_group < 255)
			continue;
		sum++;
		in_group = 0;
	}
	return sum;
}

/* Any deficits come back; an ACK is never longer than it may be, nor less than full. */
static void deficits(void **state)
{
	static struct wire_ack_deficit out[2000];
	static uint8_t buf[4096];
	struct wire_ack_deficit deficit;
	struct wire_ack_channel channel;
	struct wire_ack_enc enc;
	struct wire_ack ack;
	struct rng rng;

	(void)state;
	rng_init(&rng, 10);
	for (int round = 0; round < 2000; round++) {
		size_t cap = 11 + 59 * 2 + rng_below(&rng, round % 2 ? 100 : sizeof(buf) - 200);
		unsigned int n = (unsigned int)rng_below(&rng, SDR_ARRAY_LEN(out)), put;
		int len;

		buf[cap] = 0xee;
		enc = begin(buf, cap, 2);
		channel = random_channel(&rng);
		assert_int_equal(wire_ack_channel_put(&enc, &channel), 0);
		put = put_deficits(&rng, &enc, n, out);
		len = wire_ack_end(&enc);
		assert_true((size_t)len <= cap && buf[cap] == 0xee);
		if (put < n)
			assert_true(cap - (size_t)len < WIRE_ACK_DEFICIT_MAX_BYTES ||
				    groups(out, put) == 255);
		assert_int_equal(wire_ack_open(buf, (size_t)len, &ack), 0);
		for (unsigned int i = 0; i < put; i++) {
			assert_int_equal(wire_ack_next_deficit(&ack, &deficit), 1);
			assert_memory_equal(&deficit, &out[i], sizeof(deficit));
		}
		assert_int_equal(wire_ack_next_deficit(&ack, &deficit), 0);
		assert_int_equal(wire_ack_next_channel(&ack, &channel), 1);
		if (len > 11)
			assert_int_equal(wire_ack_open(buf, (size_t)len - 1, &ack), -EBADMSG);
	}
}

/* What was set aside stays free of windows and of further channels, and no more than that. */
static void deficit_room(void **state)
{
	static uint64_t noise[BITS / 64];
	const struct wire_ack_channel channel = {.received = UINT64_MAX};
	uint8_t buf[600];
	struct rng rng;

	(void)state;
	rng_init(&rng, 11);
	for (size_t i = 0; i < SDR_ARRAY_LEN(noise); i++)
		noise[i] = rng_next(&rng);
	for (size_t bytes = 0; bytes < 700; bytes += 20) {
		struct wire_ack_enc enc = begin(buf, sizeof(buf), 1);
		unsigned int n = 0, most = (unsigned int)(bytes < 534 ? bytes : 534);

		wire_ack_reserve(&enc, bytes);
		while (wire_ack_window_from_bits(&enc, 5, 0, BITS, noise) > 0)
			;
		if (bytes < 500)
			assert_true(enc.at + most + 59 + 2 + 11 > sizeof(buf));
		assert_int_equal(wire_ack_channel_put(&enc, &channel), 0);
		while (wire_ack_channel_put(&enc, &channel) == 0)
			;
		wire_ack_reserve(&enc, sizeof(buf)); /* too late: nothing */
		while (wire_ack_deficit_put(&enc, 5, n, 1) == 0)
			n++;
		/* At most 8 bytes for the first of each 255, and 3 for a further one. */
		assert_true(most < 8 || n >= (most - 8) / 3);
		assert_true((size_t)wire_ack_end(&enc) <= sizeof(buf));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows),	 cmocka_unit_test(window_edges),
		cmocka_unit_test(density),	 cmocka_unit_test(acks),
		cmocka_unit_test(ack_golden),	 cmocka_unit_test(deficit_golden),
		cmocka_unit_test(deficit_edges), cmocka_unit_test(made_good),
		cmocka_unit_test(deficits),	 cmocka_unit_test(deficit_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk over a datagram's messages, the short messages and CTS: golden bytes, round
 * trips of random structs, every truncation.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "wire/cursor.h"
#include "wire/wire.h"

static void walk(void **state)
{
	static const uint8_t golden[] = {1, 2, 3, 4, 5, 6, 7, 8,   0, 0, 0, 0,	0, 0, 0, 9,   7,
					 0, 0, 4, 0, 0, 0, 5, 200, 0, 0, 0, 50, 0, 0, 1, 0xaa};
	static const uint8_t want[] = {0, 0, 0, 5};
	uint8_t buf[64];
	struct wire_number number = {.number = 5};
	struct wire_msgs it;
	struct wire_msg msg;
	uint64_t token, seq;
	size_t at = 0;

	(void)state;
	at += (size_t)wire_ctrl_body_put(buf, sizeof(buf), UINT64_C(0x0102030405060708), 9);
	assert_int_equal(wire_number_put(buf + at + 4, sizeof(buf) - at - 4, &number), 4);
	wire_msg_put_header(buf + at, WIRE_MSG_WANT, 4);
	at += 8;
	at += (size_t)wire_msg_put(buf + at, sizeof(buf) - at, 200, NULL, 0);
	at += (size_t)wire_msg_put(buf + at, sizeof(buf) - at, 50, "\xaa", 1);
	assert_int_equal(at, sizeof(golden));
	assert_memory_equal(buf, golden, at);
	assert_int_equal(wire_msg_put(buf, 4, 50, "\xaa", 1), -ENOSPC);

	assert_int_equal(wire_ctrl_begin(golden, sizeof(golden), &it, &token, &seq), 0);
	assert_true(token == UINT64_C(0x0102030405060708) && seq == 9);
	assert_int_equal(wire_ctrl_next(&it, &msg), 1);
	assert_true(msg.type == WIRE_MSG_WANT && msg.class == WIRE_CLASS_KNOWN && msg.len == 4);
	assert_memory_equal(msg.body, want, 4);
	assert_int_equal(wire_ctrl_next(&it, &msg), 1);
	assert_true(msg.type == 200 && msg.class == WIRE_CLASS_USER && msg.len == 0);
	assert_int_equal(wire_ctrl_next(&it, &msg), 1);
	assert_true(msg.type == 50 && msg.class == WIRE_CLASS_UNKNOWN && msg.len == 1);
	assert_int_equal(wire_ctrl_next(&it, &msg), 0);
	assert_int_equal(wire_ctrl_next(&it, &msg), 0);
	assert_int_equal(wire_msg_classify(0), WIRE_CLASS_UNKNOWN);
	assert_int_equal(wire_msg_classify(WIRE_MSG_LAST_KNOWN + 1), WIRE_CLASS_UNKNOWN);
	assert_int_equal(wire_msg_classify(WIRE_MSG_ACK), WIRE_CLASS_KNOWN);
	assert_int_equal(wire_msg_classify(11), WIRE_CLASS_UNKNOWN);
	assert_int_equal(wire_msg_classify(64), WIRE_CLASS_RESERVED);
	assert_int_equal(wire_msg_classify(127), WIRE_CLASS_RESERVED);
	assert_int_equal(wire_msg_classify(128), WIRE_CLASS_USER);

	/* Cut anywhere but between messages, all of it is refused. */
	for (size_t len = 0; len < sizeof(golden); len++) {
		bool whole = len == 16 || len == 24 || len == 28;

		assert_int_equal(wire_ctrl_begin(golden, len, &it, &token, &seq),
				 whole	    ? 0
				 : len < 16 ? -EMSGSIZE
					    : -EBADMSG);
	}
}

static void varints(void **state)
{
	static const struct {
		uint8_t bytes[12];
		size_t len;
		uint64_t value;
		int err;
	} cases[] = {
		{{0}, 1, 0, 0},
		{{0x7f}, 1, 127, 0},
		{{0x80, 0x01}, 2, 128, 0},
		{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, 10, UINT64_MAX, 0},
		{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}, 10, 0, -EBADMSG},
		{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x81, 0}, 11, 0, -EBADMSG},
		{{0x80, 0x00}, 2, 0, -EBADMSG},
		{{0x80}, 1, 0, -EMSGSIZE},
		{{0}, 0, 0, -EMSGSIZE},
	};

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(cases); i++) {
		struct wire_reader r = wire_reader_init(cases[i].bytes, cases[i].len);

		assert_true(wire_take_varint(&r) == cases[i].value);
		assert_int_equal(r.err, cases[i].err);
	}
	for (unsigned int shift = 0; shift < 64; shift++) {
		uint64_t value = (UINT64_C(1) << shift) - (shift & 1);
		uint8_t buf[16];
		struct wire_writer w = wire_writer_init(buf, sizeof(buf));
		struct wire_reader r;

		wire_give_varint(&w, value);
		assert_int_equal(wire_writer_result(&w), wire_varint_bytes(value));
		r = wire_reader_init(buf, sizeof(buf));
		assert_true(wire_take_varint(&r) == value);
	}
}

/* Encode, decode, compare; every shorter buffer and body is refused. */
#define CHECK_ROUND_TRIP(name, in)                                                                 \
	do {                                                                                       \
		uint8_t buf_[64];                                                                  \
		__typeof__(in) out_;                                                               \
		int len_ = wire_##name##_put(buf_, sizeof(buf_), &(in));                           \
                                                                                                   \
		assert_true(len_ > 0);                                                             \
		memset(&out_, 0, sizeof(out_));                                                    \
		assert_int_equal(wire_##name##_get(buf_, (size_t)len_, &out_), 0);                 \
		assert_memory_equal(&out_, &(in), sizeof(out_));                                   \
		assert_int_equal(wire_##name##_get(buf_, (size_t)len_ + 1, &out_), 0);             \
		for (int cut_ = 0; cut_ < len_; cut_++) {                                          \
			assert_int_equal(wire_##name##_get(buf_, (size_t)cut_, &out_), -EMSGSIZE); \
			assert_int_equal(wire_##name##_put(buf_, (size_t)cut_, &(in)), -ENOSPC);   \
		}                                                                                  \
	} while (0)

static void short_messages(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 9);
	for (int i = 0; i < 200; i++) {
		struct wire_ping ping;
		struct wire_pong pong;
		struct wire_payload payload;
		struct wire_number number = {(uint32_t)rng_next(&rng)};
		struct wire_write write;
		struct wire_close close = {(uint32_t)rng_next(&rng), (uint32_t)rng_next(&rng)};
		struct wire_reset reset = {(uint32_t)rng_next(&rng)};

		memset(&ping, 0, sizeof(ping));
		memset(&pong, 0, sizeof(pong));
		memset(&payload, 0, sizeof(payload));
		memset(&write, 0, sizeof(write));
		ping.nonce = pong.nonce = rng_next(&rng);
		pong.hold_ns = (uint32_t)rng_next(&rng);
		payload.from = (uint32_t)rng_next(&rng);
		payload.size = 1 + (uint32_t)rng_below(&rng, 65535);
		write.write = (uint32_t)rng_next(&rng);
		write.length = rng_next(&rng);
		write.imm = (uint32_t)rng_next(&rng);
		write.has_imm = rng_below(&rng, 2);
		write.code = (uint8_t)rng_below(&rng, 3);
		write.k = (uint16_t)(1 + rng_below(&rng, 65535));
		write.m = (uint16_t)rng_next(&rng);
		write.depth = 1 + (uint32_t)rng_below(&rng, 1000);
		write.span_start = rng_next(&rng);
		CHECK_ROUND_TRIP(ping, ping);
		CHECK_ROUND_TRIP(pong, pong);
		CHECK_ROUND_TRIP(payload, payload);
		CHECK_ROUND_TRIP(number, number);
		CHECK_ROUND_TRIP(write, write);
		CHECK_ROUND_TRIP(close, close);
		CHECK_ROUND_TRIP(reset, reset);
	}
}

static void trains(void **state)
{
	static const uint8_t golden[] = {7, 3, 0, 64};
	static const uint8_t golden_seen[] = {1, 7, 60, 62, 9, 0, 9, 0xa0, 0x0c};
	struct wire_train train = {.train = 7, .index = 3, .count = 64};
	struct wire_train_seen seen = {.n = 1, .span = {{7, 60, 62, 9, 630796}}}, out;
	uint8_t buf[80];

	(void)state;
	CHECK_ROUND_TRIP(train, train);
	CHECK_ROUND_TRIP(train_seen, seen);
	assert_int_equal(wire_train_put(buf, sizeof(buf), &train), sizeof(golden));
	assert_memory_equal(buf, golden, sizeof(golden));
	assert_int_equal(wire_train_seen_put(buf, sizeof(buf), &seen), sizeof(golden_seen));
	assert_memory_equal(buf, golden_seen, sizeof(golden_seen));

	assert_int_equal(wire_train_get((const uint8_t[]){0, 64, 0, 64}, 4, &train), -EBADMSG);
	assert_int_equal(wire_train_get((const uint8_t[]){0, 0, 1, 1}, 4, &train), -EBADMSG);
	assert_int_equal(wire_train_get((const uint8_t[]){0, 255, 1, 0}, 4, &train), 0);
	seen.n = 0;
	assert_int_equal(wire_train_seen_put(buf, sizeof(buf), &seen), -EINVAL);
	seen.n = WIRE_TRAINS_MAX + 1;
	assert_int_equal(wire_train_seen_put(buf, sizeof(buf), &seen), -EINVAL);
	memset(buf, 0, sizeof(buf));
	assert_int_equal(wire_train_seen_get(buf, sizeof(buf), &out), -EBADMSG);
	buf[0] = WIRE_TRAINS_MAX + 1;
	assert_int_equal(wire_train_seen_get(buf, sizeof(buf), &out), -EBADMSG);
	buf[0] = WIRE_TRAINS_MAX;
	assert_int_equal(wire_train_seen_get(buf, sizeof(buf), &out), 0);
	buf[4] = 1; /* more times than packets */
	assert_int_equal(wire_train_seen_get(buf, sizeof(buf), &out), -EBADMSG);
}

static void refused_messages(void **state)
{
	static const uint8_t payload_0[8] = {0}, payload_big[8] = {0, 0, 0, 0, 0, 1, 0, 0};
	uint8_t buf[34] = {0};
	struct wire_payload payload;
	struct wire_write write = {.code = 1, .k = 4, .depth = 1}, out;

	(void)state;
	assert_int_equal(wire_payload_get(payload_0, 8, &payload), -EBADMSG);
	assert_int_equal(wire_payload_get(payload_big, 8, &payload), -EBADMSG);
	assert_int_equal(wire_write_put(buf, sizeof(buf), &write), 34);
	assert_int_equal(wire_write_get(buf, sizeof(buf), &out), 0);
	buf[16] = 2; /* has_imm */
	assert_int_equal(wire_write_get(buf, sizeof(buf), &out), -EBADMSG);
	write.k = 0;
	assert_int_equal(wire_write_put(buf, sizeof(buf), &write), 34);
	assert_int_equal(wire_write_get(buf, sizeof(buf), &out), -EBADMSG);
}

static void random_cts(struct rng *rng, struct wire_cts *cts)
{
	memset(cts, 0, sizeof(*cts));
	cts->granted_upto = (uint32_t)rng_next(rng);
	cts->done_below = (uint32_t)rng_next(rng);
	cts->recent_early = rng_next(rng);
	cts->nwords = (uint8_t)rng_below(rng, WIRE_CTS_MAX_WORDS + 1);
	for (unsigned int i = 0; i < cts->nwords; i++) {
		cts->done[i] = rng_next(rng);
		cts->early[i] = cts->done[i] & rng_next(rng);
	}
	cts->first = (uint32_t)rng_next(rng);
	cts->n = (uint8_t)rng_below(rng, WIRE_CTS_MAX_ENTRIES + 1);
	for (unsigned int i = 0; i < cts->n; i++) {
		struct wire_cts_entry *entry = &cts->entries[i];

		entry->receive = (uint32_t)rng_next(rng);
		entry->kind = (uint8_t)rng_below(rng, 2);
		entry->offset = rng_next(rng) >> (1 + rng_below(rng, 63));
		entry->length = rng_next(rng) >> (1 + rng_below(rng, 63));
		entry->room = rng_next(rng) >> rng_below(rng, 64);
		entry->key_len = (uint8_t)rng_below(rng, WIRE_CTS_MAX_KEY_BYTES + 1);
		for (unsigned int k = 0; k < entry->key_len; k++)
			entry->key[k] = (uint8_t)rng_next(rng);
	}
}

static void cts_round_trip(void **state)
{
	static struct wire_cts in, out;
	static uint8_t buf[8192];
	struct rng rng;

	(void)state;
	rng_init(&rng, 10);
	for (int i = 0; i < 200; i++) {
		unsigned int fit;
		int len;

		random_cts(&rng, &in);
		len = wire_cts_put(buf, sizeof(buf), &in);
		assert_true(len >= WIRE_CTS_FIXED_BYTES + 16 * in.nwords);
		memset(&out, 0, sizeof(out));
		assert_int_equal(wire_cts_get(buf, (size_t)len, &out), 0);
		assert_memory_equal(&in, &out, sizeof(in));
		assert_int_equal(wire_cts_fit(&in, (size_t)len), in.n);
		for (int cut = 0; cut < len; cut += 1 + cut / 64)
			assert_int_equal(wire_cts_get(buf, (size_t)cut, &out),
					 cut < WIRE_CTS_FIXED_BYTES ? -EMSGSIZE : -EBADMSG);
		assert_int_equal(wire_cts_put(buf, (size_t)len - 1, &in), -ENOSPC);
		/* What fits, fits; one more would not. */
		fit = wire_cts_fit(&in, 700);
		if (fit < in.n) {
			in.n = (uint8_t)(fit + 1);
			assert_int_equal(wire_cts_put(buf, 700, &in), -ENOSPC);
		}
		in.n = (uint8_t)fit;
		assert_true(wire_cts_put(buf, 700, &in) > 0);
	}
}

static void cts_refused(void **state)
{
	static struct wire_cts cts, out;
	uint8_t buf[128];
	int len;

	(void)state;
	memset(&cts, 0, sizeof(cts));
	cts.nwords = 17;
	assert_int_equal(wire_cts_put(buf, sizeof(buf), &cts), -EINVAL);
	cts.nwords = 1;
	cts.n = 65;
	assert_int_equal(wire_cts_put(buf, sizeof(buf), &cts), -EINVAL);
	cts.n = 1;
	cts.entries[0].key_len = 33;
	assert_int_equal(wire_cts_put(buf, sizeof(buf), &cts), -EINVAL);
	cts.entries[0].key_len = 0;
	cts.early[0] = 1;
	len = wire_cts_put(buf, sizeof(buf), &cts);
	assert_int_equal(wire_cts_get(buf, (size_t)len, &out), -EBADMSG);
	cts.done[0] = 1;
	len = wire_cts_put(buf, sizeof(buf), &cts);
	assert_int_equal(wire_cts_get(buf, (size_t)len, &out), 0);
	buf[len - 1] = 33; /* key_len */
	assert_int_equal(wire_cts_get(buf, sizeof(buf), &out), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walk),
		cmocka_unit_test(varints),
		cmocka_unit_test(short_messages),
		cmocka_unit_test(trains),
		cmocka_unit_test(refused_messages),
		cmocka_unit_test(cts_round_trip),
		cmocka_unit_test(cts_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

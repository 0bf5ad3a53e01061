/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: control datagrams with every message. What decodes must encode to the
 * same bytes (up to what a later version may have appended), since each value has one
 * form on the wire.
 */
#include <string.h>

#include "wire/fuzz.h"
#include "wire/wire.h"

static void require_same(const struct wire_msg *msg, const uint8_t *again, int len)
{
	FUZZ_REQUIRE(len >= 0 && (size_t)len <= msg->len);
	FUZZ_REQUIRE(memcmp(again, msg->body, (size_t)len) == 0);
}

/* Decoded as `name`: encodes to the same. */
#define CHECK_MESSAGE(name)                                                                       \
	do {                                                                                      \
		struct wire_##name name;                                                          \
                                                                                                  \
		if (wire_##name##_get(msg->body, msg->len, &name) == 0)                           \
			require_same(msg, again, wire_##name##_put(again, sizeof(again), &name)); \
	} while (0)

/* Adds a window's runs to bits, if it is small enough. */
static bool gather_bits(struct wire_window *win, uint64_t *bits, uint32_t max)
{
	uint32_t first, n, sum = 0, start = win->first, length = win->length;
	bool received;

	while (wire_window_next_run(win, &first, &n, &received)) {
		FUZZ_REQUIRE(n > 0 && first == start + sum);
		for (uint32_t i = 0; received && length <= max && i < n; i++)
			bits[(sum + i) / 64] |= UINT64_C(1) << (sum + i) % 64;
		sum += n;
	}
	FUZZ_REQUIRE(sum == length);
	return length <= max;
}

static void check_ack(const struct wire_msg *msg)
{
	static uint64_t bits[64];
	static uint8_t again[FUZZ_MAX_BYTES + 256 * WIRE_ACK_CHANNEL_MAX_BYTES];
	struct wire_ack_channel channel;
	struct wire_ack_deficit deficit;
	struct wire_ack_enc enc;
	struct wire_window win, copy;
	struct wire_ack ack;
	unsigned int windows = 0, channels = 0;
	bool exact = true;

	if (wire_ack_open(msg->body, msg->len, &ack) != 0)
		return;
	FUZZ_REQUIRE(wire_ack_begin(&enc, again, sizeof(again), ack.write_below, ack.nchannels) ==
		     0);
	wire_ack_made_good(&enc, ack.made_good);
	for (; wire_ack_next_window(&ack, &win); windows++) {
		memset(bits, 0, sizeof(bits));
		copy = win;
		if (!gather_bits(&win, bits, 4096))
			exact = false;
		else
			FUZZ_REQUIRE(wire_ack_window_from_bits(&enc, copy.message, copy.first,
							       copy.length, bits) == copy.length);
	}
	for (; wire_ack_next_channel(&ack, &channel); channels++)
		FUZZ_REQUIRE(wire_ack_channel_put(&enc, &channel) == 0);
	while (wire_ack_next_deficit(&ack, &deficit))
		FUZZ_REQUIRE(wire_ack_deficit_put(&enc, deficit.message, deficit.block,
						  deficit.deficit) == 0);
	FUZZ_REQUIRE(windows == ack.nwindows && channels == ack.nchannels);
	if (exact)
		require_same(msg, again, wire_ack_end(&enc));
}

static void check_message(const struct wire_msg *msg)
{
	static uint8_t again[8192];

	/* Every decoder sees every body: a type is only one byte of a mutation away. */
	CHECK_MESSAGE(ping);
	CHECK_MESSAGE(pong);
	CHECK_MESSAGE(payload);
	CHECK_MESSAGE(number);
	CHECK_MESSAGE(write);
	CHECK_MESSAGE(close);
	CHECK_MESSAGE(reset);
	CHECK_MESSAGE(cts);
	CHECK_MESSAGE(train);
	CHECK_MESSAGE(train_seen);
	check_ack(msg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_ctrl_header header;
	const uint8_t *body;
	size_t body_len, sum = WIRE_CTRL_BODY_HDR_BYTES;
	uint64_t token, number;
	struct wire_msgs it;
	struct wire_msg msg;

	if (wire_ctrl_get(data, size, &header, &body, &body_len) != 0)
		return 0;
	FUZZ_REQUIRE(wire_ctrl_packet_bytes(body_len) == size);
	if (wire_ctrl_begin(body, body_len, &it, &token, &number) != 0)
		return 0;
	while (wire_ctrl_next(&it, &msg)) {
		FUZZ_REQUIRE(msg.body >= body && msg.body + msg.len <= body + body_len);
		sum += WIRE_MSG_HDR_BYTES + msg.len;
		check_message(&msg);
	}
	FUZZ_REQUIRE(sum == body_len);
	return 0;
}

static int seed_cts(uint8_t *body, size_t cap)
{
	static const struct wire_cts cts = {
		.granted_upto = 5,
		.done_below = 1,
		.recent_early = 1,
		.nwords = 2,
		.done = {7, 1},
		.early = {2},
		.first = 3,
		.n = 2,
		.entries = {{.receive = 300, .offset = 1 << 20, .length = 99},
			    {.kind = WIRE_CTS_PARITY, .room = 1000, .key_len = 3, .key = "key"}},
	};

	return wire_cts_put(body, cap, &cts);
}

static int seed_ack(uint8_t *body, size_t cap)
{
	static const uint64_t bits[4] = {~UINT64_C(0), 0xff00ff, 0, 1};
	static const struct wire_ack_channel channel = {
		.id = 1, .flags = WIRE_ACK_PSN_VALID, .newest_psn = 77, .received = 1000000};
	static const struct wire_ack_channel by_packet = {.id = 2,
							  .flags = WIRE_ACK_PACKET_VALID,
							  .newest_message = 300,
							  .newest_packet = 70,
							  .received = 5};
	struct wire_ack_enc enc;

	wire_ack_begin(&enc, body, cap, 4, 2);
	wire_ack_window_from_bits(&enc, 2, 64, 256, bits);
	wire_ack_window_from_bits(&enc, 4, 0, 130, bits);
	wire_ack_channel_put(&enc, &channel);
	wire_ack_channel_put(&enc, &by_packet);
	wire_ack_deficit_put(&enc, 2, 7, 1);
	wire_ack_deficit_put(&enc, 2, 300, 255);
	wire_ack_deficit_put(&enc, 4, 0, 2);
	return wire_ack_end(&enc);
}

static int seed_short(unsigned int type, uint8_t *body, size_t cap)
{
	switch (type) {
	case WIRE_MSG_PING:
		return wire_ping_put(body, cap, &(struct wire_ping){.nonce = 1});
	case WIRE_MSG_PONG:
		return wire_pong_put(body, cap, &(struct wire_pong){.nonce = 1, .hold_ns = 2});
	case WIRE_MSG_PAYLOAD:
	case WIRE_MSG_PAYLOAD_ECHO:
		return wire_payload_put(body, cap, &(struct wire_payload){.from = 1, .size = 1436});
	case WIRE_MSG_WRITE:
		return wire_write_put(body, cap,
				      &(struct wire_write){.write = 1,
							   .length = 1 << 20,
							   .has_imm = true,
							   .code = 1,
							   .k = 32,
							   .m = 8,
							   .depth = 4});
	case WIRE_MSG_CLOSE:
	case WIRE_MSG_CLOSE_ECHO:
		return wire_close_put(body, cap, &(struct wire_close){.done_below = 5});
	case WIRE_MSG_TRAIN:
		return wire_train_put(body, cap, &(struct wire_train){.index = 1, .count = 16});
	case WIRE_MSG_TRAIN_SEEN:
		return wire_train_seen_put(
			body, cap,
			&(struct wire_train_seen){.n = 2,
						  .span = {{0, 15, 15, 4, 170000}, {.train = 1}}});
	default:
		return wire_number_put(body, cap, &(struct wire_number){.number = 6});
	}
}

static int seed_body(unsigned int type, uint8_t *body, size_t cap)
{
	switch (type) {
	case WIRE_MSG_CTS:
		return seed_cts(body, cap);
	case WIRE_MSG_ACK:
		return seed_ack(body, cap);
	default:
		return seed_short(type, body, cap);
	}
}

/* Seed 0 has all messages, the others one each. */
size_t fuzz_seed(unsigned int i, uint8_t *buf)
{
	static const struct wire_ctrl_header header = {.dest_qpn = 1, .src_qpn = 2, .qkey = 3};
	uint8_t *body = buf + WIRE_CTRL_HDR_BYTES;
	size_t at = (size_t)wire_ctrl_body_put(body, 16, 7, 8);
	unsigned int first = i ? i : 1, last = i ? i : WIRE_MSG_LAST_KNOWN;

	if (i > WIRE_MSG_LAST_KNOWN)
		return 0;
	for (unsigned int type = first; type <= last; type++) {
		int len = seed_body(type, body + at + 4, 512);

		FUZZ_REQUIRE(len >= 0);
		wire_msg_put_header(body + at, (uint8_t)type, (uint16_t)len);
		at += 4u + (size_t)len;
	}
	wire_ctrl_put_header(buf, &header, at);
	memset(body + at, 0, 8);
	return wire_ctrl_packet_bytes(at);
}

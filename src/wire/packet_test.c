/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data packets, control headers and the immediate: golden bytes, round trips, and
 * every field that a decoder must refuse. Knows nothing of trailers.
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

static const uint8_t golden_sdr[] = {
	0x2b, 0x30, 0xff, 0xff, 0x00, 0x12, 0x34, 0x56, 0x00, 0xab, 0xcd, 0xef, /* BTH */
	0x00, 0x00, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0xde, 0xad, 0xbe, 0xef, /* VA, R_Key */
	0x00, 0x00, 0x00, 0x01, 0xca, 0xfe, 0xf0, 0x0d, 0x5a, 0,    0,	  0,	/* len, imm, pad */
	0,    0,    0,	  0,
};

static void golden_sdr_packet(void **state)
{
	struct wire_data_template tmpl;
	struct wire_data data;
	const uint8_t *payload;
	uint8_t hdr[WIRE_DATA_HDR_BYTES];
	uint8_t opcode;
	uint32_t qpn;

	(void)state;
	wire_data_template_sdr(&tmpl, 0x123456, 0xdeadbeef, 0xcafef00d);
	wire_data_put(hdr, &tmpl, 0xabcdef, UINT64_C(0x102030405), 1);
	assert_memory_equal(hdr, golden_sdr, sizeof(hdr));
	assert_int_equal(wire_data_packet_bytes(1), sizeof(golden_sdr));
	assert_int_equal(wire_peek(golden_sdr, sizeof(golden_sdr), &opcode, &qpn), 0);
	assert_int_equal(opcode, WIRE_OP_DATA);
	assert_int_equal(qpn, 0x123456);
	assert_int_equal(
		wire_data_get(golden_sdr, sizeof(golden_sdr), WIRE_SDR, NULL, &data, &payload), 0);
	assert_int_equal(data.dest_qpn, 0x123456);
	assert_int_equal(data.psn, 0xabcdef);
	assert_int_equal(data.message, 0xdeadbeef);
	assert_true(data.offset == UINT64_C(0x102030405));
	assert_int_equal(data.imm, 0xcafef00d);
	assert_int_equal(data.length, 1);
	assert_ptr_equal(payload, golden_sdr + 32);
}

static void refused_packets(void **state)
{
	/* What to change in the golden packet, and what comes of it. */
	static const struct {
		size_t at;
		uint8_t value;
		int err;
	} cases[] = {
		{0, 0x2a, -EBADMSG},  {0, 0x64, -EBADMSG},  {0, 0x81, -EBADMSG},
		{1, 0x31, -EBADMSG},  {1, 0x3f, -EBADMSG},  {1, 0x20, -EBADMSG},
		{1, 0x00, -EBADMSG},  {2, 0x7e, -EBADMSG},  {3, 0xfe, -EBADMSG},
		{24, 0x80, -EBADMSG}, {27, 0x00, -EBADMSG}, {27, 0x02, -EBADMSG},
		{27, 0x05, -EBADMSG}, {1, 0xf0, 0},	    {2, 0x7f, 0},
		{4, 0xff, 0},	      {8, 0xff, 0},	    {33, 0xff, 0},
	};
	uint8_t pkt[sizeof(golden_sdr)];
	struct wire_data data;
	const uint8_t *payload;

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(cases); i++) {
		memcpy(pkt, golden_sdr, sizeof(pkt));
		pkt[cases[i].at] = cases[i].value;
		assert_int_equal(wire_data_get(pkt, sizeof(pkt), WIRE_SDR, NULL, &data, &payload),
				 cases[i].err);
	}
	for (size_t len = 0; len < sizeof(pkt); len++)
		assert_int_equal(wire_data_get(golden_sdr, len, WIRE_SDR, NULL, &data, &payload),
				 len < 36 ? -EMSGSIZE : -EBADMSG);
	/* offset + length beyond 2^64 */
	memcpy(pkt, golden_sdr, sizeof(pkt));
	memset(pkt + 12, 0xff, 8);
	assert_int_equal(wire_data_get(pkt, sizeof(pkt), WIRE_SDR, NULL, &data, &payload),
			 -EBADMSG);
}

static void rocev2_round_trip(void **state)
{
	const struct wire_imm_split *splits[] = {&wire_imm_10_18_4, &wire_imm_8_22_2};
	uint8_t pkt[WIRE_DATA_HDR_BYTES + 4096 + 8] = {0};
	struct wire_data_template tmpl;
	struct wire_data data;
	const uint8_t *payload;
	struct rng rng;

	(void)state;
	rng_init(&rng, 3);
	for (int i = 0; i < 20000; i++) {
		const struct wire_imm_split *split = splits[i & 1];
		uint32_t size = 256u << rng_below(&rng, 5);
		uint32_t slot = (uint32_t)rng_below(&rng, wire_imm_max_slots(split));
		uint32_t packet = (uint32_t)rng_below(&rng, wire_imm_max_packets(split));
		uint32_t length = (uint32_t)rng_below(&rng, size + 1);
		uint32_t psn = (uint32_t)rng_next(&rng);
		struct wire_rocev2_message message = {.split = split,
						      .slot = slot,
						      .slot_bytes = UINT64_C(1) << 34,
						      .rkey = (uint32_t)rng_next(&rng),
						      .user_imm = (uint32_t)rng_next(&rng),
						      .payload_bytes = size};

		assert_int_equal(wire_data_template_rocev2(&tmpl, 0xfffffe, &message), 0);
		wire_data_put(pkt, &tmpl, psn, (uint64_t)packet * size, length);
		assert_int_equal(wire_data_get(pkt, wire_data_packet_bytes(length), WIRE_ROCEV2,
					       split, &data, &payload),
				 0);
		assert_int_equal(data.message, slot);
		assert_int_equal(data.packet, packet);
		assert_int_equal(data.imm, wire_imm_fragment(split, packet, message.user_imm));
		assert_int_equal(data.rkey, message.rkey);
		assert_true(data.va == ((uint64_t)slot << 34) + (uint64_t)packet * size);
		assert_int_equal(data.psn, psn & WIRE_PSN_MASK);
		assert_int_equal(data.length, length);
	}
}

static void rocev2_refused_templates(void **state)
{
	struct wire_rocev2_message message = {.split = &wire_imm_10_18_4, .payload_bytes = 1024};
	struct wire_data_template tmpl;

	(void)state;
	message.slot = 1023;
	assert_int_equal(wire_data_template_rocev2(&tmpl, 1, &message), 0);
	message.slot = 1024;
	assert_int_equal(wire_data_template_rocev2(&tmpl, 1, &message), -EINVAL);
	message.slot = 0;
	for (uint32_t bad = 0; bad < 3; bad++) {
		message.payload_bytes = (const uint32_t[]){128, 1000, 8192}[bad];
		assert_int_equal(wire_data_template_rocev2(&tmpl, 1, &message), -EINVAL);
	}
}

static void immediate(void **state)
{
	const struct wire_imm_split *splits[] = {&wire_imm_10_18_4, &wire_imm_8_22_2};
	struct rng rng;

	(void)state;
	rng_init(&rng, 4);
	assert_int_equal(wire_imm_pack(&wire_imm_10_18_4, 0x3ff, 0, 0), 0xffc00000u);
	assert_int_equal(wire_imm_pack(&wire_imm_10_18_4, 1, 1, 0xcafef00d), 0x00400010u);
	assert_int_equal(wire_imm_pack(&wire_imm_10_18_4, 0, 7, 0xcafef00d), 0x0000007cu);
	assert_int_equal(wire_imm_pack(&wire_imm_8_22_2, 2, 3, 0xcafef00d), 0x0200000cu);
	for (int i = 0; i < 1000; i++) {
		const struct wire_imm_split *split = splits[i & 1];
		uint32_t n = wire_imm_fragments(split), user = (uint32_t)rng_next(&rng);
		uint32_t start = (uint32_t)rng_below(&rng, 1000);
		struct wire_imm_gather gather = {0};

		/* Downwards and each twice: order and repeats do not matter. */
		for (uint32_t k = n; k-- > 0;) {
			uint32_t f = wire_imm_fragment(split, start + k, user);

			assert_false(wire_imm_gather_complete(&gather, split));
			wire_imm_gather_add(&gather, split, start + k, f);
			wire_imm_gather_add(&gather, split, start + k + n, f ^ 1);
		}
		assert_true(wire_imm_gather_complete(&gather, split));
		assert_int_equal(gather.value, user);
	}
}

static void ctrl_header(void **state)
{
	static const uint8_t golden[] = {0x64, 0x10, 0xff, 0xff, 0,    0x00, 0x00,
					 0x12, 0,    0x00, 0x00, 0x34, 0x80, 0x01,
					 0x00, 0x00, 0,	   0x00, 0x00, 0x56};
	struct wire_ctrl_header in = {
		.dest_qpn = 0x12, .psn = 0x34, .qkey = 0x80010000u, .src_qpn = 0x56};
	uint8_t pkt[WIRE_CTRL_HDR_BYTES + 64] = {0};
	struct wire_ctrl_header out;
	const uint8_t *body;
	size_t body_len;

	(void)state;
	wire_ctrl_put_header(pkt, &in, 19);
	assert_memory_equal(pkt, golden, sizeof(golden));
	for (size_t len = 0; len < 40; len++) {
		wire_ctrl_put_header(pkt, &in, len);
		assert_int_equal(
			wire_ctrl_get(pkt, wire_ctrl_packet_bytes(len), &out, &body, &body_len), 0);
		assert_memory_equal(&in, &out, sizeof(in));
		assert_ptr_equal(body, pkt + 20);
		assert_int_equal(body_len, len);
		assert_int_equal(
			wire_ctrl_get(pkt, wire_ctrl_packet_bytes(len) + 1, &out, &body, &body_len),
			-EBADMSG);
	}
	wire_ctrl_put_header(pkt, &in, 0);
	for (size_t len = 0; len < 24; len++)
		assert_int_equal(wire_ctrl_get(pkt, len, &out, &body, &body_len), -EMSGSIZE);
	pkt[0] = WIRE_OP_DATA;
	assert_int_equal(wire_ctrl_get(pkt, 24, &out, &body, &body_len), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_sdr_packet), cmocka_unit_test(refused_packets),
		cmocka_unit_test(rocev2_round_trip), cmocka_unit_test(rocev2_refused_templates),
		cmocka_unit_test(immediate),	     cmocka_unit_test(ctrl_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

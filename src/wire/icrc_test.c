/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ICRC against scapy's and zlib's numbers, against a bitwise twin that masks a whole
 * packet as the text of the rules says, and the solver for the identification.
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

static const uint8_t golden[] = {
	0x2b, 0x30, 0xff, 0xff, 0x00, 0x12, 0x34, 0x56, 0x00, 0xab, 0xcd, 0xef,
	0x00, 0x00, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0xde, 0xad, 0xbe, 0xef,
	0x00, 0x00, 0x00, 0x01, 0xca, 0xfe, 0xf0, 0x0d, 0x5a, 0,    0,	  0,
};
static const uint8_t src4[4] = {192, 0, 2, 1}, dst4[4] = {198, 51, 100, 2};
static const uint8_t src6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1};
static const uint8_t dst6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 2};

static void golden_vectors(void **state)
{
	/* scapy 2.5 (IPv4 identification 0 and 7); Python's zlib (IPv6) */
	static const uint8_t want[3][4] = {
		{0x52, 0x24, 0x22, 0x6a}, {0xc4, 0x3b, 0xb7, 0xaf}, {0xb1, 0x6c, 0xaf, 0x57}};
	struct wire_icrc_packet packet = {.hdr = golden,
					  .hdr_len = 32,
					  .payload = golden + 32,
					  .payload_len = 1,
					  .pad_len = 3};
	struct wire_icrc_flow flow;
	uint8_t trailer[4];

	(void)state;
	wire_icrc_flow_v4(&flow, src4, dst4, 49152, 4791, true);
	wire_icrc_seal(&flow, 0, &packet, trailer);
	assert_memory_equal(trailer, want[0], 4);
	wire_icrc_seal(&flow, 7, &packet, trailer);
	assert_memory_equal(trailer, want[1], 4);
	wire_icrc_flow_v6(&flow, src6, dst6, 49152, 4791);
	wire_icrc_seal(&flow, 7, &packet, trailer);
	assert_memory_equal(trailer, want[2], 4);
}

static uint32_t slow_crc(const uint8_t *bytes, size_t len)
{
	uint32_t crc = ~UINT32_C(0);

	for (size_t i = 0; i < len; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

/* The twin: a packet as it would be captured, masked field by field. IPv4, DF. */
static uint32_t slow_icrc_v4(uint16_t id, uint16_t sport, uint16_t dport,
			     const uint8_t *udp_payload, size_t len)
{
	uint8_t raw[8 + 28 + 4200];
	uint8_t *ip = raw + 8, *udp = ip + 20, *bth = udp + 8;

	memset(raw, 0xff, 8);
	memset(ip, 0, 28);
	ip[0] = 0x45;
	put_be16(ip + 2, (uint16_t)(28 + len + 4));
	put_be16(ip + 4, id);
	ip[6] = 0x40;
	ip[9] = 17;
	memcpy(ip + 12, src4, 4);
	memcpy(ip + 16, dst4, 4);
	put_be16(udp, sport);
	put_be16(udp + 2, dport);
	put_be16(udp + 4, (uint16_t)(8 + len + 4));
	memcpy(bth, udp_payload, len);
	ip[1] = ip[8] = ip[10] = ip[11] = udp[6] = udp[7] = bth[4] = 0xff;
	return slow_crc(raw, 8 + 28 + len);
}

/* Whatever the guess, and whether DF was guessed right. */
static void assert_solved_near(const struct wire_icrc_flow *flow,
			       const struct wire_icrc_packet *packet, const uint8_t *pkt,
			       size_t len, uint16_t id)
{
	const uint16_t guesses[] = {0, id, (uint16_t)(id + 1), (uint16_t)~id, 0xff00};
	struct wire_icrc_flow other;

	wire_icrc_flow_v4(&other, src4, dst4, 4791, 4791, false);
	for (size_t i = 0; i < sizeof(guesses) / sizeof(guesses[0]); i++) {
		uint16_t solved = guesses[i];

		assert_int_equal(wire_icrc_solve_near(flow, pkt, len, &solved), 0);
		assert_int_equal(solved, id);
		solved = guesses[i];
		assert_int_equal(wire_icrc_solve_near(&other, pkt, len, &solved), 0);
		assert_int_equal(solved, id);
	}
	assert_int_not_equal(wire_icrc(&other, id, packet), wire_icrc(flow, id, packet));
}

static void twin_and_solver(void **state)
{
	uint8_t pkt[32 + 4096 + 8];
	struct wire_icrc_flow flow;
	struct rng rng;

	(void)state;
	rng_init(&rng, 5);
	wire_icrc_flow_v4(&flow, src4, dst4, 4791, 4791, true);
	for (size_t len = 0; len <= 4096; len += len < 40 ? 1 : 253) {
		struct wire_icrc_packet packet = {.hdr = pkt, .hdr_len = 32, .payload = pkt + 32};
		size_t pad = wire_pad_bytes(len), bytes = 32 + len + pad;
		uint16_t id = (uint16_t)rng_next(&rng), solved = 0;
		uint32_t crc;

		for (size_t i = 0; i < 32 + len; i++)
			pkt[i] = (uint8_t)rng_next(&rng);
		memset(pkt + 32 + len, 0, pad);
		packet.payload_len = len;
		packet.pad_len = (unsigned int)pad;
		crc = slow_icrc_v4(id, 4791, 4791, pkt, bytes);
		assert_int_equal(wire_icrc(&flow, id, &packet), crc);
		wire_icrc_seal(&flow, id, &packet, pkt + bytes);
		assert_int_equal(wire_icrc_check(&flow, id, pkt, bytes + 4), 0);
		assert_int_equal(wire_icrc_check(&flow, (uint16_t)(id + 1), pkt, bytes + 4),
				 -EBADMSG);
		assert_int_equal(wire_icrc_solve(&flow, pkt, bytes + 4, &solved), 0);
		assert_int_equal(solved, id);
		assert_solved_near(&flow, &packet, pkt, bytes + 4, id);
		/* A router may set congestion bits of BTH; nothing else may change. */
		pkt[4] ^= 0xc0;
		assert_int_equal(wire_icrc_check(&flow, id, pkt, bytes + 4), 0);
		pkt[5] ^= 0x01;
		assert_int_equal(wire_icrc_check(&flow, id, pkt, bytes + 4), -EBADMSG);
	}
}

static void solver_enumerated(void **state)
{
	uint8_t pkt[sizeof(golden) + 4];
	struct wire_icrc_packet packet = {
		.hdr = pkt, .hdr_len = 32, .payload = pkt + 32, .payload_len = 4};
	struct wire_icrc_flow flow;
	uint16_t solved;
	size_t found = 0;

	(void)state;
	memcpy(pkt, golden, sizeof(golden));
	wire_icrc_flow_v4(&flow, src4, dst4, 1, 2, false);
	for (uint32_t id = 0; id < 65536; id++) {
		wire_icrc_seal(&flow, (uint16_t)id, &packet, pkt + sizeof(golden));
		assert_int_equal(wire_icrc_solve(&flow, pkt, sizeof(pkt), &solved), 0);
		assert_int_equal(solved, id);
	}
	/* Single flips: a 32-bit burst away from the identification is never explained. */
	for (size_t bit = 0; bit < sizeof(pkt) * 8; bit++) {
		if (bit / 8 == 4)
			continue;
		pkt[bit / 8] ^= (uint8_t)(1u << bit % 8);
		found += wire_icrc_solve(&flow, pkt, sizeof(pkt), &solved) == 0;
		solved = 0xffff;
		found += wire_icrc_solve_near(&flow, pkt, sizeof(pkt), &solved) == 0;
		assert_int_equal(wire_icrc_check(&flow, 0xffff, pkt, sizeof(pkt)), -EBADMSG);
		pkt[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_int_equal(found, 0);
	for (size_t len = 0; len < 16; len++)
		assert_int_equal(wire_icrc_solve(&flow, pkt, len, &solved), -EMSGSIZE);
}

static void solver_v6_is_a_check(void **state)
{
	uint8_t pkt[sizeof(golden) + 4];
	struct wire_icrc_packet packet = {
		.hdr = pkt, .hdr_len = 32, .payload = pkt + 32, .payload_len = 4};
	struct wire_icrc_flow flow;
	uint16_t id = 9;

	(void)state;
	memcpy(pkt, golden, sizeof(golden));
	wire_icrc_flow_v6(&flow, src6, dst6, 1, 2);
	wire_icrc_seal(&flow, 0, &packet, pkt + sizeof(golden));
	assert_int_equal(wire_icrc_solve(&flow, pkt, sizeof(pkt), &id), 0);
	assert_int_equal(id, 0);
	id = 9;
	assert_int_equal(wire_icrc_solve_near(&flow, pkt, sizeof(pkt), &id), 0);
	assert_int_equal(id, 0);
	pkt[20] ^= 1;
	assert_int_equal(wire_icrc_solve(&flow, pkt, sizeof(pkt), &id), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_vectors),
		cmocka_unit_test(twin_and_solver),
		cmocka_unit_test(solver_enumerated),
		cmocka_unit_test(solver_v6_is_a_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

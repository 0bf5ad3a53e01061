/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protect/'s checksum against zlib's number, a bitwise twin, and every single-bit
 * flip. Knows nothing of packet formats.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bits.h"
#include "base/rng.h"
#include "protect/protect.h"

static uint32_t slow_crc(uint32_t crc, const uint8_t *bytes, size_t len)
{
	crc = ~crc;
	for (size_t i = 0; i < len; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

/* Python: zlib.crc32(token.to_bytes(8, "big") + bytes(range(32)) + b"hello" + bytes(3)) */
static void golden(void **state)
{
	uint8_t hdr[32], trailer[4];
	struct protect_key key;
	struct protect_packet packet = {.hdr = hdr,
					.hdr_len = 32,
					.payload = (const uint8_t *)"hello",
					.payload_len = 5,
					.pad_len = 3};

	(void)state;
	for (unsigned int i = 0; i < 32; i++)
		hdr[i] = (uint8_t)i;
	protect_checksum_key(&key, UINT64_C(0x0123456789abcdef));
	assert_string_equal(key.ops->name, "checksum");
	assert_int_equal(key.ops->overhead_bytes, sizeof(trailer));
	protect_seal(&key, &packet, trailer);
	assert_int_equal(get_be32(trailer), 0x865a48b2u);
}

static size_t sealed(const struct protect_key *key, struct rng *rng, size_t payload_len,
		     uint8_t *pkt)
{
	struct protect_packet packet = {.hdr = pkt, .hdr_len = 32, .payload = pkt + 32};

	packet.payload_len = payload_len;
	packet.pad_len = (unsigned int)(-payload_len & 3);
	for (size_t i = 0; i < 32 + payload_len; i++)
		pkt[i] = (uint8_t)rng_next(rng);
	memset(pkt + 32 + payload_len, 0, packet.pad_len);
	protect_seal(key, &packet, pkt + 32 + payload_len + packet.pad_len);
	return 32 + payload_len + packet.pad_len + 4;
}

static void twin(void **state)
{
	uint8_t pkt[32 + 1500 + 8], token_bytes[8];
	struct protect_key key;
	struct rng rng;

	(void)state;
	rng_init(&rng, 1);
	for (size_t len = 0; len < 1500; len += len < 70 ? 1 : 97) {
		uint64_t token = rng_next(&rng);
		size_t bytes;
		uint32_t crc;

		protect_checksum_key(&key, token);
		bytes = sealed(&key, &rng, len, pkt);
		put_be64(token_bytes, token);
		crc = slow_crc(slow_crc(0, token_bytes, 8), pkt, bytes - 4);
		assert_int_equal(get_be32(pkt + bytes - 4), crc);
		assert_int_equal(protect_open(&key, pkt, bytes), 0);
		protect_checksum_key(&key, token + 1);
		assert_int_equal(protect_open(&key, pkt, bytes), -EBADMSG);
	}
}

static void every_flip_is_seen(void **state)
{
	uint8_t pkt[32 + 64 + 8];
	struct protect_key key;
	struct rng rng;
	size_t bytes;

	(void)state;
	rng_init(&rng, 2);
	protect_checksum_key(&key, 42);
	bytes = sealed(&key, &rng, 61, pkt);
	for (size_t bit = 0; bit < bytes * 8; bit++) {
		pkt[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(protect_open(&key, pkt, bytes), -EBADMSG);
		pkt[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_int_equal(protect_open(&key, pkt, bytes), 0);
	for (size_t len = 0; len < bytes; len++)
		assert_int_equal(protect_open(&key, pkt, len), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),
		cmocka_unit_test(twin),
		cmocka_unit_test(every_flip_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

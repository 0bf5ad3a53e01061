/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handshake blob: golden bytes, round trips, what is refused, and negotiation.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <sdr/err.h>

#include "base/bits.h"
#include "base/rng.h"
#include "wire/wire.h"

static const struct wire_blob sample = {
	.version_min = 1,
	.version_max = 1,
	.required = 1,
	.offered = 3,
	.mode = WIRE_SDR,
	.qpn = 0x123456,
	.token = 5,
	.incarnation = 6,
	.max_payload = 1436,
	.chunk_log2 = 4,
	.channels = 12,
	.messages_log2 = 10,
	.psn = 0xabcdef,
	.listen = true,
	.naddrs = 1,
	.addrs = {{.family = 4, .port = 4792, .ip = {192, 0, 2, 1}}},
};

static const uint8_t sample_bytes[] = {
	'S', 'D', 'R', 'B', 1,	1,    0,    112,				      /* head */
	0,   1,	  0,   16,  0,	0,    0,    0,	  0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3, /* features */
	0,   2,	  0,   1,   0,							      /* mode */
	0,   3,	  0,   4,   0,	0x12, 0x34, 0x56,				      /* qpn */
	0,   4,	  0,   8,   0,	0,    0,    0,	  0, 0, 0, 5,			      /* token */
	0,   5,	  0,   8,   0,	0,    0,    0,	  0, 0, 0, 6, /* incarnation */
	0,   6,	  0,   4,   0,	0,    0x05, 0x9c,	      /* max_payload */
	0,   7,	  0,   1,   4,				      /* chunk_log2 */
	0,   8,	  0,   1,   12,				      /* channels */
	0,   9,	  0,   1,   10,				      /* messages_log2 */
	0,   10,  0,   4,   0,	0xab, 0xcd, 0xef,	      /* psn */
	0,   11,  0,   7,   4,	0x12, 0xb8, 192,  0, 2, 1,    /* addresses */
	0,   12,  0,   1,   1,				      /* listen */
};

static void golden(void **state)
{
	uint8_t buf[WIRE_BLOB_MAX_BYTES];
	struct wire_blob out;

	(void)state;
	assert_int_equal(wire_blob_put(buf, sizeof(buf), &sample), sizeof(sample_bytes));
	assert_memory_equal(buf, sample_bytes, sizeof(sample_bytes));
	assert_int_equal(wire_blob_length(sample_bytes, 8), sizeof(sample_bytes));
	assert_int_equal(wire_blob_length(sample_bytes, 7), -EMSGSIZE);
	assert_int_equal(wire_blob_get(sample_bytes, sizeof(sample_bytes), &out), 0);
	assert_memory_equal(&out, &sample, sizeof(out));
	for (size_t len = 0; len < sizeof(sample_bytes); len++) {
		assert_int_equal(wire_blob_get(sample_bytes, len, &out), -SDR_E_BLOB);
		assert_int_equal(wire_blob_put(buf, len, &sample), -ENOSPC);
	}
}

static void random_data_qps(struct rng *rng, struct wire_blob *b)
{
	b->generations = (uint8_t)(1u << rng_below(rng, 3));
	b->data_channels = (uint8_t)(1 + rng_below(rng, WIRE_BLOB_MAX_DATA_CHANNELS));
	b->channels = (uint8_t)(1 + rng_below(rng, b->data_channels));
	for (unsigned int g = 0; g < b->generations; g++)
		for (unsigned int c = 0; c < b->data_channels; c++)
			b->data_qpn[g][c] = (uint32_t)rng_below(rng, 1 << 24);
}

static void round_trips(void **state)
{
	uint8_t buf[WIRE_BLOB_MAX_BYTES];
	struct rng rng;

	(void)state;
	rng_init(&rng, 11);
	for (int i = 0; i < 500; i++) {
		struct wire_blob in, out;
		int len;

		memset(&in, 0, sizeof(in));
		in.version_min = 1;
		in.version_max = (uint8_t)(1 + rng_below(&rng, 255));
		in.offered = rng_next(&rng);
		in.required = in.offered & rng_next(&rng);
		in.mode = rng_below(&rng, 2) ? WIRE_ROCEV2 : WIRE_SDR;
		in.qpn = (uint32_t)rng_below(&rng, 1 << 24);
		in.token = rng_next(&rng);
		in.incarnation = rng_next(&rng);
		in.max_payload = 1 + (uint32_t)rng_below(&rng, 65535);
		in.chunk_log2 = (uint8_t)rng_below(&rng, 7);
		in.channels = (uint8_t)(1 + rng_below(&rng, 128));
		in.messages_log2 = (uint8_t)rng_below(&rng, 17);
		in.psn = (uint32_t)rng_below(&rng, 1 << 24);
		if (in.mode == WIRE_ROCEV2 || rng_below(&rng, 4) == 0)
			random_data_qps(&rng, &in);
		in.listen = rng_below(&rng, 2);
		in.naddrs = (uint8_t)rng_below(&rng, 9);
		for (unsigned int a = 0; a < in.naddrs; a++) {
			in.addrs[a].family = rng_below(&rng, 2) ? 4 : 6;
			in.addrs[a].port = (uint16_t)(1 + rng_below(&rng, 65535));
			for (unsigned int k = 0; k < (in.addrs[a].family == 4 ? 4u : 16u); k++)
				in.addrs[a].ip[k] = (uint8_t)rng_next(&rng);
		}
		len = wire_blob_put(buf, sizeof(buf), &in);
		assert_true(len > 0);
		assert_int_equal(wire_blob_get(buf, (size_t)len, &out), 0);
		assert_memory_equal(&in, &out, sizeof(in));
	}
}

static size_t append(uint8_t *buf, size_t len, const void *tlv, size_t tlv_len)
{
	memcpy(buf + len, tlv, tlv_len);
	put_be16(buf + 6, (uint16_t)(len + tlv_len));
	return len + tlv_len;
}

static void strangers(void **state)
{
	uint8_t buf[WIRE_BLOB_MAX_BYTES];
	const size_t n = sizeof(sample_bytes);
	struct wire_blob out;
	size_t len;

	(void)state;
	memcpy(buf, sample_bytes, n);
	/* Unknown: skipped; twice: refused; critical: a feature. */
	len = append(buf, n, "\x7f\xff\x00\x02hi", 6);
	assert_int_equal(wire_blob_get(buf, len, &out), 0);
	assert_memory_equal(&out, &sample, sizeof(out));
	len = append(buf, len, "\x7f\xff\x00\x00", 4);
	assert_int_equal(wire_blob_get(buf, len, &out), -SDR_E_BLOB);
	len = append(buf, n, "\x80\x63\x00\x00", 4);
	assert_int_equal(wire_blob_get(buf, len, &out), -SDR_E_FEATURE);
	len = append(buf, n, "\x00\x02\x00\x01\x00", 5);
	assert_int_equal(wire_blob_get(buf, len, &out), -SDR_E_BLOB);
	len = append(buf, n, "\x00\x63\x00", 3);
	assert_int_equal(wire_blob_get(buf, len, &out), -SDR_E_BLOB);
	/* Other versions: ours to report, never to read. */
	memcpy(buf, sample_bytes, n);
	buf[4] = 2;
	buf[5] = 7;
	buf[8] = 0x80;
	put_be16(buf + 6, (uint16_t)n);
	assert_int_equal(wire_blob_get(buf, n, &out), -SDR_E_VERSION);
	assert_true(out.version_min == 2 && out.version_max == 7);
	buf[5] = 1;
	assert_int_equal(wire_blob_get(buf, n, &out), -SDR_E_BLOB);
}

static void addresses(void **state)
{
	uint8_t buf[WIRE_BLOB_MAX_BYTES], tlv[4 + 9 * 7] = {0, 11};
	struct wire_blob out;
	size_t len;

	(void)state;
	memcpy(buf, sample_bytes, 96); /* up to the sample's own addresses */
	for (size_t n = 0; n <= 9; n++) {
		put_be16(tlv + 2, (uint16_t)(n * 7));
		if (n)
			memcpy(tlv + 4 + (n - 1) * 7, "\x04\x12\xb8\xc0\x00\x02\x01", 7);
		len = append(buf, 96, tlv, 4 + n * 7);
		assert_int_equal(wire_blob_get(buf, len, &out), n <= 8 ? 0 : -SDR_E_BLOB);
		if (n <= 8)
			assert_int_equal(out.naddrs, n);
	}
	/* One byte too few for the last of them. */
	put_be16(tlv + 2, 6);
	len = append(buf, 96, tlv, 4 + 6);
	assert_int_equal(wire_blob_get(buf, len, &out), -SDR_E_BLOB);
}

/* Each mandatory TLV in turn gets a type that we skip. */
static void missing(void **state)
{
	uint8_t buf[sizeof(sample_bytes)];
	struct wire_blob out;
	unsigned int seen = 0;

	(void)state;
	for (size_t at = 8; at < sizeof(sample_bytes); at += 4u + get_be16(sample_bytes + at + 2)) {
		uint16_t type = get_be16(sample_bytes + at);

		memcpy(buf, sample_bytes, sizeof(buf));
		put_be16(buf + at, 0x6000);
		assert_int_equal(wire_blob_get(buf, sizeof(buf), &out),
				 type <= 10 ? -SDR_E_BLOB : 0);
		seen++;
	}
	assert_int_equal(seen, 12);
}

static void ranges(void **state)
{
	/* Offsets in the sample, and a value out of range there. */
	static const struct {
		size_t at;
		uint8_t value;
	} cases[] = {
		{0, 's'}, {4, 0},    {27, 0},  {32, 2}, {37, 1},  {70, 1},  {77, 7},
		{82, 0},  {82, 129}, {87, 17}, {92, 1}, {100, 5}, {111, 2}, {7, 111},
	};
	uint8_t buf[sizeof(sample_bytes)];
	struct wire_blob out, bad;

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(cases); i++) {
		memcpy(buf, sample_bytes, sizeof(buf));
		buf[cases[i].at] = cases[i].value;
		assert_int_equal(wire_blob_get(buf, sizeof(buf), &out), -SDR_E_BLOB);
	}
	bad = sample;
	bad.qpn = 1 << 24;
	assert_int_equal(wire_blob_put(buf, sizeof(buf), &bad), -EINVAL);
	bad = sample;
	bad.required = 4;
	assert_int_equal(wire_blob_put(buf, sizeof(buf), &bad), -EINVAL);
	bad = sample;
	bad.naddrs = 9;
	assert_int_equal(wire_blob_put(buf, sizeof(buf), &bad), -EINVAL);
}

/* What TLV 13 may say, and that rocev2 mode needs it. */
static void data_qps(void **state)
{
	static const uint8_t bad_tlv[][10] = {
		{0, 13, 0, 5, 3, 1, 0, 0, 1},	 /* three generations */
		{0, 13, 0, 5, 0, 1, 0, 0, 1},	 /* none */
		{0, 13, 0, 5, 1, 17, 0, 0, 1},	 /* too many channels */
		{0, 13, 0, 5, 1, 0, 0, 0, 1},	 /* no channel */
		{0, 13, 0, 5, 1, 2, 0, 0, 1},	 /* fewer QPs than it says */
		{0, 13, 0, 6, 1, 1, 0, 0, 1, 0}, /* more */
	};
	uint8_t buf[WIRE_BLOB_MAX_BYTES];
	struct wire_blob in = sample, out;
	int len;

	(void)state;
	in.mode = WIRE_ROCEV2;
	assert_int_equal(wire_blob_put(buf, sizeof(buf), &in), -EINVAL);
	in.generations = 4;
	in.data_channels = in.channels = WIRE_BLOB_MAX_DATA_CHANNELS;
	in.data_qpn[3][15] = WIRE_QPN_MASK;
	len = wire_blob_put(buf, sizeof(buf), &in);
	assert_true(len > 0);
	assert_int_equal(wire_blob_get(buf, (size_t)len, &out), 0);
	assert_memory_equal(&in, &out, sizeof(in));
	in.channels++; /* more than it has QPs for */
	assert_int_equal(wire_blob_put(buf, sizeof(buf), &in), -EINVAL);
	in.channels--;
	in.data_qpn[3][15]++;
	assert_int_equal(wire_blob_put(buf, sizeof(buf), &in), -EINVAL);
	for (size_t i = 0; i < SDR_ARRAY_LEN(bad_tlv); i++) {
		size_t n = append(memcpy(buf, sample_bytes, sizeof(sample_bytes)),
				  sizeof(sample_bytes), bad_tlv[i], 4u + bad_tlv[i][3]);

		assert_int_equal(wire_blob_get(buf, n, &out), -SDR_E_BLOB);
	}
}

static void negotiation(void **state)
{
	struct wire_blob a = sample, b = sample;
	struct wire_agreed ab, ba;

	(void)state;
	memset(&ab, 0, sizeof(ab));
	memset(&ba, 0, sizeof(ba));
	b.max_payload = 1024;
	b.offered = 1 | 4;
	b.chunk_log2 = 6;
	b.channels = 4;
	b.messages_log2 = 9;
	b.version_max = 3;
	assert_int_equal(wire_blob_negotiate(&a, &b, &ab), 0);
	assert_int_equal(wire_blob_negotiate(&b, &a, &ba), 0);
	assert_int_equal(ab.version, 1);
	assert_int_equal(ab.mode, WIRE_SDR);
	assert_true(ab.features == 1);
	assert_int_equal(ab.payload, 1024);
	assert_int_equal(ab.chunk_log2, 6);
	assert_int_equal(ab.channels, 4);
	assert_int_equal(ab.messages_log2, 9);
	assert_true(ba.features == ab.features && ba.payload == ab.payload && ba.mode == ab.mode &&
		    ba.version == ab.version);
	b.mode = WIRE_ROCEV2;
	assert_int_equal(wire_blob_negotiate(&a, &b, &ab), -SDR_E_FEATURE);
	a.offered |= WIRE_FEATURE_ROCEV2_WIRE;
	assert_int_equal(wire_blob_negotiate(&a, &b, &ab), -SDR_E_FEATURE);
	a.generations = 4;
	assert_int_equal(wire_blob_negotiate(&a, &b, &ab), -SDR_E_FEATURE);
	b.generations = 2;
	assert_int_equal(wire_blob_negotiate(&a, &b, &ab), 0);
	assert_int_equal(ab.mode, WIRE_ROCEV2);
	assert_int_equal(ab.generations, 2);
	a.offered |= WIRE_FEATURE_CODES;
	a.required |= WIRE_FEATURE_CODES;
	assert_int_equal(wire_blob_negotiate(&a, &b, &ab), -SDR_E_FEATURE);
	assert_int_equal(wire_blob_negotiate(&b, &a, &ab), -SDR_E_FEATURE);
	b.version_min = 2;
	assert_int_equal(wire_blob_negotiate(&a, &b, &ab), -SDR_E_VERSION);
	assert_int_equal(wire_blob_negotiate(&b, &a, &ab), -SDR_E_VERSION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),    cmocka_unit_test(round_trips),
		cmocka_unit_test(strangers), cmocka_unit_test(addresses),
		cmocka_unit_test(missing),   cmocka_unit_test(ranges),
		cmocka_unit_test(data_qps),  cmocka_unit_test(negotiation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

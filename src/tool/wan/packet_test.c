/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of frames: against the twin where something is cut or summed, tables elsewhere. */
#include "tool/wan/packet.h"
#include "tool/wan/packet_twin.h"

#include "base/bits.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define IP(frame) ((frame) + WAN_VNET_BYTES)

static uint8_t frame[WAN_FRAME_MAX], other[WAN_FRAME_MAX], third[WAN_FRAME_MAX];

static struct wan_packet parsed(const uint8_t *bytes, size_t len)
{
	struct wan_packet p;

	assert_int_equal(wan_packet_parse(bytes, len, &p), 0);
	return p;
}

/* [first, first + n) of the whole list is the list of the piece. */
static void compare(const struct twin_list *whole, uint32_t first, uint32_t n, const uint8_t *piece,
		    size_t len, uint64_t seed)
{
	static struct twin_list part;
	size_t bytes = whole->at[first + n] - whole->at[first];

	part.n = part.len = 0;
	twin_segments(piece, len, &part);
	if (part.n != n || part.len != bytes || (whole->n > 1 && !twin_frame_ok(piece, len)) ||
	    memcmp(part.bytes, whole->bytes + whole->at[first], bytes) != 0)
		fail_msg("seed %llu: segments %u..%u of %zu differ", (unsigned long long)seed,
			 first, first + n, whole->n);
	twin_list_fini(&part);
}

static void cut_all(const struct twin_spec *spec, struct rng *rng, uint64_t seed, bool every)
{
	size_t len = twin_build(spec, frame);
	struct wan_packet p = parsed(frame, len), piece;
	struct twin_list whole = {0};

	twin_segments(frame, len, &whole);
	assert_int_equal(p.n_segments, whole.n);
	for (uint32_t i = 0; i < p.n_segments; i++)
		assert_int_equal(wan_packet_segment_bytes(&p, i), whole.at[i + 1] - whole.at[i]);
	for (uint32_t first = 0; first < p.n_segments; first++) {
		for (uint32_t n = 1; n <= p.n_segments - first; n++) {
			size_t out;

			if ((!every || p.n_segments > 24) &&
			    rng_below(rng, (uint64_t)p.n_segments * p.n_segments / 4 + 1))
				continue;
			out = wan_packet_cut(frame, &p, first, n, other);
			compare(&whole, first, n, other, out, seed);
			piece = parsed(other, out);
			assert_int_equal(piece.n_segments, n);
			/* A cut of the cut as well. */
			out = wan_packet_cut(other, &piece, n / 2, n - n / 2, third);
			compare(&whole, first + n / 2, n - n / 2, third, out, seed);
		}
	}
	twin_list_fini(&whole);
}

/* Every (first, n) of all kinds of small super-packets (of those with many segments, some). */
static void test_cut_is_the_twins(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 1);
	for (uint64_t seed = 0; seed < 1000; seed++) {
		struct twin_spec spec = twin_random(&rng, 300);

		cut_all(&spec, &rng, seed, true);
	}
}

static void test_cut_of_large_ones(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 2);
	for (uint64_t seed = 0; seed < 60; seed++) {
		struct twin_spec spec = twin_random(&rng, 65000);

		if (spec.segment_bytes)
			spec.segment_bytes = (uint32_t)u64_max(spec.segment_bytes, 500);
		cut_all(&spec, &rng, seed, false);
	}
}

/* The comparison sees a wrong byte anywhere in a piece's headers. */
static void test_twin_sees_faults(void **state)
{
	const struct twin_spec spec = {
		.segment_bytes = 10, .payload_bytes = 35, .tcp_flags = TWIN_CWR | TWIN_PSH};
	size_t len = twin_build(&spec, frame), out;
	struct wan_packet p = parsed(frame, len);
	struct twin_list whole = {0}, part;

	(void)state;
	twin_segments(frame, len, &whole);
	out = wan_packet_cut(frame, &p, 1, 2, other);
	assert_true(twin_frame_ok(other, out));
	for (size_t at = WAN_VNET_BYTES; at < out; at++) {
		size_t in = at - WAN_VNET_BYTES;

		if (in == 0 || in == 9 || in == 32)
			continue; /* its shape */
		part = (struct twin_list){0};
		other[at] ^= 1;
		twin_segments(other, out, &part);
		assert_false(twin_frame_ok(other, out) && part.len == whole.at[3] - whole.at[1] &&
			     memcmp(part.bytes, whole.bytes + whole.at[1], part.len) == 0);
		other[at] ^= 1;
		twin_list_fini(&part);
	}
	twin_list_fini(&whole);
}

static void test_vnet_header_of_pieces(void **state)
{
	const struct twin_spec spec = {
		.segment_bytes = 100, .payload_bytes = 950, .tcp_flags = TWIN_CWR | TWIN_ACK};
	size_t len = twin_build(&spec, frame);
	struct wan_packet p = parsed(frame, len);
	uint16_t half;

	(void)state;
	assert_int_equal(wan_packet_cut(frame, &p, 0, 4, other), 10 + 40 + 400);
	assert_int_equal(other[0], 1);
	assert_int_equal(other[1], 0x81); /* TCPV4 with ECN: CWR is in it */
	memcpy(&half, other + 2, 2);
	assert_int_equal(half, 40);
	memcpy(&half, other + 4, 2);
	assert_int_equal(half, 100);
	memcpy(&half, other + 6, 2);
	assert_int_equal(half, 20);
	memcpy(&half, other + 8, 2);
	assert_int_equal(half, 16);
	assert_int_equal(wan_packet_cut(frame, &p, 4, 6, other), 10 + 40 + 550);
	assert_int_equal(other[1], 1);
	assert_int_equal(wan_packet_cut(frame, &p, 9, 1, other), 10 + 40 + 50);
	assert_int_equal(other[0], 1);
	assert_int_equal(other[1], 0);
	memcpy(&half, other + 4, 2);
	assert_int_equal(half, 0);
}

static void test_ce_on_ect_only(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 3);
	for (int i = 0; i < 2000; i++) {
		struct twin_spec spec = twin_random(&rng, 200);
		size_t len = twin_build(&spec, frame);
		struct wan_packet p = parsed(frame, len);

		assert_int_equal(p.ect, (spec.tos & 3) != 0);
		memcpy(other, frame, len);
		wan_packet_mark_ce(frame, &p);
		if (p.ect)
			spec.tos |= 3;
		twin_build(&spec, other);
		assert_memory_equal(frame, other, len);
	}
}

static void test_ports_of_transport(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 4);
	for (int i = 0; i < 4000; i++) {
		struct twin_spec spec = twin_random(&rng, 200);
		size_t len = twin_build(&spec, frame);
		struct wan_packet p = parsed(frame, len);
		bool inside = rng_below(&rng, 2);
		uint16_t value = (uint16_t)rng_next(&rng);
		struct twin_list a = {0}, b = {0};
		struct wan_port port;

		assert_int_equal(p.flow.sport, spec.sport);
		assert_int_equal(p.flow.dport, spec.dport);
		assert_true(wan_packet_port(frame, len, &p, inside, &port));
		assert_int_equal(port.value, inside ? spec.sport : spec.dport);
		assert_int_equal(port.proto, spec.udp ? 17 : 6);
		wan_packet_set_port(frame, &p, &port, value);
		*(inside ? &spec.sport : &spec.dport) = value;
		assert_int_equal(p.flow.sport, spec.sport);
		assert_int_equal(p.flow.dport, spec.dport);
		twin_segments(frame, len, &a);
		assert_int_equal(twin_build(&spec, other), len);
		twin_segments(other, len, &b);
		assert_int_equal(a.len, b.len);
		assert_memory_equal(a.bytes, b.bytes, a.len);
		if (p.n_segments == 1)
			assert_true(twin_checksums_ok(a.bytes, a.len));
		twin_list_fini(&a);
		twin_list_fini(&b);
	}
}

static void test_absent_udp_checksum_stays_absent(void **state)
{
	const struct twin_spec spec = {
		.udp = true, .csum = TWIN_FULL, .sport = 7, .dport = 8, .payload_bytes = 50};
	size_t len = twin_build(&spec, frame);
	struct wan_packet p = parsed(frame, len);
	struct wan_port port;

	(void)state;
	put_be16(IP(frame) + 26, 0);
	assert_true(wan_packet_port(frame, len, &p, true, &port));
	wan_packet_set_port(frame, &p, &port, 9999);
	assert_int_equal(get_be16(IP(frame) + 20), 9999);
	assert_int_equal(get_be16(IP(frame) + 26), 0);
}

/* Whatever the port is: a UDP checksum that comes out as 0 is sent as 0xffff, or it would be
 * absent. */
static void test_udp_checksum_is_never_0(void **state)
{
	struct twin_spec spec = {.udp = true, .csum = TWIN_FULL, .payload_bytes = 50};
	uint32_t all_ones = 0;

	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		size_t len, csum_at = v6 ? 46 : 26;
		struct wan_packet p;
		struct wan_port port;

		spec.v6 = v6;
		len = twin_build(&spec, frame);
		p = parsed(frame, len);
		for (uint32_t value = 0; value < 65536; value++) {
			assert_true(wan_packet_port(frame, len, &p, true, &port));
			wan_packet_set_port(frame, &p, &port, (uint16_t)value);
			assert_int_not_equal(get_be16(IP(frame) + csum_at), 0);
			assert_true(twin_checksums_ok(IP(frame), len - WAN_VNET_BYTES));
			all_ones += get_be16(IP(frame) + csum_at) == 0xffff;
		}
		spec.csum = TWIN_PARTIAL;
		len = twin_build(&spec, other);
		for (uint32_t value = 0; value < 65536; value++) {
			memcpy(frame, other, len);
			put_be16(frame + len - 2, (uint16_t)value);
			wan_packet_corrupt(frame, len, 8 * (csum_at + 2));
			assert_int_not_equal(get_be16(IP(frame) + csum_at), 0);
			all_ones += get_be16(IP(frame) + csum_at) == 0xffff;
		}
		spec.csum = TWIN_FULL;
	}
	assert_in_range(all_ones, 4, 8); /* it did come out so */
}

/* One bit differs from the packet with complete checksums. */
static void test_corrupt_flips_one_bit(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 5);
	for (int i = 0; i < 3000; i++) {
		struct twin_spec spec = twin_random(&rng, 200);
		struct twin_list plain = {0};
		size_t len, bit, differ = 0;

		spec.segment_bytes = 0;
		len = twin_build(&spec, frame);
		bit = i % 4 ? rng_below(&rng, 2 * 8 * len) : rng_below(&rng, 8);
		twin_segments(frame, len, &plain);
		wan_packet_corrupt(frame, len, bit);
		for (size_t at = 0; at < WAN_VNET_BYTES; at++)
			assert_int_equal(frame[at], 0);
		for (size_t at = 0; at < plain.len; at++)
			differ += (size_t)__builtin_popcount(IP(frame)[at] ^ plain.bytes[at]);
		assert_int_equal(differ, 1);
		assert_int_equal(IP(frame)[0] >> 4, spec.v6 ? 6 : 4); /* or no device takes it */
		bit %= 8 * plain.len;
		if (bit >= 4 && bit < 8)
			bit += 12 * 8; /* in the source address */
		assert_int_equal(IP(frame)[bit / 8] ^ plain.bytes[bit / 8], 1 << bit % 8);
		twin_list_fini(&plain);
	}
}

static void test_too_big(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 6);
	for (int i = 0; i < 2000; i++) {
		struct twin_spec spec = twin_random(&rng, 4000);
		size_t len = twin_build(&spec, frame), out, quote;
		struct wan_packet p = parsed(frame, len), error;
		struct twin_list whole = {0};
		uint8_t *ip = IP(other);

		spec.tcp_flags |= 1;
		memset(other, 0xee, WAN_TOO_BIG_MAX);
		out = wan_packet_too_big(frame, len, &p, 1400, other);
		twin_segments(frame, len, &whole);
		quote = u64_min(whole.at[1], spec.v6 ? 1280 - 48 : 576 - 28);
		assert_int_equal(out, 10 + (spec.v6 ? 48u : 28u) + quote);
		assert_true(twin_checksums_ok(ip, out - 10));
		error = parsed(other, out);
		assert_memory_equal(error.flow.src, p.flow.dst, 16);
		assert_memory_equal(error.flow.dst, p.flow.src, 16);
		assert_int_equal(error.flow.proto, spec.v6 ? 58 : 1);
		if (spec.v6)
			assert_true(ip[40] == 2 && ip[41] == 0 && get_be32(ip + 44) == 1400);
		else
			assert_true(ip[20] == 3 && ip[21] == 4 && get_be16(ip + 26) == 1400);
		/* The quoted header is that of the segment: its length, IPv4's checksum, and UDP's
		 * length. */
		ip += spec.v6 ? 48 : 28;
		assert_memory_equal(ip, whole.bytes, p.ip_bytes + (spec.udp ? 6u : 4u));
		twin_list_fini(&whole);
	}
}

static void test_no_error_about_some(void **state)
{
	const struct twin_spec v4 = {.payload_bytes = 1500, .csum = TWIN_FULL};
	const struct twin_spec v6 = {.v6 = true, .payload_bytes = 1500, .csum = TWIN_FULL};
	size_t len = twin_build(&v4, frame);
	struct wan_packet p = parsed(frame, len);
	uint8_t *ip = IP(frame);

	(void)state;
	assert_true(wan_packet_too_big(frame, len, &p, 1400, other) > 0);
	ip[6] = 0; /* no DF */
	assert_int_equal(wan_packet_too_big(frame, len, &p, 1400, other), 0);
	put_be16(ip + 6, 0x4010); /* a later fragment */
	p = parsed(frame, len);
	assert_int_equal(wan_packet_too_big(frame, len, &p, 1400, other), 0);
	put_be16(ip + 6, 0x4000);
	ip[9] = 1; /* ICMP: errors no, echoes yes */
	for (unsigned int type = 0; type < 256; type++) {
		ip[20] = (uint8_t)type;
		p = parsed(frame, len);
		assert_int_equal(wan_packet_too_big(frame, len, &p, 1400, other) > 0,
				 type == 0 || type == 8);
	}
	ip[9] = 17;
	ip[16] = 224; /* to a group */
	p = parsed(frame, len);
	assert_int_equal(wan_packet_too_big(frame, len, &p, 1400, other), 0);
	ip[16] = 10;
	for (unsigned int from = 0; from < 256; from++) {
		ip[12] = (uint8_t)from; /* "this network", groups, reserved */
		p = parsed(frame, len);
		assert_int_equal(wan_packet_too_big(frame, len, &p, 1400, other) > 0,
				 from > 0 && from < 224);
	}

	len = twin_build(&v6, frame);
	ip[6] = 58;
	for (unsigned int type = 0; type < 256; type++) {
		ip[40] = (uint8_t)type;
		p = parsed(frame, len);
		assert_int_equal(wan_packet_too_big(frame, len, &p, 1400, other) > 0,
				 type >= 128 && type != 137);
	}
	ip[6] = 17;
	ip[8] = 0xff; /* from a group */
	p = parsed(frame, len);
	assert_int_equal(wan_packet_too_big(frame, len, &p, 1400, other), 0);
	memset(ip + 8, 0, 16); /* from nobody */
	p = parsed(frame, len);
	assert_int_equal(wan_packet_too_big(frame, len, &p, 1400, other), 0);
	ip[8] = 0xfd;
	ip[24] = 0xff; /* to a group: told, but not by the group */
	p = parsed(frame, len);
	assert_true(wan_packet_too_big(frame, len, &p, 1400, other) > 0);
	assert_memory_equal(IP(other) + 8, ip + 8, 16);
	assert_true(twin_checksums_ok(IP(other), 1280));
}

/* The error that the line itself makes quotes an outside port; so would a host's. */
static void test_port_in_a_quote(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 7);
	for (int i = 0; i < 2000; i++) {
		struct twin_spec spec = twin_random(&rng, 100);
		size_t len = twin_build(&spec, frame), out;
		struct wan_packet p = parsed(frame, len), error;
		struct wan_port port;
		bool inside = rng_below(&rng, 2);

		out = wan_packet_too_big(frame, len, &p, 1400, other);
		error = parsed(other, out);
		assert_true(wan_packet_port(other, out, &error, inside, &port));
		assert_true(port.quoted);
		assert_int_equal(port.proto, spec.udp ? 17 : 6);
		/* An error from inside quotes a packet that came from outside. */
		assert_int_equal(port.value, inside ? spec.dport : spec.sport);
		wan_packet_set_port(other, &error, &port, (uint16_t)(port.value + 77));
		assert_true(twin_checksums_ok(IP(other), out - 10));
		assert_true(wan_packet_port(other, out, &error, inside, &port));
		assert_int_equal(port.value, (uint16_t)((inside ? spec.dport : spec.sport) + 77));
	}
}

static void test_echo_id_is_a_port(void **state)
{
	static const struct {
		uint8_t proto, type;
		bool inside, found;
	} rows[] = {
		{1, 8, true, true},	 {1, 0, true, false},	 {1, 8, false, false},
		{1, 0, false, true},	 {58, 128, true, true},	 {58, 129, true, false},
		{58, 128, false, false}, {58, 129, false, true}, {1, 13, true, false},
		{47, 8, true, false},
	};

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(rows); i++) {
		const struct twin_spec spec = {
			.v6 = rows[i].proto == 58, .payload_bytes = 40, .csum = TWIN_FULL};
		size_t len = twin_build(&spec, frame);
		uint8_t *ip = IP(frame), *icmp = ip + (spec.v6 ? 40 : 20);
		struct wan_packet p;
		struct wan_port port;

		ip[spec.v6 ? 6 : 9] = rows[i].proto;
		icmp[0] = rows[i].type;
		put_be16(icmp + 4, 1234);
		p = parsed(frame, len);
		assert_int_equal(p.flow.sport, 0);
		assert_int_equal(wan_packet_port(frame, len, &p, rows[i].inside, &port),
				 rows[i].found);
		if (!rows[i].found)
			continue;
		assert_int_equal(port.value, 1234);
		wan_packet_set_port(frame, &p, &port, 4321);
		assert_int_equal(get_be16(icmp + 4), 4321);
		assert_int_equal(p.flow.sport, 0);
	}
}

/* All fragments of a datagram have one flow: addresses and protocol. */
static void test_fragments_have_no_ports(void **state)
{
	const struct twin_spec spec = {
		.udp = true, .csum = TWIN_FULL, .sport = 7, .dport = 8, .payload_bytes = 100};
	size_t len = twin_build(&spec, frame);
	struct wan_packet whole = parsed(frame, len), first, later;
	struct wan_port port;

	(void)state;
	put_be16(IP(frame) + 6, 0x2000);
	first = parsed(frame, len);
	assert_true(first.fragment);
	assert_int_equal(first.flow.sport, 0);
	assert_true(wan_packet_port(frame, len, &first, true, &port));
	assert_int_equal(port.value, 7);
	wan_packet_set_port(frame, &first, &port, 77);
	assert_int_equal(first.flow.sport, 0);
	put_be16(IP(frame) + 6, 0x0010);
	later = parsed(frame, len);
	assert_true(later.fragment);
	assert_false(wan_packet_port(frame, len, &later, true, &port));
	assert_memory_equal(&first.flow, &later.flow, sizeof(first.flow));
	assert_false(whole.fragment);
	assert_int_equal(whole.flow.sport, 7);
}

static size_t with_fragment_header(uint16_t fragment)
{
	const struct twin_spec spec = {.v6 = true,
				       .udp = true,
				       .csum = TWIN_FULL,
				       .sport = 7,
				       .dport = 8,
				       .options_bytes = 8,
				       .payload_bytes = 100};
	size_t len = twin_build(&spec, frame);

	IP(frame)[6] = 44;
	put_be16(IP(frame) + 42, fragment);
	return len;
}

static void test_fragments_of_ipv6(void **state)
{
	struct wan_packet p = parsed(frame, with_fragment_header(0)); /* atomic: not one */
	struct wan_port port;
	size_t len;

	(void)state;
	assert_false(p.fragment);
	assert_int_equal(p.flow.sport, 7);
	len = with_fragment_header(1);
	p = parsed(frame, len);
	assert_true(p.fragment);
	assert_int_equal(p.flow.sport, 0);
	assert_int_equal(p.flow.proto, 17);
	assert_true(wan_packet_port(frame, len, &p, false, &port));
	len = with_fragment_header(8);
	p = parsed(frame, len);
	assert_true(p.fragment);
	assert_int_equal(p.flow.proto, 17);
	assert_false(wan_packet_port(frame, len, &p, false, &port));
}

/* Options behind the fragment header are in the first fragment only: not of the flow. */
static void test_fragments_of_ipv6_with_options(void **state)
{
	const struct twin_spec spec = {.v6 = true,
				       .udp = true,
				       .csum = TWIN_FULL,
				       .sport = 7,
				       .dport = 8,
				       .options_bytes = 16,
				       .payload_bytes = 100};
	size_t len = twin_build(&spec, frame);
	struct wan_packet first, later;
	struct wan_port port;
	uint8_t *ip = IP(frame);

	(void)state;
	ip[6] = 44;
	ip[40] = 60; /* destination options follow, then UDP */
	put_be16(ip + 42, 1);
	ip[48] = 17;
	ip[49] = 0;
	first = parsed(frame, len);
	assert_int_equal(first.ip_bytes, 56);
	assert_int_equal(first.l4, WAN_L4_UDP);
	assert_true(wan_packet_port(frame, len, &first, true, &port));
	assert_int_equal(port.proto, 17);
	assert_int_equal(port.value, 7);
	put_be16(ip + 42, 0x100);
	later = parsed(frame, len);
	assert_true(first.fragment && later.fragment);
	assert_false(wan_packet_port(frame, len, &later, true, &port));
	assert_memory_equal(&first.flow, &later.flow, sizeof(first.flow));
}

/* What lies behind the length that IP says is not of the packet: no NAT looks at it. */
static void test_padding_is_no_icmp(void **state)
{
	const struct twin_spec spec = {.payload_bytes = 60, .csum = TWIN_FULL};
	size_t len = twin_build(&spec, frame);
	uint8_t *ip = IP(frame);
	struct wan_packet p;
	struct wan_port port;

	(void)state;
	ip[9] = 1;
	for (int error = 0; error < 2; error++) {
		ip[20] = error ? 3 : 8;
		memset(ip + 28, 0, 28);
		ip[28] = 0x45;
		ip[37] = 17;
		for (uint16_t bytes = 20; bytes < 60; bytes++) {
			put_be16(ip + 2, bytes);
			p = parsed(frame, len);
			/* Up to the id; up to the quoted ports. */
			assert_int_equal(wan_packet_port(frame, len, &p, true, &port),
					 bytes >= (error ? 52 : 28));
		}
	}
}

/* A chain of extension headers without end is one segment without ports. */
static void test_long_chain_of_extensions(void **state)
{
	const struct twin_spec spec = {.v6 = true,
				       .udp = true,
				       .csum = TWIN_FULL,
				       .options_bytes = 8,
				       .payload_bytes = 1000};
	size_t len = twin_build(&spec, frame);
	struct wan_packet p;

	(void)state;
	for (size_t at = 40; at + 8 < len - 10; at += 8) {
		IP(frame)[at] = 60;
		IP(frame)[at + 1] = 0;
	}
	p = parsed(frame, len);
	assert_int_equal(p.l4, WAN_L4_OTHER);
	assert_int_equal(p.n_segments, 1);
	assert_int_equal(p.flow.proto, 60);
	assert_int_equal(p.ip_bytes, 40 + 8 * 8);
	assert_int_equal(wan_packet_segment_bytes(&p, 0), len - 10);
}

static void expect_bad(size_t len, const char *what)
{
	struct wan_packet p;

	if (wan_packet_parse(frame, len, &p) != -EINVAL)
		fail_msg("taken: %s", what);
}

static void test_malformed_frames(void **state)
{
	struct twin_spec spec = {.payload_bytes = 1000, .segment_bytes = 100};
	size_t len = twin_build(&spec, frame);
	uint8_t *ip = IP(frame);

	(void)state;
	parsed(frame, len);
	expect_bad(0, "nothing");
	expect_bad(10, "vnet header alone");
	expect_bad(len - 1, "shorter than IPv4 says");
	expect_bad(len + 1, "a super-packet with something behind it");
	for (unsigned int type = 0; type < 256; type++) {
		struct wan_packet p;
		bool good = (type & 0x7f) <= 1;

		frame[1] = (uint8_t)type;
		assert_int_equal(wan_packet_parse(frame, len, &p), good ? 0 : -EINVAL);
	}
	frame[1] = 1;
	frame[4] = frame[5] = 0;
	expect_bad(len, "segments of 0 bytes");
	frame[4] = 100;
	frame[6]++;
	expect_bad(len, "a checksum that starts elsewhere");
	frame[6]--;
	frame[8] = frame[9] = 0xff;
	expect_bad(len, "a checksum beyond the end");
	frame[8] = 16;
	frame[9] = 0;
	ip[6] |= 0x20;
	expect_bad(len, "a super-packet that is a fragment");
	ip[6] &= 0xdf;
	ip[32] = 0x40;
	expect_bad(len, "a TCP header of 16 bytes");
	ip[32] = 0x50;
	ip[0] = 0x44;
	expect_bad(len, "an IPv4 header of 16 bytes");
	ip[0] = 0x45;
	parsed(frame, len);
	ip[0] = 0x55;
	expect_bad(len, "a super-packet of IP version 5");
	frame[1] = 0;
	assert_int_equal(parsed(frame, len).ip_bytes, 0);
}

/* A plain packet that IP says is longer than the frame is not carried, whatever is missing. */
static void test_truncated_frames(void **state)
{
	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		const struct twin_spec spec = {.v6 = kind & 1,
					       .udp = kind & 2,
					       .csum = TWIN_FULL,
					       .options_bytes = 8,
					       .payload_bytes = 30};
		size_t len = twin_build(&spec, frame);

		parsed(frame, len);
		for (size_t part = 0; part < len; part++) {
			uint8_t *copy = malloc(part + 1); /* exact, for AddressSanitizer */
			struct wan_packet p;

			assert_non_null(copy);
			memcpy(copy + 1, frame, part);
			assert_int_equal(wan_packet_parse(copy + 1, part, &p), -EINVAL);
			free(copy);
		}
	}
}

/* AH counts its length in words of 4 bytes, the others in 8. */
static void test_ports_behind_ah(void **state)
{
	const struct twin_spec spec = {.v6 = true,
				       .udp = true,
				       .csum = TWIN_FULL,
				       .sport = 7,
				       .dport = 8,
				       .options_bytes = 24,
				       .payload_bytes = 100};
	size_t len = twin_build(&spec, frame);
	struct wan_packet p;

	(void)state;
	IP(frame)[6] = 51;
	IP(frame)[41] = 24 / 4 - 2;
	p = parsed(frame, len);
	assert_int_equal(p.ip_bytes, 64);
	assert_int_equal(p.l4, WAN_L4_UDP);
	assert_int_equal(p.flow.sport, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut_is_the_twins),
		cmocka_unit_test(test_cut_of_large_ones),
		cmocka_unit_test(test_twin_sees_faults),
		cmocka_unit_test(test_vnet_header_of_pieces),
		cmocka_unit_test(test_ce_on_ect_only),
		cmocka_unit_test(test_ports_of_transport),
		cmocka_unit_test(test_absent_udp_checksum_stays_absent),
		cmocka_unit_test(test_udp_checksum_is_never_0),
		cmocka_unit_test(test_corrupt_flips_one_bit),
		cmocka_unit_test(test_too_big),
		cmocka_unit_test(test_no_error_about_some),
		cmocka_unit_test(test_port_in_a_quote),
		cmocka_unit_test(test_echo_id_is_a_port),
		cmocka_unit_test(test_fragments_have_no_ports),
		cmocka_unit_test(test_fragments_of_ipv6),
		cmocka_unit_test(test_fragments_of_ipv6_with_options),
		cmocka_unit_test(test_padding_is_no_icmp),
		cmocka_unit_test(test_long_chain_of_extensions),
		cmocka_unit_test(test_malformed_frames),
		cmocka_unit_test(test_truncated_frames),
		cmocka_unit_test(test_ports_behind_ah),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

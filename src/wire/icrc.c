/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ICRC by ISA-L's CRC, and the search for the identification that an ICRC implies.
 * Knows nothing of sockets. Coverage: icrc.h.
 *
 * ISA-L's crc32_gzip_refl is zlib's crc32: it inverts on the way in and out, so calls
 * chain and start from 0.
 */
#include "wire/icrc.h"

#include <errno.h>
#include <isa-l/crc.h>
#include <string.h>

#include "base/bits.h"
#include "wire/packet.h"

#define LRH_BYTES 8
#define IPV4_BYTES 20
#define IPV6_BYTES 40
#define UDP_BYTES 8
#define IP_PROTOCOL_UDP 17
#define BTH_RESV8A 4

/* Identification within pseudo; IPv4 only. */
#define PSEUDO_ID_AT (LRH_BYTES + 4)

static void put_udp(uint8_t *udp, uint16_t sport, uint16_t dport)
{
	put_be16(udp, sport);
	put_be16(udp + 2, dport);
	put_be16(udp + 6, 0xffff);
}

void wire_icrc_flow_v4(struct wire_icrc_flow *flow, const uint8_t src[4], const uint8_t dst[4],
		       uint16_t sport, uint16_t dport, bool df)
{
	uint8_t *ip = flow->pseudo + LRH_BYTES;

	memset(flow, 0, sizeof(*flow));
	memset(flow->pseudo, 0xff, LRH_BYTES);
	ip[0] = 0x45;
	ip[1] = 0xff;
	ip[6] = df ? 0x40 : 0;
	ip[8] = 0xff;
	ip[9] = IP_PROTOCOL_UDP;
	put_be16(ip + 10, 0xffff);
	memcpy(ip + 12, src, 4);
	memcpy(ip + 16, dst, 4);
	put_udp(ip + IPV4_BYTES, sport, dport);
	flow->pseudo_bytes = LRH_BYTES + IPV4_BYTES + UDP_BYTES;
}

void wire_icrc_flow_v6(struct wire_icrc_flow *flow, const uint8_t src[16], const uint8_t dst[16],
		       uint16_t sport, uint16_t dport)
{
	uint8_t *ip = flow->pseudo + LRH_BYTES;

	memset(flow, 0, sizeof(*flow));
	memset(flow->pseudo, 0xff, LRH_BYTES);
	put_be32(ip, 0x6fffffff);
	ip[6] = IP_PROTOCOL_UDP;
	ip[7] = 0xff;
	memcpy(ip + 8, src, 16);
	memcpy(ip + 24, dst, 16);
	put_udp(ip + IPV6_BYTES, sport, dport);
	flow->pseudo_bytes = LRH_BYTES + IPV6_BYTES + UDP_BYTES;
	flow->v6 = true;
}

/* Patches what differs by packet. */
static void put_lengths(const struct wire_icrc_flow *flow, uint8_t *pseudo, uint16_t ip_id,
			size_t packet_bytes)
{
	uint16_t udp_len = (uint16_t)(UDP_BYTES + packet_bytes);

	put_be16(pseudo + flow->pseudo_bytes - 4, udp_len);
	if (flow->v6) {
		put_be16(pseudo + LRH_BYTES + 4, udp_len);
	} else {
		put_be16(pseudo + LRH_BYTES + 2, (uint16_t)(IPV4_BYTES + udp_len));
		put_be16(pseudo + PSEUDO_ID_AT, ip_id);
	}
}

uint32_t wire_icrc(const struct wire_icrc_flow *flow, uint16_t ip_id,
		   const struct wire_icrc_packet *packet)
{
	static const uint8_t zeros[3];
	/* Pseudo header and BTH together: one call for all the short pieces. */
	uint8_t head[WIRE_ICRC_PSEUDO_MAX_BYTES + WIRE_BTH_BYTES];
	uint32_t crc;

	memcpy(head, flow->pseudo, sizeof(flow->pseudo));
	put_lengths(flow, head, ip_id,
		    packet->hdr_len + packet->payload_len + packet->pad_len + WIRE_TRAILER_BYTES);
	memcpy(head + flow->pseudo_bytes, packet->hdr, WIRE_BTH_BYTES);
	head[flow->pseudo_bytes + BTH_RESV8A] = 0xff;
	crc = crc32_gzip_refl(0, head, flow->pseudo_bytes + (uint64_t)WIRE_BTH_BYTES);
	crc = crc32_gzip_refl(crc, packet->hdr + WIRE_BTH_BYTES, packet->hdr_len - WIRE_BTH_BYTES);
	if (packet->payload_len)
		crc = crc32_gzip_refl(crc, packet->payload, packet->payload_len);
	return crc32_gzip_refl(crc, zeros, packet->pad_len);
}

static void put_le32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
	p[2] = (uint8_t)(v >> 16);
	p[3] = (uint8_t)(v >> 24);
}

static uint32_t get_le32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

void wire_icrc_seal(const struct wire_icrc_flow *flow, uint16_t ip_id,
		    const struct wire_icrc_packet *packet, uint8_t trailer[4])
{
	put_le32(trailer, wire_icrc(flow, ip_id, packet));
}

/* What a received packet's ICRC differs by from the right one for ip_id: 0 is good. */
static int icrc_difference(const struct wire_icrc_flow *flow, uint16_t ip_id, const uint8_t *pkt,
			   size_t len, uint32_t *difference)
{
	struct wire_icrc_packet packet;

	if (len < WIRE_BTH_BYTES + WIRE_TRAILER_BYTES)
		return -EMSGSIZE;
	packet = (struct wire_icrc_packet){
		.hdr = pkt, .hdr_len = WIRE_BTH_BYTES, .payload = pkt + WIRE_BTH_BYTES};
	packet.payload_len = len - WIRE_BTH_BYTES - WIRE_TRAILER_BYTES;
	*difference = wire_icrc(flow, ip_id, &packet) ^ get_le32(pkt + len - WIRE_TRAILER_BYTES);
	return 0;
}

int wire_icrc_check(const struct wire_icrc_flow *flow, uint16_t ip_id, const uint8_t *pkt,
		    size_t len)
{
	uint32_t difference;
	int err = icrc_difference(flow, ip_id, pkt, len, &difference);

	if (err)
		return err;
	return difference ? -EBADMSG : 0;
}

/* a * b modulo the CRC's polynomial; bit 31 is x^0 (reflected). */
static uint32_t poly_multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (; a; a <<= 1) {
		if (a & 0x80000000u)
			product ^= b;
		b = b >> 1 ^ (b & 1 ? 0xedb88320u : 0);
	}
	return product;
}

/*
 * Undoes n zero bytes that a difference of CRC registers went through: multiplies by
 * x^-8n, by squaring x^-8, which is x^0 with the register stepped back eight bits.
 */
static uint32_t undo_zero_bytes(uint32_t difference, size_t n)
{
	uint32_t power = 0x80000000u;

	/* One bit back: the polynomial was added if the top bit says so. */
	for (int bit = 0; bit < 8; bit++)
		power = power & 0x80000000u ? (power ^ 0xedb88320u) << 1 | 1 : power << 1;
	for (; n; n >>= 1) {
		if (n & 1)
			difference = poly_multiply(difference, power);
		power = poly_multiply(power, power);
	}
	return difference;
}

/* The flags' first byte follows the identification. */
#define DF_DIFFERENCE (UINT32_C(0x40) << 16)

/* *difference: against the identification `guess`, two bytes and two of flags, first lowest. */
static int solve(const struct wire_icrc_flow *flow, const uint8_t *pkt, size_t len, uint16_t guess,
		 uint32_t *difference)
{
	int err = icrc_difference(flow, guess, pkt, len, difference);

	if (err || !*difference)
		return err;
	if (flow->v6)
		return -EBADMSG;
	/*
	 * Against a guess, a right packet differs by exactly its four bytes of identification
	 * and flags, moved through everything that follows them. Back at the bytes, they are
	 * the register's, and the flags' part is 0 or DF.
	 */
	*difference = undo_zero_bytes(*difference, flow->pseudo_bytes - (size_t)PSEUDO_ID_AT + len -
							   WIRE_TRAILER_BYTES);
	return 0;
}

static uint16_t id_of(uint32_t difference)
{
	return (uint16_t)(difference << 8 | (difference >> 8 & 0xff));
}

int wire_icrc_solve(const struct wire_icrc_flow *flow, const uint8_t *pkt, size_t len,
		    uint16_t *ip_id)
{
	uint32_t difference;
	int err = solve(flow, pkt, len, 0, &difference);

	if (err)
		return err;
	if (difference > 0xffff)
		return -EBADMSG;
	*ip_id = id_of(difference);
	return 0;
}

int wire_icrc_solve_near(const struct wire_icrc_flow *flow, const uint8_t *pkt, size_t len,
			 uint16_t *ip_id)
{
	uint32_t difference;
	int err = solve(flow, pkt, len, *ip_id, &difference);

	if (err)
		return err;
	if ((difference & ~DF_DIFFERENCE) > 0xffff)
		return -EBADMSG;
	*ip_id = flow->v6 ? 0 : *ip_id ^ id_of(difference);
	return 0;
}

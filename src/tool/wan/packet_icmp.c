/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The router's answer to a packet that does not fit: ICMP "fragmentation needed" and ICMPv6
 * "packet too big". It comes from the address that the packet went to: the router has none.
 */
#include "tool/wan/packet_int.h"

/* An error quotes as much as keeps it within these (RFC 1812, 4.3.2.3; RFC 4443, 2.4). */
#define ICMP_MAX_BYTES 576u
#define ICMPV6_MAX_BYTES 1280u
#define HOP_LIMIT 64
#define IPV4_DF 0x4000u

/* Where no error may be sent about a packet (RFC 1122, 3.2.2; RFC 4443, 2.4 e). */
static bool may_tell_v4(const uint8_t *ip, const struct packet_ip *read, size_t avail)
{
	uint8_t type = avail > read->header_bytes ? ip[read->header_bytes] : 0;

	if (!(get_be16(ip + 6) & IPV4_DF) || read->headless)
		return false;
	if (read->proto == PROTO_ICMP && type != 0 && type != 8)
		return false;
	return ip[12] != 0 && ip[12] < 224 && ip[16] < 224;
}

static bool may_tell_v6(const uint8_t *ip, const struct packet_ip *read, size_t avail)
{
	static const uint8_t nobody[16];
	uint8_t type = avail > read->header_bytes ? ip[read->header_bytes] : 0;

	/* Errors and redirects. */
	if (read->proto == PROTO_ICMPV6 && !read->headless && (type < 128 || type == 137))
		return false;
	return ip[8] != 0xff && memcmp(ip + 8, nobody, sizeof(nobody)) != 0;
}

/* What a router would have had in its hands of a super-packet: its first segment. */
static void quote(const uint8_t *ip, const struct wan_packet *p, uint8_t *out, uint32_t bytes)
{
	uint32_t whole = wan_packet_segment_bytes(p, 0);

	memcpy(out, ip, bytes);
	if (p->n_segments == 1)
		return;
	if (p->v6) {
		put_be16(out + 4, (uint16_t)(whole - IPV6_BYTES));
	} else {
		put_be16(out + 2, (uint16_t)whole);
		ipv4_csum_fill(out, p->ip_bytes);
	}
	if (p->l4 == WAN_L4_UDP && bytes >= p->header_bytes)
		put_be16(out + p->ip_bytes + 4, (uint16_t)(whole - p->ip_bytes));
}

static uint32_t tell_v4(const uint8_t *ip, const struct wan_packet *p, uint32_t mtu_bytes,
			uint8_t *out)
{
	const uint32_t room = ICMP_MAX_BYTES - IPV4_BYTES - ICMP_BYTES;
	uint32_t quoted = (uint32_t)u64_min(wan_packet_segment_bytes(p, 0), room);
	uint32_t bytes = IPV4_BYTES + ICMP_BYTES + quoted;
	uint8_t *icmp = out + IPV4_BYTES;

	memset(out, 0, IPV4_BYTES + ICMP_BYTES);
	out[0] = 0x45;
	put_be16(out + 2, (uint16_t)bytes);
	put_be16(out + 6, IPV4_DF);
	out[8] = HOP_LIMIT;
	out[9] = PROTO_ICMP;
	memcpy(out + 12, ip + 16, 4);
	memcpy(out + 16, ip + 12, 4);
	ipv4_csum_fill(out, IPV4_BYTES);
	icmp[0] = 3;
	icmp[1] = 4;
	put_be16(icmp + 6, (uint16_t)u64_min(mtu_bytes, 0xffff));
	quote(ip, p, icmp + ICMP_BYTES, quoted);
	put_be16(icmp + ICMP_CSUM, (uint16_t)~sum_fold(sum_bytes(0, icmp, ICMP_BYTES + quoted)));
	return bytes;
}

static uint32_t tell_v6(const uint8_t *ip, const struct wan_packet *p, uint32_t mtu_bytes,
			uint8_t *out)
{
	const uint32_t room = ICMPV6_MAX_BYTES - IPV6_BYTES - ICMP_BYTES;
	uint32_t quoted = (uint32_t)u64_min(wan_packet_segment_bytes(p, 0), room);
	uint32_t icmp_bytes = ICMP_BYTES + quoted;
	uint8_t *icmp = out + IPV6_BYTES;
	uint64_t sum;

	memset(out, 0, IPV6_BYTES + ICMP_BYTES);
	out[0] = 0x60;
	put_be16(out + 4, (uint16_t)icmp_bytes);
	out[6] = PROTO_ICMPV6;
	out[7] = HOP_LIMIT;
	memcpy(out + 8, ip + 24, 16);
	memcpy(out + 24, ip + 8, 16);
	/* An answer cannot come from a group of receivers; any address but that will do. */
	if (out[8] == 0xff)
		memcpy(out + 8, ip + 8, 16);
	icmp[0] = 2;
	put_be32(icmp + 4, mtu_bytes);
	quote(ip, p, icmp + ICMP_BYTES, quoted);
	sum = sum_pseudo(out, true, PROTO_ICMPV6, icmp_bytes);
	put_be16(icmp + ICMP_CSUM, (uint16_t)~sum_fold(sum_bytes(sum, icmp, icmp_bytes)));
	return IPV6_BYTES + icmp_bytes;
}

size_t wan_packet_too_big(const void *frame, size_t len, const struct wan_packet *p,
			  uint32_t mtu_bytes, void *out)
{
	const uint8_t *ip = (const uint8_t *)frame + WAN_VNET_BYTES;
	size_t avail = len - WAN_VNET_BYTES;
	uint8_t *to = out;
	struct packet_ip read;

	if (p->ip_bytes == 0 || !packet_ip_read(ip, avail, &read))
		return 0;
	if (p->v6 ? !may_tell_v6(ip, &read, avail) : !may_tell_v4(ip, &read, avail))
		return 0;
	memset(to, 0, WAN_VNET_BYTES);
	to += WAN_VNET_BYTES;
	return WAN_VNET_BYTES +
	       (p->v6 ? tell_v6(ip, p, mtu_bytes, to) : tell_v4(ip, p, mtu_bytes, to));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of a frame in place: ECN marks, ports behind a NAT, bit errors; each with the
 * checksums that go with it, whether they are complete or left to the device.
 */
#include "tool/wan/packet_int.h"

void wan_packet_mark_ce(void *frame, const struct wan_packet *p)
{
	uint8_t *ip = (uint8_t *)frame + WAN_VNET_BYTES;
	uint16_t old;

	if (!p->ect)
		return;
	if (p->v6) {
		ip[1] |= 0x30;
		return;
	}
	old = get_be16(ip);
	ip[1] |= 3;
	put_be16(ip + 10, csum_replace(get_be16(ip + 10), old, get_be16(ip)));
}

/* A transport header's port that NAT translates. */
static bool transport_port(const uint8_t *frame, const struct wan_packet *p, bool from_inside,
			   struct wan_port *out)
{
	uint32_t l4 = WAN_VNET_BYTES + p->ip_bytes;
	uint32_t csum_offset = p->l4 == WAN_L4_TCP ? TCP_CSUM : UDP_CSUM;

	*out = (struct wan_port){.proto = p->l4 == WAN_L4_TCP ? PROTO_TCP : PROTO_UDP,
				 .at = l4 + (from_inside ? 0 : 2),
				 .csum_at = l4 + csum_offset,
				 .zero_is_none = p->l4 == WAN_L4_UDP};
	/* What is left to the device holds the pseudo-header alone: no ports. */
	if (p->partial_csum && vnet_get16(frame, VNET_CSUM_START) == p->ip_bytes &&
	    vnet_get16(frame, VNET_CSUM_OFFSET) == csum_offset)
		out->csum_at = 0;
	return true;
}

static bool is_echo(uint8_t proto, uint8_t type, bool request)
{
	if (proto == PROTO_ICMP)
		return type == (request ? 8 : 0);
	return proto == PROTO_ICMPV6 && type == (request ? 128 : 129);
}

static bool is_icmp_error(uint8_t proto, uint8_t type)
{
	if (proto == PROTO_ICMP)
		return type == 3 || type == 4 || type == 11 || type == 12;
	return proto == PROTO_ICMPV6 && type >= 1 && type <= 4;
}

/* The port in the packet that an ICMP error quotes, which went the other way. */
static bool quoted_port(const uint8_t *frame, uint32_t icmp_at, size_t len, bool from_inside,
			struct wan_port *out)
{
	uint32_t at = icmp_at + ICMP_BYTES;
	struct packet_ip ip;

	if (len <= at || !packet_ip_read(frame + at, len - at, &ip) || ip.headless)
		return false;
	at += ip.header_bytes;
	out->proto = ip.proto;
	out->quoted = true;
	if ((ip.proto == PROTO_TCP || ip.proto == PROTO_UDP) && len - at >= 4) {
		out->at = at + (from_inside ? 2 : 0);
		return true;
	}
	if (len - at >= ICMP_BYTES && is_echo(ip.proto, frame[at], !from_inside)) {
		out->at = at + 4;
		return true;
	}
	return false;
}

static bool icmp_port(const uint8_t *frame, size_t len, const struct wan_packet *p,
		      bool from_inside, struct wan_port *out)
{
	uint32_t at = WAN_VNET_BYTES + p->ip_bytes;
	struct packet_ip ip;

	if (!packet_ip_read(frame + WAN_VNET_BYTES, len - WAN_VNET_BYTES, &ip))
		return false;
	len = u64_min(len, WAN_VNET_BYTES + ip.total_bytes); /* behind it may be padding */
	if (len < at + ICMP_BYTES)
		return false;
	*out = (struct wan_port){.proto = p->flow.proto, .csum_at = at + ICMP_CSUM};
	if (is_echo(p->flow.proto, frame[at], from_inside))
		out->at = at + 4;
	else if (!is_icmp_error(p->flow.proto, frame[at]) ||
		 !quoted_port(frame, at, len, from_inside, out))
		return false;
	return true;
}

bool wan_packet_port(const void *frame, size_t len, const struct wan_packet *p, bool from_inside,
		     struct wan_port *out)
{
	const uint8_t *bytes = frame;
	bool found;

	if (p->ip_bytes == 0)
		return false;
	if (p->l4 != WAN_L4_OTHER)
		found = transport_port(bytes, p, from_inside, out);
	else if (p->n_segments == 1 && !p->fragment && !p->partial_csum)
		found = icmp_port(bytes, len, p, from_inside, out);
	else
		return false;
	if (found)
		out->value = get_be16(bytes + out->at);
	return found;
}

void wan_packet_set_port(void *frame, struct wan_packet *p, const struct wan_port *port,
			 uint16_t value)
{
	uint8_t *bytes = frame;
	uint16_t csum, before;

	put_be16(bytes + port->at, value);
	if (!port->quoted && p->l4 != WAN_L4_OTHER && !p->fragment) {
		p->flow.sport = get_be16(bytes + WAN_VNET_BYTES + p->ip_bytes);
		p->flow.dport = get_be16(bytes + WAN_VNET_BYTES + p->ip_bytes + 2);
	}
	if (port->csum_at == 0)
		return;
	before = get_be16(bytes + port->csum_at);
	if (port->zero_is_none && before == 0)
		return;
	csum = csum_replace(before, port->value, value);
	put_be16(bytes + port->csum_at, port->zero_is_none && csum == 0 ? 0xffff : csum);
}

/* What the device would have done; 0xffff for 0, which UDP takes as "none". */
static void fill_checksum(uint8_t *frame, size_t len)
{
	uint32_t start = WAN_VNET_BYTES + vnet_get16(frame, VNET_CSUM_START);
	uint32_t at = start + vnet_get16(frame, VNET_CSUM_OFFSET);
	uint16_t csum = (uint16_t)~sum_fold(sum_bytes(0, frame + start, len - start));

	put_be16(frame + at, csum ? csum : 0xffff);
}

/* The version in byte 0, and a byte that is of the source address in IPv4 and in IPv6. */
#define VERSION_BIT 4
#define SOURCE_AT 12

void wan_packet_corrupt(void *frame, size_t len, uint64_t bit)
{
	uint8_t *bytes = frame;

	if (bytes[VNET_FLAGS] & VNET_NEEDS_CSUM)
		fill_checksum(bytes, len);
	/* "Verified" (DATA_VALID) is no longer true either. */
	memset(bytes, 0, WAN_VNET_BYTES);
	bit %= (uint64_t)(len - WAN_VNET_BYTES) * 8;
	if (bit >= VERSION_BIT && bit < 8 && len > WAN_VNET_BYTES + SOURCE_AT)
		bit += 8 * SOURCE_AT;
	bytes[WAN_VNET_BYTES + bit / 8] ^= (uint8_t)(1u << bit % 8);
}

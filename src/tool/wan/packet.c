/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a frame is: vnet header, IP with its extensions, transport. Everything that the other
 * files take from a frame was checked here. Cutting is in packet_cut.c, changes in
 * packet_edit.c, ICMP in packet_icmp.c.
 */
#include "tool/wan/packet_int.h"

#include <errno.h>

/* More extension headers than this: taken as a protocol that is not understood. */
#define MAX_EXTENSIONS 8

uint64_t sum_bytes(uint64_t sum, const uint8_t *bytes, size_t len)
{
	size_t i = 0;

	for (; i + 4 <= len; i += 4)
		sum += get_be32(bytes + i);
	if (i + 2 <= len) {
		sum += get_be16(bytes + i);
		i += 2;
	}
	if (i < len)
		sum += (uint64_t)bytes[i] << 8;
	return sum;
}

uint16_t sum_fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

uint64_t sum_pseudo(const uint8_t *ip, bool v6, uint8_t proto, uint32_t len)
{
	uint64_t sum = (uint64_t)proto + len;

	return v6 ? sum_bytes(sum, ip + 8, 32) : sum_bytes(sum, ip + 12, 8);
}

uint16_t csum_replace(uint16_t csum, uint16_t old, uint16_t new)
{
	return (uint16_t)~sum_fold((uint64_t)(uint16_t)~csum + (uint16_t)~old + new);
}

void ipv4_csum_fill(uint8_t *ip, uint32_t header_bytes)
{
	put_be16(ip + 10, 0);
	put_be16(ip + 10, (uint16_t)~sum_fold(sum_bytes(0, ip, header_bytes)));
}

static bool read_ipv4(const uint8_t *ip, size_t avail, struct packet_ip *out)
{
	uint16_t fragment;

	if (avail < IPV4_BYTES)
		return false;
	fragment = get_be16(ip + 6);
	*out = (struct packet_ip){
		.proto = ip[9],
		.header_bytes = (ip[0] & 15u) * 4,
		.total_bytes = get_be16(ip + 2),
		.fragment = (fragment & 0x3fff) != 0,
		.headless = (fragment & 0x1fff) != 0,
	};
	out->flow_proto = out->proto;
	return out->header_bytes >= IPV4_BYTES && out->header_bytes <= avail;
}

static bool is_extension(uint8_t proto)
{
	return proto == PROTO_HOP_BY_HOP || proto == PROTO_ROUTING || proto == PROTO_FRAGMENT ||
	       proto == PROTO_AH || proto == PROTO_DEST_OPTIONS || proto == PROTO_MOBILITY;
}

/* The length of an extension header of which 8 bytes are there. */
static uint32_t extension_bytes(uint8_t proto, const uint8_t *at)
{
	if (proto == PROTO_FRAGMENT)
		return 8;
	if (proto == PROTO_AH)
		return (at[1] + 2u) * 4;
	return (at[1] + 1u) * 8;
}

static bool read_ipv6(const uint8_t *ip, size_t avail, struct packet_ip *out)
{
	uint8_t proto;
	uint32_t at = IPV6_BYTES;

	if (avail < IPV6_BYTES)
		return false;
	proto = ip[6];
	*out = (struct packet_ip){.v6 = true, .total_bytes = IPV6_BYTES + get_be16(ip + 4)};
	for (int n = 0; n < MAX_EXTENSIONS && is_extension(proto) && !out->headless; n++) {
		uint32_t bytes;

		if (at + 8 > avail)
			break;
		bytes = extension_bytes(proto, ip + at);
		if (at + bytes > avail)
			break;
		if (proto == PROTO_FRAGMENT) {
			uint16_t fragment = get_be16(ip + at + 2);

			out->fragment |= (fragment & 0xfff9) != 0;
			out->headless |= (fragment & 0xfff8) != 0;
			if (out->fragment)
				out->flow_proto = ip[at];
		}
		proto = ip[at];
		at += bytes;
	}
	out->proto = proto;
	if (!out->fragment)
		out->flow_proto = proto;
	out->header_bytes = at;
	return true;
}

bool packet_ip_read(const uint8_t *ip, size_t avail, struct packet_ip *out)
{
	if (avail == 0)
		return false;
	if (ip[0] >> 4 == 4)
		return read_ipv4(ip, avail, out);
	return ip[0] >> 4 == 6 && read_ipv6(ip, avail, out);
}

void packet_flow_addresses(const uint8_t *ip, bool v6, struct link_flow *flow)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (v6) {
		memcpy(flow->src, ip + 8, 16);
		memcpy(flow->dst, ip + 24, 16);
		return;
	}
	memcpy(flow->src, mapped, sizeof(mapped));
	memcpy(flow->dst, mapped, sizeof(mapped));
	memcpy(flow->src + 12, ip + 12, 4);
	memcpy(flow->dst + 12, ip + 16, 4);
}

/* The transport header of a packet that has one: its kind, its length, the ports. */
static void read_transport(const uint8_t *l4, uint8_t proto, size_t avail, struct wan_packet *p)
{
	uint32_t bytes;

	if (proto == PROTO_TCP && avail >= TCP_BYTES) {
		bytes = (l4[12] >> 4) * 4u;
		if (bytes < TCP_BYTES || bytes > avail)
			return;
		p->l4 = WAN_L4_TCP;
	} else if (proto == PROTO_UDP && avail >= UDP_BYTES) {
		bytes = UDP_BYTES;
		p->l4 = WAN_L4_UDP;
	} else {
		return;
	}
	p->header_bytes += bytes;
	if (p->fragment)
		return; /* the later ones have none, and all take one path */
	p->flow.sport = get_be16(l4);
	p->flow.dport = get_be16(l4 + 2);
}

/* A super-packet: all that the cut relies on. */
static int read_segments(const uint8_t *frame, const struct packet_ip *ip, uint32_t avail,
			 struct wan_packet *p)
{
	uint32_t type = frame[VNET_GSO_TYPE] & ~VNET_GSO_ECN;
	uint32_t size = vnet_get16(frame, VNET_GSO_SIZE);
	enum wan_l4 l4 = type == VNET_GSO_UDP_L4 ? WAN_L4_UDP : WAN_L4_TCP;

	if (type != VNET_GSO_TCPV4 && type != VNET_GSO_TCPV6 && type != VNET_GSO_UDP_L4)
		return -EINVAL;
	if (p->l4 != l4 || p->fragment || ip->total_bytes != avail || size == 0)
		return -EINVAL;
	if (type != VNET_GSO_UDP_L4 && p->v6 != (type == VNET_GSO_TCPV6))
		return -EINVAL;
	if (p->partial_csum &&
	    (vnet_get16(frame, VNET_CSUM_START) != p->ip_bytes ||
	     vnet_get16(frame, VNET_CSUM_OFFSET) != (l4 == WAN_L4_TCP ? TCP_CSUM : UDP_CSUM)))
		return -EINVAL;
	if (p->payload_bytes > size) {
		p->segment_bytes = size;
		p->n_segments = (p->payload_bytes + size - 1) / size;
	}
	return 0;
}

int wan_packet_parse(const void *frame, size_t len, struct wan_packet *out)
{
	const uint8_t *bytes = frame, *at;
	struct packet_ip ip;
	uint32_t avail;

	*out = (struct wan_packet){.n_segments = 1};
	if (len <= WAN_VNET_BYTES || len > WAN_FRAME_MAX)
		return -EINVAL;
	at = bytes + WAN_VNET_BYTES;
	avail = (uint32_t)(len - WAN_VNET_BYTES);
	out->payload_bytes = out->segment_bytes = avail;
	out->partial_csum = (bytes[VNET_FLAGS] & VNET_NEEDS_CSUM) != 0;
	if (out->partial_csum &&
	    vnet_get16(bytes, VNET_CSUM_START) + vnet_get16(bytes, VNET_CSUM_OFFSET) + 2u > avail)
		return -EINVAL;
	if (!packet_ip_read(at, avail, &ip)) {
		bool truncated = at[0] >> 4 == 4 || at[0] >> 4 == 6;

		return truncated || bytes[VNET_GSO_TYPE] != VNET_GSO_NONE ? -EINVAL : 0;
	}
	if (ip.total_bytes > avail)
		return -EINVAL;
	out->v6 = ip.v6;
	out->ect = ip.v6 ? (at[1] >> 4 & 3) != 0 : (at[1] & 3) != 0;
	out->fragment = ip.fragment;
	out->ip_bytes = out->header_bytes = ip.header_bytes;
	out->flow.proto = ip.flow_proto;
	packet_flow_addresses(at, ip.v6, &out->flow);
	/* Only what the IP header vouches for: there may be padding behind it. */
	if (!ip.headless && ip.total_bytes > ip.header_bytes)
		read_transport(at + ip.header_bytes, ip.proto, ip.total_bytes - ip.header_bytes,
			       out);
	out->payload_bytes = out->segment_bytes = avail - out->header_bytes;
	if ((bytes[VNET_GSO_TYPE] & ~VNET_GSO_ECN) != VNET_GSO_NONE)
		return read_segments(bytes, &ip, avail, out);
	return 0;
}

uint32_t wan_packet_segment_bytes(const struct wan_packet *p, uint32_t segment)
{
	uint32_t at = segment * p->segment_bytes;

	return p->header_bytes +
	       (uint32_t)u64_min(p->segment_bytes, u64_sub_floor(p->payload_bytes, at));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of packet*.c share: the vnet header's and IP's offsets, the walk over IP
 * headers, and the Internet checksum (RFC 1071, 1624). Nobody else includes this.
 */
#ifndef SDR_TOOL_WAN_PACKET_INT_H
#define SDR_TOOL_WAN_PACKET_INT_H

#include "tool/wan/packet.h"

#include "base/bits.h"

#include <string.h>

/*
 * struct virtio_net_hdr, all in host order:
 *   0 flags  1 gso_type  2 hdr_len (2)  4 gso_size (2)  6 csum_start (2)  8 csum_offset (2)
 */
enum {
	VNET_FLAGS,
	VNET_GSO_TYPE,
	VNET_HDR_LEN,
	VNET_GSO_SIZE = 4,
	VNET_CSUM_START = 6,
	VNET_CSUM_OFFSET = 8
};

#define VNET_NEEDS_CSUM 1u
#define VNET_GSO_NONE 0u
#define VNET_GSO_TCPV4 1u
#define VNET_GSO_TCPV6 4u
#define VNET_GSO_UDP_L4 5u
#define VNET_GSO_ECN 0x80u

enum {
	PROTO_HOP_BY_HOP = 0,
	PROTO_ICMP = 1,
	PROTO_TCP = 6,
	PROTO_UDP = 17,
	PROTO_ROUTING = 43,
	PROTO_FRAGMENT = 44,
	PROTO_AH = 51,
	PROTO_ICMPV6 = 58,
	PROTO_NONE = 59,
	PROTO_DEST_OPTIONS = 60,
	PROTO_MOBILITY = 135,
};

/* Checksum fields in the transport header. */
#define TCP_CSUM 16u
#define UDP_CSUM 6u
#define ICMP_CSUM 2u

#define IPV4_BYTES 20u
#define IPV6_BYTES 40u
#define TCP_BYTES 20u
#define UDP_BYTES 8u
#define ICMP_BYTES 8u

#define TCP_FLAGS 13u
#define TCP_FIN 0x01u
#define TCP_PSH 0x08u
#define TCP_CWR 0x80u

static inline uint16_t vnet_get16(const uint8_t *frame, unsigned int at)
{
	uint16_t v;

	memcpy(&v, frame + at, sizeof(v));
	return v;
}

static inline void vnet_put16(uint8_t *frame, unsigned int at, uint32_t v)
{
	uint16_t half = (uint16_t)v;

	memcpy(frame + at, &half, sizeof(half));
}

/* One IP header with its extensions. */
struct packet_ip {
	bool v6;
	bool fragment;	    /* some fragment ... */
	bool headless;	    /* ... but not the first: no transport header follows */
	uint8_t proto;	    /* of what follows */
	uint8_t flow_proto; /* the same in all fragments of a packet; proto where it is whole */
	uint32_t header_bytes;
	uint32_t total_bytes; /* as the header says; may be more or less than there are */
};

/* False: not IP, or the header does not fit into `avail` bytes. */
bool packet_ip_read(const uint8_t *ip, size_t avail, struct packet_ip *out);
void packet_flow_addresses(const uint8_t *ip, bool v6, struct link_flow *flow);

/* One's complement sum of big-endian words, not folded; an odd byte counts as a high one. */
uint64_t sum_bytes(uint64_t sum, const uint8_t *bytes, size_t len);
uint16_t sum_fold(uint64_t sum);
/* The pseudo-header's sum of addresses, protocol and length. */
uint64_t sum_pseudo(const uint8_t *ip, bool v6, uint8_t proto, uint32_t len);
/* A checksum (complemented) after a word under it has changed. */
uint16_t csum_replace(uint16_t csum, uint16_t old, uint16_t new);
/* IPv4 header checksum, anew. */
void ipv4_csum_fill(uint8_t *ip, uint32_t header_bytes);

static inline uint32_t packet_bytes(const struct wan_packet *p)
{
	return p->header_bytes + p->payload_bytes;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of segments of a super-packet as a frame of its own: what a router would have seen
 * of it, had the sender's kernel cut it. Relies on what wan_packet_parse() checked.
 */
#include "tool/wan/packet_int.h"

#include "base/check.h"

/* A super-packet whose checksum was not left to the device: now it is. */
static void make_partial(uint8_t *out, const struct wan_packet *p, uint32_t csum_offset,
			 uint32_t l4_bytes)
{
	uint8_t *ip = out + WAN_VNET_BYTES;

	out[VNET_FLAGS] = VNET_NEEDS_CSUM;
	vnet_put16(out, VNET_CSUM_START, p->ip_bytes);
	vnet_put16(out, VNET_CSUM_OFFSET, csum_offset);
	put_be16(ip + p->ip_bytes + csum_offset,
		 sum_fold(sum_pseudo(ip, p->v6, p->flow.proto, l4_bytes)));
}

static void cut_vnet(uint8_t *out, const struct wan_packet *p, uint32_t first, uint32_t n)
{
	if (n == 1) {
		out[VNET_GSO_TYPE] = VNET_GSO_NONE;
		vnet_put16(out, VNET_GSO_SIZE, 0);
		vnet_put16(out, VNET_HDR_LEN, 0);
		return;
	}
	/* It says that CWR is set, which only the first segment keeps. */
	if (first > 0)
		out[VNET_GSO_TYPE] &= (uint8_t)~VNET_GSO_ECN;
	vnet_put16(out, VNET_HDR_LEN, p->header_bytes);
}

static void cut_ip(uint8_t *ip, const struct wan_packet *p, uint32_t first, uint32_t bytes)
{
	if (p->v6) {
		put_be16(ip + 4, (uint16_t)(bytes - IPV6_BYTES));
		return;
	}
	put_be16(ip + 2, (uint16_t)bytes);
	put_be16(ip + 4, (uint16_t)(get_be16(ip + 4) + first));
	ipv4_csum_fill(ip, p->ip_bytes);
}

static void cut_tcp(uint8_t *tcp, const struct wan_packet *p, uint32_t first, bool last)
{
	put_be32(tcp + 4, get_be32(tcp + 4) + first * p->segment_bytes);
	if (first > 0)
		tcp[TCP_FLAGS] &= (uint8_t)~TCP_CWR;
	if (!last)
		tcp[TCP_FLAGS] &= (uint8_t) ~(TCP_FIN | TCP_PSH);
}

size_t wan_packet_cut(const void *frame, const struct wan_packet *p, uint32_t first, uint32_t n,
		      void *out)
{
	const uint8_t *from = frame;
	uint32_t head = WAN_VNET_BYTES + p->header_bytes, skip = first * p->segment_bytes;
	uint32_t payload = (uint32_t)u64_min((uint64_t)n * p->segment_bytes,
					     u64_sub_floor(p->payload_bytes, skip));
	uint32_t csum_offset = p->l4 == WAN_L4_TCP ? TCP_CSUM : UDP_CSUM;
	uint32_t old_bytes = packet_bytes(p) - p->ip_bytes;
	uint32_t bytes = p->header_bytes + payload, l4_bytes = bytes - p->ip_bytes;
	uint8_t *to = out, *l4 = to + WAN_VNET_BYTES + p->ip_bytes;

	SDR_ASSERT(n > 0 && first + n <= p->n_segments);
	memcpy(to, from, head);
	if (payload)
		memcpy(to + head, from + head + skip, payload);
	if (p->n_segments == 1)
		return head + payload;
	cut_vnet(to, p, first, n);
	cut_ip(to + WAN_VNET_BYTES, p, first, bytes);
	if (p->l4 == WAN_L4_TCP)
		cut_tcp(l4, p, first, first + n == p->n_segments);
	else
		put_be16(l4 + 4, (uint16_t)l4_bytes);
	if (p->partial_csum) /* holds the pseudo-header's sum: the length in it changes */
		put_be16(l4 + csum_offset, sum_fold((uint64_t)get_be16(l4 + csum_offset) +
						    l4_bytes + (uint16_t)~old_bytes));
	else
		make_partial(to, p, csum_offset, l4_bytes);
	return head + payload;
}

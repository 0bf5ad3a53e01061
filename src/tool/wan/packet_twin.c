/* SPDX-License-Identifier: Apache-2.0 */
/* Test frames and their plain segments; see packet_twin.h. Byte by byte on purpose. */
#include "tool/wan/packet_twin.h"

#include <linux/virtio_net.h>
#include <stdlib.h>
#include <string.h>

#define VNET sizeof(struct virtio_net_hdr)

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v / 256);
	p[1] = (uint8_t)(v % 256);
}

static uint32_t get16(const uint8_t *p)
{
	return p[0] * 256u + p[1];
}

/* The Internet checksum as RFC 1071 tells it. */
static uint32_t ones_sum(uint32_t sum, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		sum += i % 2 ? p[i] : p[i] * 256u;
		if (sum > 0xffff)
			sum -= 0xffff;
	}
	return sum;
}

struct layout {
	bool v6;
	uint8_t proto;
	size_t l4; /* offset of the transport header in the IP packet */
	size_t headers;
};

/* Only of packets that twin_build() made. */
static struct layout layout_of(const uint8_t *ip)
{
	struct layout l = {.v6 = ip[0] / 16 == 6};

	if (l.v6) {
		l.proto = ip[6];
		l.l4 = 40;
		if (l.proto == 60) {
			l.proto = ip[40];
			l.l4 += (ip[41] + 1u) * 8u;
		}
	} else {
		l.proto = ip[9];
		l.l4 = ip[0] % 16 * 4u;
	}
	l.headers = l.l4 + (l.proto == 6 ? ip[l.l4 + 12] / 16 * 4u : 8u);
	return l;
}

static uint32_t pseudo_sum(const uint8_t *ip, const struct layout *l, size_t l4_len)
{
	uint8_t tail[4] = {0, l->proto, (uint8_t)(l4_len / 256), (uint8_t)(l4_len % 256)};
	uint32_t sum = l->v6 ? ones_sum(0, ip + 8, 32) : ones_sum(0, ip + 12, 8);

	return ones_sum(sum, tail, 4);
}

static void fill_checksums(uint8_t *ip, size_t len)
{
	struct layout l = layout_of(ip);
	uint8_t *at = ip + l.l4 + (l.proto == 6 ? 16 : 6);
	uint32_t sum;

	if (!l.v6) {
		put16(ip + 10, 0);
		put16(ip + 10, 0xffff - ones_sum(0, ip, l.l4));
	}
	put16(at, 0);
	sum = 0xffff - ones_sum(pseudo_sum(ip, &l, len - l.l4), ip + l.l4, len - l.l4);
	put16(at, sum ? sum : 0xffff);
}

static size_t build_ip(const struct twin_spec *s, struct rng *rng, uint8_t *ip, size_t l4_len)
{
	size_t head = (s->v6 ? 40 : 20) + s->options_bytes;
	uint8_t proto = s->udp ? 17 : 6;

	if (s->v6) {
		ip[0] = (uint8_t)(0x60 | s->tos >> 4);
		ip[1] = (uint8_t)((s->tos & 15) << 4 | (ip[1] & 15));
		put16(ip + 4, (uint32_t)(head - 40 + l4_len));
		ip[6] = s->options_bytes ? 60 : proto;
		ip[7] = 64;
		ip[8] = ip[24] = 0xfd;
		if (s->options_bytes) {
			ip[40] = proto;
			ip[41] = (uint8_t)(s->options_bytes / 8 - 1);
		}
		return head;
	}
	ip[0] = (uint8_t)(0x40 | head / 4);
	ip[1] = s->tos;
	put16(ip + 2, (uint32_t)(head + l4_len));
	put16(ip + 6, 0x4000);
	ip[8] = 64;
	ip[9] = proto;
	ip[12] = ip[16] = 10;
	(void)rng;
	return head;
}

size_t twin_build(const struct twin_spec *s, uint8_t *frame)
{
	size_t l4_head = s->udp ? 8 : 20 + s->tcp_options, l4_len = l4_head + s->payload_bytes;
	size_t ip_head = (s->v6 ? 40 : 20) + s->options_bytes, len = ip_head + l4_len;
	struct virtio_net_hdr vnet = {0};
	uint8_t *ip = frame + VNET, *l4 = ip + ip_head;
	struct layout l;
	struct rng rng;

	rng_init(&rng, s->fill);
	for (size_t i = 0; i < len; i++)
		ip[i] = (uint8_t)rng_next(&rng);
	build_ip(s, &rng, ip, l4_len);
	put16(l4, s->sport);
	put16(l4 + 2, s->dport);
	if (s->udp) {
		put16(l4 + 4, (uint32_t)l4_len);
	} else {
		l4[12] = (uint8_t)(l4_head / 4 << 4);
		l4[13] = s->tcp_flags;
	}
	fill_checksums(ip, len);
	if (s->csum == TWIN_PARTIAL) {
		vnet.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
		vnet.csum_start = (uint16_t)ip_head;
		vnet.csum_offset = s->udp ? 6 : 16;
		l = layout_of(ip);
		put16(l4 + vnet.csum_offset, pseudo_sum(ip, &l, l4_len));
	}
	if (s->segment_bytes) {
		vnet.gso_size = (uint16_t)s->segment_bytes;
		vnet.hdr_len = (uint16_t)(ip_head + l4_head);
		vnet.gso_type = s->udp	? 5
				: s->v6 ? VIRTIO_NET_HDR_GSO_TCPV6
					: VIRTIO_NET_HDR_GSO_TCPV4;
		if (!s->udp && s->tcp_flags & TWIN_CWR)
			vnet.gso_type |= VIRTIO_NET_HDR_GSO_ECN;
	}
	memcpy(frame, &vnet, VNET);
	return VNET + len;
}

static uint8_t *list_add(struct twin_list *list, size_t len)
{
	if (list->len + len > list->cap) {
		list->cap = 2 * (list->len + len);
		list->bytes = realloc(list->bytes, list->cap);
	}
	if (list->n + 2 > list->n_cap) {
		list->n_cap = 2 * list->n + 16;
		list->at = realloc(list->at, list->n_cap * sizeof(*list->at));
	}
	if (!list->bytes || !list->at)
		abort();
	list->at[list->n++] = (uint32_t)list->len;
	list->len += len;
	list->at[list->n] = (uint32_t)list->len;
	return list->bytes + list->len - len;
}

void twin_list_fini(struct twin_list *list)
{
	free(list->bytes);
	free(list->at);
	*list = (struct twin_list){0};
}

static void one_segment(const uint8_t *ip, const struct layout *l, uint32_t i, uint32_t size,
			size_t payload, bool last, uint8_t *out)
{
	uint8_t *l4 = out + l->l4;
	uint32_t seq;

	memcpy(out, ip, l->headers);
	memcpy(out + l->headers, ip + l->headers + (size_t)i * size, payload);
	if (l->v6) {
		put16(out + 4, (uint32_t)(l->headers + payload - 40));
	} else {
		put16(out + 2, (uint32_t)(l->headers + payload));
		put16(out + 4, (get16(ip + 4) + i) % 65536);
	}
	if (l->proto == 17) {
		put16(l4 + 4, (uint32_t)(8 + payload));
	} else {
		seq = get16(l4 + 4) << 16 | get16(l4 + 6);
		seq += i * size;
		put16(l4 + 4, seq >> 16);
		put16(l4 + 6, seq & 0xffff);
		if (i > 0)
			l4[13] &= (uint8_t)~TWIN_CWR;
		if (!last)
			l4[13] &= (uint8_t) ~(TWIN_FIN | TWIN_PSH);
	}
	fill_checksums(out, l->headers + payload);
}

void twin_segments(const uint8_t *frame, size_t len, struct twin_list *list)
{
	const uint8_t *ip = frame + VNET;
	struct virtio_net_hdr vnet;
	struct layout l;
	size_t payload;
	uint8_t *out;

	memcpy(&vnet, frame, VNET);
	if (!vnet.gso_type) {
		out = list_add(list, len - VNET);
		memcpy(out, ip, len - VNET);
		if (vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
			fill_checksums(out, len - VNET);
		return;
	}
	l = layout_of(ip);
	payload = len - VNET - l.headers;
	for (uint32_t i = 0; i == 0 || payload; i++) {
		size_t part = payload < vnet.gso_size ? payload : vnet.gso_size;

		out = list_add(list, l.headers + part);
		one_segment(ip, &l, i, vnet.gso_size, part, payload == part, out);
		payload -= part;
	}
}

static bool icmp_ok(const uint8_t *ip, size_t len, const struct layout *l)
{
	uint32_t sum = l->v6 ? pseudo_sum(ip, l, len - l->l4) : 0;

	return ones_sum(sum, ip + l->l4, len - l->l4) == 0xffff;
}

bool twin_checksums_ok(const uint8_t *ip, size_t len)
{
	struct layout l = layout_of(ip);

	if (!l.v6 && ones_sum(0, ip, l.l4) != 0xffff)
		return false;
	if (l.proto == 1 || l.proto == 58)
		return icmp_ok(ip, len, &l);
	if (l.proto == 17 && !l.v6 && get16(ip + l.l4 + 6) == 0)
		return true;
	return ones_sum(pseudo_sum(ip, &l, len - l.l4), ip + l.l4, len - l.l4) == 0xffff;
}

bool twin_frame_ok(const uint8_t *frame, size_t len)
{
	const uint8_t *ip = frame + VNET;
	struct virtio_net_hdr vnet;
	struct layout l = layout_of(ip);
	size_t bytes = len - VNET;

	memcpy(&vnet, frame, VNET);
	if (l.v6 ? get16(ip + 4) + 40 != bytes : get16(ip + 2) != bytes)
		return false;
	if (!l.v6 && ones_sum(0, ip, l.l4) != 0xffff)
		return false;
	if (l.proto == 17 && get16(ip + l.l4 + 4) != bytes - l.l4)
		return false;
	if (!(vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
		return vnet.gso_type == 0 && twin_checksums_ok(ip, bytes);
	if (vnet.csum_start != l.l4 || vnet.csum_offset != (l.proto == 6 ? 16 : 6))
		return false;
	/* 0 and 0xffff are one number in this arithmetic. */
	return get16(ip + l.l4 + vnet.csum_offset) % 0xffff ==
	       pseudo_sum(ip, &l, bytes - l.l4) % 0xffff;
}

struct twin_spec twin_random(struct rng *rng, uint32_t max_payload)
{
	struct twin_spec s = {.v6 = rng_below(rng, 2), .udp = rng_below(rng, 2)};

	s.options_bytes = (uint32_t)rng_below(rng, 3) * 8;
	s.tcp_options = (uint32_t)rng_below(rng, 11) * 4;
	s.payload_bytes = (uint32_t)rng_below(rng, max_payload + 1);
	if (rng_below(rng, 4) && s.payload_bytes) {
		uint64_t most = s.payload_bytes < 9000 ? s.payload_bytes : 9000;

		s.segment_bytes = 1 + (uint32_t)rng_below(rng, most);
	}
	s.csum = (enum twin_csum)rng_below(rng, 2);
	if (s.segment_bytes && s.csum == TWIN_FULL)
		s.csum = TWIN_NONE;
	s.tcp_flags = (uint8_t)rng_next(rng);
	s.tos = (uint8_t)rng_next(rng);
	s.sport = (uint16_t)rng_next(rng);
	s.dport = (uint16_t)rng_next(rng);
	s.fill = rng_next(rng);
	return s;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames for tests: builds super-packets, and cuts them up the slow and obvious way into
 * plain packets with complete checksums. Shares no code with packet*.c, so that they judge
 * each other.
 */
#ifndef SDR_TOOL_WAN_PACKET_TWIN_H
#define SDR_TOOL_WAN_PACKET_TWIN_H

#include "tool/wan/packet.h"

#include "base/rng.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum twin_csum {
	TWIN_PARTIAL, /* left to the device, as a kernel does with super-packets */
	TWIN_FULL,    /* complete: only of one segment */
	TWIN_NONE,    /* a super-packet without VIRTIO_NET_HDR_F_NEEDS_CSUM */
};

struct twin_spec {
	bool v6, udp;
	enum twin_csum csum;
	uint32_t options_bytes; /* of IPv4 (multiple of 4, up to 40) or IPv6 (of 8) */
	uint32_t tcp_options;	/* multiple of 4, up to 40 */
	uint32_t segment_bytes; /* of payload; 0: not a super-packet */
	uint32_t payload_bytes;
	uint8_t tcp_flags;
	uint8_t tos;
	uint16_t sport, dport;
	uint64_t fill; /* seed of everything that is not said here */
};

#define TWIN_FIN 1u
#define TWIN_PSH 8u
#define TWIN_ACK 16u
#define TWIN_CWR 128u

/* Writes the frame (room for WAN_FRAME_MAX), returns its length. */
size_t twin_build(const struct twin_spec *spec, uint8_t *frame);

/* A list of plain IP packets. */
struct twin_list {
	uint8_t *bytes; /* one after the other */
	size_t len, cap;
	uint32_t *at; /* where each begins; n + 1 entries */
	size_t n, n_cap;
};

void twin_list_fini(struct twin_list *list);
/* Adds the packets of a frame, each with complete checksums. */
void twin_segments(const uint8_t *frame, size_t len, struct twin_list *list);
/* A packet's checksums add up: IPv4 header, TCP, UDP (0 allowed in IPv4), ICMP. */
bool twin_checksums_ok(const uint8_t *ip, size_t len);
/* What the frame says of itself is so: lengths, IPv4 checksum, the pseudo-header's sum where the
 * rest is left to the device, a plain packet's checksum where not. */
bool twin_frame_ok(const uint8_t *frame, size_t len);
/* Draws a specification; super-packets of up to max_payload. */
struct twin_spec twin_random(struct rng *rng, uint32_t max_payload);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of a TUN device with IFF_VNET_HDR (and IFF_NO_PI): a struct virtio_net_hdr (10
 * bytes, host order as TUN has it), then an IPv4 or IPv6 packet. With TSO or USO the packet is a
 * super-packet: n segments behind one header. Parsing, cutting, marking, rewriting,
 * checksums; nothing else.
 *
 * Pure; frames are untrusted bytes (a program in the namespace can send anything). A frame that is
 * not understood is one segment without ports: it still crosses the link.
 */
#ifndef SDR_TOOL_WAN_PACKET_H
#define SDR_TOOL_WAN_PACKET_H

#include "link/paths.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WAN_VNET_BYTES 10u
#define WAN_FRAME_MAX (WAN_VNET_BYTES + 65575u) /* IPv6 header and 64 KiB of payload */
#define WAN_TOO_BIG_MAX 1300u

enum wan_l4 { WAN_L4_OTHER, WAN_L4_TCP, WAN_L4_UDP };

/* What a frame is. The frame itself stays with the caller. */
struct wan_packet {
	struct link_flow flow;
	enum wan_l4 l4;
	bool v6;
	bool ect;		/* ECN-capable or marked: may be marked CE */
	bool partial_csum;	/* VIRTIO_NET_HDR_F_NEEDS_CSUM */
	bool fragment;		/* of a larger packet: flow has no ports */
	uint32_t ip_bytes;	/* headers: IP with extensions; 0: not IP */
	uint32_t header_bytes;	/* IP and transport: what each segment repeats */
	uint32_t segment_bytes; /* of payload, in all segments but the last */
	uint32_t payload_bytes; /* of all segments; with the headers: all behind the vnet header */
	uint32_t n_segments;	/* 1 and up */
};

/* 0, or -EINVAL: shorter than its own headers say, or a GSO type that is not TCPv4, TCPv6 or
 * UDP_L4 (the devices are not asked for others): not to be carried. */
int wan_packet_parse(const void *frame, size_t len, struct wan_packet *out);
/* Bytes of one segment as an IP packet, headers included. */
uint32_t wan_packet_segment_bytes(const struct wan_packet *p, uint32_t segment);
/*
 * Writes segments [first, first + n) as a frame of its own into out (room for the same
 * length as the original): lengths, IPv4 identification and checksum, TCP sequence number and flags
 * (CWR on the first only; FIN, PSH on the last only), UDP length, checksum or its partial form,
 * vnet header. Returns its length.
 */
size_t wan_packet_cut(const void *frame, const struct wan_packet *p, uint32_t first, uint32_t n,
		      void *out);
/* On a frame in place: sets CE where the packet is ECT. */
void wan_packet_mark_ce(void *frame, const struct wan_packet *p);

/* Where a NAT finds the port of the host behind it. */
struct wan_port {
	uint8_t proto;	   /* of the mapping: TCP, UDP, ICMP, ICMPv6 (an echo's id is its port) */
	bool quoted;	   /* in the packet that an ICMP error quotes */
	uint16_t value;	   /* host order */
	uint32_t at;	   /* offset in the frame */
	uint32_t csum_at;  /* of the checksum that covers it; 0: none does */
	bool zero_is_none; /* that checksum may be absent (UDP) */
};
/*
 * The source port of a packet from inside, the destination port of one from outside: of TCP
 * and UDP, the id of an echo request from inside and of its reply from outside, and
 * the same in what ICMP errors quote (the quoted transport checksum is left alone: nobody can
 * verify it). False: nothing to translate; later fragments have no ports, and pass.
 */
bool wan_packet_port(const void *frame, size_t len, const struct wan_packet *p, bool from_inside,
		     struct wan_port *out);
/* Writes another port there, on a frame in place, with its checksum; *p is updated. */
void wan_packet_set_port(void *frame, struct wan_packet *p, const struct wan_port *port,
			 uint16_t value);
/* Of a frame with one segment, parsed or cut: fills in the checksum that was left to the device,
 * then flips the bit (of the IP packet; modulo its length). One of the IP version's bits stands for
 * one of the source address: a device refuses frames without a version, which would look like a
 * fault of this host, and whoever gets either throws it away. */
void wan_packet_corrupt(void *frame, size_t len, uint64_t bit);
/*
 * Writes the ICMP "fragmentation needed" (RFC 792, 1191) or ICMPv6 "packet too big" (RFC 4443) that
 * a router would send for this frame. Returns its length in out (WAN_TOO_BIG_MAX bytes), or 0 where
 * none may be sent (ICMP errors, fragments but the first, IPv4 without DF: that one is lost).
 */
size_t wan_packet_too_big(const void *frame, size_t len, const struct wan_packet *p,
			  uint32_t mtu_bytes, void *out);

#endif

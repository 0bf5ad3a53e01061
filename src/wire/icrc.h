/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ICRC, the trailer of rocev2 mode (InfiniBand Architecture 1.3, annex A17).
 *
 * CRC-32 (Ethernet's), sent least significant byte first, over
 *
 *	+-----------+------------------+-------------+-------------------------------+
 *	| 8 x 0xff  | IP header        | UDP header  | BTH .. payload, pad           |
 *	+-----------+------------------+-------------+-------------------------------+
 *	  (no LRH)    masked with ones:  checksum      byte 4 (FECN, BECN, reserved)
 *	              v4 TOS, TTL, header checksum
 *	              v6 traffic class, flow label, hop limit
 *
 * Not masked: IPv4 identification and DF. A UDP socket never learns a received
 * packet's identification; wire_icrc_solve finds the one that the ICRC implies (the
 * CRC is linear in it). What is plausible is the caller's judgement.
 *
 * Knows nothing of sockets; addresses are bytes in network order.
 */
#ifndef SDR_WIRE_ICRC_H
#define SDR_WIRE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_ICRC_PSEUDO_MAX_BYTES 56

/* The masked headers below BTH, lengths and identification still zero. */
struct wire_icrc_flow {
	uint8_t pseudo[WIRE_ICRC_PSEUDO_MAX_BYTES];
	uint8_t pseudo_bytes;
	bool v6;
};

/* df: whether the sender sets Don't Fragment (ours and rxe do). Ports in host order. */
void wire_icrc_flow_v4(struct wire_icrc_flow *flow, const uint8_t src[4], const uint8_t dst[4],
		       uint16_t sport, uint16_t dport, bool df);
void wire_icrc_flow_v6(struct wire_icrc_flow *flow, const uint8_t src[16], const uint8_t dst[16],
		       uint16_t sport, uint16_t dport);

/* A packet in two pieces, so that a payload need not be copied behind its header. */
struct wire_icrc_packet {
	const uint8_t *hdr; /* BTH and what follows up to the payload */
	size_t hdr_len;	    /* 12 .. 32 */
	const uint8_t *payload;
	size_t payload_len;
	unsigned int pad_len; /* zero bytes, 0 .. 3 */
};

/* The CRC's value. ip_id is ignored for IPv6. */
uint32_t wire_icrc(const struct wire_icrc_flow *flow, uint16_t ip_id,
		   const struct wire_icrc_packet *packet);

/* The same, written as the wire wants it. */
void wire_icrc_seal(const struct wire_icrc_flow *flow, uint16_t ip_id,
		    const struct wire_icrc_packet *packet, uint8_t trailer[4]);

/* A received UDP payload, trailer included. 0; -EMSGSIZE below BTH + ICRC; -EBADMSG. */
int wire_icrc_check(const struct wire_icrc_flow *flow, uint16_t ip_id, const uint8_t *pkt,
		    size_t len);

/*
 * The only identification with which the ICRC is right: 0 and *ip_id; -EBADMSG where
 * none is (65535 of 65536 damaged packets); for IPv6 the plain check with *ip_id = 0.
 */
int wire_icrc_solve(const struct wire_icrc_flow *flow, const uint8_t *pkt, size_t len,
		    uint16_t *ip_id);

/*
 * The same for a receiver: *ip_id goes in as a guess, which costs no search where it is
 * right, and the flow's DF is a guess too.
 */
int wire_icrc_solve_near(const struct wire_icrc_flow *flow, const uint8_t *pkt, size_t len,
			 uint16_t *ip_id);

#endif

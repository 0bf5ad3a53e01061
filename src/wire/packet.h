/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data packets: "UC RDMA WRITE Only with Immediate", one UDP payload each.
 *
 *	 0               1               2               3
 *	+---------------+-+-+---+-------+-------------------------------+
 *	| opcode 0x2B   |S|M|Pad| TVer 0|          P_Key 0xffff         |  0  BTH
 *	+-+-+-----------+-----------------------------------------------+
 *	|F|B|  resv 6   |            destination QP (24)                |  4
 *	+-+-------------+-----------------------------------------------+
 *	|A|   resv 7    |                  PSN (24)                     |  8
 *	+---------------+-----------------------------------------------+
 *	|                     virtual address (64)                      | 12  RETH
 *	|                                                               | 16
 *	+---------------------------------------------------------------+
 *	|                        R_Key (32)                             | 20
 *	+---------------------------------------------------------------+
 *	|                     DMA length (32)                           | 24
 *	+---------------------------------------------------------------+
 *	|                        ImmDt (32)                             | 28
 *	+---------------------------------------------------------------+
 *	|        payload (DMA length bytes), pad (-length mod 4)        | 32
 *	+---------------------------------------------------------------+
 *	|                        trailer (32)                           |
 *	+---------------------------------------------------------------+
 *
 *	field      sdr mode                    rocev2 mode
 *	R_Key      message number              key of the receiver's root region
 *	VA         byte offset in the message  slot * slot_bytes + offset (zero based)
 *	ImmDt      the user's, or 0            imm.h
 *	trailer    protect/                    ICRC, icrc.h
 *
 * Both are RoCEv2 in form, so every RoCE tool reads them. The pad's bytes are sent
 * as zeros and not looked at. P_Key must be the default partition's. SE, M, A, ECN
 * bits and reserved bits are sent as 0 and ignored.
 *
 * Knows nothing of trailers' contents, of UDP and below, or of what messages exist.
 */
#ifndef SDR_WIRE_PACKET_H
#define SDR_WIRE_PACKET_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"
#include "wire/imm.h"

enum wire_mode { WIRE_SDR = 0, WIRE_ROCEV2 = 1 };

enum wire_opcode {
	WIRE_OP_DATA = 0x2b, /* UC RDMA WRITE Only with Immediate */
	WIRE_OP_CTRL = 0x64, /* UD SEND Only */
};

#define WIRE_BTH_BYTES 12
#define WIRE_DATA_HDR_BYTES 32
#define WIRE_CTRL_HDR_BYTES 20
#define WIRE_TRAILER_BYTES 4
#define WIRE_QPN_MASK 0xffffffu
#define WIRE_PSN_MASK 0xffffffu
#define WIRE_PKEY_DEFAULT 0xffffu

/* Pad bytes that follow a payload, and where its packet then ends. */
static inline unsigned int wire_pad_bytes(size_t length)
{
	return (unsigned int)(-length & 3);
}

static inline size_t wire_data_packet_bytes(size_t length)
{
	return WIRE_DATA_HDR_BYTES + length + wire_pad_bytes(length) + WIRE_TRAILER_BYTES;
}

/*
 * What is the same in all packets of a message. Made by one of the two functions
 * below, then read only; any number of threads may put packets from it.
 */
struct wire_data_template {
	uint8_t hdr[WIRE_DATA_HDR_BYTES];
	uint64_t va_base;
	enum wire_mode mode;
	struct wire_imm_split split; /* rocev2 */
	uint32_t slot;
	uint32_t user_imm;
	uint8_t payload_shift;
};

/* imm is the user's immediate, 0 for a plain Write. dest_qpn has 24 bits. */
void wire_data_template_sdr(struct wire_data_template *tmpl, uint32_t dest_qpn, uint32_t message,
			    uint32_t imm);

/* What a rocev2 message adds. payload_bytes is a path MTU: a power of two, 256 .. 4096. */
struct wire_rocev2_message {
	const struct wire_imm_split *split;
	uint32_t slot;
	uint64_t slot_bytes;
	uint32_t rkey;
	uint32_t user_imm;
	uint32_t payload_bytes;
};

/* 0, or -EINVAL: slot out of the split's range, or payload_bytes no path MTU. */
int wire_data_template_rocev2(struct wire_data_template *tmpl, uint32_t dest_qpn,
			      const struct wire_rocev2_message *message);

/*
 * The hot one: writes the 32 bytes before the payload. offset is in the message; in
 * rocev2 mode a multiple of the payload size (the packet's index follows from it,
 * and stays below the split's maximum). psn is taken modulo 2^24.
 */
static inline void wire_data_put(uint8_t *hdr, const struct wire_data_template *tmpl, uint32_t psn,
				 uint64_t offset, uint32_t length)
{
	memcpy(hdr, tmpl->hdr, WIRE_DATA_HDR_BYTES);
	hdr[1] = (uint8_t)(wire_pad_bytes(length) << 4);
	put_be24(hdr + 9, psn);
	put_be64(hdr + 12, tmpl->va_base + offset);
	put_be32(hdr + 24, length);
	if (tmpl->mode == WIRE_ROCEV2)
		put_be32(hdr + 28,
			 wire_imm_pack(&tmpl->split, tmpl->slot,
				       (uint32_t)(offset >> tmpl->payload_shift), tmpl->user_imm));
}

/* One decoded data packet, the same struct in both modes. */
struct wire_data {
	uint32_t dest_qpn;
	uint32_t psn;
	uint32_t message; /* sdr: message number; rocev2: slot */
	uint32_t packet;  /* rocev2: packet index; sdr: 0, offset tells */
	uint64_t offset;  /* sdr: byte offset in the message; rocev2: 0, packet tells */
	uint32_t imm;	  /* sdr: the user's immediate; rocev2: its fragment of this packet */
	uint32_t length;  /* payload bytes, pad excluded */
	uint32_t rkey;	  /* as on the wire */
	uint64_t va;	  /* as on the wire */
};

/*
 * For the demultiplexer, before anything is known of the packet: opcode and
 * destination QP of a well-formed head. 0; -EMSGSIZE below BTH and trailer;
 * -EBADMSG for another transport version, partition or opcode.
 */
int wire_peek(const uint8_t *pkt, size_t len, uint8_t *opcode, uint32_t *dest_qpn);

/*
 * Decodes a data packet. len includes the trailer, which is not looked at: verify it
 * first (protect/ or wire_icrc_check). split is used in rocev2 mode only (may be NULL
 * in sdr). *payload points into pkt. 0, -EMSGSIZE or -EBADMSG (head as wire_peek;
 * not a data packet; PadCnt or DMA length does not fit len; in sdr mode also an
 * offset + length beyond 2^64).
 */
int wire_data_get(const uint8_t *pkt, size_t len, enum wire_mode mode,
		  const struct wire_imm_split *split, struct wire_data *out,
		  const uint8_t **payload);

#endif

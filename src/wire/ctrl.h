/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control datagrams: "UD SEND Only", several messages in each.
 *
 *	+---------------------------------------------------------------+
 *	|        BTH, opcode 0x64, as in packet.h                       |  0
 *	+---------------------------------------------------------------+
 *	|                          Q_Key (32)                           | 12  DETH
 *	+---------------+-----------------------------------------------+
 *	|    resv 8     |               source QP (24)                  | 16
 *	+---------------+-----------------------------------------------+
 *	|                        token (64)                             | 20  body
 *	|                                                               |
 *	+---------------------------------------------------------------+
 *	|                        number (64)                            | 28
 *	|                                                               |
 *	+---------------+---------------+-------------------------------+
 *	|     type      |   flags 0     |        length of body         | 36  message,
 *	+---------------+---------------+-------------------------------+     repeated
 *	|                        body                                   |
 *	+---------------------------------------------------------------+
 *	|        pad (-body mod 4), trailer (32)                        |
 *	+---------------------------------------------------------------+
 *
 * token is the one that the datagram's receiver chose; number rises with each
 * datagram and only filters replays. Both are judged by the connection, not here.
 *
 * In sdr mode Q_Key is `SDR` and the channel. In rocev2 mode a NIC compares Q_Keys, so it
 * is WIRE_ROCEV2_QKEY, and a prefix goes before the token:
 *
 *	+---------------+-----------------------------------------------+
 *	|   channel     |                     0                         | 20
 *	+---------------+-----------------------------------------------+
 *
 * Knows nothing of what messages mean, nor of the trailer.
 */
#ifndef SDR_WIRE_CTRL_H
#define SDR_WIRE_CTRL_H

#include <stddef.h>
#include <stdint.h>

#include "wire/packet.h"

#define WIRE_ROCEV2_QKEY 0x53445200u
#define WIRE_ROCEV2_CTRL_PREFIX_BYTES 4
#define WIRE_CTRL_BODY_HDR_BYTES 16
#define WIRE_MSG_HDR_BYTES 4

enum wire_msg_type {
	WIRE_MSG_PING = 1,
	WIRE_MSG_PONG = 2,
	WIRE_MSG_PAYLOAD = 3,
	WIRE_MSG_PAYLOAD_ECHO = 4,
	WIRE_MSG_CTS = 5,
	WIRE_MSG_CTS_ECHO = 6,
	WIRE_MSG_WANT = 7,
	WIRE_MSG_ABORT = 8,
	WIRE_MSG_WRITE = 9,
	WIRE_MSG_ACK = 10,
	WIRE_MSG_UNUSED = 11, /* was to be a NACK; what it would say is in the ACK */
	WIRE_MSG_CLOSE = 12,
	WIRE_MSG_CLOSE_ECHO = 13,
	WIRE_MSG_RESET = 14,
	WIRE_MSG_TRAIN = 15, /* this and the next only to a peer with WIRE_FEATURE_TRAINS */
	WIRE_MSG_TRAIN_SEEN = 16,
	WIRE_MSG_LAST_KNOWN = WIRE_MSG_TRAIN_SEEN,
	WIRE_MSG_RESERVED = 64, /* .. 127: one-sided requests, tags */
	WIRE_MSG_USER = 128,	/* .. 255: the SDK's users, opaque to us */
};

enum wire_msg_class {
	WIRE_CLASS_KNOWN,    /* one of ours */
	WIRE_CLASS_UNKNOWN,  /* of a later version: count and skip */
	WIRE_CLASS_RESERVED, /* 64 .. 127: count and skip */
	WIRE_CLASS_USER,     /* 128 .. 255 */
};

enum wire_msg_class wire_msg_classify(uint8_t type);

/* UDP payload bytes of a control datagram whose body (from the token on) has body_len. */
static inline size_t wire_ctrl_packet_bytes(size_t body_len)
{
	return WIRE_CTRL_HDR_BYTES + body_len + wire_pad_bytes(body_len) + WIRE_TRAILER_BYTES;
}

/* The 20 bytes before the body. body_len gives PadCnt. QPNs and PSN have 24 bits. */
struct wire_ctrl_header {
	uint32_t dest_qpn;
	uint32_t src_qpn;
	uint32_t psn;
	uint32_t qkey;
};

void wire_ctrl_put_header(uint8_t hdr[WIRE_CTRL_HDR_BYTES], const struct wire_ctrl_header *header,
			  size_t body_len);

/*
 * Decodes a control datagram; len includes the trailer, which the caller has verified.
 * *body points into pkt, *body_len excludes pad and trailer. 0, -EMSGSIZE, -EBADMSG.
 */
int wire_ctrl_get(const uint8_t *pkt, size_t len, struct wire_ctrl_header *out,
		  const uint8_t **body, size_t *body_len);

/* token and number: 16, or -ENOSPC. */
int wire_ctrl_body_put(uint8_t *buf, size_t cap, uint64_t token, uint64_t number);

/* A whole message, header and body: 4 + len, or -ENOSPC (also for len above 65535). */
int wire_msg_put(uint8_t *buf, size_t cap, uint8_t type, const void *body, size_t len);

/* Only its header, for a body that was encoded in place 4 bytes further on. */
void wire_msg_put_header(uint8_t hdr[WIRE_MSG_HDR_BYTES], uint8_t type, uint16_t len);

/* One message of a datagram; body points into it. */
struct wire_msg {
	uint8_t type;
	uint8_t flags; /* none defined; ignored */
	enum wire_msg_class class;
	const uint8_t *body;
	size_t len;
};

/* Where an iteration stands. Opaque. */
struct wire_msgs {
	const uint8_t *at;
	size_t left;
};

/*
 * Begins: checks the framing of all messages first, so that a damaged tail never
 * leaves half of a datagram acted upon. 0, -EMSGSIZE, -EBADMSG.
 */
int wire_ctrl_begin(const uint8_t *body, size_t len, struct wire_msgs *it, uint64_t *token,
		    uint64_t *number);

/* 1 and *msg, or 0 at the end. Unknown types are returned too, by class. */
int wire_ctrl_next(struct wire_msgs *it, struct wire_msg *msg);

#endif

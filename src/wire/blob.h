/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handshake blob: what each end tells the other before the first packet, over
 * whatever carries it (TCP now).
 *
 *	+-------------------------------+-------+-------+---------------+
 *	|        "SDRB"                 |  min  |  max  | bytes in all  |
 *	+---------------+---------------+-------+-------+---------------+
 *	|     type      |    length     |  value ...                    |   repeated,
 *	+---------------+---------------+-------------------------------+   2 + 2 + length
 *
 *	type  value                        must be there
 *	  1   required 8, offered 8        yes      features; 48 .. 63 are the user's
 *	  2   mode 1                       yes      enum wire_mode it asks for
 *	  3   qpn 4                        yes
 *	  4   token 8                      yes      what packets to this end carry
 *	  5   incarnation 8                yes
 *	  6   max_payload 4                yes
 *	  7   chunk_log2 1                 yes      packets of a chunk
 *	  8   channels 1                   yes
 *	  9   messages_log2 1              yes      messages in flight
 *	 10   psn 4                        yes      first PSN of channel 0
 *	 11   { family 1, port 2, ip 4 | 16 } ...   UDP addresses; family is 4 or 6
 *	 12   listen 1                              1: this end waits on those addresses
 *	 13   generations 1, channels 1, qpn 3 ...   rocev2: transport QPs, channels within
 *	                                            generations; must be there in that mode
 *
 * A type with the critical bit (0x8000) that we do not know refuses the connection;
 * others that we do not know are skipped. A type comes at most once. The 8-byte head
 * never changes in any version.
 *
 * Knows nothing of what carries it, nor of sockaddr.
 */
#ifndef SDR_WIRE_BLOB_H
#define SDR_WIRE_BLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/packet.h"

#define WIRE_BLOB_MAX_BYTES 1024
#define WIRE_BLOB_HEAD_BYTES 8
#define WIRE_BLOB_MAX_ADDRS 8
#define WIRE_BLOB_CRITICAL 0x8000u

/* The wire versions that this build speaks. */
#define WIRE_VERSION_MIN 1
#define WIRE_VERSION_MAX 1

#define WIRE_FEATURE_SECURITY (UINT64_C(1) << 0)
#define WIRE_FEATURE_CODES (UINT64_C(1) << 1)
#define WIRE_FEATURE_ROCEV2_WIRE (UINT64_C(1) << 2)
#define WIRE_FEATURE_TRAINS (UINT64_C(1) << 3) /* measures TRAIN, answers TRAIN_SEEN */
/* What these 16 mean is for who uses the QP to know; negotiation leaves them alone. */
#define WIRE_FEATURE_USER_SHIFT 48
#define WIRE_FEATURE_USER (UINT64_C(0xffff) << WIRE_FEATURE_USER_SHIFT)

/* Bounds that the decoder checks. */
#define WIRE_BLOB_MAX_PAYLOAD 65535u
#define WIRE_BLOB_MAX_CHUNK_LOG2 6
#define WIRE_BLOB_MAX_CHANNELS 128
#define WIRE_BLOB_MAX_MESSAGES_LOG2 16
#define WIRE_BLOB_MAX_GENERATIONS 4
#define WIRE_BLOB_MAX_DATA_CHANNELS 16 /* of those that TLV 13 names */

struct wire_blob_addr {
	uint8_t family; /* 4 or 6 */
	uint16_t port;	/* host order, not 0 */
	uint8_t ip[16]; /* network order, the first 4 or all 16 */
};

struct wire_blob {
	uint8_t version_min;
	uint8_t version_max;
	uint64_t required;
	uint64_t offered; /* contains required */
	enum wire_mode mode;
	uint32_t qpn; /* 24 bits */
	uint64_t token;
	uint64_t incarnation;
	uint32_t max_payload;  /* 1 .. 65535 */
	uint8_t chunk_log2;    /* 0 .. 6 */
	uint8_t channels;      /* 1 .. 128 */
	uint8_t messages_log2; /* 0 .. 16 */
	uint32_t psn;	       /* 24 bits */
	bool listen;
	uint8_t generations; /* rocev2: 1, 2 or 4; 0: TLV 13 is not there */
	uint8_t data_channels;
	uint32_t data_qpn[WIRE_BLOB_MAX_GENERATIONS][WIRE_BLOB_MAX_DATA_CHANNELS];
	uint8_t naddrs;
	struct wire_blob_addr addrs[WIRE_BLOB_MAX_ADDRS];
};

/* Bytes written, -ENOSPC, or -EINVAL for a field out of its range. */
int wire_blob_put(uint8_t *buf, size_t cap, const struct wire_blob *blob);

/*
 * From the first 8 bytes of a stream: the length of the whole blob (8 .. 1024);
 * -EMSGSIZE where len < 8, -SDR_E_BLOB where it is none of ours.
 */
int wire_blob_length(const uint8_t *head, size_t len);

/*
 * 0; -SDR_E_BLOB: malformed or cut short; -SDR_E_VERSION: no version in common, then
 * version_min and version_max are filled in and nothing else is; -SDR_E_FEATURE: an
 * unknown critical type.
 */
int wire_blob_get(const uint8_t *buf, size_t len, struct wire_blob *out);

struct wire_agreed {
	uint8_t version;
	enum wire_mode mode;
	uint64_t features; /* none of the user's */
	uint32_t payload;
	uint8_t chunk_log2;
	uint8_t channels;
	uint8_t messages_log2;
	uint8_t generations; /* rocev2; else 1 */
};

/*
 * Both ends come to the same: highest common version; features offered by both; the
 * smaller payload, channels, messages and generations, the larger chunk; rocev2 mode if either end
 * asks for it (hardware can do nothing else) and both offer it. 0, -SDR_E_VERSION,
 * or -SDR_E_FEATURE (one end requires what the other does not offer).
 */
int wire_blob_negotiate(const struct wire_blob *local, const struct wire_blob *peer,
			struct wire_agreed *agreed);

#endif

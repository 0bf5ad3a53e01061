/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protect/: packet protection, one of the seams. A table of functions seals a packet
 * with a trailer and opens it again; what is below sees bytes only.
 *
 * First implementation: a checksum seeded with the 64-bit token that the packet's
 * receiver chose. It finds damage, packets of an earlier incarnation and strays. It
 * does *not* resist an attacker: AEAD is to come behind the same table.
 *
 * Deliberately knows nothing of packet formats (wire/), connections or sockets.
 */
#ifndef SDR_PROTECT_PROTECT_H
#define SDR_PROTECT_PROTECT_H

#include <stddef.h>
#include <stdint.h>

#define PROTECT_MATERIAL_BYTES 32
#define PROTECT_TRAILER_BYTES 4

struct protect_key;

/* A packet in two pieces, so that a payload need not be copied behind its header. */
struct protect_packet {
	const uint8_t *hdr;
	size_t hdr_len;
	const uint8_t *payload;
	size_t payload_len;
	unsigned int pad_len; /* zero bytes between payload and trailer, 0 .. 3 */
};

struct protect_ops {
	const char *name;
	unsigned int overhead_bytes; /* the trailer */
	/* Writes overhead_bytes of trailer. Cannot fail. */
	void (*seal)(const struct protect_key *key, const struct protect_packet *packet,
		     uint8_t *trailer);
	/* pkt in one piece, trailer included: 0 or -EBADMSG. */
	int (*open)(const struct protect_key *key, const uint8_t *pkt, size_t len);
};

/* Set up once, then read only: any number of threads may use it. */
struct protect_key {
	const struct protect_ops *ops;
	uint8_t material[PROTECT_MATERIAL_BYTES];
};

/*
 * CRC-32 (Ethernet's, as zlib's crc32) over the token's 8 bytes, big endian, and then
 * the packet: header, payload, pad. The trailer is big endian.
 */
extern const struct protect_ops protect_checksum;
void protect_checksum_key(struct protect_key *key, uint64_t token);

static inline void protect_seal(const struct protect_key *key, const struct protect_packet *packet,
				uint8_t *trailer)
{
	key->ops->seal(key, packet, trailer);
}

static inline int protect_open(const struct protect_key *key, const uint8_t *pkt, size_t len)
{
	return key->ops->open(key, pkt, len);
}

#endif

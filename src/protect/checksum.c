/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checksum behind the packet protection seam: CRC-32 by ISA-L, seeded with a
 * token. Knows nothing of packet formats. What it covers: protect.h.
 *
 * ISA-L's crc32_gzip_refl is zlib's crc32, so calls chain: the CRC of the token is the
 * state from which the packet's goes on, and costs nothing by packet.
 */
#include "protect/protect.h"

#include <errno.h>
#include <isa-l/crc.h>
#include <string.h>

#include "base/bits.h"

static void checksum_seal(const struct protect_key *key, const struct protect_packet *packet,
			  uint8_t *trailer)
{
	static const uint8_t zeros[3];
	uint32_t crc = crc32_gzip_refl(get_be32(key->material), packet->hdr, packet->hdr_len);

	if (packet->payload_len)
		crc = crc32_gzip_refl(crc, packet->payload, packet->payload_len);
	if (packet->pad_len)
		crc = crc32_gzip_refl(crc, zeros, packet->pad_len);
	put_be32(trailer, crc);
}

static int checksum_open(const struct protect_key *key, const uint8_t *pkt, size_t len)
{
	size_t covered;

	if (len < PROTECT_TRAILER_BYTES)
		return -EBADMSG;
	covered = len - PROTECT_TRAILER_BYTES;
	if (crc32_gzip_refl(get_be32(key->material), pkt, covered) != get_be32(pkt + covered))
		return -EBADMSG;
	return 0;
}

const struct protect_ops protect_checksum = {
	.name = "checksum",
	.overhead_bytes = PROTECT_TRAILER_BYTES,
	.seal = checksum_seal,
	.open = checksum_open,
};

void protect_checksum_key(struct protect_key *key, uint64_t token)
{
	uint8_t bytes[8];

	put_be64(bytes, token);
	memset(key, 0, sizeof(*key));
	key->ops = &protect_checksum;
	put_be32(key->material, crc32_gzip_refl(0, bytes, sizeof(bytes)));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the handshake blob. What decodes must encode, and decode to the same
 * again (unknown types and order are not kept); negotiation must be symmetric.
 */
#include <string.h>

#include "wire/fuzz.h"
#include "wire/wire.h"

static void check_negotiation(const struct wire_blob *blob)
{
	static const struct wire_blob local = {.version_min = WIRE_VERSION_MIN,
					       .version_max = WIRE_VERSION_MAX,
					       .offered = 7,
					       .max_payload = 1436,
					       .channels = 8,
					       .generations = 4,
					       .data_channels = 8,
					       .messages_log2 = 10};
	struct wire_agreed ours, theirs;
	int err = wire_blob_negotiate(&local, blob, &ours);

	FUZZ_REQUIRE(wire_blob_negotiate(blob, &local, &theirs) == err);
	if (err)
		return;
	FUZZ_REQUIRE(ours.generations > 0 && ours.generations == theirs.generations);
	FUZZ_REQUIRE(ours.version == theirs.version && ours.mode == theirs.mode &&
		     ours.features == theirs.features && ours.payload == theirs.payload &&
		     ours.chunk_log2 == theirs.chunk_log2 && ours.channels == theirs.channels &&
		     ours.messages_log2 == theirs.messages_log2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t again[WIRE_BLOB_MAX_BYTES];
	struct wire_blob blob, second;
	int len;

	wire_blob_length(data, size);
	if (wire_blob_get(data, size, &blob) != 0)
		return 0;
	len = wire_blob_put(again, sizeof(again), &blob);
	FUZZ_REQUIRE(len > 0 && (size_t)len <= size + 5);
	FUZZ_REQUIRE(wire_blob_get(again, (size_t)len, &second) == 0);
	FUZZ_REQUIRE(memcmp(&blob, &second, sizeof(blob)) == 0);
	check_negotiation(&blob);
	return 0;
}

size_t fuzz_seed(unsigned int i, uint8_t *buf)
{
	struct wire_blob blob = {.version_min = 1,
				 .version_max = 1,
				 .required = WIRE_FEATURE_CODES,
				 .offered = 7,
				 .mode = i & 1 ? WIRE_ROCEV2 : WIRE_SDR,
				 .qpn = 0x123456,
				 .token = 5,
				 .incarnation = 6,
				 .max_payload = 1436,
				 .chunk_log2 = 4,
				 .channels = 12,
				 .messages_log2 = 10,
				 .psn = 0xabcdef,
				 .listen = i & 1};

	if (i > WIRE_BLOB_MAX_ADDRS)
		return 0;
	if (blob.mode == WIRE_ROCEV2) {
		blob.generations = 4;
		blob.data_channels = 12;
	}
	blob.naddrs = (uint8_t)i;
	for (unsigned int a = 0; a < i; a++)
		blob.addrs[a] =
			(struct wire_blob_addr){.family = a & 1 ? 6 : 4, .port = 4792, .ip = {10}};
	return (size_t)wire_blob_put(buf, FUZZ_MAX_BYTES, &blob);
}

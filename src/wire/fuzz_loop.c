/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target without libFuzzer: every seed, every truncation of it, then
 * seeded mutations. Inputs lie at the end of their own heap blocks, so that
 * AddressSanitizer sees any read beyond them. Knows nothing of formats.
 *
 *	wire_packet_loop [rounds [seed]]
 */
#include <string.h>

#include "base/rng.h"
#include "wire/fuzz.h"

#define DEFAULT_ROUNDS 200000

static void run_input(const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	FUZZ_REQUIRE(copy);
	memcpy(copy, bytes, len);
	LLVMFuzzerTestOneInput(copy, len);
	free(copy);
}

static size_t mutate(struct rng *rng, uint8_t *bytes, size_t len)
{
	static const uint8_t interesting[] = {0, 1, 2, 4, 16, 17, 64, 65, 0x7f, 0x80, 0x81, 0xff};
	size_t at = len ? rng_below(rng, len) : 0;

	switch (rng_below(rng, 6)) {
	case 0:
		if (len)
			bytes[at] ^= (uint8_t)(1u << rng_below(rng, 8));
		return len;
	case 1:
		if (len)
			bytes[at] = (uint8_t)rng_next(rng);
		return len;
	case 2:
		if (len)
			bytes[at] = interesting[rng_below(rng, sizeof(interesting))];
		return len;
	case 3: /* cut */
		return at;
	case 4: /* remove a byte */
		if (len == 0)
			return 0;
		memmove(bytes + at, bytes + at + 1, len - at - 1);
		return len - 1;
	default: /* repeat a byte */
		if (len == 0 || len >= FUZZ_MAX_BYTES)
			return len;
		memmove(bytes + at + 1, bytes + at, len - at);
		return len + 1;
	}
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : DEFAULT_ROUNDS;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	uint8_t buf[FUZZ_MAX_BYTES];
	unsigned int nseeds = 0;
	struct rng rng;
	size_t len;

	while ((len = fuzz_seed(nseeds, buf)) > 0) {
		for (size_t cut = 0; cut <= len; cut++)
			run_input(buf, cut);
		nseeds++;
	}
	printf("%u seeds, %lu rounds, random seed %llu\n", nseeds, rounds,
	       (unsigned long long)seed);
	rng_init(&rng, seed);
	for (unsigned long i = 0; i < rounds; i++) {
		len = fuzz_seed((unsigned int)rng_below(&rng, nseeds), buf);
		for (uint64_t n = 1 + rng_below(&rng, 4); n > 0; n--)
			len = mutate(&rng, buf, len);
		run_input(buf, len);
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a fuzz target of wire/ offers: libFuzzer's entry point, and seed inputs for the
 * loop in fuzz_loop.c, which runs the same target in ordinary tests.
 */
#ifndef SDR_WIRE_FUZZ_H
#define SDR_WIRE_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define FUZZ_MAX_BYTES 2048

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Seed i: its bytes into buf (FUZZ_MAX_BYTES), its length, or 0 behind the last. */
size_t fuzz_seed(unsigned int i, uint8_t *buf);

/* A property, checked in every build: NDEBUG must not blunt a fuzzer. */
#define FUZZ_REQUIRE(cond)                                                         \
	do {                                                                       \
		if (!(cond)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			abort();                                                   \
		}                                                                  \
	} while (0)

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeded random numbers: the protocol and the simulator draw from a struct, never
 * from the system, so that a seed replays a run. xoshiro256** seeded by splitmix64
 * (Blackman and Vigna). Not for secrets: those come from rng_secret().
 */
#ifndef SDR_BASE_RNG_H
#define SDR_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct rng {
	uint64_t s[4];
};

void rng_init(struct rng *r, uint64_t seed);
uint64_t rng_next(struct rng *r);
/* Uniform in [0, 1), 53 bits. */
double rng_unit(struct rng *r);
/* Uniform in [0, n), n > 0, without modulo bias. */
uint64_t rng_below(struct rng *r, uint64_t n);
/* Bytes from the kernel for tokens, QP numbers and PSNs; -errno on failure. */
int rng_secret(void *buf, size_t len);

#endif

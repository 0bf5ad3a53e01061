/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a packet has waited to be read, by the kernel's stamp. The kernel stamps by the
 * wall clock, which somebody may set at any time; what it says is believed only while the
 * distance to the monotonic clock stays what it was (slewing moves both). Pure.
 */
#ifndef SDR_FABRIC_UDP_STAMP_H
#define SDR_FABRIC_UDP_STAMP_H

#include <stdbool.h>
#include <stdint.h>

#define STAMP_AGE_MAX_NS UINT64_C(1000000000) /* what a packet may wait to be read */
#define STAMP_STEP_NS UINT64_C(50000)	      /* a smaller step does no harm */
#define STAMP_NOISE_NS UINT64_C(20000)	      /* the two clocks were read within this */

/* Invariant: stamps of before a step are older than STAMP_AGE_MAX_NS at trusted_ns. */
struct stamp_clock {
	bool known;
	uint64_t distance_ns; /* wall clock less monotonic clock, modulo 2^64 */
	uint64_t trusted_ns;  /* monotonic: believe stamps from here on */
	uint64_t mono_ns, wall_ns;
};

/* Both clocks, read within STAMP_NOISE_NS of each other. */
void stamp_clock_set(struct stamp_clock *c, uint64_t mono_ns, uint64_t wall_ns);
/* As of the last stamp_clock_set(); 0: just now, or the stamp (0: none) is not believed. */
uint64_t stamp_age_ns(const struct stamp_clock *c, uint64_t stamp_ns);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The eight severities A .. H of ITU-T G.1050 (TIA-921): the one standard table that has
 * loss, jitter, route flaps and link failures together. Taken as an intercontinental path.
 *
 * What is taken of the model: the core's loss, jitter (uniform), delay, route flap (longer
 * route for half of each interval), link failure and reordering, and the access links' two-state
 * loss at an occupancy, folded into one Gilbert-Elliott process. What is not: LANs,
 * access rates, congestion delay.
 */
#ifndef SDR_LINK_G1050_H
#define SDR_LINK_G1050_H

#include "link/link.h"

/*
 * Fills loss, delay, jitter, reordering, flap and outage of *out for a severity 'A' .. 'H' (or
 * small); leaves the rest, rate and queue among them, as it is. Where in their first interval
 * flap and outage begin comes from the seed; times count from start_ns. -EINVAL: no such severity.
 */
int link_g1050(char severity, uint64_t seed, uint64_t start_ns, struct link_attr *out);

#endif

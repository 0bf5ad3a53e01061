/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The eight severities A .. H of ITU-T G.1050 (TIA-921): the one standard table that has
 * loss, jitter, route flaps and link failures together. Taken as an intercontinental path.
 *
 * What is taken of the model: the core's loss, jitter (uniform; it keeps the order), delay, route
 * flap (the route changes once an interval: the longer one lasts every other interval), link
 * failure (one begins in each interval) and reordering (H only: 1 % of the packets may overtake
 * by their jitter), and the access links' two-state loss at an occupancy, folded into one
 * Gilbert-Elliott process that steps with each packet. What is not: LANs, access rates, congestion
 * delay.
 *
 *			A	B	C	D	E	F	G	H
 *	core loss	0	1e-4	2e-4	4e-4	1e-3	2e-3	5e-3	1e-2
 *	all loss	0	1.02e-4	2.12e-4	4.78e-4	1.54e-3	4.90e-3	1.93e-2	4.52e-2
 *	delay ms	16	32	64	128	196	256	512	768
 *	jitter ms	5	10	16	40	70	100	150	500
 *	interval s	-	3600	1800	900	480	240	120	60
 *	flap ms		-	2	4	8	16	32	64	128
 *	failure ms	-	64	128	256	400	800	1600	3000
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

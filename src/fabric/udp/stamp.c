/* SPDX-License-Identifier: Apache-2.0 */
/* See stamp.h. Knows nothing of sockets, reads no clock. */
#include "fabric/udp/stamp.h"

#include "base/bits.h"

void stamp_clock_set(struct stamp_clock *c, uint64_t mono_ns, uint64_t wall_ns)
{
	uint64_t distance = wall_ns - mono_ns, by = distance - c->distance_ns;

	/* Either way: a step back is a small negative number. */
	if (c->known && by + STAMP_STEP_NS > 2 * STAMP_STEP_NS)
		c->trusted_ns = mono_ns + STAMP_AGE_MAX_NS;
	c->known = true;
	c->distance_ns = distance;
	c->mono_ns = mono_ns;
	c->wall_ns = wall_ns;
}

uint64_t stamp_age_ns(const struct stamp_clock *c, uint64_t stamp_ns)
{
	uint64_t age = u64_sub_floor(c->wall_ns, stamp_ns);

	return stamp_ns && c->mono_ns >= c->trusted_ns && age < STAMP_AGE_MAX_NS ? age : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the implementations of cc/ share. Not for anyone outside. */
#ifndef SDR_CC_CC_PRIV_H
#define SDR_CC_CC_PRIV_H

#include "base/bits.h"
#include "base/check.h"
#include "cc/cc.h"

#define CC_MIN_WINDOW_PKTS 2u
#define CC_NS_PER_S 1e9

extern const struct cc_ops cc_fixed_ops;
extern const struct cc_ops cc_grow_ops;

/* Bytes that `bps` carries in `ns`. */
static inline uint64_t cc_bytes_in(uint64_t bps, uint64_t ns)
{
	return (uint64_t)((double)bps * (double)ns / (8 * CC_NS_PER_S));
}

static inline uint64_t cc_rate_bps(uint64_t bytes, uint64_t ns)
{
	return ns ? (uint64_t)((double)bytes * 8 * CC_NS_PER_S / (double)ns) : 0;
}

/* Smoothed round trip, 1/8. */
static inline void cc_smooth(uint64_t *srtt_ns, uint64_t sample_ns)
{
	*srtt_ns = *srtt_ns ? *srtt_ns - *srtt_ns / 8 + sample_ns / 8 : sample_ns;
}

#endif

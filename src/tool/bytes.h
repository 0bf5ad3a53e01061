/* SPDX-License-Identifier: Apache-2.0 */
/* Big-endian numbers in and out of the tool's own messages. */
#ifndef SDR_TOOL_BYTES_H
#define SDR_TOOL_BYTES_H

#include <stdint.h>

static inline void put_be(uint8_t *p, uint64_t v, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		p[i] = (uint8_t)(v >> (8 * (n - 1 - i)));
}

static inline uint64_t get_be(const uint8_t *p, unsigned int n)
{
	uint64_t v = 0;

	for (unsigned int i = 0; i < n; i++)
		v = v << 8 | p[i];
	return v;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small word and byte-order helpers. Freestanding: rx/ and wire/ stand on them.
 * Knows nothing of packets.
 */
#ifndef SDR_BASE_BITS_H
#define SDR_BASE_BITS_H

#include <stddef.h>
#include <stdint.h>

#define SDR_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static inline uint64_t u64_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t u64_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ceil(a / b), b > 0; does not overflow. */
static inline uint64_t u64_div_up(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}

/* a - b, or 0 where b is larger. */
static inline uint64_t u64_sub_floor(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* The low n bits set, n in 0 .. 64. */
static inline uint64_t bits_low(unsigned int n)
{
	return n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
}

/* Bits [first, first + n) of a word, first + n <= 64. */
static inline uint64_t bits_range(unsigned int first, unsigned int n)
{
	return bits_low(n) << first;
}

static inline size_t bits_words(uint64_t nbits)
{
	return (size_t)((nbits + 63) / 64);
}

/* Serial-number order of 32-bit numbers that wrap (RFC 1982): a before b. */
static inline int seq32_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

/* The same for 24-bit PSNs. */
static inline int seq24_before(uint32_t a, uint32_t b)
{
	return ((a - b) & 0x800000u) != 0;
}

static inline void put_be16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void put_be24(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 16);
	p[1] = (uint8_t)(v >> 8);
	p[2] = (uint8_t)v;
}

static inline void put_be32(uint8_t *p, uint32_t v)
{
	put_be16(p, (uint16_t)(v >> 16));
	put_be16(p + 2, (uint16_t)v);
}

static inline void put_be64(uint8_t *p, uint64_t v)
{
	put_be32(p, (uint32_t)(v >> 32));
	put_be32(p + 4, (uint32_t)v);
}

static inline uint16_t get_be16(const uint8_t *p)
{
	return (uint16_t)((uint16_t)p[0] << 8 | p[1]);
}

static inline uint32_t get_be24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static inline uint32_t get_be32(const uint8_t *p)
{
	return (uint32_t)get_be16(p) << 16 | get_be16(p + 2);
}

static inline uint64_t get_be64(const uint8_t *p)
{
	return (uint64_t)get_be32(p) << 32 | get_be32(p + 4);
}

#endif

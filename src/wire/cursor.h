/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounded reading and writing, for wire/'s own use. A failure sticks: a decoder reads
 * all its fields and asks once at the end, so no length check can be forgotten.
 * Knows nothing of any format but the varint's.
 */
#ifndef SDR_WIRE_CURSOR_H
#define SDR_WIRE_CURSOR_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"

struct wire_reader {
	const uint8_t *at;
	size_t left;
	int err; /* 0, or the first failure */
};

static inline struct wire_reader wire_reader_init(const uint8_t *buf, size_t len)
{
	return (struct wire_reader){.at = buf, .left = len};
}

static inline size_t wire_reader_left(const struct wire_reader *r)
{
	return r->left;
}

/* n bytes, or NULL once anything was cut short. */
static inline const uint8_t *wire_take(struct wire_reader *r, size_t n)
{
	const uint8_t *p = r->at;

	if (r->err == 0 && r->left < n)
		r->err = -EMSGSIZE;
	if (r->err)
		return NULL;
	r->at += n;
	r->left -= n;
	return p;
}

static inline uint8_t wire_take_u8(struct wire_reader *r)
{
	const uint8_t *p = wire_take(r, 1);

	return p ? *p : 0;
}

static inline uint16_t wire_take_u16(struct wire_reader *r)
{
	const uint8_t *p = wire_take(r, 2);

	return p ? get_be16(p) : 0;
}

static inline uint32_t wire_take_u24(struct wire_reader *r)
{
	const uint8_t *p = wire_take(r, 3);

	return p ? get_be24(p) : 0;
}

static inline uint32_t wire_take_u32(struct wire_reader *r)
{
	const uint8_t *p = wire_take(r, 4);

	return p ? get_be32(p) : 0;
}

static inline uint64_t wire_take_u64(struct wire_reader *r)
{
	const uint8_t *p = wire_take(r, 8);

	return p ? get_be64(p) : 0;
}

/*
 * Unsigned LEB128: seven bits a byte, least significant first, bit 7 says "more".
 * At most 64 bits in 10 bytes. A last byte of 0 behind others is refused, so that each
 * value has one form.
 */
static inline uint64_t wire_take_varint(struct wire_reader *r)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 70; shift += 7) {
		uint8_t byte = wire_take_u8(r);

		if (r->err)
			return 0;
		if ((shift == 63 && byte > 1) || (shift > 0 && byte == 0))
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	r->err = -EBADMSG;
	return 0;
}

/* A varint of at most 32 bits. */
static inline uint32_t wire_take_varint32(struct wire_reader *r)
{
	uint64_t value = wire_take_varint(r);

	if (r->err == 0 && value > UINT32_MAX)
		r->err = -EBADMSG;
	return r->err ? 0 : (uint32_t)value;
}

static inline void wire_reader_require(struct wire_reader *r, bool ok)
{
	if (r->err == 0 && !ok)
		r->err = -EBADMSG;
}

struct wire_writer {
	uint8_t *start;
	uint8_t *at;
	uint8_t *end;
	bool full; /* something did not fit; nothing is written from then on */
};

static inline struct wire_writer wire_writer_init(uint8_t *buf, size_t cap)
{
	return (struct wire_writer){.start = buf, .at = buf, .end = buf + cap};
}

/* Length so far, or -ENOSPC. */
static inline int wire_writer_result(const struct wire_writer *w)
{
	return w->full ? -ENOSPC : (int)(w->at - w->start);
}

static inline uint8_t *wire_give(struct wire_writer *w, size_t n)
{
	uint8_t *p = w->at;

	if (w->full || (size_t)(w->end - w->at) < n) {
		w->full = true;
		return NULL;
	}
	w->at += n;
	return p;
}

static inline void wire_give_u8(struct wire_writer *w, uint8_t v)
{
	uint8_t *p = wire_give(w, 1);

	if (p)
		*p = v;
}

static inline void wire_give_u16(struct wire_writer *w, uint16_t v)
{
	uint8_t *p = wire_give(w, 2);

	if (p)
		put_be16(p, v);
}

static inline void wire_give_u24(struct wire_writer *w, uint32_t v)
{
	uint8_t *p = wire_give(w, 3);

	if (p)
		put_be24(p, v);
}

static inline void wire_give_u32(struct wire_writer *w, uint32_t v)
{
	uint8_t *p = wire_give(w, 4);

	if (p)
		put_be32(p, v);
}

static inline void wire_give_u64(struct wire_writer *w, uint64_t v)
{
	uint8_t *p = wire_give(w, 8);

	if (p)
		put_be64(p, v);
}

static inline void wire_give_bytes(struct wire_writer *w, const void *bytes, size_t n)
{
	uint8_t *p = wire_give(w, n);

	if (p && n)
		memcpy(p, bytes, n);
}

static inline size_t wire_varint_bytes(uint64_t v)
{
	size_t n = 1;

	for (; v >= 0x80; v >>= 7)
		n++;
	return n;
}

static inline void wire_give_varint(struct wire_writer *w, uint64_t v)
{
	uint8_t *p = wire_give(w, wire_varint_bytes(v));

	if (!p)
		return;
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)(v | 0x80);
	*p = (uint8_t)v;
}

#endif

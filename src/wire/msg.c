/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The short control messages' bodies. Knows nothing of when they are sent.
 * Layouts: msg.h.
 */
#include "wire/msg.h"

#include "wire/cursor.h"

int wire_ping_put(uint8_t *buf, size_t cap, const struct wire_ping *ping)
{
	struct wire_writer w = wire_writer_init(buf, cap);

	wire_give_u64(&w, ping->nonce);
	return wire_writer_result(&w);
}

int wire_ping_get(const uint8_t *body, size_t len, struct wire_ping *out)
{
	struct wire_reader r = wire_reader_init(body, len);

	out->nonce = wire_take_u64(&r);
	return r.err;
}

int wire_pong_put(uint8_t *buf, size_t cap, const struct wire_pong *pong)
{
	struct wire_writer w = wire_writer_init(buf, cap);

	wire_give_u64(&w, pong->nonce);
	wire_give_u32(&w, pong->hold_ns);
	return wire_writer_result(&w);
}

int wire_pong_get(const uint8_t *body, size_t len, struct wire_pong *out)
{
	struct wire_reader r = wire_reader_init(body, len);

	out->nonce = wire_take_u64(&r);
	out->hold_ns = wire_take_u32(&r);
	return r.err;
}

int wire_payload_put(uint8_t *buf, size_t cap, const struct wire_payload *payload)
{
	struct wire_writer w = wire_writer_init(buf, cap);

	wire_give_u32(&w, payload->from);
	wire_give_u32(&w, payload->size);
	return wire_writer_result(&w);
}

int wire_payload_get(const uint8_t *body, size_t len, struct wire_payload *out)
{
	struct wire_reader r = wire_reader_init(body, len);

	out->from = wire_take_u32(&r);
	out->size = wire_take_u32(&r);
	wire_reader_require(&r, out->size >= 1 && out->size <= UINT16_MAX);
	return r.err;
}

int wire_number_put(uint8_t *buf, size_t cap, const struct wire_number *number)
{
	struct wire_writer w = wire_writer_init(buf, cap);

	wire_give_u32(&w, number->number);
	return wire_writer_result(&w);
}

int wire_number_get(const uint8_t *body, size_t len, struct wire_number *out)
{
	struct wire_reader r = wire_reader_init(body, len);

	out->number = wire_take_u32(&r);
	return r.err;
}

int wire_write_put(uint8_t *buf, size_t cap, const struct wire_write *write)
{
	struct wire_writer w = wire_writer_init(buf, cap);

	wire_give_u32(&w, write->write);
	wire_give_u64(&w, write->length);
	wire_give_u32(&w, write->imm);
	wire_give_u8(&w, write->has_imm);
	wire_give_u8(&w, write->code);
	wire_give_u16(&w, write->k);
	wire_give_u16(&w, write->m);
	wire_give_u32(&w, write->depth);
	wire_give_u64(&w, write->span_start);
	return wire_writer_result(&w);
}

int wire_write_get(const uint8_t *body, size_t len, struct wire_write *out)
{
	struct wire_reader r = wire_reader_init(body, len);
	uint8_t has_imm;

	out->write = wire_take_u32(&r);
	out->length = wire_take_u64(&r);
	out->imm = wire_take_u32(&r);
	has_imm = wire_take_u8(&r);
	out->has_imm = has_imm != 0;
	out->code = wire_take_u8(&r);
	out->k = wire_take_u16(&r);
	out->m = wire_take_u16(&r);
	out->depth = wire_take_u32(&r);
	out->span_start = wire_take_u64(&r);
	wire_reader_require(&r, has_imm <= 1 && (out->code == 0 || (out->k && out->depth)));
	return r.err;
}

int wire_close_put(uint8_t *buf, size_t cap, const struct wire_close *close)
{
	struct wire_writer w = wire_writer_init(buf, cap);

	wire_give_u32(&w, close->done_below);
	wire_give_u32(&w, close->reason);
	return wire_writer_result(&w);
}

int wire_close_get(const uint8_t *body, size_t len, struct wire_close *out)
{
	struct wire_reader r = wire_reader_init(body, len);

	out->done_below = wire_take_u32(&r);
	out->reason = wire_take_u32(&r);
	return r.err;
}

int wire_reset_put(uint8_t *buf, size_t cap, const struct wire_reset *reset)
{
	struct wire_writer w = wire_writer_init(buf, cap);

	wire_give_u32(&w, reset->reason);
	return wire_writer_result(&w);
}

int wire_reset_get(const uint8_t *body, size_t len, struct wire_reset *out)
{
	struct wire_reader r = wire_reader_init(body, len);

	out->reason = wire_take_u32(&r);
	return r.err;
}

int wire_train_put(uint8_t *buf, size_t cap, const struct wire_train *train)
{
	struct wire_writer w = wire_writer_init(buf, cap);

	wire_give_u8(&w, train->train);
	wire_give_u8(&w, train->index);
	wire_give_u16(&w, train->count);
	return wire_writer_result(&w);
}

int wire_train_get(const uint8_t *body, size_t len, struct wire_train *out)
{
	struct wire_reader r = wire_reader_init(body, len);

	out->train = wire_take_u8(&r);
	out->index = wire_take_u8(&r);
	out->count = wire_take_u16(&r);
	wire_reader_require(&r, out->index < out->count && out->count <= UINT8_MAX + 1);
	return r.err;
}

int wire_train_seen_put(uint8_t *buf, size_t cap, const struct wire_train_seen *seen)
{
	struct wire_writer w = wire_writer_init(buf, cap);

	if (seen->n < 1 || seen->n > WIRE_TRAINS_MAX)
		return -EINVAL;
	wire_give_u8(&w, seen->n);
	for (unsigned int i = 0; i < seen->n; i++) {
		wire_give_u8(&w, seen->span[i].train);
		wire_give_u8(&w, seen->span[i].packets);
		wire_give_u8(&w, seen->span[i].steps);
		wire_give_u8(&w, seen->span[i].stamps);
		wire_give_u32(&w, seen->span[i].span_ns);
	}
	return wire_writer_result(&w);
}

int wire_train_seen_get(const uint8_t *body, size_t len, struct wire_train_seen *out)
{
	struct wire_reader r = wire_reader_init(body, len);

	memset(out, 0, sizeof(*out));
	out->n = wire_take_u8(&r);
	wire_reader_require(&r, out->n >= 1 && out->n <= WIRE_TRAINS_MAX);
	for (unsigned int i = 0; r.err == 0 && i < out->n; i++) {
		out->span[i].train = wire_take_u8(&r);
		out->span[i].packets = wire_take_u8(&r);
		out->span[i].steps = wire_take_u8(&r);
		out->span[i].stamps = wire_take_u8(&r);
		out->span[i].span_ns = wire_take_u32(&r);
		wire_reader_require(&r, out->span[i].stamps <= out->span[i].packets);
	}
	return r.err;
}

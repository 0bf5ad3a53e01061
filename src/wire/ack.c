/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ACK and NACK bodies. Knows nothing of which windows matter. Layout: ack.h.
 */
#include "wire/ack.h"

#include "wire/cursor.h"

#define NACK_BLOCK_BYTES 6
#define NEWEST_FLAGS (WIRE_ACK_PSN_VALID | WIRE_ACK_PACKET_VALID)

int wire_ack_begin(struct wire_ack_enc *enc, uint8_t *buf, size_t cap, uint32_t write_below,
		   unsigned int nchannels)
{
	size_t reserved = (size_t)nchannels * WIRE_ACK_CHANNEL_MAX_BYTES;

	if (nchannels > WIRE_ACK_MAX_CHANNELS || cap < WIRE_ACK_FIXED_BYTES + reserved)
		return -ENOSPC;
	put_be32(buf, write_below);
	buf[4] = 0;
	*enc = (struct wire_ack_enc){.buf = buf, .cap = cap, .at = 5, .nwindows_at = 4};
	/* The count of channels needs its byte whatever the windows take. */
	enc->reserved = reserved + 1;
	return 0;
}

uint32_t wire_ack_window_from_bits(struct wire_ack_enc *enc, uint32_t message, uint32_t first,
				   uint32_t length, const uint64_t *bits)
{
	uint32_t covered = 0;

	if (enc->nchannels_at || enc->buf[enc->nwindows_at] == WIRE_ACK_MAX_WINDOWS)
		return 0;
	enc->at += wire_window_put(enc->buf + enc->at, enc->cap - enc->reserved - enc->at, message,
				   first, length, bits, &covered);
	if (covered)
		enc->buf[enc->nwindows_at]++;
	return covered;
}

/* From the windows to the channels. */
static void close_windows(struct wire_ack_enc *enc)
{
	if (enc->nchannels_at)
		return;
	enc->nchannels_at = enc->at;
	enc->buf[enc->at++] = 0;
}

int wire_ack_channel_put(struct wire_ack_enc *enc, const struct wire_ack_channel *channel)
{
	struct wire_writer w;
	int len;

	if ((channel->flags & NEWEST_FLAGS) == NEWEST_FLAGS)
		return -EINVAL;
	close_windows(enc);
	if (enc->buf[enc->nchannels_at] == WIRE_ACK_MAX_CHANNELS)
		return -ENOSPC;
	w = wire_writer_init(enc->buf + enc->at, enc->cap - enc->at);
	wire_give_u8(&w, channel->id);
	wire_give_u8(&w, channel->flags);
	wire_give_u24(&w, channel->newest_psn);
	if (channel->flags & WIRE_ACK_PACKET_VALID) {
		wire_give_varint(&w, channel->newest_message);
		wire_give_varint(&w, channel->newest_packet);
	}
	wire_give_u32(&w, channel->age_ns);
	wire_give_varint(&w, channel->received);
	wire_give_varint(&w, channel->duplicates);
	wire_give_varint(&w, channel->ce);
	wire_give_varint(&w, channel->host_drops);
	len = wire_writer_result(&w);
	if (len < 0)
		return len;
	enc->at += (size_t)len;
	enc->buf[enc->nchannels_at]++;
	return 0;
}

int wire_ack_end(struct wire_ack_enc *enc)
{
	close_windows(enc);
	return (int)enc->at;
}

static void take_channel(struct wire_reader *r, struct wire_ack_channel *out)
{
	out->id = wire_take_u8(r);
	out->flags = wire_take_u8(r);
	wire_reader_require(r, (out->flags & NEWEST_FLAGS) != NEWEST_FLAGS);
	out->newest_psn = wire_take_u24(r);
	out->newest_message = out->newest_packet = 0;
	if (out->flags & WIRE_ACK_PACKET_VALID) {
		out->newest_message = wire_take_varint32(r);
		out->newest_packet = wire_take_varint32(r);
	}
	out->age_ns = wire_take_u32(r);
	out->received = wire_take_varint(r);
	out->duplicates = wire_take_varint(r);
	out->ce = wire_take_varint(r);
	out->host_drops = wire_take_varint(r);
}

int wire_ack_open(const uint8_t *body, size_t len, struct wire_ack *out)
{
	struct wire_reader r = wire_reader_init(body, len);
	struct wire_ack_channel channel;
	struct wire_window win;

	if (len < WIRE_ACK_FIXED_BYTES)
		return -EMSGSIZE;
	out->write_below = wire_take_u32(&r);
	out->nwindows = wire_take_u8(&r);
	out->window_at_ = r.at;
	for (unsigned int i = 0; i < out->nwindows; i++) {
		int bytes = wire_window_get(r.at, wire_reader_left(&r), &win);

		if (bytes < 0)
			return -EBADMSG;
		wire_take(&r, (size_t)bytes);
	}
	out->nchannels = wire_take_u8(&r);
	out->channel_at_ = r.at;
	for (unsigned int i = 0; r.err == 0 && i < out->nchannels; i++)
		take_channel(&r, &channel);
	if (r.err)
		return -EBADMSG;
	out->end_ = r.at;
	out->windows_left_ = out->nwindows;
	out->channels_left_ = out->nchannels;
	return 0;
}

int wire_ack_next_window(struct wire_ack *ack, struct wire_window *win)
{
	int bytes;

	if (ack->windows_left_ == 0)
		return 0;
	bytes = wire_window_get(ack->window_at_, (size_t)(ack->end_ - ack->window_at_), win);
	/* Checked by wire_ack_open; ends the walk should the bytes change under us. */
	if (bytes < 0)
		return 0;
	ack->window_at_ += bytes;
	ack->windows_left_--;
	return 1;
}

int wire_ack_next_channel(struct wire_ack *ack, struct wire_ack_channel *out)
{
	struct wire_reader r;

	if (ack->channels_left_ == 0)
		return 0;
	r = wire_reader_init(ack->channel_at_, (size_t)(ack->end_ - ack->channel_at_));
	take_channel(&r, out);
	ack->channel_at_ = r.at;
	ack->channels_left_--;
	return 1;
}

int wire_nack_put_blocks(uint8_t *buf, size_t cap, uint32_t write,
			 const struct wire_nack_block *blocks, size_t n)
{
	struct wire_writer w = wire_writer_init(buf, cap);

	if (n == 0 || n > WIRE_NACK_MAX_BLOCKS)
		return -EINVAL;
	wire_give_u8(&w, WIRE_NACK_BLOCKS);
	wire_give_u32(&w, write);
	wire_give_u16(&w, (uint16_t)n);
	for (size_t i = 0; i < n; i++) {
		if (blocks[i].deficit == 0)
			return -EINVAL;
		wire_give_u32(&w, blocks[i].block);
		wire_give_u16(&w, blocks[i].deficit);
	}
	return wire_writer_result(&w);
}

int wire_nack_put_runs(uint8_t *buf, size_t cap, uint32_t message, uint32_t first, uint32_t length,
		       const uint64_t *bits)
{
	uint32_t covered;
	size_t bytes;

	if (cap < 1)
		return -ENOSPC;
	bytes = wire_window_put(buf + 1, cap - 1, message, first, length, bits, &covered);
	if (bytes == 0)
		return -ENOSPC;
	buf[0] = WIRE_NACK_RUNS;
	return (int)(1 + bytes);
}

static int get_nack_blocks(struct wire_reader *r, struct wire_nack *out)
{
	out->write = wire_take_u32(r);
	out->nblocks = wire_take_u16(r);
	wire_reader_require(r, out->nblocks >= 1 && out->nblocks <= WIRE_NACK_MAX_BLOCKS);
	out->blocks_ = wire_take(r, (size_t)out->nblocks * NACK_BLOCK_BYTES);
	for (unsigned int i = 0; r->err == 0 && i < out->nblocks; i++)
		wire_reader_require(r, wire_nack_block_at(out, i).deficit != 0);
	return r->err;
}

int wire_nack_get(const uint8_t *body, size_t len, struct wire_nack *out)
{
	struct wire_reader r = wire_reader_init(body, len);
	uint8_t kind = wire_take_u8(&r);
	int bytes;

	if (r.err)
		return r.err;
	memset(out, 0, sizeof(*out));
	switch (kind) {
	case WIRE_NACK_BLOCKS:
		out->kind = WIRE_NACK_BLOCKS;
		return get_nack_blocks(&r, out);
	case WIRE_NACK_RUNS:
		out->kind = WIRE_NACK_RUNS;
		bytes = wire_window_get(r.at, wire_reader_left(&r), &out->win);
		return bytes < 0 ? bytes : 0;
	default:
		return -EBADMSG;
	}
}

struct wire_nack_block wire_nack_block_at(const struct wire_nack *nack, unsigned int i)
{
	const uint8_t *at = nack->blocks_ + (size_t)i * NACK_BLOCK_BYTES;

	return (struct wire_nack_block){.block = get_be32(at), .deficit = get_be16(at + 4)};
}

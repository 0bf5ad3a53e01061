/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ACK bodies. Knows nothing of which windows matter. Layout: ack.h.
 */
#include "wire/ack.h"

#include "wire/cursor.h"

#define MADE_GOOD_AT 4
#define NEWEST_FLAGS (WIRE_ACK_PSN_VALID | WIRE_ACK_PACKET_VALID)

int wire_ack_begin(struct wire_ack_enc *enc, uint8_t *buf, size_t cap, uint32_t write_below,
		   unsigned int nchannels)
{
	size_t reserved = (size_t)nchannels * WIRE_ACK_CHANNEL_MAX_BYTES;

	if (nchannels > WIRE_ACK_MAX_CHANNELS || cap < WIRE_ACK_FIXED_BYTES + reserved)
		return -ENOSPC;
	put_be32(buf, write_below);
	put_be32(buf + MADE_GOOD_AT, 0);
	buf[8] = 0;
	*enc = (struct wire_ack_enc){.buf = buf, .cap = cap, .at = 9, .nwindows_at = 8};
	/* The counts of channels and deficits need their bytes whatever the windows take. */
	enc->reserved = reserved + 1;
	enc->reserved_deficits = 1;
	return 0;
}

void wire_ack_made_good(struct wire_ack_enc *enc, uint32_t pkts)
{
	put_be32(enc->buf + MADE_GOOD_AT, pkts);
}

/* Bytes that the windows and the channels to come may still fill. */
static size_t room_left(const struct wire_ack_enc *enc)
{
	return enc->cap - enc->reserved_deficits - enc->at;
}

void wire_ack_reserve(struct wire_ack_enc *enc, size_t bytes)
{
	size_t left;

	if (enc->nchannels_at)
		return;
	left = room_left(enc) - enc->reserved;
	enc->reserved_deficits += bytes < left ? bytes : left;
}

uint32_t wire_ack_window_from_bits(struct wire_ack_enc *enc, uint32_t message, uint32_t first,
				   uint32_t length, const uint64_t *bits)
{
	uint32_t covered = 0;

	if (enc->nchannels_at || enc->buf[enc->nwindows_at] == WIRE_ACK_MAX_WINDOWS)
		return 0;
	enc->at += wire_window_put(enc->buf + enc->at, room_left(enc) - enc->reserved, message,
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

	if (enc->ndeficits_at || (channel->flags & NEWEST_FLAGS) == NEWEST_FLAGS)
		return -EINVAL;
	close_windows(enc);
	if (enc->buf[enc->nchannels_at] == WIRE_ACK_MAX_CHANNELS)
		return -ENOSPC;
	w = wire_writer_init(enc->buf + enc->at, room_left(enc));
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

/* From the channels to the deficits. */
static void close_channels(struct wire_ack_enc *enc)
{
	close_windows(enc);
	if (enc->ndeficits_at)
		return;
	enc->ndeficits_at = enc->at;
	enc->buf[enc->at++] = 0;
}

/* The first block of a message, or of as many of them as one count has room for. */
static int begin_deficit(struct wire_ack_enc *enc, uint32_t message, uint32_t block,
			 uint32_t deficit)
{
	struct wire_writer w = wire_writer_init(enc->buf + enc->at, enc->cap - enc->at);
	int len;

	if (enc->buf[enc->ndeficits_at] == UINT8_MAX)
		return -ENOSPC;
	wire_give_u32(&w, message);
	wire_give_u8(&w, 1);
	wire_give_varint(&w, block);
	wire_give_varint(&w, deficit);
	len = wire_writer_result(&w);
	if (len < 0)
		return len;
	enc->nblocks_at = enc->at + 4;
	enc->message = message;
	enc->buf[enc->ndeficits_at]++;
	return len;
}

static int further_deficit(struct wire_ack_enc *enc, uint32_t block, uint32_t deficit)
{
	struct wire_writer w = wire_writer_init(enc->buf + enc->at, enc->cap - enc->at);
	int len;

	wire_give_varint(&w, block - enc->block - 1);
	wire_give_varint(&w, deficit);
	len = wire_writer_result(&w);
	if (len >= 0)
		enc->buf[enc->nblocks_at]++;
	return len;
}

int wire_ack_deficit_put(struct wire_ack_enc *enc, uint32_t message, uint32_t block,
			 uint32_t deficit)
{
	bool same = enc->nblocks_at && message == enc->message;
	int len;

	if (deficit == 0 || deficit > WIRE_ACK_MAX_DEFICIT || (same && block <= enc->block))
		return -EINVAL;
	close_channels(enc);
	if (same && enc->buf[enc->nblocks_at] < UINT8_MAX)
		len = further_deficit(enc, block, deficit);
	else
		len = begin_deficit(enc, message, block, deficit);
	if (len < 0)
		return len;
	enc->at += (size_t)len;
	enc->block = block;
	return 0;
}

int wire_ack_end(struct wire_ack_enc *enc)
{
	close_channels(enc);
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

/* The message of the deficits that follow; its first block. */
static uint64_t take_deficit_head(struct wire_reader *r, struct wire_ack *ack)
{
	uint32_t message = wire_take_u32(r), block;
	bool full = ack->nblocks_ == UINT8_MAX, first = ack->nblocks_ == 0;

	ack->nblocks_ = ack->blocks_left_ = wire_take_u8(r);
	wire_reader_require(r, ack->nblocks_ != 0);
	block = wire_take_varint32(r);
	wire_reader_require(r, first || message != ack->message_ || (full && block > ack->block_));
	ack->message_ = message;
	ack->deficits_left_--;
	return block;
}

/* ack's own fields say how far the walk is. */
static void take_deficit(struct wire_reader *r, struct wire_ack *ack, struct wire_ack_deficit *out)
{
	uint64_t block;

	if (ack->blocks_left_)
		block = (uint64_t)ack->block_ + 1 + wire_take_varint32(r);
	else
		block = take_deficit_head(r, ack);
	wire_reader_require(r, block <= UINT32_MAX);
	ack->block_ = (uint32_t)block;
	ack->blocks_left_--;
	out->message = ack->message_;
	out->block = ack->block_;
	out->deficit = wire_take_varint32(r);
	wire_reader_require(r, out->deficit >= 1 && out->deficit <= WIRE_ACK_MAX_DEFICIT);
}

static bool deficits_left(const struct wire_ack *ack)
{
	return ack->deficits_left_ || ack->blocks_left_;
}

/* From their count on; ack is ready to walk them again then. */
static void check_deficits(struct wire_reader *r, struct wire_ack *ack)
{
	struct wire_ack_deficit deficit;
	struct wire_ack walk;

	ack->deficits_left_ = wire_take_u8(r);
	ack->deficit_at_ = r->at;
	ack->nblocks_ = ack->blocks_left_ = 0;
	ack->message_ = ack->block_ = 0;
	walk = *ack;
	while (r->err == 0 && deficits_left(&walk))
		take_deficit(r, &walk, &deficit);
}

int wire_ack_open(const uint8_t *body, size_t len, struct wire_ack *out)
{
	struct wire_reader r = wire_reader_init(body, len);
	struct wire_ack_channel channel;
	struct wire_window win;

	if (len < WIRE_ACK_FIXED_BYTES)
		return -EMSGSIZE;
	out->write_below = wire_take_u32(&r);
	out->made_good = wire_take_u32(&r);
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
	check_deficits(&r, out);
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

int wire_ack_next_deficit(struct wire_ack *ack, struct wire_ack_deficit *out)
{
	struct wire_reader r;

	if (!deficits_left(ack))
		return 0;
	r = wire_reader_init(ack->deficit_at_, (size_t)(ack->end_ - ack->deficit_at_));
	take_deficit(&r, ack, out);
	/* As in wire_ack_next_window. */
	if (r.err) {
		ack->deficits_left_ = ack->blocks_left_ = 0;
		return 0;
	}
	ack->deficit_at_ = r.at;
	return 1;
}

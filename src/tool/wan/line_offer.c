/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A frame comes onto the line: each of its segments meets its fate, and runs of segments that
 * share one become pieces.
 */
#include "tool/wan/line_int.h"

#include "base/bits.h"
#include "base/check.h"
#include "base/units.h"

#include <string.h>

/* From here on a frame decides what the next one is expected to be. */
#define BULK_BYTES 4096u

/* A frame on its way onto a channel, and the run of segments that is not a piece yet. */
struct offer {
	struct wan_line *line;
	struct channel *ch;
	struct piece *frame; /* where it was read */
	size_t len;
	struct wan_packet p;
	enum wan_end from;
	uint32_t channel;
	uint64_t span_ns; /* between first and last arrival of a piece */
	uint32_t first, n;
	uint64_t first_ns, last_ns;
	bool ce;
	bool too_large, no_memory;
};

void *wan_line_buffer(struct wan_line *line)
{
	if (!line->buffer) {
		if (line->reading >= line->channel + 2 * line->config.n_paths) {
			slab_close(&line->memory, &line->reading->read); /* its path has gone */
			line->reading = &line->channel[0];
		}
		line->buffer = piece_room(&line->memory, &line->reading->read, WAN_FRAME_MAX);
	}
	return line->buffer ? piece_frame(line->buffer) : NULL;
}

void wan_line_lost(struct wan_line *line, enum wan_end from)
{
	(void)from;
	line->counters.no_memory_frames++;
}

bool line_translate(struct wan_line *line, uint64_t now_ns, void *frame, size_t len,
		    struct wan_packet *p, bool from_inside)
{
	struct wan_port port;
	uint16_t other;

	if (!wan_packet_port(frame, len, p, from_inside, &port) || port.value == 0)
		return true; /* nothing to map, or port 0, which is not mapped */
	/* A quoted port from inside was given in an earlier packet; it is no new flow, but for a
	 * NAT that forgot it, it is as good as one. */
	other = from_inside ? link_nat_out(&line->nat, now_ns, port.proto, port.value)
			    : link_nat_in(&line->nat, now_ns, port.proto, port.value);
	if (!other)
		return false;
	wan_packet_set_port(frame, p, &port, other);
	return true;
}

/* A run that is all of the frame can stay where it was read; any other is copied. */
static struct piece *make_piece(struct offer *o, uint32_t first, uint32_t n, bool may_stay)
{
	struct wan_line *line = o->line;
	uint32_t at = first * o->p.segment_bytes;
	uint32_t payload = (uint32_t)u64_min((uint64_t)n * o->p.segment_bytes,
					     u64_sub_floor(o->p.payload_bytes, at));
	uint32_t len = WAN_VNET_BYTES + o->p.header_bytes + payload;
	bool whole = n == o->p.n_segments;
	struct piece *piece;

	if (whole && may_stay && line->reading == o->ch) {
		piece = o->frame;
		piece_take(piece, o->ch->read, len);
	} else {
		piece = piece_room(&line->memory, &o->ch->fill, len);
		if (!piece)
			return NULL;
		piece_take(piece, o->ch->fill, len);
		if (whole)
			memcpy(piece_frame(piece), piece_frame(o->frame), len);
		else
			wan_packet_cut(piece_frame(o->frame), &o->p, first, n, piece_frame(piece));
	}
	piece->n_segments = n;
	piece->ip_bytes = n * o->p.header_bytes + payload;
	piece->channel = (uint8_t)o->channel;
	piece->to = o->from == WAN_A ? WAN_B : WAN_A;
	return piece;
}

static void send_piece(struct offer *o, struct piece *piece, uint64_t due_ns, bool late)
{
	if (piece && line_push(o->line, piece, due_ns, late))
		return;
	o->no_memory = true;
	if (piece)
		piece_free(&o->line->memory, piece);
}

static void flush(struct offer *o)
{
	struct piece *piece;

	if (o->n == 0)
		return;
	piece = make_piece(o, o->first, o->n, true);
	if (piece && o->ce)
		wan_packet_mark_ce(piece_frame(piece), &o->p);
	send_piece(o, piece, o->last_ns, false);
	o->n = 0;
}

/* A segment with copies, bit errors, or held back: a piece by itself. */
static void send_single(struct offer *o, uint32_t segment, const struct link_fate *fate, bool late)
{
	struct piece *piece;

	for (uint32_t copy = fate->copies; copy-- > 0;) {
		/* The last one made may have the frame itself. */
		piece = make_piece(o, segment, 1, copy == 0);
		if (piece && fate->ce)
			wan_packet_mark_ce(piece_frame(piece), &o->p);
		if (piece && copy == 0 && fate->corrupt)
			wan_packet_corrupt(piece_frame(piece), piece->len, fate->corrupt_bit);
		send_piece(o, piece, fate->deliver_ns[copy], late || copy > 0);
	}
}

/* One segment's fate: it joins the run, ends it, or stands alone. */
static void add_segment(struct offer *o, uint32_t segment, const struct link_fate *fate)
{
	bool ce = fate->ce && o->p.ect;
	uint64_t at = fate->deliver_ns[0];
	bool late;

	if (fate->copies == 0) {
		o->too_large |= fate->lost == LINK_LOST_MTU;
		flush(o);
		return;
	}
	o->ch->unmarked_pkts += fate->ce && !ce;
	late = at > o->ch->link.in_order_ns;
	if (late || fate->copies > 1 || fate->corrupt) {
		flush(o);
		send_single(o, segment, fate, late);
		return;
	}
	if (o->n && (ce != o->ce || at < o->last_ns || at - o->first_ns > o->span_ns))
		flush(o);
	if (o->n == 0) {
		o->first = segment;
		o->first_ns = at;
		o->ce = ce;
	}
	o->n++;
	o->last_ns = at;
}

/* What is left of WAN_PIECE_NS when the piece's first segment has arrived. */
static uint64_t span_ns(uint64_t rate_bps, uint32_t segment_bytes)
{
	uint64_t first_ns;

	if (!rate_bps)
		return WAN_PIECE_NS;
	first_ns = u64_div_up((uint64_t)segment_bytes * 8 * NS_PER_S, rate_bps);
	return u64_sub_floor(WAN_PIECE_NS, first_ns);
}

/* The sender hears at once: the link's first router is beside it. */
static void tell_too_large(struct offer *o, uint64_t now_ns, uint32_t mtu_bytes)
{
	struct wan_line *line = o->line;
	uint8_t error[WAN_TOO_BIG_MAX];
	struct wan_packet p;
	struct piece *piece;
	size_t len = wan_packet_too_big(piece_frame(o->frame), o->len, &o->p, mtu_bytes, error);

	if (!len)
		return;
	/* It quotes the packet as it left the NAT. */
	if (line->config.nat && o->from == WAN_A && !wan_packet_parse(error, len, &p))
		line_translate(line, now_ns, error, len, &p, false);
	piece = piece_room(&line->memory, &o->ch->fill, (uint32_t)len);
	if (piece) {
		piece_take(piece, o->ch->fill, (uint32_t)len);
		memcpy(piece_frame(piece), error, len);
		piece->channel = (uint8_t)o->channel;
		piece->to = (uint8_t)o->from;
		piece->of_line = true;
		line->counters.too_big_told++;
	}
	send_piece(o, piece, now_ns, true);
}

static void offer_segments(struct offer *o, uint64_t now_ns)
{
	struct link_fate fate;

	o->span_ns = span_ns(o->ch->link.attr.rate_bps, wan_packet_segment_bytes(&o->p, 0));
	for (uint32_t i = 0; i < o->p.n_segments; i++) {
		link_offer(&o->ch->link, now_ns, wan_packet_segment_bytes(&o->p, i), &fate);
		add_segment(o, i, &fate);
	}
}

void wan_line_offer(struct wan_line *line, enum wan_end from, uint64_t now_ns, size_t len)
{
	struct offer o = {.line = line, .frame = line->buffer, .len = len, .from = from};
	const struct wan_path *path;
	uint32_t path_no;

	SDR_ASSERT(line->buffer && len <= WAN_FRAME_MAX);
	line->buffer = NULL;
	if (wan_packet_parse(piece_frame(o.frame), len, &o.p)) {
		line->counters.malformed_frames++;
		return;
	}
	line->counters.frames++;
	if (line->config.nat && from == WAN_A)
		line_translate(line, now_ns, piece_frame(o.frame), len, &o.p, true);
	path_no = link_path_of(&o.p.flow, line->config.n_paths, path_seed(line->config.seed, from));
	path = &line->config.path[from][path_no];
	o.channel = channel_of(from, path_no);
	o.ch = &line->channel[o.channel];
	offer_segments(&o, now_ns);
	/* Before the rest of it is made a piece, which may change the frame. */
	if (o.too_large && !path->mtu_silent)
		tell_too_large(&o, now_ns, path->attr.mtu_bytes);
	flush(&o);
	line->counters.no_memory_frames += o.no_memory;
	if (len >= BULK_BYTES)
		line->reading = o.ch;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces in flight: a list for each channel, a heap for what is out of order, and the
 * earliest of all their heads.
 */
#include "tool/wan/line_int.h"

#include "base/bits.h"
#include "base/check.h"

static bool before(const struct piece *a, const struct piece *b)
{
	return a->due.key < b->due.key || (a->due.key == b->due.key && a->due.tie < b->due.tie);
}

/* Into the heap, which doubles when it is full. */
static bool push_late(struct wan_line *line, struct piece *piece, uint64_t due_ns, uint64_t tie)
{
	struct heap *late = &line->late;

	if (late->n == late->cap &&
	    !line_memory_room(&line->memory, late->cap * sizeof(*late->slot)))
		return false;
	if (heap_set(late, &piece->due, due_ns, tie))
		return false;
	line_memory_heap(&line->memory, late->cap * sizeof(*late->slot));
	return true;
}

bool line_push(struct wan_line *line, struct piece *piece, uint64_t due_ns, bool late)
{
	struct channel *ch = &line->channel[piece->channel];
	uint64_t tie = line->n_pieces++;

	if (late || (ch->tail && due_ns < ch->tail->due.key)) {
		if (!push_late(line, piece, due_ns, tie))
			return false;
	} else {
		piece->due.key = due_ns;
		piece->due.tie = tie;
		if (ch->tail)
			ch->tail->next = piece;
		else
			ch->head = piece;
		ch->tail = piece;
		if (ch->head == piece)
			line->head_ns[piece->channel] = due_ns;
	}
	if (!piece->of_line) {
		ch->in_flight_pkts += piece->n_segments;
		ch->in_flight_bytes += piece->ip_bytes;
	}
	return true;
}

/* A node's piece: the node is its first member. */
static struct piece *late_first(const struct wan_line *line)
{
	return (struct piece *)(void *)heap_first(&line->late);
}

static struct piece *first(const struct wan_line *line)
{
	struct piece *best = late_first(line);
	uint64_t best_ns = best ? best->due.key : UINT64_MAX;

	for (uint32_t c = 0; c < line->n_scan * 2; c++) {
		if (line->head_ns[c] > best_ns || !line->channel[c].head)
			continue;
		if (!best || before(line->channel[c].head, best)) {
			best = line->channel[c].head;
			best_ns = best->due.key;
		}
	}
	return best;
}

static void pop(struct wan_line *line, struct piece *piece)
{
	struct channel *ch = &line->channel[piece->channel];

	if (piece->due.pos != HEAP_NONE) {
		heap_remove(&line->late, &piece->due);
	} else {
		SDR_ASSERT(ch->head == piece);
		ch->head = piece->next;
		if (!ch->head)
			ch->tail = NULL;
		line->head_ns[piece->channel] = ch->head ? ch->head->due.key : UINT64_MAX;
	}
	if (!piece->of_line) {
		ch->in_flight_pkts -= piece->n_segments;
		ch->in_flight_bytes -= piece->ip_bytes;
	}
}

uint64_t wan_line_next_ns(const struct wan_line *line)
{
	const struct piece *piece = first(line);

	return piece ? piece->due.key : UINT64_MAX;
}

/* At the NAT's outside. It looks when the packet is there, not when it was sent. */
static bool passes_nat(struct wan_line *line, struct piece *piece)
{
	struct wan_packet p;

	if (!line->config.nat || piece->to != WAN_A || piece->of_line)
		return true;
	/* A bit error may have made it anything. */
	if (wan_packet_parse(piece_frame(piece), piece->len, &p))
		return true;
	if (line_translate(line, piece->due.key, piece_frame(piece), piece->len, &p, false))
		return true;
	line->nat_lost_pkts += piece->n_segments;
	return false;
}

bool wan_line_take(struct wan_line *line, uint64_t now_ns, struct wan_frame *out)
{
	struct piece *piece;

	if (line->taken)
		piece_free(&line->memory, line->taken);
	line->taken = NULL;
	for (;;) {
		piece = first(line);
		if (!piece || piece->due.key > now_ns)
			return false;
		pop(line, piece);
		if (passes_nat(line, piece))
			break;
		piece_free(&line->memory, piece);
	}
	if (!piece->of_line) {
		line->channel[piece->channel].delivered_bytes += piece->ip_bytes;
		line->counters.pieces++;
	}
	line->taken = piece;
	*out = (struct wan_frame){
		.to = (enum wan_end)piece->to,
		.due_ns = piece->due.key,
		.bytes = piece_frame(piece),
		.len = piece->len,
	};
	return true;
}

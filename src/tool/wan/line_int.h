/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of line*.c share.
 *
 *	line.c         creation, new values, figures, what must hold
 *	line_offer.c   a frame's segments meet their fates: pieces
 *	line_queue.c   pieces in flight, by due time
 *	line_memory.c  their memory
 *
 * Pieces of one channel (direction and path) mostly arrive in the order in which they were
 * offered: each channel has a list, and only what overtakes or is held back goes to the heap.
 *
 * Memory is slabs that are filled from the front and are free as a whole when the last piece
 * in them is gone, which works because pieces come and go in almost the same order. Each channel
 * fills slabs of its own, since another one's delay may be far longer. Frames are read straight
 * into a slab of the channel that read last: if the next frame is of the same channel
 * and stays whole, it stays where it is. Channels of paths that have gone fill none.
 */
#ifndef SDR_TOOL_WAN_LINE_INT_H
#define SDR_TOOL_WAN_LINE_INT_H

#include "tool/wan/line.h"
#include "tool/wan/packet.h"

#include "base/heap.h"
#include "link/nat.h"

#define LINE_CHANNELS (2u * LINK_MAX_PATHS)

struct slab {
	struct slab *next;
	uint32_t used; /* bytes behind this head */
	uint32_t live; /* pieces */
	bool open;     /* a channel fills it: not free even when empty */
};

/* A frame in flight; its bytes follow. */
struct piece {
	struct heap_node due; /* key: when; tie: order of coming */
	struct piece *next;   /* in its channel's list */
	struct slab *slab;
	uint32_t len;
	uint32_t n_segments;
	uint32_t ip_bytes; /* of all segments as IP packets */
	uint8_t to;
	uint8_t channel;
	bool of_line; /* the line's own ICMP error: on no channel's account */
};

/* Room for sixteen of the largest frames: those of TCP are hardly smaller, so little is left. */
#define PIECE_ALIGN 16u
#define PIECE_BYTES(len) \
	((sizeof(struct piece) + (len) + PIECE_ALIGN - 1) / PIECE_ALIGN * PIECE_ALIGN)
#define SLAB_ROOM (16u * (uint32_t)PIECE_BYTES(WAN_FRAME_MAX))
#define SLAB_HEAD 64u
#define SLAB_BYTES (SLAB_HEAD + SLAB_ROOM)

struct line_memory {
	const struct sdr_alloc *alloc;
	struct slab *free;
	uint64_t limit_bytes; /* 0: none */
	uint64_t n_used, n_free, peak_bytes;
	uint64_t n_keep;     /* slabs, used and free, that are not given back */
	uint64_t heap_bytes; /* of the heap of pieces, which never shrinks */
};

struct channel {
	struct link link;
	struct piece *head, *tail;
	struct slab *read; /* for frames as they are read */
	struct slab *fill; /* for copies */
	uint64_t delivered_bytes, in_flight_pkts, in_flight_bytes;
	uint64_t unmarked_pkts; /* the queue was long enough, the packet not ECN-capable */
};

/*
 * Invariants: (1) head_ns[c] is the due time of channel c's head, UINT64_MAX where it is empty;
 * (2) a list is in order of (due, tie); (3) each slab counts its pieces, the taken one
 * included; (4) a channel's in-flight figures are the sums over its pieces; (5) channels from
 * 2 * n_scan on are empty; (6) link_check() of each link, link_nat_check().
 */
struct wan_line {
	struct wan_config config;
	const struct sdr_alloc *alloc;
	struct line_memory memory;
	struct channel channel[LINE_CHANNELS];
	uint64_t head_ns[LINE_CHANNELS];
	uint32_t n_scan; /* paths that there have been */
	struct heap late;
	uint64_t n_pieces; /* that there have been: the tie of the next */
	struct link_nat nat;
	struct channel *reading;
	struct piece *buffer; /* handed out for the next frame, in reading->read */
	struct piece *taken;
	uint64_t nat_lost_pkts;
	struct wan_line_counters counters;
};

static inline uint32_t channel_of(enum wan_end from, uint32_t path)
{
	return path * 2 + (uint32_t)from;
}

/* Each link's own, from that of the line. */
static inline uint64_t channel_seed(uint64_t seed, uint32_t channel)
{
	return seed + channel * UINT64_C(0x9e3779b97f4a7c15);
}

/* The routers of the two directions are not the same. */
static inline uint64_t path_seed(uint64_t seed, enum wan_end from)
{
	return seed + (uint64_t)from;
}

static inline uint8_t *piece_frame(struct piece *piece)
{
	return (uint8_t *)(piece + 1);
}

/* line_memory.c */
uint64_t line_memory_bytes(const struct line_memory *m);
void line_memory_fini(struct line_memory *m);
/* Room for a frame of len bytes at the front of what *slab has left, in a new one where that is
 * too little; not taken yet. NULL: no memory. */
struct piece *piece_room(struct line_memory *m, struct slab **slab, uint32_t len);
/* Takes the room. */
void piece_take(struct piece *piece, struct slab *slab, uint32_t len);
void piece_free(struct line_memory *m, struct piece *piece);
void slab_close(struct line_memory *m, struct slab **slab);
/* Has so much at hand from now on, touched, and keeps it; half of the limit at most. */
void line_memory_reserve(struct line_memory *m, uint64_t bytes);
/* Gives spare slabs back until so many bytes more are within the limit; false: too few. */
bool line_memory_room(struct line_memory *m, uint64_t bytes);
/* What the heap takes now. */
void line_memory_heap(struct line_memory *m, uint64_t bytes);

/* line_queue.c */
/* False: no memory; the piece is still the caller's. late: known to be out of order. */
bool line_push(struct wan_line *line, struct piece *piece, uint64_t due_ns, bool late);

/* line_offer.c */
/* The port in the frame, as the NAT has it. False: no mapping, the packet is lost. */
bool line_translate(struct wan_line *line, uint64_t now_ns, void *frame, size_t len,
		    struct wan_packet *p, bool from_inside);

#endif

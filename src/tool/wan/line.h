/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line of `sdr wan`: two ends, N paths each way, packets in flight. Frames in, frames
 * out, in virtual time: no I/O, no clock. Every segment of a super-packet meets its own
 * fate; super-packets are cut where a segment is lost, marked or hit, and where they are longer
 * than WAN_PIECE_NS on the link, so that delay, marks and fairness don't come in quanta of 64 KiB.
 * A piece arrives when its last bit does.
 *
 * One thread. Randomness from the seed alone: the same frames at the same times have the
 * same fates.
 */
#ifndef SDR_TOOL_WAN_LINE_H
#define SDR_TOOL_WAN_LINE_H

#include "base/alloc.h"
#include "link/link.h"
#include "link/paths.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WAN_PIECE_NS UINT64_C(100000)
#define WAN_MAX_DROPS 256u
#define WAN_MAX_BLACKOUTS 64u
/* Memory is taken in steps of 1 MiB, and each path has up to two of them open in each direction. */
#define WAN_MEMORY_MIN(n_paths) (UINT64_C(5) * 1024 * 1024 * (n_paths))

enum wan_end { WAN_A, WAN_B };

/* One direction of one path. The lists of attr are ignored: these are taken. */
struct wan_path {
	struct link_attr attr;
	bool mtu_silent; /* too large: no ICMP error, a black hole */
	uint64_t drop[WAN_MAX_DROPS];
	size_t n_drop;
	struct link_blackout blackout[WAN_MAX_BLACKOUTS];
	size_t n_blackout;
};

struct wan_config {
	uint64_t seed;
	uint32_t n_paths; /* 1 .. LINK_MAX_PATHS */
	bool nat;	  /* end a is behind a NAT */
	uint64_t nat_timeout_ns, nat_every_ns;
	uint64_t memory_bytes;			 /* of packets in flight; 0: no limit; else at
						  * least WAN_MEMORY_MIN(n_paths) */
	struct wan_path path[2][LINK_MAX_PATHS]; /* [from end][path] */
};

struct wan_line;

/*
 * 0; -EINVAL: n_paths, or as link_attr_check(); -ERANGE: too many drops or blackouts, too little
 * memory, or as link_attr_check(); -ENOMEM. config is copied.
 */
int wan_line_create(const struct wan_config *config, uint64_t now_ns, const struct sdr_alloc *alloc,
		    struct wan_line **out);
void wan_line_destroy(struct wan_line *line);
/*
 * New values from now on: packets in flight keep their fates, random state and counters go on
 * (seed is ignored), drop lists count from here. Paths may come and go: those that went deliver
 * what they have. Errors as create; on an error nothing has changed.
 */
int wan_line_set(struct wan_line *line, uint64_t now_ns, const struct wan_config *config);
/* Keeps so much memory at hand, already touched: packets do not wait for page faults. */
void wan_line_reserve(struct wan_line *line, uint64_t bytes);
const struct wan_config *wan_line_config(const struct wan_line *line);
/* The NAT forgets its mappings now. */
void wan_line_rebind(struct wan_line *line);

/* Room of WAN_FRAME_MAX bytes for the next frame; the same until it is offered. NULL: no
 * memory: read the frame into something else and call wan_line_lost(). */
void *wan_line_buffer(struct wan_line *line);
/* The frame in the buffer, len bytes, comes onto the line. */
void wan_line_offer(struct wan_line *line, enum wan_end from, uint64_t now_ns, size_t len);
/* A frame that had no room. */
void wan_line_lost(struct wan_line *line, enum wan_end from);

struct wan_frame {
	enum wan_end to;
	uint64_t due_ns;
	const void *bytes;
	size_t len;
};
/* When the next frame is due; UINT64_MAX: nothing is in flight. */
uint64_t wan_line_next_ns(const struct wan_line *line);
/* The next frame that is due, good until the next take, set or destroy; false: none is due. */
bool wan_line_take(struct wan_line *line, uint64_t now_ns, struct wan_frame *out);

struct wan_dir_stat {
	struct link_counters link; /* packets are segments; bytes are those of IP packets */
	uint64_t delivered_bytes;  /* taken */
	uint64_t queued_bytes;	   /* now */
	uint64_t in_flight_pkts, in_flight_bytes;
};
/* One direction of one path. */
void wan_line_stat(const struct wan_line *line, enum wan_end from, uint32_t path, uint64_t now_ns,
		   struct wan_dir_stat *out);

struct wan_line_counters {
	uint64_t frames, pieces; /* super-packets in, out (ICMP errors of the line are no pieces) */
	uint64_t malformed_frames; /* not carried */
	uint64_t no_memory_frames; /* lost for want of room: a measurement is void */
	uint64_t nat_rebinds, nat_lost_pkts;
	uint64_t too_big_told; /* ICMP errors sent */
	uint64_t memory_bytes, memory_peak_bytes;
};
void wan_line_counters(const struct wan_line *line, struct wan_line_counters *out);
void wan_line_check(const struct wan_line *line);

#endif

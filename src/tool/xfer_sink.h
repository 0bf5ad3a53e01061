/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiver's side of the frames: turns blocks into files below a directory.
 * A file is written as NAME.part (NAME.1.part ... if that exists) and gets its name only
 * when its digest is right; a failed one is removed. Failures of entries are said, told
 * to the sender through the outbox, and the rest goes on. Knows nothing of the
 * connection.
 *
 * Invariant: at most one .part file is open or left, `part`, while fd >= 0.
 */
#ifndef SDR_TOOL_XFER_SINK_H
#define SDR_TOOL_XFER_SINK_H

#include "tool/digest.h"
#include "tool/xfer_proto.h"

#include <limits.h>

/* Frames for the sender, until they are sent. */
struct outbox {
	uint8_t *buf;
	size_t used, cap;
};
#define OUTBOX_MAX (1u << 20)

struct sink_opts {
	int overwrite, print_sums;
};

struct xfer_sink {
	int top; /* the directory; the caller's */
	const char *top_name;
	struct sink_opts opts;
	struct outbox outbox;
	struct digest digest;
	int64_t last_index; /* of the newest entry; -1 at first */
	int in_file;	    /* between FILE and END, written or thrown away */
	int fd;		    /* -1: thrown away */
	int dir;	    /* the open file's directory */
	char part[NAME_MAX + 1];
	const char *name; /* within entry.path */
	uint64_t offset;
	struct xfer_entry entry;
	uint64_t taken_bytes;	  /* for progress */
	uint64_t failed, skipped; /* here; by the sender */
	struct xfer_sum sum;	  /* files and bytes that are whole */
	int done;
};

/* top is an open directory, top_name its name for messages. 0 or -ENOMEM. */
int xfer_sink_init(struct xfer_sink *sink, int top, const char *top_name,
		   const struct sink_opts *opts);
/* Takes a message; -EBADMSG: it is not one of this protocol. */
int xfer_sink_block(struct xfer_sink *sink, const uint8_t *block, size_t len);
/* The transfer has ended: an open .part file is removed and its name said. */
void xfer_sink_fini(struct xfer_sink *sink);

#endif

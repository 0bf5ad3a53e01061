/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sender's side of the frames: turns a list into blocks, reading files by pread()
 * straight into them. A file that cannot be read to its promised end is said, its END
 * tells the receiver, and the next one follows. Knows nothing of the connection.
 */
#ifndef SDR_TOOL_XFER_SOURCE_H
#define SDR_TOOL_XFER_SOURCE_H

#include "tool/digest.h"
#include "tool/xfer_list.h"

#include <sys/stat.h>

struct xfer_source {
	struct xfer_list *list;
	size_t next; /* entry to open next; the one that is open is next - 1 */
	int fd;	     /* of the open file, or -1 */
	struct stat st;
	uint64_t offset;
	struct digest digest;
	uint64_t failed;       /* entries of the list that failed here */
	uint64_t files, bytes; /* sent whole */
	uint64_t read_bytes;   /* of files, whole or not: for progress */
	int print_sums;	       /* a line for each file as sha256sum prints */
	int done;	       /* DONE is in a block */
};

int xfer_source_init(struct xfer_source *src, struct xfer_list *list);
void xfer_source_fini(struct xfer_source *src);
/* Fills the block; returns how many bytes (0 once done). */
size_t xfer_source_fill(struct xfer_source *src, uint8_t *block, size_t cap);
/* The receiver has failed on an entry: no more of it. */
void xfer_source_skip(struct xfer_source *src, uint32_t index);

#endif

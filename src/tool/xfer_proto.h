/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file transfer's frames: what `sdr send` and `sdr recv` say to each other after
 * hello and greeting. Bytes in and out, nothing else: no files, no connection.
 *
 * A message is a block of frames; a frame never spans messages, so small files share a
 * message and a large file fills one after the other. All big endian.
 *
 *	 0       1       2               4               8              12
 *	+-------+-------+---------------+---------------+---------------+----
 *	| type  |   0   |       0       | body's length | entry's index | body
 *	+-------+-------+---------------+---------------+---------------+----
 *
 *	sender     FILE DIR LINK DIR_END   entry: mode u32, size u64, mtime s i64,
 *	                                   mtime ns u32, path length u16, target
 *	                                   length u16, path, target
 *	           DATA                    the file's next bytes
 *	           END                     status u16, SHA-256 (32 bytes), text
 *	           DONE                    files u32, failed u32, bytes u64
 *	receiver   RESULT                  status u16, text: an entry failed there
 *	           SUMMARY                 files u32, failed u32, bytes u64, SHA-256
 *
 * An entry: FILE, its DATA in order, END; or DIR, LINK, DIR_END alone. Indices rise.
 * The hello's arguments: block bytes, blocks in flight, entries, bytes.
 */
#ifndef SDR_TOOL_XFER_PROTO_H
#define SDR_TOOL_XFER_PROTO_H

#include <stddef.h>
#include <stdint.h>

#define XFER_FRAME_BYTES 12u
#define XFER_PATH_MAX 4095u
#define XFER_TEXT_MAX 1000u
#define XFER_DIGEST 32u
/* Room that any frame but DATA fits in: an entry with the longest path and target. */
#define XFER_FRAME_MAX (XFER_FRAME_BYTES + 28u + 2u * XFER_PATH_MAX)

#define XFER_BLOCK_MIN (64u << 10)
#define XFER_BLOCK_DEFAULT (4u << 20)
#define XFER_BLOCK_MAX (16u << 20)
#define XFER_DEPTH_MAX 256u
#define XFER_MEMORY_MAX (UINT64_C(512) << 20) /* blocks of one transfer, each end */
#define XFER_REPLY_BYTES (64u << 10)
#define XFER_REPLIES 8u /* receives that the sender keeps posted for replies */

enum xfer_hello_arg { XFER_ARG_BLOCK, XFER_ARG_DEPTH, XFER_ARG_ENTRIES, XFER_ARG_BYTES };

enum xfer_type {
	XFER_FILE = 1,
	XFER_DIR = 2,
	XFER_LINK = 3,
	XFER_DIR_END = 4,
	XFER_DATA = 5,
	XFER_END = 6,
	XFER_DONE = 7,
	XFER_RESULT = 16,
	XFER_SUMMARY = 17,
};

enum xfer_status {
	XFER_OK = 0,
	XFER_FAILED = 1,
};

struct xfer_frame {
	uint8_t type;
	uint32_t index;
	uint32_t len;
	const uint8_t *body;
};

struct xfer_entry {
	uint32_t mode; /* permission bits only */
	uint64_t size;
	int64_t mtime_s;
	uint32_t mtime_ns;
	char path[XFER_PATH_MAX + 1];
	char target[XFER_PATH_MAX + 1]; /* of a LINK */
};

struct xfer_end {
	uint16_t status;
	uint8_t digest[XFER_DIGEST];
	char text[XFER_TEXT_MAX + 1];
};

struct xfer_sum {
	uint32_t files, failed;
	uint64_t bytes;
	uint8_t digest[XFER_DIGEST]; /* SUMMARY only */
};

/* Each writes a whole frame at buf (XFER_FRAME_MAX bytes are enough), returns its length. */
size_t xfer_put_entry(uint8_t *buf, enum xfer_type type, uint32_t index,
		      const struct xfer_entry *e);
size_t xfer_put_end(uint8_t *buf, uint32_t index, const struct xfer_end *end);
size_t xfer_put_result(uint8_t *buf, uint32_t index, uint16_t status, const char *text);
size_t xfer_put_sum(uint8_t *buf, enum xfer_type type, const struct xfer_sum *sum);
/* Only the header; the caller puts len bytes behind it. */
size_t xfer_put_data(uint8_t *buf, uint32_t index, uint32_t len);

/* Takes the frame at *at, advances; 1, 0 at the end of the block, -EBADMSG. */
int xfer_next(const uint8_t *block, size_t len, size_t *at, struct xfer_frame *f);
/* 0 or -EBADMSG. Paths are NUL-free here; whether they are safe is xfer_path.h's. */
int xfer_get_entry(const struct xfer_frame *f, struct xfer_entry *e);
int xfer_get_end(const struct xfer_frame *f, struct xfer_end *end);
int xfer_get_result(const struct xfer_frame *f, uint16_t *status, char text[XFER_TEXT_MAX + 1]);
int xfer_get_sum(const struct xfer_frame *f, struct xfer_sum *sum);

#endif

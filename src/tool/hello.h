/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first message each way on a connection of the `sdr` command, so that two ends that
 * do not fit (perf against recv, or of different versions) say so at once.
 *
 *	client, 64 bytes:  "SDRA" | version u16 | kind u16 | 7 x u64
 *	server, at least 8: "SDRB" | version u16 | status u16 | text why it refuses
 *
 * All big endian. Knows the bytes only; session.c carries them.
 */
#ifndef SDR_TOOL_HELLO_H
#define SDR_TOOL_HELLO_H

#include <stddef.h>
#include <stdint.h>

#define HELLO_VERSION 1u
#define HELLO_BYTES 64u
#define HELLO_ARGS 7u
#define GREETING_MAX 1024u

enum hello_kind {
	HELLO_NONE = 0,
	HELLO_XFER = 1, /* sdr send to sdr recv */
	HELLO_PERF = 2,
};

struct hello {
	uint16_t version;
	uint16_t kind;
	uint64_t arg[HELLO_ARGS]; /* what they mean is the kind's */
};

struct greeting {
	uint16_t version;
	uint16_t refused; /* 0: welcome */
	char text[GREETING_MAX];
};

void hello_put(const struct hello *h, uint8_t buf[HELLO_BYTES]);
/* 0, or -EBADMSG: no hello of this command. Any version decodes. */
int hello_get(const uint8_t *buf, size_t len, struct hello *h);
/* Returns the length, at most GREETING_MAX; text NULL: welcome. */
size_t greeting_put(const char *text, uint8_t buf[GREETING_MAX]);
int greeting_get(const uint8_t *buf, size_t len, struct greeting *g);

#endif

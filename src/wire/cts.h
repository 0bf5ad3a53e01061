/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CTS: which messages may be sent, and which have ended.
 *
 *	| granted_upto 4 | done_below 4 | recent_early 8 | nwords 1 |
 *	| done 8 x nwords | early 8 x nwords |
 *	| first 4 | n 1 | n entries |
 *
 *	entry: | receive v | kind 1 | offset v | length v | room v | key_len 1 | key |
 *
 * v is a varint (unsigned LEB128, at most 64 bits). State, not events: a receiver
 * merges it (maxima, OR), so that datagrams may come in any order.
 * Knows nothing of how grants are made.
 */
#ifndef SDR_WIRE_CTS_H
#define SDR_WIRE_CTS_H

#include <stddef.h>
#include <stdint.h>

#define WIRE_CTS_MAX_WORDS 16
#define WIRE_CTS_MAX_ENTRIES 64
#define WIRE_CTS_MAX_KEY_BYTES 32
/* Granted-up-to to n, without words and entries. */
#define WIRE_CTS_FIXED_BYTES 22

enum wire_cts_kind { WIRE_CTS_DATA = 0, WIRE_CTS_PARITY = 1 };

/* What message first + i is for. */
struct wire_cts_entry {
	uint32_t receive;
	uint8_t kind; /* enum wire_cts_kind; later kinds are passed through */
	uint8_t key_len;
	uint64_t offset;
	uint64_t length;
	uint64_t room; /* parity packets */
	uint8_t key[WIRE_CTS_MAX_KEY_BYTES];
};

struct wire_cts {
	uint32_t granted_upto; /* exclusive: messages below it may be sent */
	uint32_t done_below;   /* all messages below it have ended */
	uint64_t recent_early; /* bit i: message done_below - 1 - i ended early */
	uint8_t nwords;
	uint64_t done[WIRE_CTS_MAX_WORDS];  /* bit i of the array: message done_below + i ended */
	uint64_t early[WIRE_CTS_MAX_WORDS]; /* of those: ended early; a subset of done */
	uint32_t first;
	uint8_t n;
	struct wire_cts_entry entries[WIRE_CTS_MAX_ENTRIES];
};

/* Body bytes, -ENOSPC, or -EINVAL (a count above its maximum). */
int wire_cts_put(uint8_t *buf, size_t cap, const struct wire_cts *cts);

/* How many of the entries, from the first on, fit into a body of cap bytes. */
unsigned int wire_cts_fit(const struct wire_cts *cts, size_t cap);

/* 0, -EMSGSIZE, -EBADMSG (also for an early bit without its done bit). */
int wire_cts_get(const uint8_t *body, size_t len, struct wire_cts *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The short control messages' bodies: fixed layouts, drawn at each struct with the
 * bytes of each field. CTS and ACK have files of their own.
 *
 * wire_X_put writes the body only (length or -ENOSPC); wire_msg_put or
 * wire_msg_put_header frames it. wire_X_get: 0, -EMSGSIZE or -EBADMSG.
 * Knows nothing of when a message is sent or what it does.
 */
#ifndef SDR_WIRE_MSG_H
#define SDR_WIRE_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* PING | nonce 8 | */
struct wire_ping {
	uint64_t nonce;
};

/* PONG | nonce 8 | hold_ns 4 |   hold: PING in to PONG out, UINT32_MAX where longer */
struct wire_pong {
	uint64_t nonce;
	uint32_t hold_ns;
};

/* PAYLOAD, PAYLOAD_ECHO | from 4 | size 4 |   from message `from` on, packets of `size` */
struct wire_payload {
	uint32_t from;
	uint32_t size; /* 1 .. 65535 */
};

/* CTS_ECHO, WANT, ABORT | number 4 |   granted up to (exclusive); message; message */
struct wire_number {
	uint32_t number;
};

/*
 * WRITE | write 4 | length 8 | imm 4 | has_imm 1 | code 1 | k 2 | m 2 | depth 4 |
 *       | span_start 8 |   the same of further writes |
 * These put and get one of them. code 0 is none, and k, m and depth then mean nothing; otherwise k
 * and depth are not 0.
 */
#define WIRE_WRITE_BYTES 34
struct wire_write {
	uint32_t write;
	uint64_t length;
	uint32_t imm;
	bool has_imm;
	uint8_t code;
	uint16_t k;
	uint16_t m;
	uint32_t depth;
	uint64_t span_start;
};

/* CLOSE, CLOSE_ECHO | done_below 4 | reason 4 | */
struct wire_close {
	uint32_t done_below;
	uint32_t reason;
};

/* RESET | reason 4 | */
struct wire_reset {
	uint32_t reason;
};

/*
 * TRAIN | train 1 | index 1 | count 2 | padding |
 * Packet `index` of `count` that are sent back to back; the padding makes them full size.
 */
struct wire_train {
	uint8_t train;
	uint8_t index;	/* below count */
	uint16_t count; /* 1 .. 256 */
};

/*
 * TRAIN_SEEN | n 1 | n x { train 1, packets 1, steps 1, stamps 1, span_ns 4 } |
 * What arrived of a train after the packets that were read first (all at one time): how
 * many, how far the index went, at how many different times, and in what time.
 */
#define WIRE_TRAINS_MAX 8
struct wire_train_seen {
	uint8_t n; /* 1 .. WIRE_TRAINS_MAX */
	struct wire_train_span {
		uint8_t train;
		uint8_t packets;
		uint8_t steps;
		uint8_t stamps; /* not above packets */
		uint32_t span_ns;
	} span[WIRE_TRAINS_MAX];
};

int wire_ping_put(uint8_t *buf, size_t cap, const struct wire_ping *ping);
int wire_ping_get(const uint8_t *body, size_t len, struct wire_ping *out);
int wire_pong_put(uint8_t *buf, size_t cap, const struct wire_pong *pong);
int wire_pong_get(const uint8_t *body, size_t len, struct wire_pong *out);
int wire_payload_put(uint8_t *buf, size_t cap, const struct wire_payload *payload);
int wire_payload_get(const uint8_t *body, size_t len, struct wire_payload *out);
int wire_number_put(uint8_t *buf, size_t cap, const struct wire_number *number);
int wire_number_get(const uint8_t *body, size_t len, struct wire_number *out);
int wire_write_put(uint8_t *buf, size_t cap, const struct wire_write *write);
int wire_write_get(const uint8_t *body, size_t len, struct wire_write *out);
int wire_close_put(uint8_t *buf, size_t cap, const struct wire_close *close);
int wire_close_get(const uint8_t *body, size_t len, struct wire_close *out);
int wire_reset_put(uint8_t *buf, size_t cap, const struct wire_reset *reset);
int wire_reset_get(const uint8_t *body, size_t len, struct wire_reset *out);
int wire_train_put(uint8_t *buf, size_t cap, const struct wire_train *train);
int wire_train_get(const uint8_t *body, size_t len, struct wire_train *out);
int wire_train_seen_put(uint8_t *buf, size_t cap, const struct wire_train_seen *seen);
int wire_train_seen_get(const uint8_t *body, size_t len, struct wire_train_seen *out);

#endif

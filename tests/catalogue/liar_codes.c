/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios of a peer that lies about codes: deficits of blocks that there are not, WRITEs with
 * codes that cannot be, parity where there is no room for it.
 */
#include "liar.h"

#include "wire/ack.h"

#include <stdio.h>
#include <string.h>

#define PKTS 300u
#define SIZE (PKTS * LAB_PAYLOAD)
#define WRITES 4u

/* ---- deficits ---- */

/* An ACK: some packets of a message are there, and these blocks lack so much. */
static void accuse(struct liar *v, struct rng *rng, uint32_t message, uint32_t block)
{
	static uint64_t bits[8];
	uint32_t sent = (uint32_t)lab_info(v->l, 1).tx_pkts;
	struct wire_ack_channel fact = {.flags = WIRE_ACK_PSN_VALID,
					.newest_psn = (v->start_psn + sent - 1) & 0xffffff,
					.received = sent};
	struct wire_ack_enc enc;
	uint8_t body[SDR_MAX_CTRL_BYTES];

	for (uint32_t i = 0; i < SDR_ARRAY_LEN(bits); i++)
		bits[i] = rng_next(rng) | rng_next(rng);
	assert_int_equal(wire_ack_begin(&enc, body, sizeof(body), 0, 1), 0);
	(void)wire_ack_window_from_bits(&enc, 2 * (uint32_t)rng_below(rng, WRITES), 0,
					(uint32_t)rng_below(rng, PKTS), bits);
	assert_int_equal(wire_ack_channel_put(&enc, &fact), 0);
	for (uint32_t i = 0; i < 20 && block + i >= block; i++)
		(void)wire_ack_deficit_put(&enc, message, block + i,
					   1 + (uint32_t)rng_below(rng, 255));
	liar_say(v, CONN_CTRL_ACK, body, (size_t)wire_ack_end(&enc));
}

/*
 * Deficits of blocks that do not exist, of messages that are parity or never were, of all that a
 * number can say, again and again: they buy no more packets than the rate, and end nothing.
 */
void deficit_lie(struct lab *l)
{
	struct liar v = {0};
	struct lab_flow *f;
	uint64_t began, sent;

	l->attr.scheme = l->arg[0] > 0 ? "ec:32,8,repair=parity" : "ec:32,8";
	liar_open(l, &v);
	liar_up(&v);
	f = liar_victim_writes(l, WRITES, SIZE);
	liar_grant(&v, 2 * WRITES, SIZE, MIB);
	liar_run(&v, 60 * MS);
	began = lab_now(l);
	sent = lab_info(l, 1).tx_pkts;
	assert_true(sent > 0);
	for (uint32_t i = 0; i < 2000; i++) {
		uint32_t message = (uint32_t)(rng_next(&l->rng) >> rng_below(&l->rng, 64));
		uint32_t block = (uint32_t)(rng_next(&l->rng) >> rng_below(&l->rng, 64));

		accuse(&v, &l->rng, message % 4 ? message % (2 * WRITES + 2) : message, block);
		if (i % 4 == 0)
			liar_run(&v, MS);
		rel_tx_check(&l->p.conn[1]->tx);
	}
	sent = lab_info(l, 1).tx_pkts - sent;
	assert_int_equal(f->ended[0], 0);
	assert_true(liar_lies(l) > 100);
	snprintf(l->note, sizeof(l->note), "%llu lies seen, %llu packets sent",
		 (unsigned long long)liar_lies(l), (unsigned long long)sent);
	assert_true((double)sent * LAB_PAYLOAD * 8 <
		    1.2 * 90e6 * (double)(lab_now(l) - began + 10 * MS) / 1e9);
	liar_close(l, &v);
}

/* ---- WRITE ---- */

static struct lab_flow *victim_reads(struct lab *l)
{
	struct lab_flow *f = lab_flow(l, 0, WRITES, SIZE, WRITES);

	f->conn[0] = NULL;
	f->conn[1] = l->p.conn[1];
	return f;
}

static void claim(struct liar *v, const struct wire_write *write)
{
	uint8_t body[WIRE_WRITE_BYTES];

	assert_int_equal(wire_write_put(body, sizeof(body), write), WIRE_WRITE_BYTES);
	liar_say(v, CONN_CTRL_WRITE, body, sizeof(body));
}

static const struct wire_write honest = {
	.length = SIZE, .code = REL_CODE_RS, .k = 32, .m = 8, .depth = 1};

/* In one of the ways in which a WRITE cannot be. */
static struct wire_write impossible(struct rng *rng)
{
	struct wire_write write = honest;

	switch (rng_below(rng, 6)) {
	case 0:
		write.k = 248;
		write.m = (uint16_t)(8 + rng_below(rng, 60000));
		break;
	case 1:
		write.length = SIZE + 1 + (rng_next(rng) >> 1 >> rng_below(rng, 60));
		break;
	case 2:
		write.span_start = PKTS + (rng_next(rng) >> 1 >> rng_below(rng, 60));
		break;
	case 3:
		write.code = (uint8_t)(3 + rng_below(rng, 253));
		break;
	case 4:
		write.code = REL_CODE_XOR;
		write.m = 33;
		break;
	default:
		write.m = 0;
		write.length -= 1 + rng_below(rng, SIZE / 2); /* must not be believed either */
		break;
	}
	return write;
}

/* All packets of the writes, in trains of 10. */
static void tell_the_truth(struct liar *v, const struct lab_flow *f)
{
	for (uint32_t i = 0; i < WRITES; i++) {
		for (uint64_t at = 0; at < SIZE; at += 10 * LAB_PAYLOAD)
			liar_throw(v, 2 * i, at, f->src + (size_t)i * 8 + at, LAB_PAYLOAD, 10);
	}
}

/* WRITEs that cannot be change nothing, nor does a second one after one that can. */
void write_lie(struct lab *l)
{
	struct liar v = {0};
	struct wire_write write;
	struct lab_flow *f;
	uint64_t bad;

	l->attr.pair = 1;
	liar_open(l, &v);
	liar_up(&v);
	f = victim_reads(l);
	liar_run(&v, 10 * MS);
	assert_int_equal(lab_info(l, 1).recvs_paired, 1);
	for (uint32_t i = 0; i < 2000; i++) {
		write = impossible(&l->rng);
		write.write = i % WRITES;
		claim(&v, &write);
		write.write = WRITES + (uint32_t)rng_next(&l->rng) / 2;
		claim(&v, &write);
		if (i % 16 == 0)
			liar_run(&v, MS);
	}
	liar_run(&v, 100 * MS);
	bad = l->p.conn[1]->stats.bad_writes;
	assert_int_equal(bad, 2000);
	for (uint32_t i = 0; i < WRITES / 2; i++) {
		write = honest;
		write.write = i;
		claim(&v, &write);
		write.k = 31;
		claim(&v, &write);
	}
	liar_run(&v, 100 * MS);
	assert_int_equal(l->p.conn[1]->stats.bad_writes, bad + WRITES / 2);
	tell_the_truth(&v, f);
	liar_run(&v, 100 * MS);
	assert_int_equal(f->good[1], WRITES);
	snprintf(l->note, sizeof(l->note), "%llu WRITEs refused",
		 (unsigned long long)l->p.conn[1]->stats.bad_writes);
	liar_close(l, &v);
}

/* ---- parity ---- */

/*
 * Parity beyond the room that there is for it, and parity of writes that have no code, from before
 * and after the data: none of it goes anywhere.
 */
void parity_lie(struct lab *l)
{
	static uint8_t junk[4 * LAB_PAYLOAD];
	struct liar v = {0};
	struct lab_flow *f;
	uint64_t refused;

	l->attr.pair = 1;
	liar_open(l, &v);
	liar_up(&v);
	f = victim_reads(l);
	memset(junk, 0x11, sizeof(junk));
	liar_run(&v, 10 * MS);
	for (uint32_t i = 0; i < 2000; i++) {
		/* The room is for less than half of the packets. */
		uint64_t packet = PKTS / 2 + (rng_next(&l->rng) >> 12 >> rng_below(&l->rng, 52));

		liar_throw(&v, 1 + 2 * (i % WRITES), packet * LAB_PAYLOAD, junk, LAB_PAYLOAD,
			   1 + (uint32_t)rng_below(&l->rng, 4));
		if (i % 16 == 0)
			liar_run(&v, MS);
	}
	liar_run(&v, 100 * MS);
	refused = lab_counter(l, 1, SDR_CTR_rx_range);
	assert_true(refused >= 2000);
	for (uint32_t i = 0; i < WRITES; i++)
		liar_throw(&v, 1 + 2 * i, 0, junk, LAB_PAYLOAD, 4);
	liar_run(&v, 100 * MS);
	assert_int_equal(lab_info(l, 1).rx_decoded_pkts, 0);
	assert_int_equal(f->ended[1], 0);
	tell_the_truth(&v, f);
	liar_run(&v, 100 * MS);
	assert_int_equal(f->good[1], WRITES);
	for (uint32_t i = 0; i < WRITES; i++)
		liar_throw(&v, 1 + 2 * i, 4 * LAB_PAYLOAD, junk, LAB_PAYLOAD, 4);
	liar_run(&v, 100 * MS);
	assert_int_equal(lab_info(l, 1).parity_bytes, 0);
	snprintf(l->note, sizeof(l->note), "%llu packets refused", (unsigned long long)refused);
	liar_close(l, &v);
}

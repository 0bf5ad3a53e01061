/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of trains: what may stand next to what in one super-packet. */
#include "fabric/deliver.h"

#include "base/bits.h"
#include "wire/wire.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define PAYLOAD 16u
#define NPKTS 200u
#define SLOTS 4u
#define QPN 0x1234u
#define TOKEN UINT64_C(0xfeedface12345678)
#define PKT_BYTES (WIRE_DATA_HDR_BYTES + PAYLOAD + WIRE_TRAILER_BYTES)

struct rig {
	struct rx_slot slots[SLOTS];
	struct rx_worker rxw;
	struct rx_table table;
	uint64_t words[SLOTS][16];
	uint8_t mem[SLOTS][NPKTS * PAYLOAD];
	struct deliver_qp qp;
	struct deliver_worker w;
	struct deliver_facts facts;
	/* The train being made, as one buffer. */
	uint8_t buf[(DELIVER_MAX_TRAIN + 8) * PKT_BYTES];
	size_t len;
	struct deliver_pkt pkt[DELIVER_MAX_TRAIN + 8];
	unsigned int n;
};

static int rig_setup(void **state)
{
	struct rig *r = aligned_alloc(64, u64_div_up(sizeof(*r), 64) * 64);

	assert_non_null(r);
	memset(r, 0, sizeof(*r));
	rx_worker_init(&r->rxw);
	assert_int_equal(rx_table_init(&r->table, r->slots, SLOTS, UINT32_MAX, &r->rxw, 1, 0), 0);
	deliver_worker_init(&r->w, 0);
	deliver_qp_init(&r->qp, QPN, TOKEN, &r->table);
	for (uint32_t m = 0; m < SLOTS - 1; m++) { /* message 3 is not bound */
		struct fabric_bind b = {.rx = {.base = r->mem[m],
					       .len = NPKTS * PAYLOAD,
					       .payload = PAYLOAD,
					       .imm_frags = 1,
					       .words = r->words[m]}};

		assert_true(rx_bind_words(NPKTS * PAYLOAD, PAYLOAD, 0) <= 16);
		assert_int_equal(deliver_bind(&r->qp, m, &b, NULL), 0);
	}
	*state = r;
	return 0;
}

static int rig_teardown(void **state)
{
	free(*state);
	return 0;
}

static void seal(uint8_t *pkt, size_t unsealed)
{
	struct protect_packet whole = {.hdr = pkt, .hdr_len = unsealed};
	struct protect_key key;

	protect_checksum_key(&key, TOKEN);
	protect_seal(&key, &whole, pkt + unsealed);
}

/* Adds a packet of `length` bytes, each of value psn. */
static uint8_t *add(struct rig *r, uint32_t qpn, uint32_t message, uint32_t packet, uint32_t length,
		    uint32_t psn)
{
	struct wire_data_template tmpl;
	uint8_t *pkt = r->buf + r->len;

	wire_data_template_sdr(&tmpl, qpn, message, 100 + message);
	wire_data_put(pkt, &tmpl, psn, (uint64_t)packet * PAYLOAD, length);
	memset(pkt + WIRE_DATA_HDR_BYTES, (int)psn, length);
	memset(pkt + WIRE_DATA_HDR_BYTES + length, 0, wire_pad_bytes(length));
	seal(pkt, WIRE_DATA_HDR_BYTES + length + wire_pad_bytes(length));
	r->len += wire_data_packet_bytes(length);
	r->pkt[r->n++] = (struct deliver_pkt){
		.bytes = pkt, .len = (uint32_t)wire_data_packet_bytes(length), .at_ns = 5};
	return pkt;
}

/* Delivers the train; how many packets were consumed. */
static unsigned int deliver(struct rig *r)
{
	unsigned int used = deliver_data(&r->w, &r->qp, 1, NULL, r->pkt, r->n, &r->facts);

	assert_in_range(used, 1, r->n);
	/* Nobody stays inside. */
	assert_int_equal(atomic_load(&r->rxw.in), 0);
	for (uint32_t i = 0; i < SLOTS - 1; i++)
		assert_int_equal(rx_slot_check(&r->slots[i], true), 0);
	r->len = 0;
	r->n = 0;
	return used;
}

static bool has(const struct rig *r, uint32_t message, uint32_t packet)
{
	uint64_t bit;

	rx_bits_get(&r->slots[message], packet, 1, &bit);
	return bit;
}

static uint32_t count_bits(const struct rig *r, uint32_t message)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < NPKTS; i++)
		n += has(r, message, i);
	return n;
}

static uint64_t counter(const struct rig *r, enum sdr_counter which)
{
	uint64_t sum[SDR_CTR_COUNT] = {0};

	deliver_counters_add(&r->w, sum);
	return sum[which];
}

static struct fabric_channel_facts facts(const struct rig *r)
{
	struct fabric_channel_facts f = {0};

	deliver_channel_facts(&r->qp, 1, 12, &f);
	return f;
}

static void assert_value(const struct rig *r, uint32_t message, uint32_t packet, uint8_t value)
{
	for (uint32_t i = 0; i < PAYLOAD; i++)
		assert_int_equal(r->mem[message][packet * PAYLOAD + i], value);
}

static void test_split(void **state)
{
	struct deliver_pkt pkt[DELIVER_MAX_TRAIN];
	uint8_t buf[100 * 8] = {0};

	(void)state;
	assert_int_equal(deliver_split(buf, 0, 0, false, 0, pkt), 1);
	assert_int_equal(pkt[0].len, 0);
	assert_int_equal(deliver_split(buf, 50, 0, true, 7, pkt), 1);
	assert_int_equal(pkt[0].len, 50);
	assert_true(pkt[0].ce);
	assert_int_equal(pkt[0].at_ns, 7);
	assert_int_equal(deliver_split(buf, 50, 100, false, 0, pkt), 1);
	assert_int_equal(deliver_split(buf, 50, 25, false, 0, pkt), 2);
	assert_int_equal(deliver_split(buf, 51, 25, false, 0, pkt), 3);
	assert_int_equal(pkt[2].len, 1);
	assert_ptr_equal(pkt[2].bytes, buf + 50);
	assert_int_equal(deliver_split(buf, sizeof(buf), 8, false, 0, pkt), DELIVER_MAX_TRAIN);
}

/* A run that does not start at a word goes into two. */
static void test_a_run_over_words(void **state)
{
	struct rig *r = *state;

	for (uint32_t i = 0; i < 64; i++)
		add(r, QPN, 0, 50 + i, PAYLOAD, i);
	assert_int_equal(deliver(r), 64);
	assert_int_equal(r->facts.committed, 64);
	for (uint32_t i = 0; i < NPKTS; i++)
		assert_int_equal(has(r, 0, i), i >= 50 && i < 114);
	for (uint32_t i = 0; i < 64; i++)
		assert_value(r, 0, 50 + i, (uint8_t)i);
	assert_int_equal(facts(r).received_pkts, 64);
	assert_int_equal(facts(r).newest_psn, 63);
	assert_int_equal(facts(r).newest_age_ns, 7);
	assert_int_equal(counter(r, SDR_CTR_rx_bytes), 64 * PAYLOAD);
}

static void test_messages_and_gaps(void **state)
{
	struct rig *r = *state;
	uint32_t imm;

	add(r, QPN, 0, 3, PAYLOAD, 1);
	add(r, QPN, 1, 4, PAYLOAD, 2); /* continues the offset, not the message */
	add(r, QPN, 1, 5, PAYLOAD, 3);
	add(r, QPN, 1, 7, PAYLOAD, 4); /* a gap */
	add(r, QPN, 3, 8, PAYLOAD, 5); /* not bound */
	add(r, QPN, 1, 8, PAYLOAD, 6);
	add(r, QPN, 0, 0, PAYLOAD, 7); /* back */
	add(r, QPN, 0, 0, PAYLOAD, 8); /* twice */
	assert_int_equal(deliver(r), 8);
	assert_int_equal(r->facts.committed, 6);
	assert_int_equal(r->facts.late, 1);
	assert_int_equal(r->facts.late_message, 3);
	assert_true(has(r, 0, 3) && has(r, 0, 0) && has(r, 1, 4) && has(r, 1, 5));
	assert_true(has(r, 1, 7) && has(r, 1, 8));
	assert_int_equal(count_bits(r, 0) + count_bits(r, 1) + count_bits(r, 2), 6);
	assert_value(r, 1, 8, 6);
	assert_value(r, 0, 0, 7);
	assert_int_equal(facts(r).duplicate_pkts, 1);
	assert_int_equal(facts(r).late_pkts, 1);
	assert_int_equal(counter(r, SDR_CTR_rx_late), 1);
	assert_true(rx_imm_get(&r->slots[1], &imm));
	assert_int_equal(imm, 101);
}

/* A short packet ends its run: what follows it is beyond the message's end. */
static void test_a_short_packet_ends_the_message(void **state)
{
	struct rig *r = *state;
	uint32_t npkts;
	uint64_t bytes;

	add(r, QPN, 0, 0, PAYLOAD, 1);
	add(r, QPN, 0, 1, PAYLOAD - 4, 2);
	add(r, QPN, 0, 2, PAYLOAD - 4, 3);
	assert_int_equal(deliver(r), 3);
	assert_int_equal(counter(r, SDR_CTR_rx_range), 1);
	assert_true(rx_end(&r->slots[0], &npkts, &bytes));
	assert_int_equal(bytes, 2 * PAYLOAD - 4);
	add(r, QPN, 0, 0, PAYLOAD, 3);
	add(r, QPN, 0, 1, PAYLOAD, 4); /* said to be full now: a duplicate */
	add(r, QPN, 0, 2, PAYLOAD, 5);
	assert_int_equal(deliver(r), 3);
	assert_int_equal(r->facts.committed, 2);
	assert_int_equal(facts(r).duplicate_pkts, 2);
	assert_int_equal(counter(r, SDR_CTR_rx_range), 2);
	assert_value(r, 0, 2, 0);
}

static void test_the_bad_do_not_take_others_along(void **state)
{
	struct rig *r = *state;

	for (uint32_t i = 0; i < 8; i++)
		add(r, QPN, 0, NPKTS - 4 + i, PAYLOAD, i); /* four beyond the receive */
	r->buf[PKT_BYTES + 40] ^= 1;			   /* and one that is damaged */
	assert_int_equal(deliver(r), 8);
	assert_int_equal(r->facts.committed, 3);
	assert_int_equal(counter(r, SDR_CTR_rx_range), 4);
	assert_int_equal(counter(r, SDR_CTR_rx_protection), 1);
	assert_int_equal(facts(r).bad_pkts, 5);
	assert_int_equal(facts(r).newest_psn, 3);
	assert_true(has(r, 0, NPKTS - 4) && !has(r, 0, NPKTS - 3) && has(r, 0, NPKTS - 1));
}

static void test_stops_where_another_is_meant(void **state)
{
	struct rig *r = *state;
	uint8_t *pkt;

	add(r, QPN, 0, 0, PAYLOAD, 1);
	add(r, QPN, 0, 1, PAYLOAD, 2);
	add(r, QPN + 1, 0, 2, PAYLOAD, 3);
	assert_int_equal(deliver(r), 2);
	add(r, QPN, 0, 2, PAYLOAD, 3);
	pkt = add(r, QPN, 0, 3, PAYLOAD, 4);
	pkt[0] = WIRE_OP_CTRL;
	assert_int_equal(deliver(r), 1);
	add(r, QPN, 0, 3, PAYLOAD, 4);
	pkt = add(r, QPN, 0, 4, PAYLOAD, 4);
	pkt[0] = 0x55;
	assert_int_equal(deliver(r), 1);
	assert_int_equal(count_bits(r, 0), 4);
	assert_int_equal(facts(r).bad_pkts, 0); /* whoever peeks at the next one counts it */
}

/* The newest PSN advances in the order of 24-bit numbers, within a train and across. */
static void test_newest_psn(void **state)
{
	struct rig *r = *state;

	assert_false(facts(r).psn_valid);
	add(r, QPN, 0, 0, PAYLOAD, 0xfffffe);
	add(r, QPN, 0, 2, PAYLOAD, 1);
	add(r, QPN, 0, 1, PAYLOAD, 0xffffff);
	assert_int_equal(deliver(r), 3);
	assert_true(facts(r).psn_valid);
	assert_int_equal(facts(r).newest_psn, 1);
	add(r, QPN, 0, 3, PAYLOAD, 0);
	assert_int_equal(deliver(r), 1);
	assert_int_equal(facts(r).newest_psn, 1);
	add(r, QPN, 0, 3, PAYLOAD, 2); /* a duplicate counts, */
	assert_int_equal(deliver(r), 1);
	assert_int_equal(facts(r).newest_psn, 2);
	add(r, QPN, 3, 3, PAYLOAD, 9); /* a late one too: it is among the counts */
	assert_int_equal(deliver(r), 1);
	assert_int_equal(facts(r).late_pkts, 1);
	assert_int_equal(facts(r).newest_psn, 9);
}

static void test_marks_and_no_table(void **state)
{
	struct rig *r = *state;
	struct deliver_pkt pkt[DELIVER_MAX_TRAIN];
	struct deliver_qp qp;
	unsigned int n;

	deliver_qp_init(&qp, QPN, TOKEN, NULL);
	for (uint32_t i = 0; i < 3; i++)
		add(r, QPN, 0, i, PAYLOAD, i);
	n = deliver_split(r->buf, r->len, PKT_BYTES, true, 0, pkt);
	assert_int_equal(deliver_data(&r->w, &qp, 0, NULL, pkt, n, &r->facts), 3);
	assert_int_equal(r->facts.late, 3);
	assert_int_equal(counter(r, SDR_CTR_rx_ce), 3);
	assert_true(deliver_fence_done(&qp, 0));
	deliver_table_set(&qp, &r->table);
	assert_int_equal(deliver_data(&r->w, &qp, 0, NULL, pkt, n, &r->facts), 3);
	assert_int_equal(r->facts.committed, 3);
}

static void test_control(void **state)
{
	struct rig *r = *state;
	const struct wire_ctrl_header header = {.dest_qpn = QPN, .src_qpn = 77, .psn = 0xabcdef};
	struct deliver_pkt pkt = {.bytes = r->buf};
	struct deliver_ctrl out;

	for (uint32_t len = 0; len <= FABRIC_CTRL_MAX + 1; len += 1 + len / 9) {
		size_t unsealed = WIRE_CTRL_HDR_BYTES + len + wire_pad_bytes(len);

		memset(r->buf, 0, unsealed);
		wire_ctrl_put_header(r->buf, &header, len);
		memset(r->buf + WIRE_CTRL_HDR_BYTES, 0x42, len);
		seal(r->buf, unsealed);
		pkt.len = (uint32_t)unsealed + PROTECT_TRAILER_BYTES;
		if (len > FABRIC_CTRL_MAX) {
			assert_true(deliver_ctrl(&r->w, &r->qp, 1, NULL, &pkt, &out) < 0);
			continue;
		}
		assert_int_equal(deliver_ctrl(&r->w, &r->qp, 1, NULL, &pkt, &out), 0);
		assert_int_equal(out.len, len);
		assert_int_equal(out.psn, 0xabcdef);
		assert_int_equal(out.src_qpn, 77);
		assert_ptr_equal(out.body, r->buf + WIRE_CTRL_HDR_BYTES);
		r->buf[unsealed - 1] ^= 1;
		assert_true(deliver_ctrl(&r->w, &r->qp, 1, NULL, &pkt, &out) < 0);
	}
}

#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_split),
		RIG_TEST(test_a_run_over_words),
		RIG_TEST(test_messages_and_gaps),
		RIG_TEST(test_a_short_packet_ends_the_message),
		RIG_TEST(test_the_bad_do_not_take_others_along),
		RIG_TEST(test_stops_where_another_is_meant),
		RIG_TEST(test_newest_psn),
		RIG_TEST(test_marks_and_no_table),
		RIG_TEST(test_control),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

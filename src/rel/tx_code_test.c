/* SPDX-License-Identifier: Apache-2.0 */
/* The coded sender alone: what it takes, in which order it offers, what it believes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <errno.h>

#include "base/alloc_failing.h"
#include "rel/tx_priv.h"

#define MS UINT64_C(1000000)

static const struct rel_coding plain = {.code = REL_CODE_RS,
					.k = 4,
					.m = 2,
					.depth = 2,
					.span_pkts = 16,
					.parity_room = 1000,
					.fresh = true,
					.gap_ns = MS};

static void tx_new(struct rel_tx *tx, const char *scheme, uint32_t channels)
{
	struct rel_tx_params p = {.channels = channels};
	assert_int_equal(rel_scheme_parse(scheme, &p.scheme, NULL, 0), 0);
	assert_int_equal(rel_tx_init(tx, &p, &sdr_alloc_system), 0);
}

/* What comes next is this; all of it goes out on channel 0. */
static void next_is(struct rel_tx *tx, bool parity, uint32_t first, uint32_t count, uint32_t psn,
		    uint64_t now)
{
	struct rel_range r;
	assert_int_equal(rel_tx_next(tx, now, REL_UNIT, &r), 1);
	assert_int_equal(r.parity, parity);
	assert_int_equal(r.first, first);
	assert_int_equal(r.count, count);
	rel_tx_sent(tx, &r, 0, psn, now);
	rel_tx_check(tx);
}

static void opening(void **state)
{
	struct rel_coding bad[12];
	struct rel_tx tx;
	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(bad); i++)
		bad[i] = plain;
	bad[0].k = 0;
	bad[1].m = 0;
	bad[2].k = 200, bad[2].m = 56;
	bad[3].depth = 0;
	bad[4].depth = REL_DEPTH_MAX + 1;
	bad[5].span_pkts = 0;
	bad[6].span_start = 1;
	bad[7].span_start = UINT32_MAX;
	bad[8].copies = REL_COPIES_MAX + 1;
	bad[9].code = (enum rel_code)3;
	bad[10].k = UINT32_MAX;
	bad[11].code = REL_CODE_XOR, bad[11].m = 5;
	tx_new(&tx, "sr-nack", 1);
	for (size_t i = 0; i < SDR_ARRAY_LEN(bad); i++)
		assert_int_equal(rel_tx_open_coded(&tx, 0, 16, &bad[i]), -EINVAL);
	size_t before = rel_tx_memory_bytes(&tx);
	assert_int_equal(rel_tx_open_coded(&tx, 0, 16, &plain), 0);
	assert_int_equal(rel_tx_open_coded(&tx, 0, 16, &plain), -EINVAL);
	rel_tx_check(&tx);
	rel_tx_close(&tx, 0);
	assert_int_equal(rel_tx_memory_bytes(&tx), before);
	rel_tx_fini(&tx);
	for (int i = 0; i < 2; i++) {
		tx_new(&tx, i ? "sr" : "gbn", 1);
		assert_int_equal(rel_tx_open_coded(&tx, 0, 16, &plain), -EINVAL);
		rel_tx_fini(&tx);
	}
}

/* Groups of 8 packets and 2 blocks: parity follows each, where a batch may hold no more ... */
static void batches(void **state)
{
	struct rel_coding c = plain;
	struct rel_range r;
	struct rel_tx tx;
	(void)state;
	tx_new(&tx, "sr-nack", 1);
	rel_tx_set_bdp(&tx, 16 * 8);
	c.span_start = 1;
	c.parity_room = 7;
	assert_int_equal(rel_tx_open_coded(&tx, 0, 18, &c), 0);
	next_is(&tx, false, 0, 9, 0, MS); /* what is before the span, too */
	next_is(&tx, true, 0, 2, 9, MS);
	/* Taken in part. */
	assert_int_equal(rel_tx_next(&tx, MS, 1, &r), 1);
	assert_true(r.parity && r.first == 4 && r.count == 1);
	rel_tx_sent(&tx, &r, 0, 11, MS);
	next_is(&tx, true, 5, 1, 12, MS);
	next_is(&tx, false, 9, 8, 13, MS);
	next_is(&tx, true, 2, 2, 21, MS);
	next_is(&tx, true, 6, 1, 23, MS); /* there is no room for 7 */
	next_is(&tx, false, 17, 1, 24, MS);
	assert_int_equal(rel_tx_next(&tx, MS, 64, &r), 0);
	assert_int_equal(tx.stats.parity_pkts, 7);
	assert_int_equal(rel_tx_inflight_all(&tx), 18 + 7);
	rel_tx_close(&tx, 0);
	assert_int_equal(rel_tx_inflight_all(&tx), 0);
	/* ... else several, so that trains are longer. */
	rel_tx_set_bdp(&tx, 0);
	assert_int_equal(rel_tx_open_coded(&tx, 2, 16, &plain), 0);
	next_is(&tx, false, 0, 16, 30, MS);
	next_is(&tx, true, 0, 4, 46, MS);
	next_is(&tx, true, 4, 4, 50, MS);
	rel_tx_close(&tx, 2);
	rel_tx_fini(&tx);
}

/* An ACK that 16 packets but those of `holes` came, channel 0's newest `psn`, and deficits. */
static void ack(struct rel_tx *tx, uint32_t psn, uint64_t received, uint64_t holes, uint64_t age,
		const uint32_t deficit[4], uint64_t now)
{
	struct wire_ack_channel fact = {.flags = WIRE_ACK_PSN_VALID,
					.newest_psn = psn,
					.received = received,
					.age_ns = (uint32_t)age};
	uint64_t bits = ~holes;
	struct rel_ack_result out;
	struct wire_ack_enc enc;
	uint8_t buf[300];
	assert_int_equal(wire_ack_begin(&enc, buf, sizeof(buf), 0, 1), 0);
	assert_int_equal(wire_ack_window_from_bits(&enc, 0, 0, 16, &bits), 16);
	assert_int_equal(wire_ack_channel_put(&enc, &fact), 0);
	for (uint32_t b = 0; deficit && b < 4; b++)
		if (deficit[b])
			assert_int_equal(wire_ack_deficit_put(&enc, 0, b, deficit[b]), 0);
	int len = wire_ack_end(&enc);
	assert_int_equal(rel_tx_ack(tx, buf, (size_t)len, now, &out), 0);
	rel_tx_check(tx);
}

static void send_all(struct rel_tx *tx, const struct rel_coding *coding)
{
	tx_new(tx, "sr-nack", 1);
	rel_tx_rtt_sample(tx, 0, 10 * MS, MS);
	assert_int_equal(rel_tx_open_coded(tx, 0, 16, coding), 0);
	next_is(tx, false, 0, 16, 0, 10 * MS);
	next_is(tx, true, 0, 4, 16, 11 * MS);
	next_is(tx, true, 4, 4, 20, 12 * MS);
}

/* Deficits of before the parity can have come are no news; nor are those of an old ACK. */
static void deficits(void **state)
{
	static const uint32_t two[4] = {2, 1, 0, 0};
	struct rel_coding c = plain;
	struct rel_range r;
	struct rel_tx tx;
	(void)state;
	c.margin[0] = 1;
	send_all(&tx, &c);
	ack(&tx, 19, 14, 0x33, 0, two, 21 * MS);
	assert_int_equal(tx.stats.covered_pkts, 4); /* 0, 1, 4, 5 */
	assert_int_equal(tx.stats.failed_blocks, 0);
	assert_int_equal(rel_tx_next(&tx, 21 * MS, 64, &r), 0);
	ack(&tx, 19, 13, 0x33, 3 * MS, two, 24 * MS); /* it was made before the first */
	assert_int_equal(tx.stats.failed_blocks, 0);
	ack(&tx, 19, 14, 0x33, 3 * MS, two, 24 * MS);
	assert_int_equal(tx.stats.failed_blocks, 2);
	ack(&tx, 19, 14, 0x33, 4 * MS, two, 25 * MS); /* told again */
	assert_int_equal(tx.stats.failed_blocks, 2);
	next_is(&tx, true, 8, 2, 24, 25 * MS); /* of both blocks; then a gap */
	assert_int_equal(rel_tx_next(&tx, 25 * MS, 64, &r), 0);
	assert_int_equal(rel_tx_deadline(&tx), 26 * MS);
	assert_int_equal(rel_tx_timer(&tx, 26 * MS, &r, NULL), 0);
	assert_true(rel_tx_pending(&tx) && rel_tx_deadline(&tx) > 26 * MS);
	next_is(&tx, true, 12, 2, 26, 26 * MS);
	assert_int_equal(tx.stats.repair_pkts, 4);
	/* Decoded: no sign of reordering. */
	ack(&tx, 27, 18, 0, 0, NULL, 36 * MS);
	assert_int_equal(tx.stats.recovered_pkts, 4);
	assert_int_equal(tx.stats.spurious_pkts, 0);
	assert_true(rel_tx_is_acked(&tx, 0));
	assert_int_equal(tx.stats.resent_pkts, 0);
	rel_tx_close(&tx, 0);
	rel_tx_fini(&tx);
}

/* Blocks that there are not, and deficits of who has no code. */
static void lies(void **state)
{
	struct rel_coding c = plain;
	static const uint32_t much[4] = {255, 0, 0, 0}, last[4] = {0, 0, 0, 9};
	struct rel_tx tx;
	(void)state;
	c.k = 8;
	c.depth = 1;
	tx_new(&tx, "sr-nack", 1);
	rel_tx_rtt_sample(&tx, 0, 10 * MS, MS);
	assert_int_equal(rel_tx_open_coded(&tx, 0, 16, &c), 0);
	next_is(&tx, false, 0, 16, 0, 10 * MS);
	ack(&tx, 15, 16, 0xff, 3 * MS, much, 24 * MS); /* its parity has not gone out */
	assert_int_equal(tx.stats.failed_blocks, 0);
	ack(&tx, 15, 16, 0xff, 3 * MS, last, 24 * MS);
	assert_int_equal(tx.stats.lies, 1);
	next_is(&tx, true, 0, 2, 16, 25 * MS);
	next_is(&tx, true, 2, 2, 18, 25 * MS);
	ack(&tx, 19, 20, 0xff, 3 * MS, much, 38 * MS);
	assert_int_equal(tx.stats.failed_blocks, 1);
	rel_tx_close(&tx, 0);
	rel_tx_fini(&tx);
}

/* Lost ones go first, then copies, repairs, parity, new data. */
static void order(void **state)
{
	static const uint32_t one[4] = {0, 1, 0, 0};
	struct rel_coding c = plain, more = plain;
	struct rel_tx tx;
	(void)state;
	c.copies = 2;
	c.gap_ns = 0;
	c.span_start = 8;
	c.span_pkts = 8;
	c.k = 2;
	tx_new(&tx, "sr-nack", 1);
	rel_tx_rtt_sample(&tx, 0, 10 * MS, MS);
	assert_int_equal(rel_tx_open_coded(&tx, 0, 16, &c), 0);
	more.span_pkts = 64;
	assert_int_equal(rel_tx_open_coded(&tx, 2, 64, &more), 0);
	next_is(&tx, false, 0, 16, 0, 10 * MS);
	next_is(&tx, true, 0, 4, 16, 10 * MS);
	next_is(&tx, true, 4, 4, 20, 10 * MS);
	next_is(&tx, false, 0, 64, 24, 30 * MS); /* the next message's; its parity waits */
	ack(&tx, 19, 20, 1 << 2 | 1 << 9 | 1 << 11, 3 * MS, one, 40 * MS);
	next_is(&tx, false, 2, 1, 88, 40 * MS);
	next_is(&tx, false, 2, 1, 89, 40 * MS);
	assert_int_equal(tx.stats.copies_pkts, 1);
	next_is(&tx, true, 9, 1, 90, 40 * MS);
	next_is(&tx, true, 0, 16, 91, 40 * MS);
	rel_tx_close(&tx, 0);
	rel_tx_close(&tx, 2);
	rel_tx_fini(&tx);
}

/* A receiver that sees no PSNs names parity, too. */
static void names(void **state)
{
	struct rel_tx tx;
	struct rel_ack_result out;
	struct wire_ack_enc enc;
	uint8_t buf[300];
	(void)state;
	send_all(&tx, &plain);
	for (uint32_t i = 0; i < 2; i++) {
		struct wire_ack_channel fact = {.flags = WIRE_ACK_PACKET_VALID,
						.newest_message = 1,
						.newest_packet = i ? 6 : 1,
						.received = 1 + i};
		assert_int_equal(wire_ack_begin(&enc, buf, sizeof(buf), 0, 1), 0);
		assert_int_equal(wire_ack_channel_put(&enc, &fact), 0);
		int len = wire_ack_end(&enc);
		assert_int_equal(rel_tx_ack(&tx, buf, (size_t)len, 31 * MS, &out), 0);
		assert_int_equal(out.ch[0].rtt_sample_ns, i ? 19 * MS : 20 * MS);
	}
	assert_int_equal(tx.stats.lies, 0);
	rel_tx_close(&tx, 0);
	rel_tx_fini(&tx);
}

/*
 * Where late parity is seen by nobody, losses are what was made good and what was declared lost; a
 * count that goes back is an old ACK's, one beyond all that was sent a lie.
 */
static void named_losses(void **state)
{
	static const struct {
		uint32_t made_good;
		uint64_t lost, lies;
	} acks[] = {{2, 2, 0}, {1, 2, 0}, {3, 3, 0}, {1000, 3, 1}, {0x80000004u, 3, 1}};
	struct rel_tx tx;
	struct rel_ack_result out;
	struct rel_tx_loss loss;
	struct wire_ack_enc enc;
	uint8_t buf[300];
	(void)state;
	send_all(&tx, &plain);
	for (size_t i = 0; i < SDR_ARRAY_LEN(acks); i++) {
		struct wire_ack_channel fact = {.flags = WIRE_ACK_PACKET_VALID,
						.newest_message = 0,
						.newest_packet = 15,
						.received = 14};
		assert_int_equal(wire_ack_begin(&enc, buf, sizeof(buf), 0, 1), 0);
		wire_ack_made_good(&enc, acks[i].made_good);
		assert_int_equal(wire_ack_channel_put(&enc, &fact), 0);
		int len = wire_ack_end(&enc);
		assert_int_equal(rel_tx_ack(&tx, buf, (size_t)len, 31 * MS, &out), 0);
		rel_tx_loss(&tx, &loss);
		assert_int_equal(loss.passed_pkts, 16);
		assert_int_equal(loss.arrived_pkts, 16 - acks[i].lost);
		assert_int_equal(tx.stats.lies, acks[i].lies);
	}
	rel_tx_close(&tx, 0);
	rel_tx_fini(&tx);
}

/* Memory fails at each place in turn: all goes on once it is there again. */
static void allocation_failures(void **state)
{
	static const uint32_t all[4] = {2, 2, 2, 2};
	(void)state;
	for (int fail = 0; fail < 40; fail++) {
		struct alloc_failing f = {.left = fail};
		struct sdr_alloc alloc = alloc_failing(&f);
		struct rel_tx_params p = {.channels = 1, .scheme.nack = true};
		struct rel_coding c = plain;
		struct rel_range r;
		struct rel_tx tx;
		uint32_t psn = 0;
		uint64_t now = 10 * MS;
		c.fresh = fail % 2;
		c.copies = 3;
		assert_int_equal(rel_tx_init(&tx, &p, &alloc), 0);
		rel_tx_rtt_sample(&tx, 0, 10 * MS, MS);
		for (int step = 0; step < 300; step++, now += MS) {
			if (step == 100)
				f.left = 1000000;
			int err = rel_tx_is_open(&tx, 0) ? 0 : rel_tx_open_coded(&tx, 0, 16, &c);
			assert_true(err == 0 || err == -ENOMEM);
			if (rel_tx_next(&tx, now, 64, &r) == 1) {
				rel_tx_sent(&tx, &r, 0, psn, now);
				psn += r.count;
			}
			rel_tx_check(&tx);
			if (step % 10 == 9 && psn)
				ack(&tx, psn - 1, 0, 0xffff, 4 * MS, all, now);
			if (rel_tx_timer(&tx, now, &r, NULL) == 1) {
				rel_tx_sent(&tx, &r, 0, psn, now);
				psn += r.count;
			}
			rel_tx_check(&tx);
		}
		assert_true(tx.stats.failed_blocks > 4);
		assert_true((c.fresh ? tx.stats.repair_pkts : tx.stats.resent_pkts) > 8);
		rel_tx_fini(&tx);
		assert_int_equal(f.out, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opening),	cmocka_unit_test(batches),
		cmocka_unit_test(deficits),	cmocka_unit_test(lies),
		cmocka_unit_test(order),	cmocka_unit_test(names),
		cmocka_unit_test(named_losses), cmocka_unit_test(allocation_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

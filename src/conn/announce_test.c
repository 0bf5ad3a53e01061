/* SPDX-License-Identifier: Apache-2.0 */
/* WRITE, sender and receiver, with the SDK and the rest of conn/ played by this file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "conn/internal.h"
#include "wire/msg.h"

#define OPS 128u
#define RTT (10 * NS_PER_MS)

static struct sdr_conn conn;
static struct sdr_op op[OPS], *tx[OPS], *rx[OPS];

/* What the SDK would do. */
static struct {
	int ctrl_err;
	uint32_t sent, bodies;
	size_t largest;
	struct wire_write last[OPS]; /* by write */
	uint32_t times[OPS];
	uint32_t parts; /* of the immediate, as the receiver has them */
	bool all;
	uint32_t whole; /* calls of recv_whole() */
	int begin_err;
	uint32_t begun, news, parity;
} sdk;

int sdr_ctrl_send(struct sdr_qp *qp, uint8_t type, const void *body, size_t len, uint32_t channel)
{
	const uint8_t *at = body;

	(void)qp;
	assert_int_equal(type, CONN_CTRL_WRITE);
	assert_int_equal(channel, SDR_CHANNEL_ANY);
	assert_true(len && len % WIRE_WRITE_BYTES == 0 && len <= conn.qi.max_ctrl_bytes);
	if (sdk.ctrl_err)
		return sdk.ctrl_err;
	for (size_t i = 0; i < len; i += WIRE_WRITE_BYTES, sdk.sent++) {
		struct wire_write w;

		assert_int_equal(wire_write_get(at + i, WIRE_WRITE_BYTES, &w), 0);
		assert_true(w.write < OPS && w.has_imm);
		assert_int_equal(w.code, op[w.write].code.code);
		sdk.last[w.write] = w;
		sdk.times[w.write]++;
	}
	sdk.bodies++;
	sdk.largest = len > sdk.largest ? len : sdk.largest;
	return 0;
}

int sdr_recv_imm_get(const struct sdr_recv *recv, uint32_t *imm)
{
	(void)recv;
	*imm = sdk.parts;
	return sdk.all ? 0 : -EAGAIN;
}

uint64_t conn_rtt_ns(const struct sdr_conn *c)
{
	(void)c;
	return RTT;
}

int decode_begin(struct sdr_op *r, const struct wire_write *w)
{
	sdk.begun++;
	if (!sdk.begin_err)
		r->code.code = (enum rel_code)w->code;
	r->code.m = w->m;
	return sdk.begin_err;
}

bool decode_is(const struct sdr_op *r, const struct wire_write *w)
{
	return r->code.m == w->m;
}

void decode_parity(struct sdr_op *r)
{
	assert_true(r->said && r->code.code != REL_CODE_NONE);
	sdk.parity++;
}

void recv_news(struct sdr_op *r)
{
	assert_true(r->said);
	sdk.news++;
}

void recv_whole(struct sdr_op *r)
{
	uint32_t imm;

	sdk.whole++;
	r->whole = announce_missing(r, r->length, &imm);
}

static int start(void **state)
{
	(void)state;
	memset(&conn, 0, sizeof(conn));
	memset(op, 0, sizeof(op));
	memset(tx, 0, sizeof(tx));
	memset(rx, 0, sizeof(rx));
	memset(&sdk, 0, sizeof(sdk));
	conn.qi.imm_packets = 8;
	conn.qi.max_ctrl_bytes = 996;
	conn.mask = OPS - 1;
	conn.tx_op = tx;
	conn.rx_op = rx;
	conn.announce_at_ns = UINT64_MAX;
	for (uint32_t i = 0; i < OPS; i++)
		op[i].conn = &conn;
	return 0;
}

static uint32_t imm_of(uint32_t imm, uint32_t flags, uint64_t length, bool *announced)
{
	struct sdr_op_wr wr = {.size = sizeof(wr), .imm = imm, .flags = flags, .length = length};
	uint32_t in_packets;

	op[0].announce = true;
	in_packets = announce_imm(&op[0], &wr);
	*announced = op[0].announce;
	return in_packets;
}

static void which_are_announced(void **state)
{
	static const struct {
		uint32_t spread, imm, flags;
		uint64_t length;
		uint32_t want;
		bool announced;
	} cases[] = {
		{1, 77, SDR_OP_HAS_IMM, 0, 77, false},
		{1, UINT32_MAX, SDR_OP_HAS_IMM, 0, UINT32_MAX, false},
		{8, 77, 0, 0, 0, false},
		{8, 0, SDR_OP_HAS_IMM, 0, 0, false},
		{8, 77, SDR_OP_HAS_IMM, 0, CONN_IMM_SAID, true},
		{8, 1, SDR_OP_HAS_IMM, 7 * 4096, CONN_IMM_SAID, true},
		{8, 1, SDR_OP_HAS_IMM, 7 * 4096 + 1, 1, false},
		{16, 1, SDR_OP_HAS_IMM, 15 * 4096, CONN_IMM_SAID, true},
		{16, 1, SDR_OP_HAS_IMM, 15 * 4096 + 1, 1, false},
		{16, CONN_IMM_SAID, SDR_OP_HAS_IMM, UINT64_C(1) << 40, CONN_IMM_SAID, true},
	};

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(cases); i++) {
		bool announced;

		conn.qi.imm_packets = cases[i].spread;
		assert_int_equal(imm_of(cases[i].imm, cases[i].flags, cases[i].length, &announced),
				 cases[i].want);
		assert_int_equal(announced, cases[i].announced);
	}
}

/* Opens writes [from, to), with an immediate of their own each. */
static void writes_open(uint32_t from, uint32_t to)
{
	for (uint32_t n = from; n < to; n++) {
		struct sdr_op_wr wr = {.imm = 1000 + n, .flags = SDR_OP_HAS_IMM, .length = n};

		op[n].number = n;
		op[n].length = n;
		op[n].state = OP_OPEN;
		op[n].done.imm = wr.imm;
		op[n].flags = SDR_OP_HAS_IMM;
		tx[n] = &op[n];
		assert_int_equal(announce_imm(&op[n], &wr), CONN_IMM_SAID);
		announce_open(&op[n]);
	}
	conn.tx_open = to;
}

static void said_until_it_ends(void **state)
{
	uint64_t now = 1, gap = RTT;
	uint32_t said = 0;

	(void)state;
	writes_open(0, 1);
	for (int i = 0; i < 12; i++) {
		assert_true(conn.announce_at_ns <= now);
		announce_service(&conn, now);
		assert_int_equal(sdk.times[0], ++said);
		assert_int_equal(sdk.last[0].imm, 1000);
		assert_int_equal(conn.announce_at_ns, now + gap);
		announce_service(&conn, now + gap - 1); /* not yet */
		assert_int_equal(sdk.times[0], said);
		now += gap;
		gap = u64_min(2 * gap, NS_PER_S);
	}
	assert_int_equal(gap, NS_PER_S);
	/* It ended: one look, and rest. */
	tx[0] = NULL;
	announce_service(&conn, now + gap);
	assert_int_equal(sdk.times[0], said);
	assert_int_equal(conn.announce_at_ns, UINT64_MAX);
}

static void many_share_a_message(void **state)
{
	(void)state;
	writes_open(0, 100);
	op[7].announce = false; /* a plain one among them */
	announce_service(&conn, 5);
	assert_int_equal(sdk.sent, 99);
	assert_int_equal(sdk.bodies, 4); /* 29 each */
	assert_true(sdk.largest <= 996);
	for (uint32_t n = 0; n < 100; n++) {
		assert_int_equal(sdk.times[n], n != 7);
		if (n != 7)
			assert_int_equal(sdk.last[n].imm, 1000 + n);
		if (n != 7)
			assert_int_equal(sdk.last[n].length, n);
	}
	/* A later one is said at once, and alone. */
	writes_open(100, 101);
	announce_service(&conn, 6);
	assert_int_equal(sdk.sent, 100);
	assert_true(conn.announce_at_ns <= 5 + RTT);
}

static void a_full_queue(void **state)
{
	uint64_t now = 1;

	(void)state;
	writes_open(0, 60);
	sdk.ctrl_err = -EAGAIN;
	for (int i = 0; i < 5; i++) {
		announce_service(&conn, now);
		assert_int_equal(sdk.sent, 0);
		assert_true(conn.announce_at_ns > now && conn.announce_at_ns < now + NS_PER_MS);
		now = conn.announce_at_ns;
	}
	sdk.ctrl_err = 0;
	announce_service(&conn, now);
	assert_int_equal(sdk.sent, 60);
	assert_int_equal(conn.announce_at_ns, now + RTT); /* failures were no repeats */
}

static void say(uint32_t write, uint64_t length, uint32_t imm, uint8_t code, bool has_imm)
{
	struct wire_write w = {.write = write,
			       .length = length,
			       .imm = imm,
			       .has_imm = has_imm,
			       .code = code,
			       .k = 1,
			       .depth = 1};
	uint8_t body[WIRE_WRITE_BYTES];

	assert_int_equal(wire_write_put(body, sizeof(body), &w), WIRE_WRITE_BYTES);
	announce_on(&conn, body, sizeof(body));
}

static struct sdr_op *recv_open_at(uint32_t n, uint64_t length)
{
	op[n].number = n;
	op[n].length = length;
	op[n].is_recv = true;
	op[n].state = OP_POSTED;
	rx[n & conn.mask] = &op[n];
	return &op[n];
}

static void what_packets_say(void **state)
{
	struct sdr_op *r = recv_open_at(3, 10);
	uint32_t imm = 9;

	(void)state;
	/* Plain and short; plain and long; long with an immediate. */
	assert_false(announce_missing(r, 10, &imm));
	assert_int_equal(imm, 0);
	sdk.all = true;
	assert_false(announce_missing(r, 10, &imm));
	assert_int_equal(imm, 0);
	sdk.parts = 0x1234;
	assert_false(announce_missing(r, 10, &imm));
	assert_int_equal(imm, 0x1234);
	/* Said by WRITE: of one packet, of some, of all. */
	for (uint32_t parts = 0xf; parts; parts = parts << 4 | (parts != UINT32_MAX ? 0xf : 0)) {
		sdk.parts = parts;
		sdk.all = parts == UINT32_MAX;
		assert_true(announce_missing(r, 10, &imm));
		assert_int_equal(imm, 0);
		if (sdk.all)
			break;
	}
	/* sdr mode: all of it in each packet, whatever it is. */
	conn.qi.imm_packets = 1;
	assert_false(announce_missing(r, 10, &imm));
	assert_int_equal(imm, UINT32_MAX);
	sdk.all = false;
	assert_false(announce_missing(r, 10, &imm));
	assert_int_equal(imm, 0);
}

static void before_and_after(void **state)
{
	struct sdr_op *r = recv_open_at(3, 10);
	uint32_t imm;

	(void)state;
	sdk.parts = 0xf;
	say(3, 10, 42, 0, true);
	assert_int_equal(sdk.whole, 0);
	assert_false(announce_missing(r, 10, &imm));
	assert_int_equal(imm, 42);
	say(3, 10, 43, 0, true); /* the first one holds */
	assert_false(announce_missing(r, 10, &imm));
	assert_int_equal(imm, 42);
	/* The packets first. */
	r = recv_open_at(4, 10);
	r->whole = announce_missing(r, 10, &imm);
	assert_true(r->whole);
	say(4, 10, 44, 0, true);
	assert_int_equal(sdk.whole, 1);
	assert_false(r->whole);
	/* A length that is not the message's: as if it had not come, and the right one helps. */
	r = recv_open_at(5, 10);
	say(5, 9, 45, 0, true);
	r->whole = announce_missing(r, 10, &imm);
	assert_true(r->whole);
	say(5, 10, 46, 0, true);
	assert_false(announce_missing(r, 10, &imm));
	assert_int_equal(imm, 46);
}

static void nonsense_changes_nothing(void **state)
{
	struct sdr_op *r = recv_open_at(3, 10);
	struct rng rng;
	uint8_t body[3 * WIRE_WRITE_BYTES + 5];

	(void)state;
	say(3 + OPS, 10, 1, 0, true); /* the same place, another number */
	say(4, 10, 1, 0, true);
	say(3, 11, 1, 0, true); /* longer than the receive */
	say(3, 10, 1, 1, true); /* coded */
	say(3, 10, 1, 0, false);
	assert_false(r->said);
	assert_int_equal(conn.stats.bad_writes, 2);
	assert_int_equal(sdk.begun, 0); /* nothing is paired */
	announce_on(&conn, body, 0);
	rng_init(&rng, 5);
	for (int i = 0; i < 100000; i++) {
		size_t len = (size_t)rng_below(&rng, sizeof(body) + 1);

		for (size_t k = 0; k < len; k++)
			body[k] = rng_below(&rng, 3) ? 0 : (uint8_t)rng_next(&rng);
		r->said = false;
		announce_on(&conn, body, len);
		assert_true(!r->said || r->said_length <= 10);
	}
	assert_int_equal(sdk.whole, 0);
}

/* Ahead of its packets, thrice within a round trip, then as the others. */
static void coded_is_said_early(void **state)
{
	static const uint64_t gap[] = {RTT / 128, RTT / 64, RTT / 32, RTT / 16,
				       RTT / 8,	  RTT,	    2 * RTT,  4 * RTT};
	uint64_t now = 1;

	(void)state;
	op[0].state = OP_OPEN;
	op[0].code = (struct codec_write){
		.code = REL_CODE_RS, .k = 32, .m = 8, .layout.depth = 5, .span_start = 17};
	op[0].flags = SDR_OP_HAS_IMM;
	op[0].length = 1 << 20;
	tx[0] = &op[0];
	announce_open(&op[0]);
	conn.tx_open = 1;
	for (size_t i = 0; i < SDR_ARRAY_LEN(gap); i++) {
		assert_true(conn.announce_at_ns <= now);
		announce_service(&conn, now);
		assert_int_equal(sdk.times[0], i + 1);
		assert_int_equal(conn.announce_at_ns, now + gap[i]);
		now += gap[i];
	}
	assert_int_equal(sdk.last[0].code, REL_CODE_RS);
	assert_int_equal(sdk.last[0].k, 32);
	assert_int_equal(sdk.last[0].m, 8);
	assert_int_equal(sdk.last[0].depth, 5);
	assert_int_equal(sdk.last[0].span_start, 17);
	assert_int_equal(sdk.last[0].length, 1 << 20);
}

static void say_coded(uint32_t write, uint16_t m)
{
	struct wire_write w = {.write = write,
			       .length = 10,
			       .imm = 42,
			       .has_imm = true,
			       .code = REL_CODE_RS,
			       .k = 4,
			       .m = m,
			       .depth = 1};
	uint8_t body[WIRE_WRITE_BYTES];

	assert_int_equal(wire_write_put(body, sizeof(body), &w), WIRE_WRITE_BYTES);
	announce_on(&conn, body, sizeof(body));
}

/* The code is taken once; what cannot be is counted; what had no memory may come again. */
static void coded_is_taken_once(void **state)
{
	struct sdr_op *r = recv_open_at(3, 10);
	uint32_t imm;

	(void)state;
	conn.rx_paired = true;
	sdk.begin_err = -EINVAL;
	say_coded(3, 2);
	assert_int_equal(conn.stats.bad_writes, 1);
	assert_false(r->said);
	sdk.begin_err = -ENOMEM;
	say_coded(3, 2);
	assert_int_equal(conn.stats.bad_writes, 1);
	assert_false(r->said);
	sdk.begin_err = 0;
	say_coded(3, 2);
	assert_true(r->said);
	assert_int_equal(sdk.news, 1);
	assert_int_equal(sdk.parity, 1);
	say_coded(3, 2);
	say_coded(3, 1); /* another one */
	assert_int_equal(sdk.begun, 3);
	assert_int_equal(conn.stats.bad_writes, 2);
	/* Whatever came of it in packets, WRITE has the immediate. */
	sdk.parts = 0xf;
	assert_false(announce_missing(r, 10, &imm));
	assert_int_equal(imm, 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(which_are_announced, start),
		cmocka_unit_test_setup(said_until_it_ends, start),
		cmocka_unit_test_setup(many_share_a_message, start),
		cmocka_unit_test_setup(a_full_queue, start),
		cmocka_unit_test_setup(what_packets_say, start),
		cmocka_unit_test_setup(before_and_after, start),
		cmocka_unit_test_setup(coded_is_said_early, start),
		cmocka_unit_test_setup(coded_is_taken_once, start),
		cmocka_unit_test_setup(nonsense_changes_nothing, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SDK's promises, in virtual time: matching by order, sizes around every edge,
 * immediates, early completion, cancel, lost and reordered CTS, 1024 in flight, payload
 * changes, control messages, bad input. On each kind of device.
 */
#include "pair.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define GUARD 64u

/* A buffer between canaries. */
struct buf {
	uint8_t *mem;
	uint64_t len;
};

static struct buf buf_new(uint64_t len, uint8_t fill)
{
	struct buf b = {malloc(len + 2 * GUARD), len};

	assert_non_null(b.mem);
	memset(b.mem, 0xa5, len + 2 * GUARD);
	memset(b.mem + GUARD, fill, len);
	return b;
}

static uint8_t *buf_at(const struct buf *b)
{
	return b->mem + GUARD;
}

static void buf_pattern(const struct buf *b, uint32_t seed)
{
	for (uint64_t i = 0; i < b->len; i++)
		buf_at(b)[i] = (uint8_t)((i * 2654435761u + seed * 40503u) >> 11);
}

static void buf_check_guards(const struct buf *b)
{
	for (uint64_t i = 0; i < GUARD; i++) {
		assert_int_equal(b->mem[i], 0xa5);
		assert_int_equal(b->mem[GUARD + b->len + i], 0xa5);
	}
}

static void buf_free(struct buf *b)
{
	buf_check_guards(b);
	free(b->mem);
}

/* What sends read their memory by: RDMA devices read it later. */
static struct sdr_mr *send_mr;

static void open_pair(struct pair *p, uint64_t seed, const struct sdr_qp_attr *attr)
{
	pair_open(p, seed, attr);
	send_mr = p->mr[0];
}

static struct sdr_send *post_send(struct sdr_qp *qp, const void *addr, uint64_t len, uint32_t imm)
{
	struct sdr_send_wr wr = {.size = sizeof(wr),
				 .opcode = SDR_OP_WRITE_IMM,
				 .imm = imm,
				 .length = len,
				 .addr = addr,
				 .mr = send_mr};
	struct sdr_send *send;

	assert_int_equal(sdr_send_post(qp, &wr, &send), 0);
	return send;
}

static struct sdr_recv *post_recv(struct sdr_qp *qp, void *addr, uint64_t len)
{
	struct sdr_recv_wr wr = {.size = sizeof(wr), .addr = addr, .length = len};
	struct sdr_recv *recv;

	assert_int_equal(sdr_recv_post(qp, &wr, &recv), 0);
	return recv;
}

/* All packets, and those that follow a short message to bring the rest of its immediate. */
static bool recv_full(void *arg)
{
	struct sdr_recv *recv = arg;
	struct sdr_recv_info info = {.size = sizeof(info)};
	uint64_t words[1024];
	uint32_t at = 0, imm;

	sdr_recv_query(recv, &info);
	if (!info.end_known || sdr_recv_imm_get(recv, &imm))
		return false;
	while (at < info.pkts) {
		uint32_t n = info.pkts - at < 65536 ? info.pkts - at : 65536;

		if (sdr_recv_pkts_get(recv, at, n, words) != n)
			return false;
		at += n;
	}
	return true;
}

static bool send_done(void *arg)
{
	struct sdr_send_info info = {.size = sizeof(info)};

	sdr_send_query(arg, &info);
	return info.remote_done;
}

static bool recv_errored(void *arg)
{
	struct sdr_recv_info info = {.size = sizeof(info)};

	sdr_recv_query(arg, &info);
	return info.error != 0;
}

/* One message of `len` bytes into a receive of `room`: bytes, bits, length, immediate. */
static void one_message(struct pair *p, uint64_t len, uint64_t room, uint32_t imm)
{
	struct buf src = buf_new(len, 0), dst = buf_new(room, 0x77);
	struct sdr_recv_info info = {.size = sizeof(info)};
	struct sdr_recv *recv = post_recv(p->qp[1], buf_at(&dst), room);
	struct sdr_send *send;
	uint32_t got;

	buf_pattern(&src, imm);
	send = post_send(p->qp[0], buf_at(&src), len, imm);
	assert_true(pair_run(p, recv_full, recv, 10 * SEC));
	assert_int_equal(sdr_send_poll(send), 1);
	sdr_recv_query(recv, &info);
	assert_int_equal(info.length, len);
	assert_int_equal(sdr_recv_imm_get(recv, &got), 0);
	assert_int_equal(got, imm);
	if (info.chunks <= 64) {
		uint64_t word;

		assert_int_equal(sdr_recv_bitmap_get(recv, 0, info.chunks, &word), info.chunks);
	}
	assert_int_equal(sdr_recv_complete(recv), 1);
	assert_memory_equal(buf_at(&src), buf_at(&dst), len);
	for (uint64_t i = len; i < room; i++)
		assert_int_equal(buf_at(&dst)[i], 0x77);
	assert_true(pair_run(p, send_done, send, SEC));
	sdr_send_release(send);
	buf_free(&src);
	buf_free(&dst);
}

static void sizes_around_edges(void **state)
{
	struct sdr_qp_info info = {.size = sizeof(info)};
	struct pair p;
	uint64_t pay, chunk;

	(void)state;
	open_pair(&p, 1, NULL);
	pair_connect(&p);
	sdr_qp_query(p.qp[0], &info);
	pay = info.payload_bytes;
	chunk = pay * info.chunk_pkts;
	const uint64_t lens[] = {0,
				 1,
				 pay - 1,
				 pay,
				 pay + 1,
				 2 * pay,
				 chunk - 1,
				 chunk,
				 chunk + 1,
				 chunk + pay,
				 64 * pay,
				 64 * pay - 1,
				 64 * pay + 1,
				 100 * chunk,
				 5000 * pay + 7};

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		one_message(&p, lens[i], lens[i], (uint32_t)(0xdeadbeef + i));
		one_message(&p, lens[i], lens[i] + 1, 0);
		one_message(&p, lens[i], lens[i] + 3 * pay, UINT32_MAX);
		one_message(&p, lens[i], lens[i] + 300 * pay, 1);
	}
	pair_close(&p);
}

static void the_largest(void **state)
{
	struct pair p;

	(void)state;
	/* With few slots an RDMA packet's index has the most bits. */
	open_pair(&p, 2,
		  &(struct sdr_qp_attr){.size = sizeof(struct sdr_qp_attr), .messages = 256});
	pair_connect(&p);
	one_message(&p, (256u << 20) + 11, (256u << 20) + 4096, 9);
	pair_close(&p);
}

struct many {
	struct sdr_recv *recv[SDR_MAX_MESSAGES];
	struct sdr_send *send[SDR_MAX_MESSAGES];
	unsigned int n;
};

static bool many_full(void *arg)
{
	struct many *m = arg;

	for (unsigned int i = 0; i < m->n; i++)
		if (!recv_full(m->recv[i]))
			return false;
	return true;
}

static bool many_done(void *arg)
{
	struct many *m = arg;

	for (unsigned int i = 0; i < m->n; i++)
		if (!send_done(m->send[i]))
			return false;
	return true;
}

/* 1024 in flight, several rounds: numbers wrap the table, order holds. */
static void thousand_in_flight(void **state)
{
	static struct many m;
	static uint8_t src[SDR_MAX_MESSAGES][64], dst[SDR_MAX_MESSAGES][64];
	struct sdr_send_wr wr = {.size = sizeof(wr)};
	struct sdr_recv_wr rwr = {.size = sizeof(rwr)};
	struct sdr_send *extra;
	struct sdr_recv *rextra;
	struct pair p;

	(void)state;
	open_pair(&p, 3, NULL);
	pair_connect(&p);
	m.n = SDR_MAX_MESSAGES;
	for (int round = 0; round < 5; round++) {
		memset(dst, 0, sizeof(dst));
		for (unsigned int i = 0; i < m.n; i++) {
			memset(src[i], (int)(i + (unsigned int)round), 64);
			m.send[i] = post_send(p.qp[0], src[i], i % 65, i);
		}
		assert_int_equal(sdr_send_post(p.qp[0], &wr, &extra), -EAGAIN);
		for (unsigned int i = 0; i < m.n; i++)
			m.recv[i] = post_recv(p.qp[1], dst[i], 64);
		assert_int_equal(sdr_recv_post(p.qp[1], &rwr, &rextra), -EAGAIN);
		assert_true(pair_run(&p, many_full, &m, 10 * SEC));
		for (unsigned int i = 0; i < m.n; i++) {
			uint32_t imm;

			assert_int_equal(sdr_recv_imm_get(m.recv[i], &imm), 0);
			assert_int_equal(imm, i);
			assert_int_equal(sdr_recv_complete(m.recv[i]), 1);
			assert_memory_equal(src[i], dst[i], i % 65);
		}
		assert_true(pair_run(&p, many_done, &m, 10 * SEC));
		for (unsigned int i = 0; i < m.n; i++)
			sdr_send_release(m.send[i]);
	}
	pair_close(&p);
}

/* After an early complete nothing is written, the sender hears of it, order holds. */
static void early_complete(void **state)
{
	struct buf src = buf_new(8 << 20, 0), dst = buf_new(8 << 20, 0);
	struct sdr_send_info info = {.size = sizeof(info)};
	struct sdr_recv *recv;
	struct sdr_send *send;
	struct pair p;

	(void)state;
	open_pair(&p, 4, NULL);
	pair_connect(&p);
	buf_pattern(&src, 1);
	recv = post_recv(p.qp[1], buf_at(&dst), dst.len);
	send = post_send(p.qp[0], buf_at(&src), src.len, 0);
	assert_false(pair_run(&p, pair_never, NULL, 23 * MS)); /* amid arrival */
	assert_true(dst.mem[GUARD + 100] == buf_at(&src)[100]);
	assert_int_equal(sdr_recv_complete(recv), 0);
	memset(buf_at(&dst), 0x3c, dst.len);
	assert_true(pair_run(&p, send_done, send, SEC));
	sdr_send_query(send, &info);
	assert_int_equal(info.remote_early, 1);
	sdr_send_release(send);
	for (uint64_t i = 0; i < dst.len; i++)
		assert_int_equal(buf_at(&dst)[i], 0x3c);
	one_message(&p, 5000, 5000, 3);
	buf_free(&src);
	buf_free(&dst);
	pair_close(&p);
}

static void cancels(void **state)
{
	struct buf src = buf_new(100000, 1), dst = buf_new(100000, 2);
	struct sdr_send *a, *b;
	struct sdr_recv *ra, *rb;
	struct pair p;

	(void)state;
	open_pair(&p, 5, NULL);
	pair_connect(&p);
	/* Before the grant: the number is held, and aborted once granted. */
	a = post_send(p.qp[0], buf_at(&src), src.len, 0);
	b = post_send(p.qp[0], buf_at(&src), 500, 7);
	assert_int_equal(sdr_send_cancel(a), 0);
	assert_int_equal(sdr_send_poll(a), -ECANCELED);
	pair_run(&p, pair_never, NULL, 300 * MS);
	ra = post_recv(p.qp[1], buf_at(&dst), dst.len);
	rb = post_recv(p.qp[1], buf_at(&dst), dst.len);
	assert_true(pair_run(&p, recv_errored, ra, 5 * SEC));
	assert_int_equal(sdr_recv_complete(ra), -SDR_E_ABORTED);
	assert_true(pair_run(&p, recv_full, rb, 5 * SEC));
	assert_int_equal(sdr_recv_complete(rb), 1);
	assert_true(pair_run(&p, send_done, a, 5 * SEC));
	assert_true(pair_run(&p, send_done, b, 5 * SEC));
	assert_int_equal(sdr_send_cancel(b), -EALREADY);
	sdr_send_release(a);
	sdr_send_release(b);
	/* Too long for its receive: both ends are told, the next one is matched right. */
	ra = post_recv(p.qp[1], buf_at(&dst), 1000);
	a = post_send(p.qp[0], buf_at(&src), 1001, 0);
	assert_true(pair_run(&p, recv_errored, ra, 5 * SEC));
	assert_int_equal(sdr_send_poll(a), -SDR_E_TOO_LONG);
	assert_int_equal(sdr_recv_complete(ra), -SDR_E_ABORTED);
	sdr_send_release(a);
	one_message(&p, 1000, 1000, 3);
	buf_free(&src);
	buf_free(&dst);
	pair_close(&p);
}

/* Control loses, reorders and doubles; grants still come, nothing is matched wrong. */
static void rough_control(void **state)
{
	const struct sdr_sim_link rough = {.size = sizeof(rough),
					   .delay_ns = 10 * MS,
					   .jitter_ns = 15 * MS,
					   .loss = 0.4,
					   .duplicate = 0.3};
	const struct sdr_sim_link fine = {.size = sizeof(fine), .delay_ns = 10 * MS};

	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		static struct many m;
		static uint8_t src[200][100], dst[200][100];
		struct pair p;

		open_pair(&p, seed, NULL);
		pair_link(&p, &fine, &rough); /* CTS and done go back over the rough one */
		pair_connect(&p);
		m.n = 200;
		for (unsigned int i = 0; i < m.n; i++) {
			memset(src[i], (int)i, sizeof(src[i]));
			m.send[i] = post_send(p.qp[0], src[i], 100, i);
			m.recv[i] = post_recv(p.qp[1], dst[i], 100);
		}
		if (!pair_run(&p, many_full, &m, 100 * SEC))
			fail_msg("seed %llu", (unsigned long long)seed);
		for (unsigned int i = 0; i < m.n; i++) {
			assert_memory_equal(src[i], dst[i], 100);
			assert_int_equal(sdr_recv_complete(m.recv[i]), 1);
		}
		pair_close(&p);
	}
}

static bool payload_is(void *arg)
{
	struct sdr_qp_info info = {.size = sizeof(info)};

	sdr_qp_query(arg, &info);
	return info.recv_payload_bytes == 500;
}

static void payload_changes(void **state)
{
	struct sdr_qp_info info = {.size = sizeof(info)};
	struct sdr_recv_info rinfo = {.size = sizeof(rinfo)};
	struct sdr_recv *recv;
	struct buf dst;
	struct pair p;

	(void)state;
	if (pair_is_rocev2())
		skip(); /* it is fixed */
	dst = buf_new(10000, 0);
	open_pair(&p, 6, NULL);
	pair_connect(&p);
	one_message(&p, 10000, 10000, 1);
	recv = post_recv(p.qp[1], buf_at(&dst), dst.len); /* posted under the old size */
	assert_int_equal(sdr_qp_payload_set(p.qp[0], 500), 0);
	assert_int_equal(sdr_qp_payload_set(p.qp[0], 10), -EINVAL);
	assert_true(pair_run(&p, payload_is, p.qp[1], SEC));
	sdr_recv_query(recv, &rinfo);
	assert_int_equal(rinfo.payload_bytes, 500);
	assert_int_equal(rinfo.pkts, 20);
	sdr_send_release(post_send(p.qp[0], buf_at(&dst), 9999, 5));
	assert_true(pair_run(&p, recv_full, recv, SEC));
	assert_int_equal(sdr_recv_complete(recv), 1);
	one_message(&p, 1234, 5000, 1);
	sdr_qp_query(p.qp[0], &info);
	assert_int_equal(info.payload_bytes, 500);
	buf_free(&dst);
	pair_close(&p);
}

static void control_messages(void **state)
{
	uint8_t body[SDR_MAX_CTRL_BYTES];
	struct sdr_ctrl got = {.size = sizeof(got)};
	struct sdr_qp_info info = {.size = sizeof(info)};
	struct pair p;

	(void)state;
	open_pair(&p, 7, NULL);
	pair_connect(&p);
	memset(body, 0x5a, sizeof(body));
	assert_int_equal(sdr_ctrl_send(p.qp[0], 5, body, 1, SDR_CHANNEL_ANY), -EINVAL);
	assert_int_equal(sdr_ctrl_send(p.qp[0], 64, body, 1, SDR_CHANNEL_ANY), -EINVAL);
	sdr_qp_query(p.qp[0], &info);
	assert_in_range(info.max_ctrl_bytes, 900, sizeof(body));
	assert_int_equal(
		sdr_ctrl_send(p.qp[0], 200, body, info.max_ctrl_bytes + 1, SDR_CHANNEL_ANY),
		-EMSGSIZE);
	for (size_t len = 0; len <= info.max_ctrl_bytes; len += 59)
		assert_int_equal(sdr_ctrl_send(p.qp[0], 200, body, len, SDR_CHANNEL_ANY), 0);
	pair_run(&p, pair_never, NULL, 100 * MS);
	for (size_t len = 0; len <= info.max_ctrl_bytes; len += 59) {
		assert_int_equal(sdr_ctrl_recv(p.qp[1], &got), 1);
		assert_int_equal(got.len, len);
		assert_memory_equal(got.body, body, len);
	}
	assert_int_equal(sdr_ctrl_recv(p.qp[1], &got), 0);
	pair_close(&p);
}

static void streaming(void **state)
{
	struct buf src = buf_new(50001, 0), dst = buf_new(60000, 0);
	struct sdr_send_wr wr = {.size = sizeof(wr), .opcode = SDR_OP_WRITE_IMM, .imm = 77};
	struct sdr_send_info info = {.size = sizeof(info)};
	struct sdr_continue_attr ca = {.size = sizeof(ca), .channel = 0};
	struct sdr_recv *recv;
	struct sdr_send *send;
	struct pair p;
	uint64_t pay;
	uint32_t i;

	(void)state;
	open_pair(&p, 8, NULL);
	pair_connect(&p);
	buf_pattern(&src, 3);
	wr.addr = buf_at(&src);
	wr.length = src.len;
	assert_int_equal(sdr_send_stream_start(p.qp[0], &wr, &send), 0);
	assert_int_equal(sdr_send_stream_continue(send, 0, 100, &ca), -EAGAIN);
	recv = post_recv(p.qp[1], buf_at(&dst), dst.len);
	pair_run(&p, pair_never, NULL, 100 * MS);
	sdr_send_query(send, &info);
	assert_int_equal(info.granted, 1);
	assert_int_equal(info.recv_length, 60000);
	pay = info.payload_bytes;
	assert_int_equal(sdr_send_stream_continue(send, 1, pay, &ca), -EINVAL);
	assert_int_equal(sdr_send_stream_continue(send, 0, pay - 1, &ca), -EINVAL);
	assert_int_equal(sdr_send_stream_continue(send, 0, src.len + 1, &ca), -EINVAL);
	assert_int_equal(sdr_send_stream_continue(send, src.len, 0, &ca), -EINVAL);
	for (i = info.pkts; i-- > 0;) { /* backwards, each twice */
		uint64_t at = i * pay, n = src.len - at < pay ? src.len - at : pay;

		assert_int_equal(sdr_send_stream_continue(send, at, n, &ca), n);
		assert_int_equal(ca.pkts, 1);
		assert_int_equal(sdr_send_stream_continue(send, at, n, &ca), n);
	}
	assert_int_equal(sdr_send_stream_end(send), 0);
	assert_true(pair_run(&p, recv_full, recv, SEC));
	assert_int_equal(sdr_recv_complete(recv), 1);
	assert_memory_equal(buf_at(&src), buf_at(&dst), src.len);
	sdr_send_release(send);
	buf_free(&src);
	buf_free(&dst);
	pair_close(&p);
}

static uint64_t reordered_at(struct sdr_qp *qp)
{
	struct sdr_channel_facts facts = {.size = sizeof(facts)};

	assert_int_equal(sdr_channel_facts_get(qp, 0, &facts), 0);
	return facts.reordered_pkts;
}

static void reordering_is_counted(void **state)
{
	const struct sdr_sim_link late = {.size = sizeof(late),
					  .rate_bps = 1000000000,
					  .delay_ns = 10 * MS,
					  .reorder = 0.1,
					  .reorder_ns = MS};
	struct pair p;

	(void)state;
	if (pair_is_rocev2())
		skip(); /* who sees no PSN cannot tell */
	open_pair(&p, 11, NULL);
	pair_connect(&p);
	one_message(&p, 1000000, 1000000, 1);
	assert_int_equal(reordered_at(p.qp[1]), 0);
	pair_link(&p, &late, &late);
	one_message(&p, 1000000, 1000000, 2);
	assert_in_range(reordered_at(p.qp[1]), 20, 200); /* a tenth of 700 packets */
	pair_close(&p);
}

static void bad_info(void **state)
{
	uint8_t info[SDR_MAX_INFO_BYTES];
	struct pair p;
	int len;

	(void)state;
	open_pair(&p, 9, NULL);
	len = sdr_qp_info_get(p.qp[1], info, sizeof(info));
	for (int cut = 0; cut < len; cut++)
		assert_true(sdr_qp_connect(p.qp[0], info, (size_t)cut, NULL) < 0);
	info[4] = info[5] = 200; /* a version of the future */
	assert_int_equal(sdr_qp_connect(p.qp[0], info, (size_t)len, NULL), -SDR_E_VERSION);
	assert_int_equal(sdr_qp_state_get(p.qp[0]), SDR_QP_INIT);
	assert_int_equal(sdr_qp_info_get(p.qp[1], info, 10), -ENOSPC);
	pair_close(&p);
}

static bool in_error(void *arg)
{
	return sdr_qp_state_get(arg) == SDR_QP_ERROR;
}

static void reset(void **state)
{
	struct sdr_recv_wr wr = {.size = sizeof(wr)};
	struct sdr_recv *recv;
	struct pair p;

	(void)state;
	open_pair(&p, 10, NULL);
	assert_int_equal(sdr_recv_post(p.qp[0], &wr, &recv), -ENOTCONN);
	pair_connect(&p);
	assert_int_equal(sdr_qp_reset(p.qp[0], 1), 0);
	assert_true(pair_run(&p, in_error, p.qp[1], SEC));
	assert_int_equal(sdr_recv_post(p.qp[1], &wr, &recv), -SDR_E_RESET);
	pair_close(&p);
}

static void begin_connecting(struct pair *p)
{
	uint8_t info[SDR_MAX_INFO_BYTES];
	int len;

	for (int i = 1; i >= 0; i--) {
		len = sdr_qp_info_get(p->qp[!i], info, sizeof(info));
		assert_true(len > 0);
		assert_int_equal(sdr_qp_connect(p->qp[i], info, (size_t)len, NULL), 0);
	}
}

/*
 * A burst takes the PONGs of all channels, and the listener has no question left. Then its peer
 * speaks on one of them: the others work too, for all that.
 */
static void all_pongs_get_lost(void **state)
{
	const struct sdr_sim_link clean = {.size = sizeof(clean), .delay_ns = 10 * MS};
	const struct sdr_sim_link dead = {.size = sizeof(dead), .delay_ns = 10 * MS, .loss = 1};
	const struct sdr_qp_attr attr = {.size = sizeof(attr), .channels = 3};
	struct sdr_qp_info info = {.size = sizeof(info)};
	struct sdr_recv_wr wr = {.size = sizeof(wr)};
	struct sdr_recv *recv;
	struct pair p;

	(void)state;
	open_pair(&p, 11, &attr);
	pair_link(&p, &clean, &clean);
	begin_connecting(&p);
	(void)pair_run(&p, pair_never, NULL, 15 * MS);
	pair_link(&p, &dead, &clean);
	(void)pair_run(&p, pair_never, NULL, 300 * MS);
	pair_link(&p, &clean, &clean);
	assert_int_equal(sdr_qp_state_get(p.qp[0]), SDR_QP_CONNECTED);
	assert_int_equal(sdr_recv_post(p.qp[0], &wr, &recv), 0);
	(void)pair_run(&p, pair_never, NULL, 5 * SEC);
	for (uint32_t c = 0; c < 3; c++) {
		struct sdr_channel_facts facts = {.size = sizeof(facts)};

		assert_int_equal(sdr_channel_facts_get(p.qp[1], c, &facts), 0);
		assert_true(facts.up);
	}
	(void)sdr_qp_query(p.qp[1], &info);
	assert_true(info.unanswered_ns < SEC / 10);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_around_edges),
		cmocka_unit_test(the_largest),
		cmocka_unit_test(thousand_in_flight),
		cmocka_unit_test(early_complete),
		cmocka_unit_test(cancels),
		cmocka_unit_test(rough_control),
		cmocka_unit_test(payload_changes),
		cmocka_unit_test(control_messages),
		cmocka_unit_test(streaming),
		cmocka_unit_test(bad_info),
		cmocka_unit_test(reset),
		cmocka_unit_test(all_pongs_get_lost),
		cmocka_unit_test(reordering_is_counted),
	};

	int failed = 0;

	for (int i = 0; pair_devices[i]; i++) {
		pair_device = pair_devices[i];
		print_message("devices: %s\n", pair_device->like);
		failed += cmocka_run_group_tests(tests, NULL, NULL);
	}
	return failed;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <sdr/sdr.h> over two devices: bytes, bits, immediates, early ends, numbers that come round,
 * memory that is the caller's again. The link is expected to be clean; a packet that it
 * loses all the same is sent again, since the SDK does not.
 */
#include "device_pair.h"

/* A message under way: sent as a stream, packet by packet until all bits are there. */
struct message {
	struct qp_pair *p;
	struct sdr_send *send;
	struct sdr_recv *recv;
	uint8_t *from, *to;
	struct sdr_mr *from_mr, *to_mr;
	size_t len, room;
	unsigned int rounds;
	int end; /* who sends */
};

static void message_post(struct message *m, struct qp_pair *p, int end, size_t len, size_t room,
			 uint32_t imm, bool registered)
{
	struct sdr_send_wr s = {.size = sizeof(s), .opcode = SDR_OP_WRITE_IMM, .imm = imm};
	struct sdr_recv_wr r = {.size = sizeof(r)};

	*m = (struct message){.p = p, .end = end, .len = len, .room = room};
	m->from = malloc(len + 1);
	m->to = malloc(room + 64);
	assert_true(m->from && m->to);
	pattern(m->from, len, imm);
	memset(m->to, 0x5a, room + 64);
	if (registered && len) {
		assert_int_equal(sdr_mr_reg(p->ctx[end], m->from, len, 0, &m->from_mr), 0);
		assert_int_equal(sdr_mr_reg(p->ctx[!end], m->to, room, 0, &m->to_mr), 0);
	}
	r.addr = m->to;
	r.length = room;
	r.mr = m->to_mr;
	assert_int_equal(sdr_recv_post(p->qp[!end], &r, &m->recv), 0);
	s.addr = m->from;
	s.length = len;
	s.mr = m->from_mr;
	assert_int_equal(sdr_send_stream_start(p->qp[end], &s, &m->send), 0);
}

/* Sends each packet whose bit is not set, at most a hundred at a time. */
static void send_missing(struct message *m, const struct sdr_send_info *info)
{
	unsigned int sent = 0;

	for (uint32_t i = 0; i < info->pkts && sent < 100; i++) {
		uint64_t offset = (uint64_t)i * info->payload_bytes, bit = 0;
		uint64_t left = m->len > offset ? m->len - offset : 0;
		struct sdr_recv_info r = {.size = sizeof(r)};

		sdr_recv_query(m->recv, &r);
		if (i < r.pkts && sdr_recv_pkts_get(m->recv, i, 1, &bit) == 1)
			continue;
		if (left > info->payload_bytes)
			left = info->payload_bytes;
		(void)sdr_send_stream_continue(m->send, offset, left, NULL);
		sent++;
	}
}

static bool arrived(void *arg)
{
	struct message *m = arg;
	struct sdr_send_info info = {.size = sizeof(info)};
	struct sdr_recv_info r = {.size = sizeof(r)};
	uint64_t words[1024];

	assert_int_equal(sdr_send_query(m->send, &info), 0);
	assert_true(sdr_send_poll(m->send) >= 0);
	sdr_recv_query(m->recv, &r);
	if (info.payload_bytes && r.end_known && r.pkts <= 65536 &&
	    sdr_recv_pkts_get(m->recv, 0, r.pkts, words) == r.pkts)
		return true;
	if (info.payload_bytes && m->rounds++ % 50 == 0)
		send_missing(m, &info);
	return false;
}

static bool sender_knows(void *arg)
{
	struct message *m = arg;
	struct sdr_send_info info = {.size = sizeof(info)};

	sdr_send_query(m->send, &info);
	return info.remote_done;
}

/* Its bytes are there, and no others. */
static void message_check(const struct message *m)
{
	assert_memory_equal(m->to, m->from, m->len);
	for (size_t i = m->len; i < m->room + 64; i++)
		assert_int_equal(m->to[i], 0x5a);
}

static void message_free(struct message *m)
{
	sdr_send_release(m->send);
	sdr_mr_dereg(m->from_mr);
	sdr_mr_dereg(m->to_mr);
	free(m->from);
	free(m->to);
}

static void message_whole(struct qp_pair *p, int end, size_t len, size_t room, uint32_t imm,
			  bool registered)
{
	struct message m;
	struct sdr_recv_info info = {.size = sizeof(info)};
	uint32_t got = 0;

	message_post(&m, p, end, len, room, imm, registered);
	if (!qp_pair_run(p, arrived, &m))
		fail_msg("a message of %zu bytes in %zu did not arrive", len, room);
	sdr_recv_query(m.recv, &info);
	assert_int_equal(info.length, len);
	if (info.pkts >= p->info[!end].imm_packets) {
		assert_int_equal(sdr_recv_imm_get(m.recv, &got), 0);
		assert_int_equal(got, imm);
	}
	assert_int_equal(sdr_recv_complete(m.recv), 1);
	message_check(&m);
	assert_true(qp_pair_run(p, sender_knows, &m));
	assert_int_equal(sdr_send_poll(m.send), 1);
	message_free(&m);
}

static void sizes(void **state)
{
	struct qp_pair p;
	size_t payload;

	(void)state;
	qp_pair_open(&p, NULL);
	payload = p.info[0].payload_bytes;
	for (int end = 0; end < 2; end++) {
		const size_t len[] = {0,	   1,		3,	     4,
				      payload - 1, payload,	payload + 1, 7 * payload,
				      8 * payload, 9 * payload, 1 << 20};

		for (size_t i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
			message_whole(&p, end, len[i], len[i], 0xdeadbeef, i % 2);
			message_whole(&p, end, len[i], len[i] + 1, 0x12345678, i % 2 == 0);
			message_whole(&p, end, len[i], len[i] + 5 * payload, 7, i % 2);
		}
	}
	qp_pair_close(&p);
}

/* Few numbers: slots and generations come round many times. */
static void numbers_come_round(void **state)
{
	const struct sdr_qp_attr attr = {.size = sizeof(attr), .messages = 4, .channels = 2};
	struct qp_pair p;

	(void)state;
	qp_pair_open(&p, &attr);
	assert_int_equal(p.info[0].channels, 2);
	for (uint32_t i = 0; i < 70; i++)
		message_whole(&p, (int)(i % 2), 100 + i, 5000, i * 0x01010101u, i % 3 == 0);
	qp_pair_close(&p);
}

static bool some_arrived(void *arg)
{
	struct message *m = arg;
	uint64_t words[8];

	(void)arrived(m);
	return sdr_recv_pkts_get(m->recv, 0, 8, words) > 0;
}

/* What the sender goes on sending after an early end changes nothing, nor the QP. */
static void early_end(void **state)
{
	const struct sdr_qp_attr attr = {.size = sizeof(attr), .messages = 4};
	struct qp_pair p;

	(void)state;
	qp_pair_open(&p, &attr);
	for (unsigned int i = 0; i < 12; i++) {
		size_t payload = p.info[0].payload_bytes, len = 64 * payload;
		struct sdr_send_info info = {.size = sizeof(info)};
		struct message m;

		message_post(&m, &p, 0, len, len, i, i % 2);
		assert_true(qp_pair_run(&p, some_arrived, &m));
		assert_true(sdr_recv_complete(m.recv) >= 0);
		memset(m.to, 0x11, len);
		assert_int_equal(sdr_send_query(m.send, &info), 0);
		for (uint32_t k = 0; k < 64; k++) /* it has not heard yet */
			(void)sdr_send_stream_continue(m.send, k * payload, payload, NULL);
		qp_pair_settle(&p);
		for (size_t k = 0; k < len; k++)
			assert_int_equal(m.to[k], 0x11);
		assert_true(qp_pair_run(&p, sender_knows, &m));
		message_free(&m);
		message_whole(&p, 0, 3000, 3000, 5, true);
	}
	qp_pair_close(&p);
}

static bool oneshot_imm(void *arg)
{
	struct message *m = arg;
	uint32_t imm;

	return sdr_recv_imm_get(m->recv, &imm) == 0 && imm == 0xcafe1234u;
}

static bool oneshot_left(void *arg)
{
	return sdr_send_poll(((struct message *)arg)->send) == 1;
}

/* A one-shot carries its whole immediate, however short it is. */
static void oneshots(void **state)
{
	struct qp_pair p;

	(void)state;
	qp_pair_open(&p, NULL);
	for (size_t len = 0; len <= 3 * p.info[0].payload_bytes; len += 1000) {
		struct sdr_send_wr s = {.size = sizeof(s),
					.opcode = SDR_OP_WRITE_IMM,
					.imm = 0xcafe1234u,
					.length = len};
		struct sdr_recv_wr r = {.size = sizeof(r), .length = len};
		struct message m = {.p = &p, .len = len, .room = len};

		m.from = malloc(len + 1);
		m.to = malloc(len + 64);
		assert_true(m.from && m.to);
		pattern(m.from, len, 1);
		memset(m.to, 0x5a, len + 64);
		r.addr = m.to;
		s.addr = m.from;
		assert_int_equal(sdr_recv_post(p.qp[1], &r, &m.recv), 0);
		assert_int_equal(sdr_send_post(p.qp[0], &s, &m.send), 0);
		assert_true(qp_pair_run(&p, oneshot_left, &m));
		assert_true(qp_pair_run(&p, oneshot_imm, &m));
		assert_int_equal(sdr_recv_complete(m.recv), 1);
		message_check(&m);
		message_free(&m);
	}
	qp_pair_close(&p);
}

/* After a cancel no byte of the buffer is read: it may go, registration and all. */
static void cancelled(void **state)
{
	struct qp_pair p;

	(void)state;
	qp_pair_open(&p, NULL);
	for (int i = 0; i < 8; i++) {
		struct message m;

		message_post(&m, &p, 0, 1 << 18, 1 << 18, 1, true);
		assert_true(qp_pair_run(&p, some_arrived, &m));
		assert_int_equal(sdr_send_cancel(m.send), 0);
		sdr_mr_dereg(m.from_mr);
		m.from_mr = NULL;
		memset(m.from, 0, m.len);
		qp_pair_settle(&p);
		assert_int_equal(sdr_recv_complete(m.recv), -SDR_E_ABORTED);
		assert_int_equal(sdr_send_poll(m.send), -ECANCELED);
		message_free(&m);
		message_whole(&p, 0, 10000, 10000, 5, true);
	}
	qp_pair_close(&p);
}

static void limits(void **state)
{
	const struct sdr_qp_attr small = {.size = sizeof(small), .max_payload_bytes = 512};
	struct qp_pair p;
	struct sdr_recv_wr r = {.size = sizeof(r), .addr = (void *)4096, .length = UINT64_MAX / 2};
	struct sdr_recv *recv;
	struct sdr_qp *qp = NULL;
	uint8_t ctrl[SDR_MAX_CTRL_BYTES + 1] = {0};

	(void)state;
	qp_pair_open(&p, NULL);
	assert_int_equal(sdr_recv_post(p.qp[0], &r, &recv), -EMSGSIZE);
	assert_int_equal(sdr_ctrl_send(p.qp[0], SDR_CTRL_USER, ctrl, p.info[0].max_ctrl_bytes,
				       SDR_CHANNEL_ANY),
			 0);
	assert_int_equal(sdr_ctrl_send(p.qp[0], SDR_CTRL_USER, ctrl, p.info[0].max_ctrl_bytes + 1u,
				       SDR_CHANNEL_ANY),
			 -EMSGSIZE);
	assert_int_equal(sdr_mr_reg_dmabuf(p.ctx[0], -1, 0, 4096, NULL, &(struct sdr_mr *){0}),
			 -EBADF);
	if (p.info[0].imm_packets > 1) { /* an RDMA device: 512 is no path MTU that we take */
		assert_int_equal(sdr_qp_create(p.ctx[0], &small, &qp), -EINVAL);
		assert_int_equal(sdr_qp_payload_set(p.qp[0], 2 * p.info[0].payload_bytes), -EINVAL);
	}
	qp_pair_close(&p);
}

int device_sdk_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),     cmocka_unit_test(numbers_come_round),
		cmocka_unit_test(oneshots),  cmocka_unit_test(early_end),
		cmocka_unit_test(cancelled), cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests_name("SDK", tests, NULL, NULL);
}

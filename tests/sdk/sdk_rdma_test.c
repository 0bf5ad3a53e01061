/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What RDMA devices ask of the SDK, one thing at a time: slots and generations that come round,
 * immediates in fragments, memory that is read after it was handed over, packets that come when
 * their slot has its next message, receives that run out. Where the SDK protects, the same is
 * done without the protection, and the harm must be seen.
 */
#include "fabric/sim/sim_int.h"
#include "pair.h"
#include "sdk/internal.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define PAYLOAD 1024u

static struct sdr_sim_device device(const char *like)
{
	return (struct sdr_sim_device){.size = sizeof(struct sdr_sim_device), .like = like};
}

static void open_pair(struct pair *p, const struct sdr_sim_device *d, uint32_t messages)
{
	const struct sdr_qp_attr attr = {.size = sizeof(attr), .messages = messages};

	pair_device = d;
	pair_open(p, 1, &attr);
	pair_connect(p);
}

static struct sim *world_of(const struct pair *p)
{
	return sim_fabric_of(p->ctx[0]->fabric)->sim;
}

static void fill(uint8_t *to, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (uint8_t)((i * 2654435761u + seed * 40503u) >> 11);
}

static struct sdr_send *send_start(struct pair *p, const void *addr, uint64_t len, uint32_t imm)
{
	const struct sdr_send_wr wr = {.size = sizeof(wr),
				       .opcode = SDR_OP_WRITE_IMM,
				       .imm = imm,
				       .length = len,
				       .addr = addr,
				       .mr = p->mr[0]};
	struct sdr_send *send;

	assert_int_equal(sdr_send_post(p->qp[0], &wr, &send), 0);
	return send;
}

static int recv_try(struct pair *p, void *addr, uint64_t len, struct sdr_recv **recv)
{
	const struct sdr_recv_wr wr = {.size = sizeof(wr), .addr = addr, .length = len};

	return sdr_recv_post(p->qp[1], &wr, recv);
}

static struct sdr_recv *recv_start(struct pair *p, void *addr, uint64_t len)
{
	struct sdr_recv *recv;

	assert_int_equal(recv_try(p, addr, len, &recv), 0);
	return recv;
}

static bool whole(void *arg)
{
	struct sdr_recv_info info = {.size = sizeof(info)};
	uint64_t words[64];

	sdr_recv_query(arg, &info);
	return info.end_known && sdr_recv_pkts_get(arg, 0, info.pkts, words) == (int64_t)info.pkts;
}

static bool whole_with_imm(void *arg)
{
	uint32_t imm;

	return whole(arg) && sdr_recv_imm_get(arg, &imm) == 0;
}

static bool done(void *arg)
{
	struct sdr_send_info info = {.size = sizeof(info)};

	sdr_send_query(arg, &info);
	return info.remote_done;
}

static void wait_ns(struct pair *p, uint64_t ns)
{
	(void)pair_run(p, pair_never, NULL, ns);
}

/* Posts as soon as it may. */
struct posting {
	struct pair *p;
	uint8_t *addr;
	uint64_t len;
	struct sdr_recv *recv;
};

static bool posted(void *arg)
{
	struct posting *post = arg;
	int err = recv_try(post->p, post->addr, post->len, &post->recv);

	assert_true(err == 0 || err == -EAGAIN);
	return err == 0;
}

static void many_in_few_slots(const struct sdr_sim_device *d, uint32_t messages)
{
	static uint8_t src[40000], dst[40000];
	struct pair p;

	open_pair(&p, d, messages);
	for (uint32_t i = 0; i < 100; i++) {
		uint64_t len = i * 397 % sizeof(src);
		struct posting post = {&p, dst, sizeof(dst), NULL};
		struct sdr_send *send;
		uint32_t imm;

		fill(src, len, i);
		assert_true(pair_run(&p, posted, &post, SEC));
		send = send_start(&p, src, len, 0x9e3779b9 * i);
		assert_true(pair_run(&p, whole_with_imm, post.recv, SEC));
		assert_int_equal(sdr_recv_imm_get(post.recv, &imm), 0);
		assert_int_equal(imm, 0x9e3779b9 * i);
		assert_int_equal(sdr_recv_complete(post.recv), 1);
		assert_memory_equal(src, dst, len);
		assert_true(pair_run(&p, done, send, SEC));
		sdr_send_release(send);
	}
	pair_close(&p);
}

/* Slots and generations come round 6 and 25 times. */
static void numbers_come_round(void **state)
{
	struct sdr_sim_device d = device("roce");

	(void)state;
	many_in_few_slots(&d, 4);
	many_in_few_slots(&d, 1);
	d = device("nic");
	many_in_few_slots(&d, 4);
	d.late_ns = MS;
	many_in_few_slots(&d, 4);
	many_in_few_slots(&d, 1);
}

/* Sizes around the 8 and 16 packets that hold an immediate, with each split. */
static void immediates_in_fragments(void **state)
{
	static uint8_t src[20 * PAYLOAD], dst[21 * PAYLOAD];
	struct sdr_sim_device d = device("nic");

	(void)state;
	for (uint32_t messages = 256; messages <= 512; messages *= 2) {
		struct pair p;

		open_pair(&p, &d, messages);
		for (uint32_t pkts = 0; pkts <= 20; pkts++) {
			for (int more = -1; more <= 1; more++) {
				uint64_t len =
					(uint64_t)pkts * PAYLOAD + (pkts ? (uint64_t)more : 0);
				uint64_t room = len + (pkts % 3) * 500;
				struct sdr_recv *recv;
				struct sdr_send *send;
				uint32_t imm;

				if (len > sizeof(src))
					continue;
				fill(src, len, pkts);
				memset(dst, 0x77, sizeof(dst));
				recv = recv_start(&p, dst, room);
				send = send_start(&p, src, len, 0xa1b2c3d4 + pkts);
				assert_true(pair_run(&p, whole_with_imm, recv, SEC));
				assert_int_equal(sdr_recv_imm_get(recv, &imm), 0);
				assert_int_equal(imm, 0xa1b2c3d4 + pkts);
				assert_int_equal(sdr_recv_complete(recv), 1);
				assert_memory_equal(src, dst, len);
				for (uint64_t i = len; i < sizeof(dst); i++)
					assert_int_equal(dst[i], 0x77);
				sdr_send_release(send);
			}
		}
		pair_close(&p);
	}
}

/* ---- memory that is still read ---- */

enum how { TOO_EARLY, POLL, CANCEL, RELEASE, RESET };

/*
 * A send's memory is changed when the caller has it back, by one way or another; or before.
 * What arrives is what was sent, or nothing. Returns whether all that arrived was right.
 */
static bool memory_reused(enum how how)
{
	static uint8_t src[50 * PAYLOAD], good[50 * PAYLOAD], dst[50 * PAYLOAD];
	struct sdr_sim_device d = device("nic");
	struct sdr_recv *recv;
	struct sdr_send *send;
	struct pair p;
	uint64_t words[1];
	bool right = true;

	d.zero_copy_ns = 5 * MS;
	open_pair(&p, &d, 16);
	fill(src, sizeof(src), 5);
	memcpy(good, src, sizeof(src));
	recv = recv_start(&p, dst, sizeof(dst));
	wait_ns(&p, 100 * MS);
	send = send_start(&p, src, sizeof(src), 1);
	assert_int_equal(sdr_send_poll(send), 0); /* all has left the line, nothing the device */
	if (how == POLL) {
		wait_ns(&p, 4 * MS);
		assert_int_equal(sdr_send_poll(send), 0);
		wait_ns(&p, 2 * MS);
		assert_int_equal(sdr_send_poll(send), 1);
	} else if (how == CANCEL) {
		assert_int_equal(sdr_send_cancel(send), 0);
	} else if (how == RELEASE) {
		sdr_send_release(send);
		send = NULL;
	} else if (how == RESET) {
		assert_int_equal(sdr_qp_reset(p.qp[0], 1), 0);
		while (sdr_send_poll(send) == 0)
			;
	}
	memset(src, 0xee, sizeof(src));
	wait_ns(&p, 50 * MS);
	assert_true(sdr_recv_pkts_get(recv, 0, 50, words) >= 0);
	for (uint32_t i = 0; i < 50; i++)
		if (words[0] >> i & 1)
			right = right &&
				memcmp(dst + i * PAYLOAD, good + i * PAYLOAD, PAYLOAD) == 0;
	if (how == POLL || how == RELEASE)
		assert_int_equal(words[0], bits_low(50));
	sdr_send_release(send);
	pair_close(&p);
	return right;
}

static void memory_is_the_callers_again(void **state)
{
	(void)state;
	assert_false(memory_reused(TOO_EARLY)); /* the test sees it */
	assert_true(memory_reused(POLL));
	assert_true(memory_reused(CANCEL));
	assert_true(memory_reused(RELEASE));
	assert_true(memory_reused(RESET));
}

/*
 * The receiver has enough while most of the message waits to be read. The sender hears of the
 * end when nothing is read any more, and nothing more is handed to the device meanwhile.
 */
static void an_end_waits_for_the_device(void **state)
{
	static uint8_t src[300 * PAYLOAD], dst[300 * PAYLOAD];
	struct sdr_sim_device d = device("nic");
	struct sdr_send_wr wr = {.size = sizeof(wr), .addr = src, .length = sizeof(src)};
	struct sdr_send_info info = {.size = sizeof(info)};
	struct sdr_recv *recv;
	struct sdr_send *send;
	uint64_t sent = 0;
	unsigned int busy = 0;
	struct pair p;

	(void)state;
	d.zero_copy_ns = 60 * MS;
	open_pair(&p, &d, 4);
	fill(src, sizeof(src), 5);
	wr.mr = p.mr[0];
	assert_int_equal(sdr_send_stream_start(p.qp[0], &wr, &send), 0);
	recv = recv_start(&p, dst, sizeof(dst));
	wait_ns(&p, 100 * MS);
	for (int i = 0; i < 10; i++) {
		sent += (uint64_t)sdr_send_stream_continue(send, sent, 30 * PAYLOAD, NULL);
		wait_ns(&p, 8 * MS);
	}
	assert_int_equal(sent, sizeof(src));
	assert_int_equal(sdr_recv_complete(recv), 0);
	wait_ns(&p, 12 * MS); /* the CTS has come */
	assert_true(p.qp[0]->live->tx.held == 1);
	assert_false(done(send));
	assert_int_equal(sdr_send_stream_continue(send, 0, PAYLOAD, NULL), -EAGAIN);
	for (; !done(send); busy++)
		wait_ns(&p, MS / 10);
	assert_in_range(busy, 100, 1000); /* the last run waits for 60 - 20 ms */
	assert_false(sdk_tx_busy(p.qp[0], 0));
	sdr_send_query(send, &info);
	assert_int_equal(info.remote_early, 1);
	assert_int_equal(sdr_send_poll(send), 1);
	assert_int_equal(sdr_send_stream_continue(send, 0, PAYLOAD, NULL), -SDR_E_EARLY);
	assert_int_equal(p.qp[0]->live->tx.held, 0);
	sdr_send_release(send);
	pair_close(&p);
}

/* ---- late packets ---- */

struct planted {
	uint32_t message;
	bool empty; /* this one, or the one with bytes */
	unsigned int n;
};

/* A second copy of a packet comes 150 ms later. */
static struct sim_verdict plant(void *arg, const struct sim_packet_info *info)
{
	struct planted *planted = arg;

	if (info->is_ctrl || info->message != planted->message ||
	    (info->len == 0) != planted->empty)
		return (struct sim_verdict){SIM_PASS, 0};
	planted->n++;
	return (struct sim_verdict){SIM_DUP, 150 * MS};
}

/*
 * One slot, four generations: message 0 has a packet that comes late, when message 4 has slot
 * and generation. Returns whether that did harm. `hold` off: as if the device had said that no
 * late packet can pass.
 */
static bool late_packet_harms(const struct sdr_sim_device *d, struct planted *planted, bool hold)
{
	static uint8_t src[2 * PAYLOAD], dst[2 * PAYLOAD];
	struct sdr_recv_info info = {.size = sizeof(info)};
	struct posting post = {0};
	struct pair p;
	uint64_t began;
	bool harm;

	open_pair(&p, d, 1);
	if (!hold) {
		p.ctx[1]->caps.late_ns = 0;
		p.ctx[1]->caps.flags &= ~(uint32_t)FABRIC_CAP_SILENT_LATE;
	}
	sim_filter_set(world_of(&p), plant, planted);
	began = sdr_sim_now_ns(p.sim);
	for (uint32_t i = 0; i < 4; i++) {
		struct sdr_send *send;

		fill(src, PAYLOAD, i);
		post = (struct posting){&p, dst, sizeof(dst), NULL};
		assert_true(pair_run(&p, posted, &post, SEC));
		send = send_start(&p, src, PAYLOAD, 0); /* and an empty packet that ends it */
		assert_true(pair_run(&p, whole, post.recv, SEC));
		assert_int_equal(sdr_recv_complete(post.recv), 1);
		assert_memory_equal(src, dst, PAYLOAD);
		assert_true(pair_run(&p, done, send, SEC));
		sdr_send_release(send);
	}
	assert_true(planted->n > 0 && sdr_sim_now_ns(p.sim) - began < 140 * MS);
	memset(dst, 0x3c, sizeof(dst));
	post = (struct posting){&p, dst, sizeof(dst), NULL};
	if (hold)
		assert_int_equal(recv_try(&p, dst, sizeof(dst), &post.recv), -EAGAIN);
	assert_true(pair_run(&p, posted, &post, SEC));
	/* Nothing is sent for it. */
	wait_ns(&p, 300 * MS);
	sdr_recv_query(post.recv, &info);
	harm = info.touched || info.end_known;
	for (size_t i = 0; i < sizeof(dst); i++)
		harm = harm || dst[i] != 0x3c;
	pair_close(&p);
	return harm;
}

static void late_packets_where_keys_last(void **state)
{
	struct sdr_sim_device d = device("nic");

	(void)state;
	d.late_ns = 200 * MS;
	assert_true(late_packet_harms(&d, &(struct planted){.empty = false}, false));
	assert_false(late_packet_harms(&d, &(struct planted){.empty = false}, true));
	assert_true(late_packet_harms(&d, &(struct planted){.empty = true}, false));
	assert_false(late_packet_harms(&d, &(struct planted){.empty = true}, true));
}

/* Where keys die a NIC lets empty packets in all the same; software looks at the key. */
static void late_packets_where_keys_die(void **state)
{
	struct sdr_sim_device d = device("nic");

	(void)state;
	assert_false(late_packet_harms(&d, &(struct planted){.empty = false}, false));
	assert_true(late_packet_harms(&d, &(struct planted){.empty = true}, false));
	d = device("roce");
	assert_false(late_packet_harms(&d, &(struct planted){.empty = true}, false));
}

/* The receiver posts as soon as it may, and the sender too, up to number 4. */
static bool posted_both(void *arg)
{
	static uint8_t src[4 * PAYLOAD];
	struct posting *post = arg;
	const struct sdr_send_wr wr = {
		.size = sizeof(wr), .addr = src, .length = sizeof(src), .mr = post->p->mr[0]};
	struct sdr_qp_info info = {.size = sizeof(info)};
	struct sdr_send *send;

	memset(src, 0x22, sizeof(src));
	sdr_qp_query(post->p->qp[0], &info);
	if (info.send_next < 5 && sdr_send_post(post->p->qp[0], &wr, &send) == 0)
		sdr_send_release(send);
	return (post->recv || posted(post)) && whole(post->recv);
}

/*
 * The sender does not hear that its messages have ended, and goes on sending the first. As long
 * as that may be, no receive gets the same slot and generation; then one does.
 */
static void a_sender_that_does_not_hear(void **state)
{
	static const struct sdr_sim_link fine = {.size = sizeof(fine), .delay_ns = 5 * MS},
					 dead = {.size = sizeof(dead), .cut = 1};
	static uint8_t src[4 * PAYLOAD], dst[4 * PAYLOAD];
	struct sdr_sim_device d = device("nic");
	struct sdr_send_wr wr = {.size = sizeof(wr), .addr = src, .length = sizeof(src)};
	struct posting post;
	struct sdr_send *send;
	struct pair p;

	(void)state;
	d.late_ns = MS;
	open_pair(&p, &d, 1);
	pair_link(&p, &fine, &fine);
	memset(src, 0x11, sizeof(src));
	memset(dst, 0x3c, sizeof(dst));
	wr.mr = p.mr[0];
	assert_int_equal(sdr_send_stream_start(p.qp[0], &wr, &send), 0);
	post.recv = recv_start(&p, dst, sizeof(dst));
	wait_ns(&p, 50 * MS);
	assert_true(sdr_send_stream_continue(send, 0, PAYLOAD, NULL) > 0);
	wait_ns(&p, 50 * MS);
	assert_int_equal(dst[0], 0x11);
	pair_link(&p, &fine, &dead);
	memset(dst, 0x3c, sizeof(dst));
	/* It gives up message 0, and 1, 2, 3, which nobody sends. */
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(sdr_recv_complete(post.recv), 0);
		if (i < 3)
			post.recv = recv_start(&p, dst, sizeof(dst));
	}
	memset(dst, 0x3c, sizeof(dst));
	for (int i = 0; i < 100; i++) {
		assert_int_equal(recv_try(&p, dst, sizeof(dst), &post.recv), -EAGAIN);
		assert_true(sdr_send_stream_continue(send, 0, sizeof(src), NULL) > 0);
		wait_ns(&p, 10 * MS);
	}
	pair_link(&p, &fine, &fine);
	post = (struct posting){&p, dst, sizeof(dst), NULL};
	assert_true(pair_run(&p, posted_both, &post, 20 * SEC));
	wait_ns(&p, 500 * MS);
	assert_int_equal(sdr_recv_complete(post.recv), 1);
	for (size_t i = 0; i < sizeof(dst); i++)
		assert_int_equal(dst[i], 0x22);
	pair_close(&p);
}

/* ---- receives that run out ---- */

static void receives_run_out(void **state)
{
	static const struct sdr_sim_link burst = {.size = sizeof(burst), .delay_ns = 5 * MS};
	static uint8_t src[60 * PAYLOAD], dst[60 * PAYLOAD];
	struct sdr_sim_device d = device("nic");
	struct sdr_send_wr wr = {.size = sizeof(wr), .addr = src, .length = sizeof(src)};
	struct sdr_recv *recv;
	struct sdr_send *send;
	uint64_t words[1];
	struct pair p;

	(void)state;
	d.recv_depth = 16;
	open_pair(&p, &d, 16);
	pair_link(&p, &burst, &burst); /* no rate: all arrive in one instant */
	fill(src, sizeof(src), 3);
	assert_int_equal(sdr_send_stream_start(p.qp[0], &wr, &send), 0);
	recv = recv_start(&p, dst, sizeof(dst));
	wait_ns(&p, 50 * MS);
	assert_true(sdr_send_stream_continue(send, 0, sizeof(src), NULL) > 0);
	wait_ns(&p, 50 * MS);
	assert_int_equal(sdr_recv_pkts_get(recv, 0, 60, words), 16);
	assert_int_equal(words[0], bits_low(16));
	assert_int_equal(sim_starved(p.ctx[1]->fabric), 44);
	for (uint64_t at = 16; at < 60; at += 11) {
		assert_true(sdr_send_stream_continue(send, at * PAYLOAD, 11 * PAYLOAD, NULL) > 0);
		wait_ns(&p, 50 * MS);
	}
	assert_true(whole(recv));
	assert_int_equal(sdr_recv_complete(recv), 1);
	assert_memory_equal(src, dst, sizeof(src));
	pair_close(&p);
}

/* The newest packet of a channel that fell silent keeps its message's number. */
static void the_newest_packet_stays_what_it_was(void **state)
{
	static uint8_t src[PAYLOAD], dst[PAYLOAD];
	const struct sdr_qp_attr attr = {.size = sizeof(attr), .messages = 1, .channels = 2};
	struct sdr_sim_device d = device("nic");
	struct sdr_channel_facts facts = {.size = sizeof(facts)};
	struct pair p;

	(void)state;
	pair_device = &d;
	pair_open(&p, 1, &attr);
	pair_connect(&p);
	for (uint32_t i = 0; i < 40; i++) {
		struct sdr_send_wr wr = {.size = sizeof(wr), .addr = src, .length = sizeof(src)};
		struct sdr_continue_attr ca = {.size = sizeof(ca), .channel = i > 2};
		struct posting post = {&p, dst, sizeof(dst), NULL};
		struct sdr_send *send;

		assert_int_equal(sdr_send_stream_start(p.qp[0], &wr, &send), 0);
		assert_true(pair_run(&p, posted, &post, SEC));
		wait_ns(&p, 50 * MS);
		assert_int_equal(sdr_send_stream_continue(send, 0, PAYLOAD, &ca), PAYLOAD);
		assert_true(pair_run(&p, whole, post.recv, SEC));
		for (uint32_t c = 0; c < (i > 2 ? 2u : 1u); c++) {
			assert_int_equal(sdr_channel_facts_get(p.qp[1], c, &facts), 0);
			assert_int_equal(facts.packet_valid, 1);
			assert_int_equal(facts.psn_valid, 0);
			assert_int_equal(facts.newest_message, c || i < 3 ? i : 2);
			assert_int_equal(facts.newest_packet, 0);
		}
		assert_int_equal(sdr_recv_complete(post.recv), 1);
		assert_true(pair_run(&p, done, send, SEC));
		sdr_send_release(send);
	}
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_come_round),
		cmocka_unit_test(immediates_in_fragments),
		cmocka_unit_test(memory_is_the_callers_again),
		cmocka_unit_test(an_end_waits_for_the_device),
		cmocka_unit_test(late_packets_where_keys_last),
		cmocka_unit_test(late_packets_where_keys_die),
		cmocka_unit_test(a_sender_that_does_not_hear),
		cmocka_unit_test(receives_run_out),
		cmocka_unit_test(the_newest_packet_stays_what_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

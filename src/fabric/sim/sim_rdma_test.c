/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the simulated RDMA devices do beyond the contract's suite: when memory is read, what a
 * NIC lets in, what it writes and what it drops, and which devices there are none of.
 */
#include "fabric/sim/sim.h"

#include "base/bits.h"
#include "base/units.h"
#include "sdr/counters.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define PAYLOAD 1024u
#define MESSAGES 4u
#define GENERATIONS 4u
#define NPKTS 32u
#define WIRE_NS (100 * NS_PER_US)

struct side {
	struct fabric *f;
	struct fabric_qp *qp;
	struct fabric_local local;
	struct rx_table table;
	struct rx_slot slots[MESSAGES];
	struct rx_worker rxw;
};

struct world {
	struct sim *sim;
	struct side side[2];
	struct fabric_key key[MESSAGES * GENERATIONS];
	uint8_t from[NPKTS * PAYLOAD], to[NPKTS * PAYLOAD];
};

static void connect_side(struct world *w, int i)
{
	struct side *s = &w->side[i], *other = &w->side[!i];
	struct fabric_peer peer = {.qpn = other->local.qpn,
				   .token = other->local.token,
				   .payload_bytes = PAYLOAD,
				   .active = i == 0,
				   .addr = other->local.addr,
				   .channels = 1,
				   .generations = GENERATIONS,
				   .messages = MESSAGES};

	memcpy(peer.data_qpn, other->local.data_qpn, sizeof(peer.data_qpn));
	assert_int_equal(s->f->ops->qp_connect(s->qp, &peer), 0);
}

static struct world *world_make(const struct sim_device *device, const struct link_attr *link)
{
	const struct sim_fabric_attr attr = {.device = *device};
	struct world *w = aligned_alloc(64, (sizeof(*w) + 63) / 64 * 64);

	assert_non_null(w);
	memset(w, 0, sizeof(*w));
	assert_int_equal(sim_create(3, &sdr_alloc_system, &w->sim), 0);
	for (int i = 0; i < 2; i++) {
		struct side *s = &w->side[i];
		struct fabric_qp_attr qattr = {.channels = 1, .table = &s->table, .cookie = s};

		assert_int_equal(sim_host_add(w->sim), i);
		assert_int_equal(sim_fabric_open(w->sim, i, &attr, &s->f), 0);
		rx_worker_init(&s->rxw);
		assert_int_equal(rx_table_init(&s->table, s->slots, MESSAGES,
					       MESSAGES * GENERATIONS - 1, &s->rxw, 1,
					       RX_SINGLE_THREAD),
				 RX_OK);
		assert_int_equal(s->f->ops->qp_create(s->f, &qattr, &s->qp), 0);
		s->f->ops->qp_local(s->qp, &s->local);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(sim_link_set(w->sim, i, !i, SIM_CHANNEL_ALL, link), 0);
		connect_side(w, i);
	}
	for (size_t i = 0; i < sizeof(w->from); i++)
		w->from[i] = (uint8_t)(i * 7 + (i >> 9));
	return w;
}

static void world_free(struct world *w)
{
	for (int i = 0; i < 2; i++)
		w->side[i].f->ops->close(w->side[i].f);
	sim_check(w->sim);
	sim_destroy(w->sim);
	free(w);
}

static void bind_to(struct world *w, uint32_t message)
{
	const struct fabric_bind b = {
		.rx = {.base = w->to, .len = sizeof(w->to), .payload = PAYLOAD, .imm_frags = 16}};

	assert_int_equal(w->side[1].f->ops->bind(w->side[1].qp, message, &b,
						 &w->key[message % (MESSAGES * GENERATIONS)]),
			 0);
}

static void fence(struct world *w, uint32_t message)
{
	w->side[1].f->ops->fence_begin(w->side[1].qp, message);
	assert_int_equal(w->side[1].f->ops->fence_done(w->side[1].qp, message), 1);
}

/* One run; `mr`: from where it lies. */
static int post(struct world *w, uint32_t message, uint32_t first, uint32_t n, bool mr)
{
	struct fabric_write run = {.qp = w->side[0].qp,
				   .message = message,
				   .addr = w->from + (size_t)first * PAYLOAD,
				   .offset = (uint64_t)first * PAYLOAD,
				   .payload_bytes = PAYLOAD,
				   .last_bytes = PAYLOAD,
				   .count = n,
				   .key = w->key[message % (MESSAGES * GENERATIONS)],
				   .mr = mr ? w : NULL};

	return w->side[0].f->ops->post(w->side[0].f, &run, 1);
}

static void advance(struct world *w, uint64_t ns)
{
	sim_advance(w->sim, sim_now(w->sim) + ns);
	sim_check(w->sim);
}

/* The bits of a message, after a poll. */
static uint64_t bits(struct world *w, uint32_t message)
{
	struct fabric_event ev[4];
	uint64_t word;

	while (w->side[1].f->ops->poll(w->side[1].f, ev, 4) > 0)
		;
	rx_bits_get(rx_slot_of(&w->side[1].table, message), 0, NPKTS, &word);
	return word;
}

static uint64_t counter(const struct world *w, enum sdr_counter which)
{
	uint64_t sum[SDR_CTR_COUNT] = {0};

	w->side[1].f->ops->counters(w->side[1].f, sum);
	return sum[which];
}

static const struct link_attr wire = {.delay_ns = WIRE_NS};
static const struct sim_device nic = {.rocev2 = true, .nic = true};

static void test_memory_is_read_later(void **state)
{
	const struct sim_device d = {.rocev2 = true, .zero_copy_ns = 10 * NS_PER_US};
	struct world *w = world_make(&d, &wire);
	const struct fabric_ops *ops = w->side[0].f->ops;

	(void)state;
	bind_to(w, 0);
	assert_int_equal(post(w, 0, 0, 1, true), 1);
	assert_int_equal(post(w, 0, 1, 1, false), 1);
	assert_true(ops->tx_busy(w->side[0].qp, 0));
	assert_false(ops->tx_busy(w->side[0].qp, 1));
	memset(w->from, 0x44, 2 * PAYLOAD);
	advance(w, 10 * NS_PER_US - 1);
	assert_true(ops->tx_busy(w->side[0].qp, 0));
	advance(w, 1);
	assert_false(ops->tx_busy(w->side[0].qp, 0));
	memset(w->from, 0x55, 2 * PAYLOAD);
	advance(w, WIRE_NS);
	assert_int_equal(bits(w, 0), 3);
	assert_int_equal(w->to[0], 0x44); /* what it was when it was read */
	assert_int_equal(w->to[PAYLOAD], (uint8_t)(PAYLOAD * 7 + 2)); /* and when it was copied */
	world_free(w);
}

static void test_who_waits_in_one_instant(void **state)
{
	const struct sim_device d = {.rocev2 = true, .zero_copy_ns = NS_PER_S};
	struct world *w = world_make(&d, &wire);
	unsigned int asked = 0;

	(void)state;
	bind_to(w, 0);
	assert_int_equal(post(w, 0, 0, 8, true), 1);
	while (w->side[0].f->ops->tx_busy(w->side[0].qp, 0))
		assert_true(++asked < 1000);
	assert_true(asked > 10);
	memset(w->from, 0, sizeof(w->from));
	advance(w, WIRE_NS);
	assert_int_equal(bits(w, 0), 0xff);
	assert_int_equal(w->to[10], 70);
	/* Others go with their QP, unread. */
	assert_int_equal(post(w, 0, 8, 8, true), 1);
	w->side[0].f->ops->qp_destroy(w->side[0].qp);
	advance(w, 2 * NS_PER_S);
	assert_int_equal(bits(w, 0), 0xff);
	world_free(w);
}

static void test_no_more_runs_than_it_takes(void **state)
{
	const struct sim_device d = {.rocev2 = true, .zero_copy_ns = 10 * NS_PER_US};
	struct world *w = world_make(&d, &wire);
	struct fabric_event ev;

	(void)state;
	bind_to(w, 0);
	for (uint32_t i = 0; i < SIM_SEND_RUNS; i++)
		assert_int_equal(post(w, 0, i % NPKTS, 1, true), 1);
	assert_int_equal(post(w, 0, 0, 1, true), 0);
	assert_int_equal(w->side[0].f->ops->poll(w->side[0].f, &ev, 1), 0);
	advance(w, 10 * NS_PER_US);
	assert_int_equal(w->side[0].f->ops->poll(w->side[0].f, &ev, 1), 1);
	assert_int_equal(ev.type, FABRIC_EV_WRITABLE);
	assert_int_equal(post(w, 0, 0, 1, true), 1);
	world_free(w);
}

/* Bytes come with the packet, bits with the poll; a duplicate's bytes are written again. */
static void test_a_nic_writes_first(void **state)
{
	struct world *w = world_make(&nic, &wire);
	uint64_t before;

	(void)state;
	bind_to(w, 1);
	assert_int_equal(post(w, 1, 0, 4, false), 1);
	advance(w, WIRE_NS);
	assert_memory_equal(w->to, w->from, 4 * PAYLOAD);
	rx_bits_get(rx_slot_of(&w->side[1].table, 1), 0, NPKTS, &before);
	assert_int_equal(before, 0);
	assert_int_equal(bits(w, 1), 0xf);
	memset(w->to, 0, sizeof(w->to));
	assert_int_equal(post(w, 1, 2, 1, false), 1);
	advance(w, WIRE_NS);
	assert_int_equal(bits(w, 1), 0xf);
	assert_memory_equal(w->to + 2 * PAYLOAD, w->from + 2 * PAYLOAD, PAYLOAD);
	assert_int_equal(w->to[0], 0);
	assert_int_equal(counter(w, SDR_CTR_rx_duplicate), 1);
	/* What had come before the fence is in the bits by then, without a poll. */
	assert_int_equal(post(w, 1, 4, 4, false), 1);
	advance(w, WIRE_NS);
	fence(w, 1);
	assert_int_equal(bits(w, 1), 0xff);
	world_free(w);
}

static void test_dead_keys_leave_no_trace(void **state)
{
	struct world *w = world_make(&nic, &wire);
	struct fabric_key old;

	(void)state;
	bind_to(w, 1);
	old = w->key[1];
	fence(w, 1);
	assert_int_equal(post(w, 1, 0, 4, false), 1);
	advance(w, WIRE_NS);
	assert_int_equal(bits(w, 1), 0);
	bind_to(w, 1 + MESSAGES * GENERATIONS);
	assert_int_not_equal(w->key[1].rkey, old.rkey);
	w->key[1] = old;
	assert_int_equal(post(w, 1, 0, 4, false), 1);
	w->key[1].va += PAYLOAD; /* and one that is wrong */
	assert_int_equal(post(w, 1, NPKTS - 1, 1, false), 1);
	advance(w, WIRE_NS);
	assert_int_equal(bits(w, 1), 0);
	assert_int_equal(w->to[0], 0);
	assert_int_equal(counter(w, SDR_CTR_rx_late) + counter(w, SDR_CTR_rx_protection), 0);
	world_free(w);
}

static void test_lasting_keys_write_nowhere(void **state)
{
	const struct sim_device d = {.rocev2 = true, .nic = true, .lasting_keys = true};
	struct world *w = world_make(&d, &wire);
	struct fabric_key old;

	(void)state;
	bind_to(w, 1);
	old = w->key[1];
	fence(w, 1);
	assert_int_equal(post(w, 1, 0, 4, false), 1);
	advance(w, WIRE_NS);
	assert_int_equal(bits(w, 1), 0);
	assert_int_equal(counter(w, SDR_CTR_rx_late), 4);
	assert_int_equal(w->to[0], 0);
	/* The slot's next generation has another; its next use the same, and so what is late
	 * passes. */
	bind_to(w, 1 + MESSAGES);
	assert_int_not_equal(w->key[1 + MESSAGES].rkey, old.rkey);
	fence(w, 1 + MESSAGES);
	bind_to(w, 1 + MESSAGES * GENERATIONS);
	assert_int_equal(w->key[1].rkey, old.rkey);
	assert_int_equal(post(w, 1, 0, 4, false), 1);
	advance(w, WIRE_NS);
	assert_int_equal(bits(w, 1), 0xf);
	world_free(w);
}

static void test_damage_leaves_no_trace(void **state)
{
	const struct link_attr bad = {.delay_ns = WIRE_NS, .corrupt_p = 1};
	struct world *w = world_make(&nic, &bad);

	(void)state;
	bind_to(w, 2);
	for (int i = 0; i < 2000; i++) {
		assert_int_equal(post(w, 2, (uint32_t)i % NPKTS, 1, false), 1);
		advance(w, WIRE_NS);
	}
	/* But for bits that routers may change: FECN, BECN and the six beside them. */
	assert_true(rx_popcount(bits(w, 2)) < 25);
	for (uint32_t i = 0; i < NPKTS; i++)
		if (bits(w, 2) >> i & 1)
			assert_memory_equal(w->to + i * PAYLOAD, w->from + i * PAYLOAD, PAYLOAD);
	world_free(w);
}

static void test_receives_run_out(void **state)
{
	struct sim_device d = nic;
	struct world *w;

	(void)state;
	d.recv_depth = 20;
	w = world_make(&d, &wire);
	bind_to(w, 0);
	assert_int_equal(post(w, 0, 0, 30, false), 1);
	advance(w, WIRE_NS);
	assert_int_equal(sim_starved(w->side[1].f), 10);
	assert_int_equal(w->to[19 * PAYLOAD], w->from[19 * PAYLOAD]);
	assert_int_equal(w->to[20 * PAYLOAD + 1], 0);
	assert_int_equal(bits(w, 0), bits_low(20));
	assert_int_equal(post(w, 0, 20, 10, false), 1);
	advance(w, WIRE_NS);
	assert_int_equal(bits(w, 0), bits_low(30));
	assert_int_equal(sim_starved(w->side[1].f), 10);
	world_free(w);
}

static void test_devices_that_there_are_not(void **state)
{
	static const struct sim_device wrong[] = {
		{.nic = true},
		{.generations = 4},
		{.lasting_keys = true},
		{.late_ns = 1},
		{.recv_depth = 1},
		{.rocev2 = true, .recv_depth = 1},
		{.rocev2 = true, .generations = 3},
		{.rocev2 = true, .generations = 8},
	};
	struct world *w = world_make(&nic, &wire);
	struct fabric_caps caps;
	struct fabric *f;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(sim_fabric_open(w->sim, 0,
						 &(struct sim_fabric_attr){.device = wrong[i]}, &f),
				 -EINVAL);
	assert_int_equal(sim_fabric_open(w->sim, 0, &(struct sim_fabric_attr){.device = nic}, &f),
			 -EADDRINUSE);
	assert_int_equal(sim_host_add(w->sim), 2);
	assert_int_equal(
		sim_fabric_open(w->sim, 2,
				&(struct sim_fabric_attr){.max_payload = 1000, .device = nic}, &f),
		-EINVAL);
	assert_int_equal(
		sim_fabric_open(w->sim, 2,
				&(struct sim_fabric_attr){.max_payload = 9000, .device = nic}, &f),
		0);
	f->ops->caps(f, &caps);
	assert_int_equal(caps.max_payload_bytes, 4096);
	assert_int_equal(caps.udp_port, FABRIC_ROCEV2_PORT);
	f->ops->close(f);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_is_read_later),
		cmocka_unit_test(test_who_waits_in_one_instant),
		cmocka_unit_test(test_no_more_runs_than_it_takes),
		cmocka_unit_test(test_a_nic_writes_first),
		cmocka_unit_test(test_dead_keys_leave_no_trace),
		cmocka_unit_test(test_lasting_keys_write_nowhere),
		cmocka_unit_test(test_damage_leaves_no_trace),
		cmocka_unit_test(test_receives_run_out),
		cmocka_unit_test(test_devices_that_there_are_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

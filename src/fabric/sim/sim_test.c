/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of what the simulated world adds to the contract: time, links, seeds, seams. The
 * contract itself is in sim_conformance.c.
 */
#include "fabric/sim/sim.h"

#include "base/bits.h"
#include "base/rng.h"
#include "base/units.h"
#include "sdr/counters.h"
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define PAYLOAD 1000u
#define SLOTS 8u
/* IP to trailer of a full data packet, and of a control datagram with no body. */
#define PKT_BYTES (28u + 32u + PAYLOAD + 4u)
#define CTRL_BYTES (28u + 20u + 4u)

struct side {
	struct fabric *f;
	struct fabric_qp *qp;
	struct fabric_local local;
	struct rx_table table;
	struct rx_slot slots[SLOTS];
	struct rx_worker worker;
};

struct world {
	struct sim *sim;
	struct side side[2];
	uint8_t from[64 * PAYLOAD], to[64 * PAYLOAD];
};

static struct world *world_make(uint64_t seed, const struct sim_fabric_attr *attr)
{
	static const struct sim_fabric_attr plain = {0};
	struct world *w = aligned_alloc(64, u64_div_up(sizeof(*w), 64) * 64);

	assert_non_null(w);
	memset(w, 0, sizeof(*w));
	assert_int_equal(sim_create(seed, &sdr_alloc_system, &w->sim), 0);
	for (int i = 0; i < 2; i++) {
		struct side *s = &w->side[i];
		struct fabric_qp_attr qattr = {.channels = 4, .table = &s->table, .cookie = s};

		assert_int_equal(sim_host_add(w->sim), i);
		assert_int_equal(sim_fabric_open(w->sim, i, attr ? attr : &plain, &s->f), 0);
		rx_worker_init(&s->worker);
		assert_int_equal(rx_table_init(&s->table, s->slots, SLOTS, UINT32_MAX, &s->worker,
					       1, RX_SINGLE_THREAD),
				 0);
		assert_int_equal(s->f->ops->qp_create(s->f, &qattr, &s->qp), 0);
		s->f->ops->qp_local(s->qp, &s->local);
	}
	for (size_t i = 0; i < sizeof(w->from); i++)
		w->from[i] = (uint8_t)(i * 7 + i / 251);
	return w;
}

static void connect_side(struct world *w, int i)
{
	struct side *s = &w->side[i], *other = &w->side[!i];
	struct fabric_peer peer = {.qpn = other->local.qpn,
				   .token = other->local.token,
				   .start_psn = other->local.start_psn,
				   .payload_bytes = PAYLOAD,
				   .active = i == 0};

	sim_fabric_addr(other->f, &peer.addr);
	assert_int_equal(s->f->ops->qp_connect(s->qp, &peer), 0);
}

static struct world *world_connected(uint64_t seed, const struct link_attr *attr)
{
	struct world *w = world_make(seed, NULL);

	connect_side(w, 0);
	connect_side(w, 1);
	for (int i = 0; attr && i < 2; i++)
		assert_int_equal(sim_link_set(w->sim, i, !i, SIM_CHANNEL_ALL, attr), 0);
	return w;
}

static void world_free(struct world *w)
{
	for (int i = 0; i < 2; i++)
		if (w->side[i].f)
			w->side[i].f->ops->close(w->side[i].f);
	sim_check(w->sim);
	sim_destroy(w->sim);
	free(w);
}

static void bind_to(struct world *w, uint32_t message)
{
	struct fabric_bind b = {.rx = {.base = w->to,
				       .len = sizeof(w->to),
				       .payload = PAYLOAD,
				       .chunk_shift = 0,
				       .imm_frags = 1}};

	assert_int_equal(
		w->side[1].f->ops->bind(w->side[1].qp, message, &b, &(struct fabric_key){0}), 0);
}

static int post(struct world *w, uint32_t channel, uint32_t message, uint32_t first, uint32_t n)
{
	struct fabric_write run = {.qp = w->side[0].qp,
				   .channel = channel,
				   .message = message,
				   .addr = w->from + first * PAYLOAD,
				   .offset = (uint64_t)first * PAYLOAD,
				   .payload_bytes = PAYLOAD,
				   .last_bytes = PAYLOAD,
				   .count = n};

	return w->side[0].f->ops->post(w->side[0].f, &run, 1);
}

static uint64_t bits(const struct world *w, uint32_t message)
{
	uint64_t word;

	rx_bits_get(rx_slot_of(&w->side[1].table, message), 0, 64, &word);
	return word;
}

static uint64_t counter(const struct world *w, int side, enum sdr_counter which)
{
	uint64_t sum[SDR_CTR_COUNT] = {0};

	w->side[side].f->ops->counters(w->side[side].f, sum);
	return sum[which];
}

static int poll_one(struct world *w, int side, struct fabric_event *ev)
{
	return w->side[side].f->ops->poll(w->side[side].f, ev, 1);
}

static void test_packets_arrive_on_the_nanosecond(void **state)
{
	const struct link_attr attr = {.rate_bps = 8000000000, .delay_ns = 5000};
	struct world *w = world_connected(1, &attr);

	(void)state;
	bind_to(w, 0);
	assert_int_equal(sim_next_event_ns(w->sim), UINT64_MAX);
	assert_int_equal(post(w, 0, 0, 0, 3), 1);
	assert_int_equal(sim_in_flight(w->sim), 3);
	for (uint64_t n = 1; n <= 3; n++) {
		assert_int_equal(sim_next_event_ns(w->sim), 5000 + n * PKT_BYTES);
		sim_advance(w->sim, 5000 + n * PKT_BYTES - 1);
		assert_int_equal(bits(w, 0), bits_low((unsigned int)n - 1));
		sim_advance(w->sim, 5000 + n * PKT_BYTES);
		assert_int_equal(bits(w, 0), bits_low((unsigned int)n));
		sim_check(w->sim);
	}
	sim_advance(w->sim, 1); /* not back */
	assert_int_equal(sim_now(w->sim), 5000 + 3 * PKT_BYTES);
	assert_memory_equal(w->to, w->from, 3 * PAYLOAD);
	assert_int_equal(sim_in_flight(w->sim), 0);
	world_free(w);
}

static void test_a_long_step_keeps_arrival_times(void **state)
{
	const struct link_attr attr = {.rate_bps = 8000000000, .delay_ns = 5000};
	struct world *w = world_connected(1, &attr);
	struct fabric_channel_facts facts;
	struct fabric_event ev;

	(void)state;
	bind_to(w, 0);
	assert_int_equal(post(w, 0, 0, 0, 64), 1);
	assert_int_equal(w->side[0].f->ops->ctrl(w->side[0].qp, 0, 0, NULL, 0), 0);
	sim_advance(w->sim, NS_PER_S);
	assert_int_equal(bits(w, 0), UINT64_MAX);
	w->side[1].f->ops->channel_facts(w->side[1].qp, 0, &facts);
	assert_int_equal(facts.newest_age_ns, NS_PER_S - 5000 - 64 * PKT_BYTES);
	assert_int_equal(poll_one(w, 1, &ev), 1);
	assert_int_equal(ev.type, FABRIC_EV_READY);
	assert_int_equal(poll_one(w, 1, &ev), 1);
	assert_int_equal(ev.type, FABRIC_EV_CTRL);
	assert_int_equal(ev.age_ns, NS_PER_S - 5000 - 64 * PKT_BYTES - CTRL_BYTES);
	assert_int_equal(poll_one(w, 1, &ev), 0);
	world_free(w);
}

/* Whoever comes first has it, also where one step holds both. */
static void test_links_take_turns_within_a_step(void **state)
{
	struct world *w = world_connected(1, &(struct link_attr){.rate_bps = 8000000000});
	struct fabric_channel_facts facts[2];

	(void)state;
	assert_int_equal(sim_link_set(w->sim, 0, 1, 1, &(struct link_attr){.delay_ns = 5000}), 0);
	bind_to(w, 0);
	assert_int_equal(post(w, 0, 0, 0, 64), 1); /* 1064 ns each */
	assert_int_equal(post(w, 1, 0, 0, 8), 1);  /* the first four are there, the others not */
	sim_advance(w->sim, NS_PER_S);
	for (uint32_t i = 0; i < 2; i++)
		w->side[1].f->ops->channel_facts(w->side[1].qp, i, &facts[i]);
	assert_int_equal(facts[0].received_pkts, 60);
	assert_int_equal(facts[0].duplicate_pkts, 4);
	assert_int_equal(facts[1].received_pkts, 4);
	assert_int_equal(facts[1].duplicate_pkts, 4);
	world_free(w);
}

/* Channels that share a link keep their own facts. */
static void test_channels_share_a_link(void **state)
{
	struct world *w = world_connected(1, NULL);
	struct fabric_channel_facts facts;

	(void)state;
	bind_to(w, 0);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(post(w, i % 4, 0, i, 1), 1);
	sim_advance(w->sim, NS_PER_S);
	for (uint32_t i = 0; i < 4; i++) {
		w->side[1].f->ops->channel_facts(w->side[1].qp, i, &facts);
		assert_int_equal(facts.received_pkts, i < 2 ? 3 : 2);
	}
	world_free(w);
}

static void test_a_qp_ends_with_control_waiting(void **state)
{
	struct world *w = world_connected(1, NULL);
	struct fabric_event ev;

	(void)state;
	bind_to(w, 0);
	assert_int_equal(post(w, 0, 0, 0, 1), 1);
	assert_int_equal(w->side[0].f->ops->ctrl(w->side[0].qp, 0, 0, "x", 1), 0);
	sim_advance(w->sim, 0);
	w->side[1].f->ops->qp_destroy(w->side[1].qp);
	assert_int_equal(poll_one(w, 1, &ev), 0);
	assert_int_equal(sim_in_flight(w->sim), 0);
	world_free(w);
}

static void test_without_a_link_it_is_a_wire(void **state)
{
	struct world *w = world_connected(1, NULL);

	(void)state;
	bind_to(w, 0);
	assert_int_equal(post(w, 0, 0, 0, 5), 1);
	assert_int_equal(sim_next_event_ns(w->sim), 0);
	assert_int_equal(bits(w, 0), 0);
	sim_advance(w->sim, 0);
	assert_int_equal(bits(w, 0), 31);
	world_free(w);
}

static void test_channels_may_have_links_of_their_own(void **state)
{
	struct world *w = world_connected(1, &(struct link_attr){.delay_ns = 100});
	struct link_counters c;

	(void)state;
	bind_to(w, 0);
	assert_int_equal(post(w, 2, 0, 10, 1), 1); /* warms the channel's cached link */
	assert_int_equal(sim_link_set(w->sim, 0, 1, 2, &(struct link_attr){.delay_ns = 7}), 0);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(post(w, i, 0, i, 1), 1);
	sim_advance(w->sim, 7);
	assert_int_equal(bits(w, 0), 1 << 2);
	sim_advance(w->sim, 100);
	assert_int_equal(bits(w, 0), 15 | 1 << 10);
	assert_int_equal(sim_link_counters(w->sim, 0, 1, 2, &c), 0);
	assert_int_equal(c.delivered_pkts, 1);
	assert_int_equal(sim_link_counters(w->sim, 0, 1, SIM_CHANNEL_ALL, &c), 0);
	assert_int_equal(c.delivered_pkts, 4);
	assert_int_equal(sim_link_counters(w->sim, 0, 1, 3, &c), -ENOENT);
	world_free(w);
}

static void test_drop_list_is_copied(void **state)
{
	uint64_t drop[] = {1, 3};
	struct link_attr attr = {.drop = drop, .n_drop = 2};
	struct world *w = world_connected(1, &attr);

	(void)state;
	drop[0] = drop[1] = 0;
	bind_to(w, 0);
	assert_int_equal(post(w, 0, 0, 0, 5), 1);
	sim_advance(w->sim, 0);
	assert_int_equal(bits(w, 0), 1 | 4 | 16);
	/* A drop list counts from where it was set. */
	assert_int_equal(sim_link_set(w->sim, 0, 1, SIM_CHANNEL_ALL, &attr), -EINVAL);
	drop[1] = 1;
	assert_int_equal(sim_link_set(w->sim, 0, 1, SIM_CHANNEL_ALL, &attr), 0);
	assert_int_equal(post(w, 0, 0, 5, 5), 1);
	sim_advance(w->sim, 0);
	assert_int_equal(bits(w, 0), 1 | 4 | 16 | 7 << 7);
	world_free(w);
}

static void test_damage_is_found(void **state)
{
	struct world *w = world_connected(3, &(struct link_attr){.corrupt_p = 1});

	(void)state;
	bind_to(w, 0);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(post(w, 0, 0, 0, 64), 1);
	assert_int_equal(w->side[0].f->ops->ctrl(w->side[0].qp, 0, 0, "abc", 3), 0);
	sim_advance(w->sim, 0);
	assert_int_equal(bits(w, 0), 0);
	for (size_t i = 0; i < sizeof(w->to); i++)
		assert_int_equal(w->to[i], 0);
	assert_int_equal(counter(w, 1, SDR_CTR_rx_protection) +
				 counter(w, 1, SDR_CTR_rx_malformed) +
				 counter(w, 1, SDR_CTR_rx_unknown_qp),
			 6401);
	assert_int_equal(counter(w, 1, SDR_CTR_rx_ctrl), 0);
	assert_true(counter(w, 1, SDR_CTR_rx_protection) > 6000);
	world_free(w);
}

static void test_copies_of_a_packet(void **state)
{
	const struct link_attr attr = {.duplicate_p = 1, .duplicate_ns = 10};
	struct world *w = world_connected(3, &attr);

	(void)state;
	bind_to(w, 0);
	assert_int_equal(post(w, 0, 0, 0, 64), 1);
	sim_advance(w->sim, 9);
	assert_int_equal(counter(w, 1, SDR_CTR_rx_duplicate), 0);
	sim_advance(w->sim, 10);
	assert_int_equal(counter(w, 1, SDR_CTR_rx_duplicate), 64);
	assert_int_equal(counter(w, 1, SDR_CTR_rx_pkts), 64);
	world_free(w);
}

static void test_marks_arrive(void **state)
{
	const struct link_attr attr = {.rate_bps = 1000000, .ecn_bytes = 10 * PKT_BYTES};
	struct world *w = world_connected(3, &attr);
	struct fabric_channel_facts facts;

	(void)state;
	bind_to(w, 0);
	assert_int_equal(post(w, 1, 0, 0, 30), 1);
	sim_advance(w->sim, NS_PER_S);
	w->side[1].f->ops->channel_facts(w->side[1].qp, 1, &facts);
	assert_int_equal(facts.received_pkts, 30);
	assert_int_equal(facts.ce_pkts, 20);
	assert_int_equal(counter(w, 1, SDR_CTR_rx_ce), 20);
	world_free(w);
}

static void test_a_full_queue_pushes_back(void **state)
{
	const struct link_attr attr = {.rate_bps = 8000000000, .delay_ns = 1000000};
	const struct sim_fabric_attr fattr = {.tx_queue_bytes = 20000};
	struct world *w = world_make(1, &fattr);
	struct fabric_event ev;
	struct fabric_write run[3];
	uint64_t at;

	(void)state;
	connect_side(w, 0);
	assert_int_equal(sim_link_set(w->sim, 0, 1, SIM_CHANNEL_ALL, &attr), 0);
	for (int i = 0; i < 3; i++)
		run[i] = (struct fabric_write){.qp = w->side[0].qp,
					       .addr = w->from,
					       .payload_bytes = PAYLOAD,
					       .last_bytes = PAYLOAD,
					       .count = 15};
	/* The second run finds 15960 bytes, the third 31920. */
	assert_int_equal(w->side[0].f->ops->post(w->side[0].f, run, 3), 2);
	assert_int_equal(w->side[0].f->ops->ctrl(w->side[0].qp, 0, 0, "x", 1), -EAGAIN);
	assert_int_equal(poll_one(w, 0, &ev), 0);
	at = sim_next_event_ns(w->sim);
	assert_int_equal(at, 30 * PKT_BYTES - 10000);
	sim_advance(w->sim, at);
	assert_int_equal(poll_one(w, 0, &ev), 1);
	assert_int_equal(ev.type, FABRIC_EV_WRITABLE);
	assert_null(ev.cookie);
	assert_int_equal(w->side[0].f->ops->post(w->side[0].f, &run[2], 1), 1);
	assert_true(counter(w, 0, SDR_CTR_tx_again) > 0);
	world_free(w);
}

struct filter {
	unsigned int calls, ctrl;
	struct sim_packet_info last;
};

static struct sim_verdict filter_fn(void *arg, const struct sim_packet_info *info)
{
	struct filter *f = arg;

	f->calls++;
	f->last = *info;
	if (info->is_ctrl) {
		f->ctrl++;
		assert_memory_equal(info->ctrl_body, "hold", 4);
		return (struct sim_verdict){SIM_DELAY, 50};
	}
	if (info->offset == PAYLOAD)
		return (struct sim_verdict){SIM_DROP, 0};
	if (info->offset == 2 * PAYLOAD)
		return (struct sim_verdict){SIM_DUP, 100};
	if (info->offset == 3 * PAYLOAD)
		return (struct sim_verdict){SIM_DELAY, 200};
	return (struct sim_verdict){SIM_PASS, 0};
}

static void test_the_filter_decides(void **state)
{
	struct world *w = world_connected(1, &(struct link_attr){.delay_ns = 1000});
	struct filter f = {0};
	struct fabric_event ev;
	struct link_counters c;

	(void)state;
	bind_to(w, 77);
	sim_filter_set(w->sim, filter_fn, &f);
	assert_int_equal(post(w, 1, 77, 0, 5), 1);
	assert_int_equal(f.calls, 5);
	assert_int_equal(f.last.message, 77);
	assert_int_equal(f.last.offset, 4 * PAYLOAD);
	assert_int_equal(f.last.len, PAYLOAD);
	assert_int_equal(f.last.channel, 1);
	assert_int_equal(f.last.psn, (w->side[0].local.start_psn + 4) & 0xffffff);
	assert_int_equal(f.last.from * 10 + f.last.to, 1);
	assert_int_equal(w->side[0].f->ops->ctrl(w->side[0].qp, 0, 0, "hold", 4), 0);
	assert_int_equal(f.ctrl, 1);
	sim_advance(w->sim, 1049);
	assert_int_equal(bits(w, 77), 1 | 4 | 16);
	assert_int_equal(poll_one(w, 1, &ev), 1); /* ready */
	assert_int_equal(poll_one(w, 1, &ev), 0);
	sim_advance(w->sim, 1050);
	assert_int_equal(poll_one(w, 1, &ev), 1);
	assert_int_equal(ev.type, FABRIC_EV_CTRL);
	sim_advance(w->sim, 1100);
	assert_int_equal(counter(w, 1, SDR_CTR_rx_duplicate), 1);
	sim_advance(w->sim, 1200);
	assert_int_equal(bits(w, 77), 1 | 4 | 8 | 16);
	assert_int_equal(sim_link_counters(w->sim, 0, 1, SIM_CHANNEL_ALL, &c), 0);
	assert_int_equal(c.offered_pkts, 5); /* the dropped one never reached it */
	sim_filter_set(w->sim, NULL, NULL);
	assert_int_equal(post(w, 1, 77, 1, 1), 1);
	sim_advance(w->sim, 5000);
	assert_int_equal(bits(w, 77), 31);
	world_free(w);
}

static void test_too_much_control_is_dropped(void **state)
{
	const struct sim_fabric_attr fattr = {.max_ctrl = 3};
	struct world *w = world_make(1, &fattr);
	struct fabric_event ev[8];

	(void)state;
	connect_side(w, 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(w->side[0].f->ops->ctrl(w->side[0].qp, 0, 0, &i, sizeof(i)), 0);
	sim_advance(w->sim, 0);
	assert_int_equal(counter(w, 1, SDR_CTR_rx_ctrl_dropped), 2);
	assert_int_equal(w->side[1].f->ops->poll(w->side[1].f, ev, 8), 3);
	assert_int_equal(sim_in_flight(w->sim), 0);
	world_free(w);
}

static void test_nobody_listens(void **state)
{
	struct world *w = world_connected(1, &(struct link_attr){.delay_ns = 1000});
	struct fabric_peer peer = {.active = true, .qpn = 5};
	struct fabric_qp_attr attr = {.channels = 1};
	struct fabric_event ev;
	struct fabric_qp *qp;

	(void)state;
	w->side[1].f->ops->close(w->side[1].f);
	w->side[1].f = NULL;
	assert_int_equal(post(w, 3, 0, 0, 2), 1);
	sim_advance(w->sim, 1999);
	assert_int_equal(poll_one(w, 0, &ev), 0);
	sim_advance(w->sim, 2000);
	assert_int_equal(poll_one(w, 0, &ev), 1);
	assert_int_equal(ev.type, FABRIC_EV_REFUSED);
	assert_int_equal(ev.channel, 3);
	assert_ptr_equal(ev.cookie, &w->side[0]);
	assert_int_equal(poll_one(w, 0, &ev), 0);
	/* No such address, and no such host: the one is an error, the other silence. */
	assert_int_equal(w->side[0].f->ops->qp_create(w->side[0].f, &attr, &qp), 0);
	assert_int_equal(w->side[0].f->ops->qp_connect(qp, &peer), -EINVAL);
	sim_fabric_addr(w->side[0].f, &peer.addr);
	((struct sockaddr_in *)&peer.addr)->sin_addr.s_addr = htonl(0x0a000063);
	assert_int_equal(w->side[0].f->ops->qp_connect(qp, &peer), 0);
	assert_int_equal(w->side[0].f->ops->ctrl(qp, 0, 0, "x", 1), 0);
	sim_advance(w->sim, NS_PER_S);
	assert_int_equal(poll_one(w, 0, &ev), 0);
	world_free(w);
}

static void test_addresses_are_real_ones(void **state)
{
	struct world *w = world_make(1, NULL);
	struct sockaddr_storage addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)&addr;
	struct fabric *second;
	char name[64];

	(void)state;
	assert_int_equal(sim_fabric_open(w->sim, 1, &(struct sim_fabric_attr){0}, &second), 0);
	sim_fabric_addr(second, &addr);
	assert_int_equal(in->sin_family, AF_INET);
	assert_int_equal(ntohl(in->sin_addr.s_addr), 0x0a000002);
	assert_int_equal(ntohs(in->sin_port), SIM_PORT_BASE + 1);
	connect_side(w, 0);
	w->side[0].f->ops->path_name(w->side[0].qp, 0, name, sizeof(name));
	assert_string_equal(name, "10.0.0.2:4792");
	w->side[1].f->ops->path_name(w->side[1].qp, 0, name, sizeof(name));
	assert_string_equal(name, "");
	connect_side(w, 1);
	w->side[1].f->ops->path_name(w->side[1].qp, 0, name, sizeof(name));
	/* The active end sends from a port of its own, not from its listener's. */
	assert_int_equal(strncmp(name, "10.0.0.1:", 9), 0);
	assert_in_range(strtoul(name + 9, NULL, 10), 49152, 65535);
	second->ops->close(second);
	world_free(w);
}

static void test_smaller_end_decides_the_payload(void **state)
{
	struct world *w = world_make(1, NULL);
	struct fabric_qp_attr attr = {.channels = 1};
	struct fabric_peer peer = {.active = true, .qpn = 9};
	struct fabric_write run = {
		.addr = w->from, .payload_bytes = 1437, .last_bytes = 1, .count = 1};
	struct fabric *large;

	(void)state;
	assert_int_equal(
		sim_fabric_open(w->sim, 0, &(struct sim_fabric_attr){.max_payload = 9000}, &large),
		0);
	assert_int_equal(large->ops->qp_create(large, &attr, &run.qp), 0);
	assert_int_equal(large->ops->path_payload(run.qp), 9000);
	sim_fabric_addr(w->side[1].f, &peer.addr);
	assert_int_equal(large->ops->qp_connect(run.qp, &peer), 0);
	assert_int_equal(large->ops->path_payload(run.qp), SIM_DEFAULT_PAYLOAD);
	assert_int_equal(large->ops->post(large, &run, 1), -EMSGSIZE);
	run.payload_bytes--;
	assert_int_equal(large->ops->post(large, &run, 1), 1);
	large->ops->close(large);
	world_free(w);
}

static void test_arguments_are_checked(void **state)
{
	struct world *w = world_make(1, NULL);
	struct fabric *f;
	struct link_attr bad = {.corrupt_p = 2}, fine = {0};

	(void)state;
	assert_int_equal(sim_fabric_open(w->sim, 2, &(struct sim_fabric_attr){0}, &f), -EINVAL);
	assert_int_equal(sim_fabric_open(w->sim, -1, &(struct sim_fabric_attr){0}, &f), -EINVAL);
	assert_int_equal(
		sim_fabric_open(w->sim, 0, &(struct sim_fabric_attr){.max_payload = 65001}, &f),
		-EINVAL);
	assert_int_equal(sim_link_set(w->sim, 0, 2, 0, &fine), -EINVAL);
	assert_int_equal(sim_link_set(w->sim, 0, 1, FABRIC_MAX_CHANNELS, &fine), -EINVAL);
	assert_int_equal(sim_link_set(w->sim, 0, 1, 0, &bad), -EINVAL);
	world_free(w);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	return (hash ^ value) * UINT64_C(0x100000001b3);
}

/* A run over a bad path; the hash of all that was seen. `step`: how far to look ahead. */
static uint64_t run_hash(uint64_t seed, uint64_t step_ns)
{
	struct link_attr attr = {.rate_bps = 1000000000,
				 .delay_ns = 100000,
				 .jitter_ns = 30000,
				 .jitter_reorders = true,
				 .queue_bytes = 60000,
				 .reorder_p = 0.02,
				 .reorder_ns = 70000,
				 .duplicate_p = 0.02,
				 .duplicate_ns = 5000,
				 .corrupt_p = 0.02};
	struct world *w;
	struct fabric_channel_facts facts;
	struct fabric_event ev;
	uint64_t hash = 1;

	assert_int_equal(link_ge_mean(0.05, 3, &attr.loss), 0);
	w = world_connected(seed, &attr);
	for (uint32_t round = 0; round < 200; round++) {
		uint64_t until = (round + 1) * UINT64_C(500000);

		bind_to(w, round);
		memset(w->to, 0, sizeof(w->to));
		assert_int_equal(post(w, round % 4, round, 0, 64), 1);
		while (sim_now(w->sim) < until) {
			sim_advance(w->sim, u64_min(until, u64_max(sim_next_event_ns(w->sim),
								   sim_now(w->sim) + step_ns)));
			sim_check(w->sim);
		}
		hash = mix(hash, bits(w, round));
		for (uint32_t i = 0; i < 64; i++)
			if (bits(w, round) >> i & 1)
				assert_memory_equal(w->to + i * PAYLOAD, w->from + i * PAYLOAD,
						    PAYLOAD);
		w->side[1].f->ops->fence_begin(w->side[1].qp, round);
		w->side[1].f->ops->channel_facts(w->side[1].qp, round % 4, &facts);
		hash = mix(mix(hash, facts.newest_psn), facts.newest_age_ns);
		hash = mix(mix(hash, facts.late_pkts), facts.duplicate_pkts);
		while (poll_one(w, 1, &ev) == 1)
			;
	}
	world_free(w);
	return hash;
}

static void test_a_seed_replays(void **state)
{
	(void)state;
	assert_int_equal(run_hash(5, 0), run_hash(5, 0));
	assert_int_equal(run_hash(5, 0), run_hash(5, 50000)); /* how one steps does not matter */
	assert_int_not_equal(run_hash(5, 0), run_hash(6, 0));
}

/* Allocation failures: whatever fails, nothing leaks and nothing breaks. */
struct failing {
	int64_t left; /* allocations until one fails */
	int64_t live;
};

static void *failing_zalloc(void *arg, size_t bytes)
{
	struct failing *f = arg;
	void *p;

	if (f->left-- == 0)
		return NULL;
	p = alloc_zeroed(&sdr_alloc_system, bytes);
	f->live += p != NULL;
	return p;
}

static void failing_free(void *arg, void *p)
{
	((struct failing *)arg)->live--;
	alloc_free(&sdr_alloc_system, p);
}

static void short_life(const struct sdr_alloc *alloc)
{
	static const uint64_t drop[] = {7};
	static const struct link_attr attr = {
		.delay_ns = 10, .drop = drop, .n_drop = 1, .duplicate_p = 0.5, .duplicate_ns = 9};
	struct fabric_qp_attr qattr = {.channels = 1};
	struct fabric_peer peer = {.active = true};
	struct fabric_write run = {.addr = &peer, .payload_bytes = 8, .last_bytes = 8, .count = 9};
	struct sockaddr_storage addr;
	struct fabric *f = NULL;
	struct sim *sim;

	if (sim_create(1, alloc, &sim))
		return;
	for (int i = 0; i < 6; i++)
		(void)sim_host_add(sim);
	(void)sim_link_set(sim, 0, 0, SIM_CHANNEL_ALL, &attr);
	(void)sim_paths_set(sim, 0, 0, 2, (const struct link_attr[]){attr, attr});
	(void)sim_nat_set(sim, 1, 0, 0);
	if (sim_fabric_open(sim, 0, &(struct sim_fabric_attr){0}, &f) == 0) {
		sim_fabric_addr(f, &addr);
		peer.addr = addr;
		for (int i = 0; i < 3; i++) {
			if (f->ops->qp_create(f, &qattr, &run.qp))
				continue;
			(void)f->ops->qp_connect(run.qp, &peer);
			(void)f->ops->post(f, &run, 1);
			(void)f->ops->ctrl(run.qp, 0, 0, "hi", 2);
			sim_advance(sim, sim_now(sim) + 15);
			sim_check(sim);
		}
		f->ops->close(f);
	}
	sim_destroy(sim);
}

static void test_allocation_failures(void **state)
{
	(void)state;
	for (int64_t n = 0;; n++) {
		struct failing f = {.left = n};
		struct sdr_alloc alloc = {failing_zalloc, failing_free, &f};

		short_life(&alloc);
		assert_int_equal(f.live, 0);
		if (f.left >= 0)
			break; /* none failed */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packets_arrive_on_the_nanosecond),
		cmocka_unit_test(test_a_long_step_keeps_arrival_times),
		cmocka_unit_test(test_links_take_turns_within_a_step),
		cmocka_unit_test(test_channels_share_a_link),
		cmocka_unit_test(test_a_qp_ends_with_control_waiting),
		cmocka_unit_test(test_without_a_link_it_is_a_wire),
		cmocka_unit_test(test_channels_may_have_links_of_their_own),
		cmocka_unit_test(test_drop_list_is_copied),
		cmocka_unit_test(test_damage_is_found),
		cmocka_unit_test(test_copies_of_a_packet),
		cmocka_unit_test(test_marks_arrive),
		cmocka_unit_test(test_a_full_queue_pushes_back),
		cmocka_unit_test(test_the_filter_decides),
		cmocka_unit_test(test_too_much_control_is_dropped),
		cmocka_unit_test(test_nobody_listens),
		cmocka_unit_test(test_addresses_are_real_ones),
		cmocka_unit_test(test_smaller_end_decides_the_payload),
		cmocka_unit_test(test_arguments_are_checked),
		cmocka_unit_test(test_a_seed_replays),
		cmocka_unit_test(test_allocation_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

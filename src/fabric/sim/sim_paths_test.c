/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of several paths between two simulated hosts and of a NAT in front of one: which way
 * a packet goes, where it seems to come from, and that packets flow again after a rebinding.
 */
#include "fabric/sim/sim.h"

#include "base/bits.h"
#include "base/units.h"
#include "sdr/counters.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define PAYLOAD 1000u
#define SLOTS 8u
#define CHANNELS 16u
#define EPHEMERAL 49152u

struct side {
	struct fabric *f;
	struct fabric_qp *qp;
	struct fabric_local local;
	struct rx_table table;
	struct rx_slot slots[SLOTS];
	struct rx_worker worker;
};

/* Host 0 has the active end, host 1 the passive one. */
struct world {
	struct sim *sim;
	struct side side[2];
	uint8_t from[64 * PAYLOAD], to[64 * PAYLOAD];
};

static struct world *world_make(uint64_t seed)
{
	struct world *w = aligned_alloc(64, u64_div_up(sizeof(*w), 64) * 64);

	assert_non_null(w);
	memset(w, 0, sizeof(*w));
	assert_int_equal(sim_create(seed, &sdr_alloc_system, &w->sim), 0);
	for (int i = 0; i < 2; i++) {
		struct side *s = &w->side[i];
		struct fabric_qp_attr qattr = {
			.channels = CHANNELS, .table = &s->table, .cookie = s};

		assert_int_equal(sim_host_add(w->sim), i);
		assert_int_equal(sim_fabric_open(w->sim, i, &(struct sim_fabric_attr){0}, &s->f),
				 0);
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

static void world_connect(struct world *w)
{
	for (int i = 0; i < 2; i++) {
		struct side *s = &w->side[i], *other = &w->side[!i];
		struct fabric_peer peer = {.qpn = other->local.qpn,
					   .token = other->local.token,
					   .start_psn = other->local.start_psn,
					   .payload_bytes = PAYLOAD,
					   .active = i == 0};

		sim_fabric_addr(other->f, &peer.addr);
		assert_int_equal(s->f->ops->qp_connect(s->qp, &peer), 0);
	}
}

static void world_free(struct world *w)
{
	for (int i = 0; i < 2; i++)
		w->side[i].f->ops->close(w->side[i].f);
	sim_check(w->sim);
	sim_destroy(w->sim);
	free(w);
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

static uint64_t bits(const struct world *w, uint32_t message)
{
	uint64_t word;

	rx_bits_get(rx_slot_of(&w->side[1].table, message), 0, 64, &word);
	return word;
}

static int ctrl(struct world *w, int side, uint32_t channel, uint32_t path, char what)
{
	return w->side[side].f->ops->ctrl(w->side[side].qp, channel, path, &what, 1);
}

/* All that is in flight arrives. Returns how many events of control came; *ev is the last. */
static int settle(struct world *w, int side, struct fabric_event *ev)
{
	struct fabric_event one;
	int n = 0;

	sim_advance(w->sim, sim_now(w->sim) + NS_PER_S);
	sim_check(w->sim);
	while (w->side[side].f->ops->poll(w->side[side].f, &one, 1) == 1) {
		if (one.type != FABRIC_EV_CTRL)
			continue;
		*ev = one;
		n++;
	}
	return n;
}

static uint64_t counter(const struct world *w, int side, enum sdr_counter which)
{
	uint64_t sum[SDR_CTR_COUNT] = {0};

	w->side[side].f->ops->counters(w->side[side].f, sum);
	return sum[which];
}

static struct fabric_channel_facts facts(const struct world *w, int side, uint32_t channel)
{
	struct fabric_channel_facts out;

	w->side[side].f->ops->channel_facts(w->side[side].qp, channel, &out);
	return out;
}

static struct link_counters path_counters(const struct world *w, int from, uint32_t path)
{
	struct link_counters c;

	assert_int_equal(sim_path_counters(w->sim, from, !from, path, &c), 0);
	return c;
}

/* Each channel keeps to one path, whose delay it has. */
static void test_channels_keep_to_their_paths(void **state)
{
	const struct link_attr attrs[] = {
		{.delay_ns = 1000}, {.delay_ns = 2000}, {.delay_ns = 3000}};
	struct world *w = world_make(1);
	uint64_t sent[3] = {0};
	struct fabric_event ev;

	(void)state;
	assert_int_equal(sim_path_of(w->side[0].qp, 0), -ENOENT);
	assert_int_equal(sim_paths_set(w->sim, 0, 1, 3, attrs), 0);
	world_connect(w);
	for (uint32_t round = 0; round < 4; round++) {
		for (uint32_t c = 0; c < CHANNELS; c++) {
			int path = sim_path_of(w->side[0].qp, c);

			assert_in_range(path, 0, 2);
			sent[path]++;
			assert_int_equal(ctrl(w, 0, c, 0, 'x'), 0);
			sim_advance(w->sim, sim_now(w->sim) + attrs[path].delay_ns - 1);
			assert_int_equal(w->side[1].f->ops->poll(w->side[1].f, &ev, 1), 0);
			sim_advance(w->sim, sim_now(w->sim) + 1);
			assert_int_equal(w->side[1].f->ops->poll(w->side[1].f, &ev, 1), 1);
			assert_int_equal(ev.channel, c);
			assert_int_equal(ev.path, 0);
		}
	}
	for (uint32_t p = 0; p < 3; p++) {
		assert_true(sent[p] > 0);
		assert_int_equal(path_counters(w, 0, p).offered_pkts, sent[p]);
		assert_int_equal(path_counters(w, 0, p).delivered_pkts, sent[p]);
	}
	world_free(w);
}

/* Another seed is another assignment; over many, all are used alike. */
static void test_seeds_spread_channels(void **state)
{
	const struct link_attr attrs[4] = {{0}};
	unsigned int count[4] = {0};

	(void)state;
	for (uint64_t seed = 0; seed < 100; seed++) {
		struct world *w = world_make(seed);

		assert_int_equal(sim_paths_set(w->sim, 0, 1, 4, attrs), 0);
		world_connect(w);
		for (uint32_t c = 0; c < CHANNELS; c++)
			count[sim_path_of(w->side[0].qp, c)]++;
		world_free(w);
	}
	for (int p = 0; p < 4; p++) /* 400 each, deviation 17 */
		assert_in_range(count[p], 400 - 90, 400 + 90);
}

/* A cut takes the channels of its path and nothing else; mended, they flow again. */
static void test_one_path_is_cut(void **state)
{
	struct link_attr attrs[2] = {{.delay_ns = 10}, {.delay_ns = 20}};
	struct world *w = world_make(2);
	uint64_t expected = 0;

	(void)state;
	assert_int_equal(sim_paths_set(w->sim, 0, 1, 2, attrs), 0);
	world_connect(w);
	bind_to(w, 0);
	attrs[1].cut = true;
	assert_int_equal(sim_paths_set(w->sim, 0, 1, 2, attrs), 0);
	for (uint32_t c = 0; c < CHANNELS; c++) {
		assert_int_equal(post(w, c, 0, c, 1), 1);
		expected |= (uint64_t)(sim_path_of(w->side[0].qp, c) == 0) << c;
	}
	sim_advance(w->sim, NS_PER_MS);
	assert_true(expected != 0 && expected != 0xffff);
	assert_int_equal(bits(w, 0), expected);
	assert_int_equal(path_counters(w, 0, 1).lost_pkts[LINK_LOST_CUT],
			 CHANNELS - (unsigned int)__builtin_popcountll(expected));
	assert_int_equal(path_counters(w, 0, 0).lost_pkts[LINK_LOST_CUT], 0);
	attrs[1].cut = false;
	assert_int_equal(sim_paths_set(w->sim, 0, 1, 2, attrs), 0);
	for (uint32_t c = 0; c < CHANNELS; c++)
		assert_int_equal(post(w, c, 0, c, 1), 1);
	sim_advance(w->sim, 2 * NS_PER_MS);
	assert_int_equal(bits(w, 0), 0xffff);
	assert_memory_equal(w->from, w->to, CHANNELS * PAYLOAD);
	world_free(w);
}

static void test_links_of_channels_come_first(void **state)
{
	const struct link_attr attrs[2] = {{.delay_ns = 10}, {.delay_ns = 10}};
	const struct link_attr own = {.delay_ns = 500}, all = {.delay_ns = 7000};
	struct world *w = world_make(3);
	struct link_counters c;
	struct fabric_event ev;

	(void)state;
	assert_int_equal(sim_link_set(w->sim, 0, 1, SIM_CHANNEL_ALL, &all), 0);
	assert_int_equal(sim_link_set(w->sim, 0, 1, 3, &own), 0);
	world_connect(w);
	assert_int_equal(ctrl(w, 0, 1, 0, 'x'), 0);
	assert_int_equal(sim_paths_set(w->sim, 0, 1, 2, attrs), 0);
	assert_int_equal(sim_path_of(w->side[0].qp, 3), -ENOENT);
	assert_int_equal(ctrl(w, 0, 1, 0, 'x'), 0);
	assert_int_equal(ctrl(w, 0, 3, 0, 'x'), 0);
	assert_int_equal(sim_paths_set(w->sim, 0, 1, 0, NULL), 0); /* back to the one for all */
	assert_int_equal(sim_path_of(w->side[0].qp, 1), -ENOENT);
	assert_int_equal(ctrl(w, 0, 1, 0, 'x'), 0);
	assert_int_equal(settle(w, 1, &ev), 4);
	assert_int_equal(sim_link_counters(w->sim, 0, 1, SIM_CHANNEL_ALL, &c), 0);
	assert_int_equal(c.delivered_pkts, 2);
	assert_int_equal(sim_link_counters(w->sim, 0, 1, 3, &c), 0);
	assert_int_equal(c.delivered_pkts, 1);
	assert_int_equal(
		path_counters(w, 0, 0).delivered_pkts + path_counters(w, 0, 1).delivered_pkts, 1);
	world_free(w);
}

static void test_arguments_are_checked(void **state)
{
	static const uint64_t drop[] = {0, 2};
	struct link_attr attrs[LINK_MAX_PATHS + 1] = {{0}};
	struct world *w = world_make(4);
	struct link_counters c;

	(void)state;
	assert_int_equal(sim_paths_set(w->sim, 0, 2, 1, attrs), -EINVAL);
	assert_int_equal(sim_paths_set(w->sim, -1, 1, 1, attrs), -EINVAL);
	assert_int_equal(sim_paths_set(w->sim, 0, 1, LINK_MAX_PATHS + 1, attrs), -EINVAL);
	attrs[2].corrupt_p = 2;
	assert_int_equal(sim_paths_set(w->sim, 0, 1, 3, attrs), -EINVAL);
	attrs[2] = (struct link_attr){.delay_ns = UINT64_MAX};
	assert_int_equal(sim_paths_set(w->sim, 0, 1, 3, attrs), -ERANGE);
	assert_int_equal(sim_path_counters(w->sim, 0, 1, 0, &c), -ENOENT);
	attrs[2] = (struct link_attr){.drop = drop, .n_drop = 2};
	assert_int_equal(sim_paths_set(w->sim, 0, 1, LINK_MAX_PATHS, attrs), 0);
	assert_int_equal(sim_path_counters(w->sim, 0, 1, LINK_MAX_PATHS - 1, &c), 0);
	assert_int_equal(sim_path_counters(w->sim, 0, 1, LINK_MAX_PATHS, &c), -ENOENT);
	assert_int_equal(sim_path_counters(w->sim, 0, 9, 0, &c), -ENOENT);
	assert_int_equal(sim_path_of(w->side[0].qp, 0), -ENOENT);
	assert_int_equal(sim_path_of(w->side[0].qp, UINT32_MAX), -ENOENT);
	assert_int_equal(sim_nat_set(w->sim, 2, 0, 0), -EINVAL);
	assert_int_equal(sim_nat_rebind(w->sim, 0), -ENOENT);
	assert_int_equal(sim_nat_rebind(w->sim, 7), -ENOENT);
	assert_null(sim_nat(w->sim, 0));
	world_free(w);
}

/* All marks of a path's queue travel with the packets. */
static void test_marks_arrive(void **state)
{
	const struct link_attr attr = {.rate_bps = 8000000000, .ecn_ns = 3000};
	struct world *w = world_make(5);

	(void)state;
	assert_int_equal(sim_paths_set(w->sim, 0, 1, 1, &attr), 0);
	world_connect(w);
	bind_to(w, 0);
	assert_int_equal(post(w, 2, 0, 0, 8), 8 - 7); /* one run */
	assert_int_equal(sim_path_queued_bytes(w->sim, 0, 1, 0), 8 * 1064);
	assert_int_equal(sim_path_queued_bytes(w->sim, 0, 1, 1), 0);
	assert_int_equal(sim_path_queued_bytes(w->sim, 0, 9, 0), 0);
	sim_advance(w->sim, NS_PER_MS);
	assert_int_equal(sim_path_queued_bytes(w->sim, 0, 1, 0), 0);
	assert_int_equal(bits(w, 0), 0xff);
	assert_int_equal(path_counters(w, 0, 0).marked_pkts,
			 6); /* 1064 bytes each: from the third */
	assert_int_equal(facts(w, 1, 2).ce_pkts, 6);
	world_free(w);
}

/* NAT. */

static void address(const struct world *w, char *name)
{
	w->side[1].f->ops->path_name(w->side[1].qp, 1, name, 64);
}

/* The passive end has learned where channel 1 comes from. */
static struct world *world_behind_nat(uint64_t timeout_ns, uint64_t every_ns)
{
	const struct link_attr attr = {.rate_bps = 8000000000, .delay_ns = 10 * NS_PER_MS};
	struct world *w = world_make(6);
	struct fabric_event ev;

	assert_int_equal(sim_nat_set(w->sim, 0, timeout_ns, every_ns), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(sim_link_set(w->sim, i, !i, SIM_CHANNEL_ALL, &attr), 0);
	world_connect(w);
	assert_false(facts(w, 1, 1).up);
	assert_int_equal(ctrl(w, 1, 1, 0, 'n'), -ENOTCONN);
	assert_int_equal(ctrl(w, 0, 1, 0, 'a'), 0);
	assert_int_equal(settle(w, 1, &ev), 1);
	assert_int_equal(ev.channel, 1);
	assert_int_equal(ev.path, 0);
	assert_true(facts(w, 1, 1).up);
	assert_false(facts(w, 1, 2).up); /* each channel is learned by itself */
	assert_int_equal(ctrl(w, 1, 1, 0, 'b'), 0);
	assert_int_equal(settle(w, 0, &ev), 1);
	assert_int_equal(ev.data[0], 'b');
	return w;
}

static void test_rebinding_and_back(void **state)
{
	struct world *w = world_behind_nat(0, 0);
	char before[64], after[64];
	struct fabric_event ev;

	(void)state;
	address(w, before);
	bind_to(w, 0);
	assert_int_equal(post(w, 1, 0, 0, 4), 1);
	assert_int_equal(sim_nat_rebind(w->sim, 0), 0);
	/* What is on its way to the old port is lost; data from the new one still lands. */
	assert_int_equal(ctrl(w, 1, 1, 0, 'c'), 0);
	assert_int_equal(settle(w, 0, &ev), 0);
	assert_int_equal(sim_nat(w->sim, 0)->forgotten_pkts, 1);
	assert_int_equal(post(w, 1, 0, 4, 4), 1);
	(void)settle(w, 1, &ev);
	assert_int_equal(bits(w, 0), 0xff);
	assert_memory_equal(w->from, w->to, 8 * PAYLOAD);
	/* From an address that nobody knows it counts on channel 0, as over UDP. */
	assert_int_equal(facts(w, 1, 1).received_pkts, 4);
	assert_int_equal(facts(w, 1, 0).received_pkts, 4);
	/* Control from the new address is a candidate; only answers to it go there. */
	assert_int_equal(ctrl(w, 0, 1, 0, 'd'), 0);
	assert_int_equal(settle(w, 1, &ev), 1);
	assert_int_equal(ev.path, 1);
	assert_int_equal(ev.channel, 1);
	address(w, after);
	assert_string_equal(before, after);
	assert_int_equal(ctrl(w, 1, 1, 0, 'e'), 0);
	assert_int_equal(settle(w, 0, &ev), 0);
	assert_int_equal(ctrl(w, 1, 1, 1, 'f'), 0);
	assert_int_equal(settle(w, 0, &ev), 1);
	assert_int_equal(ev.data[0], 'f');
	/* Proved: the channel moves there, and all flows again. */
	assert_int_equal(w->side[1].f->ops->path_use(w->side[1].qp, 1, 1), 0);
	address(w, after);
	assert_string_not_equal(before, after);
	assert_int_equal(ctrl(w, 1, 1, 0, 'g'), 0);
	assert_int_equal(settle(w, 0, &ev), 1);
	assert_int_equal(ev.data[0], 'g');
	assert_int_equal(post(w, 1, 0, 8, 4), 1);
	assert_int_equal(ctrl(w, 0, 1, 0, 'h'), 0);
	assert_int_equal(settle(w, 1, &ev), 1);
	assert_int_equal(ev.path, 0);
	assert_int_equal(facts(w, 1, 1).received_pkts, 8);
	assert_int_equal(counter(w, 1, SDR_CTR_path_changes), 1);
	/* The old address is a candidate now: the way back is open, and forth again. */
	for (int i = 0; i < 2; i++) {
		char now[64];

		assert_int_equal(w->side[1].f->ops->path_use(w->side[1].qp, 1, 1), 0);
		address(w, now);
		assert_string_equal(now, i ? after : before);
	}
	world_free(w);
}

/* Packets from before and after a rebinding that arrive together came from different ports. */
static void test_a_rebinding_within_a_train(void **state)
{
	struct world *w = world_behind_nat(0, 0);
	struct fabric_event ev;

	(void)state;
	bind_to(w, 0);
	assert_int_equal(post(w, 1, 0, 0, 4), 1);
	assert_int_equal(sim_nat_rebind(w->sim, 0), 0);
	assert_int_equal(post(w, 1, 0, 4, 4), 1);
	(void)settle(w, 1, &ev);
	assert_int_equal(bits(w, 0), 0xff);
	assert_int_equal(facts(w, 1, 1).received_pkts, 4);
	assert_int_equal(facts(w, 1, 0).received_pkts, 4);
	world_free(w);
}

/* An old datagram from an old address is no reason to go back there. */
static void test_old_datagrams_move_nothing(void **state)
{
	struct world *w = world_behind_nat(0, 0);
	const struct link_attr slow = {.delay_ns = 500 * NS_PER_MS}, fast = {.delay_ns = 1000};
	struct fabric_event ev;

	(void)state;
	assert_int_equal(sim_nat_rebind(w->sim, 0), 0);
	assert_int_equal(sim_link_set(w->sim, 0, 1, SIM_CHANNEL_ALL, &slow), 0);
	assert_int_equal(ctrl(w, 0, 1, 0, 'o'), 0); /* from the second address, slow */
	assert_int_equal(sim_link_set(w->sim, 0, 1, SIM_CHANNEL_ALL, &fast), 0);
	assert_int_equal(sim_nat_rebind(w->sim, 0), 0);
	assert_int_equal(ctrl(w, 0, 1, 0, 'n'), 0); /* from the third */
	assert_int_equal(settle(w, 1, &ev), 1);
	assert_int_equal(ev.data[0], 'n');
	assert_int_equal(ev.path, 1);
	assert_int_equal(counter(w, 1, SDR_CTR_ctrl_replayed), 1);
	assert_int_equal(w->side[1].f->ops->path_use(w->side[1].qp, 1, 2), -ENOENT);
	assert_int_equal(w->side[1].f->ops->path_use(w->side[1].qp, 3, 1), -ENOENT);
	assert_int_equal(w->side[1].f->ops->path_use(w->side[1].qp, 1, UINT32_MAX), -ENOENT);
	assert_int_equal(w->side[1].f->ops->ctrl(w->side[1].qp, 1, 2, "x", 1), -ENOTCONN);
	world_free(w);
}

static void test_silence_times_out(void **state)
{
	struct world *w = world_behind_nat(5 * NS_PER_S, 0);
	struct fabric_event ev;

	(void)state;
	sim_advance(w->sim, sim_now(w->sim) + 3 * NS_PER_S);
	assert_int_equal(ctrl(w, 1, 1, 0, 'x'), 0); /* after less than 5 s of silence */
	assert_int_equal(settle(w, 0, &ev), 1);
	sim_advance(w->sim, sim_now(w->sim) + 5 * NS_PER_S);
	assert_int_equal(ctrl(w, 1, 1, 0, 'x'), 0);
	assert_int_equal(settle(w, 0, &ev), 0);
	assert_int_equal(ctrl(w, 0, 1, 0, 'y'), 0);
	assert_int_equal(settle(w, 1, &ev), 1);
	assert_int_equal(ev.path, 1);
	world_free(w);
}

static void test_rebinds_by_itself(void **state)
{
	struct world *w = world_behind_nat(0, 10 * NS_PER_S);
	struct fabric_event ev;

	(void)state;
	for (uint32_t i = 1; i <= 5; i++) {
		sim_advance(w->sim, i * 10 * NS_PER_S);
		assert_int_equal(ctrl(w, 0, 1, 0, 'x'), 0);
		assert_int_equal(settle(w, 1, &ev), 1);
		assert_int_equal(ev.path, i); /* each a number of its own */
		assert_int_equal(sim_nat(w->sim, 0)->rebinds, i);
	}
	/* Two are kept; what was asked of an older one has nobody else's address for it. */
	for (uint32_t i = 1; i <= 3; i++) {
		assert_int_equal(w->side[1].f->ops->path_use(w->side[1].qp, 1, i), -ENOENT);
		assert_int_equal(ctrl(w, 1, 1, i, 'x'), -ENOTCONN);
	}
	for (uint32_t i = 4; i <= 5; i++)
		assert_int_equal(w->side[1].f->ops->path_use(w->side[1].qp, 1, i), 0);
	world_free(w);
}

/* Routers behind the NAT hash the outside port: with it a channel's path changes. */
static void test_a_rebinding_can_change_the_path(void **state)
{
	const struct link_attr attrs[LINK_MAX_PATHS] = {{0}};
	struct world *w = world_make(8);
	unsigned int changes = 0;
	struct fabric_event ev;
	int was = -1;

	(void)state;
	assert_int_equal(sim_nat_set(w->sim, 0, 0, 0), 0);
	assert_int_equal(sim_paths_set(w->sim, 0, 1, LINK_MAX_PATHS, attrs), 0);
	world_connect(w);
	assert_int_equal(sim_path_of(w->side[0].qp, 0), -ENOENT); /* no outside port yet */
	for (int i = 0; i < 100; i++) {
		int path;

		for (int k = 0; k < 3; k++) {
			assert_int_equal(ctrl(w, 0, 0, 0, 'x'), 0);
			path = sim_path_of(w->side[0].qp, 0);
			if (k == 0)
				changes += path != was;
			else
				assert_int_equal(path, was);
			was = path;
		}
		assert_int_equal(settle(w, 1, &ev), 3);
		assert_int_equal(sim_nat_rebind(w->sim, 0), 0);
	}
	assert_in_range(changes, 80, 100);
	world_free(w);
}

/* A NAT that comes in front of a host with connections is a change of its addresses. */
static void test_a_nat_comes_later(void **state)
{
	struct world *w = world_make(9);
	struct fabric_event ev;

	(void)state;
	world_connect(w);
	assert_int_equal(ctrl(w, 1, 5, 0, 'x'), 0);
	assert_int_equal(settle(w, 0, &ev), 1);
	assert_int_equal(sim_nat_set(w->sim, 0, 0, 0), 0);
	assert_int_equal(ctrl(w, 1, 5, 0, 'x'), 0);
	assert_int_equal(settle(w, 0, &ev), 0);
	assert_int_equal(ctrl(w, 0, 5, 0, 'y'), 0);
	assert_int_equal(settle(w, 1, &ev), 1);
	assert_int_equal(ev.path, 1);
	assert_int_equal(w->side[1].f->ops->path_use(w->side[1].qp, 5, 1), 0);
	assert_int_equal(ctrl(w, 1, 5, 0, 'z'), 0);
	assert_int_equal(settle(w, 0, &ev), 1);
	world_free(w);
}

/* Nobody reaches a listener behind a NAT, and its own packets reach no connected socket. */
static void test_a_listener_behind_a_nat(void **state)
{
	struct world *w = world_make(10);
	struct fabric_event ev;

	(void)state;
	world_connect(w); /* both know the other */
	assert_int_equal(sim_nat_set(w->sim, 1, 0, 0), 0);
	assert_int_equal(ctrl(w, 0, 0, 0, 'x'), 0);
	assert_int_equal(settle(w, 1, &ev), 0);
	assert_int_equal(sim_nat(w->sim, 1)->forgotten_pkts, 1);
	assert_int_equal(ctrl(w, 1, 0, 0, 'y'), 0);
	assert_int_equal(settle(w, 0, &ev), 0);
	world_free(w);
}

static void test_ports_of_channels_differ(void **state)
{
	struct world *w = world_make(11);
	char name[CHANNELS][64];

	(void)state;
	world_connect(w);
	for (uint32_t c = 0; c < CHANNELS; c++) {
		w->side[1].f->ops->path_name(w->side[1].qp, c, name[c], sizeof(name[c]));
		assert_int_equal(strncmp(name[c], "10.0.0.1:", 9), 0);
		assert_in_range(strtoul(name[c] + 9, NULL, 10), EPHEMERAL, 65535);
		for (uint32_t k = 0; k < c; k++)
			assert_string_not_equal(name[c], name[k]);
	}
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_channels_keep_to_their_paths),
		cmocka_unit_test(test_seeds_spread_channels),
		cmocka_unit_test(test_one_path_is_cut),
		cmocka_unit_test(test_links_of_channels_come_first),
		cmocka_unit_test(test_arguments_are_checked),
		cmocka_unit_test(test_marks_arrive),
		cmocka_unit_test(test_rebinding_and_back),
		cmocka_unit_test(test_a_rebinding_within_a_train),
		cmocka_unit_test(test_old_datagrams_move_nothing),
		cmocka_unit_test(test_silence_times_out),
		cmocka_unit_test(test_rebinds_by_itself),
		cmocka_unit_test(test_a_rebinding_can_change_the_path),
		cmocka_unit_test(test_a_nat_comes_later),
		cmocka_unit_test(test_a_listener_behind_a_nat),
		cmocka_unit_test(test_ports_of_channels_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios of what a path does to packets that arrive, or to all of them for a while:
 * outages, reordering, duplicates, MTU, queues, policers, marks, several channels; and the
 * severities of G.1050.
 */
#include "catalogue.h"

#include "link/g1050.h"

#include <stdio.h>
#include <string.h>

/* quic-interop-runner's line: 15 ms each way, 10 Mbit/s, a queue of 25 packets. */
static void interop_line(struct lab *l)
{
	lab_line(l, 10 * MBIT, 30 * MS);
	for (int dir = 0; dir < 2; dir++)
		l->link[dir].queue_bytes = 25 * LAB_IP_BYTES;
}

/* A provisioned 100 Mbit/s over 50 ms. */
static void provisioned(struct lab *l)
{
	lab_line(l, 100 * MBIT, 50 * MS);
	l->attr.rate_bps = 95 * MBIT;
}

static void xfer(struct lab *l, uint32_t mbytes)
{
	lab_begin(l, mbytes * 2, 512 * KIB, 8);
	lab_finish(l, 300 * SEC);
	l->ideal_ns = lab_ideal_ns(l, 0, mbytes * MIB, 0, 1);
	lab_close(l);
}

/* arg: MiB; the rate is found */
void interop_transfer(struct lab *l)
{
	interop_line(l);
	l->tell_rtt = true;
	xfer(l, (uint32_t)l->arg[0]);
}

/* ---- outages ---- */

static void outage(struct link_attr *link, uint64_t first_ns, uint64_t every_ns, uint64_t for_ns)
{
	link->outage = (struct link_periodic){first_ns, every_ns, for_ns};
}

/* quic-interop-runner's blackhole: 5 s there, 2 s not. arg: MiB */
void blackhole(struct lab *l)
{
	interop_line(l);
	l->tell_rtt = true;
	for (int dir = 0; dir < 2; dir++)
		outage(&l->link[dir], 5 * SEC, 7 * SEC, 2 * SEC);
	lab_begin(l, (uint32_t)l->arg[0] * 2, 512 * KIB, 8);
	lab_finish(l, 120 * SEC);
	l->ideal_ns = lab_ideal_ns(l, 0, (uint64_t)l->arg[0] * MIB, 0, 1);
	/* It begins again after each 5 s of the line. */
	l->ideal_ns += (double)(uint64_t)(l->ideal_ns / 5e9) * 2e9;
	lab_close(l);
}

/* arg: how long, ms. Once, 300 ms after the beginning, both ways. */
void one_outage(struct lab *l)
{
	provisioned(l);
	for (int dir = 0; dir < 2; dir++)
		outage(&l->link[dir], 300 * MS, 3600 * SEC, (uint64_t)(l->arg[0] * 1e6));
	lab_begin(l, 16, 512 * KIB, 8);
	lab_finish(l, 120 * SEC);
	l->ideal_ns = lab_ideal_ns(l, 0, 8 * MIB, 0, 1) + l->arg[0] * 1e6;
	lab_close(l);
}

/* arg: how long nothing comes back, ms */
void ack_blackhole(struct lab *l)
{
	provisioned(l);
	outage(&l->link[1], 300 * MS, 3600 * SEC, (uint64_t)(l->arg[0] * 1e6));
	lab_begin(l, 64, 512 * KIB, 64);
	lab_finish(l, 120 * SEC);
	/* Nothing needs to be sent twice: but more than a window unacknowledged is not sent. */
	l->ideal_ns = lab_ideal_ns(l, 0, 32 * MIB, 0, 1) + l->arg[0] * 1e6;
	lab_close(l);
}

/* picoquic's wifi: the link is suspended some 100 to 250 ms about every 5 s. arg: MiB, ms */
void wifi(struct lab *l)
{
	lab_line(l, 20 * MBIT, 10 * MS);
	l->tell_rtt = true;
	for (int dir = 0; dir < 2; dir++)
		outage(&l->link[dir], SEC, 5 * SEC, (uint64_t)(l->arg[1] * 1e6));
	lab_begin(l, (uint32_t)l->arg[0] * 2, 512 * KIB, 8);
	lab_finish(l, 120 * SEC);
	l->ideal_ns = lab_ideal_ns(l, 0, (uint64_t)l->arg[0] * MIB, 0, 1);
	l->ideal_ns += (double)(1 + (uint64_t)((l->ideal_ns - 1e9) / 5e9)) * l->arg[1] * 1e6;
	lab_close(l);
}

/* picoquic's suspensions: nothing is lost, all of it waits and comes at once. arg: ms */
struct suspended {
	uint64_t from_ns, to_ns;
};

static struct sim_verdict suspended(void *arg, const struct sim_packet_info *info)
{
	struct suspended *s = arg;
	struct sim_verdict v = {.action = SIM_PASS};

	if (info->now_ns >= s->from_ns && info->now_ns < s->to_ns)
		v = (struct sim_verdict){SIM_DELAY, s->to_ns - info->now_ns};
	return v;
}

void suspension(struct lab *l)
{
	struct suspended s = {300 * MS, 300 * MS + (uint64_t)(l->arg[0] * 1e6)};

	provisioned(l);
	lab_open(l);
	sim_filter_set(l->world, suspended, &s);
	lab_connect(l, l->p.conn);
	lab_flow(l, 0, 32, 512 * KIB, 8);
	lab_finish(l, 120 * SEC);
	l->ideal_ns = lab_ideal_ns(l, 0, 16 * MIB, 0, 1) + l->arg[0] * 1e6;
	snprintf(l->note, sizeof(l->note), "%llu packets were sent twice",
		 (unsigned long long)lab_info(l, 0).tx_resent_pkts);
	sim_filter_set(l->world, NULL, NULL);
	lab_close(l);
}

/* ---- order ---- */

static void reordered(struct lab *l, double share, uint64_t by_ns)
{
	for (int dir = 0; dir < 2; dir++) {
		l->link[dir].reorder_p = share;
		l->link[dir].reorder_ns = by_ns;
	}
	lab_begin(l, 32, 512 * KIB, 8);
	lab_finish(l, 60 * SEC);
	l->ideal_ns = lab_ideal_ns(l, 0, 16 * MIB, 0, 1);
	snprintf(l->note, sizeof(l->note), "%llu of %llu packets were sent twice",
		 (unsigned long long)lab_info(l, 0).tx_resent_pkts,
		 (unsigned long long)lab_info(l, 0).tx_pkts);
	lab_close(l);
}

/* arg: by how many packets' time, percent of the packets */
void reorder_packets(struct lab *l)
{
	provisioned(l);
	reordered(l, l->arg[1] / 100, (uint64_t)(l->arg[0] * LAB_IP_BYTES * 8e9 / 100e6));
}

/* arg: by how many us, percent of the packets */
void reorder_time(struct lab *l)
{
	provisioned(l);
	reordered(l, l->arg[1] / 100, (uint64_t)(l->arg[0] * 1e3));
}

/* arg: ms, 1: packets overtake each other by it */
void jitter(struct lab *l)
{
	provisioned(l);
	for (int dir = 0; dir < 2; dir++) {
		l->link[dir].jitter_ns = (uint64_t)(l->arg[0] * 1e6);
		l->link[dir].jitter_reorders = l->arg[1] > 0;
	}
	xfer(l, 16);
}

/* ---- copies ---- */

/* arg: percent, how much later in ms */
void duplicates(struct lab *l)
{
	provisioned(l);
	for (int dir = 0; dir < 2; dir++) {
		l->link[dir].duplicate_p = l->arg[0] / 100;
		l->link[dir].duplicate_ns = (uint64_t)(l->arg[1] * 1e6);
	}
	lab_begin(l, 32, 512 * KIB, 8);
	lab_finish(l, 60 * SEC);
	l->ideal_ns = lab_ideal_ns(l, 0, 16 * MIB, 0, 1);
	assert_true(lab_info(l, 1).rx_duplicate_pkts + lab_info(l, 1).rx_late_pkts >
		    (uint64_t)(l->arg[0] / 111 * (double)lab_info(l, 1).rx_pkts));
	lab_close(l);
}

/* Copies of data packets that come when their memory has been posted again. */
static struct sim_verdict copy_later(void *arg, const struct sim_packet_info *info)
{
	const uint64_t *delay = arg;
	struct sim_verdict v = {.action = SIM_PASS};

	if (!info->is_ctrl)
		v = (struct sim_verdict){SIM_DUP, *delay};
	return v;
}

/* One buffer is received into over and over: what it has must be of its own write. */
static void into_one_buffer(struct lab *l, uint64_t size, uint32_t n)
{
	uint8_t *mem = NULL;
	struct lab_flow *f = lab_flow(l, 0, n, size, 1);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t before = i;

		if (mem) {
			f->op[1][i].mem = mem;
			f->op[1][i - 1].mem = NULL;
			memset(mem, 0xa5, size + 128);
		}
		while (f->ended[1] == before)
			lab_step(l, lab_now(l) + SEC);
		mem = f->op[1][i].mem;
	}
	lab_finish(l, 60 * SEC);
}

/* arg: how much later, ms; messages in flight at most */
static void late_copies(struct lab *l, uint32_t writes)
{
	uint64_t delay = (uint64_t)(l->arg[0] * 1e6);

	lab_line(l, 100 * MBIT, 10 * MS);
	l->attr.rate_bps = 95 * MBIT;
	l->attr.messages = (uint32_t)l->arg[1];
	lab_open(l);
	sim_filter_set(l->world, copy_later, &delay);
	lab_connect(l, l->p.conn);
	into_one_buffer(l, 100000, writes);
	/* One write at a time: a grant, the bytes, and their end to the writer. */
	l->ideal_ns = lab_rtt_ns(l) + writes * (lab_rtt_ns(l) + 100000 * 8e9 / lab_rate_bps(l, 0));
	lab_run(l, lab_now(l) + 2 * delay);
	assert_int_equal(lab_counter(l, 1, SDR_CTR_rx_duplicate) +
				 lab_counter(l, 1, SDR_CTR_rx_late),
			 lab_counter(l, 1, SDR_CTR_rx_pkts));
	sim_filter_set(l->world, NULL, NULL);
	lab_close(l);
}

void late_duplicates(struct lab *l)
{
	late_copies(l, 40);
}

/* The slots, and on RDMA devices the generations, come round several times. */
void late_over_slots(struct lab *l)
{
	static const struct sdr_sim_device *const devices[] = {NULL, &pair_roce};
	uint64_t took = 0;

	for (int i = 0; i < 2; i++) {
		struct lab copy = *l;

		pair_device = devices[i];
		late_copies(&copy, 100);
		took += copy.done_ns - copy.start_ns;
		l->ideal_ns += copy.ideal_ns;
	}
	l->done_ns = took;
}

/* ---- MTU ---- */

/* arg: the path's MTU; the application knows that it is small. */
void mtu_small(struct lab *l)
{
	provisioned(l);
	for (int dir = 0; dir < 2; dir++)
		l->link[dir].mtu_bytes = (uint32_t)l->arg[0];
	l->attr.max_payload_bytes = sdr_payload_for_mtu((uint32_t)l->arg[0], 0);
	xfer(l, 8);
}

/* arg: the MTU of another route that is taken from 300 ms on, for so many ms */
void mtu_falls(struct lab *l)
{
	provisioned(l);
	lab_begin(l, 16, 512 * KIB, 8);
	lab_run(l, 300 * MS);
	for (int dir = 0; dir < 2; dir++)
		l->link[dir].mtu_bytes = (uint32_t)l->arg[0];
	lab_relink(l);
	lab_run(l, 300 * MS + (uint64_t)(l->arg[1] * 1e6));
	for (int dir = 0; dir < 2; dir++)
		l->link[dir].mtu_bytes = 0;
	lab_relink(l);
	lab_finish(l, 60 * SEC);
	l->ideal_ns = lab_ideal_ns(l, 0, 8 * MIB, 0, 1) + l->arg[1] * 1e6;
	lab_close(l);
}

/* ---- unequal ---- */

/* A link of its own for one channel, both ways. */
static void channel_link(struct lab *l, uint32_t channel, const struct link_attr *attr)
{
	for (int dir = 0; dir < 2; dir++)
		assert_int_equal(
			sim_link_set(l->world, l->p.host[dir], l->p.host[1 - dir], channel, attr),
			0);
}

/* arg: how many times the delay of the one channel is that of the other */
void asym_channels(struct lab *l)
{
	struct link_attr far;

	lab_line(l, 100 * MBIT, 10 * MS);
	l->attr.rate_bps = 190 * MBIT;
	l->attr.channels = 2;
	lab_open(l);
	far = l->link[0];
	far.delay_ns *= (uint64_t)l->arg[0];
	channel_link(l, 0, &l->link[0]);
	channel_link(l, 1, &far);
	lab_connect(l, l->p.conn);
	lab_flow(l, 0, 32, 512 * KIB, 16);
	lab_finish(l, 60 * SEC);
	/* Both links full, and the last packets over the near one ... or over the far one. */
	l->ideal_ns = 16 * MIB * 8e9 / 190e6 + 2 * (double)far.delay_ns;
	snprintf(l->note, sizeof(l->note), "%llu of %llu packets were sent twice",
		 (unsigned long long)lab_info(l, 0).tx_resent_pkts,
		 (unsigned long long)lab_info(l, 0).tx_pkts);
	lab_close(l);
}

/* arg: how many times as long the way back takes */
void asym_delay(struct lab *l)
{
	lab_line(l, 100 * MBIT, 10 * MS);
	l->attr.rate_bps = 95 * MBIT;
	l->link[1].delay_ns *= (uint64_t)l->arg[0];
	xfer(l, 16);
}

/* arg: how many times slower the way back is */
void asym_rate(struct lab *l)
{
	lab_line(l, 100 * MBIT, 30 * MS);
	l->tell_rtt = true;
	l->link[1].rate_bps /= (uint64_t)l->arg[0];
	xfer(l, 16);
}

/* ---- queues and marks ---- */

void ecn_all(struct lab *l)
{
	lab_line(l, 100 * MBIT, 40 * MS);
	l->tell_rtt = true;
	for (int dir = 0; dir < 2; dir++)
		l->link[dir].ecn_bytes = 1;
	lab_begin(l, 32, 512 * KIB, 8);
	lab_finish(l, 60 * SEC);
	assert_true(lab_counter(l, 1, SDR_CTR_rx_ce) > 16 * MIB / LAB_PAYLOAD / 2);
	l->ideal_ns = lab_ideal_ns(l, 0, 16 * MIB, 0, 1);
	lab_close(l);
}

/* Marks are cleared on the way: a full queue shows by its losses and its delay alone. */
void ecn_bleached(struct lab *l)
{
	lab_line(l, 100 * MBIT, 40 * MS);
	l->tell_rtt = true;
	lab_begin(l, 32, 512 * KIB, 8);
	lab_finish(l, 60 * SEC);
	assert_int_equal(lab_counter(l, 1, SDR_CTR_rx_ce), 0);
	l->ideal_ns = lab_ideal_ns(l, 0, 16 * MIB, 0, 1);
	lab_close(l);
}

static double lost_share(const struct lab *l, enum link_loss why)
{
	struct link_counters c;

	assert_int_equal(
		sim_link_counters(l->world, l->p.host[0], l->p.host[1], SIM_CHANNEL_ALL, &c), 0);
	return (double)c.lost_pkts[why] / (double)c.offered_pkts;
}

/* arg: bucket in ms of its rate, 20 Mbit/s; the line has 100 */
void policer(struct lab *l)
{
	lab_line(l, 100 * MBIT, 40 * MS);
	l->tell_rtt = true;
	l->link[0].policer = (struct link_policer){
		.rate_bps = 20 * MBIT, .burst_bytes = (uint64_t)(l->arg[0] * 20e6 / 8e3)};
	lab_begin(l, 32, 512 * KIB, 8);
	lab_finish(l, 120 * SEC);
	l->ideal_ns = (16 * MIB - (double)l->link[0].policer.burst_bytes) * 8e9 / 20e6 *
			      LAB_IP_BYTES / LAB_PAYLOAD +
		      2 * lab_rtt_ns(l);
	snprintf(l->note, sizeof(l->note), "%.1f %% lost to the policer",
		 100 * lost_share(l, LINK_LOST_POLICER));
	lab_close(l);
}

/* arg: the queue in ms. The rate is found; the standing queue is looked at. */
static void found_over_queue(struct lab *l, double queue_ms, double most_ms)
{
	double worst_ms = 0;

	lab_line(l, 50 * MBIT, 30 * MS);
	l->tell_rtt = true;
	for (int dir = 0; dir < 2; dir++) {
		l->link[dir].queue_bytes = 0;
		l->link[dir].queue_ns = (uint64_t)(queue_ms * 1e6);
	}
	lab_begin(l, 64, 512 * KIB, 8);
	while (!lab_is_done(l)) {
		double ms = (double)sim_link_queued_bytes(l->world, l->p.host[0], l->p.host[1],
							  SIM_CHANNEL_ALL) *
			    8e3 / 50e6;

		worst_ms = ms > worst_ms ? ms : worst_ms;
		lab_step(l, lab_now(l) + SEC);
		assert_true(lab_now(l) < 120 * SEC);
	}
	lab_finish(l, SEC);
	l->ideal_ns = lab_ideal_ns(l, 0, 32 * MIB, 0, 1);
	snprintf(l->note, sizeof(l->note), "queue of %.0f ms at most, %.2f %% lost in it", worst_ms,
		 100 * lost_share(l, LINK_LOST_QUEUE));
	assert_true(worst_ms <= most_ms);
	lab_close(l);
}

/* arg: queue, the most of it that may be used; ms */
void bufferbloat(struct lab *l)
{
	found_over_queue(l, l->arg[0], l->arg[1]);
}

void shallow_queue(struct lab *l)
{
	found_over_queue(l, l->arg[0], l->arg[0]);
}

/* ---- G.1050 ---- */

/* arg: the severity's letter. Failure and flap begin in the second second, not in an hour. */
void g1050(struct lab *l)
{
	lab_line(l, 20 * MBIT, 100 * MS);
	for (int dir = 0; dir < 2; dir++) {
		struct link_attr *a = &l->link[dir];

		assert_int_equal(link_g1050((char)l->arg[0], l->seed, 0, a), 0);
		a->queue_bytes = 0;
		a->queue_ns = 500 * MS;
		if (a->outage.every_ns)
			a->outage.first_ns = 3 * SEC;
		if (a->flap.every_ns)
			a->flap.first_ns = 2 * SEC;
	}
	l->attr.rate_bps = 18 * MBIT;
	lab_begin(l, 32, 512 * KIB, 32);
	lab_finish(l, 300 * SEC);
	l->ideal_ns = lab_ideal_ns(l, 0, 16 * MIB, link_ge_ratio(&l->link[0].loss), 1) +
		      (double)l->link[0].outage.for_ns;
	lab_close(l);
}

/* ---- channels ---- */

/* arg: channels, how many of them die for good after 200 ms */
void channel_breaks(struct lab *l)
{
	uint32_t n = (uint32_t)l->arg[0], dead = (uint32_t)l->arg[1];
	struct link_attr cut;

	lab_line(l, 50 * MBIT, 40 * MS);
	l->attr.channels = n;
	l->attr.rate_bps = n * 45 * MBIT;
	lab_open(l);
	for (uint32_t c = 0; c < n; c++)
		channel_link(l, c, &l->link[0]);
	lab_connect(l, l->p.conn);
	lab_flow(l, 0, 32, 512 * KIB, 16);
	lab_run(l, 200 * MS);
	cut = l->link[0];
	cut.cut = true;
	for (uint32_t c = 0; c < dead; c++)
		channel_link(l, n - 1 - c, &cut);
	lab_finish(l, 60 * SEC);
	/* All of them for 200 ms, then those that are left. */
	l->ideal_ns = 200e6 + (16 * MIB - 0.16 * n * 45e6 / 8) * 8e9 / ((n - dead) * 45e6) +
		      lab_rtt_ns(l);
	lab_close(l);
}

/* arg: channels, ms for which all of them are cut */
void channels_all_break(struct lab *l)
{
	uint32_t n = (uint32_t)l->arg[0];

	lab_line(l, 50 * MBIT, 40 * MS);
	l->attr.channels = n;
	l->attr.rate_bps = n * 45 * MBIT;
	for (int dir = 0; dir < 2; dir++)
		outage(&l->link[dir], 200 * MS, 3600 * SEC, (uint64_t)(l->arg[1] * 1e6));
	lab_open(l);
	for (uint32_t c = 0; c < n; c++)
		channel_link(l, c, &l->link[0]);
	lab_connect(l, l->p.conn);
	lab_flow(l, 0, 32, 512 * KIB, 16);
	lab_finish(l, 60 * SEC);
	l->ideal_ns = 16 * MIB * 8e9 / (n * 45e6) + 2 * lab_rtt_ns(l) + l->arg[1] * 1e6;
	lab_close(l);
}

/* ---- company ---- */

/* quic-interop-runner's crosstraffic, with one of us as the other flow. */
void two_flows(struct lab *l)
{
	struct sdr_conn *other[2];

	lab_line(l, 50 * MBIT, 30 * MS);
	l->tell_rtt = true;
	lab_begin(l, 32, 512 * KIB, 8);
	lab_connect(l, other);
	lab_flow_on(l, other, 0, 32, 512 * KIB, 8);
	lab_finish(l, 60 * SEC);
	l->ideal_ns = lab_ideal_ns(l, 0, 32 * MIB, 0, 1);
	for (int end = 0; end < 2; end++)
		sdr_conn_destroy(other[end]);
	lab_drop(l);
}

void both_ways(struct lab *l)
{
	provisioned(l);
	lab_begin(l, 32, 512 * KIB, 8);
	lab_flow(l, 1, 32, 512 * KIB, 8);
	lab_finish(l, 60 * SEC);
	l->ideal_ns = lab_ideal_ns(l, 0, 16 * MIB, 0, 1);
	lab_close(l);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios in which packets are lost or damaged: at random, in bursts, one by one, by masks.
 */
#include "catalogue.h"

#include <stdio.h>
#include <stdlib.h>

/* quic-interop-runner's line: 15 ms each way, 10 Mbit/s, a queue of 25 packets. */
static void interop_line(struct lab *l)
{
	lab_line(l, 10 * MBIT, 30 * MS);
	for (int dir = 0; dir < 2; dir++)
		l->link[dir].queue_bytes = 25 * LAB_IP_BYTES;
}

static void both(struct lab *l, struct link_ge loss, double corrupt)
{
	for (int dir = 0; dir < 2; dir++) {
		l->link[dir].loss = loss;
		l->link[dir].corrupt_p = corrupt;
	}
}

/* A kilobyte from the first packet of a connection to the last: PING, CTS, data, ACK. */
static void handshake(struct lab *l)
{
	double there;

	lab_begin(l, 1, KIB, 1);
	lab_finish(l, 600 * SEC);
	/* A packet each way is lost with p: in the mean 1/(1-p)^2 rounds for each of two. */
	there = 1 - l->arg[0] / 100;
	l->ideal_ns = 2 * lab_rtt_ns(l) / there / there + KIB * 8e9 / lab_rate_bps(l, 0);
	lab_close(l);
}

/* arg: percent lost, each way */
void handshake_loss(struct lab *l)
{
	interop_line(l);
	both(l, link_ge_iid(l->arg[0] / 100), 0);
	handshake(l);
}

void handshake_corrupt(struct lab *l)
{
	interop_line(l);
	both(l, (struct link_ge){0}, l->arg[0] / 100);
	handshake(l);
}

/* A provisioned gigabit over 25 ms. */
static void provisioned(struct lab *l)
{
	lab_line(l, GBIT, 25 * MS);
	l->attr.rate_bps = 950 * MBIT;
}

static void xfer(struct lab *l, uint64_t mbytes, double loss, double burst)
{
	lab_begin(l, (uint32_t)mbytes / 2, 2 * MIB, 8);
	lab_finish(l, 120 * SEC);
	l->ideal_ns = lab_ideal_ns(l, 0, mbytes * MIB, loss, burst);
	lab_close(l);
}

/* arg: percent lost each way, MiB */
void xfer_loss(struct lab *l)
{
	provisioned(l);
	both(l, link_ge_iid(l->arg[0] / 100), 0);
	xfer(l, (uint64_t)l->arg[1], l->arg[0] / 100, 1);
}

void xfer_corrupt(struct lab *l)
{
	provisioned(l);
	both(l, (struct link_ge){0}, l->arg[0] / 100);
	xfer(l, (uint64_t)l->arg[1], l->arg[0] / 100, 1);
}

/* arg: mean burst in packets, MiB; a percent is lost in the mean */
void xfer_burst(struct lab *l)
{
	struct link_ge ge;

	assert_int_equal(link_ge_mean(0.01, l->arg[0], &ge), 0);
	provisioned(l);
	both(l, ge, 0);
	xfer(l, (uint64_t)l->arg[1], 0.01, l->arg[0]);
}

/* 2 MB as quic-interop-runner has them; the rate is found. */
static void interop(struct lab *l, double loss)
{
	l->tell_rtt = true;
	lab_begin(l, 4, 512 * KIB, 4);
	lab_finish(l, 120 * SEC);
	l->ideal_ns = lab_ideal_ns(l, 0, 2 * MIB, loss, 1);
	lab_close(l);
}

void interop_loss(struct lab *l)
{
	interop_line(l);
	both(l, link_ge_iid(l->arg[0] / 100), 0);
	interop(l, l->arg[0] / 100);
}

void interop_corrupt(struct lab *l)
{
	interop_line(l);
	both(l, (struct link_ge){0}, l->arg[0] / 100);
	interop(l, l->arg[0] / 100);
}

/* ---- packets one by one ---- */

/* A filter that loses what the bits of a mask say, packet by packet. */
struct masked {
	uint64_t mask;
	unsigned int at[2];
	bool together; /* both directions count as one; else each by itself */
	bool dir[2];   /* which directions */
};

static struct sim_verdict masked(void *arg, const struct sim_packet_info *info)
{
	struct masked *m = arg;
	unsigned int dir = info->from != 0, *at = &m->at[m->together ? 0 : dir];
	struct sim_verdict v = {.action = SIM_PASS};

	if (!m->dir[dir])
		return v;
	if (*at < 64 && m->mask >> *at & 1)
		v.action = SIM_DROP;
	++*at;
	return v;
}

/* 40 packets with these losses: sequence of PINGs, grants, data and ACKs. */
static double masked_run(struct lab *l, struct masked m)
{
	double took;

	lab_line(l, 100 * MBIT, 20 * MS);
	l->attr.rate_bps = 90 * MBIT;
	lab_open(l);
	sim_filter_set(l->world, masked, &m);
	lab_connect(l, l->p.conn);
	lab_flow(l, 0, 4, 10 * LAB_PAYLOAD, 2);
	lab_finish(l, 120 * SEC);
	took = (double)(l->done_ns - l->start_ns);
	l->ideal_ns = lab_ideal_ns(l, 0, 40 * LAB_PAYLOAD, 0, 1);
	sim_filter_set(l->world, NULL, NULL);
	lab_close(l);
	return took;
}

/* Each run of losses costs a round trip more, if it is seen at once. */
static double runs_of(uint64_t mask)
{
	return (double)__builtin_popcountll(mask & ~(mask << 1));
}

/* arg: the mask */
void loss_mask(struct lab *l)
{
	uint64_t mask = (uint64_t)l->arg[0];

	masked_run(l, (struct masked){.mask = mask, .together = true, .dir = {true, true}});
	l->ideal_ns += runs_of(mask) * 20e6;
}

/* arg: the mask, the direction */
void loss_mask_one_way(struct lab *l)
{
	struct masked m = {.mask = (uint64_t)l->arg[0]};

	m.dir[l->arg[1] > 0] = true;
	masked_run(l, m);
	l->ideal_ns += runs_of(m.mask) * 20e6;
}

/* Runs a mask in a world of its own, many of which make a scenario. */
struct many {
	double sum_ns, longest_ns;
	unsigned int n;
	char longest[48];
};

static void many_add(struct lab *l, struct many *m, struct masked how)
{
	struct lab *one = calloc(1, sizeof(*one));
	double took;

	assert_non_null(one);
	one->seed = l->seed * 10000 + m->n;
	took = masked_run(one, how);
	m->sum_ns += took;
	m->n++;
	if (took > m->longest_ns) {
		m->longest_ns = took;
		snprintf(m->longest, sizeof(m->longest), "mask 0x%llx: %.0f ms",
			 (unsigned long long)how.mask, took / 1e6);
	}
	l->ideal_ns = one->ideal_ns + 20e6;
	free(one);
}

/* The longest counts, so that no single mask gets worse. */
static void many_end(struct lab *l, const struct many *m)
{
	l->start_ns = 0;
	l->done_ns = (uint64_t)m->longest_ns;
	snprintf(l->note, sizeof(l->note), "of %u, mean %.0f ms; %s", m->n, m->sum_ns / m->n / 1e6,
		 m->longest);
}

/* picoquic's many_losses: 1 to arg[0] packets in a row, from each of the first ones on. */
void loss_masks(struct lab *l)
{
	struct many m = {0};

	for (unsigned int n = 1; n <= (unsigned int)l->arg[0]; n++) {
		for (unsigned int from = 0; from < (unsigned int)l->arg[1]; from++)
			many_add(l, &m,
				 (struct masked){.mask = ((UINT64_C(1) << n) - 1) << from,
						 .together = true,
						 .dir = {true, true}});
	}
	many_end(l, &m);
}

/* Of the forward packets, then of the answers: each alone is lost. */
static void nth(struct lab *l, unsigned int dir)
{
	struct many m = {0};

	for (unsigned int at = 0; at < (unsigned int)l->arg[0]; at++) {
		struct masked how = {.mask = UINT64_C(1) << at};

		how.dir[dir] = true;
		many_add(l, &m, how);
	}
	many_end(l, &m);
}

void nth_packet_drop(struct lab *l)
{
	nth(l, 0);
}

void nth_answer_drop(struct lab *l)
{
	nth(l, 1);
}

/* picoquic's many_short_loss: random masks of some bits. */
void short_losses(struct lab *l)
{
	struct many m = {0};
	struct rng rng;

	rng_init(&rng, l->seed);
	for (unsigned int i = 0; i < (unsigned int)l->arg[0]; i++) {
		uint64_t mask = rng_next(&rng) & rng_next(&rng);

		many_add(l, &m,
			 (struct masked){.mask = mask, .together = true, .dir = {true, true}});
	}
	many_end(l, &m);
	l->done_ns = (uint64_t)(m.sum_ns / m.n); /* which masks are bad ones is chance */
}

/* One packet is lost with each of its first `times` transmissions. */
struct unlucky {
	uint32_t packet;
	unsigned int times, lost;
};

static struct sim_verdict unlucky(void *arg, const struct sim_packet_info *info)
{
	struct unlucky *u = arg;
	struct sim_verdict v = {.action = SIM_PASS};

	if (!info->is_ctrl && info->from == 0 && info->message == 0 &&
	    info->offset == (uint64_t)u->packet * LAB_PAYLOAD && u->lost < u->times) {
		u->lost++;
		v.action = SIM_DROP;
	}
	return v;
}

/* arg: transmissions lost, packet of 1000 */
void nth_attempt_drop(struct lab *l)
{
	struct unlucky u = {.times = (unsigned int)l->arg[0], .packet = (uint32_t)l->arg[1]};

	lab_line(l, GBIT, 20 * MS);
	l->attr.rate_bps = 900 * MBIT;
	lab_open(l);
	sim_filter_set(l->world, unlucky, &u);
	lab_connect(l, l->p.conn);
	lab_flow(l, 0, 1, 1000 * LAB_PAYLOAD, 1);
	lab_finish(l, 60 * SEC);
	assert_int_equal(u.lost, u.times);
	/* A round trip for each: until the loss shows, and the next one is there. */
	l->ideal_ns = 2 * lab_rtt_ns(l) + u.times * lab_rtt_ns(l) +
		      u.packet * LAB_PAYLOAD * 8e9 / lab_rate_bps(l, 0);
	lab_close(l);
}

/* ---- heavy loss, and then none ---- */

/*
 * Loses at some percent for a while, in which some gets through, then it heals. The time is
 * counted from there. Returns how many writes had ended.
 */
static uint32_t heavy(struct lab *l, struct lab_flow *f)
{
	uint32_t before;

	lab_run(l, lab_now(l) + 300 * MS);
	both(l, link_ge_iid(l->arg[0] / 100), 0);
	lab_relink(l);
	lab_run(l, lab_now(l) + (uint64_t)(l->arg[1] * 1e9));
	both(l, (struct link_ge){0}, 0);
	lab_relink(l);
	before = f->ended[0];
	l->start_ns = lab_now(l);
	snprintf(l->note, sizeof(l->note), "since it healed; %u of %u before", before, f->n);
	lab_finish(l, 60 * SEC);
	return before;
}

/* arg: percent, s */
void heavy_loss(struct lab *l)
{
	uint32_t before;

	lab_line(l, 100 * MBIT, 40 * MS);
	l->attr.rate_bps = 95 * MBIT;
	before = heavy(l, lab_begin(l, 64, 512 * KIB, 8));
	l->ideal_ns = (64 - before) * 512.0 * KIB * 8e9 / lab_rate_bps(l, 0) + lab_rtt_ns(l);
	lab_close(l);
}

/* One write at a time, a round trip each. */
void heavy_loss_inter(struct lab *l)
{
	uint32_t before;

	lab_line(l, 100 * MBIT, 40 * MS);
	before = heavy(l, lab_begin(l, 600, KIB, 1));
	l->ideal_ns = (600 - before) * lab_rtt_ns(l);
	lab_close(l);
}

/* arg: percent of what comes back that is lost */
void ack_loss(struct lab *l)
{
	provisioned(l);
	lab_begin(l, 8, 2 * MIB, 8);
	lab_run(l, 30 * MS); /* connected, and all is granted */
	l->link[1].loss = link_ge_iid(l->arg[0] / 100);
	lab_relink(l);
	lab_finish(l, 60 * SEC);
	/* The last answer needs 1/(1-p) round trips. */
	l->ideal_ns = lab_ideal_ns(l, 0, 16 * MIB, 0, 1) - lab_rtt_ns(l) +
		      lab_rtt_ns(l) / (1 - l->arg[0] / 100);
	lab_close(l);
}

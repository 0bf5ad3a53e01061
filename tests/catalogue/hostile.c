/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios of somebody in the middle who replays, drops, damages and makes up packets.
 */
#include "catalogue.h"

#include "sdk/internal.h"

#include <stdio.h>
#include <string.h>

static void line(struct lab *l)
{
	lab_line(l, 100 * MBIT, 40 * MS);
	l->attr.rate_bps = 90 * MBIT;
}

/* ---- replays ---- */

struct again {
	bool data, ctrl;
	uint64_t delay_ns[2]; /* in turn */
	uint64_t n;
};

static struct sim_verdict again(void *arg, const struct sim_packet_info *info)
{
	struct again *a = arg;

	if (info->is_ctrl ? !a->ctrl : !a->data)
		return (struct sim_verdict){.action = SIM_PASS};
	return (struct sim_verdict){SIM_DUP, a->delay_ns[a->n++ % 2]};
}

static void replayed(struct lab *l, struct again *a)
{
	line(l);
	lab_open(l);
	sim_filter_set(l->world, again, a);
	lab_connect(l, l->p.conn);
	lab_flow(l, 0, 16, 512 * KIB, 8);
	lab_flow(l, 1, 16, 512 * KIB, 8);
	lab_finish(l, 60 * SEC);
	sim_filter_set(l->world, NULL, NULL);
	lab_run(l, lab_now(l) + a->delay_ns[1] + SEC);
	/* What came twice takes the line's time twice, but for what comes when all is done. */
	l->ideal_ns = lab_ideal_ns(l, 0, 8 * MIB, 0, 1);
}

/* Each data packet comes again, to the byte, after 30 ms or after 3 s. */
void replay_data(struct lab *l)
{
	struct again a = {.data = true, .delay_ns = {30 * MS, 3 * SEC}};
	uint64_t seen = 0;

	replayed(l, &a);
	for (int end = 0; end < 2; end++)
		seen += lab_counter(l, end, SDR_CTR_rx_duplicate) +
			lab_counter(l, end, SDR_CTR_rx_late);
	assert_true(seen >= a.n);
	lab_close(l);
}

/* Each control datagram comes again: an exact copy is one too many, whenever it comes. */
void replay_ctrl(struct lab *l)
{
	struct again a = {.ctrl = true, .delay_ns = {30 * MS, 3 * SEC}};
	uint64_t seen = 0;

	replayed(l, &a);
	for (int end = 0; end < 2; end++)
		seen += lab_counter(l, end, SDR_CTR_ctrl_replayed);
	assert_true(seen + 8 >= a.n); /* some are on their way */
	lab_close(l);
}

/*
 * All datagrams of a connection come again after it was reset, into another one between the
 * same hosts and ports. arg: how much later, ms
 */
void stale_control(struct lab *l)
{
	struct again a = {.ctrl = true, .data = true};
	struct lab_flow *f;

	a.delay_ns[0] = a.delay_ns[1] = (uint64_t)(l->arg[0] * 1e6);
	line(l);
	lab_open(l);
	sim_filter_set(l->world, again, &a);
	lab_connect(l, l->p.conn);
	f = lab_flow(l, 0, 16, 512 * KIB, 8);
	f->may_fail = true;
	lab_run(l, 300 * MS);
	sim_filter_set(l->world, NULL, NULL);
	for (int end = 0; end < 2; end++)
		sdr_conn_destroy(l->p.conn[end]);
	f->conn[0] = f->conn[1] = NULL;
	lab_run(l, lab_now(l) + 1);
	for (int is_recv = 0; is_recv < 2; is_recv++) {
		assert_int_equal(f->ended[is_recv], f->posted[is_recv]);
		f->n = f->ended[is_recv];
	}
	f->ended[0] = f->ended[1] = f->n;
	memset(l->seen, 0, sizeof(l->seen));
	lab_connect(l, l->p.conn);
	lab_flow(l, 0, 16, 512 * KIB, 8);
	lab_finish(l, 60 * SEC);
	lab_run(l, lab_now(l) + a.delay_ns[0]);
	l->ideal_ns = lab_ideal_ns(l, 0, 8 * MIB, 0, 1);
	snprintf(l->note, sizeof(l->note), "%llu old packets came, %llu of a QP that is gone",
		 (unsigned long long)a.n,
		 (unsigned long long)(lab_counter(l, 0, SDR_CTR_rx_unknown_qp) +
				      lab_counter(l, 1, SDR_CTR_rx_unknown_qp)));
	assert_true(lab_counter(l, 0, SDR_CTR_rx_unknown_qp) +
			    lab_counter(l, 1, SDR_CTR_rx_unknown_qp) >
		    0);
	lab_close(l);
}

/* ---- drops and damage ---- */

struct few {
	int from;
	unsigned int left;
};

static struct sim_verdict first_dropped(void *arg, const struct sim_packet_info *info)
{
	struct few *f = arg;
	bool drop = info->is_ctrl && info->from == f->from && f->left;

	f->left -= drop;
	return (struct sim_verdict){.action = drop ? SIM_DROP : SIM_PASS};
}

/* UCX's crep_drop: the first arg[0] answers of the listener are lost. */
void answers_dropped(struct lab *l)
{
	struct few f = {.from = 1, .left = (unsigned int)l->arg[0]};

	line(l);
	lab_open(l);
	sim_filter_set(l->world, first_dropped, &f);
	lab_connect(l, l->p.conn);
	lab_flow(l, 0, 1, KIB, 1);
	lab_finish(l, 60 * SEC);
	assert_int_equal(f.left, 0);
	l->ideal_ns = lab_ideal_ns(l, 0, KIB, 0, 1) + l->arg[0] * lab_rtt_ns(l);
	sim_filter_set(l->world, NULL, NULL);
	lab_close(l);
}

static struct fabric *fabric_of(const struct lab *l, int end)
{
	return l->p.ctx[end]->fabric;
}

/* Packets of noise at both ends amid a transfer: some look like ours as far as the QP number. */
static void noise(struct lab *l)
{
	uint8_t bytes[1500];
	int end = rng_next(&l->rng) & 1;
	size_t len = rng_below(&l->rng, sizeof(bytes));
	uint32_t qpn = sdr_conn_qp(l->p.conn[end])->token & 0xffffff;
	struct fabric_local local;

	fabric_of(l, end)->ops->qp_local(sdr_conn_qp(l->p.conn[end])->fqp, &local);
	qpn = local.qpn;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)rng_next(&l->rng);
	bytes[0] = rng_next(&l->rng) & 1 ? WIRE_OP_DATA : WIRE_OP_CTRL;
	put_be16(bytes + 2, WIRE_PKEY_DEFAULT);
	put_be32(bytes + 4, qpn);
	sim_inject(l->world, fabric_of(l, end), bytes, len, 0);
}

/* arg: packets of noise for each ms */
void garbage(struct lab *l)
{
	uint64_t bad = 0, n = 0;

	line(l);
	lab_begin(l, 16, 512 * KIB, 8);
	while (!lab_is_done(l)) {
		for (double i = 0; i < l->arg[0]; i++, n++)
			noise(l);
		lab_run(l, lab_now(l) + MS);
		assert_true(lab_now(l) < 60 * SEC);
	}
	lab_finish(l, SEC);
	for (int end = 0; end < 2; end++)
		bad += lab_counter(l, end, SDR_CTR_rx_malformed) +
		       lab_counter(l, end, SDR_CTR_rx_protection) +
		       lab_counter(l, end, SDR_CTR_rx_unknown_qp);
	assert_int_equal(bad, n);
	l->ideal_ns = lab_ideal_ns(l, 0, 8 * MIB, 0, 1);
	lab_close(l);
}

/* picoquic's fuzz: one packet in arg[0] has a flipped bit, or comes cut short or longer. */
struct spoiler {
	struct lab *lab;
	double share;
	uint64_t n;
};

static struct sim_verdict spoiled(void *arg, const struct sim_packet_info *info)
{
	struct spoiler *s = arg;
	bool hit = rng_unit(&s->lab->rng) < s->share;

	(void)info;
	s->n += hit;
	return (struct sim_verdict){.action = hit ? SIM_DROP : SIM_PASS};
}

void fuzzed(struct lab *l)
{
	struct spoiler s = {.lab = l, .share = 1 / l->arg[0] / 2};
	uint64_t before = 0;

	line(l);
	for (int dir = 0; dir < 2; dir++)
		l->link[dir].corrupt_p = s.share;
	lab_open(l);
	lab_connect(l, l->p.conn);
	lab_flow(l, 0, 16, 512 * KIB, 8);
	sim_filter_set(l->world, spoiled, &s);
	while (!lab_is_done(l)) {
		/* For each that was taken off, one of another length comes in its place. */
		for (; before < s.n; before++)
			noise(l);
		lab_step(l, lab_now(l) + SEC);
		assert_true(lab_now(l) < 60 * SEC);
	}
	lab_finish(l, SEC);
	sim_filter_set(l->world, NULL, NULL);
	l->ideal_ns = lab_ideal_ns(l, 0, 8 * MIB, 1 / l->arg[0], 1);
	lab_close(l);
}

/* ---- connections that are never made ---- */

/*
 * arg: connections on the listener whose peers never say a word, while another one works. They
 * cost a bounded piece of memory each, and are told when their time is over.
 */
void half_open(struct lab *l)
{
	uint32_t n = (uint32_t)l->arg[0];
	uint8_t blob[SDR_MAX_INFO_BYTES];
	struct sdr_conn *silent, *open[1000];
	int len;

	line(l);
	l->attr.connect_timeout_ns = SEC / 2;
	l->attr.messages = 16;
	lab_open(l);
	assert_true(n <= 1000);
	assert_int_equal(sdr_conn_open(l->p.net[0], &l->attr, &silent), 0);
	len = sdr_conn_blob_get(silent, blob, sizeof(blob));
	l->heap_bound = 4 * MIB + n * 80 * KIB;
	lab_connect(l, l->p.conn);
	lab_flow(l, 0, 16, 512 * KIB, 8);
	lab_step(l, lab_now(l) + 1);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(sdr_conn_open(l->p.net[1], &l->attr, &open[i]), 0);
		assert_int_equal(sdr_conn_blob_set(open[i], blob, (size_t)len, NULL), 0);
	}
	lab_finish(l, 60 * SEC);
	assert_int_equal(l->p.events[1][SDR_EV_FAILED], n);
	l->ideal_ns = lab_ideal_ns(l, 0, 8 * MIB, 0, 1);
	snprintf(l->note, sizeof(l->note), "%.1f KiB each", (double)l->heap_peak / 1024 / n);
	for (uint32_t i = 0; i < n; i++)
		sdr_conn_destroy(open[i]);
	sdr_conn_destroy(silent);
	/* All of them told their end: that is what was asked for. */
	l->p.events[1][SDR_EV_FAILED] = 0;
	lab_close(l);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios of erasure codes: what they are there to make good, what is beyond them, and what is
 * missing for them. Peers that lie about codes are in liar_codes.c.
 */
#include "catalogue.h"

#include "conn/internal.h"
#include "sdk/internal.h"
#include "wire/packet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRITES 8u
#define PKTS 1460u /* of a write: whole blocks but the last one, and whole chunks */
#define SIZE (PKTS * LAB_PAYLOAD)

static void provisioned(struct lab *l, const char *scheme)
{
	lab_line(l, GBIT, 25 * MS);
	l->attr.rate_bps = 950 * MBIT;
	l->attr.scheme = scheme;
}

static void lossy(struct lab *l, double loss)
{
	for (int dir = 0; dir < 2; dir++)
		l->link[dir].loss = link_ge_iid(loss);
}

/* ---- losses of some packets' first transmission ---- */

struct picked {
	bool all_parity;
	uint32_t from, upto, every; /* packets [from, upto) of each `every`; 0: of a write */
	bool seen[WRITES][PKTS];
	uint32_t lost, parity;
};

static struct sim_verdict picked(void *arg, const struct sim_packet_info *info)
{
	struct picked *p = arg;
	uint32_t at = (uint32_t)(info->offset / LAB_PAYLOAD), in = p->every ? at % p->every : at;
	struct sim_verdict v = {.action = SIM_PASS};
	bool hit;

	if (info->is_ctrl || info->from != 0)
		return v;
	if (info->message & 1) {
		p->parity++;
		hit = p->all_parity;
	} else {
		hit = !p->seen[info->message / 2][at] && in >= p->from && in < p->upto;
		p->seen[info->message / 2][at] = true;
		p->lost += hit;
	}
	v.action = hit ? SIM_DROP : SIM_PASS;
	return v;
}

/* Writes with the code of l->attr.scheme, all of them; *p is what was lost. */
static struct sdr_conn_info transfer(struct lab *l, struct picked *p)
{
	struct sdr_conn_info info;

	lab_open(l);
	sim_filter_set(l->world, picked, p);
	lab_connect(l, l->p.conn);
	lab_flow(l, 0, WRITES, SIZE, WRITES);
	lab_finish(l, 120 * SEC);
	sim_filter_set(l->world, NULL, NULL);
	info = lab_info(l, 0);
	assert_int_equal(info.writes_coded, WRITES);
	assert_true(p->parity > 0);
	snprintf(l->note, sizeof(l->note), "%llu decoded, %llu blocks failed, %llu repairs",
		 (unsigned long long)lab_info(l, 1).rx_decoded_pkts,
		 (unsigned long long)info.tx_failed_blocks,
		 (unsigned long long)(info.tx_repair_pkts + info.tx_resent_pkts));
	return info;
}

/* arg: percent of all packets lost besides */
void drop_all_parity(struct lab *l)
{
	static struct picked p;

	p = (struct picked){.all_parity = true};
	provisioned(l, "ec:32,8");
	lossy(l, l->arg[0] / 100);
	transfer(l, &p);
	assert_int_equal(lab_info(l, 1).rx_decoded_pkts, 0);
	l->ideal_ns = lab_ideal_ns(l, 0, WRITES * (uint64_t)SIZE, l->arg[0] / 100, 1);
	lab_close(l);
}

/* One packet more of every 8th block than parity can make good; arg: 1: fresh parity repairs. */
void drop_too_many(struct lab *l)
{
	static struct picked p;
	struct sdr_conn_info info;

	p = (struct picked){.upto = 9, .every = 8 * 32};
	provisioned(l, l->arg[0] > 0 ? "ec:32,8,repair=parity" : "ec:32,8");
	info = transfer(l, &p);
	assert_true(info.tx_failed_blocks >= p.lost / 9);
	if (l->arg[0] > 0)
		assert_true(info.tx_repair_pkts > 0);
	/* The last such block is more than a round trip before the end. */
	l->ideal_ns = lab_ideal_ns(l, 0, WRITES * (uint64_t)SIZE, 0, 1);
	lab_close(l);
}

/* As many packets in a row as a block has; arg: 1: interleaved, so that each block lacks few. */
void burst_of_block(struct lab *l)
{
	static struct picked p;
	struct sdr_conn_info info;

	p = (struct picked){.from = 320, .upto = 352};
	provisioned(l, l->arg[0] > 0 ? "ec:32,8,depth=8" : "ec:32,8");
	info = transfer(l, &p);
	assert_int_equal(p.lost, WRITES * 32);
	if (l->arg[0] > 0) {
		assert_int_equal(lab_info(l, 1).rx_decoded_pkts, p.lost);
		assert_int_equal(info.tx_failed_blocks, 0);
		assert_int_equal(info.tx_resent_pkts, 0);
	} else {
		assert_true(info.tx_failed_blocks >= WRITES);
	}
	l->ideal_ns = lab_ideal_ns(l, 0, WRITES * (uint64_t)SIZE, 0, 1);
	lab_close(l);
}

/* The last chunk of each write, behind which there is only parity: no round trip for it. */
void last_chunk_lost(struct lab *l)
{
	static struct picked p;
	struct sdr_conn_info info;

	p = (struct picked){.from = PKTS - 4, .upto = PKTS};
	provisioned(l, "ec:32,8");
	info = transfer(l, &p);
	assert_int_equal(lab_info(l, 1).rx_decoded_pkts, WRITES * 4);
	assert_int_equal(info.tx_resent_pkts, 0);
	l->ideal_ns = lab_ideal_ns(l, 0, WRITES * (uint64_t)SIZE, 0, 1);
	lab_close(l);
}

/* ---- a path that does not stay as it is ---- */

/* arg: percent lost, in bursts of 8, in every other second; auto has to follow */
void regime_switches(struct lab *l)
{
	struct link_ge ge;
	bool bad = false;

	assert_int_equal(link_ge_mean(l->arg[0] / 100, 8, &ge), 0);
	lab_line(l, 100 * MBIT, 40 * MS);
	l->attr.rate_bps = 95 * MBIT;
	l->attr.scheme = "auto";
	lab_begin(l, 128, 512 * KIB, 8);
	while (!lab_is_done(l)) {
		bad = !bad;
		for (int dir = 0; dir < 2; dir++)
			l->link[dir].loss = bad ? ge : (struct link_ge){0};
		lab_relink(l);
		for (uint64_t until = lab_now(l) + SEC; lab_now(l) < until && !lab_is_done(l);)
			lab_step(l, until);
		assert_true(lab_now(l) < 120 * SEC);
	}
	lab_finish(l, SEC);
	snprintf(l->note, sizeof(l->note), "%llu of 128 coded, %llu decoded, last: %.40s",
		 (unsigned long long)lab_info(l, 0).writes_coded,
		 (unsigned long long)lab_info(l, 1).rx_decoded_pkts, lab_info(l, 0).write_scheme);
	l->ideal_ns = lab_ideal_ns(l, 0, 64 * MIB, l->arg[0] / 200, 8);
	lab_close(l);
}

/* ---- parity that is damaged ---- */

#define FORGED_MAX 4096u

struct forged {
	struct {
		uint32_t message;
		uint64_t offset;
	} at[FORGED_MAX];
	uint32_t n, injected;
};

/* Takes the parity away, and notes what it was. */
static struct sim_verdict taken(void *arg, const struct sim_packet_info *info)
{
	struct forged *f = arg;

	if (info->is_ctrl || info->from != 0 || !(info->message & 1))
		return (struct sim_verdict){.action = SIM_PASS};
	if (f->n < FORGED_MAX) {
		f->at[f->n].message = info->message;
		f->at[f->n++].offset = info->offset;
	}
	return (struct sim_verdict){.action = SIM_DROP};
}

/* In its place: the same header, other bytes behind it, and a trailer that does not fit them. */
static void forge(struct lab *l, struct forged *f)
{
	const struct sdr_qp *qp = sdr_conn_qp(l->p.conn[1]);
	struct fabric *fabric = l->p.ctx[1]->fabric;
	uint8_t bytes[WIRE_DATA_HDR_BYTES + LAB_PAYLOAD + WIRE_TRAILER_BYTES];
	struct wire_data_template tmpl;
	struct fabric_local local;

	fabric->ops->qp_local(qp->fqp, &local);
	for (; f->injected < f->n; f->injected++) {
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)rng_next(&l->rng);
		wire_data_template_sdr(&tmpl, local.qpn, f->at[f->injected].message, 0);
		wire_data_put(bytes, &tmpl, (uint32_t)rng_next(&l->rng), f->at[f->injected].offset,
			      LAB_PAYLOAD);
		sim_inject(l->world, fabric, bytes, sizeof(bytes), 0);
	}
}

/* All parity comes damaged, a percent of the data is lost: nothing is decoded of what is not true.
 */
void parity_corrupt(struct lab *l)
{
	static struct forged f;

	f.n = f.injected = 0;
	provisioned(l, "ec:32,8");
	lossy(l, l->arg[0] / 100);
	lab_open(l);
	sim_filter_set(l->world, taken, &f);
	lab_connect(l, l->p.conn);
	lab_flow(l, 0, WRITES, SIZE, WRITES);
	while (!lab_is_done(l)) {
		forge(l, &f);
		lab_step(l, lab_now(l) + MS);
		assert_true(lab_now(l) < 120 * SEC);
	}
	lab_finish(l, SEC);
	sim_filter_set(l->world, NULL, NULL);
	forge(l, &f);
	lab_run(l, lab_now(l) + MS);
	assert_true(f.n > 0 && f.n < FORGED_MAX);
	assert_int_equal(lab_counter(l, 1, SDR_CTR_rx_protection), f.n);
	assert_int_equal(lab_info(l, 1).rx_decoded_pkts, 0);
	snprintf(l->note, sizeof(l->note), "%u damaged packets stopped", f.n);
	l->ideal_ns = lab_ideal_ns(l, 0, WRITES * (uint64_t)SIZE, l->arg[0] / 100, 1);
	lab_close(l);
}

/* ---- WRITEs that do not come ---- */

struct unsaid {
	uint32_t left, lost;
};

static bool holds_write(const struct sim_packet_info *info)
{
	uint64_t token, number;
	struct wire_msgs it;
	struct wire_msg msg;

	if (wire_ctrl_begin(info->ctrl_body, info->len, &it, &token, &number))
		return false;
	while (wire_ctrl_next(&it, &msg) == 1)
		if (msg.type == CONN_CTRL_WRITE)
			return true;
	return false;
}

static struct sim_verdict unsaid(void *arg, const struct sim_packet_info *info)
{
	struct unsaid *u = arg;

	if (!info->is_ctrl || info->from != 0 || !u->left || !holds_write(info))
		return (struct sim_verdict){.action = SIM_PASS};
	u->left--;
	u->lost++;
	return (struct sim_verdict){.action = SIM_DROP};
}

/* arg: percent lost, and how many datagrams with a WRITE besides, from the first on; 0: all */
void write_unsaid(struct lab *l)
{
	struct unsaid u = {.left = l->arg[1] > 0 ? (uint32_t)l->arg[1] : UINT32_MAX};

	provisioned(l, "ec:32,8");
	lossy(l, l->arg[0] / 100);
	lab_open(l);
	sim_filter_set(l->world, unsaid, &u);
	lab_connect(l, l->p.conn);
	lab_flow(l, 0, WRITES, SIZE, WRITES);
	lab_finish(l, 120 * SEC);
	sim_filter_set(l->world, NULL, NULL);
	assert_int_equal(lab_info(l, 0).writes_coded, WRITES);
	assert_true(u.lost > 0);
	if (l->arg[1] > 0)
		assert_true(lab_info(l, 1).rx_decoded_pkts > 0);
	else
		assert_int_equal(lab_info(l, 1).rx_decoded_pkts, 0);
	snprintf(l->note, sizeof(l->note), "%u lost, %llu decoded", u.lost,
		 (unsigned long long)lab_info(l, 1).rx_decoded_pkts);
	l->ideal_ns = lab_ideal_ns(l, 0, WRITES * (uint64_t)SIZE, l->arg[0] / 100, 1);
	lab_close(l);
}

/* ---- ends that cannot ---- */

/* The receiver takes no codes. arg: percent lost */
void code_not_offered(struct lab *l)
{
	struct sdr_conn_info info;

	provisioned(l, "hybrid:k=128,m=8");
	lossy(l, l->arg[0] / 100);
	l->no_decode[1] = true;
	lab_begin(l, WRITES, SIZE, WRITES);
	lab_finish(l, 120 * SEC);
	info = lab_info(l, 0);
	assert_int_equal(info.paired, 0);
	assert_int_equal(info.writes_coded, 0);
	assert_int_equal(info.tx_parity_pkts, 0);
	assert_string_equal(info.scheme, "sr-nack");
	l->ideal_ns = lab_ideal_ns(l, 0, WRITES * (uint64_t)SIZE, l->arg[0] / 100, 1);
	lab_close(l);
}

/* Memory for the parity of few writes. arg: percent lost; 0: at the sender, 1: receiver, 2: both */
void no_parity_room(struct lab *l)
{
	struct sdr_conn_info info;

	provisioned(l, "ec:32,8");
	lossy(l, l->arg[0] / 100);
	for (int end = 0; end < 2; end++)
		l->parity_bytes[end] = (int)l->arg[1] == 1 - end ? 0 : MIB;
	lab_begin(l, 16, SIZE, 16);
	lab_finish(l, 120 * SEC);
	info = lab_info(l, 0);
	assert_true(info.writes_no_room > 0 && info.writes_coded > 0);
	assert_int_equal(info.writes_no_room + info.writes_coded, 16);
	assert_int_equal(info.parity_bytes, 0);
	assert_int_equal(lab_info(l, 1).parity_bytes, 0);
	snprintf(l->note, sizeof(l->note), "%llu of 16 without parity",
		 (unsigned long long)info.writes_no_room);
	l->ideal_ns = lab_ideal_ns(l, 0, 16 * (uint64_t)SIZE, l->arg[0] / 100, 1);
	lab_close(l);
}

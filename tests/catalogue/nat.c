/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios behind a NAT: the end that connects gets another port amid a transfer, or many, or
 * while it says nothing.
 */
#include "catalogue.h"

#include <stdio.h>

static struct sdr_sim_nat_info nat(const struct lab *l)
{
	struct sdr_sim_nat_info info = {.size = sizeof(info)};

	assert_int_equal(sdr_sim_nat_query(l->p.sim, l->p.host[0], &info), 0);
	return info;
}

static void behind_nat(struct lab *l, uint64_t timeout_ns, uint64_t every_ns)
{
	lab_open(l);
	assert_int_equal(sdr_sim_nat_set(l->p.sim, l->p.host[0], timeout_ns, every_ns), 0);
	lab_connect(l, l->p.conn);
}

/* Both ways at once: the listener's data must find the new port too. */
static void two_ways(struct lab *l, uint32_t mbytes)
{
	lab_flow(l, 0, mbytes * 2, 512 * KIB, 8);
	lab_flow(l, 1, mbytes * 2, 512 * KIB, 8);
	lab_finish(l, 120 * SEC);
	l->ideal_ns = lab_ideal_ns(l, 1, mbytes * MIB, 0, 1);
}

static void rebinds_note(struct lab *l)
{
	snprintf(l->note, sizeof(l->note), "%llu rebindings, %llu changes of path seen",
		 (unsigned long long)nat(l).rebinds,
		 (unsigned long long)lab_counter(l, 1, SDR_CTR_path_changes));
}

/*
 * quic-interop-runner's rebind-port: 15 ms, 10 Mbit/s, another port after 1 s and then every
 * 5 s. arg: MiB, s between
 */
void rebind_port(struct lab *l)
{
	uint64_t every = (uint64_t)(l->arg[1] * 1e9);

	lab_line(l, 10 * MBIT, 30 * MS);
	l->attr.rate_bps = 9 * MBIT;
	behind_nat(l, 0, every);
	two_ways(l, (uint32_t)l->arg[0]);
	assert_true(nat(l).rebinds >= (uint64_t)(l->ideal_ns) / every - 1);
	rebinds_note(l);
	lab_close(l);
}

/* Once amid a transfer. arg: percent lost each way, round trip in ms */
void nat_once(struct lab *l)
{
	lab_line(l, 100 * MBIT, (uint64_t)(l->arg[1] * 1e6));
	l->attr.rate_bps = 90 * MBIT;
	for (int dir = 0; dir < 2; dir++)
		l->link[dir].loss = link_ge_iid(l->arg[0] / 100);
	behind_nat(l, 0, 0);
	lab_flow(l, 0, 32, 512 * KIB, 32);
	lab_flow(l, 1, 32, 512 * KIB, 32);
	lab_run(l, u64_max(500 * MS, 3 * (uint64_t)lab_rtt_ns(l)));
	assert_int_equal(sdr_sim_nat_rebind(l->p.sim, l->p.host[0]), 0);
	lab_finish(l, 120 * SEC);
	assert_true(lab_counter(l, 1, SDR_CTR_path_changes) >= 1);
	/* What the listener sends goes astray until it has heard from the new port. */
	l->ideal_ns = lab_ideal_ns(l, 1, 16 * MIB, l->arg[0] / 100, 1) + lab_rtt_ns(l);
	rebinds_note(l);
	lab_close(l);
}

/* Nothing is said for arg[0] s, the NAT forgets after arg[1] s, then the active end writes. */
void nat_idle(struct lab *l)
{
	lab_line(l, 100 * MBIT, 40 * MS);
	l->attr.rate_bps = 90 * MBIT;
	behind_nat(l, (uint64_t)(l->arg[1] * 1e9), 0);
	lab_flow(l, 0, 1, KIB, 1);
	lab_finish(l, SEC);
	lab_run(l, lab_now(l) + (uint64_t)(l->arg[0] * 1e9));
	l->start_ns = lab_now(l);
	lab_flow(l, 0, 8, 512 * KIB, 8);
	lab_finish(l, 60 * SEC);
	/* There are grants for none of them: a question and an answer come first. */
	l->ideal_ns = lab_ideal_ns(l, 0, 4 * MIB, 0, 1);
	lab_close(l);
}

/* The port changes with each of the first PINGs. arg: ms between changes, how long in ms */
void nat_handshake(struct lab *l)
{
	uint64_t until = (uint64_t)(l->arg[1] * 1e6);

	lab_line(l, 100 * MBIT, 40 * MS);
	l->attr.rate_bps = 90 * MBIT;
	behind_nat(l, 0, 0);
	lab_flow(l, 0, 8, 512 * KIB, 8);
	while (lab_now(l) < until) {
		lab_run(l, lab_now(l) + (uint64_t)(l->arg[0] * 1e6));
		assert_int_equal(sdr_sim_nat_rebind(l->p.sim, l->p.host[0]), 0);
	}
	lab_finish(l, 60 * SEC);
	l->ideal_ns = lab_ideal_ns(l, 0, 4 * MIB, 0, 1) + l->arg[1] * 1e6;
	rebinds_note(l);
	lab_close(l);
}

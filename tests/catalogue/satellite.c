/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios of long round trips: satellites as picoquic has them, quic-interop-runner's long
 * RTT, and delays of minutes.
 */
#include "catalogue.h"

#include <stdio.h>

/* arg: round trip ms, MiB; 10 Mbit/s and a queue of 25 packets; the rate is found */
void long_rtt(struct lab *l)
{
	lab_line(l, 10 * MBIT, (uint64_t)(l->arg[0] * 1e6));
	for (int dir = 0; dir < 2; dir++)
		l->link[dir].queue_bytes = 25 * LAB_IP_BYTES;
	l->tell_rtt = true;
	lab_begin(l, (uint32_t)l->arg[1] * 2, 512 * KIB, 16);
	lab_finish(l, 300 * SEC);
	l->ideal_ns = lab_ideal_ns(l, 0, (uint64_t)l->arg[1] * MIB, 0, 1);
	lab_close(l);
}

/* 250 Mbit/s down, 3 up, 300 ms each way. */
static void satellite_line(struct lab *l, int down)
{
	lab_line(l, 250 * MBIT, 600 * MS);
	l->link[1 - down].rate_bps = 3 * MBIT;
	l->link[1 - down].queue_bytes = 225000;
	l->tell_rtt = true;
}

/* arg: percent lost down, MiB */
void satellite(struct lab *l)
{
	satellite_line(l, 0);
	l->link[0].loss = link_ge_iid(l->arg[0] / 100);
	l->heap_bound = 128 * MIB; /* of packets on the line */
	lab_begin(l, (uint32_t)(l->arg[1] / 4), 4 * MIB, 16);
	lab_finish(l, 300 * SEC);
	l->ideal_ns = lab_ideal_ns(l, 0, (uint64_t)(l->arg[1] / 4) * 4 * MIB, l->arg[0] / 100, 1);
	lab_close(l);
}

/* arg: KiB, over the 3 Mbit/s */
void satellite_up(struct lab *l)
{
	satellite_line(l, 1);
	lab_begin(l, 4, (uint64_t)l->arg[0] * KIB / 4, 4);
	lab_finish(l, 300 * SEC);
	l->ideal_ns = lab_ideal_ns(l, 0, (uint64_t)l->arg[0] * KIB, 0, 1);
	lab_close(l);
}

/* arg: jitter ms, MiB */
void satellite_jitter(struct lab *l)
{
	satellite_line(l, 0);
	l->heap_bound = 128 * MIB;
	for (int dir = 0; dir < 2; dir++)
		l->link[dir].jitter_ns = (uint64_t)(l->arg[0] * 1e6);
	lab_begin(l, (uint32_t)(l->arg[1] / 4), 4 * MIB, 16);
	lab_finish(l, 300 * SEC);
	l->ideal_ns = lab_ideal_ns(l, 0, (uint64_t)(l->arg[1] / 4) * 4 * MIB, 0, 1);
	lab_close(l);
}

/* Patience for a round trip of minutes: the application's to have. */
static void space(struct lab *l, double seconds)
{
	uint64_t rtt = (uint64_t)(2 * seconds * 1e9);

	lab_line(l, 10 * MBIT, rtt);
	l->attr.rate_bps = 9 * MBIT;
	l->attr.connect_timeout_ns = 8 * rtt;
	l->attr.dead_after_ns = 8 * rtt;
	l->heap_bound = 4000 * MIB;
}

/* arg: one way in s, KiB */
void deep_space(struct lab *l)
{
	space(l, l->arg[0]);
	lab_begin(l, 4, (uint64_t)l->arg[1] * KIB / 4, 4);
	lab_finish(l, 100 * (uint64_t)lab_rtt_ns(l));
	l->ideal_ns = lab_ideal_ns(l, 0, (uint64_t)l->arg[1] * KIB, 0, 1);
	snprintf(l->note, sizeof(l->note), "%llu control datagrams",
		 (unsigned long long)(lab_counter(l, 0, SDR_CTR_tx_ctrl) +
				      lab_counter(l, 1, SDR_CTR_tx_ctrl)));
	lab_close(l);
}

/* arg: one way in s, how many writes, each after the other's end */
void deep_space_chain(struct lab *l)
{
	space(l, l->arg[0]);
	lab_begin(l, (uint32_t)l->arg[1], 257, 1);
	lab_finish(l, 100 * (uint64_t)lab_rtt_ns(l));
	l->ideal_ns = (1 + l->arg[1]) * lab_rtt_ns(l);
	lab_close(l);
}

/* picoquic's high_latency: 10 Mbit/s and seconds each way. arg: one way in s, MiB */
void high_latency(struct lab *l)
{
	lab_line(l, 10 * MBIT, (uint64_t)(2e9 * l->arg[0]));
	l->tell_rtt = true;
	lab_begin(l, (uint32_t)l->arg[1] * 2, 512 * KIB, 32);
	lab_finish(l, 600 * SEC);
	l->ideal_ns = lab_ideal_ns(l, 0, (uint64_t)l->arg[1] * MIB, 0, 1);
	lab_close(l);
}

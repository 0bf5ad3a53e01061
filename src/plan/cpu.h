/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a scheme's code costs a processor, from measured rates. Only the code: what sending
 * and receiving a packet costs depends on the device and is not predicted.
 *
 * Making m units of parity from data in memory takes a core
 *
 *	MDS	bytes * (1 / PLAN_READ_BYTES_PER_S + m / PLAN_MULTIPLY_BYTES_PER_S)
 *	XOR	bytes / PLAN_XOR_BYTES_PER_S
 *
 * and making good e lost units of a block the same with e for m (XOR: reading its group
 * again). Rates in bytes a second, by bench/code/code_rate (ISA-L 2.30, AVX-512; units of
 * 4 KiB, cold) on one core of a virtual machine (AMD EPYC, family 26): MULTIPLY is the column
 * "warm x m" of the longer codes, READ what the cold ones take on top of it. From k = 32 on
 * the sum is within 7 % of what is measured; below, up to 1.8 times as much: the rest of the
 * memory system reads few streams faster.
 */
#ifndef SDR_PLAN_CPU_H
#define SDR_PLAN_CPU_H

#include "plan/plan.h"

#define PLAN_READ_BYTES_PER_S 11e9
#define PLAN_MULTIPLY_BYTES_PER_S 100e9
#define PLAN_XOR_BYTES_PER_S 22e9

struct plan_cpu {
	double send_s;	  /* one core's seconds for the message's parity; 0: no code */
	double receive_s; /* and in the mean for what it makes good, without inverting matrices */
	double cores;	  /* busy at the sender while it codes and sends at the link's rate */
};

/* Bytes a second of (32,8) that a core encodes; `code_rate` replaces it, others in proportion. */
double plan_code_rate(void);
/* code_rate 0: as measured. `unit_loss` is plan_result's. */
void plan_cpu(const struct plan_link *link, const struct plan_job *job,
	      const struct plan_params *params, double unit_loss, double code_rate,
	      struct plan_cpu *out);

#endif

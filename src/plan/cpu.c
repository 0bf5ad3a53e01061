// SPDX-License-Identifier: Apache-2.0
/*
 * See cpu.h.
 */
#include "plan/cpu.h"

#include "base/bits.h"
#include "plan/units.h"

#include <math.h>

/* Of a byte of data, to make `count` units of parity, or lost ones, of its block. */
static double mds_s(double count)
{
	return 1 / PLAN_READ_BYTES_PER_S + count / PLAN_MULTIPLY_BYTES_PER_S;
}

double plan_code_rate(void)
{
	return 1 / mds_s(8);
}

/* P(at least one of so many is lost): losses by themselves, which bursts only make fewer. */
static double any_lost(double loss, double units)
{
	return -expm1(units * log1p(-loss));
}

static double send_s(const struct plan_params *p)
{
	if (p->m == 0)
		return 0;
	return p->scheme == PLAN_EC_XOR ? 1 / PLAN_XOR_BYTES_PER_S : mds_s(p->m);
}

/* A block that lacks nothing is not read again. */
static double receive_s(const struct plan_params *p, double loss)
{
	if (p->m == 0)
		return 0;
	if (p->scheme == PLAN_EC_XOR)
		return any_lost(loss, (double)p->k / p->m) / PLAN_XOR_BYTES_PER_S;
	return any_lost(loss, p->k) / PLAN_READ_BYTES_PER_S +
	       p->k * loss / PLAN_MULTIPLY_BYTES_PER_S;
}

void plan_cpu(const struct plan_link *link, const struct plan_job *job,
	      const struct plan_params *params, double unit_loss, double code_rate,
	      struct plan_cpu *out)
{
	double coded = (double)job->bytes, scale = code_rate > 0 ? plan_code_rate() / code_rate : 1;

	*out = (struct plan_cpu){0};
	if (!units_coded(params->scheme) && params->scheme != PLAN_HYBRID)
		return;
	if (params->scheme == PLAN_HYBRID)
		coded = fmin(coded, (double)params->span * job->chunk_bytes);
	out->send_s = coded * send_s(params) * scale;
	out->receive_s = coded * receive_s(params, unit_loss) * scale;
	out->cores = link->bw_bps / 8 * send_s(params) * scale;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * What of a link, a job and a scheme is out of range. See plan_check().
 */
#include "plan/plan.h"

#include <errno.h>
#include <math.h>

static int outside(struct plan_fault *f, const char *what, double value, double min, double max,
		   const char *why)
{
	if (value >= min && value <= max)
		return 0; /* a NaN is outside */
	*f = (struct plan_fault){what, value, min, max, why};
	return -EINVAL;
}

static int check_link(const struct plan_link *l, struct plan_fault *f)
{
	double below_one = nextafter(1, 0);

	if (outside(f, "bandwidth", l->bw_bps, PLAN_BW_MIN_BPS, PLAN_BW_MAX_BPS, NULL) ||
	    outside(f, "rtt", l->rtt_s, PLAN_RTT_MIN_S, PLAN_RTT_MAX_S, NULL) ||
	    outside(f, "loss", l->loss, 0, below_one, "a link that loses all delivers nothing") ||
	    outside(f, "burst", l->burst_pkts, 0, PLAN_BURST_MAX, NULL))
		return -EINVAL;
	if (l->burst_pkts <= 1)
		return 0;
	return outside(f, "burst", l->burst_pkts, l->loss / (1 - l->loss), PLAN_BURST_MAX,
		       "so much loss cannot come in shorter bursts");
}

static int check_job(const struct plan_link *l, const struct plan_job *j, struct plan_fault *f)
{
	uint32_t packets;

	if (outside(f, "packet size", j->packet_bytes, 1, 1 << 24, NULL) ||
	    outside(f, "chunk size", j->chunk_bytes, j->packet_bytes,
		    (double)j->packet_bytes * PLAN_CHUNK_PKTS_MAX, NULL))
		return -EINVAL;
	packets = j->chunk_bytes / j->packet_bytes;
	if (j->chunk_bytes % j->packet_bytes != 0 || (packets & (packets - 1)) != 0) {
		*f = (struct plan_fault){"chunk size", j->chunk_bytes, j->packet_bytes,
					 (double)j->packet_bytes * PLAN_CHUNK_PKTS_MAX,
					 "a chunk is a power of two of packets"};
		return -EINVAL;
	}
	if (outside(f, "size", (double)j->bytes, 1, (double)PLAN_UNITS_MAX * j->chunk_bytes,
		    "2^32 chunks"))
		return -EINVAL;
	if (outside(f, "rtt", l->rtt_s, PLAN_RTT_MIN_S,
		    PLAN_RTT_UNITS_MAX * 8.0 * j->chunk_bytes / l->bw_bps,
		    "so many seconds hold 2^24 chunks; larger chunks or packets allow more"))
		return -EINVAL;
	return outside(f, "chunk loss", plan_chunk_loss(l->loss, l->burst_pkts, packets), 0,
		       PLAN_UNIT_LOSS_MAX, "use a smaller chunk");
}

static int check_code(const struct plan_params *p, struct plan_fault *f)
{
	if (outside(f, "k", p->k, 1, PLAN_CODE_MAX, NULL))
		return -EINVAL;
	if (p->scheme == PLAN_EC_XOR)
		return outside(f, "m", p->m, 1, p->k, "each parity covers at least one unit");
	return outside(f, "m", p->m, 0, PLAN_CODE_MAX - p->k, "k + m is at most 256");
}

int plan_check(const struct plan_link *link, const struct plan_job *job,
	       const struct plan_params *params, struct plan_fault *fault)
{
	*fault = (struct plan_fault){0};
	if (check_link(link, fault) || check_job(link, job, fault))
		return -EINVAL;
	if (!params)
		return 0;
	if (outside(fault, "scheme", params->scheme, 0, PLAN_SCHEMES - 1, NULL))
		return -EINVAL;
	if (params->scheme != PLAN_HYBRID &&
	    outside(fault, "rto", params->rto_rtts, 0.01, 1000, "in round trips"))
		return -EINVAL;
	if (params->scheme == PLAN_SR || params->scheme == PLAN_SR_NACK ||
	    params->scheme == PLAN_GBN)
		return 0;
	if (check_code(params, fault) ||
	    outside(fault, "beta", params->beta_rtts, 0, 1000, "in round trips") ||
	    outside(fault, "depth", params->depth, 0, 1 << 20, NULL))
		return -EINVAL;
	if (params->scheme != PLAN_HYBRID)
		return 0;
	if (outside(fault, "copies", params->copies, 1, 64, NULL) ||
	    outside(fault, "lambda", params->lambda, 0, 1e6, NULL))
		return -EINVAL;
	return outside(fault, "span", (double)params->span, 1, (double)PLAN_UNITS_MAX, NULL);
}

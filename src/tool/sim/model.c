// SPDX-License-Identifier: Apache-2.0
/*
 * A run by the model: one draw of plan/'s simulation, resends and parity sharing the link with
 * first sends, or as the paper reads it where the scheme is the paper's. The draw's state is kept
 * while the point stays the same; each run has its own seed.
 */
#include "tool/sim/run.h"

#include "plan/sim.h"
#include "plan/units.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct model {
	char point[POINT_TEXT]; /* that is ready; "": none */
	struct units units;
	struct plan_params params;
	struct rng rng;
	struct sim sim;
};

struct model *model_create(void)
{
	return calloc(1, sizeof(struct model));
}

static void forget(struct model *m)
{
	if (m->point[0])
		sim_fini(&m->sim);
	m->point[0] = '\0';
}

void model_destroy(struct model *m)
{
	if (m)
		forget(m);
	free(m);
}

static int prepare(struct model *m, const struct sweep *s, const struct sim_point *p)
{
	struct plan_link link = {(double)p->bw_bps, (double)p->rtt_ns / 1e9, p->loss,
				 p->burst_pkts};
	struct plan_job job = {p->bytes, (uint32_t)s->packet_bytes, (uint32_t)sweep_chunk_bytes(s)};
	char text[POINT_TEXT];
	int err;

	point_text(s, p, text);
	if (strcmp(text, m->point) == 0)
		return 0;
	forget(m);
	units_init(&m->units, &link, &job);
	scheme_params(p->scheme, &link, &job, &m->params);
	err = sim_init(&m->sim, &m->units, &m->params, &m->rng, &sdr_alloc_system);
	strcpy(m->point, text); /* after either, sim_fini is right */
	if (err)
		forget(m);
	return err;
}

void model_run(struct model *m, const struct sweep *s, const struct sim_point *p, uint64_t seed,
	       struct run_result *out)
{
	enum plan_reading reading = p->scheme->paper ? PLAN_PAPER : PLAN_SERIALISED;
	double slots = 0;
	int err = prepare(m, s, p);

	if (!err) {
		rng_init(&m->rng, seed);
		m->sim.sent = 0;
		err = sim_draw(&m->sim, reading, &slots);
	}
	out->done = 1;
	out->err = err;
	if (err)
		return;
	/* Where one link carries all, the model counts the last round trip in whole slots. */
	if (reading == PLAN_SERIALISED)
		slots += m->units.rtt - (double)m->units.rtt_slots;
	out->time_ns = (uint64_t)llround(slots * m->units.t_s * 1e9);
	out->sent_bytes = (uint64_t)llround(m->sim.sent * (double)sweep_chunk_bytes(s));
	if (p->bytes % sweep_chunk_bytes(s)) /* the model sends whole chunks */
		out->sent_bytes -= sweep_chunk_bytes(s) - p->bytes % sweep_chunk_bytes(s);
}

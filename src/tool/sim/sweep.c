// SPDX-License-Identifier: Apache-2.0
/*
 * A sweep's points, their names and seeds, and what must be true of them. See sweep.h.
 */
#include "tool/sim/sweep.h"

#include "base/units.h"
#include "tool/sim/engine.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LONGEST_S 1e8

uint64_t sweep_points(const struct sweep *s)
{
	uint64_t n = s->schemes;

	for (int a = 0; a < AXES; a++)
		n *= s->axis[a].n;
	return n;
}

static double take_digit(const struct axis *a, uint64_t *i)
{
	double v = a->v[*i % a->n];

	*i /= a->n;
	return v;
}

void sweep_point(const struct sweep *s, uint64_t i, struct sim_point *out)
{
	out->scheme = &s->scheme[i % s->schemes];
	i /= s->schemes;
	out->bytes = (uint64_t)take_digit(&s->axis[AXIS_SIZE], &i);
	out->burst_pkts = take_digit(&s->axis[AXIS_BURST], &i);
	out->loss = take_digit(&s->axis[AXIS_LOSS], &i);
	out->bw_bps = (uint64_t)take_digit(&s->axis[AXIS_BW], &i);
	out->rtt_ns = (uint64_t)take_digit(&s->axis[AXIS_RTT], &i);
	out->ack_loss = s->ack_loss < 0 ? out->loss : s->ack_loss;
}

uint64_t sweep_chunk_bytes(const struct sweep *s)
{
	return s->chunk_bytes ? s->chunk_bytes : s->packet_bytes;
}

uint64_t sweep_limit_ns(const struct sweep *s, const struct sim_point *p)
{
	return s->limit_ns ? s->limit_ns : 60 * NS_PER_S + (uint64_t)(100e9 * point_limit_s(p));
}

bool sweep_uses_engine(const struct sweep *s, const struct sim_scheme *scheme)
{
	return s->engine == ENGINE_REAL || (s->engine == ENGINE_AUTO && scheme->in_engine);
}

double point_lossless_s(const struct sim_point *p)
{
	return 8.0 * (double)p->bytes / (double)p->bw_bps + (double)p->rtt_ns * 1e-9;
}

double point_limit_s(const struct sim_point *p)
{
	return 8.0 * (double)p->bytes / (double)p->bw_bps / (1 - p->loss) +
	       (double)p->rtt_ns * 1e-9;
}

char *point_text(const struct sweep *s, const struct sim_point *p, char *buf)
{
	char coalesce[40] = "";

	/* What is the rule, told of the path and no interrupt held back, says nothing: names of
	 * points stay. */
	if (s->coalesce_ns)
		snprintf(coalesce, sizeof(coalesce), " coalesce=%" PRIu64 "ns", s->coalesce_ns);
	snprintf(buf, POINT_TEXT,
		 "rtt=%" PRIu64 "ns bw=%" PRIu64
		 "bit loss=%.12g burst=%.12g ack-loss=%.12g jitter=%" PRIu64 "ns queue=%" PRIu64
		 " size=%" PRIu64 " packet=%" PRIu64 " chunk=%" PRIu64
		 " cold=%d device=%s engine=%s scheme=%s%s%s",
		 p->rtt_ns, p->bw_bps, p->loss, p->burst_pkts, p->ack_loss, s->jitter_ns,
		 s->queue_bytes, p->bytes, s->packet_bytes, sweep_chunk_bytes(s), s->cold != 0,
		 s->device, sweep_uses_engine(s, p->scheme) ? "real" : "model", p->scheme->name,
		 s->learn ? " learn=1" : "", coalesce);
	return buf;
}

/* The finaliser of splitmix64 (Steele, Lea, Flood 2014): every bit of x moves half of all. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

uint64_t point_seed(const struct sweep *s, const struct sim_point *p, uint64_t run)
{
	char text[POINT_TEXT];
	uint64_t h = mix(s->seed + UINT64_C(0x9e3779b97f4a7c15));

	point_text(s, p, text);
	for (const char *c = text; *c; c++)
		h = mix(h ^ (unsigned char)*c) + UINT64_C(0x9e3779b97f4a7c15);
	return mix(h + mix(run + 1));
}

/* ---- checks --------------------------------------------------------------------- */

static int check_given(const struct sweep *s, char *why)
{
	static const char *const needs[AXES] = {"needs --rtt or --km", "needs --bw",
						"needs --loss ('sdr ping' measures it)",
						"needs --burst", "needs --size"};

	for (int a = 0; a < AXES; a++) {
		if (s->axis[a].n)
			continue;
		snprintf(why, SWEEP_WHY, "%s", needs[a]);
		return -1;
	}
	if (sweep_points(s) > SWEEP_POINTS_MAX) {
		snprintf(why, SWEEP_WHY,
			 "the sweep has %" PRIu64 " points: at most %u: cut it in parts",
			 sweep_points(s), SWEEP_POINTS_MAX);
		return -1;
	}
	if (sweep_points(s) * s->runs > SWEEP_TASKS_MAX) {
		snprintf(why, SWEEP_WHY,
			 "--runs %" PRIu64 ": %" PRIu64 " points make more than %" PRIu64
			 " runs: lower it, or cut the sweep in parts",
			 s->runs, sweep_points(s), SWEEP_TASKS_MAX);
		return -1;
	}
	return 0;
}

static int check_scheme(const struct sweep *s, const struct sim_scheme *scheme, char *why)
{
	if (s->engine == ENGINE_REAL && !scheme->in_engine) {
		snprintf(why, SWEEP_WHY,
			 "--scheme %s: the paper's, which is a model only: leave --engine real "
			 "away, or take %s",
			 scheme->name, scheme->params.scheme == PLAN_EC ? "ec:K,M" : "ec-xor:K,M");
		return -1;
	}
	if (s->engine == ENGINE_MODEL && !scheme->in_model) {
		snprintf(why, SWEEP_WHY,
			 "--scheme %s: the model does not know it: take --engine real",
			 scheme->name);
		return -1;
	}
	if (s->cold && !sweep_uses_engine(s, scheme)) {
		snprintf(
			why, SWEEP_WHY,
			"--cold: the model that %s is drawn from knows no cold start: leave one of "
			"them out",
			scheme->name);
		return -1;
	}
	return 0;
}

#define NUMBER 40
/* Counts and sizes in full, shares with four digits; returns buf. */
static char *number(char buf[NUMBER], double v)
{
	snprintf(buf, NUMBER, v >= 1 && v == floor(v) && v < 1e18 ? "%.0f" : "%.4g", v);
	return buf;
}

static void say_fault(const struct plan_fault *f, const struct sim_point *p, char *why)
{
	static const struct {
		const char *what, *key;
	} keys[] = {
		{"bandwidth", "bw"},	 {"rtt", "rtt"},	  {"packet size", "packet"},
		{"chunk size", "chunk"}, {"chunk loss", "chunk"}, {"size", "size"},
		{"loss", "loss"},	 {"burst", "burst"},
	};
	const char *key = "scheme", *name = p->scheme->name;
	char value[NUMBER], min[NUMBER], max[NUMBER];

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcmp(f->what, keys[i].what) == 0) {
			key = keys[i].key;
			name = "";
		}
	}
	snprintf(why, SWEEP_WHY, "--%s%s%s: %s of %s is out of range: choose from %s to %s%s%s",
		 key, *name ? " " : "", name, f->what, number(value, f->value), number(min, f->min),
		 number(max, f->max), f->why ? ": " : "", f->why ? f->why : "");
}

/* What the model finds wrong; of the engine's schemes only the link and the job count. */
static int check_plan(const struct sweep *s, const struct sim_point *p, char *why)
{
	struct plan_link link = {(double)p->bw_bps, (double)p->rtt_ns / 1e9, p->loss,
				 p->burst_pkts};
	struct plan_job job = {p->bytes, (uint32_t)s->packet_bytes, (uint32_t)sweep_chunk_bytes(s)};
	struct plan_params params;
	struct plan_fault fault;

	if (plan_check(&link, &job, NULL, &fault)) {
		say_fault(&fault, p, why);
		return -1;
	}
	if (!p->scheme->in_model || sweep_uses_engine(s, p->scheme))
		return 0;
	scheme_params(p->scheme, &link, &job, &params);
	if (plan_check(&link, &job, &params, &fault)) {
		say_fault(&fault, p, why);
		return -1;
	}
	return 0;
}

static int check_ack_loss(const struct sweep *s, const struct sim_point *p, char *why)
{
	double most = p->burst_pkts / (1 + p->burst_pkts);

	if (s->ack_loss < 0 || p->burst_pkts <= 1 || p->ack_loss <= most)
		return 0;
	snprintf(why, SWEEP_WHY,
		 "--ack-loss %g: bursts of %g packets lose at most %.4g: choose a longer --burst",
		 p->ack_loss, p->burst_pkts, most);
	return -1;
}

/* Virtual time is counted in 64 bits of ns, and a run may take a hundred times the best. */
static int check_length(const struct sim_point *p, char *why)
{
	double best_s = point_limit_s(p);

	if (best_s <= LONGEST_S)
		return 0;
	snprintf(why, SWEEP_WHY,
		 "--size %" PRIu64 ": takes %.3g s at best: at most %g s: less, or more --bw",
		 p->bytes, best_s, LONGEST_S);
	return -1;
}

int sweep_check(const struct sweep *s, char *why)
{
	struct sim_point p;

	if (check_given(s, why))
		return -1;
	for (uint32_t i = 0; i < s->schemes; i++) {
		if (check_scheme(s, &s->scheme[i], why))
			return -1;
	}
	for (uint64_t i = 0; i < sweep_points(s); i++) {
		sweep_point(s, i, &p);
		if (check_plan(s, &p, why) || check_ack_loss(s, &p, why) || check_length(&p, why))
			return -1;
		if (sweep_uses_engine(s, p.scheme) && engine_limits(s, &p, why))
			return -1;
	}
	return 0;
}

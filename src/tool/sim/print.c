// SPDX-License-Identifier: Apache-2.0
/*
 * Results for programs: an object of JSON, a line of CSV. See result.h.
 */
#include "tool/sim/result.h"

#include "tool/json.h"
#include "tool/say.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static void json_bound(struct json *j, const struct bound *b, const char *v, const char *lo,
		       const char *hi)
{
	json_real(j, v, b->v * 1e-9);
	json_real(j, lo, b->lo * 1e-9);
	json_real(j, hi, b->hi * 1e-9);
}

void result_json(struct json *j, const struct sweep *s, const struct result *r)
{
	const struct sim_point *p = &r->point;

	json_object_begin(j, NULL);
	json_text(j, "scheme", p->scheme->name);
	json_uint(j, "bytes", p->bytes);
	json_bound(j, &r->mean, "mean_s", "mean_lo_s", "mean_hi_s");
	json_bound(j, &r->p50, "p50_s", "p50_lo_s", "p50_hi_s");
	json_bound(j, &r->p99, "p99_s", "p99_lo_s", "p99_hi_s");
	json_bound(j, &r->p999, "p999_s", "p999_lo_s", "p999_hi_s");
	json_real(j, "lossless_s", point_lossless_s(p));
	json_real(j, "limit_s", point_limit_s(p));
	json_real(j, "overhead", r->overhead);
	json_uint(j, "runs", r->runs);
	json_uint(j, "unfinished", r->unfinished);
	json_text(j, "engine", r->engine ? "engine" : "model");
	json_real(j, "model_mean_s", r->predicted ? r->model.mean_s : NAN);
	json_real(j, "model_p99_s", r->predicted ? r->model.p99_s : NAN);
	json_real(j, "model_p999_s", r->predicted ? r->model.p999_s : NAN);
	json_real(j, "rtt_s", (double)p->rtt_ns * 1e-9);
	json_real(j, "bw_bps", (double)p->bw_bps);
	json_real(j, "loss", p->loss);
	json_real(j, "burst_pkts", p->burst_pkts);
	json_real(j, "ack_loss", p->ack_loss);
	json_real(j, "jitter_s", (double)s->jitter_ns * 1e-9);
	json_uint(j, "queue_bytes", s->queue_bytes);
	json_uint(j, "packet_bytes", s->packet_bytes);
	json_uint(j, "chunk_bytes", sweep_chunk_bytes(s));
	json_bool(j, "cold", s->cold != 0);
	json_text(j, "device", s->device);
	json_uint(j, "seed", s->seed);
	json_bool(j, "learn", s->learn != 0);
	json_real(j, "coalesce_s", (double)s->coalesce_ns * 1e-9);
	json_object_end(j);
}

static void csv_text(const char *text)
{
	putchar('"'); /* no name has a quote in it */
	fputs(text, stdout);
	putchar('"');
}

/* Nothing between commas: not known. */
static void csv_real(double v)
{
	putchar(',');
	if (isfinite(v))
		printf("%.9g", v);
}

static void csv_uint(uint64_t v)
{
	printf(",%" PRIu64, v);
}

static void csv_bound(const struct bound *b)
{
	csv_real(b->v * 1e-9);
	csv_real(b->lo * 1e-9);
	csv_real(b->hi * 1e-9);
}

void result_csv_header(void)
{
	out("scheme,bytes,mean_s,mean_lo_s,mean_hi_s,p50_s,p50_lo_s,p50_hi_s,p99_s,p99_lo_s,"
	    "p99_hi_s,p999_s,p999_lo_s,p999_hi_s,lossless_s,limit_s,overhead,runs,unfinished,"
	    "engine,model_mean_s,model_p99_s,model_p999_s,rtt_s,bw_bps,loss,burst_pkts,ack_loss,"
	    "jitter_s,queue_bytes,packet_bytes,chunk_bytes,cold,device,seed,learn,"
	    "coalesce_s");
}

void result_csv(const struct sweep *s, const struct result *r)
{
	const struct sim_point *p = &r->point;

	csv_text(p->scheme->name);
	csv_uint(p->bytes);
	csv_bound(&r->mean);
	csv_bound(&r->p50);
	csv_bound(&r->p99);
	csv_bound(&r->p999);
	csv_real(point_lossless_s(p));
	csv_real(point_limit_s(p));
	csv_real(r->overhead);
	csv_uint(r->runs);
	csv_uint(r->unfinished);
	printf(",%s", r->engine ? "engine" : "model");
	csv_real(r->predicted ? r->model.mean_s : NAN);
	csv_real(r->predicted ? r->model.p99_s : NAN);
	csv_real(r->predicted ? r->model.p999_s : NAN);
	csv_real((double)p->rtt_ns * 1e-9);
	csv_real((double)p->bw_bps);
	csv_real(p->loss);
	csv_real(p->burst_pkts);
	csv_real(p->ack_loss);
	csv_real((double)s->jitter_ns * 1e-9);
	csv_uint(s->queue_bytes);
	csv_uint(s->packet_bytes);
	csv_uint(sweep_chunk_bytes(s));
	csv_uint(s->cold != 0);
	printf(",%s", s->device);
	csv_uint(s->seed);
	csv_uint(s->learn != 0);
	csv_real((double)s->coalesce_ns * 1e-9);
	putchar('\n');
}

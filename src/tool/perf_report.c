// SPDX-License-Identifier: Apache-2.0
/*
 * What sdr perf prints: the columns of ib_write_bw and ib_write_lat with ours behind
 * them, and JSON. See perf.h.
 */
#include "tool/perf.h"

#include "tool/json.h"
#include "tool/say.h"

#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>

static double goodput_bps(const struct perf_result *r)
{
	return r->ns ? (double)(r->messages * r->size) * 8e9 / (double)r->ns : 0;
}

void perf_print_head(const struct perf_opts *o)
{
	if (o->lat)
		out(" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    "
		    "t_avg[usec]    t_stdev[usec]   99%% percentile[usec]   99.9%% "
		    "percentile[usec]   phase");
	else if (o->gbits)
		out(" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   "
		    "MsgRate[Mpps]    p50       p99       resent     phase");
	else
		out(" #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   "
		    "MsgRate[Mpps]    p50       p99       resent     phase");
}

static void print_lat(const struct perf_result *r)
{
	const struct hist *h = &r->hist;

	out(" %-7" PRIu64 " %-10" PRIu64 " %-14.2f %-14.2f %-16.2f %-14.2f %-15.2f %-22.2f %-24.2f "
	    "%s",
	    r->size, r->messages, (double)h->min / 1e3, (double)h->max / 1e3,
	    (double)hist_quantile(h, 0.5) / 1e3, h->mean / 1e3, hist_stdev(h) / 1e3,
	    (double)hist_quantile(h, 0.99) / 1e3, (double)hist_quantile(h, 0.999) / 1e3, r->phase);
}

/* Below the line. */
static void print_why(const struct perf_result *r)
{
	char parity[UNITS_TEXT];

	out("   scheme %s%s%s: %s%s%" PRIu64 " writes coded, parity %s, %" PRIu64 " of %" PRIu64
	    " packets lost",
	    r->scheme, *r->write_scheme ? ", last write " : "", r->write_scheme, r->why,
	    *r->why ? "; " : "", r->writes_coded, units_size_text(parity, r->parity_bytes),
	    r->lost_pkts, r->tx_pkts);
}

static void print_bw(const struct perf_opts *o, const struct perf_result *r)
{
	double unit = o->gbits ? 1e9 : 8.0 * 1024 * 1024;
	char p50[UNITS_TEXT], p99[UNITS_TEXT], resent[UNITS_TEXT];

	out(" %-10" PRIu64 " %-14" PRIu64 " %-18.2f %-21.2f %-16.6f %-9s %-9s %-10s %s", r->size,
	    r->messages, r->peak_bps / unit, goodput_bps(r) / unit,
	    r->ns ? (double)r->messages * 1e3 / (double)r->ns : 0,
	    units_time_text(p50, hist_quantile(&r->hist, 0.5)),
	    units_time_text(p99, hist_quantile(&r->hist, 0.99)),
	    units_size_text(resent, r->resent_bytes), r->phase);
}

void perf_print_line(const struct perf_opts *o, const struct perf_result *r)
{
	if (o->lat)
		print_lat(r);
	else
		print_bw(o, r);
	if (o->verbose)
		print_why(r);
}

/* [[posted, done], ...] in nanoseconds since the start of the phase, as they completed. */
static void print_each(struct json *j, const struct perf_result *r)
{
	json_array_begin(j, "each");
	for (size_t i = 0; i < r->n_each; i++) {
		json_array_begin(j, NULL);
		json_uint(j, NULL, r->each[i].posted_ns);
		json_uint(j, NULL, r->each[i].done_ns);
		json_array_end(j);
	}
	json_array_end(j);
}

static void print_object(struct json *j, const struct perf_opts *o, const struct perf_result *r)
{
	json_object_begin(j, NULL);
	json_text(j, "test", o->lat ? "latency" : "bandwidth");
	json_text(j, "scheme", r->scheme);
	json_text(j, "write_scheme", r->write_scheme);
	json_text(j, "why", r->why);
	json_uint(j, "decisions", r->decisions);
	json_uint(j, "writes_coded", r->writes_coded);
	json_uint(j, "writes_no_room", r->writes_no_room);
	json_text(j, "phase", r->phase);
	json_uint(j, "size", r->size);
	json_uint(j, "messages", r->messages);
	json_uint(j, "bytes", r->messages * r->size);
	json_real(j, "seconds", (double)r->ns / 1e9);
	json_real(j, "goodput_bps", goodput_bps(r));
	json_real(j, "peak_bps", r->peak_bps);
	json_uint(j, "min_ns", r->hist.min);
	json_uint(j, "p50_ns", hist_quantile(&r->hist, 0.5));
	json_uint(j, "p99_ns", hist_quantile(&r->hist, 0.99));
	json_uint(j, "p999_ns", hist_quantile(&r->hist, 0.999));
	json_uint(j, "max_ns", r->hist.max);
	json_real(j, "avg_ns", r->hist.mean);
	json_real(j, "stdev_ns", hist_stdev(&r->hist));
	json_uint(j, "resent_bytes", r->resent_bytes);
	json_uint(j, "parity_bytes", r->parity_bytes);
	json_uint(j, "repair_pkts", r->repair_pkts);
	json_uint(j, "copy_pkts", r->copy_pkts);
	json_uint(j, "recovered_pkts", r->recovered_pkts);
	json_uint(j, "tx_pkts", r->tx_pkts);
	json_uint(j, "lost_pkts", r->lost_pkts);
	json_uint(j, "channels", r->channels);
	json_uint(j, "depth", o->lat ? 1 : o->depth);
	json_uint(j, "payload_bytes", r->payload_bytes);
	json_uint(j, "rtt_ns", r->rtt_ns);
	json_bool(j, "rate_found", r->rate_found);
	if (o->each)
		print_each(j, r);
	json_object_end(j);
}

void perf_print_json(const struct perf_opts *o, const struct perf_result *first)
{
	struct json j;

	json_init(&j, stdout);
	json_array_begin(&j, NULL);
	for (const struct perf_result *r = first; r; r = r->next)
		print_object(&j, o, r);
	json_array_end(&j);
	json_finish(&j);
}

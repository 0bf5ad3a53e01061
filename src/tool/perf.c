// SPDX-License-Identifier: Apache-2.0
/*
 * sdr perf: options, and which side this is. See perf.h.
 */
#include "tool/perf.h"

#include "tool/cli.h"
#include "tool/say.h"

#include "base/units.h"

#define FIELD(field) offsetof(struct perf_opts, field)
static const struct opt perf_table[] = {
	{"lat", 0, OPT_FLAG, FIELD(lat), 0, 0, NULL,
	 "measure latency (half of a write and its echo)"},
	{"size", 's', OPT_SIZE, FIELD(size), 1, PERF_SIZE_MAX, "SIZE",
	 "bytes in a message (64KiB; latency 2)"},
	{"sizes", 0, OPT_SIZES, FIELD(sizes), 1, PERF_SIZE_MAX, "LIST", "several, e.g. 64KiB,1MiB"},
	{"all", 'a', OPT_FLAG, FIELD(all), 0, 0, NULL, "sizes from 2 to 2^23"},
	{"iters", 'n', OPT_UINT, FIELD(iters), 1, UINT64_C(1) << 40, "N", "messages to measure"},
	{"duration", 'D', OPT_TIME, FIELD(duration_ns), 10 * NS_PER_MS, 24 * 3600 * NS_PER_S,
	 "TIME", "... or how long (5s; latency 1000 messages)"},
	{"depth", 't', OPT_UINT, FIELD(depth), 1, PERF_DEPTH_MAX, "N", "writes in flight (128)"},
	{"settle-depth", 0, OPT_UINT, FIELD(settle_depth), 1, PERF_DEPTH_MAX, "N",
	 "... until the rate is found (that of --depth)"},
	{"channels", 'q', OPT_UINT, offsetof(struct net_opts, channels), 1, SDR_MAX_CHANNELS, "N",
	 "paths to use (1)"},
	{"cold", 0, OPT_FLAG, FIELD(cold), 0, 0, NULL,
	 "the cold phase only; takes --duration or --iters"},
	{"each", 0, OPT_FLAG, FIELD(each), 0, 0, NULL, "with --json: times of each message"},
	{"verbose", 'v', OPT_FLAG, FIELD(verbose), 0, 0, NULL,
	 "say which scheme the writes got, and why (auto)"},
	{"report_gbits", 0, OPT_FLAG, FIELD(gbits), 0, 0, NULL, "Gb/sec instead of MiB/sec"},
	{"busy", 0, OPT_FLAG, FIELD(busy), 0, 0, NULL, "poll without sleeping, at either end"},
	{"once", '1', OPT_FLAG, FIELD(once), 0, 0, NULL, "server: end after one client"},
	{0},
};

static void set_all_sizes(struct perf_opts *o)
{
	o->sizes.n = 0;
	for (unsigned int bit = 1; bit <= 23; bit++)
		o->sizes.bytes[o->sizes.n++] = UINT64_C(1) << bit;
}

static int run(int argc, char **argv)
{
	struct perf_opts o = {.depth = 128};
	struct target to;
	int first, rc;

	first = opts_parse(&cmd_perf, argc, argv, &o, &rc);
	if (first < 0)
		return rc;
	if (argc - first > 1)
		return opts_usage(&cmd_perf, "takes one HOST, or none to be the server");
	if ((o.size != 0) + (o.sizes.n != 0) + (o.all != 0) > 1)
		return opts_usage(&cmd_perf, "--size, --sizes and --all exclude each other");
	if (argc == first)
		return perf_serve(&o);
	if (o.each && (!o.net.json || o.lat))
		return opts_usage(&cmd_perf, "--each needs --json, and is not for --lat");
	if (o.once)
		return opts_usage(&cmd_perf, "--once is the server's: leave out HOST or --once");
	if (target_parse(argv[first], o.net.port, &to) < 0)
		return CLI_USAGE;
	if (o.all) {
		set_all_sizes(&o);
	} else if (!o.sizes.n) {
		o.sizes.n = 1;
		o.sizes.bytes[0] = o.size ? o.size : o.lat ? 2 : 65536;
	}
	return perf_measure(&o, &to);
}

const struct command cmd_perf = {
	.name = "perf",
	.synopsis = "[OPTION]... [HOST[:PORT]]",
	.summary = "measure bandwidth and latency (without HOST: be the server)",
	.opts = perf_table,
	.network = 1,
	.run = run,
};

// SPDX-License-Identifier: Apache-2.0
/*
 * sdr sim: how long writes take over a link that is only simulated, by the library's own code
 * in virtual time or, for the paper's schemes, by the model. Touches no network.
 */
#include "tool/sim/sweep.h"

#include "tool/cli.h"
#include "tool/json.h"
#include "tool/opts.h"
#include "tool/plot.h"
#include "tool/say.h"
#include "tool/sim/draw.h"
#include "tool/sim/engine.h"
#include "tool/sim/file.h"
#include "tool/sim/merge.h"
#include "tool/sim/pool.h"
#include "tool/sim/shard.h"
#include "tool/sim/show.h"
#include "tool/sim/tally.h"

#include "base/units.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct sim_opts {
	const char *text[SWEEP_KEYS]; /* by place in sweep_keys */
	const char *file, *shard, *plot;
	uint64_t cold, warm, learn, jobs, json, csv, quiet;
};

#define KEY(i) offsetof(struct sim_opts, text[i])
#define FIELD(field) offsetof(struct sim_opts, field)
static const struct opt sim_table[] = {
	{"rtt", 'r', OPT_TEXT, KEY(0), 0, 0, "TIMES", "round-trip time"},
	{"km", 0, OPT_TEXT, KEY(1), 0, 0, "N",
	 "instead: distance one way, 150 km a millisecond of round trip"},
	{"bw", 'b', OPT_TEXT, KEY(2), 0, 0, "RATES", "bandwidth, of payload"},
	{"loss", 'l', OPT_TEXT, KEY(3), 0, 0, "RATIOS", "loss per packet: 1e-4 or 0.01%"},
	{"burst", 0, OPT_TEXT, KEY(4), 0, 0, "N", "mean run of lost packets (1)"},
	{"ack-loss", 0, OPT_TEXT, KEY(5), 0, 0, "RATIO", "loss of what comes back (as --loss)"},
	{"jitter", 0, OPT_TEXT, KEY(6), 0, 0, "TIME",
	 "up to so much more delay a packet; reorders (0s)"},
	{"queue", 0, OPT_TEXT, KEY(7), 0, 0, "SIZE", "of the link; 0: no limit (0)"},
	{"size", 's', OPT_TEXT, KEY(8), 0, 0, "SIZES",
	 "message sizes: 128MiB, or 1MiB,1GiB, or 1MiB..1GiB"},
	{"scheme", 0, OPT_TEXT, KEY(9), 0, 0, "NAMES",
	 "with parameters: sr-nack,ec:32,8,hybrid:k=128,m=10,auto,ec-paper:32,8 (sr-nack)"},
	{"packet", 0, OPT_TEXT, KEY(10), 0, 0, "SIZE", "payload of a packet (4KiB)"},
	{"chunk", 0, OPT_TEXT, KEY(11), 0, 0, "SIZE",
	 "a bit of the receive bitmap; the model's unit (a packet)"},
	{"runs", 'n', OPT_TEXT, KEY(12), 0, 0, "N", "runs of each point (500)"},
	{"seed", 0, OPT_TEXT, KEY(13), 0, 0, "N", "of all that is random (1)"},
	{"cold", 0, OPT_FLAG, FIELD(cold), 0, 0, NULL,
	 "a new connection that has to find its rate"},
	{"warm", 0, OPT_FLAG, FIELD(warm), 0, 0, NULL,
	 "a connection that knows round trip and rate (the default)"},
	{"engine", 0, OPT_TEXT, KEY(15), 0, 0, "NAME",
	 "real, model, or auto: real where the scheme exists (auto)"},
	{"device", 0, OPT_TEXT, KEY(16), 0, 0, "NAME",
	 "of both hosts: udp, roce, or nic: an RDMA NIC (udp)"},
	{"limit", 0, OPT_TEXT, KEY(17), 0, 0, "TIME",
	 "of virtual time for a run (60s and 100 times the best)"},
	{"learn", 0, OPT_FLAG, FIELD(learn), 0, 0, NULL,
	 "connections are not told what the path loses, and have to find out"},
	{"coalesce", 0, OPT_TEXT, KEY(19), 0, 0, "TIME",
	 "both hosts' interrupts are held back so long: half the CPU time (0s)"},
	{"file", 'f', OPT_TEXT, FIELD(file), 0, 0, "FILE",
	 "read these options from there: lines like loss = 1e-4"},
	{"jobs", 'j', OPT_UINT, FIELD(jobs), 1, POOL_JOBS_MAX, "N", "processes (all cores)"},
	{"shard", 0, OPT_TEXT, FIELD(shard), 0, 0, "I/N",
	 "do the I-th of N parts of the runs, print them for 'sdr sim merge'"},
	{"json", 0, OPT_FLAG, FIELD(json), 0, 0, NULL, "print a JSON list"},
	{"csv", 0, OPT_FLAG, FIELD(csv), 0, 0, NULL, "print CSV"},
	{"plot", 0, OPT_TEXT, FIELD(plot), 0, 0, "FILE", "draw the sweep as SVG"},
	{"quiet", 'q', OPT_FLAG, FIELD(quiet), 0, 0, NULL, "no line of progress"},
	{0},
};

static int run_sim(int argc, char **argv);

const struct command cmd_sim = {
	.name = "sim",
	.synopsis = "--rtt TIMES --bw RATES --loss RATIOS --size SIZES [OPTION]...\n"
		    "       sdr sim --file FILE [OPTION]...\n"
		    "       sdr sim merge [--json|--csv] [--plot FILE] FILE...",
	.summary = "say how long writes take on a link, by simulating it",
	.opts = sim_table,
	.run = run_sim,
};

/* ---- what is asked -------------------------------------------------------------- */

/* Every flag that is a key stands where sweep_keys has it. */
static const char *flag_text(const struct sim_opts *o, int key)
{
	if (strcmp(sweep_keys[key].name, "cold") == 0)
		return o->cold ? "yes" : o->warm ? "no" : NULL;
	if (strcmp(sweep_keys[key].name, "learn") == 0)
		return o->learn ? "yes" : NULL;
	return o->text[key];
}

static int take_flags(const struct sim_opts *o, struct sweep *s)
{
	char why[SWEEP_WHY];

	for (int i = 0; i < (int)SWEEP_KEYS; i++) {
		const char *text = flag_text(o, i);

		if (!text || !sweep_set(s, i, text, why))
			continue;
		say("--%s %s: %s", sweep_keys[i].name, text, why);
		return -1;
	}
	return 0;
}

static int take_file(const struct sim_opts *o, struct sweep *s)
{
	int rtt = sweep_key_find("rtt"), km = sweep_key_find("km");
	bool skip[SWEEP_KEYS];

	if (!o->file)
		return 0;
	for (int i = 0; i < (int)SWEEP_KEYS; i++)
		skip[i] = flag_text(o, i) != NULL;
	skip[rtt] = skip[km] = skip[rtt] || skip[km];
	return file_read(s, o->file, skip);
}

/* A world of each scheme is opened once, so that mistakes are told before the first run. */
static int check_engine(const struct sweep *s)
{
	char why[SWEEP_WHY];

	for (uint64_t i = 0; i < s->schemes; i++) {
		struct sim_point p;

		sweep_point(s, i, &p);
		if (!sweep_uses_engine(s, p.scheme) || !engine_check(s, &p, why))
			continue;
		say("%s", why);
		return -1;
	}
	return 0;
}

static int read_sweep(const struct sim_opts *o, struct sweep *s)
{
	char why[SWEEP_WHY];

	sweep_init(s);
	if (take_file(o, s) || take_flags(o, s))
		return -1;
	if (s->schemes == 0)
		(void)sweep_set(s, sweep_key_find("scheme"), "sr-nack", why);
	if (sweep_check(s, why)) {
		say("%s", why);
		return -1;
	}
	return check_engine(s);
}

static int usage_of(const struct sim_opts *o)
{
	if (o->text[0] && o->text[1])
		return opts_usage(&cmd_sim, "--rtt and --km exclude each other");
	if (o->cold && o->warm)
		return opts_usage(&cmd_sim, "--cold and --warm exclude each other");
	if (o->json && o->csv)
		return opts_usage(&cmd_sim, "--json and --csv exclude each other");
	if (o->shard && (o->csv || o->plot))
		return opts_usage(&cmd_sim,
				  "--shard prints its part as JSON: --csv and --plot are for "
				  "'sdr sim merge'");
	return 0;
}

/* ---- answers -------------------------------------------------------------------- */

static enum show_form form_of(const struct sim_opts *o)
{
	return o->json ? SHOW_JSON : o->csv ? SHOW_CSV : SHOW_TABLE;
}

static int simulate(const struct sim_opts *o, const struct sweep *s, const struct shard_id *id,
		    struct tallies *t)
{
	struct pool_plan plan = {
		.sweep = s,
		.first = id->index - 1,
		.stride = id->count,
		.jobs = o->jobs ? o->jobs : pool_cores(),
		.progress = !o->quiet && isatty(STDERR_FILENO),
	};
	struct run_result *results;

	plan.tasks = pool_tasks(s, plan.first, plan.stride);
	if (pool_run(&plan, &results))
		return -1;
	if (tallies_init(t, s, plan.first, plan.stride)) {
		say("out of memory");
		pool_free(&plan, results);
		return -1;
	}
	tallies_fill(t, results);
	pool_free(&plan, results);
	return 0;
}

/* A shard brings its scenario along; NULL, or what was given besides. */
static const char *not_of_merge(const struct sim_opts *o)
{
	for (int i = 0; i < (int)SWEEP_KEYS; i++) {
		if (flag_text(o, i))
			return sweep_keys[i].name;
	}
	return o->file ? "file" : o->shard ? "shard" : o->jobs ? "jobs" : NULL;
}

static int run_merge(int argc, char **argv, const struct sim_opts *o)
{
	const char *other = not_of_merge(o);
	struct sweep s;
	struct tallies t = {0};
	int code = CLI_FAILED;

	if (other) {
		say("--%s: merge takes --json, --csv and --plot: the shards say all else", other);
		return CLI_USAGE;
	}
	if (argc < 1)
		return opts_usage(&cmd_sim, "merge: needs the files that --shard made");
	if (merge_files(argv, (uint32_t)argc, &s, &t) == 0 && !(o->plot && draw_check(&s, o->plot)))
		code = show_all(&s, &t, form_of(o), o->plot);
	tallies_fini(&t);
	return code;
}

static int run_sweep(const struct sim_opts *o)
{
	struct shard_id id = {1, 1};
	struct tallies t = {0};
	struct sweep s;
	int code = CLI_FAILED;

	if (o->shard && shard_parse(o->shard, &id))
		return CLI_USAGE;
	if (read_sweep(o, &s) || (o->plot && draw_check(&s, o->plot)))
		return CLI_USAGE;
	/* Before hours of runs, not after them. */
	if (o->plot && plot_try(o->plot))
		return CLI_FAILED;
	if (simulate(o, &s, &id, &t))
		return CLI_FAILED;
	if (o->shard)
		code = shard_print(&s, &id, &t);
	else
		code = show_all(&s, &t, form_of(o), o->plot);
	tallies_fini(&t);
	return code;
}

static int run_sim(int argc, char **argv)
{
	struct sim_opts o = {0};
	int code, first = opts_parse(&cmd_sim, argc, argv, &o, &code);

	if (first < 0)
		return code;
	code = usage_of(&o);
	if (code)
		return code;
	if (first < argc && strcmp(argv[first], "merge") == 0)
		return run_merge(argc - first - 1, argv + first + 1, &o);
	if (first != argc)
		return opts_usage(&cmd_sim, "takes no arguments but merge");
	return run_sweep(&o);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * sdr doctor: what this host can do and what stands in the way, each finding with its
 * evidence and the command that mends it; with HOST, the path there too. Gathers first,
 * then judges. See finding.h for the parts.
 */
#include "tool/cli.h"

#include "tool/doctor/checklist.h"
#include "tool/doctor/dev.h"
#include "tool/doctor/host.h"
#include "tool/doctor/net.h"
#include "tool/doctor/path.h"
#include "tool/doctor/print.h"
#include "tool/doctor/rdma.h"
#include "tool/doctor/size.h"
#include "tool/opts.h"
#include "tool/say.h"

#include "base/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GOAL_BPS UINT64_C(1000000000)
#define GOAL_RTT_NS (100 * NS_PER_MS)
#define STREAM_BYTES (UINT64_C(16) << 20)
#define STREAM_MAX (UINT64_C(256) << 20)
#define MESSAGE_BYTES (UINT64_C(1) << 20)
#define CHUNK_PKTS 4u
#define NO_STREAM UINT64_MAX /* --stream was not given */

struct doctor_opts {
	struct net_opts net;
	uint64_t bw_bps, rtt_ns, chunk, size, stream, verbose;
};

#define FIELD(field) offsetof(struct doctor_opts, field)
static const struct opt doctor_table[] = {
	{"bw", 0, OPT_RATE, FIELD(bw_bps), 1000, UINT64_C(10000000000000), "RATE",
	 "the rate that you want (measured, or 1Gbit)"},
	{"rtt", 0, OPT_TIME, FIELD(rtt_ns), NS_PER_US, 100 * NS_PER_S, "TIME",
	 "over this round trip (measured, or 100ms)"},
	{"device", 0, OPT_TEXT, offsetof(struct net_opts, device), 0, 0, "NAME",
	 "look at this one only: a network device, or udp, roce, verbs[:NAME]"},
	{"chunk", 0, OPT_UINT, FIELD(chunk), 1, SDR_MAX_CHUNK_PKTS, "N",
	 "packets in a chunk, a power of two (4)"},
	{"size", 's', OPT_SIZE, FIELD(size), 1, UINT64_C(1) << 40, "SIZE",
	 "bytes in your messages (1MiB)"},
	{"stream", 0, OPT_SIZE, FIELD(stream), 0, STREAM_MAX, "SIZE",
	 "bytes to send to an 'sdr perf' at HOST; 0: none (16MiB)"},
	{"verbose", 'v', OPT_FLAG, FIELD(verbose), 0, 0, NULL, "show the evidence of all findings"},
	{0},
};

struct doctor {
	struct doctor_opts o;
	struct goal goal;
	struct host_facts host;
	struct net_facts net;
	struct rdma_list rdma;
	struct dev_facts dev[DEVS_MAX];
	size_t ndevs;
	struct selftest_facts selftest;
	struct path_facts path;
	int have_path;
	const char *netdev, *rdmadev; /* --device */
	struct findings found;
};

static const struct source here = {""};

/* ---- what was asked ------------------------------------------------------------- */

/* --device is one of the library's devices, or a network device of this host. */
static int sort_device(struct doctor *d)
{
	const char *name = d->o.net.device, *colon;

	if (!name || strcmp(name, "udp") == 0 || strcmp(name, "roce") == 0 ||
	    strcmp(name, "verbs") == 0)
		return 0;
	colon = strchr(name, ':');
	if (colon && strncmp(name, "verbs:", 6) == 0) {
		d->rdmadev = colon + 1;
		if (source_exists(&here, "/sys/class/infiniband/%s", d->rdmadev))
			return 0;
	} else if (!strchr(name, '/') && source_exists(&here, "/sys/class/net/%s", name)) {
		d->netdev = name;
		d->o.net.device = NULL;
		return 0;
	}
	say("--device %s: there is no such device: see 'ip link', 'rdma link' and 'sdr info'",
	    name);
	return -1;
}

static int set_goal(struct doctor *d)
{
	const struct doctor_opts *o = &d->o;

	if (o->chunk & (o->chunk - 1)) {
		say("--chunk %u: not a power of two: choose 1, 2, 4, 8, 16, 32 or 64",
		    (unsigned int)o->chunk);
		return -1;
	}
	d->goal = (struct goal){
		.bw_bps = o->bw_bps ? o->bw_bps : GOAL_BPS,
		.rtt_ns = o->rtt_ns ? o->rtt_ns : GOAL_RTT_NS,
		.bw_given = o->bw_bps != 0,
		.rtt_given = o->rtt_ns != 0,
		.payload_bytes = (uint32_t)o->net.payload_bytes,
		.chunk_pkts = o->chunk ? (uint32_t)o->chunk : CHUNK_PKTS,
		.message_bytes = o->size ? o->size : MESSAGE_BYTES,
		.port = (uint16_t)(o->net.port ? o->net.port : SDR_DEFAULT_PORT),
	};
	return 0;
}

/* A second of the wanted rate, so that the rate is found on the way. */
static uint64_t stream_bytes(const struct doctor *d)
{
	uint64_t second = d->goal.bw_given ? d->goal.bw_bps / 8 : 0;

	if (d->o.stream != NO_STREAM)
		return d->o.stream;
	if (second > STREAM_MAX)
		second = STREAM_MAX;
	return second > STREAM_BYTES ? second : STREAM_BYTES;
}

/* ---- gathering ------------------------------------------------------------------ */

static void gather_path(struct doctor *d, const struct target *to)
{
	struct path_opts o = {.net = &d->o.net, .to = *to, .stream_bytes = stream_bytes(d)};

	path_measure(&o, &d->path);
	if (d->host.cpus_allowed)
		d->path.load = d->host.load1 / d->host.cpus_allowed;
	d->have_path = 1;
	if (*d->path.local && dev_of_address(d->path.local, d->path.dev) < 0)
		d->path.dev[0] = '\0';
	path_goal(&d->path, &d->goal);
}

static void gather_devices(struct doctor *d)
{
	char names[DEVS_MAX][SOURCE_NAME];
	size_t n = 1;

	if (!d->netdev && d->rdmadev && d->rdma.n && d->rdma.dev[0].nports)
		d->netdev = d->rdma.dev[0].port[0].netdev;
	if (d->netdev && *d->netdev)
		snprintf(names[0], SOURCE_NAME, "%s", d->netdev);
	else if (d->have_path && *d->path.dev)
		snprintf(names[0], SOURCE_NAME, "%s", d->path.dev);
	else
		n = dev_default(&here, names, DEVS_MAX);
	for (size_t i = 0; i < n; i++)
		dev_read(&here, names[i], &d->dev[d->ndevs++]);
}

/* ---- judging -------------------------------------------------------------------- */

static void judge_sizes(struct doctor *d)
{
	struct size_facts s = {.mtu = 1500};
	struct goal goal = d->goal;
	struct finding *x;

	if (d->have_path && d->path.route_mtu) {
		s.mtu = d->path.route_mtu;
		s.is_v6 = d->path.is_v6;
		snprintf(s.dev, sizeof s.dev, "%.15s", d->path.dev);
	} else if (d->ndevs) {
		s.mtu = d->dev[0].mtu;
		snprintf(s.dev, sizeof s.dev, "%.15s", d->dev[0].name);
	} else {
		x = finding_add(&d->found, "size", LEVEL_SKIPPED, "payload",
				"no network device, so no MTU");
		finding_evidence(x, "/sys/class/net has none that is up, but loopback");
		return;
	}
	s.fits_bytes = sdr_payload_for_mtu(s.mtu, s.is_v6);
	/* What the two ends have agreed on. */
	if (!goal.payload_bytes && d->have_path && d->path.payload_bytes < s.fits_bytes)
		goal.payload_bytes = d->path.payload_bytes;
	size_judge(&s, &goal, &d->found);
}

static void judge(struct doctor *d)
{
	uint64_t link = d->ndevs ? d->dev[0].speed_bps : 0;

	host_judge(&d->host, d->rdma.n > 0, &d->found);
	net_judge(&d->net, &d->goal, d->host.container, &d->found);
	for (size_t i = 0; i < d->ndevs; i++)
		dev_judge(&d->dev[i], &d->goal, &d->found);
	judge_sizes(d);
	rdma_judge(&d->rdma, &d->found);
	path_judge(d->have_path ? &d->path : NULL, &d->goal, &d->net, link, d->rdma.n > 0,
		   &d->found);
	checklist_selftest(&d->selftest, &d->found);
}

static int examine(struct doctor *d, const struct target *to)
{
	struct doctor_report r = {.f = &d->found,
				  .goal = &d->goal,
				  .host = &d->host,
				  .net = &d->net,
				  .dev = d->dev,
				  .path = to ? &d->path : NULL};

	/* Before we are the load ourselves. */
	host_read(&here, &d->host);
	net_read(&here, d->goal.port, &d->net);
	net_probe(&d->net);
	if (to)
		gather_path(d, to);
	rdma_read(&here, d->rdmadev, &d->rdma);
	gather_devices(d);
	if (d->ndevs)
		snprintf(d->rdma.netdev, sizeof d->rdma.netdev, "%.15s", d->dev[0].name);
	rdma_open(&d->rdma);
	selftest_run(&d->selftest);
	if (cli_stop) {
		say("interrupted");
		return CLI_FAILED;
	}
	judge(d);
	r.ndevs = d->ndevs;
	if (d->o.net.json)
		doctor_print_json(&r);
	else if (!d->o.net.quiet || findings_need_attention(&d->found))
		doctor_print_text(&r, (int)d->o.verbose,
				  isatty(STDOUT_FILENO) && !getenv("NO_COLOR"));
	return findings_need_attention(&d->found) ? CLI_FAILED : CLI_OK;
}

static int run(int argc, char **argv)
{
	struct doctor *d = calloc(1, sizeof *d);
	struct target to;
	int first, rc;

	if (!d)
		return CLI_FAILED;
	d->o.stream = NO_STREAM;
	first = opts_parse(&cmd_doctor, argc, argv, &d->o, &rc);
	if (first >= 0 && argc - first > 1)
		rc = opts_usage(&cmd_doctor, "takes one HOST, or none to look at this host only");
	else if (first >= 0 &&
		 (set_goal(d) < 0 || sort_device(d) < 0 ||
		  (first < argc && target_parse(argv[first], d->o.net.port, &to) < 0)))
		rc = CLI_USAGE;
	else if (first >= 0)
		rc = examine(d, first < argc ? &to : NULL);
	free(d);
	return rc;
}

const struct command cmd_doctor = {
	.name = "doctor",
	.synopsis = "[OPTION]... [HOST[:PORT]]",
	.summary = "find what stands in the way on this host and on the path to HOST",
	.opts = doctor_table,
	.network = 1,
	.run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How well streams of writes use a long, lossy link, in virtual time: a grid of rate, round
 * trip, loss, bursts and queue. Facts about the protocol, not about this machine.
 *
 *	wan_grid [OPTION]...        --help lists them
 *
 * A row: what the link can carry of payload after loss is 100 %.
 */
#include "base/units.h"
#include "wan.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MAX 16u

struct list {
	unsigned int n;
	double value[LIST_MAX];
};

struct options {
	struct list rate, rtt, loss, burst, queue, size, bytes;
	double ack_loss; /* below 0: as much as the data */
	unsigned int depth, seeds, flows;
	uint64_t seed, skip_ns, duration_ns, stagger_ns, grain_ns, trace_ns, fixed_bps;
	uint64_t every_ns, turn_ns, turn_rate_bps, turn_rtt_ns, jitter_ns;
	const char *scheme, *device;
};

static const char help[] =
	"wan_grid [OPTION]...\n"
	"Streams of writes over a simulated long link, in virtual time. LISTs have commas.\n\n"
	"  --rate LIST      of the link (1Gbit)\n"
	"  --rtt LIST       (100ms)\n"
	"  --loss LIST      of data packets (1%)\n"
	"  --burst LIST     mean length of a loss burst in packets, 1: independent (1)\n"
	"  --ack-loss P     of what comes back (0), or \"same\"\n"
	"  --queue LIST     of the bottleneck, in rate x RTT (1)\n"
	"  --size LIST      of a write (1MiB)\n"
	"  --depth N        writes in flight (128)\n"
	"  --bytes LIST     a cold transfer of so much in all, instead of a stream\n"
	"  --skip TIME      of a stream: measure from here on (4s)\n"
	"  --duration TIME  of a stream: measure for so long (12s)\n"
	"  --flows N        connections that share the link (1), --stagger TIME apart (0)\n"
	"  --seeds N        (1) from --seed S (1)\n"
	"  --fixed RATE     a provisioned rate, instead of finding it\n"
	"  --scheme NAME    (sr-nack)\n"
	"  --device NAME    of both ends: roce or nic (sockets)\n"
	"  --jitter TIME    0 .. TIME on top of the delay, each way (0)\n"
	"  --grain TIME     the hosts look no oftener than this (0: at each packet)\n"
	"  --every TIME     the application has a write each so often (0: always)\n"
	"  --turn TIME      from here on the link has --turn-rate RATE, --turn-rtt TIME\n"
	"  --trace TIME     a line of state each so often\n";

static void die(const char *option, const char *text)
{
	fprintf(stderr, "wan_grid: --%s %s: not understood; see --help\n", option, text);
	exit(2);
}

enum kind { RATE, TIME, RATIO, SIZE, NUMBER };

static double value_of(enum kind kind, const char *option, const char *text)
{
	uint64_t v = 0;
	double d = 0;
	char *end;
	int err = 0;

	switch (kind) {
	case RATE:
		err = units_parse_rate_bps(text, &v);
		break;
	case TIME:
		err = units_parse_time_ns(text, &v);
		break;
	case SIZE:
		err = units_parse_size_bytes(text, &v);
		break;
	case RATIO:
		err = units_parse_ratio(text, &d);
		break;
	case NUMBER:
		d = strtod(text, &end);
		err = *end || !(d >= 0);
		break;
	}
	if (err)
		die(option, text);
	return kind == RATIO || kind == NUMBER ? d : (double)v;
}

static struct list list_of(enum kind kind, const char *option, char *text)
{
	struct list l = {0};

	for (char *save, *at = strtok_r(text, ",", &save); at; at = strtok_r(NULL, ",", &save)) {
		if (l.n == LIST_MAX)
			die(option, at);
		l.value[l.n++] = value_of(kind, option, at);
	}
	if (!l.n)
		die(option, text);
	return l;
}

static const struct option names[] = {
	{"rate", 1, NULL, 'r'},	   {"rtt", 1, NULL, 't'},	{"loss", 1, NULL, 'l'},
	{"burst", 1, NULL, 'b'},   {"ack-loss", 1, NULL, 'a'},	{"queue", 1, NULL, 'q'},
	{"size", 1, NULL, 's'},	   {"depth", 1, NULL, 'd'},	{"bytes", 1, NULL, 'B'},
	{"skip", 1, NULL, 'k'},	   {"duration", 1, NULL, 'D'},	{"flows", 1, NULL, 'f'},
	{"stagger", 1, NULL, 'S'}, {"seeds", 1, NULL, 'n'},	{"seed", 1, NULL, 'N'},
	{"fixed", 1, NULL, 'F'},   {"scheme", 1, NULL, 'c'},	{"grain", 1, NULL, 'g'},
	{"device", 1, NULL, 'V'},  {"jitter", 1, NULL, 'J'},	{"every", 1, NULL, 'e'},
	{"turn", 1, NULL, 'u'},	   {"turn-rate", 1, NULL, 'R'}, {"turn-rtt", 1, NULL, 'L'},
	{"trace", 1, NULL, 'T'},   {"help", 0, NULL, 'h'},	{0},
};

static uint64_t number(enum kind kind, const char *option)
{
	return (uint64_t)value_of(kind, option, optarg);
}

/* False: not one of these. */
static bool list_option(struct options *o, int c)
{
	switch (c) {
	case 'r':
		o->rate = list_of(RATE, "rate", optarg);
		return true;
	case 't':
		o->rtt = list_of(TIME, "rtt", optarg);
		return true;
	case 'l':
		o->loss = list_of(RATIO, "loss", optarg);
		return true;
	case 'b':
		o->burst = list_of(NUMBER, "burst", optarg);
		return true;
	case 'q':
		o->queue = list_of(NUMBER, "queue", optarg);
		return true;
	case 's':
		o->size = list_of(SIZE, "size", optarg);
		return true;
	case 'B':
		o->bytes = list_of(SIZE, "bytes", optarg);
		return true;
	default:
		return false;
	}
}

static void one_option(struct options *o, int c)
{
	if (list_option(o, c))
		return;
	switch (c) {
	case 'a':
		o->ack_loss = strcmp(optarg, "same") ? value_of(RATIO, "ack-loss", optarg) : -1;
		break;
	case 'd':
		o->depth = (unsigned int)number(NUMBER, "depth");
		break;
	case 'k':
		o->skip_ns = number(TIME, "skip");
		break;
	case 'D':
		o->duration_ns = number(TIME, "duration");
		break;
	case 'f':
		o->flows = (unsigned int)number(NUMBER, "flows");
		break;
	case 'S':
		o->stagger_ns = number(TIME, "stagger");
		break;
	case 'n':
		o->seeds = (unsigned int)number(NUMBER, "seeds");
		break;
	case 'N':
		o->seed = number(NUMBER, "seed");
		break;
	case 'F':
		o->fixed_bps = number(RATE, "fixed");
		break;
	case 'c':
		o->scheme = optarg;
		break;
	case 'g':
		o->grain_ns = number(TIME, "grain");
		break;
	case 'V':
		o->device = optarg;
		break;
	case 'J':
		o->jitter_ns = number(TIME, "jitter");
		break;
	case 'e':
		o->every_ns = number(TIME, "every");
		break;
	case 'u':
		o->turn_ns = number(TIME, "turn");
		break;
	case 'R':
		o->turn_rate_bps = number(RATE, "turn-rate");
		break;
	case 'L':
		o->turn_rtt_ns = number(TIME, "turn-rtt");
		break;
	case 'T':
		o->trace_ns = number(TIME, "trace");
		break;
	case 'h':
		fputs(help, stdout);
		exit(0);
	default:
		fputs("see wan_grid --help\n", stderr);
		exit(2);
	}
}

static void head(const struct options *o)
{
	printf("%12s %7s %7s %5s %5s %8s %4s | %s\n", "rate", "rtt", "loss", "burst", "queue",
	       "write", "seed",
	       o->bytes.n ? "  bytes     cold     /T*  -T*,RTT  up,RTT  resent  needless  maxqueue"
			  : " goodput  resent  needless   queue: mean     max  drops  (flows)");
}

static void row(const struct wan_config *c, const struct wan_result *r)
{
	const struct wan_flow_result *f = &r->flow[0];
	char rate[UNITS_TEXT], rtt[UNITS_TEXT], size[UNITS_TEXT], bytes[UNITS_TEXT];
	double tx = f->tx_pkts ? (double)f->tx_pkts : 1, rtt_ns = (double)c->rtt_ns;

	printf("%12s %7s %7g %5g %5g %8s %4llu | ", units_rate_text(rate, (double)c->rate_bps),
	       units_time_text(rtt, c->rtt_ns), c->loss, c->burst_pkts, c->queue_bdp,
	       units_size_text(size, c->size), (unsigned long long)c->seed);
	if (c->bytes) {
		double took = (double)(f->done_ns - f->start_ns);
		double ideal = wan_ideal_ns(c, c->bytes);

		printf("%8s %7.1fms %7.3f %8.2f %7.2f %6.2f%% %8.3f%% %7.1fms%s\n",
		       units_size_text(bytes, c->bytes), took / 1e6, took / ideal,
		       (took - ideal) / rtt_ns, (double)(f->up_ns - f->start_ns) / rtt_ns,
		       100 * (double)f->resent_pkts / tx, 100 * (double)f->duplicate_pkts / tx,
		       r->max_queue_all_ns / 1e6, r->gave_up ? "  gave up" : "");
		return;
	}
	printf("%7.2f%% %6.2f%% %8.3f%% %9.2fms %7.2fms %6llu",
	       100 * r->goodput_bps / wan_share_bps(c), 100 * (double)f->resent_pkts / tx,
	       100 * (double)f->duplicate_pkts / tx, r->mean_queue_ns / 1e6,
	       r->max_queue_all_ns / 1e6, (unsigned long long)r->lost_queue_pkts);
	for (unsigned int i = 0; c->flows > 1 && i < c->flows; i++)
		printf("  %5.1f%%", 100 * (double)r->flow[i].bytes * 8e9 / (double)c->duration_ns /
					    wan_share_bps(c));
	printf("\n");
}

static int one(const struct options *o, struct wan_config *c)
{
	struct wan_result r;
	int err = 0;

	for (unsigned int i = 0; !err && i < o->seeds; i++) {
		c->seed = o->seed + i;
		err = wan_run(c, &r);
		if (err)
			fprintf(stderr, "wan_grid: a run failed: error %d\n", err);
		else
			row(c, &r);
		(void)fflush(stdout);
	}
	return err;
}

/* All combinations: the lists are the digits of one number. */
static int grid(const struct options *o)
{
	const struct list none = {.n = 1};
	const struct list *lists[] = {&o->rate,
				      &o->rtt,
				      &o->loss,
				      &o->burst,
				      &o->queue,
				      &o->size,
				      o->bytes.n ? &o->bytes : &none};
	uint64_t all = 1;
	int err = 0;

	for (unsigned int i = 0; i < 7; i++)
		all *= lists[i]->n;
	head(o);
	for (uint64_t k = 0; !err && k < all; k++) {
		double v[7];
		uint64_t at = k;
		struct wan_config c = {0};

		for (int i = 6; i >= 0; i--) {
			v[i] = lists[i]->value[at % lists[i]->n];
			at /= lists[i]->n;
		}
		c = (struct wan_config){
			.rate_bps = (uint64_t)v[0],
			.rtt_ns = (uint64_t)v[1],
			.loss = v[2],
			.burst_pkts = v[3],
			.ack_loss = o->ack_loss < 0 ? v[2] : o->ack_loss,
			.queue_bdp = v[4],
			.size = (uint64_t)v[5],
			.bytes = (uint64_t)v[6],
			.depth = o->depth,
			.skip_ns = o->bytes.n ? 0 : o->skip_ns,
			.duration_ns = o->bytes.n ? 0 : o->duration_ns,
			.flows = o->flows,
			.stagger_ns = o->stagger_ns,
			.fixed_bps = o->fixed_bps,
			.grain_ns = o->grain_ns,
			.device = o->device,
			.jitter_ns = o->jitter_ns,
			.trace_ns = o->trace_ns,
			.every_ns = o->every_ns,
			.turn_ns = o->turn_ns,
			.turn_rate_bps = o->turn_rate_bps,
			.turn_rtt_ns = o->turn_rtt_ns,
			.scheme = o->scheme,
		};
		err = one(o, &c);
	}
	return err;
}

int main(int argc, char **argv)
{
	struct options o = {
		.rate = {1, {1e9}},
		.rtt = {1, {100e6}},
		.loss = {1, {0.01}},
		.burst = {1, {1}},
		.queue = {1, {1}},
		.size = {1, {1048576}},
		.depth = 128,
		.seeds = 1,
		.flows = 1,
		.seed = 1,
		.skip_ns = 4 * NS_PER_S,
		.duration_ns = 12 * NS_PER_S,
	};
	int c;

	while ((c = getopt_long(argc, argv, "h", names, NULL)) >= 0)
		one_option(&o, c);
	if (optind < argc)
		die("", argv[optind]);
	return grid(&o) ? 1 : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast the simulator is with everything on top: reliable connections over simulated long
 * links, in packets a second of one core's time, and the memory that it takes.
 *
 *	sim_speed [name=value ...]	(see usage below)
 *
 * Hosts come in pairs; on each pair `conns` connections write from one to the other, `depth`
 * writes of `size` bytes in flight, until `bytes` have been written on each. With payload=0
 * packets have lengths but no bytes, and the buffers are one page that nobody may touch.
 *
 * It knows <sdr/conn.h> and <sdr/sim.h> only, so it is what a user's scenario costs.
 */
#include "base/units.h"
#include <errno.h>
#include <sdr/conn.h>
#include <sdr/sim.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

static const char usage[] =
	"usage: sim_speed [name=value ...]\n"
	"  pairs=1      pairs of hosts\n"
	"  idle=0       pairs besides, connected and silent\n"
	"  conns=1      connections of each pair\n"
	"  paths=0      paths of each pair, over which channels are spread; 0: one link\n"
	"  channels=1   channels of each connection\n"
	"  rate=400Gbit of each direction of each pair's link\n"
	"  delay=12.5ms one way\n"
	"  packet=4096  payload of a packet, bytes\n"
	"  size=64MiB   of a write\n"
	"  messages=0   that a connection can have in flight; 0: as many as it has by itself\n"
	"  depth=0      writes in flight; 0: as many as fill the link, and one\n"
	"  bytes=4GiB   to write, all connections together\n"
	"  loss=0       of data packets, 0 .. 1\n"
	"  payload=0    1: packets carry it\n"
	"  device=udp   or roce, nic\n"
	"  scheme=sr-nack\n"
	"  fixed=1      1: the rate is given to congestion control; 0: it is found\n"
	"  coalesce=0   hosts hear of packets so long after the first; 0: of each at once\n"
	"  seed=1\n";

struct options {
	uint64_t pairs, idle, conns, paths, channels, rate, delay, packet, size, depth, bytes,
		payload;
	uint64_t fixed, coalesce, messages, seed;
	double loss;
	const char *device, *scheme;
};

struct flow {
	struct sdr_conn *conn[2];
	uint64_t posted, received, total; /* writes */
};

struct host {
	struct sdr_ctx *ctx;
	struct sdr_net *net;
	struct sdr_mr *mr;
	int number;
};

struct world {
	struct options o;
	struct sdr_sim *sim;
	struct host *host;
	struct host **by_ctx; /* hash of their contexts */
	uint64_t by_ctx_mask;
	struct flow *flow;
	uint64_t npairs, nflows, left; /* writes of all that have not ended at both ends, twice */
	uint64_t steps, turns, connected;
	void *mem;
};

static void die(const char *what, int err)
{
	fprintf(stderr, "sim_speed: %s: %s\n", what, sdr_strerror(err));
	exit(1);
}

static void must(int err, const char *what)
{
	if (err < 0)
		die(what, err);
}

/* ---- options ---- */

enum kind { COUNT, BYTES, RATE, TIME };

static bool parse(const char *text, enum kind kind, uint64_t *out)
{
	char *end;

	switch (kind) {
	case BYTES:
		return units_parse_size_bytes(text, out) == 0;
	case RATE:
		return units_parse_rate_bps(text, out) == 0;
	case TIME:
		return units_parse_time_ns(text, out) == 0;
	default:
		errno = 0;
		*out = strtoull(text, &end, 10);
		return errno == 0 && end != text && *end == '\0';
	}
}

static bool option_set(struct options *o, const char *name, const char *value)
{
	const struct {
		const char *name;
		enum kind kind;
		uint64_t *to, low, high;
	} all[] = {
		{"pairs", COUNT, &o->pairs, 1, 10000},
		{"idle", COUNT, &o->idle, 0, 10000},
		{"conns", COUNT, &o->conns, 1, 10000},
		{"paths", COUNT, &o->paths, 0, SDR_SIM_MAX_PATHS},
		{"channels", COUNT, &o->channels, 1, SDR_MAX_CHANNELS},
		{"rate", RATE, &o->rate, 1, UINT64_C(1) << 61},
		{"delay", TIME, &o->delay, 0, UINT64_C(1) << 61},
		{"packet", BYTES, &o->packet, 64, 65000},
		{"size", BYTES, &o->size, 1, UINT64_C(1) << 40},
		{"messages", COUNT, &o->messages, 0, SDR_MAX_MESSAGES},
		{"depth", COUNT, &o->depth, 0, 512},
		{"bytes", BYTES, &o->bytes, 1, UINT64_C(1) << 60},
		{"payload", COUNT, &o->payload, 0, 1},
		{"fixed", COUNT, &o->fixed, 0, 1},
		{"coalesce", TIME, &o->coalesce, 0, UINT64_C(1) << 61},
		{"seed", COUNT, &o->seed, 0, UINT64_MAX},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (strcmp(all[i].name, name) != 0)
			continue;
		if (parse(value, all[i].kind, all[i].to) && *all[i].to >= all[i].low &&
		    *all[i].to <= all[i].high)
			return true;
		fprintf(stderr, "sim_speed: %s=%s: must be %llu .. %llu\n", name, value,
			(unsigned long long)all[i].low, (unsigned long long)all[i].high);
		return false;
	}
	if (strcmp(name, "device") == 0)
		o->device = value;
	else if (strcmp(name, "scheme") == 0)
		o->scheme = value;
	else if (strcmp(name, "loss") == 0)
		return units_parse_ratio(value, &o->loss) == 0 && o->loss < 1;
	else
		return false;
	return true;
}

static struct options options_get(int argc, char **argv)
{
	struct options o = {.pairs = 1,
			    .conns = 1,
			    .channels = 1,
			    .rate = 400000000000,
			    .delay = 12500000,
			    .packet = 4096,
			    .size = 64 << 20,
			    .bytes = UINT64_C(4) << 30,
			    .fixed = 1,
			    .seed = 1,
			    .device = "udp",
			    .scheme = "sr-nack"};

	for (int i = 1; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (value)
			*value++ = '\0';
		if (!value || !option_set(&o, argv[i], value)) {
			fputs(usage, stderr);
			exit(2);
		}
	}
	if (!o.depth)
		o.depth = 2 + (uint64_t)((double)o.rate / 8e9 * 2 * (double)o.delay /
					 ((double)o.size * (double)o.conns));
	if (o.depth > 512)
		o.depth = 512;
	return o;
}

/* ---- a world ---- */

static void link_pair(struct world *w, int from, int to)
{
	struct sdr_sim_link link[SDR_SIM_MAX_PATHS];

	link[0] = (struct sdr_sim_link){.size = sizeof(link[0]), .delay_ns = w->o.delay};
	link[0].rate_bps = w->o.paths ? w->o.rate / w->o.paths : w->o.rate;
	link[0].loss = from < to ? w->o.loss : 0;
	must(sdr_sim_link_set(w->sim, from, to, SDR_CHANNEL_ANY, &link[0]), "link");
	for (uint64_t i = 1; i < w->o.paths; i++)
		link[i] = link[0];
	if (w->o.paths)
		must(sdr_sim_paths_set(w->sim, from, to, (uint32_t)w->o.paths, link), "paths");
}

static struct host **host_of(const struct world *w, const struct sdr_ctx *ctx)
{
	uint64_t at = (uint64_t)(uintptr_t)ctx / 64 * UINT64_C(0x9e3779b97f4a7c15) >> 20;

	while (w->by_ctx[at & w->by_ctx_mask] && w->by_ctx[at & w->by_ctx_mask]->ctx != ctx)
		at++;
	return &w->by_ctx[at & w->by_ctx_mask];
}

static void host_open(struct world *w, struct host *h, bool listen)
{
	const struct sdr_sim_device device = {
		.size = sizeof(device), .like = w->o.device, .coalesce_ns = w->o.coalesce};
	struct sdr_ctx_attr ca = {.size = sizeof(ca), .listen = listen};
	struct sdr_net_attr na = {.size = sizeof(na)};

	h->number = sdr_sim_host(w->sim);
	must(h->number, "host");
	must(sdr_sim_device_set(w->sim, h->number, &device), "device");
	ca.max_payload_bytes = (uint32_t)w->o.packet;
	must(sdr_sim_ctx_create(w->sim, h->number, &ca, &h->ctx), "context");
	*host_of(w, h->ctx) = h;
	must(sdr_mr_reg(h->ctx, NULL, SIZE_MAX, 0, &h->mr), "memory");
	na.use_ctx = h->ctx;
	must(sdr_net_create(&na, &h->net), "net");
}

static void flow_open(struct world *w, struct flow *f, struct host *ends)
{
	uint8_t blob[2][SDR_MAX_INFO_BYTES];
	int len[2];

	for (int end = 0; end < 2; end++) {
		struct sdr_conn_attr ca = {.size = sizeof(ca), .scheme = w->o.scheme, .cookie = f};

		ca.channels = (uint32_t)w->o.channels;
		ca.messages = (uint32_t)w->o.messages;
		/* Headers are 64 bytes a packet and IP's 28. */
		if (w->o.fixed)
			ca.rate_bps = (uint64_t)((double)(w->o.rate / w->o.conns) * 0.995 *
						 (double)w->o.packet / (double)(w->o.packet + 64));
		must(sdr_conn_open(ends[end].net, &ca, &f->conn[end]), "connection");
		len[end] = sdr_conn_blob_get(f->conn[end], blob[end], sizeof(blob[end]));
		must(len[end], "blob");
	}
	for (int end = 0; end < 2; end++)
		must(sdr_conn_blob_set(f->conn[end], blob[!end], (size_t)len[!end], NULL),
		     "connect");
	if ((uint64_t)(f - w->flow) < w->o.pairs * w->o.conns)
		f->total = (w->o.bytes / (w->o.pairs * w->o.conns) + w->o.size - 1) / w->o.size;
	w->left += 2 * f->total;
}

static void world_open(struct world *w)
{
	w->npairs = w->o.pairs + w->o.idle;
	w->nflows = w->npairs * w->o.conns;
	w->host = calloc(2 * w->npairs, sizeof(*w->host));
	w->flow = calloc(w->nflows, sizeof(*w->flow));
	for (w->by_ctx_mask = 15; w->by_ctx_mask < 8 * w->npairs;)
		w->by_ctx_mask = 2 * w->by_ctx_mask + 1;
	w->by_ctx = calloc(w->by_ctx_mask + 1, sizeof(struct host *));
	w->mem = mmap(NULL, w->o.size, w->o.payload ? PROT_READ | PROT_WRITE : PROT_NONE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!w->host || !w->flow || !w->by_ctx || w->mem == MAP_FAILED)
		die("memory", -ENOMEM);
	must(sdr_sim_create(w->o.seed, &w->sim), "world");
	if (!w->o.payload)
		must(sdr_sim_payload_off(w->sim), "payload off");
	for (uint64_t i = 0; i < 2 * w->npairs; i++)
		host_open(w, &w->host[i], i % 2);
	for (uint64_t i = 0; i < w->npairs; i++) {
		const struct host *h = &w->host[2 * i];

		link_pair(w, h[0].number, h[1].number);
		link_pair(w, h[1].number, h[0].number);
	}
	for (uint64_t i = 0; i < w->nflows; i++)
		flow_open(w, &w->flow[i], &w->host[i / w->o.conns * 2]);
}

static void world_close(struct world *w)
{
	for (uint64_t i = 0; i < 2 * w->npairs; i++) {
		sdr_net_destroy(w->host[i].net);
		sdr_mr_dereg(w->host[i].mr);
		sdr_ctx_destroy(w->host[i].ctx);
	}
	sdr_sim_destroy(w->sim);
	free(w->host);
	free(w->flow);
	free(w->by_ctx);
}

/* ---- running ---- */

static void flow_post(struct world *w, struct flow *f)
{
	const struct host *ends = &w->host[(uint64_t)(f - w->flow) / w->o.conns * 2];
	struct sdr_op_wr wr = {.size = sizeof(wr), .addr = w->mem, .length = w->o.size};

	if (f->posted == f->total)
		return;
	wr.mr = ends[1].mr;
	must(sdr_conn_recv_post(f->conn[1], &wr, NULL), "receive");
	wr.mr = ends[0].mr;
	must(sdr_write_post(f->conn[0], &wr, NULL), "write");
	f->posted++;
}

static void host_take(struct world *w, struct host *h)
{
	struct sdr_completion done[64];
	struct sdr_event ev = {.size = sizeof(ev)};
	int n;

	done[0].size = sizeof(done[0]);
	while ((n = sdr_net_poll(h->net, done, 64)) > 0) {
		for (int i = 0; i < n; i++) {
			must(done[i].status, "operation");
			w->left--;
			if (!done[i].is_recv)
				flow_post(w, done[i].conn_cookie);
		}
	}
	while (sdr_net_event(h->net, &ev) == 1) {
		struct flow *f = ev.conn_cookie;

		if (ev.type == SDR_EV_FAILED || ev.type == SDR_EV_DEAD)
			die(ev.text, ev.status);
		if (ev.type != SDR_EV_CONNECTED ||
		    h != &w->host[(f - w->flow) / (long)w->o.conns * 2])
			continue;
		w->connected++;
		for (uint64_t i = 0; i < w->o.depth; i++)
			flow_post(w, f);
	}
}

static void step(struct world *w)
{
	struct sdr_ctx *ctx;

	while ((ctx = sdr_sim_due(w->sim))) {
		struct host *h = *host_of(w, ctx);

		must(sdr_net_progress(h->net), "progress");
		host_take(w, h);
		w->turns++;
	}
	w->steps++;
	(void)sdr_sim_step(w->sim, UINT64_MAX - 1);
}

static double user_s(void)
{
	struct rusage use;

	(void)getrusage(RUSAGE_SELF, &use);
	return (double)use.ru_utime.tv_sec + (double)use.ru_utime.tv_usec / 1e6;
}

static double peak_bytes(void)
{
	struct rusage use;

	(void)getrusage(RUSAGE_SELF, &use);
	return (double)use.ru_maxrss * 1024;
}

static uint64_t packets(const struct world *w, uint64_t *resent)
{
	uint64_t sum = 0;

	*resent = 0;
	for (uint64_t i = 0; i < w->nflows; i++) {
		struct sdr_conn_info info = {.size = sizeof(info)};

		(void)sdr_conn_query(w->flow[i].conn[0], &info);
		sum += info.tx_pkts;
		*resent += info.tx_resent_pkts;
	}
	return sum;
}

static void report(const struct world *w, double before_s, double base_bytes)
{
	double real_s = user_s() - before_s, virtual_s = (double)sdr_sim_now_ns(w->sim) / 1e9;
	uint64_t resent, n = packets(w, &resent);
	double path = (double)w->o.rate / 8e9 * 2 * (double)w->o.delay * (double)w->o.pairs;

	printf("%.2f M packets/s of one core: %.1f M data packets (%.4f M of them again) in %.2f "
	       "s, "
	       "%.0f ns each\n",
	       (double)n / real_s / 1e6, (double)n / 1e6, (double)resent / 1e6, real_s,
	       real_s / (double)n * 1e9);
	printf("%.3f s of virtual time, %.1f Gbit/s of payload a pair, %.2f M steps, %.2f M turns "
	       "of hosts\n",
	       virtual_s, (double)w->o.bytes * 8 / virtual_s / 1e9 / (double)w->o.pairs,
	       (double)w->steps / 1e6, (double)w->turns / 1e6);
	printf("peak memory %.1f MB (%.1f of it before the first write); rate x RTT of all pairs "
	       "is %.1f MB\n",
	       peak_bytes() / 1e6, base_bytes / 1e6, path / 1e6);
}

int main(int argc, char **argv)
{
	struct world w = {.o = options_get(argc, argv)};
	double before_s, base_bytes;

	world_open(&w);
	base_bytes = peak_bytes();
	before_s = user_s();
	while (w.left)
		step(&w);
	report(&w, before_s, base_bytes);
	world_close(&w);
	return 0;
}

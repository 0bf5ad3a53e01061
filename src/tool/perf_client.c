// SPDX-License-Identifier: Apache-2.0
/*
 * The client of sdr perf. For each size a connection of its own: the cold phase starts
 * before it is opened; then messages go until the rate is found; then the warm phase.
 * See perf.h.
 */
#include "tool/perf.h"

#include "tool/cli.h"
#include "tool/loss.h"
#include "tool/say.h"
#include "tool/session.h"

#include "base/units.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WAIT_NS (100 * NS_PER_MS)
#define CLOSE_NS (3 * NS_PER_S)
#define COLD_NS (1 * NS_PER_S)
#define WARM_NS (5 * NS_PER_S)
#define LAT_ITERS 1000
#define SETTLE_NS (10 * NS_PER_S) /* for the rate to be found */
#define PEAK_NS (100 * NS_PER_MS) /* the peak is the best of such stretches */
#define POLL_MAX 64
#define ECHOES 64u /* receives that latency keeps posted */

struct client {
	struct session s;
	const struct perf_opts *o;
	uint64_t size, depth;
	uint64_t start_ns; /* of the phase */
	uint8_t *out, *in; /* one message; ECHOES of them */
	uint64_t in_flight;
	struct {
		uint64_t since_ns, bytes;
	} stretch;
};

struct limits {
	uint64_t start_ns, messages, until_ns; /* of those that are not 0, the first counts */
	int until_rate;
};

static uint64_t mono_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static int rate_found(const struct client *c)
{
	struct sdr_conn_info info = {.size = sizeof info};

	return sdr_conn_query(c->s.conn, &info) >= 0 && info.rate_found;
}

static int is_over(const struct client *c, const struct limits *lim, uint64_t posted)
{
	if (c->s.over || cli_stop)
		return 1;
	if (lim->messages && posted >= lim->messages)
		return 1;
	/* At least one message, however short the time. */
	if (posted && lim->until_ns && mono_ns() >= lim->until_ns)
		return 1;
	return lim->until_rate && posted && rate_found(c);
}

/* ---- bandwidth ------------------------------------------------------------------ */

static void count_peak(struct client *c, struct perf_result *r, uint64_t now)
{
	uint64_t ns = now - c->stretch.since_ns;
	double bps;

	c->stretch.bytes += c->size;
	if (ns < PEAK_NS)
		return;
	bps = (double)c->stretch.bytes * 8e9 / (double)ns;
	if (bps > r->peak_bps)
		r->peak_bps = bps;
	c->stretch.since_ns = now;
	c->stretch.bytes = 0;
}

static void keep_times(const struct client *c, struct perf_result *r,
		       const struct sdr_completion *done)
{
	struct perf_times *t;

	if (!r->each || r->n_each == PERF_EACH_MAX)
		return;
	t = &r->each[r->n_each++];
	t->posted_ns = done->posted_ns > c->start_ns ? done->posted_ns - c->start_ns : 0;
	t->done_ns = done->done_ns > c->start_ns ? done->done_ns - c->start_ns : 0;
}

static void take_written(struct client *c, struct perf_result *r, uint64_t wait_ns)
{
	struct sdr_completion comp[POLL_MAX];
	int n = session_poll(&c->s, comp, POLL_MAX, wait_ns);
	uint64_t now = mono_ns();

	for (int i = 0; i < n; i++) {
		c->in_flight--;
		if (comp[i].status < 0)
			continue;
		r->messages++;
		hist_add(&r->hist, comp[i].done_ns - comp[i].posted_ns);
		keep_times(c, r, &comp[i]);
		count_peak(c, r, now);
	}
}

static void run_bw(struct client *c, struct perf_result *r, const struct limits *lim)
{
	uint64_t posted = 0;
	int over = 0;

	c->stretch.since_ns = lim->start_ns;
	c->stretch.bytes = 0;
	while (!c->s.over && (!over || c->in_flight)) {
		int full = 0;

		over = over || is_over(c, lim, posted);
		while (!over && !full && c->in_flight < c->depth &&
		       !(lim->messages && posted >= lim->messages)) {
			full = session_write(&c->s, c->out, c->size, NULL, c->out) < 0;
			c->in_flight += !full;
			posted += !full;
		}
		take_written(c, r, c->in_flight ? WAIT_NS : 0);
		if (cli_stop)
			break;
	}
	r->ns = mono_ns() - lim->start_ns;
}

/* ---- latency -------------------------------------------------------------------- */

/* Waits for the echo; its buffer is posted again. 0, or -1 if it will not come. */
static int take_echo(struct client *c)
{
	while (!c->s.over && !cli_stop) {
		struct sdr_completion comp[POLL_MAX];
		int n = session_poll(&c->s, comp, POLL_MAX, WAIT_NS), got = 0;

		for (int i = 0; i < n; i++) {
			if (!comp[i].is_recv || comp[i].status < 0)
				continue;
			got = 1;
			session_recv(&c->s, comp[i].cookie, c->size, comp[i].cookie);
		}
		if (got)
			return 0;
	}
	return -1;
}

static void run_lat(struct client *c, struct perf_result *r, const struct limits *lim)
{
	uint64_t posted = 0;

	while (!is_over(c, lim, posted)) {
		uint64_t sent_ns = mono_ns();

		if (session_write(&c->s, c->out, c->size, NULL, c->out) < 0) {
			take_echo(c);
			continue;
		}
		posted++;
		if (take_echo(c) < 0)
			break;
		r->messages++;
		hist_add(&r->hist, (mono_ns() - sent_ns) / 2);
	}
	r->ns = mono_ns() - lim->start_ns;
}

/* ---- phases --------------------------------------------------------------------- */

static void count_conn(const struct sdr_conn_info *was, const struct sdr_conn_info *is,
		       struct perf_result *r)
{
	memcpy(r->scheme, is->scheme, sizeof r->scheme);
	memcpy(r->write_scheme, is->write_scheme, sizeof r->write_scheme);
	memcpy(r->why, is->why, sizeof r->why);
	r->decisions = is->decisions - was->decisions;
	r->writes_coded = is->writes_coded - was->writes_coded;
	r->writes_no_room = is->writes_no_room - was->writes_no_room;
	r->repair_pkts = is->tx_repair_pkts - was->tx_repair_pkts;
	r->copy_pkts = is->tx_copy_pkts - was->tx_copy_pkts;
	r->recovered_pkts = is->tx_recovered_pkts - was->tx_recovered_pkts;
	r->channels = is->channels;
	r->payload_bytes = is->payload_bytes;
	r->rtt_ns = is->rtt_ns;
	r->resent_bytes = is->tx_resent_bytes - was->tx_resent_bytes;
	r->parity_bytes = is->tx_parity_bytes - was->tx_parity_bytes;
	r->tx_pkts = is->tx_pkts - was->tx_pkts;
	r->lost_pkts = loss_pkts(is) > loss_pkts(was) ? loss_pkts(is) - loss_pkts(was) : 0;
	r->rate_found = is->rate_found;
}

static struct perf_result *run_phase(struct client *c, const char *phase, const struct limits *lim)
{
	struct sdr_conn_info was = {.size = sizeof was}, is = {.size = sizeof is};
	struct perf_result *r = calloc(1, sizeof *r);

	if (!r)
		return NULL;
	if (c->o->each)
		r->each = calloc(PERF_EACH_MAX, sizeof *r->each);
	if (c->o->each && !r->each)
		say("no memory for the times of each message: they are left out");
	c->start_ns = lim->start_ns;
	r->phase = phase;
	r->size = c->size;
	hist_init(&r->hist);
	sdr_conn_query(c->s.conn, &was);
	if (c->o->lat)
		run_lat(c, r, lim);
	else
		run_bw(c, r, lim);
	sdr_conn_query(c->s.conn, &is);
	count_conn(&was, &is, r);
	if (r->peak_bps <= 0 && r->ns)
		r->peak_bps = (double)(r->messages * r->size) * 8e9 / (double)r->ns;
	return r;
}

static struct limits cold_limits(const struct perf_opts *o, uint64_t start_ns)
{
	struct limits lim = {.start_ns = start_ns, .messages = o->iters};

	if (o->lat) {
		lim.messages = 1; /* how long until the first is there and answered */
		return lim;
	}
	if (o->cold && (o->duration_ns || o->iters)) {
		lim.until_ns = o->duration_ns ? start_ns + o->duration_ns : 0;
		return lim;
	}
	lim.until_ns =
		start_ns + (o->duration_ns && o->duration_ns < COLD_NS ? o->duration_ns : COLD_NS);
	return lim;
}

static struct limits warm_limits(const struct perf_opts *o)
{
	struct limits lim = {.start_ns = mono_ns(), .messages = o->iters};

	if (o->duration_ns)
		lim.until_ns = lim.start_ns + o->duration_ns;
	else if (!o->iters && o->lat)
		lim.messages = LAT_ITERS;
	else if (!o->iters)
		lim.until_ns = lim.start_ns + WARM_NS;
	return lim;
}

static void result_free(struct perf_result *r)
{
	if (r)
		free(r->each);
	free(r);
}

/* Messages that are not counted, until the rate is found. */
static void settle(struct client *c)
{
	struct limits lim = {.start_ns = mono_ns(), .until_rate = 1};
	uint64_t depth = c->depth;

	if (c->o->settle_depth && !c->o->lat)
		c->depth = c->o->settle_depth;

	if (c->o->lat) {
		lim.until_rate = 0;
		lim.messages = 50; /* caches and estimators; there is no rate to find */
	}
	lim.until_ns = lim.start_ns + SETTLE_NS;
	result_free(run_phase(c, "settle", &lim));
	c->depth = depth;
	if (!c->o->lat && !c->s.over && !cli_stop && !rate_found(c) && !c->o->net.quiet)
		say("the rate was still growing after %u s: measured anyway",
		    (unsigned int)(SETTLE_NS / NS_PER_S));
}

/* ---- connections ---------------------------------------------------------------- */

static int begin(struct client *c, const struct target *to, int more)
{
	struct hello h = {.version = HELLO_VERSION, .kind = HELLO_PERF};

	h.arg[PERF_ARG_SIZE] = c->size;
	h.arg[PERF_ARG_DEPTH] = c->o->settle_depth > c->depth ? c->o->settle_depth : c->depth;
	h.arg[PERF_ARG_LAT] = c->o->lat;
	h.arg[PERF_ARG_MORE] = (uint64_t)more;
	if (session_connect(&c->s, to) < 0 || session_hello(&c->s, &h) < 0)
		return -1;
	for (unsigned int i = 0; c->o->lat && i < ECHOES; i++) {
		uint8_t *buf = c->in + i * c->size;

		if (session_recv(&c->s, buf, c->size, buf) < 0)
			return -1;
	}
	return 0;
}

static void keep(const struct client *c, struct perf_result *r, struct perf_result ***tail)
{
	if (!r)
		return;
	if (r->messages == 0) {
		result_free(r);
		return;
	}
	if (!c->o->net.json)
		perf_print_line(c->o, r);
	**tail = r;
	*tail = &r->next;
}

static void measure_on(struct client *c, uint64_t start_ns, struct perf_result ***tail)
{
	struct limits lim = cold_limits(c->o, start_ns);

	keep(c, run_phase(c, "cold", &lim), tail);
	if (c->o->cold)
		return;
	if (!c->s.over && !cli_stop)
		settle(c);
	if (c->s.over || cli_stop)
		return;
	lim = warm_limits(c->o);
	keep(c, run_phase(c, "warm", &lim), tail);
}

static int measure_size(struct client *c, const struct target *to, int more,
			struct perf_result ***tail)
{
	uint64_t start_ns = mono_ns();
	int rc = -1;

	if (session_open(&c->s, &c->o->net, 0) < 0)
		return -1;
	c->s.busy = (int)c->o->busy;
	c->in_flight = 0;
	c->depth = c->o->lat ? ECHOES : c->o->depth;
	c->out = calloc(1, (size_t)c->size);
	c->in = calloc(ECHOES, c->o->lat ? (size_t)c->size : 1);
	if (!c->out || !c->in)
		say("no memory for messages of %" PRIu64 " bytes: lower --size", c->size);
	else if (begin(c, to, more) == 0)
		measure_on(c, start_ns, tail);
	if (cli_stop)
		say("interrupted");
	else if (c->s.over)
		say("%s", c->s.text);
	else
		rc = c->out && c->in ? 0 : -1;
	session_close(&c->s, CLOSE_NS);
	session_fini(&c->s);
	free(c->out);
	free(c->in);
	return rc;
}

int perf_measure(const struct perf_opts *o, const struct target *to)
{
	struct client *c = calloc(1, sizeof *c);
	struct perf_result *first = NULL, **tail = &first;
	int rc = 0;

	if (!c)
		return CLI_FAILED;
	c->o = o;
	if (!o->net.json)
		perf_print_head(o);
	for (size_t i = 0; rc == 0 && i < o->sizes.n; i++) {
		c->size = o->sizes.bytes[i];
		rc = measure_size(c, to, i + 1 < o->sizes.n, &tail);
	}
	if (o->net.json)
		perf_print_json(o, first);
	while (first) {
		struct perf_result *next = first->next;

		result_free(first);
		first = next;
	}
	free(c);
	return rc < 0 ? CLI_FAILED : CLI_OK;
}

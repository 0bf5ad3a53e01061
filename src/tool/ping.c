// SPDX-License-Identifier: Apache-2.0
/*
 * sdr ping: round-trip time, loss and reordering of a path, by channel. Connects to any
 * listener of the `sdr` command (the library answers PINGs, also while the command
 * there is busy) and sends nothing else. `--listen` is such a listener and no more.
 */
#include "tool/cli.h"

#include "tool/hist.h"
#include "tool/json.h"
#include "tool/opts.h"
#include "tool/say.h"
#include "tool/session.h"

#include "base/units.h"

#include <inttypes.h>
#include <stdlib.h>

#define CLOSE_NS (2 * NS_PER_S)
#define GRACE_NS (1 * NS_PER_S) /* for the last answers, at least */

struct ping_opts {
	struct net_opts net;
	uint64_t count, interval_ns, listen;
};

#define FIELD(field) offsetof(struct ping_opts, field)
static const struct opt ping_table[] = {
	{"count", 'c', OPT_UINT, FIELD(count), 1, UINT64_C(1) << 40, "N",
	 "end after so many (until Ctrl-C)"},
	{"interval", 'i', OPT_TIME, FIELD(interval_ns), NS_PER_MS, 3600 * NS_PER_S, "TIME",
	 "time between two (1s)"},
	{"listen", 'l', OPT_FLAG, FIELD(listen), 0, 0, NULL, "be the end that answers"},
	{0},
};

struct channel {
	struct sdr_channel_facts first, last; /* when we began; when last looked at */
	struct hist rtt;
};

struct pinger {
	struct session s;
	const struct ping_opts *o;
	uint32_t nchannels;
	uint64_t pings;
	struct channel channel[SDR_MAX_CHANNELS];
	struct sdr_conn_info info;
};

/* ---- measuring ------------------------------------------------------------------ */

static int look(struct pinger *p, uint32_t ch, struct sdr_channel_facts *out)
{
	*out = (struct sdr_channel_facts){.size = sizeof *out};
	return sdr_channel_facts_get(sdr_conn_qp(p->s.conn), ch, out);
}

/* A PONG since the last look brought a new round-trip time. */
static void sample(struct pinger *p, uint32_t ch)
{
	struct channel *c = &p->channel[ch];
	struct sdr_channel_facts now;
	char rtt[UNITS_TEXT];

	if (look(p, ch, &now) < 0)
		return;
	if (now.pongs_received == c->last.pongs_received) {
		c->last.pings_sent = now.pings_sent;
		return;
	}
	c->last = now;
	hist_add(&c->rtt, now.rtt_ns);
	if (!p->o->net.quiet && !p->o->net.json)
		out("from %s: channel %u, ping %" PRIu64 ", time %s", p->s.peer, ch, p->pings,
		    units_time_text(rtt, now.rtt_ns));
}

static void wait_until(struct pinger *p, uint64_t until_ns)
{
	struct sdr_completion c;

	while (!cli_stop && !p->s.over) {
		uint64_t now = session_now(&p->s);

		for (uint32_t ch = 0; ch < p->nchannels; ch++)
			sample(p, ch);
		if (now >= until_ns)
			break;
		session_poll(&p->s, &c, 1,
			     until_ns - now < 20 * NS_PER_MS ? until_ns - now : 20 * NS_PER_MS);
	}
}

static int all_answered(const struct pinger *p)
{
	for (uint32_t ch = 0; ch < p->nchannels; ch++) {
		const struct channel *c = &p->channel[ch];

		if (c->last.pongs_received - c->first.pongs_received < p->pings)
			return 0;
	}
	return 1;
}

static void wait_for_last(struct pinger *p)
{
	uint64_t grace = GRACE_NS, until;

	for (uint32_t ch = 0; ch < p->nchannels; ch++) {
		if (3 * p->channel[ch].last.rtt_ns > grace)
			grace = 3 * p->channel[ch].last.rtt_ns;
	}
	until = session_now(&p->s) + grace;
	while (!all_answered(p) && !p->s.over && !cli_stop && session_now(&p->s) < until)
		wait_until(p, session_now(&p->s) + 5 * NS_PER_MS);
}

static void measure(struct pinger *p)
{
	struct sdr_conn_info info = {.size = sizeof info};
	uint64_t next = session_now(&p->s);

	sdr_conn_query(p->s.conn, &info);
	p->nchannels = info.channels < 1 ? 1 : info.channels;
	for (uint32_t ch = 0; ch < p->nchannels; ch++) {
		hist_init(&p->channel[ch].rtt);
		look(p, ch, &p->channel[ch].first);
		p->channel[ch].last = p->channel[ch].first;
	}
	while (!cli_stop && !p->s.over && (!p->o->count || p->pings < p->o->count)) {
		sdr_qp_ping(sdr_conn_qp(p->s.conn));
		p->pings++;
		next += p->o->interval_ns;
		if (p->o->count && p->pings == p->o->count)
			break;
		wait_until(p, next);
	}
	wait_for_last(p);
	p->info.size = sizeof p->info;
	sdr_conn_query(p->s.conn, &p->info);
}

/* ---- telling -------------------------------------------------------------------- */

static uint64_t sent_of(const struct channel *c)
{
	return c->last.pings_sent - c->first.pings_sent;
}

static uint64_t received_of(const struct channel *c)
{
	return c->last.pongs_received - c->first.pongs_received;
}

static double loss_of(const struct channel *c)
{
	uint64_t sent = sent_of(c), received = received_of(c);

	return sent && received < sent ? (double)(sent - received) / (double)sent : 0;
}

static void print_text(const struct pinger *p)
{
	char min[UNITS_TEXT], avg[UNITS_TEXT], max[UNITS_TEXT], dev[UNITS_TEXT];

	out("--- %s ---", p->s.peer);
	for (uint32_t ch = 0; ch < p->nchannels; ch++) {
		const struct channel *c = &p->channel[ch];

		out("channel %u: %" PRIu64 " sent, %" PRIu64 " answered, %.3g %% loss, %" PRIu64
		    " reordered",
		    ch, sent_of(c), received_of(c), 100 * loss_of(c),
		    c->last.reordered_pkts - c->first.reordered_pkts);
		if (c->rtt.n)
			out("channel %u: rtt min/avg/max/mdev = %s / %s / %s / %s", ch,
			    units_time_text(min, c->rtt.min),
			    units_time_text(avg, (uint64_t)c->rtt.mean),
			    units_time_text(max, c->rtt.max),
			    units_time_text(dev, (uint64_t)hist_stdev(&c->rtt)));
	}
}

static void print_json(const struct pinger *p, int failed)
{
	struct json j;

	json_init(&j, stdout);
	json_object_begin(&j, NULL);
	json_text(&j, "command", "ping");
	json_text(&j, "status", failed ? "failed" : "ok");
	json_text(&j, "error", failed && *p->s.text ? p->s.text : NULL);
	json_text(&j, "peer", p->s.peer);
	json_uint(&j, "reordered_pkts", p->info.rx_reordered_pkts);
	json_array_begin(&j, "channels");
	for (uint32_t ch = 0; ch < p->nchannels; ch++) {
		const struct channel *c = &p->channel[ch];

		json_object_begin(&j, NULL);
		json_uint(&j, "channel", ch);
		json_text(&j, "address", c->last.peer);
		json_uint(&j, "sent", sent_of(c));
		json_uint(&j, "received", received_of(c));
		json_uint(&j, "reordered_pkts", c->last.reordered_pkts - c->first.reordered_pkts);
		json_real(&j, "loss", loss_of(c));
		json_uint(&j, "rtt_min_ns", c->rtt.n ? c->rtt.min : 0);
		json_real(&j, "rtt_avg_ns", c->rtt.mean);
		json_uint(&j, "rtt_max_ns", c->rtt.max);
		json_real(&j, "rtt_mdev_ns", hist_stdev(&c->rtt));
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	json_finish(&j);
}

static int ping(struct pinger *p, const struct target *to)
{
	uint64_t answered = 0;
	int failed = 1;

	if (session_open(&p->s, &p->o->net, 0) < 0)
		return CLI_FAILED;
	if (session_connect(&p->s, to) == 0) {
		measure(p);
		for (uint32_t ch = 0; ch < p->nchannels; ch++)
			answered += received_of(&p->channel[ch]);
		failed = answered == 0 || p->s.over;
		if (!p->o->net.json)
			print_text(p);
	}
	if (p->s.over)
		say("%s", p->s.text);
	if (p->o->net.json)
		print_json(p, failed);
	session_close(&p->s, CLOSE_NS);
	session_fini(&p->s);
	return failed ? CLI_FAILED : CLI_OK;
}

/* ---- the other end -------------------------------------------------------------- */

static int answer(struct pinger *p)
{
	struct hello h;

	if (session_open(&p->s, &p->o->net, SESSION_LISTEN) < 0)
		return CLI_FAILED;
	session_listening(&p->s, "ping");
	/* No hello is of this kind: whoever wants more than PINGs is refused. */
	session_accept(&p->s, HELLO_NONE, "sdr ping --listen", &h);
	session_fini(&p->s);
	return CLI_OK;
}

static int run(int argc, char **argv)
{
	struct ping_opts o = {.interval_ns = NS_PER_S};
	struct target to;
	struct pinger *p;
	int first, rc;

	first = opts_parse(&cmd_ping, argc, argv, &o, &rc);
	if (first < 0)
		return rc;
	if (o.listen ? argc != first : argc - first != 1)
		return opts_usage(&cmd_ping, "needs one HOST, or --listen and none");
	if (!o.listen && target_parse(argv[first], o.net.port, &to) < 0)
		return CLI_USAGE;
	p = calloc(1, sizeof *p);
	if (!p)
		return CLI_FAILED;
	p->o = &o;
	rc = o.listen ? answer(p) : ping(p, &to);
	free(p);
	return rc;
}

const struct command cmd_ping = {
	.name = "ping",
	.synopsis = "[OPTION]... HOST[:PORT]\n       sdr ping --listen [OPTION]...",
	.summary = "measure round-trip time and loss of a path, by channel",
	.opts = ping_table,
	.network = 1,
	.run = run,
};

// SPDX-License-Identifier: Apache-2.0
/*
 * Opening, connecting, polling, ending. See session.h; what a server does with those
 * who wait is in session_server.c.
 */
#include "tool/session.h"

#include "tool/say.h"
#include "tool/session_impl.h"

#include "base/units.h"

#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLL_NS (100 * NS_PER_MS) /* how soon Ctrl-C is noticed */
#define DRAIN 64

/* ---- opening ------------------------------------------------------------------ */

static const char *device_name(const struct net_opts *o)
{
	const char *env = getenv("SDR_DEVICE");

	if (o->device)
		return o->device;
	return env && *env ? env : NULL;
}

static void say_open_error(const struct net_opts *o, int err)
{
	unsigned int port = (unsigned int)(o->port ? o->port : SDR_DEFAULT_PORT);

	switch (-err) {
	case EADDRINUSE:
		say("port %u is in use by another program: choose another with --port, or stop "
		    "that one",
		    port);
		return;
	case EACCES:
		say("port %u needs privileges: choose one above 1023 with --port", port);
		return;
	case ENODEV:
		say("--device %s: there is no such device: udp, roce, verbs or verbs:NAME ('sdr "
		    "doctor' "
		    "lists the RDMA devices)",
		    device_name(o));
		return;
	case EADDRNOTAVAIL:
		say("--bind %s: no address of this host: see 'ip address'", o->bind);
		return;
	default:
		say("the network cannot be opened: %s", sdr_strerror(err));
	}
}

static const char *bind_addr(const struct net_opts *o)
{
	if (o->bind)
		return o->bind;
	return o->v4 ? "0.0.0.0" : o->v6 ? "::" : NULL;
}

int session_open(struct session *s, const struct net_opts *opts, unsigned int flags)
{
	int listens = (flags & SESSION_LISTEN) != 0;
	struct sdr_net_attr attr = {.size = sizeof attr};
	char why[512] = "";
	int rc;

	*s = (struct session){.opts = opts};
	attr.ctx.size = sizeof attr.ctx;
	attr.ctx.device = device_name(opts);
	attr.ctx.why = why;
	attr.ctx.why_len = sizeof why;
	attr.ctx.bind_addr = bind_addr(opts);
	attr.ctx.listen = (uint8_t)listens;
	attr.ctx.port = (uint16_t)(listens ? (opts->port ? opts->port : SDR_DEFAULT_PORT) : 0);
	attr.ctx.workers = (uint32_t)opts->workers;
	attr.ctx.max_payload_bytes = (uint32_t)opts->payload_bytes;
	attr.thread = (flags & SESSION_THREAD) != 0;
	rc = sdr_net_create(&attr, &s->net);
	if (rc >= 0 && listens) {
		struct sdr_conn_attr conn = session_conn_attr(opts);

		rc = sdr_conn_listen(s->net, &conn);
	}
	if (rc < 0) {
		if (*why)
			say("%s", why);
		else
			say_open_error(opts, rc);
		session_fini(s);
		return -1;
	}
	return 0;
}

void session_fini(struct session *s)
{
	session_drop(s);
	session_drop_waiting(s);
	sdr_net_destroy(s->net);
	s->net = NULL;
}

void session_register(struct session *s, void *addr, size_t len)
{
	s->region.addr = addr;
	s->region.len = len;
	if (sdr_mr_reg(sdr_net_ctx(s->net), addr, len, 0, &s->region.mr) < 0)
		s->region.mr = NULL; /* software devices need none; others fail at the post */
}

void session_unregister(struct session *s)
{
	if (s->region.mr)
		sdr_mr_dereg(s->region.mr);
	s->region.mr = NULL;
}

static struct sdr_mr *region_of(const struct session *s, const void *buf)
{
	const uint8_t *p = buf;

	return p >= s->region.addr && p < s->region.addr + s->region.len ? s->region.mr : NULL;
}

void session_listening(struct session *s, const char *who)
{
	char advice[256] = "";

	if (s->opts->quiet)
		return;
	say("%s: listening on port %u (UDP and TCP); Ctrl-C ends it", who, sdr_net_port(s->net));
	if (sdr_ctx_advice(sdr_net_ctx(s->net), advice, sizeof advice) >= 0 && *advice)
		say("for more speed: %s", advice);
}

struct sdr_conn_attr session_conn_attr(const struct net_opts *o)
{
	return (struct sdr_conn_attr){
		.size = sizeof(struct sdr_conn_attr),
		.scheme = o->scheme,
		.channels = (uint32_t)o->channels,
		.max_payload_bytes = (uint32_t)o->payload_bytes,
		.rate_bps = o->rate_bps,
		.connect_timeout_ns = o->connect_timeout_ns,
		.dead_after_ns = o->dead_after_ns,
	};
}

/* ---- connecting --------------------------------------------------------------- */

/* With -4 or -6 the name is looked up here; else the library does it. */
static int numeric_host(struct session *s, const char *host, char *buf, size_t cap)
{
	const struct net_opts *o = s->opts;
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *res;
	int rc;

	snprintf(buf, cap, "%s", host);
	if (!o->v4 && !o->v6)
		return 0;
	hints.ai_family = o->v4 ? AF_INET : AF_INET6;
	rc = getaddrinfo(host, NULL, &hints, &res);
	if (rc == 0) {
		rc = getnameinfo(res->ai_addr, res->ai_addrlen, buf, (socklen_t)cap, NULL, 0,
				 NI_NUMERICHOST);
		freeaddrinfo(res);
	}
	if (rc != 0)
		session_fail(s, -EHOSTUNREACH,
			     "%s: no %s address found: %s: check the name, or leave out %s", host,
			     o->v4 ? "IPv4" : "IPv6", gai_strerror(rc), o->v4 ? "-4" : "-6");
	return rc == 0 ? 0 : -1;
}

int session_connect(struct session *s, const struct target *to)
{
	struct sdr_conn_attr attr = session_conn_attr(s->opts);
	struct sdr_completion c;
	char host[1025];
	int rc;

	snprintf(s->peer, sizeof s->peer, strchr(to->host, ':') ? "[%.80s]:%u" : "%.80s:%u",
		 to->host, to->port);
	if (numeric_host(s, to->host, host, sizeof host) < 0)
		return -1;
	rc = sdr_conn_connect(s->net, host, to->port, &attr, &s->conn);
	if (rc < 0)
		session_fail(s, rc, "%s: cannot connect: %s", s->peer, sdr_strerror(rc));
	while (!s->connected && !s->over) {
		session_poll(s, &c, 1, POLL_NS);
		if (cli_stop)
			session_fail(s, -EINTR, "interrupted while connecting to %s", s->peer);
	}
	return s->over ? -1 : 0;
}

int session_hello(struct session *s, const struct hello *h)
{
	int rc;

	hello_put(h, s->hello_buf);
	rc = session_recv(s, s->greeting_buf, sizeof s->greeting_buf, s->greeting_buf);
	if (rc == 0)
		rc = session_write(s, s->hello_buf, sizeof s->hello_buf, NULL, s->hello_buf);
	return rc;
}

static void take_greeting(struct session *s, const struct sdr_completion *c)
{
	struct greeting g;

	if (c->status < 0) {
		session_fail(s, c->status, "%s: %s", s->peer, sdr_strerror(c->status));
		return;
	}
	if (greeting_get(s->greeting_buf, c->length, &g) < 0) {
		session_fail(s, -SDR_E_MALFORMED,
			     "%s does not speak the language of this command: is it the port of "
			     "'sdr recv' or 'sdr perf'?",
			     s->peer);
		return;
	}
	if (g.refused)
		session_fail(s, -ECONNREFUSED, "%s refuses: %s", s->peer, g.text);
	else
		s->greeted = 1;
}

/* ---- events and completions ------------------------------------------------------ */

void session_fail(struct session *s, int status, const char *fmt, ...)
{
	va_list args;

	if (s->over)
		return;
	va_start(args, fmt);
	vsnprintf(s->text, sizeof s->text, fmt, args);
	va_end(args);
	s->status = status;
	s->over = 1;
}

/* The library's own words where it has some. */
static void end_by_event(struct session *s, const struct sdr_event *ev)
{
	int status = ev->type == SDR_EV_CLOSED ? 0 : ev->status ? ev->status : -SDR_E_DEAD;

	if (*ev->text)
		session_fail(s, status, "%s", ev->text);
	else
		session_fail(s, status, "%s: %s", s->peer,
			     sdr_strerror(status ? status : SDR_E_CLOSED));
}

static void event_of_conn(struct session *s, const struct sdr_event *ev)
{
	char text[UNITS_TEXT];

	switch (ev->type) {
	case SDR_EV_CONNECTED:
		s->connected = 1;
		break;
	case SDR_EV_STALLED:
		units_time_text(text,
				s->opts->dead_after_ns ? s->opts->dead_after_ns : 30 * NS_PER_S);
		if (!s->opts->quiet)
			say("%s has fallen silent; waiting up to %s (--dead-after)", s->peer, text);
		break;
	case SDR_EV_RECOVERED:
		if (!s->opts->quiet)
			say("%s is heard again", s->peer);
		break;
	default:
		end_by_event(s, ev);
	}
}

static void take_events(struct session *s)
{
	struct sdr_event ev = {.size = sizeof ev};

	while (sdr_net_event(s->net, &ev) == 1) {
		if (ev.type == SDR_EV_ACCEPTED)
			session_wait_add(s, ev.conn);
		else if (s->conn && ev.conn == s->conn)
			event_of_conn(s, &ev);
		else
			session_wait_event(s, &ev);
		ev.size = sizeof ev;
	}
}

/* 1 if it is the caller's. */
static int sort_completion(struct session *s, const struct sdr_completion *c)
{
	if (c->conn != s->conn || !s->conn) {
		session_wait_completion(s, c);
		return 0;
	}
	if (c->cookie == s->hello_buf)
		return 0;
	if (c->cookie != s->greeting_buf)
		return 1;
	if (c->is_recv)
		take_greeting(s, c);
	else
		s->greeting_sent = 1;
	return 0;
}

static int take_completions(struct session *s, struct sdr_completion *c, int max)
{
	int kept = 0, n;

	do {
		n = sdr_net_poll(s->net, c + kept, max - kept);
		for (int i = 0, at = kept; i < n; i++) {
			if (sort_completion(s, &c[at + i]))
				c[kept++] = c[at + i];
		}
	} while (n > 0 && kept < max);
	return kept;
}

int session_poll(struct session *s, struct sdr_completion *c, int max, uint64_t wait_ns)
{
	int n;

	for (int i = 0; i < max; i++)
		c[i].size = sizeof *c;
	n = take_completions(s, c, max);
	if (n == 0 && wait_ns) {
		if (s->busy)
			sdr_net_progress(s->net);
		else
			sdr_net_wait(s->net, session_now(s) + wait_ns);
		n = take_completions(s, c, max);
	}
	/* Completions first: what arrived before a CLOSE counts. */
	if (n == 0)
		take_events(s);
	return n;
}

uint64_t session_now(const struct session *s)
{
	return sdr_now_ns(sdr_net_ctx(s->net));
}

static int post_result(struct session *s, int rc)
{
	if (rc < 0 && rc != -EAGAIN) {
		/* The reason comes as an event, if the connection has just ended. */
		take_events(s);
		session_fail(s, rc, "%s: %s", s->peer, sdr_strerror(rc));
	}
	return rc < 0 ? rc : 0;
}

int session_write(struct session *s, const void *buf, uint64_t len, const uint32_t *imm,
		  void *cookie)
{
	struct sdr_op_wr wr = {.size = sizeof wr, .length = len, .cookie = cookie};
	struct sdr_op *op;

	if (s->over)
		return s->status ? s->status : -SDR_E_CLOSED;
	memcpy(&wr.addr, &buf, sizeof wr.addr); /* a write's buffer is only read */
	wr.mr = region_of(s, buf);
	if (imm) {
		wr.imm = *imm;
		wr.flags = SDR_OP_HAS_IMM;
	}
	return post_result(s, sdr_write_post(s->conn, &wr, &op));
}

int session_recv(struct session *s, void *buf, uint64_t len, void *cookie)
{
	struct sdr_op_wr wr = {.size = sizeof wr, .addr = buf, .length = len, .cookie = cookie};
	struct sdr_op *op;

	if (s->over)
		return s->status ? s->status : -SDR_E_CLOSED;
	wr.mr = region_of(s, buf);
	return post_result(s, sdr_conn_recv_post(s->conn, &wr, &op));
}

/* ---- ending ---------------------------------------------------------------------- */

void session_linger(struct session *s, uint64_t wait_ns)
{
	uint64_t until = session_now(s) + wait_ns;
	struct sdr_completion c[DRAIN];

	while (s->conn && !s->over && session_now(s) < until && !cli_stop)
		session_poll(s, c, DRAIN, POLL_NS);
	session_drop(s);
}

void session_close(struct session *s, uint64_t wait_ns)
{
	if (s->conn && !s->over)
		sdr_conn_close(s->conn);
	session_linger(s, wait_ns);
}

void session_drop(struct session *s)
{
	struct sdr_conn *conn = s->conn;
	struct sdr_completion c[DRAIN];

	if (!conn)
		return;
	sdr_conn_destroy(conn);
	/* What is left of it in the queue goes before another can have its address. */
	while (session_poll(s, c, DRAIN, 0) > 0)
		;
	s->conn = NULL;
	s->connected = s->greeted = 0;
	sdr_net_progress(s->net); /* the RESET leaves */
}

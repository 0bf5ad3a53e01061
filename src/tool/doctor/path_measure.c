// SPDX-License-Identifier: Apache-2.0
/*
 * Measures the path to HOST with connections of its own. See path.h. Nothing is judged.
 *
 *	1. connect, PINGs, trains: any listener of the `sdr` command answers them
 *	2. one full packet, then a stream, as a client of `sdr perf`; where the full packet
 *	   does not arrive, smaller ones on connections of their own until one does
 *	3. an echo: the server writes back, so that this end receives
 */
#include "tool/doctor/path.h"

#include "tool/cli.h"
#include "tool/perf.h"
#include "tool/session.h"

#include "base/units.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECT_NS (5 * NS_PER_S)
#define CLOSE_NS (2 * NS_PER_S)
#define ANSWER_NS (3 * NS_PER_S)   /* for an answer that takes a round trip or two, at least */
#define PATIENCE_NS (1 * NS_PER_S) /* beyond round trips: the other host may be busy */
#define FULL_NS (2 * NS_PER_S)	   /* for one full packet, resends included */
#define STREAM_NS (5 * NS_PER_S)
#define SLICE_NS (20 * NS_PER_MS)
#define PING_GAP_NS (20 * NS_PER_MS)
#define TRAINS 3u
#define TRAIN_PKTS 16u
#define MESSAGE_MIN (UINT64_C(64) << 10)
#define MESSAGE_MAX (UINT64_C(1) << 20)
#define ECHO_BYTES (UINT64_C(64) << 10)
#define ECHO_DEPTH 16u
#define ECHOES 32u
#define POLL_MAX 64
#define UNWRITTEN 0xa5	  /* what an echo's buffer holds before it */
#define UNWRITTEN_RUN 64u /* shorter than any packet, longer than chance */

struct probe {
	struct session s;
	struct net_opts net;
	const struct path_opts *o;
	struct path_facts *p;
	uint8_t *out, *in;
	uint64_t message_bytes, depth;
};

/* ---- the route ------------------------------------------------------------------ */

static void address_text(const struct sockaddr *sa, char *buf, size_t cap)
{
	const struct sockaddr_in6 *v6 = (const void *)sa;
	const struct sockaddr_in *v4 = (const void *)sa;

	*buf = '\0';
	if (sa->sa_family == AF_INET)
		inet_ntop(AF_INET, &v4->sin_addr, buf, (socklen_t)cap);
	else if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
		inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], buf, (socklen_t)cap);
	else
		inet_ntop(AF_INET6, &v6->sin6_addr, buf, (socklen_t)cap);
}

/* What this host would send from, and the MTU that it knows of. */
static int look_at_route(const struct addrinfo *to, struct path_facts *p)
{
	int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), mtu = 0;
	int v6 = to->ai_family == AF_INET6, rc = -1;
	struct sockaddr_storage local;
	socklen_t len = sizeof local, mtu_len = sizeof mtu;

	if (fd < 0)
		return -1;
	if (connect(fd, to->ai_addr, to->ai_addrlen) == 0 &&
	    getsockname(fd, (struct sockaddr *)&local, &len) == 0) {
		address_text((struct sockaddr *)&local, p->local, sizeof p->local);
		address_text(to->ai_addr, p->peer, sizeof p->peer);
		p->is_v6 = v6;
		if (getsockopt(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_MTU : IP_MTU, &mtu,
			       &mtu_len) == 0 &&
		    mtu > 0)
			p->route_mtu = (uint32_t)mtu;
		rc = 0;
	}
	close(fd);
	return rc;
}

static void find_route(const struct probe *x, const char *host)
{
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *res, *a;
	char port[8];

	hints.ai_family = x->net.v4 ? AF_INET : x->net.v6 ? AF_INET6 : AF_UNSPEC;
	snprintf(port, sizeof port, "%u", x->o->to.port);
	if (getaddrinfo(host, port, &hints, &res) != 0)
		return;
	for (a = res; a && look_at_route(a, x->p) < 0; a = a->ai_next)
		;
	freeaddrinfo(res);
}

/* The address that the connection really uses. */
static void peer_host(const struct probe *x, char *buf, size_t cap)
{
	struct sdr_channel_facts c = {.size = sizeof c};
	const char *from = c.peer;
	size_t len;

	*buf = '\0';
	if (sdr_channel_facts_get(sdr_conn_qp(x->s.conn), 0, &c) < 0)
		return;
	len = strcspn(c.peer, "]");
	if (*from == '[') {
		from++;
		len--;
	} else {
		const char *colon = strrchr(c.peer, ':');

		len = colon ? (size_t)(colon - c.peer) : strlen(c.peer);
	}
	if (len < cap) {
		memcpy(buf, from, len);
		buf[len] = '\0';
	}
}

/* ---- small things --------------------------------------------------------------- */

static uint64_t mono_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static uint64_t cpu_ns(void)
{
	struct rusage u;

	if (getrusage(RUSAGE_SELF, &u) < 0)
		return 0;
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_S +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * NS_PER_US;
}

static uint64_t patience_ns(const struct path_facts *p)
{
	uint64_t ten = 10 * p->rtt_median_ns;

	return ten > ANSWER_NS ? ten : ANSWER_NS;
}

static struct sdr_conn_info conn_info(const struct probe *x)
{
	struct sdr_conn_info info = {.size = sizeof info};

	if (x->s.conn)
		sdr_conn_query(x->s.conn, &info);
	return info;
}

static struct sdr_channel_facts channel(const struct probe *x)
{
	struct sdr_channel_facts c = {.size = sizeof c};

	(void)sdr_channel_facts_get(sdr_conn_qp(x->s.conn), 0, &c);
	return c;
}

static void add_counters(const struct probe *x, struct stream_facts *f)
{
	(void)sdr_counters_get(sdr_net_ctx(x->s.net), f->counter, SDR_CTR_COUNT);
}

/* ---- small and middle packets --------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* One PING at a time: the library keeps the nonces of few. */
static uint64_t ping_once(struct probe *x, uint64_t wait_ns)
{
	uint64_t before = channel(x).pongs_received, until = mono_ns() + wait_ns;
	struct sdr_completion c;

	if (sdr_qp_ping(sdr_conn_qp(x->s.conn)) < 0)
		return 0;
	while (!x->s.over && !cli_stop && mono_ns() < until) {
		session_poll(&x->s, &c, 1, SLICE_NS);
		if (channel(x).pongs_received > before)
			return channel(x).rtt_ns;
	}
	return 0;
}

static void measure_pings(struct probe *x)
{
	struct sdr_channel_facts first = channel(x), last;
	uint64_t rtt[PATH_PINGS], n = 0, wait = 2 * first.rtt_ns + PATIENCE_NS;
	struct sdr_completion c;

	for (unsigned int i = 0; i < PATH_PINGS && !x->s.over && !cli_stop; i++) {
		uint64_t one = ping_once(x, wait), until = mono_ns() + PING_GAP_NS;

		x->p->pings_sent++;
		if (one)
			rtt[n++] = one;
		while (!x->s.over && mono_ns() < until)
			session_poll(&x->s, &c, 1, PING_GAP_NS / 4);
	}
	last = channel(x);
	x->p->pings_answered = n;
	x->p->reordered_pkts = last.reordered_pkts - first.reordered_pkts;
	x->p->rtt_min_ns = last.rtt_min_ns;
	if (n) {
		qsort(rtt, (size_t)n, sizeof *rtt, by_value);
		x->p->rtt_median_ns = rtt[n / 2];
	}
}

static void measure_trains(struct probe *x)
{
	struct sdr_train_info was = {.size = sizeof was}, is = {.size = sizeof is};
	struct sdr_qp *qp = sdr_conn_qp(x->s.conn);
	uint64_t until;
	struct sdr_completion c;

	if (sdr_qp_train_query(qp, 0, &was) < 0)
		return;
	for (unsigned int i = 0; i < TRAINS; i++) {
		if (sdr_qp_train_send(qp, 0, TRAIN_PKTS) == 0)
			x->p->trains_sent++;
		session_poll(&x->s, &c, 1, PING_GAP_NS);
	}
	until = mono_ns() + 2 * x->p->rtt_median_ns + PATIENCE_NS;
	do {
		session_poll(&x->s, &c, 1, SLICE_NS);
		sdr_qp_train_query(qp, 0, &is);
	} while (is.seen - was.seen < x->p->trains_sent && !x->s.over && !cli_stop &&
		 mono_ns() < until);
	x->p->trains_seen = is.seen - was.seen;
	for (unsigned int i = 0; i < SDR_TRAINS; i++) {
		if (is.rate_bps[i] > x->p->train_bps)
			x->p->train_bps = is.rate_bps[i];
	}
}

/* ---- a connection of its own ---------------------------------------------------- */

static int probe_connect(struct probe *x)
{
	uint64_t began = mono_ns();
	int rc;

	if (session_open(&x->s, &x->net, 0) < 0) {
		x->p->status = -ENETDOWN;
		snprintf(x->p->text, sizeof x->p->text, "the network cannot be opened");
		return -1;
	}
	rc = session_connect(&x->s, &x->o->to);
	x->p->connect_ns = mono_ns() - began;
	return rc;
}

static int probe_hello(struct probe *x, int lat, int more)
{
	struct hello h = {.version = HELLO_VERSION, .kind = HELLO_PERF};
	uint64_t until = mono_ns() + patience_ns(x->p);
	struct sdr_completion c;

	h.arg[PERF_ARG_SIZE] = x->message_bytes;
	h.arg[PERF_ARG_DEPTH] = x->depth;
	h.arg[PERF_ARG_LAT] = (uint64_t)lat;
	h.arg[PERF_ARG_MORE] = (uint64_t)more;
	if (session_hello(&x->s, &h) < 0)
		return -1;
	while (!x->s.greeted && !x->s.over && !cli_stop && mono_ns() < until)
		session_poll(&x->s, &c, 1, SLICE_NS);
	return x->s.greeted ? 0 : -1;
}

/* Completions of writes until `want` bytes are there or the time is over; bytes that are. */
static uint64_t await_writes(struct probe *x, uint64_t want, uint64_t until_ns)
{
	struct sdr_completion c[POLL_MAX];
	uint64_t bytes = 0;

	while (bytes < want && !x->s.over && !cli_stop && mono_ns() < until_ns) {
		int n = session_poll(&x->s, c, POLL_MAX, SLICE_NS);

		for (int i = 0; i < n; i++) {
			if (!c[i].is_recv && c[i].status == 0)
				bytes += c[i].length;
		}
	}
	return bytes;
}

/* ---- full packets --------------------------------------------------------------- */

static int full_packet(struct probe *x)
{
	uint64_t len = conn_info(x).payload_bytes, wait = FULL_NS;

	if (len > x->message_bytes)
		len = x->message_bytes;
	if (session_write(&x->s, x->out, len, NULL, x->out) < 0)
		return 0;
	if (10 * x->p->rtt_median_ns > wait)
		wait = 10 * x->p->rtt_median_ns;
	return await_writes(x, len, mono_ns() + wait) == len;
}

/* The largest of some packet sizes that arrives; leaves its connection open. */
static void find_passing(struct probe *x)
{
	static const uint32_t mtus[PATH_MTUS] = {8900, 4200, 1480, 1440, 1400, 1280, 1024, 576};

	for (unsigned int i = 0; i < PATH_MTUS && !cli_stop; i++) {
		uint32_t payload = sdr_payload_for_mtu(mtus[i], x->p->is_v6);

		if (!payload || payload >= x->p->payload_bytes)
			continue;
		session_drop(&x->s);
		session_fini(&x->s);
		x->net.payload_bytes = payload;
		if (probe_connect(x) < 0 || probe_hello(x, 0, 1) < 0)
			return;
		if (full_packet(x)) {
			x->p->passes_mtu = mtus[i];
			x->p->passes_payload = payload;
			return;
		}
	}
}

/* ---- the stream ----------------------------------------------------------------- */

static void stream(struct probe *x)
{
	struct stream_facts *f = &x->p->out;
	uint64_t began = mono_ns(), until = began + STREAM_NS + patience_ns(x->p), cpu = cpu_ns();
	uint64_t count = x->o->stream_bytes / x->message_bytes, posted = 0, done = 0, half = 0;
	struct sdr_completion c[POLL_MAX];
	uint64_t now = began;

	count = count ? count : 1;
	while (done < count && !x->s.over && !cli_stop && now < until) {
		int n;

		while (posted < count && posted - done < x->depth &&
		       session_write(&x->s, x->out, x->message_bytes, NULL, x->out) == 0)
			posted++;
		n = session_poll(&x->s, c, POLL_MAX, SLICE_NS);
		now = mono_ns();
		for (int i = 0; i < n; i++)
			done += !c[i].is_recv && c[i].status == 0;
		if (!half && 2 * done >= count)
			half = now;
		f->ns = n > 0 ? now - began : f->ns;
	}
	f->cpu = (double)(cpu_ns() - cpu) / (double)(mono_ns() - began);
	f->done = done > 0;
	f->bytes = done * x->message_bytes;
	f->conn = conn_info(x);
	f->rate_found = f->conn.rate_found;
	if (done == count && half && began + f->ns > half)
		f->second_half_bps = (double)f->bytes / 2 * 8e9 / (double)(began + f->ns - half);
	else if (f->ns)
		f->second_half_bps = (double)f->bytes * 8e9 / (double)f->ns;
	add_counters(x, f);
}

/* ---- the echo ------------------------------------------------------------------- */

static int has_unwritten(const uint8_t *buf, uint64_t len)
{
	unsigned int run = 0;

	for (uint64_t i = 0; i < len; i++) {
		run = buf[i] == UNWRITTEN ? run + 1 : 0;
		if (run == UNWRITTEN_RUN)
			return 1;
	}
	return 0;
}

static int post_echo(struct probe *x, uint8_t *buf)
{
	memset(buf, UNWRITTEN, (size_t)x->message_bytes);
	return session_recv(&x->s, buf, x->message_bytes, buf);
}

static void take_echo(struct probe *x, const struct sdr_completion *c)
{
	struct stream_facts *f = &x->p->echo;

	if (!c->is_recv || c->status < 0)
		return;
	f->bytes += c->length;
	x->p->echo_bad += has_unwritten(c->cookie, c->length) != 0;
	(void)post_echo(x, c->cookie);
}

static void echo(struct probe *x)
{
	struct stream_facts *f = &x->p->echo;
	uint64_t began = mono_ns(), until = began + STREAM_NS + patience_ns(x->p), sent = 0;
	struct sdr_completion c[POLL_MAX];

	x->message_bytes = ECHO_BYTES;
	x->depth = ECHO_DEPTH;
	if (probe_connect(x) < 0 || probe_hello(x, 1, 0) < 0)
		return;
	for (unsigned int i = 0; i < ECHO_DEPTH; i++) {
		if (post_echo(x, x->in + i * ECHO_BYTES) < 0)
			return;
	}
	while (f->bytes < ECHOES * ECHO_BYTES && !x->s.over && !cli_stop && mono_ns() < until) {
		int n;

		while (sent < ECHOES &&
		       sent * ECHO_BYTES - f->bytes < ECHO_DEPTH / 2 * ECHO_BYTES &&
		       session_write(&x->s, x->out, ECHO_BYTES, NULL, x->out) == 0)
			sent++;
		n = session_poll(&x->s, c, POLL_MAX, SLICE_NS);
		for (int i = 0; i < n; i++)
			take_echo(x, &c[i]);
	}
	f->ns = mono_ns() - began;
	f->done = f->bytes > 0;
	f->conn = conn_info(x);
	add_counters(x, f);
}

/* ---- all of it ------------------------------------------------------------------ */

static uint64_t message_bytes(uint64_t stream_bytes)
{
	uint64_t size = MESSAGE_MIN;

	while (size < MESSAGE_MAX && size * PERF_DEPTH_MAX < stream_bytes)
		size *= 2;
	return size;
}

static void measure_perf(struct probe *x)
{
	struct path_facts *p = x->p;

	if (probe_hello(x, 0, 1) < 0) {
		if (x->s.over && x->s.status == -ECONNREFUSED)
			p->server = PATH_SERVER_REFUSES;
		snprintf(p->refusal, sizeof p->refusal, "%.250s",
			 *x->s.text ? x->s.text : "no answer: it may be busy with another peer");
		return;
	}
	p->server = PATH_SERVER_PERF;
	p->full_tried = 1;
	p->full_arrived = full_packet(x);
	if (!p->full_arrived && !x->s.over)
		find_passing(x);
	if (!p->full_arrived && !p->passes_mtu)
		return;
	stream(x);
	session_close(&x->s, CLOSE_NS);
	session_fini(&x->s);
	if (p->out.done && !cli_stop)
		echo(x);
}

static void measure(struct probe *x)
{
	struct path_facts *p = x->p;
	struct sdr_ctx_info info = {.size = sizeof info};
	char host[64];

	if (probe_connect(x) < 0) {
		p->status = x->s.status ? x->s.status : p->status;
		if (*x->s.text)
			snprintf(p->text, sizeof p->text, "%s", x->s.text);
		return;
	}
	sdr_ctx_query(sdr_net_ctx(x->s.net), &info);
	p->caps = info.caps;
	peer_host(x, host, sizeof host);
	if (*host)
		find_route(x, host);
	p->payload_bytes = conn_info(x).payload_bytes;
	measure_pings(x);
	measure_trains(x);
	if (x->o->stream_bytes && !x->s.over && !cli_stop)
		measure_perf(x);
}

static void count_udp(const struct udp_counts *was, struct udp_counts *is)
{
	is->in -= was->in;
	is->in_errors -= was->in_errors;
	is->rcvbuf_errors -= was->rcvbuf_errors;
	is->sndbuf_errors -= was->sndbuf_errors;
	is->csum_errors -= was->csum_errors;
}

void path_measure(const struct path_opts *o, struct path_facts *p)
{
	struct probe *x = calloc(1, sizeof *x);
	const struct source here = {""};
	struct udp_counts was;

	*p = (struct path_facts){0};
	snprintf(p->target, sizeof p->target, strchr(o->to.host, ':') ? "[%s]:%u" : "%s:%u",
		 o->to.host, o->to.port);
	if (!x) {
		p->status = -ENOMEM;
		return;
	}
	x->o = o;
	x->p = p;
	x->net = *o->net;
	x->net.quiet = 1;
	if (!x->net.connect_timeout_ns)
		x->net.connect_timeout_ns = CONNECT_NS;
	x->message_bytes = message_bytes(o->stream_bytes);
	x->depth = PERF_DEPTH_MAX;
	x->out = calloc(1, MESSAGE_MAX);
	x->in = calloc(ECHO_DEPTH, ECHO_BYTES);
	find_route(x, o->to.host);
	udp_counts_read(&here, &was);
	if (x->out && x->in)
		measure(x);
	else
		p->status = -ENOMEM;
	udp_counts_read(&here, &p->udp);
	count_udp(&was, &p->udp);
	if (x->s.conn)
		session_close(&x->s, CLOSE_NS);
	session_fini(&x->s);
	free(x->out);
	free(x->in);
	free(x);
}

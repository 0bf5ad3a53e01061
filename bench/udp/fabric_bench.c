/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/udp alone, against raw_gso and raw_pingpong: runs at full speed into bound
 * messages, or control datagrams back and forth; no reliability, no flow control. A TCP
 * connection to the same port tells each end the other's numbers.
 *
 *	fabric_bench recv ADDR PORT [options]
 *	fabric_bench send ADDR PORT [options]
 *	  --payload N  --seconds S  --workers N (receiver)  --channels N
 *	  --no-gso  --no-gro  --pingpong COUNT  --spin
 *
 * ADDR is the receiver's at both ends. The receiver counts from the first packet for S
 * seconds.
 */
#include "bench/udp/bench_util.h"
#include "fabric/udp/udp.h"
#include "sdr/counters.h"
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MESSAGE_BYTES (64u << 20)
#define SLOTS 8u
#define AHEAD 4u
#define MAX_EVENTS 32u
#define PING_BYTES 64u

struct args {
	const char *addr, *port;
	bool sender, spin;
	uint32_t payload, channels, pingpong;
	double seconds;
	struct udp_fabric_attr attr;
};

/* What crosses the TCP connection. */
struct hello {
	uint32_t qpn, start_psn, payload, channels;
	uint64_t token;
};

struct end {
	const struct args *args;
	struct fabric *f;
	struct fabric_qp *qp;
	struct rx_slot *slots;
	struct rx_worker *workers;
	struct rx_table table;
	uint64_t *words[SLOTS];
	uint8_t *mem;
	uint32_t payload;
	struct fabric_event ev[MAX_EVENTS];
};

static int tcp_socket(const struct args *a)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *ai;
	int fd, conn, on = 1;

	if (getaddrinfo(a->addr, a->port, &hints, &ai) != 0)
		bench_die("%s port %s: no such address", a->addr, a->port);
	fd = socket(ai->ai_family, SOCK_STREAM, 0);
	if (a->sender) {
		if (connect(fd, ai->ai_addr, ai->ai_addrlen) < 0)
			bench_die("connect: %s", strerror(errno));
		return fd;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) < 0 || listen(fd, 1) < 0)
		bench_die("listen: %s", strerror(errno));
	conn = accept(fd, NULL, NULL);
	close(fd);
	freeaddrinfo(ai);
	return conn;
}

static void exchange(int fd, const struct hello *mine, struct hello *theirs)
{
	if (write(fd, mine, sizeof(*mine)) != (ssize_t)sizeof(*mine) ||
	    recv(fd, theirs, sizeof(*theirs), MSG_WAITALL) != (ssize_t)sizeof(*theirs))
		bench_die("handshake: %s", strerror(errno));
}

static void peer_address(const struct args *a, struct sockaddr_storage *out)
{
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST}, *ai;

	if (getaddrinfo(a->addr, a->port, &hints, &ai) != 0)
		bench_die("%s port %s: no such address", a->addr, a->port);
	memcpy(out, ai->ai_addr, ai->ai_addrlen);
	freeaddrinfo(ai);
}

static void end_open(struct end *e, const struct args *a)
{
	struct fabric_qp_attr qa = {.channels = a->channels, .table = &e->table};
	unsigned int nworkers = a->attr.workers > 0 ? a->attr.workers : 1;
	int err = udp_fabric_open(&a->attr, &e->f);

	e->args = a;
	if (err < 0)
		bench_die("open: %s", strerror(-err));
	e->slots = bench_scratch(SLOTS * sizeof(*e->slots));
	e->workers = bench_scratch(FABRIC_MAX_WORKERS * sizeof(*e->workers));
	for (unsigned int i = 0; i < nworkers; i++)
		rx_worker_init(&e->workers[i]);
	rx_table_init(&e->table, e->slots, SLOTS, UINT32_MAX, e->workers, nworkers,
		      a->attr.workers == 0 ? RX_SINGLE_THREAD : 0);
	e->mem = bench_scratch(MESSAGE_BYTES);
	err = e->f->ops->qp_create(e->f, &qa, &e->qp);
	if (err < 0)
		bench_die("QP: %s", strerror(-err));
}

static void end_connect(struct end *e)
{
	const struct args *a = e->args;
	struct fabric_local local;
	struct hello mine, theirs;
	struct fabric_peer peer = {.active = a->sender};
	int err, fd = tcp_socket(a);

	e->f->ops->qp_local(e->qp, &local);
	mine = (struct hello){.qpn = local.qpn, .start_psn = local.start_psn, .token = local.token};
	exchange(fd, &mine, &theirs);
	peer.qpn = theirs.qpn;
	peer.token = theirs.token;
	peer.start_psn = theirs.start_psn;
	if (a->sender)
		peer_address(a, &peer.addr);
	err = e->f->ops->qp_connect(e->qp, &peer);
	if (err < 0)
		bench_die("connect: %s", strerror(-err));
	e->payload = a->payload;
	if (a->sender && e->payload == 0)
		e->payload = e->f->ops->path_payload(e->qp);
	mine.payload = e->payload;
	exchange(fd, &mine, &theirs);
	if (!a->sender)
		e->payload = theirs.payload;
	/* The channels' addresses: one control datagram on each. */
	for (uint32_t c = 0; a->sender && c < a->channels; c++)
		e->f->ops->ctrl(e->qp, c, 0, "hello", 5);
	close(fd);
}

static void bind_message(struct end *e, uint32_t message)
{
	uint32_t i = message % SLOTS;
	struct fabric_bind b = {.rx = {.base = e->mem,
				       .len = MESSAGE_BYTES,
				       .payload = e->payload,
				       .chunk_shift = 4,
				       .imm_frags = 1}};

	if (e->words[i] == NULL)
		e->words[i] = bench_scratch(8 * rx_bind_words(MESSAGE_BYTES, e->payload, 4) + 8);
	b.rx.words = e->words[i];
	if (e->f->ops->bind(e->qp, message, &b, &(struct fabric_key){0}) < 0)
		bench_die("bind failed");
}

static void fence_message(struct end *e, uint32_t message)
{
	e->f->ops->fence_begin(e->qp, message);
	while (e->f->ops->fence_done(e->qp, message) == 0)
		;
}

static void count(const struct end *e, uint64_t sum[SDR_CTR_COUNT])
{
	memset(sum, 0, SDR_CTR_COUNT * sizeof(sum[0]));
	e->f->ops->counters(e->f, sum);
}

/*
 * The sender does not wait: once something of the message after next is here (or of one
 * that is not bound yet), the oldest is over.
 */
static uint32_t follow(struct end *e, uint32_t oldest, int nev)
{
	uint64_t dirty = rx_dirty_take(&e->table, 0);
	uint32_t ahead = 0;

	for (uint32_t i = 2; i < AHEAD; i++)
		if (dirty >> (oldest + i) % SLOTS & 1)
			ahead = i - 1;
	for (int i = 0; i < nev; i++)
		if (e->ev[i].type == FABRIC_EV_LATE &&
		    (int32_t)(e->ev[i].message - oldest - AHEAD) >= 0)
			ahead = e->ev[i].message - oldest;
	for (uint32_t m = oldest; m != oldest + AHEAD && m - oldest < ahead; m++)
		fence_message(e, m);
	for (uint32_t m = oldest + ahead; m != oldest + ahead + AHEAD; m++)
		if (m - oldest >= AHEAD)
			bind_message(e, m);
	return oldest + ahead;
}

static int run_recv(struct end *e)
{
	uint64_t sum[SDR_CTR_COUNT], begin = 0, now;
	uint32_t oldest = 0;
	char advice[512];

	end_connect(e);
	for (uint32_t m = 0; m < AHEAD; m++)
		bind_message(e, m);
	for (;;) {
		int n = e->f->ops->poll(e->f, e->ev, MAX_EVENTS);

		if (n == 0)
			e->f->ops->wait(e->f, e->f->ops->now_ns(e->f) + 10000000);
		now = bench_now_ns();
		count(e, sum);
		if (begin == 0 && sum[SDR_CTR_rx_pkts] > 0)
			begin = now;
		if (begin != 0 && now - begin > (uint64_t)(e->args->seconds * 1e9))
			break;
		oldest = follow(e, oldest, n);
	}
	printf("goodput %.3f Gbit/s, %llu packets, %llu late, %llu bad, %llu drop events\n",
	       bench_gbps(sum[SDR_CTR_rx_bytes], now - begin),
	       (unsigned long long)sum[SDR_CTR_rx_pkts], (unsigned long long)sum[SDR_CTR_rx_late],
	       (unsigned long long)(sum[SDR_CTR_rx_protection] + sum[SDR_CTR_rx_malformed] +
				    sum[SDR_CTR_rx_range] + sum[SDR_CTR_rx_unknown_qp]),
	       (unsigned long long)sum[SDR_CTR_rx_host_drops]);
	e->f->ops->advice(e->f, advice, sizeof(advice));
	if (advice[0])
		printf("%s\n", advice);
	return 0;
}

static uint32_t train_packets(const struct end *e)
{
	struct fabric_caps caps;
	uint32_t n;

	e->f->ops->caps(e->f, &caps);
	n = caps.max_train_bytes / (e->payload + 36 + 3);
	return n > FABRIC_RUN_MAX ? FABRIC_RUN_MAX : n;
}

static void post_or_wait(struct end *e, struct fabric_write *w)
{
	for (;;) {
		int n = e->f->ops->post(e->f, w, 1);

		if (n < 0)
			bench_die("post: %s", strerror(-n));
		if (n == 1)
			return;
		e->f->ops->wait(e->f, e->f->ops->now_ns(e->f) + 10000000);
		e->f->ops->poll(e->f, e->ev, MAX_EVENTS);
	}
}

static int run_send(struct end *e)
{
	uint64_t sum[SDR_CTR_COUNT], begin, end, trains = 0;
	uint32_t train, message = 0;
	uint64_t at = 0;

	end_connect(e);
	train = train_packets(e);
	begin = bench_now_ns();
	end = begin + (uint64_t)(e->args->seconds * 1e9);
	while (bench_now_ns() < end) {
		struct fabric_write w = {.qp = e->qp,
					 .channel = (uint32_t)(trains++ % e->args->channels),
					 .message = message,
					 .addr = e->mem + at,
					 .offset = at,
					 .payload_bytes = e->payload,
					 .last_bytes = e->payload,
					 .count = train};
		uint64_t left = MESSAGE_BYTES - at;

		if (left < (uint64_t)train * e->payload) {
			w.count = (uint32_t)((left + e->payload - 1) / e->payload);
			w.last_bytes = (uint32_t)(left - (w.count - 1) * (uint64_t)e->payload);
		}
		post_or_wait(e, &w);
		at += (uint64_t)(w.count - 1) * w.payload_bytes + w.last_bytes;
		if (at == MESSAGE_BYTES) {
			at = 0;
			message++;
		}
	}
	count(e, sum);
	printf("sent %.3f Gbit/s, %llu packets of %u in trains of %u, %llu waits, %llu fallbacks\n",
	       bench_gbps(sum[SDR_CTR_tx_bytes], bench_now_ns() - begin),
	       (unsigned long long)sum[SDR_CTR_tx_pkts], e->payload, train,
	       (unsigned long long)sum[SDR_CTR_tx_again],
	       (unsigned long long)sum[SDR_CTR_gso_fallback]);
	return 0;
}

/* The next control datagram of PING_BYTES; false after a second. */
static bool next_ctrl(struct end *e)
{
	uint64_t give_up = bench_now_ns() + 1000000000u;

	while (bench_now_ns() < give_up) {
		int n = e->f->ops->poll(e->f, e->ev, MAX_EVENTS);

		for (int i = 0; i < n; i++)
			if (e->ev[i].type == FABRIC_EV_CTRL && e->ev[i].len == PING_BYTES)
				return true;
		if (n == 0 && !e->args->spin)
			e->f->ops->wait(e->f, e->f->ops->now_ns(e->f) + 100000000);
	}
	return false;
}

static int order(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int run_pingpong(struct end *e)
{
	uint32_t wanted = e->args->pingpong, n = 0;
	uint64_t *rtt = calloc(wanted, sizeof(*rtt));
	uint8_t body[PING_BYTES] = {0};

	if (rtt == NULL)
		bench_die("out of memory");
	end_connect(e);
	for (uint32_t i = 0; i < wanted; i++) {
		uint64_t begin = bench_now_ns();

		if (e->args->sender)
			e->f->ops->ctrl(e->qp, 0, 0, body, sizeof(body));
		if (!next_ctrl(e)) {
			if (e->args->sender)
				continue;
			break;
		}
		if (!e->args->sender)
			e->f->ops->ctrl(e->qp, 0, 0, body, sizeof(body));
		rtt[n++] = bench_now_ns() - begin;
	}
	if (e->args->sender && n > 0) {
		qsort(rtt, n, sizeof(*rtt), order);
		printf("round trip p50 %.2f us, p99 %.2f us, %u of %u answered\n",
		       (double)rtt[n / 2] / 1e3, (double)rtt[n - 1 - n / 100] / 1e3, n, wanted);
	}
	free(rtt);
	return 0;
}

static uint32_t number(const char *text)
{
	return text ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

static void parse(struct args *a, int argc, char **argv)
{
	for (int i = 4; i < argc; i++) {
		const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;

		i++;
		if (strcmp(name, "--payload") == 0)
			a->payload = number(value);
		else if (strcmp(name, "--channels") == 0)
			a->channels = number(value);
		else if (strcmp(name, "--workers") == 0)
			a->attr.workers = number(value);
		else if (strcmp(name, "--pingpong") == 0)
			a->pingpong = number(value);
		else if (strcmp(name, "--seconds") == 0 && value)
			a->seconds = strtod(value, NULL);
		else if (strcmp(name, "--no-gso") == 0 && i--)
			a->attr.no_gso = true;
		else if (strcmp(name, "--no-gro") == 0 && i--)
			a->attr.no_gro = true;
		else if (strcmp(name, "--spin") == 0 && i--)
			a->spin = true;
		else
			bench_die("unknown option %s", name);
	}
}

int main(int argc, char **argv)
{
	struct args a = {.seconds = 3, .channels = 1};
	struct end e = {0};

	if (argc < 4)
		bench_die("usage: fabric_bench send|recv ADDR PORT [options]");
	a.addr = argv[2];
	a.port = argv[3];
	a.sender = strcmp(argv[1], "send") == 0;
	parse(&a, argc, argv);
	if (!a.sender) {
		a.attr.bind_addr = a.addr;
		a.attr.listen = true;
		a.attr.listen_port = (uint16_t)number(a.port);
	}
	end_open(&e, &a);
	if (a.pingpong > 0)
		return run_pingpong(&e);
	return a.sender ? run_send(&e) : run_recv(&e);
}

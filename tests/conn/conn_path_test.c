/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections over UDP on this host whose path changes in mid-transfer, as behind a NAT
 * that forgets: a relay between the ends takes new source ports. Also receiving threads
 * under connections, many connections on one net, and a process out of descriptors.
 */
#include "pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sdr/counters.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FLOWS 8u
#define MANY 100u
#define LENGTH 100000u
#define WRITES 60u

/* One socket that the client sends to; for each port of the client's, one to the server. */
struct relay {
	int front;
	uint16_t port, server_port;
	unsigned int n;
	struct flow {
		struct sockaddr_in client;
		int fd;
	} flow[FLOWS];
};

struct ends {
	struct sdr_net *net[2]; /* 0: the client */
	struct sdr_conn *conn[2];
	unsigned int seen[2][16];
	struct sdr_conn *accepted[MANY];
	unsigned int naccepted;
};

static uint16_t port_next(void)
{
	static uint16_t next;

	if (!next)
		next = (uint16_t)(15000 + getpid() % 5000); /* below the kernel's own */
	return next++;
}

static struct sockaddr_in local(uint16_t port)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(port)};

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return sin;
}

static int udp_socket(void)
{
	struct sockaddr_in sin = local(0);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), size = 4 << 20;

	assert_true(fd >= 0);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	assert_int_equal(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	return fd;
}

static void relay_open(struct relay *r, uint16_t server_port)
{
	struct sockaddr_in sin;
	socklen_t len = sizeof(sin);

	*r = (struct relay){.front = udp_socket(), .server_port = server_port};
	assert_int_equal(getsockname(r->front, (struct sockaddr *)&sin, &len), 0);
	r->port = ntohs(sin.sin_port);
}

static struct flow *flow_of(struct relay *r, const struct sockaddr_in *client)
{
	for (unsigned int i = 0; i < r->n; i++)
		if (r->flow[i].client.sin_port == client->sin_port)
			return &r->flow[i];
	assert_true(r->n < FLOWS);
	r->flow[r->n] = (struct flow){.client = *client, .fd = udp_socket()};
	return &r->flow[r->n++];
}

static void relay_pump(struct relay *r)
{
	struct sockaddr_in from, server = local(r->server_port);
	socklen_t len = sizeof(from);
	uint8_t buf[65536];
	ssize_t n;

	while ((n = recvfrom(r->front, buf, sizeof(buf), 0, (struct sockaddr *)&from, &len)) > 0)
		(void)sendto(flow_of(r, &from)->fd, buf, (size_t)n, 0, (struct sockaddr *)&server,
			     sizeof(server));
	for (unsigned int i = 0; i < r->n; i++)
		while ((n = recv(r->flow[i].fd, buf, sizeof(buf), 0)) > 0)
			(void)sendto(r->front, buf, (size_t)n, 0,
				     (struct sockaddr *)&r->flow[i].client, sizeof(from));
}

/* The NAT forgets: whoever sends next gets another port, and the old ones are dead. */
static void relay_rebind(struct relay *r)
{
	int old[FLOWS];

	for (unsigned int i = 0; i < r->n; i++) {
		old[i] = r->flow[i].fd;
		r->flow[i].fd = udp_socket();
	}
	for (unsigned int i = 0; i < r->n; i++)
		(void)close(old[i]);
}

static void relay_close(struct relay *r)
{
	for (unsigned int i = 0; i < r->n; i++)
		(void)close(r->flow[i].fd);
	(void)close(r->front);
}

static uint64_t now_of(const struct ends *e)
{
	return sdr_now_ns(sdr_net_ctx(e->net[0]));
}

static void ends_open(struct ends *e, uint32_t workers)
{
	memset(e, 0, sizeof(*e));
	for (int i = 0; i < 2; i++) {
		struct sdr_net_attr attr = {.size = sizeof(attr)};

		attr.ctx.size = sizeof(attr.ctx);
		attr.ctx.listen = i == 1;
		attr.ctx.port = i ? port_next() : 0;
		attr.ctx.workers = workers;
		assert_int_equal(sdr_net_create(&attr, &e->net[i]), 0);
	}
}

static void ends_close(struct ends *e)
{
	for (int i = 0; i < 2; i++)
		sdr_net_destroy(e->net[i]);
}

static void ends_step(struct ends *e, struct relay *r)
{
	struct sdr_event ev = {.size = sizeof(ev)};

	if (r)
		relay_pump(r);
	for (int i = 0; i < 2; i++) {
		assert_true(sdr_net_progress(e->net[i]) >= 0);
		while (sdr_net_event(e->net[i], &ev) == 1) {
			e->seen[i][ev.type]++;
			if (ev.type == SDR_EV_DEAD || ev.type == SDR_EV_FAILED)
				fail_msg("%s", ev.text);
			if (ev.type == SDR_EV_ACCEPTED)
				e->accepted[e->naccepted++] = ev.conn;
		}
	}
}

/* The handshake by hand: the client is told the relay's address. */
static void ends_connect(struct ends *e, struct relay *r, uint32_t channels)
{
	struct sdr_conn_attr attr = {
		.size = sizeof(attr), .channels = channels, .rate_bps = 100000000};
	struct sockaddr_in sin = local(r->port);
	struct sdr_connect_attr to = {.size = sizeof(to),
				      .peer_addr = (struct sockaddr *)&sin,
				      .peer_addr_len = sizeof(sin)};
	uint8_t blob[2][SDR_MAX_INFO_BYTES];
	uint64_t limit = now_of(e) + 10 * SEC;
	int len[2];

	for (int i = 0; i < 2; i++) {
		assert_int_equal(sdr_conn_open(e->net[i], &attr, &e->conn[i]), 0);
		len[i] = sdr_conn_blob_get(e->conn[i], blob[i], sizeof(blob[i]));
		assert_true(len[i] > 0);
	}
	assert_int_equal(sdr_conn_blob_set(e->conn[1], blob[0], (size_t)len[0], NULL), 0);
	assert_int_equal(sdr_conn_blob_set(e->conn[0], blob[1], (size_t)len[1], &to), 0);
	while (!e->seen[0][SDR_EV_CONNECTED] || !e->seen[1][SDR_EV_CONNECTED]) {
		ends_step(e, r);
		assert_true(now_of(e) < limit);
	}
}

static uint64_t path_changes(const struct ends *e)
{
	uint64_t sum[SDR_CTR_COUNT];

	(void)sdr_counters_get(sdr_net_ctx(e->net[1]), sum, SDR_CTR_COUNT);
	return sum[SDR_CTR_path_changes];
}

/* WRITES writes; the relay moves after a third of them. */
static void stream(struct ends *e, struct relay *r, int from)
{
	uint8_t *tx = malloc(LENGTH), *rx = calloc(WRITES, LENGTH);
	struct sdr_op_wr wr = {.size = sizeof(wr), .length = LENGTH};
	struct sdr_completion c = {.size = sizeof(c)};
	unsigned int done[2] = {0};
	uint64_t limit = now_of(e) + 40 * SEC;
	bool moved = false;

	assert_true(tx && rx);
	for (size_t i = 0; i < LENGTH; i++)
		tx[i] = (uint8_t)(i * 7 + (i >> 9));
	for (unsigned int i = 0; i < WRITES; i++) {
		wr.addr = rx + (size_t)i * LENGTH;
		assert_int_equal(sdr_conn_recv_post(e->conn[1 - from], &wr, NULL), 0);
		wr.addr = tx;
		assert_int_equal(sdr_write_post(e->conn[from], &wr, NULL), 0);
	}
	while (done[0] < WRITES || done[1] < WRITES) {
		ends_step(e, r);
		for (int i = 0; i < 2; i++)
			while (sdr_net_poll(e->net[i], &c, 1) == 1) {
				assert_int_equal(c.status, 0);
				done[c.is_recv]++;
			}
		if (r && !moved && done[1] >= WRITES / 3) {
			moved = true;
			relay_rebind(r);
		}
		assert_true(now_of(e) < limit);
	}
	for (unsigned int i = 0; i < WRITES; i++)
		assert_memory_equal(tx, rx + (size_t)i * LENGTH, LENGTH);
	free(tx);
	free(rx);
}

static void rebinding(void **state)
{
	static const uint32_t channels[] = {1, 4};

	(void)state;
	for (int i = 0; i < 8; i++) {
		uint32_t n = channels[i & 1];
		struct ends e;
		struct relay r;
		uint64_t at;

		ends_open(&e, i >= 4);
		relay_open(&r, sdr_net_port(e.net[1]));
		ends_connect(&e, &r, n);
		at = now_of(&e);
		stream(&e, &r, i >> 1 & 1);
		printf("%u channels, %s sends: %llu ms\n", n, i & 2 ? "server" : "client",
		       (unsigned long long)((now_of(&e) - at) / MS));
		assert_true(now_of(&e) - at < 10 * SEC); /* a busy end asks every second */
		while (path_changes(&e) < n && now_of(&e) < at + 20 * SEC)
			ends_step(&e, &r);
		assert_int_equal(path_changes(&e), n);
		ends_close(&e);
		relay_close(&r);
	}
}

/* Through the handshake; many of one net to one listener, all at once. */
static void many(void **state)
{
	static uint8_t tx[20000], rx[MANY][sizeof(tx)];
	struct sdr_op_wr wr = {.size = sizeof(wr), .length = sizeof(tx)};
	struct sdr_conn_attr attr = {.size = sizeof(attr), .messages = 8};
	struct sdr_conn *conn[MANY];
	struct sdr_completion c = {.size = sizeof(c)};
	unsigned int posted = 0, done = 0;
	uint64_t limit;
	struct ends e;

	(void)state;
	ends_open(&e, 0);
	memset(tx, 5, sizeof(tx));
	limit = now_of(&e) + 60 * SEC;
	assert_int_equal(sdr_conn_listen(e.net[1], &attr), 0);
	for (unsigned int i = 0; i < MANY; i++)
		assert_int_equal(sdr_conn_connect(e.net[0], "127.0.0.1", sdr_net_port(e.net[1]),
						  &attr, &conn[i]),
				 0);
	while (done < 2 * MANY) {
		ends_step(&e, NULL);
		for (; posted < e.naccepted; posted++) {
			wr.addr = rx[posted];
			assert_int_equal(sdr_conn_recv_post(e.accepted[posted], &wr, NULL), 0);
		}
		wr.addr = tx;
		for (unsigned int i = 0; e.seen[0][SDR_EV_CONNECTED] == MANY && i < MANY; i++)
			assert_int_equal(sdr_write_post(conn[i], &wr, NULL), 0);
		if (e.seen[0][SDR_EV_CONNECTED] == MANY)
			e.seen[0][SDR_EV_CONNECTED] = 0;
		for (int i = 0; i < 2; i++)
			while (sdr_net_poll(e.net[i], &c, 1) == 1) {
				assert_int_equal(c.status, 0);
				done++;
			}
		assert_true(now_of(&e) < limit);
	}
	for (unsigned int i = 0; i < MANY; i++)
		assert_memory_equal(tx, rx[i], sizeof(tx));
	ends_close(&e);
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * SEC + (uint64_t)ts.tv_nsec;
}

/* A caller that no descriptor is left for waits in the kernel, and we sleep. */
static void out_of_descriptors(void **state)
{
	struct sockaddr_in sin;
	struct rlimit was, none;
	struct ends e;
	uint64_t cpu, limit;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), next;
	char c;

	(void)state;
	ends_open(&e, 0);
	sin = local(sdr_net_port(e.net[1]));
	assert_int_equal(sdr_conn_listen(e.net[1], NULL), 0);
	next = dup(fd);
	assert_true(next > fd);
	(void)close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = (rlim_t)next;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	cpu = cpu_ns();
	(void)sdr_net_wait(e.net[1], now_of(&e) + 400 * MS);
	cpu = cpu_ns() - cpu;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_true(cpu < 200 * MS);
	assert_int_equal(write(fd, "GET / HTTP/1.0\r\n\r\n", 18), 18);
	limit = now_of(&e) + 10 * SEC;
	while (recv(fd, &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN) {
		(void)sdr_net_wait(e.net[1], now_of(&e) + MS);
		assert_true(now_of(&e) < limit);
	}
	(void)close(fd);
	ends_close(&e);
}

/* Addresses to listen on, one with a scope as link-local ones have. */
static void listen_addresses(void **state)
{
	static const char *const addr[] = {"127.0.0.1", "::1", "::1%1", "0.0.0.0", "::"};

	(void)state;
	for (unsigned int i = 0; i < sizeof(addr) / sizeof(addr[0]); i++) {
		struct sdr_net_attr attr = {.size = sizeof(attr)};
		struct sdr_net *net;

		attr.ctx.size = sizeof(attr.ctx);
		attr.ctx.listen = 1;
		attr.ctx.port = port_next();
		attr.ctx.bind_addr = addr[i];
		assert_int_equal(sdr_net_create(&attr, &net), 0);
		assert_int_equal(sdr_conn_listen(net, NULL), 0);
		sdr_net_destroy(net);
		attr.ctx.bind_addr = "no address";
		assert_int_equal(sdr_net_create(&attr, &net), -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rebinding),
		cmocka_unit_test(many),
		cmocka_unit_test(out_of_descriptors),
		cmocka_unit_test(listen_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections over UDP and TCP on this host: they work, and every way in which connecting
 * can fail ends in one event that names what was tried.
 */
#include "pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FRAME_HDR 8

struct end {
	struct sdr_net *net;
	struct sdr_conn *conn;
	struct sdr_event ev; /* the last */
	unsigned int seen[16];
};

static uint16_t port_next(void)
{
	static uint16_t next;

	if (!next)
		next = (uint16_t)(10000 + getpid() % 5000); /* below the kernel's own */
	return next++;
}

static void end_open_with(struct end *e, uint16_t port, uint32_t workers)
{
	struct sdr_net_attr attr = {.size = sizeof(attr)};

	memset(e, 0, sizeof(*e));
	attr.ctx.size = sizeof(attr.ctx);
	attr.ctx.workers = workers;
	attr.ctx.listen = port != 0;
	attr.ctx.port = port;
	assert_int_equal(sdr_net_create(&attr, &e->net), 0);
	if (port)
		assert_int_equal(sdr_conn_listen(e->net, NULL), 0);
}

static void end_open(struct end *e, uint16_t port)
{
	end_open_with(e, port, 0);
}

static void end_events(struct end *e)
{
	struct sdr_event ev = {.size = sizeof(ev)};

	while (sdr_net_event(e->net, &ev) == 1) {
		e->seen[ev.type]++;
		e->ev = ev;
		if (ev.type == SDR_EV_ACCEPTED)
			e->conn = ev.conn;
	}
}

static uint64_t now_of(const struct end *e)
{
	return sdr_now_ns(sdr_net_ctx(e->net));
}

/* Runs one or two ends until the first has seen the event; false: it took too long. */
static bool until_event(struct end *e, struct end *other, enum sdr_event_type type, uint64_t ns)
{
	uint64_t limit = now_of(e) + ns;
	unsigned int before = e->seen[type];

	while (e->seen[type] == before && now_of(e) < limit) {
		assert_true(sdr_net_wait(e->net, now_of(e) + MS) >= 0);
		end_events(e);
		if (other) {
			assert_true(sdr_net_progress(other->net) >= 0);
			end_events(other);
		}
	}
	return e->seen[type] != before;
}

static void dial_with(struct end *client, const char *host, uint16_t port, uint64_t timeout_ns,
		      const char *scheme)
{
	struct sdr_conn_attr attr = {.size = sizeof(attr), .connect_timeout_ns = timeout_ns};

	attr.scheme = scheme;
	assert_int_equal(sdr_conn_connect(client->net, host, port, &attr, &client->conn), 0);
}

static void dial(struct end *client, const char *host, uint16_t port, uint64_t timeout_ns)
{
	dial_with(client, host, port, timeout_ns, NULL);
}

static void connect_with(struct end *client, struct end *server, const char *host,
			 const char *scheme)
{
	dial_with(client, host, sdr_net_port(server->net), 5 * SEC, scheme);
	assert_true(until_event(client, server, SDR_EV_CONNECTED, 5 * SEC));
	if (!server->seen[SDR_EV_ACCEPTED])
		assert_true(until_event(server, client, SDR_EV_ACCEPTED, 5 * SEC));
}

static void connect_both(struct end *client, struct end *server, const char *host)
{
	connect_with(client, server, host, NULL);
}

static void transfer(struct end *from, struct end *to, size_t n)
{
	uint8_t *a = malloc(n), *b = calloc(1, n);
	struct sdr_op_wr wr = {.size = sizeof(wr), .addr = b, .length = n};
	struct sdr_completion c = {.size = sizeof(c)};
	unsigned int left = 2;

	assert_true(a && b);
	for (size_t i = 0; i < n; i++)
		a[i] = (uint8_t)(i * 7 + (i >> 9));
	assert_int_equal(sdr_conn_recv_post(to->conn, &wr, NULL), 0);
	wr.addr = a;
	wr.imm = 77;
	wr.flags = SDR_OP_HAS_IMM;
	assert_int_equal(sdr_write_post(from->conn, &wr, NULL), 0);
	for (uint64_t limit = now_of(from) + 20 * SEC; left && now_of(from) < limit;) {
		struct end *ends[2] = {from, to};

		for (int i = 0; i < 2; i++) {
			assert_true(sdr_net_progress(ends[i]->net) >= 0);
			if (sdr_net_poll(ends[i]->net, &c, 1) != 1)
				continue;
			assert_int_equal(c.status, 0);
			assert_int_equal(c.is_recv, i);
			assert_int_equal(c.length, n);
			if (i)
				assert_int_equal(c.imm, 77);
			left--;
		}
	}
	assert_int_equal(left, 0);
	assert_memory_equal(a, b, n);
	free(a);
	free(b);
}

static void close_both(struct end *client, struct end *server)
{
	assert_int_equal(sdr_conn_close(client->conn), 0);
	assert_true(until_event(client, server, SDR_EV_CLOSED, 5 * SEC));
	if (!server->seen[SDR_EV_CLOSED])
		assert_true(until_event(server, client, SDR_EV_CLOSED, 5 * SEC));
	sdr_conn_destroy(client->conn);
	sdr_conn_destroy(server->conn);
}

static void works(void **state)
{
	static const char *const hosts[] = {"127.0.0.1", "::1", "localhost"};
	struct end server, client;

	(void)state;
	end_open(&server, port_next());
	for (unsigned int i = 0; i < 3; i++) {
		end_open(&client, 0);
		server.seen[SDR_EV_ACCEPTED] = server.seen[SDR_EV_CLOSED] = 0;
		connect_both(&client, &server, hosts[i]);
		transfer(&client, &server, 64);
		transfer(&server, &client, 3 << 20);
		transfer(&client, &server, 0);
		close_both(&client, &server);
		sdr_net_destroy(client.net);
	}
	sdr_net_destroy(server.net);
}

/* Parity over real sockets, without and with threads that receive; one direction only has it. */
static void codes(void **state)
{
	static const char *const schemes[] = {"ec:16,4", "ec-xor:16,4",
					      "ec:64,8,depth=4,repair=parity"};
	struct sdr_conn_info i = {.size = sizeof(i)}, o = {.size = sizeof(o)};
	struct end server, client;

	(void)state;
	for (unsigned int n = 0; n < 3; n++) {
		end_open_with(&server, port_next(), n);
		end_open_with(&client, 0, n);
		connect_with(&client, &server, "127.0.0.1", schemes[n]);
		transfer(&client, &server, 64);
		transfer(&client, &server, 5 << 20);
		transfer(&server, &client, 1 << 20);
		transfer(&client, &server, 0);
		assert_int_equal(sdr_conn_query(client.conn, &o), 0);
		assert_int_equal(sdr_conn_query(server.conn, &i), 0);
		assert_true(o.paired && i.recvs_paired && !i.paired && !o.recvs_paired);
		assert_int_equal(o.writes_coded, 2);
		assert_true(o.tx_parity_pkts > 10);
		assert_true(o.tx_parity_bytes == o.tx_parity_pkts * o.payload_bytes);
		assert_int_equal(i.tx_parity_pkts, 0);
		close_both(&client, &server);
		sdr_net_destroy(client.net);
		sdr_net_destroy(server.net);
	}
}

static void fails(struct end *client, int status, const char *word)
{
	assert_true(until_event(client, NULL, SDR_EV_FAILED, 30 * SEC));
	printf("%s\n", client->ev.text);
	assert_int_equal(client->ev.status, status);
	assert_non_null(strstr(client->ev.text, word));
	sdr_conn_destroy(client->conn);
}

/* A TCP socket on 127.0.0.1 that listens on, or is connected to, a port. */
static int tcp_socket(uint16_t port, bool listener)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int on = 1;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (listener) {
		assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
		assert_int_equal(listen(fd, 16), 0);
	} else {
		assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	}
	return fd;
}

static void no_such_host(void **state)
{
	struct end client;

	(void)state;
	end_open(&client, 0);
	dial(&client, "no-such-host.invalid", 4000, 20 * SEC);
	fails(&client, -ENXIO, "no-such-host.invalid:4000");
	sdr_net_destroy(client.net);
}

static void refused(void **state)
{
	struct end client;
	uint16_t port = port_next();
	char target[32];

	(void)state;
	snprintf(target, sizeof(target), "127.0.0.1:%u", port);
	end_open(&client, 0);
	dial(&client, "127.0.0.1", port, 5 * SEC);
	fails(&client, -ECONNREFUSED, target);
	sdr_net_destroy(client.net);
}

/* What answers over TCP says `reply`, or nothing and waits. */
static void answers(const void *reply, size_t len, int status, const char *word)
{
	struct end client;
	uint16_t port = port_next();
	int listener = tcp_socket(port, true), fd;

	end_open(&client, 0);
	dial(&client, "127.0.0.1", port, 700 * MS);
	fd = accept(listener, NULL, NULL);
	assert_true(fd >= 0);
	if (len)
		assert_int_equal(write(fd, reply, len), (ssize_t)len);
	fails(&client, status, word);
	(void)close(fd);
	(void)close(listener);
	sdr_net_destroy(client.net);
}

static void strangers_answer(void **state)
{
	static const char http[] = "HTTP/1.1 400 Bad Request\r\n\r\n";

	(void)state;
	answers(http, sizeof(http) - 1, -SDR_E_MALFORMED, "127.0.0.1:");
	answers(NULL, 0, -ETIMEDOUT, "127.0.0.1:");
}

/* A HELLO with the info of a listener on this port; returns its length. */
static size_t hello_make(uint16_t port, uint8_t *out, size_t cap)
{
	struct end e;
	struct sdr_conn *conn;
	int len;

	end_open(&e, port);
	assert_int_equal(sdr_conn_open(e.net, NULL, &conn), 0);
	len = sdr_conn_blob_get(conn, out + FRAME_HDR + 4, cap - FRAME_HDR - 4);
	assert_true(len > 0);
	memcpy(out, "SDR!\1\0", 6);
	out[6] = (uint8_t)((len + 4) >> 8);
	out[7] = (uint8_t)(len + 4);
	out[8] = 1;
	out[9] = 0;
	out[10] = (uint8_t)(len >> 8);
	out[11] = (uint8_t)len;
	sdr_net_destroy(e.net);
	return (size_t)len + FRAME_HDR + 4;
}

static void no_udp(void **state)
{
	uint16_t port = port_next();
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port)};
	uint8_t hello[2048];
	size_t len = hello_make(port, hello, sizeof(hello));
	int mute = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_int_equal(bind(mute, (struct sockaddr *)&addr, sizeof(addr)), 0);
	answers(hello, len, -SDR_E_NO_UDP, "0 of ");
	(void)close(mute);
}

/* The info's first bytes are the same in all versions: magic, then the range. */
#define INFO_AT (FRAME_HDR + 4)
#define VERSION_AT 4
static void version_patch(uint8_t *hello, size_t at)
{
	hello[at] = 200;
	hello[at + 1] = 201;
}

static void versions(void **state)
{
	struct end server;
	uint16_t port = port_next();
	uint8_t hello[2048], reply[512];
	size_t len = hello_make(port_next(), hello, sizeof(hello));
	ssize_t n = -1;
	int fd;

	(void)state;
	version_patch(hello, INFO_AT + VERSION_AT);
	answers(hello, len, -SDR_E_VERSION, "200 to 201 there");
	end_open(&server, port);
	fd = tcp_socket(port, false);
	assert_int_equal(write(fd, hello, len), (ssize_t)len);
	for (int i = 0; i < 2000 && n <= 0; i++) {
		(void)sdr_net_wait(server.net, now_of(&server) + MS);
		n = recv(fd, reply, sizeof(reply) - 1, MSG_DONTWAIT);
	}
	assert_true(n > 12);
	reply[n] = '\0';
	assert_int_equal(reply[4], 2); /* ERROR */
	assert_non_null(strstr((char *)reply + 12, "200 to 201 here"));
	(void)close(fd);
	sdr_net_destroy(server.net);
}

static void garbage_and_floods(void **state)
{
	static const char http[] = "GET / HTTP/1.0\r\n\r\n";
	struct end server, client;
	uint16_t port = port_next();
	uint8_t hello[2048];
	size_t len = hello_make(port_next(), hello, sizeof(hello));
	int fd[100];
	ssize_t n = -1;
	char c;

	(void)state;
	end_open(&server, port);
	fd[0] = tcp_socket(port, false);
	assert_int_equal(write(fd[0], http, sizeof(http) - 1), sizeof(http) - 1);
	for (int i = 0; i < 2000 && n < 0; i++) {
		(void)sdr_net_wait(server.net, now_of(&server) + MS);
		n = recv(fd[0], &c, 1, MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN)
			n = 0;
	}
	assert_int_equal(n, 0); /* hung up, without a word */
	(void)close(fd[0]);
	for (unsigned int i = 0; i < 100; i++) {
		fd[i] = tcp_socket(port, false);
		if (i % 2) /* half a HELLO, or one with random bytes inside */
			assert_true(write(fd[i], hello, i % 4 == 1 ? 20 : len) > 0);
		hello[16 + i] = (uint8_t)(i * 31);
		(void)sdr_net_progress(server.net);
	}
	end_open(&client, 0);
	connect_both(&client, &server, "127.0.0.1");
	transfer(&client, &server, 100000);
	for (unsigned int i = 0; i < 100; i++)
		(void)close(fd[i]);
	transfer(&server, &client, 100000);
	assert_int_equal(server.seen[SDR_EV_ACCEPTED], 1);
	close_both(&client, &server);
	sdr_net_destroy(client.net);
	sdr_net_destroy(server.net);
}

static void port_in_use(void **state)
{
	struct sdr_net_attr attr = {.size = sizeof(attr)};
	struct sdr_net *net = NULL;
	struct end server;
	uint16_t port = port_next();
	int fd;

	(void)state;
	end_open(&server, port);
	attr.ctx.size = sizeof(attr.ctx);
	attr.ctx.listen = 1;
	attr.ctx.port = port;
	assert_int_equal(sdr_net_create(&attr, &net), -EADDRINUSE);
	sdr_net_destroy(server.net);
	fd = tcp_socket(port, true);
	assert_int_equal(sdr_net_create(&attr, &net), -EADDRINUSE);
	(void)close(fd);
}

/* The peer's process is killed in the middle of things: found out within seconds. */
static void killed(void **state)
{
	uint16_t port = port_next();
	struct end server;
	uint64_t at;
	pid_t child;

	(void)state;
	end_open(&server, port);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct end client;

		end_open(&client, 0);
		dial(&client, "127.0.0.1", port, 5 * SEC);
		for (;;)
			(void)sdr_net_wait(client.net, now_of(&client) + 100 * MS);
	}
	assert_true(until_event(&server, NULL, SDR_EV_ACCEPTED, 5 * SEC));
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	at = now_of(&server);
	assert_true(until_event(&server, NULL, SDR_EV_DEAD, 10 * SEC));
	printf("%s (after %llu ms)\n", server.ev.text,
	       (unsigned long long)((now_of(&server) - at) / MS));
	assert_int_equal(server.ev.status, -SDR_E_DEAD);
	sdr_net_destroy(server.net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(works),
		cmocka_unit_test(codes),
		cmocka_unit_test(no_such_host),
		cmocka_unit_test(refused),
		cmocka_unit_test(strangers_answer),
		cmocka_unit_test(no_udp),
		cmocka_unit_test(versions),
		cmocka_unit_test(garbage_and_floods),
		cmocka_unit_test(port_in_use),
		cmocka_unit_test(killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

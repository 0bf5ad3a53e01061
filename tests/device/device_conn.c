/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <sdr/conn.h> over two devices, the handshake by TCP: writes both ways whatever the path
 * loses, immediates however short the write, closing, a peer that dies.
 */
#include "device_pair.h"
#include <stdio.h>
#include <unistd.h>

struct end {
	struct sdr_net *net;
	struct sdr_conn *conn;
	unsigned int seen[16];
	char text[256];
};

static uint16_t port_next(void)
{
	static uint16_t next;

	if (!next)
		next = (uint16_t)(20000 + getpid() % 5000); /* below the kernel's own */
	return next++;
}

static void end_open(struct end *e, int which, uint16_t port)
{
	char why[512] = "";
	struct sdr_net_attr attr = {.size = sizeof(attr),
				    .ctx = device_attr(which, why, sizeof(why))};

	memset(e, 0, sizeof(*e));
	attr.ctx.port = which == 1 ? port : 0;
	if (sdr_net_create(&attr, &e->net))
		fail_msg("%s at %s: %s", devices[which].name, devices[which].addr, why);
	if (which == 1)
		assert_int_equal(sdr_conn_listen(e->net, NULL), 0);
}

static void end_events(struct end *e)
{
	struct sdr_event ev = {.size = sizeof(ev)};

	while (sdr_net_event(e->net, &ev) == 1) {
		e->seen[ev.type]++;
		memcpy(e->text, ev.text, sizeof(e->text));
		if (ev.type == SDR_EV_ACCEPTED)
			e->conn = ev.conn;
	}
}

static uint64_t now_of(const struct end *e)
{
	return sdr_now_ns(sdr_net_ctx(e->net));
}

static void step(struct end *e, struct end *other)
{
	assert_true(sdr_net_wait(e->net, now_of(e) + MS / 2) >= 0);
	assert_true(sdr_net_progress(other->net) >= 0);
	end_events(e);
	end_events(other);
}

static void until(struct end *e, struct end *other, enum sdr_event_type type)
{
	uint64_t limit = now_of(e) + 60 * SEC;

	while (!e->seen[type]) {
		if (e->seen[SDR_EV_FAILED] && type != SDR_EV_FAILED)
			fail_msg("connecting failed: %s", e->text);
		assert_true(now_of(e) < limit);
		step(e, other);
	}
}

static void connect_both(struct end *client, struct end *server, uint32_t channels)
{
	struct sdr_conn_attr attr = {.size = sizeof(attr), .channels = channels};
	uint16_t port = port_next();

	end_open(server, 1, port);
	end_open(client, 0, 0);
	assert_int_equal(sdr_net_port(server->net), port);
	assert_int_equal(sdr_conn_connect(client->net, devices[1].addr, port, &attr, &client->conn),
			 0);
	until(client, server, SDR_EV_CONNECTED);
	until(server, client, SDR_EV_ACCEPTED);
}

static void close_both(struct end *client, struct end *server)
{
	assert_int_equal(sdr_conn_close(client->conn), 0);
	until(client, server, SDR_EV_CLOSED);
	until(server, client, SDR_EV_CLOSED);
	sdr_conn_destroy(client->conn);
	sdr_conn_destroy(server->conn);
	sdr_net_destroy(client->net);
	sdr_net_destroy(server->net);
}

/* n writes of len bytes each at once; immediates w * 77, and none on every fifth. */
static void transfer(struct end *from, struct end *to, size_t len, uint32_t n, bool registered)
{
	uint8_t *a = malloc(n * len + 1), *b = calloc(1, n * len + 1);
	struct sdr_mr *a_mr = NULL, *b_mr = NULL;
	uint32_t left = 2 * n;
	uint64_t limit = now_of(from) + 100 * SEC;

	assert_true(a && b);
	pattern(a, n * len, n);
	if (registered && len) {
		assert_int_equal(sdr_mr_reg(sdr_net_ctx(from->net), a, n * len, 0, &a_mr), 0);
		assert_int_equal(sdr_mr_reg(sdr_net_ctx(to->net), b, n * len, 0, &b_mr), 0);
	}
	for (uint32_t w = 0; w < n; w++) {
		struct sdr_op_wr wr = {.size = sizeof(wr),
				       .addr = b + w * len,
				       .length = len,
				       .mr = b_mr,
				       .cookie = (void *)(uintptr_t)w};

		assert_int_equal(sdr_conn_recv_post(to->conn, &wr, NULL), 0);
		wr.addr = a + w * len;
		wr.mr = a_mr;
		wr.imm = w * 77;
		wr.flags = w % 5 ? SDR_OP_HAS_IMM : 0;
		assert_int_equal(sdr_write_post(from->conn, &wr, NULL), 0);
	}
	while (left) {
		struct sdr_completion c = {.size = sizeof(c)};

		assert_true(now_of(from) < limit);
		step(from, to);
		while (sdr_net_poll(from->net, &c, 1) == 1) {
			assert_int_equal(c.status, 0);
			left--;
		}
		while (sdr_net_poll(to->net, &c, 1) == 1) {
			uint32_t w = (uint32_t)(uintptr_t)c.cookie;

			assert_int_equal(c.status, 0);
			assert_int_equal(c.length, len);
			assert_int_equal(c.imm, w % 5 ? w * 77 : 0);
			assert_memory_equal(b + w * len, a + w * len, len);
			left--;
		}
	}
	sdr_mr_dereg(a_mr);
	sdr_mr_dereg(b_mr);
	free(a);
	free(b);
}

static void writes(void **state)
{
	struct end client, server;

	(void)state;
	connect_both(&client, &server, 1);
	transfer(&client, &server, 64, 20, false);
	transfer(&server, &client, 64, 20, true);
	transfer(&client, &server, 0, 7, false);
	transfer(&client, &server, 5000, 200, true);
	transfer(&server, &client, 5000, 200, false);
	transfer(&client, &server, 2 << 20, 1, true);
	transfer(&server, &client, 1 << 20, 2, false);
	close_both(&client, &server);
}

/* More writes than numbers, several channels. */
static void many(void **state)
{
	struct end client, server;

	(void)state;
	connect_both(&client, &server, 4);
	for (int i = 0; i < 6; i++)
		transfer(i % 2 ? &server : &client, i % 2 ? &client : &server, 1500, 400, i % 3);
	close_both(&client, &server);
}

/* One end goes without a word while it is being written to: the other one hears of it. */
static void peer_gone(void **state)
{
	struct end client, server;
	uint8_t *mem = calloc(1, 1 << 20);
	struct sdr_op_wr wr = {.size = sizeof(wr), .addr = mem, .length = 1 << 20};
	struct sdr_completion c = {.size = sizeof(c)};
	uint64_t limit;

	(void)state;
	assert_non_null(mem);
	connect_both(&client, &server, 1);
	transfer(&client, &server, 5000, 10, true);
	assert_int_equal(sdr_write_post(client.conn, &wr, NULL), 0);
	sdr_conn_destroy(server.conn); /* it resets the peer */
	limit = now_of(&client) + 60 * SEC;
	while (!client.seen[SDR_EV_DEAD]) {
		assert_true(now_of(&client) < limit);
		step(&client, &server);
	}
	assert_int_equal(sdr_net_poll(client.net, &c, 1), 1);
	assert_true(c.status < 0);
	sdr_conn_destroy(client.conn);
	sdr_net_destroy(client.net);
	sdr_net_destroy(server.net);
	free(mem);
}

int device_conn_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes),
		cmocka_unit_test(many),
		cmocka_unit_test(peer_gone),
	};

	return cmocka_run_group_tests_name("connections", tests, NULL, NULL);
}

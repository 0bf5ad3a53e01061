/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/udp beyond what every fabric promises: ports, shared sockets, address changes,
 * host drops, a narrower route.
 */
#include "fabric/udp/test_util.h"
#include "protect/protect.h"
#include "wire/wire.h"
#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

static const struct udp_fabric_attr listening = {.listen = true};
static const struct udp_fabric_attr active_only = {.listen = false};

static void test_second_listener(void **state)
{
	struct udp_fabric_attr attr = listening;
	struct fabric *first, *second;
	struct fabric_caps caps;

	(void)state;
	assert_int_equal(udp_fabric_open(&attr, &first), 0);
	first->ops->caps(first, &caps);
	assert_int_not_equal(caps.udp_port, 0);
	attr.listen_port = caps.udp_port;
	assert_int_equal(udp_fabric_open(&attr, &second), -EADDRINUSE);
	attr.bind_addr = "127.0.0.1";
	assert_int_equal(udp_fabric_open(&attr, &second), -EADDRINUSE);
	first->ops->close(first);
	assert_int_equal(udp_fabric_open(&attr, &second), 0);
	second->ops->close(second);
}

static void test_bad_attributes(void **state)
{
	const struct udp_fabric_attr bad[] = {
		{.workers = FABRIC_MAX_WORKERS + 1},
		{.max_qps = UDP_FABRIC_LIMIT_QPS + 1},
		{.max_payload = UDP_FABRIC_LIMIT_PAYLOAD + 1},
		{.listen = true, .bind_addr = "localhost.example"},
	};
	struct fabric *f;

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(bad); i++)
		assert_int_equal(udp_fabric_open(&bad[i], &f), -EINVAL);
}

struct transfer_case {
	const char *bind_addr;
	int family;
	bool no_gso, no_gro;
	uint32_t workers, channels, payload;
};

static void test_transfers(void **state)
{
	static const struct transfer_case cases[] = {
		{NULL, AF_INET, false, false, 0, 1, 1408},
		{NULL, AF_INET6, false, false, 0, 3, 1408},
		{"127.0.0.1", AF_INET, false, false, 0, 4, 4096},
		{"::1", AF_INET6, false, false, 2, 4, 8192},
		{"127.0.0.1", AF_INET, true, false, 0, 2, 1408},
		{"127.0.0.1", AF_INET, false, true, 2, 2, 1408},
		{"127.0.0.1", AF_INET, true, true, 1, 1, 333}, /* pads, odd sizes */
		{"127.0.0.1", AF_INET, false, false, 0, 1, 997},
		{"127.0.0.1", AF_INET, false, false, 0, 1, 1},
	};

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(cases); i++) {
		const struct transfer_case *c = &cases[i];
		struct udp_fabric_attr attr = {.bind_addr = c->bind_addr,
					       .listen = true,
					       .workers = c->workers,
					       .no_gso = c->no_gso,
					       .no_gro = c->no_gro};
		struct end a, b;

		end_open(&b, &attr, c->channels);
		attr.listen = false;
		end_open(&a, &attr, c->channels);
		pair_connect(&a, &b, c->family);
		transfer(&a, &b, 0, 700u * c->payload + 5, c->payload, c->channels);
		transfer(&b, &a, 0, 130u * c->payload, c->payload, c->channels);
		transfer(&a, &b, 1, 1, c->payload, 1);
		assert_int_equal(end_counter(&b, SDR_CTR_rx_protection), 0);
		assert_int_equal(end_counter(&b, SDR_CTR_gso_fallback), 0);
		end_close(&a);
		end_close(&b);
	}
}

static void test_post_refuses(void **state)
{
	struct end a, b;
	struct fabric_write w = {.payload_bytes = 1000, .last_bytes = 1000, .count = 1};
	uint8_t bytes[1000] = {0};

	(void)state;
	end_open(&b, &listening, 1);
	end_open(&a, &active_only, 1);
	w.qp = a.qp;
	w.addr = bytes;
	assert_int_equal(a.f->ops->post(a.f, &w, 1), -ENOTCONN);
	pair_connect(&a, &b, AF_INET);
	w.channel = 1;
	assert_int_equal(a.f->ops->post(a.f, &w, 1), -EINVAL);
	w.channel = 0;
	w.last_bytes = 1001;
	assert_int_equal(a.f->ops->post(a.f, &w, 1), -EINVAL);
	w.last_bytes = 1000;
	w.count = FABRIC_RUN_MAX + 1;
	assert_int_equal(a.f->ops->post(a.f, &w, 1), -EINVAL);
	w.count = 0;
	assert_int_equal(a.f->ops->post(a.f, &w, 1), -EINVAL);
	w.count = 1;
	w.payload_bytes = w.last_bytes = UDP_FABRIC_LIMIT_PAYLOAD;
	assert_int_equal(a.f->ops->post(a.f, &w, 1), -EMSGSIZE);
	end_close(&a);
	end_close(&b);
}

static unsigned int open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Ten thousand QPs to one peer use the sockets of one. */
static void test_shared_sockets(void **state)
{
	enum { QPS = 10000, CHANNELS = 4 };
	struct udp_fabric_attr attr = {.max_qps = QPS};
	struct fabric_qp_attr qa = {.channels = CHANNELS};
	struct fabric_peer peer = {.qpn = 5, .active = true};
	struct fabric_qp **qps = calloc(QPS, sizeof(*qps)), *more;
	struct fabric *f;
	unsigned int before;

	(void)state;
	assert_non_null(qps);
	assert_int_equal(udp_fabric_open(&attr, &f), 0);
	peer.addr = loopback(AF_INET, 9);
	before = open_fds();
	for (int i = 0; i < QPS; i++) {
		assert_int_equal(f->ops->qp_create(f, &qa, &qps[i]), 0);
		assert_int_equal(f->ops->qp_connect(qps[i], &peer), 0);
	}
	assert_int_equal(open_fds(), before + CHANNELS);
	assert_int_equal(f->ops->qp_create(f, &qa, &more), -ENOSPC);
	for (int i = 0; i < QPS; i++)
		f->ops->qp_destroy(qps[i]);
	assert_int_equal(f->ops->qp_create(f, &qa, &more), 0);
	f->ops->close(f);
	free(qps);
}

/*
 * Candidate paths. The test plays the active end on bare sockets: it knows the token.
 */
struct raw_peer {
	struct end *to;
	struct fabric_local local; /* of `to` */
	struct sockaddr_storage addr;
	struct protect_key key;
	uint8_t pkt[2048];
	size_t len;
};

static void raw_build(struct raw_peer *p, uint32_t psn, uint32_t channel, const char *text)
{
	struct wire_ctrl_header h = {
		.dest_qpn = p->local.qpn, .src_qpn = 77, .psn = psn, .qkey = 0x53445200u | channel};
	size_t len = strlen(text), pad = wire_pad_bytes(len);
	struct protect_packet packet = {.hdr = p->pkt, .hdr_len = WIRE_CTRL_HDR_BYTES + len + pad};

	memset(p->pkt, 0, sizeof(p->pkt));
	wire_ctrl_put_header(p->pkt, &h, len);
	memcpy(p->pkt + WIRE_CTRL_HDR_BYTES, text, len);
	protect_seal(&p->key, &packet, p->pkt + WIRE_CTRL_HDR_BYTES + len + pad);
	p->len = wire_ctrl_packet_bytes(len);
}

static int raw_socket(void)
{
	struct sockaddr_storage any = loopback(AF_INET, 0);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(struct sockaddr_in)), 0);
	return fd;
}

/* Sends what was built; true where it came out as an event. */
static bool raw_send(struct raw_peer *p, int fd)
{
	unsigned int before = p->to->seen[FABRIC_EV_CTRL];

	assert_int_equal(sendto(fd, p->pkt, p->len, 0, (struct sockaddr *)&p->addr,
				sizeof(struct sockaddr_in)),
			 (ssize_t)p->len);
	for (int i = 0; i < 20 && p->to->seen[FABRIC_EV_CTRL] == before; i++) {
		p->to->f->ops->wait(p->to->f, p->to->f->ops->now_ns(p->to->f) + 1000000);
		end_poll(p->to);
	}
	return p->to->seen[FABRIC_EV_CTRL] == before + 1;
}

/* A control datagram leaves by that path and arrives at that socket. */
static void assert_reaches(struct end *e, uint32_t path, int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	uint8_t buf[2048];

	assert_int_equal(e->f->ops->ctrl(e->qp, 0, path, "answer", 6), 0);
	assert_int_equal(poll(&pfd, 1, 10000), 1);
	assert_int_equal(recv(fd, buf, sizeof(buf), 0), wire_ctrl_packet_bytes(6));
}

static void raw_peer_init(struct raw_peer *p, struct end *to)
{
	struct fabric_peer peer = {.qpn = 77, .token = 1};
	struct fabric_caps caps;

	memset(p, 0, sizeof(*p));
	p->to = to;
	to->f->ops->caps(to->f, &caps);
	to->f->ops->qp_local(to->qp, &p->local);
	p->addr = loopback(AF_INET, caps.udp_port);
	protect_checksum_key(&p->key, p->local.token);
	assert_int_equal(to->f->ops->qp_connect(to->qp, &peer), 0);
}

static void candidate_paths(const struct udp_fabric_attr *attr)
{
	int home = raw_socket(), moved = raw_socket(), third = raw_socket(), fourth = raw_socket();
	struct raw_peer p;
	struct end b;
	char name[64];

	end_open(&b, attr, 2);
	raw_peer_init(&p, &b);
	assert_int_equal(b.f->ops->ctrl(b.qp, 0, 0, "x", 1), -ENOTCONN);
	raw_build(&p, 0xfffffe, 0, "first");
	assert_true(raw_send(&p, home));
	assert_int_equal(b.last[FABRIC_EV_CTRL].path, 0);
	assert_int_equal(b.last[FABRIC_EV_CTRL].psn, 0xfffffe);
	assert_memory_equal(b.last[FABRIC_EV_CTRL].data, "first", 5);
	b.f->ops->path_name(b.qp, 0, name, sizeof(name));
	assert_memory_equal(name, "127.0.0.1:", 10);

	/* The same datagram from elsewhere changes nothing. */
	assert_false(raw_send(&p, moved));
	assert_int_equal(end_counter(&b, SDR_CTR_ctrl_replayed), 1);
	assert_reaches(&b, 0, home);
	assert_int_equal(b.f->ops->ctrl(b.qp, 0, 1, "x", 1), -ENOTCONN);

	/* A newer one (the PSN wraps) makes a candidate, which can be answered. */
	raw_build(&p, 1, 0, "moved");
	assert_true(raw_send(&p, moved));
	assert_int_equal(b.last[FABRIC_EV_CTRL].path, 1);
	assert_reaches(&b, 1, moved);
	assert_reaches(&b, 0, home);

	assert_int_equal(b.f->ops->path_use(b.qp, 0, 1), 0);
	assert_int_equal(end_counter(&b, SDR_CTR_path_changes), 1);
	assert_reaches(&b, 0, moved);
	assert_reaches(&b, 1, home);

	/* Late packets from the old address are still this channel's. */
	raw_build(&p, 0, 0, "late");
	assert_true(raw_send(&p, home));
	assert_int_equal(b.last[FABRIC_EV_CTRL].path, 1);
	/* Another candidate takes the free place; bad ones change nothing. */
	raw_build(&p, 2, 0, "third");
	assert_true(raw_send(&p, third));
	assert_int_equal(b.last[FABRIC_EV_CTRL].path, 2);
	raw_build(&p, 3, 2, "no such channel");
	assert_false(raw_send(&p, third));
	raw_build(&p, 4, 0, "damaged");
	p.pkt[22] ^= 1;
	assert_false(raw_send(&p, third));
	assert_int_equal(end_counter(&b, SDR_CTR_rx_protection), 1);
	assert_int_equal(b.f->ops->path_use(b.qp, 1, 1), -ENOENT);
	/* The next one takes the oldest's place, but not its number. */
	raw_build(&p, 5, 0, "fourth");
	assert_true(raw_send(&p, fourth));
	assert_int_equal(b.last[FABRIC_EV_CTRL].path, 3);
	assert_int_equal(b.f->ops->path_use(b.qp, 0, 1), -ENOENT);
	assert_int_equal(b.f->ops->ctrl(b.qp, 0, 1, "x", 1), -ENOTCONN);
	assert_reaches(&b, 2, third);
	assert_reaches(&b, 3, fourth);
	end_close(&b);
	close(fourth);
	close(home);
	close(moved);
	close(third);
}

static void test_candidate_paths(void **state)
{
	struct udp_fabric_attr attr = listening;

	(void)state;
	candidate_paths(&attr); /* a dual-stack listener hears IPv4 */
	attr.bind_addr = "127.0.0.1";
	candidate_paths(&attr);
	attr.workers = 2;
	candidate_paths(&attr);
}

static void test_unknown_qp(void **state)
{
	struct raw_peer p;
	struct end b;
	int fd = raw_socket();

	(void)state;
	end_open(&b, &listening, 1);
	raw_peer_init(&p, &b);
	raw_build(&p, 1, 0, "hi");
	p.pkt[5] ^= 0x80; /* the high bits of the number count too */
	assert_false(raw_send(&p, fd));
	assert_int_equal(end_counter(&b, SDR_CTR_rx_unknown_qp), 1);
	p.len = 7;
	assert_false(raw_send(&p, fd));
	assert_int_equal(end_counter(&b, SDR_CTR_rx_malformed), 1);
	end_close(&b);
	close(fd);
}

/* What a full socket buffer loses is known as such, and the cure is named. */
static void test_host_drops(void **state)
{
	struct udp_fabric_attr attr = {.listen = true, .bind_addr = "127.0.0.1"};
	struct fabric_channel_facts facts;
	static uint8_t bytes[32 * 1408];
	struct fabric_write w = {
		.addr = bytes, .payload_bytes = 1408, .last_bytes = 1408, .count = 32};
	char advice[512];
	struct end a, b;

	(void)state;
	attr.sockbuf_bytes = 65536;
	end_open(&b, &attr, 1);
	end_open(&a, &active_only, 1);
	pair_connect(&a, &b, AF_INET);
	b.f->ops->advice(b.f, advice, sizeof(advice));
	assert_string_equal(advice, "");
	w.qp = a.qp;
	for (int i = 0; i < 100; i++)
		assert_int_equal(a.f->ops->post(a.f, &w, 1), 1);
	for (int i = 0; i < 100; i++)
		end_poll(&b);
	b.f->ops->channel_facts(b.qp, 0, &facts);
	assert_true(facts.host_drops > 0);
	assert_true(end_counter(&b, SDR_CTR_rx_host_drops) >= facts.host_drops);
	b.f->ops->advice(b.f, advice, sizeof(advice));
	assert_non_null(strstr(advice, "sysctl -w net.core.rmem_max="));
	end_close(&a);
	end_close(&b);
}

static void test_refused(void **state)
{
	struct fabric_peer peer = {.qpn = 5, .active = true};
	struct fabric_caps caps;
	struct end a, b;

	(void)state;
	end_open(&b, &listening, 1); /* to find a port that is free in a moment */
	b.f->ops->caps(b.f, &caps);
	end_close(&b);
	end_open(&a, &active_only, 1);
	peer.addr = loopback(AF_INET, caps.udp_port);
	assert_int_equal(a.f->ops->qp_connect(a.qp, &peer), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(a.f->ops->ctrl(a.qp, 0, 0, "anyone?", 7), 0);
	a.f->ops->wait(a.f, a.f->ops->now_ns(a.f) + 1000000000);
	end_poll(&a);
	assert_true(a.seen[FABRIC_EV_REFUSED] > 0);
	assert_int_equal(a.last[FABRIC_EV_REFUSED].channel, 0);
	assert_ptr_equal(a.last[FABRIC_EV_REFUSED].cookie, &a);
	end_close(&a);
}

static void test_wait_and_fd(void **state)
{
	struct udp_fabric_attr attr = listening;
	uint64_t begin;

	(void)state;
	for (attr.workers = 0; attr.workers < 2; attr.workers++) {
		struct pollfd pfd = {.events = POLLIN};
		struct end a, b;

		end_open(&b, &attr, 1);
		end_open(&a, &active_only, 1);
		pair_connect(&a, &b, AF_INET);
		for (int i = 0; i < 3; i++)
			end_poll(&b);
		begin = test_now_ns();
		b.f->ops->wait(b.f, b.f->ops->now_ns(b.f) + 3000000);
		end_poll(&b);
		assert_true(test_now_ns() - begin >= 1000000);
		b.f->ops->wake(b.f);
		assert_true(b.f->ops->wait(b.f, UINT64_MAX) > 0);
		pfd.fd = b.f->ops->fd(b.f);
		while (poll(&pfd, 1, 0) == 1)
			end_poll(&b);
		for (int i = 0; i < 100; i++) {
			unsigned int before = b.seen[FABRIC_EV_CTRL];

			assert_int_equal(a.f->ops->ctrl(a.qp, 0, 0, "tick", 4), 0);
			while (b.seen[FABRIC_EV_CTRL] == before) {
				assert_int_equal(poll(&pfd, 1, 10000), 1);
				end_poll(&b);
			}
		}
		end_close(&a);
		end_close(&b);
	}
}

/* Takes one event at a time until `n` control datagrams came. */
static void take_one_by_one(struct end *e, unsigned int n, int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	uint64_t give_up = test_now_ns() + TEST_PATIENCE_NS;

	for (unsigned int got = 0; got < n;) {
		int taken;

		assert_true(test_now_ns() < give_up);
		if (fd >= 0)
			assert_int_equal(poll(&pfd, 1, 1000), 1); /* what is left is told too */
		taken = e->f->ops->poll(e->f, e->ev, 1);
		assert_in_range(taken, 0, 1);
		got += taken == 1 && e->ev[0].type == FABRIC_EV_CTRL;
	}
}

static void send_on_all(struct end *from, uint32_t channels, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		for (uint32_t c = 0; c < channels; c++)
			assert_int_equal(from->f->ops->ctrl(from->qp, c, 0, "many", 4), 0);
}

/* More sockets and more control datagrams than one look may take. */
static void test_crowded(void **state)
{
	struct end a, b;

	(void)state;
	end_open(&b, &listening, FABRIC_MAX_CHANNELS);
	end_open(&a, &active_only, FABRIC_MAX_CHANNELS);
	pair_connect(&a, &b, AF_INET);
	send_on_all(&b, FABRIC_MAX_CHANNELS, 150);
	(void)alarm(30); /* it looped for ever */
	take_one_by_one(&a, 150 * FABRIC_MAX_CHANNELS, -1);
	(void)alarm(0);
	end_close(&a);
	end_close(&b);
}

static void test_fd_tells_what_is_left(void **state)
{
	struct udp_fabric_attr attr = active_only;

	(void)state;
	for (attr.workers = 0; attr.workers < 2; attr.workers++) {
		struct end a, b;
		int fd;

		end_open(&b, &listening, 1);
		end_open(&a, &attr, 1);
		pair_connect(&a, &b, AF_INET);
		fd = a.f->ops->fd(a.f);
		end_poll(&a);
		send_on_all(&b, 1, 50);
		take_one_by_one(&a, 50, fd);
		end_close(&a);
		end_close(&b);
	}
}

/* Told to listen on any address, it answers from the one that was called. */
static void test_answers_as_called(void **state)
{
	static const char *const any[] = {NULL, "0.0.0.0", "::"};

	(void)state;
	for (size_t i = 0; i < SDR_ARRAY_LEN(any); i++) {
		struct udp_fabric_attr attr = {.listen = true, .bind_addr = any[i]};
		struct fabric_peer peer = {.qpn = 77, .token = 1, .active = true};
		struct fabric_caps caps;
		struct fabric_local local;
		struct sockaddr_in *sin = (struct sockaddr_in *)&peer.addr;
		struct end a, b;

		end_open(&b, &attr, 1);
		end_open(&a, &active_only, 1);
		b.f->ops->caps(b.f, &caps);
		b.f->ops->qp_local(b.qp, &local);
		peer.qpn = local.qpn;
		peer.token = local.token;
		peer.addr = loopback(AF_INET, caps.udp_port);
		sin->sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
		assert_int_equal(a.f->ops->qp_connect(a.qp, &peer), 0);
		a.f->ops->qp_local(a.qp, &local);
		peer = (struct fabric_peer){.qpn = local.qpn, .token = local.token};
		assert_int_equal(b.f->ops->qp_connect(b.qp, &peer), 0);
		for (int n = 0; n < 1000 && !a.seen[FABRIC_EV_CTRL]; n++) {
			(void)a.f->ops->ctrl(a.qp, 0, 0, "hello", 5);
			b.f->ops->wait(b.f, b.f->ops->now_ns(b.f) + 1000000);
			end_poll(&b);
			(void)b.f->ops->ctrl(b.qp, 0, 0, "hello", 5);
			end_poll(&a);
		}
		assert_true(a.seen[FABRIC_EV_CTRL] > 0);
		end_close(&a);
		end_close(&b);
	}
}

/* In a network namespace of our own, whose loopback's MTU is ours to change. */
static void loopback_mtu(int mtu)
{
	struct ifreq ifr = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	ifr.ifr_mtu = mtu;
	assert_int_equal(ioctl(fd, SIOCSIFMTU, &ifr), 0);
	assert_int_equal(ioctl(fd, SIOCGIFFLAGS, &ifr), 0);
	ifr.ifr_flags |= IFF_UP;
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &ifr), 0);
	close(fd);
}

static void test_narrower_route(void **state)
{
	struct end a, b;

	(void)state;
	if (unshare(CLONE_NEWNET) < 0)
		skip();
	for (int family = AF_INET; family <= AF_INET6; family += AF_INET6 - AF_INET) {
		loopback_mtu(9000);
		end_open(&b, &listening, 1);
		end_open(&a, &active_only, 1);
		pair_connect(&a, &b, family);
		assert_int_equal(a.f->ops->path_payload(a.qp), family == AF_INET ? 8936 : 8916);
		transfer(&a, &b, 0, 1000000, 8192, 1);
		assert_int_equal(a.seen[FABRIC_EV_MTU], 0);
		loopback_mtu(1500);
		transfer(&a, &b, 1, 1000000, 8192, 1);
		assert_int_equal(a.seen[FABRIC_EV_MTU], 1);
		assert_int_equal(a.last[FABRIC_EV_MTU].value, family == AF_INET ? 1436 : 1416);
		assert_int_equal(a.f->ops->path_payload(a.qp), family == AF_INET ? 1436 : 1416);
		assert_int_equal(end_counter(&a, SDR_CTR_mtu_fallback), 1);
		assert_int_equal(end_counter(&a, SDR_CTR_gso_fallback), 0);
		transfer(&a, &b, 2, 1000000, 1416, 1); /* fits again: DF and super-packets */
		loopback_mtu(9000);
		assert_true(a.f->ops->path_payload(a.qp) > 8900);
		transfer(&a, &b, 3, 1000000, 8192, 1);
		assert_int_equal(end_counter(&a, SDR_CTR_mtu_fallback), 1);
		end_close(&a);
		end_close(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_second_listener),
		cmocka_unit_test(test_bad_attributes),
		cmocka_unit_test(test_transfers),
		cmocka_unit_test(test_post_refuses),
		cmocka_unit_test(test_shared_sockets),
		cmocka_unit_test(test_candidate_paths),
		cmocka_unit_test(test_unknown_qp),
		cmocka_unit_test(test_host_drops),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_wait_and_fd),
		cmocka_unit_test(test_crowded),
		cmocka_unit_test(test_fd_tells_what_is_left),
		cmocka_unit_test(test_answers_as_called),
		cmocka_unit_test(test_narrower_route),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rocev2 mode on the wire and at the edges. The system calls that send are wrapped by the
 * linker (--wrap): every packet is judged by the identification that the kernel gives it, and
 * calls fail when the test likes. In a namespace of its own (test_ns.h), or not at all.
 */
#include "fabric/udp/test_ns.h"
#include "fabric/udp/test_util.h"
#include "wire/wire.h"
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
int __real_sendmmsg(int fd, struct mmsghdr *mm, unsigned int n, int flags);
ssize_t __real_sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *mm, unsigned int n, int flags);
ssize_t __wrap_sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len);

static struct {
	int super_fail_at; /* this super-packet and all later ones fail with super_err */
	int super_err;
	int supers, segments;
	int full_every; /* each n-th call for single packets finds the socket full */
	int calls, singles;
	int wrong; /* packets whose ICRC is not right for their identification */
} plan;

static uint16_t port_of(const struct sockaddr_storage *ss)
{
	struct sockaddr_in6 sin6;

	memcpy(&sin6, ss, sizeof(sin6)); /* the same place in both families */
	return ntohs(sin6.sin6_port);
}

static void flow_of(int fd, const void *to, struct wire_icrc_flow *flow)
{
	struct sockaddr_storage from = {0}, dest = {0};
	socklen_t len = sizeof(from);
	struct sockaddr_in src4, dst4;
	struct sockaddr_in6 src6, dst6;

	assert_int_equal(getsockname(fd, (struct sockaddr *)&from, &len), 0);
	memcpy(&dest, to, len);
	memcpy(&src4, &from, sizeof(src4));
	memcpy(&dst4, &dest, sizeof(dst4));
	memcpy(&src6, &from, sizeof(src6));
	memcpy(&dst6, &dest, sizeof(dst6));
	assert_int_equal(port_of(&dest), FABRIC_ROCEV2_PORT);
	if (from.ss_family == AF_INET)
		wire_icrc_flow_v4(flow, (uint8_t *)&src4.sin_addr, (uint8_t *)&dst4.sin_addr,
				  port_of(&from), port_of(&dest), true);
	else
		wire_icrc_flow_v6(flow, (uint8_t *)&src6.sin6_addr, (uint8_t *)&dst6.sin6_addr,
				  port_of(&from), port_of(&dest));
}

/* Segments of a super-packet have the identifications 0, 1, 2 .. */
static void judge(int fd, const void *to, const uint8_t *bytes, size_t len, size_t segment)
{
	struct wire_icrc_flow flow;

	flow_of(fd, to, &flow);
	for (uint16_t id = 0; len > 0; id++) {
		size_t take = u64_min(len, segment);

		plan.wrong += wire_icrc_check(&flow, id, bytes, take) != 0;
		bytes += take;
		len -= take;
	}
}

static void judge_msg(int fd, const struct msghdr *msg, size_t segment)
{
	static uint8_t bytes[65536];
	size_t len = 0;

	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		if (msg->msg_iov[i].iov_len)
			memcpy(bytes + len, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
		len += msg->msg_iov[i].iov_len;
	}
	judge(fd, msg->msg_name, bytes, len, segment ? segment : len);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	uint16_t segment = 0;

	if (msg->msg_controllen > 0) {
		struct cmsghdr c;

		memcpy(&c, msg->msg_control, sizeof(c));
		assert_int_equal(c.cmsg_type, UDP_SEGMENT);
		memcpy(&segment, CMSG_DATA((struct cmsghdr *)msg->msg_control), sizeof(segment));
		if (++plan.supers >= plan.super_fail_at && plan.super_fail_at > 0) {
			errno = plan.super_err;
			return -1;
		}
		plan.segments++;
	}
	judge_msg(fd, msg, segment);
	return __real_sendmsg(fd, msg, flags);
}

static bool full(void)
{
	if (plan.full_every == 0 || ++plan.calls % plan.full_every != 0)
		return false;
	errno = EAGAIN;
	return true;
}

int __wrap_sendmmsg(int fd, struct mmsghdr *mm, unsigned int n, int flags)
{
	int sent;

	if (full())
		return -1;
	sent = __real_sendmmsg(fd, mm, plan.full_every && n > 5 ? 5 : n, flags);
	for (int i = 0; i < sent; i++)
		judge_msg(fd, &mm[i].msg_hdr, 0);
	plan.singles += sent > 0 ? sent : 0;
	return sent;
}

ssize_t __wrap_sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len)
{
	if (full())
		return -1;
	if (to)
		judge(fd, to, buf, len, len);
	plan.singles++;
	return __real_sendto(fd, buf, len, flags, to, to_len);
}

static int setup(void **state)
{
	(void)state;
	memset(&plan, 0, sizeof(plan));
	return 0;
}

static void open_pair(struct end *a, struct end *b, struct udp_fabric_attr attr, int family)
{
	attr.rocev2 = true;
	attr.bind_addr = test_ns_addr(family, 0);
	end_open(b, &attr, 2);
	attr.bind_addr = test_ns_addr(family, 1);
	end_open(a, &attr, 2);
	pair_connect(a, b, family);
}

static void close_pair(struct end *a, struct end *b)
{
	end_close(a);
	end_close(b);
}

static void run(int family, struct udp_fabric_attr attr, uint32_t payload, uint64_t fallbacks)
{
	struct end a, b;

	open_pair(&a, &b, attr, family);
	for (uint32_t m = 0; m < 3; m++)
		transfer(&a, &b, m * (TEST_SLOTS + 1), 1000003, payload, 2);
	assert_int_equal(end_counter(&a, SDR_CTR_gso_fallback), fallbacks);
	assert_int_equal(end_counter(&b, SDR_CTR_rx_duplicate), 0);
	assert_int_equal(end_counter(&b, SDR_CTR_rx_protection), 0);
	assert_int_equal(end_counter(&b, SDR_CTR_rx_unknown_qp), 0);
	assert_int_equal(end_counter(&a, SDR_CTR_tx_pkts), end_counter(&b, SDR_CTR_rx_pkts));
	assert_int_equal(plan.wrong, 0);
	close_pair(&a, &b);
}

static void test_identifications_are_as_sealed(void **state)
{
	(void)state;
	run(AF_INET, (struct udp_fabric_attr){0}, 1024, 0);
	assert_true(plan.segments > 0);
	run(AF_INET, (struct udp_fabric_attr){0}, 4096, 0);
	run(AF_INET, (struct udp_fabric_attr){.no_gso = true}, 2048, 0);
	run(AF_INET6, (struct udp_fabric_attr){0}, 1024, 0);
	run(AF_INET6, (struct udp_fabric_attr){.workers = 2}, 4096, 0);
}

/* The packets of a super-packet that failed go out alone: with another identification. */
static void test_gso_fails(void **state)
{
	const int errors[] = {EIO, EINVAL};

	for (size_t i = 0; i < SDR_ARRAY_LEN(errors); i++) {
		setup(state);
		plan.super_fail_at = 3;
		plan.super_err = errors[i];
		run(AF_INET, (struct udp_fabric_attr){0}, 1024, 2);
		assert_true(plan.singles > 100);
	}
}

static void test_gso_fails_and_full(void **state)
{
	(void)state;
	plan.super_fail_at = 3;
	plan.super_err = EIO;
	plan.full_every = 3;
	run(AF_INET, (struct udp_fabric_attr){0}, 1024, 2);
}

/* Planted: what is not sealed again is seen by the judge above. */
static void test_the_judge_sees_a_wrong_identification(void **state)
{
	struct sockaddr_storage to = test_ns_sockaddr(AF_INET, 0, FABRIC_ROCEV2_PORT);
	struct sockaddr_storage from = test_ns_sockaddr(AF_INET, 1, 0);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	uint8_t bytes[32] = {WIRE_OP_CTRL};
	const struct wire_icrc_packet p = {
		.hdr = bytes, .hdr_len = 12, .payload = bytes + 12, .payload_len = 16};
	struct wire_icrc_flow flow;

	(void)state;
	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(struct sockaddr_in)), 0);
	flow_of(fd, &to, &flow);
	wire_icrc_seal(&flow, 3, &p, bytes + 28);
	judge(fd, &to, bytes, 32, 32);
	assert_int_equal(plan.wrong, 1);
	wire_icrc_seal(&flow, 0, &p, bytes + 28);
	judge(fd, &to, bytes, 32, 32);
	assert_int_equal(plan.wrong, 1);
	close(fd);
}

static void set_loopback_mtu(int mtu)
{
	struct ifreq req = {.ifr_name = "lo", .ifr_mtu = mtu};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	assert_int_equal(ioctl(fd, SIOCSIFMTU, &req), 0);
	close(fd);
}

/* To a peer like us the rest of a message still gets through, in fragments. */
static void test_the_route_gets_narrower(void **state)
{
	struct end a, b;

	(void)state;
	open_pair(&a, &b, (struct udp_fabric_attr){0}, AF_INET);
	assert_int_equal(a.f->ops->path_payload(a.qp), 4096);
	transfer(&a, &b, 0, 500000, 4096, 2);
	set_loopback_mtu(1500);
	transfer(&a, &b, 1, 500000, 4096, 2);
	assert_true(a.seen[FABRIC_EV_MTU] > 0);
	assert_int_equal(a.last[FABRIC_EV_MTU].value, 1024);
	assert_int_equal(a.f->ops->path_payload(a.qp), 1024);
	transfer(&a, &b, 2, 500000, 1024, 2);
	assert_int_equal(end_counter(&b, SDR_CTR_rx_protection), 0);
	assert_int_equal(plan.wrong, 0);
	set_loopback_mtu(65536);
	close_pair(&a, &b);
}

/* One device at any address, whose QPs are each other's peers. */
static void to_itself_at_any_address(int family)
{
	const struct udp_fabric_attr attr = {.rocev2 = true};
	struct end a, b;
	struct fabric_local local;
	struct fabric_qp_attr qa = {.channels = 2, .table = &b.table, .cookie = &b};

	end_open(&a, &attr, 2);
	/* The second end is a QP of the first one's device. */
	end_open(&b, &(struct udp_fabric_attr){0}, 2);
	b.f->ops->qp_destroy(b.qp);
	b.f->ops->close(b.f);
	b.f = a.f;
	b.rocev2 = true;
	assert_int_equal(rx_table_init(&b.table, b.slots, TEST_SLOTS,
				       TEST_SLOTS * FABRIC_MAX_GENERATIONS - 1, b.workers, 1,
				       RX_SINGLE_THREAD),
			 RX_OK);
	assert_int_equal(b.f->ops->qp_create(b.f, &qa, &b.qp), 0);
	a.f->ops->qp_local(a.qp, &local);
	assert_int_equal(local.addr.ss_family, 0);
	for (int i = 0; i < 2; i++) {
		struct end *e = i ? &b : &a, *other = i ? &a : &b;
		struct fabric_peer p = {.payload_bytes = 1024,
					.channels = 2,
					.generations = 4,
					.messages = TEST_SLOTS};

		other->f->ops->qp_local(other->qp, &local);
		p.qpn = local.qpn;
		p.addr = test_ns_sockaddr(family, 0, 1); /* the port is known */
		memcpy(p.data_qpn, local.data_qpn, sizeof(p.data_qpn));
		assert_int_equal(e->f->ops->qp_connect(e->qp, &p), 0);
	}
	transfer(&a, &b, 3, 300000, 1024, 2);
	transfer(&b, &a, 3, 300000, 1024, 2);
	assert_int_equal(plan.wrong, 0);
	a.f->ops->qp_destroy(b.qp);
	free(b.slots);
	free(b.workers);
	end_close(&a);
}

static void test_to_itself_at_any_address(void **state)
{
	(void)state;
	to_itself_at_any_address(AF_INET6);
	to_itself_at_any_address(AF_INET); /* by the same dual-stack socket */
}

/* Sealed as it should be, but from an address that is not the peer's. */
static void test_another_host(void **state)
{
	struct sockaddr_storage to = test_ns_sockaddr(AF_INET, 0, FABRIC_ROCEV2_PORT);
	uint64_t give_up = test_now_ns() + TEST_PATIENCE_NS;
	struct fabric_local local;
	struct end a, b;

	(void)state;
	open_pair(&a, &b, (struct udp_fabric_attr){0}, AF_INET);
	b.f->ops->qp_local(b.qp, &local);
	for (int foreign = 1; foreign >= 0; foreign--) {
		struct sockaddr_storage from = test_ns_sockaddr(AF_INET, !foreign, 0);
		const struct wire_ctrl_header header = {
			.dest_qpn = local.qpn, .src_qpn = 1, .psn = 1, .qkey = WIRE_ROCEV2_QKEY};
		uint8_t bytes[WIRE_CTRL_HDR_BYTES + 4 + 4] = {0};
		const struct wire_icrc_packet p = {.hdr = bytes,
						   .hdr_len = WIRE_CTRL_HDR_BYTES,
						   .payload = bytes + WIRE_CTRL_HDR_BYTES,
						   .payload_len = 4};
		int fd = socket(AF_INET, SOCK_DGRAM, 0);
		struct wire_icrc_flow flow;
		uint64_t unknown = end_counter(&b, SDR_CTR_rx_unknown_qp);
		uint64_t malformed = end_counter(&b, SDR_CTR_rx_malformed);

		assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(struct sockaddr_in)), 0);
		flow_of(fd, &to, &flow);
		wire_ctrl_put_header(bytes, &header, 4);
		wire_icrc_seal(&flow, 0, &p, bytes + sizeof(bytes) - 4);
		assert_int_equal(__real_sendto(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&to,
					       sizeof(struct sockaddr_in)),
				 sizeof(bytes));
		/* From the peer it gets as far as its source QP, which is wrong. */
		while (end_counter(&b, SDR_CTR_rx_unknown_qp) == unknown &&
		       end_counter(&b, SDR_CTR_rx_malformed) == malformed) {
			assert_true(test_now_ns() < give_up);
			end_poll(&b);
		}
		assert_int_equal(end_counter(&b, SDR_CTR_rx_unknown_qp), unknown + (foreign == 1));
		assert_int_equal(end_counter(&b, SDR_CTR_rx_malformed), malformed + !foreign);
		close(fd);
	}
	close_pair(&a, &b);
}

/* Nobody listens at the peer's address: told, and the socket does not stay ready. */
static void test_refused(void **state)
{
	struct udp_fabric_attr attr = {.rocev2 = true, .bind_addr = test_ns_addr(AF_INET, 1)};
	uint64_t give_up = test_now_ns() + TEST_PATIENCE_NS;
	struct fabric_peer p = {.qpn = 5,
				.payload_bytes = 1024,
				.channels = 1,
				.generations = 1,
				.messages = TEST_SLOTS,
				.data_qpn = {7}};
	struct end a;

	(void)state;
	for (int i = 0; i < 4; i++) {
		int family = i & 1 ? AF_INET6 : AF_INET;
		struct pollfd pfd = {.events = POLLIN};

		attr.workers = i & 2 ? 2 : 0;
		attr.bind_addr = test_ns_addr(family, 1);
		end_open(&a, &attr, 1);
		p.addr = test_ns_sockaddr(family, 0, 0);
		assert_int_equal(a.f->ops->qp_connect(a.qp, &p), 0);
		pfd.fd = a.f->ops->fd(a.f);
		while (a.seen[FABRIC_EV_REFUSED] == 0) {
			assert_true(test_now_ns() < give_up);
			a.f->ops->ctrl(a.qp, 0, 0, "?", 1);
			end_poll(&a);
		}
		/* Whatever is queued is taken: then the descriptor is at rest. */
		for (int polls = 0; polls < 10; polls++)
			end_poll(&a);
		if (attr.workers == 0)
			assert_int_equal(poll(&pfd, 1, 0), 0);
		end_close(&a);
	}
}

static void test_opening(void **state)
{
	struct udp_fabric_attr attr = {.rocev2 = true, .bind_addr = test_ns_addr(AF_INET, 0)};
	struct fabric *f, *second;
	struct fabric_caps caps;

	(void)state;
	assert_int_equal(udp_fabric_open(&attr, &f), 0);
	f->ops->caps(f, &caps);
	assert_int_equal(caps.mode, WIRE_ROCEV2);
	assert_int_equal(caps.generations, 4);
	assert_int_equal(caps.max_payload_bytes, 4096);
	assert_int_equal(caps.max_ctrl_bytes, FABRIC_ROCEV2_CTRL_MAX);
	assert_int_equal(caps.udp_port, 4791);
	assert_int_equal(udp_fabric_open(&attr, &second), -EADDRINUSE);
	f->ops->close(f);
	attr.listen_port = 4792;
	assert_int_equal(udp_fabric_open(&attr, &f), -EINVAL);
	attr.listen_port = 4791;
	attr.max_payload = 1023;
	assert_int_equal(udp_fabric_open(&attr, &f), -EINVAL);
	attr.max_payload = 4095;
	assert_int_equal(udp_fabric_open(&attr, &f), 0);
	f->ops->caps(f, &caps);
	assert_int_equal(caps.max_payload_bytes, 2048);
	f->ops->close(f);
}

static void test_connecting(void **state)
{
	const struct udp_fabric_attr attr = {.rocev2 = true, .bind_addr = test_ns_addr(AF_INET, 0)};
	struct fabric_peer good = {.qpn = 5,
				   .payload_bytes = 1024,
				   .channels = 2,
				   .generations = 2,
				   .messages = 1024,
				   .addr = test_ns_sockaddr(AF_INET, 1, 0)};
	struct fabric_peer p;
	struct end a;

	(void)state;
	for (uint32_t i = 0; i < FABRIC_DATA_QPS; i++)
		good.data_qpn[i] = 100 + i;
	end_open(&a, &attr, 2);
	for (int i = 0; i < 9; i++) {
		p = good;
		p.payload_bytes = i == 0 ? 1000 : i == 1 ? 512 : p.payload_bytes;
		p.channels = i == 2 ? 3 : i == 3 ? 0 : p.channels;
		p.generations = i == 4 ? 3 : i == 5 ? 8 : p.generations;
		p.messages = i == 6 ? 1000 : i == 7 ? 2048 : p.messages;
		p.data_qpn[fabric_data_qp(1, 1)] = i == 8 ? 0 : 3;
		assert_int_equal(a.f->ops->qp_connect(a.qp, &p), -EINVAL);
	}
	memset(&p.addr, 0, sizeof(p.addr));
	assert_int_equal(a.f->ops->qp_connect(a.qp, &p), -EINVAL);
	p = good;
	assert_int_equal(a.f->ops->qp_connect(a.qp, &p), 0);
	assert_int_equal(a.f->ops->qp_connect(a.qp, &p), -EISCONN);
	end_close(&a);
}

/* All numbers of many QPs are different, and each finds its QP. */
static void test_numbers(void **state)
{
	enum { QPS = 64 };
	const struct udp_fabric_attr attr = {
		.rocev2 = true, .max_qps = QPS, .bind_addr = test_ns_addr(AF_INET, 0)};
	const struct fabric_qp_attr qa = {.channels = FABRIC_MAX_CHANNELS};
	uint8_t *seen = calloc(1, 1u << 24);
	struct fabric_qp *qp[QPS];
	struct fabric *f;

	(void)state;
	assert_non_null(seen);
	assert_int_equal(udp_fabric_open(&attr, &f), 0);
	for (uint32_t i = 0; i < QPS; i++) {
		struct fabric_local local;

		assert_int_equal(f->ops->qp_create(f, &qa, &qp[i]), 0);
		f->ops->qp_local(qp[i], &local);
		assert_int_equal(seen[local.qpn]++, 0);
		for (uint32_t d = 0; d < FABRIC_DATA_QPS; d++) {
			assert_in_range(local.data_qpn[d], 2, 0xfffffe);
			assert_int_equal(seen[local.data_qpn[d]]++, 0);
		}
	}
	for (uint32_t i = 0; i < QPS; i++)
		f->ops->qp_destroy(qp[i]);
	f->ops->close(f);
	free(seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_identifications_are_as_sealed, setup),
		cmocka_unit_test_setup(test_gso_fails, setup),
		cmocka_unit_test_setup(test_gso_fails_and_full, setup),
		cmocka_unit_test_setup(test_the_judge_sees_a_wrong_identification, setup),
		cmocka_unit_test_setup(test_the_route_gets_narrower, setup),
		cmocka_unit_test_setup(test_to_itself_at_any_address, setup),
		cmocka_unit_test_setup(test_another_host, setup),
		cmocka_unit_test_setup(test_refused, setup),
		cmocka_unit_test_setup(test_opening, setup),
		cmocka_unit_test_setup(test_connecting, setup),
		cmocka_unit_test_setup(test_numbers, setup),
	};
	int err = test_ns_enter();

	if (err < 0) {
		print_message("skipped: no network namespace: %s\n", strerror(-err));
		return 77;
	}
	setenv("SDR_QUIET", "1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

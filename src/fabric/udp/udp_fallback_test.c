/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the host may refuse in the middle of sending. The system calls are wrapped by the
 * linker (--wrap), so that this program can fail them when it likes.
 */
#include "fabric/udp/test_util.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>

ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
int __real_sendmmsg(int fd, struct mmsghdr *mm, unsigned int n, int flags);
ssize_t __real_sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *mm, unsigned int n, int flags);
ssize_t __wrap_sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len);

static struct {
	int super_fail_at; /* the n-th super-packet fails ... */
	int super_err;	   /* ... and all later ones, if this is not EAGAIN */
	int supers;
	unsigned int most; /* packets that one sendmmsg takes; 0: all */
	int full_every;	   /* each n-th sendmmsg or sendto finds the socket full */
	int singles;
} plan;

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	if (msg->msg_controllen > 0 && plan.super_fail_at > 0) {
		int n = ++plan.supers;

		if (n == plan.super_fail_at ||
		    (n > plan.super_fail_at && plan.super_err != EAGAIN)) {
			errno = plan.super_err;
			return -1;
		}
	}
	return __real_sendmsg(fd, msg, flags);
}

static bool full(void)
{
	if (plan.full_every == 0 || ++plan.singles % plan.full_every != 0)
		return false;
	errno = EAGAIN;
	return true;
}

int __wrap_sendmmsg(int fd, struct mmsghdr *mm, unsigned int n, int flags)
{
	if (full())
		return -1;
	if (plan.most > 0 && n > plan.most)
		n = plan.most;
	return __real_sendmmsg(fd, mm, n, flags);
}

ssize_t __wrap_sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len)
{
	return full() ? -1 : __real_sendto(fd, buf, len, flags, to, to_len);
}

static void run(size_t bytes, uint32_t payload, uint64_t fallbacks)
{
	struct udp_fabric_attr attr = {.listen = true};
	struct end a, b;

	end_open(&b, &attr, 2);
	attr.listen = false;
	end_open(&a, &attr, 2);
	pair_connect(&a, &b, AF_INET);
	transfer(&a, &b, 0, bytes, payload, 2);
	transfer(&a, &b, 1, bytes, payload, 2);
	assert_int_equal(end_counter(&a, SDR_CTR_gso_fallback), fallbacks);
	assert_int_equal(end_counter(&b, SDR_CTR_rx_duplicate), 0);
	assert_int_equal(end_counter(&b, SDR_CTR_rx_protection), 0);
	assert_int_equal(end_counter(&a, SDR_CTR_tx_pkts), end_counter(&b, SDR_CTR_rx_pkts));
	end_close(&a);
	end_close(&b);
}

static int setup(void **state)
{
	(void)state;
	plan.super_fail_at = plan.super_err = plan.supers = 0;
	plan.most = 0;
	plan.full_every = plan.singles = 0;
	return 0;
}

/* Segmentation stops working after two trains: on both channels, nothing is lost. */
static void test_gso_fails(void **state)
{
	static const int errors[] = {EIO, EINVAL, EMSGSIZE};

	for (size_t i = 0; i < SDR_ARRAY_LEN(errors); i++) {
		setup(state);
		plan.super_fail_at = 3;
		plan.super_err = errors[i];
		run(2000001, 1408, 2);
	}
}

/* ... and then the socket is full in the middle of a batch of single packets. */
static void test_gso_fails_and_full(void **state)
{
	(void)state;
	plan.super_fail_at = 3;
	plan.super_err = EIO;
	plan.most = 5;
	plan.full_every = 3;
	run(1000003, 1001, 2);
}

static void test_super_full(void **state)
{
	struct end a, b;
	struct udp_fabric_attr attr = {.listen = true};
	static uint8_t bytes[2000];
	struct fabric_write w[2] = {
		{.addr = bytes, .payload_bytes = 1000, .last_bytes = 1000, .count = 2},
		{.addr = bytes, .payload_bytes = 1000, .last_bytes = 1000, .count = 2}};

	(void)state;
	end_open(&b, &attr, 1);
	attr.listen = false;
	end_open(&a, &attr, 1);
	pair_connect(&a, &b, AF_INET);
	w[0].qp = w[1].qp = a.qp;
	plan.super_fail_at = 2;
	plan.super_err = EAGAIN;
	assert_int_equal(a.f->ops->post(a.f, w, 2), 1);
	assert_int_equal(a.f->ops->post(a.f, w, 2), 0); /* until it was told */
	assert_int_equal(a.f->ops->ctrl(a.qp, 0, 0, "x", 1), -EAGAIN);
	assert_int_equal(a.seen[FABRIC_EV_WRITABLE], 0);
	end_poll(&a);
	assert_int_equal(a.seen[FABRIC_EV_WRITABLE], 1);
	assert_int_equal(a.f->ops->post(a.f, w, 2), 2);
	assert_int_equal(w[1].first_psn, (w[0].first_psn + 2) & 0xffffff);
	end_close(&a);
	end_close(&b);
}

/* A run longer than a datagram goes in parts; the socket is full after the first. */
static void test_part_is_kept(void **state)
{
	enum { PAYLOAD = 4096, BYTES = PAYLOAD * FABRIC_RUN_MAX - 7 };
	struct udp_fabric_attr attr = {.listen = true};
	uint8_t *out = malloc(BYTES), *in = calloc(1, BYTES);
	uint64_t bits = 0, give_up = test_now_ns() + TEST_PATIENCE_NS;
	struct fabric_write w = {.addr = out,
				 .payload_bytes = PAYLOAD,
				 .last_bytes = PAYLOAD - 7,
				 .count = FABRIC_RUN_MAX};
	struct fabric_bind bind = {
		.rx = {.base = in, .len = BYTES, .payload = PAYLOAD, .imm_frags = 1}};
	struct end a, b;

	(void)state;
	assert_true(out && in);
	for (size_t i = 0; i < BYTES; i++)
		out[i] = (uint8_t)(i * 31 >> 4);
	end_open(&b, &attr, 1);
	attr.listen = false;
	end_open(&a, &attr, 1);
	pair_connect(&a, &b, AF_INET);
	w.qp = a.qp;
	assert_int_equal(b.f->ops->bind(b.qp, 0, &bind, &(struct fabric_key){0}), 0);
	plan.super_fail_at = 2;
	plan.super_err = EAGAIN;
	plan.full_every = 10;
	assert_int_equal(a.f->ops->post(a.f, &w, 1), 1);
	while (bits != UINT64_MAX) {
		assert_true(test_now_ns() < give_up);
		end_poll(&a);
		end_poll(&b);
		rx_bits_get(rx_slot_of(&b.table, 0), 0, FABRIC_RUN_MAX, &bits);
	}
	assert_int_equal(a.seen[FABRIC_EV_WRITABLE], 1);
	assert_int_equal(end_counter(&b, SDR_CTR_rx_duplicate), 0);
	assert_memory_equal(in, out, BYTES);
	end_close(&a);
	end_close(&b);
	free(out);
	free(in);
}

/* The host's firewall drops what we send: as good as lost. */
static void test_eperm(void **state)
{
	struct udp_fabric_attr attr = {.listen = true};
	static uint8_t bytes[2000];
	struct fabric_write w = {
		.addr = bytes, .payload_bytes = 1000, .last_bytes = 1000, .count = 2};
	struct end a, b;

	(void)state;
	end_open(&b, &attr, 1);
	attr.listen = false;
	end_open(&a, &attr, 1);
	pair_connect(&a, &b, AF_INET);
	w.qp = a.qp;
	plan.super_fail_at = 1;
	plan.super_err = EPERM;
	assert_int_equal(a.f->ops->post(a.f, &w, 1), 1);
	assert_int_equal(end_counter(&a, SDR_CTR_tx_errors), 2);
	assert_int_equal(end_counter(&a, SDR_CTR_gso_fallback), 0);
	end_close(&a);
	end_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_gso_fails, setup),
		cmocka_unit_test_setup(test_gso_fails_and_full, setup),
		cmocka_unit_test_setup(test_super_full, setup),
		cmocka_unit_test_setup(test_part_is_kept, setup),
		cmocka_unit_test_setup(test_eperm, setup),
	};

	setenv("SDR_QUIET", "1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

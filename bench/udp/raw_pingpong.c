/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The latency floor that fabric/udp is measured against: a UDP ping-pong over bare
 * sockets, both ends asleep in poll() between packets or, with --spin, polling.
 *
 *   raw_pingpong recv ADDR PORT [--spin]
 *   raw_pingpong send ADDR PORT [--spin] [--count N] [--bytes N]
 *
 * Prints the median and the 99th percentile of the round trip.
 */
#include "bench/udp/bench_util.h"
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct pp_args {
	bool spin;
	unsigned int count;
	size_t bytes;
};

/* One datagram, or -1 after about a second of nothing. */
static ssize_t receive(int fd, uint8_t *buf, const struct pp_args *a, struct sockaddr_storage *from,
		       socklen_t *from_len)
{
	uint64_t give_up = bench_now_ns() + 1000000000u;

	for (;;) {
		ssize_t n = recvfrom(fd, buf, 2048, 0, (struct sockaddr *)from, from_len);

		if (n >= 0)
			return n;
		if (!a->spin)
			bench_wait_fd(fd, false);
		if (bench_now_ns() > give_up)
			return -1;
	}
}

static int order(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int run_send(int fd, const struct pp_args *a)
{
	uint64_t *rtt = calloc(a->count, sizeof(*rtt));
	uint8_t buf[2048] = {0};
	unsigned int n = 0;

	if (rtt == NULL)
		bench_die("out of memory");
	for (unsigned int i = 0; i < a->count; i++) {
		uint64_t begin = bench_now_ns();

		if (send(fd, buf, a->bytes, 0) < 0)
			bench_die("send: %s", strerror(errno));
		if (receive(fd, buf, a, NULL, NULL) >= 0)
			rtt[n++] = bench_now_ns() - begin;
	}
	if (n == 0)
		bench_die("no answer");
	qsort(rtt, n, sizeof(*rtt), order);
	printf("round trip p50 %.2f us, p99 %.2f us, %u of %u answered\n", (double)rtt[n / 2] / 1e3,
	       (double)rtt[n - 1 - n / 100] / 1e3, n, a->count);
	free(rtt);
	return 0;
}

/* Answers until ten seconds pass without a ping. */
static int run_recv(int fd, const struct pp_args *a)
{
	struct sockaddr_storage from;
	uint8_t buf[2048];

	for (unsigned int idle = 0; idle < 10;) {
		socklen_t len = sizeof(from);
		ssize_t n = receive(fd, buf, a, &from, &len);

		idle = n < 0 ? idle + 1 : 0;
		if (n >= 0 && sendto(fd, buf, (size_t)n, 0, (struct sockaddr *)&from, len) < 0)
			bench_die("sendto: %s", strerror(errno));
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct pp_args a = {.count = 20000, .bytes = 64};
	bool sender;
	int fd;

	if (argc < 4)
		bench_die("usage: raw_pingpong send|recv ADDR PORT [--spin] [--count N]");
	for (int i = 4; i < argc; i++) {
		if (strcmp(argv[i], "--spin") == 0)
			a.spin = true;
		else if (strcmp(argv[i], "--count") == 0 && i + 1 < argc)
			a.count = (unsigned int)strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--bytes") == 0 && i + 1 < argc)
			a.bytes = strtoul(argv[++i], NULL, 10);
		else
			bench_die("unknown option %s", argv[i]);
	}
	if (a.count == 0 || a.bytes == 0 || a.bytes > 2048)
		bench_die("count is 1 or more, bytes are 1 .. 2048");
	sender = strcmp(argv[1], "send") == 0;
	fd = bench_socket(argv[2], argv[3], !sender);
	return sender ? run_send(fd, &a) : run_recv(fd, &a);
}

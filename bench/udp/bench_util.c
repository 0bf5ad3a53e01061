/* SPDX-License-Identifier: Apache-2.0 */
/* What the UDP benchmarks share; see bench_util.h. */
#include "bench/udp/bench_util.h"
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

uint64_t bench_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

double bench_gbps(uint64_t bytes, uint64_t ns)
{
	return ns == 0 ? 0.0 : (double)bytes * 8.0 / (double)ns;
}

void bench_die(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static void set_options(int fd)
{
	int bytes = 32 << 20, on = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof(on));
}

int bench_socket(const char *addr, const char *port, bool bind_it)
{
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST}, *ai;
	int fd, err = getaddrinfo(addr, port, &hints, &ai);

	if (err != 0)
		bench_die("%s port %s: %s", addr, port, gai_strerror(err));
	fd = socket(ai->ai_family, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	if (fd < 0)
		bench_die("socket: %s", strerror(errno));
	set_options(fd);
	if ((bind_it ? bind : connect)(fd, ai->ai_addr, ai->ai_addrlen) < 0)
		bench_die("%s port %s: %s", addr, port, strerror(errno));
	freeaddrinfo(ai);
	return fd;
}

void bench_wait_fd(int fd, bool writable)
{
	struct pollfd p = {.fd = fd, .events = writable ? POLLOUT : POLLIN};

	poll(&p, 1, 100);
}

void *bench_scratch(size_t bytes)
{
	void *p = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);

	if (p == NULL)
		bench_die("out of memory");
	memset(p, 0, bytes);
	return p;
}

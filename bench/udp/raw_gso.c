/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket ceiling that fabric/udp is measured against: a bare UDP_SEGMENT / UDP_GRO
 * pair with the fabric's packet sizes (32 bytes of headers, payload, 4 of trailer), one
 * CRC32 a packet at each end and one copy at the receiver. No protocol at all.
 *
 *   raw_gso recv ADDR PORT [--payload N] [--seconds S]
 *   raw_gso send ADDR PORT [--payload N] [--seconds S] [--train N] [--no-gso]
 *                          [--window BYTES]
 *
 * Without a window the sender overruns the receiver's socket and both waste time on what
 * is dropped; with one (1 to 4 MiB do best) the receiver's counts hold it back, as any
 * sane user of the sockets would.
 *
 * The receiver counts from the first packet for S seconds and prints its goodput.
 */
#include "bench/udp/bench_util.h"
#include <errno.h>
#include <isa-l/crc.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define HDR_BYTES 32u
#define TRAILER_BYTES 4u
#define MESSAGE_BYTES (64u << 20) /* the user's memory that is sent from, placed into */
#define RX_BATCH 4u
#define RX_BUF_BYTES 65536u

struct raw_args {
	const char *addr, *port;
	size_t payload;
	double seconds;
	unsigned int train;
	size_t window;
	bool gso;
};

static uint8_t *message_memory(void)
{
	uint8_t *mem = aligned_alloc(4096, MESSAGE_BYTES);

	if (mem == NULL)
		bench_die("out of memory");
	memset(mem, 0x5a, MESSAGE_BYTES);
	return mem;
}

struct train {
	uint8_t meta[65][HDR_BYTES + TRAILER_BYTES];
	struct iovec iov[2 * 64 + 1];
	char cmsg[CMSG_SPACE(sizeof(uint16_t))];
	struct msghdr msg;
};

/* [hdr0][payload0][trailer0 hdr1][payload1] ... [trailer n-1]: as the fabric sends. */
static void train_fill(struct train *t, uint8_t *payload, size_t payload_bytes, unsigned int n,
		       uint64_t seq)
{
	for (unsigned int i = 0; i < n; i++) {
		uint8_t *hdr = t->meta[i] + TRAILER_BYTES;
		uint32_t crc;

		memcpy(hdr, &seq, sizeof(seq));
		seq++;
		crc = crc32_gzip_refl(0, hdr, HDR_BYTES);
		crc = crc32_gzip_refl(crc, payload + i * payload_bytes, payload_bytes);
		memcpy(t->meta[i + 1], &crc, sizeof(crc));
		t->iov[2 * i] = i == 0 ? (struct iovec){hdr, HDR_BYTES}
				       : (struct iovec){t->meta[i], HDR_BYTES + TRAILER_BYTES};
		t->iov[2 * i + 1] = (struct iovec){payload + i * payload_bytes, payload_bytes};
	}
	t->iov[2 * n] = (struct iovec){t->meta[n], TRAILER_BYTES};
	t->msg.msg_iov = t->iov;
	t->msg.msg_iovlen = 2 * n + 1;
}

static void train_gso(struct train *t, uint16_t segment)
{
	struct cmsghdr *c;

	t->msg.msg_control = t->cmsg;
	t->msg.msg_controllen = sizeof(t->cmsg);
	c = CMSG_FIRSTHDR(&t->msg);
	c->cmsg_level = SOL_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(segment));
	memcpy(CMSG_DATA(c), &segment, sizeof(segment));
}

/* Waits until the receiver has counted enough; what stays away for 20 ms was lost. */
static void window_wait(int fd, uint64_t sent, uint64_t window_pkts, uint64_t *lost)
{
	static uint64_t counted;

	while (sent - counted - *lost > window_pkts) {
		struct pollfd pfd = {.fd = fd, .events = POLLIN};
		uint64_t now;

		if (poll(&pfd, 1, 20) == 0)
			*lost = sent - counted;
		while (recv(fd, &now, sizeof(now), MSG_DONTWAIT) == (ssize_t)sizeof(now))
			counted = now > counted ? now : counted;
	}
}

static int run_send(const struct raw_args *a)
{
	size_t packet = HDR_BYTES + a->payload + TRAILER_BYTES;
	unsigned int n = a->gso ? a->train : 1;
	uint8_t *mem = message_memory();
	struct train *t = calloc(1, sizeof(*t));
	int fd = bench_socket(a->addr, a->port, false);
	uint64_t begin = bench_now_ns(), end = begin + (uint64_t)(a->seconds * 1e9);
	uint64_t sent = 0, again = 0, lost = 0;
	size_t at = 0;

	if (t == NULL)
		bench_die("out of memory");
	if (n > 65507 / packet)
		n = (unsigned int)(65507 / packet);
	if (n > 1)
		train_gso(t, (uint16_t)packet);
	while (bench_now_ns() < end) {
		if (at + n * a->payload > MESSAGE_BYTES)
			at = 0;
		if (a->window)
			window_wait(fd, sent, a->window / packet + 1, &lost);
		train_fill(t, mem + at, a->payload, n, sent);
		while (sendmsg(fd, &t->msg, 0) < 0) {
			if (errno != EAGAIN && errno != ENOBUFS && errno != ECONNREFUSED)
				bench_die("sendmsg: %s", strerror(errno));
			again++;
			bench_wait_fd(fd, true);
		}
		sent += n;
		at += n * a->payload;
	}
	printf("sent %.3f Gbit/s, %llu packets in trains of %u, %llu waits\n",
	       bench_gbps(sent * a->payload, bench_now_ns() - begin), (unsigned long long)sent, n,
	       (unsigned long long)again);
	return 0;
}

struct raw_rx {
	struct mmsghdr mm[RX_BATCH];
	struct iovec iov[RX_BATCH];
	char cmsg[RX_BATCH][256];
	struct sockaddr_storage from[RX_BATCH];
	uint8_t *buf[RX_BATCH];
	uint8_t *mem;
	size_t at;
	uint64_t bytes, pkts, bad;
	uint32_t drops;
};

static size_t rx_segment(struct raw_rx *rx, struct msghdr *msg, size_t len)
{
	size_t segment = len;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
			int v;

			memcpy(&v, CMSG_DATA(c), sizeof(v));
			segment = (size_t)v;
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
			memcpy(&rx->drops, CMSG_DATA(c), sizeof(rx->drops));
		}
	}
	return segment;
}

static void rx_packet(struct raw_rx *rx, const uint8_t *p, size_t len)
{
	size_t payload = len - HDR_BYTES - TRAILER_BYTES;
	uint32_t crc;

	memcpy(&crc, p + len - TRAILER_BYTES, sizeof(crc));
	if (crc != crc32_gzip_refl(0, p, len - TRAILER_BYTES)) {
		rx->bad++;
		return;
	}
	if (rx->at + payload > MESSAGE_BYTES)
		rx->at = 0;
	memcpy(rx->mem + rx->at, p + HDR_BYTES, payload);
	rx->at += payload;
	rx->bytes += payload;
	rx->pkts++;
}

static void rx_batch(struct raw_rx *rx, int fd)
{
	int n;

	for (unsigned int i = 0; i < RX_BATCH; i++) {
		rx->iov[i] = (struct iovec){rx->buf[i], RX_BUF_BYTES};
		rx->mm[i].msg_hdr = (struct msghdr){.msg_name = &rx->from[i],
						    .msg_namelen = sizeof(rx->from[i]),
						    .msg_iov = &rx->iov[i],
						    .msg_iovlen = 1,
						    .msg_control = rx->cmsg[i],
						    .msg_controllen = sizeof(rx->cmsg[i])};
	}
	n = recvmmsg(fd, rx->mm, RX_BATCH, MSG_DONTWAIT, NULL);
	if (n < 0) {
		if (errno == EAGAIN)
			bench_wait_fd(fd, false);
		return;
	}
	for (int i = 0; i < n; i++) {
		size_t len = rx->mm[i].msg_len;
		size_t segment = rx_segment(rx, &rx->mm[i].msg_hdr, len);

		for (size_t off = 0; off < len; off += segment) {
			size_t one = len - off < segment ? len - off : segment;

			if (one >= HDR_BYTES + TRAILER_BYTES)
				rx_packet(rx, rx->buf[i] + off, one);
		}
	}
	(void)sendto(fd, &rx->pkts, sizeof(rx->pkts), MSG_DONTWAIT, (struct sockaddr *)&rx->from[0],
		     rx->mm[0].msg_hdr.msg_namelen);
}

static int run_recv(const struct raw_args *a)
{
	struct raw_rx *rx = calloc(1, sizeof(*rx));
	int fd = bench_socket(a->addr, a->port, true);
	uint64_t begin = 0, now;

	if (rx == NULL)
		bench_die("out of memory");
	rx->mem = message_memory();
	for (unsigned int i = 0; i < RX_BATCH; i++)
		rx->buf[i] = bench_scratch(RX_BUF_BYTES);
	for (;;) {
		rx_batch(rx, fd);
		now = bench_now_ns();
		if (begin == 0 && rx->pkts > 0)
			begin = now;
		if (begin != 0 && now - begin > (uint64_t)(a->seconds * 1e9))
			break;
	}
	printf("goodput %.3f Gbit/s, %llu packets, %llu bad, %u drop events\n",
	       bench_gbps(rx->bytes, now - begin), (unsigned long long)rx->pkts,
	       (unsigned long long)rx->bad, rx->drops);
	return 0;
}

int main(int argc, char **argv)
{
	struct raw_args a = {.payload = 4096, .seconds = 3, .train = 64, .gso = true};

	if (argc < 4)
		bench_die("usage: raw_gso send|recv ADDR PORT [--payload N] [--seconds S]");
	a.addr = argv[2];
	a.port = argv[3];
	for (int i = 4; i < argc; i++) {
		if (strcmp(argv[i], "--no-gso") == 0)
			a.gso = false;
		else if (strcmp(argv[i], "--payload") == 0 && i + 1 < argc)
			a.payload = strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
			a.seconds = strtod(argv[++i], NULL);
		else if (strcmp(argv[i], "--train") == 0 && i + 1 < argc)
			a.train = (unsigned int)strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--window") == 0 && i + 1 < argc)
			a.window = strtoul(argv[++i], NULL, 10);
		else
			bench_die("unknown option %s", argv[i]);
	}
	if (a.payload == 0 || a.payload > 65000 || a.train == 0 || a.train > 64)
		bench_die("payload is 1 .. 65000 bytes, a train 1 .. 64 packets");
	return strcmp(argv[1], "send") == 0 ? run_send(&a) : run_recv(&a);
}

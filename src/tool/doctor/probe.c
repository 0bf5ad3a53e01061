// SPDX-License-Identifier: Apache-2.0
/*
 * What sockets of this host really do, tried over loopback: the buffers that are granted,
 * a super-packet cut (UDP_SEGMENT), datagrams joined (UDP_GRO), bytes compared. See net.h.
 */
#include "tool/doctor/net.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define SEGMENT 1200u
#define SEGMENTS 10u
#define TAIL 300u
#define BYTES (SEGMENT * SEGMENTS + TAIL)
#define WAIT_US 500000

/* ---- buffers -------------------------------------------------------------------- */

static void probe_buffer(struct sockbuf_facts *b, int force, int plain)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), wish = (int)SOCKBUF_WISH, got = 0;
	socklen_t len = sizeof got;

	b->wish_bytes = SOCKBUF_WISH;
	b->granted_bytes = 0;
	b->forced = 0;
	if (fd < 0)
		return;
	if (setsockopt(fd, SOL_SOCKET, force, &wish, sizeof wish) == 0)
		b->forced = 1;
	else
		(void)setsockopt(fd, SOL_SOCKET, plain, &wish, sizeof wish);
	/* The kernel doubles the wish to make room for its own structs. */
	if (getsockopt(fd, SOL_SOCKET, plain, &got, &len) == 0 && got > 0)
		b->granted_bytes = (uint64_t)got / 2;
	close(fd);
}

/* ---- segmentation and coalescing ------------------------------------------------ */

struct pair {
	int rx, tx;
	uint8_t sent[BYTES], got[BYTES + 1];
};

static int pair_open(struct pair *p)
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct timeval wait = {.tv_usec = WAIT_US};
	socklen_t len = sizeof addr;

	p->tx = -1;
	p->rx = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (p->rx < 0)
		return -1;
	p->tx = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (p->tx < 0 || bind(p->rx, (struct sockaddr *)&addr, sizeof addr) < 0 ||
	    getsockname(p->rx, (struct sockaddr *)&addr, &len) < 0 ||
	    connect(p->tx, (struct sockaddr *)&addr, len) < 0 ||
	    setsockopt(p->rx, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) < 0)
		return -1;
	for (unsigned int i = 0; i < BYTES; i++)
		p->sent[i] = (uint8_t)(i * 7 + i / SEGMENT);
	return 0;
}

static void pair_close(struct pair *p)
{
	if (p->rx >= 0)
		close(p->rx);
	if (p->tx >= 0)
		close(p->tx);
}

/* Reads until all bytes are there or nothing comes; how many reads brought something. */
static uint32_t pair_drain(struct pair *p, int *equal)
{
	uint32_t reads = 0;
	size_t used = 0;

	while (used < BYTES) {
		ssize_t n = recv(p->rx, p->got + used, sizeof p->got - used, 0);

		if (n < 0)
			break;
		used += (size_t)n;
		reads++;
	}
	*equal = used == BYTES && memcmp(p->sent, p->got, BYTES) == 0;
	return reads;
}

static int send_super(struct pair *p)
{
	int segment = SEGMENT;

	if (setsockopt(p->tx, SOL_UDP, UDP_SEGMENT, &segment, sizeof segment) < 0)
		return -errno;
	return send(p->tx, p->sent, BYTES, 0) == (ssize_t)BYTES ? 0 : -errno;
}

static int send_single(struct pair *p)
{
	for (unsigned int at = 0; at < BYTES; at += SEGMENT) {
		unsigned int n = BYTES - at < SEGMENT ? BYTES - at : SEGMENT;

		if (send(p->tx, p->sent + at, n, 0) < 0)
			return -errno;
	}
	return 0;
}

static void probe_gso(struct gso_facts *g)
{
	struct pair p;

	*g = (struct gso_facts){.sent_pkts = SEGMENTS + 1};
	if (pair_open(&p) < 0) {
		g->no_loopback = -errno;
	} else {
		g->error = send_super(&p);
		if (!g->error)
			g->received_pkts = pair_drain(&p, &g->equal);
	}
	pair_close(&p);
}

/* A super-packet that nobody cuts on loopback arrives in one read. */
static void probe_gro(struct gro_facts *g)
{
	struct pair p;
	int on = 1;

	*g = (struct gro_facts){.sent_pkts = SEGMENTS + 1};
	if (pair_open(&p) < 0) {
		g->no_loopback = -errno;
	} else if (setsockopt(p.rx, SOL_UDP, UDP_GRO, &on, sizeof on) < 0) {
		g->error = -errno;
	} else {
		if (send_super(&p) < 0)
			g->error = send_single(&p);
		if (!g->error)
			g->reads = pair_drain(&p, &g->equal);
	}
	pair_close(&p);
}

void net_probe(struct net_facts *n)
{
	probe_buffer(&n->rcvbuf, SO_RCVBUFFORCE, SO_RCVBUF);
	probe_buffer(&n->sndbuf, SO_SNDBUFFORCE, SO_SNDBUF);
	probe_gso(&n->gso);
	probe_gro(&n->gro);
}

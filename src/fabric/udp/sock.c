/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets: options, buffers, offloads and route MTU; one for each peer address and
 * channel, shared by the device's QPs. Knows nothing of packets' contents.
 *
 * rocev2 mode: listeners hear, and the others send, unconnected (udp.h says why). So what a
 * connected socket would know, the local address and the route's MTU, is asked of one that is
 * connected only for the question; and errors come by the error queue.
 *
 * The listener is bound without SO_REUSEPORT, which is set afterwards: a second listener
 * gets EADDRINUSE, yet the passive end's connected sockets can join the port later.
 */
#include "fabric/udp/udp_int.h"
#include "base/check.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define IPV4_HDR_BYTES 20u
#define IPV6_HDR_BYTES 40u
#define TOS_ECT0 2

static int set_int(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value));
}

static int get_int(int fd, int level, int name, int *value)
{
	socklen_t len = sizeof(*value);

	return getsockopt(fd, level, name, value, &len);
}

/* Privileged first, so that root needs no sysctl; what was granted is read back. */
static void set_buffers(struct udp_sock *s, uint32_t wish)
{
	int bytes = (int)wish, got = 0;

	if (set_int(s->fd, SOL_SOCKET, SO_RCVBUFFORCE, bytes) < 0)
		set_int(s->fd, SOL_SOCKET, SO_RCVBUF, bytes);
	if (set_int(s->fd, SOL_SOCKET, SO_SNDBUFFORCE, bytes) < 0)
		set_int(s->fd, SOL_SOCKET, SO_SNDBUF, bytes);
	/* The kernel doubles the wish to make room for its own structs. */
	if (get_int(s->fd, SOL_SOCKET, SO_RCVBUF, &got) == 0 && got > 0)
		s->rcvbuf = (uint32_t)got / 2;
}

/* An IPv6 socket takes both families' options: it may be dual stack. */
static void set_discover(struct udp_sock *s, bool fragment)
{
	set_int(s->fd, SOL_IP, IP_MTU_DISCOVER, fragment ? IP_PMTUDISC_DONT : IP_PMTUDISC_DO);
	if (s->family == AF_INET6)
		set_int(s->fd, SOL_IPV6, IPV6_MTU_DISCOVER,
			fragment ? IPV6_PMTUDISC_DONT : IPV6_PMTUDISC_DO);
}

static void set_options(const struct udp_fabric *f, struct udp_sock *s)
{
	int ignored;

	set_buffers(s, f->attr.sockbuf_bytes);
	set_discover(s, false);
	set_int(s->fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
	/* When the kernel had a packet, not when we came to read it: see stamp.h. */
	set_int(s->fd, SOL_SOCKET, SO_TIMESTAMPNS, 1);
	set_int(s->fd, SOL_IP, IP_RECVTOS, 1);
	if (s->family == AF_INET6)
		set_int(s->fd, SOL_IPV6, IPV6_RECVTCLASS, 1);
	if (f->attr.ecn) {
		set_int(s->fd, SOL_IP, IP_TOS, TOS_ECT0);
		if (s->family == AF_INET6)
			set_int(s->fd, SOL_IPV6, IPV6_TCLASS, TOS_ECT0);
	}
	if (!f->attr.no_gro)
		set_int(s->fd, SOL_UDP, UDP_GRO, 1);
	s->gso = !f->attr.no_gso && get_int(s->fd, SOL_UDP, UDP_SEGMENT, &ignored) == 0;
}

static int sock_new(const struct udp_fabric *f, int family, struct udp_sock **out)
{
	struct udp_sock *s = calloc(1, sizeof(*s));
	int err;

	if (s == NULL)
		return -ENOMEM;
	s->family = family;
	s->payload = f->max_payload;
	s->fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->fd < 0) {
		err = -errno;
		free(s);
		return err;
	}
	set_options(f, s);
	*out = s;
	return 0;
}

static void sock_free(struct udp_sock *s)
{
	close(s->fd);
	free(s->pending);
	free(s);
}

static int rx_epfd(const struct udp_fabric *f, const struct udp_sock *s)
{
	return f->nworkers > 0 ? f->worker[s->worker]->epfd : f->epfd;
}

/* From here on a worker may see it. */
static int sock_register(struct udp_fabric *f, struct udp_sock *s)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = s};

	s->worker = f->next_worker++ % f->nrx;
	if (epoll_ctl(rx_epfd(f, s), EPOLL_CTL_ADD, s->fd, &ev) < 0)
		return -errno;
	s->all_next = f->all;
	f->all = s;
	return 0;
}

static int bind_to(const struct udp_sock *s, const struct udp_addr *addr)
{
	struct sockaddr_storage ss;
	socklen_t len = udp_addr_to(addr, s->family, &ss);

	return bind(s->fd, (struct sockaddr *)&ss, len) < 0 ? -errno : 0;
}

static int local_get(const struct udp_sock *s, struct udp_addr *out)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);

	if (getsockname(s->fd, (struct sockaddr *)&ss, &len) < 0)
		return -errno;
	udp_addr_from(out, (struct sockaddr *)&ss);
	return 0;
}

/* shared: the port is ours already. */
static int listen_bind(const struct udp_sock *s, const struct udp_addr *addr, bool shared)
{
	int err = 0;

	if (shared && set_int(s->fd, SOL_SOCKET, SO_REUSEPORT, 1) < 0)
		return -errno;
	err = bind_to(s, addr);
	if (err == 0 && !shared && set_int(s->fd, SOL_SOCKET, SO_REUSEPORT, 1) < 0)
		err = -errno;
	return err;
}

static int listen_on(struct udp_fabric *f, int family, struct udp_sock **out)
{
	struct udp_addr addr = f->bind_addr;
	struct udp_sock *s;
	int err = sock_new(f, family, &s);

	if (err < 0)
		return err;
	addr.port = f->attr.listen_port;
	if (family == AF_INET6 && !f->bind_addr.set)
		set_int(s->fd, SOL_IPV6, IPV6_V6ONLY, 0);
	/* Who was addressed decides from which address we answer, and is under the ICRC. */
	set_int(s->fd, SOL_IP, IP_PKTINFO, 1);
	if (family == AF_INET6)
		set_int(s->fd, SOL_IPV6, IPV6_RECVPKTINFO, 1);
	/* RDMA devices have no UDP checksum, which IPv6 sockets want otherwise: ICRC covers all. */
	if (f->attr.rocev2 && family == AF_INET6)
		set_int(s->fd, SOL_UDP, UDP_NO_CHECK6_RX, 1);
	err = listen_bind(s, &addr, f->listener != NULL);
	if (err == 0)
		err = local_get(s, &addr);
	if (err < 0) {
		sock_free(s);
		return err;
	}
	f->port = addr.port;
	*out = s;
	return 0;
}

static int listen_once(struct udp_fabric *f)
{
	struct udp_sock *s;
	int err;

	if (f->bind_addr.set) {
		err = listen_on(f, udp_addr_is_v4(&f->bind_addr) ? AF_INET : AF_INET6, &s);
	} else {
		err = listen_on(f, AF_INET6, &s);
		if (err == -EAFNOSUPPORT || err == -EADDRNOTAVAIL)
			err = listen_on(f, AF_INET, &s);
	}
	if (err < 0)
		return err;
	s->refs = 1;
	err = sock_register(f, s);
	if (err < 0) {
		sock_free(s);
		return err;
	}
	f->listener = s;
	return 0;
}

int udp_sock_listen(struct udp_fabric *f)
{
	/* In rocev2 all that comes in comes here: each worker has one. */
	unsigned int n = f->attr.rocev2 ? f->nrx : 1;
	int err = 0;

	for (unsigned int i = 0; i < n && err == 0; i++)
		err = listen_once(f);
	return err;
}

static int mtu_get(const struct udp_sock *s)
{
	int mtu = 0, err;

	if (s->family == AF_INET)
		err = get_int(s->fd, SOL_IP, IP_MTU, &mtu);
	else
		err = get_int(s->fd, SOL_IPV6, IPV6_MTU, &mtu);
	return err < 0 ? -errno : mtu;
}

static int sock_connect(const struct udp_sock *s)
{
	struct sockaddr_storage ss;
	socklen_t len = udp_addr_to(&s->peer, s->family, &ss);

	return connect(s->fd, (struct sockaddr *)&ss, len) < 0 ? -errno : 0;
}

/* From which address a packet to this socket's peer leaves; its MTU, or -errno. */
static int route_ask(const struct udp_sock *s, struct udp_addr *local)
{
	struct udp_sock probe = {.family = s->family, .peer = s->peer};
	int result;

	probe.fd = socket(probe.family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (probe.fd < 0)
		return -errno;
	local->port = 0;
	result = local->set ? bind_to(&probe, local) : 0;
	if (result == 0)
		result = sock_connect(&probe);
	if (result == 0)
		result = local_get(&probe, local);
	if (result == 0)
		result = mtu_get(&probe);
	close(probe.fd);
	return result;
}

/* What a packet of an IP MTU carries. */
static uint32_t payload_of(const struct udp_fabric *f, const struct udp_sock *s, int mtu)
{
	uint32_t overhead = UDP_HDR_BYTES + WIRE_DATA_HDR_BYTES + WIRE_TRAILER_BYTES;
	uint32_t payload = f->max_payload;

	overhead += s->family == AF_INET ? IPV4_HDR_BYTES : IPV6_HDR_BYTES;
	/* Multiples of four need no pad. */
	if (mtu > (int)overhead + 4)
		payload = (uint32_t)u64_min(payload, ((uint32_t)mtu - overhead) & ~3u);
	return f->attr.rocev2 ? udp_rocev2_payload(payload) : payload;
}

bool udp_sock_route_mtu(struct udp_fabric *f, struct udp_sock *s)
{
	struct udp_addr local = s->local;
	uint32_t payload;

	if (!s->connected && !s->sends)
		return false;
	payload = payload_of(f, s, s->sends ? route_ask(s, &local) : mtu_get(s));
	if (payload == s->payload)
		return false;
	s->payload = payload;
	return true;
}

void udp_sock_set_fragmenting(struct udp_sock *s, bool on)
{
	set_discover(s, on);
	s->fragmenting = on;
}

static unsigned int bucket_of(const struct udp_addr *peer)
{
	return (unsigned int)(udp_addr_hash(peer) >> 32) % UDP_SOCK_BUCKETS;
}

static struct udp_sock *sock_find(struct udp_fabric *f, const struct udp_addr *peer,
				  uint32_t channel, bool active)
{
	struct udp_sock *s = f->bucket[bucket_of(peer)];

	while (s && !(s->active == active && (!active || s->channel == channel) &&
		      udp_addr_equal(&s->peer, peer)))
		s = s->bucket_next;
	return s;
}

/*
 * The passive end's sockets share the listener's port, at the address that the peer
 * wrote to; the active end's take any port.
 */
static int sock_bind(const struct udp_fabric *f, const struct udp_sock *s,
		     const struct udp_path *path)
{
	struct udp_addr addr = f->bind_addr;

	if (s->active)
		return f->bind_addr.set ? bind_to(s, &addr) : 0;
	if (udp_addr_is_any(&addr) && path->local.set)
		addr = path->local;
	addr.port = f->port;
	if (set_int(s->fd, SOL_SOCKET, SO_REUSEPORT, 1) < 0)
		return -errno;
	return bind_to(s, &addr);
}

/* One address for the socket's life: the ICRC covers it. */
static int sender_bind(const struct udp_fabric *f, struct udp_sock *s)
{
	int err;

	s->sends = true;
	if (!udp_addr_is_any(&f->bind_addr))
		s->local = f->bind_addr;
	err = route_ask(s, &s->local);
	if (err >= 0) {
		s->local.port = 0;
		err = bind_to(s, &s->local);
	}
	if (err == 0)
		err = local_get(s, &s->local);
	if (err < 0)
		return err;
	set_int(s->fd, SOL_IP, IP_RECVERR, 1);
	if (s->family == AF_INET6)
		set_int(s->fd, SOL_IPV6, IPV6_RECVERR, 1);
	udp_rocev2_flow(&s->flow, &s->local, &s->peer, s->peer.port);
	s->to_len = udp_addr_to(&s->peer, s->family, &s->to);
	return 0;
}

int udp_sock_get(struct udp_fabric *f, const struct udp_path *path, uint32_t channel, bool active,
		 struct udp_sock **out)
{
	struct udp_sock *s = sock_find(f, &path->peer, channel, active);
	struct udp_sock **bucket = &f->bucket[bucket_of(&path->peer)];
	int err;

	if (s) {
		if (s->refs++ == 0)
			f->lingering--;
		*out = s;
		return 0;
	}
	err = sock_new(f, udp_addr_is_v4(&path->peer) ? AF_INET : AF_INET6, &s);
	if (err < 0)
		return err;
	s->peer = path->peer;
	s->channel = channel;
	s->active = active;
	s->connected = !f->attr.rocev2;
	s->refs = 1;
	err = s->connected ? sock_bind(f, s, path) : sender_bind(f, s);
	if (err == 0 && s->connected)
		err = sock_connect(s);
	if (err == 0) {
		udp_sock_route_mtu(f, s);
		err = sock_register(f, s);
	}
	if (err < 0) {
		sock_free(s);
		return err;
	}
	s->bucket_next = *bucket;
	*bucket = s;
	*out = s;
	return 0;
}

void udp_sock_put(struct udp_fabric *f, struct udp_sock *s)
{
	SDR_ASSERT(s->refs > 0);
	if (--s->refs == 0) {
		s->linger_until_ns = udp_now_ns() + UDP_LINGER_NS;
		f->lingering++;
	}
}

static void sock_unlink(struct udp_fabric *f, struct udp_sock *s)
{
	struct udp_sock **at = &f->bucket[bucket_of(&s->peer)];

	while (*at && *at != s)
		at = &(*at)->bucket_next;
	if (*at)
		*at = s->bucket_next;
	udp_sock_disarm(f, s);
	if (f->nworkers > 0)
		epoll_ctl(rx_epfd(f, s), EPOLL_CTL_DEL, s->fd, NULL);
}

void udp_sock_reap(struct udp_fabric *f, uint64_t now_ns)
{
	struct udp_sock **at = &f->all, *gone = NULL, *s;

	while ((s = *at) != NULL) {
		if (s->refs > 0 || now_ns < s->linger_until_ns) {
			at = &s->all_next;
			continue;
		}
		*at = s->all_next;
		sock_unlink(f, s);
		s->all_next = gone;
		gone = s;
		f->lingering--;
	}
	if (gone)
		udp_quiesce_socks(f);
	while ((s = gone) != NULL) {
		gone = s->all_next;
		sock_free(s);
	}
}

void udp_sock_close_all(struct udp_fabric *f)
{
	struct udp_sock *s;

	while ((s = f->all) != NULL) {
		f->all = s->all_next;
		sock_free(s);
	}
	memset(f->bucket, 0, sizeof(f->bucket));
	f->listener = NULL;
}

/* With workers a socket is in the caller's epoll set only while it waits to send. */
static void epoll_out(struct udp_fabric *f, struct udp_sock *s, bool on)
{
	struct epoll_event ev = {.events = on ? EPOLLOUT : 0, .data.ptr = s};
	int op = EPOLL_CTL_MOD;

	if (f->nworkers == 0)
		ev.events |= EPOLLIN;
	else
		op = on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;
	epoll_ctl(f->epfd, op, s->fd, &ev);
}

void udp_sock_arm(struct udp_fabric *f, struct udp_sock *s)
{
	if (s->armed)
		return;
	s->armed = true;
	f->armed++;
	epoll_out(f, s, true);
}

void udp_sock_disarm(struct udp_fabric *f, struct udp_sock *s)
{
	if (!s->armed)
		return;
	s->armed = false;
	f->armed--;
	epoll_out(f, s, false);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The called end: the TCP port of the same number as the UDP port, and what becomes of
 * those who call. Strangers cost a descriptor for a few seconds, and there is a limit.
 */
#include "conn/hs.h"
#include <netdb.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define HS_BACKLOG 128

/* NULL: any, of both families. As text it may carry a scope: fe80::1%eth0. */
static int listen_addr(const char *bind_addr, struct sockaddr_storage *out)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
	struct addrinfo *ai;

	memset(out, 0, sizeof(*out));
	out->ss_family = AF_INET6;
	if (!bind_addr)
		return 0;
	if (getaddrinfo(bind_addr, NULL, &hints, &ai))
		return -EINVAL;
	memcpy(out, ai->ai_addr, u64_min(ai->ai_addrlen, sizeof(*out)));
	freeaddrinfo(ai);
	return 0;
}

int hs_listen_open(struct sdr_net *net, const char *bind_addr)
{
	struct sockaddr_storage addr;
	const int on = 1, off = 0;
	int err = listen_addr(bind_addr, &addr), fd;

	if (err)
		return err;
	fd = socket(addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 && !bind_addr) { /* a host without IPv6 */
		addr.ss_family = AF_INET;
		fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	}
	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (addr.ss_family == AF_INET6) {
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
		((struct sockaddr_in6 *)&addr)->sin6_port = htons(net->port);
	} else {
		((struct sockaddr_in *)&addr)->sin_port = htons(net->port);
	}
	if (bind(fd, (const struct sockaddr *)&addr,
		 addr.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					    : sizeof(struct sockaddr_in)) ||
	    listen(fd, HS_BACKLOG)) {
		err = -errno;
		(void)close(fd);
		return err;
	}
	net->listen_fd = fd;
	return 0;
}

int hs_listen_start(struct sdr_net *net)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &net->listen_fd};
	int err = 0;

	if (net->listen_fd < 0) {
		if (!net->port)
			return -EDESTADDRREQ; /* the context does not listen */
		err = hs_listen_open(net, net->bind_addr[0] ? net->bind_addr : NULL);
	}
	if (err || net->listening)
		return err;
	if (epoll_ctl(net->epfd, EPOLL_CTL_ADD, net->listen_fd, &ev))
		return -errno;
	net->listening = true;
	return 0;
}

/* No room, descriptor or memory is left: whoever calls waits in the kernel's queue. */
static void accept_pause(struct sdr_net *net, uint64_t until_ns)
{
	if (epoll_ctl(net->epfd, EPOLL_CTL_DEL, net->listen_fd, NULL))
		return;
	net->listening = false;
	net->accept_ns = until_ns;
}

void hs_accept_again(struct sdr_net *net, uint64_t now)
{
	if (net->accept_ns > now)
		return;
	net->accept_ns = UINT64_MAX;
	if (hs_listen_start(net))
		net->accept_ns = now + CONN_ACCEPT_PAUSE_NS;
}

/* The oldest that said nothing makes room, once it had its time. False: not yet. */
static bool half_open_room(struct sdr_net *net, uint64_t now)
{
	struct hs *hs = net->half_open;
	uint64_t at;

	if (net->nhalf_open < CONN_HALF_OPEN_MAX)
		return true;
	while (hs && hs->conn)
		hs = hs->next;
	if (!hs)
		return true;
	at = hs->deadline_ns - CONN_HELLO_TIMEOUT_NS + CONN_HELLO_GRACE_NS;
	if (at > now) {
		accept_pause(net, at);
		return false;
	}
	hs_end(hs);
	return true;
}

void hs_accept(struct sdr_net *net)
{
	uint64_t now = sdr_now_ns(net->ctx);

	/* Bounded: others want their turn too. */
	for (int i = 0; i < HS_BACKLOG && half_open_room(net, now); i++) {
		int fd = accept4(net->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		struct hs *hs;

		if (fd < 0 &&
		    (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
			accept_pause(net, now + CONN_ACCEPT_PAUSE_NS);
		if (fd < 0)
			return; /* none left, or one that went away meanwhile */
		hs = hs_new(net, NULL);
		if (!hs) {
			(void)close(fd);
			return;
		}
		net->nhalf_open++;
		hs->fd = fd;
		hs->state = HS_HELLO;
		hs->deadline_ns = now + CONN_HELLO_TIMEOUT_NS;
		hs_options(fd);
		if (hs_watch_fd(hs, fd, EPOLLIN, EPOLL_CTL_ADD))
			hs_end(hs);
	}
}

static void server_refuse(struct hs *hs, int err, const char *text)
{
	uint8_t body[256];
	size_t n = u64_min(strlen(text), sizeof(body) - 4);

	put_be32(body, (uint32_t)-err);
	memcpy(body + 4, text, n);
	(void)frame_send(hs, FRAME_ERROR, body, n + 4);
	hs_end(hs);
}

static void peer_target(struct hs *hs, struct sdr_conn *conn)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	char host[80], port[8];

	const char *name = host;

	if (getpeername(hs->fd, (struct sockaddr *)&addr, &len) ||
	    getnameinfo((const struct sockaddr *)&addr, len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		return;
	if (strncmp(name, "::ffff:", 7) == 0 && strchr(name, '.'))
		name += 7; /* an IPv4 peer of a socket for both */
	(void)snprintf(conn->target, sizeof(conn->target), strchr(name, ':') ? "[%s]:%s" : "%s:%s",
		       name, port);
}

/* Where TCP came from, at the UDP port that the info names: devices that are not told one
 * by the info itself need it. */
static void caller_addr(const struct hs *hs, struct sockaddr_storage *out,
			struct sdr_connect_attr *attr)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	socklen_t len = sizeof(*out);

	if (getpeername(hs->fd, (struct sockaddr *)out, &len))
		return;
	if (out->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
		memcpy(&v4.sin_addr, &v6->sin6_addr.s6_addr[12], 4);
		memcpy(out, &v4, sizeof(v4));
	} else if (out->ss_family == AF_INET6) {
		v6->sin6_port = 0;
	} else {
		((struct sockaddr_in *)out)->sin_port = 0;
	}
	attr->peer_addr = (const struct sockaddr *)out;
	attr->peer_addr_len = sizeof(*out);
}

void server_on_hello(struct hs *hs, const uint8_t *body, size_t len)
{
	struct sdr_connect_attr called = {.size = sizeof(called), .role = SDR_ROLE_PASSIVE};
	struct sockaddr_storage caller;
	struct sdr_net *net = hs->net;
	size_t info_len = 0;
	const uint8_t *info = hello_info(body, len, &info_len);
	struct sdr_conn *conn;
	char text[192];
	int err;

	if (!info) {
		hs_end(hs);
		return;
	}
	err = net->npending >= CONN_PENDING_MAX ? -EAGAIN
						: conn_create(net, &net->listen_attr, true, &conn);
	if (err) {
		server_refuse(hs, err, "the receiver is busy: try again later");
		return;
	}
	peer_target(hs, conn);
	caller_addr(hs, &caller, &called);
	hs_payload_limit(hs, conn);
	/* Who called opens the channels, whatever listens there too: it may sit behind NAT. */
	err = conn_connect_qp(conn, info, info_len, &called);
	if (err) {
		connect_error_text(err, info, info_len, false, text, sizeof(text));
		conn_destroy(conn);
		server_refuse(hs, err, text);
		return;
	}
	net->nhalf_open--;
	if (net->accept_ns != UINT64_MAX)
		net->accept_ns = 0; /* there is room for another */
	hs_unlist(hs);
	hs->conn = conn;
	conn->hs = hs;
	hs->state = HS_WATCH;
	hs->deadline_ns = UINT64_MAX;
	if (hello_send(hs))
		conn_fail(conn, -ECONNRESET, "%s hung up", conn->target);
}

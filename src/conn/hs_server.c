/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The called end: the TCP port of the same number as the UDP port, and what becomes of
 * those who call. Strangers cost a descriptor for a few seconds, and there is a limit.
 */
#include "conn/hs.h"
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define HS_BACKLOG 128

int hs_listen_open(struct sdr_net *net, const char *bind_addr)
{
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(net->port)};
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(net->port)};
	bool is_v4 = bind_addr && inet_pton(AF_INET, bind_addr, &v4.sin_addr) == 1;
	const int on = 1, off = 0;
	int fd = -1, err = 0;

	if (bind_addr && !is_v4 && inet_pton(AF_INET6, bind_addr, &v6.sin6_addr) != 1)
		return -EINVAL;
	if (!is_v4)
		fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) /* v4, or a host without IPv6 */
		fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), is_v4 = true;
	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (!is_v4)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (is_v4)
		err = bind(fd, (const struct sockaddr *)&v4, sizeof(v4));
	else
		err = bind(fd, (const struct sockaddr *)&v6, sizeof(v6));
	if (err || listen(fd, HS_BACKLOG)) {
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

/* The oldest that said nothing makes room. */
static void half_open_trim(struct sdr_net *net)
{
	struct hs *hs = net->half_open;

	while (hs && hs->conn)
		hs = hs->next;
	if (hs && net->nhalf_open > CONN_HALF_OPEN_MAX)
		hs_end(hs);
}

void hs_accept(struct sdr_net *net)
{
	for (;;) {
		int fd = accept4(net->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		struct hs *hs;

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
		hs->deadline_ns = sdr_now_ns(net->ctx) + CONN_HELLO_TIMEOUT_NS;
		hs_options(fd);
		if (hs_watch_fd(hs, fd, EPOLLIN, EPOLL_CTL_ADD))
			hs_end(hs);
		half_open_trim(net);
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

void server_on_hello(struct hs *hs, const uint8_t *body, size_t len)
{
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
	hs_payload_limit(hs, conn);
	err = conn_connect_qp(conn, info, info_len, NULL);
	if (err) {
		connect_error_text(err, info, info_len, false, text, sizeof(text));
		conn_destroy(conn);
		server_refuse(hs, err, text);
		return;
	}
	net->nhalf_open--;
	hs_unlist(hs);
	hs->conn = conn;
	conn->hs = hs;
	hs->state = HS_WATCH;
	hs->deadline_ns = UINT64_MAX;
	if (hello_send(hs))
		conn_fail(conn, -ECONNRESET, "%s hung up", conn->target);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling end: tries a host's addresses in order, says HELLO, connects its QP to what
 * comes back. Whatever fails ends in one sentence that names the target.
 */
#include "conn/hs.h"
#include <netdb.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

void client_fail(struct hs *hs, int status, const char *text)
{
	struct sdr_conn *conn = hs->conn;

	conn_fail(conn, status, "%s: %s", conn->target, text);
}

static void client_fail_dial(struct hs *hs)
{
	char text[160];
	int err = hs->last_error;

	if (err == ECONNREFUSED)
		(void)snprintf(text, sizeof(text),
			       "TCP connection refused: nothing listens on that port; is the "
			       "receiver running, and on this port?");
	else if (err == ETIMEDOUT)
		(void)snprintf(text, sizeof(text),
			       "no answer over TCP: is the host up, and does a firewall drop the "
			       "port?");
	else
		(void)snprintf(text, sizeof(text), "cannot connect over TCP: %s", strerror(err));
	client_fail(hs, -err, text);
}

void client_dial_next(struct hs *hs, uint64_t now)
{
	while (hs->addr_at < hs->addrs.n) {
		const struct sockaddr_storage *addr = &hs->addrs.addr[hs->addr_at++];
		uint32_t left = hs->addrs.n - hs->addr_at;
		uint64_t time = u64_sub_floor(hs->conn->connect_deadline_ns, now);

		if (hs->fd >= 0)
			(void)close(hs->fd);
		hs->fd = socket(addr->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (hs->fd < 0) {
			hs->last_error = errno;
			continue;
		}
		hs_options(hs->fd);
		hs->state = HS_DIAL;
		hs->dial_ns = now;
		/* The others get their share of the time. */
		hs->deadline_ns = left ? now + time / (left + 1) : UINT64_MAX;
		if (connect(hs->fd, (const struct sockaddr *)addr,
			    addr->ss_family == AF_INET ? sizeof(struct sockaddr_in)
						       : sizeof(struct sockaddr_in6)) &&
		    errno != EINPROGRESS)
			hs->last_error = errno;
		else if (!hs_watch_fd(hs, hs->fd, EPOLLOUT, EPOLL_CTL_ADD))
			return;
	}
	if (!hs->last_error)
		hs->last_error = EHOSTUNREACH;
	client_fail_dial(hs);
}

void client_resolved(struct hs *hs, uint64_t now)
{
	char text[192];

	if (!hs->addrs.error) {
		client_dial_next(hs, now);
		return;
	}
	(void)snprintf(text, sizeof(text), "cannot find this host: %s; check the name",
		       gai_strerror(hs->addrs.error));
	client_fail(hs, -ENXIO, text);
}

void client_dialled(struct hs *hs, uint64_t now)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (getsockopt(hs->fd, SOL_SOCKET, SO_ERROR, &err, &len))
		err = errno;
	if (err) {
		hs->last_error = err;
		client_dial_next(hs, now);
		return;
	}
	hs->state = HS_HELLO;
	hs->rtt_ns = u64_sub_floor(now, hs->dial_ns);
	hs->deadline_ns = UINT64_MAX; /* the connection's own */
	hs_payload_limit(hs, hs->conn);
	err = hello_send(hs);
	if (err)
		client_fail(hs, err, strerror(-err));
}

void client_on_hello(struct hs *hs, const uint8_t *body, size_t len)
{
	struct sockaddr_storage addr = hs->addrs.addr[hs->addr_at - 1];
	struct sdr_connect_attr attr = {.size = sizeof(attr),
					.role = SDR_ROLE_ACTIVE,
					.peer_addr = (const struct sockaddr *)&addr,
					.peer_addr_len = sizeof(addr)};
	size_t info_len = 0;
	const uint8_t *info = hello_info(body, len, &info_len);
	char text[192];
	int err;

	/* The host that TCP reached, at the UDP port that its info names. */
	if (addr.ss_family == AF_INET)
		((struct sockaddr_in *)&addr)->sin_port = 0;
	else
		((struct sockaddr_in6 *)&addr)->sin6_port = 0;
	err = info ? conn_connect_qp(hs->conn, info, info_len, &attr) : -SDR_E_BLOB;
	if (err) {
		connect_error_text(err, info, info_len, true, text, sizeof(text));
		client_fail(hs, err, text);
		return;
	}
	hint_start(hs->conn, hs->rtt_ns, sdr_now_ns(hs->net->ctx));
	conn_schedule(hs->conn, sdr_now_ns(hs->net->ctx)); /* trains leave now, not with the PONG */
	hs->state = HS_WATCH;
	hs_unlist(hs);
}

void client_on_error(struct hs *hs, const uint8_t *body, size_t len)
{
	char text[192];
	int code = len >= 4 ? (int)get_be32(body) : 0;
	size_t n = len > 4 ? u64_min(len - 4, sizeof(text) - 1) : 0;

	for (size_t i = 0; i < n; i++) /* a stranger's bytes go to a terminal */
		text[i] = body[4 + i] >= 0x20 && body[4 + i] < 0x7f ? (char)body[4 + i] : '?';
	text[n] = '\0';
	if (code < SDR_E_VERSION || code > SDR_E_BREAKER)
		code = SDR_E_MALFORMED;
	client_fail(hs, -code, text);
}

static void target_set(struct sdr_conn *conn, const char *host, uint16_t port)
{
	(void)snprintf(conn->target, sizeof(conn->target),
		       strchr(host, ':') ? "[%.80s]:%u" : "%.80s:%u", host, port);
}

int hs_client_start(struct sdr_conn *conn, const char *host, uint16_t port)
{
	struct hs *hs = hs_new(conn->net, conn);
	int err;

	if (!hs)
		return -ENOMEM;
	conn->hs = hs;
	target_set(conn, host, port);
	err = resolve_start(host, port, &hs->addrs, &hs->resolve);
	if (err)
		return err;
	if (hs->resolve)
		return hs_watch_fd(hs, resolve_fd(hs->resolve), EPOLLIN, EPOLL_CTL_ADD);
	client_resolved(hs, sdr_now_ns(conn->net->ctx));
	return 0;
}

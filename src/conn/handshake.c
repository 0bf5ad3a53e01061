/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both ends of the handshake share: the life of its TCP connections, frames, what is
 * read when. See hs.h.
 */
#include "conn/hs.h"
#include "wire/blob.h"
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- lists and life ---- */

static void hs_list(struct hs *hs)
{
	struct sdr_net *net = hs->net;

	hs->prev = net->half_open_tail;
	hs->next = NULL;
	if (hs->prev)
		hs->prev->next = hs;
	else
		net->half_open = hs;
	net->half_open_tail = hs;
	hs->listed = true;
}

void hs_unlist(struct hs *hs)
{
	struct sdr_net *net = hs->net;

	if (!hs->listed)
		return;
	if (hs->prev)
		hs->prev->next = hs->next;
	else
		net->half_open = hs->next;
	if (hs->next)
		hs->next->prev = hs->prev;
	else
		net->half_open_tail = hs->prev;
	hs->listed = false;
}

struct hs *hs_new(struct sdr_net *net, struct sdr_conn *conn)
{
	struct hs *hs = calloc(1, sizeof(*hs));

	if (!hs)
		return NULL;
	hs->net = net;
	hs->conn = conn;
	hs->fd = -1;
	hs->deadline_ns = UINT64_MAX;
	hs_list(hs);
	return hs;
}

void hs_end(struct hs *hs)
{
	struct sdr_net *net = hs->net;

	hs_unlist(hs);
	if (!hs->conn)
		net->nhalf_open--;
	else if (hs->conn->hs == hs)
		hs->conn->hs = NULL;
	if (hs->resolve) {
		(void)epoll_ctl(net->epfd, EPOLL_CTL_DEL, resolve_fd(hs->resolve), NULL);
		resolve_drop(hs->resolve);
	}
	if (hs->fd >= 0)
		(void)close(hs->fd);
	hs->fd = -1;
	hs->resolve = NULL;
	hs->next = net->dead_hs;
	net->dead_hs = hs;
}

void hs_reap(struct sdr_net *net)
{
	while (net->dead_hs) {
		struct hs *hs = net->dead_hs;

		net->dead_hs = hs->next;
		free(hs);
	}
}

void hs_detach(struct sdr_conn *conn)
{
	if (conn->hs)
		hs_end(conn->hs);
	conn->hs = NULL;
}

void hs_net_fini(struct sdr_net *net)
{
	while (net->half_open)
		hs_end(net->half_open);
	hs_reap(net);
	if (net->listen_fd >= 0)
		(void)close(net->listen_fd);
}

int hs_watch_fd(struct hs *hs, int fd, uint32_t events, int op)
{
	struct epoll_event ev = {.events = events, .data.ptr = hs};

	return epoll_ctl(hs->net->epfd, op, fd, &ev) ? -errno : 0;
}

void hs_options(int fd)
{
	const int on = 1, idle = 15, interval = 5, count = 4;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

/* ---- frames ---- */

/* Sends what is queued; the rest goes when the socket is writable. */
static int hs_flush(struct hs *hs)
{
	while (hs->out_len) {
		ssize_t n = send(hs->fd, hs->out, hs->out_len, MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return hs_watch_fd(hs, hs->fd, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
		if (n < 0)
			return -errno;
		hs->out_len -= (uint32_t)n;
		memmove(hs->out, hs->out + n, hs->out_len);
	}
	return hs_watch_fd(hs, hs->fd, EPOLLIN, EPOLL_CTL_MOD);
}

int frame_send(struct hs *hs, enum frame_kind kind, const void *body, size_t len)
{
	uint8_t *p = hs->out + hs->out_len;

	if (hs->out_len + FRAME_HDR_BYTES + len > sizeof(hs->out))
		return -ENOSPC;
	put_be32(p, FRAME_MAGIC);
	p[4] = (uint8_t)kind;
	p[5] = 0;
	put_be16(p + 6, (uint16_t)len);
	if (len)
		memcpy(p + FRAME_HDR_BYTES, body, len);
	hs->out_len += FRAME_HDR_BYTES + (uint32_t)len;
	return hs_flush(hs);
}

void hs_payload_limit(const struct hs *hs, struct sdr_conn *conn)
{
	struct sdr_ctx_info info = {.size = sizeof(info)};
	struct sockaddr_storage addr;
	socklen_t addr_len = sizeof(addr), mtu_len = sizeof(int);
	bool is_v6;
	uint32_t payload;
	int mtu = 0;

	if (getpeername(hs->fd, (struct sockaddr *)&addr, &addr_len))
		return;
	is_v6 = addr.ss_family == AF_INET6 &&
		!IN6_IS_ADDR_V4MAPPED(&((struct sockaddr_in6 *)&addr)->sin6_addr);
	if (getsockopt(hs->fd, is_v6 ? IPPROTO_IPV6 : IPPROTO_IP, is_v6 ? IPV6_MTU : IP_MTU, &mtu,
		       &mtu_len) ||
	    mtu <= 0)
		return;
	(void)sdr_ctx_query(conn->net->ctx, &info);
	payload = sdr_payload_for_mtu((uint32_t)mtu, is_v6);
	if (conn->attr.max_payload_bytes)
		payload = (uint32_t)u64_min(payload, conn->attr.max_payload_bytes);
	if (payload)
		(void)sdr_qp_payload_set(conn->qp,
					 (uint32_t)u64_min(payload, info.max_payload_bytes));
}

int hello_send(struct hs *hs)
{
	uint8_t body[FRAME_BODY_MAX];
	int len = sdr_qp_info_get(hs->conn->qp, body + 4, SDR_MAX_INFO_BYTES);

	if (len < 0)
		return len;
	body[0] = TLV_INFO;
	body[1] = 0;
	put_be16(body + 2, (uint16_t)len);
	return frame_send(hs, FRAME_HELLO, body, (size_t)len + 4);
}

const uint8_t *hello_info(const uint8_t *body, size_t len, size_t *info_len)
{
	while (len >= 4) {
		size_t n = get_be16(body + 2);

		if (n > len - 4)
			return NULL;
		if (body[0] == TLV_INFO) {
			*info_len = n;
			return body + 4;
		}
		body += 4 + n;
		len -= 4 + n;
	}
	return NULL;
}

/* Read at the client's end, whoever writes it. */
static void version_text(const uint8_t *info, size_t len, bool here, char *out, size_t cap)
{
	struct wire_blob b;

	if (wire_blob_get(info, len, &b) != -SDR_E_VERSION) {
		(void)snprintf(out, cap, "%s", sdr_strerror(-SDR_E_VERSION));
		return;
	}
	(void)snprintf(
		out, cap,
		"the two ends speak different protocol versions: %u to %u here, %u to %u "
		"there; update the older of the two",
		here ? WIRE_VERSION_MIN : b.version_min, here ? WIRE_VERSION_MAX : b.version_max,
		here ? b.version_min : WIRE_VERSION_MIN, here ? b.version_max : WIRE_VERSION_MAX);
}

/* An RDMA device here, plain UDP there, or the other way round: what else would be refused? */
static bool mode_text(const uint8_t *info, size_t len, bool here, char *out, size_t cap)
{
	struct wire_blob b;
	bool there;

	if (wire_blob_get(info, len, &b))
		return false;
	there = (b.mode == WIRE_ROCEV2) ==
		here; /* the end of whoever reads this is an RDMA device? */
	(void)snprintf(
		out, cap,
		there ? "the other end is an RDMA device, which speaks RoCEv2: use --device roce "
			"here (or verbs)"
		      : "the other end speaks plain UDP, this one RoCEv2: use --device udp here, "
			"or "
			"--device roce there");
	return true;
}

void connect_error_text(int err, const uint8_t *info, size_t len, bool here, char *out, size_t cap)
{
	if (err == -SDR_E_VERSION)
		version_text(info, len, here, out, cap);
	else if (err != -SDR_E_FEATURE || !mode_text(info, len, here, out, cap))
		(void)snprintf(out, cap, "%s", sdr_strerror(err));
}

/* ---- what comes in ---- */

static void hs_gone(struct hs *hs, bool garbage)
{
	struct sdr_conn *conn = hs->conn;

	if (!conn) {
		hs_end(hs);
	} else if (hs->state != HS_WATCH) {
		client_fail(hs, garbage ? -SDR_E_MALFORMED : -ECONNRESET,
			    garbage ? "something answered that does not speak this protocol: is "
				      "it the right port?"
				    : "hung up during the handshake: is it the right port?");
	} else {
		hs_detach(conn);
		if (conn->state == CONN_CONNECTING && conn->incoming)
			conn_fail(conn, -ECONNRESET, "%s hung up", conn->target);
		else if (!garbage)
			alive_suspect(conn, "its TCP connection ended without a goodbye");
	}
}

static void hs_on_frame(struct hs *hs, enum frame_kind kind, const uint8_t *body, size_t len)
{
	if (hs->state == HS_HELLO && !hs->conn && kind == FRAME_HELLO)
		server_on_hello(hs, body, len);
	else if (hs->state == HS_HELLO && hs->conn && kind == FRAME_HELLO)
		client_on_hello(hs, body, len);
	else if (hs->state == HS_HELLO && hs->conn && kind == FRAME_ERROR)
		client_on_error(hs, body, len);
	else if (hs->state == HS_WATCH && kind == FRAME_CLOSE && hs->conn->rel_ready)
		close_on_close(hs->conn);
	else if (hs->state == HS_WATCH && kind == FRAME_CLOSE_ECHO && hs->conn->rel_ready)
		close_on_echo(hs->conn);
	else
		hs_gone(hs, true);
}

/* The length of the frame that `in` begins with; 0: not all of it is here; -1: garbage. */
static int frame_length(const struct hs *hs)
{
	static const uint8_t magic[4] = {FRAME_MAGIC >> 24 & 0xff, FRAME_MAGIC >> 16 & 0xff,
					 FRAME_MAGIC >> 8 & 0xff, FRAME_MAGIC & 0xff};
	uint32_t len;

	if (memcmp(hs->in, magic, u64_min(hs->in_len, 4)) != 0)
		return -1;
	if (hs->in_len < FRAME_HDR_BYTES)
		return 0;
	len = get_be16(hs->in + 6);
	if (len > FRAME_BODY_MAX)
		return -1;
	return hs->in_len >= FRAME_HDR_BYTES + len ? (int)(FRAME_HDR_BYTES + len) : 0;
}

static void hs_read(struct hs *hs)
{
	while (hs->fd >= 0) {
		ssize_t n = recv(hs->fd, hs->in + hs->in_len, sizeof(hs->in) - hs->in_len, 0);
		int len;

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			hs_gone(hs, false);
			return;
		}
		hs->in_len += (uint32_t)n;
		while (hs->fd >= 0 && hs->in_len && (len = frame_length(hs)) != 0) {
			if (len < 0) {
				hs_gone(hs, true);
				return;
			}
			hs_on_frame(hs, hs->in[4], hs->in + FRAME_HDR_BYTES,
				    (size_t)len - FRAME_HDR_BYTES);
			hs->in_len -= (uint32_t)len;
			memmove(hs->in, hs->in + len, hs->in_len);
		}
	}
}

void hs_on_ready(struct sdr_net *net, struct hs *hs, uint32_t events)
{
	struct sdr_conn *conn = hs->conn;
	uint64_t now = sdr_now_ns(net->ctx);

	if (hs->fd < 0 && !hs->resolve)
		return; /* ended earlier in this round */
	if (hs->state == HS_RESOLVE) {
		resolve_take(hs->resolve, &hs->addrs);
		(void)epoll_ctl(net->epfd, EPOLL_CTL_DEL, resolve_fd(hs->resolve), NULL);
		resolve_drop(hs->resolve);
		hs->resolve = NULL;
		client_resolved(hs, now);
	} else if (hs->state == HS_DIAL) {
		client_dialled(hs, now);
	} else {
		if (events & EPOLLOUT && hs->out_len && hs_flush(hs))
			hs_gone(hs, false);
		if (hs->fd >= 0)
			hs_read(hs);
	}
	conn = conn ? conn : hs->conn;
	if (conn)
		conn_schedule(conn, now);
}

void hs_tick(struct sdr_net *net, uint64_t now)
{
	struct hs *next;

	hs_accept_again(net, now);
	for (struct hs *hs = net->half_open; hs; hs = next) {
		next = hs->next;
		if (hs->deadline_ns > now)
			continue;
		if (!hs->conn) {
			hs_end(hs);
		} else {
			hs->last_error = ETIMEDOUT;
			client_dial_next(hs, now);
		}
	}
}

bool hs_reached(const struct sdr_conn *conn)
{
	return conn->hs && conn->hs->state == HS_HELLO;
}

uint64_t hs_deadline(const struct sdr_net *net)
{
	uint64_t at = net->accept_ns;

	for (const struct hs *hs = net->half_open; hs; hs = hs->next)
		at = u64_min(at, hs->deadline_ns);
	return at;
}

void hs_say_close(struct sdr_conn *conn, bool echo)
{
	if (conn->hs && conn->hs->state == HS_WATCH)
		(void)frame_send(conn->hs, echo ? FRAME_CLOSE_ECHO : FRAME_CLOSE, NULL, 0);
}

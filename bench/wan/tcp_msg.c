// SPDX-License-Identifier: Apache-2.0
/*
 * Streams and messages over TCP: goodput, and the time from the first byte of a message to
 * the receiver's word that all of it is there. See msg_opts.h for the command line
 * and what travels. One thread, poll(2); several connections share a message in equal parts.
 * It knows nothing of links and of how figures are put together: bench/wan/compare does.
 */
#include "msg_opts.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_CONNS 64
#define POLL_MS 50

struct conn {
	int fd;
	/* sender */
	uint8_t header[MSG_HEADER];
	size_t header_left;
	uint64_t left;	  /* bytes of the frame still to send */
	uint64_t unasked; /* frames sent or begun that were not answered */
	/* receiver */
	struct msg_in in;
	unsigned int owed; /* answers */
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static void fail(const char *what)
{
	fprintf(stderr, "tcp_msg: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void set_int(int fd, int level, int name, int value, const char *text)
{
	if (setsockopt(fd, level, name, &value, sizeof value) < 0)
		fail(text);
}

/* A set size turns the kernel's own growing off: only where it was asked for. */
static void tune(int fd, const struct msg_opts *o)
{
	if (o->sndbuf_bytes)
		set_int(fd, SOL_SOCKET, SO_SNDBUF, o->sndbuf_bytes, "SO_SNDBUF");
	if (o->rcvbuf_bytes)
		set_int(fd, SOL_SOCKET, SO_RCVBUF, o->rcvbuf_bytes, "SO_RCVBUF");
	if (o->cc &&
	    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, o->cc, (socklen_t)strlen(o->cc)) < 0)
		fail("TCP_CONGESTION: see net.ipv4.tcp_available_congestion_control");
}

static void set_running(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		fail("O_NONBLOCK");
	set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
}

static struct addrinfo *resolve(const struct msg_opts *o)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
	int rc = getaddrinfo(o->host, o->port, &hints, &found);

	if (rc) {
		fprintf(stderr, "tcp_msg: %s port %s: %s\n", o->host, o->port, gai_strerror(rc));
		exit(1);
	}
	return found;
}

/* ---- receiver ------------------------------------------------------------------- */

static int listen_on(const struct msg_opts *o)
{
	struct addrinfo *at = resolve(o);
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		fail("socket");
	set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
	tune(fd, o);
	if (bind(fd, at->ai_addr, at->ai_addrlen) < 0)
		fail("bind");
	if (listen(fd, MAX_CONNS) < 0)
		fail("listen");
	freeaddrinfo(at);
	return fd;
}

/* Sends what is owed; false: the connection is gone. */
static int answer(struct conn *c)
{
	static const uint8_t yes[64];

	while (c->owed) {
		size_t n = c->owed < sizeof yes ? c->owed : sizeof yes;
		ssize_t sent = send(c->fd, yes, n, MSG_NOSIGNAL);

		if (sent < 0)
			return errno == EAGAIN || errno == EINTR;
		c->owed -= (unsigned int)sent;
	}
	return 1;
}

/* Reads a few buffers; false: the connection has ended. */
static int receive(struct conn *c, uint8_t *buf, struct msg_sampler *s)
{
	for (int i = 0; i < 8; i++) {
		ssize_t n = recv(c->fd, buf, MSG_BUFFER, 0);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n <= 0)
			return 0;
		c->owed += msg_in_take(&c->in, buf, (size_t)n, &s->total);
	}
	return answer(c);
}

static void accept_one(int listener, struct conn *conns, int *n)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return;
	if (*n == MAX_CONNS) {
		fprintf(stderr, "tcp_msg: more than %d connections: one is closed\n", MAX_CONNS);
		close(fd);
		return;
	}
	set_running(fd);
	conns[*n] = (struct conn){.fd = fd};
	++*n;
}

static int run_recv(const struct msg_opts *o)
{
	static struct conn conns[MAX_CONNS];
	static uint8_t buf[MSG_BUFFER];
	struct pollfd p[MAX_CONNS + 1];
	struct msg_sampler s = {0};
	int n = 0;

	p[0] = (struct pollfd){.fd = listen_on(o), .events = POLLIN};
	while (!stop) {
		for (int i = 0; i < n; i++) {
			p[i + 1].fd = conns[i].fd;
			p[i + 1].events = (short)(POLLIN | (conns[i].owed ? POLLOUT : 0));
		}
		if (poll(p, (nfds_t)n + 1, POLL_MS) < 0 && errno != EINTR)
			fail("poll");
		for (int i = n - 1; i >= 0; i--) {
			if (!p[i + 1].revents || receive(&conns[i], buf, &s))
				continue;
			close(conns[i].fd);
			conns[i] = conns[--n];
		}
		if (p[0].revents)
			accept_one(p[0].fd, conns, &n);
		msg_sample(&s, n == 0);
	}
	msg_sample(&s, 1);
	return 0;
}

/* ---- sender --------------------------------------------------------------------- */

static int connect_one(const struct msg_opts *o, const struct addrinfo *to)
{
	int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		fail("socket");
	tune(fd, o);
	if (connect(fd, to->ai_addr, to->ai_addrlen) < 0)
		fail("connect");
	set_running(fd);
	return fd;
}

static void frame_begin(struct conn *c, uint64_t bytes)
{
	msg_header_write(c->header, bytes);
	c->header_left = MSG_HEADER;
	c->left = bytes;
	c->unasked++;
}

static void send_some(struct conn *c, const uint8_t *buf)
{
	while (c->header_left || c->left) {
		const uint8_t *from =
			c->header_left ? c->header + MSG_HEADER - c->header_left : buf;
		size_t n = c->header_left	  ? c->header_left
			   : c->left < MSG_BUFFER ? (size_t)c->left
						  : MSG_BUFFER;
		ssize_t sent = send(c->fd, from, n, MSG_NOSIGNAL | (c->header_left ? MSG_MORE : 0));

		if (sent < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (sent < 0)
			fail("send");
		if (c->header_left)
			c->header_left -= (size_t)sent;
		else
			c->left -= (uint64_t)sent;
	}
}

static void take_answers(struct conn *c)
{
	uint8_t in[64];
	ssize_t n;

	while (c->unasked && (n = recv(c->fd, in, sizeof in, 0)) != 0) {
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0)
			fail("recv");
		c->unasked -= (uint64_t)n < c->unasked ? (uint64_t)n : c->unasked;
	}
	if (c->unasked) {
		fprintf(stderr, "tcp_msg: the receiver closed the connection\n");
		exit(1);
	}
}

/*
 * Sends and takes answers until each frame is answered, or until until_ns. With more set, new
 * frames follow until then.
 */
static int run_until(struct conn *conns, int n, const uint8_t *buf, int64_t until_ns, int more)
{
	struct pollfd p[MAX_CONNS];

	while (!stop) {
		int64_t left_ns = until_ns - msg_now_ns();
		int busy = 0;

		if (left_ns <= 0)
			break;
		for (int i = 0; i < n; i++) {
			struct conn *c = &conns[i];

			if (more && !c->header_left && !c->left)
				frame_begin(c, MSG_STREAM_FRAME);
			busy |= c->unasked != 0;
			p[i].fd = c->fd;
			p[i].events = (short)((c->unasked ? POLLIN : 0) |
					      (c->header_left || c->left ? POLLOUT : 0));
		}
		if (!busy)
			return 1;
		if (poll(p, (nfds_t)n, (int)(left_ns / 1000000) + 1) < 0 && errno != EINTR)
			fail("poll");
		for (int i = 0; i < n; i++) {
			if (p[i].revents & (POLLIN | POLLHUP | POLLERR))
				take_answers(&conns[i]);
			if (p[i].revents & POLLOUT)
				send_some(&conns[i], buf);
		}
	}
	return 0;
}

static int64_t seconds_ns(double s)
{
	return (int64_t)(s * 1e9);
}

/* One message in equal parts over all connections; false: it took too long. */
static int send_message(const struct msg_opts *o, struct conn *conns, const uint8_t *buf,
			const struct msg_batch *b, int64_t start_ns)
{
	uint64_t bytes = b->bytes;
	uint64_t part = bytes / (uint64_t)o->streams, rest = bytes % (uint64_t)o->streams;
	int done;

	for (int i = 0; i < o->streams; i++) {
		uint64_t mine = part + ((uint64_t)i < rest ? 1 : 0);

		if (mine)
			frame_begin(&conns[i], mine);
	}
	done = run_until(conns, o->streams, buf, start_ns + seconds_ns(msg_timeout_s(o, b)), 0);
	msg_print_message(bytes, msg_now_ns() - start_ns, done);
	return done;
}

static int run_send(const struct msg_opts *o, int64_t start_ns)
{
	static struct conn conns[MAX_CONNS];
	static uint8_t buf[MSG_BUFFER];
	struct addrinfo *to = resolve(o);

	msg_print_start(start_ns);
	msg_fill(buf, sizeof buf);
	for (int i = 0; i < o->streams; i++)
		conns[i].fd = connect_one(o, to);
	freeaddrinfo(to);
	if (o->stream_s > 0) {
		int64_t end_ns = start_ns + seconds_ns(o->stream_s);
		int drained;

		run_until(conns, o->streams, buf, end_ns, 1);
		drained = run_until(conns, o->streams, buf, end_ns + seconds_ns(o->drain_s), 0);
		msg_print_stream_end(end_ns, drained);
		if (!drained)
			return o->n_batches ? 3 : 0;
		start_ns = msg_now_ns();
	}
	for (int i = 0; i < o->n_batches; i++)
		for (uint64_t k = 0; k < o->batch[i].count; k++) {
			if (!send_message(o, conns, buf, &o->batch[i], start_ns))
				return 3;
			start_ns = msg_now_ns();
		}
	return 0;
}

int main(int argc, char **argv)
{
	int64_t start_ns = msg_now_ns();
	struct msg_opts o = msg_opts_parse(argc, argv);
	struct sigaction sa = {.sa_handler = on_signal};

	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	return o.is_sender ? run_send(&o, start_ns) : run_recv(&o);
}

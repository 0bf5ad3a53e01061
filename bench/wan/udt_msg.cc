// SPDX-License-Identifier: Apache-2.0
/*
 * The same as tcp_msg.c over UDT 4, through its public API: see msg_opts.h. One connection,
 * one message at a time. The receiver takes one sender after the other.
 * It knows nothing of links and of how figures are put together: bench/wan/compare does.
 */
#include "msg_opts.h"

#include <csignal>
#include <netdb.h>
#include <netinet/in.h>
#include <udt/udt.h>
#include <unistd.h>

namespace
{

const int wait_ms = 50;
volatile sig_atomic_t stop;

void on_signal(int)
{
	stop = 1;
}

[[noreturn]] void fail(const char *what)
{
	fprintf(stderr, "udt_msg: %s: %s\n", what, UDT::getlasterror().getErrorMessage());
	fflush(stdout);
	_exit(1); /* UDT's own threads may never end */
}

bool timed_out()
{
	const int code = UDT::getlasterror().getErrorCode();

	return code == CUDTException::ETIMEOUT || code == CUDTException::EASYNCRCV ||
	       code == CUDTException::EASYNCSND;
}

void set_int(UDTSOCKET u, UDT::SOCKOPT option, int value, const char *text)
{
	if (UDT::setsockopt(u, 0, option, &value, sizeof value) == UDT::ERROR)
		fail(text);
}

void tune(UDTSOCKET u, const msg_opts &o)
{
	if (o.window_pkts)
		set_int(u, UDT_FC, o.window_pkts, "UDT_FC");
	if (o.sndbuf_bytes) {
		set_int(u, UDT_SNDBUF, o.sndbuf_bytes, "UDT_SNDBUF");
		set_int(u, UDP_SNDBUF, o.sndbuf_bytes, "UDP_SNDBUF");
	}
	if (o.rcvbuf_bytes) {
		set_int(u, UDT_RCVBUF, o.rcvbuf_bytes, "UDT_RCVBUF");
		set_int(u, UDP_RCVBUF, o.rcvbuf_bytes, "UDP_RCVBUF");
	}
}

addrinfo *resolve(const msg_opts &o)
{
	addrinfo hints = {}, *found = nullptr;

	hints.ai_socktype = SOCK_STREAM;
	const int rc = getaddrinfo(o.host, o.port, &hints, &found);
	if (rc) {
		fprintf(stderr, "udt_msg: %s port %s: %s\n", o.host, o.port, gai_strerror(rc));
		exit(1);
	}
	return found;
}

UDTSOCKET new_socket(const msg_opts &o, const addrinfo *at)
{
	const UDTSOCKET u = UDT::socket(at->ai_family, SOCK_STREAM, 0);

	if (u == UDT::INVALID_SOCK)
		fail("socket");
	tune(u, o);
	set_int(u, UDT_RCVTIMEO, wait_ms, "UDT_RCVTIMEO");
	set_int(u, UDT_SNDTIMEO, wait_ms, "UDT_SNDTIMEO");
	return u;
}

/* ---- receiver ------------------------------------------------------------------- */

void serve(UDTSOCKET u, msg_sampler *s)
{
	static char buf[MSG_BUFFER];
	msg_in in = {};

	while (!stop) {
		const int n = UDT::recv(u, buf, sizeof buf, 0);

		if (n == UDT::ERROR && !timed_out())
			break;
		if (n > 0) {
			unsigned int owed =
				msg_in_take(&in, (const uint8_t *)buf, (size_t)n, &s->total);

			for (char yes = 1; owed; owed--)
				if (UDT::send(u, &yes, 1, 0) == UDT::ERROR)
					return;
		}
		msg_sample(s, 0);
	}
}

int run_recv(const msg_opts &o)
{
	addrinfo *at = resolve(o);
	const UDTSOCKET listener = new_socket(o, at);
	msg_sampler s = {};

	/* With a timeout, so that a signal is seen. */
	set_int(listener, UDT_RCVSYN, 0, "UDT_RCVSYN");
	if (UDT::bind(listener, at->ai_addr, (int)at->ai_addrlen) == UDT::ERROR)
		fail("bind");
	if (UDT::listen(listener, 8) == UDT::ERROR)
		fail("listen");
	while (!stop) {
		const UDTSOCKET u = UDT::accept(listener, nullptr, nullptr);

		if (u == UDT::INVALID_SOCK) {
			usleep(2000);
			continue;
		}
		set_int(u, UDT_RCVSYN, 1, "UDT_RCVSYN");
		serve(u, &s);
		UDT::close(u);
		msg_sample(&s, 1);
	}
	msg_sample(&s, 1);
	return 0;
}

/* ---- sender --------------------------------------------------------------------- */

/* False: until_ns has come. */
bool send_all(UDTSOCKET u, const char *bytes, size_t len, int64_t until_ns)
{
	while (len) {
		const int n = UDT::send(u, bytes, (int)len, 0);

		if (n == UDT::ERROR && !timed_out())
			fail("send");
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
		if (stop || (len && msg_now_ns() >= until_ns))
			return false;
	}
	return true;
}

bool send_frame(UDTSOCKET u, const uint8_t *buf, uint64_t bytes, int64_t until_ns)
{
	uint8_t header[MSG_HEADER];

	msg_header_write(header, bytes);
	if (!send_all(u, (const char *)header, sizeof header, until_ns))
		return false;
	while (bytes) {
		const size_t n = bytes < MSG_BUFFER ? (size_t)bytes : MSG_BUFFER;

		if (!send_all(u, (const char *)buf, n, until_ns))
			return false;
		bytes -= n;
	}
	return true;
}

bool take_answers(UDTSOCKET u, uint64_t wanted, int64_t until_ns)
{
	char in[256];

	while (wanted) {
		const int n = UDT::recv(u, in, (int)(wanted < sizeof in ? wanted : sizeof in), 0);

		if (n == UDT::ERROR && !timed_out())
			fail("recv");
		if (n > 0)
			wanted -= (uint64_t)n;
		if (stop || (wanted && msg_now_ns() >= until_ns))
			return false;
	}
	return true;
}

int64_t seconds_ns(double s)
{
	return (int64_t)(s * 1e9);
}

/*
 * Frames back to back, the last one whole: it may be cut off only where the drain is given up
 * too, as the connection is of no more use then.
 */
bool stream(UDTSOCKET u, const msg_opts &o, const uint8_t *buf, int64_t start_ns)
{
	const int64_t end_ns = start_ns + seconds_ns(o.stream_s);
	const int64_t give_up_ns = end_ns + seconds_ns(o.drain_s);
	uint64_t frames = 0;
	bool whole = true;

	while (whole && msg_now_ns() < end_ns) {
		whole = send_frame(u, buf, MSG_STREAM_FRAME, give_up_ns);
		frames++;
	}
	whole = whole && take_answers(u, frames, give_up_ns);
	msg_print_stream_end(end_ns, whole);
	return whole;
}

bool message(UDTSOCKET u, const msg_opts &o, const uint8_t *buf, const msg_batch &b,
	     int64_t start_ns)
{
	const int64_t until_ns = start_ns + seconds_ns(msg_timeout_s(&o, &b));
	const bool done = send_frame(u, buf, b.bytes, until_ns) && take_answers(u, 1, until_ns);

	msg_print_message(b.bytes, msg_now_ns() - start_ns, done);
	return done;
}

int run_send(const msg_opts &o, int64_t start_ns)
{
	static uint8_t buf[MSG_BUFFER];
	addrinfo *to = resolve(o);
	const UDTSOCKET u = new_socket(o, to);

	msg_print_start(start_ns);
	msg_fill(buf, sizeof buf);
	if (UDT::connect(u, to->ai_addr, (int)to->ai_addrlen) == UDT::ERROR)
		fail("connect");
	if (o.stream_s > 0) {
		if (!stream(u, o, buf, start_ns))
			return o.n_batches ? 3 : 0;
		start_ns = msg_now_ns();
	}
	for (int i = 0; i < o.n_batches; i++)
		for (uint64_t k = 0; k < o.batch[i].count; k++) {
			if (!message(u, o, buf, o.batch[i], start_ns))
				return 3;
			start_ns = msg_now_ns();
		}
	UDT::close(u);
	return 0;
}

} // namespace

int main(int argc, char **argv)
{
	const int64_t start_ns = msg_now_ns();
	const msg_opts o = msg_opts_parse(argc, argv);
	struct sigaction sa = {};

	sa.sa_handler = on_signal;
	sigaction(SIGTERM, &sa, nullptr);
	sigaction(SIGINT, &sa, nullptr);
	if (o.streams != 1 || o.cc) {
		fprintf(stderr, "udt_msg: --streams and --cc are for TCP\n");
		return 2;
	}
	UDT::startup();
	const int rc = o.is_sender ? run_send(o, start_ns) : run_recv(o);
	fflush(stdout);
	_exit(rc); /* UDT's cleanup waits for lingering sockets: the answer is in, nothing is owed
		    */
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tcp_msg and udt_msg share: the command line, the clock, and the lines that they print
 * for bench/wan/compare to read. They send the same thing in the same way, so that a
 * difference between their figures is one between TCP and UDT. For C11 and C++11.
 *
 * On a connection travel frames: 8 bytes of length (big-endian), then so many bytes. The
 * receiver answers each frame with one byte when all of it is in its memory.
 */
#ifndef SDR_BENCH_MSG_OPTS_H
#define SDR_BENCH_MSG_OPTS_H

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MSG_BATCHES 8
#define MSG_HEADER 8
#define MSG_BUFFER (256 * 1024)
#define MSG_STREAM_FRAME (1024 * 1024) /* while streaming */
#define MSG_SAMPLE_NS INT64_C(50000000)
#define MSG_NS_PER_S INT64_C(1000000000)

struct msg_batch {
	uint64_t bytes, count;
	double timeout_s; /* of one message; 0: that of all */
};

struct msg_opts {
	int is_sender;
	const char *host, *port;
	const char *cc;	  /* TCP: congestion control; NULL: the host's */
	int sndbuf_bytes; /* 0: the system's way */
	int rcvbuf_bytes;
	int window_pkts; /* UDT: flow window; 0: its default */
	int streams;
	double stream_s;  /* frames back to back for so long, first of all */
	double timeout_s; /* of one message */
	double drain_s;	  /* wait so long for what was streamed to arrive */
	struct msg_batch batch[MSG_BATCHES];
	int n_batches;
};

static inline int64_t msg_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * MSG_NS_PER_S + (int64_t)ts.tv_nsec;
}

static inline void msg_usage(const char *name)
{
	fprintf(stderr,
		"usage: %s recv ADDRESS PORT [--rcvbuf BYTES] [--sndbuf BYTES] [--window PKTS]\n"
		"       %s send ADDRESS PORT [--stream SECONDS] [--message "
		"BYTESxCOUNT[@SECONDS]]...\n"
		"           [--streams N] [--cc NAME] [--sndbuf BYTES] [--rcvbuf BYTES]\n"
		"           [--window PKTS] [--timeout SECONDS] [--drain SECONDS]\n"
		"\n"
		"send streams for --stream SECONDS, then sends the messages one at a time, all on\n"
		"one connection (or --streams N of them, each with its share). One that takes "
		"longer\n"
		"than its SECONDS, or --timeout, ends it (exit code 3). Lines of JSON:\n"
		"send: {\"start_ns\"} {\"stream_end_ns\",\"drained\"} "
		"{\"bytes\",\"ns\",\"done\"};\n"
		"recv: {\"t_ns\",\"received\"} about 20 times a second.\n",
		name, name);
}

/* A number in [min, max], or the program ends and says why. */
static inline double msg_number(const char *name, const char *text, double min, double max)
{
	char *end = NULL;
	double value;

	errno = 0;
	value = strtod(text, &end);
	if (errno || end == text || *end || !(value >= min && value <= max)) {
		fprintf(stderr, "%s %s: a number from %g to %g is wanted\n", name, text, min, max);
		exit(2);
	}
	return value;
}

static inline void msg_batch_parse(struct msg_opts *o, const char *text)
{
	struct msg_batch b;
	int used = 0;

	memset(&b, 0, sizeof b);
	if (sscanf(text, "%" SCNu64 "x%" SCNu64 "%n@%lf%n", &b.bytes, &b.count, &used, &b.timeout_s,
		   &used) < 2 ||
	    text[used] || b.bytes < 1 || b.bytes > (UINT64_C(1) << 40) || b.count < 1 ||
	    b.count > 1000000 || !(b.timeout_s >= 0 && b.timeout_s <= 86400)) {
		fprintf(stderr, "--message %s: BYTESxCOUNT[@SECONDS] is wanted, e.g. 1048576x5\n",
			text);
		exit(2);
	}
	if (o->n_batches == MSG_BATCHES) {
		fprintf(stderr, "--message %s: at most %d of them\n", text, MSG_BATCHES);
		exit(2);
	}
	o->batch[o->n_batches++] = b;
}

static inline double msg_timeout_s(const struct msg_opts *o, const struct msg_batch *b)
{
	return b->timeout_s > 0 ? b->timeout_s : o->timeout_s;
}

static inline void msg_option(struct msg_opts *o, const char *name, const char *value)
{
	if (!strcmp(name, "--cc"))
		o->cc = value;
	else if (!strcmp(name, "--sndbuf"))
		o->sndbuf_bytes = (int)msg_number(name, value, 0, 2e9);
	else if (!strcmp(name, "--rcvbuf"))
		o->rcvbuf_bytes = (int)msg_number(name, value, 0, 2e9);
	else if (!strcmp(name, "--window"))
		o->window_pkts = (int)msg_number(name, value, 0, 1e8);
	else if (!strcmp(name, "--streams"))
		o->streams = (int)msg_number(name, value, 1, 64);
	else if (!strcmp(name, "--stream"))
		o->stream_s = msg_number(name, value, 0, 86400);
	else if (!strcmp(name, "--timeout"))
		o->timeout_s = msg_number(name, value, 0.01, 86400);
	else if (!strcmp(name, "--drain"))
		o->drain_s = msg_number(name, value, 0, 86400);
	else if (!strcmp(name, "--message"))
		msg_batch_parse(o, value);
	else {
		fprintf(stderr, "unknown option '%s'\n", name);
		exit(2);
	}
}

static inline struct msg_opts msg_opts_parse(int argc, char **argv)
{
	struct msg_opts o;

	memset(&o, 0, sizeof o);
	o.streams = 1;
	o.timeout_s = 60;
	o.drain_s = 5;
	if (argc < 4 || (strcmp(argv[1], "recv") && strcmp(argv[1], "send"))) {
		msg_usage(argv[0]);
		exit(2);
	}
	o.is_sender = !strcmp(argv[1], "send");
	o.host = argv[2];
	o.port = argv[3];
	for (int i = 4; i < argc; i += 2) {
		if (i + 1 == argc) {
			fprintf(stderr, "%s: its value is missing\n", argv[i]);
			exit(2);
		}
		msg_option(&o, argv[i], argv[i + 1]);
	}
	if (o.is_sender && o.stream_s <= 0 && !o.n_batches) {
		fprintf(stderr, "send: nothing to do: give --stream or --message\n");
		exit(2);
	}
	return o;
}

/* Bytes that no tunnel can compress. */
static inline void msg_fill(uint8_t *buf, size_t len)
{
	uint64_t x = UINT64_C(0x9E3779B97F4A7C15);

	for (size_t i = 0; i < len; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		buf[i] = (uint8_t)(x >> 32);
	}
}

static inline void msg_header_write(uint8_t out[MSG_HEADER], uint64_t bytes)
{
	for (int i = 0; i < MSG_HEADER; i++)
		out[i] = (uint8_t)(bytes >> (8 * (MSG_HEADER - 1 - i)));
}

static inline uint64_t msg_header_read(const uint8_t in[MSG_HEADER])
{
	uint64_t bytes = 0;

	for (int i = 0; i < MSG_HEADER; i++)
		bytes = bytes << 8 | in[i];
	return bytes;
}

/* ---- what is printed ------------------------------------------------------------ */

static inline void msg_print_start(int64_t t_ns)
{
	printf("{\"start_ns\": %" PRId64 "}\n", t_ns);
	fflush(stdout);
}

static inline void msg_print_stream_end(int64_t t_ns, int drained)
{
	printf("{\"stream_end_ns\": %" PRId64 ", \"drained\": %s}\n", t_ns,
	       drained ? "true" : "false");
	fflush(stdout);
}

static inline void msg_print_message(uint64_t bytes, int64_t ns, int done)
{
	printf("{\"bytes\": %" PRIu64 ", \"ns\": %" PRId64 ", \"done\": %s}\n", bytes, ns,
	       done ? "true" : "false");
	fflush(stdout);
}

/* Prints the total now and then; keeps its own time. */
struct msg_sampler {
	int64_t last_ns;
	uint64_t total, printed;
};

static inline void msg_sample(struct msg_sampler *s, int even_if_soon)
{
	int64_t now = msg_now_ns();

	if (s->total == s->printed || (!even_if_soon && now - s->last_ns < MSG_SAMPLE_NS))
		return;
	printf("{\"t_ns\": %" PRId64 ", \"received\": %" PRIu64 "}\n", now, s->total);
	fflush(stdout);
	s->last_ns = now;
	s->printed = s->total;
}

/* ---- a receiver's place in the frames of one connection ------------------------- */

struct msg_in {
	uint8_t header[MSG_HEADER];
	size_t have;   /* of the header */
	uint64_t left; /* of the frame */
};

/* Takes len bytes; returns how many frames ended in them, and adds to *payload. */
static inline unsigned int msg_in_take(struct msg_in *in, const uint8_t *bytes, size_t len,
				       uint64_t *payload)
{
	unsigned int frames = 0;

	while (len) {
		size_t n;

		if (in->have < MSG_HEADER) {
			in->header[in->have++] = *bytes++;
			len--;
			if (in->have == MSG_HEADER)
				in->left = msg_header_read(in->header);
		} else {
			n = len < in->left ? len : (size_t)in->left;
			in->left -= n;
			*payload += n;
			bytes += n;
			len -= n;
		}
		if (in->have == MSG_HEADER && in->left == 0) {
			frames++;
			in->have = 0;
		}
	}
	return frames;
}

#endif

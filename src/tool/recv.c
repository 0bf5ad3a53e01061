// SPDX-License-Identifier: Apache-2.0
/*
 * sdr recv: takes what `sdr send` sends, one transfer after the other. Keeps a ring of
 * blocks posted as receives and hands them to the sink (xfer_sink.c) in the order in
 * which they were posted, whatever order they complete in; carries the sink's replies
 * back. Knows nothing of frames.
 */
#include "tool/cli.h"

#include "tool/opts.h"
#include "tool/progress.h"
#include "tool/report.h"
#include "tool/say.h"
#include "tool/session.h"
#include "tool/xfer_sink.h"

#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_NS (100 * NS_PER_MS)
#define CLOSE_NS (5 * NS_PER_S)
#define IDLE_NS (300 * NS_PER_S) /* a sender that says nothing for so long makes room */
#define POLL_MAX 32

struct recv_opts {
	struct net_opts net;
	const char *dir;
	uint64_t once, overwrite, sums;
};

#define FIELD(field) offsetof(struct recv_opts, field)
static const struct opt recv_table[] = {
	{"dir", 'd', OPT_TEXT, FIELD(dir), 0, 0, "DIR", "where the files go (.)"},
	{"once", '1', OPT_FLAG, FIELD(once), 0, 0, NULL, "end after the first transfer"},
	{"overwrite", 0, OPT_FLAG, FIELD(overwrite), 0, 0, NULL,
	 "replace files that exist (they are refused)"},
	{"sums", 0, OPT_FLAG, FIELD(sums), 0, 0, NULL,
	 "print each file's digest, as sha256sum does"},
	{0},
};

struct slot {
	uint8_t *addr;
	uint64_t len;
	int arrived;
};

struct receiver {
	struct session s;
	struct recv_opts o;
	int top;
	/* of the transfer that is served */
	struct xfer_sink sink;
	struct progress bar;
	uint8_t *memory;
	uint64_t block_bytes, depth;
	struct slot slot[XFER_DEPTH_MAX];
	uint64_t next;	/* number of the block that the sink gets next; slot next % depth */
	uint8_t *reply; /* in flight, or idle */
	int reply_busy, summed;
	uint64_t start_ns, heard_ns;
};

/* ---- memory ------------------------------------------------------------------- */

static int hello_fits(const struct hello *h)
{
	uint64_t block = h->arg[XFER_ARG_BLOCK], depth = h->arg[XFER_ARG_DEPTH];

	return block >= XFER_BLOCK_MIN && block <= XFER_BLOCK_MAX && depth >= 1 &&
	       depth <= XFER_DEPTH_MAX && block * depth <= XFER_MEMORY_MAX;
}

static void free_blocks(struct receiver *r)
{
	session_unregister(&r->s);
	free(r->memory);
	free(r->reply);
	r->memory = r->reply = NULL;
}

static int alloc_blocks(struct receiver *r, const struct hello *h)
{
	size_t bytes;

	r->block_bytes = h->arg[XFER_ARG_BLOCK];
	r->depth = h->arg[XFER_ARG_DEPTH];
	bytes = (size_t)(r->block_bytes * r->depth);
	r->reply = malloc(XFER_REPLY_BYTES);
	if (!r->reply || posix_memalign((void **)&r->memory, 1u << 21, bytes) != 0)
		return -ENOMEM;
	session_register(&r->s, r->memory, bytes);
	for (uint64_t i = 0; i < r->depth; i++)
		r->slot[i] = (struct slot){.addr = r->memory + i * r->block_bytes};
	r->next = 0;
	r->reply_busy = r->summed = 0;
	return 0;
}

/* ---- one transfer ------------------------------------------------------------- */

static int post_slot(struct receiver *r, struct slot *slot)
{
	slot->arrived = 0;
	return session_recv(&r->s, slot->addr, r->block_bytes, slot);
}

static void take_completions(struct receiver *r, uint64_t wait_ns)
{
	struct sdr_completion c[POLL_MAX];
	int n = session_poll(&r->s, c, POLL_MAX, wait_ns);

	for (int i = 0; i < n; i++) {
		struct slot *slot = c[i].cookie;

		if (c[i].cookie == r->reply) {
			r->reply_busy = 0;
			continue;
		}
		if (c[i].status < 0)
			continue; /* the connection's event says why */
		slot->arrived = 1;
		slot->len = c[i].length;
		r->heard_ns = session_now(&r->s);
	}
}

static int is_ready(struct receiver *r)
{
	return r->slot[r->next % r->depth].arrived && !r->sink.done &&
	       r->sink.outbox.used < OUTBOX_MAX / 2;
}

/* One block, so that others are taken off the network between two. */
static void take_block(struct receiver *r)
{
	struct slot *slot = &r->slot[r->next % r->depth];

	if (xfer_sink_block(&r->sink, slot->addr, (size_t)slot->len) < 0) {
		session_fail(&r->s, -SDR_E_MALFORMED,
			     "%s sent something that this version does not understand", r->s.peer);
		return;
	}
	r->next++;
	if (!r->sink.done)
		post_slot(r, slot);
}

/* Whole frames go; what does not fit into one message follows in the next. */
static void send_replies(struct receiver *r)
{
	struct outbox *box = &r->sink.outbox;
	struct xfer_frame f;
	size_t len = 0, at = 0;

	if (r->reply_busy || box->used == 0)
		return;
	while (xfer_next(box->buf, box->used, &at, &f) == 1 && at <= XFER_REPLY_BYTES)
		len = at;
	memcpy(r->reply, box->buf, len);
	if (session_write(&r->s, r->reply, len, NULL, r->reply) < 0)
		return;
	r->reply_busy = 1;
	memmove(box->buf, box->buf + len, box->used - len);
	box->used -= len;
}

static void check_idle(struct receiver *r)
{
	if (session_now(&r->s) - r->heard_ns > IDLE_NS)
		session_fail(&r->s, -ETIMEDOUT, "%s has sent nothing for %u s: given up", r->s.peer,
			     (unsigned int)(IDLE_NS / NS_PER_S));
}

static void pump(struct receiver *r)
{
	while (!r->s.over && !cli_stop && !r->summed) {
		take_completions(r, is_ready(r) ? 0 : WAIT_NS);
		if (is_ready(r))
			take_block(r);
		send_replies(r);
		check_idle(r);
		progress_update(&r->bar, r->sink.taken_bytes, NULL, session_now(&r->s));
		r->summed = r->sink.done && !r->reply_busy && r->sink.outbox.used == 0;
	}
}

static const char *outcome(const struct receiver *r, char *buf, size_t cap)
{
	/* A sender that closes as soon as it has the summary is no failure. */
	if (r->summed ||
	    (r->sink.done && r->s.over && r->s.status == 0 && r->sink.outbox.used == 0)) {
		if (!r->sink.failed && !r->sink.skipped)
			return NULL;
		snprintf(buf, cap, "not everything of %s arrived: %" PRIu64 " failed here",
			 r->s.peer, r->sink.failed);
		return buf;
	}
	if (cli_stop)
		snprintf(buf, cap, "interrupted while receiving from %s", r->s.peer);
	else
		snprintf(buf, cap, "%s: the transfer is not complete",
			 *r->s.text ? r->s.text : "the connection has ended");
	return buf;
}

static int finish(struct receiver *r)
{
	struct report rep = {.command = "recv", .peer = r->s.peer};
	char text[640];

	rep.ns = session_now(&r->s) - r->start_ns;
	rep.conn.size = sizeof rep.conn;
	sdr_conn_query(r->s.conn, &rep.conn);
	progress_fini(&r->bar);
	rep.error = outcome(r, text, sizeof text);
	rep.files = r->sink.sum.files;
	rep.bytes = r->sink.sum.bytes;
	rep.failed = r->sink.failed + r->sink.skipped;
	rep.have_digest = r->sink.done;
	memcpy(rep.digest, r->sink.sum.digest, DIGEST_BYTES);
	xfer_sink_fini(&r->sink);
	if (rep.error)
		say("%s", rep.error);
	if (r->summed || r->o.net.json)
		report_print(&rep, (int)r->o.net.json, (int)r->o.net.quiet);
	if (r->summed)
		session_linger(&r->s, CLOSE_NS);
	else
		session_drop(&r->s);
	return rep.error ? CLI_FAILED : CLI_OK;
}

static int serve(struct receiver *r, const struct hello *h)
{
	const struct sink_opts opts = {
		.overwrite = (int)r->o.overwrite,
		.print_sums = r->o.sums && !r->o.net.json,
	};
	int rc = CLI_FAILED;

	if (!hello_fits(h)) {
		session_greet(&r->s, "its blocks are too small, too large or too many: see "
				     "--block and --depth of 'sdr send'");
		return CLI_FAILED;
	}
	if (alloc_blocks(r, h) < 0 || xfer_sink_init(&r->sink, r->top, r->o.dir, &opts) < 0) {
		say("%s was refused: no memory for its blocks", r->s.peer);
		session_greet(&r->s,
			      "it has no memory for the blocks: lower --depth of 'sdr send'");
		goto out;
	}
	r->start_ns = r->heard_ns = session_now(&r->s);
	progress_init(&r->bar, &r->o.net, h->arg[XFER_ARG_BYTES], r->start_ns);
	if (!r->o.net.quiet)
		say("receiving from %s", r->s.peer);
	session_greet(&r->s, NULL);
	for (uint64_t i = 0; i < r->depth && !r->s.over; i++)
		post_slot(r, &r->slot[i]);
	pump(r);
	rc = finish(r);
out:
	session_drop(&r->s);
	free_blocks(r);
	return rc;
}

static int serve_all(struct receiver *r)
{
	struct hello h;
	int rc = r->o.once ? CLI_FAILED : CLI_OK;

	if (session_open(&r->s, &r->o.net, SESSION_LISTEN | SESSION_THREAD) < 0)
		return CLI_FAILED;
	session_listening(&r->s, "recv");
	while (session_accept(&r->s, HELLO_XFER, "sdr recv", &h) == 0) {
		int served = serve(r, &h);

		if (r->o.once || cli_stop) {
			rc = served;
			break;
		}
	}
	if (cli_stop && !r->o.net.quiet)
		say("recv: ended");
	session_fini(&r->s);
	return rc;
}

static int open_top(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		say("--dir %s: %s: name a directory that exists", dir, strerror(errno));
	else if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0) {
		say("--dir %s: %s: name a directory that you may write to", dir, strerror(errno));
		close(fd);
		fd = -1;
	}
	return fd;
}

static int run(int argc, char **argv)
{
	struct recv_opts o = {.dir = "."};
	struct receiver *r;
	int first, rc;

	first = opts_parse(&cmd_recv, argc, argv, &o, &rc);
	if (first < 0)
		return rc;
	if (first < argc)
		return opts_usage(&cmd_recv, "takes no arguments: the directory is named by --dir");
	r = calloc(1, sizeof *r);
	if (!r)
		return CLI_FAILED;
	r->o = o;
	r->top = open_top(o.dir);
	rc = r->top < 0 ? CLI_FAILED : serve_all(r);
	if (r->top >= 0)
		close(r->top);
	free(r);
	return rc;
}

const struct command cmd_recv = {
	.name = "recv",
	.synopsis = "[OPTION]...",
	.summary = "receive what 'sdr send' sends to this host",
	.opts = recv_table,
	.network = 1,
	.run = run,
};

// SPDX-License-Identifier: Apache-2.0
/*
 * sdr send: files and directories to a `sdr recv`. Fills blocks from files
 * (xfer_source.c) and keeps several of them in flight as writes; takes the receiver's
 * replies. Knows nothing of frames beyond handing them on.
 */
#include "tool/cli.h"

#include "tool/opts.h"
#include "tool/progress.h"
#include "tool/report.h"
#include "tool/say.h"
#include "tool/session.h"
#include "tool/xfer_source.h"

#include "base/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_NS (100 * NS_PER_MS)
#define PATIENCE_NS (2 * NS_PER_S) /* until a person is told that the receiver is busy */
#define CLOSE_NS (3 * NS_PER_S)
#define POLL_MAX 32

struct send_opts {
	struct net_opts net;
	uint64_t depth, block_bytes, sums;
};

#define FIELD(field) offsetof(struct send_opts, field)
static const struct opt send_table[] = {
	{"depth", 't', OPT_UINT, FIELD(depth), 1, XFER_DEPTH_MAX, "N", "blocks in flight (16)"},
	{"block", 0, OPT_SIZE, FIELD(block_bytes), XFER_BLOCK_MIN, XFER_BLOCK_MAX, "SIZE",
	 "bytes in a block (4MiB)"},
	{"sums", 0, OPT_FLAG, FIELD(sums), 0, 0, NULL,
	 "print each file's digest, as sha256sum does"},
	{0},
};

struct block {
	uint8_t *addr;
	struct block *next_free;
};

struct sender {
	struct session s;
	struct send_opts o;
	struct xfer_list list;
	struct xfer_source src;
	struct progress bar;
	uint8_t *memory, *replies;
	struct block block[XFER_DEPTH_MAX];
	struct block *free_block; /* last used first: its memory is still in cache */
	struct block *filled;	  /* read, but the connection was full */
	size_t filled_bytes;
	uint64_t start_ns;
	int summed, told_busy;
	struct xfer_sum sum;
};

/* ---- memory ------------------------------------------------------------------- */

static int alloc_blocks(struct sender *t)
{
	size_t bytes = (size_t)(t->o.depth * t->o.block_bytes);

	t->replies = malloc((size_t)XFER_REPLIES * XFER_REPLY_BYTES);
	if (!t->replies || posix_memalign((void **)&t->memory, 1u << 21, bytes) != 0) {
		say("no memory for %" PRIu64 " blocks in flight: lower --depth", t->o.depth);
		return -1;
	}
	session_register(&t->s, t->memory, bytes);
	for (uint64_t i = t->o.depth; i-- > 0;) {
		t->block[i].addr = t->memory + i * t->o.block_bytes;
		t->block[i].next_free = t->free_block;
		t->free_block = &t->block[i];
	}
	return 0;
}

/* ---- replies ------------------------------------------------------------------ */

static int take_reply_frame(struct sender *t, const struct xfer_frame *f)
{
	char text[XFER_TEXT_MAX + 1];
	uint16_t status;

	switch (f->type) {
	case XFER_RESULT:
		if (xfer_get_result(f, &status, text) < 0)
			return -1;
		say("%s: %s", t->s.peer, text);
		xfer_source_skip(&t->src, f->index);
		return 0;
	case XFER_SUMMARY:
		if (xfer_get_sum(f, &t->sum) < 0)
			return -1;
		t->summed = 1;
		return 0;
	default:
		return -1;
	}
}

static void take_reply(struct sender *t, const struct sdr_completion *c)
{
	uint8_t *buf = c->cookie;
	struct xfer_frame f;
	size_t at = 0;
	int rc = 0;

	if (c->status < 0)
		return; /* the connection's event says why */
	while (rc == 0 && (rc = xfer_next(buf, c->length, &at, &f)) == 1)
		rc = take_reply_frame(t, &f);
	if (rc < 0)
		session_fail(&t->s, -SDR_E_MALFORMED,
			     "%s sent a reply that this version does not understand", t->s.peer);
	else if (!t->summed)
		session_recv(&t->s, buf, XFER_REPLY_BYTES, buf);
}

static int is_reply(const struct sender *t, const void *cookie)
{
	const uint8_t *p = cookie;

	return p >= t->replies && p < t->replies + (size_t)XFER_REPLIES * XFER_REPLY_BYTES;
}

/* ---- blocks ------------------------------------------------------------------- */

static void take_completions(struct sender *t)
{
	int full = !t->free_block || t->src.done || t->filled;
	struct sdr_completion c[POLL_MAX];
	int n = session_poll(&t->s, c, POLL_MAX, full ? WAIT_NS : 0);

	for (int i = 0; i < n; i++) {
		struct block *b = c[i].cookie;

		if (is_reply(t, c[i].cookie)) {
			take_reply(t, &c[i]);
			continue;
		}
		b->next_free = t->free_block;
		t->free_block = b;
	}
}

static void post_filled(struct sender *t)
{
	if (session_write(&t->s, t->filled->addr, t->filled_bytes, NULL, t->filled) == 0)
		t->filled = NULL;
}

static void fill_one(struct sender *t)
{
	struct block *b = t->free_block;

	t->filled_bytes = xfer_source_fill(&t->src, b->addr, (size_t)t->o.block_bytes);
	if (t->filled_bytes == 0)
		return;
	t->free_block = b->next_free;
	t->filled = b;
}

static void tell_busy(struct sender *t)
{
	uint64_t now = session_now(&t->s);

	if (t->s.greeted || t->told_busy || t->o.net.quiet || now - t->start_ns < PATIENCE_NS)
		return;
	say("%s is connected but busy with another transfer: waiting for our turn", t->s.peer);
	t->told_busy = 1;
}

/* What has arrived for sure is not known before the end; what was read and is not in
 * flight any more is a good guess. */
static uint64_t done_bytes(const struct sender *t)
{
	uint64_t fly = t->o.block_bytes * t->o.depth;

	for (const struct block *b = t->free_block; b && fly >= t->o.block_bytes; b = b->next_free)
		fly -= t->o.block_bytes;
	return t->src.read_bytes > fly ? t->src.read_bytes - fly : 0;
}

static void pump(struct sender *t)
{
	while (!t->summed && !t->s.over && !cli_stop) {
		if (!t->filled && t->free_block && !t->src.done)
			fill_one(t);
		if (t->filled)
			post_filled(t);
		take_completions(t);
		tell_busy(t);
		progress_update(&t->bar, done_bytes(t), t->s.conn, session_now(&t->s));
	}
}

/* ---- the whole ---------------------------------------------------------------- */

static int begin(struct sender *t)
{
	struct hello h = {.version = HELLO_VERSION, .kind = HELLO_XFER};

	h.arg[XFER_ARG_BLOCK] = t->o.block_bytes;
	h.arg[XFER_ARG_DEPTH] = t->o.depth;
	h.arg[XFER_ARG_ENTRIES] = t->list.n;
	h.arg[XFER_ARG_BYTES] = t->list.bytes;
	if (session_hello(&t->s, &h) < 0)
		return -1;
	for (unsigned int i = 0; i < XFER_REPLIES; i++) {
		uint8_t *buf = t->replies + (size_t)i * XFER_REPLY_BYTES;

		if (session_recv(&t->s, buf, XFER_REPLY_BYTES, buf) < 0)
			return -1;
	}
	return 0;
}

static const char *outcome(struct sender *t, char *buf, size_t cap)
{
	uint64_t failed = t->src.failed + t->list.refused;
	uint8_t mine[DIGEST_BYTES];

	if (!t->s.greeted && t->s.over) {
		snprintf(buf, cap, "%s", t->s.text);
		return buf;
	}
	if (cli_stop && !t->summed) {
		snprintf(buf, cap, "interrupted: %" PRIu64 " of %" PRIu64 " files had been sent",
			 t->src.files, t->list.files);
		return buf;
	}
	if (!t->summed) {
		snprintf(buf, cap, "%s: not all was sent",
			 *t->s.text ? t->s.text : "the connection has ended");
		return buf;
	}
	if (failed < t->sum.failed)
		failed = t->sum.failed;
	if (failed) {
		snprintf(buf, cap, "%" PRIu64 " of %" PRIu64 " things did not arrive: see above",
			 failed, t->list.n + t->list.refused);
		return buf;
	}
	digest_all(&t->src.digest, mine);
	if (memcmp(mine, t->sum.digest, DIGEST_BYTES) == 0)
		return NULL;
	snprintf(buf, cap, "the digests of the two ends differ: do not trust what arrived");
	return buf;
}

static int finish(struct sender *t)
{
	struct report r = {.command = "send", .peer = t->s.peer};
	char text[640];

	r.ns = session_now(&t->s) - t->start_ns;
	r.conn.size = sizeof r.conn;
	if (t->s.conn)
		sdr_conn_query(t->s.conn, &r.conn);
	progress_fini(&t->bar);
	r.error = outcome(t, text, sizeof text);
	r.files = t->summed ? t->sum.files : t->src.files;
	r.bytes = t->summed ? t->sum.bytes : t->src.bytes;
	r.failed = t->src.failed + t->list.refused;
	r.have_digest = t->summed;
	memcpy(r.digest, t->sum.digest, DIGEST_BYTES);
	if (t->summed)
		session_close(&t->s, CLOSE_NS);
	else
		session_drop(&t->s);
	if (r.error)
		say("%s", r.error);
	if (t->summed || t->o.net.json)
		report_print(&r, (int)t->o.net.json, (int)t->o.net.quiet);
	return r.error ? CLI_FAILED : CLI_OK;
}

static int transfer(struct sender *t, const struct target *to)
{
	int rc = CLI_FAILED;

	if (session_open(&t->s, &t->o.net, SESSION_THREAD) < 0)
		return CLI_FAILED;
	t->start_ns = session_now(&t->s);
	if (alloc_blocks(t) == 0) {
		if (session_connect(&t->s, to) == 0) {
			progress_init(&t->bar, &t->o.net, t->list.bytes, t->start_ns);
			if (begin(t) == 0)
				pump(t);
		}
		rc = finish(t);
	}
	session_drop(&t->s);
	session_unregister(&t->s);
	session_fini(&t->s);
	free(t->memory);
	free(t->replies);
	return rc;
}

static int send_all(struct sender *t, const struct target *to, int npaths, char **paths)
{
	int rc = CLI_FAILED;

	for (int i = 0; i < npaths; i++) {
		if (xfer_list_add(&t->list, paths[i]) < 0) {
			say("%s: no memory for the list of what is to be sent", paths[i]);
			goto out;
		}
	}
	if (t->list.n == 0) {
		say("nothing to send");
		goto out;
	}
	if (xfer_source_init(&t->src, &t->list) < 0) {
		say("no memory for digests");
		goto out;
	}
	t->src.print_sums = t->o.sums && !t->o.net.json;
	rc = transfer(t, to);
	xfer_source_fini(&t->src);
out:
	xfer_list_fini(&t->list);
	return rc;
}

static int run(int argc, char **argv)
{
	struct send_opts o = {.depth = 16, .block_bytes = XFER_BLOCK_DEFAULT};
	struct target to;
	struct sender *t;
	int first, rc;

	first = opts_parse(&cmd_send, argc, argv, &o, &rc);
	if (first < 0)
		return rc;
	if (argc - first < 2)
		return opts_usage(&cmd_send, "needs at least one PATH and a HOST");
	if (target_parse(argv[argc - 1], o.net.port, &to) < 0)
		return CLI_USAGE;
	if (o.depth * o.block_bytes > XFER_MEMORY_MAX)
		return opts_usage(&cmd_send, "--depth times --block is more than 512 MiB");
	t = calloc(1, sizeof *t);
	if (!t)
		return CLI_FAILED;
	t->o = o;
	rc = send_all(t, &to, argc - first - 1, argv + first);
	free(t);
	return rc;
}

const struct command cmd_send = {
	.name = "send",
	.synopsis = "[OPTION]... PATH... HOST[:PORT]",
	.summary = "send files and directories to a host that runs 'sdr recv'",
	.opts = send_table,
	.network = 1,
	.run = run,
};

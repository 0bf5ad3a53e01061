// SPDX-License-Identifier: Apache-2.0
/*
 * The server of sdr perf: posts receives of the size that the client's hello names,
 * posts each again when it completes, and writes back where latency is measured. What
 * arrives is not looked at. See perf.h.
 */
#include "tool/perf.h"

#include "tool/cli.h"
#include "tool/say.h"
#include "tool/session.h"

#include "base/units.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>

#define WAIT_NS (100 * NS_PER_MS)
#define POLL_MAX 64
#define LARGE_PAGE (UINT64_C(2) << 20)

struct server {
	struct session s;
	const struct perf_opts *o;
	uint64_t size;
	int lat;
	uint64_t owed; /* echoes that found the connection full */
	uint8_t *memory, *echo;
	uint64_t nbufs;
};

/*
 * Memory that nobody has touched costs a fault a page, some ten microseconds each in a
 * virtual machine: more than a fast link leaves. In large pages it is a few faults.
 */
static void *alloc_large(uint64_t bytes)
{
	uint64_t all = (bytes + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
	void *mem;

	if (bytes < 4 * LARGE_PAGE || all < bytes)
		return malloc((size_t)bytes);
	mem = aligned_alloc(LARGE_PAGE, (size_t)all);
	if (mem)
		(void)madvise(mem, (size_t)all, MADV_HUGEPAGE); /* a wish */
	return mem;
}

static int alloc_buffers(struct server *v, const struct hello *h)
{
	uint64_t most;

	v->size = h->arg[PERF_ARG_SIZE];
	v->lat = h->arg[PERF_ARG_LAT] != 0;
	v->nbufs = h->arg[PERF_ARG_DEPTH];
	v->owed = 0;
	if (v->size < 1 || v->size > PERF_SIZE_MAX || v->nbufs < 1)
		return -1;
	most = PERF_MEMORY_MAX / v->size;
	if (most > PERF_DEPTH_MAX)
		most = PERF_DEPTH_MAX;
	if (v->nbufs > most)
		v->nbufs = most ? most : 1;
	v->memory = alloc_large(v->size * v->nbufs);
	v->echo = calloc(1, (size_t)v->size);
	return v->memory && v->echo ? 0 : -1;
}

static void free_buffers(struct server *v)
{
	free(v->memory);
	free(v->echo);
	v->memory = v->echo = NULL;
}

static void take(struct server *v, const struct sdr_completion *c)
{
	if (c->status < 0 || !c->is_recv)
		return;
	v->owed += (uint64_t)v->lat;
	session_recv(&v->s, c->cookie, v->size, c->cookie);
}

static void serve(struct server *v)
{
	struct sdr_completion c[POLL_MAX];

	for (uint64_t i = 0; i < v->nbufs; i++) {
		uint8_t *buf = v->memory + i * v->size;

		if (session_recv(&v->s, buf, v->size, buf) < 0)
			return;
	}
	while (!v->s.over && !cli_stop) {
		int n = session_poll(&v->s, c, POLL_MAX, WAIT_NS);

		for (int i = 0; i < n; i++)
			take(v, &c[i]);
		while (v->owed && session_write(&v->s, v->echo, v->size, NULL, v->echo) == 0)
			v->owed--;
	}
}

static int serve_one(struct server *v, const struct hello *h)
{
	int rc;

	if (alloc_buffers(v, h) < 0) {
		say("%s was refused: no memory for messages of %" PRIu64 " bytes", v->s.peer,
		    h->arg[PERF_ARG_SIZE]);
		session_greet(&v->s, "it has no memory for messages of that size: ask for less "
				     "with --size");
		free_buffers(v);
		return CLI_FAILED;
	}
	if (!v->o->net.quiet)
		say("perf: %s measures %s with messages of %" PRIu64 " bytes", v->s.peer,
		    v->lat ? "latency" : "bandwidth", v->size);
	session_greet(&v->s, NULL);
	serve(v);
	rc = v->s.over && v->s.status == 0 ? CLI_OK : CLI_FAILED;
	if (rc != CLI_OK && !cli_stop)
		say("%s", v->s.text);
	session_drop(&v->s);
	free_buffers(v);
	return rc;
}

int perf_serve(const struct perf_opts *o)
{
	struct server *v = calloc(1, sizeof *v);
	int rc = o->once ? CLI_FAILED : CLI_OK;
	struct hello h;

	if (!v)
		return CLI_FAILED;
	v->o = o;
	if (session_open(&v->s, &o->net, SESSION_LISTEN) < 0) {
		free(v);
		return CLI_FAILED;
	}
	v->s.busy = (int)o->busy;
	session_listening(&v->s, "perf");
	while (session_accept(&v->s, HELLO_PERF, "sdr perf", &h) == 0) {
		int served = serve_one(v, &h);

		if (o->once && (served != CLI_OK || !h.arg[PERF_ARG_MORE])) {
			rc = served;
			break;
		}
	}
	if (cli_stop && !o->net.quiet)
		say("perf: ended");
	session_fini(&v->s);
	free(v);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes and receives of a connection. Each ends once; one that says 0 has the bytes,
 * the length and the immediate of its write; what has ended is not touched again; and an
 * error has a reason that somebody gave.
 */
#include "dst.h"

#include "base/bits.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void item_make(struct dst_conn *c, struct dst_item *it, unsigned int dir, unsigned int n)
{
	struct dst_world *w = c->w;

	it->c = c;
	it->dir = dir;
	it->number = n;
	it->end = (int)(it->is_recv ? 1 - dir : dir);
	it->use_mr = dst_chance(w, 0.7);
	it->test = w->on[F_TEST_OPS] && dst_chance(w, 0.4);
}

static void write_make(struct dst_conn *c, struct dst_item *it)
{
	struct dst_world *w = c->w;

	it->has_imm = dst_chance(w, 0.5);
	it->imm = it->has_imm ? (uint32_t)rng_next(&w->rng) | 1 : 0;
	it->seed = rng_next(&w->rng);
	it->buf = dst_alloc(it->length);
	dst_fill(it->buf, it->length, it->seed);
}

void dst_items_make(struct dst_conn *c, unsigned int dir, uint64_t payload, uint64_t chunk)
{
	struct dst_world *w = c->w;
	struct dst_dir *d = &c->dir[dir];

	d->n = 1 + (unsigned int)dst_below(w, dst_chance(w, 0.2) ? DST_OPS_MAX : 25);
	d->w = dst_alloc(d->n * sizeof(*d->w));
	d->r = dst_alloc(d->n * sizeof(*d->r));
	for (unsigned int i = 0; i < d->n; i++) {
		struct dst_item *s = &d->w[i], *r = &d->r[i];

		r->is_recv = true;
		item_make(c, s, dir, i);
		item_make(c, r, dir, i);
		s->length = dst_size_draw(w, payload, chunk);
		if ((w->on[F_BIG] || w->on[F_BREAKER]) && i == 0)
			s->length = 1000000 + dst_below(w, 3000000);
		r->length = s->length + (dst_chance(w, 0.5) ? dst_below(w, 3000) : 0);
		if (w->on[F_TOO_LONG] && dst_chance(w, 0.1))
			r->length = s->length / 2;
		write_make(c, s);
		r->mem = dst_alloc(r->length + 2 * DST_CANARY);
		memset(r->mem, DST_FILL, r->length + 2 * DST_CANARY);
	}
}

void dst_items_free(struct dst_conn *c)
{
	for (unsigned int dir = 0; dir < 2; dir++) {
		struct dst_dir *d = &c->dir[dir];

		for (unsigned int i = 0; d->w && i < d->n; i++) {
			dst_free(d->w[i].buf);
			dst_unpoison(d->r[i].mem, d->r[i].length + 2 * DST_CANARY);
			dst_free(d->r[i].mem);
		}
		dst_free(d->w);
		dst_free(d->r);
		d->w = d->r = NULL;
	}
}

/* ---- completions ---- */

static void canaries(struct dst_world *w, const struct dst_item *r)
{
	for (unsigned int i = 0; i < DST_CANARY; i++)
		DST_CHECK(w,
			  r->mem[i] == DST_FILL && r->mem[DST_CANARY + r->length + i] == DST_FILL,
			  "receive %u of connection %u: a byte outside was written", r->number,
			  r->c->id);
}

/* Packets without payload write nothing. */
static void untouched(struct dst_world *w, const struct dst_item *r)
{
	for (uint64_t i = 0; i < r->length; i++)
		DST_CHECK(w, r->mem[DST_CANARY + i] == DST_FILL,
			  "receive %u: written, though there is no payload", r->number);
}

/* Is the write's data what lies in the receive's buffer? */
static void same_bytes(struct dst_world *w, const struct dst_item *s, const struct dst_item *r)
{
	uint8_t chunk[4096];
	struct rng rng;

	if (w->on[F_NO_PAYLOAD]) {
		untouched(w, r);
		return;
	}
	rng_init(&rng, s->seed);
	for (uint64_t at = 0; at < s->length; at += sizeof(chunk)) {
		uint64_t n = u64_min(sizeof(chunk), s->length - at);

		for (uint64_t i = 0; i < n; i += 8) {
			uint64_t v = rng_next(&rng);

			memcpy(chunk + i, &v, 8);
		}
		DST_CHECK(w, memcmp(r->mem + DST_CANARY + at, chunk, n) == 0,
			  "receive %u of connection %u: wrong bytes behind %llu", r->number,
			  r->c->id, (unsigned long long)at);
	}
}

static void recv_done(struct dst_world *w, struct dst_item *r, const struct sdr_completion *done)
{
	const struct dst_item *s = &r->c->dir[r->dir].w[r->number];

	canaries(w, r);
	if (done->status == 0) {
		DST_CHECK(w, s->posted, "a receive of what was never written");
		DST_CHECK(w, done->length == s->length, "receive %u: %llu bytes of %llu", r->number,
			  (unsigned long long)done->length, (unsigned long long)s->length);
		DST_CHECK(w, done->imm == s->imm && !done->has_imm == !s->imm,
			  "receive %u: immediate %x, not %x", r->number, done->imm, s->imm);
		same_bytes(w, s, r);
		for (uint64_t i = s->length; i < r->length; i++)
			DST_CHECK(w, r->mem[DST_CANARY + i] == DST_FILL,
				  "receive %u: written behind its message", r->number);
		dst_site(SITE_recv_ok, 1);
		dst_site(SITE_recv_imm, s->has_imm);
	}
	r->sum = dst_checksum(r->mem, r->length + 2 * DST_CANARY);
	dst_poison(r->mem, r->length + 2 * DST_CANARY);
}

static void write_done(struct dst_world *w, struct dst_item *s, const struct sdr_completion *done)
{
	struct dst_item *r = &s->c->dir[s->dir].r[s->number];

	if (done->status == 0) {
		/* It was received: if the receiver has not heard yet, it will. */
		DST_CHECK(w, r->posted, "write %u arrived in no receive", s->number);
		DST_CHECK(w, !r->done || r->status == 0, "write %u says 0, its receive %d",
			  s->number, r->status);
		if (!r->done)
			same_bytes(w, s, r);
		dst_site(SITE_write_ok, 1);
		dst_site(SITE_write_empty, s->length == 0);
	}
	/* Whoever still reads it sends other bytes, or hears of it from AddressSanitizer. */
	memset(s->buf, 0xee, s->length);
	dst_free(s->buf);
	s->buf = NULL;
}

/*
 * Who closes alone has its writes finished first; they are given up no sooner than a silent
 * peer would be.
 */
static bool cut_short(const struct dst_item *it, int status)
{
	const struct dst_conn *c = it->c;
	const struct dst_item *s = &c->dir[it->dir].w[it->number];
	const struct dst_end *from = &c->end[it->dir], *to = &c->end[1 - it->dir];
	bool alone = from->closing && !to->closing && from->conn && !from->status && to->conn &&
		     !to->status && !c->may_die && !c->nomem;
	bool wanted = s->posted && !s->done && !s->cancelled && !s->deadline &&
		      s->length <= c->dir[it->dir].r[it->number].length;

	return status == -SDR_E_CLOSED && alone && wanted && c->close_ns != UINT64_MAX &&
	       dst_now(c->w) < c->close_ns + 10 * SEC;
}

/* An error needs a reason; these do, whatever the connection went through. */
static bool excused(const struct dst_item *it, int status)
{
	const struct dst_conn *c = it->c;
	const struct dst_item *s = &c->dir[it->dir].w[it->number];
	const struct dst_item *r = &c->dir[it->dir].r[it->number];

	if (cut_short(it, status))
		return false;
	if (c->disturbed || c->nomem)
		return true;
	/* The other end may have died first, and said what ended with it. */
	if ((c->may_die || c->may_break) && (status == -SDR_E_EARLY || status == -SDR_E_ABORTED))
		return true;
	switch (status) {
	case -SDR_E_DEAD:
		return c->may_die;
	case -SDR_E_RESET:
		return c->may_die || c->may_break;
	case -SDR_E_BREAKER:
		return c->may_break;
	case -ECANCELED:
		return it->cancelled;
	case -SDR_E_DEADLINE:
		return it->deadline;
	case -SDR_E_EARLY:
		return !it->is_recv && (r->cancelled || r->deadline);
	case -SDR_E_ABORTED:
		return it->is_recv && (s->cancelled || s->deadline || s->length > r->length);
	case -SDR_E_TOO_LONG:
		return s->length > r->length;
	default:
		return false;
	}
}

static void status_site(const struct dst_item *it, int status)
{
	static const struct {
		int status;
		enum dst_site write, recv;
	} sites[] = {
		{-ECANCELED, SITE_write_canceled, SITE_recv_canceled},
		{-SDR_E_DEADLINE, SITE_write_deadline, SITE_recv_deadline},
		{-SDR_E_EARLY, SITE_write_early, SITE_write_early},
		{-SDR_E_ABORTED, SITE_recv_aborted, SITE_recv_aborted},
		{-SDR_E_TOO_LONG, SITE_write_too_long, SITE_recv_aborted},
		{-SDR_E_CLOSED, SITE_write_closed, SITE_recv_closed},
		{-SDR_E_DEAD, SITE_write_dead, SITE_recv_dead},
		{-SDR_E_RESET, SITE_write_dead, SITE_recv_dead},
		{-SDR_E_BREAKER, SITE_write_dead, SITE_recv_dead},
	};

	for (size_t i = 0; i < SDR_ARRAY_LEN(sites); i++)
		if (sites[i].status == status)
			dst_site(it->is_recv ? sites[i].recv : sites[i].write, 1);
}

void dst_on_completion(struct dst_world *w, struct dst_host *h, const struct sdr_completion *done)
{
	struct dst_item *it = done->cookie;
	struct dst_end *e;

	DST_CHECK(w, it && it->posted, "a completion of what was never posted");
	e = &it->c->end[it->end];
	DST_CHECK(w, e->host == (uint32_t)h->id && !it->orphaned,
		  "a completion at a host that did not post");
	DST_CHECK(w, !it->done, "%s %u of connection %u completed twice",
		  it->is_recv ? "receive" : "write", it->number, it->c->id);
	DST_CHECK(w, it->is_recv == done->is_recv, "a completion of the wrong kind");
	DST_CHECK(w, done->conn == e->conn, "a completion names another connection");
	dst_site(SITE_orphan_completion, !e->conn);
	dst_trace(w, (uint64_t)it->number << 32 ^ it->c->id << 4 ^ it->dir << 1 ^ it->is_recv);
	dst_trace(w, (uint64_t)(int64_t)done->status ^ done->length << 16);
	DST_CHECK(w, done->status == 0 || excused(it, done->status),
		  "%s %u of connection %u ended with %d (%s) for no reason",
		  it->is_recv ? "receive" : "write", it->number, it->c->id, done->status,
		  sdr_strerror(done->status));
	it->done = true;
	it->op = NULL;
	it->status = done->status;
	it->got = done->length;
	status_site(it, done->status);
	if (it->is_recv)
		recv_done(w, it, done);
	else
		write_done(w, it, done);
}

/* ---- posting ---- */

static bool post_error_allowed(const struct dst_item *it, int err)
{
	const struct dst_conn *c = it->c;
	const struct dst_end *e = &c->end[it->end];

	switch (err) {
	case -EAGAIN:
		return true;
	case -ENOMEM:
		return c->nomem;
	case -ESHUTDOWN:
		return e->closing || c->end[1 - it->end].closing || c->disturbed;
	default: /* why it died: told already, or about to be */
		return e->over || c->disturbed || c->may_die || c->may_break;
	}
}

/* True where the next one may be tried. */
static bool item_post(struct dst_item *it)
{
	struct dst_conn *c = it->c;
	struct dst_world *w = c->w;
	struct dst_end *e = &c->end[it->end];
	struct sdr_op_wr wr = {.size = sizeof(wr), .imm = it->imm, .length = it->length};
	bool refuse = w->on[F_NOMEM] && !w->calm && dst_chance(w, 0.05);
	int err;

	wr.addr = it->is_recv ? it->mem + DST_CANARY : it->buf;
	wr.mr = it->use_mr ? w->host[e->host].mr : NULL;
	wr.flags = (it->has_imm ? SDR_OP_HAS_IMM : 0) | (it->test ? SDR_OP_TEST : 0);
	wr.cookie = it;
	if (w->on[F_DEADLINE] && !w->calm && dst_chance(w, 0.15)) {
		wr.deadline_ns = dst_now(w) + 1 + dst_below(w, 500 * MS);
		it->deadline = true;
	}
	if (refuse)
		dst_nomem_arm((uint32_t)dst_below(w, 4), 1);
	it->posted = true;
	err = it->is_recv ? sdr_conn_recv_post(e->conn, &wr, &it->op)
			  : sdr_write_post(e->conn, &wr, &it->op);
	if (refuse && dst_nomem_disarm()) {
		c->nomem = true;
		dst_site(SITE_nomem_post, 1);
	}
	dst_trace(w, (uint64_t)(int64_t)err);
	if (!err)
		return true;
	DST_CHECK(w, post_error_allowed(it, err), "posting %s %u of connection %u: %d %s",
		  it->is_recv ? "receive" : "write", it->number, c->id, err, sdr_strerror(err));
	it->posted = it->deadline = false;
	it->op = NULL;
	dst_site(SITE_post_again, err == -EAGAIN);
	return false;
}

static void item_cancel(struct dst_item *it)
{
	struct dst_world *w = it->c->w;
	bool before = it->cancelled;
	int err;

	if (!it->posted || it->done || it->orphaned || !it->op || !it->c->end[it->end].conn)
		return;
	it->cancelled = true;
	err = sdr_op_cancel(it->op);
	/* It may have ended, and nobody has looked. */
	DST_CHECK(w, err == 0 || err == -EALREADY, "sdr_op_cancel: %d", err);
	dst_trace(w, (uint64_t)(int64_t)err);
	if (err) {
		it->cancelled = before;
		dst_site(SITE_op_late_cancel, 1);
	}
}

static void item_test(struct dst_world *w, struct dst_item *it)
{
	struct dst_end *e = &it->c->end[it->end];
	struct sdr_completion done = {.size = sizeof(done)};
	int got;

	if (!it->test || !it->posted || it->done || it->orphaned)
		return;
	got = sdr_op_test(it->op, &done);
	DST_CHECK(w, got == 0 || got == 1, "sdr_op_test: %d", got);
	if (!got)
		return;
	dst_site(SITE_op_tested, 1);
	dst_on_completion(w, &w->host[e->host], &done);
}

static bool can_post(const struct dst_world *w, const struct dst_end *e)
{
	return e->conn && !e->over && !e->closing && dst_host_awake(w, &w->host[e->host]);
}

/* Neither receives nor writes may take the whole completion queue: both ends would wait. */
static bool fits(const struct dst_end *e, const struct dst_item *items, unsigned int posted)
{
	const struct dst_world *w = e->c->w;
	uint32_t open = 0;

	if (!w->on[F_FEW_COMPLETIONS])
		return true;
	for (unsigned int i = 0; i < posted; i++)
		open += !items[i].done;
	return open < w->host[e->host].max_completions / 2;
}

/* Operations that are told by sdr_op_test(): also after their connection is gone. */
void dst_items_test(struct dst_conn *c)
{
	struct dst_world *w = c->w;

	for (unsigned int dir = 0; w->on[F_TEST_OPS] && dir < 2; dir++) {
		struct dst_dir *d = &c->dir[dir];

		bool from = dst_host_awake(w, &w->host[c->end[dir].host]);
		bool to = dst_host_awake(w, &w->host[c->end[1 - dir].host]);

		for (unsigned int i = 0; from && i < d->wposted; i++)
			item_test(w, &d->w[i]);
		for (unsigned int i = 0; to && i < d->rposted; i++)
			item_test(w, &d->r[i]);
	}
}

void dst_items_stir(struct dst_conn *c, unsigned int dir)
{
	struct dst_world *w = c->w;
	struct dst_dir *d = &c->dir[dir];
	const struct dst_end *from = &c->end[dir], *to = &c->end[1 - dir];

	while (d->wposted < d->n && can_post(w, from) && fits(from, d->w, d->wposted) &&
	       dst_chance(w, 0.7) && item_post(&d->w[d->wposted]))
		d->wposted++;
	while (d->rposted < d->n && can_post(w, to) && fits(to, d->r, d->rposted) &&
	       dst_chance(w, w->host[to->host].recv_chance) && item_post(&d->r[d->rposted]))
		d->rposted++;
	if (w->on[F_CANCEL] && !w->calm && dst_chance(w, 0.2)) {
		unsigned int i = (unsigned int)dst_below(w, d->n);
		struct dst_item *it = dst_chance(w, 0.5) ? &d->w[i] : &d->r[i];

		if (dst_host_awake(w, &w->host[c->end[it->end].host]))
			item_cancel(it);
	}
}

/* Its host crashed: nobody will tell; its memory must not change all the same. */
void dst_items_orphan(struct dst_end *e)
{
	struct dst_conn *c = e->c;

	for (unsigned int dir = 0; c->dir[0].w && dir < 2; dir++) {
		for (unsigned int i = 0; i < c->dir[dir].n; i++) {
			struct dst_item *it =
				(int)dir == e->index ? &c->dir[dir].w[i] : &c->dir[dir].r[i];

			if (!it->posted || it->done)
				continue;
			it->orphaned = true;
			it->op = NULL;
			if (!it->is_recv)
				continue;
			it->sum = dst_checksum(it->mem, it->length + 2 * DST_CANARY);
		}
	}
}

static bool item_open(const struct dst_item *it)
{
	return it->posted && !it->done && !it->orphaned;
}

bool dst_items_left(const struct dst_conn *c)
{
	for (unsigned int dir = 0; dir < 2; dir++) {
		const struct dst_dir *d = &c->dir[dir];

		if (!c->disturbed && (d->wposted < d->n || d->rposted < d->n))
			return true;
		for (unsigned int i = 0; i < d->n; i++)
			if (item_open(&d->w[i]) || item_open(&d->r[i]))
				return true;
	}
	return false;
}

void dst_items_check(const struct dst_conn *c)
{
	struct dst_world *w = c->w;

	for (unsigned int dir = 0; dir < 2; dir++) {
		for (unsigned int i = 0; i < c->dir[dir].n; i++) {
			const struct dst_item *s = &c->dir[dir].w[i], *r = &c->dir[dir].r[i];

			dst_unpoison(r->mem, r->length + 2 * DST_CANARY);
			canaries(w, r);
			if (r->done || r->orphaned)
				DST_CHECK(w,
					  dst_checksum(r->mem, r->length + 2 * DST_CANARY) ==
						  r->sum,
					  "receive %u of connection %u: written after its end", i,
					  c->id);
			if (s->done && s->status == 0)
				DST_CHECK(w, r->orphaned || (r->done && r->status == 0),
					  "write %u of connection %u says 0, its receive %d", i,
					  c->id, r->status);
		}
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reliable connections between random pairs of hosts: made, used, closed, killed, made
 * again. What each end is told is checked against what was done to it.
 */
#include "dst.h"

#include "base/bits.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEAD_DEFAULT_NS (30 * SEC)
#define ASKED_NS (20 * SEC) /* when an idle end has asked, and some */

/* ---- making one ---- */

static bool matches(const struct dst_host *a, const struct dst_host *b)
{
	return a->rdma == b->rdma && (a->listen || b->listen);
}

static void fate_draw(struct dst_world *w, struct dst_conn *c)
{
	c->close_ns = UINT64_MAX;
	c->close_how = (unsigned int)dst_below(w, 4);
	if (w->on[F_CLOSE] && dst_chance(w, 0.5))
		c->close_ns = dst_now(w) + dst_below(w, w->faults_end_ns);
}

static void attrs_draw(struct dst_world *w, struct dst_conn *c)
{
	for (int i = 0; i < 2; i++) {
		struct dst_end *e = &c->end[i];
		uint64_t bps = w->link[e->host][c->end[1 - i].host].rate_bps;

		dst_attr_draw(w, &w->host[e->host], bps, &e->attr);
		e->attr.cookie = e;
		if (e->attr.rate_bps)
			c->may_break = true;
	}
	c->may_die = w->on[F_SHORT_DEAD] || w->on[F_LOSSY_CONNECT] || w->on[F_BREAKER];
}

static int open_ends(struct dst_world *w, struct dst_conn *c)
{
	uint8_t blob[2][SDR_MAX_INFO_BYTES];
	int len[2], err = 0;

	for (int i = 0; i < 2 && !err; i++) {
		struct dst_end *e = &c->end[i];

		err = sdr_conn_open(w->host[e->host].net, &e->attr, &e->conn);
		if (err) {
			e->conn = NULL;
			break;
		}
		len[i] = sdr_conn_blob_get(e->conn, blob[i], sizeof(blob[i]));
		DST_CHECK(w, len[i] > 0, "sdr_conn_blob_get: %d", len[i]);
	}
	for (int i = 0; i < 2 && !err; i++) {
		struct sdr_connect_attr ca = {.size = sizeof(ca)};
		uint64_t rtt = 2 * w->link[c->end[0].host][c->end[1].host].delay_ns;

		ca.rtt_ns = w->seed % 3 ? 0 : rtt;
		err = sdr_conn_blob_set(c->end[i].conn, blob[1 - i], (size_t)len[1 - i], &ca);
	}
	return err;
}

static void give_up(struct dst_conn *c)
{
	for (int i = 0; i < 2; i++) {
		struct dst_end *e = &c->end[i];

		if (e->conn)
			sdr_conn_destroy(e->conn);
		e->conn = NULL;
		e->over = true;
	}
}

bool dst_conn_begin(struct dst_world *w, uint32_t a, uint32_t b)
{
	bool refused = w->on[F_NOMEM] && !w->calm && dst_chance(w, 0.4);
	struct dst_conn *c = &w->conn[w->nconns];
	int err;

	if (w->nconns == DST_CONNS_MAX || !w->host[a].net || !w->host[b].net ||
	    !matches(&w->host[a], &w->host[b]))
		return false;
	*c = (struct dst_conn){.w = w, .id = w->nconns, .begun_ns = dst_now(w)};
	for (int i = 0; i < 2; i++) {
		c->end[i].c = c;
		c->end[i].index = i;
		c->end[i].host = i ? b : a;
	}
	attrs_draw(w, c);
	fate_draw(w, c);
	if (refused)
		dst_nomem_arm((uint32_t)dst_below(w, 40), 1);
	err = open_ends(w, c);
	if (refused && dst_nomem_disarm()) {
		dst_site(SITE_nomem_setup, 1);
		c->nomem = true;
	}
	DST_CHECK(w, !err || (err == -ENOMEM && c->nomem), "opening connection %u: %d %s", c->id,
		  err, sdr_strerror(err));
	dst_note(w, "connection %u: hosts %u and %u%s", c->id, a, b, err ? ", no memory" : "");
	w->nconns++;
	if (err)
		give_up(c);
	return !err;
}

void dst_conns_init(struct dst_world *w)
{
	uint32_t want = 1 + (uint32_t)dst_below(w, w->nhosts);

	if (w->on[F_BIG] || w->on[F_FEW_COMPLETIONS])
		want = 1;
	for (uint32_t tries = 0; w->nconns < want && tries < 20; tries++) {
		uint32_t a = (uint32_t)dst_below(w, w->nhosts);
		uint32_t b = (uint32_t)dst_below(w, w->nhosts);

		if (a != b)
			(void)dst_conn_begin(w, a, b);
	}
	w->first_conns = w->nconns;
}

/* ---- ending ---- */

void dst_conn_destroy(struct dst_end *e)
{
	struct dst_conn *c = e->c;

	if (!e->conn)
		return;
	dst_count_conn(e->conn);
	dst_trace(c->w, c->id * 2 + (unsigned int)e->index);
	sdr_conn_destroy(e->conn);
	e->conn = NULL;
}

/* One end goes without a goodbye: the other one has to notice. */
static void destroy_now(struct dst_conn *c)
{
	struct dst_end *e = &c->end[dst_below(c->w, 2)];

	if (!e->conn)
		return;
	dst_note(c->w, "connection %u: end %d destroyed", c->id, e->index);
	dst_site(SITE_conn_destroy, 1);
	c->disturbed = true;
	e->over = true;
	c->doomed_ns = dst_now(c->w);
	dst_conn_destroy(e);
}

static void close_end(struct dst_end *e, bool busy)
{
	int err;

	if (!e->conn || e->closing || e->over)
		return;
	err = sdr_conn_close(e->conn);
	/* The peer may have been faster, or it died: its event is on its way. */
	DST_CHECK(e->c->w,
		  err == 0 || err == -ESHUTDOWN || e->c->disturbed || e->c->may_die ||
			  e->c->may_break,
		  "sdr_conn_close: %d", err);
	e->closing = true;
	dst_site(SITE_conn_close_busy, busy);
}

static void close_now(struct dst_conn *c, bool busy)
{
	unsigned int first = c->close_how & 1;

	dst_note(c->w, "connection %u: closing, how %u", c->id, c->close_how);
	c->disturbed |= busy;
	close_end(&c->end[first], busy);
	if (c->close_how >= 2) {
		dst_site(SITE_conn_close_both, 1);
		close_end(&c->end[1 - first], busy);
	} else {
		dst_site(SITE_conn_close_one, 1);
	}
	c->asked = true;
}

/* ---- turns ---- */

static bool both_up(const struct dst_conn *c)
{
	return c->end[0].up && c->end[1].up;
}

static bool over(const struct dst_conn *c)
{
	return c->end[0].over && c->end[1].over;
}

static void work_begin(struct dst_conn *c)
{
	for (int i = 0; i < 2; i++) {
		struct sdr_conn_info info = {.size = sizeof(info)};

		(void)sdr_conn_query(c->end[i].conn, &info);
		dst_items_make(c, (unsigned int)i, info.payload_bytes,
			       c->end[1 - i].attr.chunk_pkts);
	}
}

/*
 * A peer that is gone is noticed: an idle end asks after 15 s at the latest, and gives up after
 * dead_after_ns without an answer. Its own pauses and its application's count from their end, which
 * is that of the faults at the latest.
 */
static void doomed_check(const struct dst_conn *c)
{
	struct dst_world *w = c->w;

	for (int i = 0; c->doomed_ns && i < 2; i++) {
		const struct dst_end *e = &c->end[i];
		uint64_t from = c->doomed_ns, patience = e->attr.dead_after_ns;

		if (!e->conn || e->over || !e->up)
			continue;
		if (w->on[F_PAUSE] || w->on[F_SELDOM])
			from = u64_max(from, w->faults_end_ns);
		patience = ASKED_NS + (patience ? patience : DEAD_DEFAULT_NS);
		DST_CHECK(w, dst_now(w) <= from + patience,
			  "connection %u, end %d: its peer has been gone for %llu s", c->id, i,
			  (unsigned long long)((dst_now(w) - c->doomed_ns) / SEC));
	}
}

static void conn_turn(struct dst_conn *c)
{
	struct dst_world *w = c->w;

	dst_items_test(c);
	if (over(c))
		return;
	doomed_check(c);
	if (!w->calm && w->on[F_DESTROY] && dst_chance(w, 0.004))
		destroy_now(c);
	if (!both_up(c))
		return;
	if (!c->dir[0].w && c->end[0].conn && c->end[1].conn)
		work_begin(c);
	if (!c->dir[0].w)
		return;
	for (unsigned int d = 0; d < 2; d++)
		dst_items_stir(c, d);
	if (!c->asked && dst_now(w) >= c->close_ns)
		close_now(c, dst_items_left(c));
	if (!c->asked && w->calm && !dst_items_left(c)) {
		dst_codes_ended(c);
		close_now(c, false);
	}
	dst_codes_turn(c);
	if (w->on[F_RATE_CHANGE] && !w->calm && dst_chance(w, 0.03)) {
		struct dst_end *e = &c->end[dst_below(w, 2)];
		uint64_t bps = dst_chance(w, 0.5) ? 0 : 10000000 + dst_below(w, 1000000000);

		if (e->conn && !e->over && !sdr_conn_rate_set(e->conn, bps)) {
			c->may_break |= bps != 0;
			dst_site(SITE_conn_rate, 1);
		}
	}
}

void dst_conns_nomem(struct dst_world *w, const struct dst_host *h)
{
	for (uint32_t i = 0; i < w->nconns; i++)
		for (int k = 0; k < 2; k++)
			if (w->conn[i].end[k].host == (uint32_t)h->id)
				w->conn[i].nomem = true;
}

void dst_conns_turn(struct dst_world *w)
{
	for (uint32_t i = 0; i < w->nconns; i++)
		conn_turn(&w->conn[i]);
}

bool dst_conns_left(const struct dst_world *w)
{
	for (uint32_t i = 0; i < w->nconns; i++) {
		const struct dst_conn *c = &w->conn[i];

		if (!over(c) || (c->dir[0].w && c->disturbed && dst_items_left(c)))
			return true;
	}
	return false;
}

/* ---- what it tells ---- */

static void on_dead(struct dst_world *w, struct dst_end *e, const struct sdr_event *ev)
{
	struct dst_conn *c = e->c;
	bool excused = c->disturbed || c->may_die || c->nomem;

	switch (ev->status) {
	case -SDR_E_BREAKER:
		dst_site(SITE_conn_breaker, 1);
		excused = c->may_break;
		break;
	case -SDR_E_RESET:
		dst_site(SITE_conn_reset, 1);
		/* The other end may have died first, and said so. */
		excused = excused || c->end[1 - e->index].over || c->may_break;
		break;
	default:
		dst_site(SITE_conn_dead, 1);
		break;
	}
	DST_CHECK(w, excused, "connection %u, end %d died of nothing: %d %s", c->id, e->index,
		  ev->status, ev->text);
	c->disturbed = true;
	e->over = true;
	e->status = ev->status;
}

static void on_event(struct dst_world *w, const struct sdr_event *ev)
{
	struct dst_end *e = ev->conn_cookie;
	struct dst_conn *c;

	DST_CHECK(w, e && e->conn == ev->conn, "an event of a connection that is gone");
	c = e->c;
	dst_note(w, "connection %u, end %d: %s", c->id, e->index, ev->text);
	dst_trace(w, (uint64_t)ev->type << 32 ^ c->id * 2 ^ (uint64_t)e->index);
	(void)snprintf(e->text, sizeof(e->text), "%.127s", ev->text);
	DST_CHECK(w, !e->over, "an event after the last one: %s", ev->text);
	switch (ev->type) {
	case SDR_EV_CONNECTED:
		DST_CHECK(w, !e->up, "connected twice");
		e->up = true;
		dst_site(SITE_conn_connected, 1);
		break;
	case SDR_EV_FAILED:
		DST_CHECK(w, !e->up, "failed after it was connected");
		DST_CHECK(w, c->may_die || c->disturbed || c->nomem,
			  "connection %u, end %d failed: %d %s", c->id, e->index, ev->status,
			  ev->text);
		dst_site(SITE_conn_failed, 1);
		c->disturbed = true;
		e->over = true;
		break;
	case SDR_EV_STALLED:
		dst_site(SITE_conn_stalled, 1);
		break;
	case SDR_EV_RECOVERED:
		dst_site(SITE_conn_recovered, 1);
		break;
	case SDR_EV_DEAD:
		on_dead(w, e, ev);
		break;
	case SDR_EV_CLOSED:
		DST_CHECK(w, e->closing || c->end[1 - e->index].closing || c->disturbed,
			  "connection %u closed by nobody", c->id);
		dst_site(SITE_conn_closed, 1);
		e->over = true;
		break;
	default:
		dst_fail(w, "an event of type %d", (int)ev->type);
	}
}

/* An end whose peer went while it was still connecting has nobody to wait for. */
static void leave(struct dst_conn *c)
{
	for (int i = 0; i < 2; i++) {
		struct dst_end *e = &c->end[i];
		const struct dst_end *other = &c->end[1 - i];

		if (e->conn && e->over && dst_chance(c->w, 0.2))
			dst_conn_destroy(e);
		if (e->conn && !e->over && !e->up && other->over) {
			dst_conn_destroy(e);
			e->over = true;
		}
	}
}

void dst_conns_take(struct dst_world *w, struct dst_host *h)
{
	struct sdr_event ev = {.size = sizeof(ev)};
	struct sdr_completion done[16];
	int n;

	if (w->on[F_LAZY_POLL] && !w->calm && !dst_chance(w, 0.1))
		return;
	done[0].size = sizeof(done[0]);
	while ((n = sdr_net_poll(h->net, done, 16)) > 0)
		for (int i = 0; i < n; i++)
			dst_on_completion(w, h, &done[i]);
	while (sdr_net_event(h->net, &ev) == 1) {
		struct dst_end *e = ev.conn_cookie;

		on_event(w, &ev);
		if (e->over)
			leave(e->c);
	}
}

/* ---- crashes ---- */

void dst_conns_host_gone(struct dst_world *w, struct dst_host *h)
{
	for (uint32_t i = 0; i < w->nconns; i++) {
		struct dst_conn *c = &w->conn[i];

		for (int k = 0; k < 2; k++) {
			struct dst_end *e = &c->end[k];

			if (e->host != (uint32_t)h->id)
				continue;
			dst_items_orphan(e);
			if (!e->conn)
				continue;
			dst_count_conn(e->conn);
			e->conn = NULL; /* goes with its net */
			e->over = true;
			c->disturbed = true;
			c->doomed_ns = dst_now(w);
			leave(c);
		}
	}
}

void dst_conns_host_back(struct dst_world *w, struct dst_host *h)
{
	uint32_t n = w->nconns;

	for (uint32_t i = 0; i < n; i++) {
		const struct dst_conn *c = &w->conn[i];

		for (int k = 0; k < 2; k++)
			if (c->end[k].host == (uint32_t)h->id && i < w->first_conns)
				(void)dst_conn_begin(w, c->end[0].host, c->end[1].host);
	}
}

/* ---- the end ---- */

void dst_conns_check(struct dst_world *w)
{
	for (uint32_t i = 0; i < w->nconns; i++)
		if (w->conn[i].dir[0].w)
			dst_items_check(&w->conn[i]);
}

void dst_conns_fini(struct dst_world *w)
{
	for (uint32_t i = 0; i < w->nconns; i++) {
		for (int k = 0; k < 2; k++)
			dst_conn_destroy(&w->conn[i].end[k]);
		dst_items_free(&w->conn[i]);
	}
}

static void dump_end(const struct dst_end *e)
{
	struct sdr_conn_info i = {.size = sizeof(i)};
	struct sdr_qp_info q = {.size = sizeof(q)};

	fprintf(stderr, "  end %d on host %u%s%s%s%s; last said: %s\n", e->index, e->host,
		e->conn ? "" : ", gone", e->up ? ", up" : "", e->closing ? ", closing" : "",
		e->over ? ", over" : "", e->text);
	if (!e->conn)
		return;
	(void)sdr_conn_query(e->conn, &i);
	(void)sdr_qp_query(sdr_conn_qp(e->conn), &q);
	fprintf(stderr,
		"    %s state %d error %d channels %u payload %u messages %u rtt %llu rto %llu "
		"inflight %llu cwnd %llu pacing %llu\n"
		"    sent %llu resent %llu lost %llu acks %llu/%llu; next send %u granted %u, next "
		"receive %u; heard %llu ago, unanswered %llu ns\n",
		i.scheme, i.state, i.error, i.channels, i.payload_bytes, q.messages,
		(unsigned long long)i.rtt_ns, (unsigned long long)i.rto_ns,
		(unsigned long long)i.inflight_bytes, (unsigned long long)i.cwnd_bytes,
		(unsigned long long)i.pacing_bps, (unsigned long long)i.tx_pkts,
		(unsigned long long)i.tx_resent_pkts, (unsigned long long)i.tx_lost_pkts,
		(unsigned long long)i.acks_sent, (unsigned long long)i.acks_received, q.send_next,
		q.granted, q.recv_next, (unsigned long long)q.heard_age_ns,
		(unsigned long long)q.unanswered_ns);
}

static void dump_dir(const struct dst_dir *d)
{
	unsigned int shown = 0;

	for (unsigned int n = 0; n < d->n && shown < 12; n++) {
		const struct dst_item *s = &d->w[n], *r = &d->r[n];

		if ((s->done && r->done) || (!s->posted && !r->posted))
			continue;
		shown++;
		fprintf(stderr, "    %u: write %llu %s %d, receive %llu %s %d\n", n,
			(unsigned long long)s->length,
			s->done	    ? "done"
			: s->posted ? "open"
				    : "not posted",
			s->status, (unsigned long long)r->length,
			r->done	    ? "done"
			: r->posted ? "open"
				    : "not posted",
			r->status);
	}
}

void dst_conns_dump(const struct dst_world *w)
{
	for (uint32_t i = 0; i < w->nconns; i++) {
		const struct dst_conn *c = &w->conn[i];

		if (over(c) && !(c->dir[0].w && dst_items_left(c)))
			continue;
		fprintf(stderr, "connection %u%s:\n", c->id, c->disturbed ? ", disturbed" : "");
		for (int k = 0; k < 2; k++) {
			const struct dst_dir *d = &c->dir[k];

			dump_end(&c->end[k]);
			fprintf(stderr, "    of %u: %u writes posted, %u receives there\n", d->n,
				d->wposted, d->rposted);
			dump_dir(d);
		}
	}
}

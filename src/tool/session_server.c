// SPDX-License-Identifier: Apache-2.0
/*
 * The server's side of a session: connections that wait for their turn, hello taken,
 * greeting sent. See session.h.
 */
#include "tool/session.h"

#include "tool/cli.h"
#include "tool/say.h"
#include "tool/session_impl.h"

#include "base/units.h"

#include <errno.h>
#include <stdio.h>

#define POLL_NS (100 * NS_PER_MS)
#define GREETING_WAIT_NS (5 * NS_PER_S)

static struct waiting *wait_find(struct session *s, const struct sdr_conn *conn)
{
	for (size_t i = 0; i < SESSION_WAITING_MAX; i++) {
		if (s->waiting[i].conn == conn)
			return &s->waiting[i];
	}
	return NULL;
}

static void wait_drop(struct session *s, struct waiting *w)
{
	struct sdr_conn *conn = w->conn;

	w->conn = NULL;
	w->turn = 0;
	if (conn)
		sdr_conn_destroy(conn);
	(void)s;
}

void session_drop_waiting(struct session *s)
{
	for (size_t i = 0; i < SESSION_WAITING_MAX; i++)
		wait_drop(s, &s->waiting[i]);
}

void session_wait_add(struct session *s, struct sdr_conn *conn)
{
	struct waiting *w = wait_find(s, NULL);
	struct sdr_op_wr wr = {.size = sizeof wr, .length = HELLO_BYTES};
	struct sdr_op *op;

	if (!w) {
		say("a peer was turned away: %d are waiting already", SESSION_WAITING_MAX);
		sdr_conn_destroy(conn);
		return;
	}
	w->conn = conn;
	w->turn = 0;
	wr.addr = w->buf;
	wr.cookie = w;
	if (sdr_conn_recv_post(conn, &wr, &op) < 0)
		wait_drop(s, w);
}

void session_wait_event(struct session *s, const struct sdr_event *ev)
{
	struct waiting *w = ev->conn ? wait_find(s, ev->conn) : NULL;

	if (w &&
	    (ev->type == SDR_EV_CLOSED || ev->type == SDR_EV_DEAD || ev->type == SDR_EV_FAILED))
		wait_drop(s, w);
}

void session_wait_completion(struct session *s, const struct sdr_completion *c)
{
	struct waiting *w = wait_find(s, c->conn);

	/* -ECANCELED is what is left of a destroyed connection, maybe of the same address. */
	if (!w || !c->conn || c->cookie != w || !c->is_recv || c->status == -ECANCELED)
		return;
	if (c->status < 0 || hello_get(w->buf, c->length, &w->hello) < 0) {
		wait_drop(s, w);
		return;
	}
	w->turn = ++s->turns;
}

static struct waiting *next_in_turn(struct session *s)
{
	struct waiting *best = NULL;

	for (size_t i = 0; i < SESSION_WAITING_MAX; i++) {
		struct waiting *w = &s->waiting[i];

		if (w->conn && w->turn && (!best || w->turn < best->turn))
			best = w;
	}
	return best;
}

static void take_turn(struct session *s, struct waiting *w, struct hello *h)
{
	struct sdr_conn_info info = {.size = sizeof info};

	s->conn = w->conn;
	*h = w->hello;
	w->conn = NULL;
	w->turn = 0;
	s->connected = 1;
	s->over = s->status = s->greeting_sent = 0;
	s->text[0] = '\0';
	snprintf(s->peer, sizeof s->peer, "the peer");
	if (sdr_conn_query(s->conn, &info) >= 0 && *info.peer)
		snprintf(s->peer, sizeof s->peer, "%.64s", info.peer);
}

/* Why this hello cannot be served, or NULL. */
static const char *refusal(const struct hello *h, enum hello_kind kind, const char *me, char *buf,
			   size_t cap)
{
	if (h->version != HELLO_VERSION) {
		snprintf(buf, cap,
			 "it speaks version %u of the command's protocol, you speak %u: install "
			 "the same release on both ends",
			 HELLO_VERSION, h->version);
		return buf;
	}
	if (h->kind == kind)
		return NULL;
	snprintf(buf, cap, "'%s' runs there, which does not serve 'sdr %s'", me,
		 h->kind == HELLO_XFER	 ? "send"
		 : h->kind == HELLO_PERF ? "perf"
					 : "(something newer)");
	return buf;
}

int session_accept(struct session *s, enum hello_kind kind, const char *me, struct hello *h)
{
	struct sdr_completion c;
	struct waiting *w;
	char text[256];

	while (!cli_stop) {
		const char *why;

		w = next_in_turn(s);
		if (!w) {
			session_poll(s, &c, 1, POLL_NS);
			continue;
		}
		take_turn(s, w, h);
		why = refusal(h, kind, me, text, sizeof text);
		if (!why)
			return 0;
		say("%s was refused: %s", s->peer, why);
		session_greet(s, why);
	}
	return -1;
}

void session_greet(struct session *s, const char *why)
{
	size_t len = greeting_put(why, s->greeting_buf);
	uint64_t until = session_now(s) + GREETING_WAIT_NS;
	struct sdr_completion c;

	session_write(s, s->greeting_buf, len, NULL, s->greeting_buf);
	if (!why)
		return;
	while (!s->greeting_sent && !s->over && !cli_stop && session_now(s) < until)
		session_poll(s, &c, 1, POLL_NS);
	session_close(s, GREETING_WAIT_NS);
}

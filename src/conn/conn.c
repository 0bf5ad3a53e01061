/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections: life cycle and state. What moves a connection from one state to another:
 *
 *	NEW         a blob is handed to the QP                            -> CONNECTING
 *	            the handshake fails (handshake.c), time is up         -> FAILED
 *	CONNECTING  UDP answered: the QP is connected                     -> UP
 *	            time is up, RESET                                     -> FAILED
 *	UP          sdr_conn_close()                                      -> DRAIN
 *	            peer's CLOSE, and our writes have ended (close.c)     -> CLOSED
 *	            RESET, silence, breaker (alive.c)                     -> DEAD
 *	DRAIN       our writes have ended                                 -> CLOSING
 *	            ... and the peer's CLOSE came                         -> CLOSED
 *	            RESET, silence, breaker                               -> DEAD
 *	CLOSING     echo, the peer's own CLOSE, RESET, silence            -> CLOSED
 *	NEW, CONNECTING  sdr_conn_close()                                 -> CLOSED
 *
 * CLOSED, FAILED and DEAD are final. conn_state_set() is the one place that changes it.
 */
#include "conn/internal.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void conn_state_set(struct sdr_conn *conn, enum conn_state to)
{
	static const bool edge[CONN_STATES][CONN_STATES] = {
		[CONN_NEW] = {[CONN_CONNECTING] = true, [CONN_FAILED] = true, [CONN_CLOSED] = true},
		[CONN_CONNECTING] = {[CONN_UP] = true, [CONN_FAILED] = true, [CONN_CLOSED] = true},
		[CONN_UP] = {[CONN_DRAIN] = true, [CONN_CLOSED] = true, [CONN_DEAD] = true},
		[CONN_DRAIN] = {[CONN_CLOSING] = true, [CONN_CLOSED] = true, [CONN_DEAD] = true},
		[CONN_CLOSING] = {[CONN_CLOSED] = true},
	};

	(void)edge;
	SDR_ASSERT(edge[conn->state][to]);
	conn->state = to;
}

bool conn_is_open(const struct sdr_conn *conn)
{
	return conn->state == CONN_UP || conn->state == CONN_DRAIN || conn->state == CONN_CLOSING;
}

uint64_t conn_rtt_ns(const struct sdr_conn *conn)
{
	uint64_t rtt = conn->rel_ready ? conn->tx.rtt.smoothed_ns : 0;

	rtt = u64_max(rtt, conn->qi.rtt_ns);
	return rtt ? rtt : 100 * NS_PER_MS;
}

/* ---- creating ---- */

static uint32_t power_of_two_up(uint32_t v)
{
	uint32_t p = 1;

	while (p < v)
		p *= 2;
	return p;
}

int conn_attr_fill(const struct sdr_conn_attr *in, struct sdr_conn_attr *out, char *scheme,
		   struct rel_params *params)
{
	memset(out, 0, sizeof(*out));
	if (in)
		memcpy(out, in, u64_min(in->size, sizeof(*out)));
	out->size = sizeof(*out);
	if (rel_scheme_parse(out->scheme ? out->scheme : REL_SCHEME_DEFAULT, params, NULL, 0))
		return -EINVAL;
	out->scheme = rel_scheme_name(params, scheme, REL_SCHEME_NAME);
	if (!out->parity_bytes)
		out->parity_bytes = CONN_PARITY_BYTES_DEFAULT;
	if (out->parity_bytes < CONN_PARITY_BYTES_LEAST)
		return -EINVAL;
	if (!out->messages)
		out->messages = CONN_MESSAGES_DEFAULT;
	if (out->messages > SDR_MAX_MESSAGES || out->channels > SDR_MAX_CHANNELS)
		return -EINVAL;
	out->messages = power_of_two_up(out->messages);
	if (!out->connect_timeout_ns)
		out->connect_timeout_ns = CONN_TIMEOUT_DEFAULT_NS;
	if (!out->dead_after_ns)
		out->dead_after_ns = CONN_DEAD_DEFAULT_NS;
	return 0;
}

static int conn_qp_create(struct sdr_conn *conn)
{
	struct sdr_qp_attr attr = {
		.size = sizeof(attr),
		.channels = conn->attr.channels,
		.chunk_pkts = conn->attr.chunk_pkts,
		.messages = pair_messages(conn),
		.max_payload_bytes = conn->attr.max_payload_bytes,
		.cookie = conn,
		.tell_active = 1,
		.user_offers = pair_offers(conn),
	};

	conn->offers = attr.user_offers;
	if (!attr.channels) {
		/* The client decides: whoever is called offers all. */
		struct sdr_ctx_info info = {.size = sizeof(info)};

		(void)sdr_ctx_query(conn->net->ctx, &info);
		attr.channels =
			conn->incoming ? (uint32_t)u64_min(info.max_channels, SDR_MAX_CHANNELS) : 1;
	}
	return sdr_qp_create(conn->net->ctx, &attr, &conn->qp);
}

static void conn_link(struct sdr_conn *conn)
{
	struct sdr_net *net = conn->net;

	conn->next = net->conns;
	if (conn->next)
		conn->next->prev = conn;
	net->conns = conn;
}

int conn_create(struct sdr_net *net, const struct sdr_conn_attr *attr, bool incoming,
		struct sdr_conn **out)
{
	struct sdr_conn *conn = calloc(1, sizeof(*conn));
	int err;

	if (!conn)
		return -ENOMEM;
	conn->net = net;
	conn->incoming = incoming;
	heap_node_init(&conn->timer);
	conn->next_ns = UINT64_MAX;
	err = conn_attr_fill(attr, &conn->attr, conn->scheme, &conn->params);
	if (!err) {
		conn->cookie = conn->attr.cookie;
		conn->mask = conn->attr.messages - 1;
		err = ops_create(conn);
		if (!err)
			err = conn_qp_create(conn);
		if (err)
			ops_destroy(conn);
	}
	if (err) {
		free(conn);
		return err;
	}
	conn->alive_floor_ns = sdr_now_ns(net->ctx);
	conn->connect_deadline_ns = conn->alive_floor_ns + conn->attr.connect_timeout_ns;
	if (incoming)
		net->npending++;
	conn_link(conn);
	*out = conn;
	return 0;
}

void conn_destroy(struct sdr_conn *conn)
{
	struct sdr_net *net = conn->net;

	if (conn->incoming)
		net->npending--;
	if (conn->state == CONN_CLOSED)
		close_last_words(conn);
	else if (conn->state != CONN_NEW)
		(void)sdr_qp_reset(conn->qp, 0);
	ops_end_all(conn, false, -ECANCELED);
	ops_end_all(conn, true, -ECANCELED);
	hs_detach(conn);
	sdr_qp_destroy(conn->qp);
	if (conn->rel_ready) {
		rel_tx_fini(&conn->tx);
		rel_rx_fini(&conn->rx);
		parity_fini(conn);
	}
	queue_conn_gone(net, conn);
	ops_destroy(conn);
	heap_remove(&net->timers, &conn->timer);
	net_deadline_tell(net);
	if (conn->prev)
		conn->prev->next = conn->next;
	else
		net->conns = conn->next;
	if (conn->next)
		conn->next->prev = conn->prev;
	free(conn);
}

/* ---- state ---- */

int conn_connect_qp(struct sdr_conn *conn, const void *blob, size_t len,
		    const struct sdr_connect_attr *attr)
{
	int err;

	if (conn->state != CONN_NEW)
		return -EISCONN;
	err = sdr_qp_connect(conn->qp, blob, len, attr);
	if (err)
		return err;
	conn_state_set(conn, CONN_CONNECTING);
	conn_schedule(conn, sdr_now_ns(conn->net->ctx));
	return 0;
}

static void format_text(char *buf, size_t len, const char *fmt, va_list args)
	__attribute__((format(printf, 3, 0)));
static void format_text(char *buf, size_t len, const char *fmt, va_list args)
{
	(void)vsnprintf(buf, len, fmt, args);
}

/* Connecting failed. One that was never announced goes without a word. */
void conn_fail(struct sdr_conn *conn, int status, const char *fmt, ...)
{
	char text[sizeof(conn->event[0].event.text)];
	va_list args;

	va_start(args, fmt);
	format_text(text, sizeof(text), fmt, args);
	va_end(args);
	conn->error = status;
	conn_state_set(conn, CONN_FAILED);
	hs_detach(conn);
	(void)sdr_qp_reset(conn->qp, 0);
	if (!conn->incoming)
		event_put(conn, EVENT_OPENED, SDR_EV_FAILED, status, "%s", text);
	conn_schedule(conn, sdr_now_ns(conn->net->ctx));
}

void conn_die(struct sdr_conn *conn, int status, const char *fmt, ...)
{
	char text[sizeof(conn->event[0].event.text)];
	va_list args;

	if (conn->state == CONN_CLOSING) {
		close_on_echo(conn); /* all was acknowledged: the peer went first */
		return;
	}
	va_start(args, fmt);
	format_text(text, sizeof(text), fmt, args);
	va_end(args);
	conn->error = status;
	conn_state_set(conn, CONN_DEAD);
	ops_end_all(conn, false, status);
	ops_end_all(conn, true, status);
	hs_detach(conn);
	(void)sdr_qp_reset(conn->qp, 0);
	event_put(conn, EVENT_ENDED, SDR_EV_DEAD, status, "%s", text);
}

static void name_peer(struct sdr_conn *conn)
{
	struct sdr_channel_facts facts = {.size = sizeof(facts)};

	if (!conn->target[0] && !sdr_channel_facts_get(conn->qp, 0, &facts))
		(void)snprintf(conn->target, sizeof(conn->target), "%s",
			       facts.peer[0] ? facts.peer : "peer");
}

static int conn_up(struct sdr_conn *conn, uint64_t now)
{
	int err;

	name_peer(conn);
	conn->channels = conn->qi.channels;
	pair_setup(conn);
	err = send_setup(conn);
	if (err)
		return err;
	err = recv_setup(conn);
	if (err) {
		rel_tx_fini(&conn->tx);
		return err;
	}
	parity_setup(conn);
	conn->rel_ready = true;
	conn->alive_floor_ns = now;
	conn_state_set(conn, CONN_UP);
	if (conn->incoming) {
		conn->incoming = false;
		conn->net->npending--;
		event_put(conn, EVENT_OPENED, SDR_EV_ACCEPTED, 0, "%s connected", conn->target);
	} else {
		event_put(conn, EVENT_OPENED, SDR_EV_CONNECTED, 0, "connected to %s", conn->target);
	}
	return 0;
}

static void connect_timeout(struct sdr_conn *conn)
{
	char wait[UNITS_TEXT];

	units_time_text(wait, conn->attr.connect_timeout_ns);
	if (conn->state == CONN_NEW) {
		conn_fail(conn, -ETIMEDOUT, "%s %s within %s: %s", conn->target,
			  hs_reached(conn) ? "took the TCP connection but said nothing"
					   : "did not answer over TCP",
			  wait,
			  hs_reached(conn) ? "is it the right port, and is its program running?"
					   : "is the host up, and does a firewall drop the port?");
		return;
	}
	conn_fail(conn, -SDR_E_NO_UDP,
		  "%s %s, %llu of %llu UDP packets came back within %s: let UDP of the same port "
		  "through the firewalls on both hosts and between them",
		  conn->by_app ? "the handshake is done with" : "TCP reached",
		  conn->target[0] ? conn->target : "the peer",
		  (unsigned long long)conn->qi.pongs_received,
		  (unsigned long long)conn->qi.pings_sent, wait);
}

static void service_connecting(struct sdr_conn *conn, uint64_t now)
{
	if (conn->qi.state == SDR_QP_ERROR) {
		conn_fail(conn, conn->qi.error, "%s refused the connection: %s", conn->target,
			  sdr_strerror(conn->qi.error));
	} else if (conn->qi.state == SDR_QP_CONNECTED) {
		int err = conn_up(conn, now);

		if (err)
			conn_fail(conn, err, "cannot set up the connection to %s: %s", conn->target,
				  sdr_strerror(err));
	} else if (conn->connect_deadline_ns <= now) {
		connect_timeout(conn);
	}
}

static void service_ctrl(struct sdr_conn *conn)
{
	struct sdr_ctrl msg;

	msg.size = sizeof(msg);
	while (sdr_ctrl_recv(conn->qp, &msg) == 1) {
		if (msg.type == CONN_CTRL_ACK && conn_is_open(conn))
			ack_on(conn, msg.body, msg.len,
			       u64_sub_floor(sdr_now_ns(conn->net->ctx), msg.age_ns));
		else if (msg.type == CONN_CTRL_CLOSE && conn->rel_ready)
			close_on_close(conn);
		else if (msg.type == CONN_CTRL_CLOSE_ECHO && conn->rel_ready)
			close_on_echo(conn);
		else if (msg.type == CONN_CTRL_WRITE && conn_is_open(conn))
			announce_on(conn, msg.body, msg.len);
	}
}

static void service_open(struct sdr_conn *conn, uint64_t now)
{
	service_ctrl(conn);
	if (!conn_is_open(conn))
		return;
	pair_service(conn, now);
	recv_service(conn, now);
	hint_service(conn, now);
	ops_deadlines(conn, now);
	send_service(conn, now);
	ack_service(conn, now);
	close_service(conn, now);
	if (conn_is_open(conn))
		alive_service(conn, now);
}

void conn_service(struct sdr_conn *conn, uint64_t now)
{
	/* A pause of this process longer than a round trip: nobody else is to blame. */
	if (now > conn->next_ns && now - conn->next_ns > CONN_STALL_MIN_NS + conn_rtt_ns(conn))
		conn->alive_floor_ns = now;
	if (conn->state == CONN_FAILED && conn->incoming) {
		conn_destroy(conn); /* nobody was told of it */
		return;
	}
	if (conn->state == CONN_FAILED || conn->state == CONN_DEAD) {
		conn_schedule(conn, now);
		return;
	}
	conn->qi.size = sizeof(conn->qi);
	(void)sdr_qp_query(conn->qp, &conn->qi);
	if (conn->state == CONN_CONNECTING ||
	    (conn->state == CONN_NEW && !conn->by_app && conn->connect_deadline_ns <= now))
		service_connecting(conn, now);
	if (conn->state == CONN_CONNECTING)
		hint_service(conn, now);
	if (conn_is_open(conn)) {
		service_open(conn, now);
	} else if (conn->state == CONN_CLOSED) {
		service_ctrl(conn); /* the peer may have missed our echo */
		close_again(conn, now);
	}
	if (conn->state == CONN_FAILED && conn->incoming)
		conn_destroy(conn);
	else
		conn_schedule(conn, now);
}

void conn_schedule(struct sdr_conn *conn, uint64_t now)
{
	const struct heap_node *node = heap_first(&conn->deadlines);
	uint64_t at = UINT64_MAX;

	if (conn->state == CONN_CONNECTING || (conn->state == CONN_NEW && !conn->by_app)) {
		at = u64_min(conn->connect_deadline_ns, hint_deadline(conn));
	} else if (conn->state == CONN_FAILED && conn->incoming) {
		at = now;
	} else if (conn_is_open(conn)) {
		at = u64_min(send_deadline(conn), ack_deadline(conn, now));
		at = u64_min(at, u64_min(hint_deadline(conn), pair_deadline(conn)));
		at = u64_min(at, u64_min(alive_deadline(conn, now), close_deadline(conn)));
		if (node)
			at = u64_min(at, node->key);
		if (conn->service_again)
			at = now;
	}
	conn->service_again = false;
	/* Never again in the same progress: packets and the others get their turn first. */
	at = u64_max(at, now + 1);
	conn->next_ns = at;
	if (at == UINT64_MAX)
		heap_remove(&conn->net->timers, &conn->timer);
	else
		(void)heap_set(&conn->net->timers, &conn->timer, at, 0);
	net_deadline_tell(conn->net);
}

/* ---- the application's calls ---- */

int sdr_conn_open(struct sdr_net *net, const struct sdr_conn_attr *attr, struct sdr_conn **out)
{
	int err;

	net_lock(net);
	err = conn_create(net, attr, false, out);
	if (!err)
		(*out)->by_app = true;
	net_unlock(net);
	return err;
}

int sdr_conn_blob_get(const struct sdr_conn *conn, void *buf, size_t cap)
{
	int len;

	net_lock(conn->net);
	len = sdr_qp_info_get(conn->qp, buf, cap);
	net_unlock(conn->net);
	return len;
}

int sdr_conn_blob_set(struct sdr_conn *conn, const void *blob, size_t len,
		      const struct sdr_connect_attr *attr)
{
	int err = -EISCONN;

	net_lock(conn->net);
	if (conn->by_app && conn->state == CONN_NEW) {
		conn->connect_deadline_ns =
			sdr_now_ns(conn->net->ctx) + conn->attr.connect_timeout_ns;
		err = conn_connect_qp(conn, blob, len, attr);
		if (!err && attr &&
		    attr->size >= offsetof(struct sdr_connect_attr, rtt_ns) + sizeof(attr->rtt_ns))
			hint_start(conn, attr->rtt_ns, sdr_now_ns(conn->net->ctx));
		conn_schedule(conn, sdr_now_ns(conn->net->ctx));
	}
	net_unlock(conn->net);
	return err;
}

int sdr_conn_connect(struct sdr_net *net, const char *host, uint16_t port,
		     const struct sdr_conn_attr *attr, struct sdr_conn **out)
{
	int err;

	if (!host || !host[0])
		return -EINVAL;
	net_lock(net);
	err = net->simulated ? -ENOTSUP : conn_create(net, attr, false, out);
	if (!err) {
		err = hs_client_start(*out, host, port ? port : SDR_DEFAULT_PORT);
		if (err)
			conn_destroy(*out);
		else
			conn_schedule(*out, sdr_now_ns(net->ctx));
	}
	net_unlock(net);
	return err;
}

int sdr_conn_listen(struct sdr_net *net, const struct sdr_conn_attr *attr)
{
	struct rel_params params;
	int err;

	net_lock(net);
	err = net->simulated ? -ENOTSUP
			     : conn_attr_fill(attr, &net->listen_attr, net->listen_scheme, &params);
	if (!err)
		err = hs_listen_start(net);
	net_unlock(net);
	return err;
}

int sdr_conn_close(struct sdr_conn *conn)
{
	struct sdr_net *net = conn->net;
	int err = 0;

	net_lock(net);
	switch (conn->state) {
	case CONN_NEW:
	case CONN_CONNECTING:
		(void)sdr_qp_reset(conn->qp, 0);
		hs_detach(conn);
		conn_state_set(conn, CONN_CLOSED);
		event_put(conn, EVENT_ENDED, SDR_EV_CLOSED, 0, "closed before it was connected");
		break;
	case CONN_UP:
		conn_state_set(conn, CONN_DRAIN);
		conn->service_again = true;
		break;
	case CONN_FAILED:
	case CONN_DEAD:
		err = -ESHUTDOWN;
		break;
	default:
		break;
	}
	conn_schedule(conn, sdr_now_ns(net->ctx));
	net_unlock(net);
	return err;
}

void sdr_conn_destroy(struct sdr_conn *conn)
{
	struct sdr_net *net;

	if (!conn)
		return;
	net = conn->net;
	net_lock(net);
	conn_destroy(conn);
	net_unlock(net);
}

void *sdr_conn_cookie(const struct sdr_conn *conn)
{
	void *cookie;

	net_lock(conn->net);
	cookie = conn->cookie;
	net_unlock(conn->net);
	return cookie;
}

void sdr_conn_cookie_set(struct sdr_conn *conn, void *cookie)
{
	net_lock(conn->net);
	conn->cookie = cookie;
	net_unlock(conn->net);
}

struct sdr_qp *sdr_conn_qp(struct sdr_conn *conn)
{
	return conn->qp;
}

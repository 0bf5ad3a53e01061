/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two queues of a net. Completions: a ring of ended operations in which each posted one has
 * a place reserved, so that an ending is never lost and never allocates. An operation lives until
 * it is taken from there: until then its owner may still cancel it. Events: nodes that live in
 * their connections.
 */
#include "conn/internal.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int queue_init(struct sdr_net *net, uint32_t cap)
{
	/* Untouched pages cost nothing. */
	net->cq = calloc(cap, sizeof(*net->cq));
	net->cq_cap = cap;
	return net->cq ? 0 : -ENOMEM;
}

bool queue_reserve(struct sdr_net *net)
{
	if (net->cq_len + net->cq_reserved >= net->cq_cap)
		return false;
	net->cq_reserved++;
	return true;
}

void queue_unreserve(struct sdr_net *net)
{
	SDR_ASSERT(net->cq_reserved);
	net->cq_reserved--;
	if (net->threaded)
		pthread_cond_broadcast(&net->cond);
}

void queue_put(struct sdr_net *net, struct sdr_op *op)
{
	uint32_t at = (uint32_t)(((uint64_t)net->cq_head + net->cq_len) % net->cq_cap);

	SDR_ASSERT(net->cq_reserved && net->cq_len < net->cq_cap);
	net->cq[at] = op;
	net->cq_reserved--;
	net->cq_len++;
	if (net->threaded)
		pthread_cond_broadcast(&net->cond);
}

int sdr_net_poll(struct sdr_net *net, struct sdr_completion *out, int max)
{
	size_t size = max > 0 ? out[0].size : 0;
	uint8_t *to = (uint8_t *)out;
	int n = 0;

	if (max <= 0)
		return 0;
	if (size == 0)
		size = sizeof(*out);
	net_lock(net);
	while (n < max && net->cq_len) {
		struct sdr_op *op = net->cq[net->cq_head];

		/* An application built against another version steps by its own size. */
		memcpy(to, &op->done, u64_min(size, sizeof(*out)));
		memcpy(to, &size, sizeof(size));
		to += size;
		net->cq_head = (net->cq_head + 1) % net->cq_cap;
		net->cq_len--;
		op_put(op);
		n++;
	}
	net_unlock(net);
	return n;
}

void queue_conn_gone(struct sdr_net *net, const struct sdr_conn *conn)
{
	struct event_node **at = &net->ev_head;

	net->ev_tail = NULL;
	while (*at) {
		if ((*at)->event.conn == conn) {
			(*at)->queued = false;
			*at = (*at)->next;
			continue;
		}
		net->ev_tail = *at;
		at = &(*at)->next;
	}
}

static void event_unqueue(struct sdr_net *net, struct event_node *node)
{
	struct event_node **at = &net->ev_head;

	net->ev_tail = NULL;
	while (*at) {
		if (*at == node) {
			*at = node->next;
			continue;
		}
		net->ev_tail = *at;
		at = &(*at)->next;
	}
	node->queued = false;
}

void event_put(struct sdr_conn *conn, enum event_slot slot, enum sdr_event_type type, int status,
	       const char *fmt, ...)
{
	struct sdr_net *net = conn->net;
	struct event_node *node = &conn->event[slot];
	va_list args;

	if (node->queued) {
		/* STALLED that nobody has seen and RECOVERED cancel out. */
		event_unqueue(net, node);
		if (slot == EVENT_PATH)
			return;
	}
	node->event.size = sizeof(node->event);
	node->event.type = type;
	node->event.conn = conn;
	node->event.conn_cookie = conn->cookie;
	node->event.status = status;
	va_start(args, fmt);
	(void)vsnprintf(node->event.text, sizeof(node->event.text), fmt, args);
	va_end(args);
	node->next = NULL;
	node->queued = true;
	if (net->ev_tail)
		net->ev_tail->next = node;
	else
		net->ev_head = node;
	net->ev_tail = node;
	if (net->threaded)
		pthread_cond_broadcast(&net->cond);
}

int sdr_net_event(struct sdr_net *net, struct sdr_event *out)
{
	size_t size = out->size ? out->size : sizeof(*out);
	struct event_node *node;
	int got = 0;

	net_lock(net);
	node = net->ev_head;
	if (node) {
		net->ev_head = node->next;
		if (!net->ev_head)
			net->ev_tail = NULL;
		node->queued = false;
		node->event.conn_cookie = node->event.conn->cookie;
		memcpy(out, &node->event, u64_min(size, sizeof(*out)));
		out->size = size;
		got = 1;
	}
	net_unlock(net);
	return got;
}

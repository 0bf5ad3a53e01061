/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host names. getaddrinfo() blocks, so names are looked up in a detached thread that
 * shares one small structure with the connection; whoever lets go last frees it. Numeric
 * addresses need no thread. Knows nothing of connections.
 */
#include "conn/internal.h"
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct resolve {
	_Atomic int refs;
	int fd;
	uint16_t port;
	struct resolve_addrs addrs; /* the thread's until fd is readable */
	char host[256];
};

static void resolve_lookup(const char *host, uint16_t port, int flags, struct resolve_addrs *out)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC,
				       .ai_socktype = SOCK_STREAM,
				       .ai_flags = flags | AI_NUMERICSERV};
	struct addrinfo *list = NULL;
	char service[8];

	(void)snprintf(service, sizeof(service), "%u", port);
	out->n = 0;
	out->error = getaddrinfo(host, service, &hints, &list);
	if (out->error)
		return;
	for (const struct addrinfo *ai = list; ai && out->n < CONN_ADDRS_MAX; ai = ai->ai_next) {
		if (ai->ai_addrlen <= sizeof(out->addr[0]))
			memcpy(&out->addr[out->n++], ai->ai_addr, ai->ai_addrlen);
	}
	freeaddrinfo(list);
}

void resolve_drop(struct resolve *r)
{
	if (!r || atomic_fetch_sub(&r->refs, 1) != 1)
		return;
	(void)close(r->fd);
	free(r);
}

static void *resolve_thread(void *arg)
{
	struct resolve *r = arg;
	uint64_t one = 1;

	resolve_lookup(r->host, r->port, 0, &r->addrs);
	if (write(r->fd, &one, sizeof(one)) < 0)
		abort(); /* an eventfd of ours that was never written takes it */
	resolve_drop(r);
	return NULL;
}

int resolve_start(const char *host, uint16_t port, struct resolve_addrs *addrs,
		  struct resolve **out)
{
	struct resolve *r;
	pthread_t thread;
	int err;

	*out = NULL;
	resolve_lookup(host, port, AI_NUMERICHOST, addrs);
	if (!addrs->error)
		return 0;
	if (strlen(host) >= sizeof(r->host))
		return -ENAMETOOLONG;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	atomic_init(&r->refs, 2);
	r->port = port;
	memcpy(r->host, host, strlen(host) + 1);
	r->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = r->fd < 0 ? errno : pthread_create(&thread, NULL, resolve_thread, r);
	if (err) {
		if (r->fd >= 0)
			(void)close(r->fd);
		free(r);
		return -err;
	}
	(void)pthread_detach(thread);
	*out = r;
	return 0;
}

int resolve_fd(const struct resolve *r)
{
	return r->fd;
}

void resolve_take(struct resolve *r, struct resolve_addrs *addrs)
{
	uint64_t count;

	/* The read orders after the thread's write. */
	if (read(r->fd, &count, sizeof(count)) == (ssize_t)sizeof(count))
		*addrs = r->addrs;
	else
		*addrs = (struct resolve_addrs){.error = EAI_AGAIN};
}

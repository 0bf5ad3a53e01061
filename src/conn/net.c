/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nets: a context with its listener, connections and queues. One heap holds the deadline
 * of each connection; connections are served when packets came or their deadline did.
 *
 * Sleeping is done on one epoll descriptor: the context's, a wake-up and the handshake's
 * TCP sockets. With a thread, everything runs under one lock, which the thread gives up
 * while it sleeps; whoever changes when it must wake up next, wakes it.
 */
#include "conn/internal.h"
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define NET_EPOLL_EVENTS 16
#define NET_GIVE_WAY 64
#define NET_TCP_LOOK_NS NS_PER_MS    /* between looks at TCP while the caller spins */
#define NET_SPIN_NS (15 * NS_PER_US) /* shorter waits are not worth a system call */

void net_lock(struct sdr_net *net)
{
	if (!net->threaded)
		return;
	atomic_fetch_add(&net->waiters, 1);
	(void)pthread_mutex_lock(&net->lock);
	atomic_fetch_sub(&net->waiters, 1);
}

static void net_wake(struct sdr_net *net)
{
	uint64_t one = 1;

	net->sleeping = false;
	if (write(net->wakefd, &one, sizeof(one)) < 0)
		return; /* EAGAIN: it is awake already */
}

void net_unlock(struct sdr_net *net)
{
	if (!net->threaded)
		return;
	if (net->sleeping && net_next_ns(net) < net->sleep_until_ns)
		net_wake(net);
	(void)pthread_mutex_unlock(&net->lock);
}

uint64_t net_next_ns(const struct sdr_net *net)
{
	const struct heap_node *node = heap_first(&net->timers);
	uint64_t at = u64_min(sdr_next_deadline_ns(net->ctx), hs_deadline(net));

	return node ? u64_min(at, node->key) : at;
}

/* Whoever moves the time of a simulated world hears of our timers from the context. */
void net_deadline_tell(struct sdr_net *net)
{
	const struct heap_node *node = heap_first(&net->timers);

	if (net->simulated)
		sdr_ctx_deadline_set(net->ctx, node ? node->key : UINT64_MAX);
}

static struct sdr_conn *timer_conn(struct heap_node *node)
{
	return (struct sdr_conn *)(void *)((char *)node - offsetof(struct sdr_conn, timer));
}

/* Takes what epoll has to say, sleeping until then if timeout_ns is not 0. */
static void net_look(struct sdr_net *net, uint64_t timeout_ns)
{
	struct epoll_event ev[NET_EPOLL_EVENTS];
	struct timespec ts = {.tv_sec = (time_t)(timeout_ns / NS_PER_S),
			      .tv_nsec = (long)(timeout_ns % NS_PER_S)};
	uint64_t drain;
	int n = epoll_pwait2(net->epfd, ev, NET_EPOLL_EVENTS, &ts, NULL);

	net_lock(net);
	net->sleeping = false;
	for (int i = 0; i < n; i++) {
		if (ev[i].data.ptr == net) {
			continue; /* the context: progress follows */
		} else if (ev[i].data.ptr == &net->wakefd) {
			while (read(net->wakefd, &drain, sizeof(drain)) > 0)
				;
		} else if (ev[i].data.ptr == &net->listen_fd) {
			hs_accept(net);
		} else {
			hs_on_ready(net, ev[i].data.ptr, ev[i].events);
		}
	}
	hs_reap(net);
	net_unlock(net);
}

int net_progress(struct sdr_net *net)
{
	int did = sdr_progress(net->ctx);
	uint64_t now = sdr_now_ns(net->ctx);
	struct heap_node *node;
	struct sdr_qp *qp;

	if (did < 0)
		return did;
	if (hs_deadline(net) <= now)
		hs_tick(net, now);
	while ((qp = sdr_next_active(net->ctx)))
		conn_service(sdr_qp_cookie(qp), now);
	while ((node = heap_first(&net->timers)) && node->key <= now) {
		struct sdr_conn *conn = timer_conn(node);

		heap_remove(&net->timers, node);
		net_deadline_tell(net);
		conn_service(conn, now);
		did++;
	}
	/* With a thread only it frees them: it may hold events that point there. */
	if (!net->threaded)
		hs_reap(net);
	return did;
}

/* A caller that spins would never see TCP otherwise. */
static void net_look_sometimes(struct sdr_net *net)
{
	uint64_t now;

	if (net->epfd < 0)
		return;
	now = sdr_now_ns(net->ctx);
	if (now - net->tcp_look_ns < NET_TCP_LOOK_NS)
		return;
	net->tcp_look_ns = now;
	net_look(net, 0);
}

int sdr_net_progress(struct sdr_net *net)
{
	int did;

	if (!net->threaded)
		net_look_sometimes(net);
	net_lock(net);
	did = net_progress(net);
	net_unlock(net);
	return did;
}

int net_sleep(struct sdr_net *net, uint64_t deadline_ns)
{
	int did = net_progress(net);
	uint64_t now, until;

	if (did)
		return did;
	now = sdr_now_ns(net->ctx);
	until = u64_min(deadline_ns, net_next_ns(net));
	if (until > now + NET_SPIN_NS) {
		net->tcp_look_ns = now;
		net_look(net, u64_min(until - now, 3600 * NS_PER_S));
	} else {
		net_look_sometimes(net);
	}
	return net_progress(net);
}

void net_cond_wait(struct sdr_net *net, uint64_t deadline_ns)
{
	uint64_t now = sdr_now_ns(net->ctx);
	uint64_t wait = u64_min(u64_sub_floor(deadline_ns, now), NS_PER_S);
	struct timespec at;

	(void)clock_gettime(CLOCK_MONOTONIC, &at);
	wait += (uint64_t)at.tv_nsec;
	at.tv_sec += (time_t)(wait / NS_PER_S);
	at.tv_nsec = (long)(wait % NS_PER_S);
	(void)pthread_cond_timedwait(&net->cond, &net->lock, &at);
}

static bool net_has_news(const struct sdr_net *net)
{
	return net->cq_len || net->ev_head;
}

int sdr_net_wait(struct sdr_net *net, uint64_t deadline_ns)
{
	int did = 0;

	if (net->threaded) {
		net_lock(net);
		while (!net_has_news(net) && sdr_now_ns(net->ctx) < deadline_ns)
			net_cond_wait(net, deadline_ns);
		did = net_has_news(net);
		net_unlock(net);
		return did;
	}
	did = sdr_net_progress(net);
	while (did >= 0 && !net_has_news(net) && !net->simulated &&
	       sdr_now_ns(net->ctx) < deadline_ns) {
		int more = net_sleep(net, deadline_ns);

		did = more < 0 ? more : did + more;
	}
	return did;
}

uint64_t sdr_net_next_deadline_ns(const struct sdr_net *net)
{
	struct sdr_net *n = (struct sdr_net *)(uintptr_t)net; /* the lock is no part of it */
	uint64_t at;

	net_lock(n);
	at = net_next_ns(net);
	net_unlock(n);
	return at;
}

int sdr_net_fd(struct sdr_net *net)
{
	return net->epfd >= 0 ? net->epfd : -ENOTSUP;
}

struct sdr_ctx *sdr_net_ctx(struct sdr_net *net)
{
	return net->ctx;
}

uint16_t sdr_net_port(const struct sdr_net *net)
{
	return net->port;
}

/* ---- the thread ---- */

/*
 * A mutex is not fair: a thread that gives it up and takes it again at once never lets a
 * sleeper have it. Whoever waits gets its turn, bounded so that packets are not forgotten.
 */
static void thread_give_way(struct sdr_net *net)
{
	for (int i = 0; i < NET_GIVE_WAY && atomic_load(&net->waiters); i++)
		(void)sched_yield();
}

static void *net_thread(void *arg)
{
	struct sdr_net *net = arg;

	net_lock(net);
	while (!net->stop) {
		int did = net_progress(net);
		uint64_t now = sdr_now_ns(net->ctx);
		uint64_t until = net_next_ns(net);
		uint64_t sleep_ns = did ? 0 : u64_min(u64_sub_floor(until, now), NS_PER_S);

		net->sleep_until_ns = until;
		net->sleeping = sleep_ns != 0;
		(void)pthread_mutex_unlock(&net->lock);
		thread_give_way(net);
		net_look(net, sleep_ns);
		thread_give_way(net);
		net_lock(net);
	}
	(void)pthread_mutex_unlock(&net->lock);
	return NULL;
}

static int thread_start(struct sdr_net *net)
{
	pthread_condattr_t attr;
	int err;

	if (net->simulated)
		return -ENOTSUP;
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&net->cond, &attr);
	(void)pthread_condattr_destroy(&attr);
	(void)pthread_mutex_init(&net->lock, NULL);
	net->threaded = true;
	err = pthread_create(&net->thread, NULL, net_thread, net);
	if (err)
		net->threaded = false;
	return -err;
}

static void thread_stop(struct sdr_net *net)
{
	net_lock(net);
	net->stop = true;
	net_wake(net);
	(void)pthread_mutex_unlock(&net->lock);
	(void)pthread_join(net->thread, NULL);
	net->threaded = false;
	(void)pthread_cond_destroy(&net->cond);
	(void)pthread_mutex_destroy(&net->lock);
}

/* ---- creating ---- */

static int net_ctx_open(struct sdr_net *net, const struct sdr_net_attr *attr)
{
	struct sdr_ctx_attr ctx_attr = {0};
	struct sdr_ctx_info info = {.size = sizeof(info)};
	int err;

	memcpy(&ctx_attr, &attr->ctx, u64_min(attr->ctx.size, sizeof(ctx_attr)));
	ctx_attr.size = sizeof(ctx_attr);
	if (ctx_attr.listen && !ctx_attr.port)
		ctx_attr.port = SDR_DEFAULT_PORT;
	net->ctx = attr->use_ctx;
	if (!net->ctx) {
		err = sdr_ctx_create(&ctx_attr, &net->ctx);
		if (err)
			return err;
		net->own_ctx = true;
	}
	err = sdr_ctx_query(net->ctx, &info);
	if (err)
		return err;
	net->port = info.udp_port;
	if (info.caps & SDR_CAP_ROCEV2) /* its UDP port is RoCEv2's; this one is the handshake's */
		net->port = ctx_attr.listen ? ctx_attr.port : 0;
	net->simulated = !!(info.caps & SDR_CAP_VIRTUAL_TIME);
	if (ctx_attr.bind_addr)
		(void)strncpy(net->bind_addr, ctx_attr.bind_addr, sizeof(net->bind_addr) - 1);
	if (net->own_ctx && ctx_attr.listen && !net->simulated)
		return hs_listen_open(net, ctx_attr.bind_addr);
	return 0;
}

static int net_epoll_open(struct sdr_net *net)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = net};
	int fd = sdr_fd(net->ctx);

	if (fd < 0)
		return net->simulated ? 0 : fd;
	net->epfd = epoll_create1(EPOLL_CLOEXEC);
	net->wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (net->epfd < 0 || net->wakefd < 0 || epoll_ctl(net->epfd, EPOLL_CTL_ADD, fd, &ev))
		return -errno;
	ev.data.ptr = &net->wakefd;
	return epoll_ctl(net->epfd, EPOLL_CTL_ADD, net->wakefd, &ev) ? -errno : 0;
}

int sdr_net_create(const struct sdr_net_attr *in, struct sdr_net **out)
{
	struct sdr_net_attr attr = {0};
	struct sdr_net *net = calloc(1, sizeof(*net));
	int err;

	if (!net)
		return -ENOMEM;
	if (in)
		memcpy(&attr, in, u64_min(in->size, sizeof(attr)));
	net->epfd = net->wakefd = net->listen_fd = -1;
	net->accept_ns = UINT64_MAX;
	heap_init(&net->timers, &sdr_alloc_system);
	err = queue_init(net,
			 attr.max_completions ? attr.max_completions : CONN_COMPLETIONS_DEFAULT);
	if (!err)
		err = net_ctx_open(net, &attr);
	if (!err)
		err = net_epoll_open(net);
	if (!err && attr.thread)
		err = thread_start(net);
	if (err) {
		sdr_net_destroy(net);
		return err;
	}
	*out = net;
	return 0;
}

void sdr_net_destroy(struct sdr_net *net)
{
	if (!net)
		return;
	if (net->threaded)
		thread_stop(net);
	while (net->conns)
		conn_destroy(net->conns);
	hs_net_fini(net);
	while (net->orphans) {
		struct op_pool *pool = net->orphans;

		net->orphans = pool->next;
		free(pool);
	}
	if (net->own_ctx)
		sdr_ctx_destroy(net->ctx);
	if (net->epfd >= 0)
		(void)close(net->epfd);
	if (net->wakefd >= 0)
		(void)close(net->wakefd);
	heap_fini(&net->timers);
	free(net->cq);
	free(net);
}

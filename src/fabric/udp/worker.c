/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receiving threads: each sleeps on its own epoll set and reads the sockets assigned to
 * it. Also how the caller knows that no worker holds a pointer to what it took away.
 */
#include "fabric/udp/udp_int.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/*
 * A worker's epoch is odd while it may hold pointers to QPs. It becomes odd by a seq_cst
 * write before the first look-up; the caller's seq_cst write that unlinks comes before
 * its look at the epoch. So either the worker does not find the QP any more, or the
 * caller sees it at work and waits for the epoch to move on.
 */
static void epoch_step(struct udp_worker *w)
{
	atomic_fetch_add(&w->epoch, 1);
}

static void wait_past(struct udp_worker *w, uint64_t epoch)
{
	for (unsigned int spins = 0; atomic_load(&w->epoch) < epoch; spins++)
		if (spins > 64)
			sched_yield();
}

void udp_quiesce_qps(struct udp_fabric *f)
{
	for (unsigned int i = 0; i < f->nworkers; i++) {
		uint64_t seen = atomic_load(&f->worker[i]->epoch);

		if (seen & 1)
			wait_past(f->worker[i], seen + 1);
	}
}

/*
 * Sockets come out of epoll_wait, where the epoch is even: a worker that looks asleep may
 * be about to wake with one. So it is woken, and has to go round.
 */
void udp_quiesce_socks(struct udp_fabric *f)
{
	for (unsigned int i = 0; i < f->nworkers; i++) {
		uint64_t seen = atomic_load(&f->worker[i]->epoch);

		eventfd_write(f->worker[i]->kickfd, 1);
		wait_past(f->worker[i], seen + (seen & 1 ? 1 : 2));
	}
}

static void *worker_main(void *arg)
{
	struct udp_worker *w = arg;
	struct epoll_event ev[UDP_EPOLL_BATCH];
	eventfd_t kicks;

	while (!atomic_load_explicit(&w->f->stop, memory_order_acquire)) {
		int n = epoll_wait(w->epfd, ev, UDP_EPOLL_BATCH, -1);

		epoch_step(w);
		for (int i = 0; i < n; i++) {
			if (ev[i].data.ptr)
				udp_rx_socket(w, ev[i].data.ptr, UDP_RX_BUDGET);
			else
				eventfd_read(w->kickfd, &kicks);
		}
		epoch_step(w);
	}
	return NULL;
}

static int worker_start(struct udp_worker *w, unsigned int index)
{
	struct epoll_event ev = {.events = EPOLLIN};
	char name[24];
	int err;

	w->epfd = epoll_create1(EPOLL_CLOEXEC);
	w->kickfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->epfd < 0 || w->kickfd < 0 || epoll_ctl(w->epfd, EPOLL_CTL_ADD, w->kickfd, &ev) < 0)
		return -errno;
	err = pthread_create(&w->thread, NULL, worker_main, w);
	if (err != 0)
		return -err;
	w->started = true;
	snprintf(name, sizeof(name), "sdr-udp-%u", index);
	pthread_setname_np(w->thread, name);
	return 0;
}

/* The threads take no signals: those are the application's. */
int udp_workers_start(struct udp_fabric *f)
{
	sigset_t all, before;
	int err = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (unsigned int i = 0; i < f->nworkers && err == 0; i++)
		err = worker_start(f->worker[i], i);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

void udp_workers_stop(struct udp_fabric *f)
{
	atomic_store_explicit(&f->stop, true, memory_order_release);
	for (unsigned int i = 0; i < f->nworkers; i++) {
		struct udp_worker *w = f->worker[i];

		if (w == NULL)
			continue;
		if (w->started) {
			eventfd_write(w->kickfd, 1);
			pthread_join(w->thread, NULL);
			w->started = false;
		}
		if (w->kickfd >= 0)
			close(w->kickfd);
		if (w->epfd >= 0)
			close(w->epfd);
	}
}

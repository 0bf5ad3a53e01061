/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the workers and the sockets have to tell, as the caller's events; and sleeping
 * until there is some. Three ways lead here:
 *
 *	rings		control datagrams, one ring a worker
 *	pend_stack	QPs whose `pend` is not 0: a lock-free stack that any worker pushes on
 *			and the caller takes as a whole
 *	todo		the caller's own list, into which the stack is emptied
 */
#include "fabric/udp/udp_int.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

/*
 * Pairs with sleepers: they write `waiting`, then look whether there is something; we
 * have written something, then look at `waiting`. All seq_cst, so one sees the other.
 */
void udp_notify(struct udp_fabric *f)
{
	if (atomic_load(&f->waiting) && atomic_exchange(&f->waiting, false))
		udp_wake(&f->base);
}

void udp_pend(struct udp_fabric *f, struct udp_qp *qp, uint32_t what)
{
	struct udp_qp *head;

	/* Still there from before: the caller looks at the table only after taking it. */
	if ((atomic_load(&qp->pend) & what) == what)
		return;
	if (atomic_fetch_or(&qp->pend, what) != 0)
		return;
	head = atomic_load_explicit(&f->pend_stack, memory_order_relaxed);
	do
		qp->pend_next = head;
	while (!atomic_compare_exchange_weak(&f->pend_stack, &head, qp));
	udp_notify(f);
}

static void todo_add(struct udp_fabric *f, struct udp_qp *qp)
{
	if (qp->in_todo)
		return;
	qp->in_todo = true;
	qp->todo_next = NULL;
	*f->todo_end = qp;
	f->todo_end = &qp->todo_next;
}

static void take_stack(struct udp_fabric *f)
{
	struct udp_qp *qp = NULL;

	if (atomic_load(&f->pend_stack))
		qp = atomic_exchange(&f->pend_stack, NULL);
	while (qp) {
		struct udp_qp *next = qp->pend_next; /* pend == 0 gives it back */

		qp->todo_pend |= atomic_exchange(&qp->pend, 0);
		todo_add(f, qp);
		qp = next;
	}
}

static bool told_of_refusal(struct udp_sock *s)
{
	uint64_t now_ns = udp_now_ns();

	if (now_ns - s->refused_ns < UDP_REFUSED_NS)
		return true;
	s->refused_ns = now_ns;
	return false;
}

/* Looks at every QP: rare, and kept rare. */
void udp_todo_sock(struct udp_fabric *f, struct udp_sock *s, bool refused, bool mtu)
{
	refused = refused && !told_of_refusal(s);
	if (!refused && !mtu)
		return;
	for (uint32_t i = 0; i < f->nindex; i++) {
		struct udp_qp *qp = atomic_load_explicit(&f->qps[i], memory_order_relaxed);

		for (uint32_t c = 0; qp && c < qp->channels; c++) {
			if (qp->chan[c].sock != s)
				continue;
			qp->todo_refused |= (uint32_t)refused << c;
			qp->todo_mtu |= (uint32_t)mtu << c;
			todo_add(f, qp);
		}
	}
}

static void take_refused(struct udp_fabric *f)
{
	if (!atomic_load(&f->refused_any) || !atomic_exchange(&f->refused_any, false))
		return;
	for (struct udp_sock *s = f->all; s; s = s->all_next)
		if (atomic_exchange(&s->refused, false))
			udp_todo_sock(f, s, true, false);
}

/* The QP's next event, if it has one more. */
static bool todo_event(struct udp_qp *qp, struct fabric_event *ev)
{
	fabric_event_init(ev, FABRIC_EV_READY, qp->cookie);
	if (qp->todo_pend & UDP_PEND_READY) {
		qp->todo_pend &= ~(uint32_t)UDP_PEND_READY;
	} else if (qp->todo_pend & UDP_PEND_LATE) {
		uint64_t late = atomic_load_explicit(&qp->late, memory_order_relaxed);

		ev->type = FABRIC_EV_LATE;
		ev->channel = (uint32_t)(late >> 32);
		ev->message = (uint32_t)late;
		qp->todo_pend &= ~(uint32_t)UDP_PEND_LATE;
	} else if (qp->todo_refused) {
		ev->type = FABRIC_EV_REFUSED;
		ev->channel = (uint32_t)__builtin_ctz(qp->todo_refused);
		qp->todo_refused &= qp->todo_refused - 1;
	} else if (qp->todo_mtu) {
		ev->type = FABRIC_EV_MTU;
		ev->channel = (uint32_t)__builtin_ctz(qp->todo_mtu);
		ev->value = qp->chan[ev->channel].sock ? qp->chan[ev->channel].sock->payload : 0;
		qp->todo_mtu &= qp->todo_mtu - 1;
	} else {
		return false;
	}
	return true;
}

static unsigned int take_todo(struct udp_fabric *f, struct fabric_event *ev, unsigned int max)
{
	unsigned int n = 0;

	while (f->todo && n < max) {
		struct udp_qp *qp = f->todo;

		while (n < max && todo_event(qp, &ev[n]))
			n++;
		if (n == max)
			break; /* maybe it has more */
		f->todo = qp->todo_next;
		if (f->todo == NULL)
			f->todo_end = &f->todo;
		qp->in_todo = false;
	}
	return n;
}

/* 1 or 0 events. */
static unsigned int ctrl_event(struct udp_fabric *f, const struct udp_ctrl *c,
			       struct fabric_event *ev)
{
	uint64_t now_ns = udp_now_ns();
	int path;

	if (c->qp == NULL)
		return 0;
	path = udp_path_of_ctrl(f, c);
	if (path < 0)
		return 0;
	fabric_event_init(ev, FABRIC_EV_CTRL, c->qp->cookie);
	ev->channel = c->channel;
	ev->path = (uint32_t)path;
	ev->psn = c->psn;
	ev->age_ns = u64_sub_floor(now_ns, c->at_ns);
	ev->len = c->len;
	memcpy(ev->data, c->data, c->len);
	return 1;
}

static unsigned int take_ring(struct udp_fabric *f, struct udp_worker *w, struct fabric_event *ev,
			      unsigned int max)
{
	uint32_t tail = atomic_load_explicit(&w->ring.tail, memory_order_relaxed);
	uint32_t head = atomic_load(&w->ring.head);
	unsigned int n = 0;

	while (tail != head && n < max) {
		n += ctrl_event(f, &w->ring.slot[tail % UDP_RING_SLOTS], &ev[n]);
		tail++;
	}
	atomic_store_explicit(&w->ring.tail, tail, memory_order_release);
	return n;
}

static unsigned int take_rings(struct udp_fabric *f, struct fabric_event *ev, unsigned int max)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < f->nrx && n < max; i++)
		n += take_ring(f, f->worker[i], ev + n, max - n);
	return n;
}

/* The caller is the rings' consumer: full slots are its own. */
void udp_forget(struct udp_fabric *f, struct udp_qp *qp)
{
	struct udp_qp **at = &f->todo;

	take_stack(f);
	while (*at && *at != qp)
		at = &(*at)->todo_next;
	if (*at) {
		*at = qp->todo_next;
		if (f->todo_end == &qp->todo_next)
			f->todo_end = at;
	}
	for (unsigned int i = 0; i < f->nrx; i++) {
		struct udp_ring *ring = &f->worker[i]->ring;
		uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

		for (; tail != atomic_load(&ring->head); tail++)
			if (ring->slot[tail % UDP_RING_SLOTS].qp == qp)
				ring->slot[tail % UDP_RING_SLOTS].qp = NULL;
	}
}

static void sock_writable(struct udp_fabric *f, struct udp_sock *s)
{
	if (!udp_tx_flush(f, s))
		return;
	udp_sock_disarm(f, s);
	f->writable = true;
}

/* Returns super-packets received. */
static unsigned int sock_event(struct udp_fabric *f, const struct epoll_event *e,
			       unsigned int budget)
{
	struct udp_sock *s = e->data.ptr;
	unsigned int got = 0;
	eventfd_t wakes;

	if (s == NULL) {
		atomic_store(&f->signalled, false);
		eventfd_read(f->wakefd, &wakes);
		return 0;
	}
	if (f->nworkers == 0 && (e->events & (EPOLLIN | EPOLLERR)))
		got = udp_rx_socket(f->worker[0], s, budget);
	if (s->armed && (e->events & (EPOLLOUT | EPOLLERR)))
		sock_writable(f, s);
	return got;
}

static void poll_sockets(struct udp_fabric *f)
{
	struct epoll_event ev[UDP_EPOLL_BATCH];
	unsigned int budget = UDP_RX_BUDGET, before;
	int n;

	do {
		before = budget;
		n = epoll_wait(f->epfd, ev, UDP_EPOLL_BATCH, 0);
		for (int i = 0; i < n; i++) {
			unsigned int got = sock_event(f, &ev[i], budget > 0 ? budget : 1);

			budget -= (unsigned int)u64_min(budget, got);
		}
		/* Sockets stay readable while the ring is crowded: then nothing is got. */
	} while (n == UDP_EPOLL_BATCH && budget > 0 && budget < before);
}

static bool something(struct udp_fabric *f)
{
	if (f->todo || f->writable || atomic_load(&f->pend_stack) || atomic_load(&f->refused_any))
		return true;
	for (unsigned int i = 0; i < f->nrx; i++) {
		struct udp_ring *ring = &f->worker[i]->ring;

		if (atomic_load(&ring->head) !=
		    atomic_load_explicit(&ring->tail, memory_order_relaxed))
			return true;
	}
	return false;
}

int udp_poll(struct fabric *base, struct fabric_event *ev, unsigned int max)
{
	struct udp_fabric *f = udp_fabric_of(base);
	unsigned int n = 0;

	/* What comes in during this call is taken by it: no wake-up is owed. */
	if (f->fd_used)
		atomic_store(&f->waiting, false);
	if (f->nworkers == 0 || f->armed > 0 || f->fd_used || atomic_load(&f->signalled))
		poll_sockets(f);
	if (f->lingering > 0)
		udp_sock_reap(f, udp_now_ns());
	take_refused(f);
	take_stack(f);
	if (f->writable && max > 0) {
		fabric_event_init(&ev[n++], FABRIC_EV_WRITABLE, NULL);
		f->writable = false;
	}
	/* Neither starves the other. */
	n += take_todo(f, ev + n, (max - n + 1) / 2);
	n += take_rings(f, ev + n, max - n);
	n += take_todo(f, ev + n, max - n);
	if (f->fd_used) {
		/* Also where the caller had no room for more: the rest must wake it. */
		atomic_store(&f->waiting, true);
		if (something(f))
			udp_wake(base);
	}
	return (int)n;
}

int udp_wait(struct fabric *base, uint64_t deadline_ns)
{
	struct udp_fabric *f = udp_fabric_of(base);
	struct pollfd pfd = {.fd = f->epfd, .events = POLLIN};
	uint64_t now_ns = udp_now_ns(), left_ns = u64_sub_floor(deadline_ns, now_ns);
	struct timespec left = {
		.tv_sec = (time_t)(u64_min(left_ns, UINT64_C(1) << 60) / UINT64_C(1000000000)),
		.tv_nsec = (long)(left_ns % UINT64_C(1000000000))};
	int n = 0;

	atomic_store(&f->waiting, true);
	if (!something(f))
		n = ppoll(&pfd, 1, &left, NULL);
	atomic_store(&f->waiting, false);
	if (n > 0)
		atomic_store(&f->signalled, true); /* so that poll() drains wakefd */
	return n < 0 && errno != EINTR ? -errno : n > 0 || something(f);
}

int udp_fd(struct fabric *base)
{
	struct udp_fabric *f = udp_fabric_of(base);

	f->fd_used = true;
	return f->epfd;
}

void udp_wake(struct fabric *base)
{
	struct udp_fabric *f = udp_fabric_of(base);

	atomic_store(&f->signalled, true);
	eventfd_write(f->wakefd, 1);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What completions and the device have to tell, as events; and sleeping until there is some.
 *
 * Sleeping. A completion queue rings once for each time it was armed, and only for what comes
 * afterwards. So: arm, then poll once more, then sleep.
 */
#include "fabric/verbs/verbs_int.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

void verbs_todo(struct verbs_fabric *f, struct verbs_qp *qp)
{
	if (qp->in_todo)
		return;
	qp->in_todo = true;
	qp->todo_next = NULL;
	*f->todo_end = qp;
	f->todo_end = &qp->todo_next;
}

void verbs_forget(struct verbs_fabric *f, struct verbs_qp *qp)
{
	struct verbs_qp **at = &f->todo;

	while (*at && *at != qp)
		at = &(*at)->todo_next;
	if (*at == NULL)
		return;
	*at = qp->todo_next;
	if (f->todo_end == &qp->todo_next)
		f->todo_end = at;
	qp->in_todo = false;
}

static void ctrl_event(struct verbs_fabric *f, struct verbs_qp *qp, struct fabric_event *ev)
{
	const struct verbs_ctrl_in *in = &qp->ctrl_in[qp->ctrl_in_tail++ % VERBS_CTRL_RX];
	const uint8_t *msg = qp->ctrl_mem + (size_t)in->buf * VERBS_CTRL_BUF_BYTES +
			     VERBS_GRH_BYTES + WIRE_ROCEV2_CTRL_PREFIX_BYTES;

	ev->type = FABRIC_EV_CTRL;
	ev->channel = in->channel;
	ev->len = in->len;
	ev->age_ns = u64_sub_floor(verbs_now_ns(), in->at_ns);
	memcpy(ev->data, msg, in->len);
	if (!qp->ud_dead && verbs_ctrl_repost(qp, in->buf) != 0)
		qp->ud_dead = f->dead_any = true;
}

/* The QP's next event, if it has one more. */
static bool todo_event(struct verbs_fabric *f, struct verbs_qp *qp, struct fabric_event *ev)
{
	fabric_event_init(ev, FABRIC_EV_READY, qp->cookie);
	if (qp->pend & VERBS_PEND_READY) {
		qp->pend &= ~(uint32_t)VERBS_PEND_READY;
	} else if (qp->pend & VERBS_PEND_LATE) {
		ev->type = FABRIC_EV_LATE;
		ev->channel = qp->late_channel;
		ev->message = qp->late_message;
		qp->pend &= ~(uint32_t)VERBS_PEND_LATE;
	} else if (qp->ctrl_in_tail != qp->ctrl_in_head) {
		ctrl_event(f, qp, ev);
	} else {
		return false;
	}
	return true;
}

static unsigned int take_todo(struct verbs_fabric *f, struct fabric_event *ev, unsigned int max)
{
	unsigned int n = 0;

	while (f->todo && n < max) {
		struct verbs_qp *qp = f->todo;

		while (n < max && todo_event(f, qp, &ev[n]))
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

/* What the device tells. */

static void queue_pair_died(struct verbs_fabric *f, struct ibv_qp *qp)
{
	struct verbs_dqp *dq = qp->qp_context;

	f->dead_any = true;
	f->counter[SDR_CTR_tx_errors]++;
	if (dq)
		dq->dead = true;
	for (uint32_t i = 0; dq == NULL && i < f->attr.max_qps; i++)
		if (f->qps[i] && f->qps[i]->ud == qp)
			f->qps[i]->ud_dead = true;
}

static void async_event(struct verbs_fabric *f, const struct ibv_async_event *ev)
{
	switch (ev->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		queue_pair_died(f, ev->element.qp);
		break;
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_PORT_ACTIVE:
		if (ev->element.port_num == (int)f->port)
			f->port_down = ev->event_type == IBV_EVENT_PORT_ERR;
		f->dead_any = true; /* those that could not come back may try again */
		break;
	case IBV_EVENT_DEVICE_FATAL:
		f->port_down = true;
		break;
	default:
		break;
	}
}

static void take_async(struct verbs_fabric *f)
{
	struct ibv_async_event ev;

	while (ibv_get_async_event(f->ctx, &ev) == 0) {
		async_event(f, &ev);
		ibv_ack_async_event(&ev);
	}
}

/* Everything that makes the descriptor readable. */
static void take_signals(struct verbs_fabric *f)
{
	struct ibv_cq *cq;
	void *context;
	eventfd_t wakes;

	atomic_store(&f->signalled, false);
	(void)eventfd_read(f->wakefd, &wakes);
	while (ibv_get_cq_event(f->comp, &cq, &context) == 0) {
		((struct verbs_cq *)context)->armed = false;
		ibv_ack_cq_events(cq, 1);
	}
	take_async(f);
}

/* One system call where there is nothing, instead of one for each. */
static bool signals(const struct verbs_fabric *f)
{
	struct pollfd pfd = {.fd = f->epfd, .events = POLLIN};

	return poll(&pfd, 1, 0) > 0;
}

static void poll_all(struct verbs_fabric *f)
{
	f->more = false;
	for (struct verbs_cq *cq = f->cqs; cq; cq = cq->next)
		f->more |= verbs_poll_cq(f, cq, VERBS_POLL_BUDGET) >= VERBS_POLL_BUDGET;
	verbs_revive(f);
}

/*
 * After this, whatever comes makes the descriptor readable, and what came has been taken; or
 * there was more than one look takes (f->more), which rings no more.
 */
static void arm_all(struct verbs_fabric *f)
{
	for (struct verbs_cq *cq = f->cqs; cq; cq = cq->next)
		if (!cq->armed)
			cq->armed = ibv_req_notify_cq(cq->cq, 0) == 0;
	poll_all(f);
}

/* Queue pairs on their way back are looked at again soon, whether anything rings or not. */
static bool something(const struct verbs_fabric *f)
{
	return f->todo || f->writable || f->dead_any || f->more;
}

int verbs_poll(struct fabric *base, struct fabric_event *ev, unsigned int max)
{
	struct verbs_fabric *f = verbs_fabric_of(base);
	unsigned int n = 0;

	if (atomic_load(&f->signalled) || (f->fd_used && signals(f)))
		take_signals(f);
	poll_all(f);
	if (!f->fd_used) {
		uint64_t now_ns = verbs_now_ns();

		if (now_ns - f->async_look_ns > VERBS_ASYNC_LOOK_NS) {
			f->async_look_ns = now_ns;
			take_async(f);
		}
	}
	if (f->writable && max > 0) {
		fabric_event_init(&ev[n++], FABRIC_EV_WRITABLE, NULL);
		f->writable = false;
	}
	n += take_todo(f, ev + n, max - n);
	if (f->fd_used) {
		arm_all(f);
		if (something(f))
			verbs_wake(base);
	}
	return (int)n;
}

int verbs_wait(struct fabric *base, uint64_t deadline_ns)
{
	struct verbs_fabric *f = verbs_fabric_of(base);
	struct pollfd pfd = {.fd = f->epfd, .events = POLLIN};
	uint64_t now_ns, left_ns;
	struct timespec left;
	int n = 0;

	arm_all(f);
	if (something(f))
		return 1;
	if (f->again_ns != 0)
		deadline_ns = u64_min(deadline_ns, f->again_ns);
	now_ns = verbs_now_ns();
	left_ns = u64_min(u64_sub_floor(deadline_ns, now_ns), UINT64_C(1) << 60);
	left = (struct timespec){.tv_sec = (time_t)(left_ns / UINT64_C(1000000000)),
				 .tv_nsec = (long)(left_ns % UINT64_C(1000000000))};
	n = ppoll(&pfd, 1, &left, NULL);
	if (n > 0)
		atomic_store(&f->signalled, true); /* so that poll() drains them */
	return n < 0 && errno != EINTR ? -errno : n > 0;
}

int verbs_fd(struct fabric *base)
{
	struct verbs_fabric *f = verbs_fabric_of(base);

	if (!f->fd_used) {
		f->fd_used = true;
		arm_all(f);
		if (something(f))
			verbs_wake(base);
	}
	return f->epfd;
}

void verbs_wake(struct fabric *base)
{
	struct verbs_fabric *f = verbs_fabric_of(base);

	atomic_store(&f->signalled, true);
	(void)eventfd_write(f->wakefd, 1);
}

static int watch(struct verbs_fabric *f, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
	    epoll_ctl(f->epfd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return -errno;
	return 0;
}

int verbs_events_init(struct verbs_fabric *f)
{
	int err;

	f->todo_end = &f->todo;
	f->epfd = epoll_create1(EPOLL_CLOEXEC);
	f->wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (f->epfd < 0 || f->wakefd < 0)
		return -errno;
	err = watch(f, f->wakefd);
	if (err == 0)
		err = watch(f, f->comp->fd);
	return err < 0 ? err : watch(f, f->ctx->async_fd);
}

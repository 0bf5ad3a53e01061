/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/udp: the device, its QPs and the table of operations. The map is in udp.h.
 */
#include "fabric/udp/udp_int.h"
#include "base/check.h"
#include "base/rng.h"
#include "base/units.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

uint64_t udp_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static uint64_t fab_now_ns(const struct fabric *f)
{
	(void)f;
	return udp_now_ns();
}

static void fab_caps(const struct fabric *base, struct fabric_caps *out)
{
	const struct udp_fabric *f = udp_fabric_of(base);

	*out = (struct fabric_caps){
		.flags = FABRIC_CAP_NO_REWRITE | (f->nworkers > 0 ? FABRIC_CAP_WORKERS : 0u),
		.max_payload_bytes = f->max_payload,
		.max_train_bytes = UDP_MAX_DATAGRAM,
		.max_channels = FABRIC_MAX_CHANNELS,
		.workers = f->nworkers,
		.udp_port = f->port,
		.mode = f->attr.rocev2 ? WIRE_ROCEV2 : WIRE_SDR,
		.max_ctrl_bytes = f->attr.rocev2 ? FABRIC_ROCEV2_CTRL_MAX : FABRIC_CTRL_MAX,
		.generations = f->attr.rocev2 ? FABRIC_MAX_GENERATIONS : 1,
	};
}

int udp_qpn_draw(const struct udp_fabric *f, uint32_t index, uint32_t *out)
{
	uint32_t high, qpn;
	int err;

	do {
		err = rng_secret(&high, sizeof(high));
		qpn = (high << f->index_bits | index) & WIRE_QPN_MASK;
	} while (err == 0 && (qpn < 2 || qpn == WIRE_QPN_MASK));
	*out = qpn;
	return err;
}

static int qp_init(struct udp_fabric *f, struct udp_qp *qp, uint32_t index,
		   const struct fabric_qp_attr *attr)
{
	uint32_t qpn;
	int err = rng_secret(&qp->token, sizeof(qp->token));

	if (err == 0)
		err = rng_secret(&qp->start_psn, sizeof(qp->start_psn));
	if (err < 0)
		return err;
	qp->base.fabric = &f->base;
	qp->cookie = attr->cookie;
	qp->channels = attr->channels;
	qp->start_psn &= WIRE_PSN_MASK;
	for (uint32_t c = 0; c < qp->channels; c++)
		qp->chan[c].psn = qp->start_psn;
	if (f->attr.rocev2)
		return udp_rocev2_qp_init(f, qp, index, attr->table);
	err = udp_qpn_draw(f, index, &qpn);
	deliver_qp_init(&qp->rx, qpn, qp->token, attr->table);
	return err;
}

static int fab_qp_create(struct fabric *base, const struct fabric_qp_attr *attr,
			 struct fabric_qp **out)
{
	struct udp_fabric *f = udp_fabric_of(base);
	struct udp_qp *qp;
	uint32_t index;
	int err;

	if (attr->channels == 0 || attr->channels > FABRIC_MAX_CHANNELS)
		return -EINVAL;
	if (f->free_count == 0)
		return -ENOSPC;
	qp = calloc(1, sizeof(*qp) + attr->channels * sizeof(qp->chan[0]));
	if (qp == NULL)
		return -ENOMEM;
	index = f->free_index[f->free_head];
	err = qp_init(f, qp, index, attr);
	if (err < 0) {
		free(qp);
		return err;
	}
	f->free_head = (f->free_head + 1) % f->nindex;
	f->free_count--;
	atomic_store(&f->qps[index], qp);
	*out = &qp->base;
	return 0;
}

/* No fence is needed: once no worker can hold the QP, none is in its table. */
static void fab_qp_destroy(struct fabric_qp *base)
{
	struct udp_qp *qp = udp_qp_of(base);
	struct udp_fabric *f = udp_fabric_of(base->fabric);
	uint32_t index = qp->rx.qpn & (f->nindex - 1);

	atomic_store(&f->qps[index], NULL);
	udp_quiesce_qps(f);
	udp_forget(f, qp);
	udp_paths_drop(f, qp);
	udp_rocev2_qp_fini(f, qp);
	f->free_index[(f->free_head + f->free_count) % f->nindex] = index;
	f->free_count++;
	free(qp);
}

static void fab_qp_local(const struct fabric_qp *base, struct fabric_local *out)
{
	const struct udp_qp *qp = udp_qp_of(base);
	const struct udp_fabric *f = udp_fabric_of(base->fabric);
	struct udp_addr here = f->bind_addr;

	*out = (struct fabric_local){
		.qpn = qp->rx.qpn, .token = qp->token, .start_psn = qp->start_psn};
	if (!f->attr.rocev2)
		return;
	memcpy(out->data_qpn, qp->rx.data_qpn, sizeof(out->data_qpn));
	here.port = f->port;
	if (!udp_addr_is_any(&here))
		(void)udp_addr_to(&here, udp_addr_is_v4(&here) ? AF_INET : AF_INET6, &out->addr);
}

static void fab_table_set(struct fabric_qp *base, struct rx_table *table)
{
	deliver_table_set(&udp_qp_of(base)->rx, table);
}

static int fab_qp_connect(struct fabric_qp *base, const struct fabric_peer *peer)
{
	struct udp_qp *qp = udp_qp_of(base);
	struct udp_fabric *f = udp_fabric_of(base->fabric);
	struct udp_addr addr;
	int err = 0;

	if (qp->connected)
		return -EISCONN;
	if (!peer->active && f->listener == NULL)
		return -EINVAL;
	qp->peer = *peer;
	protect_checksum_key(&qp->tx_key, peer->token);
	udp_addr_from(&addr, (const struct sockaddr *)&peer->addr);
	if (f->attr.rocev2)
		err = udp_rocev2_connect(f, qp);
	else if (peer->active)
		err = udp_paths_connect(f, qp, &addr, qp->channels);
	qp->connected = err == 0;
	return err;
}

static bool fab_tx_busy(struct fabric_qp *qp, uint32_t message)
{
	(void)qp;
	(void)message;
	return false; /* the kernel has the bytes */
}

static int fab_bind(struct fabric_qp *qp, uint32_t message, const struct fabric_bind *b,
		    struct fabric_key *key)
{
	struct udp_fabric *f = udp_fabric_of(qp->fabric);

	*key = f->attr.rocev2 ? deliver_key_draw(&f->rng) : (struct fabric_key){0};
	return deliver_bind(&udp_qp_of(qp)->rx, message, b, key);
}

static void fab_fence_begin(struct fabric_qp *qp, uint32_t message)
{
	deliver_fence_begin(&udp_qp_of(qp)->rx, message);
}

static int fab_fence_done(struct fabric_qp *qp, uint32_t message)
{
	return deliver_fence_done(&udp_qp_of(qp)->rx, message);
}

/* Sockets need no registration. */
static int fab_mr_reg(struct fabric *f, const struct fabric_mr_attr *attr, void **mr)
{
	(void)f;
	if (attr->dmabuf)
		return -EOPNOTSUPP; /* a socket copies, and has no address to copy from */
	*mr = attr->addr;
	return 0;
}

static void fab_mr_dereg(struct fabric *f, void *mr)
{
	(void)f;
	(void)mr;
}

/* rocev2: whose packet was lost nobody knows; the first channel has them all. */
static uint64_t listeners_drops(const struct fabric *base)
{
	const struct udp_fabric *f = udp_fabric_of(base);
	uint64_t sum = 0;

	for (const struct udp_sock *s = f->all; s; s = s->all_next)
		sum += atomic_load_explicit(&s->drops, memory_order_relaxed);
	return sum;
}

static void fab_channel_facts(const struct fabric_qp *base, uint32_t channel,
			      struct fabric_channel_facts *out)
{
	const struct udp_qp *qp = udp_qp_of(base);
	const struct udp_chan *ch;

	memset(out, 0, sizeof(*out));
	if (channel >= qp->channels)
		return;
	ch = &qp->chan[channel];
	deliver_channel_facts(&qp->rx, channel, udp_now_ns(), out);
	out->sent_pkts = ch->sent_pkts;
	out->host_drops = ch->drops_moved;
	out->up = ch->sock != NULL;
	if (udp_fabric_of(base->fabric)->attr.rocev2)
		out->host_drops = channel == 0 ? listeners_drops(base->fabric) : 0;
	else if (ch->sock)
		out->host_drops += atomic_load_explicit(&ch->sock->drops, memory_order_relaxed);
}

static void fab_counters(const struct fabric *base, uint64_t *sum)
{
	const struct udp_fabric *f = udp_fabric_of(base);

	deliver_counters_add(&f->caller, sum);
	for (unsigned int i = 0; i < f->nrx; i++)
		deliver_counters_add(&f->worker[i]->dw, sum);
}

static void fab_advice(const struct fabric *base, char *buf, size_t len)
{
	const struct udp_fabric *f = udp_fabric_of(base);
	uint32_t wish = f->attr.sockbuf_bytes, granted = wish;
	uint64_t sum[SDR_CTR_COUNT] = {0};
	char wish_text[UNITS_TEXT], granted_text[UNITS_TEXT];

	if (len == 0)
		return;
	buf[0] = '\0';
	fab_counters(base, sum);
	if (sum[SDR_CTR_rx_host_drops] == 0)
		return;
	for (const struct udp_sock *s = f->all; s; s = s->all_next)
		granted = (uint32_t)u64_min(granted, s->rcvbuf);
	units_size_text(wish_text, wish);
	units_size_text(granted_text, granted);
	if (granted < wish)
		snprintf(buf, len,
			 "%llu datagrams were lost on this host because a socket buffer was full: "
			 "%s of %s were granted; sysctl -w net.core.rmem_max=%u",
			 (unsigned long long)sum[SDR_CTR_rx_host_drops], granted_text, wish_text,
			 wish);
	else
		snprintf(
			buf, len,
			"%llu datagrams were lost on this host because a socket buffer was full: "
			"use more workers or larger buffers than %s (and for those "
			"sysctl -w net.core.rmem_max=%llu)",
			(unsigned long long)sum[SDR_CTR_rx_host_drops], granted_text,
			(unsigned long long)u64_max(2ull * wish, UDP_FABRIC_DEFAULT_SOCKBUF_BYTES));
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Takes what udp_fabric_open has got so far. */
static void fabric_free(struct udp_fabric *f)
{
	udp_workers_stop(f);
	udp_sock_close_all(f);
	for (unsigned int i = 0; i < f->nrx; i++)
		if (f->worker[i]) {
			udp_rx_fini(f->worker[i]);
			free(f->worker[i]);
		}
	for (uint32_t i = 0; f->qps && i < f->nindex; i++) {
		struct udp_qp *qp = atomic_load_explicit(&f->qps[i], memory_order_relaxed);

		if (qp)
			udp_rocev2_qp_fini(f, qp);
		free(qp);
	}
	SDR_ASSERT(f->hosts == NULL);
	close_fd(f->wakefd);
	close_fd(f->epfd);
	free(f->qps);
	free(f->free_index);
	free(f);
}

static void fab_close(struct fabric *base)
{
	fabric_free(udp_fabric_of(base));
}

static const struct fabric_ops udp_fabric_ops = {
	.name = "udp",
	.close = fab_close,
	.caps = fab_caps,
	.now_ns = fab_now_ns,
	.qp_create = fab_qp_create,
	.qp_destroy = fab_qp_destroy,
	.qp_local = fab_qp_local,
	.table_set = fab_table_set,
	.qp_connect = fab_qp_connect,
	.path_use = udp_path_use,
	.path_name = udp_path_name,
	.path_payload = udp_path_payload,
	.post = udp_post,
	.ctrl = udp_ctrl,
	.poll = udp_poll,
	.tx_busy = fab_tx_busy,
	.bind = fab_bind,
	.fence_begin = fab_fence_begin,
	.fence_done = fab_fence_done,
	.mr_reg = fab_mr_reg,
	.mr_dereg = fab_mr_dereg,
	.wait = udp_wait,
	.fd = udp_fd,
	.wake = udp_wake,
	.channel_facts = fab_channel_facts,
	.advice = fab_advice,
	.counters = fab_counters,
};

static int attr_take(struct udp_fabric *f, const struct udp_fabric_attr *attr)
{
	f->attr = *attr;
	if (attr->workers > FABRIC_MAX_WORKERS || attr->max_qps > UDP_FABRIC_LIMIT_QPS ||
	    attr->sockbuf_bytes > INT32_MAX / 2 || attr->max_payload > UDP_FABRIC_LIMIT_PAYLOAD)
		return -EINVAL;
	if (attr->sockbuf_bytes == 0)
		f->attr.sockbuf_bytes = UDP_FABRIC_DEFAULT_SOCKBUF_BYTES;
	if (attr->max_qps == 0)
		f->attr.max_qps = UDP_FABRIC_DEFAULT_MAX_QPS;
	f->max_payload = attr->max_payload ? attr->max_payload : UDP_FABRIC_DEFAULT_MAX_PAYLOAD;
	f->nworkers = attr->workers;
	f->nrx = attr->workers > 0 ? attr->workers : 1;
	f->attr.bind_addr = NULL;
	return attr->bind_addr ? udp_addr_parse(&f->bind_addr, attr->bind_addr) : 0;
}

static int tables_init(struct udp_fabric *f)
{
	while ((UINT32_C(1) << f->index_bits) < f->attr.max_qps)
		f->index_bits++;
	f->nindex = UINT32_C(1) << f->index_bits;
	f->free_count = f->attr.max_qps;
	f->qps = calloc(f->nindex, sizeof(*f->qps));
	f->free_index = calloc(f->nindex, sizeof(*f->free_index));
	if (f->qps == NULL || f->free_index == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->free_count; i++)
		f->free_index[i] = i;
	f->todo_end = &f->todo;
	deliver_worker_init(&f->caller, 0);
	return 0;
}

static int worker_structs(struct udp_fabric *f)
{
	for (unsigned int i = 0; i < f->nrx; i++) {
		size_t bytes = (sizeof(struct udp_worker) + 63) & ~(size_t)63;
		struct udp_worker *w = aligned_alloc(64, bytes);
		int err;

		if (w == NULL)
			return -ENOMEM;
		memset(w, 0, bytes);
		w->f = f;
		w->epfd = w->kickfd = -1;
		f->worker[i] = w;
		deliver_worker_init(&w->dw, i);
		err = udp_rx_init(w);
		if (err < 0)
			return err;
	}
	return 0;
}

static int descriptors(struct udp_fabric *f)
{
	struct epoll_event ev = {.events = EPOLLIN};

	f->epfd = epoll_create1(EPOLL_CLOEXEC);
	f->wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (f->epfd < 0 || f->wakefd < 0 || epoll_ctl(f->epfd, EPOLL_CTL_ADD, f->wakefd, &ev) < 0)
		return -errno;
	return 0;
}

int udp_fabric_open(const struct udp_fabric_attr *attr, struct fabric **out)
{
	struct udp_fabric *f = calloc(1, sizeof(*f));
	int err;

	if (f == NULL)
		return -ENOMEM;
	f->base.ops = &udp_fabric_ops;
	f->epfd = f->wakefd = -1;
	err = attr_take(f, attr);
	if (err == 0 && f->attr.rocev2)
		err = udp_rocev2_open(f);
	if (err == 0)
		err = tables_init(f);
	if (err == 0)
		err = worker_structs(f);
	if (err == 0)
		err = descriptors(f);
	if (err == 0)
		err = udp_workers_start(f);
	if (err == 0 && f->attr.listen)
		err = udp_sock_listen(f);
	if (err < 0) {
		fabric_free(f);
		return err;
	}
	*out = &f->base;
	return 0;
}

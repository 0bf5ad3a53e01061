/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From sockets to deliver.h: super-packets into cache-hot scratch, what the kernel says
 * about them, and control datagrams to the caller's ring. Runs on a worker, or on the
 * caller where there are none. Knows nothing of who sends what when.
 */
#include "fabric/udp/udp_int.h"
#include <errno.h>
#include <linux/errqueue.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>

#define ECN_MASK 3
#define ECN_CE 3

/* What came with a datagram or super-packet. */
struct rx_about {
	size_t segment_bytes;
	bool ce;
	uint64_t stamp_ns; /* the kernel's, of its wall clock; 0: none */
	uint64_t at_ns;	   /* when it was read */
	uint64_t age_ns;   /* since the kernel had it, then */
	struct udp_addr from, local;
	struct deliver_flow flow; /* rocev2; its host is each QP's */
};

static uint64_t timespec_ns(const struct timespec *ts)
{
	return (uint64_t)ts->tv_sec * UINT64_C(1000000000) + (uint64_t)ts->tv_nsec;
}

/* Whoever is put aside between two clocks reads them again; if thrice, the old distance holds. */
static uint64_t rx_now_get(struct udp_worker *w)
{
	uint64_t mono_ns = 0;

	for (int i = 0; i < 3; i++) {
		struct timespec ts;

		mono_ns = udp_now_ns();
		(void)clock_gettime(CLOCK_REALTIME, &ts);
		if (udp_now_ns() - mono_ns > STAMP_NOISE_NS)
			continue;
		stamp_clock_set(&w->clock, mono_ns, timespec_ns(&ts));
		return mono_ns;
	}
	if (w->clock.known)
		stamp_clock_set(&w->clock, mono_ns, mono_ns + w->clock.distance_ns);
	return mono_ns;
}

int udp_rx_init(struct udp_worker *w)
{
	(void)rx_now_get(w); /* a step before the first packet is one too */
	w->ring.slot = calloc(UDP_RING_SLOTS, sizeof(*w->ring.slot));
	if (w->ring.slot == NULL)
		return -ENOMEM;
	for (unsigned int i = 0; i < UDP_RX_BATCH; i++) {
		w->buf[i] = aligned_alloc(4096, UDP_RX_BUF_BYTES);
		if (w->buf[i] == NULL)
			return -ENOMEM;
		w->iov[i] = (struct iovec){w->buf[i], UDP_RX_BUF_BYTES};
		w->mm[i].msg_hdr = (struct msghdr){
			.msg_name = &w->name[i],
			.msg_namelen = sizeof(w->name[i]),
			.msg_iov = &w->iov[i],
			.msg_iovlen = 1,
			.msg_control = w->cmsg[i],
			.msg_controllen = UDP_RX_CMSG_BYTES,
		};
	}
	return 0;
}

void udp_rx_fini(struct udp_worker *w)
{
	for (unsigned int i = 0; i < UDP_RX_BATCH; i++)
		free(w->buf[i]);
	free(w->ring.slot);
}

static void note_drops(struct udp_worker *w, struct udp_sock *s, uint32_t drops)
{
	uint32_t had = atomic_load_explicit(&s->drops, memory_order_relaxed);

	/* A datagram carries the count of when it was queued: an older one may come later. */
	if ((int32_t)(drops - had) <= 0)
		return;
	atomic_store_explicit(&s->drops, drops, memory_order_relaxed);
	deliver_count(&w->dw, SDR_CTR_rx_host_drops, drops - had);
}

/*
 * SO_RXQ_OVFL comes only with the next datagram. When a socket has run dry, the kernel is
 * asked for what was lost after its last one.
 */
static void check_drops(struct udp_worker *w, struct udp_sock *s, uint64_t now_ns)
{
	uint32_t mem[SK_MEMINFO_VARS] = {0};
	socklen_t len = sizeof(mem);

	if (now_ns - s->drops_read_ns < UDP_DROP_CHECK_NS)
		return;
	s->drops_read_ns = now_ns;
	if (getsockopt(s->fd, SOL_SOCKET, SO_MEMINFO, mem, &len) == 0)
		note_drops(w, s, mem[SK_MEMINFO_DROPS]);
}

static void note_local(struct rx_about *about, const struct cmsghdr *c)
{
	if (c->cmsg_level == SOL_IP) {
		struct in_pktinfo info;
		struct sockaddr_in sin = {.sin_family = AF_INET};

		memcpy(&info, CMSG_DATA(c), sizeof(info));
		sin.sin_addr = info.ipi_addr;
		udp_addr_from(&about->local, (struct sockaddr *)&sin);
	} else {
		struct in6_pktinfo info;
		struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6};

		memcpy(&info, CMSG_DATA(c), sizeof(info));
		sin6.sin6_addr = info.ipi6_addr;
		sin6.sin6_scope_id = info.ipi6_ifindex;
		udp_addr_from(&about->local, (struct sockaddr *)&sin6);
	}
}

static void read_cmsg(struct udp_worker *w, struct udp_sock *s, struct msghdr *msg,
		      struct rx_about *about)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		int level = c->cmsg_level, type = c->cmsg_type, value;
		uint32_t drops;

		if (level == SOL_UDP && type == UDP_GRO) {
			memcpy(&value, CMSG_DATA(c), sizeof(value));
			about->segment_bytes = value > 0 ? (size_t)value : 0;
		} else if (level == SOL_SOCKET && type == SO_RXQ_OVFL) {
			memcpy(&drops, CMSG_DATA(c), sizeof(drops));
			note_drops(w, s, drops);
		} else if (level == SOL_SOCKET && type == SCM_TIMESTAMPNS) {
			struct timespec ts;

			memcpy(&ts, CMSG_DATA(c), sizeof(ts));
			about->stamp_ns = timespec_ns(&ts);
		} else if (level == SOL_IP && type == IP_TOS) {
			about->ce = (*CMSG_DATA(c) & ECN_MASK) == ECN_CE;
		} else if (level == SOL_IPV6 && type == IPV6_TCLASS) {
			memcpy(&value, CMSG_DATA(c), sizeof(value));
			about->ce = (value & ECN_MASK) == ECN_CE;
		} else if ((level == SOL_IP && type == IP_PKTINFO) ||
			   (level == SOL_IPV6 && type == IPV6_PKTINFO)) {
			note_local(about, c);
		}
	}
}

/* Hands a verified control datagram to the caller. */
static void push_ctrl(struct udp_worker *w, struct udp_qp *qp, const struct rx_about *about,
		      uint32_t channel, const struct deliver_ctrl *ctrl)
{
	struct udp_ring *ring = &w->ring;
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
	struct udp_ctrl *c = &ring->slot[head % UDP_RING_SLOTS];

	if (head - tail == UDP_RING_SLOTS) {
		deliver_count(&w->dw, SDR_CTR_rx_ctrl_dropped, 1);
		return;
	}
	c->qp = qp;
	c->from = about->from;
	c->local = about->local;
	c->channel = channel;
	c->psn = ctrl->psn;
	c->src_qpn = ctrl->src_qpn;
	c->len = ctrl->len;
	/*
	 * Control datagrams are timed by when they came: trains, round trips. Data by when they
	 * were read: what came after the newest that was read may still wait behind it.
	 */
	c->at_ns = about->at_ns - about->age_ns;
	memcpy(c->data, ctrl->body, ctrl->len);
	atomic_store(&ring->head, head + 1); /* pairs with udp_wait: then looks at `waiting` */
	udp_notify(w->f);
}

/* Is it for a channel that the QP has? */
static void push_known(struct udp_worker *w, struct udp_qp *qp, const struct rx_about *about,
		       uint32_t channel, const struct deliver_ctrl *ctrl)
{
	if (channel < qp->channels)
		push_ctrl(w, qp, about, channel, ctrl);
	else
		deliver_count(&w->dw, SDR_CTR_rx_malformed, 1);
}

static void rx_ctrl_rocev2(struct udp_worker *w, struct udp_qp *qp, const struct rx_about *about,
			   const struct deliver_pkt *pkt)
{
	struct deliver_ctrl ctrl;

	if (deliver_ctrl(&w->dw, &qp->rx, 0, &about->flow, pkt, &ctrl) == 0)
		push_known(w, qp, about, ctrl.channel, &ctrl);
}

static void rx_ctrl(struct udp_worker *w, struct udp_sock *s, struct udp_qp *qp,
		    const struct rx_about *about, const struct deliver_pkt *pkt)
{
	uint32_t known = udp_channel_of(s, qp, &about->from);
	struct deliver_ctrl ctrl;
	uint32_t qkey;

	if (deliver_ctrl(&w->dw, &qp->rx, known, NULL, pkt, &ctrl) < 0)
		return;
	qkey = get_be32(pkt->bytes + WIRE_BTH_BYTES); /* deliver_ctrl checked the length */
	push_known(w, qp, about, (qkey & ~UINT32_C(0xff)) == UDP_QKEY ? qkey & 0xff : UINT32_MAX,
		   &ctrl);
}

/* flow is NULL in sdr mode. */
static unsigned int rx_data(struct udp_worker *w, struct udp_qp *qp, uint32_t channel,
			    const struct deliver_flow *flow, const struct deliver_pkt *pkt,
			    unsigned int n)
{
	struct deliver_facts facts = {0};
	unsigned int used = deliver_data(&w->dw, &qp->rx, channel, flow, pkt, n, &facts);
	uint32_t what = 0;

	if (facts.committed > 0)
		what |= UDP_PEND_READY;
	if (facts.late > 0) {
		atomic_store_explicit(&qp->late, (uint64_t)channel << 32 | facts.late_message,
				      memory_order_relaxed);
		what |= UDP_PEND_LATE;
	}
	if (what)
		udp_pend(w->f, qp, what);
	return used;
}

/* W: by any of its numbers. seq_cst, see udp_quiesce_qps. */
static struct udp_qp *qp_at(struct udp_fabric *f, uint32_t qpn)
{
	return atomic_load(&f->qps[qpn & (f->nindex - 1)]);
}

/* Packets of one number from pkt[0] on; returns how many were dealt with. */
static unsigned int rx_sdr(struct udp_worker *w, struct udp_sock *s, const struct rx_about *about,
			   uint8_t opcode, uint32_t qpn, const struct deliver_pkt *pkt,
			   unsigned int n)
{
	struct udp_qp *qp = qp_at(w->f, qpn);

	if (qp == NULL || qp->rx.qpn != qpn) {
		deliver_unknown(&w->dw);
	} else if (opcode == WIRE_OP_CTRL) {
		rx_ctrl(w, s, qp, about, pkt);
	} else {
		uint32_t channel = udp_channel_of(s, qp, &about->from);

		return rx_data(w, qp, channel, NULL, pkt, n);
	}
	return 1;
}

/* The same for rocev2. A QP hears its peer's address only, and only once it is connected. */
static unsigned int rx_rocev2(struct udp_worker *w, struct rx_about *about, uint8_t opcode,
			      uint32_t qpn, const struct deliver_pkt *pkt, unsigned int n)
{
	struct udp_qp *qp = qp_at(w->f, qpn);
	struct udp_host *host = qp ? udp_rocev2_host(qp, &about->from) : NULL;
	int which = host ? deliver_data_qp(&qp->rx, qpn) : -1;

	if (host)
		about->flow.host = &host->ipid;
	if (host && opcode == WIRE_OP_CTRL && qpn == qp->rx.qpn)
		rx_ctrl_rocev2(w, qp, about, pkt);
	else if (which >= 0 && opcode == WIRE_OP_DATA)
		return rx_data(w, qp, (uint32_t)which % FABRIC_MAX_CHANNELS, &about->flow, pkt, n);
	else
		deliver_unknown(&w->dw);
	return 1;
}

static void rx_super(struct udp_worker *w, struct udp_sock *s, const uint8_t *buf, size_t len,
		     struct rx_about *about)
{
	struct deliver_pkt pkt[DELIVER_MAX_TRAIN];
	unsigned int n =
		deliver_split(buf, len, about->segment_bytes, about->ce, about->at_ns, pkt);

	for (unsigned int i = 0, used; i < n; i += used) {
		uint8_t opcode;
		uint32_t qpn;

		used = 1;
		if (deliver_peek(&w->dw, &pkt[i], &opcode, &qpn) < 0)
			continue;
		if (w->f->attr.rocev2)
			used = rx_rocev2(w, about, opcode, qpn, &pkt[i], n - i);
		else
			used = rx_sdr(w, s, about, opcode, qpn, &pkt[i], n - i);
	}
}

static void rx_message(struct udp_worker *w, struct udp_sock *s, unsigned int i, uint64_t now_ns)
{
	struct msghdr *msg = &w->mm[i].msg_hdr;
	struct rx_about about;

	memset(&about, 0, offsetof(struct rx_about, flow));
	read_cmsg(w, s, msg, &about);
	about.at_ns = now_ns;
	about.age_ns = stamp_age_ns(&w->clock, about.stamp_ns);
	udp_addr_from(&about.from, (struct sockaddr *)&w->name[i]);
	if (w->f->attr.rocev2)
		udp_rocev2_flow(&about.flow.icrc, &about.from, &about.local, w->f->port);
	rx_super(w, s, w->buf[i], w->mm[i].msg_len, &about);
	msg->msg_namelen = sizeof(w->name[i]);
	msg->msg_controllen = UDP_RX_CMSG_BYTES;
}

/*
 * The caller's own receiving stops while it has events to take: the socket's buffer is
 * larger than the ring. A batch may be control datagrams throughout.
 */
static bool ring_is_crowded(const struct udp_worker *w)
{
	uint32_t used = atomic_load_explicit(&w->ring.head, memory_order_relaxed) -
			atomic_load_explicit(&w->ring.tail, memory_order_relaxed);

	return w->f->nworkers == 0 && used > UDP_RING_SLOTS - UDP_RX_BATCH * DELIVER_MAX_TRAIN;
}

static void note_refused(struct udp_worker *w, struct udp_sock *s)
{
	atomic_store(&s->refused, true);
	atomic_store(&w->f->refused_any, true);
	udp_notify(w->f);
}

/*
 * rocev2's sending sockets: nothing is sent to them, but ICMP errors come here. What is queued
 * keeps the socket ready until it was taken.
 */
static void rx_errors(struct udp_worker *w, struct udp_sock *s)
{
	for (unsigned int i = 0; i < UDP_RX_BUDGET; i++) {
		struct msghdr msg = {.msg_control = w->cmsg[0],
				     .msg_controllen = UDP_RX_CMSG_BYTES};
		struct sock_extended_err e;

		if (recvmsg(s->fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			break;
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
			if (!(c->cmsg_level == SOL_IP && c->cmsg_type == IP_RECVERR) &&
			    !(c->cmsg_level == SOL_IPV6 && c->cmsg_type == IPV6_RECVERR))
				continue;
			memcpy(&e, CMSG_DATA(c), sizeof(e));
			if (e.ee_errno == ECONNREFUSED)
				note_refused(w, s);
		}
	}
}

unsigned int udp_rx_socket(struct udp_worker *w, struct udp_sock *s, unsigned int budget)
{
	unsigned int got = 0, errors = 0;
	uint64_t now_ns = 0;

	if (s->sends)
		rx_errors(w, s);
	while (got < budget && !ring_is_crowded(w)) {
		int n = recvmmsg(s->fd, w->mm, UDP_RX_BATCH, MSG_DONTWAIT, NULL);

		if (n < 0 && errno != EAGAIN && errno != EINTR && errors++ < 4) {
			/* An ICMP error of an earlier send; reading cleared it. */
			if (errno == ECONNREFUSED)
				note_refused(w, s);
			continue;
		}
		if (n < 0)
			break;
		now_ns = rx_now_get(w);
		for (int i = 0; i < n; i++)
			rx_message(w, s, (unsigned int)i, now_ns);
		got += (unsigned int)n;
		if (n < (int)UDP_RX_BATCH)
			break;
	}
	if (now_ns != 0)
		check_drops(w, s, now_ns);
	return got;
}

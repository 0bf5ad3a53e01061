/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending: one run is one super-packet (UDP_SEGMENT), or a few where it is longer than a
 * datagram may be, gathered from the user's memory and a scratch array of headers and
 * trailers; nothing is copied here.
 *
 *	[header 0][payload 0][trailer 0, header 1][payload 1] ... [trailer n-1]
 *
 * What the host says	what it means and what happens
 *	EAGAIN, ENOBUFS		the socket is full: not taken, wait for EPOLLOUT; what follows
 *				a part that was sent already is kept
 *	ECONNREFUSED		an ICMP error of an earlier packet: tell, send again
 *	EMSGSIZE, EINVAL, EIO	with a narrower route: clear DF, no super-packets, tell;
 *				else segmentation fails on this device: give it up here
 *	others (EPERM, ENET...)	this host dropped it: as good as lost on the wire
 *
 * Nothing is lost by falling back: the run goes out again as single packets, and what the
 * socket does not take of those is kept and sent before anything else.
 *
 * rocev2: the trailer covers the IPv4 identification, which is the place in the super-packet;
 * packets that are to go out as single ones after all are sealed again, for 0.
 */
#include "fabric/udp/udp_int.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>

#define REFUSED_TRIES 3
#define META_TRAILER 4u /* in an entry of meta: after the pad, before the next header */
#define META_HEADER 8u

/* A run that is being sent. */
struct tx_run {
	const struct fabric_write *w;
	struct udp_sock *sock;
	uint32_t pad, last_pad;
	uint32_t packet_bytes, last_packet_bytes;
	uint32_t fit;  /* packets of one super-packet */
	uint32_t next; /* packets before it are on their way, or lost */
	bool places;   /* rocev2, IPv4: trailers are right for super-packets only */
};

/* What the immediate cannot say. */
static int rocev2_check(const struct fabric_peer *peer, const struct fabric_write *w)
{
	uint64_t last = w->offset / w->payload_bytes + w->count - 1;

	if (w->payload_bytes != udp_rocev2_payload(w->payload_bytes) ||
	    w->offset % w->payload_bytes != 0)
		return -EINVAL;
	return last < wire_imm_max_packets(fabric_imm_split(peer->messages)) ? 0 : -EMSGSIZE;
}

static int run_check(const struct udp_fabric *f, const struct fabric_write *w)
{
	const struct udp_qp *qp = udp_qp_of(w->qp);

	if (w->channel >= qp->channels || w->count == 0 || w->count > FABRIC_RUN_MAX ||
	    w->payload_bytes == 0 || w->last_bytes > w->payload_bytes)
		return -EINVAL;
	if (!qp->connected || qp->chan[w->channel].sock == NULL)
		return -ENOTCONN;
	if (w->payload_bytes > f->max_payload)
		return -EMSGSIZE;
	return f->attr.rocev2 ? rocev2_check(&qp->peer, w) : 0;
}

static const uint8_t *payload_at(const struct fabric_write *w, uint32_t i)
{
	return w->addr ? (const uint8_t *)w->addr + (size_t)i * w->payload_bytes : NULL;
}

static uint32_t payload_len(const struct fabric_write *w, uint32_t i)
{
	return i + 1 == w->count ? w->last_bytes : w->payload_bytes;
}

/* The trailer of a packet whose header is there. */
static void icrc_seal(struct udp_tx *tx, const struct tx_run *r, uint32_t i, uint16_t id)
{
	uint32_t len = payload_len(r->w, i);
	const struct wire_icrc_packet p = {
		.hdr = tx->meta[i] + META_HEADER,
		.hdr_len = WIRE_DATA_HDR_BYTES,
		.payload = payload_at(r->w, i),
		.payload_len = len,
		.pad_len = wire_pad_bytes(len),
	};

	wire_icrc_seal(&r->sock->flow, id, &p, tx->meta[i + 1] + META_TRAILER);
}

static uint32_t generation_of(const struct fabric_peer *peer, uint32_t message)
{
	return message / peer->messages & (peer->generations - 1);
}

/* Which transport QP takes a run. */
static uint32_t data_qp_of(const struct udp_qp *qp, const struct fabric_write *w)
{
	return fabric_data_qp(generation_of(&qp->peer, w->message), w->channel);
}

/* Headers and trailers of all packets. */
static void run_seal_rocev2(struct udp_tx *tx, const struct udp_qp *qp, struct tx_run *r)
{
	const struct fabric_write *w = r->w;
	const struct wire_rocev2_message m = {
		.split = fabric_imm_split(qp->peer.messages),
		.slot = w->message & (qp->peer.messages - 1),
		.rkey = w->key.rkey,
		.user_imm = w->imm,
		.payload_bytes = w->payload_bytes,
	};
	uint32_t which = data_qp_of(qp, w), psn = qp->wire_psn[which];
	struct wire_data_template tmpl;

	/* run_check() and qp_connect() saw to the ranges. */
	(void)wire_data_template_rocev2(&tmpl, qp->peer.data_qpn[which], &m);
	tmpl.va_base = w->key.va;
	r->places = r->sock->gso && !r->sock->fragmenting && !r->sock->flow.v6;
	for (uint32_t i = 0; i < w->count; i++) {
		wire_data_put(tx->meta[i] + META_HEADER, &tmpl, psn + i,
			      w->offset + (uint64_t)i * w->payload_bytes, payload_len(w, i));
		icrc_seal(tx, r, i, (uint16_t)(r->places ? i % r->fit : 0));
	}
}

/* Packets [next, count) go out one by one. */
static void seal_singles(struct udp_tx *tx, struct tx_run *r)
{
	for (uint32_t i = r->next; r->places && i < r->w->count; i++)
		if (i % r->fit != 0)
			icrc_seal(tx, r, i, 0);
	r->places = false;
}

/* Headers and trailers of all packets. */
static void run_seal(struct udp_tx *tx, const struct udp_qp *qp, const struct fabric_write *w)
{
	struct wire_data_template tmpl;
	uint32_t psn = qp->chan[w->channel].psn;

	wire_data_template_sdr(&tmpl, qp->peer.qpn, w->message, w->imm);
	for (uint32_t i = 0; i < w->count; i++) {
		uint32_t len = payload_len(w, i);
		struct protect_packet p = {
			.hdr = tx->meta[i] + META_HEADER,
			.hdr_len = WIRE_DATA_HDR_BYTES,
			.payload = payload_at(w, i),
			.payload_len = len,
			.pad_len = wire_pad_bytes(len),
		};

		wire_data_put(tx->meta[i] + META_HEADER, &tmpl, psn + i,
			      w->offset + (uint64_t)i * w->payload_bytes, len);
		protect_seal(&qp->tx_key, &p, tx->meta[i + 1] + META_TRAILER);
	}
}

static struct iovec iov_of(const void *base, size_t len)
{
	return (struct iovec){.iov_base = (void *)(uintptr_t)base, .iov_len = len};
}

static void set_segment(struct udp_tx *tx, struct msghdr *msg, uint32_t segment_bytes)
{
	uint16_t segment = (uint16_t)segment_bytes;
	struct cmsghdr *c;

	msg->msg_control = tx->cmsg;
	msg->msg_controllen = CMSG_SPACE(sizeof(segment));
	c = CMSG_FIRSTHDR(msg);
	c->cmsg_level = SOL_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(segment));
	memcpy(CMSG_DATA(c), &segment, sizeof(segment));
}

/* A message to the socket's peer. */
static struct msghdr msg_to(struct udp_sock *s, struct iovec *iov)
{
	return (struct msghdr){
		.msg_iov = iov, .msg_name = s->to_len ? &s->to : NULL, .msg_namelen = s->to_len};
}

/* Packets [next, next + count). 1: sent; 0: errno says why not. */
static int send_super(struct udp_tx *tx, const struct tx_run *r, uint32_t count)
{
	const struct fabric_write *w = r->w;
	struct msghdr msg = msg_to(r->sock, tx->iov);
	uint32_t n = 0;

	tx->iov[n++] = iov_of(tx->meta[r->next] + META_HEADER, WIRE_DATA_HDR_BYTES);
	for (uint32_t i = r->next; i < r->next + count; i++) {
		uint32_t pad = i + 1 == w->count ? r->last_pad : r->pad;
		bool last = i + 1 == r->next + count;

		if (payload_len(w, i) > 0)
			tx->iov[n++] = iov_of(payload_at(w, i), payload_len(w, i));
		tx->iov[n++] = iov_of(tx->meta[i + 1] + META_TRAILER - pad,
				      pad + WIRE_TRAILER_BYTES + (last ? 0 : WIRE_DATA_HDR_BYTES));
	}
	msg.msg_iovlen = n;
	set_segment(tx, &msg, r->packet_bytes);
	return sendmsg(r->sock->fd, &msg, MSG_NOSIGNAL) >= 0;
}

/* Packets [next, count), each at its own index. */
static void fill_singles(struct udp_tx *tx, struct tx_run *r)
{
	const struct fabric_write *w = r->w;

	seal_singles(tx, r);
	for (uint32_t i = r->next; i < w->count; i++) {
		uint32_t pad = i + 1 == w->count ? r->last_pad : r->pad;
		struct iovec *iov = &tx->iov[3 * i];

		iov[0] = iov_of(tx->meta[i] + META_HEADER, WIRE_DATA_HDR_BYTES);
		iov[1] = iov_of(payload_at(w, i), payload_len(w, i));
		iov[2] = iov_of(tx->meta[i + 1] + META_TRAILER - pad, pad + WIRE_TRAILER_BYTES);
		tx->mm[i].msg_hdr = msg_to(r->sock, iov);
		tx->mm[i].msg_hdr.msg_iovlen = 3;
	}
}

/* True where the route got narrower than a packet of `payload` bytes; it is dealt with. */
static bool mtu_fallback(struct udp_fabric *f, struct udp_sock *s, uint32_t payload)
{
	udp_sock_route_mtu(f, s);
	if (s->payload >= payload || s->fragmenting)
		return false;
	udp_sock_set_fragmenting(s, true);
	deliver_count(&f->caller, SDR_CTR_mtu_fallback, 1);
	udp_todo_sock(f, s, false, true);
	return true;
}

static void gso_fallback(struct udp_fabric *f, struct udp_sock *s, int err)
{
	char peer[64];

	s->gso = false;
	deliver_count(&f->caller, SDR_CTR_gso_fallback, 1);
	if (f->gso_said || getenv("SDR_QUIET"))
		return;
	f->gso_said = true;
	udp_addr_text(&s->peer, peer, sizeof(peer));
	fprintf(stderr, "sdr: segmentation offload to %s failed (%s): sending single packets\n",
		peer, strerror(err));
}

static void refused(struct udp_fabric *f, struct udp_sock *s)
{
	udp_todo_sock(f, s, true, false);
}

static bool is_full(int err)
{
	return err == EAGAIN || err == ENOBUFS;
}

/* Copies packets [next, count) as fill_singles() described them. */
static struct udp_pending *copy_rest(const struct udp_tx *tx, const struct tx_run *r)
{
	uint32_t count = r->w->count - r->next;
	size_t bytes = (size_t)(count - 1) * r->packet_bytes + r->last_packet_bytes;
	struct udp_pending *p = malloc(sizeof(*p) + bytes);
	uint8_t *at;

	if (p == NULL)
		return NULL;
	*p = (struct udp_pending){.count = count,
				  .packet_bytes = r->packet_bytes,
				  .last_bytes = r->last_packet_bytes};
	at = p->bytes;
	for (uint32_t v = 3 * r->next; v < 3 * r->w->count; v++) {
		if (tx->iov[v].iov_len)
			memcpy(at, tx->iov[v].iov_base, tx->iov[v].iov_len);
		at += tx->iov[v].iov_len;
	}
	return p;
}

/* The socket is full: -EAGAIN, or 0 where a part is on its way, and the rest is kept. */
static int run_put_off(struct udp_fabric *f, struct tx_run *r)
{
	if (r->next == 0)
		return -EAGAIN;
	fill_singles(&f->tx, r);
	r->sock->pending = copy_rest(&f->tx, r);
	if (r->sock->pending)
		udp_sock_arm(f, r->sock);
	else
		deliver_count(&f->caller, SDR_CTR_tx_errors, r->w->count - r->next);
	return 0;
}

/* 0: all are on their way (or lost); -EAGAIN: none is. */
static int send_singles(struct udp_fabric *f, struct tx_run *r)
{
	int tries = 0;

	fill_singles(&f->tx, r);
	while (r->next < r->w->count) {
		int n = sendmmsg(r->sock->fd, f->tx.mm + r->next, r->w->count - r->next,
				 MSG_NOSIGNAL);

		if (n > 0) {
			r->next += (uint32_t)n;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno == ECONNREFUSED && tries++ < REFUSED_TRIES) {
			refused(f, r->sock);
			continue;
		}
		if (errno == EMSGSIZE && mtu_fallback(f, r->sock, r->w->payload_bytes))
			continue;
		if (is_full(errno))
			return run_put_off(f, r);
		deliver_count(&f->caller, SDR_CTR_tx_errors, 1);
		r->next++; /* lost */
	}
	return 0;
}

/* 0: on its way (or lost); -EAGAIN: not taken. */
static int send_run(struct udp_fabric *f, struct tx_run *r)
{
	struct udp_sock *s = r->sock;
	int tries = 0;

	while (s->gso && !s->fragmenting && r->w->count - r->next > 1) {
		uint32_t count = (uint32_t)u64_min(r->fit, r->w->count - r->next);
		int err;

		if (send_super(&f->tx, r, count)) {
			r->next += count;
			continue;
		}
		err = errno;
		if (err == EINTR)
			continue;
		if (is_full(err))
			return run_put_off(f, r);
		if (err == ECONNREFUSED && tries++ < REFUSED_TRIES) {
			refused(f, s);
			continue;
		}
		if (err != EIO && err != EINVAL && err != EMSGSIZE) {
			deliver_count(&f->caller, SDR_CTR_tx_errors, count);
			r->next += count; /* lost */
			continue;
		}
		if (!mtu_fallback(f, s, r->w->payload_bytes))
			gso_fallback(f, s, err);
	}
	return r->next < r->w->count ? send_singles(f, r) : 0;
}

bool udp_tx_flush(struct udp_fabric *f, struct udp_sock *s)
{
	struct udp_pending *p = s->pending;

	while (p && p->next < p->count) {
		size_t len = p->next + 1 == p->count ? p->last_bytes : p->packet_bytes;
		ssize_t n = sendto(s->fd, p->bytes + (size_t)p->next * p->packet_bytes, len,
				   MSG_NOSIGNAL, s->to_len ? (struct sockaddr *)&s->to : NULL,
				   s->to_len);

		if (n < 0 && (errno == EINTR || errno == ECONNREFUSED)) {
			if (errno == ECONNREFUSED)
				refused(f, s);
			continue;
		}
		if (n < 0 && is_full(errno))
			return false;
		if (n < 0 && errno == EMSGSIZE &&
		    mtu_fallback(f, s, p->packet_bytes - WIRE_DATA_HDR_BYTES - WIRE_TRAILER_BYTES))
			continue;
		if (n < 0)
			deliver_count(&f->caller, SDR_CTR_tx_errors, 1);
		p->next++;
	}
	free(p);
	s->pending = NULL;
	return true;
}

static int put_off(struct udp_fabric *f, struct udp_sock *s)
{
	udp_sock_arm(f, s);
	deliver_count(&f->caller, SDR_CTR_tx_again, 1);
	return -EAGAIN;
}

static int post_one(struct udp_fabric *f, struct fabric_write *w)
{
	struct udp_qp *qp = udp_qp_of(w->qp);
	int err = run_check(f, w);
	struct udp_chan *ch;
	struct tx_run r;

	if (err < 0)
		return err;
	ch = &qp->chan[w->channel];
	r = (struct tx_run){
		.w = w,
		.sock = ch->sock,
		.pad = wire_pad_bytes(w->payload_bytes),
		.last_pad = wire_pad_bytes(w->last_bytes),
		.packet_bytes = (uint32_t)wire_data_packet_bytes(w->payload_bytes),
		.last_packet_bytes = (uint32_t)wire_data_packet_bytes(w->last_bytes),
		.fit = UDP_MAX_DATAGRAM / (uint32_t)wire_data_packet_bytes(w->payload_bytes),
	};
	if (r.sock->armed)
		return put_off(f, r.sock);
	if (r.sock->fragmenting && w->payload_bytes <= r.sock->payload)
		udp_sock_set_fragmenting(r.sock, false);
	if (f->attr.rocev2)
		run_seal_rocev2(&f->tx, qp, &r);
	else
		run_seal(&f->tx, qp, w);
	if (send_run(f, &r) < 0)
		return put_off(f, r.sock);
	if (f->attr.rocev2)
		qp->wire_psn[data_qp_of(qp, w)] += w->count; /* modulo 2^24 where it is put */
	w->first_psn = ch->psn;
	ch->psn = (ch->psn + w->count) & WIRE_PSN_MASK;
	ch->sent_pkts += w->count;
	deliver_count(&f->caller, SDR_CTR_tx_pkts, w->count);
	deliver_count(&f->caller, SDR_CTR_tx_bytes,
		      (uint64_t)(w->count - 1) * w->payload_bytes + w->last_bytes);
	return 0;
}

int udp_post(struct fabric *base, struct fabric_write *w, unsigned int n)
{
	struct udp_fabric *f = udp_fabric_of(base);

	for (unsigned int i = 0; i < n; i++) {
		int err = post_one(f, &w[i]);

		if (err == -EAGAIN)
			return (int)i;
		if (err < 0)
			return i > 0 ? (int)i : err;
	}
	return (int)n;
}

/* To a candidate: from the listener, and from the address that the peer wrote to. */
static void set_destination(struct udp_tx *tx, struct msghdr *msg, int family,
			    const struct udp_path *path, struct sockaddr_storage *ss)
{
	struct cmsghdr *c;

	msg->msg_name = ss;
	msg->msg_namelen = udp_addr_to(&path->peer, family, ss);
	if (udp_addr_is_any(&path->local))
		return;
	memset(tx->cmsg, 0, sizeof(tx->cmsg));
	msg->msg_control = tx->cmsg;
	msg->msg_controllen = sizeof(tx->cmsg);
	c = CMSG_FIRSTHDR(msg);
	if (family == AF_INET) {
		struct in_pktinfo info = {0};

		memcpy(&info.ipi_spec_dst, path->local.ip + 12, 4);
		c->cmsg_level = SOL_IP;
		c->cmsg_type = IP_PKTINFO;
		c->cmsg_len = CMSG_LEN(sizeof(info));
		memcpy(CMSG_DATA(c), &info, sizeof(info));
		msg->msg_controllen = CMSG_SPACE(sizeof(info));
	} else {
		struct in6_pktinfo info = {.ipi6_ifindex = path->local.scope};

		memcpy(&info.ipi6_addr, path->local.ip, 16);
		c->cmsg_level = SOL_IPV6;
		c->cmsg_type = IPV6_PKTINFO;
		c->cmsg_len = CMSG_LEN(sizeof(info));
		memcpy(CMSG_DATA(c), &info, sizeof(info));
		msg->msg_controllen = CMSG_SPACE(sizeof(info));
	}
}

/* The same for rocev2: a prefix says the channel, the PSN is the control QP's. */
static size_t ctrl_build_rocev2(struct udp_tx *tx, const struct udp_qp *qp,
				const struct udp_sock *s, uint32_t channel, const void *data,
				size_t len)
{
	const struct wire_ctrl_header header = {
		.dest_qpn = qp->peer.qpn,
		.src_qpn = qp->rx.qpn,
		.psn = qp->ctrl_psn,
		.qkey = WIRE_ROCEV2_QKEY,
	};
	uint8_t *body = tx->ctrl + WIRE_CTRL_HDR_BYTES;
	size_t body_len = WIRE_ROCEV2_CTRL_PREFIX_BYTES + len;
	const struct wire_icrc_packet p = {
		.hdr = tx->ctrl,
		.hdr_len = WIRE_CTRL_HDR_BYTES,
		.payload = body,
		.payload_len = body_len,
		.pad_len = wire_pad_bytes(body_len),
	};

	wire_ctrl_put_header(tx->ctrl, &header, body_len);
	put_be32(body, channel << 24);
	if (len > 0)
		memcpy(body + WIRE_ROCEV2_CTRL_PREFIX_BYTES, data, len);
	memset(body + body_len, 0, p.pad_len);
	wire_icrc_seal(&s->flow, 0, &p, body + body_len + p.pad_len);
	return wire_ctrl_packet_bytes(body_len);
}

/* The whole packet, in scratch; returns its length. */
static size_t ctrl_build(struct udp_tx *tx, const struct udp_qp *qp, uint32_t channel,
			 const void *data, size_t len)
{
	struct wire_ctrl_header header = {
		.dest_qpn = qp->peer.qpn,
		.src_qpn = qp->rx.qpn,
		.psn = qp->chan[channel].psn,
		.qkey = UDP_QKEY | channel,
	};
	unsigned int pad = wire_pad_bytes(len);
	uint8_t *body = tx->ctrl + WIRE_CTRL_HDR_BYTES;
	struct protect_packet p = {
		.hdr = tx->ctrl,
		.hdr_len = WIRE_CTRL_HDR_BYTES,
		.payload = body,
		.payload_len = len,
		.pad_len = pad,
	};

	wire_ctrl_put_header(tx->ctrl, &header, len);
	if (len > 0)
		memcpy(body, data, len);
	memset(body + len, 0, pad);
	protect_seal(&qp->tx_key, &p, body + len + pad);
	return wire_ctrl_packet_bytes(len);
}

/* 0: sent, or lost; -EAGAIN. */
static int ctrl_send(struct udp_fabric *f, struct udp_sock *s, const struct msghdr *msg,
		     uint32_t payload)
{
	int tries = 0;

	while (sendmsg(s->fd, msg, MSG_NOSIGNAL) < 0) {
		if (errno == EINTR)
			continue;
		if (is_full(errno))
			return put_off(f, s);
		if (errno == ECONNREFUSED && tries++ < REFUSED_TRIES) {
			refused(f, s);
			continue;
		}
		if (errno == EMSGSIZE && mtu_fallback(f, s, payload))
			continue;
		deliver_count(&f->caller, SDR_CTR_tx_errors, 1);
		return 0;
	}
	return 0;
}

int udp_ctrl(struct fabric_qp *base, uint32_t channel, uint32_t path, const void *data, size_t len)
{
	struct udp_qp *qp = udp_qp_of(base);
	struct udp_fabric *f = udp_fabric_of(base->fabric);
	size_t most = f->attr.rocev2 ? FABRIC_ROCEV2_CTRL_MAX : FABRIC_CTRL_MAX;
	struct sockaddr_storage ss;
	struct msghdr msg;
	struct udp_chan *ch;
	struct udp_sock *s;
	struct iovec iov;
	int err, place;

	if (channel >= qp->channels || len > most)
		return -EINVAL;
	ch = &qp->chan[channel];
	place = udp_path_place(ch, path);
	s = path == 0 ? ch->sock : f->listener;
	if (!qp->connected || s == NULL || place < 0)
		return -ENOTCONN;
	if (s->armed)
		return put_off(f, s);
	iov = iov_of(f->tx.ctrl, f->attr.rocev2
					 ? ctrl_build_rocev2(&f->tx, qp, s, channel, data, len)
					 : ctrl_build(&f->tx, qp, channel, data, len));
	msg = msg_to(s, &iov);
	msg.msg_iovlen = 1;
	if (path > 0)
		set_destination(&f->tx, &msg, s->family, &ch->path[place], &ss);
	err = ctrl_send(f, s, &msg, (uint32_t)len);
	if (err < 0)
		return err;
	if (f->attr.rocev2)
		qp->ctrl_psn++;
	ch->psn = (ch->psn + 1) & WIRE_PSN_MASK;
	ch->sent_pkts++;
	deliver_count(&f->caller, SDR_CTR_tx_ctrl, 1);
	return 0;
}

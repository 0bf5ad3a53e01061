/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which peer address is which channel. The active end connects a socket for each channel
 * and is done. The passive end learns addresses from verified control datagrams:
 *
 *	channel has      a verified datagram from another address   becomes
 *	no address       any                                        path 0, at once
 *	an address       with the newest PSN                        path 1, 2, 3 ..., a candidate
 *	                 with an older PSN                          nothing: dropped
 *	a candidate      udp_path_use() of it                       path 0; the old one as it was
 *
 * The two youngest candidates are kept. Whoever asked one must not take another for it, so a
 * number is given once.
 * A candidate may be answered, but nothing else is sent there before it was proved.
 * Knows nothing of PING and PONG.
 */
#include "fabric/udp/udp_int.h"
#include <errno.h>

uint32_t udp_channel_of(const struct udp_sock *s, const struct udp_qp *qp,
			const struct udp_addr *from)
{
	uint64_t hash;

	if (s->connected && s->channel < qp->channels && udp_addr_equal(&s->peer, from))
		return s->channel;
	hash = udp_addr_hash(from);
	for (uint32_t c = 0; c < qp->channels; c++)
		for (unsigned int p = 0; p < UDP_PATHS; p++)
			if (atomic_load_explicit(&qp->chan[c].path_hash[p], memory_order_relaxed) ==
			    hash)
				return c;
	return 0;
}

static void path_set(struct udp_chan *ch, unsigned int p, const struct udp_path *path)
{
	ch->path[p] = *path;
	atomic_store_explicit(&ch->path_hash[p], udp_addr_hash(&path->peer), memory_order_relaxed);
}

static uint64_t drops_of(const struct udp_sock *s)
{
	return s ? atomic_load_explicit(&s->drops, memory_order_relaxed) : 0;
}

/* Facts only rise: what the old socket lost is kept, what the new one lost before is not. */
static void chan_set_sock(struct udp_fabric *f, struct udp_chan *ch, struct udp_sock *s)
{
	ch->drops_moved += drops_of(ch->sock) - drops_of(s);
	if (ch->sock)
		udp_sock_put(f, ch->sock);
	ch->sock = s;
}

int udp_paths_connect(struct udp_fabric *f, struct udp_qp *qp, const struct udp_addr *peer,
		      uint32_t channels)
{
	struct udp_path path = {.peer = *peer};

	if (!path.peer.set || path.peer.port == 0)
		return -EINVAL;
	for (uint32_t c = 0; c < channels; c++) {
		struct udp_sock *s;
		int err = udp_sock_get(f, &path, c, true, &s);

		if (err < 0) {
			udp_paths_drop(f, qp);
			return err;
		}
		chan_set_sock(f, &qp->chan[c], s);
		path_set(&qp->chan[c], 0, &path);
	}
	return 0;
}

void udp_paths_drop(struct udp_fabric *f, struct udp_qp *qp)
{
	for (uint32_t c = 0; c < qp->channels; c++)
		if (qp->chan[c].sock)
			chan_set_sock(f, &qp->chan[c], NULL);
}

static int path_find(const struct udp_chan *ch, const struct udp_addr *from)
{
	for (int p = 0; p < (int)UDP_PATHS; p++)
		if (ch->path[p].peer.set && udp_addr_equal(&ch->path[p].peer, from))
			return p;
	return -1;
}

static int path_adopt(struct udp_fabric *f, struct udp_chan *ch, uint32_t channel,
		      const struct udp_path *path)
{
	struct udp_sock *s;
	int err = udp_sock_get(f, path, channel, false, &s);

	if (err < 0)
		return err;
	chan_set_sock(f, ch, s);
	path_set(ch, 0, path);
	return 0;
}

#define CANDIDATES (UDP_PATHS - 1)

int udp_path_place(const struct udp_chan *ch, uint32_t path)
{
	if (path && (path > ch->candidates || ch->candidates - path >= CANDIDATES))
		return -1;
	return path ? (int)(1 + (path - 1) % CANDIDATES) : 0;
}

/* The other way round. */
static int path_of(const struct udp_chan *ch, int place)
{
	return place ? (int)(ch->candidates - (ch->candidates - (uint32_t)place) % CANDIDATES) : 0;
}

static int path_candidate(struct udp_chan *ch, const struct udp_path *path)
{
	if (ch->candidates == INT32_MAX)
		return -ENOSPC; /* numbers */
	ch->candidates++;
	path_set(ch, (unsigned int)udp_path_place(ch, ch->candidates), path);
	return (int)ch->candidates;
}

int udp_path_of_ctrl(struct udp_fabric *f, const struct udp_ctrl *c)
{
	struct udp_qp *qp = c->qp;
	struct udp_chan *ch = &qp->chan[c->channel];
	struct udp_path path = {.peer = c->from, .local = c->local};
	bool newest = !ch->ctrl_seen || seq24_before(ch->newest_psn, c->psn);
	int found;

	if (qp->connected && c->src_qpn != qp->peer.qpn) {
		deliver_count(&f->caller, SDR_CTR_rx_malformed, 1);
		return -EBADMSG;
	}
	if (f->attr.rocev2)
		return 0; /* only the peer's address is heard */
	found = qp->connected && qp->peer.active ? 0 : path_find(ch, &c->from);
	if (found < 0 && ch->sock && !newest) {
		deliver_count(&f->caller, SDR_CTR_ctrl_replayed, 1);
		return -EALREADY;
	}
	if (newest) {
		ch->newest_psn = c->psn;
		ch->ctrl_seen = true;
	}
	if (found >= 0)
		return path_of(ch, found);
	return ch->sock ? path_candidate(ch, &path) : path_adopt(f, ch, c->channel, &path);
}

int udp_path_use(struct fabric_qp *base, uint32_t channel, uint32_t path)
{
	struct udp_qp *qp = udp_qp_of(base);
	struct udp_fabric *f = udp_fabric_of(base->fabric);
	struct udp_path was, is;
	struct udp_chan *ch;
	int err, place;

	if (channel >= qp->channels)
		return -EINVAL;
	ch = &qp->chan[channel];
	place = udp_path_place(ch, path);
	if (place < 0 || !ch->path[place].peer.set)
		return -ENOENT;
	if (place == 0)
		return 0;
	was = ch->path[0];
	is = ch->path[place];
	err = path_adopt(f, ch, channel, &is);
	if (err < 0)
		return err;
	path_set(ch, (unsigned int)place, &was);
	deliver_count(&f->caller, SDR_CTR_path_changes, 1);
	return 0;
}

void udp_path_name(const struct fabric_qp *base, uint32_t channel, char *buf, size_t len)
{
	const struct udp_qp *qp = udp_qp_of(base);

	if (len == 0)
		return;
	if (channel >= qp->channels || !qp->chan[channel].path[0].peer.set)
		buf[0] = '\0';
	else
		udp_addr_text(&qp->chan[channel].path[0].peer, buf, len);
}

uint32_t udp_path_payload(const struct fabric_qp *base)
{
	const struct udp_qp *qp = udp_qp_of(base);
	struct udp_fabric *f = udp_fabric_of(base->fabric);
	uint32_t payload = f->max_payload;

	for (uint32_t c = 0; c < qp->channels; c++) {
		struct udp_sock *s = qp->chan[c].sock;

		if (s == NULL)
			continue;
		udp_sock_route_mtu(f, s);
		payload = (uint32_t)u64_min(payload, s->payload);
	}
	return payload;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses: of fabrics, of the sockets that channels send from, of the peer as far as it is
 * known, and what a NAT makes of them. As over UDP (fabric/udp/paths.c) the passive end learns
 * from verified control datagrams:
 *
 *	channel has      a datagram from another address	becomes
 *	no address       any					path 0, at once
 *	an address       with the newest PSN			path 1, 2, 3 ..., a candidate
 *	                 with an older PSN			nothing: dropped
 *	a candidate      sim_path_use() of it			path 0; the old one as it was
 *
 * The two youngest candidates are kept. Whoever asked one must not take another for it, so a
 * number is given once.
 * Knows nothing of PING and PONG.
 */
#include "fabric/sim/sim_int.h"

#include "base/bits.h"
#include <errno.h>
#include <string.h>

/*
 * struct sockaddr_in by its bytes (this layer includes no header of the network): family
 * in host order, port and address in network order. The test compares.
 */
#define ADDR_FAMILY_INET 2
#define ADDR_PORT_AT 2
#define ADDR_IP_AT 4
#define ADDR_NET (UINT32_C(10) << 24)

#define SOCKET_FIRST 49152u /* the range of ephemeral ports (RFC 6335), in groups: */
#define SOCKET_GROUPS (16384u / FABRIC_MAX_CHANNELS)

uint32_t sim_addr_ip(uint32_t host)
{
	return ADDR_NET + host + 1;
}

void sim_fabric_addr(const struct fabric *fabric, struct sockaddr_storage *out)
{
	const struct sim_fabric *f = sim_fabric_of(fabric);
	uint8_t *bytes = (uint8_t *)out;

	memset(out, 0, sizeof(*out));
	out->ss_family = ADDR_FAMILY_INET;
	put_be16(bytes + ADDR_PORT_AT, f->port);
	put_be32(bytes + ADDR_IP_AT, sim_addr_ip(f->host));
}

int sim_addr_find(const struct sim *sim, const struct sockaddr_storage *addr, struct sim_addr *out)
{
	const uint8_t *bytes = (const uint8_t *)addr;
	uint16_t port = get_be16(bytes + ADDR_PORT_AT);
	uint32_t number = get_be32(bytes + ADDR_IP_AT) - ADDR_NET - 1;

	if (addr->ss_family != ADDR_FAMILY_INET || number >= SIM_MAX_HOSTS)
		return -EINVAL;
	*out = (struct sim_addr){
		.host = number, .fabric = SIM_NONE, .port = port, .socket = port, .set = true};
	for (uint32_t i = 0; i < sim->nfabrics; i++)
		if (sim->fabric[i] && sim->fabric[i]->host == number &&
		    sim->fabric[i]->port == port)
			out->fabric = i;
	return 0;
}

/*
 * The active end's own port of a channel: a number of the fabric and the peer, so that QPs to
 * one peer share it and a run replays, and channels follow each other.
 */
static uint16_t socket_of(const struct sim_fabric *f, const struct sim_addr *peer, uint32_t channel)
{
	uint64_t key = (uint64_t)peer->host << 32 | (uint32_t)f->port << 16 | peer->port;
	uint64_t group = (key * UINT64_C(0x9e3779b97f4a7c15) >> 32) % SOCKET_GROUPS;

	return (uint16_t)(SOCKET_FIRST + group * FABRIC_MAX_CHANNELS + channel);
}

void sim_addr_set(struct sim_qp *qp, uint32_t channel, const struct sim_addr *addr)
{
	const struct sim_fabric *f = sim_fabric_of(qp->base.fabric), *peer = NULL;
	struct sim_channel *ch = &qp->chan[channel];

	ch->addr[0] = *addr;
	ch->link = NULL;
	ch->port = qp->rdma || (qp->connected && qp->peer.active) ? socket_of(f, addr, channel)
								  : f->port;
	if (addr->fabric != SIM_NONE)
		peer = f->sim->fabric[addr->fabric];
	qp->path_payload = f->attr.max_payload;
	if (peer && peer->attr.max_payload < qp->path_payload)
		qp->path_payload = peer->attr.max_payload;
	if (qp->rdma)
		qp->path_payload = qp->peer.payload_bytes; /* its transport QPs' */
}

void sim_addr_head(struct sim_qp *qp, uint32_t channel, const struct sim_addr *to,
		   struct sim_head *head)
{
	const struct sim_fabric *f = sim_fabric_of(qp->base.fabric);
	struct link_nat *nat = f->sim->host[f->host].nat;
	uint16_t port = to == &qp->chan[channel].addr[0] ? qp->chan[channel].port : f->port;

	*head = (struct sim_head){
		.from_host = f->host,
		.to_host = to->host,
		.from_fabric = f->index,
		.to_fabric = to->fabric,
		.from_qpn = qp->rx.qpn,
		.channel = channel,
		.src_port = nat ? link_nat_out(nat, f->sim->now_ns, SIM_PROTO_UDP, port) : port,
		.dst_port = to->port,
		.from_port = port,
		.to_port = to->socket,
	};
}

bool sim_addr_pass(struct sim *sim, const struct sim_packet *p)
{
	struct link_nat *nat = sim->host[p->head.to_host].nat;

	return link_nat_in(nat, p->deliver_ns, SIM_PROTO_UDP, p->head.dst_port) == p->head.to_port;
}

static bool addr_is(const struct sim_addr *addr, const struct sim_head *from)
{
	return addr->set && addr->host == from->from_host && addr->port == from->src_port;
}

uint32_t sim_addr_channel(const struct sim_fabric *f, const struct sim_qp *qp,
			  const struct sim_head *head)
{
	uint32_t channel = head->channel;

	if (head->from_host == SIM_NONE)
		return channel;
	if (channel < qp->channels && addr_is(&qp->chan[channel].addr[0], head))
		return channel;
	if (head->to_port != f->port)
		return SIM_NONE; /* a connected socket hears its peer alone */
	for (uint32_t c = 0; c < qp->channels; c++)
		for (unsigned int i = 0; i < SIM_ADDRS; i++)
			if (addr_is(&qp->chan[c].addr[i], head))
				return c;
	return 0;
}

static int addr_find(const struct sim_channel *ch, const struct sim_head *from)
{
	for (int i = 0; i < (int)SIM_ADDRS; i++)
		if (addr_is(&ch->addr[i], from))
			return i;
	return -1;
}

#define CANDIDATES (SIM_ADDRS - 1)

int sim_addr_place(const struct sim_channel *ch, uint32_t path)
{
	if (path && (path > ch->candidates || ch->candidates - path >= CANDIDATES))
		return -1;
	return path ? (int)(1 + (path - 1) % CANDIDATES) : 0;
}

/* The other way round. */
static int addr_path(const struct sim_channel *ch, int place)
{
	return place ? (int)(ch->candidates - (ch->candidates - (uint32_t)place) % CANDIDATES) : 0;
}

/* An address that was not known: the current one, or a candidate. */
static int addr_learn(struct sim_qp *qp, const struct sim_head *from)
{
	struct sim_channel *ch = &qp->chan[from->channel];
	const struct sim_addr addr = {
		.host = from->from_host,
		.fabric = from->from_fabric,
		.port = from->src_port,
		.socket = from->from_port,
		.set = true,
	};

	if (!ch->addr[0].set) {
		sim_addr_set(qp, from->channel, &addr);
		return 0;
	}
	if (ch->candidates == INT32_MAX)
		return -ENOSPC; /* numbers */
	ch->candidates++;
	ch->addr[sim_addr_place(ch, ch->candidates)] = addr;
	return (int)ch->candidates;
}

int sim_addr_of_ctrl(struct sim_fabric *f, struct sim_qp *qp, const struct sim_packet *p)
{
	struct sim_channel *ch;
	bool newest;
	int found;

	if (p->head.from_host == SIM_NONE && !qp->rdma)
		return 0;
	if (p->head.channel >= qp->channels ||
	    (qp->connected && p->head.from_qpn != qp->peer.qpn)) {
		deliver_count(&f->worker, SDR_CTR_rx_malformed, 1);
		return -EBADMSG;
	}
	if (qp->rdma)
		return 0;
	ch = &qp->chan[p->head.channel];
	newest = !ch->ctrl_seen || seq24_before(ch->newest_psn, p->psn);
	found = qp->connected && qp->peer.active ? 0 : addr_find(ch, &p->head);
	if (found < 0 && ch->addr[0].set && !newest) {
		deliver_count(&f->worker, SDR_CTR_ctrl_replayed, 1);
		return -EALREADY;
	}
	if (newest) {
		ch->newest_psn = p->psn;
		ch->ctrl_seen = true;
	}
	return found >= 0 ? addr_path(ch, found) : addr_learn(qp, &p->head);
}

int sim_path_use(struct fabric_qp *fqp, uint32_t channel, uint32_t path)
{
	struct sim_qp *qp = sim_qp_of(fqp);
	struct sim_addr was;
	int place;

	if (channel >= qp->channels)
		return -EINVAL;
	place = sim_addr_place(&qp->chan[channel], path);
	if (place < 0)
		return -ENOENT;
	if (place == 0)
		return 0;
	was = qp->chan[channel].addr[0];
	sim_addr_set(qp, channel, &qp->chan[channel].addr[place]);
	qp->chan[channel].addr[place] = was;
	deliver_count(&sim_fabric_of(fqp->fabric)->worker, SDR_CTR_path_changes, 1);
	return 0;
}

/* Appends a number and a character. */
static char *put_number(char *at, uint32_t number, char then)
{
	char digits[10];
	int n = 0;

	do {
		digits[n++] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	while (n)
		*at++ = digits[--n];
	*at++ = then;
	return at;
}

void sim_path_name(const struct fabric_qp *fqp, uint32_t channel, char *buf, size_t len)
{
	const struct sim_qp *qp = sim_qp_of(fqp);
	const struct sim_addr *addr;
	char name[32], *at = name;
	uint32_t ip;

	if (!len)
		return;
	buf[0] = '\0';
	if (channel >= qp->channels || !qp->chan[channel].addr[0].set)
		return;
	addr = &qp->chan[channel].addr[0];
	ip = sim_addr_ip(addr->host);
	for (int shift = 24; shift >= 0; shift -= 8)
		at = put_number(at, ip >> shift & 255, shift ? '.' : ':');
	at = put_number(at, addr->port, '\0');
	if ((size_t)(at - name) <= len)
		memcpy(buf, name, (size_t)(at - name));
}

/* NAT. */

int sim_nat_set(struct sim *sim, int host, uint64_t timeout_ns, uint64_t every_ns)
{
	struct link_nat *nat;

	if (!sim_is_host(sim, host))
		return -EINVAL;
	nat = sim->host[host].nat;
	if (!nat)
		nat = alloc_zeroed(sim->alloc, sizeof(*nat));
	if (!nat)
		return -ENOMEM;
	link_nat_init(nat, sim->seed ^ (uint64_t)host * UINT64_C(0x9e3779b97f4a7c15), timeout_ns,
		      every_ns, sim->now_ns);
	sim->host[host].nat = nat;
	return 0;
}

int sim_nat_rebind(struct sim *sim, int host)
{
	if (!sim_is_host(sim, host) || !sim->host[host].nat)
		return -ENOENT;
	link_nat_rebind(sim->host[host].nat);
	return 0;
}

const struct link_nat *sim_nat(const struct sim *sim, int host)
{
	return sim_is_host(sim, host) ? sim->host[host].nat : NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which link a packet takes: its channel's own, else one of its pair's paths by the hash over
 * its 5-tuple, else the one that all share. Path i of a pair is a sim_link whose key has
 * SIM_PATH_KEY + i in the place of a channel.
 */
#include "fabric/sim/sim_int.h"

#include "base/bits.h"
#include <errno.h>

static void put_ip(uint8_t ip[16], uint32_t host)
{
	put_be32(ip + 8, 0xffff); /* ::ffff:a.b.c.d */
	put_be32(ip + 12, sim_addr_ip(host));
}

/* The path's number; n paths. Each direction of each pair has routers of its own. */
static uint32_t path_of(const struct sim *sim, const struct sim_head *head, uint8_t proto,
			uint32_t n)
{
	struct link_flow flow = {.proto = proto};
	uint64_t seed = sim->seed ^ ((uint64_t)head->from_host << 32 | head->to_host);

	put_ip(flow.src, head->from_host);
	put_ip(flow.dst, head->to_host);
	if (proto == SIM_PROTO_UDP) {
		flow.sport = head->src_port;
		flow.dport = head->dst_port;
	}
	return link_path_of(&flow, n, seed);
}

static uint32_t count_of(const struct sim *sim, uint32_t from, uint32_t to)
{
	const struct sim_link *first = sim_link_find(sim, from, to, SIM_PATH_KEY);

	return first ? first->n_paths : 0;
}

struct sim_link *sim_link_use(struct sim *sim, const struct sim_head *head, uint8_t proto)
{
	struct sim_link *l = sim_link_find(sim, head->from_host, head->to_host, head->channel);
	uint32_t n;

	if (l)
		return l;
	n = count_of(sim, head->from_host, head->to_host);
	return sim_link_get(sim, head->from_host, head->to_host,
			    n ? SIM_PATH_KEY + path_of(sim, head, proto, n) : SIM_CHANNEL_ALL);
}

int sim_paths_set(struct sim *sim, int from, int to, uint32_t n, const struct link_attr *attrs)
{
	struct sim_link *l[LINK_MAX_PATHS];
	int err = 0;

	if (!sim_is_host(sim, from) || !sim_is_host(sim, to) || n > LINK_MAX_PATHS)
		return -EINVAL;
	for (uint32_t i = 0; i < n && !err; i++)
		err = link_attr_check(&attrs[i]);
	if (err)
		return err;
	for (uint32_t i = 0; i < u64_max(n, 1); i++) {
		l[i] = sim_link_get(sim, (uint32_t)from, (uint32_t)to, SIM_PATH_KEY + i);
		if (!l[i])
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < n && !err; i++)
		err = sim_link_change(sim, l[i], &attrs[i]);
	if (err)
		return err;
	l[0]->n_paths = n;
	sim->link_epoch++;
	return 0;
}

static const struct sim_link *path_find(const struct sim *sim, int from, int to, uint32_t path)
{
	if (!sim_is_host(sim, from) || !sim_is_host(sim, to) || path >= LINK_MAX_PATHS)
		return NULL;
	return sim_link_find(sim, (uint32_t)from, (uint32_t)to, SIM_PATH_KEY + path);
}

int sim_path_counters(const struct sim *sim, int from, int to, uint32_t path,
		      struct link_counters *out)
{
	const struct sim_link *l = path_find(sim, from, to, path);

	if (!l)
		return -ENOENT;
	*out = l->link.counters;
	return 0;
}

uint64_t sim_path_queued_bytes(const struct sim *sim, int from, int to, uint32_t path)
{
	const struct sim_link *l = path_find(sim, from, to, path);

	return l ? link_queued_bytes(&l->link, sim->now_ns) : 0;
}

int sim_path_of(const struct fabric_qp *fqp, uint32_t channel)
{
	const struct sim_qp *qp = sim_qp_of(fqp);
	const struct sim_fabric *f = sim_fabric_of(fqp->fabric);
	const struct sim_channel *ch = channel < qp->channels ? &qp->chan[channel] : NULL;
	struct sim_head head = {.from_host = f->host, .channel = channel};
	uint32_t n;

	if (!ch || !ch->addr[0].set)
		return -ENOENT;
	head.to_host = ch->addr[0].host;
	head.dst_port = ch->addr[0].port;
	head.src_port = f->sim->host[f->host].nat ? ch->link_port : ch->port;
	n = count_of(f->sim, head.from_host, head.to_host);
	if (!n || !head.src_port || sim_link_find(f->sim, head.from_host, head.to_host, channel))
		return -ENOENT;
	return (int)path_of(f->sim, &head, SIM_PROTO_UDP, n);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The world's links: found by hosts and channel, made on first use, changed while packets are
 * under way. What a link does to a packet is link/'s; when it arrives, sim.c's.
 */
#include "fabric/sim/sim_int.h"

#include <errno.h>
#include <string.h>

static uint64_t link_hash(uint32_t from, uint32_t to, uint32_t channel)
{
	uint64_t key = (uint64_t)from << 48 ^ (uint64_t)to << 32 ^ channel;

	return (key + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static struct sim_link **link_bucket(const struct sim *sim, uint64_t hash)
{
	return (struct sim_link **)(uintptr_t)&sim->link[(hash >> 32) % SIM_LINK_BUCKETS];
}

struct sim_link *sim_link_find(const struct sim *sim, uint32_t from, uint32_t to, uint32_t channel)
{
	struct sim_link *l = *link_bucket(sim, link_hash(from, to, channel));

	while (l && !(l->from == from && l->to == to && l->channel == channel))
		l = l->bucket_next;
	return l;
}

static struct sim_link *link_make(struct sim *sim, uint32_t from, uint32_t to, uint32_t channel)
{
	uint64_t hash = link_hash(from, to, channel);
	struct sim_link **bucket = link_bucket(sim, hash);
	struct sim_link *l = alloc_zeroed(sim->alloc, sizeof(*l));

	if (!l)
		return NULL;
	l->from = from;
	l->to = to;
	l->channel = channel;
	l->event.kind = SIM_EVENT_LINK;
	heap_node_init(&l->event.node);
	sim_fifo_init(&l->fifo);
	/* The seed depends on which link it is, not on when it was made. */
	(void)link_init(&l->link, &(struct link_attr){0}, sim->seed ^ hash);
	l->bucket_next = *bucket;
	*bucket = l;
	sim->link_epoch++;
	return l;
}

struct sim_link *sim_link_get(struct sim *sim, uint32_t from, uint32_t to, uint32_t channel)
{
	struct sim_link *l = sim_link_find(sim, from, to, channel);

	return l ? l : link_make(sim, from, to, channel);
}

/* A copy, or NULL with *err set; n = 0: NULL and no error. */
static void *copy_of(const struct sdr_alloc *alloc, const void *array, size_t n, size_t size,
		     int *err)
{
	void *copy;

	if (!n)
		return NULL;
	copy = alloc_zeroed(alloc, n * size);
	if (copy)
		memcpy(copy, array, n * size);
	else
		*err = -ENOMEM;
	return copy;
}

int sim_link_change(struct sim *sim, struct sim_link *l, const struct link_attr *attr)
{
	struct link_attr own = *attr;
	int err = 0;
	uint64_t *drop = copy_of(sim->alloc, attr->drop, attr->n_drop, sizeof(*drop), &err);
	struct link_blackout *dark =
		copy_of(sim->alloc, attr->blackout, attr->n_blackout, sizeof(*dark), &err);

	own.drop = drop;
	own.blackout = dark;
	if (!err)
		err = link_attr_set(&l->link, sim->now_ns, &own);
	if (err) {
		alloc_free(sim->alloc, drop);
		alloc_free(sim->alloc, dark);
		return err;
	}
	alloc_free(sim->alloc, l->drop);
	alloc_free(sim->alloc, l->blackout);
	l->drop = drop;
	l->blackout = dark;
	return 0;
}

int sim_link_set(struct sim *sim, int from, int to, uint32_t channel, const struct link_attr *attr)
{
	struct sim_link *l;
	int err;

	if (!sim_is_host(sim, from) || !sim_is_host(sim, to) ||
	    (channel >= FABRIC_MAX_CHANNELS && channel != SIM_CHANNEL_ALL))
		return -EINVAL;
	err = link_attr_check(attr);
	if (err)
		return err;
	l = sim_link_get(sim, (uint32_t)from, (uint32_t)to, channel);
	return l ? sim_link_change(sim, l, attr) : -ENOMEM;
}

int sim_link_counters(const struct sim *sim, int from, int to, uint32_t channel,
		      struct link_counters *out)
{
	const struct sim_link *l = NULL;

	if (sim_is_host(sim, from) && sim_is_host(sim, to))
		l = sim_link_find(sim, (uint32_t)from, (uint32_t)to, channel);
	if (!l)
		return -ENOENT;
	*out = l->link.counters;
	return 0;
}

uint64_t sim_link_queued_bytes(const struct sim *sim, int from, int to, uint32_t channel)
{
	const struct sim_link *l = NULL;

	if (sim_is_host(sim, from) && sim_is_host(sim, to))
		l = sim_link_find(sim, (uint32_t)from, (uint32_t)to, channel);
	return l ? link_queued_bytes(&l->link, sim->now_ns) : 0;
}

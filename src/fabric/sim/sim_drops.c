/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets to lose, named by what they carry: message, packet, and how often this packet was sent
 * before. Knows nothing of links; sim_tx.c asks for each packet. Contract: sim.h.
 */
#include "fabric/sim/sim_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sim_drops *sim_drops_find(const struct sim *sim, uint32_t from, uint32_t to)
{
	struct sim_drops *d = sim->drops;

	while (d && !(d->from == from && d->to == to))
		d = d->next;
	return d;
}

static void drops_free(struct sim *sim, struct sim_drops *d)
{
	while (d->seen) {
		struct sim_drop_seen *seen = d->seen;

		d->seen = seen->next;
		if (seen->qp->drop_seen == seen)
			seen->qp->drop_seen = NULL;
		alloc_free(sim->alloc, seen);
	}
	alloc_free(sim->alloc, d);
}

static int compare(const struct sim_drop *a, uint32_t message, uint32_t packet, uint32_t attempt)
{
	if (a->message != message)
		return a->message < message ? -1 : 1;
	if (a->packet != packet)
		return a->packet < packet ? -1 : 1;
	return a->attempt < attempt ? -1 : a->attempt > attempt;
}

static int by_name(const void *a, const void *b)
{
	const struct sim_drop *other = &((const struct sim_drop_entry *)b)->drop;

	return compare(&((const struct sim_drop_entry *)a)->drop, other->message, other->packet,
		       other->attempt);
}

/* Sorted, and each once. */
static struct sim_drops *drops_make(const struct sim *sim, uint32_t from, uint32_t to,
				    const struct sim_drop *drops, size_t n)
{
	struct sim_drops *d =
		alloc_zeroed(sim->alloc, sizeof(*d) + n * sizeof(struct sim_drop_entry));

	if (!d)
		return NULL;
	d->from = from;
	d->to = to;
	for (size_t i = 0; i < n; i++)
		d->entry[i].drop = drops[i];
	qsort(d->entry, n, sizeof(*d->entry), by_name);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || by_name(&d->entry[d->n - 1], &d->entry[i]) != 0)
			d->entry[d->n++] = d->entry[i];
	return d;
}

int sim_drops_set(struct sim *sim, int from, int to, const struct sim_drop *drops, size_t n)
{
	struct sim_drops **at = &sim->drops, *fresh = NULL, *old;

	if (!sim_is_host(sim, from) || !sim_is_host(sim, to) || (n && !drops))
		return -EINVAL;
	if (n) {
		fresh = drops_make(sim, (uint32_t)from, (uint32_t)to, drops, n);
		if (!fresh)
			return -ENOMEM;
	}
	while (*at && !((*at)->from == (uint32_t)from && (*at)->to == (uint32_t)to))
		at = &(*at)->next;
	old = *at;
	if (old) {
		*at = old->next;
		drops_free(sim, old);
	}
	if (fresh) {
		fresh->next = sim->drops;
		sim->drops = fresh;
	}
	sim->link_epoch++; /* channels know it no more */
	return 0;
}

int sim_drops_info(const struct sim *sim, int from, int to, struct sim_drops_info *out)
{
	const struct sim_drops *d = NULL;

	if (sim_is_host(sim, from) && sim_is_host(sim, to))
		d = sim_drops_find(sim, (uint32_t)from, (uint32_t)to);
	if (!d)
		return -ENOENT;
	*out = (struct sim_drops_info){.n = d->n, .drops = d->lost_pkts};
	for (size_t i = 0; i < d->n; i++)
		out->hit += d->entry[i].hit;
	return 0;
}

/* What this QP has sent of the list; made where there is none yet, NULL: no memory. */
static struct sim_drop_seen *seen_of(struct sim_drops *d, struct sim_qp *qp)
{
	const struct sdr_alloc *alloc = sim_fabric_of(qp->base.fabric)->sim->alloc;
	struct sim_drop_seen *seen = d->seen;

	if (qp->drop_seen && qp->drop_seen->of == d)
		return qp->drop_seen;
	while (seen && seen->qp != qp)
		seen = seen->next;
	if (!seen) {
		seen = alloc_zeroed(alloc, sizeof(*seen) + d->n * sizeof(seen->sent[0]));
		if (!seen)
			return NULL;
		*seen = (struct sim_drop_seen){.next = d->seen, .of = d, .qp = qp};
		d->seen = seen;
	}
	qp->drop_seen = seen;
	return seen;
}

/* The first entry of a packet, or where it would be. */
static size_t find(const struct sim_drops *d, uint32_t message, uint32_t packet)
{
	size_t low = 0, high = d->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (compare(&d->entry[mid].drop, message, packet, 0) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool sim_drops_take(struct sim_drops *d, struct sim_qp *qp, uint32_t message, uint32_t packet)
{
	size_t at = find(d, message, packet);
	struct sim_drop_seen *seen;
	uint32_t attempt;

	if (at == d->n || d->entry[at].drop.message != message ||
	    d->entry[at].drop.packet != packet || !(seen = seen_of(d, qp)))
		return false;
	attempt = seen->sent[at]++;
	for (; at < d->n; at++) {
		int order = compare(&d->entry[at].drop, message, packet, attempt);

		if (order > 0)
			return false;
		if (order == 0) {
			d->entry[at].hit = true;
			d->lost_pkts++;
			return true;
		}
	}
	return false;
}

void sim_drops_forget(struct sim *sim, const struct sim_qp *qp)
{
	for (struct sim_drops *d = sim->drops; d; d = d->next) {
		for (struct sim_drop_seen **at = &d->seen; *at; at = &(*at)->next) {
			struct sim_drop_seen *seen = *at;

			if (seen->qp != qp)
				continue;
			*at = seen->next;
			alloc_free(sim->alloc, seen);
			break;
		}
	}
}

void sim_drops_fini(struct sim *sim)
{
	while (sim->drops) {
		struct sim_drops *next = sim->drops->next;

		drops_free(sim, sim->drops);
		sim->drops = next;
	}
}

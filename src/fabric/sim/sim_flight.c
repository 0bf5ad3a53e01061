/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of data packets without payload that keep their link's order: one record for all of them,
 * with a time for each. What is on the wire follows from the run, so it is written as a packet
 * arrives and not before: in flight, a packet takes 20 bytes, and its headers are encoded where
 * they are decoded, while they are in the cache. Packets that are hit, doubled or out of order
 * are ordinary ones.
 */
#include "fabric/sim/sim_int.h"

#include "base/check.h"
#include <string.h>

struct flight_entry {
	uint64_t deliver_ns;
	uint32_t seq_more; /* than the first's */
	uint8_t index;	   /* in the run */
	bool ce;
};

/* In the bytes of a sim_packet, whose deliver_ns and seq are those of entry[at]. */
struct sim_flight {
	struct sim_data data;
	uint64_t first_seq;
	uint32_t n, cap, at;
	struct flight_entry entry[];
};

static struct sim_flight *flight_of(const struct sim_packet *p)
{
	SDR_ASSERT(p->kind == SIM_PKT_FLIGHT);
	return (struct sim_flight *)(void *)(uintptr_t)p->bytes;
}

uint32_t sim_flight_left(const struct sim_packet *p)
{
	return flight_of(p)->n - flight_of(p)->at;
}

/* Begins one with its first packet; `most` packets may follow. NULL: no memory. */
static struct sim_packet *begin(struct sim *sim, struct sim_link *l, const struct sim_head *head,
				const struct sim_data *data, uint32_t most, uint64_t deliver_ns)
{
	size_t bytes = sizeof(struct sim_flight) + most * sizeof(struct flight_entry);
	struct sim_packet *p = sim_packet_new(&sim->pool, (uint32_t)bytes);
	struct sim_flight *flight;

	if (!p)
		return NULL;
	p->kind = SIM_PKT_FLIGHT;
	p->head = *head;
	flight = flight_of(p);
	flight->data = *data;
	flight->first_seq = sim->seq;
	flight->n = flight->at = 0;
	flight->cap = most;
	return sim_launch(sim, l, p, deliver_ns) ? p : NULL;
}

bool sim_flight_add(struct sim *sim, struct sim_link *l, const struct sim_head *head,
		    const struct sim_data *data, uint32_t index, uint64_t deliver_ns, bool ce,
		    struct sim_packet **flight)
{
	struct sim_flight *f;

	if (!*flight) {
		*flight = begin(sim, l, head, data, data->count - index, deliver_ns);
		if (!*flight)
			return false;
		f = flight_of(*flight);
	} else {
		f = flight_of(*flight);
		sim->seq++;
		sim->in_flight++;
		l->fifo.n++;
		l->last_ns = deliver_ns;
	}
	SDR_ASSERT(f->n < f->cap);
	f->entry[f->n] = (struct flight_entry){
		.deliver_ns = deliver_ns,
		.seq_more = (uint32_t)(sim->seq - 1 - f->first_seq),
		.index = (uint8_t)index,
		.ce = ce,
	};
	f->n++;
	return true;
}

struct sim_packet *sim_flight_take(struct sim *sim, struct sim_link *l)
{
	struct sim_packet *run = l->fifo.head;
	struct sim_flight *f = flight_of(run);
	const struct flight_entry *e = &f->entry[f->at++];
	struct sim_packet *p = sim_data_packet(sim, &f->data, e->index, NULL);

	if (p) {
		p->kind = SIM_PKT_WIRE;
		p->head = run->head;
		p->deliver_ns = run->deliver_ns;
		p->seq = run->seq;
		p->ce = e->ce;
	} else {
		sim->in_flight--; /* no memory: as if it had been lost */
	}
	if (f->at == f->n) {
		sim_packet_free(&sim->pool, sim_fifo_take(&l->fifo));
		return p;
	}
	l->fifo.n--;
	e = &f->entry[f->at];
	run->deliver_ns = e->deliver_ns;
	run->seq = f->first_seq + e->seq_more;
	return p;
}

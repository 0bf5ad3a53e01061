/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NAT's table. Outside ports go round all of [LINK_NAT_PORT_MIN, 65535] in an order that the
 * seed gives, so that a port comes again only after all the others: what was sent to an old one
 * finds nobody, as long as it can be on its way. Contract: nat.h.
 */
#include "link/nat.h"

#include "base/bits.h"
#include "base/check.h"
#include "base/rng.h"
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define PORTS (65536u - LINK_NAT_PORT_MIN)

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
	return b ? common_divisor(b, a % b) : a;
}

void link_nat_init(struct link_nat *nat, uint64_t seed, uint64_t timeout_ns, uint64_t every_ns,
		   uint64_t now_ns)
{
	struct rng rng;

	rng_init(&rng, seed);
	*nat = (struct link_nat){.timeout_ns = timeout_ns, .every_ns = every_ns};
	if (every_ns)
		nat->next_ns = now_ns > UINT64_MAX - every_ns ? UINT64_MAX : now_ns + every_ns;
	nat->port = (uint32_t)rng_below(&rng, PORTS);
	do {
		nat->port_step = 1 + (uint32_t)rng_below(&rng, PORTS - 1);
	} while (common_divisor(PORTS, nat->port_step) != 1);
}

void link_nat_rebind(struct link_nat *nat)
{
	memset(nat->map, 0, sizeof(nat->map));
	nat->rebinds++;
}

/* Rebinds where it is time to; intervals in which nothing was sent count as one. */
static void pass_time(struct link_nat *nat, uint64_t now_ns)
{
	uint64_t late_ns;

	nat->now_ns = u64_max(nat->now_ns, now_ns);
	if (!nat->every_ns || nat->now_ns < nat->next_ns)
		return;
	link_nat_rebind(nat);
	late_ns = (nat->now_ns - nat->next_ns) % nat->every_ns;
	nat->next_ns = nat->every_ns - late_ns > UINT64_MAX - nat->now_ns
			       ? UINT64_MAX
			       : nat->now_ns + (nat->every_ns - late_ns);
}

static bool alive(const struct link_nat *nat, const struct link_nat_mapping *m)
{
	return m->inside && (!nat->timeout_ns || nat->now_ns - m->used_ns < nat->timeout_ns);
}

static bool matches(const struct link_nat_mapping *m, uint8_t proto, uint16_t port, bool inside)
{
	return m->inside && m->proto == proto && (inside ? m->inside : m->outside) == port;
}

static uint32_t hint_of(uint8_t proto, uint16_t port)
{
	return ((uint32_t)port ^ (uint32_t)port >> 8 ^ proto) % LINK_NAT_MAPPINGS;
}

/* The mapping of a port, which counts as used now; NULL: none. */
static struct link_nat_mapping *find(struct link_nat *nat, uint8_t proto, uint16_t port,
				     bool inside)
{
	uint8_t *hint = &nat->hint[inside][hint_of(proto, port)];
	struct link_nat_mapping *m = &nat->map[*hint];

	if (!matches(m, proto, port, inside)) {
		for (m = nat->map; m < nat->map + LINK_NAT_MAPPINGS; m++)
			if (matches(m, proto, port, inside))
				break;
		if (m == nat->map + LINK_NAT_MAPPINGS)
			return NULL;
		*hint = (uint8_t)(m - nat->map);
	}
	if (!alive(nat, m)) {
		m->inside = 0;
		return NULL;
	}
	m->used_ns = nat->now_ns;
	m->use = ++nat->uses;
	return m;
}

static bool port_taken(const struct link_nat *nat, uint32_t outside)
{
	for (uint32_t i = 0; i < LINK_NAT_MAPPINGS; i++)
		if (nat->map[i].inside && nat->map[i].outside == outside)
			return true;
	return false;
}

/* There are more ports than mappings: it ends. */
static uint16_t next_port(struct link_nat *nat)
{
	do {
		nat->port = (nat->port + nat->port_step) % PORTS;
	} while (port_taken(nat, LINK_NAT_PORT_MIN + nat->port));
	return (uint16_t)(LINK_NAT_PORT_MIN + nat->port);
}

/* One that is free or timed out, or else the one that was used least recently. */
static struct link_nat_mapping *place(struct link_nat *nat)
{
	struct link_nat_mapping *oldest = &nat->map[0];

	for (uint32_t i = 0; i < LINK_NAT_MAPPINGS; i++) {
		if (!alive(nat, &nat->map[i]))
			return &nat->map[i];
		if (nat->map[i].use < oldest->use)
			oldest = &nat->map[i];
	}
	return oldest;
}

uint16_t link_nat_out(struct link_nat *nat, uint64_t now_ns, uint8_t proto, uint16_t inside)
{
	struct link_nat_mapping *m;

	pass_time(nat, now_ns);
	if (!inside)
		return 0;
	m = find(nat, proto, inside, true);
	if (m)
		return m->outside;
	m = place(nat);
	*m = (struct link_nat_mapping){
		.used_ns = nat->now_ns,
		.use = ++nat->uses,
		.inside = inside,
		.outside = next_port(nat),
		.proto = proto,
	};
	nat->hint[true][hint_of(proto, inside)] = (uint8_t)(m - nat->map);
	return m->outside;
}

uint16_t link_nat_in(struct link_nat *nat, uint64_t now_ns, uint8_t proto, uint16_t outside)
{
	const struct link_nat_mapping *m;

	pass_time(nat, now_ns);
	m = find(nat, proto, outside, false);
	if (m)
		return m->inside;
	nat->forgotten_pkts++;
	return 0;
}

void link_nat_check(const struct link_nat *nat)
{
	for (uint32_t i = 0; i < LINK_NAT_MAPPINGS; i++) {
		const struct link_nat_mapping *m = &nat->map[i];

		if (!m->inside)
			continue;
		SDR_ASSERT(m->outside >= LINK_NAT_PORT_MIN);
		SDR_ASSERT(m->used_ns <= nat->now_ns && m->use <= nat->uses);
		for (uint32_t j = 0; j < i; j++) {
			const struct link_nat_mapping *o = &nat->map[j];

			SDR_ASSERT(!o->inside || o->outside != m->outside);
			SDR_ASSERT(!o->inside || o->inside != m->inside || o->proto != m->proto);
			(void)o;
		}
	}
	SDR_ASSERT(nat->port < PORTS && common_divisor(PORTS, nat->port_step) == 1);
}

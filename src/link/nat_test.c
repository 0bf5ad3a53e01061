/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the NAT: by hand, and against a twin that keeps every mapping it ever made in one
 * growing list. The twin does not choose outside ports: it takes the one it is told and proves
 * that it was free to be chosen.
 */
#include "link/nat.h"

#include "base/bits.h"
#include "base/rng.h"
#include "base/units.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define UDP 17
#define TCP 6

static void test_a_mapping_stays(void **state)
{
	struct link_nat nat;
	uint16_t udp, tcp;

	(void)state;
	link_nat_init(&nat, 1, 0, 0, 0);
	udp = link_nat_out(&nat, 0, UDP, 4791);
	tcp = link_nat_out(&nat, 0, TCP, 4791);
	assert_true(udp >= LINK_NAT_PORT_MIN && tcp >= LINK_NAT_PORT_MIN);
	assert_int_not_equal(udp, tcp);
	for (uint64_t now = 0; now < 1000; now++) {
		assert_int_equal(link_nat_out(&nat, now * NS_PER_S, UDP, 4791), udp);
		assert_int_equal(link_nat_in(&nat, now * NS_PER_S, UDP, udp), 4791);
		assert_int_equal(link_nat_in(&nat, now * NS_PER_S, TCP, tcp), 4791);
	}
	assert_int_equal(link_nat_in(&nat, 0, TCP, udp), 0); /* of the other protocol */
	assert_int_equal(link_nat_in(&nat, 0, UDP, 0), 0);
	assert_int_equal(link_nat_in(&nat, 0, 0, 0), 0);
	assert_int_equal(link_nat_out(&nat, 0, UDP, 0), 0);
	assert_int_equal(nat.forgotten_pkts, 3);
	assert_int_equal(nat.rebinds, 0);
	link_nat_check(&nat);
}

static void test_rebinding_gives_new_ports(void **state)
{
	bool seen[65536] = {false};
	struct link_nat nat;
	uint16_t old = 0;

	(void)state;
	link_nat_init(&nat, 2, 0, 0, 0);
	for (int i = 0; i < 64000; i++) {
		uint16_t port = link_nat_out(&nat, 0, UDP, 5000);

		assert_false(seen[port]); /* a late packet to any old one finds nobody */
		seen[port] = true;
		assert_int_equal(link_nat_in(&nat, 0, UDP, old), 0);
		assert_int_equal(link_nat_in(&nat, 0, UDP, port), 5000);
		old = port;
		link_nat_rebind(&nat);
		assert_int_equal(link_nat_in(&nat, 0, UDP, old), 0);
	}
	assert_int_equal(nat.rebinds, 64000);
	assert_int_equal(nat.forgotten_pkts, 128000);
}

static void test_unused_mappings_time_out(void **state)
{
	struct link_nat nat;
	uint16_t port, other;

	(void)state;
	link_nat_init(&nat, 3, 100, 0, 0);
	port = link_nat_out(&nat, 50, UDP, 1);
	assert_int_equal(link_nat_out(&nat, 149, UDP, 1), port); /* used: 100 more */
	assert_int_equal(link_nat_in(&nat, 248, UDP, port), 1);	 /* from outside too */
	assert_int_equal(link_nat_in(&nat, 300, UDP, port), 1);
	assert_int_equal(link_nat_in(&nat, 200, UDP, port), 1); /* time does not go back */
	assert_int_equal(link_nat_in(&nat, 400, UDP, port), 0);
	other = link_nat_out(&nat, 400, UDP, 1);
	assert_int_not_equal(other, port);
	assert_int_equal(link_nat_out(&nat, 500, UDP, 1) == other, false);
	link_nat_check(&nat);
	assert_int_equal(link_nat_out(&nat, UINT64_MAX, UDP, 1) == 0, false);
}

static void test_rebinds_by_itself(void **state)
{
	struct link_nat nat;
	uint16_t port, next;

	(void)state;
	link_nat_init(&nat, 4, 0, 1000, 500);
	port = link_nat_out(&nat, 500, UDP, 9);
	assert_int_equal(link_nat_out(&nat, 1499, UDP, 9), port);
	next = link_nat_out(&nat, 1500, UDP, 9);
	assert_int_not_equal(next, port);
	assert_int_equal(link_nat_in(&nat, 2499, UDP, next), 9);
	assert_int_equal(link_nat_in(&nat, 2500, UDP, next), 0);
	next = link_nat_out(&nat, 2600, UDP, 9);
	/* After a long silence the phase is still the same. */
	assert_int_equal(link_nat_in(&nat, 10000, UDP, next), 0);
	assert_int_equal(nat.rebinds, 3);
	next = link_nat_out(&nat, 10000, UDP, 9);
	assert_int_equal(link_nat_out(&nat, 10499, UDP, 9), next);
	assert_int_not_equal(link_nat_out(&nat, 10500, UDP, 9), next);
	/* Never, where it would be beyond the end of time. */
	link_nat_init(&nat, 4, 0, UINT64_MAX, 500);
	port = link_nat_out(&nat, 500, UDP, 9);
	assert_int_equal(link_nat_out(&nat, UINT64_MAX - 1, UDP, 9), port);
}

static void test_a_full_table_forgets_the_least_recent(void **state)
{
	uint16_t port[LINK_NAT_MAPPINGS + 1];
	struct link_nat nat;

	(void)state;
	link_nat_init(&nat, 5, 0, 0, 0);
	for (uint16_t i = 0; i < LINK_NAT_MAPPINGS; i++)
		port[i] = link_nat_out(&nat, 7, UDP, (uint16_t)(1000 + i));
	/* All at the same time; then the first is used again, from outside. */
	assert_int_equal(link_nat_in(&nat, 7, UDP, port[0]), 1000);
	port[LINK_NAT_MAPPINGS] = link_nat_out(&nat, 7, UDP, 5000);
	assert_int_equal(link_nat_in(&nat, 7, UDP, port[1]), 0);
	for (uint16_t i = 2; i < LINK_NAT_MAPPINGS; i++)
		assert_int_equal(link_nat_in(&nat, 7, UDP, port[i]), 1000 + i);
	assert_int_equal(link_nat_in(&nat, 7, UDP, port[0]), 1000);
	assert_int_equal(link_nat_in(&nat, 7, UDP, port[LINK_NAT_MAPPINGS]), 5000);
	link_nat_check(&nat);
}

static void test_a_seed_replays(void **state)
{
	struct link_nat a, b, c;
	unsigned int differ = 0;

	(void)state;
	link_nat_init(&a, 6, 0, 0, 0);
	link_nat_init(&b, 6, 0, 0, 0);
	link_nat_init(&c, 7, 0, 0, 0);
	for (uint16_t i = 1; i < 200; i++) {
		uint16_t port = link_nat_out(&a, 0, UDP, i);

		assert_int_equal(port, link_nat_out(&b, 0, UDP, i));
		differ += port != link_nat_out(&c, 0, UDP, i);
	}
	assert_true(differ > 190);
}

/* The twin. */

#define TWIN_MAX 1024u /* it is packed every 256 steps */

struct twin_mapping {
	uint64_t used_ns, use;
	uint16_t inside, outside;
	uint8_t proto;
	bool gone;
};

static struct {
	struct twin_mapping m[TWIN_MAX];
	uint32_t n;
	uint64_t uses, timeout_ns;
	bool fault_lru; /* planted */
} twin;

static struct twin_mapping *twin_find(uint64_t now, uint8_t proto, uint16_t port, bool inside)
{
	for (uint32_t i = 0; i < twin.n; i++) {
		struct twin_mapping *m = &twin.m[i];

		if (twin.timeout_ns && now >= m->used_ns + twin.timeout_ns)
			m->gone = true;
		if (!m->gone && m->proto == proto && (inside ? m->inside : m->outside) == port)
			return m;
	}
	return NULL;
}

static void twin_use(struct twin_mapping *m, uint64_t now)
{
	m->used_ns = now;
	m->use = ++twin.uses;
}

static void twin_make_room(uint64_t now)
{
	struct twin_mapping *oldest = NULL;
	uint32_t live = 0;

	(void)twin_find(now, 255, 0, true); /* times out */
	for (uint32_t i = 0; i < twin.n; i++) {
		if (twin.m[i].gone)
			continue;
		live++;
		if (!oldest || (twin.m[i].use < oldest->use) != twin.fault_lru)
			oldest = &twin.m[i];
	}
	if (live == LINK_NAT_MAPPINGS)
		oldest->gone = true;
}

static void twin_pack(void)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < twin.n; i++)
		if (!twin.m[i].gone)
			twin.m[kept++] = twin.m[i];
	twin.n = kept;
}

/* False where the NAT and the twin differ. */
static bool step(struct link_nat *nat, struct rng *rng, uint64_t now)
{
	uint8_t proto = rng_below(rng, 2) ? UDP : TCP;
	uint16_t inside = (uint16_t)(1 + rng_below(rng, 220));
	struct twin_mapping *m;

	if (rng_below(rng, 20000) == 0) {
		link_nat_rebind(nat);
		twin.n = 0;
		return true;
	}
	if (rng_below(rng, 2) && twin.n) {
		uint16_t outside = twin.m[rng_below(rng, twin.n)].outside;
		uint64_t lost = nat->forgotten_pkts;

		m = twin_find(now, proto, outside, false);
		if (m)
			twin_use(m, now);
		return link_nat_in(nat, now, proto, outside) == (m ? m->inside : 0) &&
		       nat->forgotten_pkts == lost + !m;
	}
	m = twin_find(now, proto, inside, true);
	if (!m) {
		twin_make_room(now);
		m = &twin.m[twin.n];
		*m = (struct twin_mapping){.inside = inside, .proto = proto};
		m->outside = link_nat_out(nat, now, proto, inside);
		for (uint32_t i = 0; i < twin.n; i++)
			if (!twin.m[i].gone && twin.m[i].outside == m->outside)
				return false;
		twin.n++;
		twin_use(m, now);
		return m->outside >= LINK_NAT_PORT_MIN;
	}
	twin_use(m, now);
	return link_nat_out(nat, now, proto, inside) == m->outside;
}

/* The first step at which they differ, or `steps`. */
static uint32_t compare(uint64_t seed, uint64_t timeout_ns, bool fault, uint32_t steps)
{
	struct link_nat nat;
	struct rng rng;
	uint64_t now = 0;

	rng_init(&rng, seed);
	link_nat_init(&nat, seed, timeout_ns, 0, now);
	twin.n = 0;
	twin.uses = 0;
	twin.timeout_ns = timeout_ns;
	twin.fault_lru = fault;
	for (uint32_t i = 0; i < steps; i++) {
		now += rng_below(&rng, 10);
		if (!step(&nat, &rng, now))
			return i;
		if (i % 256 == 0) {
			link_nat_check(&nat);
			twin_pack();
		}
	}
	return steps;
}

static void test_twin(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++)
		assert_int_equal(compare(seed, seed % 2 ? 0 : 300 * seed, false, 20000), 20000);
	assert_true(compare(1, 0, true, 20000) < 20000); /* a planted fault is seen */
}

/* A port in use is passed over when the round comes to it again. */
static void test_a_port_in_use_is_nobody_elses(void **state)
{
	struct link_nat nat;
	uint16_t kept;

	(void)state;
	link_nat_init(&nat, 9, 0, 0, 0);
	kept = link_nat_out(&nat, 0, UDP, 1);
	for (uint32_t i = 0; i < 3 * 65536; i++) {
		assert_int_not_equal(link_nat_out(&nat, i, TCP, (uint16_t)(1 + i % 60000)), kept);
		assert_int_equal(link_nat_out(&nat, i, UDP, 1), kept);
		if (i % 4096 == 0)
			link_nat_check(&nat);
	}
	assert_int_equal(link_nat_in(&nat, 0, UDP, kept), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_mapping_stays),
		cmocka_unit_test(test_rebinding_gives_new_ports),
		cmocka_unit_test(test_unused_mappings_time_out),
		cmocka_unit_test(test_rebinds_by_itself),
		cmocka_unit_test(test_a_full_table_forgets_the_least_recent),
		cmocka_unit_test(test_a_seed_replays),
		cmocka_unit_test(test_a_port_in_use_is_nobody_elses),
		cmocka_unit_test(test_twin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

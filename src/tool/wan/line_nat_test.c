/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the line: its NAT, and its answers to packets that are too large. */
#include "tool/wan/line_rig.h"
#include "tool/wan/packet.h"

#include "base/bits.h"
#include "base/units.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void test_too_large_is_told(void **state)
{
	static const uint64_t sizes[] = {1500, 1400};
	struct twin_spec spec = rig_tcp(10, 1);
	struct wan_line *line;
	struct wan_frame f;

	(void)state;
	for (int silent = 0; silent < 2; silent++) {
		for (size_t i = 0; i < SDR_ARRAY_LEN(sizes); i++) {
			bool fits = sizes[i] == MTU;
			uint32_t told = !silent && !fits;

			rig_fresh(1);
			rig_both(0, 0, NS_PER_MS);
			rig_config->path[0][0].attr.mtu_bytes = (uint32_t)sizes[i];
			rig_config->path[0][0].mtu_silent = silent;
			line = rig_make();
			rig_offer(line, WAN_A, 5, &spec);
			if (told) {
				assert_true(wan_line_take(line, 5, &f)); /* at once */
				assert_int_equal(f.to, WAN_A);
				assert_int_equal(rig_parsed(&f).flow.proto, 1);
			}
			assert_int_equal(wan_line_take(line, SECOND, &f), fits);
			assert_int_equal(rig_counters(line).too_big_told, told);
			assert_int_equal(rig_stat(line, WAN_A, 0).link.lost_pkts[LINK_LOST_MTU],
					 fits ? 0 : 10);
			rig_balance(line, fits ? 10 : 0);
			wan_line_destroy(line);
		}
	}
}

/* The last segment is short and fits; the others are answered. */
static void test_too_large_but_the_last(void **state)
{
	struct twin_spec spec = rig_tcp(3, 1);
	struct wan_line *line;
	struct wan_frame f;

	(void)state;
	rig_fresh(1);
	rig_config->path[0][0].attr.mtu_bytes = 1400;
	line = rig_make();
	spec.payload_bytes -= 1000;
	spec.tcp_flags |= TWIN_PSH;
	rig_offer(line, WAN_A, 5, &spec);
	assert_true(wan_line_take(line, 5, &f));
	assert_int_equal(f.to, WAN_A);
	assert_true(wan_line_take(line, 5, &f));
	assert_int_equal(f.to, WAN_B);
	assert_int_equal(rig_parsed(&f).payload_bytes, MSS - 1000);
	rig_balance(line, 1);
	wan_line_destroy(line);
}

/* Sends through the NAT and answers to where it came from; the port outside. */
static uint16_t nat_out(struct wan_line *line, uint64_t now_ns, const struct twin_spec *spec)
{
	struct wan_frame f;
	struct wan_packet p;

	rig_offer(line, WAN_A, now_ns, spec);
	assert_true(wan_line_take(line, now_ns + NS_PER_MS, &f));
	assert_int_equal(f.to, WAN_B);
	assert_true(twin_frame_ok(f.bytes, f.len));
	p = rig_parsed(&f);
	assert_int_equal(p.flow.dport, spec->dport);
	return p.flow.sport;
}

/* The port that an answer has when it is inside; 0: it was lost. */
static uint16_t nat_in(struct wan_line *line, uint64_t now_ns, const struct twin_spec *spec,
		       uint16_t outside)
{
	struct twin_spec answer = *spec;
	struct wan_frame f;

	answer.sport = spec->dport;
	answer.dport = outside;
	rig_offer(line, WAN_B, now_ns, &answer);
	if (!wan_line_take(line, now_ns + NS_PER_MS, &f))
		return 0;
	assert_int_equal(f.to, WAN_A);
	assert_true(twin_frame_ok(f.bytes, f.len));
	return rig_parsed(&f).flow.dport;
}

static void test_nat(void **state)
{
	struct twin_spec specs[] = {rig_tcp(5, 1), rig_udp(500, 3000, 4000), rig_tcp(1, 1),
				    rig_udp(0, 5000, 6000)};
	struct wan_line *line;
	uint16_t first, second;
	uint64_t now = 0;

	(void)state;
	specs[2].csum = TWIN_FULL;
	specs[2].segment_bytes = 0;
	specs[3].csum = TWIN_FULL;
	specs[3].v6 = true;
	for (size_t i = 0; i < SDR_ARRAY_LEN(specs); i++) {
		rig_fresh(1);
		rig_both(0, 0, NS_PER_MS);
		rig_config->nat = true;
		line = rig_make();
		assert_int_equal(nat_in(line, now++, &specs[i], 1234), 0);
		first = nat_out(line, now++, &specs[i]);
		assert_int_not_equal(first, specs[i].sport);
		assert_int_equal(nat_out(line, now++, &specs[i]), first);
		assert_int_equal(nat_in(line, now++, &specs[i], first), specs[i].sport);
		wan_line_rebind(line);
		assert_int_equal(nat_in(line, now++, &specs[i], first), 0);
		second = nat_out(line, now++, &specs[i]);
		assert_int_not_equal(second, first);
		assert_int_equal(nat_in(line, now++, &specs[i], second), specs[i].sport);
		assert_int_equal(nat_in(line, now++, &specs[i], first), 0);
		assert_int_equal(rig_counters(line).nat_rebinds, 1);
		/* One frame each; super-packets count their segments. */
		assert_int_equal(rig_counters(line).nat_lost_pkts,
				 3 * (specs[i].segment_bytes ? 5 : 1));
		wan_line_check(line);
		wan_line_destroy(line);
	}
}

static void config_every(struct wan_line *line, uint64_t now_ns, uint64_t every_ns)
{
	rig_config->nat_every_ns = every_ns;
	assert_int_equal(wan_line_set(line, now_ns, rig_config), 0);
}

/* It forgets while the answer is under way: that one is lost. */
static void test_nat_looks_at_arrival(void **state)
{
	const struct twin_spec spec = rig_udp(10, 1000, 2000);
	struct twin_spec answer = rig_udp(10, 2000, 0);
	struct wan_line *line;
	struct wan_frame f;

	(void)state;
	rig_fresh(1);
	rig_both(0, 0, NS_PER_MS);
	rig_config->nat = true;
	line = rig_make();
	answer.dport = nat_out(line, 0, &spec);
	rig_offer(line, WAN_B, 10, &answer);
	wan_line_rebind(line);
	assert_false(wan_line_take(line, SECOND, &f));
	assert_int_equal(rig_counters(line).nat_lost_pkts, 1);
	rig_balance(line, 1);
	/* By timeout, switched on while it runs. */
	rig_config->nat_timeout_ns = 10 * NS_PER_MS;
	assert_int_equal(wan_line_set(line, SECOND, rig_config), 0);
	answer.dport = nat_out(line, SECOND, &spec);
	assert_int_equal(nat_in(line, SECOND + NS_PER_MS, &spec, answer.dport), 1000);
	assert_int_equal(nat_in(line, SECOND + 20 * NS_PER_MS, &spec, answer.dport), 0);
	/* By the clock. */
	rig_config->nat_timeout_ns = 0;
	rig_config->nat_every_ns = 100 * NS_PER_MS;
	assert_int_equal(wan_line_set(line, 2 * SECOND, rig_config), 0);
	answer.dport = nat_out(line, 2 * SECOND, &spec);
	assert_int_equal(nat_in(line, 2 * SECOND + 90 * NS_PER_MS, &spec, answer.dport), 1000);
	assert_int_equal(nat_in(line, 2 * SECOND + 110 * NS_PER_MS, &spec, answer.dport), 0);
	/* Another interval counts from when it was set. */
	config_every(line, 3 * SECOND, 200 * NS_PER_MS);
	answer.dport = nat_out(line, 3 * SECOND, &spec);
	config_every(line, 3 * SECOND + 50 * NS_PER_MS, 100 * NS_PER_MS);
	assert_int_equal(nat_in(line, 3 * SECOND + 140 * NS_PER_MS, &spec, answer.dport), 1000);
	assert_int_equal(nat_in(line, 3 * SECOND + 150 * NS_PER_MS, &spec, answer.dport), 0);
	wan_line_destroy(line);
}

/* "ping -e 0": what has no port has no mapping, there and back. */
static void test_nat_passes_port_0(void **state)
{
	const struct twin_spec spec = {.payload_bytes = 40, .csum = TWIN_FULL};
	struct wan_line *line;
	struct wan_frame f;

	(void)state;
	rig_fresh(1);
	rig_config->nat = true;
	line = rig_make();
	for (int from = 0; from < 2; from++) {
		uint8_t *buffer = wan_line_buffer(line), *icmp = buffer + WAN_VNET_BYTES + 20;
		size_t len = twin_build(&spec, buffer);

		buffer[WAN_VNET_BYTES + 9] = 1;
		icmp[0] = from == WAN_A ? 8 : 0; /* echo and its reply */
		memset(icmp + 4, 0, 2);
		wan_line_offer(line, (enum wan_end)from, 0, len);
		assert_true(wan_line_take(line, 0, &f));
		assert_int_equal(f.to, 1 - from);
		icmp = (uint8_t *)(uintptr_t)f.bytes + WAN_VNET_BYTES + 20;
		assert_int_equal(get_be16(icmp + 4), 0);
	}
	assert_int_equal(rig_counters(line).nat_lost_pkts, 0);
	wan_line_destroy(line);
}

/* The sender behind the NAT knows the packet that the error quotes. */
static void test_nat_and_icmp_errors(void **state)
{
	const struct twin_spec spec = rig_tcp(3, 1);
	struct wan_line *line;
	struct wan_frame f;
	struct wan_packet p;
	struct wan_port port;

	(void)state;
	rig_fresh(1);
	rig_config->nat = true;
	rig_config->path[0][0].attr.mtu_bytes = 1000;
	line = rig_make();
	rig_offer(line, WAN_A, 0, &spec);
	assert_true(wan_line_take(line, 0, &f));
	assert_int_equal(f.to, WAN_A);
	assert_true(twin_checksums_ok((const uint8_t *)f.bytes + WAN_VNET_BYTES,
				      f.len - WAN_VNET_BYTES));
	p = rig_parsed(&f);
	assert_true(wan_packet_port(f.bytes, f.len, &p, false, &port));
	assert_int_equal(port.value, spec.sport);
	assert_int_equal(rig_counters(line).nat_lost_pkts, 0);
	wan_line_destroy(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_too_large_is_told),
		cmocka_unit_test(test_too_large_but_the_last),
		cmocka_unit_test(test_nat),
		cmocka_unit_test(test_nat_looks_at_arrival),
		cmocka_unit_test(test_nat_passes_port_0),
		cmocka_unit_test(test_nat_and_icmp_errors),
	};

	return cmocka_run_group_tests(tests, rig_open, rig_close);
}

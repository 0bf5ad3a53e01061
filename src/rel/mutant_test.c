/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proves that the harness can see faults: this is linked with a copy of rel/ in which the
 * build has broken one line (CMakeLists.txt), and passes only if the harness complains.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "rel/pair.h"

#define MS UINT64_C(1000000)
#define RTT (20 * MS)

/* Blocks of 32 packets in groups of 16, with 4 of parity. */
static void code_all(struct pair_config *c)
{
	c->coding = (struct rel_coding){
		.code = REL_CODE_RS, .k = 32, .m = 4, .depth = 16, .fresh = true};
	c->whole_span = c->full_room = true;
	c->min_pkts = c->max_pkts = 1024;
	c->messages = 10;
}

static uint64_t complaints(const char *fault)
{
	struct pair_config c = {
		.scheme = "sr-nack",
		.seed = 3,
		.channels = 1,
		.path = {{.delay_ns = RTT / 2}},
		.ack_delay_ns = RTT / 2,
		.gap_ns = 10000,
		.window_pkts = 1u << 30,
		.max_train = 8,
		.messages = 20,
		.min_pkts = 1000,
		.max_pkts = 1000,
		.granted = 512,
		.limit_ns = 1000000 * MS,
	};
	struct pair_result r;
	uint64_t most_ns = UINT64_MAX;
	if (strcmp(fault, "recency") == 0) {
		c.path[0].loss = 0.02;
	} else if (strcmp(fault, "reorder") == 0) {
		c.path[0].jitter_ns = RTT / 17;
	} else if (strcmp(fault, "karn") == 0) {
		/* Tails are lost, and nothing newer was delivered when they are sent again. */
		c.path[0].loss = 0.3;
		c.min_pkts = c.max_pkts = 3;
		c.messages = 200;
		c.granted = 1;
		c.by_packet = true;
	} else if (strcmp(fault, "horizon") == 0 || strcmp(fault, "unsettled") == 0) {
		code_all(&c);
		c.path[0].loss = 0.12;
		c.path[0].jitter_ns = RTT / 17;
		c.coding.gap_ns = MS;
	} else if (strcmp(fault, "recovered") == 0) {
		code_all(&c);
		c.path[0].loss = 0.02;
		c.gap_ns = 2 * MS / 100;
	} else if (strcmp(fault, "fallback") == 0) {
		code_all(&c);
		c.coding.code =
			REL_CODE_XOR; /* of a receiver that knows it, all would be needless */
		c.path[0].loss = 0.05;
		c.messages = 1;
		c.write_ns = UINT64_MAX;
		most_ns = 8 * RTT + c.max_pkts * c.gap_ns;
	} else if (strcmp(fault, "quiet") == 0) {
		c.lose_one = true;
		c.lose_packet = c.max_pkts - 9;
		c.lose_count = 9;
		c.lose_times = 1;
		c.messages = 1;
		most_ns = c.max_pkts * c.gap_ns + RTT + 14 * RTT / 10;
	} else {
		c.scheme = "sr";
		c.ack_out_from_ns = 30 * MS;
		c.ack_out_until_ns = 2000 * MS;
	}
	pair_run(&c, &r);
	return r.too_soon + r.spurious + r.wrong_dates + r.needless + (r.done_ns > most_ns) +
	       (c.coding.code ? r.tx.spurious_pkts : 0);
}

int main(int argc, char **argv)
{
	static const char *const faults[] = {"recency",	  "reorder",  "silence",
					     "karn",	  "horizon",  "unsettled",
					     "recovered", "fallback", "quiet"};
	const char *planted = argc > 1 ? argv[1] : "";
	int bad = 0;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		if (planted[0] && strcmp(planted, faults[i]) != 0)
			continue;
		uint64_t n = complaints(faults[i]);
		printf("%s: %llu complaints%s\n", faults[i], (unsigned long long)n,
		       planted[0] ? " (a fault was planted)" : "");
		bad += (n > 0) != (planted[0] != 0);
	}
	return bad != 0;
}

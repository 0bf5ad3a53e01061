// SPDX-License-Identifier: Apache-2.0
/*
 * Sizes judged. See size.h.
 */
#include "tool/doctor/size.h"

#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>

#define AREA "size"
#define SDR_BYTES 44u /* BTH, RETH, ImmDt, trailer, UDP */
#define COST_NOTE 0.01
#define COST_BAD 0.05

static uint32_t header_bytes(int is_v6)
{
	return SDR_BYTES + (is_v6 ? 40u : 20u);
}

static uint64_t packets(uint64_t message, uint32_t payload)
{
	return message ? (message + payload - 1) / payload : 1;
}

double size_cost(uint64_t message, uint32_t payload, int is_v6)
{
	uint64_t each = header_bytes(is_v6) + ETHERNET_BYTES;

	return message ? (double)(packets(message, payload) * each) / (double)message : 0;
}

uint32_t size_roce_mtu(uint32_t mtu, int is_v6)
{
	for (uint32_t size = 4096; size >= 256; size /= 2) {
		if (size + header_bytes(is_v6) <= mtu)
			return size;
	}
	return 0;
}

static uint32_t payload_of(const struct size_facts *s, const struct goal *goal)
{
	return goal->payload_bytes ? goal->payload_bytes : s->fits_bytes;
}

static void judge_payload(const struct size_facts *s, const struct goal *goal, struct findings *f)
{
	uint32_t payload = payload_of(s, goal), packet = payload + header_bytes(s->is_v6);
	double share = (double)payload / (packet + ETHERNET_BYTES);
	struct finding *x;

	if (!s->fits_bytes || payload > s->fits_bytes) {
		x = finding_add(f, AREA, LEVEL_FAULT, "payload",
				"payload %u does not fit an MTU of %u", payload, s->mtu);
		finding_evidence(x, "%u + %u of headers = %u > MTU %u", payload,
				 header_bytes(s->is_v6), packet, s->mtu);
		finding_why(x, "Full packets would be cut in pieces or never arrive.");
		finding_fix(x, "sdr perf --payload %u HOST   # or without: what fits is found",
			    s->fits_bytes);
		return;
	}
	x = finding_add(f, AREA, share < 0.8 ? LEVEL_ATTENTION : LEVEL_OK, "payload",
			"payload %u in an MTU of %u: %.1f %% of the line carries data", payload,
			s->mtu, 100 * share);
	finding_evidence(x, "%u + %u of headers = %u of MTU %u, + %u of Ethernet", payload,
			 header_bytes(s->is_v6), packet, s->mtu, ETHERNET_BYTES);
	if (share >= 0.8)
		return;
	finding_why(x, "Headers take more than a fifth of the line, and each packet its own cost.");
	if (payload < s->fits_bytes)
		finding_fix(x, "sdr perf --payload %u HOST", s->fits_bytes);
	else
		finding_fix(x, "sudo ip link set %s mtu 1500   # if the whole path carries it",
			    *s->dev ? s->dev : "DEVICE");
}

/* A message of 2^n bytes in packets that are no power of two ends in a short packet. */
static void judge_alignment(const struct size_facts *s, const struct goal *goal, struct findings *f)
{
	uint32_t payload = payload_of(s, goal);
	uint64_t message = goal->message_bytes, chunk, pkts;
	double best, cost;
	char text[UNITS_TEXT];
	struct finding *x;

	if (!payload)
		return;
	chunk = (uint64_t)payload * goal->chunk_pkts;
	pkts = packets(message, payload);
	/* Were the last packet full, or were there no more packets than bytes need. */
	best = (double)(header_bytes(s->is_v6) + ETHERNET_BYTES) / payload;
	cost = (size_cost(message, payload, s->is_v6) - best) / (1 + best);
	units_size_text(text, message);
	x = finding_add(f, AREA,
			cost > COST_BAD	   ? LEVEL_ATTENTION
			: cost > COST_NOTE ? LEVEL_NOTE
					   : LEVEL_OK,
			"alignment", "messages of %s %s chunks of %u packets: costs %.2g %%", text,
			message % chunk ? "are not whole" : "are whole", goal->chunk_pkts,
			100 * (cost > 0 ? cost : 0));
	finding_evidence(x,
			 "%" PRIu64 " B = %" PRIu64 " chunks of %u x %u B and %" PRIu64
			 " B; %" PRIu64 " packets, the last of %" PRIu64 " B",
			 message, message / chunk, goal->chunk_pkts, payload, message % chunk, pkts,
			 message - (pkts - 1) * payload);
	if (message < chunk)
		finding_evidence(x, "one chunk is longer than the message: its bitmap is one bit");
	if (cost <= COST_NOTE)
		return;
	finding_why(x, "The last packet is nearly empty but costs as much as a full one.");
	finding_fix(x, "sdr perf --size %" PRIu64 " HOST   # longer messages", message * 16);
	if (payload > 1024 && message % 1024 == 0 &&
	    size_cost(message, 1024, s->is_v6) < size_cost(message, payload, s->is_v6))
		finding_fix(x, "sdr perf --payload 1024 HOST");
}

/* What an RDMA NIC would make of this MTU: for comparison. Of NICs that are there, see
 * rdma_judge.c. */
static void judge_roce_mtu(const struct size_facts *s, struct findings *f)
{
	uint32_t roce = size_roce_mtu(s->mtu, s->is_v6);
	struct finding *x;

	x = finding_add(f, AREA, LEVEL_OK, "roce-mtu",
			"an RDMA NIC would send %u B a packet in an MTU of %u", roce, s->mtu);
	finding_evidence(x, "path MTUs are 256 to 4096, powers of two; 4096 needs an MTU of %u",
			 4096 + header_bytes(s->is_v6));
}

void size_judge(const struct size_facts *s, const struct goal *goal, struct findings *f)
{
	judge_payload(s, goal, f);
	judge_alignment(s, goal, f);
	judge_roce_mtu(s, f);
}

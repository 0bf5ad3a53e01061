/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Payload, chunk and message sizes against the MTU: does a packet fit, what do headers
 * cost, do messages end at the end of a packet and of a chunk. Pure.
 */
#ifndef SDR_TOOL_DOCTOR_SIZE_H
#define SDR_TOOL_DOCTOR_SIZE_H

#include "tool/doctor/finding.h"

#define ETHERNET_BYTES 38u /* header, FCS, preamble, gap */

struct size_facts {
	char dev[16]; /* "": of the path */
	uint32_t mtu;
	int is_v6;
	uint32_t fits_bytes; /* sdr_payload_for_mtu() */
};

/* Bytes that a message of this length puts on an Ethernet, over its own. */
double size_cost(uint64_t message, uint32_t payload, int is_v6);
/* The largest path MTU of RoCE (256 .. 4096) whose packet fits; 0: none. */
uint32_t size_roce_mtu(uint32_t mtu, int is_v6);
void size_judge(const struct size_facts *s, const struct goal *goal, struct findings *f);

#endif

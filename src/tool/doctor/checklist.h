/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The four questions that are asked of every deployment of SDR-RDMA: are bitmaps in step
 * with the bytes, do generations collide, is the line's rate reached and if not why, do
 * the two ends' codes agree. Each is answered by a finding: "bitmaps", "generations",
 * "line-rate", "decode".
 */
#ifndef SDR_TOOL_DOCTOR_CHECKLIST_H
#define SDR_TOOL_DOCTOR_CHECKLIST_H

#include "tool/doctor/path.h"

/* What a transfer within this process showed: selftest.c. */
struct selftest_facts {
	int error; /* negative: it could not run; step says where */
	char step[64];
	uint64_t bytes;
	uint64_t chunks;  /* looked at the moment their bit was seen */
	uint64_t early;	  /* bit set, bytes not there yet */
	uint64_t changed; /* bytes that changed after the receive was completed */
	uint32_t workers; /* threads that wrote while this one looked */
};

/* 16 MiB over loopback, bitmap against bytes. */
void selftest_run(struct selftest_facts *t);

/* "bitmaps-here" */
void checklist_selftest(const struct selftest_facts *t, struct findings *f);
/* The four; p NULL: there is no path to ask. */
void checklist_path(const struct path_facts *p, const struct goal *goal, const struct net_facts *n,
		    uint64_t link_bps, struct findings *f);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host: kernel, clock, CPUs and what a cgroup leaves of them, memory that may be
 * locked, huge pages. host_read.c gathers, host_judge.c judges.
 */
#ifndef SDR_TOOL_DOCTOR_HOST_H
#define SDR_TOOL_DOCTOR_HOST_H

#include "tool/doctor/finding.h"
#include "tool/doctor/source.h"

struct host_facts {
	char name[65], kernel[65], machine[65];
	int container; /* looks like one */
	/* clock */
	char clock[32], clocks[128]; /* "": unknown */
	/* CPU */
	uint32_t cpus_online, cpus_allowed;
	int smt;	   /* 1 on, 0 off, -1 unknown */
	double quota_cpus; /* of the tightest cgroup; 0: none */
	char quota_from[192];
	uint64_t throttled; /* periods in which the cgroup was stopped */
	char governor[32], scaling_driver[32];
	double load1; /* -1: unknown */
	/* memory */
	uint64_t memory_bytes, available_bytes; /* 0: unknown */
	uint64_t memlock_bytes;			/* UINT64_MAX: unlimited */
	int may_lock;				/* CAP_IPC_LOCK: the limit does not count */
	uint64_t huge_total, huge_free, huge_bytes;
	char thp[16]; /* "always", "madvise", "never"; "": unknown */
};

void host_read(const struct source *s, struct host_facts *h);
/* `rdma`: there is an RDMA device, which needs memory locked. */
void host_judge(const struct host_facts *h, int rdma, struct findings *f);
/* "6.1.0-18-amd64" is at least 5.0? 0 also where it is not understood. */
int kernel_at_least(const char *release, int major, int minor);

#endif

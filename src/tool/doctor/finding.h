/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sdr doctor's findings: what was looked at, how it is, the evidence, why it matters, and
 * the commands that mend it. A list with a fixed maximum; knows nothing of how a finding
 * comes about or is shown.
 *
 *	finding.c   the list                    print.c      text and JSON
 *	source.c    files under a root          probe.c      sockets of this host
 *	host_*.c    kernel, clock, CPU, memory  net_*.c      buffers, drops, ports
 *	dev_*.c     network devices, offloads   rdma_*.c     RDMA devices
 *	size.c      payload, chunk, messages    path_*.c     what HOST shows
 *	selftest.c  bitmap against bytes, here  doctor.c     the subcommand
 *
 * *_read.c and path_measure.c gather facts, *_judge.c are plain functions from facts to
 * findings: they are tested with planted facts.
 */
#ifndef SDR_TOOL_DOCTOR_FINDING_H
#define SDR_TOOL_DOCTOR_FINDING_H

#include <stddef.h>
#include <stdint.h>

enum level {
	LEVEL_OK,
	LEVEL_NOTE,	 /* worth knowing; nothing stands in the way */
	LEVEL_ATTENTION, /* it costs speed or reliability: mend it */
	LEVEL_FAULT,	 /* it does not work */
	LEVEL_SKIPPED,	 /* could not be looked at; `evidence` says why */
	LEVELS,
};

#define FINDINGS_MAX 160u
#define FINDING_ID 48

struct finding {
	const char *area;    /* "host", "net", "device", "size", "rdma", "path", "checklist" */
	char id[FINDING_ID]; /* stable: scripts may look for it */
	enum level level;
	char what[256];	    /* one line */
	char evidence[768]; /* figures, and where they come from */
	char why[320];	    /* one sentence */
	char fix[768];	    /* commands to copy, one a line */
};

struct findings {
	struct finding list[FINDINGS_MAX];
	size_t n;
	size_t count[LEVELS];
	struct finding spare; /* takes what finds no room */
};

/* What the person wants to reach, and the sizes that are to be used. */
struct goal {
	uint64_t bw_bps, rtt_ns;
	int bw_given, rtt_given;
	uint32_t payload_bytes; /* 0: what the route carries */
	uint32_t chunk_pkts;
	uint64_t message_bytes;
	uint16_t port;
};

#define FINDING_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

const char *level_name(enum level level);

/* Never NULL. The text is `what`. */
struct finding *finding_add(struct findings *f, const char *area, enum level level, const char *id,
			    const char *fmt, ...) FINDING_PRINTF(5, 6);
/* Each appends: evidence is parted by "; ", commands by newlines. */
void finding_evidence(struct finding *x, const char *fmt, ...) FINDING_PRINTF(2, 3);
void finding_why(struct finding *x, const char *fmt, ...) FINDING_PRINTF(2, 3);
void finding_fix(struct finding *x, const char *fmt, ...) FINDING_PRINTF(2, 3);
/* By id; NULL: there is none. */
const struct finding *finding_find(const struct findings *f, const char *id);
/* 1 if anything is at LEVEL_ATTENTION or LEVEL_FAULT. */
int findings_need_attention(const struct findings *f);

#endif

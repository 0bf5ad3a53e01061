/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's network side: socket buffers, UDP segmentation and coalescing, drops,
 * ports. net_read.c reads, probe.c tries sockets out, net_judge.c judges.
 */
#ifndef SDR_TOOL_DOCTOR_NET_H
#define SDR_TOOL_DOCTOR_NET_H

#include "tool/doctor/finding.h"
#include "tool/doctor/source.h"

#define SOCKBUF_WISH (32u << 20) /* the default of sdr_ctx_attr.sockbuf_bytes */

/* A socket's buffer as the library gets it: SO_RCVBUFFORCE, else SO_RCVBUF, read back. */
struct sockbuf_facts {
	uint64_t wish_bytes, granted_bytes; /* granted 0: the probe failed */
	uint64_t limit_bytes;		    /* rmem_max, wmem_max; 0: unknown */
	int forced;			    /* the limit did not count: privileged */
};

struct gso_facts {
	int no_loopback; /* no socket pair there, for this reason (-errno): nothing tried */
	int error;	 /* -errno of sending */
	uint32_t sent_pkts, received_pkts; /* of a super-packet; of its segments */
	int equal;			   /* bytes and order */
};

struct gro_facts {
	int no_loopback;
	int error; /* the socket option's */
	uint32_t sent_pkts, reads;
	int equal;
};

/* Since boot; of both IP versions. */
struct udp_counts {
	uint64_t in, in_errors, rcvbuf_errors, sndbuf_errors, csum_errors;
	int known;
};

struct softnet_counts {
	uint64_t processed, dropped, squeezed;
	uint32_t cpus;
};

struct port_facts {
	int taken;
	uint64_t inode;
	int pid; /* 0: not known (no permission, or the kernel itself) */
	char comm[32];
};

struct net_facts {
	struct sockbuf_facts rcvbuf, sndbuf;
	struct gso_facts gso;
	struct gro_facts gro;
	struct udp_counts udp;
	struct softnet_counts softnet;
	uint64_t max_backlog, budget; /* 0: unknown */
	uint16_t port;
	struct port_facts udp_port, tcp_port, roce_port;
	int sees_others; /* root: a socket that no process has is the kernel's */
};

void net_read(const struct source *s, uint16_t port, struct net_facts *n);
void udp_counts_read(const struct source *s, struct udp_counts *u);
/* Real sockets on loopback. */
void net_probe(struct net_facts *n);

void net_judge(const struct net_facts *n, const struct goal *goal, int container,
	       struct findings *f);
/* bandwidth x delay, at most what the library asks for. */
uint64_t sockbuf_need(const struct goal *goal);

#endif

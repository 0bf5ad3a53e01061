/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RDMA devices as /sys/class/infiniband shows them, and whether this build can open them.
 * Knows no libibverbs. rdma_read.c reads, rdma_judge.c judges.
 */
#ifndef SDR_TOOL_DOCTOR_RDMA_H
#define SDR_TOOL_DOCTOR_RDMA_H

#include "tool/doctor/finding.h"
#include "tool/doctor/source.h"

#define RDMA_MAX 16
#define RDMA_GIDS 256
#define RDMA_PORTS 8

struct rdma_gid {
	uint32_t port, index;
	char gid[48], type[24], netdev[SOURCE_NAME];
};

struct rdma_port {
	uint32_t number;
	char state[32], phys[32], link_layer[24], rate[48]; /* as the kernel writes them */
	char netdev[SOURCE_NAME];
	uint32_t netdev_mtu;
	/* since it was made; where its driver counts them */
	int counts;
	uint64_t rcv_pkts, out_of_buffer, icrc_errors, rcv_errors;
};

struct rdma_facts {
	char name[SOURCE_NAME], driver[32], node_type[32];
	struct rdma_port port[RDMA_PORTS];
	size_t nports;
	struct rdma_gid gid[RDMA_GIDS]; /* that are not empty */
	size_t ngids;
	int listed;	  /* sdr_device_list() names it */
	int opened;	  /* sdr_ctx_create(): 0, a negative error, or 1: not tried */
	char advice[256]; /* what the library said of it */
};

struct rdma_list {
	struct rdma_facts dev[RDMA_MAX];
	size_t n;
	int kernel_has_rxe; /* the module is loaded or can be found; -1: unknown */
	char netdev[16];    /* one to put Soft-RoCE on */
};

/* `only`: this device, or NULL. */
void rdma_read(const struct source *s, const char *only, struct rdma_list *l);
/* Asks the library for each. */
void rdma_open(struct rdma_list *l);
void rdma_judge(const struct rdma_list *l, struct findings *f);

/* A GID that another host can reach by IP: RoCE v2, neither empty nor link-local. */
int gid_is_routable(const struct rdma_gid *g);

#endif

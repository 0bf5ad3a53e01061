/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network devices: which one leads where, MTU, offloads, speed, drops. dev_read.c asks
 * the kernel, dev_judge.c judges.
 */
#ifndef SDR_TOOL_DOCTOR_DEV_H
#define SDR_TOOL_DOCTOR_DEV_H

#include "tool/doctor/finding.h"
#include "tool/doctor/source.h"

#define DEV_NAME 16
#define DEVS_MAX 8

/* An offload: off, on, or not known; and whether it can be switched. */
struct offload {
	int on; /* -1: unknown */
	int settable;
};

struct dev_facts {
	char name[DEV_NAME];
	int loopback, up;
	int software; /* veth, tun: its speed is a number, and it needs no GRO of its own */
	uint32_t mtu;
	char driver[32];
	uint64_t speed_bps; /* 0: unknown */
	struct offload tso, gso, gro, udp_segmentation;
	uint32_t ring_rx, ring_rx_max; /* 0: unknown */
	uint64_t rx_pkts, rx_dropped, rx_missed, rx_fifo, rx_errors, tx_pkts, tx_dropped;
};

void dev_read(const struct source *s, const char *name, struct dev_facts *d);
/* Devices of default routes; without one, those that are up and not loopback. How many. */
size_t dev_default(const struct source *s, char (*names)[SOURCE_NAME], size_t max);
/* The device that has this local address (IPv4 or IPv6 as text); -1: none has. */
int dev_of_address(const char *addr, char name[DEV_NAME]);

void dev_judge(const struct dev_facts *d, const struct goal *goal, struct findings *f);

#endif

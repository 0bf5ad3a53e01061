/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two ends of a link: a network namespace with a TUN device, addresses and default
 * routes each. Makes and removes them, and enters one. Knows nothing of what goes over the link.
 */
#ifndef SDR_TOOL_WAN_ENDS_H
#define SDR_TOOL_WAN_ENDS_H

#include "tool/wan/names.h"

#include <stdbool.h>
#include <stdint.h>

/* Of the device's queue: a burst must not be lost before the link has seen it. Kernel memory
 * is taken only for what waits there. */
#define WAN_TX_QUEUE_PKTS 10000

struct wan_end_dev {
	int tun;     /* non-blocking; -1: none */
	int netlink; /* in the end's namespace; -1: none */
	int ifindex;
	bool has_v6;
};

struct wan_ends {
	struct wan_end_dev end[2];
	unsigned int offloads; /* TUN_F_... that both devices have */
	unsigned int mtu_bytes;
};

/* Says what a link needs and this process lacks; 0 or -1. */
int wan_ends_allowed(void);
/*
 * Makes both. The calling process must have one thread; it stays in its own namespace. 0, or -1:
 * said; then wan_ends_remove() takes away what there is.
 */
int wan_ends_create(struct wan_ends *e, const struct wan_names *n, unsigned int mtu_bytes,
		    bool offload);
/* Closes the devices, ends the processes that are still in the namespaces (SIGTERM, later
 * SIGKILL), removes the namespaces. Returns how many processes there were. */
int wan_ends_remove(struct wan_ends *e, const struct wan_names *n);
/* The same for the remains of a link whose emulator was killed. */
int wan_ends_clean(const struct wan_names *n);
/* Packets that the device of this end lost in its queue. */
uint64_t wan_ends_tx_dropped(const struct wan_ends *e, enum wan_end end);
/* "csum, tso, uso" or "none" */
void wan_ends_offload_text(const struct wan_ends *e, char *buf, size_t cap);

/* Enters an end as `ip netns exec` does, with a /sys of its own. 0, or -1: said. */
int wan_end_enter(const struct wan_names *n, enum wan_end end);

#endif

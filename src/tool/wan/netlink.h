/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The little of rtnetlink that a link's end needs: addresses, a default route, a device's
 * count of lost packets. A socket belongs to the network namespace in which it was opened, and
 * stays there.
 */
#ifndef SDR_TOOL_WAN_NETLINK_H
#define SDR_TOOL_WAN_NETLINK_H

#include <netinet/in.h>
#include <stdint.h>

/* A descriptor, or negative errno. */
int netlink_open(void);
/* 0 or negative errno, also for the rest. */
int netlink_addr_add(int fd, int ifindex, const struct in_addr *addr, unsigned int prefix_bits);
/* Without duplicate address detection: usable at once. */
int netlink_addr6_add(int fd, int ifindex, const struct in6_addr *addr, unsigned int prefix_bits);
/* family: AF_INET or AF_INET6 */
int netlink_default_route(int fd, int ifindex, int family);
/* What the device lost on its way out. */
int netlink_tx_dropped(int fd, int ifindex, uint64_t *pkts);

#endif

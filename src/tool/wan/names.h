/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a link of `sdr wan` is called on this machine: namespaces, addresses, and its
 * directory, whose lock says whether an emulator lives. All follow from the link's name, so
 * every command finds them without asking.
 *
 *	/run/netns/NAME-a, -b       the namespaces, as iproute2 has them
 *	/run/sdr-wan/NAME/lock      locked while the emulator lives; its pid, for people
 *	/run/sdr-wan/NAME/ctl       the emulator's socket (ctl.h)
 *	/run/sdr-wan/NAME/ns-a, -b  which namespace we made: device and inode
 */
#ifndef SDR_TOOL_WAN_NAMES_H
#define SDR_TOOL_WAN_NAMES_H

#include "tool/wan/line.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WAN_BASE "/run/sdr-wan"
#define WAN_NETNS "/run/netns"
#define WAN_DEVICE "wan0"
#define WAN_NAME_MAX 24
#define WAN_PATH_MAX 80

struct wan_end_names {
	char ns[WAN_NAME_MAX + 3]; /* NAME-a */
	char mount[WAN_PATH_MAX];  /* /run/netns/NAME-a */
	char record[WAN_PATH_MAX]; /* /run/sdr-wan/NAME/ns-a */
	struct in_addr v4;	   /* of 10.0.0.0/8, net of 24 bits */
	struct in6_addr v6;	   /* of fd00::/8 (RFC 4193), net of 64 bits */
	char v4_text[INET_ADDRSTRLEN];
	char v6_text[INET6_ADDRSTRLEN];
};

struct wan_names {
	char name[WAN_NAME_MAX + 1];
	char dir[WAN_PATH_MAX], lock[WAN_PATH_MAX], ctl[WAN_PATH_MAX];
	struct wan_end_names end[2];
};

bool wan_name_ok(const char *name);
/* -1: no name for a link; said. */
int wan_names_init(struct wan_names *n, const char *name);

/*
 * Makes the directory and takes the lock. Returns its descriptor; -EBUSY: an emulator has it;
 * another negative errno, which has been said.
 */
int wan_lock_take(const struct wan_names *n);
enum wan_state {
	WAN_ABSENT, /* no such link */
	WAN_DEAD,   /* remains of an emulator that was killed */
	WAN_UP,
	WAN_DENIED, /* not for this user to know */
};
enum wan_state wan_state(const struct wan_names *n);
/* Removes the directory's files, the directory, and gives the lock back. */
void wan_lock_drop(const struct wan_names *n, int lock);

#endif

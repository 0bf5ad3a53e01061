/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network namespace for tests of rocev2 mode: its port is fixed, so on the host's loopback
 * two tests at once, or the kernel's Soft-RoCE, would be in each other's way; and IPv6's
 * loopback has one address only.
 */
#ifndef SDR_FABRIC_UDP_TEST_NS_H
#define SDR_FABRIC_UDP_TEST_NS_H

#include <sys/socket.h>

/*
 * Moves this process, which has no threads yet, into a namespace of its own, whose loopback is
 * up and has the addresses of test_ns_addr(). 0, or -errno where that is not allowed.
 */
int test_ns_enter(void);
/* The text of one of two addresses of a family, which = 0, 1. IPv6 only in the namespace. */
const char *test_ns_addr(int family, int which);
/* The same as a socket address. */
struct sockaddr_storage test_ns_sockaddr(int family, int which, unsigned short port);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* See test_ns.h. */
#include "fabric/udp/test_ns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* As <linux/ipv6.h> has it, which does not go with <netinet/in.h>. */
struct in6_ifreq {
	struct in6_addr addr;
	uint32_t prefixlen;
	int ifindex;
};

static int loopback_up(void)
{
	struct ifreq req = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;

	if (fd < 0)
		return -errno;
	if (ioctl(fd, SIOCSIFFLAGS, &req) < 0)
		err = -errno;
	close(fd);
	return err;
}

static int loopback_add6(const char *text)
{
	struct in6_ifreq req = {.prefixlen = 128, .ifindex = (int)if_nametoindex("lo")};
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;

	if (fd < 0)
		return -errno;
	if (inet_pton(AF_INET6, text, &req.addr) != 1)
		err = -EINVAL;
	else if (ioctl(fd, SIOCSIFADDR, &req) < 0)
		err = -errno;
	close(fd);
	return err;
}

int test_ns_enter(void)
{
	int err = 0;

	/* Root needs no user namespace, and may be without the right to one. */
	if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return -errno;
	err = loopback_up();
	for (int i = 0; i < 2 && err == 0; i++)
		err = loopback_add6(test_ns_addr(AF_INET6, i));
	return err;
}

const char *test_ns_addr(int family, int which)
{
	static const char *const v4[] = {"127.0.0.1", "127.0.0.2"};
	static const char *const v6[] = {"fd00::1", "fd00::2"};

	return family == AF_INET ? v4[which] : v6[which];
}

struct sockaddr_storage test_ns_sockaddr(int family, int which, unsigned short port)
{
	struct sockaddr_storage ss;

	memset(&ss, 0, sizeof(ss));
	if (family == AF_INET) {
		struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(port)};

		(void)inet_pton(family, test_ns_addr(family, which), &sin.sin_addr);
		memcpy(&ss, &sin, sizeof(sin));
	} else {
		struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

		(void)inet_pton(family, test_ns_addr(family, which), &sin6.sin6_addr);
		memcpy(&ss, &sin6, sizeof(sin6));
	}
	return ss;
}

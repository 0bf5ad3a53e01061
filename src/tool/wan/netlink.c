// SPDX-License-Identifier: Apache-2.0
/*
 * A little of rtnetlink. See netlink.h. One request, one answer; the kernel answers at once, so
 * nothing waits here.
 */
#include "tool/wan/netlink.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_BYTES 16384

struct request {
	struct nlmsghdr head;
	union {
		struct ifaddrmsg addr;
		struct rtmsg route;
		struct ifinfomsg link;
	} u;
	char attrs[128];
};

int netlink_open(void)
{
	struct timeval limit = {.tv_sec = 5};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	return fd;
}

static void begin(struct request *r, uint16_t type, uint16_t flags, size_t body)
{
	memset(r, 0, sizeof *r);
	r->head.nlmsg_len = (uint32_t)NLMSG_LENGTH(body);
	r->head.nlmsg_type = type;
	r->head.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
}

static void add(struct request *r, uint16_t type, const void *data, size_t len)
{
	uint32_t at = NLMSG_ALIGN(r->head.nlmsg_len);
	struct rtattr *a = (struct rtattr *)(void *)((char *)r + at);

	a->rta_type = type;
	a->rta_len = (uint16_t)RTA_LENGTH(len);
	memcpy(RTA_DATA(a), data, len);
	r->head.nlmsg_len = at + RTA_ALIGN(a->rta_len);
}

/* Sends; the answer's bytes, or negative errno. What was left of an earlier one is skipped. */
static ssize_t ask(int fd, struct request *r, void *answer, size_t cap)
{
	static uint32_t seq;
	const struct nlmsghdr *h = answer;
	ssize_t n;

	r->head.nlmsg_seq = ++seq;
	if (send(fd, r, r->head.nlmsg_len, 0) < 0)
		return -errno;
	do {
		n = recv(fd, answer, cap, 0);
		if (n < 0 && errno != EINTR)
			return -errno;
	} while (n < 0 || (n >= (ssize_t)sizeof *h && h->nlmsg_seq != r->head.nlmsg_seq));
	return NLMSG_OK(h, (uint32_t)n) ? n : -EBADMSG;
}

static int error_of(const struct nlmsghdr *h)
{
	const struct nlmsgerr *e = NLMSG_DATA(h);

	if (h->nlmsg_type != NLMSG_ERROR || h->nlmsg_len < NLMSG_LENGTH(sizeof *e))
		return -EBADMSG;
	return e->error;
}

static int request(int fd, struct request *r)
{
	_Alignas(struct nlmsghdr) char answer[ANSWER_BYTES];
	ssize_t n = ask(fd, r, answer, sizeof answer);

	return n < 0 ? (int)n : error_of((const struct nlmsghdr *)(void *)answer);
}

int netlink_addr_add(int fd, int ifindex, const struct in_addr *addr, unsigned int prefix_bits)
{
	struct request r;

	begin(&r, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, sizeof r.u.addr);
	r.u.addr = (struct ifaddrmsg){.ifa_family = AF_INET,
				      .ifa_prefixlen = (uint8_t)prefix_bits,
				      .ifa_index = (uint32_t)ifindex};
	add(&r, IFA_LOCAL, addr, sizeof *addr);
	add(&r, IFA_ADDRESS, addr, sizeof *addr);
	return request(fd, &r);
}

int netlink_addr6_add(int fd, int ifindex, const struct in6_addr *addr, unsigned int prefix_bits)
{
	struct request r;

	begin(&r, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, sizeof r.u.addr);
	r.u.addr = (struct ifaddrmsg){.ifa_family = AF_INET6,
				      .ifa_prefixlen = (uint8_t)prefix_bits,
				      .ifa_flags = IFA_F_NODAD,
				      .ifa_index = (uint32_t)ifindex};
	add(&r, IFA_LOCAL, addr, sizeof *addr);
	add(&r, IFA_ADDRESS, addr, sizeof *addr);
	return request(fd, &r);
}

int netlink_default_route(int fd, int ifindex, int family)
{
	uint32_t oif = (uint32_t)ifindex;
	struct request r;

	begin(&r, RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, sizeof r.u.route);
	r.u.route =
		(struct rtmsg){.rtm_family = (uint8_t)family,
			       .rtm_table = RT_TABLE_MAIN,
			       .rtm_protocol = RTPROT_STATIC,
			       .rtm_scope = family == AF_INET ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE,
			       .rtm_type = RTN_UNICAST};
	add(&r, RTA_OIF, &oif, sizeof oif);
	return request(fd, &r);
}

int netlink_tx_dropped(int fd, int ifindex, uint64_t *pkts)
{
	_Alignas(struct nlmsghdr) char answer[ANSWER_BYTES];
	const struct nlmsghdr *h = (const struct nlmsghdr *)(void *)answer;
	struct request r;
	ssize_t n;
	size_t at, end;

	begin(&r, RTM_GETLINK, 0, sizeof r.u.link);
	r.u.link = (struct ifinfomsg){.ifi_family = AF_UNSPEC, .ifi_index = ifindex};
	n = ask(fd, &r, answer, sizeof answer);
	if (n < 0)
		return (int)n;
	if (h->nlmsg_type != RTM_NEWLINK)
		return error_of(h);
	end = h->nlmsg_len;
	at = NLMSG_LENGTH(NLMSG_ALIGN(sizeof(struct ifinfomsg)));
	while (at + sizeof(struct rtattr) <= end) {
		const struct rtattr *a = (const struct rtattr *)(void *)(answer + at);
		struct rtnl_link_stats64 stats = {0};
		size_t len = a->rta_len;

		if (len < sizeof *a || len > end - at)
			break;
		at += RTA_ALIGN(len);
		if (a->rta_type != IFLA_STATS64)
			continue;
		/* Not aligned to 8 bytes; an older kernel has fewer counters. */
		len -= sizeof *a;
		memcpy(&stats, RTA_DATA(a), len < sizeof stats ? len : sizeof stats);
		*pkts = stats.tx_dropped;
		return 0;
	}
	return -ENODATA;
}

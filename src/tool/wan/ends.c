// SPDX-License-Identifier: Apache-2.0
/*
 * Namespaces and devices of a link. See ends.h. The process unshares its network namespace, has
 * it mounted under /run/netns, makes the device there, and goes back; devices live as long
 * as their descriptors, namespaces as long as the mount or a process in them.
 */
#include "tool/wan/ends.h"

#include "tool/say.h"
#include "tool/wan/netlink.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define V4_PREFIX 24
#define V6_PREFIX 64

/* Since Linux 6.2; older headers lack them. */
#ifndef TUN_F_USO4
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif

/* From the best: what is refused falls back to the next. */
static const unsigned int offload_steps[] = {
	TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN | TUN_F_USO4 | TUN_F_USO6,
	TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN,
	TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6,
	0,
};

/* ---- what is needed ---------------------------------------------------------------- */

static bool has_capability(unsigned int cap)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	memset(data, 0, sizeof data);
	if (syscall(SYS_capget, &head, data) < 0)
		return false;
	return data[cap / 32].effective >> (cap % 32) & 1;
}

static int open_tun(bool tell)
{
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0 || !tell)
		return fd;
	if (errno == ENOENT)
		say("/dev/net/tun is not there: make it (mkdir -p /dev/net; mknod /dev/net/tun c "
		    "10 200; modprobe tun), or start the container with --device /dev/net/tun");
	else if (errno == ENODEV || errno == ENXIO)
		say("/dev/net/tun: this kernel has no TUN devices: load the module with "
		    "'modprobe tun', or use a kernel with CONFIG_TUN");
	else
		say("/dev/net/tun: cannot be opened: %s: in a container, start it with --device "
		    "/dev/net/tun",
		    strerror(errno));
	return -1;
}

int wan_ends_allowed(void)
{
	int fd;

	if (!has_capability(CAP_NET_ADMIN) || !has_capability(CAP_SYS_ADMIN)) {
		say("sdr wan makes network namespaces and devices, which needs root (CAP_NET_ADMIN "
		    "and CAP_SYS_ADMIN): use sudo, or start the container with --cap-add NET_ADMIN "
		    "--cap-add SYS_ADMIN --device /dev/net/tun");
		return -1;
	}
	fd = open_tun(true);
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

/* ---- the namespace ----------------------------------------------------------------- */

/* Other mount namespaces see what is mounted and unmounted in a shared directory only. */
static int share_netns_dir(void)
{
	if (mkdir(WAN_NETNS, 0755) < 0 && errno != EEXIST) {
		say(WAN_NETNS ": cannot be made: %s", strerror(errno));
		return -1;
	}
	if (mount("", WAN_NETNS, "none", MS_SHARED | MS_REC, NULL) == 0)
		return 0;
	if (errno == EINVAL && mount(WAN_NETNS, WAN_NETNS, "none", MS_BIND | MS_REC, NULL) == 0 &&
	    mount("", WAN_NETNS, "none", MS_SHARED | MS_REC, NULL) == 0)
		return 0;
	say(WAN_NETNS ": cannot be shared with other mount namespaces: %s", strerror(errno));
	return -1;
}

/* Writes down which namespace is ours before it has a name, so that nobody else's is removed. */
static int write_record(const struct wan_end_names *n)
{
	struct stat st;
	char text[64];
	int len, fd;

	if (stat("/proc/self/ns/net", &st) < 0) {
		say("/proc/self/ns/net: %s: is /proc mounted?", strerror(errno));
		return -1;
	}
	len = snprintf(text, sizeof text, "%ju %ju\n", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	fd = open(n->record, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, (size_t)len) != len) {
		say("%s: cannot be written: %s", n->record, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	close(fd);
	return 0;
}

static int mount_namespace(const struct wan_end_names *n)
{
	int fd = open(n->mount, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0);

	if (fd < 0) {
		if (errno == EEXIST) {
			say("there is a network namespace %s that is not of sdr wan: choose "
			    "another name for the link, or remove it: ip netns del %s",
			    n->ns, n->ns);
			unlink(n->record); /* so that nobody takes it for ours */
		} else {
			say("%s: cannot be made: %s", n->mount, strerror(errno));
		}
		return -1;
	}
	close(fd);
	if (mount("/proc/self/ns/net", n->mount, "none", MS_BIND, NULL) < 0) {
		say("%s: the namespace cannot be mounted: %s", n->mount, strerror(errno));
		unlink(n->mount);
		return -1;
	}
	return 0;
}

/* ---- the device -------------------------------------------------------------------- */

/* Best effort: a kernel without IPv6 has none of them. Follows the process's namespace. */
static void set_sysctl(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, value, strlen(value)) < 0)
		say("%s: cannot be set to %s: %s", path, value, strerror(errno));
	close(fd);
}

static int device_ioctl(int sock, const char *device, unsigned long what, struct ifreq *r,
			const char *doing)
{
	snprintf(r->ifr_name, sizeof r->ifr_name, "%s", device);
	if (ioctl(sock, what, r) == 0)
		return 0;
	say("device %s: %s: %s", device, doing, strerror(errno));
	return -1;
}

static int device_up(int sock, const char *device)
{
	struct ifreq r = {0};

	if (device_ioctl(sock, device, SIOCGIFFLAGS, &r, "its flags cannot be read") < 0)
		return -1;
	r.ifr_flags = (short)(r.ifr_flags | IFF_UP);
	return device_ioctl(sock, device, SIOCSIFFLAGS, &r, "cannot be brought up");
}

static int make_tun(struct wan_end_dev *d, bool offload, unsigned int *offloads)
{
	struct ifreq r = {.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR};
	size_t step = offload ? 0 : sizeof offload_steps / sizeof offload_steps[0] - 1;

	d->tun = open_tun(true);
	if (d->tun < 0 || device_ioctl(d->tun, WAN_DEVICE, TUNSETIFF, &r, "cannot be made") < 0)
		return -1;
	for (;; step++) {
		if (ioctl(d->tun, TUNSETOFFLOAD, (unsigned long)offload_steps[step]) == 0)
			break;
		if (offload_steps[step] == 0) {
			say("device " WAN_DEVICE ": offloads cannot be set: %s", strerror(errno));
			return -1;
		}
	}
	*offloads &= offload_steps[step];
	return 0;
}

static int set_device(struct wan_end_dev *d, int sock, unsigned int mtu_bytes)
{
	struct ifreq r = {.ifr_mtu = (int)mtu_bytes};

	/* Nothing but the user's packets goes over the link: no solicitations, no link-local. */
	set_sysctl("/proc/sys/net/ipv6/conf/all/disable_ipv6", "0");
	set_sysctl("/proc/sys/net/ipv6/conf/" WAN_DEVICE "/disable_ipv6", "0");
	set_sysctl("/proc/sys/net/ipv6/conf/" WAN_DEVICE "/addr_gen_mode", "1");
	set_sysctl("/proc/sys/net/ipv6/conf/" WAN_DEVICE "/accept_ra", "0");
	set_sysctl("/proc/sys/net/ipv6/conf/" WAN_DEVICE "/router_solicitations", "0");
	if (device_ioctl(sock, WAN_DEVICE, SIOCSIFMTU, &r, "the MTU cannot be set") < 0)
		return -1;
	r = (struct ifreq){.ifr_qlen = WAN_TX_QUEUE_PKTS};
	if (device_ioctl(sock, WAN_DEVICE, SIOCSIFTXQLEN, &r, "the queue cannot be set") < 0 ||
	    device_up(sock, "lo") < 0 || device_up(sock, WAN_DEVICE) < 0)
		return -1;
	r = (struct ifreq){0};
	if (device_ioctl(sock, WAN_DEVICE, SIOCGIFINDEX, &r, "has no index") < 0)
		return -1;
	d->ifindex = r.ifr_ifindex;
	return 0;
}

static int add_addresses(struct wan_end_dev *d, const struct wan_end_names *n)
{
	int rc = netlink_addr_add(d->netlink, d->ifindex, &n->v4, V4_PREFIX);

	if (rc == 0)
		rc = netlink_default_route(d->netlink, d->ifindex, AF_INET);
	if (rc < 0) {
		say("namespace %s: address %s and its route cannot be set: %s", n->ns, n->v4_text,
		    strerror(-rc));
		return -1;
	}
	rc = netlink_addr6_add(d->netlink, d->ifindex, &n->v6, V6_PREFIX);
	if (rc == 0)
		rc = netlink_default_route(d->netlink, d->ifindex, AF_INET6);
	d->has_v6 = rc == 0;
	if (rc == 0 || rc == -EOPNOTSUPP || rc == -EAFNOSUPPORT || rc == -EACCES || rc == -EPERM)
		return 0; /* a kernel without IPv6 still has a link */
	say("namespace %s: address %s and its route cannot be set: %s", n->ns, n->v6_text,
	    strerror(-rc));
	return -1;
}

/* In a namespace of its own that has no name yet. */
static int fill_end(struct wan_ends *e, const struct wan_names *n, int end, bool offload)
{
	struct wan_end_dev *d = &e->end[end];
	int sock, rc;

	if (write_record(&n->end[end]) < 0 || mount_namespace(&n->end[end]) < 0)
		return -1;
	if (make_tun(d, offload, &e->offloads) < 0)
		return -1;
	d->netlink = netlink_open();
	sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (d->netlink < 0 || sock < 0) {
		say("namespace %s: no socket: %s", n->end[end].ns,
		    strerror(d->netlink < 0 ? -d->netlink : errno));
		if (sock >= 0)
			close(sock);
		return -1;
	}
	rc = set_device(d, sock, e->mtu_bytes);
	close(sock);
	return rc < 0 ? -1 : add_addresses(d, &n->end[end]);
}

/* Where the devices differ, both take what both have. */
static int level_offloads(struct wan_ends *e)
{
	for (int end = WAN_A; end <= WAN_B; end++) {
		if (ioctl(e->end[end].tun, TUNSETOFFLOAD, (unsigned long)e->offloads) < 0) {
			say("device " WAN_DEVICE ": offloads cannot be set: %s", strerror(errno));
			return -1;
		}
	}
	return 0;
}

int wan_ends_create(struct wan_ends *e, const struct wan_names *n, unsigned int mtu_bytes,
		    bool offload)
{
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), rc = 0;

	*e = (struct wan_ends){.offloads = UINT32_MAX, .mtu_bytes = mtu_bytes};
	e->end[WAN_A].tun = e->end[WAN_B].tun = -1;
	e->end[WAN_A].netlink = e->end[WAN_B].netlink = -1;
	if (home < 0) {
		say("/proc/self/ns/net: %s: is /proc mounted?", strerror(errno));
		return -1;
	}
	rc = share_netns_dir();
	for (int end = WAN_A; end <= WAN_B && rc == 0; end++) {
		rc = unshare(CLONE_NEWNET);
		if (rc < 0)
			say("a network namespace cannot be made: %s", strerror(errno));
		else
			rc = fill_end(e, n, end, offload);
	}
	/* A process that cannot go home must not go on: it would be a part of the link. */
	if (setns(home, CLONE_NEWNET) < 0) {
		say("the way back into the first network namespace is shut: %s", strerror(errno));
		rc = -1;
	}
	close(home);
	return rc < 0 ? -1 : level_offloads(e);
}

uint64_t wan_ends_tx_dropped(const struct wan_ends *e, enum wan_end end)
{
	uint64_t pkts = 0;

	netlink_tx_dropped(e->end[end].netlink, e->end[end].ifindex, &pkts);
	return pkts;
}

void wan_ends_offload_text(const struct wan_ends *e, char *buf, size_t cap)
{
	snprintf(buf, cap, "%s%s%s", e->offloads & TUN_F_CSUM ? "csum" : "none",
		 e->offloads & TUN_F_TSO4 ? ", tso" : "", e->offloads & TUN_F_USO4 ? ", uso" : "");
}

/* ---- entering ---------------------------------------------------------------------- */

/* /sys/class/net shows the devices of the namespace in which it was mounted. */
static void mount_sys(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount("", "/", "none", MS_SLAVE | MS_REC, NULL) < 0)
		return;
	umount2("/sys", MNT_DETACH);
	/* Best effort: where it may not be mounted, the rest works without. */
	if (mount("sysfs", "/sys", "sysfs", 0, NULL) < 0)
		mount("sysfs", "/sys", "sysfs", MS_RDONLY, NULL);
}

int wan_end_enter(const struct wan_names *n, enum wan_end end)
{
	const char *path = n->end[end].mount;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || setns(fd, CLONE_NEWNET) < 0) {
		if (errno == EPERM)
			say("%s: may not be entered: that needs root (CAP_SYS_ADMIN): use sudo",
			    path);
		else
			say("%s: cannot be entered: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	close(fd);
	mount_sys();
	return 0;
}

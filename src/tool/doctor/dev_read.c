// SPDX-License-Identifier: Apache-2.0
/*
 * Facts of network devices: /sys/class/net, routes, and what ethtool's ioctls say. See
 * dev.h.
 */
#include "tool/doctor/dev.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define FEATURES_MAX 256u
#define IFACES_MAX 64

/* ---- ethtool -------------------------------------------------------------------- */

static int ethtool(int fd, const char *name, void *data)
{
	struct ifreq ifr = {0};

	snprintf(ifr.ifr_name, sizeof ifr.ifr_name, "%.15s", name);
	ifr.ifr_data = data;
	return ioctl(fd, SIOCETHTOOL, &ifr);
}

static void read_flag(int fd, const char *name, uint32_t cmd, struct offload *o)
{
	struct ethtool_value v = {.cmd = cmd};

	*o = (struct offload){.on = -1};
	if (ethtool(fd, name, &v) == 0) {
		o->on = v.data != 0;
		o->settable = 1;
	}
}

/* How many features the kernel names. */
static uint32_t feature_count(int fd, const char *name)
{
	struct ethtool_sset_info *q = calloc(1, sizeof *q + sizeof q->data[0]);
	uint32_t count = 0;

	if (!q)
		return 0;
	q->cmd = ETHTOOL_GSSET_INFO;
	q->sset_mask = UINT64_C(1) << ETH_SS_FEATURES;
	if (ethtool(fd, name, q) == 0 && q->sset_mask)
		count = q->data[0] < FEATURES_MAX ? q->data[0] : FEATURES_MAX;
	free(q);
	return count;
}

static int feature_index(int fd, const char *name, uint32_t count, const char *feature)
{
	struct ethtool_gstrings *g = calloc(1, sizeof *g + (size_t)count * ETH_GSTRING_LEN);
	int at = -1;

	if (!g)
		return -1;
	g->cmd = ETHTOOL_GSTRINGS;
	g->string_set = ETH_SS_FEATURES;
	g->len = count;
	if (ethtool(fd, name, g) == 0) {
		for (uint32_t i = 0; i < g->len && at < 0; i++) {
			if (strncmp((char *)g->data + (size_t)i * ETH_GSTRING_LEN, feature,
				    ETH_GSTRING_LEN) == 0)
				at = (int)i;
		}
	}
	free(g);
	return at;
}

static void read_feature(int fd, const char *name, const char *feature, struct offload *o)
{
	uint32_t count = feature_count(fd, name), blocks = (count + 31) / 32;
	int at = count ? feature_index(fd, name, count, feature) : -1;
	struct ethtool_gfeatures *g;

	*o = (struct offload){.on = -1};
	if (at < 0)
		return;
	g = calloc(1, sizeof *g + blocks * sizeof g->features[0]);
	if (!g)
		return;
	g->cmd = ETHTOOL_GFEATURES;
	g->size = blocks;
	if (ethtool(fd, name, g) == 0) {
		const struct ethtool_get_features_block *b = &g->features[at / 32];
		uint32_t bit = 1u << (at % 32);

		o->on = (b->active & bit) != 0;
		o->settable = (b->available & bit) != 0 && !(b->never_changed & bit);
	}
	free(g);
}

static void read_ethtool(struct dev_facts *d)
{
	struct ethtool_ringparam ring = {.cmd = ETHTOOL_GRINGPARAM};
	struct ethtool_drvinfo drv = {.cmd = ETHTOOL_GDRVINFO};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	d->tso.on = d->gso.on = d->gro.on = d->udp_segmentation.on = -1;
	if (fd < 0)
		return;
	read_flag(fd, d->name, ETHTOOL_GTSO, &d->tso);
	read_flag(fd, d->name, ETHTOOL_GGSO, &d->gso);
	read_flag(fd, d->name, ETHTOOL_GGRO, &d->gro);
	read_feature(fd, d->name, "tx-udp-segmentation", &d->udp_segmentation);
	if (ethtool(fd, d->name, &ring) == 0) {
		d->ring_rx = ring.rx_pending;
		d->ring_rx_max = ring.rx_max_pending;
	}
	if (ethtool(fd, d->name, &drv) == 0)
		snprintf(d->driver, sizeof d->driver, "%.31s", drv.driver);
	close(fd);
}

/* ---- /sys/class/net ------------------------------------------------------------- */

static uint64_t statistic(const struct source *s, const char *dev, const char *name)
{
	uint64_t v = 0;

	(void)source_number(s, &v, "/sys/class/net/%s/statistics/%s", dev, name);
	return v;
}

static void read_statistics(const struct source *s, struct dev_facts *d)
{
	d->rx_pkts = statistic(s, d->name, "rx_packets");
	d->rx_dropped = statistic(s, d->name, "rx_dropped");
	d->rx_missed = statistic(s, d->name, "rx_missed_errors");
	d->rx_fifo = statistic(s, d->name, "rx_fifo_errors");
	d->rx_errors = statistic(s, d->name, "rx_errors");
	d->tx_pkts = statistic(s, d->name, "tx_packets");
	d->tx_dropped = statistic(s, d->name, "tx_dropped");
}

static int is_up(const struct source *s, const char *name)
{
	char text[32];

	/* "unknown" is what devices say that have no carrier to watch. */
	return source_text(s, text, sizeof text, "/sys/class/net/%s/operstate", name) == 0 &&
	       (strcmp(text, "up") == 0 || strcmp(text, "unknown") == 0);
}

void dev_read(const struct source *s, const char *name, struct dev_facts *d)
{
	uint64_t v;

	*d = (struct dev_facts){0};
	snprintf(d->name, sizeof d->name, "%.15s", name);
	d->up = is_up(s, d->name);
	if (source_number(s, &v, "/sys/class/net/%s/type", d->name) == 0)
		d->loopback = v == 772; /* ARPHRD_LOOPBACK */
	if (source_number(s, &v, "/sys/class/net/%s/mtu", d->name) == 0)
		d->mtu = (uint32_t)v;
	if (source_number(s, &v, "/sys/class/net/%s/speed", d->name) == 0 && v < 10000000)
		d->speed_bps = v * 1000000;
	read_statistics(s, d);
	read_ethtool(d);
	if (!*d->driver && source_link(s, d->driver, sizeof d->driver,
				       "/sys/class/net/%s/device/driver", d->name) < 0)
		d->driver[0] = '\0';
	d->software = strcmp(d->driver, "veth") == 0 || strcmp(d->driver, "tun") == 0;
	if (d->software)
		d->speed_bps = 0;
}

/* ---- which devices -------------------------------------------------------------- */

static size_t add_name(char (*names)[SOURCE_NAME], size_t n, size_t max, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(names[i], name) == 0)
			return n;
	}
	if (n < max)
		snprintf(names[n++], SOURCE_NAME, "%s", name);
	return n;
}

static size_t default_v4(const struct source *s, char (*names)[SOURCE_NAME], size_t n, size_t max)
{
	char *text = source_file(s, "/proc/net/route"), *save = NULL, dev[DEV_NAME];

	for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		unsigned int dest, mask;

		if (sscanf(line, "%15s %x %*x %*x %*u %*u %*u %x", dev, &dest, &mask) == 3 &&
		    !dest && !mask)
			n = add_name(names, n, max, dev);
	}
	free(text);
	return n;
}

static size_t default_v6(const struct source *s, char (*names)[SOURCE_NAME], size_t n, size_t max)
{
	char *text = source_file(s, "/proc/net/ipv6_route"), *save = NULL;
	char dest[33], dev[DEV_NAME];

	for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		unsigned int bits;

		if (sscanf(line, "%32s %x %*s %*x %*s %*x %*x %*x %*x %15s", dest, &bits, dev) !=
			    3 ||
		    bits != 0 || strspn(dest, "0") != 32 || strcmp(dev, "lo") == 0)
			continue;
		n = add_name(names, n, max, dev);
	}
	free(text);
	return n;
}

size_t dev_default(const struct source *s, char (*names)[SOURCE_NAME], size_t max)
{
	static char all[IFACES_MAX][SOURCE_NAME];
	size_t n = default_v4(s, names, 0, max), count;

	n = default_v6(s, names, n, max);
	if (n)
		return n;
	count = source_list(s, all, IFACES_MAX, "/sys/class/net");
	for (size_t i = 0; i < count; i++) {
		if (strcmp(all[i], "lo") != 0 && is_up(s, all[i]))
			n = add_name(names, n, max, all[i]);
	}
	return n;
}

int dev_of_address(const char *addr, char name[DEV_NAME])
{
	struct ifaddrs *list, *a;
	char text[INET6_ADDRSTRLEN];
	int rc = -1;

	if (getifaddrs(&list) < 0)
		return -1;
	for (a = list; a && rc < 0; a = a->ifa_next) {
		const struct sockaddr *sa = a->ifa_addr;

		if (!sa)
			continue;
		if (sa->sa_family == AF_INET)
			inet_ntop(AF_INET,
				  &((const struct sockaddr_in *)(const void *)sa)->sin_addr, text,
				  sizeof text);
		else if (sa->sa_family == AF_INET6)
			inet_ntop(AF_INET6,
				  &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, text,
				  sizeof text);
		else
			continue;
		if (strcmp(text, addr) == 0) {
			snprintf(name, DEV_NAME, "%.15s", a->ifa_name);
			rc = 0;
		}
	}
	freeifaddrs(list);
	return rc;
}

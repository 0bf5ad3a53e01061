// SPDX-License-Identifier: Apache-2.0
/*
 * Facts of RDMA devices. See rdma.h.
 */
#include "tool/doctor/rdma.h"

#include <sdr/sdr.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#define CLASS "/sys/class/infiniband"

static void read_port(const struct source *s, struct rdma_facts *d, const char *number)
{
	struct rdma_port *p = &d->port[d->nports++];

	*p = (struct rdma_port){.number = (uint32_t)atoi(number)};
	(void)source_text(s, p->state, sizeof p->state, CLASS "/%s/ports/%s/state", d->name,
			  number);
	(void)source_text(s, p->phys, sizeof p->phys, CLASS "/%s/ports/%s/phys_state", d->name,
			  number);
	(void)source_text(s, p->link_layer, sizeof p->link_layer, CLASS "/%s/ports/%s/link_layer",
			  d->name, number);
	(void)source_text(s, p->rate, sizeof p->rate, CLASS "/%s/ports/%s/rate", d->name, number);
}

/* What NICs drop, by the names that mlx5 gave it; software devices count other things. */
static void read_counts(const struct source *s, const struct rdma_facts *d, struct rdma_port *p)
{
	static const char *const names[] = {
		"counters/port_rcv_packets", "hw_counters/out_of_buffer",
		"hw_counters/rx_icrc_encapsulated", "counters/port_rcv_errors"};
	uint64_t *const to[] = {&p->rcv_pkts, &p->out_of_buffer, &p->icrc_errors, &p->rcv_errors};

	for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
		if (source_number(s, to[i], CLASS "/%s/ports/%u/%s", d->name, p->number,
				  names[i]) == 0 &&
		    i > 0)
			p->counts = 1;
	}
}

static int is_empty_gid(const char *gid)
{
	return gid[strspn(gid, "0:")] == '\0';
}

static void read_gids(const struct source *s, struct rdma_facts *d, const struct rdma_port *p)
{
	for (uint32_t i = 0; i < RDMA_GIDS && d->ngids < RDMA_GIDS; i++) {
		struct rdma_gid *g = &d->gid[d->ngids];

		*g = (struct rdma_gid){.port = p->number, .index = i};
		if (source_text(s, g->gid, sizeof g->gid, CLASS "/%s/ports/%u/gids/%u", d->name,
				p->number, i) < 0)
			return;
		if (is_empty_gid(g->gid))
			continue;
		/* Reading the type of an entry that has none is an error. */
		if (source_text(s, g->type, sizeof g->type, CLASS "/%s/ports/%u/gid_attrs/types/%u",
				d->name, p->number, i) < 0)
			g->type[0] = '\0';
		if (source_text(s, g->netdev, sizeof g->netdev,
				CLASS "/%s/ports/%u/gid_attrs/ndevs/%u", d->name, p->number, i) < 0)
			g->netdev[0] = '\0';
		d->ngids++;
	}
}

static void read_netdev(const struct source *s, struct rdma_facts *d, struct rdma_port *p)
{
	uint64_t mtu;

	if (source_text(s, p->netdev, sizeof p->netdev, CLASS "/%s/parent", d->name) < 0)
		p->netdev[0] = '\0';
	for (size_t i = 0; i < d->ngids && !*p->netdev; i++) {
		if (d->gid[i].port == p->number)
			strcpy(p->netdev, d->gid[i].netdev);
	}
	if (*p->netdev && source_number(s, &mtu, "/sys/class/net/%s/mtu", p->netdev) == 0)
		p->netdev_mtu = (uint32_t)mtu;
}

static void read_device(const struct source *s, const char *name, struct rdma_facts *d)
{
	char ports[RDMA_PORTS][SOURCE_NAME];
	size_t n;

	*d = (struct rdma_facts){.opened = 1};
	snprintf(d->name, sizeof d->name, "%.63s", name);
	(void)source_text(s, d->node_type, sizeof d->node_type, CLASS "/%s/node_type", name);
	if (source_link(s, d->driver, sizeof d->driver, CLASS "/%s/device/driver", name) < 0) {
		/* Software devices have a parent instead, and are named after their driver. */
		snprintf(d->driver, sizeof d->driver, "%.31s",
			 source_exists(s, CLASS "/%s/parent", name) ? "rdma_rxe" : "");
		if (strncmp(name, "siw", 3) == 0)
			strcpy(d->driver, "siw");
	}
	n = source_list(s, ports, RDMA_PORTS, CLASS "/%s/ports", name);
	for (size_t i = 0; i < n; i++) {
		if (isdigit((unsigned char)*ports[i]))
			read_port(s, d, ports[i]);
	}
	for (size_t i = 0; i < d->nports; i++) {
		read_gids(s, d, &d->port[i]);
		read_netdev(s, d, &d->port[i]);
		read_counts(s, d, &d->port[i]);
	}
}

/* Loaded, or among the modules of this kernel; -1 where these cannot be seen (containers). */
static int has_rxe(const struct source *s)
{
	static const char *const ends[] = {"", ".xz", ".zst", ".gz"};
	struct utsname u;

	if (source_exists(s, "/sys/module/rdma_rxe"))
		return 1;
	if (!source_exists(s, "/proc/modules"))
		return 0;
	if (uname(&u) < 0 || !source_exists(s, "/lib/modules/%s", u.release))
		return -1;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		if (source_exists(s,
				  "/lib/modules/%s/kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko%s",
				  u.release, ends[i]))
			return 1;
	}
	return 0;
}

void rdma_read(const struct source *s, const char *only, struct rdma_list *l)
{
	char names[RDMA_MAX][SOURCE_NAME];
	size_t n = source_list(s, names, RDMA_MAX, CLASS);

	l->n = 0;
	for (size_t i = 0; i < n; i++) {
		if (!only || strcmp(only, names[i]) == 0)
			read_device(s, names[i], &l->dev[l->n++]);
	}
	l->kernel_has_rxe = has_rxe(s);
}

static void open_device(struct rdma_facts *d)
{
	struct sdr_ctx_attr attr = {
		.size = sizeof attr, .listen = 1, .why = d->advice, .why_len = sizeof d->advice};
	char device[SOURCE_NAME + 8];
	struct sdr_ctx *ctx;

	snprintf(device, sizeof device, "verbs:%s", d->name);
	attr.device = device;
	d->opened = sdr_ctx_create(&attr, &ctx);
	if (d->opened < 0) {
		if (!*d->advice)
			snprintf(d->advice, sizeof d->advice, "%s", sdr_strerror(d->opened));
		return;
	}
	if (sdr_ctx_advice(ctx, d->advice, sizeof d->advice) < 0)
		d->advice[0] = '\0';
	sdr_ctx_destroy(ctx);
}

void rdma_open(struct rdma_list *l)
{
	struct sdr_device_info info[RDMA_MAX + 4];
	int n;

	for (size_t i = 0; i < sizeof info / sizeof *info; i++)
		info[i].size = sizeof *info;
	n = sdr_device_list(info, sizeof info / sizeof *info);
	if (n > (int)(sizeof info / sizeof *info))
		n = (int)(sizeof info / sizeof *info);
	for (int i = 0; i < n; i++) {
		for (size_t k = 0; k < l->n; k++) {
			const char *name = strchr(info[i].name, ':');

			l->dev[k].listed |= name && strcmp(name + 1, l->dev[k].name) == 0;
		}
	}
	for (size_t k = 0; k < l->n; k++)
		open_device(&l->dev[k]);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * RDMA devices judged. See rdma.h. Plain functions of the facts. Ids are
 * "rdma-NAME-WHAT".
 */
#include "tool/doctor/rdma.h"

#include "tool/doctor/size.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define AREA "rdma"
#define SHARE_BAD 1e-3

int gid_is_routable(const struct rdma_gid *g)
{
	return strcmp(g->type, "RoCE v2") == 0 && strncmp(g->gid, "fe80:", 5) != 0 &&
	       g->gid[strspn(g->gid, "0:")] != '\0';
}

static int is_iwarp(const struct rdma_facts *d)
{
	return strstr(d->node_type, "RNIC") != NULL;
}

/* Of the drivers in the kernel only these make UC queue pairs. */
static int has_uc(const struct rdma_facts *d)
{
	static const char *const uc[] = {"mlx5_core", "mlx4_core", "mlx5_ib", "mlx4_ib",
					 "ib_mthca",  "rdma_rxe",  NULL};

	for (size_t i = 0; uc[i]; i++) {
		if (strcmp(d->driver, uc[i]) == 0)
			return 1;
	}
	return 0;
}

static struct finding *add(struct findings *f, const struct rdma_facts *d, const char *what,
			   enum level level, const char *text)
{
	char id[FINDING_ID];

	snprintf(id, sizeof id, "rdma-%.24s-%.15s", d->name, what);
	return finding_add(f, AREA, level, id, "%s: %s", d->name, text);
}

/* Of one port: "rdma-mlx5_0-gid1". */
static struct finding *add_port(struct findings *f, const struct rdma_facts *d,
				const struct rdma_port *p, const char *what, enum level level,
				const char *text)
{
	char numbered[16];

	snprintf(numbered, sizeof numbered, "%s%u", what, p->number % 1000);
	return add(f, d, numbered, level, text);
}

static void judge_port(const struct rdma_facts *d, const struct rdma_port *p, struct findings *f)
{
	int active = strstr(p->state, "ACTIVE") != NULL;
	char text[160];
	struct finding *x;

	snprintf(text, sizeof text, "port %u %s, %s, %s", p->number,
		 active ? "active" : "not active", *p->link_layer ? p->link_layer : "?",
		 *p->rate ? p->rate : "rate unknown");
	x = add_port(f, d, p, "port", active ? LEVEL_OK : LEVEL_ATTENTION, text);
	finding_evidence(x, "/sys/class/infiniband/%s/ports/%u: state %s, phys_state %s, driver %s",
			 d->name, p->number, p->state, p->phys, *d->driver ? d->driver : "unknown");
	if (active)
		return;
	finding_why(x, "No packet leaves by a port that is not active.");
	if (*p->netdev)
		finding_fix(x, "sudo ip link set %s up", p->netdev);
	else
		finding_fix(x, "rdma link show %s   # then cable, switch, ip link set ... up",
			    d->name);
}

static void judge_gid(const struct rdma_facts *d, const struct rdma_port *p, struct findings *f)
{
	const struct rdma_gid *best = NULL;
	struct finding *x;
	char text[128];
	int shown = 0;

	for (size_t i = 0; i < d->ngids && !best; i++) {
		if (d->gid[i].port == p->number && gid_is_routable(&d->gid[i]))
			best = &d->gid[i];
	}
	if (best)
		snprintf(text, sizeof text, "port %u: GID %u, RoCE v2, %s", p->number, best->index,
			 best->gid);
	else
		snprintf(text, sizeof text, "port %u: no RoCE v2 GID with a routable address",
			 p->number);
	x = add_port(f, d, p, "gid", best ? LEVEL_OK : LEVEL_ATTENTION, text);
	for (size_t i = 0; i < d->ngids && shown < 6; i++) {
		const struct rdma_gid *g = &d->gid[i];

		if (g->port != p->number)
			continue;
		finding_evidence(x, "gids/%u = %s (%s%s%s)", g->index, g->gid,
				 *g->type ? g->type : "no type", *g->netdev ? ", " : "", g->netdev);
		shown++;
	}
	if (!shown)
		finding_evidence(x, "/sys/class/infiniband/%s/ports/%u/gids are all empty", d->name,
				 p->number);
	if (best)
		return;
	finding_why(x, "GIDs follow the addresses of the network device: without an IP address "
		       "no other host can be reached.");
	finding_fix(x, "sudo ip address add ADDRESS/24 dev %s", *p->netdev ? p->netdev : "DEVICE");
}

static void judge_mtu(const struct rdma_facts *d, const struct rdma_port *p, struct findings *f)
{
	uint32_t mtu = size_roce_mtu(p->netdev_mtu, 0);
	char text[128];
	struct finding *x;

	if (!p->netdev_mtu)
		return;
	snprintf(text, sizeof text, "port %u: %u B a packet in an MTU of %u", p->number, mtu,
		 p->netdev_mtu);
	x = add_port(f, d, p, "mtu", mtu >= 4096 ? LEVEL_OK : LEVEL_NOTE, text);
	finding_evidence(x, "/sys/class/net/%s/mtu = %u; 4096 needs 4160 (IPv4)", p->netdev,
			 p->netdev_mtu);
	if (mtu >= 4096)
		return;
	finding_why(x, "Path MTUs of RDMA are powers of two: %u of %u bytes are used.", mtu,
		    p->netdev_mtu);
	finding_fix(x, "sudo ip link set %s mtu 4200   # if the whole path carries it", p->netdev);
}

static void judge_drops(const struct rdma_facts *d, const struct rdma_port *p, struct findings *f)
{
	uint64_t bad = p->out_of_buffer + p->icrc_errors + p->rcv_errors;
	double share = bad ? (double)bad / ((double)bad + (double)p->rcv_pkts) : 0;
	char text[128];
	struct finding *x;

	if (!p->counts)
		return;
	snprintf(text, sizeof text, "port %u: %" PRIu64 " packets dropped by the NIC", p->number,
		 bad);
	x = add_port(f, d, p, "drops",
		     share >= SHARE_BAD ? LEVEL_ATTENTION
		     : bad		? LEVEL_NOTE
					: LEVEL_OK,
		     text);
	finding_evidence(x,
			 "out_of_buffer %" PRIu64 ", rx_icrc_encapsulated %" PRIu64
			 ", port_rcv_errors %" PRIu64 " of %" PRIu64 " packets, by any program",
			 p->out_of_buffer, p->icrc_errors, p->rcv_errors, p->rcv_pkts);
	if (p->out_of_buffer) {
		finding_why(x, "Packets found no receive posted: the program did not keep up.");
		finding_fix(x,
			    "rdma statistic show link %s/%u   # does it rise while you transfer?",
			    d->name, p->number);
	}
	if (p->icrc_errors + p->rcv_errors) {
		finding_why(x, "Packets were damaged, or rewritten on the way (NAT).");
		finding_fix(x, "export SDR_DEVICE=udp   # its packets may be rewritten");
	}
}

static void judge_uc(const struct rdma_facts *d, struct findings *f)
{
	int uc = d->listed || (has_uc(d) && !is_iwarp(d));
	char text[128];
	struct finding *x;

	snprintf(text, sizeof text, "%s", uc ? "UC queue pairs" : "no UC queue pairs");
	x = add(f, d, "uc", uc ? LEVEL_OK : LEVEL_ATTENTION, text);
	finding_evidence(x, "driver %s, node type %s", *d->driver ? d->driver : "unknown",
			 *d->node_type ? d->node_type : "unknown");
	if (d->listed)
		finding_evidence(x, "sdr info lists it");
	if (uc)
		return;
	finding_why(x, "%s",
		    is_iwarp(d) ? "iWARP has reliable connections only."
				: "Of the kernel's drivers mlx4, mlx5, mthca and rxe "
				  "make unreliable connections.");
	finding_fix(x, "export SDR_DEVICE=udp");
}

static void judge_open(const struct rdma_facts *d, struct findings *f)
{
	struct finding *x;

	if (d->opened == -ENODEV) {
		x = add(f, d, "open", LEVEL_NOTE, "this build does not use it");
		finding_evidence(x, "sdr_ctx_create(verbs:%s): %s", d->name, d->advice);
		finding_why(x, "Plain UDP is used instead.");
		return;
	}
	if (d->opened == 1) {
		x = add(f, d, "open", LEVEL_SKIPPED, "not opened");
		finding_evidence(x, "opening it was not tried");
		return;
	}
	x = add(f, d, "open", d->opened < 0 ? LEVEL_ATTENTION : LEVEL_OK,
		d->opened < 0 ? "cannot be used" : "can be opened");
	finding_evidence(x, "sdr_ctx_create(verbs:%s) = %d%s%s", d->name,
			 d->opened < 0 ? d->opened : 0, *d->advice ? ": " : "", d->advice);
	if (d->opened >= 0)
		return;
	if (d->opened == -EPERM || d->opened == -EACCES) {
		finding_why(x, "Its device file may not be opened.");
		finding_fix(x, "sudo chmod 666 /dev/infiniband/uverbs*");
		finding_fix(x, "docker run --device /dev/infiniband --ulimit memlock=-1:-1 ...");
	} else if (d->opened == -ENOMEM) {
		finding_why(x, "Memory could not be locked.");
		finding_fix(x, "ulimit -l unlimited");
	} else {
		finding_why(x, "The library cannot use this device.");
		finding_fix(x, "export SDR_DEVICE=udp");
	}
}

static void judge_none(const struct rdma_list *l, struct findings *f)
{
	struct finding *x;

	x = finding_add(f, AREA, LEVEL_NOTE, "rdma", "no RDMA device: plain UDP is used");
	finding_evidence(x, "/sys/class/infiniband is empty or not there");
	finding_why(x, "None is needed; Soft-RoCE would do for trying RDMA out.");
	if (l->kernel_has_rxe == 0) {
		finding_evidence(x, "this kernel has no module rdma_rxe");
		finding_fix(x, "# Soft-RoCE needs the kernel module rdma_rxe: the stock kernels of "
			       "distributions have it");
		return;
	}
	finding_fix(x, "sudo rdma link add rxe0 type rxe netdev %s",
		    *l->netdev ? l->netdev : "eth0");
}

void rdma_judge(const struct rdma_list *l, struct findings *f)
{
	if (l->n == 0)
		judge_none(l, f);
	for (size_t i = 0; i < l->n; i++) {
		const struct rdma_facts *d = &l->dev[i];

		for (size_t k = 0; k < d->nports; k++) {
			judge_port(d, &d->port[k], f);
			if (strcmp(d->port[k].link_layer, "Ethernet") != 0 || is_iwarp(d))
				continue;
			judge_gid(d, &d->port[k], f);
			judge_mtu(d, &d->port[k], f);
			judge_drops(d, &d->port[k], f);
		}
		judge_uc(d, f);
		judge_open(d, f);
	}
}

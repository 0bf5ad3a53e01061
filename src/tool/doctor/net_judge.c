// SPDX-License-Identifier: Apache-2.0
/*
 * Socket buffers, segmentation, drops and ports judged. See net.h. Plain functions of the
 * facts.
 */
#include "tool/doctor/net.h"

#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define AREA "net"
#define SNDBUF_LEAST (UINT64_C(256) << 10) /* four trains of one system call each */
#define SHARE_BAD 1e-3			   /* of packets: from here on drops cost speed */
#define SQUEEZE_BAD 0.01

/* ---- buffers -------------------------------------------------------------------- */

uint64_t sockbuf_need(const struct goal *goal)
{
	double bytes = (double)goal->bw_bps / 8 * (double)goal->rtt_ns / 1e9;

	return bytes >= SOCKBUF_WISH ? SOCKBUF_WISH : (uint64_t)bytes;
}

/* Powers of two read better in a sysctl line, and a line is written once for all paths. */
static uint64_t sysctl_bytes(uint64_t need)
{
	uint64_t v = 1u << 20;

	while (v < need)
		v *= 2;
	return v;
}

static void goal_text(const struct goal *goal, char *buf, size_t cap)
{
	char bw[UNITS_TEXT], rtt[UNITS_TEXT], bdp[UNITS_TEXT];

	units_rate_text(bw, (double)goal->bw_bps);
	units_time_text(rtt, goal->rtt_ns);
	units_size_text(bdp, (uint64_t)((double)goal->bw_bps / 8 * (double)goal->rtt_ns / 1e9));
	snprintf(buf, cap, "%s x %s = %s in flight", bw, rtt, bdp);
}

static void judge_buffer(const struct sockbuf_facts *b, const struct goal *goal, int receive,
			 int container, struct findings *f)
{
	const char *dir = receive ? "receive" : "send", *sysctl = receive ? "rmem_max" : "wmem_max";
	const char *id = receive ? "rcvbuf" : "sndbuf";
	uint64_t need = sockbuf_need(goal);
	char got[UNITS_TEXT], want[UNITS_TEXT], why[128];
	enum level level = LEVEL_OK;
	struct finding *x;

	if (!b->granted_bytes) {
		x = finding_add(f, AREA, LEVEL_FAULT, id, "no UDP socket could be opened");
		finding_evidence(x, "socket(AF_INET, SOCK_DGRAM) or getsockopt failed");
		finding_why(x, "Nothing works without one.");
		finding_fix(x, "ulimit -n 4096");
		return;
	}
	/* What is sent waits a short time only, in pieces of at most 64 KiB. */
	if (b->granted_bytes < need)
		level = receive || b->granted_bytes < SNDBUF_LEAST ? LEVEL_ATTENTION : LEVEL_NOTE;
	units_size_text(got, b->granted_bytes);
	units_size_text(want, need);
	x = finding_add(f, AREA, level, id, "socket buffer to %s: %s granted, %s wanted", dir, got,
			want);
	goal_text(goal, why, sizeof why);
	finding_evidence(x, "%s (at most %u MiB is asked for)", why, SOCKBUF_WISH >> 20);
	finding_evidence(x, "SO_%s%s read back: %" PRIu64, receive ? "RCVBUF" : "SNDBUF",
			 b->forced ? "FORCE (privileged)" : "", b->granted_bytes);
	finding_evidence(x, "/proc/sys/net/core/%s = %" PRIu64, sysctl, b->limit_bytes);
	if (b->forced && b->limit_bytes < need)
		finding_evidence(x, "without privileges it would be %" PRIu64, b->limit_bytes);
	if (level == LEVEL_OK)
		return;
	finding_why(x, "%s",
		    receive ? "What arrives while the receiver does not run overflows it, "
			      "and looks like loss on the path."
			    : "A full buffer makes the sender stop and go.");
	finding_fix(x, "sudo sysctl -w net.core.%s=%" PRIu64, sysctl, sysctl_bytes(need));
	if (container)
		finding_fix(x, "# on the host, not in the container: it is not namespaced");
}

/* ---- segmentation and coalescing ------------------------------------------------ */

static void judge_gso(const struct gso_facts *g, struct findings *f)
{
	static const char fix[] = "# install a newer kernel (UDP_SEGMENT came with 4.18)";
	struct finding *x;

	if (g->no_loopback) {
		x = finding_add(f, AREA, LEVEL_ATTENTION, "gso",
				"loopback does not work, so nothing was tried on it: %s",
				strerror(-g->no_loopback));
		finding_evidence(x, "UDP from 127.0.0.1 to 127.0.0.1: %s",
				 strerror(-g->no_loopback));
		finding_why(x, "Many programs need it, and what UDP can do here stays unknown.");
		finding_fix(x, "sudo ip link set lo up");
		return;
	}
	if (g->error) {
		x = finding_add(f, AREA, LEVEL_ATTENTION, "gso",
				"UDP segmentation offload does not work: %s", strerror(-g->error));
		finding_evidence(x, "sending with UDP_SEGMENT: %s", strerror(-g->error));
	} else if (!g->equal) {
		x = finding_add(f, AREA, LEVEL_FAULT, "gso",
				"UDP segmentation offload loses or changes bytes");
		finding_evidence(x,
				 "%u packets in one super-packet over loopback, %u arrived, bytes "
				 "differ",
				 g->sent_pkts, g->received_pkts);
	} else {
		x = finding_add(f, AREA, LEVEL_OK, "gso", "UDP segmentation offload (GSO) works");
		finding_evidence(x,
				 "%u packets in one super-packet over loopback, %u arrived, bytes "
				 "equal",
				 g->sent_pkts, g->received_pkts);
		return;
	}
	finding_why(x, "Each packet costs a system call: a third to a tenth of the speed.");
	finding_fix(x, "%s", fix);
}

static void judge_gro(const struct gro_facts *g, struct findings *f)
{
	struct finding *x;

	if (g->no_loopback) {
		x = finding_add(f, AREA, LEVEL_SKIPPED, "gro", "UDP coalescing not tried");
		finding_evidence(x, "loopback: %s", strerror(-g->no_loopback));
		return;
	}
	if (g->error) {
		x = finding_add(f, AREA, LEVEL_ATTENTION, "gro", "UDP coalescing does not work: %s",
				strerror(-g->error));
		finding_evidence(x, "setsockopt(UDP_GRO): %s", strerror(-g->error));
	} else if (!g->equal) {
		x = finding_add(f, AREA, LEVEL_FAULT, "gro",
				"UDP coalescing loses or changes bytes");
		finding_evidence(x, "%u packets over loopback, %u reads, bytes differ",
				 g->sent_pkts, g->reads);
	} else if (g->reads >= g->sent_pkts) {
		x = finding_add(f, AREA, LEVEL_NOTE, "gro", "UDP coalescing joined nothing");
		finding_evidence(x, "%u packets over loopback came in %u reads", g->sent_pkts,
				 g->reads);
	} else {
		x = finding_add(f, AREA, LEVEL_OK, "gro", "UDP coalescing (GRO) works");
		finding_evidence(x, "%u packets over loopback came in %u read%s, bytes equal",
				 g->sent_pkts, g->reads, g->reads == 1 ? "" : "s");
		return;
	}
	finding_why(x, "Each packet costs the receiver a system call.");
	finding_fix(x, "# install a newer kernel (UDP_GRO came with 5.0)");
}

/* ---- drops ---------------------------------------------------------------------- */

static double share(uint64_t part, uint64_t rest)
{
	return part ? (double)part / ((double)part + (double)rest) : 0;
}

static void judge_rcvbuf_errors(const struct net_facts *n, struct findings *f)
{
	const struct udp_counts *u = &n->udp;
	double bad = share(u->rcvbuf_errors, u->in);
	struct finding *x;

	x = finding_add(f, AREA,
			bad >= SHARE_BAD   ? LEVEL_ATTENTION
			: u->rcvbuf_errors ? LEVEL_NOTE
					   : LEVEL_OK,
			"udp-drops", "%" PRIu64 " datagrams lost to full socket buffers since boot",
			u->rcvbuf_errors);
	finding_evidence(x,
			 "/proc/net/snmp and snmp6: RcvbufErrors %" PRIu64 " of %" PRIu64
			 " (%.2g %%), by any program",
			 u->rcvbuf_errors, u->rcvbuf_errors + u->in, 100 * bad);
	if (!u->rcvbuf_errors)
		return;
	finding_why(x, "They look like loss on the path and are sent again; give HOST to see "
		       "whether it is this program's.");
	finding_fix(x, "sudo sysctl -w net.core.rmem_max=%" PRIu64, sysctl_bytes(SOCKBUF_WISH));
	finding_fix(x, "sdr recv --workers 1");
}

static void judge_udp_errors(const struct net_facts *n, struct findings *f)
{
	const struct udp_counts *u = &n->udp;
	/* InErrors counts full buffers and checksums too. */
	uint64_t known = u->rcvbuf_errors + u->csum_errors;
	uint64_t other = u->in_errors > known ? u->in_errors - known : 0;
	double bad = share(u->csum_errors + other, u->in);
	struct finding *x;

	x = finding_add(f, AREA,
			bad >= SHARE_BAD       ? LEVEL_ATTENTION
			: bad > 0	       ? LEVEL_NOTE
			: u->sndbuf_errors > 0 ? LEVEL_NOTE
					       : LEVEL_OK,
			"udp-errors",
			"%" PRIu64 " wrong checksums, %" PRIu64 " other errors, %" PRIu64
			" full sends since boot",
			u->csum_errors, other, u->sndbuf_errors);
	finding_evidence(x,
			 "/proc/net/snmp and snmp6: InCsumErrors %" PRIu64 ", InErrors %" PRIu64
			 ", SndbufErrors %" PRIu64,
			 u->csum_errors, u->in_errors, u->sndbuf_errors);
	if (u->csum_errors) {
		finding_why(x, "Packets are damaged on the way, or a device's checksum offload "
			       "is broken.");
		finding_fix(x, "sudo ethtool -K DEVICE rx off tx off   # to find out which");
	} else if (u->sndbuf_errors) {
		finding_why(x, "Sends found the device's queue or the socket's buffer full.");
		finding_fix(x, "sudo sysctl -w net.core.wmem_max=%u", SOCKBUF_WISH);
	} else if (other) {
		finding_why(x, "The kernel threw datagrams away for want of memory.");
		finding_fix(x, "sysctl net.ipv4.udp_mem");
	}
}

static void judge_softnet(const struct net_facts *n, struct findings *f)
{
	const struct softnet_counts *c = &n->softnet;
	double dropped = share(c->dropped, c->processed);
	double squeezed = share(c->squeezed, c->processed);
	struct finding *x;

	if (!c->cpus) {
		x = finding_add(f, AREA, LEVEL_SKIPPED, "softnet", "backlog drops unknown");
		finding_evidence(x, "/proc/net/softnet_stat cannot be read");
		return;
	}
	x = finding_add(f, AREA,
			dropped >= SHARE_BAD ? LEVEL_ATTENTION
			: c->dropped || (squeezed >= SQUEEZE_BAD && c->squeezed > 100) ? LEVEL_NOTE
										       : LEVEL_OK,
			"softnet", "%" PRIu64 " packets dropped between device and socket",
			c->dropped);
	finding_evidence(x,
			 "/proc/net/softnet_stat, %u CPUs: %" PRIu64 " processed, %" PRIu64
			 " dropped, %" PRIu64 " times out of budget",
			 c->cpus, c->processed, c->dropped, c->squeezed);
	finding_evidence(x, "net.core.netdev_max_backlog = %" PRIu64 ", netdev_budget = %" PRIu64,
			 n->max_backlog, n->budget);
	if (c->dropped) {
		finding_why(x, "The backlog of a CPU was full: bursts are longer than it.");
		finding_fix(x, "sudo sysctl -w net.core.netdev_max_backlog=%" PRIu64,
			    n->max_backlog >= 8192 ? 4 * n->max_backlog : 16384);
	}
	if (squeezed >= SQUEEZE_BAD && c->squeezed > 100) {
		finding_why(x, "The kernel's network work often ran out of its time slice.");
		finding_fix(x, "sudo sysctl -w net.core.netdev_budget=%" PRIu64,
			    n->budget ? 2 * n->budget : 600);
	}
}

/* ---- ports ---------------------------------------------------------------------- */

static void holder_text(const struct port_facts *p, char *buf, size_t cap)
{
	if (p->pid)
		snprintf(buf, cap, "%s (pid %d)", p->comm, p->pid);
	else
		snprintf(buf, cap, "the kernel or a process that we may not look into");
}

static void judge_port(const struct net_facts *n, struct findings *f)
{
	const struct port_facts *u = &n->udp_port, *t = &n->tcp_port;
	const struct port_facts *p = u->taken ? u : t;
	char who[96];
	int ours = u->taken && t->taken && u->pid == t->pid && strcmp(u->comm, "sdr") == 0;
	struct finding *x;

	if (!u->taken && !t->taken) {
		x = finding_add(f, AREA, LEVEL_OK, "port", "port %u is free (UDP and TCP)",
				n->port);
		finding_evidence(x, "/proc/net/udp, udp6, tcp, tcp6");
		return;
	}
	holder_text(p, who, sizeof who);
	x = finding_add(f, AREA, ours ? LEVEL_OK : LEVEL_ATTENTION, "port", "port %u (%s): %s %s",
			n->port,
			u->taken && t->taken ? "UDP and TCP"
			: u->taken	     ? "UDP"
					     : "TCP",
			ours ? "listened on by" : "taken by", who);
	finding_evidence(x, "/proc/net/%s: port %u, inode %" PRIu64, u->taken ? "udp" : "tcp",
			 n->port, p->inode);
	if (ours)
		return;
	finding_why(x, "sdr recv and sdr perf cannot listen there.");
	finding_fix(x, "sdr recv --port %u   # or stop the other: sudo ss -lunpt sport = :%u",
		    n->port < 65535 ? n->port + 1u : 4793u, n->port);
}

static void judge_roce_port(const struct net_facts *n, struct findings *f)
{
	const struct port_facts *p = &n->roce_port;
	char who[96];
	struct finding *x;

	if (!p->taken) {
		x = finding_add(f, AREA, LEVEL_OK, "port-roce", "port 4791 (RoCEv2) is free");
		finding_evidence(x, "/proc/net/udp, udp6");
		return;
	}
	holder_text(p, who, sizeof who);
	x = finding_add(f, AREA, p->pid ? LEVEL_NOTE : LEVEL_OK, "port-roce",
			"port 4791 (RoCEv2) is held by %s",
			p->pid		 ? who
			: n->sees_others ? "the kernel (Soft-RoCE)"
					 : "the kernel (Soft-RoCE) or another user's process");
	finding_evidence(x, "/proc/net/udp: port 4791, inode %" PRIu64 "%s", p->inode,
			 p->pid ? "" : ", of no process that we see");
	if (p->pid) {
		finding_why(x, "Soft-RoCE cannot be added while a program holds its port.");
		finding_fix(x, "sudo ss -lunp sport = :4791");
	}
}

void net_judge(const struct net_facts *n, const struct goal *goal, int container,
	       struct findings *f)
{
	judge_buffer(&n->rcvbuf, goal, 1, container, f);
	judge_buffer(&n->sndbuf, goal, 0, container, f);
	judge_gso(&n->gso, f);
	judge_gro(&n->gro, f);
	if (n->udp.known) {
		judge_rcvbuf_errors(n, f);
		judge_udp_errors(n, f);
	} else {
		finding_evidence(
			finding_add(f, AREA, LEVEL_SKIPPED, "udp-drops", "UDP counters unknown"),
			"/proc/net/snmp has no line Udp:");
	}
	judge_softnet(n, f);
	judge_port(n, f);
	judge_roce_port(n, f);
}

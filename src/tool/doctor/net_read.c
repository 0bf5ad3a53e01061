// SPDX-License-Identifier: Apache-2.0
/*
 * Facts of the kernel's network side from /proc. See net.h.
 */
#include "tool/doctor/net.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROCE_PORT 4791
#define TCP_LISTEN 0x0a

/* ---- counters ------------------------------------------------------------------- */

/* /proc/net/snmp: a line of names, then a line of values, both after "Udp:". */
static int snmp_value(const char *text, const char *name, uint64_t *out)
{
	const char *names = strstr(text, "Udp: "), *values;
	unsigned int at = 0, i = 0;
	const char *p;

	if (!names || (names != text && names[-1] != '\n'))
		return -1;
	values = strstr(names + 1, "\nUdp: ");
	if (!values)
		return -1;
	p = strstr(names, name);
	if (!p || p > values)
		return -1;
	for (const char *q = names; q < p; q++)
		at += *q == ' ';
	for (p = values + 1; *p && *p != '\n' && i < at; p++)
		i += *p == ' ';
	return i == at && sscanf(p, "%" SCNu64, out) == 1 ? 0 : -1;
}

static void add_v4(const char *text, struct udp_counts *u)
{
	static const char *const names[] = {"InDatagrams", "InErrors", "RcvbufErrors",
					    "SndbufErrors", "InCsumErrors"};
	uint64_t *const to[] = {&u->in, &u->in_errors, &u->rcvbuf_errors, &u->sndbuf_errors,
				&u->csum_errors};

	for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
		uint64_t v;

		if (snmp_value(text, names[i], &v) == 0) {
			*to[i] += v;
			u->known = 1;
		}
	}
}

static void add_v6(const char *text, struct udp_counts *u)
{
	static const char *const names[] = {"Udp6InDatagrams", "Udp6InErrors", "Udp6RcvbufErrors",
					    "Udp6SndbufErrors", "Udp6InCsumErrors"};
	uint64_t *const to[] = {&u->in, &u->in_errors, &u->rcvbuf_errors, &u->sndbuf_errors,
				&u->csum_errors};

	for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
		uint64_t v;

		if (text_field(text, names[i], &v) == 0)
			*to[i] += v;
	}
}

void udp_counts_read(const struct source *s, struct udp_counts *u)
{
	char *text = source_file(s, "/proc/net/snmp");

	*u = (struct udp_counts){0};
	if (text)
		add_v4(text, u);
	free(text);
	text = source_file(s, "/proc/net/snmp6");
	if (text)
		add_v6(text, u);
	free(text);
}

/* A line a CPU: processed, dropped, squeezed, ... in hexadecimal. */
static void read_softnet(const struct source *s, struct softnet_counts *c)
{
	char *text = source_file(s, "/proc/net/softnet_stat"), *save = NULL;

	for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		uint64_t processed, dropped, squeezed;

		if (sscanf(line, "%" SCNx64 " %" SCNx64 " %" SCNx64, &processed, &dropped,
			   &squeezed) != 3)
			continue;
		c->processed += processed;
		c->dropped += dropped;
		c->squeezed += squeezed;
		c->cpus++;
	}
	free(text);
}

/* ---- ports ---------------------------------------------------------------------- */

/*
 * A line of /proc/net/udp and tcp: "sl: ADDR:PORT REMOTE:PORT STATE queues timer retrnsmt
 * uid timeout INODE ...". 1: it is bound to the port (TCP: and listens).
 */
static int line_has_port(const char *line, uint16_t port, int tcp, uint64_t *inode)
{
	unsigned int local, remote, state;

	if (sscanf(line,
		   " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%x %x %*x:%*x %*x:%*x %*x %*u %*u "
		   "%" SCNu64,
		   &local, &remote, &state, inode) != 4)
		return 0;
	/* A connected UDP socket is somebody's flow, not a listener. */
	return local == port && (tcp ? state == TCP_LISTEN : remote == 0);
}

static void find_port(const struct source *s, const char *table, uint16_t port, int tcp,
		      struct port_facts *p)
{
	char *text = source_file(s, "/proc/net/%s", table), *save = NULL;

	for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line && !p->taken;
	     line = strtok_r(NULL, "\n", &save))
		p->taken = line_has_port(line, port, tcp, &p->inode);
	free(text);
}

static int has_socket(const struct source *s, const char *pid, const char *want)
{
	static char names[4096][SOURCE_NAME];
	size_t n = source_list(s, names, 4096, "/proc/%s/fd", pid);
	char to[64];

	for (size_t i = 0; i < n; i++) {
		if (source_link(s, to, sizeof to, "/proc/%s/fd/%s", pid, names[i]) == 0 &&
		    strcmp(to, want) == 0)
			return 1;
	}
	return 0;
}

/* Whose socket it is; only of processes that we may look into. */
static void find_holder(const struct source *s, struct port_facts *p)
{
	static char pids[8192][SOURCE_NAME];
	size_t n = source_list(s, pids, 8192, "/proc");
	char want[64];

	snprintf(want, sizeof want, "socket:[%" PRIu64 "]", p->inode);
	for (size_t i = 0; i < n; i++) {
		if (*pids[i] < '0' || *pids[i] > '9' || !has_socket(s, pids[i], want))
			continue;
		p->pid = atoi(pids[i]);
		if (source_text(s, p->comm, sizeof p->comm, "/proc/%s/comm", pids[i]) < 0)
			p->comm[0] = '\0';
		return;
	}
}

static void read_port(const struct source *s, uint16_t port, int tcp, struct port_facts *p)
{
	*p = (struct port_facts){0};
	find_port(s, tcp ? "tcp" : "udp", port, tcp, p);
	find_port(s, tcp ? "tcp6" : "udp6", port, tcp, p);
	if (p->taken && p->inode)
		find_holder(s, p);
}

void net_read(const struct source *s, uint16_t port, struct net_facts *n)
{
	(void)source_number(s, &n->rcvbuf.limit_bytes, "/proc/sys/net/core/rmem_max");
	(void)source_number(s, &n->sndbuf.limit_bytes, "/proc/sys/net/core/wmem_max");
	(void)source_number(s, &n->max_backlog, "/proc/sys/net/core/netdev_max_backlog");
	(void)source_number(s, &n->budget, "/proc/sys/net/core/netdev_budget");
	udp_counts_read(s, &n->udp);
	n->softnet = (struct softnet_counts){0};
	read_softnet(s, &n->softnet);
	n->port = port;
	n->sees_others = geteuid() == 0;
	read_port(s, port, 0, &n->udp_port);
	read_port(s, port, 1, &n->tcp_port);
	read_port(s, ROCE_PORT, 0, &n->roce_port);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Text and JSON. See print.h. Text is wrapped at words, commands are not: they are there
 * to be copied.
 */
#include "tool/doctor/print.h"

#include "tool/json.h"
#include "tool/say.h"
#include "tool/utf8.h"

#include "base/units.h"

#include <sdr/sdr.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COLUMNS 100u
#define INDENT 14u /* of what a finding says, after its level */
#define TEXT_MAX 4096

static const char *colour_of(enum level level)
{
	static const char *const codes[LEVELS] = {"\033[32m", "\033[36m", "\033[1;33m",
						  "\033[1;31m", "\033[2m"};

	return codes[level];
}

/* Columns that the first `len` bytes take on a terminal: characters, not bytes. */
static unsigned int columns_of(const char *text, size_t len)
{
	unsigned int n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
	return n;
}

/* Text from column `at` on, wrapped at spaces, its other lines indented by `indent`. */
static void wrap(const char *text, unsigned int at, unsigned int indent)
{
	char safe[TEXT_MAX];
	const char *p = safe;
	int first = 1;

	say_safe(safe, sizeof safe, text);
	while (*p) {
		size_t len = strcspn(p, " ");
		unsigned int wide = columns_of(p, len);

		if (!first && at + 1 + wide > COLUMNS) {
			printf("\n%*s", (int)indent, "");
			at = indent;
			first = 1;
		}
		printf("%s%.*s", first ? "" : " ", (int)len, p);
		at += wide + !first;
		first = 0;
		p += len;
		p += *p == ' ';
	}
	printf("\n");
}

static void line(const char *head, const char *text)
{
	printf("%*s%s", (int)INDENT, "", head);
	wrap(text, INDENT + columns_of(head, strlen(head)), INDENT + 2);
}

static void print_commands(const char *fix, int colour)
{
	char command[sizeof((struct finding *)0)->fix], safe[TEXT_MAX];

	for (const char *p = fix; *p;) {
		size_t len = strcspn(p, "\n");

		snprintf(command, sizeof command, "%.*s", (int)len, p);
		say_safe(safe, sizeof safe, command);
		/* What begins with # is for a person, the rest for a shell. */
		printf("%*s%s%s%s%s\n", (int)INDENT, "", *safe == '#' ? "" : "$ ",
		       colour ? "\033[1m" : "", safe, colour ? "\033[0m" : "");
		p += len;
		p += *p == '\n';
	}
}

static void print_finding(const struct finding *x, int verbose, int colour)
{
	int full = verbose || x->level == LEVEL_ATTENTION || x->level == LEVEL_FAULT;
	char text[sizeof x->what + sizeof x->id + 4];

	printf("  %s%-9s%s   ", colour ? colour_of(x->level) : "", level_name(x->level),
	       colour ? "\033[0m" : "");
	snprintf(text, sizeof text, full ? "%s [%s]" : "%s", x->what, x->id);
	wrap(text, INDENT, INDENT);
	if (!full)
		return;
	if (*x->evidence)
		line("", x->evidence);
	if (*x->why)
		line("", x->why);
	print_commands(x->fix, colour);
}

static void print_head(const struct doctor_report *r)
{
	char bw[UNITS_TEXT], rtt[UNITS_TEXT], memory[UNITS_TEXT], text[768];
	const struct host_facts *h = r->host;

	snprintf(text, sizeof text, "sdr %s on %s: Linux %s, %s, %u CPU%s, %s%s", sdr_version(),
		 h->name, h->kernel, h->machine, h->cpus_online, h->cpus_online == 1 ? "" : "s",
		 units_size_text(memory, h->memory_bytes), h->container ? ", in a container" : "");
	wrap(text, 0, 2);
	snprintf(text, sizeof text, "wanted: %s at %s%s%s",
		 units_rate_text(bw, (double)r->goal->bw_bps),
		 units_time_text(rtt, r->goal->rtt_ns), r->path ? " to " : "",
		 r->path ? r->path->target : "");
	wrap(text, 0, 2);
}

static const char *title(const char *area)
{
	static const char *const names[][2] = {
		{"host", "Host"},
		{"net", "Network of the kernel"},
		{"device", "Network devices"},
		{"size", "Sizes"},
		{"rdma", "RDMA devices"},
		{"path", "Path"},
		{"checklist", "Checklist"},
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (strcmp(names[i][0], area) == 0)
			return names[i][1];
	}
	return area;
}

static void print_end(const struct findings *f, int verbose)
{
	size_t bad = f->count[LEVEL_ATTENTION] + f->count[LEVEL_FAULT];

	printf("\n%zu of %zu need%s attention (%zu fault%s); %zu note%s, %zu skipped, %zu ok%s\n",
	       bad, f->n, bad == 1 ? "s" : "", f->count[LEVEL_FAULT],
	       f->count[LEVEL_FAULT] == 1 ? "" : "s", f->count[LEVEL_NOTE],
	       f->count[LEVEL_NOTE] == 1 ? "" : "s", f->count[LEVEL_SKIPPED], f->count[LEVEL_OK],
	       verbose ? "" : "; --verbose shows the evidence of all");
}

void doctor_print_text(const struct doctor_report *r, int verbose, int colour)
{
	const char *area = "";

	print_head(r);
	for (size_t i = 0; i < r->f->n; i++) {
		const struct finding *x = &r->f->list[i];

		if (strcmp(area, x->area) != 0)
			printf("\n%s%s%s\n", colour ? "\033[1m" : "", title(x->area),
			       colour ? "\033[0m" : "");
		area = x->area;
		print_finding(x, verbose, colour);
	}
	print_end(r->f, verbose);
}

/* ---- JSON ----------------------------------------------------------------------- */

static void json_host(struct json *j, const struct doctor_report *r)
{
	const struct host_facts *h = r->host;
	const struct net_facts *n = r->net;

	json_object_begin(j, "host");
	json_text(j, "name", h->name);
	json_text(j, "kernel", h->kernel);
	json_text(j, "machine", h->machine);
	json_bool(j, "container", h->container);
	json_text(j, "clocksource", *h->clock ? h->clock : NULL);
	json_uint(j, "cpus_online", h->cpus_online);
	json_uint(j, "cpus_allowed", h->cpus_allowed);
	json_real(j, "cpu_quota", h->quota_cpus);
	json_real(j, "load1", h->load1);
	json_uint(j, "memory_bytes", h->memory_bytes);
	json_uint(j, "memory_available_bytes", h->available_bytes);
	json_bool(j, "memlock_unlimited", h->memlock_bytes == UINT64_MAX || h->may_lock);
	json_uint(j, "memlock_bytes", h->memlock_bytes);
	json_uint(j, "rcvbuf_granted_bytes", n->rcvbuf.granted_bytes);
	json_uint(j, "sndbuf_granted_bytes", n->sndbuf.granted_bytes);
	json_uint(j, "rmem_max", n->rcvbuf.limit_bytes);
	json_uint(j, "wmem_max", n->sndbuf.limit_bytes);
	json_bool(j, "udp_gso", !n->gso.error && n->gso.equal);
	json_bool(j, "udp_gro", !n->gro.error && n->gro.equal);
	json_uint(j, "udp_rcvbuf_errors", n->udp.rcvbuf_errors);
	json_object_end(j);
}

static void json_devices(struct json *j, const struct doctor_report *r)
{
	json_array_begin(j, "devices");
	for (size_t i = 0; i < r->ndevs; i++) {
		const struct dev_facts *d = &r->dev[i];

		json_object_begin(j, NULL);
		json_text(j, "name", d->name);
		json_bool(j, "up", d->up);
		json_uint(j, "mtu", d->mtu);
		json_text(j, "driver", *d->driver ? d->driver : NULL);
		json_uint(j, "speed_bps", d->speed_bps);
		json_uint(j, "rx_pkts", d->rx_pkts);
		json_uint(j, "rx_missed", d->rx_missed + d->rx_fifo);
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_path(struct json *j, const struct path_facts *p)
{
	if (!p) {
		json_text(j, "path", NULL);
		return;
	}
	json_object_begin(j, "path");
	json_text(j, "target", p->target);
	json_bool(j, "connected", p->status == 0);
	json_text(j, "error", p->status ? p->text : NULL);
	json_text(j, "local", p->local);
	json_text(j, "peer", p->peer);
	json_text(j, "device", *p->dev ? p->dev : NULL);
	json_uint(j, "route_mtu", p->route_mtu);
	json_uint(j, "payload_bytes", p->payload_bytes);
	json_uint(j, "pings_sent", p->pings_sent);
	json_uint(j, "pings_answered", p->pings_answered);
	json_uint(j, "rtt_min_ns", p->rtt_min_ns);
	json_uint(j, "rtt_median_ns", p->rtt_median_ns);
	json_uint(j, "trains_sent", p->trains_sent);
	json_uint(j, "trains_seen", p->trains_seen);
	json_uint(j, "train_bps", p->train_bps);
	json_uint(j, "passing_payload_bytes", p->passes_payload);
	json_uint(j, "stream_bytes", p->out.bytes);
	json_real(j, "goodput_bps", p->out.second_half_bps);
	json_real(j, "cpu", p->out.cpu);
	json_uint(j, "tx_pkts", p->out.conn.tx_pkts);
	json_uint(j, "lost_pkts", p->out.conn.tx_lost_pkts);
	json_uint(j, "spurious_pkts", p->out.conn.tx_spurious_pkts);
	json_uint(j, "echo_bytes", p->echo.bytes);
	json_object_begin(j, "counters");
	for (unsigned int i = 0; i < SDR_CTR_COUNT; i++)
		json_uint(j, sdr_counter_name(i), p->out.counter[i] + p->echo.counter[i]);
	json_object_end(j);
	json_object_end(j);
}

static void json_finding(struct json *j, const struct finding *x)
{
	char command[sizeof x->fix];

	json_object_begin(j, NULL);
	json_text(j, "area", x->area);
	json_text(j, "id", x->id);
	json_text(j, "level", level_name(x->level));
	json_text(j, "what", x->what);
	json_text(j, "evidence", *x->evidence ? x->evidence : NULL);
	json_text(j, "why", *x->why ? x->why : NULL);
	json_array_begin(j, "fix");
	for (const char *p = x->fix; *p;) {
		size_t len = strcspn(p, "\n");

		snprintf(command, sizeof command, "%.*s", (int)len, p);
		json_text(j, NULL, command);
		p += len;
		p += *p == '\n';
	}
	json_array_end(j);
	json_object_end(j);
}

void doctor_print_json(const struct doctor_report *r)
{
	const struct findings *f = r->f;
	struct json j;

	json_init(&j, stdout);
	json_object_begin(&j, NULL);
	json_text(&j, "command", "doctor");
	json_text(&j, "version", sdr_version());
	json_text(&j, "verdict",
		  f->count[LEVEL_FAULT]	      ? "fault"
		  : f->count[LEVEL_ATTENTION] ? "attention"
					      : "ok");
	json_object_begin(&j, "count");
	for (unsigned int i = 0; i < LEVELS; i++)
		json_uint(&j, level_name(i), f->count[i]);
	json_object_end(&j);
	json_object_begin(&j, "goal");
	json_uint(&j, "bw_bps", r->goal->bw_bps);
	json_uint(&j, "rtt_ns", r->goal->rtt_ns);
	json_uint(&j, "message_bytes", r->goal->message_bytes);
	json_uint(&j, "chunk_pkts", r->goal->chunk_pkts);
	json_object_end(&j);
	json_host(&j, r);
	json_devices(&j, r);
	json_path(&j, r->path);
	json_array_begin(&j, "findings");
	for (size_t i = 0; i < f->n; i++)
		json_finding(&j, &f->list[i]);
	json_array_end(&j);
	json_object_end(&j);
	json_finish(&j);
}

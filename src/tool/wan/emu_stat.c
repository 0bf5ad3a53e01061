// SPDX-License-Identifier: Apache-2.0
/*
 * What the emulator tells about itself: for people and as JSON. See emu.h.
 */
#include "tool/wan/emu_int.h"

#include "tool/json.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VALUES_TEXT 1024

static const char *const loss_name[LINK_LOST_REASONS] = {
	[LINK_LOST_NOT] = NULL,
	[LINK_LOST_QUEUE] = "queue",
	[LINK_LOST_RANDOM] = "random",
	[LINK_LOST_LIST] = "list",
	[LINK_LOST_BLACKOUT] = "blackout",
	[LINK_LOST_POLICER] = "policer",
	[LINK_LOST_MTU] = "mtu",
	[LINK_LOST_CUT] = "cut",
};

/* All that is told beside the paths, looked up once. */
struct facts {
	uint64_t now_ns;
	struct wan_line_counters line;
	uint64_t tx_dropped[2];
	char offloads[40];
};

static void gather(const struct emu *e, struct facts *f)
{
	f->now_ns = emu_now_ns(e);
	wan_line_counters(e->line, &f->line);
	f->tx_dropped[WAN_A] = wan_ends_tx_dropped(&e->ends, WAN_A);
	f->tx_dropped[WAN_B] = wan_ends_tx_dropped(&e->ends, WAN_B);
	wan_ends_offload_text(&e->ends, f->offloads, sizeof f->offloads);
}

/* Packets that went missing beside the link: what was measured meanwhile is void. */
static uint64_t lost_by_host(const struct emu *e, const struct facts *f)
{
	return f->tx_dropped[WAN_A] + f->tx_dropped[WAN_B] + e->health.write_failed[WAN_A] +
	       e->health.write_failed[WAN_B] + f->line.no_memory_frames;
}

static uint64_t all_lost(const struct link_counters *c)
{
	uint64_t sum = 0;

	for (int i = 0; i < LINK_LOST_REASONS; i++)
		sum += c->lost_pkts[i];
	return sum;
}

/* Writes into a string that grows; NULL where memory is short. */
static char *written(struct emu *e, void (*write_it)(struct emu *, FILE *))
{
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	if (!to)
		return NULL;
	write_it(e, to);
	if (fclose(to) == 0)
		return text;
	free(text);
	return NULL;
}

/* ---- text --------------------------------------------------------------------------- */

static void text_lost(const struct link_counters *c, FILE *to)
{
	uint64_t lost = all_lost(c);
	const char *sep = " (";

	fprintf(to, ", lost %" PRIu64, lost);
	for (int i = 0; i < LINK_LOST_REASONS; i++) {
		if (!loss_name[i] || !c->lost_pkts[i])
			continue;
		fprintf(to, "%s%s %" PRIu64, sep, loss_name[i], c->lost_pkts[i]);
		sep = ", ";
	}
	fputs(lost ? ")\n" : "\n", to);
}

static void text_direction(const struct emu *e, const struct facts *f, enum wan_end from,
			   uint32_t path, FILE *to)
{
	char values[VALUES_TEXT], size[UNITS_TEXT], queued[UNITS_TEXT], flying[UNITS_TEXT];
	struct wan_dir_stat s;

	wan_line_stat(e->line, from, path, f->now_ns, &s);
	link_path_text(&e->setup.config.path[from][path], f->now_ns, values, sizeof values);
	fprintf(to, "%s", from == WAN_A ? "a -> b" : "b -> a");
	if (e->setup.config.n_paths > 1)
		fprintf(to, ", path %u", path);
	fprintf(to, ": %s\n    offered %" PRIu64 " packets, %s; delivered %" PRIu64, values,
		s.link.offered_pkts, units_size_text(size, s.link.offered_bytes),
		s.link.delivered_pkts);
	text_lost(&s.link, to);
	fprintf(to,
		"    duplicated %" PRIu64 ", reordered %" PRIu64 ", marked %" PRIu64
		", corrupted %" PRIu64 "; now queued %s, in flight %" PRIu64 " packets, %s\n",
		s.link.duplicated_pkts, s.link.reordered_pkts, s.link.marked_pkts,
		s.link.corrupted_pkts, units_size_text(queued, s.queued_bytes), s.in_flight_pkts,
		units_size_text(flying, s.in_flight_bytes));
}

static void text_nat(const struct emu *e, const struct facts *f, FILE *to)
{
	const struct wan_config *c = &e->setup.config;
	char every[UNITS_TEXT], timeout[UNITS_TEXT];

	if (!c->nat)
		return;
	fprintf(to, "NAT in front of a: %" PRIu64 " rebindings, %" PRIu64 " packets to no mapping",
		f->line.nat_rebinds, f->line.nat_lost_pkts);
	if (c->nat_every_ns)
		fprintf(to, "; rebinds every %s", units_time_text(every, c->nat_every_ns));
	if (c->nat_timeout_ns)
		fprintf(to, "; forgets after %s", units_time_text(timeout, c->nat_timeout_ns));
	fputc('\n', to);
}

static void text_health(const struct emu *e, const struct facts *f, FILE *to)
{
	const struct emu_health *h = &e->health;
	char mid[UNITS_TEXT], most[UNITS_TEXT], max[UNITS_TEXT], now[UNITS_TEXT], peak[UNITS_TEXT];
	uint64_t lost = lost_by_host(e, f);

	if (h->late_ns.n)
		fprintf(to, "emulator: frames late by %s (median), %s (99 %%), %s (most)",
			units_time_text(mid, hist_quantile(&h->late_ns, 0.5)),
			units_time_text(most, hist_quantile(&h->late_ns, 0.99)),
			units_time_text(max, h->late_ns.max));
	else
		fprintf(to, "emulator: no frame was delivered yet");
	fprintf(to, "; memory %s, peak %s\n", units_size_text(now, f->line.memory_bytes),
		units_size_text(peak, f->line.memory_peak_bytes));
	if (f->line.malformed_frames)
		fprintf(to, "    %" PRIu64 " malformed frames were not carried\n",
			f->line.malformed_frames);
	if (f->line.too_big_told)
		fprintf(to, "    %" PRIu64 " ICMP errors for packets above the path's MTU\n",
			f->line.too_big_told);
	if (!lost)
		return;
	fprintf(to,
		"    NOT BY THE LINK: %" PRIu64
		" frames were lost by this machine (queues of " WAN_DEVICE ": a %" PRIu64
		", b %" PRIu64 "; not taken by a %" PRIu64 ", b %" PRIu64 "; no memory %" PRIu64
		"): what was measured meanwhile is void\n",
		lost, f->tx_dropped[WAN_A], f->tx_dropped[WAN_B], h->write_failed[WAN_A],
		h->write_failed[WAN_B], f->line.no_memory_frames);
}

static void write_text(struct emu *e, FILE *to)
{
	const struct wan_names *n = e->names;
	char up[UNITS_TEXT];
	struct facts f;

	gather(e, &f);
	fprintf(to, "link %s: up for %s, MTU %u, offloads %s\n", n->name,
		units_time_text(up, f.now_ns), e->ends.mtu_bytes, f.offloads);
	for (int end = WAN_A; end <= WAN_B; end++)
		fprintf(to, "%c: %s%s%s, namespace %s\n", "ab"[end], n -> end[end].v4_text,
			e->ends.end[end].has_v6 ? " and " : " (no IPv6)",
			e->ends.end[end].has_v6 ? n->end[end].v6_text : "", n->end[end].ns);
	for (uint32_t path = 0; path < e->setup.config.n_paths; path++) {
		text_direction(e, &f, WAN_A, path, to);
		text_direction(e, &f, WAN_B, path, to);
	}
	text_nat(e, &f, to);
	text_health(e, &f, to);
}

static void write_brief(struct emu *e, FILE *to)
{
	const struct wan_config *c = &e->setup.config;
	char ab[VALUES_TEXT], ba[VALUES_TEXT];
	uint64_t now = emu_now_ns(e);
	bool same = link_path_equal(&c->path[WAN_A][0], &c->path[WAN_B][0]);

	link_path_text(&c->path[WAN_A][0], now, ab, sizeof ab);
	link_path_text(&c->path[WAN_B][0], now, ba, sizeof ba);
	fprintf(to, "a %s, b %s: ", e->names->end[WAN_A].v4_text, e->names->end[WAN_B].v4_text);
	if (same)
		fprintf(to, "each way %s", ab);
	else
		fprintf(to, "a -> b %s; b -> a %s", ab, ba);
	if (c->n_paths > 1)
		fprintf(to, "; path 0 of %u", c->n_paths);
	if (c->nat)
		fprintf(to, "; NAT in front of a");
}

/* ---- JSON --------------------------------------------------------------------------- */

static void json_ends(const struct emu *e, struct json *j)
{
	json_object_begin(j, "ends");
	for (int end = WAN_A; end <= WAN_B; end++) {
		const struct wan_end_names *n = &e->names->end[end];

		json_object_begin(j, end == WAN_A ? "a" : "b");
		json_text(j, "namespace", n->ns);
		json_text(j, "ipv4", n->v4_text);
		json_text(j, "ipv6", e->ends.end[end].has_v6 ? n->v6_text : NULL);
		json_object_end(j);
	}
	json_object_end(j);
}

static void json_counters(struct json *j, const struct wan_dir_stat *s)
{
	const struct link_counters *c = &s->link;

	json_uint(j, "offered_pkts", c->offered_pkts);
	json_uint(j, "offered_bytes", c->offered_bytes);
	json_uint(j, "delivered_pkts", c->delivered_pkts);
	json_uint(j, "delivered_bytes", s->delivered_bytes);
	json_uint(j, "lost_pkts", all_lost(c));
	json_object_begin(j, "lost_by_reason");
	for (int i = 0; i < LINK_LOST_REASONS; i++) {
		if (loss_name[i])
			json_uint(j, loss_name[i], c->lost_pkts[i]);
	}
	json_object_end(j);
	json_uint(j, "duplicated_pkts", c->duplicated_pkts);
	json_uint(j, "reordered_pkts", c->reordered_pkts);
	json_uint(j, "marked_pkts", c->marked_pkts);
	json_uint(j, "corrupted_pkts", c->corrupted_pkts);
	json_uint(j, "queued_bytes", s->queued_bytes);
	json_uint(j, "in_flight_pkts", s->in_flight_pkts);
	json_uint(j, "in_flight_bytes", s->in_flight_bytes);
}

static void json_directions(const struct emu *e, const struct facts *f, struct json *j)
{
	json_array_begin(j, "directions");
	for (uint32_t path = 0; path < e->setup.config.n_paths; path++) {
		for (int from = WAN_A; from <= WAN_B; from++) {
			struct wan_dir_stat s;

			wan_line_stat(e->line, (enum wan_end)from, path, f->now_ns, &s);
			json_object_begin(j, NULL);
			json_text(j, "from", from == WAN_A ? "a" : "b");
			json_text(j, "to", from == WAN_A ? "b" : "a");
			json_uint(j, "path", path);
			link_path_json(j, "values", &e->setup.config.path[from][path]);
			json_counters(j, &s);
			json_object_end(j);
		}
	}
	json_array_end(j);
}

static void json_nat(const struct emu *e, const struct facts *f, struct json *j)
{
	const struct wan_config *c = &e->setup.config;

	json_object_begin(j, "nat");
	json_bool(j, "on", c->nat);
	json_uint(j, "every_ns", c->nat_every_ns);
	json_uint(j, "timeout_ns", c->nat_timeout_ns);
	json_uint(j, "rebinds", f->line.nat_rebinds);
	json_uint(j, "lost_pkts", f->line.nat_lost_pkts);
	json_object_end(j);
}

static void json_by_end(struct json *j, const char *key, const uint64_t *v)
{
	json_object_begin(j, key);
	json_uint(j, "a", v[WAN_A]);
	json_uint(j, "b", v[WAN_B]);
	json_object_end(j);
}

static void json_health(const struct emu *e, const struct facts *f, struct json *j)
{
	const struct hist *late = &e->health.late_ns;

	json_object_begin(j, "emulator");
	json_uint(j, "pid", (uint64_t)getpid());
	json_text(j, "scheduler", e->scheduler);
	json_bool(j, "valid", lost_by_host(e, f) == 0);
	json_by_end(j, "device_dropped_pkts", f->tx_dropped);
	json_by_end(j, "write_failed_frames", e->health.write_failed);
	json_uint(j, "no_memory_frames", f->line.no_memory_frames);
	json_uint(j, "malformed_frames", f->line.malformed_frames);
	json_uint(j, "frames", f->line.frames);
	json_uint(j, "pieces", f->line.pieces);
	json_uint(j, "too_big_told", f->line.too_big_told);
	json_uint(j, "memory_bytes", f->line.memory_bytes);
	json_uint(j, "memory_peak_bytes", f->line.memory_peak_bytes);
	json_object_begin(j, "late_ns");
	json_uint(j, "frames", late->n);
	json_real(j, "mean", late->mean);
	json_uint(j, "p50", hist_quantile(late, 0.5));
	json_uint(j, "p99", hist_quantile(late, 0.99));
	json_uint(j, "p999", hist_quantile(late, 0.999));
	json_uint(j, "max", late->max);
	json_object_end(j);
	json_object_end(j);
}

static void json_head(const struct emu *e, const struct facts *f, struct json *j)
{
	json_text(j, "name", e->names->name);
	json_text(j, "state", "up");
	json_uint(j, "up_ns", f->now_ns);
	json_uint(j, "mtu_bytes", e->ends.mtu_bytes);
	json_text(j, "offloads", f->offloads);
	json_uint(j, "seed", e->setup.config.seed);
	json_uint(j, "paths", e->setup.config.n_paths);
	json_ends(e, j);
}

static void write_json(struct emu *e, FILE *to)
{
	struct facts f;
	struct json j;

	gather(e, &f);
	json_init(&j, to);
	json_object_begin(&j, NULL);
	json_head(e, &f, &j);
	json_nat(e, &f, &j);
	json_directions(e, &f, &j);
	json_health(e, &f, &j);
	json_object_end(&j);
	json_finish(&j);
}

static void write_brief_json(struct emu *e, FILE *to)
{
	struct facts f;
	struct json j;

	gather(e, &f);
	json_init(&j, to);
	json_object_begin(&j, NULL);
	json_head(e, &f, &j);
	json_object_end(&j);
	fflush(to);
}

char *emu_stat_text(struct emu *e)
{
	return written(e, write_text);
}

char *emu_stat_json(struct emu *e)
{
	return written(e, write_json);
}

char *emu_brief_text(struct emu *e)
{
	return written(e, write_brief);
}

char *emu_brief_json(struct emu *e)
{
	return written(e, write_brief_json);
}

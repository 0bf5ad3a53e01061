// SPDX-License-Identifier: Apache-2.0
/*
 * A link's values as text and as JSON. See link_opts.h.
 */
#include "tool/wan/link_opts.h"

#include "tool/say.h"

#include "base/units.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* A list that is being written: "1 Gbit/s, delay 50 ms". */
struct list {
	char *buf;
	size_t cap, used;
};

static void add(struct list *l, const char *fmt, ...) SAY_PRINTF(2, 3);

static void add(struct list *l, const char *fmt, ...)
{
	va_list args;
	int n;

	if (l->used && l->used + 2 < l->cap) {
		strcpy(l->buf + l->used, ", ");
		l->used += 2;
	}
	va_start(args, fmt);
	n = vsnprintf(l->buf + l->used, l->cap - l->used, fmt, args);
	va_end(args);
	if (n > 0)
		l->used += (size_t)n < l->cap - l->used ? (size_t)n : l->cap - l->used - 1;
}

static void add_time(struct list *l, const char *what, uint64_t ns)
{
	char t[UNITS_TEXT];

	if (ns)
		add(l, "%s %s", what, units_time_text(t, ns));
}

static void add_size(struct list *l, const char *what, uint64_t bytes)
{
	char t[UNITS_TEXT];

	if (bytes)
		add(l, "%s %s", what, units_size_text(t, bytes));
}

static bool is_iid(const struct link_ge *ge)
{
	return ge->p_gb <= 0;
}

static void add_loss(struct list *l, const struct link_ge *ge)
{
	double ratio = link_ge_ratio(ge);

	if (is_iid(ge) && ge->loss_good <= 0)
		return;
	if (is_iid(ge))
		add(l, "loss %.3g %%", 100 * ratio);
	else if (ge->loss_bad >= 1 && ge->loss_good <= 0 && ge->p_bg > 0)
		add(l, "loss %.3g %% in bursts of %.3g packets", 100 * ratio, 1 / ge->p_bg);
	else
		add(l, "loss %.3g %% (Gilbert-Elliott p %.3g, r %.3g, 1-h %.3g, 1-k %.3g)",
		    100 * ratio, ge->p_gb, ge->p_bg, ge->loss_bad, ge->loss_good);
}

static void add_faults(struct list *l, const struct link_attr *a)
{
	char t[UNITS_TEXT], r[UNITS_TEXT];

	if (a->reorder_p > 0)
		add(l, "%.3g %% held back %s", 100 * a->reorder_p,
		    units_time_text(t, a->reorder_ns));
	if (a->duplicate_p > 0)
		add(l, "%.3g %% twice, %s apart", 100 * a->duplicate_p,
		    units_time_text(t, a->duplicate_ns));
	if (a->corrupt_p > 0)
		add(l, "%.3g %% with a bit flipped", 100 * a->corrupt_p);
	if (a->policer.rate_bps)
		add(l, "policed to %s, bucket %s", units_rate_text(r, (double)a->policer.rate_bps),
		    units_size_text(t, a->policer.burst_bytes));
}

static void add_times(struct list *l, const struct wan_path *p, uint64_t now_ns)
{
	const struct link_attr *a = &p->attr;
	char t[UNITS_TEXT], every[UNITS_TEXT], delta[UNITS_TEXT];
	size_t ahead = 0;

	if (a->outage.every_ns)
		add(l, "down %s every %s", units_time_text(t, a->outage.for_ns),
		    units_time_text(every, a->outage.every_ns));
	if (a->flap.every_ns)
		add(l, "%s longer for %s every %s", units_time_text(delta, a->flap_delay_ns),
		    units_time_text(t, a->flap.for_ns), units_time_text(every, a->flap.every_ns));
	for (size_t i = 0; i < p->n_blackout; i++)
		ahead += p->blackout[i].to_ns > now_ns;
	if (ahead)
		add(l, "%zu blackout%s ahead", ahead, ahead == 1 ? "" : "s");
	if (p->n_drop)
		add(l, "a list of %zu packet%s to lose", p->n_drop, p->n_drop == 1 ? "" : "s");
}

void link_path_text(const struct wan_path *p, uint64_t now_ns, char *buf, size_t cap)
{
	const struct link_attr *a = &p->attr;
	struct list l = {buf, cap, 0};
	char t[UNITS_TEXT];

	buf[0] = '\0';
	if (a->cut)
		add(&l, "CUT");
	if (a->rate_bps)
		add(&l, "%s", units_rate_text(t, (double)a->rate_bps));
	else
		add(&l, "unlimited rate");
	add(&l, "delay %s", a->delay_ns ? units_time_text(t, a->delay_ns) : "0");
	if (a->jitter_ns)
		add(&l, "jitter %s%s", units_time_text(t, a->jitter_ns),
		    a->jitter_reorders ? " (reorders)" : "");
	add_time(&l, "queue", a->queue_ns);
	add_size(&l, "queue", a->queue_bytes);
	add_time(&l, "ECN above", a->ecn_ns);
	add_size(&l, "ECN above", a->ecn_bytes);
	add_loss(&l, &a->loss);
	add_faults(&l, a);
	if (a->mtu_bytes)
		add(&l, "MTU %u%s", a->mtu_bytes, p->mtu_silent ? " (black hole)" : "");
	add_times(&l, p, now_ns);
}

/* ---- JSON ------------------------------------------------------------------------- */

static void json_loss(struct json *j, const struct link_ge *ge, uint64_t burst_idle_ns)
{
	json_object_begin(j, "loss");
	json_real(j, "ratio", link_ge_ratio(ge));
	json_real(j, "p", ge->p_gb);
	json_real(j, "r", ge->p_bg);
	json_real(j, "1-h", ge->loss_bad);
	json_real(j, "1-k", ge->loss_good);
	json_uint(j, "burst_idle_ns", burst_idle_ns);
	json_object_end(j);
}

static void json_ratio_time(struct json *j, const char *key, double ratio, uint64_t ns)
{
	json_object_begin(j, key);
	json_real(j, "ratio", ratio);
	json_uint(j, "ns", ns);
	json_object_end(j);
}

static void json_periodic(struct json *j, const char *key, const struct link_periodic *p,
			  const uint64_t *delta_ns)
{
	json_object_begin(j, key);
	json_uint(j, "first_ns", p->first_ns);
	json_uint(j, "every_ns", p->every_ns);
	json_uint(j, "for_ns", p->for_ns);
	if (delta_ns)
		json_uint(j, "delta_ns", *delta_ns);
	json_object_end(j);
}

static void json_lists(struct json *j, const struct wan_path *p)
{
	json_array_begin(j, "drop");
	for (size_t i = 0; i < p->n_drop; i++)
		json_uint(j, NULL, p->drop[i]);
	json_array_end(j);
	json_array_begin(j, "blackout");
	for (size_t i = 0; i < p->n_blackout; i++) {
		json_object_begin(j, NULL);
		json_uint(j, "from_ns", p->blackout[i].from_ns);
		json_uint(j, "to_ns", p->blackout[i].to_ns);
		json_object_end(j);
	}
	json_array_end(j);
}

void link_path_json(struct json *j, const char *key, const struct wan_path *p)
{
	const struct link_attr *a = &p->attr;

	json_object_begin(j, key);
	json_bool(j, "cut", a->cut);
	json_uint(j, "rate_bps", a->rate_bps);
	json_uint(j, "delay_ns", a->delay_ns);
	json_uint(j, "jitter_ns", a->jitter_ns);
	json_bool(j, "jitter_reorders", a->jitter_reorders);
	json_uint(j, "queue_bytes", a->queue_bytes);
	json_uint(j, "queue_ns", a->queue_ns);
	json_uint(j, "ecn_bytes", a->ecn_bytes);
	json_uint(j, "ecn_ns", a->ecn_ns);
	json_loss(j, &a->loss, a->burst_idle_ns);
	json_ratio_time(j, "reorder", a->reorder_p, a->reorder_ns);
	json_ratio_time(j, "duplicate", a->duplicate_p, a->duplicate_ns);
	json_real(j, "corrupt_ratio", a->corrupt_p);
	json_object_begin(j, "policer");
	json_uint(j, "rate_bps", a->policer.rate_bps);
	json_uint(j, "burst_bytes", a->policer.burst_bytes);
	json_object_end(j);
	json_uint(j, "mtu_bytes", a->mtu_bytes);
	json_bool(j, "mtu_silent", p->mtu_silent);
	json_periodic(j, "outage", &a->outage, NULL);
	json_periodic(j, "flap", &a->flap, &a->flap_delay_ns);
	json_lists(j, p);
	json_object_end(j);
}

/* ---- comparing -------------------------------------------------------------------- */

/* NULL: no memory. The caller frees it. */
static char *as_json(const struct wan_path *p)
{
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);
	struct json j;

	if (!to)
		return NULL;
	json_init(&j, to);
	link_path_json(&j, NULL, p);
	json_finish(&j);
	return fclose(to) == 0 ? text : NULL;
}

/* Every value is in the JSON, and a new one will be. */
bool link_path_equal(const struct wan_path *a, const struct wan_path *b)
{
	char *x = as_json(a), *y = as_json(b);
	bool equal = x && y && strcmp(x, y) == 0;

	free(x);
	free(y);
	return equal;
}

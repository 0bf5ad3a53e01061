/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done to hosts, links and memory while the loads run: cuts, changes, NATs that
 * forget, pauses, crashes and restarts, refused allocations, old packets that come again,
 * packets that are hit for what they carry. dst_faults_stop() ends all of it.
 */
#include "dst.h"

#include "base/bits.h"
#include "conn/internal.h"
#include "fabric/sim/sim_int.h"
#include "sdk/internal.h"
#include <errno.h>
#include <string.h>

#define CAUGHT 16u
/*
 * An RDMA NIC cannot tell an empty packet of a number that has ended from one of the next with
 * that number, nor, where keys last, any packet: the SDK waits for as long as a network is late
 * (at least 10 ms), and what is later than that is beyond its promise.
 */
#define NIC_LATE_NS (5 * MS)

/* A packet that was seen on its way. */
struct caught {
	struct sim_head head;
	struct sim_link *link;
	uint64_t deliver_ns;
	uint32_t len;
	uint8_t *bytes;
};

struct dst_faults {
	struct caught caught[CAUGHT];
	uint32_t n, turn;
	/* Packets that are hit for what they carry: control of one type, or one packet's number. */
	bool aimed, delay;
	bool at_ctrl, at_parity; /* parity: of messages with odd numbers, whichever packet */
	uint8_t type;
	uint32_t index, left;
	struct rng rng; /* asked in the middle of a send */
	bool progress_nomem;
	struct {
		uint32_t a, b;
		uint64_t until_ns;
	} cut[DST_HOSTS_MAX];
};

/* ---- packets ---- */

static bool hit(const struct dst_faults *f, const struct sim_packet_info *info)
{
	if (info->is_ctrl != f->at_ctrl)
		return false;
	if (!info->is_ctrl && f->at_parity)
		return info->message & 1;
	if (!info->is_ctrl)
		return info->offset / (info->len ? info->len : 1) == f->index;
	return info->len &&
	       ((const uint8_t *)info->ctrl_body)[info->len > 20 ? 16 : 0] % 16 == f->type;
}

static struct sim_verdict aim(void *arg, const struct sim_packet_info *info)
{
	struct dst_world *w = arg;
	struct dst_faults *f = w->faults;

	if (!f->aimed || !f->left || !hit(f, info))
		return (struct sim_verdict){SIM_PASS, 0};
	f->left--;
	dst_site(SITE_targeted, 1);
	dst_site(SITE_code_write_lost, f->at_ctrl && f->type == CONN_CTRL_WRITE && w->on[F_CODES]);
	dst_site(SITE_code_parity_lost, !f->at_ctrl && f->at_parity && w->on[F_CODES]);
	if (f->delay)
		return (struct sim_verdict){
			SIM_DELAY,
			rng_below(&f->rng, w->host[info->to].nic ? NIC_LATE_NS : 200 * MS)};
	return (struct sim_verdict){SIM_DROP, 0};
}

static void aim_anew(struct dst_world *w)
{
	struct dst_faults *f = w->faults;

	f->aimed = true;
	f->at_ctrl = dst_chance(w, 0.6);
	f->delay = dst_chance(w, 0.3);
	f->type = (uint8_t)dst_below(w, 16);
	f->index = (uint32_t)dst_below(w, 20);
	f->at_parity = !f->at_ctrl && w->on[F_CODES] && dst_chance(w, 0.5);
	if (f->at_ctrl && w->on[F_CODES] && dst_chance(w, 0.3))
		f->type = CONN_CTRL_WRITE;
	f->left = 1 + (uint32_t)dst_below(w, 12);
}

/* Takes a copy of some packet that is under way. */
static void catch_one(struct dst_world *w)
{
	struct dst_faults *f = w->faults;
	uint32_t bucket = (uint32_t)dst_below(w, SIM_LINK_BUCKETS);

	for (uint32_t i = 0; i < SIM_LINK_BUCKETS; i++) {
		struct sim_link *l = w->sim->link[(bucket + i) % SIM_LINK_BUCKETS];
		const struct sim_packet *p = l ? l->fifo.head : NULL;
		struct caught *c = &f->caught[f->n % CAUGHT];

		if (!p || p->kind != SIM_PKT_WIRE || p->absent)
			continue;
		dst_free(c->bytes);
		c->bytes = dst_alloc(p->len);
		memcpy(c->bytes, p->bytes, p->len);
		c->len = p->len;
		c->head = p->head;
		c->link = l;
		c->deliver_ns = p->deliver_ns;
		f->n++;
		return;
	}
}

/* It comes again, from where it came, after it has arrived; maybe at another incarnation. */
static void replay_one(struct dst_world *w)
{
	struct dst_faults *f = w->faults;
	const struct caught *c;
	struct sim_packet *p;

	if (!f->n)
		return;
	c = &f->caught[dst_below(w, f->n < CAUGHT ? f->n : CAUGHT)];
	if (w->host[c->head.to_host].nic && dst_now(w) > c->deliver_ns + NIC_LATE_NS)
		return;
	p = sim_packet_new(&w->sim->pool, c->len);
	if (!p)
		return;
	p->head = c->head;
	p->kind = SIM_PKT_WIRE;
	p->ce = false;
	p->absent = 0;
	memcpy(p->bytes, c->bytes, c->len);
	sim_launch(w->sim, c->link, p, u64_max(dst_now(w), c->deliver_ns) + dst_below(w, 2 * MS));
	dst_site(SITE_replay, 1);
}

/* ---- links ---- */

static void link_both(struct dst_world *w, uint32_t a, uint32_t b, int cut)
{
	struct sdr_sim_link there = w->link[a][b], back = w->link[b][a];

	there.cut = back.cut = cut;
	dst_link_apply(w, a, b, &there);
	dst_link_apply(w, b, a, &back);
	if (!cut)
		return;
	(void)sdr_sim_paths_set(w->api, (int)a, (int)b, 0, NULL);
	(void)sdr_sim_paths_set(w->api, (int)b, (int)a, 0, NULL);
}

static void pair_draw(struct dst_world *w, uint32_t *a, uint32_t *b)
{
	const struct dst_conn *c = &w->conn[w->nconns ? dst_below(w, w->nconns) : 0];

	*a = (uint32_t)dst_below(w, w->nhosts);
	*b = (*a + 1 + (uint32_t)dst_below(w, w->nhosts - 1)) % w->nhosts;
	if (w->nconns) {
		*a = c->end[0].host;
		*b = c->end[1].host;
	}
}

static void cut_some(struct dst_world *w)
{
	struct dst_faults *f = w->faults;
	uint32_t i = (uint32_t)dst_below(w, DST_HOSTS_MAX);

	if (f->cut[i].until_ns)
		return;
	pair_draw(w, &f->cut[i].a, &f->cut[i].b);
	f->cut[i].until_ns = dst_now(w) + 1 + dst_below(w, 2500 * MS);
	dst_note(w, "hosts %u and %u cut off", f->cut[i].a, f->cut[i].b);
	link_both(w, f->cut[i].a, f->cut[i].b, 1);
	dst_site(SITE_link_cut, 1);
}

static void cuts_heal(struct dst_world *w)
{
	struct dst_faults *f = w->faults;

	for (uint32_t i = 0; i < DST_HOSTS_MAX; i++) {
		if (!f->cut[i].until_ns || f->cut[i].until_ns > dst_now(w))
			continue;
		f->cut[i].until_ns = 0;
		link_both(w, f->cut[i].a, f->cut[i].b, 0);
	}
}

static void link_change(struct dst_world *w)
{
	uint32_t a, b;

	pair_draw(w, &a, &b);
	dst_link_draw(w, &w->link[a][b]);
	dst_link_apply(w, a, b, &w->link[a][b]);
	dst_site(SITE_link_change, 1);
}

/* One of several paths is cut, the others stay: a hash still sends channels there. */
static void path_cut(struct dst_world *w)
{
	struct sdr_sim_link path[3];
	uint32_t a, b;

	pair_draw(w, &a, &b);
	for (int i = 0; i < 3; i++) {
		path[i] = w->link[a][b];
		path[i].burst_pkts = 0;
		path[i].cut = i == 0;
	}
	if (!sdr_sim_paths_set(w->api, (int)a, (int)b, 3, path))
		dst_site(SITE_path_cut, 1);
	/* Only channels can move to another path. */
	for (uint32_t i = 0; i < w->nconns; i++)
		w->conn[i].may_break = true;
}

/* ---- hosts ---- */

static void pause_one(struct dst_world *w)
{
	struct dst_host *h = &w->host[dst_below(w, w->nhosts)];

	if (!dst_host_awake(w, h))
		return;
	dst_note(w, "host %d stands still for 10 s", h->id);
	h->paused_until_ns = dst_now(w) + 10 * SEC;
	dst_site(SITE_host_pause, 1);
}

static void crash_one(struct dst_world *w)
{
	struct dst_host *h = &w->host[dst_below(w, w->nhosts)];

	if (!dst_host_awake(w, h) || h->restart_ns)
		return;
	dst_note(w, "host %d crashes", h->id);
	dst_site(SITE_host_crash, 1);
	/* Nothing of it gets out, not even what destroying says. */
	for (uint32_t other = 0; other < w->nhosts; other++)
		if (other != (uint32_t)h->id)
			link_both(w, (uint32_t)h->id, other, 1);
	dst_conns_host_gone(w, h);
	dst_raw_host_gone(w, h);
	dst_host_close(w, h);
	for (uint32_t other = 0; other < w->nhosts; other++)
		if (other != (uint32_t)h->id)
			link_both(w, (uint32_t)h->id, other, 0);
	h->restart_ns = dst_now(w) + 1 + dst_below(w, 500 * MS);
}

static void restart(struct dst_world *w, struct dst_host *h)
{
	int err;

	h->restart_ns = 0;
	h->incarnation++;
	err = dst_host_open(w, h);
	DST_CHECK(w, !err, "opening a host again: %d", err);
	dst_note(w, "host %d is back", h->id);
	dst_site(SITE_host_restart, 1);
	dst_conns_host_back(w, h);
}

static void nat_rebind(struct dst_world *w)
{
	for (uint32_t i = 0; i < w->nhosts; i++)
		if (w->host[i].nat && dst_chance(w, 0.5) && !sdr_sim_nat_rebind(w->api, (int)i))
			dst_site(SITE_nat_rebind, 1);
}

/* ---- turns ---- */

void dst_faults_init(struct dst_world *w)
{
	w->faults = dst_alloc(sizeof(*w->faults));
	rng_init(&w->faults->rng, w->seed ^ 0xfa17);
	sim_filter_set(w->sim, aim, w);
}

/* Not as often where turns follow each other fast; but a short world has some too. */
static bool now_and_then(struct dst_world *w, enum dst_feature f, double p)
{
	double share = w->turn_max_ns >= 10 * MS ? 1 : w->turn_max_ns >= MS ? 0.4 : 0.15;

	return w->on[f] && dst_chance(w, p * share);
}

void dst_faults_turn(struct dst_world *w)
{
	if (w->calm)
		return;
	cuts_heal(w);
	for (uint32_t i = 0; i < w->nhosts; i++)
		if (w->host[i].restart_ns && w->host[i].restart_ns <= dst_now(w))
			restart(w, &w->host[i]);
	if (now_and_then(w, F_CUT, 0.02))
		cut_some(w);
	if (now_and_then(w, F_LINK_CHANGE, 0.03))
		link_change(w);
	if (now_and_then(w, F_PATHS, 0.01))
		path_cut(w);
	if (now_and_then(w, F_PAUSE, 0.01))
		pause_one(w);
	if (now_and_then(w, F_CRASH, 0.01))
		crash_one(w);
	if (now_and_then(w, F_NAT, 0.02))
		nat_rebind(w);
	if (now_and_then(w, F_TARGETED, 0.1))
		aim_anew(w);
	if (now_and_then(w, F_REPLAY, 0.5))
		catch_one(w);
	if (now_and_then(w, F_REPLAY, 0.3))
		replay_one(w);
}

void dst_faults_stop(struct dst_world *w)
{
	w->faults->aimed = false;
	for (uint32_t i = 0; i < w->nhosts; i++)
		if (w->host[i].restart_ns)
			restart(w, &w->host[i]);
}

void dst_faults_fini(struct dst_world *w)
{
	for (uint32_t i = 0; i < CAUGHT; i++)
		dst_free(w->faults->caught[i].bytes);
	dst_free(w->faults);
}

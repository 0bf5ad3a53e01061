/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The world: hosts with their contexts, links, and the loop. A step lets every host that is
 * awake make progress, takes what the library tells, runs the loads and faults if it is
 * their turn, and moves the clock to whatever is due next. Hosts that stand still have
 * deadlines that nobody keeps, so the clock is moved here and not by sdr_sim_step().
 */
#include "dst.h"

#include "base/bits.h"
#include "fabric/sim/sim_int.h"
#include "sdk/internal.h"
#include <string.h>

#define STEPS_MAX UINT64_C(40000000)
#define CHECKS_DOUBLE 500u
#define STILL_MAX 2000000u
#define LIVENESS_NS (120 * SEC)
#define GOODBYE_NS (3 * SEC)
#define GOODBYE_NAT_NS (20 * SEC) /* an idle end's PING brings its new address */

uint64_t dst_now(const struct dst_world *w)
{
	return w->api ? sdr_sim_now_ns(w->api) : 0;
}

bool dst_host_awake(const struct dst_world *w, const struct dst_host *h)
{
	return (h->ctx || h->raw) && h->paused_until_ns <= dst_now(w);
}

/* ---- making it ---- */

void dst_link_apply(struct dst_world *w, uint32_t from, uint32_t to, const struct sdr_sim_link *l)
{
	int err = sdr_sim_link_set(w->api, (int)from, (int)to, SDR_CHANNEL_ANY, l);

	/* A burst that no such loss can have. */
	if (err == -ERANGE) {
		struct sdr_sim_link plain = *l;

		plain.burst_pkts = 0;
		err = sdr_sim_link_set(w->api, (int)from, (int)to, SDR_CHANNEL_ANY, &plain);
	}
	DST_CHECK(w, !err, "sdr_sim_link_set: %d", err);
}

static void paths_make(struct dst_world *w, uint32_t from, uint32_t to)
{
	struct sdr_sim_link path[4];
	uint32_t n = 2 + (uint32_t)dst_below(w, 3);
	int err;

	for (uint32_t i = 0; i < n; i++) {
		path[i] = w->link[from][to];
		path[i].burst_pkts = 0;
		path[i].delay_ns += dst_below(w, path[i].delay_ns + 1);
	}
	err = sdr_sim_paths_set(w->api, (int)from, (int)to, n, path);
	DST_CHECK(w, !err, "sdr_sim_paths_set: %d", err);
	dst_site(SITE_paths, 1);
}

static void links_make(struct dst_world *w)
{
	for (uint32_t a = 0; a < w->nhosts; a++) {
		for (uint32_t b = a + 1; b < w->nhosts; b++) {
			struct sdr_sim_link *there = &w->link[a][b], *back = &w->link[b][a];

			dst_link_draw(w, there);
			*back = *there;
			if (w->on[F_ASYMMETRIC]) {
				dst_link_draw(w, back);
				dst_site(SITE_link_asymmetric, 1);
			}
			if (w->on[F_BREAKER]) {
				back->loss = 0; /* what is acknowledged is heard */
				back->burst_pkts = 0;
			}
			dst_link_apply(w, a, b, there);
			dst_link_apply(w, b, a, back);
			w->longest_ns = u64_max(w->longest_ns, there->delay_ns + back->delay_ns);
			if (w->on[F_PATHS] && dst_chance(w, 0.6))
				paths_make(w, a, b);
			if (w->on[F_PATHS] && dst_chance(w, 0.6))
				paths_make(w, b, a);
		}
	}
}

/* Opens one context on the host; *mr is good for any memory. */
static int ctx_open(struct dst_world *w, struct dst_host *h, struct sdr_ctx **ctx,
		    struct sdr_mr **mr)
{
	struct sdr_ctx_attr ca = {
		.size = sizeof(ca), .listen = h->listen, .sockbuf_bytes = h->sockbuf};
	int err;

	if (h->rdma)
		ca.max_payload_bytes = 4096;
	err = sdr_sim_ctx_create(w->api, h->id, &ca, ctx);
	if (err) {
		*ctx = NULL;
		return err;
	}
	err = sdr_mr_reg(*ctx, NULL, SIZE_MAX, 0, mr);
	if (err) {
		sdr_ctx_destroy(*ctx);
		*ctx = NULL;
	}
	return err;
}

int dst_host_open(struct dst_world *w, struct dst_host *h)
{
	struct sdr_net_attr na = {.size = sizeof(na), .max_completions = h->max_completions};
	int err;

	/* A host that comes back has the ports that it had. */
	w->sim->host[h->id].fabrics = h->ports;
	err = h->has_net ? ctx_open(w, h, &h->ctx, &h->mr) : 0;
	na.use_ctx = h->ctx;
	if (!err && h->has_net)
		err = sdr_net_create(&na, &h->net);
	if (err)
		h->net = NULL;
	if (!err && h->has_raw)
		err = ctx_open(w, h, &h->raw, &h->raw_mr);
	if (err)
		dst_host_close(w, h);
	return err;
}

void dst_host_close(struct dst_world *w, struct dst_host *h)
{
	if (h->ctx)
		dst_count_ctx(w, h->ctx);
	if (h->raw)
		dst_count_ctx(w, h->raw);
	sdr_net_destroy(h->net);
	h->net = NULL;
	if (h->mr)
		sdr_mr_dereg(h->mr);
	if (h->raw_mr)
		sdr_mr_dereg(h->raw_mr);
	h->mr = h->raw_mr = NULL;
	sdr_ctx_destroy(h->ctx);
	sdr_ctx_destroy(h->raw);
	h->ctx = h->raw = NULL;
}

static void host_make(struct dst_world *w, uint32_t i)
{
	struct dst_host *h = &w->host[i];
	int err;

	h->id = sdr_sim_host(w->api);
	DST_CHECK(w, h->id == (int)i, "sdr_sim_host: %d", h->id);
	dst_device_draw(w, h);
	h->listen = i == 0 || dst_chance(w, 0.7);
	h->nat = w->on[F_NAT] && !h->listen && !h->rdma;
	h->sockbuf = w->on[F_SOCKBUF] ? 4000 + (uint32_t)dst_below(w, 50000) : 0;
	h->max_completions = w->on[F_FEW_COMPLETIONS] ? 4 + (uint32_t)dst_below(w, 30) : 1024;
	h->recv_chance = w->on[F_SLOW_RECV] && dst_chance(w, 0.6) ? 0.08 : 0.9;
	dst_site(SITE_host_slow, h->recv_chance < 0.5);
	if (w->on[F_SELDOM] && dst_chance(w, 0.6)) {
		h->seldom_ns = 50 * US + dst_below(w, 20 * MS);
		dst_site(SITE_host_seldom, 1);
	}
	err = sdr_sim_device_set(w->api, h->id, &h->device);
	DST_CHECK(w, !err, "sdr_sim_device_set: %d", err);
	if (h->nat) {
		err = sdr_sim_nat_set(w->api, h->id, dst_chance(w, 0.3) ? 20 * SEC : 0,
				      dst_chance(w, 0.3) ? 500 * MS + dst_below(w, SEC) : 0);
		DST_CHECK(w, !err, "sdr_sim_nat_set: %d", err);
		dst_site(SITE_nat, 1);
	}
	/* An RDMA device has its host for itself. */
	h->has_raw = w->on[F_RAW] && (!h->rdma || dst_chance(w, 0.5));
	h->has_net = !h->rdma || !h->has_raw;
	h->ports = w->sim->host[i].fabrics;
	err = dst_host_open(w, h);
	DST_CHECK(w, !err, "opening a host: %d", err);
}

/* The simulator behind the public interface, found through a first context. */
static struct sim *sim_of(struct dst_world *w)
{
	struct sdr_ctx_attr ca = {.size = sizeof(ca)};
	struct sdr_ctx *ctx;
	struct sim *sim;
	int host = sdr_sim_host(w->api);
	int err = sdr_sim_ctx_create(w->api, host, &ca, &ctx);

	DST_CHECK(w, !err, "sdr_sim_ctx_create: %d", err);
	sim = sim_fabric_of(ctx->fabric)->sim;
	sdr_ctx_destroy(ctx);
	sim->nhosts--;
	sim->host[host].fabrics = 0;
	return sim;
}

static void world_make(struct dst_world *w)
{
	int err = sdr_sim_create(w->seed, &w->api);

	DST_CHECK(w, !err, "sdr_sim_create: %d", err);
	if (w->on[F_NO_PAYLOAD]) {
		err = sdr_sim_payload_off(w->api);
		DST_CHECK(w, !err, "sdr_sim_payload_off: %d", err);
		dst_site(SITE_no_payload, 1);
	}
	w->sim = sim_of(w);
	for (uint32_t i = 0; i < w->nhosts; i++)
		host_make(w, i);
	links_make(w);
	dst_faults_init(w);
	dst_conns_init(w);
	dst_raw_init(w);
}

/* ---- the loop ---- */

static void host_progress(struct dst_world *w, struct dst_host *h)
{
	bool refuse = w->on[F_NOMEM] && !w->calm && dst_chance(w, 0.01);
	int err = 0;

	if (refuse)
		dst_nomem_arm((uint32_t)dst_below(w, 2), 1 + (uint32_t)dst_below(w, 3));
	if (h->net)
		err = sdr_net_progress(h->net);
	DST_CHECK(w, err >= 0, "sdr_net_progress: %d", err);
	if (h->raw)
		err = sdr_progress(h->raw);
	DST_CHECK(w, err >= 0, "sdr_progress: %d", err);
	if (refuse && dst_nomem_disarm()) {
		dst_site(SITE_nomem_progress, 1);
		dst_conns_nomem(w, h);
	}
}

static void host_step(struct dst_world *w, struct dst_host *h)
{
	uint64_t now = dst_now(w);

	if (!dst_host_awake(w, h) || (h->seldom_ns && now < h->next_ns))
		return;
	if (h->seldom_ns)
		h->next_ns = now + h->seldom_ns;
	host_progress(w, h);
	if (h->net)
		dst_conns_take(w, h);
}

/* When the host's owner has to look again. */
static uint64_t host_next(const struct dst_world *w, const struct dst_host *h)
{
	uint64_t at = UINT64_MAX;

	if (!h->ctx && !h->raw)
		return UINT64_MAX;
	if (!dst_host_awake(w, h))
		return h->paused_until_ns;
	if (h->net)
		at = sdr_net_next_deadline_ns(h->net);
	if (h->raw)
		at = u64_min(at, sdr_next_deadline_ns(h->raw));
	return h->seldom_ns ? u64_max(at, h->next_ns) : at;
}

static void step(struct dst_world *w, uint64_t limit)
{
	uint64_t now = dst_now(w);
	uint64_t next = limit;

	for (uint32_t i = 0; i < w->nhosts; i++)
		host_step(w, &w->host[i]);
	if (now >= w->turn_ns) {
		dst_faults_turn(w);
		dst_conns_turn(w);
		dst_raw_turn(w);
		w->turn_ns = now + 1 + dst_below(w, w->turn_max_ns);
	}
	next = u64_min(next, w->turn_ns);
	for (uint32_t i = 0; i < w->nhosts; i++)
		next = u64_min(next, host_next(w, &w->host[i]));
	next = u64_min(next, sim_next_event_ns(w->sim));
	w->steps++;
	if (w->steps % w->check_every == 0) {
		dst_check_layers(w);
		/* A long run has seen enough of the same: it looks more and more seldom. */
		if (++w->checks % CHECKS_DOUBLE == 0)
			w->check_every *= 2;
	}
	sim_advance(w->sim, u64_max(next, now));
	dst_trace(w, dst_now(w));
}

/* Until `until` says no, or the time is up; returns whether it did. */
static bool run(struct dst_world *w, uint64_t limit, bool (*left)(const struct dst_world *w))
{
	uint64_t still = 0, last = dst_now(w);

	while (dst_now(w) < limit) {
		step(w, limit);
		if (left && !left(w))
			return true;
		still = dst_now(w) == last ? still + 1 : 0;
		last = dst_now(w);
		DST_CHECK(w, still < STILL_MAX, "busy, and time stands still");
		DST_CHECK(w, w->steps < STEPS_MAX, "more than %llu steps",
			  (unsigned long long)STEPS_MAX);
	}
	return false;
}

static bool work_left(const struct dst_world *w)
{
	return dst_conns_left(w) || dst_raw_left(w);
}

/* Links heal, hosts wake up, nothing is done to anybody any more. */
static void calm_down(struct dst_world *w)
{
	static const struct sdr_sim_link clean = {.size = sizeof(clean), .delay_ns = MS};

	dst_note(w, "the faults stop");
	w->calm = true;
	dst_faults_stop(w);
	for (uint32_t a = 0; a < w->nhosts; a++) {
		for (uint32_t b = 0; b < w->nhosts; b++) {
			if (a == b)
				continue;
			(void)sdr_sim_paths_set(w->api, (int)a, (int)b, 0, NULL);
			dst_link_apply(w, a, b, &clean);
		}
		if (w->host[a].nat) /* the last time that it forgets anything */
			(void)sdr_sim_nat_set(w->api, (int)a, 0, 0);
		w->host[a].paused_until_ns = 0;
		w->host[a].seldom_ns = 0;
		w->host[a].recv_chance = 1;
	}
	w->turn_max_ns = u64_max(w->turn_max_ns, 5 * MS);
}

static void world_end(struct dst_world *w)
{
	dst_count_world(w);
	dst_conns_fini(w);
	dst_raw_fini(w);
	dst_faults_fini(w);
	for (uint32_t i = 0; i < w->nhosts; i++)
		dst_host_close(w, &w->host[i]);
	sdr_sim_destroy(w->api);
	w->api = NULL;
	w->sim = NULL;
	DST_CHECK(w, dst_live_blocks() == 0, "%llu bytes in %llu blocks leaked",
		  (unsigned long long)dst_live_bytes(), (unsigned long long)dst_live_blocks());
}

void dst_run_seed(uint64_t seed, bool verbose, enum dst_payload payload, uint64_t *trace)
{
	struct dst_world *w = dst_alloc(sizeof(*w));

	w->seed = seed;
	w->verbose = verbose;
	rng_init(&w->rng, seed);
	dst_seams_reset(seed);
	dst_options_draw(w);
	if (payload != DST_PAYLOAD_DRAWN) {
		w->on[F_NO_PAYLOAD] = payload == DST_PAYLOAD_OFF;
		w->on[F_REPLAY] = w->on[F_NOMEM] = false;
	}
	dst_features_print(w);
	world_make(w);
	(void)run(w, w->faults_end_ns, NULL);
	calm_down(w);
	w->limit_ns = dst_now(w) + LIVENESS_NS;
	DST_CHECK(w, run(w, w->limit_ns, work_left), "not all has ended %llu s after the faults",
		  (unsigned long long)(LIVENESS_NS / SEC));
	/* What is late now must find nothing to write to. */
	(void)run(w, dst_now(w) + (w->on[F_NAT] ? GOODBYE_NAT_NS : GOODBYE_NS), NULL);
	dst_check_layers(w);
	dst_conns_check(w);
	dst_raw_check(w);
	dst_check_memory(w);
	*trace = w->trace;
	world_end(w);
	dst_free(w);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <sdr/sim.h>: contexts on the simulated fabric, and the step that moves the clock to
 * whatever is due first: a delivery, a context's timer, the caller's limit.
 */
#include "fabric/sim/sim.h"
#include "sdk/internal.h"
#include <sdr/sim.h>

/* The device of a host; those that have none here are plain. */
struct sim_host_device {
	struct sim_host_device *next;
	int host;
	struct sim_device device;
};

struct sdr_sim {
	struct sim *sim;
	struct sdr_ctx *ctxs;
	uint64_t nctxs; /* ever */
	/* All contexts, by when they are due without news; so none needs room later. */
	struct heap timers;
	struct sim_host_device *devices;
};

int sdr_sim_create(uint64_t seed, struct sdr_sim **out)
{
	struct sdr_sim *sim = alloc_zeroed(&sdr_alloc_system, sizeof(*sim));
	int err;

	if (!sim)
		return -ENOMEM;
	heap_init(&sim->timers, &sdr_alloc_system);
	err = sim_create(seed, &sdr_alloc_system, &sim->sim);
	if (err) {
		alloc_free(&sdr_alloc_system, sim);
		return err;
	}
	*out = sim;
	return 0;
}

void sdr_sim_destroy(struct sdr_sim *sim)
{
	if (!sim)
		return;
	while (sim->ctxs)
		sdr_ctx_destroy(sim->ctxs);
	sim_destroy(sim->sim);
	heap_fini(&sim->timers);
	while (sim->devices) {
		struct sim_host_device *next = sim->devices->next;

		alloc_free(&sdr_alloc_system, sim->devices);
		sim->devices = next;
	}
	alloc_free(&sdr_alloc_system, sim);
}

int sdr_sim_payload_off(struct sdr_sim *sim)
{
	return sim_payload_off(sim->sim);
}

int sdr_sim_host(struct sdr_sim *sim)
{
	return sim_host_add(sim->sim);
}

static bool is_ratio(double x)
{
	return x >= 0 && x <= 1;
}

static int link_attr_fill(const struct sdr_sim_link *in, struct link_attr *out)
{
	struct sdr_sim_link l = {0};

	memcpy(&l, in, u64_min(in->size, sizeof(l)));
	if (!is_ratio(l.loss) || !is_ratio(l.reorder) || !is_ratio(l.duplicate) ||
	    !is_ratio(l.corrupt) || !(l.burst_pkts >= 0) || (l.ndrops && !l.drops))
		return -EINVAL;
	*out = (struct link_attr){
		.rate_bps = l.rate_bps,
		.delay_ns = l.delay_ns,
		.jitter_ns = l.jitter_ns,
		.jitter_reorders = true,
		.queue_bytes = l.queue_bytes,
		.reorder_p = l.reorder,
		.reorder_ns = l.reorder_ns,
		.duplicate_p = l.duplicate,
		.corrupt_p = l.corrupt,
		.drop = l.drops,
		.n_drop = l.ndrops,
		.flap = {l.flap_first_ns, l.flap_every_ns, l.flap_for_ns},
		.flap_delay_ns = l.flap_delay_ns,
		.cut = l.cut != 0,
		.burst_slot_ns = l.burst_slot_ns,
	};
	if (l.burst_pkts > 1)
		return link_ge_mean(l.loss, l.burst_pkts, &out->loss);
	out->loss = link_ge_iid(l.loss);
	return 0;
}

int sdr_sim_link_set(struct sdr_sim *sim, int from, int to, uint32_t channel,
		     const struct sdr_sim_link *link)
{
	struct link_attr attr;
	int err = link_attr_fill(link, &attr);

	return err ? err : sim_link_set(sim->sim, from, to, channel, &attr);
}

static void info_put(const struct link_counters *c, uint64_t queued_bytes,
		     struct sdr_sim_link_info *info)
{
	struct sdr_sim_link_info out = {
		.size = info->size,
		.offered_pkts = c->offered_pkts,
		.delivered_pkts = c->delivered_pkts,
		.lost_queue_pkts = c->lost_pkts[LINK_LOST_QUEUE],
		.queued_bytes = queued_bytes,
	};

	for (int why = LINK_LOST_NOT; why < LINK_LOST_REASONS; why++)
		out.lost_pkts += why == LINK_LOST_QUEUE ? 0 : c->lost_pkts[why];
	memcpy(info, &out, u64_min(info->size, sizeof(out)));
}

int sdr_sim_link_query(const struct sdr_sim *sim, int from, int to, uint32_t channel,
		       struct sdr_sim_link_info *info)
{
	struct link_counters c;
	int err = sim_link_counters(sim->sim, from, to, channel, &c);

	if (!err)
		info_put(&c, sim_link_queued_bytes(sim->sim, from, to, channel), info);
	return err;
}

int sdr_sim_drops_set(struct sdr_sim *sim, int from, int to, const struct sdr_sim_drop *drops,
		      size_t n)
{
	struct sim_drop *list = NULL;
	int err;

	if (n && !drops)
		return -EINVAL;
	if (n) {
		list = n > SIZE_MAX / sizeof(*list)
			       ? NULL
			       : alloc_zeroed(&sdr_alloc_system, n * sizeof(*list));
		if (!list)
			return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		list[i] = (struct sim_drop){drops[i].message, drops[i].packet, drops[i].attempt};
	err = sim_drops_set(sim->sim, from, to, list, n);
	alloc_free(&sdr_alloc_system, list);
	return err;
}

int sdr_sim_drops_query(const struct sdr_sim *sim, int from, int to,
			struct sdr_sim_drops_info *info)
{
	struct sdr_sim_drops_info out = {.size = info->size};
	struct sim_drops_info drops;
	int err = sim_drops_info(sim->sim, from, to, &drops);

	if (err)
		return err;
	out.entries = drops.n;
	out.hit = drops.hit;
	out.lost_pkts = drops.drops;
	memcpy(info, &out, u64_min(info->size, sizeof(out)));
	return 0;
}

int sdr_sim_paths_set(struct sdr_sim *sim, int from, int to, uint32_t n,
		      const struct sdr_sim_link *links)
{
	struct link_attr attrs[SDR_SIM_MAX_PATHS];
	const uint8_t *at = (const uint8_t *)links;

	_Static_assert(SDR_SIM_MAX_PATHS == LINK_MAX_PATHS, "as many as the simulator has");
	if (n > SDR_SIM_MAX_PATHS || (n && links->size % _Alignof(struct sdr_sim_link)))
		return -EINVAL;
	/* A caller's elements may be shorter or longer than ours. */
	for (uint32_t i = 0; i < n; i++, at += links->size) {
		const struct sdr_sim_link *link = (const struct sdr_sim_link *)(const void *)at;
		int err = link->size == links->size ? link_attr_fill(link, &attrs[i]) : -EINVAL;

		if (err)
			return err;
	}
	return sim_paths_set(sim->sim, from, to, n, attrs);
}

int sdr_sim_path_query(const struct sdr_sim *sim, int from, int to, uint32_t path,
		       struct sdr_sim_link_info *info)
{
	struct link_counters c;
	int err = sim_path_counters(sim->sim, from, to, path, &c);

	if (!err)
		info_put(&c, sim_path_queued_bytes(sim->sim, from, to, path), info);
	return err;
}

int sdr_sim_nat_set(struct sdr_sim *sim, int host, uint64_t timeout_ns, uint64_t every_ns)
{
	return sim_nat_set(sim->sim, host, timeout_ns, every_ns);
}

int sdr_sim_nat_rebind(struct sdr_sim *sim, int host)
{
	return sim_nat_rebind(sim->sim, host);
}

int sdr_sim_nat_query(const struct sdr_sim *sim, int host, struct sdr_sim_nat_info *info)
{
	const struct link_nat *nat = sim_nat(sim->sim, host);
	struct sdr_sim_nat_info out = {.size = info->size};

	if (!nat)
		return -ENOENT;
	out.rebinds = nat->rebinds;
	out.lost_pkts = nat->forgotten_pkts;
	memcpy(info, &out, u64_min(info->size, sizeof(out)));
	return 0;
}

static const struct {
	const char *name;
	struct sim_device device;
} device_likes[] = {
	{"udp", {0}},
	{"roce", {.rocev2 = true}},
	{"nic", {.rocev2 = true, .nic = true, .recv_depth = 4096, .zero_copy_ns = 5 * NS_PER_US}},
};

static int device_fill(const struct sdr_sim_device *in, struct sim_device *out)
{
	struct sdr_sim_device d = {0};
	size_t like = 0;

	*out = (struct sim_device){0};
	if (!in)
		return 0;
	memcpy(&d, in, u64_min(in->size, sizeof(d)));
	while (d.like && strcmp(device_likes[like].name, d.like) != 0)
		if (++like == SDR_ARRAY_LEN(device_likes))
			return -EINVAL;
	*out = device_likes[like].device;
	if (d.zero_copy_ns)
		out->zero_copy_ns = d.zero_copy_ns;
	if (d.recv_depth)
		out->recv_depth = d.recv_depth;
	out->coalesce_ns = d.coalesce_ns;
	out->late_ns = d.late_ns;
	out->lasting_keys = d.late_ns != 0;
	return (d.recv_depth || d.late_ns) && !out->nic ? -EINVAL : 0;
}

static struct sim_host_device *device_of(const struct sdr_sim *sim, int host)
{
	struct sim_host_device *at = sim->devices;

	while (at && at->host != host)
		at = at->next;
	return at;
}

int sdr_sim_device_set(struct sdr_sim *sim, int host, const struct sdr_sim_device *device)
{
	struct sim_host_device *own;
	struct sim_device filled;
	int err = device_fill(device, &filled);

	if (err || !sim_is_host(sim->sim, host))
		return -EINVAL;
	own = device_of(sim, host);
	if (!own) {
		own = alloc_zeroed(&sdr_alloc_system, sizeof(*own));
		if (!own)
			return -ENOMEM;
		own->host = host;
		own->next = sim->devices;
		sim->devices = own;
	}
	own->device = filled;
	return 0;
}

static void ctx_join(struct sdr_sim *sim, struct sdr_ctx *ctx)
{
	sim_fabric_addr(ctx->fabric, &ctx->local_addr);
	sim_owner_set(ctx->fabric, ctx);
	ctx->sim = sim;
	ctx->sim_number = sim->nctxs++;
	ctx->sim_next = sim->ctxs;
	if (sim->ctxs)
		sim->ctxs->sim_prev = ctx;
	sim->ctxs = ctx;
}

int sdr_sim_ctx_create(struct sdr_sim *sim, int host, const struct sdr_ctx_attr *attr,
		       struct sdr_ctx **out)
{
	struct sdr_ctx_attr a = {0};
	struct sim_fabric_attr fa = {0};
	struct fabric *f;
	int err;

	if (attr)
		memcpy(&a, attr, u64_min(attr->size, sizeof(a)));
	fa.max_payload = a.max_payload_bytes;
	fa.tx_queue_bytes = a.sockbuf_bytes;
	if (device_of(sim, host))
		fa.device = device_of(sim, host)->device;
	err = sim_fabric_open(sim->sim, host, &fa, &f);
	if (err)
		return err;
	err = sdk_ctx_open(f, &a, &sdr_alloc_system, out);
	if (err) {
		f->ops->close(f);
		return err;
	}
	if (heap_set(&sim->timers, &(*out)->sim_timer, UINT64_MAX, sim->nctxs)) {
		sdr_ctx_destroy(*out);
		return -ENOMEM;
	}
	ctx_join(sim, *out);
	return 0;
}

void sdk_sim_ctx_gone(struct sdr_ctx *ctx)
{
	struct sdr_sim *sim = ctx->sim;

	heap_remove(&sim->timers, &ctx->sim_timer);
	if (ctx->sim_prev)
		ctx->sim_prev->sim_next = ctx->sim_next;
	else
		sim->ctxs = ctx->sim_next;
	if (ctx->sim_next)
		ctx->sim_next->sim_prev = ctx->sim_prev;
	ctx->sim = NULL;
}

void sdk_sim_ctx_touched(struct sdr_ctx *ctx, bool progressed)
{
	uint64_t at;

	if (progressed)
		ctx->sim_told = ctx->sim_stopped = false;
	if (ctx->sim_told)
		return;
	at = sdr_next_deadline_ns(ctx);
	if (at != ctx->sim_timer.key)
		(void)heap_set(&ctx->sim->timers, &ctx->sim_timer, at, ctx->sim_number);
}

uint64_t sdr_sim_now_ns(const struct sdr_sim *sim)
{
	return sim_now(sim->sim);
}

static struct sdr_ctx *timer_ctx(struct heap_node *node)
{
	return (struct sdr_ctx *)(void *)((char *)node - offsetof(struct sdr_ctx, sim_timer));
}

static bool is_due(const struct sdr_sim *sim, const struct heap_node *node)
{
	return node && node->key <= sim_now(sim->sim) && node->key != UINT64_MAX;
}

/* It is asleep, or about to be asked: until its next progress it does not hold the clock. */
static void tell(struct sdr_sim *sim, struct sdr_ctx *ctx)
{
	ctx->sim_told = true;
	(void)heap_set(&sim->timers, &ctx->sim_timer, UINT64_MAX, ctx->sim_number);
}

/* When the first context is due of those that no step has stopped for yet. */
static uint64_t first_due(struct sdr_sim *sim)
{
	struct heap_node *first;

	while (is_due(sim, first = heap_first(&sim->timers)) && timer_ctx(first)->sim_stopped)
		tell(sim, timer_ctx(first));
	return first ? first->key : UINT64_MAX;
}

int sdr_sim_step(struct sdr_sim *sim, uint64_t limit_ns)
{
	uint64_t at = first_due(sim);
	bool news = sim_run(sim->sim, u64_max(sim_now(sim->sim), u64_min(at, limit_ns)));

	if (is_due(sim, heap_first(&sim->timers)))
		timer_ctx(heap_first(&sim->timers))->sim_stopped = true;
	return news || (at <= limit_ns && at != UINT64_MAX);
}

/* The longest due for what arrived and was not told, or else for a deadline. */
static struct sdr_ctx *due_find(struct sdr_sim *sim)
{
	struct heap_node *first = heap_first(&sim->timers);
	struct fabric *f;

	while ((f = sim_due_take(sim->sim))) {
		struct sdr_ctx *ctx = sim_owner(f);

		if (!ctx->sim_told)
			return ctx;
	}
	return is_due(sim, first) ? timer_ctx(first) : NULL;
}

struct sdr_ctx *sdr_sim_due(struct sdr_sim *sim)
{
	struct sdr_ctx *ctx = due_find(sim);

	if (ctx)
		tell(sim, ctx);
	return ctx;
}

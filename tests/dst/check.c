/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must hold of the whole: the layers' own checks, memory within a bound; and what a
 * world did, counted for the sites.
 */
#include "dst.h"

#include "base/bits.h"
#include "conn/internal.h"
#include "fabric/sim/sim_int.h"
#include "sdk/internal.h"
#include <malloc.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

void dst_poison(void *p, size_t n)
{
#if defined(__SANITIZE_ADDRESS__)
	__asan_poison_memory_region(p, n);
#else
	(void)p;
	(void)n;
#endif
}

void dst_unpoison(void *p, size_t n)
{
#if defined(__SANITIZE_ADDRESS__)
	__asan_unpoison_memory_region(p, n);
#else
	(void)p;
	(void)n;
#endif
}

uint64_t dst_checksum(const uint8_t *p, uint64_t n)
{
	uint64_t h = n + 1;

	for (; n >= 8; n -= 8, p += 8) {
		uint64_t v;

		memcpy(&v, p, 8);
		h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 32;
	}
	for (; n; n--, p++)
		h = (h ^ *p) * UINT64_C(0x9e3779b97f4a7c15);
	return h;
}

void dst_fill(uint8_t *p, uint64_t n, uint64_t seed)
{
	struct rng r;

	rng_init(&r, seed);
	for (uint64_t i = 0; i < n; i += 8) {
		uint64_t v = rng_next(&r);

		memcpy(p + i, &v, n - i < 8 ? n - i : 8);
	}
}

void dst_check_layers(struct dst_world *w)
{
	sim_check(w->sim);
	for (uint32_t i = 0; i < w->nhosts; i++) {
		const struct dst_host *h = &w->host[i];

		if (h->net)
			conn_net_check(h->net);
		if (h->ctx)
			sdk_ctx_check(h->ctx);
		if (h->raw)
			sdk_ctx_check(h->raw);
	}
	dst_check_memory(w);
}

/*
 * What the library holds, but for the simulator's slabs of packets (those grow with what is in
 * flight and are kept): so much for the world and for each link, context, QP and connection,
 * and for each number that can be in flight what its slots, bitmaps and pages take. Two to three
 * times what was measured, and far from what a leak for each packet or message would make of it.
 */
#define MEM_WORLD (256u << 10)
#define MEM_LINK 2048u
#define MEM_CTX (160u << 10)
#define MEM_QP (48u << 10)
#define MEM_CONN (160u << 10)
#define MEM_NUMBER 4096u
#define MEM_CODE (512u << 10) /* its tables, besides those of what was lost lately */

static uint64_t slabs_bytes(const struct sim *sim)
{
	uint64_t sum = 0;

	for (struct sim_slab *slab = sim->pool.slabs; slab; slab = slab->next)
		sum += malloc_usable_size(slab);
	return sum;
}

static uint64_t ctx_bound(const struct sdr_ctx *ctx)
{
	uint64_t sum = MEM_CTX;

	for (const struct sdr_qp *qp = ctx->qps; qp; qp = qp->next)
		sum += MEM_QP + (uint64_t)qp->attr.messages * MEM_NUMBER;
	return sum;
}

static uint64_t code_bound(const struct codec *c, uint32_t i)
{
	if (!c->code[i])
		return 0;
	return MEM_CODE +
	       UINT64_C(32) * CODE_TABLES_DEFAULT * code_k(c->code[i]) * u64_max(c->m[i], 4);
}

static uint64_t host_bound(const struct dst_host *h)
{
	uint64_t sum = (h->ctx ? ctx_bound(h->ctx) : 0) + (h->raw ? ctx_bound(h->raw) : 0);

	if (!h->net)
		return sum;
	sum += h->max_completions * sizeof(struct sdr_completion);
	for (const struct sdr_conn *conn = h->net->conns; conn; conn = conn->next) {
		sum += MEM_CONN + (uint64_t)conn->attr.messages * MEM_NUMBER;
		for (uint32_t i = 0; i < CODEC_CODES; i++)
			sum += code_bound(&conn->codec, i);
	}
	return sum;
}

void dst_check_memory(struct dst_world *w)
{
	uint64_t bound = MEM_WORLD + (uint64_t)w->nhosts * w->nhosts * MEM_LINK * 5;
	uint64_t held = dst_live_bytes() - slabs_bytes(w->sim);

	for (uint32_t i = 0; i < w->nhosts; i++)
		bound += host_bound(&w->host[i]);
	DST_CHECK(w, held <= bound, "the library holds %llu bytes; such a world needs %llu",
		  (unsigned long long)held, (unsigned long long)bound);
}

/* ---- counting ---- */

void dst_count_ctx(struct dst_world *w, const struct sdr_ctx *ctx)
{
	static const struct {
		enum sdr_counter counter;
		enum dst_site site;
	} of[] = {
		{SDR_CTR_tx_again, SITE_ctr_tx_again},
		{SDR_CTR_rx_duplicate, SITE_ctr_rx_duplicate},
		{SDR_CTR_rx_late, SITE_ctr_rx_late},
		{SDR_CTR_rx_malformed, SITE_ctr_rx_malformed},
		{SDR_CTR_rx_protection, SITE_ctr_rx_protection},
		{SDR_CTR_rx_unknown_qp, SITE_ctr_rx_unknown_qp},
		{SDR_CTR_ctrl_replayed, SITE_ctr_ctrl_replayed},
		{SDR_CTR_path_changes, SITE_ctr_path_changes},
	};
	uint64_t c[SDR_CTR_COUNT];
	int n = sdr_counters_get(ctx, c, SDR_CTR_COUNT);

	for (int i = 0; i < n; i++)
		dst_trace(w, c[i]);
	for (size_t i = 0; i < SDR_ARRAY_LEN(of); i++)
		dst_site(of[i].site, c[of[i].counter]);
	dst_site(SITE_nic_starved, sim_starved(ctx->fabric));
}

void dst_count_conn(const struct sdr_conn *conn)
{
	struct sdr_conn_info i = {.size = sizeof(i)};

	(void)sdr_conn_query(conn, &i);
	dst_site(SITE_tx_resent, i.tx_resent_pkts);
	dst_site(SITE_tx_spurious, i.tx_spurious_pkts);
	dst_site(SITE_tx_probe, i.tx_probes);
	dst_codes_count(&i);
}

void dst_count_world(struct dst_world *w)
{
	for (uint32_t i = 0; i < SIM_LINK_BUCKETS; i++) {
		for (const struct sim_link *l = w->sim->link[i]; l; l = l->bucket_next) {
			const struct link_counters *c = &l->link.counters;

			dst_site(SITE_link_lost, c->lost_pkts[LINK_LOST_RANDOM]);
			dst_site(SITE_link_queue, c->lost_pkts[LINK_LOST_QUEUE]);
			dst_site(SITE_link_duplicated, c->duplicated_pkts);
			dst_site(SITE_link_reordered, c->reordered_pkts);
			dst_site(SITE_link_corrupted, c->corrupted_pkts);
		}
	}
}

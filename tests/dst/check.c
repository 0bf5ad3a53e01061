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
}

void dst_check_memory(struct dst_world *w)
{
	(void)w;
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
		{SDR_CTR_tx_errors, SITE_ctr_tx_errors},
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

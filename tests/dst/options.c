/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a seed switches on. Swarm testing (Groce et al., ISSTA 2012): a world with a random
 * subset of the features reaches more than one that has a little of all, because features
 * hide each other.
 */
#include "dst.h"

#include "base/bits.h"
#include <string.h>

uint64_t dst_below(struct dst_world *w, uint64_t n)
{
	return rng_below(&w->rng, n);
}

bool dst_chance(struct dst_world *w, double p)
{
	return rng_unit(&w->rng) < p;
}

const char *dst_feature_name(unsigned int f)
{
	static const char *const names[] = {
#define NAME(name) #name,
		DST_FEATURES(NAME)
#undef NAME
	};

	return names[f];
}

/* Those that make a world expensive, or empty most of the others, are rare. */
static double share_of(enum dst_feature f, double p)
{
	switch (f) {
	case F_BIG:
	case F_MANY:
		return 0.02;
	case F_BREAKER:
		return 0.05;
	case F_NO_PAYLOAD:
		return 0.08;
	case F_CRASH:
	case F_SHORT_DEAD:
	case F_LOSSY_CONNECT:
	case F_NOMEM:
		return p / 2;
	case F_RAW:
		return 0.35;
	case F_CODES: /* most of what there is to a connection */
		return 0.2 + p;
	default:
		return p;
	}
}

/* A breaker takes 10 s of nothing but loss to open. */
static void breaker_alone(struct dst_world *w)
{
	static const enum dst_feature off[] = {
		F_SHORT_DEAD, F_DESTROY,  F_CRASH,	 F_CLOSE,	  F_LONG,
		F_PAUSE,      F_CUT,	  F_LINK_CHANGE, F_LOSSY_CONNECT, F_RATE_CHANGE,
		F_CANCEL,     F_DEADLINE, F_TOO_LONG,	 F_SLOW_RECV,	  F_NOMEM,
		F_PATHS,      F_SELDOM,	  F_RAW,	 F_TARGETED};

	for (size_t i = 0; i < SDR_ARRAY_LEN(off); i++)
		w->on[off[i]] = false;
	w->on[F_FIXED_RATE] = w->on[F_LOSS] = true;
}

void dst_options_draw(struct dst_world *w)
{
	static const double shares[] = {0, 0.1, 0.2, 0.2, 0.35, 0.35, 0.5, 0.7};
	static const uint32_t every[] = {1, 8, 32, 64, 256};
	static const uint64_t turns[] = {200 * US, 2 * MS, 20 * MS};
	double p = shares[dst_below(w, SDR_ARRAY_LEN(shares))];

	for (unsigned int f = 0; f < F_COUNT; f++) {
		bool on = dst_chance(w, share_of((enum dst_feature)f, p));

		w->on[f] = p > 0 && on;
	}
	if (w->on[F_BREAKER])
		breaker_alone(w);
	w->check_every = every[dst_below(w, SDR_ARRAY_LEN(every))];
	w->turn_max_ns = turns[dst_below(w, SDR_ARRAY_LEN(turns))];
	w->nhosts = 2 + (uint32_t)dst_below(w, dst_chance(w, 0.3) ? 7 : 2);
	if (w->on[F_MANY])
		w->nhosts = DST_HOSTS_MAX;
	w->faults_end_ns = (20 + dst_below(w, dst_chance(w, 0.2) ? 5000 : 600)) * MS;
	if (w->on[F_PAUSE])
		w->faults_end_ns += 15 * SEC;
	if (w->on[F_BREAKER])
		w->faults_end_ns += 25 * SEC;
}

static void link_faults(struct dst_world *w, struct sdr_sim_link *l)
{
	static const double losses[] = {1e-3, 1e-2, 0.05, 0.1, 0.3};

	if (w->on[F_LOSS])
		l->loss = losses[dst_below(w, SDR_ARRAY_LEN(losses))];
	if (w->on[F_BREAKER])
		l->loss = 0.7;
	if (w->on[F_BURST] && l->loss > 0)
		l->burst_pkts = 1.5 + rng_unit(&w->rng) * 20;
	if (w->on[F_REORDER]) {
		l->reorder = 0.2 * rng_unit(&w->rng);
		l->reorder_ns = 1000 + dst_below(w, l->delay_ns + 1000);
	}
	if (w->on[F_DUPLICATE])
		l->duplicate = 0.2 * rng_unit(&w->rng);
	if (w->on[F_CORRUPT])
		l->corrupt = 0.03 * rng_unit(&w->rng);
	if (w->on[F_JITTER])
		l->jitter_ns = dst_below(w, l->delay_ns / 2 + 1000);
	if (w->on[F_FLAP] && dst_chance(w, 0.7)) {
		l->flap_every_ns = (5 + dst_below(w, 300)) * MS;
		l->flap_for_ns = 1 + dst_below(w, l->flap_every_ns - 1);
		l->flap_delay_ns = dst_below(w, 2 * l->delay_ns + MS);
		dst_site(SITE_link_flap, 1);
	}
}

void dst_link_draw(struct dst_world *w, struct sdr_sim_link *l)
{
	static const uint64_t delays[] = {10 * US, 100 * US, MS, 5 * MS, 20 * MS, 50 * MS};
	static const uint64_t far[] = {100 * MS, 300 * MS, 750 * MS};
	static const uint64_t rates[] = {10000000, 100000000, 1000000000, 10000000000};

	*l = (struct sdr_sim_link){.size = sizeof(*l)};
	l->delay_ns = delays[dst_below(w, SDR_ARRAY_LEN(delays))];
	if (w->on[F_LONG])
		l->delay_ns = far[dst_below(w, SDR_ARRAY_LEN(far))];
	if (w->on[F_RATE] || w->on[F_QUEUE])
		l->rate_bps = rates[dst_below(w, SDR_ARRAY_LEN(rates))];
	if (w->on[F_QUEUE] && l->rate_bps)
		l->queue_bytes = 3000 + dst_below(w, dst_chance(w, 0.5) ? 20000 : 500000);
	link_faults(w, l);
}

void dst_device_draw(struct dst_world *w, struct dst_host *h)
{
	static const uint64_t reads[] = {0, 100 * US, MS, 3 * MS};
	static const uint32_t depths[] = {0, 8, 64};

	h->device = (struct sdr_sim_device){.size = sizeof(h->device), .like = "udp"};
	if (w->on[F_RDMA] && dst_chance(w, 0.8)) {
		h->rdma = true;
		h->nic = dst_chance(w, 0.6);
		h->device.like = h->nic ? "nic" : "roce";
		h->device.zero_copy_ns = reads[dst_below(w, SDR_ARRAY_LEN(reads))];
	}
	if (h->nic && w->on[F_ODD_NIC]) {
		h->device.recv_depth = depths[dst_below(w, SDR_ARRAY_LEN(depths))];
		h->device.late_ns = dst_chance(w, 0.5) ? 0 : 30 * MS;
		dst_site(SITE_device_odd, h->device.recv_depth || h->device.late_ns);
	}
	dst_site(h->nic ? SITE_device_nic : h->rdma ? SITE_device_roce : SITE_device_udp, 1);
}

static void attr_rates(struct dst_world *w, uint64_t link_bps, struct sdr_conn_attr *a)
{
	if (w->on[F_BREAKER])
		a->rate_bps = 2000000;
	if (w->on[F_BREAKER] || !w->on[F_FIXED_RATE] || dst_chance(w, 0.3))
		return;
	a->rate_bps = link_bps ? link_bps : 1000000000;
	if (dst_chance(w, 0.2))
		a->rate_bps *= 4; /* more than the link takes: the breaker's business */
}

void dst_attr_draw(struct dst_world *w, const struct dst_host *h, uint64_t link_bps,
		   struct sdr_conn_attr *a)
{
	static const char *const schemes[] = {"gbn", "sr", "sr-nack", "sr-nack", "sr:rto=3"};

	*a = (struct sdr_conn_attr){.size = sizeof(*a)};
	a->scheme = schemes[dst_below(w, SDR_ARRAY_LEN(schemes))];
	a->channels = w->on[F_CHANNELS] ? 1 + (uint32_t)dst_below(w, 6) : 1;
	a->chunk_pkts = 1u << dst_below(w, 7);
	a->messages = 1u << (1 + dst_below(w, 6));
	if (dst_chance(w, 0.3))
		a->max_payload_bytes =
			h->rdma ? 1024u << dst_below(w, 3) : 64 + (uint32_t)dst_below(w, 1372);
	attr_rates(w, link_bps, a);
	a->connect_timeout_ns = 120 * SEC;
	if (w->on[F_LOSSY_CONNECT])
		a->connect_timeout_ns = 20 * MS + dst_below(w, 2 * SEC);
	dst_codes_draw(w, a);
	if (w->on[F_SHORT_DEAD])
		a->dead_after_ns = (200 + dst_below(w, 3000)) * MS;
}

/* Around the edges of a packet and of a chunk, and in between. */
uint64_t dst_size_draw(struct dst_world *w, uint64_t payload, uint64_t chunk)
{
	switch (dst_below(w, 12)) {
	case 0:
		return 0;
	case 1:
		return 1 + dst_below(w, 8);
	case 2:
	case 3:
		return payload - 1 + dst_below(w, 3);
	case 4:
	case 5:
		return u64_min(payload * chunk, 60000) - 1 + dst_below(w, 3);
	case 6:
		return payload * (1 + dst_below(w, 40));
	case 7:
		return dst_below(w, 64 * payload + 3);
	default:
		return dst_below(w, 8000);
	}
}

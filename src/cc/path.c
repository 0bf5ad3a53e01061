/* SPDX-License-Identifier: Apache-2.0 */
/* See path.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bits.h"
#include "cc/path.h"

#define SEC 1e9

/* Packets sent at one time. */
struct chunk {
	uint64_t sent_ns, arrive_ns; /* at the receiver; 0 where all were lost */
	uint32_t sent, arrived;	     /* packets */
	uint32_t host_drops;
	uint64_t delivered, delivered_ns, first_sent_ns; /* as of sending, packets */
	bool app_limited;
};

struct path {
	struct path_config c;
	struct cc *cc;
	struct rng rng;
	uint64_t now, step_ns;
	struct chunk *ring;
	uint64_t head, tail, cap;
	double credit, app_credit, host_credit; /* packets */
	uint64_t free_ns;			/* when the bottleneck is idle again */
	uint64_t next_ack_ns, ack_late_ns;
	uint64_t inflight;
	uint64_t delivered, delivered_ns, first_sent_ns, app_until;
	/* Statistics. */
	uint64_t since_ns, s_delivered, s_sent, s_lost;
	double queue_sum, queue_max;
	uint64_t queue_n;
};

struct path *path_new(const struct path_config *config, struct cc *cc)
{
	struct path *p = calloc(1, sizeof(*p));
	assert_non_null(p);
	p->c = *config;
	p->cc = cc;
	p->now = p->since_ns = 1000000000;
	rng_init(&p->rng, config->seed + 1);
	p->cap = 1 << 16;
	p->ring = calloc(p->cap, sizeof(*p->ring));
	assert_non_null(p->ring);
	double pkt_ns = PATH_PAYLOAD * 8 * SEC / config->rate_bps;
	p->step_ns = u64_max(u64_min(config->rtt_ns / 64, 250000), 2000);
	if (pkt_ns > (double)p->step_ns)
		p->step_ns = u64_min((uint64_t)pkt_ns, 250000);
	return p;
}

void path_free(struct path *p)
{
	free(p->ring);
	free(p);
}

static struct chunk *at(struct path *p, uint64_t pos)
{
	return &p->ring[pos % p->cap];
}

static uint32_t survivors(struct path *p, uint32_t n)
{
	uint32_t alive = 0;
	if (p->c.loss <= 0)
		return n;
	for (uint32_t i = 0; i < n; i++)
		alive += rng_unit(&p->rng) >= p->c.loss;
	return alive;
}

static double queue_s(const struct path *p)
{
	return p->free_ns > p->now ? (double)(p->free_ns - p->now) / SEC : 0;
}

static double queue_limit_s(const struct path *p)
{
	double limit = (double)p->c.rtt_ns / SEC;
	if (p->c.queue_s > 0)
		return p->c.queue_s;
	return limit > 0.005 ? limit : 0.005;
}

/* Through the bottleneck: how many get into its queue, and when the last is out. */
static void enqueue(struct path *p, struct chunk *c, uint32_t n)
{
	double pkt_s = PATH_PAYLOAD * 8 / p->c.rate_bps;
	double room = (queue_limit_s(p) - queue_s(p)) / pkt_s + 1;
	uint32_t fit = room <= 0 ? 0 : room >= n ? n : (uint32_t)room;
	c->arrived = fit;
	if (!fit)
		return;
	p->free_ns = u64_max(p->free_ns, p->now) + (uint64_t)(fit * pkt_s * SEC);
	c->arrive_ns = p->free_ns + p->c.rtt_ns / 2;
	if (p->c.host_bps > 0) {
		uint32_t takes = (uint32_t)p->host_credit;
		takes = takes < fit ? takes : fit;
		p->host_credit -= takes;
		c->host_drops = fit - takes;
		c->arrived = takes;
	}
}

static void send_now(struct path *p)
{
	double window = (double)cc_window_bytes(p->cc) / PATH_PAYLOAD;
	double dt = (double)p->step_ns / SEC;
	p->credit += (double)cc_pacing_bps(p->cc) / 8 / PATH_PAYLOAD * dt;
	p->host_credit += p->c.host_bps / 8 / PATH_PAYLOAD * dt;
	if (p->host_credit > 1000)
		p->host_credit = 1000;
	double can = p->credit;
	if (can > window - (double)p->inflight)
		can = window - (double)p->inflight;
	bool limited = false;
	if (p->c.app_bps > 0) {
		p->app_credit += p->c.app_bps / 8 / PATH_PAYLOAD * dt;
		limited = p->app_credit < can;
		can = limited ? p->app_credit : can;
	}
	if (limited)
		p->app_until = p->delivered + p->inflight + 1;
	if (can < 1) {
		p->credit = p->credit < 64 ? p->credit : 64;
		return;
	}
	uint32_t n = (uint32_t)can;
	p->credit -= n;
	p->credit = p->credit < 64 ? p->credit : 64;
	p->app_credit -= p->c.app_bps > 0 ? n : 0;
	assert_true(p->tail - p->head < p->cap);
	if (p->inflight == 0)
		p->first_sent_ns = p->delivered_ns = p->now;
	struct chunk *c = at(p, p->tail++);
	*c = (struct chunk){.sent_ns = p->now,
			    .sent = n,
			    .delivered = p->delivered,
			    .delivered_ns = p->delivered_ns,
			    .first_sent_ns = p->first_sent_ns,
			    .app_limited = p->app_until > p->delivered};
	enqueue(p, c, survivors(p, n));
	p->inflight += n;
	p->s_sent += n;
}

/* One ACK: all that reached the receiver half an RTT ago. */
static void ack_now(struct path *p)
{
	struct cc_sample s = {.now_ns = p->now};
	uint64_t seen_ns = p->now - p->c.rtt_ns / 2 - p->ack_late_ns;
	const struct chunk *newest = NULL;
	uint64_t got = 0, lost = 0;
	while (p->head < p->tail) {
		struct chunk *c = at(p, p->head);
		uint64_t known = c->arrive_ns ? c->arrive_ns : c->sent_ns + p->c.rtt_ns / 2;
		if (known > seen_ns)
			break;
		p->head++;
		got += c->arrived;
		lost += c->sent - c->arrived;
		s.host_drops += c->host_drops;
		if (c->arrived)
			newest = c;
	}
	if (!got && !lost)
		return;
	p->inflight -= got + lost;
	p->delivered += got;
	p->s_delivered += got;
	p->s_lost += lost;
	s.delivered_bytes = got * PATH_PAYLOAD;
	s.lost_bytes = lost * PATH_PAYLOAD;
	s.inflight_bytes = p->inflight * PATH_PAYLOAD;
	if (newest) {
		uint64_t arrived_ns = newest->arrive_ns + p->c.rtt_ns / 2;
		p->delivered_ns = u64_max(p->delivered_ns, arrived_ns);
		s.rtt_ns = arrived_ns - newest->sent_ns;
		s.rate_bytes = (p->delivered - newest->delivered) * PATH_PAYLOAD;
		s.rate_interval_ns = u64_max(newest->sent_ns - newest->first_sent_ns,
					     u64_sub_floor(p->delivered_ns, newest->delivered_ns));
		s.prior_delivered_bytes = newest->delivered * PATH_PAYLOAD;
		s.total_delivered_bytes = p->delivered * PATH_PAYLOAD;
		s.app_limited = newest->app_limited;
		p->first_sent_ns = newest->sent_ns;
	}
	cc_ack(p->cc, &s);
	cc_check(p->cc);
}

void path_run(struct path *p, uint64_t ns)
{
	uint64_t end = p->now + ns;
	while (p->now < end) {
		p->now += p->step_ns;
		double queue = queue_s(p);
		p->queue_sum += queue;
		p->queue_n++;
		p->queue_max = queue > p->queue_max ? queue : p->queue_max;
		if (p->now >= p->next_ack_ns && p->now > p->c.rtt_ns + p->c.noise_ns) {
			ack_now(p);
			p->next_ack_ns = p->now + u64_max(p->c.rtt_ns / 16, 20000);
			p->ack_late_ns = p->c.noise_ns ? rng_below(&p->rng, p->c.noise_ns) : 0;
			p->next_ack_ns += p->ack_late_ns;
		}
		send_now(p);
	}
}

void path_set_rate(struct path *p, double bps)
{
	double left = queue_s(p) * p->c.rate_bps / bps;
	p->free_ns = p->now + (uint64_t)(left * SEC);
	p->c.rate_bps = bps;
}

void path_set_loss(struct path *p, double loss)
{
	p->c.loss = loss;
}

void path_set_rtt(struct path *p, uint64_t ns)
{
	p->c.rtt_ns = ns;
}

void path_set_app(struct path *p, double bps)
{
	p->c.app_bps = bps;
	p->app_credit = 0;
}

struct path_stats path_take(struct path *p)
{
	double dt = (double)(p->now - p->since_ns) / SEC;
	uint64_t fated = p->s_delivered + p->s_lost;
	struct path_stats s = {
		.delivered_bps = (double)p->s_delivered * PATH_PAYLOAD * 8 / dt,
		.sent_bps = (double)p->s_sent * PATH_PAYLOAD * 8 / dt,
		.mean_queue_s = p->queue_n ? p->queue_sum / (double)p->queue_n : 0,
		.max_queue_s = p->queue_max,
		.lost = fated ? (double)p->s_lost / (double)fated : 0,
	};
	p->since_ns = p->now;
	p->s_delivered = p->s_sent = p->s_lost = p->queue_n = 0;
	p->queue_sum = p->queue_max = 0;
	return s;
}

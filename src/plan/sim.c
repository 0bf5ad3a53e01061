// SPDX-License-Identifier: Apache-2.0
/*
 * Selective repeat in runs, and the samples' loop. See sim.h; codes are in sim_code.c.
 */
#include "plan/sim.h"

#include "base/bits.h"
#include "base/check.h"
#include "plan/num.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define QUEUE_FIRST 1024u

static int queue_grow(struct sim *s, struct sim_queue *q)
{
	uint64_t size = q->run ? 2 * (q->mask + 1) : QUEUE_FIRST;
	struct sim_run *run = alloc_zeroed(s->alloc, size * sizeof(*run));

	if (!run)
		return -ENOMEM;
	for (uint64_t i = 0; i < q->count; i++)
		run[i] = q->run[(q->head + i) & q->mask];
	alloc_free(s->alloc, q->run);
	q->run = run;
	q->mask = size - 1;
	q->head = 0;
	return 0;
}

int sim_resend(struct sim *s, uint64_t ready, uint64_t len)
{
	struct sim_queue *q = &s->resend;
	struct sim_run *last = q->count ? &q->run[(q->head + q->count - 1) & q->mask] : NULL;

	if (last && last->ready + last->len == ready) {
		last->len += len;
		return 0;
	}
	return sim_queue_push(s, q, ready, len);
}

int sim_queue_push(struct sim *s, struct sim_queue *q, uint64_t ready, uint64_t len)
{
	if ((!q->run || q->count > q->mask) && queue_grow(s, q))
		return -ENOMEM;
	q->run[(q->head + q->count++) & q->mask] = (struct sim_run){ready, len};
	return 0;
}

struct sim_run *sim_queue_head(struct sim_queue *q)
{
	return q->count ? &q->run[q->head & q->mask] : NULL;
}

void sim_queue_pop(struct sim_queue *q)
{
	SDR_ASSERT(q->count > 0);
	q->head++;
	q->count--;
}

void sim_arrived(struct sim *s, uint64_t end)
{
	s->end = u64_max(s->end, end);
}

/* `count` units from s->slot on; what is lost of them is due again. */
static int transmit(struct sim *s, uint64_t count, uint64_t wait)
{
	uint64_t at = s->slot, to = at + count;

	s->slot = to;
	s->sent += (double)count;
	while (at < to) {
		uint64_t from, until;

		chan_seek(&s->chan, at);
		from = u64_min(u64_max(s->chan.from, at), to);
		until = u64_min(s->chan.to, to);
		if (from > at)
			sim_arrived(s, from);
		if (from == to)
			break;
		if (sim_resend(s, from + 1 + wait, until - from))
			return -ENOMEM;
		at = until;
	}
	return 0;
}

int sim_uncoded(struct sim *s, uint64_t count, uint64_t wait)
{
	int err = 0;

	while (count > 0 && !err) {
		struct sim_run *due = sim_queue_head(&s->resend);
		/* What is lost of this part falls due after it. */
		uint64_t part = u64_min(count, wait + 1);

		if (due && due->ready <= s->slot) {
			part = due->len;
			sim_queue_pop(&s->resend);
			err = transmit(s, part, wait);
			continue;
		}
		if (due)
			part = u64_min(part, due->ready - s->slot);
		count -= part;
		err = transmit(s, part, wait);
	}
	return err;
}

int sim_sr(struct sim *s, uint64_t count, uint64_t wait)
{
	struct sim_run *due;
	int err = sim_uncoded(s, count, wait);

	while (!err && (due = sim_queue_head(&s->resend))) {
		uint64_t part = due->len;

		s->slot = u64_max(s->slot, due->ready);
		sim_queue_pop(&s->resend);
		err = transmit(s, part, wait);
	}
	return err;
}

/* Of the number of lost ones among many slots, against independent losses. */
static double variance_factor(const struct burst *b)
{
	double memory = b->independent ? 0 : 1 - b->to_ok - b->to_lost;

	return (1 + memory) / (1 - memory);
}

uint64_t sim_skip(struct sim *s, uint64_t count, uint64_t keep)
{
	double loss = s->u->burst.loss, units, spread;

	if (count <= keep)
		return count;
	units = (double)(count - keep) / (1 - loss);
	spread = sqrt(units * loss * variance_factor(&s->u->burst) / (1 - loss));
	units = fmax(units + spread * num_normal(s->rng), (double)(count - keep));
	s->skipped_time += units;
	s->sent += units;
	return keep;
}

/*
 * The paper's reading with bursts: level j is what was lost j times, each unit again `wait`
 * later than before on a channel of its own, since resends share no link with others.
 */
static int paper_sr(struct sim *s, uint64_t count, double cost, double *latest)
{
	struct sim_queue *now = &s->resend, *next = &s->spare;
	struct sim_run *run;

	*latest = (double)count;
	now->count = next->count = 0;
	if (sim_queue_push(s, now, 0, count))
		return -ENOMEM;
	for (uint32_t level = 1; now->count > 0; level++) {
		struct sim_queue *swap = now;
		uint64_t last = 0;

		chan_start(&s->chan, &s->u->burst, s->rng, 0);
		for (; (run = sim_queue_head(now)); sim_queue_pop(now)) {
			uint64_t at = run->ready, to = run->ready + run->len;

			s->sent += (double)run->len;
			for (chan_seek(&s->chan, at); s->chan.from < to; chan_seek(&s->chan, at)) {
				uint64_t from = u64_max(s->chan.from, at);

				at = last = u64_min(s->chan.to, to);
				if (sim_queue_push(s, next, from, at - from))
					return -ENOMEM;
				if (at == to)
					break;
			}
		}
		if (next->count > 0)
			*latest = fmax(*latest, (double)last + level * cost);
		now = next;
		next = swap;
	}
	return 0;
}

static uint64_t wait_slots(const struct sim *s)
{
	return (uint64_t)llround(s->p->rto_rtts * s->u->rtt);
}

static int whole_sr(struct sim *s, uint64_t count)
{
	uint64_t wait = wait_slots(s);

	return sim_sr(s, sim_skip(s, count, SIM_WAITS * u64_max(wait, 1)), wait);
}

static void begin(struct sim *s)
{
	s->slot = s->end = 0;
	s->skipped_time = 0;
	s->failed_units = s->failed_blocks = 0;
	s->resend.count = s->repair.count = 0;
	chan_start(&s->chan, &s->u->burst, s->rng, 0);
}

static int draw_sr(struct sim *s, enum plan_reading reading, double *slots)
{
	int err;

	if (reading == PLAN_PAPER) {
		err = paper_sr(s, s->u->n, units_sr(s->u, s->p).cost, slots);
		*slots += s->u->rtt;
		return err;
	}
	err = whole_sr(s, s->u->n);
	*slots = s->skipped_time + (double)(s->end + s->u->rtt_slots);
	return err;
}

static int draw_ec(struct sim *s, enum plan_reading reading, double *slots)
{
	double latest, nack = (s->p->beta_rtts + 1) * s->u->rtt;
	int err = sim_coded(s, s->u->n);

	*slots = s->skipped_time + (double)(s->end + s->u->rtt_slots);
	if (err || (s->failed_units <= 0 && reading == PLAN_SERIALISED))
		return err;
	if (reading == PLAN_PAPER) {
		*slots = s->skipped_time + (double)s->slot + s->u->rtt;
		if (s->failed_units <= 0)
			return 0;
		err = paper_sr(s, (uint64_t)s->failed_units, units_sr(s->u, s->p).cost, &latest);
		*slots += nack + latest;
		return err;
	}
	s->slot += (uint64_t)llround(nack);
	err = whole_sr(s, (uint64_t)s->failed_units);
	*slots = s->skipped_time + (double)(s->end + s->u->rtt_slots);
	return err;
}

static int draw_hybrid(struct sim *s, double *slots)
{
	uint64_t span = u64_min(s->p->span, s->u->n), wait = s->u->rtt_slots;
	int err = sim_uncoded(s, sim_skip(s, s->u->n - span, SIM_UNCODED_WAITS * wait), wait);

	if (!err)
		err = sim_coded(s, span);
	if (!err)
		err = sim_repair(s);
	*slots = s->skipped_time + (double)(s->end + s->u->rtt_slots);
	return err;
}

static int draw_gbn(struct sim *s, double *slots)
{
	int err = sim_gbn(s, s->u->n, wait_slots(s));

	*slots = s->skipped_time + (double)(s->end + s->u->rtt_slots);
	return err;
}

int sim_draw(struct sim *s, enum plan_reading reading, double *slots)
{
	int err;

	begin(s);
	if (s->p->scheme == PLAN_HYBRID)
		err = draw_hybrid(s, slots);
	else if (s->p->scheme == PLAN_GBN)
		err = draw_gbn(s, slots);
	else if (units_coded(s->p->scheme))
		err = draw_ec(s, reading, slots);
	else
		err = draw_sr(s, reading, slots);
	return err;
}

int sim_init(struct sim *s, const struct units *u, const struct plan_params *p, struct rng *rng,
	     const struct sdr_alloc *alloc)
{
	bool coded = units_coded(p->scheme) || p->scheme == PLAN_HYBRID;
	size_t cells;

	*s = (struct sim){.u = u, .p = p, .alloc = alloc, .rng = rng};
	if (!coded)
		return 0;
	s->depth = p->depth ? p->depth : 1;
	s->cells = p->scheme == PLAN_EC_XOR ? p->m : 1;
	s->limit = p->scheme == PLAN_EC_XOR ? 1 : p->m;
	cells = (size_t)s->depth * s->cells;
	s->lost_units = alloc_zeroed(alloc, cells * sizeof(*s->lost_units));
	s->lost_parity = alloc_zeroed(alloc, cells * sizeof(*s->lost_parity));
	s->parity_gone = alloc_zeroed(alloc, (size_t)s->depth * p->m + 1);
	s->margin = alloc_zeroed(alloc, (PLAN_CODE_MAX + 1) * sizeof(*s->margin));
	return s->lost_units && s->lost_parity && s->parity_gone && s->margin ? 0 : -ENOMEM;
}

void sim_fini(struct sim *s)
{
	alloc_free(s->alloc, s->resend.run);
	alloc_free(s->alloc, s->repair.run);
	alloc_free(s->alloc, s->spare.run);
	alloc_free(s->alloc, s->lost_units);
	alloc_free(s->alloc, s->lost_parity);
	alloc_free(s->alloc, s->parity_gone);
	alloc_free(s->alloc, s->margin);
}

static int draw_all(struct sim *s, enum plan_reading reading, double *samples, uint32_t count,
		    struct plan_result *out)
{
	double sent = 0, fallbacks = 0;

	for (uint32_t i = 0; i < count; i++) {
		int err;

		s->sent = 0;
		err = sim_draw(s, reading, &samples[i]);
		if (err)
			return err;
		sent += s->sent;
		fallbacks += s->failed_units > 0;
	}
	out->overhead = sent / count / (double)s->u->n - 1;
	out->p_fallback = fallbacks / count;
	return 0;
}

int sim_estimate(const struct units *u, const struct plan_params *p,
		 const struct plan_options *options, const struct sdr_alloc *alloc,
		 struct plan_result *out)
{
	uint32_t count = options->samples ? options->samples : SIM_SAMPLES;
	double *samples = alloc_zeroed(alloc, count * sizeof(*samples));
	struct rng rng;
	struct sim sim;
	int err = -ENOMEM;

	rng_init(&rng, options->seed);
	if (samples && (err = sim_init(&sim, u, p, &rng, alloc)) == 0) {
		err = draw_all(&sim, options->reading, samples, count, out);
		if (!err)
			units_summary(u, samples, count, out);
	}
	if (samples)
		sim_fini(&sim);
	alloc_free(alloc, samples);
	return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The coded sender and a receiver that says anything: windows, facts and deficits are drawn, the
 * scheme changes, messages are closed at any time. Nothing of what it says may break what must
 * hold, or keep packets in flight that are gone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/rng.h"
#include "rel/tx_priv.h"

#define SEEDS 60u
#define STEPS 1500u
#define OPEN_MOST 12u
#define CHANNELS_MOST 3u

struct world {
	struct rel_tx tx;
	struct rng rng;
	uint64_t now_ns;
	uint32_t first, next; /* messages: even ones, as of a paired direction */
	uint32_t psn[CHANNELS_MOST];
	uint64_t sent[CHANNELS_MOST], received[CHANNELS_MOST];
	uint64_t taken;
	uint32_t lies; /* percent of the facts that are drawn */
};

static uint64_t below(struct world *w, uint64_t n)
{
	return rng_next(&w->rng) % n;
}

static bool chance(struct world *w, uint64_t percent)
{
	return below(w, 100) < percent;
}

static void coding_draw(struct world *w, uint32_t npkts, struct rel_coding *c)
{
	*c = (struct rel_coding){.copies = (uint32_t)below(w, 4), .gap_ns = below(w, 3000000)};
	if (chance(w, 20))
		return;
	c->code = chance(w, 70) ? REL_CODE_RS : REL_CODE_XOR;
	c->k = 1 + (uint32_t)below(w, chance(w, 80) ? 12 : 254);
	c->m = 1 + (uint32_t)below(w, u64_min(c->code == REL_CODE_RS ? 254 : c->k, 255 - c->k));
	if (chance(w, 80))
		c->m = (uint32_t)u64_min(1 + c->m % 4, 255 - c->k);
	if (c->code == REL_CODE_XOR)
		c->m = (uint32_t)u64_min(c->m, c->k);
	c->depth = 1 + (uint32_t)below(w, chance(w, 80) ? 8 : REL_DEPTH_MAX);
	c->span_start = (uint32_t)below(w, chance(w, 50) ? 1 : npkts);
	c->span_pkts = 1 + (uint32_t)below(w, npkts - c->span_start);
	c->parity_room = (uint32_t)below(w, chance(w, 50) ? 3 * npkts : 1u << 20);
	c->fresh = chance(w, 60);
	for (uint32_t i = 0; i < REL_MARGINS; i++)
		c->margin[i] = (uint8_t)below(w, chance(w, 90) ? 4 : 256);
}

static void open_one(struct world *w)
{
	uint32_t npkts = 1 + (uint32_t)below(w, chance(w, 80) ? 300 : 9000);
	struct rel_coding c;

	if ((w->next - w->first) / 2 >= OPEN_MOST)
		return;
	coding_draw(w, npkts, &c);
	if (w->tx.params.scheme.repair == REL_REPAIR_GBN || !w->tx.params.scheme.nack)
		assert_int_equal(rel_tx_open(&w->tx, w->next, npkts), 0);
	else
		assert_int_equal(rel_tx_open_coded(&w->tx, w->next, npkts, &c), 0);
	w->next += 2;
}

/* As conn/ does: gbn and the others do not mix. */
static void scheme_draw(struct world *w)
{
	static const char *const names[] = {"sr-nack", "sr-nack", "sr", "gbn"};
	struct rel_params p;

	assert_int_equal(rel_scheme_parse(names[below(w, 4)], &p, NULL, 0), 0);
	if (p.repair == w->tx.params.scheme.repair || !w->tx.nopen)
		w->tx.params.scheme = p;
}

static void put(struct world *w, struct rel_range *r)
{
	uint32_t c = (uint32_t)below(w, w->tx.params.channels);

	r->count = r->probe ? r->count : 1 + (uint32_t)below(w, r->count);
	rel_tx_sent(&w->tx, r, c, w->psn[c], w->now_ns);
	w->psn[c] = (w->psn[c] + r->count) & 0xffffff;
	w->sent[c] += r->count;
	w->taken += r->count;
}

static void send_some(struct world *w)
{
	struct rel_range r;

	for (uint64_t n = below(w, 30); n > 0; n--) {
		if (rel_tx_next(&w->tx, w->now_ns, 1 + (uint32_t)below(w, REL_UNIT), &r) != 1)
			return;
		if (chance(w, 95))
			put(w, &r);
	}
}

/* As they could be: of what was sent a while ago more and more has come. */
static void fact_draw(struct world *w, uint32_t c, struct wire_ack_channel *f)
{
	w->received[c] += below(w, w->sent[c] - w->received[c] + 1);
	f->flags = WIRE_ACK_PSN_VALID;
	f->newest_psn = (w->psn[c] - 1 - (uint32_t)below(w, 3)) & 0xffffff;
	f->age_ns = (uint32_t)below(w, 4000000);
	f->received = w->received[c];
}

static void fact_draw_any(struct world *w, uint32_t c, struct wire_ack_channel *f)
{
	uint64_t kind = below(w, 10);

	f->flags = kind < 5 ? WIRE_ACK_PSN_VALID : kind < 9 ? WIRE_ACK_PACKET_VALID : 0;
	f->newest_psn = (w->psn[c] - 1 - (uint32_t)below(w, 400)) & 0xffffff;
	f->newest_message = w->first + (uint32_t)below(w, w->next - w->first + 2);
	f->newest_packet = (uint32_t)below(w, 400);
	f->age_ns = (uint32_t)below(w, chance(w, 90) ? 4000000 : UINT32_MAX);
	f->received = below(w, w->sent[c] + 2);
	f->duplicates = chance(w, 10) ? below(w, w->sent[c] + 2) : 0;
}

static void facts_draw(struct world *w, struct wire_ack_enc *enc, bool any)
{
	for (uint32_t c = 0; c < w->tx.params.channels; c++) {
		struct wire_ack_channel f = {.id = (uint8_t)c};

		if (any)
			fact_draw_any(w, c, &f);
		else
			fact_draw(w, c, &f);
		(void)wire_ack_channel_put(enc, &f);
	}
}

static void windows_draw(struct world *w, struct wire_ack_enc *enc)
{
	uint64_t bits[4];

	for (uint64_t n = below(w, 8); n > 0; n--) {
		uint32_t message = w->first + (uint32_t)below(w, w->next - w->first + 1);
		uint64_t density = below(w, 4);

		for (size_t i = 0; i < SDR_ARRAY_LEN(bits); i++) {
			bits[i] = ~UINT64_C(0);
			for (uint64_t d = density; d > 0; d--)
				bits[i] &= rng_next(&w->rng);
		}
		(void)wire_ack_window_from_bits(enc, message,
						(uint32_t)below(w, chance(w, 90) ? 320 : 9100),
						1 + (uint32_t)below(w, 256), bits);
	}
}

static void deficits_draw(struct world *w, struct wire_ack_enc *enc)
{
	for (uint32_t m = w->first; m != w->next && chance(w, 70); m += 1 + chance(w, 90)) {
		uint32_t block = (uint32_t)below(w, 4);

		while (chance(w, 80)) {
			if (wire_ack_deficit_put(enc, m, block, 1 + (uint32_t)below(w, 255)))
				return;
			block += 1 + (uint32_t)below(w, chance(w, 80) ? 3 : 3000);
		}
	}
}

static void say_anything(struct world *w)
{
	struct rel_ack_result out;
	struct wire_ack_enc enc;
	uint8_t body[2048];

	assert_int_equal(wire_ack_begin(&enc, body, sizeof(body), w->first, CHANNELS_MOST), 0);
	wire_ack_reserve(&enc, 300);
	windows_draw(w, &enc);
	facts_draw(w, &enc, chance(w, w->lies));
	deficits_draw(w, &enc);
	assert_int_equal(rel_tx_ack(&w->tx, body, (size_t)wire_ack_end(&enc), w->now_ns, &out), 0);
}

static void time_passes(struct world *w)
{
	struct rel_ack_result lost;
	struct rel_range probe;

	if (chance(w, 60))
		w->now_ns += below(w, 2000000);
	else if (rel_tx_deadline(&w->tx) != UINT64_MAX)
		w->now_ns = u64_max(w->now_ns, rel_tx_deadline(&w->tx));
	if (chance(w, 1))
		w->now_ns += UINT64_C(10000000000);
	if (rel_tx_timer(&w->tx, w->now_ns, &probe, &lost) == 1)
		put(w, &probe);
}

static void close_some(struct world *w)
{
	if (w->first == w->next)
		return;
	rel_tx_close(&w->tx, w->first + 2 * (uint32_t)below(w, (w->next - w->first) / 2));
	while (w->first != w->next && !rel_tx_is_open(&w->tx, w->first))
		w->first += 2;
}

static void step(struct world *w)
{
	uint64_t what = below(w, 100);

	if (what < 10)
		open_one(w);
	else if (what < 45)
		send_some(w);
	else if (what < 70)
		say_anything(w);
	else if (what < 94)
		time_passes(w);
	else if (what < 98)
		close_some(w);
	else
		scheme_draw(w);
}

static void run(uint64_t seed)
{
	static struct world w;
	struct rel_tx_params p = {0};

	w = (struct world){.now_ns = 1000000000};
	rng_init(&w.rng, seed);
	w.lies = chance(&w, 50) ? 50 : 1;
	w.next = w.first = (uint32_t)rng_next(&w.rng) & ~1u;
	p.channels = 1 + (uint32_t)below(&w, CHANNELS_MOST);
	assert_int_equal(rel_scheme_parse("sr-nack", &p.scheme, NULL, 0), 0);
	assert_int_equal(rel_tx_init(&w.tx, &p, &sdr_alloc_system), 0);
	rel_tx_set_bdp(&w.tx, below(&w, 4000));
	for (unsigned int i = 0; i < STEPS; i++) {
		step(&w);
		rel_tx_check(&w.tx);
	}
	rel_tx_close_below(&w.tx, w.next);
	rel_tx_check(&w.tx);
	assert_int_equal(rel_tx_inflight_all(&w.tx), 0);
	assert_int_equal(w.tx.covered_now, 0);
	assert_int_equal(w.tx.lost_now, 0);
	assert_int_equal(w.tx.stats.sent_pkts, w.taken);
	rel_tx_fini(&w.tx);
}

static void anything(void **state)
{
	const char *one = getenv("SDR_SEED");

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS && !one; seed++)
		run(seed);
	if (one)
		run(strtoull(one, NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(anything)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

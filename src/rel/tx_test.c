/* SPDX-License-Identifier: Apache-2.0 */
/* The sender alone: edges, allocation failures, and a slow twin of its bookkeeping. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <errno.h>

#include "base/alloc_failing.h"
#include "base/rng.h"
#include "rel/rel.h"
#include "rel/tx_priv.h"
#include "wire/ack.h"

#define MS UINT64_C(1000000)

static void tx_new(struct rel_tx *tx, const char *scheme, uint32_t channels)
{
	struct rel_tx_params p = {.channels = channels};
	assert_int_equal(rel_scheme_parse(scheme, &p.scheme, NULL, 0), 0);
	assert_int_equal(rel_tx_init(tx, &p, &sdr_alloc_system), 0);
}

static void opening(void **state)
{
	(void)state;
	struct rel_tx tx;
	struct rel_tx_params bad = {.channels = 0};
	assert_int_equal(rel_tx_init(&tx, &bad, &sdr_alloc_system), -EINVAL);
	bad.channels = REL_MAX_CHANNELS + 1;
	assert_int_equal(rel_tx_init(&tx, &bad, &sdr_alloc_system), -EINVAL);
	tx_new(&tx, "sr-nack", 1);
	assert_int_equal(rel_tx_open(&tx, 5, 0), -EINVAL);
	assert_int_equal(rel_tx_open(&tx, 0xfffffffeu, 1), 0);
	assert_int_equal(rel_tx_open(&tx, 0xfffffffeu, 1), -EINVAL);
	assert_int_equal(rel_tx_open(&tx, 0xfffffff0u, 1), -EINVAL);
	assert_int_equal(rel_tx_open(&tx, 4, 1), 0); /* across the wrap */
	assert_int_equal(rel_tx_open(&tx, 0xfffffffeu + REL_OPEN_SPAN, 1), -EAGAIN);
	assert_int_equal(rel_tx_open(&tx, 0xfffffffdu + REL_OPEN_SPAN, 1), 0);
	rel_tx_close(&tx, 77); /* unknown: ignored */
	assert_true(rel_tx_is_open(&tx, 4) && !rel_tx_is_open(&tx, 3));
	rel_tx_close_below(&tx, 5);
	assert_int_equal(tx.nopen, 1);
	rel_tx_check(&tx);
	rel_tx_fini(&tx);

	tx_new(&tx, "sr-nack", 1);
	for (uint32_t i = 0; i < REL_MAX_OPEN; i++)
		assert_int_equal(rel_tx_open(&tx, i, 1), 0);
	assert_int_equal(rel_tx_open(&tx, REL_MAX_OPEN, 1), -EAGAIN);
	rel_tx_check(&tx);
	rel_tx_fini(&tx);
}

static void ranges_are_cut_at_units(void **state)
{
	(void)state;
	struct rel_tx tx;
	struct rel_range r;
	static const uint32_t want[][3] = {
		{0, 0, 64}, {0, 64, 10}, {0, 74, 54}, {0, 128, 2}, {2, 0, 1}};
	static const uint32_t most[] = {1000, 10, 100, 64, 64};
	tx_new(&tx, "sr", 1);
	assert_int_equal(rel_tx_next(&tx, 1, 64, &r), 0);
	assert_int_equal(rel_tx_open(&tx, 0, 130), 0);
	assert_int_equal(rel_tx_open(&tx, 2, 1), 0);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(rel_tx_next(&tx, i + 1, 0, &r), 0);
		assert_true(rel_tx_pending(&tx));
		assert_int_equal(rel_tx_next(&tx, i + 1, most[i], &r), 1);
		assert_int_equal(r.message, want[i][0]);
		assert_int_equal(r.first, want[i][1]);
		assert_int_equal(r.count, want[i][2]);
		assert_true(!r.resend && !r.probe);
		rel_tx_sent(&tx, &r, 0, r.first, i + 1);
		rel_tx_check(&tx);
	}
	assert_int_equal(rel_tx_next(&tx, 9, 64, &r), 0);
	assert_true(!rel_tx_pending(&tx));
	assert_int_equal(rel_tx_inflight_all(&tx), 131);
	rel_tx_close(&tx, 0);
	assert_int_equal(rel_tx_inflight(&tx, 0), 1);
	rel_tx_close(&tx, 2);
	assert_int_equal(rel_tx_inflight_all(&tx), 0);
	assert_int_equal(rel_tx_deadline(&tx), UINT64_MAX);
	rel_tx_fini(&tx);
}

/* An ACK with one window and one channel. */
static int ack_body(uint8_t *buf, size_t cap, uint32_t message, uint32_t n, const uint64_t *bits,
		    const struct wire_ack_channel *channel)
{
	struct wire_ack_enc enc;
	assert_int_equal(wire_ack_begin(&enc, buf, cap, 0, channel ? 1 : 0), 0);
	if (n)
		assert_int_equal(wire_ack_window_from_bits(&enc, message, 0, n, bits), n);
	if (channel)
		assert_int_equal(wire_ack_channel_put(&enc, channel), 0);
	return wire_ack_end(&enc);
}

static void untracked_packets(void **state)
{
	(void)state;
	struct rel_tx tx;
	struct rel_range r;
	struct rel_ack_result out;
	uint8_t buf[300];
	uint64_t bits = 3;
	struct wire_ack_channel fact = {
		.flags = WIRE_ACK_PSN_VALID, .newest_psn = 101, .received = 2};
	tx_new(&tx, "sr-nack", 1);
	assert_int_equal(rel_tx_open(&tx, 0, 2), 0);
	assert_int_equal(rel_tx_next(&tx, MS, 64, &r), 1);
	rel_tx_sent(&tx, &r, 0, 100, MS);
	assert_int_equal(rel_tx_sent_untracked(&tx, 30, 0, 102, MS), 0);
	assert_int_equal(rel_tx_sent_untracked(&tx, 5, 0, 132, MS), 0);
	assert_int_equal(rel_tx_inflight(&tx, 0), 37);
	int len = ack_body(buf, sizeof(buf), 0, 2, &bits, &fact);
	assert_int_equal(rel_tx_ack(&tx, buf, (size_t)len, 3 * MS, &out), 0);
	assert_int_equal(out.acked_pkts, 2);
	assert_int_equal(out.ch[0].rtt_sample_ns, 2 * MS);
	assert_int_equal(rel_tx_inflight(&tx, 0), 35);
	fact.newest_psn = 110; /* within the first of the two */
	fact.received = 11;
	len = ack_body(buf, sizeof(buf), 0, 0, NULL, &fact);
	assert_int_equal(rel_tx_ack(&tx, buf, (size_t)len, 4 * MS, &out), 0);
	assert_int_equal(out.ch[0].delivered_pkts, 9);
	assert_int_equal(rel_tx_inflight(&tx, 0), 5);
	rel_tx_check(&tx);
	rel_tx_close(&tx, 0);
	assert_int_equal(rel_tx_inflight_all(&tx), 0);
	rel_tx_check(&tx);
	rel_tx_fini(&tx);
}

static void bad_bodies_change_nothing(void **state)
{
	(void)state;
	struct rel_tx tx;
	struct rel_range r;
	struct rel_ack_result out;
	uint8_t buf[300];
	uint64_t bits = 3;
	struct wire_ack_channel fact = {
		.flags = WIRE_ACK_PSN_VALID, .newest_psn = 5, .received = 2};
	tx_new(&tx, "sr-nack", 1);
	assert_int_equal(rel_tx_open(&tx, 0, 10), 0);
	assert_int_equal(rel_tx_next(&tx, MS, 64, &r), 1);
	rel_tx_sent(&tx, &r, 0, 0, MS);
	int len = ack_body(buf, sizeof(buf), 0, 10, &bits, &fact);
	struct rel_tx before = tx;
	for (int n = 0; n < len; n++) {
		assert_true(rel_tx_ack(&tx, buf, (size_t)n, 2 * MS, &out) < 0);
		before.stats.bad_acks++;
		assert_memory_equal(&before, &tx, sizeof(tx));
		assert_int_equal(out.acked_pkts, 0);
	}
	/* Facts about what was never sent are counted and ignored. */
	fact.newest_psn = 10;
	len = ack_body(buf, sizeof(buf), 0, 0, NULL, &fact);
	assert_int_equal(rel_tx_ack(&tx, buf, (size_t)len, 2 * MS, &out), 0);
	fact.newest_psn = 5;
	fact.received = 11;
	len = ack_body(buf, sizeof(buf), 0, 0, NULL, &fact);
	assert_int_equal(rel_tx_ack(&tx, buf, (size_t)len, 2 * MS, &out), 0);
	fact.id = 1;
	len = ack_body(buf, sizeof(buf), 0, 0, NULL, &fact);
	assert_int_equal(rel_tx_ack(&tx, buf, (size_t)len, 2 * MS, &out), 0);
	assert_int_equal(tx.stats.lies, 3);
	uint64_t many = ~UINT64_C(0);
	len = ack_body(buf, sizeof(buf), 0, 64, &many, NULL);
	assert_int_equal(rel_tx_ack(&tx, buf, (size_t)len, 2 * MS, &out), 0);
	assert_int_equal(tx.stats.lies, 4);
	assert_int_equal(out.acked_pkts, 10);
	assert_true(rel_tx_is_acked(&tx, 0));
	rel_tx_check(&tx);
	rel_tx_fini(&tx);
}

/* What rel_tx_ack() makes of one fact that names a packet, and of a window. */
static struct rel_ack_result name(struct rel_tx *tx, uint32_t channel, uint32_t message,
				  uint32_t packet, uint32_t received, uint32_t window,
				  uint64_t bits, uint64_t now)
{
	struct wire_ack_channel fact = {.id = (uint8_t)channel,
					.flags = WIRE_ACK_PACKET_VALID,
					.newest_message = message,
					.newest_packet = packet,
					.received = received};
	struct rel_ack_result out;
	uint8_t buf[300];
	int len = ack_body(buf, sizeof(buf), message, window, &bits, &fact);
	assert_int_equal(rel_tx_ack(tx, buf, (size_t)len, now, &out), 0);
	rel_tx_check(tx);
	return out;
}

static void send_next(struct rel_tx *tx, uint32_t most, uint32_t channel, uint32_t psn,
		      uint64_t now)
{
	struct rel_range r;
	assert_int_equal(rel_tx_next(tx, now, most, &r), 1);
	rel_tx_sent(tx, &r, channel, psn, now);
}

static void names_of_packets(void **state)
{
	(void)state;
	struct rel_tx tx;
	tx_new(&tx, "sr-nack", 2);
	assert_int_equal(rel_tx_open(&tx, 7, 10), 0);
	assert_int_equal(rel_tx_open(&tx, 8, 1), 0);
	assert_int_equal(rel_tx_open(&tx, 9, 5), 0);
	send_next(&tx, 4, 0, 100, 10 * MS);  /* 7: 0 .. 3 */
	send_next(&tx, 2, 1, 50, 11 * MS);   /* 7: 4, 5 */
	send_next(&tx, 64, 0, 104, 12 * MS); /* 7: 6 .. 9 */
	send_next(&tx, 64, 1, 52, 13 * MS);  /* 8: 0 */
	/* Not sent yet, nobody's, not so long, of a message to come. */
	(void)name(&tx, 0, 9, 0, 0, 0, 0, 14 * MS);
	(void)name(&tx, 0, 10, 0, 0, 0, 0, 14 * MS);
	(void)name(&tx, 0, 7, UINT32_MAX, 0, 0, 0, 14 * MS);
	assert_int_equal(tx.stats.lies, 3);
	/* Sent on the other channel, or of a message before our time: no date, no lie. */
	struct rel_ack_result r = name(&tx, 0, 7, 5, 1, 0, 0, 14 * MS);
	assert_int_equal(r.ch[0].rtt_sample_ns, 0);
	assert_int_equal(r.ch[0].newest_sent_ns, 0);
	assert_int_equal(r.ch[0].delivered_pkts, 1);
	r = name(&tx, 0, 3, 5, 1, 0, 0, 14 * MS);
	assert_int_equal(r.ch[0].newest_sent_ns, 0);
	assert_int_equal(tx.stats.lies, 3);
	/* Of the first train, then an older one of the same. */
	r = name(&tx, 0, 7, 2, 3, 0, 0, 20 * MS);
	assert_int_equal(r.ch[0].rtt_sample_ns, 10 * MS);
	r = name(&tx, 0, 7, 1, 3, 0, 0, 21 * MS);
	assert_int_equal(r.ch[0].rtt_sample_ns, 0);
	assert_int_equal(r.ch[0].newest_sent_ns, 10 * MS);
	/* A closed message is named as well as an open one. */
	rel_tx_close(&tx, 8);
	r = name(&tx, 1, 8, 0, 1, 0, 0, 24 * MS);
	assert_int_equal(r.ch[1].rtt_sample_ns, 11 * MS);
	/* Behind it, in the middle of a message: two holes are proven by it. */
	r = name(&tx, 1, 8, 0, 1, 0, 0, 25 * MS);
	assert_int_equal(r.lost_pkts, 0);
	r = name(&tx, 1, 7, 5, 1, 10, 0x3cf, 26 * MS);
	assert_int_equal(r.lost_pkts, 2);
	/* Sent again on channel 0: nothing that names it dates anything on 1, nor ... */
	send_next(&tx, 64, 0, 108, 27 * MS);
	r = name(&tx, 1, 7, 4, 2, 0, 0, 40 * MS);
	assert_int_equal(r.ch[1].rtt_sample_ns, 0);
	assert_int_equal(r.ch[1].newest_sent_ns, 13 * MS);
	/* ... on 0 before it can have been the resend; and never a sample. */
	r = name(&tx, 0, 7, 4, 4, 0, 0, 28 * MS);
	assert_int_equal(r.ch[0].newest_sent_ns, 10 * MS);
	r = name(&tx, 0, 7, 4, 5, 0, 0, 40 * MS);
	assert_int_equal(r.ch[0].newest_sent_ns, 27 * MS);
	assert_int_equal(r.ch[0].rtt_sample_ns, 0);
	assert_true(r.ch[0].fresh);
	for (uint32_t m = 7; m < 10; m++)
		rel_tx_close(&tx, m);
	assert_int_equal(rel_tx_inflight_all(&tx), 0);
	rel_tx_check(&tx);
	rel_tx_fini(&tx);
}

/* All that arrives was sent twice: the date known before goes on proving losses. */
static void proof_without_a_name(void **state)
{
	(void)state;
	struct rel_tx tx;
	tx_new(&tx, "sr-nack", 1);
	assert_int_equal(rel_tx_open(&tx, 0, 4), 0);
	send_next(&tx, 1, 0, 0, 10 * MS);
	send_next(&tx, 1, 0, 1, 11 * MS);
	send_next(&tx, 1, 0, 2, 12 * MS);
	send_next(&tx, 1, 0, 3, 13 * MS);
	/* 2 came; the ACK tells of a hole at 0 only. */
	struct rel_ack_result r = name(&tx, 0, 0, 2, 1, 1, 0, 22 * MS);
	assert_int_equal(r.lost_pkts, 1);
	send_next(&tx, 1, 0, 4, 23 * MS);
	/* 0 came as well, which was sent twice. An old ACK proves nothing ... */
	r = name(&tx, 0, 0, 0, 0, 4, 5, 24 * MS);
	assert_int_equal(r.lost_pkts, 0);
	r = name(&tx, 0, 0, 0, 2, 4, 5, 24 * MS);
	assert_int_equal(r.ch[0].rtt_sample_ns, 0);
	assert_int_equal(r.lost_pkts, 1); /* ... this one that 1 is lost, but not 3 */
	assert_int_equal(tx.lost_now, 1);
	rel_tx_close(&tx, 0);
	rel_tx_fini(&tx);
}

/*
 * Trains that went out at one instant, as a burst at a high rate does: holes are proven by the
 * newest packet's age, also those of its own train, and what follows it whatever the windows show.
 */
static void one_instant(void **state)
{
	static const uint32_t flags[] = {WIRE_ACK_PSN_VALID, WIRE_ACK_PACKET_VALID};
	const uint64_t bits[3] = {~(UINT64_C(1) << 5), ~UINT64_C(0),
				  ~(UINT64_C(1) << 2 | UINT64_C(1) << 12 | UINT64_C(1) << 32)};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct wire_ack_channel fact = {.flags = (uint8_t)flags[i],
						.newest_psn = 250,
						.newest_packet = 150,
						.received = 188};
		struct rel_ack_result out;
		struct rel_tx tx;
		uint8_t buf[300];
		int len;

		tx_new(&tx, "sr-nack", 1);
		assert_int_equal(rel_tx_open(&tx, 0, 200), 0);
		for (uint32_t psn = 100; psn < 300; psn += 64)
			send_next(&tx, 64, 0, psn, 10 * MS);
		rel_tx_check(&tx);
		len = ack_body(buf, sizeof(buf), 0, 192, bits, &fact);
		assert_int_equal(rel_tx_ack(&tx, buf, (size_t)len, 20 * MS, &out), 0);
		assert_int_equal(out.lost_pkts, 0);
		fact.age_ns = 1 * MS;
		len = ack_body(buf, sizeof(buf), 0, 192, bits, &fact);
		assert_int_equal(rel_tx_ack(&tx, buf, (size_t)len, 21 * MS, &out), 0);
		/* 5, 130, 140; and 160 and what went after 191, which had as much time. */
		assert_int_equal(out.lost_pkts, 3 + 1 + 8);
		rel_tx_check(&tx);
		rel_tx_close(&tx, 0);
		rel_tx_fini(&tx);
	}
}

static void allocation_failures(void **state)
{
	(void)state;
	for (int fail = 0; fail < 40; fail++) {
		struct alloc_failing f = {.left = fail};
		struct sdr_alloc alloc = alloc_failing(&f);
		struct rel_tx_params p = {.channels = 2, .scheme.nack = true};
		struct rel_tx tx;
		struct rel_range r;
		struct rel_ack_result out;
		uint32_t psn[2] = {0, 0};
		assert_int_equal(rel_tx_init(&tx, &p, &alloc), 0);
		uint64_t now = MS;
		for (int step = 0; step < 400; step++, now += MS) {
			if (step == 200)
				f.left = 1000000; /* memory is there again */
			(void)rel_tx_open(&tx, (uint32_t)step, 9000);
			uint32_t c = (uint32_t)step % 2;
			int got = rel_tx_next(&tx, now, 40, &r);
			assert_true(got == 0 || got == 1 || got == -ENOMEM);
			if (got == 1) {
				rel_tx_sent(&tx, &r, c, psn[c], now);
				psn[c] += r.count;
			}
			if (psn[c] && step % 3 == 0) {
				uint8_t buf[300];
				struct wire_ack_channel fact = {.id = (uint8_t)c,
								.flags = WIRE_ACK_PSN_VALID,
								.newest_psn = psn[c] - 1};
				uint64_t bits = 1;
				struct wire_ack_enc enc;
				assert_int_equal(wire_ack_begin(&enc, buf, sizeof(buf), 0, 1), 0);
				(void)wire_ack_window_from_bits(&enc, tx.oldest->message, 0, 64,
								&bits);
				assert_int_equal(wire_ack_channel_put(&enc, &fact), 0);
				int len = wire_ack_end(&enc);
				assert_int_equal(
					rel_tx_ack(&tx, buf, (size_t)len, now + MS / 2, &out), 0);
			}
			rel_tx_check(&tx);
		}
		assert_true(tx.stats.sent_pkts > 1000);
		rel_tx_fini(&tx);
		assert_int_equal(f.out, 0);
	}
}

/* ---- the slow twin: one record a packet ---- */

#define T_MSGS 4u
#define T_PKTS 300u
#define T_CHANNELS 3u
#define T_TRAINS 20000u

struct twin_pkt {
	bool sent, acked, lost;
	uint64_t sent_ns;
	uint32_t channel;
};

struct twin {
	struct twin_pkt pkt[T_MSGS][T_PKTS];
	uint32_t npkts[T_MSGS];
	bool open[T_MSGS];
	uint64_t psn_sent_ns[T_CHANNELS][T_TRAINS]; /* by PSN */
	uint64_t on_ns[T_CHANNELS][T_MSGS][T_PKTS]; /* last sent on that channel */
	uint64_t named_ns[T_CHANNELS];		    /* newest of the packets that facts named */
	uint32_t psn[T_CHANNELS];
	uint64_t acked;
};

static void twin_sent(struct twin *t, const struct rel_range *r, uint32_t c, uint64_t now)
{
	for (uint32_t i = 0; i < r->count; i++) {
		struct twin_pkt *p = &t->pkt[r->message][r->first + i];
		assert_int_equal(p->sent, r->resend);
		assert_true(r->probe || !r->resend || p->lost);
		assert_false(p->acked);
		p->sent = true;
		p->lost = false;
		p->sent_ns = now;
		p->channel = c;
		t->on_ns[c][r->message][r->first + i] = now;
		t->psn_sent_ns[c][t->psn[c]++] = now;
		assert_true(t->psn[c] < T_TRAINS);
	}
}

/* Names any packet, sent on this channel or not, or not at all. */
static void twin_name(struct rng *rng, struct twin *t, struct wire_ack_channel *fact)
{
	uint32_t m = (uint32_t)rng_below(rng, T_MSGS), k = (uint32_t)rng_below(rng, T_PKTS);
	fact->flags = WIRE_ACK_PACKET_VALID;
	fact->newest_message = m;
	fact->newest_packet = k;
	t->named_ns[fact->id] = u64_max(t->named_ns[fact->id], t->on_ns[fact->id][m][k]);
}

/* A random ACK: windows of any bits, facts of any PSN or packet that was sent. */
static int twin_ack(struct rng *rng, struct twin *t, bool by_packet, uint8_t *buf, size_t cap,
		    struct wire_ack_channel fact[T_CHANNELS])
{
	struct wire_ack_enc enc;
	assert_int_equal(wire_ack_begin(&enc, buf, cap, 0, T_CHANNELS), 0);
	for (uint64_t n = rng_below(rng, 4); n > 0; n--) {
		uint64_t bits[8];
		uint32_t first = (uint32_t)rng_below(rng, T_PKTS);
		for (int i = 0; i < 8; i++) {
			bits[i] = rng_next(rng);
			for (uint64_t k = rng_below(rng, 3); k > 0; k--)
				bits[i] &= rng_next(rng);
		}
		(void)wire_ack_window_from_bits(&enc, (uint32_t)rng_below(rng, T_MSGS + 1), first,
						1 + (uint32_t)rng_below(rng, T_PKTS), bits);
	}
	for (uint32_t c = 0; c < T_CHANNELS; c++) {
		fact[c] = (struct wire_ack_channel){.id = (uint8_t)c};
		if (by_packet && rng_below(rng, 4)) {
			twin_name(rng, t, &fact[c]);
		} else if (!by_packet && t->psn[c] && rng_below(rng, 4)) {
			fact[c].flags = WIRE_ACK_PSN_VALID;
			fact[c].newest_psn = (uint32_t)rng_below(rng, t->psn[c]);
		}
		assert_int_equal(wire_ack_channel_put(&enc, &fact[c]), 0);
	}
	return wire_ack_end(&enc);
}

static void twin_apply(struct twin *t, const uint8_t *body, int len, bool hole[T_MSGS][T_PKTS])
{
	struct wire_ack ack;
	struct wire_window win;
	uint32_t first, n;
	bool received;
	memset(hole, 0, sizeof(bool[T_MSGS][T_PKTS]));
	assert_int_equal(wire_ack_open(body, (size_t)len, &ack), 0);
	while (wire_ack_next_window(&ack, &win)) {
		while (wire_ack_next_run(&win, &first, &n, &received)) {
			for (uint32_t k = first; k < first + n; k++) {
				if (win.message >= T_MSGS || !t->open[win.message] ||
				    k >= t->npkts[win.message] || !t->pkt[win.message][k].sent)
					continue;
				struct twin_pkt *p = &t->pkt[win.message][k];
				if (!received) {
					hole[win.message][k] = true;
					continue;
				}
				t->acked += !p->acked;
				p->acked = true;
				p->lost = false;
			}
		}
	}
}

/* Same acked bits; lost ones only with a reason; in flight by counting. */
static void twin_compare(const struct rel_tx *tx, struct twin *t, bool hole[T_MSGS][T_PKTS],
			 const struct wire_ack_channel *fact, uint64_t now)
{
	uint64_t inflight[T_CHANNELS] = {0};
	for (uint32_t m = 0; m < T_MSGS; m++) {
		struct rel_msg *msg = rel_msg_find(tx, m);
		assert_int_equal(msg != NULL, t->open[m]);
		for (uint32_t k = 0; msg && k < t->npkts[m]; k++) {
			struct twin_pkt *p = &t->pkt[m][k];
			struct rel_word w;
			bool any = rel_word_get(msg, k / 64, &w);
			bool acked = any && w.page->acked[w.at] >> (k % 64) & 1;
			bool lost = any && w.page->lost[w.at] >> (k % 64) & 1;
			assert_int_equal(acked, p->acked);
			if (lost && !p->lost) {
				const struct wire_ack_channel *f = &fact[p->channel];
				assert_non_null(hole);
				assert_true(hole[m][k] && f->flags);
				uint64_t newest = t->psn_sent_ns[p->channel][f->newest_psn];
				if (f->flags & WIRE_ACK_PACKET_VALID)
					newest = t->named_ns[p->channel];
				assert_true(p->sent_ns + REL_REORDER_MIN_NS <= newest + f->age_ns);
				assert_true(p->sent_ns < newest);
				assert_true(now > p->sent_ns);
			}
			assert_true(lost || !p->lost);
			p->lost = lost;
			if (p->sent && !p->acked && !p->lost)
				inflight[p->channel]++;
		}
	}
	for (uint32_t c = 0; c < T_CHANNELS; c++)
		assert_int_equal(inflight[c], rel_tx_inflight(tx, c));
	assert_int_equal(t->acked, tx->stats.acked_pkts);
}

static void slow_twin(void **state)
{
	(void)state;
	uint64_t lost[2] = {0}, spurious[2] = {0};
	for (uint64_t seed = 1; seed <= 120; seed++) {
		static bool hole[T_MSGS][T_PKTS];
		struct twin *t = calloc(1, sizeof(*t));
		struct rel_tx tx;
		struct rel_range r;
		struct rel_ack_result out;
		struct wire_ack_channel fact[T_CHANNELS];
		struct rng rng;
		uint64_t now = 1000 * MS;
		rng_init(&rng, seed);
		tx_new(&tx, "sr-nack", T_CHANNELS);
		for (uint32_t m = 0; m < T_MSGS; m++) {
			t->npkts[m] = 1 + (uint32_t)rng_below(&rng, T_PKTS);
			t->open[m] = true;
			assert_int_equal(rel_tx_open(&tx, m, t->npkts[m]), 0);
		}
		for (int step = 0; step < 600; step++) {
			now += rng_below(&rng, MS);
			uint32_t c = (uint32_t)rng_below(&rng, T_CHANNELS);
			if (rng_below(&rng, 3)) {
				uint32_t most = 1 + (uint32_t)rng_below(&rng, 80);
				if (rel_tx_next(&tx, now, most, &r) == 1) {
					r.count = 1 + (uint32_t)rng_below(&rng, r.count);
					rel_tx_sent(&tx, &r, c, t->psn[c], now);
					twin_sent(t, &r, c, now);
				}
				twin_compare(&tx, t, NULL, NULL, now);
			} else {
				uint8_t buf[1200];
				int len = twin_ack(&rng, t, seed > 60, buf, sizeof(buf), fact);
				assert_int_equal(rel_tx_ack(&tx, buf, (size_t)len, now, &out), 0);
				twin_apply(t, buf, len, hole);
				twin_compare(&tx, t, hole, fact, now);
			}
			if (rng_below(&rng, 200) == 0) {
				uint32_t m = (uint32_t)rng_below(&rng, T_MSGS);
				rel_tx_close(&tx, m);
				t->open[m] = false;
				twin_compare(&tx, t, NULL, NULL, now);
			}
			rel_tx_check(&tx);
		}
		lost[seed > 60] += tx.stats.lost_pkts;
		spurious[seed > 60] += tx.stats.spurious_pkts;
		for (uint32_t m = 0; m < T_MSGS; m++)
			rel_tx_close(&tx, m);
		assert_int_equal(rel_tx_inflight_all(&tx), 0);
		rel_tx_check(&tx);
		rel_tx_fini(&tx);
		free(t);
	}
	assert_true(lost[0] > 500 && spurious[0] > 50); /* the test does reach both */
	assert_true(lost[1] > 500 && spurious[1] > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opening),	     cmocka_unit_test(ranges_are_cut_at_units),
		cmocka_unit_test(untracked_packets), cmocka_unit_test(bad_bodies_change_nothing),
		cmocka_unit_test(names_of_packets),  cmocka_unit_test(proof_without_a_name),
		cmocka_unit_test(one_instant),	     cmocka_unit_test(allocation_failures),
		cmocka_unit_test(slow_twin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

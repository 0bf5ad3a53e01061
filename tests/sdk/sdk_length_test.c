/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receives whose length is told from elsewhere, and whose lost packets software makes good:
 * whatever came first, and whatever contradicts it. On each kind of device.
 */
#include "pair.h"
#include "send_facts.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define P 1024u /* bytes in a packet */
#define GUARD 0x77
#define PKTS 70u
#define IMM 0xc0ffee01u

static uint8_t src[PKTS * P], dst[(PKTS + 1) * P];

struct world {
	struct pair p;
	struct sdr_recv *recv;
	struct sdr_send *send;
	uint32_t message; /* of the next send */
	uint64_t len, room;
};

static void open_world(struct world *w)
{
	const struct sdr_qp_attr attr = {.size = sizeof(attr), .max_payload_bytes = P};

	memset(w, 0, sizeof(*w));
	pair_open(&w->p, 1, &attr);
	pair_connect(&w->p);
	for (uint32_t i = 0; i < sizeof(src); i++)
		src[i] = (uint8_t)(i * 2654435761u >> 11);
}

static void settle(struct world *w)
{
	(void)pair_run(&w->p, pair_never, NULL, 100 * MS);
}

/* A message of `len` bytes for a receive of `room`; nothing is sent yet. */
static void begin(struct world *w, uint64_t len, uint64_t room)
{
	const struct sdr_recv_wr rwr = {.size = sizeof(rwr), .addr = dst, .length = room};
	const struct sdr_send_wr swr = {.size = sizeof(swr),
					.opcode = SDR_OP_WRITE_IMM,
					.imm = IMM,
					.length = len,
					.addr = src,
					.mr = w->p.mr[0]};

	w->len = len;
	w->room = room;
	memset(dst, GUARD, sizeof(dst));
	assert_int_equal(sdr_recv_post(w->p.qp[1], &rwr, &w->recv), 0);
	assert_int_equal(sdr_send_stream_start(w->p.qp[0], &swr, &w->send), 0);
	assert_true(pair_run(&w->p, is_fixed, w->send, SEC));
	w->message++;
}

/* Packets that carry bytes. */
static uint32_t data_pkts(uint64_t len)
{
	return (uint32_t)((len + P - 1) / P);
}

/* All packets, those with bytes and one that ends the message. */
static uint32_t all_pkts(uint64_t len, uint64_t room)
{
	return data_pkts(len) + (len == 0 || (len % P == 0 && len < room));
}

/* Sends one packet, the end packet too, and lets it arrive. */
static void packet(struct world *w, uint32_t pkt)
{
	uint64_t at = (uint64_t)pkt * P, left = w->len - at;

	assert_true(sdr_send_stream_continue(w->send, at, left < P ? left : P, NULL) >= 0);
	settle(w);
}

static struct sdr_recv_info recv_info(const struct world *w)
{
	struct sdr_recv_info info = {.size = sizeof(info)};

	assert_int_equal(sdr_recv_query(w->recv, &info), 0);
	return info;
}

static void assert_told(const struct world *w, uint64_t len)
{
	struct sdr_recv_info info = recv_info(w);

	assert_true(info.end_known);
	assert_int_equal(info.length, len);
	assert_int_equal(info.pkts, all_pkts(len, w->room));
	assert_int_equal(info.chunks, (info.pkts + info.chunk_pkts - 1) / info.chunk_pkts);
}

/* Decoding, as far as the receive can tell: what is missing, a word at a time. */
static uint32_t fill(struct world *w)
{
	uint32_t npkts = recv_info(w).pkts, filled = 0;

	for (uint32_t first = 0; first < npkts; first += 64) {
		uint32_t n = npkts - first < 64 ? npkts - first : 64;
		uint64_t mask;

		assert_int_equal(sdr_recv_fill_begin(w->recv, first, n, &mask), 0);
		for (uint32_t i = first; i < first + n; i++) {
			uint64_t at = (uint64_t)i * P, left = w->len > at ? w->len - at : 0;

			if (!(mask >> (i - first) & 1))
				continue;
			memcpy(dst + at, src + at, left < P ? left : P);
			filled++;
		}
		assert_int_equal(sdr_recv_fill_end(w->recv, first, mask), 0);
	}
	return filled;
}

/* All bits of packets and chunks, and the bytes; then it completes as all there. */
static void finish(struct world *w)
{
	struct sdr_recv_info info = recv_info(w);
	uint64_t words[4];

	assert_told(w, w->len);
	assert_int_equal(sdr_recv_pkts_get(w->recv, 0, info.pkts, words), info.pkts);
	assert_int_equal(sdr_recv_bitmap_get(w->recv, 0, info.chunks, words), info.chunks);
	assert_int_equal(sdr_recv_complete(w->recv), 1);
	assert_memory_equal(dst, src, w->len);
	for (uint64_t i = w->len; i < sizeof(dst); i++)
		assert_int_equal(dst[i], GUARD);
	assert_true(pair_run(&w->p, is_done, w->send, SEC));
	sdr_send_release(w->send);
}

static void give_up(struct world *w)
{
	assert_int_equal(sdr_recv_complete(w->recv), 0);
	assert_true(pair_run(&w->p, is_done, w->send, SEC));
	sdr_send_release(w->send);
}

static int tell(struct world *w, uint64_t len)
{
	return sdr_recv_length_set(w->recv, len);
}

/* ---- whatever came first ---- */

/* Lengths around every edge, in receives that end with them and in longer ones. */
static void for_edges(void (*one)(struct world *w, uint64_t len, uint64_t room))
{
	static const uint64_t lens[] = {0,	    1,	    P - 1,	P,	P + 1,
					3 * P,	    4 * P,  4 * P + 1,	5 * P,	63 * P,
					64 * P - 5, 64 * P, 64 * P + 9, 65 * P, 69 * P + 500};
	static const uint64_t more[] = {0, 1, P - 1, P, 2 * P + 7};
	struct world w;

	open_world(&w);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		for (size_t k = 0; k < sizeof(more) / sizeof(more[0]); k++)
			if (lens[i] + more[k] <= PKTS * P)
				one(&w, lens[i], lens[i] + more[k]);
	pair_close(&w.p);
}

/* Told before a packet came: nothing else is there, and all comes after it. */
static void tell_first(struct world *w, uint64_t len, uint64_t room)
{
	uint32_t npkts = all_pkts(len, room);
	uint64_t words[4];
	bool empty = npkts > data_pkts(len);

	begin(w, len, room);
	assert_int_equal(tell(w, len), 0);
	assert_told(w, len);
	assert_int_equal(tell(w, len), 0); /* said again */
	assert_int_equal(sdr_recv_pkts_get(w->recv, 0, npkts, words), empty);
	if (empty)
		assert_int_equal(words[(npkts - 1) / 64] >> (npkts - 1) % 64, 1);
	assert_int_equal(tell(w, room + 1), -EINVAL);
	if (len)
		assert_int_equal(tell(w, len - 1), -EINVAL);
	if (len < room)
		assert_int_equal(tell(w, len + 1), -EINVAL);
	assert_told(w, len);
	for (uint32_t i = data_pkts(len); i-- > 0;)
		packet(w, i);
	finish(w);
}

/* Told when all is there: it says no more, or the wrong thing. */
static void tell_last(struct world *w, uint64_t len, uint64_t room)
{
	begin(w, len, room);
	for (uint32_t i = 0; i < all_pkts(len, room); i++)
		packet(w, i);
	assert_told(w, len);
	if (len)
		assert_int_equal(tell(w, len - 1), -EINVAL);
	if (len < room)
		assert_int_equal(tell(w, len + 1), -EINVAL);
	assert_int_equal(tell(w, room + 1), -EINVAL);
	assert_int_equal(tell(w, len), 0);
	assert_int_equal(tell(w, len), 0);
	finish(w);
}

/* All but the last packet came, which nobody sends: with the length it is an end packet that
 * counts, or bytes that are made good. */
static void the_last_is_lost(struct world *w, uint64_t len, uint64_t room)
{
	uint32_t npkts = all_pkts(len, room), lost = data_pkts(len) == npkts;

	begin(w, len, room);
	for (uint32_t i = 0; i + 1 < npkts; i++)
		packet(w, i);
	assert_false(recv_info(w).end_known);
	assert_int_equal(tell(w, len), 0);
	assert_int_equal(fill(w), lost);
	finish(w);
}

/* Nothing but the last one came. */
static void the_last_alone(struct world *w, uint64_t len, uint64_t room)
{
	uint32_t npkts = all_pkts(len, room);

	begin(w, len, room);
	packet(w, npkts - 1);
	assert_int_equal(tell(w, len), 0);
	assert_int_equal(fill(w), npkts - 1);
	finish(w);
}

/* Every third came, and the rest comes when it is too late. */
static void holes_are_filled(struct world *w, uint64_t len, uint64_t room)
{
	uint32_t npkts = data_pkts(len);

	begin(w, len, room);
	for (uint32_t i = 0; i < npkts; i += 3)
		packet(w, i);
	assert_int_equal(tell(w, len), 0);
	assert_int_equal(fill(w), npkts - (npkts + 2) / 3);
	for (uint32_t i = 0; i < all_pkts(len, room); i++)
		packet(w, i);
	assert_int_equal(fill(w), 0);
	finish(w);
}

static void tell_first_edges(void **state)
{
	(void)state;
	for_edges(tell_first);
}

static void tell_last_edges(void **state)
{
	(void)state;
	for_edges(tell_last);
}

static void the_last_is_lost_edges(void **state)
{
	(void)state;
	for_edges(the_last_is_lost);
}

static void the_last_alone_edges(void **state)
{
	(void)state;
	for_edges(the_last_alone);
}

static void holes_are_filled_edges(void **state)
{
	(void)state;
	for_edges(holes_are_filled);
}

/* ---- contradictions ---- */

/* A message of 3 packets and 100 bytes, of which `came` came: which lengths may be told? */
static void told_after(struct world *w, uint64_t came, const uint64_t *good, uint32_t n)
{
	for (uint64_t len = 0; len <= 6 * P + 1; len += P / 4) {
		bool fits = false;

		begin(w, 3 * P + 100, 6 * P);
		for (uint32_t i = 0; i < 4; i++)
			if (came >> i & 1)
				packet(w, i);
		for (uint32_t i = 0; i < n; i++)
			fits = fits || good[i] == len;
		assert_int_equal(tell(w, len), fits ? 0 : -EINVAL);
		assert_int_equal(recv_info(w).end_known, fits || came & 8);
		(void)sdr_recv_complete(w->recv);
		assert_true(pair_run(&w->p, is_done, w->send, SEC));
		sdr_send_release(w->send);
	}
}

static void packets_say_otherwise(void **state)
{
	static uint64_t from_2[32], all[32];
	struct world w;
	uint32_t n = 0, m = 0;

	(void)state;
	open_world(&w);
	/* Packet 1, a full one: any length but those that end before it or within it. */
	for (uint64_t len = 0; len <= 6 * P; len += P / 4) {
		if (len >= 2 * P)
			from_2[n++] = len;
		all[m++] = len;
	}
	told_after(&w, 0, all, m);
	told_after(&w, 1u << 1, from_2, n);
	/* Its last one: it has said it, and 3 P + 100 is none of those that are tried. */
	told_after(&w, 1u << 3, NULL, 0);
	pair_close(&w.p);
}

static uint64_t refused(const struct world *w)
{
	uint64_t counter[SDR_CTR_COUNT];

	sdr_counters_get(w->p.ctx[1], counter, SDR_CTR_COUNT);
	return counter[SDR_CTR_rx_range];
}

/* What comes later and says otherwise is refused: a set bit is a whole packet of the message. */
static void told_wins(void **state)
{
	struct world w;
	uint64_t bits, had;

	(void)state;
	open_world(&w);
	/* The sender's message ends within packet 2, and in truth nowhere near. */
	begin(&w, 2 * P + 100, 6 * P);
	assert_int_equal(tell(&w, 5 * P), 0);
	had = refused(&w);
	packet(&w, 2);
	packet(&w, 0);
	assert_int_equal(refused(&w), had + 1);
	assert_told(&w, 5 * P);
	assert_int_equal(sdr_recv_pkts_get(w.recv, 0, 6, &bits), 2);
	assert_int_equal(bits, 1u << 0 | 1u << 5);
	give_up(&w);
	/* It goes on behind the end, and its last packet is longer. */
	begin(&w, 5 * P, 6 * P);
	assert_int_equal(tell(&w, 2 * P + 100), 0);
	had = refused(&w);
	for (uint32_t i = 0; i < 6; i++)
		packet(&w, i);
	assert_true(refused(&w) > had);
	assert_told(&w, 2 * P + 100);
	assert_int_equal(sdr_recv_pkts_get(w.recv, 0, 6, &bits), 2);
	assert_int_equal(bits, 3);
	give_up(&w);
	pair_close(&w.p);
}

/* ---- what else there is ---- */

/* An end packet that counts, though it has not come, brings the immediate all the same. */
static void immediates(void **state)
{
	static const uint64_t lens[] = {0, P, 2 * P, 20 * P};
	struct world w;
	uint32_t imm;

	(void)state;
	open_world(&w);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		begin(&w, lens[i], lens[i] + 5 * P);
		assert_int_equal(tell(&w, lens[i]), 0);
		assert_int_equal(sdr_recv_imm_get(w.recv, &imm), -EAGAIN);
		packet(&w, data_pkts(lens[i]));
		/* All of it, or, in pieces, the one that this packet has. */
		if (pair_is_rocev2())
			assert_true(sdr_recv_imm_get(w.recv, &imm) == -EAGAIN);
		else
			assert_int_equal(sdr_recv_imm_get(w.recv, &imm), 0);
		assert_int_equal(imm,
				 pair_is_rocev2() ? IMM & 0xfu << data_pkts(lens[i]) % 8 * 4 : IMM);
		for (uint32_t k = 0; k < data_pkts(lens[i]); k++)
			packet(&w, k);
		finish(&w);
	}
	pair_close(&w.p);
}

/* Packets that were filled before they came bring it too. */
static void immediates_of_filled(void **state)
{
	struct world w;
	uint32_t imm;

	(void)state;
	open_world(&w);
	begin(&w, 20 * P, 20 * P);
	assert_int_equal(tell(&w, 20 * P), 0);
	assert_int_equal(fill(&w), 20);
	for (uint32_t i = 0; i < 20; i++)
		packet(&w, i);
	assert_int_equal(sdr_recv_imm_get(w.recv, &imm), 0);
	assert_int_equal(imm, IMM);
	finish(&w);
	pair_close(&w.p);
}

/*
 * A short one-shot goes on in empty packets, which bring the rest of its immediate where that is in
 * pieces: come alone, they do not say how long it is.
 */
static void empties_alone(void **state)
{
	static const uint64_t lens[] = {0, 1, P, P + 1, 3 * P, 5 * P - 1};
	struct world w;

	(void)state;
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct sdr_sim_drop drop[8];
		const struct sdr_recv_wr rwr = {.size = sizeof(rwr), .addr = dst, .length = 20 * P};
		const struct sdr_send_wr swr = {.size = sizeof(swr),
						.opcode = SDR_OP_WRITE_IMM,
						.imm = IMM,
						.length = lens[i],
						.addr = src};

		open_world(&w);
		memset(dst, GUARD, sizeof(dst));
		w.len = lens[i];
		w.room = 20 * P;
		for (uint32_t k = 0; k < all_pkts(w.len, w.room); k++)
			drop[k] = (struct sdr_sim_drop){0, k, 0};
		assert_int_equal(sdr_sim_drops_set(w.p.sim, 0, 1, drop, all_pkts(w.len, w.room)),
				 0);
		assert_int_equal(sdr_recv_post(w.p.qp[1], &rwr, &w.recv), 0);
		assert_int_equal(sdr_send_post(w.p.qp[0], &swr, &w.send), 0);
		settle(&w);
		assert_true(sdr_recv_next_ready(w.p.qp[1]) == (pair_is_rocev2() ? w.recv : NULL));
		assert_int_equal(tell(&w, lens[i]), 0);
		assert_int_equal(tell(&w, lens[i] + 1), -EINVAL);
		assert_int_equal(fill(&w), data_pkts(w.len));
		finish(&w);
		pair_close(&w.p);
	}
}

/* Who waits for ready receives is told of the end packet. */
static void ready(void **state)
{
	struct world w;

	(void)state;
	open_world(&w);
	begin(&w, 3 * P, 6 * P);
	assert_null(sdr_recv_next_ready(w.p.qp[1]));
	assert_int_equal(tell(&w, 3 * P), 0);
	assert_ptr_equal(sdr_recv_next_ready(w.p.qp[1]), w.recv);
	assert_null(sdr_recv_next_ready(w.p.qp[1]));
	assert_int_equal(fill(&w), 3);
	assert_ptr_equal(sdr_recv_next_ready(w.p.qp[1]), w.recv);
	finish(&w);
	pair_close(&w.p);
}

/* fill_begin() and fill_end() at the edges of a message whose length was told. */
static void fill_bounds(void **state)
{
	struct world w;
	uint64_t mask;

	(void)state;
	open_world(&w);
	begin(&w, 2 * P + 100, 6 * P);
	assert_int_equal(sdr_recv_fill_begin(w.recv, 2, 4, &mask), 0); /* as if it were longer */
	assert_int_equal(mask, 0xf);
	assert_int_equal(tell(&w, 2 * P + 100), -EINVAL); /* software says otherwise */
	give_up(&w);
	begin(&w, 2 * P + 100, 6 * P);
	assert_int_equal(tell(&w, 2 * P + 100), 0);
	assert_int_equal(sdr_recv_fill_begin(w.recv, 2, 2, &mask), -ERANGE);
	assert_int_equal(mask, 0);
	assert_int_equal(sdr_recv_fill_begin(w.recv, 3, 1, &mask), -ERANGE);
	assert_int_equal(sdr_recv_fill_begin(w.recv, 0, 0, &mask), -EINVAL);
	assert_int_equal(sdr_recv_fill_begin(w.recv, 1, 2, &mask), 0);
	assert_int_equal(mask, 3);
	packet(&w, 1); /* somebody else's now */
	packet(&w, 0);
	memcpy(dst + P, src + P, P + 100);
	assert_int_equal(sdr_recv_pkts_get(w.recv, 0, 3, &mask), 1);
	assert_int_equal(sdr_recv_fill_end(w.recv, 1, 3), 0);
	finish(&w);
	pair_close(&w.p);
}

/* Another payload, before the message begins: what was told still holds. */
static void payload_changes(void **state)
{
	static const uint64_t lens[] = {0, 1000, 1050, 2 * P, 3000, 3 * P};
	struct world w;

	(void)state;
	if (pair_is_rocev2())
		return; /* it does not change there */
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		const struct sdr_recv_wr rwr = {.size = sizeof(rwr), .addr = dst, .length = 3 * P};
		const struct sdr_send_wr swr = {
			.size = sizeof(swr), .length = lens[i], .addr = src};
		uint64_t words[4];
		uint32_t npkts = (uint32_t)((lens[i] + 99) / 100);

		open_world(&w);
		memset(dst, GUARD, sizeof(dst));
		assert_int_equal(sdr_recv_post(w.p.qp[1], &rwr, &w.recv), 0);
		assert_int_equal(tell(&w, lens[i]), 0);
		assert_int_equal(sdr_qp_payload_set(w.p.qp[0], 100), 0);
		settle(&w);
		assert_int_equal(recv_info(&w).error, 0);
		assert_int_equal(recv_info(&w).payload_bytes, 100);
		assert_true(recv_info(&w).end_known);
		assert_int_equal(recv_info(&w).length, lens[i]);
		assert_int_equal(recv_info(&w).pkts,
				 npkts + (lens[i] % 100 == 0 && lens[i] < 3 * P));
		assert_int_equal(tell(&w, lens[i]), 0);
		assert_int_equal(tell(&w, lens[i] ? lens[i] - 1 : 1), -EINVAL);
		assert_int_equal(sdr_send_post(w.p.qp[0], &swr, &w.send), 0);
		settle(&w);
		assert_int_equal(sdr_recv_pkts_get(w.recv, 0, recv_info(&w).pkts, words),
				 recv_info(&w).pkts);
		assert_int_equal(sdr_recv_complete(w.recv), 1);
		assert_memory_equal(dst, src, lens[i]);
		sdr_send_release(w.send);
		pair_close(&w.p);
	}
}

/* A QP that died: what was received may still be made good and completed. */
static void after_a_reset(void **state)
{
	struct world w;

	(void)state;
	open_world(&w);
	begin(&w, 2 * P, 3 * P);
	packet(&w, 0);
	assert_int_equal(sdr_qp_reset(w.p.qp[1], 0), 0);
	assert_int_equal(tell(&w, 2 * P), 0);
	assert_int_equal(fill(&w), 1);
	assert_told(&w, 2 * P);
	assert_int_equal(sdr_recv_complete(w.recv), 1);
	assert_memory_equal(dst, src, 2 * P);
	sdr_send_release(w.send);
	pair_close(&w.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tell_first_edges),
		cmocka_unit_test(tell_last_edges),
		cmocka_unit_test(the_last_is_lost_edges),
		cmocka_unit_test(the_last_alone_edges),
		cmocka_unit_test(holes_are_filled_edges),
		cmocka_unit_test(packets_say_otherwise),
		cmocka_unit_test(told_wins),
		cmocka_unit_test(immediates),
		cmocka_unit_test(immediates_of_filled),
		cmocka_unit_test(empties_alone),
		cmocka_unit_test(ready),
		cmocka_unit_test(fill_bounds),
		cmocka_unit_test(payload_changes),
		cmocka_unit_test(after_a_reset),
	};
	int failed = 0;

	for (int i = 0; pair_devices[i]; i++) {
		pair_device = pair_devices[i];
		print_message("devices: %s\n", pair_device->like);
		failed += cmocka_run_group_tests(tests, NULL, NULL);
	}
	return failed;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of delivery in rocev2 mode: slots, generations, keys, identifications, and refusals. */
#include "fabric/deliver.h"

#include "base/bits.h"
#include "wire/wire.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define PAYLOAD 256u
#define NPKTS 100u
#define MESSAGES 4u
#define GENERATIONS 2u
#define CHANNELS 2u
#define CTRL_QPN 0x777u
#define DATA_QPN 0x1000u /* + fabric_data_qp() */
#define PKT_BYTES (WIRE_DATA_HDR_BYTES + PAYLOAD + WIRE_TRAILER_BYTES)
#define ROOM 80u

struct rig {
	struct rx_slot slots[MESSAGES];
	struct rx_worker rxw;
	struct rx_table table;
	uint64_t words[MESSAGES][16];
	uint8_t mem[MESSAGES][NPKTS * PAYLOAD];
	struct fabric_key keys[MESSAGES], key[MESSAGES * GENERATIONS];
	struct rng rng;
	struct deliver_qp qp;
	struct deliver_worker w;
	struct deliver_facts facts;
	struct deliver_flow flow;
	_Atomic uint64_t host;
	/* The train being made. */
	uint8_t buf[ROOM * PKT_BYTES];
	size_t len;
	struct deliver_pkt pkt[ROOM];
	unsigned int n;
	/* How the next packets are made. */
	uint32_t generation, channel;
	uint16_t id;
	uint64_t at_ns;
};

static void bind_message(struct rig *r, uint32_t message)
{
	struct fabric_bind b = {.rx = {.base = r->mem[message % MESSAGES],
				       .len = NPKTS * PAYLOAD,
				       .payload = PAYLOAD,
				       .imm_frags = 16,
				       .words = r->words[message % MESSAGES]}};

	assert_true(rx_bind_words(NPKTS * PAYLOAD, PAYLOAD, 0) <= 16);
	r->key[message % (MESSAGES * GENERATIONS)] = deliver_key_draw(&r->rng);
	assert_int_equal(
		deliver_bind(&r->qp, message, &b, &r->key[message % (MESSAGES * GENERATIONS)]), 0);
}

static void fence(struct rig *r, uint32_t message)
{
	deliver_fence_begin(&r->qp, message);
	assert_true(deliver_fence_done(&r->qp, message));
}

static struct fabric_local local_make(void)
{
	struct fabric_local local = {.qpn = CTRL_QPN};

	for (uint32_t g = 0; g < GENERATIONS; g++)
		for (uint32_t c = 0; c < CHANNELS; c++)
			local.data_qpn[fabric_data_qp(g, c)] = DATA_QPN + fabric_data_qp(g, c);
	return local;
}

static const uint8_t src6[16] = {0xfe, 0x80, [15] = 1}, dst6[16] = {0xfe, 0x80, [15] = 2};
static const uint8_t src4[4] = {192, 0, 2, 1}, dst4[4] = {192, 0, 2, 2};

static void use_ipv4(struct rig *r, bool df)
{
	wire_icrc_flow_v4(&r->flow.icrc, src4, dst4, 5555, 4791, df);
	r->flow.host = &r->host;
}

static int rig_setup(void **state)
{
	const struct fabric_local local = local_make();
	struct rig *r = aligned_alloc(64, u64_div_up(sizeof(*r), 64) * 64);
	struct deliver_rocev2 agreed = {
		.channels = CHANNELS, .generations = GENERATIONS, .messages = MESSAGES};

	assert_non_null(r);
	memset(r, 0, sizeof(*r));
	rng_init(&r->rng, 4);
	rx_worker_init(&r->rxw);
	assert_int_equal(rx_table_init(&r->table, r->slots, MESSAGES, MESSAGES * GENERATIONS - 1,
				       &r->rxw, 1, 0),
			 0);
	deliver_worker_init(&r->w, 0);
	deliver_qp_init_rocev2(&r->qp, &local, &r->table);
	agreed.keys = r->keys;
	assert_int_equal(deliver_agree(&r->qp, &agreed), 0);
	wire_icrc_flow_v6(&r->flow.icrc, src6, dst6, 5555, 4791);
	for (uint32_t m = 0; m < MESSAGES - 1; m++) /* message 3 is not bound */
		bind_message(r, m);
	*state = r;
	return 0;
}

static int rig_teardown(void **state)
{
	free(*state);
	return 0;
}

/* The packet's trailer, over a flow and an identification. */
static void seal(const struct rig *r, const struct wire_icrc_flow *flow, uint8_t *pkt,
		 size_t unsealed)
{
	const struct wire_icrc_packet p = {.hdr = pkt,
					   .hdr_len = WIRE_BTH_BYTES,
					   .payload = pkt + WIRE_BTH_BYTES,
					   .payload_len = unsealed - WIRE_BTH_BYTES};

	wire_icrc_seal(flow, r->id, &p, pkt + unsealed);
}

static void reseal(const struct rig *r, uint8_t *pkt)
{
	seal(r, &r->flow.icrc, pkt, PKT_BYTES - WIRE_TRAILER_BYTES);
}

/* Adds a packet of `length` bytes, each of value `value`, with the key of that message. */
static uint8_t *add_with(struct rig *r, const struct fabric_key *key, uint32_t slot,
			 uint32_t packet, uint32_t length, uint8_t value)
{
	const struct wire_rocev2_message m = {.split = fabric_imm_split(MESSAGES),
					      .slot = slot,
					      .rkey = key->rkey,
					      .user_imm = 0xabcd1234,
					      .payload_bytes = PAYLOAD};
	uint32_t qpn = DATA_QPN + fabric_data_qp(r->generation, r->channel);
	size_t unsealed = WIRE_DATA_HDR_BYTES + length + wire_pad_bytes(length);
	struct wire_data_template tmpl;
	uint8_t *pkt = r->buf + r->len;

	assert_int_equal(wire_data_template_rocev2(&tmpl, qpn, &m), 0);
	tmpl.va_base = key->va;
	wire_data_put(pkt, &tmpl, 9, (uint64_t)packet * PAYLOAD, length);
	memset(pkt + WIRE_DATA_HDR_BYTES, value, length);
	memset(pkt + WIRE_DATA_HDR_BYTES + length, 0, wire_pad_bytes(length));
	seal(r, &r->flow.icrc, pkt, unsealed);
	r->len += unsealed + WIRE_TRAILER_BYTES;
	r->pkt[r->n++] = (struct deliver_pkt){
		.bytes = pkt, .len = (uint32_t)unsealed + WIRE_TRAILER_BYTES, .at_ns = r->at_ns};
	return pkt;
}

static uint8_t *add(struct rig *r, uint32_t slot, uint32_t packet, uint32_t length, uint8_t value)
{
	return add_with(r, &r->key[r->generation * MESSAGES + slot], slot, packet, length, value);
}

static unsigned int deliver(struct rig *r)
{
	unsigned int used =
		deliver_data(&r->w, &r->qp, r->channel, &r->flow, r->pkt, r->n, &r->facts);

	assert_in_range(used, 1, r->n);
	assert_int_equal(atomic_load(&r->rxw.in), 0);
	for (uint32_t i = 0; i < MESSAGES; i++)
		if (rx_is_bound(&r->table, i))
			assert_int_equal(rx_slot_check(&r->slots[i], true), 0);
	r->len = 0;
	r->n = 0;
	return used;
}

static bool has(const struct rig *r, uint32_t slot, uint32_t packet)
{
	uint64_t bit;

	rx_bits_get(&r->slots[slot], packet, 1, &bit);
	return bit;
}

static uint32_t count_bits(const struct rig *r, uint32_t slot)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < NPKTS; i++)
		n += has(r, slot, i);
	return n;
}

static uint64_t counter(const struct rig *r, enum sdr_counter which)
{
	uint64_t sum[SDR_CTR_COUNT] = {0};

	deliver_counters_add(&r->w, sum);
	return sum[which];
}

static struct fabric_channel_facts facts(const struct rig *r, uint32_t channel)
{
	struct fabric_channel_facts f = {0};

	deliver_channel_facts(&r->qp, channel, 100, &f);
	return f;
}

/* One packet was refused, by this counter, and nothing changed. */
static void expect_refused(struct rig *r, enum sdr_counter which)
{
	uint64_t before = counter(r, which), bad = facts(r, r->channel).bad_pkts;
	uint64_t pkts = counter(r, SDR_CTR_rx_pkts);
	static uint8_t mem[sizeof(r->mem)];

	memcpy(mem, r->mem, sizeof(mem));
	assert_int_equal(deliver(r), 1);
	assert_int_equal(counter(r, which), before + 1);
	assert_int_equal(counter(r, SDR_CTR_rx_pkts), pkts);
	if (which != SDR_CTR_rx_late)
		assert_int_equal(facts(r, r->channel).bad_pkts, bad + 1);
	assert_memory_equal(mem, r->mem, sizeof(mem));
}

static void test_a_train_lands(void **state)
{
	struct rig *r = *state;
	uint32_t imm;

	r->channel = 1;
	r->at_ns = 40;
	for (uint32_t i = 0; i < 64; i++)
		add(r, 1, 30 + i, PAYLOAD, (uint8_t)i);
	assert_int_equal(deliver(r), 64);
	assert_int_equal(r->facts.committed, 64);
	assert_int_equal(count_bits(r, 1), 64);
	for (uint32_t i = 0; i < 64; i++)
		assert_int_equal(r->mem[1][(30 + i) * PAYLOAD + 7], i);
	assert_true(rx_imm_get(&r->slots[1], &imm));
	assert_int_equal(imm, 0xabcd1234);
	assert_int_equal(facts(r, 1).received_pkts, 64);
	assert_int_equal(facts(r, 0).received_pkts, 0);
	assert_true(facts(r, 1).packet_valid);
	assert_false(facts(r, 1).psn_valid);
	assert_int_equal(facts(r, 1).newest_message, 1);
	assert_int_equal(facts(r, 1).newest_packet, 93);
	assert_int_equal(facts(r, 1).newest_age_ns, 60);
	assert_false(facts(r, 0).packet_valid);
}

/* The newest is the last to come, whatever its index, bit or message. */
static void test_newest_is_the_last_to_come(void **state)
{
	struct rig *r = *state;

	add(r, 1, 9, PAYLOAD, 1);
	add(r, 0, 2, PAYLOAD, 1);
	assert_int_equal(deliver(r), 2);
	assert_int_equal(facts(r, 0).newest_message, 0);
	assert_int_equal(facts(r, 0).newest_packet, 2);
	add(r, 1, 3, PAYLOAD, 1);
	add(r, 1, 9, PAYLOAD, 1); /* a duplicate */
	add(r, 3, 4, PAYLOAD, 1); /* late: not bound */
	assert_int_equal(deliver(r), 3);
	assert_int_equal(facts(r, 0).newest_message, 1);
	assert_int_equal(facts(r, 0).newest_packet, 9);
	assert_int_equal(facts(r, 0).duplicate_pkts, 1);
	assert_int_equal(facts(r, 0).late_pkts, 1);
	assert_int_equal(facts(r, 0).reordered_pkts, 0);
}

static void test_generations(void **state)
{
	struct rig *r = *state;

	/* Slot 1 has the message of generation 0. */
	r->generation = 1;
	r->key[MESSAGES + 1] = r->key[1];
	add(r, 1, 0, PAYLOAD, 7);
	expect_refused(r, SDR_CTR_rx_late);
	assert_int_equal(r->facts.late_message, MESSAGES + 1);
	/* The next use of the slot: and then the other way round. */
	fence(r, 1);
	bind_message(r, MESSAGES + 1);
	add(r, 1, 0, PAYLOAD, 7);
	assert_int_equal(deliver(r), 1);
	assert_true(has(r, 1, 0));
	assert_int_equal(facts(r, 0).newest_message, MESSAGES + 1);
	r->generation = 0;
	add(r, 1, 1, PAYLOAD, 7);
	expect_refused(r, SDR_CTR_rx_late);
}

/* Numbers exist for more generations than were agreed: theirs are not others' packets. */
static void test_generations_beyond_those_agreed(void **state)
{
	struct rig *r = *state;
	struct fabric_local local = local_make();

	for (uint32_t c = 0; c < CHANNELS; c++)
		local.data_qpn[fabric_data_qp(2, c)] = DATA_QPN + fabric_data_qp(2, c);
	memcpy(r->qp.data_qpn, local.data_qpn, sizeof(local.data_qpn));
	r->generation = 2;
	add_with(r, &r->key[1], 1, 0, PAYLOAD, 7);
	expect_refused(r, SDR_CTR_rx_late);
	assert_int_equal(count_bits(r, 1), 0);
}

/* The generations came round: only the key tells the old packets. */
static void test_keys_die_with_the_fence(void **state)
{
	struct rig *r = *state;
	const struct fabric_key old = r->key[2];

	fence(r, 2);
	bind_message(r, 2 + MESSAGES * GENERATIONS);
	assert_int_not_equal(old.rkey, r->key[2].rkey);
	add_with(r, &old, 2, 5, PAYLOAD, 9);
	expect_refused(r, SDR_CTR_rx_protection);
	assert_int_equal(count_bits(r, 2), 0);
	add(r, 2, 5, PAYLOAD, 9);
	assert_int_equal(deliver(r), 1);
	assert_true(has(r, 2, 5));
}

static void test_the_key_is_checked(void **state)
{
	struct rig *r = *state;
	struct fabric_key key = r->key[0];

	key.rkey ^= 1;
	add_with(r, &key, 0, 0, PAYLOAD, 1);
	expect_refused(r, SDR_CTR_rx_protection);
	add_with(r, &r->key[1], 0, 0, PAYLOAD, 1);
	expect_refused(r, SDR_CTR_rx_protection);
	for (uint32_t bit = 0; bit < 64; bit++) {
		key = r->key[0];
		key.va ^= UINT64_C(1) << bit;
		add_with(r, &key, 0, 3, PAYLOAD, 1);
		expect_refused(r, SDR_CTR_rx_protection);
	}
	/* One packet with a wrong key in a train: its neighbours land. */
	for (uint32_t i = 0; i < 8; i++) {
		key = r->key[0];
		key.va += i == 3 ? PAYLOAD : 0;
		key.rkey += i == 6;
		add_with(r, &key, 0, i, PAYLOAD, 1);
	}
	assert_int_equal(deliver(r), 8);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(has(r, 0, i), i != 3 && i != 6);
}

/* In a train the address may go on while the index does not: it is none of that run. */
static void test_index_and_address_disagree(void **state)
{
	struct rig *r = *state;

	for (uint32_t i = 0; i < 8; i++) {
		uint8_t *pkt = add(r, 0, i, PAYLOAD, 1);

		put_be32(pkt + 28,
			 wire_imm_pack(fabric_imm_split(MESSAGES), 0, i == 4 ? 40 : i, 0));
		reseal(r, pkt);
	}
	assert_int_equal(deliver(r), 8);
	assert_int_equal(count_bits(r, 0), 7);
	assert_false(has(r, 0, 4) || has(r, 0, 40));
	assert_int_equal(counter(r, SDR_CTR_rx_protection), 1);
}

static void test_out_of_range(void **state)
{
	struct rig *r = *state;

	add(r, 0, NPKTS, PAYLOAD, 1);
	expect_refused(r, SDR_CTR_rx_range);
	add(r, 0, (1u << 22) - 1, PAYLOAD, 1);
	expect_refused(r, SDR_CTR_rx_range);
	add(r, 0, 0, PAYLOAD + 4, 1); /* longer than the binding's payload */
	expect_refused(r, SDR_CTR_rx_range);
	/* A slot beyond those agreed. */
	add_with(r, &r->key[0], MESSAGES, 0, PAYLOAD, 1);
	expect_refused(r, SDR_CTR_rx_range);
	add_with(r, &r->key[0], 255, 0, PAYLOAD, 1);
	expect_refused(r, SDR_CTR_rx_range);
}

/* A short message's immediate comes in packets after its end: no bits, but counted. */
static void test_an_immediate_beyond_the_end(void **state)
{
	struct rig *r = *state;
	uint32_t imm;

	add(r, 0, 0, 5, 1);
	for (uint32_t i = 1; i < 16; i++) {
		assert_false(rx_imm_get(&r->slots[0], &imm));
		add(r, 0, i, 0, 0);
		assert_int_equal(deliver(r), i == 1 ? 2 : 1);
	}
	assert_true(rx_imm_get(&r->slots[0], &imm));
	assert_int_equal(imm, 0xabcd1234);
	assert_int_equal(count_bits(r, 0), 1);
	assert_int_equal(r->facts.committed, 16);
	add(r, 0, 15, 0, 0);
	assert_int_equal(deliver(r), 1);
	assert_int_equal(facts(r, 0).received_pkts, 16);
	assert_int_equal(facts(r, 0).duplicate_pkts, 1);
	add(r, 0, 16, 0, 0);
	expect_refused(r, SDR_CTR_rx_range);
}

/* Makes the good packet that is about to be changed, and says whether it still comes to us. */
static bool flip(struct rig *r, uint32_t bit)
{
	uint8_t *pkt = add(r, 0, 0, PAYLOAD, 1);
	uint8_t opcode;
	uint32_t qpn;

	pkt[bit / 8] ^= (uint8_t)(1u << bit % 8);
	if (wire_peek(pkt, PKT_BYTES, &opcode, &qpn) == 0 && opcode == WIRE_OP_DATA &&
	    qpn == DATA_QPN)
		return true;
	r->n = 0;
	r->len = 0;
	return false;
}

static void test_every_bit_of_the_packet(void **state)
{
	struct rig *r = *state;

	for (int v4 = 0; v4 < 2; v4++) {
		if (v4)
			use_ipv4(r, true);
		/* IPv4: one flip in 65536 looks like another identification: it must be near this.
		 */
		r->id = 1000;
		add(r, 1, 0, PAYLOAD, 1);
		assert_int_equal(deliver(r), 1);
		for (uint32_t bit = 0; bit < 8 * PKT_BYTES; bit++) {
			if (bit / 8 == 4 || !flip(r, bit))
				continue;
			assert_int_equal(deliver(r), 1);
			assert_int_equal(counter(r, SDR_CTR_rx_pkts), 1);
		}
		assert_int_equal(count_bits(r, 0), 0);
	}
	/* The byte of BTH that routers may change, and that is masked. */
	for (uint32_t bit = 0; bit < 8; bit++) {
		assert_true(flip(r, 8 * 4 + bit));
		assert_int_equal(deliver(r), 1);
		assert_int_equal(count_bits(r, 0), 1);
	}
	assert_int_equal(facts(r, 0).duplicate_pkts, 8);
}

static void test_another_flow(void **state)
{
	struct rig *r = *state;
	struct wire_icrc_flow other;
	uint8_t *pkt = add(r, 0, 0, PAYLOAD, 1);

	wire_icrc_flow_v6(&other, src6, dst6, 5556, 4791);
	seal(r, &other, pkt, PKT_BYTES - WIRE_TRAILER_BYTES);
	expect_refused(r, SDR_CTR_rx_protection);
	pkt = add(r, 0, 0, PAYLOAD, 1);
	wire_icrc_flow_v6(&other, dst6, src6, 5555, 4791);
	seal(r, &other, pkt, PKT_BYTES - WIRE_TRAILER_BYTES);
	expect_refused(r, SDR_CTR_rx_protection);
}

/* Segments of a segmented send, then a counter as Soft-RoCE has, with and without DF. */
static void test_identifications(void **state)
{
	struct rig *r = *state;

	for (int df = 0; df < 2; df++) {
		use_ipv4(r, df);
		for (uint32_t i = 0; i < 40; i++) {
			r->id = (uint16_t)i;
			add(r, (uint32_t)df, i, PAYLOAD, 1);
		}
		use_ipv4(r, true); /* what a receiver supposes */
		assert_int_equal(deliver(r), 40);
		assert_int_equal(count_bits(r, (uint32_t)df), 40);
	}
	for (uint32_t i = 0; i < 60; i++) {
		r->id = (uint16_t)(65500 + 3 * i); /* wraps */
		add(r, 2, i, PAYLOAD, 1);
	}
	assert_int_equal(deliver(r), 60);
	assert_int_equal(count_bits(r, 2), 60);
	/* One that is far off is refused; sixteen of a kind are believed. */
	r->id = 30000;
	add(r, 2, 70, PAYLOAD, 1);
	expect_refused(r, SDR_CTR_rx_protection);
	for (uint32_t i = 1; i < IPID_RESYNC; i++) {
		r->id++;
		add(r, 2, 70 + i, PAYLOAD, 1);
	}
	assert_int_equal(deliver(r), IPID_RESYNC - 1);
	for (uint32_t i = 0; i < IPID_RESYNC; i++)
		assert_int_equal(has(r, 2, 70 + i), i == IPID_RESYNC - 1);
}

/* The other channels' packets moved the host's counter; this channel slept. */
static void test_the_hosts_identification_counts_too(void **state)
{
	struct rig *r = *state;

	use_ipv4(r, true);
	r->channel = 1;
	r->id = 1000;
	add(r, 1, 0, PAYLOAD, 1);
	assert_int_equal(deliver(r), 1);
	r->channel = 0;
	for (uint32_t i = 0; i < 10; i++) {
		r->id += 4000;
		add(r, 0, i, PAYLOAD, 1);
	}
	assert_int_equal(deliver(r), 10);
	r->channel = 1;
	r->id++;
	add(r, 1, 1, PAYLOAD, 1);
	assert_int_equal(deliver(r), 1);
	assert_true(has(r, 1, 1));
	r->flow.host = NULL; /* without it, the same is far off */
	r->id += 10000;
	add(r, 1, 2, PAYLOAD, 1);
	expect_refused(r, SDR_CTR_rx_protection);
}

static void test_trains_stop_at_another_number(void **state)
{
	struct rig *r = *state;
	uint8_t *pkt;

	add(r, 0, 0, PAYLOAD, 1);
	r->generation = 1;
	add(r, 0, 1, PAYLOAD, 1);
	r->generation = 0;
	assert_int_equal(deliver(r), 1);
	add(r, 0, 1, PAYLOAD, 1);
	pkt = add(r, 0, 2, PAYLOAD, 1);
	put_be24(pkt + 5, CTRL_QPN);
	reseal(r, pkt);
	assert_int_equal(deliver(r), 1);
	assert_int_equal(count_bits(r, 0), 2);
}

static void test_numbers(void **state)
{
	struct rig *r = *state;

	for (uint32_t g = 0; g < FABRIC_MAX_GENERATIONS; g++)
		for (uint32_t c = 0; c < FABRIC_MAX_CHANNELS; c++)
			assert_int_equal(deliver_data_qp(&r->qp, DATA_QPN + fabric_data_qp(g, c)),
					 g < GENERATIONS && c < CHANNELS ? (int)fabric_data_qp(g, c)
									 : -1);
	assert_int_equal(deliver_data_qp(&r->qp, CTRL_QPN), -1);
	assert_int_equal(deliver_data_qp(&r->qp, 0), -1);
	assert_int_equal(deliver_data_qp(&r->qp, 0xffffff), -1);
}

/* Before anything was agreed all is late, and nothing can be bound. */
static void test_before_the_agreement(void **state)
{
	struct rig *r = *state;
	const struct fabric_local local = local_make();
	struct deliver_rocev2 agreed = {.channels = CHANNELS,
					.generations = GENERATIONS,
					.messages = MESSAGES,
					.keys = r->keys};
	struct fabric_bind b = {.rx = {.len = 1, .payload = PAYLOAD, .imm_frags = 16}};
	const struct fabric_key key = {1, 4096};

	deliver_qp_init_rocev2(&r->qp, &local, &r->table);
	fence(r, 0);
	add(r, 1, 0, PAYLOAD, 1);
	expect_refused(r, SDR_CTR_rx_late);
	assert_int_equal(deliver_bind(&r->qp, 0, &b, &key), -EINVAL);
	agreed.messages = 3;
	assert_int_equal(deliver_agree(&r->qp, &agreed), -EINVAL);
	agreed.messages = 2048;
	assert_int_equal(deliver_agree(&r->qp, &agreed), -EINVAL);
	agreed.messages = MESSAGES;
	agreed.generations = 3;
	assert_int_equal(deliver_agree(&r->qp, &agreed), -EINVAL);
	agreed.generations = 8;
	assert_int_equal(deliver_agree(&r->qp, &agreed), -EINVAL);
	agreed.generations = 1; /* the table has another key_mask */
	assert_int_equal(deliver_agree(&r->qp, &agreed), 0);
	assert_int_equal(deliver_bind(&r->qp, 0, &b, &key), -EINVAL);
	agreed.generations = GENERATIONS;
	assert_int_equal(deliver_agree(&r->qp, &agreed), 0);
	b.rx.imm_frags = 8; /* the split has 16 */
	assert_int_equal(deliver_bind(&r->qp, 0, &b, &key), -EINVAL);
	b.rx.imm_frags = 16;
	assert_int_equal(deliver_bind(&r->qp, 1, &b, &key), -EBUSY);
	assert_int_equal(deliver_bind(&r->qp, 0, &b, &key), 0);
	/* A refused binding leaves the key of the one that is there. */
	assert_int_equal(deliver_bind(&r->qp, MESSAGES, &b, &r->key[1]), -EBUSY);
	add_with(r, &key, 0, 0, 1, 9);
	assert_int_equal(deliver(r), 1);
	assert_int_equal(r->facts.committed, 1);
}

static void test_keys_leave_room_for_offsets(void **state)
{
	struct rng rng;
	uint64_t high = 0;

	(void)state;
	rng_init(&rng, 9);
	for (int i = 0; i < 100; i++) {
		struct fabric_key key = deliver_key_draw(&rng);

		assert_int_equal(key.va % 4096, 0);
		assert_true(key.va < UINT64_C(1) << 44);
		high |= key.va;
	}
	assert_int_equal(high, (UINT64_C(1) << 44) - 4096);
}

static size_t ctrl_make(struct rig *r, uint32_t qkey, uint32_t prefix, size_t body)
{
	const struct wire_ctrl_header header = {
		.dest_qpn = CTRL_QPN, .src_qpn = 77, .psn = 0xabcdef, .qkey = qkey};
	size_t len = WIRE_ROCEV2_CTRL_PREFIX_BYTES + body;
	size_t unsealed = WIRE_CTRL_HDR_BYTES + len + wire_pad_bytes(len);

	memset(r->buf, 0, unsealed);
	wire_ctrl_put_header(r->buf, &header, len);
	put_be32(r->buf + WIRE_CTRL_HDR_BYTES, prefix);
	memset(r->buf + WIRE_CTRL_HDR_BYTES + 4, 0x42, body);
	seal(r, &r->flow.icrc, r->buf, unsealed);
	return unsealed + WIRE_TRAILER_BYTES;
}

static int ctrl_deliver(struct rig *r, size_t len, struct deliver_ctrl *out)
{
	struct deliver_pkt pkt = {.bytes = r->buf, .len = (uint32_t)len};

	return deliver_ctrl(&r->w, &r->qp, 0, &r->flow, &pkt, out);
}

static void test_control(void **state)
{
	struct rig *r = *state;
	struct deliver_ctrl out;
	size_t len;

	for (uint32_t body = 0; body <= FABRIC_ROCEV2_CTRL_MAX + 1; body += 1 + body / 9) {
		len = ctrl_make(r, WIRE_ROCEV2_QKEY, UINT32_C(3) << 24, body);
		if (body > FABRIC_ROCEV2_CTRL_MAX) {
			assert_true(ctrl_deliver(r, len, &out) < 0);
			continue;
		}
		assert_int_equal(ctrl_deliver(r, len, &out), 0);
		assert_int_equal(out.len, body);
		assert_int_equal(out.channel, 3);
		assert_int_equal(out.psn, 0xabcdef);
		assert_int_equal(out.src_qpn, 77);
		assert_ptr_equal(out.body, r->buf + WIRE_CTRL_HDR_BYTES + 4);
	}
	assert_true(ctrl_deliver(r, ctrl_make(r, 0x11111111, 0, 8), &out) < 0);
	assert_true(ctrl_deliver(r, ctrl_make(r, WIRE_ROCEV2_QKEY, 1, 8), &out) < 0);
	assert_true(ctrl_deliver(r, ctrl_make(r, WIRE_ROCEV2_QKEY, UINT32_C(16) << 24, 8), &out) <
		    0);
	len = ctrl_make(r, WIRE_ROCEV2_QKEY, 0, 8);
	for (size_t cut = WIRE_BTH_BYTES + WIRE_TRAILER_BYTES; cut < len; cut++)
		assert_true(ctrl_deliver(r, cut, &out) < 0);
	for (size_t bit = 0; bit < 8 * len; bit++) {
		ctrl_make(r, WIRE_ROCEV2_QKEY, 0, 8);
		r->buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(ctrl_deliver(r, len, &out) < 0, bit / 8 != 4);
	}
}

#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_a_train_lands),
		RIG_TEST(test_newest_is_the_last_to_come),
		RIG_TEST(test_generations),
		RIG_TEST(test_generations_beyond_those_agreed),
		RIG_TEST(test_keys_die_with_the_fence),
		RIG_TEST(test_the_key_is_checked),
		RIG_TEST(test_index_and_address_disagree),
		RIG_TEST(test_out_of_range),
		RIG_TEST(test_an_immediate_beyond_the_end),
		RIG_TEST(test_every_bit_of_the_packet),
		RIG_TEST(test_another_flow),
		RIG_TEST(test_identifications),
		RIG_TEST(test_the_hosts_identification_counts_too),
		RIG_TEST(test_trains_stop_at_another_number),
		RIG_TEST(test_numbers),
		RIG_TEST(test_before_the_agreement),
		cmocka_unit_test(test_keys_leave_room_for_offsets),
		RIG_TEST(test_control),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

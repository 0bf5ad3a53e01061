/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What shall not happen: whatever comes from the wire changes a counter and nothing else.
 * Packets are made here, byte by byte, and injected.
 */
#include "fabric/conformance_int.h"

#include "protect/protect.h"
#include "wire/wire.h"

#define MESSAGE 5u
#define NPKTS 10u
#define MAX_PACKET 4096u

/* A receive that nothing may touch. */
struct stage {
	struct cf *cf;
	struct cf_recv r;
	size_t len;
	struct cf_counts before;
};

struct crafted {
	uint8_t bytes[MAX_PACKET];
	size_t len;
};

static const enum sdr_counter bad_counters[] = {SDR_CTR_rx_malformed, SDR_CTR_rx_protection,
						SDR_CTR_rx_unknown_qp, SDR_CTR_rx_range,
						SDR_CTR_rx_late};

static uint64_t bad_sum(const struct cf_counts *c)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < SDR_ARRAY_LEN(bad_counters); i++)
		sum += c->ctr[bad_counters[i]];
	return sum;
}

static struct stage *stage_make(struct cf *cf)
{
	struct stage *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->cf = cf;
	s->len = NPKTS * (size_t)cf->payload - 3;
	cf_recv_make(cf, &s->r, MESSAGE, s->len);
	cf_counts_get(&cf->end[CF_B], &s->before);
	return s;
}

/* The same, for a test that injects. */
static struct stage *stage_hostile(struct cf *cf)
{
	if (!cf->env->inject) {
		print_message("skipped: nobody can inject into this fabric's wire\n");
		skip();
	}
	return stage_make(cf);
}

static void stage_free(struct stage *s)
{
	cf_recv_free(s->cf, &s->r);
	free(s);
}

struct wait_bad {
	const struct stage *s;
	uint64_t n;
};

static bool bad_there(void *arg)
{
	const struct wait_bad *w = arg;
	struct cf_counts now;

	cf_counts_get(&w->s->cf->end[CF_B], &now);
	return bad_sum(&now) >= bad_sum(&w->s->before) + w->n;
}

/* n packets were refused, and that is all. */
static void expect_refused(struct stage *s, uint64_t n)
{
	struct wait_bad wait = {s, n};
	struct cf_counts now;

	if (!cf_until(s->cf, bad_there, &wait)) {
		cf_counts_get(&s->cf->end[CF_B], &now);
		fail_msg("%u of %u packets were refused",
			 (unsigned int)(bad_sum(&now) - bad_sum(&s->before)), (unsigned int)n);
	}
	cf_counts_get(&s->cf->end[CF_B], &now);
	assert_int_equal(bad_sum(&now) - bad_sum(&s->before), n);
	assert_int_equal(now.ctr[SDR_CTR_rx_pkts], s->before.ctr[SDR_CTR_rx_pkts]);
	assert_int_equal(now.ctr[SDR_CTR_rx_bytes], s->before.ctr[SDR_CTR_rx_bytes]);
	assert_int_equal(now.ctr[SDR_CTR_rx_ctrl], s->before.ctr[SDR_CTR_rx_ctrl]);
	assert_int_equal(now.ctr[SDR_CTR_rx_duplicate], s->before.ctr[SDR_CTR_rx_duplicate]);
	for (uint32_t i = 0; i < CF_CHANNELS; i++) {
		assert_int_equal(now.ch[i].received_pkts, s->before.ch[i].received_pkts);
		/* Late ones are the peer's own, and among what it is told of. */
		if (now.ch[i].late_pkts == s->before.ch[i].late_pkts)
			assert_int_equal(now.ch[i].newest_psn, s->before.ch[i].newest_psn);
		assert_int_equal(now.ch[i].packet_valid, s->before.ch[i].packet_valid);
	}
	assert_int_equal(cf_recv_count(&s->r), 0);
	for (size_t i = 0; i < s->len; i++)
		assert_int_equal(s->r.mem.base[i], 0);
	cf_mem_check(&s->r.mem);
}

/* The same, and by which counter. */
static void expect_counter(struct stage *s, enum sdr_counter which, uint64_t n)
{
	struct cf_counts now;

	expect_refused(s, n);
	cf_counts_get(&s->cf->end[CF_B], &now);
	assert_int_equal(now.ctr[which] - s->before.ctr[which], n);
	s->before = now;
}

static bool is_rocev2(const struct cf *cf)
{
	return cf->end[CF_B].caps.mode == WIRE_ROCEV2;
}

/* Writes the trailer; sdr: by this token. */
static void seal(const struct cf *cf, struct crafted *p, size_t unsealed, uint64_t token)
{
	struct protect_packet whole = {.hdr = p->bytes, .hdr_len = unsealed};
	struct protect_key key;

	p->len = unsealed + WIRE_TRAILER_BYTES;
	if (is_rocev2(cf)) {
		cf->env->seal(cf->env->arg, p->bytes, unsealed);
		return;
	}
	protect_checksum_key(&key, token);
	protect_seal(&key, &whole, p->bytes + unsealed);
}

/* After a change. */
static void reseal(const struct cf *cf, struct crafted *p)
{
	seal(cf, p, p->len - WIRE_TRAILER_BYTES, cf->end[CF_B].local.token);
}

static uint32_t data_qpn(const struct cf *cf, uint32_t message)
{
	uint32_t generation = message / CF_SLOTS % cf->generations;

	return cf->end[CF_B].local.data_qpn[fabric_data_qp(generation, 0)];
}

/* The header of a packet of a message, with a key, from a sender whose immediate is 0x1234. */
static void put_head(const struct cf *cf, struct crafted *p, uint32_t message,
		     const struct fabric_key *key, uint64_t offset, uint32_t said)
{
	const struct wire_rocev2_message m = {.split = fabric_imm_split(CF_SLOTS),
					      .slot = message % CF_SLOTS,
					      .rkey = key->rkey,
					      .user_imm = 0x1234,
					      .payload_bytes = cf->payload};
	struct wire_data_template tmpl;

	if (is_rocev2(cf)) {
		assert_int_equal(wire_data_template_rocev2(&tmpl, data_qpn(cf, message), &m), 0);
		tmpl.va_base = key->va;
	} else {
		wire_data_template_sdr(&tmpl, cf->end[CF_B].local.qpn, message, 0x1234);
	}
	wire_data_put(p->bytes, &tmpl, 77, offset, said);
}

/* A data packet that says it has `said` bytes and carries `len`. */
static struct crafted craft_with(const struct cf *cf, uint32_t message,
				 const struct fabric_key *key, uint64_t offset, uint32_t said,
				 uint32_t len)
{
	struct crafted p = {.len = 0};

	put_head(cf, &p, message, key, offset, said);
	memset(p.bytes + WIRE_DATA_HDR_BYTES, 0xee, len);
	seal(cf, &p, WIRE_DATA_HDR_BYTES + len + wire_pad_bytes(len), cf->end[CF_B].local.token);
	return p;
}

static struct crafted craft(struct cf *cf, uint32_t message, uint64_t offset, uint32_t said,
			    uint32_t len)
{
	return craft_with(cf, message, cf_key(cf, CF_B, message), offset, said, len);
}

static struct crafted craft_good(struct cf *cf)
{
	return craft(cf, MESSAGE, 2 * (uint64_t)cf->payload, cf->payload, cf->payload);
}

static void inject(struct stage *s, const struct crafted *p)
{
	s->cf->env->inject(s->cf->env->arg, p->bytes, p->len);
}

struct wait_count {
	const struct cf_recv *r;
	uint32_t n;
};

static bool count_there(void *arg)
{
	const struct wait_count *w = arg;

	return cf_recv_count(w->r) >= w->n;
}

/* What the other tests vary does land. */
static void test_the_crafted_packet_is_good(void **state)
{
	struct cf *cf = *state;
	struct stage *s = stage_hostile(cf);
	struct crafted p = craft_good(cf);
	struct wait_count wait = {&s->r, 1};

	inject(s, &p);
	assert_true(cf_until(cf, count_there, &wait));
	assert_true(cf_recv_has(&s->r, 2, 1));
	for (size_t i = 0; i < s->len; i++)
		assert_int_equal(s->r.mem.base[i], i / cf->payload == 2 ? 0xee : 0);
	stage_free(s);
}

static void test_foreign_qpn(void **state)
{
	struct cf *cf = *state;
	struct stage *s = stage_hostile(cf);
	struct crafted p = craft_good(cf);
	uint32_t qpn = get_be24(p.bytes + 5);
	/* Another index, other numbers of that index, and the other end's. */
	const uint32_t wrong[] = {qpn ^ 0x10, qpn ^ 0x800000, qpn ^ 0x400000,
				  cf->end[CF_A].local.qpn};

	for (size_t i = 0; i < SDR_ARRAY_LEN(wrong); i++) {
		put_be24(p.bytes + 5, wrong[i]);
		reseal(cf, &p);
		inject(s, &p);
		expect_counter(s, SDR_CTR_rx_unknown_qp, 1);
	}
	stage_free(s);
}

/* rocev2: each number of a QP takes its own kind only. */
static void test_another_kind_of_qp(void **state)
{
	struct cf *cf = *state;
	struct stage *s;
	struct crafted p;

	if (!is_rocev2(cf))
		skip();
	s = stage_hostile(cf);
	p = craft_good(cf);
	put_be24(p.bytes + 5, cf->end[CF_B].local.qpn);
	reseal(cf, &p);
	inject(s, &p);
	expect_counter(s, SDR_CTR_rx_unknown_qp, 1);
	p = craft_good(cf);
	p.bytes[0] = WIRE_OP_CTRL;
	reseal(cf, &p);
	inject(s, &p);
	expect_counter(s, SDR_CTR_rx_unknown_qp, 1);
	/* The next generation's: that message is not bound. */
	p = craft_good(cf);
	put_be24(p.bytes + 5, data_qpn(cf, MESSAGE + CF_SLOTS));
	reseal(cf, &p);
	inject(s, &p);
	expect_counter(s, SDR_CTR_rx_late, 1);
	stage_free(s);
}

/* rocev2: what bind() gave, and nothing else, and no longer than until the fence. */
static void test_wrong_key(void **state)
{
	struct cf *cf = *state;
	struct fabric_key good, key;
	struct cf_recv other;
	struct stage *s;
	struct crafted p;

	if (!is_rocev2(cf))
		skip();
	s = stage_hostile(cf);
	cf_recv_make(cf, &other, MESSAGE + 1, s->len);
	good = *cf_key(cf, CF_B, MESSAGE);
	for (int i = 0; i < 6; i++) {
		key = i == 5 ? *cf_key(cf, CF_B, MESSAGE + 1) : good;
		key.rkey ^= i == 0;
		key.va += i == 1 ? cf->payload : 0;
		key.va -= i == 2 ? cf->payload : 0;
		key.va = i == 3 ? 0 : key.va;
		key.va ^= (uint64_t)(i == 4) << 63;
		p = craft_with(cf, MESSAGE, &key, 0, cf->payload, cf->payload);
		inject(s, &p);
		expect_counter(s, SDR_CTR_rx_protection, 1);
	}
	assert_int_equal(cf_recv_count(&other), 0);
	cf_recv_free(cf, &other);
	/* The slot's and generation's next use. */
	cf_recv_fence(cf, &s->r);
	cf_recv_again(cf, &s->r, MESSAGE + CF_SLOTS * cf->generations);
	p = craft_with(cf, MESSAGE, &good, 0, cf->payload, cf->payload);
	inject(s, &p);
	expect_counter(s, SDR_CTR_rx_protection, 1);
	stage_free(s);
}

static void test_wrong_token(void **state)
{
	struct cf *cf = *state;
	struct stage *s = stage_hostile(cf);
	struct crafted p = craft_good(cf);

	if (is_rocev2(cf)) {
		stage_free(s);
		skip(); /* data has none; every bit of the ICRC comes below */
	}
	seal(cf, &p, p.len - WIRE_TRAILER_BYTES, cf->end[CF_B].local.token ^ 1);
	inject(s, &p);
	expect_counter(s, SDR_CTR_rx_protection, 1);
	seal(cf, &p, p.len - WIRE_TRAILER_BYTES, cf->end[CF_A].local.token);
	inject(s, &p);
	expect_counter(s, SDR_CTR_rx_protection, 1);
	stage_free(s);
}

static void test_every_bit_of_the_trailer(void **state)
{
	struct cf *cf = *state;
	struct stage *s = stage_hostile(cf);
	const struct crafted good = craft_good(cf);

	for (size_t bit = 0; bit < 8 * WIRE_TRAILER_BYTES; bit++) {
		struct crafted p = good;

		p.bytes[p.len - 1 - bit / 8] ^= (uint8_t)(1u << bit % 8);
		inject(s, &p);
	}
	expect_counter(s, SDR_CTR_rx_protection, 8ull * WIRE_TRAILER_BYTES);
	stage_free(s);
}

static void test_truncated_at_every_length(void **state)
{
	struct cf *cf = *state;
	struct stage *s = stage_hostile(cf);
	struct crafted p = craft_good(cf);
	size_t whole = p.len;
	uint64_t n = 0;

	for (p.len = 0; p.len < whole; p.len++) {
		inject(s, &p);
		if (++n % 32 == 0)
			expect_refused(s, n);
	}
	expect_refused(s, n);
	stage_free(s);
}

static void test_every_bit_of_the_head(void **state)
{
	struct cf *cf = *state;
	struct stage *s = stage_hostile(cf);
	const struct crafted good = craft_good(cf);
	uint64_t n = 0;

	for (size_t bit = 0; bit < 8 * (WIRE_DATA_HDR_BYTES + 4); bit++) {
		struct crafted p = good;

		/* Routers may change it (FECN, BECN), and ICRC leaves it out. */
		if (is_rocev2(cf) && bit / 8 == 4)
			continue;
		p.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		inject(s, &p);
		if (++n % 32 == 0)
			expect_refused(s, n);
	}
	expect_refused(s, n);
	stage_free(s);
}

static void test_random_bytes(void **state)
{
	struct cf *cf = *state;
	struct stage *s = stage_hostile(cf);
	const struct crafted good = craft_good(cf);

	for (uint64_t n = 1; n <= 2000; n++) {
		struct crafted p = {.len = (size_t)rng_below(&cf->rng, 1473)};

		cf_random(cf, p.bytes, p.len);
		/* Half of them get as far as the protection. */
		if (n % 2 && p.len > WIRE_DATA_HDR_BYTES)
			memcpy(p.bytes, good.bytes, WIRE_BTH_BYTES);
		inject(s, &p);
		if (n % 32 == 0 || n == 2000)
			expect_refused(s, n);
	}
	stage_free(s);
}

/* A packet that is sealed right, so from the peer, but wrong. */
struct nonsense {
	enum sdr_counter counter;
	uint32_t message;
	uint64_t offset;
	uint32_t said, len;
};

static void check_nonsense(struct cf *cf, const struct nonsense *cases, size_t n)
{
	struct stage *s = stage_hostile(cf);

	for (size_t i = 0; i < n; i++) {
		struct crafted p =
			craft(cf, cases[i].message, cases[i].offset, cases[i].said, cases[i].len);

		inject(s, &p);
		expect_counter(s, cases[i].counter, 1);
	}
	stage_free(s);
}

static void test_nonsense_with_a_valid_trailer(void **state)
{
	struct cf *cf = *state;
	const uint32_t full = cf->payload;
	const struct nonsense both[] = {
		{SDR_CTR_rx_late, MESSAGE + 1, 0, full, full},
		{SDR_CTR_rx_late, MESSAGE + CF_SLOTS, 0, full, full},
		{SDR_CTR_rx_range, MESSAGE, NPKTS * (uint64_t)full, full, full},
		{SDR_CTR_rx_range, MESSAGE, (NPKTS - 1) * (uint64_t)full, full, full},
		{SDR_CTR_rx_range, MESSAGE, (NPKTS - 1) * (uint64_t)full, full - 2, full - 2},
		{SDR_CTR_rx_range, MESSAGE, 0, full + 1, full + 1},
		{SDR_CTR_rx_malformed, MESSAGE, 0, full, full - 4},
		{SDR_CTR_rx_malformed, MESSAGE, 0, full - 4, full},
		{SDR_CTR_rx_malformed, MESSAGE, 0, 0, full},
		{SDR_CTR_rx_malformed, MESSAGE, 0, UINT32_MAX - 3, full},
	};
	const struct nonsense sdr[] = {
		{SDR_CTR_rx_late, MESSAGE + 0x80000000u, 0, full, full},
		{SDR_CTR_rx_range, MESSAGE, 1, full, full},
		{SDR_CTR_rx_range, MESSAGE, full - 1, full, full},
		{SDR_CTR_rx_range, MESSAGE, NPKTS * (uint64_t)full, 0, 0},
		{SDR_CTR_rx_range, MESSAGE, (UINT64_C(1) << 32) * full, full, full},
		{SDR_CTR_rx_range, MESSAGE, UINT64_C(1) << 63, full, full},
		{SDR_CTR_rx_malformed, MESSAGE, UINT64_MAX - 1, full, full},
	};
	const struct nonsense rocev2[] = {
		/* The address does not fit the index. */
		{SDR_CTR_rx_protection, MESSAGE, 1, full, full},
		{SDR_CTR_rx_protection, MESSAGE, full - 1, full, full},
		/* Beyond the packets that may carry what is left of the immediate. */
		{SDR_CTR_rx_range, MESSAGE, cf->imm_frags * (uint64_t)full, 0, 0},
		{SDR_CTR_rx_range, MESSAGE, ((UINT64_C(1) << 22) - 1) * full, full, full},
	};

	check_nonsense(cf, both, SDR_ARRAY_LEN(both));
	if (is_rocev2(cf))
		check_nonsense(cf, rocev2, SDR_ARRAY_LEN(rocev2));
	else
		check_nonsense(cf, sdr, SDR_ARRAY_LEN(sdr));
}

/* rocev2: a slot beyond those agreed. */
static void test_slots_beyond_the_last(void **state)
{
	struct cf *cf = *state;
	struct stage *s;

	if (!is_rocev2(cf))
		skip();
	s = stage_hostile(cf);
	for (uint32_t slot = CF_SLOTS; slot < 256; slot += 1 + slot / 2) {
		struct crafted p = craft_good(cf);

		/* Slot 5 is bound: as far as the low bits go, these are it. */
		put_be32(p.bytes + 28,
			 wire_imm_pack(fabric_imm_split(CF_SLOTS), slot + MESSAGE, 2, 0x1234));
		reseal(cf, &p);
		inject(s, &p);
		expect_counter(s, SDR_CTR_rx_range, 1);
	}
	stage_free(s);
}

/* A sound packet next to a bad one in a train lands all the same. */
static void test_bad_neighbours(void **state)
{
	struct cf *cf = *state;
	struct stage *s = stage_make(cf);
	struct wait_count wait = {&s->r, 1};
	struct fabric_write w;
	uint8_t *from = malloc(4 * (size_t)cf->payload);

	assert_non_null(from);
	memset(from, 0x77, 4 * (size_t)cf->payload);
	w = cf_write(cf, MESSAGE, from, s->len, NPKTS - 2, 2);
	w.addr = from;
	w.count = 4; /* the last two are beyond the end */
	w.last_bytes = cf->payload;
	cf_post(cf, &w);
	cf_settle(cf);
	/* The message's last full packet is longer than what is left of the receive. */
	assert_true(cf_until(cf, count_there, &wait));
	assert_int_equal(cf_recv_count(&s->r), 1);
	assert_true(cf_recv_has(&s->r, NPKTS - 2, 1));
	stage_free(s);
	free(from);
}

/* A control datagram of so many bytes of body, its Q_Key and, in rocev2, its prefix. */
static struct crafted craft_ctrl(struct cf *cf, uint32_t qkey, uint32_t prefix, size_t body)
{
	const struct wire_ctrl_header header = {
		.dest_qpn = cf->end[CF_B].local.qpn, .src_qpn = 9, .psn = 5, .qkey = qkey};
	struct crafted p = {.len = 0};

	wire_ctrl_put_header(p.bytes, &header, body);
	if (is_rocev2(cf))
		put_be32(p.bytes + WIRE_CTRL_HDR_BYTES, prefix);
	seal(cf, &p, WIRE_CTRL_HDR_BYTES + body, cf->end[CF_B].local.token);
	return p;
}

static void test_control_that_is_none(void **state)
{
	struct cf *cf = *state;
	struct stage *s = stage_hostile(cf);
	uint32_t qkey = is_rocev2(cf) ? WIRE_ROCEV2_QKEY : 0;
	size_t prefix = is_rocev2(cf) ? WIRE_ROCEV2_CTRL_PREFIX_BYTES : 0;
	struct crafted p = craft_ctrl(cf, qkey, 0, cf->end[CF_B].caps.max_ctrl_bytes + prefix + 4);
	size_t whole;

	inject(s, &p); /* longer than any */
	expect_counter(s, SDR_CTR_rx_malformed, 1);
	p = craft_ctrl(cf, qkey, 0, 64);
	p.bytes[p.len - 1] ^= 1;
	inject(s, &p);
	expect_counter(s, SDR_CTR_rx_protection, 1);
	p.bytes[p.len - 1] ^= 1;
	whole = p.len;
	for (p.len = 0; p.len < whole; p.len++)
		inject(s, &p);
	expect_refused(s, whole);
	assert_int_equal(cf->end[CF_B].nctrl, 0);
	stage_free(s);
}

static void test_control_with_a_wrong_key_or_channel(void **state)
{
	struct cf *cf = *state;
	const struct {
		uint32_t qkey, prefix;
	} cases[] = {
		{WIRE_ROCEV2_QKEY ^ 1, 0},
		{0x11111111, 0},
		{WIRE_ROCEV2_QKEY, 1},
		{WIRE_ROCEV2_QKEY, 0x00010000},
		{WIRE_ROCEV2_QKEY, FABRIC_MAX_CHANNELS << 24},
		{WIRE_ROCEV2_QKEY, 0xff000000},
	};
	struct stage *s;

	if (!is_rocev2(cf))
		skip();
	s = stage_hostile(cf);
	for (size_t i = 0; i < SDR_ARRAY_LEN(cases); i++) {
		struct crafted p = craft_ctrl(cf, cases[i].qkey, cases[i].prefix, 64);

		inject(s, &p);
		expect_counter(s, SDR_CTR_rx_malformed, 1);
	}
	assert_int_equal(cf->end[CF_B].nctrl, 0);
	stage_free(s);
}

const struct CMUnitTest cf_tests_hostile[] = {
	CF_TEST(test_the_crafted_packet_is_good),
	CF_TEST(test_foreign_qpn),
	CF_TEST(test_another_kind_of_qp),
	CF_TEST(test_wrong_key),
	CF_TEST(test_wrong_token),
	CF_TEST(test_every_bit_of_the_trailer),
	CF_TEST(test_truncated_at_every_length),
	CF_TEST(test_every_bit_of_the_head),
	CF_TEST(test_random_bytes),
	CF_TEST(test_nonsense_with_a_valid_trailer),
	CF_TEST(test_slots_beyond_the_last),
	CF_TEST(test_bad_neighbours),
	CF_TEST(test_control_that_is_none),
	CF_TEST(test_control_with_a_wrong_key_or_channel),
};
const size_t cf_ntests_hostile = SDR_ARRAY_LEN(cf_tests_hostile);

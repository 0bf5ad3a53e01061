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
		assert_int_equal(now.ch[i].newest_psn, s->before.ch[i].newest_psn);
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

static void seal(struct crafted *p, size_t unsealed, uint64_t token)
{
	struct protect_packet whole = {.hdr = p->bytes, .hdr_len = unsealed};
	struct protect_key key;

	protect_checksum_key(&key, token);
	protect_seal(&key, &whole, p->bytes + unsealed);
	p->len = unsealed + PROTECT_TRAILER_BYTES;
}

/* A data packet that says it has `said` bytes and carries `len`. */
static struct crafted craft(const struct cf *cf, uint32_t message, uint64_t offset, uint32_t said,
			    uint32_t len)
{
	const struct fabric_local *to = &cf->end[CF_B].local;
	struct wire_data_template tmpl;
	struct crafted p = {.len = 0};

	wire_data_template_sdr(&tmpl, to->qpn, message, 0x1234);
	wire_data_put(p.bytes, &tmpl, 77, offset, said);
	memset(p.bytes + WIRE_DATA_HDR_BYTES, 0xee, len);
	seal(&p, WIRE_DATA_HDR_BYTES + len + wire_pad_bytes(len), to->token);
	return p;
}

static struct crafted craft_good(const struct cf *cf)
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

	put_be24(p.bytes + 5, cf->end[CF_B].local.qpn ^ 0x10);
	seal(&p, p.len - PROTECT_TRAILER_BYTES, cf->end[CF_B].local.token);
	inject(s, &p);
	expect_counter(s, SDR_CTR_rx_unknown_qp, 1);
	put_be24(p.bytes + 5, cf->end[CF_A].local.qpn);
	seal(&p, p.len - PROTECT_TRAILER_BYTES, cf->end[CF_A].local.token);
	inject(s, &p);
	expect_counter(s, SDR_CTR_rx_unknown_qp, 1);
	stage_free(s);
}

static void test_wrong_token(void **state)
{
	struct cf *cf = *state;
	struct stage *s = stage_hostile(cf);
	struct crafted p = craft_good(cf);

	seal(&p, p.len - PROTECT_TRAILER_BYTES, cf->end[CF_B].local.token ^ 1);
	inject(s, &p);
	expect_counter(s, SDR_CTR_rx_protection, 1);
	seal(&p, p.len - PROTECT_TRAILER_BYTES, cf->end[CF_A].local.token);
	inject(s, &p);
	expect_counter(s, SDR_CTR_rx_protection, 1);
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

		p.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		inject(s, &p);
		if (++n % 32 == 0)
			expect_refused(s, n);
	}
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

/* Verified, so from the peer, but wrong. */
static void test_nonsense_with_a_valid_trailer(void **state)
{
	struct cf *cf = *state;
	const uint32_t full = cf->payload;
	const struct {
		enum sdr_counter counter;
		uint32_t message;
		uint64_t offset;
		uint32_t said, len;
	} cases[] = {
		{SDR_CTR_rx_late, MESSAGE + 1, 0, full, full},
		{SDR_CTR_rx_late, MESSAGE + CF_SLOTS, 0, full, full},
		{SDR_CTR_rx_late, MESSAGE + 0x80000000u, 0, full, full},
		{SDR_CTR_rx_range, MESSAGE, 1, full, full},
		{SDR_CTR_rx_range, MESSAGE, full - 1, full, full},
		{SDR_CTR_rx_range, MESSAGE, NPKTS * (uint64_t)full, full, full},
		{SDR_CTR_rx_range, MESSAGE, NPKTS * (uint64_t)full, 0, 0},
		{SDR_CTR_rx_range, MESSAGE, (NPKTS - 1) * (uint64_t)full, full, full},
		{SDR_CTR_rx_range, MESSAGE, (NPKTS - 1) * (uint64_t)full, full - 2, full - 2},
		{SDR_CTR_rx_range, MESSAGE, 0, full + 1, full + 1},
		{SDR_CTR_rx_range, MESSAGE, (UINT64_C(1) << 32) * full, full, full},
		{SDR_CTR_rx_range, MESSAGE, UINT64_C(1) << 63, full, full},
		{SDR_CTR_rx_malformed, MESSAGE, UINT64_MAX - 1, full, full},
		{SDR_CTR_rx_malformed, MESSAGE, 0, full, full - 4},
		{SDR_CTR_rx_malformed, MESSAGE, 0, full - 4, full},
		{SDR_CTR_rx_malformed, MESSAGE, 0, 0, full},
		{SDR_CTR_rx_malformed, MESSAGE, 0, UINT32_MAX - 3, full},
	};
	struct stage *s = stage_hostile(cf);

	for (size_t i = 0; i < SDR_ARRAY_LEN(cases); i++) {
		struct crafted p =
			craft(cf, cases[i].message, cases[i].offset, cases[i].said, cases[i].len);

		inject(s, &p);
		expect_counter(s, cases[i].counter, 1);
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

static void test_control_that_is_none(void **state)
{
	struct cf *cf = *state;
	struct stage *s = stage_hostile(cf);
	const struct fabric_local *to = &cf->end[CF_B].local;
	const struct wire_ctrl_header header = {.dest_qpn = to->qpn, .src_qpn = 9, .psn = 5};
	struct crafted p = {.len = 0};
	size_t whole;

	/* Longer than any. */
	wire_ctrl_put_header(p.bytes, &header, FABRIC_CTRL_MAX + 4);
	seal(&p, WIRE_CTRL_HDR_BYTES + FABRIC_CTRL_MAX + 4, to->token);
	inject(s, &p);
	expect_counter(s, SDR_CTR_rx_malformed, 1);
	/* With somebody else's token, and cut short. */
	wire_ctrl_put_header(p.bytes, &header, 64);
	seal(&p, WIRE_CTRL_HDR_BYTES + 64, to->token ^ 1);
	inject(s, &p);
	expect_counter(s, SDR_CTR_rx_protection, 1);
	seal(&p, WIRE_CTRL_HDR_BYTES + 64, to->token);
	whole = p.len;
	for (p.len = 0; p.len < whole; p.len++)
		inject(s, &p);
	expect_refused(s, whole);
	assert_int_equal(cf->end[CF_B].nctrl, 0);
	stage_free(s);
}

const struct CMUnitTest cf_tests_hostile[] = {
	CF_TEST(test_the_crafted_packet_is_good),
	CF_TEST(test_foreign_qpn),
	CF_TEST(test_wrong_token),
	CF_TEST(test_truncated_at_every_length),
	CF_TEST(test_every_bit_of_the_head),
	CF_TEST(test_random_bytes),
	CF_TEST(test_nonsense_with_a_valid_trailer),
	CF_TEST(test_bad_neighbours),
	CF_TEST(test_control_that_is_none),
};
const size_t cf_ntests_hostile = SDR_ARRAY_LEN(cf_tests_hostile);

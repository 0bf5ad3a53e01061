/* SPDX-License-Identifier: Apache-2.0 */
/* What shall happen: bytes land, bits are set, control arrives, facts add up. */
#include "fabric/conformance_int.h"

static struct cf_mem random_mem(struct cf *cf, size_t len)
{
	struct cf_mem m;

	cf_mem_make(&m, len);
	cf_random(cf, m.base, len);
	return m;
}

/* One message of len bytes into a receive of room bytes, in runs; all that rx says of it. */
static void check_message(struct cf *cf, uint32_t message, size_t len, size_t room, uint32_t run)
{
	struct cf_mem from = random_mem(cf, len);
	struct cf_recv r;
	uint32_t npkts;
	uint64_t bytes;

	cf_recv_make(cf, &r, message, room);
	cf_send(cf, &r, message, len ? from.base : NULL, len, run);
	assert_true(rx_end(rx_slot_of(&r.end->table, message), &npkts, &bytes) ||
		    len % cf->payload == 0);
	if (len % cf->payload || len == room) {
		assert_int_equal(bytes, len);
		assert_int_equal(npkts, u64_max(1, u64_div_up(len, cf->payload)));
	}
	if (len)
		assert_memory_equal(r.mem.base, from.base, len);
	for (size_t i = len; i < room; i++)
		assert_int_equal(r.mem.base[i], 0);
	cf_recv_free(cf, &r);
	cf_mem_free(&from);
}

static bool told(void *arg)
{
	return ((const struct cf_end *)arg)->ready > 0;
}

static void test_a_write_lands(void **state)
{
	struct cf *cf = *state;

	check_message(cf, 0, 200 * (size_t)cf->payload, 200 * (size_t)cf->payload, 32);
	/* A worker's bits may be seen before its event. */
	assert_true(cf_until(cf, told, &cf->end[CF_B]));
	assert_int_equal(cf->end[CF_A].ready, 0);
}

static void test_runs_of_every_length(void **state)
{
	struct cf *cf = *state;

	for (uint32_t n = 1; n <= FABRIC_RUN_MAX; n++)
		check_message(cf, n, n * (size_t)cf->payload - n % 3, n * (size_t)cf->payload, n);
}

/* Runs that do not start at a bitmap word, of the largest packets that the path takes. */
static void test_largest_packets(void **state)
{
	struct cf *cf = *state;
	uint32_t payload = cf->end[CF_A].f->ops->path_payload(cf->end[CF_A].qp);

	assert_true(payload >= cf->payload);
	cf->payload = (uint32_t)u64_min(payload, cf->end[CF_B].caps.max_payload_bytes);
	check_message(cf, 0, 150 * (size_t)cf->payload, 150 * (size_t)cf->payload, 1);
	check_message(cf, 1, 150 * (size_t)cf->payload, 150 * (size_t)cf->payload, 50);
	check_message(cf, 2, FABRIC_RUN_MAX * (size_t)cf->payload,
		      FABRIC_RUN_MAX * (size_t)cf->payload, FABRIC_RUN_MAX);
}

static void test_last_packet_may_be_short(void **state)
{
	struct cf *cf = *state;
	const size_t last[] = {1, 2, 3, 4, 5, cf->payload / 2, cf->payload - 1, cf->payload};
	uint32_t message = 0;

	for (size_t full = 0; full < 3; full++)
		for (size_t i = 0; i < SDR_ARRAY_LEN(last); i++)
			check_message(cf, message++, full * cf->payload + last[i],
				      5 * (size_t)cf->payload, 4);
}

static void test_zero_length_message(void **state)
{
	struct cf *cf = *state;

	check_message(cf, 0, 0, 0, 1);
	for (uint32_t m = 1; m < 4; m++) { /* an end that is known, of a longer receive */
		struct cf_recv r;
		uint32_t npkts;
		uint64_t bytes;

		cf_recv_make(cf, &r, m, 3 * (size_t)cf->payload);
		cf_send(cf, &r, m, NULL, 0, 1);
		assert_true(rx_end(rx_slot_of(&r.end->table, m), &npkts, &bytes));
		assert_int_equal(npkts, 1);
		assert_int_equal(bytes, 0);
		cf_recv_free(cf, &r);
	}
}

struct wait_part {
	const struct cf_recv *r;
	uint32_t first, n;
};

static bool part_there(void *arg)
{
	const struct wait_part *p = arg;

	return cf_recv_has(p->r, p->first, p->n);
}

static void test_packets_in_any_order(void **state)
{
	struct cf *cf = *state;
	size_t len = 129 * (size_t)cf->payload + 7;
	struct cf_mem from = random_mem(cf, len);
	struct cf_recv r;

	cf_recv_make(cf, &r, 3, len);
	for (uint32_t i = r.npkts; i-- > 0;) {
		struct fabric_write w = cf_write(cf, 3, from.base, len, i, 1);
		struct wait_part part = {&r, i, 1};

		w.channel = i % CF_CHANNELS;
		cf_post(cf, &w);
		assert_true(cf_until(cf, part_there, &part));
		assert_int_equal(cf_recv_has(&r, 0, r.npkts), i == 0);
	}
	assert_memory_equal(r.mem.base, from.base, len);
	cf_recv_free(cf, &r);
	cf_mem_free(&from);
}

static void test_messages_at_once(void **state)
{
	struct cf *cf = *state;
	/* As many packets as the immediate may be spread over, and more. */
	const uint32_t npkts = RX_MAX_IMM_FRAGS + 4;
	size_t len = npkts * (size_t)cf->payload - 1;
	struct cf_mem from[8];
	struct cf_recv r[8];

	for (uint32_t m = 0; m < 8; m++) {
		from[m] = random_mem(cf, len);
		cf_recv_make(cf, &r[m], 1000 + m, len);
	}
	for (uint32_t first = 0; first < npkts; first += 2)
		for (uint32_t m = 0; m < 8; m++) {
			struct fabric_write w = cf_write(cf, 1000 + m, from[m].base, len, first, 2);

			w.channel = (m + first / 2) % CF_CHANNELS;
			w.imm = 0xabc00000 + m;
			cf_post(cf, &w);
			cf_pump(cf);
		}
	for (uint32_t m = 0; m < 8; m++) {
		struct wait_part part = {&r[m], 0, npkts};
		uint32_t imm;

		assert_true(cf_until(cf, part_there, &part));
		assert_memory_equal(r[m].mem.base, from[m].base, len);
		assert_true(rx_imm_get(rx_slot_of(&r[m].end->table, 1000 + m), &imm));
		assert_int_equal(imm, 0xabc00000 + m);
	}
	for (uint32_t m = 0; m < 8; m++) {
		cf_recv_free(cf, &r[m]);
		cf_mem_free(&from[m]);
	}
}

struct wait_dup {
	const struct cf_end *end;
	uint64_t want;
};

static bool duplicates_there(void *arg)
{
	const struct wait_dup *d = arg;
	struct cf_counts c;

	cf_counts_get(d->end, &c);
	return c.ch[0].duplicate_pkts + c.ch[1].duplicate_pkts >= d->want;
}

static void test_duplicates_count_once_and_change_nothing(void **state)
{
	struct cf *cf = *state;
	size_t len = 8 * (size_t)cf->payload;
	struct cf_mem from = random_mem(cf, len);
	struct wait_dup dup = {&cf->end[CF_B], 8};
	struct fabric_write w;
	struct cf_counts c;
	struct cf_recv r;

	cf_recv_make(cf, &r, 0, len);
	cf_send(cf, &r, 0, from.base, len, 8);
	memset(r.mem.base, 0x5a, len); /* the receiver uses what has come */
	w = cf_write(cf, 0, from.base, len, 0, 8);
	w.channel = 1;
	cf_post(cf, &w);
	assert_true(cf_until(cf, duplicates_there, &dup));
	cf_settle(cf);
	cf_counts_get(&cf->end[CF_B], &c);
	assert_int_equal(c.ch[0].received_pkts, 8);
	assert_int_equal(c.ch[1].received_pkts, 0);
	assert_int_equal(c.ch[0].duplicate_pkts, 0);
	assert_int_equal(c.ch[1].duplicate_pkts, 8);
	assert_int_equal(c.ctr[SDR_CTR_rx_duplicate], 8);
	assert_int_equal(c.ctr[SDR_CTR_rx_pkts], 8);
	if (cf_sees_psn(&cf->end[CF_B])) {
		assert_int_equal(c.ch[1].newest_psn, (w.first_psn + 7) & 0xffffff);
	} else {
		assert_true(c.ch[1].packet_valid);
		assert_int_equal(c.ch[1].newest_message, 0);
		assert_int_equal(c.ch[1].newest_packet, 7);
	}
	if (cf->end[CF_B].caps.flags & FABRIC_CAP_NO_REWRITE)
		for (size_t i = 0; i < len; i++)
			assert_int_equal(r.mem.base[i], 0x5a);
	cf_recv_free(cf, &r);
	cf_mem_free(&from);
}

/* rocev2: zero-length packets past the end carry the rest of an immediate, and were sent. */
static void test_packets_past_the_end_count(void **state)
{
	struct cf *cf = *state;
	size_t len = 2 * (size_t)cf->payload;
	struct cf_mem from = random_mem(cf, len);
	struct wait_dup dup = {&cf->end[CF_B], 2};
	struct cf_counts c;
	struct cf_recv r;

	if (cf->imm_frags == 1)
		skip();
	cf_recv_make(cf, &r, 0, len);
	cf_send(cf, &r, 0, from.base, len, 2);
	for (uint32_t i = 0; i < 4; i++) {
		struct fabric_write w = cf_write(cf, 0, NULL, len + cf->payload, 2, 1);

		w.offset = (2 + i % 2) * (uint64_t)cf->payload;
		w.last_bytes = 0;
		cf_post(cf, &w);
	}
	assert_true(cf_until(cf, duplicates_there, &dup));
	cf_settle(cf);
	cf_counts_get(&cf->end[CF_B], &c);
	assert_int_equal(c.ch[0].received_pkts + c.ch[1].received_pkts, 4);
	assert_int_equal(c.ctr[SDR_CTR_rx_pkts], 4);
	assert_int_equal(c.ctr[SDR_CTR_rx_duplicate], 2);
	assert_int_equal(c.ch[0].bad_pkts + c.ch[1].bad_pkts, 0);
	cf_recv_free(cf, &r);
	cf_mem_free(&from);
}

static void test_facts_add_up(void **state)
{
	struct cf *cf = *state;
	size_t len = 48 * (size_t)cf->payload - 5;
	struct cf_mem from = random_mem(cf, len);
	struct cf_counts a0, a, b;
	uint32_t newest[CF_CHANNELS] = {0}, expected[CF_CHANNELS];
	struct wait_part part;
	struct cf_recv r;

	cf_counts_get(&cf->end[CF_A], &a0);
	for (uint32_t i = 0; i < CF_CHANNELS; i++)
		expected[i] =
			(cf->end[CF_A].local.start_psn + (uint32_t)a0.ch[i].sent_pkts) & 0xffffff;
	cf_recv_make(cf, &r, 9, len);
	part = (struct wait_part){&r, 0, 48};
	for (uint32_t first = 0; first < 48; first += 8) {
		struct fabric_write w = cf_write(cf, 9, from.base, len, first, 8);

		w.channel = first / 8 % CF_CHANNELS;
		cf_post(cf, &w);
		assert_int_equal(w.first_psn, expected[w.channel]);
		expected[w.channel] = (expected[w.channel] + 8) & 0xffffff;
		newest[w.channel] = (w.first_psn + 7) & 0xffffff;
		cf_pump(cf);
	}
	assert_true(cf_until(cf, part_there, &part));
	cf_settle(cf);
	cf_counts_get(&cf->end[CF_A], &a);
	cf_counts_get(&cf->end[CF_B], &b);
	for (uint32_t i = 0; i < CF_CHANNELS; i++) {
		assert_int_equal(a.ch[i].sent_pkts - a0.ch[i].sent_pkts, 24);
		assert_int_equal(b.ch[i].received_pkts, 24);
		assert_int_equal(b.ch[i].psn_valid, cf_sees_psn(&cf->end[CF_B]));
		if (b.ch[i].psn_valid) {
			assert_int_equal(b.ch[i].newest_psn, newest[i]);
		} else {
			assert_true(b.ch[i].packet_valid);
			assert_int_equal(b.ch[i].newest_message, 9);
			assert_int_equal(b.ch[i].newest_packet, i == 0 ? 39 : 47);
		}
		assert_in_range(b.ch[i].newest_age_ns, 1, CF_PATIENCE_NS + 2 * cf->env->settle_ns);
		assert_int_equal(b.ch[i].duplicate_pkts + b.ch[i].late_pkts + b.ch[i].bad_pkts, 0);
		assert_false(a.ch[i].psn_valid);
	}
	assert_int_equal(a.ctr[SDR_CTR_tx_pkts], 48);
	assert_int_equal(a.ctr[SDR_CTR_tx_bytes], len);
	assert_int_equal(b.ctr[SDR_CTR_rx_pkts], 48);
	assert_int_equal(b.ctr[SDR_CTR_rx_bytes], len);
	cf_recv_free(cf, &r);
	cf_mem_free(&from);
}

struct wait_ctrl {
	const struct cf_end *end;
	unsigned int n;
};

static bool ctrl_there(void *arg)
{
	const struct wait_ctrl *w = arg;

	return w->end->nctrl >= w->n;
}

static void send_ctrl(struct cf *cf, int from, uint32_t channel, const void *data, size_t len)
{
	struct cf_end *end = &cf->end[from];
	int rc;

	while ((rc = end->f->ops->ctrl(end->qp, channel, 0, data, len)) == -EAGAIN)
		cf_pump(cf);
	assert_int_equal(rc, 0);
}

static void test_control_arrives_intact(void **state)
{
	struct cf *cf = *state;
	const uint32_t most = cf->end[CF_A].caps.max_ctrl_bytes;
	uint8_t data[FABRIC_CTRL_MAX + 1];

	for (int from = 0; from < 2; from++) {
		struct cf_end *to = &cf->end[!from];
		struct wait_ctrl wait = {to, 0};

		for (uint32_t len = 0; len <= most; len += len > 70 ? 14 : 1) {
			const struct cf_ctrl *c = &to->ctrl[wait.n % CF_CTRL_LOG];
			uint32_t channel = len / 2 % CF_CHANNELS;

			if (len > most - 13)
				len = most;
			cf_random(cf, data, len);
			wait.n++;
			send_ctrl(cf, from, channel, data, len);
			assert_true(cf_until(cf, ctrl_there, &wait));
			assert_int_equal(c->len, len);
			assert_memory_equal(c->data, data, len);
			assert_int_equal(c->channel, channel);
			assert_int_equal(c->path, 0);
			assert_in_range(c->age_ns, 0, CF_PATIENCE_NS);
		}
		assert_int_equal(to->nctrl, wait.n);
	}
	assert_true(cf->end[CF_A].f->ops->ctrl(cf->end[CF_A].qp, 0, 0, data, most + 1) < 0);
	assert_true(cf->end[CF_A].f->ops->ctrl(cf->end[CF_A].qp, CF_CHANNELS, 0, data, 1) < 0);
}

static void test_control_has_the_channels_psn(void **state)
{
	struct cf *cf = *state;
	struct wait_ctrl wait = {&cf->end[CF_B], 2};
	const struct cf_ctrl *c = cf->end[CF_B].ctrl;
	struct cf_counts before, after;

	cf_counts_get(&cf->end[CF_A], &before);
	send_ctrl(cf, CF_A, 1, "x", 1);
	send_ctrl(cf, CF_A, 1, "y", 1);
	assert_true(cf_until(cf, ctrl_there, &wait));
	if (cf_sees_psn(&cf->end[CF_B]))
		assert_int_equal((c[1].psn - c[0].psn) & 0xffffff, 1);
	cf_counts_get(&cf->end[CF_A], &after);
	assert_int_equal(after.ch[1].sent_pkts - before.ch[1].sent_pkts, 2);
	assert_int_equal(after.ctr[SDR_CTR_tx_ctrl] - before.ctr[SDR_CTR_tx_ctrl], 2);
}

static void test_bad_posts_are_refused(void **state)
{
	struct cf *cf = *state;
	struct fabric *f = cf->end[CF_A].f;
	uint8_t byte[1] = {0};
	const struct fabric_write good = {.qp = cf->end[CF_A].qp,
					  .addr = byte,
					  .payload_bytes = cf->payload,
					  .last_bytes = 1,
					  .count = 1};
	struct fabric_write w = good;
	struct cf_counts before, after;

	cf_counts_get(&cf->end[CF_A], &before);
	w.count = 0;
	assert_int_equal(f->ops->post(f, &w, 1), -EINVAL);
	w.count = FABRIC_RUN_MAX + 1;
	assert_int_equal(f->ops->post(f, &w, 1), -EINVAL);
	w = good;
	w.channel = CF_CHANNELS;
	assert_int_equal(f->ops->post(f, &w, 1), -EINVAL);
	w = good;
	w.last_bytes = cf->payload + 1;
	assert_int_equal(f->ops->post(f, &w, 1), -EINVAL);
	w = good;
	w.payload_bytes = cf->end[CF_A].caps.max_payload_bytes + 1;
	assert_int_equal(f->ops->post(f, &w, 1), -EMSGSIZE);
	assert_int_equal(f->ops->post(f, &w, 0), 0);
	cf_counts_get(&cf->end[CF_A], &after);
	assert_int_equal(after.ctr[SDR_CTR_tx_pkts], before.ctr[SDR_CTR_tx_pkts]);
}

static void test_a_batch_stops_at_the_first_bad_run(void **state)
{
	struct cf *cf = *state;
	struct fabric *f = cf->end[CF_A].f;
	struct fabric_write w[3];
	struct cf_recv r;
	uint8_t *from = calloc(3, cf->payload);
	struct wait_part part = {&r, 0, 1};

	assert_non_null(from);
	cf_recv_make(cf, &r, 0, 3 * (size_t)cf->payload);
	for (uint32_t i = 0; i < 3; i++)
		w[i] = cf_write(cf, 0, from, 3 * (size_t)cf->payload, i, 1);
	w[1].channel = CF_CHANNELS;
	assert_int_equal(f->ops->post(f, w, 3), 1);
	assert_true(cf_until(cf, part_there, &part));
	cf_settle(cf);
	assert_int_equal(cf_recv_count(&r), 1);
	cf_recv_free(cf, &r);
	free(from);
}

static void test_unconnected(void **state)
{
	struct cf *cf = *state;
	struct fabric *f = cf->end[CF_A].f;
	struct fabric_qp_attr attr = {.channels = 1};
	struct fabric_channel_facts facts;
	struct fabric_write w = {.payload_bytes = 1, .last_bytes = 0, .count = 1};
	struct fabric_bind b = {.rx = {.payload = 1, .imm_frags = 1}};
	struct fabric_key key;
	struct fabric_local local;

	assert_int_equal(f->ops->qp_create(f, &attr, &w.qp), 0);
	f->ops->qp_local(w.qp, &local);
	assert_int_not_equal(local.qpn, cf->end[CF_A].local.qpn);
	assert_int_equal(f->ops->post(f, &w, 1), -ENOTCONN);
	assert_int_equal(f->ops->ctrl(w.qp, 0, 0, "x", 1), -ENOTCONN);
	f->ops->channel_facts(w.qp, 0, &facts);
	assert_false(facts.up);
	assert_true(f->ops->bind(w.qp, 0, &b, &key) < 0); /* no table yet */
	f->ops->fence_begin(w.qp, 0);
	assert_int_equal(f->ops->fence_done(w.qp, 0), 1);
	f->ops->qp_destroy(w.qp);
	attr.channels = 0;
	assert_true(f->ops->qp_create(f, &attr, &w.qp) < 0);
	attr.channels = FABRIC_MAX_CHANNELS + 1;
	assert_true(f->ops->qp_create(f, &attr, &w.qp) < 0);
}

static void test_names_and_small_things(void **state)
{
	struct cf *cf = *state;

	for (int e = 0; e < 2; e++) {
		struct fabric *f = cf->end[e].f;
		char text[256] = "?";
		const struct fabric_mr_attr memory = {.addr = text, .len = sizeof(text)};
		void *mr = NULL;

		assert_non_null(f->ops->name);
		f->ops->path_name(cf->end[e].qp, 0, text, sizeof(text));
		assert_true(strlen(text) > 0 && text[0] != '?');
		text[0] = '?';
		f->ops->path_name(cf->end[e].qp, 0, text, 1);
		assert_int_equal(text[0], 0);
		f->ops->advice(f, text, sizeof(text));
		assert_true(strlen(text) < sizeof(text));
		assert_int_equal(f->ops->path_use(cf->end[e].qp, 0, 0), 0);
		assert_true(f->ops->path_use(cf->end[e].qp, CF_CHANNELS, 0) < 0);
		assert_int_equal(f->ops->mr_reg(f, &memory, &mr), 0);
		f->ops->mr_dereg(f, mr);
		f->ops->wake(f);
		assert_true(f->ops->wait(f, f->ops->now_ns(f)) >= 0);
		if (cf->end[e].caps.flags & FABRIC_CAP_VIRTUAL_TIME)
			assert_int_equal(f->ops->fd(f), -ENOTSUP);
		else
			assert_true(f->ops->fd(f) >= 0);
	}
}

const struct CMUnitTest cf_tests_write[] = {
	CF_TEST(test_a_write_lands),
	CF_TEST(test_runs_of_every_length),
	CF_TEST(test_largest_packets),
	CF_TEST(test_last_packet_may_be_short),
	CF_TEST(test_zero_length_message),
	CF_TEST(test_packets_in_any_order),
	CF_TEST(test_messages_at_once),
	CF_TEST(test_duplicates_count_once_and_change_nothing),
	CF_TEST(test_packets_past_the_end_count),
	CF_TEST(test_facts_add_up),
	CF_TEST(test_control_arrives_intact),
	CF_TEST(test_control_has_the_channels_psn),
	CF_TEST(test_bad_posts_are_refused),
	CF_TEST(test_a_batch_stops_at_the_first_bad_run),
	CF_TEST(test_unconnected),
	CF_TEST(test_names_and_small_things),
};
const size_t cf_ntests_write = SDR_ARRAY_LEN(cf_tests_write);

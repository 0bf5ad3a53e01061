/* SPDX-License-Identifier: Apache-2.0 */
/* The suite's fixture. Contract: conformance_int.h. */
#include "fabric/conformance_int.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define CANARY 0xa5

static const struct conformance_env *the_env; /* cmocka hands tests no argument of ours */

/* Memory. */

void cf_mem_make(struct cf_mem *m, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t data = (len / page + 1) * page;

	*m = (struct cf_mem){.map_len = data + 2 * page, .len = len};
	m->map = mmap(NULL, m->map_len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(m->map != MAP_FAILED);
	assert_int_equal(mprotect(m->map + page, data, PROT_READ | PROT_WRITE), 0);
	m->base = m->map + page + data - len;
	memset(m->map + page, CANARY, data - len);
}

void cf_mem_check(const struct cf_mem *m)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (const uint8_t *p = m->map + page; p < m->base; p++)
		if (*p != CANARY)
			fail_msg("a byte %zu before the buffer was written", (size_t)(m->base - p));
}

void cf_mem_free(struct cf_mem *m)
{
	cf_mem_check(m);
	munmap(m->map, m->map_len);
}

void cf_random(struct cf *cf, void *buf, size_t len)
{
	uint8_t *bytes = buf;

	for (size_t i = 0; i < len; i += 8) {
		uint64_t word = rng_next(&cf->rng);

		memcpy(bytes + i, &word, u64_min(8, len - i));
	}
}

/* Events. */

static void log_ctrl(struct cf_end *end, const struct fabric_event *ev)
{
	struct cf_ctrl *c = &end->ctrl[end->nctrl++ % CF_CTRL_LOG];

	assert_true(ev->len <= FABRIC_CTRL_MAX);
	c->channel = ev->channel;
	c->path = ev->path;
	c->psn = ev->psn;
	c->len = ev->len;
	c->age_ns = ev->age_ns;
	memcpy(c->data, ev->data, ev->len);
}

static void take_event(struct cf_end *end, const struct fabric_event *ev)
{
	if (ev->type == FABRIC_EV_WRITABLE) {
		assert_null(ev->cookie);
		end->writable++;
		return;
	}
	assert_ptr_equal(ev->cookie, end);
	if (ev->type == FABRIC_EV_CTRL) {
		log_ctrl(end, ev);
	} else if (ev->type == FABRIC_EV_READY) {
		end->ready++;
	} else if (ev->type == FABRIC_EV_LATE) {
		end->late++;
		end->late_message = ev->message;
	}
}

void cf_pump(struct cf *cf)
{
	struct fabric_event ev[8];

	cf->env->pass(cf->env->arg);
	for (int e = 0; e < 2; e++) {
		struct cf_end *end = &cf->end[e];
		int n;

		do {
			n = end->f->ops->poll(end->f, ev, SDR_ARRAY_LEN(ev));
			assert_in_range(n, 0, SDR_ARRAY_LEN(ev));
			for (int i = 0; i < n; i++)
				take_event(end, &ev[i]);
		} while (n == (int)SDR_ARRAY_LEN(ev));
	}
}

static uint64_t now_ns(const struct cf *cf)
{
	return cf->end[CF_A].f->ops->now_ns(cf->end[CF_A].f);
}

bool cf_until(struct cf *cf, cf_pred *pred, void *arg)
{
	uint64_t deadline = now_ns(cf) + CF_PATIENCE_NS;

	while (!pred(arg)) {
		if (now_ns(cf) > deadline)
			return false;
		cf_pump(cf);
	}
	return true;
}

void cf_settle(struct cf *cf)
{
	uint64_t deadline = now_ns(cf) + cf->env->settle_ns;

	while (now_ns(cf) <= deadline)
		cf_pump(cf);
}

/* Receives. */

static void bind_recv(struct cf *cf, struct cf_recv *r)
{
	struct fabric_bind b = {.rx = {.base = r->mem.base,
				       .len = r->mem.len,
				       .payload = cf->payload,
				       .chunk_shift = 3,
				       .imm_frags = (uint8_t)cf->imm_frags,
				       .words = r->words}};
	int to = r->end == &cf->end[CF_B] ? CF_B : CF_A;

	assert_int_equal(
		r->end->f->ops->bind(r->end->qp, r->message, &b, cf_key(cf, to, r->message)), 0);
}

void cf_recv_make(struct cf *cf, struct cf_recv *r, uint32_t message, size_t len)
{
	size_t words = rx_bind_words(len, cf->payload, 3);

	*r = (struct cf_recv){.message = message, .end = &cf->end[CF_B]};
	r->npkts = (uint32_t)u64_max(1, u64_div_up(len, cf->payload));
	cf_mem_make(&r->mem, len);
	memset(r->mem.base, 0, len);
	r->words = calloc(words + 1, sizeof(*r->words));
	assert_non_null(r->words);
	bind_recv(cf, r);
}

void cf_recv_again(struct cf *cf, struct cf_recv *r, uint32_t message)
{
	r->message = message;
	bind_recv(cf, r);
}

static bool fenced(void *arg)
{
	const struct cf_recv *r = arg;

	return r->end->f->ops->fence_done(r->end->qp, r->message) == 1;
}

void cf_recv_fence(struct cf *cf, const struct cf_recv *r)
{
	struct cf_recv copy = *r;

	r->end->f->ops->fence_begin(r->end->qp, r->message);
	assert_true(cf_until(cf, fenced, &copy));
}

void cf_recv_free(struct cf *cf, struct cf_recv *r)
{
	cf_recv_fence(cf, r);
	cf_mem_free(&r->mem);
	free(r->words);
}

bool cf_recv_has(const struct cf_recv *r, uint32_t first, uint32_t n)
{
	const struct rx_slot *slot = rx_slot_of(&r->end->table, r->message);
	uint64_t bits;

	for (uint32_t done = 0; done < n; done += 64) {
		uint32_t part = (uint32_t)u64_min(64, n - done);

		rx_bits_get(slot, first + done, part, &bits);
		if (bits != bits_low(part))
			return false;
	}
	return true;
}

uint32_t cf_recv_count(const struct cf_recv *r)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->npkts; i++)
		n += cf_recv_has(r, i, 1);
	return n;
}

/* Sends. */

struct fabric_write cf_write(struct cf *cf, uint32_t message, const void *base, size_t len,
			     uint32_t first, uint32_t n)
{
	uint64_t offset = (uint64_t)first * cf->payload;
	uint64_t left = len - offset - (uint64_t)(n - 1) * cf->payload;

	return (struct fabric_write){
		.qp = cf->end[CF_A].qp,
		.message = message,
		.addr = base ? (const uint8_t *)base + offset : NULL,
		.offset = offset,
		.payload_bytes = cf->payload,
		.last_bytes = (uint32_t)u64_min(left, cf->payload),
		.count = n,
		.key = *cf_key(cf, CF_B, message),
	};
}

void cf_post(struct cf *cf, struct fabric_write *w)
{
	struct fabric *f = w->qp->fabric;
	uint64_t deadline = now_ns(cf) + CF_PATIENCE_NS;
	int n;

	while ((n = f->ops->post(f, w, 1)) == 0) {
		assert_true(now_ns(cf) < deadline);
		cf_pump(cf);
	}
	assert_int_equal(n, 1);
}

struct part {
	const struct cf_recv *r;
	uint32_t first, n;
};

static bool part_there(void *arg)
{
	const struct part *p = arg;

	return cf_recv_has(p->r, p->first, p->n);
}

void cf_send(struct cf *cf, const struct cf_recv *r, uint32_t message, const void *base, size_t len,
	     uint32_t run)
{
	uint32_t npkts = (uint32_t)u64_max(1, u64_div_up(len, cf->payload));
	uint32_t turn = 0;

	for (uint32_t first = 0; first < npkts; first += run) {
		struct part part = {r, first, (uint32_t)u64_min(run, npkts - first)};
		struct fabric_write w = cf_write(cf, message, base, len, first, part.n);

		w.channel = turn++ % CF_CHANNELS;
		cf_post(cf, &w);
		if (!cf_until(cf, part_there, &part))
			fail_msg("packets %u .. %u of message %u did not arrive", first,
				 first + part.n - 1, message);
	}
}

void cf_counts_get(const struct cf_end *end, struct cf_counts *out)
{
	memset(out, 0, sizeof(*out));
	end->f->ops->counters(end->f, out->ctr);
	for (uint32_t i = 0; i < CF_CHANNELS; i++)
		end->f->ops->channel_facts(end->qp, i, &out->ch[i]);
}

/* Setting up. */

static uint32_t key_mask(const struct fabric_caps *caps)
{
	return caps->mode == WIRE_ROCEV2 ? CF_SLOTS * caps->generations - 1 : UINT32_MAX;
}

static void make_end(struct cf *cf, int which)
{
	struct cf_end *end = &cf->end[which];
	const struct fabric_ops *ops = end->f->ops;
	struct fabric_qp_attr attr = {
		.channels = CF_CHANNELS,
		/* The active end gets its table where a test wants to receive there. */
		.table = which == CF_B ? &end->table : NULL,
		.cookie = end};
	uint32_t nworkers;

	ops->caps(end->f, &end->caps);
	assert_true(end->caps.max_channels >= CF_CHANNELS);
	assert_true(end->caps.workers <= FABRIC_MAX_WORKERS);
	nworkers = end->caps.workers ? end->caps.workers : 1;
	end->slots = aligned_alloc(64, CF_SLOTS * sizeof(*end->slots));
	end->workers = aligned_alloc(64, nworkers * sizeof(*end->workers));
	end->ctrl = calloc(CF_CTRL_LOG, sizeof(*end->ctrl));
	assert_true(end->slots && end->workers && end->ctrl);
	memset(end->slots, 0, CF_SLOTS * sizeof(*end->slots));
	for (uint32_t i = 0; i < nworkers; i++)
		rx_worker_init(&end->workers[i]);
	assert_int_equal(rx_table_init(&end->table, end->slots, CF_SLOTS, key_mask(&end->caps),
				       end->workers, nworkers,
				       end->caps.workers ? 0 : RX_SINGLE_THREAD),
			 RX_OK);
	assert_int_equal(ops->qp_create(end->f, &attr, &end->qp), 0);
	ops->qp_local(end->qp, &end->local);
	assert_true(end->local.qpn <= 0xffffff && end->local.start_psn <= 0xffffff);
}

static void connect_end(struct cf *cf, int which)
{
	const struct fabric_local *peer = &cf->end[!which].local;
	struct fabric_peer p = {
		.qpn = peer->qpn,
		.token = peer->token,
		.start_psn = peer->start_psn,
		.payload_bytes = cf->payload,
		.active = which == CF_A,
		.channels = CF_CHANNELS,
		.generations = cf->generations,
		.messages = CF_SLOTS,
	};

	memcpy(p.data_qpn, peer->data_qpn, sizeof(p.data_qpn));
	p.addr = peer->addr;
	if (p.active)
		cf->env->addr(cf->env->arg, &p.addr);
	assert_int_equal(cf->end[which].f->ops->qp_connect(cf->end[which].qp, &p), 0);
}

static bool all_up(void *arg)
{
	struct cf *cf = arg;
	bool up = true;

	for (int e = 0; e < 2; e++) {
		struct cf_counts c;

		cf_counts_get(&cf->end[e], &c);
		for (uint32_t i = 0; i < CF_CHANNELS; i++)
			up &= c.ch[i].up;
	}
	/* The passive end may learn addresses from control datagrams. */
	for (uint32_t i = 0; i < CF_CHANNELS && !up; i++)
		(void)cf->end[CF_A].f->ops->ctrl(cf->end[CF_A].qp, i, 0, "hello", 5);
	return up;
}

/* What a handshake would. */
static void agree(struct cf *cf)
{
	const struct fabric_caps *caps = &cf->end[CF_A].caps;

	assert_int_equal(caps->mode, cf->end[CF_B].caps.mode);
	assert_int_equal(caps->generations, cf->end[CF_B].caps.generations);
	assert_in_range(caps->generations, 1, FABRIC_MAX_GENERATIONS);
	assert_in_range(caps->max_ctrl_bytes, FABRIC_ROCEV2_CTRL_MAX, FABRIC_CTRL_MAX);
	cf->generations = caps->generations;
	cf->imm_frags = 1;
	if (caps->mode == WIRE_ROCEV2) {
		cf->imm_frags = wire_imm_fragments(fabric_imm_split(CF_SLOTS));
		cf->payload = FABRIC_ROCEV2_PAYLOAD_MIN;
	} else {
		cf->payload = (uint32_t)u64_min(cf->payload, 1436);
	}
}

int cf_setup(void **state)
{
	struct cf *cf = calloc(1, sizeof(*cf));
	struct fabric *f[2];

	assert_non_null(cf);
	cf->env = the_env;
	rng_init(&cf->rng, 7);
	assert_int_equal(the_env->open(the_env->arg, f), 0);
	for (int e = 0; e < 2; e++) {
		cf->end[e].f = f[e];
		make_end(cf, e);
	}
	cf->payload = (uint32_t)u64_min(cf->end[CF_A].caps.max_payload_bytes,
					cf->end[CF_B].caps.max_payload_bytes);
	agree(cf);
	connect_end(cf, CF_B);
	connect_end(cf, CF_A);
	assert_true(cf_until(cf, all_up, cf));
	cf_settle(cf);
	for (int e = 0; e < 2; e++)
		cf->end[e].nctrl = 0;
	*state = cf;
	return 0;
}

int cf_teardown(void **state)
{
	struct cf *cf = *state;

	for (int e = 0; e < 2; e++)
		if (cf->end[e].qp)
			cf->end[e].f->ops->qp_destroy(cf->end[e].qp);
	cf->env->close(cf->env->arg);
	for (int e = 0; e < 2; e++) {
		free(cf->end[e].slots);
		free(cf->end[e].workers);
		free(cf->end[e].ctrl);
	}
	free(cf);
	return 0;
}

static int run_group(const char *what, const struct CMUnitTest *tests, size_t n)
{
	char name[128];

	snprintf(name, sizeof(name), "%s: %s", the_env->name, what);
	return _cmocka_run_group_tests(name, tests, n, NULL, NULL);
}

int conformance_run(const struct conformance_env *env)
{
	int failed;

	the_env = env;
	failed = run_group("writes", cf_tests_write, cf_ntests_write);
	failed += run_group("hostile packets", cf_tests_hostile, cf_ntests_hostile);
	failed += run_group("fences", cf_tests_fence, cf_ntests_fence);
	return failed;
}

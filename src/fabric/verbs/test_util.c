/* SPDX-License-Identifier: Apache-2.0 */
/* Contract: test_util.h. */
#include "fabric/verbs/test_util.h"
#include "base/rng.h"
#include <stdio.h>
#include <unistd.h>

const char *tu_device(int end)
{
	const char *name = getenv(end ? "SDR_VM_DEV_B" : "SDR_VM_DEV_A");

	return name && *name ? name : end ? "rxe1" : "rxe0";
}

bool tu_here(void)
{
	struct verbs_port *list;
	int n = verbs_fabric_list(&list);
	bool here = n > 0;

	if (n <= 0)
		printf("skipped: there is no RDMA device here\n");
	for (int end = 0; end < 2 && here; end++) {
		const struct verbs_want want = {.device = tu_device(end)};
		const struct verbs_port *port;
		const struct verbs_gid *gid;
		char why[VERBS_WHY_MAX];

		if (verbs_choose(list, (size_t)n, &want, &port, &gid, why, sizeof(why)) < 0) {
			printf("skipped: %s\n", why);
			here = false;
		}
	}
	verbs_list_free(list);
	return here;
}

struct verbs_fabric *tu_fabric(const struct tu_pair *p, int end)
{
	return verbs_fabric_of(p->end[end].f);
}

struct verbs_qp *tu_qp(const struct tu_pair *p, int end)
{
	return verbs_qp_of(p->end[end].qp);
}

static void make_end(struct tu_pair *p, int which, struct verbs_fabric_attr attr)
{
	struct tu_end *end = &p->end[which];
	struct fabric_qp_attr qp_attr = {.channels = 1, .table = &end->table, .cookie = end};
	char why[VERBS_WHY_MAX];

	attr.device = tu_device(which);
	if (verbs_fabric_open(&attr, &end->f, why, sizeof(why)) != 0)
		fail_msg("%s", why);
	end->slots = aligned_alloc(64, TU_SLOTS * sizeof(*end->slots));
	end->worker = aligned_alloc(64, sizeof(*end->worker));
	assert_true(end->slots && end->worker);
	memset(end->slots, 0, TU_SLOTS * sizeof(*end->slots));
	rx_worker_init(end->worker);
	assert_int_equal(rx_table_init(&end->table, end->slots, TU_SLOTS,
				       TU_SLOTS * FABRIC_MAX_GENERATIONS - 1, end->worker, 1,
				       RX_SINGLE_THREAD),
			 RX_OK);
	assert_int_equal(end->f->ops->qp_create(end->f, &qp_attr, &end->qp), 0);
}

static void connect_end(struct tu_pair *p, int which)
{
	struct fabric_local l;
	struct fabric_peer peer = {.payload_bytes = p->payload,
				   .active = which == 0,
				   .channels = 1,
				   .generations = FABRIC_MAX_GENERATIONS,
				   .messages = TU_SLOTS};

	p->end[!which].f->ops->qp_local(p->end[!which].qp, &l);
	peer.qpn = l.qpn;
	peer.token = l.token;
	peer.start_psn = l.start_psn;
	peer.addr = l.addr;
	memcpy(peer.data_qpn, l.data_qpn, sizeof(peer.data_qpn));
	assert_int_equal(p->end[which].f->ops->qp_connect(p->end[which].qp, &peer), 0);
}

void tu_pair_open(struct tu_pair *p, struct verbs_fabric_attr attr)
{
	memset(p, 0, sizeof(*p));
	make_end(p, 0, attr);
	make_end(p, 1, attr);
	p->payload = (uint32_t)u64_min(tu_fabric(p, 0)->payload, tu_fabric(p, 1)->payload);
	connect_end(p, 1);
	connect_end(p, 0);
}

void tu_pair_close(struct tu_pair *p)
{
	for (int e = 0; e < 2; e++) {
		p->end[e].f->ops->close(p->end[e].f);
		free(p->end[e].slots);
		free(p->end[e].worker);
	}
}

void tu_poll(struct tu_end *end)
{
	struct fabric_event ev[4];
	int n;

	do {
		n = end->f->ops->poll(end->f, ev, (unsigned int)SDR_ARRAY_LEN(ev));
		for (int i = 0; i < n; i++) {
			end->ready += ev[i].type == FABRIC_EV_READY;
			end->writable += ev[i].type == FABRIC_EV_WRITABLE;
			end->ctrl += ev[i].type == FABRIC_EV_CTRL;
		}
	} while (n == (int)SDR_ARRAY_LEN(ev));
}

struct fabric_key tu_bind(struct tu_pair *p, uint32_t message, void *mem, size_t len,
			  uint64_t *words, const void *mr)
{
	struct fabric_bind b = {
		.rx = {.base = mem,
		       .len = len,
		       .payload = p->payload,
		       .imm_frags = (uint8_t)wire_imm_fragments(fabric_imm_split(TU_SLOTS)),
		       .words = words},
		.mr = mr,
	};
	struct fabric_key key;

	assert_int_equal(p->end[1].f->ops->bind(p->end[1].qp, message, &b, &key), 0);
	return key;
}

void tu_fence(struct tu_pair *p, uint32_t message)
{
	uint64_t start_ns = verbs_now_ns();

	p->end[1].f->ops->fence_begin(p->end[1].qp, message);
	while (p->end[1].f->ops->fence_done(p->end[1].qp, message) != 1) {
		assert_true(verbs_now_ns() - start_ns < TU_PATIENCE_NS);
		tu_poll(&p->end[1]);
	}
}

struct fabric_write tu_write(const struct tu_pair *p, uint32_t message, const void *base,
			     uint32_t first, uint32_t count, struct fabric_key key)
{
	uint64_t offset = (uint64_t)first * p->payload;

	return (struct fabric_write){.qp = p->end[0].qp,
				     .message = message,
				     .addr = base ? (const uint8_t *)base + offset : NULL,
				     .offset = offset,
				     .payload_bytes = p->payload,
				     .last_bytes = p->payload,
				     .count = count,
				     .key = key};
}

void tu_post(struct tu_pair *p, struct fabric_write *w)
{
	uint64_t start_ns = verbs_now_ns();
	int n;

	while ((n = p->end[0].f->ops->post(p->end[0].f, w, 1)) == 0) {
		assert_true(verbs_now_ns() - start_ns < TU_PATIENCE_NS);
		tu_poll(&p->end[0]);
	}
	assert_int_equal(n, 1);
}

uint32_t tu_count(const struct tu_pair *p, uint32_t message, uint32_t n)
{
	const struct rx_slot *slot = rx_slot_of(&p->end[1].table, message);
	uint32_t have = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t bit;

		rx_bits_get(slot, i, 1, &bit);
		have += (uint32_t)bit;
	}
	return have;
}

bool tu_arrive(struct tu_pair *p, uint32_t message, uint32_t n)
{
	uint64_t start_ns = verbs_now_ns();

	while (tu_count(p, message, n) < n) {
		if (verbs_now_ns() - start_ns > TU_PATIENCE_NS)
			return false;
		tu_poll(&p->end[0]);
		tu_poll(&p->end[1]);
	}
	return true;
}

void tu_fill(uint8_t *mem, size_t len, uint32_t seed)
{
	struct rng rng;

	rng_init(&rng, seed);
	for (size_t i = 0; i < len; i++)
		mem[i] = (uint8_t)rng_next(&rng);
}

void tu_carries(struct tu_pair *p, uint32_t message)
{
	uint8_t *to = verbs_pages(4096), *from = calloc(1, p->payload);
	struct fabric_key key = tu_bind(p, message, to, p->payload, NULL, NULL);
	uint64_t start_ns = verbs_now_ns();

	tu_fill(from, p->payload, message);
	while (tu_count(p, message, 1) == 0) {
		struct fabric_write w = tu_write(p, message, from, 0, 1, key);

		assert_true(verbs_now_ns() - start_ns < TU_PATIENCE_NS);
		(void)p->end[0].f->ops->post(p->end[0].f, &w, 1);
		for (int i = 0; i < 10; i++) {
			tu_poll(&p->end[0]);
			tu_poll(&p->end[1]);
			usleep(500);
		}
	}
	assert_memory_equal(from, to, p->payload);
	tu_fence(p, message);
	verbs_pages_free(to, 4096);
	free(from);
}

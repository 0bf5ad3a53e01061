/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What fabric/verbs promises against late packets and hostile peers, on two RDMA devices: dead
 * keys, fences under fire, fences of a device that does not let go, immediates and operations
 * that no honest peer sends. The device and its queues: verbs_test.c.
 */
#include "fabric/verbs/test_util.h"
#include "base/rng.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* Keys. */

/* A run at a dead key, on every generation; its slot's next message is not touched. */
static void test_dead_keys(void **state)
{
	struct tu_pair p;
	uint8_t *from, *to = verbs_pages(64 << 10);

	(void)state;
	tu_pair_open(&p, (struct verbs_fabric_attr){.max_payload = 1024});
	from = malloc(8 * 1024);
	assert_non_null(from);
	tu_fill(from, 8 * 1024, 9);
	for (uint32_t m = 2; m < 2 + 8 * TU_SLOTS; m += TU_SLOTS) {
		struct fabric_key old = tu_bind(&p, m, to, 8 * 1024, NULL, NULL), now;
		struct fabric_write late = tu_write(&p, m, from, 0, 8, old);
		struct fabric_write good;

		tu_fence(&p, m);
		now = tu_bind(&p, m + TU_SLOTS, to, 8 * 1024, NULL, NULL);
		memset(to, 0x5a, 8 * 1024);
		tu_post(&p, &late);
		/* Behind it on the same queue pair goes one of another slot. */
		{
			uint8_t *other = to + (32 << 10);
			struct fabric_key key = tu_bind(&p, m + 1, other, 1024, NULL, NULL);

			good = tu_write(&p, m + 1, from, 0, 1, key);
			tu_post(&p, &good);
			assert_true(tu_arrive(&p, m + 1, 1));
			tu_fence(&p, m + 1);
		}
		for (size_t i = 0; i < 8 * 1024; i++)
			assert_int_equal(to[i], 0x5a);
		assert_int_equal(tu_count(&p, m + TU_SLOTS, 8), 0);
		good = tu_write(&p, m + TU_SLOTS, from, 0, 8, now);
		tu_post(&p, &good);
		assert_true(tu_arrive(&p, m + TU_SLOTS, 8));
		assert_memory_equal(from, to, 8 * 1024);
		tu_fence(&p, m + TU_SLOTS);
	}
	assert_int_equal(tu_fabric(&p, 1)->counter[SDR_CTR_rx_late], 0);
	tu_pair_close(&p);
	verbs_pages_free(to, 64 << 10);
	free(from);
}

/*
 * Fences at any moment of a transfer, the memory used for something else at once: what comes
 * later by the old key must not touch it. The suite's storm makes memory inaccessible, which
 * stops a thread but no device.
 */
static void test_fences_in_a_storm(void **state)
{
	const uint32_t n = 60;
	struct tu_pair p;
	uint8_t *from, *to = verbs_pages(64 << 10);
	uint32_t landed = 0;
	struct rng rng;

	(void)state;
	rng_init(&rng, 5);
	tu_pair_open(&p, (struct verbs_fabric_attr){.max_payload = 1024});
	from = malloc(n * 1024);
	assert_non_null(from);
	tu_fill(from, n * 1024, 4);
	for (uint32_t m = 0; m < 150; m++) {
		struct fabric_key key = tu_bind(&p, m, to, n * 1024, NULL, NULL);
		struct fabric_write w;

		memset(to, 0, n * 1024);
		for (uint32_t i = 0; i < 3; i++) {
			w = tu_write(&p, m, from, 0, n, key);
			(void)p.end[0].f->ops->post(p.end[0].f, &w, 1);
			for (uint64_t k = rng_below(&rng, 3); k > 0; k--)
				tu_poll(&p.end[rng_below(&rng, 2)]);
		}
		tu_fence(&p, m);
		for (uint32_t i = 0; i < n; i++) {
			uint64_t bit;

			rx_bits_get(rx_slot_of(&p.end[1].table, m), i, 1, &bit);
			landed += (uint32_t)bit;
			if (bit)
				assert_memory_equal(to + i * 1024, from + i * 1024, 1024);
		}
		memset(to, 0x5a, n * 1024);
		w = tu_write(&p, m, from, 0, n, key);
		(void)p.end[0].f->ops->post(p.end[0].f, &w, 1);
		for (int k = 0; k < 5; k++) {
			tu_poll(&p.end[0]);
			tu_poll(&p.end[1]);
		}
		for (size_t i = 0; i < n * 1024; i++)
			if (to[i] != 0x5a)
				fail_msg("message %u: byte %zu was written after the fence", m, i);
	}
	assert_true(landed > 0);
	tu_carries(&p, 200);
	tu_pair_close(&p);
	verbs_pages_free(to, 64 << 10);
	free(from);
}

/* The device does not let go of a region: the fence holds all the same, and life goes on. */
static int stubborn_unbind(struct verbs_qp *qp, struct verbs_slot *slot)
{
	(void)verbs_keys_rereg.unbind(qp, slot);
	return -EINVAL;
}

static void test_a_fence_by_resetting(void **state)
{
	struct verbs_keys_ops stubborn = verbs_keys_rereg;
	struct tu_pair p;
	uint8_t from[1024] = {7}, *to = verbs_pages(4096);
	struct fabric_write w;

	(void)state;
	tu_pair_open(&p, (struct verbs_fabric_attr){.max_payload = 1024});
	stubborn.unbind = stubborn_unbind;
	tu_fabric(&p, 1)->keys = &stubborn;
	w = tu_write(&p, 0, from, 0, 1, tu_bind(&p, 0, to, 1024, NULL, NULL));
	tu_post(&p, &w);
	assert_true(tu_arrive(&p, 0, 1));
	p.end[1].f->ops->fence_begin(p.end[1].qp, 0);
	assert_int_equal(p.end[1].f->ops->fence_done(p.end[1].qp, 0), 0);
	tu_fence(&p, 0);
	tu_fabric(&p, 1)->keys = &verbs_keys_rereg;
	w = tu_write(&p, 16, from, 0, 1, tu_bind(&p, 16, to, 1024, NULL, NULL));
	tu_post(&p, &w);
	assert_true(tu_arrive(&p, 16, 1));
	w = tu_write(&p, 1, from, 0, 1, tu_bind(&p, 1, to, 1024, NULL, NULL));
	tu_post(&p, &w);
	assert_true(tu_arrive(&p, 1, 1));
	tu_pair_close(&p);
	verbs_pages_free(to, 4096);
}

/* The same where the peer's host cannot be found meanwhile; once it can, life goes on. */
static void test_a_fence_without_a_peer(void **state)
{
	struct verbs_keys_ops stubborn = verbs_keys_rereg;
	struct tu_pair p;
	uint8_t from[1024] = {7}, *to = verbs_pages(4096), gid[16];
	struct verbs_qp *qp;
	uint64_t start_ns;
	struct fabric_write w;

	(void)state;
	tu_pair_open(&p, (struct verbs_fabric_attr){.max_payload = 1024});
	qp = tu_qp(&p, 1);
	stubborn.unbind = stubborn_unbind;
	tu_fabric(&p, 1)->keys = &stubborn;
	(void)tu_bind(&p, 0, to, 1024, NULL, NULL);
	memcpy(gid, qp->peer_gid, sizeof(gid));
	memset(qp->peer_gid + 12, 203, 4); /* a network to which there is no route */
	tu_fence(&p, 0);
	assert_true(qp->dqp[0].dead);
	memcpy(qp->peer_gid, gid, sizeof(gid));
	tu_fabric(&p, 1)->keys = &verbs_keys_rereg;
	start_ns = verbs_now_ns();
	while (qp->dqp[0].dead && verbs_now_ns() - start_ns < TU_PATIENCE_NS)
		tu_poll(&p.end[1]);
	w = tu_write(&p, 1, from, 0, 1, tu_bind(&p, 1, to, 1024, NULL, NULL));
	tu_post(&p, &w);
	assert_true(tu_arrive(&p, 1, 1));
	tu_pair_close(&p);
	verbs_pages_free(to, 4096);
}

/* A peer that lies. */

/* Any work request from end 0's first queue pair, past what our own side would let through. */
static void raw(struct tu_pair *p, enum ibv_wr_opcode opcode, uint32_t imm, uint32_t len,
		struct fabric_key key, uint64_t offset)
{
	struct verbs_bounce *b = &tu_fabric(p, 0)->bounce;
	struct ibv_sge sge = {.addr = (uintptr_t)b->mem, .length = len, .lkey = b->mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.wr_id = verbs_wr_id(VERBS_WR_SEND, 0, 0, VERBS_LIMIT_QPS, 0),
		      .sg_list = &sge,
		      .num_sge = len > 0,
		      .opcode = opcode,
		      .send_flags = IBV_SEND_SIGNALED,
		      .imm_data = htonl(imm),
		      .wr.rdma = {.remote_addr = key.va + offset, .rkey = key.rkey}};

	assert_int_equal(ibv_post_send(tu_qp(p, 0)->dqp[0].qp, &wr, &bad), 0);
	for (int i = 0; i < 20; i++) {
		tu_poll(&p->end[0]);
		tu_poll(&p->end[1]);
		usleep(200);
	}
}

/* Slot and index are the sender's to say: what is out of range sets nothing and hurts nobody. */
static void test_wrong_immediates(void **state)
{
	const struct wire_imm_split *split = fabric_imm_split(TU_SLOTS);
	uint8_t *to = verbs_pages(8192);
	struct fabric_channel_facts facts;
	struct fabric_key key;
	struct tu_pair p;

	(void)state;
	tu_pair_open(&p, (struct verbs_fabric_attr){.max_payload = 1024});
	key = tu_bind(&p, 3, to, 3 * 1024 + 5, NULL, NULL);
	raw(&p, IBV_WR_RDMA_WRITE_WITH_IMM, wire_imm_pack(split, TU_SLOTS, 0, 0), 1024, key, 0);
	raw(&p, IBV_WR_RDMA_WRITE_WITH_IMM, wire_imm_pack(split, 255, 0, 0), 1024, key, 0);
	raw(&p, IBV_WR_RDMA_WRITE_WITH_IMM, wire_imm_pack(split, 3, 4, 0), 1024, key, 0);
	raw(&p, IBV_WR_RDMA_WRITE_WITH_IMM, wire_imm_pack(split, 3, 3, 0), 1024, key, 0);
	raw(&p, IBV_WR_RDMA_WRITE_WITH_IMM, UINT32_MAX, 1024, key, 0);
	assert_int_equal(tu_fabric(&p, 1)->counter[SDR_CTR_rx_range], 5);
	/* A slot that is not bound: late. */
	raw(&p, IBV_WR_RDMA_WRITE_WITH_IMM, wire_imm_pack(split, 4, 0, 0), 1024, key, 0);
	assert_int_equal(tu_fabric(&p, 1)->counter[SDR_CTR_rx_late], 1);
	/* Beyond the key's range: dropped by the device. */
	raw(&p, IBV_WR_RDMA_WRITE_WITH_IMM, wire_imm_pack(split, 3, 0, 0), 1024, key, 2 * 1024 + 6);
	raw(&p, IBV_WR_RDMA_WRITE_WITH_IMM, wire_imm_pack(split, 3, 0, 0), 1, key, (uint64_t)-1);
	for (size_t i = 3 * 1024 + 5; i < 8192; i++)
		assert_int_equal(to[i], 0);
	assert_int_equal(tu_count(&p, 3, 4), 0);
	assert_int_equal(tu_fabric(&p, 1)->counter[SDR_CTR_rx_pkts], 0);
	p.end[1].f->ops->channel_facts(p.end[1].qp, 0, &facts);
	assert_false(facts.packet_valid);
	assert_int_equal(facts.bad_pkts, 5);
	assert_int_equal(facts.late_pkts, 1);
	tu_carries(&p, 0);
	tu_fence(&p, 3);
	tu_pair_close(&p);
	verbs_pages_free(to, 8192);
}

/* Operations that are none of ours: the queue pair goes on, or dies and comes back. */
static void test_foreign_operations(void **state)
{
	const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE};
	const uint32_t lengths[] = {0, 1, 1024, 5000};
	uint8_t *to = verbs_pages(8192);
	struct fabric_key key;
	struct tu_pair p;

	(void)state;
	tu_pair_open(&p, (struct verbs_fabric_attr){.max_payload = 1024});
	key = tu_bind(&p, 3, to, 3 * 1024, NULL, NULL);
	for (size_t o = 0; o < SDR_ARRAY_LEN(opcodes); o++)
		for (size_t l = 0; l < SDR_ARRAY_LEN(lengths); l++) {
			raw(&p, opcodes[o], wire_imm_pack(fabric_imm_split(TU_SLOTS), 3, 0, 0),
			    lengths[l], key, 0);
			assert_int_equal(tu_count(&p, 3, 3), 0);
			tu_carries(&p, 0);
		}
	for (size_t i = 3 * 1024; i < 8192; i++)
		assert_int_equal(to[i], 0);
	tu_fence(&p, 3);
	tu_pair_close(&p);
	verbs_pages_free(to, 8192);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dead_keys),
		cmocka_unit_test(test_fences_in_a_storm),
		cmocka_unit_test(test_a_fence_by_resetting),
		cmocka_unit_test(test_a_fence_without_a_peer),
		cmocka_unit_test(test_wrong_immediates),
		cmocka_unit_test(test_foreign_operations),
	};

	if (!tu_here())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

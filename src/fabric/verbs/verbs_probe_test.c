/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first test of a device: a late packet at a dead key leaves the queue pair usable, no
 * byte, no completion, and takes no receive. Once in bare libibverbs, so that it says what the
 * device does and not what we make of it; then the self-test at open, which must pass here, and
 * must fail where a fault was planted: keys that do not die.
 */
#include "fabric/verbs/test_util.h"
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <unistd.h>

#define BYTES 512u
#define NRECV 4

struct bare {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp[2]; /* 0 writes to 1 */
	struct ibv_mr *mr;    /* what is sent */
	uint8_t *mem;	      /* BYTES to send, BYTES to write to */
};

static struct verbs_port *the_list;
static const struct verbs_port *the_port;
static const struct verbs_gid *the_gid;

static void bare_connect(struct bare *b, int which)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
				   .port_num = (uint8_t)the_port->port,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = b->qp[!which]->qp_num,
		.ah_attr = {.is_global = 1,
			    .port_num = (uint8_t)the_port->port,
			    .grh = {.sgid_index = (uint8_t)the_gid->index, .hop_limit = 64}},
	};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS};

	memcpy(rtr.ah_attr.grh.dgid.raw, the_gid->raw, 16);
	assert_int_equal(
		ibv_modify_qp(b->qp[which], &init,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
	assert_int_equal(ibv_modify_qp(b->qp[which], &rtr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN),
			 0);
	assert_int_equal(ibv_modify_qp(b->qp[which], &rts, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

static void bare_open(struct bare *b)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	memset(b, 0, sizeof(*b));
	for (int i = 0; list[i]; i++)
		if (strcmp(ibv_get_device_name(list[i]), the_port->device) == 0)
			b->ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	assert_non_null(b->ctx);
	b->pd = ibv_alloc_pd(b->ctx);
	b->send_cq = ibv_create_cq(b->ctx, 64, NULL, NULL, 0);
	b->recv_cq = ibv_create_cq(b->ctx, 64, NULL, NULL, 0);
	b->mem = verbs_pages(4096);
	assert_true(b->pd && b->send_cq && b->recv_cq && b->mem);
	b->mr = ibv_reg_mr(b->pd, b->mem, BYTES, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(b->mr);
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_init_attr attr = {.send_cq = b->send_cq,
						.recv_cq = b->recv_cq,
						.qp_type = IBV_QPT_UC,
						.cap = {.max_send_wr = 16,
							.max_recv_wr = NRECV,
							.max_send_sge = 1,
							.max_recv_sge = 1}};

		b->qp[i] = ibv_create_qp(b->pd, &attr);
		assert_non_null(b->qp[i]);
	}
	bare_connect(b, 0);
	bare_connect(b, 1);
	for (int i = 0; i < NRECV; i++) {
		struct ibv_recv_wr *bad, wr = {.wr_id = 100 + (uint64_t)i};

		assert_int_equal(ibv_post_recv(b->qp[1], &wr, &bad), 0);
	}
}

static void bare_close(struct bare *b)
{
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_destroy_qp(b->qp[i]), 0);
	assert_int_equal(ibv_dereg_mr(b->mr), 0);
	assert_int_equal(ibv_destroy_cq(b->send_cq), 0);
	assert_int_equal(ibv_destroy_cq(b->recv_cq), 0);
	assert_int_equal(ibv_dealloc_pd(b->pd), 0);
	assert_int_equal(ibv_close_device(b->ctx), 0);
	verbs_pages_free(b->mem, 4096);
}

/* A region over the second BYTES. */
static struct ibv_mr *target(struct bare *b)
{
	struct ibv_mr *mr = ibv_reg_mr(b->pd, b->mem + BYTES, BYTES,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	assert_non_null(mr);
	return mr;
}

static void bare_write(struct bare *b, uint32_t rkey, uint64_t va, uint32_t len, uint32_t imm)
{
	struct ibv_sge sge = {.addr = (uintptr_t)b->mem, .length = len, .lkey = b->mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = len > 0,
				       .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				       .send_flags = IBV_SEND_SIGNALED,
				       .imm_data = htonl(imm),
				       .wr.rdma = {.remote_addr = va, .rkey = rkey}};
	uint64_t start_ns = verbs_now_ns();
	struct ibv_wc wc;
	int n;

	assert_int_equal(ibv_post_send(b->qp[0], &wr, &bad), 0);
	do
		n = ibv_poll_cq(b->send_cq, 1, &wc);
	while (n == 0 && verbs_now_ns() - start_ns < TU_PATIENCE_NS);
	assert_int_equal(n, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

/* The next completion is of this write, and used this receive. */
static void bare_expect(struct bare *b, uint32_t imm, uint32_t len, uint64_t recv)
{
	uint64_t start_ns = verbs_now_ns();
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(b->recv_cq, 1, &wc);
	while (n == 0 && verbs_now_ns() - start_ns < TU_PATIENCE_NS);
	assert_int_equal(n, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(ntohl(wc.imm_data), imm);
	assert_int_equal(wc.byte_len, len);
	assert_int_equal(wc.wr_id, recv);
	assert_int_equal(wc.qp_num, b->qp[1]->qp_num);
}

static void expect_bytes(const struct bare *b, uint8_t value)
{
	for (uint32_t i = 0; i < BYTES; i++)
		assert_int_equal(b->mem[BYTES + i], value);
}

static void test_a_late_packet_at_a_dead_key(void **state)
{
	struct bare b;
	struct ibv_mr *mr;
	uint32_t dead;
	uint64_t va;

	(void)state;
	bare_open(&b);
	va = (uintptr_t)b.mem + BYTES;
	memset(b.mem, 0xc3, BYTES);
	mr = target(&b);
	dead = mr->rkey;
	bare_write(&b, dead, va, BYTES, 1);
	bare_expect(&b, 1, BYTES, 100);
	expect_bytes(&b, 0xc3);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	memset(b.mem + BYTES, 0x5a, BYTES);
	for (uint32_t i = 0; i < 5; i++)
		bare_write(&b, dead, va, BYTES, 2);
	/* A good one behind them: on one queue pair packets keep their order. */
	mr = target(&b);
	assert_int_not_equal(mr->rkey, dead);
	bare_write(&b, mr->rkey, va, 1, 3);
	bare_expect(&b, 3, 1, 101);
	assert_int_equal(b.mem[BYTES], 0xc3);
	b.mem[BYTES] = 0x5a;
	expect_bytes(&b, 0x5a);
	/* A write of nothing names no memory: it completes, whatever its key. */
	bare_write(&b, dead, 0, 0, 4);
	bare_expect(&b, 4, 0, 102);
	expect_bytes(&b, 0x5a);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	bare_close(&b);
}

/* A packet beyond a region, and one more than there are receives. */
static void test_out_of_range_and_out_of_receives(void **state)
{
	struct bare b;
	struct ibv_mr *mr;
	uint64_t va;

	(void)state;
	bare_open(&b);
	va = (uintptr_t)b.mem + BYTES;
	mr = target(&b);
	memset(b.mem, 0x77, BYTES);
	bare_write(&b, mr->rkey, va + 1, BYTES, 1);
	bare_write(&b, mr->rkey, va - 1, 1, 1);
	expect_bytes(&b, 0);
	for (uint32_t i = 0; i < NRECV; i++) {
		bare_write(&b, mr->rkey, va + i, 1, 10 + i);
		bare_expect(&b, 10 + i, 1, 100 + i);
	}
	bare_write(&b, mr->rkey, va + 100, 1, 99); /* no receive: lost */
	{
		struct ibv_recv_wr *bad, wr = {.wr_id = 200};

		assert_int_equal(ibv_post_recv(b.qp[1], &wr, &bad), 0);
	}
	bare_write(&b, mr->rkey, va + 101, 1, 20);
	bare_expect(&b, 20, 1, 200);
	assert_int_equal(b.mem[BYTES + 100], 0);
	assert_int_equal(b.mem[BYTES + 101], 0x77);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	bare_close(&b);
}

static void test_the_self_test_passes(void **state)
{
	struct verbs_fabric_attr attr = {0};
	uint64_t sum[SDR_CTR_COUNT] = {0};
	struct fabric *f;
	char why[VERBS_WHY_MAX];

	(void)state;
	for (int end = 0; end < 2; end++) {
		attr.device = tu_device(end);
		if (verbs_fabric_open(&attr, &f, why, sizeof(why)) != 0)
			fail_msg("%s", why);
		assert_string_equal(why, "");
		/* It leaves nothing behind. */
		f->ops->counters(f, sum);
		for (int i = 0; i < SDR_CTR_COUNT; i++)
			assert_int_equal(sum[i], 0);
		assert_int_equal(verbs_fabric_of(f)->free_count, VERBS_DEFAULT_MAX_QPS);
		assert_null(verbs_fabric_of(f)->todo);
		for (struct verbs_cq *cq = verbs_fabric_of(f)->cqs; cq; cq = cq->next)
			assert_int_equal(cq->used, 0);
		f->ops->close(f);
	}
}

/* A fence that does nothing: the region stays. */
static struct ibv_mr *leaked;

static int no_unbind(struct verbs_qp *qp, struct verbs_slot *slot)
{
	(void)qp;
	leaked = slot->mr;
	slot->mr = NULL;
	return 0;
}

/* A fence that says it failed. */
static int refused_unbind(struct verbs_qp *qp, struct verbs_slot *slot)
{
	(void)verbs_keys_rereg.unbind(qp, slot);
	return -EINVAL;
}

static void test_the_self_test_sees_keys_that_live_on(void **state)
{
	struct verbs_keys_ops broken = verbs_keys_rereg;
	struct verbs_fabric_attr attr = {.device = tu_device(0), .no_probe = true};
	char why[VERBS_WHY_MAX] = "";
	struct fabric *f;

	(void)state;
	assert_int_equal(verbs_fabric_open(&attr, &f, why, sizeof(why)), 0);
	broken.unbind = no_unbind;
	verbs_fabric_of(f)->keys = &broken;
	assert_int_equal(verbs_probe(verbs_fabric_of(f), why, sizeof(why)), -EPROTO);
	assert_non_null(strstr(why, tu_device(0)));
	assert_non_null(strstr(why, "after the fence"));
	ibv_dereg_mr(leaked);
	broken.unbind = refused_unbind;
	assert_int_equal(verbs_probe(verbs_fabric_of(f), why, sizeof(why)), -EPROTO);
	assert_non_null(strstr(why, "taken back"));
	/* And after such failures the device is as it was. */
	verbs_fabric_of(f)->keys = &verbs_keys_rereg;
	assert_int_equal(verbs_probe(verbs_fabric_of(f), why, sizeof(why)), 0);
	f->ops->close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_late_packet_at_a_dead_key),
		cmocka_unit_test(test_out_of_range_and_out_of_receives),
		cmocka_unit_test(test_the_self_test_passes),
		cmocka_unit_test(test_the_self_test_sees_keys_that_live_on),
	};
	const struct verbs_want want = {.device = tu_device(0)};
	char why[VERBS_WHY_MAX];
	int n, failed;

	if (!tu_here())
		return 77;
	n = verbs_fabric_list(&the_list);
	if (verbs_choose(the_list, (size_t)n, &want, &the_port, &the_gid, why, sizeof(why)) < 0) {
		printf("skipped: %s\n", why);
		return 77;
	}
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	verbs_list_free(the_list);
	return failed;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Contract: device_pair.h. */
#include "device_pair.h"
#include <stdio.h>

struct sdr_ctx_attr device_attr(int which, char *why, size_t why_len)
{
	return (struct sdr_ctx_attr){
		.size = sizeof(struct sdr_ctx_attr),
		.device = devices[which].name,
		.bind_addr = devices[which].addr,
		.listen = which == 1,
		.why = why,
		.why_len = why_len,
	};
}

void pattern(uint8_t *mem, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		mem[i] = (uint8_t)((i * 2654435761u + seed * 40503u) >> 11);
}

static void connect_to(struct qp_pair *p, int end)
{
	uint8_t blob[SDR_MAX_INFO_BYTES];
	int len = sdr_qp_info_get(p->qp[!end], blob, sizeof(blob));

	assert_true(len > 0);
	assert_int_equal(sdr_qp_connect(p->qp[end], blob, (size_t)len, NULL), 0);
}

static bool connected(void *arg)
{
	struct qp_pair *p = arg;

	return sdr_qp_state_get(p->qp[0]) == SDR_QP_CONNECTED &&
	       sdr_qp_state_get(p->qp[1]) == SDR_QP_CONNECTED;
}

void qp_pair_open(struct qp_pair *p, const struct sdr_qp_attr *attr)
{
	memset(p, 0, sizeof(*p));
	for (int i = 0; i < 2; i++) {
		char why[512] = "";
		struct sdr_ctx_attr a = device_attr(i, why, sizeof(why));
		int err = sdr_ctx_create(&a, &p->ctx[i]);

		if (err)
			fail_msg("%s at %s: %s (%s)", devices[i].name, devices[i].addr, why,
				 sdr_strerror(err));
		assert_int_equal(sdr_qp_create(p->ctx[i], attr, &p->qp[i]), 0);
	}
	connect_to(p, 1);
	connect_to(p, 0);
	assert_true(qp_pair_run(p, connected, p));
	for (int i = 0; i < 2; i++) {
		p->info[i].size = sizeof(p->info[i]);
		assert_int_equal(sdr_qp_query(p->qp[i], &p->info[i]), 0);
	}
}

void qp_pair_close(struct qp_pair *p)
{
	for (int i = 0; i < 2; i++)
		sdr_qp_destroy(p->qp[i]);
	for (int i = 0; i < 2; i++)
		sdr_ctx_destroy(p->ctx[i]);
}

bool qp_pair_run(struct qp_pair *p, bool (*done)(void *arg), void *arg)
{
	uint64_t limit = sdr_now_ns(p->ctx[0]) + 20 * SEC;

	while (!done(arg)) {
		if (sdr_now_ns(p->ctx[0]) > limit)
			return false;
		assert_true(sdr_wait(p->ctx[0], sdr_now_ns(p->ctx[0]) + MS / 5) >= 0);
		assert_true(sdr_progress(p->ctx[1]) >= 0);
	}
	return true;
}

static bool later(void *arg)
{
	unsigned int *rounds = arg;

	return (*rounds)-- == 0;
}

void qp_pair_settle(struct qp_pair *p)
{
	unsigned int rounds = 200;

	assert_true(qp_pair_run(p, later, &rounds));
}

struct device devices[2];

/* Another process, or this host's own RDMA driver, may have the port of RoCEv2. */
static bool taken(int which)
{
	char why[512] = "";
	struct sdr_ctx_attr a = device_attr(which, why, sizeof(why));
	struct sdr_ctx *ctx = NULL;
	int err = sdr_ctx_create(&a, &ctx);

	sdr_ctx_destroy(ctx);
	if (err == -EADDRINUSE)
		printf("skipped: %s at %s: %s\n", devices[which].name, devices[which].addr, why);
	return err == -EADDRINUSE;
}

int main(int argc, char **argv)
{
	bool lossy = argc == 6 && strcmp(argv[5], "lossy") == 0;
	int failed = 0;

	if (argc != 5 && !lossy) {
		fprintf(stderr, "usage: device_test DEVICE ADDRESS DEVICE ADDRESS [lossy]\n");
		return 2;
	}
	devices[0] = (struct device){argv[1], argv[2]};
	devices[1] = (struct device){argv[3], argv[4]};
	if (taken(0) || taken(1))
		return 77;
	if (!lossy) /* it sends once what it sends */
		failed = device_sdk_tests();
	failed += device_conn_tests();
	return failed ? 1 : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See pair.h. */
#include "pair.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static const struct sdr_sim_link clean = {
	.size = sizeof(clean), .rate_bps = 10000000000, .delay_ns = 10 * MS};

const struct sdr_sim_device *pair_device;
bool pair_payload_off;

const struct sdr_sim_device *const pair_devices[] = {
	&(const struct sdr_sim_device){.size = sizeof(struct sdr_sim_device), .like = "udp"},
	&(const struct sdr_sim_device){.size = sizeof(struct sdr_sim_device), .like = "roce"},
	&(const struct sdr_sim_device){.size = sizeof(struct sdr_sim_device), .like = "nic"},
	NULL,
};

bool pair_is_rocev2(void)
{
	return pair_device && pair_device->like && strcmp(pair_device->like, "udp") != 0;
}

void pair_open(struct pair *p, uint64_t seed, const struct sdr_qp_attr *attr)
{
	assert_int_equal(sdr_sim_create(seed, &p->sim), 0);
	if (pair_payload_off)
		assert_int_equal(sdr_sim_payload_off(p->sim), 0);
	for (int i = 0; i < 2; i++) {
		struct sdr_ctx_attr ca = {.size = sizeof(ca), .listen = i == 1};

		assert_int_equal(sdr_sim_host(p->sim), i);
		assert_int_equal(sdr_sim_device_set(p->sim, i, pair_device), 0);
		assert_int_equal(sdr_sim_ctx_create(p->sim, i, &ca, &p->ctx[i]), 0);
		assert_int_equal(sdr_qp_create(p->ctx[i], attr, &p->qp[i]), 0);
		assert_int_equal(sdr_mr_reg(p->ctx[i], NULL, SIZE_MAX, 0, &p->mr[i]), 0);
	}
	pair_link(p, &clean, &clean);
}

void pair_link(struct pair *p, const struct sdr_sim_link *forth, const struct sdr_sim_link *back)
{
	assert_int_equal(sdr_sim_link_set(p->sim, 0, 1, SDR_CHANNEL_ANY, forth), 0);
	assert_int_equal(sdr_sim_link_set(p->sim, 1, 0, SDR_CHANNEL_ANY, back), 0);
}

bool pair_run(struct pair *p, bool (*done)(void *arg), void *arg, uint64_t ns)
{
	uint64_t limit = sdr_sim_now_ns(p->sim) + ns;

	for (;;) {
		for (int i = 0; i < 2; i++)
			assert_true(sdr_progress(p->ctx[i]) >= 0);
		if (done(arg))
			return true;
		if (sdr_sim_now_ns(p->sim) >= limit)
			return false;
		sdr_sim_step(p->sim, limit);
	}
}

bool pair_never(void *arg)
{
	(void)arg;
	return false;
}

static bool connected(void *arg)
{
	struct pair *p = arg;

	return sdr_qp_state_get(p->qp[0]) == SDR_QP_CONNECTED &&
	       sdr_qp_state_get(p->qp[1]) == SDR_QP_CONNECTED;
}

void pair_connect(struct pair *p)
{
	uint8_t info[2][SDR_MAX_INFO_BYTES];
	int len[2];

	for (int i = 0; i < 2; i++) {
		len[i] = sdr_qp_info_get(p->qp[i], info[i], sizeof(info[i]));
		assert_true(len[i] > 0);
		assert_int_equal(len[i], sdr_qp_info_size(p->qp[i]));
	}
	assert_int_equal(sdr_qp_connect(p->qp[1], info[0], (size_t)len[0], NULL), 0);
	assert_int_equal(sdr_qp_connect(p->qp[0], info[1], (size_t)len[1], NULL), 0);
	assert_true(pair_run(p, connected, p, 60 * SEC));
}

void pair_close(struct pair *p)
{
	for (int i = 0; i < 2; i++) {
		sdr_mr_dereg(p->mr[i]);
		sdr_ctx_destroy(p->ctx[i]);
	}
	sdr_sim_destroy(p->sim);
}

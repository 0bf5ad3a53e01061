/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <sdr/sim.h> as its caller sees it: what it refuses, and what it tells of paths and NATs.
 * What packets go through is in src/fabric/sim and tests/conn.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sdr/sim.h>
#include <string.h>

static const struct sdr_sim_link wire = {.size = sizeof(wire), .delay_ns = 1000};

static struct sdr_sim *world(void)
{
	struct sdr_sim *sim;

	assert_int_equal(sdr_sim_create(1, &sim), 0);
	assert_int_equal(sdr_sim_host(sim), 0);
	assert_int_equal(sdr_sim_host(sim), 1);
	return sim;
}

static int set_one(struct sdr_sim *sim, const struct sdr_sim_link *link)
{
	int err = sdr_sim_link_set(sim, 0, 1, SDR_CHANNEL_ANY, link);

	assert_int_equal(sdr_sim_paths_set(sim, 0, 1, 1, link), err);
	return err;
}

static void links_that_mean_nothing(void **state)
{
	struct sdr_sim *sim = world();
	struct sdr_sim_link link = wire;

	(void)state;
	assert_int_equal(set_one(sim, &link), 0);
	link.loss = 1.5;
	assert_int_equal(set_one(sim, &link), -EINVAL);
	link = wire;
	link.flap_every_ns = 10;
	assert_int_equal(set_one(sim, &link), -EINVAL);
	link.flap_for_ns = 10;
	assert_int_equal(set_one(sim, &link), -EINVAL);
	link.flap_for_ns = 9;
	assert_int_equal(set_one(sim, &link), 0);
	link.flap_every_ns = 0;
	assert_int_equal(set_one(sim, &link), -EINVAL);
	link = wire;
	link.flap_delay_ns = UINT64_C(1) << 62;
	assert_int_equal(set_one(sim, &link), -ERANGE);
	sdr_sim_destroy(sim);
}

/* A caller of an older header: shorter elements, whose end is not read. */
static void paths_of_an_older_caller(void **state)
{
	enum { OLD = offsetof(struct sdr_sim_link, flap_first_ns) };
	struct sdr_sim_link_info info = {.size = sizeof(info)};
	_Alignas(struct sdr_sim_link) uint8_t links[3 * OLD];
	struct sdr_sim *sim = world();
	struct sdr_sim_link link = wire;

	(void)state;
	link.size = OLD;
	for (int i = 0; i < 3; i++)
		memcpy(links + i * OLD, &link, OLD);
	assert_int_equal(
		sdr_sim_paths_set(sim, 0, 1, 3, (const struct sdr_sim_link *)(void *)links), 0);
	for (uint32_t path = 0; path < 3; path++)
		assert_int_equal(sdr_sim_path_query(sim, 0, 1, path, &info), 0);
	assert_int_equal(sdr_sim_path_query(sim, 0, 1, 3, &info), -ENOENT);
	sdr_sim_destroy(sim);
}

static void paths_that_are_refused(void **state)
{
	struct sdr_sim_link links[SDR_SIM_MAX_PATHS + 1];
	struct sdr_sim_link_info info = {.size = sizeof(info)};
	struct sdr_sim *sim = world();

	(void)state;
	for (uint32_t i = 0; i <= SDR_SIM_MAX_PATHS; i++)
		links[i] = wire;
	assert_int_equal(sdr_sim_path_query(sim, 0, 1, 0, &info), -ENOENT);
	assert_int_equal(sdr_sim_paths_set(sim, 0, 1, SDR_SIM_MAX_PATHS + 1, links), -EINVAL);
	assert_int_equal(sdr_sim_paths_set(sim, 0, 2, 1, links), -EINVAL);
	assert_int_equal(sdr_sim_paths_set(sim, -1, 1, 1, links), -EINVAL);
	links[1].size -= 8;
	assert_int_equal(sdr_sim_paths_set(sim, 0, 1, 2, links), -EINVAL);
	links[0].size = links[1].size = sizeof(wire) - 1;
	assert_int_equal(sdr_sim_paths_set(sim, 0, 1, 2, links), -EINVAL);
	links[0] = links[1] = wire;
	links[SDR_SIM_MAX_PATHS - 1].corrupt = -1;
	assert_int_equal(sdr_sim_paths_set(sim, 0, 1, SDR_SIM_MAX_PATHS, links), -EINVAL);
	assert_int_equal(sdr_sim_path_query(sim, 0, 1, 0, &info), -ENOENT); /* nothing was set */
	links[SDR_SIM_MAX_PATHS - 1] = wire;
	assert_int_equal(sdr_sim_paths_set(sim, 0, 1, SDR_SIM_MAX_PATHS, links), 0);
	assert_int_equal(sdr_sim_path_query(sim, 0, 1, SDR_SIM_MAX_PATHS - 1, &info), 0);
	assert_int_equal(sdr_sim_path_query(sim, 0, 1, SDR_SIM_MAX_PATHS, &info), -ENOENT);
	assert_int_equal(sdr_sim_path_query(sim, 0, 1, UINT32_MAX, &info), -ENOENT);
	assert_int_equal(sdr_sim_paths_set(sim, 0, 1, 0, NULL), 0);
	sdr_sim_destroy(sim);
}

static void nats(void **state)
{
	struct sdr_sim_nat_info info = {.size = sizeof(info)};
	struct {
		size_t size;
		uint64_t rebinds;
	} small = {.size = sizeof(small)};
	struct sdr_sim *sim = world();

	(void)state;
	assert_int_equal(sdr_sim_nat_query(sim, 0, &info), -ENOENT);
	assert_int_equal(sdr_sim_nat_rebind(sim, 0), -ENOENT);
	assert_int_equal(sdr_sim_nat_set(sim, 2, 0, 0), -EINVAL);
	assert_int_equal(sdr_sim_nat_set(sim, -1, 0, 0), -EINVAL);
	assert_int_equal(sdr_sim_nat_set(sim, 0, 0, 0), 0);
	assert_int_equal(sdr_sim_nat_query(sim, 1, &info), -ENOENT);
	assert_int_equal(sdr_sim_nat_rebind(sim, 0), 0);
	assert_int_equal(sdr_sim_nat_rebind(sim, 0), 0);
	assert_int_equal(sdr_sim_nat_query(sim, 0, &info), 0);
	assert_int_equal(info.rebinds, 2);
	assert_int_equal(info.lost_pkts, 0);
	assert_int_equal(sdr_sim_nat_query(sim, 0, (struct sdr_sim_nat_info *)(void *)&small), 0);
	assert_int_equal(small.rebinds, 2);
	assert_int_equal(sdr_sim_nat_set(sim, 0, 5, 7), 0); /* a new one */
	assert_int_equal(sdr_sim_nat_query(sim, 0, &info), 0);
	assert_int_equal(info.rebinds, 0);
	sdr_sim_destroy(sim);
}

static int set_device(struct sdr_sim *sim, int host, const char *like, uint32_t depth,
		      uint64_t late_ns)
{
	const struct sdr_sim_device d = {
		.size = sizeof(d), .like = like, .recv_depth = depth, .late_ns = late_ns};

	return sdr_sim_device_set(sim, host, &d);
}

static uint32_t caps_of(struct sdr_sim *sim, int host)
{
	struct sdr_ctx_info info = {.size = sizeof(info)};
	struct sdr_ctx *ctx;

	assert_int_equal(sdr_sim_ctx_create(sim, host, NULL, &ctx), 0);
	assert_int_equal(sdr_ctx_query(ctx, &info), 0);
	sdr_ctx_destroy(ctx);
	return info.caps & ~(uint32_t)SDR_CAP_VIRTUAL_TIME;
}

static void devices(void **state)
{
	struct sdr_sim_device only_size = {.size = sizeof(size_t), .like = "nothing is read of it"};
	struct sdr_sim *sim = world();
	struct sdr_ctx *ctx;

	(void)state;
	assert_int_equal(set_device(sim, 2, "nic", 0, 0), -EINVAL);
	assert_int_equal(set_device(sim, -1, "nic", 0, 0), -EINVAL);
	assert_int_equal(set_device(sim, 0, "ni", 0, 0), -EINVAL);
	assert_int_equal(set_device(sim, 0, "roce", 16, 0), -EINVAL);
	assert_int_equal(set_device(sim, 0, NULL, 0, 5), -EINVAL);
	assert_int_equal(caps_of(sim, 0), SDR_CAP_NO_REWRITE);
	assert_int_equal(set_device(sim, 0, "roce", 0, 0), 0);
	assert_int_equal(caps_of(sim, 0), SDR_CAP_NO_REWRITE | SDR_CAP_ROCEV2);
	assert_int_equal(set_device(sim, 0, "nic", 16, 5), 0);
	assert_int_equal(caps_of(sim, 0), SDR_CAP_ROCEV2 | SDR_CAP_SILENT_LATE | SDR_CAP_ZERO_COPY);
	assert_int_equal(caps_of(sim, 1), SDR_CAP_NO_REWRITE);
	assert_int_equal(sdr_sim_ctx_create(sim, 0, NULL, &ctx), 0);
	assert_int_equal(sdr_sim_ctx_create(sim, 0, NULL, &ctx), -EADDRINUSE);
	assert_int_equal(sdr_sim_device_set(sim, 0, &only_size), 0);
	assert_int_equal(caps_of(sim, 0), SDR_CAP_NO_REWRITE);
	assert_int_equal(set_device(sim, 1, "nic", 0, 0), 0);
	assert_int_equal(sdr_sim_device_set(sim, 1, NULL), 0);
	assert_int_equal(caps_of(sim, 1), SDR_CAP_NO_REWRITE);
	sdr_sim_destroy(sim);
}

static void payload_only_before_contexts(void **state)
{
	struct sdr_sim *sim = world();
	struct sdr_ctx *ctx;

	(void)state;
	assert_int_equal(sdr_sim_payload_off(sim), 0);
	assert_int_equal(sdr_sim_payload_off(sim), 0);
	assert_int_equal(sdr_sim_ctx_create(sim, 0, NULL, &ctx), 0);
	assert_int_equal(sdr_sim_payload_off(sim), -EBUSY);
	sdr_ctx_destroy(ctx);
	assert_int_equal(sdr_sim_payload_off(sim), -EBUSY);
	sdr_sim_destroy(sim);
}

static void drops(void **state)
{
	static const struct sdr_sim_drop list[] = {{1, 2, 3}, {1, 2, 3}, {0, 2, 3}};
	struct sdr_sim_drops_info info = {.size = sizeof(info)};
	struct {
		size_t size;
		uint64_t entries;
	} small = {.size = sizeof(small)};
	struct sdr_sim *sim = world();

	(void)state;
	assert_int_equal(sdr_sim_drops_query(sim, 0, 1, &info), -ENOENT);
	assert_int_equal(sdr_sim_drops_query(sim, 0, 2, &info), -ENOENT);
	assert_int_equal(sdr_sim_drops_set(sim, 0, 2, list, 3), -EINVAL);
	assert_int_equal(sdr_sim_drops_set(sim, -1, 0, list, 3), -EINVAL);
	assert_int_equal(sdr_sim_drops_set(sim, 0, 1, NULL, 3), -EINVAL);
	assert_int_equal(sdr_sim_drops_set(sim, 0, 1, NULL, 0), 0);
	assert_int_equal(sdr_sim_drops_query(sim, 0, 1, &info), -ENOENT);
	assert_int_equal(sdr_sim_drops_set(sim, 0, 1, list, 3), 0);
	assert_int_equal(sdr_sim_drops_set(sim, 1, 1, list, 1), 0);
	assert_int_equal(sdr_sim_drops_query(sim, 0, 1, &info), 0);
	assert_int_equal(info.entries, 2);
	assert_int_equal(info.hit, 0);
	assert_int_equal(info.lost_pkts, 0);
	assert_int_equal(
		sdr_sim_drops_query(sim, 1, 1, (struct sdr_sim_drops_info *)(void *)&small), 0);
	assert_int_equal(small.entries, 1);
	assert_int_equal(sdr_sim_drops_set(sim, 0, 1, NULL, 0), 0);
	assert_int_equal(sdr_sim_drops_query(sim, 0, 1, &info), -ENOENT);
	assert_int_equal(sdr_sim_drops_query(sim, 1, 1, &info), 0);
	sdr_sim_destroy(sim);
}

/* A world in which nothing will happen: its clock may go as far as it likes. */
static void the_end_of_time(void **state)
{
	const struct sdr_ctx_attr attr = {.size = sizeof(attr)};
	struct sdr_ctx *ctx;

	(void)state;
	for (int with = 0; with < 2; with++) {
		struct sdr_sim *sim = world();

		if (with)
			assert_int_equal(sdr_sim_ctx_create(sim, 0, &attr, &ctx), 0);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(sdr_sim_step(sim, UINT64_MAX), 0);
			assert_true(sdr_sim_now_ns(sim) == UINT64_MAX);
			assert_null(sdr_sim_due(sim));
		}
		sdr_sim_destroy(sim);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_that_mean_nothing),
		cmocka_unit_test(paths_of_an_older_caller),
		cmocka_unit_test(paths_that_are_refused),
		cmocka_unit_test(nats),
		cmocka_unit_test(devices),
		cmocka_unit_test(payload_only_before_contexts),
		cmocka_unit_test(drops),
		cmocka_unit_test(the_end_of_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What needs no device: choosing ports and GIDs, ids of work requests, queue arithmetic. */
#include "fabric/verbs/verbs_int.h"
#include "base/rng.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void gid_add(struct verbs_port *p, uint32_t index, enum verbs_gid_type type,
		    const char *text)
{
	struct verbs_gid *gid = &p->gid[p->ngids++];

	*gid = (struct verbs_gid){.index = index, .type = type};
	if (strchr(text, ':')) {
		assert_int_equal(inet_pton(AF_INET6, text, gid->raw), 1);
	} else {
		gid->raw[10] = gid->raw[11] = 0xff;
		assert_int_equal(inet_pton(AF_INET, text, gid->raw + 12), 1);
	}
}

static struct verbs_port good_port(const char *device)
{
	struct verbs_port p = {.port = 1,
			       .has_uc = true,
			       .active = true,
			       .state = "ACTIVE",
			       .ethernet = true,
			       .mtu = 1024};

	strncpy(p.device, device, sizeof(p.device) - 1);
	return p;
}

/* As an mlx5 device has them: each address as RoCE v1 and v2. */
static struct verbs_port full_port(void)
{
	struct verbs_port p = good_port("mlx5_0");

	gid_add(&p, 0, VERBS_GID_ROCE_V1, "fe80::1");
	gid_add(&p, 1, VERBS_GID_ROCE_V2, "fe80::1");
	gid_add(&p, 2, VERBS_GID_ROCE_V1, "2001:db8::5");
	gid_add(&p, 3, VERBS_GID_ROCE_V2, "2001:db8::5");
	gid_add(&p, 4, VERBS_GID_ROCE_V1, "192.0.2.7");
	gid_add(&p, 5, VERBS_GID_ROCE_V2, "192.0.2.7");
	return p;
}

static void expect_gid(const struct verbs_port *p, struct verbs_want want, int index)
{
	char why[512] = "";
	const struct verbs_gid *gid = verbs_gid_choose(p, &want, why, sizeof(why));

	if (index < 0) {
		assert_null(gid);
		assert_true(strlen(why) > 0);
	} else {
		assert_non_null(gid);
		assert_int_equal(gid->index, index);
	}
}

static void test_gid_choice(void **state)
{
	struct verbs_port p = full_port(), few = good_port("rxe0");

	(void)state;
	expect_gid(&p, (struct verbs_want){0}, 5);
	expect_gid(&p, (struct verbs_want){.bind_addr = "192.0.2.7"}, 5);
	expect_gid(&p, (struct verbs_want){.bind_addr = "::ffff:192.0.2.7"}, 5);
	expect_gid(&p, (struct verbs_want){.bind_addr = "2001:db8::5"}, 3);
	expect_gid(&p, (struct verbs_want){.bind_addr = "fe80::1%eth0"}, 1);
	expect_gid(&p, (struct verbs_want){.bind_addr = "0.0.0.0"}, 5);
	expect_gid(&p, (struct verbs_want){.bind_addr = "::"}, 3);
	expect_gid(&p, (struct verbs_want){.bind_addr = "192.0.2.8"}, -1);
	expect_gid(&p, (struct verbs_want){.bind_addr = "mlx5_0"}, -1);
	expect_gid(&p, (struct verbs_want){.gid_index_set = true, .gid_index = 1}, 1);
	expect_gid(&p, (struct verbs_want){.gid_index_set = true, .gid_index = 4}, -1);
	expect_gid(&p, (struct verbs_want){.gid_index_set = true, .gid_index = 9}, -1);
	expect_gid(&p,
		   (struct verbs_want){
			   .gid_index_set = true, .gid_index = 5, .bind_addr = "2001:db8::5"},
		   -1);
	expect_gid(
		&p,
		(struct verbs_want){.gid_index_set = true, .gid_index = 5, .bind_addr = "0.0.0.0"},
		5);
	expect_gid(&p,
		   (struct verbs_want){.gid_index_set = true, .gid_index = 5, .bind_addr = "::"},
		   -1);
	/* A link-local one only where there is nothing else. */
	expect_gid(&few, (struct verbs_want){0}, -1);
	gid_add(&few, 0, VERBS_GID_ROCE_V2, "fe80::2");
	expect_gid(&few, (struct verbs_want){0}, 0);
	gid_add(&few, 1, VERBS_GID_ROCE_V2, "2001:db8::6");
	expect_gid(&few, (struct verbs_want){0}, 1);
	expect_gid(&few, (struct verbs_want){.bind_addr = "0.0.0.0"}, -1);
}

static void test_candidates_are_told(void **state)
{
	const struct verbs_port p = full_port();
	const struct verbs_want want = {.bind_addr = "198.51.100.1"};
	char why[VERBS_WHY_MAX] = "", small[8] = "";

	(void)state;
	assert_null(verbs_gid_choose(&p, &want, why, sizeof(why)));
	assert_non_null(strstr(why, "mlx5_0 port 1"));
	assert_non_null(strstr(why, "198.51.100.1"));
	assert_non_null(strstr(why, "index 5, RoCE v2, 192.0.2.7"));
	assert_non_null(strstr(why, "index 2, RoCE v1, 2001:db8::5"));
	assert_null(verbs_gid_choose(&p, &want, small, sizeof(small)));
	assert_int_equal(strlen(small), 7);
}

static void refused(const struct verbs_port *list, size_t n, struct verbs_want want, int err,
		    const char *words)
{
	const struct verbs_port *port;
	const struct verbs_gid *gid;
	char why[VERBS_WHY_MAX];

	assert_int_equal(verbs_choose(list, n, &want, &port, &gid, why, sizeof(why)), err);
	if (!strstr(why, words))
		fail_msg("\"%s\" is not in \"%s\"", words, why);
}

static void test_port_choice(void **state)
{
	struct verbs_port list[6] = {good_port("irdma0"), good_port("ib0"), good_port("mlx5_1"),
				     good_port("small"),  full_port(),	    good_port("rxe0")};
	const struct verbs_port *port;
	const struct verbs_gid *gid;
	char why[VERBS_WHY_MAX];

	(void)state;
	list[0].has_uc = false;
	list[0].uc_err = -EOPNOTSUPP;
	list[1].ethernet = false;
	list[2].active = false;
	list[2].state = "DOWN";
	list[3].mtu = 512;
	assert_int_equal(
		verbs_choose(list, 6, &(struct verbs_want){0}, &port, &gid, why, sizeof(why)), 0);
	assert_string_equal(port->device, "mlx5_0");
	assert_int_equal(gid->index, 5);
	assert_string_equal(why, "");
	refused(list, 6, (struct verbs_want){.device = "irdma0"}, -EOPNOTSUPP, "--device udp");
	refused(list, 6, (struct verbs_want){.device = "ib0"}, -EOPNOTSUPP, "InfiniBand");
	refused(list, 6, (struct verbs_want){.device = "mlx5_1"}, -ENETDOWN, "DOWN");
	refused(list, 6, (struct verbs_want){.device = "small"}, -EMSGSIZE, "512");
	refused(list, 6, (struct verbs_want){.device = "rxe0"}, -EADDRNOTAVAIL, "GIDs: none");
	refused(list, 6, (struct verbs_want){.device = "mlx9"}, -ENODEV, "mlx5_0 port 1");
	refused(list, 6, (struct verbs_want){.device = "mlx5_0", .port = 2}, -ENODEV, "no port 2");
	refused(list, 6, (struct verbs_want){.port = 2}, -ENODEV, "port 2");
	refused(list, 0, (struct verbs_want){0}, -ENODEV, "modprobe");
	/* Where nothing fits, each says why; the first gives the code. */
	refused(list, 4, (struct verbs_want){0}, -EOPNOTSUPP, "512");
	list[0].uc_err = -EACCES;
	refused(list, 1, (struct verbs_want){0}, -EACCES, "/dev/infiniband");
	list[0].uc_err = -ENOMEM;
	refused(list, 1, (struct verbs_want){0}, -ENOMEM, "ulimit -l");
}

static void test_addresses(void **state)
{
	const struct verbs_port p = full_port();
	struct sockaddr_storage ss;
	struct sockaddr_in sin;
	uint8_t raw[16];
	char text[VERBS_GID_TEXT];

	(void)state;
	for (uint32_t i = 0; i < p.ngids; i++) {
		verbs_gid_to_addr(&p.gid[i], &ss);
		assert_true(verbs_gid_from_addr((struct sockaddr *)&ss, raw));
		assert_memory_equal(raw, p.gid[i].raw, 16);
	}
	verbs_gid_to_addr(&p.gid[5], &ss);
	assert_int_equal(ss.ss_family, AF_INET);
	memcpy(&sin, &ss, sizeof(sin));
	assert_int_equal(sin.sin_port, 0);
	verbs_gid_text(p.gid[5].raw, text);
	assert_string_equal(text, "192.0.2.7");
	ss.ss_family = AF_UNIX;
	assert_false(verbs_gid_from_addr((struct sockaddr *)&ss, raw));
	assert_true(verbs_gid_is_link_local(p.gid[0].raw));
	assert_false(verbs_gid_is_link_local(p.gid[3].raw));
}

static void test_ids_of_work_requests(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 3);
	for (int i = 0; i < 10000; i++) {
		struct verbs_wr in = {.kind = (enum verbs_wr_kind)rng_below(&rng, 4),
				      .serial = (uint32_t)rng_below(&rng, VERBS_SERIAL_MASK + 1),
				      .dq = (uint32_t)rng_below(&rng, FABRIC_DATA_QPS),
				      .index = (uint32_t)rng_below(&rng, VERBS_LIMIT_QPS),
				      .run = (uint32_t)rng_below(&rng, VERBS_RUN_MASK + 1)};
		struct verbs_wr out =
			verbs_wr_parse(verbs_wr_id(in.kind, in.serial, in.dq, in.index, in.run));

		assert_int_equal(in.kind, out.kind);
		assert_int_equal(in.serial, out.serial);
		assert_int_equal(in.dq, out.dq);
		assert_int_equal(in.index, out.index);
		assert_int_equal(in.run, out.run);
	}
}

static void test_refilling(void **state)
{
	(void)state;
	for (uint32_t target = 1; target <= 5000; target = target * 3 / 2 + 1) {
		uint32_t posted = 0, least = target;

		/* One completion at a time: never above the target, never down to nothing. */
		for (uint32_t i = 0; i < 4 * target; i++) {
			uint32_t n = verbs_refill(posted, target);

			assert_true(posted + n <= target);
			posted += n;
			if (i > 0 && posted < least)
				least = posted;
			assert_true(posted > 0);
			posted--;
		}
		assert_true(target < 4 || least >= target / 2);
		assert_true(target < VERBS_MIN_RQ_DEPTH || least >= FABRIC_RUN_MAX);
	}
	assert_int_equal(verbs_refill(100, 16), 0); /* its generation is not in use any more */
	assert_int_equal(verbs_refill(0, 1024), 1024);
	assert_int_equal(verbs_refill(1000, 1024), 0);
}

static void test_queues_fit(void **state)
{
	(void)state;
	assert_int_equal(verbs_rq_fit(1024, 256, 8, 4194303), 1024);
	for (uint32_t pairs = 4; pairs <= FABRIC_DATA_QPS; pairs += 4) {
		uint32_t depth = verbs_rq_fit(1024, 256, pairs, 32767);

		assert_in_range(depth, VERBS_MIN_RQ_DEPTH, 1024);
		assert_true(pairs * (depth + 256) + VERBS_CTRL_RX + VERBS_CTRL_TX <= 32767);
	}
	assert_int_equal(verbs_rq_fit(1024, 256, 64, 16384), 0);
	assert_int_equal(verbs_rq_fit(1024, 256, 4, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gid_choice),
		cmocka_unit_test(test_candidates_are_told),
		cmocka_unit_test(test_port_choice),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_ids_of_work_requests),
		cmocka_unit_test(test_refilling),
		cmocka_unit_test(test_queues_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

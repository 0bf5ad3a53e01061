// SPDX-License-Identifier: Apache-2.0
/*
 * RDMA devices read from a planted /sys/class/infiniband, and judged at each level.
 */
#include "tool/doctor/rdma.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tool/doctor/test_root.h"

#define DIR "/sys/class/infiniband/"
#define MLX DIR "mlx5_0/ports/1/"
#define RXE DIR "rxe0/ports/1/"

static struct findings found;
static struct rdma_list list;

static void plant_mlx(void)
{
	plant(DIR "mlx5_0/node_type", "1: CA\n");
	plant_link(DIR "mlx5_0/device/driver", "../../../bus/pci/drivers/mlx5_core");
	plant(MLX "state", "4: ACTIVE\n");
	plant(MLX "phys_state", "5: LinkUp\n");
	plant(MLX "link_layer", "Ethernet\n");
	plant(MLX "rate", "100 Gb/sec (4X EDR)\n");
	plant(MLX "gids/0", "fe80:0000:0000:0000:0202:c9ff:fe00:0001\n");
	plant(MLX "gid_attrs/types/0", "IB/RoCE v1\n");
	plant(MLX "gid_attrs/ndevs/0", "eth1\n");
	plant(MLX "gids/1", "fe80:0000:0000:0000:0202:c9ff:fe00:0001\n");
	plant(MLX "gid_attrs/types/1", "RoCE v2\n");
	plant(MLX "gids/2", "0000:0000:0000:0000:0000:0000:0000:0000\n");
	plant(MLX "gids/3", "0000:0000:0000:0000:0000:ffff:0a01:0203\n");
	plant(MLX "gid_attrs/types/3", "RoCE v2\n");
	plant(MLX "gid_attrs/ndevs/3", "eth1\n");
	plant("/sys/class/net/eth1/mtu", "4200\n");
	plant(MLX "counters/port_rcv_packets", "100000\n");
	plant(MLX "hw_counters/out_of_buffer", "3\n");
	plant(MLX "hw_counters/rx_icrc_encapsulated", "0\n");
}

static void plant_rxe(void)
{
	plant(DIR "rxe0/node_type", "1: CA\n");
	plant(DIR "rxe0/parent", "eth0\n");
	plant(RXE "state", "1: DOWN\n");
	plant(RXE "link_layer", "Ethernet\n");
	plant(RXE "gids/0", "fe80:0000:0000:0000:0202:c9ff:fe00:0002\n");
	plant(RXE "gid_attrs/types/0", "RoCE v2\n");
	plant("/sys/class/net/eth0/mtu", "1500\n");
}

static void plant_iwarp(void)
{
	plant(DIR "siw0/node_type", "4: RNIC\n");
	plant(DIR "siw0/parent", "eth0\n");
	plant(DIR "siw0/ports/1/state", "4: ACTIVE\n");
	plant(DIR "siw0/ports/1/link_layer", "Ethernet\n");
}

static void expect(const char *id, enum level level)
{
	const struct finding *x = finding_find(&found, id);

	assert_non_null(x);
	assert_string_equal(level_name(x->level), level_name(level));
}

static void judge(void)
{
	found = (struct findings){0};
	rdma_judge(&list, &found);
}

static void test_read(void **state)
{
	const struct source s = {test_root};

	(void)state;
	plant_mlx();
	plant_rxe();
	plant_iwarp();
	rdma_read(&s, NULL, &list);
	assert_int_equal(list.n, 3);
	assert_string_equal(list.dev[0].name, "mlx5_0");
	assert_string_equal(list.dev[0].driver, "mlx5_core");
	assert_int_equal(list.dev[0].nports, 1);
	assert_int_equal(list.dev[0].ngids, 3); /* the empty one is not there */
	assert_int_equal(list.dev[0].gid[2].index, 3);
	assert_string_equal(list.dev[0].port[0].netdev, "eth1");
	assert_int_equal(list.dev[0].port[0].netdev_mtu, 4200);
	assert_int_equal(list.dev[0].port[0].out_of_buffer, 3);
	assert_int_equal(list.dev[0].port[0].rcv_pkts, 100000);
	assert_true(list.dev[0].port[0].counts);
	assert_false(list.dev[1].port[0].counts);
	assert_string_equal(list.dev[1].driver, "rdma_rxe");
	assert_string_equal(list.dev[1].port[0].netdev, "eth0");
	rdma_read(&s, "rxe0", &list);
	assert_int_equal(list.n, 1);
	assert_string_equal(list.dev[0].name, "rxe0");
}

static void test_judge(void **state)
{
	const struct source s = {test_root};

	(void)state;
	rdma_read(&s, NULL, &list);
	list.dev[0].opened = 0;
	list.dev[1].opened = -EPERM;
	judge();
	expect("rdma-mlx5_0-port1", LEVEL_OK);
	expect("rdma-mlx5_0-gid1", LEVEL_OK);
	assert_non_null(strstr(finding_find(&found, "rdma-mlx5_0-gid1")->what, "GID 3"));
	expect("rdma-mlx5_0-mtu1", LEVEL_OK);
	expect("rdma-mlx5_0-drops1", LEVEL_NOTE);
	assert_null(finding_find(&found, "rdma-rxe0-drops1"));
	expect("rdma-mlx5_0-uc", LEVEL_OK);
	expect("rdma-mlx5_0-open", LEVEL_OK);
	expect("rdma-rxe0-port1", LEVEL_ATTENTION);
	assert_string_equal(finding_find(&found, "rdma-rxe0-port1")->fix,
			    "sudo ip link set eth0 up");
	expect("rdma-rxe0-gid1", LEVEL_ATTENTION);
	expect("rdma-rxe0-mtu1", LEVEL_NOTE);
	assert_non_null(strstr(finding_find(&found, "rdma-rxe0-mtu1")->what, "1024 B"));
	expect("rdma-rxe0-uc", LEVEL_OK);
	expect("rdma-rxe0-open", LEVEL_ATTENTION);
	expect("rdma-siw0-uc", LEVEL_ATTENTION);
	expect("rdma-siw0-open", LEVEL_SKIPPED);
	assert_null(finding_find(&found, "rdma-siw0-gid1"));
	list.dev[0].port[0].icrc_errors = 5000;
	list.dev[1].opened = -ENOMEM;
	judge();
	expect("rdma-mlx5_0-drops1", LEVEL_ATTENTION);
	assert_non_null(strstr(finding_find(&found, "rdma-rxe0-open")->fix, "ulimit -l unlimited"));
	list.dev[0].opened = -ENODEV; /* a build without libibverbs */
	list.dev[2].listed = 1;	      /* the library knows better than our table */
	judge();
	expect("rdma-mlx5_0-open", LEVEL_NOTE);
	expect("rdma-siw0-uc", LEVEL_OK);
}

static void test_none(void **state)
{
	(void)state;
	list = (struct rdma_list){.kernel_has_rxe = 1, .netdev = "ens3"};
	judge();
	expect("rdma", LEVEL_NOTE);
	assert_string_equal(finding_find(&found, "rdma")->fix,
			    "sudo rdma link add rxe0 type rxe netdev ens3");
	list.kernel_has_rxe = 0;
	judge();
	assert_null(strstr(finding_find(&found, "rdma")->fix, "rdma link add"));
}

static void test_gids(void **state)
{
	struct rdma_gid g = {.gid = "0000:0000:0000:0000:0000:ffff:0a01:0203", .type = "RoCE v2"};

	(void)state;
	assert_true(gid_is_routable(&g));
	strcpy(g.type, "IB/RoCE v1");
	assert_false(gid_is_routable(&g));
	strcpy(g.type, "RoCE v2");
	strcpy(g.gid, "fe80:0000:0000:0000:0202:c9ff:fe00:0001");
	assert_false(gid_is_routable(&g));
	strcpy(g.gid, "2001:0db8:0000:0000:0000:0000:0000:0001");
	assert_true(gid_is_routable(&g));
	strcpy(g.gid, "0000:0000:0000:0000:0000:0000:0000:0000");
	assert_false(gid_is_routable(&g));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_judge),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_gids),
	};

	return cmocka_run_group_tests(tests, root_make, root_remove);
}

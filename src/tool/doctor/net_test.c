// SPDX-License-Identifier: Apache-2.0
/*
 * The network's facts read from planted files; buffers, offloads, drops, ports, devices and
 * sizes judged at each level that they can have.
 */
#include "tool/doctor/dev.h"
#include "tool/doctor/net.h"
#include "tool/doctor/size.h"

#include <sdr/sdr.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tool/doctor/test_root.h"

static struct findings found;
static const struct goal gigabit = {.bw_bps = UINT64_C(1000000000),
				    .rtt_ns = UINT64_C(100000000),
				    .chunk_pkts = 4,
				    .message_bytes = 1 << 20};

static struct net_facts good(void)
{
	struct net_facts n = {
		.rcvbuf = {SOCKBUF_WISH, SOCKBUF_WISH, SOCKBUF_WISH, 0},
		.sndbuf = {SOCKBUF_WISH, SOCKBUF_WISH, SOCKBUF_WISH, 0},
		.gso = {.sent_pkts = 11, .received_pkts = 11, .equal = 1},
		.gro = {.sent_pkts = 11, .reads = 1, .equal = 1},
		.udp = {.in = 1000000, .known = 1},
		.softnet = {.processed = 1000000, .cpus = 2},
		.max_backlog = 1000,
		.budget = 300,
		.port = 4792,
	};

	return n;
}

static const struct finding *judged(const struct net_facts *n, const char *id)
{
	const struct finding *x;

	found = (struct findings){0};
	net_judge(n, &gigabit, 0, &found);
	x = finding_find(&found, id);
	assert_non_null(x);
	return x;
}

static void expect(const struct net_facts *n, const char *id, enum level level)
{
	assert_string_equal(level_name(judged(n, id)->level), level_name(level));
}

static void test_good_net(void **state)
{
	struct net_facts n = good();

	(void)state;
	judged(&n, "rcvbuf");
	assert_int_equal(found.count[LEVEL_OK], found.n);
}

static void test_buffers(void **state)
{
	struct goal slow = gigabit, fast = gigabit;
	struct net_facts n = good();

	(void)state;
	slow.rtt_ns = 1000000;
	fast.bw_bps *= 100;
	assert_int_equal(sockbuf_need(&gigabit), 12500000);
	assert_int_equal(sockbuf_need(&slow), 125000);
	assert_int_equal(sockbuf_need(&fast), SOCKBUF_WISH);

	n.rcvbuf = (struct sockbuf_facts){SOCKBUF_WISH, 212992, 212992, 0};
	n.sndbuf = n.rcvbuf;
	expect(&n, "rcvbuf", LEVEL_ATTENTION);
	expect(&n, "sndbuf", LEVEL_ATTENTION);
	assert_string_equal(judged(&n, "rcvbuf")->fix, "sudo sysctl -w net.core.rmem_max=16777216");
	assert_string_equal(judged(&n, "sndbuf")->fix, "sudo sysctl -w net.core.wmem_max=16777216");
	assert_non_null(
		strstr(judged(&n, "rcvbuf")->evidence, "/proc/sys/net/core/rmem_max = 212992"));
	n.sndbuf.granted_bytes = 1 << 20;
	expect(&n, "sndbuf", LEVEL_NOTE);
	n.rcvbuf = (struct sockbuf_facts){SOCKBUF_WISH, SOCKBUF_WISH, 212992, 1};
	expect(&n, "rcvbuf", LEVEL_OK);
	n.rcvbuf.granted_bytes = 0;
	expect(&n, "rcvbuf", LEVEL_FAULT);
}

static void test_offload(void **state)
{
	struct net_facts n = good();

	(void)state;
	n.gso.error = -EIO;
	expect(&n, "gso", LEVEL_ATTENTION);
	n.gso.error = 0;
	n.gso.equal = 0;
	expect(&n, "gso", LEVEL_FAULT);
	n.gro.reads = 11;
	expect(&n, "gro", LEVEL_NOTE);
	n.gro.equal = 0;
	expect(&n, "gro", LEVEL_FAULT);
	n.gro.error = -ENOPROTOOPT;
	expect(&n, "gro", LEVEL_ATTENTION);
	n.gso.no_loopback = n.gro.no_loopback = -ENETUNREACH;
	expect(&n, "gso", LEVEL_ATTENTION);
	assert_string_equal(judged(&n, "gso")->fix, "sudo ip link set lo up");
	expect(&n, "gro", LEVEL_SKIPPED);
}

static void test_drops(void **state)
{
	struct net_facts n = good();

	(void)state;
	n.udp.rcvbuf_errors = n.udp.in_errors = 3;
	expect(&n, "udp-drops", LEVEL_NOTE);
	expect(&n, "udp-errors", LEVEL_OK); /* the same ones */
	n.udp.rcvbuf_errors = n.udp.in_errors = 5000;
	expect(&n, "udp-drops", LEVEL_ATTENTION);
	n = good();
	n.udp.csum_errors = n.udp.in_errors = 1;
	expect(&n, "udp-errors", LEVEL_NOTE);
	n.udp.csum_errors = n.udp.in_errors = 5000;
	expect(&n, "udp-errors", LEVEL_ATTENTION);
	n = good();
	n.udp.sndbuf_errors = 1;
	expect(&n, "udp-errors", LEVEL_NOTE);
	n.udp.known = 0;
	expect(&n, "udp-drops", LEVEL_SKIPPED);
}

static void test_softnet(void **state)
{
	struct net_facts n = good();

	(void)state;
	n.softnet.dropped = 1;
	expect(&n, "softnet", LEVEL_NOTE);
	n.softnet.dropped = 10000;
	expect(&n, "softnet", LEVEL_ATTENTION);
	assert_non_null(strstr(judged(&n, "softnet")->fix, "netdev_max_backlog=16384"));
	n.softnet.dropped = 0;
	n.softnet.squeezed = 50000;
	expect(&n, "softnet", LEVEL_NOTE);
	assert_non_null(strstr(judged(&n, "softnet")->fix, "netdev_budget=600"));
	n.softnet.cpus = 0;
	expect(&n, "softnet", LEVEL_SKIPPED);
}

static void test_ports(void **state)
{
	struct net_facts n = good();

	(void)state;
	n.udp_port = n.tcp_port = (struct port_facts){1, 77, 4711, "sdr"};
	expect(&n, "port", LEVEL_OK);
	strcpy(n.udp_port.comm, "nc");
	expect(&n, "port", LEVEL_ATTENTION);
	assert_non_null(strstr(judged(&n, "port")->what, "nc (pid 4711)"));
	n.udp_port.taken = 0;
	expect(&n, "port", LEVEL_ATTENTION);
	n.roce_port = (struct port_facts){1, 78, 0, ""};
	n.sees_others = 1;
	expect(&n, "port-roce", LEVEL_OK);
	n.roce_port.pid = 5;
	expect(&n, "port-roce", LEVEL_NOTE);
}

/* ---- reading -------------------------------------------------------------------- */

static void plant_counters(void)
{
	plant("/proc/sys/net/core/rmem_max", "212992\n");
	plant("/proc/sys/net/core/wmem_max", "212993\n");
	plant("/proc/sys/net/core/netdev_max_backlog", "1000\n");
	plant("/proc/sys/net/core/netdev_budget", "300\n");
	plant("/proc/net/snmp",
	      "Icmp: InMsgs InErrors\nIcmp: 9 8\n"
	      "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors "
	      "InCsumErrors IgnoredMulti MemErrors\nUdp: 100 2 7 50 5 1 2 0 0\n"
	      "UdpLite: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdpLite: 1 1 1 1 "
	      "1\n");
	plant("/proc/net/snmp6", "Ip6InReceives \t 4\nUdp6InDatagrams  \t1000\nUdp6InErrors \t3\n"
				 "Udp6RcvbufErrors\t 3\nUdpLite6InErrors\t9\n");
	plant("/proc/net/softnet_stat", "000000ff 00000002 00000001 00000000 00000000\n"
					"00000001 00000003 00000000 00000000 00000000\n");
}

static void plant_ports(void)
{
	static const char head[] = "  sl  local_address rem_address   st tx_queue rx_queue tr "
				   "tm->when retrnsmt   uid  timeout inode ref pointer drops\n";
	char text[2048];

	/* 4792 is 12B8, 4791 is 12B7; a connected socket of that port is no listener. */
	snprintf(text, sizeof text,
		 "%s  101: 0100007F:12B8 0100007F:C350 01 00000000:00000000 00:00000000 00000000   "
		 "  "
		 "0        0 555 2 0000000000000000 0\n"
		 "  102: 00000000:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000     "
		 "0  "
		 "      0 9001 2 0000000000000000 0\n",
		 head);
	plant("/proc/net/udp", text);
	snprintf(text, sizeof text,
		 "%s  103: 00000000000000000000000000000000:12B8 "
		 "00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000  "
		 "   "
		 "0        0 9002 2 0000000000000000 0\n",
		 head);
	plant("/proc/net/udp6", text);
	snprintf(text, sizeof text,
		 "%s   0: 0100007F:12B8 0100007F:C350 01 00000000:00000000 00:00000000 00000000    "
		 " 0  "
		 "      0 9003 1 0000000000000000 20 4 30 10 -1\n",
		 head);
	plant("/proc/net/tcp", text);
	plant_link("/proc/321/fd/7", "socket:[9002]");
	plant_link("/proc/321/fd/8", "/dev/null");
	plant("/proc/321/comm", "netcat\n");
}

static void test_read(void **state)
{
	const struct source s = {test_root};
	struct net_facts n = {0};

	(void)state;
	plant_counters();
	plant_ports();
	net_read(&s, 4792, &n);
	assert_int_equal(n.rcvbuf.limit_bytes, 212992);
	assert_int_equal(n.sndbuf.limit_bytes, 212993);
	assert_int_equal(n.max_backlog, 1000);
	assert_true(n.udp.known);
	assert_int_equal(n.udp.in, 1100);
	assert_int_equal(n.udp.in_errors, 10);
	assert_int_equal(n.udp.rcvbuf_errors, 8);
	assert_int_equal(n.udp.sndbuf_errors, 1);
	assert_int_equal(n.udp.csum_errors, 2);
	assert_int_equal(n.softnet.processed, 256);
	assert_int_equal(n.softnet.dropped, 5);
	assert_int_equal(n.softnet.squeezed, 1);
	assert_int_equal(n.softnet.cpus, 2);
	assert_true(n.udp_port.taken);
	assert_int_equal(n.udp_port.inode, 9002);
	assert_int_equal(n.udp_port.pid, 321);
	assert_string_equal(n.udp_port.comm, "netcat");
	assert_false(n.tcp_port.taken); /* a connection, no listener */
	assert_true(n.roce_port.taken);
	assert_int_equal(n.roce_port.pid, 0);
}

static void test_default_device(void **state)
{
	const struct source s = {test_root};
	char names[DEVS_MAX][SOURCE_NAME];
	struct dev_facts d;

	(void)state;
	plant("/sys/class/net/lo/operstate", "unknown\n");
	plant("/sys/class/net/sdrt0/operstate", "up\n");
	plant("/sys/class/net/sdrt1/operstate", "down\n");
	assert_int_equal(dev_default(&s, names, DEVS_MAX), 1); /* no route: what is up */
	assert_string_equal(names[0], "sdrt0");
	plant("/proc/net/route", "Iface\tDestination\tGateway "
				 "\tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
				 "sdrt2\t000AA8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
				 "sdrt1\t00000000\t010AA8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n");
	plant("/proc/net/ipv6_route",
	      "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
	      "fe800000000000000000000000000001 00000400 00000001 00000000 00000003    sdrt3\n"
	      "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
	      "00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n");
	assert_int_equal(dev_default(&s, names, DEVS_MAX), 2);
	assert_string_equal(names[0], "sdrt1");
	assert_string_equal(names[1], "sdrt3");

	plant("/sys/class/net/sdrt0/mtu", "9000\n");
	plant("/sys/class/net/sdrt0/speed", "25000\n");
	plant("/sys/class/net/sdrt0/statistics/rx_missed_errors", "12\n");
	plant("/sys/class/net/sdrt0/statistics/rx_packets", "1200\n");
	plant_link("/sys/class/net/sdrt0/device/driver", "../../bus/pci/drivers/mlx5_core");
	dev_read(&s, "sdrt0", &d);
	assert_true(d.up);
	assert_int_equal(d.mtu, 9000);
	assert_int_equal(d.speed_bps, UINT64_C(25000000000));
	assert_int_equal(d.rx_missed, 12);
	assert_int_equal(d.rx_pkts, 1200);
	assert_string_equal(d.driver, "mlx5_core");
	assert_int_equal(d.gso.on, -1); /* the kernel knows no such device */
	plant("/sys/class/net/sdrt0/speed", "-1\n");
	dev_read(&s, "sdrt0", &d);
	assert_int_equal(d.speed_bps, 0);
}

/* ---- devices -------------------------------------------------------------------- */

static struct dev_facts good_dev(void)
{
	struct dev_facts d = {.name = "eth0",
			      .up = 1,
			      .mtu = 1500,
			      .speed_bps = UINT64_C(1000000000),
			      .tso = {1, 1},
			      .gso = {1, 1},
			      .gro = {1, 1},
			      .udp_segmentation = {1, 1},
			      .ring_rx = 256,
			      .ring_rx_max = 4096,
			      .rx_pkts = 1000000};

	return d;
}

static enum level dev_level(const struct dev_facts *d, const struct goal *goal, const char *id)
{
	const struct finding *x;

	found = (struct findings){0};
	dev_judge(d, goal, &found);
	x = finding_find(&found, id);
	assert_non_null(x);
	return x->level;
}

static void test_devices(void **state)
{
	struct dev_facts d = good_dev();
	struct goal more = gigabit;

	(void)state;
	more.bw_bps *= 10;
	assert_int_equal(dev_level(&d, &gigabit, "dev-eth0-link"), LEVEL_OK);
	assert_int_equal(found.count[LEVEL_OK], found.n);
	assert_int_equal(dev_level(&d, &more, "dev-eth0-link"), LEVEL_NOTE);
	more.bw_given = 1;
	assert_int_equal(dev_level(&d, &more, "dev-eth0-link"), LEVEL_ATTENTION);
	d.mtu = 1000;
	assert_int_equal(dev_level(&d, &gigabit, "dev-eth0-mtu"), LEVEL_ATTENTION);
	d.mtu = 1500;
	d.speed_bps = UINT64_C(100000000000);
	assert_int_equal(dev_level(&d, &gigabit, "dev-eth0-mtu"), LEVEL_NOTE);
	d.gso.on = d.gro.on = d.udp_segmentation.on = 0;
	assert_int_equal(dev_level(&d, &gigabit, "dev-eth0-gso"), LEVEL_ATTENTION);
	assert_int_equal(dev_level(&d, &gigabit, "dev-eth0-gro"), LEVEL_ATTENTION);
	assert_int_equal(dev_level(&d, &gigabit, "dev-eth0-uso"), LEVEL_ATTENTION);
	assert_non_null(strstr(finding_find(&found, "dev-eth0-gro")->fix,
			       "sudo ethtool -K eth0 generic-receive-offload on"));
	d.software = 1;
	assert_int_equal(dev_level(&d, &gigabit, "dev-eth0-gro"), LEVEL_NOTE);
	d.udp_segmentation.settable = 0;
	assert_int_equal(dev_level(&d, &gigabit, "dev-eth0-uso"), LEVEL_OK);
	d.udp_segmentation.on = -1;
	assert_int_equal(dev_level(&d, &gigabit, "dev-eth0-uso"), LEVEL_SKIPPED);
	d.up = 0;
	assert_int_equal(dev_level(&d, &gigabit, "dev-eth0-link"), LEVEL_FAULT);
}

static void test_device_drops(void **state)
{
	struct dev_facts d = good_dev();

	(void)state;
	d.rx_missed = 3;
	assert_int_equal(dev_level(&d, &gigabit, "dev-eth0-drops"), LEVEL_NOTE);
	d.rx_missed = 5000;
	assert_int_equal(dev_level(&d, &gigabit, "dev-eth0-drops"), LEVEL_ATTENTION);
	assert_string_equal(finding_find(&found, "dev-eth0-drops")->fix,
			    "sudo ethtool -G eth0 rx 4096");
	d.rx_missed = 0;
	d.rx_errors = 9000;
	assert_int_equal(dev_level(&d, &gigabit, "dev-eth0-drops"), LEVEL_ATTENTION);
	d.rx_errors = 0;
	d.rx_dropped = 100000; /* of protocols that nobody wants */
	assert_int_equal(dev_level(&d, &gigabit, "dev-eth0-drops"), LEVEL_OK);
}

/* ---- sizes ---------------------------------------------------------------------- */

static enum level size_level(uint32_t mtu, const struct goal *goal, const char *id)
{
	struct size_facts s = {.mtu = mtu, .fits_bytes = mtu > 64 ? (mtu - 64) & ~3u : 0};
	const struct finding *x;

	found = (struct findings){0};
	size_judge(&s, goal, &found);
	x = finding_find(&found, id);
	assert_non_null(x);
	return x->level;
}

static void test_payload(void **state)
{
	struct goal g = gigabit;

	(void)state;
	assert_int_equal(size_level(1500, &g, "payload"), LEVEL_OK);
	assert_non_null(strstr(finding_find(&found, "payload")->what, "93.4 %"));
	g.payload_bytes = 1472; /* a user's guess: the headers are not in it */
	assert_int_equal(size_level(1500, &g, "payload"), LEVEL_FAULT);
	assert_non_null(strstr(finding_find(&found, "payload")->fix, "--payload 1436"));
	g.payload_bytes = 256;
	assert_int_equal(size_level(1500, &g, "payload"), LEVEL_ATTENTION);
	g.payload_bytes = 0;
	found = (struct findings){0};
	size_judge(&(struct size_facts){.mtu = 60}, &g, &found);
	assert_int_equal(finding_find(&found, "payload")->level, LEVEL_FAULT);
}

static void test_alignment(void **state)
{
	struct goal g = gigabit;

	(void)state;
	assert_int_equal(size_level(1500, &g, "alignment"), LEVEL_OK);
	assert_non_null(strstr(finding_find(&found, "alignment")->evidence,
			       "182 chunks of 4 x 1436 B and 3168 B; 731 packets"));
	g.message_bytes = 8192;
	assert_int_equal(size_level(1500, &g, "alignment"), LEVEL_OK);
	g.message_bytes = 4096; /* 3 packets for 2.85 */
	g.payload_bytes = 1364; /* 3.003: a fourth packet of 4 bytes */
	assert_int_equal(size_level(1500, &g, "alignment"), LEVEL_NOTE);
	g.payload_bytes = 0;
	g.message_bytes = 1437; /* a second packet of one byte */
	assert_int_equal(size_level(1500, &g, "alignment"), LEVEL_ATTENTION);
	g.message_bytes = 1 << 20;
	g.payload_bytes = 1024;
	assert_int_equal(size_level(1500, &g, "alignment"), LEVEL_OK);
	assert_non_null(strstr(finding_find(&found, "alignment")->what, "are whole"));
}

static void test_roce_mtu(void **state)
{
	(void)state;
	assert_int_equal(size_roce_mtu(1500, 0), 1024);
	assert_int_equal(size_roce_mtu(4159, 0), 2048);
	assert_int_equal(size_roce_mtu(4160, 0), 4096);
	assert_int_equal(size_roce_mtu(4160, 1), 2048);
	assert_int_equal(size_roce_mtu(4180, 1), 4096);
	assert_int_equal(size_roce_mtu(300, 0), 0);
	assert_int_equal(size_level(1500, &gigabit, "roce-mtu"), LEVEL_OK);
	assert_non_null(strstr(finding_find(&found, "roce-mtu")->what, "1024 B"));
}

/* What this file assumes of the library's headers. */
static void test_headers(void **state)
{
	(void)state;
	assert_int_equal(sdr_payload_for_mtu(1500, 0), 1436);
	assert_int_equal(sdr_payload_for_mtu(1500, 1), 1416);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_net), cmocka_unit_test(test_buffers),
		cmocka_unit_test(test_offload),	 cmocka_unit_test(test_drops),
		cmocka_unit_test(test_softnet),	 cmocka_unit_test(test_ports),
		cmocka_unit_test(test_read),	 cmocka_unit_test(test_default_device),
		cmocka_unit_test(test_devices),	 cmocka_unit_test(test_device_drops),
		cmocka_unit_test(test_payload),	 cmocka_unit_test(test_alignment),
		cmocka_unit_test(test_roce_mtu), cmocka_unit_test(test_headers),
	};

	return cmocka_run_group_tests(tests, root_make, root_remove);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The path and the checklist judged from planted measurements, at each level; and that
 * what is printed fits a terminal of 100 columns.
 */
#include "tool/doctor/path.h"

#include "tool/doctor/checklist.h"
#include "tool/doctor/print.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static struct findings found;
static const struct net_facts buffers = {.rcvbuf = {SOCKBUF_WISH, SOCKBUF_WISH, SOCKBUF_WISH, 0}};
static struct goal goal = {.bw_bps = UINT64_C(1000000000),
			   .rtt_ns = UINT64_C(50000000),
			   .bw_given = 1,
			   .chunk_pkts = 4,
			   .message_bytes = 1 << 20};

static struct path_facts good(void)
{
	struct path_facts p = {
		.target = "192.0.2.7:4792",
		.local = "192.0.2.1",
		.peer = "192.0.2.7",
		.dev = "eth0",
		.route_mtu = 1500,
		.pings_sent = 20,
		.pings_answered = 20,
		.rtt_min_ns = 50000000,
		.rtt_median_ns = 51000000,
		.trains_sent = 3,
		.trains_seen = 3,
		.train_bps = 900000000,
		.server = PATH_SERVER_PERF,
		.payload_bytes = 1436,
		.full_tried = 1,
		.full_arrived = 1,
		.out = {.done = 1,
			.bytes = 16 << 20,
			.ns = 1000000000,
			.rate_found = 1,
			.cpu = 0.3,
			.second_half_bps = 9e8},
		.echo = {.done = 1, .bytes = 2 << 20},
	};

	p.out.conn.payload_bytes = 1436;
	p.out.conn.tx_pkts = 11684;
	p.echo.conn.recvs_done = 32;
	p.echo.counter[SDR_CTR_rx_pkts] = 20000;
	return p;
}

static const struct finding *judged(const struct path_facts *p, const char *id)
{
	const struct finding *x;

	found = (struct findings){0};
	path_judge(p, &goal, &buffers, UINT64_C(1000000000), 0, &found);
	x = finding_find(&found, id);
	assert_non_null(x);
	return x;
}

static void expect(const struct path_facts *p, const char *id, enum level level)
{
	assert_string_equal(level_name(judged(p, id)->level), level_name(level));
}

static void test_good_path(void **state)
{
	struct path_facts p = good();

	(void)state;
	expect(&p, "udp-path", LEVEL_OK);
	assert_false(findings_need_attention(&found));
	assert_int_equal(found.count[LEVEL_NOTE], 0);
	assert_int_equal(found.count[LEVEL_SKIPPED], 1); /* "decode" */
	expect(&p, "decode", LEVEL_SKIPPED);
}

static void test_unreached(void **state)
{
	struct path_facts p = good();

	(void)state;
	p.status = -SDR_E_NO_UDP;
	strcpy(p.text, "TCP reached 192.0.2.7:4792, 0 of 12 UDP packets came back within 5 s");
	expect(&p, "udp-path", LEVEL_FAULT);
	expect(&p, "tcp", LEVEL_OK);
	assert_non_null(strstr(judged(&p, "udp-path")->evidence, "0 of 12 UDP packets"));
	assert_non_null(strstr(judged(&p, "udp-path")->fix, "udp dport 4792 accept"));
	p.status = -ECONNREFUSED;
	expect(&p, "tcp", LEVEL_FAULT);
	assert_non_null(strstr(judged(&p, "tcp")->fix, "sdr perf --port 4792"));
	p.status = -ETIMEDOUT;
	expect(&p, "tcp", LEVEL_FAULT);
	p.status = -ENXIO;
	expect(&p, "connect", LEVEL_FAULT);
	assert_string_equal(judged(&p, "connect")->fix, "getent hosts 192.0.2.7");
	p.status = -SDR_E_VERSION;
	expect(&p, "connect", LEVEL_FAULT);
	/* The checklist is still answered. */
	expect(&p, "bitmaps", LEVEL_SKIPPED);
	expect(&p, "generations", LEVEL_SKIPPED);
	expect(&p, "line-rate", LEVEL_SKIPPED);
}

static void test_no_host(void **state)
{
	(void)state;
	expect(NULL, "path", LEVEL_SKIPPED);
	expect(NULL, "bitmaps", LEVEL_SKIPPED);
	expect(NULL, "decode", LEVEL_SKIPPED);
	assert_false(findings_need_attention(&found));
}

static void test_pings_and_trains(void **state)
{
	struct path_facts p = good();

	(void)state;
	p.pings_answered = 19;
	expect(&p, "udp-path", LEVEL_NOTE);
	p.pings_answered = 15;
	expect(&p, "udp-path", LEVEL_ATTENTION);
	p.trains_seen = 0;
	expect(&p, "middle-packet", LEVEL_ATTENTION);
	p.trains_sent = 0;
	expect(&p, "middle-packet", LEVEL_SKIPPED);
}

static void test_full_packets(void **state)
{
	struct path_facts p = good();

	(void)state;
	p.full_arrived = 0;
	p.passes_mtu = 1280;
	p.passes_payload = 1216;
	expect(&p, "full-packet", LEVEL_FAULT);
	assert_non_null(strstr(judged(&p, "full-packet")->fix, "sdr perf --payload 1216"));
	p.passes_mtu = p.passes_payload = 0;
	expect(&p, "full-packet", LEVEL_FAULT);
	p = good();
	p.out.conn.payload_bytes = 1216;
	expect(&p, "full-packet", LEVEL_NOTE);
	p = good();
	p.full_tried = 0;
	p.server = PATH_SERVER_REFUSES;
	expect(&p, "full-packet", LEVEL_SKIPPED);
}

static void test_loss(void **state)
{
	struct path_facts p = good();

	(void)state;
	p.out.conn.tx_lost_pkts = 20;
	expect(&p, "loss", LEVEL_NOTE);
	p.out.conn.tx_lost_pkts = 2000;
	expect(&p, "loss", LEVEL_ATTENTION);
	p.rtt_median_ns = 50000; /* cannot be told from a pause */
	expect(&p, "loss", LEVEL_NOTE);
	p = good();
	p.out.conn.tx_lost_pkts = 500;
	p.out.conn.tx_spurious_pkts = 500; /* all of them were only late */
	expect(&p, "loss", LEVEL_OK);
	expect(&p, "reordering", LEVEL_NOTE);
}

static void test_host_drops(void **state)
{
	struct path_facts p = good();

	(void)state;
	expect(&p, "drops-here", LEVEL_OK);
	p.udp.rcvbuf_errors = 7;
	expect(&p, "drops-here", LEVEL_ATTENTION);
	p.out.conn.peer_host_drops = 9;
	expect(&p, "drops-there", LEVEL_ATTENTION);
	p.out.counter[SDR_CTR_gso_fallback] = 1;
	expect(&p, "gso-path", LEVEL_ATTENTION);
	p.caps = SDR_CAP_ROCEV2 | SDR_CAP_SILENT_LATE;
	judged(&p, "tcp");
	assert_null(finding_find(&found, "gso-path"));
	assert_null(finding_find(&found, "drops-here"));
}

static void test_nat(void **state)
{
	struct path_facts p = good();

	(void)state;
	expect(&p, "nat", LEVEL_OK);
	strcpy(p.local, "10.1.2.3");
	expect(&p, "nat", LEVEL_NOTE);
	strcpy(p.peer, "192.168.9.9");
	expect(&p, "nat", LEVEL_OK);
	p.local[0] = '\0';
	expect(&p, "nat", LEVEL_SKIPPED);
	assert_true(address_is_private("172.16.0.1"));
	assert_false(address_is_private("172.32.0.1"));
	assert_true(address_is_private("100.64.0.1"));
	assert_true(address_is_private("fd00::1"));
	assert_false(address_is_private("2001:db8::1"));
}

static void test_bitmaps(void **state)
{
	struct path_facts p = good();

	(void)state;
	expect(&p, "bitmaps", LEVEL_OK);
	p.echo.counter[SDR_CTR_rx_duplicate] = 1500;
	expect(&p, "bitmaps", LEVEL_NOTE);
	p.echo.counter[SDR_CTR_rx_protection] = 1;
	expect(&p, "bitmaps", LEVEL_NOTE);
	p.echo.counter[SDR_CTR_rx_protection] = 10;
	expect(&p, "bitmaps", LEVEL_ATTENTION);
	p.echo.counter[SDR_CTR_rx_protection] = 0;
	p.echo.counter[SDR_CTR_rx_range] = 1;
	expect(&p, "bitmaps", LEVEL_ATTENTION);
	p.echo_bad = 1;
	expect(&p, "bitmaps", LEVEL_FAULT);
	p.echo.done = 0;
	expect(&p, "bitmaps", LEVEL_SKIPPED);
}

static void test_selftest(void **state)
{
	struct selftest_facts t = {.bytes = 16 << 20, .chunks = 2900, .workers = 1};

	(void)state;
	found = (struct findings){0};
	checklist_selftest(&t, &found);
	assert_int_equal(found.list[0].level, LEVEL_OK);
	t.early = 1;
	checklist_selftest(&t, &found);
	assert_int_equal(found.list[1].level, LEVEL_FAULT);
	t.error = -EPERM;
	checklist_selftest(&t, &found);
	assert_int_equal(found.list[2].level, LEVEL_SKIPPED);
}

static void test_generations(void **state)
{
	struct path_facts p = good();

	(void)state;
	expect(&p, "generations", LEVEL_OK);
	assert_non_null(strstr(judged(&p, "generations")->evidence, "32 bits"));
	p.echo.counter[SDR_CTR_rx_late] = 5;
	expect(&p, "generations", LEVEL_NOTE);
	p.echo.counter[SDR_CTR_rx_late] = 900;
	expect(&p, "generations", LEVEL_ATTENTION);
	p.caps = SDR_CAP_ROCEV2;
	expect(&p, "generations", LEVEL_ATTENTION);
	assert_non_null(strstr(judged(&p, "generations")->fix, "messages = 1024"));
	p.caps |= SDR_CAP_SILENT_LATE;
	expect(&p, "generations", LEVEL_SKIPPED);
}

static void test_line_rate(void **state)
{
	struct path_facts p = good();
	const struct finding *x;

	(void)state;
	expect(&p, "line-rate", LEVEL_OK);
	p.out.second_half_bps = 3e8;
	expect(&p, "line-rate", LEVEL_ATTENTION);
	p.out.cpu = 0.97;
	p.out.conn.peer_host_drops = 4;
	x = judged(&p, "line-rate");
	assert_non_null(strstr(x->why, "(1) socket buffers"));
	assert_non_null(strstr(x->why, "(2) this process kept its CPU 97 % busy"));
	p.load = 4;
	x = judged(&p, "line-rate");
	assert_non_null(strstr(x->why, "(3) others want this host's CPUs: 4.0 for each"));
	goal.bw_given = 0;
	p.out.rate_found = 0;
	expect(&p, "line-rate", LEVEL_NOTE);
	found = (struct findings){0};
	path_judge(&p, &goal, &buffers, 0, 0, &found); /* a device without a speed */
	assert_int_equal(finding_find(&found, "line-rate")->level, LEVEL_NOTE);
	p.out.done = 0;
	expect(&p, "line-rate", LEVEL_SKIPPED);
	goal.bw_given = 1;
}

static void test_goal(void **state)
{
	struct path_facts p = good();
	struct goal g = {.bw_bps = 5, .rtt_ns = 6, .bw_given = 1};

	(void)state;
	path_goal(&p, &g);
	assert_int_equal(g.bw_bps, 5);
	assert_int_equal(g.rtt_ns, 51000000);
	g.bw_given = 0;
	path_goal(&p, &g);
	assert_int_equal(g.bw_bps, 900000000);
}

/* ---- printing ------------------------------------------------------------------- */

/* Everything that a bad path has to say. */
static void fill_badly(void)
{
	struct path_facts p = good();

	p.pings_answered = 12;
	p.trains_seen = 0;
	p.out.conn.tx_lost_pkts = 2000;
	p.out.conn.tx_spurious_pkts = 300;
	p.out.conn.peer_host_drops = p.out.conn.host_drops = 5;
	p.out.counter[SDR_CTR_gso_fallback] = 1;
	p.echo.counter[SDR_CTR_rx_range] = 1;
	p.echo.counter[SDR_CTR_rx_late] = 900;
	p.out.second_half_bps = 1e7;
	judged(&p, "tcp");
	p.full_arrived = 0;
	path_judge(&p, &goal, &buffers, 0, 0, &found);
	p.status = -SDR_E_NO_UDP;
	strcpy(p.text,
	       "TCP reached it, 0 of 12 UDP packets came back within 5.00 s: let UDP of the "
	       "same port through the firewalls on both hosts and between them");
	path_judge(&p, &goal, &buffers, 0, 0, &found);
	finding_evidence(finding_add(&found, "net", LEVEL_FAULT, "µ", "%s", "a µ is one column"),
			 "\033[31m is not obeyed");
}

static size_t captured(char *buf, size_t cap, int json)
{
	static const struct host_facts host = {.name = "h", .kernel = "6.1", .machine = "x86_64"};
	struct doctor_report r = {.f = &found, .goal = &goal, .host = &host, .net = &buffers};
	FILE *f = tmpfile();
	int out = dup(1);
	size_t n;

	fflush(stdout);
	dup2(fileno(f), 1);
	if (json)
		doctor_print_json(&r);
	else
		doctor_print_text(&r, 1, 0);
	fflush(stdout);
	dup2(out, 1);
	close(out);
	rewind(f);
	n = fread(buf, 1, cap - 1, f);
	buf[n] = '\0';
	fclose(f);
	return n;
}

static void test_width(void **state)
{
	static char text[65536];
	unsigned int wide = 0, lines = 0;

	(void)state;
	fill_badly();
	assert_true(captured(text, sizeof text, 0) > 2000);
	assert_null(strchr(text, '\033'));
	assert_non_null(strstr(text, "\\x1b[31m is not obeyed"));
	for (const char *p = text; *p; p++) {
		wide += ((unsigned char)*p & 0xc0) != 0x80;
		if (*p != '\n')
			continue;
		lines++;
		if (wide > 101)
			fail_msg("line %u has %u columns: %.*s", lines, wide - 1, (int)wide,
				 p - wide + 1);
		wide = 0;
	}
	assert_true(lines > 40);
}

static void test_json(void **state)
{
	static char text[65536];

	(void)state;
	fill_badly();
	captured(text, sizeof text, 1);
	assert_non_null(strstr(text, "\"verdict\": \"fault\""));
	assert_non_null(strstr(text, "\"id\": \"udp-path\", \"level\": \"fault\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_path),    cmocka_unit_test(test_unreached),
		cmocka_unit_test(test_no_host),	     cmocka_unit_test(test_pings_and_trains),
		cmocka_unit_test(test_full_packets), cmocka_unit_test(test_loss),
		cmocka_unit_test(test_host_drops),   cmocka_unit_test(test_nat),
		cmocka_unit_test(test_bitmaps),	     cmocka_unit_test(test_selftest),
		cmocka_unit_test(test_generations),  cmocka_unit_test(test_line_rate),
		cmocka_unit_test(test_goal),	     cmocka_unit_test(test_width),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

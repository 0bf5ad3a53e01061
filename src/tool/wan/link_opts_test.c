// SPDX-License-Identifier: Apache-2.0
/*
 * Link options: what they set and where, what depends on what, every mistake with its message, and
 * the way back to text and JSON.
 */
#include "tool/wan/link_opts.h"

#include "base/units.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* after those four */
#include <cmocka.h>

#define MS NS_PER_MS
#define WORDS 64
#define AT_NS (100 * NS_PER_S) /* options are obeyed at this time of the line */

static struct link_setup setup;
static char error[LINK_OPTS_ERROR];

/* Obeys a command line with single spaces. */
static int apply(const char *line)
{
	static char copy[8192];
	char *words[WORDS], *save = NULL;
	int n = 0;

	assert_true(strlen(line) < sizeof copy);
	strcpy(copy, line);
	error[0] = '\0';
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		assert_true(n < WORDS);
		words[n++] = w;
	}
	return link_opts_apply(&setup, AT_NS, n, words, error);
}

static void fresh(const char *line)
{
	link_setup_init(&setup);
	if (apply(line) != 0)
		fail_msg("%s: %s", line, error);
}

static const struct link_attr *attr(int from, int path)
{
	return &setup.config.path[from][path].attr;
}

static void assert_near(double a, double b)
{
	if (!(fabs(a - b) < 1e-9))
		fail_msg("%.12g is not %.12g", a, b);
}

/* ---- values ------------------------------------------------------------------------ */

static void test_defaults(void **state)
{
	struct wan_path zero;

	(void)state;
	memset(&zero, 0, sizeof zero);
	zero.attr.burst_idle_ns = LINK_BURST_IDLE_NS;
	fresh("");
	assert_int_equal(setup.config.n_paths, 1);
	assert_int_equal(setup.config.seed, 1);
	for (int from = WAN_A; from <= WAN_B; from++)
		for (unsigned int k = 0; k < LINK_MAX_PATHS; k++)
			assert_true(link_path_equal(&setup.config.path[from][k], &zero));
}

static void test_simple_values(void **state)
{
	(void)state;
	fresh("--rate 1Gbit --rtt 100ms --jitter 2ms --jitter-reorders --corrupt 1e-5 --cut "
	      "--path-mtu 1400 --blackhole --policer 10Mbit,64KB --reorder 1%,5ms --duplicate 2%");
	for (int from = WAN_A; from <= WAN_B; from++) {
		const struct link_attr *a = attr(from, 3);

		assert_int_equal(a->rate_bps, 1000000000);
		assert_int_equal(a->delay_ns, 50 * MS);
		assert_int_equal(a->jitter_ns, 2 * MS);
		assert_true(a->jitter_reorders);
		assert_near(a->corrupt_p, 1e-5);
		assert_true(a->cut);
		assert_int_equal(a->mtu_bytes, 1400);
		assert_true(setup.config.path[from][3].mtu_silent);
		assert_int_equal(a->policer.rate_bps, 10000000);
		assert_int_equal(a->policer.burst_bytes, 64000);
		assert_near(a->reorder_p, 0.01);
		assert_int_equal(a->reorder_ns, 5 * MS);
		assert_near(a->duplicate_p, 0.02);
		assert_int_equal(a->duplicate_ns, 0);
	}
	assert_int_equal(apply("--uncut --no-jitter-reorders --path-mtu any --policer none"), 0);
	assert_false(attr(WAN_A, 0)->cut);
	assert_false(attr(WAN_A, 0)->jitter_reorders);
	assert_int_equal(attr(WAN_A, 0)->mtu_bytes, 0);
	assert_false(setup.config.path[WAN_A][0].mtu_silent);
	assert_int_equal(attr(WAN_A, 0)->policer.rate_bps, 0);
	assert_int_equal(attr(WAN_A, 0)->jitter_ns, 2 * MS); /* the others stay */
	assert_int_equal(apply("--rate=unlimited --no-uncut"), 0);
	assert_int_equal(attr(WAN_A, 0)->rate_bps, 0);
	assert_true(attr(WAN_A, 0)->cut);
}

static void test_distance(void **state)
{
	(void)state;
	fresh("--km 6000");
	assert_int_equal(attr(WAN_A, 0)->delay_ns, 30 * MS);
	assert_int_equal(attr(WAN_B, 0)->delay_ns, 30 * MS);
	fresh("--rtt 101ns");
	assert_int_equal(attr(WAN_A, 0)->delay_ns + attr(WAN_B, 0)->delay_ns, 101);
	fresh("--delay 7ms --ab --rtt 20ms");
	assert_int_equal(attr(WAN_A, 0)->delay_ns, 10 * MS);
	assert_int_equal(attr(WAN_B, 0)->delay_ns, 7 * MS);
}

static void test_scopes(void **state)
{
	(void)state;
	fresh("--paths 3 --rtt 100ms --ab --loss 1% --ba --loss 0.1% --path 1 --cut "
	      "--both --path 2 --jitter 3ms --path all --ab --corrupt 50%");
	assert_near(attr(WAN_A, 0)->loss.loss_good, 0.01);
	assert_near(attr(WAN_B, 0)->loss.loss_good, 0.001);
	assert_near(attr(WAN_B, 15)->loss.loss_good, 0.001);
	for (int from = WAN_A; from <= WAN_B; from++) {
		for (int k = 0; k < 3; k++) {
			assert_int_equal(attr(from, k)->cut, from == WAN_B && k == 1);
			assert_int_equal(attr(from, k)->jitter_ns, k == 2 ? 3 * MS : 0);
			assert_near(attr(from, k)->corrupt_p, from == WAN_A ? 0.5 : 0);
		}
	}
}

static void test_default_queue(void **state)
{
	(void)state;
	fresh("--rate 1Gbit --rtt 100ms");
	assert_int_equal(attr(WAN_A, 0)->queue_ns, 100 * MS);
	assert_int_equal(attr(WAN_B, 0)->queue_ns, 100 * MS);
	assert_int_equal(apply("--ab --rtt 40ms"), 0); /* 20 ms there, 50 ms back */
	assert_int_equal(attr(WAN_A, 0)->queue_ns, 70 * MS);
	assert_int_equal(attr(WAN_B, 0)->queue_ns, 70 * MS);
	assert_int_equal(apply("--rtt 1ms"), 0);
	assert_int_equal(attr(WAN_A, 0)->queue_ns, LINK_QUEUE_LEAST_NS);
	assert_int_equal(apply("--rate 0"), 0);
	assert_int_equal(attr(WAN_A, 0)->queue_ns, 0);
	assert_int_equal(apply("--rate 100Mbit --ab --queue 64KiB"), 0);
	assert_int_equal(attr(WAN_A, 0)->queue_bytes, 65536);
	assert_int_equal(attr(WAN_A, 0)->queue_ns, 0);
	assert_int_equal(attr(WAN_B, 0)->queue_ns, LINK_QUEUE_LEAST_NS);
	assert_int_equal(apply("--rate 1Mbit"), 0); /* ten packets take longer */
	assert_int_equal(attr(WAN_B, 0)->queue_ns, 120 * MS);
	assert_int_equal(apply("--rate 100Mbit"), 0);
	assert_int_equal(apply("--rtt 1s"), 0); /* what was asked for stays */
	assert_int_equal(attr(WAN_A, 0)->queue_bytes, 65536);
	assert_int_equal(attr(WAN_B, 0)->queue_ns, 1000 * MS);
	assert_int_equal(apply("--queue 5ms"), 0);
	assert_int_equal(attr(WAN_A, 0)->queue_bytes, 0);
	assert_int_equal(attr(WAN_A, 0)->queue_ns, 5 * MS);
	assert_int_equal(apply("--queue unlimited --ecn 1ms"), 0);
	assert_int_equal(attr(WAN_A, 0)->queue_ns, 0);
	assert_int_equal(attr(WAN_A, 0)->ecn_ns, MS);
	assert_int_equal(apply("--queue default --ecn 1500"), 0);
	assert_int_equal(attr(WAN_A, 0)->queue_ns, 1000 * MS);
	assert_int_equal(attr(WAN_A, 0)->ecn_ns, 0);
	assert_int_equal(attr(WAN_A, 0)->ecn_bytes, 1500);
	assert_int_equal(apply("--ecn off"), 0);
	assert_int_equal(attr(WAN_A, 0)->ecn_bytes, 0);
	assert_int_equal(apply("--queue 2m"), 0); /* a size: nobody queues minutes */
	assert_int_equal(attr(WAN_A, 0)->queue_bytes, 2 << 20);
}

static void test_loss(void **state)
{
	static const char *const orders[] = {"--loss 2% --burst 8", "--burst 8 --loss 2%",
					     "--loss 1% --burst 8 --loss 2%"};
	struct link_ge want;

	(void)state;
	assert_int_equal(link_ge_mean(0.02, 8, &want), 0);
	for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
		fresh(orders[i]);
		assert_near(attr(WAN_A, 0)->loss.p_gb, want.p_gb);
		assert_near(attr(WAN_A, 0)->loss.p_bg, want.p_bg);
		assert_near(attr(WAN_A, 0)->loss.loss_bad, 1);
	}
	assert_int_equal(attr(WAN_A, 0)->burst_idle_ns, LINK_BURST_IDLE_NS);
	assert_int_equal(apply("--ab --burst-idle 1s --ba --burst-idle never"), 0);
	assert_int_equal(attr(WAN_A, 0)->burst_idle_ns, 1000000000);
	assert_int_equal(attr(WAN_B, 0)->burst_idle_ns, 0);
	assert_int_equal(apply("--burst 0"), 0);
	assert_near(attr(WAN_A, 0)->loss.p_gb, 0);
	assert_near(attr(WAN_A, 0)->loss.loss_good, 0.02);
	fresh("--loss 100%");
	assert_near(attr(WAN_A, 0)->loss.loss_good, 1);
	fresh("--ge 1%,20%,90%,0.1%");
	assert_near(attr(WAN_A, 0)->loss.p_gb, 0.01);
	assert_near(attr(WAN_A, 0)->loss.p_bg, 0.2);
	assert_near(attr(WAN_A, 0)->loss.loss_bad, 0.9);
	assert_near(attr(WAN_A, 0)->loss.loss_good, 0.001);
	fresh("--ge 25%");
	assert_near(attr(WAN_A, 0)->loss.p_bg, 0.75);
	assert_near(attr(WAN_A, 0)->loss.loss_bad, 1);
}

static void test_lists(void **state)
{
	const struct wan_path *p = &setup.config.path[WAN_B][0];

	(void)state;
	fresh("--drop 9,3,10-12,3 --blackout 5s-5.5s,1s-2s");
	assert_int_equal(p->n_drop, 5);
	assert_int_equal(p->drop[0], 3);
	assert_int_equal(p->drop[1], 9);
	assert_int_equal(p->drop[4], 12);
	assert_int_equal(p->n_blackout, 2);
	assert_int_equal(p->blackout[0].from_ns, AT_NS + 1000 * MS);
	assert_int_equal(p->blackout[1].from_ns, AT_NS + 5000 * MS);
	assert_int_equal(p->blackout[1].to_ns, AT_NS + 5500 * MS);
	assert_int_equal(apply("--blackout 1e-3s-2e-3s"), 0); /* dashes of their own */
	assert_int_equal(p->blackout[0].from_ns, AT_NS + MS);
	assert_int_equal(p->blackout[0].to_ns, AT_NS + 2 * MS);
	assert_int_equal(apply("--drop none --blackout none"), 0);
	assert_int_equal(p->n_drop + p->n_blackout, 0);
	fresh("--drop 0-255");
	assert_int_equal(p->n_drop, 256);
}

static void test_periods(void **state)
{
	(void)state;
	fresh("--outage 60s,500ms --flap 10s,2s,30ms,1s");
	assert_int_equal(attr(WAN_A, 0)->outage.first_ns, AT_NS + 60000 * MS);
	assert_int_equal(attr(WAN_A, 0)->outage.every_ns, 60000 * MS);
	assert_int_equal(attr(WAN_A, 0)->outage.for_ns, 500 * MS);
	assert_int_equal(attr(WAN_A, 0)->flap.first_ns, AT_NS + 1000 * MS);
	assert_int_equal(attr(WAN_A, 0)->flap.for_ns, 2000 * MS);
	assert_int_equal(attr(WAN_A, 0)->flap_delay_ns, 30 * MS);
	assert_int_equal(apply("--outage none --flap none"), 0);
	assert_int_equal(attr(WAN_A, 0)->outage.every_ns, 0);
	assert_int_equal(attr(WAN_A, 0)->flap.every_ns, 0);
}

static void test_whole_link(void **state)
{
	(void)state;
	fresh("--nat-rebind 30s --nat --nat-timeout 2m --paths 4");
	assert_true(setup.config.nat);
	assert_int_equal(setup.config.nat_every_ns, 30000 * MS);
	assert_int_equal(setup.config.nat_timeout_ns, 120000 * MS);
	assert_int_equal(setup.config.n_paths, 4);
	assert_false(setup.rebind);
	assert_int_equal(apply("--nat-rebind now"), 0);
	assert_true(setup.rebind);
	assert_int_equal(setup.config.nat_every_ns, 30000 * MS);
	assert_int_equal(apply("--nat-rebind never --nat-timeout never"), 0);
	assert_int_equal(setup.config.nat_every_ns + setup.config.nat_timeout_ns, 0);
	assert_int_equal(apply("--no-nat"), 0);
	assert_false(setup.config.nat);
}

static void test_g1050(void **state)
{
	(void)state;
	fresh("--rate 1Gbit --g1050 D --rtt 80ms");
	assert_true(link_ge_ratio(&attr(WAN_A, 0)->loss) > 0);
	assert_true(attr(WAN_A, 0)->jitter_ns > 0);
	assert_int_equal(attr(WAN_A, 0)->delay_ns, 40 * MS); /* a later option wins */
	assert_int_equal(attr(WAN_A, 0)->rate_bps, 1000000000);
}

/* ---- mistakes ----------------------------------------------------------------------- */

static const struct {
	const char *line, *says;
} mistakes[] = {
	{"--frobnicate 1", "--frobnicate: no option of a link"},
	{"rate 1", "rate: no option"},
	{"--no-rate", "no option"},
	{"--no-ab", "no option"},
	{"--rate", "--rate: needs a value: RATE"},
	{"--cut=1", "--cut: takes no value"},
	{"--rate fast", "--rate fast: not a rate: write it like"},
	{"--rate 10", "--rate 10: out of range: choose from 1 Kbit/s"},
	{"--rate 1000Tbit", "out of range"},
	{"--rtt soon", "--rtt soon: not a time: write it like"},
	{"--rtt 3h", "--rtt 3h: out of range: choose from 0 to 2.00 h"},
	{"--delay 2h", "--delay 2h: out of range: choose from 0 to 60.0 m"},
	{"--km far", "--km far: not a whole number"},
	{"--km 800000000", "choose from 0 to 720000000"},
	{"--jitter x", "--jitter x: not a time"},
	{"--loss 2", "--loss 2: out of range: choose from 0 to 100%"},
	{"--loss many", "--loss many: not a ratio"},
	{"--burst 0.5", "--burst 0.5: out of range: choose from 1"},
	{"--burst nan", "not a number of packets"},
	{"--burst 0x10", "not a number of packets"},
	{"--burst 1.2.3", "not a number of packets"},
	{"--burst .", "not a number of packets"},
	{"--burst 2 --loss 90%", "losing 90% in bursts of 2 packets"},
	{"--ge 1%,2%,3%,4%,5%", "too many values: write it as p,r"},
	{"--ge 1%,x", "not a ratio"},
	{"--drop 1,,2", "one of its values is empty"},
	{"--drop 5-3", "a range goes up"},
	{"--drop 0-256", "more than 256 packets"},
	{"--drop 0-255,300", "more than 256 packets"},
	{"--drop x", "--drop x: not a whole number"},
	{"--drop -5", "not a whole number"},
	{"--drop 18446744073709551615", "out of range"},
	{"--queue 1Mbit", "neither a size nor a time: write it like"},
	{"--queue 0", "--queue 0: out of range: choose from 1 B"},
	{"--queue 0ms", "choose from 1 ns"},
	{"--queue 10ms", "--queue: nothing waits on a link without a limit: give --rate too"},
	{"--ecn 10ms", "--ecn: nothing waits"},
	{"--reorder 1%,2ms,3", "too many values: write it as RATIO"},
	{"--reorder ,2ms", "empty"},
	{"--duplicate x", "not a ratio"},
	{"--corrupt -1", "not a ratio"},
	{"--policer 1Mbit", "too few values: write it as RATE,SIZE"},
	{"--policer 0,1MB", "a policer needs a rate"},
	{"--policer 1Mbit,100", "--policer: the bucket would hold less than one packet of 1500"},
	{"--policer 1Mbit,0", "'0': the bucket is out of range: choose from 1 B"},
	{"--rate 1Gbit --queue 1499", "--queue: at 1.00 Gbit/s it would hold less than one packet"},
	{"--rate 1Mbit --queue 10ms", "--queue: at 1.00 Mbit/s it would hold less than one packet"},
	{"--policer 1Mbit,x", "'x' is not a size"},
	{"--path-mtu 20", "--path-mtu 20: out of range: choose from 68 to 65535"},
	{"--blackhole", "--blackhole: every size passes: give --path-mtu too"},
	{"--outage 1s", "too few values: write it as EVERY,FOR"},
	{"--outage 1s,2s", "it would never end: choose FOR below EVERY"},
	{"--outage 1s,0", "out of range"},
	{"--flap 10s,1s", "write it as EVERY,FOR,DELTA"},
	{"--blackout 1s", "not two times: write it like 1s-2.5s"},
	{"--blackout 2s-1s", "write the earlier time first"},
	{"--blackout 1s-3s,2s-4s", "two blackouts overlap"},
	{"--blackout -", "not two times"},
	{"--g1050 Z", "no such severity: choose from A to H"},
	{"--g1050 AB", "no such severity"},
	{"--paths 17", "--paths 17: out of range: choose from 1 to 16"},
	{"--path 16", "--path 16: out of range: choose from 0 to 15"},
	{"--path 2 --cut --paths 2", "but there are 2 paths, counted from 0: give --paths 3"},
	{"--nat-rebind now", "--nat-rebind: there is no NAT: give --nat too"},
	{"--nat-timeout 1s", "--nat-timeout: there is no NAT"},
	{"--nat --nat-rebind often", "--nat-rebind often: not a time"},
	{"--nat --nat-rebind 1us", "out of range: choose from 1.00 ms"},
};

static void test_mistakes(void **state)
{
	static struct link_setup before;

	(void)state;
	for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
		char line[512];

		link_setup_init(&setup);
		before = setup;
		/* What was right before the mistake has no effect either. */
		snprintf(line, sizeof line, "--jitter 1ms %s", mistakes[i].line);
		if (apply(line) != -EINVAL)
			fail_msg("%s: was taken", mistakes[i].line);
		if (!strstr(error, mistakes[i].says))
			fail_msg("%s: says '%s', not '%s'", mistakes[i].line, error,
				 mistakes[i].says);
		assert_memory_equal(&setup, &before, sizeof setup);
	}
}

static void test_too_many_blackouts(void **state)
{
	char line[4096] = "--blackout ";

	(void)state;
	for (int i = 0; i < 65; i++) {
		size_t used = strlen(line);

		snprintf(line + used, sizeof line - used, "%s%ds-%ds", i ? "," : "", 2 * i,
			 2 * i + 1);
	}
	link_setup_init(&setup);
	assert_int_equal(apply(line), -EINVAL);
	assert_non_null(strstr(error, "more than 64 blackouts"));
}

/* A message never leaves its room, whatever the value is. */
static void test_long_value(void **state)
{
	char line[4200] = "--rate ";

	(void)state;
	memset(line + strlen(line), 'x', 4000);
	link_setup_init(&setup);
	assert_int_equal(apply(line), -EINVAL);
	assert_true(strlen(error) < 200);
	line[7 + 4000] = '\0';
	memcpy(line, "--ge   ", 7);
	assert_int_equal(apply(line), -EINVAL);
	assert_non_null(strstr(error, "too long"));
}

static void test_words(void **state)
{
	(void)state;
	assert_int_equal(link_opts_words("--rate"), 2);
	assert_int_equal(link_opts_words("--rate=1Gbit"), 1);
	assert_int_equal(link_opts_words("--cut"), 1);
	assert_int_equal(link_opts_words("--no-cut"), 1);
	assert_int_equal(link_opts_words("--no-"), 0);
	assert_int_equal(link_opts_words("--"), 0);
	assert_int_equal(link_opts_words("-r"), 0);
	assert_int_equal(link_opts_words(""), 0);
	assert_int_equal(link_opts_words("--rates"), 0);
}

/* ---- and back ------------------------------------------------------------------------ */

static void test_text(void **state)
{
	char text[1024], little[20];

	(void)state;
	fresh("");
	link_path_text(&setup.config.path[WAN_A][0], 0, text, sizeof text);
	assert_string_equal(text, "unlimited rate, delay 0");
	fresh("--rate 1Gbit --rtt 100ms --loss 1% --burst 4 --path-mtu 1400 --blackhole "
	      "--outage 60s,1s --drop 1 --blackout 1s-2s");
	link_path_text(&setup.config.path[WAN_A][0], AT_NS, text, sizeof text);
	assert_string_equal(text, "1.00 Gbit/s, delay 50.0 ms, queue 100 ms, loss 1 % in bursts of "
				  "4 packets, MTU 1400 (black hole), down 1.00 s every 60.0 s, "
				  "1 blackout ahead, a list of 1 packet to lose");
	link_path_text(&setup.config.path[WAN_A][0], AT_NS, little, sizeof little);
	assert_true(strlen(little) < sizeof little);
	assert_memory_equal(little, text, 12);
}

static void test_json(void **state)
{
	char *text = NULL;
	size_t len;
	struct json j;
	FILE *to = open_memstream(&text, &len);

	(void)state;
	assert_non_null(to);
	fresh("--rate 1Gbit --delay 5ms --loss 1% --drop 1,2 --blackout 1s-2s");
	json_init(&j, to);
	link_path_json(&j, NULL, &setup.config.path[WAN_A][0]);
	json_finish(&j);
	fclose(to);
	assert_non_null(strstr(text, "\"rate_bps\": 1000000000, \"delay_ns\": 5000000"));
	assert_non_null(strstr(text, "\"loss\": {\"ratio\": 0.01,"));
	assert_non_null(strstr(text, "\"drop\": [1, 2]"));
	assert_non_null(strstr(text, "\"from_ns\": 101000000000"));
	free(text);
}

static void test_equal(void **state)
{
	(void)state;
	fresh("--rtt 10ms --ab --loss 1%");
	assert_false(link_path_equal(&setup.config.path[WAN_A][0], &setup.config.path[WAN_B][0]));
	assert_true(link_path_equal(&setup.config.path[WAN_A][0], &setup.config.path[WAN_A][1]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),      cmocka_unit_test(test_simple_values),
		cmocka_unit_test(test_distance),      cmocka_unit_test(test_scopes),
		cmocka_unit_test(test_default_queue), cmocka_unit_test(test_loss),
		cmocka_unit_test(test_lists),	      cmocka_unit_test(test_periods),
		cmocka_unit_test(test_whole_link),    cmocka_unit_test(test_g1050),
		cmocka_unit_test(test_mistakes),      cmocka_unit_test(test_too_many_blackouts),
		cmocka_unit_test(test_long_value),    cmocka_unit_test(test_words),
		cmocka_unit_test(test_text),	      cmocka_unit_test(test_json),
		cmocka_unit_test(test_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios: values, lists and ranges, what is refused and with which words, back to text,
 * the cross product's order, seeds, schemes, files.
 */
#include "tool/sim/file.h"
#include "tool/sim/run.h"
#include "tool/sim/sweep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static int set(struct sweep *s, const char *key, const char *value, char *why)
{
	int i = sweep_key_find(key);

	assert_true(i >= 0);
	return sweep_set(s, i, value, why);
}

static void good(struct sweep *s, const char *key, const char *value)
{
	char why[SWEEP_WHY] = "";

	if (set(s, key, value, why))
		fail_msg("%s = %s: %s", key, value, why);
}

static void bad(const char *key, const char *value, const char *says)
{
	struct sweep s;
	char why[SWEEP_WHY] = "";

	sweep_init(&s);
	assert_int_equal(set(&s, key, value, why), -1);
	if (!strstr(why, says))
		fail_msg("%s = %s: '%s' does not say '%s'", key, value, why, says);
}

static void link_of(struct sweep *s)
{
	sweep_init(s);
	good(s, "rtt", "25ms");
	good(s, "bw", "400Gbit");
	good(s, "loss", "1e-5");
	good(s, "size", "128MiB");
	good(s, "scheme", "sr-nack");
}

static void values(void **state)
{
	struct sweep s;

	(void)state;
	sweep_init(&s);
	good(&s, "rtt", "1ms,25ms");
	assert_int_equal(s.axis[AXIS_RTT].n, 2);
	assert_true(s.axis[AXIS_RTT].v[1] == 25e6);
	good(&s, "km", "3750");
	assert_int_equal(s.axis[AXIS_RTT].n, 1);
	assert_true(s.axis[AXIS_RTT].v[0] == 25e6);
	good(&s, "size", "128KiB..1MiB");
	assert_int_equal(s.axis[AXIS_SIZE].n, 4);
	assert_true(s.axis[AXIS_SIZE].v[3] == 1048576);
	good(&s, "size", "3..10,64");
	assert_int_equal(s.axis[AXIS_SIZE].n, 4);
	assert_true(s.axis[AXIS_SIZE].v[1] == 6 && s.axis[AXIS_SIZE].v[2] == 10);
	good(&s, "loss", "1e-6..1e-3");
	assert_int_equal(s.axis[AXIS_LOSS].n, 4);
	assert_true(s.axis[AXIS_LOSS].v[1] == 1e-5 && s.axis[AXIS_LOSS].v[3] == 1e-3);
	good(&s, "loss", "0,0.1%");
	assert_true(s.axis[AXIS_LOSS].v[0] == 0 && s.axis[AXIS_LOSS].v[1] == 0.001);
	good(&s, "scheme", "sr:rto=3,ec:32,8,depth=4,hybrid:k=128,m=10,ec-xor:8,2");
	assert_int_equal(s.schemes, 4);
	assert_string_equal(s.scheme[1].name, "ec:32,8,depth=4");
	good(&s, "scheme", "sr-nack, ec:32,8 ,hybrid:128,10");
	assert_int_equal(s.schemes, 3);
	assert_string_equal(s.scheme[1].name, "ec:32,8");
	assert_string_equal(s.scheme[2].name, "hybrid:k=128,m=10");
	good(&s, "scheme", "ec:32,8,hybrid:k=128,m=10,auto,ec-paper:32,8,beta=0,auto:policy=table");
	assert_int_equal(s.schemes, 5);
	assert_string_equal(s.scheme[3].name, "ec-paper:32,8,beta=0");
	good(&s, "bw", "1Gbit, 10Gbit");
	assert_int_equal(s.axis[AXIS_BW].n, 2);
	good(&s, "cold", "yes");
	assert_true(s.cold == 1);
	good(&s, "seed", "0");
	good(&s, "device", "nic");
	good(&s, "engine", "model");
	assert_int_equal(s.engine, ENGINE_MODEL);
}

static void mistakes(void **state)
{
	(void)state;
	bad("rtt", "1ns", "choose from 1.00 us to");
	bad("rtt", "", "empty item");
	bad("rtt", "1ms,,2ms", "empty item");
	bad("rtt", "1ms,soon", "'soon' of it: not a time");
	bad("bw", "1bit", "choose from 1.00 Kbit/s");
	bad("bw", "fast", "not a rate");
	bad("loss", "1", "choose from 0 to below 1");
	bad("loss", "-0.1", "not a ratio");
	bad("loss", "0..1e-3", "begins with the smaller value, above 0");
	bad("loss", "0.1,10%", "a value twice");
	bad("burst", "0.5", "choose from 1 to 1000000");
	bad("burst", "nan", "not a number");
	bad("size", "0", "choose from 1 B");
	bad("size", "2MiB..1MiB", "begins with the smaller value");
	bad("size", "1..1TiB,1..1TiB", "twice");
	bad("scheme", "tcp",
	    "unknown scheme: choose gbn, sr, sr-nack, ec-xor, ec, hybrid, auto, ec-paper or");
	bad("scheme", "sr,sr", "twice");
	bad("scheme", "ec", "needs K and M");
	bad("scheme", "ec:32", "needs K and M");
	bad("scheme", "ec:32,8,9", "'9' is no parameter of ec");
	bad("scheme", "ec:32,8,beta=2", "'beta' is no parameter of ec");
	bad("scheme", "hybrid:rto=3", "hybrid needs K and M");
	bad("scheme", "ec:32,8,depth=0", "depth='0' of ec");
	bad("scheme", "ec:32,8,ec:k=32,m=8", "'ec:k=32,m=8' of it: twice");
	bad("scheme", "ec-paper", "needs K and M");
	bad("scheme", "ec-paper:32",
	    "ec-paper needs K and M, data and parity units of a submessage");
	bad("scheme", "ec-paper:32,8,9", "'9' is no parameter of ec-paper");
	bad("scheme", "ec-paper:32,8,copies=2", "'copies=2' is no parameter of ec-paper");
	bad("scheme", "ec-paper:32,8,depth=0", "'depth=0' is no parameter of ec-paper");
	bad("scheme", "ec-xor-paper:32,8,beta=-1", "'beta=-1' is no parameter of ec-xor-paper");
	bad("runs", "0", "choose from 1 to 1000000");
	bad("runs", "1000001", "choose from 1 to 1000000");
	bad("packet", "1", "choose from 64 B");
	bad("cold", "perhaps", "unknown: choose no, yes");
	bad("engine", "fake", "unknown: choose auto, real, model");
	bad("device", "tin", "unknown: choose udp, roce, nic");
	bad("limit", "0", "out of range");
}

static void refused(struct sweep *s, const char *says)
{
	char why[SWEEP_WHY] = "";

	assert_int_equal(sweep_check(s, why), -1);
	if (!strstr(why, says))
		fail_msg("'%s' does not say '%s'", why, says);
}

static void checks(void **state)
{
	char why[SWEEP_WHY] = "";
	struct sweep s;

	(void)state;
	link_of(&s);
	assert_int_equal(sweep_check(&s, why), 0);
	good(&s, "chunk", "12KiB");
	refused(&s, "--chunk: chunk size of 12288 is out of range");
	refused(&s, "power of two of packets");
	good(&s, "chunk", "512KiB");
	refused(&s, "--chunk 524288: the engine takes at most 64 packets");
	link_of(&s);
	good(&s, "loss", "0.9");
	good(&s, "burst", "2");
	refused(&s, "--burst: burst of 2 is out of range: choose from 9");
	link_of(&s);
	good(&s, "burst", "2");
	good(&s, "ack-loss", "0.9");
	refused(&s, "--ack-loss 0.9: bursts of 2 packets lose at most");
	link_of(&s);
	good(&s, "queue", "4096");
	refused(&s, "--queue 4096: no packet would pass");
	link_of(&s);
	good(&s, "device", "nic");
	good(&s, "packet", "1000");
	refused(&s, "--packet 1000: RDMA devices take 1024, 2048 or 4096");
	link_of(&s);
	good(&s, "size", "100TiB");
	refused(&s, "--size: size of");
	link_of(&s);
	good(&s, "scheme", "ec-paper:32,8");
	good(&s, "engine", "real");
	refused(&s, "--scheme ec-paper:32,8: the paper's, which is a model only");
	link_of(&s);
	good(&s, "scheme", "ec:32,8,copies=2");
	good(&s, "engine", "model");
	refused(&s, "--scheme ec:32,8,copies=2: the model does not know it: take --engine real");
	link_of(&s);
	good(&s, "scheme", "ec-paper:200,100");
	refused(&s, "--scheme ec-paper:200,100: m of 100 is out of range");
	good(&s, "scheme", "ec-paper:32,8,rto=2000");
	refused(&s, "--scheme ec-paper:32,8,rto=2000: rto of 2000 is out of range");
	link_of(&s);
	good(&s, "loss", "1e-9..0.9");
	good(&s, "size", "1..1TiB");
	good(&s, "bw", "1Kbit..1Tbit");
	good(&s, "scheme", "sr,sr-nack,gbn,auto");
	good(&s, "rtt", "1us..1s");
	refused(&s, "points: at most");
	link_of(&s);
	good(&s, "loss", "1e-9..0.9");
	good(&s, "size", "1..1GiB");
	good(&s, "runs", "1000000");
	refused(&s, "--runs 1000000:");
	link_of(&s);
	good(&s, "cold", "yes");
	assert_int_equal(sweep_check(&s, why), 0);
	good(&s, "engine", "model");
	refused(&s, "--cold: the model that sr-nack is drawn from knows no cold start");
	link_of(&s);
	good(&s, "bw", "1Kbit");
	good(&s, "size", "1TiB");
	refused(&s, "--size 1099511627776: takes 8.8e+09 s at best");
	link_of(&s);
	good(&s, "bw", "1Mbit");
	good(&s, "rtt", "1us,1000s"); /* the limits themselves */
	assert_int_equal(sweep_check(&s, why), 0);
	sweep_init(&s);
	refused(&s, "needs --rtt or --km");
}

/* Text of a sweep, read again, is the same sweep; and the same text. */
static void round_trip(void **state)
{
	char text[SWEEP_VALUE_MAX], again[SWEEP_VALUE_MAX], why[SWEEP_WHY];
	struct sweep a, b;

	(void)state;
	link_of(&a);
	good(&a, "loss", "1e-5,0.1%,3e-7");
	good(&a, "km", "1234,77");
	good(&a, "scheme", "ec:32,8,depth=4,sr:rto=3");
	good(&a, "ack-loss", "0.3333333333333333");
	good(&a, "jitter", "10us");
	good(&a, "chunk", "16KiB");
	good(&a, "limit", "100s");
	good(&a, "cold", "yes");
	good(&a, "learn", "yes");
	good(&a, "coalesce", "7us");
	sweep_init(&b);
	for (int i = 0; i < (int)SWEEP_KEYS; i++) {
		const char *value = sweep_text(&a, i, text);

		if (value && sweep_set(&b, i, value, why))
			fail_msg("%s = %s: %s", sweep_keys[i].name, value, why);
	}
	assert_memory_equal(a.axis, b.axis, sizeof(a.axis));
	assert_true(a.ack_loss == b.ack_loss && a.limit_ns == b.limit_ns && b.cold == 1 &&
		    b.learn == 1);
	assert_true(b.chunk_bytes == 16384 && b.jitter_ns == 10000 && b.coalesce_ns == 7000);
	for (int i = 0; i < (int)SWEEP_KEYS; i++) {
		const char *x = sweep_text(&a, i, text), *y = sweep_text(&b, i, again);

		assert_true((!x && !y) || (x && y && strcmp(x, y) == 0));
	}
}

static void product(void **state)
{
	struct sim_point p, q;
	struct sweep s;

	(void)state;
	link_of(&s);
	good(&s, "loss", "0.1,0.2,0.3");
	good(&s, "size", "1,2");
	good(&s, "scheme", "sr,gbn");
	assert_int_equal(sweep_points(&s), 12);
	sweep_point(&s, 0, &p);
	assert_true(p.loss == 0.1 && p.bytes == 1 && p.ack_loss == 0.1);
	assert_string_equal(p.scheme->name, "sr");
	sweep_point(&s, 3, &p);
	assert_true(p.loss == 0.1 && p.bytes == 2);
	assert_string_equal(p.scheme->name, "gbn");
	sweep_point(&s, 11, &p);
	assert_true(p.loss == 0.3 && p.bytes == 2);
	/* A point's seeds are its own, in whatever sweep it stands. */
	assert_true(point_seed(&s, &p, 0) != point_seed(&s, &p, 1));
	sweep_point(&s, 10, &q);
	assert_true(point_seed(&s, &p, 0) != point_seed(&s, &q, 0));
	{
		uint64_t seed = point_seed(&s, &p, 5);

		good(&s, "loss", "0.3");
		good(&s, "size", "2");
		good(&s, "scheme", "gbn");
		sweep_point(&s, 0, &q);
		assert_true(point_seed(&s, &q, 5) == seed);
		s.seed++;
		assert_true(point_seed(&s, &q, 5) != seed);
	}
}

/* ---- files ---------------------------------------------------------------------- */

static int read_text(const char *text, const bool *skip, struct sweep *s)
{
	static const bool none[SWEEP_KEYS];
	char path[] = "/tmp/sweep-test-XXXXXX";
	int fd = mkstemp(path), rc;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	sweep_init(s);
	rc = file_read(s, path, skip ? skip : none);
	unlink(path);
	return rc;
}

static void files(void **state)
{
	static char long_line[5000];
	bool skip[SWEEP_KEYS] = {false};
	struct sweep s;

	(void)state;
	assert_int_equal(
		read_text("# a link\n rtt = 25ms # far\n\nbw=1Gbit\r\nloss = 1e-3\nsize =\t"
			  "1MiB, ",
			  NULL, &s),
		-1); /* an empty item */
	assert_int_equal(
		read_text("# a link\n rtt = 25ms # far\n\nbw=1Gbit\r\nscheme = sr:rto=3", NULL, &s),
		0);
	assert_true(s.axis[AXIS_RTT].v[0] == 25e6 && s.axis[AXIS_BW].v[0] == 1e9);
	assert_string_equal(s.scheme[0].name, "sr:rto=3");
	assert_int_equal(read_text("rtt = 1ms\nkm = 3\n", NULL, &s), -1);
	assert_int_equal(read_text("rtt = 1ms\nrtt = 1ms\n", NULL, &s), -1);
	assert_int_equal(read_text("rtt\n", NULL, &s), -1);
	assert_int_equal(read_text("rtt =\n", NULL, &s), -1);
	assert_int_equal(read_text("colour = red\n", NULL, &s), -1);
	memset(long_line, 'x', sizeof(long_line) - 1);
	assert_int_equal(read_text(long_line, NULL, &s), -1);
	/* What a flag gives is looked at here, and not taken. */
	skip[sweep_key_find("rtt")] = true;
	assert_int_equal(read_text("rtt = 1ms\n", skip, &s), 0);
	assert_int_equal(s.axis[AXIS_RTT].n, 0);
	assert_int_equal(read_text("rtt = soon\n", skip, &s), -1);
}

/* ---- runs ----------------------------------------------------------------------- */

/* A run is its arguments' alone: what the runner did before changes nothing. */
static void runs_repeat(void **state)
{
	static const volatile sig_atomic_t never;
	struct run_result first[6], again;
	struct runner *r = runner_create();
	struct sim_point p;
	struct sweep s;

	(void)state;
	link_of(&s);
	good(&s, "size", "256KiB");
	good(&s, "loss", "0.05");
	good(&s, "scheme", "sr-nack,ec:8,2,ec-paper:8,2");
	for (uint64_t i = 0; i < 6; i++) {
		sweep_point(&s, i / 2, &p);
		runner_run(r, &s, &p, i % 2, &never, &first[i]);
		assert_true(first[i].done && !first[i].err);
		assert_true((double)first[i].time_ns * 1e-9 >= point_lossless_s(&p) * (1 - 1e-6));
		assert_true(first[i].sent_bytes >= p.bytes);
	}
	for (uint64_t i = 6; i-- > 0;) {
		sweep_point(&s, i / 2, &p);
		runner_run(r, &s, &p, i % 2, &never, &again);
		assert_true(again.time_ns == first[i].time_ns);
		assert_true(again.sent_bytes == first[i].sent_bytes);
	}
	runner_destroy(r);
}

/* Without losses a run takes what it has to: whole packets or not, on any device. */
static void lossless(void **state)
{
	static const char *const sizes[] = {"1", "4096", "5000", "1MiB", "20000001"};
	static const char *const devices[] = {"udp", "roce", "nic"};
	static const volatile sig_atomic_t never;
	struct runner *r = runner_create();

	(void)state;
	for (int i = 0; i < 15; i++) {
		struct run_result out;
		struct sim_point p;
		struct sweep s;
		double want;

		link_of(&s);
		good(&s, "loss", "0");
		good(&s, "size", sizes[i % 5]);
		good(&s, "device", devices[i / 5]);
		sweep_point(&s, 0, &p);
		want = point_lossless_s(&p) * 1e9;
		runner_run(r, &s, &p, 0, &never, &out);
		assert_int_equal(out.err, 0);
		assert_int_equal(out.sent_bytes, p.bytes);
		/* A NIC sends 5 us after it was told to; nothing else may cost more than 2. */
		if ((double)out.time_ns < want - 1 ||
		    (double)out.time_ns > want + 2000 + (i / 5 == 2 ? 5000 : 0))
			fail_msg("%s, %s: %.0f ns, not %.0f", devices[i / 5], sizes[i % 5],
				 (double)out.time_ns, want);
	}
	runner_destroy(r);
}

static void stops(void **state)
{
	static const volatile sig_atomic_t now = 1;
	struct runner *r = runner_create();
	struct run_result out;
	struct sim_point p;
	struct sweep s;

	(void)state;
	link_of(&s);
	sweep_point(&s, 0, &p);
	runner_run(r, &s, &p, 0, &now, &out);
	assert_int_equal(out.done, 0);
	runner_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),      cmocka_unit_test(mistakes), cmocka_unit_test(checks),
		cmocka_unit_test(round_trip),  cmocka_unit_test(product),  cmocka_unit_test(files),
		cmocka_unit_test(runs_repeat), cmocka_unit_test(lossless), cmocka_unit_test(stops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

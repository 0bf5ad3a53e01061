// SPDX-License-Identifier: Apache-2.0
/*
 * The host's facts read from planted files, and each of their judgements at each level
 * that it can have.
 */
#include "tool/doctor/host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tool/doctor/test_root.h"

static struct findings found;

static const struct finding *judged(const struct host_facts *h, int rdma, const char *id)
{
	const struct finding *x;

	found = (struct findings){0};
	host_judge(h, rdma, &found);
	x = finding_find(&found, id);
	assert_non_null(x);
	return x;
}

static struct host_facts good(void)
{
	struct host_facts h = {.kernel = "6.1.0-18-amd64",
			       .clock = "tsc",
			       .clocks = "tsc hpet acpi_pm",
			       .cpus_online = 8,
			       .cpus_allowed = 8,
			       .smt = 1,
			       .load1 = 0.5,
			       .memory_bytes = UINT64_C(16) << 30,
			       .available_bytes = UINT64_C(8) << 30,
			       .memlock_bytes = UINT64_MAX,
			       .thp = "madvise"};

	return h;
}

static void expect(const struct host_facts *h, const char *id, enum level level)
{
	assert_string_equal(level_name(judged(h, 0, id)->level), level_name(level));
}

static void test_good_host(void **state)
{
	struct host_facts h = good();

	(void)state;
	judged(&h, 1, "kernel");
	assert_int_equal(found.n, 9);
	assert_int_equal(found.count[LEVEL_OK], 9);
	assert_false(findings_need_attention(&found));
}

static void test_kernel(void **state)
{
	struct host_facts h = good();

	(void)state;
	strcpy(h.kernel, "4.19.0");
	expect(&h, "kernel", LEVEL_NOTE);
	strcpy(h.kernel, "4.17.3");
	expect(&h, "kernel", LEVEL_ATTENTION);
	strcpy(h.kernel, "5.0");
	expect(&h, "kernel", LEVEL_OK);
	assert_false(kernel_at_least("Plan 9", 1, 0));
}

static void test_clock(void **state)
{
	struct host_facts h = good();

	(void)state;
	strcpy(h.clock, "hpet");
	expect(&h, "clock", LEVEL_ATTENTION);
	assert_non_null(strstr(judged(&h, 0, "clock")->fix, "echo tsc | sudo tee /sys/devices/"));
	strcpy(h.clock, "acpi_pm");
	strcpy(h.clocks, "acpi_pm hpet"); /* no tsc to choose */
	expect(&h, "clock", LEVEL_ATTENTION);
	assert_null(strstr(judged(&h, 0, "clock")->fix, "tee"));
	strcpy(h.clock, "kvm-clock");
	expect(&h, "clock", LEVEL_OK);
	h.clock[0] = '\0';
	expect(&h, "clock", LEVEL_SKIPPED);
}

static void test_cpus(void **state)
{
	struct host_facts h = good();

	(void)state;
	h.cpus_allowed = 3;
	expect(&h, "cpus", LEVEL_NOTE);
	assert_non_null(strstr(judged(&h, 0, "cpus")->fix, "taskset -c 0-7"));
	h.cpus_allowed = h.cpus_online = 1;
	expect(&h, "cpus", LEVEL_NOTE);
	assert_string_equal(judged(&h, 0, "cpus")->fix, "");
}

static void test_quota(void **state)
{
	struct host_facts h = good();

	(void)state;
	h.quota_cpus = 2;
	expect(&h, "cpu-quota", LEVEL_NOTE);
	h.throttled = 5;
	expect(&h, "cpu-quota", LEVEL_ATTENTION);
	h.throttled = 0;
	h.quota_cpus = 0.5;
	h.container = 1;
	expect(&h, "cpu-quota", LEVEL_ATTENTION);
	assert_non_null(strstr(judged(&h, 0, "cpu-quota")->fix, "docker update --cpus 8"));
}

static void test_governor(void **state)
{
	struct host_facts h = good();

	(void)state;
	strcpy(h.governor, "powersave");
	strcpy(h.scaling_driver, "acpi-cpufreq");
	expect(&h, "governor", LEVEL_ATTENTION);
	strcpy(h.scaling_driver, "intel_pstate");
	expect(&h, "governor", LEVEL_NOTE);
	strcpy(h.governor, "performance");
	expect(&h, "governor", LEVEL_OK);
}

static void test_load(void **state)
{
	struct host_facts h = good();

	(void)state;
	h.load1 = 6;
	expect(&h, "load", LEVEL_NOTE);
	h.load1 = 9;
	expect(&h, "load", LEVEL_ATTENTION);
	h.load1 = -1;
	expect(&h, "load", LEVEL_SKIPPED);
}

static void test_memory(void **state)
{
	struct host_facts h = good();

	(void)state;
	h.available_bytes = UINT64_C(100) << 20;
	expect(&h, "memory", LEVEL_ATTENTION);
	h.available_bytes = 0;
	expect(&h, "memory", LEVEL_SKIPPED);
}

static void test_memlock(void **state)
{
	struct host_facts h = good();

	(void)state;
	h.memlock_bytes = UINT64_C(8) << 20;
	assert_int_equal(judged(&h, 0, "memlock")->level, LEVEL_NOTE);
	assert_int_equal(judged(&h, 1, "memlock")->level, LEVEL_ATTENTION);
	assert_null(strstr(judged(&h, 1, "memlock")->fix, "docker"));
	h.container = 1;
	assert_non_null(strstr(judged(&h, 1, "memlock")->fix, "docker run --ulimit memlock=-1:-1"));
	assert_non_null(strstr(judged(&h, 1, "memlock")->evidence, "8388608"));
	h.may_lock = 1;
	assert_int_equal(judged(&h, 1, "memlock")->level, LEVEL_OK);
	h.may_lock = 0;
	h.memlock_bytes = UINT64_C(64) << 20;
	assert_int_equal(judged(&h, 1, "memlock")->level, LEVEL_OK);
}

static void test_huge_pages(void **state)
{
	struct host_facts h = good();

	(void)state;
	strcpy(h.thp, "never");
	expect(&h, "huge-pages", LEVEL_NOTE);
	h.huge_total = 16;
	expect(&h, "huge-pages", LEVEL_OK);
	h.huge_total = 0;
	h.thp[0] = '\0';
	expect(&h, "huge-pages", LEVEL_NOTE);
}

/* ---- reading -------------------------------------------------------------------- */

static void plant_host(void)
{
	plant("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
	plant("/sys/devices/system/clocksource/clocksource0/available_clocksource",
	      "tsc hpet acpi_pm \n");
	plant("/sys/devices/system/cpu/smt/active", "1\n");
	plant("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
	plant("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "acpi-cpufreq\n");
	plant("/proc/loadavg", "3.25 1.00 0.50 2/300 1234\n");
	plant("/proc/meminfo", "MemTotal:       16384 kB\nMemFree:  100 kB\n"
			       "MemAvailable:    8192 kB\nHugePages_Total:      4\n"
			       "HugePages_Free:       3\nHugepagesize:       2048 kB\n");
	plant("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
	plant("/proc/self/status", "Name:\tsdr\nCapEff:\t0000000000004000\n");
	plant("/.dockerenv", "");
}

static void test_read(void **state)
{
	const struct source s = {test_root};
	struct host_facts h;

	(void)state;
	plant_host();
	host_read(&s, &h);
	assert_string_equal(h.clock, "hpet");
	assert_string_equal(h.clocks, "tsc hpet acpi_pm");
	assert_int_equal(h.smt, 1);
	assert_string_equal(h.governor, "powersave");
	assert_true(h.load1 > 3.2 && h.load1 < 3.3);
	assert_int_equal(h.memory_bytes, 16384 * 1024);
	assert_int_equal(h.available_bytes, 8192 * 1024);
	assert_int_equal(h.huge_total, 4);
	assert_int_equal(h.huge_free, 3);
	assert_string_equal(h.thp, "never");
	assert_true(h.may_lock);
	assert_true(h.container);
	assert_int_not_equal(h.kernel[0], 0);
}

/* The tightest group above counts, of either version. */
static void test_read_quota(void **state)
{
	const struct source s = {test_root};
	struct host_facts h;

	(void)state;
	plant("/proc/self/cgroup", "0::/outer/inner\n");
	plant("/sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
	plant("/sys/fs/cgroup/outer/cpu.max", "150000 100000\n");
	plant("/sys/fs/cgroup/outer/cpu.stat", "usage_usec 1\nnr_periods 9\nnr_throttled 7\n");
	host_read(&s, &h);
	assert_true(h.quota_cpus > 1.49 && h.quota_cpus < 1.51);
	assert_int_equal(h.throttled, 7);
	assert_non_null(strstr(h.quota_from, "/sys/fs/cgroup/outer/cpu.max = 150000 100000"));

	plant("/proc/self/cgroup", "4:cpuset:/\n3:cpuacct,cpu:/box\n");
	plant("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "50000\n");
	plant("/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
	host_read(&s, &h);
	assert_true(h.quota_cpus > 0.49 && h.quota_cpus < 0.51);
	plant("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1\n");
	host_read(&s, &h);
	assert_true(h.quota_cpus <= 0);
}

static void test_read_nothing(void **state)
{
	const struct source s = {"/nowhere-at-all"};
	struct host_facts h;

	(void)state;
	host_read(&s, &h);
	assert_string_equal(h.clock, "");
	assert_string_equal(h.thp, "");
	assert_int_equal(h.smt, -1);
	assert_true(h.load1 < 0);
	expect(&h, "clock", LEVEL_SKIPPED);
	expect(&h, "memory", LEVEL_SKIPPED);
}

/* More findings than there is room for are counted all the same. */
static void test_list_is_full(void **state)
{
	(void)state;
	found = (struct findings){0};
	for (unsigned int i = 0; i < FINDINGS_MAX + 5; i++)
		finding_evidence(finding_add(&found, "host", LEVEL_FAULT, "x", "%u", i), "e");
	assert_int_equal(found.n, FINDINGS_MAX);
	assert_int_equal(found.count[LEVEL_FAULT], FINDINGS_MAX + 5);
	assert_true(findings_need_attention(&found));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_host),    cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_clock),	     cmocka_unit_test(test_cpus),
		cmocka_unit_test(test_quota),	     cmocka_unit_test(test_governor),
		cmocka_unit_test(test_load),	     cmocka_unit_test(test_memory),
		cmocka_unit_test(test_memlock),	     cmocka_unit_test(test_huge_pages),
		cmocka_unit_test(test_read),	     cmocka_unit_test(test_read_quota),
		cmocka_unit_test(test_read_nothing), cmocka_unit_test(test_list_is_full),
	};

	return cmocka_run_group_tests(tests, root_make, root_remove);
}

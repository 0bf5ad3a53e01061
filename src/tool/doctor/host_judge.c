// SPDX-License-Identifier: Apache-2.0
/*
 * Kernel, clock, CPU and memory judged. See host.h. Plain functions of the facts: no file
 * is read here.
 */
#include "tool/doctor/host.h"

#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define AREA "host"
#define MEMLOCK_LEAST (UINT64_C(64) << 20) /* what registered buffers of a few messages take */
#define MEMORY_LEAST (UINT64_C(256) << 20)
#define THP "/sys/kernel/mm/transparent_hugepage/enabled"
#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

int kernel_at_least(const char *release, int major, int minor)
{
	int have_major = 0, have_minor = 0;

	if (sscanf(release, "%d.%d", &have_major, &have_minor) != 2)
		return 0;
	return have_major > major || (have_major == major && have_minor >= minor);
}

static void judge_kernel(const struct host_facts *h, struct findings *f)
{
	struct finding *x;

	if (kernel_at_least(h->kernel, 5, 0)) {
		x = finding_add(f, AREA, LEVEL_OK, "kernel", "Linux %s", h->kernel);
	} else {
		x = finding_add(f, AREA,
				kernel_at_least(h->kernel, 4, 18) ? LEVEL_NOTE : LEVEL_ATTENTION,
				"kernel", "Linux %s: no %s", h->kernel,
				kernel_at_least(h->kernel, 4, 18)
					? "coalescing of UDP (GRO, from 5.0)"
					: "segmentation offload of UDP (GSO, from 4.18)");
		finding_why(x, "Without it each packet costs a system call.");
		finding_fix(x, "# install a newer kernel of your distribution, e.g.: "
			       "sudo apt full-upgrade");
	}
	finding_evidence(x, "uname -r = %s", h->kernel);
}

/* ---- clock ---------------------------------------------------------------------- */

static int is_slow_clock(const char *name)
{
	static const char *const slow[] = {"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"};

	for (size_t i = 0; i < sizeof slow / sizeof *slow; i++) {
		if (strcmp(name, slow[i]) == 0)
			return 1;
	}
	return 0;
}

static int has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = text; (p = strstr(p, word)); p += len) {
		if ((p == text || p[-1] == ' ') && (p[len] == ' ' || p[len] == '\0'))
			return 1;
	}
	return 0;
}

static void judge_clock(const struct host_facts *h, struct findings *f)
{
	static const char *const better[] = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page",
					     "xen", "arch_sys_counter"};
	struct finding *x;

	if (!*h->clock) {
		x = finding_add(f, AREA, LEVEL_SKIPPED, "clock", "clock source unknown");
		finding_evidence(x, "%s cannot be read", CLOCKSOURCE);
		return;
	}
	x = finding_add(f, AREA, is_slow_clock(h->clock) ? LEVEL_ATTENTION : LEVEL_OK, "clock",
			"clock source %s%s", h->clock,
			is_slow_clock(h->clock) ? " is slow to read" : "");
	finding_evidence(x, "%s = %s (of: %s)", CLOCKSOURCE, h->clock, h->clocks);
	if (!is_slow_clock(h->clock))
		return;
	finding_why(x, "Time is read for every batch of packets: about 25 ns with tsc, 1 µs and "
		       "a system call with this.");
	for (size_t i = 0; i < sizeof better / sizeof *better; i++) {
		if (!has_word(h->clocks, better[i]))
			continue;
		finding_fix(x, "echo %s | sudo tee %s", better[i], CLOCKSOURCE);
		return;
	}
	finding_fix(x,
		    "# tsc is not offered: add tsc=reliable to the kernel's command line, or ask "
		    "the provider");
}

/* ---- CPU ------------------------------------------------------------------------ */

static void judge_cpus(const struct host_facts *h, struct findings *f)
{
	int few = h->cpus_allowed < 2, fewer = h->cpus_allowed < h->cpus_online;
	struct finding *x;

	x = finding_add(f, AREA, few || fewer ? LEVEL_NOTE : LEVEL_OK, "cpus",
			"%u of %u CPU%s may be used", h->cpus_allowed, h->cpus_online,
			h->cpus_online == 1 ? "" : "s");
	finding_evidence(x, "sched_getaffinity: %u CPUs, online: %u", h->cpus_allowed,
			 h->cpus_online);
	if (h->smt >= 0)
		finding_evidence(x, "/sys/devices/system/cpu/smt/active = %d%s", h->smt,
				 h->smt ? " (two of them share a core)" : "");
	if (fewer)
		finding_why(x, "This process is pinned to a part of the CPUs.");
	if (few)
		finding_why(x, "The kernel's network work, a receiving worker and the program "
			       "share one CPU; --workers gains nothing.");
	if (fewer) {
		finding_fix(x, "taskset -c 0-%u sdr perf", h->cpus_online - 1);
		if (h->container)
			finding_fix(x, "docker update --cpuset-cpus 0-%u CONTAINER",
				    h->cpus_online - 1);
	}
}

static void judge_quota(const struct host_facts *h, struct findings *f)
{
	struct finding *x;
	int bad = h->quota_cpus > 0 && (h->quota_cpus < 1 || h->throttled > 0);

	if (h->quota_cpus <= 0) {
		x = finding_add(f, AREA, LEVEL_OK, "cpu-quota", "no CPU quota");
		finding_evidence(x, "no cpu.max or cpu.cfs_quota_us above this process has one");
		return;
	}
	x = finding_add(f, AREA, bad ? LEVEL_ATTENTION : LEVEL_NOTE, "cpu-quota",
			"a quota of %.3g CPUs%s", h->quota_cpus,
			h->throttled ? ", and it has been used up" : "");
	finding_evidence(x, "%s", h->quota_from);
	finding_evidence(x, "nr_throttled = %" PRIu64, h->throttled);
	finding_why(x, "A process that has used its share stands still for the rest of 100 ms, "
		       "while packets overflow the socket buffer.");
	if (h->container)
		finding_fix(x, "docker update --cpus %u CONTAINER",
			    h->cpus_online ? h->cpus_online : 2);
	else
		finding_fix(x, "sudo systemctl set-property UNIT CPUQuota=");
}

static void judge_governor(const struct host_facts *h, struct findings *f)
{
	int dynamic = strncmp(h->scaling_driver, "intel_pstate", 12) == 0 ||
		      strncmp(h->scaling_driver, "amd-pstate-epp", 14) == 0 ||
		      strncmp(h->scaling_driver, "amd_pstate", 10) == 0;
	int slow = strcmp(h->governor, "powersave") == 0;
	struct finding *x;

	if (!*h->governor) {
		x = finding_add(f, AREA, LEVEL_OK, "governor", "CPU clock not ours to set");
		finding_evidence(x,
				 "no /sys/devices/system/cpu/cpu0/cpufreq (a virtual machine, or "
				 "set by firmware)");
		return;
	}
	x = finding_add(f, AREA,
			!slow	  ? LEVEL_OK
			: dynamic ? LEVEL_NOTE
				  : LEVEL_ATTENTION,
			"governor", "CPU frequency governor %s", h->governor);
	finding_evidence(x, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor = %s, driver %s",
			 h->governor, h->scaling_driver);
	if (!slow)
		return;
	finding_why(x, dynamic ? "This driver raises the clock under load, but a while after it "
				 "comes: latency and short bursts pay."
			       : "It holds the CPU at its lowest clock.");
	finding_fix(x, "echo performance | sudo tee "
		       "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor");
}

static void judge_load(const struct host_facts *h, struct findings *f)
{
	double cpus = h->cpus_allowed ? h->cpus_allowed : 1, share = h->load1 / cpus;
	struct finding *x;

	if (h->load1 < 0) {
		x = finding_add(f, AREA, LEVEL_SKIPPED, "load", "load unknown");
		finding_evidence(x, "/proc/loadavg cannot be read");
		return;
	}
	x = finding_add(f, AREA,
			share >= 1     ? LEVEL_ATTENTION
			: share >= 0.7 ? LEVEL_NOTE
				       : LEVEL_OK,
			"load", "load %.2f on %.0f CPU%s", h->load1, cpus, cpus > 1 ? "s" : "");
	finding_evidence(x, "/proc/loadavg: %.2f runnable in the last minute", h->load1);
	if (share < 0.7)
		return;
	finding_why(x, "Others want the CPU at the same time: what is measured here says more of "
		       "them than of the path.");
	finding_fix(x, "top -o %%CPU");
}

/* ---- memory --------------------------------------------------------------------- */

static void judge_memory(const struct host_facts *h, struct findings *f)
{
	char free_text[UNITS_TEXT], all_text[UNITS_TEXT];
	struct finding *x;

	if (!h->available_bytes) {
		x = finding_add(f, AREA, LEVEL_SKIPPED, "memory", "free memory unknown");
		finding_evidence(x, "/proc/meminfo has no MemAvailable");
		return;
	}
	units_size_text(free_text, h->available_bytes);
	units_size_text(all_text, h->memory_bytes);
	x = finding_add(f, AREA, h->available_bytes < MEMORY_LEAST ? LEVEL_ATTENTION : LEVEL_OK,
			"memory", "%s of %s memory available", free_text, all_text);
	finding_evidence(x, "/proc/meminfo: MemAvailable = %s", free_text);
	if (h->available_bytes < MEMORY_LEAST) {
		finding_why(x, "Socket buffers and receives of a fast, long path take hundreds of "
			       "megabytes.");
		finding_fix(x, "ps aux --sort -rss | head");
	}
}

static void judge_memlock(const struct host_facts *h, int rdma, struct findings *f)
{
	char text[UNITS_TEXT];
	struct finding *x;

	if (h->memlock_bytes == UINT64_MAX || h->may_lock) {
		x = finding_add(f, AREA, LEVEL_OK, "memlock", "memory may be locked%s",
				h->memlock_bytes == UINT64_MAX ? " without limit" : ": privileged");
		if (h->memlock_bytes == UINT64_MAX)
			finding_evidence(x, "RLIMIT_MEMLOCK = unlimited");
		else
			finding_evidence(x,
					 "CAP_IPC_LOCK is held (/proc/self/status: CapEff), so "
					 "RLIMIT_MEMLOCK = %s does not count",
					 units_size_text(text, h->memlock_bytes));
		return;
	}
	units_size_text(text, h->memlock_bytes);
	x = finding_add(f, AREA,
			h->memlock_bytes >= MEMLOCK_LEAST ? LEVEL_OK
			: rdma				  ? LEVEL_ATTENTION
							  : LEVEL_NOTE,
			"memlock", "at most %s of memory may be locked", text);
	finding_evidence(x, "getrlimit(RLIMIT_MEMLOCK) = %" PRIu64 " (ulimit -l)",
			 h->memlock_bytes);
	if (h->memlock_bytes >= MEMLOCK_LEAST)
		return;
	finding_why(x, "%s",
		    rdma ? "An RDMA device needs registered memory locked; registering more than "
			   "this fails with ENOMEM."
			 : "Plain UDP needs none; an RDMA device would.");
	if (h->container)
		finding_fix(x, "docker run --ulimit memlock=-1:-1 ...");
	finding_fix(x, "ulimit -l unlimited");
	finding_fix(x, "echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/sdr.conf");
}

static void judge_huge_pages(const struct host_facts *h, struct findings *f)
{
	int none = strcmp(h->thp, "never") == 0 && h->huge_total == 0;
	struct finding *x;

	if (!*h->thp && h->huge_total == 0) {
		x = finding_add(f, AREA, LEVEL_NOTE, "huge-pages", "this kernel has no huge pages");
	} else if (none) {
		x = finding_add(f, AREA, LEVEL_NOTE, "huge-pages", "huge pages are switched off");
	} else {
		x = finding_add(f, AREA, LEVEL_OK, "huge-pages", "huge pages: %s",
				*h->thp && strcmp(h->thp, "never") ? h->thp : "reserved");
	}
	finding_evidence(x, "%s = %s", THP, *h->thp ? h->thp : "(not there)");
	finding_evidence(x, "/proc/meminfo: HugePages_Total %" PRIu64 ", HugePages_Free %" PRIu64,
			 h->huge_total, h->huge_free);
	if (!none)
		return;
	finding_why(x, "Fresh buffers cost a page fault for each 4 KiB, some microseconds each in "
		       "a virtual machine.");
	finding_fix(x, "echo madvise | sudo tee %s", THP);
}

void host_judge(const struct host_facts *h, int rdma, struct findings *f)
{
	judge_kernel(h, f);
	judge_clock(h, f);
	judge_cpus(h, f);
	judge_quota(h, f);
	judge_governor(h, f);
	judge_load(h, f);
	judge_memory(h, f);
	judge_memlock(h, rdma, f);
	judge_huge_pages(h, f);
}

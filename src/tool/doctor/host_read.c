// SPDX-License-Identifier: Apache-2.0
/*
 * Facts of the host. See host.h. What cannot be read stays unknown; nothing is judged.
 */
#include "tool/doctor/host.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#define CAP_IPC_LOCK_BIT 14

static void read_clock(const struct source *s, struct host_facts *h)
{
	static const char dir[] = "/sys/devices/system/clocksource/clocksource0";

	if (source_text(s, h->clock, sizeof h->clock, "%s/current_clocksource", dir) < 0)
		h->clock[0] = '\0';
	if (source_text(s, h->clocks, sizeof h->clocks, "%s/available_clocksource", dir) < 0)
		h->clocks[0] = '\0';
}

static void keep_quota(struct host_facts *h, double cpus, const char *from)
{
	if (cpus <= 0 || (h->quota_cpus > 0 && h->quota_cpus <= cpus))
		return;
	h->quota_cpus = cpus;
	snprintf(h->quota_from, sizeof h->quota_from, "%s", from);
}

/* cgroup 2: "max 100000" or "150000 100000". */
static void read_quota2(const struct source *s, struct host_facts *h, const char *dir)
{
	char text[64], from[192], stat[2048];
	uint64_t quota, period, n;

	if (source_text(s, text, sizeof text, "%s/cpu.max", dir) == 0 &&
	    sscanf(text, "%" SCNu64 " %" SCNu64, &quota, &period) == 2 && period) {
		snprintf(from, sizeof from, "%.150s/cpu.max = %.24s", dir, text);
		keep_quota(h, (double)quota / (double)period, from);
	}
	if (source_text(s, stat, sizeof stat, "%s/cpu.stat", dir) == 0 &&
	    text_field(stat, "nr_throttled", &n) == 0 && n > h->throttled)
		h->throttled = n;
}

static void read_quota1(const struct source *s, struct host_facts *h, const char *dir)
{
	char from[192], stat[1024];
	uint64_t quota, period, n;

	if (source_number(s, &quota, "%s/cpu.cfs_quota_us", dir) == 0 &&
	    source_number(s, &period, "%s/cpu.cfs_period_us", dir) == 0 && period) {
		snprintf(from, sizeof from, "%.130s/cpu.cfs_quota_us = %" PRIu64, dir, quota);
		keep_quota(h, (double)quota / (double)period, from);
	}
	if (source_text(s, stat, sizeof stat, "%s/cpu.stat", dir) == 0 &&
	    text_field(stat, "nr_throttled", &n) == 0 && n > h->throttled)
		h->throttled = n;
}

/* The cgroup and all above it: the tightest counts. */
static void walk_up(const struct source *s, struct host_facts *h, const char *mount, char *group,
		    void (*look)(const struct source *, struct host_facts *, const char *))
{
	char dir[SOURCE_PATH];

	for (;;) {
		int is_top = strcmp(group, "/") == 0;
		char *slash;

		snprintf(dir, sizeof dir, "%.60s%.400s", mount, group + is_top);
		look(s, h, dir);
		slash = strrchr(group, '/');
		if (!slash || is_top)
			return;
		*slash = '\0';
		if (!*group)
			strcpy(group, "/");
	}
}

static int names_cpu(const char *controllers, size_t len)
{
	for (const char *p = controllers, *end = p + len; p < end;) {
		const char *comma = memchr(p, ',', (size_t)(end - p));
		size_t n = comma ? (size_t)(comma - p) : (size_t)(end - p);

		if (n == 3 && memcmp(p, "cpu", 3) == 0)
			return 1;
		p += n + 1;
	}
	return 0;
}

static void read_cgroups(const struct source *s, struct host_facts *h)
{
	char text[4096], group[400], *save = NULL;

	if (source_text(s, text, sizeof text, "/proc/self/cgroup") < 0)
		return;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;

		if (!path)
			continue;
		snprintf(group, sizeof group, "%s", path + 1);
		if (names + 1 == path)
			walk_up(s, h, "/sys/fs/cgroup", group, read_quota2);
		else if (names_cpu(names + 1, (size_t)(path - names - 1)))
			walk_up(s, h, "/sys/fs/cgroup/cpu", group, read_quota1);
	}
}

static void read_cpus(const struct source *s, struct host_facts *h)
{
	cpu_set_t set;
	uint64_t smt;
	char text[64];
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	h->cpus_online = n > 0 ? (uint32_t)n : 0;
	if (sched_getaffinity(0, sizeof set, &set) == 0)
		h->cpus_allowed = (uint32_t)CPU_COUNT(&set);
	h->smt = source_number(s, &smt, "/sys/devices/system/cpu/smt/active") == 0 ? smt != 0 : -1;
	read_cgroups(s, h);
	if (source_text(s, h->governor, sizeof h->governor,
			"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") < 0)
		h->governor[0] = '\0';
	if (source_text(s, h->scaling_driver, sizeof h->scaling_driver,
			"/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver") < 0)
		h->scaling_driver[0] = '\0';
	h->load1 = source_text(s, text, sizeof text, "/proc/loadavg") == 0 ? atof(text) : -1;
}

/* "always [madvise] never": what is in brackets. */
static void read_thp(const struct source *s, struct host_facts *h)
{
	char text[64], *open, *close;

	if (source_text(s, text, sizeof text, "/sys/kernel/mm/transparent_hugepage/enabled") < 0)
		return;
	open = strchr(text, '[');
	close = open ? strchr(open, ']') : NULL;
	if (close)
		snprintf(h->thp, sizeof h->thp, "%.*s", (int)(close - open - 1), open + 1);
}

static void read_memory(const struct source *s, struct host_facts *h)
{
	char *text = source_file(s, "/proc/meminfo");
	struct rlimit lim;
	uint64_t kib;

	if (text) {
		if (text_field(text, "MemTotal", &kib) == 0)
			h->memory_bytes = kib << 10;
		if (text_field(text, "MemAvailable", &kib) == 0)
			h->available_bytes = kib << 10;
		(void)text_field(text, "HugePages_Total", &h->huge_total);
		(void)text_field(text, "HugePages_Free", &h->huge_free);
		if (text_field(text, "Hugepagesize", &kib) == 0)
			h->huge_bytes = kib << 10;
	}
	free(text);
	read_thp(s, h);
	if (getrlimit(RLIMIT_MEMLOCK, &lim) == 0)
		h->memlock_bytes = lim.rlim_cur == RLIM_INFINITY ? UINT64_MAX : lim.rlim_cur;
}

static void read_capabilities(const struct source *s, struct host_facts *h)
{
	char *text = source_file(s, "/proc/self/status");
	const char *line = text ? strstr(text, "CapEff:") : NULL;

	if (line)
		h->may_lock = (strtoull(line + 7, NULL, 16) >> CAP_IPC_LOCK_BIT & 1) != 0;
	free(text);
}

void host_read(const struct source *s, struct host_facts *h)
{
	struct utsname u;

	*h = (struct host_facts){.smt = -1, .load1 = -1};
	if (uname(&u) == 0) {
		snprintf(h->name, sizeof h->name, "%s", u.nodename);
		snprintf(h->kernel, sizeof h->kernel, "%s", u.release);
		snprintf(h->machine, sizeof h->machine, "%s", u.machine);
	}
	h->container = source_exists(s, "/.dockerenv") || source_exists(s, "/run/.containerenv");
	read_clock(s, h);
	read_cpus(s, h);
	read_memory(s, h);
	read_capabilities(s, h);
}

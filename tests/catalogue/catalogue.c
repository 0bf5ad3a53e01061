/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalogue [--list] [--family F] [NAME...]: runs scenarios, each in a process of its own, and
 * prints a line of each: how long it took in virtual time, the least time by physics, the
 * ratio of the two, the ceiling. `loss_mask_<hex>` is a name for any mask. SDR_SEED=n runs one
 * seed of each. Ends with a line of counts; 1 where one has failed.
 *
 * Knows nothing of what is in a scenario.
 */
#include "catalogue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const family_names[FAMILIES] = {"loss", "codes", "path",    "g1050", "satellite",
						   "nat",  "peer",  "hostile", "real"};

/* What the process of a scenario tells, in memory that both see. */
struct outcome {
	uint64_t seed; /* the one that runs */
	unsigned int seeds;
	double sum_ns, worst_ns, ideal_sum_ns;
	uint64_t worst_seed, heap_peak;
	char note[sizeof(((struct lab *)0)->note)];
};

struct count {
	unsigned int passed, failed, skipped;
};

const struct scenario *catalogue_find(const char *name)
{
	for (unsigned int i = 0; i < catalogue_n; i++) {
		if (strcmp(catalogue[i].name, name) == 0)
			return &catalogue[i];
	}
	return NULL;
}

uint64_t catalogue_mask(const char *name)
{
	static const char prefix[] = "loss_mask_";
	char *end;
	uint64_t mask;

	if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
		return 0;
	mask = strtoull(name + sizeof(prefix) - 1, &end, 16);
	return *end ? 0 : mask;
}

/* ---- in the scenario's process ---- */

static void run_seed(const struct scenario *s, uint64_t seed, struct outcome *out)
{
	static struct lab lab;
	double took;

	memset(&lab, 0, sizeof(lab));
	lab.seed = out->seed = seed;
	memcpy(lab.arg, s->arg, sizeof(lab.arg));
	s->run(&lab);
	took = (double)(lab.done_ns - lab.start_ns);
	if (getenv("SDR_VERBOSE"))
		fprintf(stderr, "seed %llu: %.3f ms\n", (unsigned long long)seed, took / 1e6);
	out->seeds++;
	out->sum_ns += took;
	out->ideal_sum_ns += lab.ideal_ns;
	if (took > out->worst_ns) {
		out->worst_ns = took;
		out->worst_seed = seed;
	}
	out->heap_peak = lab.heap_peak > out->heap_peak ? lab.heap_peak : out->heap_peak;
	memcpy(out->note, lab.note, sizeof(out->note));
}

static void run_all(const struct scenario *s, struct outcome *out)
{
	uint64_t first = seed_first(1);
	unsigned int n = seed_count(s->seeds ? s->seeds : 1);

	/* Or cmocka keeps to itself what it found, as no test of its own runs. */
	setenv("CMOCKA_TEST_ABORT", "1", 1);
	for (uint64_t seed = first; seed < first + n; seed++)
		run_seed(s, seed, out);
	exit(0);
}

/* ---- judging ---- */

static int wait_for(pid_t pid, double *cpu_s)
{
	struct rusage ru;
	int status = -1;

	if (wait4(pid, &status, 0, &ru) != pid)
		return -1;
	*cpu_s = (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
		 (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6;
	return status;
}

/* NULL where it is fast enough. Ceilings are those of the seeds in the table, no others. */
static const char *too_slow(const struct scenario *s, const struct outcome *out)
{
	static char text[160];
	double mean = out->sum_ns / out->seeds / 1e6, worst = out->worst_ns / 1e6;
	double limit = s->worst_ms > 0 ? s->worst_ms : s->ceiling_ms;

	if (s->ceiling_ms <= 0)
		return NULL;
	if (!getenv("SDR_SEED") && mean > s->ceiling_ms)
		snprintf(text, sizeof(text), "the mean is above its ceiling of %g ms",
			 s->ceiling_ms);
	else if (worst > limit)
		snprintf(text, sizeof(text), "seed %llu took %.3f ms, above %g ms",
			 (unsigned long long)out->worst_seed, worst, limit);
	else
		return NULL;
	return text;
}

static void print_line(const struct scenario *s, const struct outcome *out, double cpu_s,
		       const char *status)
{
	double mean = out->seeds ? out->sum_ns / out->seeds / 1e6 : 0;
	double ideal = out->seeds ? out->ideal_sum_ns / out->seeds / 1e6 : 0;

	printf("%-26s %12.3f %12.3f %7.2f %12.3f %12.3f %10.1f %6.2f  %s%s%s\n", s->name, mean,
	       ideal, ideal > 0 ? mean / ideal : 0, out->worst_ns / 1e6, s->ceiling_ms,
	       (double)out->heap_peak / 1024, cpu_s, status, out->note[0] ? "  " : "", out->note);
	fflush(stdout);
}

static void skipped(const struct scenario *s, struct count *count)
{
	printf("%-26s %s%s\n", s->name,
	       s->elsewhere ? "elsewhere: " : "needs: ", s->elsewhere ? s->elsewhere : s->needs);
	count->skipped++;
}

static void run(const struct scenario *s, struct outcome *out, struct count *count)
{
	const char *slow;
	double cpu_s = 0;
	pid_t pid;
	int status;

	if (!s->run) {
		skipped(s, count);
		return;
	}
	memset(out, 0, sizeof(*out));
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		run_all(s, out);
	status = pid < 0 ? -1 : wait_for(pid, &cpu_s);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		printf("%-26s skipped: %s\n", s->name, out->note);
		count->skipped++;
		return;
	}
	if (status == 0 && !out->seeds)
		status = -1; /* not one was run: that proves nothing */
	slow = status == 0 ? too_slow(s, out) : NULL;
	print_line(s, out, cpu_s, status ? "FAILED" : slow ? "SLOW" : "ok");
	if (status == 0 && !slow) {
		count->passed++;
		return;
	}
	count->failed++;
	if (slow)
		printf("  %s\n", slow);
	else if (WIFSIGNALED(status))
		printf("  ended by signal %d\n", WTERMSIG(status));
	printf("  replay: SDR_VERBOSE=1 SDR_SEED=%llu catalogue %s\n",
	       (unsigned long long)(slow ? out->worst_seed : out->seed), s->name);
}

/* ---- the command ---- */

static void list(void)
{
	for (unsigned int i = 0; i < catalogue_n; i++) {
		const struct scenario *s = &catalogue[i];

		printf("%-26s %-10s %s%s%s%s\n", s->name, family_names[s->family], s->injected,
		       s->needs	      ? "; needs: "
		       : s->elsewhere ? "; elsewhere: "
				      : "",
		       s->needs	      ? s->needs
		       : s->elsewhere ? s->elsewhere
				      : "",
		       s->remark ? "" : "");
		if (s->remark)
			printf("%-26s %-10s   %s\n", "", "", s->remark);
	}
}

static int usage(const char *what, const char *which)
{
	fprintf(stderr,
		"catalogue: %s '%s'\nusage: catalogue [--list] [--family F] [NAME...]\n"
		"       NAME: a name of --list, or loss_mask_<hex> for any mask but 0\n"
		"       F:    loss, path, g1050, satellite, nat, peer, hostile, real\n",
		what, which);
	return 2;
}

/* One that is not in the table, with the limits of those that are. */
static struct scenario mask_scenario(const char *name)
{
	struct scenario s = *catalogue_find("loss_mask_800");

	s.name = name;
	s.injected = "packets of both directions at the mask's bits";
	s.ceiling_ms = s.worst_ms = 0;
	return s;
}

int main(int argc, char **argv)
{
	struct outcome *out =
		mmap(NULL, sizeof(*out), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct count count = {0};
	int family = -1, at = 1;

	if (out == MAP_FAILED)
		return 2;
	if (at < argc && strcmp(argv[at], "--list") == 0) {
		list();
		return 0;
	}
	if (at + 1 < argc && strcmp(argv[at], "--family") == 0) {
		for (family = FAMILIES; family-- > 0;)
			if (strcmp(family_names[family], argv[at + 1]) == 0)
				break;
		if (family < 0)
			return usage("no family", argv[at + 1]);
		at += 2;
	}
	for (int i = at; i < argc; i++) {
		if (!catalogue_find(argv[i]) && !catalogue_mask(argv[i]))
			return usage("no scenario", argv[i]);
	}
	printf("%-26s %12s %12s %7s %12s %12s %10s %6s\n", "scenario (times in ms)", "mean",
	       "least", "ratio", "longest", "ceiling", "KiB held", "CPU s");
	for (unsigned int i = 0; at >= argc && i < catalogue_n; i++) {
		if (family < 0 || (int)catalogue[i].family == family)
			run(&catalogue[i], out, &count);
	}
	for (int i = at; i < argc; i++) {
		const struct scenario *s = catalogue_find(argv[i]);
		struct scenario mask;

		if (!s) {
			mask = mask_scenario(argv[i]);
			mask.arg[0] = (double)catalogue_mask(argv[i]);
			s = &mask;
		}
		run(s, out, &count);
	}
	printf("%u passed, %u failed, %u skipped\n", count.passed, count.failed, count.skipped);
	return count.failed ? 1 : 0;
}

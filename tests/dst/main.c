/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dst: runs seeds, in worker processes, and says which failed and how to see it again.
 * A worker that dies, of an assertion, a sanitizer, or too long a seed, is a failed seed.
 */
#include "dst.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOBS_MAX 256u
#define SEEDS_DEFAULT 100u
#define SITES_SEEDS 300u /* from so many on a site that was never reached is a failure */
#define SEED_CPU_S 120	 /* a seed that takes longer hangs */
#define PROGRESS_S 10	 /* later, of long runs, one a minute */

struct options {
	uint64_t first, seeds, minutes, jobs;
	bool one, verbose, sites, twice, payloads, keep_going, trace, progress;
};

struct shared {
	uint64_t next, done, stop;
	uint64_t current[JOBS_MAX]; /* seed + 1; 0: none */
	uint64_t sites[SITE_COUNT];
};

static struct options opt = {.first = 1, .seeds = SEEDS_DEFAULT, .jobs = 1};
static struct shared *shared;

static void usage(FILE *to)
{
	fprintf(to,
		"usage: dst [--seed N] [--seeds N] [--first N] [--minutes N] [--jobs N]\n"
		"           [--verbose] [--sites] [--twice] [--payloads] [--keep-going] [--trace]\n"
		"           [--progress]\n"
		"Runs whole simulated worlds, each drawn from a seed, and checks what must hold.\n"
		"  --seed N      that one only, in this process\n"
		"  --seeds N     how many (default %u)\n"
		"  --first N     beginning there (default 1)\n"
		"  --minutes N   as many as there is time for, instead of --seeds\n"
		"  --jobs N      processes, 1 to %u (default 1)\n"
		"  --verbose     tells what happens in each world\n"
		"  --sites       prints how often each site was reached\n"
		"  --twice       each seed twice: its trace must be the same\n"
		"  --payloads    each seed with payload and without: all must happen alike\n"
		"  --keep-going  after a failure too; the last line counts them\n"
		"  --trace       prints the hash of each seed's trace\n"
		"  --progress    a line every %d s\n",
		SEEDS_DEFAULT, JOBS_MAX, PROGRESS_S);
}

static uint64_t number(const char *flag, const char *text, uint64_t least, uint64_t most)
{
	char *end;
	uint64_t v;

	errno = 0;
	v = strtoull(text, &end, 0);
	if (errno || end == text || *end || *text == '-' || v < least || v > most) {
		fprintf(stderr, "dst: --%s %s: give a number from %llu to %llu\n", flag, text,
			(unsigned long long)least, (unsigned long long)most);
		exit(2);
	}
	return v;
}

static void parse(int argc, char **argv)
{
	static const struct option longs[] = {
		{"seed", 1, NULL, 's'},	   {"seeds", 1, NULL, 'n'},    {"first", 1, NULL, 'f'},
		{"minutes", 1, NULL, 'm'}, {"jobs", 1, NULL, 'j'},     {"verbose", 0, NULL, 'v'},
		{"sites", 0, NULL, 'S'},   {"twice", 0, NULL, 't'},    {"keep-going", 0, NULL, 'k'},
		{"trace", 0, NULL, 'T'},   {"progress", 0, NULL, 'p'}, {"payloads", 0, NULL, 'P'},
		{"help", 0, NULL, 'h'},	   {NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 's':
			opt.first = number("seed", optarg, 0, UINT64_MAX - 1);
			opt.one = true;
			break;
		case 'n':
			opt.seeds = number("seeds", optarg, 1, UINT64_MAX / 2);
			break;
		case 'f':
			opt.first = number("first", optarg, 0, UINT64_MAX / 2);
			break;
		case 'm':
			opt.minutes = number("minutes", optarg, 1, 1000000);
			break;
		case 'j':
			opt.jobs = number("jobs", optarg, 1, JOBS_MAX);
			break;
		case 'v':
			opt.verbose = true;
			break;
		case 'S':
			opt.sites = true;
			break;
		case 't':
			opt.twice = true;
			break;
		case 'P':
			opt.payloads = true;
			break;
		case 'k':
			opt.keep_going = true;
			break;
		case 'T':
			opt.trace = true;
			break;
		case 'p':
			opt.progress = true;
			break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			usage(stderr);
			exit(2);
		}
	}
	if (optind < argc) {
		fprintf(stderr, "dst: '%s' is no flag\n", argv[optind]);
		usage(stderr);
		exit(2);
	}
}

static void run_one(uint64_t seed)
{
	uint64_t trace, again;

	dst_run_seed(seed, opt.verbose, opt.payloads ? DST_PAYLOAD_ON : DST_PAYLOAD_DRAWN, &trace);
	if (opt.trace)
		printf("seed %llu trace %016llx\n", (unsigned long long)seed,
		       (unsigned long long)trace);
	if (!opt.twice && !opt.payloads)
		return;
	dst_run_seed(seed, opt.verbose, opt.payloads ? DST_PAYLOAD_OFF : DST_PAYLOAD_DRAWN, &again);
	if (again == trace)
		return;
	fprintf(stderr, "seed %llu: its trace is %016llx, and %016llx %s\n",
		(unsigned long long)seed, (unsigned long long)trace, (unsigned long long)again,
		opt.payloads ? "without payload" : "the second time");
	fflush(NULL);
	_exit(1);
}

/* ---- workers ---- */

static double now_s(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void work(unsigned int me)
{
	const struct itimerval patience = {.it_value.tv_sec = SEED_CPU_S};

	while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
		uint64_t i = __atomic_fetch_add(&shared->next, 1, __ATOMIC_RELAXED);

		if (!opt.minutes && i >= opt.seeds)
			break;
		shared->current[me] = opt.first + i + 1;
		(void)setitimer(ITIMER_VIRTUAL, &patience, NULL);
		run_one(opt.first + i);
		shared->current[me] = 0;
		__atomic_fetch_add(&shared->done, 1, __ATOMIC_RELAXED);
	}
	fflush(NULL);
	exit(0);
}

static pid_t start(unsigned int me)
{
	const pid_t parent = getpid();
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		perror("dst: fork");
		exit(2);
	}
	if (pid == 0) {
		/* Nobody else would tell it that the time is up. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		work(me);
	}
	return pid;
}

static void say_failed(unsigned int me, int status)
{
	uint64_t seed = shared->current[me] - 1;

	if (WIFSIGNALED(status))
		fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed,
			WTERMSIG(status) == SIGVTALRM ? "hangs (more CPU time than any seed needs)"
						      : strsignal(WTERMSIG(status)));
	fprintf(stderr, "FAILED: seed %llu; replay: %s --seed %llu --verbose\n",
		(unsigned long long)seed, dst_program, (unsigned long long)seed);
}

static void progress(double begun)
{
	double s = now_s() - begun;

	fprintf(stderr, "%.0f s: %llu seeds, %.0f a second\n", s, (unsigned long long)shared->done,
		(double)shared->done / (s > 0 ? s : 1));
}

/* Returns how many seeds failed. */
static uint64_t supervise(double begun)
{
	pid_t pid[JOBS_MAX];
	uint64_t failed = 0, alive = opt.jobs;
	double told = begun;

	for (unsigned int i = 0; i < opt.jobs; i++)
		pid[i] = start(i);
	while (alive) {
		int status;
		pid_t got = waitpid(-1, &status, WNOHANG);
		unsigned int me = 0;

		if (opt.minutes && now_s() - begun >= 60.0 * (double)opt.minutes)
			shared->stop = 1;
		if (opt.progress &&
		    now_s() - told >= (now_s() - begun < 60 * PROGRESS_S ? PROGRESS_S : 60)) {
			told = now_s();
			progress(begun);
		}
		if (got <= 0) {
			(void)usleep(20000);
			continue;
		}
		while (me < opt.jobs && pid[me] != got)
			me++;
		if (me == opt.jobs)
			continue;
		if (!shared->current[me]) {
			/* Of its own accord, or because of something: LeakSanitizer looks last. */
			if (status) {
				failed++;
				fprintf(stderr, "FAILED: a process ended with status %#x\n",
					status);
			}
			alive--;
			continue;
		}
		failed++;
		say_failed(me, status);
		shared->current[me] = 0;
		if (opt.keep_going) {
			pid[me] = start(me);
		} else {
			shared->stop = 1;
			alive--;
		}
	}
	return failed;
}

/* ---- sites ---- */

/* Returns how many were never reached. */
static unsigned int sites_report(bool print, bool judge)
{
	unsigned int missing = 0;

	for (unsigned int i = 0; i < SITE_COUNT; i++) {
		if (print)
			printf("%-20s %12llu  %s\n", dst_site_name(i),
			       (unsigned long long)dst_sites[i], dst_site_text(i));
		if (dst_sites[i])
			continue;
		missing++;
		if (judge)
			fprintf(stderr, "FAILED: site %s was never reached: %s\n", dst_site_name(i),
				dst_site_text(i));
	}
	return judge ? missing : 0;
}

int main(int argc, char **argv)
{
	double begun = now_s();
	uint64_t failed;
	unsigned int missing;

	dst_program = argv[0];
	parse(argc, argv);
	if (opt.one) {
		run_one(opt.first);
		(void)sites_report(opt.sites, false);
		printf("seed %llu passed\n", (unsigned long long)opt.first);
		return 0;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED) {
		perror("dst: mmap");
		return 2;
	}
	dst_sites = shared->sites;
	failed = supervise(begun);
	missing = sites_report(opt.sites, !failed && shared->done >= SITES_SEEDS);
	printf("seeds from %llu: %llu passed, %llu failed, %.1f s\n", (unsigned long long)opt.first,
	       (unsigned long long)shared->done, (unsigned long long)failed, now_s() - begun);
	return failed || missing;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * See pool.h.
 */
#include "tool/sim/pool.h"

#include "tool/cli.h"
#include "tool/say.h"

#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS 100

/* In memory that parent and workers share. */
struct shared {
	_Atomic uint64_t next, done;
	volatile sig_atomic_t stop;
	_Atomic uint64_t at[POOL_JOBS_MAX]; /* the task that each worker is at */
};

struct pool {
	const struct pool_plan *plan;
	struct shared *shared;
	struct run_result *results;
	pid_t pid[POOL_JOBS_MAX];
	uint64_t workers;
	int ends[2]; /* a pipe: its reader hears when the last worker has gone */
	uint64_t start_ns;
	bool failed;
};

uint64_t pool_tasks(const struct sweep *s, uint64_t first, uint64_t stride)
{
	uint64_t all = sweep_points(s) * s->runs;

	return all > first ? (all - first + stride - 1) / stride : 0;
}

uint64_t pool_cores(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
		return (uint64_t)CPU_COUNT(&set);
	return 1;
}

static void *shared_memory(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static size_t results_bytes(const struct pool_plan *plan)
{
	return (size_t)(plan->tasks ? plan->tasks : 1) * sizeof(struct run_result);
}

void pool_free(const struct pool_plan *plan, struct run_result *results)
{
	if (results)
		munmap(results, results_bytes(plan));
}

/* ---- a worker ------------------------------------------------------------------- */

static int work(struct pool *pool, uint64_t worker)
{
	struct shared *shared = pool->shared;
	const struct pool_plan *plan = pool->plan;
	struct runner *runner = runner_create();
	uint64_t task;

	if (!runner)
		return ENOMEM;
	while (!shared->stop && (task = atomic_fetch_add(&shared->next, 1)) < plan->tasks) {
		uint64_t i = plan->first + task * plan->stride;
		struct sim_point point;

		atomic_store(&shared->at[worker], i);
		sweep_point(plan->sweep, i / plan->sweep->runs, &point);
		runner_run(runner, plan->sweep, &point, i % plan->sweep->runs, &shared->stop,
			   &pool->results[task]);
		atomic_fetch_add(&shared->done, pool->results[task].done);
	}
	runner_destroy(runner);
	return 0;
}

/* What ends the parent, the parent handles: `stop` comes from it. A worker does not outlive it. */
static void worker_main(struct pool *pool, uint64_t worker, pid_t parent)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(pool->ends[0]);
	if (getppid() != parent)
		_exit(1);
	_exit(work(pool, worker));
}

static void start_workers(struct pool *pool)
{
	uint64_t want = pool->plan->jobs;
	pid_t parent = getpid();

	if (want > pool->plan->tasks)
		want = pool->plan->tasks;
	for (uint64_t i = 0; i < want; i++) {
		pid_t pid = fork();

		if (pid == 0)
			worker_main(pool, i, parent);
		if (pid < 0) {
			if (i > 0)
				break; /* with as many as there are */
			say("cannot start a process: %s", strerror(errno));
			pool->failed = true;
			return;
		}
		pool->pid[pool->workers++] = pid;
	}
}

/* ---- the parent ----------------------------------------------------------------- */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void show(const struct pool *pool)
{
	uint64_t done = atomic_load(&pool->shared->done), all = pool->plan->tasks;
	double spent = (double)(now_ns() - pool->start_ns);
	char line[128], left[UNITS_TEXT];

	if (!pool->plan->progress || done == 0)
		return;
	units_time_text(left, (uint64_t)(spent / (double)done * (double)(all - done)));
	snprintf(line, sizeof(line), "%" PRIu64 " of %" PRIu64 " runs, %.0f %%, about %s left",
		 done, all, 100.0 * (double)done / (double)all, left);
	say_bar(line);
}

static void say_death(struct pool *pool, uint64_t worker, int status)
{
	const struct sweep *s = pool->plan->sweep;
	uint64_t at = atomic_load(&pool->shared->at[worker]);
	struct sim_point point;
	char text[POINT_TEXT];

	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	pool->shared->stop = 1;
	pool->failed = true;
	sweep_point(s, at / s->runs, &point);
	if (WIFEXITED(status) && WEXITSTATUS(status) == ENOMEM)
		say("out of memory: fewer --jobs need less");
	else if (WIFSIGNALED(status))
		say("a worker was killed by signal %d (%s) in run %" PRIu64 " of %s",
		    WTERMSIG(status), strsignal(WTERMSIG(status)), at % s->runs,
		    point_text(s, &point, text));
	else
		say("a worker ended with status %d", WEXITSTATUS(status));
}

/* Of those that still are: what has ended; or, with no options, waits for them. */
static void reap(struct pool *pool, int options)
{
	for (uint64_t i = 0; i < pool->workers; i++) {
		int status = 0;
		pid_t pid;

		if (pool->pid[i] == 0)
			continue;
		while ((pid = waitpid(pool->pid[i], &status, options)) < 0 && errno == EINTR)
			;
		if (pid == 0)
			continue;
		pool->pid[i] = 0;
		say_death(pool, i, status);
	}
}

/* Until the pipe's writers, the workers, have all gone. */
static void watch(struct pool *pool)
{
	struct pollfd fd = {.fd = pool->ends[0], .events = POLLIN};

	while (poll(&fd, 1, LOOK_MS) <= 0) {
		if (cli_stop)
			pool->shared->stop = 1;
		reap(pool, WNOHANG);
		show(pool);
	}
	say_bar(NULL);
}

static int run_all(struct pool *pool)
{
	if (pipe2(pool->ends, O_CLOEXEC)) {
		say("cannot make a pipe: %s", strerror(errno));
		return -1;
	}
	pool->start_ns = now_ns();
	fflush(NULL);
	start_workers(pool);
	close(pool->ends[1]);
	watch(pool);
	reap(pool, 0);
	close(pool->ends[0]);
	if (cli_stop)
		say("stopped after %" PRIu64 " of %" PRIu64 " runs",
		    atomic_load(&pool->shared->done), pool->plan->tasks);
	return pool->failed || cli_stop ? -1 : 0;
}

int pool_run(const struct pool_plan *plan, struct run_result **out)
{
	struct pool pool = {.plan = plan};
	int rc = -1;

	pool.shared = shared_memory(sizeof(*pool.shared));
	pool.results = shared_memory(results_bytes(plan));
	if (!pool.shared || !pool.results)
		say("out of memory for %" PRIu64 " runs", plan->tasks);
	else
		rc = run_all(&pool);
	if (pool.shared)
		munmap(pool.shared, sizeof(*pool.shared));
	if (rc) {
		pool_free(plan, pool.results);
		pool.results = NULL;
	}
	*out = pool.results;
	return rc;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The life of a link's emulator. See emu.h. One thread, which sleeps until a frame comes, one is
 * due, a command asks, or a signal ends it. All that was made is removed in one place, whatever
 * was made.
 */
#include "tool/wan/emu_int.h"

#include "tool/cli.h"
#include "tool/say.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define IDLE_NS (10 * NS_PER_S) /* longest sleep */
/* The kernel may end a sleep late by a thousandth, for the sake of power: sleep less, then
 * again. Below this the share is less than what waking up takes. */
#define EXACT_NS (20 * NS_PER_US)
/*
 * While frames come and go without a pause, the emulator looks after them this often, not at each:
 * to wake it for a frame costs the end that sent it more than the frame does. So late may
 * a frame be in or out, but never by more than a part of the link's delay.
 */
#define RESERVE_MOST 67108864.0 /* bytes, of memory that waits for packets */
#define REST_NS (100 * NS_PER_US)
#define REST_PART 20

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t emu_now_ns(const struct emu *e)
{
	return clock_ns() - e->start_ns;
}

/* ---- the loop ---------------------------------------------------------------------- */

static struct timespec sleep_for(const struct emu *e)
{
	uint64_t now = emu_now_ns(e), next = wan_line_next_ns(e->line);
	uint64_t until = emu_ctl_until_ns(e), wait = IDLE_NS;

	if (until < next)
		next = until;
	if (next <= now)
		wait = 0;
	else if (next - now < wait)
		wait = next - now;
	if (wait > EXACT_NS)
		wait -= wait / 500;
	return (struct timespec){.tv_sec = (time_t)(wait / NS_PER_S),
				 .tv_nsec = (long)(wait % NS_PER_S)};
}

void emu_values_changed(struct emu *e)
{
	const struct wan_config *c = &e->setup.config;

	e->rest_ns = REST_NS;
	for (uint32_t k = 0; k < c->n_paths; k++) {
		for (int from = WAN_A; from <= WAN_B; from++) {
			uint64_t part = c->path[from][k].attr.delay_ns / REST_PART;

			if (part < e->rest_ns)
				e->rest_ns = part;
		}
	}
}

static void rest(const struct emu *e)
{
	const struct timespec t = {.tv_nsec = (long)e->rest_ns};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static void loop(struct emu *e)
{
	struct pollfd polls[EMU_POLLS];
	uint64_t woken_ns = 0, before_ns = 0;

	polls[0] = (struct pollfd){.fd = e->ends.end[WAN_A].tun, .events = POLLIN};
	polls[1] = (struct pollfd){.fd = e->ends.end[WAN_B].tun, .events = POLLIN};
	polls[2] = (struct pollfd){.fd = e->signals, .events = POLLIN};
	while (!e->stop) {
		size_t n = 3 + emu_ctl_watch(e, polls + 3);
		struct timespec wait;
		int events;

		if (woken_ns - before_ns < 2 * e->rest_ns)
			rest(e);
		wait = sleep_for(e);
		events = ppoll(polls, n, &wait, NULL);
		if (events < 0)
			continue; /* EINTR: we block what we wait for; a debugger does that */
		before_ns = woken_ns;
		woken_ns = emu_now_ns(e);
		if (events == 0 && wan_line_next_ns(e->line) == UINT64_MAX)
			malloc_trim(0); /* nobody sends: what a burst needed goes back */
		if (polls[2].revents)
			e->stop = true;
		emu_deliver(e);
		if (polls[0].revents)
			emu_take_in(e, WAN_A);
		if (polls[1].revents)
			emu_take_in(e, WAN_B);
		emu_ctl_serve(e, polls + 3, n - 3);
	}
}

/* ---- making ------------------------------------------------------------------------ */

static int block_signals(struct emu *e)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	e->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (e->signals >= 0)
		return 0;
	say("the emulator cannot wait for signals: %s", strerror(errno));
	return -1;
}

/* The lock, and no remains of an earlier link. */
static int claim(struct emu *e)
{
	e->lock = wan_lock_take(e->names);
	if (e->lock == -EBUSY)
		say("link '%s' is up already: choose another name, change it with 'sdr wan set "
		    "%s', or remove it with 'sdr wan down %s'",
		    e->names->name, e->names->name, e->names->name);
	if (e->lock < 0)
		return -1;
	wan_ends_clean(e->names);
	return 0;
}

/* What the paths and their queues hold when full, up to a limit. */
static uint64_t full_bytes(const struct wan_config *c)
{
	double sum = 0;

	for (uint32_t k = 0; k < c->n_paths; k++) {
		for (int from = WAN_A; from <= WAN_B; from++) {
			const struct link_attr *a = &c->path[from][k].attr;

			sum += (double)a->rate_bps / (8 * NS_PER_S) *
				       ((double)a->delay_ns + (double)a->queue_ns) +
			       (double)a->queue_bytes;
		}
	}
	return sum < RESERVE_MOST ? (uint64_t)sum : (uint64_t)RESERVE_MOST;
}

static int make_line(struct emu *e)
{
	int rc = wan_line_create(&e->setup.config, 0, &sdr_alloc_system, &e->line);

	if (rc == 0) {
		wan_line_reserve(e->line, full_bytes(&e->setup.config));
		return 0;
	}
	e->line = NULL;
	say("the link's values do not fit together: %s: see 'sdr help wan'", strerror(-rc));
	return -1;
}

/* A frame that is due goes before what the ends compute; else delays are those of the
 * scheduler. All best effort. */
static void be_punctual(struct emu *e)
{
	struct sched_param param = {.sched_priority = 1};

	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	if (sched_setscheduler(0, SCHED_RR, &param) == 0)
		e->scheduler = "SCHED_RR";
	else if (setpriority(PRIO_PROCESS, 0, -20) == 0)
		e->scheduler = "nice -20";
	else
		e->scheduler = "normal";
	/* Slabs of the line come and go: let the heap keep them. */
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 256 << 20);
	mallopt(M_TOP_PAD, 16 << 20);
}

static int make_all(struct emu *e)
{
	if (block_signals(e) < 0 || claim(e) < 0)
		return -1;
	if (wan_ends_create(&e->ends, e->names, e->params->mtu_bytes, e->params->offload) < 0)
		return -1;
	be_punctual(e);
	e->start_ns = clock_ns();
	emu_values_changed(e);
	return make_line(e) < 0 ? -1 : emu_ctl_open(e);
}

/* ---- removing ---------------------------------------------------------------------- */

static void remove_all(struct emu *e)
{
	char text[80] = "";
	int ended;

	if (e->lock >= 0) {
		ended = wan_ends_remove(&e->ends, e->names);
		if (ended)
			snprintf(text, sizeof text, "%d process%s still ran there and %s ended",
				 ended, ended == 1 ? "" : "es", ended == 1 ? "was" : "were");
	}
	wan_line_destroy(e->line);
	emu_ctl_close(e);
	if (e->lock >= 0)
		wan_lock_drop(e->names, e->lock);
	if (e->signals >= 0)
		close(e->signals);
	if (e->asked_by >= 0)
		emu_ctl_answer(e->asked_by, CTL_OK, text);
}

/* What started us may read to the end of our output. */
static void let_streams_go(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; fd >= 0 && i <= 2; i++)
		dup2(fd, i);
	if (fd > 2)
		close(fd);
}

static struct emu *emu_new(const struct wan_names *n, const struct wan_params *p)
{
	struct emu *e = calloc(1, sizeof *e);

	if (!e) {
		say("no memory for the emulator (%zu bytes)", sizeof *e);
		return NULL;
	}
	e->names = n;
	e->params = p;
	e->setup = p->setup;
	e->lock = e->signals = e->listener = e->asked_by = -1;
	for (int end = WAN_A; end <= WAN_B; end++)
		e->ends.end[end].tun = e->ends.end[end].netlink = -1;
	for (int i = 0; i < EMU_CLIENTS; i++)
		e->client[i].fd = -1;
	hist_init(&e->health.late_ns);
	return e;
}

int emu_run(const struct wan_names *n, const struct wan_params *p, int ready_fd, bool quiet)
{
	struct emu *e = emu_new(n, p);
	int rc = e ? make_all(e) : -1;

	if (rc == 0) {
		if (quiet)
			let_streams_go();
		/* Who waits for it was killed: nobody knows of the link, so it goes. */
		if (ready_fd >= 0 && write(ready_fd, "", 1) < 0)
			e->stop = true;
	}
	if (ready_fd >= 0)
		close(ready_fd);
	if (rc == 0)
		loop(e);
	if (e)
		remove_all(e);
	free(e);
	return rc == 0 ? CLI_OK : CLI_FAILED;
}

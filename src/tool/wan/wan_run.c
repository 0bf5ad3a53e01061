// SPDX-License-Identifier: Apache-2.0
/*
 * sdr wan exec and run: a command in an end of a link. See wan.h. Between us and the command
 * there is nothing but the namespace: it gets our streams, its signals, and its exit status is
 * ours.
 */
#include "tool/wan/wan.h"

#include "tool/cli.h"
#include "tool/say.h"
#include "tool/wan/ends.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* As shells have it. */
#define EXIT_NOT_RUNNABLE 126
#define EXIT_NOT_FOUND 127
#define EXIT_SIGNAL 128

/* Becomes the command; returns the exit code of a failure. */
static int become(char **command)
{
	signal(SIGPIPE, SIG_DFL);
	execvp(command[0], command);
	say("%s: %s", command[0],
	    errno == ENOENT ? "no such command: is it in PATH?" : strerror(errno));
	return errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUNNABLE;
}

static void set_environment(const struct wan_names *n)
{
	setenv("SDR_WAN", n->name, 1);
	setenv("SDR_WAN_A", n->end[WAN_A].v4_text, 1);
	setenv("SDR_WAN_B", n->end[WAN_B].v4_text, 1);
	setenv("SDR_WAN_A6", n->end[WAN_A].v6_text, 1);
	setenv("SDR_WAN_B6", n->end[WAN_B].v6_text, 1);
}

int wan_exec(struct wan_args *a, enum wan_end end)
{
	const struct wan_names *n = &a->names;

	switch (wan_state(n)) {
	case WAN_UP:
		break;
	case WAN_ABSENT:
		say("there is no link '%s': 'sdr wan stat' lists those that are up", n->name);
		return EXIT_NOT_RUNNABLE;
	case WAN_DEAD:
		say("the emulator of link '%s' was killed: 'sdr wan up %s' makes the link anew",
		    n->name, n->name);
		return EXIT_NOT_RUNNABLE;
	case WAN_DENIED:
		say("link '%s' belongs to root: use sudo", n->name);
		return EXIT_NOT_RUNNABLE;
	}
	if (wan_end_enter(n, end) < 0)
		return EXIT_NOT_RUNNABLE;
	set_environment(n);
	return become(a->command);
}

/* ---- run ------------------------------------------------------------------------------- */

static void ending_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGQUIT);
}

static _Noreturn void be_command(const struct wan_args *a, const sigset_t *mask)
{
	/* What main() does with them is not for the command. */
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	set_environment(&a->names);
	if (wan_end_enter(&a->names, WAN_A) < 0)
		_exit(EXIT_NOT_RUNNABLE);
	_exit(become(a->command));
}

static int code_of(int status)
{
	return WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

/*
 * Waits for the command. A signal of the terminal has reached it by itself; others are passed
 * on. *emulator becomes 0 if it ended before.
 */
static int wait_for(pid_t command, pid_t *emulator)
{
	siginfo_t info;
	sigset_t set;
	int status;
	pid_t pid;

	ending_signals(&set);
	sigaddset(&set, SIGCHLD);
	for (;;) {
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
			if (pid == command)
				return code_of(status);
			if (pid != *emulator)
				continue;
			*emulator = 0;
			say("the link is gone: its emulator %s; the command is told to end",
			    WIFSIGNALED(status) ? "was killed" : "ended");
			kill(command, SIGTERM);
		}
		if (sigwaitinfo(&set, &info) > 0 && info.si_signo != SIGCHLD &&
		    info.si_code != SI_KERNEL)
			kill(command, info.si_signo);
	}
}

/* Runs the command on a link that is up. */
static int run_command(struct wan_args *a, const sigset_t *mask, pid_t *emulator)
{
	const struct timespec at_once = {0};
	sigset_t set;
	pid_t command;
	int sig;

	/* A signal while the link came up: the command would not have seen it. */
	ending_signals(&set);
	sig = sigtimedwait(&set, NULL, &at_once);
	if (sig > 0)
		return EXIT_SIGNAL + sig;
	fflush(NULL);
	command = fork();
	if (command == 0)
		be_command(a, mask);
	if (command < 0) {
		say("no process for the command: %s", strerror(errno));
		return EXIT_NOT_RUNNABLE;
	}
	return wait_for(command, emulator);
}

int wan_run(struct wan_args *a)
{
	char name[WAN_NAME_MAX + 1];
	sigset_t set, mask;
	pid_t emulator;
	int rc;

	snprintf(name, sizeof name, "run-%d", (int)getpid());
	if (!a->named && wan_names_init(&a->names, name) < 0)
		return CLI_FAILED;
	ending_signals(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &mask);
	rc = wan_launch(a, true, &emulator);
	if (rc != CLI_OK)
		return rc;
	rc = run_command(a, &mask, &emulator);
	if (emulator && wan_land(a, emulator) < 0 && rc == 0)
		return CLI_FAILED;
	if (!emulator) {
		wan_clear(&a->names);
		return CLI_FAILED;
	}
	return rc;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * sdr wan up, set, stat, down: an emulator is started, asked, and ended. See wan.h.
 */
#include "tool/wan/wan.h"

#include "tool/cli.h"
#include "tool/json.h"
#include "tool/say.h"
#include "tool/wan/ctl.h"
#include "tool/wan/ends.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LAND_S 20 /* an emulator that takes longer to end hangs */

/* ---- starting and ending emulators ---------------------------------------------------- */

/* In the new process: of what it inherited it keeps the standard streams and its pipe. */
static _Noreturn void be_emulator(const struct wan_args *a, bool attached, int ready, pid_t parent)
{
	setsid(); /* a Ctrl-C is for the command, and ends the link only after it */
	if (attached) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			exit(CLI_FAILED);
	}
	if (dup2(ready, 3) == 3 && fcntl(3, F_SETFD, FD_CLOEXEC) == 0)
		close_range(4, ~0U, 0);
	if (chdir("/") < 0)
		say("/: %s", strerror(errno));
	exit(emu_run(&a->names, &a->params, 3, !attached));
}

static void block_ending(sigset_t *before)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, before);
}

/* In an emulator signals wait from its first moment on: it looks at them when the link is made. */
static pid_t fork_emulator(const struct wan_args *a, bool attached, int ready)
{
	pid_t parent = getpid(), pid;
	sigset_t before;

	fflush(NULL);
	block_ending(&before);
	pid = fork();
	if (pid == 0)
		be_emulator(a, attached, ready, parent);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

/* False: the emulator has failed, or somebody wants us to end. */
static bool await_link(int ready)
{
	char byte;
	ssize_t n;

	do
		n = read(ready, &byte, 1);
	while (n < 0 && errno == EINTR && !cli_stop);
	return n == 1 && !cli_stop;
}

/* The emulator of a link that did not come up: sees to its end. */
static void reap_failed(const struct wan_args *a, pid_t pid)
{
	int status = 0;
	pid_t rc;

	if (cli_stop) {
		say("interrupted: link '%s' was not made", a->names.name);
		kill(pid, SIGTERM);
	}
	do
		rc = waitpid(pid, &status, 0);
	while (rc < 0 && errno == EINTR);
	if (rc != pid || !WIFSIGNALED(status))
		return;
	say("the emulator was ended by signal %d (%s)", WTERMSIG(status),
	    strsignal(WTERMSIG(status)));
	wan_clear(&a->names);
}

int wan_launch(const struct wan_args *a, bool attached, pid_t *pid)
{
	int ready[2];
	bool up;

	if (wan_ends_allowed() < 0)
		return CLI_FAILED;
	if (pipe2(ready, O_CLOEXEC) < 0) {
		say("no pipe: %s", strerror(errno));
		return CLI_FAILED;
	}
	*pid = fork_emulator(a, attached, ready[1]);
	close(ready[1]);
	if (*pid < 0) {
		say("no process for the emulator: %s", strerror(errno));
		close(ready[0]);
		return CLI_FAILED;
	}
	up = await_link(ready[0]);
	close(ready[0]);
	if (up)
		return CLI_OK;
	reap_failed(a, *pid);
	return CLI_FAILED;
}

int wan_land(const struct wan_args *a, pid_t pid)
{
	const struct timespec pause = {.tv_nsec = 5000000};
	int status = 0, rc = 0;

	kill(pid, SIGTERM);
	for (int i = 0; i < 200 * LAND_S && rc == 0; i++) {
		nanosleep(&pause, NULL);
		rc = waitpid(pid, &status, WNOHANG);
	}
	if (rc == 0) {
		say("the emulator (process %d) did not end in %d s and is killed", (int)pid,
		    LAND_S);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	if (wan_state(&a->names) != WAN_ABSENT && wan_clear(&a->names) < 0)
		return -1;
	return status == 0 ? 0 : -1;
}

int wan_clear(const struct wan_names *n)
{
	int lock = wan_lock_take(n);

	if (lock == -EBUSY)
		say("link '%s' is in use by another command: try again", n->name);
	if (lock < 0)
		return -1;
	wan_ends_clean(n);
	wan_lock_drop(n, lock);
	return 0;
}

/* ---- up -------------------------------------------------------------------------------- */

static void print_up(const struct wan_args *a, const char *brief)
{
	const struct wan_names *n = &a->names;
	const char *values = strstr(brief, ": ");

	out("link %s is up: %s", n->name, values ? values + 2 : brief);
	for (int end = WAN_A; end <= WAN_B; end++)
		out("%c: %s, %s    sdr wan exec %s %c -- COMMAND", "ab"[end], n -> end[end].v4_text,
		    n->end[end].v6_text, n->name, "ab"[end]);
	out("'sdr wan stat %s' counts, 'sdr wan set %s ...' changes, 'sdr wan down %s' removes it",
	    n->name, n->name, n->name);
}

/* Until Ctrl-C, or until somebody takes the link down. */
static int stay(const struct wan_args *a, pid_t pid)
{
	sigset_t set;
	int status;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	for (;;) {
		int sig = sigwaitinfo(&set, NULL);

		if (sig < 0)
			continue;
		if (sig != SIGCHLD)
			return wan_land(a, pid) < 0 ? CLI_FAILED : CLI_OK;
		if (waitpid(pid, &status, WNOHANG) != pid)
			continue;
		if (WIFEXITED(status))
			return WEXITSTATUS(status);
		say("the emulator was ended by signal %d (%s)", WTERMSIG(status),
		    strsignal(WTERMSIG(status)));
		wan_clear(&a->names);
		return CLI_FAILED;
	}
}

int wan_up(struct wan_args *a)
{
	char *words[] = {"brief", a->json ? "json" : "text"}, *answer = NULL;
	pid_t pid;
	int rc;

	if (a->foreground)
		block_ending(NULL);
	rc = wan_launch(a, a->foreground, &pid);
	if (rc != CLI_OK)
		return rc;
	if (ctl_request(&a->names, CTL_TIMEOUT_NS, 2, words, &answer) != 0)
		rc = CLI_FAILED;
	else if (a->json)
		printf("%s\n", answer);
	else
		print_up(a, answer);
	fflush(stdout);
	free(answer);
	if (a->foreground)
		return stay(a, pid);
	return rc;
}

/* ---- set, stat, down -------------------------------------------------------------------- */

int wan_set(struct wan_args *a)
{
	char *words[WAN_WORDS + 1] = {"set"}, *answer = NULL;
	int rc;

	if (a->n_words == 0) {
		say("wan set: nothing to change was named: see 'sdr help wan'");
		return CLI_USAGE;
	}
	memcpy(words + 1, a->words, (size_t)a->n_words * sizeof words[0]);
	rc = ctl_request(&a->names, CTL_TIMEOUT_NS, a->n_words + 1, words, &answer);
	if (rc == 1)
		say("%s", answer);
	free(answer);
	return rc < 0 ? CLI_FAILED : rc == 1 ? CLI_USAGE : CLI_OK;
}

static int stat_one(const struct wan_args *a)
{
	char *words[] = {"stat", a->json ? "json" : "text"}, *answer = NULL;
	int rc = ctl_request(&a->names, CTL_TIMEOUT_NS, 2, words, &answer);

	if (rc == 0)
		fputs(answer, stdout);
	else if (rc == 1)
		say("%s", answer);
	free(answer);
	return rc == 0 ? CLI_OK : CLI_FAILED;
}

/* One link of the list. */
static void list_one(const struct wan_names *n, bool json, int *count)
{
	char *words[] = {"brief", json ? "json" : "text"}, *answer = NULL;
	enum wan_state state = wan_state(n);

	if (state == WAN_ABSENT)
		return; /* it went while we looked */
	if (state == WAN_UP && ctl_request(n, CTL_TIMEOUT_NS, 2, words, &answer) != 0)
		return;
	if (json) {
		printf("%s", *count ? ", " : "");
		if (state == WAN_UP)
			fputs(answer, stdout);
		else
			printf("{\"name\": \"%s\", \"state\": \"%s\"}", n->name,
			       state == WAN_DEAD ? "dead" : "unknown");
	} else {
		printf("%s: %s\n", n->name,
		       state == WAN_UP	   ? answer
		       : state == WAN_DEAD ? "its emulator was killed; 'sdr wan down' clears up"
					   : "belongs to root");
	}
	++*count;
	free(answer);
}

static int stat_list(bool json)
{
	DIR *dir = opendir(WAN_BASE);
	struct dirent *entry;
	struct wan_names names;
	int count = 0;

	if (!dir && errno != ENOENT) {
		say(WAN_BASE ": cannot be read: %s: use sudo", strerror(errno));
		return CLI_FAILED;
	}
	if (json)
		fputs("[", stdout);
	while (dir && (entry = readdir(dir)) != NULL) {
		if (wan_name_ok(entry->d_name) && wan_names_init(&names, entry->d_name) == 0)
			list_one(&names, json, &count);
	}
	if (dir)
		closedir(dir);
	if (json)
		fputs("]\n", stdout);
	else if (count == 0)
		out("no link is up: 'sdr wan up NAME' makes one");
	return CLI_OK;
}

int wan_stat(struct wan_args *a)
{
	return a->named ? stat_one(a) : stat_list(a->json);
}

int wan_down(struct wan_args *a)
{
	char *words[] = {"down"}, *answer = NULL;
	int rc;

	if (wan_state(&a->names) == WAN_DEAD)
		return wan_clear(&a->names) < 0 ? CLI_FAILED : CLI_OK;
	rc = ctl_request(&a->names, CTL_DOWN_NS, 1, words, &answer);
	if (rc == 1)
		say("%s", answer);
	else if (rc == 0 && *answer)
		out("%s", answer);
	free(answer);
	if (rc != 0)
		return CLI_FAILED;
	for (int end = WAN_A; end <= WAN_B; end++) {
		if (access(a->names.end[end].mount, F_OK) == 0) {
			say("%s is still there: remove it: ip netns del %s",
			    a->names.end[end].mount, a->names.end[end].ns);
			return CLI_FAILED;
		}
	}
	return CLI_OK;
}

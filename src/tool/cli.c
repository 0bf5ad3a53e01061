// SPDX-License-Identifier: Apache-2.0
/*
 * main() of the `sdr` command: finds the subcommand, catches Ctrl-C, prints help and
 * version. Knows nothing of what a subcommand does.
 */
#include "tool/cli.h"

#include "tool/opts.h"
#include "tool/say.h"

#include <sdr/sdr.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

volatile sig_atomic_t cli_stop;

static const struct command *const commands[] = {
	&cmd_send,   &cmd_recv, &cmd_perf, &cmd_ping, &cmd_info,
	&cmd_doctor, &cmd_plan, &cmd_sim,  &cmd_wan,
};

#define NCOMMANDS (sizeof commands / sizeof commands[0])

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < NCOMMANDS; i++) {
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	}
	return NULL;
}

static void on_signal(int sig)
{
	(void)sig;
	cli_stop = 1;
}

static void catch_signals(void)
{
	struct sigaction act = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	act = (struct sigaction){.sa_handler = SIG_IGN};
	sigaction(SIGPIPE, &act, NULL);
}

/* Where a standard stream is closed, the next file or socket would get its number, and with it
 * what we print. False: there is no /dev/null either. */
static int open_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= 2);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static int print_overview(FILE *to)
{
	fprintf(to, "usage: sdr COMMAND [OPTION]... [ARGUMENT]...\n\n"
		    "Moves memory and files between machines over long, lossy links.\n\n");
	for (size_t i = 0; i < NCOMMANDS; i++)
		fprintf(to, "  %-6s %s\n", commands[i]->name, commands[i]->summary);
	fprintf(to, "  %-6s %s\n", "help", "say what a command does and takes: sdr help send");
	fprintf(to, "\n'sdr --version' says which version this is; man sdr says more.\n");
	return to == stdout ? CLI_OK : CLI_USAGE;
}

static int unknown_command(const char *name)
{
	say("unknown command '%s': there are send, recv, perf, ping, info, doctor, plan, sim, wan "
	    "and help",
	    name);
	return CLI_USAGE;
}

static int run_help(int argc, char **argv)
{
	const struct command *cmd;

	if (argc < 2)
		return print_overview(stdout);
	cmd = find_command(argv[1]);
	if (!cmd)
		return unknown_command(argv[1]);
	opts_help(cmd, stdout);
	return CLI_OK;
}

int main(int argc, char **argv)
{
	const struct command *cmd;
	int rc;

	if (!open_streams()) {
		say("/dev/null: cannot be opened: %s: is /dev mounted?", strerror(errno));
		return CLI_FAILED;
	}
	if (argc < 2)
		return print_overview(stderr);
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		out("sdr %s", sdr_version());
		return CLI_OK;
	}
	if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 ||
	    strcmp(argv[1], "-h") == 0)
		return run_help(argc - 1, argv + 1);
	cmd = find_command(argv[1]);
	if (!cmd)
		return unknown_command(argv[1]);
	catch_signals();
	rc = cmd->run(argc - 1, argv + 1);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		say("the output could not be written");
		return CLI_FAILED;
	}
	return rc;
}

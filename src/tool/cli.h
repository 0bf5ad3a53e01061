/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The `sdr` command: its table of subcommands and what they share with main(). Each
 * subcommand is one file that defines its `struct command`.
 *
 *	cli.c      main, help, Ctrl-C          opts.c     options by table
 *	session.c  net, connection, greeting   progress.c bar and lines
 *	xfer_*.c   the file transfer protocol  send.c, recv.c, perf.c, ping.c, info.c
 *	plan.c     which scheme suits a link	sim/       how long writes take on a link
 *	wan/       links between namespaces	doctor/    what stands in the way
 */
#ifndef SDR_TOOL_CLI_H
#define SDR_TOOL_CLI_H

#include <signal.h>
#include <stdio.h>

/* The exit codes; documented in sdr(1). */
enum cli_exit {
	CLI_OK = 0,
	CLI_FAILED = 1, /* the work failed */
	CLI_USAGE = 2,	/* it was asked for wrongly */
};

struct opt;

struct command {
	const char *name;
	const char *synopsis; /* after "sdr NAME", several lines allowed */
	const char *summary;  /* one line */
	const struct opt *opts;
	int network;		/* it takes the options of all network commands too */
	void (*help)(FILE *to); /* prints the options where opts cannot say it; or NULL */
	int (*run)(int argc, char **argv);
};

extern const struct command cmd_send, cmd_recv, cmd_perf, cmd_ping, cmd_info, cmd_wan, cmd_doctor,
	cmd_plan, cmd_sim;

/* Set by SIGINT and SIGTERM; a second one ends the process at once. */
extern volatile sig_atomic_t cli_stop;

#endif

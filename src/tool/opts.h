/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options by table: a subcommand lists what it takes in an array of `struct opt`, and
 * gets its struct filled, help printed and mistakes named. A subcommand's struct starts
 * with `struct net_opts` if it takes the options of all network commands.
 */
#ifndef SDR_TOOL_OPTS_H
#define SDR_TOOL_OPTS_H

#include "tool/cli.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum opt_kind {
	OPT_FLAG,   /* uint64_t becomes 1 */
	OPT_UINT,   /* uint64_t, min .. max */
	OPT_SIZE,   /* uint64_t, bytes, min .. max */
	OPT_TIME,   /* uint64_t, ns, min .. max */
	OPT_RATE,   /* uint64_t, bit/s, min .. max */
	OPT_TEXT,   /* const char * */
	OPT_SCHEME, /* const char *, what sdr_scheme_parse() takes */
	OPT_SIZES,  /* struct size_list, each min .. max */
};

struct opt {
	const char *name; /* without dashes; NULL ends the table */
	int letter;	  /* 0: none */
	enum opt_kind kind;
	size_t offset; /* of the field in the command's struct */
	uint64_t min, max;
	const char *arg; /* its name in help */
	const char *help;
};

#define SIZE_LIST_MAX 64
struct size_list {
	uint64_t bytes[SIZE_LIST_MAX];
	size_t n;
};

struct net_opts {
	const char *scheme;
	const char *bind;
	const char *device;
	uint64_t channels;
	uint64_t rate_bps;
	uint64_t port;
	uint64_t payload_bytes;
	uint64_t workers;
	uint64_t dead_after_ns;
	uint64_t connect_timeout_ns;
	uint64_t v4, v6;
	uint64_t json, quiet;
};

/*
 * Fills *into (zeroed or preset by the caller). Returns the index of the first argument
 * that is no option, in argv as permuted, or -1: the command ends with *code now (help
 * was printed, or the mistake was said).
 */
int opts_parse(const struct command *cmd, int argc, char **argv, void *into, int *code);
void opts_help(const struct command *cmd, FILE *to);
/* Says what is wrong with the arguments and how they should look; returns CLI_USAGE. */
int opts_usage(const struct command *cmd, const char *what);

struct target {
	char host[256];
	uint16_t port;
};
/* HOST, HOST:PORT, ADDR6, [ADDR6], [ADDR6]:PORT; says what is wrong and returns -1. */
int target_parse(const char *text, uint64_t default_port, struct target *to);

#endif

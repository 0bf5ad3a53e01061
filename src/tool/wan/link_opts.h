/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of a link as people write them: options to struct wan_config, and back to
 * text and JSON. One table, so that every command that takes a link's values takes the same
 * words and gives the same errors.
 *
 *	link_opts.c   the table, scopes, what depends on what
 *	link_value.c  values: "1%,20ms"
 *	link_text.c   back to text and JSON
 *
 * Options have a scope, in the order of the command line: after --ab values are for a -> b,
 * after --path 1 for path 1, until the next scope. It starts with both directions, all paths.
 */
#ifndef SDR_TOOL_WAN_LINK_OPTS_H
#define SDR_TOOL_WAN_LINK_OPTS_H

#include "tool/json.h"
#include "tool/wan/line.h"

#include <stdbool.h>
#include <stdio.h>

#define LINK_OPTS_ERROR 600 /* room for a message */
#define LINK_QUEUE_LEAST_NS UINT64_C(10000000)
#define LINK_QUEUE_LEAST_PKTS 10
#define LINK_BURST_IDLE_NS UINT64_C(10000000)

/*
 * A link's values, and what they do not say themselves. Where no queue was asked for, it is one
 * round trip at the rate (the sum of both delays), LINK_QUEUE_LEAST_NS and _PKTS at least, and
 * follows when delay or rate change. Paths beyond config.n_paths have values too: those that a path
 * gets when it comes.
 */
struct link_setup {
	struct wan_config config;
	uint32_t mtu_bytes; /* of the ends' devices: their largest packet */
	bool queue_given[2][LINK_MAX_PATHS];
	bool rebind; /* --nat-rebind now was among the options; the owner obeys and clears it */
};

/* One path, no limit, no delay, no faults; seed 1, MTU 1500, bursts end after
 * LINK_BURST_IDLE_NS without a packet. */
void link_setup_init(struct link_setup *s);

/* How many words an option of the table takes, itself included: 1 or 2; 0: it is none. */
int link_opts_words(const char *word);
/*
 * Obeys n words of options. Times among them (--blackout, --outage, --flap) count from
 * now_ns, with --g1050 randomness comes from setup's config.seed. 0, or -EINVAL with a
 * message in error[LINK_OPTS_ERROR], or -ENOMEM (also with one); then setup is as it was.
 */
int link_opts_apply(struct link_setup *setup, uint64_t now_ns, int n, char *const *words,
		    char *error);
/* A line for each option of the table. */
void link_opts_help(FILE *to);

/* "1.00 Gbit/s, delay 50.0 ms, queue 100 ms, loss 1 %"; times from now_ns. Cut where it
 * does not fit. */
void link_path_text(const struct wan_path *path, uint64_t now_ns, char *buf, size_t cap);
/* An object; times count from the start of the line. */
void link_path_json(struct json *j, const char *key, const struct wan_path *path);
/* Whether both have the same values. */
bool link_path_equal(const struct wan_path *a, const struct wan_path *b);

#endif

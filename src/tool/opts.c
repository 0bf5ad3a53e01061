// SPDX-License-Identifier: Apache-2.0
/*
 * Options by table, on getopt_long. See opts.h. Every mistake is answered with the
 * option, the value, the limit and what to write instead.
 */
#include "tool/opts.h"

#include "tool/say.h"

#include "base/units.h"

#include <sdr/conn.h>

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#define OPTS_MAX 48
#define OPT_HELP 1000 /* getopt's value for --help; options are 1001 + index */

#define NET(field) offsetof(struct net_opts, field)

static const struct opt net_table[] = {
	{"port", 'p', OPT_UINT, NET(port), 1, 65535, "PORT", "UDP and TCP port (4792)"},
	{"scheme", 0, OPT_SCHEME, NET(scheme), 0, 0, "NAME",
	 "how losses are repaired: sr-nack, ec:32,8, hybrid:k=128,m=10, auto, ... (sr-nack)"},
	{"channels", 0, OPT_UINT, NET(channels), 1, SDR_MAX_CHANNELS, "N", "paths to use (1)"},
	{"rate", 0, OPT_RATE, NET(rate_bps), 1000, UINT64_C(10000000000000), "RATE",
	 "send at this rate, e.g. 10Gbit (found by trying)"},
	{"payload", 0, OPT_SIZE, NET(payload_bytes), 64, 65000, "SIZE",
	 "largest packet payload (what the route carries)"},
	{"workers", 0, OPT_UINT, NET(workers), 1, 64, "N", "threads that receive packets (none)"},
	{"bind", 0, OPT_TEXT, NET(bind), 0, 0, "ADDR", "local address (any)"},
	{"device", 0, OPT_TEXT, NET(device), 0, 0, "NAME",
	 "udp; roce: UDP to RDMA devices; verbs[:NAME]: an RDMA device (udp, or $SDR_DEVICE)"},
	{"connect-timeout", 0, OPT_TIME, NET(connect_timeout_ns), NS_PER_MS, 3600 * NS_PER_S,
	 "TIME", "give up connecting after this (10s)"},
	{"dead-after", 0, OPT_TIME, NET(dead_after_ns), 100 * NS_PER_MS, 24 * 3600 * NS_PER_S,
	 "TIME", "give a silent peer up after this (30s)"},
	{"ipv4", '4', OPT_FLAG, NET(v4), 0, 0, NULL, "use IPv4 only"},
	{"ipv6", '6', OPT_FLAG, NET(v6), 0, 0, NULL, "use IPv6 only"},
	{"json", 0, OPT_FLAG, NET(json), 0, 0, NULL, "print the result as JSON"},
	{"quiet", 0, OPT_FLAG, NET(quiet), 0, 0, NULL, "print errors only"},
	{0},
};

/* The options of a command: its own, then the network's that it did not redefine. */
struct opt_set {
	const struct opt *opts[OPTS_MAX];
	size_t n;
};

static const struct opt *set_find(const struct opt_set *set, const char *name)
{
	for (size_t i = 0; i < set->n; i++) {
		if (strcmp(set->opts[i]->name, name) == 0)
			return set->opts[i];
	}
	return NULL;
}

static void set_init(struct opt_set *set, const struct command *cmd)
{
	set->n = 0;
	for (const struct opt *o = cmd->opts; o->name && set->n < OPTS_MAX; o++)
		set->opts[set->n++] = o;
	if (!cmd->network)
		return;
	for (const struct opt *o = net_table; o->name && set->n < OPTS_MAX; o++) {
		if (!set_find(set, o->name))
			set->opts[set->n++] = o;
	}
}

static int needs_arg(const struct opt *o)
{
	return o->kind != OPT_FLAG;
}

/* ---- values ------------------------------------------------------------------- */

static const char *value_hint(enum opt_kind kind)
{
	switch (kind) {
	case OPT_SIZE:
	case OPT_SIZES:
		return "not a size: write it like 65536, 64KiB or 4MiB";
	case OPT_TIME:
		return "not a time: write it like 30s, 500ms or 2m";
	case OPT_RATE:
		return "not a rate: write it like 200Mbit, 10Gbit or 1.2GB/s";
	default:
		return "not a number: write it like 8";
	}
}

static void limit_text(enum opt_kind kind, uint64_t v, char *buf)
{
	if (kind == OPT_SIZE || kind == OPT_SIZES)
		units_size_text(buf, v);
	else if (kind == OPT_TIME)
		units_time_text(buf, v);
	else if (kind == OPT_RATE)
		units_rate_text(buf, (double)v);
	else
		snprintf(buf, UNITS_TEXT, "%" PRIu64, v);
}

static int parse_number(const struct opt *o, const char *text, uint64_t *v)
{
	switch (o->kind) {
	case OPT_SIZE:
	case OPT_SIZES:
		return units_parse_size_bytes(text, v);
	case OPT_TIME:
		return units_parse_time_ns(text, v);
	case OPT_RATE:
		return units_parse_rate_bps(text, v);
	default:
		return units_parse_uint(text, 0, UINT64_MAX, v);
	}
}

static int take_number(const struct opt *o, const char *text, uint64_t *to)
{
	char lo[UNITS_TEXT], hi[UNITS_TEXT];
	uint64_t v = 0;
	int rc = parse_number(o, text, &v);

	if (rc == -EINVAL) {
		say("--%s %s: %s", o->name, text, value_hint(o->kind));
		return -1;
	}
	if (rc < 0 || v < o->min || v > o->max) {
		limit_text(o->kind, o->min, lo);
		limit_text(o->kind, o->max, hi);
		say("--%s %s: out of range: choose from %s to %s", o->name, text, lo, hi);
		return -1;
	}
	*to = v;
	return 0;
}

static int take_sizes(const struct opt *o, const char *text, struct size_list *list)
{
	char copy[1024], *save = NULL;

	list->n = 0;
	if (strlen(text) >= sizeof copy) {
		say("--%s: the list is longer than %zu characters: shorten it", o->name,
		    sizeof copy - 1);
		return -1;
	}
	strcpy(copy, text);
	for (char *w = strtok_r(copy, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
		if (list->n == SIZE_LIST_MAX) {
			say("--%s %s: more than %d sizes: shorten the list", o->name, text,
			    SIZE_LIST_MAX);
			return -1;
		}
		if (take_number(o, w, &list->bytes[list->n]) < 0)
			return -1;
		list->n++;
	}
	if (list->n == 0) {
		say("--%s: an empty list: write it like 64KiB,1MiB", o->name);
		return -1;
	}
	return 0;
}

static int take_scheme(const struct opt *o, const char *text, const char **to)
{
	struct sdr_scheme scheme = {.size = sizeof scheme};
	char why[256];

	*to = text;
	if (sdr_scheme_parse(text, &scheme, why, sizeof why) == 0)
		return 0;
	say("--%s %s: %s", o->name, text, why);
	return -1;
}

static int take_value(const struct opt *o, const char *text, void *into)
{
	void *field = (char *)into + o->offset;

	switch (o->kind) {
	case OPT_FLAG:
		*(uint64_t *)field = 1;
		return 0;
	case OPT_TEXT:
		*(const char **)field = text;
		return 0;
	case OPT_SCHEME:
		return take_scheme(o, text, field);
	case OPT_SIZES:
		return take_sizes(o, text, field);
	default:
		return take_number(o, text, field);
	}
}

/* ---- the command line --------------------------------------------------------- */

static void build_getopt(const struct opt_set *set, struct option *longs, char *shorts)
{
	size_t len = 0;

	shorts[len++] = ':';
	shorts[len++] = 'h';
	for (size_t i = 0; i < set->n; i++) {
		const struct opt *o = set->opts[i];

		longs[i] = (struct option){o->name, needs_arg(o), NULL, OPT_HELP + 1 + (int)i};
		if (!o->letter)
			continue;
		shorts[len++] = (char)o->letter;
		if (needs_arg(o))
			shorts[len++] = ':';
	}
	longs[set->n] = (struct option){"help", 0, NULL, OPT_HELP};
	longs[set->n + 1] = (struct option){0};
	shorts[len] = '\0';
}

static const struct opt *opt_of(const struct opt_set *set, int val)
{
	if (val > OPT_HELP)
		return set->opts[val - OPT_HELP - 1];
	for (size_t i = 0; i < set->n; i++) {
		if (set->opts[i]->letter == val)
			return set->opts[i];
	}
	return NULL;
}

static void say_getopt_error(const struct command *cmd, int val, char **argv)
{
	char letter[3] = {'-', (char)optopt, '\0'};
	int is_short = optopt > 0 && optopt < 256;
	const char *word = is_short ? letter : argv[optind - 1];

	if (val == ':')
		say("%s: needs a value: see 'sdr help %s'", word, cmd->name);
	else if (optopt >= OPT_HELP)
		say("%s: takes no value: see 'sdr help %s'", word, cmd->name);
	else
		say("%s: unknown or ambiguous option: see 'sdr help %s'", word, cmd->name);
}

int opts_parse(const struct command *cmd, int argc, char **argv, void *into, int *code)
{
	struct option longs[OPTS_MAX + 2];
	char shorts[2 * OPTS_MAX + 3];
	struct opt_set set;
	const struct net_opts *net = into;
	int val;

	set_init(&set, cmd);
	build_getopt(&set, longs, shorts);
	opterr = 0;
	optind = 1;
	*code = CLI_USAGE;
	while ((val = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		if (val == ':' || val == '?') {
			say_getopt_error(cmd, val, argv);
			return -1;
		}
		if (val == 'h' || val == OPT_HELP) {
			opts_help(cmd, stdout);
			*code = CLI_OK;
			return -1;
		}
		if (take_value(opt_of(&set, val), optarg, into) < 0)
			return -1;
	}
	if (cmd->network && net->v4 && net->v6) {
		say("-4 and -6 exclude each other: give one of them, or none for both");
		return -1;
	}
	return optind;
}

void opts_help(const struct command *cmd, FILE *to)
{
	struct opt_set set;

	set_init(&set, cmd);
	fprintf(to, "usage: sdr %s %s\n\n%s.\n\n", cmd->name, cmd->synopsis, cmd->summary);
	if (cmd->help) {
		cmd->help(to);
		return;
	}
	for (size_t i = 0; i < set.n; i++) {
		const struct opt *o = set.opts[i];
		char left[64], letter[5] = "    ";

		if (o->letter)
			snprintf(letter, sizeof letter, "-%c, ", (char)o->letter);
		snprintf(left, sizeof left, "%s--%s%s%s", letter, o->name, o->arg ? " " : "",
			 o->arg ? o->arg : "");
		fprintf(to, "  %-28s %s\n", left, o->help);
	}
	fprintf(to, "  %-28s %s\n", "-h, --help", "print this");
}

int opts_usage(const struct command *cmd, const char *what)
{
	say("%s: %s: see 'sdr help %s'", cmd->name, what, cmd->name);
	return CLI_USAGE;
}

/* ---- targets ------------------------------------------------------------------ */

static int take_port(const char *text, const char *whole, uint16_t *port)
{
	uint64_t v;

	if (units_parse_uint(text, 1, 65535, &v) < 0) {
		say("%s: '%s' is not a port: choose from 1 to 65535", whole, text);
		return -1;
	}
	*port = (uint16_t)v;
	return 0;
}

int target_parse(const char *text, uint64_t default_port, struct target *to)
{
	const char *host = text, *end = text + strlen(text), *port = NULL;
	const char *colon = strchr(text, ':');

	to->port = (uint16_t)(default_port ? default_port : SDR_DEFAULT_PORT);
	if (*text == '[') {
		host = text + 1;
		end = strchr(text, ']');
		if (!end || (end[1] != '\0' && end[1] != ':')) {
			say("%s: write an IPv6 address with a port as [ADDRESS]:PORT", text);
			return -1;
		}
		if (end[1] == ':')
			port = end + 2;
	} else if (colon && !strchr(colon + 1, ':')) {
		end = colon;
		port = colon + 1;
	}
	if (end == host || (size_t)(end - host) >= sizeof to->host) {
		say("'%s': not a host: write HOST, HOST:PORT or [ADDRESS]:PORT", text);
		return -1;
	}
	memcpy(to->host, host, (size_t)(end - host));
	to->host[end - host] = '\0';
	return port ? take_port(port, text, &to->port) : 0;
}

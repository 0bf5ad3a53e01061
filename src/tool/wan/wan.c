// SPDX-License-Identifier: Apache-2.0
/*
 * sdr wan: verbs and options. See wan.h. Options of the link's values are only told from others
 * here; link_opts.h obeys them, in the emulator where a link is up.
 */
#include "tool/wan/wan.h"

#include "tool/cli.h"
#include "tool/opts.h"
#include "tool/say.h"
#include "tool/wan/link_value.h"

#include "base/units.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MTU_DEFAULT 1500
#define MTU_LEAST 1280 /* of IPv6 (RFC 8200) */
#define MTU_MOST 65535
#define MEMORY_DEFAULT (UINT64_C(2) << 30)

enum takes {
	TAKES_NAME = 1,	    /* NAME must come first */
	MAY_NAME = 2,	    /* ... or may */
	TAKES_VALUES = 4,   /* the link's values */
	TAKES_LINK = 8,	    /* what makes a link: seed, MTU, memory, offloads */
	TAKES_JSON = 16,    /* --json */
	TAKES_COMMAND = 32, /* -- COMMAND */
	TAKES_FOREGROUND = 64,
	TAKES_OPTION_NAME = 128, /* --name NAME */
};

static const struct verb {
	const char *name;
	unsigned int takes;
	int (*run)(struct wan_args *a);
} verbs[] = {
	{"up", TAKES_NAME | TAKES_VALUES | TAKES_LINK | TAKES_JSON | TAKES_FOREGROUND, wan_up},
	{"set", TAKES_NAME | TAKES_VALUES, wan_set},
	{"stat", MAY_NAME | TAKES_JSON, wan_stat},
	{"down", TAKES_NAME, wan_down},
	{"run", TAKES_VALUES | TAKES_LINK | TAKES_COMMAND | TAKES_OPTION_NAME, wan_run},
};

#define NVERBS (sizeof verbs / sizeof verbs[0])

/* ---- options of the process -------------------------------------------------------- */

static const struct own {
	const char *name, *arg;
	unsigned int takes;
	const char *help;
} own_table[] = {
	{"seed", "N", TAKES_LINK, "of all randomness: the same packets meet the same fates (1)"},
	{"mtu", "BYTES", TAKES_LINK, "of both ends' devices, 1280 to 65535 (1500)"},
	{"memory", "SIZE", TAKES_LINK, "for packets in flight (2GiB)"},
	{"no-offload", NULL, TAKES_LINK,
	 "the ends give and take packets one by one (super-packets)"},
	{"name", "NAME", TAKES_OPTION_NAME, "of the link that 'run' makes (run-PID)"},
	{"foreground", NULL, TAKES_FOREGROUND, "'up' stays, and removes the link on Ctrl-C"},
	{"json", NULL, TAKES_JSON, "print the result as JSON"},
	{NULL, NULL, 0, NULL},
};

static int wrong_size(const char *option, const char *text, uint64_t least)
{
	char lo[UNITS_TEXT], hi[UNITS_TEXT];

	say("--%s %s: choose from %s to %s, like 512MiB", option, text, units_size_text(lo, least),
	    units_size_text(hi, LINK_SIZE_MAX));
	return -1;
}

static int obey_own(struct wan_args *a, const struct own *o, const char *text)
{
	char error[LINK_OPTS_ERROR];
	const struct link_value v = {.option = o->name, .error = error};
	uint64_t n = 0;
	int rc = 0;

	switch (o->name[0]) {
	case 's':
		rc = link_value_uint(&v, text, 0, UINT64_MAX, &a->params.setup.config.seed);
		break;
	case 'm':
		if (o->name[1] == 'e') {
			if (units_parse_size_bytes(text, &n) < 0 || n > LINK_SIZE_MAX ||
			    n < WAN_MEMORY_MIN(1))
				return wrong_size(o->name, text, WAN_MEMORY_MIN(1));
			a->params.setup.config.memory_bytes = n;
			break;
		}
		rc = link_value_uint(&v, text, MTU_LEAST, MTU_MOST, &n);
		a->params.mtu_bytes = (unsigned int)n;
		break;
	case 'n':
		if (o->arg)
			a->named = wan_names_init(&a->names, text) == 0;
		else
			a->params.offload = false;
		return o->arg && !a->named ? -1 : 0;
	case 'f':
		a->foreground = true;
		break;
	default:
		a->json = true;
		break;
	}
	if (rc < 0)
		say("%s", error);
	return rc;
}

/* The row of "--mtu" or "--mtu=1500"; *value is behind the '='. */
static const struct own *find_own(const char *word, const char **value)
{
	size_t len;

	if (strncmp(word, "--", 2) != 0)
		return NULL;
	len = strcspn(word + 2, "=");
	*value = word[2 + len] ? word + 3 + len : NULL;
	for (const struct own *o = own_table; o->name; o++) {
		if (strlen(o->name) == len && strncmp(o->name, word + 2, len) == 0)
			return o;
	}
	return NULL;
}

/* ---- the command line -------------------------------------------------------------- */

static int mistake(const struct verb *v, const char *word, const char *what)
{
	say("wan %s: %.80s: %s: see 'sdr help wan'", v->name, word, what);
	return -1;
}

/* One option with its value, at argv[*i]; leaves *i at its last word. */
static int take_option(const struct verb *v, struct wan_args *a, int argc, char **argv, int *i)
{
	char *word = argv[*i];
	const char *value = NULL;
	const struct own *o = find_own(word, &value);
	int words = link_opts_words(word);

	if (o) {
		if (!(o->takes & v->takes))
			return mistake(v, word, "is no option of this verb");
		if (!o->arg && value)
			return mistake(v, word, "takes no value");
		if (o->arg && !value && *i + 1 >= argc)
			return mistake(v, word, "needs a value");
		return obey_own(a, o, value || !o->arg ? value : argv[++*i]);
	}
	if (!words)
		return mistake(v, word, "unknown option");
	if (!(v->takes & TAKES_VALUES))
		return mistake(v, word, "this verb takes no values of a link");
	if (a->n_words + words > WAN_WORDS)
		return mistake(v, word, "too many options");
	a->words[a->n_words++] = word;
	if (words == 2) {
		if (*i + 1 >= argc)
			return mistake(v, word, "needs a value");
		a->words[a->n_words++] = argv[++*i];
	}
	return 0;
}

static int take_words(const struct verb *v, struct wan_args *a, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0) {
			if (!(v->takes & TAKES_COMMAND) || i + 1 >= argc)
				return mistake(v, "--",
					       i + 1 < argc ? "this verb takes no command"
							    : "a command must follow");
			a->command = argv + i + 1;
			return 0;
		}
		if (argv[i][0] == '-') {
			if (take_option(v, a, argc, argv, &i) < 0)
				return -1;
			continue;
		}
		if (!(v->takes & (TAKES_NAME | MAY_NAME)) || a->named)
			return mistake(v, argv[i],
				       v->takes & TAKES_COMMAND ? "write the command behind '--'"
								: "one word too many");
		if (wan_names_init(&a->names, argv[i]) < 0)
			return -1;
		a->named = true;
	}
	if (v->takes & TAKES_NAME && !a->named) {
		say("wan %s: needs the link's NAME: see 'sdr help wan'", v->name);
		return -1;
	}
	if (v->takes & TAKES_COMMAND) {
		say("wan %s: needs a command behind '--': see 'sdr help wan'", v->name);
		return -1;
	}
	return 0;
}

/* What the emulator will start with; the mistakes are said before anything is made. */
static int make_setup(struct wan_args *a)
{
	struct wan_config *c = &a->params.setup.config;
	char error[LINK_OPTS_ERROR], least[UNITS_TEXT];

	a->params.setup.mtu_bytes = a->params.mtu_bytes;
	if (link_opts_apply(&a->params.setup, 0, a->n_words, a->words, error) < 0) {
		say("%s", error);
		return -1;
	}
	if (c->memory_bytes < WAN_MEMORY_MIN(c->n_paths)) {
		say("--memory: too little for %u paths: give at least %s", c->n_paths,
		    units_size_text(least, WAN_MEMORY_MIN(c->n_paths)));
		return -1;
	}
	return 0;
}

static int run_verb(const struct verb *v, int argc, char **argv)
{
	struct wan_args *a = calloc(1, sizeof *a);
	int rc = CLI_USAGE;

	if (!a) {
		say("no memory for the command's options (%zu bytes)", sizeof *a);
		return CLI_FAILED;
	}
	link_setup_init(&a->params.setup);
	a->params.setup.config.memory_bytes = MEMORY_DEFAULT;
	a->params.mtu_bytes = MTU_DEFAULT;
	a->params.offload = true;
	if (take_words(v, a, argc, argv) == 0 && (!(v->takes & TAKES_LINK) || make_setup(a) == 0))
		rc = v->run(a);
	free(a);
	return rc;
}

/* exec NAME a|b [--] COMMAND...: options behind are the command's. */
static int run_exec(int argc, char **argv)
{
	struct wan_args a = {0};
	int at = argc > 2 && strcmp(argv[2], "--") == 0 ? 3 : 2;

	if (argc <= at || strlen(argv[1]) != 1 || (*argv[1] != 'a' && *argv[1] != 'b')) {
		say("wan exec: write it as: sdr wan exec NAME a|b -- COMMAND...");
		return CLI_USAGE;
	}
	if (wan_names_init(&a.names, argv[0]) < 0)
		return CLI_USAGE;
	a.command = argv + at;
	return wan_exec(&a, *argv[1] == 'a' ? WAN_A : WAN_B);
}

static int run(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	/* Behind "--", and behind exec's end, stands somebody else's command with options of its
	 * own. */
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0 ||
		    (i == 1 && strcmp(name, "help") == 0)) {
			opts_help(&cmd_wan, stdout);
			return CLI_OK;
		}
		if (i == 3 && strcmp(name, "exec") == 0)
			break;
	}
	if (strcmp(name, "exec") == 0)
		return run_exec(argc - 2, argv + 2);
	for (size_t i = 0; i < NVERBS; i++) {
		if (strcmp(verbs[i].name, name) == 0)
			return run_verb(&verbs[i], argc - 2, argv + 2);
	}
	if (argc < 2)
		say("wan: what to do is missing: there are up, set, stat, down, run and exec");
	else
		say("wan: unknown verb '%.80s': there are up, set, stat, down, run and exec", name);
	return CLI_USAGE;
}

static void help(FILE *to)
{
	fputs("Values of the link; without any, nothing is limited, delayed or lost:\n", to);
	link_opts_help(to);
	fputs("A switch is undone by --no-SWITCH.\n\nOther options:\n", to);
	for (const struct own *o = own_table; o->name; o++) {
		char left[64];

		snprintf(left, sizeof left, "--%s%s%s", o->name, o->arg ? " " : "",
			 o->arg ? o->arg : "");
		fprintf(to, "  %-28s %s\n", left, o->help);
	}
	fprintf(to, "  %-28s %s\n", "-h, --help", "print this");
}

static const struct opt no_table[] = {{0}};

const struct command cmd_wan = {
	.name = "wan",
	.synopsis = "up NAME [OPTION]...\n"
		    "       sdr wan exec NAME a|b -- COMMAND...\n"
		    "       sdr wan set NAME OPTION...\n"
		    "       sdr wan stat [NAME] [--json]\n"
		    "       sdr wan down NAME\n"
		    "       sdr wan run [OPTION]... -- COMMAND...",
	.summary = "make a long, lossy link between two network namespaces here",
	.opts = no_table,
	.help = help,
	.run = run,
};

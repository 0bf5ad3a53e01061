// SPDX-License-Identifier: Apache-2.0
/*
 * The table of link options, their scopes, and what depends on what. See link_opts.h. Options
 * are obeyed one after the other on a copy, which replaces the setup when all were right.
 */
#include "tool/wan/link_opts.h"

#include "tool/wan/link_value.h"

#include "base/bits.h"
#include "base/units.h"
#include "link/g1050.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_KM 5000u /* light in fibre, one way */
#define KM_MAX (LINK_TIME_MAX / NS_PER_KM)
#define REORDER_NS NS_PER_MS /* how long a packet is held back where nobody says */
#define IP_LEAST_MTU 68u     /* RFC 791 */

/* Where the values go, while options are obeyed. */
struct scope {
	struct link_setup *setup;
	uint64_t now_ns;
	bool dir[2];
	uint32_t first, end; /* paths [first, end) */
	struct link_value value;
	const char *nat_option, *queue_option; /* one was given that needs a NAT, a rate */
	bool blackhole_given;
	uint32_t paths_named; /* the highest path number, and 1 */
};

enum kind {
	KIND_FLAG,   /* bool, at offset in struct wan_path */
	KIND_RATE,   /* uint64_t there */
	KIND_TIME,   /* uint64_t there */
	KIND_RATIO,  /* double there */
	KIND_OWN,    /* take() */
	KIND_SWITCH, /* take(), without a value; --no-NAME gives it NULL */
	KIND_SCOPE,  /* take(), without a value; there is no --no-NAME */
};

struct link_opt {
	const char *name, *arg;
	enum kind kind;
	size_t offset;
	int (*take)(struct scope *s, const char *text);
	const char *help;
};

/* ---- scopes ---------------------------------------------------------------------- */

/* The paths in scope: i counts from 0; NULL after the last. */
static struct wan_path *scope_path(const struct scope *s, uint32_t i)
{
	uint32_t n = s->end - s->first, dirs = (uint32_t)s->dir[WAN_A] + s->dir[WAN_B];
	int from = s->dir[WAN_A] ? (i >= n ? WAN_B : WAN_A) : WAN_B;

	if (i >= n * dirs)
		return NULL;
	return &s->setup->config.path[from][s->first + i % n];
}

#define FOR_SCOPE(s, p)                                          \
	for (uint32_t i_ = 0; i_ != UINT32_MAX; i_ = UINT32_MAX) \
		for (struct wan_path * p; (p = scope_path(s, i_)) != NULL; i_++)

static int take_ab(struct scope *s, const char *text)
{
	(void)text;
	s->dir[WAN_A] = true;
	s->dir[WAN_B] = false;
	return 0;
}

static int take_ba(struct scope *s, const char *text)
{
	(void)text;
	s->dir[WAN_A] = false;
	s->dir[WAN_B] = true;
	return 0;
}

static int take_both(struct scope *s, const char *text)
{
	(void)text;
	s->dir[WAN_A] = s->dir[WAN_B] = true;
	return 0;
}

static int take_path(struct scope *s, const char *text)
{
	uint64_t k;

	if (strcmp(text, "all") == 0) {
		s->first = 0;
		s->end = LINK_MAX_PATHS;
		return 0;
	}
	if (link_value_uint(&s->value, text, 0, LINK_MAX_PATHS - 1, &k) < 0)
		return -EINVAL;
	s->first = (uint32_t)k;
	s->end = s->first + 1;
	if (s->end > s->paths_named)
		s->paths_named = s->end;
	return 0;
}

/* ---- values that are more than one number ---------------------------------------- */

static int take_rtt(struct scope *s, const char *text)
{
	uint64_t rtt;

	if (link_value_time(&s->value, text, 0, 2 * LINK_TIME_MAX, &rtt) < 0)
		return -EINVAL;
	for (uint32_t k = s->first; k < s->end; k++) {
		if (s->dir[WAN_A])
			s->setup->config.path[WAN_A][k].attr.delay_ns = rtt / 2;
		if (s->dir[WAN_B])
			s->setup->config.path[WAN_B][k].attr.delay_ns = rtt - rtt / 2;
	}
	return 0;
}

static int take_km(struct scope *s, const char *text)
{
	uint64_t km;

	if (link_value_uint(&s->value, text, 0, KM_MAX, &km) < 0)
		return -EINVAL;
	FOR_SCOPE(s, p)
	p->attr.delay_ns = km * NS_PER_KM;
	return 0;
}

/* Losses in bursts, all of a burst lost: then the mean burst is in the process itself. */
static bool in_bursts(const struct link_ge *ge)
{
	return ge->p_bg > 0 && ge->loss_bad >= 1 && ge->loss_good <= 0;
}

static int set_loss(const struct scope *s, struct wan_path *p, double ratio, double burst,
		    const char *text)
{
	if (burst <= 0) {
		p->attr.loss = link_ge_iid(ratio);
		return 0;
	}
	if (link_ge_mean(ratio, burst, &p->attr.loss) < 0)
		return link_value_wrong(
			&s->value, text,
			"losing %.3g%% in bursts of %.3g packets on average cannot be: "
			"bursts would have to be longer than the time between them",
			100 * ratio, burst);
	return 0;
}

/* --loss and --burst keep what the other said, in either order. */
static int take_loss(struct scope *s, const char *text)
{
	double ratio;

	if (link_value_ratio(&s->value, text, &ratio) < 0)
		return -EINVAL;
	FOR_SCOPE(s, p)
	{
		double burst = in_bursts(&p->attr.loss) ? 1 / p->attr.loss.p_bg : 0;

		if (set_loss(s, p, ratio, burst, text) < 0)
			return -EINVAL;
	}
	return 0;
}

static int take_burst(struct scope *s, const char *text)
{
	double burst;

	if (link_value_burst(&s->value, text, &burst) < 0)
		return -EINVAL;
	FOR_SCOPE(s, p)
	{
		if (set_loss(s, p, link_ge_ratio(&p->attr.loss), burst, text) < 0)
			return -EINVAL;
	}
	return 0;
}

static int take_burst_idle(struct scope *s, const char *text)
{
	uint64_t ns = 0;

	if (strcmp(text, "never") != 0 &&
	    link_value_time(&s->value, text, 1, LINK_TIME_MAX, &ns) < 0)
		return -EINVAL;
	FOR_SCOPE(s, p)
	p->attr.burst_idle_ns = ns;
	return 0;
}

static int take_ge(struct scope *s, const char *text)
{
	struct link_ge ge;

	if (link_value_ge(&s->value, text, &ge) < 0)
		return -EINVAL;
	FOR_SCOPE(s, p)
	p->attr.loss = ge;
	return 0;
}

static int take_drop(struct scope *s, const char *text)
{
	uint64_t list[WAN_MAX_DROPS];
	size_t n = 0;

	if (link_value_drop(&s->value, text, list, &n) < 0)
		return -EINVAL;
	FOR_SCOPE(s, p)
	{
		memcpy(p->drop, list, n * sizeof list[0]);
		p->n_drop = n;
	}
	return 0;
}

static int take_queue(struct scope *s, const char *text)
{
	bool given = strcmp(text, "default") != 0;
	uint64_t bytes = 0, ns = 0;

	if (given && strcmp(text, "unlimited") != 0 &&
	    link_value_size_or_time(&s->value, text, &bytes, &ns) < 0)
		return -EINVAL;
	if (bytes || ns)
		s->queue_option = "queue";
	FOR_SCOPE(s, p)
	{
		p->attr.queue_bytes = bytes;
		p->attr.queue_ns = ns;
	}
	for (uint32_t k = s->first; k < s->end; k++) {
		for (int from = WAN_A; from <= WAN_B; from++) {
			if (s->dir[from])
				s->setup->queue_given[from][k] = given;
		}
	}
	return 0;
}

static int take_ecn(struct scope *s, const char *text)
{
	uint64_t bytes = 0, ns = 0;

	if (strcmp(text, "off") != 0 && link_value_size_or_time(&s->value, text, &bytes, &ns) < 0)
		return -EINVAL;
	if (bytes || ns)
		s->queue_option = "ecn";
	FOR_SCOPE(s, p)
	{
		p->attr.ecn_bytes = bytes;
		p->attr.ecn_ns = ns;
	}
	return 0;
}

static int take_reorder(struct scope *s, const char *text)
{
	uint64_t ns = REORDER_NS;
	double ratio;

	if (link_value_ratio_time(&s->value, text, &ratio, &ns) < 0)
		return -EINVAL;
	FOR_SCOPE(s, p)
	{
		p->attr.reorder_p = ratio;
		p->attr.reorder_ns = ns;
	}
	return 0;
}

static int take_duplicate(struct scope *s, const char *text)
{
	uint64_t ns = 0;
	double ratio;

	if (link_value_ratio_time(&s->value, text, &ratio, &ns) < 0)
		return -EINVAL;
	FOR_SCOPE(s, p)
	{
		p->attr.duplicate_p = ratio;
		p->attr.duplicate_ns = ns;
	}
	return 0;
}

static int take_policer(struct scope *s, const char *text)
{
	struct link_policer policer;

	if (link_value_policer(&s->value, text, &policer) < 0)
		return -EINVAL;
	FOR_SCOPE(s, p)
	p->attr.policer = policer;
	return 0;
}

static int take_path_mtu(struct scope *s, const char *text)
{
	uint64_t bytes = 0;

	if (strcmp(text, "any") != 0 &&
	    link_value_uint(&s->value, text, IP_LEAST_MTU, 65535, &bytes) < 0)
		return -EINVAL;
	FOR_SCOPE(s, p)
	p->attr.mtu_bytes = (uint32_t)bytes;
	return 0;
}

static int take_blackhole(struct scope *s, const char *text)
{
	if (text)
		s->blackhole_given = true;
	FOR_SCOPE(s, p)
	p->mtu_silent = text != NULL;
	return 0;
}

static int take_outage(struct scope *s, const char *text)
{
	struct link_periodic outage;

	if (link_value_periodic(&s->value, text, s->now_ns, &outage, NULL) < 0)
		return -EINVAL;
	FOR_SCOPE(s, p)
	p->attr.outage = outage;
	return 0;
}

static int take_flap(struct scope *s, const char *text)
{
	struct link_periodic flap;
	uint64_t delta;

	if (link_value_periodic(&s->value, text, s->now_ns, &flap, &delta) < 0)
		return -EINVAL;
	FOR_SCOPE(s, p)
	{
		p->attr.flap = flap;
		p->attr.flap_delay_ns = delta;
	}
	return 0;
}

static int take_blackout(struct scope *s, const char *text)
{
	struct link_blackout list[WAN_MAX_BLACKOUTS];
	size_t n = 0;

	if (link_value_blackout(&s->value, text, s->now_ns, list, &n) < 0)
		return -EINVAL;
	FOR_SCOPE(s, p)
	{
		memcpy(p->blackout, list, n * sizeof list[0]);
		p->n_blackout = n;
	}
	return 0;
}

static int take_uncut(struct scope *s, const char *text)
{
	FOR_SCOPE(s, p)
	p->attr.cut = text == NULL;
	return 0;
}

static int take_g1050(struct scope *s, const char *text)
{
	struct wan_config *config = &s->setup->config;

	if (strlen(text) != 1)
		return link_value_wrong(&s->value, text, "no such severity: choose from A to H");
	FOR_SCOPE(s, p)
	{
		/* Each direction of each path has losses of its own. */
		uint64_t seed = config->seed + (uint64_t)(p - &config->path[0][0]);

		if (link_g1050(text[0], seed, s->now_ns, &p->attr) < 0)
			return link_value_wrong(&s->value, text,
						"no such severity: choose from A to H");
	}
	return 0;
}

/* ---- values of the whole link ---------------------------------------------------- */

static int take_nat(struct scope *s, const char *text)
{
	s->setup->config.nat = text != NULL;
	return 0;
}

static int take_nat_rebind(struct scope *s, const char *text)
{
	s->nat_option = "nat-rebind";
	if (strcmp(text, "now") == 0) {
		s->setup->rebind = true;
		return 0;
	}
	if (strcmp(text, "never") == 0) {
		s->setup->config.nat_every_ns = 0;
		return 0;
	}
	return link_value_time(&s->value, text, NS_PER_MS, LINK_PERIOD_MAX,
			       &s->setup->config.nat_every_ns);
}

static int take_nat_timeout(struct scope *s, const char *text)
{
	s->nat_option = "nat-timeout";
	if (strcmp(text, "never") == 0) {
		s->setup->config.nat_timeout_ns = 0;
		return 0;
	}
	return link_value_time(&s->value, text, NS_PER_MS, LINK_PERIOD_MAX,
			       &s->setup->config.nat_timeout_ns);
}

static int take_paths(struct scope *s, const char *text)
{
	uint64_t n;

	if (link_value_uint(&s->value, text, 1, LINK_MAX_PATHS, &n) < 0)
		return -EINVAL;
	s->setup->config.n_paths = (uint32_t)n;
	return 0;
}

/* ---- the table ------------------------------------------------------------------- */

#define ATTR(field) offsetof(struct wan_path, attr.field)

static const struct link_opt table[] = {
	{"ab", NULL, KIND_SCOPE, 0, take_ab, "what follows is for a -> b only"},
	{"ba", NULL, KIND_SCOPE, 0, take_ba, "what follows is for b -> a only"},
	{"both", NULL, KIND_SCOPE, 0, take_both,
	 "what follows is for both directions (so it begins)"},
	{"path", "K", KIND_OWN, 0, take_path,
	 "what follows is for path K, from 0, or 'all' (so it begins)"},
	{"rate", "RATE", KIND_RATE, ATTR(rate_bps), NULL,
	 "bandwidth of each direction (unlimited)"},
	{"rtt", "TIME", KIND_OWN, 0, take_rtt, "round-trip time, half of it each way (0)"},
	{"delay", "TIME", KIND_TIME, ATTR(delay_ns), NULL, "delay one way"},
	{"km", "N", KIND_OWN, 0, take_km, "delay of N km of fibre: 5 us a km each way"},
	{"jitter", "TIME", KIND_TIME, ATTR(jitter_ns), NULL,
	 "uniform 0 .. TIME on top of the delay (0)"},
	{"jitter-reorders", NULL, KIND_FLAG, ATTR(jitter_reorders), NULL,
	 "jitter lets packets overtake"},
	{"loss", "RATIO", KIND_OWN, 0, take_loss, "lose packets at random (0)"},
	{"burst", "PKTS", KIND_OWN, 0, take_burst,
	 "with --loss: lose this many in a row on average; 0: independently"},
	{"burst-idle", "TIME", KIND_OWN, 0, take_burst_idle,
	 "a burst is over after TIME without a packet (10ms); never"},
	{"ge", "P,R,1-H,1-K", KIND_OWN, 0, take_ge, "Gilbert-Elliott loss, letters as in RFC 6534"},
	{"drop", "LIST", KIND_OWN, 0, take_drop,
	 "lose packets by number from now, first is 0: 3,7,10-12; none"},
	{"queue", "SIZE|TIME", KIND_OWN, 0, take_queue,
	 "drop what finds more waiting (a round trip, at least 10ms and 10 packets)"},
	{"ecn", "SIZE|TIME", KIND_OWN, 0, take_ecn,
	 "mark ECN-capable packets where more waits (off)"},
	{"reorder", "RATIO[,TIME]", KIND_OWN, 0, take_reorder, "hold packets back by TIME (1ms)"},
	{"duplicate", "RATIO[,TIME]", KIND_OWN, 0, take_duplicate,
	 "deliver twice, again after TIME (0)"},
	{"corrupt", "RATIO", KIND_RATIO, ATTR(corrupt_p), NULL, "flip one bit"},
	{"policer", "RATE,SIZE", KIND_OWN, 0, take_policer, "token bucket without a queue; none"},
	{"path-mtu", "BYTES", KIND_OWN, 0, take_path_mtu,
	 "larger packets are lost, their sender is told by ICMP; any"},
	{"blackhole", NULL, KIND_SWITCH, 0, take_blackhole, "with --path-mtu: nobody is told"},
	{"outage", "EVERY,FOR[,FIRST]", KIND_OWN, 0, take_outage,
	 "nothing passes FOR a time, again and again; none"},
	{"blackout", "FROM-TO[,...]", KIND_OWN, 0, take_blackout,
	 "nothing passes between two times from now; none"},
	{"flap", "EVERY,FOR,DELTA", KIND_OWN, 0, take_flap,
	 "a route longer by DELTA FOR a time, again and again; none"},
	{"cut", NULL, KIND_FLAG, ATTR(cut), NULL, "nothing passes"},
	{"uncut", NULL, KIND_SWITCH, 0, take_uncut, "it passes again"},
	{"g1050", "A..H", KIND_OWN, 0, take_g1050,
	 "loss, delay, jitter, outages of an ITU-T G.1050 severity"},
	{"paths", "N", KIND_OWN, 0, take_paths,
	 "paths, chosen by a hash over addresses and ports (1)"},
	{"nat", NULL, KIND_SWITCH, 0, take_nat, "end a is behind a NAT that changes ports"},
	{"nat-rebind", "EVERY|now", KIND_OWN, 0, take_nat_rebind,
	 "the NAT forgets all mappings; never"},
	{"nat-timeout", "TIME", KIND_OWN, 0, take_nat_timeout,
	 "the NAT forgets a mapping unused for so long; never"},
};

/* "--rate", "--rate=1Gbit", "--no-cut": the row; *value is behind the '='. */
static const struct link_opt *find(const char *word, const char **value, bool *no)
{
	const char *name = word + 2;
	size_t len;

	if (strncmp(word, "--", 2) != 0)
		return NULL;
	len = strcspn(name, "=");
	*value = name[len] ? name + len + 1 : NULL;
	*no = len > 3 && strncmp(name, "no-", 3) == 0;
	for (size_t i = 0; i < SDR_ARRAY_LEN(table); i++) {
		const char *row = table[i].name;

		if (strlen(row) == len && strncmp(row, name, len) == 0) {
			*no = false;
			return &table[i];
		}
		if (*no && !table[i].arg && table[i].kind != KIND_SCOPE && strlen(row) == len - 3 &&
		    strncmp(row, name + 3, len - 3) == 0)
			return &table[i];
	}
	return NULL;
}

int link_opts_words(const char *word)
{
	const char *value;
	bool no;
	const struct link_opt *o = find(word, &value, &no);

	return !o ? 0 : o->arg && !value ? 2 : 1;
}

void link_opts_help(FILE *to)
{
	for (size_t i = 0; i < SDR_ARRAY_LEN(table); i++) {
		char left[64];

		snprintf(left, sizeof left, "--%s%s%s", table[i].name, table[i].arg ? " " : "",
			 table[i].arg ? table[i].arg : "");
		fprintf(to, "  %-28s %s\n", left, table[i].help);
	}
}

/* ---- obeying --------------------------------------------------------------------- */

static int obey_plain(struct scope *s, const struct link_opt *o, const char *text)
{
	uint64_t number = 0;
	double ratio = 0;
	int rc = 0;

	if (o->kind == KIND_RATE)
		rc = link_value_rate(&s->value, text, &number);
	else if (o->kind == KIND_TIME)
		rc = link_value_time(&s->value, text, 0, LINK_TIME_MAX, &number);
	else if (o->kind == KIND_RATIO)
		rc = link_value_ratio(&s->value, text, &ratio);
	if (rc < 0)
		return rc;
	FOR_SCOPE(s, p)
	{
		void *field = (char *)p + o->offset;

		if (o->kind == KIND_FLAG)
			*(bool *)field = text != NULL;
		else if (o->kind == KIND_RATIO)
			*(double *)field = ratio;
		else
			*(uint64_t *)field = number;
	}
	return 0;
}

static int obey_words(struct scope *s, int n, char *const *words)
{
	for (int i = 0; i < n; i++) {
		const char *text, *word = words[i];
		bool no;
		const struct link_opt *o = find(word, &text, &no);
		int rc;

		if (!o) {
			snprintf(s->value.error, LINK_OPTS_ERROR,
				 "%.80s: no option of a link: see 'sdr help wan'", word);
			return -EINVAL;
		}
		s->value.option = o->name;
		if (!o->arg && text)
			return link_value_wrong(&s->value, NULL, "takes no value");
		if (o->arg && !text) {
			if (i + 1 == n)
				return link_value_wrong(&s->value, NULL, "needs a value: %s",
							o->arg);
			text = words[++i];
		}
		if (!o->arg)
			text = no ? NULL : o->name;
		rc = o->take ? o->take(s, text) : obey_plain(s, o, text);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* The classic rule: a queue of one round trip. Without a rate nothing ever waits. */
static uint64_t default_queue_ns(uint64_t rtt_ns, uint64_t rate_bps, uint32_t mtu_bytes)
{
	uint64_t pkts_ns;

	if (!rate_bps)
		return 0;
	pkts_ns = LINK_QUEUE_LEAST_PKTS * (uint64_t)mtu_bytes * 8 * NS_PER_S / rate_bps;
	return u64_max(u64_max(rtt_ns, pkts_ns), LINK_QUEUE_LEAST_NS);
}

static void default_queues(struct link_setup *setup)
{
	struct wan_config *c = &setup->config;

	for (uint32_t k = 0; k < LINK_MAX_PATHS; k++) {
		uint64_t rtt = c->path[WAN_A][k].attr.delay_ns + c->path[WAN_B][k].attr.delay_ns;

		for (int from = WAN_A; from <= WAN_B; from++) {
			struct link_attr *a = &c->path[from][k].attr;

			if (setup->queue_given[from][k])
				continue;
			a->queue_bytes = 0;
			a->queue_ns = default_queue_ns(rtt, a->rate_bps, setup->mtu_bytes);
		}
	}
}

/* What holds less than one packet lets none pass. */
static int check_room(struct scope *s, const struct link_attr *a)
{
	uint32_t mtu = s->setup->mtu_bytes;
	uint64_t queue = a->queue_bytes ? a->queue_bytes : UINT64_MAX;
	char lo[UNITS_TEXT];

	if (a->rate_bps && a->queue_ns)
		queue = (uint64_t)((unsigned __int128)a->queue_ns * a->rate_bps / (8 * NS_PER_S));
	if (a->rate_bps && queue < mtu) {
		s->value.option = "queue";
		return link_value_wrong(
			&s->value, NULL,
			"at %s it would hold less than one packet of %u bytes, and none "
			"of them would pass: choose a longer one",
			units_rate_text(lo, (double)a->rate_bps), mtu);
	}
	if (a->policer.rate_bps && a->policer.burst_bytes < mtu) {
		s->value.option = "policer";
		return link_value_wrong(
			&s->value, NULL,
			"the bucket would hold less than one packet of %u bytes, and none "
			"of them would pass: choose a larger SIZE",
			mtu);
	}
	return 0;
}

/* Options that say nothing without another one: a measurement with them would mislead. */
static int check_path(struct scope *s, struct wan_path *p)
{
	char text[UNITS_TEXT];
	int rc;

	if (s->queue_option && !p->attr.rate_bps &&
	    (p->attr.queue_bytes || p->attr.queue_ns || p->attr.ecn_bytes || p->attr.ecn_ns)) {
		s->value.option = s->queue_option;
		return link_value_wrong(&s->value, NULL,
					"nothing waits on a link without a limit: "
					"give --rate too");
	}
	if (!p->attr.mtu_bytes) {
		s->value.option = "blackhole";
		if (s->blackhole_given && p->mtu_silent)
			return link_value_wrong(&s->value, NULL,
						"every size passes: give "
						"--path-mtu too");
		p->mtu_silent = false;
	}
	if (check_room(s, &p->attr) < 0)
		return -EINVAL;
	rc = link_attr_check(&p->attr);
	if (rc < 0) {
		snprintf(s->value.error, LINK_OPTS_ERROR,
			 "these values do not go together (%s; delay %s): see 'sdr help wan'",
			 rc == -ERANGE ? "out of range" : "invalid",
			 units_time_text(text, p->attr.delay_ns));
		return -EINVAL;
	}
	return 0;
}

static int check_all(struct scope *s)
{
	struct link_setup *setup = s->setup;
	struct wan_config *c = &setup->config;

	if (s->paths_named > c->n_paths) {
		s->value.option = "path";
		return link_value_wrong(
			&s->value, NULL,
			"%u is the highest path number that is named, but there %s %u "
			"path%s, counted from 0: give --paths %u",
			s->paths_named - 1, c->n_paths == 1 ? "is" : "are", c->n_paths,
			c->n_paths == 1 ? "" : "s", s->paths_named);
	}
	if (s->nat_option && !c->nat) {
		s->value.option = s->nat_option;
		return link_value_wrong(&s->value, NULL, "there is no NAT: give --nat too");
	}
	default_queues(setup);
	for (uint32_t k = 0; k < LINK_MAX_PATHS; k++) {
		if (check_path(s, &c->path[WAN_A][k]) < 0 || check_path(s, &c->path[WAN_B][k]) < 0)
			return -EINVAL;
	}
	return 0;
}

void link_setup_init(struct link_setup *s)
{
	*s = (struct link_setup){.config = {.seed = 1, .n_paths = 1}, .mtu_bytes = 1500};
	for (uint32_t k = 0; k < LINK_MAX_PATHS; k++) {
		for (int from = WAN_A; from <= WAN_B; from++)
			s->config.path[from][k].attr.burst_idle_ns = LINK_BURST_IDLE_NS;
	}
}

int link_opts_apply(struct link_setup *setup, uint64_t now_ns, int n, char *const *words,
		    char *error)
{
	struct scope s = {.now_ns = now_ns,
			  .dir = {true, true},
			  .end = LINK_MAX_PATHS,
			  .value = {.option = "", .error = error}};
	int rc;

	s.setup = malloc(sizeof *s.setup);
	if (!s.setup) {
		snprintf(error, LINK_OPTS_ERROR, "no memory for the link's values");
		return -ENOMEM;
	}
	*s.setup = *setup;
	rc = obey_words(&s, n, words);
	if (rc == 0)
		rc = check_all(&s);
	if (rc == 0)
		*setup = *s.setup;
	free(s.setup);
	return rc;
}

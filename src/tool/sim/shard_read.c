// SPDX-License-Identifier: Apache-2.0
/*
 * A shard's file read. See shard.h.
 */
#include "tool/sim/shard.h"

#include "tool/say.h"
#include "tool/sim/json_read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int say_wrong(const struct shard_file *f, const struct json_read *r)
{
	say("%s:%" PRIu64 ": not a shard that 'sdr sim --shard' printed: %s", f->path, r->line,
	    r->why);
	return -1;
}

static void read_head(struct shard_file *f, struct json_read *r)
{
	json_read_mark(r, '{');
	json_read_name(r, "sdr_sim_shard");
	(void)json_read_uint(r, 1);
	json_read_mark(r, ',');
	json_read_name(r, "version");
	json_read_text(r, f->version, sizeof(f->version));
	json_read_mark(r, ',');
	json_read_name(r, "shard");
	f->id.index = (uint32_t)json_read_uint(r, SHARDS_MAX);
	json_read_mark(r, ',');
	json_read_name(r, "shards");
	f->id.count = (uint32_t)json_read_uint(r, SHARDS_MAX);
	json_read_mark(r, ',');
	if (!r->wrong && (f->id.index < 1 || f->id.index > f->id.count))
		json_read_wrong(r, "such a part there cannot be");
}

static void read_member(struct shard_file *f, struct json_read *r)
{
	char name[32], text[SWEEP_VALUE_MAX];
	int key;

	json_read_text(r, name, sizeof(name));
	json_read_mark(r, ':');
	json_read_text(r, text, sizeof(text));
	if (r->wrong)
		return;
	key = sweep_key_find(name);
	if (key < 0 || f->scenario[key]) {
		json_read_wrong(r, key < 0 ? "an unknown key in \"scenario\""
					   : "a key twice in \"scenario\"");
		return;
	}
	f->scenario[key] = strdup(text);
	if (!f->scenario[key])
		json_read_wrong(r, "out of memory");
}

static void read_scenario(struct shard_file *f, struct json_read *r)
{
	json_read_name(r, "scenario");
	json_read_mark(r, '{');
	do
		read_member(f, r);
	while (json_read_try(r, ','));
	json_read_mark(r, '}');
	json_read_mark(r, ',');
}

/* The texts as a sweep, which has to be one that could have been run. */
static int make_sweep(struct shard_file *f)
{
	char why[SWEEP_WHY];

	sweep_init(&f->sweep);
	for (int i = 0; i < (int)SWEEP_KEYS; i++) {
		if (!f->scenario[i] || !sweep_set(&f->sweep, i, f->scenario[i], why))
			continue;
		say("%s: scenario: %s = %s: %s", f->path, sweep_keys[i].name, f->scenario[i], why);
		return -1;
	}
	if (f->sweep.schemes == 0 || sweep_check(&f->sweep, why)) {
		say("%s: scenario: %s", f->path, f->sweep.schemes ? why : "no scheme");
		return -1;
	}
	return 0;
}

static void read_point(struct json_read *r, struct tally *t)
{
	json_read_mark(r, '{');
	json_read_name(r, "runs");
	if (json_read_uint(r, SWEEP_RUNS_MAX) != t->runs)
		json_read_wrong(r, "other runs than the scenario has");
	json_read_mark(r, ',');
	json_read_name(r, "sent_bytes");
	t->sent_bytes = json_read_uint(r, UINT64_MAX);
	json_read_mark(r, ',');
	json_read_name(r, "error");
	t->err = -(int32_t)json_read_uint(r, 65535);
	json_read_mark(r, ',');
	json_read_name(r, "times_ns");
	json_read_mark(r, '[');
	for (uint64_t i = 0; i < t->runs && !r->wrong; i++) {
		if (i > 0)
			json_read_mark(r, ',');
		t->time_ns[i] = json_read_uint_or_null(r, INT64_MAX);
		t->unfinished += t->time_ns[i] == STATS_NEVER;
	}
	json_read_mark(r, ']');
	json_read_mark(r, '}');
}

static void read_points(struct shard_file *f, struct json_read *r)
{
	json_read_name(r, "points");
	json_read_mark(r, '[');
	for (uint64_t i = 0; i < f->tallies.points && !r->wrong; i++) {
		if (i > 0)
			json_read_mark(r, ',');
		read_point(r, &f->tallies.of[i]);
	}
	json_read_mark(r, ']');
	json_read_mark(r, '}');
}

static int read_all(struct shard_file *f, FILE *from)
{
	struct json_read r;

	json_read_init(&r, from);
	read_head(f, &r);
	read_scenario(f, &r);
	if (r.wrong)
		return say_wrong(f, &r);
	if (make_sweep(f))
		return -1;
	if (tallies_init(&f->tallies, &f->sweep, f->id.index - 1, f->id.count)) {
		say("out of memory");
		return -1;
	}
	read_points(f, &r);
	return json_read_end(&r) ? say_wrong(f, &r) : 0;
}

int shard_file_read(struct shard_file *f, const char *path)
{
	FILE *from = fopen(path, "re");
	int rc;

	*f = (struct shard_file){.path = path};
	if (!from) {
		say("%s: cannot be opened: %s", path, strerror(errno));
		return -1;
	}
	rc = read_all(f, from);
	fclose(from);
	return rc;
}

void shard_file_fini(struct shard_file *f)
{
	for (int i = 0; i < (int)SWEEP_KEYS; i++)
		free(f->scenario[i]);
	tallies_fini(&f->tallies);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * See merge.h. One file at a time is in memory beside the whole.
 */
#include "tool/sim/merge.h"

#include "tool/say.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct merge {
	char **paths;
	uint32_t n;
	struct shard_file first; /* its tallies have gone into the whole's */
	const char **from;	 /* [shard - 1]: the file that it came from */
	struct tallies *whole;
};

static const char *or_none(const char *text)
{
	return text ? text : "not set";
}

/* Whether it is a part of the same as the first file is. */
static int compare(const struct merge *m, const struct shard_file *f)
{
	const struct shard_file *first = &m->first;

	if (strcmp(f->version, first->version) != 0) {
		say("%s: made by release %s, but %s by %s: run all shards with one release",
		    f->path, f->version, first->path, first->version);
		return -1;
	}
	for (int i = 0; i < (int)SWEEP_KEYS; i++) {
		const char *a = f->scenario[i], *b = first->scenario[i];

		if ((!a && !b) || (a && b && strcmp(a, b) == 0))
			continue;
		say("%s: another scenario than %s: %s is %s there, %s here", f->path, first->path,
		    sweep_keys[i].name, or_none(b), or_none(a));
		return -1;
	}
	if (f->id.count != first->id.count) {
		say("%s: one of %u shards, but %s is one of %u", f->path, f->id.count, first->path,
		    first->id.count);
		return -1;
	}
	return 0;
}

static int add(struct merge *m, const struct shard_file *f)
{
	const char **from = &m->from[f->id.index - 1];

	if (*from) {
		say("%s: shard %u/%u came from %s already: leave one of them out", f->path,
		    f->id.index, f->id.count, *from);
		return -1;
	}
	*from = f->path;
	tallies_merge(m->whole, &m->first.sweep, &f->tallies, f->id.index - 1, f->id.count);
	return 0;
}

static int merge_first(struct merge *m)
{
	if (shard_file_read(&m->first, m->paths[0]))
		return -1;
	m->from = calloc(m->first.id.count, sizeof(*m->from));
	if (!m->from || tallies_init(m->whole, &m->first.sweep, 0, 1)) {
		say("out of memory");
		return -1;
	}
	if (add(m, &m->first))
		return -1;
	tallies_fini(&m->first.tallies);
	return 0;
}

static int merge_others(struct merge *m)
{
	for (uint32_t i = 1; i < m->n; i++) {
		struct shard_file f;
		int rc = shard_file_read(&f, m->paths[i]);

		if (rc == 0)
			rc = compare(m, &f);
		if (rc == 0)
			rc = add(m, &f);
		shard_file_fini(&f);
		if (rc)
			return rc;
	}
	return 0;
}

static int check_all_there(const struct merge *m)
{
	char list[128];
	size_t used = 0;
	uint32_t missing = 0;

	for (uint32_t i = 0; i < m->first.id.count; i++) {
		if (m->from[i])
			continue;
		if (missing++ < 8)
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%u",
						 used ? ", " : "", i + 1);
	}
	if (!missing)
		return 0;
	say("shard%s %s%s of %u missing: run them, or name their files", missing > 1 ? "s" : "",
	    list, missing > 8 ? " and others" : "", m->first.id.count);
	return -1;
}

int merge_files(char **paths, uint32_t n, struct sweep *s, struct tallies *t)
{
	struct merge m = {.paths = paths, .n = n, .whole = t};
	int rc = merge_first(&m);

	if (rc == 0)
		rc = merge_others(&m);
	if (rc == 0)
		rc = check_all_there(&m);
	*s = m.first.sweep;
	shard_file_fini(&m.first);
	free(m.from);
	return rc;
}

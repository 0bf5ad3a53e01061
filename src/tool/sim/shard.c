// SPDX-License-Identifier: Apache-2.0
/*
 * Which shard, and its file written. See shard.h.
 */
#include "tool/sim/shard.h"

#include "tool/cli.h"
#include "tool/json.h"
#include "tool/say.h"

#include "base/units.h"

#include <sdr/sdr.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

int shard_parse(const char *text, struct shard_id *out)
{
	size_t len = strcspn(text, "/");
	char index[16] = "";
	uint64_t i = 0, n = 0;

	if (text[len] == '/' && len < sizeof(index))
		memcpy(index, text, len);
	if (units_parse_uint(index, 0, UINT32_MAX, &i) ||
	    units_parse_uint(text + len + 1, 0, UINT32_MAX, &n)) {
		say("--shard %s: not a part: write it like 2/8, the second of eight", text);
		return -1;
	}
	if (n < 1 || n > SHARDS_MAX) {
		say("--shard %s: out of range: choose 1 to %u parts", text, SHARDS_MAX);
		return -1;
	}
	if (i < 1 || i > n) {
		say("--shard %s: out of range: the parts of %llu are 1 to %llu", text,
		    (unsigned long long)n, (unsigned long long)n);
		return -1;
	}
	*out = (struct shard_id){(uint32_t)i, (uint32_t)n};
	return 0;
}

static void print_scenario(struct json *j, const struct sweep *s)
{
	char text[SWEEP_VALUE_MAX];

	json_object_begin(j, "scenario");
	for (int i = 0; i < (int)SWEEP_KEYS; i++) {
		const char *value = sweep_text(s, i, text);

		if (value)
			json_text(j, sweep_keys[i].name, value);
	}
	json_object_end(j);
}

static void print_point(struct json *j, const struct tally *t)
{
	json_object_begin(j, NULL);
	json_uint(j, "runs", t->runs);
	json_uint(j, "sent_bytes", t->sent_bytes);
	json_uint(j, "error", (uint64_t)-t->err);
	json_array_begin(j, "times_ns");
	for (uint64_t i = 0; i < t->runs; i++) {
		if (t->time_ns[i] == STATS_NEVER)
			json_text(j, NULL, NULL); /* null */
		else
			json_uint(j, NULL, t->time_ns[i]);
	}
	json_array_end(j);
	json_object_end(j);
}

int shard_print(const struct sweep *s, const struct shard_id *id, const struct tallies *t)
{
	struct json j;

	json_init(&j, stdout);
	json_object_begin(&j, NULL);
	json_uint(&j, "sdr_sim_shard", 1);
	json_text(&j, "version", sdr_version());
	json_uint(&j, "shard", id->index);
	json_uint(&j, "shards", id->count);
	print_scenario(&j, s);
	json_array_begin(&j, "points");
	for (uint64_t i = 0; i < t->points; i++)
		print_point(&j, &t->of[i]);
	json_array_end(&j);
	json_object_end(&j);
	json_finish(&j);
	return CLI_OK;
}

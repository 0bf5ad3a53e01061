/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line against a twin that has no super-packets: it offers plain packets one by one to
 * links of its own with the same seeds, and keeps a list of what must arrive when. Random
 * values of everything, super-packets of all kinds, new values on the way. Every packet must
 * come as many times as the twin says, with the same bytes, not before its time, and not
 * later than its piece allows; and nothing else may come.
 *
 *	wan_line_twin_test [first seed [seeds]]
 */
#include "tool/wan/line_int.h"
#include "tool/wan/packet_twin.h"

#include "base/bits.h"
#include "base/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES 60
#define MAX_PAYLOAD 20000

#define REQUIRE(cond)                                                               \
	do {                                                                        \
		if (!(cond)) {                                                      \
			fprintf(stderr, "seed %llu: line %d: %s\n",                 \
				(unsigned long long)current_seed, __LINE__, #cond); \
			exit(1);                                                    \
		}                                                                   \
	} while (0)

static uint64_t current_seed;

/* A copy of a packet that must come. */
struct expected {
	uint8_t *bytes;
	size_t len;
	uint64_t at_ns;
	enum wan_end to;
	uint32_t frame; /* which one it was in */
	bool exact;	/* alone in its piece */
};

struct twin {
	struct link link[LINE_CHANNELS];
	struct expected *list;
	size_t n, cap;
	uint64_t marked[LINE_CHANNELS];
	uint64_t too_large; /* frames */
};

static struct wan_config config;
static uint8_t frame[WAN_FRAME_MAX];

static uint64_t maybe(struct rng *rng, unsigned int of, uint64_t most)
{
	return rng_below(rng, of) ? 0 : 1 + rng_below(rng, most);
}

static double maybe_p(struct rng *rng)
{
	return rng_below(rng, 3) ? 0 : rng_unit(rng) / 5;
}

static void random_path(struct rng *rng, uint64_t now_ns, struct wan_path *path)
{
	static const uint64_t rates[] = {0, 10000000, 1000000000, 1000000000, 100000000000};
	uint64_t at = 0, ns = now_ns;

	*path = (struct wan_path){0};
	path->mtu_silent = rng_below(rng, 2);
	path->attr = (struct link_attr){
		.cut = rng_below(rng, 20) == 0,
		.mtu_bytes = (uint32_t)maybe(rng, 4, 3000),
		.rate_bps = rates[rng_below(rng, SDR_ARRAY_LEN(rates))],
		.delay_ns = rng_below(rng, 30 * NS_PER_MS),
		.jitter_ns = maybe(rng, 3, NS_PER_MS),
		.jitter_reorders = rng_below(rng, 2),
		.queue_bytes = maybe(rng, 4, 200000),
		.ecn_bytes = maybe(rng, 2, 50000),
		.loss = link_ge_iid(maybe_p(rng)),
		.reorder_p = maybe_p(rng),
		.reorder_ns = rng_below(rng, NS_PER_MS),
		.duplicate_p = maybe_p(rng),
		.duplicate_ns = rng_below(rng, 2) * rng_below(rng, NS_PER_MS),
		.corrupt_p = maybe_p(rng),
	};
	if (rng_below(rng, 3) == 0)
		(void)link_ge_mean(0.05, 5, &path->attr.loss);
	for (uint64_t i = maybe(rng, 2, 20); i > 0; i--) {
		at += 1 + rng_below(rng, 20);
		path->drop[path->n_drop++] = at;
	}
	for (uint64_t i = maybe(rng, 4, 3); i > 0; i--) {
		struct link_blackout *b = &path->blackout[path->n_blackout++];

		b->from_ns = ns + rng_below(rng, NS_PER_MS);
		b->to_ns = ns = b->from_ns + rng_below(rng, NS_PER_MS);
	}
}

static void random_config(struct rng *rng, uint64_t now_ns)
{
	config.n_paths = 1 + (uint32_t)rng_below(rng, rng_below(rng, 2) ? 4 : 1);
	for (uint32_t c = 0; c < 2 * config.n_paths; c++)
		random_path(rng, now_ns, &config.path[c % 2][c / 2]);
}

static struct link_attr attr_of(uint32_t channel)
{
	const struct wan_path *path = &config.path[channel % 2][channel / 2];
	struct link_attr attr = path->attr;

	attr.drop = path->drop;
	attr.n_drop = path->n_drop;
	attr.blackout = path->blackout;
	attr.n_blackout = path->n_blackout;
	return attr;
}

static void twin_start(struct twin *t)
{
	for (uint32_t c = 0; c < LINE_CHANNELS; c++) {
		struct link_attr attr = {0};

		if (c / 2 < config.n_paths)
			attr = attr_of(c);
		REQUIRE(link_init(&t->link[c], &attr, channel_seed(config.seed, c)) == 0);
	}
}

static void twin_set(struct twin *t, uint64_t now_ns)
{
	for (uint32_t c = 0; c < 2 * config.n_paths; c++) {
		struct link_attr attr = attr_of(c);

		REQUIRE(link_attr_set(&t->link[c], now_ns, &attr) == 0);
	}
}

static struct expected *twin_expect(struct twin *t, const uint8_t *bytes, size_t len)
{
	struct expected *e;

	if (t->n == t->cap) {
		t->cap = 2 * t->cap + 64;
		t->list = realloc(t->list, t->cap * sizeof(*t->list));
		REQUIRE(t->list);
	}
	e = &t->list[t->n++];
	*e = (struct expected){.bytes = malloc(len), .len = len};
	REQUIRE(e->bytes);
	memcpy(e->bytes, bytes, len);
	return e;
}

/* But the version: packet.h says why. */
static void flip(uint8_t *bytes, uint64_t bit)
{
	if (bit >= 4 && bit < 8)
		bit += 12 * 8;
	bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
}

/* The same packet as the line has it: plain, and CE in another copy. */
static void twin_offer(struct twin *t, enum wan_end from, uint64_t now_ns, uint32_t number,
		       const struct twin_spec *spec)
{
	static struct twin_list plain, marked;
	struct twin_spec ce = *spec;
	struct wan_packet p;
	size_t len = twin_build(spec, frame);
	uint32_t channel;
	bool too_large = false;

	REQUIRE(wan_packet_parse(frame, len, &p) == 0);
	channel = channel_of(from,
			     link_path_of(&p.flow, config.n_paths, path_seed(config.seed, from)));
	plain.n = plain.len = marked.n = marked.len = 0;
	twin_segments(frame, len, &plain);
	ce.tos |= spec->tos & 3 ? 3 : 0;
	twin_segments(frame, twin_build(&ce, frame), &marked);
	for (size_t i = 0; i < plain.n; i++) {
		size_t bytes = plain.at[i + 1] - plain.at[i];
		struct link *link = &t->link[channel];
		struct link_fate fate;

		link_offer(link, now_ns, (uint32_t)bytes, &fate);
		too_large |= fate.lost == LINK_LOST_MTU;
		t->marked[channel] += fate.copies && fate.ce && spec->tos & 3;
		for (uint32_t copy = 0; copy < fate.copies; copy++) {
			const struct twin_list *list = fate.ce ? &marked : &plain;
			struct expected *e = twin_expect(t, list->bytes + list->at[i], bytes);

			e->at_ns = fate.deliver_ns[copy];
			e->to = from == WAN_A ? WAN_B : WAN_A;
			e->frame = number;
			e->exact = fate.corrupt || fate.copies > 1 ||
				   fate.deliver_ns[0] > link->in_order_ns;
			if (fate.corrupt && copy == 0)
				flip(e->bytes, fate.corrupt_bit);
		}
	}
	t->too_large += too_large && !config.path[from][channel / 2].mtu_silent;
}

static bool fits(const struct expected *e, const uint8_t *bytes, size_t len,
		 const struct wan_frame *f)
{
	if (e->to != f->to || e->len != len || e->at_ns > f->due_ns)
		return false;
	if (e->at_ns + (e->exact ? 0 : WAN_PIECE_NS) < f->due_ns)
		return false;
	return memcmp(e->bytes, bytes, len) == 0;
}

/* The packets of what the line gave, each off the twin's list. */
static void match(struct twin *t, const struct wan_frame *f)
{
	static struct twin_list got;
	uint64_t latest = 0;
	size_t before = t->n;

	got.n = got.len = 0;
	twin_segments(f->bytes, f->len, &got);
	for (size_t i = 0; i < got.n; i++) {
		size_t at = 0;

		while (at < t->n &&
		       !fits(&t->list[at], got.bytes + got.at[i], got.at[i + 1] - got.at[i], f))
			at++;
		REQUIRE(at < t->n);
		latest = u64_max(latest, t->list[at].at_ns);
		free(t->list[at].bytes);
		/* In order: equal packets leave in the order of their times. */
		memmove(&t->list[at], &t->list[at + 1], (t->n - at - 1) * sizeof(t->list[0]));
		t->n--;
	}
	REQUIRE(latest == f->due_ns); /* its last bit */
	REQUIRE(before - t->n == got.n);
}

/* A plain error to the sender; the twin only counts them. */
static bool is_error(const struct wan_frame *f)
{
	const uint8_t *ip = (const uint8_t *)f->bytes + WAN_VNET_BYTES;

	return ip[0] >> 4 == 6 ? ip[6] == 58 && ip[40] == 2 : ip[9] == 1 && ip[20] == 3;
}

static uint64_t take_all(struct wan_line *line, struct twin *t, uint64_t now_ns, uint64_t *hash)
{
	uint64_t errors = 0, last = 0;
	struct wan_frame f;

	while (wan_line_take(line, now_ns, &f)) {
		REQUIRE(f.due_ns >= last && f.due_ns <= now_ns);
		last = f.due_ns;
		*hash = (*hash ^ f.due_ns ^ f.len) * UINT64_C(0x9e3779b97f4a7c15);
		if (is_error(&f))
			errors++;
		else if (t)
			match(t, &f);
	}
	wan_line_check(line);
	return errors;
}

static void compare_counters(const struct wan_line *line, const struct twin *t, uint64_t errors)
{
	struct wan_line_counters counters;
	struct wan_dir_stat stat;

	for (uint32_t c = 0; c < LINE_CHANNELS; c++) {
		struct link_counters want = t->link[c].counters;

		want.marked_pkts = t->marked[c];
		wan_line_stat(line, (enum wan_end)(c % 2), c / 2, 0, &stat);
		REQUIRE(memcmp(&stat.link, &want, sizeof(want)) == 0);
		REQUIRE(stat.in_flight_pkts == 0 && stat.in_flight_bytes == 0);
	}
	wan_line_counters(line, &counters);
	REQUIRE(counters.too_big_told == errors && errors == t->too_large);
	REQUIRE(counters.frames == FRAMES && counters.no_memory_frames == 0);
}

/* A hash of all that came; the same for the same seed, with or without the twin. */
static uint64_t run(uint64_t seed, bool with_twin)
{
	static struct twin twin;
	struct twin *t = with_twin ? &twin : NULL;
	uint64_t now_ns = NS_PER_S, errors = 0, hash = 0;
	struct wan_line *line;
	struct rng rng;

	current_seed = seed;
	rng_init(&rng, seed);
	config = (struct wan_config){.seed = seed};
	random_config(&rng, now_ns);
	REQUIRE(wan_line_create(&config, now_ns, &sdr_alloc_system, &line) == 0);
	if (t)
		twin_start(t);
	for (uint32_t i = 0; i < FRAMES; i++) {
		struct twin_spec spec = twin_random(&rng, MAX_PAYLOAD);
		enum wan_end from = (enum wan_end)rng_below(&rng, 2);
		void *buffer = wan_line_buffer(line);

		if (spec.segment_bytes)
			spec.segment_bytes = (uint32_t)u64_max(spec.segment_bytes, 100);
		REQUIRE(buffer);
		wan_line_offer(line, from, now_ns, twin_build(&spec, buffer));
		if (t)
			twin_offer(t, from, now_ns, i, &spec);
		now_ns += rng_below(&rng, 3) * rng_below(&rng, 200000);
		errors += take_all(line, t, now_ns, &hash);
		if (rng_below(&rng, 20))
			continue;
		random_config(&rng, now_ns);
		REQUIRE(wan_line_set(line, now_ns, &config) == 0);
		if (t)
			twin_set(t, now_ns);
	}
	errors += take_all(line, t, now_ns + 10 * NS_PER_S, &hash);
	REQUIRE(wan_line_next_ns(line) == UINT64_MAX);
	if (t) {
		REQUIRE(t->n == 0);
		compare_counters(line, t, errors);
		free(t->list);
		*t = (struct twin){0};
	}
	wan_line_destroy(line);
	return hash;
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t seeds = argc > 2 ? strtoull(argv[2], NULL, 0) : 60;
	uint64_t hash = 0;

	for (uint64_t seed = first; seed < first + seeds; seed++) {
		hash = run(seed, true);
		REQUIRE(run(seed, false) == hash);
	}
	printf("%llu seeds as the twin has them, last hash %016llx\n", (unsigned long long)seeds,
	       (unsigned long long)hash);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * What it costs that packets of a message are dealt to blocks: one core's parity of a whole
 * message by codec_encode() (src/conn/codec.h), beside code_encode() over as many bytes that lie
 * block after block, in the same run.
 *
 *	codec_bench [--seconds S] [--memory MIB] [--rounds N]
 *
 * GB/s of data through a message of --memory bytes, 64 MiB unless told, in packets of 4096 bytes
 * and of what 1500 bytes of Ethernet carry; "of it" is the codec's rate over the code's alone.
 * decode: a packet in 100 is lost, at random, and every block that lost any is made good; there
 * is nothing beside it. CPU time of this thread; the two take turns, and the best round counts.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "conn/codec.h"
#include "rate_util.h"

struct row {
	enum rel_code code;
	uint32_t k, m;
};

static const struct row rows[] = {
	{REL_CODE_RS, 32, 8}, {REL_CODE_RS, 128, 10}, {REL_CODE_XOR, 32, 8}};
static const uint32_t payloads[] = {4096, 1436};
static const uint32_t depths[] = {1, 16, 64, 512};

struct bench {
	struct rate_options o;
	struct codec codec;
	struct codec_write w;
	struct code *code;
	struct code_set *have; /* of each block */
	uint8_t *whole;	       /* the data, for comparison */
};

/* Parity of the whole message, or what was lost of it. */
typedef void work(struct bench *b);

static void by_codec(struct bench *b)
{
	if (codec_encode(&b->codec, &b->w, 0, b->w.layout.nblocks, 0, b->w.m))
		rate_die("codec_encode() refused");
}

/* As if all packets of a block lay side by side. */
static void by_code(struct bench *b)
{
	const struct codec_write *w = &b->w;
	const struct code_block block = {w->k, w->payload, w->payload};

	for (uint32_t i = 0; i < w->layout.nblocks; i++) {
		const uint8_t *from[RATE_UNITS];
		uint8_t *to[RATE_UNITS];

		for (uint32_t s = 0; s < w->k; s++)
			from[s] = w->data + ((size_t)i * w->k + s) * w->payload;
		for (uint32_t s = 0; s < w->m; s++)
			to[s] = w->parity + ((size_t)i * w->m + s) * w->payload;
		if (code_encode(b->code, &block, from, 0, w->m, to))
			rate_die("code_encode() refused");
	}
}

static void decode(struct bench *b)
{
	const struct code_set none = {0}, parity = code_set_missing(&none, b->w.m);

	for (uint32_t i = 0; i < b->w.layout.nblocks; i++)
		if (codec_decode(&b->codec, &b->w, i, &b->have[i], &parity) < 0)
			rate_die("codec_decode() refused");
}

static double rate(struct bench *b, work *what)
{
	double begin = rate_cpu_s(), took;
	size_t done = 0;

	do {
		what(b);
		done++;
		took = rate_cpu_s() - begin;
	} while (took < b->o.seconds);
	return (double)done * (double)b->w.length / took * 1e-9;
}

/* Which packets are lost; xor makes good one of each of its groups, so no more than that are. */
static void lose(struct bench *b)
{
	struct rng rng;

	rng_init(&rng, 1);
	for (uint32_t i = 0; i < b->w.layout.nblocks; i++) {
		struct code_set lost = {0};
		uint32_t group[RATE_UNITS] = {0}, n = 0;

		for (uint32_t s = 0; s < b->w.k; s++)
			if (rng_below(&rng, 100) == 0 && !group[s % b->w.m]++ && n < b->w.m) {
				code_set_add(&lost, s);
				n++;
			}
		b->have[i] = code_set_missing(&lost, b->w.k);
	}
}

/* What comes back is what was there. */
static void check(struct bench *b)
{
	by_codec(b);
	memcpy(b->whole, b->w.data, b->w.length);
	for (uint32_t i = 0; i < b->w.layout.nblocks; i++) {
		struct code_set lost = code_set_missing(&b->have[i], b->w.k);

		for (uint32_t s = code_set_next(&lost, 0); s < CODE_SET_BITS;
		     s = code_set_next(&lost, s + 1))
			memset(b->w.data + (size_t)code_layout_packet(&b->w.layout, i, s) *
						   b->w.payload,
			       0, b->w.payload);
	}
	decode(b);
	if (memcmp(b->whole, b->w.data, b->w.length) != 0)
		rate_die("what was lost came back wrong");
}

static void measure(struct bench *b, const struct row *r, uint32_t payload, uint32_t depth)
{
	const struct code_params params = {.k = r->k, .m = r->m};
	/* Whole blocks, so that both do the same. */
	const uint32_t blocks = (uint32_t)(b->o.memory / payload / r->k);
	uint8_t *data = b->w.data, *parity = b->w.parity;
	double best[3] = {0};

	if (codec_write_init(&b->w, r->code, r->k, r->m, depth, 0, blocks * r->k, payload,
			     (uint64_t)blocks * r->k * payload) ||
	    code_create(&sdr_alloc_system, r->code == REL_CODE_XOR ? "xor" : "rs", &params,
			&b->code))
		rate_die("no such code, or no memory for it");
	b->w.data = data;
	b->w.parity = parity;
	b->w.room = blocks * r->m;
	lose(b);
	check(b);
	for (uint32_t round = 0; round <= b->o.rounds; round++) {
		by_codec(b); /* decoding needs its parity where it was */
		best[2] = fmax(best[2], rate(b, decode));
		best[0] = fmax(best[0], rate(b, by_codec));
		best[1] = fmax(best[1], rate(b, by_code));
	}
	printf("%-3s %3u,%-3u %8u %8u %9.2f %9.2f %6.2f %9.2f\n",
	       r->code == REL_CODE_XOR ? "xor" : "rs", r->k, r->m, payload, depth, best[0], best[1],
	       best[0] / best[1], best[2]);
	fflush(stdout);
	code_destroy(b->code);
}

int main(int argc, char **argv)
{
	static struct bench b = {.o = {.seconds = 0.05, .memory = (size_t)64 << 20, .rounds = 5}};
	struct rng rng;

	rate_options(&b.o, argc, argv);
	codec_init(&b.codec, &sdr_alloc_system);
	b.w.data = aligned_alloc(64, b.o.memory);
	b.w.parity = aligned_alloc(64, b.o.memory);
	b.whole = aligned_alloc(64, b.o.memory);
	b.have = calloc(b.o.memory / 1024, sizeof(*b.have));
	if (!b.w.data || !b.w.parity || !b.whole || !b.have)
		rate_die("out of memory: --memory sets how much, in MiB, three times over");
	rng_init(&rng, 1);
	for (size_t at = 0; at + 8 <= b.o.memory; at += 8) {
		uint64_t word = rng_next(&rng);

		memcpy(b.w.data + at, &word, 8);
	}
	printf("a message of %zu MiB; GB/s of data a core\n", b.o.memory >> 20);
	printf("%-11s %8s %8s %9s %9s %6s %9s\n", "code", "payload", "depth", "encode", "alone",
	       "of it", "decode");
	for (size_t i = 0; i < SDR_ARRAY_LEN(rows); i++)
		for (size_t p = 0; p < SDR_ARRAY_LEN(payloads); p++)
			for (size_t d = 0; d < SDR_ARRAY_LEN(depths); d++)
				measure(&b, &rows[i], payloads[p], depths[d]);
	codec_fini(&b.codec);
	free(b.w.data);
	free(b.w.parity);
	free(b.whole);
	free(b.have);
	return 0;
}

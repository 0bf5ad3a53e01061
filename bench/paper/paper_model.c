// SPDX-License-Identifier: Apache-2.0
/*
 * Answers of the model (src/plan) in the paper's reading, for bench/paper/figures: one
 * question a line on stdin, one line of CSV for each on stdout.
 *
 *	write scheme=sr bytes=134217728 bw=4e11 rtt=0.025 loss=1e-5
 *	allreduce scheme=ec bytes=134217728 bw=4e11 rtt=0.025 loss=1e-3 nodes=4 samples=2000
 *	chunk loss=1e-3 chunk=65536			loss of a chunk, in the column unit_loss
 *	printed bytes=131072 bw=4e11 rtt=0.025 loss=1e-5	the mean as appendix A prints it
 *
 * What is not said takes the default of the table below; of a scheme, plan_defaults().
 * Knows nothing of figures, nor of what the engine does.
 */
#include "plan/plan.h"
#include "plan/sr.h"
#include "plan/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum key {
	BYTES,
	BW,
	RTT,
	LOSS,
	PACKET,
	CHUNK,
	RTO,
	BETA,
	K,
	M,
	NODES,
	SAMPLES,
	SEED,
	QUANTILE,
	KEYS
};

/* Limits are those of the types; the model has tighter ones and says so itself. */
static const struct {
	const char *name;
	double otherwise, min, max;
} keys[KEYS] = {
	[BYTES] = {"bytes", 4096, 1, 1e16},
	[BW] = {"bw", 400e9, 1e3, 1e14},
	[RTT] = {"rtt", 0.025, 1e-6, 1e3},
	[LOSS] = {"loss", 0, 0, 0.999999},
	[PACKET] = {"packet", 4096, 1, 1 << 24},
	[CHUNK] = {"chunk", 4096, 1, 1 << 30},
	[RTO] = {"rto", NAN, 0, 1000},
	[BETA] = {"beta", NAN, 0, 1000},
	[K] = {"k", NAN, 1, 256},
	[M] = {"m", NAN, 0, 256},
	[NODES] = {"nodes", 2, 2, 1024},
	[SAMPLES] = {"samples", 0, 0, 1e7},
	[SEED] = {"seed", 1, 0, 9007199254740992},
	[QUANTILE] = {"quantile", NAN, 0, 1},
};

struct question {
	enum plan_scheme scheme;
	double value[KEYS];
	struct plan_link link;
	struct plan_job job;
	struct plan_params params;
	struct plan_options options;
};

struct answer {
	struct plan_result result;
	double quantile_s;
};

static int parse_scheme(const char *text, enum plan_scheme *out)
{
	for (int i = 0; i < PLAN_SCHEMES; i++) {
		if (strcmp(text, plan_scheme_name((enum plan_scheme)i)) == 0) {
			*out = (enum plan_scheme)i;
			return 0;
		}
	}
	fprintf(stderr, "scheme=%s: choose from sr, sr-nack, ec, ec-xor, hybrid, gbn\n", text);
	return -1;
}

static int parse_value(const char *word, double *value)
{
	const char *text = strchr(word, '=');
	char *end;

	for (int i = 0; text && i < KEYS; i++) {
		if (strncmp(word, keys[i].name, strlen(keys[i].name)) != 0 ||
		    word + strlen(keys[i].name) != text)
			continue;
		value[i] = strtod(text + 1, &end);
		if (end != text + 1 && !*end && value[i] >= keys[i].min && value[i] <= keys[i].max)
			return 0;
		fprintf(stderr, "%s: a number from %g to %g is wanted\n", word, keys[i].min,
			keys[i].max);
		return -1;
	}
	fprintf(stderr, "%s: not a word of this program; see the head of paper_model.c\n", word);
	return -1;
}

static double or (double value, double otherwise)
{
	return isnan(value) ? otherwise : value;
}

static void settle(struct question *q)
{
	const double *v = q->value;

	q->link = (struct plan_link){v[BW], v[RTT], v[LOSS], 1};
	q->job = (struct plan_job){(uint64_t)v[BYTES], (uint32_t)v[PACKET], (uint32_t)v[CHUNK]};
	plan_defaults(&q->link, &q->job, q->scheme, &q->params);
	q->params.rto_rtts = or (v[RTO], q->params.rto_rtts);
	q->params.beta_rtts = or (v[BETA], q->params.beta_rtts);
	q->params.k = (uint32_t) or (v[K], q->params.k);
	q->params.m = (uint32_t) or (v[M], q->params.m);
	q->options = (struct plan_options){
		.reading = PLAN_PAPER, .seed = (uint64_t)v[SEED], .samples = (uint32_t)v[SAMPLES]};
}

/* The words behind the first; 0, or -1 when it has said what is wrong. */
static int parse(char *words, struct question *q)
{
	char *word;

	*q = (struct question){.scheme = PLAN_SR};
	for (int i = 0; i < KEYS; i++)
		q->value[i] = keys[i].otherwise;
	while ((word = strsep(&words, " \t"))) {
		if (!*word)
			continue;
		if (strncmp(word, "scheme=", 7) == 0 ? parse_scheme(word + 7, &q->scheme)
						     : parse_value(word, q->value))
			return -1;
	}
	if (q->value[CHUNK] < q->value[PACKET]) {
		fprintf(stderr, "chunk=%g: at least a packet (%g) is wanted\n", q->value[CHUNK],
			q->value[PACKET]);
		return -1;
	}
	settle(q);
	return 0;
}

static int check(const struct question *q)
{
	struct plan_fault fault;

	if (plan_check(&q->link, &q->job, &q->params, &fault) == 0)
		return 0;
	fprintf(stderr, "%s %g: from %g to %g is wanted%s%s\n", fault.what, fault.value, fault.min,
		fault.max, fault.why ? ": " : "", fault.why ? fault.why : "");
	return -1;
}

/* Any quantile, where there is a closed form for writes. */
static int ask_quantile(const struct question *q, double *out)
{
	struct units u;
	struct ec_model ec;
	struct ec_dist dist;
	struct sr_model sr;

	units_init(&u, &q->link, &q->job);
	if (!units_coded(q->scheme)) {
		sr = units_sr(&u, &q->params);
		*out = (sr_quantile(&sr, q->value[QUANTILE]) + u.rtt) * u.t_s;
		return 0;
	}
	ec = units_ec(&u, &q->params);
	if (ec_dist_init(&dist, &ec, &sdr_alloc_system))
		return -1;
	*out = ec_quantile(&dist, q->value[QUANTILE]) * u.t_s;
	ec_dist_fini(&dist, &sdr_alloc_system);
	return 0;
}

static int ask_write(const struct question *q, struct answer *a)
{
	if (plan_estimate(&q->link, &q->job, &q->params, &q->options, &sdr_alloc_system,
			  &a->result))
		return -1;
	if (isnan(q->value[QUANTILE]) || a->result.samples)
		return 0;
	return ask_quantile(q, &a->quantile_s);
}

static int ask_allreduce(const struct question *q, struct answer *a)
{
	return plan_allreduce(&q->link, &q->job, &q->params, (uint32_t)q->value[NODES], &q->options,
			      &sdr_alloc_system, &a->result);
}

/* Also of chunks that no scheme is worth a plan for. */
static int ask_chunk(const struct question *q, struct answer *a)
{
	a->result.unit_loss =
		plan_chunk_loss(q->link.loss, 1, q->job.chunk_bytes / q->job.packet_bytes);
	return 0;
}

/* P(max <= y) without the ceiling of appendix A: P(X_i >= y) = loss^((y - i) / cost). */
static double printed_cdf(const struct sr_model *sr, double y)
{
	double rate = -log(sr->loss) / sr->cost, sum = 0;

	for (uint64_t i = 1; i <= sr->n; i++)
		sum += log1p(-exp(-rate * (y - (double)i)));
	return exp(sum);
}

/* The tail sum by Simpson's rule behind the last unit; before it nothing has ended. */
static int ask_printed(const struct question *q, struct answer *a)
{
	enum { STEPS = 600 };
	struct units u;
	struct sr_model sr;
	double sum = 1, y, step, n;

	units_init(&u, &q->link, &q->job);
	sr = units_sr(&u, &q->params);
	units_facts(&u, &q->link, &a->result);
	n = (double)sr.n;
	if (sr.loss <= 0 || sr.n > 1 << 17)
		return -1;
	step = (log(n) + 35) * sr.cost / -log(sr.loss) / STEPS;
	for (int i = 1; i < STEPS; i++) {
		y = n + i * step;
		sum += (i % 2 ? 4 : 2) * (1 - printed_cdf(&sr, y));
	}
	a->result.mean_s = (n + sum * step / 3 + u.rtt) * u.t_s;
	return 0;
}

static const struct {
	const char *word;
	int (*ask)(const struct question *, struct answer *);
	bool checked;
} kinds[] = {
	{"write", ask_write, true},
	{"allreduce", ask_allreduce, true},
	{"chunk", ask_chunk, false},
	{"printed", ask_printed, true},
};

static int answer(char *line)
{
	struct question q;
	struct answer a = {.quantile_s = NAN};
	const struct plan_result *r = &a.result;
	char *rest = line, *word = strsep(&rest, " \t");
	size_t i = 0, count = sizeof(kinds) / sizeof(kinds[0]);

	while (i < count && strcmp(word, kinds[i].word) != 0)
		i++;
	if (i == count) {
		fprintf(stderr, "%s: choose from write, allreduce, chunk, printed\n", word);
		return -1;
	}
	if (parse(rest ? rest : line + strlen(line), &q) || (kinds[i].checked && check(&q)))
		return -1;
	if (kinds[i].ask(&q, &a)) {
		fprintf(stderr, "%s: no answer: out of memory, or more than it can take\n", word);
		return -1;
	}
	printf("%.12g,%.12g,%.12g,%.12g,%.12g,%.12g,%.12g,%.12g,%.12g,%u\n", r->mean_s, r->stderr_s,
	       r->p50_s, r->p99_s, r->p999_s, a.quantile_s, r->lossless_s, r->unit_loss,
	       r->p_fallback, r->samples);
	return 0;
}

int main(int argc, char **argv)
{
	char line[1024];
	int number = 0;

	(void)argv;
	if (argc > 1) {
		fprintf(stderr, "usage: paper_model < QUESTIONS; see the head of paper_model.c\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
	puts("mean_s,stderr_s,p50_s,p99_s,p999_s,quantile_s,lossless_s,unit_loss,p_fallback,"
	     "samples");
	while (fgets(line, sizeof(line), stdin)) {
		number++;
		line[strcspn(line, "\n")] = 0;
		if (*line && answer(line)) {
			fprintf(stderr, "paper_model: line %d\n", number);
			return 2;
		}
	}
	return ferror(stdin) || ferror(stdout) ? 1 : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Erasure codes in the paper's reading with independent losses (section 4.2.2, 4.2.3,
 * appendix B): all units and parity go out; a receiver that cannot decode every block waits
 * beta round trips, names the failed blocks, and those go again whole by selective repeat.
 * Exact where the paper prints a lower bound. Times in units of t.
 */
#ifndef SDR_PLAN_EC_H
#define SDR_PLAN_EC_H

#include "base/alloc.h"
#include "base/rng.h"

#include <stdbool.h>
#include <stdint.h>

struct ec_code {
	uint32_t k, m;
	bool xor_groups;
};

struct ec_model {
	uint64_t n;
	struct ec_code code;
	double loss;
	double rtt;  /* round trip in units */
	double cost; /* of a loss in the SR of failed blocks, O / t */
	double beta; /* round trips */
};

/* P(a block of k + m cannot be decoded). */
double ec_block_fail(const struct ec_code *code, double loss);
/* Parity units of n: m for each block, also for a last, shorter one (the paper: n * m / k). */
uint64_t ec_parity(const struct ec_code *code, uint64_t n);

/*
 * How many units have to go again, as weights. Blocks are k units; the last may be shorter.
 * Above 512 likely numbers of failed blocks each
 * weight stands for a stretch of them.
 */
struct ec_dist {
	const struct ec_model *model;
	double none; /* P(no block failed) ... */
	double any;  /* ... and 1 - none, without cancellation */
	uint32_t count;
	struct ec_again {
		double weight;
		uint64_t units;
	} * again;
};

/* 0 or -ENOMEM; free with ec_dist_fini. */
int ec_dist_init(struct ec_dist *d, const struct ec_model *model, const struct sdr_alloc *alloc);
void ec_dist_fini(struct ec_dist *d, const struct sdr_alloc *alloc);
/* 0 or -ENOMEM. */
int ec_mean(const struct ec_dist *d, const struct sdr_alloc *alloc, double *out);
double ec_quantile(const struct ec_dist *d, double q);
double ec_draw(const struct ec_dist *d, struct rng *rng);
/* Mean units sent again, resends included. */
double ec_resent(const struct ec_dist *d);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Test model of a path in virtual time: random loss, a bottleneck with a queue, a delay,
 * and an acknowledging receiver as rel/ has it (ACKs in turns, rate samples, losses told a
 * little later). Drives one struct cc.
 */
#ifndef SDR_CC_PATH_H
#define SDR_CC_PATH_H

#include "base/rng.h"
#include "cc/cc.h"

#define PATH_PAYLOAD 1436u

struct path_config {
	double rate_bps;
	uint64_t rtt_ns;
	double loss;
	double queue_s;	   /* of the bottleneck, at its first rate; 0 = 1 RTT but 5 ms at least */
	uint64_t noise_ns; /* each ACK is late by up to this (the host's scheduling) */
	double host_bps;   /* the receiving host takes no more; 0 = any */
	double app_bps;	   /* the application offers no more; 0 = any */
	uint64_t seed;
};

struct path;

struct path *path_new(const struct path_config *config, struct cc *cc);
void path_free(struct path *p);
/* Lets time pass; changes of the path take effect at once. */
void path_run(struct path *p, uint64_t ns);
void path_set_rate(struct path *p, double bps);
void path_set_loss(struct path *p, double loss);
void path_set_rtt(struct path *p, uint64_t ns);
void path_set_app(struct path *p, double bps);

/* Since the last call. */
struct path_stats {
	double delivered_bps;
	double mean_queue_s, max_queue_s;
	double sent_bps;
	double lost; /* fraction */
};
struct path_stats path_take(struct path *p);

#endif

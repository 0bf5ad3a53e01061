/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two SDK contexts over a simulated link, connected, and a pump that runs both in
 * virtual time until a condition holds. For tests of everything above the fabric.
 */
#ifndef TESTS_SDK_PAIR_H
#define TESTS_SDK_PAIR_H

#include <errno.h>
#include <sdr/sdr.h>
#include <sdr/sim.h>
#include <stdbool.h>

#define MS 1000000ull
#define SEC 1000000000ull

struct pair {
	struct sdr_sim *sim;
	struct sdr_ctx *ctx[2];
	struct sdr_qp *qp[2];
	struct sdr_mr *mr[2]; /* good for any memory: a simulated device does not ask */
};

/* What the next pairs' devices are; NULL: "udp". */
extern const struct sdr_sim_device *pair_device;
/* Those that tests of everything run on. NULL ends the list. */
extern const struct sdr_sim_device *const pair_devices[];
bool pair_is_rocev2(void);
/* The next pairs' worlds carry no payload. */
extern bool pair_payload_off;

/* Clean 10 ms links of 10 Gbit/s; qp attributes may be NULL. */
void pair_open(struct pair *p, uint64_t seed, const struct sdr_qp_attr *attr);
void pair_link(struct pair *p, const struct sdr_sim_link *forth, const struct sdr_sim_link *back);
void pair_connect(struct pair *p);
void pair_close(struct pair *p);
/* Runs until done(arg) or for `ns` of virtual time; returns whether done. */
bool pair_run(struct pair *p, bool (*done)(void *arg), void *arg, uint64_t ns);
bool pair_never(void *arg);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two reliable connections joined by simulated links, driven in virtual time. What the
 * tests of tests/conn/ share. Knows nothing of what is checked.
 */
#ifndef TESTS_CONN_PAIR_H
#define TESTS_CONN_PAIR_H

#include <sdr/conn.h>
#include <sdr/sim.h>
#include <stdbool.h>

#define MS UINT64_C(1000000)
#define SEC UINT64_C(1000000000)

struct pair {
	struct sdr_sim *sim;
	int host[2];
	struct sdr_ctx *ctx[2];
	struct sdr_net *net[2];
	struct sdr_conn *conn[2];
	struct sdr_mr *mr[2]; /* good for any memory */
	uint64_t steps;
	/* Events seen, by type and end. */
	unsigned int events[2][16];
	int status[2]; /* of the last FAILED or DEAD */
	char text[2][256];
	/* Called for each completion; end 0 or 1. */
	void (*on_completion)(void *arg, int end, const struct sdr_completion *c);
	void *arg;
};

/* What the hosts' devices are from now on; NULL: sockets. */
extern const struct sdr_sim_device *pair_device;
/* The worlds of the next pairs have no payload. */
extern bool pair_payload_off;
/* If not NULL: called with each end of the next pairs, when its blob has been taken. */
extern void (*pair_offered)(struct sdr_conn *conn, int end);
/*
 * RoCEv2 to the letter, received by software; and by RDMA NICs, which tell no PSN and nothing of
 * late packets. RDMA devices have a path MTU of 4096.
 */
extern const struct sdr_sim_device pair_roce, pair_nic;

/* Fails the running test on any error. Link: both ways. */
void pair_open(struct pair *p, uint64_t seed, const struct sdr_sim_link *link,
	       const struct sdr_conn_attr *attr0, const struct sdr_conn_attr *attr1);
void pair_link(struct pair *p, const struct sdr_sim_link *link);
void pair_connect(struct pair *p, const struct sdr_conn_attr *attr0,
		  const struct sdr_conn_attr *attr1);
uint64_t pair_now(const struct pair *p);
/* One step: progress of both, completions and events taken, the clock moved. */
void pair_step(struct pair *p, uint64_t limit_ns);
/* Until the clock says so. */
void pair_run(struct pair *p, uint64_t until_ns);
void pair_close(struct pair *p);

/* Seeds: SDR_SEED=n runs that one only, SDR_SEEDS=n how many. */
uint64_t seed_first(uint64_t fallback);
unsigned int seed_count(unsigned int fallback);
/* Prints how to replay, before an assertion fails. */
void seed_replay(const char *program, uint64_t seed);

#endif

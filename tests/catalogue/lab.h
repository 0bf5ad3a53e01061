/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two hosts, a link and writes between them, in virtual time: what the scenarios of the
 * catalogue are made of. It checks on all of them: each operation ends once; a receive that
 * says 0 has the write's bytes; nothing outside a posted range is written, and nothing inside
 * after its completion; bits of receives only rise; memory is bounded.
 *
 * A check that fails ends the process: each scenario has one of its own (catalogue.c). It
 * deliberately knows nothing of names, ceilings and what a scenario injects.
 */
#ifndef TESTS_CATALOGUE_LAB_H
#define TESTS_CATALOGUE_LAB_H

#include "base/rng.h"
#include "base/units.h"
#include "fabric/sim/sim.h"
#include "tests/conn/pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)
#define KIB (UINT64_C(1) << 10)
#define MBIT UINT64_C(1000000)
#define GBIT UINT64_C(1000000000)
#define LAB_FLOWS 80u
#define LAB_PAYLOAD 1436u
#define LAB_IP_BYTES 1500u

struct lab;

/* An operation, and the memory of a receive. */
struct lab_op {
	struct lab_flow *flow;
	uint32_t number;
	bool is_recv, done;
	int status;
	uint64_t done_ns;
	uint8_t *mem; /* a receive's: guard, `size` bytes, guard */
};

/* `n` writes of `size` bytes each, one way, at most `depth` of them in flight. */
struct lab_flow {
	struct lab *lab;
	struct sdr_conn *conn[2]; /* of the writer, of the reader */
	int from;		  /* end of the writer */
	uint64_t size;
	uint32_t n, depth;
	bool may_fail;	      /* operations may end with an error */
	uint64_t deadline_ns; /* of each operation from its post on; 0: none */
	uint64_t recv_gap_ns; /* receives are posted no oftener; 0: as soon as there is room */
	uint64_t recv_at_ns;
	uint32_t posted[2], ended[2], good[2]; /* writes, receives */
	uint8_t *src;
	struct lab_op *op[2];
};

struct lab {
	struct pair p;
	struct sim *world; /* below p.sim */
	uint64_t seed;
	double arg[2]; /* the scenario's */
	struct rng rng;
	struct link_attr link[2];  /* 0: from end 0, which connects, to end 1, which listens */
	struct sdr_conn_attr attr; /* of both ends, but for these: */
	bool no_decode[2];
	uint64_t parity_bytes[2];
	bool tell_rtt; /* the handshake tells the round trip, as TCP would: trains are sent */
	struct lab_flow flow[LAB_FLOWS];
	uint32_t nflows;
	uint64_t steps;
	/* Popcounts of receives, by end and slot. */
	struct {
		uint32_t message;
		int64_t bits;
	} seen[2][SDR_MAX_MESSAGES];
	uint64_t heap_base, heap_peak, heap_bound;
	/* What the scenario says: when it began and ended, and the least time by physics. */
	uint64_t start_ns, done_ns;
	double ideal_ns;
	char note[96];
};

/* Both directions alike: rate, round trip; the queue holds a BDP or 64 packets. */
void lab_line(struct lab *l, uint64_t rate_bps, uint64_t rtt_ns);
/* Makes the world, hosts and contexts; sets both links. Nothing is connected. */
void lab_open(struct lab *l);
/* The links as they are in l->link from now on. */
void lab_relink(struct lab *l);
/* A connection of its own; the first one is p.conn. Runs nothing. */
void lab_connect(struct lab *l, struct sdr_conn *conn[2]);
/* Adds writes from an end on the first connection, or on another one. */
struct lab_flow *lab_flow(struct lab *l, int from, uint32_t n, uint64_t size, uint32_t depth);
struct lab_flow *lab_flow_on(struct lab *l, struct sdr_conn *const conn[2], int from, uint32_t n,
			     uint64_t size, uint32_t depth);
/* open, connect, and one flow from end 0. */
struct lab_flow *lab_begin(struct lab *l, uint32_t n, uint64_t size, uint32_t depth);
/* Posts what there is room for, and one step. */
void lab_step(struct lab *l, uint64_t limit_ns);
void lab_run(struct lab *l, uint64_t until_ns);
bool lab_is_done(const struct lab *l);
/* Until all flows have ended, or fails after limit_ns; sets done_ns. */
void lab_finish(struct lab *l, uint64_t limit_ns);
/* Time for what is late; then all that was received is as it was. Closes, and all is freed. */
void lab_close(struct lab *l);
/* The same where a connection is not alive at the end. */
void lab_drop(struct lab *l);

/* Payload bit/s that the writer may send: its provisioned rate, or the link's share. */
double lab_rate_bps(const struct lab *l, int from);
double lab_rtt_ns(const struct lab *l);
/*
 * The least time: a round trip for the grant, the bytes with what is lost of them, a round
 * trip until the last one is acknowledged; and one more where something of the last round trip is
 * lost, bursts of so many packets taken.
 */
double lab_ideal_ns(const struct lab *l, int from, uint64_t bytes, double loss, double burst);
uint64_t lab_counter(const struct lab *l, int end, enum sdr_counter which);
struct sdr_conn_info lab_info(const struct lab *l, int end);
uint64_t lab_now(const struct lab *l);

#endif

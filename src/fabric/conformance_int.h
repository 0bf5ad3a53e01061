/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The suite's fixture: two connected ends, guarded buffers, and what they have seen.
 * Start at conformance.h.
 */
#ifndef SDR_FABRIC_CONFORMANCE_INT_H
#define SDR_FABRIC_CONFORMANCE_INT_H

#include "base/bits.h"
#include "base/rng.h"
#include "base/units.h"
#include "fabric/conformance.h"
#include "rx/rx.h"
#include "sdr/counters.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define CF_CHANNELS 2u
#define CF_SLOTS 16u /* rocev2: the messages agreed */
#define CF_PATIENCE_NS (2 * NS_PER_S)
#define CF_CTRL_LOG 64u

/* Who is who. */
enum { CF_A, CF_B };

struct cf_ctrl {
	uint32_t channel, path, psn, len;
	uint64_t age_ns;
	uint8_t data[FABRIC_CTRL_MAX];
};

struct cf_end {
	struct fabric *f;
	struct fabric_caps caps;
	struct fabric_qp *qp;
	struct fabric_local local;
	struct rx_table table;
	struct rx_slot *slots;
	struct rx_worker *workers;
	/* Events so far. */
	unsigned int ready, late, writable;
	uint32_t late_message;
	struct cf_ctrl *ctrl; /* the last CF_CTRL_LOG of them */
	unsigned int nctrl;
};

struct cf {
	const struct conformance_env *env;
	struct cf_end end[2];
	uint32_t payload; /* agreed */
	uint32_t generations, imm_frags;
	/* What the bindings gave, for the sender: by end and message. */
	struct fabric_key key[2][CF_SLOTS * FABRIC_MAX_GENERATIONS];
	struct rng rng;
};

/* Memory whose last byte is followed by a page that faults, and that a canary precedes. */
struct cf_mem {
	uint8_t *map, *base;
	size_t map_len, len;
};

void cf_mem_make(struct cf_mem *m, size_t len);
void cf_mem_free(struct cf_mem *m); /* checks the canary */
void cf_mem_check(const struct cf_mem *m);
void cf_random(struct cf *cf, void *buf, size_t len);

/* A bound receive. */
struct cf_recv {
	struct cf_mem mem;
	uint64_t *words;
	uint32_t message, npkts;
	struct cf_end *end;
};

void cf_recv_make(struct cf *cf, struct cf_recv *r, uint32_t message, size_t len);
/* Binds memory that is there already under another message. */
void cf_recv_again(struct cf *cf, struct cf_recv *r, uint32_t message);
void cf_recv_fence(struct cf *cf, const struct cf_recv *r);
void cf_recv_free(struct cf *cf, struct cf_recv *r); /* fences first */
/* How many packets have arrived. */
uint32_t cf_recv_count(const struct cf_recv *r);
bool cf_recv_has(const struct cf_recv *r, uint32_t first, uint32_t n);

/* One step: time, and the events of both ends. */
void cf_pump(struct cf *cf);
typedef bool cf_pred(void *arg);
/* False where it did not come true in CF_PATIENCE_NS. */
bool cf_until(struct cf *cf, cf_pred *pred, void *arg);
/* Until nothing can be on its way any more. */
void cf_settle(struct cf *cf);

/* The key of a message that goes to an end. */
static inline struct fabric_key *cf_key(struct cf *cf, int to, uint32_t message)
{
	return &cf->key[to][message % SDR_ARRAY_LEN(cf->key[to])];
}

/* Late packets leave a trace at this end. */
static inline bool cf_sees_late(const struct cf_end *end)
{
	return !(end->caps.flags & FABRIC_CAP_SILENT_LATE);
}

/* The PSNs of packets are told at this end: a NIC tells none, so nobody does in rocev2. */
static inline bool cf_sees_psn(const struct cf_end *end)
{
	return end->caps.mode == WIRE_SDR;
}

/* Posts all of it, however often it has to ask. */
void cf_post(struct cf *cf, struct fabric_write *w);
/* Describes packets [first, first + n) of a message of len bytes at base, from A to B. */
struct fabric_write cf_write(struct cf *cf, uint32_t message, const void *base, size_t len,
			     uint32_t first, uint32_t n);
/* Posts a whole message in runs of `run`, channels in turn, and waits until it is there. */
void cf_send(struct cf *cf, const struct cf_recv *r, uint32_t message, const void *base, size_t len,
	     uint32_t run);

/* Counters of an end's device, and a channel's facts. */
struct cf_counts {
	uint64_t ctr[SDR_CTR_COUNT];
	struct fabric_channel_facts ch[CF_CHANNELS];
};
void cf_counts_get(const struct cf_end *end, struct cf_counts *out);

int cf_setup(void **state);
int cf_teardown(void **state);

extern const struct CMUnitTest cf_tests_write[], cf_tests_hostile[], cf_tests_fence[];
extern const size_t cf_ntests_write, cf_ntests_hostile, cf_ntests_fence;

#define CF_TEST(name) cmocka_unit_test_setup_teardown(name, cf_setup, cf_teardown)

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What the harness's files share: pair.c is the run, pair_code.c what is coded about it. */
#ifndef SDR_REL_PAIR_PRIV_H
#define SDR_REL_PAIR_PRIV_H

#include "base/alloc_failing.h"
#include "base/bits.h"
#include "code/layout.h"
#include "rel/pair.h"

enum pair_kind { PAIR_DATA, PAIR_ACK, PAIR_WRITE };

struct pair_event {
	struct heap_node node;
	enum pair_kind kind;
	bool parity;
	uint32_t message, first, channel, psn;
	uint64_t bits;			    /* of the train, packets that arrive */
	uint64_t sent_ns;		    /* it left */
	uint64_t took_ns[REL_MAX_CHANNELS]; /* ACK: the newest packet of each channel, one way */
	int len;
	uint8_t body[];
};

/* The truth about a message's packets. */
struct pair_msg {
	uint32_t npkts;
	uint64_t *words; /* at the receiver */
	uint64_t *sent_ns;
	uint8_t *lost; /* was the last transmission */
	uint8_t *times;
	bool complete;
	struct rel_coding coding; /* code REL_CODE_NONE: none */
	struct code_layout layout;
	uint64_t *parity;     /* words of the parity message, at the receiver */
	uint8_t *parity_sent; /* 0, 1, or 2: and it was lost */
	uint32_t parity_pkts; /* that went out */
};

struct pair_facts {
	uint64_t received, duplicates;
	uint32_t newest; /* PSN */
	uint32_t message, packet;
	bool valid;
	uint64_t arrived_ns, sent_ns;
};

struct pair {
	const struct pair_config *c;
	struct pair_result *out;
	struct rng rng;
	struct heap heap;
	uint64_t now, tie, events, next_send_ns, total_arrived;
	struct rel_tx tx;
	struct rel_rx rx;
	struct pair_msg *msg;
	uint32_t opened, done; /* messages, by index; done: the sender knows */
	uint32_t whole;	       /* in order, at the receiver */
	uint32_t psn[REL_MAX_CHANNELS];
	struct pair_facts facts[REL_MAX_CHANNELS];
	uint64_t fastest_rtt;
	uint32_t turn;
	bool gbn;
	bool bad[REL_MAX_CHANNELS]; /* in a burst of losses */
	struct alloc_failing count; /* of allocations */
	struct sdr_alloc alloc;
};

#define FAIL_IF(p, cond)                                                                           \
	do {                                                                                       \
		if (cond)                                                                          \
			fail_msg("seed %llu: %s at %llu", (unsigned long long)(p)->c->seed, #cond, \
				 (unsigned long long)(p)->now);                                    \
	} while (0)

static inline uint32_t pair_number(const struct pair *p, uint32_t index)
{
	return p->c->first_message + index * PAIR_STEP;
}

static inline uint32_t pair_index(const struct pair *p, uint32_t message)
{
	return (message - p->c->first_message) / PAIR_STEP;
}

struct pair_event *pair_event_new(struct pair *p, enum pair_kind kind, uint64_t when, size_t body);
bool pair_lost_now(struct pair *p, uint32_t channel);
/* Words of the message's data became known to the receiver. */
void pair_feed(struct pair *p, struct pair_msg *m, uint32_t message, uint32_t word);

/* pair_code.c */
/* Picks the message's coding. NULL: it has none. */
const struct rel_coding *pair_code_open(struct pair *p, struct pair_msg *m);
void pair_code_fini(struct pair_msg *m);
/* The receiver learns the code. */
void pair_write_arrives(struct pair *p, uint32_t message);
/* Of a parity range, which bits arrive; keeps the truth. */
uint64_t pair_launch_parity(struct pair *p, const struct rel_range *r, uint32_t channel);
/* A resend that no code needs. */
void pair_judge_resend(struct pair *p, const struct pair_msg *m, uint32_t packet);
/* Bits of a parity train came: those that are new. */
uint64_t pair_parity_arrives(struct pair *p, const struct pair_event *e);
/* Blocks that can be are decoded. */
void pair_decode(struct pair *p);

#endif

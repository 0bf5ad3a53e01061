/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer that lies: a bare fabric QP with the victim's token, so that its packets are sealed well
 * and say anything. The victim is end 1, a connection; the liar stands for its peer, on host 0.
 * Knows nothing of which lies.
 */
#ifndef TESTS_CATALOGUE_LIAR_H
#define TESTS_CATALOGUE_LIAR_H

#include "catalogue.h"

#include "conn/internal.h"

struct liar {
	struct lab *l;
	struct fabric *f;
	struct fabric_qp *qp;
	struct fabric_local local;
	uint64_t token, number;
	uint64_t heard_bytes, said_bytes, heard_data;
	bool mute;	    /* answers no PING */
	uint32_t start_psn; /* of what the victim sends */
};

/* Both are there; the victim has the attributes and offers what it offers itself. */
void liar_open(struct lab *l, struct liar *v);
void liar_run(struct liar *v, uint64_t ns);
/* Until the victim is connected. */
void liar_up(struct liar *v);
void liar_close(struct lab *l, struct liar *v);
/* A control message. */
void liar_say(struct liar *v, uint8_t type, const void *body, size_t len);
/* Grants the first n messages of the victim, of so many bytes each; every second one of `odd`
 * bytes, where that is not 0. */
void liar_grant(struct liar *v, uint32_t n, uint64_t length, uint64_t odd);
/* `count` packets of a message from an offset on, the last one of so many bytes. */
void liar_throw(struct liar *v, uint32_t message, uint64_t offset, const uint8_t *bytes,
		uint32_t last, uint32_t count);
/* The writes of the victim to the liar: flow with nobody at the other end. */
struct lab_flow *liar_victim_writes(struct lab *l, uint32_t n, uint64_t size);
/* What the victim's sender found to be untrue. */
uint64_t liar_lies(const struct lab *l);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fixture of the tests that need RDMA devices: two of them that reach each other, and a
 * QP between them. Devices are named by SDR_VM_DEV_A and SDR_VM_DEV_B (rxe0 and rxe1 where
 * these are not set); without such devices a test program ends with 77.
 */
#ifndef SDR_FABRIC_VERBS_TEST_UTIL_H
#define SDR_FABRIC_VERBS_TEST_UTIL_H

#include "fabric/verbs/verbs_int.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define TU_SLOTS 16u
#define TU_PATIENCE_NS UINT64_C(5000000000)

/* Device of end 0 or 1. */
const char *tu_device(int end);
/* True where both devices can be used; else it says why not. */
bool tu_here(void);

struct tu_end {
	struct fabric *f;
	struct fabric_qp *qp;
	struct rx_table table;
	struct rx_slot *slots;
	struct rx_worker *worker;
	unsigned int ready, writable, ctrl;
};

struct tu_pair {
	struct tu_end end[2];
	uint32_t payload;
};

/* Opens both with the same attributes (device and addresses are filled in), and connects. */
void tu_pair_open(struct tu_pair *p, struct verbs_fabric_attr attr);
void tu_pair_close(struct tu_pair *p);

struct verbs_fabric *tu_fabric(const struct tu_pair *p, int end);
struct verbs_qp *tu_qp(const struct tu_pair *p, int end);

/* Takes events of an end. */
void tu_poll(struct tu_end *end);
/* Binds len bytes at mem on end 1. words: rx_bind_words() of them. */
struct fabric_key tu_bind(struct tu_pair *p, uint32_t message, void *mem, size_t len,
			  uint64_t *words, const void *mr);
void tu_fence(struct tu_pair *p, uint32_t message);
/* A run from end 0. */
struct fabric_write tu_write(const struct tu_pair *p, uint32_t message, const void *base,
			     uint32_t first, uint32_t count, struct fabric_key key);
/* Posts it, polling as long as it is not taken. */
void tu_post(struct tu_pair *p, struct fabric_write *w);
/* How many of a message's packets [0, n) are there. */
uint32_t tu_count(const struct tu_pair *p, uint32_t message, uint32_t n);
/* Polls both ends until that many are; false where it takes too long. */
bool tu_arrive(struct tu_pair *p, uint32_t message, uint32_t n);

void tu_fill(uint8_t *mem, size_t len, uint32_t seed);
/* Writes a packet again and again until it is there. */
void tu_carries(struct tu_pair *p, uint32_t message);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two devices of this host, by name and address, and QPs or connections between them.
 * Real time: everything waits with a limit, nothing asserts how long it took.
 */
#ifndef TESTS_DEVICE_PAIR_H
#define TESTS_DEVICE_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <sdr/conn.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000ull
#define SEC 1000000000ull

struct device {
	const char *name, *addr;
};

/* From the command line. [0] opens channels, [1] listens. */
extern struct device devices[2];

struct qp_pair {
	struct sdr_ctx *ctx[2];
	struct sdr_qp *qp[2];
	struct sdr_qp_info info[2];
};

/* Two contexts and a connected pair of QPs; attr may be NULL. */
void qp_pair_open(struct qp_pair *p, const struct sdr_qp_attr *attr);
void qp_pair_close(struct qp_pair *p);
/* Makes progress at both ends until done(arg); false where it took more than 20 s. */
bool qp_pair_run(struct qp_pair *p, bool (*done)(void *arg), void *arg);
/* Makes progress for a while, so that what is on its way arrives. */
void qp_pair_settle(struct qp_pair *p);

/* The device named in `which` with `listen`; skips the program where it cannot be had. */
struct sdr_ctx_attr device_attr(int which, char *why, size_t why_len);

void pattern(uint8_t *mem, size_t len, uint32_t seed);

int device_sdk_tests(void);
int device_conn_tests(void);

#endif

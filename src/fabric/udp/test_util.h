/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ends over loopback for the tests of fabric/udp: open, connect, transfer and
 * compare. Failures end the test (cmocka).
 */
#ifndef SDR_FABRIC_UDP_TEST_UTIL_H
#define SDR_FABRIC_UDP_TEST_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fabric/udp/udp.h"
#include "sdr/counters.h"
#include <sys/socket.h>

#define TEST_SLOTS 16u
#define TEST_EVENTS 32u
#define TEST_PATIENCE_NS UINT64_C(20000000000) /* a hang, not a slow machine */

struct end {
	struct fabric *f;
	struct fabric_qp *qp;
	bool rocev2;
	uint32_t channels;
	struct rx_slot *slots;
	struct rx_worker *workers;
	struct rx_table table;
	struct fabric_event ev[TEST_EVENTS];
	unsigned int seen[8]; /* events, by type */
	struct fabric_event last[8];
};

void end_open(struct end *e, const struct udp_fabric_attr *attr, uint32_t channels);
void end_close(struct end *e);
/* One poll; counts what came. */
void end_poll(struct end *e);
uint64_t end_counter(const struct end *e, enum sdr_counter which);
/* A socket address on loopback. */
struct sockaddr_storage loopback(int family, uint16_t port);
/*
 * Exchanges numbers; the active end opens channels and greets until all are up. rocev2: each
 * end is where its device says, `family` is ignored.
 */
void pair_connect(struct end *active, struct end *passive, int family);
/*
 * Sends `bytes` as one message, in turns over the channels, and compares. rocev2: at least 16
 * packets, so that they carry the whole immediate.
 */
void transfer(struct end *from, struct end *to, uint32_t message, size_t bytes, uint32_t payload,
	      uint32_t channels);
uint64_t test_now_ns(void);

#endif

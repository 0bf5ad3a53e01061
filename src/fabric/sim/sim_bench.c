/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets per second of real time through post, link and delivery, on one core.
 *	sim_bench [payload bytes] [delay in ns of a 400 Gbit/s link] [loss]
 */
#include "base/bits.h"
#include "base/units.h"
#include "fabric/sim/sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MESSAGE_PKTS 16384u
#define SLOTS 1024u

struct bench {
	struct sim *sim;
	struct fabric *f[2];
	struct fabric_qp *qp[2];
	struct rx_table table;
	struct rx_slot *slots;
	struct rx_worker *worker;
	uint64_t *words;
	size_t nwords;
	uint8_t *from, *to;
	uint32_t payload;
};

static void must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "sim_bench: %s failed\n", what);
	exit(1);
}

static void set_up(struct bench *b, const struct link_attr *attr)
{
	struct fabric_local local[2];

	must(!sim_create(1, &sdr_alloc_system, &b->sim), "sim_create");
	b->slots = aligned_alloc(64, SLOTS * sizeof(*b->slots));
	b->worker = aligned_alloc(64, sizeof(*b->worker));
	rx_worker_init(b->worker);
	must(!rx_table_init(&b->table, b->slots, SLOTS, UINT32_MAX, b->worker, 1, RX_SINGLE_THREAD),
	     "rx_table_init");
	for (int i = 0; i < 2; i++) {
		struct sim_fabric_attr fattr = {.max_payload = b->payload};
		struct fabric_qp_attr qattr = {.channels = 1, .table = i ? &b->table : NULL};

		must(sim_host_add(b->sim) == i, "sim_host_add");
		must(!sim_fabric_open(b->sim, i, &fattr, &b->f[i]), "sim_fabric_open");
		must(!b->f[i]->ops->qp_create(b->f[i], &qattr, &b->qp[i]), "qp_create");
		b->f[i]->ops->qp_local(b->qp[i], &local[i]);
	}
	for (int i = 0; i < 2; i++) {
		struct fabric_peer peer = {.qpn = local[!i].qpn,
					   .token = local[!i].token,
					   .payload_bytes = b->payload,
					   .active = i == 0};

		sim_fabric_addr(b->f[!i], &peer.addr);
		must(!b->f[i]->ops->qp_connect(b->qp[i], &peer), "qp_connect");
		must(!sim_link_set(b->sim, i, !i, SIM_CHANNEL_ALL, attr), "sim_link_set");
	}
	b->from = calloc(MESSAGE_PKTS, b->payload);
	b->to = calloc(MESSAGE_PKTS, b->payload);
	b->nwords = rx_bind_words((uint64_t)MESSAGE_PKTS * b->payload, b->payload, 6);
	b->words = calloc(SLOTS * b->nwords, sizeof(*b->words));
	must(b->from && b->to && b->words, "calloc");
}

static void bind_message(struct bench *b, uint32_t message)
{
	struct fabric_bind bind = {.rx = {.base = b->to,
					  .len = (uint64_t)MESSAGE_PKTS * b->payload,
					  .payload = b->payload,
					  .chunk_shift = 6,
					  .imm_frags = 1,
					  .words = b->words + message % SLOTS * b->nwords}};

	if (message >= SLOTS)
		b->f[1]->ops->fence_begin(b->qp[1], message - SLOTS);
	must(!b->f[1]->ops->bind(b->qp[1], message, &bind, &(struct fabric_key){0}), "bind");
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	struct bench b = {.payload = argc > 1 ? (uint32_t)atoi(argv[1]) : 1436};
	struct link_attr attr = {.rate_bps = 400000000000,
				 .delay_ns = argc > 2 ? (uint64_t)atoll(argv[2]) : 10000,
				 .loss = link_ge_iid(argc > 3 ? atof(argv[3]) : 0)};
	struct link_counters c;
	struct fabric_event ev;
	uint64_t sent = 0;
	double start, took;

	set_up(&b, &attr);
	start = seconds();
	for (uint32_t message = 0; seconds() - start < 3; message++) {
		bind_message(&b, message);
		for (uint32_t first = 0; first < MESSAGE_PKTS; first += FABRIC_RUN_MAX) {
			struct fabric_write w = {.qp = b.qp[0],
						 .message = message,
						 .addr = b.from + (size_t)first * b.payload,
						 .offset = (uint64_t)first * b.payload,
						 .payload_bytes = b.payload,
						 .last_bytes = b.payload,
						 .count = FABRIC_RUN_MAX};
			uint64_t wire_bytes = (b.payload + 64u) * (uint64_t)FABRIC_RUN_MAX;

			must(b.f[0]->ops->post(b.f[0], &w, 1) == 1, "post");
			sent += FABRIC_RUN_MAX;
			sim_advance(b.sim, sim_now(b.sim) + wire_bytes * 8 / 400);
			while (b.f[1]->ops->poll(b.f[1], &ev, 1) > 0)
				;
		}
	}
	took = seconds() - start;
	(void)sim_link_counters(b.sim, 0, 1, SIM_CHANNEL_ALL, &c);
	printf("%u bytes, %.0f us, loss %g: %.2f M packets/s, %.1f Gbit/s, %llu lost\n", b.payload,
	       (double)attr.delay_ns / 1e3, link_ge_ratio(&attr.loss), (double)sent / took / 1e6,
	       (double)sent * b.payload * 8 / took / 1e9,
	       (unsigned long long)c.lost_pkts[LINK_LOST_RANDOM]);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receive path alone: key -> slot -> offset -> index -> admit, claim, commit, with and
 * without the copy of a packet from a cache-hot buffer. No socket, no parser, no checksum:
 * the ceiling of everything that is built on rx/.
 *
 * Messages take turns over all slots, so that slot lines and bitmap lines move through the
 * caches as they do in use. Each message is bound once a round, outside the measured time.
 *
 *	rx_bench [seconds per row, default 0.5 [only the nth row, from 0]]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rx/rx.h"

#define PAYLOAD 1436u
#define SLOTS 64u
#define CHUNK_SHIFT 4
#define MAX_WORKERS 2

struct row {
	const char *name;
	uint32_t pkts;	/* in a message */
	uint32_t run;	/* packets handed over at once */
	uint32_t batch; /* packets between enter and leave */
	uint32_t workers;
	bool single; /* RX_SINGLE_THREAD */
	bool copy;
};

struct bench {
	const struct row *row;
	struct rx_table table;
	struct rx_worker workers[MAX_WORKERS];
	struct rx_slot *slots;
	uint64_t *words;
	uint8_t *memory;
	pthread_barrier_t barrier;
	double deadline_s;
	double busy_s;
	double best_s; /* a round's best time: the machine may be shared */
	_Atomic uint64_t placed;
	bool stop;
};

struct thread_arg {
	struct bench *bench;
	uint32_t worker;
};

static uint8_t packet[PAYLOAD];

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void *need(void *p)
{
	if (!p) {
		fprintf(stderr, "rx_bench: out of memory\n");
		exit(1);
	}
	return p;
}

/* One run of packets: everything from the key to the bitmaps. */
static inline uint64_t receive(struct bench *b, struct rx_worker *w, uint32_t key, uint64_t offset,
			       uint32_t count)
{
	struct rx_slot *s;
	uint32_t first;
	uint64_t mask;

	if (rx_enter(&b->table, w, key, &s) != RX_OK ||
	    rx_packet_index(s, w, offset, &first) != RX_OK ||
	    rx_admit(s, w, first, count, PAYLOAD) != RX_OK)
		return 0;
	mask = rx_claim(s, w, first, count, PAYLOAD);
	if (b->row->copy) {
		for (uint32_t i = 0; i < count; i++)
			if (mask >> ((first + i) % 64) & 1)
				memcpy(rx_place(s, first + i), packet, PAYLOAD);
	}
	(void)rx_commit(s, first / 64, mask);
	return mask;
}

/* This worker's share of a round: every nth batch of every message. */
static uint64_t share(struct bench *b, uint32_t worker)
{
	const struct row *row = b->row;
	struct rx_worker *w = &b->workers[worker];
	uint64_t placed = 0;

	for (uint32_t at = worker * row->batch; at < row->pkts; at += row->workers * row->batch) {
		for (uint32_t key = 0; key < SLOTS; key++) {
			uint64_t offset = (uint64_t)at * PAYLOAD;

			for (uint32_t n = 0; n < row->batch; n += row->run) {
				placed += receive(b, w, key, offset, row->run) != 0;
				offset += (uint64_t)row->run * PAYLOAD;
			}
			rx_leave(w);
		}
	}
	return placed * row->run;
}

static void bind_all(struct bench *b)
{
	const struct row *row = b->row;
	uint64_t len = (uint64_t)row->pkts * PAYLOAD;
	size_t nwords = rx_bind_words(len, PAYLOAD, CHUNK_SHIFT);

	for (uint32_t key = 0; key < SLOTS; key++) {
		struct rx_bind bind = {
			.base = b->memory,
			.len = len,
			.payload = PAYLOAD,
			.chunk_shift = CHUNK_SHIFT,
			.imm_frags = 1,
			.words = b->words + key * ((nwords + 7) & ~(size_t)7),
		};

		(void)rx_fence_begin(&b->table, key);
		if (!rx_fence_done(&b->table, key) || rx_bind(&b->table, key, &bind) != RX_OK) {
			fprintf(stderr, "rx_bench: cannot bind\n");
			exit(1);
		}
	}
	for (uint32_t word = 0; word < (SLOTS + 63) / 64; word++)
		(void)rx_dirty_take(&b->table, word);
}

static void *work(void *p)
{
	struct thread_arg *arg = p;
	struct bench *b = arg->bench;

	for (;;) {
		double start = 0;

		if (arg->worker == 0) {
			bind_all(b);
			b->stop = b->busy_s > b->deadline_s;
		}
		pthread_barrier_wait(&b->barrier);
		if (b->stop)
			return NULL;
		start = now_s();
		atomic_fetch_add(&b->placed, share(b, arg->worker));
		pthread_barrier_wait(&b->barrier);
		if (arg->worker == 0) {
			double took = now_s() - start;

			if (b->placed != (uint64_t)b->row->pkts * SLOTS) {
				fprintf(stderr, "rx_bench: packets went missing\n");
				exit(1);
			}
			b->placed = 0;
			b->busy_s += took;
			if (b->best_s == 0 || took < b->best_s)
				b->best_s = took;
		}
	}
}

static void run_row(const struct row *row, double seconds)
{
	struct bench *b = need(calloc(1, sizeof(*b)));
	uint64_t len = (uint64_t)row->pkts * PAYLOAD;
	size_t nwords = rx_bind_words(len, PAYLOAD, CHUNK_SHIFT);
	struct thread_arg args[MAX_WORKERS];
	pthread_t threads[MAX_WORKERS];
	double mpps;

	b->row = row;
	b->deadline_s = seconds;
	b->slots = need(aligned_alloc(64, SLOTS * sizeof(*b->slots)));
	b->words = need(aligned_alloc(64, SLOTS * ((nwords + 8) & ~(size_t)7) * 8));
	b->memory = need(malloc(len));
	memset(b->memory, 0, len);
	for (uint32_t i = 0; i < MAX_WORKERS; i++)
		rx_worker_init(&b->workers[i]);
	if (rx_table_init(&b->table, b->slots, SLOTS, ~0u, b->workers, row->workers,
			  row->single ? RX_SINGLE_THREAD : 0) != RX_OK)
		exit(1);
	pthread_barrier_init(&b->barrier, NULL, row->workers);
	for (uint32_t i = 0; i < row->workers; i++) {
		args[i] = (struct thread_arg){b, i};
		if (pthread_create(&threads[i], NULL, work, &args[i]) != 0)
			exit(1);
	}
	for (uint32_t i = 0; i < row->workers; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&b->barrier);
	mpps = (double)row->pkts * SLOTS / b->best_s / 1e6;
	printf("%-44s %7u %5u %5u %7u %9.1f %8.2f", row->name, row->pkts, row->run, row->batch,
	       row->workers, mpps, 1e3 / mpps);
	if (row->copy)
		printf(" %8.1f", mpps * PAYLOAD * 8 / 1e3);
	printf("\n");
	free(b->slots);
	free(b->words);
	free(b->memory);
	free(b);
}

int main(int argc, char **argv)
{
	static const struct row rows[] = {
		{"one by one, one thread", 4096, 1, 64, 1, true, false},
		{"one by one, one thread, copy", 4096, 1, 64, 1, true, true},
		{"one by one, atomics", 4096, 1, 64, 1, false, false},
		{"one by one, atomics, copy", 4096, 1, 64, 1, false, true},
		{"one by one, alone in its batch, one thread", 4096, 1, 1, 1, true, false},
		{"one by one, alone in its batch, atomics", 4096, 1, 1, 1, false, false},
		{"one by one, messages of 16, one thread", 16, 1, 16, 1, true, false},
		{"runs of 8, one thread", 4096, 8, 64, 1, true, false},
		{"runs of 8, atomics", 4096, 8, 64, 1, false, false},
		{"runs of 64, one thread", 4096, 64, 64, 1, true, false},
		{"runs of 64, one thread, copy", 4096, 64, 64, 1, true, true},
		{"runs of 64, atomics", 4096, 64, 64, 1, false, false},
		{"runs of 64, atomics, copy", 4096, 64, 64, 1, false, true},
		{"trains of 64 in turn, one by one, atomics", 4096, 1, 64, 2, false, false},
		{"trains of 64 in turn, runs, atomics", 4096, 64, 64, 2, false, false},
		{"trains of 64 in turn, runs, atomics, copy", 4096, 64, 64, 2, false, true},
	};
	double seconds = argc > 1 ? atof(argv[1]) : 0.5;

	printf("%u-byte packets, chunks of %u, %u messages in turn; all workers together; best "
	       "round\n",
	       PAYLOAD, 1u << CHUNK_SHIFT, SLOTS);
	printf("%-44s %7s %5s %5s %7s %9s %8s %8s\n", "how", "message", "run", "batch", "workers",
	       "Mpkt/s", "ns/pkt", "Gbit/s");
	for (size_t i = 0; i < SDR_ARRAY_LEN(rows); i++)
		if (argc <= 2 || (size_t)atoi(argv[2]) == i)
			run_row(&rows[i], seconds);
	return 0;
}

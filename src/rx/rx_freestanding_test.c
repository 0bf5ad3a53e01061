/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receive path without any library: this file and rx.c are compiled freestanding, here
 * and for riscv64 (rx_freestanding.sh), and use nothing but each other. No output: the exit
 * status is 0 or the number of the check that failed.
 */
#include "rx/rx.h"

#define SLOTS 4u
#define MAX_PKTS 200u
#define PAYLOAD 5u

static struct rx_table table;
static struct rx_slot slots[SLOTS];
static struct rx_worker worker;
static uint64_t words[32];
static uint8_t memory[MAX_PKTS * PAYLOAD];
static uint8_t have[MAX_PKTS];
static uint64_t seed = 1;

int main(void);

static uint32_t draw(uint32_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((seed >> 33) % n);
}

/* One run from its key on; 0 or the number of a failed check. */
static int receive(uint32_t key, uint32_t first, uint32_t count, uint32_t last_len)
{
	struct rx_slot *s;
	uint32_t index;
	uint64_t mask;

	if (rx_enter(&table, &worker, key, &s) != RX_OK)
		return 10;
	if (rx_packet_index(s, &worker, (uint64_t)first * PAYLOAD, &index) != RX_OK)
		return 11;
	if (index != first || rx_admit(s, &worker, index, count, last_len) != RX_OK)
		return 12;
	mask = rx_claim(s, &worker, index, count, last_len);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t n = i == count - 1 ? last_len : PAYLOAD;
		uint8_t *to = rx_place(s, first + i);

		if ((mask >> ((first + i) % 64) & 1) != !have[first + i])
			return 13;
		for (uint32_t j = 0; j < n; j++)
			to[j] = (uint8_t)(first + i);
		have[first + i] = 1;
	}
	if (mask && rx_commit(s, index / 64, mask) != 0)
		return 14;
	return rx_slot_check(s, true) ? 15 : 0;
}

static bool all_set(const uint64_t *bits, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!(bits[i / 64] >> i % 64 & 1))
			return false;
	return true;
}

static int check_whole(const struct rx_slot *s, uint32_t pkts, uint32_t last_len)
{
	uint64_t bits[8], bytes;
	uint32_t npkts, imm;

	if (!rx_end(s, &npkts, &bytes) || npkts != pkts)
		return 20;
	if (bytes != (uint64_t)(pkts - 1) * PAYLOAD + last_len)
		return 21;
	rx_bits_get(s, 0, npkts, bits);
	if (!all_set(bits, npkts))
		return 22;
	rx_chunks_get(s, 0, ((npkts - 1) >> s->chunk_shift) + 1, bits);
	if (!all_set(bits, ((npkts - 1) >> s->chunk_shift) + 1))
		return 23;
	for (uint64_t at = 0; at < bytes; at++)
		if (memory[at] != (uint8_t)(at / PAYLOAD))
			return 24;
	return rx_imm_get(s, &imm) && imm == 0x89abcdef ? 0 : 25;
}

/* A message of `pkts` packets in random runs, until it is whole; then its slot is fenced. */
static int message(uint32_t key, uint32_t pkts, uint32_t last_len)
{
	struct rx_bind bind = {memory, sizeof(memory), PAYLOAD, (uint8_t)draw(7), 8, 0, words};
	struct rx_slot *s = rx_slot_of(&table, key);
	uint32_t left = pkts * 4;

	if (rx_bind(&table, key, &bind) != RX_OK)
		return 30;
	for (uint32_t i = 0; i < MAX_PKTS; i++)
		have[i] = 0;
	for (uint32_t i = 0; i < 8; i++)
		if (!rx_imm_add(s, i, UINT32_C(0x89abcdef) >> 4 * i))
			return 31;
	while (left > 0) {
		uint32_t first = left > pkts ? draw(pkts) : left - 1;
		uint32_t count = rx_run_fit(first, 1 + draw(9));
		int failed;

		count = (uint32_t)u64_min(count, pkts - first);
		failed = receive(key, first, count, first + count == pkts ? last_len : PAYLOAD);
		if (failed)
			return failed;
		left--;
	}
	if (rx_dirty_take(&table, 0) != UINT64_C(1) << key % SLOTS)
		return 32;
	if (rx_fence_begin(&table, key) != RX_OK || rx_fence_done(&table, key))
		return 33;
	rx_leave(&worker);
	if (!rx_fence_done(&table, key) || rx_enter(&table, &worker, key, &s) != RX_LATE)
		return 34;
	return check_whole(s = rx_slot_of(&table, key), pkts, last_len);
}

int main(void)
{
	rx_worker_init(&worker);
	for (uint32_t flags = 0; flags <= RX_SINGLE_THREAD; flags++) {
		if (rx_table_init(&table, slots, SLOTS, ~0u, &worker, 1, flags) != RX_OK)
			return 1;
		for (uint32_t pkts = 1; pkts <= MAX_PKTS; pkts++) {
			uint32_t last_len = pkts == MAX_PKTS ? PAYLOAD : draw(PAYLOAD);
			int failed = message(pkts, pkts, last_len);

			if (failed)
				return failed;
		}
	}
	return worker.duplicate > 0 ? 0 : 2;
}

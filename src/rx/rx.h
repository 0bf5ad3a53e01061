/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receive path: what a NIC's data-path thread would run. Message slots, their
 * generations, and two bitmaps for each message: one bit a packet, one bit a chunk.
 *
 * Lock-free and freestanding: no libc, no clock, no allocation; it also builds for
 * riscv64. It knows nothing of wire formats, sockets, acknowledgements or codes: it
 * sees {message key, byte offset or packet index, length, immediate part}, which is
 * what both wire modes decode to.
 *
 * Two look-ups stay apart: key -> memory range (base, length, payload: rx_packet_index,
 * rx_place) and message -> bitmap (rx_admit, rx_claim, rx_commit), so that something
 * other than a posted receive can be bound later.
 *
 * A worker's round for a batch of verified packets of one message:
 *
 *	if (rx_enter(table, worker, key, &slot) == RX_OK &&
 *	    rx_packet_index(slot, worker, offset, &first) == RX_OK)
 *		for (each part of the run that rx_run_fit() allows) {
 *			if (rx_admit(slot, worker, first, count, last_len) != RX_OK)
 *				continue;
 *			mask = rx_claim(slot, worker, first, count, last_len);
 *			copy each packet of mask to rx_place(slot, index);
 *			rx_imm_add(slot, index, fragment);	(if it has an immediate)
 *			rx_commit(slot, first / 64, mask);
 *		}
 *	rx_leave(worker);
 *
 * Next: rx.c (binding, fencing, reading), rx_test.c.
 */
#ifndef SDR_RX_RX_H
#define SDR_RX_RX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"

#define RX_MAX_SLOTS 4096u    /* a table's slots */
#define RX_MAX_CHUNK_SHIFT 6u /* a chunk's mask lies in one word */
#define RX_MAX_PAYLOAD 65535u /* bytes in a packet */
#define RX_WORD_PKTS 64u      /* packets in a bitmap word, and the longest run */
#define RX_INLINE_PKTS 64u    /* messages up to here need no bitmap memory */
#define RX_MAX_IMM_FRAGS 16u

/* What became of a packet or a call: 0 or more is success. */
enum rx_verdict {
	RX_OK = 0,
	RX_IMM_ONLY = 1,      /* no data bit: only rx_imm_add() it */
	RX_LATE = -1,	      /* the key is not bound (any more, or yet) */
	RX_OUT_OF_RANGE = -2, /* outside the receive */
	RX_BEYOND_END = -3,   /* after the message's end */
	RX_MISALIGNED = -4,   /* the offset is not a multiple of the payload */
	RX_BUSY = -5,	      /* bind: the slot is still bound */
	RX_INVALID = -6,      /* the caller's arguments */
};

/* Table flags. */
#define RX_SINGLE_THREAD 1u /* one worker, and everything runs on its thread */

/* Binding flags. */
#define RX_SPARSE 1u /* parity: a short packet does not end the message */

/*
 * One for each thread that receives, in an array that all tables of an opened device
 * share. One cache line each. `in` is the address of the slot that the worker is inside,
 * or 0. The counters count packets, are written by this worker only and may be read by
 * anyone; every call also returns its verdict, for owners that count by channel.
 */
struct rx_worker {
	_Alignas(64) _Atomic(uintptr_t) in;
	_Atomic uint64_t duplicate;
	_Atomic uint64_t late;
	_Atomic uint64_t out_of_range;
	_Atomic uint64_t beyond_end;
	_Atomic uint64_t misaligned;
};

/* 64 packets' bits. */
struct rx_word {
	_Atomic uint64_t claimed;   /* somebody places or has placed it */
	_Atomic uint64_t committed; /* its bytes are in memory */
};

/*
 * A message in flight. Private: use the functions. Everything but the atomics is written
 * by rx_bind() alone, while nobody can be inside.
 *
 * Invariants (rx_slot_check() tests them by number):
 *  1. The geometry agrees: npkts = max(1, ceil(len / payload)), the last one holds
 *     tail_len bytes, and 0 < end's packets <= npkts.
 *  2. committed is a subset of claimed.
 *  3. No packet bit at or beyond npkts, no chunk bit at or beyond ceil(npkts / chunk).
 *  4. A chunk whose bit is set has all its packets below the end committed.
 *  5. When nobody is inside: a chunk that starts below the end and has all its packets
 *     below the end committed has its bit set.
 *  6. When nobody is inside: if the end is known from packets, its last one is committed.
 *  7. The immediate has no bits of fragments that were not seen.
 */
struct rx_slot {
	/* First line: read by all, written rarely. */
	_Alignas(64) _Atomic uint64_t state; /* RX_BOUND | key & key_mask, or 0 */
	_Atomic uint64_t end;		     /* see RX_END_UNKNOWN */
	struct rx_word *words;
	_Atomic uint64_t *chunks;
	uint64_t inverse; /* of the payload's odd part modulo 2^64 */
	uint8_t *base;	  /* NULL: bytes are discarded */
	uint32_t npkts;
	uint32_t payload;
	uint32_t tail_len;  /* room for bytes in packet npkts - 1 */
	uint8_t even_shift; /* the payload's factors of two */
	uint8_t chunk_shift;
	uint8_t sparse;
	uint8_t single;
	/* Second line: written by workers where the message is small. */
	_Atomic uint64_t imm; /* fragments seen << 32 | value */
	struct rx_word word0;
	_Atomic uint64_t chunk0;
	_Atomic uint64_t *dirty;
	uint64_t dirty_bit;
	uint64_t len;
	uint32_t imm_frags;
};

#define RX_BOUND (UINT64_C(1) << 32)

/*
 * A slot's `end`: packets << 32 | RX_END_UNKNOWN or 0 | bytes in the last packet. It
 * starts as {npkts, unknown, tail_len} and only falls, so the smallest index wins, and
 * at the same index known wins over unknown. With RX_END_FIRM the owner has said it
 * (rx_end_set()): it moves no more, and packets of another length are refused.
 */
#define RX_END_UNKNOWN (UINT64_C(1) << 31)
#define RX_END_FIRM (UINT64_C(1) << 30)
#define RX_END_BYTES UINT64_C(0xffff)

struct rx_table {
	struct rx_slot *slots;
	struct rx_worker *workers;
	uint32_t nslots;
	uint32_t slot_mask;
	uint32_t key_mask;
	uint32_t nworkers;
	uint32_t flags;
	/* Slots with news since they were last taken. */
	_Alignas(64) _Atomic uint64_t dirty[RX_MAX_SLOTS / 64];
};

/*
 * Owner's calls (rx.c). For one slot they come from one thread at a time.
 */

void rx_worker_init(struct rx_worker *w);

/*
 * nslots is a power of two up to RX_MAX_SLOTS. Message key k uses slot k mod nslots and is
 * told apart from other messages by k & key_mask: ~0 in sdr mode, slot and generation bits
 * in rocev2 (a mask of the low bits, at least nslots - 1). Memory stays the caller's and
 * outlives the table. RX_OK or RX_INVALID.
 */
int rx_table_init(struct rx_table *t, struct rx_slot *slots, uint32_t nslots, uint32_t key_mask,
		  struct rx_worker *workers, uint32_t nworkers, uint32_t flags);

struct rx_bind {
	uint8_t *base;	     /* NULL: bits only, bytes are discarded */
	uint64_t len;	     /* the receive's capacity in bytes */
	uint32_t payload;    /* bytes in a packet, 1 .. RX_MAX_PAYLOAD */
	uint8_t chunk_shift; /* packets in a chunk = 1 << chunk_shift, 0 .. 6 */
	uint8_t imm_frags;   /* packets over which the immediate is spread: 1, 8 or 16 */
	uint32_t flags;	     /* RX_SPARSE */
	uint64_t *words;     /* rx_bind_words() of them, aligned to 8 bytes (64 is better) */
};

/* 64-bit words that a binding wants: 0 where the slot's own are enough. */
size_t rx_bind_words(uint64_t len, uint32_t payload, uint8_t chunk_shift);
/*
 * Points message `key` at memory; clears the bitmaps; publishes last (release). The
 * slot's previous message must have been fenced to the end. RX_OK, RX_BUSY or RX_INVALID.
 * Memory and words belong to the slot until rx_fence_done() says so.
 */
int rx_bind(struct rx_table *t, uint32_t key, const struct rx_bind *b);

/*
 * Fence: from rx_fence_begin() on no worker enters the message; once rx_fence_done()
 * has returned true, no byte of its memory and no bit of its bitmap changes any more.
 * begin returns RX_LATE where `key` is not bound. The bits may be read until the next bind.
 */
int rx_fence_begin(struct rx_table *t, uint32_t key);
bool rx_fence_done(const struct rx_table *t, uint32_t key);

/* Slots (64 * word + bit) with commits or immediates since last taken; clears them. */
uint64_t rx_dirty_take(struct rx_table *t, uint32_t word);
/* Whether rx_dirty_take() would find any: mostly not, and there are many words. */
static inline bool rx_dirty_any(const struct rx_table *t, uint32_t word)
{
	return t->flags & RX_SINGLE_THREAD
		       ? atomic_load_explicit(&t->dirty[word], memory_order_relaxed)
		       : atomic_load(&t->dirty[word]);
}

static inline struct rx_slot *rx_slot_of(const struct rx_table *t, uint32_t key)
{
	return &t->slots[key & t->slot_mask];
}

/* Its slot has a message; for who binds. A fence that began ends that, done or not. */
static inline bool rx_is_bound(const struct rx_table *t, uint32_t key)
{
	return atomic_load_explicit(&rx_slot_of(t, key)->state, memory_order_relaxed) != 0;
}

/*
 * Readers. Bits that rose stay; they may be read by any thread between bind and the next
 * bind. A set bit's bytes are visible to the reader. out gets bits_words(n) words, bits
 * past n are 0, and so is what lies outside the receive.
 */
void rx_bits_get(const struct rx_slot *s, uint32_t first_pkt, uint32_t n, uint64_t *out);
void rx_chunks_get(const struct rx_slot *s, uint32_t first_chunk, uint32_t n, uint64_t *out);
uint32_t rx_chunk_count(const struct rx_slot *s);
/*
 * How long the message is: known when its last packet has been seen (it may not be
 * committed yet). Unknown: what the receive could hold. Bits at or beyond *npkts mean nothing.
 */
bool rx_end(const struct rx_slot *s, uint32_t *npkts, uint64_t *bytes);
/*
 * The message has `bytes`, whatever its packets say from now on. An empty packet at its end counts
 * as arrived: it is claimed and committed. RX_OK, the second time too; RX_OUT_OF_RANGE: longer than
 * the receive; RX_BEYOND_END: packets that came, or an earlier call, say otherwise; RX_INVALID: a
 * sparse binding. The caller is one who may fill.
 */
int rx_end_set(struct rx_slot *s, uint64_t bytes);
/* The end that rx_end() tells is of rx_end_set(). */
static inline bool rx_end_is_set(const struct rx_slot *s)
{
	return atomic_load_explicit(&s->end, memory_order_relaxed) & RX_END_FIRM;
}

/* True once all fragments were seen. */
bool rx_imm_get(const struct rx_slot *s, uint32_t *imm);

/*
 * Software fills packets (decoded data, local copies), in runs like a worker's: begin
 * gives the mask of packets that the caller shall now write, and no others (somebody else
 * has the rest); end commits them. last_len as for rx_admit(). The caller is inside the
 * slot as a worker, or is the one who fences. Verdicts of rx_admit(), not counted.
 */
int rx_fill_begin(struct rx_slot *s, uint32_t first, uint32_t count, uint32_t last_len,
		  uint64_t *mask);
void rx_fill_end(struct rx_slot *s, uint32_t first, uint64_t mask);

/* 0, or the number of a broken invariant; `quiet`: nobody is inside. */
int rx_slot_check(const struct rx_slot *s, bool quiet);

/* Slow parts of the inline functions below. */
int rx_refuse_offset(const struct rx_slot *s, struct rx_worker *w, uint64_t offset);
int rx_refuse_run(const struct rx_slot *s, struct rx_worker *w, uint32_t first, uint32_t count,
		  uint32_t last_len);
void rx_end_lower(struct rx_slot *s, uint64_t end);
bool rx_imm_add_new(struct rx_slot *s, uint64_t seen, uint64_t value);

/*
 * Workers' calls.
 */

#define RX_LIKELY(x) __builtin_expect(!!(x), 1)
#define RX_UNLIKELY(x) __builtin_expect(!!(x), 0)

static inline void rx_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

/* Bits set; written out because the builtin is a library call on some targets. */
static inline uint32_t rx_popcount(uint64_t x)
{
	x -= (x >> 1) & UINT64_C(0x5555555555555555);
	x = (x & UINT64_C(0x3333333333333333)) + ((x >> 2) & UINT64_C(0x3333333333333333));
	x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	return (uint32_t)((x * UINT64_C(0x0101010101010101)) >> 56);
}

/* Sets bits of a shared word and returns what it held. */
static inline uint64_t rx_or(const struct rx_slot *s, _Atomic uint64_t *word, uint64_t bits)
{
	if (s->single) {
		uint64_t had = atomic_load_explicit(word, memory_order_relaxed);

		atomic_store_explicit(word, had | bits, memory_order_relaxed);
		return had;
	}
	return atomic_fetch_or(word, bits);
}

/*
 * The two halves of entering. A worker shows the slot, then reads its state; a fence
 * changes the state, then reads what workers show; all four are seq_cst. So either the
 * worker sees the fence and stays out, or the fence sees the worker and waits.
 */
static inline void rx_enter_show(const struct rx_table *t, struct rx_worker *w,
				 const struct rx_slot *s)
{
	if (t->flags & RX_SINGLE_THREAD)
		atomic_store_explicit(&w->in, (uintptr_t)s, memory_order_relaxed);
	else
		(void)atomic_exchange(&w->in, (uintptr_t)s);
}

static inline bool rx_enter_check(const struct rx_table *t, const struct rx_slot *s, uint32_t key)
{
	return atomic_load(&s->state) == (RX_BOUND | (key & t->key_mask));
}

/* After this the worker touches no slot until it enters one again. */
static inline void rx_leave(struct rx_worker *w)
{
	atomic_store_explicit(&w->in, 0, memory_order_release);
}

/*
 * RX_OK and the slot, or RX_LATE (counted as one packet). A worker may stay inside for a
 * batch: entering the same slot again only looks at its state, and entering another slot
 * leaves the first. A refusal never ends an earlier stay in the same slot. Every batch
 * ends with rx_leave().
 */
static inline int rx_enter(struct rx_table *t, struct rx_worker *w, uint32_t key,
			   struct rx_slot **slot)
{
	struct rx_slot *s = rx_slot_of(t, key);
	bool inside = atomic_load_explicit(&w->in, memory_order_relaxed) == (uintptr_t)s;

	if (!inside)
		rx_enter_show(t, w, s);
	if (RX_UNLIKELY(!rx_enter_check(t, s, key))) {
		if (!inside)
			rx_leave(w);
		rx_count(&w->late, 1);
		return RX_LATE;
	}
	*slot = s;
	return RX_OK;
}

/*
 * Byte offset to packet index, exact for every 64-bit offset: the payload is odd << shift;
 * multiplying by the inverse of odd and rotating by shift divides where there is no
 * remainder, and gives more than 2^64 / payload - 1 >= 2^48 - 1, so no index, where there
 * is one (Hacker's Delight, 10-17).
 */
static inline int rx_packet_index(const struct rx_slot *s, struct rx_worker *w, uint64_t offset,
				  uint32_t *index)
{
	uint64_t odd = offset * s->inverse;
	uint64_t quotient = odd >> s->even_shift | odd << (-s->even_shift & 63);

	*index = (uint32_t)quotient;
	if (RX_UNLIKELY(quotient >= s->npkts))
		return rx_refuse_offset(s, w, offset);
	return RX_OK;
}

/* Where packet `index` goes; NULL: nowhere, its bytes are discarded. */
static inline uint8_t *rx_place(const struct rx_slot *s, uint32_t index)
{
	return s->base ? s->base + (uint64_t)index * s->payload : NULL;
}

/* How many of `count` packets from `first` on can go into one run. */
static inline uint32_t rx_run_fit(uint32_t first, uint32_t count)
{
	return (uint32_t)u64_min(count, RX_WORD_PKTS - first % RX_WORD_PKTS);
}

/* Is a packet of this length none of a message whose end was set? `past` is its index + 1. */
static inline bool rx_contradicts(const struct rx_slot *s, uint64_t end, uint64_t past,
				  uint32_t last_len)
{
	return end & RX_END_FIRM &&
	       last_len != (past == end >> 32 ? end & RX_END_BYTES : s->payload);
}

/*
 * May `count` packets from `first` on be placed, all full but the last, which has
 * last_len bytes? The run lies in one word (rx_run_fit()). RX_OK; RX_IMM_ONLY for a
 * zero-length packet after the end that only carries a fragment of the immediate; or a
 * refusal, counted, and none of the run is placed.
 */
static inline int rx_admit(const struct rx_slot *s, struct rx_worker *w, uint32_t first,
			   uint32_t count, uint32_t last_len)
{
	uint64_t past = (uint64_t)first + count;
	uint64_t end = atomic_load_explicit(&s->end, memory_order_relaxed);
	uint32_t room = past == s->npkts ? s->tail_len : s->payload;

	if (RX_UNLIKELY(past > end >> 32 || last_len > room ||
			count - 1 >= RX_WORD_PKTS - first % RX_WORD_PKTS ||
			rx_contradicts(s, end, past, last_len)))
		return rx_refuse_run(s, w, first, count, last_len);
	return RX_OK;
}

/* Does a packet of this length end the message? `past` is its index + 1. */
static inline bool rx_is_end(const struct rx_slot *s, uint64_t past, uint32_t last_len)
{
	return (last_len < s->payload || past == s->npkts) && !s->sparse;
}

/*
 * Takes an admitted run's packets for this worker: the mask, within word first / 64, of
 * those that nobody had; the rest are duplicates (counted; w may be NULL). A claim is never
 * given back: place the bytes, then commit. A claimed last packet sets the message's end, so
 * that the end is there before the packet's bit is.
 */
static inline uint64_t rx_claim(struct rx_slot *s, struct rx_worker *w, uint32_t first,
				uint32_t count, uint32_t last_len)
{
	uint64_t want = bits_range(first % RX_WORD_PKTS, count);
	uint64_t had = rx_or(s, &s->words[first / RX_WORD_PKTS].claimed, want) & want;
	uint64_t past = (uint64_t)first + count;

	if (RX_UNLIKELY(had != 0) && w)
		rx_count(&w->duplicate, rx_popcount(had));
	if (RX_UNLIKELY(rx_is_end(s, past, last_len)) && !(had >> ((past - 1) % RX_WORD_PKTS) & 1))
		rx_end_lower(s, past << 32 | last_len);
	return want & ~had;
}

/*
 * The chunks, as bits at their first packets, that `added` touches and that have all
 * their packets below the end in `now`; at least one is below it.
 *
 * All chunks at once, by carries into each chunk's top bit: adding 1 to the bits below it
 * carries where they are all set, adding all ones carries where any is set.
 */
static inline uint64_t rx_chunks_full(const struct rx_slot *s, uint32_t word, uint64_t now,
				      uint64_t added)
{
	static const uint64_t chunk_tops[RX_MAX_CHUNK_SHIFT + 1] = {
		UINT64_C(0xffffffffffffffff), UINT64_C(0xaaaaaaaaaaaaaaaa),
		UINT64_C(0x8888888888888888), UINT64_C(0x8080808080808080),
		UINT64_C(0x8000800080008000), UINT64_C(0x8000000080000000),
		UINT64_C(0x8000000000000000),
	};
	uint64_t top = chunk_tops[s->chunk_shift];
	uint64_t end = atomic_load_explicit(&s->end, memory_order_relaxed) >> 32;
	uint64_t left = u64_sub_floor(end, (uint64_t)word * RX_WORD_PKTS);
	uint64_t full, touched;

	if (RX_UNLIKELY(left < RX_WORD_PKTS)) {
		now |= ~bits_low((unsigned int)left);
		added &= bits_low((unsigned int)left);
	}
	full = ((now & ~top) + (top << 1 | 1)) & now & top;
	touched = (((added & ~top) + ~top) | added) & top;
	return (full & touched) >> ((1u << s->chunk_shift) - 1);
}

/* Tells the owner that the slot has news. */
static inline void rx_dirty_mark(const struct rx_slot *s)
{
	/*
	 * The owner exchanges the dirty word, then reads the bits (seq_cst); we set bits,
	 * then read the dirty word (seq_cst). If we still see our mark, the owner has yet to
	 * take it and will see our bits.
	 */
	if (!(atomic_load(s->dirty) & s->dirty_bit))
		(void)rx_or(s, s->dirty, s->dirty_bit);
}

/*
 * The bytes of `mask` (within `word`) are in memory: sets their bits, and their chunks'
 * where a chunk became full. Returns those that were committed before. Without a claim
 * (hardware placed them) it claims too; rx_commit_hw() also knows ends.
 *
 * No full chunk is missed. Take a chunk and the final end. All updates of its word are
 * read-modify-writes of one atomic, so one of those that add bits of the chunk below the
 * end comes last and sees all the others in `now`. If the end lies in this chunk, the last
 * packet's claim lowered the end before that packet's commit (release), which is the last
 * one or was read by it (acquire): so the last one also reads the final end, finds the
 * chunk full and sets its bit. Others may find it full too: setting it twice is harmless.
 * The same chain makes all bytes of the chunk visible to who sees its bit.
 */
static inline uint64_t rx_commit(struct rx_slot *s, uint32_t word, uint64_t mask)
{
	struct rx_word *bits = &s->words[word];
	uint64_t had, added, full, set = 0;

	if (RX_UNLIKELY(mask & ~atomic_load_explicit(&bits->claimed, memory_order_relaxed)))
		(void)rx_or(s, &bits->claimed, mask);
	had = rx_or(s, &bits->committed, mask);
	added = mask & ~had;
	if (RX_UNLIKELY(!added))
		return mask;
	full = rx_chunks_full(s, word, had | mask, added);
	if (full) {
		uint64_t chunk = ((uint64_t)word * RX_WORD_PKTS) >> s->chunk_shift;

		for (unsigned int i = 0; full; i++) {
			set |= (full & 1) << i;
			full = full >> 1 >> ((1u << s->chunk_shift) - 1);
		}
		(void)rx_or(s, &s->chunks[chunk / 64], set << chunk % 64);
	}
	rx_dirty_mark(s);
	return mask & had;
}

/*
 * A run that hardware has placed already, after rx_admit(): claims and commits in one.
 * Returns the mask of new packets; duplicates are counted.
 */
static inline uint64_t rx_commit_hw(struct rx_slot *s, struct rx_worker *w, uint32_t first,
				    uint32_t count, uint32_t last_len)
{
	uint64_t mask = rx_claim(s, w, first, count, last_len);

	if (mask)
		(void)rx_commit(s, first / RX_WORD_PKTS, mask);
	return mask;
}

/*
 * Packet `index` carried this part of the user's immediate: all 32 bits where imm_frags is
 * 1, else the (index mod imm_frags)-th 4 (of 8) or 2 (of 16) bits, lowest first. The first
 * to come wins. Call it before the packet's commit, so that whoever sees the message
 * complete sees its immediate. True if it was new.
 */
static inline bool rx_imm_add(struct rx_slot *s, uint32_t index, uint32_t fragment)
{
	uint32_t which = index & (s->imm_frags - 1);
	uint64_t seen = RX_BOUND << which;
	unsigned int width = 32 / s->imm_frags;
	uint64_t value;

	if (RX_LIKELY(atomic_load_explicit(&s->imm, memory_order_relaxed) & seen))
		return false;
	value = (fragment & bits_low(width)) << (which * width);
	return rx_imm_add_new(s, seen, value);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owner's half of the receive path: tables, binding, fencing, reading the bitmaps,
 * and the refusals that a good packet never meets. Freestanding, as rx.h says.
 */
#include "rx/rx.h"

void rx_worker_init(struct rx_worker *w)
{
	atomic_init(&w->in, 0);
	atomic_init(&w->duplicate, 0);
	atomic_init(&w->late, 0);
	atomic_init(&w->out_of_range, 0);
	atomic_init(&w->beyond_end, 0);
	atomic_init(&w->misaligned, 0);
}

int rx_table_init(struct rx_table *t, struct rx_slot *slots, uint32_t nslots, uint32_t key_mask,
		  struct rx_worker *workers, uint32_t nworkers, uint32_t flags)
{
	bool single = flags & RX_SINGLE_THREAD;

	if (!slots || !workers || nslots == 0 || nslots > RX_MAX_SLOTS ||
	    (nslots & (nslots - 1)) != 0 || (key_mask & (key_mask + 1)) != 0 ||
	    key_mask < nslots - 1 || nworkers == 0 || (single && nworkers != 1) ||
	    (flags & ~RX_SINGLE_THREAD) != 0)
		return RX_INVALID;
	t->slots = slots;
	t->workers = workers;
	t->nslots = nslots;
	t->slot_mask = nslots - 1;
	t->key_mask = key_mask;
	t->nworkers = nworkers;
	t->flags = flags;
	for (uint32_t i = 0; i < RX_MAX_SLOTS / 64; i++)
		atomic_init(&t->dirty[i], 0);
	for (uint32_t i = 0; i < nslots; i++) {
		atomic_init(&slots[i].state, 0);
		slots[i].single = single;
		slots[i].dirty = &t->dirty[i / 64];
		slots[i].dirty_bit = UINT64_C(1) << i % 64;
	}
	return RX_OK;
}

/* Packets of a receive, which may be more than 32 bits can say. */
static uint64_t pkts_of(uint64_t len, uint32_t payload)
{
	return u64_max(1, u64_div_up(len, payload));
}

static size_t chunk_words(uint64_t npkts, uint8_t chunk_shift)
{
	return bits_words(u64_div_up(npkts, UINT64_C(1) << chunk_shift));
}

size_t rx_bind_words(uint64_t len, uint32_t payload, uint8_t chunk_shift)
{
	uint64_t npkts;

	if (payload == 0 || chunk_shift > RX_MAX_CHUNK_SHIFT)
		return 0;
	npkts = pkts_of(len, payload);
	if (npkts <= RX_INLINE_PKTS || npkts > UINT32_MAX)
		return 0;
	return 2 * bits_words(npkts) + chunk_words(npkts, chunk_shift);
}

/* The odd number's inverse modulo 2^64 by Newton's iteration: 3 bits, 6, 12, .. 96. */
static uint64_t inverse_of_odd(uint64_t odd)
{
	uint64_t x = odd;

	for (int i = 0; i < 5; i++)
		x *= 2 - odd * x;
	return x;
}

static void bind_geometry(struct rx_slot *s, const struct rx_bind *b)
{
	uint32_t odd = b->payload;

	s->base = b->base;
	s->len = b->len;
	s->payload = b->payload;
	s->npkts = (uint32_t)pkts_of(b->len, b->payload);
	s->tail_len = (uint32_t)(b->len - (uint64_t)(s->npkts - 1) * b->payload);
	s->chunk_shift = b->chunk_shift;
	s->imm_frags = b->imm_frags;
	s->sparse = (b->flags & RX_SPARSE) != 0;
	s->even_shift = 0;
	while (!(odd & 1)) {
		odd >>= 1;
		s->even_shift++;
	}
	s->inverse = inverse_of_odd(odd);
}

static void bind_bitmaps(struct rx_slot *s, uint64_t *words)
{
	size_t nwords = bits_words(s->npkts);
	size_t nchunks = chunk_words(s->npkts, s->chunk_shift);

	if (s->npkts <= RX_INLINE_PKTS) {
		s->words = &s->word0;
		s->chunks = &s->chunk0;
	} else {
		s->words = (struct rx_word *)(void *)words;
		s->chunks = (_Atomic uint64_t *)(void *)(words + 2 * nwords);
	}
	for (size_t i = 0; i < nwords; i++) {
		atomic_store_explicit(&s->words[i].claimed, 0, memory_order_relaxed);
		atomic_store_explicit(&s->words[i].committed, 0, memory_order_relaxed);
	}
	for (size_t i = 0; i < nchunks; i++)
		atomic_store_explicit(&s->chunks[i], 0, memory_order_relaxed);
}

int rx_bind(struct rx_table *t, uint32_t key, const struct rx_bind *b)
{
	struct rx_slot *s = rx_slot_of(t, key);

	if (atomic_load(&s->state) != 0)
		return RX_BUSY;
	if (b->payload == 0 || b->payload > RX_MAX_PAYLOAD || b->chunk_shift > RX_MAX_CHUNK_SHIFT ||
	    (b->imm_frags != 1 && b->imm_frags != 8 && b->imm_frags != RX_MAX_IMM_FRAGS) ||
	    (b->flags & ~RX_SPARSE) != 0 || pkts_of(b->len, b->payload) > UINT32_MAX)
		return RX_INVALID;
	if (rx_bind_words(b->len, b->payload, b->chunk_shift) != 0 && !b->words)
		return RX_INVALID;
	bind_geometry(s, b);
	bind_bitmaps(s, b->words);
	atomic_store_explicit(&s->imm, 0, memory_order_relaxed);
	atomic_store_explicit(&s->end, (uint64_t)s->npkts << 32 | RX_END_UNKNOWN | s->tail_len,
			      memory_order_relaxed);
	/* Pairs with rx_enter_check(): who sees the key sees everything above. */
	atomic_store_explicit(&s->state, RX_BOUND | (key & t->key_mask), memory_order_release);
	return RX_OK;
}

int rx_fence_begin(struct rx_table *t, uint32_t key)
{
	struct rx_slot *s = rx_slot_of(t, key);

	if (!rx_enter_check(t, s, key))
		return RX_LATE;
	/* Pairs with rx_enter_show() and rx_enter_check(). */
	atomic_store(&s->state, 0);
	return RX_OK;
}

bool rx_fence_done(const struct rx_table *t, uint32_t key)
{
	const struct rx_slot *s = rx_slot_of(t, key);

	if (rx_enter_check(t, s, key))
		return false;
	for (uint32_t i = 0; i < t->nworkers; i++)
		if (atomic_load(&t->workers[i].in) == (uintptr_t)s)
			return false;
	return true;
}

uint64_t rx_dirty_take(struct rx_table *t, uint32_t word)
{
	_Atomic uint64_t *dirty = &t->dirty[word];
	uint64_t was;

	if (t->flags & RX_SINGLE_THREAD) {
		was = atomic_load_explicit(dirty, memory_order_relaxed);
		atomic_store_explicit(dirty, 0, memory_order_relaxed);
		return was;
	}
	/* A look first: idle words stay shared. Pairs with rx_dirty_mark(). */
	return atomic_load(dirty) ? atomic_exchange(dirty, 0) : 0;
}

/* One word of a packet bitmap or of a chunk bitmap. */
static uint64_t load_word(const struct rx_slot *s, bool chunks, size_t word)
{
	return atomic_load(chunks ? &s->chunks[word] : &s->words[word].committed);
}

/* Bits [first, first + n) of a bitmap of nbits. */
static void bitmap_get(const struct rx_slot *s, bool chunks, uint32_t nbits, uint32_t first,
		       uint32_t n, uint64_t *out)
{
	size_t have = bits_words(nbits);

	if (first % 64 == 0 && n % 64 == 0 && first / 64 + n / 64 <= have) {
		for (uint32_t i = 0; i < n / 64; i++)
			out[i] = load_word(s, chunks, first / 64 + i);
		return;
	}
	for (uint64_t done = 0; done < n; done += 64) {
		size_t word = (size_t)((first + done) / 64);
		unsigned int shift = first % 64;
		uint64_t bits = 0;

		if (word < have)
			bits = load_word(s, chunks, word) >> shift;
		if (shift && word + 1 < have)
			bits |= load_word(s, chunks, word + 1) << (64 - shift);
		out[done / 64] = bits & bits_low((unsigned int)u64_min(n - done, 64));
	}
}

void rx_bits_get(const struct rx_slot *s, uint32_t first_pkt, uint32_t n, uint64_t *out)
{
	bitmap_get(s, false, s->npkts, first_pkt, n, out);
}

uint32_t rx_chunk_count(const struct rx_slot *s)
{
	return (uint32_t)u64_div_up(s->npkts, UINT64_C(1) << s->chunk_shift);
}

void rx_chunks_get(const struct rx_slot *s, uint32_t first_chunk, uint32_t n, uint64_t *out)
{
	bitmap_get(s, true, rx_chunk_count(s), first_chunk, n, out);
}

bool rx_end(const struct rx_slot *s, uint32_t *npkts, uint64_t *bytes)
{
	uint64_t end = atomic_load_explicit(&s->end, memory_order_acquire);

	*npkts = (uint32_t)(end >> 32);
	*bytes = (uint64_t)(*npkts - 1) * s->payload + (end & RX_END_BYTES);
	return !(end & RX_END_UNKNOWN);
}

void rx_end_lower(struct rx_slot *s, uint64_t end)
{
	uint64_t was = atomic_load_explicit(&s->end, memory_order_relaxed);

	if (s->single) {
		if (end < was && !(was & RX_END_FIRM))
			atomic_store_explicit(&s->end, end, memory_order_relaxed);
		return;
	}
	while (end < was && !(was & RX_END_FIRM) &&
	       !atomic_compare_exchange_weak(&s->end, &was, end))
		;
}

/* The end of a message of so many bytes, which the receive has room for. */
static uint64_t end_of(const struct rx_slot *s, uint64_t bytes)
{
	uint64_t pkts = u64_div_up(bytes, s->payload);

	/* Full packets only, and shorter than the receive: an empty one ends it. */
	if (bytes == 0 || (bytes % s->payload == 0 && bytes < s->len))
		pkts++;
	return pkts << 32 | (bytes - (pkts - 1) * s->payload);
}

/* Has any packet from `first` on been claimed? */
static bool any_claimed(const struct rx_slot *s, uint64_t first)
{
	uint64_t mask = ~bits_low((unsigned int)(first % RX_WORD_PKTS));

	for (uint64_t word = first / RX_WORD_PKTS; word < bits_words(s->npkts); word++) {
		if (atomic_load(&s->words[word].claimed) & mask)
			return true;
		mask = ~UINT64_C(0);
	}
	return false;
}

/* Packets that may be empty though they lie behind the end, for the immediate's sake. */
static uint32_t empties(const struct rx_slot *s)
{
	return s->imm_frags > 1 ? s->imm_frags : 0;
}

/*
 * Do packets say that the message does not end at `end`? `last`: its last one is committed;
 * `first`: the committed ones of the first word. Those were looked at before `was`, the end as
 * it is known: a packet's commit is behind the end that it told.
 */
static bool end_denied(const struct rx_slot *s, uint64_t end, uint64_t was, bool last,
		       uint64_t first)
{
	unsigned int pkts = (unsigned int)u64_min(end >> 32, RX_WORD_PKTS);
	unsigned int full = empties(s);

	if (was == end)
		return false;
	if (!(was & RX_END_UNKNOWN)) {
		/* An empty one has told it, which need not be the first one that is short. */
		if (was < end || was & RX_END_BYTES || was >> 32 > full)
			return true;
		full = (unsigned int)(was >> 32) - 1;
	}
	return last || first & bits_low(full) & ~bits_low(pkts);
}

/* To `end`, if that is what packets say that have come. */
static bool end_fix(struct rx_slot *s, uint64_t end)
{
	uint32_t last = (uint32_t)(end >> 32) - 1;
	uint64_t was, first;
	bool there;

	do {
		there = atomic_load(&s->words[last / RX_WORD_PKTS].committed) >>
				(last % RX_WORD_PKTS) &
			1;
		first = atomic_load(&s->words[0].committed);
		was = atomic_load(&s->end);
		if (end_denied(s, end, was, there, first))
			return false;
	} while (!atomic_compare_exchange_strong(&s->end, &was, end | RX_END_FIRM));
	return true;
}

int rx_end_set(struct rx_slot *s, uint64_t bytes)
{
	uint64_t end, was = atomic_load(&s->end);
	uint32_t last;

	if (s->sparse)
		return RX_INVALID;
	if (bytes > s->len)
		return RX_OUT_OF_RANGE;
	end = end_of(s, bytes);
	if (was & RX_END_FIRM)
		return was == (end | RX_END_FIRM) ? RX_OK : RX_BEYOND_END;
	if (any_claimed(s, u64_max(end >> 32, empties(s))) || !end_fix(s, end))
		return RX_BEYOND_END;
	last = (uint32_t)(end >> 32) - 1;
	if (!(end & RX_END_BYTES)) {
		struct rx_word *word = &s->words[last / RX_WORD_PKTS];
		uint64_t bit = UINT64_C(1) << last % RX_WORD_PKTS;

		/* Who has claimed it commits it. */
		if (!(rx_or(s, &word->claimed, bit) & bit))
			(void)rx_commit(s, last / RX_WORD_PKTS, bit);
	}
	return RX_OK;
}

bool rx_imm_get(const struct rx_slot *s, uint32_t *imm)
{
	uint64_t all = atomic_load_explicit(&s->imm, memory_order_acquire);

	*imm = (uint32_t)all;
	return all >> 32 == bits_low(s->imm_frags);
}

bool rx_imm_add_new(struct rx_slot *s, uint64_t seen, uint64_t value)
{
	uint64_t was = atomic_load_explicit(&s->imm, memory_order_relaxed);

	do {
		if (was & seen)
			return false;
	} while (!atomic_compare_exchange_weak(&s->imm, &was, was | seen | value));
	rx_dirty_mark(s);
	return true;
}

int rx_refuse_offset(const struct rx_slot *s, struct rx_worker *w, uint64_t offset)
{
	if (offset % s->payload != 0) {
		rx_count(&w->misaligned, 1);
		return RX_MISALIGNED;
	}
	rx_count(&w->out_of_range, 1);
	return RX_OUT_OF_RANGE;
}

int rx_refuse_run(const struct rx_slot *s, struct rx_worker *w, uint32_t first, uint32_t count,
		  uint32_t last_len)
{
	uint64_t past = (uint64_t)first + count;
	uint64_t end = atomic_load_explicit(&s->end, memory_order_relaxed) >> 32;
	uint32_t room = past == s->npkts ? s->tail_len : s->payload;

	if (count == 0 || count != rx_run_fit(first, count))
		return RX_INVALID;
	if (count == 1 && last_len == 0 && first >= end && first < s->imm_frags)
		return RX_IMM_ONLY;
	if (past > s->npkts || last_len > room) {
		if (w)
			rx_count(&w->out_of_range, count);
		return RX_OUT_OF_RANGE;
	}
	if (w)
		rx_count(&w->beyond_end, count);
	return RX_BEYOND_END;
}

int rx_fill_begin(struct rx_slot *s, uint32_t first, uint32_t count, uint32_t last_len,
		  uint64_t *mask)
{
	int verdict = rx_admit(s, NULL, first, count, last_len);

	*mask = verdict == RX_OK ? rx_claim(s, NULL, first, count, last_len) : 0;
	return verdict;
}

void rx_fill_end(struct rx_slot *s, uint32_t first, uint64_t mask)
{
	if (mask)
		(void)rx_commit(s, first / RX_WORD_PKTS, mask);
}

/* Invariants 2 and 3 for packet words, 4 and 5 for the chunks in them. */
static int check_word(const struct rx_slot *s, uint32_t word, bool quiet)
{
	/* In this order: what is read later may only make the earlier more true. */
	unsigned int size = 1u << s->chunk_shift;
	uint64_t first = (uint64_t)word * RX_WORD_PKTS;
	uint64_t chunk = first >> s->chunk_shift;
	uint64_t chunks = atomic_load(&s->chunks[chunk / 64]) >> chunk % 64;
	uint64_t end = atomic_load(&s->end) >> 32;
	uint64_t committed = atomic_load(&s->words[word].committed);
	uint64_t claimed = atomic_load(&s->words[word].claimed);
	uint64_t below = bits_low((unsigned int)u64_min(u64_sub_floor(end, first), 64));

	if (committed & ~claimed)
		return 2;
	if (claimed & ~bits_low((unsigned int)u64_min(s->npkts - first, 64)))
		return 3;
	for (unsigned int pkt = 0; pkt < RX_WORD_PKTS; pkt += size, chunks >>= 1) {
		uint64_t want = bits_range(pkt, size) & below;

		if ((chunks & 1) && (committed & want) != want)
			return 4;
		if (quiet && want && (committed & want) == want && !(chunks & 1))
			return 5;
	}
	return 0;
}

int rx_slot_check(const struct rx_slot *s, bool quiet)
{
	uint64_t end_word = atomic_load(&s->end);
	uint64_t end = end_word >> 32;
	uint32_t nchunks = rx_chunk_count(s);
	uint64_t imm = atomic_load(&s->imm);
	uint32_t width = 32 / s->imm_frags;

	if (s->npkts != pkts_of(s->len, s->payload) || end == 0 || end > s->npkts ||
	    (uint64_t)(s->npkts - 1) * s->payload + s->tail_len != s->len)
		return 1;
	for (uint32_t word = 0; word < bits_words(s->npkts); word++) {
		int broken = check_word(s, word, quiet);

		if (broken)
			return broken;
	}
	if (nchunks % 64 && atomic_load(&s->chunks[nchunks / 64]) >> nchunks % 64)
		return 3;
	if (quiet && !(end_word & (RX_END_UNKNOWN | RX_END_FIRM)) &&
	    !(atomic_load(&s->words[(end - 1) / 64].committed) >> (end - 1) % 64 & 1))
		return 6;
	for (uint32_t i = 0; i < s->imm_frags; i++)
		if (!(imm >> 32 >> i & 1) && (imm >> i * width & bits_low(width)))
			return 7;
	return 0;
}

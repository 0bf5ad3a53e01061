/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows as run lengths. Knows nothing of the bitmaps' owners. Layout: runs.h.
 */
#include "wire/runs.h"

#include "wire/cursor.h"

int wire_window_next_run(struct wire_window *win, uint32_t *first, uint32_t *n, bool *received)
{
	struct wire_reader r;
	uint32_t run = 0;

	while (run == 0 && win->left_ > 0) {
		r = wire_reader_init(win->at_, (size_t)(win->end_ - win->at_));
		run = wire_take_varint32(&r);
		/* Checked when opened: only bytes that changed since can fail. */
		if (r.err || run > win->left_)
			return 0;
		win->at_ = r.at;
		*received = win->received_;
		win->received_ = !win->received_;
	}
	if (run == 0)
		return 0;
	*first = win->next_;
	*n = run;
	win->next_ += run;
	win->left_ -= run;
	return 1;
}

/* How many bits from `at` on equal `value`, not beyond `end`. */
static uint32_t run_length(const uint64_t *bits, uint32_t at, uint32_t end, bool value)
{
	uint32_t start = at;

	while (at < end) {
		uint64_t word = bits[at / 64] >> (at % 64);
		uint32_t in_word = 64 - at % 64;
		uint64_t differs = value ? ~word & bits_low(in_word) : word;

		if (differs) {
			at += (uint32_t)__builtin_ctzll(differs);
			break;
		}
		/* end is below 2^32 - 63, so this can't wrap; see window_put. */
		at += in_word;
	}
	return (at < end ? at : end) - start;
}

/* The packets whose runs fit into `room` bytes. */
static uint32_t runs_that_fit(const uint64_t *bits, uint32_t length, size_t room)
{
	uint32_t at = 0;
	bool received = true;

	while (at < length) {
		uint32_t run = run_length(bits, at, length, received);
		size_t need = wire_varint_bytes(run);

		if (need > room)
			break;
		room -= need;
		at += run;
		received = !received;
	}
	return at;
}

size_t wire_window_put(uint8_t *buf, size_t cap, uint32_t message, uint32_t first, uint32_t length,
		       const uint64_t *bits, uint32_t *covered)
{
	struct wire_writer w = wire_writer_init(buf, cap);
	uint32_t fits = 0, at = 0;
	bool received = true;
	size_t fixed;

	/* Keeps run_length's sums within 32 bits; the rest goes into another window. */
	if (length > UINT32_MAX - 63)
		length = UINT32_MAX - 63;
	fixed = 8 + wire_varint_bytes(length);
	if (cap > fixed && length <= UINT32_MAX - first + UINT64_C(1))
		fits = runs_that_fit(bits, length, cap - fixed);
	*covered = fits;
	if (fits == 0)
		return 0;
	wire_give_u32(&w, message);
	wire_give_u32(&w, first);
	wire_give_varint(&w, fits);
	while (at < fits) {
		uint32_t run = run_length(bits, at, fits, received);

		wire_give_varint(&w, run);
		at += run;
		received = !received;
	}
	return (size_t)wire_writer_result(&w);
}

int wire_window_get(const uint8_t *buf, size_t len, struct wire_window *out)
{
	struct wire_reader r = wire_reader_init(buf, len);
	uint32_t left;
	bool opening = true;

	out->message = wire_take_u32(&r);
	out->first = wire_take_u32(&r);
	out->length = wire_take_varint32(&r);
	wire_reader_require(&r, out->length != 0 &&
					out->length <= UINT32_MAX - out->first + UINT64_C(1));
	out->at_ = r.at;
	out->next_ = out->first;
	out->left_ = out->length;
	out->received_ = true;
	for (left = out->length; r.err == 0 && left > 0; opening = false) {
		uint32_t run = wire_take_varint32(&r);

		wire_reader_require(&r, run <= left && (run != 0 || opening));
		if (r.err == 0)
			left -= run;
	}
	out->end_ = r.at;
	return r.err ? r.err : (int)(r.at - buf);
}

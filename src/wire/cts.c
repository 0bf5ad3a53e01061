/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CTS bodies. Knows nothing of how grants are made. Layout: cts.h.
 */
#include "wire/cts.h"

#include "wire/cursor.h"

static void give_entry(struct wire_writer *w, const struct wire_cts_entry *entry)
{
	wire_give_varint(w, entry->receive);
	wire_give_u8(w, entry->kind);
	wire_give_varint(w, entry->offset);
	wire_give_varint(w, entry->length);
	wire_give_varint(w, entry->room);
	wire_give_u8(w, entry->key_len);
	wire_give_bytes(w, entry->key, entry->key_len);
}

static size_t entry_bytes(const struct wire_cts_entry *entry)
{
	return wire_varint_bytes(entry->receive) + wire_varint_bytes(entry->offset) +
	       wire_varint_bytes(entry->length) + wire_varint_bytes(entry->room) + 2 +
	       entry->key_len;
}

int wire_cts_put(uint8_t *buf, size_t cap, const struct wire_cts *cts)
{
	struct wire_writer w = wire_writer_init(buf, cap);

	if (cts->nwords > WIRE_CTS_MAX_WORDS || cts->n > WIRE_CTS_MAX_ENTRIES)
		return -EINVAL;
	wire_give_u32(&w, cts->granted_upto);
	wire_give_u32(&w, cts->done_below);
	wire_give_u64(&w, cts->recent_early);
	wire_give_u8(&w, cts->nwords);
	for (unsigned int i = 0; i < cts->nwords; i++)
		wire_give_u64(&w, cts->done[i]);
	for (unsigned int i = 0; i < cts->nwords; i++)
		wire_give_u64(&w, cts->early[i]);
	wire_give_u32(&w, cts->first);
	wire_give_u8(&w, cts->n);
	for (unsigned int i = 0; i < cts->n; i++) {
		if (cts->entries[i].key_len > WIRE_CTS_MAX_KEY_BYTES)
			return -EINVAL;
		give_entry(&w, &cts->entries[i]);
	}
	return wire_writer_result(&w);
}

unsigned int wire_cts_fit(const struct wire_cts *cts, size_t cap)
{
	size_t used = WIRE_CTS_FIXED_BYTES + (size_t)cts->nwords * 16;
	unsigned int n = 0;

	while (n < cts->n && n < WIRE_CTS_MAX_ENTRIES) {
		used += entry_bytes(&cts->entries[n]);
		if (used > cap)
			break;
		n++;
	}
	return n;
}

static void take_entry(struct wire_reader *r, struct wire_cts_entry *entry)
{
	const uint8_t *key;

	entry->receive = wire_take_varint32(r);
	entry->kind = wire_take_u8(r);
	entry->offset = wire_take_varint(r);
	entry->length = wire_take_varint(r);
	entry->room = wire_take_varint(r);
	entry->key_len = wire_take_u8(r);
	wire_reader_require(r, entry->key_len <= WIRE_CTS_MAX_KEY_BYTES);
	wire_reader_require(r, entry->length <= UINT64_MAX - entry->offset);
	key = wire_take(r, entry->key_len);
	memset(entry->key, 0, sizeof(entry->key));
	if (key)
		memcpy(entry->key, key, entry->key_len);
}

int wire_cts_get(const uint8_t *body, size_t len, struct wire_cts *out)
{
	struct wire_reader r = wire_reader_init(body, len);

	if (len < WIRE_CTS_FIXED_BYTES)
		return -EMSGSIZE;
	out->granted_upto = wire_take_u32(&r);
	out->done_below = wire_take_u32(&r);
	out->recent_early = wire_take_u64(&r);
	out->nwords = wire_take_u8(&r);
	wire_reader_require(&r, out->nwords <= WIRE_CTS_MAX_WORDS);
	for (unsigned int i = 0; r.err == 0 && i < out->nwords; i++)
		out->done[i] = wire_take_u64(&r);
	for (unsigned int i = 0; r.err == 0 && i < out->nwords; i++) {
		out->early[i] = wire_take_u64(&r);
		wire_reader_require(&r, (out->early[i] & ~out->done[i]) == 0);
	}
	out->first = wire_take_u32(&r);
	out->n = wire_take_u8(&r);
	wire_reader_require(&r, out->n <= WIRE_CTS_MAX_ENTRIES);
	for (unsigned int i = 0; r.err == 0 && i < out->n; i++)
		take_entry(&r, &out->entries[i]);
	/* Behind the fixed part, a body cut short is a malformed one. */
	return r.err ? -EBADMSG : 0;
}

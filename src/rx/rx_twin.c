/* SPDX-License-Identifier: Apache-2.0 */
/* Test only: the slow twin of a message slot; see rx_twin.h. */
#include "rx/rx_twin.h"

#include <string.h>

#include "rx/rx.h"

void twin_bind(struct twin *t, uint64_t len, uint32_t payload, uint32_t chunk, uint32_t imm_frags,
	       bool sparse)
{
	memset(t, 0, sizeof(*t));
	t->len = len;
	t->payload = payload;
	t->chunk = chunk;
	t->imm_frags = imm_frags;
	t->sparse = sparse;
	t->npkts = len == 0 ? 1 : (uint32_t)((len + payload - 1) / payload);
}

/* Packets of a message of so many bytes, its end packet included. */
static uint32_t end_pkts(const struct twin *t, uint64_t bytes)
{
	uint32_t full = (uint32_t)(bytes / t->payload);

	if (bytes == t->len && bytes == (uint64_t)full * t->payload && full > 0)
		return full;
	return full + 1; /* a short packet, or an empty one */
}

/* How long packet `pkt` of the message is that was told. */
static uint32_t told_len(const struct twin *t, uint32_t pkt)
{
	uint64_t at = (uint64_t)pkt * t->payload;

	return t->told_bytes - at < t->payload ? (uint32_t)(t->told_bytes - at) : t->payload;
}

/* "It ends at its first packet, in index order, that is shorter than the payload." */
bool twin_end(const struct twin *t, uint32_t *npkts, uint64_t *bytes)
{
	*npkts = t->npkts;
	*bytes = t->len;
	if (t->sparse)
		return false;
	if (t->told) {
		*npkts = end_pkts(t, t->told_bytes);
		*bytes = t->told_bytes;
		return true;
	}
	for (uint32_t pkt = 0; pkt < t->npkts; pkt++) {
		bool last = pkt == t->npkts - 1;

		if (t->claimed[pkt] && (t->pkt_len[pkt] < t->payload || last)) {
			*npkts = pkt + 1;
			*bytes = (uint64_t)pkt * t->payload + t->pkt_len[pkt];
			return true;
		}
	}
	return false;
}

/*
 * Do packets that came say otherwise? One behind the end may be an empty one, that brings a part of
 * the immediate: if it is the first short one, or lies behind that.
 */
static bool end_denied(const struct twin *t, uint32_t pkts, uint64_t bytes)
{
	uint32_t empties = t->imm_frags > 1 ? t->imm_frags : 0, npkts;
	uint64_t known;

	for (uint32_t pkt = pkts; pkt < t->npkts; pkt++)
		if (t->claimed[pkt] && pkt >= empties)
			return true;
	if (twin_end(t, &npkts, &known)) {
		if (npkts == pkts)
			return known != bytes;
		if (npkts < pkts || npkts > empties || t->pkt_len[npkts - 1] > 0)
			return true;
		empties = npkts - 1;
	}
	for (uint32_t pkt = pkts - 1; pkt < t->npkts; pkt++)
		if (t->committed[pkt] && (pkt < empties || pkt < pkts))
			return true;
	return false;
}

int twin_end_set(struct twin *t, uint64_t bytes, bool *news)
{
	uint32_t pkts, last;

	*news = false;
	if (t->sparse)
		return RX_INVALID;
	if (bytes > t->len)
		return RX_OUT_OF_RANGE;
	if (t->told)
		return t->told_bytes == bytes ? RX_OK : RX_BEYOND_END;
	pkts = end_pkts(t, bytes);
	last = pkts - 1;
	if (end_denied(t, pkts, bytes))
		return RX_BEYOND_END;
	t->told = true;
	t->told_bytes = bytes;
	if (bytes == (uint64_t)last * t->payload && !t->claimed[last]) {
		t->claimed[last] = t->committed[last] = *news = true;
		t->pkt_len[last] = 0;
	}
	return RX_OK;
}

int twin_index(struct twin *t, uint64_t offset, uint32_t *index)
{
	if (offset % t->payload) {
		t->misaligned++;
		return RX_MISALIGNED;
	}
	if (offset / t->payload >= t->npkts) {
		t->out_of_range++;
		return RX_OUT_OF_RANGE;
	}
	*index = (uint32_t)(offset / t->payload);
	return RX_OK;
}

int twin_admit(struct twin *t, uint32_t first, uint32_t count, uint32_t last_len)
{
	uint32_t end;
	uint64_t bytes, last;

	if (count == 0 || first / 64 != ((uint64_t)first + count - 1) / 64)
		return RX_INVALID;
	twin_end(t, &end, &bytes);
	if (count == 1 && last_len == 0 && first >= end && first < t->imm_frags)
		return RX_IMM_ONLY;
	last = (uint64_t)first + count - 1;
	if (last >= t->npkts || last_len > t->payload || last * t->payload + last_len > t->len) {
		t->out_of_range += count;
		return RX_OUT_OF_RANGE;
	}
	if (last >= end || (t->told && last_len != told_len(t, (uint32_t)last))) {
		t->beyond_end += count;
		return RX_BEYOND_END;
	}
	return RX_OK;
}

void twin_claim(struct twin *t, uint32_t first, uint32_t count, uint32_t last_len, bool *took)
{
	for (uint32_t i = 0; i < count; i++) {
		took[i] = !t->claimed[first + i];
		if (!took[i]) {
			t->duplicate++;
			continue;
		}
		t->claimed[first + i] = true;
		t->pkt_len[first + i] = i == count - 1 ? last_len : t->payload;
	}
}

void twin_commit(struct twin *t, uint32_t pkt)
{
	t->committed[pkt] = true;
}

void twin_chunks_update(struct twin *t)
{
	uint32_t end;
	uint64_t bytes;

	twin_end(t, &end, &bytes);
	for (uint32_t first = 0; first < end; first += t->chunk) {
		bool full = true;

		for (uint32_t pkt = first; pkt < first + t->chunk && pkt < end; pkt++)
			full = full && t->committed[pkt];
		if (full)
			t->chunk_set[first / t->chunk] = true;
	}
}

bool twin_imm_add(struct twin *t, uint32_t index, uint32_t fragment)
{
	uint32_t which = index % t->imm_frags;

	if (t->imm_seen[which])
		return false;
	t->imm_seen[which] = true;
	t->imm_frag[which] = fragment;
	return true;
}

bool twin_imm_get(const struct twin *t, uint32_t *imm)
{
	bool all = true;

	*imm = 0;
	for (uint32_t i = 0; i < t->imm_frags; i++) {
		uint32_t bits = 32 / t->imm_frags;
		uint64_t low = t->imm_frag[i] % (UINT64_C(1) << bits);

		all = all && t->imm_seen[i];
		*imm |= (uint32_t)(low << (i * bits));
	}
	return all;
}

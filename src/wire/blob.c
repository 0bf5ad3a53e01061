/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handshake blob. Knows nothing of what carries it. Layout: blob.h.
 */
#include "wire/blob.h"

#include <sdr/err.h>

#include "wire/cursor.h"

enum blob_type {
	BLOB_FEATURES = 1,
	BLOB_MODE = 2,
	BLOB_QPN = 3,
	BLOB_TOKEN = 4,
	BLOB_INCARNATION = 5,
	BLOB_MAX_PAYLOAD = 6,
	BLOB_CHUNK_LOG2 = 7,
	BLOB_CHANNELS = 8,
	BLOB_MESSAGES_LOG2 = 9,
	BLOB_PSN = 10,
	BLOB_ADDRS = 11,
	BLOB_LISTEN = 12,
	BLOB_DATA_QPS = 13,
};

#define BLOB_LAST_MANDATORY BLOB_PSN
#define TLV_HEAD_BYTES 4

static const uint8_t blob_magic[4] = {'S', 'D', 'R', 'B'};

static bool addr_valid(const struct wire_blob_addr *addr)
{
	return (addr->family == 4 || addr->family == 6) && addr->port != 0;
}

static bool data_qps_valid(const struct wire_blob *blob)
{
	uint8_t g = blob->generations;

	if (g == 0)
		return blob->mode != WIRE_ROCEV2;
	if ((g != 1 && g != 2 && g != 4) || blob->data_channels == 0 ||
	    blob->data_channels > WIRE_BLOB_MAX_DATA_CHANNELS ||
	    blob->data_channels < blob->channels)
		return false;
	for (unsigned int i = 0; i < g; i++)
		for (unsigned int c = 0; c < blob->data_channels; c++)
			if (blob->data_qpn[i][c] > WIRE_QPN_MASK)
				return false;
	return true;
}

/* Every range in one place, for both directions. */
static bool blob_valid(const struct wire_blob *blob)
{
	if (blob->version_min == 0 || blob->version_min > blob->version_max ||
	    (blob->required & ~blob->offered) != 0 ||
	    (blob->mode != WIRE_SDR && blob->mode != WIRE_ROCEV2) || blob->qpn > WIRE_QPN_MASK ||
	    blob->psn > WIRE_PSN_MASK)
		return false;
	if (blob->max_payload == 0 || blob->max_payload > WIRE_BLOB_MAX_PAYLOAD ||
	    blob->chunk_log2 > WIRE_BLOB_MAX_CHUNK_LOG2 || blob->channels == 0 ||
	    blob->channels > WIRE_BLOB_MAX_CHANNELS ||
	    blob->messages_log2 > WIRE_BLOB_MAX_MESSAGES_LOG2 || blob->naddrs > WIRE_BLOB_MAX_ADDRS)
		return false;
	for (unsigned int i = 0; i < blob->naddrs; i++) {
		if (!addr_valid(&blob->addrs[i]))
			return false;
	}
	return data_qps_valid(blob);
}

static void give_tlv(struct wire_writer *w, enum blob_type type, size_t len)
{
	wire_give_u16(w, (uint16_t)type);
	wire_give_u16(w, (uint16_t)len);
}

static void give_tlv_u8(struct wire_writer *w, enum blob_type type, uint8_t v)
{
	give_tlv(w, type, 1);
	wire_give_u8(w, v);
}

static void give_tlv_u32(struct wire_writer *w, enum blob_type type, uint32_t v)
{
	give_tlv(w, type, 4);
	wire_give_u32(w, v);
}

static void give_tlv_u64(struct wire_writer *w, enum blob_type type, uint64_t v)
{
	give_tlv(w, type, 8);
	wire_give_u64(w, v);
}

static size_t ip_bytes(uint8_t family)
{
	return family == 4 ? 4 : 16;
}

static void give_addrs(struct wire_writer *w, const struct wire_blob *blob)
{
	size_t len = 0;

	if (blob->naddrs == 0)
		return;
	for (unsigned int i = 0; i < blob->naddrs; i++)
		len += 3 + ip_bytes(blob->addrs[i].family);
	give_tlv(w, BLOB_ADDRS, len);
	for (unsigned int i = 0; i < blob->naddrs; i++) {
		const struct wire_blob_addr *addr = &blob->addrs[i];

		wire_give_u8(w, addr->family);
		wire_give_u16(w, addr->port);
		wire_give_bytes(w, addr->ip, ip_bytes(addr->family));
	}
}

static void give_data_qps(struct wire_writer *w, const struct wire_blob *blob)
{
	if (blob->generations == 0)
		return;
	give_tlv(w, BLOB_DATA_QPS, 2u + 3u * blob->generations * blob->data_channels);
	wire_give_u8(w, blob->generations);
	wire_give_u8(w, blob->data_channels);
	for (unsigned int g = 0; g < blob->generations; g++)
		for (unsigned int c = 0; c < blob->data_channels; c++)
			wire_give_u24(w, blob->data_qpn[g][c]);
}

int wire_blob_put(uint8_t *buf, size_t cap, const struct wire_blob *blob)
{
	struct wire_writer w =
		wire_writer_init(buf, cap < WIRE_BLOB_MAX_BYTES ? cap : WIRE_BLOB_MAX_BYTES);
	int len;

	if (!blob_valid(blob))
		return -EINVAL;
	wire_give_bytes(&w, blob_magic, sizeof(blob_magic));
	wire_give_u8(&w, blob->version_min);
	wire_give_u8(&w, blob->version_max);
	wire_give_u16(&w, 0);
	give_tlv(&w, BLOB_FEATURES, 16);
	wire_give_u64(&w, blob->required);
	wire_give_u64(&w, blob->offered);
	give_tlv_u8(&w, BLOB_MODE, (uint8_t)blob->mode);
	give_tlv_u32(&w, BLOB_QPN, blob->qpn);
	give_tlv_u64(&w, BLOB_TOKEN, blob->token);
	give_tlv_u64(&w, BLOB_INCARNATION, blob->incarnation);
	give_tlv_u32(&w, BLOB_MAX_PAYLOAD, blob->max_payload);
	give_tlv_u8(&w, BLOB_CHUNK_LOG2, blob->chunk_log2);
	give_tlv_u8(&w, BLOB_CHANNELS, blob->channels);
	give_tlv_u8(&w, BLOB_MESSAGES_LOG2, blob->messages_log2);
	give_tlv_u32(&w, BLOB_PSN, blob->psn);
	give_addrs(&w, blob);
	if (blob->listen)
		give_tlv_u8(&w, BLOB_LISTEN, 1);
	give_data_qps(&w, blob);
	len = wire_writer_result(&w);
	if (len >= 0)
		put_be16(buf + 6, (uint16_t)len);
	return len;
}

int wire_blob_length(const uint8_t *head, size_t len)
{
	uint16_t bytes;

	if (len < WIRE_BLOB_HEAD_BYTES)
		return -EMSGSIZE;
	bytes = get_be16(head + 6);
	if (memcmp(head, blob_magic, sizeof(blob_magic)) != 0 || bytes < WIRE_BLOB_HEAD_BYTES ||
	    bytes > WIRE_BLOB_MAX_BYTES)
		return -SDR_E_BLOB;
	return bytes;
}

static void take_addrs(struct wire_reader *r, struct wire_blob *out)
{
	while (r->err == 0 && wire_reader_left(r) > 0) {
		struct wire_blob_addr *addr = &out->addrs[out->naddrs];
		const uint8_t *ip;

		wire_reader_require(r, out->naddrs < WIRE_BLOB_MAX_ADDRS);
		if (r->err)
			return;
		addr->family = wire_take_u8(r);
		addr->port = wire_take_u16(r);
		wire_reader_require(r, addr_valid(addr));
		ip = wire_take(r, ip_bytes(addr->family));
		if (ip)
			memcpy(addr->ip, ip, ip_bytes(addr->family));
		out->naddrs++;
	}
}

static void take_data_qps(struct wire_reader *r, struct wire_blob *out)
{
	uint8_t generations = wire_take_u8(r);
	uint8_t channels = wire_take_u8(r);

	wire_reader_require(r, generations > 0 && generations <= WIRE_BLOB_MAX_GENERATIONS);
	wire_reader_require(r, channels > 0 && channels <= WIRE_BLOB_MAX_DATA_CHANNELS);
	for (unsigned int g = 0; r->err == 0 && g < generations; g++)
		for (unsigned int c = 0; r->err == 0 && c < channels; c++)
			out->data_qpn[g][c] = wire_take_u24(r);
	out->generations = generations;
	out->data_channels = channels;
}

/* One value, which must fill its TLV exactly. 0, or a negative SDR_E_. */
static int get_value(uint16_t type, struct wire_reader *r, struct wire_blob *out)
{
	uint8_t byte;

	switch (type) {
	case BLOB_FEATURES:
		out->required = wire_take_u64(r);
		out->offered = wire_take_u64(r);
		break;
	case BLOB_MODE:
		byte = wire_take_u8(r);
		wire_reader_require(r, byte <= WIRE_ROCEV2);
		out->mode = byte == WIRE_ROCEV2 ? WIRE_ROCEV2 : WIRE_SDR;
		break;
	case BLOB_QPN:
		out->qpn = wire_take_u32(r);
		break;
	case BLOB_TOKEN:
		out->token = wire_take_u64(r);
		break;
	case BLOB_INCARNATION:
		out->incarnation = wire_take_u64(r);
		break;
	case BLOB_MAX_PAYLOAD:
		out->max_payload = wire_take_u32(r);
		break;
	case BLOB_CHUNK_LOG2:
		out->chunk_log2 = wire_take_u8(r);
		break;
	case BLOB_CHANNELS:
		out->channels = wire_take_u8(r);
		break;
	case BLOB_MESSAGES_LOG2:
		out->messages_log2 = wire_take_u8(r);
		break;
	case BLOB_PSN:
		out->psn = wire_take_u32(r);
		break;
	case BLOB_ADDRS:
		take_addrs(r, out);
		break;
	case BLOB_LISTEN:
		byte = wire_take_u8(r);
		wire_reader_require(r, byte <= 1);
		out->listen = byte == 1;
		break;
	case BLOB_DATA_QPS:
		take_data_qps(r, out);
		break;
	default:
		return type & WIRE_BLOB_CRITICAL ? -SDR_E_FEATURE : 0;
	}
	return r->err || wire_reader_left(r) ? -SDR_E_BLOB : 0;
}

/* True if a type was seen before `end`. At most 256 TLVs fit, so a plain scan does. */
static bool type_seen(const uint8_t *at, const uint8_t *end, uint16_t type)
{
	while (at < end) {
		if (get_be16(at) == type)
			return true;
		at += TLV_HEAD_BYTES + get_be16(at + 2);
	}
	return false;
}

static int get_tlvs(const uint8_t *tlvs, size_t len, struct wire_blob *out)
{
	struct wire_reader r = wire_reader_init(tlvs, len);
	uint32_t seen = 0;

	while (wire_reader_left(&r) > 0) {
		const uint8_t *head = r.at;
		uint16_t type = wire_take_u16(&r);
		uint16_t bytes = wire_take_u16(&r);
		const uint8_t *value = wire_take(&r, bytes);
		struct wire_reader value_reader;
		int err;

		if (r.err || type_seen(tlvs, head, type))
			return -SDR_E_BLOB;
		value_reader = wire_reader_init(value, bytes);
		err = get_value(type, &value_reader, out);
		if (err)
			return err;
		if (type < 32)
			seen |= UINT32_C(1) << type;
	}
	if ((~seen & (uint32_t)bits_range(BLOB_FEATURES, BLOB_LAST_MANDATORY)) != 0)
		return -SDR_E_BLOB;
	return blob_valid(out) ? 0 : -SDR_E_BLOB;
}

int wire_blob_get(const uint8_t *buf, size_t len, struct wire_blob *out)
{
	int bytes = wire_blob_length(buf, len);

	memset(out, 0, sizeof(*out));
	if (bytes < 0 || (size_t)bytes != len)
		return -SDR_E_BLOB;
	out->version_min = buf[4];
	out->version_max = buf[5];
	if (out->version_min == 0 || out->version_min > out->version_max)
		return -SDR_E_BLOB;
	/* Only the head is the same in all versions: look no further for another's. */
	if (out->version_min > WIRE_VERSION_MAX || out->version_max < WIRE_VERSION_MIN)
		return -SDR_E_VERSION;
	return get_tlvs(buf + WIRE_BLOB_HEAD_BYTES, len - WIRE_BLOB_HEAD_BYTES, out);
}

static uint8_t u8_min(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

int wire_blob_negotiate(const struct wire_blob *local, const struct wire_blob *peer,
			struct wire_agreed *agreed)
{
	uint8_t version = u8_min(local->version_max, peer->version_max);
	bool rocev2 = local->mode == WIRE_ROCEV2 || peer->mode == WIRE_ROCEV2;

	if (version < local->version_min || version < peer->version_min)
		return -SDR_E_VERSION;
	if ((local->required & ~peer->offered) != 0 || (peer->required & ~local->offered) != 0)
		return -SDR_E_FEATURE;
	if (rocev2 && ((local->offered & peer->offered & WIRE_FEATURE_ROCEV2_WIRE) == 0 ||
		       local->generations == 0 || peer->generations == 0))
		return -SDR_E_FEATURE;
	*agreed = (struct wire_agreed){
		.version = version,
		.mode = rocev2 ? WIRE_ROCEV2 : WIRE_SDR,
		.features = local->offered & peer->offered & ~WIRE_FEATURE_USER,
		.payload = (uint32_t)u64_min(local->max_payload, peer->max_payload),
		.chunk_log2 = (uint8_t)u64_max(local->chunk_log2, peer->chunk_log2),
		.channels = u8_min(local->channels, peer->channels),
		.messages_log2 = u8_min(local->messages_log2, peer->messages_log2),
		.generations = rocev2 ? u8_min(local->generations, peer->generations) : 1,
	};
	return 0;
}

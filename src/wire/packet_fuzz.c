/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: data packets in both modes, and the ICRC's two readers. What decodes
 * must encode to the same bytes, ignored bits aside.
 */
#include <string.h>

#include "wire/fuzz.h"
#include "wire/wire.h"

static void check_reencoded(const uint8_t *pkt, const struct wire_data *data)
{
	uint8_t want[WIRE_DATA_HDR_BYTES], hdr[WIRE_DATA_HDR_BYTES];
	struct wire_data_template tmpl;

	memcpy(want, pkt, sizeof(want));
	want[1] &= 0x30; /* SE and M */
	want[2] |= 0x80; /* membership bit of P_Key */
	want[4] = 0;
	want[8] = 0;
	wire_data_template_sdr(&tmpl, data->dest_qpn, data->message, data->imm);
	wire_data_put(hdr, &tmpl, data->psn, data->offset, data->length);
	FUZZ_REQUIRE(memcmp(hdr, want, sizeof(hdr)) == 0);
}

static void check_rocev2(const uint8_t *pkt, size_t len, const struct wire_imm_split *split,
			 int sdr_err)
{
	const uint8_t *payload;
	struct wire_data data;
	int err = wire_data_get(pkt, len, WIRE_ROCEV2, split, &data, &payload);

	/* sdr mode refuses an offset that wraps; otherwise both accept the same. */
	FUZZ_REQUIRE(err == 0 ? sdr_err == 0 || data.va + data.length < data.va : sdr_err == err);
	if (err)
		return;
	FUZZ_REQUIRE(data.message < wire_imm_max_slots(split));
	FUZZ_REQUIRE(data.packet < wire_imm_max_packets(split));
	FUZZ_REQUIRE((wire_imm_pack(split, data.message, data.packet, 0) | data.imm) ==
		     get_be32(pkt + 28));
}

static void check_icrc(const uint8_t *pkt, size_t len)
{
	static const uint8_t src[4] = {10, 0, 0, 1}, dst[4] = {10, 0, 0, 2};
	struct wire_icrc_flow flow;
	uint16_t id, near = len > 2 ? get_be16(pkt + 1) : 0;

	wire_icrc_flow_v4(&flow, src, dst, 4791, 4791, true);
	if (wire_icrc_solve(&flow, pkt, len, &id) == 0) {
		FUZZ_REQUIRE(wire_icrc_check(&flow, id, pkt, len) == 0);
		FUZZ_REQUIRE(wire_icrc_solve_near(&flow, pkt, len, &near) == 0 && near == id);
	} else if (wire_icrc_solve_near(&flow, pkt, len, &near) == 0) {
		wire_icrc_flow_v4(&flow, src, dst, 4791, 4791, false);
		FUZZ_REQUIRE(wire_icrc_check(&flow, near, pkt, len) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *payload;
	struct wire_data out;
	int err = wire_data_get(data, size, WIRE_SDR, NULL, &out, &payload);

	if (err == 0) {
		FUZZ_REQUIRE(payload + out.length <= data + size - WIRE_TRAILER_BYTES);
		check_reencoded(data, &out);
	}
	check_rocev2(data, size, &wire_imm_10_18_4, err);
	check_rocev2(data, size, &wire_imm_8_22_2, err);
	check_icrc(data, size);
	return 0;
}

size_t fuzz_seed(unsigned int i, uint8_t *buf)
{
	static const uint32_t lengths[] = {0, 1, 2, 3, 4, 61, 256};
	struct wire_data_template tmpl;

	if (i >= SDR_ARRAY_LEN(lengths))
		return 0;
	memset(buf, 0xa5, FUZZ_MAX_BYTES);
	wire_data_template_sdr(&tmpl, 0x123456, 0xdeadbeef, 0xcafef00d);

	wire_data_put(buf, &tmpl, 0xabcdef, i == 2 ? UINT64_MAX : i, lengths[i]);
	return wire_data_packet_bytes(lengths[i]);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: any bytes as a frame, through everything that packet.h offers, then over a
 * line with all faults and a NAT. Blocks are as long as promised, so that AddressSanitizer
 * sees what is written beyond.
 */
#include "tool/wan/line.h"
#include "tool/wan/packet.h"
#include "tool/wan/packet_twin.h"

#include "wire/fuzz.h"

#include <string.h>

static uint8_t *copy_of(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	FUZZ_REQUIRE(copy);
	memcpy(copy, data, size);
	return copy;
}

static void check_cut(const uint8_t *data, size_t size, const struct wan_packet *p)
{
	uint32_t first = (uint32_t)data[size - 1] % p->n_segments;
	uint32_t n = 1 + (uint32_t)data[size / 2] % (p->n_segments - first);
	uint8_t *out = malloc(size);
	struct wan_packet piece;
	size_t len, bytes = WAN_VNET_BYTES;

	FUZZ_REQUIRE(out);
	len = wan_packet_cut(data, p, first, n, out);
	FUZZ_REQUIRE(wan_packet_parse(out, len, &piece) == 0);
	FUZZ_REQUIRE(piece.n_segments == n && piece.header_bytes == p->header_bytes);
	FUZZ_REQUIRE(memcmp(&piece.flow, &p->flow, sizeof(p->flow)) == 0);
	bytes += p->header_bytes;
	for (uint32_t i = first; i < first + n; i++)
		bytes += wan_packet_segment_bytes(p, i) - p->header_bytes;
	FUZZ_REQUIRE(len == bytes && len <= size);
	free(out);
}

static void check_edits(const uint8_t *data, size_t size, const struct wan_packet *p)
{
	uint8_t *frame = copy_of(data, size), *error = malloc(WAN_TOO_BIG_MAX);
	struct wan_packet now = *p, again;
	struct wan_port port;
	size_t len;

	FUZZ_REQUIRE(error);
	wan_packet_mark_ce(frame, &now);
	for (int inside = 0; inside < 2; inside++) {
		if (!wan_packet_port(frame, size, &now, inside, &port))
			continue;
		wan_packet_set_port(frame, &now, &port, 4711);
		FUZZ_REQUIRE(wan_packet_port(frame, size, &now, inside, &port));
		FUZZ_REQUIRE(port.value == 4711);
		FUZZ_REQUIRE(wan_packet_parse(frame, size, &again) == 0);
		FUZZ_REQUIRE(memcmp(&again.flow, &now.flow, sizeof(now.flow)) == 0);
	}
	len = wan_packet_too_big(frame, size, &now, 1000, error);
	FUZZ_REQUIRE(len <= WAN_TOO_BIG_MAX);
	if (len) {
		FUZZ_REQUIRE(wan_packet_parse(error, len, &again) == 0);
		FUZZ_REQUIRE(wan_packet_too_big(error, len, &again, 1, frame) == 0);
		if (wan_packet_port(error, len, &again, false, &port))
			wan_packet_set_port(error, &again, &port, 4711);
	}
	if (now.n_segments == 1)
		wan_packet_corrupt(frame, size, data[size / 2]);
	free(frame);
	free(error);
}

static struct wan_line *make_line(void)
{
	static struct wan_config config;
	struct wan_line *line = NULL;

	config = (struct wan_config){.seed = 1, .n_paths = 2, .nat = true};
	for (uint32_t c = 0; c < 4; c++)
		config.path[c % 2][c / 2].attr = (struct link_attr){
			.mtu_bytes = 400,
			.rate_bps = 100000000,
			.delay_ns = 1000,
			.jitter_ns = 1000,
			.jitter_reorders = c & 1,
			.ecn_bytes = 500,
			.loss = {.loss_good = 0.1},
			.reorder_p = 0.1,
			.reorder_ns = 10000,
			.duplicate_p = 0.1,
			.corrupt_p = 0.1,
		};
	FUZZ_REQUIRE(wan_line_create(&config, 0, &sdr_alloc_system, &line) == 0);
	return line;
}

/* One line for all inputs: what a frame leaves behind must not hurt the next. */
static void check_line(const uint8_t *data, size_t size)
{
	static struct wan_line *line;
	static uint64_t now_ns;
	struct wan_frame out;
	uint8_t *buffer;

	if (!line)
		line = make_line();
	buffer = wan_line_buffer(line);
	FUZZ_REQUIRE(buffer);
	memcpy(buffer, data, size);
	wan_line_offer(line, size & 1 ? WAN_A : WAN_B, now_ns, size);
	now_ns += 20000;
	while (wan_line_take(line, now_ns, &out))
		FUZZ_REQUIRE(out.len > WAN_VNET_BYTES && out.len <= WAN_FRAME_MAX);
	wan_line_check(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wan_packet p;

	if (size > WAN_FRAME_MAX)
		return 0;
	check_line(data, size);
	if (wan_packet_parse(data, size, &p) != 0)
		return 0;
	FUZZ_REQUIRE(p.n_segments >= 1);
	FUZZ_REQUIRE(p.header_bytes + p.payload_bytes == size - WAN_VNET_BYTES);
	FUZZ_REQUIRE(p.ip_bytes <= p.header_bytes);
	check_cut(data, size, &p);
	check_edits(data, size, &p);
	return 0;
}

size_t fuzz_seed(unsigned int i, uint8_t *buf)
{
	struct twin_spec spec = {.v6 = i & 1,
				 .udp = i & 2,
				 .options_bytes = i & 4 ? 8 : 0,
				 .segment_bytes = i & 8 ? 200 : 0,
				 .payload_bytes = 700,
				 .tos = 2,
				 .sport = 1000,
				 .dport = 2000,
				 .fill = i};
	uint8_t error[WAN_TOO_BIG_MAX];
	struct wan_packet p;
	size_t len;

	if (i >= 20)
		return 0;
	len = twin_build(&spec, buf);
	if (i < 16)
		return len;
	/* ICMP errors with a quote. */
	FUZZ_REQUIRE(wan_packet_parse(buf, len, &p) == 0);
	len = wan_packet_too_big(buf, len, &p, 600, error);
	memcpy(buf, error, len);
	return len;
}

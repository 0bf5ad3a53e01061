/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a capture of our packets for outside judges, and what should be in it:
 *
 *	wire_emit FILE.pcap > expected.txt
 *
 * One line a packet: mode, IP version, IPv4 identification, opcode, destination QP,
 * PSN, VA, R_Key, DMA length, ImmDt (0 for what a packet does not have), and the
 * trailer. All packets go to port 4791 so that dissectors know what they are.
 * Knows nothing of sockets: frames are built by hand.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protect/protect.h"
#include "wire/wire.h"

#define ETH_BYTES 14
#define DEST_QPN 0x123456u
#define SPORT 49152
#define DPORT 4791
#define TOKEN UINT64_C(0x0123456789abcdef)

static const uint8_t src4[4] = {192, 0, 2, 1}, dst4[4] = {198, 51, 100, 2};
static const uint8_t src6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1};
static const uint8_t dst6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 2};

/* Where a packet goes, and whose trailer it gets. */
struct route {
	bool v6;
	uint16_t ip_id;
	enum wire_mode mode;
};

/* pcap is in the writer's byte order; the magic number says which that is. */
static void put_pcap_header(FILE *out)
{
	const uint32_t header[6] = {0xa1b2c3d4u, 2 | 4 << 16, 0, 0, 65535, 1 /* Ethernet */};

	fwrite(header, sizeof(header), 1, out);
}

static uint16_t ip_checksum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += get_be16(ip + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* Ethernet, IP and UDP headers for a UDP payload of len bytes; their length. */
static size_t put_headers(uint8_t *frame, const struct route *route, size_t len)
{
	uint8_t *ip = frame + ETH_BYTES;
	uint8_t *udp = ip + (route->v6 ? 40 : 20);

	memset(frame, 0, (size_t)(udp + 8 - frame));
	frame[0] = frame[6] = 2;
	put_be16(frame + 12, route->v6 ? 0x86dd : 0x0800);
	/* TOS, TTL, flow label and the rest of what the ICRC masks: anything but ones. */
	if (route->v6) {
		put_be32(ip, 0x60212345);
		put_be16(ip + 4, (uint16_t)(8 + len));
		ip[6] = 17;
		ip[7] = 63;
		memcpy(ip + 8, src6, 16);
		memcpy(ip + 24, dst6, 16);
	} else {
		ip[0] = 0x45;
		ip[1] = 0x02;
		put_be16(ip + 2, (uint16_t)(28 + len));
		put_be16(ip + 4, route->ip_id);
		ip[6] = 0x40;
		ip[8] = 61;
		ip[9] = 17;
		memcpy(ip + 12, src4, 4);
		memcpy(ip + 16, dst4, 4);
		put_be16(ip + 10, ip_checksum(ip));
	}
	put_be16(udp, SPORT);
	put_be16(udp + 2, DPORT);
	put_be16(udp + 4, (uint16_t)(8 + len));
	return (size_t)(udp + 8 - frame);
}

/* A header and a payload become a whole UDP payload with its mode's trailer. */
static size_t seal(const struct route *route, uint8_t *pkt, size_t hdr_len, size_t len)
{
	unsigned int pad = wire_pad_bytes(len);
	uint8_t *trailer = pkt + hdr_len + len + pad;

	memset(pkt + hdr_len + len, 0, pad);
	if (route->mode == WIRE_ROCEV2) {
		struct wire_icrc_packet packet = {pkt, hdr_len, pkt + hdr_len, len, pad};
		struct wire_icrc_flow flow;

		if (route->v6)
			wire_icrc_flow_v6(&flow, src6, dst6, SPORT, DPORT);
		else
			wire_icrc_flow_v4(&flow, src4, dst4, SPORT, DPORT, true);
		wire_icrc_seal(&flow, route->ip_id, &packet, trailer);
	} else {
		struct protect_packet packet = {pkt, hdr_len, pkt + hdr_len, len, pad};
		struct protect_key key;

		protect_checksum_key(&key, TOKEN);
		protect_seal(&key, &packet, trailer);
	}
	return (size_t)(trailer + 4 - pkt);
}

static void emit(FILE *out, const struct route *route, const uint8_t *pkt, size_t len)
{
	uint8_t frame[ETH_BYTES + 48 + 2048];
	uint32_t record[4] = {0, 0, 0, 0};
	size_t headers = put_headers(frame, route, len);

	memcpy(frame + headers, pkt, len);
	record[2] = record[3] = (uint32_t)(headers + len);
	fwrite(record, sizeof(record), 1, out);
	fwrite(frame, headers + len, 1, out);
	printf("%s %d %u ", route->mode == WIRE_ROCEV2 ? "rocev2" : "sdr", route->v6 ? 6 : 4,
	       route->ip_id);
}

static void emit_data(FILE *out, const struct route *route, uint32_t psn, uint32_t length)
{
	const struct wire_rocev2_message message = {.split = &wire_imm_10_18_4,
						    .slot = 5,
						    .slot_bytes = UINT64_C(1) << 30,
						    .rkey = 0x00c0ffee,
						    .user_imm = 0xcafef00d,
						    .payload_bytes = 1024};
	struct wire_data_template tmpl;
	uint8_t pkt[2048];
	size_t len;

	if (route->mode == WIRE_SDR)
		wire_data_template_sdr(&tmpl, DEST_QPN, 0xdeadbeef, 0xcafef00d);
	else
		wire_data_template_rocev2(&tmpl, DEST_QPN, &message);
	wire_data_put(pkt, &tmpl, psn, UINT64_C(3) << 10, length);
	for (uint32_t i = 0; i < length; i++)
		pkt[WIRE_DATA_HDR_BYTES + i] = (uint8_t)(i * 7 + 1);
	len = seal(route, pkt, WIRE_DATA_HDR_BYTES, length);
	emit(out, route, pkt, len);
	printf("0x%02x 0x%06x %u 0x%016" PRIx64 " 0x%08x %u 0x%08x %08x\n", pkt[0], DEST_QPN, psn,
	       get_be64(pkt + 12), get_be32(pkt + 20), length, get_be32(pkt + 28),
	       get_be32(pkt + len - 4));
}

/* An ACK's body: a window with a hole, a channel, two blocks that lack symbols. */
static size_t put_ack(uint8_t *body, size_t cap)
{
	static const struct wire_ack_channel channel = {
		.flags = WIRE_ACK_PSN_VALID, .newest_psn = 77, .age_ns = 1000, .received = 300};
	static const uint64_t bits = 0xfffff0ff;
	struct wire_ack_enc enc;

	if (wire_ack_begin(&enc, body, cap, 1, 1) != 0)
		return 0;
	wire_ack_window_from_bits(&enc, 2, 0, 32, &bits);
	wire_ack_channel_put(&enc, &channel);
	wire_ack_deficit_put(&enc, 2, 1, 1);
	wire_ack_deficit_put(&enc, 2, 300, 3);
	return (size_t)wire_ack_end(&enc);
}

static void emit_ctrl(FILE *out, const struct route *route, uint32_t psn)
{
	const struct wire_ctrl_header header = {
		.dest_qpn = DEST_QPN, .src_qpn = 0x42, .psn = psn, .qkey = 0x11111111};
	uint8_t pkt[256];
	uint8_t *body = pkt + WIRE_CTRL_HDR_BYTES;
	uint8_t ack[128];
	size_t at, len;

	at = (size_t)wire_ctrl_body_put(body, 64, TOKEN, 1);
	at += (size_t)wire_msg_put(body + at, 64, WIRE_MSG_WANT, "\0\0\0\5", 4);
	at += (size_t)wire_msg_put(body + at, 132, WIRE_MSG_ACK, ack, put_ack(ack, sizeof(ack)));
	at += (size_t)wire_msg_put(body + at, 64, WIRE_MSG_USER, "sdr", 3);
	wire_ctrl_put_header(pkt, &header, at);
	len = seal(route, pkt, WIRE_CTRL_HDR_BYTES, at);
	emit(out, route, pkt, len);
	printf("0x%02x 0x%06x %u 0 0 0 0 %08x\n", pkt[0], DEST_QPN, psn, get_be32(pkt + len - 4));
}

int main(int argc, char **argv)
{
	static const struct route routes[] = {
		{false, 0, WIRE_ROCEV2}, {false, 7, WIRE_ROCEV2}, {false, 65535, WIRE_ROCEV2},
		{true, 0, WIRE_ROCEV2},	 {false, 0, WIRE_SDR},	  {true, 0, WIRE_SDR},
	};
	static const uint32_t lengths[] = {0, 1, 2, 3, 4, 1436};
	uint32_t psn = 0xfffff8;
	FILE *out;

	if (argc != 2) {
		fprintf(stderr, "usage: wire_emit FILE.pcap\n");
		return 2;
	}
	out = fopen(argv[1], "wb");
	if (!out) {
		fprintf(stderr, "wire_emit: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	put_pcap_header(out);
	for (size_t r = 0; r < SDR_ARRAY_LEN(routes); r++) {
		for (size_t i = 0; i < SDR_ARRAY_LEN(lengths); i++)
			emit_data(out, &routes[r], psn++ & WIRE_PSN_MASK, lengths[i]);
		emit_ctrl(out, &routes[r], psn++ & WIRE_PSN_MASK);
	}
	return fclose(out) ? 1 : 0;
}

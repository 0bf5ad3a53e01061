/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data packets' templates and decoder, and the check of BTH that control datagrams
 * share. Knows nothing of trailers' contents. Layout: packet.h.
 */
#include "wire/packet.h"

#include <errno.h>

#define BTH_TVER_MASK 0x0fu
#define BTH_PAD_SHIFT 4
#define BTH_PAD_MASK 3u
/* Bit 15 of a P_Key says full or limited member; both are in the partition. */
#define PKEY_MASK 0x7fffu

static void put_template_head(struct wire_data_template *tmpl, uint32_t dest_qpn)
{
	memset(tmpl, 0, sizeof(*tmpl));
	tmpl->hdr[0] = WIRE_OP_DATA;
	put_be16(tmpl->hdr + 2, WIRE_PKEY_DEFAULT);
	put_be24(tmpl->hdr + 5, dest_qpn);
}

void wire_data_template_sdr(struct wire_data_template *tmpl, uint32_t dest_qpn, uint32_t message,
			    uint32_t imm)
{
	put_template_head(tmpl, dest_qpn);
	tmpl->mode = WIRE_SDR;
	put_be32(tmpl->hdr + 20, message);
	put_be32(tmpl->hdr + 28, imm);
}

int wire_data_template_rocev2(struct wire_data_template *tmpl, uint32_t dest_qpn,
			      const struct wire_rocev2_message *message)
{
	uint32_t payload = message->payload_bytes;

	if (payload < 256 || payload > 4096 || (payload & (payload - 1)) != 0 ||
	    message->slot >= wire_imm_max_slots(message->split))
		return -EINVAL;
	put_template_head(tmpl, dest_qpn);
	tmpl->mode = WIRE_ROCEV2;
	tmpl->split = *message->split;
	tmpl->slot = message->slot;
	tmpl->user_imm = message->user_imm;
	tmpl->va_base = message->slot * message->slot_bytes;
	while (UINT32_C(1) << tmpl->payload_shift != payload)
		tmpl->payload_shift++;
	put_be32(tmpl->hdr + 20, message->rkey);
	return 0;
}

int wire_peek(const uint8_t *pkt, size_t len, uint8_t *opcode, uint32_t *dest_qpn)
{
	if (len < WIRE_BTH_BYTES + WIRE_TRAILER_BYTES)
		return -EMSGSIZE;
	if ((pkt[0] != WIRE_OP_DATA && pkt[0] != WIRE_OP_CTRL) || (pkt[1] & BTH_TVER_MASK) != 0 ||
	    (get_be16(pkt + 2) & PKEY_MASK) != (WIRE_PKEY_DEFAULT & PKEY_MASK))
		return -EBADMSG;
	*opcode = pkt[0];
	*dest_qpn = get_be24(pkt + 5);
	return 0;
}

int wire_data_get(const uint8_t *pkt, size_t len, enum wire_mode mode,
		  const struct wire_imm_split *split, struct wire_data *out,
		  const uint8_t **payload)
{
	uint8_t opcode;
	unsigned int pad;
	int err = wire_peek(pkt, len, &opcode, &out->dest_qpn);

	if (err)
		return err;
	if (opcode != WIRE_OP_DATA)
		return -EBADMSG;
	if (len < WIRE_DATA_HDR_BYTES + WIRE_TRAILER_BYTES)
		return -EMSGSIZE;
	out->psn = get_be24(pkt + 9);
	out->va = get_be64(pkt + 12);
	out->rkey = get_be32(pkt + 20);
	out->length = get_be32(pkt + 24);
	out->imm = get_be32(pkt + 28);
	pad = (unsigned int)pkt[1] >> BTH_PAD_SHIFT & BTH_PAD_MASK;
	/* length is below 2^32 and size_t has 64 bits: the sum can't wrap. */
	if (pad != wire_pad_bytes(out->length) || wire_data_packet_bytes(out->length) != len)
		return -EBADMSG;
	if (mode == WIRE_SDR) {
		out->message = out->rkey;
		out->offset = out->va;
		out->packet = 0;
		if (out->offset + out->length < out->offset)
			return -EBADMSG;
	} else {
		wire_imm_unpack(split, out->imm, &out->message, &out->packet, &out->imm);
		out->offset = 0;
	}
	*payload = pkt + WIRE_DATA_HDR_BYTES;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control datagrams: headers, and the walk over their messages.
 * Knows nothing of what is in a message. Layout: ctrl.h.
 */
#include "wire/ctrl.h"

#include <errno.h>

#include "wire/cursor.h"

enum wire_msg_class wire_msg_classify(uint8_t type)
{
	if (type >= WIRE_MSG_USER)
		return WIRE_CLASS_USER;
	if (type >= WIRE_MSG_RESERVED)
		return WIRE_CLASS_RESERVED;
	if (type < WIRE_MSG_PING || type > WIRE_MSG_LAST_KNOWN || type == WIRE_MSG_UNUSED)
		return WIRE_CLASS_UNKNOWN;
	return WIRE_CLASS_KNOWN;
}

void wire_ctrl_put_header(uint8_t hdr[WIRE_CTRL_HDR_BYTES], const struct wire_ctrl_header *header,
			  size_t body_len)
{
	memset(hdr, 0, WIRE_CTRL_HDR_BYTES);
	hdr[0] = WIRE_OP_CTRL;
	hdr[1] = (uint8_t)(wire_pad_bytes(body_len) << 4);
	put_be16(hdr + 2, WIRE_PKEY_DEFAULT);
	put_be24(hdr + 5, header->dest_qpn);
	put_be24(hdr + 9, header->psn);
	put_be32(hdr + 12, header->qkey);
	put_be24(hdr + 17, header->src_qpn);
}

int wire_ctrl_get(const uint8_t *pkt, size_t len, struct wire_ctrl_header *out,
		  const uint8_t **body, size_t *body_len)
{
	uint8_t opcode;
	size_t pad, around;
	int err = wire_peek(pkt, len, &opcode, &out->dest_qpn);

	if (err)
		return err;
	if (opcode != WIRE_OP_CTRL)
		return -EBADMSG;
	pad = (size_t)pkt[1] >> 4 & 3;
	around = WIRE_CTRL_HDR_BYTES + pad + WIRE_TRAILER_BYTES;
	if (len < around)
		return -EMSGSIZE;
	if (pad != wire_pad_bytes(len - around))
		return -EBADMSG;
	out->psn = get_be24(pkt + 9);
	out->qkey = get_be32(pkt + 12);
	out->src_qpn = get_be24(pkt + 17);
	*body = pkt + WIRE_CTRL_HDR_BYTES;
	*body_len = len - around;
	return 0;
}

int wire_ctrl_body_put(uint8_t *buf, size_t cap, uint64_t token, uint64_t number)
{
	struct wire_writer w = wire_writer_init(buf, cap);

	wire_give_u64(&w, token);
	wire_give_u64(&w, number);
	return wire_writer_result(&w);
}

void wire_msg_put_header(uint8_t hdr[WIRE_MSG_HDR_BYTES], uint8_t type, uint16_t len)
{
	hdr[0] = type;
	hdr[1] = 0;
	put_be16(hdr + 2, len);
}

int wire_msg_put(uint8_t *buf, size_t cap, uint8_t type, const void *body, size_t len)
{
	if (len > UINT16_MAX || cap < WIRE_MSG_HDR_BYTES + len)
		return -ENOSPC;
	wire_msg_put_header(buf, type, (uint16_t)len);
	if (len)
		memcpy(buf + WIRE_MSG_HDR_BYTES, body, len);
	return (int)(WIRE_MSG_HDR_BYTES + len);
}

int wire_ctrl_begin(const uint8_t *body, size_t len, struct wire_msgs *it, uint64_t *token,
		    uint64_t *number)
{
	size_t at = WIRE_CTRL_BODY_HDR_BYTES;

	if (len < WIRE_CTRL_BODY_HDR_BYTES)
		return -EMSGSIZE;
	while (at < len) {
		size_t left = len - at;
		size_t need = WIRE_MSG_HDR_BYTES;

		if (left >= need)
			need += get_be16(body + at + 2);
		if (left < need)
			return -EBADMSG;
		at += need;
	}
	*token = get_be64(body);
	*number = get_be64(body + 8);
	it->at = body + WIRE_CTRL_BODY_HDR_BYTES;
	it->left = len - WIRE_CTRL_BODY_HDR_BYTES;
	return 0;
}

int wire_ctrl_next(struct wire_msgs *it, struct wire_msg *msg)
{
	size_t bytes;

	if (it->left == 0)
		return 0;
	msg->type = it->at[0];
	msg->flags = it->at[1];
	msg->class = wire_msg_classify(msg->type);
	msg->len = get_be16(it->at + 2);
	msg->body = it->at + WIRE_MSG_HDR_BYTES;
	bytes = WIRE_MSG_HDR_BYTES + msg->len;
	it->at += bytes;
	it->left -= bytes;
	return 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire/: the bytes. Front door; include this one.
 *
 * Encodes plain structs into bytes and checks bytes into plain structs, once, in
 * one place for each format. Deliberately knows nothing of sockets, clocks,
 * memory allocation, connections or what a message means: those who call it own
 * all state. Everything on the wire is big endian unless a drawing says otherwise.
 *
 *	packet.h   RoCEv2 UC data packets (both wire modes) and the demultiplexer's peek
 *	imm.h      the 32-bit immediate of rocev2 mode: slot, packet, user fragment
 *	icrc.h     the trailer of rocev2 mode (sdr mode's trailer is protect/)
 *	ctrl.h     UD control datagrams and the messages in them
 *	msg.h      the short messages' bodies
 *	cts.h      CTS, the grants
 *	runs.h     received/missing runs, for
 *	ack.h      ACK
 *	blob.h     the handshake blob
 *
 * Conventions. Encoders take (buf, cap) and return the length or -ENOSPC, and write
 * nothing beyond cap. Decoders return 0 (iterators: 1 for "one more", 0 for "no
 * more") or
 *	-EMSGSIZE  shorter than the format's fixed part
 *	-EBADMSG   long enough, but malformed
 * and leave no pointer outside the buffer they were given. Message bodies may grow
 * at their end in later versions: bytes after what a decoder knows are ignored.
 */
#ifndef SDR_WIRE_WIRE_H
#define SDR_WIRE_WIRE_H

#include "wire/imm.h"
#include "wire/packet.h"
#include "wire/icrc.h"
#include "wire/ctrl.h"
#include "wire/msg.h"
#include "wire/cts.h"
#include "wire/runs.h"
#include "wire/ack.h"
#include "wire/blob.h"

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rel/: reliability of one direction of one connection. Front door; include this one.
 *
 * Decides which packets of which messages are sent, sent again, and acknowledged.
 * Pure functions of (state, event, now): arrival facts, messages and time go in, ranges
 * of packets, ACK bodies and accounting facts come out. No I/O, clock, threads or
 * callbacks; memory comes from the struct sdr_alloc given at init.
 *
 *	scheme.h   schemes by resending and by codes: one parameter set, and the names that
 *	           people type
 *	rtt.h      round-trip estimator and retransmission timeout
 *	est.h      what a path does to packets, estimated: loss and bursts
 *	tx.h       the sender: what to send next (data, parity, repair), what an ACK says, timers
 *	           and probes
 *	rx.h       the receiver: which blocks can be decoded, when an ACK is due and what is in it
 *
 * Codes. A coded message's packets are dealt to blocks, and parity symbols of each are packets of
 * another message, which rel/ counts but never looks into: which packet is which symbol is
 * code/'s layout, who makes and uses the bytes is the owner. The receiver counts the symbols of
 * each block and tells in ACKs which blocks lack some; the sender believes it when it knows that
 * all it sent of the block has had its time.
 *
 * Deliberately knows nothing of memory, offsets, bytes, grants, channels' addresses or
 * windows: conn/ asks rel_tx_next() only while congestion control has room, and gives
 * what rel_tx_ack() reports to cc/.
 *
 * Units. A *unit* is REL_UNIT packets of a message, aligned: one bitmap word. No range
 * that leaves this layer crosses a unit's edge. Time is ns of any monotonic clock that
 * starts above 0; times handed to one object must not go back.
 */
#ifndef SDR_REL_REL_H
#define SDR_REL_REL_H

#include "rel/scheme.h"
#include "rel/rtt.h"
#include "rel/est.h"
#include "rel/tx.h"
#include "rel/rx.h"

#endif

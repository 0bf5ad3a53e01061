/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which IPv4 identifications are believed. ICRC covers the identification, a UDP socket
 * never sees it, so wire_icrc_solve() finds the one that would make the ICRC right: damage
 * passes for some identification once in 65536. This rule asks for a likely one and wins
 * back some of what that gives away. IPv6 has no identification and needs none of this.
 *
 *	sender				identification
 *	a UDP socket, as ours		0, or 0, 1, 2 .. 63 within one segmented send
 *	the kernel's Soft-RoCE		a counter shared by all that goes from its host to ours;
 *					after a pause it may skip one a clock tick (1000 a second)
 *	a NIC				a counter, of the port or of a queue pair
 *
 * So: a segment's index is believed; so is what lies shortly after the last one (or a little
 * before: packets overtake each other); so is the first. Anything else is refused, until
 * IPID_RESYNC in a row agree with each other. Pure; one 64-bit word of state, so that threads
 * may share it: whoever stores last wins, and both were right.
 */
#ifndef SDR_FABRIC_IPID_H
#define SDR_FABRIC_IPID_H

#include <stdbool.h>
#include <stdint.h>

#define IPID_SEGMENTS 64u /* packets in a segmented send */
#define IPID_AHEAD 4096u  /* the most that is skipped at once: other connections' packets */
#define IPID_BEHIND 1024u /* the most that is overtaken */
#define IPID_PER_MS 1u	  /* what a pause adds */
#define IPID_AHEAD_MAX 32767u
#define IPID_RESYNC 16u

/* Zero: nothing seen. */
#define IPID_NONE UINT64_C(0)

/* A segment's index: needs no state. */
static inline bool ipid_is_segment(uint16_t id)
{
	return id < IPID_SEGMENTS;
}

/* The identification seen last, 0 if there is none: the best guess is the next one. */
uint16_t ipid_last(uint64_t state);

/*
 * Is this identification to be believed, by this counter? Near the last one; or the first; or
 * the IPID_RESYNC-th in a row, near no last one, that lies shortly after the one before it.
 */
bool ipid_judge(uint64_t *state, uint16_t id, uint64_t now_ns);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A NAT in front of one host: inside (protocol, port) <-> outside port, endpoint-independent
 * mapping (RFC 4787, section 4.1). Rebinding forgets every mapping: the next packet from
 * inside gets a new outside port, and what comes to an old one is lost. That is what a
 * connection sees when a NAT reboots or its timer runs out.
 *
 * Pure: no clock, no allocation; outside ports come from the seed. The owner rewrites the
 * packets. A packet of either direction uses a mapping. When the table is full the least
 * recently used one is forgotten. Time never goes back: an earlier now counts as the last one.
 *
 * Invariants: (1) inside (protocol, port) and outside ports are each unique; (2) outside ports
 * are in [LINK_NAT_PORT_MIN, 65535]; (3) a new mapping's outside port is none that another one
 * had in the last 64,000 mappings.
 */
#ifndef SDR_LINK_NAT_H
#define SDR_LINK_NAT_H

#include <stdint.h>

#define LINK_NAT_MAPPINGS 256u
#define LINK_NAT_PORT_MIN 1024u

struct link_nat_mapping {
	uint64_t used_ns;
	uint64_t use;		  /* number of its last use: orders those of the same time */
	uint16_t inside, outside; /* inside 0: free */
	uint8_t proto;
};

struct link_nat {
	struct link_nat_mapping map[LINK_NAT_MAPPINGS];
	uint8_t hint[2]
		    [LINK_NAT_MAPPINGS]; /* [inside]: where a port was found last; may be wrong */
	uint32_t port, port_step;	 /* the outside ports' round */
	uint64_t now_ns;
	uint64_t uses;
	uint64_t timeout_ns; /* a mapping unused for so long is forgotten; 0: never */
	uint64_t every_ns;   /* rebinds every ...; 0: never by itself */
	uint64_t next_ns;
	uint64_t rebinds;	 /* where by itself: counted with the next packet */
	uint64_t forgotten_pkts; /* packets from outside to no mapping */
};

void link_nat_init(struct link_nat *nat, uint64_t seed, uint64_t timeout_ns, uint64_t every_ns,
		   uint64_t now_ns);
/* Forgets every mapping now. */
void link_nat_rebind(struct link_nat *nat);
/* The outside port of a packet from inside. Port 0 is not mapped: 0. */
uint16_t link_nat_out(struct link_nat *nat, uint64_t now_ns, uint8_t proto, uint16_t inside);
/* The inside port of a packet from outside; 0: no mapping, the packet is lost. */
uint16_t link_nat_in(struct link_nat *nat, uint64_t now_ns, uint8_t proto, uint16_t outside);
void link_nat_check(const struct link_nat *nat);

#endif

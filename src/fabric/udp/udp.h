/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/udp: a RoCEv2 endpoint in user space on plain UDP sockets: no privileges, any Linux
 * host, IPv4 and IPv6. *sdr* mode to its like, through NATs; *rocev2* mode to RDMA NICs, the
 * kernel's Soft-RoCE and its like. Front door; the contract is fabric.h.
 *
 *	udp.c     device and QPs: open, close, the table of operations
 *	sock.c    sockets: buffers, offloads, route MTU, sharing by peer
 *	tx.c      runs and control datagrams to system calls; what to do when they fail
 *	rxloop.c  sockets to deliver.h; control datagrams to the event ring
 *	worker.c  receiving threads, quiescence
 *	events.c  what the workers found, as fabric events; waiting
 *	paths.c   which address is which channel; candidates
 *	rocev2.c  what the other mode adds: QP numbers, keys, hosts, what an ICRC covers
 *	addr.c    addresses in one form
 *
 * A channel is a source port of the active end. All QPs of a device to one peer share
 * its sockets, so ten thousand connections do not need ten thousand sockets. Any socket
 * may yield any connection's packet: QPs are found by number, never by socket.
 *
 * rocev2 mode: one process an address, on port 4791, which is fixed; so nothing is learnt
 * about peers. One socket hears all (with workers: one for each, the kernel deals channels
 * out). A channel has a socket of its own to send from, whose port tells channels apart on the
 * way. It is not connected: then the kernel gives packets that must not be fragmented the
 * identification 0, and 0, 1, 2 .. to the segments of one send, and ICRC covers those.
 *
 * It deliberately knows nothing of what control datagrams say.
 */
#ifndef SDR_FABRIC_UDP_UDP_H
#define SDR_FABRIC_UDP_UDP_H

#include "fabric/fabric.h"
#include <stdbool.h>
#include <stdint.h>

#define UDP_FABRIC_DEFAULT_SOCKBUF_BYTES (32u << 20)
#define UDP_FABRIC_DEFAULT_MAX_QPS 1024u
#define UDP_FABRIC_LIMIT_QPS 65536u
#define UDP_FABRIC_DEFAULT_MAX_PAYLOAD 16384u /* a route may say 65,536 (loopback) */
#define UDP_FABRIC_LIMIT_PAYLOAD 65000u

struct udp_fabric_attr {
	const char *bind_addr;	/* numeric; NULL: any, of both families where there are two */
	uint16_t listen_port;	/* with listen: 0 takes a free one, see fabric_caps.udp_port */
	bool listen;		/* false: this end only opens channels */
	uint32_t workers;	/* receiving threads; 0: poll() receives */
	uint32_t sockbuf_bytes; /* wished for, each way and socket; 0: 32 MiB */
	uint32_t max_qps;	/* 0: 1024 */
	bool no_gso, no_gro;	/* one packet at a time */
	bool ecn;		/* mark what is sent ECN-capable: for those who react to CE */
	uint32_t max_payload;	/* 0: as the route's MTU allows, at most 16 KiB (rocev2: 4 KiB) */
	/*
	 * *rocev2* mode: RDMA devices are peers. `listen` is implied, listen_port is 0 or 4791,
	 * max_payload 0 or at least 1024 (of it, the largest power of two counts).
	 */
	bool rocev2;
};

/*
 * Opens a device. 0; -EADDRINUSE: somebody listens on that port (rocev2: another process in
 * this mode, or the kernel's Soft-RoCE, which takes 4791 on all addresses while rdma_rxe is
 * loaded); -EINVAL: an attribute out of its range or an address that is none; or what the
 * system said.
 */
int udp_fabric_open(const struct udp_fabric_attr *attr, struct fabric **out);

#endif

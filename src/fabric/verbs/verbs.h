/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/verbs: RDMA devices, through libibverbs: UC queue pairs for data, one UD queue pair for
 * control, *rocev2* mode. Front door; the contract is fabric.h.
 *
 *	find.c     which devices, ports and GIDs there are, and which to take; no fabric needed
 *	verbs.c    the device: open, close, the table of operations, advice
 *	probe.c    the self-test at open: a late packet at a dead key hurts nobody
 *	qp.c       QPs: their transport queue pairs, connecting, reviving, slots
 *	tx.c       runs to linked work requests; the bounce ring; tx_busy
 *	rx.c       completions to bits; control datagrams to the event ring; refilling
 *	keys.c     keys that die with their fence, by registering each receive
 *	mlx5.c     keys that are pointed elsewhere (optional, opt-in)
 *	events.c   events, sleeping, what the device tells asynchronously
 *
 * Only few devices have UC: mlx5, mlx4, mthca and Soft-RoCE (rxe). Others are refused by name.
 * Packets of one generation and channel share a UC queue pair, so each consumes a receive work
 * request there; where none is left, the device drops the packet, which looks like loss.
 *
 * After fork() the child must not use a fabric, nor close it; the parent goes on.
 *
 * It deliberately knows nothing of what control datagrams say, and nothing of packets on the
 * wire: the device makes and checks them.
 */
#ifndef SDR_FABRIC_VERBS_VERBS_H
#define SDR_FABRIC_VERBS_VERBS_H

#include "fabric/fabric.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VERBS_DEFAULT_RQ_DEPTH 2048u
#define VERBS_DEFAULT_SQ_DEPTH 256u
#define VERBS_DEFAULT_MAX_QPS 1024u
#define VERBS_DEFAULT_BOUNCE_BYTES (4u << 20)
#define VERBS_MIN_RQ_DEPTH 128u /* a train fits into what is left before a refill */
#define VERBS_MAX_DEPTH 65536u
#define VERBS_LIMIT_QPS 65536u
#define VERBS_WHY_MAX 2048u /* enough for any sentence of verbs_fabric_open() */

/* How a receive's key stops working when the message is fenced. */
enum verbs_keys {
	VERBS_KEYS_AUTO,  /* by the environment's SDR_VERBS_KEYS ("rereg", "mlx5"), else REREG */
	VERBS_KEYS_REREG, /* each receive is registered, and deregistered by its fence */
	/* A slot's indirect key is pointed at a NULL region. By the manual pages; no hardware
	 * has run it. -EOPNOTSUPP where it was not built or the device is no mlx5. */
	VERBS_KEYS_MLX5,
};

/* All zero: the first active port of the first device that has UC. */
struct verbs_fabric_attr {
	const char *device;    /* "rxe0", "mlx5_0"; NULL: the first that fits */
	uint32_t port;	       /* 0: the first active one */
	bool gid_index_set;    /* take gid_index, whatever it is */
	uint32_t gid_index;    /* else: chosen, see find.h */
	const char *bind_addr; /* numeric IP that the GID must carry; NULL: any */
	uint32_t rq_depth;     /* receives posted on a UC queue pair in use; 0: 2048 */
	uint32_t sq_depth;     /* packets under way on one; at least FABRIC_RUN_MAX; 0: 256 */
	uint32_t max_qps;      /* 0: 1024 */
	uint32_t max_payload;  /* 0: the port's MTU; else 1024, 2048 or 4096, at most that */
	uint32_t bounce_bytes; /* for sends from memory without mr; 0: 4 MiB */
	enum verbs_keys keys;
	bool no_probe; /* leave the self-test out: for tests of it */
};

/*
 * Opens a device. 0, or -errno, and then `why` is a sentence for a person: which device, port
 * and GID, what is wrong and what to do. -ENODEV: no such device, or none; -EOPNOTSUPP: it has
 * no UC, or keys that this strategy needs; -ENETDOWN: the port is not active; -EADDRNOTAVAIL:
 * no GID as asked for; -EMSGSIZE: its MTU is below 1024; -ENOMEM: locked memory; -EINVAL: an
 * attribute out of its range; -EPROTO: the self-test failed.
 */
int verbs_fabric_open(const struct verbs_fabric_attr *attr, struct fabric **out, char *why,
		      size_t why_len);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several paths between two hosts, chosen by a hash over the 5-tuple, as routers do (ECMP):
 * a flow stays on its path, each path has its own values, one can be cut. The owner keeps
 * one `struct link` for each path and direction.
 *
 * Pure. It deliberately knows nothing of packets' bytes: the owner takes the tuple out.
 */
#ifndef SDR_LINK_PATHS_H
#define SDR_LINK_PATHS_H

#include <stdint.h>

#define LINK_MAX_PATHS 16u

/* Addresses of IPv4 stand in the last 4 bytes behind ::ffff; ports are 0 where the protocol
 * has none (also in fragments). Ports in host order. */
struct link_flow {
	uint8_t src[16], dst[16];
	uint16_t sport, dport;
	uint8_t proto;
};

/* Which of n_paths (1 .. LINK_MAX_PATHS) the flow takes. Another seed: another router. */
uint32_t link_path_of(const struct link_flow *flow, uint32_t n_paths, uint64_t seed);

#endif

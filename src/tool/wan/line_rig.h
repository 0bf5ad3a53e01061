/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the line share: its values, frames that go onto it, and what must be in
 * balance when it is empty. Fails the running test on any error.
 */
#ifndef SDR_TOOL_WAN_LINE_RIG_H
#define SDR_TOOL_WAN_LINE_RIG_H

#include "tool/wan/line.h"
#include "tool/wan/packet_twin.h"

#define GBIT UINT64_C(1000000000)
#define SECOND UINT64_C(1000000000)
#define MTU 1500u
#define MSS 1460u

extern struct wan_config *rig_config; /* large: one for all */

/* Set-up and tear-down of a group of tests. */
int rig_open(void **state);
int rig_close(void **state);
/* Sets rig_config to paths that are perfect wires. */
struct wan_config *rig_fresh(uint32_t n_paths);
/* Both directions of a path. */
void rig_both(uint32_t path, uint64_t rate_bps, uint64_t delay_ns);
struct wan_line *rig_make(void);
size_t rig_offer(struct wan_line *line, enum wan_end from, uint64_t now_ns,
		 const struct twin_spec *spec);
/* A TCP super-packet of n full segments, and its like. */
struct twin_spec rig_tcp(uint32_t n, uint64_t fill);
struct twin_spec rig_udp(uint32_t bytes, uint16_t sport, uint16_t dport);
struct wan_packet rig_parsed(const struct wan_frame *f);
struct wan_dir_stat rig_stat(const struct wan_line *line, enum wan_end from, uint32_t path);
struct wan_line_counters rig_counters(const struct wan_line *line);
/* Takes what comes until the line is empty, as a list of plain packets; frames in *frames. */
void rig_drain(struct wan_line *line, struct twin_list *list, uint32_t *frames);
/* Everything offered was delivered or lost, nothing is left over. */
void rig_balance(const struct wan_line *line, uint64_t taken_pkts);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <sdr/counters.h>: what a context counts. The one table from which the enum, logs,
 * JSON names and docs follow. All only rise.
 */
#ifndef SDR_COUNTERS_H
#define SDR_COUNTERS_H

#define SDR_COUNTERS(X)                                                                 \
	X(tx_pkts, "data packets handed to the path")                                   \
	X(tx_bytes, "payload bytes in them")                                            \
	X(tx_ctrl, "control datagrams sent")                                            \
	X(tx_again, "sends put off because the socket was full")                        \
	X(tx_errors, "sends that the host refused")                                     \
	X(gso_fallback, "sockets on which segmentation offload was given up")           \
	X(mtu_fallback, "times a path took no packet of the agreed size any more")      \
	X(rx_pkts, "data packets committed")                                            \
	X(rx_bytes, "payload bytes in them")                                            \
	X(rx_ctrl, "control datagrams accepted")                                        \
	X(rx_duplicate, "data packets whose bit was set already")                       \
	X(rx_late, "data packets for a finished or unknown message")                    \
	X(rx_range, "data packets outside the message, misaligned or beyond its end")   \
	X(rx_malformed, "packets too short, of an unknown kind or with wrong lengths")  \
	X(rx_protection, "packets that failed the protection check")                    \
	X(rx_unknown_qp, "packets for a QP number that does not exist")                 \
	X(rx_ce, "packets marked ECN-CE")                                               \
	X(rx_host_drops, "datagrams lost to a full socket buffer of this host")         \
	X(rx_ctrl_dropped, "control datagrams dropped because the event ring was full") \
	X(ctrl_replayed, "control datagrams seen twice")                                \
	X(ctrl_token, "control datagrams with a wrong token")                           \
	X(ctrl_unknown, "control messages of an unknown type, skipped")                 \
	X(ctrl_malformed, "control messages that did not parse")                        \
	X(path_changes, "channels that moved to another peer address")

enum sdr_counter {
#define SDR_COUNTER_ENUM(name, text) SDR_CTR_##name,
	SDR_COUNTERS(SDR_COUNTER_ENUM)
#undef SDR_COUNTER_ENUM
		SDR_CTR_COUNT
};

#endif

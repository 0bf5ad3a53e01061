/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loss that a person is told: what was declared lost and did not arrive after all; where
 * writes have a code, which makes losses good before they are declared, what the peer did not
 * count.
 */
#ifndef SDR_TOOL_LOSS_H
#define SDR_TOOL_LOSS_H

#include <sdr/conn.h>

static inline uint64_t loss_pkts(const struct sdr_conn_info *info)
{
	if (info->writes_coded)
		return info->tx_passed_pkts - (info->tx_arrived_pkts < info->tx_passed_pkts
						       ? info->tx_arrived_pkts
						       : info->tx_passed_pkts);
	if (info->tx_lost_pkts <= info->tx_spurious_pkts)
		return 0;
	return info->tx_lost_pkts - info->tx_spurious_pkts;
}

static inline double loss_share(const struct sdr_conn_info *info)
{
	return info->tx_pkts ? (double)loss_pkts(info) / (double)info->tx_pkts : 0;
}

#endif

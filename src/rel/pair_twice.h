/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests over the pair that run twice: with a receiver that sees PSNs, and with a NIC, whose facts
 * name packets. A test takes by_packet into its pair_config.
 */
#ifndef SDR_REL_PAIR_TWICE_H
#define SDR_REL_PAIR_TWICE_H

#include <stdbool.h>

static bool by_packet;

static int see_psns(void **state)
{
	(void)state;
	by_packet = false;
	return 0;
}

static int see_packets(void **state)
{
	(void)state;
	by_packet = true;
	return 0;
}

/* Two elements of an array of struct CMUnitTest. */
#define TWICE(test)                                                    \
	{#test, test, see_psns, NULL, NULL},                           \
	{                                                              \
#test ", packets named", test, see_packets, NULL, NULL \
	}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of sends wait for, as pair_run() and its like take it: `send` is a struct sdr_send. */
#ifndef TESTS_SDK_SEND_FACTS_H
#define TESTS_SDK_SEND_FACTS_H

#include <sdr/sdr.h>
#include <stdbool.h>

/* Granted, and its packets counted. */
static inline bool is_fixed(void *send)
{
	struct sdr_send_info info = {.size = sizeof(info)};

	sdr_send_query(send, &info);
	return info.payload_bytes != 0;
}

/* Its receiver has finished it. */
static inline bool is_done(void *send)
{
	struct sdr_send_info info = {.size = sizeof(info)};

	sdr_send_query(send, &info);
	return info.remote_done;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a transfer told to a person or as JSON; the same for both ends.
 */
#ifndef SDR_TOOL_REPORT_H
#define SDR_TOOL_REPORT_H

#include "tool/digest.h"

#include <sdr/conn.h>

struct report {
	const char *command; /* "send" or "recv" */
	const char *peer;
	const char *error; /* NULL: all is well */
	uint64_t files, failed, bytes, ns;
	int have_digest;
	uint8_t digest[DIGEST_BYTES];
	struct sdr_conn_info conn; /* as long as it was known */
};

void report_print(const struct report *r, int json, int quiet);

#endif

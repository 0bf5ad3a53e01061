/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings shown to a person, in at most 100 columns, and as JSON.
 */
#ifndef SDR_TOOL_DOCTOR_PRINT_H
#define SDR_TOOL_DOCTOR_PRINT_H

#include "tool/doctor/dev.h"
#include "tool/doctor/finding.h"
#include "tool/doctor/host.h"
#include "tool/doctor/net.h"
#include "tool/doctor/path.h"

struct doctor_report {
	const struct findings *f;
	const struct goal *goal;
	const struct host_facts *host;
	const struct net_facts *net;
	const struct dev_facts *dev;
	size_t ndevs;
	const struct path_facts *path; /* NULL: no HOST */
};

void doctor_print_text(const struct doctor_report *r, int verbose, int colour);
void doctor_print_json(const struct doctor_report *r);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How losses are found and repaired: one parameter set, and the names for points in it.
 *
 *	gbn       Go-Back-N, the baseline: the first hole sends everything after it again
 *	sr        selective repeat by timer: what is not acknowledged for an RTO
 *	sr-nack   selective repeat by the holes that ACKs show; timer only as a backup
 *
 * each with an optional ":rto=dyn" or ":rto=N", N being a multiple of the RTT.
 */
#ifndef SDR_REL_SCHEME_H
#define SDR_REL_SCHEME_H

#include <stdbool.h>
#include <stddef.h>

#define REL_RTO_MULTIPLE_MIN 1.0
#define REL_RTO_MULTIPLE_MAX 100.0

enum rel_repair {
	REL_REPAIR_SELECTIVE = 0,
	REL_REPAIR_GBN = 1,
};

/* Codes will add fields at the end; zero means none. */
struct rel_params {
	bool nack;	     /* holes in ACKs prove loss */
	double rto_multiple; /* of the RTT; 0 = dynamic, see rtt.h */
	enum rel_repair repair;
};

#define REL_SCHEME_DEFAULT "sr-nack"
#define REL_SCHEME_ALLOWED \
	"gbn, sr or sr-nack, each with an optional :rto=dyn or :rto=N (1 to 100 RTTs)"

/* 0, or -EINVAL (*out is untouched; tell the person REL_SCHEME_ALLOWED). */
int rel_scheme_parse(const char *text, struct rel_params *out);

/* The canonical name into buf (REL_SCHEME_NAME bytes suffice); returns buf. */
#define REL_SCHEME_NAME 32
char *rel_scheme_name(const struct rel_params *params, char *buf, size_t len);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of link options: one parser for each kind. Each leaves a message that names
 * option, value, limit and what to write, and returns 0 or -EINVAL. Knows no scope and no link.
 */
#ifndef SDR_TOOL_WAN_LINK_VALUE_H
#define SDR_TOOL_WAN_LINK_VALUE_H

#include "tool/say.h"
#include "tool/wan/line.h"

#include <stddef.h>
#include <stdint.h>

#define LINK_RATE_MAX UINT64_C(100000000000000)	 /* 100 Tbit/s */
#define LINK_TIME_MAX UINT64_C(3600000000000)	 /* 1 h */
#define LINK_PERIOD_MAX UINT64_C(86400000000000) /* 1 day */
#define LINK_SIZE_MAX (UINT64_C(1) << 40)

/* Whose value it is, and where the message goes. */
struct link_value {
	const char *option; /* without dashes */
	char *error;	    /* LINK_OPTS_ERROR bytes */
};

/* Writes "--OPTION VALUE: ..."; returns -EINVAL. */
int link_value_wrong(const struct link_value *v, const char *text, const char *fmt, ...)
	SAY_PRINTF(3, 4);

int link_value_time(const struct link_value *v, const char *text, uint64_t min, uint64_t max,
		    uint64_t *ns);
/* 0 and "unlimited": no limit. */
int link_value_rate(const struct link_value *v, const char *text, uint64_t *bps);
int link_value_ratio(const struct link_value *v, const char *text, double *ratio);
int link_value_uint(const struct link_value *v, const char *text, uint64_t min, uint64_t max,
		    uint64_t *n);
/* SIZE or TIME; the other one becomes 0. A number alone, and K, M or m, G are sizes. */
int link_value_size_or_time(const struct link_value *v, const char *text, uint64_t *bytes,
			    uint64_t *ns);
/* A number of packets, 1 and up, fractions allowed; 0 too. */
int link_value_burst(const struct link_value *v, const char *text, double *pkts);
/* RATIO[,TIME]; *ns stays where there is no TIME. */
int link_value_ratio_time(const struct link_value *v, const char *text, double *ratio,
			  uint64_t *ns);
/* p[,r[,1-h[,1-k]]] */
int link_value_ge(const struct link_value *v, const char *text, struct link_ge *ge);
/* RATE,SIZE or "none" */
int link_value_policer(const struct link_value *v, const char *text, struct link_policer *p);
/* "3,7,10-12" or "none": ascending, each once. */
int link_value_drop(const struct link_value *v, const char *text, uint64_t *list, size_t *n);
/* "1s-2s,5s-5.5s" or "none": from now_ns. */
int link_value_blackout(const struct link_value *v, const char *text, uint64_t now_ns,
			struct link_blackout *list, size_t *n);
/*
 * EVERY,FOR[,FIRST], with a delta EVERY,FOR,DELTA[,FIRST]; or "none". FIRST counts from
 * now_ns; without it the first comes when EVERY has passed.
 */
int link_value_periodic(const struct link_value *v, const char *text, uint64_t now_ns,
			struct link_periodic *p, uint64_t *delta_ns);

#endif

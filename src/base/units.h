/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Human units in and out: `25ms`, `400Gbit`, `128MiB`, `1e-5`. One parser for flags
 * and files, so that they all take the same words and give the same errors.
 */
#ifndef SDR_BASE_UNITS_H
#define SDR_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

/*
 * Each parses the whole string or returns -EINVAL (not understood) or -ERANGE
 * (understood, does not fit); *out is untouched then.
 *   time:  ns us ms s m h       (a bare number is seconds)
 *   size:  B KB MB GB TB (powers of 10), KiB MiB GiB TiB or K M G T (powers of 2);
 *          a bare number is bytes
 *   rate:  bit Kbit Mbit Gbit Tbit (also with "/s" or "ps"), and B/s forms KB/s MiB/s;
 *          a bare number is bit/s. Result in bit/s.
 *   ratio: 0.01, 1e-5, 1%       in [0, 1]
 */
int units_parse_time_ns(const char *text, uint64_t *out_ns);
int units_parse_size_bytes(const char *text, uint64_t *out_bytes);
int units_parse_rate_bps(const char *text, uint64_t *out_bps);
int units_parse_ratio(const char *text, double *out);
/* A plain decimal integer in [min, max]. */
int units_parse_uint(const char *text, uint64_t min, uint64_t max, uint64_t *out);

/* Three significant digits and a unit; buf of at least UNITS_TEXT bytes; returns buf. */
#define UNITS_TEXT 24
char *units_time_text(char *buf, uint64_t ns);	  /* "25.0 ms" */
char *units_size_text(char *buf, uint64_t bytes); /* "1.00 GiB" */
char *units_rate_text(char *buf, double bps);	  /* "9.41 Gbit/s" */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <sdr/api.h>: marks what libsdr exports. Everything is compiled with hidden
 * visibility; a public declaration opens with SDR_API, and src/lib/libsdr.map lists
 * the same names once more, so that nothing is exported by accident.
 */
#ifndef SDR_API_H
#define SDR_API_H

#if defined(__GNUC__)
#define SDR_API __attribute__((visibility("default")))
#else
#define SDR_API
#endif

#endif

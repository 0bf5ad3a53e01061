/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assertions about our own code, never about bytes from the wire or a caller's
 * arguments. Compiled out of release builds (NDEBUG).
 */
#ifndef SDR_BASE_CHECK_H
#define SDR_BASE_CHECK_H

#include <assert.h>

#ifdef NDEBUG
/* Not evaluated, but what it names counts as used. */
#define SDR_ASSERT(expr) ((void)sizeof((expr) ? 1 : 0))
#else
#define SDR_ASSERT(expr) assert(expr)
#endif

#endif

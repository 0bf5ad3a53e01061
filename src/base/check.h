/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assertions about our own code, never about bytes from the wire or a caller's
 * arguments. Compiled out of release builds (NDEBUG).
 */
#ifndef SDR_BASE_CHECK_H
#define SDR_BASE_CHECK_H

#include <assert.h>
#define SDR_ASSERT(expr) assert(expr)

#endif

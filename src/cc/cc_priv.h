/* SPDX-License-Identifier: Apache-2.0 */
/* The tables behind cc.h's seam; for cc.c alone. */
#ifndef SDR_CC_CC_PRIV_H
#define SDR_CC_CC_PRIV_H

#include "cc/cc.h"

extern const struct cc_ops cc_fixed_ops;
extern const struct cc_ops cc_grow_ops;

#endif

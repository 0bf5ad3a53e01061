/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices there are, and which fabric a device's name means. */
#ifndef SDR_SDK_DEVICE_H
#define SDR_SDK_DEVICE_H

#include "fabric/fabric.h"
#include <sdr/sdr.h>

/*
 * Opens what attr->device names. *local: the address to say in connection infos where the
 * fabric has none of its own. 0 or the errors of sdr_ctx_create(), attr->why filled where a
 * sentence is worth more than the number.
 */
int device_open(const struct sdr_ctx_attr *attr, struct fabric **out,
		struct sockaddr_storage *local);

#endif

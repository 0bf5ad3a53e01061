/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public struct sdr_scheme and the engine's rel_params: the same point in two forms.
 */
#ifndef SDR_CONN_SCHEME_API_H
#define SDR_CONN_SCHEME_API_H

#include "rel/scheme.h"
#include <sdr/conn.h>

/*
 * A caller's scheme as parameters that are complete: zeros are their defaults, a code and
 * go-back-N imply holes by ACK. 0; -EINVAL: out of range, or parts that exclude each other
 * (*out is untouched).
 */
int scheme_to_params(const struct sdr_scheme *scheme, struct rel_params *out);
/* The other way: fills as much of *out as out->size says. */
void scheme_from_params(const struct rel_params *params, struct sdr_scheme *out);

#endif

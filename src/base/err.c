// SPDX-License-Identifier: Apache-2.0
/*
 * Texts for error numbers: ours from the table in <sdr/err.h>, the kernel's from the
 * C library. Knows nothing of where an error came from.
 */
#include <sdr/err.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define ERR_KERNEL_MAX 4095

static _Thread_local char err_unknown[48];

static const char *unknown_text(int err)
{
	snprintf(err_unknown, sizeof(err_unknown), "unknown error %d", err);
	return err_unknown;
}

const char *sdr_strerror(int err)
{
	if (err == INT_MIN)
		return unknown_text(err);
	if (err < 0)
		err = -err;
	if (err == 0)
		return "success";
	if (err <= ERR_KERNEL_MAX) {
		/* The GNU form: a constant for a known number, the buffer for any other. */
		return strerror_r(err, err_unknown, sizeof(err_unknown));
	}
	switch (err) {
#define SDR_ERROR_TEXT(name, number, text) \
	case (number):                     \
		return (text);
		SDR_ERRORS(SDR_ERROR_TEXT)
#undef SDR_ERROR_TEXT
	}
	return unknown_text(err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Which bytes are UTF-8: file names may be any bytes, terminals and JSON take only this. */
#ifndef SDR_TOOL_UTF8_H
#define SDR_TOOL_UTF8_H

#include <stddef.h>

/* Length of the sequence at p, which ends in NUL somewhere; 0 if it is none. */
static inline size_t utf8_len(const unsigned char *p)
{
	size_t n = *p < 0x80   ? 1
		   : *p < 0xc2 ? 0
		   : *p < 0xe0 ? 2
		   : *p < 0xf0 ? 3
		   : *p < 0xf5 ? 4
			       : 0;

	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
	    (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

#endif

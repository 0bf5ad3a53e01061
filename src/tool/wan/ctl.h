/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How commands talk to a link's emulator: a Unix stream socket in the link's directory. A
 * request is words that end in NUL each, and ends where the client shuts its side; the answer is
 * CTL_OK, CTL_ERROR or CTL_BUSY, text, and a NUL. One request a connection.
 *
 *	stat [json]    values and counters
 *	brief [json]   one line, or a small object
 *	set WORD...    options of link_opts.h
 *	down           the emulator removes the link, then answers
 */
#ifndef SDR_TOOL_WAN_CTL_H
#define SDR_TOOL_WAN_CTL_H

#include "tool/wan/names.h"

#include "base/units.h"

#define CTL_REQUEST_MAX 32768 /* bytes */
#define CTL_ANSWER_MAX (4 << 20)
#define CTL_OK 'k'
#define CTL_ERROR 'e'
#define CTL_BUSY 'b' /* all places are taken: ask again */
#define CTL_TIMEOUT_NS (5 * NS_PER_S)
#define CTL_DOWN_NS (20 * NS_PER_S)

/*
 * 0: *answer is the text; 1: the same, but it says what the emulator found wrong with the request;
 * -1: nobody answered, said. The caller frees *answer.
 */
int ctl_request(const struct wan_names *n, uint64_t timeout_ns, int n_words, char *const *words,
		char **answer);

#endif

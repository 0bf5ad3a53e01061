/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How losses are found and repaired: one parameter set, and the names for points in it.
 *
 *	gbn             Go-Back-N, the baseline: the first hole sends everything after it again
 *	sr              selective repeat by timer: what is not acknowledged for an RTO
 *	sr-nack         selective repeat by the holes that ACKs show; timer only as a backup
 *	ec-xor:K,M      parity i of a block is the sum of the data packets j with j mod M = i
 *	ec:K,M          Reed-Solomon: any K of a block's K + M packets will do
 *	hybrid:k=K,m=M  Reed-Solomon over the last round trip of a message; failed blocks get
 *	                what they lack in fresh parity; late resends go out several times
 *	auto            one of these for each write, by what the path does (auto:policy=table: by
 *	                rules of thumb instead of the model)
 *
 * each with optional parameters, NAME=VALUE, after a colon and then commas, in any order:
 *
 *	rto=dyn | N       the timer: by variance and queue, or N round trips (1 to 100, in
 *	                  thousandths)
 * and all but auto:
 *	copies=N          a late resend goes out N times (1 to 16)
 * and those with a code (K,M may stand without names):
 *	k=K m=M           data and parity packets of a block (k + m <= 255; xor: m <= k)
 *	depth=D           interleaving: packets of D blocks take turns (1 to 65536)
 *	span=all|rtt|N    what is coded: the whole message, its last round trip, its last N packets
 *	repair=parity | missing   what a failed block gets: as much parity as it lacks, or the
 *	                  packets that it lacks (xor: always these)
 *
 * Defaults: copies=1, depth=1, span=all, repair=missing; hybrid: depth=64, span=rtt,
 * repair=parity, copies=4. A packet here is one of the path's, not a chunk.
 */
#ifndef SDR_REL_SCHEME_H
#define SDR_REL_SCHEME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REL_RTO_MULTIPLE_MIN 1.0
#define REL_RTO_MULTIPLE_MAX 100.0
#define REL_CODE_SYMBOLS_MAX 255u /* k + m */
#define REL_COPIES_MAX 16u
#define REL_DEPTH_MAX 65536u
#define REL_SPAN_ALL 0u		/* the whole message */
#define REL_SPAN_RTT UINT32_MAX /* as much as fits into a round trip */

enum rel_repair {
	REL_REPAIR_SELECTIVE = 0,
	REL_REPAIR_GBN = 1,
};

/* The values are those of WRITE's `code`. */
enum rel_code {
	REL_CODE_NONE = 0,
	REL_CODE_XOR = 1,
	REL_CODE_RS = 2,
};

enum rel_policy {
	REL_POLICY_NONE = 0,
	REL_POLICY_MODEL = 1, /* auto */
	REL_POLICY_TABLE = 2, /* auto:policy=table */
};

/* Zero in a field means none, but copies 0 is 1, and depth 0 is 1. */
struct rel_params {
	bool nack;	     /* holes in ACKs prove loss; always with a code */
	double rto_multiple; /* of the RTT; 0 = dynamic, see rtt.h */
	enum rel_repair repair;
	enum rel_code code;
	uint32_t k, m;	/* with a code: k + m <= 255 */
	uint32_t depth; /* blocks that take turns */
	uint32_t span;	/* packets at the message's end; REL_SPAN_ALL, REL_SPAN_RTT */
	uint32_t copies;
	bool fresh;  /* failed blocks get fresh parity */
	bool hybrid; /* how it was called; changes nothing else */
	enum rel_policy
		policy; /* not none: the fields above but rto_multiple are chosen by write */
};

#define REL_SCHEME_DEFAULT "sr-nack"
#define REL_SCHEME_NAMES "gbn, sr, sr-nack, ec-xor:K,M, ec:K,M, hybrid:k=K,m=M or auto"

/*
 * 0, or -EINVAL (*out is untouched). why, if not NULL, gets a sentence that names the part that
 * is wrong, its value, and what is allowed.
 */
int rel_scheme_parse(const char *text, struct rel_params *out, char *why, size_t len);

/*
 * Parameters that did not come from text: 0, and *params as the text of the same scheme would
 * have it (what is zero for its default, what another field implies, thousandths of the timer);
 * or -EINVAL: something is out of range, or does not go together (go-back-N and a code).
 */
int rel_scheme_complete(struct rel_params *params);

/* The canonical name into buf (REL_SCHEME_NAME bytes suffice); returns buf. It parses to the
 * same parameters. What is the default of its kind is left out. */
#define REL_SCHEME_NAME 112
char *rel_scheme_name(const struct rel_params *params, char *buf, size_t len);

/* The first words, NULL-terminated. */
extern const char *const rel_scheme_words[];

/* Needs parity: both ends must pair their messages. */
static inline bool rel_scheme_coded(const struct rel_params *params)
{
	return params->code != REL_CODE_NONE || params->policy != REL_POLICY_NONE;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between scheme.c, which reads names, and scheme_name.c, which writes them: one table of what each
 * kind of scheme takes.
 */
#ifndef SDR_REL_SCHEME_PRIV_H
#define SDR_REL_SCHEME_PRIV_H

#include "rel/scheme.h"

#define SCHEME_MILLI 1000.0 /* of the timer */

/* In the order in which a name has them. */
enum scheme_key {
	KEY_K,
	KEY_M,
	KEY_DEPTH,
	KEY_SPAN,
	KEY_REPAIR,
	KEY_COPIES,
	KEY_RTO,
	KEY_POLICY,
	SCHEME_KEYS
};

#define SCHEME_BIT(key) (1u << (key))

struct scheme_key_facts {
	const char *name;
	uint32_t min, max; /* where the value is a number */
	const char *takes; /* for a person */
};
extern const struct scheme_key_facts scheme_keys[SCHEME_KEYS];

enum scheme_kind_number { GBN, SR, SR_NACK, EC_XOR, EC, HYBRID, AUTO, SCHEME_KINDS };

struct scheme_kind {
	const char *name;
	uint32_t takes;	      /* bits of keys */
	struct rel_params is; /* with nothing said */
};
extern const struct scheme_kind scheme_kinds[SCHEME_KINDS];

/* NULL: that key is not one number. */
uint32_t *scheme_number_of(struct rel_params *p, enum scheme_key key);

/* Text that grows as far as it fits, and always ends. */
struct scheme_text {
	char *buf; /* NULL: nobody wants it */
	size_t len, at;
};
void scheme_add_part(struct scheme_text *t, const char *part, size_t len);
void scheme_add(struct scheme_text *t, const char *words);
void scheme_add_number(struct scheme_text *t, uint32_t n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schemes as the application has them: text, and struct sdr_scheme. What they mean and what of
 * them is allowed is known in rel/scheme.h.
 */
#include "conn/scheme_api.h"
#include "base/bits.h"
#include "base/check.h"
#include <errno.h>
#include <string.h>

/* One is copied into the other. */
_Static_assert((int)SDR_CODE_NONE == (int)REL_CODE_NONE && (int)SDR_CODE_XOR == (int)REL_CODE_XOR &&
		       (int)SDR_CODE_RS == (int)REL_CODE_RS,
	       "codes have one number");
_Static_assert((int)SDR_POLICY_NONE == (int)REL_POLICY_NONE &&
		       (int)SDR_POLICY_MODEL == (int)REL_POLICY_MODEL &&
		       (int)SDR_POLICY_TABLE == (int)REL_POLICY_TABLE,
	       "policies have one number");
_Static_assert(SDR_SPAN_ALL == REL_SPAN_ALL && SDR_SPAN_RTT == REL_SPAN_RTT, "spans too");

int scheme_to_params(const struct sdr_scheme *scheme, struct rel_params *out)
{
	struct sdr_scheme s = {0};
	struct rel_params p;
	int err;

	memcpy(&s, scheme, u64_min(scheme->size, sizeof(s)));
	p = (struct rel_params){
		.nack = s.nack,
		.rto_multiple = s.rto_multiple,
		.repair = s.go_back_n ? REL_REPAIR_GBN : REL_REPAIR_SELECTIVE,
		.code = (enum rel_code)s.code,
		.k = s.k,
		.m = s.m,
		.depth = s.depth,
		.span = s.span,
		.copies = s.copies,
		.fresh = s.fresh,
		.hybrid = s.hybrid,
		.policy = (enum rel_policy)s.policy,
	};
	err = rel_scheme_complete(&p);
	if (!err)
		*out = p;
	return err;
}

void scheme_from_params(const struct rel_params *p, struct sdr_scheme *out)
{
	struct sdr_scheme s = {
		.size = out->size,
		.nack = p->nack,
		.go_back_n = p->repair == REL_REPAIR_GBN,
		.fresh = p->fresh,
		.hybrid = p->hybrid,
		.rto_multiple = p->rto_multiple,
		.code = (enum sdr_scheme_code)p->code,
		.k = p->k,
		.m = p->m,
		.depth = p->depth,
		.span = p->span,
		.copies = p->copies,
		.policy = (enum sdr_scheme_policy)p->policy,
	};

	memcpy(out, &s, u64_min(out->size, sizeof(s)));
}

int sdr_scheme_parse(const char *text, struct sdr_scheme *out, char *why, size_t len)
{
	struct rel_params p;
	int err = rel_scheme_parse(text, &p, why, len);

	if (!err)
		scheme_from_params(&p, out);
	return err;
}

int sdr_scheme_name(const struct sdr_scheme *scheme, char *buf, size_t len)
{
	char name[REL_SCHEME_NAME];
	struct rel_params p;

	if (scheme_to_params(scheme, &p) < 0)
		return -EINVAL;
	rel_scheme_name(&p, name, sizeof(name));
	if (strlen(name) >= len)
		return -ENOSPC;
	strcpy(buf, name);
	return 0;
}

const char *const *sdr_scheme_names(void)
{
	return rel_scheme_words;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: a scheme from text. What is taken has a name that parses to the same; what is
 * refused has a sentence, and nothing is written.
 */
#include <string.h>

#include "rel/scheme.h"
#include "wire/fuzz.h"

static void must_go_round(const struct rel_params *p)
{
	struct rel_params again, complete = *p;
	char name[REL_SCHEME_NAME], second[REL_SCHEME_NAME], why[16];

	rel_scheme_name(p, name, sizeof(name));
	FUZZ_REQUIRE(strlen(name) < sizeof(name) - 1);
	FUZZ_REQUIRE(rel_scheme_parse(name, &again, why, sizeof(why)) == 0 && !why[0]);
	FUZZ_REQUIRE(strcmp(rel_scheme_name(&again, second, sizeof(second)), name) == 0);
	FUZZ_REQUIRE(again.rto_multiple == p->rto_multiple && again.code == p->code &&
		     again.k == p->k && again.m == p->m && again.depth == p->depth &&
		     again.span == p->span && again.copies == p->copies &&
		     again.fresh == p->fresh && again.policy == p->policy);
	FUZZ_REQUIRE(rel_scheme_complete(&complete) == 0);
	FUZZ_REQUIRE(strcmp(rel_scheme_name(&complete, second, sizeof(second)), name) == 0);
}

/* The first byte says how long the sentence may be. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t room = size ? data[0] : 0;
	char *text = malloc(size + 1), *why = malloc(room ? room : 1);
	struct rel_params p, untouched;

	FUZZ_REQUIRE(text && why);
	if (size)
		memcpy(text, data + 1, size - 1);
	text[size ? size - 1 : 0] = '\0';
	memset(&p, 0x5a, sizeof(p));
	memcpy(&untouched, &p, sizeof(p));
	if (rel_scheme_parse(text, &p, why, room) == 0) {
		FUZZ_REQUIRE(!room || !why[0]);
		must_go_round(&p);
	} else {
		FUZZ_REQUIRE(memcmp(&p, &untouched, sizeof(p)) == 0);
		FUZZ_REQUIRE(room < 2 || (why[0] && memchr(why, '\0', room)));
	}
	free(text);
	free(why);
	return 0;
}

size_t fuzz_seed(unsigned int i, uint8_t *buf)
{
	static const char *const seeds[] = {
		"\xffgbn:rto=3,copies=2",
		"\xffsr:rto=1.125",
		"\x40sr-nack:copies=16",
		"\xff"
		"ec:32,8,depth=4,span=12,repair=parity",
		"\x05"
		"ec-xor:32,8,span=rtt,repair=missing",
		"\xffhybrid:k=128,m=10,depth=64,span=all,repair=missing,copies=4,rto=dyn",
		"\xff"
		"auto:policy=table",
	};

	if (i >= sizeof(seeds) / sizeof(seeds[0]))
		return 0;
	memcpy(buf, seeds[i], strlen(seeds[i]));
	return strlen(seeds[i]);
}

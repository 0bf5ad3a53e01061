/* SPDX-License-Identifier: Apache-2.0 */
/* Scheme names to parameters and back; see scheme.h. Nothing here knows what they do. */
#include "rel/scheme.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

static const struct {
	const char *name;
	bool nack;
	enum rel_repair repair;
} schemes[] = {
	{"gbn", true, REL_REPAIR_GBN},
	{"sr", false, REL_REPAIR_SELECTIVE},
	{"sr-nack", true, REL_REPAIR_SELECTIVE},
};

static int parse_rto(const char *text, double *out)
{
	if (strcmp(text, "dyn") == 0) {
		*out = 0;
		return 0;
	}
	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	/* Digits and one point only: no locale, hex or exponent. */
	double value = 0, scale = 1;
	bool point = false;
	for (const char *p = text; *p; p++) {
		if (*p == '.' && !point && isdigit((unsigned char)p[1])) {
			point = true;
			continue;
		}
		if (!isdigit((unsigned char)*p))
			return -EINVAL;
		value = value * 10 + (*p - '0');
		if (point)
			scale *= 10;
	}
	value /= scale;
	if (!(value >= REL_RTO_MULTIPLE_MIN && value <= REL_RTO_MULTIPLE_MAX))
		return -EINVAL;
	*out = value;
	return 0;
}

int rel_scheme_parse(const char *text, struct rel_params *out, char *why, size_t len_why)
{
	if (why && len_why)
		*why = 0;
	if (!text)
		return -EINVAL;
	size_t len = strcspn(text, ":");
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		if (strlen(schemes[i].name) != len || strncmp(text, schemes[i].name, len) != 0)
			continue;
		double rto = 0;
		if (text[len] == ':') {
			if (strncmp(text + len, ":rto=", 5) != 0)
				return -EINVAL;
			if (parse_rto(text + len + 5, &rto) < 0)
				return -EINVAL;
		}
		*out = (struct rel_params){
			.nack = schemes[i].nack, .rto_multiple = rto, .repair = schemes[i].repair};
		return 0;
	}
	return -EINVAL;
}

/* Appends as much of the text as fits; the buffer always ends in 0. */
static size_t append(char *buf, size_t len, size_t at, const char *text)
{
	while (*text && at + 1 < len)
		buf[at++] = *text++;
	if (len)
		buf[at] = 0;
	return at;
}

/* A multiple as short as three decimals can have it, as parse_rto() reads it. */
static void multiple_text(double multiple, char out[16])
{
	unsigned long milli = (unsigned long)(multiple * 1000 + 0.5);
	char digits[16];
	int n = 0, skip = 0;
	while (n < 4 || milli) {
		digits[n++] = (char)('0' + milli % 10);
		milli /= 10;
	}
	while (skip < 3 && digits[skip] == '0')
		skip++;
	while (n > skip) {
		*out++ = digits[--n];
		if (n == 3 && skip < 3)
			*out++ = '.';
	}
	*out = 0;
}

char *rel_scheme_name(const struct rel_params *params, char *buf, size_t len)
{
	const char *name = params->repair == REL_REPAIR_GBN ? "gbn"
			   : params->nack		    ? "sr-nack"
							    : "sr";
	char multiple[16];
	size_t at = append(buf, len, 0, name);
	if (params->rto_multiple > 0) {
		multiple_text(params->rto_multiple, multiple);
		at = append(buf, len, at, ":rto=");
		append(buf, len, at, multiple);
	}
	return buf;
}

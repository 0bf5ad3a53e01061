// SPDX-License-Identifier: Apache-2.0
/*
 * SHA-256 of files and transfers. See digest.h.
 */
#include "tool/digest.h"

#include <openssl/evp.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

int digest_init(struct digest *d)
{
	*d = (struct digest){.file = EVP_MD_CTX_new(), .all = EVP_MD_CTX_new()};
	if (d->file && d->all && EVP_DigestInit_ex(d->all, EVP_sha256(), NULL) == 1)
		return 0;
	digest_fini(d);
	return -ENOMEM;
}

void digest_fini(struct digest *d)
{
	EVP_MD_CTX_free(d->file);
	EVP_MD_CTX_free(d->all);
	d->file = d->all = NULL;
}

void digest_file_begin(struct digest *d)
{
	EVP_DigestInit_ex(d->file, EVP_sha256(), NULL);
}

void digest_file_add(struct digest *d, const void *p, size_t len)
{
	EVP_DigestUpdate(d->file, p, len);
}

void digest_file_end(struct digest *d, uint8_t sum[DIGEST_BYTES])
{
	EVP_DigestFinal_ex(d->file, sum, NULL);
}

void digest_file_count(struct digest *d, const uint8_t sum[DIGEST_BYTES])
{
	memcpy(d->last, sum, DIGEST_BYTES);
	EVP_DigestUpdate(d->all, sum, DIGEST_BYTES);
	d->files++;
}

void digest_all(struct digest *d, uint8_t sum[DIGEST_BYTES])
{
	if (d->files == 1)
		memcpy(sum, d->last, DIGEST_BYTES);
	else
		EVP_DigestFinal_ex(d->all, sum, NULL);
}

char *digest_text(char text[DIGEST_TEXT], const uint8_t sum[DIGEST_BYTES])
{
	for (unsigned int i = 0; i < DIGEST_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", sum[i]);
	return text;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 by libcrypto, of one file after the other and of a whole transfer. The digest
 * of a transfer is its file's if there is just one, else the SHA-256 of the digests in
 * the order in which the files were sent.
 */
#ifndef SDR_TOOL_DIGEST_H
#define SDR_TOOL_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define DIGEST_BYTES 32u
#define DIGEST_TEXT 65u

struct digest {
	void *file, *all; /* EVP_MD_CTX */
	uint8_t last[DIGEST_BYTES];
	uint64_t files;
};

int digest_init(struct digest *d); /* 0 or -ENOMEM */
void digest_fini(struct digest *d);
void digest_file_begin(struct digest *d);
void digest_file_add(struct digest *d, const void *p, size_t len);
/* The file's digest; not yet part of the transfer's. */
void digest_file_end(struct digest *d, uint8_t sum[DIGEST_BYTES]);
/* The file was good: its digest joins the transfer's. */
void digest_file_count(struct digest *d, const uint8_t sum[DIGEST_BYTES]);
void digest_all(struct digest *d, uint8_t sum[DIGEST_BYTES]);
char *digest_text(char text[DIGEST_TEXT], const uint8_t sum[DIGEST_BYTES]);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Hello and greeting: bytes in and out. See hello.h.
 */
#include "tool/hello.h"

#include "tool/bytes.h"

#include <errno.h>
#include <string.h>

#define GREETING_FIXED 8u

void hello_put(const struct hello *h, uint8_t buf[HELLO_BYTES])
{
	memcpy(buf, "SDRA", 4);
	put_be(buf + 4, h->version, 2);
	put_be(buf + 6, h->kind, 2);
	for (unsigned int i = 0; i < HELLO_ARGS; i++)
		put_be(buf + 8 + 8 * i, h->arg[i], 8);
}

int hello_get(const uint8_t *buf, size_t len, struct hello *h)
{
	if (len < HELLO_BYTES || memcmp(buf, "SDRA", 4) != 0)
		return -EBADMSG;
	h->version = (uint16_t)get_be(buf + 4, 2);
	h->kind = (uint16_t)get_be(buf + 6, 2);
	for (unsigned int i = 0; i < HELLO_ARGS; i++)
		h->arg[i] = get_be(buf + 8 + 8 * i, 8);
	return 0;
}

size_t greeting_put(const char *text, uint8_t buf[GREETING_MAX])
{
	size_t len = text ? strlen(text) : 0;

	if (len > GREETING_MAX - GREETING_FIXED)
		len = GREETING_MAX - GREETING_FIXED;
	memcpy(buf, "SDRB", 4);
	put_be(buf + 4, HELLO_VERSION, 2);
	put_be(buf + 6, text != NULL, 2);
	if (len)
		memcpy(buf + GREETING_FIXED, text, len);
	return GREETING_FIXED + len;
}

int greeting_get(const uint8_t *buf, size_t len, struct greeting *g)
{
	if (len < GREETING_FIXED || len > GREETING_MAX || memcmp(buf, "SDRB", 4) != 0)
		return -EBADMSG;
	g->version = (uint16_t)get_be(buf + 4, 2);
	g->refused = (uint16_t)get_be(buf + 6, 2);
	memcpy(g->text, buf + GREETING_FIXED, len - GREETING_FIXED);
	g->text[len - GREETING_FIXED] = '\0';
	return 0;
}

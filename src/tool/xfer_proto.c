// SPDX-License-Identifier: Apache-2.0
/*
 * Frames of the file transfer: encode, decode, check once. See xfer_proto.h.
 */
#include "tool/xfer_proto.h"

#include "tool/bytes.h"

#include <errno.h>
#include <string.h>

#define ENTRY_FIXED 28u
#define END_FIXED (2u + XFER_DIGEST)
#define RESULT_FIXED 2u
#define DONE_BYTES 16u
#define SUMMARY_BYTES (16u + XFER_DIGEST)

static size_t put_header(uint8_t *buf, enum xfer_type type, uint32_t index, size_t len)
{
	put_be(buf, type, 1);
	put_be(buf + 1, 0, 3);
	put_be(buf + 4, len, 4);
	put_be(buf + 8, index, 4);
	return XFER_FRAME_BYTES + len;
}

static size_t cut(const char *text, size_t max)
{
	return strnlen(text, max);
}

size_t xfer_put_entry(uint8_t *buf, enum xfer_type type, uint32_t index, const struct xfer_entry *e)
{
	size_t path = cut(e->path, XFER_PATH_MAX);
	size_t target = type == XFER_LINK ? cut(e->target, XFER_PATH_MAX) : 0;
	uint8_t *p = buf + XFER_FRAME_BYTES;

	put_be(p, e->mode, 4);
	put_be(p + 4, e->size, 8);
	put_be(p + 12, (uint64_t)e->mtime_s, 8);
	put_be(p + 20, e->mtime_ns, 4);
	put_be(p + 24, path, 2);
	put_be(p + 26, target, 2);
	memcpy(p + ENTRY_FIXED, e->path, path);
	memcpy(p + ENTRY_FIXED + path, e->target, target);
	return put_header(buf, type, index, ENTRY_FIXED + path + target);
}

size_t xfer_put_end(uint8_t *buf, uint32_t index, const struct xfer_end *end)
{
	size_t text = cut(end->text, XFER_TEXT_MAX);
	uint8_t *p = buf + XFER_FRAME_BYTES;

	put_be(p, end->status, 2);
	memcpy(p + 2, end->digest, XFER_DIGEST);
	memcpy(p + END_FIXED, end->text, text);
	return put_header(buf, XFER_END, index, END_FIXED + text);
}

size_t xfer_put_result(uint8_t *buf, uint32_t index, uint16_t status, const char *text)
{
	size_t len = cut(text, XFER_TEXT_MAX);
	uint8_t *p = buf + XFER_FRAME_BYTES;

	put_be(p, status, 2);
	memcpy(p + RESULT_FIXED, text, len);
	return put_header(buf, XFER_RESULT, index, RESULT_FIXED + len);
}

size_t xfer_put_sum(uint8_t *buf, enum xfer_type type, const struct xfer_sum *sum)
{
	uint8_t *p = buf + XFER_FRAME_BYTES;

	put_be(p, sum->files, 4);
	put_be(p + 4, sum->failed, 4);
	put_be(p + 8, sum->bytes, 8);
	if (type == XFER_DONE)
		return put_header(buf, type, 0, DONE_BYTES);
	memcpy(p + DONE_BYTES, sum->digest, XFER_DIGEST);
	return put_header(buf, type, 0, SUMMARY_BYTES);
}

size_t xfer_put_data(uint8_t *buf, uint32_t index, uint32_t len)
{
	return put_header(buf, XFER_DATA, index, len) - len;
}

int xfer_next(const uint8_t *block, size_t len, size_t *at, struct xfer_frame *f)
{
	const uint8_t *p = block + *at;
	size_t left = len - *at;

	if (left == 0)
		return 0;
	if (left < XFER_FRAME_BYTES)
		return -EBADMSG;
	f->type = p[0];
	f->len = (uint32_t)get_be(p + 4, 4);
	f->index = (uint32_t)get_be(p + 8, 4);
	f->body = p + XFER_FRAME_BYTES;
	if (f->len > left - XFER_FRAME_BYTES)
		return -EBADMSG;
	*at += XFER_FRAME_BYTES + f->len;
	return 1;
}

/* A text without NULs, of a length that was checked against max. */
static int take_text(const uint8_t *p, size_t len, size_t max, char *to)
{
	if (len > max || memchr(p, 0, len))
		return -EBADMSG;
	memcpy(to, p, len);
	to[len] = '\0';
	return 0;
}

int xfer_get_entry(const struct xfer_frame *f, struct xfer_entry *e)
{
	const uint8_t *p = f->body;
	size_t path, target;

	if (f->len < ENTRY_FIXED)
		return -EBADMSG;
	e->mode = (uint32_t)get_be(p, 4) & 0777;
	e->size = get_be(p + 4, 8);
	e->mtime_s = (int64_t)get_be(p + 12, 8);
	e->mtime_ns = (uint32_t)get_be(p + 20, 4);
	path = (size_t)get_be(p + 24, 2);
	target = (size_t)get_be(p + 26, 2);
	if (f->len != ENTRY_FIXED + path + target || e->mtime_ns > 999999999 || e->size > INT64_MAX)
		return -EBADMSG;
	if ((f->type == XFER_LINK) != (target > 0))
		return -EBADMSG;
	if (take_text(p + ENTRY_FIXED, path, XFER_PATH_MAX, e->path) < 0)
		return -EBADMSG;
	return take_text(p + ENTRY_FIXED + path, target, XFER_PATH_MAX, e->target);
}

int xfer_get_end(const struct xfer_frame *f, struct xfer_end *end)
{
	if (f->len < END_FIXED)
		return -EBADMSG;
	end->status = (uint16_t)get_be(f->body, 2);
	memcpy(end->digest, f->body + 2, XFER_DIGEST);
	return take_text(f->body + END_FIXED, f->len - END_FIXED, XFER_TEXT_MAX, end->text);
}

int xfer_get_result(const struct xfer_frame *f, uint16_t *status, char text[XFER_TEXT_MAX + 1])
{
	if (f->len < RESULT_FIXED)
		return -EBADMSG;
	*status = (uint16_t)get_be(f->body, 2);
	return take_text(f->body + RESULT_FIXED, f->len - RESULT_FIXED, XFER_TEXT_MAX, text);
}

int xfer_get_sum(const struct xfer_frame *f, struct xfer_sum *sum)
{
	if (f->len < (f->type == XFER_SUMMARY ? SUMMARY_BYTES : DONE_BYTES))
		return -EBADMSG;
	sum->files = (uint32_t)get_be(f->body, 4);
	sum->failed = (uint32_t)get_be(f->body + 4, 4);
	sum->bytes = get_be(f->body + 8, 8);
	memset(sum->digest, 0, XFER_DIGEST);
	if (f->type == XFER_SUMMARY)
		memcpy(sum->digest, f->body + DONE_BYTES, XFER_DIGEST);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * From files to frames. See xfer_source.h.
 */
#include "tool/xfer_source.h"

#include "tool/say.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int xfer_source_init(struct xfer_source *src, struct xfer_list *list)
{
	*src = (struct xfer_source){.list = list, .fd = -1};
	return digest_init(&src->digest);
}

void xfer_source_fini(struct xfer_source *src)
{
	if (src->fd >= 0)
		close(src->fd);
	src->fd = -1;
	digest_fini(&src->digest);
}

static uint32_t open_index(const struct xfer_source *src)
{
	return (uint32_t)(src->next - 1);
}

static void entry_failed(struct xfer_source *src, struct list_entry *e)
{
	if (!e->failed)
		src->failed++;
	e->failed = 1;
}

static void fill_stat(struct xfer_entry *to, const struct stat *st)
{
	to->mode = st->st_mode & 0777;
	to->size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
	to->mtime_s = st->st_mtim.tv_sec;
	to->mtime_ns = (uint32_t)st->st_mtim.tv_nsec;
}

/* ---- entries ------------------------------------------------------------------ */

static int open_file(struct xfer_source *src, struct list_entry *e)
{
	int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (e->follow ? 0 : O_NOFOLLOW);

	src->fd = open(e->disk, flags);
	if (src->fd < 0 && errno == ENOENT)
		say("%s: has vanished before it could be sent", e->disk);
	else if (src->fd < 0)
		say("%s: cannot be read: %s: not sent", e->disk, strerror(errno));
	else if (fstat(src->fd, &src->st) < 0 || !S_ISREG(src->st.st_mode))
		say("%s: is no longer a file: not sent", e->disk);
	else
		return 0;
	if (src->fd >= 0)
		close(src->fd);
	src->fd = -1;
	return -1;
}

static int stat_other(struct list_entry *e, struct stat *st, struct xfer_entry *out)
{
	ssize_t n = 0;
	int rc = e->follow && e->type != XFER_LINK ? stat(e->disk, st) : lstat(e->disk, st);

	if (rc == 0 && e->type == XFER_LINK) {
		n = readlink(e->disk, out->target, sizeof out->target - 1);
		rc = n < 0 ? -1 : 0;
	}
	if (rc < 0) {
		say("%s: cannot be read: %s: not sent", e->disk, strerror(errno));
		return -1;
	}
	out->target[n] = '\0';
	return 0;
}

/* Starts the next entry: its frame, or 0 bytes if it failed here. */
static size_t begin_entry(struct xfer_source *src, uint8_t *buf)
{
	struct list_entry *e = &src->list->entry[src->next++];
	struct xfer_entry x = {0};
	struct stat st;

	if (e->failed) {
		src->failed++;
		return 0;
	}
	if ((e->type == XFER_FILE ? open_file(src, e) : stat_other(e, &st, &x)) < 0) {
		entry_failed(src, e);
		return 0;
	}
	fill_stat(&x, e->type == XFER_FILE ? &src->st : &st);
	snprintf(x.path, sizeof x.path, "%s", list_entry_name(e));
	src->offset = 0;
	if (e->type == XFER_FILE)
		digest_file_begin(&src->digest);
	return xfer_put_entry(buf, e->type, open_index(src), &x);
}

static size_t end_file(struct xfer_source *src, uint8_t *buf, struct xfer_end *end)
{
	struct list_entry *e = &src->list->entry[open_index(src)];

	close(src->fd);
	src->fd = -1;
	if (end->status != XFER_OK) {
		entry_failed(src, e);
		return xfer_put_end(buf, open_index(src), end);
	}
	digest_file_end(&src->digest, end->digest);
	digest_file_count(&src->digest, end->digest);
	src->files++;
	src->bytes += src->offset;
	if (src->print_sums) {
		char text[DIGEST_TEXT];

		out("%s  %s", digest_text(text, end->digest), list_entry_name(e));
	}
	return xfer_put_end(buf, open_index(src), end);
}

/* The file did not keep what its entry promised; said here, told to the receiver. */
static size_t break_file(struct xfer_source *src, uint8_t *buf, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static size_t break_file(struct xfer_source *src, uint8_t *buf, const char *fmt, ...)
{
	struct xfer_end end = {.status = XFER_FAILED};
	va_list args;

	va_start(args, fmt);
	vsnprintf(end.text, sizeof end.text, fmt, args);
	va_end(args);
	say("%s: %s: not sent", src->list->entry[open_index(src)].disk, end.text);
	return end_file(src, buf, &end);
}

static size_t finish_file(struct xfer_source *src, uint8_t *buf)
{
	struct xfer_end end = {.status = XFER_OK};
	struct stat now;

	if (fstat(src->fd, &now) < 0)
		return break_file(src, buf, "it cannot be read any more: %s", strerror(errno));
	if (now.st_size != src->st.st_size)
		return break_file(src, buf,
				  "it changed from %jd to %jd bytes while it was being sent",
				  (intmax_t)src->st.st_size, (intmax_t)now.st_size);
	if (now.st_mtim.tv_sec != src->st.st_mtim.tv_sec ||
	    now.st_mtim.tv_nsec != src->st.st_mtim.tv_nsec)
		return break_file(src, buf, "it was changed while it was being sent");
	return end_file(src, buf, &end);
}

/* ---- data --------------------------------------------------------------------- */

static size_t read_some(struct xfer_source *src, uint8_t *buf, size_t cap)
{
	uint64_t left = (uint64_t)src->st.st_size - src->offset;
	size_t want = cap - XFER_FRAME_BYTES, got = 0;

	if (want > left)
		want = (size_t)left;
	while (got < want) {
		ssize_t n = pread(src->fd, buf + XFER_FRAME_BYTES + got, want - got,
				  (off_t)(src->offset + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return break_file(src, buf, "reading failed at byte %" PRIu64 ": %s",
					  src->offset + got, strerror(errno));
		if (n == 0)
			return break_file(src, buf,
					  "it shrank from %jd to %" PRIu64
					  " bytes while it was being sent",
					  (intmax_t)src->st.st_size, src->offset + got);
		got += (size_t)n;
	}
	digest_file_add(&src->digest, buf + XFER_FRAME_BYTES, got);
	src->offset += got;
	src->read_bytes += got;
	return xfer_put_data(buf, open_index(src), (uint32_t)got) + got;
}

static size_t put_done(struct xfer_source *src, uint8_t *buf)
{
	struct xfer_sum sum = {
		.files = (uint32_t)src->files,
		.failed = (uint32_t)(src->failed + src->list->refused),
		.bytes = src->bytes,
	};

	src->done = 1;
	return xfer_put_sum(buf, XFER_DONE, &sum);
}

static size_t step(struct xfer_source *src, uint8_t *buf, size_t cap)
{
	if (src->fd >= 0 && src->list->entry[open_index(src)].failed) {
		struct xfer_end end = {.status = XFER_FAILED, .text = "given up"};

		return end_file(src, buf, &end); /* the receiver's reason was said already */
	}
	if (src->fd >= 0 && src->offset < (uint64_t)src->st.st_size)
		return read_some(src, buf, cap);
	if (src->fd >= 0)
		return finish_file(src, buf);
	if (src->next < src->list->n)
		return begin_entry(src, buf);
	return put_done(src, buf);
}

size_t xfer_source_fill(struct xfer_source *src, uint8_t *block, size_t cap)
{
	size_t used = 0;

	while (!src->done && cap - used >= XFER_FRAME_MAX)
		used += step(src, block + used, cap - used);
	return used;
}

void xfer_source_skip(struct xfer_source *src, uint32_t index)
{
	if (index < src->list->n)
		entry_failed(src, &src->list->entry[index]);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * From frames to files. See xfer_sink.h; names are checked by xfer_path.c.
 */
#include "tool/xfer_sink.h"

#include "tool/say.h"
#include "tool/xfer_path.h"

#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define PART_TRIES 100

int xfer_sink_init(struct xfer_sink *sink, int top, const char *top_name,
		   const struct sink_opts *opts)
{
	*sink = (struct xfer_sink){
		.top = top, .top_name = top_name, .opts = *opts, .fd = -1, .dir = -1};
	sink->last_index = -1;
	sink->outbox.cap = OUTBOX_MAX;
	sink->outbox.buf = malloc(OUTBOX_MAX);
	if (!sink->outbox.buf || digest_init(&sink->digest) < 0) {
		free(sink->outbox.buf);
		return -ENOMEM;
	}
	return 0;
}

/* ---- failures ------------------------------------------------------------------- */

static void close_dir(struct xfer_sink *sink)
{
	if (sink->dir >= 0)
		close(sink->dir);
	sink->dir = -1;
}

/* Gives the open .part file up; 1 if there was one to remove. */
static int drop_part(struct xfer_sink *sink)
{
	int had = sink->fd >= 0;

	if (had) {
		close(sink->fd);
		unlinkat(sink->dir, sink->part, 0);
	}
	sink->fd = -1;
	close_dir(sink);
	return had;
}

/* This entry fails, here; said here and over there. The caller has room in the outbox. */
static void fail(struct xfer_sink *sink, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void fail(struct xfer_sink *sink, const char *fmt, ...)
{
	uint32_t index = (uint32_t)sink->last_index;
	struct outbox *box = &sink->outbox;
	char why[512], text[XFER_PATH_MAX + 600];
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, sizeof why, fmt, args);
	va_end(args);
	sink->failed++;
	snprintf(text, sizeof text, "%s: %s%s", sink->entry.path, why,
		 drop_part(sink) ? "; its .part file was removed" : "");
	say("%s", text);
	if (box->cap - box->used >= 2 * XFER_FRAME_MAX) /* SUMMARY always fits */
		box->used += xfer_put_result(box->buf + box->used, index, XFER_FAILED, text);
}

static void fail_errno(struct xfer_sink *sink, const char *what, int err)
{
	if (err == ENOSPC || err == EDQUOT)
		fail(sink, "%s: %s: make room in %s", what, strerror(err), sink->top_name);
	else if (err == ELOOP || err == ENOTDIR)
		fail(sink, "%s: a part of its path is a link or no directory", what);
	else
		fail(sink, "%s: %s", what, strerror(err));
}

/* ---- files ---------------------------------------------------------------------- */

static int open_parent(struct xfer_sink *sink)
{
	const char *why = xfer_path_refused(sink->entry.path);

	close_dir(sink);
	if (why) {
		fail(sink, "refused: %s", why);
		return -1;
	}
	sink->dir = xfer_path_parent(sink->top, sink->entry.path, &sink->name);
	if (sink->dir >= 0)
		return 0;
	fail_errno(sink, "its directory cannot be opened", -sink->dir);
	return -1;
}

/* 0: the name is free, or may be replaced. */
static int check_name(struct xfer_sink *sink)
{
	struct stat st;

	if (fstatat(sink->dir, sink->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		fail(sink, "is a directory here: move it away");
	else if (!sink->opts.overwrite)
		fail(sink, "exists already: 'sdr recv --overwrite' would replace it");
	else
		return 0;
	return -1;
}

static int check_room(struct xfer_sink *sink)
{
	char need[UNITS_TEXT], free_text[UNITS_TEXT];
	struct statvfs vfs;
	uint64_t room;

	if (fstatvfs(sink->top, &vfs) < 0)
		return 0;
	room = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	if (sink->entry.size <= room)
		return 0;
	fail(sink, "needs %s, but only %s are free: make room in %s",
	     units_size_text(need, sink->entry.size), units_size_text(free_text, room),
	     sink->top_name);
	return -1;
}

/* NAME.part, or NAME.1.part ...: a file that somebody else may need is never replaced. */
static int open_part(struct xfer_sink *sink)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

	for (int i = 0; i < PART_TRIES; i++) {
		int len = i == 0 ? snprintf(sink->part, sizeof sink->part, "%s.part", sink->name)
				 : snprintf(sink->part, sizeof sink->part, "%s.%d.part", sink->name,
					    i);

		if (len >= (int)sizeof sink->part) {
			errno = ENAMETOOLONG;
			return -1;
		}
		sink->fd = openat(sink->dir, sink->part, flags, 0600);
		if (sink->fd >= 0 || errno != EEXIST)
			break;
	}
	return sink->fd >= 0 ? 0 : -1;
}

static void begin_file(struct xfer_sink *sink)
{
	sink->in_file = 1;
	sink->offset = 0;
	if (open_parent(sink) < 0 || check_name(sink) < 0 || check_room(sink) < 0)
		return;
	if (open_part(sink) < 0)
		fail_errno(sink, "cannot be created", errno);
	digest_file_begin(&sink->digest);
}

static int take_data(struct xfer_sink *sink, const struct xfer_frame *f)
{
	size_t done = 0;

	if (!sink->in_file || f->index != sink->last_index ||
	    f->len > sink->entry.size - sink->offset)
		return -EBADMSG;
	sink->taken_bytes += f->len;
	while (sink->fd >= 0 && done < f->len) {
		ssize_t n = pwrite(sink->fd, f->body + done, f->len - done,
				   (off_t)(sink->offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			fail_errno(sink, "writing failed", errno);
		else
			done += (size_t)n;
	}
	if (sink->fd >= 0)
		digest_file_add(&sink->digest, f->body, f->len);
	sink->offset += f->len;
	return 0;
}

/* Modes, times, close; the caller renames. 0 or -1 and errno. */
static int settle_file(struct xfer_sink *sink)
{
	struct timespec times[2] = {
		{.tv_nsec = UTIME_OMIT},
		{.tv_sec = sink->entry.mtime_s, .tv_nsec = (long)sink->entry.mtime_ns}};
	int rc = fchmod(sink->fd, sink->entry.mode) < 0 || futimens(sink->fd, times) < 0;
	int err = errno;

	/* Some file systems find out at close that there was no room. */
	if (close(sink->fd) < 0 && !rc) {
		rc = 1;
		err = errno;
	}
	sink->fd = -1;
	if (rc)
		unlinkat(sink->dir, sink->part, 0);
	errno = err;
	return rc ? -1 : 0;
}

static int rename_part(struct xfer_sink *sink)
{
	unsigned int flags = sink->opts.overwrite ? 0 : RENAME_NOREPLACE;
	int rc = renameat2(sink->dir, sink->part, sink->dir, sink->name, flags);

	if (rc < 0 && errno == EINVAL && flags) {
		/* A file system without RENAME_NOREPLACE: a hard link is as careful. */
		rc = linkat(sink->dir, sink->part, sink->dir, sink->name, 0);
		if (rc == 0)
			unlinkat(sink->dir, sink->part, 0);
	}
	if (rc < 0) {
		int err = errno;

		unlinkat(sink->dir, sink->part, 0);
		errno = err;
	}
	return rc;
}

static void finish_file(struct xfer_sink *sink, const struct xfer_end *end)
{
	uint8_t mine[DIGEST_BYTES];
	char text[DIGEST_TEXT];

	digest_file_end(&sink->digest, mine);
	if (sink->offset != sink->entry.size || memcmp(mine, end->digest, DIGEST_BYTES) != 0) {
		fail(sink, "its digest is not the sender's: what arrived is not what was sent");
		return;
	}
	if (settle_file(sink) < 0) {
		fail_errno(sink, "cannot be finished, so its .part file was removed", errno);
		return;
	}
	if (rename_part(sink) < 0) {
		fail_errno(sink, "cannot be given its name, so its .part file was removed", errno);
		return;
	}
	close_dir(sink);
	digest_file_count(&sink->digest, mine);
	sink->sum.files++;
	sink->sum.bytes += sink->entry.size;
	if (sink->opts.print_sums)
		out("%s  %s", digest_text(text, mine), sink->entry.path);
}

static int take_end(struct xfer_sink *sink, const struct xfer_frame *f)
{
	struct xfer_end end;

	if (!sink->in_file || f->index != sink->last_index || xfer_get_end(f, &end) < 0)
		return -EBADMSG;
	sink->in_file = 0;
	if (sink->fd < 0)
		return 0; /* failed before, and said */
	if (end.status == XFER_OK) {
		finish_file(sink, &end);
		return 0;
	}
	drop_part(sink);
	say("%s: the sender gave it up: %s; its .part file was removed", sink->entry.path,
	    end.text);
	return 0;
}

/* ---- directories and links -------------------------------------------------------- */

/* A directory that is here already and shut to its owner opens until its end comes. */
static void open_up_dir(const struct xfer_sink *sink, mode_t mode)
{
	int fd;

	if ((mode & 0700) == 0700)
		return;
	fd = openat(sink->dir, sink->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return; /* the first file in it says what is wrong */
	(void)fchmod(fd, (mode & 07777) | 0700);
	(void)close(fd);
}

static void make_dir(struct xfer_sink *sink)
{
	struct stat st;

	if (open_parent(sink) < 0)
		return;
	if (mkdirat(sink->dir, sink->name, 0700 | (sink->entry.mode & 0777)) == 0)
		return;
	if (errno == EEXIST && fstatat(sink->dir, sink->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISDIR(st.st_mode)) {
		open_up_dir(sink, st.st_mode);
		return;
	}
	fail_errno(sink, "the directory cannot be made", errno);
}

/* Its contents are there: now it gets its mode and times. */
static void end_dir(struct xfer_sink *sink)
{
	struct timespec times[2] = {
		{.tv_nsec = UTIME_OMIT},
		{.tv_sec = sink->entry.mtime_s, .tv_nsec = (long)sink->entry.mtime_ns}};
	int fd;

	if (open_parent(sink) < 0)
		return;
	fd = openat(sink->dir, sink->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || futimens(fd, times) < 0 || fchmod(fd, sink->entry.mode) < 0)
		fail_errno(sink, "mode and time of the directory cannot be set", errno);
	if (fd >= 0)
		close(fd);
}

static void make_link(struct xfer_sink *sink)
{
	const struct xfer_entry *e = &sink->entry;
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
				    {.tv_sec = e->mtime_s, .tv_nsec = (long)e->mtime_ns}};
	const char *why = NULL;

	if (open_parent(sink) < 0)
		return;
	why = xfer_link_refused(e->path, e->target);
	if (why) {
		fail(sink, "refused: %s (it points to %.200s)", why, e->target);
		return;
	}
	if (check_name(sink) < 0)
		return;
	if (sink->opts.overwrite)
		unlinkat(sink->dir, sink->name, 0);
	if (symlinkat(e->target, sink->dir, sink->name) < 0)
		fail_errno(sink, "the symbolic link cannot be made", errno);
	else
		utimensat(sink->dir, sink->name, times, AT_SYMLINK_NOFOLLOW);
}

/* ---- frames ----------------------------------------------------------------------- */

static int take_entry(struct xfer_sink *sink, const struct xfer_frame *f)
{
	if (sink->in_file || (int64_t)f->index <= sink->last_index ||
	    xfer_get_entry(f, &sink->entry) < 0)
		return -EBADMSG;
	sink->last_index = f->index;
	if (f->type == XFER_FILE)
		begin_file(sink);
	else if (f->type == XFER_DIR)
		make_dir(sink);
	else if (f->type == XFER_DIR_END)
		end_dir(sink);
	else
		make_link(sink);
	return 0;
}

static int take_done(struct xfer_sink *sink, const struct xfer_frame *f)
{
	struct outbox *box = &sink->outbox;
	struct xfer_sum theirs;

	if (sink->in_file || xfer_get_sum(f, &theirs) < 0)
		return -EBADMSG;
	sink->done = 1;
	sink->skipped = theirs.failed;
	sink->sum.failed = (uint32_t)sink->failed;
	digest_all(&sink->digest, sink->sum.digest);
	box->used += xfer_put_sum(box->buf + box->used, XFER_SUMMARY, &sink->sum);
	return 0;
}

static int take_frame(struct xfer_sink *sink, const struct xfer_frame *f)
{
	if (sink->done)
		return -EBADMSG;
	switch (f->type) {
	case XFER_FILE:
	case XFER_DIR:
	case XFER_LINK:
	case XFER_DIR_END:
		return take_entry(sink, f);
	case XFER_DATA:
		return take_data(sink, f);
	case XFER_END:
		return take_end(sink, f);
	case XFER_DONE:
		return take_done(sink, f);
	default:
		return -EBADMSG;
	}
}

int xfer_sink_block(struct xfer_sink *sink, const uint8_t *block, size_t len)
{
	struct xfer_frame f;
	size_t at = 0;
	int rc;

	while ((rc = xfer_next(block, len, &at, &f)) == 1) {
		rc = take_frame(sink, &f);
		if (rc < 0)
			break;
	}
	return rc;
}

void xfer_sink_fini(struct xfer_sink *sink)
{
	if (drop_part(sink))
		say("%s: not complete: its .part file was removed", sink->entry.path);
	digest_fini(&sink->digest);
	free(sink->outbox.buf);
	sink->outbox.buf = NULL;
}

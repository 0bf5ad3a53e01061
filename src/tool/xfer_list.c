// SPDX-License-Identifier: Apache-2.0
/*
 * Walks what is to be sent. See xfer_list.h. fts(3) does the walking; a link is followed
 * only where a person named it.
 */
#include "tool/xfer_list.h"

#include "tool/say.h"

#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *list_entry_name(const struct list_entry *e)
{
	return e->name ? e->name : e->disk + e->name_at;
}

void xfer_list_fini(struct xfer_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->entry[i].disk);
		free(list->entry[i].name);
	}
	free(list->entry);
	*list = (struct xfer_list){0};
}

static struct list_entry *append(struct xfer_list *list)
{
	if (list->n == UINT32_MAX - 1)
		return NULL;
	if (list->n == list->cap) {
		size_t cap = list->cap ? 2 * list->cap : 64;
		struct list_entry *grown = realloc(list->entry, cap * sizeof *grown);

		if (!grown)
			return NULL;
		list->entry = grown;
		list->cap = cap;
	}
	list->entry[list->n] = (struct list_entry){0};
	return &list->entry[list->n++];
}

/*
 * The name over there: the last component of what was named and what lies below it.
 * `root` is that component where it is not in the path itself ("." or "dir/.."), else
 * NULL and root_at is where it starts.
 */
struct naming {
	const char *root;
	size_t root_at, root_len; /* root_len: of the path as it was named */
};

static int set_name(struct list_entry *e, const struct naming *nm)
{
	if (!nm->root) {
		e->name_at = nm->root_at;
		return 0;
	}
	return asprintf(&e->name, "%s%s", nm->root, e->disk + nm->root_len) < 0 ? -1 : 0;
}

static int add_entry(struct xfer_list *list, const FTSENT *ent, enum xfer_type type,
		     const struct naming *nm)
{
	struct list_entry *e = append(list);

	if (!e)
		return -1;
	e->type = type;
	e->follow = ent->fts_level == FTS_ROOTLEVEL;
	e->disk = strdup(ent->fts_path);
	if (!e->disk || set_name(e, nm) < 0)
		return -1;
	if (type == XFER_FILE) {
		e->size = (uint64_t)ent->fts_statp->st_size;
		list->files++;
		list->bytes += e->size;
	}
	if (strlen(list_entry_name(e)) > XFER_PATH_MAX) {
		say("%s: the name is longer than %u bytes: not sent", e->disk, XFER_PATH_MAX);
		list->refused++;
		e->failed = 1;
	}
	return 0;
}

static const char *kind_text(mode_t mode)
{
	return S_ISFIFO(mode)	? "a pipe"
	       : S_ISSOCK(mode) ? "a socket"
	       : S_ISBLK(mode)	? "a block device"
	       : S_ISCHR(mode)	? "a character device"
				: "of an unknown kind";
}

static int take(struct xfer_list *list, const FTSENT *ent, const struct naming *nm)
{
	switch (ent->fts_info) {
	case FTS_F:
		return add_entry(list, ent, XFER_FILE, nm);
	case FTS_D:
		return add_entry(list, ent, XFER_DIR, nm);
	case FTS_DP:
		return add_entry(list, ent, XFER_DIR_END, nm);
	case FTS_SL:
	case FTS_SLNONE:
		return add_entry(list, ent, XFER_LINK, nm);
	case FTS_DC:
		say("%s: a directory that contains itself: not sent", ent->fts_path);
		break;
	case FTS_DEFAULT:
		say("%s: is %s, not a file or directory: not sent", ent->fts_path,
		    kind_text(ent->fts_statp->st_mode));
		break;
	default:
		say("%s: cannot be read: %s", ent->fts_path, strerror(ent->fts_errno));
		break;
	}
	list->refused++;
	return 0;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int walk(struct xfer_list *list, char *path, const struct naming *nm)
{
	char *paths[2] = {path, NULL};
	FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
	FTSENT *ent;
	int rc = 0;

	if (!fts)
		return -1;
	while (rc == 0 && (ent = fts_read(fts)))
		rc = take(list, ent, nm);
	fts_close(fts);
	return rc;
}

/* Drops slashes at the end: "dir/" is "dir". */
static char *trimmed(const char *path)
{
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		len--;
	return strndup(path, len);
}

int xfer_list_add(struct xfer_list *list, const char *path)
{
	char *named = trimmed(path), *real = NULL;
	struct naming nm = {0};
	const char *last;
	int rc = -1;

	if (!named)
		return -1;
	last = strrchr(named, '/');
	last = last ? last + 1 : named;
	nm.root_at = (size_t)(last - named);
	nm.root_len = strlen(named);
	if (*last == '\0' || strcmp(last, ".") == 0 || strcmp(last, "..") == 0) {
		real = realpath(named, NULL);
		nm.root = real ? strrchr(real, '/') + 1 : "";
		if (*nm.root == '\0') {
			say("%s: has no name that the other end could give it: name something "
			    "below it",
			    path);
			list->refused++;
			rc = 0;
			goto out;
		}
	}
	rc = walk(list, named, &nm);
out:
	free(real);
	free(named);
	return rc;
}

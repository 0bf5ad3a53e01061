/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a transfer sends: the files, directories and links below the paths that a person
 * named, in order, each with the name it gets at the other end.
 */
#ifndef SDR_TOOL_XFER_LIST_H
#define SDR_TOOL_XFER_LIST_H

#include "tool/xfer_proto.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct list_entry {
	enum xfer_type type; /* XFER_FILE, XFER_DIR, XFER_LINK, XFER_DIR_END */
	char *disk;	     /* where it lies here */
	size_t name_at;	     /* the name over there is disk + name_at, or `name` */
	char *name;	     /* NULL: see name_at */
	int follow;	     /* named by the person: a link is followed */
	uint8_t failed;	     /* here or over there */
	uint64_t size;	     /* when it was listed */
};

struct xfer_list {
	struct list_entry *entry;
	size_t n, cap;
	uint64_t files, bytes;
	uint64_t refused; /* things that cannot be sent; each was said */
};

/* Adds what path names. What cannot be sent is said and counted; -1: out of memory. */
int xfer_list_add(struct xfer_list *list, const char *path);
void xfer_list_fini(struct xfer_list *list);
const char *list_entry_name(const struct list_entry *e);

#endif

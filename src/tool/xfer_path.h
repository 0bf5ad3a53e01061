/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that come from the other end: which are safe, and opening what they mean below
 * a directory without ever following a symbolic link or leaving it.
 */
#ifndef SDR_TOOL_XFER_PATH_H
#define SDR_TOOL_XFER_PATH_H

/* NULL: a relative path without empty, "." or ".." components; else why it is refused. */
const char *xfer_path_refused(const char *path);
/* The same for a symbolic link at `path` that points to `target`: it stays below the top. */
const char *xfer_link_refused(const char *path, const char *target);

/*
 * The directory that holds the last component of path (which xfer_path_refused() let
 * pass), below top; *name is that component, within path. Returns a descriptor
 * (O_PATH), the caller's, or -errno: -ELOOP or -ENOTDIR where a component is a link.
 */
int xfer_path_parent(int top, const char *path, const char **name);

#endif

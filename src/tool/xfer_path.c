// SPDX-License-Identifier: Apache-2.0
/*
 * Path safety at the receiver. See xfer_path.h. Component by component with O_NOFOLLOW:
 * what a component is can change under us, where it leads cannot.
 */
#include "tool/xfer_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

static int is_dots(const char *p, size_t len, size_t dots)
{
	return len == dots && memcmp(p, "..", dots) == 0;
}

const char *xfer_path_refused(const char *path)
{
	const char *p = path;

	if (*p == '\0')
		return "the name is empty";
	if (*p == '/')
		return "absolute names are not taken";
	if (strlen(path) >= PATH_MAX)
		return "the name is longer than 4095 bytes";
	for (;;) {
		size_t len = strcspn(p, "/");

		if (len == 0)
			return "the name has an empty component";
		if (is_dots(p, len, 1) || is_dots(p, len, 2))
			return "names with '.' or '..' are not taken";
		if (len > NAME_MAX)
			return "a component of the name is longer than 255 bytes";
		if (p[len] == '\0')
			return NULL;
		p += len + 1;
	}
}

const char *xfer_link_refused(const char *path, const char *target)
{
	long depth = 0, named = 0;

	if (*target == '\0' || *target == '/')
		return "a symbolic link to an absolute name is not taken";
	for (const char *p = path; *p; p++)
		depth += *p == '/';
	for (const char *p = target; *p;) {
		size_t len = strcspn(p, "/");

		/* ".." after a name would leave whatever that name is a link to. */
		if (is_dots(p, len, 2))
			depth = named ? -1 : depth - 1;
		else if (len > 0 && !is_dots(p, len, 1))
			named = 1;
		if (depth < 0)
			return "a symbolic link that leaves the received directory is not taken";
		p += len;
		p += *p == '/';
	}
	return NULL;
}

int xfer_path_parent(int top, const char *path, const char **name)
{
	int dir = openat(top, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char component[NAME_MAX + 1];

	while (dir >= 0) {
		size_t len = strcspn(path, "/");
		int next, err;

		if (path[len] == '\0') {
			*name = path;
			return dir;
		}
		if (len > NAME_MAX) {
			close(dir);
			return -ENAMETOOLONG;
		}
		memcpy(component, path, len);
		component[len] = '\0';
		next = openat(dir, component, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		err = errno;
		close(dir);
		errno = err;
		dir = next;
		path += len + 1;
	}
	return -errno;
}

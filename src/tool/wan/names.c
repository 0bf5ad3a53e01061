// SPDX-License-Identifier: Apache-2.0
/*
 * Names, addresses and the lock of a link. See names.h. The lock belongs to the open file
 * (F_OFD_SETLK), so it goes when the emulator does, however it goes, and can be looked at
 * without being taken.
 */
#include "tool/wan/names.h"

#include "tool/say.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TAKE_TRIES 20

/* FNV-1a, then mixed so that its low bits depend on all of the name. */
static uint64_t hash_name(const char *name)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	h ^= h >> 33;
	h *= UINT64_C(0xff51afd7ed558ccd);
	return h ^ (h >> 33);
}

static void end_init(struct wan_end_names *e, const char *name, int end, uint64_t h)
{
	uint8_t *v6 = e->v6.s6_addr;

	snprintf(e->ns, sizeof e->ns, "%s-%c", name, "ab"[end]);
	snprintf(e->mount, sizeof e->mount, WAN_NETNS "/%s-%c", name, "ab"[end]);
	snprintf(e->record, sizeof e->record, WAN_BASE "/%s/ns-%c", name, "ab"[end]);
	e->v4.s_addr = htonl((uint32_t)(10u << 24 | (h & 0xffff) << 8 | (unsigned int)(end + 1)));
	v6[0] = 0xfd;
	for (int i = 1; i < 6; i++)
		v6[i] = (uint8_t)(h >> (16 + 8 * i));
	v6[15] = (uint8_t)(end + 1);
	inet_ntop(AF_INET, &e->v4, e->v4_text, sizeof e->v4_text);
	inet_ntop(AF_INET6, &e->v6, e->v6_text, sizeof e->v6_text);
}

bool wan_name_ok(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= WAN_NAME_MAX && name[0] != '-' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

int wan_names_init(struct wan_names *n, const char *name)
{
	uint64_t h = hash_name(name);

	if (!wan_name_ok(name)) {
		say("'%.64s' is no name for a link: choose 1 to %d of a-z, 0-9 and '-', which "
		    "does not come first",
		    name, WAN_NAME_MAX);
		return -1;
	}
	memset(n, 0, sizeof *n);
	memcpy(n->name, name, strlen(name));
	snprintf(n->dir, sizeof n->dir, WAN_BASE "/%s", n->name);
	snprintf(n->lock, sizeof n->lock, WAN_BASE "/%s/lock", n->name);
	snprintf(n->ctl, sizeof n->ctl, WAN_BASE "/%s/ctl", n->name);
	end_init(&n->end[WAN_A], name, WAN_A, h);
	end_init(&n->end[WAN_B], name, WAN_B, h);
	return 0;
}

/* ---- the lock --------------------------------------------------------------------- */

static struct flock whole_file(void)
{
	return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
}

static int open_lock(const struct wan_names *n)
{
	if ((mkdir(WAN_BASE, 0755) < 0 && errno != EEXIST) ||
	    (mkdir(n->dir, 0700) < 0 && errno != EEXIST))
		return -errno;
	int fd = open(n->lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

/* The file that we locked is still the one of that name: nobody removed it in between. */
static bool still_there(const struct wan_names *n, int fd)
{
	struct stat ours, named;

	return fstat(fd, &ours) == 0 && stat(n->lock, &named) == 0 && ours.st_dev == named.st_dev &&
	       ours.st_ino == named.st_ino;
}

int wan_lock_take(const struct wan_names *n)
{
	struct flock lock = whole_file();
	char pid[24];
	int fd = -EAGAIN, len;

	for (int tries = 0; tries < TAKE_TRIES; tries++) {
		fd = open_lock(n);
		if (fd == -ENOENT)
			continue; /* a link that goes took the directory away */
		if (fd < 0)
			break;
		if (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
			close(fd);
			return -EBUSY;
		}
		if (still_there(n, fd)) {
			len = snprintf(pid, sizeof pid, "%d\n", (int)getpid());
			if (ftruncate(fd, 0) < 0 || write(fd, pid, (size_t)len) != len)
				say("%s: the pid could not be written: %s", n->lock,
				    strerror(errno));
			return fd;
		}
		close(fd);
		fd = -EAGAIN;
	}
	say("%s: cannot be made: %s", n->lock, strerror(-fd));
	return fd;
}

enum wan_state wan_state(const struct wan_names *n)
{
	struct flock lock = whole_file();
	enum wan_state state = WAN_DEAD;
	struct stat st;
	int fd = open(n->lock, O_RDWR | O_CLOEXEC);

	if (fd < 0 && errno == EACCES)
		return WAN_DENIED;
	if (fd < 0)
		return stat(n->dir, &st) == 0 ? WAN_DEAD : WAN_ABSENT;
	if (fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK)
		state = WAN_UP;
	close(fd);
	return state;
}

void wan_lock_drop(const struct wan_names *n, int lock)
{
	unlink(n->ctl);
	unlink(n->end[WAN_A].record);
	unlink(n->end[WAN_B].record);
	unlink(n->lock);
	rmdir(n->dir);
	rmdir(WAN_BASE); /* the last one turns off the light */
	close(lock);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * How a link's ends go away: devices, the processes that were left in the namespaces, the
 * namespaces. See ends.h.
 */
#include "tool/wan/ends.h"

#include "tool/say.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define TERM_ROUNDS 50 /* of 20 ms between SIGTERM and SIGKILL, and again after it */

struct ns_id {
	uintmax_t dev, ino;
};

static bool is_ns(const char *path, const struct ns_id *id)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_dev == id->dev && st.st_ino == id->ino;
}

/* Signals one process if it is in one of the namespaces; 1 if it was. */
static int signal_one(const char *pid, const struct ns_id *ids, size_t n, int sig)
{
	char path[64];
	int fd, found = 0;

	/* The descriptor first: what is looked at then is what is signalled. */
	fd = (int)syscall(SYS_pidfd_open, atoi(pid), 0);
	if (fd < 0)
		return 0;
	snprintf(path, sizeof path, "/proc/%.20s/ns/net", pid);
	for (size_t i = 0; i < n; i++)
		found |= is_ns(path, &ids[i]);
	if (found)
		syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
	close(fd);
	return found;
}

/* Signals every process in the namespaces; returns how many. */
static int signal_all(const struct ns_id *ids, size_t n, int sig)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int count = 0;

	while (proc && (entry = readdir(proc)) != NULL) {
		if (isdigit((unsigned char)entry->d_name[0]) && atoi(entry->d_name) != getpid())
			count += signal_one(entry->d_name, ids, n, sig);
	}
	if (proc)
		closedir(proc);
	return count;
}

static int end_processes(const struct ns_id *ids, size_t n)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	int found = n ? signal_all(ids, n, SIGTERM) : 0;

	for (int round = 0; found && round < 2 * TERM_ROUNDS; round++) {
		/* Signal 0 only counts. */
		if (signal_all(ids, n, round < TERM_ROUNDS ? 0 : SIGKILL) == 0)
			break;
		nanosleep(&pause, NULL);
	}
	return found;
}

static bool read_record(const struct wan_end_names *n, struct ns_id *id)
{
	FILE *f = fopen(n->record, "re");
	bool ok;

	if (!f)
		return false;
	ok = fscanf(f, "%ju %ju", &id->dev, &id->ino) == 2;
	fclose(f);
	return ok;
}

/* Killed between making the file and mounting the namespace on it. */
static bool is_bare_file(const char *path)
{
	struct statfs fs;
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0 &&
	       statfs(path, &fs) == 0 && fs.f_type != NSFS_MAGIC;
}

static void unmount_one(const struct wan_end_names *n)
{
	if (umount2(n->mount, MNT_DETACH) < 0 && errno != EINVAL && errno != ENOENT)
		say("%s: cannot be unmounted: %s", n->mount, strerror(errno));
	if (unlink(n->mount) < 0 && errno != ENOENT)
		say("%s: cannot be removed: %s: ip netns del %s", n->mount, strerror(errno), n->ns);
}

int wan_ends_clean(const struct wan_names *n)
{
	bool ours[2] = {false, false};
	struct ns_id ids[2];
	size_t count = 0;
	int found;

	for (int end = WAN_A; end <= WAN_B; end++) {
		struct ns_id id;

		if (!read_record(&n->end[end], &id))
			continue;
		if (is_bare_file(n->end[end].mount))
			unlink(n->end[end].mount);
		if (!is_ns(n->end[end].mount, &id))
			continue;
		ours[end] = true;
		ids[count++] = id;
	}
	found = end_processes(ids, count);
	for (int end = WAN_A; end <= WAN_B; end++) {
		if (ours[end])
			unmount_one(&n->end[end]);
	}
	return found;
}

int wan_ends_remove(struct wan_ends *e, const struct wan_names *n)
{
	for (int end = WAN_A; end <= WAN_B; end++) {
		if (e->end[end].tun >= 0)
			close(e->end[end].tun);
		if (e->end[end].netlink >= 0)
			close(e->end[end].netlink);
		e->end[end].tun = e->end[end].netlink = -1;
	}
	return wan_ends_clean(n);
}

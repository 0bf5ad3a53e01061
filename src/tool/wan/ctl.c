// SPDX-License-Identifier: Apache-2.0
/*
 * The client's side of a link's socket. See ctl.h.
 */
#include "tool/wan/ctl.h"

#include "tool/say.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Why there is nobody to talk to. */
static int say_state(const struct wan_names *n)
{
	switch (wan_state(n)) {
	case WAN_ABSENT:
		say("there is no link '%s': 'sdr wan stat' lists those that are up", n->name);
		break;
	case WAN_DEAD:
		say("the emulator of link '%s' was killed: 'sdr wan down %s' clears up, 'sdr wan "
		    "up "
		    "%s' makes the link anew",
		    n->name, n->name, n->name);
		break;
	case WAN_DENIED:
		say("link '%s' belongs to root: use sudo", n->name);
		break;
	case WAN_UP:
		say("the emulator of link '%s' does not answer: try again", n->name);
		break;
	}
	return -1;
}

static int say_hung(const struct wan_names *n, int fd)
{
	struct ucred peer = {0};
	socklen_t len = sizeof peer;

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	say("the emulator of link '%s' (process %d) does not answer: if it hangs, 'kill -9 %d' and "
	    "'sdr wan down %s' remove the link",
	    n->name, (int)peer.pid, (int)peer.pid, n->name);
	return -1;
}

static int connect_to(const struct wan_names *n)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = CTL_TIMEOUT_NS / NS_PER_S};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		say("no socket: %s", strerror(errno));
		return -1;
	}
	/* Also for connect(), where others wait for the emulator. */
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	memcpy(addr.sun_path, n->ctl, strlen(n->ctl));
	if (connect(fd, (struct sockaddr *)&addr, sizeof addr) < 0) {
		close(fd);
		return say_state(n);
	}
	return fd;
}

static int send_words(int fd, int n_words, char *const *words)
{
	char request[CTL_REQUEST_MAX];
	size_t used = 0;

	for (int i = 0; i < n_words; i++) {
		size_t len = strlen(words[i]) + 1;

		if (len > sizeof request - used) {
			say("the options are longer than %d bytes: give them in several commands",
			    CTL_REQUEST_MAX);
			return -1;
		}
		memcpy(request + used, words[i], len);
		used += len;
	}
	/* Who hung up has answered before it heard us: there is no place. */
	if ((send(fd, request, used, MSG_NOSIGNAL) != (ssize_t)used || shutdown(fd, SHUT_WR) < 0) &&
	    errno != EPIPE && errno != ECONNRESET && errno != ENOTCONN) {
		say("the link's emulator cannot be asked: %s: try again", strerror(errno));
		return -1;
	}
	return 0;
}

/* Reads to the end of the answer. Bytes, or -1: the time is over or memory is short. */
static ssize_t receive(int fd, uint64_t until_ns, char **buf)
{
	size_t cap = 65536, used = 0;
	ssize_t n;

	*buf = malloc(cap);
	while (*buf) {
		uint64_t now = now_ns();
		struct pollfd p = {.fd = fd, .events = POLLIN};

		if (now >= until_ns)
			return -1;
		if (poll(&p, 1, (int)((until_ns - now) / NS_PER_MS) + 1) < 0 && errno != EINTR)
			return -1;
		if (!p.revents)
			continue;
		n = read(fd, *buf + used, cap - used);
		if (n <= 0)
			return (ssize_t)used;
		used += (size_t)n;
		if (used == CTL_ANSWER_MAX)
			return -1;
		if (used == cap) {
			char *more = realloc(*buf, cap *= 2);

			if (!more)
				return -1;
			*buf = more;
		}
	}
	return -1;
}

/* One try: the kind of the answer, or -1: said. *buf is the whole answer. */
static int try_request(const struct wan_names *n, uint64_t until_ns, int n_words,
		       char *const *words, char **buf)
{
	int fd = connect_to(n), kind = -1;
	ssize_t len;

	*buf = NULL;
	if (fd < 0)
		return -1;
	if (send_words(fd, n_words, words) == 0) {
		len = receive(fd, until_ns, buf);
		if (len < 0)
			say_hung(n, fd);
		else if (len < 2 || (*buf)[len - 1] != '\0')
			say_state(n);
		else
			kind = (*buf)[0];
	}
	close(fd);
	return kind;
}

int ctl_request(const struct wan_names *n, uint64_t timeout_ns, int n_words, char *const *words,
		char **answer)
{
	const struct timespec pause = {.tv_nsec = 50000000};
	uint64_t until = now_ns() + timeout_ns;
	char *buf;
	int kind;

	*answer = NULL;
	while ((kind = try_request(n, until, n_words, words, &buf)) == CTL_BUSY &&
	       now_ns() < until) {
		free(buf);
		nanosleep(&pause, NULL);
	}
	if (kind >= 0)
		*answer = strdup(buf + 1);
	free(buf);
	if (kind >= 0 && !*answer)
		say("no memory for the answer");
	return !*answer ? -1 : kind == CTL_OK ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The emulator's side of the link's socket. See ctl.h. Clients get a place, a time and a room for
 * their request; nothing waits for them.
 */
#include "tool/wan/emu_int.h"

#include "tool/say.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define WORDS_MAX 1024
#define BACKLOG 64

int emu_ctl_open(struct emu *e)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	memcpy(addr.sun_path, e->names->ctl, strlen(e->names->ctl));
	unlink(addr.sun_path); /* of an emulator that was killed: the lock is ours */
	e->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (e->listener >= 0 && bind(e->listener, (struct sockaddr *)&addr, sizeof addr) == 0 &&
	    listen(e->listener, BACKLOG) == 0)
		return 0;
	say("%s: no socket for commands: %s", addr.sun_path, strerror(errno));
	return -1;
}

void emu_ctl_answer(int fd, char kind, const char *text)
{
	size_t len = strlen(text) + 2;
	char *buf = malloc(len);
	int room = CTL_ANSWER_MAX;

	/* With room for all of it the answer goes at once, or the client has filled it by itself.
	 */
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
	if (buf) {
		buf[0] = kind;
		memcpy(buf + 1, text, len - 1);
		if (send(fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			errno = 0; /* the client went away */
	}
	free(buf);
	close(fd);
}

/* The place is free again; its descriptor, which is somebody else's now. */
static int leave(struct emu *e, struct emu_client *c)
{
	int fd = c->fd;

	c->fd = -1;
	e->n_clients--;
	return fd;
}

static void hang_up(struct emu *e, struct emu_client *c)
{
	close(leave(e, c));
}

static void answer(struct emu *e, struct emu_client *c, char kind, const char *text)
{
	emu_ctl_answer(leave(e, c), kind, text);
}

static void answer_owned(struct emu *e, struct emu_client *c, char *text)
{
	if (text)
		answer(e, c, CTL_OK, text);
	else
		answer(e, c, CTL_ERROR, "the emulator has no memory for the answer");
	free(text);
}

void emu_ctl_close(struct emu *e)
{
	for (int i = 0; i < EMU_CLIENTS; i++) {
		if (e->client[i].fd >= 0)
			hang_up(e, &e->client[i]);
	}
	if (e->listener >= 0)
		close(e->listener);
	e->listener = -1;
}

/* ---- requests ---------------------------------------------------------------------- */

static uint64_t offered(const struct emu *e, int from, uint32_t path)
{
	struct wan_dir_stat s;

	if (path >= e->setup.config.n_paths)
		return 0;
	wan_line_stat(e->line, (enum wan_end)from, path, emu_now_ns(e), &s);
	return s.link.offered_pkts;
}

/* The line counts every drop list anew when it gets values: what is left of those lists that
 * nobody named must go on from here. */
static void advance_drops(const struct emu *e, struct link_setup *setup)
{
	for (uint32_t k = 0; k < e->setup.config.n_paths; k++) {
		for (int from = WAN_A; from <= WAN_B; from++) {
			struct wan_path *p = &setup->config.path[from][k];
			uint64_t gone = offered(e, from, k) - e->offered_pkts[from][k];
			size_t kept = 0;

			for (size_t i = 0; i < p->n_drop; i++) {
				if (p->drop[i] >= gone)
					p->drop[kept++] = p->drop[i] - gone;
			}
			p->n_drop = kept;
		}
	}
}

static void note_offered(struct emu *e)
{
	for (uint32_t k = 0; k < LINK_MAX_PATHS; k++) {
		for (int from = WAN_A; from <= WAN_B; from++)
			e->offered_pkts[from][k] = offered(e, from, k);
	}
}

static void set_values(struct emu *e, struct emu_client *c, int n, char *const *words)
{
	uint64_t now = emu_now_ns(e);
	char error[LINK_OPTS_ERROR] = "";
	struct link_setup *to = malloc(sizeof *to);
	int rc;

	if (!to) {
		answer(e, c, CTL_ERROR, "the emulator has no memory for the new values");
		return;
	}
	*to = e->setup;
	advance_drops(e, to);
	rc = link_opts_apply(to, now, n, words, error);
	if (rc == 0) {
		rc = wan_line_set(e->line, now, &to->config);
		if (rc < 0)
			snprintf(error, sizeof error, "the link's values do not fit together: %s",
				 strerror(-rc));
	}
	if (rc == 0) {
		if (to->rebind)
			wan_line_rebind(e->line);
		to->rebind = false;
		e->setup = *to;
		note_offered(e);
		emu_values_changed(e);
	}
	free(to);
	answer(e, c, rc < 0 ? CTL_ERROR : CTL_OK, error);
}

static void obey(struct emu *e, struct emu_client *c, int n, char *const *words)
{
	const char *verb = n ? words[0] : "";
	bool json = n > 1 && strcmp(words[1], "json") == 0;

	if (strcmp(verb, "stat") == 0) {
		answer_owned(e, c, json ? emu_stat_json(e) : emu_stat_text(e));
	} else if (strcmp(verb, "brief") == 0) {
		answer_owned(e, c, json ? emu_brief_json(e) : emu_brief_text(e));
	} else if (strcmp(verb, "set") == 0) {
		set_values(e, c, n - 1, words + 1);
	} else if (strcmp(verb, "down") == 0) {
		/* Answered when all is gone; the first who asks is told. */
		e->stop = true;
		if (e->asked_by < 0)
			e->asked_by = leave(e, c);
	} else {
		answer(e, c, CTL_ERROR,
		       "the emulator is of another version of sdr and does not know "
		       "this request");
	}
}

/* The request is complete: words that end in NUL each. */
static void parse(struct emu *e, struct emu_client *c)
{
	char *words[WORDS_MAX];
	size_t at = 0;
	int n = 0;

	if (c->used == 0 || c->request[c->used - 1] != '\0') {
		hang_up(e, c);
		return;
	}
	while (at < c->used && n < WORDS_MAX) {
		words[n++] = c->request + at;
		at += strlen(c->request + at) + 1;
	}
	if (at < c->used)
		answer(e, c, CTL_ERROR,
		       "more options than an emulator takes at once: give them in "
		       "several commands");
	else
		obey(e, c, n, words);
}

static void serve(struct emu *e, struct emu_client *c)
{
	ssize_t n = recv(c->fd, c->request + c->used, sizeof c->request - c->used, MSG_DONTWAIT);

	if (n > 0) {
		c->used += (size_t)n;
		if (c->used == sizeof c->request)
			answer(e, c, CTL_ERROR, "the request is too long");
	} else if (n == 0) {
		parse(e, c);
	} else if (errno != EAGAIN && errno != EINTR) {
		hang_up(e, c);
	}
}

static void admit(struct emu *e)
{
	int fd = accept4(e->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return;
	for (int i = 0; i < EMU_CLIENTS; i++) {
		struct emu_client *c = &e->client[i];

		if (c->fd >= 0)
			continue;
		e->n_clients++;
		c->fd = fd;
		c->used = 0;
		c->until_ns = emu_now_ns(e) + EMU_CLIENT_NS;
		return;
	}
	emu_ctl_answer(fd, CTL_BUSY, "too many commands talk to the emulator");
}

/* ---- for the loop ------------------------------------------------------------------ */

size_t emu_ctl_watch(const struct emu *e, struct pollfd *polls)
{
	size_t n = 0;

	polls[n++] = (struct pollfd){.fd = e->listener, .events = POLLIN};
	for (int i = 0; e->n_clients && i < EMU_CLIENTS; i++) {
		if (e->client[i].fd >= 0)
			polls[n++] = (struct pollfd){.fd = e->client[i].fd, .events = POLLIN};
	}
	return n;
}

uint64_t emu_ctl_until_ns(const struct emu *e)
{
	uint64_t until = UINT64_MAX;

	for (int i = 0; e->n_clients && i < EMU_CLIENTS; i++) {
		if (e->client[i].fd >= 0 && e->client[i].until_ns < until)
			until = e->client[i].until_ns;
	}
	return until;
}

static struct emu_client *client_of(struct emu *e, int fd)
{
	for (int i = 0; i < EMU_CLIENTS; i++) {
		if (e->client[i].fd == fd)
			return &e->client[i];
	}
	return NULL;
}

void emu_ctl_serve(struct emu *e, const struct pollfd *polls, size_t n)
{
	uint64_t until = emu_ctl_until_ns(e);

	for (size_t i = 1; i < n; i++) {
		struct emu_client *c = polls[i].revents ? client_of(e, polls[i].fd) : NULL;

		if (c)
			serve(e, c);
	}
	if (until != UINT64_MAX && until <= emu_now_ns(e)) {
		uint64_t now = emu_now_ns(e);

		for (int i = 0; i < EMU_CLIENTS; i++) {
			if (e->client[i].fd >= 0 && e->client[i].until_ns <= now)
				hang_up(e, &e->client[i]);
		}
	}
	if (polls[0].revents)
		admit(e);
}

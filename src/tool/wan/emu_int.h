/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The emulator's inside, shared by emu*.c alone.
 */
#ifndef SDR_TOOL_WAN_EMU_INT_H
#define SDR_TOOL_WAN_EMU_INT_H

#include "tool/hist.h"
#include "tool/wan/ctl.h"
#include "tool/wan/emu.h"
#include "tool/wan/ends.h"
#include "tool/wan/line.h"
#include "tool/wan/packet.h"

#include <poll.h>
#include <stdint.h>

#define EMU_CLIENTS 8
#define EMU_CLIENT_NS (2 * NS_PER_S) /* from connecting to the end of the answer */
#define EMU_POLLS (4 + EMU_CLIENTS)

/* Frames handled before the other work has its turn. */
#define EMU_READ_BATCH 32
#define EMU_WRITE_BATCH 64

/* A command that is talking to us; fd -1: none. */
struct emu_client {
	int fd;
	uint64_t until_ns;
	size_t used;
	char request[CTL_REQUEST_MAX];
};

/* How well the emulator does its work, which the line cannot know. */
struct emu_health {
	uint64_t write_failed[2]; /* by the end that they were for */
	int write_errno;	  /* of the last one */
	struct hist late_ns;	  /* between when a frame was due and when it was handed over */
};

struct emu {
	const struct wan_names *names;
	const struct wan_params *params;
	struct link_setup setup;		  /* as the line has it now */
	uint64_t offered_pkts[2][LINK_MAX_PATHS]; /* when it got it: drop lists count from there */
	struct wan_ends ends;
	struct wan_line *line;
	uint64_t start_ns; /* CLOCK_MONOTONIC where the line's time is 0 */
	uint64_t rest_ns;  /* see emu.c */
	int lock, signals, listener;
	bool stop;
	int asked_by; /* the client that waits for the end; -1: none */
	const char *scheduler;
	struct emu_health health;
	int n_clients; /* with a descriptor */
	struct emu_client client[EMU_CLIENTS];
	uint8_t scratch[WAN_FRAME_MAX];
};

/* The line's time. */
uint64_t emu_now_ns(const struct emu *e);

/* The line has new values in setup. */
void emu_values_changed(struct emu *e);

/* Takes a batch of frames from an end's device; delivers in between what is due. */
void emu_take_in(struct emu *e, enum wan_end from);
/* Delivers what is due, at most a batch. */
void emu_deliver(struct emu *e);

/* The socket; 0 or -1: said. */
int emu_ctl_open(struct emu *e);
void emu_ctl_close(struct emu *e);
/* Adds what is to be watched, to at most EMU_CLIENTS + 1 places; returns how many. */
size_t emu_ctl_watch(const struct emu *e, struct pollfd *polls);
void emu_ctl_serve(struct emu *e, const struct pollfd *polls, size_t n);
/* When the next client's time is over; UINT64_MAX: there is none. Then emu_ctl_serve(). */
uint64_t emu_ctl_until_ns(const struct emu *e);
/* Answers and hangs up. */
void emu_ctl_answer(int fd, char kind, const char *text);

/* malloc()ed text of the answer, or NULL: no memory. */
char *emu_stat_text(struct emu *e);
char *emu_stat_json(struct emu *e);
char *emu_brief_text(struct emu *e);
char *emu_brief_json(struct emu *e);

#endif

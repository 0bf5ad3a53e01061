/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sdr wan: a long, lossy link between two network namespaces of this machine.
 *
 *	wan.c       verbs, options, help      wan_up.c    up, set, stat, down
 *	wan_run.c   exec, run                 names.c     names, addresses, the lock
 *	link_*.c    a link's values           ends.c      namespaces and devices
 *	emu*.c      the emulator              ctl.c       talking to it
 *	line*.c, packet*.c  frames in virtual time
 */
#ifndef SDR_TOOL_WAN_WAN_H
#define SDR_TOOL_WAN_WAN_H

#include "tool/wan/emu.h"
#include "tool/wan/names.h"

#include <stdbool.h>
#include <sys/types.h>

#define WAN_WORDS 512

/* What a verb was called with. */
struct wan_args {
	struct wan_names names;
	bool named;
	struct wan_params params;
	bool json, foreground;
	int n_words; /* options of the link's values, as they were written */
	char *words[WAN_WORDS + 1];
	char **command; /* behind "--"; NULL: none */
};

/* Each returns an exit code. */
int wan_up(struct wan_args *a);
int wan_set(struct wan_args *a);
int wan_stat(struct wan_args *a);
int wan_down(struct wan_args *a);
int wan_run(struct wan_args *a);
int wan_exec(struct wan_args *a, enum wan_end end);

/*
 * Starts an emulator process and waits until its link works. attached: it stays a child that
 * ends with us, and its messages go where ours do; else it lives on by itself. 0, or an exit
 * code: it has said why, and nothing is left of it.
 */
int wan_launch(const struct wan_args *a, bool attached, pid_t *pid);
/* Ends an attached emulator, by force where it must be, and sees that nothing is left. */
int wan_land(const struct wan_args *a, pid_t pid);
/* Removes the remains of a link whose emulator was killed; 0 or -1: said. */
int wan_clear(const struct wan_names *n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The emulator of a link: the process between the two TUN devices. Frames come from the
 * devices, go onto the line (line.h), and leave it when they are due.
 *
 *	emu.c       life: making everything, the loop, removing everything
 *	emu_data.c  frames in and out
 *	emu_ctl.c   the socket that commands talk to
 *	emu_stat.c  what it tells them
 */
#ifndef SDR_TOOL_WAN_EMU_H
#define SDR_TOOL_WAN_EMU_H

#include "tool/wan/link_opts.h"
#include "tool/wan/names.h"

#include <stdbool.h>

/* What a link is made from. */
struct wan_params {
	struct link_setup setup; /* with seed and memory */
	unsigned int mtu_bytes;	 /* of the devices */
	bool offload;
};

/*
 * Makes the link and carries its frames in this process (of one thread) until SIGTERM, SIGINT,
 * SIGHUP or a request to end, then removes it. When the link works a byte is written to
 * ready_fd, which is closed. With quiet the standard streams are let go then. Returns an exit
 * code; what went wrong was said.
 */
int emu_run(const struct wan_names *n, const struct wan_params *p, int ready_fd, bool quiet);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Frames in and out of the emulator. See emu.h. Nothing blocks: a device that takes no frame
 * loses it, and that is counted, since no link has lost it.
 */
#include "tool/wan/emu_int.h"

#include <errno.h>
#include <unistd.h>

/* Hands over one frame that is due; false: none is. */
static bool deliver_one(struct emu *e)
{
	uint64_t now = emu_now_ns(e);
	struct wan_frame f;

	if (!wan_line_take(e->line, now, &f))
		return false;
	hist_add(&e->health.late_ns, now - f.due_ns);
	if (write(e->ends.end[f.to].tun, f.bytes, f.len) < 0) {
		e->health.write_failed[f.to]++;
		e->health.write_errno = errno;
	}
	return true;
}

void emu_deliver(struct emu *e)
{
	for (int i = 0; i < EMU_WRITE_BATCH && deliver_one(e); i++)
		;
}

void emu_take_in(struct emu *e, enum wan_end from)
{
	for (int i = 0; i < EMU_READ_BATCH; i++) {
		void *room = wan_line_buffer(e->line);
		ssize_t len = read(e->ends.end[from].tun, room ? room : e->scratch, WAN_FRAME_MAX);

		if (len <= 0)
			return;
		if (room)
			wan_line_offer(e->line, from, emu_now_ns(e), (size_t)len);
		else
			wan_line_lost(e->line, from);
		/* A long batch must not make late what is due meanwhile. */
		deliver_one(e);
	}
}

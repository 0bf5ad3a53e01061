// SPDX-License-Identifier: Apache-2.0
/*
 * Go-Back-N: the first hole sends everything after it again. See sim.h.
 *
 * What has arrived stays, so only holes count. A pass sends units one after the other, from the
 * first hole on or anew, and takes no pause before the message's end: a unit's slot is its
 * number plus the pass's offset. When the first hole behind becomes known, the next pass begins
 * there; the holes after it become known just as it comes to them.
 */
#include "plan/sim.h"

#include "base/bits.h"

#include <errno.h>
#include <math.h>

#define RUNS_MOST 4e5 /* of losses in one message; longer messages in proportion */
#define WAITS_LEAST 16u

/* behind is s->resend, ahead s->repair; their runs' `ready` is a unit. */
struct pass {
	uint64_t next, high; /* the unit to send, the first that never was */
	uint64_t offset;     /* of slots against units */
};

/* Units [from, to), which the receiver lacks, go out in their slots. */
static int send_lacking(struct sim *s, const struct pass *p, uint64_t from, uint64_t to)
{
	while (from < to) {
		uint64_t slot = from + p->offset, last = to + p->offset, lost_from, lost_to;

		chan_seek(&s->chan, slot);
		lost_from = u64_min(u64_max(s->chan.from, slot), last) - p->offset;
		lost_to = u64_min(s->chan.to, last) - p->offset;
		if (lost_from > from)
			sim_arrived(s, lost_from + p->offset);
		if (lost_from == to)
			break;
		if (sim_queue_push(s, &s->resend, lost_from, lost_to - lost_from))
			return -ENOMEM;
		from = lost_to;
	}
	return 0;
}

/* `count` units from p->next on: holes among those that were sent, then new ones. */
static int send_some(struct sim *s, struct pass *p, uint64_t count)
{
	uint64_t to = p->next + count, fresh = u64_max(p->next, u64_min(p->high, to));
	struct sim_run *hole;

	s->slot += count;
	s->sent += (double)count;
	while ((hole = sim_queue_head(&s->repair)) && hole->ready < to) {
		uint64_t part = u64_min(hole->len, to - hole->ready);

		if (send_lacking(s, p, hole->ready, hole->ready + part))
			return -ENOMEM;
		hole->ready += part;
		hole->len -= part;
		if (hole->len == 0)
			sim_queue_pop(&s->repair);
	}
	p->next = to;
	p->high = u64_max(p->high, to);
	return send_lacking(s, p, fresh, to);
}

/* To the first hole; what lies behind lies ahead again. */
static int rewind_pass(struct sim *s, struct pass *p)
{
	struct sim_queue all;
	struct sim_run *hole;

	p->next = sim_queue_head(&s->resend)->ready;
	p->offset = s->slot - p->next;
	for (; (hole = sim_queue_head(&s->repair)); sim_queue_pop(&s->repair)) {
		if (sim_queue_push(s, &s->resend, hole->ready, hole->len))
			return -ENOMEM;
	}
	all = s->resend;
	s->resend = s->repair;
	s->repair = all;
	return 0;
}

static int send_all(struct sim *s, uint64_t count, uint64_t wait)
{
	struct pass p = {.offset = s->slot};

	for (;;) {
		struct sim_run *hole = sim_queue_head(&s->resend);
		/* Of none behind, the next slot's may be the first to become known. */
		uint64_t due = (hole ? hole->ready + p.offset : s->slot) + 1 + wait;
		int err;

		if (p.next == count && !hole) {
			/* Who sends learns of the last arrival a round trip later, and stops. */
			s->sent -= (double)u64_sub_floor(s->slot, s->end + s->u->rtt_slots);
			return 0;
		}
		if (due <= s->slot || p.next == count) {
			s->slot = u64_max(s->slot, due);
			err = rewind_pass(s, &p);
		} else {
			err = send_some(s, &p, u64_min(count - p.next, due - s->slot));
		}
		if (err)
			return err;
	}
}

int sim_gbn(struct sim *s, uint64_t count, uint64_t wait)
{
	const struct burst *b = &s->u->burst;
	double runs = b->independent ? b->loss : b->loss * b->to_ok, times;
	double most = fmax(RUNS_MOST / fmax(runs, 1e-300), WAITS_LEAST * (double)(wait + 1));
	int err;

	if ((double)count <= most)
		return send_all(s, count, wait);
	times = (double)count / floor(most);
	err = send_all(s, (uint64_t)most, wait);
	s->skipped_time = (times - 1) * (double)s->slot;
	s->sent *= times;
	return err;
}

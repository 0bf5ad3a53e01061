// SPDX-License-Identifier: Apache-2.0
/*
 * See burst.h.
 */
#include "plan/burst.h"

#include "base/check.h"
#include "plan/num.h"

#include <math.h>

#define NEGLIGIBLE 1e-100

void burst_init(struct burst *b, double loss, double mean_units)
{
	b->loss = loss;
	b->independent = mean_units <= 1 || loss <= 0;
	b->to_ok = b->independent ? 1 - loss : 1 / mean_units;
	b->to_lost = b->independent ? loss : loss / ((1 - loss) * mean_units);
}

void burst_of_chunks(struct burst *b, double loss, double mean_packets, uint32_t packets)
{
	struct burst packet;
	double chunk_to_lost;

	burst_init(&packet, loss, mean_packets);
	*b = packet;
	if (packets <= 1 || loss <= 0)
		return;
	if (packet.independent) {
		burst_init(b, num_any(packets, loss), 1);
		return;
	}
	chunk_to_lost = num_any(packets, packet.to_lost);
	b->loss = 1 - (1 - loss) * exp((packets - 1) * log1p(-packet.to_lost));
	b->to_lost = chunk_to_lost;
	b->to_ok = chunk_to_lost * (1 - b->loss) / b->loss;
}

double burst_after(const struct burst *b, bool lost, double units)
{
	double memory = b->independent ? 0 : 1 - b->to_ok - b->to_lost;
	double kept = memory > 0 ? exp(units * log(memory)) : 0;

	return lost ? b->loss + (1 - b->loss) * kept : b->loss * (1 - kept);
}

static double above(const double *ok, const double *lost, uint32_t m, uint32_t top)
{
	double sum = 0;

	for (uint32_t i = top; i > m; i--)
		sum += ok[i] + lost[i];
	return sum;
}

/* ok[i], lost[i]: P(i of the units so far lost, the last one not, or yes). */
struct counts {
	double ok[BURST_UNITS_MAX + 1], lost[BURST_UNITS_MAX + 1];
};

/* One unit more; beyond `top` all was 0. */
static void add_unit(const struct counts *restrict c, struct counts *restrict to, uint32_t top,
		     double again, double fresh)
{
	to->ok[0] = c->ok[0] * (1 - fresh);
	to->lost[0] = 0;
	for (uint32_t i = 1; i <= top; i++) {
		to->ok[i] = c->ok[i] * (1 - fresh) + c->lost[i] * (1 - again);
		to->lost[i] = c->ok[i - 1] * fresh + c->lost[i - 1] * again;
	}
}

void burst_block_fail(const struct burst *b, uint32_t k, uint32_t m_max, double step, double *fail)
{
	double again = burst_after(b, true, step), fresh = burst_after(b, false, step);
	struct counts c[2] = {{.ok = {1 - b->loss}, .lost = {0, b->loss}}};
	uint32_t top = 1; /* beyond it all is 0, or as good as */

	SDR_ASSERT(k >= 1 && k + m_max <= BURST_UNITS_MAX);
	if (k == 1)
		fail[0] = b->loss;
	for (uint32_t n = 2; n <= k + m_max; n++) {
		struct counts *now = &c[n & 1], *then = &c[~n & 1];

		top += now->ok[top] + now->lost[top] > NEGLIGIBLE;
		add_unit(now, then, top, again, fresh);
		if (n >= k)
			fail[n - k] = above(then->ok, then->lost, n - k, top);
	}
}

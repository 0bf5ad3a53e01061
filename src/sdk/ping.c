/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PING and PONG: a nonce out and back proves a path, measures its round trip and tells
 * silence from idleness. Each channel asks on its own; an unanswered PING is repeated
 * with backoff up to 1 s. A busy QP asks every second, an idle one every 15 s, which
 * keeps NAT bindings open.
 */
#include "base/rng.h"
#include "sdk/internal.h"

/*
 * Where a PING waits for its PONG. The newest take turns; but with one a second those are
 * forgotten after seconds, and a round trip may take longer. So the first one stays, and should
 * it be lost, another one stays for a while, and the next one for twice as long.
 */
static uint32_t ping_slot(struct sdk_channel *ch, uint64_t now)
{
	uint64_t kept_ns = ch->ping[1].sent_ns;

	for (uint32_t i = 0; i < 2; i++)
		if (!ch->ping[i].sent_ns || ch->ping[i].sent_ns < ch->first_ns)
			return i; /* free, or from before the last PONG */
	if (now - kept_ns >= u64_max(SDK_PING_KEEP_NS, kept_ns - ch->first_ns))
		return 1;
	ch->ping_turn = (ch->ping_turn + 1) % (SDK_PINGS - 2);
	return 2 + ch->ping_turn;
}

static void ping_send(struct sdr_qp *qp, uint32_t c, uint64_t now)
{
	struct sdk_channel *ch = &qp->live->channel[c];
	struct wire_ping ping;
	uint32_t slot;
	uint8_t body[8];

	/* Not again and again to an address that may not be theirs: see ping_heard(). */
	if (!qp->active && !qp->live->proven && qp->live->questions-- == 0) {
		qp->live->questions = 0;
		ch->ping_owed = true;
		ch->ping_at_ns = UINT64_MAX;
		return;
	}
	/*
	 * A nonce each: whichever is answered, its sample is not ambiguous. One that can be
	 * guessed proves no address: none is sent then.
	 */
	if (rng_secret(&ping.nonce, sizeof(ping.nonce)) ||
	    wire_ping_put(body, sizeof(body), &ping) < 0 ||
	    ctrl_queue(qp, WIRE_MSG_PING, body, sizeof(body), c, 0)) {
		ch->ping_at_ns = now + SDK_RETRY_NS; /* the queue is full, most likely */
		return;
	}
	ch->ping_owed = false;
	if (!ch->first_ns)
		ch->first_ns = u64_max(now, 1);
	slot = ping_slot(ch, now);
	ch->ping[slot].nonce = ping.nonce;
	ch->ping[slot].sent_ns = u64_max(now, 1);
	ch->pings++;
	ch->ping_wait_ns = ch->ping_wait_ns ? u64_min(2 * ch->ping_wait_ns, SDK_BACKOFF_MAX_NS)
					    : sdk_patience(qp);
	ch->ping_at_ns = now + ch->ping_wait_ns;
}

/*
 * The peer's address has proved nothing, but speaks: each time that, it may be asked again. So
 * nobody has more said to an address of others' than they say themselves, and a little.
 */
void ping_heard(struct sdr_qp *qp, uint32_t channel, uint64_t now)
{
	struct sdk_live *live = qp->live;
	struct sdk_channel *ch = &live->channel[channel];

	if (qp->active || live->proven)
		return;
	live->questions = (uint32_t)u64_min(live->questions + SDK_QUESTIONS, SDK_QUESTIONS_MAX);
	if (ch->ping_owed)
		ch->ping_at_ns = now;
}

void ping_start(struct sdr_qp *qp, uint64_t now)
{
	for (uint32_t c = 0; c < qp->channels; c++)
		qp->live->channel[c].ping_at_ns = UINT64_MAX;
	/* The passive end has no address yet: the peer's PING brings it. */
	for (uint32_t c = 0; qp->active && c < qp->channels; c++) {
		qp->live->channel[c].ping_wait_ns = 25 * NS_PER_MS;
		ping_send(qp, c, now);
	}
}

void ping_ask(struct sdr_qp *qp, uint64_t now)
{
	for (uint32_t c = 0; c < qp->channels; c++) {
		struct sdk_channel *ch = &qp->live->channel[c];

		if ((qp->active || ch->answered) && !ch->first_ns)
			ping_send(qp, c, now);
	}
}

void ping_used(struct sdr_qp *qp, uint64_t now)
{
	struct sdk_live *live = qp->live;
	bool was_idle = now - live->used_ns >= 2 * SDK_BUSY_PING_NS;

	live->used_ns = now;
	/* Planned while it was idle, the next PING may be 15 s away: too late for a NAT's whims. */
	for (uint32_t c = 0; was_idle && c < qp->channels; c++) {
		struct sdk_channel *ch = &live->channel[c];

		if (ch->ping_at_ns == UINT64_MAX || ch->ping_at_ns <= now + SDK_BUSY_PING_NS)
			continue;
		ch->ping_at_ns = now + SDK_BUSY_PING_NS;
		sdk_qp_dirty(qp);
	}
}

void ping_service(struct sdr_qp *qp, uint64_t now)
{
	for (uint32_t c = 0; c < qp->channels; c++)
		if (qp->live->channel[c].ping_at_ns <= now)
			ping_send(qp, c, now);
}

uint64_t ping_deadline(const struct sdr_qp *qp)
{
	uint64_t at = UINT64_MAX;

	for (uint32_t c = 0; c < qp->channels; c++)
		at = u64_min(at, qp->live->channel[c].ping_at_ns);
	return at;
}

void ping_on_ping(struct sdr_qp *qp, const struct wire_ping *ping, const struct fabric_event *ev,
		  uint64_t now)
{
	struct sdk_channel *ch = &qp->live->channel[ev->channel];
	struct wire_pong pong = {.nonce = ping->nonce,
				 .hold_ns = (uint32_t)u64_min(ev->age_ns, UINT32_MAX)};
	uint8_t body[16];
	int len = wire_pong_put(body, sizeof(body), &pong);

	(void)ctrl_queue(qp, WIRE_MSG_PONG, body, (size_t)len, ev->channel, ev->path);
	if (qp->active || ev->path)
		return;
	if (!ch->answered && !ch->first_ns)
		ch->ping_at_ns = 0; /* at the next service: asks back to prove this direction */
	/* It has our token and we have its address: receives may be granted a round trip early. */
	sdk_qp_connected(qp, now);
}

/*
 * A new address speaks for this channel, whatever it says: it must answer a nonce of ours. Not
 * another one before that had its time, or a path that says much would never be proved.
 */
void ping_path(struct sdr_qp *qp, const struct fabric_event *ev, uint64_t now)
{
	struct sdk_channel *ch = &qp->live->channel[ev->channel];
	struct wire_ping probe;
	uint8_t body[8];
	int len;

	if (ch->probe_path == ev->path && now - ch->probe_ns < sdk_patience(qp))
		return;
	if (rng_secret(&ch->probe_nonce, sizeof(ch->probe_nonce)))
		return;
	ch->probe_path = ev->path;
	ch->probe_ns = now;
	probe.nonce = ch->probe_nonce;
	len = wire_ping_put(body, sizeof(body), &probe);
	(void)ctrl_queue(qp, WIRE_MSG_PING, body, (size_t)len, ev->channel, ev->path);
}

/* When the PING of this nonce left; 0: none of ours, or answered before. */
static uint64_t ping_take(struct sdk_channel *ch, uint64_t nonce)
{
	for (uint32_t i = 0; i < SDK_PINGS; i++) {
		uint64_t sent_ns = ch->ping[i].sent_ns;

		if (!sent_ns || ch->ping[i].nonce != nonce)
			continue;
		ch->ping[i].sent_ns = 0; /* a duplicate of this PONG is no second sample */
		return sent_ns;
	}
	return 0;
}

static void rtt_sample(struct sdr_qp *qp, struct sdk_channel *ch, uint64_t rtt)
{
	struct sdk_live *live = qp->live;

	ch->rtt_ns = rtt;
	ch->rtt_min_ns = ch->rtt_min_ns ? u64_min(ch->rtt_min_ns, rtt) : rtt;
	if (!live->rtt_ns) {
		live->rtt_ns = live->rtt_min_ns = rtt;
		live->rtt_var_ns = rtt / 2;
		return;
	}
	/* RFC 6298's filter. */
	live->rtt_var_ns = (3 * live->rtt_var_ns +
			    (rtt > live->rtt_ns ? rtt - live->rtt_ns : live->rtt_ns - rtt)) /
			   4;
	live->rtt_ns = (7 * live->rtt_ns + rtt) / 8;
	live->rtt_min_ns = u64_min(live->rtt_min_ns, rtt);
}

/* What we send on the channel arrives. */
static void proved(struct sdr_qp *qp, struct sdk_channel *ch, uint64_t now)
{
	struct sdk_live *live = qp->live;

	ch->answered = true;
	sdk_qp_connected(qp, now);
	if (live->proven)
		return;
	/* What waited for it may go; so may the questions of channels that nobody will wake. */
	live->proven = true;
	live->ctrl_channel = (uint32_t)(ch - live->channel);
	for (uint32_t c = 0; c < qp->channels; c++)
		if (live->channel[c].ping_owed)
			live->channel[c].ping_at_ns = now;
	sdk_tx_pump(qp, now);
}

void ping_on_pong(struct sdr_qp *qp, const struct wire_pong *pong, const struct fabric_event *ev,
		  uint64_t now)
{
	struct sdk_live *live = qp->live;
	struct sdk_channel *ch = &live->channel[ev->channel];
	uint64_t sent_ns;

	/* By the address that was asked: one that answers for another one proves nothing. */
	if (ev->path && ev->path == ch->probe_path && ch->probe_nonce &&
	    pong->nonce == ch->probe_nonce) {
		ch->probe_nonce = 0;
		ch->probe_ns = now; /* what comes late from the old address asks for nothing */
		if (qp->ctx->fabric->ops->path_use(qp->fqp, ev->channel, ev->path))
			return;
		live->path_changes++;
		/* The address that it had may never have proved anything. */
		if (!ch->answered && !ch->first_ns)
			ch->ping_at_ns = 0;
		proved(qp, ch, now);
		return;
	}
	sent_ns = ping_take(ch, pong->nonce);
	if (!sent_ns)
		return;
	ch->pongs++;
	rtt_sample(qp, ch, u64_max(1, u64_sub_floor(now - sent_ns, pong->hold_ns + ev->age_ns)));
	ch->first_ns = 0;
	ch->ping_wait_ns = 0;
	ch->ping_at_ns = now + (now - live->used_ns < SDK_BUSY_PING_NS * 2 ? SDK_BUSY_PING_NS
									   : SDK_IDLE_PING_NS);
	proved(qp, ch, now);
}

uint64_t ping_unanswered_ns(const struct sdr_qp *qp, uint64_t now)
{
	uint64_t oldest = UINT64_MAX;

	for (uint32_t c = 0; c < qp->channels; c++) {
		const struct sdk_channel *ch = &qp->live->channel[c];

		/* What was heard since the PING left is an answer too. */
		if (ch->first_ns && ch->first_ns >= qp->live->heard_ns)
			oldest = u64_min(oldest, ch->first_ns);
		else if (ch->first_ns)
			oldest = u64_min(oldest, u64_max(ch->first_ns, qp->live->heard_ns));
	}
	return oldest == UINT64_MAX ? 0 : u64_max(1, u64_sub_floor(now, oldest));
}

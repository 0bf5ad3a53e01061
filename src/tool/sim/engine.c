// SPDX-License-Identifier: Apache-2.0
/*
 * See engine.h.
 *
 * Measured is a write from its post to its completion at the sender: posted_ns to done_ns of
 * its completion. Warm (the default), the connection knows its round trip from WARM_WRITES
 * short writes over the link as it is without losses, the receive has been granted, and the
 * rate is given. Cold, the write is posted as the connection comes up: nothing is known but
 * what a handshake tells, the receive is posted at the same time, the rate has to be found.
 *
 * Both ends are told what the path loses, and in what bursts: auto chooses by it, and other codes
 * take margins from it. With --learn they have to find out, and a warm-up without losses teaches
 * little.
 */
#include "tool/sim/engine.h"

#include "base/units.h"

#include <sdr/conn.h>
#include <sdr/sim.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define WARM_WRITES 32
#define MESSAGES 8 /* there is one at a time; a world's tables are most of what it costs */
/* IPv4, UDP, the packet's own header and its trailer; links count them. */
#define HEADER_BYTES 64u
#define PARITY_LEAST (UINT64_C(256) << 20)
#define LOSES_NOTHING 1e-10 /* of sdr_conn_attr.path_loss */
#define STOP_STEPS 256u	    /* between two looks at the stop flag */
#define SEND 0
#define RECV 1

struct world {
	const struct sweep *s;
	const struct sim_point *p;
	const volatile sig_atomic_t *stop;
	struct sdr_sim *sim;
	int host[2];
	struct sdr_ctx *ctx[2];
	struct sdr_net *net[2];
	struct sdr_conn *conn[2];
	bool up[2];
	uint32_t written, received; /* completions */
	struct sdr_completion write;
	uint64_t steps;
	int err; /* the first; ends the run */
};

/* ---- limits --------------------------------------------------------------------- */

int engine_limits(const struct sweep *s, const struct sim_point *p, char *why)
{
	uint64_t packet = s->packet_bytes, chunk = sweep_chunk_bytes(s) / packet;
	bool rdma = strcmp(s->device, "udp") != 0;

	if (rdma && packet != 1024 && packet != 2048 && packet != 4096) {
		snprintf(why, SWEEP_WHY,
			 "--packet %llu: RDMA devices take 1024, 2048 or 4096: choose one of them, "
			 "or --device udp",
			 (unsigned long long)packet);
		return -1;
	}
	if (packet > 65000) {
		snprintf(why, SWEEP_WHY, "--packet %llu: the engine takes 64 to 65000",
			 (unsigned long long)packet);
		return -1;
	}
	if (chunk > SDR_MAX_CHUNK_PKTS) {
		snprintf(why, SWEEP_WHY,
			 "--chunk %llu: the engine takes at most %u packets of %llu bytes",
			 (unsigned long long)sweep_chunk_bytes(s), SDR_MAX_CHUNK_PKTS,
			 (unsigned long long)packet);
		return -1;
	}
	if (s->queue_bytes && s->queue_bytes < packet + HEADER_BYTES) {
		snprintf(why, SWEEP_WHY,
			 "--queue %llu: no packet would pass: choose at least %llu, or 0 for no "
			 "limit",
			 (unsigned long long)s->queue_bytes,
			 (unsigned long long)packet + HEADER_BYTES);
		return -1;
	}
	(void)p;
	return 0;
}

/* ---- a world -------------------------------------------------------------------- */

/* So that the message's payload alone passes at the bandwidth. */
static uint64_t link_rate_bps(const struct world *w)
{
	double bytes = (double)w->p->bytes;
	double pkts = ceil(bytes / (double)w->s->packet_bytes);

	return (uint64_t)llround((double)w->p->bw_bps * (1 + pkts * HEADER_BYTES / bytes));
}

/* Bursts last in time, as the model's: a packet's slot is the model's too. */
static uint64_t burst_slot_ns(const struct world *w)
{
	return (uint64_t)ceil((double)w->s->packet_bytes * 8e9 / (double)w->p->bw_bps);
}

static int links_set(struct world *w, bool losses)
{
	struct sdr_sim_link link = {
		.size = sizeof(link),
		.rate_bps = link_rate_bps(w),
		.delay_ns = w->p->rtt_ns / 2,
		.jitter_ns = w->s->jitter_ns,
		.queue_bytes = w->s->queue_bytes,
		.loss = losses ? w->p->loss : 0,
		/* One packet at a time is independent here, as in the model. */
		.burst_pkts = losses && w->p->burst_pkts > 1 ? w->p->burst_pkts : 0,
		.burst_slot_ns = burst_slot_ns(w),
	};
	int err = sdr_sim_link_set(w->sim, w->host[SEND], w->host[RECV], SDR_CHANNEL_ANY, &link);

	link.delay_ns = w->p->rtt_ns - w->p->rtt_ns / 2;
	link.loss = losses ? w->p->ack_loss : 0;
	return err ? err
		   : sdr_sim_link_set(w->sim, w->host[RECV], w->host[SEND], SDR_CHANNEL_ANY, &link);
}

static int net_open(struct world *w, int end)
{
	const struct sdr_sim_device device = {
		.size = sizeof(device), .like = w->s->device, .coalesce_ns = w->s->coalesce_ns};
	struct sdr_ctx_attr ca = {.size = sizeof(ca),
				  .listen = end == RECV,
				  .max_payload_bytes = (uint32_t)w->s->packet_bytes};
	struct sdr_net_attr na = {.size = sizeof(na)};
	int err = sdr_sim_device_set(w->sim, w->host[end], &device);

	err = err ? err : sdr_sim_ctx_create(w->sim, w->host[end], &ca, &w->ctx[end]);
	na.use_ctx = w->ctx[end];
	return err ? err : sdr_net_create(&na, &w->net[end]);
}

/* On links so long that a connection's default would give up too early: 0 is the default. */
static uint64_t patience_ns(const struct world *w, uint64_t by_itself_ns)
{
	uint64_t some = 8 * (w->p->rtt_ns + w->s->jitter_ns);

	return some > by_itself_ns ? some : 0;
}

/* Address space: no byte of it is touched. All that a write can have, and as much to spare. */
static uint64_t parity_bytes(const struct world *w)
{
	const struct sdr_scheme *scheme = &w->p->scheme->engine;
	uint64_t blocks = w->p->bytes / (scheme->k ? scheme->k : 1) + w->s->packet_bytes;

	return 2 * (w->p->bytes + blocks * scheme->m) + PARITY_LEAST;
}

static int conns_open(struct world *w)
{
	bool told = !w->s->learn;
	const struct sdr_conn_attr attr = {
		.size = sizeof(attr),
		.scheme = w->p->scheme->name,
		.chunk_pkts = (uint32_t)(sweep_chunk_bytes(w->s) / w->s->packet_bytes),
		.max_payload_bytes = (uint32_t)w->s->packet_bytes,
		.messages = MESSAGES,
		.rate_bps = w->s->cold ? 0 : w->p->bw_bps,
		.connect_timeout_ns = patience_ns(w, 10 * NS_PER_S),
		.dead_after_ns = patience_ns(w, 30 * NS_PER_S),
		.parity_bytes = parity_bytes(w),
		.path_loss = told ? fmax(w->p->loss, LOSES_NOTHING) : 0,
		.path_burst_pkts = told ? w->p->burst_pkts : 0,
	};
	struct sdr_connect_attr how = {.size = sizeof(how), .rtt_ns = w->p->rtt_ns};
	uint8_t blob[2][SDR_MAX_INFO_BYTES];
	int len[2], err = 0;

	for (int end = 0; end < 2; end++) {
		err = sdr_conn_open(w->net[end], &attr, &w->conn[end]);
		if (err)
			return err;
		len[end] = sdr_conn_blob_get(w->conn[end], blob[end], sizeof(blob[end]));
		if (len[end] < 0)
			return len[end];
	}
	for (int end = 0; !err && end < 2; end++) {
		how.role = end == SEND ? SDR_ROLE_ACTIVE : SDR_ROLE_PASSIVE;
		err = sdr_conn_blob_set(w->conn[end], blob[1 - end], (size_t)len[1 - end], &how);
	}
	return err;
}

static int world_open(struct world *w, uint64_t seed)
{
	int err = sdr_sim_create(seed, &w->sim);

	err = err ? err : sdr_sim_payload_off(w->sim);
	for (int end = 0; !err && end < 2; end++) {
		w->host[end] = sdr_sim_host(w->sim);
		if (w->host[end] < 0)
			err = w->host[end];
	}
	err = err ? err : links_set(w, w->s->cold != 0);
	for (int end = 0; !err && end < 2; end++)
		err = net_open(w, end);
	return err ? err : conns_open(w);
}

static void world_close(struct world *w)
{
	for (int end = 0; end < 2; end++) {
		sdr_net_destroy(w->net[end]);
		sdr_ctx_destroy(w->ctx[end]);
	}
	sdr_sim_destroy(w->sim);
}

/* ---- time passes ---------------------------------------------------------------- */

static void fail(struct world *w, int err)
{
	if (!w->err)
		w->err = err;
}

static void take_news(struct world *w, int end)
{
	struct sdr_completion done[8];
	struct sdr_event ev = {.size = sizeof(ev)};
	int n;

	done[0].size = sizeof(done[0]);
	while ((n = sdr_net_poll(w->net[end], done, 8)) > 0) {
		for (int i = 0; i < n; i++) {
			if (done[i].status)
				fail(w, done[i].status);
			if (done[i].is_recv) {
				w->received++;
			} else {
				w->written++;
				w->write = done[i];
			}
		}
	}
	while (sdr_net_event(w->net[end], &ev) == 1) {
		if (ev.type == SDR_EV_CONNECTED || ev.type == SDR_EV_ACCEPTED)
			w->up[end] = true;
		else if (ev.type == SDR_EV_FAILED || ev.type == SDR_EV_DEAD)
			fail(w, ev.status ? ev.status : -EIO);
	}
}

static void step(struct world *w, uint64_t until_ns)
{
	uint64_t next = until_ns;

	for (int end = 0; end < 2; end++) {
		uint64_t at;
		int did = sdr_net_progress(w->net[end]);

		if (did < 0)
			fail(w, did);
		take_news(w, end);
		at = sdr_net_next_deadline_ns(w->net[end]);
		next = at < next ? at : next;
	}
	if (++w->steps % STOP_STEPS == 0 && *w->stop)
		fail(w, -EINTR);
	if (next > sdr_sim_now_ns(w->sim))
		(void)sdr_sim_step(w->sim, next);
}

static void pass(struct world *w, uint64_t ns)
{
	uint64_t until = sdr_sim_now_ns(w->sim) + ns;

	while (!w->err && sdr_sim_now_ns(w->sim) < until)
		step(w, until);
}

static void post(struct world *w, int end, uint64_t bytes)
{
	static uint8_t nothing; /* of a message that has a length, but no bytes */
	struct sdr_op_wr wr = {.size = sizeof(wr), .addr = &nothing, .length = bytes};
	int err = end == SEND ? sdr_write_post(w->conn[SEND], &wr, NULL)
			      : sdr_conn_recv_post(w->conn[RECV], &wr, NULL);

	if (err)
		fail(w, err);
}

/* Until *count has come to `want`. */
static void wait_count(struct world *w, const uint32_t *count, uint32_t want, uint64_t limit_ns)
{
	uint64_t until = sdr_sim_now_ns(w->sim) + limit_ns;

	while (!w->err && *count < want) {
		if (sdr_sim_now_ns(w->sim) >= until)
			fail(w, -ETIME);
		else
			step(w, until);
	}
}

static void connect_both(struct world *w, uint64_t limit_ns)
{
	uint64_t until = sdr_sim_now_ns(w->sim) + limit_ns;

	while (!w->err && !(w->up[SEND] && (w->up[RECV] || w->s->cold))) {
		if (sdr_sim_now_ns(w->sim) >= until)
			fail(w, -ETIME);
		else
			step(w, until);
	}
}

/* The sender learns the round trip, the receive is granted; only then things get lost. */
static void warm_up(struct world *w, uint64_t limit_ns)
{
	for (uint32_t i = 1; !w->err && i <= WARM_WRITES; i++) {
		post(w, RECV, 1);
		post(w, SEND, 1);
		wait_count(w, &w->written, i, limit_ns);
		wait_count(w, &w->received, i, limit_ns);
	}
	post(w, RECV, w->p->bytes);
	pass(w, 2 * (w->p->rtt_ns + w->s->jitter_ns));
	if (!w->err)
		fail(w, links_set(w, true));
}

static uint64_t sent_bytes(const struct world *w)
{
	struct sdr_conn_info info = {.size = sizeof(info)};

	(void)sdr_conn_query(w->conn[SEND], &info);
	return info.tx_data_bytes + info.tx_resent_bytes + info.tx_parity_bytes;
}

static void measure(struct world *w, struct run_result *out)
{
	uint64_t limit_ns = sweep_limit_ns(w->s, w->p), before;
	uint32_t want;

	connect_both(w, limit_ns);
	if (!w->err && w->s->cold)
		post(w, RECV, w->p->bytes);
	else if (!w->err)
		warm_up(w, limit_ns);
	if (w->err)
		return;
	before = sent_bytes(w);
	want = w->written + 1;
	post(w, SEND, w->p->bytes);
	wait_count(w, &w->written, want, limit_ns);
	out->time_ns = w->write.done_ns - w->write.posted_ns;
	out->sent_bytes = sent_bytes(w) - before;
}

void engine_run(const struct sweep *s, const struct sim_point *p, uint64_t seed,
		const volatile sig_atomic_t *stop, struct run_result *out)
{
	struct world w = {.s = s, .p = p, .stop = stop};

	w.err = world_open(&w, seed);
	if (!w.err)
		measure(&w, out);
	world_close(&w);
	out->err = w.err;
	out->done = w.err != -EINTR;
}

int engine_check(const struct sweep *s, const struct sim_point *p, char *why)
{
	static const volatile sig_atomic_t never;
	struct world w = {.s = s, .p = p, .stop = &never};
	int err = world_open(&w, 1);

	world_close(&w);
	if (err)
		snprintf(why, SWEEP_WHY, "--scheme %s: the engine cannot run it: %s",
			 p->scheme->name, sdr_strerror(err));
	return err ? -1 : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver of wan.h.
 */
#include "wan.h"

#include <errno.h>
#include <sdr/conn.h>
#include <sdr/sim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEC UINT64_C(1000000000)

struct flow {
	struct sdr_conn *conn[2]; /* sender, receiver */
	bool up[2];
	uint64_t hello_ns, called_ns; /* when the two ends have the other's blob */
	bool connected[2];
	uint64_t posted, recvs_posted; /* bytes */
	unsigned int writes, recvs;    /* in flight */
	uint64_t done_bytes;
	uint64_t next_write_ns;
};

struct wan {
	const struct wan_config *c;
	struct wan_result *out;
	struct sdr_sim *sim;
	int host[2];
	struct sdr_ctx *ctx[2];
	struct sdr_net *net[2];
	struct flow flow[WAN_FLOWS_MAX];
	unsigned int nflows;
	uint8_t *memory[2];
	uint64_t last_ns, measured_ns, trace_at_ns;
	uint64_t rx_start, rx_end; /* payload that had arrived when measuring began and ended */
	bool measuring, measured, turned;
	double queue_sum;
	int err;
};

double wan_share_bps(const struct wan_config *config)
{
	uint64_t rate = config->turn_rate_bps ? config->turn_rate_bps : config->rate_bps;

	return (double)rate * WAN_PAYLOAD_BYTES / WAN_IP_BYTES * (1 - config->loss);
}

double wan_ideal_ns(const struct wan_config *config, uint64_t bytes)
{
	return (double)bytes * 8e9 / wan_share_bps(config) + (double)config->rtt_ns;
}

static int links_set(struct wan *w, uint64_t rate_bps, uint64_t rtt_ns)
{
	const struct wan_config *c = w->c;
	struct sdr_sim_link link = {.size = sizeof(link),
				    .rate_bps = rate_bps,
				    .delay_ns = rtt_ns / 2,
				    .jitter_ns = c->jitter_ns,
				    .loss = c->loss,
				    .burst_pkts = c->burst_pkts};
	int err;

	link.queue_bytes = (uint64_t)(c->queue_bdp * (double)c->rate_bps * (double)c->rtt_ns / 8e9);
	err = sdr_sim_link_set(w->sim, w->host[0], w->host[1], SDR_CHANNEL_ANY, &link);
	link.loss = c->ack_loss;
	return err ? err : sdr_sim_link_set(w->sim, w->host[1], w->host[0], SDR_CHANNEL_ANY, &link);
}

static int nets_open(struct wan *w)
{
	const struct sdr_sim_device device = {.size = sizeof(device), .like = w->c->device};
	int err = sdr_sim_create(w->c->seed, &w->sim);

	for (int end = 0; !err && end < 2; end++)
		w->host[end] = sdr_sim_host(w->sim);
	err = err ? err : links_set(w, w->c->rate_bps, w->c->rtt_ns);
	for (int end = 0; !err && end < 2; end++) {
		struct sdr_ctx_attr ca = {.size = sizeof(ca), .listen = end == 1};
		struct sdr_net_attr na = {.size = sizeof(na)};

		if (w->c->device)
			err = sdr_sim_device_set(w->sim, w->host[end], &device);
		if (!err)
			err = sdr_sim_ctx_create(w->sim, w->host[end], &ca, &w->ctx[end]);
		na.use_ctx = w->ctx[end];
		err = err ? err : sdr_net_create(&na, &w->net[end]);
	}
	return err;
}

/* TCP takes a round trip, the client's HELLO half of one, the answer the other half. */
static void flow_plan(struct wan *w, unsigned int i)
{
	struct flow *f = &w->flow[i];
	uint64_t start = i * w->c->stagger_ns;

	w->out->flow[i].start_ns = start;
	f->hello_ns = start + w->c->rtt_ns * 3 / 2;
	f->called_ns = start + w->c->rtt_ns * 2;
}

static int flow_open(struct wan *w, struct flow *f)
{
	const struct sdr_conn_attr attr = {.size = sizeof(attr),
					   .scheme = w->c->scheme,
					   .rate_bps = w->c->fixed_bps,
					   .cookie = f};
	int err = 0;

	for (int end = 0; !err && end < 2; end++)
		err = sdr_conn_open(w->net[end], &attr, &f->conn[end]);
	return err;
}

static int flow_connect(struct wan *w, struct flow *f, int end)
{
	struct sdr_connect_attr attr = {
		.size = sizeof(attr),
		.role = end ? SDR_ROLE_PASSIVE : SDR_ROLE_ACTIVE,
		.rtt_ns = w->c->rtt_ns, /* as TCP would have told */
	};
	uint8_t blob[SDR_MAX_INFO_BYTES];
	int len;

	if (!f->conn[0]) {
		int err = flow_open(w, f);

		if (err)
			return err;
	}
	len = sdr_conn_blob_get(f->conn[1 - end], blob, sizeof(blob));
	/* The offered features are in bytes 20 to 27 (wire/blob.h). */
	if (len > 28 && w->c->old_peer)
		memset(blob + 20, 0, 8);
	f->connected[end] = true;
	return len < 0 ? len : sdr_conn_blob_set(f->conn[end], blob, (size_t)len, &attr);
}

/* The application has another write: always, or every so often. */
static bool flow_has_write(struct wan *w, struct flow *f)
{
	uint64_t now = sdr_sim_now_ns(w->sim);

	if (!f->up[0] || f->writes >= w->c->depth || (w->c->bytes && f->posted >= w->c->bytes))
		return false;
	if (f->next_write_ns > now)
		return false;
	f->next_write_ns = now + w->c->every_ns;
	return true;
}

static void flow_post(struct wan *w, struct flow *f)
{
	const struct wan_config *c = w->c;
	struct sdr_op_wr wr = {.size = sizeof(wr), .cookie = f};

	while (f->up[1] && f->recvs < c->depth && (!c->bytes || f->recvs_posted < c->bytes)) {
		wr.addr = w->memory[1];
		wr.length = c->size;
		if (sdr_conn_recv_post(f->conn[1], &wr, NULL))
			break;
		f->recvs++;
		f->recvs_posted += c->size;
	}
	while (flow_has_write(w, f)) {
		wr.addr = w->memory[0];
		wr.length =
			c->bytes && c->bytes - f->posted < c->size ? c->bytes - f->posted : c->size;
		if (sdr_write_post(f->conn[0], &wr, NULL))
			break;
		f->writes++;
		f->posted += wr.length;
	}
}

static void take_completions(struct wan *w, int end)
{
	struct sdr_completion done[32];
	int n;

	done[0].size = sizeof(done[0]);
	while ((n = sdr_net_poll(w->net[end], done, 32)) > 0) {
		for (int i = 0; i < n; i++) {
			struct flow *f = done[i].cookie;
			struct wan_flow_result *r = &w->out->flow[f - w->flow];

			if (done[i].status && !w->err)
				w->err = done[i].status;
			if (done[i].is_recv) {
				f->recvs--;
				continue;
			}
			f->writes--;
			f->done_bytes += done[i].length;
			r->bytes += w->measuring ? done[i].length : 0;
			if (w->c->bytes && f->done_bytes >= w->c->bytes)
				r->done_ns = done[i].done_ns;
		}
	}
}

static void take_events(struct wan *w, int end)
{
	struct sdr_event ev = {.size = sizeof(ev)};

	while (sdr_net_event(w->net[end], &ev) == 1) {
		struct flow *f = ev.conn_cookie;

		if (ev.type == SDR_EV_CONNECTED || ev.type == SDR_EV_ACCEPTED) {
			f->up[end] = true;
			if (end == 0)
				w->out->flow[f - w->flow].up_ns = sdr_sim_now_ns(w->sim);
		} else if (ev.type == SDR_EV_FAILED || ev.type == SDR_EV_DEAD) {
			w->err = ev.status;
		}
	}
}

static uint64_t arrived_bytes(const struct wan *w)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < w->nflows; i++) {
		struct sdr_conn_info info = {.size = sizeof(info)};

		if (!w->flow[i].conn[1])
			continue;
		(void)sdr_conn_query(w->flow[i].conn[1], &info);
		sum += info.rx_pkts;
	}
	return sum * WAN_PAYLOAD_BYTES;
}

static void look_at_queue(struct wan *w, uint64_t now)
{
	struct sdr_sim_link_info info = {.size = sizeof(info)};
	double ns;

	if (sdr_sim_link_query(w->sim, w->host[0], w->host[1], SDR_CHANNEL_ANY, &info))
		return;
	ns = (double)info.queued_bytes * 8e9 / (double)w->c->rate_bps;
	w->out->lost_queue_pkts = info.lost_queue_pkts;
	if (ns > w->out->max_queue_all_ns)
		w->out->max_queue_all_ns = ns;
	if (!w->measuring)
		return;
	w->queue_sum += ns * (double)(now - w->last_ns);
	if (ns > w->out->max_queue_ns)
		w->out->max_queue_ns = ns;
}

static void measure(struct wan *w, uint64_t now)
{
	const struct wan_config *c = w->c;

	if (!w->measuring && !w->measured && now >= c->skip_ns) {
		w->measuring = true;
		w->measured_ns = now;
		w->rx_start = arrived_bytes(w);
	}
	if (w->measuring && c->duration_ns && now >= w->measured_ns + c->duration_ns) {
		w->measuring = false;
		w->measured = true;
		w->measured_ns = now - w->measured_ns;
		w->rx_end = arrived_bytes(w);
	}
}

static void trace(struct wan *w, uint64_t now)
{
	struct sdr_sim_link_info link = {.size = sizeof(link)};

	if (!w->c->trace_ns || now < w->trace_at_ns)
		return;
	w->trace_at_ns = now + w->c->trace_ns;
	(void)sdr_sim_link_query(w->sim, w->host[0], w->host[1], SDR_CHANNEL_ANY, &link);
	for (unsigned int i = 0; i < w->nflows; i++) {
		struct sdr_conn_info s = {.size = sizeof(s)}, r = {.size = sizeof(r)};

		if (!w->flow[i].conn[0])
			continue;
		(void)sdr_conn_query(w->flow[i].conn[0], &s);
		(void)sdr_conn_query(w->flow[i].conn[1], &r);
		printf("%9.1f ms flow %u: pace %8.2f  bw %8.2f Mbit/s  cwnd %6.2f  flight %6.2f "
		       "BDP  queue %7.2f ms  sent %8llu got %8llu resent %6llu dup %4llu found "
		       "%d\n",
		       (double)now / 1e6, i, (double)s.pacing_bps / 1e6,
		       (double)s.delivered_bps / 1e6,
		       (double)s.cwnd_bytes * 8e9 / ((double)w->c->rate_bps * (double)w->c->rtt_ns),
		       (double)s.inflight_bytes * 8e9 /
			       ((double)w->c->rate_bps * (double)w->c->rtt_ns),
		       (double)link.queued_bytes * 8e3 / (double)w->c->rate_bps,
		       (unsigned long long)s.tx_pkts, (unsigned long long)r.rx_pkts,
		       (unsigned long long)s.tx_resent_pkts,
		       (unsigned long long)r.rx_duplicate_pkts, s.rate_found);
	}
}

static bool is_over(const struct wan *w, uint64_t now)
{
	const struct wan_config *c = w->c;

	if (w->err || (c->duration_ns && w->measured))
		return true;
	if (now >= (c->limit_ns ? c->limit_ns : 600 * SEC)) {
		w->out->gave_up = true;
		return true;
	}
	for (unsigned int i = 0; c->bytes && i < w->nflows; i++) {
		if (!w->out->flow[i].done_ns)
			return false;
	}
	return c->bytes != 0;
}

/* The flows' own times, and what may be posted; the next such time. */
static uint64_t flows_step(struct wan *w, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (unsigned int i = 0; !w->err && i < w->nflows; i++) {
		struct flow *f = &w->flow[i];
		const uint64_t at[2] = {f->called_ns, f->hello_ns};

		for (int end = 1; !w->err && end >= 0; end--) {
			if (!f->connected[end] && now >= at[end])
				w->err = flow_connect(w, f, end);
			else if (!f->connected[end] && at[end] < next)
				next = at[end];
		}
		flow_post(w, f);
		if (w->c->every_ns && f->next_write_ns > now && f->next_write_ns < next)
			next = f->next_write_ns;
	}
	if (w->c->turn_ns && !w->turned && now >= w->c->turn_ns) {
		w->turned = true;
		w->err = links_set(w, w->c->turn_rate_bps ? w->c->turn_rate_bps : w->c->rate_bps,
				   w->c->turn_rtt_ns ? w->c->turn_rtt_ns : w->c->rtt_ns);
	}
	return next;
}

static void step(struct wan *w)
{
	uint64_t now = sdr_sim_now_ns(w->sim), next;

	for (int end = 0; end < 2; end++) {
		int did = sdr_net_progress(w->net[end]);

		if (did < 0)
			w->err = did;
		take_events(w, end);
		take_completions(w, end);
	}
	next = flows_step(w, now);
	look_at_queue(w, now);
	measure(w, now);
	trace(w, now);
	w->last_ns = now;
	for (int end = 0; end < 2; end++) {
		uint64_t at = sdr_net_next_deadline_ns(w->net[end]);

		next = at < next ? at : next;
	}
	if (next > now + w->c->rtt_ns)
		next = now + w->c->rtt_ns;
	if (next > now)
		(void)sdr_sim_step(w->sim, next);
	/* A host is woken, and works, for some time: what comes meanwhile is handled together. */
	while (w->c->grain_ns && sdr_sim_now_ns(w->sim) < now + w->c->grain_ns) {
		uint64_t was = sdr_sim_now_ns(w->sim);

		(void)sdr_sim_step(w->sim, now + w->c->grain_ns);
		if (sdr_sim_now_ns(w->sim) == was)
			break; /* a timer is due */
	}
	w->out->steps++;
}

static void finish(struct wan *w)
{
	if (w->measuring) {
		w->measured_ns = sdr_sim_now_ns(w->sim) - w->measured_ns;
		w->rx_end = arrived_bytes(w);
	}
	if (w->measured_ns) {
		w->out->goodput_bps =
			(double)(w->rx_end - w->rx_start) * 8e9 / (double)w->measured_ns;
		w->out->mean_queue_ns = w->queue_sum / (double)w->measured_ns;
	}
	for (unsigned int i = 0; i < w->nflows; i++) {
		struct sdr_conn_info s = {.size = sizeof(s)}, r = {.size = sizeof(r)};
		struct wan_flow_result *out = &w->out->flow[i];

		if (!w->flow[i].conn[0])
			continue;
		(void)sdr_conn_query(w->flow[i].conn[0], &s);
		(void)sdr_conn_query(w->flow[i].conn[1], &r);
		out->tx_pkts = s.tx_pkts;
		out->resent_pkts = s.tx_resent_pkts;
		out->lost_pkts = s.tx_lost_pkts;
		out->spurious_pkts = s.tx_spurious_pkts;
		out->duplicate_pkts = r.rx_duplicate_pkts + r.rx_late_pkts;
	}
}

int wan_run(const struct wan_config *config, struct wan_result *out)
{
	struct wan *w = calloc(1, sizeof(*w));
	int err = w ? 0 : -ENOMEM;

	memset(out, 0, sizeof(*out));
	if (err)
		return err;
	w->c = config;
	w->out = out;
	w->nflows = config->flows ? config->flows : 1;
	if (w->nflows > WAN_FLOWS_MAX || !config->size || !config->depth || !config->rate_bps)
		err = -EINVAL;
	for (int end = 0; !err && end < 2; end++) {
		w->memory[end] = calloc(1, config->size);
		err = w->memory[end] ? 0 : -ENOMEM;
	}
	err = err ? err : nets_open(w);
	for (unsigned int i = 0; !err && i < w->nflows; i++)
		flow_plan(w, i);
	while (!err && !is_over(w, sdr_sim_now_ns(w->sim)))
		step(w);
	err = err ? err : w->err;
	if (!err)
		finish(w);
	for (int end = 0; end < 2; end++) {
		sdr_net_destroy(w->net[end]);
		sdr_ctx_destroy(w->ctx[end]);
		free(w->memory[end]);
	}
	sdr_sim_destroy(w->sim);
	free(w);
	return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See pair.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rel/pair_priv.h"

#define START_NS UINT64_C(1000000000000)

uint64_t pair_seed;

struct pair_event *pair_event_new(struct pair *p, enum pair_kind kind, uint64_t when, size_t body)
{
	struct pair_event *e = calloc(1, sizeof(*e) + body);
	assert_non_null(e);
	e->kind = kind;
	heap_node_init(&e->node);
	assert_int_equal(heap_set(&p->heap, &e->node, when, p->tie++), 0);
	return e;
}

static bool within(uint64_t at, uint64_t from, uint64_t until)
{
	return at - START_NS >= from && at - START_NS < until;
}

/* Of runs whose mean is `burst`, two states; else each packet for itself. */
bool pair_lost_now(struct pair *p, uint32_t channel)
{
	const struct pair_path *path = &p->c->path[channel];
	if (within(p->now, p->c->data_out_from_ns, p->c->data_out_until_ns))
		return true;
	if (path->loss <= 0)
		return false;
	if (path->burst <= 1)
		return rng_unit(&p->rng) < path->loss;
	double enter = path->loss / (1 - path->loss) / path->burst;
	double leave = 1 / path->burst;
	p->bad[channel] = rng_unit(&p->rng) < (p->bad[channel] ? 1 - leave : enter);
	return p->bad[channel];
}

static bool lost_now(struct pair *p, uint32_t channel, struct pair_msg *m, uint32_t index,
		     uint32_t packet)
{
	const struct pair_config *c = p->c;
	uint32_t step = c->lose_step ? c->lose_step : 1, count = c->lose_count ? c->lose_count : 1;
	if (c->lose_one && index == c->lose_message && packet >= c->lose_packet &&
	    (packet - c->lose_packet) % step == 0 && (packet - c->lose_packet) / step < count &&
	    m->times[packet] <= c->lose_times)
		return true;
	return pair_lost_now(p, channel);
}

/* What must be true of every transmission; keeps the truth. */
static uint64_t launch(struct pair *p, const struct rel_range *r, uint32_t channel, bool copy)
{
	uint32_t index = pair_index(p, r->message);
	struct pair_msg *m = &p->msg[index];
	uint64_t bits = 0;
	FAIL_IF(p, (uint64_t)r->first + r->count > m->npkts);
	FAIL_IF(p, r->first / 64 != (r->first + r->count - 1) / 64);
	for (uint32_t i = 0; i < r->count; i++) {
		uint32_t k = r->first + i;
		FAIL_IF(p, (m->times[k] > 0) != r->resend);
		if (r->resend && !copy) {
			if (!r->probe)
				pair_judge_resend(p, m, k);
			if (!p->gbn && p->now - m->sent_ns[k] < p->fastest_rtt)
				p->out->too_soon++;
			if (!r->probe && !p->gbn && !m->lost[k])
				p->out->spurious++;
		}
		if (m->times[k] < 255)
			m->times[k]++;
		m->sent_ns[k] = p->now;
		m->lost[k] = lost_now(p, channel, m, index, k);
		p->out->true_lost += m->lost[k];
		if (!m->lost[k])
			bits |= UINT64_C(1) << (k % 64);
	}
	return bits;
}

static void transmit(struct pair *p, const struct rel_range *r)
{
	uint32_t channel = p->turn++ % p->c->channels;
	const struct pair_path *path = &p->c->path[channel];
	if (rel_tx_stalled(&p->tx))
		p->out->blackout_sent += r->count;
	uint64_t again = p->tx.stats.copies_pkts;
	rel_tx_sent(&p->tx, r, channel, p->psn[channel], p->now);
	bool copy = p->tx.stats.copies_pkts != again;
	uint64_t bits = r->parity ? pair_launch_parity(p, r, channel) : launch(p, r, channel, copy);
	uint32_t copies = (path->duplicate > 0 && rng_unit(&p->rng) < path->duplicate) ? 2 : 1;
	for (uint32_t i = 0; bits && i < copies; i++) {
		uint64_t jitter = path->jitter_ns ? rng_below(&p->rng, path->jitter_ns) : 0;
		uint64_t longer = p->now - START_NS >= p->c->longer_from_ns ? p->c->longer_ns : 0;
		struct pair_event *e =
			pair_event_new(p, PAIR_DATA, p->now + path->delay_ns + jitter + longer, 0);
		e->message = r->message;
		e->first = r->first;
		e->parity = r->parity;
		e->channel = channel;
		e->psn = p->psn[channel];
		e->bits = bits;
		e->sent_ns = p->now;
	}
	p->psn[channel] = (p->psn[channel] + r->count) & 0xffffff;
	if (rng_below(&p->rng, 16) == 0) /* a control packet takes a PSN */
		p->psn[channel] = (p->psn[channel] + 1) & 0xffffff;
	p->next_send_ns = u64_max(p->next_send_ns, p->now) + r->count * p->c->gap_ns;
	p->out->max_inflight = u64_max(p->out->max_inflight, rel_tx_inflight_all(&p->tx));
}

static void send_what_fits(struct pair *p)
{
	uint64_t inflight = rel_tx_inflight_all(&p->tx);
	struct rel_range r;
	if (p->now < p->next_send_ns || inflight >= p->c->window_pkts)
		return;
	uint64_t room = u64_min(p->c->window_pkts - inflight, 64);
	if (p->c->max_train < 64)
		room = u64_min(room, 1 + rng_below(&p->rng, p->c->max_train));
	int got = rel_tx_next(&p->tx, p->now, (uint32_t)room, &r);
	FAIL_IF(p, got < 0);
	if (!got) {
		p->next_send_ns = UINT64_MAX; /* until something happens */
		return;
	}
	FAIL_IF(p, r.count > room || r.count == 0);
	transmit(p, &r);
}

static void open_more(struct pair *p)
{
	while (p->opened < p->c->messages && p->opened < p->done + p->c->granted) {
		struct pair_msg *m = &p->msg[p->opened];
		uint32_t n = pair_number(p, p->opened);
		m->npkts = p->c->min_pkts +
			   (uint32_t)rng_below(&p->rng, p->c->max_pkts - p->c->min_pkts + 1);
		size_t room = (size_t)m->npkts + (p->c->unknown_end ? 100 : 0);
		m->words = calloc(bits_words(room), 8);
		m->sent_ns = calloc(m->npkts, 8);
		m->lost = calloc(m->npkts, 1);
		m->times = calloc(m->npkts, 1);
		assert_int_equal(rel_rx_open(&p->rx, n, (uint32_t)room), 0);
		if (!p->c->unknown_end)
			assert_int_equal(rel_rx_end(&p->rx, n, m->npkts), 0);
		assert_int_equal(rel_tx_open_coded(&p->tx, n, m->npkts, pair_code_open(p, m)), 0);
		if (m->coding.code && p->c->write_ns != UINT64_MAX)
			pair_event_new(p, PAIR_WRITE, p->now + p->c->write_ns, 0)->message = n;
		p->opened++;
		p->next_send_ns = p->next_send_ns == UINT64_MAX ? p->now : p->next_send_ns;
	}
}

/* The receiver's messages that are whole are closed in order. */
static void close_done(struct pair *p)
{
	while (p->whole < p->opened && p->msg[p->whole].complete)
		rel_rx_close(&p->rx, pair_number(p, p->whole++));
}

void pair_feed(struct pair *p, struct pair_msg *m, uint32_t message, uint32_t word)
{
	struct rel_rx_want want;
	rel_rx_dirty(&p->rx, message);
	if (m->coding.code)
		rel_rx_feed(&p->rx, message, word, m->words + word, 1);
	while (rel_rx_want_cum(&p->rx, message, &want) &&
	       rel_rx_feed(&p->rx, want.message, want.first_word, m->words + want.first_word,
			   want.nwords))
		;
	m->complete = rel_rx_complete(&p->rx, message);
}

static void data_arrives(struct pair *p, struct pair_event *e)
{
	uint32_t index = pair_index(p, e->message);
	struct pair_msg *m = &p->msg[index];
	struct pair_facts *f = &p->facts[e->channel];
	uint64_t *word = &m->words[e->parity ? 0 : e->first / 64];
	uint64_t fresh = e->parity ? pair_parity_arrives(p, e) : m->complete ? 0 : e->bits & ~*word;
	uint32_t n = (uint32_t)__builtin_popcountll(e->bits);
	uint32_t nfresh = (uint32_t)__builtin_popcountll(fresh);
	f->received += nfresh;
	f->duplicates += n - nfresh;
	uint32_t last = 63 - (uint32_t)__builtin_clzll(e->bits) - e->first % 64;
	uint32_t psn = (e->psn + last) & 0xffffff;
	/* What a NIC calls the newest is what it saw last. */
	if (!f->valid || p->c->by_packet || seq24_before(f->newest, psn)) {
		f->newest = psn;
		f->message = e->message + e->parity;
		f->packet = e->first + last;
		f->arrived_ns = p->now;
		f->sent_ns = e->sent_ns;
		f->valid = true;
	}
	p->total_arrived += n;
	rel_rx_arrived(&p->rx, p->total_arrived, p->now);
	if (m->complete) {
		if (!e->parity)
			rel_rx_kick(&p->rx);
		return;
	}
	if (e->parity) {
		pair_decode(p);
		close_done(p);
		return;
	}
	*word |= fresh;
	if (p->c->unknown_end && e->first / 64 == (m->npkts - 1) / 64 &&
	    (*word >> ((m->npkts - 1) % 64) & 1))
		assert_int_equal(rel_rx_end(&p->rx, e->message, m->npkts), 0);
	pair_feed(p, m, e->message, e->first / 64);
	pair_decode(p);
	close_done(p);
}

static void write_arrives(struct pair *p, const struct pair_event *e)
{
	struct pair_msg *m = &p->msg[pair_index(p, e->message)];
	if (m->complete)
		return;
	assert_int_equal(rel_rx_end(&p->rx, e->message, m->npkts), 0);
	pair_write_arrives(p, e->message);
	pair_decode(p);
	close_done(p);
}

static void ack_leaves(struct pair *p)
{
	const struct pair_config *c = p->c;
	struct rel_channel_fact facts[REL_MAX_CHANNELS];
	struct rel_rx_want want;
	uint8_t buf[1400];
	for (uint32_t i = 0; i < c->channels; i++) {
		const struct pair_facts *f = &p->facts[i];
		facts[i] = (struct rel_channel_fact){
			.id = (uint8_t)i,
			.psn_valid = f->valid && !c->by_packet,
			.newest_psn = c->by_packet ? 0 : f->newest,
			.packet_valid = f->valid && c->by_packet,
			.newest_message = f->message,
			.newest_packet = f->packet,
			.age_ns = p->now - f->arrived_ns,
			.received = f->received,
			.duplicates = f->duplicates,
		};
	}
	rel_rx_made_good(&p->rx, p->out->decoded_pkts);
	FAIL_IF(p, rel_rx_ack_begin(&p->rx, p->now, pair_number(p, p->whole), facts, c->channels,
				    buf, sizeof(buf)) < 0);
	while (rel_rx_scan(&p->rx, &want))
		rel_rx_feed(&p->rx, want.message, want.first_word,
			    p->msg[pair_index(p, want.message)].words + want.first_word,
			    want.nwords);
	int len = rel_rx_ack_end(&p->rx);
	FAIL_IF(p, len > (int)REL_RX_ACK_BYTES);
	if (within(p->now, c->ack_out_from_ns, c->ack_out_until_ns) ||
	    (c->ack_loss > 0 && rng_unit(&p->rng) < c->ack_loss))
		return;
	uint32_t copies = (c->ack_duplicate > 0 && rng_unit(&p->rng) < c->ack_duplicate) ? 2 : 1;
	for (uint32_t i = 0; i < copies; i++) {
		uint64_t jitter = c->ack_jitter_ns ? rng_below(&p->rng, c->ack_jitter_ns) : 0;
		struct pair_event *e =
			pair_event_new(p, PAIR_ACK, p->now + c->ack_delay_ns + jitter, (size_t)len);
		e->len = len;
		memcpy(e->body, buf, (size_t)len);
		e->sent_ns = p->now;
		for (uint32_t k = 0; k < c->channels; k++)
			e->took_ns[k] = p->facts[k].arrived_ns - p->facts[k].sent_ns;
	}
}

static void garbage(struct pair *p)
{
	uint8_t body[200];
	struct rel_ack_result result;
	size_t len = (size_t)rng_below(&p->rng, sizeof(body));
	for (size_t i = 0; i < len; i++)
		body[i] = (uint8_t)rng_next(&p->rng);
	if (len > 4) {
		body[4] = 200; /* more windows than fit: never valid */
		assert_true(rel_tx_ack(&p->tx, body, len, p->now, &result) < 0);
	}
}

static void ack_arrives(struct pair *p, struct pair_event *e)
{
	struct rel_ack_result result;
	if (p->c->ack_garbage > 0 && rng_unit(&p->rng) < p->c->ack_garbage)
		garbage(p);
	FAIL_IF(p, rel_tx_ack(&p->tx, e->body, (size_t)e->len, p->now, &result) < 0);
	for (uint32_t i = 0; i < p->c->channels; i++) {
		uint64_t sample = result.ch[i].rtt_sample_ns;
		FAIL_IF(p, sample && sample < p->c->path[i].delay_ns + p->c->ack_delay_ns);
		/* Exactly the newest packet's: neither another packet's nor another sending's. */
		p->out->wrong_dates += sample && sample != p->now - e->sent_ns + e->took_ns[i];
		p->out->samples += sample != 0;
		p->out->reorder_ns = u64_max(p->out->reorder_ns, rel_tx_reorder_ns(&p->tx, i));
	}
	rel_tx_close_below(&p->tx, result.write_below);
	if (pair_index(p, result.write_below) > p->done)
		p->done = pair_index(p, result.write_below);
	if (p->next_send_ns == UINT64_MAX)
		p->next_send_ns = p->now;
	open_more(p);
}

static void tick(struct pair *p)
{
	struct rel_range probe;
	if (rel_tx_timer(&p->tx, p->now, &probe, NULL) > 0)
		transmit(p, &probe);
	if (p->next_send_ns == UINT64_MAX)
		p->next_send_ns = p->now;
}

static uint64_t next_event_ns(struct pair *p)
{
	struct heap_node *first = heap_first(&p->heap);
	uint64_t next = first ? first->key : UINT64_MAX;
	next = u64_min(next, rel_tx_deadline(&p->tx));
	next = u64_min(next, rel_rx_ack_deadline(&p->rx, p->now));
	if (rel_tx_inflight_all(&p->tx) < p->c->window_pkts)
		next = u64_min(next, p->next_send_ns);
	return u64_max(next, p->now);
}

static void step(struct pair *p)
{
	uint64_t next = next_event_ns(p);
	FAIL_IF(p, next == UINT64_MAX);
	p->now = next;
	bool paused = within(p->now, p->c->pause_from_ns, p->c->pause_until_ns);
	if (paused && !heap_first(&p->heap))
		p->now = START_NS + p->c->pause_until_ns;
	struct heap_node *node = heap_first(&p->heap);
	if (node && node->key <= p->now) {
		struct pair_event *e =
			(struct pair_event *)((char *)node - offsetof(struct pair_event, node));
		heap_remove(&p->heap, node);
		if (e->kind == PAIR_ACK && paused) { /* waits in the socket */
			heap_set(&p->heap, node, START_NS + p->c->pause_until_ns, p->tie++);
			return;
		}
		if (e->kind == PAIR_DATA)
			data_arrives(p, e);
		else if (e->kind == PAIR_ACK)
			ack_arrives(p, e);
		else
			write_arrives(p, e);
		free(e);
	}
	if (rel_rx_ack_due(&p->rx, p->now))
		ack_leaves(p);
	if (paused) {
		/* Nothing of the sender runs; let time reach the next arrival. */
		node = heap_first(&p->heap);
		uint64_t until = START_NS + p->c->pause_until_ns;
		p->now = u64_min(until, node ? u64_max(node->key, p->now) : until);
		return;
	}
	node = heap_first(&p->heap);
	if ((!node || node->key > p->now) && rel_tx_deadline(&p->tx) <= p->now)
		tick(p);
	send_what_fits(p);
}

static void pair_fini(struct pair *p)
{
	for (struct heap_node *n; (n = heap_first(&p->heap));) {
		heap_remove(&p->heap, n);
		free((char *)n - offsetof(struct pair_event, node));
	}
	heap_fini(&p->heap);
	for (uint32_t i = 0; i < p->c->messages; i++) {
		free(p->msg[i].words);
		free(p->msg[i].sent_ns);
		free(p->msg[i].lost);
		free(p->msg[i].times);
		pair_code_fini(&p->msg[i]);
	}
	free(p->msg);
	rel_tx_fini(&p->tx);
	assert_int_equal(p->count.out, 0);
	rel_rx_fini(&p->rx);
}

static void pair_init(struct pair *p)
{
	const struct pair_config *c = p->c;
	struct rel_tx_params params = {.channels = c->channels};
	struct rel_rx_params rx_params = {0};
	assert_int_equal(rel_scheme_parse(c->scheme, &params.scheme, NULL, 0), 0);
	p->count.left = INT32_MAX;
	p->alloc = alloc_failing(&p->count);
	p->gbn = params.scheme.repair == REL_REPAIR_GBN;
	rng_init(&p->rng, c->seed);
	heap_init(&p->heap, &sdr_alloc_system);
	p->now = p->next_send_ns = START_NS;
	p->msg = calloc(c->messages, sizeof(*p->msg));
	p->fastest_rtt = UINT64_MAX;
	uint64_t slowest = 0;
	for (uint32_t i = 0; i < c->channels; i++) {
		p->psn[i] = (uint32_t)rng_next(&p->rng) & 0xffffff;
		p->fastest_rtt = u64_min(p->fastest_rtt, c->path[i].delay_ns + c->ack_delay_ns);
		slowest = u64_max(slowest, c->path[i].delay_ns + c->ack_delay_ns);
	}
	rx_params.rtt_ns = slowest;
	assert_int_equal(rel_tx_init(&p->tx, &params, &p->alloc), 0);
	assert_int_equal(rel_rx_init(&p->rx, &rx_params, &sdr_alloc_system), 0);
	/* As a connection's PINGs give it before the first packet. */
	for (uint32_t i = 0; i < c->channels; i++)
		rel_tx_rtt_sample(&p->tx, i, c->path[i].delay_ns + c->ack_delay_ns, p->now);
	rel_tx_set_bdp(&p->tx, c->bdp_pkts);
	open_more(p);
}

void pair_run(const struct pair_config *config, struct pair_result *out)
{
	struct pair *p = calloc(1, sizeof(*p));
	assert_non_null(p);
	memset(out, 0, sizeof(*out));
	p->c = config;
	p->out = out;
	pair_seed = config->seed;
	pair_init(p);
	while (p->done < config->messages) {
		step(p);
		p->events++;
		if (config->check_every && p->events % config->check_every == 0) {
			rel_tx_check(&p->tx);
			rel_rx_check(&p->rx);
		}
		if ((p->events & 255) == 0)
			out->max_memory = u64_max(out->max_memory, rel_tx_memory_bytes(&p->tx));
		FAIL_IF(p, config->limit_ns && p->now - START_NS > config->limit_ns);
	}
	FAIL_IF(p, rel_tx_inflight_all(&p->tx) != 0);
	rel_tx_check(&p->tx);
	out->done_ns = p->now - START_NS;
	FAIL_IF(p, p->tx.nopen || p->tx.covered_now || p->tx.parity);
	rel_tx_loss(&p->tx, &out->loss);
	out->tx = p->tx.stats;
	out->rx = p->rx.stats;
	pair_fini(p);
	free(p);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Two ends over loopback; see test_util.h. */
#include "fabric/udp/test_util.h"
#include "base/rng.h"
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t test_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

void end_open(struct end *e, const struct udp_fabric_attr *attr, uint32_t channels)
{
	struct fabric_qp_attr qa = {.channels = channels, .table = &e->table, .cookie = e};
	unsigned int nworkers = attr->workers > 0 ? attr->workers : 1;

	memset(e, 0, sizeof(*e));
	e->rocev2 = attr->rocev2;
	e->channels = channels;
	e->slots = aligned_alloc(64, TEST_SLOTS * sizeof(*e->slots));
	e->workers = aligned_alloc(64, nworkers * sizeof(*e->workers));
	assert_non_null(e->slots);
	assert_non_null(e->workers);
	memset(e->slots, 0, TEST_SLOTS * sizeof(*e->slots));
	for (unsigned int i = 0; i < nworkers; i++)
		rx_worker_init(&e->workers[i]);
	assert_int_equal(
		rx_table_init(&e->table, e->slots, TEST_SLOTS,
			      attr->rocev2 ? TEST_SLOTS * FABRIC_MAX_GENERATIONS - 1 : UINT32_MAX,
			      e->workers, nworkers, attr->workers == 0 ? RX_SINGLE_THREAD : 0),
		RX_OK);
	assert_int_equal(udp_fabric_open(attr, &e->f), 0);
	assert_int_equal(e->f->ops->qp_create(e->f, &qa, &e->qp), 0);
}

void end_close(struct end *e)
{
	if (e->qp)
		e->f->ops->qp_destroy(e->qp);
	e->f->ops->close(e->f);
	free(e->slots);
	free(e->workers);
}

void end_poll(struct end *e)
{
	int n = e->f->ops->poll(e->f, e->ev, TEST_EVENTS);

	assert_true(n >= 0);
	for (int i = 0; i < n; i++) {
		e->seen[e->ev[i].type]++;
		e->last[e->ev[i].type] = e->ev[i];
	}
}

uint64_t end_counter(const struct end *e, enum sdr_counter which)
{
	uint64_t sum[SDR_CTR_COUNT] = {0};

	e->f->ops->counters(e->f, sum);
	return sum[which];
}

struct sockaddr_storage loopback(int family, uint16_t port)
{
	struct sockaddr_storage ss;

	memset(&ss, 0, sizeof(ss));
	if (family == AF_INET) {
		struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(port)};

		sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		memcpy(&ss, &sin, sizeof(sin));
	} else {
		struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

		sin6.sin6_addr = in6addr_loopback;
		memcpy(&ss, &sin6, sizeof(sin6));
	}
	return ss;
}

static struct fabric_peer peer_of(const struct end *e, bool active)
{
	struct fabric_local local;
	struct fabric_peer peer;

	e->f->ops->qp_local(e->qp, &local);
	peer = (struct fabric_peer){.qpn = local.qpn,
				    .token = local.token,
				    .start_psn = local.start_psn,
				    .payload_bytes = 1024,
				    .active = active,
				    .addr = local.addr,
				    .channels = e->channels,
				    .generations = FABRIC_MAX_GENERATIONS,
				    .messages = TEST_SLOTS};
	memcpy(peer.data_qpn, local.data_qpn, sizeof(peer.data_qpn));
	return peer;
}

/* Channels that this end has an address for. */
static uint32_t channels_up(const struct end *e)
{
	struct fabric_channel_facts facts;
	uint32_t n = 0;

	for (uint32_t c = 0; c < FABRIC_MAX_CHANNELS; c++) {
		e->f->ops->channel_facts(e->qp, c, &facts);
		n += facts.up;
	}
	return n;
}

void pair_connect(struct end *active, struct end *passive, int family)
{
	uint64_t give_up = test_now_ns() + TEST_PATIENCE_NS;
	struct fabric_peer to_passive = peer_of(passive, true);
	struct fabric_peer to_active = peer_of(active, false);
	struct fabric_caps caps;

	passive->f->ops->caps(passive->f, &caps);
	if (!passive->rocev2)
		to_passive.addr = loopback(family, caps.udp_port);
	assert_int_equal(passive->f->ops->qp_connect(passive->qp, &to_active), 0);
	assert_int_equal(active->f->ops->qp_connect(active->qp, &to_passive), 0);
	while (channels_up(passive) < channels_up(active)) {
		for (uint32_t c = 0; c < channels_up(active); c++)
			active->f->ops->ctrl(active->qp, c, 0, "hello", 5);
		passive->f->ops->wait(passive->f, passive->f->ops->now_ns(passive->f) + 1000000);
		end_poll(passive);
		assert_true(test_now_ns() < give_up);
	}
}

/* A run that starts at byte `at`, as long as a train may be. */
static struct fabric_write run_at(const struct end *from, const uint8_t *mem, size_t bytes,
				  size_t at, uint32_t payload)
{
	struct fabric_caps caps;
	struct fabric_write w = {.qp = from->qp, .payload_bytes = payload, .imm = 0x1234};
	size_t packets = (bytes - at + payload - 1) / payload, most;

	from->f->ops->caps(from->f, &caps);
	most = caps.max_train_bytes / (payload + 40);
	most = most > FABRIC_RUN_MAX ? FABRIC_RUN_MAX : most;
	w.count = (uint32_t)(packets > most ? most : packets);
	w.last_bytes = packets > most ? payload : (uint32_t)(bytes - at - (packets - 1) * payload);
	w.addr = mem + at;
	w.offset = at;
	return w;
}

void transfer(struct end *from, struct end *to, uint32_t message, size_t bytes, uint32_t payload,
	      uint32_t channels)
{
	uint8_t *out = malloc(bytes), *in = calloc(1, bytes);
	size_t nwords = rx_bind_words(bytes, payload, 0);
	uint64_t *words = calloc(nwords + 1, 8), give_up = test_now_ns() + TEST_PATIENCE_NS;
	struct fabric_bind b = {.rx = {.base = in,
				       .len = bytes,
				       .payload = payload,
				       .imm_frags = to->rocev2 ? 16 : 1,
				       .words = words}};
	struct fabric_key key;
	uint32_t packets = (uint32_t)((bytes + payload - 1) / payload), trains = 0, imm, have = 0;
	uint64_t *bits = calloc(bits_words(packets), 8);
	struct rng rng;

	assert_true(out && in && words && bits);
	rng_init(&rng, message + bytes);
	for (size_t i = 0; i < bytes; i++)
		out[i] = (uint8_t)rng_next(&rng);
	assert_int_equal(to->f->ops->bind(to->qp, message, &b, &key), 0);
	for (size_t at = 0; at < bytes;) {
		struct fabric_write w = run_at(from, out, bytes, at, payload);
		int n;

		w.message = message;
		w.key = key;
		w.channel = trains % channels;
		n = from->f->ops->post(from->f, &w, 1);
		assert_true(n == 0 || n == 1);
		assert_true(test_now_ns() < give_up);
		end_poll(from);
		end_poll(to);
		if (n == 0)
			continue;
		trains++;
		at += (w.count - 1) * (size_t)payload + w.last_bytes;
	}
	while (have < packets) {
		assert_true(test_now_ns() < give_up);
		to->f->ops->wait(to->f, to->f->ops->now_ns(to->f) + 1000000);
		end_poll(from);
		end_poll(to);
		rx_bits_get(rx_slot_of(&to->table, message), 0, packets, bits);
		have = 0;
		for (size_t i = 0; i < bits_words(packets); i++)
			have += rx_popcount(bits[i]);
	}
	to->f->ops->fence_begin(to->qp, message);
	while (to->f->ops->fence_done(to->qp, message) == 0)
		;
	assert_memory_equal(out, in, bytes);
	assert_true(rx_imm_get(rx_slot_of(&to->table, message), &imm));
	assert_int_equal(imm, 0x1234);
	free(out);
	free(in);
	free(words);
	free(bits);
}

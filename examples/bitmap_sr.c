/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A complete reliability scheme over the receive bitmap, in one page: selective repeat
 * by chunks. The receiver sends its chunk bitmap once a round trip; the sender sends
 * again what is missing in it. Everything of the scheme stands on <sdr/sdr.h>; the lossy
 * link that it crosses comes from <sdr/sim.h>, in virtual time: bitmap_sr [LOSS [BYTES [SEED]]]
 */
#include <errno.h>
#include <sdr/sdr.h>
#include <sdr/sim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MSG_BITMAP 128u	   /* control: {u32 first chunk, u32 n, bits} */
#define CHUNKS_A_MSG 4096u /* bits in one control message: 512 bytes */
#define RTT_NS 25000000ull /* 25 ms: 3,750 km of fibre and back */

struct sender {
	struct sdr_send *send;
	uint64_t chunk_bytes, length, next; /* next: first byte never sent */
	uint64_t *sent_ns;		    /* when each chunk last left */
	uint32_t *again;		    /* bytes of each chunk, from its end, to send again */
	uint64_t nchunks, resent;
};

static void die(const char *what, int err)
{
	fprintf(stderr, "bitmap_sr: %s: %s\n", what, sdr_strerror(err));
	exit(1);
}

/* Sends [at, at + length) as far as the device takes it; returns the bytes it took. */
static uint64_t push(struct sender *s, uint64_t at, uint64_t length, uint64_t now)
{
	uint64_t done = 0;

	while (done < length) {
		int64_t n = sdr_send_stream_continue(s->send, at + done, length - done, NULL);

		if (n == -EAGAIN || n == -SDR_E_EARLY)
			break;
		if (n < 0)
			die("send", (int)n);
		for (uint64_t c = (at + done) / s->chunk_bytes;
		     c * s->chunk_bytes < at + done + (uint64_t)n; c++)
			s->sent_ns[c] = now;
		done += (uint64_t)n;
	}
	return done;
}

static uint32_t chunk_length(const struct sender *s, uint64_t c)
{
	uint64_t left = s->length - c * s->chunk_bytes;

	return (uint32_t)(left < s->chunk_bytes ? left : s->chunk_bytes);
}

static void sender_bitmap(struct sender *s, const struct sdr_ctrl *msg, uint64_t now)
{
	uint32_t first, n;

	memcpy(&first, msg->body, 4);
	memcpy(&n, msg->body + 4, 4);
	for (uint64_t c = first; c < first + n && c < s->nchunks; c++) {
		int have = msg->body[8 + (c - first) / 8] >> (c - first) % 8 & 1;

		/* Not sent yet is not missing; nor is what left within this round trip. */
		if (!have && s->sent_ns[c] && now - s->sent_ns[c] > RTT_NS + RTT_NS / 8)
			s->again[c] = chunk_length(s, c);
	}
}

static void sender_step(struct sender *s, struct sdr_qp *qp, uint64_t now)
{
	struct sdr_ctrl msg = {.size = sizeof(msg)};

	while (sdr_ctrl_recv(qp, &msg))
		if (msg.type == MSG_BITMAP)
			sender_bitmap(s, &msg, now);
	s->next += push(s, s->next, s->length - s->next, now);
	for (uint64_t c = 0; c < s->nchunks; c++) {
		uint64_t end = c * s->chunk_bytes + chunk_length(s, c);
		uint64_t n = push(s, end - s->again[c], s->again[c], now);

		s->again[c] -= (uint32_t)n;
		s->resent += n;
		if (s->again[c])
			break; /* the device is full */
	}
}

/* True once every chunk has landed; tells the sender what has, once a round trip. */
static int receiver_step(struct sdr_qp *qp, struct sdr_recv *recv, uint64_t now, uint64_t *next_ns)
{
	struct sdr_recv_info info = {.size = sizeof(info)};
	uint64_t have = 0;

	sdr_recv_query(recv, &info);
	for (uint64_t first = 0; first < info.chunks; first += CHUNKS_A_MSG) {
		uint32_t n = (uint32_t)(info.chunks - first < CHUNKS_A_MSG ? info.chunks - first
									   : CHUNKS_A_MSG);
		uint32_t head[2] = {(uint32_t)first, n};
		uint64_t words[CHUNKS_A_MSG / 64];
		uint8_t body[8 + sizeof(words)];
		int64_t set = sdr_recv_bitmap_get(recv, first, n, words);

		if (set < 0)
			die("bitmap", (int)set);
		have += (uint64_t)set;
		if (now < *next_ns)
			continue;
		memcpy(body, head, 8);
		memcpy(body + 8, words, sizeof(words));
		(void)sdr_ctrl_send(qp, MSG_BITMAP, body, 8 + (n + 7) / 8, SDR_CHANNEL_ANY);
	}
	*next_ns = now >= *next_ns ? now + RTT_NS + RTT_NS / 4 : *next_ns;
	return info.end_known && have == info.chunks;
}

static struct sdr_qp *open_qp(struct sdr_sim *sim, int listen, struct sdr_ctx **ctx)
{
	struct sdr_ctx_attr ca = {
		.size = sizeof(ca), .listen = (uint8_t)listen, .sockbuf_bytes = 1 << 18};
	struct sdr_qp_attr qa = {.size = sizeof(qa), .chunk_pkts = 16, .rate_bps = 10000000000};
	struct sdr_qp *qp = NULL;
	int err = sdr_sim_ctx_create(sim, sdr_sim_host(sim), &ca, ctx);

	if (!err)
		err = sdr_qp_create(*ctx, &qa, &qp);
	if (err)
		die("open", err);
	return qp;
}

static void connect_qps(struct sdr_qp *a, struct sdr_qp *b)
{
	uint8_t ia[SDR_MAX_INFO_BYTES], ib[SDR_MAX_INFO_BYTES];
	int la = sdr_qp_info_get(a, ia, sizeof(ia)), lb = sdr_qp_info_get(b, ib, sizeof(ib));
	int err = sdr_qp_connect(b, ia, (size_t)la, NULL);

	if (!err)
		err = sdr_qp_connect(a, ib, (size_t)lb, NULL);
	if (err)
		die("connect", err);
}

int main(int argc, char **argv)
{
	double loss = argc > 1 ? atof(argv[1]) : 0.01;
	uint64_t length = argc > 2 ? strtoull(argv[2], NULL, 0) : 64u << 20;
	struct sdr_sim_link link = {sizeof(link), 10000000000, RTT_NS / 2, .loss = loss};
	struct sdr_recv_info info = {.size = sizeof(info)};
	struct sdr_ctx *ctx_a, *ctx_b;
	struct sdr_sim *sim;
	struct sender s = {.length = length};
	uint64_t next_ns = 0;
	uint8_t *src = malloc(length + 1), *dst = calloc(1, length + 1);
	int err = sdr_sim_create(argc > 3 ? strtoull(argv[3], NULL, 0) : 1, &sim);

	if (err || !src || !dst)
		die("create", err ? err : -ENOMEM);
	struct sdr_qp *qa = open_qp(sim, 0, &ctx_a), *qb = open_qp(sim, 1, &ctx_b);
	sdr_sim_link_set(sim, 0, 1, SDR_CHANNEL_ANY, &link);
	sdr_sim_link_set(sim, 1, 0, SDR_CHANNEL_ANY, &link);
	connect_qps(qa, qb);
	for (uint64_t i = 0; i < length; i++)
		src[i] = (uint8_t)(i * 2654435761u >> 24);
	struct sdr_recv_wr rwr = {.size = sizeof(rwr), .addr = dst, .length = length};
	struct sdr_send_wr swr = {.size = sizeof(swr), .addr = src, .length = length};
	struct sdr_recv *recv;

	if ((err = sdr_recv_post(qb, &rwr, &recv)) ||
	    (err = sdr_send_stream_start(qa, &swr, &s.send)))
		die("post", err);
	sdr_recv_query(recv, &info);
	s.chunk_bytes = (uint64_t)info.payload_bytes * info.chunk_pkts;
	s.nchunks = info.chunks;
	s.sent_ns = calloc(s.nchunks, sizeof(*s.sent_ns) + sizeof(*s.again));
	s.again = (uint32_t *)(void *)(s.sent_ns + s.nchunks);
	while (!receiver_step(qb, recv, sdr_now_ns(ctx_b), &next_ns)) {
		sender_step(&s, qa, sdr_now_ns(ctx_a));
		sdr_progress(ctx_a);
		sdr_progress(ctx_b);
		sdr_sim_step(sim, next_ns);
	}
	sdr_recv_complete(recv);
	printf("%llu bytes at %g loss in %.1f ms (virtual), %llu bytes sent again: %s\n",
	       (unsigned long long)length, loss, (double)sdr_sim_now_ns(sim) / 1e6,
	       (unsigned long long)s.resent,
	       (err = memcmp(src, dst, length)) ? "DIFFERENT" : "equal");
	sdr_ctx_destroy(ctx_a);
	sdr_ctx_destroy(ctx_b);
	sdr_sim_destroy(sim);
	free(s.sent_ns);
	free(src);
	free(dst);
	return err != 0;
}

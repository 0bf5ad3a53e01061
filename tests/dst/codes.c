/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Erasure codes in dst's worlds: which schemes connections get, schemes that change between
 * writes, peers that take no codes, and little memory for parity. Small blocks, as most writes
 * here are of few packets.
 */
#include "dst.h"

#include "base/bits.h"
#include <errno.h>

static const char *const coded[] = {
	"ec:4,2",
	"ec:8,3,depth=3",
	"ec:4,4,repair=parity",
	"ec:32,8",
	"ec:3,2,span=10,copies=2",
	"ec-xor:4,2",
	"ec-xor:6,1,depth=2",
	"hybrid:k=16,m=4,depth=4",
	"hybrid:k=8,m=2,depth=2,span=all",
	"auto",
	"auto:policy=table",
};

static const char *const plain[] = {"gbn", "sr", "sr-nack", "sr-nack:copies=3"};

static const char *scheme_draw(struct dst_world *w)
{
	if (dst_chance(w, 0.25))
		return plain[dst_below(w, SDR_ARRAY_LEN(plain))];
	return coded[dst_below(w, SDR_ARRAY_LEN(coded))];
}

/* What auto is told of the path: it may be wrong. */
static void path_draw(struct dst_world *w, struct sdr_conn_attr *a)
{
	static const double losses[] = {0, 1e-10, 1e-3, 0.02, 0.2};

	a->path_loss = losses[dst_below(w, SDR_ARRAY_LEN(losses))];
	if (a->path_loss > 0 && dst_chance(w, 0.5))
		a->path_burst_pkts = 1 + rng_unit(&w->rng) * 40;
}

void dst_codes_draw(struct dst_world *w, struct sdr_conn_attr *a)
{
	/* A CTS says of the last 64 numbers whether they ended early: two for a write. */
	if (w->on[F_CODES] || w->on[F_SCHEME_CHANGE])
		a->messages = (uint32_t)u64_min(a->messages, 32);
	if (w->on[F_CODES]) {
		a->scheme = scheme_draw(w);
		a->pair = dst_chance(w, 0.3);
		path_draw(w, a);
	}
	if (w->on[F_SCHEME_CHANGE])
		a->pair = dst_chance(w, 0.8);
	a->no_decode = w->on[F_NO_DECODE] && dst_chance(w, 0.5);
	if (w->on[F_PARITY_MEMORY]) {
		a->parity_bytes = 1u << 20;
		a->messages = 32; /* room for the parity of a third of them */
	}
}

/* Of the writes to come; those under way go on as they began. */
void dst_codes_turn(struct dst_conn *c)
{
	struct dst_world *w = c->w;
	struct dst_end *e;
	struct sdr_conn_info info = {.size = sizeof(info)};
	struct sdr_scheme scheme = {.size = sizeof(scheme)};
	int err;

	if (!w->on[F_SCHEME_CHANGE] || w->calm || !dst_chance(w, 0.01))
		return;
	e = &c->end[dst_below(w, 2)];
	if (sdr_scheme_parse(scheme_draw(w), &scheme, NULL, 0))
		dst_fail(w, "a scheme of the test's own is refused");
	if (!e->conn || e->over)
		return;
	(void)sdr_conn_query(e->conn, &info);
	err = sdr_conn_scheme_set(e->conn, &scheme);
	DST_CHECK(w, !err || (err == -ENOTSUP && !info.paired), "sdr_conn_scheme_set: %d", err);
	dst_trace(w, (uint64_t)(int64_t)err);
	dst_site(err ? SITE_scheme_refused : SITE_scheme_change, 1);
}

void dst_codes_count(const struct sdr_conn_info *info)
{
	dst_site(SITE_code_writes, info->writes_coded);
	dst_site(SITE_code_no_room, info->writes_no_room);
	dst_site(SITE_code_decoded, info->rx_decoded_blocks);
	dst_site(SITE_code_recovered, info->tx_recovered_pkts);
	dst_site(SITE_code_failed, info->tx_failed_blocks);
	dst_site(SITE_code_repaired, info->tx_repair_pkts);
	dst_site(SITE_code_resent, info->tx_failed_blocks && info->tx_uncovered_pkts);
	dst_site(SITE_code_silent, !info->tx_failed_blocks && info->tx_uncovered_pkts);
	dst_site(SITE_code_copies, info->tx_copy_pkts);
	dst_site(SITE_code_auto, info->decisions);
}

/* All operations have ended: no parity is kept. */
void dst_codes_ended(struct dst_conn *c)
{
	for (int i = 0; i < 2; i++) {
		struct sdr_conn_info info = {.size = sizeof(info)};

		if (!c->end[i].conn)
			continue;
		(void)sdr_conn_query(c->end[i].conn, &info);
		DST_CHECK(c->w, info.parity_bytes == 0,
			  "connection %u, end %d: %llu bytes of parity for no operation", c->id, i,
			  (unsigned long long)info.parity_bytes);
	}
}

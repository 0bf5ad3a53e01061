// SPDX-License-Identifier: Apache-2.0
/*
 * The checklist judged. See checklist.h. Plain functions of the facts.
 */
#include "tool/doctor/checklist.h"

#include "tool/doctor/size.h"

#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define AREA "checklist"
#define DUPLICATES_NOTE 0.05
#define DAMAGE_BAD 1e-4
#define LATE_BAD 0.01
#define LATE_LEAST 100u /* fewer say little of a share */
#define RATE_OK 0.8	/* of what the line leaves for data */
#define CPU_BUSY 0.9

/* Both connections: this end receives control on one, control and data on the other. */
static uint64_t counted(const struct path_facts *p, enum sdr_counter c)
{
	return p->out.counter[c] + p->echo.counter[c];
}

static double share(uint64_t part, uint64_t all)
{
	return all ? (double)part / (double)all : part ? 1 : 0;
}

static void skip(struct findings *f, const char *id, const char *what)
{
	finding_evidence(finding_add(f, AREA, LEVEL_SKIPPED, id, "%s", what),
			 "it takes a connection to 'sdr perf': sdr doctor HOST");
}

/* ---- bitmaps -------------------------------------------------------------------- */

void checklist_selftest(const struct selftest_facts *t, struct findings *f)
{
	char bytes[UNITS_TEXT];
	int bad = t->early || t->changed;
	struct finding *x;

	if (t->error) {
		x = finding_add(f, AREA, LEVEL_SKIPPED, "bitmaps-here",
				"bitmap against bytes not tried");
		finding_evidence(x, "%s: %s", t->step, sdr_strerror(t->error));
		return;
	}
	x = finding_add(f, AREA, bad ? LEVEL_FAULT : LEVEL_OK, "bitmaps-here",
			bad ? "bitmaps run ahead of the bytes on this host"
			    : "bitmap and bytes are in step on this host");
	finding_evidence(x,
			 "%s over loopback, %u receiving thread%s: %" PRIu64
			 " chunks read when their bit was seen, %" PRIu64 " not there yet, %" PRIu64
			 " changed after completion",
			 units_size_text(bytes, t->bytes), t->workers, t->workers == 1 ? "" : "s",
			 t->chunks, t->early, t->changed);
	if (!bad)
		return;
	finding_why(x, "A set bit must come after its bytes in memory: this build's barriers do "
		       "not hold on this CPU.");
	finding_fix(x, "sdr --version; lscpu   # report both as a bug, please");
}

static enum level bitmap_level(const struct path_facts *p)
{
	uint64_t all = counted(p, SDR_CTR_rx_pkts) + counted(p, SDR_CTR_rx_ctrl);
	uint64_t broken = counted(p, SDR_CTR_rx_range) + counted(p, SDR_CTR_rx_malformed);
	uint64_t foreign = counted(p, SDR_CTR_rx_protection) + counted(p, SDR_CTR_rx_unknown_qp) +
			   counted(p, SDR_CTR_ctrl_token);
	uint64_t twice = counted(p, SDR_CTR_rx_duplicate);

	if (p->echo_bad)
		return LEVEL_FAULT;
	if (broken || share(foreign, all) >= DAMAGE_BAD)
		return LEVEL_ATTENTION;
	if (foreign ||
	    (twice >= LATE_LEAST && share(twice, counted(p, SDR_CTR_rx_pkts)) >= DUPLICATES_NOTE))
		return LEVEL_NOTE;
	return LEVEL_OK;
}

static void advise_bitmaps(const struct path_facts *p, struct finding *x)
{
	if (p->echo_bad) {
		finding_why(x, "A bit was set for bytes that were never written.");
		finding_fix(x, "sdr --version; lscpu   # at both ends: report it as a bug, please");
	} else if (counted(p, SDR_CTR_rx_range) || counted(p, SDR_CTR_rx_malformed)) {
		finding_why(x, "Packets outside their message: the ends disagree on payload or "
			       "message, or something else sends to this port.");
		finding_fix(x, "sdr --version   # at both ends: install the same release");
	} else if (counted(p, SDR_CTR_rx_protection) || counted(p, SDR_CTR_rx_unknown_qp) ||
		   counted(p, SDR_CTR_ctrl_token)) {
		finding_why(x, "Packets are damaged on the way, left over from an earlier "
			       "connection, or not the peer's; they changed no bit.");
		finding_fix(x, "sudo ethtool -K %s rx off tx off   # is a checksum offload broken?",
			    *p->dev ? p->dev : "DEVICE");
	} else {
		finding_why(x, "Packets that were only late are sent again: the path reorders, or "
			       "doubles them.");
		finding_fix(x, "# links that are bundled should be hashed by flow, not by packet");
	}
}

static void judge_bitmaps(const struct path_facts *p, struct findings *f)
{
	enum level level = bitmap_level(p);
	struct finding *x;

	if (!p->echo.done) {
		x = finding_add(f, AREA, LEVEL_SKIPPED, "bitmaps",
				"bitmaps: no data came back to look at");
		finding_evidence(x, "it needs 'sdr perf' at the other end");
		return;
	}
	x = finding_add(f, AREA, level, "bitmaps", "%s",
			level == LEVEL_OK      ? "bitmaps in step with the peer's packets"
			: level == LEVEL_FAULT ? "bitmaps out of step: bits without bytes"
			: level == LEVEL_NOTE  ? "bitmaps in step; some packets were not for them"
					       : "packets that no bitmap has room for");
	finding_evidence(x,
			 "%" PRIu64 " packets: rx_range %" PRIu64 ", rx_malformed %" PRIu64
			 " (any is wrong)",
			 counted(p, SDR_CTR_rx_pkts), counted(p, SDR_CTR_rx_range),
			 counted(p, SDR_CTR_rx_malformed));
	finding_evidence(x,
			 "rx_protection %" PRIu64 ", rx_unknown_qp %" PRIu64 ", ctrl_token %" PRIu64
			 " (wrong from 1e-4 on)",
			 counted(p, SDR_CTR_rx_protection), counted(p, SDR_CTR_rx_unknown_qp),
			 counted(p, SDR_CTR_ctrl_token));
	finding_evidence(x, "rx_duplicate %" PRIu64 " (noted from 5 %% on)",
			 counted(p, SDR_CTR_rx_duplicate));
	finding_evidence(x, "%" PRIu64 " messages back, %" PRIu64 " incomplete",
			 p->echo.conn.recvs_done, p->echo_bad);
	if (level != LEVEL_OK)
		advise_bitmaps(p, x);
}

/* ---- generations ---------------------------------------------------------------- */

static void judge_generations(const struct path_facts *p, struct findings *f)
{
	uint64_t late = counted(p, SDR_CTR_rx_late);
	double part = share(late, late + counted(p, SDR_CTR_rx_pkts));
	int rocev2 = (p->caps & SDR_CAP_ROCEV2) != 0;
	struct finding *x;

	if (!p->echo.done || p->caps & SDR_CAP_SILENT_LATE) {
		x = finding_add(f, AREA, LEVEL_SKIPPED, "generations", "%s",
				p->echo.done ? "this device drops late packets uncounted"
					     : "late packets: no data came back to look at");
		finding_evidence(x, "%s",
				 p->echo.done ? "SDR_CAP_SILENT_LATE: the NIC discards what "
						"meets a dead key"
					      : "it needs 'sdr perf' at the other end");
		return;
	}
	x = finding_add(f, AREA,
			part >= LATE_BAD && late >= LATE_LEAST ? LEVEL_ATTENTION
			: late				       ? LEVEL_NOTE
							       : LEVEL_OK,
			"generations", "%" PRIu64 " packets came after their message had ended",
			late);
	finding_evidence(
		x, "rx_late %" PRIu64 " of %" PRIu64 " (%.2g %%; attention from 1 %% and %u on)",
		late, late + counted(p, SDR_CTR_rx_pkts), 100 * part, LATE_LEAST);
	finding_evidence(x, "%s",
			 rocev2 ? "RDMA packets carry 10 bits of the message's number and a "
				  "generation: only a packet a whole cycle late meets a new message"
				: "message numbers have 32 bits here and do not come round: there "
				  "are no generations to raise");
	if (!late)
		return;
	finding_why(x, "They change no byte, but each is a packet that was sent for nothing.");
	if (rocev2)
		finding_fix(x,
			    "# struct sdr_conn_attr: messages = 1024 makes the cycle longest; more "
			    "generations are the device's");
	else
		finding_fix(x,
			    "sdr perf --scheme sr-nack %.200s   # waits longest before it resends",
			    p->target);
}

/* ---- line rate ------------------------------------------------------------------ */

#define SUSPECTS 5

struct suspect {
	char text[160], fix[160];
};

/* In the order in which to look. */
static size_t find_suspects(const struct path_facts *p, const struct goal *goal,
			    const struct net_facts *n, struct suspect *s)
{
	const struct sdr_conn_info *c = &p->out.conn;
	uint64_t drops = c->host_drops + c->peer_host_drops;
	char text[UNITS_TEXT];
	size_t k = 0;

	if (p->route_mtu && p->route_mtu < 4160 && goal->bw_bps >= UINT64_C(5000000000)) {
		snprintf(s[k].text, sizeof s->text, "MTU %u: many small packets", p->route_mtu);
		snprintf(s[k++].fix, sizeof s->fix, "sudo ip link set %s mtu 9000",
			 *p->dev ? p->dev : "DEVICE");
	}
	if (c->payload_bytes && size_cost(goal->message_bytes, c->payload_bytes, p->is_v6) > 0.15) {
		snprintf(s[k].text, sizeof s->text, "messages of %s do not fill packets of %u B",
			 units_size_text(text, goal->message_bytes), c->payload_bytes);
		snprintf(s[k++].fix, sizeof s->fix, "sdr perf --size 1MiB %.120s", p->target);
	}
	if (drops || n->rcvbuf.granted_bytes < sockbuf_need(goal)) {
		snprintf(s[k].text, sizeof s->text,
			 "socket buffers: %s granted, %" PRIu64 " datagrams dropped by the hosts",
			 units_size_text(text, n->rcvbuf.granted_bytes), drops);
		snprintf(s[k++].fix, sizeof s->fix, "sudo sysctl -w net.core.rmem_max=%u",
			 SOCKBUF_WISH);
	}
	if (p->out.cpu >= CPU_BUSY) {
		snprintf(s[k].text, sizeof s->text, "this process kept its CPU %.0f %% busy",
			 100 * p->out.cpu);
		snprintf(s[k++].fix, sizeof s->fix, "sdr perf --channels 4 --workers 2 %.120s",
			 p->target);
	}
	if (p->load >= 1) {
		snprintf(s[k].text, sizeof s->text, "others want this host's CPUs: %.1f for each",
			 p->load);
		snprintf(s[k++].fix, sizeof s->fix, "top -o %%CPU");
	}
	return k;
}

/* Of what is wanted, or of what the link is; headers are not data. */
static double line_bps(const struct path_facts *p, const struct goal *goal, uint64_t link_bps)
{
	uint64_t want = goal->bw_given ? goal->bw_bps : link_bps;
	uint32_t payload = p->out.conn.payload_bytes;
	double data = payload ? 1 / (1 + size_cost(payload, payload, p->is_v6)) : 1;

	if (link_bps && link_bps < want)
		want = link_bps;
	return (double)want * data;
}

static void judge_line_rate(const struct path_facts *p, const struct goal *goal,
			    const struct net_facts *n, uint64_t link_bps, struct findings *f)
{
	double line = line_bps(p, goal, link_bps), got = p->out.second_half_bps;
	int reached = line > 0 && got >= RATE_OK * line;
	char got_text[UNITS_TEXT], line_text[UNITS_TEXT];
	struct suspect s[SUSPECTS];
	struct finding *x;
	size_t k;

	if (!p->out.done) {
		skip(f, "line-rate", "rate against the line: not measured");
		return;
	}
	if (line <= 0) {
		x = finding_add(f, AREA, LEVEL_NOTE, "line-rate",
				"%s measured; the line's rate is not known",
				units_rate_text(got_text, got));
		finding_evidence(x, "the device names no speed: say what you want with --bw");
		finding_fix(x, "sdr doctor --bw 1Gbit %.200s", p->target);
		return;
	}
	units_rate_text(got_text, got);
	units_rate_text(line_text, line);
	x = finding_add(f, AREA,
			reached				      ? LEVEL_OK
			: p->out.rate_found || goal->bw_given ? LEVEL_ATTENTION
							      : LEVEL_NOTE,
			"line-rate", "%s of the %s that the line has for data", got_text,
			line_text);
	finding_evidence(x,
			 "%" PRIu64 " bytes in %.3g s; %.0f %% of the line in the stream's second "
			 "half; rate %s; CPU %.0f %%",
			 p->out.bytes, (double)p->out.ns / 1e9, 100 * got / line,
			 p->out.rate_found ? "found" : "still growing", 100 * p->out.cpu);
	if (reached)
		return;
	k = find_suspects(p, goal, n, s);
	finding_why(x, "%s",
		    k ? "Suspects, in the order to look:"
		      : "Neither MTU, alignment, buffers nor CPU stand out: the path or the "
			"peer is slower, or others use it too.");
	for (size_t i = 0; i < k; i++) {
		finding_why(x, "(%zu) %s%s", i + 1, s[i].text, i + 1 < k ? ";" : ".");
		finding_fix(x, "%s", s[i].fix);
	}
	if (!k)
		finding_fix(x, "sdr perf --duration 10s %.200s", p->target);
}

/* ---- codes ---------------------------------------------------------------------- */

static void judge_decode(struct findings *f)
{
	struct finding *x = finding_add(f, AREA, LEVEL_SKIPPED, "decode",
					"this release has no erasure codes to decode");

	finding_evidence(x, "schemes of this build are repaired by sending again; with codes, k, m "
			    "and generator matrix of both ends will be compared");
}

void checklist_path(const struct path_facts *p, const struct goal *goal, const struct net_facts *n,
		    uint64_t link_bps, struct findings *f)
{
	if (p) {
		judge_bitmaps(p, f);
		judge_generations(p, f);
		judge_line_rate(p, goal, n, link_bps, f);
	} else {
		skip(f, "bitmaps", "bitmaps in step with a peer: not looked at");
		skip(f, "generations", "late packets of ended messages: not looked at");
		skip(f, "line-rate", "rate against the line: not measured");
	}
	judge_decode(f);
}

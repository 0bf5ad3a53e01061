// SPDX-License-Identifier: Apache-2.0
/*
 * The path judged: reachable or not and why, round trip, sizes, losses, drops, addresses.
 * See path.h. Plain functions of the facts; what the seed's checklist asks is in
 * checklist.c.
 */
#include "tool/doctor/path.h"

#include "tool/doctor/checklist.h"
#include "tool/loss.h"

#include "base/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define AREA "path"
#define LOSS_NOTE 1e-4
#define LOSS_BAD 0.05
#define PING_LOSS_BAD 0.1
#define SPURIOUS_NOTE 0.01
#define PAUSE_NS (2 * NS_PER_MS)
#define PKTS_LEAST 1000u /* fewer say little of a share */

/* ---- reached or not ------------------------------------------------------------- */

static void host_of(const struct path_facts *p, char *buf, size_t cap)
{
	const char *from = p->target + (*p->target == '[');
	const char *end = *p->target == '[' ? strchr(from, ']') : strrchr(from, ':');

	snprintf(buf, cap, "%.*s", end ? (int)(end - from) : (int)strlen(from), from);
}

static uint16_t port_of(const struct path_facts *p)
{
	const char *colon = strrchr(p->target, ':');
	unsigned int port = 0;

	return colon && sscanf(colon + 1, "%u", &port) == 1 ? (uint16_t)port : SDR_DEFAULT_PORT;
}

static void judge_refused(const struct path_facts *p, struct findings *f)
{
	struct finding *x;

	x = finding_add(f, AREA, LEVEL_FAULT, "tcp", "%s refuses TCP: nothing listens there",
			p->target);
	finding_evidence(x, "%s", p->text);
	finding_why(x, "The host is up, but no 'sdr recv' or 'sdr perf' runs on that port.");
	finding_fix(x, "sdr perf --port %u   # on the other host", port_of(p));
}

static void judge_silent(const struct path_facts *p, struct findings *f)
{
	struct finding *x;

	x = finding_add(f, AREA, LEVEL_FAULT, "tcp", "%s does not answer over TCP", p->target);
	finding_evidence(x, "%s", p->text);
	finding_why(x, "The handshake needs TCP of that port: the host is down, or a firewall "
		       "drops it.");
	finding_fix(x, "sudo nft add rule inet filter input tcp dport %u accept   # there",
		    port_of(p));
	finding_fix(x, "sudo ufw allow %u/tcp   # there, where ufw is used", port_of(p));
}

static void judge_udp_blocked(const struct path_facts *p, struct findings *f)
{
	struct finding *x;

	x = finding_add(f, AREA, LEVEL_OK, "tcp", "TCP reached %s", p->target);
	finding_evidence(x, "the handshake over TCP was answered");
	x = finding_add(f, AREA, LEVEL_FAULT, "udp-path",
			"UDP is blocked: TCP arrives, no UDP does");
	finding_evidence(x, "%s", p->text);
	finding_why(x, "All data travel over UDP of the same port.");
	finding_fix(x, "sudo nft add rule inet filter input udp dport %u accept   # there",
		    port_of(p));
	finding_fix(x, "sudo nft add rule inet filter input udp sport %u accept   # here",
		    port_of(p));
	finding_fix(x, "sudo ufw allow %u/udp   # there, where ufw is used", port_of(p));
}

static void judge_other(const struct path_facts *p, struct findings *f)
{
	char host[256];
	struct finding *x;

	x = finding_add(f, AREA, LEVEL_FAULT, "connect", "%s cannot be reached: %s", p->target,
			p->status == -ENXIO		? "no such host"
			: p->status == -SDR_E_VERSION	? "its release does not fit this one"
			: p->status == -SDR_E_MALFORMED ? "the handshake failed"
							: sdr_strerror(p->status));
	finding_evidence(x, "%s", *p->text ? p->text : sdr_strerror(p->status));
	finding_why(x, "Nothing about the path can be measured.");
	if (p->status == -ENXIO) {
		host_of(p, host, sizeof host);
		finding_fix(x, "getent hosts %s", host);
	} else if (p->status == -SDR_E_VERSION || p->status == -SDR_E_FEATURE) {
		finding_fix(x, "sdr --version   # at both ends: install the same release");
	} else {
		finding_fix(x, "sdr perf --port %u   # on the other host", port_of(p));
		finding_fix(x, "export SDR_DEVICE=udp   # at both ends: udp understands only udp");
	}
}

static void judge_unreached(const struct path_facts *p, struct findings *f)
{
	if (p->status == -SDR_E_NO_UDP)
		judge_udp_blocked(p, f);
	else if (p->status == -ECONNREFUSED)
		judge_refused(p, f);
	else if (p->status == -ETIMEDOUT || p->status == -EHOSTUNREACH || p->status == -ENETUNREACH)
		judge_silent(p, f);
	else
		judge_other(p, f);
}

/* ---- small and middle packets --------------------------------------------------- */

static void judge_reached(const struct path_facts *p, struct findings *f)
{
	char took[UNITS_TEXT], min[UNITS_TEXT], median[UNITS_TEXT];
	uint64_t lost = p->pings_sent - p->pings_answered;
	double share = p->pings_sent ? (double)lost / (double)p->pings_sent : 0;
	struct finding *x;

	x = finding_add(f, AREA, LEVEL_OK, "tcp", "TCP reached %s", p->target);
	finding_evidence(x, "connected, UDP included, in %s", units_time_text(took, p->connect_ns));
	x = finding_add(f, AREA,
			share >= PING_LOSS_BAD ? LEVEL_ATTENTION
			: lost		       ? LEVEL_NOTE
					       : LEVEL_OK,
			"udp-path",
			"UDP answers: %" PRIu64 " of %" PRIu64 " PINGs, round trip %s, median %s",
			p->pings_answered, p->pings_sent, units_time_text(min, p->rtt_min_ns),
			units_time_text(median, p->rtt_median_ns));
	finding_evidence(x, "from %s to %s by %s", p->local, p->peer,
			 *p->dev ? p->dev : "an unknown device");
	finding_evidence(x, "%" PRIu64 " packets arrived after one that was sent later",
			 p->reordered_pkts);
	if (!lost)
		return;
	finding_why(x, "Small packets get lost: the path or a firewall that limits rates.");
	finding_fix(x, "sdr ping --count 200 --interval 20ms %.200s", p->target);
}

static void judge_trains(const struct path_facts *p, struct findings *f)
{
	char rate[UNITS_TEXT];
	struct finding *x;

	if (!p->trains_sent || !p->pings_answered) {
		x = finding_add(f, AREA, LEVEL_SKIPPED, "middle-packet",
				"packets of 1,200 B not tried");
		finding_evidence(x, "the peer measures no packet trains, or the connection ended");
		return;
	}
	if (!p->trains_seen) {
		x = finding_add(f, AREA, LEVEL_ATTENTION, "middle-packet",
				"packets of 1,200 B do not arrive, small ones do");
		finding_evidence(x, "%u packet trains sent, no answer; %" PRIu64 " PINGs answered",
				 p->trains_sent, p->pings_answered);
		finding_why(x, "Something on the path drops larger UDP packets, or bursts.");
		finding_fix(x, "ping -M do -s 1200 %s", *p->peer ? p->peer : "HOST");
		return;
	}
	x = finding_add(f, AREA, LEVEL_OK, "middle-packet", "packets of 1,200 B arrive%s%s",
			p->train_bps ? ", at up to " : "",
			p->train_bps ? units_rate_text(rate, (double)p->train_bps) : "");
	finding_evidence(x, "%u packet trains sent, %u answers to them", p->trains_sent,
			 p->trains_seen);
}

/* ---- full packets --------------------------------------------------------------- */

static void skip_full(const struct path_facts *p, struct findings *f)
{
	struct finding *x;

	x = finding_add(f, AREA, LEVEL_SKIPPED, "full-packet",
			"full packets and a stream not tried");
	if (p->server == PATH_SERVER_REFUSES)
		finding_evidence(x, "%s", p->refusal);
	else if (*p->refusal)
		finding_evidence(x, "%s", p->refusal);
	else
		finding_evidence(x, "switched off (--stream 0), or the connection ended before");
	finding_why(x, "They need 'sdr perf' at the other end.");
	finding_fix(x, "sdr perf --port %u   # on the other host", port_of(p));
}

static void judge_lost_full(const struct path_facts *p, struct findings *f)
{
	const char *dev = *p->dev ? p->dev : "DEVICE";
	struct finding *x;

	x = finding_add(f, AREA, LEVEL_FAULT, "full-packet",
			"full packets of %u B do not arrive, small ones do", p->payload_bytes);
	finding_evidence(
		x, "payload %u (MTU %u here): none arrived, %" PRIu64 " of %" PRIu64 " PINGs did",
		p->payload_bytes, p->route_mtu, p->pings_answered, p->pings_sent);
	if (p->passes_mtu)
		finding_evidence(x, "payload %u (MTU %u) arrives", p->passes_payload,
				 p->passes_mtu);
	else
		finding_evidence(x, "nor does any smaller size that was tried");
	finding_why(x, "A link of the path has a smaller MTU and the ICMP message that says so is "
		       "filtered (a black hole).");
	if (p->passes_mtu) {
		finding_fix(x, "sdr perf --payload %u %.200s   # sdr send and recv take it too",
			    p->passes_payload, p->target);
		finding_fix(x, "sudo ip link set %s mtu %u   # for all programs", dev,
			    p->passes_mtu);
	} else {
		finding_fix(x, "tracepath -n %s", *p->peer ? p->peer : "HOST");
	}
}

static void judge_full(const struct path_facts *p, struct findings *f)
{
	uint32_t now = p->out.conn.payload_bytes;
	struct finding *x;

	if (!p->full_tried) {
		skip_full(p, f);
		return;
	}
	if (!p->full_arrived) {
		judge_lost_full(p, f);
		return;
	}
	if (now && now < p->payload_bytes) {
		x = finding_add(f, AREA, LEVEL_NOTE, "full-packet",
				"the path carries less than this host thinks: payload %u, not %u",
				now, p->payload_bytes);
		finding_evidence(x, "route MTU %u here; mtu_fallback %" PRIu64, p->route_mtu,
				 p->out.counter[SDR_CTR_mtu_fallback]);
		finding_why(x,
			    "A router said so (ICMP), and packets became smaller by themselves.");
		finding_fix(x,
			    "sdr perf --payload %u %.200s   # so that it is known from the start",
			    now, p->target);
		return;
	}
	x = finding_add(f, AREA, LEVEL_OK, "full-packet", "full packets of %u B arrive",
			p->payload_bytes);
	finding_evidence(x, "payload %u agreed, route MTU %u, IPv%u", p->payload_bytes,
			 p->route_mtu, p->is_v6 ? 6u : 4u);
}

/* ---- the stream ----------------------------------------------------------------- */

static void judge_loss(const struct path_facts *p, struct findings *f)
{
	const struct sdr_conn_info *c = &p->out.conn;
	double loss = loss_share(c), half = p->out.second_half_bps / 2;
	/* A pause of the scheduler is longer than this round trip, and looks like loss. */
	int unsure = p->rtt_median_ns < PAUSE_NS || c->tx_pkts < PKTS_LEAST;
	char bytes[UNITS_TEXT], rtt[UNITS_TEXT];
	struct finding *x;

	x = finding_add(f, AREA,
			loss < LOSS_NOTE	      ? LEVEL_OK
			: loss >= LOSS_BAD && !unsure ? LEVEL_ATTENTION
						      : LEVEL_NOTE,
			"loss", "loss on the way there %.3g %%", 100 * loss);
	finding_evidence(x, "%" PRIu64 " of %" PRIu64 " packets of a stream of %s, resent %" PRIu64,
			 loss_pkts(c), c->tx_pkts, units_size_text(bytes, p->out.bytes),
			 c->tx_resent_pkts);
	if (loss < LOSS_NOTE)
		return;
	if (unsure)
		finding_evidence(x, "round trip %s: a busy CPU's pauses are longer, and count too",
				 units_time_text(rtt, p->rtt_median_ns));
	finding_why(x, loss >= LOSS_BAD
			       ? "Repairs cost round trips; a policer or an overrun queue "
				 "loses this much, a line seldom does."
			       : "It is repaired packet by packet, and costs round trips at "
				 "the end of messages.");
	finding_fix(x, "sdr perf --rate %.0fKbit %.200s   # does it end at half the rate?",
		    half / 1000 > 1 ? half / 1000 : 1, p->target);
}

static void judge_reordering(const struct path_facts *p, struct findings *f)
{
	const struct sdr_conn_info *c = &p->out.conn, *e = &p->echo.conn;
	double spurious = c->tx_pkts ? (double)c->tx_spurious_pkts / (double)c->tx_pkts : 0;
	struct finding *x;

	x = finding_add(f, AREA, spurious >= SPURIOUS_NOTE ? LEVEL_NOTE : LEVEL_OK, "reordering",
			"%" PRIu64 " packets came late and were resent for nothing",
			c->tx_spurious_pkts);
	finding_evidence(x, "tx_spurious_pkts %" PRIu64 " of %" PRIu64, c->tx_spurious_pkts,
			 c->tx_pkts);
	finding_evidence(
		x, "on the way back %" PRIu64 " of %" PRIu64 " out of order, %" PRIu64 " twice",
		e->rx_reordered_pkts, e->rx_pkts, e->rx_duplicate_pkts);
	if (spurious < SPURIOUS_NOTE)
		return;
	finding_why(x, "The path has several ways of unequal length; the window for late packets "
		       "widens by itself.");
	finding_fix(x, "# links that are bundled should be hashed by flow, not by packet");
}

/* No sockets, so none of their drops and offloads: see "rdma-NAME-drops". */
static int is_nic(const struct path_facts *p)
{
	return (p->caps & SDR_CAP_SILENT_LATE) != 0;
}

static void judge_host_drops(const struct path_facts *p, struct findings *f)
{
	uint64_t here = p->out.conn.host_drops + p->echo.conn.host_drops;
	uint64_t there = p->out.conn.peer_host_drops;
	struct finding *x;

	x = finding_add(f, AREA, here || p->udp.rcvbuf_errors ? LEVEL_ATTENTION : LEVEL_OK,
			"drops-here", "%" PRIu64 " datagrams lost to full socket buffers here",
			here);
	finding_evidence(x, "SO_RXQ_OVFL %" PRIu64, here);
	finding_evidence(x, "/proc/net/snmp and snmp6: RcvbufErrors rose by %" PRIu64,
			 p->udp.rcvbuf_errors);
	if (here || p->udp.rcvbuf_errors) {
		finding_why(x, "They look like loss on the path, but are this host's.");
		finding_fix(x, "sudo sysctl -w net.core.rmem_max=%u", SOCKBUF_WISH);
	}
	x = finding_add(f, AREA, there ? LEVEL_ATTENTION : LEVEL_OK, "drops-there",
			"%" PRIu64 " datagrams lost to full socket buffers there", there);
	finding_evidence(x, "the peer's own count, in its acknowledgements");
	if (!there)
		return;
	finding_why(x, "They look like loss on the path, but are the other host's.");
	finding_fix(x, "sudo sysctl -w net.core.rmem_max=%u   # on the other host", SOCKBUF_WISH);
	finding_fix(x, "sdr recv --workers 1   # on the other host");
}

static void judge_gso_fallback(const struct path_facts *p, struct findings *f)
{
	uint64_t n = p->out.counter[SDR_CTR_gso_fallback] + p->echo.counter[SDR_CTR_gso_fallback];
	const char *dev = *p->dev ? p->dev : "DEVICE";
	struct finding *x;

	x = finding_add(f, AREA, n ? LEVEL_ATTENTION : LEVEL_OK, "gso-path", "%s",
			n ? "the route's device refused segmentation offload"
			  : "segmentation offload works on this route");
	finding_evidence(x, "gso_fallback %" PRIu64 ", device %s", n, dev);
	if (!n)
		return;
	finding_why(x, "Packets go one by one, each with its system call.");
	finding_fix(x, "sudo ethtool -K %s tx-checksum-ip-generic on", dev);
	finding_fix(x, "sudo ethtool -K %s tx-udp-segmentation on", dev);
}

/* ---- addresses ------------------------------------------------------------------ */

int address_is_private(const char *addr)
{
	unsigned int a, b;

	if (strchr(addr, ':'))
		return strncmp(addr, "fc", 2) == 0 || strncmp(addr, "fd", 2) == 0 ||
		       strncmp(addr, "fe80", 4) == 0 || strcmp(addr, "::1") == 0;
	if (sscanf(addr, "%u.%u.", &a, &b) != 2)
		return 0;
	return a == 10 || a == 127 || (a == 172 && b >= 16 && b < 32) || (a == 192 && b == 168) ||
	       (a == 100 && b >= 64 && b < 128) || (a == 169 && b == 254);
}

static void judge_nat(const struct path_facts *p, int rdma, struct findings *f)
{
	int nat = address_is_private(p->local) && !address_is_private(p->peer);
	int literal = (p->caps & SDR_CAP_ROCEV2) != 0 || rdma;
	struct finding *x;

	if (!*p->local || !*p->peer) {
		x = finding_add(f, AREA, LEVEL_SKIPPED, "nat", "addresses unknown");
		finding_evidence(x, "no route to %s could be looked up", p->target);
		return;
	}
	x = finding_add(f, AREA, nat ? LEVEL_NOTE : LEVEL_OK, "nat", "%s",
			nat ? "addresses are rewritten on the way (NAT)"
			    : "no sign that addresses are rewritten (NAT)");
	finding_evidence(x, "from %s%s to %s%s; the protocol does not tell what the peer sees",
			 p->local, address_is_private(p->local) ? " (private)" : "", p->peer,
			 address_is_private(p->peer) ? " (private)" : "");
	if (!nat)
		return;
	finding_why(x, "%s",
		    literal ? "Over UDP (--device udp) it is harmless as long as this end "
			      "connects; RoCEv2's ICRC does not survive it."
			    : "It is harmless as long as this end is the one that "
			      "connects.");
	if (literal)
		finding_fix(x, "export SDR_DEVICE=udp");
}

void path_goal(const struct path_facts *p, struct goal *goal)
{
	uint64_t measured = p->train_bps;

	if (p->out.second_half_bps > (double)measured)
		measured = (uint64_t)p->out.second_half_bps;
	if (!goal->rtt_given && p->rtt_median_ns)
		goal->rtt_ns = p->rtt_median_ns;
	if (!goal->bw_given && measured)
		goal->bw_bps = measured;
}

void path_judge(const struct path_facts *p, const struct goal *goal, const struct net_facts *n,
		uint64_t link_bps, int rdma, struct findings *f)
{
	struct finding *x;

	if (!p) {
		x = finding_add(f, AREA, LEVEL_SKIPPED, "path",
				"no HOST: the path was not looked at");
		finding_evidence(x, "nothing was sent to another host");
		finding_fix(x, "sdr perf   # on the other host, then here: sdr doctor HOST");
	} else if (p->status < 0) {
		judge_unreached(p, f);
		p = NULL;
	} else {
		judge_reached(p, f);
		judge_trains(p, f);
		judge_full(p, f);
		if (p->out.done) {
			judge_loss(p, f);
			judge_reordering(p, f);
			if (!is_nic(p)) {
				judge_host_drops(p, f);
				judge_gso_fallback(p, f);
			}
		}
		judge_nat(p, rdma, f);
	}
	checklist_path(p, goal, n, link_bps, f);
}

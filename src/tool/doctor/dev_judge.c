// SPDX-License-Identifier: Apache-2.0
/*
 * Network devices judged. See dev.h. Plain functions of the facts. Ids are
 * "dev-NAME-WHAT".
 */
#include "tool/doctor/dev.h"

#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define AREA "device"
#define MTU_LEAST 1280u /* what IPv6 demands */
#define MTU_JUMBO 9000u
#define FAST_BPS UINT64_C(10000000000) /* from here on small packets and software cost */
#define SHARE_BAD 1e-3

static struct finding *add(struct findings *f, const struct dev_facts *d, const char *what,
			   enum level level, const char *text)
{
	char id[FINDING_ID];

	snprintf(id, sizeof id, "dev-%s-%s", d->name, what);
	return finding_add(f, AREA, level, id, "%s: %s", d->name, text);
}

static void judge_link(const struct dev_facts *d, const struct goal *goal, struct findings *f)
{
	char text[160], speed[UNITS_TEXT], bw[UNITS_TEXT];
	int slow = d->speed_bps && d->speed_bps < goal->bw_bps;
	struct finding *x;

	if (!d->up) {
		x = add(f, d, "link", LEVEL_FAULT, "the link is down");
		finding_evidence(x, "/sys/class/net/%s/operstate is not up", d->name);
		finding_why(x, "Nothing leaves by a device that is down.");
		finding_fix(x, "sudo ip link set %s up", d->name);
		return;
	}
	units_rate_text(speed, (double)d->speed_bps);
	units_rate_text(bw, (double)goal->bw_bps);
	snprintf(text, sizeof text, "up, %s%s%s", d->speed_bps ? speed : "speed unknown",
		 slow ? ", less than the " : "", slow ? bw : "");
	if (slow)
		strcat(text, " wanted");
	x = add(f, d, "link",
		!slow		 ? LEVEL_OK
		: goal->bw_given ? LEVEL_ATTENTION
				 : LEVEL_NOTE,
		text);
	finding_evidence(x, "/sys/class/net/%s/speed = %" PRIu64 " Mbit/s, driver %s", d->name,
			 d->speed_bps / 1000000, *d->driver ? d->driver : "unknown");
	if (slow) {
		finding_why(x, "No packet leaves faster than the link.");
		finding_fix(x, "ethtool %s   # what the two ends of the cable have agreed on",
			    d->name);
	}
}

static void judge_mtu(const struct dev_facts *d, struct findings *f)
{
	int fast = d->speed_bps >= FAST_BPS && d->mtu < 4160;
	char text[96];
	struct finding *x;

	snprintf(text, sizeof text, "MTU %u%s", d->mtu,
		 d->mtu < MTU_LEAST ? ", below what IPv6 demands"
		 : fast		    ? " on a fast link"
				    : "");
	x = add(f, d, "mtu",
		d->mtu < MTU_LEAST ? LEVEL_ATTENTION
		: fast		   ? LEVEL_NOTE
				   : LEVEL_OK,
		text);
	finding_evidence(x, "/sys/class/net/%s/mtu = %u", d->name, d->mtu);
	if (d->mtu < MTU_LEAST)
		finding_why(x, "Headers take a large share, and IPv6 does not work.");
	else if (fast)
		finding_why(x, "Six times as many packets, each with its own cost, as with 9000.");
	else
		return;
	finding_fix(x, "sudo ip link set %s mtu %u   # if the whole path carries it", d->name,
		    d->mtu < MTU_LEAST ? 1500u : MTU_JUMBO);
}

static void judge_offload(const struct dev_facts *d, const struct offload *o, const char *id,
			  const char *name, const char *feature, enum level bad, const char *why,
			  struct findings *f)
{
	char text[96];
	struct finding *x;

	if (o->on < 0) {
		snprintf(text, sizeof text, "%s unknown", name);
		x = add(f, d, id, LEVEL_SKIPPED, text);
		finding_evidence(x, "ethtool's ioctl does not say");
		return;
	}
	snprintf(text, sizeof text, "%s %s%s", name, o->on ? "on" : "off",
		 o->on || o->settable ? "" : " (the device has none)");
	x = add(f, d, id, o->on ? LEVEL_OK : o->settable ? bad : LEVEL_OK, text);
	finding_evidence(x, "ethtool -k %s: %s: %s%s", d->name, feature, o->on ? "on" : "off",
			 o->settable ? "" : " [fixed]");
	if (o->on || !o->settable)
		return;
	finding_why(x, "%s", why);
	finding_fix(x, "sudo ethtool -K %s %s on", d->name, feature);
}

static void judge_drops(const struct dev_facts *d, struct findings *f)
{
	uint64_t full = d->rx_missed + d->rx_fifo;
	uint64_t damaged = d->rx_errors > full ? d->rx_errors - full : 0;
	double all = (double)full + (double)damaged + (double)d->rx_pkts;
	int bad = (double)(full + damaged) >= SHARE_BAD * all && full + damaged > 0;
	char text[128];
	struct finding *x;

	snprintf(text, sizeof text, "%" PRIu64 " packets lost to a full ring, %" PRIu64 " damaged",
		 full, damaged);
	x = add(f, d, "drops",
		bad		  ? LEVEL_ATTENTION
		: full || damaged ? LEVEL_NOTE
				  : LEVEL_OK,
		text);
	finding_evidence(x,
			 "/sys/class/net/%s/statistics: rx_missed_errors %" PRIu64
			 ", rx_fifo_errors %" PRIu64 ", rx_errors %" PRIu64 " of %" PRIu64
			 " packets; rx_dropped %" PRIu64 " (also of protocols that nobody wants), "
			 "tx_dropped %" PRIu64,
			 d->name, d->rx_missed, d->rx_fifo, d->rx_errors, d->rx_pkts, d->rx_dropped,
			 d->tx_dropped);
	if (d->ring_rx_max)
		finding_evidence(x, "receive ring %u of %u", d->ring_rx, d->ring_rx_max);
	if (full) {
		finding_why(x, "The CPU did not empty the device's ring in time.");
		if (d->ring_rx < d->ring_rx_max)
			finding_fix(x, "sudo ethtool -G %s rx %u", d->name, d->ring_rx_max);
		else
			finding_fix(x, "ethtool -S %s | grep -iE 'drop|miss'", d->name);
	}
	if (damaged) {
		finding_why(x, "Damaged frames come from a cable, an optic or a duplex mismatch.");
		finding_fix(x, "ethtool -S %s | grep -iE 'err|crc'", d->name);
	}
}

void dev_judge(const struct dev_facts *d, const struct goal *goal, struct findings *f)
{
	enum level fast = d->speed_bps >= FAST_BPS ? LEVEL_ATTENTION : LEVEL_NOTE;

	if (!d->loopback)
		judge_link(d, goal, f);
	judge_mtu(d, f);
	if (!d->up || d->loopback)
		return;
	judge_offload(d, &d->gso, "gso", "segmentation (gso)", "generic-segmentation-offload",
		      LEVEL_ATTENTION, "Every packet passes the kernel's stack alone.", f);
	judge_offload(d, &d->gro, "gro", "coalescing (gro)", "generic-receive-offload",
		      d->software ? LEVEL_NOTE : LEVEL_ATTENTION,
		      "Every packet passes the kernel's stack alone.", f);
	judge_offload(d, &d->udp_segmentation, "uso", "UDP segmentation in the device",
		      "tx-udp-segmentation", fast,
		      "The kernel cuts super-packets in software instead.", f);
	judge_drops(d, f);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The summary of a transfer. See report.h.
 */
#include "tool/report.h"

#include "tool/json.h"
#include "tool/loss.h"
#include "tool/say.h"

#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static double goodput_bps(const struct report *r)
{
	return r->ns ? (double)r->bytes * 8e9 / (double)r->ns : 0;
}

static void print_json(const struct report *r)
{
	char sum[DIGEST_TEXT];
	struct json j;

	json_init(&j, stdout);
	json_object_begin(&j, NULL);
	json_text(&j, "command", r->command);
	json_text(&j, "status", r->error ? "failed" : "ok");
	json_text(&j, "error", r->error);
	json_text(&j, "peer", r->peer);
	json_text(&j, "scheme", r->conn.scheme);
	json_text(&j, "write_scheme", r->conn.write_scheme);
	json_text(&j, "why", r->conn.why);
	json_uint(&j, "decisions", r->conn.decisions);
	json_uint(&j, "writes_coded", r->conn.writes_coded);
	json_uint(&j, "writes_no_room", r->conn.writes_no_room);
	json_uint(&j, "channels", r->conn.channels);
	json_uint(&j, "payload_bytes", r->conn.payload_bytes);
	json_uint(&j, "files", r->files);
	json_uint(&j, "failed", r->failed);
	json_uint(&j, "bytes", r->bytes);
	json_real(&j, "seconds", (double)r->ns / 1e9);
	json_real(&j, "goodput_bps", goodput_bps(r));
	json_uint(&j, "tx_pkts", r->conn.tx_pkts);
	json_uint(&j, "lost_pkts", loss_pkts(&r->conn));
	json_uint(&j, "spurious_pkts", r->conn.tx_spurious_pkts);
	json_real(&j, "loss", loss_share(&r->conn));
	json_uint(&j, "resent_bytes", r->conn.tx_resent_bytes);
	json_uint(&j, "parity_bytes", r->conn.tx_parity_bytes);
	json_uint(&j, "repair_pkts", r->conn.tx_repair_pkts);
	json_uint(&j, "copy_pkts", r->conn.tx_copy_pkts);
	json_uint(&j, "recovered_pkts", r->conn.tx_recovered_pkts);
	json_uint(&j, "decoded_pkts", r->conn.rx_decoded_pkts);
	json_uint(&j, "rx_pkts", r->conn.rx_pkts);
	json_uint(&j, "duplicate_pkts", r->conn.rx_duplicate_pkts);
	json_uint(&j, "reordered_pkts", r->conn.rx_reordered_pkts);
	json_uint(&j, "host_drops", r->conn.host_drops);
	json_uint(&j, "peer_host_drops", r->conn.peer_host_drops);
	json_uint(&j, "rtt_ns", r->conn.rtt_ns);
	json_uint(&j, "rtt_min_ns", r->conn.rtt_min_ns);
	json_text(&j, "sha256", r->have_digest ? digest_text(sum, r->digest) : NULL);
	json_object_end(&j);
	json_finish(&j);
}

static void losses_text(const struct report *r, char *buf, size_t cap)
{
	char resent[UNITS_TEXT];

	*buf = '\0';
	if (r->conn.tx_data_bytes < r->bytes)
		return; /* the receiver does not know what was lost on the way */
	snprintf(buf, cap, "; loss seen %.3g %% (%" PRIu64 " of %" PRIu64 " packets), resent %s",
		 100 * loss_share(&r->conn), loss_pkts(&r->conn), r->conn.tx_pkts,
		 units_size_text(resent, r->conn.tx_resent_bytes));
}

static void print_text(const struct report *r)
{
	char bytes[UNITS_TEXT], time[UNITS_TEXT], rate[UNITS_TEXT], sum[DIGEST_TEXT];
	char losses[128];

	losses_text(r, losses, sizeof losses);
	out("%s: %" PRIu64 " %s, %s in %s, goodput %s%s",
	    strcmp(r->command, "send") == 0 ? "sent" : "received", r->files,
	    r->files == 1 ? "file" : "files", units_size_text(bytes, r->bytes),
	    units_time_text(time, r->ns), units_rate_text(rate, goodput_bps(r)), losses);
	if (r->have_digest)
		out("sha256 %s%s", digest_text(sum, r->digest),
		    r->files == 1 ? "" : " (of all files' digests, in order)");
	if (r->conn.host_drops || r->conn.peer_host_drops)
		out("dropped by a host, not the path: here %" PRIu64 ", there %" PRIu64
		    " (see 'sdr info' on socket buffers)",
		    r->conn.host_drops, r->conn.peer_host_drops);
}

void report_print(const struct report *r, int json, int quiet)
{
	if (json)
		print_json(r);
	else if (!quiet)
		print_text(r);
}

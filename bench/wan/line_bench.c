/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line of `sdr wan` alone, in virtual time on one core: 64 KiB TCP super-packets at 1500
 * bytes of MTU, offered as fast as the link takes them. Once with headers alone written to a
 * frame: the line's own work. Once with a copy of the whole frame in and out, as read() and
 * write() of a TUN device make them.
 *
 *	line_bench [seconds per row, default 0.5 [only the nth row, from 0]]
 */
#include "tool/wan/line.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bits.h"
#include "base/units.h"

#define VNET 10u
#define HEADERS 52u /* IPv4, TCP with time stamps */
#define MSS 1448u
#define SEGMENTS 45u
#define FRAME (VNET + HEADERS + SEGMENTS * MSS)
#define GBIT UINT64_C(1000000000)

struct row {
	const char *name;
	uint64_t rate_bps, delay_ns;
	double loss;
	double reorder;
	uint64_t jitter_ns; /* reorders */
	uint32_t n_paths;
	bool nat;
};

static uint8_t frame[FRAME], sink[FRAME];

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void build_frame(void)
{
	uint16_t vnet[4] = {HEADERS, MSS, 20, 16}; /* hdr_len, gso_size, csum_start, _offset */
	uint8_t *ip = frame + VNET;

	frame[0] = 1; /* NEEDS_CSUM */
	frame[1] = 1; /* TCPV4 */
	memcpy(frame + 2, vnet, sizeof(vnet));
	ip[0] = 0x45;
	put_be16(ip + 2, FRAME - VNET);
	put_be16(ip + 6, 0x4000);
	ip[8] = 64;
	ip[9] = 6;
	memcpy(ip + 12, "\x0a\x00\x00\x01\x0a\x00\x00\x02", 8);
	put_be16(ip + 20, 40000);
	put_be16(ip + 22, 5001);
	ip[32] = 0x80;
	ip[33] = 0x18;
}

static struct wan_line *make_line(const struct row *row)
{
	struct wan_config *config = calloc(1, sizeof(*config));
	struct wan_line *line = NULL;

	if (!config)
		return NULL;
	config->seed = 1;
	config->n_paths = row->n_paths;
	config->nat = row->nat;
	for (uint32_t p = 0; p < row->n_paths; p++) {
		struct link_attr *attr = &config->path[WAN_A][p].attr;

		attr->rate_bps = row->rate_bps;
		attr->delay_ns = row->delay_ns;
		attr->loss = link_ge_iid(row->loss);
		attr->reorder_p = row->reorder;
		attr->reorder_ns = NS_PER_MS;
		attr->jitter_ns = row->jitter_ns;
		attr->jitter_reorders = row->jitter_ns > 0;
	}
	if (wan_line_create(config, 0, &sdr_alloc_system, &line))
		line = NULL;
	free(config);
	return line;
}

/* One frame onto the line, and what is due off it. */
static void step(struct wan_line *line, uint64_t now_ns, size_t copied)
{
	uint8_t *buffer = wan_line_buffer(line);
	struct wan_frame out;

	if (!buffer) {
		fprintf(stderr, "line_bench: out of memory\n");
		exit(1);
	}
	memcpy(buffer, frame, copied);
	wan_line_offer(line, WAN_A, now_ns, FRAME);
	while (wan_line_take(line, now_ns, &out))
		memcpy(sink, out.bytes, copied < out.len ? copied : out.len);
}

/* Nanoseconds a frame, best of many stretches: the machine may be shared. */
static double measure(struct wan_line *line, uint64_t *now_ns, uint64_t gap_ns, double seconds,
		      size_t copied)
{
	double start = now_s(), best = 0;
	unsigned int n = 200;

	while (now_s() - start < seconds) {
		double began = now_s(), took;

		for (unsigned int i = 0; i < n; i++, *now_ns += gap_ns)
			step(line, *now_ns, copied);
		took = (now_s() - began) / n * 1e9;
		if (best == 0 || took < best)
			best = took;
	}
	return best;
}

static void run_row(const struct row *row, double seconds)
{
	struct wan_line *line = make_line(row);
	const double bits = 8.0 * SEGMENTS * (HEADERS + MSS);
	uint64_t now_ns = NS_PER_S;
	uint64_t gap_ns = u64_div_up((uint64_t)bits * NS_PER_S, row->rate_bps);
	struct wan_line_counters counters;
	struct wan_dir_stat stat;
	double own, whole;

	if (!line) {
		fprintf(stderr, "line_bench: no line for '%s'\n", row->name);
		exit(1);
	}
	/* Until the link is full. */
	for (uint64_t end = now_ns + row->delay_ns + row->jitter_ns; now_ns < end; now_ns += gap_ns)
		step(line, now_ns, FRAME);
	own = measure(line, &now_ns, gap_ns, seconds / 2, VNET + HEADERS);
	whole = measure(line, &now_ns, gap_ns, seconds / 2, FRAME);
	wan_line_counters(line, &counters);
	wan_line_stat(line, WAN_A, 0, now_ns, &stat);
	printf("%-36s %8.2f %9.1f %8.1f %9.1f %8.1f %7.1f\n", row->name,
	       (double)counters.pieces / (double)counters.frames, own / SEGMENTS, bits / own,
	       whole / SEGMENTS, bits / whole, (double)counters.memory_peak_bytes / 1e6);
	wan_line_destroy(line);
}

int main(int argc, char **argv)
{
	static const struct row rows[] = {
		{"10 Gbit/s", 10 * GBIT, 20 * NS_PER_MS, 0, 0, 0, 1, false},
		{"10 Gbit/s, 1 % loss", 10 * GBIT, 20 * NS_PER_MS, 0.01, 0, 0, 1, false},
		{"1 Gbit/s", GBIT, 20 * NS_PER_MS, 0, 0, 0, 1, false},
		{"1 Gbit/s, 1 % loss", GBIT, 20 * NS_PER_MS, 0.01, 0, 0, 1, false},
		{"1 Gbit/s, 1 % loss, 250 MB in flight", GBIT, 2 * NS_PER_S, 0.01, 0, 0, 1, false},
		{"10 Gbit/s, NAT, 16 paths", 10 * GBIT, 20 * NS_PER_MS, 0, 0, 0, 16, true},
		{"10 Gbit/s, 1 % held back by 1 ms", 10 * GBIT, 20 * NS_PER_MS, 0, 0.01, 0, 1,
		 false},
		{"10 Gbit/s, 1 ms jitter that reorders", 10 * GBIT, 20 * NS_PER_MS, 0, 0, NS_PER_MS,
		 1, false},
		{"100 Mbit/s: one segment a piece", GBIT / 10, 20 * NS_PER_MS, 0, 0, 0, 1, false},
	};
	double seconds = argc > 1 ? atof(argv[1]) : 0.5;

	build_frame();
	printf("TCP super-packets of %u segments of %u bytes; one core; best stretch\n", SEGMENTS,
	       HEADERS + MSS);
	printf("%-36s %8s %18s %18s %8s\n", "", "", "line alone", "and copies in/out", "memory");
	printf("%-36s %8s %9s %8s %9s %8s %7s\n", "link", "pieces", "ns/segm", "Gbit/s", "ns/segm",
	       "Gbit/s", "MB");
	for (size_t i = 0; i < SDR_ARRAY_LEN(rows); i++)
		if (argc <= 2 || (size_t)atoi(argv[2]) == i)
			run_row(&rows[i], seconds);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Contract: line_rig.h. */
#include "tool/wan/line_rig.h"
#include "tool/wan/packet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct wan_config *rig_config;

int rig_open(void **state)
{
	(void)state;
	rig_config = calloc(1, sizeof(*rig_config));
	return rig_config ? 0 : -1;
}

int rig_close(void **state)
{
	(void)state;
	free(rig_config);
	return 0;
}

struct wan_config *rig_fresh(uint32_t n_paths)
{
	memset(rig_config, 0, sizeof(*rig_config));
	rig_config->n_paths = n_paths;
	rig_config->seed = 42;
	return rig_config;
}

void rig_both(uint32_t path, uint64_t rate_bps, uint64_t delay_ns)
{
	for (int from = 0; from < 2; from++) {
		rig_config->path[from][path].attr.rate_bps = rate_bps;
		rig_config->path[from][path].attr.delay_ns = delay_ns;
	}
}

struct wan_line *rig_make(void)
{
	struct wan_line *line;

	assert_int_equal(wan_line_create(rig_config, 0, &sdr_alloc_system, &line), 0);
	return line;
}

size_t rig_offer(struct wan_line *line, enum wan_end from, uint64_t now_ns,
		 const struct twin_spec *spec)
{
	uint8_t *buffer = wan_line_buffer(line);
	size_t len;

	assert_non_null(buffer);
	assert_ptr_equal(wan_line_buffer(line), buffer);
	len = twin_build(spec, buffer);
	wan_line_offer(line, from, now_ns, len);
	return len;
}

struct twin_spec rig_tcp(uint32_t n, uint64_t fill)
{
	return (struct twin_spec){.segment_bytes = MSS,
				  .payload_bytes = n * MSS,
				  .tcp_flags = TWIN_ACK,
				  .sport = 1000,
				  .dport = 2000,
				  .fill = fill};
}

struct twin_spec rig_udp(uint32_t bytes, uint16_t sport, uint16_t dport)
{
	return (struct twin_spec){
		.udp = true, .payload_bytes = bytes, .sport = sport, .dport = dport, .fill = 1};
}

struct wan_packet rig_parsed(const struct wan_frame *f)
{
	struct wan_packet p;

	assert_int_equal(wan_packet_parse(f->bytes, f->len, &p), 0);
	return p;
}

struct wan_dir_stat rig_stat(const struct wan_line *line, enum wan_end from, uint32_t path)
{
	struct wan_dir_stat stat;

	wan_line_stat(line, from, path, 0, &stat);
	return stat;
}

struct wan_line_counters rig_counters(const struct wan_line *line)
{
	struct wan_line_counters counters;

	wan_line_counters(line, &counters);
	return counters;
}

void rig_drain(struct wan_line *line, struct twin_list *list, uint32_t *frames)
{
	uint64_t at, last = 0;
	struct wan_frame f;

	while ((at = wan_line_next_ns(line)) != UINT64_MAX) {
		assert_true(at >= last);
		assert_true(at == 0 || !wan_line_take(line, at - 1, &f));
		assert_true(wan_line_take(line, at, &f));
		assert_int_equal(f.due_ns, at);
		if (list)
			twin_segments(f.bytes, f.len, list);
		if (frames)
			(*frames)++;
		last = at;
		wan_line_check(line);
	}
	assert_false(wan_line_take(line, UINT64_MAX, &f));
}

void rig_balance(const struct wan_line *line, uint64_t taken_pkts)
{
	uint64_t delivered = 0;

	for (uint32_t c = 0; c < 2 * LINK_MAX_PATHS; c++) {
		struct wan_dir_stat s = rig_stat(line, (enum wan_end)(c % 2), c / 2);
		uint64_t sum = s.link.delivered_pkts;

		for (int why = 0; why < LINK_LOST_REASONS; why++)
			sum += s.link.lost_pkts[why];
		assert_int_equal(sum, s.link.offered_pkts);
		assert_int_equal(s.in_flight_pkts, 0);
		assert_int_equal(s.in_flight_bytes, 0);
		delivered += s.link.delivered_pkts + s.link.duplicated_pkts;
	}
	assert_int_equal(delivered, taken_pkts + rig_counters(line).nat_lost_pkts);
	wan_line_check(line);
}

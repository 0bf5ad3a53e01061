/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line as a whole: creation, new values, figures. Where a frame goes is in
 * line_offer.c; line_int.h introduces the parts.
 */
#include "tool/wan/line_int.h"

#include "base/bits.h"
#include "base/check.h"

#include <errno.h>

/* The lists of attr are the path's own. */
static struct link_attr path_attr(const struct wan_path *path)
{
	struct link_attr attr = path->attr;

	attr.drop = path->drop;
	attr.n_drop = path->n_drop;
	attr.blackout = path->blackout;
	attr.n_blackout = path->n_blackout;
	return attr;
}

static int check_path(const struct wan_path *path)
{
	struct link_attr attr = path_attr(path);

	if (path->n_drop > WAN_MAX_DROPS || path->n_blackout > WAN_MAX_BLACKOUTS)
		return -ERANGE;
	return link_attr_check(&attr);
}

static int check_config(const struct wan_config *config)
{
	int rc = 0;

	if (config->n_paths < 1 || config->n_paths > LINK_MAX_PATHS)
		return -EINVAL;
	if (config->memory_bytes && config->memory_bytes < WAN_MEMORY_MIN(config->n_paths))
		return -ERANGE;
	for (uint32_t p = 0; p < config->n_paths && !rc; p++) {
		rc = check_path(&config->path[WAN_A][p]);
		if (!rc)
			rc = check_path(&config->path[WAN_B][p]);
	}
	return rc;
}

/* Both lists of a path are looked at where config lies: it must be the line's own. */
static void take_config(struct wan_line *line, const struct wan_config *config)
{
	line->config = *config;
	for (uint32_t c = 0; c < LINE_CHANNELS; c++) {
		struct wan_path *path = &line->config.path[c % 2][c / 2];

		path->attr = path_attr(path);
	}
	line->memory.limit_bytes = config->memory_bytes;
	line->n_scan = (uint32_t)u64_max(line->n_scan, config->n_paths);
}

int wan_line_create(const struct wan_config *config, uint64_t now_ns, const struct sdr_alloc *alloc,
		    struct wan_line **out)
{
	static const struct link_attr nothing;
	int rc = check_config(config);
	struct wan_line *line;

	_Static_assert(SLAB_BYTES < WAN_MEMORY_MIN(1) / 4, "two slabs each way, and some to go on");
	if (rc)
		return rc;
	line = alloc_zeroed(alloc, sizeof(*line));
	if (!line)
		return -ENOMEM;
	line->alloc = alloc;
	line->memory.alloc = alloc;
	heap_init(&line->late, alloc);
	take_config(line, config);
	for (uint32_t c = 0; c < LINE_CHANNELS; c++) {
		bool used = c / 2 < config->n_paths;
		const struct link_attr *attr = &line->config.path[c % 2][c / 2].attr;

		line->head_ns[c] = UINT64_MAX;
		rc = link_init(&line->channel[c].link, used ? attr : &nothing,
			       channel_seed(config->seed, c));
		SDR_ASSERT(rc == 0); /* checked above */
	}
	line->reading = &line->channel[0];
	link_nat_init(&line->nat, ~config->seed, config->nat_timeout_ns, config->nat_every_ns,
		      now_ns);
	*out = line;
	return 0;
}

void wan_line_reserve(struct wan_line *line, uint64_t bytes)
{
	line_memory_reserve(&line->memory, bytes);
}

static void free_list(struct wan_line *line, struct piece *piece)
{
	while (piece) {
		struct piece *next = piece->next;

		piece_free(&line->memory, piece);
		piece = next;
	}
}

void wan_line_destroy(struct wan_line *line)
{
	struct heap_node *node;

	if (!line)
		return;
	if (line->taken)
		piece_free(&line->memory, line->taken);
	while ((node = heap_first(&line->late))) {
		heap_remove(&line->late, node);
		piece_free(&line->memory, (struct piece *)(void *)node);
	}
	heap_fini(&line->late);
	for (uint32_t c = 0; c < LINE_CHANNELS; c++) {
		free_list(line, line->channel[c].head);
		slab_close(&line->memory, &line->channel[c].read);
		slab_close(&line->memory, &line->channel[c].fill);
	}
	line_memory_fini(&line->memory);
	alloc_free(line->alloc, line);
}

static void set_nat(struct wan_line *line, uint64_t now_ns, const struct wan_config *config)
{
	line->nat.timeout_ns = config->nat_timeout_ns;
	if (line->nat.every_ns == config->nat_every_ns && line->config.nat == config->nat)
		return;
	line->nat.every_ns = config->nat_every_ns;
	line->nat.next_ns = config->nat_every_ns > UINT64_MAX - now_ns
				    ? UINT64_MAX
				    : now_ns + config->nat_every_ns;
}

/* Channels of paths that have gone fill no slabs. The one that frames are read into may be
 * handed out: wan_line_buffer() leaves it. */
static void close_slabs(struct wan_line *line)
{
	for (uint32_t c = 2 * line->config.n_paths; c < LINE_CHANNELS; c++) {
		struct channel *ch = &line->channel[c];

		slab_close(&line->memory, &ch->fill);
		if (ch != line->reading)
			slab_close(&line->memory, &ch->read);
	}
	(void)line_memory_room(&line->memory, 0);
}

int wan_line_set(struct wan_line *line, uint64_t now_ns, const struct wan_config *config)
{
	uint64_t seed = line->config.seed;
	int rc = check_config(config);

	if (rc)
		return rc;
	set_nat(line, now_ns, config);
	if (config != &line->config)
		take_config(line, config);
	line->config.seed = seed;
	for (uint32_t c = 0; c < 2 * config->n_paths; c++) {
		rc = link_attr_set(&line->channel[c].link, now_ns,
				   &line->config.path[c % 2][c / 2].attr);
		SDR_ASSERT(rc == 0); /* checked above */
	}
	close_slabs(line);
	return 0;
}

const struct wan_config *wan_line_config(const struct wan_line *line)
{
	return &line->config;
}

void wan_line_rebind(struct wan_line *line)
{
	link_nat_rebind(&line->nat);
}

void wan_line_stat(const struct wan_line *line, enum wan_end from, uint32_t path, uint64_t now_ns,
		   struct wan_dir_stat *out)
{
	const struct channel *ch = &line->channel[channel_of(from, path)];

	*out = (struct wan_dir_stat){
		.link = ch->link.counters,
		.delivered_bytes = ch->delivered_bytes,
		.queued_bytes = link_queued_bytes(&ch->link, now_ns),
		.in_flight_pkts = ch->in_flight_pkts,
		.in_flight_bytes = ch->in_flight_bytes,
	};
	/* The link cannot know which packets may be marked. */
	out->link.marked_pkts -= ch->unmarked_pkts;
}

void wan_line_counters(const struct wan_line *line, struct wan_line_counters *out)
{
	*out = line->counters;
	out->nat_rebinds = line->nat.rebinds;
	out->nat_lost_pkts = line->nat_lost_pkts;
	out->memory_bytes = line_memory_bytes(&line->memory);
	out->memory_peak_bytes = line->memory.peak_bytes;
}

struct sums {
	uint64_t pkts[LINE_CHANNELS], bytes[LINE_CHANNELS], pieces;
};

static void add_piece(struct sums *sums, const struct piece *piece)
{
	sums->pieces++;
	if (piece->of_line)
		return;
	sums->pkts[piece->channel] += piece->n_segments;
	sums->bytes[piece->channel] += piece->ip_bytes;
}

void wan_line_check(const struct wan_line *line)
{
	struct sums sums = {.pieces = line->taken != NULL};

	heap_check(&line->late);
	for (uint32_t i = 0; i < line->late.n; i++)
		add_piece(&sums, (const struct piece *)(const void *)line->late.slot[i]);
	for (uint32_t c = 0; c < LINE_CHANNELS; c++) {
		const struct channel *ch = &line->channel[c];
		const struct piece *last = NULL;

		link_check(&ch->link); /* (6) */
		SDR_ASSERT(line->head_ns[c] ==
			   (ch->head ? ch->head->due.key : UINT64_MAX)); /* (1) */
		SDR_ASSERT(!ch->head || c < 2 * line->n_scan);		 /* (5) */
		for (const struct piece *p = ch->head; p; last = p, p = p->next) {
			SDR_ASSERT(!last || last->due.key <= p->due.key); /* (2) */
			SDR_ASSERT(!last || last->due.tie < p->due.tie);  /* (2) */
			SDR_ASSERT(p->channel == c && p->slab->live > 0); /* (3) */
			add_piece(&sums, p);
		}
		SDR_ASSERT(ch->tail == last);
	}
	for (uint32_t c = 0; c < LINE_CHANNELS; c++) {
		SDR_ASSERT(line->channel[c].in_flight_pkts == sums.pkts[c]);   /* (4) */
		SDR_ASSERT(line->channel[c].in_flight_bytes == sums.bytes[c]); /* (4) */
	}
	SDR_ASSERT(line->memory.n_used > 0 || sums.pieces == 0);
	link_nat_check(&line->nat);
}

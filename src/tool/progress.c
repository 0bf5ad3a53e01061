// SPDX-License-Identifier: Apache-2.0
/*
 * The progress bar and its plain twin. See progress.h.
 */
#include "tool/progress.h"

#include "tool/loss.h"
#include "tool/say.h"

#include "base/units.h"

#include <sdr/conn.h>

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define BAR_EVERY_NS (200 * NS_PER_MS)
#define LINE_EVERY_NS (3 * NS_PER_S)
#define BAR_WIDTH 20

void progress_init(struct progress *p, const struct net_opts *o, uint64_t total_bytes,
		   uint64_t now_ns)
{
	*p = (struct progress){.total_bytes = total_bytes, .start_ns = now_ns, .shown_ns = now_ns};
	if (isatty(STDERR_FILENO))
		p->mode = o->quiet ? PROGRESS_NONE : PROGRESS_BAR;
	else
		p->mode = o->quiet || o->json ? PROGRESS_NONE : PROGRESS_LINES;
	p->sample[0].ns = now_ns;
	p->nsamples = 1;
}

static void add_sample(struct progress *p, uint64_t bytes, uint64_t now_ns)
{
	if (p->nsamples == PROGRESS_SAMPLES) {
		memmove(&p->sample[0], &p->sample[1], sizeof p->sample - sizeof p->sample[0]);
		p->nsamples--;
	}
	p->sample[p->nsamples].ns = now_ns;
	p->sample[p->nsamples].bytes = bytes;
	p->nsamples++;
}

double progress_rate_bps(const struct progress *p)
{
	uint64_t ns = p->sample[p->nsamples - 1].ns - p->sample[0].ns;
	uint64_t bytes = p->sample[p->nsamples - 1].bytes - p->sample[0].bytes;

	return ns ? (double)bytes * 8e9 / (double)ns : 0;
}

static void losses_text(char *buf, size_t cap, const struct sdr_conn *conn)
{
	struct sdr_conn_info info = {.size = sizeof info};
	char resent[UNITS_TEXT];

	*buf = '\0';
	if (!conn || sdr_conn_query(conn, &info) < 0 || info.tx_pkts == 0)
		return;
	units_size_text(resent, info.tx_resent_bytes);
	snprintf(buf, cap, ", loss %.2f %%, resent %s", 100 * loss_share(&info), resent);
}

static void left_text(char *buf, size_t cap, const struct progress *p, uint64_t bytes)
{
	double rate = progress_rate_bps(p);
	char time[UNITS_TEXT];

	*buf = '\0';
	if (rate <= 0 || bytes >= p->total_bytes)
		return;
	units_time_text(time, (uint64_t)((double)(p->total_bytes - bytes) * 8e9 / rate));
	snprintf(buf, cap, ", %s left", time);
}

static void bar_text(char *buf, double share)
{
	int full = (int)(share * BAR_WIDTH);

	memset(buf, ' ', BAR_WIDTH);
	memset(buf, '=', (size_t)full);
	if (full < BAR_WIDTH)
		buf[full] = '>';
	buf[BAR_WIDTH] = '\0';
}

static int columns(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col < 20)
		return 80;
	return size.ws_col;
}

static void show(struct progress *p, uint64_t bytes, const struct sdr_conn *conn)
{
	double share = p->total_bytes ? (double)bytes / (double)p->total_bytes : 1;
	char done[UNITS_TEXT], total[UNITS_TEXT], rate[UNITS_TEXT], bar[BAR_WIDTH + 1];
	char losses[64], left[48], line[256];
	int width = columns() - 1;

	if (share > 1)
		share = 1;
	units_size_text(done, bytes);
	units_size_text(total, p->total_bytes);
	units_rate_text(rate, progress_rate_bps(p));
	losses_text(losses, sizeof losses, conn);
	left_text(left, sizeof left, p, bytes);
	if (p->mode == PROGRESS_LINES) {
		say("%3.0f %%: %s of %s, %s%s%s", 100 * share, done, total, rate, losses, left);
		return;
	}
	bar_text(bar, share);
	snprintf(line, sizeof line, "%3.0f%% [%s] %s of %s, %s%s%s", 100 * share, bar, done, total,
		 rate, left, losses);
	if ((size_t)width < sizeof line)
		line[width] = '\0';
	say_bar(line);
}

void progress_update(struct progress *p, uint64_t bytes, const struct sdr_conn *conn,
		     uint64_t now_ns)
{
	uint64_t every = p->mode == PROGRESS_BAR ? BAR_EVERY_NS : LINE_EVERY_NS;

	if (p->mode == PROGRESS_NONE)
		return;
	if (now_ns - p->sample[p->nsamples - 1].ns >= BAR_EVERY_NS)
		add_sample(p, bytes, now_ns);
	if (now_ns - p->shown_ns < every)
		return;
	p->shown_ns = now_ns;
	show(p, bytes, conn);
}

void progress_fini(struct progress *p)
{
	if (p->mode == PROGRESS_BAR)
		say_bar(NULL);
	p->mode = PROGRESS_NONE;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * What gnuplot is told; see plot.h. Ticks are ours: gnuplot labels a logarithmic axis of
 * less than a decade hardly at all, and knows no powers of two. Text goes between single
 * quotes, where gnuplot replaces nothing, to a terminal without markup.
 */
#include "tool/plot.h"

#include <math.h>
#include <string.h>

#define NAME_FONT "font ',15'"
#define TICKS 9 /* about so many are legible on an axis */

/* Okabe and Ito's colours, which colour-blind readers tell apart; black first. */
static const char *const colours[PLOT_COLOURS + 1] = {"#000000", "#0072b2", "#d55e00", "#009e73",
						      "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f"};
/* Told apart also in black and white. */
static const int shapes[PLOT_COLOURS + 1] = {2, 7, 5, 9, 11, 13, 4, 6};

static void quoted(FILE *to, const char *text)
{
	fputc('\'', to);
	for (; *text; text++) {
		if (*text == '\'')
			fputc('\'', to);
		fputc((unsigned char)*text < 0x20 || *text == 0x7f ? ' ' : *text, to);
	}
	fputc('\'', to);
}

static void set_text(FILE *to, const char *what, const char *text, const char *how)
{
	fprintf(to, "set %s ", what);
	quoted(to, text ? text : "");
	fprintf(to, " %s noenhanced\n", how);
}

static void begin(FILE *to, const char *title, const char *note, const char *size)
{
	fprintf(to,
		"set encoding utf8\n"
		"set terminal svg size %s dynamic noenhanced font 'Helvetica,Arial,sans-serif,15' "
		"background '#ffffff'\n",
		size);
	set_text(to, "title", title, note ? "font ',17' offset 0,1.2" : "font ',17'");
	if (!note)
		return;
	/* A title has one font, so the note is a label. */
	set_text(to, "label 1", note,
		 "at graph 0.5, graph 1 offset 0,1.1 center font ',13' textcolor rgb '#444444'");
	fputs("set tmargin 5\n", to);
}

/* ---- axes --------------------------------------------------------------------------- */

static bool shown(const struct plot_axis *axis, double v)
{
	return isfinite(v) && (axis->scale == PLOT_LINEAR || v > 0);
}

static void widen(const struct plot_axis *axis, double v, double *lo, double *hi)
{
	if (!shown(axis, v))
		return;
	*lo = fmin(*lo, v);
	*hi = fmax(*hi, v);
}

/* The data's range with a little air; false: there is nothing. */
static bool range_of(const struct plot *p, const struct plot_axis *axis, bool x, double *lo,
		     double *hi)
{
	double air;

	*lo = INFINITY;
	*hi = -INFINITY;
	for (size_t s = 0; s < p->count; s++) {
		const struct plot_series *series = &p->series[s];

		for (size_t i = 0; i < series->n; i++) {
			if (!shown(&p->x, series->x[i]) || !shown(&p->y, series->y[i]))
				continue;
			widen(axis, x ? series->x[i] : series->y[i], lo, hi);
			if (!x && series->lo && series->hi) {
				widen(axis, series->lo[i], lo, hi);
				widen(axis, series->hi[i], lo, hi);
			}
		}
	}
	if (*lo > *hi)
		return false;
	if (axis->from != 0 || axis->to != 0) {
		*lo = axis->from;
		*hi = axis->to;
		return shown(axis, *lo) && shown(axis, *hi) && *lo < *hi;
	}
	if (axis->scale == PLOT_LINEAR) {
		air = *hi > *lo ? 0.04 * (*hi - *lo) : fmax(fabs(*hi), 1) * 0.1;
		/* From zero, unless that would leave the picture mostly empty. */
		*lo = *lo >= 0 && *lo < 0.5 * *hi ? 0 : *lo - air;
		*hi += air;
		return true;
	}
	air = *hi > *lo ? pow(*hi / *lo, 0.04) : 1.25;
	*lo /= air;
	*hi *= air;
	return true;
}

static void tick(FILE *to, bool *first, const char *text, double at)
{
	fputs(*first ? "" : ", ", to);
	quoted(to, text);
	fprintf(to, " %.17g", at);
	*first = false;
}

static void size_tick(FILE *to, double bytes, bool *first)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	int unit = (int)(fmin(fmax(log2(bytes), 0), 69) / 10);
	char text[32];

	snprintf(text, sizeof text, "%.4g %s", ldexp(bytes, -10 * unit), units[unit]);
	tick(to, first, text, bytes);
}

static void size_ticks(FILE *to, double lo, double hi, bool *first)
{
	int from = (int)ceil(log2(lo)), till = (int)floor(log2(hi));
	int step = (till - from) / TICKS + 1;

	for (int e = from; e <= till && till > from; e += step)
		size_tick(to, ldexp(1, e), first);
	/* Between two powers of two there is still something to read. */
	for (int i = 0; i <= 3 && till <= from; i++)
		size_tick(to, lo * pow(hi / lo, i / 3.0), first);
}

static void decimal_text(char *buf, size_t cap, double v)
{
	int e = (int)floor(log10(v) + 1e-9);

	if (e >= -3 && e < 5)
		snprintf(buf, cap, "%g", v);
	else
		snprintf(buf, cap, "%ge%d", v / pow(10, e), e);
}

/* The numbers of a decade that get a tick: as many as have room. */
static const double *decade(double decades, size_t *count)
{
	static const double one[] = {1}, some[] = {1, 2, 5},
			    many[] = {1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8};

	if (decades > 3.5) {
		*count = 1;
		return one;
	}
	*count = decades > 1.2 ? sizeof some / sizeof some[0] : sizeof many / sizeof many[0];
	return decades > 1.2 ? some : many;
}

static void log_ticks(FILE *to, double lo, double hi, bool *first)
{
	double decades = log10(hi / lo);
	int step = (int)(decades / TICKS) + 1;
	size_t count;
	const double *at = decade(decades, &count);

	for (int e = (int)floor(log10(lo)); e <= (int)ceil(log10(hi)); e += step) {
		for (size_t i = 0; i < count; i++) {
			double v = at[i] * pow(10, e);
			char text[32];

			if (v < lo * (1 - 1e-12) || v > hi * (1 + 1e-12))
				continue;
			decimal_text(text, sizeof text, v);
			tick(to, first, text, v);
		}
	}
}

static void set_axis(FILE *to, char name, const struct plot_axis *axis, double lo, double hi)
{
	char label[] = "xlabel";
	bool first = true, narrow = axis->scale == PLOT_LOG && hi / lo < 2;

	label[0] = name;
	set_text(to, label, axis->label, NAME_FONT);
	fprintf(to, "set %crange [%.17g:%.17g]\n", name, lo, hi);
	if (axis->scale == PLOT_LINEAR)
		return;
	fprintf(to, "set logscale %c %d\n", name, axis->scale == PLOT_BYTES ? 2 : 10);
	if (narrow) {
		/* Hardly logarithmic: even steps read better. */
		fprintf(to, "set %ctics %.17g\n", name, pow(10, floor(log10((hi - lo) / 2))));
		return;
	}
	fprintf(to, "set %ctics (", name);
	if (axis->scale == PLOT_BYTES)
		size_ticks(to, lo, hi, &first);
	else
		log_ticks(to, lo, hi, &first);
	fputs(")\n", to);
}

/* ---- lines -------------------------------------------------------------------------- */

static void series_data(FILE *to, const struct plot *p, size_t index)
{
	const struct plot_series *s = &p->series[index];

	fprintf(to, "$s%zu << EOD\n", index);
	for (size_t i = 0; i < s->n; i++) {
		bool whisker = s->lo && s->hi && shown(&p->y, s->lo[i]) && shown(&p->y, s->hi[i]);

		if (!shown(&p->x, s->x[i]) || !shown(&p->y, s->y[i])) {
			fputs("\n", to); /* a gap in the line */
			continue;
		}
		fprintf(to, "%.12g %.12g %.12g %.12g\n", s->x[i], s->y[i],
			whisker ? s->lo[i] : s->y[i], whisker ? s->hi[i] : s->y[i]);
	}
	fputs("EOD\n", to);
}

static void series_plot(FILE *to, const struct plot *p, size_t index)
{
	const struct plot_series *s = &p->series[index];
	unsigned int c = s->colour % (PLOT_COLOURS + 1);

	fputs(index ? ", " : "", to);
	/* Whiskers below the line and its points. */
	if (s->lo && s->hi)
		fprintf(to, "$s%zu using 1:2:3:4 with yerrorbars pt 0 lw 1.2 lc rgb '%s' notitle, ",
			index, colours[c]);
	fprintf(to, "$s%zu using 1:2 ", index);
	if (s->style == PLOT_LINE_POINTS)
		fprintf(to, "with linespoints pt %d ps 0.6 lw 2", shapes[c]);
	else if (s->style == PLOT_POINTS)
		fprintf(to, "with points pt %d ps 0.7", shapes[c]);
	else
		fprintf(to, "with lines lw %s", s->style == PLOT_DASHED ? "1.5 dt (7,4)" : "2");
	fprintf(to, " lc rgb '%s' ", colours[c]);
	if (!s->label) {
		fputs("notitle", to);
		return;
	}
	fputs("title ", to);
	quoted(to, s->label);
}

bool plot_lines_script(FILE *to, const struct plot *p)
{
	double x_lo, x_hi, y_lo, y_hi;

	if (!range_of(p, &p->x, true, &x_lo, &x_hi) || !range_of(p, &p->y, false, &y_lo, &y_hi))
		return false;
	begin(to, p->title, p->note, "960,560");
	fputs("set grid lc rgb '#d8d8d8' lw 1 dt 1\n"
	      "set border 3 lc rgb '#444444'\n"
	      "set tics nomirror out\n"
	      "set bars 0.6\n"
	      "set key outside right top Left reverse noenhanced spacing 1.25 samplen 3\n",
	      to);
	set_axis(to, 'x', &p->x, x_lo, x_hi);
	set_axis(to, 'y', &p->y, y_lo, y_hi);
	for (size_t s = 0; s < p->count; s++)
		series_data(to, p, s);
	fputs("plot ", to);
	for (size_t s = 0; s < p->count; s++)
		series_plot(to, p, s);
	fputs("\n", to);
	return true;
}

/* ---- heat maps ---------------------------------------------------------------------- */

static void names(FILE *to, char axis, const char *const *text, size_t count)
{
	bool first = true;

	fprintf(to, "set %ctics scale 0 (", axis);
	for (size_t i = 0; i < count; i++)
		tick(to, &first, text[i], (double)i);
	fputs(")\n", to);
}

/* Values that the colours can show: a factor has a logarithm. */
static bool heat_range(const struct plot_grid *g, double *lo, double *hi)
{
	const struct plot_axis axis = {.scale = g->neutral > 0 ? PLOT_LOG : PLOT_LINEAR};

	*lo = INFINITY;
	*hi = -INFINITY;
	for (size_t i = 0; i < g->rows * g->cols; i++)
		widen(&axis, g->values[i], lo, hi);
	return *lo <= *hi;
}

/* Light colours, so that black numbers are legible on all of them. */
static void heat_palette(FILE *to, const struct plot_grid *g, double lo, double hi)
{
	bool first = true;
	double far;

	if (g->neutral <= 0) {
		fprintf(to,
			"set palette defined (0 '#ffffff', 1 '#6baed6')\nset cbrange "
			"[%.12g:%.12g]\n",
			lo, hi > lo ? hi : lo + 1);
		return;
	}
	/* As far above as below, so that the neutral value is white. */
	far = fmax(fmax(hi / g->neutral, g->neutral / lo), 1.05);
	fprintf(to,
		"set palette defined (0 '#f1a340', 0.5 '#ffffff', 1 '#67a9cf')\n"
		"set logscale cb\nset cbrange [%.12g:%.12g]\nset cbtics (",
		g->neutral / far, g->neutral * far);
	log_ticks(to, g->neutral / far, g->neutral * far, &first);
	fputs(")\n", to);
}

/* Three digits, also where the last are zeros. */
static int decimals(double v)
{
	return fabs(v) < 10 ? 2 : fabs(v) < 100 ? 1 : 0;
}

static void heat_data(FILE *to, const struct plot_grid *g)
{
	fputs("$grid << EOD\n", to);
	for (size_t r = 0; r < g->rows; r++) {
		for (size_t c = 0; c < g->cols; c++) {
			double v = g->values[r * g->cols + c];

			if (isfinite(v) && (g->neutral <= 0 || v > 0))
				fprintf(to, "%zu %zu %.12g %.*f\n", c, r, v, decimals(v), v);
		}
	}
	fputs("EOD\n", to);
}

bool plot_heat_script(FILE *to, const struct plot_grid *g)
{
	double lo, hi;

	if (!heat_range(g, &lo, &hi))
		return false;
	begin(to, g->title, g->note, "960,600");
	set_text(to, "xlabel", g->x_label, NAME_FONT);
	set_text(to, "ylabel", g->y_label, NAME_FONT);
	set_text(to, "cblabel", g->value_label, NAME_FONT);
	fprintf(to, "set xrange [-0.5:%g]\nset yrange [-0.5:%g]\n", (double)g->cols - 0.5,
		(double)g->rows - 0.5);
	names(to, 'x', g->x_names, g->cols);
	names(to, 'y', g->y_names, g->rows);
	heat_palette(to, g, lo, hi);
	heat_data(to, g);
	/* Where there is no value, grey shows through. */
	fputs("set object 1 rectangle from graph 0,0 to graph 1,1 behind fc rgb '#e4e4e4' "
	      "fs solid noborder\n"
	      "unset key\nset border lc rgb '#444444'\nset tics nomirror\n"
	      "set style fill solid 1 border lc rgb '#ffffff'\n"
	      "plot $grid using 1:2:(0.5):(0.5):3 with boxxyerror lc palette, "
	      "$grid using 1:2:4 with labels font ',13'\n",
	      to);
	return true;
}

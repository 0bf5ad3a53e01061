/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Charts as SVG: lines with whiskers, and heat maps. gnuplot draws them (Debian:
 * gnuplot-nox), run without a shell; no file name reaches it. The picture goes to a new file
 * beside the wanted one, which replaces that only when it is complete.
 *
 * Knows nothing of what is drawn. Text is taken as it is: no markup.
 */
#ifndef SDR_TOOL_PLOT_H
#define SDR_TOOL_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum plot_scale {
	PLOT_LINEAR,
	PLOT_LOG,   /* by powers of ten */
	PLOT_BYTES, /* by powers of two, written as sizes: 64 KiB, 1 MiB */
};

struct plot_axis {
	const char *label; /* with its unit: "completion time (ms)" */
	enum plot_scale scale;
	double from, to; /* from < to; both 0: as the data need */
};

enum plot_style { PLOT_LINE_POINTS, PLOT_LINE, PLOT_DASHED, PLOT_POINTS };

/* 0 is black, for bounds and references; then as many as colour-blind readers tell apart. */
#define PLOT_COLOURS 7u

struct plot_series {
	const char *label;     /* NULL: not in the legend */
	const double *x, *y;   /* n of each; what an axis cannot show (NaN, log of 0) is left out */
	const double *lo, *hi; /* whiskers, or NULL */
	size_t n;
	enum plot_style style;
	unsigned int colour; /* 0, or 1.. for the schemes; taken modulo PLOT_COLOURS + 1 */
};

struct plot {
	const char *title;
	const char *note; /* a smaller line below the title, or NULL */
	struct plot_axis x, y;
	const struct plot_series *series;
	size_t count;
};

/* rows * cols values; row 0 is drawn at the bottom. */
struct plot_grid {
	const char *title;
	const char *note; /* or NULL */
	const char *x_label, *y_label, *value_label;
	const char *const *x_names; /* of the columns */
	const char *const *y_names; /* of the rows */
	const double *values;	    /* [row * cols + col]; NaN: an empty field */
	size_t rows, cols;
	double neutral; /* above 0: a factor that is neither good nor bad, such as 1; or 0 */
};

/*
 * 0, or -1 after saying what is wrong: nothing to draw, a path that cannot be written, no
 * gnuplot. What was at `path` is then as before.
 */
int plot_lines(const char *path, const struct plot *p);
int plot_heat(const char *path, const struct plot_grid *g);
/* Whether a picture could be made there: for callers who work long before they draw. */
int plot_try(const char *path);

/* What gnuplot is told; in plot_script.c. False: the axes can show not one value. */
bool plot_lines_script(FILE *to, const struct plot *p);
bool plot_heat_script(FILE *to, const struct plot_grid *g);

#endif

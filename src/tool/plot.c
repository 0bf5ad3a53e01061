// SPDX-License-Identifier: Apache-2.0
/*
 * Runs gnuplot and puts its picture in place. See plot.h; what it is told is in
 * plot_script.c. Its input, output and complaints are files that we opened.
 */
#include "tool/plot.h"

#include "tool/say.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NO_GNUPLOT 127 /* as a shell would say */

/* A picture on its way: `final` is where it goes, `temp` what is written. */
struct picture {
	char final[PATH_MAX], temp[PATH_MAX + 8];
	int fd;
};

static int cannot_write(const char *path, const char *why)
{
	say("cannot write %s: %s", path, why);
	return -1;
}

/* Follows links, so that a link stays one, and refuses what a rename would destroy. */
static int find_place(struct picture *pic, const char *path)
{
	struct stat st;

	if (path[0] == '\0') {
		say("a picture needs a file name: it is empty");
		return -1;
	}
	if (stat(path, &st) == 0) {
		if (S_ISDIR(st.st_mode))
			return cannot_write(path, "it is a directory: name a file in it");
		if (!S_ISREG(st.st_mode))
			return cannot_write(path, "it is not a regular file");
		if (!realpath(path, pic->final))
			return cannot_write(path, strerror(errno));
		return 0;
	}
	if (errno != ENOENT)
		return cannot_write(path, strerror(errno));
	if (strlen(path) >= sizeof pic->final)
		return cannot_write(path, strerror(ENAMETOOLONG));
	strcpy(pic->final, path);
	return 0;
}

static int picture_begin(struct picture *pic, const char *path)
{
	mode_t mask = umask(0);

	umask(mask);
	if (find_place(pic, path))
		return -1;
	snprintf(pic->temp, sizeof pic->temp, "%s.XXXXXX", pic->final);
	pic->fd = mkostemp(pic->temp, O_CLOEXEC);
	if (pic->fd < 0)
		return cannot_write(path, strerror(errno));
	/* mkstemp() keeps it to its owner; a picture is like any other file. */
	if (fchmod(pic->fd, 0666 & ~mask) < 0) {
		cannot_write(path, strerror(errno));
		close(pic->fd);
		unlink(pic->temp);
		return -1;
	}
	return 0;
}

static int picture_end(struct picture *pic, const char *path, bool good)
{
	int rc = 0;

	if (close(pic->fd) < 0 && good)
		rc = cannot_write(path, strerror(errno));
	if (good && rc == 0 && rename(pic->temp, pic->final) < 0)
		rc = cannot_write(path, strerror(errno));
	if (!good || rc)
		unlink(pic->temp);
	return good ? rc : -1;
}

/* In the child; ends it. */
static void become_gnuplot(int in, int picture, int complaints)
{
	if (dup2(in, 0) < 0 || dup2(picture, 1) < 0 || dup2(complaints, 2) < 0)
		_exit(1);
	/* -d: no settings of whoever runs this. */
	execlp("gnuplot", "gnuplot", "-d", (char *)NULL);
	_exit(errno == ENOENT ? NO_GNUPLOT : 126);
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void say_complaint(FILE *complaints)
{
	char line[256];

	rewind(complaints);
	while (fgets(line, sizeof line, complaints)) {
		char safe[4 * sizeof line];

		line[strcspn(line, "\n")] = '\0';
		say_safe(safe, sizeof safe, line);
		if (safe[0] != '\0')
			say("gnuplot: %s", safe);
	}
}

static int run_gnuplot(FILE *script, int picture, FILE *complaints)
{
	pid_t pid;
	int code;

	/* The script is read from its beginning through the shared offset. */
	if (fflush(script) != 0 || lseek(fileno(script), 0, SEEK_SET) < 0) {
		say("cannot hand the plot to gnuplot: %s", strerror(errno));
		return -1;
	}
	pid = fork();
	if (pid == 0)
		become_gnuplot(fileno(script), picture, fileno(complaints));
	if (pid < 0) {
		say("cannot run gnuplot: %s", strerror(errno));
		return -1;
	}
	code = wait_for(pid);
	if (code == NO_GNUPLOT)
		say("gnuplot is missing, which draws the plots: install Debian's package "
		    "gnuplot-nox");
	else if (code != 0) {
		say_complaint(complaints);
		say("gnuplot could not draw the plot");
	}
	return code == 0 ? 0 : -1;
}

static int draw(const char *path, FILE *script)
{
	FILE *complaints = tmpfile();
	struct picture pic;
	bool good;

	if (!complaints) {
		say("cannot make a temporary file: %s", strerror(errno));
		return -1;
	}
	if (picture_begin(&pic, path)) {
		fclose(complaints);
		return -1;
	}
	good = run_gnuplot(script, pic.fd, complaints) == 0;
	fclose(complaints);
	return picture_end(&pic, path, good);
}

static FILE *script_file(void)
{
	FILE *script = tmpfile();

	if (!script)
		say("cannot make a temporary file: %s", strerror(errno));
	return script;
}

int plot_try(const char *path)
{
	FILE *script = script_file(), *complaints = script ? tmpfile() : NULL;
	struct picture pic;
	int rc = -1;

	if (script && !complaints)
		say("cannot make a temporary file: %s", strerror(errno));
	if (complaints && picture_begin(&pic, path) == 0) {
		rc = run_gnuplot(script, pic.fd, complaints);
		(void)picture_end(&pic, path, false);
	}
	if (complaints)
		fclose(complaints);
	if (script)
		fclose(script);
	return rc;
}

/* A script that does not fit on the disk is no script. */
static int draw_script(const char *path, FILE *script, bool any)
{
	int rc = -1;

	if (!any)
		say("nothing to plot in %s: there is not one value that its axes can show", path);
	else if (ferror(script))
		say("cannot write a temporary file: %s", strerror(errno));
	else
		rc = draw(path, script);
	fclose(script);
	return rc;
}

int plot_lines(const char *path, const struct plot *p)
{
	FILE *script = script_file();

	return script ? draw_script(path, script, plot_lines_script(script, p)) : -1;
}

int plot_heat(const char *path, const struct plot_grid *g)
{
	FILE *script = script_file();

	return script ? draw_script(path, script, plot_heat_script(script, g)) : -1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: a scratch directory that takes the place of "/", and planted files in it. */
#ifndef SDR_TOOL_DOCTOR_TEST_ROOT_H
#define SDR_TOOL_DOCTOR_TEST_ROOT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char test_root[64];

static int root_make(void **state)
{
	(void)state;
	strcpy(test_root, "/tmp/sdr-doctor-XXXXXX");
	return mkdtemp(test_root) ? 0 : -1;
}

static int root_remove(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", test_root);
	return system(command);
}

/* Makes the directories above a path below the root. */
static void root_dirs(const char *path, char full[512])
{
	snprintf(full, 512, "%s%s", test_root, path);
	for (char *p = full + strlen(test_root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		(void)mkdir(full, 0755);
		*p = '/';
	}
}

static void plant(const char *path, const char *text)
{
	char full[512];
	FILE *f;

	root_dirs(path, full);
	f = fopen(full, "w");
	if (!f || fputs(text, f) < 0 || fclose(f) != 0)
		abort();
}

__attribute__((unused)) static void plant_link(const char *path, const char *to)
{
	char full[512];

	root_dirs(path, full);
	unlink(full);
	if (symlink(to, full) < 0)
		abort();
}

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * sdr info: what this build contains and what this host allows: devices, limits,
 * schemes, socket buffers. Opens no connection.
 */
#include "tool/cli.h"

#include "tool/json.h"
#include "tool/opts.h"
#include "tool/say.h"

#include "base/units.h"

#include <sdr/conn.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#define DEVICES_MAX 16
#define WISH_BYTES (32u << 20) /* the default of sdr_ctx_attr.sockbuf_bytes */

struct info_opts {
	uint64_t json, counters;
};

static const struct opt info_table[] = {
	{"json", 0, OPT_FLAG, offsetof(struct info_opts, json), 0, 0, NULL,
	 "print the result as JSON"},
	{"counters", 0, OPT_FLAG, offsetof(struct info_opts, counters), 0, 0, NULL,
	 "list the counters that a context keeps"},
	{0},
};

struct facts {
	struct sdr_device_info device[DEVICES_MAX];
	int ndevices;
	uint64_t rmem_max, wmem_max; /* 0: unknown */
	struct utsname host;
};

static uint64_t read_number(const char *path)
{
	FILE *f = fopen(path, "re");
	uint64_t v = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%" SCNu64, &v) != 1)
		v = 0;
	fclose(f);
	return v;
}

static void gather(struct facts *f)
{
	*f = (struct facts){0};
	for (int i = 0; i < DEVICES_MAX; i++)
		f->device[i].size = sizeof f->device[i];
	f->ndevices = sdr_device_list(f->device, DEVICES_MAX);
	if (f->ndevices > DEVICES_MAX)
		f->ndevices = DEVICES_MAX;
	f->rmem_max = read_number("/proc/sys/net/core/rmem_max");
	f->wmem_max = read_number("/proc/sys/net/core/wmem_max");
	uname(&f->host);
}

/* UDP_SEGMENT came with Linux 4.18, UDP_GRO with 5.0. */
static int kernel_at_least(const struct facts *f, int major, int minor)
{
	int have_major = 0, have_minor = 0;

	if (sscanf(f->host.release, "%d.%d", &have_major, &have_minor) != 2)
		return 0;
	return have_major > major || (have_major == major && have_minor >= minor);
}

static const char *yes_no(int v)
{
	return v ? "yes" : "no";
}

static void print_device(const struct sdr_device_info *d)
{
	char payload[UNITS_TEXT];

	out("device %s: %s", d->name, d->description);
	out("    channels up to %u, payload up to %s; workers %s, zero copy %s, virtual time %s",
	    d->max_channels, units_size_text(payload, d->max_payload_bytes),
	    yes_no(d->caps & SDR_CAP_WORKERS), yes_no(d->caps & SDR_CAP_ZERO_COPY),
	    yes_no(d->caps & SDR_CAP_VIRTUAL_TIME));
}

static void print_buffers(const struct facts *f)
{
	char r[UNITS_TEXT], w[UNITS_TEXT], wish[UNITS_TEXT];

	out("socket buffers: receive up to %s, send up to %s (net.core.rmem_max, wmem_max)",
	    units_size_text(r, f->rmem_max), units_size_text(w, f->wmem_max));
	if (f->rmem_max < WISH_BYTES || f->wmem_max < WISH_BYTES)
		out("    for long fast paths, as root: sysctl -w net.core.rmem_max=%u "
		    "net.core.wmem_max=%u (%s each)",
		    WISH_BYTES, WISH_BYTES, units_size_text(wish, WISH_BYTES));
}

static void print_text(const struct facts *f, int counters)
{
	char schemes[256] = "";

	for (const char *const *name = sdr_scheme_names(); *name; name++) {
		size_t used = strlen(schemes);

		snprintf(schemes + used, sizeof schemes - used, "%s%s", used ? ", " : "", *name);
	}
	out("sdr %s, default port %u (UDP and TCP)", sdr_version(), SDR_DEFAULT_PORT);
	out("schemes: %s", schemes);
	for (int i = 0; i < f->ndevices; i++)
		print_device(&f->device[i]);
	out("limits: %u channels, %u messages in flight, chunks of up to %u packets",
	    SDR_MAX_CHANNELS, SDR_MAX_MESSAGES, SDR_MAX_CHUNK_PKTS);
	out("kernel %s: segmentation offload for UDP (GSO) %s, coalescing (GRO) %s",
	    f->host.release, yes_no(kernel_at_least(f, 4, 18)), yes_no(kernel_at_least(f, 5, 0)));
	print_buffers(f);
	for (unsigned int i = 0; counters && sdr_counter_name(i); i++)
		out("counter %s: %s", sdr_counter_name(i), sdr_counter_text(i));
}

static void json_devices(struct json *j, const struct facts *f)
{
	json_array_begin(j, "devices");
	for (int i = 0; i < f->ndevices; i++) {
		const struct sdr_device_info *d = &f->device[i];

		json_object_begin(j, NULL);
		json_text(j, "name", d->name);
		json_text(j, "description", d->description);
		json_uint(j, "max_channels", d->max_channels);
		json_uint(j, "max_payload_bytes", d->max_payload_bytes);
		json_bool(j, "workers", (d->caps & SDR_CAP_WORKERS) != 0);
		json_bool(j, "zero_copy", (d->caps & SDR_CAP_ZERO_COPY) != 0);
		json_bool(j, "virtual_time", (d->caps & SDR_CAP_VIRTUAL_TIME) != 0);
		json_object_end(j);
	}
	json_array_end(j);
}

static void print_json(const struct facts *f)
{
	struct json j;

	json_init(&j, stdout);
	json_object_begin(&j, NULL);
	json_text(&j, "version", sdr_version());
	json_uint(&j, "default_port", SDR_DEFAULT_PORT);
	json_array_begin(&j, "schemes");
	for (const char *const *name = sdr_scheme_names(); *name; name++)
		json_text(&j, NULL, *name);
	json_array_end(&j);
	json_devices(&j, f);
	json_object_begin(&j, "limits");
	json_uint(&j, "channels", SDR_MAX_CHANNELS);
	json_uint(&j, "messages", SDR_MAX_MESSAGES);
	json_uint(&j, "chunk_pkts", SDR_MAX_CHUNK_PKTS);
	json_uint(&j, "ctrl_bytes", SDR_MAX_CTRL_BYTES);
	json_object_end(&j);
	json_object_begin(&j, "host");
	json_text(&j, "kernel", f->host.release);
	json_bool(&j, "udp_gso", kernel_at_least(f, 4, 18));
	json_bool(&j, "udp_gro", kernel_at_least(f, 5, 0));
	json_uint(&j, "rmem_max", f->rmem_max);
	json_uint(&j, "wmem_max", f->wmem_max);
	json_object_end(&j);
	json_array_begin(&j, "counters");
	for (unsigned int i = 0; sdr_counter_name(i); i++)
		json_text(&j, NULL, sdr_counter_name(i));
	json_array_end(&j);
	json_object_end(&j);
	json_finish(&j);
}

static int run(int argc, char **argv)
{
	struct info_opts o = {0};
	struct facts f;
	int first, rc;

	first = opts_parse(&cmd_info, argc, argv, &o, &rc);
	if (first < 0)
		return rc;
	if (first < argc)
		return opts_usage(&cmd_info, "takes no arguments");
	gather(&f);
	if (f.ndevices < 0) {
		say("the devices cannot be listed: %s", sdr_strerror(f.ndevices));
		return CLI_FAILED;
	}
	if (o.json)
		print_json(&f);
	else
		print_text(&f, (int)o.counters);
	return CLI_OK;
}

const struct command cmd_info = {
	.name = "info",
	.synopsis = "[--json] [--counters]",
	.summary = "say what this build contains and what this host allows",
	.opts = info_table,
	.run = run,
};
